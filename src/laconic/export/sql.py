"""A fitted decision model as one SELECT: no Python where the rows are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laconic import __version__
from laconic.data.reading.column import ColumnReading
from laconic.data.tables.columns import shown
from laconic.export.parts import (
    DecisionRule,
    Label,
    NotExportableError,
    Parts,
    raw_parts,
    uniform_labels,
)
from laconic.export.sql_dialects import Dialect, dialect_named
from laconic.export.sql_reading import CellReader, can_read
from laconic.export.sql_terms import (
    Steps,
    TermWriter,
    chosen,
    numbered,
    total,
    write_clip,
    write_costs,
    write_prior,
    write_probabilities,
)

_SOURCE = "laconic_rows"
_CELLS = "cell"
_MOST_COLUMNS = 1_500
"""PostgreSQL allows 1,664 columns in a sub-query, SQLite 2,000."""


def to_sql(
    model: Any,
    table: str | Sequence[str],
    *,
    key: str | Sequence[str] = (),
    dialect: str = "ansi",
    reasons: int = 0,
) -> str:
    """One SELECT that gives the probabilities and the decision of a model.

    Its columns are the key columns, ``probability of <class>`` for every class, ``decision``, and,
    when asked for, ``reason 1``, ``reason 2``, ...

    Parameters
    ----------
    model : DecisionClassifier, or a model whose ``decision_`` is one
        Fitted, with an additive form (see :func:`laconic.export.parts.parts_of`).
    table : str or sequence of str
        Table or view with the columns of the training rows. A sequence names schema and table:
        ``("shop", "payments")``.
    key : str or sequence of str, default=()
        Columns of the table that are handed through.
    dialect : {"ansi", "postgres", "sqlite", "duckdb", "bigquery", "snowflake", "tsql", "spark"}
    reasons : int, default=0
        How many columns of reasons: the variables that speak most for the decision taken, in the
        order of their contribution; NULL where no further variable speaks for it.

    Returns
    -------
    str

    Examples
    --------
    >>> import numpy as np
    >>> from laconic import DecisionClassifier, SparseAdditiveClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = {"age": rng.normal(45, 12, 400), "job": rng.choice(["cook", "smith"], 400)}
    >>> y = np.where(X["age"] + 20 * (X["job"] == "cook") + rng.normal(0, 9, 400) > 55, "yes", "no")
    >>> costs = {"yes": {"no": 4}, "no": {"yes": 1}}
    >>> model = DecisionClassifier(SparseAdditiveClassifier(), costs).fit(X, y)
    >>> query = to_sql(model, "people", key="id", dialect="duckdb")
    >>> [line.strip() for line in query.splitlines()[-9:-5]]
    ['SELECT', 'key_1 AS "id",', 'p_1 AS "probability of no",', 'p_2 AS "probability of yes",']
    """
    spoken = dialect_named(dialect)
    parts = raw_parts(model, f"{dialect} SQL", lambda column: can_read(column, spoken))
    keys = [key] if isinstance(key, str) else list(key)
    path = [table] if isinstance(table, str) else list(table)
    if not path:
        raise ValueError("table must name a table.")
    reasons = _checked_reasons(reasons, parts)
    _check_keys(keys, parts.rule, reasons)
    steps = _cells(parts, spoken, path, keys)
    groups = _scores(steps, parts, with_terms=reasons > 0)
    write_probabilities(steps, parts.form)
    write_clip(steps, parts.clip)
    write_prior(steps, parts.rule)
    write_costs(steps, parts.rule)
    if reasons:
        _reasons(steps, parts, groups, reasons)
    final = _final(steps, parts.rule, keys, groups, reasons)
    remark = f"; {spoken.remark}" if spoken.remark else ""
    heading = f"-- scores of a model fitted by laconic {__version__}, in {dialect} SQL{remark}"
    query = "\0".join([heading, "WITH", ",\0".join(steps.done), final, ""])
    return query.replace("\0", "\n")


def to_sql_check(model: Any, table: str | Sequence[str], *, dialect: str = "ansi") -> str:
    """One SELECT that counts, column by column, what the model of :func:`to_sql` cannot read.

    Its columns are ``column``, ``rows``, ``missing`` (NULL, an empty text, or one that the fit took
    for missing), ``unreadable`` (a cell that is no number where the model reads numbers) and
    ``unseen`` (a text that the training rows did not have). Scores are as trustworthy as these
    counts are small. SQLite, DuckDB and PostgreSQL go on at a text that is no number; another
    database may stop with its own error, which names the cell.

    Parameters
    ----------
    model, table, dialect
        As in :func:`to_sql`.

    Returns
    -------
    str
    """
    spoken = dialect_named(dialect)
    parts = raw_parts(model, f"{dialect} SQL", lambda column: can_read(column, spoken))
    path = [table] if isinstance(table, str) else list(table)
    source = ".".join(spoken.identifier(part) for part in path) + f" AS {_SOURCE}"
    made = {name for column in parts.made_columns for name in column.made}
    counts = [
        _column_counts(spoken, parts, name, source) for name in parts.columns if name not in made
    ]
    if parts.made_columns:
        steps = Steps(spoken, _fresh("laconic_", path))
        raw = [f"{_SOURCE}.{spoken.identifier(column.name)}" for column in parts.made_columns]
        gone = numbered("gone", len(raw))
        steps.carry(gone)
        flags = {
            g: f"CASE WHEN {_is_gone(spoken, r, column.missing)} THEN 1 ELSE 0 END"
            for g, r, column in zip(gone, raw, parts.made_columns, strict=True)
        }
        _read_cells(steps, parts, source, flags)
        counts += [
            _made_counts(spoken, parts, column, g, steps.last)
            for column, g in zip(parts.made_columns, gone, strict=True)
        ]
        counts[0] = "WITH\0" + ",\0".join(steps.done) + "\0" + counts[0]
    heading = f"-- cells that a model fitted by laconic {__version__} cannot read, in {dialect} SQL"
    return "\0".join([heading, "\0UNION ALL\0".join(counts), ""]).replace("\0", "\n")


def _is_gone(dialect: Dialect, raw: str, odd: Sequence[str] = ()) -> str:
    """Whether a cell says nothing, as NULL or as a text."""
    texts = ", ".join(str(dialect.compared(own)) for own in ("", *odd))
    return f"{raw} IS NULL OR TRIM({dialect.as_text.format(raw)}) IN ({texts})"


def _column_counts(dialect: Dialect, parts: Parts, name: str, source: str) -> str:
    raw = f"{_SOURCE}.{dialect.identifier(name)}"
    cell = _cell(dialect, parts, name, raw)
    unseen, gone = "0", _is_gone(dialect, raw, parts.missing_texts(name))
    if parts.kind(name) == "categorical":
        texts = [dialect.compared(text) for text in parts.categories(name)]
        known = ", ".join(text for text in texts if text is not None)
        unseen = f"CASE WHEN {gone} THEN 0 WHEN {cell} NOT IN ({known}) THEN 1 ELSE 0 END"
        unseen = unseen if known else "1"
        unread = "0"
    else:
        unread = f"CASE WHEN {gone} THEN 0 WHEN {cell} IS NULL THEN 1 ELSE 0 END"
    columns = {
        dialect.identifier("column"): dialect.text(name),
        dialect.identifier("rows"): "COUNT(*)",
        dialect.identifier("missing"): f"SUM(CASE WHEN {gone} THEN 1 ELSE 0 END)",
        dialect.identifier("unreadable"): f"SUM({unread})",
        dialect.identifier("unseen"): f"SUM({unseen})",
    }
    return Steps.select(columns, source)


def _made_counts(
    dialect: Dialect, parts: Parts, column: ColumnReading, gone: str, source: str
) -> str:
    """Of a column that is read: cells that are there and could not be."""
    seen = next(name for name in column.made if name in parts.columns)
    cell = _own_name(dialect, parts, seen)
    unread = f"SUM(CASE WHEN {gone} = 0 AND {cell} IS NULL THEN 1 ELSE 0 END)"
    heads = ("column", "rows", "missing", "unreadable", "unseen")
    values = (dialect.text(column.name), "COUNT(*)", f"SUM({gone})", unread, "0")
    columns = {dialect.identifier(h): v for h, v in zip(heads, values, strict=True)}
    return Steps.select(columns, source)


def _check_keys(keys: list[str], rule: DecisionRule, reasons: int) -> None:
    written = {*(f"probability of {label}" for label in rule.labels), "decision"}
    written |= {f"reason {r}" for r in range(1, reasons + 1)}
    for name in keys:
        if name in written or keys.count(name) > 1:
            raise ValueError(
                f"key: {shown(name)} would appear twice in the result; rename it in a view."
            )


def _checked_reasons(reasons: int, parts: Parts) -> int:
    if not isinstance(reasons, int) or reasons < 0:
        raise ValueError(f"reasons must be a whole number >= 0, got {reasons!r}.")
    form = parts.form
    if reasons and len(form.terms) * form.n_scores > _MOST_COLUMNS:
        raise NotExportableError(
            f"Reasons of {len(form.terms)} terms by {form.n_scores} scores need more columns than "
            "databases allow; leave reasons out."
        )
    return reasons


def _fresh(prefix: str, taken: Sequence[str]) -> str:
    """``prefix``, made longer until none of the names begins with it, whatever its case."""
    while any(name.lower().startswith(prefix) for name in taken):
        prefix += "_"
    return prefix


def _cells(parts: Parts, dialect: Dialect, path: list[str], keys: list[str]) -> Steps:
    """The first step: every column that the model reads, cleaned, under its own name."""
    steps = Steps(dialect, _fresh("laconic_", path))
    key_names = numbered(_fresh("key", parts.columns), len(keys))
    steps.carry(key_names)
    columns = {
        alias: f"{_SOURCE}.{dialect.identifier(name)}"
        for alias, name in zip(key_names, keys, strict=True)
    }
    source = ".".join(dialect.identifier(part) for part in path) + f" AS {_SOURCE}"
    _read_cells(steps, parts, source, columns)
    return steps


def _read_cells(steps: Steps, parts: Parts, source: str, columns: dict[str, str]) -> None:
    """From the table, and ``columns`` that are handed on, to the cells that the model sees."""
    dialect, made = steps.dialect, {n for column in parts.made_columns for n in column.made}
    chains = []
    for name in parts.columns:
        if name not in made:
            cell = f"{_SOURCE}.{dialect.identifier(name)}"
            chains.append([{_own_name(dialect, parts, name): _cell(dialect, parts, name, cell)}])
    for number, column in enumerate(parts.made_columns, start=1):
        raw = f"{_SOURCE}.{dialect.identifier(column.name)}"
        names = {n: _own_name(dialect, parts, n) for n in column.made if n in parts.columns}
        chains.append(CellReader(dialect, column, str(number)).stages(raw, names))
    for place in range(max(map(len, chains), default=1)):
        own: dict[str, str] = {}
        for chain in chains:
            own |= chain[place] if place < len(chain) else {name: name for name in chain[-1]}
        if place == 0:
            steps.add_body("cells", steps.select((columns | own) or {"nothing": "1"}, source))
        else:
            steps.add("read", own)


def _own_name(dialect: Dialect, parts: Parts, name: str) -> str:
    """A column's name in the steps; SQLite takes even a quoted "true" there for the truth value."""
    if name.lower() in ("true", "false"):
        name = _fresh(name, [other for other in parts.columns if other != name]) + "_"
    return dialect.identifier(name)


def _cell(dialect: Dialect, parts: Parts, name: str, cell: str) -> str:
    """A raw cell as the model reads it: a float or a text, NULL where it is missing."""
    if parts.kind(name) == "categorical":
        known = parts.categories(name)
        return dialect.text_cell(cell, known, parts.spellings(name), parts.missing_words(known))
    odd = [str(dialect.compared(text)) for text in parts.missing_texts(name)]
    if odd:
        said = dialect.as_text.format(cell)
        cell = f"CASE WHEN {said} IN ({', '.join(odd)}) THEN NULL ELSE {cell} END"
    return dialect.number_cell(cell, boolean=parts.kind(name) == "boolean")


Groups = dict[tuple[str, ...], list[int]]


def _scores(steps: Steps, parts: Parts, *, with_terms: bool) -> Groups:
    """The step that sums the terms; returns the terms by the columns they read."""
    form, dialect = parts.form, steps.dialect
    # behind the name of its step, no column can be taken for a word of the language ("true")
    cells = {name: f"{_CELLS}.{_own_name(dialect, parts, name)}" for name in parts.columns}
    writer = TermWriter(dialect, parts, cells)
    texts = [[writer.write(term, k) for k in range(form.n_scores)] for term in form.terms]
    groups: Groups = {}
    for t, term in enumerate(form.terms):
        groups.setdefault(term.columns, []).append(t)
    if with_terms:
        named = {
            f"t_{t + 1}_{k + 1}": text for t, row in enumerate(texts) for k, text in enumerate(row)
        }
        steps.add("terms", named, alias=_CELLS)
        steps.carry(list(named))
        texts = [
            [f"t_{t + 1}_{k + 1}" for k in range(form.n_scores)] for t in range(len(form.terms))
        ]
    sums = {}
    for k, s in enumerate(numbered("s", form.n_scores)):
        start = dialect.to_float(dialect.float(float(form.intercept[k])))
        if writer.whole:
            start = str(int(form.intercept[k]))
        sums[s] = "\0  + ".join([start, *(row[k].replace("\0", "\0  ") for row in texts)])
    steps.add("scores", sums, alias="" if with_terms else _CELLS)
    return groups


def _reasons(steps: Steps, parts: Parts, groups: Groups, n: int) -> None:
    """Steps that pick the groups of terms that speak most for the decision, one after another."""
    rule, dialect = parts.rule, steps.dialect
    places = [str(k + 1) for k in range(rule.n_classes)]
    decided = chosen(rule, places, "0", dialect)
    kept = [*numbered("p", rule.n_classes), *numbered("c", rule.n_classes), "c_least"]
    steps.carry(kept)
    steps.add("decided", {"decided": decided})
    # what the terms say for the decision; the terms themselves end here
    steps.carried = tuple(name for name in steps.carried if not name.startswith("t_"))
    voices = numbered("g", len(groups))
    spoken = {
        g: _towards_decision(members, parts)
        for g, members in zip(voices, groups.values(), strict=True)
    }
    steps.add("voices", spoken)
    zero = dialect.float(0.0)
    for r in range(1, n + 1):
        heard = {g: g for g in voices}
        steps.add("loudest", {**heard, "best": dialect.largest([*voices, zero])})
        lines = [f"WHEN {g} = best THEN {i}" for i, g in enumerate(voices, start=1)]
        pick = "CASE\0  " + "\0  ".join(["WHEN best <= 0 THEN 0", *lines]) + "\0END"
        steps.add("picked", {**heard, f"reason_{r}": pick})
        steps.carry([f"reason_{r}"])
        if r == n:
            break
        silenced = {
            g: f"CASE WHEN reason_{r} = {i} THEN {zero} ELSE {g} END"
            for i, g in enumerate(voices, start=1)
        }
        steps.add("others", silenced)


def _towards_decision(members: list[int], parts: Parts) -> str:
    """What a group of terms adds to the score of the decided class, above the mean class."""
    n = parts.form.n_scores
    by_score = [total([f"t_{t + 1}_{k + 1}" for t in members]) for k in range(n)]
    if n == 1:
        return f"CASE decided WHEN 1 THEN -({by_score[0]}) WHEN 2 THEN {by_score[0]} ELSE 0 END"
    mean = f"({total(by_score)}) / {n}"
    lines = [f"WHEN {k} THEN {own} - {mean}" for k, own in enumerate(by_score, start=1)]
    return "CASE decided\0  " + "\0  ".join(lines) + "\0  ELSE 0\0END"


def _final(steps: Steps, rule: DecisionRule, keys: list[str], groups: Groups, reasons: int) -> str:
    dialect = steps.dialect
    columns = {
        dialect.identifier(name): alias for name, alias in zip(keys, steps.carried, strict=False)
    }
    for label, p in zip(rule.labels, numbered("p", rule.n_classes), strict=True):
        columns[dialect.identifier(f"probability of {label}")] = p
    labels, rejected = _label_texts(rule, dialect)
    columns[dialect.identifier("decision")] = chosen(rule, labels, rejected, dialect)
    for r in range(1, reasons + 1):
        lines = [
            f"WHEN {i} THEN {dialect.text(' and '.join(names))}"
            for i, names in enumerate(groups, start=1)
        ]
        text = f"CASE reason_{r}\0  " + "\0  ".join(lines) + "\0END" if lines else "NULL"
        columns[dialect.identifier(f"reason {r}")] = text
    return steps.select(columns, steps.last)


def _label_texts(rule: DecisionRule, dialect: Dialect) -> tuple[list[str], str]:
    literals = [_literal(label, dialect) for label in uniform_labels(rule)]
    return literals[: rule.n_classes], literals[-1]


def _literal(label: Label, dialect: Dialect) -> str:
    if isinstance(label, str):
        return dialect.text(label)
    if isinstance(label, bool):
        return dialect.truth[0 if label else 1]
    return str(label) if isinstance(label, int) else dialect.float(label)
