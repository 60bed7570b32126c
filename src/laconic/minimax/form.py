"""What decides new rows: a randomised rule over profiles, and a policy for profiles never seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from laconic._typing import Floats
from laconic.data.tables.columns import Table
from laconic.minimax.criterion import MixtureRule, NaiveBackoff
from laconic.minimax.profiles import Coder, ProfileIndex, nearest_profiles

Unseen = Literal["smooth", "nearest", "error"]


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
