"""From the ``voters`` parameter to voters laid out on the training rows."""

from __future__ import annotations

from typing import Any

from laconic.core.contract import Training
from laconic.votes.voters.base import PreparedVoters, VoterFamily
from laconic.votes.voters.forest import ForestVoters
from laconic.votes.voters.given import prepare_classifiers, prepare_scores
from laconic.votes.voters.kernels import KernelVoters
from laconic.votes.voters.stumps import StumpVoters

NAMED: dict[str, StumpVoters | KernelVoters | ForestVoters] = {
    "stumps": StumpVoters(),
    "rbf": KernelVoters("rbf"),
    "linear": KernelVoters("linear"),
    "poly": KernelVoters("poly"),
    "forest": ForestVoters(),
}
SCORES = "scores"


def family_of(voters: Any) -> Any:
    """The family that a name stands for; anything else as it is."""
    if not isinstance(voters, str) or voters == SCORES:
        return voters
    if voters not in NAMED:
        raise ValueError(
            f"voters={voters!r} is not known; give one of {[*NAMED, SCORES]}, a family such "
            "as StumpVoters(...), or a list of fitted classifiers."
        )
    return NAMED[voters]


def prepare_voters(
    voters: Any, rows: Training, raw: Any, classes: Any, seed: int
) -> PreparedVoters:
    """Turn the ``voters`` parameter and the training rows into prepared voters.

    ``raw`` holds the rows as they were given, for a list of fitted classifiers.
    """
    family = family_of(voters)
    if isinstance(family, VoterFamily):
        return family.prepare_rows(rows, seed)
    if isinstance(family, str):
        return prepare_scores(rows.table)
    if isinstance(family, list | tuple) and len(family):
        return prepare_classifiers(list(family), raw, classes)
    raise TypeError(
        "voters must be a name, a family of voters or a non-empty list of fitted classifiers, got "
        f"{type(voters).__name__}."
    )
