"""The least favourable prior: which solver, on which table."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from laconic.criteria.minimax import Laws, SparseLaws, zero_one
from laconic.criteria.prior_box import PriorBox
from laconic.solvers.bayes_pass import BayesPass
from laconic.solvers.bundle import level_bundle
from laconic.solvers.minimax_lp import minimax_lp
from laconic.solvers.minimax_two_class import two_class_minimax
from laconic.solvers.proportional import merge_proportional
from laconic.solvers.solution import Solution
from laconic.solvers.subgradient import projected_subgradient

Floats = NDArray[np.float64]
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
