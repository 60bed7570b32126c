"""From rows to a minimax rule over profiles, and from the rule to decisions on new rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from laconic._typing import Floats, Ints
from laconic.core.solution import Solution
from laconic.data.source import ArraySource
from laconic.data.tables.columns import Table
from laconic.minimax.binning import BinningName, ProfilesName, learn_coder
from laconic.minimax.bundle import BayesPass
from laconic.minimax.criterion import (
    BayesRisk,
    DenseLaws,
    Laws,
    MixtureRule,
    NaiveBackoff,
    SparseLaws,
)
from laconic.minimax.prior_box import PriorBox
from laconic.minimax.profiles import (
    Coder,
    ProfileCounts,
    ProfileIndex,
    count_profiles,
    nearest_profiles,
)
from laconic.minimax.solver import SolverName, solve_minimax


@dataclass(frozen=True)
class MinimaxSettings:
    """What a fit needs besides the rows."""

    loss: Floats
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


@dataclass(frozen=True)
class ProfileModel:
    """Class laws of profiles, a rule over them, and a policy for profiles never seen.

    ``laws`` ends with the lumped mass of all other profiles when ``backoff`` is there.
    """

    coder: Coder
    index: ProfileIndex
    laws: Laws
    backoff: NaiveBackoff | None
    unseen: Literal["smooth", "nearest", "error"]
    loss: Floats
    rule: MixtureRule
    class_weight: Floats

    @property
    def class_prior(self) -> Floats:
        return np.asarray(self.class_weight / self.class_weight.sum())

    def bayes_risk(self, prior: Floats) -> float:
        """V(pi) over the stored laws."""
        return BayesRisk(self.laws, self.loss).value(prior)

    def bayes_rule(self, prior: Floats) -> MixtureRule:
        """The paper's deterministic rule at a prior, equation (4)."""
        return BayesPass(self.laws, self.loss).rule(prior[None], np.ones(1))

    def decide(self, table: Table) -> Floats:
        """Decision probabilities (n, K); a row's do not depend on the other rows."""
        codes = self.coder.codes(table)
        profile = self.index.find(codes)
        new = np.flatnonzero(profile < 0)
        out = self.rule.decide(np.maximum(profile, 0))
        if not len(new):
            return out
        if self.unseen == "error":
            raise ValueError(
                f"{len(new)} rows (the first is row {new[0]}) have a profile that no training row "
                'had; use a number as smoothing, or smoothing="nearest".'
            )
        if self.backoff is not None:
            out[new] = self.rule.decide_law(self.backoff.unseen(codes[new]), self.loss)
        else:
            near = nearest_profiles(codes[new], self.index, self.coder.ordered)
            out[new] = self.rule.decide(near)
        return out


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
    counted = count_profiles(ArraySource(table, y, weight), coder, len(settings.loss))
    return solve_profiles(coder, *counted, settings)


def solve_profiles(
    coder: Coder, index: ProfileIndex, counts: ProfileCounts, settings: MinimaxSettings
) -> tuple[ProfileModel, Solution]:
    """The least favourable prior and the minimax rule of counted profiles."""
    n_classes = len(settings.loss)
    class_weight = counts.class_weight
    backoff = None
    solved: Laws
    if isinstance(settings.smoothing, str):
        solved = SparseLaws(counts.start, counts.klass, counts.weight, n_classes)
        share = counts.weight / class_weight[counts.klass]
        laws: Laws = SparseLaws(counts.start, counts.klass, share, n_classes)
    else:
        backoff = NaiveBackoff.learn(index, counts, settings.smoothing)
        solved = laws = DenseLaws(backoff.laws(index, counts))
    found = solve_minimax(
        solved,
        settings.loss,
        settings.box,
        solver=settings.solver,
        tol=settings.tol,
        max_iter=settings.max_iter,
        class_weight=None if backoff is not None else class_weight,
    )
    model = ProfileModel(
        coder=coder,
        index=index,
        laws=laws,
        backoff=backoff,
        unseen="smooth" if not isinstance(settings.smoothing, str) else settings.smoothing,
        loss=settings.loss,
        rule=found.details["rule"],
        class_weight=class_weight,
    )
    return model, found


def held_out_risks(
    table: Table,
    y: Ints,
    weight: Floats,
    settings: MinimaxSettings,
    folds: Iterable[tuple[Ints, Ints]],
) -> Floats:
    """Class risks of the rule on rows that it was not fitted on (NaN: a class never held out)."""
    n_classes = len(settings.loss)
    cost, mass = np.zeros(n_classes), np.zeros(n_classes)
    for train, test in folds:
        model, found = fit_profiles(table[train], y[train], weight[train], settings)
        if not settings.randomized:
            model = deterministic(model, found.point)
        added = paid_and_mass(model, table[test], y[test], weight[test])
        cost, mass = cost + added[0], mass + added[1]
    return class_means(cost, mass)


def paid_and_mass(model: ProfileModel, table: Table, y: Ints, weight: Floats) -> Floats:
    """Loss paid by the rule on rows of each class, and their weight: shape (2, K)."""
    n_classes = len(model.loss)
    paid = (model.decide(table) * model.loss[y]).sum(axis=1)
    cost = np.bincount(y, weight * paid, minlength=n_classes)
    return np.stack([cost, np.bincount(y, weight, minlength=n_classes)])


def class_means(cost: Floats, mass: Floats) -> Floats:
    """Loss per weight of each class, NaN for a class that was never held out."""
    never = np.full(len(cost), np.nan)
    return np.asarray(np.divide(cost, mass, out=never, where=mass > 0))


def deterministic(model: ProfileModel, prior: Floats) -> ProfileModel:
    """The same profiles, decided by the Bayes rule at a prior."""
    return replace(model, rule=model.bayes_rule(prior))
