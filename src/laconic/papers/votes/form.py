"""The learners of document 004 in the form of its tables, on a matrix H of votes in [-1, 1].

Rows of H are examples, columns voters; every repeated voter is a column of its own, because the
slides count it. Weights are net weights: a negative one is that of the complement.

* CqBoost: least second moment with Σq = 1 and a small mean margin, by column generation. The
  program printed on the slides has no Σq = 1; only with it do their column counts come out
  (titanic 6, monks 12, car 16, balance 17: the rank of H, and a complement that takes the rest of
  the mass).
* MinCq: the quasi-uniform form of 2011, where a voter and its complement share 1/n.
* CG-Boost: ½|w|² + C Σ hinge; LPBoost: the soft margin of nu.

The slides do not say how parameters were set. Here those of least held-out error in three folds of
the training half are taken, among the values of :data:`LEARNERS` and, for kernels, of
:data:`WIDTHS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from laconic._typing import Floats, Ints
from laconic.votes.boosting import cg_boost, lp_boost
from laconic.votes.columns import DenseColumns
from laconic.votes.nnls import box_vote
from laconic.votes.problem import Listed
from laconic.votes.programs import CqBoost
from laconic.votes.voters.stumps import StumpVoters

STUMPS, RBF = "stumps", "RBF"
MU = 1e-3
"""Mean margin of CqBoost and MinCq: the default of the authors' programs."""
EDGE = 1e-8
"""Column generation stops when no edge is larger: the same default."""
RIDGE = 1e-6
"""Among equal second moments MinCq takes nearly the least |w|, as an inner-point method does: with
more voters than rows the optimum is a face, and a corner of it votes at random (ionosphere: risk
.43 at a corner, .19 for every ridge from 1e-7 to 1e-3)."""
WIDTHS = (0.02, 0.1, 0.5)
"""gamma times the number of attributes, on standardised attributes. LPBoost is spared the first:
a wide kernel with a small nu is the zero vote, which takes its program many columns to find."""
MANY_ROWS = 450
"""Training rows above which LPBoost on kernels has its largest nu only: on yeast a fit with nu = .3
takes more than 20 s of CPU, one with .6 a tenth of a second."""
N_FOLDS = 3
SMALL = 1e-9
"""Weights below this share of the largest are none."""


@dataclass(frozen=True)
class Vote:
    """Net weights of the voters, and the number of columns as the slides count them."""

    weights: Floats
    columns: float

    def risk(self, H: Floats, y: Floats) -> float:
        """Share of the rows that the vote gets wrong; a vote of zero is one for -1."""
        reach = np.abs(self.weights).sum()
        return float(np.mean(np.where(H @ self.weights > 1e-12 * reach, 1.0, -1.0) != y))


def stump_votes(X: Floats, train: Ints, n_thresholds: int = 10) -> Floats:
    """Equally spaced thresholds of every attribute that varies in training, on all rows."""
    weight, family = np.ones(len(train)), StumpVoters(n_thresholds=n_thresholds)
    made = [
        np.where(X[:, j] > cut, 1.0, -1.0)
        for j in range(X.shape[1])
        for cut in family.cuts(X[train, j], weight)
    ]
    return np.column_stack(made)


def kernel_votes(Z: Floats, train: Ints, width: float) -> Floats:
    """exp(-width/d |z - z_i|²) for every training row i."""
    return np.asarray(np.exp(-width / Z.shape[1] * cdist(Z, Z[train], "sqeuclidean")))


def standardised(X: Floats, train: Ints) -> Floats:
    """Columns of mean 0 and spread 1 in training."""
    spread = X[train].std(axis=0)
    return np.asarray((X - X[train].mean(axis=0)) / np.where(spread > 0.0, spread, 1.0))


def cq_boost_vote(H: Floats, y: Floats, mu: float = MU) -> Vote:
    """Column generation, one column at a time; columns are those generated, as Algorithm 1 adds.

    Below the mean margin of least squares the mass that Σq = 1 leaves over goes to a pair (h, -h),
    whose complement is one more column, and the vote is that of least squares. In the scale of the
    slides an edge is about 2 mu times our slope, so that mu decides when their tolerance stops.

    >>> H = np.array([[1.0, -1.0], [1.0, 1.0], [-1.0, 1.0], [1.0, -1.0]])
    >>> cq_boost_vote(H, np.array([1.0, 1.0, -1.0, 1.0])).columns
    1.0
    """
    run = CqBoost(DenseColumns(H, y, np.ones(len(y))), "both")
    found = run.solve(0.0, tol=0.5 * EDGE / mu / run.scale, max_voters=H.shape[1])
    weights = np.zeros(H.shape[1])
    weights[run.entered] = run.weights
    pair = len(run.entered) > 1 and found.details["mean_margin"] > mu
    return Vote(weights, float(len(run.entered) + pair))


def min_cq_vote(H: Floats, y: Floats, mu: float = MU) -> Vote:
    """Quasi-uniform MinCq; columns are the voters and complements that have some mass."""
    voters = Listed.of(DenseColumns(H, y, np.ones(len(y))))
    gram = voters.gram + RIDGE * np.eye(len(voters.ids))
    reachable = 0.99 * float(voters.size @ np.abs(voters.first))
    found = box_vote(gram, voters.first, min(mu, reachable), voters.size)
    weights = np.zeros(H.shape[1])
    weights[voters.ids] = found.point
    inside = np.abs(found.point) < (1.0 - SMALL) * voters.size
    return Vote(weights, float(voters.copies @ (1.0 + inside)))


def cg_boost_vote(H: Floats, y: Floats, C: float) -> Vote:
    """The hinge vote, over every column."""
    one = np.ones(len(y))
    found = cg_boost(DenseColumns(H, y, one), np.arange(H.shape[1]), C, one)
    return Vote(found.point, float(_n_used(found.point)))


def lp_boost_vote(H: Floats, y: Floats, nu: float) -> Vote:
    """The soft-margin vote; where its optimum is the zero vote it has the one pair (h, -h)."""
    found = lp_boost(DenseColumns(H, y, np.ones(len(y))), nu, tol=1e-6)
    weights = np.zeros(H.shape[1])
    weights[found.details["columns"]] = found.point
    return Vote(weights, float(max(1, _n_used(weights))))


def _n_used(weights: Floats) -> int:
    size = np.abs(weights)
    return int(np.count_nonzero(size > SMALL * size.max(initial=0.0)))


Learner = Callable[[Floats, Floats, float], Vote]
LEARNERS: dict[str, tuple[Learner, tuple[float, ...], tuple[float, ...]]] = {
    "CqBoost": (cq_boost_vote, (MU,), (1e-4, 1e-3)),
    "MinCq": (min_cq_vote, (MU,), (MU,)),
    "CG-Boost": (cg_boost_vote, (0.01, 0.1, 1.0), (0.01, 0.1, 1.0)),
    "LPBoost": (lp_boost_vote, (0.1, 0.3, 0.6, 0.8), (0.3, 0.6)),
}
"""Method, and the values of its parameter (mu, mu, C, nu) that are tried on stumps and on kernels;
of equal errors the first is taken."""
PARAMETER = {"CqBoost": "mu", "MinCq": "mu", "CG-Boost": "C", "LPBoost": "nu"}


def half_results(
    X: Floats, y: Any, train: Ints, test: Ints, kind: str, methods: Sequence[str] = tuple(LEARNERS)
) -> dict[str, tuple[float, float]]:
    """Test risk and columns of each method on one half/half split."""
    signs = np.where(np.asarray(y) == 1, 1.0, -1.0)
    offered = _offered(X, train, kind)
    found = {}
    for method in methods:
        vote, H = fitted(offered, signs, train, method, kind)
        columns = _columns(vote, X[train], method, kind)
        found[method] = (vote.risk(H[test], signs[test]), columns)
    return found


def by_value(
    X: Floats, y: Any, train: Ints, test: Ints, kind: str, method: str
) -> dict[str, tuple[float, float]]:
    """Test risk and columns of a method for every value of its parameter, and width of kernels."""
    signs = np.where(np.asarray(y) == 1, 1.0, -1.0)
    learner, offered, found = LEARNERS[method][0], _offered(X, train, kind), {}
    for k, value in _options(len(offered), method, kind, len(train)):
        vote, H = learner(offered[k][train], signs[train], value), offered[k]
        named = f"{PARAMETER[method]} = {value:g}"
        named += f" and width {WIDTHS[k]:g}" if kind == RBF else ""
        found[named] = (vote.risk(H[test], signs[test]), _columns(vote, X[train], method, kind))
    return found


def _offered(X: Floats, train: Ints, kind: str) -> list[Floats]:
    """The voters: stumps, or kernels of several widths."""
    if kind == STUMPS:
        return [stump_votes(X, train)]
    Z = standardised(X, train)
    return [kernel_votes(Z, train, width) for width in WIDTHS]


def _columns(vote: Vote, X: Floats, method: str, kind: str) -> float:
    """As the slides count them."""
    if method == "MinCq" and kind == RBF:
        return float(len(X))  # of a kernel and its complement one always has mass
    # so has either stump of an attribute that does not vary
    constant = (np.ptp(X, axis=0) == 0.0).sum() if method == "MinCq" else 0
    return vote.columns + 20.0 * constant


def _options(n_offered: int, method: str, kind: str, n_rows: int) -> list[tuple[int, float]]:
    """Places among what is offered, and values of the parameter."""
    _, of_stumps, of_kernels = LEARNERS[method]
    if kind == STUMPS or method != "LPBoost":
        return list(product(range(n_offered), of_stumps if kind == STUMPS else of_kernels))
    return list(product(range(1, n_offered), of_kernels[-1:] if n_rows > MANY_ROWS else of_kernels))


def fitted(
    offered: list[Floats], signs: Floats, train: Ints, method: str, kind: str
) -> tuple[Vote, Floats]:
    """The vote of the votes and parameter of least held-out error, and its matrix of votes."""
    learner, options = LEARNERS[method][0], _options(len(offered), method, kind, len(train))
    y, errors = signs[train], np.zeros(len(options))
    for kept, held in _folds(y) if len(options) > 1 else ():
        for place, (k, parameter) in enumerate(options):
            H = offered[k][train]
            if kind == RBF:  # a kernel is withheld with its row
                H = H[:, kept]
            errors[place] += len(held) * learner(H[kept], y[kept], parameter).risk(H[held], y[held])
    k, parameter = options[int(np.argmin(np.round(errors)))]
    return learner(offered[k][train], y, parameter), offered[k]


def _folds(signs: Floats) -> Iterator[tuple[Ints, Ints]]:
    from sklearn.model_selection import StratifiedKFold

    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=0)
    yield from folds.split(np.zeros(len(signs)), signs)
