"""The flow of the house: imports only go left."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import laconic

ROOMS = ["data", "criteria", "solvers", "estimators", "evaluation", "export", "reporting"]
PACKAGE = Path(laconic.__file__).parent


def rooms_imported(path: Path) -> set[str]:
    """Rooms that a file imports when it is loaded or when one of its functions runs."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("laconic.")}
    return found & set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_imports_only_go_left(room):
    allowed = set(ROOMS[: ROOMS.index(room) + 1])
    for path in (PACKAGE / room).rglob("*.py"):
        wrong = rooms_imported(path) - allowed
        assert not wrong, f"{path.relative_to(PACKAGE)} imports {sorted(wrong)}"


def test_private_scikit_learn_is_imported_in_one_file():
    for path in PACKAGE.rglob("*.py"):
        if path.name == "contract.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sklearn"):
                private = [a.name for a in node.names if a.name.startswith("_")]
                private += [part for part in node.module.split(".") if part.startswith("_")]
                assert not private, f"{path.relative_to(PACKAGE)}: {node.module} {private}"


def test_the_detector_sees_imports():
    assert "data" in rooms_imported(PACKAGE / "estimators" / "contract.py")


@pytest.mark.parametrize("name", [name for name in laconic.__all__ if name != "__version__"])
def test_every_public_name_exists_and_is_documented(name):
    assert getattr(laconic, name).__doc__


def test_the_reference_lists_every_public_name():
    page = (Path(__file__).parent.parent / "docs" / "api.md").read_text().split()
    assert [name for name in laconic.__all__ if name not in page] == ["__version__"]


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        laconic.Nothing
