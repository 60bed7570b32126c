"""What SECURITY.md promises."""

from __future__ import annotations

import csv
import pickle
import re
import socket
from pathlib import Path

import pytest

from laconic.cli.app import main
from laconic.export.model_file import ModelFileError, load

SOURCE = Path(__file__).parent.parent / "src" / "laconic"
NAMES = ["=1+1", "<img src=x onerror=alert(1)>", '"; DROP TABLE rows; --', "kind"]


class Touches:
    """A pickle that writes a file when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.fixture(scope="module")
def rows_csv(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(NAMES)
        writer.writerows([f"=cmd{i}", i % 7, i % 3, "ab"[i % 2]] for i in range(60))
    return path


def commanded(*words: object) -> int:
    with pytest.raises(SystemExit) as end:
        main([str(word) for word in words])
    return int(end.value.code or 0)


def test_a_pickle_is_refused_and_not_run(tmp_path, capsys, rows_csv):
    path, touched = tmp_path / "model.json", tmp_path / "touched"
    path.write_bytes(pickle.dumps(Touches(touched)))
    with pytest.raises(ModelFileError, match=r"model\.json"):
        load(path)
    for words in (["predict", path, rows_csv], ["explain", path], ["export", "sql", path]):
        assert commanded(*words) == 2
        assert capsys.readouterr().err.count("\n") == 1
    assert not touched.exists()


def test_nothing_in_the_library_loads_a_pickle():
    loads = re.compile(r"\b(pickle|joblib|dill|cloudpickle)\.loads?\(|\beval\(|\bexec\(")
    found = [path.name for path in SOURCE.rglob("*.py") if loads.search(path.read_text("utf-8"))]
    assert found == []


def test_fit_and_predict_open_no_socket_and_names_are_only_texts(
    tmp_path, rows_csv, monkeypatch, capsys
):
    def refused(*arguments: object, **named: object) -> None:
        raise AssertionError("a socket was opened")

    for name in ("connect", "connect_ex", "bind", "sendto"):
        monkeypatch.setattr(socket.socket, name, refused)
    out = tmp_path / "o"
    fit = ["fit", rows_csv, "--target", "kind", "--out", out, "--model", "logistic"]
    assert commanded(*fit, "--drop", "=1+1") == 0
    page = (out / "report.html").read_text("utf-8")
    assert "<img" not in page
    done = tmp_path / "done.csv"
    assert commanded("predict", out / "model.json", rows_csv, "--key", "=1+1", "-o", done) == 0
    with done.open(newline="") as stream:
        first = next(csv.DictReader(stream))
    assert first["=1+1"] == "=cmd0"  # keys come back as they are: SECURITY.md says so
