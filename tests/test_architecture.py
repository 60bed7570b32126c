"""The map of the house: who may import whom, how wide a folder may be, what the door lists."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import laconic

PACKAGE = Path(laconic.__file__).parent
FAMILIES = {
    "linear", "kernel", "convex", "additive", "votes", "modl", "bayes", "minimax", "rules",
    "scorecard", "decide",
}  # fmt: skip
BASE = {"_typing", "data", "core"}
# a family stands on the base and on the families named here, on no other
FAMILY_IMPORTS = {
    "linear": {"decide"},
    "kernel": {"linear"},
    "convex": {"linear", "kernel"},
    "bayes": {"modl"},
    "minimax": {"modl", "convex"},
    "scorecard": {"linear", "modl", "bayes"},
}
AFTER = ["choose", "export", "reporting", "job", "cli"]
MOST_FILES = 15


def allowed_imports(package: str) -> set[str]:
    """The packages that ``package`` may import."""
    if package in ("_typing", "data"):
        return {"_typing", "data"}
    if package == "core":
        return BASE
    if package in FAMILIES:
        return BASE | {package} | FAMILY_IMPORTS.get(package, set())
    if package in ("papers", "displays"):
        return BASE | FAMILIES | {package, "choose"}
    return BASE | FAMILIES | {"papers"} | set(AFTER[: AFTER.index(package) + 1])


def packages_imported(path: Path) -> set[str]:
    """Packages that a file imports when it is loaded or when one of its functions runs."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("laconic.")}
    return found


def packages() -> list[str]:
    return sorted(p.name for p in PACKAGE.iterdir() if (p / "__init__.py").exists())


def test_every_package_has_its_place():
    assert set(packages()) == FAMILIES | {"data", "core", "papers"} | set(AFTER)


@pytest.mark.parametrize("package", packages())
def test_imports_follow_the_map(package):
    for path in (PACKAGE / package).rglob("*.py"):
        wrong = packages_imported(path) - allowed_imports(package)
        assert not wrong, f"{path.relative_to(PACKAGE)} imports {sorted(wrong)}"


def test_families_form_no_circle():
    done: set[str] = set()
    while done != FAMILIES:
        ready = {f for f in FAMILIES - done if FAMILY_IMPORTS.get(f, set()) <= done}
        assert ready, f"a circle among {sorted(FAMILIES - done)}"
        done |= ready


def test_folders_are_narrow():
    for folder in {path.parent for path in PACKAGE.rglob("*.py")}:
        files = [p.name for p in folder.glob("*.py") if p.name != "__init__.py"]
        assert len(files) <= MOST_FILES, f"{folder.relative_to(PACKAGE)}: {len(files)} files"


def test_private_scikit_learn_is_imported_in_one_file():
    for path in PACKAGE.rglob("*.py"):
        if path == PACKAGE / "core" / "contract.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sklearn"):
                private = [a.name for a in node.names if a.name.startswith("_")]
                private += [part for part in node.module.split(".") if part.startswith("_")]
                assert not private, f"{path.relative_to(PACKAGE)}: {node.module} {private}"


def test_the_detector_sees_imports():
    assert "data" in packages_imported(PACKAGE / "core" / "contract.py")


@pytest.mark.parametrize("name", [name for name in laconic.__all__ if name != "__version__"])
def test_every_public_name_exists_and_is_documented(name):
    assert getattr(laconic, name).__doc__


def test_the_reference_lists_every_public_name():
    page = (Path(__file__).parent.parent / "docs" / "api.md").read_text().split()
    assert [name for name in laconic.__all__ if name not in page] == ["__version__"]


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        laconic.Nothing
