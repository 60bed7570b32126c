"""Passes over a scan: the number that docs/scale.md gives, so that nobody adds one unseen."""

from __future__ import annotations

import pytest

from laconic import (
    ConvexRiskClassifier,
    CqBoostClassifier,
    DecisionClassifier,
    GrayZoneLogisticRegression,
    MinimaxClassifier,
    ModlEncoder,
    ScorecardClassifier,
    SparseAdditiveClassifier,
    WeightedNaiveBayes,
    scan,
)
from laconic.additive import tuning as additive_tuning
from laconic.votes import MinCqClassifier
from scan_rows import COSTS, NUMBERS, payments

MIXED = ["amount", "noise", "kind", "gap"]
# columns, passes on these rows: of those that step until a gap is small, at most
MODELS = {
    "encoder": (lambda: ModlEncoder(), MIXED, 3),
    "naive Bayes": (lambda: WeightedNaiveBayes(), MIXED, 17),
    "gray zone": (lambda: GrayZoneLogisticRegression(zone=(0.2, 0.6)), NUMBERS, 10),
    "logistic risk": (lambda: ConvexRiskClassifier("logistic"), NUMBERS, 7),
    "scorecard": (lambda: ScorecardClassifier(), MIXED, 12),
    "minimax": (lambda: MinimaxClassifier(n_bins=4), MIXED, 4),
    "CqBoost": (lambda: CqBoostClassifier(), MIXED, 4),
    "MinCq": (lambda: MinCqClassifier(), MIXED, 4),
    "decision": (lambda: DecisionClassifier(CqBoostClassifier(), costs=COSTS), MIXED, 5),
    "additive, held": (lambda: additive(), MIXED, 3),
    "additive, summed": (lambda: additive(), MIXED, 14),
}
STEPPING = ("naive Bayes", "gray zone", "scorecard", "logistic risk", "additive, summed")


def additive() -> SparseAdditiveClassifier:
    return SparseAdditiveClassifier(pairs=1, cv=2, random_state=0)


@pytest.mark.parametrize("name", MODELS)
def test_a_fit_makes_as_many_passes_as_the_guide_says(name, monkeypatch):
    make, columns, passes = MODELS[name]
    if name == "additive, summed":
        monkeypatch.setattr(additive_tuning, "SELECTION_ROWS", 1_000)
    rows = scan(payments(4_000), "label", features=columns, weight="w", block_rows=500)
    make().fit(rows)
    if name in STEPPING:
        assert passes - 2 <= rows.n_passes <= passes  # a step less where numbers round otherwise
    else:
        assert rows.n_passes == passes
