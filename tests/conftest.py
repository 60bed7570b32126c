"""Shared by all tests: the ``dataset`` marker and a drawing backend without a screen."""

import os

import pytest

os.environ["MPLBACKEND"] = "Agg"


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip, by name, a test whose data set is not on this machine (never download)."""
    from laconic.data.datasets import available

    missing = [
        name
        for marker in item.iter_markers("dataset")
        for name in marker.args
        if not available(name)
    ]
    if missing:
        pytest.skip(f"data set not on this machine: {', '.join(missing)}")


@pytest.fixture(autouse=True)
def _close_figures():
    """A figure left open by a test must not be drawn on by the next."""
    yield
    import sys

    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def frame():
    """Rows for the tests of scans."""
    from scan_rows import payments

    return payments()


@pytest.fixture
def folder(frame, tmp_path):
    """The same rows in files."""
    from scan_rows import in_files

    return in_files(frame, tmp_path)
