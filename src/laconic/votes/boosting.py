"""Rivals on the same voters: LPBoost, CG-Boost and CB-Boost. AdaBoost is scikit-learn's."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Protocol

import numpy as np

from laconic._typing import Floats, Ints
from laconic.core.contract import Interval, StrOptions
from laconic.core.losses import Solution, WhyStopped
from laconic.votes import tuning
from laconic.votes.columns import Columns
from laconic.votes.estimator import VoteClassifier
from laconic.votes.nnls import ActiveSet, first_largest, moment_gap, sides_to_bounds
from laconic.votes.problem import Choice, Chosen, Curve, Problem, Program
from laconic.votes.voters.families import family_of
from laconic.votes.voters.forest import ForestVoters

HARD = 1e12
"""Largest weight of a hinge loss: a margin that must be kept."""


def cg_boost(
    columns: Columns,
    listed: Ints,
    C: float,
    weight: Floats,
    *,
    sides: str = "both",
    tol: float = 1e-8,
    max_epochs: int = 2000,
    seed: int = 0,
) -> Solution:
    """min ½|w|² + C Σ_i weight_i max(0, 1 - y_i w.h(x_i)) (Bi, Zhang, Bennett 2004).

    At the optimum w = Σ u_i y_i h(x_i) (its positive part without complements): every voter with
    an edge has a weight, which is why the vote is dense. With complements it is exactly a linear
    support vector machine without intercept on the votes. C·weight counts as 1e12 at most: beyond,
    rounding in the sum that makes w hides the difference.
    """
    H = np.ascontiguousarray(columns.votes(listed))
    y, cap = columns.y, np.minimum(C * weight, HARD)
    if len(y) <= tuning.EXACT_ROWS and sides == "both":
        u, epochs = _by_active_set(H, y, cap, tol)
    else:
        u, epochs = _descend(H, y, cap, sides, tol, max_epochs, seed)
    w, value, gap = _hinge_vote(H, y, cap, u, sides)
    why: WhyStopped = "gap" if gap <= 1e-5 * max(1.0, value) else "max_iter"
    return Solution(w, value, gap, int(epochs), why, {"columns": listed})


def _hinge_vote(
    H: Floats, y: Floats, cap: Floats, u: Floats, sides: str
) -> tuple[Floats, float, float]:
    """The weights of dual variables u, the objective there and its gap to the dual."""
    edge = H.T @ (u * y)
    w = edge if sides == "both" else np.maximum(edge, 0.0)
    hinge = np.maximum(0.0, 1.0 - y * (H @ w))
    value = float(0.5 * w @ w + cap @ hinge)
    return w, value, max(0.0, value - float(u.sum() - 0.5 * w @ w))


def _by_active_set(H: Floats, y: Floats, cap: Floats, tol: float) -> tuple[Floats, int]:
    """The dual in the scale of the square roots of the row weights, which may differ by decades.

    The tolerance is lowered step by step and the best point kept: with such weights the last
    steps may turn in circles within rounding.
    """
    scale = np.sqrt(cap / cap.max())
    A = H * (y * scale)[:, None]
    state = ActiveSet(A @ A.T, scale, np.zeros(len(y)), cap / scale)
    best, least = np.zeros(len(y)), np.inf
    for step in (1e-4, 1e-6, tol):
        state.minimise(0.0, tol=step, max_sweeps=1000 + 10 * len(y))
        u = np.minimum(state.weights * scale, cap)
        gap = _hinge_vote(H, y, cap, u, "both")[2]
        if gap <= least:
            best, least = u, gap
    return best, state.sweeps


def _descend(
    H: Floats, y: Floats, cap: Floats, sides: str, tol: float, max_epochs: int, seed: int
) -> tuple[Floats, int]:
    from laconic.votes._numba import hinge_dual_descent

    draw = np.random.default_rng(seed)
    u, edge = np.zeros(len(y)), np.zeros(H.shape[1])
    norm = np.einsum("ij,ij->i", H, H)
    epoch = 0
    for epoch in range(1, max_epochs + 1):  # noqa: B007
        order = draw.permutation(len(y))
        worst = hinge_dual_descent(H, y, cap, sides != "both", order, u, edge, norm)
        if worst <= max(tol, 1e-6):
            break
    return u, epoch


def cb_boost(
    columns: Columns, *, sides: str = "both", max_rounds: int = 200, tol: float = 1e-8
) -> Solution:
    """Add, each round, the voter whose best weight lowers the C-bound most (Bauvin et al. 2020).

    With m1, m2 the moments of the present vote F, and g, t, s the means of y h, F h and h²:
    C(F + αh) is smallest at α = (g m2 - m1 t)/(m1 s - g t). One published version takes s = 1,
    which only holds for voters that never abstain.
    """
    first = columns.first_moment()
    lower, upper = sides_to_bounds(first, sides)
    square = columns.squares()
    weights = np.zeros(columns.n_columns)
    best = first_largest(
        np.maximum(np.where(upper > 0, first, -1), np.where(lower < 0, -first, -1))
    )
    weights[best] = 1.0 if upper[best] > 0 and first[best] >= 0 else -1.0
    bound, rounds = np.inf, 0
    why: WhyStopped = "max_iter"
    for rounds in range(1, max_rounds + 1):
        used = np.flatnonzero(weights)
        score = columns.scores(used, weights[used])
        m1 = float(columns.weight @ (columns.y * score))
        m2 = float(columns.weight @ (score * score))
        together = columns.row_edges(score * columns.weight)
        now = 1.0 - m1 * m1 / m2
        if bound - now <= tol and rounds > 1:
            why = "gap"
            break
        bound = now
        step, after = _best_step(first, together, square, m1, m2)
        after = np.where((step > 0) & (upper > 0) | (step < 0) & (lower < 0), after, np.inf)
        best = first_largest(1.0 - after)
        if not after[best] < now - tol:
            why = "gap"
            break
        weights[best] += step[best]
    return _greedy_solution(columns, weights, (lower, upper), rounds, why)


def _best_step(g: Floats, t: Floats, s: Floats, m1: float, m2: float) -> tuple[Floats, Floats]:
    """Best weight of every voter and the C-bound after it (inf where there is none)."""
    below = m1 * s - g * t
    ok = below > 1e-12
    step = np.divide(g * m2 - m1 * t, below, out=np.zeros_like(g), where=ok)
    second = m2 + 2.0 * step * t + step * step * s
    after = np.where(ok, 1.0 - (m1 + step * g) ** 2 / np.maximum(second, 1e-300), np.inf)
    return step, after


def _greedy_solution(
    columns: Columns,
    weights: Floats,
    bounds: tuple[Floats, Floats],
    rounds: int,
    why: WhyStopped,
) -> Solution:
    used = np.flatnonzero(weights)
    score = columns.scores(used, weights[used])
    m1 = float(columns.weight @ (columns.y * score))
    m2 = float(columns.weight @ (score * score))
    scaled = weights * (m1 / m2)
    gap = moment_gap(columns.slopes(used, scaled[used]), scaled, *bounds)
    total = np.abs(weights).sum()
    details = {"columns": used, "mean_margin": m1 / total, "c_bound": 1.0 - m1 * m1 / m2}
    return Solution(weights[used], m2 / total**2, gap, rounds, why, details)


class Master(Protocol):
    """The dual of LPBoost: min beta subject to A_j'u <= beta, Σ u = 1, 0 <= u <= D."""

    def add(self, column: Floats) -> None:
        """One more row A_j = y h_j."""

    def solve(self) -> tuple[Floats, float, Floats]:
        """(u, beta, q)."""


class WarmMaster:
    """The dual in HiGHS: adding a row keeps the basis."""

    def __init__(self, cap: Floats) -> None:
        import highspy

        self.h: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        self.h.setOptionValue("output_flag", False)
        self.h.setOptionValue("presolve", "off")
        self.h.setOptionValue("threads", 1)
        n = len(cap)
        inf = highspy.kHighsInf
        self.h.addVars(n + 1, np.append(np.zeros(n), -inf), np.append(cap, inf))
        self.h.changeColsCost(1, np.array([n], dtype=np.int32), np.array([1.0]))
        self.h.addRow(1.0, 1.0, n, np.arange(n, dtype=np.int32), np.ones(n))
        self.n, self.inf = n, inf

    def add(self, column: Floats) -> None:
        places = np.arange(self.n + 1, dtype=np.int32)
        self.h.addRow(-self.inf, 0.0, self.n + 1, places, np.append(column, -1.0))

    def solve(self) -> tuple[Floats, float, Floats]:
        self.h.run()
        found = self.h.getSolution()
        value = np.array(found.col_value)
        return value[: self.n], float(value[self.n]), -np.array(found.row_dual)[1:]


def lp_boost(
    columns: Columns,
    nu: float,
    *,
    sides: str = "both",
    tol: float = 1e-8,
    max_voters: int = 10_000,
    make_master: Callable[[Floats], Master] = WarmMaster,
) -> Solution:
    """Column generation for the soft-margin vote (Demiriz, Bennett, Shawe-Taylor 2002).

    max rho - Σ_i D_i xi_i subject to y_i Σ_j q_j h_j(x_i) + xi_i >= rho, Σ q = 1, q, xi >= 0, with
    D_i = weight_i/nu. When the optimum is not positive, the pair (h, -h) is optimal and the vote is
    zero everywhere: ``details["zero_vote"]``. Equal rows share one variable of the programme: where
    its vertices tie, two rows must come to the same one as a row of weight two.
    """
    u = columns.weight
    distinct, group = columns.equal_rows()
    mass = np.bincount(group, u)
    master = make_master(mass / nu)
    entered: list[tuple[int, float]] = []
    known: set[tuple[int, float]] = set()
    beta, q = -np.inf, np.zeros(0)
    why: WhyStopped = "max_iter"
    lowest = np.inf
    while len(entered) < max_voters:
        edges = columns.row_edges(u * columns.y)
        both = np.abs(edges) if sides == "both" else edges
        best = first_largest(both)
        lowest = min(lowest, float(both[best]))
        if both[best] <= beta + tol:
            why = "gap"
            break
        sign = 1.0 if sides != "both" or edges[best] >= 0 else -1.0
        if (best, sign) in known:
            why = "gap" if both[best] <= beta + 1e3 * tol else "stalled"
            break
        known.add((best, sign))
        entered.append((best, sign))
        master.add(sign * (columns.y * columns.votes(np.array([best]))[:, 0])[distinct])
        dual, beta, q = master.solve()
        u = columns.weight * (dual / mass)[group]
    order = np.array([j for j, _ in entered], dtype=np.int64)
    weights = np.array([s for _, s in entered]) * np.maximum(q, 0.0)
    where, place = np.unique(order, return_inverse=True)
    net = np.bincount(place, weights, minlength=len(where)).astype(np.float64)
    net[np.abs(net) <= 1e-10] = 0.0
    gap = max(0.0, lowest - beta)
    zero = bool(beta <= 10.0 * tol or not net.any())
    if zero:
        net[:] = 0.0
    details = {"columns": where, "zero_vote": zero, "objective": beta, "entered": len(entered)}
    return Solution(net, -beta, gap, len(entered), why, details)


@dataclass(frozen=True)
class SolverProgram(Program):
    """One vote for each of several parameters of a solver."""

    parameters: tuple[float, ...]
    solver: Callable[[Problem, float], Solution]
    scaled = True

    @property
    def compares(self) -> bool:
        return len(self.parameters) > 1

    def places(self, problem: Problem) -> tuple[float, ...]:
        return self.parameters

    def follow(self, problem: Problem, places: Sequence[float]) -> Iterator[Solution]:
        for parameter in places:
            found = self.solver(problem, parameter)
            total = float(np.abs(found.point[found.point != 0.0]).sum()) or 1.0
            yield replace(found, point=found.point / total)

    def solve(self, problem: Problem, choice: Choice) -> tuple[Solution, Curve]:
        place = self.parameters[max(choice.place, 0)]
        return next(self.follow(problem, [place])), choice.curve

    def like(self, problem: Problem, chosen: Chosen) -> Solution:
        return self.solve(problem, chosen.choice)[0]


class RivalClassifier(VoteClassifier):
    """Fits the vote of a solver over listed or priced voters."""

    def _solver_program(
        self, given: Any, tried: tuple[float, ...], solver: Callable[[Problem, float], Solution]
    ) -> SolverProgram:
        """``given`` is the parameter of the solver, or "cv" for the best of ``tried``."""
        if isinstance(family_of(self.voters), ForestVoters):
            raise ValueError(
                f"{type(self).__name__} weighs voters on the rows they are given, and trees must "
                "be weighed out of bag; use CqBoostClassifier(voters='forest')."
            )
        return SolverProgram(tried if given == "cv" else (float(given),), solver)


class LPBoostClassifier(RivalClassifier):
    """Soft-margin vote by linear programming and column generation (LPBoost).

    Parameters
    ----------
    voters, proba, cv, tol, random_state : see :class:`CqBoostClassifier`
    nu : float in (0, 1] or "cv", default=0.3
        At most this share of the rows may fall short of the margin. With complements on offer and
        nu below about twice the error level the optimum is a vote of zero everywhere, which is
        reported by a warning and by ``zero_vote_``. "cv" takes the least held-out logistic loss.

    Attributes
    ----------
    zero_vote_ : bool
        Whether a vote is identically zero.
    duality_gap_ : ndarray of shape (n_votes,)
        Of the soft margin. The other attributes are those of :class:`CqBoostClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from laconic.votes import LPBoostClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LPBoostClassifier(nu=0.2).fit(X, y)
    >>> model.score(X, y) > 0.95, model.zero_vote_
    (True, False)
    """

    _parameter_constraints = {
        **VoteClassifier._parameter_constraints,
        "nu": [Interval(Real, 0, 1, closed="right"), StrOptions({"cv"})],
    }

    def __init__(
        self,
        voters: Any = "stumps",
        *,
        nu: float | str = 0.3,
        proba: str = "margin",
        cv: Any = 5,
        tol: float = 1e-8,
        random_state: Any = None,
    ) -> None:
        super().__init__(voters, proba=proba, cv=cv, tol=tol, random_state=random_state)
        self.nu = nu

    def _program(self) -> SolverProgram:
        def solve(problem: Problem, nu: float) -> Solution:
            return lp_boost(problem.priced, nu, sides=problem.sides, tol=self.tol)

        return self._solver_program(self.nu, tuning.NUS, solve)

    def _publish(self) -> None:
        super()._publish()
        self.zero_vote_ = any(len(vote.weights) == 0 for vote in self.votes_)
        if self.zero_vote_:
            warnings.warn(
                f"LPBoost with nu={self.nu} has a vote of zero everywhere as its optimum; raise nu "
                "above twice the error rate.",
                UserWarning,
                stacklevel=5,
            )


class CGBoostClassifier(RivalClassifier):
    """Dense hinge vote with a squared penalty (CG-Boost).

    Parameters
    ----------
    voters, proba, cv, tol, random_state : see :class:`CqBoostClassifier`
    C : float or "cv", default="cv"
        Weight of the hinge losses against ½|w|²; "cv" as for LPBoost.

    Attributes
    ----------
    duality_gap_ : ndarray of shape (n_votes,)
        Of the penalised hinge loss. The other attributes are those of :class:`CqBoostClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from laconic.votes import CGBoostClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> CGBoostClassifier(C=0.01).fit(X, y).score(X, y) > 0.95
    True
    """

    _parameter_constraints = {
        **VoteClassifier._parameter_constraints,
        "C": [Interval(Real, 0, None, closed="neither"), StrOptions({"cv"})],
    }

    def __init__(
        self,
        voters: Any = "stumps",
        *,
        C: float | str = "cv",
        proba: str = "margin",
        cv: Any = 5,
        tol: float = 1e-8,
        random_state: Any = None,
    ) -> None:
        super().__init__(voters, proba=proba, cv=cv, tol=tol, random_state=random_state)
        self.C = C

    def _program(self) -> SolverProgram:
        def solve(problem: Problem, C: float) -> Solution:
            return cg_boost(
                problem.priced,
                problem.numbers(),
                C,
                problem.weight,
                sides=problem.sides,
                tol=self.tol,
            )

        return self._solver_program(self.C, tuning.COSTS_OF_HINGE, solve)


class CBBoostClassifier(RivalClassifier):
    """Greedy minimiser of the C-bound, one closed-form step a round (CB-Boost).

    Parameters
    ----------
    voters, proba, cv, tol, random_state : see :class:`CqBoostClassifier`
    n_rounds : int, default=200

    Attributes
    ----------
    duality_gap_ : ndarray of shape (n_votes,)
        Excess of the second moment over the best vote of the same mean margin. Greedy rounds are
        not meant to close it. The other attributes are those of :class:`CqBoostClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from laconic.votes import CBBoostClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> CBBoostClassifier(n_rounds=50).fit(X, y).score(X, y) > 0.95
    True
    """

    _parameter_constraints = {
        **VoteClassifier._parameter_constraints,
        "n_rounds": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        voters: Any = "stumps",
        *,
        n_rounds: int = 200,
        proba: str = "margin",
        cv: Any = 5,
        tol: float = 1e-8,
        random_state: Any = None,
    ) -> None:
        super().__init__(voters, proba=proba, cv=cv, tol=tol, random_state=random_state)
        self.n_rounds = n_rounds

    def _program(self) -> SolverProgram:
        def solve(problem: Problem, n_rounds: float) -> Solution:
            found = cb_boost(
                problem.priced, sides=problem.sides, max_rounds=int(n_rounds), tol=self.tol
            )
            return replace(found, why_stopped="gap")  # rounds are the method, not a failure

        return self._solver_program(self.n_rounds, (), solve)
