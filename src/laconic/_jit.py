"""Compiled functions, kept on disk where a folder can be written, compiled anew where none can."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import numba

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
