"""What the two naive Bayes classifiers share: the encoder before, the predictions after."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from laconic.criteria.modl import LN2
from laconic.criteria.weighted_bayes import (
    LogTables,
    shapley_importances,
    variable_costs,
)
from laconic.data.column_kinds import shown
from laconic.data.source import Source
from laconic.estimators.bayes_score import (
    BayesScore,
    Explanation,
    code_matrix,
    explain_rows,
)
from laconic.estimators.contract import Accepts, TableClassifier
from laconic.estimators.form_builders import bayes_form
from laconic.estimators.modl_encoder import ModlEncoder
from laconic.estimators.partition import Partition
from laconic.solvers.coded_rows import CodedRows

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Prepared:
    """Informative variables, the training rows as their codes and their costs."""

    partitions: list[Partition]
    places: NDArray[np.int64]
    coded: Source
    tables: LogTables
    preparation: Floats
    selection: Floats
    total: float

    @property
    def rows(self) -> CodedRows:
        return CodedRows(self.coded, self.tables)

    @property
    def n_rows(self) -> int:
        return self.coded.n_rows


def prepare(
    partitions: Mapping[str, Partition],
    prior: str,
    class_totals: Floats,
    coded: Callable[[list[Partition]], Source],
) -> Prepared:
    """Codes and log tables of the variables that say something of the class.

    ``coded`` gives the rows as the codes of some partitions.
    """
    every = list(partitions.values())
    places = np.array([k for k, p in enumerate(every) if p.informative], dtype=np.int64)
    kept = [every[k] for k in places]
    construction = np.array([p.construction_cost for p in kept], dtype=np.float64)
    # under the granular prior the construction cost is ln 2 + what naming the variable costs
    selection = construction - LN2 if prior == "granular" else construction + math.log(len(every))
    return Prepared(
        kept,
        places,
        coded(kept),
        LogTables.of([p.class_weights for p in kept], class_totals),
        np.array([p.preparation_cost for p in kept], dtype=np.float64),
        selection,
        float(class_totals.sum()),
    )


_BUILT = ("pairs", "trees")


class CodedBayes(TableClassifier):
    """Encodes columns by MODL partitions; predicts from ``score_``, a :class:`BayesScore`."""

    _accepts = Accepts(scan=True)

    encoder: Any
    n_jobs: int | None
    random_state: Any

    def _can_scan(self) -> bool:
        built = [getattr(made, name, 0) for made in (self, self.encoder) for name in _BUILT]
        return not any(built) and getattr(self, "optimizer", "auto") == "auto"

    def _make_encoder(self) -> ModlEncoder:
        if self.encoder is None:
            made = ModlEncoder(n_jobs=self.n_jobs, random_state=self.random_state)
        elif isinstance(self.encoder, ModlEncoder):
            made = clone(self.encoder)
        else:
            raise TypeError(
                f"encoder must be a ModlEncoder or None, got {type(self.encoder).__name__}; set "
                "its parameters, not its class."
            )
        for name in _BUILT:
            if getattr(self, name, 0):
                made.set_params(**{name: getattr(self, name)})
        return made

    def _prepare(self, rows: Any) -> Prepared:
        self.encoder_ = self._make_encoder().fit_rows(rows, self.schema_, self.classes_)

        def coded(kept: list[Partition]) -> Source:
            return rows.recoded("codes", lambda table: code_matrix(table, kept))

        encoder = self.encoder_
        return prepare(encoder.partitions_, encoder.prior, encoder.class_weights_, coded)

    def _store(self, ready: Prepared, weights: Floats) -> None:
        names = list(self.encoder_.partitions_)
        self.variable_names_ = np.array(names, dtype=object)
        self.weights_ = np.zeros(len(names))
        self.weights_[ready.places] = weights
        self.score_ = BayesScore.of(ready.partitions, ready.places, ready.tables, weights)
        self.selected_features_ = np.array(
            [partition.name for partition in self.score_.partitions], dtype=object
        )
        self.variable_importances_ = np.zeros(len(names))
        importances = shapley_importances(ready.tables, weights)
        self.variable_importances_[ready.places] = importances
        self.feature_importances_ = np.zeros(self.n_features_in_)
        for partition, share in zip(ready.partitions, importances, strict=True):
            # a constructed variable is shared out among the columns it is made of
            columns = list(partition.columns)
            self.feature_importances_[columns] += share / len(columns)
        self.n_training_ = float(self.encoder_.class_weights_.sum())
        self.form_ = bayes_form(self.score_, self.classes_, self.n_training_)

    def decision_function(self, X: Any) -> Floats:
        """Log-odds of the second class, or one score for each class, centred, when there are more.

        Before the last smoothing of :meth:`predict_proba`: these are the log-odds of equation (1).
        """
        check_is_fitted(self, "score_")
        scores = self.form_.score(self._read_rows(X))
        return scores.ravel() if len(self.classes_) == 2 else scores

    def predict_proba(self, X: Any) -> Floats:
        """Equation (1), then (p_j + h / J) / (1 + h) with h = 1 / (2 (N + 1)).

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        check_is_fitted(self, "score_")
        return self.form_.proba(self._read_rows(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class."""
        scores = self.decision_function(X)
        best = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[best])

    def explain(self, X: Any) -> Explanation:
        """Exact contributions of the variables to the score of each row.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)

        Returns
        -------
        Explanation
            Baseline and contributions that add up to :meth:`decision_function`.
        """
        check_is_fitted(self, "score_")
        return explain_rows(self.score_, self.classes_, self._read_rows(X))


def extra_costs(
    feature_costs: Any, names: tuple[str, ...], partitions: list[Partition]
) -> Floats | None:
    """The user's cost of each variable, in nats: the sum over the columns it reads."""
    if feature_costs is None:
        return None
    if isinstance(feature_costs, Mapping):
        unknown = [name for name in feature_costs if name not in names]
        if unknown:
            raise ValueError(
                f"feature_costs names {shown(unknown[0])}, which is not a column of X; use the "
                "names of its columns."
            )
        by_column = np.array([_cost(feature_costs.get(name, 0.0), name) for name in names])
    else:
        given = np.asarray(feature_costs)
        if given.shape != (len(names),):
            raise ValueError(
                f"feature_costs must have one number for each of the {len(names)} columns, or be "
                f"a dict of column to number; got shape {given.shape}."
            )
        by_column = np.array([_cost(c, n) for c, n in zip(given.tolist(), names, strict=True)])
    return np.array([by_column[list(p.columns)].sum() for p in partitions], dtype=np.float64)


def _cost(value: Any, name: str) -> float:
    if not isinstance(value, Real) or not math.isfinite(value) or value < 0:
        raise ValueError(
            f"feature_costs of column {shown(name)} must be a number >= 0 (nats), got {value!r}."
        )
    return float(value)


def prices(ready: Prepared, feature_costs: Any, names: tuple[str, ...]) -> Floats:
    """B_k of criterion (4)."""
    extra = extra_costs(feature_costs, names, ready.partitions)
    return variable_costs(ready.preparation, ready.selection, extra)
