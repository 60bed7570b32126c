"""The two estimators: identities of the slides, mu, bounds, several classes, weights, errors."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.model_selection import RepeatedStratifiedKFold, train_test_split

from laconic import CqBoostClassifier
from laconic.papers.votes import PUBLISHED_STUMPS, halves, read
from laconic.votes import (
    CBBoostClassifier,
    CGBoostClassifier,
    ForestVoters,
    KernelVoters,
    LPBoostClassifier,
    MinCqClassifier,
    StumpVoters,
)

SLIDES = StumpVoters(constant=False)


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        pytest.param("titanic", 6, marks=pytest.mark.dataset("titanic")),
        pytest.param("monks1", 12, marks=pytest.mark.dataset("monks1")),
        pytest.param("car", 16, marks=pytest.mark.dataset("car")),
        pytest.param("balance", 17, marks=pytest.mark.dataset("balance")),
    ],
)
def test_column_counts_of_the_slides(name, columns):
    """Sum-to-one, mu = 1e-3, both directions: rank of the votes, plus the parked complement."""
    X, y = read(name)
    train, _ = next(halves(y, 1))
    model = CqBoostClassifier(SLIDES, constraint="sum-to-one", mu=1e-3).fit(X[train], y[train])
    assert model.n_voters_ == columns == PUBLISHED_STUMPS[name][0][1]


def test_the_slides_form_does_not_depend_on_mu(cancer):
    X, _, y, _ = cancer
    votes = [
        CqBoostClassifier(SLIDES, constraint="slides", mu=mu).fit(X, y).vote(X)
        for mu in (1e-5, 0.01, 3.0)
    ]
    np.testing.assert_array_equal(votes[0], votes[1])
    np.testing.assert_array_equal(votes[0], votes[2])


def test_c_bound_is_that_of_the_margins_and_of_least_squares(cancer):
    X, _, y, _ = cancer
    model = CqBoostClassifier("stumps", mu="least-squares").fit(X, y)
    margins = np.where(y == 1, 1, -1) * model.vote(X)
    mu1, mu2 = margins.mean(), (margins**2).mean()
    assert model.c_bound_ == pytest.approx(1 - mu1**2 / mu2, abs=1e-9)
    assert model.gibbs_risk_ == pytest.approx((1 - mu1) / 2)
    assert model.disagreement_ == pytest.approx((1 - mu2) / 2)
    signs = np.where(y == 1, 1, -1)
    votes = model.voters_[0].votes(model._read_rows(X), X)
    residual = np.linalg.lstsq(votes, signs, rcond=None)[1]
    left = signs - votes @ np.linalg.lstsq(votes, signs, rcond=None)[0]
    assert model.c_bound_ == pytest.approx(np.mean(left**2), abs=1e-9), residual


@pytest.mark.parametrize("constraint", ["sum-to-one", "oriented"])
@pytest.mark.parametrize("share", [0.3, 0.9])
def test_a_given_mu_is_met(cancer, constraint, share):
    X, _, y, _ = cancer
    model = CqBoostClassifier(constraint=constraint, mu=share, mu_unit="share").fit(X, y)
    assert model.mu_ == pytest.approx(share * model.mu_max_, rel=1e-8)
    assert model.weights_[0].sum() == pytest.approx(1.0)
    assert (model.weights_[0] > 0).all()
    assert 0 <= model.duality_gap_ < 1e-8


def test_quasi_uniform_mu_and_weights(cancer):
    X, _, y, _ = cancer
    model = MinCqClassifier(mu=0.7, mu_unit="share").fit(X, y)
    assert model.mu_ == pytest.approx(0.7 * model.mu_max_, rel=1e-8)
    prepared = StumpVoters().prepare(model._read_rows(X), np.ones(len(y)))
    _, copies = prepared.columns(np.ones(len(y)), np.ones(len(y)), 0).distinct()
    assert copies.sum() == 301  # 30 columns of 10 thresholds and the constant
    assert (np.sort(model.weights_[0]) <= np.sort(copies) / 301 + 1e-12).all()
    assert model.weights_[0].sum() <= 1.0
    assert "quasi-uniform" in [bound.name for bound in model.pac_bayes_bounds()]
    assert model.n_voters_ > 150


def test_mu_above_its_maximum_is_refused(cancer):
    X, _, y, _ = cancer
    with pytest.raises(ValueError, match="above its maximum"):
        CqBoostClassifier(mu=0.99).fit(X, y)
    with pytest.raises(ValueError, match="above its maximum"):
        MinCqClassifier(mu=0.8).fit(X, y)
    with pytest.raises(ValueError, match=r"share of its maximum"):
        CqBoostClassifier(mu=1.5, mu_unit="share").fit(X, y)


def test_early_stopping_is_its_own_parameter(cancer):
    X, _, y, _ = cancer
    counts = [
        CqBoostClassifier(SLIDES, constraint="slides", early_stopping=eps).fit(X, y).n_voters_
        for eps in (0.1, 0.03, 0.001)
    ]
    assert counts == sorted(counts)
    assert counts[0] < 10 < counts[-1]


def test_max_voters_is_kept_and_reoptimised(cancer):
    X, _, y, _ = cancer
    for k in (1, 3, 8):
        model = CqBoostClassifier(mu="least-squares", max_voters=k).fit(X, y)
        assert model.n_voters_ == k
    bounds = [
        CqBoostClassifier(mu="least-squares", max_voters=k).fit(X, y).c_bound_ for k in (1, 3, 8)
    ]
    assert bounds == sorted(bounds, reverse=True)


def test_the_default_is_sparser_and_no_worse_than_mincq():
    X, y = load_breast_cancer(return_X_y=True)
    apart = []
    for seed in range(3):
        A, T, b, u = train_test_split(X, y, test_size=0.5, random_state=seed, stratify=y)
        sparse, dense = CqBoostClassifier().fit(A, b), MinCqClassifier().fit(A, b)
        assert sparse.n_voters_ * 3 <= dense.n_voters_
        apart.append(sparse.score(T, u) - dense.score(T, u))
    assert np.mean(apart) >= -0.01


def test_the_bound_chooses_a_vote_with_a_smaller_bound(cancer):
    X, _, y, _ = cancer
    by_bound = CqBoostClassifier(mu="bound").fit(X, y)
    plain = CqBoostClassifier(mu="least-squares").fit(X, y)

    def tandem(model):
        return next(b.value for b in model.pac_bayes_bounds() if b.name == "tandem")

    assert tandem(by_bound) < 0.6 < tandem(plain)
    for bound in by_bound.pac_bayes_bounds():
        assert "thresholds" in bound.assumption


def test_priced_and_listed_stumps_agree(cancer, monkeypatch):
    X, T, y, _ = cancer
    listed = CqBoostClassifier(mu=0.5, mu_unit="share").fit(X, y)
    monkeypatch.setattr("laconic.votes.tuning.LISTED", 10)
    priced = CqBoostClassifier(mu=0.5, mu_unit="share").fit(X, y)
    assert priced.mu_ == pytest.approx(listed.mu_, rel=1e-3)
    assert priced.c_bound_ == pytest.approx(listed.c_bound_, abs=1e-3)
    assert np.mean(priced.predict(T) == listed.predict(T)) > 0.98


def test_several_classes_one_against_the_rest():
    X, y = load_iris(return_X_y=True)
    model = CqBoostClassifier().fit(X, y)
    assert model.score(X, y) > 0.94
    assert len(model.weights_) == len(model.c_bound_) == 3
    assert model.vote(X).shape == (150, 3)
    np.testing.assert_allclose(model.predict_proba(X).sum(1), 1.0)
    np.testing.assert_array_equal(model.predict(X), model.predict_proba(X).argmax(1))


def test_calibrated_probabilities_beat_the_margin_rule(cancer):
    X, T, y, u = cancer
    plain = CqBoostClassifier().fit(X, y)
    calibrated = CqBoostClassifier(proba="calibrated").fit(X, y)
    np.testing.assert_allclose(plain.predict_proba(T)[:, 1], (1 + plain.vote(T)) / 2)
    assert log_loss(u, calibrated.predict_proba(T)) < log_loss(u, plain.predict_proba(T))
    np.testing.assert_array_equal(calibrated.predict(T), calibrated.predict_proba(T).argmax(1))


def test_a_tie_goes_to_the_first_class():
    H = np.array([[1.0, -1.0], [1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
    model = CqBoostClassifier("scores", mu="least-squares").fit(
        np.r_[H, [[-1.0, 1.0]] * 4], ["b", "b", "a", "b", "a", "a", "b", "b"]
    )
    assert model.predict([[0.0, 0.0]])[0] == "a"


def test_scores_outside_the_unit_interval_are_refused():
    H = np.array([[0.5, 2.0], [-0.5, 0.1]])
    with pytest.raises(ValueError, match=r"outside \[-1, 1\]"):
        CqBoostClassifier("scores").fit(H, [0, 1])


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="at least two classes"):
        CqBoostClassifier().fit([[0.0], [1.0]], [1, 1])


def test_unknown_choices_are_named(cancer):
    X, _, y, _ = cancer
    for params in ({"constraint": "x"}, {"mu": "x"}, {"mu_unit": "x"}, {"proba": "x"}):
        with pytest.raises(ValueError, match=f"The '{next(iter(params))}' parameter"):
            CqBoostClassifier(**params).fit(X, y)
    with pytest.raises(ValueError, match="voters='trees' is not known"):
        CqBoostClassifier("trees").fit(X, y)
    with pytest.raises(TypeError, match="voters must be"):
        CqBoostClassifier(3).fit(X, y)


@pytest.mark.parametrize(
    ("make", "params"),
    [
        (CqBoostClassifier, {"cv": 1}),
        (CqBoostClassifier, {"cv": "five"}),
        (CqBoostClassifier, {"delta": 2}),
        (MinCqClassifier, {"delta": 0.0}),
        (CqBoostClassifier, {"tol": -1}),
        (CqBoostClassifier, {"tol": np.nan}),
        (CqBoostClassifier, {"mu": -0.1}),
        (CqBoostClassifier, {"max_voters": 0}),
        (CqBoostClassifier, {"early_stopping": 1.5}),
        (CqBoostClassifier, {"staged": "yes"}),
        (CqBoostClassifier, {"random_state": "x"}),
        (MinCqClassifier, {"multi_class": "ova"}),
        (MinCqClassifier, {"constraint": "oriented"}),
        (LPBoostClassifier, {"nu": 1.5}),
        (LPBoostClassifier, {"nu": "best"}),
        (CGBoostClassifier, {"C": 0.0}),
        (CBBoostClassifier, {"n_rounds": 0}),
        (CBBoostClassifier, {"tol": 0}),
    ],
)
def test_parameters_out_of_range_are_refused_by_name(cancer, make, params):
    X, _, y, _ = cancer
    with pytest.raises(ValueError, match=f"The '{next(iter(params))}' parameter"):
        make(**params).fit(X, y)


def test_every_parameter_is_constrained():
    for make in (
        CqBoostClassifier,
        MinCqClassifier,
        LPBoostClassifier,
        CGBoostClassifier,
        CBBoostClassifier,
    ):
        assert set(make._parameter_constraints) == set(make().get_params()), make


def test_attributes_have_one_entry_a_vote_whatever_the_number_of_classes():
    X, y = load_iris(return_X_y=True)
    for n_classes in (2, 3):
        kept = y < n_classes
        model = CqBoostClassifier(mu="least-squares", max_voters=3).fit(X[kept], y[kept])
        n_votes = 1 if n_classes == 2 else 3
        assert isinstance(model.weights_, list)
        assert len(model.weights_) == len(model.voters_) == n_votes
        for name in ("n_voters_", "mu_", "mu_max_", "c_bound_", "gibbs_risk_", "disagreement_"):
            assert getattr(model, name).shape == (n_votes,), name
        assert model.duality_gap_.shape == (n_votes,)


def test_rivals_refuse_trees_by_name_and_by_family(cancer):
    X, _, y, _ = cancer
    for voters in ("forest", ForestVoters(5)):
        with pytest.raises(ValueError, match="out of bag"):
            LPBoostClassifier(voters).fit(X, y)


def test_forest_votes_prune_the_forest(cancer):
    X, T, y, u = cancer
    model = CqBoostClassifier(ForestVoters(80), proba="calibrated", random_state=0).fit(X, y)
    whole = RandomForestClassifier(80, min_samples_leaf=5, random_state=0).fit(X, y)
    assert model.n_voters_ < 40
    assert log_loss(u, model.predict_proba(T)) < log_loss(u, whole.predict_proba(T)) + 0.03
    # out of bag, not on the rows that grew the trees
    assert model.gibbs_risk_ > 0.05


def test_fitted_classifiers_vote(cancer):
    X, T, y, u = cancer
    half = len(y) // 2
    models = [
        RandomForestClassifier(3, max_depth=depth, random_state=seed).fit(X[:half], y[:half])
        for depth in (1, 2, 3)
        for seed in range(3)
    ]
    vote = CqBoostClassifier(models, mu="least-squares").fit(X[half:], y[half:])
    assert vote.score(T, u) > 0.9
    assert vote.n_voters_ <= 9
    with pytest.raises(TypeError, match="not a fitted classifier"):
        CqBoostClassifier([RandomForestClassifier()]).fit(X, y)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_kernel_votes(cancer, kernel):
    X, T, y, u = cancer
    assert CqBoostClassifier(kernel).fit(X, y).score(T, u) > 0.93
    gamma = None if kernel == "linear" else "cv"
    model = CqBoostClassifier(KernelVoters(kernel, gamma=gamma)).fit(X, y)
    assert model.score(T, u) > 0.93
    assert model.n_voters_ * 2 < len(y)  # 52 to 134 of 284 over draws of the folds
    land = CqBoostClassifier(
        KernelVoters(kernel, n_landmarks=20), mu="least-squares", random_state=0
    )
    assert land.fit(X, y).n_voters_ <= 21


def test_the_interpolating_vote_is_the_sparse_least_squares_of_the_labels(cancer):
    """With n > m the program has C = 0 and no warning is owed: the certificate is closed."""
    X, _, y, _ = cancer
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = CqBoostClassifier(SLIDES, constraint="slides").fit(X[:60], y[:60])
    assert model.c_bound_ < 1e-8
    assert model.n_voters_ <= 60


@pytest.mark.parametrize(
    "rival", [LPBoostClassifier(), CGBoostClassifier(C=0.01), CBBoostClassifier(n_rounds=60)]
)
def test_rivals_fit_the_same_voters(cancer, rival):
    X, T, y, u = cancer
    rival.fit(X, y)
    assert rival.score(T, u) > 0.9
    assert rival.duality_gap_ >= 0
    assert rival.weights_[0].sum() == pytest.approx(1.0)
    assert len(rival.pac_bayes_bounds()) == 5


def test_lp_boost_says_that_its_vote_is_zero():
    draw = np.random.default_rng(0)
    X, y = draw.normal(size=(80, 3)).round(), draw.integers(0, 2, 80)
    with pytest.warns(UserWarning, match="zero everywhere"):
        model = LPBoostClassifier(StumpVoters(constant=False), nu=0.05).fit(X, y)
    assert model.zero_vote_
    assert not model.vote(X).any()
    assert (model.predict(X) == 0).all()


def test_voters_without_any_margin_vote_alike():
    X, y = [[0.0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]
    with pytest.warns(UserWarning, match="No voter has a positive mean margin"):
        model = CqBoostClassifier(mu="least-squares").fit(X, y)
    assert model.duality_gap_ >= 0


def test_staged_votes_end_at_the_vote(cancer):
    X, T, y, _ = cancer
    model = CqBoostClassifier(max_voters=6, mu="least-squares", staged=True).fit(X, y)
    stages = list(model.staged_vote(T))
    assert len(stages) == 6
    np.testing.assert_allclose(stages[-1], model.vote(T), atol=1e-9)
    with pytest.raises(ValueError, match="staged=True"):
        next(CqBoostClassifier(mu="least-squares").fit(X, y).staged_vote(T))


def test_the_tandem_vote_of_several_classes():
    X, y = load_iris(return_X_y=True)
    model = MinCqClassifier(ForestVoters(40), multi_class="tandem", random_state=0).fit(X, y)
    assert model.score(X, y) > 0.93
    assert all(np.array_equal(model.weights_[0], w) for w in model.weights_)
    assert model.n_voters_[0] < 40
    vote = model.votes_[0]
    assert vote.c_bound == pytest.approx(4 * vote.moments.joint_error)
    (bound,) = model.pac_bayes_bounds()
    assert bound.name == "tandem"
    # no single tree, and no equal vote, has a smaller tandem loss
    from laconic.core.contract import Training
    from laconic.data.tables.columns import Schema

    rows = Training(Schema.learn(X).table, y, np.ones(150), np.arange(150))
    errors = ForestVoters(40).prepare_rows(rows, 0).joint_errors(y, np.ones(150))
    equal = np.full(40, 1 / 40)
    best = vote.moments.joint_error
    assert best <= min(np.diag(errors.both).min(), equal @ errors.both @ equal) + 1e-12
    with pytest.raises(ValueError, match="whole classifiers"):
        MinCqClassifier(multi_class="tandem").fit(X, y)


def test_a_priced_path_is_not_left_on_the_plateau_of_its_first_voter(monkeypatch):
    """One strong voter and many weak ones: the first penalties all give the strong one alone."""
    draw = np.random.default_rng(0)
    y = np.repeat([-1.0, 1.0], 300)
    agree = np.r_[0.9, np.full(40, 0.62)]
    X = np.where(draw.random((600, 41)) < agree, y[:, None], -y[:, None])
    fit, held = np.arange(0, 600, 2), np.arange(1, 600, 2)
    listed = CqBoostClassifier().fit(X[fit], y[fit])
    monkeypatch.setattr("laconic.votes.tuning.LISTED", 10)
    priced = CqBoostClassifier().fit(X[fit], y[fit])
    losses = priced.votes_[0].curve["held_out_loss"]
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)  # the plateau
    assert min(losses) < 0.8 * losses[0]
    assert priced.n_voters_ > 10
    assert priced.score(X[held], y[held]) > listed.score(X[held], y[held]) - 0.02


def test_folds_walk_the_path_of_the_whole(monkeypatch):
    """Kernel centres: the whole is priced while its folds, with fewer centres, are listed."""
    draw = np.random.default_rng(0)
    X = draw.normal(size=(120, 2))
    y = ((X**2).sum(1) > 1.2).astype(int)
    curves = []
    for listed in (10, 110):
        monkeypatch.setattr("laconic.votes.tuning.LISTED", listed)
        curves.append(CqBoostClassifier("rbf").fit(X, y).votes_[0].curve)
    n = min(len(curve["share"]) for curve in curves)
    assert n > 5
    assert curves[0]["share"][:n] == curves[1]["share"][:n]
    np.testing.assert_allclose(
        curves[0]["held_out_loss"][:n], curves[1]["held_out_loss"][:n], rtol=0.15
    )


def test_repeated_folds_average_the_losses_of_their_rounds(cancer):
    X, _, y, _ = cancer
    folds = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)
    pairs = list(folds.split(X, y))
    for make in (CqBoostClassifier, MinCqClassifier):
        single = [
            make(cv=part).fit(X, y).votes_[0].curve["held_out_loss"]
            for part in (pairs[:3], pairs[3:])
        ]
        assert single[0] != single[1]
        both = make(cv=folds).fit(X, y).votes_[0].curve["held_out_loss"]
        np.testing.assert_allclose(both, np.mean(single, axis=0), rtol=1e-12)


def test_a_scan_counts_the_same_independent_rows(cancer):
    from laconic import scan

    X, _, y, _ = cancer
    draw = np.random.default_rng(0)
    frame = pd.DataFrame(X[:, :4], columns=list("abcd"))
    weight = draw.integers(1, 5, len(y)).astype(float)
    held = CqBoostClassifier(mu="least-squares", max_voters=3).fit(frame, y, sample_weight=weight)
    rows = scan(frame.assign(label=y, w=weight), "label", weight="w", block_rows=50)
    found = CqBoostClassifier(mu="least-squares", max_voters=3).fit(rows)
    assert found.votes_[0].n_independent == held.votes_[0].n_independent < len(y)
