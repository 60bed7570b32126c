"""Document 003, Fillatre, Gilet and Barbosa: every printed number, figure and claim.

Draws: 80 trials of Abalone as in the paper (a quick run has 12); for figure 1, ten training samples
of 4,000 rows (two of 2,000), since the paper does not give the size of its sample nor its bins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from laconic.papers.drawing import Panel, Series, plot
from laconic.papers.minimax import (
    FIVE,
    SHARES,
    bound_draw,
    continuous_pi_star,
    figure_1_draw,
    peers_draw,
    table_1_draw,
)
from laconic.papers.registry import Cell, Draws, Figure, Measured

DOCUMENT = "003"
PRIORS = {
    "prior": ("training share", (0.02, 0.64, 0.28, 0.05, 0.01)),
    "pi_star": ("least favourable prior", (0.02, 0.26, 0.27, 0.27, 0.18)),
}
RISKS = {
    "train logistic": (28.32, 0.44),
    "train forest": (30.37, 0.30),
    "train Bayes": (30.16, 0.31),
    "V(pi_star)": (48.43, 1.12),
    "train minimax": (48.59, 2.80),
    "test logistic": (57.12, 4.08),
    "test forest": (95.08, 0.01),
    "test Bayes": (71.64, 3.92),
    "test minimax": (55.83, 4.08),
}
"""Table 1, in percent: mean and standard deviation over 80 trials."""
N_TRIALS = 80
REMARKS = {
    "test forest": "The printed number is the risk of deciding class 2 for every row, and appears "
    "when the forest that learnt bins is given the raw columns.",
    "test minimax": "One rule without draws flips a whole class between trials: our spread is "
    "larger, and that of the randomised rule is the printed one.",
}


def trials(draws: Draws) -> list[dict[str, Any]]:
    """Discrete rules, trial by trial."""
    return draws.each(table_1_draw, [(draws.seed, k) for k in range(draws.count(N_TRIALS, 12))])


def peers(draws: Draws) -> list[dict[str, float]]:
    """Logistic regression and forest, trial by trial."""
    n_trees = 30 if draws.quick else 100
    return draws.each(
        peers_draw, [(draws.seed, k, n_trees) for k in range(draws.count(N_TRIALS, 6))]
    )


def _rows(draws: Draws, what: str) -> Sequence[dict[str, Any]]:
    return peers(draws) if "logistic" in what or "forest" in what else trials(draws)


def of_trials(draws: Draws, *, what: str, place: int | None = None) -> Measured:
    every = _rows(draws, what)
    return Measured.of(own[what] if place is None else own[what][place] for own in every)


def spread_of(draws: Draws, *, what: str) -> Measured:
    return Measured.spread((own[what] for own in _rows(draws, what)), N_TRIALS)


def segments(draws: Draws) -> list[dict[str, Any]]:
    """The experiment of figure 1 on several training samples."""
    n_train, each = (2000, 5) if draws.quick else (4000, 20)
    n_samples = draws.count(10, 2)
    return draws.each(figure_1_draw, [(draws.seed + k, n_train, 3, each) for k in range(n_samples)])


def tilt(risks: list[float]) -> float:
    """Risk at pi'_1 = 1 minus that at 0, in size: 0 for a rule that no class mix can hurt."""
    return abs(risks[-1] - risks[0])


def tilt_difference(draws: Draws, *, other: str) -> Measured:
    found = [own["risks"] for own in segments(draws)]
    return Measured.of(tilt(own["minimax"]) - tilt(own[other]) for own in found)


def bend(draws: Draws, *, name: str) -> Measured:
    """The largest distance of a risk from the line between its ends."""
    out = []
    for own in segments(draws):
        risks = np.array(own["risks"][name])
        line = risks[0] + (risks[-1] - risks[0]) * np.array(SHARES)
        out.append(float(np.abs(risks - line).max()))
    return Measured.of(out)


def pi_star(draws: Draws) -> Measured:
    return Measured.of(own["pi_star"] for own in segments(draws))


def of_laws(draws: Draws) -> Measured:
    return Measured.of(draws.each(continuous_pi_star, [(200_000, seed) for seed in range(3)]))


def of_bound(draws: Draws, *, what: str) -> Measured:
    """The worst of random tables."""
    found = draws.each(bound_draw, [(seed,) for seed in range(draws.count(200, 40))])
    values = [own[what] for own in found]
    return Measured(max(values) if what == "error" else min(values), 0.0, len(values))


# ---- the cells -------------------------------------------------------------------------------


def cells() -> list[Cell]:
    """All cells of the document, in its order."""
    return [Cell(DOCUMENT, *row) for row in (*_theory(), *_figure_1(), *_table_1())]


Row = tuple[Any, ...]


def _theory() -> Iterator[Row]:
    protocol = (
        "random tables of 2 to 10 classes and 5 to 39 profiles; 200 steps with gamma_n = 1/n from "
        "the uniform prior; the optimum by a linear program; the worst table"
    )
    yield ("Proposition 1", "least V((a + b)/2) - (V(a) + V(b))/2", "> -1e-12",
           f"{protocol}, over 50 pairs of priors", partial(of_bound, what="concave"))  # fmt: skip
    remark = (
        "The derivation needs gamma_n / eta_n in the denominator, and conditions (8) contradict "
        "each other (inf gamma_n > 0 and a finite sum of squares); the bound held all the same."
    )
    yield ("Theorem 1", "least of bound (9) minus the error", "> 0", protocol,
           partial(of_bound, what="room"), remark)  # fmt: skip
    yield ("Theorem 1", "largest error after 200 steps", "0 within 0.01", protocol,
           partial(of_bound, what="error"))  # fmt: skip


def _figure_1() -> Iterator[Row]:
    protocol = (
        "two classes of three gaussians, prior 0.2 and 0.8; three quantile bins for Bayes, forest "
        "and minimax, raw columns for logistic regression and SVM; test segments of 1,000 rows at "
        "eleven mixes"
    )
    yield "Figure 1", "pi*_1, three quantile bins", 0.42, protocol, pi_star
    yield ("Figure 1", "pi*_1 of the laws themselves", 0.42,
           "Monte Carlo with 200,000 rows of each class, where both class risks are equal",
           of_laws)  # fmt: skip
    for name in FIVE:
        yield ("Figure 1", f"distance of the risk from a line, {name}", "0 within 0.02", protocol,
               partial(bend, name=name))  # fmt: skip
    for name in FIVE[:-1]:
        yield ("Figure 1", f"change of the risk from mix 0 to mix 1, minimax - {name}", "< 0",
               protocol, partial(tilt_difference, other=name))  # fmt: skip


ABALONE = (
    "Abalone in five classes of age; stratified trials with 75 % to learn; three bins of equal "
    "width; 100 subgradient steps and one rule without draws; test rows in the shifted mix"
)
PEERS = (
    "the same trials; logistic regression on raw columns, a forest of 100 trees on the bins (30 in "
    "a quick run)"
)


def _table_1() -> Iterator[Row]:
    for what, (named, values) in PRIORS.items():
        for place, value in enumerate(values):
            compute = partial(of_trials, what=what, place=place)
            yield "Table 1", f"{named}, class {place + 1}", value, ABALONE, compute
    for what, (value, spread) in RISKS.items():
        protocol = PEERS if "logistic" in what or "forest" in what else ABALONE
        remark = REMARKS.get(what, "")
        compute = partial(of_trials, what=what)
        yield "Table 1", f"{what} (%)", value, protocol, compute, remark, spread
        named = f"{what} (%), standard deviation"
        yield "Table 1", named, spread, protocol, partial(spread_of, what=what)
    yield ("Table 1, the forest's row", "forest on bins given the raw columns (%)",
           "95.08 within 0.1", PEERS, partial(of_trials, what="test forest, raw columns"),
           "That this slip is the authors' is an inference.")  # fmt: skip
    yield ("Table 1, the forest's row", "deciding class 2 for every test row (%)",
           "95.08 within 0.1", ABALONE, partial(of_trials, what="test always class 2"))  # fmt: skip
    remark = "So the printed training risk is not that of the rule whose test risk is printed."
    yield ("Table 1, the forest's row", "deciding class 2 for every training row (%)", 30.37,
           ABALONE, partial(of_trials, what="train always class 2"), remark)  # fmt: skip
    more = {
        "V exact": ("V at the exact optimum (%)", 48.43),
        "train randomized": ("exact randomised rule, training (%)", 48.59),
        "test randomized": ("exact randomised rule, test (%)", 55.83),
    }
    for what, (named, value) in more.items():
        protocol = "the same trials and bins; the optimum by cutting planes, ties broken by draws"
        compute = partial(of_trials, what=what)
        yield "Table 1, the exact rule", named, value, protocol, compute
    yield ("Table 1, the exact rule", "exact randomised rule, test (%), standard deviation", 4.08,
           protocol, partial(spread_of, what="test randomized"))  # fmt: skip


# ---- the figure ------------------------------------------------------------------------------


def figures() -> list[Figure]:
    """Our figure 1."""
    caption = "Risk of five classifiers against the share of class 1 in the test rows."
    return [Figure(DOCUMENT, "1", caption, _risks)]


def _risks(draws: Draws) -> str:
    found = segments(draws)[0]["risks"]
    series = [Series(name, SHARES, found[name]) for name in FIVE]
    return plot(Panel("two gaussian classes", "share of class 1", "risk", series, (0.0, 1.0)))
