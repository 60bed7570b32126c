"""Named data sets: the folder, the cache, the download (against a server on this machine)."""

import csv
import gzip
import hashlib
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pytest
from sklearn.datasets import load_wine

from laconic.data import datasets, uci
from laconic.data.uci import (
    DatasetChecksumError,
    DatasetDownloadError,
    DatasetNotFoundError,
    content_digest,
    read_classes,
)

RAW = b"""colour,size,weight,target
red,1.0,0.5,yes
blue,2.0,,no
,1.0,1e-3,yes
"""


def write_folder(folder, name="toy", content=RAW, sha256=None, categorical="colour size"):
    packed = gzip.compress(content, mtime=0)
    (folder / f"{name}.csv.gz").write_bytes(packed)
    with (folder / "INDEX.csv").open("w", newline="") as text:
        writer = csv.writer(text)
        writer.writerow(["name", "file", "sha256", "categorical_columns", "notes"])
        digest = hashlib.sha256(packed).hexdigest() if sha256 is None else sha256
        writer.writerow([name, f"{name}.csv.gz", digest, categorical, "a, note"])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    data = tmp_path / "data"
    data.mkdir()
    monkeypatch.setenv("LACONIC_DATA", str(data))
    monkeypatch.setenv("LACONIC_CACHE", str(tmp_path / "cache"))
    return data


@pytest.fixture(params=["pandas", "polars", "numpy"])
def frames(request, monkeypatch):
    """Pretend that only some frame libraries are installed."""
    hidden = {"pandas": (), "polars": ("pandas",), "numpy": ("pandas", "polars")}[request.param]
    real = datasets.find_spec
    monkeypatch.setattr(datasets, "find_spec", lambda name: None if name in hidden else real(name))
    return request.param


def test_integer_codes_are_categories_and_empty_cells_are_missing(folder, frames):
    write_folder(folder)
    toy = datasets.load("toy")
    assert toy.columns == ("colour", "size", "weight")
    assert toy.categorical == ("colour", "size")
    assert toy.y.tolist() == ["yes", "no", "yes"]
    assert toy.notes == "a, note"
    if frames == "pandas":
        assert toy.X.dtypes.astype(str).tolist() == ["category", "category", "float64"]
        cells = [
            toy.X[c].astype(object).where(toy.X[c].notna(), None).tolist() for c in toy.columns
        ]
    elif frames == "polars":
        cells = [toy.X[c].to_list() for c in toy.columns]
    else:
        assert toy.X.dtype == object
        cells = toy.X.T.tolist()
    assert cells[:2] == [["red", "blue", None], ["1", "2", "1"]]
    weight = np.array([np.nan if cell is None else cell for cell in cells[2]], dtype=float)
    np.testing.assert_array_equal(weight, [0.5, np.nan, 1e-3])


def test_numeric_set_without_frames_is_a_float_array(folder, monkeypatch):
    monkeypatch.setattr(datasets, "find_spec", lambda name: None)
    write_folder(folder, content=b"a,b,target\n1,2,0\n3,,1\n", categorical="")
    toy = datasets.load("toy")
    np.testing.assert_array_equal(toy.X, [[1.0, 2.0], [3.0, np.nan]])
    assert toy.y.dtype == np.int64


@pytest.mark.parametrize(
    ("text", "categorical", "indicators"),
    [
        ("all", ["a1", "a2", "b"], []),
        ("all but b", ["a1", "a2"], []),
        ("all 0/1", [], ["a1", "a2", "b"]),
        ("a1..a2 are 0/1", [], ["a1", "a2"]),
        ("b and the 0/1 columns", ["b"], ["a1"]),
        ("", [], []),
    ],
)
def test_how_an_index_declares_columns(folder, text, categorical, indicators):
    write_folder(folder, content=b"a1,a2,b,target\n0,5,1,0\n1,6,0,1\n", categorical=text)
    toy = datasets.load("toy")
    assert list(toy.categorical) == categorical
    assert list(toy.indicators) == indicators


def test_npz_images(folder):
    np.savez(
        folder / "digits.npz", X=np.arange(8, dtype=np.uint8).reshape(2, 4), y=np.uint8([3, 7])
    )
    sha = hashlib.sha256((folder / "digits.npz").read_bytes()).hexdigest()
    (folder / "INDEX.csv").write_text(f"name,file,sha256\ndigits,digits.npz,{sha}\n")
    digits = datasets.load("digits")
    np.testing.assert_array_equal(np.asarray(digits.X), [[0, 1, 2, 3], [4, 5, 6, 7]])
    assert digits.y.tolist() == [3, 7]


def test_a_changed_file_is_refused(folder):
    write_folder(folder, sha256="0" * 64)
    with pytest.raises(DatasetChecksumError, match=r"toy\.csv\.gz has sha256"):
        datasets.load("toy")


def test_a_missing_set_is_named_with_what_to_do(folder):
    assert not datasets.available("nowhere")
    with pytest.raises(DatasetNotFoundError, match=r"'nowhere'.*INDEX\.csv.*LACONIC_DATA"):
        datasets.load("nowhere")
    with pytest.raises(DatasetNotFoundError, match=r"'iris'.*download=True"):
        datasets.load("iris", download=False)


def test_an_index_line_without_its_file_is_not_available(folder):
    write_folder(folder)
    (folder / "toy.csv.gz").unlink()
    assert not datasets.available("toy")
    assert "toy" not in datasets.names()


def test_names_hold_the_folder_and_the_downloads(folder):
    write_folder(folder)
    assert {"toy", "adult", "covtype"} <= set(datasets.names())
    assert datasets.available("toy")
    assert not datasets.available("adult")


# --- downloads, from a server on 127.0.0.1 -----------------------------------------------------

RECIPE = uci.Recipe(
    ("toy/toy.data",), "target - colour size", digest="", categorical="colour", separator=","
)
FILE = b"| a comment\nyes, 1, red, 0.50\nno,2,?,?\n\nyes.,3,blue,7\n"


class Answers(BaseHTTPRequestHandler):
    content = FILE
    announced = None
    asked: list = []

    def do_GET(self):
        type(self).asked.append(self.path)
        if not self.path.endswith("/toy/toy.data"):
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(self.announced or len(self.content)))
        self.end_headers()
        self.wfile.write(self.content)

    def log_message(self, *args):
        pass


@pytest.fixture
def server(folder, monkeypatch):
    handler = type("Handler", (Answers,), {"asked": []})
    http = HTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(uci, "BASE", f"http://127.0.0.1:{http.server_port}/ml/")
    columns, labels = uci.parse(RECIPE, [FILE])
    digest = content_digest(columns, read_classes(labels))
    good = uci.Recipe(RECIPE.files, RECIPE.columns, digest, RECIPE.categorical)
    monkeypatch.setitem(uci.RECIPES, "toy", good)
    yield handler
    http.shutdown()
    http.server_close()
    thread.join()


def test_download_once_then_from_the_cache(server):
    assert not datasets.available("toy")
    first = datasets.load("toy")
    assert first.columns == ("colour", "size")
    assert first.y.tolist() == ["yes", "no", "yes"]
    assert first.X["colour"].astype(object).where(first.X["colour"].notna(), None).tolist() == [
        "red",
        None,
        "blue",
    ]
    np.testing.assert_array_equal(first.X["size"], [0.5, np.nan, 7.0])
    assert datasets.available("toy")
    again = datasets.load("toy")
    assert again.X.equals(first.X)
    assert server.asked == ["/ml/toy/toy.data"]


def test_the_folder_comes_before_the_cache(server, folder):
    write_folder(folder)
    assert datasets.load("toy").columns == ("colour", "size", "weight")
    assert server.asked == []


def test_changed_values_are_refused_and_not_kept(server):
    server.content = FILE.replace(b"0.50", b"0.51")
    with pytest.raises(DatasetChecksumError, match=r"toy.*digest"):
        datasets.load("toy")
    assert not datasets.available("toy")


def test_another_spelling_of_the_same_values_is_accepted(server):
    server.content = FILE.replace(b"0.50", b".5").replace(b"\n", b"\r\n")
    assert datasets.load("toy").X.shape == (3, 2)


def test_a_dropped_row_is_refused(server):
    server.content = FILE.replace(b"yes.,3,blue,7\n", b"")
    with pytest.raises(DatasetChecksumError):
        datasets.load("toy")


def test_truncated_answer(server):
    server.announced = len(FILE) + 10
    with pytest.raises(DatasetDownloadError, match=f"toy.*stopped after {len(FILE)} bytes"):
        datasets.load("toy")


def test_no_such_address(server, monkeypatch):
    monkeypatch.setitem(uci.RECIPES, "gone", uci.Recipe(("gone.data",), "a target", ""))
    with pytest.raises(DatasetNotFoundError, match=r"'gone'.*404.*LACONIC_DATA"):
        datasets.load("gone")


def test_no_network(folder, monkeypatch):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(uci, "BASE", f"http://127.0.0.1:{port}/")
    with pytest.raises(DatasetDownloadError, match=r"'iris'.*refused.*LACONIC_DATA"):
        datasets.load("iris")


def test_a_broken_cache_file_is_refused(server, tmp_path):
    datasets.load("toy")
    file = tmp_path / "cache" / "toy.csv.gz"
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(DatasetChecksumError):
        datasets.load("toy")


def test_digest_sees_a_moved_row_and_a_changed_text():
    columns = {"a": np.array([1.0, 2.0]), "b": np.array(["u", None], dtype=object)}
    labels = np.array(["x", "y"])
    digest = content_digest(columns, labels)
    swapped = {name: column[::-1] for name, column in columns.items()}
    assert content_digest(swapped, labels) != digest
    changed = {**columns, "b": np.array(["v", None], dtype=object)}
    assert content_digest(changed, labels) != digest
    assert content_digest(columns, np.array(["x", "x"])) != digest


def test_every_recipe_reads_its_own_description():
    for name, recipe in uci.RECIPES.items():
        names = recipe.raw_names
        assert names.count("target") == 1, name
        assert len(set(recipe.features)) == len(recipe.features), name
        categorical, indicators = uci.declared_columns(recipe.categorical, recipe.features)
        assert set(categorical) | set(indicators) <= set(recipe.features)
        assert bool(recipe.categorical) == bool(categorical or indicators), name
        assert len(recipe.digest) == 64


SMALL = [name for name in uci.RECIPES if name not in ("covtype", "adult")]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.dataset(name)) for name in SMALL]
)
def test_recipes_rebuild_the_local_copy(name, monkeypatch):
    """A raw file spelled from the local copy gives the digest, and the same values."""
    recipe, local = uci.RECIPES[name], datasets.load(name)
    cells = {c: _spelled(local.X[c], c in local.categorical) for c in local.columns}
    cells["target"] = [str(label) for label in local.y.tolist()]
    cells["-"] = ["dropped"] * len(local.y)
    separator = recipe.separator or "  "
    rows = zip(*(cells[column] for column in recipe.raw_names), strict=True)
    raw = "\n".join(separator.join(row) for row in rows).encode()
    columns, labels = uci.parse(recipe, [raw])
    assert content_digest(columns, read_classes(labels)) == recipe.digest


def _spelled(column, categorical):
    if categorical:
        return ["?" if cell != cell else str(cell) for cell in column.astype(object)]
    return ["?" if cell != cell else repr(float(cell)) for cell in column]


@pytest.mark.dataset("wine")
def test_wine_is_the_set_that_scikit_learn_bundles():
    wine, bundled = datasets.load("wine"), load_wine()
    np.testing.assert_array_equal(wine.X.to_numpy(), bundled.data)
    np.testing.assert_array_equal(wine.y - 1, bundled.target)


@pytest.mark.dataset("covtype")
def test_covtype_is_whole():
    covtype = datasets.load("covtype")
    assert covtype.X.shape == (581_012, 54)
    assert np.bincount(covtype.y)[[1, 7]].tolist() == [211_840, 20_510]
    assert len(covtype.indicators) == 44
    assert covtype.categorical == ()
