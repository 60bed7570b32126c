"""Predictions and reasons for a file, chunk by chunk."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from laconic.core.explanation import Explanation
from laconic.core.forms import AdditiveScore, LineTerm, RulesTerm, SlotTerm, Term, linear_score
from laconic.core.progress import Step
from laconic.data.scan.files import find_files, names_many
from laconic.data.tables.chunks import CHUNK_ROWS, read_chunks, typed
from laconic.data.tables.columns import Table
from laconic.data.tables.files import as_native
from laconic.data.tables.text import TextFormat, name_of
from laconic.decide.estimator import DecisionClassifier, scenario_costs
from laconic.export.atomic import replacing, written
from laconic.job.unlike import Likeness
from laconic.linear.form import LinearScore
from laconic.watching.watch import Counter, Watched, conclude, reference_for


@contextmanager
def _output(path: Path | None) -> Iterator[IO[str]]:
    if path is None:
        written.append("a part of the standard output")
        yield sys.stdout
        return
    with replacing(path) as stream:
        yield stream


def _rows_and_keys(
    model: DecisionClassifier,
    data: str | Path,
    text: TextFormat,
    key: tuple[str, ...],
    chunk_rows: int = CHUNK_ROWS,
) -> Iterator[tuple[Any, list[list[Any]], Any]]:
    """What the model reads of each chunk, the key columns as they stand in the file, and what
    errors cost on its rows, where the model asks for it."""
    schema, by_row = model.estimator_.schema_, model.row_costs_
    kinds = dict(zip(schema.names, schema.kinds, strict=True))
    for path in find_files(data) if names_many(data) else [data]:
        wanted = list(dict.fromkeys([*schema.inputs, *key, *(by_row.names if by_row else ())]))
        for chunk in read_chunks(path, text, columns=wanted, chunk_rows=chunk_rows):
            if schema.reading is None:
                rows: Any = typed(chunk, kinds, name_of(path))
            else:
                rows = {name: as_native(chunk[name]) for name in schema.inputs}
            costs = None
            if by_row is not None:
                costs = by_row.matrix({n: as_native(chunk[n]) for n in by_row.names}, model)
            yield rows, [_as_list(chunk[name]) for name in key], costs


def watch_file(
    model: DecisionClassifier,
    data: str | Path,
    text: TextFormat,
    labels: str | None = None,
    on_step: Callable[[Step], None] = lambda step: None,
) -> Watched:
    """What the rows of a file, of any size, say about a model; see :func:`laconic.watch`."""
    key = () if labels is None else (labels,)
    counter = Counter(model, reference_for(model))
    for rows, keys, _ in _rows_and_keys(model, data, text, key):
        counter.add(rows, np.array(keys[0], dtype=object) if labels is not None else None)
        on_step(Step(f"{counter.n_rows:,} rows watched", 0.0))
    return conclude(counter)


def _refuse_twice(names: list[str]) -> None:
    """A name that would stand twice in the output: two keys, or a key called like a result."""
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ValueError(
            f"--key {twice[0]}: the output would have two columns of this name; rename the column "
            "of the table, or leave it out."
        )


def _text_line(cells: list[Any]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()


def _quoted(values: list[Any]) -> dict[Any, str]:
    """Labels as CSV cells."""
    return {value: _text_line([value]).rstrip("\n") for value in values}


def write_predictions(
    model: DecisionClassifier,
    data: str | Path,
    out: Path | None,
    text: TextFormat,
    key: tuple[str, ...] = (),
    on_step: Callable[[Step], None] = lambda step: None,
    reasons: Reasons | None = None,
    scenario: str | None = None,
) -> Likeness:
    """One line for each row: keys, a probability by class, the decision, reasons where asked for.

    ``scenario`` names other costs that the model was fitted with.

    Returns how the rows compare with those that the model was measured on.
    """
    labels = [*model.classes_.tolist()]
    if model.reject_cost is not None:
        labels.append(model.reject_label_)
    said = _quoted(labels)
    other = None if scenario is None else scenario_costs(model, scenario)
    seen = Likeness(getattr(model, "reference_", None))
    heads = [*key, *(f"probability of {name}" for name in model.classes_), "decision"]
    heads += reasons.heads() if reasons is not None else []
    _refuse_twice(heads)
    with _output(out) as stream:
        stream.write(_text_line(heads))
        for rows, keys, costs in _rows_and_keys(model, data, text, key):
            table = model.estimator_._read_rows(rows)
            seen.add(table)
            proba, decided = decide(model, table, costs if other is None else other)
            columns = [list(map(repr, column)) for column in proba.T.tolist()]
            columns.append([said[d] for d in decided.tolist()])
            if reasons is not None:
                sentences = reasons.of_rows(model, table, decided)
                columns.append([_text_line(cells).rstrip("\n") for cells in sentences])
            lines = zip(*columns, strict=True)
            if key:
                own = [_text_line(list(cells)).rstrip("\n") for cells in zip(*keys, strict=True)]
                stream.write(
                    "".join([f"{k},{','.join(c)}\n" for k, c in zip(own, lines, strict=True)])
                )
            else:
                stream.write("".join([",".join(cells) + "\n" for cells in lines]))
            on_step(Step(f"{seen.n_rows:,} rows written", 0.0))
    return seen


def decide(
    model: DecisionClassifier, rows: Any, other_costs: Any = None
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Probabilities and decisions with one pass over the form."""
    from laconic.core.decisions import expected_costs

    proba = model.predict_proba(rows)
    costs = expected_costs(proba, model.rule_costs_ if other_costs is None else other_costs)
    decided: NDArray[Any] = model.classes_[costs.argmin(axis=1)]
    if model.rule_reject_ is not None:
        decided = decided.astype(object)
        decided[costs.min(axis=1) > model.rule_reject_] = model.reject_label_
    return proba, decided


def _as_list(column: Any) -> list[Any]:
    cells = column.to_list() if hasattr(column, "to_list") else list(column)
    return ["" if cell is None or cell != cell else cell for cell in cells]


def additive_of(model: DecisionClassifier) -> AdditiveScore:
    """The model as a sum of terms, or one sentence why it is none."""
    form = model.estimator_.form_
    if isinstance(form, AdditiveScore):
        return form
    if isinstance(form, LinearScore):
        names = model.estimator_.schema_.names
        return linear_score(form.classes, names, form.coef, form.intercept, form.link)
    if hasattr(model, "explain"):
        raise ValueError(
            f"A {model.estimator_.family_} has no list of terms; name the rows to explain."
        )
    raise _without_reasons(model)


def _without_reasons(model: DecisionClassifier) -> ValueError:
    family = model.estimator_.family_
    if getattr(model.estimator_, "decides", False):
        return ValueError(
            f"A {family} decides by the profile of a row and not by a score, so that no column has "
            "a share in it; the report lists the profiles, and fit --only additive gives a model "
            "with reasons."
        )
    return ValueError(
        f"A {family} is no sum of terms, and its decisions have no exact reasons; fit --only "
        "additive gives a model that has."
    )


@dataclass(frozen=True)
class Reasons:
    """Reasons in words: how many, in which language, against which rows, for which class.

    Two classes: reasons are about ``positive``, called ``name``. More: about the class decided.
    """

    many: int = 3
    language: str = "en"
    against: Explanation | None = None
    positive: Any = None
    name: str | None = None
    which: Literal["both", "for"] = "both"

    def heads(self) -> list[str]:
        return [f"reason {k}" for k in range(1, self.many + 1)]

    def of_rows(self, model: DecisionClassifier, table: Table, decided: NDArray[Any]) -> Any:
        """The reasons of each row, as many cells for each."""
        why = explained(model, table)
        if self.against is None and why.average is None:
            raise ValueError(
                "The model file holds no average row to give reasons against; name rows with "
                "--against FILE."
            )
        relative = why.against(self.against)
        binary = len(model.classes_) == 2
        groups = [self.positive] if binary else list(dict.fromkeys(decided.tolist()))
        found: list[list[str]] = [[]] * table.n_rows
        for output in groups:
            here = np.arange(len(decided)) if binary else np.flatnonzero(decided == output)
            known = output if output in model.classes_.tolist() else None
            said = relative[here].sentences(
                self.many, language=self.language, output=known, which=self.which,
                name=self.name if binary else None,
            )  # fmt: skip
            for i, own in zip(here.tolist(), said, strict=True):
                found[i] = own + [""] * (self.many - len(own))
        return found


def explained(model: DecisionClassifier, rows: Any) -> Explanation:
    """The explanation of rows, or one sentence why there is none."""
    if not hasattr(model, "explain"):
        raise _without_reasons(model)
    return model.explain(rows)


def explained_file(model: DecisionClassifier, data: str | Path, text: TextFormat) -> Explanation:
    """The rows of a file to give reasons against: its mean row, so that any number will do."""
    blocks = [explained(model, rows) for rows, *_ in _rows_and_keys(model, data, text, ())]
    if not sum(map(len, blocks)):
        raise ValueError(f"--against {name_of(data)}: there are no rows.")
    parts = np.concatenate([why.contributions for why in blocks])
    return replace(blocks[0], contributions=parts)


def write_reasons(
    model: DecisionClassifier,
    data: str | Path,
    out: Path | None,
    text: TextFormat,
    key: tuple[str, ...] = (),
    n_reasons: int = 3,
    positive: Any = None,
    words: Reasons | None = None,
) -> None:
    """Decision, score and the variables that move it most, for every row; in words where asked.

    With two classes the score is that of ``positive`` (default: the last class); with more, that
    of the decision.
    """
    if n_reasons < 1:
        raise ValueError("--reasons must be at least 1.")
    heads = [*(key or ("row",)), "decision", "score"]
    numbers = [f"{w} {k}" for k in range(1, n_reasons + 1) for w in ("reason", "value", "adds")]
    heads += numbers if words is None else words.heads()
    _refuse_twice(heads)
    number = 0
    with _output(out) as stream:
        stream.write(_text_line(heads))
        for rows, keys, costs in _rows_and_keys(model, data, text, key, chunk_rows=16_384):
            table = model.estimator_._read_rows(rows)
            _, decided = decide(model, table, costs)
            why = explained(model, table)
            moved, score = _moved(why, decided, positive)
            sentences = words.of_rows(model, table, decided) if words is not None else None
            order = np.argsort(-np.abs(moved), axis=1, kind="stable")[:, :n_reasons]
            for i, places in enumerate(order):
                number += 1
                own = [column[i] for column in keys] if key else [number]
                cells: list[Any] = [*own, decided[i], repr(float(score[i]))]
                if sentences is None:
                    values = why.parts(i)
                    for v in places:
                        cells += [why.names[v], values[v], repr(float(moved[i, v]))]
                    cells += [""] * (3 * (n_reasons - len(places)))
                else:
                    cells += sentences[i]
                stream.write(_text_line(cells))


def _moved(
    why: Explanation, decided: NDArray[Any], positive: Any
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Contributions (rows, variables) to the score told: the positive class's or the decided."""
    if len(why.baseline) == 1:
        first = positive is not None and str(why.classes[0]) == str(positive)
        sign = -1.0 if first else 1.0
        return sign * why.contributions[:, :, 0], sign * why.score
    known = {label: k for k, label in enumerate(why.classes.tolist())}
    best = why.score.argmax(axis=1)
    outputs = np.array([known.get(d, int(best[i])) for i, d in enumerate(decided.tolist())])
    rows = np.arange(len(outputs))
    return why.contributions[rows, :, outputs], why.score[rows, outputs]


def towards(form: AdditiveScore, positive: Any) -> AdditiveScore:
    """The same score with its sign turned, when the positive one of two classes is the first."""
    if form.n_scores > 1 or positive is None or str(form.classes[0]) != str(positive):
        return form
    return form.reversed()


def model_in_words(model: DecisionClassifier, positive: Any = None) -> str:
    """Every term with its slots and what they add: the whole model as text."""
    form = towards(additive_of(model), positive)
    heads = [str(form.classes[-1])] if form.n_scores == 1 else [str(c) for c in form.classes]
    lines = [
        f"{model.estimator_.family_}: score of {', '.join(heads)}",
        f"intercept {_values(form.intercept)}",
    ]
    for term in form.terms:
        lines.append("")
        lines.append(" x ".join(term.columns))
        lines += [f"  {label}: {_values(values)}" for label, values in _slots(term)]
    return "\n".join(lines) + "\n"


def _values(values: NDArray[np.float64]) -> str:
    return ", ".join(f"{value:+.4f}" for value in np.round(np.atleast_1d(values), 4) + 0.0)


def _slots(term: Term) -> Iterator[tuple[str, NDArray[np.float64]]]:
    if isinstance(term, LineTerm):
        origin = f" (x - {term.origin:.6g})" if term.origin else " x"
        yield "times" + origin, term.slope
        if term.missing is not None and term.missing.any():
            yield "missing", term.missing
    elif isinstance(term, RulesTerm):
        yield from _paths(term)
    elif isinstance(term, SlotTerm) and len(term.axes) == 1:
        yield from zip(term.axes[0].labels(), term.values, strict=True)
    else:
        first, second = (axis.labels() for axis in term.axes)
        for i, a in enumerate(first):
            for j, b in enumerate(second):
                yield f"{a} & {b}", term.values[i, j]


def _paths(term: RulesTerm) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """The conditions that lead to each leaf: the slots that remain on every column it asks."""
    stack: list[tuple[int, dict[int, tuple[int, int]]]] = [(0, {})]
    while stack:
        t, limits = stack.pop()
        c = int(term.column[t])
        if c < 0:
            said = [_span(term, column, span) for column, span in sorted(limits.items())]
            yield " & ".join(said) or "all", term.values[t]
            continue
        low, high = limits.get(c, (int(term.ranks[c].min()), int(term.ranks[c].max())))
        cut = int(term.threshold[t])
        stack.append((int(term.right[t]), {**limits, c: (max(low, cut + 1), high)}))
        stack.append((int(term.left[t]), {**limits, c: (low, min(high, cut))}))


def _span(term: RulesTerm, c: int, span: tuple[int, int]) -> str:
    inside = np.flatnonzero((term.ranks[c] >= span[0]) & (term.ranks[c] <= span[1]))
    labels = [term.axes[c].labels()[slot] for slot in inside]
    shown = labels if len(labels) <= 4 else [labels[0], "...", labels[-1]]
    return f"{term.columns[c]}: {' or '.join(shown)}"
