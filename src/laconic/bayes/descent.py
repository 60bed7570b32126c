"""The paper's searches of weights in [0, 1]^K: DGML, DGML-MS and DGML-VNS.

Algorithm 1 of Hue, Boulle and Lemaire (EGC 2014) is a projected gradient by mini-batches (DGML);
algorithm 2 starts it again near the best point met (DGML-VNS), its rival anywhere (DGML-MS). The
paper leaves some things open or says them twice; here

* a step grows (x 1.2) when the slope keeps its sign and shrinks (x 0.5) when it changes: section 4
  says so, the sentence of section 3 says the reverse;
* a new start is drawn around the best point met so far: the text says so, algorithm 2 writes the
  last one;
* an improvement is one of 1e-4 of the criterion over the last value that improved, as algorithm 1
  memorises it. In nats descents reach Max = 100 with whole batches too, which the paper never saw;
  over the lowest value so far they end early where the criterion is flat. docs/naive_bayes.md has
  the counts of section 4.1 by each reading (:class:`DescentRules`);
* the first neighbourhood has no value in the paper: see ``tuning``.

The best point is memorised at every evaluation, so that stopping at any moment loses nothing and
a longer run of the same seed is never worse.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from laconic._typing import Floats, Ints
from laconic.bayes.criterion import CodedRows, WeightedBayes
from laconic.bayes.tuning import FIRST_NEIGHBOURHOOD
from laconic.core.losses import Solution, WhyStopped
from laconic.core.progress import Deadline

SearchName = Literal["dgml", "dgml-ms", "dgml-vns"]

logger = logging.getLogger("laconic")


@dataclass(frozen=True)
class DescentRules:
    """The constants of section 4 of the paper."""

    first_step: float = 1e-2
    shrink: float = 0.5
    grow: float = 1.2
    max_iter: int = 100
    tolerance: int = 5
    improvement: float = 1e-4
    relative: bool = True
    """Whether ``improvement`` is a share of the criterion, or nats."""
    memorised: bool = True
    """Whether a step is compared with the last value that improved, or with the lowest so far."""
    zero_below: float = 1e-3

    def clean(self, w: Floats) -> Floats:
        return np.where(w < self.zero_below, 0.0, w)

    def improves(self, value: float, best: float) -> bool:
        return value < best - self.improvement * (abs(best) if self.relative else 1.0)


PAPER_RULES = DescentRules()


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
        loss = past.loss(w) * (self.total / past.total_weight)
        return self.criterion.value(w, loss)

    def slope(self, w: Floats, batch: int) -> Floats:
        size = self._size
        rows = self._rows(self._end(batch) - size, size)
        _, slope = rows.loss_and_slope(w)
        penalty_slope = self.criterion.slope(w, np.zeros_like(w))
        return slope / rows.total_weight + penalty_slope / self.total

    def grown(self, factor: float) -> MiniBatches:
        """The same problem by larger batches, at most a whole history."""
        most = len(self.order) if self.past is not None else self.depth
        size = min(int(factor * self._size), max(most, self._size))
        return replace(self, batch_size=size)

    @property
    def _size(self) -> int:
        return min(self.batch_size, len(self.order))

    def _end(self, batch: int) -> int:
        return (batch + 1) * self._size

    def _rows(self, begin: int, size: int) -> CodedRows:
        picked = self.order[np.arange(begin, begin + min(size, len(self.order))) % len(self.order)]
        return self.batches.take(picked)


@dataclass
class SearchPath:
    """Every evaluation of a search, and the best point among them."""

    point: Floats
    value: float = math.inf
    values: list[float] = field(default_factory=list)
    points: list[Floats] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)

    def add(self, point: Floats, value: float) -> None:
        self.values.append(value)
        self.points.append(point)
        if value < self.value:
            self.point, self.value = point, value
            logger.info("iteration %d: criterion %.6f", len(self.values), value)

    def start(self) -> None:
        """The next evaluation begins a new descent."""
        self.starts.append(len(self.values))

    def as_details(self) -> dict[str, object]:
        return {
            "values": np.array(self.values),
            "points": np.array(self.points),
            "starts": np.array(self.starts, dtype=np.int64),
        }


def total_iterations(n_variables: int, total: float, level: int) -> int:
    """T = log(K N) 2^level, the paper's budget."""
    return max(1, math.ceil(math.log(max(n_variables * total, 2.0)) * 2.0**level))


def dgml(
    problem: MiniBatches,
    start: Floats,
    path: SearchPath,
    deadline: Deadline,
    allowed: int,
    rules: DescentRules = PAPER_RULES,
) -> int:
    """Algorithm 1: projected gradient by mini-batches, one Rprop step for each weight.

    Returns the number of iterations; the points go to ``path``. ``allowed`` bounds them, on top
    of the rules' own limit.
    """
    w = start.copy()
    step = np.full(len(w), rules.first_step)
    before = np.zeros(len(w))
    path.start()
    best = problem.value(rules.clean(w), len(path.values))
    path.add(rules.clean(w), best)
    failures = 0
    done = 0
    while failures < rules.tolerance and done < min(rules.max_iter, allowed):
        if deadline.passed():
            break
        batch = len(path.values)
        slope = problem.slope(w, batch)
        turned = slope * before
        step = np.where(turned < 0.0, step * rules.shrink, step)
        step = np.where(turned > 0.0, step * rules.grow, step)
        before = slope
        w = np.clip(w - step * slope, 0.0, 1.0)
        kept = rules.clean(w)
        value = problem.value(kept, batch)
        path.add(kept, value)
        done += 1
        better = rules.improves(value, best)
        failures = 0 if better else failures + 1
        if better or not rules.memorised:
            best = min(best, value)
    return done


Descend = Callable[[Floats, SearchPath, Deadline, int], int]


def search(
    descend: Descend,
    start: Floats,
    kind: SearchName,
    *,
    rng: np.random.Generator,
    budget: int,
    deadline: Deadline | None = None,
) -> Solution:
    """Algorithm 2: descents from new starts until ``budget`` iterations are spent.

    A new start is anywhere (MS), or in a neighbourhood of the best point (VNS), which doubles when
    a descent finds nothing better. Nothing is certified here (``gap`` is infinite); the caller
    knows the criterion and may bound it.
    """
    deadline = deadline or Deadline(None)
    path = SearchPath(start)
    size, n_variables = FIRST_NEIGHBOURHOOD, len(start)
    spent = descend(start, path, deadline, budget)
    while kind != "dgml" and spent < budget and not deadline.passed():
        before = path.value
        if kind == "dgml-ms":
            point = rng.random(n_variables)
        else:
            point = np.clip(path.point + rng.uniform(-size, size, n_variables), 0.0, 1.0)
        spent += max(1, descend(point, path, deadline, budget - spent))
        if path.value >= before:
            size = min(2.0 * size, 1.0)
    why: WhyStopped = "budget" if deadline.passed() else "max_iter"
    return Solution(path.point, path.value, math.inf, len(path.values), why, path.as_details())


def search_weights(
    problem: MiniBatches,
    kind: SearchName,
    *,
    level: int,
    rng: np.random.Generator,
    start: Floats | None = None,
    max_iter: int | None = None,
    deadline: Deadline | None = None,
    rules: DescentRules = PAPER_RULES,
    batch_growth: float = 1.0,
) -> Solution:
    """DGML, DGML-MS or DGML-VNS, from w = 1/2 without a ``start``. Nothing is certified.

    As algorithm 2 says, the budget log(K N) 2^level decides whether one more descent begins, and
    the last one is not cut short; ``max_iter``, which the paper does not have, is a limit.

    ``batch_growth`` makes the batches of each new start so many times larger; the paper's are of
    one size. L rows leave noise of order 1 / sqrt(L) in the slopes, whose signs then turn at random
    near the minimum and shrink the steps: with batches of one size the search stays above it
    (section 4.1 finds so too). An iteration measures the criterion on the whole history anyway, so
    that its cost keeps its order as batches grow.
    """
    first = np.full(problem.n_variables, 0.5) if start is None else start
    budget = max_iter or total_iterations(problem.n_variables, problem.total, level)
    following = problem

    def descend(point: Floats, path: SearchPath, until: Deadline, left: int) -> int:
        nonlocal following
        at, following = following, following.grown(batch_growth)
        return dgml(at, point, path, until, left if max_iter else rules.max_iter, rules)

    return search(descend, first, kind, rng=rng, budget=budget, deadline=deadline)
