"""No claim on a page that simulation refutes; ``python -m stress.noise`` tries 200 tables."""

from __future__ import annotations

import numpy as np
from stress import noise


def test_noise_is_not_called_better_than_a_rule(tmp_path):
    """Two tables of each kind: at 5 % each, three claims would come once in a hundred times."""
    families = ("logistic",)
    found = [noise.claims(k, tmp_path, 300, families=families) for k in range(2 * len(noise.KINDS))]
    assert sum(found) <= 2


def test_a_signal_is(tmp_path):
    def signal(draw: np.random.Generator, n: int) -> noise.Columns:
        table = noise.plain(draw, n)
        score = np.array([float(cell or 0) for cell in table["score"]])
        return table | {"late": np.where(score + 0.3 * draw.normal(size=n) > 0.5, "1", "0")}

    assert noise.claims(0, tmp_path, 300, signal, ("logistic",))
