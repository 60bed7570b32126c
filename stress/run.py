"""A part of the programme is a numbered sequence of cases, each with an outcome in words.

A run counts outcomes and stores them with the number of the next case, so that it goes on where it
was stopped. What broke a promise begins with ``FAILED`` and keeps its number: ``part.outcome(n)``
shows it again.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FAILED = "FAILED"
EVERY_SECONDS = 5.0
"""So often a run is stored."""
MOST_SHOWN = 12
"""Outcomes of a part that are shown, the most frequent ones."""


@dataclass(frozen=True)
class Part:
    """Cases of one kind: ``outcome(number)`` says what came of one."""

    name: str
    unit: str
    promise: str
    outcome: Callable[[int], str]
    size: int
    """Cases of a full run."""
    quick: int
    """Cases of a run that takes seconds."""


@dataclass
class Tally:
    """What came of the cases of one part so far."""

    tried: int = 0
    seconds: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[int] = field(default_factory=list)

    @property
    def failed(self) -> int:
        return sum(n for what, n in self.outcomes.items() if what.startswith(FAILED))

    def add(self, number: int, what: str) -> None:
        self.tried = number + 1
        self.outcomes[what] += 1
        if what.startswith(FAILED):
            self.failures.append(number)

    def content(self) -> dict[str, Any]:
        return {
            "tried": self.tried,
            "failed": self.failed,
            "seconds": round(self.seconds),
            "outcomes": dict(sorted(self.outcomes.items(), key=lambda item: -item[1])),
            "failures": self.failures,
        }

    @classmethod
    def of(cls, content: dict[str, Any]) -> Tally:
        outcomes = Counter({str(key): int(n) for key, n in content["outcomes"].items()})
        return cls(content["tried"], content["seconds"], outcomes, list(content["failures"]))

    def row(self, name: str, unit: str) -> str:
        """A line of the table in docs/reliability.md."""
        came = "; ".join(f"{n:,} {what}" for what, n in self.outcomes.most_common(MOST_SHOWN))
        more = len(self.outcomes) - MOST_SHOWN
        came += f"; {more} outcomes more" if more > 0 else ""
        return f"| `{name}` | {self.tried:,} {unit} | {self.failed} | {came} |"


class Record:
    """The tallies of all parts, in a file that is replaced as a whole."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.tallies: dict[str, Tally] = {}
        if path is not None and path.exists():
            stored = json.loads(path.read_text(encoding="utf-8"))
            self.tallies = {name: Tally.of(part) for name, part in stored.items()}

    def store(self) -> None:
        if self.path is None:
            return
        content = {name: tally.content() for name, tally in sorted(self.tallies.items())}
        partial = self.path.with_suffix(".partial")
        partial.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        os.replace(partial, self.path)


def run(part: Part, record: Record, *, count: int | None, seconds: float) -> Tally:
    """Go on with a part: ``count`` more cases (None: up to its size), at most ``seconds``."""
    tally = record.tallies.setdefault(part.name, Tally())
    last = part.size if count is None else tally.tried + count
    begun = stored = time.monotonic()
    before = tally.seconds
    while tally.tried < last and time.monotonic() - begun < seconds:
        number = tally.tried
        what = part.outcome(number)
        tally.add(number, what)
        if what.startswith(FAILED):
            print(f"{part.name} {number}: {what}", flush=True)
        now = time.monotonic()
        tally.seconds = before + now - begun
        if now - stored > EVERY_SECONDS:
            record.store()
            stored = now
    record.store()
    return tally


def again(part: Part, record: Record) -> Tally:
    """Try the cases that broke a promise once more; what comes of them now takes their place."""
    tally = record.tallies.setdefault(part.name, Tally())
    numbers, tried = tally.failures, tally.tried
    new = {number: part.outcome(number) for number in numbers}
    for what in [what for what in tally.outcomes if what.startswith(FAILED)]:
        del tally.outcomes[what]
    tally.failures = []
    for number, what in new.items():
        tally.add(number, what)
    tally.tried = tried
    record.store()
    return tally
