"""Notes on columns and rows in French: every sentence of a look, and parts of dates."""

from __future__ import annotations

import re

import numpy as np
import pytest

from laconic.data.reading.asked import Asked
from laconic.data.reading.column import PARTS
from laconic.data.reading.french import _PHRASES, in_french
from laconic.data.reading.look import look
from laconic.data.reading.reading import Reading
from laconic.data.reading.words import WEEKDAYS
from laconic.data.tables.spoken import Spoken, column_name, level_name
from laconic.job.rows import JobRows

N = 400
ENGLISH = re.compile(
    r"\b(the|cells|are|is|of|rows|different|left out|number|read|such|as|with|words|first|and|"
    r"category|identifier|held|week|month|hour|day|days|since|column)\b"
)
QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")


def days(k: int, form: str) -> str:
    return form.format(d=k % 28 + 1, m=k % 12 + 1, y=2020 + k % 4)


def every_kind() -> dict[str, list[str]]:
    """A column for each sentence that a look can say of one."""
    letters = ["alpha", "beta", "gamma", "delta"]
    cells = {
        "decimal": lambda k: f"{k},5",
        "euros": lambda k: f"{k}0,50 €",
        "share": lambda k: f"{k % 97},5 %",
        "people": lambda k: f"{k // 7 % 9 + 1},{k % 900 + 100:03d},{k % 700 + 100:03d}",
        "doubt": lambda k: f"{k % 9 + 1},{k % 900 + 100:03d}",
        "bound": lambda k: "<0.5" if k == 3 else f"{k}.5",
        "bounds": lambda k: f"<0.{k}" if 3 < k < 6 else f"{k}.5",
        "odd": lambda k: "it's \"odd\"; or so" if k == 3 else f"{k}.25",
        "odds": lambda k: f"w{k % 2}" if k < 4 else f"{k}.25",
        "debit": lambda k: f"{k}.50 {'CR' if k % 2 else 'DR'}",
        "date": lambda k: days(k, "{d:02d}/{m:02d}/{y}"),
        "us": lambda k: days(k, "{m:02d}/{d:02d}/{y}"),
        "untold": lambda k: f"{k % 12 + 1:02d}/{k % 12 + 1:02d}/{2000 + k % 20}",
        "short": lambda k: f"{20 + k % 4}-{k % 12 + 1:02d}-{k % 28 + 1:02d}",
        "far": lambda k: "9999-12-31" if k % 2 else days(k, "{y}-{m:02d}-{d:02d}"),
        "both": lambda k: days(k, "{y}-{m:02d}-{d:02d}" if k % 2 else "{d:02d}/{m:02d}/{y}"),
        "named": lambda k: f"{k % 28 + 1} March 2024" if k % 2 else f"{k % 28 + 1}/03/2024",
        "moment": lambda k: days(k, "{y}-{m:02d}-{d:02d}T10:30:00+02:00"),
        "odd date": lambda k: "soon" if k == 3 else days(k, "{y}-{m:02d}-{d:02d}"),
        "clock": lambda k: f"{k % 24:02d}:{k % 60:02d}",
        "odd clock": lambda k: "late" if k == 3 else f"{k % 24:02d}:{k % 60:02d}",
        "span": lambda k: f"{k % 90 + 30}:{k % 60:02d}:00",
        "odd span": lambda k: "late" if k == 3 else f"{k % 90 + 30}:{k % 60:02d}:00",
        "odd spans": lambda k: f"w{k}" if k < 3 else f"{k % 90 + 30}:{k % 60:02d}:00",
        "odd clocks": lambda k: f"w{k}" if k < 3 else f"{k % 24:02d}:{k % 60:02d}",
        "odd dates": lambda k: f"w{k}" if k < 3 else days(k, "{y}-{m:02d}-{d:02d}"),
        "yes": lambda k: "Yes" if k % 2 else "No",
        "code": lambda k: f"{k % 40:05d}",
        "codes": lambda k: f"{k:05d}",
        "level": lambda k: letters[k % 4],
        "text": lambda k: f"the bill {letters[k % 4]} came {letters[k // 4 % 4]} no {k}",
        "no words": lambda k: f"{''.join(chr(97 + int(c)) * 3 for c in str(k))} xx yy zz qq",
        "name": lambda k: f"n{k}x",
        "row": str,
        "account no": lambda k: str(100_000 + 997 * k),
        "patient_id": lambda k: f"p{k % 130}q",
        "same": lambda k: "x",
        "empty": lambda k: "",
        "mostly numbers": lambda k: f"w{k}" if k % 6 == 0 else f"{k}.5",
        "mostly dates": lambda k: f"w{k}" if k % 6 == 0 else days(k, "{y}-{m:02d}-{d:02d}"),
        "mostly times": lambda k: f"w{k}" if k % 6 == 0 else f"{k % 90}:{k % 60:02d}:00",
        "units": lambda k: f"{k % 200} {'kg' if k % 3 else 'g'}",
        "percents": lambda k: f"{k % 200}{' %' if k % 3 else ''}",
        "signs": lambda k: f"{k % 200}{'.5' if k % 2 else ',5'}",
        "orders": lambda k: f"{k % 12 + 1}/20/2024" if k % 2 else f"20/{k % 12 + 1}/2024",
        "serials": lambda k: str(45_000 + k) if k % 5 == 0 else days(k, "{d:02d}/{m:02d}/{y}"),
        "two": lambda k: f"{k % 200}/{k % 70}",
        "capitals": lambda k: ["Oak", "oak", "Elm"][k % 3],
        "person": lambda k: f"P{k % 110:04d}",
        "merged": lambda k: "shop" if k % 7 == 0 else "",
        "mended": lambda k: f"{k},5" if k % 2 else "x",
        "asked yes": lambda k: "TRUE" if k % 2 else "FALSE",
        "kept": lambda k: f"m{k}x",
        "kept number": str,
        "named id": lambda k: f"v{k % 3}",
        "gone": lambda k: "z",
        "to level": lambda k: str(k % 5),
        "to code": lambda k: str(k % 5),
    }  # fmt: skip
    return {name: [cell(k) for k in range(N)] for name, cell in cells.items()}


ASKED = {
    "kinds": {"mended": "number", "asked yes": "yes/no", "named id": "id", "to level": "category",
              "to code": "code"},
    "drop": ["gone"],
    "keep": ["kept", "kept number"],
}  # fmt: skip


@pytest.fixture(scope="module")
def said() -> list[str]:
    table = every_kind()
    y = np.array(["yes" if k > 250 else "No" if k % 3 else "no" for k in range(N)])
    moved = {"moved": [f"2024-{k // 40 + 1:02d}-{k % 28 + 1:02d}" for k in range(N)]}
    found = look({**table, **moved}, y, **ASKED)
    copies = look({"x": [float(k % 3) for k in range(40)]}, np.arange(40) % 25 + 0.5)
    row = JobRows(found.reading.apply({**table, **moved}), y, n_dropped=1)
    rows = JobRows(row.table, y, n_dropped=1200, groups=y, grouped_by='it\'s a "ward"')
    return [
        *(f"{column.name!r}: {column.said}" for column in found.reading.columns),
        *found.suspicions, *copies.suspicions, found.title, copies.title,
        *row.notes(), *rows.notes(),
        "rows with the same 'ward' are held out together; --no-group changes it",
        "6 rows: 'a' 50.0%, 'b' 50.0%; 2 without a class",
    ]  # fmt: skip


def test_every_sentence_has_french_and_keeps_what_stands_in_quotes(said):
    for sentence in said:
        french = in_french(sentence)
        for quoted in QUOTED.findall(sentence):
            before, there, after = french.partition(quoted)
            assert there, french
            french = before + after
        assert not ENGLISH.search(french.replace("--as ", "")), french


def test_every_phrase_is_one_that_a_look_says(said):
    """No phrase is left over from a sentence that was reworded."""
    plain = [re.escape(english) for english, _ in _PHRASES]
    holes = re.compile(r"\\\{[nqwlu][0-9]?\\\}")
    unused = [p for p in plain if not any(re.search(holes.sub(".+?", p), one) for one in said)]
    assert not unused


def test_a_column_kept_as_asked_is_said(said):
    assert in_french("'age': number, kept as asked") == "'age' : nombre, gardé comme demandé"
    assert in_french("1,234 rows") == "1\u202f234 lignes"
    assert Asked().named == []


def test_parts_of_dates_and_weekdays_have_french():
    for part in PARTS.values():
        assert not ENGLISH.search(column_name(f"x: {part}", "fr"))
        assert column_name(f"x: {part}", "en") == f"x: {part}"
    names = {level_name(day, "x: weekday", "fr") for day in WEEKDAYS}
    assert names == {"lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche"}
    assert level_name("Monday", "day", "fr") == "Monday"


@pytest.mark.parametrize(
    ("language", "weekday"),
    [("en", "seen: weekday Friday"), ("fr", "seen\u00a0: jour de la semaine vendredi")],
)
def test_reasons_tell_a_date_as_a_date(language, weekday):
    cells = ["2024-04-05", "2023-11-06", "2022-02-01", "2024-07-30", "2021-12-24"] * 8
    reading = Reading.learn({"seen": cells})
    table = reading.apply({"seen": ["2024-04-05", ""]})
    words = Spoken(language)
    days, day = table.names[:2]
    assert days == "seen: days since 2020-01-01"
    assert words.cell(table, days, 0) == "seen 2024-04-05"
    assert words.cell(table, days, 1) == f"seen {'missing' if language == 'en' else 'manquant'}"
    assert words.cell(table, day, 0) == weekday
