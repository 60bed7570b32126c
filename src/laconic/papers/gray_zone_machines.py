"""Hérault and Grandvalet (2008): the linear machines of Table 4, and fitting times."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from laconic._typing import Floats
from laconic.core.losses import HingeLoss
from laconic.data.source import ArraySource
from laconic.linear.estimator import GrayZoneLogisticRegression
from laconic.linear.solvers.newton import solve_linear
from laconic.papers.gray_zone import ZONES, Labels, Split, krummholz, split_of

CS = (1e-3, 1e-2, 1e-1, 1.0)
CHOOSING = 4
"""C is chosen on every fourth training row: on all of them a split takes two minutes, not half."""


def table_4_draw(seed: int, split: int, thin: int) -> dict[str, tuple[float, float]]:
    """Linear SVMs on one split: test cost in hundredths and support share in percent."""
    own = split_of(*krummholz(), split, seed, thin)
    price = np.where(own.y == 1, own.costs["fn"], own.costs["fp"])
    found = _machines(own, np.ones(len(own.y)), price, {"standard": False, "bias corrected": True})
    return found | _machines(own, price, price, {"weighted": False})


def _machines(
    split: Split, weight: Floats, price: Floats, cuts: dict[str, bool]
) -> dict[str, tuple[float, float]]:
    """Hinge losses; C, and the cut where it is asked for, by 5-fold cross-validated cost."""
    X, y = split.X[::CHOOSING], split.y[::CHOOSING]
    w, p = weight[::CHOOSING], price[::CHOOSING]
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    best = dict.fromkeys(cuts, (np.inf, 1.0, 0.0))
    for C in CS:
        scores = np.empty(len(y))
        for train, test in folds:
            # a sum over fewer rows: the same penalty of a row
            found = hinge(X[train], y[train], w[train], C * len(split.y) / len(train))
            scores[test] = X[test] @ found.point[:-1] + found.point[-1]
        for name, moved in cuts.items():
            fixed = (0.0, float(p @ ((scores > 0) != (y == 1))))
            cut, cost = best_cut(scores, y, p) if moved else fixed
            best[name] = min(best[name], (cost, C, cut))
    out = {}
    for name, (_, C, cut) in best.items():
        found = hinge(split.X, split.y, weight, C)
        test_scores = split.X_test @ found.point[:-1] + found.point[-1]
        support = float((np.abs(found.details["dual"]) > 1e-8).mean())
        out[name] = (100 * split.test_cost(test_scores > cut), 100 * support)
    return out


def hinge(X: Floats, y: Labels, weight: Floats, C: float) -> Any:
    """A linear machine, to a relative gap of 1e-4."""
    target = np.where(y == 1, 1.0, -1.0)
    return solve_linear(ArraySource(X, target, weight), HingeLoss(), C=C, tol=1e-4)


def best_cut(scores: Floats, y: Labels, price: Floats) -> tuple[float, float]:
    """The cut of least cost, and that cost."""
    order = np.argsort(scores)
    missed = np.cumsum(np.where(y[order] == 1, price[order], 0.0))
    alarms = np.where(y[order] == 0, price[order], 0.0)
    total = missed + alarms.sum() - np.cumsum(alarms)
    least = int(total.argmin())
    return float(scores[order][least]), float(total[least])


def seconds_draw(seed: int, split: int, thin: int) -> dict[str, float]:
    """CPU seconds, best of three: plain regression, the narrowest zone, the weighted machine."""
    own = split_of(*krummholz(), split, seed, thin)
    weight = np.where(own.y == 1, own.costs["fn"], own.costs["fp"])

    def best(fit: Callable[[], Any]) -> float:
        spent = []
        for _ in range(4):  # the first one compiles
            begin = time.process_time()
            fit()
            spent.append(time.process_time() - begin)
        return min(spent[1:])

    def gray(zone: tuple[float, float]) -> Callable[[], Any]:
        return lambda: GrayZoneLogisticRegression(zone=zone, C=1.0, tol=1e-4).fit(own.X, own.y)

    return {
        "plain": best(gray(ZONES[0])),
        "narrow": best(gray(ZONES[-1])),
        "weighted SVM": best(lambda: hinge(own.X, own.y, weight, 0.1)),
    }
