"""What runs printed, one JSON each in ``benchmarks/printed``, and what the guides show of it.

To store a run, in the environment in which it runs (``python`` and ``laconic`` are then its own)::

    python -m benchmarks.stored run guarantees/held -- python -m stress.promises 1000 held
    python -m benchmarks gray_zone:calibration --store           # as gray_zone/calibration

A name is FAMILY/NOUN; the file holds the whole text, the command, the commit, versions and date. A
text printed earlier: ``python -m benchmarks.stored keep NAME FILE COMMIT -- COMMAND``. A block of
a guide (table, paragraph, printed lines) with measured numbers has a line above it with its run::

    <!-- run: gray_zone/calibration, table 2 -->     the second table of the text, word for word
    <!-- run: gray_zone/speed -->                    numbers that stand in the text
    <!-- run: README/fit; README/explain -->         ... of either run

In the second kind every number of a paragraph must be one of the text, and all numbers of a row of
a table must be of one line of it, rounded as the guide likes: 1.6 may quote 1.598, not 1.7 nor 2.
Printed lines of a session (between fences) stand word for word, under the command that printed
them. What a guide concludes (a ratio, a mean) the run must have printed. Numbers that nobody
measured, such as parameters, stand under ``<!-- no run: why -->``; those in Python, in formulas and
in quoted cells of the papers (checked against docs/papers/results.json) need no line.

``python -m benchmarks.stored renew PAGE ...`` writes the tables of runs into guides;
``python -m benchmarks.stored check`` names what differs and the numbers that nothing stands for.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

PROJECT = Path(__file__).parents[1]
PRINTED = Path(__file__).with_name("printed")
SLOWER = 0.7
"""A ratio to a peer below this share of the stored one is a regression."""
PEERS = ("interpret-core", "khiops", "mapie", "quapy", "fasterrisk", "piqp", "xgboost")
PENDING: tuple[str, ...] = ()
"""Names in guides whose runs are not stored yet: it may only become shorter.

Nothing is said of their blocks, nor of whole numbers with units elsewhere on their page."""

Rows = list[list[str]]

MARK = re.compile(r"<!-- run: (?P<names>[\w./ ;-]+?)(?:, (?P<rest>.+?))? -->")
CODE = re.compile(
    r"(?P<mark>^<!-- (?:no )?run: .*-->\n)?^(?P<fence>```+|\$\$)(?P<plain>(?<=`)\n)?(?s:.*?)"
    r"(?P=fence)[ ]*$",
    flags=re.M,
)
NO_RUN = re.compile(r"<!-- no run: .+? -->")
DIGITS = r"(?:(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+)(?:e[+-]?\d+)?"
NUMBER = re.compile(rf"(?<![\w.]){DIGITS}")
PRINTED_NUMBER = re.compile(DIGITS)
DECIMALS = r"(?<![\w.])(?:\d+\.\d+|\.\d+)(?![\w.]*\.\d)"
WITH_UNIT = r"(?<![\w.,])\d[\d,]* ?(?:(?:s(?!')|ms|[KMGkm]i?B|seconds|minutes|times as)\b|%)"
NOT_MEASURED = re.compile(
    r"-?\d*\.?\d+<!-- \d{3};.*?-->"  # a cell of the papers' results
    r"|(?<!`)`[^`]+`(?!`)|\$[^$]*\$|\]\([^)]*\)|<!--.*?-->|(?:[Ss]ections?|Python) \d[\d.]*"
)


# ---- runs ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """What a command printed, and where and when."""

    command: str
    commit: str
    date: str
    versions: dict[str, str]
    printed: list[str]
    """Line by line."""

    @property
    def tables(self) -> list[Rows]:
        return tables_printed("\n".join(self.printed))


Runs = dict[str, Run]


def read(folder: Path | None = None) -> Runs:
    """All stored runs, by name."""
    folder = folder or PRINTED
    files = sorted(folder.rglob("*.json"))
    return {
        path.relative_to(folder).with_suffix("").as_posix(): Run(**json.loads(path.read_bytes()))
        for path in files
    }


def write(name: str, run: Run, folder: Path | None = None) -> None:
    """Keep a run, a line of its text on a line of the file."""
    path = (folder or PRINTED) / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(run), ensure_ascii=False, indent=1) + "\n", "utf-8")


def run_of(command: str, text: str, commit: str | None = None) -> Run:
    """A run that just ended: no colours, of a line that was overwritten the last state."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    lines = [line.rpartition("\r")[2].rstrip() for line in text.strip("\r\n").split("\n")]
    lines = [line.replace(f"{Path.cwd()}{os.sep}", "") for line in lines]
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return Run(command, commit or commit_of_sources(), today, versions(), lines)


def versions() -> dict[str, str]:
    """Of this environment, installed peers included."""
    from importlib.metadata import PackageNotFoundError, version

    from laconic.papers import engine

    found = {name: own for name, own in engine.versions().items() if name != "commit"}
    for name in PEERS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def commit_of_sources() -> str:
    """The last commit that changed what is measured: others only moved docs and tests."""
    git = ["git", "-C", os.fspath(PROJECT)]
    asked = [*git, "log", "-1", "--abbrev=12", "--format=%h", "--", "src"]
    commit = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", "src"], check=False).returncode
    return commit + "-dirty" * changed


def run(name: str, words: list[str]) -> None:
    """Run a command here, show what it prints, and store that under the name."""
    import laconic

    if not Path(laconic.__file__).is_relative_to(PROJECT):
        sys.exit(f"this would measure {laconic.__file__}: set PYTHONPATH to src of this checkout")
    here = os.path.dirname(sys.executable)
    path = os.pathsep.join([here, os.environ["PATH"]])
    env = {"OMP_NUM_THREADS": "1", "COLUMNS": "100", **os.environ, "PATH": path}
    commit, text = commit_of_sources(), ""
    by_shell = len(words) == 1  # 'laconic explain model.json | head'
    command = words[0] if by_shell else shlex.join(words)
    given = command if by_shell else words
    with subprocess.Popen(given, shell=by_shell, stdout=subprocess.PIPE, env=env) as process:
        assert process.stdout is not None
        for line in process.stdout:  # bytes: as text, "\\r" would end a line
            text += line.decode()
            print(line.decode(), end="", flush=True)
    if process.returncode or not text.strip():
        sys.exit(f"{command} ended with {process.returncode}; nothing is stored")
    write(name, run_of(command, text, commit))


# ---- tables and ratios -----------------------------------------------------------------------


def rows_of(table: str) -> Rows:
    """The cells of a table in Markdown, without the line under its head.

    >>> rows_of("| a | b |\\n|---|---|\\n| 1 | 2 |")
    [['a', 'b'], ['1', '2']]
    """
    lines = [line.strip() for line in table.split("\n") if line.strip().startswith("|")]
    every = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in every if not all(re.fullmatch(":?-+:?", cell) for cell in row)]


def to_markdown(rows: Rows) -> str:
    """The table as Markdown."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def tables_printed(text: str) -> list[Rows]:
    """The tables in what a benchmark printed."""
    found = re.findall(r"(?:^\|.*\n)+", text + "\n", flags=re.M)
    return [rows_of(own) for own in found]


def ratios(rows: Rows) -> dict[str, float]:
    """How many times as fast as the peer, by row: columns "peer / ours", "ours / peer", "ratio".

    >>> ratios([["data", "peer / ours", "ours / theirs"], ["small", "x2.5", "1/4"]])
    {'0 small, peer / ours': 2.5, '0 small, ours / theirs': 4.0}
    """
    found = {}
    for place, head in enumerate(rows[0]):
        below = re.match("ours / ", head) is not None
        if not below and re.search("/ (?:ours|warm|additive|laconic)$|^ratio$", head) is None:
            continue
        for k, row in enumerate(rows[1:]):
            number = re.match(r"(1/)?x?(\d*\.?\d+)", row[place]) if place < len(row) else None
            if number and float(number[2]) > 0.0:
                value = 1.0 / float(number[2]) if number[1] else float(number[2])
                found[f"{k} {row[0]}, {head}"] = 1.0 / value if below else value
    return found


def regressions(old: Rows, new: Rows) -> list[str]:
    """Ratios to a peer that fell by more than 30 %, one sentence each."""
    before, now = ratios(old), ratios(new)
    return [
        f"{key.partition(' ')[2]}: {now[key]:.3g} times, stored {before[key]:.3g}"
        for key in before
        if key in now and now[key] < SLOWER * before[key]
    ]


# ---- guides ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Block:
    """A table or paragraph of a guide, the line it begins on, and its mark if it has one.

    ``free`` says that its numbers are none of a run.
    """

    text: str
    line: int
    mark: re.Match[str] | None
    free: bool = False

    @property
    def names(self) -> list[str]:
        """The runs of its mark."""
        return re.split(r"\s*;\s*", self.mark["names"]) if self.mark else []

    @property
    def is_table(self) -> bool:
        return self.text.startswith("|")

    @property
    def place(self) -> int | None:
        """Which table of the run it is, word for word, from 1."""
        found = re.fullmatch(r"table (\d+)", (self.mark and self.mark["rest"]) or "")
        return int(found[1]) if found else None

    def measured(self, units: bool = True) -> list[str]:
        """Its numbers with decimals (or units), but those of code, formulas and papers."""
        looked_for = f"{DECIMALS}|{WITH_UNIT}" if units else DECIMALS
        return re.findall(looked_for, NOT_MEASURED.sub("", self.text))


def blocks(page: str) -> Iterator[Block]:
    """The tables, paragraphs and printed lines of a page in Markdown.

    Printed lines stand between fences without the name of a language, or under a mark.
    """
    for own in CODE.finditer(page):
        if own["mark"] or own["plain"]:
            yield _block(own[0].strip(), page[: own.start()].count("\n"))
    prose = CODE.sub(lambda own: "\n" * own[0].count("\n"), page)
    for own in re.finditer(r"(?:^.*\S.*\n?)+", prose, flags=re.M):
        yield _block(own[0].rstrip(), prose[: own.start()].count("\n"))


def _block(text: str, line: int) -> Block:
    first, _, rest = text.partition("\n")
    mark, free = MARK.fullmatch(first.strip()), NO_RUN.fullmatch(first.strip()) is not None
    return Block(rest, line + 1, mark, free) if mark or free else Block(text, line, None)


def quotes(shown: str, printed: str) -> bool:
    """Whether a guide's number is a printed one, or that one with fewer digits.

    >>> [quotes(own, "1.598") for own in ("1.6", "1.59", "1.6000", "2e0")]
    [True, False, False, True]
    """
    value, unit = _value_and_unit(shown)
    other, finest = _value_and_unit(printed)
    return finest <= unit * 1.001 and abs(value - other) <= unit * (0.5 + 1e-9)


def _value_and_unit(number: str) -> tuple[float, float]:
    """A number and what its last digit counts."""
    mantissa, _, exponent = number.replace(",", "").partition("e")
    unit = int(exponent or 0) - len(mantissa.partition(".")[2])
    return float(f"{mantissa}e{exponent or 0}"), float(f"1e{unit}")


def missing(text: str, lines: list[str]) -> list[str]:
    """Numbers of a text that none of the printed lines has."""
    known = {number for line in lines for number in PRINTED_NUMBER.findall(line)}
    shown = NUMBER.findall(NOT_MEASURED.sub("", text))
    return [own for own in shown if not any(quotes(own, other) for other in known)]


def faults(block: Block, runs: list[Run]) -> list[str]:
    """What a block shows that its runs did not print."""
    lines = [line for own in runs for line in own.printed]
    if block.place is not None:
        tables = runs[0].tables
        if not (block.place <= len(tables) and rows_of(block.text) == tables[block.place - 1]):
            return [f"is not table {block.place}"]
        return []
    if block.is_table:
        head, *rows = rows_of(block.text)
        said = [f"has no {own}" for own in missing(" | ".join(head), lines)]
        for row in rows:
            cells = " | ".join(row)
            if all(missing(cells, [line]) for line in lines):
                numbers = ", ".join(missing(cells, lines)[:3]) or "these numbers"
                said.append(f"has no line with {numbers} of the row {row[0]}")
        return said
    if block.text.startswith("`"):
        return _faults_of_session(block.text, runs, lines)
    return [f"has no {own}" for own in missing(block.text, lines)]


def _faults_of_session(text: str, runs: list[Run], lines: list[str]) -> list[str]:
    """Lines of a session must be printed lines, and its commands those of the runs."""
    shown = [" ".join(line.split()) for line in re.sub(r" \\\n", " ", text).split("\n")[1:-1]]
    known = {" ".join(line.split()) for line in lines} | {"", "..."}
    commands = [shlex.split(line[2:], comments=True) for line in shown if line.startswith("$ ")]
    said = [f"did not print {line!r}" for line in shown if line[:2] != "$ " and line not in known]
    return said + [
        f"is of another command, {own.command}"
        for own in runs
        if shlex.split(own.command) not in commands
    ]


def complaints(page: str, where: str, runs: Runs) -> list[str]:
    """What a guide shows that no stored run printed, one sentence each."""
    said = []
    units = not any(name.startswith(f"{where.partition('.')[0]}/") for name in PENDING)
    for block in blocks(page):
        place = f"{where}, line {block.line + 1}"
        if block.mark is None:
            if not block.free and (found := block.measured(units)):
                numbers = ", ".join(found[:3])
                said.append(f"{place}: no line <!-- run: ... --> says what printed {numbers}.")
        elif set(block.names) & set(PENDING):
            continue
        elif unknown := [name for name in block.names if name not in runs]:
            said.append(f"{place}: no run {unknown[0]} is stored.")
        elif block.mark["rest"] is not None and block.place is None:
            said.append(f"{place}: after the name stands 'table K' or nothing.")
        else:
            own = faults(block, [runs[name] for name in block.names])
            said += [f"{place}: {block.mark['names']} {fault}." for fault in own]
    return said


def renew(page: str, runs: Runs) -> str:
    """The page with the tables of runs that it names."""
    for block in list(blocks(page)):
        if block.mark is None or block.place is None:
            continue
        tables = runs[block.names[0]].tables if block.names[0] in runs else []
        if len(tables) < block.place:
            sys.exit(f"no stored run printed {block.mark['names']}, table {block.place}")
        page = page.replace(
            f"{block.mark[0]}\n{block.text}",
            f"{block.mark[0]}\n{to_markdown(tables[block.place - 1])}",
        )
    return page


def guides() -> list[Path]:
    """Every page whose numbers must be stored."""
    return [*sorted(PROJECT.glob("README*.md")), *sorted((PROJECT / "docs").glob("*.md"))]


def shown() -> set[str]:
    """The runs that guides name."""
    pages = [path.read_text(encoding="utf-8") for path in guides()]
    return {name for page in pages for block in blocks(page) for name in block.names}


def main(words: list[str]) -> None:
    given, _, command = (
        (words[: words.index("--")], "--", words[words.index("--") + 1 :])
        if "--" in words
        else (words, "", [])
    )
    match given:
        case ["run", name] if command:
            run(name, command)
        case ["keep", name, file, commit] if command:
            text = Path(file).read_text(encoding="utf-8")
            write(name, run_of(shlex.join(command), text, commit))
        case ["renew", *pages] if pages:
            for path in map(Path, pages):
                path.write_text(renew(path.read_text("utf-8"), read()), "utf-8")
        case ["check"]:
            runs = read()
            said = [own for p in guides() for own in complaints(p.read_text("utf-8"), p.name, runs)]
            sys.exit("\n".join(said) if said else 0)
        case _:
            sys.exit("python -m benchmarks.stored run NAME -- COMMAND | renew PAGE ... | check")


if __name__ == "__main__":
    main(sys.argv[1:])
