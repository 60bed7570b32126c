"""Covtype, Krummholz against Spruce/Fir: one of the ten splits of Table 3."""

import numpy as np
import pytest

from laconic.core.gray_zone import log_odds
from laconic.papers import gray_zone as paper


def test_printed_zones_are_centred_in_log_odds_and_not_as_the_text_says():
    share = 0.0883
    for low, high in paper.ZONES[1:]:
        centre = (log_odds(low) + log_odds(high)) / 2
        assert abs(1 / (1 + np.exp(-centre)) - share) < 0.006
    geometric = [np.sqrt(low * high) for low, high in paper.ZONES[1:]]
    assert max(abs(np.array(geometric) - share)) > 0.02


@pytest.mark.dataset("covtype")
def test_one_split_gives_the_published_costs_and_shares():
    X, y = paper.krummholz()
    assert X.shape == (232_350, 54)
    assert y.sum() == 20_510
    found = paper.table_3(X, y, n_splits=1)
    # one split wanders by three standard deviations of the spread over splits
    assert np.abs(found["cost"][0] - paper.PUBLISHED_COST).max() < 0.06
    assert np.abs(found["support"][0] - paper.PUBLISHED_SUPPORT).max() < 5.0
