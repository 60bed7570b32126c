"""The proof: branch and bound over which items have points, then over the points.

A node says of every item whether it is in, out or open. Its bound is a convex relaxation
(:func:`~laconic.scorecard._numba_nodes.relax_node`): open items share ``room`` places, each within
limits outside of which no card can be better than what is aimed at. A node with one place left
tries every item for it on the few cells of its support; what is not ruled out there goes to an
exact search of its points (:func:`~laconic.scorecard._numba.search_points`).
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints
from laconic.core.progress import Deadline, report_step
from laconic.scorecard.problem import CardProblem
from laconic.scorecard.tuning import (
    LATTICE_NODES,
    NODE_STEPS,
    NODE_TOL,
    SIDE_STEPS,
    TARGETS,
    TIE,
    TOLD,
)

State = NDArray[np.int8]


@dataclass
class Incumbent:
    """The best card so far."""

    loss: float
    points: Ints
    multiplier: float = 0.0
    offset: float = 0.0


def search_support(
    problem: CardProblem, support: Ints, best: float, gap: float
) -> tuple[Incumbent | None, float]:
    """The best card of a support if its loss is below ``best``, and a bound on all its cards."""
    from laconic.scorecard._numba import search_points

    Z, c1, c0 = problem.cells(support)
    cover = np.zeros((len(problem.limits.cover), len(support)), dtype=np.bool_)
    for g, group in enumerate(problem.limits.cover):
        cover[g] = np.isin(support, group)
    lo, hi = problem.lo[support].astype(float), problem.hi[support].astype(float)
    tie = TIE * problem.null_loss
    loss, a, b, own, bound, _nodes = search_points(
        Z, c1, c0, lo, hi, cover, problem.most_multiplier, best, gap, LATTICE_NODES, tie
    )
    if not loss < best:
        return None, bound
    points = np.zeros(problem.n_items, dtype=np.int64)
    points[support] = np.rint(own).astype(np.int64)
    return Incumbent(loss, points, a, b), bound


@dataclass(order=True)
class _Node:
    bound: float
    number: int
    state: State
    w: Floats
    b: float


class Proof:
    """Branch and bound from an incumbent; ``bound`` holds whenever it is read."""

    def __init__(self, problem: CardProblem, best: Incumbent, deadline: Deadline) -> None:
        self.problem, self.best, self.deadline = problem, best, deadline
        self.bound, self.n_nodes, self._told = 0.0, 0, np.inf
        self._most = problem.most_multiplier
        self._lo, self._hi = problem.lo.astype(float), problem.hi.astype(float)
        share = problem.pos.sum() / (problem.pos.sum() + problem.neg.sum())
        largest = np.sort(np.maximum(-self._lo, self._hi))[-problem.most_items :].sum()
        self._offset = 2.0 * (abs(np.log(share / (1 - share))) + self._most * largest)
        X = problem.dense
        spread = share * (1 - share) * np.maximum((X @ (problem.pos + problem.neg)), 1e-9)
        self._scale = 1.0 / spread
        self._caps, self._column = _column_caps(problem)

    def run(self, gap: float) -> None:
        """Aim at smaller and smaller gaps, down to ``gap``; stops at the deadline."""
        for target in [t for t in TARGETS if t > gap] + [gap]:
            if self.deadline.passed():
                break
            if self.gap > target:
                self._reach(target)

    @property
    def gap(self) -> float:
        """Part of the incumbent's loss that a better card could save at most."""
        return max(0.0, (self.best.loss - self.bound) / self.best.loss) if self.best.loss else 0.0

    def _cutoff(self, target: float) -> float:
        return self.best.loss * (1.0 - target) - TIE * self.problem.null_loss

    def _reach(self, target: float) -> None:
        """One tree, in which a node with a bound of (1 - target) times the best loss is closed."""
        p, self._closed = self.problem.n_items, np.inf
        state = np.where(self.problem.usable, 0, -1).astype(np.int8)
        for group in self.problem.limits.cover:
            if len(group) == 1:
                state[group[0]] = 1
        if not self._settle(state):
            return
        low, high = self._lo * self._most, self._hi * self._most
        low[state < 0] = high[state < 0] = 0.0
        self._low, self._high = low, high
        lb, w, b = self._relax(state, np.zeros(p), 0.0, target)
        if lb < self._cutoff(target):
            w, b = self._narrow(state, w, b, target)
            lb = max(lb, self._relax(state, w, b, target)[0])
        heap = [_Node(lb, 0, state, w, b)]
        number = 0
        while heap and not self.deadline.passed():
            node = heapq.heappop(heap)
            self._publish(min(node.bound, self._closed))
            if node.bound >= self._cutoff(target):
                self._closed = min(self._closed, node.bound)
                continue
            self.n_nodes += 1
            for child in self._children(node, target):
                number += 1
                child.number = number
                if child.bound >= self._cutoff(target):
                    self._closed = min(self._closed, child.bound)
                else:
                    heapq.heappush(heap, child)
        open_bounds = [node.bound for node in heap]
        self._publish(min([self._closed, self.best.loss, *open_bounds]))

    def _publish(self, bound: float) -> None:
        self.bound = max(self.bound, min(bound, self.best.loss))
        if self.gap <= (1.0 - TOLD) * self._told:
            self._told = self.gap
            report_step(f"card of log loss {self.best.loss:.4f}, proven within {self.gap:.1%}")

    def _relax(
        self, state: State, w: Floats, b: float, target: float, steps: int = NODE_STEPS
    ) -> tuple[float, Floats, float]:
        from laconic.scorecard._numba_nodes import relax_node

        room = self.problem.most_items - int((state == 1).sum())
        low = np.where(state < 0, 0.0, self._low)
        high = np.where(state < 0, 0.0, self._high)
        cutoff = self._cutoff(target)
        lb, _value, w, b, worth = relax_node(
            self.problem.dense, self.problem.pos, self.problem.neg, state, low, high, self._scale,
            room, self._column, self._caps, w, b, cutoff, NODE_TOL * self.best.loss, steps,
            self._offset,
        )  # fmt: skip
        self._fix(state, lb, worth, room, cutoff)
        return lb, w, b

    def _fix(self, state: State, lb: float, worth: Floats, room: int, cutoff: float) -> None:
        """Items that no better card of the node has: putting them in costs too much."""
        if not room or lb >= cutoff:
            return
        free = np.flatnonzero(state == 0)
        if len(free) <= room:
            return
        last = np.sort(worth[free])[-room]
        gone = free[lb + last - worth[free] >= cutoff]
        if len(gone):
            self._closed = min(self._closed, float((lb + last - worth[gone]).min()))
            state[gone] = -1

    def _narrow(self, state: State, w: Floats, b: float, target: float) -> tuple[Floats, float]:
        """Limits of each w outside of which the bound is above the cutoff, by bisection."""
        cutoff = self._cutoff(target)
        for j in np.flatnonzero(state == 0):
            for side in (1.0, -1.0):
                limits = self._high if side > 0 else self._low
                far, near = limits[j], w[j]
                for _ in range(3):
                    if far == 0.0 or self.deadline.passed():
                        break
                    at = 0.5 * (far + near)
                    if side * at <= 0.0:
                        at = 0.0
                    lb = self._beyond(state, int(j), side, at, w, b, target)
                    if lb >= cutoff:
                        self._closed = min(self._closed, lb)
                        limits[j] = far = at
                        if at == 0.0:
                            break
                    else:
                        near = at
        out = (self._low == 0.0) & (self._high == 0.0)
        state[(state == 0) & out] = -1
        return np.clip(w, self._low, self._high), b

    def _beyond(
        self, state: State, j: int, side: float, at: float, w: Floats, b: float, target: float
    ) -> float:
        """A bound on the cards with ``side * w_j`` above ``side * at``."""
        own, low, high = state.copy(), self._low, self._high
        own[j] = 1
        start = w.copy()
        keep = (low[j], high[j])
        if side > 0:
            low[j] = at
        else:
            high[j] = at
        start[j] = np.clip(start[j], low[j], high[j])
        closed = self._closed
        found = self._relax(own, start, b, target, SIDE_STEPS)[0]
        self._closed = closed  # what was fixed there holds there only
        low[j], high[j] = keep
        return found

    def _children(self, node: _Node, target: float) -> list[_Node]:
        state = node.state
        room = self.problem.most_items - int((state == 1).sum())
        free = np.flatnonzero(state == 0)
        if room == 0 or not len(free):
            self._finish(np.flatnonzero(state == 1), target)
            return []
        if room == 1:
            self._one_more(np.flatnonzero(state == 1), free, target)
            return []
        size = np.abs(node.w[free]) / np.sqrt(self._scale[free])
        pick = int(free[np.argmax(size)])
        made = []
        for side in (1, -1):
            own = state.copy()
            own[pick] = side
            if not self._settle(own):
                continue
            start = np.where(own < 0, 0.0, node.w)
            lb, w, b = self._relax(own, start, node.b, target)
            made.append(_Node(max(lb, node.bound), 0, own, w, b))
        return made

    def _one_more(self, support: Ints, free: Ints, target: float) -> None:
        """Every item for the last place of a support."""
        from laconic.scorecard._numba import bounds_of_one_more, codes_of

        problem, k = self.problem, len(support)
        order = np.concatenate([support, free])
        code = codes_of(problem.items, support, problem.items.shape[1])
        bounds, _ = bounds_of_one_more(
            problem.items, problem.pos, problem.neg, code, k, free, self._lo[order],
            self._hi[order], self._most, self._cutoff(target), 1e-4 * self.best.loss,
        )  # fmt: skip
        for place in np.argsort(bounds, kind="stable"):
            if bounds[place] >= self._cutoff(target):
                self._closed = min(self._closed, float(bounds[place]))
            else:
                self._finish(np.append(support, free[place]), target)

    def _finish(self, support: Ints, target: float) -> None:
        found, bound = search_support(self.problem, support, self.best.loss, target)
        if found is not None:
            self.best = found
        self._closed = min(self._closed, bound)

    def _settle(self, state: State) -> bool:
        """Follow the rules: what they exclude is out; False where no card is left."""
        rules = self.problem.limits
        for group, most in rules.at_most:
            inside = int((state[group] == 1).sum())
            if inside > most:
                return False
            if inside == most:
                state[group[state[group] == 0]] = -1
        if rules.most_columns is not None:
            used = set(self.problem.column[state == 1].tolist())
            if len(used) > rules.most_columns:
                return False
            if len(used) == rules.most_columns:
                state[(state == 0) & ~np.isin(self.problem.column, list(used))] = -1
        full = int((state == 1).sum()) >= self.problem.most_items
        if full:
            state[state == 0] = -1
        return all(
            (state[group] == 1).any() or (not full and (state[group] == 0).any())
            for group in rules.cover
        )


def _column_caps(problem: CardProblem) -> tuple[Ints, Ints]:
    """How many items of a column may have points, for the rules that say so of whole columns."""
    column = np.unique(problem.column, return_inverse=True)[1].astype(np.int64)
    caps = np.bincount(column, minlength=1).astype(np.int64)
    for group, most in problem.limits.at_most:
        own = column[group[0]]
        if (column[group] == own).all() and len(group) == (column == own).sum():
            caps[own] = min(caps[own], most)
    return caps, column
