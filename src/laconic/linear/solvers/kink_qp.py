"""The inner problem of a Newton step across kinks: a strictly convex QP with hinges.

minimise over p   1/2 p'Hp + G'p + sum_i ceiling_i max(0, offset_i + row_i.p)

whose dual is a box: 0 <= v <= ceiling, p = -H^-1 (G + rows'v). ``v_i`` strictly inside its box
means that the row ends exactly on its kink.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh, solve_triangular

from laconic._typing import Floats, Mask
from laconic.linear.tuning import EXCHANGES, SWEEPS


@dataclass(frozen=True)
class KinkStep:
    """Step ``p``, multipliers ``v`` and the rows that end on their kink."""

    p: Floats
    v: Floats
    free: Mask
    exact: bool


@dataclass(frozen=True)
class Whitened:
    """The Cholesky factor of H, None where it is too ill-conditioned, and rows L^-T."""

    lower: Floats | None
    B: Floats

    @classmethod
    def of(cls, H: Floats, rows: Floats) -> Whitened:
        return cls(_well_conditioned_factor(H), rows[:0]).extended(rows)

    def extended(self, rows: Floats) -> Whitened:
        """With more rows after those already there."""
        if self.lower is None or len(rows) == 0:
            return self
        new = solve_triangular(self.lower, rows.T, lower=True, check_finite=False).T
        return Whitened(self.lower, np.concatenate([self.B, new]))


def kink_step(
    H: Floats,
    G: Floats,
    rows: Floats,
    offset: Floats,
    ceiling: Floats,
    start: Floats,
    whitened: Whitened | None = None,
) -> KinkStep:
    """Solve the QP from the multipliers ``start``; ``exact`` says that the partition is proved.

    ``whitened`` saves the factor and the triangular solves when they are known already.
    Coordinate descent finds the partition in the easy case, exchanges make it exact; where they
    do not settle (H singular, many rows on one hinge) an interior-point method takes over.
    """
    whitened = whitened or Whitened.of(H, rows)
    lower, B = whitened.lower, whitened.B
    if lower is None and not _of_one_scale(H):
        # columns of very different size look singular: the same step in units of the diagonal
        unit = 1.0 / np.sqrt(np.diag(H))
        step = kink_step(unit[:, None] * H * unit, unit * G, unit * rows, offset, ceiling, start)
        return replace(step, p=unit * step.p)
    if len(offset) == 0:
        return KinkStep(_newton(H, G, lower), start[:0], np.zeros(0, bool), True)
    if lower is None:
        inside = _interior_point(H, G, rows, offset, ceiling)
        return _polish(H, G, rows, offset, ceiling, inside)
    p0 = solve_triangular(lower, G, lower=True, check_finite=False)
    v, settled = start, None
    for sweeps in SWEEPS:
        v = _descend(B, p0, offset, ceiling, v, sweeps)
        settled = _exchange(B, p0, offset, ceiling, v, (v > 0) & (v < ceiling))
        if settled is not None:
            break
    else:
        inside = _interior_point(H, G, rows, offset, ceiling)
        v = inside.v
        settled = _exchange(B, p0, offset, ceiling, v, inside.free)
        if settled is None:
            return inside
    v, free = settled
    p = -solve_triangular(lower, p0 + B.T @ v, lower=True, trans=1, check_finite=False)
    return KinkStep(p, v, free, True)


def _of_one_scale(H: Floats) -> bool:
    diagonal = np.diag(H)
    return not bool(diagonal.min() > 0.0) or bool(diagonal.max() < 4.0 * diagonal.min())


def _newton(H: Floats, G: Floats, lower: Floats | None) -> Floats:
    if lower is None:
        return np.asarray(np.linalg.lstsq(H, -G, rcond=None)[0], dtype=np.float64)
    p: Floats = cho_solve((lower, True), -G, check_finite=False)
    return p


def _well_conditioned_factor(H: Floats) -> Floats | None:
    try:
        lower: Floats = np.asarray(np.linalg.cholesky(H), dtype=np.float64)
    except np.linalg.LinAlgError:
        return None
    pivots = np.diag(lower)
    # pivots are square roots: a ratio of 1e-7 is a condition number of about 1e14
    return lower if pivots.min() > 1e-7 * pivots.max() else None


def _descend(
    B: Floats, p0: Floats, offset: Floats, ceiling: Floats, start: Floats, sweeps: int
) -> Floats:
    from laconic.linear.solvers._numba import box_descent

    v = np.clip(start, 0.0, ceiling)
    q = p0 + B.T @ v
    box_descent(B, q, offset, ceiling, v, sweeps, 1e-14 * (1.0 + float(p0 @ p0)))
    return v


def _exchange(
    B: Floats, p0: Floats, offset: Floats, ceiling: Floats, v: Floats, free: Mask
) -> tuple[Floats, Mask] | None:
    """Primal-dual active set: solve on the guessed free rows, move those that disagree."""
    v = v.copy()
    free = free.copy()
    v[~free] = np.where(v[~free] > 0.5 * ceiling[~free], ceiling[~free], 0.0)
    scale = 1.0 + float(np.abs(offset).max(initial=0.0))
    slack = 1e-10 * scale
    for _ in range(EXCHANGES):
        F = np.flatnonzero(free)
        v[F] = 0.0
        q = p0 + B.T @ v
        if len(F):
            # far more rows on their kink than unknowns: a bad guess, and a large singular system
            if len(F) > 4 * B.shape[1]:
                return None
            solved = _least_norm(B[F], offset[F] - B[F] @ q)
            v[F] = solved
            q = q + B[F].T @ solved
        reach = offset - B @ q
        over = free & (v > ceiling)
        under = free & (v < 0)
        leave = over | under
        join = ~free & (((v == 0) & (reach > slack)) | ((v > 0) & (reach < -slack)))
        if not leave.any() and not join.any():
            settled = np.abs(reach[F]).max(initial=0.0) <= 100 * slack
            return (v, free) if settled else None
        v[over] = ceiling[over]
        v[under] = 0.0
        free = (free & ~leave) | join
    return None


def _least_norm(A: Floats, b: Floats) -> Floats:
    """Least-norm x with A A'x = b: duplicated rows share their multiplier."""
    gram = A @ A.T
    try:
        factor = cho_factor(gram, lower=True, check_finite=False)
        pivots = np.diag(factor[0])
        if pivots.min() > 1e-6 * pivots.max():
            x: Floats = cho_solve(factor, b, check_finite=False)
            # one step of iterative refinement: the squared condition of A A' costs digits
            x += cho_solve(factor, b - gram @ x, check_finite=False)
            return x
    except LinAlgError:
        pass
    values, vectors = eigh(gram, check_finite=False)
    keep = values > 1e-12 * values[-1]
    basis = vectors[:, keep]
    result: Floats = basis @ ((basis.T @ b) / values[keep])
    return result


def _interior_point(
    H: Floats, G: Floats, rows: Floats, offset: Floats, ceiling: Floats
) -> KinkStep:
    """Mehrotra's predictor-corrector on the box dual; one (d x d) factor per iteration.

    ``over`` and ``under`` split offset + row.p into its positive and negative part; they are the
    multipliers of v <= ceiling and of v >= 0.
    """
    n, d = rows.shape
    p = np.zeros(d)
    v = 0.5 * ceiling
    room = 0.5 * ceiling
    spread = max(float(np.abs(offset).mean()), 1e-8)
    over = np.maximum(offset, 0.0) + spread
    under = np.maximum(-offset, 0.0) + spread
    scale_dual = 1.0 + float(np.abs(G).max(initial=0.0)) + float(ceiling.sum())
    for _ in range(60):
        dual = H @ p + G + rows.T @ v
        primal = offset + rows @ p - over + under
        mu = float(over @ room + under @ v) / (2 * n)
        if (
            mu <= 1e-11 * (1.0 + spread) * float(ceiling.mean())
            and float(np.abs(dual).max()) <= 1e-10 * scale_dual
        ):
            break
        # both bounds of a multiplier eliminated: a weighted least-squares system in p is left
        theta = 1.0 / (over / room + under / v)
        factor = _normal_factor(H, rows, theta)
        if factor is None:
            break

        def move(
            target_over: Floats, target_under: Floats, theta: Floats = theta,
            factor: Floats = factor, dual: Floats = dual, primal: Floats = primal,
            room: Floats = room, over: Floats = over,
            under: Floats = under, v: Floats = v,
        ) -> tuple[Floats, Floats, Floats, Floats]:  # fmt: skip
            bend = -primal + target_over / room - target_under / v
            dp = cho_solve((factor, True), -dual + rows.T @ (theta * bend), check_finite=False)
            dv = theta * (rows @ dp - bend)
            return dp, dv, (target_over + over * dv) / room, (target_under - under * dv) / v

        dp, dv, d_over, d_under = move(-over * room, -under * v)
        step = _longest(v, dv, room, over, d_over, under, d_under)
        ahead = float(
            (over + step * d_over) @ (room - step * dv) + (under + step * d_under) @ (v + step * dv)
        ) / (2 * n)
        # Mehrotra's centring: the cube of what the predictor alone would leave
        centre = mu * (max(ahead, 0.0) / mu) ** 3
        dp, dv, d_over, d_under = move(
            centre - over * room + d_over * dv, centre - under * v - d_under * dv
        )
        # stay strictly inside the box
        step = min(1.0, 0.995 * _longest(v, dv, room, over, d_over, under, d_under))
        if step < 1e-10:
            break
        p = p + step * dp
        v = v + step * dv
        room = room - step * dv
        over = over + step * d_over
        under = under + step * d_under
    # a row is free when both gaps to its box are larger than the matching multipliers
    relative = 1.0 / np.maximum(ceiling, 1e-300)
    reach_scale = max(spread, 1e-300)
    free = (v * relative > under / reach_scale) & (room * relative > over / reach_scale)
    return KinkStep(p, np.clip(v, 0.0, ceiling), free, False)


def _normal_factor(H: Floats, rows: Floats, theta: Floats) -> Floats | None:
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = rows * np.sqrt(theta)[:, None]
        M = H + scaled.T @ scaled
    if not np.isfinite(M).all():
        return None
    # near the solution theta spans many decades: a ridge at rounding level lets the factor exist
    ridge = 1e-14 * float(np.trace(M)) / len(M)
    for _ in range(6):
        try:
            return np.asarray(np.linalg.cholesky(M), dtype=np.float64)
        except np.linalg.LinAlgError:
            M[np.diag_indices_from(M)] += ridge
            ridge *= 100.0
    return None


def _longest(
    v: Floats,
    dv: Floats,
    room: Floats,
    over: Floats,
    d_over: Floats,
    under: Floats,
    d_under: Floats,
) -> float:
    step = 1.0
    for at, change in ((v, dv), (room, -dv), (over, d_over), (under, d_under)):
        falling = change < 0
        if falling.any():
            step = min(step, float((-at[falling] / change[falling]).min()))
    return step


def _polish(
    H: Floats, G: Floats, rows: Floats, offset: Floats, ceiling: Floats, inside: KinkStep
) -> KinkStep:
    """Exact multipliers for the interior point's partition when H itself cannot be factored.

    Adding rows' rows over the free rows changes nothing on the constraint surface and makes the
    matrix regular.
    """
    F = np.flatnonzero(inside.free)
    bound = np.where(inside.v > 0.5 * ceiling, ceiling, 0.0)
    bound[F] = 0.0
    A = rows[F]
    weight = max(1.0, float(np.abs(np.diag(H)).max()))
    factor = _well_conditioned_factor(H + weight * (A.T @ A))
    if factor is None or len(F) > 4 * rows.shape[1]:
        return inside
    # the surface A p = -offset makes weight A'A p a constant, moved to the linear term
    linear = G + rows.T @ bound + weight * (A.T @ offset[F])
    B = solve_triangular(factor, A.T, lower=True, check_finite=False).T
    g = solve_triangular(factor, linear, lower=True, check_finite=False)
    solved = _least_norm(B, offset[F] - B @ g)
    p = -solve_triangular(factor, g + B.T @ solved, lower=True, trans=1, check_finite=False)
    v = bound
    v[F] = solved
    reach = offset + rows @ p
    slack = 1e-8 * (1.0 + float(np.abs(offset).max(initial=0.0)))
    wrong = (
        (v < -slack) | (v > ceiling * (1 + 1e-9) + slack)
        | (~inside.free & (v == 0) & (reach > slack))
        | (~inside.free & (v > 0) & (reach < -slack))
    )  # fmt: skip
    if wrong.any():
        return inside
    return KinkStep(p, np.clip(v, 0.0, ceiling), inside.free, True)
