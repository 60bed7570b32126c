"""PAC-Bayes bounds: inverses, the published reference, and coverage by simulation."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from scipy.optimize import brentq

from laconic.votes import CqBoostClassifier
from laconic.votes.criterion import (
    MarginMoments,
    PacBayes,
    divergence_from_uniform,
    independent_rows,
    kl,
    kl_lower,
    kl_upper,
    pac_bayes_bounds,
    xi,
)


@pytest.mark.parametrize("q", [0.0, 0.03, 0.5, 0.97])
@pytest.mark.parametrize("budget", [1e-4, 0.02, 0.7])
def test_inverses_solve_kl(q, budget):
    up, down = kl_upper(q, budget), kl_lower(q, budget)
    assert down <= q <= up
    if up < 1:
        assert up == pytest.approx(brentq(lambda p: kl(q, p) - budget, q, 1 - 1e-15), abs=1e-9)
    if down > 0:
        assert down == pytest.approx(brentq(lambda p: kl(q, p) - budget, 1e-15, q), abs=1e-9)
    assert kl(q, min(up + 1e-9, 1.0)) >= budget or up == 1.0


@pytest.mark.parametrize("m", [1, 2, 10, 400])
def test_xi_lies_between_its_known_bounds(m):
    assert np.sqrt(m) <= xi(m) <= 2 * np.sqrt(m) + 1e-9


def test_xi_by_hand():
    assert xi(2) == pytest.approx(1 + 2 * 0.25 + 1)


def test_the_joint_bound_reaches_the_published_value_rounded_up():
    # R = 0.2, d = 0.3, m = 1000, KL = 2: the authors' tool prints 0.36043
    value = PacBayes(MarginMoments(0.6, 0.4), 1000, 2.0).joint()
    assert 0.360433 <= value < 0.360440


def test_the_joint_supremum_is_not_below_a_brute_force_scan():
    form = PacBayes(MarginMoments(0.5, 0.35), 400, 1.5)
    e_s, d_s = form.moments.joint_error, form.moments.disagreement
    budget = (3.0 + np.log((xi(400) + 400) / 0.05)) / 400
    e, d = np.meshgrid(np.linspace(1e-4, 0.5, 1500), np.linspace(1e-4, 0.5, 1500))
    rest = 1 - e - d
    with np.errstate(invalid="ignore", divide="ignore"):
        apart = (
            e_s * np.log(e_s / e)
            + d_s * np.log(d_s / d)
            + (1 - e_s - d_s) * np.log((1 - e_s - d_s) / rest)
        )
        allowed = (apart <= budget) & (d <= 2 * (np.sqrt(e) - e)) & (2 * e + d < 1)
        brute = np.max(1 - (1 - (2 * e + d)) ** 2 / (1 - 2 * d), where=allowed, initial=0)
    assert brute <= form.joint() <= brute + 2e-3


def test_bounds_hold_on_fresh_samples():
    """Three voters with known joint law: no bound fails more often than delta."""
    draw = np.random.default_rng(0)
    q, truth = np.array([0.5, 0.3, 0.2]), np.array([0.8, 0.7, 0.65])
    grid = np.array(np.meshgrid(*[[1, -1]] * 3)).reshape(3, -1).T
    law = np.prod(np.where(grid > 0, truth, 1 - truth), axis=1)
    risk = law[grid @ q <= 0].sum()
    failures = dict.fromkeys(("gibbs", "two inverses", "joint", "slides", "tandem"), 0)
    for _ in range(60):
        sample = draw.choice(len(grid), size=150, p=law)
        moments = MarginMoments.of(grid[sample] @ q)
        found = pac_bayes_bounds(moments, 150, divergence_from_uniform(q, 3), 0.2)
        for bound in found:
            failures[bound.name] += bound.value < risk
    assert max(failures.values()) <= 60 * 0.2


def test_more_rows_tighten_and_more_divergence_loosens():
    moments = MarginMoments(0.6, 0.45)
    for name in ("gibbs", "two_inverses", "joint", "slides", "tandem"):
        small = getattr(PacBayes(moments, 300, 1.0), name)()
        large = getattr(PacBayes(moments, 30_000, 1.0), name)()
        wide = getattr(PacBayes(moments, 30_000, 50.0), name)()
        assert large < small <= 1.0, name
        assert large < wide, name


def test_divergence_from_uniform():
    assert divergence_from_uniform(np.full(8, 0.125), 8) == pytest.approx(0.0)
    assert divergence_from_uniform(np.array([2.0]), 16) == pytest.approx(np.log(16))


def test_bad_confidence_is_one_sentence():
    with pytest.raises(ValueError, match="delta must be strictly between"):
        PacBayes(MarginMoments(0.5, 0.5), 10, 0.0, 1.0)


def vote_of_one_voter(draw, n, weight, accuracy=0.7):
    """A fitted vote of one voter that is right on this share of the rows."""
    y = draw.integers(0, 2, n)
    y[:2] = 0, 1
    right = np.where(draw.random(n) < accuracy, 1.0, -1.0)
    H = (np.where(y == 1, 1.0, -1.0) * right)[:, None]
    model = CqBoostClassifier("scores", mu="least-squares")
    return model.fit(H, y, sample_weight=weight(draw, n))


WEIGHTS = {
    "none": lambda draw, n: None,
    "five for each": lambda draw, n: np.full(n, 5.0),
    "fifty for each": lambda draw, n: np.full(n, 50.0),
    "tiny": lambda draw, n: np.full(n, 1e-6),
    "drawn": lambda draw, n: draw.exponential(size=n) + 1e-9,
    "copies": lambda draw, n: draw.integers(1, 30, n).astype(float),
}


@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS.keys())
def test_bounds_hold_whatever_rows_weigh(weight):
    """A weight is no observation: with every row of weight 50 the Gibbs bound once failed in more
    than half of the samples."""
    draw = np.random.default_rng(0)
    failed, n_samples = 0, 60
    for _ in range(n_samples):
        vote = vote_of_one_voter(draw, 40, weight).votes_[0]
        bound = PacBayes(vote.moments, vote.n_independent, vote.divergence, 0.2)
        failed += bound.gibbs() / 2 < 0.3  # the Gibbs risk of the one voter
    assert failed <= 0.2 * n_samples


def test_equal_weights_change_no_bound():
    found = []
    for name in ("none", "five for each", "tiny"):
        model = vote_of_one_voter(np.random.default_rng(1), 40, WEIGHTS[name])
        found.append([bound.value for bound in model.pac_bayes_bounds(0.2)])
    assert found[1] == pytest.approx(found[0]) == found[2]
    assert "weights" in model.pac_bayes_bounds()[0].assumption


def test_independent_rows_are_those_of_the_heaviest_weight():
    for weight, rows in (
        (np.ones(7), 7),
        (np.full(7, 0.3), 7),
        (np.array([1.0, 1.0, 4.0]), 1),
        (np.array([2.0, 1.0, 1.0, 1.0]), 2),
        (np.array([1e-300, 1e-300]), 2),
    ):
        assert independent_rows(weight.sum(), weight.max()) == rows


def test_a_weighted_mean_is_dominated_by_the_plain_mean_of_fewer_rows():
    """E f(weighted mean) <= E f(mean of m rows) for convex f, m = Σw / max w: by enumeration."""
    weight = np.array([3.0, 2.0, 2.0, 1.0, 1.0, 0.5])
    m, p = independent_rows(weight.sum(), weight.max()), 0.3
    assert m == 3
    rows = np.array(np.meshgrid(*[[0, 1]] * 6)).reshape(6, -1).T
    law = np.prod(np.where(rows, p, 1 - p), axis=1)
    mean = rows @ weight / weight.sum()
    heavy = sum(q * np.exp(m * kl(s, p)) for q, s in zip(law, mean, strict=True))
    few = sum(comb(m, k) * p**k * (1 - p) ** (m - k) * np.exp(m * kl(k / m, p)) for k in range(4))
    assert heavy <= few <= xi(m) + 1e-12
