"""CG-Boost (dense hinge vote) and CB-Boost (closed-form greedy on the C-bound)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from laconic._typing import Floats, Ints
from laconic.core.solution import Solution, WhyStopped
from laconic.votes.column_generation import Columns
from laconic.votes.estimator import VoteClassifier, check_choice
from laconic.votes.nnls import ActiveSet, moment_gap, sides_to_bounds
from laconic.votes.problem import Problem, Program

EXACT_ROWS = 1500
"""Up to this many rows the dual of CG-Boost is solved by the active set on its kernel matrix."""


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
    support vector machine without intercept on the votes.
    """
    if C <= 0.0:
        raise ValueError(f"C must be positive, got {C!r}.")
    H = np.ascontiguousarray(columns.votes(listed))
    y, cap = columns.y, C * weight
    if len(y) <= EXACT_ROWS and sides == "both":
        A = H * y[:, None]
        state = ActiveSet(A @ A.T, np.ones(len(y)), np.zeros(len(y)), cap)
        state.minimise(0.0, tol=tol)
        u, epochs = state.weights, state.sweeps
    else:
        u, epochs = _descend(H, y, cap, sides, tol, max_epochs, seed)
    edge = H.T @ (u * y)
    w = edge if sides == "both" else np.maximum(edge, 0.0)
    hinge = np.maximum(0.0, 1.0 - y * (H @ w))
    value = float(0.5 * w @ w + cap @ hinge)
    gap = max(0.0, value - float(u.sum() - 0.5 * w @ w))
    why: WhyStopped = "gap" if gap <= 1e-5 * max(1.0, value) else "max_iter"
    return Solution(w, value, gap, int(epochs), why, {"columns": listed})


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
    lower, upper = np.where(columns.offered, lower, 0.0), np.where(columns.offered, upper, 0.0)
    square = _squares(columns)
    weights = np.zeros(columns.n_columns)
    best = int(
        np.argmax(np.maximum(np.where(upper > 0, first, -1), np.where(lower < 0, -first, -1)))
    )
    weights[best] = 1.0 if upper[best] > 0 and first[best] >= 0 else -1.0
    bound, rounds = np.inf, 0
    why: WhyStopped = "max_iter"
    together = first
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
        best = int(np.argmin(after))
        if not after[best] < now - tol:
            why = "gap"
            break
        weights[best] += step[best]
    return _greedy_solution(columns, weights, first, (lower, upper), rounds, why)


def _best_step(g: Floats, t: Floats, s: Floats, m1: float, m2: float) -> tuple[Floats, Floats]:
    """Best weight of every voter and the C-bound after it (inf where there is none)."""
    below = m1 * s - g * t
    ok = below > 1e-12
    step = np.divide(g * m2 - m1 * t, below, out=np.zeros_like(g), where=ok)
    second = m2 + 2.0 * step * t + step * step * s
    after = np.where(ok, 1.0 - (m1 + step * g) ** 2 / np.maximum(second, 1e-300), np.inf)
    return step, after


def _squares(columns: Columns) -> Floats:
    """Mean of h² per voter: one for voters that never abstain."""
    if hasattr(columns, "H"):
        squares: Floats = columns.weight @ (columns.H * columns.H)
        return squares
    return np.ones(columns.n_columns)


def _greedy_solution(
    columns: Columns,
    weights: Floats,
    first: Floats,
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


# LPBoost: the soft-margin vote by linear programming, one column at a time.
#
# max rho - Σ_i D_i xi_i subject to y_i Σ_j q_j h_j(x_i) + xi_i >= rho, Σ q = 1, q, xi >= 0, with
# D_i = weight_i/nu (Demiriz, Bennett, Shawe-Taylor 2002). The dual, min beta subject to
# A_j'u <= beta, Σ u = 1, 0 <= u <= D, gains one row per voter and is re-solved warm.


class _WarmMaster:
    """The dual program in HiGHS: adding a row keeps the basis."""

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
        """(u, beta, q)."""
        self.h.run()
        found = self.h.getSolution()
        value = np.array(found.col_value)
        return value[: self.n], float(value[self.n]), -np.array(found.row_dual)[1:]


class _ColdMaster:
    """The same program solved from scratch by scipy, for comparison."""

    def __init__(self, cap: Floats) -> None:
        self.cap = cap
        self.rows: list[Floats] = []

    def add(self, column: Floats) -> None:
        self.rows.append(np.append(column, -1.0))

    def solve(self) -> tuple[Floats, float, Floats]:
        from scipy.optimize import linprog

        n = len(self.cap)
        found = linprog(
            np.append(np.zeros(n), 1.0),
            A_ub=np.array(self.rows),
            b_ub=np.zeros(len(self.rows)),
            A_eq=np.append(np.ones(n), 0.0)[None],
            b_eq=[1.0],
            bounds=[*((0.0, c) for c in self.cap), (None, None)],
            method="highs-ds",
        )
        if found.x is None:
            raise RuntimeError(f"The linear program of LPBoost failed: {found.message}")
        return found.x[:n], float(found.x[n]), -np.asarray(found.ineqlin.marginals)


def lp_boost(
    columns: Columns,
    nu: float,
    *,
    sides: str = "both",
    tol: float = 1e-8,
    max_voters: int = 10_000,
    warm: bool = True,
) -> Solution:
    """Column generation for the soft-margin vote.

    ``warm`` keeps the basis of HiGHS from column to column; without it the program is solved from
    scratch each time (the same optimum, several times slower). When the optimum is not positive,
    the pair (h, -h) is optimal and the vote is zero everywhere: ``details["zero_vote"]``.
    """
    if not 0.0 < nu <= 1.0:
        raise ValueError(f"nu must be in (0, 1], got {nu!r}.")
    offered = columns.offered
    u = columns.weight.copy()
    master = (_WarmMaster if warm else _ColdMaster)(columns.weight / nu)
    entered: list[tuple[int, float]] = []
    beta, q = -np.inf, np.zeros(0)
    why: WhyStopped = "max_iter"
    lowest = np.inf
    while True:
        edges = np.where(offered, columns.row_edges(u * columns.y), -np.inf)
        both = np.where(offered, np.abs(edges), -np.inf) if sides == "both" else edges
        best = int(np.argmax(both))
        sign = 1.0 if sides != "both" or edges[best] >= 0 else -1.0
        lowest = min(lowest, float(both[best]))
        if both[best] <= beta + tol or (best, sign) in entered:
            why = "gap" if both[best] <= beta + 1e3 * tol else "stalled"
            break
        if len(entered) >= max_voters:
            break
        entered.append((best, sign))
        votes = columns.votes(np.array([best]))[:, 0]
        master.add(sign * columns.y * votes)
        u, beta, q = master.solve()
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


# Rivals on the same voters: LPBoost, CG-Boost and CB-Boost. AdaBoost is scikit-learn's.


_NU = (0.1, 0.2, 0.3, 0.45, 0.6, 0.8)
_C = (0.001, 0.01, 0.1, 1.0, 10.0)


def _positive(name: str, value: Any) -> float:
    if isinstance(value, str) or not value > 0:
        raise ValueError(f"{name} must be a positive number or 'cv', got {value!r}.")
    return float(value)


class _RivalClassifier(VoteClassifier):
    """Fits the vote of a solver over listed or priced voters."""

    def _fit_with(self, X: Any, y: Any, sample_weight: Any, solvers: list[Any]) -> Any:
        check_choice("probability", self.probability, ("margin", "calibrated"))
        if isinstance(self.voters, str) and self.voters == "forest":
            raise ValueError(
                f"{type(self).__name__} weighs voters on the rows they are given, and trees must "
                "be weighed out of bag; use CqBoostClassifier(voters='forest')."
            )
        program = Program("rival", "both", "solver", tol=self.tol, solvers=tuple(solvers))
        return self._fit_votes(X, y, sample_weight, program)


class LPBoostClassifier(_RivalClassifier):
    """Soft-margin vote by linear programming and column generation (LPBoost).

    Parameters
    ----------
    voters : see :class:`CqBoostClassifier`
    nu : float in (0, 1] or "cv", default=0.3
        At most this share of the rows may fall short of the margin. With complements on offer and
        nu below about twice the error level the optimum is a vote of zero everywhere, which is
        reported by a warning and by ``zero_vote_``. "cv" takes the least held-out logistic loss.
    probability, cv, tol, random_state : see :class:`CqBoostClassifier`

    Attributes
    ----------
    zero_vote_ : bool
        Whether a vote is identically zero.
    duality_gap_ : float
        Of the soft margin.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from laconic.votes import LPBoostClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LPBoostClassifier(nu=0.2).fit(X, y)
    >>> model.score(X, y) > 0.95, model.zero_vote_
    (True, False)
    """

    def __init__(
        self,
        voters: Any = "stumps",
        *,
        nu: Any = 0.3,
        probability: str = "margin",
        cv: Any = 5,
        tol: float = 1e-8,
        random_state: Any = None,
    ) -> None:
        super().__init__(voters, probability=probability, cv=cv, tol=tol, random_state=random_state)
        self.nu = nu

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LPBoostClassifier:
        """Fit the vote; several classes are voted on one against the rest."""
        # SELF

        def solver(nu: float) -> Any:
            return lambda problem: lp_boost(
                problem.columns, nu, sides=problem.program.sides, tol=self.tol
            )

        tried = _NU if self.nu == "cv" else (_positive("nu", self.nu),)
        self._fit_with(X, y, sample_weight, [solver(nu) for nu in tried])
        self.zero_vote_ = any(len(vote.weights) == 0 for vote in self.votes_)
        if self.zero_vote_:
            warnings.warn(
                f"LPBoost with nu={self.nu} has a vote of zero everywhere as its optimum; raise nu "
                "above twice the error rate.",
                UserWarning,
                stacklevel=2,
            )
        return self


class CGBoostClassifier(_RivalClassifier):
    """Dense hinge vote with a squared penalty (CG-Boost).

    Parameters
    ----------
    voters : see :class:`CqBoostClassifier`
    C : float or "cv", default="cv"
        Weight of the hinge losses against ½|w|²; "cv" as for LPBoost.
    probability, cv, tol, random_state : see :class:`CqBoostClassifier`

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from laconic.votes import CGBoostClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> CGBoostClassifier(C=0.01).fit(X, y).score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        voters: Any = "stumps",
        *,
        C: Any = "cv",
        probability: str = "margin",
        cv: Any = 5,
        tol: float = 1e-8,
        random_state: Any = None,
    ) -> None:
        super().__init__(voters, probability=probability, cv=cv, tol=tol, random_state=random_state)
        self.C = C

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> CGBoostClassifier:
        """Fit the vote; several classes are voted on one against the rest."""
        # SELF

        def solver(C: float) -> Any:
            def solve(problem: Problem) -> Solution:
                if not problem.listed:
                    problem.list_all()
                return cg_boost(
                    problem.columns,
                    problem.ids,
                    C,
                    problem.weight,
                    sides=problem.program.sides,
                    tol=self.tol,
                )

            return solve

        tried = _C if self.C == "cv" else (_positive("C", self.C),)
        return self._fit_with(X, y, sample_weight, [solver(C) for C in tried])


class CBBoostClassifier(_RivalClassifier):
    """Greedy minimiser of the C-bound, one closed-form step a round (CB-Boost).

    Parameters
    ----------
    voters : see :class:`CqBoostClassifier`
    n_rounds : int, default=200
    probability, cv, tol, random_state : see :class:`CqBoostClassifier`

    Attributes
    ----------
    duality_gap_ : float
        Excess of the second moment over the best vote of the same mean margin. Greedy rounds are
        not meant to close it.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from laconic.votes import CBBoostClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> CBBoostClassifier(n_rounds=50).fit(X, y).score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        voters: Any = "stumps",
        *,
        n_rounds: int = 200,
        probability: str = "margin",
        cv: Any = 5,
        tol: float = 1e-8,
        random_state: Any = None,
    ) -> None:
        super().__init__(voters, probability=probability, cv=cv, tol=tol, random_state=random_state)
        self.n_rounds = n_rounds

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> CBBoostClassifier:
        """Fit the vote; several classes are voted on one against the rest."""
        from dataclasses import replace

        # SELF

        if self.n_rounds < 1:
            raise ValueError(f"n_rounds must be at least 1, got {self.n_rounds}.")

        def solve(problem: Problem) -> Solution:
            found = cb_boost(
                problem.columns,
                sides=problem.program.sides,
                max_rounds=self.n_rounds,
                tol=self.tol,
            )
            return replace(found, why_stopped="gap")  # rounds are the method, not a failure

        return self._fit_with(X, y, sample_weight, [solve])
