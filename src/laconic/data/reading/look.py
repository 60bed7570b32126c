"""A look at a table before anything is fitted: what each column means, and what is suspicious."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2_contingency
from sklearn.metrics import roc_auc_score

from laconic.data.reading.asked import Asked
from laconic.data.reading.column import ColumnReading
from laconic.data.reading.evidence import Evidence
from laconic.data.reading.names import DISTINCT_SHARE
from laconic.data.reading.numbers import number_text
from laconic.data.reading.reading import Reading, gather
from laconic.data.row_keys import row_keys
from laconic.data.tables.columns import Table, shown
from laconic.data.tables.spoken import share_text

MANY_CLASSES = 20
"""Different numbers from which a target is rather an amount."""
LEAK = 0.99
"""Area under the curve of one column alone from which it is suspected to hold the answer."""
_BINS = 20
_FEWEST = 10
_FEWEST_ENTITIES, _MANY_ROWS, _CODE_DIGITS = 100, 10, 2
"""Texts that differ in three digits and more, a hundred of them, on less than ten rows each."""
_MOSTLY_EMPTY = 0.75
_COPIES = 0.01
_QUARTERS = 4
_SURE = 1e-4
_MOVED = 0.05


@dataclass(frozen=True)
class Look:
    """What :func:`look` found.

    Attributes
    ----------
    reading : Reading
        How the columns are read; ``LaconicClassifier(reading=...)`` takes it.
    n_rows : int
    suspicions : list of str
        One sentence each: a column that holds the answer, rows that belong together, a target
        that moves in time, classes that are hardly classes.
    classes : mapping from class to number of rows
        Where a target was given; rows without a class are not among the rows.
    n_unlabelled : int
        Rows without a class.
    """

    reading: Reading
    evidence: Mapping[str, Evidence]
    n_rows: int
    suspicions: tuple[str, ...] = ()
    classes: Mapping[str, int] = field(default_factory=dict)
    n_unlabelled: int = 0

    @property
    def title(self) -> str:
        """Rows, and the share of each class."""
        said = f"{self.n_rows:,} rows"
        if self.classes:
            most = sorted(self.classes.items(), key=lambda own: (-own[1], own[0]))
            shares = [f"{shown(name)} {_share(count, self.n_rows)}" for name, count in most[:5]]
            said += f": {', '.join(shares)}" + (", ..." if len(most) > 5 else "")
        return said + (f"; {self.n_unlabelled:,} without a class" if self.n_unlabelled else "")

    def rows(self) -> Iterator[dict[str, Any]]:
        """One mapping for each column: name, kind, missing cells, different values, a sentence."""
        for column in self.reading.columns:
            own = self.evidence[column.name]
            yield {
                "name": column.name,
                "kind": column.kind,
                "missing": own.n_missing,
                "different": own.n_distinct,
                "said": column.said,
                "becomes": list(column.made),
            }

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "rows": self.n_rows,
            "columns": list(self.rows()),
            "suspicions": list(self.suspicions),
            **({"classes": dict(self.classes)} if self.classes else {}),
            **({"without_class": self.n_unlabelled} if self.n_unlabelled else {}),
        }

    def __str__(self) -> str:
        wide = max((len(c.name) for c in self.reading.columns), default=0)
        lines = [f"{c.name:<{wide}}  {c.said}" for c in self.reading.columns]
        return "\n".join([self.title, *lines, *self.suspicions])


def _share(count: int, of: int) -> str:
    """A share in percent that reads 0 or 100 only where it is.

    >>> _share(1, 2000), _share(1999, 2000), _share(3, 3)
    ('0.05%', '99.95%', '100.0%')
    """
    return share_text(count / of)


def look(
    X: Any,
    y: Any = None,
    *,
    kinds: Mapping[str, str] | None = None,
    drop: Iterable[str] = (),
    keep: Iterable[str] = (),
    missing: Iterable[str] = (),
) -> Look:
    """What the columns of a table mean, and what is suspicious about them.

    Parameters
    ----------
    X : frame or dict of columns
    y : array of shape (n_rows,), optional
        Classes: columns that hold the answer and a target that moves in time are then looked for.
    kinds : mapping from column name to kind, optional
        "number", "number-point", "number-comma", "date", "date-dmy", "date-mdy", "date-ymd",
        "time", "duration", "yes/no", "code", "category" or "id", where the look is wrong.
    drop, keep : names of columns, optional
        To be left out, and to be kept though they look like an identifier, say.
    missing : texts, optional
        That mean "missing", beside the usual ones.

    Returns
    -------
    Look

    Examples
    --------
    >>> import laconic
    >>> paid = [f"{k},{k % 7}0 €" for k in range(30)]
    >>> table = {"paid": ["unknown", *paid[1:]], "joined": [f"{k + 1}/01/2024" for k in range(30)]}
    >>> print(laconic.look(table))
    30 rows
    paid    number in € with a decimal comma; 29 of 30 cells are numbers, 'unknown' is taken for...
    joined  date, the day first
    """
    asked = Asked(dict(kinds or {}), tuple(drop), tuple(keep), tuple(missing))
    evidence = gather(X, asked.missing)
    reading = Reading.decide(evidence, asked)
    n_rows = max((own.n_rows for own in evidence.values()), default=0)
    table = reading.apply(X) if reading.inputs else None
    labels = None if y is None else np.unique(np.asarray(y).astype(str), return_inverse=True)
    found = suspicions(reading, evidence, table, labels)
    return Look(reading, evidence, n_rows, tuple(found), class_counts(labels))


def class_counts(labels: tuple[NDArray[Any], NDArray[Any]] | None) -> dict[str, int]:
    """How many rows every class has, from its names and the place of each row among them."""
    if labels is None:
        return {}
    return dict(zip(map(str, labels[0]), np.bincount(labels[1]).tolist(), strict=True))


def suspicions(
    reading: Reading,
    evidence: Mapping[str, Evidence],
    table: Table | None,
    labels: tuple[NDArray[Any], NDArray[Any]] | None,
) -> Iterator[str]:
    """Sentences on columns that hold the answer, rows that belong together, drift."""
    if labels is not None:
        yield from _odd_classes([str(name) for name in labels[0]])
    yield from _groups(reading.columns, evidence)
    yield from _likely_groups(reading.columns, evidence)
    yield from _merged(reading.columns, evidence)
    if table is None:
        return
    keys = row_keys(table)
    copies = len(keys) - len(np.unique(keys))
    if copies > _COPIES * len(keys):
        yield (
            f"{copies:,} of {len(keys):,} rows are copies of others: they must be held out "
            "together, as laconic fit does."
        )
    if labels is not None and 2 <= len(labels[0]) <= len(keys) // _FEWEST:
        fold = (keys % np.uint64(2)).astype(np.int64)
        yield from _leaks(reading.columns, table, *labels, fold)
        yield from _drifts(reading.columns, table, *labels)


def _odd_classes(names: Sequence[str]) -> Iterator[str]:
    """Classes that one hand wrote in two ways, or that are amounts."""
    alike: dict[str, list[str]] = {}
    for name in names:
        alike.setdefault(name.lower(), []).append(name)
    for own in alike.values():
        if len(own) > 1:
            said = ", ".join(map(shown, own))
            yield f"Classes {said} differ in capitals alone: write them in one way."
    if len(names) > MANY_CLASSES and all(map(number_text, names)):
        yield (
            f"The target has {len(names)} different numbers, as an amount has: cut it into a few "
            "classes."
        )


def _groups(columns: Sequence[ColumnReading], evidence: Mapping[str, Evidence]) -> Iterator[str]:
    for column in columns:
        own = evidence[column.name]
        repeated = own.n_distinct < DISTINCT_SHARE * own.n_filled
        if column.kind == "id" and repeated:
            yield (
                f"Column {shown(column.name)} has {own.n_filled / own.n_distinct:.1f} rows for "
                "each value: rows that belong together should be held out together."
            )


def _likely_groups(
    columns: Sequence[ColumnReading], evidence: Mapping[str, Evidence]
) -> Iterator[str]:
    """Codes of one form, each on a few rows, whatever their column is called: P0001, P0002, ..."""
    for column in columns:
        own = evidence[column.name]
        few_rows = own.n_distinct > _FEWEST_ENTITIES and own.n_filled < _MANY_ROWS * own.n_distinct
        if column.kind == "category" and few_rows and _one_form(own):
            yield (
                f"Column {shown(column.name)} has {own.n_filled / own.n_distinct:.1f} rows for "
                f"each value: if each is a person or a thing that comes again, say --group "
                f"{shown(column.name)}."
            )


def _merged(columns: Sequence[ColumnReading], evidence: Mapping[str, Evidence]) -> Iterator[str]:
    """Texts in few of the cells: a spreadsheet leaves merged cells empty but the first."""
    for column in columns:
        own = evidence[column.name]
        if column.kind == "category" and own.n_missing > _MOSTLY_EMPTY * own.n_rows:
            yield (
                f"Column {shown(column.name)} is empty in {_share(own.n_missing, own.n_rows)} of "
                "the rows: if its cells were merged in a spreadsheet, fill them down."
            )


def _one_form(evidence: Evidence) -> bool:
    """Whether the texts differ in their digits alone, of which there are several."""
    texts = [text for own in evidence.sorts.values() for text in own.kept]
    forms = {re.sub("[0-9]", "1", text) for text in texts}
    return len(forms) == 1 and min(forms).count("1") > _CODE_DIGITS and not min(forms).isdigit()


def _leaks(
    columns: Sequence[ColumnReading],
    table: Table,
    classes: NDArray[Any],
    y: NDArray[Any],
    fold: NDArray[np.int64],
) -> Iterator[str]:
    for column in columns:
        for name in column.made:
            score = max(
                _area(_cells(table, table.place(name)), y == k, fold) for k in range(len(classes))
            )
            if score > LEAK:
                yield (
                    f"Column {shown(column.name)} alone tells the target (AUC {score:.3f}): is it "
                    "known before the decision? If not, --drop it."
                )
                break


def _cells(table: Table, j: int) -> NDArray[np.int64]:
    """A few cells of a column: texts, or quantiles of numbers; missing is one more."""
    values = table.column(j)
    if table.kinds[j] == "categorical":
        return np.asarray(values + 1, dtype=np.int64)
    gone = np.isnan(values)
    if gone.all():
        return np.zeros(len(values), dtype=np.int64)
    cuts = np.unique(np.quantile(values[~gone], np.linspace(0, 1, _BINS + 1)[1:-1]))
    return np.where(gone, 0, 1 + np.searchsorted(cuts, values, "left"))


def _area(cells: NDArray[np.int64], hit: NDArray[np.bool_], fold: NDArray[np.int64]) -> float:
    """Area under the curve of the share of hits in a row's cell, counted on the other half."""
    if min(hit.sum(), (~hit).sum()) < _FEWEST:
        return 0.0
    score = np.empty(len(hit))
    for half in (0, 1):
        other = fold != half
        n = np.bincount(cells[other], minlength=cells.max() + 1)
        hits = np.bincount(cells[other], hit[other], minlength=cells.max() + 1)
        mean = hit[other].mean() if other.any() else 0.5
        score[~other] = ((hits + mean) / (n + 1.0))[cells[~other]]
    return float(roc_auc_score(hit, score))


def _drifts(
    columns: Sequence[ColumnReading], table: Table, classes: NDArray[Any], y: NDArray[Any]
) -> Iterator[str]:
    rarest = int(np.bincount(y).argmin())
    for column in columns:
        if column.kind not in ("date", "date-time"):
            continue
        days = table.column(table.place(column.made[0]))
        there = ~np.isnan(days)
        cuts = np.unique(np.quantile(days[there], np.linspace(0, 1, _QUARTERS + 1)[1:-1]))
        quarter, hit = np.searchsorted(cuts, days[there], "left"), y[there] == rarest
        counts = np.array(
            [[np.sum(hit[quarter == q] == v) for v in (0, 1)] for q in np.unique(quarter)]
        )
        if len(counts) < 2 or not (counts.sum(axis=0) > 0).all():
            continue
        share = counts[:, 1] / counts.sum(axis=1)
        if chi2_contingency(counts).pvalue < _SURE and np.ptp(share) > _MOVED:
            yield (
                f"The share of {shown(str(classes[rarest]))} moves with {shown(column.name)}, "
                f"from {share[0]:.0%} of the earliest quarter to {share[-1]:.0%} of the latest: "
                "judge the model on later rows than those it learns from."
            )
