"""The paper's projected subgradient, equation (6), kept to reproduce its tables."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from laconic.criteria.prior_box import PriorBox
from laconic.solvers.bayes_pass import BayesPass
from laconic.solvers.bundle import Bundle
from laconic.solvers.solution import Solution

Floats = NDArray[np.float64]


def projected_subgradient(
    evaluate: BayesPass,
    box: PriorBox,
    *,
    tol: float = 1e-8,
    max_iter: int = 100,
    start: Floats | None = None,
) -> Solution:
    """``pi <- P_U(pi + gamma_n R / max(1, |R|))`` with ``gamma_n = 1 / n``, max_iter times.

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
    return Solution(
        found.point,
        found.value,
        found.gap,
        found.n_iter,
        found.why_stopped,
        {**found.details, "bound_9": bound},
    )
