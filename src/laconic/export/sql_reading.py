"""Amounts, dates, times and durations as people write them, read by the database itself.

What :mod:`laconic.data.reading` does cell by cell is written as a chain of small SELECTs over
REPLACE, SUBSTR and TRIM, which DuckDB, PostgreSQL and SQLite share. A column may come as the text
of the file or in the type that the database's own CSV reader chose: dates and times are then
written in ISO form, and numbers taken as they are. What cannot be read is NULL, and
``to_sql_check`` counts it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from laconic.data.reading.column import ColumnReading
from laconic.data.reading.dates import AT, HOUR_UNITS
from laconic.data.reading.numbers import CREDIT_OR_DEBIT
from laconic.data.reading.words import PERCENT, SAME_CURRENCY, TIMES, WEEKDAYS
from laconic.export.sql_dialects import Dialect

Stage = dict[str, str]
"""Columns of one SELECT, by name: expressions over the columns of the SELECT before."""

_BLANKS = " \u00a0\u2007\u2009\u202f'\u2019"
_REPLACED = 20
_BOUNDS = "<>\u2264\u2265~\u2248="
_MARKS = (
    ".,;:!?()[]{}\"'\u2019\u00ab\u00bb\u201c\u201d-\u2013\u2014_/\\|+*=&%$\u20ac\u00a3#@<>~^`"
    "0123456789\t\r\n\u00a0\u202f"
)
_LARGE = "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝŒŠŽ"
"""Marks between words; large letters that LOWER may not know."""
_ORDERS = ("ymd", "dmy", "mdy", "short-ymd", "month", "compact", "typed")
_NO_CENTS = tuple(sign + dash for sign in ",." for dash in ("--", "-", "\u2013", "\u2014"))


@dataclass(frozen=True)
class Reads:
    """What a database needs to read texts, beside the functions that all share."""

    find: str
    """Place of {1} in {0}, 0 where it is not."""
    number: str
    """The float that a text names, NULL where it names none."""
    is_number: str
    """Whether a cell has a type of numbers."""
    days: str
    """Days since 2020-01-01 of a text such as 2024-01-31."""
    month: str
    """The month of so many days since 2020-01-01."""
    whole: str = "CAST({0} AS INTEGER)"


READS = {
    "duckdb": Reads(
        "INSTR({0}, {1})",
        "TRY_CAST({0} AS DOUBLE)",
        "(TYPEOF({0}) LIKE '%INT%' OR TYPEOF({0}) IN ('DOUBLE', 'FLOAT') "
        "OR TYPEOF({0}) LIKE 'DECIMAL%')",
        "DATEDIFF('day', DATE '2020-01-01', TRY_CAST({0} AS DATE))",
        "MONTH(DATE '2020-01-01' + CAST({0} AS INTEGER))",
        "TRY_CAST(TRY_CAST({0} AS DOUBLE) AS BIGINT)",
    ),
    "postgres": Reads(
        "STRPOS({0}, {1})",
        "CASE WHEN {0} ~ '^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)(e[+-]?[0-9]+)?$' "
        "THEN CAST({0} AS DOUBLE PRECISION) END",
        "(CAST(PG_TYPEOF({0}) AS TEXT) IN ('smallint', 'integer', 'bigint', 'numeric', 'real', "
        "'double precision'))",
        "CASE WHEN {0} ~ '^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}$' THEN CAST({0} AS DATE) "
        "- DATE '2020-01-01' END",
        "EXTRACT(MONTH FROM DATE '2020-01-01' + CAST({0} AS INTEGER))",
        "CASE WHEN {0} ~ '^[0-9]+$' THEN CAST({0} AS BIGINT) END",
    ),
    "sqlite": Reads(
        "INSTR({0}, {1})",
        "CASE WHEN {0} GLOB '*[0-9]*' AND {0} NOT GLOB '*[^0-9.e+-]*' AND {0} NOT GLOB '?*[+-]*' "
        "OR {0} GLOB '[+-0-9.]*e[+-0-9]*' AND {0} NOT GLOB '*[^0-9.e+-]*' THEN CAST({0} AS REAL) "
        "END",
        "TYPEOF({0}) IN ('integer', 'real')",
        "(JULIANDAY({0}) - 2458849.5)",
        "STRFTIME('%m', '2020-01-01', CAST({0} AS INTEGER) || ' days')",
        "CASE WHEN {0} GLOB '[0-9]*' AND {0} NOT GLOB '*[^0-9]*' THEN CAST({0} AS INTEGER) END",
    ),
}


def can_read(column: ColumnReading, dialect: Dialect) -> bool:
    """Whether the database can repeat the reading of a column; months by name it cannot."""
    if column.kind in ("date", "date-time"):
        return dialect.name in READS and column.order in _ORDERS
    return dialect.name in READS


def _century(year: str) -> str:
    """Four digits of a year that is written with two, as POSIX reads them."""
    return f"(CASE WHEN {year} < '69' THEN '20' ELSE '19' END) || {year}"


@dataclass(frozen=True)
class CellReader:
    """Writes the stages from a raw cell to the columns that the model sees; ``tag`` keeps the
    names of one column apart from those of others."""

    dialect: Dialect
    column: ColumnReading
    tag: str

    @property
    def reads(self) -> Reads:
        return READS[self.dialect.name]

    def stages(self, raw: str, names: Mapping[str, str]) -> list[Stage]:
        """``names`` has the SQL name of every column that is made and wanted."""
        if self.column.kind == "number":
            return self._number(raw, names[self.column.name])
        if self.column.kind in ("time", "duration"):
            return self._hours(raw, names[self.column.name])
        if self.column.kind == "text":
            return self._words(raw, names)
        return self._dates(raw, names)

    def _name(self, letter: str) -> str:
        return f"{letter}_{self.tag}"

    def _cleaned(self, name: str, pairs: Sequence[tuple[str, str]], *kept: str) -> list[Stage]:
        """Stages that replace texts, few at a time: SQLite reads no deep nesting."""
        stages = []
        for start in range(0, len(pairs), _REPLACED):
            text = name
            for old, new in pairs[start : start + _REPLACED]:
                text = f"REPLACE({text}, {self.dialect.text(old)}, {self.dialect.text(new)})"
            stages.append({name: text, **{own: own for own in kept}})
        return stages

    def _missing(self, text: str, raw: str) -> str:
        """``text``, NULL for the odd cells that the fit took for missing."""
        odd = ", ".join(self.dialect.text(own) for own in self.column.missing)
        said = self.dialect.as_text.format(raw)
        return f"CASE WHEN {said} IN ({odd}) THEN NULL ELSE {text} END" if odd else text

    def _number(self, raw: str, name: str) -> list[Stage]:
        """Sign, bound, unit and thousands off, the decimal sign a point, times a thousand for k."""
        c, n, f, s, typed = (self._name(letter) for letter in ("c", "n", "f", "s", "typed"))
        column, number = self.column, self.dialect.float
        units = {column.unit, *(own for own, same in SAME_CURRENCY.items() if same == column.unit)}
        spelled = sorted((unit.lower() for unit in units if unit), key=lambda u: (-len(u), u))
        text = self._missing(f"LOWER({self.dialect.as_text.format(raw)})", raw)
        gone = [(own, "") for own in (*spelled, *_BLANKS, *_BOUNDS, *_NO_CENTS)]
        if column.unit == PERCENT:  # a share without its sign would be another number
            text = f"CASE WHEN {self._find(text, PERCENT)} > 0 THEN {text} END"
        if column.unit == CREDIT_OR_DEBIT:
            marked = f"{text} LIKE '%cr' OR {text} LIKE '%dr' OR {text} LIKE '%r.'"
            twice = f"{text} LIKE '-%' OR {text} LIKE '\u2212%' OR {text} LIKE '(%'"
            text = f"CASE WHEN ({marked}) AND NOT ({twice}) THEN {text} END"
            gone += [("r.", "r"), ("cr", ""), ("dr", "-")]
        plain = f"CASE WHEN {self.reads.is_number.format(raw)} THEN {self._as_float(raw)} END"
        thousands, decimal = (".", ",") if column.decimal == "," else (",", ".")
        minus = f"{c} LIKE '-%' OR {c} LIKE '(%)' OR {c} LIKE '%-'"
        bare = f"REPLACE(REPLACE({c}, '{thousands}', ''), '{decimal}', '.')"
        letters = {own.lower().rstrip("."): times for own, times in TIMES.items()}
        factor = " ".join(
            f"WHEN {n} LIKE '%{own}' THEN {number(times)}"
            for own, times in sorted(letters.items(), key=lambda pair: -len(pair[0]))
        )
        digits = f"RTRIM({n}, '{''.join(sorted(set(''.join(letters))))}.')"
        digits = f"(CASE WHEN {f} > 1 THEN {digits} ELSE {n} END)"
        value = f"COALESCE({typed}, {s} * {f} * {self._name('v')})"
        sign = f"CASE WHEN {minus} THEN {number(-1.0)} ELSE {number(1.0)} END"
        kept = {s: s, typed: typed}
        return [
            {c: text, typed: plain},
            *self._cleaned(c, [*gone, ("\u2212", "-")], typed),
            {n: f"TRIM({bare}, '+-()')", s: sign, typed: typed},
            {n: n, f: f"CASE {factor} ELSE {number(1.0)} END", **kept},
            {n: digits, f: f, **kept},
            {self._name("v"): self.reads.number.format(n), f: f, **kept},
            {name: self.dialect.to_float(value)},
        ]

    def _words(self, raw: str, names: Mapping[str, str]) -> list[Stage]:
        """1 where a word stands between two blanks, once all that is no letter is one."""
        text = self._name("text")
        said = self.dialect.as_text.format(raw)
        blank = [(mark, " ") for mark in _MARKS]
        small = [(letter, letter.lower()) for letter in _LARGE]
        one, none = self.dialect.float(1.0), self.dialect.float(0.0)
        found = {
            names[made]: f"CASE WHEN {text} IS NULL THEN NULL "
            f"WHEN {self._find(text, f' {word} ')} > 0 THEN {one} ELSE {none} END"
            for word, made in zip(self.column.words, self.column.made, strict=True)
            if made in names
        }
        return [
            {text: f"' ' || NULLIF(TRIM(LOWER({said})), '') || ' '"},
            *self._cleaned(text, [*blank, *small]),
            {name: self.dialect.to_float(own) for name, own in found.items()},
        ]

    def _as_float(self, raw: str) -> str:
        if self.dialect.name == "duckdb":
            return self.reads.number.format(raw)
        return self.dialect.to_float(f"CAST({raw} AS TEXT)")

    def _find(self, text: str, what: str) -> str:
        return self.reads.find.format(text, self.dialect.text(what))

    def _before(self, text: str, what: str) -> str:
        """What stands before a mark, or all of it."""
        place = self._find(text, what)
        return f"CASE WHEN {place} > 0 THEN SUBSTR({text}, 1, {place} - 1) ELSE {text} END"

    def _after(self, text: str, what: str) -> str:
        """What stands after a mark, or nothing."""
        place = self._find(text, what)
        return f"CASE WHEN {place} > 0 THEN SUBSTR({text}, {place} + 1) ELSE '' END"

    def _padded(self, text: str) -> str:
        return f"SUBSTR('0' || {text}, LENGTH({text}), 2)"

    def _dates(self, raw: str, names: Mapping[str, str]) -> list[Stage]:
        d, t, r, iso, o = (self._name(letter) for letter in ("d", "t", "r", "iso", "o"))
        said = f"TRIM({self.dialect.as_text.format(raw)})"
        said = self._missing(f"REPLACE(REPLACE({said}, 'T', ' '), ',', ' ')", raw)
        day, time = self._before(d, " "), self._after(d, " ")
        if self.column.order == "compact":
            written = f"SUBSTR({d}, 5, 1) = '-'"
            day = f"CASE WHEN {written} THEN {day} ELSE SUBSTR({d}, 1, 8) END"
            time = f"CASE WHEN {written} THEN {time} ELSE {self._compact_time(d)} END"
        marks = f"REPLACE(REPLACE({day}, '-', '/'), '.', '/')"
        a, b, c = (self._name(letter) for letter in "abc")
        stages: list[Stage] = [
            {d: said},
            {d: marks, t: self._time_of(time)},
            {d: d, t: t, a: self._before(d, "/"), r: self._after(d, "/")},
            {d: d, t: t, o: self._ahead(t), a: a, b: self._before(r, "/"), c: self._after(r, "/")},
            {iso: self._iso(d, a, b, c), t: self._before(self._before(t, "+"), "-"), o: o},
        ]
        return [*stages, *self._moment(iso, t, o, names)]

    def _ahead(self, t: str) -> str:
        """Seconds that a time with an offset, 12:00:00+02:00 or 12:00-05, is ahead of UTC."""
        plus, minus = (f"{self._find(t, sign)} > 0" for sign in "+-")
        digits = f"REPLACE({self._after(t, '+')} || {self._after(t, '-')}, ':', '') || '00'"
        parts = [self.reads.whole.format(f"SUBSTR({digits}, {place}, 2)") for place in (1, 3)]
        ahead = f"(3600 * {parts[0]} + 60 * {parts[1]})"
        return f"CASE WHEN {plus} THEN {ahead} WHEN {minus} THEN -1 * {ahead} ELSE 0 END"

    def _compact_time(self, text: str) -> str:
        """The time of 202401310630, 20240131063000 and 20240131T063000."""
        digits = f"REPLACE(SUBSTR({text}, 9), ' ', '')"
        seconds = f"CASE WHEN LENGTH({digits}) > 4 THEN ':' || SUBSTR({digits}, 5) ELSE '' END"
        return (
            f"CASE WHEN LENGTH({digits}) < 4 THEN '' "
            f"ELSE SUBSTR({digits}, 1, 2) || ':' || SUBSTR({digits}, 3, 2) || {seconds} END"
        )

    def _time_of(self, text: str) -> str:
        """The time after a date, without a word before it; 14h30 is 14:30."""
        found = f"LOWER(TRIM({text}))"
        for word in AT:
            found = f"REPLACE({found}, {self.dialect.text(word + ' ')}, '')"
        return f"REPLACE({found}, 'h', ':')"

    def _iso(self, d: str, a: str, b: str, c: str) -> str:
        """Year, month and day in the order of the column, or in that of ISO."""
        year = f"CASE WHEN LENGTH({c}) = 2 THEN {_century(c)} ELSE {c} END"
        order = {
            "dmy": f"{year} || '-' || {self._padded(b)} || '-' || {self._padded(a)}",
            "mdy": f"{year} || '-' || {self._padded(a)} || '-' || {self._padded(b)}",
            "short-ymd": f"{_century(a)} || '-' || {self._padded(b)} || '-' || {self._padded(c)}",
            "month": f"{b} || '-' || {self._padded(a)} || '-01'",
            "compact": f"SUBSTR({d}, 1, 4) || '-' || SUBSTR({d}, 5, 2) || '-' || SUBSTR({d}, 7, 2)",
        }.get(self.column.order, "NULL")
        ymd = f"{a} || '-' || {self._padded(b)} || '-' || {self._padded(c)}"
        if self.column.order == "month":
            ymd = f"{a} || '-' || {self._padded(b)} || '-' || COALESCE(NULLIF({c}, ''), '01')"
        if self.column.order == "typed":
            order = f"{year} || '-' || {self._padded(b)} || '-' || {self._padded(a)}"
        if self.column.order == "short-ymd":  # the database may have read the year 21 as 0021
            old = f"{_century(f'SUBSTR({a}, 3, 2)')} || SUBSTR({ymd}, 5)"
            ymd = f"CASE WHEN {a} < '0100' THEN {old} ELSE {ymd} END"
        return f"CASE WHEN LENGTH({a}) = 4 AND {b} <> '' THEN {ymd} ELSE {order} END"

    def _moment(self, iso: str, t: str, o: str, names: Mapping[str, str]) -> list[Stage]:
        """From a date in ISO form and a clock time, so much ahead of UTC, to what the model sees.

        The day in UTC may be the one before or after.
        """
        day, sec, clock = self._name("day"), self._name("sec"), self._clock(t)
        number, length = self.dialect.to_float, self.dialect.float(86_400.0)
        carried = f"FLOOR({sec} / {length})"
        stages = [{iso: iso, o: o, **clock[0]}, {iso: iso, o: o, **clock[1]}]
        stages.append({day: self.reads.days.format(iso), sec: f"{clock[2]} - {number(o)}"})
        stages.append({day: f"{number(day)} + {carried}", sec: f"{sec} - {length} * {carried}"})
        whole = f"CAST({day} AS INTEGER)"
        micro = self.dialect.float(86_400e6)
        weekday = " ".join(
            f"WHEN {k} THEN {self.dialect.compared(name)}" for k, name in enumerate(WEEKDAYS)
        )
        made = {
            "days": f"({number(day)} * {micro} + {sec} * {self.dialect.float(1e6)}) / {micro}",
            # 2020-01-01 was a Wednesday, the place 2; days before it are negative
            "weekday": f"CASE (({whole} % 7) + 9) % 7 {weekday} END",
            "month": number(self.reads.month.format(day)),
            "hour": number(f"FLOOR({sec} / {self.dialect.float(3600.0)})"),
        }
        parts = zip(self.column.parts, self.column.made, strict=True)
        known = {
            names[own]: f"CASE WHEN {day} IS NULL THEN NULL ELSE {made[part]} END"
            for part, own in parts
            if own in names
        }
        return [*stages, known]

    def _clock(self, t: str) -> tuple[Stage, Stage, str]:
        """Two stages and the seconds since midnight of texts such as 6:30 pm, 06:30:15.5, empty."""
        h, rest, m, half = (self._name(letter) for letter in ("h", "rest", "m", "half"))
        whole, number = self.reads.whole, self.reads.number
        hours = whole.format(f"TRIM({h}, ' apm.')")
        late = (
            f"CASE WHEN {half} = 'p' AND {hours} < 12 THEN 12 WHEN {half} = 'a' AND {hours} = 12 "
        )
        late += "THEN -12 ELSE 0 END"
        bare = self._before(rest, "+")
        seconds = f"CASE WHEN {self._find(m, ':')} > 0 THEN {self._after(m, ':')} ELSE '0' END"
        first = {
            t: t,
            h: self._before(t, ":"),
            rest: self._after(t, ":"),
            half: f"CASE WHEN {t} LIKE '%p%m%' THEN 'p' WHEN {t} LIKE '%a%m%' THEN 'a' ELSE '' END",
        }
        second = {
            t: t,
            h: h,
            half: half,
            m: f"TRIM(REPLACE({bare}, ',', '.'), ' apm.zutcg')",
        }
        minutes = whole.format(f"SUBSTR({m}, 1, 2)")
        minutes = f"CASE WHEN {m} = '' AND {half} <> '' THEN 0 ELSE {minutes} END"
        total = (
            f"CASE WHEN {t} = '' THEN 0 ELSE ({hours} + {late}) * 3600 + ({minutes}) * 60 + "
            f"({number.format(f'({seconds})')}) END"
        )
        return first, second, self.dialect.to_float(total)

    def _unit(self, cur: str, total: str, unit: str, seconds: int) -> list[Stage]:
        """The number before one unit, added to the total in seconds, and what stands after it."""
        own, there = self._name("own"), f"{self._find(cur, unit)} > 0"
        value = self.reads.number.format(own)
        more = f"{total} + {self.dialect.float(seconds)} * ({value})"
        return [
            {
                cur: f"CASE WHEN {there} THEN {self._after(cur, unit)} ELSE {cur} END",
                own: f"CASE WHEN {there} THEN {self._before(cur, unit)} END",
                total: total,
            },
            {cur: cur, total: f"CASE WHEN {own} IS NULL THEN {total} ELSE {more} END"},
        ]

    def _with_colons(self, cur: str) -> str:
        """1h30 is a clock time, 42:20.5 one without hours."""
        bare = f"{cur} LIKE '%h__' AND {cur} NOT LIKE '%m' AND {cur} NOT LIKE '%s'"
        short = f"{cur} LIKE '%_:__.%' AND {cur} NOT LIKE '%:%:%'"
        digits = f"TRIM({cur}, '-')"
        zero = f"CASE WHEN {self._find(digits, ':')} = 2 THEN '0:0' ELSE '0:' END"
        minus = f"CASE WHEN {cur} LIKE '-%' THEN '-' ELSE '' END"
        return (
            f"CASE WHEN {bare} THEN REPLACE({cur}, 'h', ':') "
            f"WHEN {short} THEN ({minus}) || ({zero}) || {digits} ELSE {cur} END"
        )

    def _hours(self, raw: str, name: str) -> list[Stage]:
        """Weeks, days, hours, minutes and seconds by their units, then a clock time, if any."""
        cur, total = self._name("cur"), self._name("sum")
        text = self._missing(f"LOWER(TRIM({self.dialect.as_text.format(raw)}))", raw)
        if self.column.kind == "time":
            text = f"REPLACE({text}, 'h', ':')"
        stages: list[Stage] = [{cur: f"NULLIF({text}, '')", total: self.dialect.to_float("0")}]
        if self.column.kind == "duration":
            units = [
                (unit, own[0])
                for own in HOUR_UNITS.values()
                for unit in sorted(own[1:], key=len, reverse=True)
            ]
            marks = [(own[0] + mark, own[0]) for own in HOUR_UNITS.values() for mark in ",."]
            words = [(word, "") for word in (*_BLANKS, "and", "und", "et", "p", "t")]
            stages += self._cleaned(cur, [*units, *words, *marks, (",", ".")], total)
            stages.append({cur: self._with_colons(cur), total: total})
            for hours, (unit, *_) in sorted(HOUR_UNITS.items(), reverse=True):
                stages += self._unit(cur, total, unit, round(3600.0 * hours))
        sign = self._name("sign")
        stages.append(
            {
                cur: f"TRIM({cur}, '-')" if self.column.kind == "duration" else cur,
                sign: f"CASE WHEN {cur} LIKE '-%' THEN {self.dialect.float(-1.0)} "
                f"ELSE {self.dialect.float(1.0)} END",
                total: total,
            }
        )
        first, second, clock = self._clock(cur)
        kept = {total: total, sign: sign}
        micro, hour = self.dialect.float(1e6), self.dialect.float(3.6e9)
        whole = self.dialect.round.format(f"({total} + {clock}) * {micro}")
        return [*stages, first | kept, second | kept, {name: f"{sign} * ({whole}) / {hour}"}]
