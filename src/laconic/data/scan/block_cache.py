"""What a process keeps of the blocks it owns between passes: narrow, in memory, then on disk.

Arrays are kept in the smallest numbers that hold them exactly, so that a column of small integers
costs a byte or two per cell whatever it was computed in. What does not fit in the allowed memory
goes to a temporary file, which is mapped when it is asked for: no copy, no decoding, and the
system keeps as much of it in memory as it has to spare.
"""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.data.source import Memo


class ScratchFolder:
    """A folder that is removed when this object is closed, forgotten, or the process ends."""

    def __init__(self, name: str) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=f"laconic-{name}-"))
        self.close = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


CACHE_BYTES = 2**29
"""Memory allowed for the blocks of one scan in one process."""
SMALL = 512
"""An array below this fraction of the memory may use its last quarter: it costs a file too."""
MOST_SCANS = 4
"""Scans whose blocks a process remembers; the one not used for longest is forgotten."""

_NARROWER = (np.int8, np.int16, np.int32, np.float32)
_PROBE = 512


def narrow(array: NDArray[Any]) -> NDArray[Any]:
    """The same values in the smallest numbers that hold them all.

    >>> narrow(np.array([0.0, 3.0])).dtype, narrow(np.array([0.1, 3.0])).dtype
    (dtype('int8'), dtype('float64'))
    """
    if array.dtype.kind not in "iuf" or array.dtype.itemsize == 1:
        return array
    for dtype in _NARROWER:
        if np.dtype(dtype).itemsize >= array.dtype.itemsize:
            break
        if _holds(array[:_PROBE], dtype) and _holds(array, dtype):
            return array.astype(dtype)
    return array


def _holds(array: NDArray[Any], dtype: type[Any]) -> bool:
    with np.errstate(invalid="ignore", over="ignore"):
        back = array.astype(dtype).astype(array.dtype)
    # bytes, so that a negative zero and the kind of a NaN come back as they were
    return back.tobytes() == array.tobytes()


@dataclass(frozen=True)
class Packed:
    """An array as narrow columns."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    columns: tuple[NDArray[Any] | Spooled, ...]

    @staticmethod
    def of(array: NDArray[Any]) -> Packed:
        if array.ndim == 2 and array.dtype.itemsize > 1:
            columns = [narrow(column) for column in array.T]
            if any(column.dtype != array.dtype for column in columns):
                return Packed(array.dtype, array.shape, tuple(map(np.ascontiguousarray, columns)))
        whole = narrow(array) if array.ndim == 1 else np.ascontiguousarray(array)
        return Packed(array.dtype, array.shape, (whole,))

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self.columns if isinstance(column, np.ndarray))

    def unpacked(self) -> NDArray[Any]:
        columns = [c.read() if isinstance(c, Spooled) else c for c in self.columns]
        if len(columns) == 1 and columns[0].shape == self.shape:
            return columns[0].astype(self.dtype, copy=False)
        out = np.empty(self.shape, dtype=self.dtype)
        for j, column in enumerate(columns):
            out[:, j] = column
        return out

    def spooled(self, place: Callable[[], Path]) -> Packed:
        columns = tuple(
            Spooled.write(c, place()) if isinstance(c, np.ndarray) else c for c in self.columns
        )
        return Packed(self.dtype, self.shape, columns)


@dataclass(frozen=True)
class Spooled:
    """An array in a temporary file."""

    path: Path
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @staticmethod
    def write(array: NDArray[Any], path: Path) -> Spooled:
        left = array.data.cast("B") if array.size else memoryview(b"")
        with path.open("wb", buffering=0) as file:
            if left and hasattr(os, "posix_fallocate"):
                # room found once, not page by page: an eighth of the time on ext4; a file system
                # that cannot, or has no room, is told by the write
                with suppress(OSError):
                    os.posix_fallocate(file.fileno(), 0, len(left))
            while left:
                left = left[file.write(left) :]
        return Spooled(path, array.dtype, array.shape)

    def read(self) -> NDArray[Any]:
        """The array, backed by the pages of the file; writing to it changes no other reader's."""
        if 0 in self.shape:
            return np.empty(self.shape, dtype=self.dtype)
        with self.path.open("rb") as file:
            pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        return np.frombuffer(pages, dtype=self.dtype).reshape(self.shape)


class BlockCache:
    """Values by block and name, the first ``allowed`` bytes of them in memory.

    >>> cache = BlockCache(allowed=0)
    >>> memo = cache.memo(3)
    >>> memo.recall("codes", "a", lambda: np.arange(4))
    array([0, 1, 2, 3])
    >>> memo.recall("codes", "a", lambda: 1 / 0)
    array([0, 1, 2, 3])
    """

    def __init__(self, allowed: int = CACHE_BYTES) -> None:
        self.allowed = allowed
        self.held_bytes = 0
        self._kept: dict[tuple[int, str], tuple[Hashable, Any]] = {}
        self._folder: ScratchFolder | None = None
        self._n_files = 0
        self._lock = threading.Lock()

    def memo(self, index: int) -> Memo:
        return _BlockMemo(self, index)

    def recall(self, index: int, name: str, version: Hashable, make: Callable[[], Any]) -> Any:
        kept = self._kept.get((index, name))
        if kept is not None and kept[0] == version:
            return _unpacked(kept[1])
        value = make()
        with self._lock:
            self._forget((index, name))
            packed = self._placed(_packed(value))
            self._kept[index, name] = (version, packed)
            self.held_bytes += _nbytes(packed)
        return value

    def latest(self, index: int, name: str) -> tuple[Hashable, Any] | None:
        kept = self._kept.get((index, name))
        return None if kept is None else (kept[0], _unpacked(kept[1]))

    def _forget(self, key: tuple[int, str]) -> None:
        if key in self._kept:
            packed = self._kept.pop(key)[1]
            self.held_bytes -= _nbytes(packed)
            for path in _paths(packed):
                with suppress(PermissionError):  # mapped still, on Windows: goes with the folder
                    path.unlink(missing_ok=True)

    def _placed(self, packed: Any) -> Any:
        size = _nbytes(packed)
        allowed = self.allowed if SMALL * size <= self.allowed else self.allowed * 3 // 4
        if self.held_bytes + size <= allowed:
            return packed
        return _mapped(lambda part: part.spooled(self._new_path), packed)

    def _new_path(self) -> Path:
        if self._folder is None:
            self._folder = ScratchFolder("blocks")
        self._n_files += 1
        return self._folder.path / f"{self._n_files}.bin"

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()
            self.held_bytes = 0
            if self._folder is not None:
                self._folder.close()
                self._folder = None


@dataclass(frozen=True)
class _BlockMemo:
    cache: BlockCache
    index: int

    def recall(self, name: str, version: Hashable, make: Callable[[], Any]) -> Any:
        return self.cache.recall(self.index, name, version, make)

    def latest(self, name: str) -> tuple[Hashable, Any] | None:
        return self.cache.latest(self.index, name)


_caches: OrderedDict[str, BlockCache] = OrderedDict()
_caches_lock = threading.Lock()


def cache_of(scan: str, allowed: int) -> BlockCache:
    """This process's cache of the blocks of one scan."""
    with _caches_lock:
        if scan not in _caches:
            _caches[scan] = BlockCache(allowed)
        _caches.move_to_end(scan)
        while len(_caches) > MOST_SCANS:
            _caches.popitem(last=False)[1].clear()
        return _caches[scan]


def forget(scan: str) -> None:
    """Give back what this process keeps of a scan."""
    with _caches_lock:
        cache = _caches.pop(scan, None)
    if cache is not None:
        cache.clear()


def _mapped(f: Callable[[Packed], Any], packed: Any) -> Any:
    if isinstance(packed, tuple):
        return tuple(_mapped(f, part) for part in packed)
    return f(packed) if isinstance(packed, Packed) else packed


def _packed(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_packed(part) for part in value)
    return Packed.of(value) if isinstance(value, np.ndarray) else value


def _unpacked(packed: Any) -> Any:
    return _mapped(Packed.unpacked, packed)


def _nbytes(packed: Any) -> int:
    if isinstance(packed, tuple):
        return sum(_nbytes(part) for part in packed)
    return packed.nbytes if isinstance(packed, Packed) else 0


def _paths(packed: Any) -> list[Path]:
    if isinstance(packed, tuple):
        return [path for part in packed for path in _paths(part)]
    if not isinstance(packed, Packed):
        return []
    return [column.path for column in packed.columns if isinstance(column, Spooled)]
