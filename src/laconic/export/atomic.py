"""Files that are old or new, never torn."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal


@contextmanager
def replacing(path: str | Path, mode: Literal["w", "wb"] = "w") -> Iterator[IO[Any]]:
    """A stream beside the target; flushed to disk and renamed when the block ends well."""
    path = Path(path)
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".partial")
    try:
        text = {"encoding": "utf-8", "newline": ""} if mode == "w" else {}
        with os.fdopen(handle, mode, **text) as stream:  # type: ignore[call-overload]
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(partial, 0o666 & ~mask)  # mkstemp is private; a result is as readable as others
        os.replace(partial, path)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise


def write_atomically(path: str | Path, content: str | bytes) -> None:
    """Write beside the target, flush to disk, then rename."""
    with replacing(path, "w" if isinstance(content, str) else "wb") as stream:
        stream.write(content)
