"""Files that are old or new, never torn; what is no file is written through."""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Literal

try:
    import fcntl
except ImportError:  # Windows: what a killed run left stays there
    fcntl = None  # type: ignore[assignment]

Mode = Literal["w", "wb"]

written: list[str] = []
"""What this process has put in its place, in order: told when it is interrupted."""


@contextmanager
def replacing(path: str | Path, mode: Mode = "w") -> Iterator[IO[Any]]:
    """A stream beside the target; flushed to disk and renamed when the block ends well.

    A link is followed, so that it stays one, and a file keeps its permissions. A device or a pipe
    (``/dev/null``, ``/dev/stdout``) is opened as it is: a rename would put a file in its place.
    What a killed run has left beside the target is removed.
    """
    path = _place(path)
    if _is_special(path):
        with path.open(mode, **_text(mode)) as stream:
            written.append(str(path))
            yield stream
        return
    with _partial(path, mode) as (stream, partial):
        yield stream
        _finish(stream, partial, path)
        _put(partial, path)


def write_atomically(path: str | Path, content: str | bytes) -> None:
    """Write beside the target, flush to disk, then rename."""
    with replacing(path, "w" if isinstance(content, str) else "wb") as stream:
        stream.write(content)


def write_together(contents: Mapping[Path, str]) -> None:
    """Texts that belong together: all are on disk before the first one is renamed.

    The old ones but the first are removed before that, so that nobody, whenever the power fails,
    finds an old text beside a new one: one may be absent.
    """
    with ExitStack() as stack:
        ready: list[tuple[Path, Path]] = []
        for given, content in contents.items():
            path = _place(given)
            if _is_special(path):
                path.write_text(content, encoding="utf-8")
                written.append(str(path))
                continue
            stream, partial = stack.enter_context(_partial(path, "w"))
            stream.write(content)
            _finish(stream, partial, path)
            ready.append((partial, path))
        for _, path in ready[1:]:
            path.unlink(missing_ok=True)
        for partial, path in ready:
            _put(partial, path)


def _put(partial: Path, path: Path) -> None:
    os.replace(partial, path)
    written.append(str(path))


def _place(given: str | Path) -> Path:
    """What a link leads to; a pipe behind ``/dev/stdout`` has no name but that."""
    return Path(given) if _is_special(Path(given)) else Path(os.path.realpath(given))


def _is_special(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()


def _text(mode: Mode) -> dict[str, Any]:
    return {"encoding": "utf-8", "newline": ""} if mode == "w" else {}


@contextmanager
def _partial(path: Path, mode: Mode) -> Iterator[tuple[IO[Any], Path]]:
    """A new file beside ``path``, locked while it is written and removed when that fails."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a directory; name a file in it.")
    while True:
        try:
            _remove_leftovers(path)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".partial")
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise type(error)(f"{path} cannot be written ({why}); name another file.") from error
        if fcntl is None or _locked(handle):
            break
        os.close(handle)  # taken for a leftover before it was locked
    partial = Path(name)
    try:
        with os.fdopen(handle, mode, **_text(mode)) as stream:
            yield stream, partial
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _locked(handle: int) -> bool:
    """Whether the file is ours: locked, and still there."""
    with suppress(OSError):  # a file system without locks: nobody else can take it for a leftover
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return os.fstat(handle).st_nlink > 0


def _remove_leftovers(path: Path) -> None:
    """Remove partial files of ``path`` that no living process writes."""
    if fcntl is None:
        return
    left = re.compile(re.escape(path.name) + r"[a-z0-9_]{8}\.partial")
    with os.scandir(path.parent) as entries:
        found = [Path(entry.path) for entry in entries if left.fullmatch(entry.name)]
    for partial in found:
        with suppress(OSError), partial.open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            partial.unlink()


def _finish(stream: IO[Any], partial: Path, path: Path) -> None:
    stream.flush()
    os.fsync(stream.fileno())
    if path.exists():
        permissions = stat.S_IMODE(path.stat().st_mode)
    else:  # mkstemp is private; a new result is as readable as others
        mask = os.umask(0)
        os.umask(mask)
        permissions = 0o666 & ~mask
    os.chmod(partial, permissions)
