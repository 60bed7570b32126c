"""``laconic reproduce``: the numbers of the papers beside ours."""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from laconic.cli.screen import complain, console

if TYPE_CHECKING:
    from laconic.papers.engine import Kept, Progress
    from laconic.papers.registry import Cell, Figure

RESULTS, DRAWS = "results.json", "draws.jsonl"


def reproduce(
    document: Annotated[str, typer.Argument(help="000, 001, 002, 003, 004 or all.")] = "all",
    table: Annotated[int | None, typer.Option(help="Only this table.")] = None,
    figure: Annotated[int | None, typer.Option(help="Only this figure.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer draws, small sets.")] = False,
    share: Annotated[float, typer.Option(help="Share of the draws of a full run.")] = 1.0,
    jobs: Annotated[int | None, typer.Option(help="Processes (default: the cores).")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Folder to write to (default: "
                   "reproduced, or reproduced-quick).")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Draw again what is there.")] = False,
) -> None:  # fmt: skip
    """Every printed number, figure and claim of the papers beside ours, with a verdict.

    Draws are kept in the folder as they are made: a run that is stopped goes on where it was.
    """
    import json

    from laconic.papers import pages
    from laconic.papers.engine import Kept, missing_sets, run, versions
    from laconic.papers.registry import Draws, describe

    if table is not None and figure is not None:
        raise ValueError("--table and --figure exclude each other; give one of them.")
    if not 0.0 < share <= 1.0:
        raise ValueError(f"--share must be in (0, 1], got {share:g}.")
    out = out or Path("reproduced-quick" if quick else "reproduced")
    documents = pages.documents_asked(document)
    old = json.loads((out / RESULTS).read_text("utf-8")) if (out / RESULTS).exists() else {}
    _refuse_mixing(old, documents, quick)
    wanted = {name: _asked(name, table, figure) for name in documents}
    if not any(cells or figures for cells, figures in wanted.values()):
        raise ValueError(f"document {document} has no {_part(table, figure)}.")
    kept = Kept(out / DRAWS, fresh=fresh)
    stamp = versions() | {"quick": quick, "share": share}
    missing: list[str] = []
    with _going_on_later(kept):
        for name, (cells, figures) in wanted.items():
            with _bar(name) as follow:
                found, drawn = run(
                    cells, figures, kept=kept, quick=quick, share=share, follow=follow,
                    jobs=jobs or os.cpu_count() or 1,
                )  # fmt: skip
            said = {"run": describe(name, Draws(quick=quick, share=share))}
            old = pages.merged(old, name, found, stamp | said)
            _write(out, name, old, drawn)
            missing += missing_sets(found.values())
            _say(name, [verdict.word for _, verdict in found.values()], drawn)
    for sentence in dict.fromkeys(missing):
        console().print(f"missing: {sentence}", markup=False)
    console().print(f"wrote {out / 'index.md'}, {out / RESULTS}", markup=False)


def _write(out: Path, name: str, old: dict[str, Any], drawn: "dict[Figure, str | None]") -> None:
    """Figures, results and the pages of a document."""
    from laconic.export.atomic import write_atomically
    from laconic.papers import pages

    out.mkdir(parents=True, exist_ok=True)
    for own, text in drawn.items():
        if text is not None:
            write_atomically(out / pages.figure_file(own), text)
    write_atomically(out / RESULTS, pages.to_json(old))
    there = [path.name for path in out.glob("*.svg")]
    write_atomically(out / f"{name}.md", pages.document_page(name, old[name], there))
    write_atomically(out / "index.md", pages.index_page(old))


def _part(table: int | None, figure: int | None) -> str:
    if table is not None:
        return f"Table {table}"
    return f"Figure {figure}" if figure is not None else "cells"


def _asked(name: str, table: int | None, figure: int | None) -> "tuple[list[Cell], list[Figure]]":
    from laconic.papers.registry import cells_of, figures_of

    cells, figures = cells_of(name), figures_of(name)
    if table is None and figure is None:
        return cells, figures
    part = _part(table, figure)
    own = [cell for cell in cells if cell.place.partition(",")[0] == part]
    return own, [each for each in figures if f"Figure {each.number}" == part]


def _refuse_mixing(old: dict[str, Any], documents: list[str], quick: bool) -> None:
    for name in documents:
        if name in old and old[name]["stamp"]["quick"] != quick:
            was = "full" if quick else "quick"
            raise ValueError(
                f"the folder holds results of a {was} run of {name}; give another --out."
            )


def _say(name: str, words: list[str], drawn: "dict[Figure, str | None]") -> None:
    counts = ", ".join(f"{count} {word}" for word, count in sorted(Counter(words).items()))
    n_drawn = sum(text is not None for text in drawn.values())
    console().print(f"{name}: {counts or 'no cells'}; {n_drawn} figures", markup=False)


@contextmanager
def _bar(name: str) -> "Iterator[Callable[[Progress], None]]":
    """A bar on a terminal, else a line on stderr every half minute."""
    import time

    from rich.console import Console

    screen = Console(stderr=True, highlight=False)
    last = time.monotonic()

    def follow(now: "Progress") -> None:
        nonlocal last
        text = f"{name}: {now.done} of {now.total} draws, {_clock(now.seconds_left)} left"
        if screen.is_terminal:
            status.update(text)
        elif time.monotonic() - last > 30:
            last = time.monotonic()
            print(text, file=sys.stderr, flush=True)

    with screen.status(f"{name}: looking for what is there") as status:
        yield follow


@contextmanager
def _going_on_later(kept: "Kept") -> "Iterator[None]":
    """An interruption, also between two files, loses no draw, and the next run writes all files."""
    before = len(kept)
    try:
        yield
    except KeyboardInterrupt:
        complain(
            f"stopped; {len(kept) - before} new draws are kept, the same command goes on from them"
        )
        sys.exit(130)  # not Exit: of that the main function tells which files were written


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
