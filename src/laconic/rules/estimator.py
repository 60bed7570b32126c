"""SparseRulesClassifier: a few conditions and agreements of two conditions, weighed together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints
from laconic.core.contract import Accepts, Interval, StrOptions, Training, fit_context
from laconic.core.folds import folds_of
from laconic.core.form_prediction import FormPrediction
from laconic.core.forms import AdditiveScore, Link, SlotTerm, plain_label, probabilities
from laconic.core.losses import Solution
from laconic.data.row_keys import seed_of
from laconic.data.source import one_blas_thread
from laconic.data.tables.axes import Axis, CategoryAxis, IntervalAxis
from laconic.data.tables.columns import Table, forbidden_pairs
from laconic.rules.conditions import RuleSet, rules_of
from laconic.rules.solver import LassoLogistic, RulePoint, held_out_path, solve_down

_ERRORS = {"best": 0.0, "half-se": 0.5, "1se": 1.0}


@dataclass(frozen=True)
class Rule:
    """``weight`` is added to the score where the rule holds, and subtracted where it does not."""

    text: str
    columns: tuple[str, ...]
    weight: float


class SparseRulesClassifier(FormPrediction):
    r"""Logistic regression on yes/no conditions and agreements of two of them, few by l1 penalty.

    Every column offers conditions that ignore the target: cuts of a number spread evenly over the
    rows, frequent categories, missing values. With s = 1 where a condition holds and -1 where it
    does not,

    .. math:: f(x) = b + \sum_c \beta_c s_c(x) + \sum_{c < c'} \beta_{cc'} s_c(x) s_{c'}(x)

    over conditions of one column and pairs of conditions of two columns, and :math:`\lambda
    \|\beta\|_1` is added to the logistic loss. Most weights are zero; those of one column add up to
    a table of steps, those of two columns to a grid. It finds what is spread thinly over many
    interactions ("exactly two of six things are true"), which no single pair betrays.

    Parameters
    ----------
    max_rules : int, default=300
        Most conditions and products on offer. Columns get fewer cuts until they fit; where one cut
        by column does not fit, products are left out.
    max_cuts : int, default=8
        Most cuts of a number and most categories of a column.
    penalty : "cv" or float, default="cv"
        Share, in (0, 1], of the penalty at which every rule leaves; "cv" chooses it by held-out
        log loss.
    selection : {"best", "half-se", "1se"}, default="best"
        The penalty of least held-out loss, or the largest within half a standard error or one.
    forbid : sequence of pairs of column names, default=None
        Columns whose conditions may not enter a product together.
    cv : int, splitter or iterable, default=5
    tol : float, default=1e-6
        The optimiser stops when the duality gap is below ``tol`` times the loss of the empty model.
    max_iter : int, default=200
    random_state : int, RandomState or None, default=None
        Key of the folds, which are hashes of the rows' values and this key. None is a fixed key:
        the same table gives the same model.

    Attributes
    ----------
    rules_ : list of lists of Rule
        For each score, by decreasing weight: one score for two classes, one by class for more.
    form_ : AdditiveScore
        Tables and grids of steps, centred on the training rows.
    n_rules_, n_offered_ : int
        Rules with a weight, and rules on offer.
    penalty_ : ndarray
        Share of the largest penalty, for each score.
    path_ : list of HeldOutPath or None
        For each score, held-out log loss by penalty.
    held_out_proba_ : ndarray of shape (n, K) or None
        Probabilities of the training rows by the folds that did not see them; NaN for a row that
        no fold with two classes held out.
    objective_, duality_gap_ : float
        The least possible objective lies within ``duality_gap_`` below ``objective_``.
    n_iter_ : int
    feature_importances_ : ndarray of shape (n_features,)
        Mean absolute contribution of each column on the training rows, as shares.
    classes_, n_features_in_, feature_names_in_

    See Also
    --------
    SparseAdditiveClassifier : smooth shapes in place of steps.
    ScorecardClassifier : cuts chosen by the target, no sparsity penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from laconic import SparseRulesClassifier
    >>> draw = np.random.default_rng(0)
    >>> X = draw.integers(1, 4, (500, 6))
    >>> two_of_six = (X == 1).sum(axis=1) == 2
    >>> model = SparseRulesClassifier().fit(X[:300], two_of_six[:300])
    >>> bool((model.predict(X[300:]) == two_of_six[300:]).all())
    True
    """

    _accepts = Accepts(categorical=True, missing=True, sparse=False)
    _keeps_forms = False  # whoever compares models asks for the forms of the folds
    _parameter_constraints: dict[str, list[Any]] = {
        "max_rules": [Interval(Integral, 1, None, closed="left")],
        "max_cuts": [Interval(Integral, 1, None, closed="left")],
        "penalty": [StrOptions({"cv"}), Interval(Real, 0, 1, closed="right")],
        "selection": [StrOptions(set(_ERRORS))],
        "forbid": [None, list, tuple],
        "cv": "no_validation",  # type: ignore[dict-item]
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        max_rules: int = 300,
        *,
        max_cuts: int = 8,
        penalty: float | str = "cv",
        selection: str = "best",
        forbid: Sequence[tuple[str, str]] | None = None,
        cv: Any = 5,
        tol: float = 1e-6,
        max_iter: int = 200,
        random_state: Any = None,
    ) -> None:
        self.max_rules = max_rules
        self.max_cuts = max_cuts
        self.penalty = penalty
        self.selection = selection
        self.forbid = forbid
        self.cv = cv
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SparseRulesClassifier:
        """Offer the rules of an array or frame, choose the penalty, then the certified weights."""
        rows = self._read_training(X, y, sample_weight)
        with one_blas_thread():
            self._fit(rows, len(np.asarray(y)))
        return self

    def _fit(self, rows: Training, n_given: int) -> None:
        most = int(self.max_rules), int(self.max_cuts)
        forbidden = forbidden_pairs(self.forbid, rows.table.names)
        rules = rules_of(rows.table, rows.weight, *most, forbidden).ordered(rows.column_keys)
        signs = rules.read(rows.table)
        folds = []
        if self.penalty == "cv":
            folds = folds_of(self.cv, rows, n_given, seed_of(self.random_state))
        K = len(self.classes_)
        positives = [1] if K == 2 else list(range(K))
        # a power of two near the mean weight: nothing is rounded, and 1e-221 has room to be divided
        unit = 2.0 ** int(np.frexp(rows.weight.mean())[1])
        problems = [
            LassoLogistic(signs, np.where(rows.y == k, 1.0, -1.0), rows.weight / unit)
            for k in positives
        ]
        self.path_ = [held_out_path(problem, folds) for problem in problems]
        self.penalty_, held_out = self._choose(rows.n_rows)
        solved = [
            solve_down(problem, float(share), float(self.tol), int(self.max_iter))
            for problem, share in zip(problems, self.penalty_, strict=True)
        ]
        solved = [
            replace(s, value=s.value * unit, gap=s.gap * unit).warn_if_short(type(self).__name__)
            for s in solved
        ]
        self._publish(rules, rows.table, rows.weight, solved)
        self.held_out_proba_ = None
        if held_out is not None:
            self.held_out_proba_ = np.full((rows.n_rows, K), np.nan)
            # a row that no fold could judge has no score
            judged = np.isfinite(held_out).all(axis=1)
            self.held_out_proba_[judged] = probabilities(held_out[judged], self.form_.link)
        if self._keeps_forms and K == 2:
            self._held_out_forms = self._fold_forms(rules, rows)
        self.path_ = [None if path is None else replace(path, points=()) for path in self.path_]

    def _fold_forms(self, rules: RuleSet, rows: Training) -> list[tuple[Ints, AdditiveScore]]:
        """For each fold, the rows that it held out and the form that was fitted without them."""
        path = self.path_[0]
        if path is None:
            return []
        points = path.points[path.choose(_ERRORS[self.selection])]
        return [
            (test, self._form(rules, [point], rows.table, rows.weight))
            for test, point in zip(path.tests, points, strict=True)
        ]

    def _form(
        self, rules: RuleSet, points: Sequence[RulePoint], table: Table, weight: Floats
    ) -> AdditiveScore:
        weights = np.stack([point.weights for point in points])
        intercept = np.array([point.intercept for point in points])
        return rules_form(rules, weights, intercept, self.classes_, table, weight)

    def _choose(self, n_rows: int) -> tuple[Floats, Floats | None]:
        """Share of the largest penalty and held-out scores, by score."""
        if self.penalty != "cv":
            return np.full(len(self.path_), float(self.penalty)), None
        shares, scores = np.ones(len(self.path_)), np.full((n_rows, len(self.path_)), np.nan)
        for k, path in enumerate(self.path_):
            if path is not None:
                at = path.choose(_ERRORS[self.selection])
                shares[k], scores[:, k] = path.shares[at], path.scores[at]
        return shares, scores

    def _publish(
        self, rules: RuleSet, table: Table, weight: Floats, solved: Sequence[Solution]
    ) -> None:
        weights = np.stack([s.point.weights for s in solved])
        self.form_ = self._form(rules, [s.point for s in solved], table, weight)
        self.rules_ = [_worded(rules, own) for own in weights]
        self.n_rules_ = int((weights != 0).any(axis=0).sum())
        self.n_offered_ = len(rules.first)
        self.intercept_ = self.form_.intercept.copy()
        self.objective_ = float(sum(s.value for s in solved))
        self.duality_gap_ = float(sum(s.gap for s in solved))
        self.n_iter_ = max(1, *(s.n_iter for s in solved))
        self.feature_importances_ = self._importances(table, weight)


def _worded(rules: RuleSet, weights: Floats) -> list[Rule]:
    names, owner = rules.names(), rules.owner
    order = np.argsort(-np.abs(weights), kind="stable")
    return [
        Rule(
            names[r],
            tuple(
                rules.columns[owner[c]].column for c in (rules.first[r], rules.second[r]) if c >= 0
            ),
            float(weights[r]),
        )
        for r in order[: int((weights != 0).sum())]
    ]


def rules_form(
    rules: RuleSet,
    weights: Floats,
    intercept: Floats,
    classes: NDArray[Any],
    table: Table,
    row_weight: Floats,
) -> AdditiveScore:
    """One table of steps by column and one grid by pair; ``weights`` is (scores, rules)."""
    owner = rules.owner
    start = np.concatenate([[0], np.cumsum([len(c.names) for c in rules.columns])])
    values: dict[tuple[int, ...], Floats] = {}
    for r in np.flatnonzero((weights != 0).any(axis=0)):
        places = [int(c) for c in (rules.first[r], rules.second[r]) if c >= 0]
        key = tuple(int(owner[c]) for c in places)
        sides = [rules.columns[j].sides[c - start[j]] for c, j in zip(places, key, strict=True)]
        step = sides[0] if len(sides) == 1 else np.outer(sides[0], sides[1])
        own = step[..., None] * weights[:, r]
        values[key] = values[key] + own if key in values else own
    bias, terms = np.array(intercept, dtype=np.float64), []
    share = row_weight / row_weight.sum()
    for key in sorted(values, key=lambda key: (len(key), key)):
        axes, steps = [], values[key]
        for side, j in enumerate(key):
            axis, steps = merged_slots(rules.columns[j].axis, steps, side)
            axes.append(axis)
        names = tuple(rules.columns[j].column for j in key)
        mean = share @ SlotTerm(names, tuple(axes), steps).contribution(table)
        bias = bias + mean
        terms.append(SlotTerm(names, tuple(axes), steps - mean))
    link: Link = "logit" if len(classes) == 2 else "ovr"
    return AdditiveScore(tuple(plain_label(c) for c in classes), bias, tuple(terms), link)


def merged_slots(axis: Axis, values: Floats, side: int) -> tuple[Axis, Floats]:
    """The axis without the cuts, or the categories, that change nothing.

    >>> from laconic.data.tables.axes import IntervalAxis
    >>> steps = np.array([[1.0], [1.0], [2.0], [0.0]])
    >>> axis, steps = merged_slots(IntervalAxis(np.array([1.0, 2.0])), steps, 0)
    >>> axis.bounds.tolist(), steps.ravel().tolist()
    ([2.0], [1.0, 2.0, 0.0])
    """
    lines = np.moveaxis(values, side, 0)
    others = tuple(range(1, lines.ndim))
    if isinstance(axis, CategoryAxis):
        differs = (lines[: axis.other] != lines[axis.other]).any(axis=others)
        kept = np.append(np.flatnonzero(differs), [axis.other, axis.missing])
        groups = tuple(axis.groups[g] for g in np.flatnonzero(differs))
        return CategoryAxis(groups), np.moveaxis(lines[kept], 0, side)
    assert isinstance(axis, IntervalAxis)
    n = len(axis.bounds)
    differs = (lines[:n] != lines[1 : n + 1]).any(axis=others)
    kept = np.append(np.flatnonzero(differs), [n, axis.missing])
    return IntervalAxis(axis.bounds[differs]), np.moveaxis(lines[kept], 0, side)
