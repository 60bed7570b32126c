"""The fitted form of a linear score on numbers: one product, dense or sparse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse

from laconic._typing import Floats
from laconic.core.contract import numbers_of
from laconic.core.forms import AdditiveScore, Link, linear_score, probabilities, refuse_overflow
from laconic.data.tables.columns import Table


def numbers(table: Table) -> Any:
    """The rows as float64: C-ordered, or CSR."""
    matrix = numbers_of(table)
    return matrix.astype(np.float64, copy=False) if issparse(matrix) else matrix


@dataclass(frozen=True)
class LinearScore:
    """``X @ coef.T + intercept`` over all columns in their order; ``clip`` bounds probabilities.

    >>> table = Table(("x",), ("numeric",), (None,), matrix=np.array([[0.0], [2.0]]))
    >>> LinearScore(("no", "yes"), np.array([[1.0]]), np.array([0.0])).score(table).ravel().tolist()
    [0.0, 2.0]
    """

    classes: tuple[Any, ...]
    coef: Floats
    intercept: Floats
    link: Link = "logit"
    clip: tuple[float, float] | None = None
    takes_missing: ClassVar[bool] = False

    def __post_init__(self) -> None:
        # one memory order: the bytes of a product depend on it
        object.__setattr__(self, "coef", np.ascontiguousarray(self.coef, dtype=np.float64))
        object.__setattr__(self, "intercept", np.array(self.intercept, dtype=np.float64))
        n_scores = 1 if self.link == "logit" else len(self.classes)
        if self.link not in ("logit", "softmax", "ovr"):
            raise ValueError(f"A linear score has no link {self.link!r}.")
        if self.coef.ndim != 2 or len(self.coef) != n_scores or self.intercept.shape != (n_scores,):
            raise ValueError(f"{self.link} of {len(self.classes)} classes needs {n_scores} scores.")
        if not (np.isfinite(self.coef).all() and np.isfinite(self.intercept).all()):
            raise ValueError("coef and intercept must be finite numbers.")
        if self.clip is not None and not 0.0 <= self.clip[0] <= self.clip[1] <= 1.0:
            raise ValueError(f"clip must be two probabilities in order, got {self.clip}.")
        if self.clip is not None and len(self.classes) != 2:
            raise ValueError("clip bounds the probability of the last of two classes.")

    def score(self, table: Table) -> Floats:
        """(rows, scores)."""
        return np.asarray(numbers(table) @ self.coef.T) + self.intercept

    def proba(self, table: Table) -> Floats:
        """(rows, classes)."""
        return self.proba_of(refuse_overflow(self.score(table)))

    def proba_of(self, scores: Floats) -> Floats:
        """(rows, classes) from scores."""
        found = probabilities(scores, self.link)
        if self.clip is None:
            return found
        p = np.clip(found[:, 1], *self.clip)
        return np.column_stack([1.0 - p, p])

    def additive(self, names: Sequence[str]) -> AdditiveScore:
        """The same score as one line for each column; bounds on probabilities are left out."""
        return linear_score(self.classes, names, self.coef, self.intercept, self.link)

    def to_dict(self) -> dict[str, Any]:
        return {
            "form": "linear",
            "link": self.link,
            "classes": list(self.classes),
            "coef": self.coef.tolist(),
            "intercept": self.intercept.tolist(),
            "clip": None if self.clip is None else list(self.clip),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> LinearScore:
        clip = data["clip"]
        return cls(
            tuple(data["classes"]),
            np.array(data["coef"], dtype=np.float64),
            np.array(data["intercept"], dtype=np.float64),
            data["link"],
            None if clip is None else (float(clip[0]), float(clip[1])),
        )
