"""Compiled functions, kept on disk where a folder can be written, compiled anew where none can."""

from __future__ import annotations

import gc
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import numba
from numba.core import event
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

    # one entry point for C callers less for each function: nothing here hands them out
    options = {"no_cfunc_wrapper": True, **options}

    def compiled(function: Function) -> Function:
        _fill_registries()
        _collect_rarely_while_compiling()
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


@cache
def _collect_rarely_while_compiling() -> None:
    event.register("numba:compile", _RareCollections())  # type: ignore[no-untyped-call]


class _RareCollections(event.Listener):  # type: ignore[misc]
    """A compilation makes many objects and little garbage: looking for it took a tenth of the time.

    Compilations inside compilations are counted; numba's lock lets one thread compile at a time.
    """

    _OBJECTS = 20_000

    def __init__(self) -> None:
        self.depth = 0
        self.usual = gc.get_threshold()

    def on_start(self, event: Any) -> None:
        if self.depth == 0:
            self.usual = gc.get_threshold()
            # zero: somebody has turned collections off
            if 0 < self.usual[0] < self._OBJECTS:
                gc.set_threshold(self._OBJECTS, *self.usual[1:])
        self.depth += 1

    def on_end(self, event: Any) -> None:
        self.depth -= 1
        if self.depth == 0:
            gc.set_threshold(*self.usual)


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
