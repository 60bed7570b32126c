"""Joint multinomial logistic regression: scikit-learn's optimisers, with a certificate.

    P(W, b) = |W|^2 / 2 + C sum_i s_i (logsumexp(F_i) - F_i,y_i),   F = X W' + b

Any probabilities A with sum_i s_i (A_ik - [y_i = k]) = 0 for each class k give

    gap = C sum_i s_i KL(A_i || softmax(F_i)) + |W - W_A|^2 / 2  >=  P - P*,
    W_A = -C sum_i s_i (A_i - e_{y_i}) x_i'.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgWarning
from scipy.sparse import issparse
from scipy.special import log_softmax, rel_entr
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from laconic.data.source import ArraySource, Block
from laconic.solvers.solution import Solution, WhyStopped

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


def solve_joint_logistic(
    X: Any,
    y: Codes,
    weight: Floats,
    *,
    C: float,
    fit_intercept: bool = True,
    tol: float = 1e-6,
    max_iter: int = 100,
    start: Floats | None = None,
) -> Solution:
    """Joint logistic scores of K classes; ``point`` is K x (d + 1), (w_k, b_k) in each row.

    scikit-learn's stopping rules are not a bound on the objective: its optimiser is started again
    from where it stopped, with a smaller tolerance, until ``gap <= tol * value``.
    """
    problem = _Joint(ArraySource(X, y, weight), C, fit_intercept, int(y.max()) + 1)
    engine = LogisticRegression(
        C=C,
        fit_intercept=fit_intercept,
        solver="lbfgs" if issparse(X) or X.shape[1] > 300 else "newton-cholesky",
        max_iter=max_iter,
        warm_start=True,
    )
    if start is not None:
        engine.coef_, engine.intercept_ = start[:, :-1].copy(), start[:, -1].copy()
        engine.classes_ = np.arange(problem.n_classes)
    best, n_iter = (np.zeros(0), np.inf, np.inf), 0
    why: WhyStopped = "max_iter"
    gradient_tol = 1e-3
    for _ in range(8):
        point = _run(engine, X, y, weight, gradient_tol)
        n_iter += int(np.max(engine.n_iter_))
        value, gap = problem.certify(point)
        if gap < best[2]:
            best = (point, value, gap)
        if best[2] <= tol * best[1]:
            why = "gap"
            break
        if n_iter >= max_iter:
            break
        gradient_tol /= 30.0
    else:
        why = "stalled"
    return Solution(best[0], best[1], best[2], n_iter, why)


def _run(engine: Any, X: Any, y: Codes, weight: Floats, gradient_tol: float) -> Floats:
    with warnings.catch_warnings():
        # the certificate judges the result, and the caller warns with the gap reached
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", LinAlgWarning)
        engine.set_params(tol=gradient_tol).fit(X, y, sample_weight=weight)
    intercept = np.broadcast_to(engine.intercept_, len(engine.coef_))
    return np.column_stack([engine.coef_, intercept])


@dataclass(frozen=True)
class _Joint:
    source: ArraySource
    C: float
    fit_intercept: bool
    n_classes: int

    def certify(self, point: Floats) -> tuple[float, float]:
        """Objective and certified gap."""
        blocks = list(self.source.map(lambda block: self._log_proba(block, point)))
        logs = np.concatenate(blocks)
        y, s = self.source.y, self.source.weight
        assert y is not None
        assert s is not None
        W = point[:, :-1]
        value = float(np.sum(W**2)) / 2.0 - self.C * float(s @ logs[np.arange(y.size), y])
        P = np.exp(logs)
        A = _balanced(P, y, s) if self.fit_intercept else P
        misfit = self.C * float(s @ rel_entr(A, P).sum(axis=1))
        residual = s[:, None] * A
        residual[np.arange(y.size), y] -= s
        pull = self.source.sum(lambda block: np.asarray(block.X.T @ residual[block.rows]))
        apart = W + self.C * pull.T
        return value, max(misfit, 0.0) + float(np.sum(apart**2)) / 2.0

    def _log_proba(self, block: Block, point: Floats) -> Floats:
        return np.asarray(log_softmax(block.X @ point[:, :-1].T + point[:, -1], axis=1))


def _balanced(P: Floats, y: Codes, s: Floats) -> Floats:
    """Probabilities near P whose weighted sums are those of the classes.

    Classes in excess are shrunk to their sum, and what that frees in each row goes to the classes
    in deficit, in proportion to their deficits: the sums then match exactly.
    """
    wanted = np.bincount(y, s, minlength=P.shape[1])
    found = s @ P
    shrink = np.minimum(wanted / np.maximum(found, 1e-300), 1.0)
    deficit = np.maximum(wanted - found, 0.0)
    if not deficit.any():
        return P
    freed = P @ (1.0 - shrink)
    return np.asarray(P * shrink + freed[:, None] * (deficit / deficit.sum()))
