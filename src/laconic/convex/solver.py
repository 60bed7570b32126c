"""Certified minimisers of a penalised convex risk over linear scores z = w.x + b.

    P(w, b) = |w|^2 / 2 + C sum_i s_i phi(z_i, y_i)

Newton's method for any loss, normal equations for the squared ones, scikit-learn's optimisers for
the joint multinomial loss. An optimiser carries scores along and puts rows exactly on their kink;
its coefficients do so only up to rounding. Every gap here is recomputed from the coefficients that
are handed out.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import LinAlgWarning, qr, svd
from scipy.sparse import issparse
from scipy.special import log_softmax, rel_entr
from sklearn.exceptions import ConvergenceWarning

from laconic._typing import Floats, Ints
from laconic.convex.least_squares import solve_least_squares
from laconic.convex.tuning import (
    MOST_DENSE,
    MOST_EXCUSED,
    MOST_NEWTON_COLUMNS,
    MOST_ROWS_ON_KINK,
    NEWTON_STEPS,
    POLISHED,
    POLISHING_STEPS,
    POLISHINGS,
    RESTARTS,
    SECANT_STEPS,
    SMALL_TABLE,
    WIDEST,
)
from laconic.core.losses import (
    AbsoluteError,
    HingeLoss,
    HuberError,
    ScoreLoss,
    Scores,
    Solution,
    SquaredError,
    SquaredLoss,
    TruncatedMultinomial,
    WhyStopped,
    fenchel_young,
    middle_intercept,
)
from laconic.data.source import ArraySource, Block, Source
from laconic.linear.solvers.multinomial import solve_multinomial
from laconic.linear.solvers.newton import solve_linear
from laconic.linear.solvers.rows import dense


def solve_certified(
    source: Source,
    loss: ScoreLoss,
    *,
    C: float,
    fit_intercept: bool = True,
    tol: float = 1e-6,
    max_iter: int = 100,
    start: Floats | None = None,
) -> Solution:
    """The optimum with ``gap <= tol * value``, or as near as the rounding of the scores allows.

    Least squares are solved directly, other losses by :class:`_Runs` of Newton's method; rows that
    are far fewer than their columns are first turned into as many columns as rows.
    """
    if isinstance(source, ArraySource) and _is_wide(source.X):
        return _turned(
            source, loss, C=C, fit_intercept=fit_intercept, tol=tol, max_iter=max_iter, start=start
        )
    if start is None and isinstance(loss, SquaredLoss | SquaredError):
        k = 2.0 if isinstance(loss, SquaredLoss) else 1.0
        direct = solve_least_squares(source, C=C, k=k, fit_intercept=fit_intercept, tol=tol)
        if direct is None:
            direct = _by_singular_values(source, loss, C, k, fit_intercept, tol)
        if direct is not None:
            return direct
        # one Newton step is exact from anywhere: no rehearsal on fewer rows
        start = np.zeros(next(iter(source.map(lambda block: block.X.shape[1]))) + 1)
    runs = _Runs(source, loss, C, fit_intercept, tol, max_iter)
    return _judged(runs.centred(runs.polished(runs.repeated(start))), source, loss, C, tol)


def _is_wide(X: Any) -> bool:
    """Whether a square of the columns would be far larger than the rows and their square."""
    n_rows, n_columns = X.shape
    return bool(n_columns > max(n_rows, WIDEST) and n_rows * n_columns <= MOST_DENSE)


def _turned(
    source: ArraySource, loss: ScoreLoss, *, C: float, start: Floats | None, **options: Any
) -> Solution:
    """The optimum is a sum of rows: with X' = Q R it is w = Q v, |w| = |v|, and v solves R'."""
    Q, R = qr(dense(source.X).T, mode="economic")
    turned = ArraySource(np.ascontiguousarray(R.T), source.y, source.weight)
    begin = None if start is None else np.append(Q.T @ start[:-1], start[-1])
    found = solve_certified(turned, loss, C=C, start=begin, **options)
    return replace(found, point=np.append(Q @ found.point[:-1], found.point[-1]))


def _judged(found: Solution, source: Source, loss: ScoreLoss, C: float, tol: float) -> Solution:
    """Stalled, unless the gap of the coefficients is small or all rounding."""
    if not found.converged or found.gap <= tol * found.value:
        return found
    excused = min(_rounding(source, loss, C, found.point), MOST_EXCUSED * found.value)
    return found if found.gap <= excused else replace(found, why_stopped="stalled")


@dataclass(frozen=True)
class _Runs:
    """Runs of :func:`~laconic.linear.solvers.newton.solve_linear`, each from the last one's end."""

    source: Source
    loss: ScoreLoss
    C: float
    fit_intercept: bool
    tol: float
    max_iter: int

    def run(
        self, begin: Floats | None, aim: float, most: int, done: int, loss: ScoreLoss | None = None
    ) -> Solution:
        """One run, with the gap of the coefficients themselves."""
        loss = loss or self.loss
        # what overflows is a step too far, or a gap that certifies nothing
        with np.errstate(over="ignore", invalid="ignore"):
            found = solve_linear(
                self.source, loss, C=self.C, fit_intercept=self.fit_intercept, tol=aim,
                max_iter=most, start=begin,
            )  # fmt: skip
            point = _settled(self.source, loss, found, self.fit_intercept)
            value, gap = linear_gap(
                self.source, loss, self.C, point, found.details["dual"],
                fit_intercept=self.fit_intercept,
            )  # fmt: skip
        return replace(found, point=point, value=value, gap=gap, n_iter=found.n_iter + done)

    def repeated(self, start: Floats | None) -> Solution:
        """A restart from the coefficients sheds the rounding that one run has gathered."""
        best = self.run(start, self.tol, self.max_iter, 0)
        if isinstance(self.loss, HuberError) and best.why_stopped == "stalled":
            best = self._with_secants(best)
        for _ in range(RESTARTS):
            close = best.gap <= self.tol * best.value
            if close or not best.converged or best.n_iter >= self.max_iter:
                break
            again = self.run(best.point, self.tol, self.max_iter - best.n_iter, best.n_iter)
            best = again if again.gap < best.gap else replace(best, n_iter=again.n_iter)
        return best

    def _with_secants(self, best: Solution) -> Solution:
        """Huber's loss has no curvature far out: where few rows are near, Newton's steps are wild.

        Steps with the curvature of touching parabolas are tame but slow; a few of them, in turn
        with runs of Newton's method, find the rows that end near.
        """
        assert isinstance(self.loss, HuberError)
        tame = _SecantHuber(self.loss.epsilon)
        while best.why_stopped == "stalled" and best.n_iter < self.max_iter:
            for loss, steps in ((tame, SECANT_STEPS), (self.loss, NEWTON_STEPS)):
                steps = min(steps, self.max_iter - best.n_iter)
                found = self.run(best.point, self.tol, steps, best.n_iter, loss)
                better = found if found.value <= best.value else best
                best = replace(better, n_iter=found.n_iter, why_stopped=found.why_stopped)
                if found.converged:
                    return best
            if best.n_iter < self.max_iter:
                best = replace(best, why_stopped="stalled")
        return best

    def polished(self, best: Solution) -> Solution:
        """A small table gets a few more iterations, towards rounding: they cost little there."""
        if not best.converged or best.n_iter == 0 or self.source.n_rows > SMALL_TABLE:
            return best
        for _ in range(POLISHINGS):
            closer = self.run(best.point, 1e-15, POLISHING_STEPS, best.n_iter)
            if closer.gap >= best.gap:
                break
            best = replace(closer, why_stopped="gap")
            if best.gap <= POLISHED * best.value:
                break
        return best

    def centred(self, best: Solution) -> Solution:
        """The middle intercept where several are best, as for a median of two numbers.

        Else it would be the one that the order of the rows leads to.
        """
        flat = isinstance(self.loss, HingeLoss | AbsoluteError)
        if not best.converged or not self.fit_intercept or not flat:
            return best
        b = middle_intercept(self.loss, *_scored(self.source, best.point), float(best.point[-1]))
        if b == best.point[-1]:
            return best
        point = np.append(best.point[:-1], b)
        dual = best.details["dual"]
        value, gap = linear_gap(self.source, self.loss, self.C, point, dual)
        # moved by rounding onto another piece of the loss: stay
        if value > best.value * (1.0 + 1e-12):
            return best
        return replace(best, point=point, value=value, gap=gap)


def _scored(source: Source, point: Floats) -> tuple[Floats, Floats, Floats]:
    """Scores without the intercept, targets and weights of all rows."""

    def part(block: Block) -> tuple[Floats, Floats, Floats]:
        s = np.ones(len(block)) if block.weight is None else block.weight
        return np.asarray(block.X @ point[:-1]), np.asarray(block.y, dtype=np.float64), s

    z, y, s = (np.concatenate(p) for p in zip(*source.map(part), strict=True))
    return z, y, s


@dataclass(frozen=True)
class _SecantHuber(HuberError):
    """Huber's loss with the curvature of the parabola that touches it at r and at -r."""

    def curvature(self, z: Scores, y: Scores = 0.0) -> Floats:
        size = np.abs(z - np.asarray(y))
        return np.asarray(self.epsilon / np.maximum(size, self.epsilon))


def _rounding(source: Source, loss: ScoreLoss, C: float, point: Floats) -> float:
    """How far the objective may move when every score moves by its rounding error."""
    w, b = point[:-1], float(point[-1])

    def part(block: Block) -> float:
        s = np.ones(len(block)) if block.weight is None else block.weight
        y = np.asarray(block.y, dtype=np.float64)
        z = np.asarray(block.X @ w) + b
        size = np.asarray(abs(block.X) @ np.abs(w)) + abs(b) + np.abs(y)
        # errors of a sum of d products: about sqrt(d) units in the last place
        off = np.finfo(float).eps * (1.0 + np.sqrt(len(w))) * size
        moved = np.maximum(loss.value(z + off, y), loss.value(z - off, y)) - loss.value(z, y)
        return float(s @ np.maximum(moved, 0.0))

    return C * float(source.sum(part))


def _settled(source: Source, loss: ScoreLoss, found: Solution, fit_intercept: bool) -> Floats:
    """The coefficients, moved the least so that rows held on their kink really stand on it."""
    held = np.flatnonzero(found.details["on_kink"])
    if not 0 < len(held) <= MOST_ROWS_ON_KINK:
        return np.asarray(found.point)

    def part(block: Block) -> tuple[Floats, Floats]:
        first, last = np.searchsorted(held, (block.start, block.stop))
        X = block.X[held[first:last] - block.start]
        X = X.toarray() if issparse(X) else X
        y = np.asarray(block.y, dtype=np.float64)[held[first:last] - block.start]
        return X, loss.kink(y).position

    parts = list(source.map(part))
    X = np.concatenate([rows for rows, _ in parts])
    miss = np.concatenate([place for _, place in parts])
    miss -= X @ found.point[:-1] + found.point[-1]
    table = np.column_stack([X, np.full(len(X), float(fit_intercept))])
    # least-norm move: equal rows on a kink make the system singular
    return np.asarray(found.point + np.linalg.lstsq(table, miss, rcond=1e-10)[0])


def linear_gap(
    source: Source,
    loss: ScoreLoss,
    C: float,
    point: Floats,
    dual: Floats,
    *,
    fit_intercept: bool = True,
) -> tuple[float, float]:
    """Objective at (w, b) and a bound on its excess, from any dual slopes u_i.

    With an intercept the positive or the negative slopes are shrunk until sum_i s_i u_i = 0; then
    gap = C sum_i s_i (phi(z_i) + phi*(u_i) - u_i z_i) + |w + C sum_i s_i u_i x_i|^2 / 2.
    """
    w, b = point[:-1], float(point[-1])
    # towards zero, where every conjugate is finite: rounding may have left the domain by an ulp
    dual = dual * (1.0 - 1e-15)
    if fit_intercept:
        dual = _balanced(source, dual)

    def part(block: Block) -> tuple[Floats, Floats]:
        s = np.ones(len(block)) if block.weight is None else block.weight
        y = np.asarray(block.y, dtype=np.float64)
        z = np.asarray(block.X @ w) + b
        u = dual[block.rows]
        sums = [s @ loss.value(z, y), s @ fenchel_young(loss, z, u, y)]
        return np.array(sums), np.asarray(block.X.T @ (s * u))

    (losses, misfit), pull = source.sum(part)
    apart = w + C * pull
    value = float(w @ w) / 2.0 + C * float(losses)
    return value, C * float(misfit) + float(apart @ apart) / 2.0


def _balanced(source: Source, dual: Floats) -> Floats:
    def part(block: Block) -> Floats:
        u = dual[block.rows] if block.weight is None else block.weight * dual[block.rows]
        return np.array([np.maximum(u, 0.0).sum(), np.maximum(-u, 0.0).sum()])

    up, down = source.sum(part)
    if up == down:
        return dual
    if up > down:
        return np.where(dual > 0, dual * (down / up), dual)
    return np.where(dual < 0, dual * (up / down), dual)


def _by_singular_values(
    source: Source, loss: ScoreLoss, C: float, k: float, fit_intercept: bool, tol: float
) -> Solution | None:
    """Least squares where C makes the normal equations singular; None where the table is large.

    With A = diag(sqrt s) (X - mean) = U S V' and t the target alike, both exact for any C:
    w = V S / (S^2 + 1 / (C k)) U't, and the dual slopes are -k (t - A w) / sqrt s.
    """
    if not isinstance(source, ArraySource) or source.X.shape[0] * source.X.shape[1] > MOST_DENSE:
        return None
    X = dense(source.X)
    s = np.ones(len(X)) if source.weight is None else source.weight
    y, root = np.asarray(source.y, dtype=np.float64), np.sqrt(s)
    mean, level = np.zeros(X.shape[1]), 0.0
    if fit_intercept:
        mean, level = s @ X / s.sum(), float(s @ y / s.sum())
    A, t = root[:, None] * (X - mean), root * (y - level)
    U, S, V = svd(A, full_matrices=False)
    # the rank that numpy and MATLAB take: below it singular values are rounding
    kept = max(A.shape) * np.finfo(float).eps * S.max(initial=0.0) < S
    U, S, V = U[:, kept], S[kept], V[kept]
    inside = U.T @ t
    outside = t - U @ inside
    # twice: what rounding leaves inside would be multiplied by C
    outside -= U @ (U.T @ outside)
    if fit_intercept:
        outside -= root * (root @ outside) / s.sum()
    part = 1.0 / (C * k)
    w = V.T @ (S / (S * S + part) * inside)
    point = np.append(w, level - float(mean @ w) if fit_intercept else 0.0)
    dual = -k * (outside + U @ (part / (S * S + part) * inside)) / root
    value, gap = linear_gap(source, loss, C, point, dual, fit_intercept=fit_intercept)
    if not np.isfinite(value):
        return None
    return _judged(Solution(point, value, gap, 1, "gap"), source, loss, C, tol)


def solve_joint_logistic(
    X: Any,
    y: Ints,
    weight: Floats,
    *,
    C: float,
    fit_intercept: bool = True,
    tol: float = 1e-6,
    max_iter: int = 100,
    start: Floats | None = None,
) -> Solution:
    """Joint logistic scores of K classes; ``point`` is K x (d + 1), (w_k, b_k) in each row.

    The loss is logsumexp(F_i) - F_i,y_i with F = X W' + b. Any probabilities A with
    sum_i s_i (A_ik - [y_i = k]) = 0 for each class k certify, with
    W_A = -C sum_i s_i (A_i - e_y_i) x_i',

        gap = C sum_i s_i KL(A_i || softmax(F_i)) + |W - W_A|^2 / 2  >=  P - P*.

    scikit-learn's stopping rules are not a bound on the objective: its optimiser is started again
    from where it stopped, with a smaller tolerance, until ``gap <= tol * value``. Where it does not
    get there (columns of very different size), the multinomial Newton method goes on.
    """
    from sklearn.linear_model import LogisticRegression

    problem = _Joint(ArraySource(X, y, weight), C, fit_intercept, int(y.max()) + 1)
    engine = LogisticRegression(
        C=C,
        fit_intercept=fit_intercept,
        solver="lbfgs" if issparse(X) or X.shape[1] > MOST_NEWTON_COLUMNS else "newton-cholesky",
        max_iter=max_iter,
        warm_start=True,
    )
    if start is not None:
        engine.coef_, engine.intercept_ = start[:, :-1].copy(), start[:, -1].copy()
        engine.classes_ = np.arange(problem.n_classes)
    nowhere = np.zeros((problem.n_classes, X.shape[1] + 1))
    best, n_iter = (nowhere, *problem.certify(nowhere)), 0
    why: WhyStopped = "max_iter"
    # scikit-learn stops by the gradient; it is lowered until the certified gap is small enough
    gradient_tol = 1e-3
    for _ in range(8):
        point = _run(engine, X, y, weight, gradient_tol)
        n_iter += int(np.max(engine.n_iter_))
        if not np.isfinite(point).all():
            why = "stalled"
            break
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
    if why == "stalled":
        own = solve_multinomial(
            problem.source, TruncatedMultinomial((1.0,) * problem.n_classes), C=C,
            fit_intercept=fit_intercept, tol=tol, max_iter=max_iter, start=best[0],
        )  # fmt: skip
        if own.gap < best[2]:
            best, n_iter, why = (
                (own.point, own.value, own.gap),
                n_iter + own.n_iter,
                own.why_stopped,
            )
    return Solution(best[0], best[1], best[2], n_iter, why)


def _run(engine: Any, X: Any, y: Ints, weight: Floats, gradient_tol: float) -> Floats:
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
        A = _balanced_classes(P, y, s) if self.fit_intercept else P
        misfit = self.C * float(s @ rel_entr(A, P).sum(axis=1))
        residual = s[:, None] * A
        residual[np.arange(y.size), y] -= s
        pull = self.source.sum(lambda block: np.asarray(block.X.T @ residual[block.rows]))
        apart = W + self.C * pull.T
        return value, max(misfit, 0.0) + float(np.sum(apart**2)) / 2.0

    def _log_proba(self, block: Block, point: Floats) -> Floats:
        return np.asarray(log_softmax(block.X @ point[:, :-1].T + point[:, -1], axis=1))


def _balanced_classes(P: Floats, y: Ints, s: Floats) -> Floats:
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
