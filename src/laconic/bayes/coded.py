"""What the two naive Bayes classifiers share: the encoder before, the score and its form after."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from laconic._typing import Floats
from laconic.bayes.criterion import CodedRows, LogTables, variable_costs
from laconic.core.contract import Accepts
from laconic.core.explanation import Explanation, TableCells, explain_form, switches_of
from laconic.core.form_prediction import FormPrediction
from laconic.core.forms import AdditiveScore, plain_label
from laconic.data.source import Source
from laconic.data.tables.columns import Table, shown
from laconic.data.tables.spoken import Spoken
from laconic.modl.criterion import LN2
from laconic.modl.estimator import make_encoder
from laconic.modl.form import cells_term
from laconic.modl.partition import Partition, by_content, code_matrix


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
    def of(ready: Prepared, weights: Floats) -> BayesScore:
        """Only the variables whose weight is not zero, in the order of the encoder."""
        used = np.flatnonzero(weights)
        used = used[np.argsort(ready.places[used])]
        partitions = tuple(ready.partitions[int(k)] for k in used)
        return BayesScore(partitions, ready.places[used], ready.tables.take(used), weights[used])

    def codes(self, table: Table) -> NDArray[Any]:
        return code_matrix(table, self.partitions)

    @cached_property
    def _shares(self) -> tuple[Floats, ...]:
        """N_i / N of the parts of each variable."""
        start = self.tables.start
        own = [self.tables.class_weights[a:b].sum(axis=1) for a, b in pairwise(start)]
        return tuple(weight / weight.sum() for weight in own)

    def effect(self, k: int) -> Floats:
        """Shapley values of variable k by part and class: w_k (l_ij - mean over rows of l_ij).

        l_ij = ln P(i | j) minus its mean over classes: only differences between classes count.
        The value of a coalition S of variables, for a row x and a class j, is the mean over the
        training rows b of the centred score of j when the parts of S are those of x and the others
        those of b. The score is a sum over variables, so that S gains the same by variable k
        whatever S is, and this is the Shapley value, for any number of classes.
        """
        centred, mean = self._centred(k)
        return np.asarray(self.weights[k] * (centred - mean))

    def _centred(self, k: int) -> tuple[Floats, Floats]:
        """l_ij of variable k and its mean over the rows."""
        table = self.tables.table(k)
        centred = table - table.mean(axis=1, keepdims=True)
        return centred, self._shares[k] @ centred

    def importances(self) -> Floats:
        """Mean absolute Shapley value of each variable, scaled to sum to one.

        The mean is over training rows and, by their shares, over classes.
        """
        class_share = np.exp(self.tables.log_prior)
        sizes = np.array(
            [
                (self._shares[k] @ np.abs(self.effect(k))) @ class_share
                for k in range(len(self.partitions))
            ]
        )
        return sizes / sizes.sum() if sizes.any() else sizes

    def baseline(self) -> Floats:
        """Score of a mean row, shape (n_classes,): effects add to it."""
        total = self.tables.log_prior - self.tables.log_prior.mean()
        for k in range(len(self.partitions)):
            total = total + self.weights[k] * self._centred(k)[1]
        return np.asarray(total)


@dataclass(frozen=True)
class PartCells:
    """The part that each variable of a row falls in, as text."""

    codes: NDArray[Any]
    labels: tuple[tuple[str, ...], ...]
    values: TableCells

    def row(self, i: int) -> list[str]:
        return [own[code] for own, code in zip(self.labels, self.codes[i], strict=True)]

    def spoken(self, i: int, words: Spoken) -> list[str]:
        return self.values.spoken(i, words)


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


@dataclass(frozen=True)
class Prepared:
    """Informative variables by content, the training rows as their codes and their costs.

    ``places[k]`` is the place of variable k among all variables of the encoder.
    """

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
    code: str,
    class_totals: Floats,
    coded: Callable[[list[Partition]], Source],
) -> Prepared:
    """Codes and log tables of the variables that say something of the class.

    ``coded`` gives the rows as the codes of some partitions.
    """
    every = list(partitions.values())
    # by content: neither sums nor draws over variables know the order of the columns
    informative = sorted(
        (k for k, p in enumerate(every) if p.informative), key=lambda k: by_content(every[k])
    )
    places = np.array(informative, dtype=np.int64)
    kept = [every[k] for k in informative]
    construction = np.array([p.construction_cost for p in kept], dtype=np.float64)
    # under the granular prior the construction cost is ln 2 + what naming the variable costs
    selection = construction - LN2 if code == "granular" else construction + math.log(len(every))
    return Prepared(
        kept,
        places,
        coded(kept),
        LogTables.of([p.class_weights for p in kept], class_totals),
        np.array([p.preparation_cost for p in kept], dtype=np.float64),
        selection,
        float(class_totals.sum()),
    )


class CodedBayes(FormPrediction):
    """Encodes columns by MODL partitions, weighs them, predicts from their ``form_``.

    ``decision_function`` gives the log-odds of equation (1), or centred scores for more classes;
    ``predict_proba`` then smooths, (p_j + h / J) / (1 + h) with h = 1 / (2 (N + 1)).
    """

    _accepts = Accepts(scan=True)

    encoder: Any
    n_jobs: int | None
    random_state: Any

    def _can_scan(self) -> bool:
        makers, built = (self, self.encoder), ("pairs", "trees")
        if any(getattr(made, name, 0) for made in makers for name in built):
            return False
        return getattr(self, "solver", "auto") == "auto"

    def _prepare(self, rows: Any) -> Prepared:
        self.encoder_ = make_encoder(self).fit_rows(rows, self.schema_, self.classes_)

        def coded(kept: list[Partition]) -> Source:
            made: Source = rows.recoded("codes", lambda table: code_matrix(table, kept))
            return made

        encoder = self.encoder_
        return prepare(encoder.partitions_, encoder.code, encoder.class_weights_, coded)

    def _store(self, ready: Prepared, weights: Floats) -> None:
        names = list(self.encoder_.partitions_)
        self.variable_names_ = np.array(names, dtype=object)
        self.weights_ = np.zeros(len(names))
        self.weights_[ready.places] = weights
        self.score_ = BayesScore.of(ready, weights)
        self.selected_features_ = np.array(
            [partition.name for partition in self.score_.partitions], dtype=object
        )
        self.variable_importances_ = np.zeros(len(names))
        importances = self.score_.importances()
        self.variable_importances_[self.score_.places] = importances
        self.feature_importances_ = np.zeros(self.n_features_in_)
        for partition, share in zip(self.score_.partitions, importances, strict=True):
            # a constructed variable is shared out among the columns it is made of
            columns = list(partition.columns)
            self.feature_importances_[columns] += share / len(columns)
        self.n_training_ = float(self.encoder_.class_weights_.sum())
        self.form_ = bayes_form(self.score_, self.classes_, self.n_training_)

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
        read = TableCells(table, tuple(term.columns for term in self.form_.terms))
        labels = tuple(tuple(p.labels) for p in partitions)
        cells = PartCells(self.score_.codes(table), labels, read)
        names = [partition.name for partition in partitions]
        why = explain_form(self.form_, self.classes_, table, names=names, cells=cells)
        return replace(why, switches=switches_of(self.schema_))


def prices(ready: Prepared, feature_costs: Any, names: tuple[str, ...]) -> Floats:
    """B_k of criterion (4), with the user's cost of the columns that variable k reads."""
    if feature_costs is None:
        return variable_costs(ready.preparation, ready.selection)
    by_column = _read_feature_costs(feature_costs, names)
    extra = np.array([by_column[list(p.columns)].sum() for p in ready.partitions], dtype=np.float64)
    return variable_costs(ready.preparation, ready.selection, extra)


def _read_feature_costs(given: Any, names: tuple[str, ...]) -> Floats:
    """One cost for each column, in nats."""
    if isinstance(given, Mapping):
        unknown = [name for name in given if name not in names]
        if unknown:
            raise ValueError(
                f"feature_costs names {shown(unknown[0])}, which is not a column of X; use the "
                "names of its columns."
            )
        given = [given.get(name, 0.0) for name in names]
    if np.shape(given) != (len(names),):
        raise ValueError(
            f"feature_costs must have one number for each of the {len(names)} columns, or be "
            f"a dict of column to number; got shape {np.shape(given)}."
        )
    return np.array([_cost(c, n) for c, n in zip(given, names, strict=True)])


def _cost(value: Any, name: str) -> float:
    if not isinstance(value, Real) or not math.isfinite(value) or value < 0:
        raise ValueError(
            f"feature_costs of column {shown(name)} must be a number >= 0 (nats), got {value!r}."
        )
    return float(value)
