"""How long a search may go on."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


class Deadline:
    """Seconds allowed from now on; ``None`` is for ever."""

    def __init__(self, seconds: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._end = math.inf if seconds is None else clock() + seconds

    def passed(self) -> bool:
        return self._clock() >= self._end


def is_interrupt(error: BaseException) -> bool:
    """Whether an error is Ctrl-C; one inside a compiled function comes out as a SystemError.

    >>> is_interrupt(KeyboardInterrupt()), is_interrupt(SystemError())
    (True, False)
    """
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KeyboardInterrupt):
        cause = cause.__cause__
    return cause is not None


# Progress of long work: whoever listens is told, without a parameter in every estimator.


_LOG = logging.getLogger("laconic")


@dataclass(frozen=True)
class Step:
    """What is being done, and how much of the whole is done (between 0 and 1; None: as before)."""

    text: str
    done: float | None


_listener: ContextVar[Callable[[Step], None] | None] = ContextVar("listener", default=None)


@contextmanager
def listening(callback: Callable[[Step], None]) -> Iterator[None]:
    """Hand every :class:`Step` reported inside the block to ``callback``.

    >>> with listening(lambda step: print(step.text)):
    ...     report_step("half way", 0.5)
    half way
    """
    token = _listener.set(callback)
    try:
        yield
    finally:
        _listener.reset(token)


def report_step(text: str, done: float | None = None) -> None:
    """Tell the listener of this context, if any, and the log at level INFO.

    A part of some other work does not know how much of the whole is done, and leaves it out.
    """
    if done is None:
        _LOG.info("%s", text)
    else:
        _LOG.info("%s (%.0f %%)", text, 100 * done)
    callback = _listener.get()
    if callback is not None:
        callback(Step(text, done))
