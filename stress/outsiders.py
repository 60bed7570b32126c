"""scikit-learn's own tests, from the installed package, with our classes in place of its own.

``NOT_OURS`` names the tests that do not apply, with the reason; every other test must pass.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from stress.run import FAILED, Part


@dataclass(frozen=True)
class Suite:
    """A test module, the classes that are exchanged in it, and what does not apply."""

    module: str
    classes: str
    not_ours: dict[str, str] = field(default_factory=dict)
    """Reason by pattern of a test's name."""

    def reason(self, test: str) -> str | None:
        found = (why for name, why in self.not_ours.items() if re.match(name, test))
        return next(found, None)


MEDIAN = "the absolute loss is about the median, and its penalty about squares"
SUITES: dict[str, Suite] = {
    "self training": Suite("sklearn.semi_supervised.tests.test_self_training", "SVC"),
    "thresholds": Suite(
        "sklearn.model_selection.tests.test_classification_threshold", "LogisticRegression SVC"
    ),
    "voting": Suite("sklearn.ensemble.tests.test_voting", "LogisticRegression SVC"),
    "huber": Suite(
        "sklearn.linear_model.tests.test_huber",
        "HuberRegressor",
        {
            "test_huber_(max_iter|warm_start)": "iterations of its own optimiser",
            "test_huber_(sparse|scaling_invariant|and_sgd|better_r2)": "scale_ and outliers_: ours "
            "takes epsilon in the unit of y and estimates no scale",
        },
    ),
    "quantile": Suite(
        "sklearn.linear_model.tests.test_quantile",
        "QuantileRegressor",
        {
            "test_(sparse_input|asymmetric_error)": MEDIAN,
            r"test_quantile_estimates_calibration\[0\.(?!5[-\]])": MEDIAN,
            r"test_quantile_toy_example\[0\.(?!5[-\]])": MEDIAN,
            r"test_equivariance\[0\.(?!5[-\]])": MEDIAN,
            "test_error_interior_point_future": "names of its own solvers",
            "test_incompatible_solver": "names of its own solvers",
        },
    ),
    "adaboost": Suite(
        "sklearn.ensemble.tests.test_weight_boosting",
        "AdaBoostClassifier",
        {
            "test_oneclass": "one class is refused",
            "test_(iris|estimator|staged_predict|sample_weights_infinite)": "its own rounds",
            "test_adaboostclassifier_without_sample_weight": "estimators inside are its own",
            "test_(importances|adaboost_numerically_stable_feature)": "importances of trees",
            "test_sparse_classification": "dense tables, said so",
            "test_multidimensional_X": "rows of three dimensions are refused",
            "test_adaboost_decision_function": "its scores of all classes sum to zero",
        },
    ),
    "multioutput": Suite(
        "sklearn.tests.test_multioutput",
        "LogisticRegression",
        {"test_multiclass_multioutput_estimator_predict_proba": "seven digits of where it stops"},
    ),
    "calibration": Suite(
        "sklearn.tests.test_calibration",
        "LogisticRegression LinearSVC",
        {
            "test_temperature_scaling": "C = inf is refused: give a large number",
            "test_calibration_default_estimator": "the default inside is scikit-learn's own",
        },
    ),
    "multiclass": Suite("sklearn.tests.test_multiclass", "LogisticRegression SVC LinearSVC"),
    "pipeline": Suite(
        "sklearn.tests.test_pipeline",
        "LogisticRegression SVC PCA",
        {"test_pipeline_(methods|score_samples)_pca": "n_components='mle' is its own"},
    ),
    "stacking": Suite("sklearn.ensemble.tests.test_stacking", "LogisticRegression SVC LinearSVC"),
    "bagging": Suite(
        "sklearn.ensemble.tests.test_bagging",
        "LogisticRegression SVC",
        {"test_bagging_small_max_features": "one class is refused"},
    ),
    "boosting": Suite("sklearn.ensemble.tests.test_weight_boosting", "SVC"),
    "search": Suite(
        "sklearn.model_selection.tests.test_search",
        "LogisticRegression SVC Ridge",
        {
            "test_search_cv_sample_weight_equivalence": "seven digits; ours are equal to the gap",
            "test_search_cv_results_rank_tie_breaking": "its SVC alone errs at C = 0.001",
        },
    ),
    "validation": Suite(
        "sklearn.model_selection.tests.test_validation",
        "LogisticRegression SVC Ridge",
        {
            "test_(cross_val_score_with_score_func_classification|permutation_score)": "accuracy "
            "of one class against another on iris; ours is one against the rest",
            "test_cross_val_predict_decision_function_shape": "scores of pairs of classes",
            "test_cross_val_predict_input_types": "several targets at once are refused",
        },
    ),
    "elimination": Suite("sklearn.feature_selection.tests.test_rfe", "LogisticRegression SVC"),
    "logistic": Suite("sklearn.linear_model.tests.test_logistic", "LogisticRegression"),
    "svm": Suite("sklearn.svm.tests.test_svm", "SVC"),
    "ridge": Suite("sklearn.linear_model.tests.test_ridge", "Ridge"),
    "pca": Suite("sklearn.decomposition.tests.test_pca", "PCA"),
}
QUICK = ("voting",)


def run_suite(name: str, *options: str) -> tuple[int, int, int, str]:
    """Tests that passed, were skipped or left out, failed; and what pytest said."""
    suite = SUITES[name]
    root = Path(__file__).parent.parent
    path = os.pathsep.join([str(root / "src"), str(root)])
    env = os.environ | {
        "LACONIC_SUITE": name,
        "LACONIC_SUBSTITUTES": suite.classes,
        "PYTHONPATH": path,
    }
    words = ["-q", "-p", "stress.substitutes", "-p", "no:cacheprovider", "-W", "ignore", "-c"]
    command = [sys.executable, "-m", "pytest", *words, os.devnull, "--rootdir=/", "--tb=line"]
    said = subprocess.run(
        [*command, "--pyargs", suite.module, *options],
        env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    text = said.stdout + said.stderr
    last = text.strip().splitlines()[-1] if text.strip() else ""

    def count(word: str) -> int:
        found = re.search(rf"(\d+) {word}", last)
        return int(found[1]) if found else 0

    out = count("deselected") + count("skipped") + count("xfailed")
    return count("passed"), out, count("failed") + count("error"), text


def outcome(number: int) -> str:
    """What came of one suite."""
    name = [*SUITES][number]
    passed, out, failed, text = run_suite(name)
    lead = "" if passed and not failed else f"{FAILED}: "
    if lead:
        print(text[-4000:])
    return f"{lead}{name}: {passed} passed, {out} do not apply, {failed} failed"


PART = Part(
    "outsiders",
    "suites",
    "scikit-learn's tests pass with our classes in place of its own",
    outcome,
    size=len(SUITES),
    quick=1,
)
