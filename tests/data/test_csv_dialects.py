"""One CSV reader: in memory, in chunks and from a scan, with and without polars, cell by cell."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest

from laconic.data.scan.scan import scan
from laconic.data.tables import chunks, files
from laconic.data.tables.cells import BLANKS, MISSING_TEXTS, cleaned, looks, plain_numbers
from laconic.data.tables.chunks import read_chunks
from laconic.data.tables.files import read_frame
from laconic.data.tables.text import TextFormat, UnreadableFileError, header_of
from laconic.data.tables.western import Utf8OrWestern

PLAIN = {"n": [1.0, 2.5, None], "t": ["x", "y", "x"], "y": ["a", "b", "a"]}

DIALECTS = {
    "plain": (b"n,t,y\n1,x,a\n2.5,y,b\n,x,a\n", PLAIN),
    "no last line end": (b"n,t,y\n1,x,a\n2.5,y,b\n,x,a", PLAIN),
    "semicolons": (b"n;t;y\n1;x;a\n2.5;y;b\n;x;a\n", PLAIN),
    "tabs": (b"n\tt\ty\n1\tx\ta\n2.5\ty\tb\n\tx\ta\n", PLAIN),
    "bars": (b"n|t|y\n1|x|a\n2.5|y|b\n|x|a\n", PLAIN),
    "blank after the comma": (b"n, t, y\n1, x, a\n2.5, y, b\n, x, a\n", PLAIN),
    "blanks everywhere": (b" n , t ,y \n 1 ,x , a\n2.5\t,y,b \n ,x,a\n", PLAIN),
    "quotes": (b'"n","t","y"\n"1","x","a"\n"2.5","y","b"\n"","x","a"\n', PLAIN),
    "a quote after a blank": (b'n, t, y\n1, "x", a\n2.5, "y", b\n, "x", a\n', PLAIN),
    "mark of UTF-8": (b"\xef\xbb\xbfn,t,y\n1,x,a\n2.5,y,b\n,x,a\n", PLAIN),
    "line ends of DOS": (b"n,t,y\r\n1,x,a\r\n2.5,y,b\r\n,x,a\r\n", PLAIN),
    "line ends of old Macs": (b"n,t,y\r1,x,a\r2.5,y,b\r,x,a\r", PLAIN),
    "empty lines": (b"\nn,t,y\n\n1,x,a\n\n\n2.5,y,b\n,x,a\n\n", PLAIN),
    "lines of blanks": (b"n,t,y\n  \n1,x,a\n2.5,y,b\n \t\n,x,a\n", PLAIN),
    "separator named by Excel": (b"sep=;\nn;t;y\n1;x;a\n2.5;y;b\n;x;a\n", PLAIN),
    "trailing separators in the rows": (b"n,t,y\n1,x,a,\n2.5,y,b,\n,x,a, ,\n", PLAIN),
    "trailing separators": (
        b"n,t,y,\n1,x,a,\n2.5,y,b,\n,x,a,\n",
        PLAIN | {"Unnamed: 3": [None, None, None]},
    ),
    "an index without a name": (
        b",n,t,y\n0,1,x,a\n1,2.5,y,b\n2,,x,a\n",
        {"Unnamed: 0": [0.0, 1.0, 2.0], **PLAIN},
    ),
    "UTF-16": ("n,t,y\n1,x,a\n2.5,y,b\n,x,a\n".encode("utf-16"), PLAIN),
    "decimal commas": (
        b"n;t\n1,5;x\n2,25;y\n;x\n",
        {"n": ["1,5", "2,25", None], "t": ["x", "y", "x"]},
    ),
    "decimal commas under names with a comma": (
        b"n (m, cm);t\n1,5;x\n2,25;y\n;x\n",
        {"n (m, cm)": ["1,5", "2,25", None], "t": ["x", "y", "x"]},
    ),
    "truth values": (
        b"a,b,c\nTRUE,true,True\nFALSE,false,False\nTRUE,true,True\n",
        {"a": ["TRUE", "FALSE", "TRUE"], "b": ["true", "false", "true"],
         "c": ["True", "False", "True"]},
    ),
    "leading zeros": (
        b"code,n\n01322,1\n75001,2\n,3\n",
        {"code": ["01322", "75001", None], "n": [1.0, 2.0, 3.0]},
    ),
    "numbers in every plain way": (
        b"n,m\n+1.,1e3\n-.5,1E-2\n0,-0\n007.5,12\n",
        {"n": [1.0, -0.5, 0.0, 7.5], "m": [1000.0, 0.01, 0.0, 12.0]},
    ),
    "no numbers": (
        "a,b,c\n1_000,\u0663,0x10\n2,2,2\n".encode(),
        {"a": ["1_000", "2"], "b": ["\u0663", "2"], "c": ["0x10", "2"]},
    ),
    "all that is missing": (
        b"a\n" + b"".join(text.encode() + b"x\n" for text in ["1"])
        + b"".join(b" " + text.encode() + b"\n" for text in sorted(MISSING_TEXTS)),
        {"a": ["1x", *[None] * len(MISSING_TEXTS)]},
    ),
    "separators, quotes and lines inside quotes": (
        b'n,t,y\n1,"x, ""big""",a\n2.5,"y\nz",b\n,x,a\n',
        PLAIN | {"t": ['x, "big"', "y\nz", "x"]},
    ),
    "accents": (
        "n,t\u00e9,y\n1,\u00e9t\u00e9,a\n2.5,\u00a0y\u00a0,b\n,x,a\n".encode(),
        {"n": PLAIN["n"], "t\u00e9": ["\u00e9t\u00e9", "y", "x"], "y": PLAIN["y"]},
    ),
    "one column": (b"n\n1\n\n2\n", {"n": [1.0, 2.0]}),
    "one column of quotes": (b'n\n"1"\n""\n2\n', {"n": [1.0, None, 2.0]}),
    "a column without cells": (b"n,e\n1,\n2,NA\n", {"n": [1.0, 2.0], "e": [None, None]}),
}  # fmt: skip

REFUSED = {
    "empty": (b"", "is empty"),
    "only empty lines": (b"\n\n", "is empty"),
    "a header alone": (b"a,b\n", "no rows"),
    "no header": (b"1.5,x\n2.5,y\n".replace(b"x", b"3").replace(b"y", b"4"), "begins with numbers"),
    "a name twice": (b"a,b,a\n1,2,3\n", "'a' more than once"),
    "a long line": (b"a,b\n1,2\n1,2,3\n", "line 3: 3 cells where the header names 2"),
    "a short line": (b"a,b\n1,2\n1\n", "line 3: 1 cells where the header names 2"),
    "a short and a long line": (b"a,b,c\n1,2\n1,2,3,4\n", "line 2: 2 cells"),
    "a title above the header": (b"My bank\n\na,b\n1,2\n", "remove the lines above the header"),
    "DOS": ("a,b\nr\u00e9clam\u00e9,1\n".encode("cp850"), "not UTF-8 text"),
    "UTF-8 after cp1252": (b"a,b\n\xe9t\xe9,1\n" + "\u00e9t\u00e9,2\n".encode(), "not UTF-8 text"),
    "cp1252 after UTF-8": ("\u00e9t\u00e9,b\n1,2\n".encode() + b"\xe9t\xe9,2\n", "not UTF-8 text"),
    "a quote that is never closed": (b'a,b\n"1,2\n' + b"3,4\n" * 40_000, "never closed"),
}


def plain(frame) -> dict[str, list]:
    """Columns as lists, numbers as floats, None for missing."""
    columns = frame if isinstance(frame, dict) else frame.to_dict(as_series=False)
    return {name: [_cell(cell) for cell in cells] for name, cells in columns.items()}


def _cell(cell):
    if cell is None or isinstance(cell, str):
        return cell
    return None if np.isnan(cell) else float(cell)


def without_polars(monkeypatch):
    monkeypatch.setattr(chunks, "polars_or_none", lambda: None)
    monkeypatch.setattr(files, "polars_or_none", lambda: None)


@pytest.mark.parametrize("name", DIALECTS)
def test_every_reader_finds_the_same_cells(name, tmp_path, monkeypatch):
    content, expected = DIALECTS[name]
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    assert plain(read_frame(path)) == expected
    packed = tmp_path / "table.csv.gz"
    packed.write_bytes(gzip.compress(content))
    assert plain(read_frame(packed)) == expected
    rows = scan(path, block_rows=2)._plan.rows
    assert plain(rows.read(0, rows.n_rows, list(expected))) == expected
    in_pieces = [plain(chunk) for chunk in read_chunks(path, chunk_rows=2)]
    whole = [plain(chunk) for chunk in read_chunks(packed)]
    for column in expected:
        assert [cell for piece in in_pieces for cell in piece[column]] == whole[0][column]
    without_polars(monkeypatch)
    assert plain(read_frame(path)) == expected
    assert [plain(chunk) for chunk in read_chunks(path)] == whole


@pytest.mark.parametrize("name", REFUSED)
def test_every_reader_refuses_the_same_with_one_sentence(name, tmp_path, monkeypatch):
    content, sentence = REFUSED[name]
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    for read in (read_frame, scan):
        with pytest.raises(UnreadableFileError, match=sentence):
            read(path)
    without_polars(monkeypatch)
    with pytest.raises(UnreadableFileError, match=sentence):
        read_frame(path)


@pytest.mark.parametrize("seed", range(12))
def test_readers_agree_with_pandas_on_drawn_files(seed, tmp_path, monkeypatch):
    """Cells, separators, quotes and line ends drawn at random; pandas is the other reader."""
    draw = np.random.default_rng(seed)
    cells = ["", "1", "-2.5", "1e3", "x", "y z", "TRUE", "NA", "0.1", "a;b", "c|d", "e,f"]
    few = [str(cell) for cell in draw.choice(cells, 6, replace=False)] + ["7"]
    table = draw.choice(few, (40, 4))
    table[:, 0] = draw.choice(["1", "2.25", "-3e-2", ""], 40)
    names = ["p", "q", "r", "s"]
    ends = str(draw.choice(["\n", "\r\n"]))
    separator = str(draw.choice([",", ";", "\t"]))
    path = tmp_path / "table.csv"
    frame = pd.DataFrame(table, columns=names)
    quoting = int(draw.choice([0, 1]))
    frame.to_csv(path, index=False, sep=separator, lineterminator=ends, quoting=quoting)
    peer = pd.read_csv(path, sep=separator, dtype={"q": str, "r": str, "s": str})
    expected = {}
    for name in names:
        own = [None if pd.isna(cell) else cell for cell in peer[name].tolist()]
        texts = [cell for cell in own if isinstance(cell, str)]
        if texts and all(text in ("1", "-2.5", "1e3", "0.1", "7") for text in texts):
            own = [None if cell is None else float(cell) for cell in own]
        expected[name] = own
    text = TextFormat(separator)
    assert plain(read_frame(path, text)) == expected
    rows = scan(path, separator=separator)._plan.rows
    assert plain(rows.read(0, rows.n_rows, names)) == expected
    without_polars(monkeypatch)
    assert plain(read_frame(path, text)) == expected


def test_polars_and_lists_are_cleaned_alike():
    import polars as pl

    texts = [f"{a}{b}{c}" for a in ["", *BLANKS] for b in ["x", "01", "1.", "NA", "-inf", "1e400"]
             for c in ["", *BLANKS]]  # fmt: skip
    series = pl.Series(texts)
    assert cleaned(series).to_list() == cleaned(texts)
    own = cleaned(texts)
    np.testing.assert_array_equal(plain_numbers(pl.Series(own)), plain_numbers(own))
    for some in (own, ["1", "2"], ["1", "0.5"], ["01", "2"], [None], ["9" * 16], ["+1", "-0"]):
        assert looks(pl.Series(some, dtype=pl.String)) == looks(some)


def test_the_standard_input_is_read_alike(monkeypatch):
    class Pipe:
        buffer = io.BytesIO(DIALECTS["quotes"][0])

    monkeypatch.setattr("sys.stdin", Pipe)
    assert plain(read_frame("-")) == PLAIN


def test_several_files_of_a_scan_have_one_kind_of_each_column(tmp_path):
    (tmp_path / "a.csv").write_text("n,t\n1,2\n2,3\n")
    (tmp_path / "b.csv").write_text("t;n\nx;4\n")
    rows = scan(tmp_path)._plan.rows
    assert plain(rows.read(0, 3, ["n", "t"])) == {"n": [1.0, 2.0, 4.0], "t": ["2", "3", "x"]}


def test_a_table_beyond_the_memory_is_told_before_polars_ends_the_process(tmp_path, monkeypatch):
    pytest.importorskip("polars")
    path = tmp_path / "rows.csv"
    path.write_text("a,y\n" + "0,1\n1,0\n" * 2_000)
    assert files.memory_left() > 0
    monkeypatch.setattr(files, "memory_left", lambda: 1e6)
    assert len(read_frame(path)) == 4_000
    monkeypatch.setattr(files, "memory_left", lambda: 1e5)  # 16 bytes stand for each of 8,000 texts
    with pytest.raises(MemoryError):
        read_frame(path)


@pytest.mark.parametrize("piece", [1, 7, 64, 1 << 20])
def test_a_file_read_in_pieces_is_the_whole_file(tmp_path, monkeypatch, piece):
    """Pieces end with a line, whatever their size; the last line may lack its end."""
    pl = pytest.importorskip("polars")
    path = tmp_path / "rows.csv"
    cells = [[str(k), "é" * (k % 5), f" x{k}"] for k in range(40)]
    path.write_text("a,b,c\n" + "\n".join(",".join(row) for row in cells), encoding="utf-8")
    monkeypatch.setattr(chunks, "_PIECE", piece)
    parts = list(chunks._regular_chunks(pl, path, chunks.TextFormat(), None, 16))
    assert max(map(len, parts)) <= 16
    whole = pl.concat(parts).rows()
    assert whole == [(a, b, c.strip()) for a, b, c in cells]


def test_polars_is_not_loaded_where_it_has_no_room():
    """Its import left half a module, whose names were then missing, or it ended the process."""
    words = (
        "import resource; import laconic.data.tables.chunks as chunks;"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize();"
        "resource.setrlimit(resource.RLIMIT_AS, (used + 900_000_000,) * 2);"
        "chunks.polars_or_none()"
    )
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True)
    assert "MemoryError: the memory is not enough to read a table: polars reserves" in done.stderr


def test_a_head_of_many_names_is_read_in_one_pass(tmp_path):
    """Each name was counted among all: 200,000 of them took minutes."""
    names = [f"c{k}" for k in range(200_000)]
    assert header_of(iter([names]), "rows.csv") == names


FRENCH = {
    "dossier": [f"{k} \u00e0 l\u2019\u00e9tang" for k in range(4)],
    "montant d\u00fb": [
        "1\u00a0250,50 \u20ac",
        "3 \u0153uvres \u2013 n\u00b0 2",
        "\u00ab\u00a0\u00e9t\u00e9\u00a0\u00bb",
        "80,00 \u20ac",
    ],
}


def french(n_ascii: int, encoding: str) -> bytes:
    """A table as French Excel writes it, after rows that are the same in every encoding."""
    rows = [["dossier", "montant"], *[["x", str(k)] for k in range(n_ascii)]]
    rows += list(zip(*FRENCH.values(), strict=True))
    return "".join(f"{a};{b}\r\n" for a, b in rows).encode(encoding)


@pytest.mark.parametrize("n_ascii", [0, 30_000])  # the first accent in the head, and far below it
def test_cp1252_has_the_cells_of_utf8_in_every_reader_and_is_said(n_ascii, tmp_path, monkeypatch):
    same = tmp_path / "utf8.csv"
    same.write_bytes(french(n_ascii, "utf-8"))
    expected = plain(read_frame(same))
    path, packed = tmp_path / "table.csv", tmp_path / "table.csv.gz"
    content = french(n_ascii, "cp1252")
    path.write_bytes(content)
    packed.write_bytes(gzip.compress(content))
    said = "not UTF-8; it is read as cp1252"
    for own in (path, packed):
        with pytest.warns(UserWarning, match=f"{own.name} is {said}"):
            assert plain(read_frame(own)) == expected
    with pytest.warns(UserWarning, match=said):
        rows = scan(path)._plan.rows
    assert plain(rows.read(0, rows.n_rows, list(expected))) == expected
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    with pytest.warns(UserWarning, match="the standard input is not UTF-8"):
        assert plain(read_frame("-")) == expected
    assert plain(read_frame(path, TextFormat(encoding="cp1252"))) == expected
    without_polars(monkeypatch)
    with pytest.warns(UserWarning, match=said):
        assert plain(read_frame(path)) == expected


@pytest.mark.parametrize("piece", [1, 2, 3, 5, 7])
def test_encoding_is_told_in_the_same_way_however_the_text_is_cut(piece):
    class Dripping(io.BytesIO):
        def read(self, size=-1):
            return super().read(min(piece, size) if size >= 0 else piece)

    for encoding, text in [
        ("cp1252", "a \u00e9t\u00e9 \u20ac"),
        ("utf-8", "a \u20ac \u00e9"),
        ("utf-8", "a \U0001f600"),
    ]:
        stream = Utf8OrWestern(Dripping(text.encode(encoding)), "x")
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            assert io.BufferedReader(stream).read().decode() == text
        assert len(said) == (encoding == "cp1252")


ELSEWHERE = {
    "cp1251": "\u041f\u0440\u0438\u0432\u0435\u0442",
    "koi8_r": "\u043f\u0440\u0438\u0432\u0435\u0442",
    "cp1253": "\u039a\u03b1\u03bb\u03b7\u03bc\u03ad\u03c1\u03b1",
    "cp1250": "s\u0142owo",
    "mac_roman": "r\u00e9clam\u00e9",
    "cp850": "r\u00e9clam\u00e9",
    "gbk": "\u4f60\u597d",
    "shift_jis": "\u3053\u3093\u306b\u3061\u306f",
}


@pytest.mark.parametrize("encoding", ELSEWHERE)
@pytest.mark.parametrize("piece", [1, 1 << 16])
@pytest.mark.filterwarnings("ignore")  # said before the piece that is refused
def test_other_encodings_are_not_taken_for_cp1252(encoding, piece):
    class Dripping(io.BytesIO):
        def read(self, size=-1):
            return super().read(min(piece, size))

    content = f"a;{ELSEWHERE[encoding]};b".encode(encoding)
    stream = io.BufferedReader(Utf8OrWestern(Dripping(content), "x"))
    with pytest.raises(UnicodeError):
        stream.read()


def test_a_packed_line_without_end_is_refused_before_it_is_whole(tmp_path):
    """A file of 1.4 MB held one line of 1.5 GB, and took 3.2 GB to be refused."""
    path = tmp_path / "rows.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as packed:
        packed.write(b"a,y\n" + b"1," * 12_000_000)
    tracemalloc.start()
    with pytest.raises(UnreadableFileError, match="line of the file is longer than 16,777,216"):
        read_frame(path)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 150e6
    long = tmp_path / "long.csv.gz"
    names, cell = [f"c{j}" for j in range(200)], "x" * 60_000
    text = f"{','.join(names)}\n{','.join([cell] * 200)}\n"
    long.write_bytes(gzip.compress(text.encode(), 1))
    assert plain(read_frame(long)) == {name: [cell] for name in names}
