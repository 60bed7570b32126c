"""Kernel voters: one per training row, or per landmark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from laconic._typing import Floats, Ints
from laconic.core.contract import Training
from laconic.data.tables.columns import Schema, Table
from laconic.votes.columns import DenseColumns
from laconic.votes.tuning import WIDTHS
from laconic.votes.voters.base import (
    PreparedVoters,
    distinct_rows,
    needs_numbers,
    reads_numbers,
)

_KERNELS = ("rbf", "linear", "poly")


@dataclass(frozen=True)
class KernelVoters:
    """Voters k(centre, x), with centres at the distinct training rows or at k-means landmarks.

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly"}, default="rbf"
    gamma : float, "cv" or None, default=None
        None is 1/n_features. "cv" tries 0.02, 0.1, 0.5 and 2 times that and keeps the one of least
        held-out loss, chosen together with the parameter of the vote.
    standardise : bool, default=True
        Give every column mean 0 and spread 1 first. Columns of one unit (pixels) are better left.
    degree, coef0 : int and float
        Of the polynomial kernel.
    n_landmarks : int or None, default=None
        None puts a voter at every training row, a number at each of that many k-means centres.
    constant : bool, default=True
        Offer a constant voter.

    Notes
    -----
    Linear and polynomial kernels are divided by sqrt(k(x,x) k(z,z)): a vote must lie in [-1, 1] on
    every row, also on new ones.

    Examples
    --------
    >>> from laconic import CqBoostClassifier
    >>> from laconic.votes import KernelVoters
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(120, noise=0.2, random_state=0)
    >>> model = CqBoostClassifier(KernelVoters(gamma=2.0)).fit(X, y)
    >>> bool(model.n_voters_[0] < 60), model.score(X, y) > 0.9
    (True, True)
    """

    kernel: str = "rbf"
    gamma: float | str | None = None
    degree: int = 3
    coef0: float = 1.0
    n_landmarks: int | None = None
    constant: bool = True
    standardise: bool = True

    def prepare_rows(self, rows: Training, seed: int) -> PreparedKernels | PreparedWidths:
        return self.prepare(rows.table, rows.weight, seed)

    def prepare(self, table: Table, weight: Floats, seed: int) -> PreparedKernels | PreparedWidths:
        self._check()
        if self.gamma == "cv":
            return PreparedWidths(self, table, weight, seed)
        return self.at_width(table, weight, seed)

    def _check(self) -> None:
        whole = isinstance(self.degree, Integral) and self.degree >= 1
        if not whole or not (isinstance(self.coef0, Real) and self.coef0 >= 0):
            raise ValueError(
                "degree must be a whole number of at least 1 and coef0 not negative, got "
                f"{self.degree!r} and {self.coef0!r}."
            )
        if self.kernel not in _KERNELS:
            raise ValueError(f"kernel must be one of {_KERNELS}, got {self.kernel!r}.")
        gamma = self.gamma
        chosen = gamma is None or (gamma == "cv" and self.kernel != "linear")
        if not chosen and not (isinstance(gamma, Real) and gamma > 0):
            raise ValueError(
                "gamma must be a positive number, None, or 'cv' (not for the linear kernel), got "
                f"{self.gamma!r}."
            )

    def at_width(self, table: Table, weight: Floats, seed: int) -> PreparedKernels:
        """The voters of one width."""
        X = needs_numbers(table, "kernel voters")
        kinds = distinct_rows(table, weight)
        centre, spread = np.zeros(X.shape[1]), np.ones(X.shape[1])
        if self.standardise:
            centre, spread = _location(X[kinds.first], kinds.weight)
        gamma = 1.0 / X.shape[1] if self.gamma is None else float(self.gamma)
        map_ = KernelMap(table.names, self.kernel, gamma, self.degree, self.coef0, centre, spread)
        Z = map_.standardise(X)
        if self.n_landmarks is None:
            return PreparedKernels(map_, Z, Z[kinds.first], kinds.place, constant=self.constant)
        from sklearn.cluster import KMeans

        wanted = min(self.n_landmarks, len(np.unique(Z, axis=0)))
        means = KMeans(wanted, n_init=1, random_state=seed)
        means.fit(Z[kinds.first], sample_weight=kinds.weight)
        return PreparedKernels(map_, Z, means.cluster_centers_, None, constant=self.constant)


def _location(X: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Weighted mean and spread per column, safe at any scale."""
    size = np.abs(X).max(axis=0)
    size[size == 0.0] = 1.0
    part = weight / weight.sum()
    scaled = X / size
    mean = part @ scaled
    spread = np.sqrt(part @ (scaled - mean) ** 2)
    spread[spread <= 1e-12] = 1.0
    return mean * size, np.maximum(spread * size, np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class KernelMap:
    """A normalised kernel on standardised columns, in the order of ``names``."""

    names: tuple[str, ...]
    kernel: str
    gamma: float
    degree: int
    coef0: float
    centre: Floats
    spread: Floats

    def to_dict(self) -> dict[str, Any]:
        return {
            "columns": list(self.names),
            "kernel": self.kernel,
            "gamma": float(self.gamma),
            "degree": int(self.degree),
            "coef0": float(self.coef0),
            "centre": self.centre.tolist(),
            "spread": self.spread.tolist(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> KernelMap:
        names = tuple(data["columns"])
        centre, spread = (np.array(data[part], dtype=np.float64) for part in ("centre", "spread"))
        gamma, degree, coef0 = float(data["gamma"]), int(data["degree"]), float(data["coef0"])
        if data["kernel"] not in _KERNELS or not (np.isfinite(gamma) and gamma > 0.0):
            raise ValueError("A vote of kernels needs a known kernel and a positive gamma.")
        if degree < 1 or not (np.isfinite(coef0) and coef0 >= 0.0):
            raise ValueError("A vote of kernels needs a degree of at least 1 and coef0 >= 0.")
        if not len(names) or centre.shape != (len(names),) or spread.shape != (len(names),):
            raise ValueError("A vote of kernels needs a centre and a spread for each column.")
        if not np.isfinite(centre).all() or not (np.isfinite(spread) & (spread > 0.0)).all():
            raise ValueError("Centres must be finite, spreads positive and finite.")
        return cls(names, str(data["kernel"]), gamma, degree, coef0, centre, spread)

    def standardise(self, X: Floats) -> Floats:
        return X / self.spread - self.centre / self.spread

    def between(self, Z: Floats, centres: Floats) -> Floats:
        """(rows, centres), in [-1, 1] at any scale."""
        if self.kernel == "rbf":
            from scipy.spatial.distance import cdist

            with np.errstate(over="ignore"):  # an infinite distance is a kernel of zero
                return np.asarray(np.exp(-self.gamma * cdist(Z, centres, "sqeuclidean")))
        cosine = np.clip(self._directions(Z) @ self._directions(centres).T, -1.0, 1.0)
        return np.asarray(cosine if self.kernel == "linear" else cosine**self.degree)

    def _directions(self, Z: Floats) -> Floats:
        """Rows of length one; their products are the normalised kernel, up to the degree.

        (gamma z.c + coef0)^degree over its own norms is the power of a cosine, that of the rows
        with one more entry sqrt(coef0 / gamma).
        """
        if self.kernel == "poly":
            Z = np.column_stack([Z, np.full(len(Z), np.sqrt(self.coef0 / self.gamma))])
        size = np.abs(Z).max(axis=1, keepdims=True)
        scaled = Z / np.where(size > 0.0, size, 1.0)  # squares neither overflow nor vanish
        norm = np.sqrt((scaled * scaled).sum(axis=1, keepdims=True))
        return np.asarray(scaled / np.where(norm > 0.0, norm, 1.0))


@dataclass(frozen=True)
class PickedKernels:
    """Centres of a vote and the side each speaks for; a row of NaN is the constant voter."""

    map: KernelMap
    centres: Floats
    signs: Floats

    def votes(self, table: Table, raw: Any) -> Floats:
        X = needs_numbers(table, "kernel voters", self.map.names)
        Z = self.map.standardise(X)
        constant = np.isnan(self.centres[:, 0])
        out = np.ones((len(Z), len(self.signs)))
        out[:, ~constant] = self.map.between(Z, self.centres[~constant])
        return out * self.signs

    def rules(self) -> list[str]:
        names = []
        for centre, sign in zip(self.centres, self.signs, strict=True):
            if np.isnan(centre[0]):
                names.append("always" if sign > 0 else "never")
                continue
            where = zip(self.map.names, centre * self.map.spread + self.map.centre, strict=True)
            place = ", ".join(f"{name} {x:.3g}" for name, x in sorted(where))
            names.append(f"{'near' if sign > 0 else 'unlike'} ({place})")
        return names

    def __getitem__(self, k: int) -> str:
        return self.rules()[k]

    def __len__(self) -> int:
        return len(self.signs)

    def to_dict(self) -> dict[str, Any]:
        """A constant voter has no centre."""
        constant = np.isnan(self.centres[:, 0])
        return {
            "kind": "kernels",
            **self.map.to_dict(),
            "centres": [
                None if gone else centre.tolist()
                for gone, centre in zip(constant, self.centres, strict=True)
            ],
            "signs": self.signs.tolist(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PickedKernels:
        map_ = KernelMap.from_dict(data)
        nowhere = [np.nan] * len(map_.names)
        rows = [nowhere if centre is None else centre for centre in data["centres"]]
        centres = np.array(rows, dtype=np.float64).reshape(len(rows), len(map_.names))
        known = np.array([centre is not None for centre in data["centres"]], dtype=bool)
        signs = np.array(data["signs"], dtype=np.float64)
        if not np.isfinite(centres[known]).all() or signs.shape != (len(centres),):
            raise ValueError("Centres of a vote must be finite, with a side for each.")
        if not np.isin(signs, (-1.0, 1.0)).all():
            raise ValueError("Sides of a vote must be 1 or -1.")
        return cls(map_, centres, signs)

    def reads(self, schema: Schema) -> bool:
        return reads_numbers(schema, self.map.names)


class PreparedWidths(PreparedVoters):
    """Kernel voters whose width is still to be chosen."""

    undecided = True

    def __init__(self, voters: KernelVoters, table: Table, weight: Floats, seed: int) -> None:
        self.voters, self.table, self.weight, self.seed = voters, table, weight, seed

    def options(self) -> Iterator[PreparedKernels]:
        """One width after the other: their kernel values are not held together."""
        for width in WIDTHS:
            voters = replace(self.voters, gamma=width / self.table.shape[1])
            yield voters.at_width(self.table, self.weight, self.seed)


class PreparedKernels(PreparedVoters):
    """Kernel values between the training rows and the centres, then the constant voters.

    ``owner`` is the centre of each training row, None when the centres are landmarks.
    """

    smooth = True
    assumption = (
        "kernel voters are centred on training rows, so the prior depends on the sample: the value "
        "is indicative unless the centres are held-out or unlabelled points"
    )

    def __init__(
        self, map_: KernelMap, Z: Floats, centres: Floats, owner: Ints | None, *, constant: bool
    ) -> None:
        self.map, self.owner, self.n_constants = map_, owner, int(constant)
        self.n_centres = len(centres)
        self.centres = np.vstack([centres, np.full((self.n_constants, Z.shape[1]), np.nan)])
        ones = np.ones((len(Z), self.n_constants))
        self.values = np.hstack([map_.between(Z, centres), ones])

    def _copies(self, rows: Any, weight: Floats) -> Floats:
        """How many rows have each centre, a weight counting as that many; 1 for other voters."""
        copies = np.ones(len(self.centres))
        if self.owner is not None:
            found = np.bincount(self.owner[rows], weight[rows], minlength=self.n_centres)
            copies[: self.n_centres] = found
        return copies

    def columns(self, y: Floats, weight: Floats, k: int) -> DenseColumns:
        return DenseColumns(self.values, y, weight, self._copies(slice(None), weight))

    def split(
        self, y: Floats, weight: Floats, k: int, train: Ints, test: Ints
    ) -> tuple[DenseColumns, DenseColumns]:
        """Centres at held-out rows are withheld, as they will be for new rows."""
        copies = self._copies(train, weight)
        kept = np.flatnonzero(copies)
        H, copies = self.values[:, kept], copies[kept]
        return (
            DenseColumns(H[train], y[train], weight[train], copies),
            DenseColumns(H[test], y[test], weight[test], copies),
        )

    def pick(self, columns: Ints, signs: Floats, k: int) -> PickedKernels:
        return PickedKernels(self.map, self.centres[columns], signs)
