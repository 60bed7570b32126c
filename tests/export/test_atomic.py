"""Files are old or new; links stay links, devices and pipes stay what they are."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from laconic.export.atomic import replacing, write_atomically

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


def test_a_folder_is_refused_by_the_system(tmp_path):
    with pytest.raises(OSError, match=r"directory|denied"):
        write_atomically(tmp_path, "no")
