"""One verb over rows: a fixed-size array summed over fixed blocks, in a fixed order.

Products inside a block run on one thread: a threaded product splits its sums by the number of
threads, and threads that wait for work of a few thousand rows spin. Blocks are the unit of
parallel work here, not products; so the bytes are the same on every machine.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from typing import Any, Protocol
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

_lock = threading.Lock()
_inside: list[Any] = []


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Linear algebra of this process on one thread until the last that asked for it is done."""
    with _lock:
        if not _inside:
            _inside.append(_controller().limit(limits=1, user_api="blas"))
        else:
            _inside.append(None)
    try:
        yield
    finally:
        with _lock:
            if len(_inside) == 1:
                _inside[0].restore_original_limits()
            _inside.pop()


@cache
def _controller() -> Any:
    import scipy.linalg  # noqa: F401  (so that its library is among those found)
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()


BLOCK_ROWS = 65_536
"""Rows of one block. Fixed, because the order of a floating-point sum is part of the result."""
RUN_BLOCKS = 8
"""Blocks whose sum is taken first: what one worker reads at a time and sends back as one array."""


class Memo(Protocol):
    """What the owner of a block keeps between passes.

    It may forget: whoever asks says how to make the value again, and what ``version`` of it is
    wanted, so that forgetting changes no result.
    """

    def recall(self, name: str, version: Hashable, make: Callable[[], Any]) -> Any: ...

    def latest(self, name: str) -> tuple[Hashable, Any] | None:
        """The version kept last and its value, to make the next one from."""
        ...


class HeldMemo:
    """A memo that forgets only what a newer version replaces.

    >>> memo = HeldMemo()
    >>> memo.recall("z", 1, lambda: "made"), memo.recall("z", 1, lambda: "made again")
    ('made', 'made')
    """

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Hashable, Any]] = {}

    def recall(self, name: str, version: Hashable, make: Callable[[], Any]) -> Any:
        kept = self._kept.get(name)
        if kept is None or kept[0] != version:
            kept = self._kept[name] = (version, make())
        return kept[1]

    def latest(self, name: str) -> tuple[Hashable, Any] | None:
        return self._kept.get(name)


@dataclass(frozen=True)
class Block:
    """Some consecutive rows. ``X`` is a slice of what the source holds (matrix, CSR or Table)."""

    index: int
    start: int
    stop: int
    X: Any
    y: NDArray[Any] | None
    weight: NDArray[np.float64] | None
    memo: Memo = field(default_factory=HeldMemo, repr=False, compare=False)
    beside: Mapping[str, NDArray[Any]] = field(default_factory=dict, repr=False, compare=False)
    """Keys of groups and times of the rows, where they are known."""

    @property
    def rows(self) -> slice:
        return slice(self.start, self.stop)

    def __len__(self) -> int:
        return self.stop - self.start


class LateBlock(Block):
    """A block whose rows are read when they are first asked for."""

    def __init__(
        self,
        index: int,
        start: int,
        stop: int,
        read: Callable[[], tuple[Any, Any, Any]],
        read_beside: Callable[[], Mapping[str, NDArray[Any]]],
        memo: Memo,
    ) -> None:
        for name, value in (("index", index), ("start", start), ("stop", stop), ("memo", memo)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_read", read)
        object.__setattr__(self, "_read_beside", read_beside)

    def __getattr__(self, name: str) -> Any:
        if name == "beside":
            object.__setattr__(self, name, self._read_beside())
            return self.beside
        if name not in ("X", "y", "weight"):
            raise AttributeError(name)
        for part, value in zip(("X", "y", "weight"), self._read(), strict=True):
            object.__setattr__(self, part, value)
        return getattr(self, name)


class Source(Protocol):
    """Rows that can be passed over many times. Every solver whose pass is a sum uses only this."""

    @property
    def n_rows(self) -> int: ...

    def sum(self, f: Callable[[Block], Any], columns: Sequence[int] | None = None) -> Any: ...

    def map(
        self, f: Callable[[Block], Any], columns: Sequence[int] | None = None
    ) -> Iterator[Any]: ...


class ArraySource:
    """Rows held in memory, cut in blocks of ``block_rows``.

    ``X`` is a 2-D array, a CSR matrix or a :class:`~laconic.data.tables.columns.Table`: all whose
    rows can be sliced. Slices are views, so a pass copies nothing; those of a CSR matrix are copies
    that cost as much as a product, and kept from the first pass on.

    >>> source = ArraySource(np.arange(6.0).reshape(3, 2), weight=np.array([1.0, 0.0, 2.0]))
    >>> source.sum(lambda block: block.weight @ block.X)
    array([ 8., 11.])
    """

    def __init__(
        self,
        X: Any,
        y: NDArray[Any] | None = None,
        weight: NDArray[np.float64] | None = None,
        *,
        block_rows: int = BLOCK_ROWS,
    ) -> None:
        self.X = X
        self.y = y
        self.weight = weight
        self.block_rows = block_rows
        self._n_rows = int(X.shape[0])
        self._memos: defaultdict[int, HeldMemo] = defaultdict(HeldMemo)
        self._cut: dict[int, Any] = {}

    @property
    def n_rows(self) -> int:
        return self._n_rows

    def blocks(self, columns: Sequence[int] | None = None) -> Iterator[Block]:
        for index, start in enumerate(range(0, self._n_rows, self.block_rows)):
            stop = min(start + self.block_rows, self._n_rows)
            X = self._rows_between(index, start, stop)
            yield Block(
                index,
                start,
                stop,
                X if columns is None else X[:, list(columns)],
                None if self.y is None else self.y[start:stop],
                None if self.weight is None else self.weight[start:stop],
                self._memos[index],
            )

    def _rows_between(self, index: int, start: int, stop: int) -> Any:
        if stop - start == self._n_rows:
            return self.X
        if getattr(self.X, "format", "") != "csr":
            return self.X[start:stop]
        if index not in self._cut:
            self._cut[index] = self.X[start:stop]
        return self._cut[index]

    def map(self, f: Callable[[Block], Any], columns: Sequence[int] | None = None) -> Iterator[Any]:
        """One result per block, in block order (predictions, per-row state)."""
        return (f(block) for block in self.blocks(columns))

    def sum(self, f: Callable[[Block], Any], columns: Sequence[int] | None = None) -> Any:
        """Sum of ``f(block)``; ``f`` returns an array or a tuple of arrays.

        Runs of :data:`RUN_BLOCKS` blocks are summed in order, then the runs are, so that the bytes
        depend on the blocks only, and not on who summed which run.
        """
        return ordered_sum(map(ordered_sum, _runs(self.map(f, columns))))


@dataclass(frozen=True)
class Recoding:
    """``recode(block)`` as the new X of a block, kept with it under ``name`` between passes.

    Labels and weights are kept beside it: recoded rows need no second reading of the original ones.
    """

    name: str
    recode: Callable[[Block], Any]
    version: str = field(default_factory=lambda: uuid4().hex)

    def block(self, block: Block, columns: Sequence[int] | None = None) -> Block:
        """The recoded rows of a block of the source."""

        def make() -> tuple[Any, Any, Any]:
            return self.recode(block), block.y, block.weight

        X, y, weight = block.memo.recall(self.name, self.version, make)
        X = X if columns is None else X[:, list(columns)]
        return Block(block.index, block.start, block.stop, X, y, weight, block.memo)


@dataclass(frozen=True)
class _Derived:
    """A source whose blocks are those of another one, changed on the way to whoever asks."""

    source: Source

    @property
    def n_rows(self) -> int:
        return self.source.n_rows

    def map(self, f: Callable[[Block], Any], columns: Sequence[int] | None = None) -> Iterator[Any]:
        return self.source.map(self._through(f, columns))

    def sum(self, f: Callable[[Block], Any], columns: Sequence[int] | None = None) -> Any:
        return self.source.sum(self._through(f, columns))

    def _through(
        self, f: Callable[[Block], Any], columns: Sequence[int] | None
    ) -> Callable[[Block], Any]:
        """``f`` of the changed block; what it returns travels and must not hold the source."""
        raise NotImplementedError


@dataclass(frozen=True)
class Recoded(_Derived):
    """The rows of a source as a :class:`Recoding` turns them."""

    recoding: Recoding

    def _through(
        self, f: Callable[[Block], Any], columns: Sequence[int] | None
    ) -> Callable[[Block], Any]:
        recoding = self.recoding

        def seen(block: Block) -> Any:
            return f(recoding.block(block, columns))

        return seen


@dataclass(frozen=True)
class Unfolded(_Derived):
    """The rows of a source as ``unfold`` makes them of its X, anew in every pass.

    For what is larger than the codes it is made of: those are kept, not it.
    """

    unfold: Callable[[Any], Any]

    def _through(
        self, f: Callable[[Block], Any], columns: Sequence[int] | None
    ) -> Callable[[Block], Any]:
        unfold = self.unfold

        def seen(block: Block) -> Any:
            X = unfold(block.X)
            return f(replace(block, X=X if columns is None else X[:, list(columns)]))

        return seen


def ordered_sum(parts: Iterable[Any]) -> Any:
    """First plus second plus third ...; tuples item by item."""
    total: Any = None
    for part in parts:
        if total is None:
            total = part
        elif isinstance(part, tuple):
            total = tuple(a + b for a, b in zip(total, part, strict=True))
        else:
            total = total + part
    if total is None:
        raise ValueError("The source has no rows to sum over.")
    return total


def _runs(parts: Iterator[Any]) -> Iterator[Iterator[Any]]:
    """The parts, a run at a time; a run must be used up before the next one is asked for."""
    for first in parts:
        yield _chain(first, islice(parts, RUN_BLOCKS - 1))


def _chain(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest
