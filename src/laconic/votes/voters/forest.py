"""Trees of a forest as voters, judged on the rows that each has not seen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints
from laconic.core.contract import Training
from laconic.data.tables.columns import Table, shown
from laconic.votes.tuning import CLIPPED
from laconic.votes.voters.base import JointErrors, OutOfBagVoters, distinct_rows, in_order


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

    def prepare_rows(self, rows: Training, seed: int) -> PreparedForest:
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
        )
        # by a power of two, which changes no split: sums of huge weights must not overflow
        light = np.ldexp(kinds.weight, -int(np.frexp(kinds.weight.max())[1]))
        with np.errstate(over="ignore", invalid="ignore"):  # its check sums large numbers
            forest.fit(X, rows.y[kinds.first], sample_weight=light)
        seen = np.zeros((len(X), self.n_trees), dtype=bool)
        for t, sample in enumerate(forest.estimators_samples_):
            seen[sample, t] = True
        share = np.stack([tree.predict_proba(X) for tree in forest.estimators_], axis=1)
        most = max(1, int(self.keep * self.n_trees))
        outside, share = ~seen[kinds.place], share[kinds.place]
        names = rows.table.names
        return PreparedForest(list(forest.estimators_), names, outside, share, most, self.spread)

    def _leaf_share(self, weight: Floats) -> float:
        # a row of the bag was drawn e/(e-1) times on average, each time with its weight
        drawn = self.min_samples_leaf * math.e / (math.e - 1.0)
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


def _pair_means(
    values: Floats, judged: NDArray[np.bool_], part: Floats
) -> tuple[Floats, Floats, float]:
    """Mean products over the rows that judge both: eigenvalues and -vectors, and the least share.

    ``values`` are zero where a voter is not judged.
    """
    seen = judged.astype(np.float64)
    shared = (seen * part[:, None]).T @ seen
    products = (values * part[:, None]).T @ values
    gram = np.divide(products, shared, out=np.zeros_like(products), where=shared > 0)
    value, vector = np.linalg.eigh(0.5 * (gram + gram.T))
    return value, vector, float(shared.min())


def joint_errors(
    wrong: NDArray[np.bool_], judged: NDArray[np.bool_], weight: Floats
) -> JointErrors:
    """Tandem losses over the rows on which both classifiers may be judged, positive definite."""
    part = weight / weight.sum()
    err = (wrong & judged).astype(np.float64)
    mass = part @ judged.astype(np.float64)
    single = np.divide(part @ err, mass, out=np.zeros_like(mass), where=mass > 0)
    value, vector, least = _pair_means(err, judged, part)
    value = np.maximum(value, max(CLIPPED * value[-1], 1e-9))
    return JointErrors(single, (vector * value) @ vector.T, least * float(weight.sum()))


class PreparedForest(OutOfBagVoters):
    """Out-of-bag moments of every tree, one class against the rest."""

    assumption = (
        "moments from out-of-bag rows; the number of rows is the smallest overlap of two trees"
    )

    def __init__(
        self,
        trees: list[Any],
        names: tuple[str, ...],
        outside: NDArray[np.bool_],
        share: Floats,
        most: int,
        spread: float,
    ) -> None:
        self.trees, self.names, self.outside, self.share = trees, names, outside, share
        self.most, self.spread = most, spread

    def moments(self, y: Floats, weight: Floats, k: int) -> tuple[Floats, Floats, float]:
        """(a, G, smallest overlap); G is clipped to be positive definite and spread."""
        votes = (2.0 * self.share[:, :, k] - 1.0) * self.outside
        part = weight / weight.sum()
        mass = self.outside.T @ part
        mass[mass == 0.0] = 1.0
        first = (votes * (y * part)[:, None]).sum(0) / mass
        value, vector, least = _pair_means(votes, self.outside, part)
        value = np.maximum(value, CLIPPED * value[-1]) + self.spread * value.mean()
        return first, (vector * value) @ vector.T, least * float(weight.sum())

    def joint_errors(self, codes: Ints, weight: Floats) -> JointErrors:
        """Share of the rows out of bag for both on which two trees err."""
        return joint_errors(self.share.argmax(2) != codes[:, None], self.outside, weight)

    def honest_margins(self, y: Floats, k: int, columns: Ints, weights: Floats) -> Floats:
        """Vote on every row by the trees that have not seen it (0 when all have)."""
        outside = self.outside[:, columns]
        votes = (2.0 * self.share[:, columns, k] - 1.0) * outside
        mass = outside @ weights
        return y * np.divide(votes @ weights, mass, out=np.zeros(len(y)), where=mass > 0)

    def pick(self, columns: Ints, signs: Floats, k: int) -> PickedTrees:
        trees = tuple(self.trees[c] for c in columns)
        return PickedTrees(trees, tuple(columns.tolist()), self.names, k)


@dataclass(frozen=True)
class PickedTrees:
    """The trees of a vote."""

    trees: tuple[Any, ...]
    places: tuple[int, ...]
    names: tuple[str, ...]
    k: int

    def said(self, table: Table, raw: Any) -> Ints:
        """Class code that each tree gives each row."""
        X = ordinal_matrix(in_order(table, map(table.place, self.names)))
        return np.column_stack([tree.predict_proba(X).argmax(1) for tree in self.trees])

    def votes(self, table: Table, raw: Any) -> Floats:
        X = ordinal_matrix(in_order(table, map(table.place, self.names)))
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
