"""OptimalScorecardClassifier: the best small table of whole points, and how far from best it is."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from laconic._typing import Floats, Ints
from laconic.core.contract import Accepts, Interval, StrOptions, Training, fit_context
from laconic.core.decisions import cost_matrix, decision_threshold
from laconic.core.folds import held_out_rows, keys_of
from laconic.core.form_prediction import FormPrediction
from laconic.core.forms import AdditiveScore, plain_label
from laconic.core.losses import Solution
from laconic.data.row_keys import seed_of
from laconic.data.source import one_blas_thread
from laconic.data.tables.columns import Table
from laconic.modl.estimator import ModlEncoder
from laconic.scorecard.branching import Incumbent
from laconic.scorecard.card import Card, CardItem
from laconic.scorecard.costs import CardCosts
from laconic.scorecard.items import ColumnItems, items_of
from laconic.scorecard.limits import Names, limited, read_rules
from laconic.scorecard.problem import CardProblem, patterns, with_prior
from laconic.scorecard.risk import RiskRow, Seen, held_to_threshold, log_odds_table, risk_rows
from laconic.scorecard.solver import Near, near_cards, solve_card
from laconic.scorecard.tuning import PRIOR_ROWS

_RULES = (
    "monotone", "signs", "forced", "forbidden", "exclusive", "group_limits", "max_per_column",
)  # fmt: skip


class OptimalScorecardClassifier(FormPrediction):
    r"""The card of at most ``max_items`` conditions and whole points of least loss, with a proof.

    Every column offers items, yes/no conditions x_j. With whole points l_j, a multiplier a and an
    offset b,

    .. math:: P(y = 1 \mid x) = \sigma\Big(a \sum_j l_j x_j + b\Big)

    and the mean logistic loss of the rows and of ``prior_rows``, with a price for every item, is
    minimised over points, multiplier and offset together, not over rounded weights. Branch and
    bound leaves a bound below the loss of *every* card of the offered items that keeps the rules:
    ``optimality_gap_`` is certified. With ``costs`` the expected cost at the best threshold is
    minimised instead.

    Parameters
    ----------
    max_items : int, default=8
        Most items with points, at most 12.
    points : (int, int), default=(-10, 10)
        Least and largest points of an item.
    costs : costs in any spelling of :class:`DecisionClassifier`, default=None
        None: logistic loss. Else the expected cost of saying yes from some total on.
    cutting : {"modl", "quantile", "both"}, default="modl"
        Where numbers are cut: by MODL (with the target; a column that says nothing offers
        nothing), evenly over the rows, or both. More cuts fit the training rows better and new
        ones worse on small tables (docs/scorecard.md).
    parts : {"cuts", "bins"}, default="cuts"
        Items of a number: "x > c" for every cut, or one for each bin between cuts. A column with
        a rule of monotonicity always gets cuts.
    max_cuts : int, default=9
        Most even cuts of a number, and most frequent categories of a column with their own item.
    max_candidates : int, default=200
        Items on offer, at most: those that lower the loss most by themselves. The proof is about
        what is on offer.
    monotone : dict, default=None
        Column -> 1 or "increasing", -1 or "decreasing": the points of the column follow its value;
        its "is missing" is free.
    signs : dict, default=None
        Column or item -> 1 or -1, the only sign of its points.
    forced, forbidden : list, default=None
        Columns or items that must (a column: at least one of its items) or must not have points.
    exclusive : list of lists, default=None
        Of each list of columns or items at most one may have points.
    group_limits : dict or list of pairs, default=None
        (names, number): at most so many items of these columns or items have points.
    max_columns, max_per_column : int, default=None
        Most columns read; most items of one column.
    max_multiplier : float, default=2.0
        Largest a: part of the problem, because perfect cards would want an infinite one. A point
        multiplies the odds by at most exp(max_multiplier).
    prior_rows : float, default=16
        Rows that are added to the loss: the items of the training rows, all alike, with classes in
        the proportion of the whole. They say that nothing is known, so that few rows do not make a
        card too sure. 0 is the loss of the rows alone.
    item_price : float, default=0
        Log-likelihood that an item must bring to have a line, not counted with ``costs``: 1.5 makes
        shorter cards. 0 fills the card up to ``max_items``.
    risk : {"fit", "logistic", "isotonic"}, default="fit"
        How a total becomes a probability: by the multiplier and offset of the proof, or by a
        logistic line or isotonic steps fitted to rows that the search did not see. Monotone always.
    held_out : float, default=0.25
        Share of the rows kept for ``risk`` "logistic" and "isotonic".
    pool : float, default=0.01
        Cards within this part of the best objective are kept in ``pool_`` (log loss only).
    time_limit : float or None, default=60
        Seconds for the search. It ends with the best card and the bound reached, and a warning.
    gap : float, default=0.01
        Relative gap at which the proof is good enough.
    n_jobs : int, default=None
    random_state : int, RandomState or None, default=None
        Key of the held-out rows; the search draws nothing.

    Attributes
    ----------
    card_ : Card
        ``print(model.card_)`` shows it.
    objective_, lower_bound_, optimality_gap_ : float
        Log loss with the prior rows and the price of the items (or cost) of the card, a bound on
        every card, and (objective - bound) / objective.
    duality_gap_ : float
        objective - bound.
    interrupted_ : bool
        Whether Ctrl-C ended the search, which keeps the best card so far.
    pool_ : list of Card
        Nearly best cards, the best first; :meth:`choose` takes one.
    substitutes_ : dict of str to list of (str, float)
        For each item of the best card: the items that can stand in its place, with the objective.
    multiplier_, offset_ : float
    cost_threshold_ : int or None
        With ``costs``: the total from which on yes is cheapest.
    risk_ : list of RiskRow
        For each total: rows, positives, an interval of the rate, and the probability said.
    calibration_ : str
        In words: how totals became probabilities, and on which rows.
    n_offered_, n_patterns_ : int
    form_ : AdditiveScore
        Whole points, the link "points" and its table.
    classes_, n_features_in_, feature_names_in_, feature_importances_

    See Also
    --------
    ScorecardClassifier : points for all parts of all columns, real-valued.
    to_scorecard : rounds a fitted model.

    Examples
    --------
    >>> from laconic import OptimalScorecardClassifier
    >>> from laconic.data.demo import make_payments
    >>> payments, label = make_payments(1000)
    >>> model = OptimalScorecardClassifier(3, points=(-5, 5), max_cuts=3).fit(payments, label)
    >>> len(model.card_.items) <= 3, model.optimality_gap_ <= 0.01
    (True, True)
    """

    _accepts = Accepts(several_classes=False)
    _parameter_constraints: dict[str, list[Any]] = {
        "max_items": [Interval(Integral, 1, 12, closed="both")],
        "points": ["array-like"],
        "costs": "no_validation",  # type: ignore[dict-item]
        "cutting": [StrOptions({"both", "modl", "quantile"})],
        "parts": [StrOptions({"cuts", "bins"})],
        "max_cuts": [Interval(Integral, 1, None, closed="left")],
        "max_candidates": [Interval(Integral, 1, None, closed="left")],
        "monotone": [dict, None],
        "signs": [dict, None],
        "forced": [list, tuple, None],
        "forbidden": [list, tuple, None],
        "exclusive": [list, tuple, None],
        "group_limits": [dict, list, tuple, None],
        "max_columns": [Interval(Integral, 1, None, closed="left"), None],
        "max_per_column": [Interval(Integral, 1, None, closed="left"), None],
        "max_multiplier": [Interval(Real, 0, None, closed="neither")],
        "prior_rows": [Interval(Real, 0, None, closed="left")],
        "item_price": [Interval(Real, 0, None, closed="left")],
        "risk": [StrOptions({"fit", "logistic", "isotonic"})],
        "held_out": [Interval(Real, 0, 0.5, closed="right")],
        "pool": [Interval(Real, 0, None, closed="left")],
        "time_limit": [Interval(Real, 0, None, closed="left"), None],
        "gap": [Interval(Real, 0, 1, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        max_items: int = 8,
        points: Any = (-10, 10),
        *,
        costs: Any = None,
        cutting: str = "modl",
        parts: str = "cuts",
        max_cuts: int = 9,
        max_candidates: int = 200,
        monotone: Any = None,
        signs: Any = None,
        forced: Any = None,
        forbidden: Any = None,
        exclusive: Any = None,
        group_limits: Any = None,
        max_columns: int | None = None,
        max_per_column: int | None = None,
        max_multiplier: float = 2.0,
        prior_rows: float = PRIOR_ROWS,
        item_price: float = 0.0,
        risk: str = "fit",
        held_out: float = 0.25,
        pool: float = 0.01,
        time_limit: float | None = 60.0,
        gap: float = 0.01,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.max_items = max_items
        self.points = points
        self.costs = costs
        self.cutting = cutting
        self.parts = parts
        self.max_cuts = max_cuts
        self.max_candidates = max_candidates
        self.monotone = monotone
        self.signs = signs
        self.forced = forced
        self.forbidden = forbidden
        self.exclusive = exclusive
        self.group_limits = group_limits
        self.max_columns = max_columns
        self.max_per_column = max_per_column
        self.max_multiplier = max_multiplier
        self.prior_rows = prior_rows
        self.item_price = item_price
        self.risk = risk
        self.held_out = held_out
        self.pool = pool
        self.time_limit = time_limit
        self.gap = gap
        self.n_jobs = n_jobs
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> OptimalScorecardClassifier:
        """Offer items, search the best card, prove how good it is, and give its totals a risk."""
        rows = self._read_training(X, y, sample_weight)
        if len(self.classes_) != 2:
            raise ValueError(
                "Only binary classification is supported. OptimalScorecardClassifier adds points "
                f"for one class against the other, and y has {len(self.classes_)} classes; group "
                "them, or use ScorecardClassifier."
            )
        with one_blas_thread():
            self._fit(rows)
        return self

    def _fit(self, rows: Training) -> None:
        search, seen = self._split(rows)
        table, second = rows.table[search], rows.y[search] == 1
        weight = rows.weight[search]
        self._offered = self._offer(rows, table, second, weight)
        read = self._read_items(table)
        items, pos, neg = patterns(read, second, weight)
        prior = float(self.prior_rows) / weight.sum()
        price = float(self.item_price) / (weight.sum() + float(self.prior_rows))
        problem, start = self._problem(
            items, *with_prior(pos, neg, prior), price if self.costs is None else 0.0
        )
        costs = None
        if self.costs is not None:
            costs = CardCosts.of(pos, neg, self._cost_matrix())
        limit = None if self.time_limit is None else float(self.time_limit)
        solved = solve_card(problem, start, time_limit=limit, gap=float(self.gap), costs=costs)
        solved.warn_if_short(
            type(self).__name__, "raise time_limit or gap, or offer fewer items (max_candidates)"
        )
        best: Incumbent = solved.point
        self.interrupted_ = solved.why_stopped == "stalled"
        near = [Near(best.points, best.loss)]
        if costs is None and self.pool > 0 and not self.interrupted_:
            near = near_cards(problem, best, float(self.pool), limit)
        self._publish(solved, near, rows.table[seen], rows.y[seen] == 1, rows.weight[seen])
        self.cost_threshold_ = None if costs is None else costs.of_card(problem, best.points)[1]
        self.n_patterns_ = items.shape[1]
        self.choose(0)

    def _split(self, rows: Training) -> tuple[Ints, Ints]:
        """Rows for the search and rows for the risk of totals."""
        everything = np.arange(rows.n_rows)
        if self.risk == "fit":
            self.calibration_ = "multiplier and offset of the search, on the training rows"
            return everything, everything
        seed = seed_of(self.random_state)
        search, kept = held_out_rows(keys_of(rows, seed), rows.y, float(self.held_out))
        if len(np.unique(rows.y[kept])) < 2 or len(np.unique(rows.y[search])) < 2:
            raise ValueError(
                "risk needs held-out rows of both classes; give more rows, a larger "
                "held_out, or risk='fit'."
            )
        self.calibration_ = f"{self.risk}, on {len(kept)} rows that the search did not see"
        return search, kept

    def _offer(
        self, rows: Training, table: Table, second: Any, weight: Floats
    ) -> list[ColumnItems]:
        """Items of every column, the columns in an order that their places do not change."""
        partitions: dict[str, Any] = {}
        if self.cutting != "quantile":
            encoder = ModlEncoder(n_jobs=self.n_jobs)
            encoder.fit(table, second.astype(np.int64), weight)
            partitions = encoder.partitions_
        most = int(self.max_cuts) if self.cutting != "modl" else 0
        monotone = set(self.monotone or {})
        columns = []
        for j in np.argsort(rows.column_keys, kind="stable").tolist():
            name = table.names[j]
            bins = self.parts == "bins" and name not in monotone
            own = most or (int(self.max_cuts) if table.kinds[j] == "categorical" else 0)
            found = items_of(table, weight, partitions.get(name), j, own, bins)
            if len(found.texts):
                columns.append(found)
        return self._screened(columns, table, second, weight)

    def _screened(
        self, columns: list[ColumnItems], table: Table, second: Any, weight: Floats
    ) -> list[ColumnItems]:
        """The items that lower the loss most by themselves, and those that a rule forces."""
        if sum(len(c.texts) for c in columns) <= self.max_candidates:
            return columns
        forced = set(self.forced or ())
        worth: list[tuple[float, int, int]] = []
        total, share = weight.sum(), (weight * second).sum() / weight.sum()
        for c, column in enumerate(columns):
            held = column.read(table).astype(np.float64)
            inside, both = held @ weight / total, held @ (weight * second) / total
            gain = _entropy(share) - inside * _entropy(both / inside)
            gain -= (1 - inside) * _entropy((share - both) / (1 - inside))
            for i, own in enumerate(gain.tolist()):
                must = column.texts[i] in forced or column.column in forced
                worth.append((-np.inf if must else -own, c, i))
        kept: dict[int, list[int]] = {}
        for _, c, i in sorted(worth)[: int(self.max_candidates)]:
            kept.setdefault(c, []).append(i)
        return [columns[c].kept(sorted(kept[c])) for c in sorted(kept)]

    def _read_items(self, table: Table) -> Any:
        if not self._offered:
            return np.empty((0, table.n_rows), dtype=np.uint8)
        return np.concatenate([column.read(table) for column in self._offered])

    def _problem(
        self, items: Any, pos: Floats, neg: Floats, price: float
    ) -> tuple[CardProblem, Ints]:
        low, high = self._point_range()
        p = len(items)
        owner = np.repeat(np.arange(len(self._offered)), [len(c.texts) for c in self._offered])
        problem = CardProblem(
            items, pos, neg, np.full(p, low), np.full(p, high), int(self.max_items),
            float(self.max_multiplier), owner, price=price,
        )  # fmt: skip
        names = Names(self._offered, self.schema_.names)
        rules = read_rules(names, **{name: getattr(self, name) for name in _RULES})
        return limited(problem, rules, self.max_columns)

    def _cost_matrix(self) -> Floats:
        matrix = cost_matrix(self.costs, self.classes_)
        if not 0.0 < decision_threshold(matrix) < 1.0:
            raise ValueError("costs must make both errors cost more than the right decisions.")
        return matrix

    def _point_range(self) -> tuple[int, int]:
        given = np.asarray(self.points)
        whole = given.shape == (2,) and given.dtype.kind in "iu"
        if not whole or not given[0] <= 0 <= given[1] or given[0] == given[1]:
            raise ValueError(
                f"points must be two whole numbers, the least <= 0 and the largest >= 0, got "
                f"{self.points!r}."
            )
        if max(abs(int(v)) for v in given) > 1000:
            raise ValueError(f"points must lie within 1000 of zero, got {self.points!r}.")
        return int(given[0]), int(given[1])

    def _publish(
        self, solved: Solution, near: list[Near], table: Table, second: Any, weight: Floats
    ) -> None:
        self.lower_bound_ = solved.value - solved.gap
        self.n_iter_ = max(1, solved.n_iter)
        self.n_offered_ = sum(len(c.texts) for c in self._offered)
        read = self._read_items(table)
        self._points = [card.points for card in near]
        self.pool_ = [self._card(card, read, second, weight) for card in near]
        best = solved.point
        texts = [text for c in self._offered for text in c.texts]
        self.substitutes_: dict[str, list[tuple[str, float]]] = {
            texts[j]: [] for j in np.flatnonzero(best.points)
        }
        for card in near:
            if card.out >= 0 and card.into >= 0:
                self.substitutes_[texts[card.out]].append((texts[card.into], card.loss))

    def _card(self, near: Near, read: Any, second: Any, weight: Floats) -> Card:
        made, at = [], 0
        for column in self._offered:
            for text in column.texts:
                if near.points[at]:
                    made.append(CardItem(text, column.column, int(near.points[at])))
                at += 1
        made.sort(key=lambda item: (-item.points, item.text))
        low, high = self._span(near.points)
        on = np.flatnonzero(near.points)
        totals = near.points[on] @ read[on].astype(np.int64)
        seen = Seen.of(np.asarray(totals), second, weight, low, high)
        gap = (near.loss - self.lower_bound_) / near.loss if near.loss else 0.0
        return Card(tuple(made), near.loss, max(0.0, gap), seen)

    def _span(self, points: Ints) -> tuple[int, int]:
        """Least and largest total that any row can have."""
        ends = np.zeros((len(self._offered), 2), dtype=np.int64)
        at = 0
        for c, column in enumerate(self._offered):
            by_slot = points[at : at + len(column.texts)] @ column.holds
            ends[c] = by_slot.min(), by_slot.max()
            at += len(column.texts)
        low, high = ends.sum(axis=0) if len(ends) else (0, 0)
        return int(low), int(high)

    def choose(self, card: Card | int) -> OptimalScorecardClassifier:
        """Take one of ``pool_`` (itself or its place) as the model; totals get their risk anew."""
        place = self._place_of(card) if isinstance(card, Card) else card
        if not 0 <= int(place) < len(self.pool_):
            raise ValueError(f"card must be one of the {len(self.pool_)} cards of pool_.")
        chosen, points = self.pool_[int(place)], self._points[int(place)]
        method = "logistic" if self.risk == "fit" else str(self.risk)
        prior = float(self.prior_rows) if self.risk == "fit" else 0.0
        odds = log_odds_table(chosen.seen, method, float(self.max_multiplier), prior)
        first = chosen.seen.first
        if self.cost_threshold_ is not None:
            even = decision_threshold(self._cost_matrix())
            odds = held_to_threshold(
                odds, first, self.cost_threshold_, float(np.log(even / (1 - even)))
            )
        self.card_, self.objective_, self.optimality_gap_ = chosen, chosen.objective, chosen.gap
        self.duality_gap_ = max(0.0, chosen.objective - self.lower_bound_)
        self.risk_: list[RiskRow] = risk_rows(chosen.seen, odds)
        self.multiplier_ = float(np.diff(odds).max(initial=0.0))
        self.offset_ = float(odds[0] - self.multiplier_ * first)
        self.form_ = self._form(points, odds, first)
        self.feature_importances_ = self._shares(points)
        return self

    def _place_of(self, card: Card) -> int:
        found = [i for i, own in enumerate(self.pool_) if own is card]
        return found[0] if found else -1

    def _form(self, points: Ints, odds: Floats, first: int) -> AdditiveScore:
        """Whole points; the base makes the score of the first total with even odds or more a 1."""
        above = np.flatnonzero(odds > 0)
        base = -(first + (int(above[0]) if len(above) else len(odds))) + 1
        terms, at = [], 0
        for column in self._offered:
            own = points[at : at + len(column.texts)].astype(np.float64)
            at += len(column.texts)
            if own.any():
                terms.append(column.term(own))
        order = {name: j for j, name in enumerate(self.schema_.names)}
        terms.sort(key=lambda term: order[term.columns[0]])
        table = tuple((float(first + base + i), float(v)) for i, v in enumerate(odds))
        labels = tuple(plain_label(c) for c in self.classes_)
        return AdditiveScore(labels, np.array([float(base)]), tuple(terms), "points", 0.0, table)

    def _shares(self, points: Ints) -> Floats:
        share, at = np.zeros(self.n_features_in_), 0
        for column in self._offered:
            own = points[at : at + len(column.texts)] @ column.holds
            at += len(column.texts)
            mean = float(column.share @ own)
            share[self.schema_.names.index(column.column)] += column.share @ np.abs(own - mean)
        return share / share.sum() if share.any() else share


def _entropy(p: Any) -> Any:
    p = np.clip(p, 1e-15, 1 - 1e-15)
    return -p * np.log(p) - (1 - p) * np.log1p(-p)
