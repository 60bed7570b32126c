"""One verb over rows: a fixed-size array summed over fixed blocks, in block order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

BLOCK_ROWS = 65_536
"""Rows of one block. Fixed, because the order of a floating-point sum is part of the result."""


@dataclass(frozen=True)
class Block:
    """Some consecutive rows. ``X`` is a slice of what the source holds (matrix, CSR or Table)."""

    index: int
    start: int
    stop: int
    X: Any
    y: NDArray[Any] | None
    weight: NDArray[np.float64] | None

    @property
    def rows(self) -> slice:
        return slice(self.start, self.stop)

    def __len__(self) -> int:
        return self.stop - self.start


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

    ``X`` is a 2-D array, a CSR matrix or a :class:`~laconic.data.columns.Table`: anything whose
    rows can be sliced. Slices are views, so a pass copies nothing.

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

    @property
    def n_rows(self) -> int:
        return self._n_rows

    def blocks(self, columns: Sequence[int] | None = None) -> Iterator[Block]:
        for index, start in enumerate(range(0, self._n_rows, self.block_rows)):
            stop = min(start + self.block_rows, self._n_rows)
            X = self.X[start:stop]
            yield Block(
                index,
                start,
                stop,
                X if columns is None else X[:, list(columns)],
                None if self.y is None else self.y[start:stop],
                None if self.weight is None else self.weight[start:stop],
            )

    def map(self, f: Callable[[Block], Any], columns: Sequence[int] | None = None) -> Iterator[Any]:
        """One result per block, in block order (predictions, per-row state)."""
        return (f(block) for block in self.blocks(columns))

    def sum(self, f: Callable[[Block], Any], columns: Sequence[int] | None = None) -> Any:
        """Sum of ``f(block)`` in block order; ``f`` returns an array or a tuple of arrays.

        The sum starts from the first block's result, so the bytes depend on the blocks only.
        """
        total: Any = None
        for part in self.map(f, columns):
            if total is None:
                total = part
            elif isinstance(part, tuple):
                total = tuple(a + b for a, b in zip(total, part, strict=True))
            else:
                total = total + part
        if total is None:
            raise ValueError("The source has no rows to sum over.")
        return total
