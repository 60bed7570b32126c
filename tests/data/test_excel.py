"""Excel files: read through an extra, or refused by name with the remedy."""

from __future__ import annotations

import gzip
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from laconic.data.reading.reading import Reading
from laconic.data.scan.scan import scan
from laconic.data.tables.files import read_frame
from laconic.data.tables.text import UnreadableFileError

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
REL = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACK = "http://schemas.openxmlformats.org/package/2006"


def cell(place: str, value) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return f'<c r="{place}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, np.datetime64):  # days since 1899-12-30, in a date's format
        days = (value - np.datetime64("1899-12-30")).astype(int)
        return f'<c r="{place}" s="1"><v>{days}</v></c>'
    if isinstance(value, int | float):
        return f'<c r="{place}"><v>{value}</v></c>'
    return f'<c r="{place}" t="inlineStr"><is><t>{value}</t></is></c>'


def write_book(path: Path, sheets: dict[str, list[list]]) -> Path:
    """The smallest workbook that programs read."""
    names = list(enumerate(sheets, start=1))
    listed = "".join(f'<sheet name="{n}" sheetId="{i}" r:id="r{i}"/>' for i, n in names)
    links = "".join(
        f'<Relationship Id="r{i}" Type="{REL}/worksheet" Target="worksheets/s{i}.xml"/>'
        for i, _ in names
    )
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{PACK}/content-types">'
        '<Default Extension="xml" ContentType="application/xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{PACK}/relationships"><Relationship Id="r1" '
        f'Type="{REL}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{REL}"><sheets>{listed}</sheets>'
        "</workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACK}/relationships">{links}'
        f'<Relationship Id="r0" Type="{REL}/styles" Target="styles.xml"/></Relationships>',
        "xl/styles.xml": f'<styleSheet xmlns="{MAIN}"><cellXfs><xf numFmtId="0"/>'
        '<xf numFmtId="14"/></cellXfs></styleSheet>',
    }
    for i, name in names:
        rows = "".join(
            f'<row r="{r}">{"".join(cell(f"{chr(65 + c)}{r}", v) for c, v in enumerate(row))}</row>'
            for r, row in enumerate(sheets[name], start=1)
        )
        data = f"<sheetData>{rows}</sheetData>"
        parts[f"xl/worksheets/s{i}.xml"] = f'<worksheet xmlns="{MAIN}">{data}</worksheet>'
    with zipfile.ZipFile(path, "w") as book:
        for name, content in parts.items():
            book.writestr(name, '<?xml version="1.0"?>' + content)
    return path


def table(n: int = 30) -> list[list]:
    days = [np.datetime64("2023-01-01") + 7 * k for k in range(n)]
    rows = [[1.5 * k, days[k], k % 3 == 0, f"{k},5" if k != 4 else "unknown", "ab"[k % 2]]
            for k in range(n)]  # fmt: skip
    return [["size", "day", "ok", "text", None], *rows]


def test_a_sheet_is_read_in_its_types(tmp_path):
    pytest.importorskip("fastexcel")
    path = write_book(tmp_path / "book.xlsx", {"rows": table(), "nothing": []})
    frame = read_frame(path)
    reading = Reading.learn(frame)
    kinds = {column.name: column.kind for column in reading.columns}
    assert kinds == {"size": "number", "day": "date", "ok": "yes/no", "text": "number",
                     "Unnamed: 4": "category"}  # fmt: skip
    made = reading.apply(frame)
    np.testing.assert_array_equal(made.column(0), 1.5 * np.arange(30))
    np.testing.assert_array_equal(made.column(1), 1096.0 + 7 * np.arange(30))
    assert np.isnan(made.column(made.place("text"))[4])
    assert made.column(made.place("text"))[5] == 5.5


@pytest.mark.parametrize(
    ("sheets", "sentence"),
    [
        ({"a": table(), "b": table()}, "2 sheets .a, b. with cells; save the one to read"),
        ({"a": []}, "no sheet with cells"),
        ({"a": [["x", "x"], [1, 2]]}, "more than once|x_1"),
    ],
)
def test_books_that_are_no_table_are_refused(tmp_path, sheets, sentence):
    pytest.importorskip("fastexcel")
    path = write_book(tmp_path / "book.xlsx", sheets)
    if "x_1" in sentence:  # the reader itself gives the second one another name
        assert read_frame(path).columns == ["x", "x_1"]
        return
    with pytest.raises(UnreadableFileError, match=sentence):
        read_frame(path)


def test_without_the_extra_the_remedy_is_named(tmp_path, monkeypatch):
    path = write_book(tmp_path / "book.xlsx", {"rows": table()})
    monkeypatch.setitem(sys.modules, "fastexcel", None)
    with pytest.raises(UnreadableFileError, match=r"install laconic\[excel\], or save it as CSV"):
        read_frame(path)
    with pytest.raises(UnreadableFileError, match="leave --scan out"):
        scan(path)


def test_files_that_are_no_text_are_named(tmp_path):
    book = write_book(tmp_path / "book.xlsx", {"rows": table()})
    for content, what in (
        (book.read_bytes(), "an Excel or zip file; call it .xlsx"),
        (b"PAR1" + bytes(20), "a Parquet file; call it .parquet"),
        (b"\xd0\xcf\x11\xe0" + bytes(20), "an old Excel file; call it .xls"),
        (gzip.compress(b"a,b\n1,2\n"), "a gzip file; call it .csv.gz"),
    ):
        path = tmp_path / "rows.csv"
        path.write_bytes(content)
        with pytest.raises(UnreadableFileError, match=what):
            read_frame(path)
