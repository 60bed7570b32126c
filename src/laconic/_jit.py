"""Compiled functions, kept on disk where a folder can be written, compiled anew where none can."""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import numba
from numba.core.registry import cpu_target

Function = TypeVar("Function", bound=Callable[..., Any])
_warned: list[bool] = []


def njit(**options: Any) -> Callable[[Function], Function]:
    """``numba.njit``; in a read-only container, without the cache and with one line to say so.

    >>> @njit(cache=False)
    ... def twice(x):
    ...     return 2 * x
    >>> twice(21)
    42
    """

    def compiled(function: Function) -> Function:
        _fill_registries()
        try:
            return numba.njit(**options)(function)  # type: ignore[no-any-return]
        except RuntimeError as error:
            if "cannot cache function" not in str(error):
                raise
        if not _warned:
            _warned.append(True)
            warnings.warn(
                "No folder can be written to keep compiled functions: they are compiled again in "
                "every process; set NUMBA_CACHE_DIR to a folder that can.",
                UserWarning,
                stacklevel=2,
            )
        return numba.njit(**{**options, "cache": False})(function)  # type: ignore[no-any-return]

    return compiled


@cache
def _fill_registries() -> None:
    """What numba knows of operations, which it reads at the first compilation of a process.

    Ctrl-C in the middle of that left some of them out, and every later fit of a notebook failed.
    """
    with later_interrupts():
        cpu_target.typing_context.refresh()
        cpu_target.target_context.refresh()


@contextmanager
def later_interrupts() -> Iterator[None]:
    """Ctrl-C inside the block is answered at its end; only the main thread is ever interrupted."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[tuple[Any, ...]] = []
    usual = signal.signal(signal.SIGINT, lambda *given: came.append(given))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
        if came and callable(usual):
            usual(*came[0])
