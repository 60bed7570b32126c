"""The weighted naive Bayes as the paper's searches see it: mini-batches and a history."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from laconic.criteria.weighted_bayes import WeightedBayes
from laconic.solvers.anytime import (
    Deadline,
    Path,
    Restarts,
    SearchName,
    dgml,
    search,
    total_iterations,
)
from laconic.solvers.coded_rows import CodedRows
from laconic.solvers.solution import Solution

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

GROWTH = 10
"""How much larger the batches of each new start are."""


@dataclass(frozen=True)
class MiniBatches:
    """The paper's problem: slope on batch t, value on the history that ends with it.

    The penalty is shared out: a batch carries the part of it that its rows are of all rows. (The
    paper adds the whole penalty to every batch, which would multiply it by N / L.) Both are
    measured at ``total``, the weight that the criterion speaks of.

    Attributes
    ----------
    batches, order
        Coded rows, and the order in which they come; after the last the first one follows.
    batch_size
        L, rows of a batch.
    past
        Rows that the criterion is measured on, None for the last ``depth`` rows of ``batches``.
    """

    batches: CodedRows
    order: Ints
    batch_size: int
    criterion: WeightedBayes
    total: float
    past: CodedRows | None = None
    depth: int = 0

    @property
    def n_variables(self) -> int:
        return self.batches.n_variables

    def value(self, w: Floats, batch: int) -> float:
        past = self.past or self._rows(self._end(batch) - self.depth, self.depth)
        loss = past.loss(w) * (self.total / past.total_weight())
        return self.criterion.value(w, loss)

    def slope(self, w: Floats, batch: int) -> Floats:
        size = self._size
        rows = self._rows(self._end(batch) - size, size)
        _, slope = rows.loss_and_slope(w)
        penalty_slope = self.criterion.slope(w, np.zeros_like(w))
        return slope / rows.total_weight() + penalty_slope / self.total

    def grown(self) -> MiniBatches:
        """The same problem by larger batches, at most a whole history."""
        most = len(self.order) if self.past is not None else self.depth
        size = min(GROWTH * self._size, max(most, self._size))
        return replace(self, batch_size=size)

    @property
    def _size(self) -> int:
        return min(self.batch_size, len(self.order))

    def _end(self, batch: int) -> int:
        return (batch + 1) * self._size

    def _rows(self, begin: int, size: int) -> CodedRows:
        picked = self.order[np.arange(begin, begin + min(size, len(self.order))) % len(self.order)]
        return self.batches.take(picked)


def search_weights(
    problem: MiniBatches,
    kind: SearchName,
    *,
    level: int,
    rng: np.random.Generator,
    start: Floats | None = None,
    max_iter: int | None = None,
    deadline: Deadline | None = None,
) -> Solution:
    """DGML, DGML-MS or DGML-VNS, from w = 1/2 without a ``start``. Nothing is certified.

    Every new start has batches :data:`GROWTH` times larger. Batches of L rows leave noise of order
    1 / sqrt(L) in the slopes, whose signs then turn at random near the minimum and shrink the
    steps; with batches of one size the search stays above it (the paper's section 4.1 finds so
    too). An iteration measures the criterion on the whole history anyway, so its cost keeps its
    order.
    """
    first = np.full(problem.n_variables, 0.5) if start is None else start
    budget = max_iter or total_iterations(problem.n_variables, problem.total, level)
    following = problem

    def descend(point: Floats, path: Path, until: Deadline, allowed: int) -> int:
        nonlocal following
        at, following = following, following.grown()
        return dgml(at, point, path, until, allowed)

    return search(descend, first, Restarts(kind, rng), budget=budget, deadline=deadline)
