"""Weighted naive Bayes: few variables, any time, on streams."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from laconic._typing import Floats
from laconic.bayes.coded import CodedBayes, Prepared, prices
from laconic.bayes.criterion import WeightedBayes
from laconic.bayes.descent import DescentRules, MiniBatches, search_weights
from laconic.bayes.solver import best_weights, certified, thinned
from laconic.bayes.stream import BayesStream, Fresh
from laconic.core.contract import Interval, StrOptions, fit_context
from laconic.core.losses import Solution
from laconic.core.progress import Deadline
from laconic.data.row_keys import seed_of
from laconic.data.source import ArraySource

_KEPT = "the best weights found so far are kept"


class WeightedNaiveBayes(CodedBayes):
    """Naive Bayes on MODL partitions, with one weight in [0, 1] for each variable.

    The class probabilities are, equation (1) of Hue, Boulle and Lemaire (EGC 2014)::

        P_w(C_j | x) = p_j prod_k p(x_k | C_j)^w_k / sum_l p_l prod_k p(x_k | C_l)^w_k

    and the weights minimise criterion (4), which makes most of them zero::

        - sum_n ln P_w(y_n | x_n) + penalty * sum_k (ln K - 1 + C_k) w_k^power

    where C_k is the cost of describing variable k. For ``power >= 1`` the criterion is convex and
    the minimum is certified; for ``power < 1`` a variable-neighbourhood search follows the convex
    start, and the convex criterion below bounds what is left.

    Parameters
    ----------
    penalty : float, default=0.1
        Weight of the description of the variables.
    power : float, default=1.0
        Exponent of the weights in the penalty; smaller than 1 selects fewer variables.
    feature_costs : dict or array of shape (n_features,), default=None
        What using a column costs the user, in nats, added to C_k; a constructed variable pays for
        all its columns.
    solver : {"auto", "dgml", "dgml-ms", "dgml-vns"}, default="auto"
        "auto" is exact for power >= 1. The others are the paper's mini-batch gradient, alone, with
        random starts, and with variable neighbourhoods.
    batch_size : int, default=1000
        Rows of a mini-batch of the paper's algorithms, L.
    batch_growth : float, default=1.0
        How much larger the batches of each new start are, up to all rows. 1 is the paper's; 10
        comes nearer to the minimum at the same number of iterations (docs, naive Bayes).
    improvement : float, default=1e-4
        The paper's epsilon: the share of the criterion by which a step must lower the best value
        so far; five successive steps that do not end a descent.
    history : int, default=None
        Rows on which the paper's algorithms measure the criterion, all of them if None. In a
        stream, the most recent rows that weights are optimised on, 50,000 if None.
    level : int, default=5
        The search makes log(K N) 2^level iterations.
    time_budget : float, default=None
        Seconds allowed for the weights. A longer budget is never worse for the same seed.
    max_iter : int, default=None
        Iterations allowed instead of the defaults (100 Newton steps, or by ``level``).
    pairs, trees : int, default=0
        Two-column grids and trees that the encoder adds as variables (``fit`` only).
    encoder : ModlEncoder, default=None
        The partitions to use, with the default parameters if None.
    n_jobs : int, default=None
        Threads of the encoder. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seeds the order of the mini-batches, the restarts, pairs and trees. Draws are made from
        the rows' values, so that None, a fixed seed, gives the same model for the same table.
    min_gain : float, default=0.05
        Nats of criterion (4) that a variable must save to stay (``solver="auto"``): those that
        save less are left out one by one, the others optimised again each time. 0 keeps the
        minimum itself, with about a tenth more variables.

    Attributes
    ----------
    weights_ : ndarray of shape (n_variables,)
        In the order of ``variable_names_``.
    variable_names_ : ndarray of shape (n_variables,)
        Variables of the encoder: columns, then pairs and trees.
    selected_features_ : ndarray
        Names of the variables with a weight.
    criterion_ : float
        Criterion (4) at the weights, in nats.
    duality_gap_ : float
        Bound on ``criterion_`` minus its minimum.
    compression_ : float
        1 - log loss / log loss of the prior alone, on the training rows (in a stream, on the
        history).
    feature_importances_ : ndarray of shape (n_features,)
        Mean absolute Shapley values of the centred class scores (those of :meth:`explain`), scaled
        to sum to one; constructed variables are shared out among their columns.
        ``variable_importances_`` has one for each variable.
    path_ : dict of ndarray
        ``values`` and ``points`` (in the order of ``variable_names_``) of every evaluation,
        ``starts`` where descents begin.
    encoder_ : ModlEncoder
        The partitions (``encoder_.partitions_``).
    n_iter_ : int
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Examples
    --------
    >>> from laconic import WeightedNaiveBayes
    >>> from laconic.data.demo import make_payments
    >>> payments, label = make_payments(4000)
    >>> model = WeightedNaiveBayes().fit(payments, label)
    >>> len(model.selected_features_) < model.n_features_in_
    True
    >>> why = model.explain(payments[:1])
    >>> bool(abs(why.score - model.decision_function(payments[:1])).max() < 1e-9)
    True
    """

    _stream: BayesStream | None
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "penalty": [Interval(Real, 0, None, closed="left")],
        "power": [Interval(Real, 0, None, closed="neither")],
        "feature_costs": [dict, "array-like", None],
        "solver": [StrOptions({"auto", "dgml", "dgml-ms", "dgml-vns"})],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "batch_growth": [Interval(Real, 1, None, closed="left")],
        "improvement": [Interval(Real, 0, None, closed="left")],
        "history": [Interval(Integral, 1, None, closed="left"), None],
        "level": [Interval(Integral, 0, 20, closed="both")],
        "time_budget": [Interval(Real, 0, None, closed="neither"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "pairs": [Interval(Integral, 0, None, closed="left")],
        "trees": [Interval(Integral, 0, None, closed="left")],
        "encoder": "no_validation",  # type: ignore[dict-item]
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "min_gain": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        penalty: float = 0.1,
        power: float = 1.0,
        *,
        feature_costs: Any = None,
        solver: str = "auto",
        batch_size: int = 1000,
        batch_growth: float = 1.0,
        improvement: float = 1e-4,
        history: int | None = None,
        level: int = 5,
        time_budget: float | None = None,
        max_iter: int | None = None,
        pairs: int = 0,
        trees: int = 0,
        encoder: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        min_gain: float = 0.05,
    ) -> None:
        self.penalty = penalty
        self.power = power
        self.feature_costs = feature_costs
        self.solver = solver
        self.batch_size = batch_size
        self.batch_growth = batch_growth
        self.improvement = improvement
        self.history = history
        self.level = level
        self.time_budget = time_budget
        self.max_iter = max_iter
        self.pairs = pairs
        self.trees = trees
        self.encoder = encoder
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.min_gain = min_gain

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> WeightedNaiveBayes:
        """Partition the columns, then optimise the weights."""
        ready = self._prepare(self._read_training(X, y, sample_weight))
        self._stream = None
        self._finish(ready, self._optimise(ready))
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> WeightedNaiveBayes:
        """Learn from a chunk of a stream; earlier rows are kept as summaries only.

        Value by class weights of every column are added to those of the past, partitions are
        found again whenever the stream has grown by half, and the weights follow on the most
        recent ``history`` rows, from where they were; a weight at zero may come back. A chunk that
        is refused (missing column, new class) leaves the model as it was; a new category joins
        the default group until the partitions are next refreshed. After ``fit`` the stream
        continues from the class weights of the fitted parts.

        Parameters
        ----------
        X : array, frame or scan of shape (n_rows, n_features)
            A scan is learned from block after block.
        y : array of shape (n_rows,)
        classes : array, required at the first call unless fitted
            All classes that the stream may bring.
        sample_weight : array of shape (n_rows,), optional

        Returns
        -------
        self
        """
        stream = BayesStream.following(self, X, y, classes, sample_weight)
        ready = stream.prepared()
        found = self._optimise(ready, stream.start(ready), stream.fresh)
        stream.publish(self)
        self._stream = stream.with_weights(ready, found.point)
        self._finish(ready, found)
        return self

    def _optimise(
        self, ready: Prepared, start: Floats | None = None, fresh: Fresh | None = None
    ) -> Solution:
        names = self.schema_.names if fresh is None else fresh.names
        cost = prices(ready, self.feature_costs, names)
        criterion = WeightedBayes(cost, float(self.penalty), float(self.power))
        deadline, seed = Deadline(self.time_budget), seed_of(self.random_state)
        limits: dict[str, Any] = {
            "level": self.level, "start": start, "max_iter": self.max_iter, "deadline": deadline,
            "rng": np.random.default_rng(seed),
        }  # fmt: skip
        rows = ready.rows
        if self.solver == "auto" or not rows.n_variables:
            found = best_weights(rows, criterion, total=ready.total, **limits)
            if self.min_gain:
                gain = float(self.min_gain)
                found = thinned(rows, criterion, found, min_gain=gain, deadline=deadline)
            self._warn(found, short=("budget", "max_iter", "stalled"))
            return found
        problem = self._mini_batches(ready, criterion, seed, fresh)
        rules = DescentRules(improvement=float(self.improvement))
        growth = float(self.batch_growth)
        found = search_weights(problem, self.solver, rules=rules, batch_growth=growth, **limits)  # type: ignore[arg-type]
        self._warn(found, short=("budget",))
        return certified(rows, criterion, found)

    def _mini_batches(
        self, ready: Prepared, criterion: WeightedBayes, seed: int, fresh: Fresh | None
    ) -> MiniBatches:
        """The rows shuffled by what they hold, or the newest ones of a stream as they came."""
        self._refuse_scan(isinstance(ready.coded, ArraySource), f"(solver={self.solver!r})")
        rows, n_rows = ready.rows, ready.n_rows
        depth = n_rows if self.history is None else min(int(self.history), n_rows)
        return MiniBatches(
            rows,
            rows.shuffled(seed) if fresh is None else np.arange(fresh.first, n_rows),
            int(self.batch_size),
            criterion,
            ready.total,
            past=rows if depth == n_rows or fresh is not None else None,
            depth=depth,
        )

    def _warn(self, found: Solution, short: tuple[str, ...]) -> None:
        # for power < 1 a search always ends by its number of iterations
        if found.why_stopped == "max_iter" and self.power < 1 and self.max_iter is None:
            return
        if found.why_stopped in short:
            found.warn_if_short(type(self).__name__, f"{_KEPT}; raise time_budget or max_iter")

    def _finish(self, ready: Prepared, found: Solution) -> None:
        self._store(ready, found.point)
        self.criterion_ = found.value
        self.duality_gap_ = found.gap
        self.n_iter_ = found.n_iter
        points = np.zeros((len(found.details["points"]), len(self.variable_names_)))
        points[:, ready.places] = found.details["points"]
        self.path_ = {**found.details, "points": points}
        null = ready.rows.loss(np.zeros(len(found.point)))
        self.compression_ = 1.0 - ready.rows.loss(found.point) / null

    def weights_by_penalty(
        self, X: Any, y: Any, penalties: Any, sample_weight: Any = None
    ) -> tuple[NDArray[Any], Floats]:
        """The weights at each penalty, on one set of partitions; this model is not changed.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
        y : array of shape (n_rows,)
        penalties : array of shape (n_penalties,)
        sample_weight : array of shape (n_rows,), optional

        Returns
        -------
        names : ndarray of shape (n_variables,)
        weights : ndarray of shape (n_penalties, n_variables)
        """
        values = np.asarray(penalties, dtype=np.float64)
        if values.ndim != 1 or not len(values) or not (np.isfinite(values) & (values >= 0)).all():
            raise ValueError("penalties must be a list of numbers >= 0.")
        model = clone(self)
        ready = model._prepare(model._read_training(X, y, sample_weight))
        names = np.array(list(model.encoder_.partitions_), dtype=object)
        weights = np.zeros((len(values), len(names)))
        for row, penalty in enumerate(values):
            model.penalty = float(penalty)
            weights[row, ready.places] = model._optimise(ready).point
        return names, weights
