"""What a long command says while it works: a bar on a terminal, one line a minute elsewhere."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from laconic.cli.screen import spoken_language
from laconic.core.progress import Step, listening

EVERY = 60.0
"""Seconds between two lines where nobody sees a bar."""
_EARLY = 0.04
"""Below this share of the work, the time left is a guess that is not told."""


class Pace:
    """How long it has taken and about how long it will still take.

    The time left is that of the past at the same pace. A step that takes longer than all that was
    expected says that the pace was wrong, and the time left is not known.

    >>> now = [0.0]
    >>> pace = Pace(lambda: now[0])
    >>> pace.follow(Step("comparing a", 0.0)); now[0] = 30.0
    >>> pace.follow(Step("comparing b", 0.25)); pace.left()
    90.0
    >>> pace.follow(Step("comparing b, fold 2", None)); pace.said()
    '30 s: comparing b, fold 2, about 1.5 min left'
    >>> pace.follow(Step("shortening pages", 0.8)); now[0] = 75.0; pace.said()
    '1 min: shortening pages, time left not known'
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, language: str = "en") -> None:
        self._clock, self._language = clock, language
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
        return None if self._clock() - self._last > at_pace else at_pace

    def doing(self) -> str:
        """The present step in the language of the screen."""
        return step_in_french(self.step.text) if self._language == "fr" else self.step.text

    def time(self) -> str:
        """How long it took and, where that is known, will still take."""
        left = self.left()
        if self._language == "fr":
            rest = "" if left is None else f", encore environ {rough(left)}"
            return (rough(self.elapsed()) + rest).replace(".", ",")
        return rough(self.elapsed()) + ("" if left is None else f", about {rough(left)} left")

    def said(self) -> str:
        """One line: how long, what, how long still."""
        left = self.left()
        if self._language == "fr":
            rest = "durée restante inconnue" if left is None else f"encore environ {rough(left)}"
            return f"{rough(self.elapsed())}\u00a0: {self.doing()}, {rest}".replace(".", ",")
        rest = "time left not known" if left is None else f"about {rough(left)} left"
        return f"{rough(self.elapsed())}: {self.doing()}, {rest}"


_FRENCH = (
    (r"comparing (.*)", r"comparaison de \1"),
    (r"fitting (.*)", r"apprentissage de \1"),
    (r"teaching (.*)", r"enseignement à \1"),
    ("shortening pages", "raccourcissement des pages"),
    ("measuring on the rows held out", "mesure sur les lignes mises de côté"),
    ("drawing the rows held out", "tirage des lignes mises de côté"),
    ("looking at the columns", "examen des colonnes"),
    ("reading", "lecture"),
    ("writing", "écriture"),
    (r"([0-9,]+) rows written", r"\1 lignes écrites"),
    (r"([0-9,]+) rows watched", r"\1 lignes surveillées"),
    (r"pass ([0-9]+) over ([0-9,]+) rows, ([0-9]+)% of it", r"passe \1 sur \2 lignes, \3 % faits"),
)


def step_in_french(text: str) -> str:
    """A step in French; one that has none stays as it is.

    >>> step_in_french("comparing additive"), step_in_french("12,000 rows written")
    ('comparaison de additive', '12\u202f000 lignes écrites')
    """
    for english, french in _FRENCH:
        found = re.fullmatch(english, text)
        if found is not None:
            return re.sub(r"(?<=\d),(?=\d)", "\u202f", found.expand(french))
    return text


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
    pace = Pace(language=spoken_language())
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
            return Text(pace.time())

    class Doing(ProgressColumn):
        def render(self, task: Any) -> Text:
            task.completed = pace.step.done
            return Text(pace.doing())

    columns = (SpinnerColumn(), Doing(), BarColumn(), Told(), TextColumn(""))
    with Progress(*columns, console=console, transient=True) as bar:
        bar.add_task("", total=1.0)
        yield
