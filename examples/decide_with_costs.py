"""Costs, a class mix that moves, and the right to abstain, on top of any probability model.

A bank screens payments. Frauds are 4 % of the training rows but only 1 % of the payments that will
be screened; letting one pass costs 50, stopping an honest customer costs 1, and a person can look
at a payment for 0.4. Run: ``python examples/decide_with_costs.py [folder for the figures]``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from laconic import DecisionClassifier, baseline_costs, estimate_prior, expected_cost
from laconic.displays import CostCurveDisplay, PriorRiskDisplay, ReliabilityDisplay

COSTS = {"fp": 1, "fn": 50}
REVIEW = 0.4
DEPLOYED_SHARE = 0.01
SHARES = np.linspace(0.0, 0.1, 101)


def payments(seed: int = 0):
    """Training rows with 4 % frauds, and later rows with 1 %: each class keeps its law."""
    X, y = make_classification(
        60_000, 12, n_informative=6, weights=[0.96], class_sep=1.4, flip_y=0.0, random_state=seed
    )
    X, later_X, y, later_y = train_test_split(X, y, test_size=0.5, stratify=y, random_state=seed)
    frauds, honest = np.flatnonzero(later_y == 1), np.flatnonzero(later_y == 0)
    wanted = int(DEPLOYED_SHARE / (1 - DEPLOYED_SHARE) * len(honest))
    kept = np.sort(np.concatenate([frauds[:wanted], honest]))
    return X, y, later_X[kept], later_y[kept]


def main(folder: Path | None = None) -> None:
    X, y, later_X, later_y = payments()
    model = DecisionClassifier(make_pipeline(StandardScaler(), LogisticRegression()), COSTS)
    model.fit(X, y)

    # The later rows have no labels yet: their class mix is estimated from the model's outputs.
    found = estimate_prior(model.predict_proba(later_X), model.train_prior_)
    share = found.point[1]

    rules = {
        "most probable class": model.estimator_.predict(later_X),
        "costs": model.predict(later_X),
        "costs + estimated mix": model.predict(later_X, prior=share),
    }
    print(f"share of frauds: {y.mean():.2%} in training, {later_y.mean():.2%} later,")
    print(f"                 {share:.2%} estimated without labels (gap {found.gap:.1e})\n")
    print(f"{'rule':<28}{'cost per payment':>18}")
    for decision, cost in baseline_costs(later_y, COSTS).items():
        print(f"{f'always {decision}':<28}{cost:>18.3f}")
    for name, decisions in rules.items():
        print(f"{name:<28}{expected_cost(later_y, decisions, COSTS):>18.3f}")

    wary = DecisionClassifier(
        model.estimator_, COSTS, prior=share, train_prior=y.mean(), reject_cost=REVIEW, prefit=True
    ).fit(None, None)
    decisions = wary.predict(later_X)
    cost = expected_cost(
        later_y, decisions, COSTS, reject_label=wary.reject_label_, reject_cost=REVIEW
    )
    print(f"{'the same, with review':<28}{cost:>18.3f}")
    print(f"\nreviewed by a person: {np.mean(decisions == wary.reject_label_):.1%} of the payments")

    if folder is not None:
        draw(model, later_X, later_y, rules, folder)


def draw(model, X, y, rules, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    displays = {
        "cost_curve": CostCurveDisplay.from_estimator(model, X, y).plot(log_odds=True),
        "prior_risk": PriorRiskDisplay.from_predictions(y, rules, COSTS, shares=SHARES).plot(),
        "reliability": ReliabilityDisplay.from_estimator(model, X, y, zone=0.1, n_bins=40).plot(
            zoom=True
        ),
    }
    for name, display in displays.items():
        display.figure_.savefig(folder / f"{name}.png", dpi=120)
        print(f"wrote {folder / name}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
