"""What decides new rows: a randomised rule over profiles, as the model file keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from laconic._typing import Floats, Ints
from laconic.data.row_keys import place_keys, row_keys, uniforms
from laconic.data.tables.columns import Schema, Table
from laconic.minimax.binning import Clusters, Leaves
from laconic.minimax.criterion import MixtureRule, NaiveBackoff
from laconic.minimax.profiles import BinGrid, Coder, ProfileIndex, nearest_profiles

Unseen = Literal["smooth", "nearest", "error"]
_CODERS: dict[str, Any] = {coder.kind: coder for coder in (BinGrid, Clusters, Leaves)}


@dataclass(frozen=True)
class ProfileRule:
    """Row to codes to profile to decision probabilities.

    Attributes
    ----------
    coder : Coder
        From a row to small integers.
    index : ProfileIndex
        From these to the number of the profile, -1 for one that no training row had.
    rule : MixtureRule
        What is decided in each profile.
    costs : array (K, K)
        ``costs[k, l]`` of deciding l for class k.
    unseen : {"smooth", "nearest", "error"}
        A new profile is decided by ``backoff``, as the nearest profile, or refused.
    backoff : NaiveBackoff or None
    """

    coder: Coder
    index: ProfileIndex
    rule: MixtureRule
    costs: Floats
    unseen: Unseen
    backoff: NaiveBackoff | None

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
            out[new] = self.rule.decide_law(self.backoff.unseen(codes[new]), self.costs)
        else:
            near = nearest_profiles(codes[new], self.index, self.coder.ordered)
            out[new] = self.rule.decide(near)
        return out


@dataclass(frozen=True)
class ProfileForm:
    """A fitted minimax rule with its classes and the key of its draws.

    ``proba`` are the probabilities with which the rule decides each class, and ``decisions`` are
    drawn from them by a hash of the row's values: the same row always gets the same decision.
    """

    classes: tuple[Any, ...]
    rule: ProfileRule
    seed: int
    decides = True  # its probabilities are those of decisions, not of classes

    def proba(self, table: Table) -> Floats:
        """(rows, classes)."""
        return self.rule.decide(table)

    def decisions(self, table: Table) -> Ints:
        """Place of the class that is decided for each row."""
        steps = np.cumsum(self.rule.decide(table), axis=1)[:, :-1]
        draw = uniforms(row_keys(table, self.seed, place_keys(len(table.names))))
        return np.asarray((steps <= draw[:, None]).sum(axis=1))

    def check_columns(self, schema: Schema) -> None:
        """Refuse a rule that does not read these columns."""
        if not self.rule.coder.reads([None if t is None else len(t) for t in schema.categories]):
            raise ValueError("the profiles do not match the columns")

    def to_dict(self) -> dict[str, Any]:
        """Numbers, texts, lists: ``json.dumps`` keeps every bit."""
        rule = self.rule
        return {
            "form": "profile-rule",
            "classes": list(self.classes),
            "costs": rule.costs.tolist(),
            "coder": {"kind": rule.coder.kind, **rule.coder.to_dict()},
            "profiles": rule.index.codes().tolist(),
            "rule": rule.rule.to_dict(),
            "unseen": rule.unseen,
            "backoff": None if rule.backoff is None else rule.backoff.to_dict(),
            "seed": self.seed,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ProfileForm:
        described = dict(data["coder"])
        coder = _CODERS[described.pop("kind")].from_dict(described)
        codes = np.array(data["profiles"], dtype=np.int64).reshape(-1, len(coder.radices))
        index = ProfileIndex.of(codes, coder.radices)
        mixture = MixtureRule.from_dict(data["rule"])
        backoff = data["backoff"]
        backoff = None if backoff is None else NaiveBackoff.from_dict(backoff)
        costs = np.array(data["costs"], dtype=np.float64)
        rule = ProfileRule(coder, index, mixture, costs, data["unseen"], backoff)
        _check(rule, len(data["classes"]))
        return cls(tuple(data["classes"]), rule, int(data["seed"]))


def _check(form: ProfileRule, n_classes: int) -> None:
    """Refuse parts that do not fit each other."""
    rule, backoff = form.rule, form.backoff
    m, n_stored = len(rule.weights), form.index.n_profiles
    if form.costs.shape != (n_classes, n_classes) or not (form.costs >= 0).all():
        raise ValueError("costs must be a square of numbers that are not negative")
    if rule.priors.shape != (m, n_classes) or rule.risks.shape != (m, n_classes):
        raise ValueError("the mixture needs one prior and one risk by component and class")
    if m < 1 or (rule.weights < 0).any() or abs(rule.weights.sum() - 1.0) > 1e-9:
        raise ValueError("the weights of the mixture must be shares")
    # smoothed laws lump all unseen profiles into one more
    if rule.labels.shape != (m, n_stored + (backoff is not None)):
        raise ValueError("the mixture needs one decision by component and profile")
    if rule.labels.min() < 0 or rule.labels.max() >= n_classes:
        raise ValueError("a decision is no class")
    if form.unseen not in ("smooth", "nearest", "error"):
        raise ValueError(f"unknown policy {form.unseen!r}")
    if (form.unseen == "smooth") != (backoff is not None):
        raise ValueError("smoothing needs its shares, and only smoothing does")
    if backoff is not None:
        shapes = [share.shape for share in backoff.log_share]
        if shapes != [(radix, n_classes) for radix in form.coder.radices]:
            raise ValueError("the shares do not match the profiles")
        if backoff.class_weight.shape != (n_classes,) or not (backoff.class_weight > 0).all():
            raise ValueError("smoothing needs a weight for each class")
        if not backoff.alpha > 0:
            raise ValueError("smoothing must be a number above zero")
