"""Kills, interruptions, full disks, little memory, two writers, many threads.

A command runs in a fork of this process, which has imported the library and run nothing (threads do
not live through a fork), so that most of the time is spent where something can be lost. Half of the
kills wait until a partial file is there.
"""

from __future__ import annotations

import atexit
import contextlib
import csv
import io
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import laconic
import laconic.job.scan
import laconic.job.scoring
import laconic.job.table
from laconic.cli.app import main
from laconic.data.demo import make_payments
from laconic.export.model_file import load
from stress.run import FAILED, Part

INTERRUPT_SECONDS = 2.0
WORKER_SECONDS = 300.0
LOST = "TerminatedWorkerError"
"""What joblib raises when a worker is gone."""
FIT = ("--target", "label", "--cost", "fn=25", "--positive", "fraud", "--model", "logistic")


@lru_cache(maxsize=1)
def folder() -> Path:
    """A folder with ``rows.csv`` and ``old/``: the model and report that are at stake."""
    place = Path(tempfile.mkdtemp(prefix="laconic-faults-"))
    atexit.register(_remove, place, os.getpid())
    table, label = make_payments(600)
    with (place / "rows.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow([*table.names, "label"])
        shown = [
            [_cell(table, j, cell) for cell in table.column(j)] for j in range(len(table.names))
        ]
        writer.writerows(zip(*shown, label, strict=True))
    code, said = commanded("fit", str(place / "rows.csv"), *FIT, "--out", str(place / "old"))
    assert code == 0, said
    return place


def _cell(table: Any, j: int, cell: Any) -> Any:
    if table.kinds[j] == "categorical":
        return table.categories[j][cell]
    return "" if np.isnan(cell) else cell


def _remove(place: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(place, ignore_errors=True)


def _here(words: tuple[str, ...]) -> tuple[int, str]:
    """Exit code and output of a command in this process."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            main(list(words))
        except SystemExit as end:
            return int(end.code or 0), said.getvalue()
    return 0, said.getvalue()


def _child(words: tuple[str, ...], log: Path, before: Callable[[], None] = lambda: None) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        before()
        code, said = _here(words)
        log.write_text(said, encoding="utf-8")
        os._exit(code)
    except BaseException as error:
        log.write_text(f"{type(error).__name__}: {error}", encoding="utf-8")
        os._exit(70)


def commanded(*words: str) -> tuple[int, str]:
    """Exit code and output of a command in a fork."""
    with tempfile.NamedTemporaryFile() as log:
        _, status = os.waitpid(_child(words, Path(log.name)), 0)
        return os.waitstatus_to_exitcode(status), Path(log.name).read_text(encoding="utf-8")


def _words(what: str, place: Path, seed: int) -> tuple[tuple[str, ...], str]:
    """A command that replaces something in ``place``, and what it replaces."""
    rows, model = str(folder() / "rows.csv"), str(folder() / "old" / "model.json")
    if what == "fit":
        return ("fit", rows, *FIT, "--out", str(place), "--seed", str(seed)), "model.json"
    if what == "choice":
        return ("fit", rows, *FIT[:-2], "--out", str(place), "--seed", str(seed)), "model.json"
    if what == "compare":
        return ("compare", rows, *FIT[:-2], "--seed", str(seed)), ""
    if what == "report":
        written = str(place / "out.html")
        return ("report", model, rows, "--target", "label", "--out", written), "out.html"
    if what == "scan":
        return ("fit", rows, *FIT[:-1], "bayes", "--out", str(place), "--scan"), "model.json"
    if what == "predict":
        return ("predict", model, rows, "-o", str(place / "out.csv")), "out.csv"
    return ("export", "card", model, "-o", str(place / "out.md")), "out.md"


def _stale(place: Path) -> str:
    """Why the model and the report of a folder do not belong together; empty when they do."""
    load(place / "model.json")
    digest = json.loads((place / "model.json").read_text(encoding="utf-8"))["digest"]
    report = place / "report.html"
    if not report.exists():
        return ""
    named = re.search(r'name="laconic-model" content="([^"]*)"', report.read_text(encoding="utf-8"))
    return "" if named and named[1] == digest else "a report of another model"


def kill(what: str, number: int) -> str:
    """kill -9 at a random moment."""
    draw = random.Random(number)
    with tempfile.TemporaryDirectory(dir=folder()) as name:
        place = Path(name)
        for old in (folder() / "old").iterdir():
            shutil.copy(old, place)
        words, target = _words(what, place, number + 1)
        if what != "fit":
            assert commanded(*words)[0] == 0
        before = (place / target).read_bytes()
        pid = _child(words, folder() / "log")
        if draw.random() < 0.5:
            while not list(place.glob("*.partial")) and os.waitpid(pid, os.WNOHANG)[0] == 0:
                time.sleep(0.0005)
            time.sleep(draw.uniform(0.0, 0.01))
        else:
            time.sleep(draw.uniform(0.0, 0.6))
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
        if what == "fit":
            broken = _stale(place)
        else:
            broken = "" if (place / target).read_bytes() == before else "another content"
        if broken:
            return f"{FAILED}: {what}: {broken}"
        left = bool(list(place.glob("*.partial")))
        code, said = commanded(*words)
        if code or list(place.glob("*.partial")) or (what == "fit" and _stale(place)):
            return f"{FAILED}: {what}: the next run: {code} {said[:80]}"
    return f"killed {what}: whole" + (", a leftover removed by the next run" if left else "")


def _ended(pid: int) -> tuple[int, float]:
    """Status of a process, and the seconds until it ended in which it had a processor or slept."""
    begun, before = time.monotonic(), _queued(pid)
    queued = before
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status, time.monotonic() - begun - (queued - before)
        queued = max(_queued(pid), queued)
        time.sleep(0.005)


def _queued(pid: int) -> float:
    """Seconds that a process has waited for a processor: a busy machine is not its fault."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0


def interrupt(what: str, number: int) -> str:
    """Ctrl-C at a random moment: code 130 soon, and nothing was written."""
    draw = random.Random(number)
    with tempfile.TemporaryDirectory(dir=folder()) as name:
        place, log = Path(name) / "new", folder() / "log"
        words, _ = _words(what, place, number)
        if what not in ("fit", "scan", "choice"):
            place.mkdir()
        pid = _child(words, log)
        time.sleep(draw.uniform(0.0, 4.0 if what in ("choice", "compare") else 0.4))
        os.kill(pid, signal.SIGINT)
        status, took = _ended(pid)
        code = os.waitstatus_to_exitcode(status)
        if code == 0:
            return f"interrupted {what}: it was done"
        if took > INTERRUPT_SECONDS:
            return f"{FAILED}: {what}: stopped after {took:.1f} s"
        said = log.read_text(encoding="utf-8")
        wrote = place.exists() and any(place.iterdir())
        if code != 130 or "nothing was written" not in said or wrote:
            return f"{FAILED}: {what}: code {code}, {said[-80:]!r}, wrote {wrote}"
    return f"interrupted {what}: stopped, nothing written"


def full_disk(what: str, number: int) -> str:
    """A file system of 16 KB: a sentence, and the old file stays."""
    with tempfile.TemporaryDirectory(dir=folder()) as name:
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", name], capture_output=True
        )
        if mounted.returncode:
            return "full disk: cannot be mounted here"
        try:
            words, _ = _words(what, Path(name), number)
            code, said = commanded(*words)
            left = [path.name for path in Path(name).iterdir()]
        finally:
            subprocess.run(["umount", name], check=True)
    if code != 2 or "space" not in said.lower() or left:
        return f"{FAILED}: full disk: {code} {said[-100:]!r} {left}"
    return f"full disk at {what}: one sentence, nothing left"


def little_memory(megabytes: int, advice: str) -> str:
    """Memory ends while a table is read: code 2 and the advice."""
    log = folder() / "log"
    wide = folder() / "wide.csv"
    if not wide.exists():
        cells = ",".join(["0.123456789"] * 500)
        head = ",".join(f"c{j}" for j in range(500))
        with wide.open("w") as stream:
            stream.write(f"{head},label\n")
            stream.writelines(f"{cells},{i % 2}\n" for i in range(40_000))

    def limit() -> None:
        most = megabytes * 1_000_000
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + most, used + most))

    words = ("fit", str(wide), "--target", "label", "--out", str(folder() / "no"))
    _, status = os.waitpid(_child(words, log, limit), 0)
    code, said = os.waitstatus_to_exitcode(status), log.read_text(encoding="utf-8")
    if code == 2 and advice in said:
        return f"{megabytes} MB of memory: advice"
    return f"{FAILED}: {megabytes} MB of memory: {code} {said[-100:]!r}"


def two_writers(number: int) -> str:
    """Two fits into one folder at a time: one of them wins, whole."""
    with tempfile.TemporaryDirectory(dir=folder()) as name:
        place = Path(name)
        pids = [_child(_words("fit", place, seed)[0], folder() / f"log{seed}") for seed in (1, 2)]
        codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
        broken = _stale(place)
        left = {path.name for path in place.iterdir()} - {"model.json", "report.html"}
    if codes != [0, 0] or broken or left:
        return f"{FAILED}: two writers: {codes} {broken} {left}"
    return "two writers: one model with its report"


def threads(number: int) -> str:
    """Eight threads predict the same bytes."""
    model = load(folder() / "old" / "model.json")
    table, _ = make_payments(2_000, random_state=number)
    pid = os.fork()
    if not pid:
        with ThreadPoolExecutor(8) as pool:
            found = set(pool.map(lambda _: model.predict_proba(table).tobytes(), range(8)))
        os._exit(len(found) - 1)
    _, status = os.waitpid(pid, 0)
    return f"{FAILED}: threads differ" if status else "eight threads: the same bytes"


def lost_worker(number: int) -> str:
    """A worker process is killed while folds are fitted in parallel: an error, and no waiting."""
    log, pid = folder() / "log", os.fork()
    if not pid:
        threading.Thread(target=_kill_a_worker, daemon=True).start()
        X = np.random.default_rng(number).normal(size=(400, 4))
        try:
            laconic.GrayZoneLogisticRegressionCV(n_jobs=2).fit(X, (X[:, 0] > 0).astype(int))
            log.write_text("fitted", encoding="utf-8")
        except Exception as error:
            log.write_text(type(error).__name__, encoding="utf-8")
        os._exit(0)
    begun = time.monotonic()
    while not os.waitpid(pid, os.WNOHANG)[0]:
        if time.monotonic() - begun > WORKER_SECONDS:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return f"{FAILED}: a lost worker is waited for"
        time.sleep(0.05)
    said = log.read_text(encoding="utf-8")
    return f"a lost worker: {said}" if said in ("fitted", LOST) else f"{FAILED}: {said}"


def _kill_a_worker() -> None:
    """Kill the first worker that joblib starts, once it works."""
    own = str(os.getpid())
    while True:
        for place in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError, IndexError):
                parent = (place / "stat").read_text().rsplit(")", 1)[1].split()[1]
                words = (place / "cmdline").read_bytes()
                if parent == own and b"loky" in words and b"resource_tracker" not in words:
                    time.sleep(0.5)
                    os.kill(int(place.name), signal.SIGKILL)
                    return
        time.sleep(0.02)


KINDS: tuple[tuple[int, Callable[[int], str]], ...] = (
    (120, lambda n: kill("fit", n)),
    (40, lambda n: kill("predict", n)),
    (40, lambda n: kill("export", n)),
    (20, lambda n: interrupt("fit", n)),
    (10, lambda n: interrupt("predict", n)),
    (1, lambda n: full_disk("fit", n)),
    (1, lambda n: full_disk("predict", n)),
    (1, lambda n: little_memory(60, "polars reserves")),
    (4, two_writers),
    (3, threads),
)
ORDER = [fault for count, fault in KINDS for _ in range(count)]
random.Random(0).shuffle(ORDER)
ORDER += [lost_worker, *[lambda n: interrupt("scan", n)] * 5]
ORDER += [lambda n: little_memory(1600, "--scan")]
ORDER += [lambda n: interrupt("choice", n)] * 8 + [lambda n: interrupt("compare", n)] * 4
ORDER += [lambda n: interrupt("report", n)] * 4


def outcome(number: int) -> str:
    """What came of one fault."""
    return ORDER[number](number)


PART = Part(
    "faults",
    "faults",
    "whole files, a report of its model, nothing left behind, a sentence and an exit code",
    outcome,
    size=len(ORDER),
    quick=8,
)
