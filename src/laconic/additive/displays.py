"""Drawings of additive models: shapes with data density and error bands, grids, the path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Self

import numpy as np

from laconic._typing import Floats
from laconic.additive.fit import FittedTerm
from laconic.core import drawing as theme
from laconic.core.forms import AdditiveScore, LineTerm, RulesTerm, SlotTerm
from laconic.data.tables.axes import CategoryAxis, KnotAxis, encode_column
from laconic.data.tables.columns import Table

__all__ = ["AdditivePathDisplay", "TermsDisplay"]


@dataclass
class TermsDisplay(theme.Display):
    """One panel for each term: contribution to the score, with errors and where the rows are.

    Shapes are lines with special values and missing as points beside them, categories are
    horizontal bars, pairs are heat maps. Bands are two standard errors from the folds. For more
    than two classes, one class is drawn.

    Parameters
    ----------
    terms : list of FittedTerm
    score : int, default=0
        Which score (class) is drawn.
    unit : str
        Label of the contribution axis.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes, after ``plot``

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from laconic import SparseAdditiveClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = SparseAdditiveClassifier(pairs=0).fit(X, y == 1)
    >>> frame = TermsDisplay.from_estimator(model).frame()
    >>> sorted(frame)[:4]
    ['error', 'mass', 'slot', 'term']
    """

    terms: list[Any]
    score: int = 0
    unit: str = "log-odds"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        terms: Sequence[int | str] | None = None,
        *,
        X: Any = None,
        score: int = 0,
    ) -> TermsDisplay:
        """Display of a fitted model, or of the one inside a decision layer or a choice.

        ``terms`` (places or names) picks some, by default all. Every model whose score is a sum of
        terms can be drawn; those that do not remember where the training rows were (all but the
        additive model) need rows ``X``. Of two classes the positive one is drawn, where a decision
        layer knows it, else the last.
        """
        model = theme.fitted_with(estimator, "form_")
        while hasattr(model, "estimator_"):
            model = theme.fitted_with(model.estimator_, "form_")
        fitted = model.terms_ if hasattr(model, "terms_") else _terms_on(model, X)
        names = [t.name for t in fitted]
        places = range(len(names)) if terms is None else terms
        chosen = [fitted[names.index(t) if isinstance(t, str) else t] for t in places]
        if len(model.classes_) > 2:
            return cls(chosen, score, f"log-odds of {model.classes_[score]}")
        positive = _positive(estimator, model.classes_)
        if positive != model.classes_[-1]:
            chosen = [_turned(term) for term in chosen]
        return cls(chosen, score, f"log-odds of {positive}")

    def _columns(self) -> dict[str, Any]:
        """One row for each slot of each term."""
        rows = []
        for term in self.terms:
            labels = [axis.labels() for axis in term.axes]
            for place in np.ndindex(*term.mass.shape):
                slot = " | ".join(own[k] for own, k in zip(labels, place, strict=True))
                error = np.nan if term.errors is None else float(term.errors[place][self.score])
                value = float(term.values[place][self.score])
                rows.append((term.name, slot, value, error, float(term.mass[place])))
        columns = zip(*rows, strict=True) if rows else [()] * 5
        names = ("term", "slot", "value", "error", "mass")
        return {name: list(own) for name, own in zip(names, columns, strict=True)}

    def plot(  # type: ignore[override]  # many axes: one for each term
        self, ax: Any = None, *, columns: int = 3, share_scale: bool = False
    ) -> Self:
        """Draw on given axes (one for each term), or on a new figure.

        ``share_scale`` gives all shapes one scale, so that heights can be compared by eye; the
        standard deviation in every title compares them anyway.
        """
        if ax is None:
            count = max(1, len(self.terms))
            width = min(columns, count)
            height = -(-count // width)
            size = (4.2 * width, 3.0 * height)
            ax = theme.figure_axes(size, height, width, squeeze=False)
            for unused in ax.ravel()[count:]:
                unused.set_visible(False)
        self.axes_ = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
        self.figure_ = self.axes_[0].figure
        low, high = _scale(self.terms, self.score)
        for own, term in zip(self.axes_, self.terms, strict=False):
            theme.axes(own).grid(False)
            if not share_scale:
                low, high = _scale([term], self.score)
            if len(term.axes) == 2:
                _draw_grid(own, term, self.score, max(-low, high))
            elif isinstance(term.axes[0], KnotAxis):
                _draw_line(own, term, self.score)
                own.set_ylim(low, high)
                own.set_ylabel(self.unit, color=theme.INK, fontsize=8)
            else:
                _draw_bars(own, term, self.score)
                own.set_xlim(low, high)
                own.set_xlabel(self.unit, color=theme.INK, fontsize=8)
        return self


def _terms_on(model: Any, X: Any) -> list[FittedTerm]:
    """The terms of a form, largest first, with the share of the rows in each slot."""
    name = theme.name_of(model)
    if not isinstance(model.form_, AdditiveScore):
        raise ValueError(f"{name} is no sum of terms, so that there are no terms to draw.")
    if X is None:
        raise ValueError(f"{name} does not keep where its training rows were; pass some rows as X.")
    table = model._read_rows(X)
    found = []
    for term in model.form_.terms:
        if isinstance(term, RulesTerm):
            raise ValueError(f"The terms of {name} are trees; list them with rules().")
        spread = term.contribution(table).std(axis=0)
        slots = _slots_of_line(term, table) if isinstance(term, LineTerm) else term
        importance = float(np.sqrt(np.mean(spread**2)))
        found.append(FittedTerm(slots, importance, _mass(slots, table)))
    return sorted(found, key=lambda term: -term.importance)


def _slots_of_line(term: LineTerm, table: Table) -> SlotTerm:
    """A line between the least and the largest value of the rows, as a shape of two knots."""
    x = np.asarray(table.column(table.place(term.column)), dtype=np.float64)
    held = x[np.isfinite(x)]
    knots = np.unique([held.min(), held.max()]) if len(held) else np.array([term.origin])
    assert term.missing is not None
    values = np.vstack([(knots - term.origin)[:, None] * term.slope, term.missing])
    return SlotTerm((term.column,), (KnotAxis(knots, np.empty(0)),), values)


def _mass(term: SlotTerm, table: Table) -> Floats:
    """Share of the rows in each slot; a row between two knots is shared."""
    found = np.zeros(term.values.shape[:-1])
    ends = []
    for axis, name in zip(term.axes, term.columns, strict=True):
        slot, fraction = encode_column(axis, table, table.place(name))
        after = np.minimum(slot + 1, axis.size - 1)
        ends.append(((slot, 1.0 - fraction), (after, fraction)))
    for corner in product(*ends):
        places, shares = zip(*corner, strict=True)
        np.add.at(found, places, np.prod(shares, axis=0))
    return found / max(1, table.n_rows)


def _scale(terms: Sequence[Any], score: int) -> tuple[float, float]:
    """Least and largest value of slots that hold rows, with some room; at least +-0.25."""
    seen = [term.values[..., score].ravel()[term.mass.ravel() > 0] for term in terms]
    values = np.concatenate([[-0.25, 0.25], *seen])
    pad = 0.08 * float(np.ptp(values))
    return float(values.min()) - pad, float(values.max()) + pad


def _draw_line(ax: Any, term: Any, score: int) -> None:
    axis = term.axes[0]
    m = len(axis.knots)
    values, errors = term.values[:, score], term.errors
    line = ax.plot(axis.knots, values[:m], color=theme.LINES[0], lw=1.8, marker="o", ms=2.5)[0]
    if errors is not None:
        band = 2.0 * errors[:m, score]
        ax.fill_between(
            axis.knots, values[:m] - band, values[:m] + band, color=theme.LINES[0], alpha=0.18, lw=0
        )
    ax.axhline(0.0, color=theme.FAINT, lw=1.0, zorder=0)
    span = float(axis.knots[-1] - axis.knots[0]) or 1.0
    labels = axis.labels()
    beside = [k for k in range(m, axis.size) if term.mass[k] > 0]
    for place, k in enumerate(beside):
        at = axis.knots[-1] + span * (0.08 + 0.09 * place)
        error = None if errors is None else 2.0 * errors[k, score]
        ax.errorbar([at], [values[k]], yerr=error, fmt="D", ms=4, color=theme.LINES[1], capsize=2)
        ax.annotate(
            labels[k], (at, values[k]), xytext=(0, 6), textcoords="offset points", fontsize=7,
            rotation=90, ha="center", va="bottom",
        )  # fmt: skip
    _draw_density(ax, axis.knots, term.mass[:m])
    ax.locator_params(axis="x", nbins=5)
    ax.set_title(f"{term.name}  (sd {term.importance:.2g})", fontsize=9)
    line.set_gid("shape")


def _draw_density(ax: Any, knots: Floats, mass: Floats) -> None:
    """Rows along the bottom: one tick for each knot, darker where more rows are."""
    if len(knots) < 2 or not mass.any():
        return
    edges = np.concatenate([[knots[0]], 0.5 * (knots[1:] + knots[:-1]), [knots[-1]]])
    width = np.maximum(np.diff(edges), 1e-300)
    height = mass / width
    height = 0.12 * height / height.max()
    ax.bar(
        edges[:-1], height, width=width, align="edge", color="0.6", alpha=0.5, lw=0,
        transform=ax.get_xaxis_transform(), zorder=0,
    )  # fmt: skip


def _draw_bars(ax: Any, term: Any, score: int) -> None:
    axis = term.axes[0]
    seen = [k for k in range(axis.size) if term.mass[k] > 0]
    if isinstance(axis, CategoryAxis):
        seen.sort(key=lambda k: term.values[k, score])
    else:  # intervals keep their order, the first on top
        seen.reverse()
    if len(seen) > 16:  # the extremes say most; the middle is in frame()
        seen = seen[:8] + seen[-8:]
    place = np.arange(len(seen))
    values = term.values[seen, score]
    errors = None if term.errors is None else 2.0 * term.errors[seen, score]
    ax.barh(place, values, xerr=errors, color=theme.LINES[0], alpha=0.8, height=0.7, ecolor="0.3")
    names = axis.labels()
    texts = [f"{theme.short(names[k], 22)} ({100 * term.mass[k]:.0f} %)" for k in seen]
    ax.set_yticks(place, texts, fontsize=7)
    ax.axvline(0.0, color=theme.FAINT, lw=1.0, zorder=0)
    ax.set_title(f"{term.name}  (sd {term.importance:.2g})", fontsize=9)


def _draw_grid(ax: Any, term: Any, score: int, top: float) -> None:
    values = np.where(term.mass > 0, term.values[..., score], np.nan)
    rows = [k for k in range(values.shape[0]) if term.mass[k].sum() > 0]
    columns = [k for k in range(values.shape[1]) if term.mass[:, k].sum() > 0]
    # the scale of the grid itself: pairs are often smaller than shapes, and the bar says so
    top = float(np.nanmax(np.abs(values))) or top
    image = ax.pcolormesh(
        values[np.ix_(rows, columns)], cmap="RdBu_r", vmin=-top, vmax=top, edgecolors="face"
    )
    first, second = (axis.labels() for axis in term.axes)
    ax.set_yticks(np.arange(len(rows)) + 0.5, [theme.short(first[k], 12) for k in rows], fontsize=7)
    ax.set_xticks(
        np.arange(len(columns)) + 0.5, [theme.short(second[k], 12) for k in columns], fontsize=7,
        rotation=90,
    )  # fmt: skip
    ax.set_ylabel(term.columns[0], fontsize=8)
    ax.set_xlabel(term.columns[1], fontsize=8)
    ax.set_title(f"{theme.short(term.name, 40)}  (sd {term.importance:.2g})", fontsize=9)
    ax.figure.colorbar(image, ax=ax, shrink=0.9)


@dataclass
class AdditivePathDisplay(theme.Display):
    """Held-out loss against the number of terms, along the path of group penalties.

    Parameters
    ----------
    group_penalty, n_terms, loss : ndarray
    chosen : float
        The penalty of the fitted model.
    label : str
        What the loss is.
    """

    group_penalty: Floats
    n_terms: Floats
    loss: Floats
    chosen: float
    label: str = "held-out log loss"

    @classmethod
    def from_estimator(cls, estimator: Any) -> AdditivePathDisplay:
        """From a model whose penalty was chosen on folds."""
        model = theme.fitted_with(estimator, "path_")
        path = model.path_
        if not len(path.get("loss", ())):
            raise ValueError("The model has no path: it was fitted with a given group_penalty.")
        label = "held-out log loss" if model.costs is None else "held-out expected cost"
        chosen = model.group_penalty_
        return cls(path["group_penalty"], path["n_terms"], path["loss"], chosen, label)

    def _draw(self, ax: Any) -> tuple[str, str]:
        order = np.argsort(self.n_terms, kind="stable")
        ax.plot(self.n_terms[order], self.loss[order], marker="o", color=theme.LINES[0])
        at = int(np.argmin(np.abs(self.group_penalty - self.chosen)))
        said = f"chosen: {self.n_terms[at]:.1f} terms per fold"
        look = {"color": theme.LINES[1], "ms": 8, "label": said}
        ax.plot([self.n_terms[at]], [self.loss[at]], "D", **look)
        return "number of terms (mean of the folds)", self.label


def _positive(estimator: Any, classes: Any) -> Any:
    """The class that costs speak of, or the last of two."""
    own = getattr(estimator, "positive_", None)
    own = getattr(estimator, "positive", None) if own is None else own
    return classes[-1] if own is None else own


def _turned(term: FittedTerm) -> FittedTerm:
    """What the term adds to the score of the other class."""
    return replace(term, form=replace(term.form, values=-term.values))
