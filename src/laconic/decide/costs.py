"""What decisions cost: the mean cost of predictions, baselines, a scorer, and costs of each row.

How costs may be written (rows = true class, columns = decision) is described in
:func:`laconic.core.decisions.cost_matrix`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length, column_or_1d

from laconic._typing import Floats
from laconic.core.decisions import (
    class_codes,
    class_names_of,
    cost_matrix,
    decision_threshold,
    expected_costs,
    gray_zone,
    reject_zone,
)
from laconic.data.reading.asked import Asked
from laconic.data.reading.column import ColumnReading
from laconic.data.reading.reading import Reading, read_column
from laconic.data.tables.columns import shown

__all__ = [
    "baseline_costs",
    "cost_matrix",
    "cost_scorer",
    "decision_threshold",
    "expected_cost",
    "gray_zone",
    "reject_zone",
]


def expected_cost(
    y: ArrayLike,
    decisions: ArrayLike,
    costs: Any,
    *,
    positive: Any = None,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    reject_label: Any = None,
    reject_cost: float | None = None,
) -> float:
    """Mean cost per row of decisions that were taken.

    Parameters
    ----------
    y : array-like of shape (n,)
        True classes.
    decisions : array-like of shape (n,)
    costs : mapping, frame or array-like
        One cost matrix or per-row costs; see :func:`~laconic.core.decisions.cost_matrix`.
    positive : class, optional
        The class that "fp" and "fn" are about; 0/1, -1/+1, False/True and no/yes need none.
    labels : array-like of shape (K,), optional
        The classes in the order of the cost matrix. By default those that ``costs`` names, else
        the sorted values of ``y`` and ``decisions``.
    sample_weight : array-like of shape (n,), optional
    reject_label : object, optional
        The decision that stands for an abstention.
    reject_cost : float, optional
        What an abstention costs; needed when there is one.

    Returns
    -------
    float

    Examples
    --------
    >>> expected_cost([0, 0, 1, 1], [0, 1, 0, 1], {"fp": 1, "fn": 10})
    2.75
    >>> expected_cost(["a", "b"], ["b", "?"], None, reject_label="?", reject_cost=0.2)
    0.6
    """
    cost = cost_of_rows(
        y,
        decisions,
        costs,
        positive=positive,
        labels=labels,
        reject_label=reject_label,
        reject_cost=reject_cost,
    )
    return float(np.average(cost, weights=row_weights(sample_weight, cost)))


def cost_of_rows(
    y: ArrayLike,
    decisions: ArrayLike,
    costs: Any,
    *,
    positive: Any = None,
    labels: ArrayLike | None = None,
    reject_label: Any = None,
    reject_cost: float | None = None,
) -> Floats:
    """What each row's decision costs; the parameters are those of :func:`expected_cost`."""
    truth, taken = column_or_1d(y), column_or_1d(decisions)
    check_consistent_length(truth, taken)
    abstained = _abstentions(taken, reject_label)
    classes = labels_of(truth, costs, labels, also=taken[~abstained])
    matrix = cost_matrix(costs, classes, n_rows=len(truth), positive=positive)
    if abstained.any() and reject_cost is None:
        raise ValueError(
            f"{int(abstained.sum())} decisions are abstentions: say what one costs with "
            "reject_cost=..."
        )
    cost = np.full(len(truth), np.nan if reject_cost is None else float(reject_cost))
    rows = np.flatnonzero(~abstained)
    at = class_codes(truth[rows], classes, "y"), class_codes(taken[rows], classes, "decisions")
    cost[rows] = matrix[at] if matrix.ndim == 2 else matrix[(rows, *at)]
    return cost


def baseline_costs(
    y: ArrayLike,
    costs: Any,
    *,
    positive: Any = None,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> dict[Any, float]:
    """Mean cost of always deciding the same class, for each class: what any model must beat.

    Examples
    --------
    >>> baseline_costs([0, 0, 0, 1], {"fp": 1, "fn": 10})
    {0: 2.5, 1: 0.75}
    """
    truth = column_or_1d(y)
    classes = labels_of(truth, costs, labels)
    matrix = cost_matrix(costs, classes, n_rows=len(truth), positive=positive)
    true_codes = class_codes(truth, classes, "y")
    rows = matrix[true_codes] if matrix.ndim == 2 else matrix[np.arange(len(truth)), true_codes]
    means = np.average(rows, axis=0, weights=row_weights(sample_weight, truth))
    return dict(zip(classes.tolist(), means.tolist(), strict=True))


def cost_scorer(
    costs: Any = None,
    *,
    positive: Any = None,
    labels: ArrayLike | None = None,
    response_method: str = "predict",
    reject_label: Any = None,
    reject_cost: float | None = None,
) -> Any:
    """A scorer for ``GridSearchCV`` and ``cross_val_score``: minus the mean cost.

    Parameters
    ----------
    costs : mapping, frame or array-like, optional
        One cost matrix. Leave it out to give per-row costs as routed metadata:
        ``cost_scorer().set_score_request(costs=True)`` and ``search.fit(X, y, costs=costs)``, with
        costs of shape n x K x K, or a frame with the columns ``fp`` and ``fn``.
    positive : class, optional
        As in :func:`expected_cost`.
    labels : array-like of shape (K,), optional
        The classes in the order of the cost matrix. Needed when a fold may lack a class and
        ``costs`` does not name the classes.
    response_method : {"predict", "predict_proba"}, default="predict"
        Score the decisions of ``predict``, or the decisions of least expected cost under the
        probabilities of ``predict_proba``: the second judges a plain probability model by the
        decisions it will serve, also under per-row costs.
    reject_label, reject_cost : optional
        As in :func:`expected_cost`, for ``response_method="predict"``.

    Returns
    -------
    scorer
        A scikit-learn scorer; greater (closer to zero) is better.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> scorer = cost_scorer({"fp": 5, "fn": 1}, response_method="predict_proba")
    >>> bool((cross_val_score(GaussianNB(), X, y, scoring=scorer) > -0.4).all())
    True
    """
    from sklearn.metrics import make_scorer

    fixed = {"costs": costs, "labels": labels, "positive": positive}
    if response_method == "predict":
        fixed |= {"reject_label": reject_label, "reject_cost": reject_cost}
        judge: Callable[..., float] = _cost_of_predictions
    elif response_method == "predict_proba":
        judge = _cost_of_probabilities
    else:
        raise ValueError(
            f"response_method must be 'predict' or 'predict_proba', got {response_method!r}."
        )
    given = {name: value for name, value in fixed.items() if value is not None}
    return make_scorer(judge, greater_is_better=False, response_method=response_method, **given)


def _cost_of_predictions(
    y_true: ArrayLike, y_pred: ArrayLike, costs: Any = None, **options: Any
) -> float:
    return expected_cost(y_true, y_pred, costs, **options)


def _cost_of_probabilities(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    costs: Any = None,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    positive: Any = None,
) -> float:
    truth, proba = column_or_1d(y_true), np.asarray(y_proba, dtype=np.float64)
    if proba.ndim == 1:  # two classes: scorers hand over the probability of the last one
        proba = np.column_stack([1.0 - proba, proba])
    classes = labels_of(truth, costs, labels)
    if len(classes) != proba.shape[1]:
        raise ValueError(
            f"The model gives probabilities of {proba.shape[1]} classes, the costs and y name "
            f"{len(classes)}; give all of them as labels=..."
        )
    matrix = cost_matrix(costs, classes, n_rows=len(truth), positive=positive)
    taken = classes[expected_costs(proba, matrix).argmin(axis=1)]
    return expected_cost(truth, taken, matrix, labels=classes, sample_weight=sample_weight)


def labels_of(
    y: NDArray[Any], costs: Any, labels: ArrayLike | None, also: NDArray[Any] | None = None
) -> NDArray[Any]:
    """The classes: as told, else as named by the costs, else those that are there."""
    if labels is not None:
        return np.asarray(labels)
    seen = np.unique(y if also is None or not len(also) else np.concatenate([y, also]))
    named = class_names_of(costs)
    if named is None:
        return seen
    texts = {str(label): label for label in seen.tolist()}
    # costs read from a file name the class 1 "1"; the rows know better
    return np.unique(np.array([texts.get(str(name), name) for name in named.tolist()]))


def _abstentions(taken: NDArray[Any], reject_label: Any) -> NDArray[np.bool_]:
    if reject_label is None:
        return np.zeros(len(taken), dtype=bool)
    return np.array([value == reject_label for value in taken.tolist()], dtype=bool)


def row_weights(sample_weight: ArrayLike | None, rows: NDArray[Any]) -> Floats:
    """Checked weights, one for each row; ones by default."""
    if sample_weight is None:
        return np.ones(len(rows))
    weight: Floats = column_or_1d(np.asarray(sample_weight, dtype=np.float64))
    check_consistent_length(rows, weight)
    if not (weight >= 0).all() or not weight.any():
        raise ValueError("sample_weight must be >= 0 with at least one positive number.")
    return weight


@dataclass(frozen=True)
class RowCosts:
    """Which column says what a false alarm ("fp") or a miss ("fn") costs, and how it is read.

    >>> costs = RowCosts.learn({"fn": "amount"}, {"amount": ["1.250,00 €", "80,50 €", "9,00 €"]})
    >>> costs.values({"amount": ["2.000,00 €"]})
    {'fn': array([2000.])}
    """

    columns: Mapping[str, ColumnReading]

    @staticmethod
    def learn(columns: Mapping[str, str], X: Any, reading: Reading | None = None) -> RowCosts:
        """From the rows of a fit; ``reading`` says how their columns are read, where it is known.

        A column that holds no numbers is refused.
        """
        known = {} if reading is None else {column.name: column for column in reading.columns}
        found = {}
        for error, name in columns.items():
            own = known.get(name)
            if own is None or own.kind != "number":
                own = Reading.learn({name: X[name]}, Asked(kinds={name: "number"})).columns[0]
            found[error] = own
        return RowCosts(found)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns.values())

    def values(self, X: Any) -> dict[str, Floats]:
        """The costs of some rows; each must be there and at least 0."""
        found = {}
        for error, column in self.columns.items():
            own = np.asarray(read_column(column, X[column.name])[0].values, dtype=np.float64)
            bad = ~(own >= 0)
            if bad.any():
                row = int(np.flatnonzero(bad)[0]) + 1
                what = "missing" if np.isnan(own[row - 1]) else f"{own[row - 1]:g}"
                raise ValueError(
                    f"Column {shown(column.name)} says what errors cost and is {what} in row {row}"
                    f" ({int(bad.sum())} such rows); give an amount of at least 0."
                )
            found[error] = own
        return found

    def matrix(self, X: Any, model: Any) -> Floats:
        """Costs of the rows, n x K x K; what has no column costs as in the model."""
        values = self.values(X)
        place = model.classes_.tolist().index(model.positive_)
        standing = {
            "fp": model.cost_matrix_[1 - place, place], "fn": model.cost_matrix_[place, 1 - place]
        }  # fmt: skip
        n_rows = len(next(iter(values.values())))
        each = {error: np.broadcast_to(cost, n_rows) for error, cost in (standing | values).items()}
        return cost_matrix(each, model.classes_, n_rows=n_rows, positive=model.positive_)

    def to_dict(self) -> dict[str, Any]:
        return {error: column.to_dict() for error, column in self.columns.items()}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> RowCosts:
        if not data or not set(data) <= {"fp", "fn"}:
            raise ValueError("costs of rows are those of fp and fn")
        columns = {error: ColumnReading.from_dict(column) for error, column in data.items()}
        if any(column.kind != "number" for column in columns.values()):
            raise ValueError("costs of rows must be numbers")
        return RowCosts(columns)
