"""Penalty, zone width and threshold chosen by cross-validated cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from joblib import Parallel, delayed  # type: ignore[import-untyped]
from scipy.special import expit

from laconic._typing import Floats, Ints
from laconic.core.contract import Accepts, Interval, StrOptions, Training, fit_context
from laconic.core.decisions import cost_matrix, decision_threshold
from laconic.core.folds import folds_of
from laconic.core.losses import TruncatedLogistic, log_odds
from laconic.data.row_keys import seed_of
from laconic.linear.estimator import GrayZoneLogisticRegression, GrayZoneScores, pair_loss
from laconic.linear.fit import Task, fit_binary, stacked
from laconic.linear.tuning import HALF_WIDTHS, REACH, THRESHOLDS

_SHOWN = (
    "coef_", "intercept_", "objective_", "duality_gap_", "n_iter_", "partition_", "support_",
    "dual_coef_",
)  # fmt: skip


@dataclass(frozen=True)
class _Setting:
    """One cell of the grid, and what the folds said of it."""

    zone: tuple[float, float]
    C: float
    threshold: float
    mean_cost: float
    standard_error: float
    support_share: float


class GrayZoneLogisticRegressionCV(GrayZoneScores):
    """Gray-zone logistic regression with C, zone and threshold chosen by expected cost.

    Every zone is fitted along a warm-started path of C on each fold, with C scaled by the fold's
    share of the rows; held-out rows are scored by their cost at a grid of thresholds inside the
    zone, and the best (zone, C, threshold) is refitted on all rows. Moving the threshold is the
    bias correction of Hérault and Grandvalet (2008, section 4.2). Two classes.

    Parameters
    ----------
    zones : "auto" or list of (p_min, p_max), default="auto"
        "auto": zones centred, in log-odds, at the threshold of the costs, of several widths, the
        full zone among them.
    Cs : array-like, default=(0.001, 0.01, 0.1, 1.0, 10.0)
    costs : mapping or array-like, default=None
        ``{"fp": 1, "fn": 10}`` or a 2 x 2 matrix (rows = true class, columns = decision); by
        default every error costs 1.
    positive : class, default=None
        The class that "fp" and "fn" are about; needed for labels other than 0/1, -1/+1,
        False/True and no/yes.
    cv : int, splitter or list of (train, test), default=5
    choose_threshold : bool or "auto", default="auto"
        Whether the threshold is chosen with the rest, or kept where the costs put it (it must lie
        in every zone then). "auto" chooses when ``costs`` are given.
    selection : {"best", "1se"}, default="best"
        The setting of least cost, or among those within one standard error of it the one with the
        fewest support rows.
    fit_intercept, tol, max_iter, proba
        As in :class:`GrayZoneLogisticRegression`; costs take the place of ``class_weight``.
    n_jobs : int or None, default=None
        Folds fitted at the same time; the result does not depend on it.
    random_state : int, RandomState or None, default=None
        For the folds.

    Attributes
    ----------
    zone_, C_, threshold_ : the setting chosen
    cv_results_ : dict of ndarray
        ``p_min``, ``p_max``, ``C``, ``threshold``, ``mean_cost``, ``standard_error`` and
        ``support_share`` of every setting.
    best_index_ : int
    best_estimator_ : GrayZoneLogisticRegression
        Fitted on all rows; its attributes ``coef_``, ``intercept_``, ``objective_``,
        ``duality_gap_``, ``n_iter_``, ``partition_``, ``support_``, ``dual_coef_`` are shown here.
    classes_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> import numpy as np
    >>> from laconic import GrayZoneLogisticRegressionCV
    >>> draw = np.random.default_rng(0)
    >>> X = draw.normal(size=(1500, 3))
    >>> y = draw.random(1500) < 1 / (1 + np.exp(2 - 2 * X[:, 0] ** 3))
    >>> model = GrayZoneLogisticRegressionCV(costs={"fp": 1, "fn": 5}, selection="1se").fit(X, y)
    >>> bool(model.zone_[0] <= model.threshold_ <= model.zone_[1])
    True
    """

    _accepts = Accepts(categorical=False, missing=False, sparse=True, several_classes=False)

    _parameter_constraints: dict[str, list[Any]] = {
        "zones": [StrOptions({"auto"}), "array-like"],
        "Cs": ["array-like"],
        "costs": ["array-like", dict, None],
        "positive": "no_validation",  # type: ignore[dict-item]
        "cv": ["cv_object"],
        "choose_threshold": ["boolean", StrOptions({"auto"})],
        "selection": [StrOptions({"best", "1se"})],
        "fit_intercept": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "proba": [StrOptions({"sigmoid", "clip"})],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    multi_class = "auto"
    solver = "auto"

    def __init__(
        self,
        zones: Any = "auto",
        Cs: Any = (0.001, 0.01, 0.1, 1.0, 10.0),
        *,
        costs: Any = None,
        positive: Any = None,
        cv: Any = 5,
        choose_threshold: bool | str = "auto",
        selection: str = "best",
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 100,
        proba: str = "sigmoid",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.zones = zones
        self.Cs = Cs
        self.costs = costs
        self.positive = positive
        self.cv = cv
        self.choose_threshold = choose_threshold
        self.selection = selection
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.proba = proba
        self.n_jobs = n_jobs
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> GrayZoneLogisticRegressionCV:
        """Choose and fit."""
        n_given = len(y) if hasattr(y, "__len__") else 0
        rows = self._read_training(X, y, sample_weight)
        if len(self.classes_) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass: "
                "use GrayZoneLogisticRegression with multi_class='multinomial' or 'ovr'."
            )
        costs = cost_matrix(self.costs, self.classes_, positive=self.positive)
        zones = self._zones(decision_threshold(costs))
        path = self._path()
        settings = self._compare(rows, n_given, costs, zones, path)
        self._choose(settings)
        self._refit(X, y, sample_weight)
        return self

    def _zones(self, threshold: float) -> list[tuple[float, float]]:
        if isinstance(self.zones, str):
            centre = log_odds(min(max(threshold, 1e-6), 1 - 1e-6))
            zones = [
                (float(expit(centre - half)), float(expit(centre + half))) for half in HALF_WIDTHS
            ]
        else:
            losses = [pair_loss(zone) for zone in self.zones]
            zones = [(loss.p_min, loss.p_max) for loss in losses]
        if not zones:
            raise ValueError("zones is empty; give at least one pair (p_min, p_max).")
        for low, high in zones:
            if not self._moves_threshold() and not low <= threshold <= high:
                raise ValueError(
                    f"The costs put the threshold at {threshold:.4g}, outside the zone "
                    f"({low:.4g}, {high:.4g}); move the zone or set choose_threshold=True."
                )
        return zones

    def _moves_threshold(self) -> bool:
        if self.choose_threshold == "auto":
            return self.costs is not None
        return bool(self.choose_threshold)

    def _path(self) -> Floats:
        Cs = np.sort(np.asarray(self.Cs, dtype=np.float64).ravel())
        if len(Cs) == 0 or not (Cs > 0).all():
            raise ValueError(f"Cs must hold positive numbers, got {self.Cs!r}.")
        return Cs

    def _compare(
        self, rows: Training, n_given: int, costs: Floats, zones: list[tuple[float, float]],
        Cs: Floats,
    ) -> list[_Setting]:  # fmt: skip
        task = self._single(1.0).task(rows)
        folds = [
            fold
            for fold in folds_of(self.cv, rows, n_given, seed_of(self.random_state))
            if len(np.unique(rows.y[fold[0]])) == 2 and len(fold[1])
        ]
        if not folds:
            raise ValueError(
                "No fold has both classes in its training rows; give more rows or fewer folds."
            )
        grids = [self._grid(zone, decision_threshold(costs)) for zone in zones]
        done = Parallel(n_jobs=self.n_jobs)(
            delayed(_fold)(task, rows.weight, costs, zones, grids, Cs, train, test)
            for train, test in folds
        )
        share = np.array([rows.weight[test].sum() for _, test in folds])
        return list(_settings(done, share / share.sum(), zones, grids, Cs))

    def _grid(self, zone: tuple[float, float], threshold: float) -> Floats:
        """Thresholds tried: even in log-odds, inside the zone, around the one of the costs."""
        if not self._moves_threshold():
            return np.array([threshold])
        centre = log_odds(min(max(threshold, 1e-6), 1 - 1e-6))
        low, high = log_odds(zone[0]), log_odds(zone[1])
        centre = min(max(centre, low), high)
        low, high = max(low, centre - REACH), min(high, centre + REACH)
        half = THRESHOLDS // 2
        below = np.linspace(low, centre, half, endpoint=False)
        grid = expit(np.r_[below, np.linspace(centre, high, half + 1)])
        return np.unique(np.clip(grid, *zone))

    def _choose(self, settings: list[_Setting]) -> None:
        cost = np.array([setting.mean_cost for setting in settings])
        best = int(cost.argmin())
        if self.selection == "1se":
            bound = cost[best] + settings[best].standard_error
            near = [i for i in range(len(settings)) if cost[i] <= bound]
            best = min(near, key=lambda i: (settings[i].support_share, cost[i], i))
        self.best_index_ = best
        self.cv_results_ = {
            "p_min": np.array([setting.zone[0] for setting in settings]),
            "p_max": np.array([setting.zone[1] for setting in settings]),
            **{
                name: np.array([getattr(setting, name) for setting in settings])
                for name in ("C", "threshold", "mean_cost", "standard_error", "support_share")
            },
        }
        self.zone_, self.C_ = settings[best].zone, settings[best].C
        self.threshold_ = settings[best].threshold

    def _single(self, C: float) -> GrayZoneLogisticRegression:
        return GrayZoneLogisticRegression(
            C=C, fit_intercept=self.fit_intercept, tol=self.tol,
            max_iter=self.max_iter, proba=self.proba,
        )  # fmt: skip

    def _refit(self, X: Any, y: Any, sample_weight: Any) -> None:
        model = self._single(self.C_).set_params(zone=self.zone_, threshold=self.threshold_)
        self.best_estimator_ = model.fit(X, y, sample_weight)
        for name in _SHOWN:
            setattr(self, name, getattr(model, name))

    def _zone(self) -> Any:
        return self.zone_


def _fold(
    task: Task, weight: Floats, costs: Floats, zones: list[tuple[float, float]],
    grids: list[Floats], Cs: Floats, train: Ints, test: Ints,
) -> list[tuple[Floats, float]]:  # fmt: skip
    """For each zone and C: mean held-out cost at each threshold, and the share of support rows."""
    inner = replace(task, X=task.X[train], y=task.y[train], weight=task.weight[train])
    scale = float(task.weight.sum() / inner.weight.sum())
    results = []
    for zone, grid in zip(zones, grids, strict=True):
        start = None
        for C in Cs:
            fit = fit_binary(replace(inner, C=float(C) * scale), TruncatedLogistic(*zone), start)
            start = stacked(fit.coef, fit.intercept)[0]
            scores = np.asarray(task.X[test] @ fit.coef[0]) + fit.intercept[0]
            cost = _costs_at(scores, task.y[test], weight[test], costs, grid)
            assert fit.partition is not None
            results.append((cost, float(np.average(fit.partition > 0, weights=weight[train]))))
    return results


def _costs_at(scores: Floats, y: Ints, weight: Floats, costs: Floats, grid: Floats) -> Floats:
    """Mean cost of deciding for class 1 above each threshold."""
    order = np.argsort(scores, kind="stable")
    paid = costs[y[order]] * weight[order, None]
    # below[k]: cost of deciding class 0 on the k lowest rows, class 1 on the others
    below = np.r_[0.0, np.cumsum(paid[:, 0])] + paid[:, 1].sum() - np.r_[0, np.cumsum(paid[:, 1])]
    cuts = np.array([log_odds(float(threshold)) for threshold in grid])
    return np.asarray(below[np.searchsorted(scores[order], cuts, side="right")] / weight.sum())


def _settings(
    done: list[list[tuple[Floats, float]]], share: Floats, zones: list[tuple[float, float]],
    grids: list[Floats], Cs: Floats,
) -> Iterator[_Setting]:  # fmt: skip
    place = 0
    for zone, grid in zip(zones, grids, strict=True):
        for C in Cs:
            by_fold = np.stack([fold[place][0] for fold in done])
            mean = share @ by_fold
            # among equal costs, the middle of the first run of them
            least = np.flatnonzero(mean <= mean.min() + 1e-12)
            run = least[: int(np.argmax(np.diff(np.r_[least, -1]) != 1)) + 1]
            at = int(run[len(run) // 2])
            spread = by_fold[:, at].std(ddof=1) if len(done) > 1 else 0.0
            support = float(share @ [fold[place][1] for fold in done])
            error = float(spread / np.sqrt(len(done)))
            yield _Setting(zone, float(C), float(grid[at]), float(mean[at]), error, support)
            place += 1
