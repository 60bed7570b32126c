"""The first demo of a machine: what one process would compile last, another compiles meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

LATE = ("kernel", "scorecard-built", "logistic")
"""Candidates whose compiled functions come after the additive model's: 5 of 19 seconds."""
ROWS = 2_500
"""Enough for a kernel on landmarks, as the demo has, and fitted in a second once compiled."""


@contextmanager
def compiled_meanwhile() -> Iterator[None]:
    """Inside the block a second process compiles what :data:`LATE` needs, if nobody has before.

    It writes nothing but numba's cache, shares nothing with this process and ends with the block.
    """
    if os.cpu_count() == 1 or not _nothing_kept():
        yield
        return
    nowhere = subprocess.DEVNULL
    beside = subprocess.Popen(
        [sys.executable, "-m", __name__], stdin=nowhere, stdout=nowhere, stderr=nowhere
    )
    try:
        yield
    finally:
        beside.terminate()
        beside.wait()


def _nothing_kept() -> bool:
    """Whether numba has a folder for its cache, and no function of kernels in it."""
    from laconic.kernel import _numba

    compiled: Any = _numba.greedy_pivots
    folder = compiled.stats.cache_path
    return folder is not None and not any(Path(folder).glob("*greedy_pivots*.nbi"))


def _compile() -> None:
    from laconic import LaconicClassifier
    from laconic.data.demo import make_payments

    LaconicClassifier(candidates=LATE, random_state=0).fit(*make_payments(ROWS))


if __name__ == "__main__":
    _compile()
