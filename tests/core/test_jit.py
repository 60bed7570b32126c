"""Compiled functions in a place where nothing can be kept."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import warnings
from laconic._jit import njit

@njit(cache=True)
def twice(x):
    return 2 * x

@njit(cache=True)
def thrice(x):
    return 3 * x

print(twice(21) + thrice(0))
"""


@pytest.mark.parametrize("kept", [True, False])
def test_without_a_folder_for_the_cache_functions_are_compiled_anew(tmp_path, kept):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    where = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    if not kept:
        # the one locator that finds no folder for a file: as in a read-only container
        where |= {"NUMBA_CACHE_LOCATOR_CLASSES": "IPythonCacheLocator"}
    done = subprocess.run(
        [sys.executable, path], capture_output=True, text=True, check=False, env=where
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "42\n"
    assert done.stderr.count("No folder can be written") == (0 if kept else 1)


INTERRUPTED = """
import operator, os, signal
import numpy as np
from numba.core.registry import cpu_target
from laconic._jit import njit

signal.signal(signal.SIGINT, signal.default_int_handler)
context, sent = cpu_target.typing_context, []
insert = context.insert_function

def interrupted(template):
    if not sent and template.key is operator.setitem:
        sent.append(os.kill(os.getpid(), signal.SIGINT))
    insert(template)

context.insert_function = interrupted
for _ in range(2):
    try:
        @njit()
        def total(x):
            x[:] = 1.0
            return x.sum()

        print(total(np.zeros(3)))
    except KeyboardInterrupt:
        print("interrupted")
"""


@pytest.mark.parametrize("operation", ["setitem", "add"])
def test_an_interrupted_first_use_leaves_later_ones_whole(operation):
    """Operations that Ctrl-C had cut off were missing for the rest of the process."""
    words = [sys.executable, "-c", INTERRUPTED.replace("setitem", operation)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.stdout == "interrupted\n3.0\n", done.stderr[-500:]
