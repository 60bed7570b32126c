"""Compiled passes of the weighted naive Bayes over rows of part codes.

``codes[i, k]`` is the part of row i for variable k, whose cells begin at ``start[k]``; ``scaled``
holds the log tables times the weights, ``used`` the variables with a weight. Slopes are gathered as
residual weights by cell, ``sums[cell, class]``: variable k's slope is their product with its log
table, so that a pass costs one addition for each code, not one product for each class.
"""

from __future__ import annotations

import numpy as np

from laconic._jit import njit
from laconic._typing import AnyArray, Floats, Ints


@njit(cache=True)
def binary_pass(
    codes: AnyArray,
    y: Ints,
    weight: Floats,
    start: Ints,
    scaled: Floats,
    offset: float,
    used: Ints,
    wants_slope: bool,
) -> tuple[float, Floats]:
    """Two classes: log loss and sums of residual weights P(1 | x) - y by cell."""
    sums = np.zeros(scaled.shape[0])
    loss = 0.0
    for i in range(codes.shape[0]):
        score = offset
        for u in range(used.shape[0]):
            k = used[u]
            score += scaled[start[k] + codes[i, k]]
        margin = score if y[i] == 1 else -score
        # stable on both sides: the exponential never overflows and log1p keeps small losses
        tail = np.exp(-abs(margin))
        if margin > 0.0:
            loss += weight[i] * np.log1p(tail)
            wrong = tail / (1.0 + tail)
        else:
            loss += weight[i] * (np.log1p(tail) - margin)
            wrong = 1.0 / (1.0 + tail)
        if wants_slope:
            residual = -weight[i] * wrong if y[i] == 1 else weight[i] * wrong
            for k in range(codes.shape[1]):
                sums[start[k] + codes[i, k]] += residual
    return loss, sums


@njit(cache=True)
def _class_scores(
    score: Floats, codes_i: AnyArray, start: Ints, scaled: Floats, log_prior: Floats, used: Ints
) -> None:
    """Scores of one row, in place."""
    for j in range(score.shape[0]):
        score[j] = log_prior[j]
    for u in range(used.shape[0]):
        cell = start[used[u]] + codes_i[used[u]]
        for j in range(score.shape[0]):
            score[j] += scaled[cell, j]


@njit(cache=True)
def _exponentials(score: Floats) -> tuple[float, float]:
    """Scores become exp(score - largest), in place; returns the largest and the new sum."""
    top = score.max()
    total = 0.0
    for j in range(score.shape[0]):
        score[j] = np.exp(score[j] - top)
        total += score[j]
    return top, total


@njit(cache=True)
def class_pass(
    codes: AnyArray,
    y: Ints,
    weight: Floats,
    start: Ints,
    scaled: Floats,
    log_prior: Floats,
    used: Ints,
    wants_slope: bool,
) -> tuple[float, Floats]:
    """Any number of classes: log loss and sums of P(j | x) - [y = j] by cell and class."""
    n_classes = log_prior.shape[0]
    sums = np.zeros(scaled.shape)
    score = np.empty(n_classes)
    loss = 0.0
    for i in range(codes.shape[0]):
        _class_scores(score, codes[i], start, scaled, log_prior, used)
        own = score[y[i]]
        top, total = _exponentials(score)
        loss += weight[i] * (np.log(total) - (own - top))
        if wants_slope:
            for j in range(n_classes):
                score[j] *= weight[i] / total
            score[y[i]] -= weight[i]
            for k in range(codes.shape[1]):
                cell = start[k] + codes[i, k]
                for j in range(n_classes):
                    sums[cell, j] += score[j]
    return loss, sums


@njit(cache=True)
def binary_curvature_rows(
    codes: AnyArray,
    weight: Floats,
    start: Ints,
    scaled: Floats,
    contrast: Floats,
    offset: float,
    used: Ints,
    free: Ints,
    out: Floats,
) -> None:
    """Rows a_i with sum_i a_i a_i' = Hessian over the variables ``free``."""
    for i in range(codes.shape[0]):
        score = offset
        for u in range(used.shape[0]):
            k = used[u]
            score += scaled[start[k] + codes[i, k]]
        tail = np.exp(-abs(score))
        # p (1 - p) = tail / (1 + tail)^2 whatever the sign of the score
        root = np.sqrt(weight[i] * tail) / (1.0 + tail)
        for f in range(free.shape[0]):
            k = free[f]
            out[i, f] = root * contrast[start[k] + codes[i, k]]


@njit(cache=True)
def class_curvature_rows(
    codes: AnyArray,
    weight: Floats,
    start: Ints,
    scaled: Floats,
    cells: Floats,
    log_prior: Floats,
    used: Ints,
    free: Ints,
    out: Floats,
) -> None:
    """The same for J classes: J rows for each row, centred on the mean over classes."""
    n_classes = log_prior.shape[0]
    score = np.empty(n_classes)
    for i in range(codes.shape[0]):
        _class_scores(score, codes[i], start, scaled, log_prior, used)
        _, total = _exponentials(score)
        for j in range(n_classes):
            score[j] /= total
        for f in range(free.shape[0]):
            cell = start[free[f]] + codes[i, free[f]]
            mean = 0.0
            for j in range(n_classes):
                mean += score[j] * cells[cell, j]
            for j in range(n_classes):
                out[i, j, f] = np.sqrt(weight[i] * score[j]) * (cells[cell, j] - mean)


@njit(cache=True)
def scalar_minimum(h: float, b: float, c: float, power: float) -> float:
    """argmin over v in [0, 1] of h v^2 / 2 + b v + c v^power, with h > 0 and c >= 0."""
    if power == 1.0 or c == 0.0:
        return min(max(-(b + c) / h if power == 1.0 else -b / h, 0.0), 1.0)
    if power == 2.0:
        return min(max(-b / (h + 2.0 * c), 0.0), 1.0)
    if power > 1.0:
        low, high = 0.0, 1.0
        if h + b + c * power <= 0.0:
            return 1.0
        if b >= 0.0:
            return 0.0
        for _ in range(60):
            v = 0.5 * (low + high)
            if h * v + b + c * power * v ** (power - 1.0) > 0.0:
                high = v
            else:
                low = v
        return 0.5 * (low + high)
    # power < 1: the slope is convex in v, its larger root is the only inner minimum
    turn = (c * power * (1.0 - power) / h) ** (1.0 / (2.0 - power))
    v = 1.0
    if h + b + c * power > 0.0:
        if turn >= 1.0 or h * turn + b + c * power * turn ** (power - 1.0) >= 0.0:
            return 0.0
        for _ in range(60):
            # from v = 1 on a convex slope Newton's iterates fall to the larger root and never pass
            # it
            slope = h * v + b + c * power * v ** (power - 1.0)
            bend = h - c * power * (1.0 - power) * v ** (power - 2.0)
            step = slope / bend
            v -= step
            if abs(step) <= 1e-14:
                break
    # zero is a local minimum too (infinite slope there): the lower of the two
    return v if 0.5 * h * v * v + b * v + c * v**power < 0.0 else 0.0


@njit(cache=True)
def box_model_minimum(
    hessian: Floats,
    slope: Floats,
    w: Floats,
    price: Floats,
    power: float,
    max_sweeps: int,
    tol: float,
) -> Floats:
    """Coordinate descent on g'(v - w) + (v - w)'H(v - w) / 2 + price . v^power over the box."""
    size = w.shape[0]
    v = w.copy()
    model_slope = slope.copy()
    for _ in range(max_sweeps):
        moved = 0.0
        for k in range(size):
            h = hessian[k, k]
            new = scalar_minimum(h, model_slope[k] - h * v[k], price[k], power)
            step = new - v[k]
            if step != 0.0:
                v[k] = new
                for m in range(size):
                    model_slope[m] += step * hessian[k, m]
                moved = max(moved, abs(step) * np.sqrt(h))
        if moved <= tol:
            break
    return v


@njit(cache=True)
def binary_losses_after(
    scores: Floats, y: Ints, weight: Floats, codes_k: AnyArray, contrast_k: Floats
) -> float:
    """Log loss when one more (or one less, by a negated table) variable joins the scores."""
    loss = 0.0
    for i in range(scores.shape[0]):
        score = scores[i] + contrast_k[codes_k[i]]
        margin = score if y[i] == 1 else -score
        loss += weight[i] * (np.log1p(np.exp(-abs(margin))) - min(margin, 0.0))
    return loss


@njit(cache=True)
def class_losses_after(
    scores: Floats, y: Ints, weight: Floats, codes_k: AnyArray, table_k: Floats
) -> float:
    """The same for J classes."""
    n_classes = scores.shape[1]
    loss = 0.0
    row = np.empty(n_classes)
    for i in range(scores.shape[0]):
        part = codes_k[i]
        for j in range(n_classes):
            row[j] = scores[i, j] + table_k[part, j]
        own = row[y[i]]
        top, total = _exponentials(row)
        loss += weight[i] * (np.log(total) + top - own)
    return loss
