"""Hue, Boulle and Lemaire (EGC 2014): the experiments of sections 4.1 and 4.2, a fold at a time.

What they print and claim, and how ours is compared with it, is in ``naive_bayes_tables``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from scipy.stats import rankdata
from sklearn.model_selection import StratifiedKFold

from laconic._typing import Floats, Ints
from laconic.bayes.coded import prices
from laconic.bayes.criterion import CodedRows, WeightedBayes
from laconic.bayes.descent import (
    PAPER_RULES,
    DescentRules,
    MiniBatches,
    SearchName,
    search_weights,
    total_iterations,
)
from laconic.bayes.estimator import WeightedNaiveBayes
from laconic.bayes.selective import select_variables
from laconic.bayes.solver import newton_weights
from laconic.core.losses import Solution
from laconic.data.datasets import DataSet, available, load
from laconic.data.row_keys import code_keys
from laconic.data.source import ArraySource
from laconic.modl.estimator import ModlEncoder
from laconic.modl.partition import code_matrix

TABLE_1 = {
    "Abalone": "abalone", "Adult": "adult", "Australian": "australian", "Breast": "breast",
    "Bupa": "bupa", "Crx": "crx", "Flag": "flag", "German": "german_numeric", "Glass": "glass",
    "Heart": "heart", "Hepatitis": "hepatitis", "Horsecolic": "horsecolic",
    "Hypothyroid": "hypothyroid", "Ionosphere": "ionosphere", "Iris": "iris", "LED": "led",
    "LED17": "led17", "Letter": "letter", "Mushroom": "mushroom", "PenDigits": "pendigits",
    "Phoneme": "phoneme2254", "Pima": "pima", "Satimage": "satimage",
    "Segmentation": "segmentation", "Shuttle": "shuttle", "SickEuthyroid": "sickeuthyroid",
    "Sonar": "sonar", "Soybean": "soybean", "Spam": "spam", "Thyroid": "thyroid",
    "Tictactoe": "tictactoe", "Vehicle": "vehicle", "Waveform": "waveform",
    "WaveformNoise": "waveformnoise", "Wine": "wine", "Yeast": "yeast",
}  # fmt: skip
"""The paper's name of each set, and its name in :mod:`laconic.data.datasets`."""
WITH_NAMES = {"Breast": "breast_id", "Glass": "glass_id", "Yeast": "yeast_name"}
"""Sets whose number of variables in Table 1 counts the column that numbers or names the rows."""
LOWEST = "lowest"
"""The paper's prior, with steps compared to the lowest value so far, not to the memorised one."""


@dataclass(frozen=True)
class FoldMeans:
    """Means over folds of one model on one set."""

    auc: float
    compression: float
    log_loss: float
    n_selected: float
    cpu_seconds: float


def mean_auc(y: NDArray[Any], probabilities: Floats, classes: NDArray[Any]) -> float:
    """AUC of each class against the rest, weighted by the frequency of the class.

    By mean ranks: the AUC of n1 rows among n is (mean rank of theirs - (n1 + 1)/2)/(n - n1).

    >>> y, p = np.array([0, 0, 1, 1]), np.array([0.1, 0.4, 0.35, 0.8])
    >>> mean_auc(y, np.column_stack([1.0 - p, p]), np.array([0, 1]))
    0.75
    """
    ranks = rankdata(probabilities, axis=0)
    parts = []
    for j, name in enumerate(classes):
        own = y == name
        n_own = np.count_nonzero(own)
        if 0 < n_own < len(y):
            auc = (ranks[own, j].mean() - 0.5 * (n_own + 1)) / (len(y) - n_own)
            parts.append((n_own / len(y), auc))
    weight = sum(share for share, _ in parts)
    return float(sum(share * auc for share, auc in parts) / weight)


def log_losses(
    y: NDArray[Any], probabilities: Floats, classes: NDArray[Any], prior: Floats
) -> tuple[float, float]:
    """Mean log loss of the model and of the training prior; unseen classes count as the rarest."""
    place = np.clip(np.searchsorted(classes, y), 0, len(classes) - 1)
    known = classes[place] == y
    floor = 0.5 * prior.min()
    own = np.where(known, probabilities[np.arange(len(y)), place], floor)
    null = np.where(known, prior[place], floor)
    return -float(np.log(own).mean()), -float(np.log(null).mean())


def fold_means(
    X: Any,
    y: NDArray[Any],
    make: Callable[[], Any],
    n_selected: Callable[[Any], int],
    *,
    n_splits: int = 10,
    cpu_clock: Callable[[], float] = time.process_time,
    seed: int = 0,
) -> FoldMeans:
    """Cross-validated means; folds are stratified and seeded, the same for every model."""
    rows: list[tuple[float, ...]] = []
    for train, test in stratified_folds(y, n_splits, seed):
        begin = cpu_clock()
        model = make().fit(_rows(X, train), y[train])
        spent = cpu_clock() - begin
        probabilities = np.asarray(model.predict_proba(_rows(X, test)), dtype=np.float64)
        classes, counts = np.unique(y[train], return_counts=True)
        loss, null = log_losses(y[test], probabilities, classes, counts / counts.sum())
        auc = mean_auc(y[test], probabilities, classes)
        rows.append((auc, 1.0 - loss / null, loss, n_selected(model), spent))
    return FoldMeans(*np.mean(rows, axis=0).tolist())


def stratified_folds(y: NDArray[Any], n_splits: int, seed: int) -> list[tuple[Ints, Ints]]:
    """Pairs (train, test): stratified, shuffled by the seed."""
    import warnings

    with warnings.catch_warnings():
        # some sets have classes with fewer rows than folds
        warnings.simplefilter("ignore", UserWarning)
        return list(StratifiedKFold(n_splits, shuffle=True, random_state=seed).split(y, y))


def _rows(X: Any, rows: NDArray[Any]) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows.tolist()]


@dataclass(frozen=True)
class SearchGaps:
    """Relative excess of each search over the certified minimum (power = 1)."""

    minimum: float
    gap: float
    dgml: float
    multi_start: float
    neighbourhoods: float


def search_gaps(
    name: str,
    *,
    penalty: float = 0.1,
    batch_size: int = 1000,
    batch_growth: float = 1.0,
    level: int = 5,
    seed: int = 0,
) -> SearchGaps:
    """Criterion (4) reached by DGML, DGML-MS and DGML-VNS on all rows of one set of Table 1."""
    data = load(TABLE_1[name])
    every = np.arange(len(data.y))
    fold = encoded_fold(data, every, every[:1], "granular")
    criterion = WeightedBayes(fold.cost, penalty, 1.0)
    best = newton_weights(fold.train, criterion)
    excess = []
    for kind in ("dgml", "dgml-ms", "dgml-vns"):
        found = fold.search(criterion, kind, batch_size, level, seed, batch_growth=batch_growth)
        excess.append(found.value / best.value - 1.0)
    return SearchGaps(best.value, best.gap, *excess)


# ---- the experiments of the paper, one fold at a time ----------------------------------------

PENALTIES = (0.01, 0.1, 0.5)
POWERS = (0.5, 1.0, 2.0)
BATCH_SIZES = {"L=100": 100, "L=1000": 1000, "L=N": 10**9}
LEVELS = (3, 4, 5)
METRICS = (
    "train compression", "test compression", "train AUC", "test AUC", "variables",
    "sum of weights", "longest descent",
)  # fmt: skip


@dataclass(frozen=True)
class EncodedFold:
    """One fold: training rows as part codes, test rows by the same parts, costs of variables."""

    train: CodedRows
    test_codes: NDArray[Any]
    test_y: NDArray[Any]
    classes: NDArray[Any]
    cost: Floats
    preparation: Floats
    total: float

    def search(
        self,
        criterion: WeightedBayes,
        kind: SearchName,
        batch_size: int,
        level: int,
        seed: int,
        *,
        rules: DescentRules = PAPER_RULES,
        batch_growth: float = 1.0,
    ) -> Solution:
        """One of the paper's searches on the training rows."""
        order = self.train.shuffled(seed)
        # the criterion is measured at every step: on equal rows once, with their number as weight
        problem = MiniBatches(
            self.train, order, batch_size, criterion, self.total, past=self.distinct
        )
        rng = np.random.default_rng(seed)
        return search_weights(
            problem, kind, level=level, rng=rng, rules=rules, batch_growth=batch_growth
        )

    @cached_property
    def distinct(self) -> CodedRows:
        """The training rows, those of equal codes and class as one row of their joint weight."""
        held = self.train.source
        assert isinstance(held, ArraySource)
        assert held.y is not None
        keys = code_keys(held.X, held.y)
        _, first, kind = np.unique(keys, return_index=True, return_inverse=True)
        weight = np.bincount(kind, weights=held.weight).astype(np.float64)
        source = ArraySource(held.X[first], held.y[first], weight)
        return CodedRows(source, self.train.tables)

    def metrics(self, w: Floats, longest: float = 0.0) -> tuple[float, ...]:
        """The values of ``METRICS`` for a vector of weights."""
        held = self.train.source
        assert isinstance(held, ArraySource)
        labels = self.classes[held.y]
        prior = np.exp(self.train.tables.log_prior)
        found = []
        for codes, y in ((held.X, labels), (self.test_codes, self.test_y)):
            proba = self._probabilities(codes, w)
            loss, null = log_losses(y, proba, self.classes, prior)
            found.append((1.0 - loss / null, mean_auc(y, proba, self.classes)))
        (train, train_auc), (test, test_auc) = found
        return train, test, train_auc, test_auc, float((w > 0).sum()), float(w.sum()), longest

    def _probabilities(self, codes: NDArray[Any], w: Floats) -> Floats:
        """Equation (1), smoothed as the library does."""
        tables = self.train.tables
        scores = np.repeat(tables.log_prior[None, :], len(codes), axis=0)
        for k in np.flatnonzero(w):
            scores += w[k] * tables.table(int(k))[codes[:, k]]
        h = 0.5 / (self.total + 1.0)
        return np.asarray((softmax(scores, axis=1) + h / len(self.classes)) / (1.0 + h))


def encoded_fold(data: DataSet, train: Ints, test: Ints, code: str) -> EncodedFold:
    """Partition the training rows of a set under a code of :class:`~laconic.ModlEncoder`."""
    reader = WeightedNaiveBayes(encoder=ModlEncoder(code))
    ready = reader._prepare(reader._read_training(_rows(data.X, train), data.y[train]))
    table = reader._read_rows(_rows(data.X, test))
    return EncodedFold(
        ready.rows,
        code_matrix(table, ready.partitions),
        data.y[test],
        reader.classes_,
        prices(ready, None, reader.schema_.names),
        ready.preparation,
        ready.total,
    )


def descent_lengths(found: Solution) -> Ints:
    """Iterations of each descent of a search."""
    return np.diff(np.append(found.details["starts"], found.n_iter)) - 1


def best_by_level(found: Solution, n_variables: int, total: float) -> dict[int, Floats]:
    """The best weights that a search at level 5 had at the ends of levels 3, 4 and 5.

    A search ends with the descent in which its budget is spent, and a longer one begins alike.
    """
    spent = np.cumsum(descent_lengths(found))
    ends = np.append(found.details["starts"][1:], found.n_iter)
    out = {}
    for level in LEVELS:
        last = int(np.searchsorted(spent, total_iterations(n_variables, total, level)))
        end = ends[min(last, len(ends) - 1)]
        out[level] = found.details["points"][int(np.argmin(found.details["values"][:end]))]
    return out


Results = dict[str, tuple[float, ...]]


def optimisation_results(
    fold: EncodedFold, seed: int, rules: DescentRules = PAPER_RULES
) -> Results:
    """The metrics of the searches of section 4.1 on one fold, without a penalty."""
    out: Results = {}
    plain = WeightedBayes(fold.cost, 0.0, 1.0)
    for label, size in BATCH_SIZES.items():
        found = fold.search(plain, "dgml", size, 5, seed, rules=rules)
        out[f"DGML {label}"] = fold.metrics(found.point, float(descent_lengths(found).max()))
    searches: dict[str, SearchName] = {"MS": "dgml-ms", "VNS": "dgml-vns"}
    for label, kind in searches.items():
        found = fold.search(plain, kind, 1000, 5, seed, rules=rules)
        longest = float(descent_lengths(found).max())
        for level, w in best_by_level(found, fold.train.n_variables, fold.total).items():
            out[f"{label} {level}"] = fold.metrics(w, longest)
    return out


def fold_results(fold: EncodedFold, seed: int) -> Results:
    """The metrics of sections 4.1 and 4.2 on one fold."""
    out = optimisation_results(fold, seed)
    for penalty in PENALTIES:
        for power in POWERS:
            criterion = WeightedBayes(fold.cost, penalty, power)
            found = fold.search(criterion, "dgml-vns", 1000, 5, seed)
            longest = float(descent_lengths(found).max())
            out[f"{penalty:g}, {power:g}"] = fold.metrics(found.point, longest)
    rng = np.random.default_rng(seed)
    average = select_variables(fold.train, fold.preparation, total=fold.total, rng=rng)
    out["SNB"] = fold.metrics(average.details["average"])
    return out


# ---- draws -----------------------------------------------------------------------------------

N_FOLDS = 10


@cache
def data_set(name: str) -> DataSet:
    """A set of Table 1 with the variables that the table counts."""
    own = WITH_NAMES.get(name, TABLE_1[name])
    return load(own if available(own) else TABLE_1[name])


def fold_draw(name: str, seed: int, fold: int, code: str) -> Results:
    """The metrics of all predictors on one fold; ``LOWEST`` has those of section 4.1 only."""
    data = data_set(name)
    train, test = stratified_folds(data.y, N_FOLDS, seed)[fold]
    if code == LOWEST:
        rules = DescentRules(memorised=False)
        return optimisation_results(encoded_fold(data, train, test, "2006"), seed, rules)
    return fold_results(encoded_fold(data, train, test, code), seed)


def path_draw(seed: int, fold: int, code: str, thin: int) -> dict[str, dict[str, list[float]]]:
    """Searches without penalty on a training fold of Phoneme, every ``thin``-th row of it: values
    of the criterion and where each descent begins, by label."""
    data = data_set("Phoneme")
    train, test = stratified_folds(data.y, N_FOLDS, seed)[fold]
    own = encoded_fold(data, train[::thin], test[:1], code)
    plain = WeightedBayes(own.cost, 0.0, 1.0)
    # at least three batches of the larger size, as on the whole set
    sizes = {label: min(size, max(1, int(own.total) // 3)) for label, size in BATCH_SIZES.items()}
    sizes["L=N"] = BATCH_SIZES["L=N"]
    seed += fold
    found = {label: own.search(plain, "dgml", size, 5, seed) for label, size in sizes.items()}
    found["MS"] = own.search(plain, "dgml-ms", sizes["L=1000"], 5, seed)
    found["VNS"] = own.search(plain, "dgml-vns", sizes["L=1000"], 5, seed)
    return {
        label: {
            "values": [float(f"{v:.8g}") for v in path.details["values"]],
            "starts": [int(k) for k in path.details["starts"]],
        }
        for label, path in found.items()
    }
