"""Names and cells that try to leave their quotes: in three databases they stay names and cells."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from databases import in_duckdb, in_postgres, in_sqlite
from laconic import DecisionClassifier, PlainLogisticRegression
from laconic.export.sql import to_sql, to_sql_check

NAMES = [
    '"; DROP TABLE rows; --', "it's", "back\\slash", "100 %s", "select", "a.b[c]`d`", "é ☃ {x}",
    "/* */ $$ ?", "two\nlines",
]  # fmt: skip
CELLS = [
    "'; DROP TABLE rows; --", '"', "\\", "x\\' OR 1=1 --", "%s %(a)s {0}", "$$ ? :a @b", "☃ é",
    "=1+1", "two\nlines", "<b>", "TRUE OR", "E'\\x00'", "`", "--",
]  # fmt: skip
QUOTED = """, header=true, delim=',', quote='"', escape='"', all_varchar=true"""
BASES = {
    "duckdb": lambda path, query: in_duckdb(path, query, QUOTED),
    "sqlite": in_sqlite,
    "postgres": lambda path, query: in_postgres(path, query, {}),
}


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """Texts alone: each cell of each column has a coefficient of its own."""
    draw = np.random.default_rng(0)
    n = 600
    columns = {name: draw.choice(np.array(CELLS, dtype=object), n) for name in NAMES}
    signs = {cell: draw.choice([-1.0, 1.0]) for cell in CELLS}
    score = sum(np.array([signs[cell] for cell in cells]) for cells in columns.values())
    y = np.where(score + draw.logistic(size=n) > 0, "o'k", 'b"ad')
    path = tmp_path_factory.mktemp("hostile") / "rows.csv"
    with path.open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
        writer.writerow(["id", *columns])
        writer.writerows(zip(range(n), *columns.values(), strict=True))
    return path, columns, DecisionClassifier(PlainLogisticRegression()).fit(columns, y)


@pytest.mark.parametrize("dialect", BASES)
def test_hostile_names_and_cells_score_as_python_does(fitted, dialect):
    path, columns, model = fitted
    found = BASES[dialect](path, to_sql(model, "rows", key="id", dialect=dialect))
    found = sorted(found, key=lambda row: int(row[0]))
    proba = np.array([row[1:-1] for row in found], dtype=float)
    np.testing.assert_allclose(proba, model.predict_proba(columns), rtol=0, atol=1e-12)
    assert [row[-1] for row in found] == model.predict(columns).tolist()
    assert len(np.unique(proba[:, 0])) > 500  # every cell has been told from the others


@pytest.mark.parametrize("dialect", BASES)
def test_the_check_names_hostile_columns(fitted, dialect):
    path, _, model = fitted
    found = BASES[dialect](path, to_sql_check(model, "rows", dialect=dialect))
    assert {row[0]: tuple(map(int, row[1:])) for row in found} == dict.fromkeys(
        NAMES, (600, 0, 0, 0)
    )
