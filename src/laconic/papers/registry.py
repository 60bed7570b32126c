"""What the papers print beside what this library computes: one cell for each number or claim.

``laconic reproduce 001 --quick`` prints every cell of document 001 with ours, its spread over
draws, and a verdict by one rule:

* a printed number is *reproduced* when ours lies inside its rounding or within 2 standard
  deviations of it (ours over draws and the printed one, if there is one, as the root of the sum of
  squares); it is *refuted* outside the interval in which one more draw of ours would lie with 95 %,
  mean +- t sqrt(1 + 1/n) standard deviations, which is wider than 2 of them for few draws;
* a claim such as ``"< 0"`` is *reproduced* when our mean is on the claimed side and *refuted* when
  that interval is on the other; ``"0 within 0.1"`` is reproduced when our mean is at most 0.1, or 2
  standard deviations, away from 0, and refuted outside of both;
* all else is *undetermined*: what lies between, a single draw of a random quantity, nothing to
  compare with, and a difference where the document leaves open what the number depends on: by
  ``others`` (ours for other values of what is open, one of which gives the printed number, or None
  where they were not tried) or ``unsaid`` (a sentence).

A document is a module with ``cells()`` and ``figures()``. What takes long is drawn through
``Draws.each``: the calls of all cells are gathered, shared among processes and kept on disk
(:mod:`laconic.papers.engine`), so that an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

import numpy as np
from scipy.special import stdtrit

DOCUMENTS = {
    "000": "laconic.papers.gray_zone_tables",
    "001": "laconic.papers.naive_bayes_tables",
    "002": "laconic.papers.convex_tables",
    "003": "laconic.papers.minimax_tables",
    "004": "laconic.papers.votes_tables",
}
"""Documents and the modules whose ``cells()`` and ``figures()`` hold what they print."""

TITLES = {
    "000": "Hérault, Grandvalet: Classifieurs probabilistes parcimonieux (2008)",
    "001": "Hue, Boullé, Lemaire: Apprentissage incrémental anytime d'un classifieur bayésien "
    "naïf pondéré (2014)",
    "002": "Convex risks: losses and their calibration, ranking, k-means, principal components",
    "003": "Fillatre, Gilet, Barbosa: Apprentissage d'un classifieur minimax pour données "
    "discrètes",
    "004": "Roy: Un algorithme d'apprentissage parcimonieux maximisant le désaccord (2015)",
}

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
    def spread(values: Iterable[float], theirs: int | None = None) -> Measured:
        """The standard deviation over draws, for a printed one; its own is that under a normal law.

        With ``theirs``, the number of draws of the printed one, that of the difference of both.

        >>> Measured.spread([1.0, 3.0]).mean
        1.4142135623730951
        """
        own = Measured.of(values)
        share = 0.5 / max(own.n_draws - 1, 1) + (0.0 if theirs is None else 0.5 / (theirs - 1))
        return Measured(own.sd, own.sd * math.sqrt(share), own.n_draws)

    @staticmethod
    def exact(value: float) -> Measured:
        """A quantity that no draw changes."""
        return Measured(float(value), 0.0, 1)


@dataclass(frozen=True)
class Call:
    """One independent draw: a function of a module and arguments that JSON can write."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    @property
    def key(self) -> str:
        """What the call is kept under.

        >>> Call(math.sqrt, (4,)).key
        'math.sqrt[4]'
        """
        own = self.function
        return f"{own.__module__}.{own.__qualname__}{json.dumps(list(self.arguments))}"

    def made(self) -> Any:
        """The value, as JSON gives it back, so that a kept draw equals a fresh one."""
        return json.loads(json.dumps(self.function(*self.arguments)))


class NotDrawn(Exception):
    """Draws that a cell asks for and that are not there yet."""

    def __init__(self, calls: Sequence[Call]) -> None:
        super().__init__(f"{len(calls)} draws are missing")
        self.calls = calls


class Draws:
    """How many draws a run makes, and what earlier cells have computed from them.

    ``quick`` answers every cell from fewer draws, ``share`` from a share of them; ``seed`` is the
    first of the seeds. ``kept``
    holds the values of calls by key; with ``ask`` a missing one is asked for (:class:`NotDrawn`)
    instead of computed here.

    >>> draws = Draws()
    >>> draws.once("slow", lambda: 1) is draws.once("slow", lambda: 2)
    True
    >>> draws.each(math.sqrt, [(4,), (9,)])
    [2.0, 3.0]
    """

    def __init__(
        self,
        *,
        quick: bool = False,
        share: float = 1.0,
        seed: int = 0,
        kept: MutableMapping[str, Any] | None = None,
        ask: bool = False,
    ) -> None:
        self.quick = quick
        self.share = share
        self.seed = seed
        self._kept = {} if kept is None else kept
        self._ask = ask
        self._known: dict[Hashable, Any] = {}

    def count(self, full: int, quick: int) -> int:
        """How many draws, at least two of a share.

        >>> Draws(share=0.3).count(10, 2)
        3
        """
        return quick if self.quick else max(min(2, full), math.ceil(self.share * full - 1e-9))

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """What ``make`` returns, computed at the first call with this key."""
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]

    def each(self, function: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]) -> list[Any]:
        """``function(*a)`` for each ``a``: independent draws, made in parallel and kept on disk.

        The function stands at the top of a module; its arguments and its value are numbers, texts,
        lists and dicts, and the arguments say everything that the value depends on.
        """
        calls = [Call(function, tuple(own)) for own in arguments]
        missing = [call for call in calls if call.key not in self._kept]
        if missing and self._ask:
            raise NotDrawn(missing)
        for call in missing:
            self._kept[call.key] = call.made()
        return [self._kept[call.key] for call in calls]


@dataclass(frozen=True)
class Cell:
    """One number or claim of a document, and how ours is computed.

    ``place`` begins with "Table 3", "Figure 1" or "Section 4", then more words after a comma;
    ``remark`` is a sentence that follows the reason of the verdict; ``published_sd`` is printed
    beside the number; ``others`` and ``unsaid`` are what the document leaves open.
    """

    document: str
    place: str
    what: str
    published: float | str
    protocol: str
    compute: Callable[[Draws], Measured]
    remark: str = ""
    published_sd: float = 0.0
    others: Callable[[Draws], dict[str, Measured] | None] | None = None
    unsaid: str = ""

    def outcome(self, draws: Draws) -> tuple[Measured, Verdict]:
        """Ours, and what follows."""
        ours = self.compute(draws)
        found = judge(self.published, ours, self.published_sd)
        if found.word == "refuted" and (self.unsaid or self.others is not None):
            found = self._left_open(draws, found)
        return ours, Verdict(found.word, f"{found.reason} {self.remark}".strip())

    def _left_open(self, draws: Draws, found: Verdict) -> Verdict:
        """The verdict on a difference where the document leaves something open."""
        tried = None if self.others is None else self.others(draws)
        if tried is None:
            return Verdict("undetermined", f"{found.reason} {self.unsaid}")
        for label, own in tried.items():
            if judge(self.published, own, self.published_sd).word == "reproduced":
                said = f"It comes out with {label} ({own.mean:.3g}, sd {own.sd:.2g})."
                return Verdict("undetermined", f"{found.reason} {said} {self.unsaid}".strip())
        said = f"Nor does it come out with {_listed(list(tried))}." if tried else ""
        return Verdict("refuted", f"{found.reason} {said}".strip())


def _listed(names: Sequence[str], most: int = 4) -> str:
    """Some names and how many more there are.

    >>> _listed(["a", "b", "c"], 2)
    'a, b or 1 other setting'
    """
    more = len(names) - most
    if more <= 0:
        return " or ".join(names)
    return f"{', '.join(names[:most])} or {more} other setting{'s' if more > 1 else ''}"


@dataclass(frozen=True)
class Figure:
    """A figure of a document; ``draw`` gives our own as the text of an SVG file."""

    document: str
    number: str
    caption: str
    draw: Callable[[Draws], str]


@dataclass(frozen=True)
class Verdict:
    """What follows for a cell, and why, in one sentence."""

    word: Literal["reproduced", "refuted", "undetermined"]
    reason: str


def judge(published: float | str, ours: Measured, published_sd: float = 0.0) -> Verdict:
    """The rule of this module, without what a document leaves open.

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
        return Verdict("undetermined", "Ours has no spread to compare the difference with.")
    sd = math.hypot(ours.sd, published_sd)
    spread = f"{away:.3g} away, with a standard deviation of {ours.sd:.3g} over {ours.n_draws}"
    spread += " draw" if ours.n_draws == 1 else " draws"
    spread += f" and {published_sd:g} printed" if published_sd else ""
    if away - half_unit <= 2.0 * sd and sd > 0.0:
        return Verdict("reproduced", f"Ours is {spread}.")
    if away - half_unit <= reach(ours) * sd:
        return Verdict("undetermined", f"Ours is {spread}: too few to refute.")
    return Verdict("refuted", f"Ours is {spread}.")


def reach(ours: Measured) -> float:
    """Standard deviations from the mean within which one more draw lies with 95 %.

    >>> round(reach(Measured(0.0, 1.0, 3)), 2), round(reach(Measured(0.0, 1.0, 400)), 2)
    (4.97, 1.97)
    """
    n = ours.n_draws
    return float(stdtrit(n - 1, 0.975) * math.sqrt(1.0 + 1.0 / n)) if n > 1 else 2.0


def _judge_claim(claim: str, ours: Measured) -> Verdict:
    words = claim.split()
    said = f"Claimed {claim}: ours is {ours.mean:.4g} with a standard deviation of {ours.sd:.3g}."
    # a quantity without spread differs or not; of a single draw nothing is known
    sd = ours.sd if ours.sd > 0.0 else 0.0
    single = math.isnan(ours.sd)
    if len(words) == 3 and words[1] == "within":
        away = abs(ours.mean - float(words[0]))
        if away <= max(float(words[2]), 2.0 * sd):
            return Verdict("reproduced", said)
        return Verdict("undetermined" if single or away <= reach(ours) * sd else "refuted", said)
    if len(words) != 2 or words[0] not in ("<", ">"):
        return Verdict("undetermined", "The document prints no number to compare with.")
    beyond = (ours.mean - float(words[1])) * (1.0 if words[0] == ">" else -1.0)
    if beyond > 0.0:
        return Verdict("reproduced", said)
    if single or (sd and beyond >= -reach(ours) * sd):
        return Verdict("undetermined", said)
    return Verdict("refuted", said)


def _decimals(number: float) -> int:
    text = repr(float(number))
    return 0 if text.endswith(".0") or "e" in text else len(text.partition(".")[2])


def reproduce(cells: Sequence[Cell], draws: Draws) -> Iterator[tuple[Cell, Measured, Verdict]]:
    """Ours and the verdict, cell after cell."""
    for cell in cells:
        yield cell, *cell.outcome(draws)


def _module(document: str) -> Any:
    if document not in DOCUMENTS:
        raise ValueError(f"document must be one of {', '.join(DOCUMENTS)}, got {document!r}.")
    return import_module(DOCUMENTS[document])


def cells_of(document: str) -> list[Cell]:
    """All cells of a document."""
    return list(_module(document).cells())


def figures_of(document: str) -> list[Figure]:
    """All figures of a document."""
    return list(_module(document).figures())


def describe(document: str, draws: Draws) -> str:
    """What a run sees of a document beyond the number of draws of its cells, if anything."""
    own = getattr(_module(document), "describe", None)
    return "" if own is None else str(own(draws))
