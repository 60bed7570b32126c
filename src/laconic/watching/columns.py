r"""Has a column moved beyond what the class mix explains?

Bins that should hold a few rows are compared by

.. math:: T(\pi) = d^\top \Sigma^{+} d, \qquad d = \hat s - \sum_k \pi_k \hat f_k,

with the covariance of both sides, multinomial within the new rows and within every class of the
reference, at the shares on which both agree. At the true mix T is a chi square, but the mix is an
estimate from the same rows. So the least T over a region is taken that holds the true mix with
probability 1 - gamma: T at the true mix is no smaller, whatever the dependence, and gamma is part
of the chance of a false alarm (Berger and Boos 1994). Neighbouring bins, or the rarest texts, are
counted together until a class with few reference rows has some in each. Bins that should hold next
to no row, unknown texts among them, have a test of their own: given that they held m rows before,
the r rows that they hold now are negative binomial when nothing moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import f as fisher
from scipy.stats import nbinom

from laconic._typing import Floats, Ints, Mask
from laconic.data.tables.spoken import moves_with_time
from laconic.decide.reference import ColumnReference
from laconic.watching.mix import MixEstimate
from laconic.watching.tuning import LEAST_EXPECTED, ROUNDS


@dataclass(frozen=True)
class MovedColumn:
    """A column whose cells fall otherwise than the new class mix explains."""

    name: str
    p_value: float
    """Corrected for looking at all columns (Holm)."""
    largest: str
    """The bin that moved most, with its shares then and now."""
    before: float
    now: float
    named_by: str = "cells"
    """The bin is named by the text of its "cells", by a "number", or by a "word" ("missing")."""


def moved_columns(
    columns: Sequence[ColumnReference], seen: Sequence[Floats], mix: MixEstimate, doubt: float
) -> tuple[MovedColumn, ...]:
    """Columns that moved, with doubt ``doubt`` for all of them together.

    Days and months move because time passes: of such a column this asks alone whether it is filled
    as it was.
    """
    asked = [_filled(*pair) for pair in zip(columns, seen, strict=True)]
    return _moved([one for one, _ in asked], [own for _, own in asked], mix, doubt)


def moved_days(
    columns: Sequence[ColumnReference], seen: Sequence[Floats], mix: MixEstimate, doubt: float
) -> tuple[MovedColumn, ...]:
    """Columns of days or months that hold others, with doubt ``doubt`` for all of them together."""
    days = [pair for pair in zip(columns, seen, strict=True) if moves_with_time(pair[0].name)]
    return _moved([one for one, _ in days], [own for _, own in days], mix, doubt)


def _filled(one: ColumnReference, seen: Floats) -> tuple[ColumnReference, Floats]:
    """A column of days or months as filled or missing; any other as it is."""
    if not moves_with_time(one.name):
        return one, seen

    def joined(counts: Floats) -> Floats:
        filled = counts[..., :-2].sum(axis=-1, keepdims=True)
        return np.concatenate([filled, counts[..., -2:]], axis=-1)

    return ColumnReference(one.name, np.empty(0), None, joined(one.counts)), joined(seen)


def _moved(
    columns: Sequence[ColumnReference], seen: Sequence[Floats], mix: MixEstimate, doubt: float
) -> tuple[MovedColumn, ...]:
    region = mix_region(mix)
    tests = [column_test(one, own, region) for one, own in zip(columns, seen, strict=True)]
    order = np.argsort([p for p, *_ in tests], kind="stable")
    found = []
    worst = 0.0
    for rank, j in enumerate(order.tolist()):
        worst = max(worst, min(tests[j][0] * (len(tests) - rank), 1.0))
        if worst >= doubt:
            break
        _, b, before, now = tests[j]
        one = columns[j]
        found.append(MovedColumn(one.name, worst, one.label(b), before, now, _named_by(one, b)))
    return tuple(found)


def _named_by(one: ColumnReference, b: int) -> str:
    if b >= one.n_bins - 2 or (one.edges is not None and not len(one.edges)):
        return "word"
    return "cells" if one.edges is None else "number"


def mix_region(mix: MixEstimate) -> Floats:
    """Mixes among which the true one is: the estimate, and where redrawn rows put it."""
    return np.vstack([mix.by_cells, mix.prior, mix.draws])


def column_test(
    one: ColumnReference, seen: Floats, region: Floats
) -> tuple[float, int, float, float]:
    """P-value of "the column follows the mix", and the bin that moved most with its shares."""
    total, rows = max(float(seen.sum()), 1.0), np.maximum(one.counts.sum(axis=1), 1.0)
    shares = one.counts / rows[:, None]
    expected = region[0] @ shares
    group = _groups(one, rows, total, region)
    never = group < 0
    before = one.counts[:, never].sum(axis=1)
    rare = _rare_p_value(before, rows, float(seen[never].sum()), total, region)
    moved = np.abs(seen / total - expected) / np.sqrt(np.maximum(expected, 1.0 / total))
    b = int(moved.argmax())
    common = _common_p_value(shares, rows, seen, region, group) if group.max() > 0 else 1.0
    p_value = min(2.0 * min(rare, common), 1.0)
    return p_value, b, float(expected[b]), float(seen[b] / total)


def _often(counts: Floats, rows: Floats, total: float, prior: Floats) -> Mask:
    """Bins whose shares are nearly normal, in the new rows and in every class that matters.

    A class with fewer than five rows in a bin matters there if as many, unseen by chance, would be
    a fifth of the variance of the bin's share.
    """
    shares = counts / rows[:, None]
    expected = prior @ shares
    variance = expected / total + (prior**2 / rows) @ shares
    few = (counts < LEAST_EXPECTED) & (
        LEAST_EXPECTED * (prior / rows)[:, None] ** 2 > 0.2 * variance
    )
    return np.asarray((total * expected >= LEAST_EXPECTED) & ~few.any(axis=0))


def _groups(one: ColumnReference, rows: Floats, total: float, region: Floats) -> Ints:
    """Which bins are counted together, -1 for those that should hold next to no row.

    Intervals join the next one, texts the next rarest, until their sum is nearly normal, also for
    the mix of the region that has most of a class.
    """
    mixes = region[np.unique([0, *region.argmax(axis=0)])]

    def often(counts: Floats) -> Mask:
        return np.asarray(np.all([_often(counts, rows, total, prior) for prior in mixes], axis=0))

    expected = total * (region[0] @ (one.counts / rows[:, None]))
    rare = expected < LEAST_EXPECTED
    rare[-2:] |= ~often(one.counts[:, -2:])  # any other, and missing: no neighbours
    order = np.arange(one.n_bins) if one.texts is None else np.argsort(expected, kind="stable")
    group, k, held = np.full(one.n_bins, -1), 0, np.empty(0, dtype=np.int64)
    for b in order[~rare[order]]:
        held = np.append(held, b)
        if often(one.counts[:, held].sum(axis=1, keepdims=True))[0]:
            group[held], k, held = k, k + 1, held[:0]
    group[held] = max(k - 1, 0)
    return group


def _common_p_value(
    shares: Floats, rows: Floats, seen: Floats, region: Floats, group: Ints
) -> float:
    total = float(seen.sum())
    f, s = (_pooled(own, group) for own in (shares, seen / total))
    away = s - region @ f
    under, prior, least = f, region[0], np.inf
    for _ in range(ROUNDS):
        # variances as they are when nothing moved: shares that both sides agree on. From the
        # reference alone, a bin that is low by chance would count as known too well
        parts = [w * _covariance(own) for w, own in zip(prior**2 / rows, under, strict=True)]
        whole = sum(parts, _covariance(prior @ under) / total)
        inverse = np.linalg.pinv(whole, rcond=1e-10, hermitian=True)
        values = np.einsum("rb,bc,rc->r", away, inverse, away)
        best = int(values.argmin())
        prior, least = region[best], min(least, float(values[best]))
        pull = inverse @ away[best]
        moved = [
            own + p / n * _covariance(old) @ pull
            for own, old, p, n in zip(f, under, prior, rows, strict=True)
        ]
        under = np.maximum(np.array(moved), 0.1 * f + 1e-9)
        under = under / under.sum(axis=1, keepdims=True)
    rank = len(s) - 1
    # a variance that rests on few rows of a bin makes T larger, and its tail heavier: Hotelling's
    # law, with the rows of each class's emptiest bin, by what the class adds to the variance
    added = np.array([np.trace(inverse @ own) for own in parts]) / rank
    fewest = 2.0 * np.maximum((f * rows[:, None]).min(axis=1), 1.0)
    known = 1.0 / max(float((added**2 / fewest).sum()), 1e-9)
    return float(fisher.sf(least / rank, rank, max(known, 1.0)))


def _pooled(values: Floats, group: Ints) -> Floats:
    """Shares of groups of bins; bins of none are added to the last.

    >>> _pooled(np.array([0.4, 0.1, 0.3, 0.2]), np.array([0, -1, 0, 1])).round(1).tolist()
    [0.7, 0.3]
    """
    found = np.zeros((*values.shape[:-1], int(group.max()) + 1))
    np.add.at(found, (..., group), values)  # type: ignore[arg-type]
    return found


def _covariance(share: Floats) -> Floats:
    return np.asarray(np.diag(share) - np.outer(share, share))


def _rare_p_value(before: Floats, rows: Floats, now: float, total: float, region: Floats) -> float:
    """Chance of ``now`` rows or more in rare bins that held ``before`` of each class.

    With one class this is the exact comparison of two Poisson counts; one row more in the
    reference stands for what it could not show.
    """
    if not now:
        return 1.0
    rate = (before + 1.0) / rows
    mean = total * (region @ rate)
    shape = mean**2 / (total**2 * (region**2 @ (rate / rows)))
    return float(nbinom.sf(now - 1, shape, shape / (shape + mean)).max())
