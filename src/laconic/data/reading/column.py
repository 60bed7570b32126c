"""How one column is read: its kind, how its texts are written, what it becomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

Kind = Literal[
    "number", "yes/no", "date", "date-time", "time", "duration", "code", "category", "text", "id",
    "constant", "empty", "dropped",
]  # fmt: skip
LEFT_OUT = ("text", "id", "constant", "empty", "dropped")
"""Nothing of these is read, but for the words of a text."""
REFERENCE = "2020-01-01"
"""Dates become days since this day."""
PARTS = {"days": f"days since {REFERENCE}", "weekday": "weekday", "month": "month", "hour": "hour"}


@dataclass(frozen=True)
class ColumnReading:
    """How one column is read. ``said`` is one sentence on what was found, and why.

    >>> ColumnReading("born", "date", parts=("days", "month")).made
    ('born: days since 2020-01-01', 'born: month')
    """

    name: str
    kind: Kind
    said: str = ""
    notable: bool = False
    """Whether a reader should know: cells taken for missing, texts turned into numbers, ..."""
    decimal: str = "."
    unit: str = ""
    order: str = ""
    parts: tuple[str, ...] = ()
    """What a date becomes: days, weekday, month, hour."""
    missing: tuple[str, ...] = ()
    """Odd texts that are read as missing."""
    lenient: bool = False
    """Whether every text that cannot be read is missing: the user named the kind."""
    plain: bool = True
    """Whether the numbers are written as programs write them."""
    width: int = 0
    """Digits of a code with leading zeros, where all have as many."""
    words: tuple[str, ...] = ()
    """Words of a text that become columns: 1 where the cell has the word, 0 where it has not."""
    yes: str = ""
    no: str = ""
    """The texts of yes and no, as they stand where there is one of each."""

    @property
    def used(self) -> bool:
        return self.kind not in LEFT_OUT or bool(self.words)

    @property
    def made(self) -> tuple[str, ...]:
        """Names of the columns that the models see."""
        if not self.used:
            return ()
        if self.words:
            return tuple(f"{self.name}: {word}" for word in self.words)
        if not self.parts:
            return (self.name,)
        return tuple(f"{self.name}: {PARTS[part]}" for part in self.parts)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, those that differ from the defaults."""
        plain = ColumnReading(self.name, self.kind)
        found: dict[str, Any] = {"name": self.name, "kind": self.kind}
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if value != getattr(plain, name):
                found[name] = list(value) if isinstance(value, tuple) else value
        return found

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> ColumnReading:
        """What :meth:`to_dict` described; unknown fields and wrong types are refused."""
        plain = ColumnReading("", "number")
        fields: dict[str, Any] = {}
        for name, value in data.items():
            value = tuple(value) if isinstance(value, list) else value
            if type(value) is not type(getattr(plain, name, None)):
                raise ValueError(f"{name!r} is no field of a column reading, or not of this type")
            fields[name] = value
        if fields.get("kind") not in get_args(Kind):
            raise ValueError(f"unknown kind {fields.get('kind')!r}")
        if any(part not in PARTS for part in fields.get("parts", ())):
            raise ValueError(f"unknown parts {fields['parts']!r} of a date")
        return ColumnReading(**fields)
