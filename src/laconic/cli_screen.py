"""What the command line shows: a console, a bar that follows long work, the comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


def console() -> Console:
    from rich.console import Console

    return Console(highlight=False)


@contextmanager
def progress(quiet: bool = False) -> Iterator[Callable[[Any], None]]:
    """A bar on stderr that follows the steps of the library; silent for machines and pipes."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from laconic.estimators.progress import Step, listening

    console = Console(stderr=True, highlight=False)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    shown = not quiet and console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=not shown) as bar:
        task = bar.add_task("reading", total=1.0)

        def follow(step: Step) -> None:
            bar.update(task, description=step.text, completed=step.done)

        with listening(follow):
            yield follow


def columns_of(comparison: Any) -> dict[str, list[Any]]:
    return {name: list(comparison[name]) for name in comparison}


def comparison_table(columns: dict[str, list[Any]]) -> Any:
    from rich.table import Table as RichTable
    from rich.text import Text

    title = "Held-out cost of every candidate, by cross-validation"
    shown = RichTable(title=title, box=None, collapse_padding=True, pad_edge=False)
    heads = ("", "candidate", "cost", "\u00b1", "log loss", "AUC", "size", "seconds", "note")
    for head in heads:
        left = head in ("", "candidate", "note")
        whole = head not in ("candidate", "note")
        shown.add_column(head, justify="left" if left else "right", no_wrap=whole, overflow="fold")
    order = sorted(range(len(columns["cost"])), key=lambda i: _last_if_nan(columns["cost"][i]))
    for i in order:
        cells = [
            "*" if columns["chosen"][i] else "",
            str(columns["candidate"][i]),
            *(_number(columns[name][i], digits) for name, digits in _SHOWN),
            str(columns["note"][i]),
        ]
        style = "bold" if columns["chosen"][i] else ""
        shown.add_row(*(Text(cell) for cell in cells), style=style)
    return shown


_SHOWN = (("cost", 4), ("cost_se", 4), ("log_loss", 4), ("auc", 3), ("size", 0), ("fit_seconds", 1))


def _last_if_nan(value: float) -> float:
    return float("inf") if value != value else float(value)


def _number(value: float, digits: int) -> str:
    return "" if value != value else f"{value:.{digits}f}"


def without_nan(value: Any) -> Any:
    """JSON has no NaN: null instead; numpy scalars become plain."""
    if isinstance(value, dict):
        return {str(key): without_nan(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(part) for part in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not abs(value) < float("inf") else value
