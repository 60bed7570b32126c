"""A vote of trees as numbers and texts: the same votes, also at the edges and where cells lack."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import laconic
from laconic.votes.form import _as_double
from laconic.votes.voters.forest import ForestVoters


@pytest.mark.parametrize("classes", [2, 3])
def test_a_forest_is_written_and_read_again(classes, tmp_path):
    draw, n = np.random.default_rng(classes), 300
    X = pd.DataFrame({"x": draw.normal(size=n), "y": draw.integers(0, 9, n) / 3})
    X["kind"] = draw.choice(["a", "b", "c", "d"], n)
    score = X.x + (X.kind == "b") + 0.5 * X.y
    label = np.digitize(score + draw.normal(size=n), [0.5, 1.5][: classes - 1])
    X.loc[draw.random(n) < 0.1, "x"] = np.nan
    X.loc[draw.random(n) < 0.1, "kind"] = None
    voters = ForestVoters(n_trees=30, max_depth=4)
    model = laconic.CqBoostClassifier(voters, proba="calibrated", random_state=0).fit(X, label)
    laconic.save(model, tmp_path / "forest.json")
    loaded = laconic.load(tmp_path / "forest.json")
    new = pd.DataFrame({"x": draw.normal(size=n), "y": draw.integers(-2, 12, n) / 3})
    new["kind"] = draw.choice(["a", "b", "c", "d", "new", None], n)
    for rows in (X, new):
        np.testing.assert_allclose(
            loaded.predict_proba(rows), model.predict_proba(rows), rtol=0, atol=1e-12
        )


def test_thresholds_of_single_precision():
    """Neighbours of the rounding edge go where float32 sends them."""
    draw = np.random.default_rng(0)
    for threshold in [*draw.normal(size=50), 0.1, 1 / 3, 1.0, 0.0]:
        edge = _as_double(threshold)
        assert float(np.float32(edge)) <= threshold
        assert float(np.float32(np.nextafter(edge, np.inf))) > threshold
