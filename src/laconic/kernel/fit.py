"""From rows and kernel parameters to fitted multipliers: which kernel, which rows, which solver.

minimise over f, b   |f|^2 / 2 + C sum_i s_i phi(f(x_i) + b, y_i)

for any convex loss of a score and any kernel, with a certified gap.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from laconic._typing import Floats, Ints
from laconic.core.contract import Training, numbers_of
from laconic.core.losses import (
    AbsoluteError,
    HingeLoss,
    ScoreLoss,
    Solution,
    middle_intercept,
)
from laconic.data.row_keys import seed_of
from laconic.data.source import one_blas_thread
from laconic.kernel.kernels import Kernel, KernelRows
from laconic.kernel.low_rank import find_span, landmark_span, solve_span
from laconic.kernel.rounded import LossRows
from laconic.kernel.tuning import (
    BASIS_SQUARED_A_ROW,
    FEW_ROWS,
    FINE,
    KMEANS_ROWS,
    LEFT_OVER,
    PATIENCE_WITH_PAIRS,
    SMO_UP_TO,
    WHOLE_MATRIX_UP_TO,
    WIDEST_BASIS,
)

LARGEST_VALUE = 1e150
"""Kernel values above this overflow when they are squared."""
_NOT_CONVEX = (
    "The kernel is not positive semi-definite on the training rows, so that the problem is not "
    "convex; use another kernel, or add a multiple of the identity."
)


@dataclass(frozen=True)
class KernelFit:
    """f = sum_j coef_j k(x_j, .) + b over the rows ``basis``, and each row's dual slope.

    ``slopes`` are weighted (C s_i u_i) and sum to zero with an intercept; minus them are the
    multipliers whose function is f itself, up to the gap.
    """

    solution: Solution
    basis: Ints
    coef: Floats
    b: float
    solver: str

    @property
    def slopes(self) -> Floats:
        return np.asarray(self.solution.details["slopes"])

    @property
    def scores(self) -> Floats:
        return np.asarray(self.solution.details["scores"])

    @property
    def on_kink(self) -> NDArray[np.bool_]:
        return np.asarray(self.solution.details["on_kink"])


def solve_kernel(
    kernel: KernelRows,
    loss: ScoreLoss,
    y: Floats,
    weight: Floats,
    *,
    C: float,
    fit_intercept: bool = True,
    tol: float = 1e-5,
    max_iter: int = 1_000,
    solver: str = "auto",
    cache_mb: float = 500.0,
) -> KernelFit:
    """Fit by the named solver; "auto" picks one by the number of rows and the kernel's rank."""
    rows = LossRows(loss, y, C * weight)
    task = _Task(kernel, rows, fit_intercept, tol, tol, max_iter, 1e6 * cache_mb)
    if solver != "auto":
        return task.by(solver)
    # on few rows the last digits cost next to nothing
    aim = min(tol, FINE) if rows.n_rows <= FEW_ROWS else tol
    fit = replace(task, tol=aim).by_the_best()
    found = fit.solution
    if not found.converged and found.gap <= tol * max(found.value, rows.least):
        fit = replace(fit, solution=replace(found, why_stopped="gap"))
    return _centred(fit, rows) if fit_intercept else fit


def _centred(fit: KernelFit, rows: LossRows) -> KernelFit:
    """The middle intercept where several are best, as SVC takes it, not the one met first."""
    found = fit.solution
    if not isinstance(rows.loss, HingeLoss | AbsoluteError) or not found.converged:
        return fit
    b = middle_intercept(rows.loss, fit.scores - fit.b, rows.y, rows.weight, fit.b)
    scores = fit.scores + (b - fit.b)
    worse = rows.value(scores) - rows.value(fit.scores)
    # moved by rounding onto another piece of the loss: stay
    if b == fit.b or worse > 1e-12 * found.value:
        return fit
    moved = replace(
        found,
        point=np.append(found.point[:-1], b),
        details=MappingProxyType({**found.details, "scores": scores}),
    )
    return replace(fit, solution=moved, b=b)


@dataclass(frozen=True)
class _Task:
    """One problem, for whichever solver; a gap of ``tol`` is the aim, one of ``enough`` will do."""

    kernel: KernelRows
    rows: LossRows
    fit_intercept: bool
    tol: float
    enough: float
    max_iter: int
    cache_bytes: float

    def by_the_best(self) -> KernelFit:
        n, pairs = self.rows.n_rows, self._pairs_do()
        cheap = int(np.sqrt(BASIS_SQUARED_A_ROW * n)) if pairs else n // 6
        few = n <= (SMO_UP_TO if pairs else WHOLE_MATRIX_UP_TO)
        # pairs creep on a matrix of low rank, which only a gaussian kernel is unlikely to have
        if not few or self.kernel.kernel.name != "rbf":
            found = self._by_low_rank(cheap)
            if found is not None:
                return found
        if not pairs:
            return self.by("block")
        patient = self.max_iter if n > SMO_UP_TO else min(self.max_iter, PATIENCE_WITH_PAIRS)
        found = replace(self, max_iter=patient).by("smo")
        if self._will_do(found):
            return found
        other = self._by_low_rank(n // 3) or self.by("block")
        return min(found, other, key=lambda fit: fit.solution.gap)

    def _will_do(self, fit: KernelFit) -> bool:
        return fit.solution.gap <= self.enough * max(fit.solution.value, self.rows.least)

    def _pairs_do(self) -> bool:
        """Whether pairs of multipliers are a good road: a kink on every row keeps most still."""
        from laconic.kernel.smo import knows

        return bool(self.rows.has_kink.all()) and self.fit_intercept and knows(self.rows.loss)

    def by(self, solver: str) -> KernelFit:
        kernel, rows, tol, most = self.kernel, self.rows, self.tol, self.max_iter
        if solver == "low-rank":
            found = self._by_low_rank()
            assert found is not None
            return found
        if solver == "smo":
            from laconic.kernel.smo import solve_smo

            if not self.fit_intercept:
                raise ValueError("solver='smo' moves pairs and needs an intercept; use 'block'.")
            solution = solve_smo(kernel, rows, tol=tol, max_iter=most, cache_bytes=self.cache_bytes)
        elif solver == "active-set":
            from laconic.kernel.active_set import solve_active_set

            solution = solve_active_set(
                kernel, rows, fit_intercept=self.fit_intercept, tol=tol, max_iter=20 * most
            )
        else:
            from laconic.kernel.block import solve_block

            solution = solve_block(
                kernel, rows, fit_intercept=self.fit_intercept, tol=tol, max_iter=most,
                cache_bytes=self.cache_bytes,
            )  # fmt: skip
        beta = solution.point[:-1]
        basis = np.flatnonzero(beta)
        return KernelFit(solution, basis, beta[basis], float(solution.point[-1]), solver)

    def _by_low_rank(self, most: int | None = None) -> KernelFit | None:
        """On a basis; if of at most ``most`` rows, None where those or the gap do not do."""
        kernel, rows, tol = self.kernel, self.rows, self.tol
        size = float(kernel.diagonal.max(initial=0.0)) or 1.0
        limit = kernel.n_rows if most is None else max(min(WIDEST_BASIS, most), 1)
        least = LEFT_OVER * size * min(1.0, tol / 1e-5)
        while True:
            span = find_span(kernel, limit, least, patience=np.inf if most is None else 1e3 * least)
            if most is not None and float(span.left.max()) > least:
                return None
            found = solve_span(
                kernel, rows, span, fit_intercept=self.fit_intercept, tol=tol,
                max_iter=self.max_iter,
            )  # fmt: skip
            missed = found.gap > tol * max(found.value, rows.least)
            finer = least > 1e-13 * size and span.rank < limit
            if not missed or not finer or found.details["remainder"] < 0.1 * found.gap:
                break
            least *= 1e-2
        w, b = found.point[:-1], float(found.point[-1])
        fit = KernelFit(found, span.basis, span.coefficients(w), b, "low-rank")
        return fit if most is None or self._will_do(fit) else None


@dataclass(frozen=True)
class KernelProblem:
    """A kernel and the training rows it is used on."""

    kernel: Kernel
    table: Any
    rows: KernelRows

    @classmethod
    def read(cls, model: Any, training: Training, n_given: int) -> KernelProblem:
        """Check the parameters of ``model`` against the rows."""
        table = numbers_of(training.table)
        return cls.of(model, table, training.weight, training.kept, n_given)

    @classmethod
    def of(cls, model: Any, table: Any, weight: Floats, kept: Ints, n_given: int) -> KernelProblem:
        if model.kernel == "precomputed":
            matrix = _read_matrix(table, kept, n_given)
            kernel = Kernel("precomputed")
            return cls(kernel, matrix, KernelRows(kernel, matrix))
        function = model.kernel if callable(model.kernel) else None
        name = "function" if function is not None else model.kernel
        gamma = _gamma(model.gamma, table, weight)
        kernel = Kernel(name, gamma, int(model.degree), float(model.coef0), function)
        if function is not None:
            kernel.between(table[:2], table[: min(3, table.shape[0])])  # speaks up early
        elif not float(kernel.diagonal(table).max(initial=0.0)) < LARGEST_VALUE:
            raise ValueError(
                f"kernel={name!r} has values above {LARGEST_VALUE:g} on the training rows; scale "
                "X, for instance with StandardScaler."
            )
        return cls(kernel, table, KernelRows(kernel, table))


def _read_matrix(table: Any, kept: Ints, n_given: int) -> Floats:
    matrix = table.toarray() if issparse(table) else table
    if matrix.shape[1] != n_given:
        raise ValueError(
            f"kernel='precomputed' needs a square matrix, one row and one column per training "
            f"row; X has {n_given} rows and {matrix.shape[1]} columns."
        )
    matrix = matrix[:, kept] if len(kept) < n_given else matrix
    if not np.isfinite(matrix).all():
        raise ValueError("The precomputed kernel matrix X holds values that are not finite.")
    size = float(np.abs(matrix).max(initial=0.0))
    if float(np.abs(matrix - matrix.T).max(initial=0.0)) > 1e-8 * size:
        raise ValueError(
            "The precomputed kernel matrix X is not symmetric; pass k(X_train, X_train), or "
            "(X + X.T) / 2 if the difference is rounding."
        )
    norms = np.sqrt(np.maximum(np.diagonal(matrix), 0.0))
    # no cosine exceeds one: a cheap test that most indefinite matrices fail
    if any((np.abs(matrix[i]) > norms[i] * norms + 1e-8 * size).any() for i in range(len(norms))):
        raise ValueError(_NOT_CONVEX)
    return np.asarray(matrix, dtype=np.float64)


def _gamma(gamma: Any, table: Any, weight: Floats) -> float:
    if gamma == "auto":
        return 1.0 / float(table.shape[1])
    if gamma != "scale":
        return float(gamma)
    part = weight / weight.sum()
    mean = float(np.mean(part @ table))
    if issparse(table):
        variance = float(np.mean(part @ table.multiply(table))) - mean * mean
    else:
        # by blocks that stay in cache, as a table of squares would not
        blocks = (slice(start, start + 4_096) for start in range(0, len(table), 4_096))
        variance = float(np.mean(sum(part[rows] @ (table[rows] - mean) ** 2 for rows in blocks)))
    return 1.0 / float(table.shape[1] * variance) if variance > 0 else 1.0


@dataclass(frozen=True)
class KernelFits:
    """One fit per score, expanded on training rows or on ``points``."""

    problem: KernelProblem
    fits: tuple[KernelFit, ...]
    points: Floats | None = None

    @property
    def _on_rows(self) -> list[tuple[int, KernelFit]]:
        """Fits whose multipliers are the coefficients: neither on a basis nor on landmarks."""
        if self.points is not None:
            return []
        return [(k, fit) for k, fit in enumerate(self.fits) if fit.solver != "low-rank"]

    @property
    def expanded(self) -> NDArray[np.bool_]:
        """Rows that belong to the support because the score is written on them."""
        used = np.zeros(self.problem.rows.n_rows, bool)
        for _, fit in self._on_rows:
            used[fit.basis] = True
        return used

    def multipliers(self) -> Floats:
        out = np.stack([-fit.slopes for fit in self.fits])
        for k, fit in self._on_rows:
            out[k] = 0.0
            out[k, fit.basis] = fit.coef
        return out

    def vectors(self, used: NDArray[np.bool_]) -> Any:
        if self.problem.kernel.name == "precomputed":
            return np.empty((0, 0))
        return self.problem.table[np.flatnonzero(used)]

    def basis(self) -> Ints:
        """Rows that the scores are written on, none with landmarks."""
        found = np.unique(np.concatenate([fit.basis for fit in self.fits]))
        return found.astype(np.int64)

    def expansion(self) -> tuple[Kernel, Any, Floats]:
        """Kernel, vectors and coefficients of the scores; a given matrix has no vectors."""
        if self.points is not None:
            return self.problem.kernel, self.points, np.stack([fit.coef for fit in self.fits])
        basis = self.basis()
        coef = np.zeros((len(self.fits), len(basis)))
        for k, fit in enumerate(self.fits):
            coef[k, np.searchsorted(basis, fit.basis)] = fit.coef
        precomputed = self.problem.kernel.name == "precomputed"
        return self.problem.kernel, None if precomputed else self.problem.table[basis], coef


def fit_rows(
    model: Any, problem: KernelProblem, loss: ScoreLoss, targets: list[Floats], weight: Floats,
    max_iter: int | None = None,
) -> KernelFits:  # fmt: skip
    """All functions of the kernel; ``max_iter`` is the model's unless given."""
    most = int(model.max_iter) if max_iter is None else int(max_iter)
    try:
        # the same bits whatever the number of threads; what overflows is a step too far
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            fits = tuple(
                solve_kernel(
                    problem.rows, loss, target, weight, C=float(model.C),
                    fit_intercept=bool(getattr(model, "fit_intercept", True)),
                    tol=float(model.tol), max_iter=most, solver=getattr(model, "solver", "auto"),
                    cache_mb=float(model.cache_size),
                )
                for target in targets
            )  # fmt: skip
    except np.linalg.LinAlgError as error:
        raise ValueError(_NOT_CONVEX) from error
    return KernelFits(problem, fits)


def fit_landmarks(
    model: Any, problem: KernelProblem, loss: ScoreLoss, targets: list[Floats], weight: Floats
) -> KernelFits:
    """Functions of k-means points only (Nystroem)."""
    points = _landmarks(model, problem, weight)
    span, used = landmark_span(
        problem.kernel, problem.table, points, 1e6 * float(model.cache_size),
        leave_over=bool(model.exact_gap),
    )  # fmt: skip
    fits = []
    for target in targets:
        found = solve_span(
            problem.rows if model.exact_gap else None,
            LossRows(loss, target, float(model.C) * weight),
            span, fit_intercept=True, tol=float(model.tol), max_iter=int(model.max_iter),
        )  # fmt: skip
        w, b = found.point[:-1], float(found.point[-1])
        none = np.zeros(0, np.int64)
        fits.append(KernelFit(found, none, span.coefficients(w), b, "landmarks"))
    return KernelFits(problem, tuple(fits), points[used])


def _landmarks(model: Any, problem: KernelProblem, weight: Floats) -> Floats:
    """Centres of k-means, on at most 20,000 rows at even places."""
    from sklearn.cluster import KMeans

    n, wanted = problem.rows.n_rows, int(model.landmarks)
    if problem.kernel.name == "precomputed":
        raise ValueError("landmarks need rows, and kernel='precomputed' has none; leave it None.")
    if wanted > n:
        raise ValueError(f"landmarks={wanted} exceeds the {n} training rows; use fewer.")
    every = max(1, n // max(KMEANS_ROWS, 2 * wanted))
    some = problem.table[::every]
    some = some.toarray() if issparse(some) else some
    # centres need not be exact: single precision, around the mean and in units of the largest
    mean = some.mean(axis=0)
    size = float(np.abs(some - mean).max(initial=0.0)) or 1.0
    some = ((some - mean) / size).astype(np.float32)
    different = len(np.unique(some, axis=0)) if wanted > 0.1 * len(some) else len(some)
    means = KMeans(
        min(wanted, different), n_init=1, max_iter=10, init="random",
        random_state=seed_of(model.random_state),
    ).fit(some, sample_weight=weight[::every])  # fmt: skip
    return np.asarray(mean + size * means.cluster_centers_.astype(np.float64))
