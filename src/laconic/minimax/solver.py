"""The least favourable prior and the minimax rule: which solver, on which table."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

from laconic._typing import Floats, Ints
from laconic.core.solution import Solution
from laconic.minimax.bundle import BayesPass, certified, level_bundle, projected_subgradient
from laconic.minimax.criterion import BayesRisk, Laws, MixtureRule, SparseLaws, zero_one
from laconic.minimax.prior_box import PriorBox
from laconic.minimax.tuning import BUCKETS, MOST_LP_CELLS

SolverName = Literal["auto", "bundle", "subgradient", "lp"]
SOLVERS: tuple[SolverName, ...] = ("auto", "bundle", "subgradient", "lp")


def solve_minimax(
    laws: Laws,
    loss: Floats,
    box: PriorBox,
    *,
    solver: SolverName = "auto",
    tol: float = 1e-8,
    max_iter: int = 5000,
    class_weight: Floats | None = None,
) -> Solution:
    """Maximise V over the box and return the mixture of Bayes rules that attains it.

    ``value`` is the worst risk of ``details["rule"]`` over the box, ``gap`` its distance to
    ``details["lower_bound"]`` = V(point), which no rule beats.

    Sparse laws may hold counts, with ``class_weight`` the number that divides each class: then
    proportional profiles are found exactly and merged (not for the paper's subgradient).
    """
    scale = float(loss.max()) or 1.0
    unit = loss / scale
    if bool((unit == zero_one(len(unit))).all()):
        unit = zero_one(len(unit))  # no negative zeros
    group = None
    if isinstance(laws, SparseLaws):
        if solver != "subgradient" and laws.n_classes > 2:
            laws, group = merge_proportional(laws)
        if class_weight is not None:
            laws = replace(laws, mass=laws.mass / class_weight[laws.klass])
    found = _solve(laws, unit, box, solver, tol / scale, max_iter)
    rule = found.details["rule"]
    labels = rule.labels if group is None else rule.labels[:, group]
    rule = replace(rule, labels=labels, risks=rule.risks * scale)
    details = {
        **found.details,
        "rule": rule,
        "lower_bound": found.details["lower_bound"] * scale,
        "n_merged": laws.n_profiles,
    }
    if "bound_9" in details:
        details["bound_9"] *= scale
    return replace(found, value=found.value * scale, gap=found.gap * scale, details=details)


def _solve(
    laws: Laws, loss: Floats, box: PriorBox, solver: SolverName, tol: float, max_iter: int
) -> Solution:
    if solver == "lp":
        return minimax_lp(laws, loss, box, tol=tol)
    if solver == "auto" and laws.n_classes == 2:
        return two_class_minimax(laws, loss, box, tol=tol)
    method = projected_subgradient if solver == "subgradient" else level_bundle
    return method(BayesPass(laws, loss), box, tol=tol, max_iter=max_iter)


def two_class_minimax(laws: Laws, loss: Floats, box: PriorBox, *, tol: float = 1e-8) -> Solution:
    """Two classes in closed form.

    With ``x = pi_0``, each profile decides class 0 above its break point
    ``x_t = p_1t g_1 / (p_0t g_0 + p_1t g_1)``, where ``g_0 = L_01 - L_00``, ``g_1 = L_10 - L_11``.
    The slope ``V'(x) = R_0 - R_1`` falls by ``p_0t g_0 + p_1t g_1`` there: the maximum is at the
    break point where the slope changes sign, and the two rules around it, mixed, equalise the
    risks.
    """
    law = laws.rows(0, laws.n_profiles)
    gain = np.array([loss[0, 1] - loss[0, 0], loss[1, 0] - loss[1, 1]])
    least = max(box.low[0], 1.0 - box.high[1])
    most = max(min(box.high[0], 1.0 - box.low[1]), least)
    if gain[0] * gain[1] <= 0:
        # one decision is never dearer than the other: V is affine
        always = 0 if gain[0] >= 0 >= gain[1] else 1
        labels = np.full((1, len(law)), always, dtype=np.int32)
        risks = (loss[:, always] * _totals(law))[None]
        x = float(most if risks[0, 0] > risks[0, 1] else least)
        return _mixed(x, labels, risks, np.ones(1), box, tol)
    first, second = law[:, 0] * abs(gain[0]), law[:, 1] * abs(gain[1])
    drop = first + second
    breaks = np.divide(second, drop, out=np.zeros(len(law)), where=drop > 0)
    upper = 0 if gain[0] > 0 else 1  # decided above the break point
    totals = _totals(law)
    slope = float(totals[0] * loss[0, 1 - upper] - totals[1] * loss[1, 1 - upper])
    x = float(np.clip(_crossing(breaks, drop, slope), least, most))
    return _around(x, breaks, law, loss, upper, box, tol)


def _crossing(breaks: Floats, drop: Floats, slope: float) -> float:
    """The point of [0, 1] where a slope that falls by ``drop`` at each break is not positive.

    Breaks are first summed in buckets, and only those of the bucket where the slope changes sign
    are sorted: linear in the number of profiles.
    """
    if slope <= 0:
        return 0.0
    bucket = (breaks * BUCKETS).astype(np.int64)
    fallen = np.cumsum(np.bincount(bucket, drop, minlength=BUCKETS + 1))
    found = int(np.searchsorted(fallen, slope))
    if found > BUCKETS:
        return 1.0
    inside = np.flatnonzero(bucket == found)
    order = inside[np.argsort(breaks[inside])]
    before = fallen[found - 1] if found else 0.0
    place = int(np.searchsorted(before + np.cumsum(drop[order]), slope))
    # the two sums round differently: the last break of the bucket ends the search
    return float(breaks[order[min(place, len(order) - 1)]])


def _totals(law: Floats, rows: NDArray[np.bool_] | None = None) -> Floats:
    """Sums of the two columns, over some rows; numpy sums a long thin table slowly by axis."""
    chosen = True if rows is None else rows
    return np.array([law[:, 0].sum(where=chosen), law[:, 1].sum(where=chosen)])


def _around(
    x: float, breaks: Floats, law: Floats, loss: Floats, upper: int, box: PriorBox, tol: float
) -> Solution:
    """Mix the rules just below and just above ``x`` so that the slope of the mixture is zero."""
    ties = np.flatnonzero(breaks == x)
    labels = np.empty((2, len(law)), dtype=np.int32)
    labels[:] = np.where(breaks < x, upper, 1 - upper)
    labels[1, ties] = upper
    mass = np.empty((2, 2, 2))  # rule, class, decision
    mass[0, :, 1] = _totals(law, labels[0] == 1)
    moved = _totals(law[ties])
    mass[1, :, 1] = mass[0, :, 1] + (moved if upper else -moved)
    mass[:, :, 0] = _totals(law) - mass[:, :, 1]
    risks = (mass * loss).sum(axis=2)
    slope = risks[:, 0] - risks[:, 1]
    fall = slope[0] - slope[1]
    share = float(np.clip(slope[0] / fall, 0.0, 1.0)) if fall > 0 else 0.0
    weights = np.array([1.0 - share, share])
    kept = weights > 0
    return _mixed(x, labels[kept], risks[kept], weights[kept], box, tol)


def _mixed(
    x: float, labels: NDArray[np.int32], risks: Floats, weights: Floats, box: PriorBox, tol: float
) -> Solution:
    prior = np.array([x, 1.0 - x])
    rule = MixtureRule(np.tile(prior, (len(weights), 1)), weights, labels, risks)
    return certified(prior, rule, float((risks @ prior).min()), box, tol, 1)


def minimax_lp(laws: Laws, loss: Floats, box: PriorBox, *, tol: float = 1e-8) -> Solution:
    """One linear program in HiGHS: exact, slow, independent of the bundle.

    max sum_t s_t  s.t.  s_t <= sum_k L_kl pi_k p_kt for all t, l, and pi in the box. The
    multipliers of row (t, l) are the probabilities of deciding l in profile t.
    """
    n_profiles, n_classes = laws.n_profiles, laws.n_classes
    if n_profiles * n_classes * n_classes > MOST_LP_CELLS:
        raise ValueError(
            f'solver="lp" is meant for small tables; {n_profiles} profiles of {n_classes} classes '
            'are too many for it: use solver="auto".'
        )
    # one unit of s per profile: at the natural scale 1 / T, feasibility tolerances would bite
    scaled = laws.rows(0, n_profiles) * n_profiles
    costs = (scaled[:, None, :] * loss.T[None]).reshape(-1, n_classes)
    caps = sparse.kron(sparse.eye_array(n_profiles), np.ones((n_classes, 1)))
    found = linprog(
        np.concatenate((np.zeros(n_classes), -np.ones(n_profiles))),
        A_ub=sparse.hstack((sparse.csr_array(-costs), caps), format="csr"),
        b_ub=np.zeros(len(costs)),
        A_eq=np.concatenate((np.ones(n_classes), np.zeros(n_profiles)))[None],
        b_eq=[1.0],
        bounds=[*zip(box.low, box.high, strict=True), *[(None, None)] * n_profiles],
        method="highs-ipm",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if found.status != 0:
        raise RuntimeError(f"HiGHS did not solve the minimax program: {found.message}")
    prior = np.clip(found.x[:n_classes], box.low, box.high)
    decisions = np.maximum(-found.ineqlin.marginals.reshape(n_profiles, n_classes), 0.0)
    decisions /= decisions.sum(axis=1, keepdims=True)
    risk = BayesRisk(laws, loss)
    rule = _as_mixture(decisions, prior, risk)
    return certified(prior, rule, risk.value(prior), box, tol, int(found.nit))


def _as_mixture(decisions: Floats, prior: Floats, risk: BayesRisk) -> MixtureRule:
    """Deterministic rules that draw every profile from the same uniform number.

    A vertex randomises fewer than K profiles, so that few rules are needed.
    """
    steps = np.cumsum(decisions, axis=1)
    ends = np.unique(np.append(np.round(steps[(steps > 1e-12) & (steps < 1 - 1e-12)], 14), 1.0))
    starts = np.concatenate(([0.0], ends[:-1]))
    middles = (starts + ends) / 2
    labels = np.array([(steps < u).sum(axis=1) for u in middles], dtype=np.int32)
    risks = np.array([risk.class_risks(decided) for decided in labels])
    return MixtureRule(np.tile(prior, (len(ends), 1)), ends - starts, labels, risks)


def merge_proportional(laws: SparseLaws) -> tuple[SparseLaws, Ints]:
    """Merged laws and the group of each profile; V and all class risks are unchanged.

    Profiles with proportional class counts decide alike at every prior, and are solved as one.
    ``laws.mass`` should hold counts: equal ratios of counts below 2**26 are then found exactly.
    (Probabilities would do with rounding: profiles that should merge may stay apart.)

    >>> laws = SparseLaws.of(np.array([[1.0, 2.0], [3.0, 0.0], [2.0, 4.0]]))
    >>> merged, group = merge_proportional(laws)
    >>> merged.n_profiles, bool(group[0] == group[2])
    (2, True)
    """
    from laconic.minimax import _numba as hot

    ratio, keys = hot.proportion_keys(laws.start, laws.klass, laws.mass)
    order = np.argsort(keys, kind="stable")
    group, n_groups = hot.proportional_groups(order, keys, laws.start, laws.klass, ratio)
    head = np.full(n_groups, -1, dtype=np.int64)
    head[group[::-1]] = np.arange(laws.n_profiles)[::-1]
    width = np.diff(laws.start)[head]
    start = np.concatenate(([0], np.cumsum(width)))
    # cell c of a profile goes to cell c of its group: same classes in the same order
    profile = np.repeat(np.arange(laws.n_profiles), np.diff(laws.start))
    offset = np.arange(len(laws.mass)) - laws.start[profile]
    cell = start[group[profile]] + offset
    mass = np.bincount(cell, laws.mass, minlength=int(start[-1])).astype(np.float64)
    klass = np.empty(len(mass), dtype=np.int32)
    klass[cell] = laws.klass
    return SparseLaws(start, klass, mass, laws.n_classes), group
