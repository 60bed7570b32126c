r"""Tables behind the sliders: what a rule does at every cost ratio and class mix, exactly.

With q the model's probability of the positive class, o(q) = q / (1 - q) its odds, r the cost of a
miss over that of a false alarm, and f the factor by which the odds of the class mix moved, the
rule of least expected cost decides "positive" when :math:`o(q)\, f\, r \ge 1`. Sliders that move
log r and log f in equal steps only ever need the cut points

.. math:: \mathrm{logit}\, q_m = -\log r_0 - s_0 - m \delta, \qquad m = i + j,

for step i of the mix and step j of the costs: fewer than 200, whatever the rows. So the page
holds, for each cut, how many rows of each class lie above it, and every number it shows is that
of the rule itself, not an interpolation.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from laconic._typing import Floats
from laconic.decide.displays import ReliabilityDisplay
from laconic.decide.intervals import design_effect, mean_cost_interval
from laconic.reporting.measured import Measured, at_mean_costs, decision_model, measure

STEP = math.log(10.0) / 20.0
"""Twenty steps multiply a cost ratio, or the odds of the class mix, by ten."""
RATIO_STEPS = 40
PRIOR_STEPS = 59

ZONE_ODDS = 2.0
"""The decision zone: odds within this factor of those of the threshold."""


def slider_table(rows: Measured, k: int, baseline: Any = None, X: Any = None) -> Any:
    """The dict that :func:`play` and the page read; None when two sliders make no sense.

    They need two classes with rows of both, probabilities, and costs under which neither decision
    is the cheaper one whatever the truth. ``k`` is the position of the positive class. Rows with
    costs of their own are decided at the means.
    """
    if rows.n_classes != 2 or rows.raw is None or not rows.class_rows.all():
        return None
    n = 1 - k
    alarm = float(rows.costs[n, k] - rows.costs[n, n])
    miss = float(rows.costs[k, n] - rows.costs[k, k])
    shift = _correction(rows, k)
    if alarm <= 0 or miss <= 0 or shift is None:
        return None
    share = rows.class_rows[k] / rows.n_rows if rows.prior is None else rows.prior[k]
    rules = [_counts_above(at_mean_costs(rows), k, miss / alarm, shift)]
    if baseline is not None:
        other = measure(decision_model(baseline, rows.costs), X, _labels(rows), rows.costs)
        other_shift = None if other.raw is None else _correction(other, k)
        if other_shift is not None:
            rules.append(_counts_above(other, k, miss / alarm, other_shift))
    return {
        "positive": k,
        "step": STEP,
        "ratio_steps": RATIO_STEPS,
        "prior_steps": PRIOR_STEPS,
        "ratio": miss / alarm,
        "share": float(share),
        "correction": shift,
        "false_alarm": alarm,
        "right": [float(rows.costs[n, n]), float(rows.costs[k, k])],
        "rows": [int(rows.class_rows[n]), int(rows.class_rows[k])],
        "abstains": rows.reject_cost is not None,
        "drawn": rows.prior is None,
        "repeats": design_effect(rows.cost_of_rows(), rows.clusters),
        "rules": rules,
    }


def _labels(rows: Measured) -> NDArray[Any]:
    labels = np.empty(len(rows.classes), dtype=object)
    labels[:] = rows.classes
    return np.array(labels[rows.truth].tolist())


def _correction(rows: Measured, k: int) -> float | None:
    """log of the factor on the odds that the rule applies before any slider moves."""
    if rows.prior is None:
        return 0.0
    if rows.train_prior is None or not (rows.prior > 0).all():
        return None
    n = 1 - k
    odds = math.log(rows.prior[k] / rows.prior[n])
    return odds - math.log(rows.train_prior[k] / rows.train_prior[n])


def _counts_above(rows: Measured, k: int, ratio: float, shift: float) -> dict[str, Any]:
    """Rows of the negative and of the positive class that each cut decides positive."""
    assert rows.raw is not None
    half = RATIO_STEPS + PRIOR_STEPS
    log_odds = -math.log(ratio) - shift - STEP * np.arange(-half, half + 1)
    cuts = expit(log_odds)
    found = []
    for code in (1 - k, k):
        of_class = rows.truth == code
        q = np.sort(rows.raw[of_class, k])
        # of two decisions that cost the same, the first class wins
        above = len(q) - np.searchsorted(q, cuts, side="left" if k == 0 else "right")
        above[half] = np.count_nonzero(rows.forced[of_class] == k)  # the rule itself, to the bit
        found.append(above.tolist())
    return {"cuts": cuts.tolist(), "alarms": found[0], "hits": found[1]}


def play(table: dict[str, Any], ratio_step: int = 0, prior_step: int = 0, rule: int = 0) -> Any:
    """What the page shows for two sliders; the same arithmetic, in the same order.

    >>> table = {"step": STEP, "ratio_steps": 40, "prior_steps": 59, "ratio": 9.0, "share": 0.5,
    ...          "false_alarm": 1.0, "right": [0.0, 0.0], "rows": [4, 2], "positive": 1,
    ...          "drawn": True,
    ...          "rules": [{"cuts": [0.1] * 199, "alarms": [1] * 199, "hits": [2] * 199}]}
    >>> shown = play(table)
    >>> shown["threshold"], shown["cost"], shown["false_alarms"]
    (0.1, 0.125, 125.0)
    """
    counts = table["rules"][rule]
    cut = table["ratio_steps"] + table["prior_steps"] + ratio_step + prior_step
    ratio = table["ratio"] * math.exp(table["step"] * ratio_step)
    odds = table["share"] / (1.0 - table["share"]) * math.exp(table["step"] * prior_step)
    share = table["share"] if prior_step == 0 else odds / (1.0 + odds)
    alarm_rate = counts["alarms"][cut] / table["rows"][0]
    hit_rate = counts["hits"][cut] / table["rows"][1]
    risks = class_costs(table, cut, ratio, rule)
    miss = ratio * table["false_alarm"]
    right_negative, right_positive = table["right"]
    drawn = table["drawn"] and prior_step == 0
    low, high = _cost_limits(table, counts, cut, miss, None if drawn else share)
    return {
        "ratio": ratio,
        "share": share,
        "threshold": 1.0 / (1.0 + ratio),
        "cut": counts["cuts"][cut],
        "decided": 1000.0 * (share * hit_rate + (1.0 - share) * alarm_rate),
        "hits": 1000.0 * share * hit_rate,
        "missed": 1000.0 * share * (1.0 - hit_rate),
        "false_alarms": 1000.0 * (1.0 - share) * alarm_rate,
        "cost": (1.0 - share) * risks[0] + share * risks[1],
        "cost_low": low,
        "cost_high": high,
        "always_negative": (1.0 - share) * right_negative + share * (right_positive + miss),
        "always_positive": (1.0 - share) * (right_negative + table["false_alarm"])
        + share * right_positive,
    }


def _cost_limits(
    table: dict[str, Any], counts: dict[str, Any], cut: int, miss: float, share: float | None
) -> tuple[float, float]:
    """Interval of the cost; at a class mix that was drawn with the rows when ``share`` is None."""
    (negative, positive), (right_negative, right_positive) = table["rows"], table["right"]
    alarms, hits = counts["alarms"][cut], counts["hits"][cut]
    seen = np.array([[negative - alarms, alarms], [positive - hits, hits]])
    seen = seen / table.get("repeats", 1.0)
    paid = [
        [right_negative, right_negative + table["false_alarm"]],
        [right_positive + miss, right_positive],
    ]
    return mean_cost_interval(seen, paid, None if share is None else [1.0 - share, share])


def class_costs(table: dict[str, Any], cut: int, ratio: float, rule: int = 0) -> list[float]:
    """Mean cost within the negative and within the positive class, for the rule at a cut."""
    counts = table["rules"][rule]
    alarm_rate = counts["alarms"][cut] / table["rows"][0]
    hit_rate = counts["hits"][cut] / table["rows"][1]
    return [
        table["right"][0] + table["false_alarm"] * alarm_rate,
        table["right"][1] + ratio * table["false_alarm"] * (1.0 - hit_rate),
    ]


def ceiling(table: dict[str, Any], ratio_step: int = 0) -> dict[str, float]:
    """The cut whose worse class costs least: whatever the mix, it costs at most that much."""
    ratio = table["ratio"] * math.exp(table["step"] * ratio_step)
    worst = [max(class_costs(table, cut, ratio)) for cut in range(len(table["rules"][0]["cuts"]))]
    at = min(range(len(worst)), key=worst.__getitem__)
    return {"cost": worst[at], "cut": table["rules"][0]["cuts"][at], "place": at}


def class_mix(rows: Measured) -> dict[str, Any]:
    """Decisions by true class, for sliders that only move the class mix: the rule stays."""
    counts = rows.confusion()
    totals = np.maximum(rows.class_rows, 1)
    rates = counts / totals[:, None]
    paid = rows.paid()
    base = rows.class_rows / rows.n_rows if rows.prior is None else rows.prior
    return {
        "step": STEP,
        "steps": RATIO_STEPS,
        "shares": np.asarray(base, dtype=float).tolist(),
        "rows": rows.class_rows.tolist(),
        "rates": rates[:, : paid.shape[1]].tolist(),
        "costs": paid.tolist(),
    }


def mix(table: dict[str, Any], steps: list[int]) -> dict[str, Any]:
    """What the page shows when the share of each class is multiplied, step by step."""
    weights = [
        share * math.exp(table["step"] * step)
        for share, step in zip(table["shares"], steps, strict=True)
    ]
    total = sum(weights)
    shares = [weight / total for weight in weights]
    risks = [
        sum(rate * cost for rate, cost in zip(rates, costs, strict=True))
        for rates, costs in zip(table["rates"], table["costs"], strict=True)
    ]
    decisions = range(len(table["costs"][0]))
    return {
        "shares": shares,
        "risks": risks,
        "cost": sum(share * risk for share, risk in zip(shares, risks, strict=True)),
        "decided": [
            1000.0
            * sum(share * rates[d] for share, rates in zip(shares, table["rates"], strict=True))
            for d in decisions
        ],
        "always": [
            sum(share * costs[d] for share, costs in zip(shares, table["costs"], strict=True))
            for d in range(len(shares))
        ],
    }


def reliability(rows: Measured, k: int, table: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Observed against predicted, for the positive class of two or for each of several.

    Probabilities are those of the wrapped model, under the class mix it was fitted for. With a
    threshold, bins of their own cover the decision zone.
    """
    if rows.raw is None:
        return []
    found = []
    for code in [k] if rows.n_classes == 2 else range(min(rows.n_classes, 20)):
        hit, q = (rows.truth == code).astype(int), rows.raw[:, code]
        panel: dict[str, Any] = {"class": int(code), "bins": _bins(hit, q, 10)}
        if table is not None:
            cut = table["rules"][0]["cuts"][len(table["rules"][0]["cuts"]) // 2]
            zone = decision_zone(rows, k, cut)
            inside = (q >= zone[0]) & (q <= zone[1])
            panel |= {"threshold": cut, "zone": list(zone), "rows_in_zone": int(inside.sum())}
            if inside.sum() >= 30:
                panel["zone_bins"] = _bins(hit[inside], q[inside], 6)
        found.append(panel)
    return found


def decision_zone(rows: Measured, k: int, cut: float) -> tuple[float, float]:
    """The model's own gray zone, else odds within :data:`ZONE_ODDS` of those of the threshold."""
    own = getattr(rows.inner, "zone_", None)
    if own is not None and len(own) == 2 and own[0] < own[1]:
        low, high = float(own[0]), float(own[1])  # of the probability of the last class
        return (low, high) if k == 1 else (1.0 - high, 1.0 - low)
    centre = float(logit(cut))
    width = math.log(ZONE_ODDS)
    return float(expit(centre - width)), float(expit(centre + width))


def _bins(hit: NDArray[Any], q: Floats, n_bins: int) -> dict[str, list[float]]:
    shown = ReliabilityDisplay.from_predictions(
        hit, q, n_bins=n_bins, strategy="expected", positive=1, labels=np.array([0, 1])
    )
    names = ("predicted", "observed", "lower", "upper", "rows")
    return {name: getattr(shown, name).tolist() for name in names}
