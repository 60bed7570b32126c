r"""A long sum of terms on one page: fewer bends, joined levels, fewer terms, taught by itself.

Its entries are bends of shapes, levels of tables, cells of grids, lines and trees. They leave one
at a time, each at what the scores of the rows lose once all others have taken over, in the weighted
squares

.. math:: \sum_i w_i\,p_i (1 - p_i)\,[f(x_i) - g(x_i)]^2,

twice the loss that is added, to second order (``elimination``). A form that is far too long is cut
before, term by term: every part has a path from all its entries down to none (``paths``), and the
steps that spare most entries for their cost are taken over all terms at once. What is left is
fitted together to the scores of the long sum, by the same weighted squares: one linear system. The
page that is kept settles: its entries are fitted to the long sum's probabilities, one convex
problem with a certificate (``settling``). The long sum is the teacher; no label is looked at again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy import sparse
from scipy.linalg import solve

from laconic._typing import Floats, Ints
from laconic.choose.page.elimination import Elimination, Squares
from laconic.choose.page.parts import Part, parts_of, read_slots, slot_values, with_slots
from laconic.choose.page.paths import Path, allocated, level_path, shape_path, whole_path
from laconic.choose.page.settling import Cone, PageProblem, log_probabilities_of, settle
from laconic.choose.tuning import ONE_BY_ONE, REFIT_RIDGE
from laconic.core.compact import term_size
from laconic.core.forms import AdditiveScore, LineTerm, probabilities
from laconic.core.losses import Solution
from laconic.data.tables.columns import Table


def form_size(form: AdditiveScore) -> int:
    """Entries that a reader must look at."""
    return sum(term_size(term) for term in form.terms)


class Shortening:
    """A form on its way to fewer entries: each page goes on from what the last one left.

    It is taught on the rows of the table by the form itself.

    >>> from laconic.core.forms import SlotTerm
    >>> from laconic.data.tables.axes import KnotAxis
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
        self.size = form_size(form)
        p = probabilities(self.scores, form.link)[:, -self.scores.shape[1] :]
        spread = weight[:, None] * p * (1.0 - p)
        # rows that are nearly certain weigh a little more; by their weights, as copies would
        little = 1e-3 * spread.sum(axis=0) / weight.sum() + 1e-12
        self.weight = spread + weight[:, None] * little
        self.rows, self.total = weight, float(weight.sum())
        self.certificate: Solution | None = None
        self.elimination: Elimination | None = None
        self.designs: list[Design] = []
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

        ``settled``: the entries that are left are fitted once more, with a certificate; without it
        a page says nearly the same.
        """
        target = float(most)
        while self.size > most:
            if target > ONE_BY_ONE:
                self._cut(target)
                self._refit()
            else:
                self._leave(target)
            self._draw()
            if settled and self.size <= most:
                self.certificate = self.settle()
                self._draw()
            # scores of several classes count where they are zero: a few entries draw many
            target = min(target - 1.0, target * most / max(self.size, 1.0))
        return self.form

    def _cut(self, most: float) -> None:
        """The cheapest steps of every part by itself: for forms that are far too long."""
        paths = [self._path(part) for part in self.parts]
        states = allocated(paths, most)
        cut = [path.at(state) for path, state in zip(paths, states, strict=True)]
        self.parts = [part for part in cut if part is not None]

    def _leave(self, most: float) -> None:
        """Entries leave one by one; those that stay have taken over."""
        if self.elimination is None:
            if sum(part.price * len(part.values) for part in self.parts) > ONE_BY_ONE:
                self._cut(ONE_BY_ONE)
            curvatures = self._refit()
            self.elimination = Elimination(
                [
                    Squares(design.parts, self._values(k), H)
                    for k, (design, H) in enumerate(zip(self.designs, curvatures, strict=True))
                ]
            )
        intercept, self.parts = self.elimination.to(most)
        self.intercept[:] = intercept
        self.designs = []
        for part in self.parts:
            if part.sign:
                cone = Cone(0, len(part.values), part.sign, line=part.kind == "line")
                part.values[:] = cone.nearest(part.values, np.ones(len(part.values)))

    def _refit(self) -> list[Floats]:
        """The entries that are left come as close to the scores of the whole form as they can.

        Returns the curvature of each score.
        """
        self.designs = [self._design(k) for k in range(len(self.intercept))]
        curvatures = [self._curvature(k, design) for k, design in enumerate(self.designs)]
        for k, (design, H) in enumerate(zip(self.designs, curvatures, strict=True)):
            self._take(k, self._refitted(k, design, H))
        return curvatures

    def _values(self, k: int) -> Floats:
        own = [part.values for part in self.parts if part.score == k]
        return np.concatenate([[self.intercept[k]], *own])

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
        centre = self._values(k)
        curves = np.einsum("ij,ij,i->j", X, X, self.weight[:, k])
        lines = np.repeat([False, *(part.kind == "line" for part in own)], np.diff([0, *ends]))
        # the curvature of a slope has the unit of its cells: it is no measure for other entries
        usual = np.where(lines, curves, curves[~lines].mean())
        return Design(X, own, ends, centre, REFIT_RIDGE * (curves + usual) + 1e-300)

    def _curvature(self, k: int, design: Design) -> Floats:
        rows = design.X * np.sqrt(self.weight[:, k])[:, None]
        H = np.asarray(rows.T @ rows)
        H[np.diag_indices_from(H)] += design.ridge
        return H

    def _refitted(self, k: int, design: Design, H: Floats) -> Floats:
        """Entries that come closest to score k of the whole form.

        A little ridge around the values as they are keeps those that no row tells apart.
        """
        unit = 1.0 / np.sqrt(H.diagonal())
        off = self.scores[:, k] - design.X @ design.centre
        right = design.X.T @ (self.weight[:, k] * off)
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
        self.designs = self.designs or [self._design(k) for k in range(len(self.intercept))]
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
        start = [self._values(k) for k in range(len(self.designs))]
        found = settle(problem, np.concatenate(start))
        for k, (a, b) in enumerate(pairwise(sizes)):
            self._take(k, found.point[a:b])
        return found

    def _draw(self) -> None:
        """The form that is left, and its size."""
        values: dict[int, Floats] = {}
        for part in self.parts:
            term = self.terms[part.term]
            own = values.setdefault(part.term, np.zeros_like(slot_values(term)))
            own[part.slots, part.score] = part.basis() @ part.values
        terms = tuple(with_slots(self.terms[t], values[t]) for t in sorted(values))
        self.form = replace(self.form, intercept=self.intercept.copy(), terms=terms)
        self.size = form_size(self.form)


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
            if part.sign:
                found.append(Cone(int(a), int(b), part.sign, line=part.kind == "line"))
        return found
