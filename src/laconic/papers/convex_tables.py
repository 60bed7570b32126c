"""Document 002, Bach's lecture notes (2014): every statement on losses, k-means and components.

The notes print formulas and one figure, no measured number. A formula is a claim on a difference
that is zero, or that has a sign; it is computed by other means than the library's own
(:mod:`laconic.papers.convex`), and the worst of all draws is judged. Where the notes only say
that something may happen, ours is the mean over draws. Formulas that are slips of the pen are
judged as they are printed, with what was meant in the remark.

Draws: 30 seeds of every random table, 20,000 random distributions and scores for each loss of
theorem 2.1; a quick run takes 4 seeds and 2,000 distributions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from laconic._typing import Floats
from laconic.papers.convex import (
    LOSSES,
    bayes_draw,
    classes_draw,
    classifier_draw,
    components_draw,
    kmeans_draw,
    lloyd,
    psi_numbers,
    ranking_draw,
    regression_draw,
    spots,
    theorem_draw,
)
from laconic.papers.drawing import Panel, Series, plot
from laconic.papers.registry import NOT_PRINTED, Cell, Draws, Figure, Measured

DOCUMENT = "002"
ZERO, TINY, NEAR = "0 within 1e-9", "0 within 1e-6", "0 within 1e-4"
NAMES = {
    "squared": "squared loss", "logistic": "logistic loss", "hinge": "hinge loss",
    "squared_hinge": "squared hinge (not in the notes)",
    "exponential": "exponential loss (not in the notes)",
}  # fmt: skip
MEAN = "mean"
WORST: dict[str, Callable[[list[float]], float]] = {
    "<": max, ">": min, "0": lambda values: max(values, key=abs)
}  # fmt: skip
"""The worst of several numbers, by the first letter of what is claimed of them."""


# ---- what the draws give ---------------------------------------------------------------------


def seeds(draws: Draws) -> range:
    """The seeds of the random tables."""
    return range(draws.seed, draws.seed + draws.count(30, 4))


def number(
    draws: Draws, *, function: Callable[..., Any], words: tuple[Any, ...], key: str, how: str
) -> Measured:
    """A number of every draw: the worst for what is claimed (``how``), or mean and spread."""
    every = draws.each(function, [(*words, seed, *_more(function)) for seed in seeds(draws)])
    values = [float(own[key]) for own in every]
    if how == MEAN:
        return Measured.of(values)
    return Measured.exact(WORST[how[0]](values))


def _more(function: Callable[..., Any]) -> tuple[int, ...]:
    """Starts of k-means on each draw."""
    return (50,) if function is kmeans_draw else ()


def _psi(draws: Draws, loss: str) -> dict[str, Floats]:
    found: dict[str, list[float]] = draws.each(psi_numbers, [(loss,)])[0]
    return {key: np.array(values) for key, values in found.items()}


def psi_formula(draws: Draws, *, loss: str) -> Measured:
    """Largest distance of psi by minimisation from its formula."""
    own = _psi(draws, loss)
    printed = {"squared": own["theta"] ** 2, "hinge": np.abs(own["theta"])}
    away = own["numeric"] - printed.get(loss, own["own"])
    return Measured.exact(away[np.argmax(np.abs(away))])


def psi_shape(draws: Draws, *, loss: str, what: str) -> Measured:
    """Least step or bend of psi on the grid, its value at zero, or psi - theta²/2."""
    own = _psi(draws, loss)
    numeric = own["numeric"]
    found: dict[str, float] = {
        "least": np.diff(numeric).min(),
        "bend": np.diff(numeric, 2).min(),
        "zero": numeric[0],
        "half square": (numeric - own["theta"] ** 2 / 2.0).min(),
        "slope": own["slope"][0],
    }
    return Measured.exact(found[what])


def wrong_scores(draws: Draws, *, loss: str) -> Measured:
    """Share of eta above 1/2 whose score of least convex risk is not positive."""
    own = _psi(draws, loss)
    return Measured.exact(float(np.mean(own["score"][own["theta"] > 0.0] <= 0.0)))


def theorem(draws: Draws, *, loss: str, key: str) -> Measured:
    """The largest number over all distributions."""
    parts = range(draws.seed, draws.seed + draws.count(20, 2))
    every = draws.each(theorem_draw, [(loss, seed, 1000) for seed in parts])
    return Measured.exact(max(own[key] for own in every))


# ---- the cells -------------------------------------------------------------------------------

Row = tuple[str, str, float | str, str, Callable[[Draws], Measured], str]


def cells() -> list[Cell]:
    """All cells of the notes, in their order."""
    rows = [*_regression(), *_classification(), *_calibration(), *_extensions(), *_kmeans(),
            *_components()]  # fmt: skip
    return [Cell(DOCUMENT, *row) for row in rows]


def _asked(
    function: Callable[..., Any], key: str, how: str = ZERO, *words: Any
) -> Callable[[Draws], Measured]:
    return partial(number, function=function, words=words, key=key, how=how)


def _regression() -> Iterator[Row]:
    protocol = "ConvexRiskRegressor on 201 random rows of three columns"
    place, draw = "Section 1", regression_draw
    yield (place, "constant of least squared loss - mean", ZERO, protocol,
           _asked(draw, "mean"), "")  # fmt: skip
    yield (place, "constant of least absolute loss - median", ZERO, protocol,
           _asked(draw, "median"), "")  # fmt: skip
    yield (place, "Huber's loss, jump of the slope at epsilon", TINY, "differences of 1e-7",
           _asked(draw, "huber kink"), "")  # fmt: skip
    yield (place, "absolute loss, jump of the slope at 0", "> 0", "differences of 1e-7",
           _asked(draw, "absolute kink", "> 0"), "")  # fmt: skip
    protocol = "largest error of a slope with 4 of 201 responses at a million"
    for loss, claim in (("squared", "> 1"), ("absolute", "< 0.3"), ("huber", "< 0.3")):
        yield (place, f"error with outliers, {loss}", claim, protocol,
               _asked(draw, f"outliers, {loss}", MEAN), "")  # fmt: skip


def _classification() -> Iterator[Row]:
    place, draw = "Section 2.2", classifier_draw
    protocol = "200 random rows of two classes"
    yield (place, "squared loss of the margin - (y - f)²", ZERO, protocol,
           _asked(draw, "squared"), "")  # fmt: skip
    yield (place, "logistic risk + mean conditional log-likelihood", ZERO, protocol,
           _asked(draw, "likelihood"), "")  # fmt: skip
    yield (place, "hinge risk, least value over that of a support vector machine, - 1", TINY,
           f"{protocol}; ConvexRiskClassifier and libsvm", _asked(draw, "svm"), "")  # fmt: skip
    yield (place, "logistic risk, coefficients - those of scikit-learn", NEAR, protocol,
           _asked(draw, "logistic"), "")  # fmt: skip
    place, protocol = "Section 2.3", "all 32 classifiers of five points of random probabilities"
    yield (place, "least risk - E min(eta, 1 - eta)", ZERO, protocol,
           _asked(bayes_draw, "gap"), "")  # fmt: skip
    yield (place, "points where the best is not sign(2 eta - 1)", ZERO, protocol,
           _asked(bayes_draw, "differ"), "")  # fmt: skip


def _calibration() -> Iterator[Row]:
    grid = "34 theta from 0 to 0.99, infima by scipy's bounded scalar minimiser"
    for loss in LOSSES:
        named, shape = NAMES[loss], partial(psi_shape, loss=loss)
        yield ("Section 2.3", f"{named}, slope at 0", "< 0", "central difference",
               partial(shape, what="slope"), "")  # fmt: skip
        yield ("Section 2.3", f"{named}, share of eta with an optimum of the wrong sign", ZERO,
               grid, partial(wrong_scores, loss=loss), "")  # fmt: skip
    for loss in LOSSES:
        named, shape = NAMES[loss], partial(psi_shape, loss=loss)
        simulated = "20,000 random distributions on four points, random scores"
        yield ("Theorem 2.1", f"{named}, largest psi(R - R*) - (R_phi - R_phi*)", "< 1e-6",
               simulated, partial(theorem, loss=loss, key="excess"), "")  # fmt: skip
        yield ("Theorem 2.1", f"{named}, largest psi(R - R*) / (R_phi - R_phi*)", NOT_PRINTED,
               simulated, partial(theorem, loss=loss, key="tightest"), "")  # fmt: skip
        for what, words, claim in (("zero", "psi(0)", TINY), ("least", "least step", "> -1e-9"),
                                   ("bend", "least bend", "> -1e-6")):  # fmt: skip
            yield ("Theorem 2.1", f"psi of the {named}, {words}", claim, grid,
                   partial(shape, what=what), "")  # fmt: skip
    formulas = {
        "squared": "theta²", "hinge": "|theta|", "squared_hinge": "theta²",
        "logistic": "((1+theta) log(1+theta) + (1-theta) log(1-theta))/2",
        "exponential": "1 - sqrt(1 - theta²)",
    }  # fmt: skip
    for loss, formula in formulas.items():
        yield ("Example 1", f"{NAMES[loss]}, psi - {formula}", TINY, grid,
               partial(psi_formula, loss=loss), "")  # fmt: skip
    yield ("Example 1", "logistic loss, least psi - theta²/2", "> -1e-9", grid,
           partial(psi_shape, loss="logistic", what="half square"),
           "The notes write Phi where Psi is meant.")  # fmt: skip


def _extensions() -> Iterator[Row]:
    for name in ("iris", "wine"):
        protocol = f"{name}, standardised, random stratified halves, C = 1"
        place = f"Section 3.1, {name}"
        for key, what, claim in (
            ("apart", "one against the rest, coefficients - those of binary fits", NEAR),
            ("together", "joint loss, probabilities - those of scikit-learn", NEAR),
            ("largest", "share of classes that are not of largest score", ZERO),
        ):
            yield place, what, claim, protocol, _asked(classes_draw, key, claim, name), ""
        for what in ("risk, one against the rest", "risk, joint"):
            yield place, what, NOT_PRINTED, protocol, _asked(classes_draw, what, MEAN, name), ""
    protocol = "60 rows with a real response, all 1,770 differences of two rows"
    yield ("Section 3.2", "ranker's coefficients - those of a classifier of differences", NEAR,
           protocol, _asked(ranking_draw, "coefficients"), "")  # fmt: skip
    yield ("Section 3.2", "share of pairs in the right order", "> 0.5", protocol,
           _asked(ranking_draw, "in order", MEAN), "")  # fmt: skip


def _kmeans() -> Iterator[Row]:
    protocol = "180 points in three spots, 50 random starts of steps 1 and 2"
    remark = "The notes sum k up to n where K is meant."
    for place, key, what, claim, how, more in (
        ("Section 4.2", "rise", "largest rise of the distortion in a step", "< 1e-9", None,
         remark),
        ("Section 4.3", "steps", "most steps until no point moves", "< 1000", None, ""),
        ("Section 4.3", "missed", "share of single starts above the best of 50", "> 0", MEAN, ""),
        ("Section 4.3", "one start", "relative excess of one start", "> 0", MEAN, ""),
        ("Section 4.3", "ten starts", "relative excess of the best of ten starts", "< 0.01",
         MEAN, "Very good is read as one per cent."),
        ("Section 4.3", "library", "KMeansK's distortion over the best of 50 starts, - 1",
         "< 0.01", None, ""),
        ("Section 4.3", "arbitrarily bad", "distortion of a fixed point over the best, four "
         "corners of a rectangle of 100 x 1", "> 1000", None,
         "It grows with the square of the length."),
        ("Section 4.4", "rise in K", "largest rise of the distortion with K", "< 0", None, ""),
        ("Section 4.4", "own groups", "distortion of a group for each point", ZERO, None, ""),
        ("Section 4.4", "bic is three", "share of draws with K = 3 by BIC", NOT_PRINTED, MEAN,
         ""),
        ("Section 4.4", "slope is three", "share of draws with K = 3 by the slope of the "
         "distortion", NOT_PRINTED, MEAN, "The notes call the choice of the term arbitrary."),
        ("Figure 1", "bic", "clusters, by BIC", 3.0, MEAN, ""),
    ):  # fmt: skip
        yield place, what, claim, protocol, _asked(kmeans_draw, key, how or str(claim)), more


def _components() -> Iterator[Row]:
    protocol = "random tables of 80 rows and 6 columns"
    ball = ("The notes leave out a factor of sqrt(n); with it all variables lie in the unit ball, "
            "on its surface only when all components are kept.")  # fmt: skip
    for place, key, what, claim, how, more in (
        ("Section 5.1", "maximal", "variance of the first component - the largest of 2,000 random "
         "directions", "> 0", MEAN, ""),
        ("Section 5.1", "factor", "u'X'Xu / Var(u'x)", 1.0, MEAN,
         "The printed variance lacks its factor 1/n; the maximum is at the same u."),
        ("Section 5.1", "eigenvectors", "components apart from eigenvectors of X'X", ZERO, None,
         ""),
        ("Section 5.1.1", "deflation", "sequence by deflation apart from singular vectors", ZERO,
         None, ""),
        ("Section 5.1.1", "singular vectors", "components apart from singular vectors", ZERO,
         None, ""),
        ("Section 5.1.1", "squares", "singular values - roots of eigenvalues", ZERO, None, ""),
        ("Section 5.1.2", "rows", "XV - US", ZERO, None, ""),
        ("Section 5.1.3", "variables", "X'U - VS", ZERO, None, ""),
        ("Section 5.1.3", "norm, as printed", "norm of the variables X'U, standardised columns",
         1.0, MEAN, ball),
        ("Section 5.1.3", "norm, all", "norm of X'U / sqrt(n), all components", 1.0, MEAN, ""),
        ("Section 5.1.3", "norm, two", "least norm of X'U / sqrt(n), two of six components",
         "> 0.999", None, ball),
        ("Section 5.2", "rank error", "squared error of rank 2 over the other singular values "
         "squared, - 1", ZERO, None, ""),
        ("Section 5.2", "library", "squared error of PrincipalMap over it, - 1", ZERO, None, ""),
        ("Section 5.2", "other ranks", "least error of alternating least squares over it, - 1",
         "> -1e-9", None, ""),
    ):  # fmt: skip
        yield place, what, claim, protocol, _asked(components_draw, key, how or str(claim)), more


# ---- the figure ------------------------------------------------------------------------------


def figures() -> list[Figure]:
    """Figure 1, and the distortion by which the number of clusters is chosen."""
    caption = "Three clusters of points in the plane (left); distortion against K (right)"
    return [Figure(DOCUMENT, "1", caption, draw_figure_1)]


def draw_figure_1(draws: Draws) -> str:
    """The groups that steps 1 and 2 find from the best of ten starts."""
    points, draw = spots(draws.seed), np.random.default_rng(draws.seed)
    runs = [lloyd(points, points[draw.choice(len(points), 3, replace=False)]) for _ in range(10)]
    centres, group, _ = min(runs, key=lambda run: run[2][-1])
    series = [Series("", points[group == k, 0], points[group == k, 1], "points") for k in range(3)]
    series.append(Series("centres", centres[:, 0], centres[:, 1], "points", colour="#000000"))
    path = draws.each(kmeans_draw, [(draws.seed, 50)])[0]["path"]
    return plot(
        Panel("k-means, K = 3", "first coordinate", "second coordinate", series),
        Panel("choice of K", "K", "distortion", [Series("", np.arange(1, len(path) + 1), path)]),
    )
