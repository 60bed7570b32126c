"""What every family of voters offers: voters laid out on the training rows, voters in a vote.

Columns and rows are put in an order of their content, so that no tie knows how they were given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from laconic._typing import Floats, Ints, Keys
from laconic.core.contract import Training
from laconic.data.row_keys import place_keys, row_keys
from laconic.data.tables.columns import Schema, Table, shown
from laconic.votes.columns import Columns
from laconic.votes.tuning import SORTED_ROWS


def column_order(keys: Keys, names: Sequence[str]) -> Ints:
    """Places of the columns, sorted by a key of their content, then by name."""
    ranked = sorted(range(len(names)), key=lambda j: (int(keys[j]), names[j]))
    return np.array(ranked, dtype=np.int64)


def row_order(rows: Training, keys: Keys) -> Ints:
    """Rows by keys of their values, class and weight: no rounding knows how they were given.

    It is a copy of the rows; beyond :data:`SORTED_ROWS` they stay where they are, and only votes
    whose optimum is not unique can tell.
    """
    if rows.n_rows > SORTED_ROWS:
        return np.arange(rows.n_rows)
    return np.asarray(np.lexsort((rows.weight, rows.y, keys)))


def take_training(rows: Training, turn: Ints) -> Training:
    """The rows in another order."""
    return Training(rows.table[turn], rows.y[turn], rows.weight[turn], rows.kept[turn])


def in_order(table: Table, places: Iterable[int]) -> Table:
    """The columns of a table in another order, as views."""
    places = list(places)
    return Table(
        tuple(table.names[j] for j in places),
        tuple(table.kinds[j] for j in places),
        tuple(table.categories[j] for j in places),
        [table.column(j) for j in places],
    )


class Voters(Protocol):
    """Voters that were picked into a vote: their votes on new rows, and what they say."""

    def votes(self, table: Table, raw: Any) -> Floats: ...

    def rules(self) -> list[str]: ...

    def __getitem__(self, k: int) -> Any: ...

    def __len__(self) -> int: ...


@runtime_checkable
class VoterFamily(Protocol):
    """What the parameter ``voters`` takes: :class:`StumpVoters` and the like, or one of yours."""

    def prepare_rows(self, rows: Training, seed: int) -> PreparedVoters:
        """The voters laid out on the training rows."""


@dataclass(frozen=True)
class JointErrors:
    """Error rates of classifiers, how often two err together, weight behind the rarest pair."""

    single: Floats
    both: Floats
    overlap: float


class PreparedVoters:
    """A family of voters laid out on the training rows; class k against the rest is a problem.

    ``sides`` names the sides on which its voters may be used when the family, and not the vote,
    decides; ``smooth`` families have neighbours that are almost the same voter; ``assumption`` is
    what a PAC-Bayes bound takes for granted of them. What follows is for voters that may be judged
    on the rows that the vote is given.
    """

    sides: str | None = None
    smooth = False
    undecided = False
    """Whether a parameter of the family is chosen together with that of the vote."""
    assumption = ""

    def options(self) -> Iterator[PreparedVoters]:
        """The families to choose from, one after the other."""
        yield self

    def columns(self, y: Floats, weight: Floats, k: int) -> Columns:
        """Their votes on the training rows."""
        raise NotImplementedError

    def split(
        self, y: Floats, weight: Floats, k: int, train: Ints, test: Ints
    ) -> tuple[Columns, Columns]:
        """Their votes on two parts of the rows, one column for each voter of the first part."""
        raise NotImplementedError

    def pick(self, columns: Ints, signs: Floats, k: int) -> Voters:
        """Some of them, each on its side, as the voters of a vote."""
        raise NotImplementedError

    def joint_errors(self, codes: Ints, weight: Floats) -> JointErrors:
        """Errors of the voters as classifiers of all classes."""
        raise ValueError(
            "multi_class='tandem' weighs whole classifiers: use voters='forest' or a list of "
            "fitted classifiers."
        )


class OutOfBagVoters(PreparedVoters):
    """Voters that must be judged on rows they have not seen, each on its own.

    ``most`` bounds the voters of a vote and ``spread`` was added to the diagonal of the products.
    """

    sides = "plain"
    most: int
    spread: float

    def moments(self, y: Floats, weight: Floats, k: int) -> tuple[Floats, Floats, float]:
        """Mean margins, mean products, and the weight of the rows behind the rarest pair."""
        raise NotImplementedError

    def honest_margins(self, y: Floats, k: int, columns: Ints, weights: Floats) -> Floats:
        """The vote on every row by the voters that have not seen it."""
        raise NotImplementedError


class Classifiers(Voters, Protocol):
    """Voters that are classifiers of all classes."""

    def said(self, table: Table, raw: Any) -> Ints:
        """Class code that each gives each row."""


@dataclass(frozen=True)
class HardVoters:
    """Classifiers that give each row one class, seen from class k: +1 for it, else -1."""

    voters: Classifiers
    k: int

    def votes(self, table: Table, raw: Any) -> Floats:
        return np.where(self.voters.said(table, raw) == self.k, 1.0, -1.0)

    def rules(self) -> list[str]:
        return self.voters.rules()

    def __getitem__(self, k: int) -> Any:
        return self.voters[k]

    def __len__(self) -> int:
        return len(self.voters)


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
    # columns stand in an order of their content here (see order.py), whatever they are called
    keys = row_keys(table, columns=place_keys(len(table.names)))
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    if y is not None:
        pair = place * (int(y.max()) + 1) + y
        _, first, place = np.unique(pair, return_index=True, return_inverse=True)
    return DistinctRows(first, place, np.bincount(place, weight).astype(np.float64))


def reads_numbers(schema: Schema, names: Sequence[str]) -> bool:
    """Whether these are columns of numbers."""
    known = dict(zip(schema.names, schema.kinds, strict=True))
    return all(known.get(name, "categorical") != "categorical" for name in names)


def needs_numbers(table: Table, who: str, names: Sequence[str] | None = None) -> Floats:
    """The matrix of numeric columns without missing values, or one clear error.

    ``names`` are the columns that a fitted vote reads, in its own order.
    """
    if names is not None:
        table = in_order(table, map(table.place, names))
    if not table.all_numeric:
        j = table.kinds.index("categorical")
        raise ValueError(
            f"Column {shown(table.names[j])} is categorical and {who} need numbers; use "
            "voters='stumps' or encode it first."
        )
    matrix = np.asarray(table.matrix(), dtype=np.float64)
    gone = np.isnan(matrix).any(axis=0)
    if gone.any():
        raise ValueError(
            f"Column {shown(table.names[int(gone.argmax())])} has missing values (NaN), which "
            f"{who} do not accept; impute them first, or use voters='stumps'."
        )
    return matrix
