"""Document 004, Roy (2015): every printed number of its four tables, its figures and claims.

The slides do not number their tables: Table 1 is CqBoost and MinCq on stumps, Table 2 CG-Boost and
LPBoost on stumps (CqBoost is printed there again), Tables 3 and 4 the same on RBF kernels. All
risks are multiples of 1/floor(N/2): one random half of each set. How classes were joined to two,
how parameters were set and which half it was is not said, so that a printed number is one draw of
what :mod:`laconic.papers.votes.form` gives on other halves; beside mean and spread stands its
percentile among them, (halves below + half of the ties + 1/2)/(halves + 1). A risk that does not
come out is undetermined where it depends on something open; on stumps that is tried first, by all
parameters of ``form``, or each class against the rest where classes were joined: if none of them
gives the number, it is refuted.

Draws: 10 halves, on kernels 5; 5 for what is tried beside; 45 pairs of digits from 200 training
rows; 3 halves of the Android sample; 400 samples for the PAC-Bayes theorem. A quick run takes 3
halves on stumps, 2 halves of sets of up to 250 training rows on kernels, none of what is tried
beside, 4 pairs of digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from laconic._typing import Floats
from laconic.papers.drawing import Panel, Series, plot
from laconic.papers.registry import NOT_PRINTED, Cell, Draws, Figure, Measured
from laconic.papers.votes import PUBLISHED_RBF, PUBLISHED_STUMPS
from laconic.papers.votes.draws import (
    ada_votes,
    android,
    bound_draw,
    digits,
    half,
    identities,
    other_classes,
    other_values,
)
from laconic.papers.votes.form import LEARNERS, RBF, STUMPS

DOCUMENT = "004"
PUBLISHED = {STUMPS: PUBLISHED_STUMPS, RBF: PUBLISHED_RBF}
TABLES = {
    1: (STUMPS, ("CqBoost", "MinCq")),
    2: (STUMPS, ("CG-Boost", "LPBoost")),
    3: (RBF, ("CqBoost", "MinCq")),
    4: (RBF, ("CG-Boost", "LPBoost")),
}
METHODS = tuple(LEARNERS)
TRAINING_ROWS = {
    "letterAB": 778, "australian": 345, "balance": 313, "breast": 350, "car": 864, "cmc": 737,
    "credit": 345, "cylinder": 270, "ecoli": 168, "glass": 107, "heart": 135, "hepatitis": 78,
    "horse": 184, "ionosphere": 176, "monks1": 216, "pima": 384, "tictactoe": 479,
    "titanic": 1101, "wine": 89, "yeast": 742, "zoo": 51,
}  # fmt: skip
"""Half of the rows of each set: ceil(N/2), the columns of MinCq in Table 3."""
FIGURE_SETS = ("australian", "breast", "credit", "ecoli", "glass", "heart", "ionosphere", "pima")
ALIKE = 0.005
"""What "performant" is read as: at most half a point of risk above the rival."""
MADE_BINARY = {"balance", "car", "cmc", "ecoli", "glass", "wine", "yeast", "zoo"}
UNSAID = "The slides do not say which parameters and classes they took."
GENERATED = (
    "The slides count generated columns (CG-Boost 147 of 140 pairs on australian): their number "
    "depends on a tolerance that is not given."
)


# ---- what the draws give ---------------------------------------------------------------------


def n_halves(draws: Draws, kind: str, name: str) -> int:
    """How many halves of a set a run takes."""
    if kind == STUMPS:
        return draws.count(10, 3)
    return draws.count(5, 2 if TRAINING_ROWS[name] <= 250 else 0)


def column(draws: Draws, kind: str, name: str, method: str, place: int) -> Floats:
    """Risks (place 0) or columns (1) of a method, one for each half."""
    seeds = range(draws.seed, draws.seed + n_halves(draws, kind, name))
    every = draws.each(half, [(kind, name, seed) for seed in seeds])
    return np.array([own[method][place] for own in every])


def printed(draws: Draws, *, kind: str, name: str, method: str, place: int) -> Measured:
    """Ours of a printed number."""
    values = column(draws, kind, name, method, place)
    return Measured.of(values) if len(values) else Measured(float("nan"), float("nan"), 0)


def left_open(
    draws: Draws, *, kind: str, name: str, method: str, place: int
) -> dict[str, Measured] | None:
    """Ours for what the slides leave open, by its name.

    On stumps only, and not the parameters of CG-Boost and LPBoost together with other classes: a
    quick run tries nothing.
    """
    tuned = len(LEARNERS[method][1]) > 1
    if draws.quick or kind == RBF or (tuned and name in MADE_BINARY):
        return None
    asked = [(kind, name, draws.seed + k, method) for k in range(draws.count(5, 0))]
    every = draws.each(other_values, asked) if tuned else []
    if name in MADE_BINARY:
        every = draws.each(other_classes, asked)
    labels = dict.fromkeys(label for own in every for label in own)
    values = {label: [own[label][place] for own in every if label in own] for label in labels}
    return {label: Measured.of(own) for label, own in values.items() if len(own) > 1}


def percentile(draws: Draws, *, kind: str, name: str, method: str) -> Measured:
    """Where the printed risk lies among ours, in per cent."""
    risks = column(draws, kind, name, method, 0)
    if not len(risks):
        return Measured(float("nan"), float("nan"), 0)
    return Measured.exact(rank_in(PUBLISHED[kind][name][METHODS.index(method)][0], risks))


def rank_in(value: float, ours: Floats) -> float:
    """(number below + half of the ties + 1/2) / (n + 1), in per cent; printed to four decimals.

    >>> rank_in(0.25, np.array([0.1, 0.2, 0.25, 0.4]))
    60.0
    """
    tied = np.abs(ours - value) <= 5e-5
    below = np.count_nonzero((ours < value) & ~tied) + 0.5 * np.count_nonzero(tied)
    return float(100.0 * (below + 0.5) / (len(ours) + 1.0))


def _means(draws: Draws, kind: str, method: str, place: int) -> Floats:
    """Means over the sets of a run, one for each half that all of them have."""
    counts = {name: n_halves(draws, kind, name) for name in PUBLISHED[kind]}
    least = min(n for n in counts.values() if n)
    every = [column(draws, kind, name, method, place)[:least] for name, n in counts.items() if n]
    return np.asarray(np.mean(every, axis=0))


def mean_of_sets(draws: Draws, *, kind: str, method: str, place: int) -> Measured:
    """Mean over the sets of a table."""
    return Measured.of(_means(draws, kind, method, place))


def published_mean(kind: str, method: str, place: int) -> float:
    """Mean of a printed column, to as many decimals as we compare."""
    own = [row[METHODS.index(method)][place] for row in PUBLISHED[kind].values()]
    return round(float(np.mean(own)), 4 if place == 0 else 1)


def less_than(draws: Draws, *, kind: str, method: str, other: str, place: int) -> Measured:
    """Mean over sets of one method minus that of another."""
    return Measured.of(_means(draws, kind, method, place) - _means(draws, kind, other, place))


def _votes(draws: Draws, seed: int) -> Floats:
    """Gibbs risk, C-bound and risk of the votes of figure 1, one row each."""
    sets = FIGURE_SETS[:4] if draws.quick else FIGURE_SETS
    return np.concatenate(draws.each(ada_votes, [(name, seed) for name in sets]))


def _seeds(draws: Draws) -> range:
    return range(draws.seed, draws.seed + draws.count(3, 2))


def figure_1(draws: Draws, *, what: str) -> Measured:
    """A number of the votes of figure 1, one for each seed of the halves."""
    return Measured.of([VOTE_NUMBERS[what](_votes(draws, seed)) for seed in _seeds(draws)])


def _correlation(votes: Floats, k: int) -> float:
    return float(np.corrcoef(votes[:, k], votes[:, 2])[0, 1])


VOTE_NUMBERS: dict[str, Callable[[Floats], float]] = {
    "correlation of risk and Gibbs risk": lambda v: _correlation(v, 0),
    "correlation of risk and C-bound": lambda v: _correlation(v, 1),
    "difference of both correlations": lambda v: _correlation(v, 1) - _correlation(v, 0),
    "largest risk - C-bound": lambda v: float((v[:, 2] - v[:, 1]).max()),
    "largest risk - 2 Gibbs risk": lambda v: float((v[:, 2] - 2.0 * v[:, 0]).max()),
}


def _pairs(draws: Draws) -> list[dict[str, float]]:
    every = list(combinations(range(10), 2))
    asked, rows = (every[::12], 150) if draws.quick else (every, 200)
    return draws.each(digits, [(*pair, rows) for pair in asked])


def digits_risk(draws: Draws, *, method: str) -> Measured:
    """Test risk over the pairs of digits."""
    return Measured.of([own[method] for own in _pairs(draws)])


def digits_difference(draws: Draws, *, method: str, other: str) -> Measured:
    """Difference of test risks over the pairs of digits."""
    return Measured.of([own[method] - own[other] for own in _pairs(draws)])


def digits_wins(draws: Draws, *, method: str, other: str) -> Measured:
    """Share of the pairs, in per cent, on which a method errs less; a tie is half a win."""
    signs = [np.sign(own[other] - own[method]) for own in _pairs(draws)]
    return Measured.exact(50.0 * (1.0 + float(np.mean(signs))))


def _curves(draws: Draws) -> list[dict[str, list[float]]]:
    seeds = range(draws.seed, draws.seed + draws.count(3, 2))
    rows = 4_000 if draws.quick else 20_000
    return draws.each(android, [(seed, rows, 100) for seed in seeds])


def android_risk(draws: Draws, *, rows: str, voters: int) -> Measured:
    """Risk after so many voters."""
    return Measured.of([own[rows][own["voters"].index(voters)] for own in _curves(draws)])


def identity(draws: Draws, *, what: str) -> Measured:
    """A number that the derivation says something of, the worst over sets and halves."""
    sets = ("balance", "heart", "titanic") if draws.quick else (*FIGURE_SETS, "balance", "titanic")
    asked = [(name, draws.seed + k) for name in sets for k in range(1 if draws.quick else 3)]
    every = [own[what] for own in draws.each(identities, asked)]
    return Measured.exact(every[int(np.argmax(np.abs(every)))])


def theorem(draws: Draws, *, what: str) -> Measured:
    """Share of samples in which the bound fails, or the mean bound or risk."""
    seeds = range(draws.seed, draws.seed + draws.count(400, 40))
    every = [own[what] for own in draws.each(bound_draw, [(seed, 5000) for seed in seeds])]
    return Measured.exact(float(np.mean(every))) if what == "violated" else Measured.of(every)


# ---- the cells -------------------------------------------------------------------------------


def cells() -> list[Cell]:
    """All cells of the document, in its order."""
    rows = [*_bound_cells(), *_figure_1_cells(), *_program_cells(), *_digit_cells()]
    out = [Cell(DOCUMENT, *row) for row in rows]
    for table in TABLES:
        out += _table_cells(table)
        out += [Cell(DOCUMENT, *row) for row in _summary_cells(table)]
    return out + [Cell(DOCUMENT, *row) for row in _android_cells()]


def _table_cells(table: int) -> Iterator[Cell]:
    kind, methods = TABLES[table]
    form = f"{kind}, forms and parameters of laconic.papers.votes.form; random halves"
    for name, row in PUBLISHED[kind].items():
        place = f"Table {table}, {name}"
        for method in methods:
            own: dict[str, Any] = {"kind": kind, "name": name, "method": method}
            for k, what in enumerate(("risk", "columns")):
                value = float(row[METHODS.index(method)][k])
                unsaid: dict[str, Any] = {"unsaid": GENERATED}
                if what == "risk" or method in ("MinCq", "LPBoost"):
                    unsaid = {"others": partial(left_open, **own, place=k), "unsaid": UNSAID}
                compute = partial(printed, **own, place=k)
                yield Cell(DOCUMENT, place, f"{method}, {what}", value, form, compute, **unsaid)
            named = f"{method}, percentile of the published risk"
            yield Cell(DOCUMENT, place, named, NOT_PRINTED, form, partial(percentile, **own))


CONSTANT = (
    "Some printed votes are constant (shares of a class: .3696 on horse, .4815 on heart), which a "
    "choice by held-out error does not take."
)
Row = tuple[Any, ...]
"""The fields of a cell but its document."""


def _summary_cells(table: int) -> Iterator[Row]:
    """Means over the sets of a table, and what is said of sparsity."""
    kind, methods = TABLES[table]
    place = f"Table {table}, mean of the sets"
    protocol = f"{kind}; mean over the sets of a run, one for each half"
    for method in methods:
        for k, what in enumerate(("risk", "columns")):
            compute = partial(mean_of_sets, kind=kind, method=method, place=k)
            value = published_mean(kind, method, k)
            more = CONSTANT if what == "risk" and method in ("CG-Boost", "LPBoost") else ""
            unsaid = GENERATED if what == "columns" and method in ("CqBoost", "CG-Boost") else ""
            named = f"{method}, {what}"
            yield place, named, value, protocol, compute, more, 0.0, None, unsaid
    if "MinCq" in methods:
        asked: dict[str, Any] = {"kind": kind, "method": "CqBoost", "other": "MinCq"}
        compute = partial(less_than, **asked, place=1)
        yield place, "columns, CqBoost - MinCq", "< 0", protocol, compute
        compute = partial(less_than, **asked, place=0)
        sign = np.sign(published_mean(kind, "CqBoost", 0) - published_mean(kind, "MinCq", 0))
        claim = "< 0" if sign < 0 else "> 0"
        yield place, "risk, CqBoost - MinCq", claim, protocol, compute


def _bound_cells() -> Iterator[Row]:
    """Markov, the C-bound and the PAC-Bayes theorem."""
    protocol = "votes of AdaBoost on test halves of eight sets; the largest over all votes"
    for place, what in (
        ("Markov's inequality", "largest risk - 2 Gibbs risk"),
        ("C-bound", "largest risk - C-bound"),
    ):
        yield place, what, "< 1e-9", protocol, partial(figure_1, what=what)
    protocol = (
        "5,000 rows, delta 0.05, uniform prior on 40 stumps and complements, vote chosen on the "
        "sample, risk on 20,000 other rows"
    )
    place = "Theorem"
    for what, word, claim in (
        ("share of samples in which the bound fails", "violated", "< 0.05"),
        ("mean bound", "bound", NOT_PRINTED),
        ("mean risk", "risk", NOT_PRINTED),
    ):
        yield place, what, claim, protocol, partial(theorem, what=word)


def _figure_1_cells() -> Iterator[Row]:
    protocol = "votes of AdaBoost after 1 to 100 rounds on eight sets, one number for each half"
    for what, claim in (
        ("correlation of risk and Gibbs risk", NOT_PRINTED),
        ("correlation of risk and C-bound", NOT_PRINTED),
        ("difference of both correlations", "> 0"),
    ):
        yield "Figure 1", what, claim, protocol, partial(figure_1, what=what)


def _program_cells() -> Iterator[Row]:
    """MinCq's programs, their dual and Algorithm 1, on halves of several sets."""
    protocol = "the slides' program on stumps of several sets; the worst over sets and halves"
    for place, what, words, claim in (
        ("MinCq", "votes that differ", "share of votes that differ between mu = 0.001 and 1",
         "0 within 1e-12"),
        ("MinCq", "C-bound above the least squares residual", "", "0 within 1e-9"),
        ("Dual", "relative duality gap", "primal minus the printed dual, over the primal",
         "0 within 1e-6"),
        ("Dual", "largest edge", "largest edge of a voter, over beta",
         "< 1e-6"),
        ("Dual", "stationarity", "margin + m/2 alpha + beta/2, largest", "0 within 1e-9"),
        ("Algorithm 1", "first margin, -1/m", "mean margin of the first column, alpha = -1/m",
         "> 0"),
        ("Algorithm 1", "first margin, +1/m", "mean margin of the first column, alpha = +1/m",
         NOT_PRINTED),
    ):  # fmt: skip
        yield place, words or what, claim, protocol, partial(identity, what=what)


def _digit_cells() -> Iterator[Row]:
    protocol = (
        "pairs of digits, 200 training rows each, the test file; widths and C by three folds; "
        "AdaBoost of 100 rounds"
    )
    place = "Figure 2"
    for method, other in (("MinCq, kernels", "SVM"), ("MinCq, stumps", "AdaBoost")):
        for own in (method, other):
            compute = partial(digits_risk, method=own)
            yield place, f"test risk, {own}", NOT_PRINTED, protocol, compute
        compute = partial(digits_difference, method=method, other=other)
        yield place, f"test risk, {method} - {other}", f"< {ALIKE}", protocol, compute
        compute = partial(digits_wins, method=method, other=other)
        yield (
            place,
            f"per cent of pairs won by {method} from {other}",
            NOT_PRINTED,
            protocol,
            compute,
        )


def _android_cells() -> Iterator[Row]:
    protocol = "CqBoost on the 215 columns of Drebin as voters, half of 15,036 applications"
    for voters in (10, 50, 100):
        for rows in ("train", "test"):
            compute = partial(android_risk, rows=rows, voters=voters)
            yield "Figure 5", f"{rows} risk, {voters} voters", NOT_PRINTED, protocol, compute


# ---- the figures -----------------------------------------------------------------------------


def figures() -> list[Figure]:
    """Our figures; 3 and 4 of the slides are drawings of a Lagrangian, 5 has no number there."""
    return [
        Figure(DOCUMENT, "1", "Risk of votes of AdaBoost on test rows against their Gibbs risk "
               "(left) and their C-bound (right)", draw_figure_1),
        Figure(DOCUMENT, "2", "Test risks on pairs of MNIST digits: above the diagonal MinCq is "
               "better", draw_figure_2),
        Figure(DOCUMENT, "5", "Android: risk of CqBoost against the number of voters",
               draw_android),
    ]  # fmt: skip


def draw_figure_1(draws: Draws) -> str:
    """The votes of the first half."""
    votes = _votes(draws, draws.seed)
    line = Series("", [0.0, 1.0], [0.0, 1.0], "dashed")
    ours = [
        Panel(title, words, "risk of the vote", [Series("", votes[:, k], votes[:, 2], "points"),
              line], (0.0, 1.0), (0.0, 0.6))
        for k, (title, words) in enumerate((("(a)", "Gibbs risk"), ("(b)", "C-bound")))
    ]  # fmt: skip
    return plot(*ours)


def draw_figure_2(draws: Draws) -> str:
    """One point for each pair of digits."""
    every = _pairs(draws)
    panels = []
    for method, other in (("MinCq, kernels", "SVM"), ("MinCq, stumps", "AdaBoost")):
        x, y = [own[method] for own in every], [own[other] for own in every]
        most = 1.05 * max(*x, *y)
        line = Series("", [0.0, most], [0.0, most], "dashed")
        panels.append(Panel(f"{len(x)} pairs of digits", f"risk of {method}", f"risk of {other}",
                            [Series("", x, y, "points"), line], (0.0, most),
                            (0.0, most)))  # fmt: skip
    return plot(*panels)


def draw_android(draws: Draws) -> str:
    """Mean curves over the halves."""
    every = _curves(draws)
    n = min(len(own["voters"]) for own in every)
    series = [
        Series(f"{rows} rows", every[0]["voters"][:n],
               np.mean([own[rows][:n] for own in every], axis=0))
        for rows in ("train", "test")
    ]  # fmt: skip
    return plot(Panel("Drebin, 215 columns", "voters in the vote", "risk", series))
