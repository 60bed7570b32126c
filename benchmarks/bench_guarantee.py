"""Guarantees against MAPIE's controller, and the class mix against quapy's EMQ, on equal scores.

Real sets are scored once by a logistic regression fitted on a third of them; the other rows stand
for the population. Calibration, reference and new rows are drawn from it, new rows with a class mix
of their own (label shift built by resampling).
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
from stress.promises import Law, real

from laconic.decide.guarantee import NoThresholdError
from laconic.decide.recalibration import Recalibration
from laconic.decide.shift import estimate_prior
from laconic.decide.threshold import guaranteed_threshold

COSTS = np.array([[0.0, 1.0], [4.0, 0.0]])
PAIRS = ("adult", "spam", "german", "pima")
MANY = ("waveform", "satimage")
WISHES = {"recall": (0.9, 0.95), "precision": (0.7,), "fpr": (0.1,)}
OURS = {"recall": "recall>={}", "precision": "precision>={}", "fpr": "false_alarms<={}"}


def cost_at(law: Law, threshold: float) -> float:
    return float(COSTS[law.codes, (law.proba[:, 1] > threshold).astype(int)].mean())


def mapie_thresholds(p: np.ndarray, y: np.ndarray, risk: str, level: float) -> np.ndarray:
    """Every threshold that MAPIE's controller finds valid, with its own grid and correction."""
    from mapie.risk_control import BinaryClassificationController

    control = BinaryClassificationController(
        lambda rows: rows, risk, target_level=level, confidence_level=0.95
    )
    control.calibrate(p, y)
    return np.array([np.ravel(value)[0] for value in control.valid_predict_params], dtype=float)


def guarantees(runs: int) -> None:
    """Cost of the cheapest threshold that is found to hold, ours and MAPIE's."""
    print(
        "| set | guarantee at 95 % | held by both | cost | MAPIE | cheaper or equal | ours only |"
    )
    print("|---|---|---|---|---|---|---|")
    for law in filter(None, map(real, PAIRS)):
        for risk, levels in WISHES.items():
            for level in levels:
                _one_guarantee(law, risk, level, runs)


def _one_guarantee(law: Law, risk: str, level: float, runs: int) -> None:
    ours, theirs, only = [], [], 0
    for r in range(runs):
        p, y = law.draw(np.random.default_rng([r, 11]), 1000)
        try:
            wish = OURS[risk].format(level)
            own = guaranteed_threshold(p[:, 1], y == 1, wish, costs=COSTS).threshold
        except NoThresholdError:
            own = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            valid = mapie_thresholds(p, y, risk, level)
        if own is None or not len(valid):
            only += own is not None
            continue
        # of MAPIE's thresholds the cheapest on the same rows: its own choice knows no costs
        paid = [COSTS[y, (p[:, 1] >= cut).astype(int)].mean() for cut in valid]
        ours.append(cost_at(law, own))
        theirs.append(cost_at(law, float(valid[int(np.argmin(paid))])))
    if not ours:
        print(
            f"| {law.name} | {OURS[risk].format(level)} | 0 of {runs} | | | | {only} |", flush=True
        )
        return
    fewer = np.mean(np.array(ours) <= np.array(theirs) + 1e-12)
    wish = OURS[risk].format(level)
    print(
        f"| {law.name} | {wish} | {len(ours)} of {runs} | {np.mean(ours):.4f} | "
        f"{np.mean(theirs):.4f} | {fewer:.0%} | {only} |",
        flush=True,
    )


def emq(kind: str | None, prior: np.ndarray, known: Any, new: np.ndarray) -> np.ndarray:
    """quapy's EMQ, raw or after one of its calibrations of the reference rows."""
    from quapy.method.aggregative import EMQ, _get_abstention_calibrators

    if kind is None:
        return np.asarray(EMQ.EM(prior, new)[0])
    p, y = known
    fitted = _get_abstention_calibrators()[kind](p, np.eye(p.shape[1])[y], posterior_supplied=True)
    return np.asarray(EMQ.EM(fitted(p).mean(axis=0), fitted(new))[0])


def mixes(runs: int) -> None:
    """Root mean squared error of the class mix of rows drawn with a random mix."""
    kinds = (None, "bcts", "ts", "vs", "nbvs")
    heads = ["EMQ" if kind is None else f"EMQ {kind}" for kind in kinds]
    print(f"\n| set | new rows | ours | {' | '.join(heads)} |")
    print("|---|---|---|" + "---|" * len(kinds))
    total = []
    for law in filter(None, map(real, (*PAIRS, *MANY))):
        for n in (200, 2000):
            errors = np.array([_one_mix(law, n, r, kinds) for r in range(runs)])
            shown = np.sqrt(errors.mean(axis=0))
            total.append(shown)
            cells = " | ".join(f"{value:.4f}" for value in shown)
            print(f"| {law.name} | {n} | {cells} |", flush=True)
    print(f"| mean | | {' | '.join(f'{value:.4f}' for value in np.mean(total, axis=0))} |")


def _one_mix(law: Law, n: int, seed: int, kinds: tuple[str | None, ...]) -> list[float]:
    rng = np.random.default_rng([seed, n])
    order = rng.permutation(len(law.codes))
    half = min(len(order) // 2, 1000)
    known, pool = order[:half], order[half:]
    n_classes = law.proba.shape[1]
    mix = rng.dirichlet(np.ones(n_classes))
    wanted = rng.choice(n_classes, n, p=mix)
    new = np.concatenate(
        [rng.choice(pool[law.codes[pool] == k], int((wanted == k).sum())) for k in range(n_classes)]
    )
    p, y, q = law.proba[known], law.codes[known], law.proba[new]
    again = Recalibration.of(p, y, law.prior)
    found = [np.asarray(estimate_prior(again.apply(q), again.prior, tol=1e-6).point)]
    found += [emq(kind, law.prior, (p, y), q) for kind in kinds]
    return [float(((one - mix) ** 2).mean()) for one in found]


def main(runs: int = 100) -> None:
    guarantees(runs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mixes(runs)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
