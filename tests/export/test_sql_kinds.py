"""Every kind of column, loaded by the database's own CSV reader, scores as Python does."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laconic
from databases import in_duckdb, in_postgres, in_sqlite
from laconic.data.tables.files import read_frame

N = 240
LEFT_OUT = {"code of the row": "id", "country": "constant", "remarks": "empty"}
KINDS = {
    "plain": "number", "comma": "number", "money": "number", "share": "number",
    "thousands": "number", "bounded": "number", "weight": "number", "day": "date",
    "us day": "date", "month": "date", "compact": "date", "stamp": "date-time",
    "late stamp": "date-time", "at": "time", "took": "duration", "ran": "duration",
    "smoker": "yes/no", "member": "yes/no", "postcode": "code", "branch": "code",
    "kind": "category", "note": "text", "price": "number", "fee": "number", "mixed day": "date",
    "short day": "date", "french stamp": "date-time", "opened": "time", "shift": "time",
    "lap": "duration", "worked": "duration", "active": "yes/no", "booked": "number",
    "level": "number", "admitted": "date-time", "left": "date-time", "sent": "date-time",
}  # fmt: skip


def cells(draw: np.random.Generator) -> dict[str, list[str]]:
    x = draw.normal(size=N)
    days = [d.astype(object) for d in np.datetime64("2021-03-05") + draw.integers(0, 900, N)]
    minutes = draw.integers(0, 1440, N)
    first = [d.replace(day=1) for d in days]
    money = [f"{v:,.2f}" for v in 5000 * np.exp(x)]
    found: dict[str, list[str]] = {
        "plain": [f"{v:.3f}" for v in x],
        "comma": [f"{v:.2f}".replace(".", ",") for v in draw.normal(size=N)],
        "money": [m.replace(",", " ").replace(".", ",") + " €" for m in money],
        "share": [f"{v:.1f} %".replace(".", ",") for v in 100 * draw.random(N)],
        "thousands": [f"{v:,}".replace(",", ".") for v in draw.integers(900, 9_000_000, N)],
        "bounded": [f"<{v}" if v == 1 else f"{v}+" if v == 9 else f"({v},5)" for v in
                    draw.integers(1, 10, N)],
        "weight": [f"{v:.1f} kg".replace(".", ",") for v in draw.normal(70, 9, N)],
        "day": [f"{d:%d/%m/%Y}" for d in days],
        "us day": [f"{d:%Y-%m-%d}" for d in reversed(days)],
        "month": [f"{d:%Y-%m}" for d in first],
        "compact": [f"{d:%Y%m%d}" for d in days],
        "stamp": [f"{d:%Y-%m-%d} {m // 60:02d}:{m % 60:02d}:{m % 59:02d}" for d, m in
                  zip(days, minutes, strict=True)],
        "late stamp": [f"{d:%d.%m.%Y} {m // 60 % 12 or 12}:{m % 60:02d} {'PM' if m > 719 else 'AM'}"
                       for d, m in zip(days, minutes, strict=True)],
        "at": [f"{m // 60}:{m % 60:02d}" for m in minutes],
        "took": [f"{m // 60}h {m % 60}min" for m in minutes],
        "ran": [f"{m % 5} days {m // 60:02d}:{m % 60:02d}:00" for m in minutes],
        "smoker": ["Yes" if v > 0 else "No" for v in x],
        "member": ["oui" if v > 0 else "non" for v in draw.normal(size=N)],
        "postcode": draw.choice(["01322", "00017", "98004"], N).tolist(),
        "branch": draw.choice(["007", "12", "1300"], N).tolist(),
        "kind": draw.choice(["a", "b c", "NA", "d"], N).tolist(),
        "code of the row": [f"R{k:05d}" for k in draw.permutation(N)],
        "country": ["FR"] * N,
        "remarks": [""] * N,
        "price": [f"{v},-" if v % 2 else f"{v},50-" for v in draw.integers(10, 999, N)],
        "fee": [f"{v} {('EUR', 'euros', '€')[v % 3]}" for v in draw.integers(10, 999, N)],
        "mixed day": [f"{d:%d/%m/%Y}" if k % 3 else f"{d}" for k, d in enumerate(days)],
        "short day": [f"{d:%y-%m-%d}" for d in days],
        "french stamp": [f"{d:%d/%m/%Y}{' à ' if m % 2 else ' '}{m // 60}h{m % 60:02d}" for d, m in
                         zip(days, minutes, strict=True)],
        "opened": [f"{m // 60:02d}h{m % 60:02d}" for m in minutes],
        "shift": [f"{m // 60 % 12 or 12} {'pm' if m > 719 else 'am'}" for m in minutes],
        "lap": [f"{m // 60}:{m % 60:02d}.{m % 10}" for m in minutes],
        "worked": [f"{m // 30}h{m % 60:02d}" for m in minutes],
        "booked": [f"{v:,.2f} {'CR' if v % 1 > 0.4 else 'DR'}" for v in 900 * draw.random(N)],
        "level": ["undetermined" if v > 0.5 else f"{v:.2f}" for v in draw.normal(size=N)],
        "admitted": [f"{d:%Y%m%d}{m // 60:02d}{m % 60:02d}{m % 59:02d}" for d, m in
                     zip(days, minutes, strict=True)],
        "left": [f"{d:%Y%m%d}T{m // 60:02d}{m % 60:02d}" for d, m in
                 zip(days, minutes, strict=True)],
        "sent": [f"{d}T{m // 60:02d}:{m % 60:02d}:{m % 59:02d}{('+05:30', '-08:00', 'Z')[m % 3]}"
                 for d, m in zip(days, minutes, strict=True)],
        "active": draw.choice(["TRUE", "FALSE", "1", "0"], N).tolist(),
        "note": [", ".join(draw.choice(["paid", "Late", "never", "ÉTÉ", "again"], 4)) + f" {k}."
                 for k in range(N)],
    }  # fmt: skip
    for name in KINDS:
        for row in draw.choice(N, 6, replace=False):
            found[name][row] = ""
    return found


@pytest.fixture(scope="module")
def fitted(tmp_path_factory) -> tuple[Path, Any, Any]:
    draw = np.random.default_rng(3)
    columns = cells(draw)
    path = tmp_path_factory.mktemp("kinds") / "rows.csv"
    with path.open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out)
        writer.writerow(["id", *columns])
        writer.writerows(zip(range(N), *columns.values(), strict=True))
    y = np.where([cell.startswith("-") for cell in columns["plain"]], "bad", "ok")
    y = np.where(draw.random(N) < 0.2, "bad", y)
    frame = read_frame(path, doubts=True)
    reading = laconic.look(frame, drop=["id"]).reading
    kinds = {column.name: column.kind for column in reading.columns}
    assert {name: kinds[name] for name in (KINDS | LEFT_OUT)} == KINDS | LEFT_OUT
    model = laconic.LaconicClassifier(
        {"bad": {"ok": 5}, "ok": {"bad": 1}},
        candidates=["logistic"],
        tolerance=0.0,
        max_size=100_000,
        reading=reading,
    ).fit(frame, y)
    assert set(model.estimator_.form_.columns) == set(reading.made)
    return path, frame, model


TYPED = {
    "id": "INT", "plain": "DOUBLE PRECISION", "day": "DATE", "us day": "DATE", "compact": "DATE",
    "stamp": "TIMESTAMP", "at": "TIME", "ran": "INTERVAL", "smoker": "BOOLEAN", "postcode": "INT",
    "branch": "INT", "remarks": "INT", "admitted": "BIGINT",
    "sent": "TIMESTAMPTZ",
}  # fmt: skip
BASES = {
    "duckdb": ("duckdb", in_duckdb),
    "sqlite": ("sqlite", in_sqlite),
    "postgres, texts": ("postgres", lambda path, query: in_postgres(path, query, {})),
    "postgres, types": ("postgres", lambda path, query: in_postgres(path, query, TYPED)),
}


@pytest.mark.parametrize("base", BASES)
def test_every_kind_scores_as_python_does(fitted, base):
    path, frame, model = fitted
    dialect, ask = BASES[base]
    query = laconic.to_sql(model, "rows", key="id", dialect=dialect)
    result = sorted(ask(path, query), key=lambda row: int(row[0]))
    proba = np.array([row[1:-1] for row in result], dtype=float)
    np.testing.assert_allclose(proba, model.predict_proba(frame), rtol=0, atol=1e-11)
    assert [row[-1] for row in result] == model.predict(frame).tolist()


@pytest.mark.parametrize("base", BASES)
def test_the_check_counts_odd_cells_of_every_kind(fitted, base, tmp_path):
    path, frame, model = fitted
    dialect, ask = BASES[base]
    query = laconic.export.sql.to_sql_check(model, "rows", dialect=dialect)
    counts = {row[0]: tuple(int(c) for c in row[1:]) for row in ask(path, query)}
    assert set(counts) == set(KINDS)
    for name, (rows, missing, unread, unseen) in counts.items():
        # a text that the fit took for missing is missing, in a third of the cells of one column
        odd = sum(own == "undetermined" for own in frame[name]) if name == "level" else 0
        assert (rows, missing, unread, unseen) == (N, 6 + odd, 0, 0), name
    if "types" in base or dialect == "duckdb":
        return  # such a table cannot hold what follows
    with path.open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    odd = {"money": "12 apples", "day": "soon", "took": "long", "kind": "zebra", "at": "noon"}
    filled = next(k for k, row in enumerate(rows) if all(row[head.index(n)] for n in odd))
    for name, cell in odd.items():
        rows[filled][head.index(name)] = cell
    with (tmp_path / "odd.csv").open("w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerows([head, *rows])
    again = {row[0]: row for row in ask(tmp_path / "odd.csv", query)}
    for name in odd:
        place = 4 if name == "kind" else 3
        assert int(again[name][place]) == int(counts[name][place - 1]) + 1, name


def test_months_by_name_are_refused_by_name():
    draw = np.random.default_rng(1)
    days = np.datetime64("2024-01-05") + draw.integers(0, 300, 200)
    table = {"seen": [f"{d.astype(object):%d %B %Y}" for d in days], "x": draw.normal(size=200)}
    y = draw.random(200) < 0.5
    model = laconic.LaconicClassifier(candidates=["logistic"]).fit(table, y)
    with pytest.raises(ValueError, match="'seen' was read as date, which duckdb SQL cannot repeat"):
        laconic.to_sql(model, "rows", dialect="duckdb")
