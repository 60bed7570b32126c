"""docs/integration.md: every block runs where its package is installed."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "integration.md"
TEXT = PAGE.read_text(encoding="utf-8")
START, *SECTIONS = re.split(r"^## ", TEXT, flags=re.M)
NEEDS = {
    "joblib": "joblib",
    "skops": "skops",
    "shap": "shap",
    "skl2onnx": "skl2onnx",
    "MLflow": "mlflow",
    "fairlearn": "fairlearn",
    "MAPIE": "mapie",
    "skrub": "skrub",
    "Optuna": "optuna",
    "dask": "dask_ml",
}


def code(text):
    return "\n".join(re.findall(r"^```python\n(.*?)^```", text, flags=re.S | re.M))


@pytest.fixture(scope="module")
def start():
    names = {"__name__": "__main__"}
    exec(compile(code(START), "integration.md", "exec"), names)
    # what later sections use of earlier ones, whose package may be absent
    exec(
        "from laconic import SparseAdditiveClassifier\n"
        "numbers = X[['age', 'pay']][:80]\n"
        "curves = SparseAdditiveClassifier(group_penalty=0.01, pairs=0).fit(numbers, y[:80])",
        names,
    )
    return names


def test_every_section_has_its_package():
    assert [text.split("\n")[0] for text in SECTIONS] == list(NEEDS)


@pytest.mark.filterwarnings("ignore")  # of the other libraries
@pytest.mark.parametrize("section", SECTIONS, ids=lambda text: text.split("\n")[0])
def test_the_block_of_a_library_runs(section, start, tmp_path, monkeypatch):
    name = section.split("\n")[0]
    if find_spec(NEEDS[name]) is None:
        pytest.skip(f"{NEEDS[name]} is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    assert code(section)
    exec(compile(code(section), f"integration.md, {name}", "exec"), dict(start))
