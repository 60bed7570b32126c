"""Every page of the gallery runs, without a warning, and draws or prints something."""

import importlib
import re
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
    """Every class of the reference that is fitted."""
    text = "".join(path.read_text(encoding="utf-8") for path in EXAMPLES)
    page = (EXAMPLES[0].parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
    listed = []
    for module, names in re.findall(
        r"currentmodule:: (\S+)\n.*?toctree: api\n\n(.*?)```", page, re.S
    ):
        family = importlib.import_module(module)
        listed += [(name, getattr(family, name)) for name in names.split()]
    fitted = [name for name, own in listed if hasattr(own, "fit") and hasattr(own, "get_params")]
    assert len(fitted) > 25
    assert [name for name in fitted if name not in text] == []
