"""Equal rows merged in an order of their values, so that a weight is that many copies of a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints
from laconic.core.contract import Training
from laconic.data.row_keys import row_keys
from laconic.data.tables.columns import Table
from laconic.data.tables.kinds import shown
from laconic.votes.column_generation import DenseColumns
from laconic.votes.voters import needs_numbers


@dataclass(frozen=True)
class DistinctRows:
    """``first`` holds one row of each kind, ``place`` the kind of every row.

    What is drawn or placed with these and their total ``weight`` depends neither on the order of
    the rows nor on whether a row comes twice or weighs two.
    """

    first: Ints
    place: Ints
    weight: Floats


def distinct_rows(table: Table, weight: Floats, y: Ints | None = None) -> DistinctRows:
    """Kinds of rows: equal values, and equal classes when ``y`` is given.

    >>> from laconic.data.tables.columns import Schema
    >>> table = Schema.learn(np.array([[1.0], [2.0], [1.0]])).table
    >>> kinds = distinct_rows(table, np.array([1.0, 1.0, 0.5]))
    >>> sorted(kinds.weight.tolist()), bool(kinds.place[0] == kinds.place[2])
    ([1.0, 1.5], True)
    """
    _, first, place = np.unique(row_keys(table), return_index=True, return_inverse=True)
    if y is not None:
        pair = place * (int(y.max()) + 1) + y
        _, first, place = np.unique(pair, return_index=True, return_inverse=True)
    return DistinctRows(first, place, np.bincount(place, weight))


# Voters that exist already: a forest with out-of-bag votes, fitted classifiers, a score matrix.


@dataclass(frozen=True)
class ForestVoters:
    """Trees grown on bootstrap samples, judged on the rows each has not seen.

    Parameters
    ----------
    n_trees : int, default=200
    min_samples_leaf : int, default=5
    max_depth : int or None, default=None
    keep : float, default=1/3
        Largest share of the trees that a vote may use.
    spread : float, default=1.0
        Added to the diagonal of the mean products, in units of their mean: the products of trees
        are estimated, and without it their errors would be trusted and too few trees chosen.

    Notes
    -----
    A tree votes 2p(class) - 1 with the class share p of its leaf. The mean margin of a tree is
    taken on its out-of-bag rows, the product of two trees on the rows out of bag for both: trees
    weighed on the rows that grew them would look far better than they are.

    The bootstrap draws distinct rows (equal values and class), each with its whole weight: a tree
    is then judged on rows equal to none that grew it, and a row of weight two is two equal rows.
    ``min_samples_leaf`` counts copies: a leaf holds that weight, or as many mean weights when the
    weights are below one on average.
    """

    n_trees: int = 200
    min_samples_leaf: int = 5
    max_depth: int | None = None
    keep: float = 1 / 3
    spread: float = 1.0

    def prepare(self, rows: Training, seed: int) -> PreparedForest:
        if not 0.0 < self.keep <= 1.0 or self.spread < 0.0:
            raise ValueError("keep must be in (0, 1] and spread not negative.")
        from sklearn.ensemble import RandomForestClassifier

        kinds = distinct_rows(rows.table, rows.weight, rows.y)
        X = ordinal_matrix(rows.table)[kinds.first]
        forest = RandomForestClassifier(
            self.n_trees,
            min_weight_fraction_leaf=self._leaf_share(kinds.weight),
            max_depth=self.max_depth,
            random_state=seed,
        ).fit(X, rows.y[kinds.first], sample_weight=kinds.weight)
        seen = np.zeros((len(X), self.n_trees), dtype=bool)
        for t, sample in enumerate(forest.estimators_samples_):
            seen[sample, t] = True
        share = np.stack([tree.predict_proba(X) for tree in forest.estimators_], axis=1)
        most = max(1, int(self.keep * self.n_trees))
        outside, share = ~seen[kinds.place], share[kinds.place]
        return PreparedForest(list(forest.estimators_), outside, share, most, self.spread)

    def _leaf_share(self, weight: Floats) -> float:
        # a row of the bag was drawn e/(e-1) times on average, each time with its weight
        drawn = self.min_samples_leaf * np.e / (np.e - 1.0)
        return min(0.5, float(drawn / max(weight.sum(), len(weight))))


def ordinal_matrix(table: Table) -> Floats:
    """Numbers as they are (NaN for missing), categories by their code."""
    X = np.empty(table.shape)
    for j in range(table.shape[1]):
        values = table.column(j).astype(np.float64)
        X[:, j] = (
            np.where(values == -1, np.nan, values) if (table.kinds[j] == "categorical") else values
        )
    big = np.nanmax(np.abs(X), axis=0, initial=0.0) > np.finfo(np.float32).max
    if big.any():
        raise ValueError(
            f"Column {shown(table.names[int(big.argmax())])} has values too large for the trees of "
            "voters='forest'; rescale it."
        )
    return X


@dataclass(frozen=True)
class JointErrors:
    """Error rates of classifiers, how often two err together, rows behind the rarest pair."""

    single: Floats
    both: Floats
    overlap: int


def joint_errors(
    wrong: NDArray[np.bool_], judged: NDArray[np.bool_], weight: Floats
) -> JointErrors:
    """Tandem losses over the rows on which both classifiers may be judged, positive definite."""
    part = weight / weight.sum()
    seen = judged.astype(np.float64)
    err = (wrong & judged).astype(np.float64)
    shared = (seen * part[:, None]).T @ seen
    together = (err * part[:, None]).T @ err
    gram = np.divide(together, shared, out=np.zeros_like(together), where=shared > 0)
    mass = part @ seen
    single = np.divide(part @ err, mass, out=np.zeros_like(mass), where=mass > 0)
    value, vector = np.linalg.eigh(0.5 * (gram + gram.T))
    value = np.maximum(value, max(1e-4 * value[-1], 1e-9))
    overlap = max(1, round(float(shared.min() * weight.sum())))
    return JointErrors(single, (vector * value) @ vector.T, overlap)


class PreparedForest:
    """Out-of-bag moments of every tree, one class against the rest."""

    out_of_bag = True
    sides = "plain"
    assumption = (
        "moments from out-of-bag rows; the number of rows is the smallest overlap of two trees"
    )

    def __init__(
        self,
        trees: list[Any],
        outside: NDArray[np.bool_],
        share: Floats,
        most: int,
        spread: float,
    ) -> None:
        self.trees, self.outside, self.share = trees, outside, share
        self.most, self.spread = most, spread

    def moments(self, y: Floats, weight: Floats, k: int) -> tuple[Floats, Floats, int]:
        """(a, G, smallest overlap); G is clipped to be positive definite and spread."""
        votes = (2.0 * self.share[:, :, k] - 1.0) * self.outside
        part = weight / weight.sum()
        mass = self.outside.T @ part
        mass[mass == 0.0] = 1.0
        first = (votes * (y * part)[:, None]).sum(0) / mass
        inside = self.outside.astype(np.float64)
        shared = (inside * part[:, None]).T @ inside
        gram = np.divide(
            (votes * part[:, None]).T @ votes, shared, out=np.zeros_like(shared), where=shared > 0
        )
        value, vector = np.linalg.eigh(0.5 * (gram + gram.T))
        value = np.maximum(value, 1e-4 * value[-1]) + self.spread * value.mean()
        overlap = max(1, round(float(shared.min() * weight.sum())))
        return first, (vector * value) @ vector.T, overlap

    def joint_errors(self, codes: Ints, weight: Floats) -> JointErrors:
        """Share of the rows out of bag for both on which two trees err."""
        return joint_errors(self.share.argmax(2) != codes[:, None], self.outside, weight)

    def honest_margins(self, y: Floats, k: int, columns: Ints, weights: Floats) -> Floats:
        """Vote on every row by the trees that have not seen it (0 when all have)."""
        outside = self.outside[:, columns]
        votes = (2.0 * self.share[:, columns, k] - 1.0) * outside
        mass = outside @ weights
        return y * np.divide(votes @ weights, mass, out=np.zeros(len(y)), where=mass > 0)

    def pick(self, columns: Ints, signs: Floats, y: Floats, k: int) -> PickedTrees:
        return PickedTrees(tuple(self.trees[c] for c in columns), tuple(columns.tolist()), k)


@dataclass(frozen=True)
class PickedTrees:
    """The trees of a vote."""

    trees: tuple[Any, ...]
    places: tuple[int, ...]
    k: int

    def said(self, table: Table, raw: Any) -> Ints:
        """Class code that each tree gives each row."""
        X = ordinal_matrix(table)
        return np.column_stack([tree.predict_proba(X).argmax(1) for tree in self.trees])

    def votes(self, table: Table, raw: Any) -> Floats:
        X = ordinal_matrix(table)
        return np.column_stack(
            [2.0 * tree.predict_proba(X)[:, self.k] - 1.0 for tree in self.trees]
        )

    def rules(self) -> list[str]:
        return [
            f"tree {place} ({tree.get_n_leaves()} leaves)"
            for tree, place in zip(self.trees, self.places, strict=True)
        ]

    def __getitem__(self, k: int) -> Any:
        return self.trees[k]

    def __len__(self) -> int:
        return len(self.trees)


@dataclass(frozen=True)
class HardVoters:
    """Classifiers that give each row one class, seen from class k: +1 for it, else -1."""

    voters: Any
    k: int

    def votes(self, table: Table, raw: Any) -> Floats:
        return np.where(self.voters.said(table, raw) == self.k, 1.0, -1.0)

    def rules(self) -> list[str]:
        said: list[str] = self.voters.rules()
        return said

    def __getitem__(self, k: int) -> Any:
        return self.voters[k]

    def __len__(self) -> int:
        return len(self.voters)


class PreparedMatrix:
    """Votes that are known on the training rows: a score matrix or fitted classifiers."""

    out_of_bag = False
    sides: str | None = None

    def __init__(self, values: Floats, picker: Any, assumption: str) -> None:
        self.values, self.picker, self.assumption = values, picker, assumption

    def _of(self, k: int) -> Floats:
        return self.values if self.values.ndim == 2 else self.values[:, :, k]

    def columns(self, y: Floats, weight: Floats, k: int) -> DenseColumns:
        return DenseColumns(self._of(k), y, weight)

    def split(
        self, y: Floats, weight: Floats, k: int, train: Ints, test: Ints
    ) -> tuple[DenseColumns, DenseColumns, Ints]:
        H = self._of(k)
        return (
            DenseColumns(H[train], y[train], weight[train]),
            DenseColumns(H[test], y[test], weight[test]),
            np.arange(H.shape[1]),
        )

    def pick(self, columns: Ints, signs: Floats, y: Floats, k: int) -> Any:
        return self.picker(columns, signs, k)

    def joint_errors(self, codes: Ints, weight: Floats) -> JointErrors:
        """Share of the rows on which two classifiers err."""
        wrong = self.values.argmax(2) != codes[:, None]
        return joint_errors(wrong, np.ones_like(wrong), weight)


@dataclass(frozen=True)
class PickedScores:
    """Columns of a score matrix."""

    columns: tuple[int, ...]
    signs: tuple[float, ...]
    names: tuple[str, ...]

    def votes(self, table: Table, raw: Any) -> Floats:
        X = needs_numbers(table, "scores")
        refuse_outside(X, table.names)
        return X[:, list(self.columns)] * np.array(self.signs)

    def rules(self) -> list[str]:
        return [
            name if sign > 0 else f"opposite of {name}"
            for name, sign in zip(self.names, self.signs, strict=True)
        ]

    def __getitem__(self, k: int) -> str:
        return self.rules()[k]

    def __len__(self) -> int:
        return len(self.columns)


def refuse_outside(X: Floats, names: tuple[str, ...]) -> None:
    outside = (np.abs(X) > 1.0).any(axis=0)
    if outside.any():
        j = int(outside.argmax())
        raise ValueError(
            f"Voter {shown(names[j])} has votes outside [-1, 1]; rescale its scores, for instance "
            "2p - 1 for a probability p."
        )


def prepare_scores(table: Table) -> PreparedMatrix:
    """voters="scores": each column of X is a voter with values in [-1, 1]."""
    X = needs_numbers(table, "scores")
    refuse_outside(X, table.names)

    def pick(columns: Ints, signs: Floats, k: int) -> PickedScores:
        named = tuple(table.names[c] for c in columns)
        return PickedScores(tuple(columns.tolist()), tuple(signs.tolist()), named)

    return PreparedMatrix(X, pick, "the score columns were made without the rows of the sample")


@dataclass(frozen=True)
class PickedClassifiers:
    """Fitted classifiers in a vote."""

    models: tuple[Any, ...]
    signs: tuple[float, ...]
    classes: tuple[Any, ...]
    k: int

    def said(self, table: Table, raw: Any) -> Ints:
        """Class code that each classifier gives each row."""
        found = [classifier_votes(model, raw, self.classes).argmax(1) for model in self.models]
        return np.column_stack(found)

    def votes(self, table: Table, raw: Any) -> Floats:
        found = [classifier_votes(model, raw, self.classes)[:, self.k] for model in self.models]
        return np.column_stack(found) * np.array(self.signs)

    def rules(self) -> list[str]:
        said = [type(model).__name__ for model in self.models]
        return [
            name if sign > 0 else f"opposite of {name}"
            for name, sign in zip(said, self.signs, strict=True)
        ]

    def __getitem__(self, k: int) -> Any:
        return self.models[k]

    def __len__(self) -> int:
        return len(self.models)


def classifier_votes(model: Any, raw: Any, classes: Any) -> Floats:
    """Votes in [-1, 1] of one fitted classifier, one column per class."""
    known = list(model.classes_)
    absent = [c for c in classes if c not in known]
    if absent:
        raise ValueError(
            f"Voter {type(model).__name__} does not know the class {shown(absent[0])}; fit the "
            "voters on rows of every class."
        )
    if hasattr(model, "predict_proba"):
        share = np.asarray(model.predict_proba(raw), dtype=np.float64)
        votes = 2.0 * share[:, [known.index(c) for c in classes]] - 1.0
        if not (np.abs(votes) <= 1.0 + 1e-9).all():
            raise ValueError(
                f"Voter {type(model).__name__} has votes outside [-1, 1]: its predict_proba does "
                "not return probabilities."
            )
        return np.clip(votes, -1.0, 1.0)
    said = np.asarray(model.predict(raw))
    return np.where(said[:, None] == np.array(classes, dtype=said.dtype), 1.0, -1.0)


def prepare_classifiers(models: list[Any], raw: Any, classes: Any) -> PreparedMatrix:
    """voters=[fitted classifiers]: their probabilities, turned into votes."""
    for model in models:
        if not hasattr(model, "predict") or not hasattr(model, "classes_"):
            raise TypeError(
                f"voters holds a {type(model).__name__}, which is not a fitted classifier."
            )
    values = np.stack([classifier_votes(model, raw, classes) for model in models], axis=1)

    def pick(columns: Ints, signs: Floats, k: int) -> PickedClassifiers:
        chosen = tuple(models[c] for c in columns)
        return PickedClassifiers(chosen, tuple(signs.tolist()), tuple(classes), k)

    return PreparedMatrix(values, pick, "the classifiers were fitted on other rows")
