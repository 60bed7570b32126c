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
SOLVERS = "names, limits, iterations and random numbers of its own solvers"
SQUARES = "the penalty is one of squares"
INFINITE = "C = inf is refused: give a large number"
PAIRS = "scores of pairs of classes; ours is one against the rest"
NEGATIVE = "negative weights are refused"
HINGE = "a hinge has no probabilities"
ITS_SVC = r"\[(.*-)?SVC"
"""Parametrisations by SVC; those by NuSVC, SVR and others are not exchanged, and pass."""
TARGETS = "several targets at once are refused"
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
            "test_temperature_scaling": INFINITE,
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
            "test_cross_val_predict_decision_function_shape": PAIRS,
            "test_cross_val_predict_input_types": TARGETS,
        },
    ),
    "elimination": Suite(
        "sklearn.feature_selection.tests.test_rfe",
        "LogisticRegression SVC",
        {
            r"test_rfecv\[": f"{PAIRS}, which on iris does as well without the first column",
            "test_rfe_sparse_coef": "sparsify is its own",
        },
    ),
    "logistic": Suite(
        "sklearn.linear_model.tests.test_logistic",
        "LogisticRegression",
        {
            "test_(LogisticRegressionCV_GridSearchCV|LogisticRegression)_elastic_net": SQUARES,
            "test_(elastic_net_coeffs|scores_attribute_layout|lr_penalty_l1ratio)": SQUARES,
            "test_(l1_ratio_|penalty_none)": SQUARES,
            r"test_(elasticnet_l1|penalty_deprecated).*\[LogisticRegression[-\]]": SQUARES,
            "test_elastic_net_(l1_l2|vs_l1|versus_sgd)": "l1_ratio is left out on both sides: "
            "they would pass and say nothing",
            r"test_logistic_regression_cv_refit\[.*-1\]": SQUARES,
            "test_(c_inf_no|logistic_regression_solvers_multiclass_unpen)": INFINITE,
            r"test_warm_start_newton_solver\[inf": INFINITE,
            r"test_(check_solver|liblinear_multiclass).*\[LogisticRegression\]": SOLVERS,
            "test_liblinear_(dual|with_large)": SOLVERS,
            r"test_large_sparse_matrix\[.*-(liblinear|saga?)\]": SOLVERS,
            "test_(newton_cholesky_fallback|max_iter|zero_max_iter)": SOLVERS,
            r"test_warm_start\[\w+-\w+-False-": "warm_start=True: ours begins anew",
            r"test_logistic_cv(_multinomial_score\[neg_log_loss.*|\[)": "digits of where its own "
            "solvers stop inside LogisticRegressionCV; ours stops at a gap",
            r"test_(dtype_match\[.*-(lbfgs|newton|sag)|nan)": "float64 throughout, and other words "
            "for NaN",
            "test_logistic_regression_callback": "callbacks are experimental and its own",
            "test_(logisticregression_warns_with_n_jobs|sparsify)": "n_jobs, sparsify",
            "test_logreg_predict_proba_multinomial": "_predict_proba_lr is its own",
        },
    ),
    "svm": Suite(
        "sklearn.svm.tests.test_svm",
        "SVC",
        {
            "test_(libsvm_parameters|precomputed|tweak_params)": "equal to the last bit; ours are "
            "1e-12 away, and its private arrays are its own",
            rf"test_(probability_raises|svc_nusvc_probA).*{ITS_SVC}": HINGE,
            r"test_(probability\[|hasattr_predict_proba)": HINGE,
            rf"test_(decision_function_shape|svc_invalid_break|svc_ovr_tie).*{ITS_SVC}": PAIRS,
            r"test_(libsvm_convergence_warnings|n_iter_libsvm.*-4-SVC-nd)": SOLVERS,
            "test_weight$": "class_weight: give sample_weight",
            rf"test_negative_(sample_weights|weights_svc_leave_just).*{ITS_SVC}": NEGATIVE,
            r"test_negative_weights?_(svc_leave_two|equal_coeffs).*-1-SVC": NEGATIVE,
            "test_svc_nonfinite_params": "cells of 1e308 are refused in other words",
            rf"test_svm_with_infinite_C{ITS_SVC}": INFINITE,
            "test_(bad_input|sparse_precomputed)": "sparse rows of a dense fit and sparse Gram "
            "matrices are read",
            "test_(gamma_scale|svc_raises_error_internal|immutable_coef)": "_gamma, _n_support and "
            "a coef_ that cannot be set are its own",
            rf"test_custom_kernel_not_array_input{ITS_SVC}": "rows of a kernel are numbers",
        },
    ),
    "ridge": Suite(
        "sklearn.linear_model.tests.test_ridge",
        "Ridge",
        {
            "test_ridge_(cv_custom_multi|cv_individual|cv_multi|individual|shapes)": TARGETS,
            r"test_ridge_(intercept$|cv_results_predictions\[2)": TARGETS,
            r"test_ridge_gcv_sample_weights\[y_shape[23]": TARGETS,
            r"test_dense_sparse\[.*multi_ridge": TARGETS,
            r"test_ridge_(regression\[|fit_intercept_sparse_)": SOLVERS,
            "test_(lbfgs_solver_error|n_iter)": SOLVERS,
            "test_ridge_positive": "positive=True is its own",
            "test_dtype_match": "float64 throughout",
            r"test_ridge_regression_unpenalized_hstacked_X\[.*long": "a penalty of 1e-16 stands "
            "for none: which of equal fits is the shortest is below rounding",
        },
    ),
    "pca": Suite(
        "sklearn.decomposition.tests.test_pca",
        "PCA",
        {
            "test_(pca_sparse|sparse_pca)": "dense tables, said so",
            "test_(pca_solver_equivalence|pca_svd_solver_auto|pca_validation)": SOLVERS,
            "test_(fit_mle|infer_dim|mle_|n_components_mle|pca_dim)": "n_components='mle'",
            r"test_(pca_score|pca_sanity_noise|pca_zero_noise|pca\[)": "the gaussian model of "
            "rows, its covariance and its likelihood are its own",
            "test_(whitening|pca_explained_variance|variance_correctness)": "whitening and "
            "explained_variance_ are its own; ours keeps shares",
            "test_(pca_singular_values|n_components_none|pca_n_components_mostly)": "ours keeps "
            "the singular values and shares of all axes",
            "test_pca_dtype_preservation": "float64 throughout",
        },
    ),
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
