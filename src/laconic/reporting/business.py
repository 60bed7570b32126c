"""What a manager asks of a model: money and cases in a month, how many it catches, the top 100."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from laconic._typing import Floats, Ints
from laconic.core.decisions import expected_costs
from laconic.decide.intervals import CONFIDENCE, rate_interval
from laconic.reporting.curves import STEP
from laconic.reporting.measured import Measured

PERIODS = ("day", "week", "month", "quarter", "year")
CAPACITY_STEPS = 120
COST_STEPS = 20
"""Steps of a cost slider with three and more classes, to each side; ten are a factor ten."""
MOST_CLASSES = 12


def read_volume(cases: Any, currency: str | None) -> dict[str, Any] | None:
    """Cases in a period, and the unit of the costs.

    >>> read_volume("5000/month", "EUR")
    {'cases': 5000.0, 'period': 'month', 'currency': 'EUR'}
    >>> read_volume(None, "EUR")
    {'cases': None, 'period': None, 'currency': 'EUR'}
    """
    unit = None if currency is None else " ".join(str(currency).split())[:12] or None
    if cases is None:
        return None if unit is None else {"cases": None, "period": None, "currency": unit}
    found = re.fullmatch(r"\s*([\d_ ,]*\d(?:\.\d+)?)\s*(?:/\s*([a-z]+)\s*)?", str(cases))
    period = "month" if found is None or found[2] is None else found[2]
    number = 0.0 if found is None else float(re.sub("[_ ,]", "", found[1]))
    if found is None or period not in PERIODS or not 0 < number < math.inf:
        raise ValueError(
            f"cases: write a number above 0 and a period, such as 5000/month; the periods are "
            f"{', '.join(PERIODS)}; got {str(cases)[:40]!r}."
        )
    return {"cases": number, "period": period, "currency": unit}


def hit_rates(rows: Measured, k: int) -> dict[str, Any]:
    """Share of class ``k`` that is caught, and share of what is decided ``k`` that is right.

    Each is [value, low, high], with an interval of 95 %; None where nothing was decided or there
    is nothing to catch. At a class mix of deployment the precision is
    p h / (p h + sum over the other classes of their share times their false alarm rate).
    """
    counts = rows.confusion()[:, k].astype(np.float64)
    own = rows.class_rows.astype(np.float64)
    found: dict[str, Any] = {"caught": None, "precision": None}
    if own[k]:
        caught = counts[k] / own[k]
        low, high = rate_interval(caught, own[k])
        found["caught"] = [float(caught), float(low), float(high)]
    if not counts.sum():
        return found
    if rows.prior is None:
        rate = counts[k] / counts.sum()
        low, high = rate_interval(rate, counts.sum())
        found["precision"] = [float(rate), float(low), float(high)]
        return found
    rates = counts / np.maximum(own, 1.0)
    # every rate at its end, with the doubt shared among them
    each = 1.0 - (1.0 - CONFIDENCE) / len(own)
    low, high = rate_interval(rates, own, each)
    found["precision"] = [
        _precision(rows.prior, hits, alarms, k)
        for hits, alarms in ((rates, rates), (low, high), (high, low))
    ]
    return found


def _precision(prior: Floats, hits: Floats, alarms: Floats, k: int) -> float:
    right = float(prior[k] * hits[k])
    wrong = float(prior @ alarms - prior[k] * alarms[k])
    return right / (right + wrong) if right + wrong else 0.0


def capacity_table(rows: Measured, k: int) -> dict[str, Any] | None:
    """How many of class ``k`` are among the cases that look most like it, for any number of cases.

    Rows are taken by decreasing probability; rows of equal probability in random order, so that a
    part of them catches that part of what they hold: exactly the mean over all such orders.
    """
    if rows.proba is None or not rows.class_rows[k]:
        return None
    q, hit = rows.proba[:, k], rows.truth == k
    weight = np.full(rows.n_rows, 1.0 / rows.n_rows)
    if rows.prior is not None:
        weight = (rows.prior / np.maximum(rows.class_rows, 1))[rows.truth]
        weight = weight / weight.sum()
    base = float(weight[hit].sum())
    if not base:
        return None
    _, group = np.unique(-q, return_inverse=True)
    looked = np.concatenate([[0.0], np.cumsum(np.bincount(group, weight))])
    caught = np.concatenate([[0.0], np.cumsum(np.bincount(group, weight * hit))]) / base
    least = max(1.0 / rows.n_rows, 1e-4)
    decided = float(weight[rows.decided == k].sum())
    shares = np.geomspace(least, 1.0, CAPACITY_STEPS)
    at = 0
    if decided > least:  # the slider starts where the model itself stands
        at = int(np.abs(np.log(shares / decided)).argmin())
        shares[at] = decided
    return {
        "shares": shares.tolist(),
        "caught": np.minimum(np.interp(shares, looked, caught), 1.0).tolist(),
        "base": base,
        "start": at,
        "least": least,
    }


def cost_table(rows: Measured) -> dict[str, Any] | None:
    """Three and more classes: what is decided when the errors on one class cost more or less.

    For each class and each step of a factor ten to the tenth, the counts of truth by decision when
    the row of that class in the cost matrix is multiplied: the rule itself, run on the measured
    rows.
    """
    if not 2 < rows.n_classes <= MOST_CLASSES or rows.proba is None or rows.by_row is not None:
        return None  # counts do not say what rows with costs of their own cost
    steps = np.arange(-COST_STEPS, COST_STEPS + 1)
    counts = [
        [_counts_at(rows, k, math.exp(2 * STEP * step)) for step in steps.tolist()]
        for k in range(rows.n_classes)
    ]
    return {"steps": COST_STEPS, "step": 2 * STEP, "counts": counts}


def _counts_at(rows: Measured, k: int, factor: float) -> list[list[int]]:
    assert rows.proba is not None
    costs = rows.costs.copy()
    costs[k] *= factor
    paid = expected_costs(rows.proba, costs)
    decided: Ints = paid.argmin(axis=1)
    if factor == 1.0:
        decided = rows.forced
    width = rows.n_classes
    if rows.reject_cost is not None:
        width += 1
        decided = np.where(paid.min(axis=1) > rows.reject_cost, rows.n_classes, decided)
    cells = np.bincount(rows.truth * width + decided, minlength=rows.n_classes * width)
    counts: list[list[int]] = cells.reshape(rows.n_classes, width).tolist()
    return counts


def readability_price(model: Any) -> dict[str, float] | None:
    """What a model that fits on a page costs more than all the candidates together."""
    price, whole = (
        getattr(model, name, None) for name in ("price_of_readability_", "reported_cost_")
    )
    if price is None or whole is None or not math.isfinite(price.value):
        return None
    return {
        "value": float(price.value),
        "low": float(price.low),
        "high": float(price.high),
        "cost": float(whole.value),
    }
