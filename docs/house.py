"""The map of the house from its real imports (docs/house.svg), and the way of one fit through it.

``python docs/house.py`` writes the drawing and prints the table of ARCHITECTURE.md: for each fit,
how many files of the package run, and how often the next file to run for the first time stands in
another folder than the one before.
"""

from __future__ import annotations

import ast
import sys
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Callable
from html import escape
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import laconic

PACKAGE = Path(laconic.__file__).parent
ROWS = [
    ["data"],
    ["core"],
    ["decide", "linear", "modl", "additive", "votes", "rules"],
    ["kernel", "bayes", "boosted"],
    ["convex", "scorecard"],
    ["minimax"],
    ["choose", "papers"],
    ["export"],
    ["reporting"],
    ["watching"],
    ["job"],
    ["cli"],
]
WIDE, HIGH, GAP = 116, 34, 26


def imports() -> dict[str, set[str]]:
    """Package -> packages that it imports."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        own = path.relative_to(PACKAGE).parts[0]
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("laconic."):
                found[own].add(node.module.split(".")[1])
    return {own: others - {own} for own, others in found.items()}


def drawing() -> str:
    """Boxes from what stands on nothing to what stands on all; lines where families meet."""
    place = {}
    for r, row in enumerate(ROWS):
        start = 400 - (len(row) * (WIDE + 14) - 14) / 2
        for c, name in enumerate(row):
            place[name] = (start + c * (WIDE + 14), r * (HIGH + GAP) + 8)
    sizes = {p: len(list((PACKAGE / p).rglob("*.py"))) for p in place}
    lines, boxes = [], []
    everywhere = {"data", "core", "_typing", "_door"}
    for own, others in sorted(imports().items()):
        for other in sorted((others & set(place)) - everywhere):
            if own not in place:
                continue
            (x1, y1), (x2, y2) = place[own], place[other]
            lines.append(
                f'<line x1="{x1 + WIDE / 2:.0f}" y1="{y1:.0f}" x2="{x2 + WIDE / 2:.0f}" '
                f'y2="{y2 + HIGH:.0f}" stroke="#9aa5b1" stroke-width="1"/>'
            )
    for name, (x, y) in place.items():
        boxes.append(
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{WIDE}" height="{HIGH}" rx="6" fill="#eef2f6" '
            f'stroke="#52606d"/><text x="{x + WIDE / 2:.0f}" y="{y + 21:.0f}" '
            f'text-anchor="middle">{escape(name)} ({sizes[name]})</text>'
        )
    high = len(ROWS) * (HIGH + GAP) + 8
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 {high}" '
        'font-family="sans-serif" font-size="13">\n' + "\n".join(lines + boxes) + "\n</svg>\n"
    )


def walked(run: Callable[[], Any]) -> list[Path]:
    """Files of the package whose functions run, in order of their first run."""
    seen: dict[Path, None] = {}
    root = str(PACKAGE)

    def trace(frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(root) and frame.f_code.co_name != "<module>":
            seen.setdefault(Path(name))

    sys.setprofile(trace)
    try:
        run()
    finally:
        sys.setprofile(None)
    doors = {"_door.py", "__init__.py"}  # they find a name, before the fit
    return [path.relative_to(PACKAGE) for path in seen if path.name not in doors]


def fits() -> dict[str, Callable[[], Any]]:
    """One fit of each kind, on the demo's rows; compiled code is warm before it is traced."""
    from laconic.data.demo import make_payments

    table, label = make_payments(600)
    left_out = ("merchant", "days since last payment")  # texts, and a column with gaps
    numbers = {name: table.column(j) for j, name in enumerate(table.names) if name not in left_out}
    costs = {"fraud": {"genuine": 25}, "genuine": {"fraud": 1}}

    def scanned() -> None:
        import polars as pl

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.parquet"
            pl.DataFrame({**numbers, "label": label}).write_parquet(path)
            rows = laconic.scan(str(path), target="label")
            laconic.GrayZoneLogisticRegression().fit(rows)

    return {
        "main job": lambda: laconic.LaconicClassifier(costs, random_state=0).fit(table, label),
        "gray zone": lambda: laconic.GrayZoneLogisticRegression().fit(numbers, label),
        "additive": lambda: laconic.SparseAdditiveClassifier().fit(table, label),
        "CqBoost": lambda: laconic.CqBoostClassifier(random_state=0).fit(table, label),
        "naive Bayes": lambda: laconic.WeightedNaiveBayes(random_state=0).fit(table, label),
        "minimax": lambda: laconic.MinimaxClassifier().fit(table, label),
        "gray zone from a scan": scanned,
    }


def main() -> None:
    Path(__file__).with_name("house.svg").write_text(drawing())
    print("| fit | files | changes of folder |\n|---|---|---|")
    for name, run in fits().items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run()
            files = walked(run)
        folders = [path.parent for path in files]
        changes = sum(a != b for a, b in pairwise(folders))
        print(f"| {name} | {len(files)} | {changes} |")
        if "-v" in sys.argv:
            print("   ", " ".join(map(str, files)))


if __name__ == "__main__":
    main()
