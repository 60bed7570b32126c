"""The fitted form of a kernel model: vectors, coefficients, intercept and link."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from laconic._typing import Floats
from laconic.core.contract import numbers_of
from laconic.core.explanation import Explanation, TableCells
from laconic.core.forms import Link, n_scores_of, plain_label, probabilities, refuse_overflow
from laconic.data.tables.columns import Schema, Table
from laconic.kernel.kernels import Kernel

_CELLS = 400_000
"""Factors of kernel values held at once while rows are explained: some megabytes."""


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
        if (coef.ndim, intercept.ndim) != (2, 1):
            raise ValueError("coef must be rows of numbers and intercept a list of them.")
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

    @property
    def explains(self) -> bool:
        """Whether :meth:`shapley` has a closed form: gaussian and linear kernels of dense rows."""
        known = self.kernel.function is None and self.kernel.name in ("rbf", "linear")
        return known and isinstance(self.vectors, np.ndarray)

    def shapley(self, matrix: Floats, reference: Floats, parts: Sequence[slice]) -> Floats:
        r"""Shapley values of groups of features against one reference row, (rows, groups, scores).

        A gaussian kernel is a product over the groups, :math:`k(v, x) = \prod_g a_g`. With
        :math:`b_g` the factors of the reference, the value of group g in this product is

        .. math:: (a_g - b_g) \int_0^1 \prod_{l \ne g} (t a_l + (1 - t) b_l) \, dt,

        a polynomial in t of a degree below the number of groups, which Gauss's rule integrates
        exactly with half as many nodes. Values of all groups sum to the score of the row less that
        of the reference.

        >>> vectors, coef = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[1.0, 2.0]])
        >>> form = KernelScore((0, 1), Kernel("rbf"), vectors, coef, [0.5])
        >>> rows, zero = np.array([[1.0, 0.5]]), np.zeros((1, 2))
        >>> form.shapley(rows, zero[0], [slice(0, 1), slice(1, 2)])[0, :, 0].round(4)
        array([ 0.762 , -0.0215])
        >>> (form.score(rows) - form.score(zero)).round(4)
        array([[0.7405]])
        """
        if not self.explains:
            raise ValueError(f"A kernel {self.kernel.name!r} has no exact contributions.")
        if self.kernel.name == "linear":
            weights = self.coef @ np.asarray(self.vectors)
            each = (matrix - reference)[:, :, None] * weights.T
            return np.stack([each[:, own].sum(axis=1) for own in parts], axis=1)
        vectors, gamma = np.asarray(self.vectors), self.kernel.gamma
        far = [np.exp(-gamma * ((vectors - reference)[:, own] ** 2).sum(axis=1)) for own in parts]
        nodes, weights = np.polynomial.legendre.leggauss(max(1, (len(parts) + 1) // 2))
        out = np.empty((len(matrix), len(parts), len(self.intercept)))
        step = max(1, _CELLS // max(1, len(vectors) * len(parts)))
        for start in range(0, len(matrix), step):
            rows = matrix[start : start + step]
            near = [_gaussian(rows[:, own], vectors[:, own], gamma) for own in parts]
            between = np.zeros((len(parts), len(rows), len(vectors)))
            for t, weight in zip((nodes + 1.0) / 2.0, weights / 2.0, strict=True):
                mixed = [t * a + (1.0 - t) * b for a, b in zip(near, far, strict=True)]
                between += weight * _products_of_others(mixed)
            for g, (a, b) in enumerate(zip(near, far, strict=True)):
                out[start : start + step, g] = ((a - b) * between[g]) @ self.coef.T
        return out

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


def _gaussian(rows: Floats, vectors: Floats, gamma: float) -> Floats:
    """exp(-gamma |x - v|^2) of few features, (rows, vectors)."""
    squares = sum((rows[:, j, None] - vectors[:, j]) ** 2 for j in range(rows.shape[1]))
    return np.asarray(np.exp(-gamma * squares))


def _products_of_others(factors: Sequence[Floats]) -> Floats:
    """For each factor the product of all others; none is divided by, since one may be zero.

    >>> _products_of_others([np.array([2.0]), np.array([3.0]), np.array([0.0])]).ravel()
    array([0., 0., 6.])
    """
    found = np.ones((len(factors), *factors[0].shape))
    ahead, behind = np.ones_like(factors[0]), np.ones_like(factors[0])
    for g, own in enumerate(factors):
        found[g] *= ahead
        ahead = ahead * own
    for g in range(len(factors) - 1, -1, -1):
        found[g] *= behind
        behind = behind * factors[g]
    return found


def explain_kernel(
    score: KernelScore,
    classes: NDArray[Any],
    features: tuple[Floats, Floats],
    columns: Sequence[tuple[slice, str]],
    table: Table,
) -> Explanation:
    """What each column adds to the scores, from the reference to the rows of ``features``."""
    rows, reference = features
    given = score.shapley(rows, reference, [own for own, _ in columns])
    names = tuple(name for _, name in columns)
    cells = TableCells(table, tuple((name,) for name in names))
    base = score.score(reference[None, :])[0]
    return Explanation(names, classes, base, given, cells, score.link == "logit")


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

    @property
    def explains(self) -> bool:
        return self.score.explains

    def explain(self, classes: NDArray[Any], table: Table) -> Explanation:
        """Shapley values of the columns against the mean of the support examples."""
        columns = [(slice(j, j + 1), name) for j, name in enumerate(table.names)]
        features = (numbers_of(table), np.asarray(self.score.vectors).mean(axis=0))
        return explain_kernel(self.score, classes, features, columns, table)

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
