"""Small, certified classifiers for rare classes, unequal costs and a moving class mix."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0.dev0"

# Public name -> module that defines it. Modules load on first use, so that `import laconic`
# stays cheap and numba is not imported before a fit needs it.
_HOME = {
    "PlainLogisticRegression": "laconic.estimators.plain_logistic",
}

__all__ = ["__version__", *sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'laconic' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
