"""Folds as the user asks for them: a number, a splitter or pairs; rows that judge a model."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints, Keys
from laconic.core.contract import Training
from laconic.data.row_keys import (
    Pairs,
    keyed_folds,
    pairs_apart,
    pairs_of_groups,
    row_keys,
)
from laconic.data.source import Block
from laconic.data.tables.columns import Table, shown

FEWEST_COPIES, MIXED_COPIES = 0.1, 0.02
"""Share of rows that have an equal one from which they may be copies, and the share of these that
may differ in their class. Copies say less than as many other rows: intervals must know. By
convention; ``stress/noise.py`` counts what comes of it."""


def folds_of(
    cv: Any,
    rows: Training,
    n_given: int,
    seed: int,
    groups: NDArray[Any] | None = None,
    time: NDArray[Any] | None = None,
) -> Pairs:
    """Pairs (train, test) of places in ``rows``.

    A number gives folds that keep equal rows together and spread each class evenly; a class with
    a single row is absent from the training rows of its fold. With ``groups`` (one entry for each
    of the rows that count) the rows of a group are together; with ``time`` every fold trains on
    what came before the rows it holds out. A splitter splits the rows that count; pairs of indices
    refer to the ``n_given`` rows passed to ``fit``; both are refused where they would leak.
    """
    if isinstance(cv, Integral):
        pairs = pairs_apart(keys_of(rows, seed), rows.y, int(cv), seed, groups, time, rows.weight)
    elif hasattr(cv, "split"):
        from sklearn.model_selection import check_cv

        splitter = check_cv(cv, rows.y, classifier=True)
        with warnings.catch_warnings():
            # a splitter that takes no groups says so; whether it leaks is seen below
            warnings.filterwarnings("ignore", "The groups parameter is ignored")
            pairs = list(splitter.split(np.zeros((rows.n_rows, 1)), rows.y, groups))
    else:
        pairs = [_counted(pair, rows, n_given) for pair in cv]
    refuse_leaks(pairs, groups, time)
    return pairs


def keys_of(rows: Training, seed: int) -> Keys:
    """Keys of the training rows that do not depend on the order of the columns."""
    return row_keys(rows.table, seed, rows.column_keys)


@dataclass(frozen=True)
class HashedFolds:
    """Folds by a hash of the row's values: equal rows together, each row on its own."""

    count: int
    seed: int

    def of(self, X: Table) -> Ints:
        if self.count == 1:
            return np.zeros(len(X), dtype=np.int64)
        return np.asarray(row_keys(X, self.seed) % np.uint64(self.count)).astype(np.int64)

    def outside(self, block: Block, fold: int) -> Block:
        """The rows that a fold is fitted on; all of them for fold -1."""
        if fold < 0:
            return block
        rows = _taken(block, self.of(block.X) != fold)
        return Block(block.index, block.start, block.stop, *rows)

    def inside(self, block: Block, fold: int) -> tuple[Table, Ints, Floats]:
        """The rows that a fold holds out, their classes and weights."""
        return _taken(block, self.of(block.X) == fold)


def _taken(block: Block, chosen: NDArray[np.bool_]) -> tuple[Table, Ints, Floats]:
    assert block.y is not None
    assert block.weight is not None
    rows = np.flatnonzero(chosen)
    return block.X[rows], block.y[rows], block.weight[rows]


def refuse_leaks(pairs: Pairs, groups: NDArray[Any] | None, time: NDArray[Any] | None) -> None:
    """An error where a fold judges a group that it was trained on, or by what came later."""
    for number, (train, test) in enumerate(pairs):
        if groups is not None:
            both = np.intersect1d(groups[train], groups[test])
            if len(both):
                raise ValueError(
                    f"Fold {number} of cv trains on and judges rows of group {shown(both[0])}: the "
                    "cost it reports would be too low. Give a splitter that respects groups, for "
                    "instance GroupKFold, or a number."
                )
        if time is not None and len(train) and len(test) and time[train].max() >= time[test].min():
            raise ValueError(
                f"Fold {number} of cv trains on rows that are not earlier than those it judges "
                f"({shown(time[train].max())} and {shown(time[test].min())}): the cost it reports "
                "would be too low. Give a number as cv."
            )


def held_out_rows(
    keys: Keys,
    y: Ints,
    share: float,
    groups: NDArray[Any] | None = None,
    time: NDArray[Any] | None = None,
    seed: int = 0,
) -> tuple[Ints, Ints]:
    """Places to train on and places to test on, about ``share`` of the rows.

    Equal rows of a class, the rows of a group and those of one time stay on one side; with
    ``time`` the test rows come after all others.
    """
    n_folds = max(2, round(1.0 / share))
    if time is not None:
        order = np.sort(np.asarray(time))
        first = order[min(len(order) - 1, round((1.0 - share) * len(order)))]
        test = np.asarray(time) >= first
        pairs = [(np.flatnonzero(~test), np.flatnonzero(test))]
        refuse_leaks(pairs, groups, time)
        return pairs[0]
    if groups is not None:
        return pairs_of_groups(groups, y, n_folds, seed)[0]
    test = keyed_folds(keys, y, n_folds) == 0
    for k in np.unique(y):
        # a class whose rows are all equal is learned from, and not tested
        test &= (y != k) | (~test & (y == k)).any()
    return np.flatnonzero(~test), np.flatnonzero(test)


def judging_rows(
    keys: Keys,
    y: Ints,
    share: float,
    groups: NDArray[Any] | None = None,
    time: NDArray[Any] | None = None,
    *,
    within_classes: bool = False,
    seed: int = 0,
) -> tuple[Ints, Ints]:
    """Places to train on, and places whose rows are independent evidence about what was trained.

    A promise counts rows by a binomial law. So rows are drawn at random, each on its own: evenly
    spread copies of what was trained on (:func:`held_out_rows`) would agree with it too well. Rows
    that are plainly copies stay on one side and count once. Of a group at most one row judges,
    drawn so that each row held out is as likely as any other. Promises ``within_classes`` are about
    rows of one class: the same share of each class judges, and of a group one row of each class. A
    promise about all rows rests on their class mix too: even shares would tell the fit what mix its
    judges have. Neither the order of the rows nor that of the columns matters.

    >>> keys, y = np.arange(8, dtype=np.uint64), np.array([0, 0, 0, 0, 1, 1, 1, 1])
    >>> train, judges = judging_rows(keys, y, 0.5, within_classes=True)
    >>> np.bincount(y[train]).tolist(), np.bincount(y[judges]).tolist()
    ([2, 2], [2, 2])
    """
    draw = np.random.default_rng([seed % 2**64, int(keys.sum(dtype=np.uint64)), len(keys)])
    if groups is not None or time is not None:
        train, held = held_out_rows(keys, y, share, groups, time, seed)
        if groups is None:
            return train, held
        codes = np.unique(groups, return_inverse=True)[1]
        held = held[np.lexsort((y[held], keys[held], codes[held]))]
        return train, judges_of_groups(codes, held, y, within_classes, draw)
    alike = copies_of(keys, y)
    order = np.lexsort((y, keys))
    if alike is not None:
        order = order[np.unique(alike[order], return_index=True)[1]]
    classes = np.unique(y)
    parts = [order[y[order] == k] for k in classes] if within_classes else [order]
    judges = [draw.permutation(own)[: min(round(share * len(own)), len(own) - 1)] for own in parts]
    chosen = np.concatenate(judges)
    for k in classes[~np.isin(classes, y[np.setdiff1d(order, chosen)])]:
        # of a class at least one row is learned from
        chosen = np.delete(chosen, np.flatnonzero(y[chosen] == k)[0])
    chosen = np.sort(chosen)
    own = np.arange(len(y)) if alike is None else alike
    return np.flatnonzero(~np.isin(own, own[chosen])), chosen


def judges_of_groups(
    groups: Ints, held: Ints, y: NDArray[Any], within_classes: bool, draw: np.random.Generator
) -> Ints:
    """Of the rows held out at most one of each group, or of each group and class."""
    kinds = [held[y[held] == k] for k in np.unique(y[held])] if within_classes else [held]
    return np.sort(np.concatenate([one_a_group(groups, own, draw) for own in kinds]))


def one_a_group(groups: Ints, rows: Ints, draw: np.random.Generator) -> Ints:
    """At most one of the ``rows`` of each group, each row with the same probability.

    A group is kept with a probability that grows with its size, the largest one for certain.
    """
    mixed = draw.permutation(rows)
    _, first, size = np.unique(groups[mixed], return_index=True, return_counts=True)
    return np.asarray(mixed[first[draw.random(len(size)) * size.max() <= size]])


def copies_of(keys: Keys, y: Ints) -> Ints | None:
    """A number for each row, the same for copies; None where none are, or equal by chance.

    Copies have equal cells, and always an equal class too: rows of few cells are often equal by
    chance, and then their classes differ now and then.
    """
    _, first, place, size = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    agree = np.bincount(place, y != y[first][place]) == 0
    several = size > 1
    if not several.any() or size[several].sum() < FEWEST_COPIES * len(keys):
        return None
    return place if size[several & ~agree].sum() < MIXED_COPIES * size[several].sum() else None


def _counted(pair: Iterable[Any], rows: Training, n_given: int) -> tuple[Ints, Ints]:
    place = np.full(n_given, -1, dtype=np.int64)
    place[rows.kept] = np.arange(rows.n_rows)
    train, test = (place[np.asarray(part)] for part in pair)
    return train[train >= 0], test[test >= 0]
