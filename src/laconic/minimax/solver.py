"""The least favourable prior and the minimax rule: which solver, on which table.

In general a level bundle method (Lemaréchal, Nemirovskii and Nesterov, 1995), certified by a
mixture of Bayes rules. Each visited prior gives a cut ``V(pi) <= R.pi``; the
next prior is the point nearest to the best one where every cut is above a level between the two
bounds. The multipliers of that projection mix Bayes rules, and the worst risk of a mixture over
the box is an upper bound of max V: the certificate costs no linear program.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

from laconic._typing import Floats, Ints
from laconic.core.losses import Solution, WhyStopped
from laconic.minimax.criterion import (
    BayesRisk,
    DenseLaws,
    Laws,
    MixtureRule,
    PriorBox,
    SparseLaws,
    zero_one,
)
from laconic.minimax.tuning import BUCKETS, LEVEL, MOST_LP_CELLS, SHRINKS


@dataclass(frozen=True)
class BayesPass:
    """Bayes decisions and class risks at a prior: one pass over profiles, O(profiles x classes).

    >>> tables = DenseLaws(np.array([[0.75, 0.25], [0.25, 0.75]]))
    >>> BayesPass(tables, zero_one(2)).risks(np.array([0.5, 0.5]))
    array([0.25, 0.25])
    """

    laws: Laws
    loss: Floats
    _totals: Floats = field(init=False, repr=False)
    _counts_errors: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_totals", self.laws.totals)
        counts_errors = bool((self.loss == zero_one(len(self.loss))).all())
        object.__setattr__(self, "_counts_errors", counts_errors)

    @property
    def n_classes(self) -> int:
        return len(self.loss)

    def __call__(self, prior: Floats) -> tuple[NDArray[np.int32], Floats]:
        """Labels of the profiles and risks of the classes."""
        from laconic.minimax import _numba as hot

        laws = self.laws
        labels = np.empty(laws.n_profiles, dtype=np.int32)
        if isinstance(laws, SparseLaws):
            parts = (laws.start, laws.klass, laws.mass, prior)
            if self._counts_errors:
                return labels, self._totals - hot.sparse_labels(*parts, labels)
            return labels, hot.sparse_loss_labels(*parts, self.loss, labels)
        assert isinstance(laws, DenseLaws)
        if self._counts_errors:
            return labels, self._totals - hot.dense_labels(laws.law, prior, labels)
        return labels, hot.dense_loss_labels(laws.law, prior, self.loss, labels)

    def risks(self, prior: Floats) -> Floats:
        return self(prior)[1]

    def rule(self, priors: Floats, weights: Floats) -> MixtureRule:
        """The mixture of the Bayes rules at some priors."""
        passes = [self(prior) for prior in priors]
        return MixtureRule(
            priors=np.array(priors),
            weights=np.array(weights),
            labels=np.array([labels for labels, _ in passes]),
            risks=np.array([risks for _, risks in passes]),
        )


_FEASIBLE, _EMPTY = 0, 1  # what project_on_level reports


@dataclass
class Bundle:
    """Priors visited, the risks found there, and the two bounds of max V over the box."""

    evaluate: BayesPass
    box: PriorBox
    priors: list[Floats] = field(default_factory=list)
    cuts: Floats = field(init=False)
    low: float = -np.inf
    high: float = np.inf
    best: int = 0

    def __post_init__(self) -> None:
        self.cuts = np.empty((64, self.box.n_classes))

    def __len__(self) -> int:
        return len(self.priors)

    def visit(self, prior: Floats) -> Floats:
        """Add the cut at a prior; returns its slope, the class risks of the Bayes rule there."""
        risks = self.evaluate.risks(prior)
        if len(self) == len(self.cuts):
            self.cuts = np.concatenate((self.cuts, np.empty_like(self.cuts)))
        self.cuts[len(self)] = risks
        self.priors.append(prior)
        value = float(prior @ risks)
        if value > self.low:
            # V at any prior is a lower bound of the minimax risk ...
            self.low, self.best = value, len(self) - 1
        # ... and the worst risk of any rule an upper one
        self.high = min(self.high, self.box.worst(risks)[0])
        return risks

    def mix(self, weights: Floats) -> None:
        """Lower the upper bound by a mixture of the visited rules."""
        total = weights.sum()
        if total > 0:
            mixed = (weights / total) @ self.cuts[: len(weights)]
            self.high = min(self.high, self.box.worst(mixed)[0])

    def master(self) -> tuple[Floats, Floats]:
        """Best mixture of visited rules (at most K weights are positive) and its worst prior.

        The dual and the primal of ``max theta : theta <= R_i.pi, pi in U`` (Kelley's program).
        """
        cuts = self.cuts[: len(self)]
        n_cuts, n_classes = cuts.shape
        found = linprog(
            np.append(np.zeros(n_classes), -1.0),
            A_ub=np.column_stack((-cuts, np.ones(n_cuts))),
            b_ub=np.zeros(n_cuts),
            A_eq=np.append(np.ones(n_classes), 0.0)[None],
            b_eq=[1.0],
            bounds=[*zip(self.box.low, self.box.high, strict=True), (None, None)],
            method="highs-ds",
            # at the default 1e-7 the mixture would be that far from equalising the risks
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        if found.status != 0:
            raise RuntimeError(f"the master program of the bundle failed: {found.message}")
        # the multipliers of the cuts are the weights of the mixture (strong duality)
        weights = np.maximum(-found.ineqlin.marginals, 0.0)
        prior = np.clip(found.x[:n_classes], self.box.low, self.box.high)
        return weights / weights.sum(), prior

    def finish(
        self, tol: float, n_iter: int, why: WhyStopped = "max_iter", *, only_visited: bool = False
    ) -> Solution:
        """The best mixture and a prior; the gap is the worst risk minus V at that prior."""
        weights, prior = self.master()
        kept = np.flatnonzero(weights)
        priors = np.array([self.priors[i] for i in kept])
        rule = self.evaluate.rule(priors, weights[kept])
        worst, _ = self.box.worst(rule.class_risks)
        best, low = self.priors[self.best], self.low
        if not only_visited:
            value = float(prior @ self.visit(prior))
            # the master's prior is zero exactly where its mixture has risk to spare
            if value >= low or worst - value <= tol:
                best, low = prior, value
        return certified(best, rule, low, self.box, tol, n_iter, why, len(self))


def certified(
    prior: Floats, rule: MixtureRule, low: float, box: PriorBox, tol: float, n_iter: int,
    why: WhyStopped = "stalled", n_passes: int | None = None,
) -> Solution:  # fmt: skip
    """A rule and a prior; no rule's worst risk is below ``low`` = V(prior), which is the proof."""
    worst, _ = box.worst(rule.class_risks)
    gap = max(worst - low, 0.0)
    details = {"rule": rule, "lower_bound": low, "n_passes": n_passes or n_iter}
    return Solution(prior, worst, gap, n_iter, "gap" if gap <= tol else why, details)


def level_bundle(
    evaluate: BayesPass,
    box: PriorBox,
    *,
    tol: float = 1e-8,
    max_iter: int = 5000,
    start: Floats | None = None,
) -> Solution:
    """Maximise V over the box; the solution's value is the worst risk of its mixture rule.

    ``point`` is the least favourable prior, ``details["rule"]`` the :class:`MixtureRule`,
    ``details["lower_bound"]`` is V at the point, and ``gap = value - lower_bound``.
    """
    from laconic.minimax._numba import project_on_level

    bundle = Bundle(evaluate, box)
    prior = box.project(np.full(box.n_classes, 1 / box.n_classes) if start is None else start)
    _warm_up(bundle, prior, min(box.n_classes, max_iter))
    n_iter = len(bundle)
    why: WhyStopped = "max_iter"
    while n_iter < max_iter and bundle.high - bundle.low > tol:
        n_iter += 1
        gap = bundle.high - bundle.low
        prior, weights, status = project_on_level(
            bundle.priors[bundle.best],
            bundle.cuts,
            len(bundle),
            # Lemaréchal, Nemirovskii and Nesterov (1995): project the best point on a level set
            bundle.low + LEVEL * gap,
            box.low,
            box.high,
        )
        bundle.mix(weights)
        if status == _FEASIBLE:
            bundle.visit(np.clip(prior, box.low, box.high))
        elif status != _EMPTY or bundle.high - bundle.low > SHRINKS * gap:
            # rounding: the certificate of an empty level set must shrink the gap to LEVEL of it
            bundle.mix(bundle.master()[0])
            if bundle.high - bundle.low > SHRINKS * gap:
                why = "stalled"
                break
    return bundle.finish(tol, n_iter, why)


def _warm_up(bundle: Bundle, prior: Floats, n_passes: int) -> None:
    """A few projected subgradient steps: the level method needs about K cuts to begin with."""
    for step in range(1, n_passes + 1):
        risks = bundle.visit(prior)
        prior = bundle.box.project(prior + risks / (step * max(1.0, float(np.sqrt(risks @ risks)))))


def projected_subgradient(
    evaluate: BayesPass,
    box: PriorBox,
    *,
    tol: float = 1e-8,
    max_iter: int = 100,
    start: Floats | None = None,
) -> Solution:
    """The paper's equation (6), kept to reproduce its tables.

    ``pi <- P_U(pi + gamma_n R / max(1, |R|))`` with ``gamma_n = 1 / n``, max_iter times.
    Condition (8) of the paper asks ``inf gamma_n > 0`` and ``sum gamma_n^2 < inf``, which exclude
    each other; ``gamma_n > 0`` is meant. Bound (9) forgets the normaliser of the step: the
    derivation gives ``(rho^2 + sum gamma_n^2) / (2 sum gamma_n / eta_n)``, which is returned as
    ``details["bound_9"]``. It decreases like 1 / log(n) and is far above the true error, so the
    gap that is certified comes from the best mixture of the visited rules instead.
    """
    bundle = Bundle(evaluate, box)
    prior = box.project(np.full(box.n_classes, 1 / box.n_classes) if start is None else start)
    reach = np.maximum(prior - box.low, box.high - prior)
    rho_squared = min(2.0, float(reach @ reach))
    squares = steps = 0.0
    for n in range(1, max_iter + 1):
        risks = bundle.visit(prior)
        eta = max(1.0, float(np.linalg.norm(risks)))
        squares += 1.0 / (n * n)
        steps += 1.0 / (n * eta)
        prior = box.project(prior + risks / (n * eta))
    found = bundle.finish(tol, max_iter, only_visited=True)
    bound = (rho_squared + squares) / (2.0 * steps)
    return replace(found, details={**found.details, "bound_9": bound})


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
    # in units of the largest cost: tolerances of the programs are absolute
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
    # breaks lie in [0, 1]; the last bucket holds those at 1 alone
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
    # slopes of the mixture are linear in the share: its zero equalises the two risks
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
    # they sum to one by the dual constraint of s_t, up to the tolerance of the program
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
