"""The proof: branch and bound over which items have points, then over the points.

A node says of every item whether it is in (it has points), out or open, and of some columns that
one of their items must be in: cuts of one column nearly replace each other, so leaving out one of
them says little and leaving out the column says much. The bound of a node is a convex relaxation
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

from laconic._typing import Floats, Ints, Mask
from laconic.core.progress import Deadline, report_step
from laconic.scorecard.problem import CardProblem
from laconic.scorecard.tuning import (
    LATTICE_NODES,
    MERGE_AT,
    MERGED_CELLS,
    NODE_STEPS,
    NODE_TOL,
    SHRUNK,
    SIDE_STEPS,
    TARGETS,
    TIE,
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
    """The best card of a support if it is below ``best``, and a bound on all its cards.

    With a price the bound is about the cards in which every item of the support has points: those
    with fewer are cards of a smaller support.
    """
    from laconic.scorecard._numba import search_points

    if not len(support):
        empty = np.zeros(problem.n_items, dtype=np.int64)
        loss = problem.null_loss if problem.feasible(empty) else np.inf
        return (Incumbent(loss, empty) if loss < best else None), loss
    Z, c1, c0 = problem.cells(support)
    cover = np.zeros((len(problem.limits.cover), len(support)), dtype=np.bool_)
    for g, group in enumerate(problem.limits.cover):
        cover[g] = np.isin(support, group)
    lo, hi = problem.lo[support].astype(float), problem.hi[support].astype(float)
    tie, paid = TIE * problem.null_loss, problem.price * len(support)
    # by more than rounding where a price is taken off and added again: a card is not below itself
    below = best - paid - 1e-3 * tie * (paid > 0.0)
    loss, a, b, own, bound, _nodes = search_points(
        Z, c1, c0, lo, hi, cover, problem.most_multiplier, below, gap, LATTICE_NODES, tie
    )
    if not loss < below:
        return None, bound + paid
    points = np.zeros(problem.n_items, dtype=np.int64)
    points[support] = np.rint(own).astype(np.int64)
    loss += problem.price * int(np.count_nonzero(points))
    return Incumbent(float(loss), points, a, b), bound + paid


@dataclass(order=True)
class _Node:
    bound: float
    number: int
    state: State
    needed: Mask
    w: Floats
    b: float
    base: Mask


class Proof:
    """Branch and bound from an incumbent; ``bound`` holds whenever it is read."""

    def __init__(self, problem: CardProblem, best: Incumbent, deadline: Deadline) -> None:
        self.problem, self.best, self.deadline = problem, best, deadline
        self.bound, self.n_nodes, self._reported = 0.0, 0, np.inf
        self._most = problem.most_multiplier
        self._lo, self._hi = problem.lo.astype(float), problem.hi.astype(float)
        share = problem.pos.sum() / (problem.pos.sum() + problem.neg.sum())
        largest = np.sort(np.maximum(-self._lo, self._hi))[-problem.most_items :].sum()
        self._offset = 2.0 * (abs(np.log(share / (1 - share))) + self._most * largest)
        coverage = problem.dense @ (problem.pos + problem.neg)
        self._scale = 1.0 / (share * (1 - share) * np.maximum(coverage, 1e-9))
        self._merged: dict[bytes, tuple[Floats, Floats, Floats]] = {}
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
        needed = np.zeros(len(self._caps), dtype=np.bool_)
        if not self._settle(state, needed):
            return
        low, high = self._lo * self._most, self._hi * self._most
        low[state < 0] = high[state < 0] = 0.0
        self._low, self._high = low, high
        root = _Node(0.0, 0, state, needed, np.zeros(p), 0.0, np.ones(p, dtype=np.bool_))
        self._relax(root, target)
        if root.bound < self._cutoff(target):
            self._narrow(root, target)
            self._relax(root, target)
        heap = [root]
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
        self.bound = float(max(self.bound, min(bound, self.best.loss)))
        if self.gap <= (1.0 - SHRUNK) * self._reported:
            self._reported = self.gap
            report_step(f"card of log loss {self.best.loss:.4f}, proven within {self.gap:.1%}")

    def _relax(self, node: _Node, target: float, steps: int = NODE_STEPS) -> None:
        """Raise the bound of a node, move its relaxed minimiser, fix what the bound decides."""
        from laconic.scorecard._numba_nodes import relax_node

        state, cutoff, base = node.state, self._cutoff(target), node.base
        room = self.problem.most_items - int((state == 1).sum())
        low = np.where(state < 0, 0.0, self._low)[base]
        high = np.where(state < 0, 0.0, self._high)[base]
        pending = node.needed & ~self._held(state)
        lb, _value, w, b, found = relax_node(
            *self._patterns(base), state[base], low, high, self._scale[base], room,
            self._column[base], self._caps, pending, node.w[base], node.b, cutoff,
            NODE_TOL * self.best.loss, steps, self._offset, self.problem.price,
        )  # fmt: skip
        node.bound, node.b, worth = max(node.bound, lb), b, np.zeros(len(state))
        node.w[base], worth[base] = w, found
        if room and lb < cutoff:
            self._fix(node, pending, lb, worth, room, cutoff)

    def _patterns(self, base: Mask) -> tuple[Floats, Floats, Floats]:
        """Items of a base and the shares of both classes, patterns that are alike there merged."""
        key = base.tobytes()
        if key not in self._merged:
            if sum(X.size for X, _, _ in self._merged.values()) > MERGED_CELLS:
                self._merged.clear()
            self._merged[key] = merged(self.problem, base)
        return self._merged[key]

    def _held(self, state: State) -> Mask:
        """Columns with an item in the card."""
        held = np.zeros(len(self._caps), dtype=np.bool_)
        held[self._column[state == 1]] = True
        return held

    def _fix(
        self, node: _Node, pending: Mask, lb: float, worth: Floats, room: int, cutoff: float
    ) -> None:
        """Items that no better card of the node has, and columns that all of them read."""
        from laconic.scorecard._numba_nodes import prices_of_items

        put_in, left_out = prices_of_items(
            worth, node.state, room, self._column, self._caps, pending
        )
        gone = (node.state == 0) & (lb + put_in >= cutoff)
        if gone.any():
            self._closed = min(self._closed, float((lb + put_in[gone]).min()))
            node.state[gone] = -1
        must = ~node.needed & ~self._held(node.state) & (lb + left_out >= cutoff)
        if must.any():
            self._closed = min(self._closed, float((lb + left_out[must]).min()))
            node.needed |= must

    def _narrow(self, root: _Node, target: float) -> None:
        """Limits of each w outside of which the bound is above the cutoff, by bisection."""
        cutoff = self._cutoff(target)
        for j in np.flatnonzero(root.state == 0):
            for side in (1.0, -1.0):
                limits = self._high if side > 0 else self._low
                far, near = limits[j], root.w[j]
                for _ in range(3):
                    if far == 0.0 or self.deadline.passed():
                        break
                    at = 0.5 * (far + near)
                    if side * at <= 0.0:
                        at = 0.0
                    lb = self._beyond(root, int(j), side, at, target)
                    if lb >= cutoff:
                        self._closed = min(self._closed, lb)
                        limits[j] = far = at
                        if at == 0.0:
                            break
                    else:
                        near = at
        out = (self._low == 0.0) & (self._high == 0.0)
        root.state[(root.state == 0) & out] = -1
        root.w = np.clip(root.w, self._low, self._high)

    def _beyond(self, root: _Node, j: int, side: float, at: float, target: float) -> float:
        """A bound on the cards with ``side * w_j`` above ``side * at``."""
        own = _Node(0.0, 0, root.state.copy(), root.needed.copy(), root.w.copy(), root.b, root.base)
        low, high = self._low, self._high
        keep = (low[j], high[j])
        if side > 0:
            low[j] = at
        else:
            high[j] = at
        own.state[j] = 1
        own.w[j] = np.clip(own.w[j], low[j], high[j])
        closed = self._closed
        self._relax(own, target, SIDE_STEPS)
        self._closed = closed  # what was fixed there holds there only
        low[j], high[j] = keep
        return own.bound

    def _children(self, node: _Node, target: float) -> list[_Node]:
        if not self._settle(node.state, node.needed):
            return []
        state = node.state
        room = self.problem.most_items - int((state == 1).sum())
        free = np.flatnonzero(state == 0)
        if room == 0 or not len(free):
            self._finish(np.flatnonzero(state == 1), target)
            return []
        if room == 1:
            inside = np.flatnonzero(state == 1)
            if self.problem.price and not (node.needed & ~self._held(state)).any():
                self._finish(inside, target)  # without a price it is a card of larger supports
            self._one_more(inside, free, target)
            return []
        live = state >= 0
        base = live if live.sum() <= MERGE_AT * node.base.sum() else node.base
        pick, column = self._pick(node, free)
        made = []
        for side in (1, -1):
            own = _Node(
                node.bound, 0, state.copy(), node.needed.copy(), node.w.copy(), node.b, base
            )
            if column >= 0 and side > 0:
                own.needed[column] = True
            elif column >= 0:
                own.state[(self._column == column) & (state == 0)] = -1
            else:
                own.state[pick] = side
            if not self._settle(own.state, own.needed):
                continue
            own.w[own.state < 0] = 0.0
            self._relax(own, target)
            made.append(own)
        return made

    def _pick(self, node: _Node, free: Ints) -> tuple[int, int]:
        """The open item or undecided column that moves the relaxed scores most; the other is -1."""
        size = np.abs(node.w[free]) / np.sqrt(self._scale[free])
        column = self._column[free]
        undecided = ~(node.needed | self._held(node.state))
        by_column = np.bincount(column, size, minlength=len(undecided)) * undecided
        alone = np.where(undecided[column], 0.0, size)
        if by_column.max() > 0.0 and by_column.max() >= alone.max():
            return -1, int(by_column.argmax())
        return int(free[alone.argmax() if alone.max() > 0.0 else 0]), -1

    def _one_more(self, support: Ints, free: Ints, target: float) -> None:
        """Every item for the last place of a support."""
        from laconic.scorecard._numba import bounds_of_one_more, codes_of

        problem, k = self.problem, len(support)
        order = np.concatenate([support, free])
        code = codes_of(problem.items, support, problem.items.shape[1])
        paid = problem.price * (k + 1)
        bounds, _ = bounds_of_one_more(
            problem.items, problem.pos, problem.neg, code, k, free, self._lo[order],
            self._hi[order], self._most, self._cutoff(target) - paid, 1e-4 * self.best.loss,
        )  # fmt: skip
        bounds += paid
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

    def _settle(self, state: State, needed: Mask) -> bool:
        """Follow the rules: what they exclude is out; False where no card is left."""
        rules = self.problem.limits
        before = -1
        while before != (before := int((state == 0).sum())):
            for group, most in rules.at_most:
                inside = int((state[group] == 1).sum())
                if inside > most:
                    return False
                if inside == most:
                    state[group[state[group] == 0]] = -1
            if not self._settle_columns(state, needed):
                return False
        full = int((state == 1).sum()) >= self.problem.most_items
        return all(
            (state[group] == 1).any() or (not full and (state[group] == 0).any())
            for group in rules.cover
        )

    def _settle_columns(self, state: State, needed: Mask) -> bool:
        """Places and columns: a needed column keeps a place for one of its items."""
        held, most_columns = self._held(state), self.problem.limits.most_columns
        if most_columns is not None:
            used = held | needed
            if used.sum() > most_columns:
                return False
            if used.sum() == most_columns:
                state[(state == 0) & ~used[self._column]] = -1
        pending = needed & ~held
        choices = np.bincount(self._column[state == 0], minlength=len(needed))
        room = self.problem.most_items - int((state == 1).sum())
        if (choices[pending] == 0).any() or pending.sum() > room:
            return False
        if pending.sum() == room:
            state[(state == 0) & ~pending[self._column]] = -1
        sole = (state == 0) & (pending & (choices == 1))[self._column]
        state[sole] = 1
        return True


def merged(problem: CardProblem, base: Mask) -> tuple[Floats, Floats, Floats]:
    """Some items of a problem as numbers, and the shares of both classes in their patterns."""
    if base.all():
        return problem.dense, problem.pos, problem.neg
    own = problem.items[base]
    bits = np.packbits(own, axis=0)
    words = np.zeros((-(-len(bits) // 8) * 8, own.shape[1]), dtype=np.uint8)
    words[: len(bits)] = bits
    keys = np.ascontiguousarray(words.T).view(np.uint64).T
    order = np.lexsort(keys)
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = (np.diff(keys[:, order], axis=1) != 0).any(axis=0)
    first = np.flatnonzero(new)
    pos, neg = (np.add.reduceat(part[order], first) for part in (problem.pos, problem.neg))
    return own[:, order[first]].astype(np.float64), pos, neg


def _column_caps(problem: CardProblem) -> tuple[Ints, Ints]:
    """How many items of a column may have points, for the rules that say so of whole columns."""
    column = np.unique(problem.column, return_inverse=True)[1].astype(np.int64)
    caps = np.bincount(column, minlength=1).astype(np.int64)
    for group, most in problem.limits.at_most:
        own = column[group[0]]
        if (column[group] == own).all() and len(group) == (column == own).sum():
            caps[own] = min(caps[own], most)
    return caps, column
