"""Document 001, Hue, Boulle and Lemaire (EGC 2014): every printed number, figure and claim.

The paper prints Table 1 (36 sets) and seven counts; its figures 1, 4 and 5 draw means over the 36
sets without numbers, figures 2 and 3 draw paths on Phoneme, and the text says what they show. Every
result has a cell for the paper's prior (``code="2006"``, equations 2.4 and 2.7 of Boulle's thesis)
and one for the default ``code="granular"`` of this library.

Draws: ten stratified folds of all sets that are present, of the smallest of them for what is not
the paper's (``SETS_OF``); a mean over sets has one value for each fold, the spread of a count over
sets is that of counts from folds drawn with replacement. A quick run takes four small sets and
three folds.
"Significant" is a paired t-test over the folds of a set at 5 %: the paper does not name its test.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from laconic._typing import Floats
from laconic.data.datasets import available, load
from laconic.papers.drawing import Panel, Series, plot
from laconic.papers.naive_bayes import (
    BATCH_SIZES,
    LEVELS,
    LOWEST,
    METRICS,
    N_FOLDS,
    PENALTIES,
    POWERS,
    TABLE_1,
    data_set,
    fold_draw,
    path_draw,
)
from laconic.papers.registry import NOT_PRINTED, Cell, Draws, Figure, Measured

DOCUMENT = "001"
PRINTED = {
    "Abalone": (4177, 8, 28), "Mushroom": (8416, 22, 2), "Adult": (48842, 15, 2),
    "PenDigits": (10992, 16, 10), "Australian": (690, 14, 2), "Phoneme": (2254, 256, 5),
    "Breast": (699, 10, 2), "Pima": (768, 8, 2), "Bupa": (345, 6, 2), "Satimage": (768, 8, 6),
    "Crx": (690, 15, 2), "Segmentation": (2310, 19, 7), "Flag": (194, 29, 8),
    "Shuttle": (58000, 9, 7), "German": (1000, 24, 2), "SickEuthyroid": (3163, 25, 2),
    "Glass": (214, 10, 6), "Sonar": (208, 60, 2), "Heart": (270, 13, 2), "Soybean": (376, 35, 19),
    "Hepatitis": (155, 19, 2), "Spam": (4307, 57, 2), "Horsecolic": (368, 27, 2),
    "Thyroid": (7200, 21, 3), "Hypothyroid": (3163, 25, 2), "Tictactoe": (958, 9, 2),
    "Ionosphere": (351, 34, 2), "Vehicle": (846, 18, 4), "Iris": (150, 4, 3),
    "Waveform": (5000, 21, 3), "LED": (1000, 7, 10), "WaveformNoise": (5000, 40, 3),
    "LED17": (10000, 24, 10), "Wine": (178, 13, 3), "Letter": (20000, 16, 26),
    "Yeast": (1484, 9, 10),
}  # fmt: skip
"""Table 1: instances, initial variables and classes of each set."""
REMARKS = {
    ("Adult", "Nv"): "UCI has 14 attributes; 15 would count one more, such as the label.",
    ("Satimage", "Ni"): "The printed row repeats that of Pima; UCI has 6,435 rows.",
    ("Satimage", "Nv"): "The printed row repeats that of Pima; UCI has 36 attributes.",
    ("Spam", "Ni"): "UCI has 4,601 rows.",
}
COUNTS = {
    "L=N better than L=1000": ("DGML L=N", "DGML L=1000", 8),
    **{f"MS {level} better than DGML": (f"MS {level}", "DGML L=1000", n)
       for level, n in zip(LEVELS, (7, 16, 18), strict=True)},
    **{f"VNS {level} better than DGML": (f"VNS {level}", "DGML L=1000", n)
       for level, n in zip(LEVELS, (18, 19, 23), strict=True)},
}  # fmt: skip
"""Section 4.1: sets of 36 with a significantly higher compression in training."""
QUICK_SETS = ("Iris", "Heart", "Glass", "Yeast")
LARGEST = ("Satimage", "Shuttle", "PenDigits", "Phoneme", "Letter")
"""More than half of the time of all 36 sets: the last ones of a run."""
SETS_OF = {"2006": 36, "granular": 36 - len(LARGEST), LOWEST: 12}
"""Sets, the smallest ones, of the paper's prior, of ours, and of the other reading of epsilon."""
N_RESAMPLES = 400
COUNT_REMARK = "A count is judged from all 36 sets only: large sets are not like small ones."
CODES = {"2006": "the paper's prior", "granular": "the granular prior"}
CLOSE, CLOSE_SUM = 0.005, 0.2
"""What "very close" and "similar" are read as: a compression or an AUC within half a point, a sum
of weights within a twentieth of the unpenalised one, about 4."""
NONE, BEST = "VNS 5", "0.1, 1"
"""The search without a penalty of section 4.2, and the setting that it recommends."""


def grid() -> Iterator[tuple[str, float, float]]:
    """Label, penalty and power of the nine regularised predictors of section 4.2."""
    for penalty in PENALTIES:
        for power in POWERS:
            yield f"{penalty:g}, {power:g}", penalty, power


# ---- what the draws give ---------------------------------------------------------------------


def sets_of(draws: Draws, code: str = "2006") -> tuple[str, ...]:
    """The sets of a run, smallest first; a share of the draws is a share of the sets."""
    if draws.quick:
        return QUICK_SETS
    present = [name for name in PRINTED if available(TABLE_1[name])]
    if not present:
        load(TABLE_1[QUICK_SETS[0]])  # says what is missing
    late = {name: place for place, name in enumerate(LARGEST, 1)}
    present.sort(key=lambda name: (late.get(name, 0), PRINTED[name][0] * PRINTED[name][1]))
    n_sets = draws.count(36, 0)
    return tuple(present[: min(SETS_OF[code], n_sets)])


def folds_of(draws: Draws) -> range:
    """The folds of a run."""
    return range(3 if draws.quick else N_FOLDS)


def describe(draws: Draws) -> str:
    """What the run has seen, in one sentence."""
    sets, ours, fewer = (sets_of(draws, code) for code in SETS_OF)
    left_out = [name for name in PRINTED if name not in sets]
    less = f", without {', '.join(left_out)}" if 0 < len(left_out) < 9 else ""
    only = (
        f" from the {len(ours)} smallest under the granular prior and the {len(fewer)} smallest "
        "for the other reading of epsilon"
    )
    return (
        f"Means and counts come from {len(sets)} of the 36 sets{less}, "
        f"{len(folds_of(draws))} folds,{only if len(fewer) < len(sets) else ''}; counts are scaled "
        "to 36 sets."
    ).replace(",;", ";")


def results(draws: Draws, code: str) -> dict[str, Floats]:
    """By predictor, an array of shape (sets, folds, metrics).

    ``code`` is one of ``CODES``, or ``LOWEST`` for section 4.1 by the other reading of its epsilon.
    """

    def made() -> dict[str, Floats]:
        sets, folds = sets_of(draws, code), folds_of(draws)
        every = draws.each(fold_draw, product(sets, [draws.seed], folds, [code]))
        shape = (len(sets), len(folds), len(METRICS))
        return {label: np.array([own[label] for own in every]).reshape(shape) for label in every[0]}

    found: dict[str, Floats] = draws.once((DOCUMENT, "results", code), made)
    return found


def mean_over_sets(draws: Draws, *, code: str, label: str, metric: str) -> Measured:
    """The mean over sets, one for each fold."""
    own = results(draws, code)[label][..., METRICS.index(metric)]
    return Measured.of(own.mean(axis=0))


def difference(draws: Draws, *, code: str, label: str, other: str, metric: str) -> Measured:
    """The mean over sets of one predictor minus that of another, one for each fold."""
    place = METRICS.index(metric)
    found = results(draws, code)
    both = found[label][..., place] - found[other][..., place]
    return Measured.of(both.mean(axis=0))


def sets_better(draws: Draws, *, code: str, label: str, other: str) -> Measured:
    """Sets with a significantly higher compression in training, scaled to 36 of them.

    Of fewer sets a count has no spread that would judge it: the sets that are missing are the
    largest, on which searches gain most.
    """
    found = results(draws, code)
    gains = found[label][..., 0] - found[other][..., 0]
    n_sets, n_folds = gains.shape
    count = 36.0 / n_sets * np.count_nonzero(significant(gains))
    if n_sets < 36:
        return Measured(count, float("nan"), n_folds)
    again = np.random.default_rng(0).integers(n_folds, size=(N_RESAMPLES, n_folds))
    counts = np.count_nonzero(significant(gains[:, again]), axis=0)
    return Measured(count, float(counts.std(ddof=1)), n_folds)


def significant(gains: Floats) -> NDArray[np.bool_]:
    """Whether paired gains, along the last axis, are positive by a two-sided t-test at 5 %.

    >>> significant(np.array([[0.1, 0.15, 0.1], [0.1, -0.2, 0.1]])).tolist()
    [True, False]
    """
    n = gains.shape[-1]
    mean, spread = gains.mean(axis=-1), gains.std(axis=-1, ddof=1)
    alike = spread <= 1e-12 * np.abs(gains).max(axis=-1)
    bar = student.ppf(0.975, n - 1) * spread / np.sqrt(n)
    return np.asarray((mean > 0.0) & (alike | (mean > bar)))


def longest_descent(draws: Draws, *, code: str, label: str) -> Measured:
    """The most iterations of one descent of a search, over all sets and folds."""
    return Measured.exact(results(draws, code)[label][..., METRICS.index("longest descent")].max())


def table_1(draws: Draws, *, name: str, column: int) -> Measured:
    """Rows, variables or classes of the set as it is read."""
    data = data_set(name)
    return Measured.exact((len(data.y), len(data.columns), len(np.unique(data.y)))[column])


# ---- the paths of figures 2 and 3 ------------------------------------------------------------


def phoneme_paths(draws: Draws, code: str) -> list[dict[str, Any]]:
    """Paths by label on three training folds; a quick run has two folds of every eighth row."""
    thin = 8 if draws.quick else 1
    every = [(draws.seed, fold, code, thin) for fold in range(2 if draws.quick else 3)]
    return draws.each(path_draw, every)


def path_difference(draws: Draws, *, code: str, label: str, other: str, what: str) -> Measured:
    """A number of one path minus that of another, on each fold."""
    of = PATH_NUMBERS[what]
    paths = phoneme_paths(draws, code)
    return Measured.of([of(own[label]) - of(own[other]) for own in paths])


def _lowest(path: Any) -> float:
    return float(np.min(path["values"]))


def _iterations(path: Any) -> float:
    """Iterations until 95 % of the descent is made."""
    values = np.asarray(path["values"])
    low = values.min()
    return float(np.argmax(values <= low + 0.05 * (values[0] - low)))


def _rises(path: Any) -> float:
    """Share of the iterations after which the criterion is higher."""
    return float((np.diff(path["values"]) > 0).mean())


def _excess_of_starts(path: Any) -> float:
    """Mean relative excess of a new start over the best value before it."""
    values: NDArray[Any] = np.asarray(path["values"])
    starts = np.array(path["starts"][1:], dtype=int)
    before = np.minimum.accumulate(values)[starts - 1]
    return float((values[starts] / before - 1.0).mean()) if len(starts) else 0.0


PATH_NUMBERS = {
    "iterations to 95 % of the descent": _iterations,
    "share of iterations that rise": _rises,
    "relative excess of a new start": _excess_of_starts,
    "criterion reached": _lowest,
}


# ---- the cells -------------------------------------------------------------------------------


def cells() -> list[Cell]:
    """All cells of the document, in its order."""
    out = list(_table_1_cells())
    for code, named in (CODES | {LOWEST: "epsilon over the lowest value so far"}).items():
        found = list(_count_cells(code))
        if code != LOWEST:
            found += [*_optimisation_cells(code), *_path_cells(code), *_regularised_cells(code)]
        for place, what, published, protocol, compute in found:
            remark = COUNT_REMARK if what.startswith("sets where") else ""
            name = f"{place}, {named}"
            out.append(Cell(DOCUMENT, name, what, published, protocol, compute, remark))
    return out


def _table_1_cells() -> Iterator[Cell]:
    for name, row in PRINTED.items():
        for column, (what, printed) in enumerate(zip(("Ni", "Nv", "Nc"), row, strict=True)):
            protocol = "count the rows (Ni), variables (Nv) and classes (Nc) of the set"
            compute = partial(table_1, name=name, column=column)
            place, remark = f"Table 1, {name}", REMARKS.get((name, what), "")
            yield Cell(DOCUMENT, place, what, float(printed), protocol, compute, remark)


Row = tuple[str, str, float | str, str, Any]


def _optimisation_cells(code: str) -> Iterator[Row]:
    """Section 4.1: figure 1 and what the text says of it."""
    protocol = "penalty 0; mean over sets of the compression, one for each fold"
    for label in ("DGML L=100", "DGML L=1000", "DGML L=N", "SNB"):
        for metric in ("train compression", "test compression"):
            compute = partial(mean_over_sets, code=code, label=label, metric=metric)
            yield "Figure 1", f"{metric}, {label}", NOT_PRINTED, protocol, compute
    for label, other, claim in (
        ("DGML L=1000", "DGML L=100", "> 0"),
        ("DGML L=N", "DGML L=1000", f"0 within {CLOSE}"),
    ):
        compute = partial(difference, code=code, label=label, other=other, metric=METRICS[0])
        yield "Section 4.1", f"{METRICS[0]}, {label} - {other}", claim, protocol, compute


def _count_cells(code: str) -> Iterator[Row]:
    """Section 4.1: sets that gain significantly; section 4: how long descents are."""
    counted = (
        "penalty 0; sets of 36 that gain by a paired t-test over folds at 5 %; the spread is that "
        "of folds drawn with replacement"
    )
    for what, (label, other, printed) in COUNTS.items():
        compute = partial(sets_better, code=code, label=label, other=other)
        yield "Section 4.1", f"sets where {what}", float(printed), counted, compute
    protocol = "penalty 0; the longest descent of a search over all sets and folds"
    for label in (*(f"DGML {size}" for size in BATCH_SIZES), "MS 5", "VNS 5"):
        compute = partial(longest_descent, code=code, label=label)
        yield "Section 4", f"iterations of a descent, {label}", "< 100", protocol, compute


def _path_cells(code: str) -> Iterator[Row]:
    """Figures 2 and 3: paths on Phoneme."""
    protocol = "penalty 0, Phoneme, one difference for each training fold"
    wanted = [
        ("Figure 2", "iterations to 95 % of the descent", "L=100", "L=N", "< 0"),
        ("Figure 2", "share of iterations that rise", "L=100", "L=N", "> 0"),
        ("Figure 2", "criterion reached", "L=100", "L=N", "> 0"),
        ("Figure 3", "relative excess of a new start", "MS", "VNS", "> 0"),
        ("Figure 3", "criterion reached", "MS", "VNS", "> 0"),
    ]
    for place, what, label, other, claim in wanted:
        compute = partial(path_difference, code=code, label=label, other=other, what=what)
        yield place, f"{what}, {label} - {other}", claim, protocol, compute


def _regularised_cells(code: str) -> Iterator[Row]:
    """Section 4.2: figures 4 and 5, and what the text says of them."""
    protocol = "DGML-VNS, L = 1000, level 5; mean over sets, one for each fold"
    shown = {"penalty 0": NONE, "SNB": "SNB"} | {f"penalty, power {k}": k for k, _, _ in grid()}
    figures = {
        "Figure 4": ("train AUC", "test AUC"),
        "Figure 5": ("variables", "sum of weights"),
    }
    for place, metrics in figures.items():
        for metric in metrics:
            for named, label in shown.items():
                compute = partial(mean_over_sets, code=code, label=label, metric=metric)
                yield place, f"{metric}, {named}", NOT_PRINTED, protocol, compute
    for metric, label, other, claim in _claims():
        compute = partial(difference, code=code, label=label, other=other, metric=metric)
        what = f"{metric}, ({label}) - ({'penalty 0' if other == NONE else other})"
        yield "Section 4.2", what, claim, protocol, compute


def _claims() -> Iterator[tuple[str, str, str, str]]:
    """Metric, predictor, the one it is compared with, and on which side it should be."""
    for label, penalty, power in grid():
        # 0.5 degrades the AUC whatever the power, the others do not
        yield "test AUC", label, NONE, "< 0" if penalty == 0.5 else f"0 within {CLOSE}"
        yield "sum of weights", label, NONE, "< 0"
        if power == 2.0:
            # the quadratic penalty reduces the sum least, the two others alike
            yield "sum of weights", label, f"{penalty:g}, 1", "> 0"
            yield "sum of weights", f"{penalty:g}, 0.5", f"{penalty:g}, 1", f"0 within {CLOSE_SUM}"
    for penalty in PENALTIES:
        for less, more in pairwise(POWERS):
            yield "variables", f"{penalty:g}, {less:g}", f"{penalty:g}, {more:g}", "< 0"
    yield "variables", BEST, NONE, "< 0"
    # drawn beside each other, and not compared in the text
    yield "variables", BEST, "SNB", NOT_PRINTED
    yield "test AUC", BEST, "SNB", NOT_PRINTED


# ---- the figures -----------------------------------------------------------------------------


def figures() -> list[Figure]:
    """Our figures 1 to 5, under the paper's prior."""
    return [
        Figure(DOCUMENT, "1", "Mean compression in training and test, by size of the batches.",
               _figure_1),
        Figure(DOCUMENT, "2", "Criterion along the iterations on Phoneme, by size of the batches.",
               partial(_paths_drawn, labels=tuple(BATCH_SIZES), longest=100)),
        Figure(DOCUMENT, "3", "Criterion along the iterations on Phoneme, multi-start and VNS.",
               partial(_paths_drawn, labels=("MS", "VNS"), longest=400)),
        Figure(DOCUMENT, "4", "Mean AUC in training and test by penalty and power.",
               partial(_scatter, metrics=("train AUC", "test AUC"))),
        Figure(DOCUMENT, "5", "Mean number of variables and sum of weights by penalty and power.",
               partial(_scatter, metrics=("variables", "sum of weights"))),
    ]  # fmt: skip


def _figure_1(draws: Draws) -> str:
    labels = {"L=100": "DGML L=100", "L=1000": "DGML L=1000", "L=N": "DGML L=N", "SNB": "SNB"}
    series = []
    for metric in METRICS[:2]:
        found = [mean_over_sets(draws, code="2006", label=own, metric=metric).mean
                 for own in labels.values()]  # fmt: skip
        series.append(Series(metric, np.arange(4), found, "bars"))
    return plot(Panel("means over the sets", "", "compression", series, ticks=tuple(labels)))


def _paths_drawn(draws: Draws, *, labels: tuple[str, ...], longest: int) -> str:
    paths = phoneme_paths(draws, "2006")[0]
    series = []
    for label in labels:
        values = paths[label]["values"][:longest]
        series.append(Series(label, np.arange(len(values)), values))
    return plot(Panel("Phoneme, first fold", "iteration", "criterion (nats)", series))


def _scatter(draws: Draws, *, metrics: tuple[str, str]) -> str:
    shapes = dict(zip(POWERS, ("triangle", "square", "diamond"), strict=True))
    series = []
    groups = {"no penalty": ([NONE], ["circle"]), "SNB": (["SNB"], ["circle"])}
    for p in PENALTIES:
        labels = [label for label, penalty, _ in grid() if penalty == p]
        groups[f"penalty {p:g}"] = (labels, list(shapes.values()))
    for name, (labels, marks) in groups.items():
        x, y = ([mean_over_sets(draws, code="2006", label=label, metric=metric).mean
                 for label in labels] for metric in metrics)  # fmt: skip
        series.append(Series(name, x, y, "points", marks=marks))
    # without numbers of its own: what the shapes stand for
    series += [Series(f"p = {power:g}", [], [], "points", colour="#333333", marks=[mark])
               for power, mark in shapes.items()]  # fmt: skip
    return plot(Panel("means over the sets", *metrics, series))
