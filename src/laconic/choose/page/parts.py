"""Parts of terms: a shape, the levels beside it, those of a table or a grid, a line, a tree."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from laconic._typing import Floats, Ints
from laconic.core.forms import LineTerm, RulesTerm, SlotTerm, Term
from laconic.data.tables.axes import KnotAxis, encode_column
from laconic.data.tables.columns import Table


@dataclass(frozen=True)
class Part:
    """Some slots of one score of a term, and their entries, whose values may change.

    ``places`` are, for a shape, the knots at which it bends; else the entry that each slot reads,
    or -1. ``price`` is what an entry counts: a tree is one entry that counts for all its leaves.
    ``sign`` is the direction of a shape that never falls (1) or never rises (-1), or of a line.
    """

    term: int
    score: int
    kind: str
    slots: Ints
    places: Ints
    values: Floats
    knots: Floats
    price: int = 1
    sign: float = 0.0

    @property
    def owner(self) -> tuple[int, int]:
        return self.term, self.score

    def basis(self) -> Floats:
        """(slots, entries): slot values are this times the entries."""
        if self.kind == "shape":
            hats = np.eye(len(self.places))
            at = self.knots[self.places]
            return np.stack([np.interp(self.knots, at, hat) for hat in hats], axis=1)
        if self.kind == "tree":
            return self.knots[:, None]
        return np.asarray(self.places[:, None] == np.arange(len(self.values)), dtype=np.float64)


def parts_of(term: Term, t: int, k: int) -> list[Part]:
    """The parts of score k of a term that are not zero already."""
    values = slot_values(term)[:, k]
    every, nothing = np.arange(len(values)), np.empty(0)
    if isinstance(term, LineTerm):
        made = [
            Part(
                t,
                k,
                "line",
                every[j : j + 1],
                np.zeros(1, dtype=np.int64),
                values[j : j + 1].copy(),
                nothing,
                sign=float(np.sign(values[j])),
            )
            for j in (0, 1)
        ]
        return [part for part in made if part.values[0] != 0.0]
    if isinstance(term, RulesTerm):
        tree = Part(t, k, "tree", every, every, np.ones(1), values, term.n_leaves)
        return [tree] if values.any() else []
    n = 0
    made = []
    if term.kind == "piecewise":
        axis = term.axes[0]
        assert isinstance(axis, KnotAxis)
        n = len(axis.knots)
        bends = np.array(bent(np.asarray(axis.knots), values[:n, None]))
        knots, sign = np.asarray(axis.knots), _direction(values[bends])
        made.append(Part(t, k, "shape", every[:n], bends, values[bends], knots, sign=sign))
    level, place = np.unique(values[n:], return_inverse=True)
    if n:
        # beside a shape zero is no entry
        place = np.where(
            values[n:] == 0.0, -1, place - (place > np.searchsorted(level, 0.0)) * (0.0 in level)
        )
        level = level[level != 0.0]
    if len(level) and (n or len(level) > 1):
        made.append(Part(t, k, "apart" if n else "levels", every[n:], place, level.copy(), nothing))
    return [part for part in made if part.values.any()]


def _direction(values: Floats) -> float:
    """1 where they never fall, -1 where they never rise, else 0."""
    steps = np.diff(values)
    return float((steps >= 0.0).all()) - float((steps <= 0.0).all())


# Slots of terms.


def slot_values(term: Term) -> Floats:
    """(slots, scores): a line has a slope and a value for missing, a tree its nodes."""
    if isinstance(term, LineTerm):
        assert term.missing is not None
        return np.stack([term.slope / _unit(term), term.missing])
    return np.asarray(term.values).reshape(-1, term.n_scores)


def _unit(term: LineTerm) -> float:
    """One but for slopes of next to nothing, whose cells are so large that they have no squares."""
    steepest = float(np.abs(term.slope).max(initial=0.0))
    return steepest if 0.0 < steepest < 1e-100 else 1.0


def with_slots(term: Term, values: Floats) -> Term:
    """The term with other slot values; knots at which no score bends are left out."""
    if isinstance(term, LineTerm):
        return replace(term, slope=values[0] * _unit(term), missing=values[1])
    if not (isinstance(term, SlotTerm) and term.kind == "piecewise"):
        return replace(term, values=values.reshape(np.shape(term.values)))
    axis = term.axes[0]
    assert isinstance(axis, KnotAxis)
    n = len(axis.knots)
    bends = bent(np.asarray(axis.knots), values[:n])
    fewer = KnotAxis(axis.knots[bends], axis.specials)
    return SlotTerm(term.columns, (fewer,), np.vstack([values[bends], values[n:]]))


def bent(knots: Floats, values: Floats) -> list[int]:
    """The ends, and knots at which one of the scores is not straight."""
    n = len(knots)
    if n < 3:
        return list(range(n))
    slopes = np.diff(values, axis=0) / np.diff(knots)[:, None]
    steep = (
        np.abs(np.diff(slopes, axis=0))
        * np.minimum(np.diff(knots)[1:], np.diff(knots)[:-1])[:, None]
    )
    inner = (steep > 1e-9 * max(float(np.ptp(values)), 1e-300)).any(axis=1)
    return [0, *(np.flatnonzero(inner) + 1).tolist(), n - 1]


def read_slots(term: Term, table: Table) -> sparse.csr_matrix:
    """(rows, slots): how much of the value of each slot a row reads."""
    n = table.n_rows
    rows = np.arange(n)
    if isinstance(term, LineTerm):
        one, none = np.full(1, _unit(term)), np.zeros(1)
        both = [replace(term, slope=a, missing=b) for a, b in ((one, none), (none, one))]
        return sparse.csr_matrix(np.hstack([own.contribution(table) for own in both]))
    if isinstance(term, RulesTerm):
        nodes = replace(term, values=np.arange(len(term.column), dtype=np.float64)[:, None])
        leaf = nodes.contribution(table)[:, 0].astype(np.int64)
        return sparse.csr_matrix((np.ones(n), (rows, leaf)), shape=(n, len(term.column)))
    read = [(np.zeros(n, dtype=np.int64), np.ones(n))]
    for axis, name in zip(term.axes, term.columns, strict=True):
        slot, part = encode_column(axis, table, table.place(name))
        sides = [(slot, 1.0 - part)]
        if axis.interpolates:
            sides.append((np.minimum(slot + 1, axis.size - 1), part))
        read = [(at * axis.size + s, share * p) for at, share in read for s, p in sides]
    size = int(np.prod([axis.size for axis in term.axes]))
    places = np.concatenate([at for at, _ in read])
    shares = np.concatenate([share for _, share in read])
    return sparse.csr_matrix((shares, (np.tile(rows, len(read)), places)), shape=(n, size))
