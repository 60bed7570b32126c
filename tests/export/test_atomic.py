"""Files are old or new; links stay links, devices and pipes stay what they are."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from laconic.export.atomic import replacing, write_atomically, write_together

unix = pytest.mark.skipif(os.name != "posix", reason="links, pipes and permissions of Unix")


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    write_atomically(path, "old")

    def half_way() -> None:
        with replacing(path) as stream:
            stream.write("new")
            raise RuntimeError("half-way")

    with pytest.raises(RuntimeError, match="half-way"):
        half_way()
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


@unix
def test_a_link_is_followed_and_stays_a_link(tmp_path):
    (tmp_path / "store").mkdir()
    real, link = tmp_path / "store" / "real.txt", tmp_path / "link.txt"
    real.write_text("old")
    link.symlink_to(real)
    write_atomically(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"
    dangling = tmp_path / "dangling.txt"
    dangling.symlink_to(tmp_path / "store" / "later.txt")
    write_atomically(dangling, "first")
    assert (tmp_path / "store" / "later.txt").read_text() == "first"


@unix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_a_file_keeps_its_permissions(tmp_path, mode):
    path = tmp_path / "a.txt"
    path.write_text("old")
    path.chmod(mode)
    write_atomically(path, b"new")
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert path.read_bytes() == b"new"


@unix
def test_a_pipe_is_written_through(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    write_atomically(pipe, "through")
    reader.join(timeout=10)
    assert got == ["through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@unix
def test_a_device_stays_a_device():
    write_atomically("/dev/null", "nothing")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    assert not list(Path("/dev").glob("null*.partial"))


def test_what_cannot_be_written_is_one_sentence_that_names_the_file(tmp_path):
    with pytest.raises(IsADirectoryError, match="is a directory; name a file in it"):
        write_atomically(tmp_path, "no")
    absent = tmp_path / "absent" / "scored.csv"
    with pytest.raises(FileNotFoundError, match=r"scored.csv cannot be written \(no such file"):
        write_atomically(absent, "no")
    assert not list(tmp_path.iterdir())


@unix
def test_what_a_killed_run_left_is_removed_and_what_a_living_one_writes_is_not(tmp_path):
    path = tmp_path / "a[1].txt"
    killed = tmp_path / f"{path.name}0_abcdef.partial"
    killed.write_text("half")
    own = tmp_path / f"{path.name}.partial"  # not a name of ours
    own.write_text("the user's")
    with replacing(path) as living:
        living.write("first")
        write_atomically(path, "second")
        assert len(list(tmp_path.glob("*.partial"))) == 2
    assert path.read_text() == "first"
    assert {p.name for p in tmp_path.iterdir()} == {path.name, own.name}


def test_texts_that_belong_together_change_together(tmp_path, monkeypatch):
    first, second = tmp_path / "model.json", tmp_path / "report.html"
    write_together({first: "old", second: "old"})
    seen: list[dict[str, str]] = []
    rename = os.replace

    def watched(source: Path, target: Path) -> None:
        seen.append({p.name: p.read_text() for p in (first, second) if p.exists()})
        rename(source, target)

    monkeypatch.setattr(os, "replace", watched)
    write_together({first: "new", second: "new"})
    assert seen == [{"model.json": "old"}, {"model.json": "new"}]
    assert first.read_text() == second.read_text() == "new"
    with pytest.raises(UnicodeEncodeError):
        write_together({first: "newer", second: "\ud800"})
    assert first.read_text() == second.read_text() == "new"
    assert {p.name for p in tmp_path.iterdir()} == {"model.json", "report.html"}


@unix
def test_the_standard_output_is_written_through_also_where_it_is_a_pipe():
    program = "from laconic.export.atomic import write_atomically as w; w('/dev/stdout', 'through')"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "through"
