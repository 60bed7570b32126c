"""Margin moments: identities between risk, disagreement and joint error."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from laconic.votes.criterion import MarginMoments, residual_c_bound

margins = arrays(np.float64, st.integers(2, 30), elements=st.floats(-1, 1, width=32))


@given(margins)
def test_moments_tell_the_same_story(m):
    moments = MarginMoments.of(m)
    assert moments.gibbs_risk == pytest.approx(np.mean((1 - m) / 2), abs=1e-12)
    assert moments.joint_error == pytest.approx(np.mean(((1 - m) / 2) ** 2), abs=1e-12)
    assert moments.gibbs_risk == pytest.approx(
        moments.joint_error + moments.disagreement / 2, abs=1e-12
    )


@given(margins)
def test_the_c_bound_bounds_the_risk(m):
    bound = MarginMoments.of(m).c_bound()
    assert np.mean(m <= 0) <= bound + 1e-9
    assert residual_c_bound(m) == pytest.approx(bound, abs=1e-7)


def test_weights_are_repetitions():
    m = np.array([0.4, -0.2, 0.9])
    weight = np.array([2.0, 1.0, 3.0])
    again = np.repeat(m, [2, 1, 3])
    assert MarginMoments.of(m, weight).c_bound() == pytest.approx(MarginMoments.of(again).c_bound())
    assert residual_c_bound(m, weight) == pytest.approx(residual_c_bound(again))


def test_tiny_margins_and_tiny_bounds_keep_their_digits():
    m = np.array([1.0, 1.0 + 1e-7, 1.0 - 1e-7])
    exact = 2 / 3 * 1e-14
    assert residual_c_bound(m) == pytest.approx(exact, rel=1e-4)
    assert residual_c_bound(m * 1e-200) == 1.0 or residual_c_bound(m * 1e-100) == pytest.approx(
        exact, rel=1e-4
    )


def test_a_vote_worse_than_chance_has_bound_one():
    assert MarginMoments.of(np.array([-0.5, 0.2])).c_bound() == 1.0
    assert residual_c_bound(np.zeros(4)) == 1.0
