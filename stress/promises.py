"""How often guarantees are broken, intervals miss and alarms are false, over many draws.

``python -m stress.promises 1000`` prints tables for docs/guarantees.md; a second word, ``held``,
``watched`` or ``many``, runs a part. A law is generated, or a real set (found by ``LACONIC_DATA``)
whose rows, scored by a model that was fitted on other rows, are drawn with replacement: then the
truth behind every draw is known. A promise of 90 % may be broken in 10 % of the draws.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from laconic import DecisionClassifier, PlainLogisticRegression
from laconic.core.contract import take_rows
from laconic.core.decisions import expected_costs
from laconic.data import datasets
from laconic.decide.guarantee import Guarantee, NoThresholdError
from laconic.decide.reference import reference_of
from laconic.decide.sets import prediction_sets
from laconic.decide.threshold import guaranteed_threshold
from laconic.decide.weights import guaranteed_weights
from laconic.watching.labelled import Labels
from laconic.watching.watch import Counter, conclude, watch

CONFIDENCE = 0.9
COSTS = np.array([[0.0, 1.0], [4.0, 0.0]])
PAIRS = ("adult", "spam", "german")
MANY = ("waveform", "satimage")
WATCHED = (200, 1000, 5000, 20_000)
KNOWN = ((1500, 0.05), (1500, 0.15), (1500, 0.45), (6000, 0.15))
"""Rows of the reference, fifteen in a hundred of them positive, and the share among new rows."""


@dataclass(frozen=True)
class Law:
    """Rows that stand for a population: probabilities and classes."""

    name: str
    proba: np.ndarray
    codes: np.ndarray
    prior: np.ndarray | None = None
    """Class shares of the rows that the model was fitted on."""

    def draw(self, rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        at = rng.integers(0, len(self.codes), n)
        return self.proba[at], self.codes[at]


def generated(kind: str, n: int = 20_000) -> Law:
    """Two classes with normal log-odds, in steps where many rows share a score."""
    rng = np.random.default_rng(0)
    codes = (rng.random(n) < 0.2).astype(int)
    p = expit(rng.normal(np.where(codes == 1, 0.6, -1.4), 1.0))
    p = np.round(p, 1) * 0.98 + 0.01 if kind == "steps" else p
    return Law(kind, np.column_stack([1 - p, p]), codes)


def real(name: str) -> Law | None:
    """Two thirds of a real set, scored by a logistic regression fitted on the rest."""
    if not datasets.available(name):
        print(f"(no {name}: set LACONIC_DATA)")
        return None
    given = datasets.load(name, download=False)
    order = np.random.default_rng(0).permutation(len(given.y))[:12_000]
    fit, rest = order[: len(order) // 3], order[len(order) // 3 :]
    model = PlainLogisticRegression().fit(take_rows(given.X, fit), given.y[fit])
    proba = model.predict_proba(take_rows(given.X, rest))
    shares = np.unique(given.y[fit], return_counts=True)[1] / len(fit)
    return Law(name, proba, np.searchsorted(model.classes_, given.y[rest]), shares)


def broken_by(one: Guarantee, law: Law, decided: np.ndarray, k: int, paid: np.ndarray) -> bool:
    """Whether decisions on the whole population break a promise."""
    own, said = law.codes == k, decided == k
    taken = decided >= 0
    value = {
        "recall": lambda: said[own].mean(),
        "false_alarms": lambda: said[~own].mean(),
        "alarms": lambda: said.mean(),
        "precision": lambda: own[said].mean() if said.any() else 1.0,
        "cost": lambda: paid.mean(),
        "error": lambda: (decided != law.codes)[taken].mean() if taken.any() else 0.0,
        "abstentions": lambda: (~taken).mean(),
    }[one.measure]()
    return bool(value < one.level if one.measure in ("recall", "precision") else value > one.level)


def levels_of(law: Law) -> list[list[str]]:
    """Wishes that the law can grant with some room."""
    p, y = law.proba[:, 1], law.codes == 1
    cuts = np.quantile(p, np.linspace(0.02, 0.98, 49))
    least = min(float(np.where(y, 4.0 * (p <= c), p > c).mean()) for c in cuts)
    sure = max(float(y[p > c].mean()) for c in cuts)
    return [
        ["recall>=0.9"],
        ["false_alarms<=0.1"],
        [f"alarms<={min(0.9 * y.mean(), 0.25):.3g}"],
        [f"precision>={y.mean() + 0.6 * (sure - y.mean()):.2f}"],
        [f"cost<={1.6 * least:.3g}"],
        ["recall>=0.7", "false_alarms<=0.4"],
    ]


def line(law: str, wish: str, n: int, broken: int, held: int, runs: int) -> None:
    allowed = (1 - CONFIDENCE) + 2 * np.sqrt(CONFIDENCE * (1 - CONFIDENCE) / runs)
    verdict = "holds" if broken / runs <= allowed else "**BROKEN**"
    print(f"| {law} | {wish} | {n} | {held} | {broken / runs:.1%} | {verdict} |", flush=True)


def of_two(law: Law, runs: int, n: int) -> None:
    """Every kind of promise of a threshold, and the cost over a box of class mixes."""
    place = law.proba[:, 1]
    for asked in levels_of(law):
        broken = held = 0
        for r in range(runs):
            p, y = law.draw(np.random.default_rng([r, n]), n)
            try:
                found = guaranteed_threshold(
                    p[:, 1], y == 1, asked, costs=COSTS, confidence=CONFIDENCE
                )
            except NoThresholdError:
                continue
            held += 1
            decided = (place > found.threshold).astype(int)
            paid = COSTS[law.codes, decided]
            broken += any(broken_by(Guarantee.parse(one), law, decided, 1, paid) for one in asked)
        line(law.name, " and ".join(asked), n, broken, held, runs)
    _shifted(law, runs, n)


def _shifted(law: Law, runs: int, n: int) -> None:
    """Rows of another mix promise recall and false alarms; the cost is promised over a box."""
    y, place = law.codes == 1, law.proba[:, 1]
    own = float(y.mean())
    ends = (0.3 * own, min(1.5 * own, 0.9))
    wishes = [("recall>=0.9", None), ("false_alarms<=0.1", None), ("cost<=0.75", ends)]
    weight = np.where(y, 0.5 / y.sum(), 0.5 / (~y).sum())
    broken, held = np.zeros(3, dtype=int), np.zeros(3, dtype=int)
    for r in range(runs):
        rng = np.random.default_rng([r, n, 1])
        even = rng.choice(len(y), n, p=weight)  # half of the calibration rows are positive
        for j, (wish, shares) in enumerate(wishes):
            try:
                found = guaranteed_threshold(
                    place[even], y[even], wish, costs=COSTS, confidence=CONFIDENCE, shares=shares
                )
            except NoThresholdError:
                continue
            held[j] += 1
            alarm = place > found.threshold
            risks = alarm[~y].mean(), 4.0 * (~alarm[y]).mean()
            broken[j] += [
                alarm[y].mean() < 0.9,
                risks[0] > 0.1,
                any((1 - s) * risks[0] + s * risks[1] > 0.75 for s in ends),
            ][j]
    told = ("recall>=0.9", "false_alarms<=0.1", f"cost<=0.75 for {ends[0]:.2f} to {ends[1]:.2f}")
    for j, wish in enumerate(told):
        line(law.name, f"{wish}, half positive rows", n, broken[j], held[j], runs)


def of_many(law: Law, runs: int, n: int) -> None:
    """Promises by class, on errors among accepted rows and on abstentions; prediction sets."""
    n_classes = law.proba.shape[1]
    matrix = 1.0 - np.eye(n_classes)
    wishes: list[tuple[list[str], float | None]] = [
        (["recall(0)>=0.85"], None),
        (["precision(1)>=0.6"], None),
        (["recall(0)>=0.75", "recall(1)>=0.6", "alarms(2)<=0.5"], None),
        (["error<=0.1", "abstentions<=0.6"], 0.3),
        ([f"cost<={1.3 * (law.proba.argmax(axis=1) != law.codes).mean():.3g}"], None),
    ]
    for asked, reject in wishes:
        broken = held = 0
        for r in range(runs):
            p, y = law.draw(np.random.default_rng([r, n]), n)
            try:
                found = guaranteed_weights(
                    p, y, asked, classes=range(n_classes), costs=matrix, reject_cost=reject,
                    confidence=CONFIDENCE,
                )  # fmt: skip
            except NoThresholdError:
                continue
            held += 1
            expected = expected_costs(law.proba, found.rule_costs(matrix))
            decided = expected.argmin(axis=1)
            if found.reject is not None:
                decided = np.where(expected.min(axis=1) > found.reject, -1, decided)
            paid = matrix[law.codes, decided]
            for one in map(Guarantee.parse, asked):
                k = -2 if one.of is None else int(one.of)
                if broken_by(one, law, decided, k, paid):
                    broken += 1
                    break
        line(law.name, " and ".join(asked), n, broken, held, runs)
    _sets(law, runs, n)


def _sets(law: Law, runs: int, n: int) -> None:
    """Sets hold the class of a new row with the stated probability, over rows and draws."""
    within = np.zeros(law.proba.shape[1])
    for r in range(runs):
        p, y = law.draw(np.random.default_rng([r, n, 3]), n)
        inside = prediction_sets(p, y, CONFIDENCE).contains(law.proba)
        right = inside[np.arange(len(law.codes)), law.codes]
        within += np.bincount(law.codes, right) / np.bincount(law.codes) / runs
    missed = 1 - within.min()
    verdict = "holds" if missed <= 1 - CONFIDENCE + 0.005 else "**BROKEN**"
    wish = "sets of 90 % within every class"
    print(f"| {law.name} | {wish} | {n} | {runs} | {missed:.1%} | {verdict} |", flush=True)


# Watching: rows with a known law.


def drawn(
    rng: np.random.Generator, n: int, share: float, change: str | None = None
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Rows of two classes: numbers, a text of two and one of twelve; ``change`` moves a law."""
    bad = rng.random(n) < share
    x = rng.normal(1.2 * bad, 1.0)
    z = rng.normal(0.8 * bad, 1.0) * (2.0 if change == "spread" else 1.0)
    word = np.where(rng.random(n) < np.where(bad, 0.7, 0.3), "a", "b")
    if change == "exchanged":
        word = np.where(word == "a", "b", "a")
    if change == "unit":
        x = 100 * x
    many = rng.geometric(np.where(bad, 0.25, 0.35), n).clip(max=12).astype(str)
    gone = np.where(rng.random(n) < 0.05, np.nan, rng.normal(size=n))
    rows = {"x": x, "z": z, "word": word.astype(object), "many": many.astype(object), "w": gone}
    return rows, np.where(bad, "bad", "ok")


def watched(runs: int) -> None:
    """Coverage of the intervals and false alarms, by rows and class mix; then three changes."""
    X, y = drawn(np.random.default_rng(0), 2000, 0.15)
    costs = {"bad": {"ok": 5}, "ok": {"bad": 1}}
    model = DecisionClassifier(PlainLogisticRegression(), costs).fit(X, y)
    print("| new rows | reference | share was, is | mix held | cost held | alarms | with labels |")
    print("|---|---|---|---|---|---|---|")
    for n in WATCHED:
        for known, share in KNOWN:
            T, truth = drawn(np.random.default_rng(99), 200_000, share)
            said = model.predict(T)
            cost = np.where(truth == said, 0, np.where(truth == "bad", 5, 1)).mean()
            hits = np.zeros(4)
            for r in range(runs):
                rng = np.random.default_rng([r, n, known, int(100 * share)])
                counter = Counter(model, reference_of(model, *drawn(rng, known, 0.15)))
                counter.add(*drawn(rng, n, share))
                also = conclude(counter, seed=r)
                counter.labels = Labels(2)
                found = conclude(counter, seed=r)
                hits += [
                    found.mix.low[0] <= share <= found.mix.high[0],
                    found.cost[1] <= cost <= found.cost[2],
                    found.alarm,
                    also.alarm,
                ]
            shown = " | ".join(f"{h:.1%}" for h in hits / runs)
            print(f"| {n} | {known} | 15 %, {share:.0%} | {shown} |", flush=True)
    print("\n| change | noticed within 500 rows |\n|---|---|")
    for change in ("unit", "spread", "exchanged"):
        seen = 0
        for r in range(runs):
            rng = np.random.default_rng([r, 7])
            reference = drawn(rng, 1500, 0.15)
            seen += watch(model, drawn(rng, 500, 0.15, change)[0], reference=reference).alarm
        print(f"| {change} | {seen / runs:.1%} |", flush=True)


def held(runs: int) -> None:
    """Promises over draws of calibration rows."""
    print(f"Promises at {CONFIDENCE:.0%}; {runs} draws of calibration rows each.\n")
    print("| law | promise | rows | promised in | broken in | |\n|---|---|---|---|---|---|")
    tasks: list[tuple[Callable[[Law, int, int], None], Law | None, int]] = [
        (of_two, generated("normal"), 800),
        (of_two, generated("steps"), 800),
        *((of_two, real(name), 800) for name in PAIRS),
    ]
    for run, law, n in tasks:
        if law is not None:
            run(law, runs, n)


def many(runs: int) -> None:
    """The same for several classes and for rules that abstain."""
    print(f"\nSeveral classes, {runs} draws each.\n")
    print("| law | promise | rows | promised in | broken in | |\n|---|---|---|---|---|---|")
    for name in MANY:
        law = real(name)
        if law is not None:
            of_many(law, runs, 1000)


def main(words: list[str]) -> None:
    start = time.perf_counter()
    runs = int(words[0]) if words else 1000
    parts = {"held": held, "watched": watched, "many": many}
    for name in words[1:] or parts:
        parts[name](runs)
    print(f"\n{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
