"""Products of small matrices on one thread: faster, and the same bytes on every machine.

A threaded product splits its sums by the number of threads, and threads that wait for work of a
few thousand rows spin. Blocks are the unit of parallel work here, not products.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

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
