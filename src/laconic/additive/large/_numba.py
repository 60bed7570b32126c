"""Compiled passes by slot values, without bases: what travels to rows that stay elsewhere."""

from __future__ import annotations

import numpy as np

from laconic._jit import njit
from laconic._typing import Floats, Ints
from laconic.additive._numba_rows import Rows, Terms, add_only, longest, padded, slot_sums


@njit(cache=True, nogil=True)
def scores_of_slots(
    rows: Rows, terms: Terms, place: Ints, slot_values: Floats, b: Floats, out: Floats
) -> None:
    """out[k] = b[k] + sum of all terms; term t has its slot values from ``place[t]`` on."""
    every = np.arange(place.shape[0] - 1)
    buffer = np.zeros(longest(terms, every))
    for k in range(out.shape[0]):
        out[k, :] = b[k]
        for t in every:
            m = terms.size[t]
            own = buffer[: padded(terms, t)]
            own[:m] = slot_values[k, place[t] : place[t] + m]
            own[m:] = 0.0
            add_only(rows, terms, t, own, out[k])


@njit(cache=True, nogil=True)
def sums_of_slots(rows: Rows, terms: Terms, place: Ints, values: Floats, out: Floats) -> None:
    """out[k, place[t] : place[t + 1]] = slot sums of values[k], for every term."""
    every = np.arange(place.shape[0] - 1)
    buffer = np.empty(longest(terms, every))
    for t in every:
        own = buffer[: padded(terms, t)]
        for k in range(values.shape[0]):
            slot_sums(rows, terms, t, values[k], own)
            out[k, place[t] : place[t + 1]] = own[: terms.size[t]]
