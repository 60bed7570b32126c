"""Losses against finite differences, numerical conjugates and the definition of calibration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import xlog1py, xlogy

from laconic.core import check_calibrated
from laconic.core.calibration import calibration_function, excess_error_bound, zone_psi
from laconic.core.losses import (
    CLASSIFICATION_LOSSES,
    REGRESSION_LOSSES,
    HuberError,
    ScoreLoss,
    TruncatedLogistic,
    fenchel_young,
    get_loss,
)

MARGIN = [make() for make in CLASSIFICATION_LOSSES.values()]
RESIDUAL = [*(make() for make in REGRESSION_LOSSES.values()), HuberError(0.3)]
ZONES = [TruncatedLogistic(0.2, 0.4), TruncatedLogistic(0.3, 0.7)]
EVERY = [*MARGIN, *RESIDUAL, *ZONES]


def name(loss) -> str:
    return repr(loss)


def targets(loss) -> list[float]:
    return [-2.5, 0.0, 1.7] if loss in RESIDUAL else [-1.0, 1.0]


def grid(loss, y: float) -> np.ndarray:
    """Scores that avoid kinks and jumps of the curvature by more than the step below."""
    z = np.linspace(-4.0, 4.0, 401) + 0.00713
    breaks = [loss.kink(np.array([y])).position[0], 1.0, -1.0]
    if loss in RESIDUAL:
        breaks += [y + s * getattr(loss, "epsilon", 0.0) for s in (-1, 1)]
    return z[np.min([np.abs(z - b) for b in breaks], axis=0) > 1e-3]


@pytest.mark.parametrize("loss", EVERY, ids=name)
class TestEveryLoss:
    def test_is_what_a_solver_asks_for(self, loss):
        assert isinstance(loss, ScoreLoss)

    def test_slope_and_curvature_are_derivatives(self, loss):
        for y in targets(loss):
            z = grid(loss, y)
            at = np.full_like(z, y)
            step = 1e-5
            slope = (loss.value(z + step, at) - loss.value(z - step, at)) / (2 * step)
            scale = 1 + np.abs(loss.value(z, at))
            assert np.max(np.abs(slope - loss.slope(z, at)) / scale) < 1e-8
            bend = (loss.slope(z + step, at) - loss.slope(z - step, at)) / (2 * step)
            assert np.max(np.abs(bend - loss.curvature(z, at)) / scale) < 1e-8

    def test_kinks_are_where_the_slope_jumps(self, loss):
        for y in targets(loss):
            at = np.array([y])
            place, low, high = (float(part[0]) for part in loss.kink(at))
            if np.isinf(place):
                z = np.linspace(-5, 5, 20_001)
                jumps = np.abs(np.diff(loss.slope(z, np.full_like(z, y))))
                assert jumps.max() < 0.1
                continue
            assert low < high
            eps = 1e-9
            assert loss.slope(np.array([place - eps]), at)[0] == pytest.approx(low, abs=1e-6)
            assert loss.slope(np.array([place + eps]), at)[0] == pytest.approx(high, abs=1e-6)
            assert loss.slope(np.array([place]), at)[0] == pytest.approx(low, abs=1e-12)

    def test_conjugate_is_the_supremum(self, loss):
        for y in targets(loss):
            at = np.array([y])
            for u in np.linspace(-2.2, 2.2, 45) + 0.0021:
                ours = float(loss.conjugate(np.array([u]), at)[0])

                z = np.linspace(-60, 60, 2401)
                start = z[np.argmin(loss.value(z, np.full_like(z, y)) - u * z)]
                z = np.linspace(start - 0.06, start + 0.06, 24_001)
                best = float(np.max(u * z - loss.value(z, np.full_like(z, y))))
                if np.isinf(ours):
                    # outside the domain the supremum grows with the interval
                    assert abs(start) > 59
                else:
                    assert ours == pytest.approx(best, abs=2e-6)

    def test_fenchel_young_is_zero_at_the_slope_and_positive_elsewhere(self, loss):
        draw = np.random.default_rng(0)
        for y in targets(loss):
            z = draw.uniform(-4, 4, 500)
            at = np.full_like(z, y)
            u = loss.slope(z, at)
            gap = loss.value(z, at) + loss.conjugate(u, at) - u * z
            assert np.max(np.abs(gap) / (1 + np.abs(u * z))) < 1e-13
            other = loss.slope(draw.uniform(-4, 4, 500), at)
            assert fenchel_young(loss, z, other, at).min() >= 0
            raw = loss.value(z, at) + loss.conjugate(other, at) - other * z
            assert raw.min() > -1e-12

    @settings(max_examples=60, deadline=None)
    @given(a=st.floats(-30, 30), b=st.floats(-30, 30), t=st.floats(0, 1), place=st.integers(0, 2))
    def test_is_convex(self, loss, a, b, t, place):
        y = np.array([targets(loss)[place % len(targets(loss))]])
        value = [float(loss.value(np.array([z]), y)[0]) for z in (a, b, t * a + (1 - t) * b)]
        chord = t * value[0] + (1 - t) * value[1]
        assert value[2] <= chord + 1e-12 * (1 + abs(value[0]) + abs(value[1]))


@pytest.mark.parametrize("loss", [*MARGIN, ZONES[1]], ids=name)
@settings(max_examples=60, deadline=None)
@given(z=st.floats(-30, 30), u=st.floats(-3, 3))
def test_classes_are_mirror_images(loss, z, u):
    one, minus = np.ones(1), -np.ones(1)
    at = np.array([z])
    assert loss.value(at, one) == pytest.approx(loss.value(-at, minus), rel=1e-12)
    slope, mirrored = np.array([u]), np.array([-u])
    assert loss.conjugate(slope, one) == pytest.approx(loss.conjugate(mirrored, minus), rel=1e-9)


@pytest.mark.parametrize("loss", RESIDUAL, ids=name)
@settings(max_examples=60, deadline=None)
@given(r=st.floats(-1e3, 1e3), y=st.floats(-50, 50))
def test_residuals_count_alike_on_both_sides(loss, r, y):
    above = loss.value(np.array([y + r]), np.array([y]))
    assert above == pytest.approx(loss.value(np.array([y - r]), np.array([y])), rel=1e-9, abs=1e-9)


# -- calibration -------------------------------------------------------------------------------


def psi_by_definition(value, theta: float) -> float:
    """H^-(eta) - H(eta) with both infima on a fine grid refined around its best point."""
    eta = (1 + theta) / 2

    def risk(f):
        return eta * value(f) + (1 - eta) * value(-f)

    def least(low, high):
        z = np.linspace(low, high, 20_001)
        for _ in range(4):
            best = z[np.argmin(risk(z))]
            width = (z[-1] - z[0]) / 1000
            z = np.linspace(max(best - width, low), min(best + width, high), 20_001)
        return float(risk(z).min())

    return least(-60.0, 0.0) - least(-60.0, 60.0)


@pytest.mark.parametrize("loss", MARGIN, ids=name)
def test_psi_is_its_definition(loss):
    for theta in np.linspace(0, 0.999, 24):
        expected = psi_by_definition(loss.value, theta)
        assert float(loss.psi(theta)) == pytest.approx(expected, abs=1e-9)
        assert calibration_function(loss.value, theta)[0] == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("loss", MARGIN, ids=name)
def test_psi_inverse_undoes_psi(loss):
    theta = np.linspace(0, 1, 101)
    np.testing.assert_allclose(loss.psi_inverse(loss.psi(theta)), theta, atol=2e-7)
    assert float(loss.psi_inverse(1e9)) == 1.0
    assert float(loss.psi_inverse(0.0)) <= 1e-8


def test_logistic_psi_is_above_half_the_square():
    theta = np.linspace(0, 1, 101)
    assert np.all(get_loss("logistic").psi(theta) >= theta**2 / 2 - 1e-15)


@pytest.mark.parametrize("loss", MARGIN, ids=name)
def test_the_theorem_holds_on_random_populations(loss):
    """psi(R - R*) <= R_phi - R_phi*, for random scores on random finite populations."""
    draw = np.random.default_rng(0)
    for _ in range(200):
        mass = draw.dirichlet(np.ones(4))
        eta = draw.random(4)
        score = draw.normal(size=4) * 2
        wrong = np.where(score > 0, 1 - eta, eta)
        excess = mass @ (wrong - np.minimum(eta, 1 - eta))
        at_zero = float(loss.value(0.0))
        least = at_zero - np.asarray(loss.psi(np.abs(2 * eta - 1)))
        risk = eta * loss.value(score) + (1 - eta) * loss.value(-score)
        assert float(loss.psi(excess)) <= mass @ (risk - least) + 1e-12


@pytest.mark.parametrize("zone", [(0.2, 0.4), (0.3, 0.7), (0.0, 1.0), (0.05, 0.1)])
def test_gray_zone_psi_is_its_definition(zone):
    loss = TruncatedLogistic(*zone)
    c = loss.centre
    cut = np.log(c / (1 - c))
    z = np.linspace(-40, 40, 80_001)
    one = np.ones_like(z)
    up, down = loss.value(z, one), loss.value(z, -one)
    for theta in np.linspace(0.01, 2 * min(c, 1 - c) - 0.01, 9):
        sides = []
        for eta, wrong in ((c + theta / 2, z <= cut), (c - theta / 2, z >= cut)):
            risk = eta * up + (1 - eta) * down
            sides.append(risk[wrong].min() - risk.min())
        assert float(zone_psi(loss, theta)) == pytest.approx(min(sides), abs=2e-4)
    bound = excess_error_bound(loss, np.array([0.0, 1e-4, 1e-2]))
    assert np.all(np.diff(bound) > 0)
    # never below the inverse of the smaller side, and exact when both sides are alike
    back = zone_psi(loss, bound[1:] if c == 0.5 else bound[1:] / 2)
    excess = np.array([1e-4, 1e-2])
    assert np.all(back <= excess * (1 + 1e-9))
    assert np.all(zone_psi(loss, bound[1:]) >= excess * (1 - 1e-9))


@pytest.mark.parametrize(
    "loss",
    [*MARGIN, TruncatedLogistic(0.3, 0.7), TruncatedLogistic(0.2, 0.4), TruncatedLogistic(0, 0.3)],
    ids=str,
)
def test_excess_error_bound_covers_thousands_of_populations(loss):
    """The error rate of a score exceeds that of the best function by at most the bound."""
    draw = np.random.default_rng(1)
    mass = draw.dirichlet(np.ones(3), size=3000)
    eta = draw.beta(0.5, 0.5, size=mass.shape)
    centre = loss.centre if isinstance(loss, TruncatedLogistic) else 0.5
    cut = np.log(centre / (1 - centre))
    spread = draw.choice([0.01, 1.0, 5.0], size=(len(mass), 1))
    score = cut + spread * draw.normal(size=mass.shape)
    # a miss weighs 2 (1 - c) and a false alarm 2 c: the plain error rate for c = 1/2
    missed, alarm = 2 * (1 - centre) * eta, 2 * centre * (1 - eta)
    paid = np.where(score > cut, alarm, missed) - np.minimum(alarm, missed)
    if isinstance(loss, TruncatedLogistic):
        best = np.clip(eta, loss.p_min, loss.p_max)
        least = -xlogy(eta, best) - xlog1py(1 - eta, -best)
    else:
        least = loss.value(0.0) - loss.psi(2 * eta - 1)
    one = np.ones_like(eta)
    risk = eta * loss.value(score, one) + (1 - eta) * loss.value(score, -one)
    bound = excess_error_bound(loss, (mass * (risk - least)).sum(axis=1))
    excess_error = (mass * paid).sum(axis=1)
    assert np.all(excess_error <= bound + 1e-12)
    assert np.mean(bound < 1.0) > 0.1
    assert np.mean(excess_error > 0.5 * bound) > 0.01


class TestCheckCalibrated:
    @pytest.mark.parametrize("loss", MARGIN, ids=name)
    def test_accepts_the_losses_of_the_house(self, loss):
        assert check_calibrated(loss) == pytest.approx(float(loss.slope(np.zeros(1))[0]), rel=1e-4)

    @pytest.mark.parametrize(
        ("phi", "why"),
        [
            (lambda m: np.maximum(0.0, -m), "not differentiable at 0"),
            (lambda m: np.logaddexp(0.0, m), "must be negative"),
            (lambda m: np.zeros_like(m), "must be negative"),
            (lambda m: 1.0 / (1.0 + np.exp(m)), "not convex"),
            (lambda m: np.where(m > 2, np.inf, -m), "not finite at margin 2"),
            (lambda m: 1.0, "one loss per margin"),
        ],
    )
    def test_refuses_in_words(self, phi, why):
        with pytest.raises(ValueError, match=why):
            check_calibrated(phi)

    def test_refuses_what_is_not_a_function(self):
        with pytest.raises(TypeError, match="phi must be a function"):
            check_calibrated(3.0)


def test_names_give_losses():
    assert get_loss("gray_zone", p_min=0.1, p_max=0.4) == TruncatedLogistic(0.1, 0.4)
    assert get_loss("huber", task="regression", epsilon=2.0).epsilon == 2.0
    with pytest.raises(ValueError, match="loss must be one of"):
        get_loss("huber")
    with pytest.raises(ValueError, match="epsilon must be a positive number"):
        HuberError(0.0)
