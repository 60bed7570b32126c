"""The same rows give the same bytes: over runs, hash seeds and numbers of threads."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

from stress.models import models
from stress.run import FAILED, Part

ROOT = Path(__file__).parent.parent
SETTINGS = (("0", "1"), ("1", "1"), ("12345", "2"), ("random", "4"))
"""PYTHONHASHSEED and the number of threads of each process."""
PROGRAM = """
import hashlib, warnings
import numpy as np
from sklearn.base import clone
from stress.models import models
from stress.tables import answers, small_table
warnings.simplefilter("ignore")
for name, model in models():
    table = small_table(460, numbers=True, complete=True)
    y = np.arange(len(table.y)) % 3
    try:
        said = answers(clone(model).fit(table.X, y), table.X).tobytes()
    except ValueError as error:
        said = str(error).encode()
    print(hashlib.sha256(said).hexdigest())
"""


@lru_cache(maxsize=4)
def digests(hash_seed: str, threads: str) -> tuple[str, ...]:
    """What every model says, in a process of its own."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
    env = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": path}
    env |= dict.fromkeys(names, threads)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=True
    )
    return tuple(done.stdout.split())


def outcome(number: int) -> str:
    """Whether one model says the same in all settings."""
    name, model = models()[number]
    said = {digests(*setting)[number] for setting in SETTINGS}
    return "the same bytes" if len(said) == 1 else f"{FAILED}: {name}: {model} differs"


PART = Part(
    "determinism",
    "models",
    "the same bytes over runs, hash seeds and numbers of threads",
    outcome,
    size=len(models()),
    quick=len(models()),  # one costs as much as all
)
