"""Decision stumps: one question of one column, never built as a matrix of votes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints
from laconic.core.contract import Training
from laconic.data.tables.columns import MISSING, Table
from laconic.votes.columns import StumpColumns, StumpLayout
from laconic.votes.voters.base import PreparedVoters


@dataclass(frozen=True)
class StumpVoters:
    """Decision stumps: "column > threshold", "column is category", "column is present".

    Parameters
    ----------
    thresholds : {"equal", "quantile", "midpoints"}, default="equal"
        Equally spaced strictly inside the range of each column, at its (weighted) quantiles, or
        at every midpoint between consecutive values.
    n_thresholds : int, default=10
        Thresholds per numeric column; "midpoints" ignores it.
    constant : bool, default=True
        Offer the voter that always says yes. The slides have none, and without it no vote of
        stumps can lean to the larger class.

    Notes
    -----
    A missing number is below every threshold, and a column with missing values has one more stump
    "column is present". A category that was not there at fit is no category.

    Examples
    --------
    >>> from laconic import CqBoostClassifier
    >>> from laconic.votes import StumpVoters
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> model = CqBoostClassifier(StumpVoters("midpoints"), mu="least-squares").fit(X, y)
    >>> print(model.voters_[0][0])
    x0 > 1.5
    """

    thresholds: str = "equal"
    n_thresholds: int = 10
    constant: bool = True

    def cuts(self, values: Floats, weight: Floats) -> Floats:
        """Sorted thresholds of one numeric column; -inf stands for "is present"."""
        present = ~np.isnan(values)
        lead = [-np.inf] if not present.all() and present.any() else []
        distinct, place = np.unique(values[present], return_inverse=True)
        if len(distinct) < 2:
            return np.array(lead)
        middle = distinct[:-1] + (distinct[1:] / 2 - distinct[:-1] / 2)
        # midpoints of neighbouring floats may round onto the upper one
        middle = np.where(middle >= distinct[1:], distinct[:-1], middle)
        if self.thresholds == "midpoints":
            return np.concatenate([lead, middle])
        part = np.arange(1, self.n_thresholds + 1) / (self.n_thresholds + 1)
        if self.thresholds == "quantile":
            share = np.cumsum(np.bincount(place, weight[present])).astype(np.float64)
            share /= share[-1]
            at = np.unique(np.minimum(np.searchsorted(share, part - 1e-12), len(middle) - 1))
            return np.concatenate([lead, middle[at]])
        if self.thresholds != "equal":
            raise ValueError(
                f"thresholds must be 'equal', 'quantile' or 'midpoints', got {self.thresholds!r}."
            )
        spaced = distinct[0] * (1.0 - part) + distinct[-1] * part
        spaced = spaced[(spaced >= distinct[0]) & (spaced < distinct[-1])]
        return np.concatenate([lead, spaced])

    def prepare_rows(self, rows: Training, seed: int) -> PreparedStumps:
        return self.prepare(rows.table, rows.weight)

    def prepare(self, table: Table, weight: Floats) -> PreparedStumps:
        self.check()
        cuts, absent = [], []
        for j, kind in enumerate(table.kinds):
            categorical = kind == "categorical"
            absent.append(categorical and bool((table.column(j) == MISSING).any()))
            cuts.append(np.zeros(0) if categorical else self.cuts(table.column(j), weight))
        return self.laid_out(table, cuts, absent)

    def check(self) -> None:
        if self.n_thresholds < 1:
            raise ValueError(f"n_thresholds must be at least 1, got {self.n_thresholds}.")

    def laid_out(self, table: Table, cuts: list[Floats], absent: list[bool]) -> PreparedStumps:
        """The stumps of given thresholds; ``absent`` says which columns have missing values."""
        starts, firsts = [0], [0]
        for j, kind in enumerate(table.kinds):
            if kind == "categorical":
                categories = len(table.categories[j] or ())
                # bins: categories, missing, anything else
                starts.append(starts[-1] + categories + 2)
                firsts.append(firsts[-1] + _category_stumps(categories, absent[j]))
            else:
                starts.append(starts[-1] + len(cuts[j]) + 1)
                firsts.append(firsts[-1] + len(cuts[j]))
        ordered = [kind != "categorical" for kind in table.kinds]
        if self.constant:  # one more feature whose code is always above its only cut
            starts.append(starts[-1] + 2)
            firsts.append(firsts[-1] + 1)
            ordered.append(True)
        if firsts[-1] == 0:
            raise ValueError("Every column is constant: no decision stump can be made of them.")
        layout = StumpLayout(np.array(starts), np.array(firsts), np.array(ordered))
        return PreparedStumps(table, cuts, layout)


def _category_stumps(categories: int, absent: bool) -> int:
    kinds = categories + absent
    return 0 if kinds < 2 else (1 if kinds == 2 else kinds)


def stump_codes(table: Table, cuts: list[Floats], layout: StumpLayout) -> NDArray[Any]:
    """The bin of every row in every feature of the layout."""
    width = int(np.diff(layout.start).max())
    kind = np.uint8 if width <= 256 else np.uint16 if width <= 65_536 else np.uint32
    codes = np.ones((table.n_rows, len(layout.ordered)), dtype=kind, order="F")
    for j in range(table.shape[1]):
        values = table.column(j)
        if table.kinds[j] == "categorical":
            categories = len(table.categories[j] or ())
            code = np.where(values == MISSING, categories, values)
            codes[:, j] = np.where(code < 0, categories + 1, code)
        else:
            code = np.searchsorted(cuts[j], values, side="left")
            codes[:, j] = np.where(np.isnan(values), 0, code)
    return codes


@dataclass(frozen=True)
class Stump:
    """One rule: +1 where it holds, -1 elsewhere; without a name it always holds."""

    name: str | None
    threshold: float | None = None
    category: str | None = None
    holds: bool = True

    def __str__(self) -> str:
        if self.name is None:
            return "always" if self.holds else "never"
        if self.threshold is not None and self.threshold == -np.inf:
            return f"{self.name} is present" if self.holds else f"{self.name} is missing"
        if self.threshold is not None:
            # a missing number counts as below: the complement of ">" is "not above"
            return f"{self.name} {'>' if self.holds else '<='} {self.threshold:.6g}"
        said = "missing" if self.category is None else repr(self.category)
        return f"{self.name} is {'' if self.holds else 'not '}{said}"

    def answers(self, table: Table) -> NDArray[np.bool_]:
        """Whether it holds, row by row."""
        if self.name is None:
            return np.full(table.n_rows, self.holds)
        j = table.place(self.name)
        values, known = table.column(j), table.categories[j]
        if known is None:
            yes = values > self.threshold  # False for NaN
        elif self.category is None:
            yes = values == MISSING
        else:
            yes = values == known.index(self.category)
        return np.asarray(yes if self.holds else ~yes)


@dataclass(frozen=True)
class PickedStumps:
    """The stumps of a vote, on their own."""

    stumps: tuple[Stump, ...]

    def votes(self, table: Table, raw: Any) -> Floats:
        out = np.empty((table.n_rows, len(self.stumps)))
        for k, stump in enumerate(self.stumps):
            out[:, k] = np.where(stump.answers(table), 1.0, -1.0)
        return out

    def rules(self) -> list[str]:
        return [str(stump) for stump in self.stumps]

    def __getitem__(self, k: int) -> Stump:
        return self.stumps[k]

    def __len__(self) -> int:
        return len(self.stumps)


class PreparedStumps(PreparedVoters):
    """Stumps laid out on the training rows."""

    assumption = (
        "the thresholds were placed with the training inputs; the uniform prior over stumps is "
        "independent of the sample only if they come from unlabelled or held-out rows"
    )

    def __init__(self, table: Table, cuts: list[Floats], layout: StumpLayout) -> None:
        self.table, self.cuts, self.layout = table, cuts, layout
        self.codes = stump_codes(table, cuts, layout)

    def columns(self, y: Floats, weight: Floats, k: int) -> StumpColumns:
        return StumpColumns(self.codes, self.layout, y, weight)

    def split(
        self, y: Floats, weight: Floats, k: int, train: Ints, test: Ints
    ) -> tuple[StumpColumns, StumpColumns]:
        whole = self.columns(y, weight, k)
        return whole.take(train), whole.take(test)

    def pick(self, columns: Ints, signs: Floats, k: int) -> PickedStumps:
        layout, found = self.layout, []
        for s, j, sign in zip(columns, layout.feature(columns), signs, strict=True):
            b, holds = int(s - layout.first[j]), bool(sign > 0)
            if j == len(self.cuts):
                found.append(Stump(None, holds=holds))
                continue
            name, known = self.table.names[j], self.table.categories[j] or ()
            if layout.ordered[j]:
                found.append(Stump(name, threshold=float(self.cuts[j][b]), holds=holds))
            else:
                found.append(
                    Stump(name, category=known[b] if b < len(known) else None, holds=holds)
                )
        return PickedStumps(tuple(found))
