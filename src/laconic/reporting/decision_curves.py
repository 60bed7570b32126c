# ruff: noqa: E501 (sentences are kept on one line, with the punctuation of their language)
"""A section of the report: net benefit over thresholds, cost over class mixes and cost ratios.

The drawings are plain SVG made here, so that they need no script.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

import numpy as np
from markupsafe import Markup
from scipy.special import logit

from laconic._typing import Floats
from laconic.decide.curves import CostRegionDisplay, DecisionCurveDisplay
from laconic.decide.threshold import GuaranteedThreshold
from laconic.reporting.measured import Measured
from laconic.reporting.words import Numbers, clipped

_WORDS: dict[str, tuple[str, str]] = {
    "title": ("What the decisions are worth", "Ce que valent les décisions"),
    "lead": (
        "Bands hold the long-run value with 95 % confidence, point by point. The red line is the rule in use.",
        "Les bandes contiennent la valeur à long terme à 95 %, point par point. Le trait rouge est la règle en usage.",
    ),
    "lead_means": (
        "Bands hold the long-run value with 95 % confidence, point by point. The red line is the rule at the mean costs.",
        "Les bandes contiennent la valeur à long terme à 95 %, point par point. Le trait rouge est la règle aux coûts moyens.",
    ),
    "promised": (
        "The yellow region is what the guarantee leaves.",
        "La zone jaune est celle que la garantie laisse.",
    ),
    "benefit": ("Net benefit over thresholds", "Bénéfice net selon le seuil"),
    "benefit_x": ("threshold on the probability of “{name}”", "seuil sur la probabilité de « {name} »"),
    "benefit_note": (
        "True alarms per 1,000 cases, less false alarms at the rate of exchange that the threshold stands for. At {share} of “{name}”.",
        "Alertes justes pour 1 000 cas, moins les fausses au taux d'échange que dit le seuil. À {share} de « {name} ».",
    ),
    "mix": ("Cost over the class mix", "Coût selon la répartition"),
    "mix_x": ("share of “{name}” where the model is used", "part de « {name} » là où le modèle sert"),
    "mix_note": (
        "The decisions stay as they are; at {at} of “{name}” a case costs {cost}.",
        "Les décisions restent les mêmes ; à {at} de « {name} », un cas coûte {cost}.",
    ),
    "ratio": ("Cost over the ratio of costs", "Coût selon le rapport des coûts"),
    "ratio_x": ("cost of a miss over that of a false alarm", "coût d'un oubli sur celui d'une fausse alerte"),
    "ratio_note": (
        "The threshold follows the ratio; in units of one false alarm.",
        "Le seuil suit le rapport ; en unités d'une fausse alerte.",
    ),
    "model": ("this model", "ce modèle"),
    "all": ("everybody", "tous"),
    "none": ("nobody", "personne"),
    "constant": ("cheaper of everybody and nobody", "le moins cher de tous et personne"),
}  # fmt: skip
WIDTH, HEIGHT = 440, 270
_LEFT, _TOP, _RIGHT, _BOTTOM = 52, 12, 12, 40


def curves_of(rows: Measured, k: int, held: Any) -> dict[str, Any] | None:
    """Numbers of the three drawings; None where there are not two classes with unequal rows."""
    if rows.n_classes != 2 or rows.proba is None or not rows.class_rows.all():
        return None
    n = 1 - k
    alarm = float(rows.costs[n, k] - rows.costs[n, n])
    if alarm <= 0 or rows.costs[k, n] <= rows.costs[k, k] or rows.reject_cost is not None:
        return None
    own = held if isinstance(held, GuaranteedThreshold) else None
    given: dict[str, Any] = {
        "positive": 1,
        "labels": [0, 1],
        "share": None if rows.prior is None else float(rows.prior[k]),
        "guaranteed": own,
    }
    truth, p = (rows.truth == k).astype(int), rows.proba[:, k]
    costs = rows.costs[np.ix_([n, k], [n, k])]
    cut = None if own is None else own.threshold
    ratio = (costs[1, 0] - costs[1, 1]) / alarm
    benefit = DecisionCurveDisplay.from_predictions(
        truth, p, threshold=1.0 / (1.0 + ratio) if cut is None else cut, **given
    )
    share = float(truth.mean()) if rows.prior is None else float(rows.prior[k])
    ends = 0.0 if own is None or own.shares is None else own.shares[1]
    most = min(max(6.0 * share, 1.2 * ends, 0.05), 1.0)
    mix = CostRegionDisplay.from_predictions(truth, p, costs, most=most, **given)
    over = CostRegionDisplay.from_predictions(truth, p, costs / alarm, over="ratio", **given)
    return {"benefit": _plain(benefit), "mix": _plain(mix), "ratio": _plain(over)}


def _plain(display: Any) -> dict[str, Any]:
    found = {name: value for name, value in vars(display).items() if not name.endswith("_")}
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in found.items()
        if name != "positive"
    }


def section(summary: dict[str, Any], language: str) -> Markup:
    """The section as HTML; empty where the summary holds no curves."""
    found = summary.get("decision_curves")
    if found is None:
        return Markup("")
    name = clipped(summary["positive"], 28)
    number = Numbers(language)

    def say(key: str, **values: str) -> str:
        return _WORDS[key][language == "fr"].format(name=name, **values)

    benefit, mix, ratio = found["benefit"], found["mix"], found["ratio"]
    held = benefit["region"] is not None
    lead = say("lead_means" if summary.get("costs_by_row") else "lead")
    lead += f" {say('promised')}" if held else ""
    cost = float(np.interp(mix["at"], mix["x"], mix["cost"]))
    figures = [
        _figure(say("benefit"), _benefit(benefit, say, number), say("benefit_note", share=number.percent(benefit["share"]))),
        _figure(say("mix"), _costs(mix, say, number), say("mix_note", at=number.percent(mix["at"]), cost=number.cost(cost))),
        _figure(say("ratio"), _costs(ratio, say, number), say("ratio_note")),
    ]  # fmt: skip
    return Markup(
        '<section id="curves" aria-labelledby="h-curves">'
        f'<h2 id="h-curves">{escape(say("title"))}</h2><p class="lead">{escape(lead)}</p>'
        f'<div class="panel two">{"".join(figures)}</div></section>'
    )


def _figure(title: str, drawing: str, note: str) -> str:
    return (
        f"<figure><figcaption>{escape(title)}</figcaption>{drawing}"
        f'<p class="soft small">{escape(note)}</p></figure>'
    )


def _benefit(data: dict[str, Any], say: Callable[..., str], number: Numbers) -> str:
    y = 1000.0 * np.array([data["benefit"], data["low"], data["high"], data["everybody"]])
    x = np.array(data["thresholds"])
    top = max(float(y[2].max()), 1000.0 * data["share"])
    room = _Frame(x, (-0.3 * top, 1.05 * top), logit, _ticks_of_shares(x), number)
    parts = [room.zone(data["region"]), room.band(y[1], y[2]), room.line(y[3], "--second", "6 3")]
    parts += [room.line(np.zeros(len(x)), "--soft", "2 3"), room.line(y[0], "--model")]
    parts.append(room.mark(data["threshold"]))
    names = [("--model", say("model")), ("--second", say("all")), ("--soft", say("none"))]
    return room.svg(parts, say("benefit_x"), say("benefit"), names)


def _costs(data: dict[str, Any], say: Callable[..., str], number: Numbers) -> str:
    x, cost = np.array(data["x"]), np.array(data["cost"])
    low, high, constant = (np.array(data[name]) for name in ("low", "high", "constant"))
    top = 1.1 * float(max(high.max(), constant.max()))
    over_mix = data["over"] == "mix"
    ticks = _even(0.0, float(x[-1])) if over_mix else _ticks_of_ratios(x)
    room = _Frame(x, (0.0, top), (lambda v: v) if over_mix else np.log, ticks, number, over_mix)
    ceiling = data["ceiling"]
    parts = [room.zone(data["region"]) if over_mix else ""]
    if ceiling is not None:
        parts.append(room.band(np.zeros(len(x)), np.array(ceiling), "--zone", 0.35))
    parts += [room.band(low, high), room.line(constant, "--second", "6 3")]
    parts += [room.line(cost, "--model"), room.mark(data["at"])]
    names = [("--model", say("model")), ("--second", say("constant"))]
    return room.svg(parts, say(f"{data['over']}_x"), say(data["over"]), names)


def _even(low: float, high: float) -> Floats:
    """Round numbers, about five between the ends."""
    rough = (high - low) / 5.0
    unit = 10.0 ** np.floor(np.log10(rough))
    step = unit * min((1.0, 2.0, 5.0, 10.0), key=lambda m: abs(m * unit - rough))
    return np.asarray(np.arange(np.ceil(low / step), np.floor(high / step + 1e-9) + 1) * step)


def _ticks_of_shares(x: Floats) -> Floats:
    known = np.array([0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97, 0.99])
    return np.asarray(known[(known >= x[0]) & (known <= x[-1])])


def _ticks_of_ratios(x: Floats) -> Floats:
    known = np.array([a * 10.0**e for e in range(-4, 6) for a in (1, 3)])
    return np.asarray(known[(known >= x[0]) & (known <= x[-1])])


class _Frame:
    """Where numbers stand in a drawing; shapes as SVG texts."""

    def __init__(
        self,
        x: Floats,
        y: tuple[float, float],
        warp: Callable[[Any], Any],
        ticks: Floats,
        number: Numbers,
        shares: bool = True,
    ) -> None:
        self.x, self.y, self.warp, self.ticks = x, y, warp, ticks
        self.number, self.shares = number, shares
        self.ends = warp(x[0]), warp(x[-1])

    def px(self, value: Any) -> Any:
        part = (self.warp(value) - self.ends[0]) / (self.ends[1] - self.ends[0])
        return _LEFT + np.clip(part, 0.0, 1.0) * (WIDTH - _LEFT - _RIGHT)

    def py(self, value: Any) -> Any:
        low, high = self.y
        part = np.clip((np.asarray(value) - low) / (high - low), 0.0, 1.0)
        return HEIGHT - _BOTTOM - part * (HEIGHT - _TOP - _BOTTOM)

    def line(self, y: Floats, colour: str, dashes: str = "") -> str:
        inside = (y >= self.y[0]) & (y <= self.y[1])
        points = self._points(self.x[inside], y[inside])
        look = f' stroke-dasharray="{dashes}"' if dashes else ""
        return f'<polyline points="{points}" fill="none" stroke="var({colour})" stroke-width="2"{look}/>'

    def band(
        self, low: Floats, high: Floats, colour: str = "--model", opacity: float = 0.15
    ) -> str:
        around = self._points(np.append(self.x, self.x[::-1]), np.append(high, low[::-1]))
        return f'<polygon points="{around}" fill="var({colour})" fill-opacity="{opacity}"/>'

    def zone(self, region: Sequence[float] | None) -> str:
        """A region of x, at least a hairline wide."""
        if region is None:
            return ""
        a, b = (float(self.px(np.clip(end, self.x[0], self.x[-1]))) for end in region)
        return (
            f'<rect x="{a:.1f}" y="{_TOP}" width="{max(b - a, 2.0):.1f}" '
            f'height="{HEIGHT - _TOP - _BOTTOM}" fill="var(--zone)" fill-opacity="0.4"/>'
        )

    def mark(self, at: float) -> str:
        x = float(self.px(np.clip(at, self.x[0], self.x[-1])))
        return (
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{HEIGHT - _BOTTOM}" '
            'stroke="var(--alarm)" stroke-width="1.4"/>'
        )

    def _points(self, x: Floats, y: Floats) -> str:
        pairs = zip(self.px(x).tolist(), self.py(y).tolist(), strict=True)
        return " ".join(f"{a:.1f},{b:.1f}" for a, b in pairs)

    def svg(self, parts: list[str], label: str, title: str, names: list[tuple[str, str]]) -> str:
        text = 'fill="var(--soft)" font-size="11"'
        drawn = []
        for value in _even(*self.y):
            y = float(self.py(value))
            drawn.append(
                f'<line x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="var(--line)"/>'
                f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" {text}>{escape(self.number.short(float(value)))}</text>'
            )
        last = -math.inf
        for value in self.ticks.tolist():
            said = self.number.percent(value) if self.shares else self.number.short(value)
            half = 3.2 * len(said)
            if float(self.px(value)) - half < last + 6.0:
                continue
            last = float(self.px(value)) + half
            drawn.append(
                f'<text x="{float(self.px(value)):.1f}" y="{HEIGHT - _BOTTOM + 15}" text-anchor="middle" {text}>{escape(said)}</text>'
            )
        key = "".join(
            f'<tspan fill="var({colour})" dx="{12 if place else 0}">— {escape(name)}</tspan>'
            for place, (colour, name) in enumerate(names)
        )
        return (
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT + 18}" role="img" aria-label="{escape(title)}">'
            f"{''.join(drawn)}{''.join(parts)}"
            f'<text x="{(_LEFT + WIDTH) / 2:.0f}" y="{HEIGHT - 6}" text-anchor="middle" {text}>{escape(label)}</text>'
            f'<text x="{_LEFT}" y="{HEIGHT + 12}" font-size="11">{key}</text></svg>'
        )
