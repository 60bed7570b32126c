"""What a fitted model proves about itself, as numbers with a kind; words come at rendering."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.stats import norm

from laconic.reporting.measured import Measured

CONFIDENCE = 0.95


def certificates_of(rows: Measured, cost: float, cost_se: float) -> list[dict[str, Any]]:
    """One dict for each certificate: ``kind``, ``value`` and what its sentence needs.

    Kinds: "measured" (an interval for the cost), "gap", "edited", "pac_bayes", "c_bound",
    "minimax", "held_out_risks", "compression", "excess_risk".
    """
    model = rows.inner
    reach = float(norm.ppf(0.5 + CONFIDENCE / 2)) * cost_se
    found: list[dict[str, Any]] = [
        {
            "kind": "measured",
            "value": cost,
            "low": cost - reach,
            "high": cost + reach,
            "rows": rows.n_rows,
        }
    ]
    found += _gap(model)
    found += _of_votes(model)
    found += _of_minimax(model)
    compression = _largest(model, "compression_")
    if compression is not None:
        found.append({"kind": "compression", "value": compression})
    excess = _largest(model, "excess_risk_bound_")
    if excess is not None:
        found.append({"kind": "excess_risk", "value": excess})
    return found


def _largest(model: Any, name: str) -> float | None:
    value = getattr(model, name, None)
    if value is None:
        return None
    return float(np.max(np.asarray(value, dtype=np.float64), initial=-math.inf))


def _gap(model: Any) -> list[dict[str, Any]]:
    gap = _largest(model, "duality_gap_")
    if gap is None or hasattr(model, "minimax_risk_"):
        return []
    if not math.isfinite(gap):
        return [{"kind": "edited", "value": None}]
    objective = getattr(model, "objective_", getattr(model, "criterion_", None))
    scale = None if objective is None else float(np.max(np.asarray(objective, dtype=np.float64)))
    return [{"kind": "gap", "value": gap, "objective": scale}]


def _of_votes(model: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if hasattr(model, "pac_bayes_bounds"):
        found += _best_bound(model)
    c_bound = _largest(model, "c_bound_")
    if c_bound is not None:
        found.append({"kind": "c_bound", "value": c_bound})
    return found


def _best_bound(model: Any) -> list[dict[str, Any]]:
    """The smallest bound, with the doubt shared among those it was chosen from."""
    names = {bound.name for bound in model.pac_bayes_bounds(1.0 - CONFIDENCE)}
    if not names:
        return []
    bounds = model.pac_bayes_bounds((1.0 - CONFIDENCE) / len(names))
    # with several votes a bound must hold for each of them: its largest value
    worst = [max((b for b in bounds if b.name == n), key=lambda b: b.value) for n in names]
    best = min(worst, key=lambda bound: (bound.value, bound.name))
    return [
        {
            "kind": "pac_bayes",
            "value": float(best.value),
            "name": best.name,
            "source": best.source,
            "assumption": best.assumption,
            "each_class": len(bounds) > len(names),
        }
    ]


def _of_minimax(model: Any) -> list[dict[str, Any]]:
    if not hasattr(model, "minimax_risk_"):
        return []
    found: list[dict[str, Any]] = [
        {
            "kind": "minimax",
            "value": float(model.minimax_risk_),
            "gap": float(model.duality_gap_),
            "prior": np.asarray(model.least_favorable_prior_).tolist(),
        }
    ]
    risks = getattr(model, "class_risks_oof_", None)
    if risks is not None and np.isfinite(risks).all():
        found.append(
            {
                "kind": "held_out_risks",
                "value": float(np.max(risks)),
                "risks": np.asarray(risks).tolist(),
            }
        )
    return found
