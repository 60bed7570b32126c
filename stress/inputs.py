"""Hostile files and options for the commands: an answer in bounded time and memory.

Each command runs in a process of its own with a limit of memory. It ends with 0, or with 2 and one
line; never with a traceback, a signal, or after the time is over.
"""

from __future__ import annotations

import gzip
import os
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from stress.run import FAILED, Part

SECONDS, BYTES = 120, 3_000_000_000
"""Of processor time and of memory."""
WAITED = 1_800
"""Seconds by the clock, on a machine that does other things too."""
ROOT = Path(__file__).parent.parent


def _gz(path: Path, text: bytes, times: int, head: bytes = b"") -> None:
    with gzip.open(path, "wb", compresslevel=1) as stream:
        stream.write(head)
        for _ in range(times):
            stream.write(text)


def _write(text: bytes | str) -> Callable[[Path], None]:
    content = text.encode() if isinstance(text, str) else text
    return lambda path: path.write_bytes(content)


def _random(seed: int) -> Callable[[Path], None]:
    draw = random.Random(seed)
    letters = b"abc012.,;\t\"'\n\r\0 -+e=\xff\xc3\xa9"
    return _write(b"a,y\n" + bytes(draw.choice(letters) for _ in range(draw.randrange(2_000))))


FILES: dict[str, tuple[str, Callable[[Path], None]]] = {
    "zip bomb": ("a.csv.gz", lambda path: _gz(path, b"0" * 1_000_000, 2_000)),
    "bomb of lines": ("a.csv.gz", lambda path: _gz(path, b"0,\n" * 300_000, 100)),
    "30 million lines": (
        "a.csv.gz", lambda path: _gz(path, b"0,1\n1,0\n" * 150_000, 100, b"a,y\n"),
    ),
    "one line of 100 MB": ("a.csv", _write(b"x" * 100_000_000)),
    "one field of 100 MB": ("a.csv", _write(b'a,y\n"' + b"x" * 100_000_000 + b'",1\n')),
    "a quote that does not end": ("a.csv", _write(b'a,y\n"' + b"x,1\n" * 1_000_000)),
    "giant header": ("a.csv", _write(",".join(f"c{i}" for i in range(200_000)) + ",y\n")),
    "50,000 columns": (
        "a.csv",
        _write(
            ",".join(f"c{i}" for i in range(50_000)) + ",y\n"
            + "".join(",".join(["0.5"] * 50_000) + f",{i % 2}\n" for i in range(6))
        ),
    ),
    "NULs": ("a.csv", _write(b"a,y\n" + b"\0" * 10_000 + b"\n1,0\n2,1\n")),
    "empty": ("a.csv", _write(b"")),
    "header only": ("a.csv", _write(b"a,y\n")),
    "cut gzip": ("a.csv.gz", _write(gzip.compress(b"a,y\n1,0\n" * 1_000)[:50])),
    "text called parquet": ("a.parquet", _write(b"a,y\n1,0\n")),
    "cut parquet": ("a.parquet", _write(b"PAR1" + b"\xff" * 100 + b"PAR1")),
    "text called xlsx": ("a.xlsx", _write(b"PK\x03\x04no")),
    "nested brackets": ("a.json", _write(b"[" * 200_000)),
    "ragged": ("a.csv", _write(b"a,b,y\n1,2,0\n1\n1,2,3,4,5\n")),
    **{f"random {seed}": ("a.csv", _random(seed)) for seed in range(20)},
}  # fmt: skip
WORDS: list[list[str]] = [
    ["--cost", "fp=nan"], ["--cost", "fp=1e999"], ["--cost", "fp=-1"], ["--prior", "2"],
    ["--prior", "a=b"], ["--budget", "1e400s"], ["--budget", "-5s"], ["--seed", "9" * 40],
    ["--model", "\0"], ["--as", "a=nothing"], ["--max-size", "-1"], ["--max-size", "nan"],
    ["--positive", "\ud800"], ["--separator", ",,"], ["--language", "xx"], ["--drop", "y"],
]  # fmt: skip
CASES: list[tuple[str, list[str], str | None]] = [
    *((f"fit of {name}", ["fit"], name) for name in FILES),
    *((f"look at {name}", ["look"], name) for name in FILES),
    *((f"fit {' '.join(words)[:40]!r}", ["fit", *words], None) for words in WORDS),
]


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


def outcome(number: int) -> str:
    """What came of one command."""
    what, words, name = CASES[number]
    file, write = FILES[name] if name else ("a.csv", _write("a,y\n" + "1,0\n2,1\n" * 30))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / file
        write(path)
        command = [sys.executable, "-m", "laconic", words[0], str(path)]
        if words[0] == "fit":
            command += ["--target", "y", "--out", str(Path(folder) / "o"), *words[1:]]
        threads = dict.fromkeys(("POLARS_MAX_THREADS", "OMP_NUM_THREADS"), "1")
        env = os.environ | {"PYTHONPATH": str(ROOT / "src")} | threads
        try:
            done = subprocess.run(
                command, env=env, capture_output=True, timeout=WAITED, preexec_fn=_limit,
                check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"{FAILED}: {what}: more than {WAITED} s"
        except ValueError:
            return "refused by the system"  # a NUL or half a character in an argument
        told = done.stderr.decode(errors="replace")
        wrote = (Path(folder) / "o").exists()
    if done.returncode == 0:
        return "done"
    lines = [line for line in told.splitlines() if line.startswith("laconic: ")]
    if done.returncode != 2 or "Traceback" in told or not lines or wrote:
        return f"{FAILED}: {what}: code {done.returncode}: {told[-120:]!r}"
    return "refused in one line"


PART = Part(
    "inputs",
    "commands",
    "done, or refused in one line, in bounded time and memory",
    outcome,
    size=len(CASES),
    quick=2,
)
