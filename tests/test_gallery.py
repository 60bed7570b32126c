"""Every page of the gallery runs, without a warning, and draws or prints something."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*/plot_*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem.removeprefix("plot_"))
def test_the_page_runs(path, capsys):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    runpy.run_path(str(path))
    assert plt.get_fignums() or capsys.readouterr().out.strip()
    plt.close("all")


def test_every_estimator_has_a_page():
    text = "".join(path.read_text(encoding="utf-8") for path in EXAMPLES)
    import laconic

    public = [name for name in laconic.__all__ if name.endswith(("Classifier", "Encoder"))]
    assert [name for name in public if name not in text] == []
