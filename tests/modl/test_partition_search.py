"""The searches against brute force over all partitions, with costs recomputed from scratch."""

import itertools
import math

import numpy as np
import pytest

from bayes_formulas import log_star
from laconic.modl import groups as partition_groups
from laconic.modl import intervals as partition_numeric
from laconic.modl.criterion import GranularPrior, Prior2006
from laconic.modl.groups import best_groups
from laconic.modl.intervals import best_intervals
from laconic.modl.layers import Limits

LN2 = math.log(2)


def ln_factorial(x):
    return math.lgamma(x + 1)


def parts_cost(parts):
    """sum over parts of ln C(N+J-1, J-1) + ln N!/prod n!, term by term."""
    total = 0.0
    for part in parts:
        n, n_classes = sum(part), len(part)
        total += ln_factorial(n + n_classes - 1) - ln_factorial(n_classes - 1) - ln_factorial(n)
        total += ln_factorial(n) - sum(ln_factorial(k) for k in part)
    return total


def universal(n, bound):
    norm = sum(2.0 ** -log_star(m) for m in range(1, bound + 1))
    return math.log(norm) + LN2 * log_star(n)


def stirling_sum(n_values, n_groups):
    """Ways to put values in at most n_groups groups, by the recurrence in exact integers."""
    row = [1] + [0] * n_groups
    for _ in range(n_values):
        row = [0] + [g * row[g] + row[g - 1] for g in range(1, n_groups + 1)]
    return sum(row)


def set_partitions(n):
    """Restricted growth strings of length n."""

    def grow(prefix, top):
        if len(prefix) == n:
            yield tuple(prefix)
            return
        for g in range(top + 2):
            yield from grow([*prefix, g], max(top, g))

    yield from grow([0], 0)


def partile_cuts(weights, n_partiles):
    """Boundary nearest to each ideal rank; the lower one at equal distance."""
    ends = np.concatenate([[0], np.cumsum(weights)])
    cuts = set()
    for k in range(1, n_partiles):
        rank = k * ends[-1] / n_partiles
        cuts.add(int(np.argmin(np.abs(ends - rank))))
    return cuts - {0, len(weights)}


def brute_intervals(table, prior_name, selection, monotone=0, min_weight=0, max_parts=99):
    n_values, total = len(table), int(table.sum())
    finest = max(1, math.ceil(math.log2(total)))
    best = math.inf
    for size in range(n_values):
        for cuts in itertools.combinations(range(1, n_values), size):
            ends = [0, *cuts, n_values]
            parts = [table[a:b].sum(axis=0) for a, b in itertools.pairwise(ends)]
            rates = [part[1] / part.sum() for part in parts]
            if monotone and any(monotone * (b - a) <= 0 for a, b in itertools.pairwise(rates)):
                continue
            if len(parts) > max_parts or min(part.sum() for part in parts) < min_weight:
                continue
            cost = parts_cost(parts)
            if prior_name == "2006":
                n_parts = len(parts)
                ways = math.comb(total + n_parts - 1, n_parts - 1)
                best = min(best, cost + math.log(total) + math.log(ways))
            elif not cuts:
                best = min(best, cost + LN2)
            else:
                for level in range(1, finest + 1):
                    places = min(2**level, total) - 1
                    allowed = set(range(1, n_values))
                    if 2**level < total:
                        allowed = partile_cuts(table.sum(axis=1), 2**level)
                    if places < 1 or not set(cuts) <= allowed:
                        continue
                    k = len(cuts)
                    own = universal(level, finest) + universal(k, places)
                    own += k * math.log(places) - ln_factorial(k)
                    best = min(best, cost + LN2 + selection + own)
    return best


def garbage_cost(n_values, n_garbage, n_parts):
    kept, groups = n_values - n_garbage, n_parts - 1
    if n_values <= 7 or groups < 2 or kept < groups:
        return math.inf
    cost = universal(kept - 1, n_values - 2) + kept * math.log(n_values) - ln_factorial(kept)
    return cost + universal(groups - 1, kept - 1) + math.log(stirling_sum(kept, groups))


def brute_groups(table, prior_name, selection):
    """The best cost, and the best one of a partition with a garbage group."""
    total = int(table.sum())
    finest = max(1, math.ceil(math.log2(total)))
    best = with_garbage = math.inf
    if prior_name == "2006":
        for owner in set_partitions(len(table)):
            n_parts = max(owner) + 1
            parts = [table[np.array(owner) == g].sum(axis=0) for g in range(n_parts)]
            ways = math.log(len(table)) + math.log(stirling_sum(len(table), n_parts))
            best = min(best, parts_cost(parts) + ways)
        return best, with_garbage
    best = parts_cost([table.sum(axis=0)]) + LN2
    seen = set()
    for level in range(1, finest):
        kept = table.sum(axis=1) >= max(2, math.ceil(total / 2**level))
        if kept.tobytes() in seen:
            continue
        seen.add(kept.tobytes())
        values = table[kept]
        if not kept.all():
            values = np.vstack([values, table[~kept].sum(axis=0)])
        n_values = len(values)
        if n_values < 2:
            continue
        start = LN2 + selection + universal(level, finest) + (LN2 if n_values > 7 else 0.0)
        for owner in set_partitions(n_values):
            n_parts = max(owner) + 1
            if n_parts == 1:
                continue
            own = np.array(owner)
            parts = [values[own == g].sum(axis=0) for g in range(n_parts)]
            data = start + parts_cost(parts)
            plain = universal(n_parts - 1, n_values - 1)
            plain += math.log(stirling_sum(n_values, n_parts))
            best = min(best, data + plain)
            if n_values > 7 and n_parts > 2:
                sizes = np.bincount(own)
                cheapest = min(garbage_cost(n_values, int(q), n_parts) for q in set(sizes))
                with_garbage = min(with_garbage, data + cheapest)
    return min(best, with_garbage), with_garbage


def prior_of(name, total, selection):
    return GranularPrior(total, selection) if name == "granular" else Prior2006(total, selection)


def random_table(rng, n_values, n_classes, largest):
    """Rows with contrasted class mixes, none empty."""
    mixes = rng.dirichlet(np.full(n_classes, 0.4), size=n_values)
    table = np.array([rng.multinomial(rng.integers(1, largest), mix) for mix in mixes])
    return table.astype(np.int64)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("prior", ["granular", "2006"])
def test_intervals_agree_with_brute_force(prior, n_classes):
    rng = np.random.default_rng(n_classes)
    several = 0
    for _ in range(8):
        table = random_table(rng, rng.integers(3, 10), n_classes, 60)
        selection = 1.3 if prior == "granular" else 0.0
        found = best_intervals(table, n_classes, prior_of(prior, table.sum(), selection))
        assert found.details["exact"]
        assert found.gap == 0.0
        assert found.value == pytest.approx(brute_intervals(table, prior, selection), abs=1e-8)
        several += found.point.n_parts > 2
    assert several >= 2


@pytest.mark.parametrize("prior", ["granular", "2006"])
def test_limits_agree_with_brute_force(prior):
    rng = np.random.default_rng(5)
    for _ in range(8):
        table = random_table(rng, 8, 2, 50)
        own = prior_of(prior, table.sum(), 0.0)
        for sign in (1, -1):
            found = best_intervals(table, 2, own, Limits(monotone=sign))
            expected = brute_intervals(table, prior, 0.0, monotone=sign)
            assert found.value == pytest.approx(expected, abs=1e-8)
        found = best_intervals(table, 2, own, Limits(min_weight=40.0))
        assert found.value == pytest.approx(
            brute_intervals(table, prior, 0.0, min_weight=40), abs=1e-8
        )
        found = best_intervals(table, 2, own, Limits(max_parts=2))
        expected = brute_intervals(table, prior, 0.0, max_parts=2)
        assert found.value == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("prior", ["granular", "2006"])
def test_groups_agree_with_brute_force(prior, n_classes, monkeypatch):
    """Also with the enumeration switched off, so that sorting and merging are what is tested."""
    rng = np.random.default_rng(10 + n_classes)
    several = 0
    for _ in range(8):
        table = random_table(rng, int(rng.integers(2, 8)), n_classes, 90)
        own = prior_of(prior, table.sum(), 0.0)
        expected, _ = brute_groups(table, prior, 0.0)
        found = best_groups(table, n_classes, own)
        assert found.details["exact"]
        assert found.value == pytest.approx(expected, abs=1e-8)
        several += found.point.n_groups > 2
        with monkeypatch.context() as patch:
            patch.setattr(partition_groups, "ENUMERATED", 0)
            searched = best_groups(table, n_classes, own)
        if n_classes == 2:
            assert searched.value == pytest.approx(expected, abs=1e-8)
        else:
            assert expected - 1e-8 <= searched.value <= expected + 0.5
        assert searched.gap >= searched.value - expected - 1e-8
    assert several >= 2


@pytest.mark.parametrize("n_classes", [2, 3])
def test_garbage_groups_agree_with_brute_force(n_classes, monkeypatch):
    """Eight values, two of them informative: a garbage group is the best answer."""
    rng = np.random.default_rng(3)
    mixes = np.full((8, n_classes), 1.0 / n_classes)
    mixes[0] = np.eye(n_classes)[0] * 0.94 + 0.06 / n_classes
    mixes[1] = np.eye(n_classes)[1] * 0.94 + 0.06 / n_classes
    won = 0
    for _ in range(3):
        table = np.array([rng.multinomial(60, mix) for mix in mixes])
        own = GranularPrior(table.sum(), 0.0)
        expected, with_garbage = brute_groups(table, "granular", 0.0)
        won += with_garbage == expected
        found = best_groups(table, n_classes, own)
        assert found.details["exact"]
        assert found.value == pytest.approx(expected, abs=1e-8)
        assert (found.point.garbage >= 0) == (with_garbage == expected)
        with monkeypatch.context() as patch:
            patch.setattr(partition_groups, "ENUMERATED", 0)
            searched = best_groups(table, n_classes, own)
        assert searched.value == pytest.approx(expected, abs=1e-8)
        assert searched.gap >= searched.value - expected - 1e-8
    assert won >= 1


@pytest.mark.parametrize("prior", ["granular", "2006"])
@pytest.mark.parametrize("shape", ["waves", "spikes", "steps", "nothing"])
def test_merging_comes_close_to_the_exact_search(prior, shape, monkeypatch):
    rng = np.random.default_rng(8)
    x = np.sort(rng.random(3000))
    rate = {
        "waves": 0.5 + 0.45 * np.sin(12 * x),
        "spikes": np.where(np.abs(x * 7 % 1 - 0.5) < 0.02, 0.95, 0.2),
        "steps": np.where(x < 0.31, 0.1, np.where(x < 0.64, 0.4, 0.2)),
        "nothing": np.full(len(x), 0.3),
    }[shape]
    table = np.eye(2, dtype=np.int64)[(rng.random(len(x)) < rate).astype(int)]
    own = prior_of(prior, len(x), 0.0)
    monkeypatch.setattr(partition_numeric, "EXACT_WORK", 1 << 30)
    exact = best_intervals(table, 2, own)
    assert exact.details["exact"]
    monkeypatch.setattr(partition_numeric, "EXACT_WORK", 1 << 17)
    merged = best_intervals(table, 2, own)
    assert not merged.details["exact"]
    assert exact.value - 1e-6 <= merged.value <= exact.value + 1.0
    assert merged.gap >= merged.value - exact.value
    if shape == "nothing":
        assert exact.point.n_parts == 1


def test_fractional_weights_follow_the_gamma_function():
    """Scaled integer tables: the compiled series of ln x! against lgamma."""
    rng = np.random.default_rng(1)
    table = random_table(rng, 9, 3, 30) * 0.37 + 0.01
    found = best_intervals(table, 3, GranularPrior(table.sum(), 0.0))
    ends = [0, *found.point.places, len(table)]
    parts = [table[a:b].sum(axis=0) for a, b in itertools.pairwise(ends)]
    prior = GranularPrior(table.sum(), 0.0)
    own = prior.intervals(len(parts), max(found.point.level, 1)) + prior.construction(len(parts))
    assert found.value == pytest.approx(parts_cost(parts) + float(own), abs=1e-9)


def test_cost_of_a_garbage_group_for_all_sizes():
    prior = GranularPrior(1000.0, 0.0)
    start = universal(4, 10) + LN2
    for n_values in (8, 11, 14):
        for n_parts in range(2, n_values):
            q = np.arange(n_values + 1)
            ours = prior.groups_with_garbage(n_parts, 4, n_values, q)
            for size in range(1, n_values + 1):
                expected = start + garbage_cost(n_values, size, n_parts)
                assert ours[size] == pytest.approx(expected, abs=1e-9)
            assert np.isinf(ours[0])
