"""The fitted form of a kernel model: vectors, coefficients, intercept and link."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse

from laconic._typing import Floats
from laconic.core.contract import numbers_of
from laconic.core.forms import Link, n_scores_of, plain_label, probabilities, refuse_overflow
from laconic.data.tables.columns import Schema, Table
from laconic.kernel.kernels import Kernel


@dataclass(frozen=True)
class KernelScore:
    """score_k(x) = sum_j coef[k, j] k(vectors[j], x) + intercept[k].

    ``to_dict`` holds numbers and texts only, and ``from_dict`` gives the same bits back, through
    JSON too. A precomputed kernel has no vectors: ``score`` then takes its values.

    >>> form = KernelScore((0, 1), Kernel("linear"), np.eye(2), np.array([[1.0, -1.0]]), [0.5])
    >>> form.score(np.array([[2.0, 1.0]]))
    array([[1.5]])
    """

    classes: tuple[Any, ...]
    kernel: Kernel
    vectors: Any
    coef: Floats
    intercept: Floats
    link: Link = "logit"

    def __post_init__(self) -> None:
        # one memory order: the bytes of a product depend on it
        coef = np.ascontiguousarray(np.atleast_2d(np.asarray(self.coef, dtype=np.float64)))
        if isinstance(self.vectors, np.ndarray):
            object.__setattr__(self, "vectors", np.ascontiguousarray(self.vectors))
        intercept = np.atleast_1d(np.asarray(self.intercept, dtype=np.float64))
        if len(coef) != len(intercept):
            raise ValueError(f"{len(coef)} rows of coef for {len(intercept)} intercepts.")
        if self.link not in ("logit", "ovr", "identity"):
            raise ValueError(f"A kernel score has no link {self.link!r}.")
        expected = n_scores_of(self.link, len(self.classes), len(intercept))
        if len(intercept) != expected or (self.link == "logit" and len(self.classes) != 2):
            raise ValueError(f"{self.link} of {len(self.classes)} classes needs {expected} scores.")
        if not np.isfinite(intercept).all():
            raise ValueError("intercept must be finite numbers.")
        if self.vectors is not None and self.vectors.shape[0] != coef.shape[1]:
            raise ValueError(f"{coef.shape[1]} coefficients for {self.vectors.shape[0]} vectors.")
        object.__setattr__(self, "coef", coef)
        object.__setattr__(self, "intercept", intercept)

    def score(self, matrix: Any) -> Floats:
        """(rows, scores); for a precomputed kernel ``matrix`` holds k(x, vectors)."""
        step = max(1, 4_000_000 // max(self.coef.shape[1], 1))
        out = np.empty((matrix.shape[0], len(self.intercept)))
        for start in range(0, matrix.shape[0], step):
            part = matrix[start : start + step]
            K: Any = part if self.kernel.name == "precomputed" else self._values(part)
            K = K.toarray() if issparse(K) else np.asarray(K)
            with np.errstate(invalid="ignore", over="ignore"):
                out[start : start + step] = K @ self.coef.T + self.intercept
        return refuse_overflow(out)

    def _values(self, part: Any) -> Floats:
        if self.coef.shape[1] == 0:
            return np.zeros((part.shape[0], 0))
        return self.kernel.between(part, self.vectors)

    def proba(self, matrix: Any) -> Floats:
        """(rows, classes); one against rest divides sigmoids by their sum."""
        return probabilities(self.score(matrix), self.link)

    def to_dict(self) -> dict[str, Any]:
        """Numbers, texts, lists: ``json.dumps`` keeps every bit."""
        if self.kernel.function is not None:
            raise ValueError("A kernel given as a function cannot be written; use a named kernel.")
        if self.kernel.name == "precomputed":
            raise ValueError("A precomputed kernel has no vectors to write; use a named kernel.")
        vectors = self.vectors.toarray() if issparse(self.vectors) else np.asarray(self.vectors)
        return {
            "form": "kernel",
            "link": self.link,
            "classes": [plain_label(c) for c in self.classes],
            "kernel": {
                "name": self.kernel.name,
                "gamma": float(self.kernel.gamma),
                "degree": int(self.kernel.degree),
                "coef0": float(self.kernel.coef0),
            },
            "n_columns": int(vectors.shape[1]),
            "vectors": vectors.tolist(),
            "coef": self.coef.tolist(),
            "intercept": self.intercept.tolist(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> KernelScore:
        if data.get("form") != "kernel":
            raise ValueError(f"Expected a kernel form, got {data.get('form')!r}.")
        vectors = np.array(data["vectors"], dtype=np.float64).reshape(-1, int(data["n_columns"]))
        coef = np.array(data["coef"], dtype=np.float64).reshape(-1, len(vectors))
        for name, values in (("vectors", vectors), ("coef", coef)):
            if not np.isfinite(values).all():
                raise ValueError(f"{name} must be finite numbers.")
        kernel = Kernel(**data["kernel"])
        return cls(tuple(data["classes"]), kernel, vectors, coef, data["intercept"], data["link"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KernelScore) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class KernelForm:
    """A kernel score of all columns in their order; ``clip`` bounds the probabilities.

    >>> score = KernelScore((0, 1), Kernel("linear"), np.eye(2), np.array([[1.0, -1.0]]), [0.0])
    >>> table = Table(("a", "b"), ("numeric",) * 2, (None,) * 2, matrix=np.array([[3.0, 3.0]]))
    >>> KernelForm(score).proba(table).tolist()
    [[0.5, 0.5]]
    """

    score: KernelScore
    clip: tuple[float, float] | None = None
    takes_missing: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.clip is not None and not 0.0 <= self.clip[0] <= self.clip[1] <= 1.0:
            raise ValueError(f"clip must be two probabilities in order, got {self.clip}.")
        if self.clip is not None and len(self.classes) != 2:
            raise ValueError("clip bounds the probability of the last of two classes.")

    @property
    def classes(self) -> tuple[Any, ...]:
        return self.score.classes

    def proba(self, table: Table) -> Floats:
        """(rows, classes)."""
        found = self.score.proba(numbers_of(table))
        if self.clip is None:
            return found
        p = np.clip(found[:, 1], *self.clip)
        return np.column_stack([1.0 - p, p])

    def check_columns(self, schema: Schema) -> None:
        """Refuse support examples of other columns."""
        texts = any(kind == "categorical" for kind in schema.kinds)
        if texts or self.score.vectors.shape[1] != len(schema.names):
            raise ValueError("the support examples do not match the columns")

    def to_dict(self) -> dict[str, Any]:
        score = self.score.to_dict()
        clip = None if self.clip is None else list(self.clip)
        return {"form": "kernel-columns", "classes": score["classes"], "score": score, "clip": clip}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> KernelForm:
        clip = data["clip"]
        score = KernelScore.from_dict(data["score"])
        return cls(score, None if clip is None else (float(clip[0]), float(clip[1])))
