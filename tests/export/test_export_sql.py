"""SQL: the same probabilities and decisions as Python, in real databases."""

from __future__ import annotations

import os
import re
import sqlite3
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st

import export_cases as cases
from laconic import (
    CqBoostClassifier,
    DecisionClassifier,
    MinimaxClassifier,
    SparseAdditiveClassifier,
)
from laconic.core.forms import AdditiveScore, LineTerm, SlotTerm
from laconic.data.tables.axes import CategoryAxis, KnotAxis
from laconic.data.tables.columns import Schema
from laconic.export.parts import NotExportableError
from laconic.export.sql import to_sql
from laconic.export.sql_dialects import DIALECTS, shortest_safe_digits
from laconic.votes import KernelVoters

TABLE = 'my "table"\'; DROP TABLE x; --'
N_ROWS = 10_000


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class Sqlite:
    dialect = "sqlite"

    def run(self, frame: pd.DataFrame, query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        base = sqlite3.connect(":memory:")
        # a collation of the column must not decide which texts are equal
        columns = ", ".join(f"{quoted(name)} COLLATE NOCASE" for name in frame.columns)
        base.execute(f"CREATE TABLE {quoted(TABLE)} ({columns})")
        marks = ", ".join("?" for _ in frame.columns)
        plain = [[_plain(cell) for cell in row] for row in frame.itertuples(index=False)]
        base.executemany(f"INSERT INTO {quoted(TABLE)} VALUES ({marks})", plain)
        return _answer(base, query)


class Duckdb:
    dialect = "duckdb"

    def run(self, frame: pd.DataFrame, query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        import duckdb
        import pyarrow as pa

        columns = {name: _arrow(frame[name]) for name in frame.columns}
        base = duckdb.connect()
        base.register("given", pa.table(columns))
        base.execute(f"CREATE TABLE {quoted(TABLE)} AS SELECT * FROM given")
        return _answer(base, query)


class Postgres:
    dialect = "postgres"

    def run(self, frame: pd.DataFrame, query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        import psycopg

        address = os.environ.get("LACONIC_POSTGRES")
        if not address:
            pytest.skip("no PostgreSQL server: LACONIC_POSTGRES is not set (.ci/postgres start)")
        kinds = {"b": "BOOLEAN", "f": "DOUBLE PRECISION", "i": "BIGINT"}
        with psycopg.connect(address) as base:
            columns = ", ".join(
                f"{quoted(name)} {kinds.get(frame[name].dtype.kind, 'TEXT')}"
                for name in frame.columns
            )
            base.execute(f"CREATE TEMPORARY TABLE {quoted(TABLE)} ({columns})")
            with base.cursor().copy(f"COPY {quoted(TABLE)} FROM STDIN") as copy:
                floats = [frame[name].dtype.kind == "f" for name in frame.columns]
                for i, row in enumerate(frame.itertuples(index=False)):
                    # missing numbers: NULL in one row, NaN in the next
                    keep = [own and i % 2 == 0 for own in floats]
                    copy.write_row([_plain(c, keep_nan=k) for c, k in zip(row, keep, strict=True)])
            found = base.execute(query)
            assert found.description is not None
            result = found.fetchall()
            base.rollback()
            return [column.name for column in found.description], result


def _answer(base: Any, query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    found = base.execute(query)
    names = [column[0] for column in found.description]
    result = found.fetchall()
    base.close()
    return names, result


def _plain(cell: Any, *, keep_nan: bool = False) -> Any:
    if cell is None or cell is pd.NA or (isinstance(cell, float) and cell != cell):
        return cell if keep_nan and isinstance(cell, float) else None
    return cell.item() if isinstance(cell, np.generic) else cell


def _arrow(values: pd.Series) -> Any:
    import pyarrow as pa

    if values.dtype.kind == "f":  # missing numbers: NULL in one row, NaN in the next
        cells = values.tolist()
        return pa.array(
            [None if x != x and i % 2 else x for i, x in enumerate(cells)], pa.float64()
        )
    return pa.array([_plain(cell) for cell in values])


BASES = [Sqlite(), Duckdb(), Postgres()]


def check(base: Any, model: DecisionClassifier, frame: pd.DataFrame, key: str = "row id") -> None:
    names, result = base.run(frame, to_sql(model, TABLE, key=key, dialect=base.dialect))
    wanted = [key, *(f"probability of {c}" for c in model.classes_), "decision"]
    assert [name[:60] for name in names] == [name[:60] for name in wanted]
    assert len(result) == len(frame)
    result = sorted(result)
    assert [row[0] for row in result] == frame[key].tolist()
    X = frame.drop(columns=key)
    proba = np.array([row[1:-1] for row in result], dtype=np.float64)
    np.testing.assert_allclose(proba, model.predict_proba(X), rtol=0, atol=1e-12)
    decisions = [row[-1] for row in result]
    said = model.predict(X).tolist()
    assert decisions == said
    assert len(set(said)) >= 2


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.dialect)
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("rule", ["plain", "prior and reject"])
def test_same_as_python(base, n_classes, rule):
    check(base, cases.ruled(n_classes, rule), cases.rows(N_ROWS))


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.dialect)
@pytest.mark.parametrize(("n_classes", "link", "more"), cases.LINKS)
def test_every_link(base, n_classes, link, more):
    frame = cases.rows(1000)
    frame.loc[frame[cases.AGE].abs() > 1e9, cases.AGE] = 4.0
    check(base, cases.decided(cases.form(n_classes, link, **more)), frame)


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.dialect)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_fitted_model(base, n_classes):
    frame, y = cases.people()
    y = np.minimum(y, n_classes - 1)
    model = DecisionClassifier(SparseAdditiveClassifier(), reject_cost=0.3)
    model.fit(frame.drop(columns="row id"), y)
    frame.loc[:20, "job"] = "never seen"
    check(base, model, frame)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("family", sorted(cases.FAMILIES))
def test_every_family(family, n_classes):
    model, frame = cases.family_model(family, n_classes)
    for base in BASES[:2]:
        check(base, model, frame)
    if os.environ.get("LACONIC_POSTGRES"):
        check(BASES[2], model, frame)


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.dialect)
def test_a_card_is_an_integer_sum(base):
    model, frame = cases.card_model()
    frame.loc[:20, "job"] = "never seen"
    check(base, model, frame)
    query = to_sql(model, "people", dialect=base.dialect)
    total = query[query.index("laconic_2") :].split("s_1")[0]
    points = re.findall(r"THEN (\S+)|ELSE (\S+)", total)
    assert points
    assert all(re.fullmatch(r"-?\d+", first or second) for first, second in points)


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.dialect)
def test_probabilities_that_end_at_a_zone(base):
    check(base, *cases.clipped_model())


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.dialect)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_reasons_are_the_largest_contributions(base, n_classes):
    own = cases.form(n_classes)
    model = cases.decided(own, reject_cost=0.3)
    frame = cases.rows(500)
    query = to_sql(model, TABLE, key="row id", dialect=base.dialect, reasons=3)
    names, result = base.run(frame, query)
    assert names[-3:] == ["reason 1", "reason 2", "reason 3"]
    X = frame.drop(columns="row id")
    parts = own.contributions(cases.schema().apply(X))
    said = model.predict(X).tolist()
    for row in sorted(result):
        i, decision, given = row[0], row[-4], row[-3:]
        assert decision == said[i]
        if decision == "reject":
            assert given == (None, None, None)
            continue
        d = own.classes.index(decision)
        voices: dict[str, float] = {}
        for term, part in zip(own.terms, parts[i], strict=True):
            towards = part[d] - part.mean() if n_classes > 2 else part[0] * (1 if d else -1)
            name = " and ".join(term.columns)
            voices[name] = voices.get(name, 0.0) + towards
        ranked = sorted((v for v in voices.values()), reverse=True)[:3]
        for name, best in zip(given, ranked, strict=True):
            assert (name is None) == (best <= 0)
            if name is not None:
                assert voices[name] == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.dialect)
@pytest.mark.parametrize("n_classes", [2, 7])
def test_many_variables(base, n_classes):
    draw = np.random.default_rng(0)
    width = 200 if n_classes == 2 else 30
    names = tuple(f"v{j}" for j in range(width))
    n_scores = 1 if n_classes == 2 else n_classes
    axis = KnotAxis(np.linspace(-2, 2, 5), np.empty(0))
    terms = tuple(
        SlotTerm((name,), (axis,), 0.1 * draw.normal(size=(axis.size, n_scores))) for name in names
    )
    labels = tuple(f"c{k}" for k in range(n_classes))
    link = "logit" if n_classes == 2 else "softmax"
    own = AdditiveScore(labels, np.zeros(n_scores), terms, link)
    inner = cases.FormModel(Schema(names, ("numeric",) * width, (None,) * width, True), own)
    model = DecisionClassifier(inner, train_prior="balanced", prefit=True).fit(None, None)
    frame = pd.DataFrame({"row id": np.arange(60), **{n: draw.normal(size=60) for n in names}})
    check(base, model, frame)
    query = to_sql(model, TABLE, key="row id", dialect=base.dialect, reasons=1)
    _, result = base.run(frame, query)
    assert len(result) == 60


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("link", ["", "vote"])
def test_every_dialect_parses(dialect, n_classes, link):
    model = cases.decided(
        cases.form(n_classes, link), prior=np.full(n_classes, 1 / n_classes), reject_cost=0.2
    )
    query = to_sql(model, ('sch`e]ma"', TABLE), key="row id", dialect=dialect, reasons=2)
    spoken = "" if dialect == "ansi" else dialect
    statements = sqlglot.parse(query, read=spoken)
    assert len(statements) == 1
    (tree,) = statements
    assert tree.key == "select"
    assert tree.named_selects[1 : n_classes + 2] == [
        *(f"probability of {name}" for name in cases.CLASSES[n_classes]),
        "decision",
    ]
    read = {column.name for column in tree.find_all(sqlglot.exp.Column) if column.table}
    assert read == {"row id", *cases.form(n_classes).columns}
    (source,) = (t for t in tree.find_all(sqlglot.exp.Table) if t.args.get("db"))
    assert (source.name, source.db) == (TABLE, 'sch`e]ma"')


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"])), st.sampled_from(["sqlite", "duckdb"]))
def test_any_text_stays_a_text(text, dialect):
    query = f"SELECT {DIALECTS[dialect].text(text)}"
    if dialect == "sqlite":
        base: Any = sqlite3.connect(":memory:")
    else:
        import duckdb

        base = duckdb.connect()
    assert base.execute(query).fetchone()[0] == text
    base.close()


@settings(max_examples=300, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False))
def test_numbers_keep_every_bit_in_sqlite(value):
    base = sqlite3.connect(":memory:")
    if abs(value) < 1e25 and (abs(value) > 1e-25 or value == 0):
        assert base.execute(f"SELECT {DIALECTS['sqlite'].float(value)}").fetchone()[0] == value
    assert float(shortest_safe_digits(value)) == value
    base.close()


def test_digits_that_a_short_reader_gets_wrong_are_lengthened():
    draw = np.random.default_rng(0)
    values = draw.uniform(-1, 1, 60_000) * 10.0 ** draw.integers(-12, 12, 60_000)
    base = sqlite3.connect(":memory:")
    for start in range(0, len(values), 1000):
        some = values[start : start + 1000].tolist()
        query = "SELECT " + ", ".join(DIALECTS["sqlite"].float(v) for v in some)
        assert list(base.execute(query).fetchone()) == some
    base.close()


def numeric_model(labels: tuple[Any, ...], **rule: Any) -> DecisionClassifier:
    own = AdditiveScore(labels, np.array([0.0]), (LineTerm("x", np.array([1.0])),))
    model = cases.FormModel(Schema(("x",), ("numeric",), (None,), True), own)
    return DecisionClassifier(model, train_prior="balanced", prefit=True, **rule).fit(None, None)


@pytest.mark.parametrize(
    ("labels", "wanted"),
    [((0, 1), [0, 1, -1]), ((False, True), [0, 1, "r"]), ((1.5, 2.5), [1.5, 2.5, 0.0])],
)
def test_labels_that_are_not_texts(labels, wanted):
    model = numeric_model(labels, reject_cost=0.2, reject_label=wanted[-1])
    query = to_sql(model, "t", dialect="sqlite")
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE t (x REAL)")
    base.executemany("INSERT INTO t VALUES (?)", [(-5.0,), (5.0,), (0.0,)])
    found = [row[-1] for row in base.execute(query)]
    base.close()
    if isinstance(labels[0], bool):
        assert found == ["False", "True", "r"]
    else:
        assert found == wanted


def test_ties_go_to_the_first_class_and_scores_may_be_huge():
    query = to_sql(numeric_model(("a", "b")), "t", dialect="sqlite")
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE t (x REAL)")
    base.executemany("INSERT INTO t VALUES (?)", [(0.0,), (1e300,), (-1e300,), (800.0,)])
    assert list(base.execute(query)) == [
        (0.5, 0.5, "a"),
        (0.0, 1.0, "b"),
        (1.0, 0.0, "a"),
        (0.0, 1.0, "b"),
    ]
    base.close()


def test_texts_with_a_nul_character():
    own = AdditiveScore(
        ("a", "b"),
        np.zeros(1),
        (SlotTerm(("x",), (CategoryAxis((("p\0q",),)),), np.array([[3.0], [-3.0], [0.0]])),),
    )
    model = cases.FormModel(Schema(("x",), ("categorical",), (("p\0q",),), True), own)
    decision = DecisionClassifier(model, train_prior="balanced", prefit=True).fit(None, None)
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE t (x)")
    base.executemany("INSERT INTO t VALUES (?)", [("p\0q",), ("p",), (None,)])
    found = [row[-1] for row in base.execute(to_sql(decision, "t", dialect="sqlite"))]
    assert found == ["b", "a", "a"]
    base.close()
    assert "p" not in re.findall("'([^']*)'", to_sql(decision, "t", dialect="postgres"))


def test_the_names_of_the_steps_are_never_those_of_the_table_or_columns():
    own = AdditiveScore(("a", "b"), np.zeros(1), (LineTerm("KEY_1", np.array([1.0])),))
    model = cases.FormModel(Schema(("KEY_1",), ("numeric",), (None,), True), own)
    decision = DecisionClassifier(model, train_prior="balanced", prefit=True).fit(None, None)
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE laconic_1_cells (KEY_1 REAL, id TEXT)")
    base.execute("INSERT INTO laconic_1_cells VALUES (2.0, 'i')")
    query = to_sql(decision, "laconic_1_cells", key="id", dialect="sqlite")
    assert base.execute(query).fetchone()[0] == "i"
    base.close()


def test_refusals():
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 1, 0, 1])
    with pytest.raises(NotExportableError, match="no decision layer"):
        to_sql(LogisticRegression().fit(X, y), "t")
    with pytest.raises(NotExportableError, match="not fitted"):
        to_sql(DecisionClassifier(LogisticRegression()), "t")
    with pytest.raises(NotExportableError, match="no fitted form"):
        to_sql(DecisionClassifier(LogisticRegression()).fit(X, y), "t")
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    with pytest.raises(NotExportableError, match="pipeline"):
        to_sql(DecisionClassifier(pipeline).fit(X, y), "t")
    draw = np.random.default_rng(0)
    X = draw.normal(size=(80, 2))
    y = (X[:, 0] + 0.5 * draw.normal(size=80) > 0).astype(int)
    for other in (
        CqBoostClassifier(voters=KernelVoters()),
        MinimaxClassifier(),
    ):
        with pytest.raises(NotExportableError, match=type(other).__name__):
            to_sql(DecisionClassifier(other).fit(X, y), "t")
    model = numeric_model(("a", "b"))
    with pytest.raises(ValueError, match="dialect"):
        to_sql(model, "t", dialect="oracle")
    with pytest.raises(ValueError, match="twice"):
        to_sql(model, "t", key=["id", "decision"])
    with pytest.raises(ValueError, match="reasons"):
        to_sql(model, "t", reasons=-1)
    with pytest.raises(ValueError, match="name of a column or table"):
        to_sql(model, "t\0")
