"""SQL over a table that the database read from a CSV by itself: other types, same scores."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from databases import in_duckdb, in_postgres, in_sqlite
from laconic import DecisionClassifier, PlainLogisticRegression
from laconic.export.sql import to_sql, to_sql_check


@pytest.fixture
def written(tmp_path: Path) -> tuple[Path, Any, np.ndarray, DecisionClassifier]:
    """A CSV with Yes/No, T/F, codes with zeros, gaps and names that SQL has plans for."""
    rng = np.random.default_rng(0)
    n = 400
    signal = rng.normal(size=n)
    columns = {
        "smoker": np.where(signal + rng.normal(size=n) > 0, "Yes", "No"),
        "true": np.round(signal + rng.normal(size=n), 3).astype(str),
        "false": np.where(rng.random(n) < 0.5, "N", "Y"),
        "postcode": rng.choice(["01322", "00017", "98004"], n),
        "rowid": rng.choice(["x", "y"], n),
        "order": rng.integers(0, 9, n).astype(str),
    }
    for name in ("smoker", "true", "postcode"):
        columns[name] = np.where(rng.random(n) < 0.1, "", columns[name])
    path = tmp_path / "rows.csv"
    with path.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["id", *columns])
        writer.writerows(zip(range(n), *columns.values(), strict=True))
    X: dict[str, Any] = {}
    X["true"] = np.array([float(cell) if cell else np.nan for cell in columns["true"]])
    X["order"] = columns["order"].astype(float)
    for name in ("smoker", "false", "postcode", "rowid"):
        X[name] = np.array([cell or None for cell in columns[name]], dtype=object)
    y = np.where(signal + 0.5 * rng.normal(size=n) > 0.3, "bad", "ok")
    model = DecisionClassifier(
        PlainLogisticRegression(), costs={"bad": {"ok": 5}, "ok": {"bad": 1}}
    )
    return path, X, y, model.fit(X, y)


TYPES = {
    "smoker": "BOOLEAN", "false": "BOOLEAN", "true": "DOUBLE PRECISION", "id": "INT",
    "postcode": "INT", "order": "INT",
}  # fmt: skip
BASES = {
    "duckdb": in_duckdb,
    "sqlite": in_sqlite,
    "postgres": lambda path, query: in_postgres(path, query, TYPES),
}


@pytest.mark.parametrize("dialect", BASES)
def test_a_table_the_database_read_itself_scores_as_python_does(written, dialect):
    path, X, _, model = written
    query = to_sql(model, "rows", key="id", dialect=dialect)
    result = sorted(BASES[dialect](path, query), key=lambda row: int(row[0]))
    proba = np.array([row[1:-1] for row in result], dtype=float)
    np.testing.assert_allclose(proba, model.predict_proba(X), rtol=0, atol=1e-12)
    assert [row[-1] for row in result] == model.predict(X).tolist()


@pytest.mark.parametrize("dialect", BASES)
def test_the_check_counts_nothing_where_all_is_read(written, dialect):
    path, X, _, model = written
    found = BASES[dialect](path, to_sql_check(model, "rows", dialect=dialect))
    counts = {row[0]: tuple(int(c) for c in row[1:]) for row in found}
    assert set(counts) == set(X)
    assert all(row[0] == 400 and row[3] == 0 for row in counts.values())


def test_the_check_counts_what_cannot_be_read(written, tmp_path):
    path, _, _, model = written
    with path.open(newline="") as file:
        head, *rows = csv.reader(file)
    rows[3][head.index("true")] = "unknown"
    rows[5][head.index("rowid")] = "zebra"
    changed = tmp_path / "changed.csv"
    with changed.open("w", newline="") as out:
        csv.writer(out).writerows([head, *rows])
    found = in_sqlite(changed, to_sql_check(model, "rows", dialect="sqlite"))
    counts = {row[0]: row for row in found}
    empty = sum(row[head.index("true")] == "" for row in rows)
    assert counts["true"][2:4] == (empty, 1)  # a text table holds its gaps as empty texts
    assert counts["rowid"][4] == 1
    query = to_sql(model, "rows", key="id", dialect="sqlite")
    scored = {int(row[0]): row for row in in_sqlite(changed, query)}
    assert all(part is not None for row in scored.values() for part in row)


@pytest.mark.parametrize("dialect", BASES)
def test_blanks_among_numbers_are_missing_in_databases_too(written, tmp_path, dialect):
    """A bill of blanks, as phone companies export it: the database holds the column as texts."""
    path, X, _, model = written
    with path.open(newline="") as file:
        head, *rows = csv.reader(file)
    at = head.index("order")
    for row, cell in zip(rows, [*["  ", "", "\t", "NA"] * 5, *[" 3 "] * 10], strict=False):
        row[at] = cell
    changed = tmp_path / "blank.csv"
    with changed.open("w", newline="") as out:
        csv.writer(out, quoting=csv.QUOTE_MINIMAL).writerows([head, *rows])
    holes = {name: cells.copy() for name, cells in X.items()}
    holes["order"][:20], holes["order"][20:30] = np.nan, 3.0

    def asked(query: str) -> list[Any]:
        if dialect == "postgres":
            return in_postgres(changed, query, {**TYPES, "order": "TEXT"})
        return BASES[dialect](changed, query)

    found = asked(to_sql(model, "rows", key="id", dialect=dialect))
    proba = np.array([row[1:-1] for row in sorted(found, key=lambda row: int(row[0]))], dtype=float)
    np.testing.assert_allclose(proba, model.predict_proba(holes), rtol=0, atol=1e-12)
    checked = {row[0]: row for row in asked(to_sql_check(model, "rows", dialect=dialect))}["order"]
    assert (int(checked[1]), int(checked[2]) + int(checked[3])) == (400, 20)
    assert int(checked[2]) >= 10


def test_a_key_may_not_be_called_like_a_reason(written):
    *_, model = written
    with pytest.raises(ValueError, match="'reason 1' would appear twice"):
        to_sql(model, "rows", key="reason 1", reasons=1)
