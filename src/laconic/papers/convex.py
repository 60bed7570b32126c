"""What the draws of document 002 give: each function is one draw, by numbers and texts only.

What the lecture notes say is computed here by other means than the library's own: infima by
scipy's scalar minimiser, linear models by scikit-learn, components by eigenvectors, k-means by its
two steps as they are written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from laconic._typing import Floats, Ints
from laconic.core.losses import CLASSIFICATION_LOSSES, get_loss

FAR = 40.0
"""Scores searched for a least risk; beyond, a logistic loss is rounding."""


def least_risk(phi: Callable[[float], float], eta: float) -> tuple[float, float]:
    """inf over scores f of eta phi(f) + (1 - eta) phi(-f), and where it is.

    >>> value, where = least_risk(lambda u: (1.0 - u) ** 2, 0.9)
    >>> round(value, 6), round(where, 6)
    (0.36, 0.8)
    """
    found = minimize_scalar(
        lambda f: eta * phi(f) + (1.0 - eta) * phi(-f),
        bounds=(-FAR, FAR),
        method="bounded",
        options={"xatol": 1e-11},
    )
    return float(found.fun), float(found.x)


def psi_numbers(name: str) -> dict[str, list[float]]:
    """psi on a grid of theta by minimisation, the loss's own, and the score of least risk."""
    loss = get_loss(name)
    theta = np.linspace(0.0, 0.99, 34)
    found = [least_risk(lambda u: float(loss.value(u)), (1.0 + t) / 2.0) for t in theta]
    at_zero = float(loss.value(0.0))
    step = 1e-6
    slope = float(loss.value(step) - loss.value(-step)) / (2.0 * step)
    return {
        "theta": theta.tolist(),
        "numeric": [at_zero - value for value, _ in found],
        "own": np.asarray(loss.psi(theta)).tolist(),
        "score": [where for _, where in found],
        "slope": [slope],
    }


def theorem_draw(name: str, seed: int, count: int) -> dict[str, float]:
    """Theorem 2.1 on random distributions over four points and random scores.

    The largest psi(excess of the risk) minus excess of the convex risk, and the largest ratio of
    both where a sign is wrong.
    """
    loss, draw = get_loss(name), np.random.default_rng(seed)
    eta = draw.random((count, 4))
    mass = draw.dirichlet(np.ones(4), count)
    score = draw.normal(0.0, draw.choice([0.01, 0.3, 2.0], (count, 1)), (count, 4))
    wrong = np.where(score >= 0.0, 1.0 - eta, eta)
    risk = (mass * (wrong - np.minimum(eta, 1.0 - eta))).sum(axis=1)
    values = eta * loss.value(score) + (1.0 - eta) * loss.value(-score)
    # the least risk is concave in eta: between tabulated ones a line is below it, which can only
    # help the theorem by 1e-6
    grid = np.linspace(0.0, 1.0, 1001)
    least = [least_risk(lambda u: float(loss.value(u)), (1.0 + t) / 2.0)[0] for t in grid]
    inside = np.interp(np.abs(2.0 * eta - 1.0), grid, least)
    convex = (mass * (values - inside)).sum(axis=1)
    above = np.asarray(loss.psi(risk)) - convex
    err = risk > 0.0
    return {
        "excess": float(above.max()),
        "tightest": float(np.max(np.asarray(loss.psi(risk[err])) / convex[err])),
    }


def bayes_draw(seed: int) -> dict[str, float]:
    """The least risk of all 32 classifiers of five points, minus E min(eta, 1 - eta)."""
    draw = np.random.default_rng(seed)
    eta, mass = draw.random(5), draw.dirichlet(np.ones(5))
    signs = np.array([[1 if k >> j & 1 else -1 for j in range(5)] for k in range(32)])
    risks = np.where(signs > 0, 1.0 - eta, eta) @ mass
    best = signs[int(np.argmin(risks))]
    return {
        "gap": float(risks.min() - mass @ np.minimum(eta, 1.0 - eta)),
        "differ": float(np.mean(best != np.where(2.0 * eta - 1.0 >= 0.0, 1, -1))),
    }


# ---- linear models ---------------------------------------------------------------------------


def _rows(seed: int, n: int = 200) -> tuple[Floats, Floats]:
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(n, 3))
    return X, X @ [1.0, -1.0, 0.5] + 0.7 * draw.normal(size=n)


def regression_draw(seed: int) -> dict[str, float]:
    """Constants of least loss, the smoothness of the losses, slopes with outliers."""
    from laconic.convex import ConvexRiskRegressor

    X, y = _rows(seed, 201)
    nothing = np.zeros((len(y), 1))
    constants = {
        loss: float(ConvexRiskRegressor(loss=loss).fit(nothing, y).intercept_)
        for loss in ("squared", "absolute")
    }
    soiled = y.copy()
    soiled[:4] = 1e6
    slopes = {
        loss: ConvexRiskRegressor(loss=loss, C=100.0).fit(X, soiled).coef_ - [1.0, -1.0, 0.5]
        for loss in ("squared", "absolute", "huber")
    }
    eps, step = 1.35, 1e-7
    huber = get_loss("huber", task="regression", epsilon=eps)
    absolute = get_loss("absolute", task="regression")
    at = [float(huber.value(eps + s)) for s in (-step, 0.0, step)]
    return {
        "mean": constants["squared"] - float(y.mean()),
        "median": constants["absolute"] - float(np.median(y)),
        "huber kink": (at[2] - 2.0 * at[1] + at[0]) / step,
        "absolute kink": float(
            (absolute.value(step) - 2.0 * absolute.value(0.0) + absolute.value(-step)) / step
        ),
        **{f"outliers, {loss}": float(np.abs(own).max()) for loss, own in slopes.items()},
    }


def classifier_draw(seed: int) -> dict[str, float]:
    """Section 2.2: the three losses are least squares, likelihood and support vector machine."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import log_loss
    from sklearn.svm import SVC

    from laconic.convex import ConvexRiskClassifier

    X, response = _rows(seed)
    y = np.where(response + 0.5 * np.random.default_rng(seed + 1).normal(size=len(X)) > 0, 1, -1)
    score = X @ [0.3, -0.2, 0.9] - 0.1
    logistic = get_loss("logistic").value(y * score).mean()
    chance = 1.0 / (1.0 + np.exp(-score))
    squared = get_loss("squared").value(y * score) - (y - score) ** 2
    svm = SVC(kernel="linear", C=1.0, tol=1e-8).fit(X, y)
    slack = np.maximum(0.0, 1.0 - y * svm.decision_function(X)).sum()
    theirs = 0.5 * float((svm.coef_**2).sum()) + float(slack)
    ours = float(ConvexRiskClassifier(loss="hinge").fit(X, y).objective_[0])
    peer = LogisticRegression(C=1.0, tol=1e-10, max_iter=1000).fit(X, y)
    fitted = ConvexRiskClassifier(loss="logistic").fit(X, y)
    return {
        "squared": float(np.abs(squared).max()),
        "likelihood": float(logistic - log_loss(y, chance)),
        "svm": ours / theirs - 1.0,
        "logistic": float(np.abs(fitted.coef_ - peer.coef_).max()),
    }


def classes_draw(name: str, seed: int) -> dict[str, float]:
    """Section 3.1 on half of a set: one class against the rest, and the joint loss."""
    from sklearn.datasets import load_iris, load_wine
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    from laconic.convex import ConvexRiskClassifier

    X, y = {"iris": load_iris, "wine": load_wine}[name](return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=seed)
    scale = StandardScaler().fit(X)
    X, X_test = scale.transform(X), scale.transform(X_test)
    rest = ConvexRiskClassifier(multi_class="ovr").fit(X, y)
    joint = ConvexRiskClassifier(multi_class="joint").fit(X, y)
    alone = [LogisticRegression(tol=1e-10, max_iter=5000).fit(X, y == k).coef_[0] for k in range(3)]
    peer = LogisticRegression(tol=1e-10, max_iter=5000).fit(X, y)
    largest = rest.decision_function(X_test).argmax(axis=1)
    return {
        "apart": float(np.abs(rest.coef_ - alone).max()),
        "together": float(np.abs(joint.predict_proba(X) - peer.predict_proba(X)).max()),
        "largest": float(np.mean(rest.predict(X_test) != largest)),
        "risk, one against the rest": float(np.mean(rest.predict(X_test) != y_test)),
        "risk, joint": float(np.mean(joint.predict(X_test) != y_test)),
    }


def ranking_draw(seed: int) -> dict[str, float]:
    """Section 3.2: the ranker, and a classifier of the signs of all differences of two rows."""
    from sklearn.linear_model import LogisticRegression

    from laconic.convex import PairwiseRanker

    X, y = _rows(seed, 60)
    ranker = PairwiseRanker(loss="logistic", C=0.01, tol=1e-10).fit(X, y)
    above, below = np.nonzero(y[:, None] > y[None, :])
    differences = X[above] - X[below]
    signs = np.where(np.arange(len(above)) % 2 == 0, 1, -1)  # either of a pair may stand first
    peer = LogisticRegression(C=0.01, fit_intercept=False, tol=1e-12, max_iter=1000)
    peer.fit(differences * signs[:, None], signs)
    margins = differences @ np.ravel(ranker.coef_)
    return {
        "coefficients": float(np.abs(np.ravel(ranker.coef_) - peer.coef_[0]).max()),
        "in order": float(np.mean(margins > 0.0)),
    }


# ---- k-means ---------------------------------------------------------------------------------


def spots(seed: int, n: int = 60) -> Floats:
    """Three round groups of points in the plane, as in figure 1."""
    draw = np.random.default_rng(seed)
    centres = np.array([[0.0, 0.0], [5.0, 0.0], [2.5, 4.0]])
    return np.concatenate([draw.normal(c, 1.0, (n, 2)) for c in centres])


def lloyd(points: Floats, centres: Floats) -> tuple[Floats, Ints, list[float]]:
    """Steps 1 and 2 of section 4.2 until no point moves; the distortion after every step."""
    path: list[float] = []
    group = np.full(len(points), -1)
    while True:
        far = ((points[:, None, :] - centres[None]) ** 2).sum(axis=2)
        new = far.argmin(axis=1)
        path.append(float(far[np.arange(len(points)), new].sum()))
        if (new == group).all():
            return centres, group, path
        group = new
        centres = np.array([
            points[group == k].mean(axis=0) if (group == k).any() else centres[k]
            for k in range(len(centres))
        ])  # fmt: skip
        path.append(float(((points - centres[group]) ** 2).sum()))


def kmeans_draw(seed: int, starts: int) -> dict[str, Any]:
    """Steps, starts and numbers of groups of k-means on three spots."""
    from laconic.convex import KMeansK

    points, draw = spots(seed), np.random.default_rng(seed + 1000)
    found = []
    for _ in range(starts):
        begin = points[draw.choice(len(points), 3, replace=False)]
        found.append(lloyd(points, begin)[2])
    ends = np.array([path[-1] for path in found])
    best = KMeansK(random_state=0).fit(points)
    slope = KMeansK(criterion="slope", random_state=0).fit(points)
    few = points[::9]  # as many groups as points
    alone = lloyd(few, few.copy())[2][-1]
    corners = np.array([[0.0, 0.0], [0.0, 1.0], [100.0, 0.0], [100.0, 1.0]])
    bad = lloyd(corners, np.array([[50.0, 0.0], [50.0, 1.0]]))[2][-1]
    good = lloyd(corners, np.array([[0.0, 0.5], [100.0, 0.5]]))[2][-1]
    return {
        "rise": float(max(np.diff(path).max(initial=-np.inf) for path in found)),
        "steps": float(max(len(path) for path in found)),
        "one start": float((ends / ends.min() - 1.0).mean()),
        "ten starts": float(np.mean([part.min() for part in np.array_split(ends, starts // 10)])
                            / ends.min() - 1.0),
        "missed": float(np.mean(ends > ends.min() * (1.0 + 1e-6))),
        "library": float(best.distortion_path_[2] / ends.min() - 1.0),
        "rise in K": float(np.diff(best.distortion_path_).max()),
        "own groups": float(alone),
        "arbitrarily bad": bad / good,
        "bic": float(best.k_),
        "bic is three": float(best.k_ == 3),
        "slope is three": float(slope.k_ == 3),
        "path": best.distortion_path_.tolist(),
    }  # fmt: skip


# ---- principal components --------------------------------------------------------------------


def components_draw(seed: int) -> dict[str, float]:
    """Section 5 on a random table of 80 rows and 6 columns."""
    from laconic.convex import PrincipalMap

    draw = np.random.default_rng(seed)
    raw = draw.normal(size=(80, 6)) @ draw.normal(size=(6, 6)) + draw.normal(size=6)
    X = raw - raw.mean(axis=0)
    n, k = len(X), 2
    U, s, Vt = np.linalg.svd(X, full_matrices=False)
    ours = PrincipalMap(n_components=None, standardize=False).fit(raw)
    values, vectors = np.linalg.eigh(X.T @ X)
    turned = vectors[:, ::-1].T
    directions = draw.normal(size=(2000, 6))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    left, deflated = X.copy(), []
    for _ in range(6):
        v = np.linalg.eigh(left.T @ left)[1][:, -1]
        deflated.append(v)
        left = left - np.outer(left @ v, v)
    standard = X / X.std(axis=0)
    Us, ss, Vs = np.linalg.svd(standard, full_matrices=False)
    variables = Vs.T * ss
    error = float(((X - (U[:, :k] * s[:k]) @ Vt[:k]) ** 2).sum())
    u = turned[0]
    return {
        "maximal": float(((X @ ours.axes_[0]).var() - (X @ directions.T).var(axis=0)).min()),
        "factor": float(u @ X.T @ X @ u / (X @ u).var()),
        "eigenvectors": _apart(ours.axes_, turned),
        "singular vectors": _apart(ours.axes_, Vt),
        "deflation": _apart(np.array(deflated), Vt),
        "squares": float(np.abs(np.sqrt(values[::-1]) - s).max() / s[0]),
        "rows": float(np.abs(X @ Vt.T - U * s).max() / s[0]),
        "variables": float(np.abs(X.T @ U - Vt.T * s).max() / s[0]),
        "norm, all": float(np.linalg.norm(variables, axis=1).mean() / np.sqrt(n)),
        "norm, two": float(np.linalg.norm(variables[:, :k], axis=1).min() / np.sqrt(n)),
        "norm, as printed": float(np.linalg.norm(standard.T @ Us, axis=1).mean()),
        "rank error": error / float((s[k:] ** 2).sum()) - 1.0,
        "library": float(((ours.reconstruct(raw, k) - raw) ** 2).sum()) / error - 1.0,
        "other ranks": min(_alternating(X, k, draw) for _ in range(5)) / error - 1.0,
    }


def _apart(A: Floats, B: Floats) -> float:
    """Largest 1 - |cosine| between vectors of the same place."""
    return float((1.0 - np.abs((A * B).sum(axis=1))).max())


def _alternating(X: Floats, k: int, draw: np.random.Generator) -> float:
    """Squared error of a product of rank k whose factors are fitted in turn from a random start."""
    B = draw.normal(size=(k, X.shape[1]))
    for _ in range(200):
        A = np.linalg.lstsq(B.T, X.T, rcond=None)[0].T
        B = np.linalg.lstsq(A, X, rcond=None)[0]
    return float(((X - A @ B) ** 2).sum())


LOSSES = tuple(CLASSIFICATION_LOSSES)
