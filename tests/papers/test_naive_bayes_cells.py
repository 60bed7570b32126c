"""The cells of document 001: what they hold, and what they compute on a small set."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy.stats import ttest_1samp
from sklearn.datasets import load_iris
from sklearn.metrics import roc_auc_score

from laconic.bayes.criterion import WeightedBayes
from laconic.bayes.solver import newton_weights
from laconic.data.datasets import DataSet
from laconic.papers import naive_bayes_tables as paper
from laconic.papers.naive_bayes import (
    LEVELS,
    METRICS,
    TABLE_1,
    WITH_NAMES,
    best_by_level,
    descent_lengths,
    encoded_fold,
    fold_results,
    mean_auc,
)
from laconic.papers.registry import Draws, judge


@pytest.fixture(scope="module")
def fold():
    X, y = load_iris(return_X_y=True, as_frame=True)
    data = DataSet("iris", X, y.to_numpy(), tuple(X.columns))
    every = np.random.default_rng(0).permutation(150)
    return encoded_fold(data, every[:120], every[120:], "2006")


def test_every_number_of_the_document_has_a_cell():
    cells = paper.cells()
    assert len({(cell.place, cell.what) for cell in cells}) == len(cells)
    places = Counter(cell.place.split(",")[0] for cell in cells)
    assert places["Table 1"] == 108
    assert {f"Figure {k}" for k in range(1, 6)} < set(places)
    printed = [c.published for c in cells if c.place == "Section 4.1, the paper's prior"]
    assert [n for n in printed if isinstance(n, float)] == [8, 7, 16, 18, 18, 19, 23]
    assert set(paper.PRINTED) == set(TABLE_1)


@pytest.mark.dataset(*TABLE_1.values(), *WITH_NAMES.values())
def test_table_1_cell_by_cell():
    draws = Draws()
    wrong = {}
    for cell in paper.cells():
        if cell.place.startswith("Table 1"):
            ours = cell.compute(draws)
            if judge(cell.published, ours).word != "reproduced":
                wrong[cell.place, cell.what] = (cell.published, ours.mean)
    assert wrong == {
        ("Table 1, Adult", "Nv"): (15, 14),
        ("Table 1, Satimage", "Ni"): (768, 6435),
        ("Table 1, Satimage", "Nv"): (8, 36),
        ("Table 1, Spam", "Ni"): (4307, 4601),
    }


def test_shorter_searches_are_the_beginnings_of_longer_ones(fold):
    criterion = WeightedBayes(fold.cost, 0.1, 0.5)
    longest = fold.search(criterion, "dgml-vns", 40, 5, seed=3)
    found = best_by_level(longest, fold.train.n_variables, fold.total)
    for level in LEVELS:
        direct = fold.search(criterion, "dgml-vns", 40, level, seed=3)
        np.testing.assert_array_equal(found[level], direct.point)
    assert descent_lengths(longest).sum() + len(longest.details["starts"]) == longest.n_iter


def test_the_results_of_a_fold(fold):
    found = {
        label: dict(zip(METRICS, own, strict=True)) for label, own in fold_results(fold, 0).items()
    }
    minimum = newton_weights(fold.train, WeightedBayes(fold.cost, 0.0, 1.0))
    best = dict(zip(METRICS, fold.metrics(minimum.point), strict=True))["train compression"]
    steps = ["DGML L=1000", "VNS 3", "VNS 4", "VNS 5"]
    reached = [found[label]["train compression"] for label in steps]
    assert reached == sorted(reached)
    assert reached[-1] == pytest.approx(best, abs=1e-4)
    sums = [found[label]["sum of weights"] for label in ("VNS 5", "0.01, 1", "0.1, 1", "0.5, 1")]
    assert sums == sorted(sums, reverse=True)
    assert found["DGML L=N"] == found["DGML L=1000"]
    assert 0 < found["SNB"]["variables"] <= 4


def test_significance_is_a_t_test_of_gains():
    gains = np.random.default_rng(0).normal([[-1.0], [0.0], [0.3], [1.0]], 1.0, (4, 10))
    expected = ttest_1samp(gains, 0.0, axis=1)
    wanted = (expected.pvalue < 0.05) & (gains.mean(axis=1) > 0)
    assert paper.significant(gains).tolist() == wanted.tolist()
    assert paper.significant(np.full(5, 0.1))
    assert not paper.significant(np.zeros(5))


@pytest.mark.parametrize("n_sets", [4, 18, 36])
def test_counts_are_scaled_to_the_36_sets_and_judged_from_all(n_sets):
    draws = Draws()
    rows = np.zeros((n_sets, 10, len(METRICS)))
    better = rows.copy()
    better[: n_sets // 2, :, 0] = 0.1
    draws.once(("001", "results", "2006"), lambda: {"MS 3": better, "DGML L=1000": rows})
    ours = paper.sets_better(draws, code="2006", label="MS 3", other="DGML L=1000")
    assert ours.mean == 18.0
    assert judge(9.0, ours).word == ("refuted" if n_sets == 36 else "undetermined")


def test_the_spread_of_a_count_is_about_that_of_other_folds():
    """Sets whose gains are near the bar: counts of fresh folds vary as the stated spread says."""
    draw = np.random.default_rng(1)
    stated, counts = [], []
    for _ in range(40):
        gains = draw.normal(0.7, 1.0, (36, 10, len(METRICS)))
        draws, found = Draws(), {"a": gains, "b": np.zeros_like(gains)}
        draws.once(("001", "results", "2006"), lambda found=found: found)
        ours = paper.sets_better(draws, code="2006", label="a", other="b")
        stated.append(ours.sd)
        counts.append(ours.mean)
    assert np.mean(stated) == pytest.approx(np.std(counts), rel=0.3)


def test_equal_rows_are_measured_once(fold):
    w = np.random.default_rng(0).random(fold.train.n_variables)
    assert fold.distinct.loss(w) == pytest.approx(fold.train.loss(w), rel=1e-12)
    assert fold.distinct.total_weight == fold.total
    assert len(fold.distinct.source.y) < len(fold.train.source.y)


def test_the_mean_auc_is_that_of_classes_against_the_rest():
    draw = np.random.default_rng(0)
    y, scores = draw.integers(0, 3, 80), np.round(draw.random((80, 4)), 1)
    parts = [(np.mean(y == j), roc_auc_score(y == j, scores[:, j])) for j in range(3)]
    expected = sum(share * auc for share, auc in parts)
    assert mean_auc(y, scores, np.arange(4)) == pytest.approx(expected, rel=1e-12)
