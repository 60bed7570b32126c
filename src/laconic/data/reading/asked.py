"""What the user says of the columns: kinds, which to drop or keep, which texts are missing."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from laconic.data.reading.column import ColumnReading, Kind
from laconic.data.reading.evidence import TYPED, Evidence
from laconic.data.reading.kinds import (
    Habits,
    Odd,
    clock,
    code,
    dates,
    dates_of_texts,
    decide,
    number,
    yes_no,
)
from laconic.data.reading.words import NO, YES
from laconic.data.tables.columns import shown

KINDS = (
    "number", "number-point", "number-comma", "date", "date-dmy", "date-mdy", "date-ymd", "time",
    "duration", "yes/no", "code", "category", "id",
)  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """Options of the reading; what is not named is found out from the cells.

    >>> Asked(kinds={"size": "numbr"})
    Traceback (most recent call last):
    ...
    ValueError: Column 'size' cannot be read as 'numbr'; did you mean 'number'?
    """

    kinds: Mapping[str, str] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, kind in self.kinds.items():
            if kind not in KINDS:
                near = difflib.get_close_matches(kind, KINDS, n=1, cutoff=0.5)
                hint = (
                    f"did you mean {near[0]!r}?" if near else f"the kinds are {', '.join(KINDS)}."
                )
                raise ValueError(f"Column {shown(name)} cannot be read as {kind!r}; {hint}")
        both = [name for name in self.drop if name in self.keep or name in self.kinds]
        if both:
            raise ValueError(f"Column {shown(both[0])} is to be dropped and kept; choose one.")

    @property
    def named(self) -> list[str]:
        return [*self.kinds, *self.drop, *self.keep]

    def check(self, columns: Iterable[str]) -> None:
        """Every column that is named must be there."""
        known = list(columns)
        for name in self.named:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
                hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known[:8])}."
                raise ValueError(f"There is no column {name!r} in the table; {hint}")

    def reading(self, name: str, evidence: Evidence, habits: Habits) -> ColumnReading:
        """How a column is read, the user's word first."""
        if name in self.drop:
            return ColumnReading(name, "dropped", "dropped as asked", True)
        if name in self.kinds:
            return _as_kind(name, self.kinds[name], evidence, habits)
        found = decide(name, evidence, habits)
        if name in self.keep and not found.used:
            odd, own = number(name, evidence, habits)
            digits = evidence.form == "texts" and own is not None and not odd.cells
            numeric = digits or evidence.form in ("numbers", "")
            kind: Kind = "number" if numeric else "category"
            return ColumnReading(name, kind, f"{kind}, kept as asked", True)
        return found


def _as_kind(name: str, kind: str, evidence: Evidence, habits: Habits) -> ColumnReading:
    """The column in the kind that was asked for; cells that do not fit are missing."""
    found: ColumnReading | None = None
    if kind == "id":
        return ColumnReading(name, "dropped", "identifier, as asked; left out", True)
    if kind in ("category", "code"):
        width = (code(name, evidence) or ColumnReading(name, "code")).width
        said = f"{kind}, as asked ({evidence.n_distinct:,} different)"
        return ColumnReading(
            name, "category" if kind == "category" else "code", said, True, width=width
        )
    if kind == "yes/no":
        zero_one = evidence.span is not None and (evidence.span.low, evidence.span.high) == (0, 1)
        if evidence.form == "truth" or (evidence.form == "numbers" and zero_one):
            found = ColumnReading(name, "yes/no", "yes or no", True, yes=YES, no=NO)
        else:
            found = yes_no(name, evidence)
    elif evidence.form != "texts":
        found = _typed(name, kind, evidence)
    else:
        if kind.startswith("number"):
            sign = {"number-point": ".", "number-comma": ","}.get(kind, "")
            odd, found = number(name, evidence, habits, sign)
        elif kind.startswith("date"):
            odd, found = dates_of_texts(name, evidence, habits, kind.partition("-")[2])
        else:
            odd, found = clock(name, evidence)
        found = None if odd.cells == evidence.n_filled else found
    if found is None:
        raise ValueError(f"Column {shown(name)} cannot be read as {kind}: no cell is one.")
    if not found.used:  # a number that looks like an identifier
        found = ColumnReading(name, "number", "number")
    return replace(found, said=found.said + ", as asked", notable=True, lenient=True)


def _typed(name: str, kind: str, evidence: Evidence) -> ColumnReading | None:
    """A column that came as numbers or moments already."""
    if evidence.form in ("numbers", "truth") and kind.startswith("number"):
        return ColumnReading(name, "number", "number")
    if evidence.form == "moments" and kind.startswith("date"):
        return dates(name, evidence, TYPED, Odd())
    if evidence.form == "numbers" and kind.startswith("date") and "compact" in evidence.calendars:
        return dates(name, evidence, "compact", Odd())
    if evidence.form in ("spans", "clock") and kind in ("time", "duration"):
        return ColumnReading(name, "duration", "duration, in hours")
    return None
