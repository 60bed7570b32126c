"""BoostedStepsClassifier: bags of boosted cuts and crosses, whose mean is shapes and grids."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints
from laconic.boosted.boosting import Bags, Terms, screened_pairs
from laconic.boosted.coding import RankedColumns
from laconic.boosted.rows import DistinctRows
from laconic.boosted.tuning import CUTS, PAIR_CUTS
from laconic.core.contract import Accepts, Interval, Training, fit_context
from laconic.core.form_prediction import FormPrediction
from laconic.core.forms import AdditiveScore, SlotTerm, plain_label
from laconic.data.row_keys import seed_of
from laconic.data.source import one_blas_thread
from laconic.data.tables.axes import IntervalAxis, KnotAxis
from laconic.data.tables.columns import Table, forbidden_pairs


class BoostedStepsClassifier(FormPrediction):
    r"""The mean of bags of boosted steps: a cut of one column, or a cross of two.

    In each bag the log-odds grow by small Newton steps, a cut of one column at a time,

    .. math:: f \leftarrow f + \nu\,[\,v_0\,1(x_j \le c) + v_1\,1(x_j > c)\,], \qquad
              v = -\frac{\sum g_i}{\sum h_i + \epsilon},

    with g and h the first and second derivatives of the logistic loss over the rows of a side. The
    terms take turns in some passes whose cuts are drawn, so that shapes begin smooth (as those of
    explainable boosting machines do), and then in one pass of eleven; in the others each step is of
    the term that gained most when it was last looked at. A bag ends with the pass that the rows
    outside of it like best. Then the pairs whose best cross (four values) gains most are boosted in
    the same way beside the columns. The mean over the bags is a polygon for each number, through
    its steps at the mean of the cells between two cuts, a table for each category and a grid for
    each pair: it is read, exported and explained as any sum of terms. No convex problem is solved
    and no certificate given; steps follow jumps that smooth shapes round off, and the mean of bags
    errs elsewhere than one fit does.

    Parameters
    ----------
    bags : int, default=8
        Draws of about two thirds of the rows.
    pairs : float, default=1.0
        Pairs of columns, as a multiple of the number of columns.
    max_cuts, max_pair_cuts : int
        Most cuts of a number, alone and in a pair.
    forbid : sequence of pairs of column names, default=None
        Columns that may not enter a pair together.
    random_state : int, RandomState or None, default=None
        Key of the bags, which are hashes of the rows' values and this key. None is a fixed key:
        the same table gives the same model.

    Attributes
    ----------
    form_ : AdditiveScore
        Polygons, tables and grids.
    feature_importances_ : ndarray of shape (n_features,)
        Mean absolute contribution of each column on the training rows, as shares.
    classes_, n_features_in_, feature_names_in_

    See Also
    --------
    SparseAdditiveClassifier : smooth shapes, one convex problem with a certificate.
    SparseRulesClassifier : few conditions and products of two, with a certificate.

    Examples
    --------
    >>> import numpy as np
    >>> from laconic.boosted.estimator import BoostedStepsClassifier
    >>> X = np.random.default_rng(0).uniform(size=(600, 3))
    >>> jump = X[:, 0] > 0.4
    >>> model = BoostedStepsClassifier().fit(X[:300], jump[:300])
    >>> bool((model.predict(X[300:]) == jump[300:]).mean() > 0.98)
    True
    """

    _accepts = Accepts(categorical=True, missing=True, sparse=False, several_classes=False)
    _parameter_constraints: dict[str, list[Any]] = {
        "bags": [Interval(Integral, 1, None, closed="left")],
        "pairs": [Interval(Real, 0, None, closed="left")],
        "max_cuts": [Interval(Integral, 1, 240, closed="both")],
        "max_pair_cuts": [Interval(Integral, 1, 240, closed="both")],
        "forbid": [None, list, tuple],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        bags: int = 8,
        *,
        pairs: float = 1.0,
        max_cuts: int = CUTS,
        max_pair_cuts: int = PAIR_CUTS,
        forbid: Sequence[tuple[str, str]] | None = None,
        random_state: Any = None,
    ) -> None:
        self.bags = bags
        self.pairs = pairs
        self.max_cuts = max_cuts
        self.max_pair_cuts = max_pair_cuts
        self.forbid = forbid
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BoostedStepsClassifier:
        """Boost the bags on an array or frame of two classes."""
        rows = self._read_training(X, y, sample_weight)
        if len(self.classes_) != 2:
            raise ValueError(
                "Only binary classification is supported. BoostedStepsClassifier tells two "
                f"classes apart and y has {len(self.classes_)}."
            )
        with one_blas_thread():
            self._fit(rows)
            self.feature_importances_ = self._importances(rows.table, rows.weight)
        return self

    def _fit(self, rows: Training) -> None:
        seed = seed_of(self.random_state)
        own = DistinctRows.of(rows, seed)
        # by what the columns hold: no tie knows how they were given
        order = np.argsort(rows.column_keys, kind="stable")
        order = order[[_varies(own.table, int(j)) for j in order]]
        if not len(order):
            order = np.zeros(1, dtype=np.int64)  # whose table says nothing
        fine, coarse = (
            RankedColumns.learn(own.table, own.y, own.weight, order, int(most))
            for most in (self.max_cuts, self.max_pair_cuts)
        )
        bags, singles = Bags(own, int(self.bags), seed), Terms.of_columns(len(order))
        tables = bags.boost(fine, fine.read(own.table), singles)
        codes = coarse.read(own.table)
        most = int(np.ceil(self.pairs * len(order)))
        allowed = self._allowed(rows.table, order)
        spread = np.abs(tables).sum(axis=(1, 2)) / fine.sizes
        pairs = screened_pairs(bags, coarse, codes, spread, allowed, most)
        grids = bags.boost(coarse, codes, pairs) if len(pairs.first) else np.empty((0, 1, 1))
        terms = [
            *(as_shape(term, own) for term in terms_of(rows.table, fine, singles, tables)),
            *terms_of(rows.table, coarse, pairs, grids),
        ]
        classes = tuple(plain_label(c) for c in self.classes_)
        self.form_ = AdditiveScore(classes, np.array([bags.start]), tuple(terms))

    def _allowed(self, table: Table, order: Ints) -> NDArray[np.bool_]:
        """Which pairs there may be, by places among the ordered columns."""
        place = {int(j): at for at, j in enumerate(order)}
        allowed = np.ones((len(order), len(order)), dtype=bool)
        for a, b in forbidden_pairs(self.forbid, table.names):
            if a in place and b in place:
                allowed[place[a], place[b]] = allowed[place[b], place[a]] = False
        return allowed


def _varies(table: Table, j: int) -> bool:
    """Whether a column tells rows apart: another one changes how many steps a pass has."""
    return len(np.unique(table.column(j))) > 1  # missing cells are equal


def as_shape(term: SlotTerm, rows: DistinctRows) -> SlotTerm:
    """The steps of a number as a polygon through them; those of a category as they are.

    A knot stands at the mean of the cells between two cuts: where they are all equal, the polygon
    says of every row what the steps said. It is one shape with that of a smooth model in a mean.
    """
    axis = term.axes[0]
    if not isinstance(axis, IntervalAxis):
        return term
    place = rows.table.place(term.columns[0])
    cells = np.asarray(rows.table.column(place), dtype=np.float64)
    known = np.flatnonzero(~np.isnan(cells) & (rows.weight > 0.0))
    slots, cells, weight = axis.encode(cells[known])[0], cells[known], rows.weight[known]
    n = len(axis.bounds) + 1
    mass = np.bincount(slots, weight, n)
    mean = np.asarray(np.bincount(slots, weight / mass[slots] * cells, n), dtype=np.float64)
    low, high = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(low, slots, cells)
    np.maximum.at(high, slots, cells)
    full = mass > 0.0
    # rounding must not carry a mean beyond its cells
    knots = np.clip(mean[full], low[full], high[full])
    values = np.concatenate([term.values[:n][full], term.values[n:]])
    return SlotTerm(term.columns, (KnotAxis(knots, np.empty(0)),), values)


def terms_of(table: Table, columns: RankedColumns, terms: Terms, values: Floats) -> list[SlotTerm]:
    """The terms that say something, with their slots in the order of their axes."""
    found = []
    for first, second, own in zip(terms.first, terms.second, values, strict=True):
        ends = [int(first)] if second < 0 else [int(first), int(second)]
        # the columns of a term stand as they do in the table
        turned = len(ends) == 2 and columns.places[ends[0]] > columns.places[ends[1]]
        ends, own = (ends[::-1], own.T) if turned else (ends, own)
        own = own[columns.ranks[ends[0]]]
        own = own[:, :1] if len(ends) == 1 else own[:, columns.ranks[ends[1]], None]
        if np.ptp(own) > 0.0:
            names = tuple(table.names[columns.places[end]] for end in ends)
            found.append(SlotTerm(names, tuple(columns.axes[end] for end in ends), own))
    return sorted(
        found, key=lambda term: (len(term.columns), [table.place(c) for c in term.columns])
    )
