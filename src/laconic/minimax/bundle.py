"""Least favourable prior by a level bundle method, certified by a mixture of Bayes rules.

Lemaréchal, Nemirovskii and Nesterov (1995). Each visited prior gives a cut ``V(pi) <= R.pi``; the
next prior is the point nearest to the best one where every cut is above a level between the two
bounds. The multipliers of that projection mix Bayes rules, and the worst risk of a mixture over
the box is an upper bound of max V: the certificate costs no linear program.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from laconic._typing import Floats
from laconic.core.solution import Solution, WhyStopped
from laconic.minimax.criterion import DenseLaws, Laws, MixtureRule, SparseLaws, zero_one
from laconic.minimax.prior_box import PriorBox
from laconic.minimax.tuning import LEVEL, SHRINKS


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
            self.low, self.best = value, len(self) - 1
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
