"""The fitted form of a weighted naive Bayes: partitions, log tables, weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from laconic._typing import Floats
from laconic.bayes.criterion import LogTables, shapley_importances, variable_costs
from laconic.bayes.rows import CodedRows
from laconic.core.contract import Accepts, TableClassifier
from laconic.core.explanation import Explanation, explain_form
from laconic.core.forms import AdditiveScore, plain_label
from laconic.data.source import Source
from laconic.data.tables.columns import Table
from laconic.data.tables.kinds import shown
from laconic.modl.criterion import LN2
from laconic.modl.estimator import ModlEncoder
from laconic.modl.form import cells_term
from laconic.modl.partition import Partition

Codes = NDArray[np.uint8] | NDArray[np.uint16]


def code_matrix(table: Table, partitions: Sequence[Partition]) -> Codes:
    """Part of every row in every partition, in the smallest integers that hold them."""
    most = max((partition.n_parts for partition in partitions), default=1)
    dtype: type[np.uint8] | type[np.uint16] = np.uint8 if most <= 256 else np.uint16
    out = np.empty((table.n_rows, len(partitions)), dtype=dtype)
    for k, partition in enumerate(partitions):
        out[:, k] = partition.codes(*(table.column(j) for j in partition.columns))
    return out


@dataclass(frozen=True)
class BayesScore:
    """ln p_j + sum_k w_k ln P(part of variable k | class j), for the variables with a weight.

    ``places[k]`` is the place of variable k among all variables of the encoder.
    """

    partitions: tuple[Partition, ...]
    places: NDArray[np.int64]
    tables: LogTables
    weights: Floats

    @staticmethod
    def of(
        partitions: Sequence[Partition],
        places: NDArray[np.int64],
        tables: LogTables,
        weights: Floats,
    ) -> BayesScore:
        """Only the variables whose weight is not zero."""
        used = np.flatnonzero(weights)
        return BayesScore(
            tuple(partitions[k] for k in used), places[used], tables.take(used), weights[used]
        )

    def codes(self, table: Table) -> Codes:
        return code_matrix(table, self.partitions)

    def scores(self, table: Table) -> Floats:
        """Unnormalised log posterior, shape (n_rows, n_classes)."""
        return self.tables.scores(self.codes(table), self.weights)

    @cached_property
    def _shares(self) -> tuple[Floats, ...]:
        """N_i / N of the parts of each variable."""
        start = self.tables.start
        own = [self.tables.class_weights[a:b].sum(axis=1) for a, b in pairwise(start)]
        return tuple(weight / weight.sum() for weight in own)

    def effect(self, k: int) -> Floats:
        """w_k (l_ij - mean over rows of l_ij), shape (n_parts, n_classes).

        l_ij = ln P(i | j) minus its mean over classes: only differences between classes count.
        """
        table = self.tables.table(k)
        centred = table - table.mean(axis=1, keepdims=True)
        return np.asarray(self.weights[k] * (centred - self._shares[k] @ centred))

    def baseline(self) -> Floats:
        """Score of a mean row, shape (n_classes,): effects add to it."""
        total = self.tables.log_prior - self.tables.log_prior.mean()
        for k in range(len(self.partitions)):
            table = self.tables.table(k)
            centred = table - table.mean(axis=1, keepdims=True)
            total = total + self.weights[k] * (self._shares[k] @ centred)
        return np.asarray(total)


@dataclass(frozen=True)
class PartCells:
    """The part that each variable of a row falls in, as text."""

    codes: Codes
    labels: tuple[tuple[str, ...], ...]

    def row(self, i: int) -> list[str]:
        return [own[code] for own, code in zip(self.labels, self.codes[i], strict=True)]


# The fitted form of a weighted naive Bayes.


def bayes_form(score: BayesScore, classes: NDArray[Any], total: float) -> AdditiveScore:
    """Weighted naive Bayes: one table by variable, centred on the training rows."""
    baseline = score.baseline()
    binary = len(classes) == 2
    terms = []
    for k, partition in enumerate(score.partitions):
        effect = score.effect(k)
        values = effect[:, 1:] - effect[:, :1] if binary else effect
        terms.append(cells_term(partition.column_names, partition.cells, values))
    return AdditiveScore(
        tuple(plain_label(c) for c in classes),
        baseline[1:] - baseline[:1] if binary else baseline,
        tuple(terms),
        "logit" if binary else "softmax",
        smoothing=0.5 / (total + 1.0),
    )


# What the two naive Bayes classifiers share: the encoder before, the predictions after.


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
        """Shapley values: what knowing a variable's part adds to the score of the mean row.

        Scores add over variables, so they are exact and in closed form.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)

        Returns
        -------
        Explanation
            Baseline and contributions that add up to :meth:`decision_function`.
        """
        check_is_fitted(self, "score_")
        table, partitions = self._read_rows(X), self.score_.partitions
        cells = PartCells(self.score_.codes(table), tuple(tuple(p.labels) for p in partitions))
        names = [partition.name for partition in partitions]
        return explain_form(self.form_, self.classes_, table, names=names, cells=cells)


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
