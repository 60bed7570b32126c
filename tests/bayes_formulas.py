"""The weighted naive Bayes and the codes of MODL written out, as the tests compare with."""

from __future__ import annotations

import math

import numpy as np


def scores(tables, codes, weights):
    """ln p_j + sum_k w_k ln a_kj of rows of part codes, shape (n_rows, n_classes)."""
    out = np.repeat(tables.log_prior[None, :], len(codes), axis=0)
    for k in np.flatnonzero(weights):
        out += weights[k] * tables.table(int(k))[codes[:, k]]
    return out


def posterior(scores):
    """Equation (1) from the scores."""
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def smoothed(probabilities, total):
    """(p_j + h / J) / (1 + h), h = 1 / (2 (N + 1)): N rows never justify certainty."""
    h = 0.5 / (total + 1.0)
    return (probabilities + h / probabilities.shape[1]) / (1.0 + h)


def log_star(n):
    """log2 n + log2 log2 n + ..., as long as the terms are positive (Rissanen's code of n)."""
    total, term = 0.0, math.log2(n)
    while term > 0:
        total += term
        term = math.log2(term)
    return total
