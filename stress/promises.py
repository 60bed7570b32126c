"""How often guarantees are broken, intervals miss and alarms are false, over many draws.

``python -m stress.promises 1000`` prints tables for docs/guarantees.md; a second word, ``held``,
``many``, ``intervals``, ``alarms`` or ``changed``, runs a part. A law is generated, or a real set
(found by ``LACONIC_DATA``) whose rows, scored by a model that was fitted on other rows, are drawn
with replacement: then the truth behind every draw is known. A promise of 90 % may be broken in 10 %
of the draws; a cell in bold is above what chance allows.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from laconic import DecisionClassifier, PlainLogisticRegression
from laconic.core.contract import take_rows
from laconic.core.decisions import expected_costs
from laconic.data import datasets
from laconic.decide.guarantee import Guarantee, NoThresholdError
from laconic.decide.reference import Reference, decisions_of, reference_of
from laconic.decide.sets import prediction_sets
from laconic.decide.threshold import guaranteed_threshold
from laconic.decide.weights import guaranteed_weights
from laconic.watching.mix import estimate_mix
from laconic.watching.watch import Counter, conclude, cost_interval, watch

CONFIDENCE = 0.9
COSTS = np.array([[0.0, 1.0], [4.0, 0.0]])
GENERATED = ("normal", "steps", "five scores", "rare")
PAIRS = ("adult", "spam", "german")
MANY = ("waveform", "satimage")
WATCHED = (40, 100, 200, 1000, 5000, 20_000)
KNOWN = ((1500, 0.05), (1500, 0.15), (1500, 0.45), (6000, 0.15))
"""Rows of the reference, fifteen in a hundred of them positive, and the share among new rows."""
CHANGES = ("unit", "spread", "exchanged")


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
    """Two classes with normal log-odds.

    In "steps" many rows share a score, "five scores" are 0, .25, .5, .75 and 1, and of "rare" only
    three rows in a hundred are positive.
    """
    rng = np.random.default_rng(0)
    codes = (rng.random(n) < (0.03 if kind == "rare" else 0.2)).astype(int)
    p = expit(rng.normal(np.where(codes == 1, 0.6, -1.4), 1.0))
    p = np.round(p, 1) * 0.98 + 0.01 if kind == "steps" else p
    p = np.round(4 * p) / 4 if kind == "five scores" else p
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


Wish = tuple[str, list[str], tuple[float, float] | None, bool]
"""What it is called, what is asked for, the box of shares, and whether half of the rows are
positive: calibration rows of another mix."""


def wishes_of(law: Law) -> list[Wish]:
    """Wishes that the law can grant with some room."""
    p, y = law.proba[:, 1], law.codes == 1
    cuts = np.quantile(p, np.linspace(0.02, 0.98, 49))
    least = min(float(np.where(y, 4.0 * (p <= c), p > c).mean()) for c in cuts)
    sure = max(float(y[p > c].mean()) for c in cuts if (p > c).any())
    own = float(y.mean())
    box = (0.3 * own, min(1.5 * own, 0.9))
    few = f"alarms<={min(0.9 * own, 0.25):.3g}"
    precise = f"precision>={own + 0.6 * (sure - own):.2f}"
    both = ["recall>=0.7", "false_alarms<=0.4"]
    return [
        ("recall>=0.9", ["recall>=0.9"], None, False),
        ("false_alarms<=0.1", ["false_alarms<=0.1"], None, False),
        ("alarms, below the share of positives", [few], None, False),
        (" and ".join(both), both, None, False),
        ("recall>=0.9, half positive rows", ["recall>=0.9"], None, True),
        ("false_alarms<=0.1, half positive rows", ["false_alarms<=0.1"], None, True),
        ("cost<=0.75 over a box of mixes, half positive rows", ["cost<=0.75"], box, True),
        ("precision, over half of what can be reached", [precise], None, False),
        ("cost, 1.6 times the least", [f"cost<={1.6 * least:.3g}"], None, False),
    ]


def cell(broken: int, held: int, runs: int) -> str:
    """The share of draws in which a promise was made and broken, and of those in which made."""
    allowed = (1 - CONFIDENCE) + 2 * np.sqrt(CONFIDENCE * (1 - CONFIDENCE) / runs)
    told = f"{100 * broken / runs:.1f} % ({held:,})"
    return told if broken / runs <= allowed else f"**{told}**"


def of_two(law: Law, runs: int, n: int) -> dict[str, str]:
    """Every kind of promise of a threshold, and the cost over a box of class mixes."""
    y, place = law.codes == 1, law.proba[:, 1]
    even = np.where(y, 0.5 / y.sum(), 0.5 / (~y).sum())
    found = {}
    for name, asked, box, half in wishes_of(law):
        broken = held = 0
        for r in range(runs):
            rng = np.random.default_rng([r, n, int(half)])
            at = rng.choice(len(y), n, p=even if half else None)
            try:
                cut = guaranteed_threshold(
                    place[at], y[at], asked, costs=COSTS, confidence=CONFIDENCE, shares=box
                ).threshold
            except NoThresholdError:
                continue
            held += 1
            alarm = place > cut
            if box is None:
                paid = COSTS[law.codes, alarm.astype(int)]
                kept = not any(
                    broken_by(one, law, alarm.astype(int), 1, paid)
                    for one in map(Guarantee.parse, asked)
                )
            else:
                risks = alarm[~y].mean(), 4.0 * (~alarm[y]).mean()
                kept = all((1 - s) * risks[0] + s * risks[1] <= 0.75 for s in box)
            broken += not kept
        found[name] = cell(broken, held, runs)
    return found


def of_many(law: Law, runs: int, n: int) -> dict[str, str]:
    """Promises by class, on errors among accepted rows and on abstentions; prediction sets."""
    n_classes = law.proba.shape[1]
    matrix = 1.0 - np.eye(n_classes)
    dear = f"cost<={1.3 * (law.proba.argmax(axis=1) != law.codes).mean():.3g}"
    wishes: list[tuple[str, list[str], float | None]] = [
        ("recall(0)>=0.85", ["recall(0)>=0.85"], None),
        ("precision(1)>=0.6", ["precision(1)>=0.6"], None),
        (
            "recall(0)>=0.75 and recall(1)>=0.6 and alarms(2)<=0.5",
            ["recall(0)>=0.75", "recall(1)>=0.6", "alarms(2)<=0.5"],
            None,
        ),
        ("error<=0.1 and abstentions<=0.6", ["error<=0.1", "abstentions<=0.6"], 0.3),
        ("cost, 1.3 times that of the likeliest class", [dear], None),
    ]
    told = {}
    for name, asked, reject in wishes:
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
            broken += any(
                broken_by(one, law, decided, -2 if one.of is None else int(one.of), paid)
                for one in map(Guarantee.parse, asked)
            )
        told[name] = cell(broken, held, runs)
    return {**told, "sets of 90 % within every class": _sets(law, runs, n)}


def _sets(law: Law, runs: int, n: int) -> str:
    """Sets hold the class of a new row with the stated probability, over rows and draws."""
    within = np.zeros(law.proba.shape[1])
    for r in range(runs):
        p, y = law.draw(np.random.default_rng([r, n, 3]), n)
        inside = prediction_sets(p, y, CONFIDENCE).contains(law.proba)
        right = inside[np.arange(len(law.codes)), law.codes]
        within += np.bincount(law.codes, right) / np.bincount(law.codes) / runs
    missed = float(1 - within.min())
    told = f"{100 * missed:.1f} % ({runs:,})"
    return told if missed <= 1 - CONFIDENCE + 0.005 else f"**{told}**"


def table(
    head: str,
    laws: Sequence[Law],
    own: Callable[[Law, int, int], dict[str, str]],
    runs: int,
    n: int,
) -> None:
    """A row for each promise, a column for each law."""
    columns = []
    for law in laws:
        columns.append(own(law, runs, n))
        print(f"({law.name}: {columns[-1]})", file=sys.stderr, flush=True)
    print(f"| {head} | {' | '.join(law.name for law in laws)} |")
    print("|---|" + "---|" * len(laws))
    for name in columns[0]:
        print(f"| {name} | {' | '.join(column[name] for column in columns)} |", flush=True)


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


def trained() -> DecisionClassifier:
    """The model that is watched."""
    X, y = drawn(np.random.default_rng(0), 2000, 0.15)
    costs = {"bad": {"ok": 5}, "ok": {"bad": 1}}
    return DecisionClassifier(PlainLogisticRegression(), costs).fit(X, y)


def intervals(runs: int) -> None:
    """How often the class mix and the expected cost lie in their intervals.

    Rows are drawn by class from a hundred thousand whose scores are known, which is quick.
    """
    model = trained()
    pools = []
    for share in (1.0, 0.0):  # of "bad", the first class
        X, _ = drawn(np.random.default_rng(int(share)), 100_000, share)
        raw = model.estimator_.predict_proba(X)
        pools.append((raw, decisions_of(model, raw)))
    risks = np.array([model.cost_matrix_[k, said].mean() for k, (_, said) in enumerate(pools)])

    def take(rng: np.random.Generator, n: int, share: float) -> list[np.ndarray]:
        bad = rng.binomial(n, share)
        rows = [rng.integers(0, 100_000, size) for size in (bad, n - bad)]
        parts = [np.concatenate([pools[k][j][rows[k]] for k in (0, 1)]) for j in (0, 1)]
        return [*parts, np.repeat([0, 1], [bad, n - bad])]

    print("| new rows | reference | share was, is | mix held | cost held | mean width of the mix |")
    print("|---|---|---|---|---|---|")
    for n in WATCHED:
        for known, share in KNOWN:
            truth, hits = float(np.array([share, 1 - share]) @ risks), np.zeros(3)
            for r in range(runs):
                rng = np.random.default_rng([r, n, known, int(100 * share)])
                raw, said, codes = take(rng, known, 0.15)
                reference = Reference.of_scores(raw, codes, said, 2)
                place = reference.bins_of(take(rng, n, share)[0])
                seen = np.bincount(place, minlength=reference.n_bins).astype(float)
                mix = estimate_mix(reference.counts, seen, by_bin=reference.by_bin, seed=r)
                _, low, high = cost_interval(model, reference, mix, 0.95)
                held = mix.low[0] <= share <= mix.high[0]
                hits += [held, low <= truth <= high, mix.high[0] - mix.low[0]]
            mixed, paid, width = hits / runs
            print(
                f"| {n} | {known} | 15 %, {share:.0%} | {mixed:.1%} | {paid:.1%} | {width:.3f} |",
                flush=True,
            )


def alarms(runs: int) -> None:
    """How often there is an alarm when only the class mix moved."""
    model = trained()
    print(f"| new rows | {' | '.join(f'{m} known, {s:.0%} of 15 %' for m, s in KNOWN)} |")
    print("|---|" + "---|" * len(KNOWN))
    for n in WATCHED:
        shown = []
        for known, share in KNOWN:
            count = 0
            for r in range(runs):
                rng = np.random.default_rng([r, n, known, int(100 * share), 1])
                counter = Counter(model, reference_of(model, *drawn(rng, known, 0.15)))
                counter.add(drawn(rng, n, share)[0])
                count += conclude(counter, seed=r).alarm
            shown.append(f"{100 * count / runs:.1f} %")
        print(f"| {n} | {' | '.join(shown)} |", flush=True)


def changed(runs: int) -> None:
    """How often each of three changes of a class's law is noticed within 500 rows."""
    model = trained()
    print("| change | noticed within 500 rows |\n|---|---|")
    for change in CHANGES:
        seen = 0
        for r in range(runs):
            rng = np.random.default_rng([r, 7])
            reference = drawn(rng, 1500, 0.15)
            seen += watch(model, drawn(rng, 500, 0.15, change)[0], reference=reference).alarm
        print(f"| {change} | {seen / runs:.1%} |", flush=True)


def held(runs: int) -> None:
    """Promises over draws of calibration rows."""
    laws = [*map(generated, GENERATED), *filter(None, map(real, PAIRS))]
    table("promise (800 rows)", laws, of_two, runs, 800)


def many(runs: int) -> None:
    """The same for several classes and for rules that abstain."""
    table("promise", [law for law in map(real, MANY) if law is not None], of_many, runs, 1000)


def main(words: list[str]) -> None:
    start = time.process_time()
    runs = int(words[0]) if words else 1000
    own = (held, many, intervals, alarms, changed)
    parts = {part.__name__: part for part in own}
    for name in words[1:] or parts:
        print(f"\n{name}, {runs} draws each\n")
        parts[name](runs)
    print(f"\n{time.process_time() - start:.0f} CPU seconds")


if __name__ == "__main__":
    main(sys.argv[1:])
