"""The weighted mean of several sums of terms, which is a sum of terms again.

Terms that read the same columns in the same way become one: two tables of a column are read on the
cuts of both, two shapes on the knots of both. A line and a table of one column stay two terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import clone

from laconic._typing import Floats
from laconic.additive.estimator import SparseAdditiveClassifier
from laconic.choose.page.lessons import Lesson
from laconic.choose.page.shortening import Shortening
from laconic.choose.tuning import LESSON_ROWS
from laconic.core.contract import Accepts, Interval, TableReader, fit_context
from laconic.core.form_prediction import FormPrediction
from laconic.core.forms import AdditiveScore, LineTerm, Link, RulesTerm, SlotTerm, Term
from laconic.data.source import one_blas_thread
from laconic.data.tables.axes import Axis, CategoryAxis, Encoded, IntervalAxis, KnotAxis
from laconic.linear.plain import PlainLogisticRegression

MEAN_LINKS: tuple[Link, ...] = ("logit", "softmax")
"""Links whose scores are log-probabilities up to a constant: their mean is one of the kind."""


def mean_form(
    forms: Sequence[AdditiveScore], weights: Sequence[float] | None = None
) -> AdditiveScore:
    """The weighted mean of the scores (weights sum to one; None: equal ones).

    Its probabilities are the geometric mean of theirs, normalised.

    >>> from laconic.data.tables.columns import Table
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
    shares = [1.0 / len(forms)] * len(forms) if weights is None else list(weights)
    pairs = list(zip(forms, shares, strict=True))
    together: list[Term] = []
    for term in (_scaled(term, share) for form, share in pairs for term in form.terms):
        at = next((i for i, own in enumerate(together) if _same_reading(own, term)), None)
        if at is None:
            together.append(term)
        else:
            together[at] = _sum_of(together[at], term)
    return AdditiveScore(
        first.classes,
        np.sum([share * form.intercept for form, share in pairs], axis=0),
        tuple(together),
        first.link,
        smoothing=sum(share * form.smoothing for form, share in pairs),
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
    between = fraction.reshape(-1, *(1,) * (lines.ndim - 1))
    return np.moveaxis((1.0 - between) * lines[index] + between * lines[after], 0, side)


class BlendedClassifier(FormPrediction):
    r"""The weighted mean of the scores of several models, which is one readable score again.

    Every member is a sum of terms, score :math:`s_m(x) = b_m + \sum_t f_{mt}(x)` with log-odds (or
    log-probabilities up to a constant) as its scale. Their mean is a sum of terms too; terms that
    read the same columns in the same way are added up, so the blend is often shorter than its
    members together. Its probabilities are the geometric mean of theirs, normalised. Two models
    that err in different places decide better together than the better of the two: a choice
    between models that are equally good on the rows at hand is a matter of luck, their mean is not.

    Parameters
    ----------
    estimators : list of classifiers, default=None
        Classifiers of this library whose score is a sum of terms: PlainLogisticRegression,
        WeightedNaiveBayes, ScorecardClassifier, SparseRulesClassifier (two classes) and
        SparseAdditiveClassifier. None: PlainLogisticRegression and SparseAdditiveClassifier.
    weights : list of float, default=None
        Weight of each member, at least 0; they are divided by their sum. None: equal weights.
    max_size : float, default=None
        Most entries of the mean. A longer one is shortened: shapes get fewer bends, levels and
        cells that nearly agree become one, the weakest terms leave, and what is left is fitted to
        the scores of the whole mean on (some of) the rows. None: as long as it comes.

    Attributes
    ----------
    estimators_ : list of classifiers
        The members, fitted.
    form_ : AdditiveScore
        The mean, with at most ``max_size`` entries.
    objective_, duality_gap_ : float
        Sums over the members, where all of them report one: no other set of members has a sum
        of training criteria that is lower by more than the gap.
    page_objective_, page_gap_ : float
        With ``max_size``: how far the page strays from the whole mean on the rows that it was
        drawn on, in nats a row, plus a little ridge around the values that shortening left; and
        a bound on how much lower that criterion is at any other values of its entries for which
        shapes and lines keep their direction. Zero where the mean is short enough.
    feature_importances_ : ndarray of shape (n_features,)
        Mean absolute contribution of each column on the training rows, as shares; not after a
        fit from a scan.
    classes_, n_features_in_, feature_names_in_

    See Also
    --------
    LaconicClassifier : finds members and weights by itself.

    Examples
    --------
    >>> from laconic import BlendedClassifier, PlainLogisticRegression, WeightedNaiveBayes
    >>> from laconic.data.demo import make_payments
    >>> payments, label = make_payments(2000)
    >>> members = [PlainLogisticRegression(), WeightedNaiveBayes(random_state=0)]
    >>> model = BlendedClassifier(members).fit(payments, label)
    >>> scores = [own.decision_function(payments) for own in model.estimators_]
    >>> bool(abs(model.decision_function(payments) - sum(scores) / 2).max() < 1e-9)
    True
    """

    _accepts = Accepts(scan=True)

    _parameter_constraints: dict[str, list[Any]] = {
        "estimators": [list, tuple, None],
        "weights": ["array-like", None],
        "max_size": [Interval(Real, 0, None, closed="left"), None],
    }

    def __init__(
        self, estimators: Any = None, weights: Any = None, *, max_size: float | None = None
    ) -> None:
        self.estimators = estimators
        self.weights = weights
        self.max_size = max_size

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> BlendedClassifier:
        """Fit every member and take the mean of their scores."""
        members = self._members()
        rows = self._read_training(X, y, sample_weight)
        with one_blas_thread():
            if not rows.in_memory:
                self._refuse_scan(self._can_scan(), " with these members")
                some = X.sample(LESSON_ROWS, 0)
                fitted = [clone(member).fit(X) for member in members]
                self._publish(fitted, Lesson.of_sample(some.table, some.weight))
                return self
            weighted = {} if sample_weight is None else {"sample_weight": rows.weight}
            labels = self.classes_[rows.y]
            fitted = [clone(own).fit(rows.table, labels, **weighted) for own in members]
            self._publish(fitted, Lesson.of(rows))
            self.feature_importances_ = self._importances(rows.table, rows.weight)
        return self

    def _members(self) -> Sequence[Any]:
        if self.estimators is None:
            return [PlainLogisticRegression(), SparseAdditiveClassifier()]
        if not len(self.estimators):
            raise ValueError("estimators is empty; name at least one model.")
        for member in self.estimators:
            if not isinstance(member, TableReader):
                raise TypeError(
                    "estimators must be classifiers of this library whose score is a sum of terms, "
                    f"got {type(member).__name__}."
                )
        return list(self.estimators)

    def _shares(self, n_members: int) -> list[float] | None:
        if self.weights is None:
            return None
        given = np.asarray(self.weights, dtype=np.float64)
        if given.shape != (n_members,) or not (given >= 0).all() or not 0 < given.sum() < np.inf:
            raise ValueError(
                f"weights must hold {n_members} numbers >= 0, one for each of the estimators and "
                f"not all zero, got {self.weights!r}."
            )
        return [float(share) for share in given / given.sum()]

    def _can_scan(self) -> bool:
        return all(member._can_scan() for member in self._members())

    @classmethod
    def of(
        cls,
        fitted: Sequence[Any],
        weights: Sequence[float] | None = None,
        max_size: float | None = None,
        lesson: Lesson | None = None,
    ) -> BlendedClassifier:
        """The mean of models that are fitted already, on the same columns and classes.

        ``lesson`` holds the rows on which it is shortened.
        """
        given = None if weights is None else [float(weight) for weight in weights]
        model = cls([clone(member) for member in fitted], given, max_size=max_size)
        model.schema_ = fitted[0].schema_
        model._publish_names()
        model.classes_ = fitted[0].classes_
        model._publish(fitted, lesson)
        return model

    def _publish(self, fitted: Sequence[Any], lesson: Lesson | None) -> None:
        self.__dict__.pop("feature_importances_", None)
        self.estimators_ = list(fitted)
        for member in fitted:
            # a member is fitted on a table, which has names even where the user's X has none
            member.schema_ = self.schema_
            member._publish_names()
        whole = mean_form([summed_form(member) for member in fitted], self._shares(len(fitted)))
        self.form_ = whole
        for name in ("page_objective_", "page_gap_"):
            self.__dict__.pop(name, None)
        if self.max_size is not None and lesson is not None:
            self._shorten(lesson, float(self.max_size))
        for name in ("objective_", "duality_gap_"):
            own = [getattr(member, name, None) for member in fitted]
            known = [float(value) for value in own if value is not None and np.ndim(value) == 0]
            self.__dict__.pop(name, None)
            if len(known) == len(fitted):
                setattr(self, name, sum(known))

    def _shorten(self, lesson: Lesson, most: float) -> None:
        """The mean with at most so many entries, and how well they say what it says."""
        path = Shortening(self.form_, *lesson.rows_for(self.form_))
        self.form_ = path.to(most, settled=True)
        self.page_objective_, self.page_gap_ = 0.0, 0.0  # the mean itself
        if path.certificate is not None:
            found = path.certificate.warn_if_short("The page", "raise max_size")
            self.page_objective_, self.page_gap_ = found.value, found.gap


def summed_form(model: Any) -> AdditiveScore:
    """The fitted sum of terms of a model that can be a member; else one sentence why not."""
    form = getattr(model, "form_", None)
    if not isinstance(form, AdditiveScore) or form.link not in MEAN_LINKS:
        kind = f"its link is {form.link!r}" if isinstance(form, AdditiveScore) else "it has none"
        raise ValueError(
            f"A {type(model).__name__} cannot be blended: its score must be a sum of terms that "
            f"are log-odds or log-probabilities, and {kind}."
        )
    return form
