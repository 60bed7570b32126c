"""The cells of document 002: what they hold, and that what they compute can fail."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.cluster import KMeans

from laconic.papers import convex, convex_tables
from laconic.papers.registry import Draws, Measured, judge


@pytest.fixture(scope="module")
def outcomes():
    """Every cell but those of the simulations, from one seed."""
    draws = Draws(quick=True)
    found = {}
    for cell in convex_tables.cells():
        if cell.place.startswith(("Section 2.3", "Example 1", "Section 5", "Section 4")):
            found[cell.place, cell.what] = judge(cell.published, cell.compute(draws)).word
    return found


def test_every_section_of_the_notes_has_cells():
    cells = convex_tables.cells()
    assert len({(cell.place, cell.what) for cell in cells}) == len(cells)
    places = {cell.place.split(",")[0] for cell in cells}
    wanted = [
        "1",
        "2.2",
        "2.3",
        "3.1",
        "3.2",
        "4.2",
        "4.3",
        "4.4",
        "5.1",
        "5.1.1",
        "5.1.2",
        "5.1.3",
    ]
    assert {f"Section {part}" for part in wanted} < places
    assert {"Theorem 2.1", "Example 1", "Figure 1", "Section 5.2"} < places
    assert [figure.number for figure in convex_tables.figures()] == ["1"]


def test_only_the_slips_of_the_notes_are_refuted(outcomes):
    refuted = {key for key, word in outcomes.items() if word == "refuted"}
    assert refuted == {
        ("Section 5.1", "u'X'Xu / Var(u'x)"),
        ("Section 5.1.3", "norm of the variables X'U, standardised columns"),
        ("Section 5.1.3", "least norm of X'U / sqrt(n), two of six components"),
    }


@pytest.mark.parametrize("eta", [0.5, 0.7, 0.95])
def test_the_least_risk_of_the_hinge_is_that_of_a_linear_program(eta):
    """min eta a + (1-eta) b with a >= 1 - f, b >= 1 + f, a, b >= 0."""
    program = linprog(
        [eta, 1.0 - eta, 0.0], A_ub=[[-1, 0, -1], [0, -1, 1]], b_ub=[-1, -1],
        bounds=[(0, None), (0, None), (None, None)],
    )  # fmt: skip
    value, _ = convex.least_risk(lambda u: max(0.0, 1.0 - u), eta)
    assert value == pytest.approx(program.fun, abs=1e-9)


def test_a_loss_that_is_not_calibrated_breaks_the_theorem(monkeypatch):
    """A psi that is too large is found out by the simulation."""
    assert convex.theorem_draw("hinge", 0, 300)["excess"] < 1e-6
    hinge = type(convex.get_loss("hinge"))
    monkeypatch.setattr(hinge, "psi", lambda self, theta: 1.1 * np.abs(theta))
    assert convex.theorem_draw("hinge", 0, 300)["excess"] > 1e-3


def test_the_two_steps_of_k_means_are_those_of_scikit_learn():
    points = convex.spots(3)
    begin = points[[0, 60, 120]]
    centres, group, path = convex.lloyd(points, begin)
    peer = KMeans(3, init=begin, n_init=1, tol=0.0, algorithm="lloyd").fit(points)
    np.testing.assert_allclose(centres, peer.cluster_centers_, atol=1e-12)
    np.testing.assert_array_equal(group, peer.labels_)
    assert path[-1] == pytest.approx(peer.inertia_)


def test_the_worst_is_judged_by_what_is_claimed():
    draws = Draws(quick=True)

    def asked(how):
        return convex_tables.number(
            draws, function=_seed, words=(), key="value", how=how
        )  # fmt: skip

    assert asked("< 1") == Measured.exact(3.0)
    assert asked("> 1") == Measured.exact(-4.0)
    assert asked("0 within 1") == Measured.exact(-4.0)
    assert asked("mean").n_draws == 4


def _seed(seed):
    return {"value": [3.0, -4.0, 0.0, 1.0][seed]}
