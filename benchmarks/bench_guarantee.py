"""Guarantees against MAPIE's controller, and the class mix against quapy's EMQ, on equal scores.

    python -m benchmarks.bench_guarantee [DRAWS [mapie] [quapy]]
    python -m benchmarks.bench_guarantee watch [ROWS ...]   # seconds and memory of it

Real sets are scored once by a logistic regression fitted on a third of them; the other rows stand
for the population. Calibration, reference and new rows are drawn from it, new rows with a class mix
of their own (label shift built by resampling).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from stress.promises import Law, real

from benchmarks.bench_speed import child
from laconic.data.demo import make_payments, write_payments
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


def watched(sizes: list[int]) -> None:
    """CPU seconds and largest memory of `laconic watch` on generated payments in a file."""
    print("| rows | file | MB | CPU s | largest memory, MB |\n|---|---|---|---|---|")
    run = [sys.executable, "-m", "laconic"]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write_payments(folder / "train.csv", *make_payments(8_000))
        words = ["fit", "train.csv", "--target", "label", "--model", "bayes", "--out", "result"]
        subprocess.run([*run, *words], cwd=folder, check=True, capture_output=True)
        for n in sizes:
            table = payments(n)
            for kind, write in (("parquet", table.write_parquet), ("csv", table.write_csv)):
                path = folder / f"rows.{kind}"
                write(path)
                seconds, memory = child([*run, "watch", f"{folder}/result/model.json", f"{path}"])
                size = path.stat().st_size / 2**20
                print(f"| {n:,} | {kind} | {size:.0f} | {seconds:.1f} | {memory:.0f} |", flush=True)
                path.unlink()


def payments(n: int) -> Any:
    """Generated payments as a polars frame, made by the million."""
    import polars as pl

    parts = []
    for k in range(-(-n // 10**6)):
        table, _ = make_payments(min(n, 10**6), random_state=100 + k)
        parts.append(
            pl.DataFrame(
                {
                    name: column if texts is None else np.array(texts)[column]
                    for name, texts, column in zip(
                        table.names, table.categories, map(table.column, range(8)), strict=True
                    )
                }
            )
        )
    return pl.concat(parts)


def main(words: list[str]) -> None:
    if words[:1] == ["watch"]:
        watched([int(word) for word in words[1:]] or [10**6, 10**7])
        return
    runs, parts = int(words[0]) if words else 100, words[1:] or ["mapie", "quapy"]
    if "mapie" in parts:
        guarantees(runs)
    if "quapy" in parts:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mixes(runs)


if __name__ == "__main__":
    main(sys.argv[1:])
