"""The minimax problem as one linear program in HiGHS: exact, slow, independent of the bundle.

    max sum_t s_t   s.t.  s_t <= sum_k L_kl pi_k p_kt  for all t, l,   pi in the box

The multipliers of row (t, l) are the probabilities of deciding l in profile t.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

from laconic.criteria.minimax import BayesRisk, Laws, MixtureRule
from laconic.criteria.prior_box import PriorBox
from laconic.solvers.solution import Solution, WhyStopped

Floats = NDArray[np.float64]

_CELLS = 2_000_000  # beyond, HiGHS needs hours; the bundle needs seconds


def minimax_lp(laws: Laws, loss: Floats, box: PriorBox, *, tol: float = 1e-8) -> Solution:
    """Least favourable prior and minimax rule by HiGHS."""
    n_profiles, n_classes = laws.n_profiles, laws.n_classes
    if n_profiles * n_classes * n_classes > _CELLS:
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
    low = risk.value(prior)
    worst, _ = box.worst(rule.class_risks)
    gap = max(worst - low, 0.0)
    details = {"rule": rule, "lower_bound": low, "n_passes": int(found.nit)}
    stopped: WhyStopped = "gap" if gap <= tol else "stalled"
    return Solution(prior, worst, gap, int(found.nit), stopped, details)


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
