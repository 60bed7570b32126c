"""A zoo of nasty tables: each is read right by every reader alike, or refused with a sentence."""

from __future__ import annotations

import csv
import datetime
import io
import json
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import polars as pl
import pytest

from laconic.cli.app import main
from laconic.data.reading.asked import Asked
from laconic.data.reading.dates import date_texts
from laconic.data.reading.evidence import Evidence
from laconic.data.reading.reading import Reading, gather
from laconic.data.tables.files import read_frame

N = 60
draw = np.random.default_rng(7)
NUMBERS = np.round(np.exp(draw.normal(4, 2, N)), 2)
WHOLE = draw.integers(1, 90, N)
DAYS = [
    datetime.date(2023, 1, 1) + datetime.timedelta(days=int(d)) for d in draw.integers(0, 700, N)
]
HOURS = draw.integers(0, 24, N)


@dataclass(frozen=True)
class Animal:
    """Cells as a text file holds them, and what must come out.

    ``made`` has the columns that come out: numbers (NaN is missing) or texts (None is missing).
    ``lossy`` says that other libraries lose part of the cells when they read the file by default.
    """

    cells: dict[str, list[str]]
    kinds: dict[str, str]
    made: dict[str, list] = field(default_factory=dict)
    asked: Asked = field(default_factory=Asked)
    lossy: bool = False
    unclear: bool = False
    """Whether polars, asked for dates, finds others than we do."""
    said: str = ""
    """What the sentence of the first column must hold."""


def one(cells, kind, made=None, **more) -> Animal:
    out = {} if made is None else {"x": list(made)}
    return Animal({"x": [str(cell) for cell in cells]}, {"x": kind}, out, **more)


def with_cells(cells, odd: dict[int, str]) -> list[str]:
    return [odd.get(i, str(cell)) for i, cell in enumerate(cells)]


def without_rows(values, rows) -> list[float]:
    return [float("nan") if i in rows else float(v) for i, v in enumerate(values)]


def english(value: float) -> str:
    return f"{value:,.2f}"


def german(value: float) -> str:
    return f"{value:,.2f}".translate(str.maketrans(",.", ".,"))


def french(value: float) -> str:
    return german(value).replace(".", "\u202f")


def days_since(days) -> list[float]:
    return [float((day - datetime.date(2020, 1, 1)).days) for day in days]


def weekdays(days) -> list[str]:
    return [f"{day:%A}" for day in days]


def dated(texts, **more) -> Animal:
    made = {
        "x: days since 2020-01-01": days_since(DAYS),
        "x: weekday": weekdays(DAYS),
        "x: month": [float(day.month) for day in DAYS],
    }
    return Animal({"x": list(texts)}, {"x": "date"}, made, **more)


def timed(texts, **more) -> Animal:
    moments = [
        datetime.datetime(d.year, d.month, d.day, int(h), 30)
        for d, h in zip(DAYS, HOURS, strict=True)
    ]
    since = datetime.datetime(2020, 1, 1)
    made = {
        "x: days since 2020-01-01": [(m - since) / datetime.timedelta(days=1) for m in moments],
        "x: weekday": weekdays(DAYS),
        "x: month": [float(day.month) for day in DAYS],
        "x: hour": HOURS.astype(float).tolist(),
    }
    return Animal(
        {"x": [f(m) for f, m in zip([texts] * N, moments, strict=True)]},
        {"x": "date-time"},
        made,
        **more,
    )


LOW = np.round(draw.uniform(0.1, 9.9, N), 1)
THOUSANDS = draw.integers(1_000, 999_999, N)
FLAGS = draw.random(N) < 0.4
GROUPS = draw.choice(["north", "south", "east"], N)
YES_NO = ["yes" if flag else "no" for flag in FLAGS]
CODES = draw.choice(["01322", "75001", "00007", "13090"], N)
WORDS = ["the", "parcel", "came", "late", "and", "was", "open", "again", "nobody", "answered"]
SENTENCES = [" ".join(draw.choice(WORDS, 9)) for _ in range(N)]

ZOO = {
    # numbers
    "plain numbers": one(NUMBERS, "number", NUMBERS),
    "one unknown among numbers": one(
        with_cells(NUMBERS, {7: "unknown"}), "number", without_rows(NUMBERS, {7}),
        said="59 of 60 cells are numbers, 'unknown' is taken for missing",
    ),
    "a dash for nothing": one(
        with_cells(NUMBERS, {3: "-", 9: "-", 20: "-"}), "number", without_rows(NUMBERS, {3, 9, 20})
    ),
    "half of the cells say nothing known": one(
        with_cells(NUMBERS, dict.fromkeys(range(0, N, 2), "n.a.")), "number",
        without_rows(NUMBERS, set(range(0, N, 2))),
    ),
    "a typing error": one(
        with_cells(NUMBERS, {5: "12.3.4"}), "number", without_rows(NUMBERS, {5})
    ),
    "errors of Excel": one(
        with_cells(NUMBERS, {5: "#DIV/0!", 6: "#REF!"}), "number", without_rows(NUMBERS, {5, 6})
    ),
    "decimal commas": one([f"{x}".replace(".", ",") for x in LOW], "number", LOW,
                          said="decimal comma"),
    "English thousands": one([english(x) for x in NUMBERS], "number", NUMBERS),
    "German thousands": one([german(x) for x in NUMBERS], "number", NUMBERS),
    "French thousands": one([french(x) for x in NUMBERS], "number", NUMBERS),
    "Swiss thousands": one([english(x).replace(",", "'") for x in NUMBERS], "number", NUMBERS),
    "whole thousands, which do not say": one(
        [f"{x:,}" for x in THOUSANDS], "number", THOUSANDS, said=" is read as "
    ),
    "three decimals after a comma": one(
        [f"{x:.3f}".replace(".", ",") for x in LOW + 0.001], "number", np.round(LOW + 0.001, 3)
    ),
    "thousands not marked elsewhere": one(
        ["1,234", "2,345", "1234", "15000", "3,456"] * 12, "number",
        [1.234, 2.345, 1234.0, 15000.0, 3.456] * 12, said="1,234 is read as 1.234",
    ),
    "the other column has decimal commas": Animal(
        {"x": [f"{x:,}".replace(",", ".") for x in THOUSANDS],
         "y": [f"{x}".replace(".", ",") for x in LOW]},
        {"x": "number", "y": "number"}, {"x": THOUSANDS.astype(float).tolist(), "y": LOW.tolist()},
        lossy=True,
    ),
    "dollars": one([f"${english(x)}" for x in NUMBERS], "number", NUMBERS, said="in $"),
    "euros": one([f"{german(x)} \u20ac" for x in NUMBERS], "number", NUMBERS, said="in \u20ac"),
    "euros in two ways": one(
        [f"EUR {german(x)}" if i % 2 else f"{german(x)}\u20ac" for i, x in enumerate(NUMBERS)],
        "number", NUMBERS,
    ),
    "debts in brackets": one([f"({english(x)})" for x in NUMBERS], "number", -NUMBERS),
    "a minus behind": one([f"{x}-" for x in NUMBERS], "number", -NUMBERS),
    "a minus of typesetters": one([f"\u2212{x}" for x in NUMBERS], "number", -NUMBERS),
    "percent": one([f"{x} %" for x in LOW], "number", LOW, said="in percent"),
    "kilograms": one([f"{x} kg" for x in LOW], "number", LOW, said="in kg"),
    "thousands and millions by a letter": one(
        ["$1.5M", "$300K", "$25K", "$2M"] * 15, "number", [1.5e6, 3e5, 2.5e4, 2e6] * 15
    ),
    "bounds of a laboratory": one(
        with_cells(LOW, {1: "<0.1", 2: "<0.1", 4: ">10"}), "number",
        [{1: 0.1, 2: 0.1, 4: 10.0}.get(i, x) for i, x in enumerate(LOW)],
        said="3 bounds such as <0.1",
    ),
    "exponents": one([f"{x:e}" for x in NUMBERS], "number", [float(f"{x:e}") for x in NUMBERS]),
    "zero and one": one(FLAGS.astype(int), "number", FLAGS.astype(float)),
    "prices without cents": one(
        [f"{x},-" if i % 2 else f"{x},50" for i, x in enumerate(WHOLE)], "number",
        [x + 0.5 * (1 - i % 2) for i, x in enumerate(WHOLE)], said="decimal comma",
    ),
    "francs without rappen": one(
        [f"CHF {x}.--" if i % 2 else f"Fr. {x}.-" for i, x in enumerate(WHOLE)], "number", WHOLE
    ),
    "debts with the minus behind": one(
        [german(x) + "-" * (i % 2) for i, x in enumerate(NUMBERS)], "number",
        [-x if i % 2 else x for i, x in enumerate(NUMBERS)],
    ),
    "euros in words": one(
        [f"{x} {('euros', 'eur', 'EUR', 'Euro')[i % 4]}" for i, x in enumerate(NUMBERS)], "number",
        NUMBERS, said="in \u20ac",
    ),
    "footnotes behind numbers": one(
        [f"{x}*" if i % 12 == 0 else str(x) for i, x in enumerate(NUMBERS)], "id",
        said="55 of 60 cells are numbers: --as 'x=number' takes the others, such as",
    ),
    "shares with and without their sign": one(
        [f"{x}%" if i % 2 else f"{x / 100:.3f}" for i, x in enumerate(NUMBERS)], "id",
        said="with and without % cannot be compared",
    ),
    "either temperature": one(
        [f"{x}\u00b0{'CF'[i % 2]}" for i, x in enumerate(NUMBERS)], "id",
        said="amounts in \u00b0C and \u00b0F cannot be compared",
    ),
    "credits and debits": one(
        [f"{german(x)} {('CR', 'DR')[i % 2]}" for i, x in enumerate(NUMBERS)], "number",
        [-x if i % 2 else x for i, x in enumerate(NUMBERS)], said="CR positive and DR negative",
    ),
    "amounts of which some are credits": one(
        [f"{english(x)}{' CR' * (i % 2)}" for i, x in enumerate(NUMBERS)], "id", said="left out"
    ),
    "a third of the cells undetermined": one(
        with_cells(NUMBERS, dict.fromkeys(range(0, N, 3), "Undetermined")), "number",
        without_rows(NUMBERS, set(range(0, N, 3))), said="'Undetermined' is taken for missing",
    ),
    # yes and no
    "TRUE, FALSE, 1 and 0": one(
        [("TRUE" if f else "FALSE") if i % 3 else str(int(f)) for i, f in enumerate(FLAGS)],
        "yes/no", YES_NO,
    ),
    "ja and nein": one(["ja" if f else "nein" for f in FLAGS], "yes/no",
                       ["ja" if f else "nein" for f in FLAGS]),
    "TRUE and FALSE": one([str(f).upper() for f in FLAGS], "yes/no", YES_NO),
    "true and false": one([str(f).lower() for f in FLAGS], "yes/no", YES_NO),
    "True and False": one(FLAGS, "yes/no", YES_NO),
    "Yes and No": one(["Yes" if f else "No" for f in FLAGS], "yes/no",
                      ["Yes" if f else "No" for f in FLAGS]),
    "oui et non": one(["oui" if f else "Non" for f in FLAGS], "yes/no",
                      ["oui" if f else "Non" for f in FLAGS]),
    "yes and no in two ways": one(
        with_cells(["yes" if f else "no" for f in FLAGS], {0: "TRUE" if FLAGS[0] else "FALSE"}),
        "yes/no", YES_NO,
    ),
    "true, false and missing": one(
        with_cells([str(f).lower() for f in FLAGS], {4: ""}), "yes/no",
        [None if i == 4 else cell for i, cell in enumerate(YES_NO)],
    ),
    "yes, no and unknown": one(
        with_cells(YES_NO, {4: "unknown", 5: "unknown"}), "category",
        with_cells(YES_NO, {4: "unknown", 5: "unknown"}),
    ),
    # dates and times
    "ISO dates": dated([f"{d}" for d in DAYS]),
    "dates with the day first": dated([f"{d:%d/%m/%Y}" for d in DAYS], said="the day first"),
    "dates with the month first": dated([f"{d:%m/%d/%Y}" for d in DAYS], said="the month first"),
    "German dates": dated([f"{d:%d.%m.%Y}" for d in DAYS]),
    "short years": dated([f"{d:%d/%m/%y}" for d in DAYS], unclear=True),
    "months by name": dated([f"{d:%d-%b-%Y}" for d in DAYS]),
    "American dates": dated([f"{d:%B} {d.day}, {d.year}" for d in DAYS]),
    "eight digits": dated([f"{d:%Y%m%d}" for d in DAYS]),
    "two ways to write a date": dated(
        [f"{d:%d/%m/%Y}" if i % 2 else f"{d}" for i, d in enumerate(DAYS)],
        said="the day first, in part the year first", unclear=True,
    ),
    "years of two digits first": dated([f"{d:%y-%m-%d}" for d in DAYS], unclear=True,
                                       said="the year first, of two digits"),
    "three ways to write a date": dated(
        [(f"{d:%d/%m/%Y}", f"{d}", f"{d:%d %b %Y}")[i % 3] for i, d in enumerate(DAYS)],
        said="the day first, in part months by name, in part the year first", unclear=True,
    ),
    "dates, and days as a spreadsheet numbers them": one(
        [f"{d:%d/%m/%Y}" if i % 2 else str((d - datetime.date(1899, 12, 30)).days)
         for i, d in enumerate(DAYS)], "id", said="for dates: write all of them as dates",
    ),
    "day or month first, as it comes": one(
        [f"{d:%d/%m/%Y}" if i % 2 else f"{d:%m/%d/%Y}" for i, d in enumerate(DAYS)], "id",
        said="dates in several orders: --as 'x=date-dmy'",
    ),
    "zeros for no date": one(
        with_cells([f"{d}" for d in DAYS], dict.fromkeys(range(0, N, 9), "0000-00-00")), "date",
        said="'0000-00-00' is taken for missing",
    ),
    "a date for never": one(
        with_cells([f"{d}" for d in DAYS], {3: "9999-12-31"}), "date", said="to 9999-12-31",
    ),
    "date and time of Unix": timed(lambda m: f"{m:%a %b %d %H:%M:%S %Y}"),
    "date and time of a database": timed(lambda m: f"{m:%d-%b-%y %I.%M.%S} {m:%p}"),
    "date and time in French": timed(lambda m: f"{m:%d/%m/%Y} \u00e0 {m.hour}h{m.minute:02d}"),
    "date and time": timed(lambda m: f"{m:%Y-%m-%d %H:%M:%S}"),
    "date and time of ISO": timed(lambda m: f"{m:%Y-%m-%dT%H:%M:%S}Z"),
    "date and time somewhere in the world": timed(
        lambda m: f"{m + datetime.timedelta(hours=m.day % 9 - 4):%Y-%m-%dT%H:%M:%S}"
        f"{m.day % 9 - 4:+03d}:00", said="in UTC",
    ),
    "fourteen digits of a hospital": timed(lambda m: f"{m:%Y%m%d%H%M%S}"),
    "twelve digits": timed(lambda m: f"{m:%Y%m%d%H%M}"),
    "date and half of a day": timed(lambda m: f"{m:%m/%d/%Y %I:%M %p}"),
    "dates that do not say their order": Animal(
        {"x": ["01/02/2024", "03/04/2024", "05/06/2024"] * 20}, {"x": "date"},
        {"x: days since 2020-01-01": [1492.0, 1554.0, 1617.0] * 20,
         "x: weekday": ["Thursday", "Wednesday", "Wednesday"] * 20},
        said="no cell tells",
    ),
    "the other date tells the order": Animal(
        {"x": ["01/02/2024", "03/04/2024", "05/06/2024"] * 20,
         "y": ["01/31/2024", "03/04/2024", "05/06/2024"] * 20},
        {"x": "date", "y": "date"},
        {"x: days since 2020-01-01": [1462.0, 1524.0, 1587.0] * 20}, unclear=True,
    ),
    "an impossible date": one(with_cells([f"{d}" for d in DAYS], {3: "2023-02-30"}), "date"),
    "months": Animal(
        {"x": ["2023-01", "2023-02", "2024-12"] * 20}, {"x": "date"},
        {"x: days since 2020-01-01": [1096.0, 1127.0, 1796.0] * 20,
         "x: month": [1.0, 2.0, 12.0] * 20},
    ),
    "times of day": one([f"{h:02d}:30" for h in HOURS], "time", HOURS + 0.5),
    "durations": one([f"{h + 20}:15:00" for h in HOURS], "duration", HOURS + 20.25),
    "times of day in French": one([f"{h}h30" for h in HOURS], "time", HOURS + 0.5),
    "hours of half a day": one(
        [f"{h % 12 or 12}{'pm' if h > 11 else 'am'}" for h in HOURS], "time", HOURS
    ),
    "minutes and seconds": one([f"{h}:30.0" for h in HOURS], "duration", (60 * HOURS + 30) / 3600),
    "hours and minutes": one([f"{h}h 30min" for h in HOURS], "duration", HOURS + 0.5),
    # names
    "codes with leading zeros": one(CODES, "code", CODES, lossy=True),
    "categories": one(GROUPS, "category", GROUPS),
    "blanks around categories": one([f" {g}  " for g in GROUPS], "category", GROUPS),
    "categories that look like missing": one(
        with_cells(GROUPS, {2: "NA", 3: "null", 8: " "}), "category",
        [None if i in (2, 3, 8) else g for i, g in enumerate(GROUPS)],
    ),
    "numbers and letters": one(["A1", "2", "B3"] * 20, "category", ["A1", "2", "B3"] * 20),
    "ranges": one(["10-20", "20-30", "30+"] * 20, "category", ["10-20", "20-30", "30+"] * 20),
    "house numbers": one(["1A", "2B", "3C", "4"] * 15, "category", ["1A", "2B", "3C", "4"] * 15),
    "versions": one(["1.2.3", "1.2.0", "2.0.1"] * 20, "category", ["1.2.3", "1.2.0", "2.0.1"] * 20),
    "one level and missing": one(["x", ""] * 30, "category", ["x", None] * 30),
    "the same but for capitals": one(
        [g.upper() if i % 5 == 0 else g for i, g in enumerate(GROUPS)], "category",
        [g.upper() if i % 5 == 0 else g for i, g in enumerate(GROUPS)],
        said="'EAST', 'east' differ in capitals alone",
    ),
    "ordinals": one(["1st", "2nd", "3rd"] * 20, "category", ["1st", "2nd", "3rd"] * 20),
    "faces": one(["\U0001f600", "\U0001f620", ""] * 20, "category",
                 ["\U0001f600", "\U0001f620", None] * 20),
    "cells of JSON": one(['{"a": 1}', '{"a": 2, "b": "x"}'] * 30, "category",
                         ['{"a": 1}', '{"a": 2, "b": "x"}'] * 30),
    # left out
    "blood pressure": one(
        [f"{i + 95}/{i % 7 + 60}" for i in range(N)], "id", said="two numbers in a cell (100/65)"
    ),
    "blood pressure that comes again": one(
        [f"{i % 30 + 95}/{i % 10 + 60}" for i in range(N)], "category", said="two numbers in a cell"
    ),
    "telephones": one([f"+33 6 {i:02d} 34 47 {97 - i:02d}" for i in range(N)], "id"),
    "accounts": one([f"DE{i:02d} 3704 0044 0532 01{i:02d} 00" for i in range(N)], "id"),
    "account numbers": Animal({"Konto": [str(x * 7919 % 999_983) for x in range(N)]},
                              {"Konto": "id"}),
    "row numbers": one(range(1000, 1000 + N), "id"),
    "row numbers of some rows": one(draw.permutation(100)[:N], "id"),
    "customer numbers": Animal({"customerID": [str(x * 7919 % 999_983) for x in range(N)]},
                               {"customerID": "id"}),
    "names of persons": one([f"P{i:04d}" for i in range(N)], "id"),
    "patients with three visits": Animal(
        {"patient_id": [f"P{i // 3:04d}" for i in range(3 * N)]}, {"patient_id": "id"}
    ),
    "two currencies": one(
        ["$\u20ac"[i % 2] + str(x) for i, x in enumerate(NUMBERS)], "id",
        said="amounts in $ and \u20ac",
    ),
    "free text": Animal(
        {"x": SENTENCES}, {"x": "text"},
        {"x: parcel": [float("parcel" in cell.split()) for cell in SENTENCES]},
        said="are read",
    ),
    "a constant": one(["a"] * N, "constant"),
    "nothing": one([""] * N, "empty"),
    # as the user says
    "asked: a code of one digit": one(
        draw.choice(["1", "2", "3"], N), "category", asked=Asked(kinds={"x": "category"})
    ),
    "asked: the month first": Animal(
        {"x": ["01/02/2024", "03/04/2024", "05/06/2024"] * 20}, {"x": "date"},
        {"x: days since 2020-01-01": [1462.0, 1524.0, 1587.0] * 20},
        asked=Asked(kinds={"x": "date-mdy"}), unclear=True,
    ),
    "asked: numbers, whatever else is there": one(
        with_cells(LOW, {i: f"see {i}" for i in range(0, N, 3)}), "number",
        without_rows(LOW, set(range(0, N, 3))), asked=Asked(kinds={"x": "number"}),
    ),
    "asked: keep the row numbers": one(
        range(N), "number", range(N), asked=Asked(keep=("x",))
    ),
    "asked: more texts are missing": one(
        with_cells(GROUPS, {2: "nix"}), "category",
        [None if i == 2 else g for i, g in enumerate(GROUPS)], asked=Asked(missing=("nix",)),
    ),
    "asked: a number is missing": one(
        with_cells(LOW, {2: "-999"}), "number", without_rows(LOW, {2}),
        asked=Asked(missing=("-999",)),
    ),
    "asked: drop": Animal(
        {"x": list(GROUPS), "y": [str(v) for v in LOW]}, {"x": "dropped", "y": "number"},
        {"y": LOW.tolist()}, asked=Asked(drop=("x",)),
    ),
}  # fmt: skip


def test_ages_of_few_persons_are_no_row_numbers():
    """Draws from a range of twice the rows are taken for an identifier once in a hundred."""
    for n in (20, 30, 60, 200, 400):
        taken = 0
        for seed in range(200):
            ages = np.random.default_rng(seed).integers(0, 2 * n, n)
            taken += Reading.learn({"age": ages}).columns[0].kind == "id"
        assert taken <= 2, n


def test_the_zoo_is_large():
    assert len(ZOO) >= 40


def csv_of(animal: Animal) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    writer.writerow(animal.cells)
    writer.writerows(zip(*animal.cells.values(), strict=True))
    return text.getvalue().encode()


def readings(animal: Animal, tmp_path):
    """The same table from every reader, with the reader's name."""
    content = csv_of(animal)
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    yield "csv", read_frame(path, doubts=True)
    yield "pandas, texts", pd.read_csv(io.BytesIO(content), dtype=str, keep_default_na=False)
    yield "polars, texts", pl.read_csv(content, infer_schema=False)
    yield "dict", {name: list(cells) for name, cells in animal.cells.items()}
    frame = pl.read_csv(content, infer_schema=False)
    frame.write_parquet(tmp_path / "x.parquet")
    yield "parquet, texts", read_frame(tmp_path / "x.parquet")
    if not animal.lossy:
        yield "pandas", pd.read_csv(io.BytesIO(content))
        yield "pandas, arrow", pd.read_csv(io.BytesIO(content), dtype_backend="pyarrow")
        inferred = pl.read_csv(content, infer_schema_length=None)
        yield "polars", inferred
        if not animal.unclear:
            yield (
                "polars, dates",
                pl.read_csv(content, infer_schema_length=None, try_parse_dates=True),
            )
        inferred.write_parquet(tmp_path / "y.parquet")
        yield "parquet", read_frame(tmp_path / "y.parquet")
        yield "arrow", inferred.to_arrow()


def plain(table) -> dict[str, list]:
    found = {}
    for j, name in enumerate(table.names):
        cells, texts = table.column(j), table.categories[j]
        found[name] = (
            cells.tolist() if texts is None else [texts[c] if c >= 0 else None for c in cells]
        )
    return found


def same(found: list, expected: list) -> bool:
    if any(isinstance(cell, str) for cell in expected):
        return found == [None if cell is None else str(cell) for cell in expected]
    return np.array_equal(np.array(found, float), np.array(expected, float), equal_nan=True)


@pytest.mark.parametrize("name", ZOO)
def test_every_reader_reads_it_right(name, tmp_path):
    animal = ZOO[name]
    first = None
    for reader, frame in readings(animal, tmp_path):
        reading = Reading.learn(frame, animal.asked)
        assert {c.name: c.kind for c in reading.columns} == animal.kinds, (reader, reading)
        if animal.said and reader != "polars, dates":
            assert animal.said in reading.columns[0].said, (reader, reading.columns[0].said)
        if not reading.inputs:
            with pytest.raises(ValueError, match="No column is left"):
                reading.apply(frame)
            continue
        made = plain(reading.apply(frame))
        for column, expected in animal.made.items():
            assert same(made[column], expected), (reader, column, made[column])
        first = first or (reading, made)
        assert list(made) == list(first[1]), reader
        # what was learned from one reader reads the table of every other one
        crossed = plain(first[0].apply(frame))
        assert all(same(crossed[c], first[1][c]) for c in made), reader
        assert Reading.from_dict(reading.to_dict()) == reading


@pytest.mark.parametrize("name", ZOO)
def test_the_shell_reads_it_right(name, tmp_path, capsys):
    animal = ZOO[name]
    path = tmp_path / "x.csv"
    path.write_bytes(csv_of(animal))
    words = ["look", str(path), "--json"]
    for column, kind in animal.asked.kinds.items():
        words += ["--as", f"{column}={kind}"]
    for option in ("drop", "keep"):
        words += [w for column in getattr(animal.asked, option) for w in (f"--{option}", column)]
    if animal.asked.missing:
        words += ["--missing", ",".join(animal.asked.missing)]
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert not stop.value.code
    found = json.loads(capsys.readouterr().out)["columns"]
    assert {column["name"]: column["kind"] for column in found} == animal.kinds
    assert animal.said in found[0]["said"]


@pytest.mark.parametrize("name", ZOO)
def test_neither_the_order_of_rows_nor_blocks_matter(name):
    animal = ZOO[name]
    frame = pl.DataFrame({c: list(cells) for c, cells in animal.cells.items()})
    whole = Reading.learn(frame, animal.asked)
    order = np.random.default_rng(1).permutation(frame.height)
    turned = frame[order.tolist()]
    assert Reading.learn(turned, animal.asked) == whole
    parts = [gather(turned[k : k + 17], animal.asked.missing) for k in range(0, frame.height, 17)]
    total = {c: Evidence(0, 0) for c in frame.columns}
    for part in parts:
        total = {c: total[c] + part[c] for c in total}
    assert Reading.decide(total, animal.asked) == whole
    if whole.inputs:
        made, again = plain(whole.apply(frame)), plain(whole.apply(turned))
        assert all(same(again[c], np.array(made[c], dtype=object)[order].tolist()) for c in made)


@pytest.mark.parametrize("hour", ["0", "13", "24"])
def test_an_hour_of_half_a_day_is_one_of_twelve(hour):
    assert date_texts("2024-02-03 12:30 pm")
    assert not date_texts(f"2024-02-03 {hour}:30 pm")
