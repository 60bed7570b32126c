"""A run over cells and figures: draws shared among processes, kept on disk, continued later.

Cells and figures are tried in turn; those that ask for draws that are not there wait. The draws
asked for are made, each appended to a file as soon as it is there, and the waiting cells are tried
again. A kept draw is used again while the code it came from is the same: its stamp is a digest of
the file of its function and of every file of the package that this one imports, near or far.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from laconic.data.datasets import DatasetNotFoundError
from laconic.papers.registry import Call, Cell, Draws, Figure, Measured, NotDrawn, Verdict

Outcome = tuple[Measured, Verdict]


@cache
def code_stamp(module: str) -> str:
    """Digest of a module's file and of all files of the package that it imports.

    >>> len(code_stamp("laconic.papers.registry"))
    12
    """
    seen: dict[str, bytes] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        try:
            spec = find_spec(name) if name not in seen else None
        except ModuleNotFoundError:  # a name of a module, not a module of a package
            continue
        if spec is None or not (spec.origin or "").endswith(".py"):
            continue
        seen[name] = Path(str(spec.origin)).read_bytes()
        waiting += _imported(seen[name])
    digest = hashlib.sha256()
    for name in sorted(seen):
        digest.update(name.encode() + b"\0" + seen[name])
    return digest.hexdigest()[:12]


def _imported(source: bytes) -> list[str]:
    """Modules of the package named in the imports of a file, wherever they stand in it."""
    nodes = list(ast.walk(ast.parse(source)))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return [name for name in names if name.startswith("laconic.")]


class Kept(MutableMapping[str, Any]):
    """Draws in a file of JSON lines: read at the start, one line appended for each new one."""

    def __init__(self, path: Path | None = None, *, fresh: bool = False) -> None:
        self._path = path
        self._values: dict[str, Any] = {}
        self.seconds: dict[str, list[float]] = defaultdict(list)
        if path is not None and path.exists():
            text = path.read_text(encoding="utf-8")
            if text and not text.endswith("\n"):  # a run was killed while it wrote
                with path.open("a", encoding="utf-8") as stream:
                    stream.write("\n")
            # fresh draws are appended to the old ones and, read later, take their place
            for line in [] if fresh else text.splitlines():
                self._read(line)

    def _read(self, line: str) -> None:
        try:
            own = json.loads(line)
        except json.JSONDecodeError:
            return  # torn, see above: it is drawn again
        if own["stamp"] == code_stamp(own["key"].partition("[")[0].rpartition(".")[0]):
            self._values[own["key"]] = own["value"]

    def keep(self, call: Call, value: Any, seconds: float) -> None:
        """A draw that has just been made, and how long it took."""
        self.seconds[call.function.__qualname__].append(seconds)
        self._values[call.key] = value
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            stamp = code_stamp(call.function.__module__)
            line = {"key": call.key, "stamp": stamp, "seconds": round(seconds, 3), "value": value}
            with self._path.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(line) + "\n")

    def __getitem__(self, key: str) -> Any:
        value = self._values[key]
        if isinstance(value, DatasetNotFoundError):
            raise value
        return value

    def __setitem__(self, key: str, value: Any) -> None:
        self._values[key] = value

    def __delitem__(self, key: str) -> None:
        del self._values[key]

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


@dataclass(frozen=True)
class Progress:
    """How far the draws of a run are."""

    done: int
    total: int
    seconds_left: float


def _silent() -> None:
    """Ctrl-C is for the parent; one thread in each process, they are as many as the cores."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threadpool_limits(1)


def _timed(call: Call) -> tuple[Any, float]:
    begin = time.perf_counter()
    try:
        value = call.made()
    except DatasetNotFoundError as error:
        value = DatasetNotFoundError(str(error))
    return value, time.perf_counter() - begin


def make_draws(
    calls: Sequence[Call], kept: Kept, *, jobs: int = 1, follow: Callable[[Progress], None]
) -> None:
    """Make all calls, in ``jobs`` processes; each is kept as soon as it is there."""
    done = 0
    left = {call.key: call for call in calls}

    def store(call: Call, found: tuple[Any, float]) -> None:
        nonlocal done
        value, seconds = found
        if isinstance(value, DatasetNotFoundError):
            kept[call.key] = value  # asked again in the next run
        else:
            kept.keep(call, value, seconds)
        done += 1
        del left[call.key]
        follow(Progress(done, len(calls), _seconds_left(left.values(), kept) / jobs))

    if jobs == 1:
        for call in calls:
            store(call, _timed(call))
        return
    # spawned, not forked: compiled code and its threads do not survive a fork
    with ProcessPoolExecutor(jobs, get_context("spawn"), initializer=_silent) as pool:
        asked = {pool.submit(_timed, call): call for call in calls}
        try:
            running = set(asked)
            while running:
                ready, running = wait(running, return_when=FIRST_COMPLETED)
                for future in ready:
                    store(asked[future], future.result())
        except BaseException:
            for process in list((pool._processes or {}).values()):
                process.terminate()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _seconds_left(calls: Iterable[Call], kept: Kept) -> float:
    """By the mean of the same function; of all functions where none of it is done."""
    every = [s for own in kept.seconds.values() for s in own]
    mean = sum(every) / max(len(every), 1)
    total = 0.0
    for call in calls:
        own = kept.seconds.get(call.function.__qualname__)
        total += sum(own) / len(own) if own else mean
    return total


def run(
    cells: Sequence[Cell],
    figures: Sequence[Figure],
    *,
    kept: Kept,
    quick: bool = False,
    share: float = 1.0,
    seed: int = 0,
    jobs: int = 1,
    follow: Callable[[Progress], None] = lambda progress: None,
) -> tuple[dict[Cell, Outcome], dict[Figure, str | None]]:
    """Ours and the verdict of every cell, and every figure; a figure without its data is None."""
    draws = Draws(quick=quick, share=share, seed=seed, kept=kept, ask=True)
    found: dict[Cell, Outcome] = {}
    drawn: dict[Figure, str | None] = {}
    left: list[Cell | Figure] = [*cells, *figures]
    while left:
        asked: dict[str, Call] = {}
        waiting: list[Cell | Figure] = []
        for item in left:
            try:
                if isinstance(item, Cell):
                    found[item] = _outcome(item, draws)
                else:
                    drawn[item] = _drawing(item, draws)
            except NotDrawn as more:
                asked |= {call.key: call for call in more.calls}
                waiting.append(item)
        make_draws(list(asked.values()), kept, jobs=jobs, follow=follow)
        left = waiting
    return found, drawn


def _outcome(cell: Cell, draws: Draws) -> Outcome:
    try:
        return cell.outcome(draws)
    except DatasetNotFoundError as error:
        return Measured(float("nan"), float("nan"), 0), Verdict("undetermined", str(error))


def _drawing(figure: Figure, draws: Draws) -> str | None:
    try:
        return figure.draw(draws)
    except DatasetNotFoundError:
        return None


def missing_sets(outcomes: Iterable[Outcome]) -> list[str]:
    """What was said about data sets that are not here, each sentence once."""
    said = [verdict.reason for ours, verdict in outcomes if ours.n_draws == 0]
    return [text for text in dict.fromkeys(said) if text.startswith("Data set ")]


def versions() -> dict[str, str]:
    """The commit of a checkout, and the versions of what the numbers come from."""
    import platform
    import subprocess
    from importlib.metadata import version

    folder = Path(__file__).parent
    asked = ["git", "-C", os.fspath(folder), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        answer = subprocess.run(asked, capture_output=True, text=True, check=True)
        commit = answer.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        commit = "not a checkout"
    named = ("laconic", "numpy", "scipy", "scikit-learn", "numba")
    found = {"commit": commit, "python": platform.python_version()}
    return found | {name: version(name) for name in named} | {"platform": sys.platform}
