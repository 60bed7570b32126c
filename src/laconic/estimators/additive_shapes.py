"""Terms of a fitted additive model as users read them: names, axes, values, errors, importance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from laconic.data.axes import Axis
from laconic.estimators.forms import SlotTerm, TermKind
from laconic.solvers.additive import AdditivePoint
from laconic.solvers.additive_folds import FoldPath
from laconic.solvers.additive_terms import TermSet

Array = NDArray[np.float64]


@dataclass(frozen=True)
class FittedTerm:
    """One shape or grid.

    Attributes
    ----------
    form : SlotTerm
        Columns, axes and slot values.
    importance : float
        Standard deviation of the contribution on the training rows (root mean square over the
        classes when there are several scores).
    mass : ndarray
        Share of the training rows in each slot (rows between two knots are shared).
    errors : ndarray or None
        Standard errors of the values, from the fits without each fold (delete-a-group jackknife);
        None without cross-validation.
    """

    form: SlotTerm
    importance: float
    mass: Array
    errors: Array | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return self.form.columns

    @property
    def name(self) -> str:
        return " x ".join(self.columns)

    @property
    def kind(self) -> TermKind:
        return self.form.kind

    @property
    def axes(self) -> tuple[Axis, ...]:
        return self.form.axes

    @property
    def values(self) -> Array:
        return self.form.values

    def __repr__(self) -> str:
        return f"FittedTerm({self.name!r}, {self.kind}, importance={self.importance:.3g})"


def edited_term(term: FittedTerm, values: ArrayLike) -> FittedTerm:
    """The same term with other slot values, centred or not; its importance is measured again."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape != term.values.shape and array.shape == term.values.shape[:-1]:
        array = array[..., None]
    if array.shape != term.values.shape:
        raise ValueError(
            f"values of term {term.name!r} must have shape {term.values.shape}, got {array.shape}."
        )
    form = SlotTerm(term.columns, term.axes, array)
    return replace(term, form=form, importance=_spread(form.values, term.mass), errors=None)


def _spread(values: Array, mass: Array) -> float:
    flat, share = values.reshape(-1, values.shape[-1]), mass.ravel() / max(mass.sum(), 1e-300)
    centred = flat - share @ flat
    return float(np.sqrt((share @ centred**2).mean()))


def fitted_terms(
    names: Sequence[str],
    terms: TermSet,
    point: AdditivePoint,
    masses: Sequence[Array],
    signs: Sequence[int],
    folds: Sequence[FoldPath] = (),
) -> tuple[list[FittedTerm], list[int]]:
    """Terms that are not zero by decreasing importance, and their places in ``terms``."""
    K = len(point.intercept)
    squares = (point.coordinates**2).sum(axis=0)
    norms = np.sqrt(np.bincount(terms.owner, squares, minlength=len(terms.terms)) / K)
    order = sorted(np.flatnonzero(norms > 0), key=lambda t: (-norms[t], terms.terms[t].columns))
    out = []
    for t in order:
        term = terms.terms[t]
        values = terms.values(int(t), point.coordinates)
        if len(term.columns) == 1 and signs and signs[term.columns[0]]:
            values = _exactly_monotone(values, term.n_knots, signs[term.columns[0]])
        shape = (*(axis.size for axis in term.axes), K)
        form = SlotTerm(tuple(names[j] for j in term.columns), term.axes, values.reshape(shape))
        errors = _jackknife(term.columns, folds)
        out.append(
            FittedTerm(
                form,
                float(norms[t]),
                masses[t].reshape(shape[:-1]),
                None if errors is None else errors.reshape(shape),
            )
        )
    return out, [int(t) for t in order]


def _exactly_monotone(values: Array, n_knots: int, sign: int) -> Array:
    """Removes the rounding of a solution that is monotone up to 1e-12."""
    out = values.copy()
    out[:n_knots] = sign * np.maximum.accumulate(sign * out[:n_knots], axis=0)
    return out


def _jackknife(columns: tuple[int, ...], folds: Sequence[FoldPath]) -> Array | None:
    """Standard errors from the folds; a fold without the term counts as zero."""
    if len(folds) < 2:
        return None
    curves: list[Array | None] = []
    for fold in folds:
        place = fold.terms.place_of.get(columns)
        curves.append(None if place is None else fold.terms.values(place, fold.coordinates[0]))
    known = [c for c in curves if c is not None]
    if not known:
        return None
    stack = np.stack([np.zeros_like(known[0]) if c is None else c for c in curves])
    spread = ((stack - stack.mean(axis=0)) ** 2).sum(axis=0)
    return np.asarray(np.sqrt(spread * (len(stack) - 1) / len(stack)))
