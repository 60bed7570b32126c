"""Files that are old or new, never torn; what is no file is written through."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal


@contextmanager
def replacing(path: str | Path, mode: Literal["w", "wb"] = "w") -> Iterator[IO[Any]]:
    """A stream beside the target; flushed to disk and renamed when the block ends well.

    A link is followed, so that it stays one, and a file keeps its permissions. A device or a pipe
    (``/dev/null``, ``/dev/stdout``) is opened as it is: a rename would put a file in its place.
    """
    path = Path(os.path.realpath(path))
    text: dict[str, Any] = {"encoding": "utf-8", "newline": ""} if mode == "w" else {}
    if path.exists() and not path.is_file():
        with path.open(mode, **text) as stream:
            yield stream
        return
    permissions = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".partial")
    try:
        with os.fdopen(handle, mode, **text) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if permissions is None:  # mkstemp is private; a new result is as readable as others
            mask = os.umask(0)
            os.umask(mask)
            permissions = 0o666 & ~mask
        os.chmod(partial, permissions)
        os.replace(partial, path)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise


def write_atomically(path: str | Path, content: str | bytes) -> None:
    """Write beside the target, flush to disk, then rename."""
    with replacing(path, "w" if isinstance(content, str) else "wb") as stream:
        stream.write(content)
