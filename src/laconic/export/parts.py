"""What every export starts from: the columns, the fitted form and the decision rule of a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from laconic._typing import Floats
from laconic.core.decisions import correct_prior, expected_costs
from laconic.core.forms import AdditiveScore, LineTerm, Term
from laconic.data.reading.column import ColumnReading
from laconic.data.reading.reading import Reading
from laconic.data.reading.words import YES_NO
from laconic.data.tables.cells import MISSING_TEXTS
from laconic.data.tables.columns import Schema, Table, shown
from laconic.decide.estimator import DecisionClassifier
from laconic.linear.form import LinearScore

Label = str | bool | int | float


class NotExportableError(ValueError):
    """The model cannot leave Python in the form asked for; the sentence says why."""


@dataclass(frozen=True)
class DecisionRule:
    """From the probabilities of a form to the decision, as ``DecisionClassifier`` does it."""

    labels: tuple[Label, ...]
    costs: Floats
    train_prior: Floats | None
    prior: Floats | None
    reject_cost: float | None
    reject_label: Label | None

    @property
    def n_classes(self) -> int:
        return len(self.labels)

    @property
    def prior_ratio(self) -> Floats | None:
        """What the probabilities are multiplied by before they are normalised again."""
        if self.prior is None:
            return None
        assert self.train_prior is not None
        ratio = np.divide(
            self.prior, self.train_prior, out=np.zeros(self.n_classes), where=self.train_prior > 0
        )
        return np.asarray(ratio / ratio.max())

    def corrected(self, proba: Floats) -> Floats:
        """Probabilities under the class mix of deployment, (rows, classes)."""
        if self.prior is None:
            return proba
        return correct_prior(proba, self.train_prior, self.prior)

    def decide(self, corrected: Floats) -> NDArray[np.int64]:
        """Position of the class decided for each row; -1 where it abstains."""
        costs = expected_costs(corrected, self.costs)
        chosen = costs.argmin(axis=1)
        if self.reject_cost is not None:
            chosen[costs.min(axis=1) > self.reject_cost] = -1
        return np.asarray(chosen)


@dataclass(frozen=True)
class Parts:
    """A model taken apart: columns, then scores, then probabilities, then decisions.

    ``clip`` bounds the probability of the last of two classes, before the class mix is corrected.
    """

    schema: Schema
    form: AdditiveScore
    rule: DecisionRule
    clip: tuple[float, float] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the model reads, in the order of the schema."""
        read = set(self.form.columns)
        return tuple(name for name in self.schema.names if name in read)

    def kind(self, name: str) -> str:
        return self.schema.kinds[self.schema.names.index(name)]

    def categories(self, name: str) -> tuple[str, ...]:
        return self.schema.categories[self.schema.names.index(name)] or ()

    def proba(self, table: Table) -> Floats:
        """What ``predict_proba`` gives, (rows, classes)."""
        return self.rule.corrected(self.clipped(self.form.proba(table)))

    def clipped(self, proba: Floats) -> Floats:
        if self.clip is None:
            return proba
        high = np.clip(proba[:, 1], *self.clip)
        return np.column_stack([1.0 - high, high])

    def missing_words(self, known: Sequence[str]) -> tuple[str, ...]:
        """Texts that a table read from a file takes for missing in every column."""
        read = isinstance(self.schema.reading, Reading)
        return tuple(sorted(MISSING_TEXTS - {*known, ""})) if read else ()

    def missing_texts(self, name: str) -> tuple[str, ...]:
        """Odd texts among the numbers of a column, which the fit took for missing."""
        reading = self.schema.reading
        columns = reading.columns if isinstance(reading, Reading) else ()
        return next((column.missing for column in columns if column.name == name), ())

    @property
    def made_columns(self) -> tuple[ColumnReading, ...]:
        """The columns of the table whose cells must be read before the model sees them."""
        reading = self.schema.reading
        columns = reading.columns if isinstance(reading, Reading) else ()
        wanted = set(self.columns)
        return tuple(c for c in columns if wanted & set(c.made) and not as_it_stands(c))

    def spellings(self, name: str) -> tuple[tuple[str, str], ...]:
        """Words for yes and no in small letters, and the category that each of them means."""
        reading = self.schema.reading
        for column in reading.columns if isinstance(reading, Reading) else ():
            if column.name == name and column.kind == "yes/no":
                yes = dict.fromkeys(["1", *(word for word, _ in YES_NO)], column.yes)
                no = dict.fromkeys(["0", *(word for _, word in YES_NO)], column.no)
                return tuple((yes | no).items())
        return ()


def uniform_labels(rule: DecisionRule) -> list[Label]:
    """The labels, and that of an abstention last, all of one type: texts where they are mixed."""
    labels = [*rule.labels] if rule.reject_label is None else [*rule.labels, rule.reject_label]
    types = {type(label) for label in labels}
    if str in types or (bool in types and len(types) > 1):
        return [str(label) for label in labels]
    return [float(label) for label in labels] if float in types else labels


def as_it_stands(column: ColumnReading) -> bool:
    """Whether the cells of a column are what the model sees: no dates, no amounts for people."""
    stands = column.made == (column.name,) and column.kind not in ("time", "duration")
    return stands and column.plain


def raw_parts(
    model: Any, where: str, reads: Callable[[ColumnReading], bool] = lambda column: False
) -> Parts:
    """:func:`parts_of` for an export that reads the table as it comes, as SQL and ONNX do.

    Numbers, categories and yes and no stand there as the model reads them; what is made of dates,
    durations and amounts written for people is refused by its name unless the export ``reads`` it.
    """
    parts = parts_of(model)
    reading = parts.schema.reading
    for column in reading.columns if isinstance(reading, Reading) else ():
        seen = set(column.made) & set(parts.columns)
        if seen and not as_it_stands(column) and not reads(column):
            raise NotExportableError(
                f"Column {shown(column.name)} was read as {column.said.partition(';')[0]}, which "
                f"{where} cannot repeat; write the numbers in a column of their own and fit on it, "
                "or leave the column out (--drop)."
            )
    return parts


def parts_of(model: Any) -> Parts:
    """Take a fitted model apart, or say why it cannot be exported.

    Parameters
    ----------
    model : DecisionClassifier, or a model whose ``decision_`` or ``estimator_`` is one
        Fitted. The model it wraps must have ``schema_`` and an additive ``form_``.

    Returns
    -------
    Parts

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from laconic import DecisionClassifier, WeightedNaiveBayes
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DecisionClassifier(WeightedNaiveBayes(random_state=0), reject_cost=0.1).fit(X, y)
    >>> parts = parts_of(model)
    >>> bool((parts.proba(parts.schema.apply(X)) == model.predict_proba(X)).all())
    True
    """
    decision = decision_layer(model)
    inner = decision.estimator_
    while isinstance(inner, FrozenEstimator):
        inner = inner.estimator
    form, clip = _additive_form(inner)
    schema: Schema = inner.schema_
    rule = _rule_of(decision)
    if tuple(_plain(c) for c in form.classes) != rule.labels:
        raise NotExportableError(
            f"The form knows the classes {list(form.classes)}, the decision layer "
            f"{list(rule.labels)}; fit them together."
        )
    for term in form.terms:
        _check_columns(term, schema)
    return Parts(schema, form, rule, clip)


def decision_layer(model: Any) -> DecisionClassifier:
    """The fitted DecisionClassifier that ``model`` is or leads to."""
    for found in (model, getattr(model, "decision_", None), getattr(model, "estimator_", None)):
        if isinstance(found, DecisionClassifier):
            if not hasattr(found, "estimator_"):
                raise NotExportableError("The model is not fitted; call fit before an export.")
            return found
    name = type(model).__name__
    raise NotExportableError(
        f"An export needs the decision with the model, and {name} has no decision layer; use "
        f"DecisionClassifier({name}(...), costs=...), with prefit=True for a fitted model."
    )


def _additive_form(inner: Any) -> tuple[AdditiveScore, tuple[float, float] | None]:
    name = type(inner).__name__
    if isinstance(inner, Pipeline):
        raise NotExportableError(
            "The decision layer wraps a pipeline, whose steps change the columns; put the decision "
            "layer at the end of the pipeline and export the pipeline with skl2onnx."
        )
    if isinstance(inner, DecisionClassifier):
        raise NotExportableError("The model has two decision layers; export the inner one.")
    try:
        form = getattr(inner, "linear_form_", None)
        form = getattr(inner, "forest_form_", None) if form is None else form
        form = getattr(inner, "form_", None) if form is None else form
    except ValueError as error:  # the model says itself why it has none
        raise NotExportableError(f"{name} cannot be exported: {error}") from error
    if form is None or not hasattr(inner, "schema_"):
        raise NotExportableError(
            f"{name} has no fitted form that can be written outside Python: it is not a sum of "
            "terms of one or two columns."
        )
    if isinstance(form, LinearScore):
        return form.additive(inner.schema_.names), form.clip
    if not isinstance(form, AdditiveScore):
        raise NotExportableError(
            f"The fitted form of {name} is a {type(form).__name__}; only sums of terms of one or "
            "two columns can be exported."
        )
    if form.link == "identity":
        raise NotExportableError(
            f"The scores of {name} have no probabilities (link 'identity'), which an export needs."
        )
    return form, None


def _check_columns(term: Term, schema: Schema) -> None:
    for name in term.columns:
        if name not in schema.names:
            raise NotExportableError(f"The form reads {shown(name)}, which is no column at fit.")
    own = schema.kinds[schema.names.index(term.columns[0])]
    if isinstance(term, LineTerm) and own == "categorical":
        raise NotExportableError(
            f"Column {shown(term.column)} is categorical and cannot have a slope."
        )


def _rule_of(decision: DecisionClassifier) -> DecisionRule:
    if decision.row_costs_ is not None:
        names = " and ".join(map(shown, decision.row_costs_.names))
        raise NotExportableError(
            f"What errors cost stands in column {names}, row by row: only `laconic predict` and "
            "predict(X, costs=...) decide so. Fit with --cost for an export."
        )
    rejects = decision.reject_cost is not None
    return DecisionRule(
        labels=tuple(_plain(label) for label in decision.classes_),
        costs=np.asarray(decision.rule_costs_, dtype=np.float64),
        train_prior=decision.train_prior_,
        prior=decision.prior_,
        reject_cost=float(decision.rule_reject_) if rejects else None,  # type: ignore[arg-type]
        reject_label=_plain(decision.reject_label_) if rejects else None,
    )


def _plain(label: Any) -> Label:
    value = label.item() if isinstance(label, np.generic) else label
    if not isinstance(value, str | bool | int | float):
        raise NotExportableError(
            f"The class {value!r} is a {type(value).__name__}; an export needs classes that are "
            "texts or numbers."
        )
    return value
