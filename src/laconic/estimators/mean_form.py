"""The mean of several sums of terms, which is a sum of terms.

Terms that read the same columns in the same way become one: two tables of a column are read on the
cuts of both, two shapes on the knots of both. A line and a table of one column stay two terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from laconic.data.axes import Axis, CategoryAxis, Encoded, IntervalAxis, KnotAxis
from laconic.estimators.forms import AdditiveScore, LineTerm, SlotTerm, Term
from laconic.estimators.links import Link
from laconic.estimators.rule_terms import RulesTerm

Floats = NDArray[np.float64]

MEAN_LINKS: tuple[Link, ...] = ("logit", "softmax")
"""Links whose scores are log-probabilities up to a constant: their mean is one of the kind."""


def mean_form(forms: Sequence[AdditiveScore]) -> AdditiveScore:
    """(1/n) sum of the scores; its probabilities are the geometric mean of theirs, normalised.

    >>> from laconic.data.columns import Table
    >>> one = SlotTerm(("x",), (IntervalAxis(np.array([1.0])),), np.array([[0.0], [2.0], [0.0]]))
    >>> two = SlotTerm(("x",), (IntervalAxis(np.array([3.0])),), np.array([[0.0], [4.0], [0.0]]))
    >>> forms = [AdditiveScore((0, 1), np.array([b]), (t,)) for b, t in ((1.0, one), (3.0, two))]
    >>> mean = mean_form(forms)
    >>> len(mean.terms), mean.terms[0].axes[0].bounds.tolist()
    (1, [1.0, 3.0])
    >>> table = Table(("x",), ("numeric",), (None,), matrix=np.array([[0.5], [2.0], [9.0]]))
    >>> mean.score(table).ravel().tolist()
    [2.0, 3.0, 5.0]
    """
    first = forms[0]
    if any(form.link != first.link or form.classes != first.classes for form in forms):
        raise ValueError("Only scores of the same kind and the same classes have a mean.")
    share = 1.0 / len(forms)
    together: list[Term] = []
    for term in (_scaled(term, share) for form in forms for term in form.terms):
        at = next((i for i, own in enumerate(together) if _same_reading(own, term)), None)
        if at is None:
            together.append(term)
        else:
            together[at] = _sum_of(together[at], term)
    return AdditiveScore(
        first.classes,
        np.mean([form.intercept for form in forms], axis=0),
        tuple(together),
        first.link,
        smoothing=share * sum(form.smoothing for form in forms),
    )


def _scaled(term: Term, share: float) -> Term:
    if isinstance(term, LineTerm):
        assert term.missing is not None
        return replace(term, slope=term.slope * share, missing=term.missing * share)
    return replace(term, values=term.values * share)


def _same_reading(one: Term, other: Term) -> bool:
    """Whether the two can be one term without a change of any score beyond rounding."""
    if one.columns != other.columns or type(one) is not type(other):
        return False
    if isinstance(one, RulesTerm):
        return False
    if isinstance(one, LineTerm) and isinstance(other, LineTerm):
        return one.origin == other.origin
    assert isinstance(one, SlotTerm)
    assert isinstance(other, SlotTerm)
    return all(_refinable(a, b) for a, b in zip(one.axes, other.axes, strict=True))


def _refinable(one: Axis, other: Axis) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, KnotAxis) and isinstance(other, KnotAxis):
        # a knot that is a value apart on one of the axes has two heights there
        knots, specials = np.append(one.knots, other.knots), np.append(one.specials, other.specials)
        return not bool(np.isin(knots, specials).any())
    return True


def _sum_of(one: Term, other: Term) -> Term:
    if isinstance(one, LineTerm) and isinstance(other, LineTerm):
        assert one.missing is not None
        assert other.missing is not None
        return replace(one, slope=one.slope + other.slope, missing=one.missing + other.missing)
    assert isinstance(one, SlotTerm)
    assert isinstance(other, SlotTerm)
    axes = tuple(_refined(a, b) for a, b in zip(one.axes, other.axes, strict=True))
    return SlotTerm(one.columns, axes, _read_on(axes, one) + _read_on(axes, other))


def _read_on(axes: tuple[Axis, ...], term: SlotTerm) -> Floats:
    """The term's values on the slots of finer axes."""
    values = np.asarray(term.values)
    for side, (old, new) in enumerate(zip(term.axes, axes, strict=True)):
        values = _read_along(values, old, new, side)
    return values


def _refined(one: Axis, other: Axis) -> Axis:
    """The coarsest axis that tells apart what either tells apart."""
    if isinstance(one, CategoryAxis) and isinstance(other, CategoryAxis):
        slots, others = one.slot_of(), other.slot_of()
        groups: dict[tuple[int, int], list[str]] = {}
        for text in dict.fromkeys([*slots, *others]):
            key = (slots.get(text, one.other), others.get(text, other.other))
            groups.setdefault(key, []).append(text)
        return CategoryAxis(tuple(tuple(texts) for texts in groups.values()))
    if isinstance(one, IntervalAxis) and isinstance(other, IntervalAxis):
        specials = tuple(dict.fromkeys([*one.specials, *other.specials]))
        return IntervalAxis(np.union1d(one.bounds, other.bounds), specials)
    assert isinstance(one, KnotAxis)
    assert isinstance(other, KnotAxis)
    return KnotAxis(np.union1d(one.knots, other.knots), np.union1d(one.specials, other.specials))


def _places(old: Axis, new: Axis) -> Encoded:
    """Where each slot of the finer axis reads on the coarser one."""
    if isinstance(new, CategoryAxis):
        assert isinstance(old, CategoryAxis)
        slots = old.slot_of()
        own = [slots.get(texts[0], old.other) for texts in new.groups]
        index = np.array([*own, old.other, old.missing], dtype=np.int64)
        return index, np.zeros(len(index))
    assert not isinstance(old, CategoryAxis)
    if isinstance(new, IntervalAxis):
        # just below the closed end: the end itself may be a value apart
        inside = np.nextafter(new.bounds, -np.inf)
        return old.encode(np.concatenate([inside, [np.inf], new.specials, [np.nan]]))
    return old.encode(np.concatenate([new.knots, new.specials, [np.nan]]))


def _read_along(values: Floats, old: Axis, new: Axis, side: int) -> Floats:
    index, fraction = _places(old, new)
    lines = np.moveaxis(values, side, 0)
    after = np.minimum(index + 1, len(lines) - 1)
    way = fraction.reshape(-1, *(1,) * (lines.ndim - 1))
    return np.moveaxis((1.0 - way) * lines[index] + way * lines[after], 0, side)


__all__ = ["MEAN_LINKS", "mean_form"]
