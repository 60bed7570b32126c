"""What the displays share: their base class, colours that survive print, quiet axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from importlib.util import find_spec
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_consistent_length, column_or_1d

from laconic._typing import Floats
from laconic.core.decisions import positive_class

INK = "#22313f"
QUIET = "#8795a1"
FAINT = "#dde3e8"
ALARM = "#c0392b"
ZONE = "#f2c14e"
LINES = ("#1f6f8b", "#d1603d", "#6a994e", "#7d5ba6", "#b08900", "#3d405b")
DASHES = ("-", (0, (6, 2)), (0, (2, 1.5)), (0, (6, 2, 1.5, 2)))


class Display:
    """A drawing and the numbers in it, by scikit-learn's convention.

    A display is a dataclass of numbers. ``from_estimator`` builds it from a fitted model and
    ``from_predictions`` from what a model said, neither draws; ``plot`` draws on given or new axes
    and returns the display with ``ax_`` and ``figure_``; ``frame`` gives the numbers back as named
    columns. matplotlib is imported when something is drawn, not before.

    A subclass writes ``_draw``, which returns the names of the two axes, and ``_columns`` where
    the columns are not simply its lists and one-dimensional arrays.
    """

    ax_: Any
    figure_: Any
    _draw: Callable[..., tuple[str, str]]

    def frame(self) -> Any:
        """The drawn numbers as columns: a pandas frame, or a dict without pandas."""
        return frame_of(self._columns())

    def plot(self, ax: Any = None, **options: Any) -> Self:
        """Draw on ``ax`` (new axes when None); the options are named by the class."""
        self.ax_ = axes(ax)
        self.figure_ = self.ax_.figure
        names = self._draw(self.ax_, **options)
        label(self.ax_, *names)
        if self.ax_.get_legend() is None and self.ax_.get_legend_handles_labels()[1]:
            legend(self.ax_)
        return self

    def _columns(self) -> dict[str, Any]:
        own = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {
            name: values
            for name, values in own.items()
            if isinstance(values, list) or (isinstance(values, np.ndarray) and values.ndim == 1)
        }


def axes(ax: Any) -> Any:
    """The given axes, or new ones, with the house's frame and grid."""
    ax = figure_axes((6.8, 4.6)) if ax is None else ax
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(QUIET)
    ax.tick_params(colors=INK, labelsize=9)
    ax.grid(True, color=FAINT, linewidth=0.8)
    ax.set_axisbelow(True)
    return ax


def figure_axes(size: tuple[float, float], *shape: int, **options: Any) -> Any:
    """Axes of a new figure."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError(
            "Drawing needs matplotlib; install it with: pip install 'laconic[plot]'"
        ) from None
    return plt.subplots(*shape, figsize=size, layout="constrained", **options)[1]


def log_odds_axis(ax: Any) -> None:
    """Probabilities spaced by their log-odds, written as plain decimals."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    ax.set_xscale("logit")
    ax.xaxis.set_major_formatter(FuncFormatter(lambda p, _: f"{p:.6g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())


def look(place: int, **more: Any) -> dict[str, Any]:
    """Colour and dashes of the line at a place: told apart in print too."""
    return {"color": colour(place), "ls": DASHES[place % len(DASHES)], **more}


def colour(place: int) -> str:
    return LINES[place % len(LINES)]


def diagonal(ax: Any, **more: Any) -> None:
    ax.plot([0, 1], [0, 1], color=QUIET, lw=1.0, ls=DASHES[1], **more)


def band(ax: Any, zone: tuple[float, float] | None, **more: Any) -> Any:
    """A zone of probabilities, where there is one."""
    return None if zone is None else ax.axvspan(*zone, color=ZONE, alpha=0.26, lw=0, **more)


def label(ax: Any, x: str, y: str) -> None:
    ax.set_xlabel(x, color=INK)
    ax.set_ylabel(y, color=INK)


def note(ax: Any, text: str, at: tuple[float, float], shift: tuple[int, int] = (6, 6)) -> None:
    """A small text beside a point."""
    ax.annotate(text, at, xytext=shift, textcoords="offset points", fontsize=8, color=INK)


def short(text: Any, most: int) -> str:
    """A text that fits beside an axis; a dollar stays a dollar.

    >>> short("a long name", 6)
    'a lon…'
    """
    shown = str(text).replace("$", r"\$")
    return shown if len(shown) <= most else shown[: most - 1] + "…"


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


def place_of_positive(classes: NDArray[Any], positive: Any, default: int | None = None) -> int:
    """Where the class that is drawn stands: as named, as the labels say, else the last of two."""
    chosen = positive_class(classes, positive)
    if chosen is not None:
        return int(classes.tolist().index(chosen))
    if default is None and len(classes) != 2:
        raise ValueError(f"Choose positive: there are {len(classes)} classes.")
    return 1 if default is None else default


def positive_proba(estimator: Any, X: Any, positive: Any = None) -> tuple[Floats, dict[str, Any]]:
    """Probability of the positive class, and what the model knows of it: class, labels, name."""
    if not hasattr(estimator, "predict_proba"):
        raise TypeError(f"{type(estimator).__name__} has no predict_proba to display.")
    classes = np.asarray(estimator.classes_)
    positive = getattr(estimator, "positive_", None) if positive is None else positive
    k = place_of_positive(classes, positive)
    proba = np.asarray(estimator.predict_proba(X), dtype=np.float64)[:, k]
    return proba, {"positive": classes[k], "labels": classes, "name": name_of(estimator)}


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


def named_models(estimator: Any) -> Mapping[str, Any]:
    """One model by its name, or several as they were named."""
    return estimator if isinstance(estimator, Mapping) else {name_of(estimator): estimator}


def fitted_with(estimator: Any, attribute: str) -> Any:
    """The model itself, or the one inside it, that has a fitted attribute."""
    model = estimator
    while not hasattr(model, attribute):
        if not hasattr(model, "estimator_"):
            hint = "" if hasattr(estimator, "classes_") else "; is it fitted?"
            raise NotFittedError(f"{name_of(estimator)} has no {attribute} to draw{hint}")
        model = model.estimator_
    return model
