"""Kernels between rows: gaussian, polynomial, linear, given as a matrix or as a function.

:class:`KernelRows` is what a solver sees: training rows of which it asks blocks and the diagonal.
No square matrix of all rows is formed here; a block is as large as the solver asks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from laconic._typing import Floats, Ints
from laconic.kernel.tuning import FARTHEST, NARROW, SCORE_CHUNK

KernelFunction = Callable[[Any, Any], Any]

NAMES = ("linear", "poly", "precomputed", "rbf")


@dataclass(frozen=True)
class Kernel:
    """k(x, x'): exp(-gamma |x - x'|^2), (gamma x.x' + coef0)^degree, x.x', or a function's.

    A function takes two tables and returns one value per pair, as scikit-learn's pairwise kernels
    do. For ``"precomputed"`` the rows are indices into a matrix that :class:`KernelRows` holds.

    >>> plane = np.array([[0.0, 0.0], [3.0, 4.0]])
    >>> Kernel("rbf", gamma=0.1).between(plane, plane).round(4)
    array([[1.    , 0.0821],
           [0.0821, 1.    ]])
    """

    name: str = "rbf"
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0
    function: KernelFunction | None = None

    def __post_init__(self) -> None:
        if self.function is None and self.name not in NAMES:
            raise ValueError(f"kernel must be one of {NAMES} or a function, got {self.name!r}.")

    def between(self, A: Any, B: Any, *, compiled: bool = False) -> Floats:
        """k(a, b) for every row of A and every row of B; ``compiled`` for many at a time."""
        if self.function is not None:
            return _of_function(self.function, A, B)
        if self.name == "precomputed":
            raise ValueError("A precomputed kernel has no values but those it was given.")
        if self.name == "rbf":
            origin, n = _mean(B), A.shape[0]
            both = _dense(A) - origin, _dense(B) - origin
            if max(_reach(rows, self.gamma) for rows in both) > FARTHEST:
                whole = without_voids(np.concatenate([_dense(A), _dense(B)]), self.gamma)
                both = whole[:n], whole[n:]
            exponents = (
                _exponents_left(both[0], self.gamma) @ _exponents_right(both[1], self.gamma).T
            )
            return _compiled_exponential(exponents) if compiled else _exponential(exponents)
        return self._of_product(_product(A, B))

    def diagonal(self, A: Any) -> Floats:
        """k(a, a) for every row."""
        if self.function is not None:
            rows = range(A.shape[0])
            values = [_of_function(self.function, A[i : i + 1], A[i : i + 1])[0, 0] for i in rows]
            return np.array(values)
        if self.name == "rbf":
            return np.ones(A.shape[0])
        return self._of_product(_squared_norms(A))

    def _of_product(self, product: Floats) -> Floats:
        if self.name == "linear":
            return product
        with np.errstate(over="ignore"):
            return np.asarray((self.gamma * product + self.coef0) ** self.degree)


class KernelRows:
    """Training rows under a kernel; ``table`` is the kernel matrix itself for "precomputed".

    ``places`` are the rows of a given matrix that count, all of them by default.
    """

    def __init__(self, kernel: Kernel, table: Any, places: Ints | None = None) -> None:
        self.kernel = kernel
        self.table = table
        self._places = places
        self.n_rows = int(table.shape[0]) if places is None else len(places)
        self._factors: tuple[Floats, Floats] | None = None
        self._single: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None
        self._diagonal: Floats | None = None

    @property
    def diagonal(self) -> Floats:
        if self._diagonal is None:
            if self.kernel.name == "precomputed":
                whole = np.ascontiguousarray(np.diagonal(self.table), dtype=np.float64)
                self._diagonal = whole if self._places is None else whole[self._places]
            else:
                self._diagonal = self.kernel.diagonal(self.table)
        return self._diagonal

    def block(self, rows: Ints | slice, columns: Ints | slice) -> Floats:
        """Kernel values between two sets of rows."""
        factors = self.factors()
        if factors is not None:
            return _compiled_exponential(factors[0][rows] @ factors[1][columns].T)
        if self.kernel.name == "precomputed":
            if self._places is not None:
                rows, columns = self._places[rows], self._places[columns]
            return np.asarray(self.table[rows][:, columns], dtype=np.float64)
        if self.kernel.function is not None:
            return _of_function(self.kernel.function, self.table[rows], self.table[columns])
        return self.kernel._of_product(_product(self.table[rows], self.table[columns]))

    def single_block(self, rows: Ints | slice, columns: Ints | slice) -> NDArray[np.float32]:
        """The same in single precision: half the memory, for steps that are checked afterwards."""
        factors = self.single_factors()
        if factors is None:
            return self.block(rows, columns).astype(np.float32)
        from laconic.kernel._numba import exponential_single

        values = factors[0][rows] @ factors[1][columns].T
        exponential_single(values.reshape(-1))
        return values

    def factors(self) -> tuple[Floats, Floats] | None:
        """L and R, one row each per training row, with k = exp(L R'); None for other kernels."""
        if self._factors is None and self.kernel.name == "rbf" and self.kernel.function is None:
            centred = _dense(self.table) - _mean(self.table)
            gamma = self.kernel.gamma
            if _reach(centred, gamma) > FARTHEST:
                centred = without_voids(_dense(self.table), gamma)
            self._factors = (_exponents_left(centred, gamma), _exponents_right(centred, gamma))
        return self._factors

    def single_factors(self) -> tuple[NDArray[np.float32], NDArray[np.float32]] | None:
        """:meth:`factors` in single precision."""
        factors = self.factors()
        if factors is not None and self._single is None:
            self._single = (factors[0].astype(np.float32), factors[1].astype(np.float32))
        return self._single

    def subset(self, rows: Ints) -> KernelRows:
        """Some of the rows; a given matrix is shared and not copied."""
        if self.kernel.name == "precomputed":
            places = rows if self._places is None else self._places[rows]
            return KernelRows(self.kernel, self.table, places)
        return KernelRows(self.kernel, self.table[rows])


def in_fours(left: NDArray[Any], right: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Factors of a gaussian kernel with zeros added, for compiled loops that take four at a time.

    >>> in_fours(np.ones((2, 5)), np.ones((2, 5)))[0].shape
    (2, 8)
    """
    more = -left.shape[1] % 4
    if more == 0:
        return left, right
    return np.pad(left, ((0, 0), (0, more))), np.pad(right, ((0, 0), (0, more)))


def scores_of(kernel: KernelRows, beta: Floats) -> Floats:
    """sum_j beta_j k(x_j, x_i) for every row i, in double precision and bounded memory."""
    used = np.flatnonzero(beta)
    out = np.zeros(kernel.n_rows)
    weights = beta[used]
    factors = kernel.factors()
    if factors is not None and factors[0].shape[1] <= NARROW and len(used):
        from laconic.kernel._numba import gaussian_scores

        left, right = in_fours(*factors)
        gaussian_scores(left, np.ascontiguousarray(right[used].T), used, weights, out)
        return out
    step = max(64, min(kernel.n_rows, 4 * SCORE_CHUNK * SCORE_CHUNK // max(len(used), 1)))
    for start in range(0, kernel.n_rows, step):
        here = slice(start, min(start + step, kernel.n_rows))
        for first in range(0, len(used), 4 * SCORE_CHUNK):
            some = slice(first, first + 4 * SCORE_CHUNK)
            out[here] += kernel.block(here, used[some]) @ weights[some]
    return out


def parzen_bandwidth(X: Any, bandwidths: Any = None) -> float:
    """Width of the gaussian kernel whose Parzen density fits the rows best (section 4.1).

    The paper takes the width h that minimises the Kullback-Leibler divergence between the law of
    the rows and the Parzen estimate. Up to a constant this is the leave-one-out log-likelihood,
    maximised here over ``bandwidths`` (by default 10^-2, 10^-1.9, ..., 10^2 times the median
    column deviation). The kernel is ``exp(-|x - x'|^2 / (2 h^2))``, or ``gamma = 1 / (2 h**2)``.

    >>> draw = np.random.default_rng(0)
    >>> h = parzen_bandwidth(draw.normal(size=(200, 2)))
    >>> 0.2 < h < 0.8
    True
    """
    rows = _dense(X)
    if rows.ndim != 2 or len(rows) < 2:
        raise ValueError(f"X must be a table of at least two rows, got shape {rows.shape}.")
    if not np.isfinite(rows).all():
        raise ValueError("X must hold finite numbers; impute or drop the others.")
    n, d = rows.shape
    if bandwidths is None:
        deviation = rows.std(axis=0)
        scale = float(np.median(deviation[deviation > 0])) if deviation.any() else 1.0
        bandwidths = scale * 10.0 ** np.arange(-2.0, 2.01, 0.1)
    widths = np.asarray(bandwidths, dtype=np.float64).ravel()
    if len(widths) == 0 or not (np.isfinite(widths) & (widths > 0)).all():
        raise ValueError("bandwidths must be positive numbers.")
    likelihood = np.zeros(len(widths))
    step = max(1, 4_000_000 // n)
    for start in range(0, n, step):
        part = rows[start : start + step]
        square = _squared_distances(part, rows)
        square[np.arange(len(part)), start + np.arange(len(part))] = np.inf
        nearest = square.min(axis=1)
        for k, width in enumerate(widths):
            scaled = np.exp(-(square - nearest[:, None]) / (2.0 * width * width)).sum(axis=1)
            likelihood[k] += float((np.log(scaled) - nearest / (2.0 * width * width)).sum())
    likelihood -= n * (d * np.log(widths) + np.log(n - 1) + 0.5 * d * np.log(2.0 * np.pi))
    return float(widths[int(np.argmax(likelihood))])


def _squared_distances(A: Floats, B: Floats) -> Floats:
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(A, B, "sqeuclidean"))


def _reach(centred: Floats, gamma: float) -> float:
    """The largest part of an exponent, whose rounding is that of all."""
    return gamma * float(np.einsum("ij,ij->i", centred, centred).max(initial=0.0))


def without_voids(rows: Floats, gamma: float) -> Floats:
    """The rows with wide voids between the numbers of a column closed: no kernel value changes.

    Across a void of width g with gamma g^2 > 750 the kernel is exp(-750) = 0 in any case. One cell
    of 1e38 would else cost the exponents of all rows the digits that they differ by.

    >>> without_voids(np.array([[0.0], [1.0], [1e38]]), gamma=1.0).ravel().round(1).tolist()
    [-9.8, -8.8, 18.6]
    """
    widest = np.sqrt(750.0 / gamma)
    out = np.empty_like(rows)
    for j, cells in enumerate(rows.T):
        values, place = np.unique(cells, return_inverse=True)
        steps = np.minimum(np.diff(values), widest)
        closed = np.concatenate([[0.0], np.cumsum(steps)])[place]
        out[:, j] = closed - closed.mean()
    return out


def _exponents_left(centred: Floats, gamma: float) -> Floats:
    """Rows whose product with :func:`_exponents_right` is -gamma |a - b|^2."""
    size = -gamma * np.einsum("ij,ij->i", centred, centred)
    return np.column_stack([2.0 * gamma * centred, size, np.ones(len(centred))])


def _exponents_right(centred: Floats, gamma: float) -> Floats:
    size = -gamma * np.einsum("ij,ij->i", centred, centred)
    return np.column_stack([centred, np.ones(len(centred)), size])


def _exponential(exponents: Floats) -> Floats:
    np.minimum(exponents, 0.0, out=exponents)
    return np.exp(exponents, out=exponents)


def _compiled_exponential(exponents: Floats) -> Floats:
    from laconic.kernel._numba import exponential

    exponential(exponents.reshape(-1))
    return exponents


def _of_function(function: KernelFunction, A: Any, B: Any) -> Floats:
    values = _dense(function(A, B))
    expected = (A.shape[0], B.shape[0])
    if values.shape != expected:
        raise ValueError(
            f"The kernel function returned shape {values.shape} for {expected[0]} and "
            f"{expected[1]} rows; it must return one value per pair, shape {expected}."
        )
    if not np.isfinite(values).all():
        raise ValueError("The kernel function returned values that are not finite.")
    return values


def _dense(table: Any) -> Floats:
    """float64, whether it was dense or sparse."""
    return np.asarray(table.toarray() if issparse(table) else table, dtype=np.float64)


def _mean(table: Any) -> Floats:
    return np.asarray(table.mean(axis=0), dtype=np.float64).ravel()


def _product(A: Any, B: Any) -> Floats:
    found = A @ B.T
    return np.asarray(found.toarray() if issparse(found) else found, dtype=np.float64)


def _squared_norms(A: Any) -> Floats:
    if issparse(A):
        return np.asarray(A.multiply(A).sum(axis=1), dtype=np.float64).ravel()
    return np.asarray(np.einsum("ij,ij->i", A, A), dtype=np.float64)
