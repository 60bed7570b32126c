"""Lazy doors: a package lists its public names, and loads a module when a name is asked for.

So ``import laconic`` stays cheap, and numba or matplotlib is not imported before it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def door(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package.

    ``homes`` says in which module of the package a name is defined, or in which other module when
    it is written out in full.

    >>> open_, _, names = door("laconic.bayes", {"SelectiveNaiveBayes": "selective"})
    >>> open_("SelectiveNaiveBayes").__module__, names
    ('laconic.bayes.selective', ['SelectiveNaiveBayes'])
    """

    def open_(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        full = home if home.startswith("laconic.") else f"{package}.{home}"
        return getattr(import_module(full), name)

    names = sorted(homes)
    return open_, lambda: names, names
