"""How the databases differ: quoting, literals, casts and the few functions that a score needs.

While a query is put together, a line of it ends in a NUL character, which no quoted name or text
holds; a line break inside quotes is then never taken for one of the layout, and is not indented.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ulp

from laconic.data.tables.cells import is_plain_number
from laconic.data.tables.columns import shown


def shortest_safe_digits(value: float) -> str:
    """Decimal digits that even a reader of limited precision turns into the same float64.

    The shortest digits that identify a float can lie close to the middle between two floats, and
    SQLite before 3.47, which reads with 64 bits, then takes the wrong one. Where they do, 17
    digits are written.

    >>> shortest_safe_digits(0.1), shortest_safe_digits(3.0)
    ('0.1', '3.0')
    """
    text = repr(float(value))
    if abs(Fraction(text) - Fraction(value)) > Fraction(ulp(value)) * Fraction(45, 100):
        text = f"{value:.17g}"
    return text


_NUMBER_IN_POSTGRES = (
    r"E'^[\\s\\u00a0\\u2007\\u2009\\u202f\\ufeff]*"
    r"([+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?)"
    r"[\\s\\u00a0\\u2007\\u2009\\u202f\\ufeff]*$'"
)
"""A number with blanks around it. Its first group is what SUBSTRING gives, NULL where none is."""

_TRUTH = {"true": "false", "t": "f", "yes": "no", "y": "n", "on": "off"}


def truth_texts(known: Sequence[str]) -> tuple[str, str] | None:
    """The texts for true and false, where a database's CSV reader would see truth values.

    >>> truth_texts(("No", "Yes")), truth_texts(("no", "yes", "unknown")), truth_texts(("a", "b"))
    (('Yes', 'No'), None, None)
    """
    by_lower = {text.lower(): text for text in known}
    if len(known) != 2 or len(by_lower) != 2 or {"true", "false"} == set(known):
        return None
    for yes, no in _TRUTH.items():
        if set(by_lower) == {yes, no}:
            return by_lower[yes], by_lower[no]
    return None


def _lost_spellings(known: Sequence[str]) -> dict[str, str]:
    """Texts of numbers as a database writes the number, and the one text that they came from.

    Codes that all have as many digits are padded instead, whatever their number.

    >>> _lost_spellings(("007", "12", "2.50", "a"))
    {'7.0': '007', '7': '007', '2.5': '2.50', '12.0': '12'}
    """
    if len({len(text) for text in known if text.isdigit()}) == 1 and all(map(str.isdigit, known)):
        return {}
    found: dict[str, list[str]] = {}
    for text in known:
        if is_plain_number(text) and text[-1] not in "yYfF":
            value = float(text)
            whole = value.is_integer() and abs(value) < 1e15
            for said in {repr(value), *([str(int(value))] if whole else [])} - set(known):
                found.setdefault(said, []).append(text)
    return {said: own[0] for said, own in sorted(found.items(), reverse=True) if len(own) == 1}


@dataclass(frozen=True)
class Dialect:
    """The SQL of one database. The defaults are those of the standard."""

    name: str
    quotes: tuple[str, str] = ('"', '"')
    identifier_escapes: tuple[tuple[str, str], ...] = (('"', '""'),)
    text_escapes: tuple[tuple[str, str], ...] = (("'", "''"),)
    text_prefix: str = ""
    text_suffix: str = ""
    """Closes every compared text, for a database that ignores spaces at the end."""
    backslash_prefix: str = ""
    """Marks a text in which a backslash is doubled, where that depends on a setting."""
    nul: str | None = "CHR(0)"
    join: str = " || "
    number: str = "{}"
    """Wraps decimal digits into a literal of a 64-bit float."""
    needs_exponent: bool = False
    float_type: str = "DOUBLE PRECISION"
    truth_cell: str = "{0}"
    """Turns truth values into numbers, where a cast to a float does not."""
    as_text: str = "CAST({} AS VARCHAR)"
    label_type: str = "VARCHAR"
    without_nan: str = "{}"
    number_cast: str = ""
    """Casts a cell to a float where the usual cast would refuse a whole query for one text."""
    number_text: str = "{0}"
    """Makes NULL of what a cast to a float would quietly turn into a number."""
    exp: str = "EXP({})"
    log: str = "LN({})"
    round: str = "ROUND({})"
    greatest: str = "GREATEST({})"
    least: str = "LEAST({})"
    step: str = "{name} AS (\0{body}\0)"
    truth: tuple[str, str] = ("TRUE", "FALSE")
    pad: str = "LPAD({0}, WIDTH, '0')"
    """Puts zeros before a text; empty where there is no such function."""
    remark: str = ""

    def identifier(self, name: str) -> str:
        """A quoted name; whatever is in it stays a name."""
        if "\0" in name or not name:
            raise ValueError(f"{shown(name)} cannot be the name of a column or table in SQL.")
        for character, escaped in self.identifier_escapes:
            name = name.replace(character, escaped)
        return f"{self.quotes[0]}{name}{self.quotes[1]}"

    def text(self, value: str) -> str:
        """A quoted text; whatever is in it stays a text."""
        pieces = []
        for piece in value.split("\0"):
            for character, escaped in self.text_escapes:
                piece = piece.replace(character, escaped)
            prefix = self.text_prefix
            if self.backslash_prefix and "\\" in piece:
                piece, prefix = piece.replace("\\", "\\\\"), self.backslash_prefix
            pieces.append(f"{prefix}'{piece}'")
        if len(pieces) == 1:
            return pieces[0]
        return "(" + f"{self.join}{self.nul}{self.join}".join(pieces) + ")"

    def compared(self, value: str) -> str | None:
        """A text as a cell of :meth:`text_cell` is compared with it; None: no cell holds it."""
        if "\0" in value and self.nul is None:
            return None
        return self.text(value + self.text_suffix)

    def float(self, value: float) -> str:
        """A literal that reads back as the same 64-bit float; negative ones in parentheses."""
        digits = shortest_safe_digits(abs(value))
        if self.needs_exponent and "e" not in digits:
            digits += "e0"
        literal = self.number.format(digits)
        return f"(-{literal})" if value < 0 else literal

    def to_float(self, expression: str) -> str:
        return f"CAST({expression} AS {self.float_type})"

    def number_cell(self, column: str, *, boolean: bool) -> str:
        """A column as a float, NULL where it is missing."""
        if boolean:
            return self.to_float(self.truth_cell.format(column))
        text = self.number_text.format(column)
        cast = self.number_cast.format(text) if self.number_cast else self.to_float(text)
        return self.without_nan.format(cast)

    def text_cell(
        self,
        column: str,
        known: Sequence[str] = (),
        spellings: Sequence[tuple[str, str]] = (),
        missing: Sequence[str] = (),
    ) -> str:
        """A column as the text the model saw, compared byte by byte, NULL where it is missing.

        A database may hold another type than the fit saw: a CSV's Yes/No as truth values, its
        01322 as a number, its empty cells as empty texts. Where ``known``, the texts of the fit,
        leave no doubt, such cells are turned back. ``spellings`` are words in small letters and
        the texts that they mean; ``missing`` are words of files for nothing.
        """
        text = self.as_text.format(column)
        if missing and not self.text_suffix:
            text = f"TRIM({text})"
        lines = []
        if missing:
            words = ", ".join(str(self.compared(word)) for word in missing)
            lines.append(f"WHEN {text} IN ({words}) THEN NULL")
        lines += [
            f"WHEN {said.format(text)} THEN {meant.format(text)}"
            for said, meant in self._turned_back(known)
        ]
        for meant in dict.fromkeys(own for _, own in spellings):
            words = ", ".join(str(self.compared(word)) for word, own in spellings if own == meant)
            lines.append(f"WHEN LOWER({text}) IN ({words}) THEN {self.compared(meant)}")
        return f"CASE {' '.join(lines)} ELSE {text} END" if lines else text

    def _turned_back(self, known: Sequence[str]) -> Iterator[tuple[str, str]]:
        """(condition, text) pairs over a cell's text, for cells of another type."""
        compared = self.compared
        if "" not in known:
            yield f"{{0}} = {compared('')}", "NULL"
        truth = truth_texts(known)
        if truth is not None:
            for database_says, own in zip(("true", "false"), truth, strict=True):
                yield f"{{0}} = {compared(database_says)}", str(compared(own))
        for number, own in _lost_spellings(known).items():
            yield f"{{0}} = {compared(number)}", str(compared(own))
        width = len(known[0]) if known and self.pad else 0
        digits = all(text.isascii() and text.isdigit() and len(text) == width for text in known)
        if width > 1 and digits and any(text[0] == "0" for text in known):
            bar = len(self.text_suffix)
            short = f"LENGTH({{0}}) < {width + bar} AND LENGTH({{0}}) > {bar}"
            yield short, self.pad.replace("WIDTH", str(width))

    def largest(self, names: Sequence[str]) -> str:
        return self._extreme(self.greatest, names)

    def smallest(self, names: Sequence[str]) -> str:
        return self._extreme(self.least, names)

    def _extreme(self, function: str, names: Sequence[str]) -> str:
        if len(names) == 1:
            return names[0]
        if "VALUES" in function:
            return function.format("), (".join(names))
        # in groups: SQLite takes 127 arguments
        groups = [names[i : i + 100] for i in range(0, len(names), 100)]
        found = [function.format(", ".join(own)) if len(own) > 1 else own[0] for own in groups]
        return self._extreme(function, found)


_BACKSLASH = (("\\", "\\\\"), ("'", "\\'"), ("\n", "\\n"), ("\r", "\\r"))

DIALECTS = {
    dialect.name: dialect
    for dialect in (
        Dialect(
            "ansi",
            needs_exponent=True,
            truth_cell="CASE WHEN {0} THEN 1 WHEN NOT {0} THEN 0 END",
            as_text="CAST({} AS CHARACTER VARYING(32000))",
            label_type="CHARACTER VARYING(32000)",
        ),
        Dialect(
            "postgres",
            # no text of PostgreSQL holds a NUL character
            nul=None,
            backslash_prefix="E",
            truth_cell="CAST({0} AS INTEGER)",
            # a cast of a text that is no number ends the whole query
            number_cast=(
                "CASE WHEN CAST(PG_TYPEOF({0}) AS TEXT) IN ('text', 'character varying', "
                "'character') THEN CAST(SUBSTRING(CAST({0} AS TEXT) FROM "
                + _NUMBER_IN_POSTGRES
                + ") AS DOUBLE PRECISION) ELSE CAST({0} AS DOUBLE PRECISION) END"
            ),
            as_text='CAST({} AS TEXT) COLLATE "C"',
            label_type="TEXT",
            without_nan="NULLIF({}, CAST('NaN' AS DOUBLE PRECISION))",
            # PostgreSQL reports an underflow where others give 0
            exp="EXP(GREATEST({}, -690.0))",
            # OFFSET 0 keeps a step from being copied into every place that reads it
            step="{name} AS (\0{body}\0  OFFSET 0\0)",
        ),
        Dialect(
            "sqlite",
            nul="CHAR(0)",
            float_type="REAL",
            # SQLite's cast makes 0 of 'unknown' and of 'TRUE'
            truth_cell=(
                "CASE WHEN TYPEOF({0}) <> 'text' THEN {0} WHEN LOWER(TRIM({0})) IN ('true', 't', "
                "'yes', 'y', '1') THEN 1 WHEN LOWER(TRIM({0})) IN ('false', 'f', 'no', 'n', '0') "
                "THEN 0 END"
            ),
            number_text=(
                "CASE WHEN TYPEOF({0}) <> 'text' OR (TRIM({0}) GLOB '*[0-9]*' "
                "AND TRIM({0}) NOT GLOB '*[^0-9.eE+-]*') THEN {0} END"
            ),
            pad="SUBSTR('00000000000000000000' || {0}, -WIDTH)",
            as_text="CAST({} AS TEXT) COLLATE BINARY",
            label_type="TEXT",
            greatest="MAX({})",
            least="MIN({})",
            step="{name} AS MATERIALIZED (\0{body}\0)",
            remark="needs SQLite 3.35 or later, with its math functions (EXP, LN)",
        ),
        Dialect(
            "duckdb",
            needs_exponent=True,
            float_type="DOUBLE",
            # blanks among numbers make a column of texts of the whole CSV
            number_cast="TRY_CAST({0} AS DOUBLE)",
            without_nan="NULLIF({}, CAST('NaN' AS DOUBLE))",
        ),
        Dialect(
            "bigquery",
            quotes=("`", "`"),
            identifier_escapes=(("\\", "\\\\"), ("`", "\\`"), ("\n", "\\n"), ("\r", "\\r")),
            text_escapes=_BACKSLASH,
            nul="CODE_POINTS_TO_STRING([0])",
            float_type="FLOAT64",
            truth_cell="CAST({0} AS INT64)",
            as_text="COLLATE(CAST({} AS STRING), '')",
            label_type="STRING",
            without_nan="IF(IS_NAN({0}), NULL, {0})",
        ),
        Dialect(
            "snowflake",
            text_escapes=(("\\", "\\\\"), ("'", "''")),
            number="'{}'::DOUBLE",
            float_type="DOUBLE",
            truth_cell="CAST({0} AS INTEGER)",
            as_text="COLLATE(CAST({} AS VARCHAR), '')",
            without_nan="NULLIF({}, 'NaN'::DOUBLE)",
        ),
        Dialect(
            "tsql",
            quotes=("[", "]"),
            identifier_escapes=(("]", "]]"),),
            # a backslash at the end of a line would join the lines
            text_escapes=(
                ("'", "''"),
                ("\\\n", "\\' + N'\n"),
                ("\\\r\n", "\\' + N'\r\n"),
            ),
            text_prefix="N",
            # a bar after every text: T-SQL ignores spaces at the end of what it compares
            text_suffix="|",
            nul="NCHAR(0)",
            join=" + ",
            needs_exponent=True,
            float_type="FLOAT(53)",
            as_text="CAST({} AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2 + N'|'",
            label_type="NVARCHAR(MAX)",
            log="LOG({})",
            round="ROUND({}, 0)",
            pad="",
            greatest="(SELECT MAX(v) FROM (VALUES ({})) AS listed(v))",
            least="(SELECT MIN(v) FROM (VALUES ({})) AS listed(v))",
            truth=("CAST(1 AS BIT)", "CAST(0 AS BIT)"),
        ),
        Dialect(
            "spark",
            quotes=("`", "`"),
            identifier_escapes=(("`", "``"),),
            text_escapes=_BACKSLASH,
            number="{}D",
            float_type="DOUBLE",
            as_text="CAST({} AS STRING)",
            label_type="STRING",
            without_nan="NULLIF({}, CAST('NaN' AS DOUBLE))",
        ),
    )
}


def dialect_named(name: str) -> Dialect:
    try:
        return DIALECTS[name]
    except KeyError:
        raise ValueError(
            f"dialect: {name!r} is not known; choose one of {', '.join(DIALECTS)}."
        ) from None
