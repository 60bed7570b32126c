"""Our classes under the names and with the parameters of scikit-learn's, for its own tests.

As a plugin of pytest (``-p stress.substitutes``) it puts them in place of the originals before a
test module is imported; scikit-learn's own modules are imported first and keep the originals.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

import laconic
from laconic.convex import ConvexRiskRegressor, PrincipalMap

FIRST = (
    "calibration", "cluster", "compose", "decomposition", "discriminant_analysis", "ensemble",
    "feature_selection", "inspection", "linear_model", "metrics", "model_selection", "multiclass",
    "multioutput", "pipeline", "semi_supervised", "svm", "utils.estimator_checks",
)  # fmt: skip


def _logistic(asked: dict[str, Any]) -> Any:
    """Their ``tol`` is about slopes, ours about the objective, which goes with their square."""
    return laconic.GrayZoneLogisticRegression(
        C=asked["C"],
        fit_intercept=asked["fit_intercept"],
        class_weight=asked["class_weight"],
        tol=min(1e-6, max(asked["tol"] ** 2, 1e-14)),
    )


def _svc(asked: dict[str, Any]) -> Any:
    names = ("C", "kernel", "gamma", "degree", "coef0")
    return laconic.ConvexRiskClassifier("hinge", **{name: asked[name] for name in names})


def _linear_svc(asked: dict[str, Any]) -> Any:
    return laconic.ConvexRiskClassifier("hinge", C=asked["C"], fit_intercept=asked["fit_intercept"])


def _ridge(asked: dict[str, Any]) -> Any:
    penalty = float(asked["alpha"])
    return ConvexRiskRegressor(
        "squared", C=1.0 / max(penalty, 1e-16), fit_intercept=asked["fit_intercept"], tol=1e-14
    )


def _huber(asked: dict[str, Any]) -> Any:
    """One scale for all rows: residuals beyond ``epsilon`` count linearly in their own unit."""
    return ConvexRiskRegressor(
        "huber",
        C=0.5 / max(float(asked["alpha"]), 1e-10),
        epsilon=asked["epsilon"],
        fit_intercept=asked["fit_intercept"],
    )


def _quantile(asked: dict[str, Any]) -> Any:
    """The median alone, with a penalty of squares for one of sizes."""
    if asked["quantile"] != 0.5:
        raise NotImplementedError("the absolute loss is about the median")
    return ConvexRiskRegressor(
        "absolute",
        C=0.5 / max(float(asked["alpha"]), 1e-10),
        fit_intercept=asked["fit_intercept"],
    )


def _pca(asked: dict[str, Any]) -> Any:
    return PrincipalMap(n_components=asked["n_components"], standardize=False)


def _boost(asked: dict[str, Any]) -> Any:
    return laconic.CqBoostClassifier(random_state=asked["random_state"])


OURS: dict[str, tuple[str, Callable[[dict[str, Any]], Any]]] = {
    "LogisticRegression": ("sklearn.linear_model", _logistic),
    "SVC": ("sklearn.svm", _svc),
    "LinearSVC": ("sklearn.svm", _linear_svc),
    "Ridge": ("sklearn.linear_model", _ridge),
    "HuberRegressor": ("sklearn.linear_model", _huber),
    "QuantileRegressor": ("sklearn.linear_model", _quantile),
    "PCA": ("sklearn.decomposition", _pca),
    "AdaBoostClassifier": ("sklearn.ensemble", _boost),
}


def substitute(name: str) -> type:
    """Our class with the parameters of scikit-learn's ``name``."""
    package, make = OURS[name]
    peer = getattr(import_module(package), name)
    signature = inspect.signature(peer.__init__)
    asked = {key: p.default for key, p in signature.parameters.items() if key != "self"}
    ours = type(make(asked))

    def __init__(self: Any, *values: Any, **named: Any) -> None:
        bound = signature.bind(self, *values, **named)
        bound.apply_defaults()
        for key, value in list(bound.arguments.items())[1:]:
            setattr(self, key, value)

    def fit(self: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        model = make(self.get_params(deep=False))
        weighted = {} if sample_weight is None else {"sample_weight": sample_weight}
        vars(self).update(
            {key: value for key, value in vars(model.fit(X, y, **weighted)).items() if "_" in
             (key[0], key[-1])}
        )  # fmt: skip
        return self

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    own = dict(make(asked).get_params(deep=False))
    body = own | {"__init__": __init__, "fit": fit, "_parameter_constraints": {}}
    body |= {"__module__": __name__, "__qualname__": name}
    made = type(name, (ours,), body)
    globals()[name] = made  # pickles find it
    return made


def __getattr__(name: str) -> type:
    """Worker processes find the classes of a pickle here."""
    if name in OURS:
        return substitute(name)
    raise AttributeError(name)


def install(names: list[str]) -> None:
    for module in FIRST:
        import_module(f"sklearn.{module}")
    for name in names:
        setattr(import_module(OURS[name][0]), name, substitute(name))


def pytest_configure(config: Any) -> None:
    install(os.environ.get("LACONIC_SUBSTITUTES", "").split())


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Leave out what does not apply, by its name up to the bracket."""
    from stress.outsiders import SUITES

    suite = SUITES[os.environ["LACONIC_SUITE"]]
    out = [item for item in items if suite.reason(item.name) is not None]
    config.hook.pytest_deselected(items=out)
    items[:] = [item for item in items if suite.reason(item.name) is None]
