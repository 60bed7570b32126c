"""Small SVG plots without a drawing library: the same bytes from the same numbers, no dates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from laconic._typing import Floats

MARKS = {
    "circle": "M{0:.1f} {1:.1f}m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0",
    "triangle": "M{0:.1f} {1:.1f}m0 -5l4.5 8h-9z",
    "square": "M{0:.1f} {1:.1f}m-3.5 -3.5h7v7h-7z",
    "diamond": "M{0:.1f} {1:.1f}m0 -5l5 5l-5 5l-5 -5z",
}
"""Paths of the shapes of points, around their place."""
COLOURS = ("#1b5e9e", "#c2571a", "#2e7d4f", "#8e3b8c", "#6b6b6b", "#b8860b")
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 460, 320, 62, 30, 14, 46


@dataclass(frozen=True)
class Series:
    """A line, points, bars, or a band between ``y`` and ``high``; a dashed line is a reference."""

    name: str
    x: ArrayLike
    y: ArrayLike
    kind: Literal["line", "dashed", "points", "bars", "band"] = "line"
    high: ArrayLike = ()
    colour: str = ""
    marks: Sequence[str] = ()
    """Shapes of the points, of ``MARKS``; circles without them."""


@dataclass(frozen=True)
class Panel:
    """One pair of axes. Without ranges they hold all numbers; ``ticks`` names places of x."""

    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None
    ticks: Sequence[str] = ()


def plot(*panels: Panel) -> str:
    """The panels side by side.

    >>> plot(Panel("a line", "x", "y", [Series("y = x", [0, 1], [0, 1])])).startswith("<svg")
    True
    """
    width = WIDTH * len(panels)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" width="{width}" '
        f'height="{HEIGHT}" font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{HEIGHT}" fill="white"/>',
    ]
    for place, panel in enumerate(panels):
        parts += [f'<g transform="translate({place * WIDTH} 0)">', *_panel(panel), "</g>"]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(panel: Panel) -> list[str]:
    axes = _Axes(panel)
    out = [_text(WIDTH / 2, 17, panel.title, "middle", 'font-weight="bold"'), *axes.frame()]
    entries = []
    for place, own in enumerate(panel.series):
        colour = own.colour or COLOURS[place % len(COLOURS)]
        out += axes.drawn(own, colour)
        if own.name:
            entries.append((own, colour))
    return out + _legend(axes, entries)


def _legend(axes: _Axes, entries: Sequence[tuple[Series, str]]) -> list[str]:
    """Names of the series, above or below where they cover least of them."""
    if not entries:
        return []
    wide = 30.0 + 6.0 * max(len(own.name) for own, _ in entries)
    high = 6.0 + 14.0 * len(entries)
    covered = np.concatenate([axes.covered(own) for own in axes.panel.series])
    middle = (LEFT + WIDTH - RIGHT - wide) / 2.0
    corners = [(x, y) for y in (TOP + 3.0, HEIGHT - BOTTOM - high - 3.0)
               for x in (LEFT + 6.0, WIDTH - RIGHT - wide - 2.0, middle)]  # fmt: skip

    def hidden(corner: tuple[float, float]) -> int:
        away = covered - corner
        return int(((away > -4.0) & (away < (wide + 4.0, high + 4.0))).all(axis=1).sum())

    left, top = min(corners, key=hidden)
    out = [f'<rect x="{left:.1f}" y="{top:.1f}" width="{wide:.1f}" height="{high:.1f}" '
           'fill="white" fill-opacity="0.8"/>']  # fmt: skip
    for place, (own, colour) in enumerate(entries):
        y = top + 14.0 * place + 10.0
        out += [_sample(own, colour, left + 4.0, y), _text(left + 25.0, y + 4.0, own.name)]
    return out


def _sample(own: Series, colour: str, x: float, y: float) -> str:
    """What a series looks like, for the legend."""
    if own.kind == "points":
        mark = own.marks[0] if len(set(own.marks)) == 1 else "circle"
        return f'<path d="{MARKS[mark].format(x + 8.0, y)}" fill="{colour}"/>'
    if own.kind in ("bars", "band"):
        faint = ' fill-opacity="0.25"' if own.kind == "band" else ""
        return f'<rect x="{x}" y="{y - 4.0}" width="16" height="8" fill="{colour}"{faint}/>'
    return f'<path d="M{x} {y}h16" stroke="{colour}" stroke-width="1.6"{_dash(own)}/>'


def _dash(own: Series) -> str:
    return ' stroke-dasharray="4 3"' if own.kind == "dashed" else ""


class _Axes:
    """From numbers to places on the page."""

    def __init__(self, panel: Panel) -> None:
        self.panel = panel
        xs = [np.asarray(own.x, float) for own in panel.series]
        ys = [np.asarray(v, float) for own in panel.series for v in (own.y, own.high)]
        kinds = {own.kind for own in panel.series}
        if "bars" in kinds:  # from 0, with room for the legend
            ys += [np.zeros(1), 1.2 * np.concatenate([own.ravel() for own in ys])]
        around = None if "points" in kinds else 0.0
        self.low_x, self.high_x = panel.x_range or _range(xs, 0.5 if panel.ticks else around)
        self.low_y, self.high_y = panel.y_range or _range(ys, None)

    def x(self, values: ArrayLike) -> Floats:
        share = (np.asarray(values, float) - self.low_x) / (self.high_x - self.low_x)
        return np.asarray(LEFT + share * (WIDTH - LEFT - RIGHT))

    def y(self, values: ArrayLike) -> Floats:
        share = (np.asarray(values, float) - self.low_y) / (self.high_y - self.low_y)
        return np.asarray(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM))

    def frame(self) -> list[str]:
        panel, end, foot = self.panel, WIDTH - RIGHT, HEIGHT - BOTTOM
        out = [
            f'<path d="M{LEFT} {TOP}V{foot}H{end}" fill="none" stroke="#333"/>',
            _text((LEFT + end) / 2, HEIGHT - 8, panel.x_label, "middle"),
            f'<g transform="translate(13 {(TOP + foot) / 2:g}) rotate(-90)">'
            f"{_text(0, 0, panel.y_label, 'middle')}</g>",
        ]
        named = [(float(k), name) for k, name in enumerate(panel.ticks)] or [
            (v, f"{v:g}") for v in _round_numbers(self.low_x, self.high_x)
        ]
        for value, name in named:
            out.append(_text(float(self.x(value)), foot + 15, name, "middle"))
        for value in _round_numbers(self.low_y, self.high_y):
            y = float(self.y(value))
            out.append(f'<path d="M{LEFT} {y:.1f}H{end}" stroke="#ddd"/>')
            out.append(_text(LEFT - 5, y + 4, f"{value:g}", "end"))
        return out

    def covered(self, own: Series) -> Floats:
        """Places on the page that a series covers, some of them."""
        x, y = self.x(own.x), self.y(own.y)
        if own.kind in ("line", "dashed", "band"):
            length = np.append(0.0, np.cumsum(np.hypot(np.diff(x), np.diff(y))))
            along = np.linspace(0.0, length[-1], 400)
            every = [np.interp(along, length, values) for values in (x, y)]
            places = [np.column_stack(every)]
            if own.kind == "band":
                top = np.interp(along, length, self.y(own.high))
                places += [np.column_stack([every[0], (1.0 - share) * every[1] + share * top])
                           for share in (0.25, 0.5, 0.75, 1.0)]  # fmt: skip
            return np.concatenate(places)
        if own.kind == "bars":
            foot = float(self.y(max(self.low_y, 0.0)))
            return np.concatenate(
                [np.column_stack([np.full(20, a), np.linspace(b, foot, 20)])
                 for a, b in zip(x, y, strict=True)]
            )  # fmt: skip
        return np.column_stack([x, y])

    def drawn(self, own: Series, colour: str) -> list[str]:
        x, y = self.x(own.x), self.y(own.y)
        if own.kind in ("line", "dashed"):  # what leaves the frame is not drawn
            inside = (y >= TOP - 0.5) & (y <= HEIGHT - BOTTOM + 0.5)
            x, y = x[inside], y[inside]
        if own.kind == "points":
            marks = own.marks[: len(x)] or ["circle"] * len(x)
            return [f'<path d="{MARKS[mark].format(a, b)}" fill="{colour}"/>'
                    for a, b, mark in zip(x, y, marks, strict=True)]  # fmt: skip
        if own.kind == "bars":
            many = [each for each in self.panel.series if each.kind == "bars"]
            wide = 0.8 * float(self.x(1.0) - self.x(0.0)) / len(many)
            shift = (many.index(own) - len(many) / 2) * wide
            foot = float(self.y(max(self.low_y, 0.0)))
            return [f'<rect x="{a + shift:.1f}" y="{min(b, foot):.1f}" width="{wide:.1f}" '
                    f'height="{abs(foot - b):.1f}" fill="{colour}"/>'
                    for a, b in zip(x, y, strict=True)]  # fmt: skip
        if own.kind == "band":
            edge = list(zip(x, y, strict=True)) + list(zip(x, self.y(own.high), strict=True))[::-1]
            return [f'<path d="M{_points(edge)}Z" fill="{colour}" fill-opacity="0.25"/>']
        path = _points(zip(x, y, strict=True))
        return [f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="1.6"{_dash(own)}/>']


def _points(pairs: Iterable[tuple[float, float]]) -> str:
    return "L".join(f"{a:.1f} {b:.1f}" for a, b in pairs)


def _text(x: float, y: float, text: str, anchor: str = "start", more: str = "") -> str:
    said = escape(text, quote=False)
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{said}</text>'


def _range(values: Sequence[Floats], margin: float | None) -> tuple[float, float]:
    """All numbers; a margin of None is a twentieth of their span."""
    every = np.concatenate([own.ravel() for own in values])
    every = every[np.isfinite(every)]
    low, high = (float(every.min()), float(every.max())) if len(every) else (0.0, 1.0)
    span = high - low or abs(high) or 1.0
    room = 0.05 * span if margin is None else margin
    # bars and counts begin at 0 exactly
    return (low if low == 0.0 and margin is None else low - room), high + room + (high == low)


def _round_numbers(low: float, high: float) -> list[float]:
    """At most seven multiples of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / 6
    unit = 10.0 ** np.floor(np.log10(rough))
    step = next(unit * k for k in (1, 2, 5, 10) if unit * k >= rough * (1 - 1e-9))
    first = int(np.ceil(low / step - 1e-9))
    return [float(f"{k * step:.12g}") for k in range(first, int(np.floor(high / step + 1e-9)) + 1)]
