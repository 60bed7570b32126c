"""Temporary folders that go away with what holds them."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path


class ScratchFolder:
    """A folder that is removed when this object is closed, forgotten, or the process ends."""

    def __init__(self, name: str) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=f"laconic-{name}-"))
        self.close = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
