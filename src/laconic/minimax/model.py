"""From counted profiles to their class laws and the minimax rule, and its held-out risks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from laconic._typing import Floats, Ints
from laconic.core.losses import Solution
from laconic.data.source import ArraySource
from laconic.data.tables.columns import Table
from laconic.minimax.binning import BinningName, ProfilesName, learn_coder
from laconic.minimax.criterion import BayesRisk, DenseLaws, Laws, NaiveBackoff, PriorBox, SparseLaws
from laconic.minimax.form import ProfileRule
from laconic.minimax.profiles import Coder, ProfileCounts, ProfileIndex, count_profiles
from laconic.minimax.solver import BayesPass, SolverName, solve_minimax


@dataclass(frozen=True)
class MinimaxSettings:
    """What a fit needs besides the rows."""

    costs: Floats
    box: PriorBox
    profiles: ProfilesName
    binning: BinningName
    n_bins: int
    n_profiles: int | None
    smoothing: float | Literal["nearest", "error"]
    solver: SolverName
    randomized: bool
    tol: float
    max_iter: int
    seed: int

    @property
    def for_folds(self) -> MinimaxSettings:
        """Those of a fit whose held-out rows are decided.

        Such a row may well have a new profile: its nearest one says what it would cost.
        """
        return replace(self, smoothing="nearest") if self.smoothing == "error" else self


@dataclass(frozen=True)
class ProfileModel:
    """Class laws of profiles and the rule over them.

    ``laws`` ends with the lumped mass of all other profiles when the form has a back-off.
    """

    form: ProfileRule
    laws: Laws
    class_weight: Floats

    @property
    def class_prior(self) -> Floats:
        return np.asarray(self.class_weight / self.class_weight.sum())

    @property
    def class_risks(self) -> Floats:
        return self.form.rule.class_risks

    def bayes_risk(self, prior: Floats) -> float:
        """V(pi) over the stored laws."""
        return BayesRisk(self.laws, self.form.costs).value(prior)

    def deterministic(self, prior: Floats) -> ProfileModel:
        """The same profiles, decided by the paper's Bayes rule at a prior, equation (4)."""
        rule = BayesPass(self.laws, self.form.costs).rule(prior[None], np.ones(1))
        return replace(self, form=replace(self.form, rule=rule))


def fit_profiles(
    table: Table, y: Ints, weight: Floats, settings: MinimaxSettings
) -> tuple[ProfileModel, Solution]:
    """Learn profiles, their class laws, the least favourable prior and the minimax rule."""
    coder = learn_coder(
        table,
        y,
        weight,
        profiles=settings.profiles,
        binning=settings.binning,
        n_bins=settings.n_bins,
        n_profiles=settings.n_profiles,
        seed=settings.seed,
    )
    counted = count_profiles(ArraySource(table, y, weight), coder, len(settings.costs))
    return solve_profiles(coder, *counted, settings)


def solve_profiles(
    coder: Coder, index: ProfileIndex, counts: ProfileCounts, settings: MinimaxSettings
) -> tuple[ProfileModel, Solution]:
    """The least favourable prior of counted profiles, and the rule that the settings ask for."""
    class_weight = counts.class_weight
    smoothing, backoff = settings.smoothing, None
    if isinstance(smoothing, str):
        # the solver gets counts, whose proportions are exact, and divides them itself
        held = SparseLaws(counts.start, counts.klass, counts.weight, counts.n_classes)
        solved: Laws = held
        laws: Laws = replace(held, mass=counts.weight / class_weight[counts.klass])
    else:
        backoff = NaiveBackoff.learn(index, counts, smoothing)
        solved = laws = DenseLaws(backoff.laws(index, counts))
    found = solve_minimax(
        solved,
        settings.costs,
        settings.box,
        solver=settings.solver,
        tol=settings.tol,
        max_iter=settings.max_iter,
        class_weight=None if backoff is not None else class_weight,
    )
    unseen = smoothing if isinstance(smoothing, str) else "smooth"
    form = ProfileRule(coder, index, found.details["rule"], settings.costs, unseen, backoff)
    model = ProfileModel(form, laws, class_weight)
    return model if settings.randomized else model.deterministic(found.point), found


def held_out_risks(
    table: Table,
    y: Ints,
    weight: Floats,
    settings: MinimaxSettings,
    folds: Iterable[tuple[Ints, Ints]],
) -> Floats:
    """Class risks of the rule on rows that it was not fitted on (NaN: a class never held out)."""
    total = np.zeros((2, len(settings.costs)))
    for train, test in folds:
        model, _ = fit_profiles(table[train], y[train], weight[train], settings.for_folds)
        total = total + paid_and_mass(model.form, table[test], y[test], weight[test])
    return class_means(*total)


def paid_and_mass(form: ProfileRule, table: Table, y: Ints, weight: Floats) -> Floats:
    """Cost paid by the rule on rows of each class, and their weight: shape (2, K)."""
    n_classes = len(form.costs)
    paid = (form.decide(table) * form.costs[y]).sum(axis=1)
    cost = np.bincount(y, weight * paid, minlength=n_classes)
    return np.stack([cost, np.bincount(y, weight, minlength=n_classes)])


def class_means(cost: Floats, mass: Floats) -> Floats:
    """Cost per weight of each class, NaN for a class that was never held out."""
    never = np.full(len(cost), np.nan)
    return np.asarray(np.divide(cost, mass, out=never, where=mass > 0))
