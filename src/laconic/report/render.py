"""The summary dict as one HTML file and as text for the terminal."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

_WIDTH, _HEIGHT, _PAD = 640.0, 260.0, 44.0


def to_html(summary: dict[str, Any], *, title: str) -> str:
    """One self-contained page: no script from elsewhere, no request leaves it."""
    environment = Environment(
        loader=PackageLoader("laconic.report", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = environment.get_template("report.html.j2")
    return page.render(summary=summary, title=title, curve=_drawn_curve(summary))


def to_terminal(summary: dict[str, Any]) -> RenderableType:
    """Tables for rich: the cost of the decisions beside that of simpler rules, and who is who."""
    costs = RichTable()
    costs.add_column("rule")
    costs.add_column("cost", justify="right")
    costs.add_row("this model", f"[bold]{summary['expected_cost']:.4f}[/bold]")
    for name, cost in summary["baselines"].items():
        costs.add_row(Text(name), f"{cost:.4f}")
    decided = RichTable()
    decided.add_column("truth \\ decision")
    for name in summary["classes"]:
        decided.add_column(Text(name), justify="right")
    for name, row in zip(summary["classes"], summary["confusion"], strict=True):
        decided.add_row(Text(name), *(f"{count:,}" for count in row))
    n_test = summary["rows"]["test"]
    heading = Text(f"Expected cost per case, on {n_test:,} rows not used for the fit")
    if summary["threshold"] is not None:
        rule = f"Decide {summary['positive']} from probability {summary['threshold']:.4f}"
    else:
        rule = "Decide the class of least expected cost"
    return Group(heading, costs, Text(rule), decided)


def _drawn_curve(summary: dict[str, Any]) -> dict[str, Any] | None:
    """Points of the cost curve in the drawing's own units, the scale quadratic near zero."""
    curve = summary["curve"]
    if curve is None:
        return None
    top = max(curve["cost"]) or 1.0

    def across(threshold: float) -> float:
        return _PAD + (_WIDTH - 2 * _PAD) * threshold**0.5

    def up(cost: float) -> float:
        return _HEIGHT - _PAD - (_HEIGHT - 2 * _PAD) * cost / top

    points = zip(curve["threshold"], curve["cost"], strict=True)
    return {
        "width": _WIDTH,
        "height": _HEIGHT,
        "pad": _PAD,
        "line": " ".join(f"{across(t):.1f},{up(c):.1f}" for t, c in points),
        "mark": {"x": across(summary["threshold"]), "y": up(summary["expected_cost"])},
        "ticks": [{"x": across(t), "text": f"{t:g}"} for t in (0, 0.01, 0.05, 0.1, 0.25, 0.5, 1)],
        "levels": [{"y": up(top * k / 4), "text": f"{top * k / 4:.3g}"} for k in range(5)],
    }
