"""What the papers print beside what this library computes: one cell for each number or claim.

``python -m laconic.papers.registry 001 --quick`` prints every cell of document 001 with ours, its
spread over draws, and a verdict by one rule:

* a printed number is *reproduced* when ours lies within 2 standard deviations of it (ours, over
  draws) or inside its rounding, else *refuted*;
* a claim such as ``"< 0"`` is *reproduced* when our mean is on the claimed side; on the other side
  it is *refuted* beyond 2 standard deviations and *undetermined* within them; ``"0 within 0.1"`` is
  reproduced when our mean is at most 0.1, or 2 standard deviations, away from 0, else refuted;
* without a number to compare with, or from a single draw of a random quantity, it is
  *undetermined*.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

import numpy as np

DOCUMENTS = {"001": "laconic.papers.naive_bayes_tables"}
"""Documents and the modules whose ``cells()`` holds what they print."""

NOT_PRINTED = "drawn, not printed"
"""The published value of a bar or a point of a figure that the text gives no number for."""


@dataclass(frozen=True)
class Measured:
    """Mean and standard deviation over draws; a standard deviation of 0 is that of a count.

    >>> Measured.of([1.0, 3.0])
    Measured(mean=2.0, sd=1.4142135623730951, n_draws=2)
    """

    mean: float
    sd: float
    n_draws: int

    @staticmethod
    def of(values: Iterable[float]) -> Measured:
        """From one value for each draw; a single draw has no spread."""
        every = np.array(list(values), dtype=np.float64)
        sd = float(every.std(ddof=1)) if len(every) > 1 else math.nan
        return Measured(float(every.mean()), sd, len(every))

    @staticmethod
    def exact(value: float) -> Measured:
        """A quantity that no draw changes."""
        return Measured(float(value), 0.0, 1)


class Draws:
    """How many draws a run makes, and what earlier cells have computed from them.

    ``quick`` answers every cell from fewer draws; ``seed`` is the first of the seeds.

    >>> draws = Draws()
    >>> draws.once("slow", lambda: 1) is draws.once("slow", lambda: 2)
    True
    """

    def __init__(self, *, quick: bool = False, seed: int = 0) -> None:
        self.quick = quick
        self.seed = seed
        self._known: dict[Hashable, Any] = {}

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """What ``make`` returns, computed at the first call with this key."""
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]


@dataclass(frozen=True)
class Cell:
    """One number or claim of a document, and how ours is computed."""

    document: str
    place: str
    what: str
    published: float | str
    protocol: str
    compute: Callable[[Draws], Measured]


@dataclass(frozen=True)
class Verdict:
    """What follows for a cell, and why, in one sentence."""

    word: Literal["reproduced", "refuted", "undetermined"]
    reason: str


def judge(published: float | str, ours: Measured) -> Verdict:
    """The rule of this module.

    >>> judge(0.42, Measured(0.4249, 0.0, 1)).word
    'reproduced'
    >>> judge("< 0", Measured(0.1, 0.01, 10)).word
    'refuted'
    """
    if not math.isfinite(ours.mean):
        return Verdict("undetermined", "Ours could not be computed from these draws.")
    if isinstance(published, str):
        return _judge_claim(published, ours)
    away = abs(ours.mean - published)
    half_unit = 0.5 * 10.0 ** -_decimals(published)
    if away <= half_unit:
        return Verdict("reproduced", "Ours is the published number to its last digit.")
    if math.isnan(ours.sd):
        return Verdict("undetermined", "One draw has no spread to compare the difference with.")
    spread = f"{away:.3g} away, with a standard deviation of {ours.sd:.3g} over {ours.n_draws}"
    if ours.sd > 0.0 and away <= 2.0 * ours.sd:
        return Verdict("reproduced", f"Ours is {spread} draws.")
    word = "draw" if ours.n_draws == 1 else "draws"
    return Verdict("refuted", f"Ours is {spread} {word}.")


def _judge_claim(claim: str, ours: Measured) -> Verdict:
    words = claim.split()
    said = f"Claimed {claim}: ours is {ours.mean:.4g} with a standard deviation of {ours.sd:.3g}."
    # a quantity without spread differs or not; of a single draw nothing is known
    spread = 2.0 * ours.sd if ours.sd > 0.0 else 0.0
    single = math.isnan(ours.sd)
    if len(words) == 3 and words[1] == "within":
        away = abs(ours.mean - float(words[0]))
        if away <= max(float(words[2]), spread):
            return Verdict("reproduced", said)
        return Verdict("undetermined" if single else "refuted", said)
    if len(words) != 2 or words[0] not in ("<", ">"):
        return Verdict("undetermined", "The document gives no number here.")
    beyond = (ours.mean - float(words[1])) * (1.0 if words[0] == ">" else -1.0)
    if beyond > 0.0:
        return Verdict("reproduced", said)
    if single or (spread and beyond >= -spread):
        return Verdict("undetermined", said)
    return Verdict("refuted", said)


def _decimals(number: float) -> int:
    text = repr(float(number))
    return 0 if text.endswith(".0") or "e" in text else len(text.partition(".")[2])


def reproduce(cells: Sequence[Cell], draws: Draws) -> Iterator[tuple[Cell, Measured, Verdict]]:
    """Ours and the verdict, cell after cell."""
    for cell in cells:
        ours = cell.compute(draws)
        yield cell, ours, judge(cell.published, ours)


def cells_of(document: str) -> list[Cell]:
    """All cells of a document."""
    if document not in DOCUMENTS:
        raise ValueError(f"document must be one of {', '.join(DOCUMENTS)}, got {document!r}.")
    cells: list[Cell] = import_module(DOCUMENTS[document]).cells()
    return cells


def main(words: Sequence[str] | None = None) -> None:
    """Print the cells of a document beside ours."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("document", choices=list(DOCUMENTS))
    parser.add_argument("--quick", action="store_true", help="fewer draws, under a minute")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(words)
    counts: Counter[str] = Counter()
    print("| place | what | published | ours | sd | draws | verdict | why |")
    print("|---|---|---|---|---|---|---|---|")
    draws = Draws(quick=asked.quick, seed=asked.seed)
    for cell, ours, verdict in reproduce(cells_of(asked.document), draws):
        counts[verdict.word] += 1
        print(
            f"| {cell.place} | {cell.what} | {cell.published} | {ours.mean:.4g} | {ours.sd:.2g} | "
            f"{ours.n_draws} | {verdict.word} | {verdict.reason} |",
            flush=True,
        )
    print(", ".join(f"{count} {word}" for word, count in sorted(counts.items())))


if __name__ == "__main__":
    main()
