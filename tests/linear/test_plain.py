"""The baseline on tables as they come: wide texts, rare levels, odd numbers."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.sparse import issparse
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from laconic import PlainLogisticRegression


def _mixed(n: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Identifiers, dates and amounts as text, and three numbers of very different size."""
    draw = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "id": [f"u{i}" for i in range(n)],
            "date": [f"2024-{m:02d}-{d:02d}" for m, d in draw.integers(1, [13, 29], (n, 2))],
            "amount": [f"{v:.1f} EUR" for v in draw.lognormal(3, 1, n)],
            "a": draw.normal(1e4, 2.0, n),
            "b": draw.lognormal(0, 2, n),
            "c": np.where(draw.random(n) < 0.1, np.nan, draw.normal(size=n)),
        }
    )
    score = 0.5 * (X.a - 1e4) + np.log(X.b) + draw.logistic(size=n)
    return X, score.to_numpy()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_wide_texts_have_a_design_that_grows_with_the_rows_not_their_square(n_classes: int) -> None:
    X, score = _mixed(4000)
    y = np.digitize(score, [0.0, 1.0][: n_classes - 1])
    model = PlainLogisticRegression().fit(X, y)
    matrix = model.design(X)
    assert issparse(matrix)
    assert matrix.nnz <= 4000 * (X.shape[1] + 1)
    # a level of its own weighs five rows: 3 columns of text, 3 numbers, one indicator, two pools
    assert matrix.shape[1] == len(model.design_names_) <= 3 * 4000 // 5 + 3 + 1 + 2
    assert not any(name.startswith("id") for name in model.design_names_)
    assert model.duality_gap_ <= 1e-10 * model.objective_


@pytest.mark.parametrize("n_classes", [2, 3])
def test_coef_in_own_units_gives_the_decision_function(n_classes: int) -> None:
    X, score = _mixed(500)
    y = np.digitize(score, [0.0, 1.0][: n_classes - 1])
    model = PlainLogisticRegression().fit(X, y)
    rows, _ = _mixed(200, seed=1)  # other identifiers, texts that were never seen
    by_hand = model.design(rows) @ model.coef_.T + model.intercept_
    found = model.decision_function(rows)
    np.testing.assert_allclose(by_hand.reshape(found.shape), found, rtol=0, atol=1e-9)
    place = list(model.design_names_).index("a")
    column = model.design(rows)[:, [place]]
    np.testing.assert_array_equal(column.toarray().ravel(), rows.a)


def test_numbers_alone_are_their_own_design() -> None:
    """What shap's linear explainer relies on: scores are X @ coef_ + intercept_."""
    draw = np.random.default_rng(0)
    X = draw.normal([3.0, -1e3], [1e-3, 50.0], (300, 2))
    y = X[:, 1] > -1e3 + 20 * draw.normal(size=300)
    model = PlainLogisticRegression().fit(X, y)
    assert model.design_names_.tolist() == ["x0", "x1"]
    np.testing.assert_array_equal(model.design(X), X)
    np.testing.assert_allclose(
        X @ model.coef_[0] + model.intercept_[0], model.decision_function(X), atol=1e-9
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_coefficients_are_those_of_scikit_learn_on_the_standardised_design(n_classes: int) -> None:
    X, score = _mixed(400)
    X = X.drop(columns=["id", "amount"])
    y = np.digitize(score, [0.0, 1.0][: n_classes - 1])
    weight = np.random.default_rng(1).uniform(0.2, 2.0, 400)
    model = PlainLogisticRegression(C=0.7).fit(X, y, weight)
    raw = np.asarray(model.design(X).todense())
    centre, scale = np.zeros(raw.shape[1]), np.ones(raw.shape[1])
    for j, name in enumerate(model.design_names_):
        if name in X.columns:
            own = X[name].notna().to_numpy()
            centre[j] = np.average(raw[own, j], weights=weight[own])
            scale[j] = np.sqrt(np.average((raw[own, j] - centre[j]) ** 2, weights=weight[own]))
    peer = LogisticRegression(C=0.7, solver="newton-cholesky", tol=1e-10, max_iter=1000)
    peer.fit((raw - centre) / scale, y, weight)
    np.testing.assert_allclose(
        peer.decision_function((raw - centre) / scale), model.decision_function(X), atol=1e-6
    )


def test_rare_levels_share_a_coefficient_with_texts_never_seen() -> None:
    draw = np.random.default_rng(0)
    text = np.array(["often"] * 40 + ["rarely"] * 4 + ["once"] + ["also"] * 55, dtype=object)
    y = (draw.random(100) < np.where(text == "often", 0.8, 0.2)).astype(int)
    y[40:45] = 1
    model = PlainLogisticRegression().fit({"text": text}, y)
    assert model.design_names_.tolist() == ["text=also", "text=often", "text=(rare)"]
    rare, once, new, none = model.decision_function({"text": ["rarely", "once", "new", None]})
    assert rare == once == new == model.intercept_[0] + model.coef_[0, 2]
    assert none == model.intercept_[0]
    weighted = PlainLogisticRegression().fit(
        {"text": np.array(["often", "rarely", "also"], dtype=object)},
        [1, 1, 0],
        sample_weight=[40.0, 4.0, 56.0],
    )
    assert weighted.design_names_.tolist() == ["text=also", "text=often", "text=(rare)"]


def test_many_coefficients_of_many_classes_reach_the_minimum_of_a_general_solver() -> None:
    """Above 500 coefficients conjugate gradients take over; L-BFGS minimises the same sum."""
    draw = np.random.default_rng(0)
    text = draw.integers(0, 140, 1200)
    y = (text + draw.integers(0, 3, 1200)) % 4
    X = {"t": [f"{k:03d}" for k in text], "x": draw.normal(size=1200)}
    model = PlainLogisticRegression().fit(X, y)
    raw = model.design(X).toarray()
    assert 4 * raw.shape[1] > 500
    place = list(model.design_names_).index("x")
    raw[:, place] = (raw[:, place] - raw[:, place].mean()) / raw[:, place].std()

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        W = flat.reshape(4, -1)
        F = raw @ W[:, :-1].T + W[:, -1]
        total = logsumexp(F, axis=1)
        slope = np.exp(F - total[:, None])
        slope[np.arange(1200), y] -= 1.0
        G = np.c_[slope.T @ raw + W[:, :-1], slope.sum(axis=0)]
        value = 0.5 * (W[:, :-1] ** 2).sum() + (total - F[np.arange(1200), y]).sum()
        return value, G.ravel()

    best = minimize(objective, np.zeros(4 * (raw.shape[1] + 1)), jac=True, method="L-BFGS-B",
                    options={"maxiter": 2000, "ftol": 1e-15, "gtol": 1e-7})  # fmt: skip
    assert abs(model.objective_ - best.fun) <= 1e-8 * best.fun
    assert model.duality_gap_ <= 1e-10 * model.objective_


def _odd(seed: int) -> tuple[pd.DataFrame, np.ndarray, np.ndarray | None]:
    """Small tables with what tables should not have."""
    draw = np.random.default_rng(seed)
    n, scales = int(draw.integers(2, 30)), [5e-324, 1e-310, 1e-300, 1e-20, 1.0, 1e90, 1e300]
    columns = {}
    for j in range(int(draw.integers(1, 5))):
        kind = draw.integers(0, 4)
        values = [
            np.full(n, draw.choice([0.0, 1.0, -3.5])),
            draw.normal(size=n) * draw.choice(scales),
            draw.normal(size=n) + 1e12,
            draw.choice(["a", "b", "c"], n).astype(object),
        ][kind]
        if draw.random() < 0.3:
            values[draw.random(n) < draw.choice([0.2, 1.0])] = None if kind == 3 else np.nan
        columns[f"c{j}"] = values
    y = np.append(draw.integers(0, 3, n - 2), [0, 1])
    weights = [None, draw.random(n), np.full(n, 1e-300), 10.0 ** draw.uniform(-12, 12, n)]
    return pd.DataFrame(columns), y, weights[draw.integers(0, 4)]


def test_a_narrow_column_far_from_zero_is_the_same_problem_in_any_order():
    """Cells were rounded by a hundred-thousandth of the deviation, otherwise as rows came: two
    certificates of one table contradicted each other (generated table 4401)."""
    draw = np.random.default_rng(0)
    near = 8e-12 * draw.normal(size=90)
    X, y = np.column_stack([near, 1.0 + 0.5 * near]), draw.integers(0, 5, 90)
    values = []
    for seed in range(6):
        rows = np.random.default_rng(seed).permutation(90)
        model = PlainLogisticRegression(C=100.0).fit(X[rows], y[rows])
        values.append(float(model.objective_))
    assert np.ptp(values) <= 1e-13 * max(values)


def test_odd_small_tables_have_finite_probabilities() -> None:
    for seed in range(60):
        X, y, weight = _odd(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = PlainLogisticRegression().fit(X, y, weight)
        p = model.predict_proba(X)
        assert np.isfinite(p).all(), seed
        assert np.isfinite(model.coef_).all(), seed
        np.testing.assert_allclose(p.sum(axis=1), 1.0, err_msg=str(seed))
