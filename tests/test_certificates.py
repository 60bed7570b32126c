"""The core claim: value - gap <= the true optimum <= value, for every estimator that says so.

Optima come from elsewhere: a conic solver, a linear program, a general descent on a formula
written out here, or enumeration. Fits that are stopped after one or two steps are checked too,
where the gap is large and a wrong bound would show.
"""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from scipy.optimize import linprog, minimize, minimize_scalar
from scipy.special import gammaln, logsumexp
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel

import conic
import laconic
from estimator_cases import cases_of, public_estimators
from laconic.data.tables.columns import Schema
from laconic.decide import estimate_prior
from laconic.rules.conditions import rules_of
from laconic.votes import StumpVoters

CERTIFIES = {
    "PlainLogisticRegression": "objective",
    "GrayZoneLogisticRegression": "objective",
    "GrayZoneLogisticRegressionCV": "objective of the refit at the chosen zone and C",
    "GrayZoneKernelClassifier": "objective over all functions of the kernel",
    "RankKernelClassifier": "objective over all functions of the kernel",
    "ConvexRiskClassifier": "objective, one for each score",
    "ConvexRiskRegressor": "objective",
    "PairwiseRanker": "objective over all pairs",
    "SparseAdditiveClassifier": "objective for the terms it keeps",
    "ScorecardClassifier": "objective for the parts it found",
    "OptimalScorecardClassifier": "log loss, or cost, of every card of the items on offer",
    "SparseRulesClassifier": "objective over the rules on offer",
    "WeightedNaiveBayes": "criterion over weights in [0, 1]",
    "MinimaxClassifier": "worst risk over class mixes, for the laws learned",
    "MinimaxPriorClassifier": "worst risk over class mixes, if the posteriors are right",
    "CqBoostClassifier": "second moment at the same mean margin",
    "MinCqClassifier": "second moment at the same mean margin",
    "CBBoostClassifier": "second moment at the same mean margin, which it does not close",
    "LPBoostClassifier": "soft margin",
    "CGBoostClassifier": "penalised hinge loss",
    "ModlEncoder": "description length, column by column",
    "BlendedClassifier": "sum of its members' objectives",
    "KMeansK": "distortion, for one column",
    # no optimum is claimed
    "BoostedStepsClassifier": None,
    "SelectiveNaiveBayes": None,
    "PrincipalMap": None,
    "DecisionClassifier": None,
    "LaconicClassifier": None,
}
SEEDS = range(3)
STEPS = [1, 2, 100]


def test_the_table_names_every_estimator():
    assert set(CERTIFIES) == set(public_estimators())


@pytest.mark.parametrize("name", [name for name in CERTIFIES if CERTIFIES[name] is None])
def test_what_certifies_nothing_says_nothing(name):
    X, y, _ = problem(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = cases_of(name)[0].fit(X, y)
    assert not hasattr(model, "duality_gap_")


def problem(seed, n_classes=2, n=36, d=3):
    """Rows, class codes and weights."""
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(n, d)) @ draw.normal(size=(d, d)) + draw.normal(size=d)
    score = X[:, 0] - X[:, 1] + 0.7 * draw.normal(size=n)
    y = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))
    return X, y, draw.integers(1, 4, n).astype(float)


def signs_of(y):
    return np.where(y == 1, 1.0, -1.0)


def fitted(model, X, y, weight=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # stopped early on purpose
        return model.fit(X, y) if weight is None else model.fit(X, y, sample_weight=weight)


def holds(value, gap, optimum, tolerance=2e-7):
    room = tolerance * max(1.0, abs(optimum))
    assert gap >= 0
    assert value - gap <= optimum + room, "the bound is above the optimum"
    assert optimum <= value + room, "the reference is no optimum"


def descent(objective, start, bounds=None):
    """Minimum of a smooth function by a general method, in a few restarts."""
    point = start
    for _ in range(3):
        options = {"maxiter": 20_000, "maxfun": 200_000, "ftol": 1e-16, "gtol": 1e-11}
        found = minimize(
            objective, point, jac=True, bounds=bounds, method="L-BFGS-B", options=options
        )
        point = found.x
    return float(found.fun)


def linear_minimum(loss, slope, X, C, weight):
    """|w|^2/2 + C sum s loss(f)."""
    rows = np.c_[X, np.ones(len(X))]

    def objective(v):
        f = rows @ v
        w = np.r_[v[:-1], 0.0]
        return w @ w / 2 + C * weight @ loss(f), w + C * rows.T @ (weight * slope(f))

    return descent(objective, np.zeros(rows.shape[1]))


def factor(kernel):
    """Features whose products are the kernel."""
    values, vectors = np.linalg.eigh(kernel)
    kept = values > 1e-12 * values.max()
    return vectors[:, kept] * np.sqrt(values[kept])


def standardised(X, weight):
    centre = np.average(X, axis=0, weights=weight)
    return (X - centre) / np.sqrt(np.average((X - centre) ** 2, axis=0, weights=weight))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("max_iter", STEPS)
@pytest.mark.parametrize("seed", SEEDS)
def test_plain_logistic_regression(seed, max_iter, n_classes):
    X, y, weight = problem(seed, n_classes)
    model = fitted(laconic.PlainLogisticRegression(C=0.7, max_iter=max_iter), X, y, weight)
    Z = standardised(X, weight)
    if n_classes == 2:
        best, _ = conic.truncated_logistic(Z, signs_of(y), weight, 0.7, 0.0, 1.0)
    else:
        best = conic.truncated_multinomial(Z, y, weight, 0.7, np.ones(3))
    holds(model.objective_, model.duality_gap_, best)


@pytest.mark.parametrize("max_iter", STEPS)
@pytest.mark.parametrize("seed", SEEDS)
def test_gray_zone_logistic_regression(seed, max_iter):
    X, y, weight = problem(seed)
    model = laconic.GrayZoneLogisticRegression(zone=(0.2, 0.6), C=0.5, max_iter=max_iter)
    model = fitted(model, X, y, weight)
    best, _ = conic.truncated_logistic(X, signs_of(y), weight, 0.5, 0.2, 0.6)
    holds(model.objective_, model.duality_gap_, best)
    X, y, weight = problem(seed, 3)
    model = laconic.GrayZoneLogisticRegression(zone=0.7, C=0.5, max_iter=max_iter)
    model = fitted(model, X, y, weight)
    best = conic.truncated_multinomial(X, y, weight, 0.5, np.full(3, 0.7))
    holds(model.objective_, model.duality_gap_, best)


def test_gray_zone_cross_validation():
    X, y, weight = problem(0)
    model = laconic.GrayZoneLogisticRegressionCV(zones=[(0.2, 0.7)], Cs=[0.1, 1.0], cv=3)
    model = fitted(model, X, y, weight)
    best, _ = conic.truncated_logistic(X, signs_of(y), weight, model.C_, *model.zone_)
    holds(model.objective_, model.duality_gap_, best)


@pytest.mark.parametrize("max_iter", [1, 5, 1000])
@pytest.mark.parametrize("solver", ["smo", "active-set", "block"])
@pytest.mark.parametrize("seed", SEEDS)
def test_gray_zone_kernels(seed, solver, max_iter):
    X, y, weight = problem(seed)
    model = laconic.GrayZoneKernelClassifier(
        gamma=0.5, zone=(0.2, 0.7), C=2.0, solver=solver, max_iter=max_iter
    )
    model = fitted(model, X, y, weight)
    features = factor(rbf_kernel(X, gamma=0.5))
    best, _ = conic.truncated_logistic(features, signs_of(y), weight, 2.0, 0.2, 0.7)
    holds(model.objective_, model.duality_gap_, best)


@pytest.mark.parametrize("seed", SEEDS)
def test_rank_kernels(seed):
    X, y, weight = problem(seed)
    model = fitted(laconic.kernel.RankKernelClassifier(C=3.0, gamma=0.4), X, y, weight)
    table = Schema.learn(X).table
    ranks = np.hstack([m.contribution(table) for m in model.ranked_form_.maps])
    features = factor(rbf_kernel(ranks, gamma=0.4))
    best, _ = conic.truncated_logistic(features, signs_of(y), weight, 3.0, 0.0, 1.0)
    holds(model.objective_, model.duality_gap_, best)


MARGIN_LOSSES = {
    "squared": (lambda m: (1 - m) ** 2, lambda m: 2 * (m - 1)),
    "squared_hinge": (lambda m: np.maximum(1 - m, 0) ** 2, lambda m: -2 * np.maximum(1 - m, 0)),
    "exponential": (lambda m: np.exp(-m), lambda m: -np.exp(-m)),
    "logistic": (lambda m: np.logaddexp(0, -m), lambda m: -1 / (1 + np.exp(m))),
}


@pytest.mark.parametrize("kernel", [None, "rbf"])
@pytest.mark.parametrize("loss", ["hinge", *MARGIN_LOSSES])
@pytest.mark.parametrize("seed", SEEDS)
def test_convex_risk_classifier(seed, loss, kernel):
    X, y, weight = problem(seed)
    features = X if kernel is None else factor(rbf_kernel(X, gamma=0.5))
    side = signs_of(y)
    if loss == "hinge":
        best = conic.hinge(features, side, weight, 0.4)
    else:
        value, slope = MARGIN_LOSSES[loss]
        best = linear_minimum(
            lambda f: value(side * f), lambda f: side * slope(side * f), features, 0.4, weight
        )
    for max_iter in STEPS:
        model = laconic.ConvexRiskClassifier(
            loss, C=0.4, kernel=kernel, gamma=0.5, max_iter=max_iter
        )
        model = fitted(model, X, y, weight)
        holds(model.objective_[0], model.duality_gap_[0], best)


@pytest.mark.parametrize("loss", ["squared", "absolute", "huber"])
@pytest.mark.parametrize("seed", SEEDS)
def test_convex_risk_regressor(seed, loss):
    X, _, weight = problem(seed)
    target = X[:, 0] + np.random.default_rng(seed).standard_t(3, len(X))
    if loss == "absolute":
        best = conic.least_absolute(X, target, weight, 0.6)
    else:
        reach = 1.35 if loss == "huber" else np.inf  # beyond it the loss is a line

        def value(f):
            r = np.abs(f - target)
            inside = np.minimum(r, reach)
            return inside**2 / 2 + inside * (r - inside)

        best = linear_minimum(value, lambda f: np.clip(f - target, -reach, reach), X, 0.6, weight)
    for max_iter in STEPS:
        options = {"epsilon": 1.35} if loss == "huber" else {}
        model = laconic.convex.ConvexRiskRegressor(loss, C=0.6, max_iter=max_iter, **options)
        model = fitted(model, X, target, weight)
        holds(float(model.objective_), float(model.duality_gap_), best)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("seed", SEEDS)
def test_pairwise_ranker(seed, loss):
    X, y, _ = problem(seed, 4, n=20)
    first, second = np.nonzero(y[:, None] > y[None, :])
    D = X[first] - X[second]
    if loss == "hinge":
        both = np.ones(len(D))
        # a free intercept changes nothing when every difference comes with its opposite
        best = conic.hinge(np.r_[D, -D], np.r_[both, -both], np.full(2 * len(D), 0.5), 0.05)
    else:
        value, slope = MARGIN_LOSSES[loss]

        def objective(w):
            t = D @ w
            return w @ w / 2 + 0.05 * value(t).sum(), w + 0.05 * D.T @ slope(t)

        best = descent(objective, np.zeros(X.shape[1]))
    for max_iter in STEPS:
        model = laconic.convex.PairwiseRanker(loss, C=0.05, max_iter=max_iter)
        model = fitted(model, X, y.astype(float))
        holds(model.objective_, model.duality_gap_, best)


@pytest.mark.parametrize("relaxed", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_sparse_additive_classifier(seed, relaxed, monkeypatch):
    from laconic.additive import fit, structure
    from laconic.additive.solver import solve_additive

    solved = []

    def noted(given, *arguments, **named):
        found = solve_additive(given, *arguments, **named)
        solved.append((given, found))
        return found

    for module in (fit, structure):
        monkeypatch.setattr(module, "solve_additive", noted)
    X, y, weight = problem(seed)
    model = laconic.SparseAdditiveClassifier(
        group_penalty=0.01, smoothness=0.5, pairs=0, max_knots=5, relaxed=relaxed
    )
    model = fitted(model, X, y, weight)
    given = next(own for own, found in solved[::-1] if found.value == model.objective_)
    terms = given.terms
    steps = np.eye(terms.n_coordinates)
    Z = np.stack([terms.scores(np.zeros(1), step[None, :])[0] for step in steps], axis=1)
    best = conic.grouped_logistic(
        Z, signs_of(given.y), given.weight, given.diagonal, terms.owner, given.group
    )
    holds(model.objective_, model.duality_gap_, best)


@pytest.mark.parametrize("max_iter", STEPS)
@pytest.mark.parametrize("seed", SEEDS)
def test_scorecard(seed, max_iter):
    X, y, weight = problem(seed, n=60)
    model = fitted(laconic.ScorecardClassifier(C=0.5, max_iter=max_iter), X, y, weight)
    kept = [p for p in model.encoder_.partitions_.values() if p.informative]
    parts = [np.eye(p.n_parts)[p.codes(X[:, p.columns[0]])] for p in kept]
    Z = np.hstack(parts) if parts else np.zeros((len(X), 1))
    best, _ = conic.truncated_logistic(Z, signs_of(y), weight, 0.5, 0.0, 1.0)
    holds(model.objective_, model.duality_gap_, best)


@pytest.mark.parametrize("max_iter", STEPS)
@pytest.mark.parametrize("seed", SEEDS)
def test_sparse_rules(seed, max_iter):
    X, y, weight = problem(seed)
    model = laconic.SparseRulesClassifier(max_rules=20, max_cuts=3, penalty=0.2, max_iter=max_iter)
    model = fitted(model, X, y, weight)
    table = Schema.learn(X).table
    S = rules_of(table, weight, 20, 3).read(table).T.astype(float)
    share = weight @ (y == 1) / weight.sum()
    largest = np.abs(S.T @ (weight * ((y == 1) - share))).max()  # where every rule leaves
    d = S.shape[1]
    best = conic.grouped_logistic(
        S, signs_of(y), weight, np.zeros(d), np.arange(d), np.full(d, 0.2 * largest)
    )
    holds(model.objective_, model.duality_gap_, best)


@pytest.mark.parametrize("options", [{}, {"solver": "dgml", "level": 1}, {"penalty": 0.0}], ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_weighted_naive_bayes(seed, options):
    X, y, weight = problem(seed, 3, n=150)
    model = fitted(laconic.WeightedNaiveBayes(power=1.0, random_state=0, **options), X, y, weight)
    kept = [p for p in model.encoder_.partitions_.values() if p.informative]
    if not kept:
        return
    total = np.bincount(y, weight)
    e = 1.0 / (total.sum() + 1.0)
    tables = [
        np.log((p.class_weights + e) / (total + p.n_parts * e))[p.codes(X[:, p.columns[0]])]
        for p in kept
    ]
    prior = np.log(total / total.sum())
    # what naming a variable and describing its partition cost
    price = np.array([p.preparation_cost + p.construction_cost for p in kept]) - np.log(2.0) - 1
    price = np.maximum(price, 0.0)

    def objective(w):
        F = prior + np.einsum("k,kij->ij", w, tables)
        P = np.exp(F - logsumexp(F, axis=1, keepdims=True))
        own = np.arange(len(y))
        loss = weight @ (logsumexp(F, axis=1) - F[own, y])
        slope = [weight @ ((P * t).sum(axis=1) - t[own, y]) for t in tables]
        return loss + model.penalty * price @ w, np.array(slope) + model.penalty * price

    best = descent(objective, np.full(len(kept), 0.5), [(0.0, 1.0)] * len(kept))
    holds(model.criterion_, model.duality_gap_, best)


def worst_prior(law, costs):
    """max over class mixes of sum_t min_l sum_k pi_k costs_kl law_tk, as a linear program."""
    T, K = law.shape
    rows = [np.hstack([-law * price, np.eye(T)]) for price in costs.T]
    found = linprog(
        np.r_[np.zeros(K), -np.ones(T)],
        A_ub=np.vstack(rows),
        b_ub=np.zeros(T * costs.shape[1]),
        A_eq=np.r_[np.ones(K), np.zeros(T)][None],
        b_eq=[1.0],
        bounds=[(0, None)] * K + [(None, None)] * T,
    )
    return -found.fun


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("max_iter", [1, 3, 5000])
@pytest.mark.parametrize("seed", SEEDS)
def test_minimax(seed, max_iter, n_classes, monkeypatch):
    from laconic.minimax import prior_classifier
    from laconic.minimax.solver import solve_minimax

    X, y, weight = problem(seed, n_classes, n=80)
    costs = np.random.default_rng(seed).uniform(0.5, 3.0, (n_classes, n_classes))
    np.fill_diagonal(costs, 0.0)
    model = laconic.MinimaxClassifier(costs=costs, n_bins=3, cv=None, max_iter=max_iter)
    model = fitted(model, X, y, weight)
    laws = model.model_.laws
    best = worst_prior(laws.rows(0, laws.n_profiles), costs)
    holds(-model.minimax_risk_, model.duality_gap_, -best)
    seen = []

    def noted(laws, *arguments, **named):
        seen.append(laws)
        return solve_minimax(laws, *arguments, **named)

    monkeypatch.setattr(prior_classifier, "solve_minimax", noted)
    meta = laconic.minimax.MinimaxPriorClassifier(
        LogisticRegression(), costs=costs, cv=3, max_iter=max_iter
    )
    meta = fitted(meta, X, y)
    best = worst_prior(seen[0].rows(0, seen[0].n_profiles), costs)
    holds(-meta.minimax_risk_, meta.duality_gap_, -best)


def stump_margins(X, y, weight):
    """y h(x) of every stump on offer and of its complement, and the shares of the rows."""
    side = signs_of(y)
    columns = StumpVoters().prepare(Schema.learn(X).table, weight).columns(side, weight, 0)
    A = side[:, None] * columns.votes(np.arange(columns.n_columns))
    return A, weight / weight.sum(), side


@pytest.mark.parametrize("options", [
    {"mu": 0.5, "max_voters": 2}, {"mu": 0.5}, {"mu": 0.9}, {"mu": 0.9, "max_voters": 4}, None,
], ids=str)  # fmt: skip
@pytest.mark.parametrize("seed", SEEDS)
def test_cq_boost(seed, options):
    X, y, weight = problem(seed)
    if options is None:
        model = laconic.votes.CBBoostClassifier(n_rounds=10)
    else:
        model = laconic.CqBoostClassifier(mu_unit="share", **options)
    model = fitted(model, X, y, weight)
    A, p, side = stump_margins(X, y, weight)
    both = np.c_[A, -A]
    margins = side * model.vote(X)
    best = conic.second_moment(both.T @ (p[:, None] * both), both.T @ p, p @ margins)
    holds(p @ margins**2, model.duality_gap_[0], best)


@pytest.mark.parametrize("share", [0.1, 0.6, 0.95])
@pytest.mark.parametrize("seed", SEEDS)
def test_min_cq(seed, share):
    X, y, weight = problem(seed)
    model = fitted(laconic.votes.MinCqClassifier(mu=share, mu_unit="share"), X, y, weight)
    A, p, side = stump_margins(X, y, weight)
    margins = side * model.vote(X)
    best = conic.second_moment(A.T @ (p[:, None] * A), A.T @ p, p @ margins, box=1.0 / A.shape[1])
    holds(p @ margins**2, model.duality_gap_[0], best)


@pytest.mark.parametrize("nu", [0.5, 0.8])
@pytest.mark.parametrize("seed", SEEDS)
def test_lp_boost(seed, nu):
    X, y, _ = problem(seed)
    model = fitted(laconic.votes.LPBoostClassifier(nu=nu), X, y)
    A, _, side = stump_margins(X, y, np.ones(len(y)))
    both = np.c_[A, -A]
    m, n = both.shape
    found = linprog(
        np.r_[np.zeros(n), np.full(m, 1 / (nu * m)), -1.0],
        A_ub=np.c_[-both, -np.eye(m), np.ones(m)],
        b_ub=np.zeros(m),
        A_eq=np.r_[np.ones(n), np.zeros(m + 1)][None],
        b_eq=[1.0],
        bounds=[*[(0, None)] * (n + m), (None, None)],
    )
    margins = side * model.vote(X)
    soft = max(rho - np.maximum(rho - margins, 0).sum() / (nu * m) for rho in margins)
    holds(-soft, model.duality_gap_[0], found.fun)


@pytest.mark.parametrize("seed", SEEDS)
def test_cg_boost(seed):
    X, y, _ = problem(seed)
    model = fitted(laconic.votes.CGBoostClassifier(C=0.3), X, y)
    A, _, side = stump_margins(X, y, np.ones(len(y)))
    margins = side * model.vote(X)
    square = float(np.square(model.weights_[0]).sum())

    # the vote is the solution divided by the sum of its weights
    def value(scale):
        return scale**2 * square / 2 + 0.3 * np.maximum(1 - scale * margins, 0).sum()

    ours = minimize_scalar(value, bounds=(0.0, 50.0), method="bounded", options={"xatol": 1e-10})
    # a voter and its copies share one weight; votes are those of rows, turned to start with +1
    votes = side[:, None] * A
    distinct = np.unique(votes * np.sign(votes[:1]), axis=1) * side[:, None]
    both = np.ones(len(A))
    # a free intercept changes nothing when every row comes with its opposite
    rows = np.r_[distinct, -distinct]
    best = conic.hinge(rows, np.r_[both, -both], np.full(2 * len(A), 0.5), 0.3)
    holds(ours.fun, model.duality_gap_[0], best, tolerance=1e-6)


def description_length(parts, n_classes):
    """Boullé (2006): number of parts, their bounds, class shares in each, labels in each."""
    n = sum(parts).sum()
    count = len(parts)

    def choose(a, b):
        return gammaln(a + 1) - gammaln(b + 1) - gammaln(a - b + 1)

    total = np.log(n) + choose(n + count - 1, count - 1)
    for part in parts:
        own = part.sum()
        total += choose(own + n_classes - 1, n_classes - 1)
        total += gammaln(own + 1) - gammaln(part + 1).sum()
    return total


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_modl_intervals(seed, n_classes):
    draw = np.random.default_rng(seed)
    x = draw.integers(0, 9, 60).astype(float)
    y = np.digitize(
        x + 2 * draw.normal(size=60), np.quantile(x, np.arange(1, n_classes) / n_classes)
    )
    encoder = laconic.ModlEncoder(code="2006").fit(x[:, None], y)
    (partition,) = encoder.partitions_.values()
    counts = np.array([np.bincount(y[x == value], minlength=n_classes) for value in np.unique(x)])
    lengths = [
        description_length([part.sum(axis=0) for part in np.split(counts, cuts)], n_classes)
        for size in range(len(counts))
        for cuts in itertools.combinations(range(1, len(counts)), size)
    ]
    shift = description_length([counts.sum(axis=0)], n_classes) - partition.null_costs.total
    assert partition.exact
    holds(partition.costs.total + shift, partition.gap, min(lengths), tolerance=1e-10)


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("seed", SEEDS)
def test_kmeans_of_one_column(seed, k):
    draw = np.random.default_rng(seed)
    x = np.sort(draw.normal(size=14) + 3 * draw.integers(0, 3, 14))
    model = laconic.convex.KMeansK(k_max=5).fit(x[:, None])
    best = min(
        sum(((part - part.mean()) ** 2).sum() for part in np.split(x, cuts))
        for cuts in itertools.combinations(range(1, len(x)), k - 1)
    )
    holds(model.distortion_path_[k - 1], 0.0, best, tolerance=1e-10)


def test_blends_add_up_their_members():
    X, y, weight = problem(1, n=80)
    members = [laconic.PlainLogisticRegression(C=0.3), laconic.WeightedNaiveBayes(random_state=0)]
    model = fitted(laconic.BlendedClassifier(members), X, y, weight)
    assert model.duality_gap_ == sum(own.duality_gap_ for own in model.estimators_)


@pytest.mark.parametrize("max_iter", [1, 3, 1000])
@pytest.mark.parametrize("seed", SEEDS)
def test_estimated_prior(seed, max_iter):
    draw = np.random.default_rng(seed)
    proba = draw.dirichlet([0.6, 0.8, 1.2], 60)
    train = np.array([0.2, 0.3, 0.5])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = estimate_prior(proba, train, max_iter=max_iter)
    ratios = proba / train

    def objective(v):
        share = np.exp(v - logsumexp(v))
        density = ratios @ share
        slope = -(ratios / density[:, None]).mean(axis=0)
        return -np.log(density).mean(), share * (slope - share @ slope)

    holds(found.value, found.gap, descent(objective, np.zeros(3)))
