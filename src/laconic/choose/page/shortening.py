r"""A long sum of terms on one page: fewer bends, joined levels, fewer terms, taught by itself.

Every part of a term has a path from all its entries down to none: knots leave a shape one by one,
levels of a table or cells of a grid join the nearest one (Ward), a line or a tree leaves whole. A
step costs the weighted square by which it moves the scores of the rows,

.. math:: \sum_i w_i\,p_i (1 - p_i)\,[f(x_i) - g(x_i)]^2,

twice the loss that it adds, to second order. Steps that spare most entries for their cost are
taken, over all terms at once, until the page is short enough (on the lower convex hulls of the
paths, where that greedy rule is the best there is). Then the entries that are left are fitted
together to the scores of the long sum, by the same weighted squares: one linear system, by which
what stays takes over from what leaves. The page that is kept settles: its entries are fitted to the
long sum's probabilities, one convex problem with a certificate (``settling``). The long sum is the
teacher; no label is looked at again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy import sparse
from scipy.linalg import solve

from laconic._typing import Floats, Ints
from laconic.choose.page.settling import Cone, PageProblem, log_probabilities_of, settle
from laconic.choose.tuning import FIRST_CUT, REFIT_RIDGE
from laconic.core.compact import term_size
from laconic.core.forms import AdditiveScore, LineTerm, RulesTerm, SlotTerm, Term, probabilities
from laconic.core.losses import Solution
from laconic.data.tables.axes import KnotAxis, encode_column
from laconic.data.tables.columns import Table


def form_size(form: AdditiveScore) -> int:
    """Entries that a reader must look at."""
    return sum(term_size(term) for term in form.terms)


class Shortening:
    """A form on its way to fewer entries: one cut after another, each from what the last left.

    It is taught on the rows of the table by the form itself.

    >>> axis = KnotAxis(np.array([0.0, 1.0, 2.0, 3.0]), np.empty(0))
    >>> values = np.array([[0.0], [0.9], [2.1], [3.0], [0.0]])
    >>> form = AdditiveScore((0, 1), np.zeros(1), (SlotTerm(("x",), (axis,), values),))
    >>> rows = Table(("x",), ("numeric",), (None,), matrix=np.linspace(0, 3, 99)[:, None])
    >>> drawn = Shortening(form, rows, np.ones(99)).to(2)
    >>> drawn.terms[0].axes[0].knots.tolist()
    [0.0, 3.0]
    """

    def __init__(self, form: AdditiveScore, table: Table, weight: Floats) -> None:
        self.form, self.terms, self.scores = form, form.terms, form.score(table)
        p = probabilities(self.scores, form.link)[:, -self.scores.shape[1] :]
        spread = weight[:, None] * p * (1.0 - p)
        # rows that are nearly certain weigh a little more; by their weights, as copies would
        little = 1e-3 * spread.sum(axis=0) / weight.sum() + 1e-12
        self.weight = spread + weight[:, None] * little
        self.rows, self.total = weight, float(weight.sum())
        self.certificate: Solution | None = None
        readings = [read_slots(term, table) for term in form.terms]
        self.starts = np.cumsum([0, *(own.shape[1] for own in readings)])
        self.intercept = np.array(form.intercept)
        if not readings:
            return
        self.reading = sparse.hstack(readings, format="csr")
        self.by_slot = self.reading.tocsc()  # a line is a column of it
        # rows by slot; a line reads cells, whose sum may be anything and is no mass
        line = [isinstance(term, LineTerm) for term in form.terms]
        counted = ~np.repeat(line, np.diff(self.starts))
        mass = np.where(counted[:, None], self.reading.T @ self.weight, 0.0)
        self.mass = mass + 1e-3 * mass.sum(axis=0) / max(int(counted.sum()), 1) + 1e-300
        self.parts = [
            part
            for t, term in enumerate(form.terms)
            for k in range(term.n_scores)
            for part in parts_of(term, t, k)
        ]

    def to(self, most: float, *, settled: bool = False) -> AdditiveScore:
        """At most ``most`` entries; the form itself where it has no more.

        A much longer one is cut twice: what the first cut leaves takes over before more leave.
        ``settled``: the last fit has a certificate; one linear system says nearly the same.
        """
        size, target = form_size(self.form), float(most)
        if size > FIRST_CUT**2 * most:
            self._cut(FIRST_CUT * most)
        while size > most:
            self._cut(target)
            self.form = self._drawn()
            if settled and form_size(self.form) <= most:
                self.certificate = self.settle()
                self.form = self._drawn()
            size = form_size(self.form)
            # scores of several classes count where they are zero: a few entries draw many
            target = min(target - 1.0, target * most / max(size, 1.0))
        return self.form

    def _cut(self, most: float) -> None:
        paths = [self._path(part) for part in self.parts]
        states = allocated(paths, most)
        cut = [path.at(state) for path, state in zip(paths, states, strict=True)]
        self.parts = [part for part in cut if part is not None]
        self.designs = [self._design(k) for k in range(len(self.intercept))]
        for k, design in enumerate(self.designs):
            self._take(k, self._refitted(k, design))

    def _mass(self, part: Part) -> Floats:
        """Mass of the entries of a part."""
        mass = self.mass[self.starts[part.term] + part.slots, part.score]
        if part.kind in ("levels", "apart"):
            own = part.places >= 0  # thousands of levels need no matrix
            return np.asarray(np.bincount(part.places[own], mass[own], len(part.values)), float)
        return np.asarray(part.basis().T @ mass)

    def _path(self, part: Part) -> Path:
        if part.kind in ("line", "tree"):
            at = self.starts[part.term] + part.slots
            column = self.by_slot[:, at] @ (part.basis() @ part.values)
            w = self.weight[:, part.score]
            return whole_path(part, float(w @ (column - np.average(column, weights=w)) ** 2))
        return (shape_path if part.kind == "shape" else level_path)(part, self._mass(part))

    def _design(self, k: int) -> Design:
        """The rows by the entries of score k, as the last cut left them."""
        own = [part for part in self.parts if part.score == k]
        blocks = []
        for part in own:
            basis = part.basis()
            slot, entry = np.nonzero(basis)
            at = self.starts[part.term] + part.slots[slot]
            blocks.append((at, entry, basis[slot, entry]))
        ends = np.cumsum([1, *(len(part.values) for part in own)])
        X = np.ones((len(self.scores), int(ends[-1])))
        if own:
            rows = np.concatenate([at for at, _, _ in blocks])
            columns = np.concatenate(
                [c + e - 1 for (_, c, _), e in zip(blocks, ends, strict=False)]
            )
            data = np.concatenate([d for _, _, d in blocks])
            shape = (self.reading.shape[1], int(ends[-1]) - 1)
            X[:, 1:] = (self.reading @ sparse.csr_matrix((data, (rows, columns)), shape)).toarray()
        centre = np.concatenate([[self.intercept[k]], *(part.values for part in own)])
        curves = np.einsum("ij,ij,i->j", X, X, self.weight[:, k])
        lines = np.repeat([False, *(part.kind == "line" for part in own)], np.diff([0, *ends]))
        # the curvature of a slope has the unit of its cells: it is no measure for other entries
        usual = np.where(lines, curves, curves[~lines].mean())
        return Design(X, own, ends, centre, REFIT_RIDGE * (curves + usual) + 1e-300)

    def _refitted(self, k: int, design: Design) -> Floats:
        """Entries that come closest to score k of the whole form.

        A little ridge around the values as they are keeps those that no row tells apart.
        """
        X, ridge = design.X, design.ridge
        weighted = X * self.weight[:, k][:, None]
        H = X.T @ weighted
        H[np.diag_indices_from(H)] += ridge
        unit = 1.0 / np.sqrt(H.diagonal())
        right = weighted.T @ (self.scores[:, k] - X @ design.centre)
        step = unit * solve(unit[:, None] * H * unit, unit * right, assume_a="pos")
        return np.asarray(design.centre + step)

    def _take(self, k: int, values: Floats) -> None:
        """Give the entries of score k their values; shapes and lines keep their direction."""
        design = self.designs[k]
        for cone in design.cones:
            values[cone.start : cone.end] = cone.nearest(values, np.ones(len(values)))
        self.intercept[k] = values[0]
        for part, a, b in zip(design.parts, design.ends[:-1], design.ends[1:], strict=True):
            part.values[:] = values[a:b]

    def settle(self) -> Solution:
        """Fit the entries to the long sum's probabilities, with a certificate."""
        sizes = np.cumsum([0, *(len(design.centre) for design in self.designs)])
        cones = [
            replace(cone, start=cone.start + at, end=cone.end + at)
            for design, at in zip(self.designs, sizes, strict=False)
            for cone in design.cones
        ]
        total = self.total
        problem = PageProblem(
            tuple(design.X for design in self.designs),
            log_probabilities_of(self.scores),
            self.rows / total,
            np.concatenate([design.centre for design in self.designs]),
            np.concatenate([design.ridge / total for design in self.designs]),
            tuple(cones),
        )
        start = [
            np.concatenate([[self.intercept[k]], *(part.values for part in design.parts)])
            for k, design in enumerate(self.designs)
        ]
        found = settle(problem, np.concatenate(start))
        for k, (a, b) in enumerate(pairwise(sizes)):
            self._take(k, found.point[a:b])
        return found

    def _drawn(self) -> AdditiveScore:
        values: dict[int, Floats] = {}
        for part in self.parts:
            term = self.terms[part.term]
            own = values.setdefault(part.term, np.zeros_like(slot_values(term)))
            own[part.slots, part.score] = part.basis() @ part.values
        terms = tuple(with_slots(self.terms[t], values[t]) for t in sorted(values))
        return replace(self.form, intercept=self.intercept.copy(), terms=terms)


@dataclass(frozen=True)
class Design:
    """Rows by the entries of a score; the first one is its intercept.

    ``ends`` are those of the parts among the entries, ``centre`` the values that a cut left.
    """

    X: Floats
    parts: list[Part]
    ends: Ints
    centre: Floats
    ridge: Floats

    @property
    def cones(self) -> list[Cone]:
        """Shapes that never fall, or never rise, go on to do so; lines keep their sign."""
        found = []
        for part, a, b in zip(self.parts, self.ends[:-1], self.ends[1:], strict=True):
            values = self.centre[a:b]
            if part.kind == "line":
                found.append(Cone(int(a), int(b), float(np.sign(values[0])) or 1.0, line=True))
            elif part.kind == "shape":
                steps = np.diff(values)
                for sign in (1.0, -1.0):
                    if (sign * steps >= 0.0).all():
                        found.append(Cone(int(a), int(b), sign))
                        break
        return found


# Parts of terms, and their paths.


@dataclass(frozen=True)
class Part:
    """Some slots of one score of a term, and their entries, whose values may change.

    ``places`` are, for a shape, the knots at which it bends; else the entry that each slot reads,
    or -1. ``price`` is what an entry counts: a tree is one entry that counts for all its leaves.
    """

    term: int
    score: int
    kind: str
    slots: Ints
    places: Ints
    values: Floats
    knots: Floats
    price: int = 1

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
        made.append(Part(t, k, "shape", every[:n], bends, values[bends], np.asarray(axis.knots)))
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


@dataclass(frozen=True)
class Path:
    """States of a part, from all entries to none: sizes, errors, the order in which they leave."""

    part: Part
    sizes: Ints
    errors: Floats
    order: Ints
    mass: Floats

    def at(self, state: int) -> Part | None:
        """The part at a state; nothing at the last one."""
        part = self.part
        if state == len(self.sizes) - 1:
            return None
        if state == 0:
            return part
        if part.kind == "shape":
            stays = np.setdiff1d(np.arange(len(part.values)), self.order[:state])
            return replace(part, places=part.places[stays], values=part.values[stays])
        up = np.argsort(part.values, kind="stable")
        starts = np.setdiff1d(np.arange(len(up)), self.order[:state])
        group = np.empty(len(up), dtype=np.int64)
        group[up] = np.searchsorted(starts, np.arange(len(up)), side="right") - 1
        total = np.bincount(group, self.mass)
        means = np.bincount(group, self.mass * part.values) / total
        places = np.where(part.places < 0, -1, group[part.places])
        return replace(part, places=places, values=means)


def removed(n: int, cost: Callable[[int, int, int], float]) -> tuple[Ints, Floats]:
    """The inner ones of n places in the order in which they leave, and what each costs then.

    ``cost(left, j, right)`` is that of place j between the neighbours that it has left.
    """
    left, right = list(range(-1, n - 1)), list(range(1, n + 1))
    now = np.full(n, np.inf)
    now[1:-1] = [cost(j - 1, j, j + 1) for j in range(1, n - 1)]
    order, paid = [], []
    for _ in range(n - 2):
        j = int(now.argmin())
        order.append(j)
        paid.append(max(float(now[j]), 0.0))
        now[j] = np.inf
        a, b = left[j], right[j]
        right[a], left[b] = b, a
        for i in (a, b):
            if 0 < i < n - 1:
                now[i] = cost(left[i], i, right[i])
    return np.array(order, dtype=np.int64), np.array(paid)


def shape_path(part: Part, mass: Floats) -> Path:
    """Knots leave one by one; the polygon through those that stay is the shape."""
    x, v = part.knots[part.places], part.values
    off = squares_off_chords(x, v, mass)
    order, paid = removed(len(x), lambda a, j, b: off(a, b) - off(a, j) - off(j, b))
    return _path_of(part, order, paid, mass, float(mass @ (v - mass @ v / mass.sum()) ** 2))


def squares_off_chords(x: Floats, v: Floats, mass: Floats) -> Callable[[int, int], float]:
    """Weighted squares between the points from a to b and the chord from a to b, in constant time.

    With u the place along the axis and d the height, both from point a, and s the slope,
    sum m (d - s u)^2 = sum m d^2 - 2 s sum m u d + s^2 sum m u^2, from sums up to each point.
    """
    wide = x[-1] / 2.0 - x[0] / 2.0
    t = (x / 2.0 - x[0] / 2.0) / wide if wide > 0.0 else np.zeros(len(x))
    h = v - v.mean()
    moments = np.stack([np.ones(len(t)), t, h, t * t, t * h, h * h]) * mass
    sums = np.hstack([np.zeros((6, 1)), np.cumsum(moments, axis=1)]).T.tolist()
    at, height = t.tolist(), h.tolist()

    def off(a: int, b: int) -> float:
        if b - a < 2 or at[b] <= at[a]:
            return 0.0
        low, high = sums[a + 1], sums[b]
        m, mt, mh = high[0] - low[0], high[1] - low[1], high[2] - low[2]
        mtt, mth, mhh = high[3] - low[3], high[4] - low[4], high[5] - low[5]
        t0, h0 = at[a], height[a]
        slope = (height[b] - h0) / (at[b] - t0)
        hh = mhh - 2.0 * h0 * mh + h0 * h0 * m
        th = mth - t0 * mh - h0 * mt + t0 * h0 * m
        tt = mtt - 2.0 * t0 * mt + t0 * t0 * m
        return float(max(hh - 2.0 * slope * th + slope * slope * tt, 0.0))

    return off


def level_path(part: Part, mass: Floats) -> Path:
    """Neighbours in the order of their values join; beside a shape, what is left becomes zero."""
    up = np.argsort(part.values, kind="stable")
    m, v = mass[up], part.values[up]
    weight, first = (np.append(0.0, np.cumsum(own)).tolist() for own in (m, m * v))

    def cost(a: int, j: int, b: int) -> float:
        one, two = weight[j] - weight[a], weight[b] - weight[j]
        apart = (first[j] - first[a]) / one - (first[b] - first[j]) / two
        return float(one * two / (one + two) * apart * apart)

    order, paid = removed(len(up) + 1, cost)
    centre = 0.0 if part.kind == "apart" else first[-1] / weight[-1]
    return _path_of(part, order, paid, mass, float(m @ (v - centre) ** 2))


def whole_path(part: Part, error: float) -> Path:
    """All or nothing."""
    sizes, errors = np.array([part.price, 0]), np.array([0.0, error])
    return Path(part, sizes, errors, np.empty(0, dtype=np.int64), np.ones(1))


def _path_of(part: Part, order: Ints, paid: Floats, mass: Floats, nothing: float) -> Path:
    errors = np.append(0.0, np.cumsum(paid))
    if part.kind == "levels":
        order, errors = order[:-1], errors[:-1]  # one level for all is no term
    sizes = np.append(len(part.values) - np.arange(len(errors)), 0)
    return Path(part, sizes, np.append(errors, max(nothing, errors[-1])), order, mass)


def allocated(paths: Sequence[Path], most: float) -> list[int]:
    """The state of each path: the cheapest steps over all of them, for at most ``most`` entries."""
    steps = []
    for i, path in enumerate(paths):
        for a, b in pairwise(lower_hull(path.sizes.tolist(), path.errors.tolist())):
            spared = int(path.sizes[a] - path.sizes[b])
            steps.append((float(path.errors[b] - path.errors[a]) / spared, i, spared, b))
    steps.sort()
    states, size = [0] * len(paths), sum(int(path.sizes[0]) for path in paths)
    # a shape that leaves before the values apart from it would still be drawn: it waits for them
    apart = {path.part.owner: i for i, path in enumerate(paths) if path.part.kind == "apart"}
    waiting: dict[int, tuple[int, int, int]] = {}
    for _, i, spared, state in steps:
        if size <= most:
            break
        last = state == len(paths[i].sizes) - 1
        beside = apart.get(paths[i].part.owner, i) if last else i
        if beside != i and states[beside] < len(paths[beside].sizes) - 1:
            waiting[beside] = i, spared, state
            continue
        size -= spared
        states[i] = state
        if last and i in waiting:
            j, also, end = waiting.pop(i)
            size -= also
            states[j] = end
    return states


def lower_hull(sizes: Sequence[int], errors: Sequence[float]) -> list[int]:
    """Points on the lower convex hull, from the largest size to none.

    >>> lower_hull([4, 3, 2, 0], [0.0, 3.0, 3.5, 8.0])
    [0, 2, 3]
    """
    hull = [0]
    for i in range(1, len(sizes)):
        while len(hull) > 1:
            a, b = hull[-2:]
            before = (errors[b] - errors[a]) * (sizes[b] - sizes[i])
            if before < (errors[i] - errors[b]) * (sizes[a] - sizes[b]):
                break
            hull.pop()
        hull.append(i)
    return hull


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
