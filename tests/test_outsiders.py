"""scikit-learn's own tests with our classes in place of its own: the quick suites."""

from __future__ import annotations

import pytest
from stress.outsiders import QUICK, run_suite


@pytest.mark.parametrize("name", QUICK)
def test_scikit_learns_own_tests(name):
    passed, _, failed, said = run_suite(name)
    assert passed > 10
    assert failed == 0, said[-3000:]
