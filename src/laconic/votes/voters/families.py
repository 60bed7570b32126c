"""From the ``voters`` parameter to voters laid out on the training rows.

Voters may exist already: columns of scores, fitted classifiers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from laconic._typing import Floats, Ints
from laconic.core.contract import Training
from laconic.data.tables.columns import Schema, Table, shown
from laconic.votes.columns import DenseColumns
from laconic.votes.voters.base import (
    JointErrors,
    PreparedVoters,
    VoterFamily,
    Voters,
    needs_numbers,
    reads_numbers,
)
from laconic.votes.voters.forest import ForestVoters, joint_errors
from laconic.votes.voters.kernels import KernelVoters
from laconic.votes.voters.stumps import StumpVoters


class PreparedMatrix(PreparedVoters):
    """Votes that are known on the training rows: a score matrix or fitted classifiers.

    ``values`` is (rows, voters), or (rows, voters, classes) of classifiers.
    """

    def __init__(
        self, values: Floats, picker: Callable[[Ints, Floats, int], Voters], assumption: str
    ) -> None:
        self.values, self.picker, self.assumption = values, picker, assumption

    def _of(self, k: int) -> Floats:
        return self.values if self.values.ndim == 2 else self.values[:, :, k]

    def columns(self, y: Floats, weight: Floats, k: int) -> DenseColumns:
        return DenseColumns(self._of(k), y, weight)

    def split(
        self, y: Floats, weight: Floats, k: int, train: Ints, test: Ints
    ) -> tuple[DenseColumns, DenseColumns]:
        H = self._of(k)
        return (
            DenseColumns(H[train], y[train], weight[train]),
            DenseColumns(H[test], y[test], weight[test]),
        )

    def pick(self, columns: Ints, signs: Floats, k: int) -> Voters:
        return self.picker(columns, signs, k)

    def joint_errors(self, codes: Ints, weight: Floats) -> JointErrors:
        """Share of the rows on which two classifiers err."""
        if self.values.ndim == 2:
            return super().joint_errors(codes, weight)
        wrong = self.values.argmax(2) != codes[:, None]
        return joint_errors(wrong, np.ones_like(wrong), weight)


@dataclass(frozen=True)
class PickedScores:
    """Columns of a score matrix."""

    names: tuple[str, ...]
    signs: tuple[float, ...]

    def votes(self, table: Table, raw: Any) -> Floats:
        return np.asarray(score_matrix(table, self.names) * np.array(self.signs))

    def rules(self) -> list[str]:
        return _sided(self.names, self.signs)

    def __getitem__(self, k: int) -> str:
        return self.rules()[k]

    def __len__(self) -> int:
        return len(self.names)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "scores", "columns": list(self.names), "signs": list(self.signs)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PickedScores:
        found = cls(tuple(data["columns"]), tuple(float(sign) for sign in data["signs"]))
        if len(found.signs) != len(found.names) or not set(found.signs) <= {-1.0, 1.0}:
            raise ValueError("A vote of scores has a side, 1 or -1, for each column.")
        return found

    def reads(self, schema: Schema) -> bool:
        return reads_numbers(schema, self.names)


def _sided(names: Sequence[str], signs: Sequence[float]) -> list[str]:
    return [
        name if sign > 0 else f"opposite of {name}" for name, sign in zip(names, signs, strict=True)
    ]


def score_matrix(table: Table, names: tuple[str, ...]) -> Floats:
    """Columns as votes, which lie in [-1, 1]."""
    X = needs_numbers(table, "scores", names)
    outside = (np.abs(X) > 1.0).any(axis=0)
    if outside.any():
        raise ValueError(
            f"Voter {shown(names[int(outside.argmax())])} has votes outside [-1, 1]; rescale "
            "its scores, for instance 2p - 1 for a probability p."
        )
    return X


def prepare_scores(table: Table) -> PreparedMatrix:
    """voters="scores": each column of X is a voter with values in [-1, 1]."""
    X = score_matrix(table, table.names)

    def pick(columns: Ints, signs: Floats, k: int) -> PickedScores:
        return PickedScores(tuple(table.names[c] for c in columns), tuple(signs.tolist()))

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
        return np.asarray(np.column_stack(found) * np.array(self.signs))

    def rules(self) -> list[str]:
        return _sided([type(model).__name__ for model in self.models], self.signs)

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


NAMED: dict[str, StumpVoters | KernelVoters | ForestVoters] = {
    "stumps": StumpVoters(),
    "rbf": KernelVoters("rbf"),
    "linear": KernelVoters("linear"),
    "poly": KernelVoters("poly"),
    "forest": ForestVoters(),
}
SCORES = "scores"


def family_of(voters: Any) -> Any:
    """The family that a name stands for; anything else as it is."""
    if not isinstance(voters, str) or voters == SCORES:
        return voters
    if voters not in NAMED:
        raise ValueError(
            f"voters={voters!r} is not known; give one of {[*NAMED, SCORES]}, a family such "
            "as StumpVoters(...), or a list of fitted classifiers."
        )
    return NAMED[voters]


def prepare_voters(
    voters: Any, rows: Training, raw: Any, classes: Any, seed: int
) -> PreparedVoters:
    """Turn the ``voters`` parameter and the training rows into prepared voters.

    ``raw`` holds the rows as they were given, for a list of fitted classifiers.
    """
    family = family_of(voters)
    if isinstance(family, VoterFamily):
        return family.prepare_rows(rows, seed)
    if isinstance(family, str):
        return prepare_scores(rows.table)
    if isinstance(family, list | tuple) and len(family):
        return prepare_classifiers(list(family), raw, classes)
    raise TypeError(
        "voters must be a name, a family of voters or a non-empty list of fitted classifiers, got "
        f"{type(voters).__name__}."
    )
