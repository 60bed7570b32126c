"""What benchmarks printed, stored in ``results.json``, and what the guides show of it.

``python -m benchmarks NAME --store`` stores every table that a benchmark prints, as ``NAME/1``,
``NAME/2`` and so on, with the command, the commit and the versions. A block of a guide (a table or
a paragraph) that holds measured numbers has a line above it that names where they come from::

    <!-- run: gray_zone/1 -->
    <!-- run: scale/workers, python -m benchmarks.bench_scale workers 20000000 -->

The first kind is a table of a stored run, word for word. The second is for tables put together by
hand and for sentences: their numbers are stored as the guide has them, with the command that
printed them and the commit at which they were put there. Numbers that nobody measured, such as
parameters, stand under a line ``<!-- no run: why -->``; those in Python, in formulas and in quoted
cells of the papers (checked against docs/papers/results.json) need no line.

``python -m benchmarks.stored renew docs/scale.md README.md`` writes tables of runs into the guides
and numbers of guides into the store; ``python -m benchmarks.stored check`` names what differs and
the numbers that nothing stands for.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parents[1]
STORE = Path(__file__).with_name("results.json")
SLOWER = 0.7
"""A ratio to a peer below this share of the stored one is a regression."""

Store = dict[str, dict[str, Any]]
Rows = list[list[str]]

MARK = re.compile(r"<!-- run: (?P<name>[\w./: -]+?)(?:, (?P<command>.+?))? -->")
CODE = re.compile(
    r"(?P<mark>^<!-- (?:no )?run: .*-->\n)?^(?P<fence>```+|\$\$)(?P<plain>(?<=`)\n)?(?s:.*?)"
    r"(?P=fence)[ ]*$",
    flags=re.M,
)
NO_RUN = re.compile(r"<!-- no run: .+? -->")
NUMBER = re.compile(r"(?<![\w.])(?:\d[\d,]*\.?\d*|\.\d+)")
MEASURED = re.compile(r"(?<![\w.])(?:\d+\.\d+|\.\d+)(?![\w.]*\.\d)")
NOT_MEASURED = re.compile(
    r"-?\d*\.?\d+<!-- \d{3};.*?-->"  # a cell of the papers' results
    r"|(?<!`)`[^`]+`(?!`)|\$[^$]*\$|\]\([^)]*\)|<!--.*?-->|(?:[Ss]ections?|Python) \d[\d.]*"
)


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
    def is_table(self) -> bool:
        return self.text.startswith("|")

    @property
    def content(self) -> dict[str, Any]:
        """What is stored of it."""
        if self.is_table:
            return {"table": rows_of(self.text)}
        return {"numbers": NUMBER.findall(NOT_MEASURED.sub("", self.text))}

    @property
    def measured(self) -> list[str]:
        """Its numbers with decimals, but those of code, formulas and papers."""
        return MEASURED.findall(NOT_MEASURED.sub("", self.text))


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


def read(path: Path = STORE) -> Store:
    """The store."""
    found: Store = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def write(store: Store, path: Path = STORE) -> None:
    """The store, an entry after another, a row of a table on a line."""
    text = json.dumps(dict(sorted(store.items())), ensure_ascii=False, indent=1)
    text = re.sub(r"\[\s+((?:\"(?:[^\"\\]|\\.)*\",?\s*)+)\]", _on_one_line, text)
    path.write_text(text + "\n", encoding="utf-8")


def _on_one_line(own: re.Match[str]) -> str:
    return "[" + re.sub(r"\",\s+", '", ', own[1].strip()) + "]"


def guides() -> list[Path]:
    """Every page whose numbers must be stored."""
    return [*sorted(PROJECT.glob("README*.md")), *sorted((PROJECT / "docs").glob("*.md"))]


def complaints(path: Path, store: Store) -> list[str]:
    """What a guide shows that the store does not hold, one sentence each."""
    said = []
    for block in blocks(path.read_text(encoding="utf-8")):
        where = f"{path.name}, line {block.line + 1}"
        if block.mark is None:
            if block.measured and not block.free:
                numbers = ", ".join(block.measured[:3])
                said.append(f"{where}: no line <!-- run: ... --> says what printed {numbers}.")
        elif block.mark["name"] not in store:
            said.append(f"{where}: {block.mark['name']} is not stored; renew the page.")
        else:
            own = store[block.mark["name"]]
            if any(own.get(key) != value for key, value in block.content.items()):
                said.append(f"{where}: differs from {block.mark['name']}; renew the page.")
            if block.mark["command"] not in (None, own["command"]):
                said.append(f"{where}: {block.mark['name']} is of another command; renew the page.")
    return said


def renew(path: Path, store: Store) -> None:
    """Tables of runs from the store into the page, numbers of the page into the store."""
    page = path.read_text(encoding="utf-8")
    new = page
    for block in blocks(page):
        if block.mark is None:
            continue
        name, command = block.mark["name"], block.mark["command"]
        if command is not None:
            store[name] = _entry(store.get(name, {}), command, path.name, block)
        elif name not in store:
            raise SystemExit(f"{path.name}: no run stored {name}, and its line names no command.")
        elif block.is_table:
            new = new.replace(f"{block.mark[0]}\n{block.text}",
                              f"{block.mark[0]}\n{to_markdown(store[name]['table'])}")  # fmt: skip
    if new != page:
        path.write_text(new, encoding="utf-8")


def _entry(old: dict[str, Any], command: str, guide: str, block: Block) -> dict[str, Any]:
    """What is stored of a block put together by hand: an unchanged one keeps its commit."""
    from laconic.papers.engine import versions

    new = {"command": command, "guide": guide, **block.content}
    same = all(old.get(key) == value for key, value in block.content.items())
    commit = old.get("commit") if same else versions()["commit"].removesuffix("-dirty")
    return new if commit is None else {"command": command, "commit": commit, **new}


def main(words: list[str]) -> None:
    store = read()
    if words[:1] == ["renew"]:
        for word in words[1:]:
            renew(Path(word), store)
        shown = {m["name"] for p in guides() for b in blocks(p.read_text("utf-8")) if (m := b.mark)}
        # what guides wrote and no longer show is dropped
        write({name: own for name, own in store.items() if name in shown or "guide" not in own})
    elif words == ["check"]:
        said = [sentence for path in guides() for sentence in complaints(path, store)]
        sys.exit("\n".join(said) if said else 0)
    else:
        sys.exit("python -m benchmarks.stored renew PAGE ... | check")


if __name__ == "__main__":
    main(sys.argv[1:])
