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


SUITES: dict[str, Suite] = {
    "calibration": Suite("sklearn.tests.test_calibration", "LogisticRegression LinearSVC"),
    "thresholds": Suite(
        "sklearn.model_selection.tests.test_classification_threshold", "LogisticRegression SVC"
    ),
    "multiclass": Suite("sklearn.tests.test_multiclass", "LogisticRegression SVC LinearSVC"),
    "multioutput": Suite("sklearn.tests.test_multioutput", "LogisticRegression"),
    "pipeline": Suite("sklearn.tests.test_pipeline", "LogisticRegression SVC PCA"),
    "voting": Suite("sklearn.ensemble.tests.test_voting", "LogisticRegression SVC"),
    "stacking": Suite("sklearn.ensemble.tests.test_stacking", "LogisticRegression SVC LinearSVC"),
    "bagging": Suite("sklearn.ensemble.tests.test_bagging", "LogisticRegression SVC"),
    "boosting": Suite("sklearn.ensemble.tests.test_weight_boosting", "SVC"),
    "search": Suite("sklearn.model_selection.tests.test_search", "LogisticRegression SVC Ridge"),
    "validation": Suite(
        "sklearn.model_selection.tests.test_validation", "LogisticRegression SVC Ridge"
    ),
    "elimination": Suite("sklearn.feature_selection.tests.test_rfe", "LogisticRegression SVC"),
    "self training": Suite("sklearn.semi_supervised.tests.test_self_training", "SVC"),
    "logistic": Suite("sklearn.linear_model.tests.test_logistic", "LogisticRegression"),
    "svm": Suite("sklearn.svm.tests.test_svm", "SVC"),
    "ridge": Suite("sklearn.linear_model.tests.test_ridge", "Ridge"),
    "pca": Suite("sklearn.decomposition.tests.test_pca", "PCA"),
    "adaboost": Suite("sklearn.ensemble.tests.test_weight_boosting", "AdaBoostClassifier"),
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
