"""What a long command says while it works: a bar on a terminal, one line a minute elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from laconic.core.progress import Step, listening

EVERY = 60.0
"""Seconds between two lines where nobody sees a bar."""
_EARLY = 0.04
"""Below this share of the work, the time left is a guess that is not told."""


class Pace:
    """How long it has taken and about how long it will still take.

    The time left is that of the past at the same pace, and never less than the present step has
    already lasted: a step that takes long says that the pace was wrong.

    >>> now = [0.0]
    >>> pace = Pace(lambda: now[0])
    >>> pace.follow(Step("comparing a", 0.0)); now[0] = 30.0
    >>> pace.follow(Step("comparing b", 0.25)); pace.left()
    90.0
    >>> pace.follow(Step("writing", 0.99)); now[0] = 75.0; pace.left()
    45.0
    >>> pace.follow(Step("writing page 3", None)); pace.said()
    '1 min: writing page 3, about 45 s left'
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._start = self._last = clock()
        self.step = Step("reading", 0.0)

    def follow(self, step: Step) -> None:
        if step.done is None:
            self.step = Step(step.text, self.step.done)
            return
        if step != self.step:
            self._last = self._clock()
        self.step = step

    def elapsed(self) -> float:
        return self._clock() - self._start

    def left(self) -> float | None:
        """Seconds; None while too little is done to tell."""
        done = self.step.done
        if done is None or done < _EARLY:
            return None
        at_pace = (self._last - self._start) * (1.0 - done) / done
        return max(at_pace, self._clock() - self._last)

    def said(self) -> str:
        """One line: how long, what, how long still."""
        left = self.left()
        rest = "time left not known yet" if left is None else f"about {rough(left)} left"
        return f"{rough(self.elapsed())}: {self.step.text}, {rest}"


def rough(seconds: float) -> str:
    """A time as precise as a guess can be.

    >>> [rough(s) for s in (0.3, 7, 43, 89, 200, 5000)]
    ['1 s', '7 s', '45 s', '1.5 min', '3.5 min', '1.4 h']
    """
    if seconds < 10:
        return f"{max(round(seconds), 1)} s"
    if seconds < 57.5:
        return f"{5 * round(seconds / 5)} s"
    if seconds < 3570:
        halves = round(seconds / 30) / 2
        return f"{halves:g} min"
    return f"{seconds / 3600:.1f} h"


@contextmanager
def progress(
    quiet: bool = False, *, every: float = EVERY, stream: Any = None
) -> Iterator[Callable[[Step], None]]:
    """Follows the steps of the library on stderr: a bar, or a line now and then in a pipe.

    ``quiet`` is for commands whose result goes to the screen too: they get the lines, no bar.
    """
    from rich.console import Console

    stream = sys.stderr if stream is None else stream
    pace = Pace()
    console = Console(file=stream, highlight=False)
    barred = console.is_terminal and not quiet
    shown = _bar(console, pace) if barred else _lines(pace, stream, every)
    with shown, listening(pace.follow):
        yield pace.follow


@contextmanager
def _lines(pace: Pace, stream: Any, every: float) -> Iterator[None]:
    over = threading.Event()

    def tell() -> None:
        while not over.wait(every):
            print(f"laconic: {pace.said()}", file=stream, flush=True)

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()


@contextmanager
def _bar(console: Any, pace: Pace) -> Iterator[None]:
    from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, TextColumn
    from rich.text import Text

    class Told(ProgressColumn):
        """Text and bar are read from the pace at every refresh."""

        def render(self, task: Any) -> Text:
            left = pace.left()
            rest = "" if left is None else f", about {rough(left)} left"
            return Text(f"{rough(pace.elapsed())}{rest}")

    class Doing(ProgressColumn):
        def render(self, task: Any) -> Text:
            task.completed = pace.step.done
            return Text(pace.step.text)

    columns = (SpinnerColumn(), Doing(), BarColumn(), Told(), TextColumn(""))
    with Progress(*columns, console=console, transient=True) as bar:
        bar.add_task("", total=1.0)
        yield
