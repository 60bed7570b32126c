"""How the displays look: colours that survive print and colour blindness, quiet axes."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length, column_or_1d

from laconic._typing import Floats
from laconic.core.decisions import class_codes

INK = "#22313f"
QUIET = "#8795a1"
FAINT = "#dde3e8"
ALARM = "#c0392b"
ZONE = "#f2c14e"
LINES = ("#1f6f8b", "#d1603d", "#6a994e", "#7d5ba6", "#b08900", "#3d405b")
DASHES = ("-", (0, (6, 2)), (0, (2, 1.5)), (0, (6, 2, 1.5, 2)))


def axes(ax: Any) -> Any:
    """The given axes, or new ones, with the house's frame and grid."""
    if ax is None:
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise ImportError(
                "Drawing needs matplotlib; install it with: pip install 'laconic[plot]'"
            ) from None
        _, ax = plt.subplots(figsize=(6.8, 4.6), layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(QUIET)
    ax.tick_params(colors=INK, labelsize=9)
    ax.grid(True, color=FAINT, linewidth=0.8)
    ax.set_axisbelow(True)
    return ax


def log_odds_axis(ax: Any) -> None:
    """Probabilities spaced by their log-odds, written as plain decimals."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    ax.set_xscale("logit")
    ax.xaxis.set_major_formatter(FuncFormatter(lambda p, _: f"{p:.6g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())


def label(ax: Any, x: str, y: str) -> None:
    ax.set_xlabel(x, color=INK)
    ax.set_ylabel(y, color=INK)


def legend(ax: Any) -> Any:
    """Above the axes, where it hides nothing."""
    return ax.legend(
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=2,
        frameon=False,
        fontsize=9,
        labelcolor=INK,
        borderaxespad=0.4,
        columnspacing=1.6,
    )


def frame_of(columns: dict[str, Any]) -> Any:
    """Columns as a pandas frame when pandas is installed, else as they are."""
    if not find_spec("pandas"):
        return columns
    import pandas as pd

    return pd.DataFrame(columns)


# What a display reads from a model: the probability of one class, and a name.


def positive_proba(estimator: Any, X: Any, pos_label: Any = None) -> tuple[Floats, NDArray[Any]]:
    """Probability of one class (the last by default), and the classes."""
    if not hasattr(estimator, "predict_proba"):
        raise TypeError(f"{type(estimator).__name__} has no predict_proba to display.")
    classes = np.asarray(estimator.classes_)
    if pos_label is None and len(classes) != 2:
        raise ValueError(f"Choose pos_label: the model has {len(classes)} classes.")
    label = classes[-1] if pos_label is None else pos_label
    column = class_codes(np.array([label]), classes, "pos_label")[0]
    return np.asarray(estimator.predict_proba(X), dtype=np.float64)[:, column], classes


def checked_proba(proba: ArrayLike, rows: NDArray[Any]) -> Floats:
    p: Floats = column_or_1d(np.asarray(proba, dtype=np.float64))
    check_consistent_length(rows, p)
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError("proba must hold probabilities between 0 and 1.")
    return p


def name_of(estimator: Any) -> str:
    inner = getattr(estimator, "estimator", None)
    name = type(estimator).__name__
    return f"{name}({type(inner).__name__})" if inner is not None else name
