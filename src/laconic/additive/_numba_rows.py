"""Compiled passes over encoded rows of an additive model, and over their scores.

A term reads one column (``second < 0``) or two. Its slots are those of the column's axis, or the
cells of a grid of two coarse axes; its coordinates are ``rank`` numbers g with slot values B g.
Scores are stored class by class, ``f[k, i]``; a binary model has one score. Buffers of slot sums
are longer than the number of slots: a fraction of zero may point one slot (or one grid row) past
the end, where it adds nothing.

Columns of two levels have passes of their own: with levels 0 and 1 a look-up is a product, which a
processor does for several rows at once, three to six times faster. Their sums are taken in another
order than the rows, always the same one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from laconic._jit import njit
from laconic._typing import Floats, Ints

Slots = NDArray[np.uint8]
Fractions = NDArray[np.float32]

_IN_ANY_ORDER = {"reassoc", "contract", "nsz"}
_CALLED = 64
"""Entries of a basis from which on a library's product is worth its call (by timing)."""
_CORNERS, _FOUR_CELLS, _CELLS, _TWO_LEVELS, _LEVELS, _LINE = range(6)
"""Passes over the rows of a term: the first three read two columns, the others one."""


class Rows(NamedTuple):
    """Encoded rows; and, for the columns that pairs read, their place on the coarse axis.

    ``coarse_fraction[0]`` is all zeros: the row of columns whose values all lie on coarse knots.
    ``yes_no`` and ``coarse_yes_no`` mark columns whose rows are all at slot 0 or slot 1.
    """

    slots: Slots
    fraction: Fractions
    fraction_row: Ints
    coarse_row: Ints
    coarse_slots: Slots
    coarse_fraction_row: Ints
    coarse_fraction: Fractions
    yes_no: NDArray[np.bool_]
    coarse_yes_no: NDArray[np.bool_]


class Terms(NamedTuple):
    """Columns, slots and bases of the terms; ``basis`` holds every B, row after row."""

    first: Ints
    second: Ints
    size: Ints
    width: Ints
    rank: Ints
    start: Ints
    basis_start: Ints
    basis: Floats
    knots: Ints


@njit(cache=True, inline="always")
def basis_of(terms: Terms, t: int) -> Floats:
    """B of term t, a view: (slots, coordinates)."""
    m, r, at = terms.size[t], terms.rank[t], terms.basis_start[t]
    return terms.basis[at : at + m * r].reshape(m, r)


@njit(cache=True, inline="always")
def padded(terms: Terms, t: int) -> int:
    """Length of a buffer of slot sums of term t."""
    return int(terms.size[t] + terms.width[t] + 2)


@njit(cache=True, inline="always")
def longest(terms: Terms, wanted: Ints) -> int:
    """Length of a buffer that serves all wanted terms."""
    most = 2
    for w in range(wanted.shape[0]):
        most = max(most, padded(terms, wanted[w]))
    return most


@njit(cache=True, inline="always")
def _grid(rows: Rows, terms: Terms, t: int) -> tuple[Slots, Slots, Fractions, Fractions]:
    """Coarse slots of the two columns of term t, and their interpolation fractions."""
    a, b = terms.first[t], terms.second[t]
    return (
        rows.coarse_slots[rows.coarse_row[a]],
        rows.coarse_slots[rows.coarse_row[b]],
        rows.coarse_fraction[rows.coarse_fraction_row[a]],
        rows.coarse_fraction[rows.coarse_fraction_row[b]],
    )


@njit(cache=True, inline="always")
def _on_knots(rows: Rows, terms: Terms, t: int) -> bool:
    """Whether every row of both columns of a grid lies on a coarse knot."""
    a, b = terms.first[t], terms.second[t]
    return bool(rows.coarse_fraction_row[a] == 0 and rows.coarse_fraction_row[b] == 0)


@njit(cache=True, inline="always")
def _pass_of(rows: Rows, terms: Terms, t: int) -> int:
    """The quickest pass over the rows of term t."""
    a, b = terms.first[t], terms.second[t]
    if b >= 0:
        if not _on_knots(rows, terms, t):
            return _CORNERS
        return _FOUR_CELLS if rows.coarse_yes_no[a] and rows.coarse_yes_no[b] else _CELLS
    if rows.fraction_row[a] >= 0:
        return _LINE
    return _TWO_LEVELS if rows.yes_no[a] else _LEVELS


@njit(cache=True, nogil=True)
def take_rows(store: NDArray[Any], which: Ints, kept: Ints, out: NDArray[Any]) -> None:
    """out[k, i] = store[which[k], kept[i]]."""
    for k in range(which.shape[0]):
        line = store[which[k]]
        for i in range(kept.shape[0]):
            out[k, i] = line[kept[i]]


@njit(cache=True, nogil=True)
def on_coarse_axis(
    slots: Slots, part: Fractions, index: Slots, base: Fractions, step: Fractions,
    coarse: Slots, fraction: Fractions,
) -> bool:  # fmt: skip
    """Coarse slot and fraction of every row; returns whether a fraction is not zero."""
    between = False
    for i in range(slots.shape[0]):
        k = slots[i]
        coarse[i] = index[k]
        fraction[i] = base[k] + step[k] * part[i]
        between = between or fraction[i] != np.float32(0.0)
    return between


# Sums over rows, slot by slot.


@njit(cache=True, nogil=True, fastmath=_IN_ANY_ORDER)
def two_level_sums(slots: Slots, values: Floats, out: Floats) -> None:
    """out[m] = sum of the values of the rows at level m."""
    total, high = 0.0, 0.0
    for i in range(values.shape[0]):
        total += values[i]
        high += values[i] * np.float64(slots[i])
    out[0] = total - high
    out[1] = high


@njit(cache=True, nogil=True, fastmath=_IN_ANY_ORDER)
def four_cell_sums(first: Slots, second: Slots, width: int, values: Floats, out: Floats) -> None:
    """The same for the cells width a + b of two columns."""
    total, high, next_, both = 0.0, 0.0, 0.0, 0.0
    for i in range(values.shape[0]):
        a = np.float64(first[i])
        b = np.float64(second[i])
        share = values[i] * a
        total += values[i]
        high += share
        next_ += values[i] * b
        both += share * b
    out[0] = total - high - next_ + both
    out[1] = next_ - both
    out[width] = high - both
    out[width + 1] = both


@njit(cache=True, nogil=True)
def _level_sums(slots: Slots, values: Floats, out: Floats) -> None:
    """Sums by level, in four lanes: in one, equal neighbours would wait for each other's sum."""
    second, third, fourth = np.zeros_like(out), np.zeros_like(out), np.zeros_like(out)
    q = values.shape[0] // 4
    for i in range(q):
        out[slots[i]] += values[i]
        second[slots[i + q]] += values[i + q]
        third[slots[i + 2 * q]] += values[i + 2 * q]
        fourth[slots[i + 3 * q]] += values[i + 3 * q]
    for i in range(4 * q, values.shape[0]):
        out[slots[i]] += values[i]
    for m in range(out.shape[0]):
        out[m] += second[m] + third[m] + fourth[m]


@njit(cache=True, nogil=True)
def cell_sums(first: Slots, second: Slots, width: int, values: Floats, out: Floats) -> None:
    """The same for the cells of two columns."""
    other, third, fourth = np.zeros_like(out), np.zeros_like(out), np.zeros_like(out)
    q = values.shape[0] // 4
    for i in range(q):
        j, k, m = i + q, i + 2 * q, i + 3 * q
        out[np.int64(first[i]) * width + np.int64(second[i])] += values[i]
        other[np.int64(first[j]) * width + np.int64(second[j])] += values[j]
        third[np.int64(first[k]) * width + np.int64(second[k])] += values[k]
        fourth[np.int64(first[m]) * width + np.int64(second[m])] += values[m]
    for i in range(4 * q, values.shape[0]):
        out[np.int64(first[i]) * width + np.int64(second[i])] += values[i]
    for m in range(out.shape[0]):
        out[m] += other[m] + third[m] + fourth[m]


@njit(cache=True, nogil=True)
def _grid_sums(
    first: Slots, second: Slots, along: Fractions, across: Fractions, width: np.uint64,
    values: Floats, out: Floats,
) -> None:  # fmt: skip
    """Sums by corner: every row has a share in the four corners of its cell.

    Cells are unsigned numbers: those need no check for places that count from the end.
    """
    one = np.uint64(1)
    for i in range(values.shape[0]):
        cell = np.uint64(first[i]) * width + np.uint64(second[i])
        high = values[i] * along[i]
        low = values[i] - high
        low_next = low * across[i]
        high_next = high * across[i]
        out[cell] += low - low_next
        out[cell + one] += low_next
        out[cell + width] += high - high_next
        out[cell + width + one] += high_next


@njit(cache=True, nogil=True)
def slot_sums(rows: Rows, terms: Terms, t: int, values: Floats, out: Floats) -> None:
    """out[m] = sum over rows of values[i] times the share of row i in slot m of term t."""
    out[:] = 0.0
    kind = _pass_of(rows, terms, t)
    if kind <= _CELLS:
        width = terms.width[t]
        slots_a, slots_b, along, across = _grid(rows, terms, t)
        if kind == _CORNERS:
            _grid_sums(slots_a, slots_b, along, across, np.uint64(width), values, out)
        elif kind == _FOUR_CELLS:
            four_cell_sums(slots_a, slots_b, width, values, out)
        else:
            cell_sums(slots_a, slots_b, width, values, out)
        return
    slots = rows.slots[terms.first[t]]
    if kind == _TWO_LEVELS:
        two_level_sums(slots, values, out)
        return
    if kind == _LEVELS:
        _level_sums(slots, values, out)
        return
    part = rows.fraction[rows.fraction_row[terms.first[t]]]
    for i in range(values.shape[0]):
        m = slots[i]
        share = values[i] * part[i]
        out[m] += values[i] - share
        out[m + 1] += share


@njit(cache=True, inline="always")
def _grid_products(rows: Rows, terms: Terms, t: int, values: Floats, out: Floats) -> None:
    """The upper triangle of :func:`slot_products` for a grid."""
    width = terms.width[t]
    slots_a, slots_b, along, across = _grid(rows, terms, t)
    on_knots = _on_knots(rows, terms, t)
    for i in range(values.shape[0]):
        v = values[i]
        if v == 0.0:
            continue
        cell = np.int64(slots_a[i]) * width + np.int64(slots_b[i])
        if on_knots:
            out[cell, cell] += v
            continue
        pa = np.float64(along[i])
        pb = np.float64(across[i])
        s0 = (1.0 - pa) * (1.0 - pb)
        s1 = (1.0 - pa) * pb
        s2 = pa * (1.0 - pb)
        s3 = pa * pb
        c1 = cell + 1
        c2 = cell + width
        c3 = c2 + 1
        out[cell, cell] += v * s0 * s0
        out[cell, c1] += v * s0 * s1
        out[cell, c2] += v * s0 * s2
        out[cell, c3] += v * s0 * s3
        out[c1, c1] += v * s1 * s1
        out[c1, c2] += v * s1 * s2
        out[c1, c3] += v * s1 * s3
        out[c2, c2] += v * s2 * s2
        out[c2, c3] += v * s2 * s3
        out[c3, c3] += v * s3 * s3


@njit(cache=True, nogil=True)
def slot_products(rows: Rows, terms: Terms, t: int, values: Floats, out: Floats) -> None:
    """out[m, l] = sum over rows of values[i] share_m share_l (one term): its Gram matrix."""
    out[:, :] = 0.0
    a = terms.first[t]
    if terms.second[t] >= 0:
        _grid_products(rows, terms, t, values, out)
    elif rows.fraction_row[a] < 0:
        slots = rows.slots[a]
        for i in range(values.shape[0]):
            out[slots[i], slots[i]] += values[i]
    else:
        slots = rows.slots[a]
        part = rows.fraction[rows.fraction_row[a]]
        for i in range(values.shape[0]):
            m = slots[i]
            p = np.float64(part[i])
            high = values[i] * p
            low = values[i] - high
            out[m, m] += low * (1.0 - p)
            out[m, m + 1] += low * p
            out[m + 1, m + 1] += high * p
    for m in range(out.shape[0]):
        for k in range(m):
            out[m, k] = out[k, m]


# What slot values add to the rows.


@njit(cache=True, nogil=True)
def add_two_levels(slots: Slots, slot_values: Floats, change: Floats) -> None:
    low = slot_values[0]
    step = slot_values[1] - low
    for i in range(change.shape[0]):
        change[i] += low + step * np.float64(slots[i])


@njit(cache=True, nogil=True)
def add_four_cells(
    first: Slots, second: Slots, width: int, slot_values: Floats, change: Floats
) -> None:
    low = slot_values[0]
    step = slot_values[width] - low
    next_ = slot_values[1] - low
    both = slot_values[width + 1] - slot_values[width] - next_
    for i in range(change.shape[0]):
        a = np.float64(first[i])
        b = np.float64(second[i])
        change[i] += low + step * a + b * (next_ + both * a)


@njit(cache=True, inline="always")
def _polynomials(corners: Floats, width: np.int64) -> Floats:
    """c0 + c1 along + across (c2 + c3 along) in every cell: four numbers side by side."""
    n_cells = corners.shape[0] - width - 1
    out = np.empty(4 * n_cells)
    for cell in range(n_cells):
        low, high = corners[cell], corners[cell + width]
        step = corners[cell + 1] - low
        out[4 * cell] = low
        out[4 * cell + 1] = high - low
        out[4 * cell + 2] = step
        out[4 * cell + 3] = corners[cell + width + 1] - high - step
    return out


@njit(cache=True, nogil=True)
def _add_grid(
    first: Slots, second: Slots, along: Fractions, across: Fractions, width: np.uint64,
    corners: Floats, change: Floats,
) -> None:  # fmt: skip
    """change += the value of the grid at every row, bilinear inside each cell."""
    inside = _polynomials(corners, np.int64(width))
    for i in range(change.shape[0]):
        c = np.uint64(4) * (np.uint64(first[i]) * width + np.uint64(second[i]))
        low = inside[c] + along[i] * inside[c + np.uint64(1)]
        step = inside[c + np.uint64(2)] + along[i] * inside[c + np.uint64(3)]
        change[i] += low + across[i] * step


@njit(cache=True, nogil=True)
def add_only(rows: Rows, terms: Terms, t: int, slot_values: Floats, change: Floats) -> None:
    kind = _pass_of(rows, terms, t)
    if kind <= _CELLS:
        width = terms.width[t]
        first, second, along, across = _grid(rows, terms, t)
        if kind == _CORNERS:
            _add_grid(first, second, along, across, np.uint64(width), slot_values, change)
        elif kind == _FOUR_CELLS:
            add_four_cells(first, second, width, slot_values, change)
        else:
            for i in range(change.shape[0]):
                change[i] += slot_values[np.int64(first[i]) * width + np.int64(second[i])]
        return
    slots = rows.slots[terms.first[t]]
    if kind == _TWO_LEVELS:
        add_two_levels(slots, slot_values, change)
        return
    if kind == _LEVELS:
        for i in range(change.shape[0]):
            change[i] += slot_values[slots[i]]
        return
    part = rows.fraction[rows.fraction_row[terms.first[t]]]
    for i in range(change.shape[0]):
        m = slots[i]
        change[i] += slot_values[m] + part[i] * (slot_values[m + 1] - slot_values[m])


@njit(cache=True, inline="always")
def add_term(
    rows: Rows, terms: Terms, t: int, slot_values: Floats, h: Floats, change: Floats,
    residual: Floats, own: Floats,
) -> None:  # fmt: skip
    """change += term t; residual += h times it (its change of the quadratic model's gradient).

    ``own`` has room for what the term alone adds.
    """
    own[:] = 0.0
    add_only(rows, terms, t, slot_values, own)
    for i in range(own.shape[0]):
        change[i] += own[i]
        residual[i] += h[i] * own[i]


# From and to coordinates.


@njit(cache=True, nogil=True)
def score_change(
    rows: Rows, terms: Terms, work: Ints, g: Floats, b: Floats, change: Floats
) -> None:
    """change[k] = b[k] + sum of the terms in ``work`` with coordinates g."""
    buffer = np.zeros(longest(terms, work))
    for k in range(g.shape[0]):
        change[k, :] = b[k]
        for w in range(work.shape[0]):
            t = work[w]
            B = basis_of(terms, t)
            m, r = B.shape
            s = terms.start[t]
            sums = buffer[: padded(terms, t)]
            sums[:] = 0.0
            if m * r > _CALLED:
                np.dot(B, g[k, s : s + r], sums[:m])
            else:
                for c in range(m):
                    for j in range(r):
                        sums[c] += B[c, j] * g[k, s + j]
            add_only(rows, terms, t, sums, change[k])


@njit(cache=True, nogil=True)
def coordinate_rows(rows: Rows, terms: Terms, owner: Ints, wanted: Ints, out: Floats) -> None:
    """out[i] += what coordinate wanted[i], of the term that owns it, adds to the rows."""
    buffer = np.zeros(longest(terms, owner[wanted]))
    for i in range(wanted.shape[0]):
        t = owner[wanted[i]]
        values = buffer[: padded(terms, t)]
        B = basis_of(terms, t)
        values[:] = 0.0
        for c in range(B.shape[0]):
            values[c] = B[c, wanted[i] - terms.start[t]]
        add_only(rows, terms, t, values, out[i])


@njit(cache=True, nogil=True)
def coordinate_sums(rows: Rows, terms: Terms, wanted: Ints, values: Floats, out: Floats) -> None:
    """out[k, start_t : start_t + rank_t] = B_t' slot sums of values[k], for the wanted terms."""
    buffer = np.empty(longest(terms, wanted))
    for w in range(wanted.shape[0]):
        t = wanted[w]
        B = basis_of(terms, t)
        m, r = B.shape
        s = terms.start[t]
        sums = buffer[: padded(terms, t)]
        for k in range(values.shape[0]):
            slot_sums(rows, terms, t, values[k], sums)
            for j in range(r):
                out[k, s + j] = 0.0
            for c in range(m):
                for j in range(r):
                    out[k, s + j] += B[c, j] * sums[c]


# Losses of the scores, row by row.


@njit(cache=True, nogil=True)
def binary_slopes(
    f: Floats, y: Ints, weight: Floats, zone: Floats, blur: float, residual: Floats, h: Floats
) -> float:
    """Weighted truncated logistic loss, its slope and curvature (y in {0, 1}); returns the sum.

    ``zone`` = (position, height, floor) of the kink of negatives, then of positives, on the scale
    of the margin; a height of zero means no kink. The kink's hinge is rounded over ``blur``.
    """
    total = 0.0
    for i in range(f.shape[0]):
        w = weight[i]
        if w == 0.0:
            residual[i] = 0.0
            h[i] = 0.0
            continue
        sign = 1.0 if y[i] > 0 else -1.0
        m = sign * f[i]
        at = 3 * y[i]
        # exp of what is never positive: no overflow, and log1p keeps the digits of small losses
        e = np.exp(-abs(m))
        plain = np.log1p(e) + max(-m, 0.0)
        tail = e / (1.0 + e) if m > 0.0 else 1.0 / (1.0 + e)
        value = plain
        slope = -tail
        curve = e / ((1.0 + e) * (1.0 + e))
        height = zone[at + 1]
        if height > 0.0:
            gap = zone[at] - m
            if gap <= -0.5 * blur:
                value = zone[at + 2]
                slope = 0.0
                curve = 0.0
            elif gap < 0.5 * blur:
                # smooth part + height * (gap + blur / 2)^2 / (2 blur)
                reach = gap + 0.5 * blur
                if gap > 0.0:
                    value = plain - height * gap
                    slope = -tail + height
                else:
                    value = zone[at + 2]
                    slope = 0.0
                    curve = 0.0
                value += 0.5 * height * reach * reach / blur
                slope -= height * reach / blur
                curve += height / blur
        total += w * value
        residual[i] = w * sign * slope
        h[i] = w * curve
    return total


@njit(cache=True, nogil=True)
def multinomial_slopes(f: Floats, y: Ints, weight: Floats, residual: Floats, h: Floats) -> float:
    """Weighted cross-entropy; slope p - e_y; the curvature diag(p) bounds diag(p) - p p'.

    A row of weight 1e12 that is nearly certain still pulls: what its class lacks of one is summed
    over the other classes, never taken from one.
    """
    K, n = f.shape
    total = 0.0
    for i in range(n):
        w = weight[i]
        if w == 0.0:
            for k in range(K):
                residual[k, i] = 0.0
                h[k, i] = 0.0
            continue
        # the largest score is taken out first, so that no exponential overflows
        top = 0
        for k in range(1, K):
            if f[k, i] > f[top, i]:
                top = k
        rest = 0.0
        for k in range(K):
            h[k, i] = np.exp(f[k, i] - f[top, i])
            rest += h[k, i] if k != top else 0.0
        total += w * (np.log1p(rest) + (f[top, i] - f[y[i], i]))
        lacks = 0.0
        for k in range(K):
            h[k, i] = w * h[k, i] / (1.0 + rest)
            residual[k, i] = h[k, i]
            lacks += h[k, i] if k != y[i] else 0.0
        residual[y[i], i] = -lacks
    return total


@njit(cache=True, nogil=True)
def curved(h: Floats, change: Floats, out: Floats) -> None:
    """out = Hessian of the loss times ``change``: h for one score, w (diag(p) - p p') for several.

    With several scores h = w p, so that w is the sum of h over the classes. Changes are taken
    against that of the likeliest class: w p (v - p'v) of a row that is nearly certain keeps digits.
    """
    K, n = h.shape
    for i in range(n):
        if K == 1:
            out[0, i] = h[0, i] * change[0, i]
            continue
        top = 0
        total = 0.0
        for k in range(K):
            total += h[k, i]
            if h[k, i] > h[top, i]:
                top = k
        mean = 0.0
        for k in range(K):
            mean += h[k, i] * (change[k, i] - change[top, i])
        mean = mean / total if total > 0.0 else 0.0
        for k in range(K):
            out[k, i] = h[k, i] * (change[k, i] - change[top, i] - mean)


@njit(cache=True, nogil=True)
def own_curvatures(h: Floats, out: Floats) -> None:
    """out = w p (1 - p) of every class for h = w p: the diagonal of w (diag(p) - p p')."""
    K, n = h.shape
    for i in range(n):
        total = 0.0
        for k in range(K):
            total += h[k, i]
        for k in range(K):
            others = 0.0
            for m in range(K):
                others += h[m, i] if m != k else 0.0
            out[k, i] = h[k, i] * others / total if total > 0.0 else 0.0
