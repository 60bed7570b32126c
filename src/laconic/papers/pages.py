"""What is written of a run: results.json, a page of tables for each document, an index.

Guides quote numbers of the papers' comparisons beside a comment that names the cell,
``1.79<!-- 000; Table 3; mean test cost, 7.8-10.0 -->``; :func:`filled` puts in what the file of
results holds, with as many decimals as stand there, and ``sd`` before the comment's end asks for
the standard deviation. ``python -m laconic.papers.pages docs`` does so for all guides, and writes
the papers' pages again.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from laconic.papers.engine import Outcome
from laconic.papers.registry import (
    DOCUMENTS,
    NOT_PRINTED,
    TITLES,
    Cell,
    Figure,
    cells_of,
    figures_of,
)

Results = dict[str, dict[str, Any]]
"""By document: stamp, whether the run was quick, and its cells."""

VERDICTS = ("reproduced", "refuted", "undetermined")


def cell_row(cell: Cell, outcome: Outcome) -> dict[str, Any]:
    """A cell as it is stored."""
    ours, verdict = outcome
    return {
        "place": cell.place,
        "what": cell.what,
        "published": cell.published,
        "mean": _digits(ours.mean),
        "sd": _digits(ours.sd),
        "draws": ours.n_draws,
        "verdict": verdict.word,
        "reason": verdict.reason,
        "protocol": cell.protocol,
    }


def _digits(value: float) -> float | None:
    """Six digits; JSON has no NaN."""
    return float(f"{value:.6g}") if abs(value) < float("inf") else None


def merged(
    old: Results, document: str, found: Mapping[Cell, Outcome], stamp: Mapping[str, Any]
) -> Results:
    """The results with what a run has found of a document; cells it did not ask for stay.

    Cells are in the order of the document; those that it no longer has are left out.
    """
    before = {(row["place"], row["what"]): row for row in old.get(document, {}).get("cells", [])}
    before |= {(cell.place, cell.what): cell_row(cell, own) for cell, own in found.items()}
    order = [(cell.place, cell.what) for cell in cells_of(document)]
    rows = [before[key] for key in order if key in before]
    return dict(sorted({**old, document: {"stamp": dict(stamp), "cells": rows}}.items()))


def to_json(results: Results) -> str:
    """One line for each cell, so that a change of one is a change of one line."""
    parts = []
    for document, own in results.items():
        rows = ",\n".join("   " + json.dumps(row, ensure_ascii=False) for row in own["cells"])
        stamp = json.dumps(own["stamp"], ensure_ascii=False)
        parts.append(f' "{document}": {{\n  "stamp": {stamp},\n  "cells": [\n{rows}\n  ]\n }}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def figure_file(figure: Figure) -> str:
    """The name of the file of a figure."""
    return f"{figure.document}_figure_{figure.number}.svg"


def verdict_counts(rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Cells by verdict; those that the document draws without a number are counted apart."""
    rows = list(rows)
    free = sum(row["published"] == NOT_PRINTED for row in rows)
    counts = Counter(row["verdict"] for row in rows if row["published"] != NOT_PRINTED)
    return {word: counts[word] for word in VERDICTS} | {"drawn without a number": free}


def index_page(results: Results) -> str:
    """How many cells of each document hold, with links to its tables."""
    lines = [
        "# The papers' numbers beside ours",
        "",
        "Every printed number, figure and claim of the documents that this library builds on, as "
        "published and as computed here. `laconic reproduce 000` computes document 000 again; "
        "`laconic reproduce all --quick` all of them from fewer draws.",
        "",
        "A printed number is *reproduced* when ours lies inside its rounding or within 2 standard "
        "deviations of it (ours over draws, and the printed one where there is one), and *refuted* "
        "outside the interval in which one more draw of ours would lie with 95 %, which is wider "
        "for few draws. A claimed sign is reproduced when our mean has it and refuted when that "
        "whole interval has the other. Between them, and where a document leaves open what a "
        "number depends on and some value of it would give the number, a cell is *undetermined*. "
        "Bars and points that a document draws without printing their number have nothing to "
        "compare with: ours stand in the tables, and the last column counts them.",
        "",
        "| document | reproduced | refuted | undetermined | drawn without a number |",
        "|---|---|---|---|---|",
    ]
    for document, own in results.items():
        shown = " | ".join(str(count) for count in verdict_counts(own["cells"]).values())
        lines.append(f"| [{document}. {TITLES[document]}]({document}.md) | {shown} |")
    listed = "\n".join(results)
    return "\n".join(lines) + f"\n\n```{{toctree}}\n:hidden:\n{listed}\n```\n"


def document_page(document: str, own: Mapping[str, Any], drawn: Iterable[str] = ()) -> str:
    """Tables of a document, place by place, and the figures whose files are ``drawn``."""
    rows = own["cells"]
    stamp = {k: v for k, v in own["stamp"].items() if k not in ("run", "quick", "share")}
    said = own["stamp"].get("run", "")
    more = " --quick" if own["stamp"]["quick"] else ""
    lines = [
        f"# {document}. {TITLES[document]}",
        "",
        f"{', '.join(f'{n} {word}' for word, n in verdict_counts(rows).items())}. {said}".strip(),
        "",
        f"Computed by `laconic reproduce {document}{more}` with "
        + ", ".join(f"{name} {value}" for name, value in stamp.items())
        + "; the column *draws* says how many draws a number comes from.",
        "",
    ]  # fmt: skip
    figures = {f"Figure {f.number}": f for f in figures_of(document) if figure_file(f) in drawn}
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row["place"].partition(",")[0], []).append(row)
    for place, group in groups.items():
        lines += [f"## {place}", ""]
        lines += _figure_lines(figures.pop(place, None))
        lines += _table_lines(group)
    for place, figure in figures.items():
        lines += [f"## {place}", "", *_figure_lines(figure)]
    return "\n".join(lines).rstrip() + "\n"


def _figure_lines(figure: Figure | None) -> list[str]:
    return [] if figure is None else [f"![{figure.caption}]({figure_file(figure)})", "",
                                      f"*{figure.caption}*", ""]  # fmt: skip


def _table_lines(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    protocols = dict.fromkeys(row["protocol"] for row in rows)
    for protocol in protocols:
        yield from (f"Protocol: {protocol}.", "")
        yield "| what | published | ours | sd | draws | verdict | why |"
        yield "|---|---|---|---|---|---|---|"
        for row in (own for own in rows if own["protocol"] == protocol):
            _, _, more = row["place"].partition(", ")
            what = f"{more}: {row['what']}" if more else row["what"]
            cells = (what, _published(row["published"]), _shown(row["mean"]),
                     _shown(row["sd"], 2), row["draws"], row["verdict"], row["reason"])  # fmt: skip
            yield "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"
        yield ""


def _shown(value: float | None, digits: int = 4) -> str:
    """Some digits, all of them of a large number.

    >>> _shown(48842.0), _shown(0.06177), _shown(17.0, 2)
    ('48,842', '0.06177', '17')
    """
    if value is None:
        return ""
    whole = abs(value) >= 10**digits or (abs(value) >= 1000 and value == int(value))
    return f"{value:,.0f}" if whole else f"{value:.{digits}g}"


def _published(value: float | str) -> str:
    """As the document has it: a count without a decimal point."""
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if value == int(value) and abs(value) >= 1 else f"{value:g}"


QUOTED = re.compile(r"(-?\d*\.?\d+)<!-- (\d{3}); ([^;]+?); ([^;]+?)(; sd)? -->")


def filled(text: str, results: Results) -> str:
    """A guide with its quoted cells as the results hold them.

    >>> row = {"place": "Table 1", "what": "cost", "mean": 1.234}
    >>> filled("so 1.3<!-- 000; Table 1; cost -->.", {"000": {"cells": [row]}})
    'so 1.2<!-- 000; Table 1; cost -->.'
    """

    def number(match: re.Match[str]) -> str:
        shown, document, place, what, spread = match.groups()
        for row in results[document]["cells"]:
            if (row["place"], row["what"]) == (place, what):
                value = row["sd" if spread else "mean"]
                new = f"{value:.{len(shown.partition('.')[2])}f}"
                # .02 as the guides write shares
                new = new.removeprefix("0") if shown.startswith(".") else new
                return new + match.group(0)[len(shown) :]
        raise ValueError(f"no cell {document}; {place}; {what} in the results.")

    return QUOTED.sub(number, text)


def documents_asked(word: str) -> list[str]:
    """The documents of a word of the command line."""
    if word != "all" and word not in DOCUMENTS:
        raise ValueError(f"the document is one of {', '.join(DOCUMENTS)} or all, got {word!r}.")
    return list(DOCUMENTS) if word == "all" else [word]


def main(folder: str) -> None:
    """Write the papers' pages and fill the guides of a folder from its papers/results.json."""
    papers = Path(folder, "papers")
    results = json.loads((papers / "results.json").read_text(encoding="utf-8"))
    there = [path.name for path in papers.glob("*.svg")]
    for document, own in results.items():
        page = document_page(document, own, there)
        (papers / f"{document}.md").write_text(page, encoding="utf-8")
    (papers / "index.md").write_text(index_page(results), encoding="utf-8")
    for path in sorted(Path(folder).glob("*.md")):
        text = path.read_text(encoding="utf-8")
        new = filled(text, results)
        if new != text:
            path.write_text(new, encoding="utf-8")
            print(f"{path.name}: numbers of the papers' comparisons put in again")


if __name__ == "__main__":
    main(*sys.argv[1:])
