"""``python -m stress [part...] [--minutes M | --count N] [--resume FILE]``.

Runs the parts one after the other, each in a process of its own, up to its full size, for its share
of the minutes or for so many cases more, prints what came of them, and stores it in FILE, from
which the next run goes on. Ends with 1 when a promise was broken.
"""

from __future__ import annotations

import argparse
import math
import re
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "tests"))

from stress.run import MOST_SHOWN, Part, Record, Tally, again, run

PARTS = (
    "tables", "outsiders", "mutants", "model_files", "inputs", "faults", "numbers", "determinism",
)  # fmt: skip


def part_of(name: str) -> Part:
    part: Part = import_module(f"stress.{name}").PART
    return part


def rows_of(record: Record) -> list[str]:
    """Lines of the table in docs/reliability.md, in the order of the parts."""
    return [
        record.tallies[name].row(name, part_of(name).unit)
        for name in PARTS
        if name in record.tallies
    ]


def shown(part: Part, tally: Tally) -> str:
    """The lines of one part."""
    pace = f"{tally.seconds / tally.tried:.3g} s each" if tally.tried else "none tried"
    lines = [f"{part.name}: {tally.tried} {part.unit}, {tally.failed} failures, {pace}"]
    lines += [f"{n:9d}  {what}" for what, n in tally.outcomes.most_common(MOST_SHOWN)]
    return "\n".join(lines)


def summary(record: Record) -> str:
    """What a run amounts to, in one line."""

    def counted(part: str, words: str) -> int:
        outcomes = record.tallies.get(part, Tally()).outcomes
        return sum(n for what, n in outcomes.items() if what.startswith(words))

    files, suites = ("tables", "model_files", "inputs"), record.tallies.get("outsiders", Tally())
    inputs = sum(record.tallies.get(part, Tally()).tried for part in files)
    passed = sum(int(n) for what in suites.outcomes for n in re.findall(r"(\d+) passed", what))
    faults = record.tallies.get("faults", Tally()).tried
    return (
        f"{inputs:,} inputs tried, {faults} faults injected ({counted('faults', 'killed')} kills), "
        f"{counted('mutants', 'killed')} mutants killed, {passed:,} outsiders' tests passed"
    )


def each_alone(names: tuple[str, ...], resume: Path, options: list[str]) -> int:
    """Each part in a process of its own: forks of one that has threads wait for ever."""
    codes = {}
    for name in names:
        words = [sys.executable, "-m", "stress", name, "--resume", str(resume), *options]
        codes[name] = subprocess.run(words, check=False).returncode
    print(summary(Record(resume)))
    broken = [name for name, code in codes.items() if code]
    print(f"broken promises: {', '.join(broken)}" if broken else "every promise kept", flush=True)
    return 1 if broken else 0


def main() -> int:
    asked = argparse.ArgumentParser("python -m stress", description=__doc__)
    asked.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all unless named")
    long = asked.add_mutually_exclusive_group()
    long.add_argument("--minutes", type=float, help="for all parts together")
    long.add_argument("--count", type=int, help="so many cases more of each part")
    long.add_argument("--quick", action="store_true", help="some cases of each part: a minute")
    asked.add_argument("--resume", type=Path, help="file of the run to go on with")
    asked.add_argument("--again", action="store_true", help="only cases that broke a promise")
    asked.add_argument("--table", type=Path, help="print the table of a stored run")
    asked.add_argument("--show", type=int, help="what comes of this one case")
    said = asked.parse_args()
    names = tuple(said.parts or PARTS)
    if said.table is not None:
        print("\n".join(rows_of(Record(said.table))))
        return 0
    if said.show is not None:
        print(part_of(names[0]).outcome(said.show))
        return 0
    minutes = said.minutes and said.minutes / len(names)
    if len(names) > 1:
        options = [f"--minutes={minutes}"] if minutes else []
        options += [f"--count={said.count}"] if said.count else []
        options += ["--quick"] if said.quick else []
        options += ["--again"] if said.again else []
        with tempfile.TemporaryDirectory() as folder:
            return each_alone(names, said.resume or Path(folder) / "run.json", options)
    part, record = part_of(names[0]), Record(said.resume)
    if said.again:
        tally = again(part, record)
    else:
        count = part.quick if said.quick else said.count
        tally = run(part, record, count=count, seconds=60.0 * minutes if minutes else math.inf)
    print(shown(part, tally), flush=True)
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
