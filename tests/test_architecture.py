"""The map of the house: who may import whom, how wide a folder may be, what the door lists."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import laconic

PACKAGE = Path(laconic.__file__).parent
FAMILIES = {
    "linear", "kernel", "convex", "additive", "votes", "modl", "bayes", "minimax", "rules",
    "boosted", "scorecard", "decide",
}  # fmt: skip
BASE = {"_typing", "_door", "_jit", "data", "core"}
# a family stands on the base and on the families named here, on no other
FAMILY_IMPORTS = {
    "linear": {"decide"},
    "kernel": {"linear"},
    "convex": {"linear", "kernel"},
    "bayes": {"modl"},
    "minimax": {"modl", "convex", "decide"},
    "boosted": {"rules"},
    "scorecard": {"linear", "modl", "bayes", "rules"},
}
AFTER = ["choose", "export", "reporting", "watching", "job", "cli"]
MOST_FILES = 15


def allowed_imports(package: str) -> set[str]:
    """The packages that ``package`` may import."""
    if package == "data":
        return {"_typing", "_jit", "data"}
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


def doors() -> list[tuple[str, str]]:
    """(package, name) of everything public."""
    packages = ["laconic", *(f"laconic.{name}" for name in sorted(laconic._PACKAGES))]
    found = [(package, name) for package in packages for name in import_module(package).__all__]
    return [pair for pair in found if pair[1] != "__version__"]


@pytest.mark.parametrize(("package", "name"), doors())
def test_every_public_name_exists_and_is_documented(package, name):
    assert getattr(import_module(package), name).__doc__


def test_the_reference_lists_every_public_name_in_its_package():
    listed, package = set(), ""
    for line in (Path(__file__).parent.parent / "docs" / "api.md").read_text().splitlines():
        if line.startswith(".. currentmodule:: "):
            package = line.split(":: ")[1]
        elif line.startswith("   ") and ":" not in line:
            listed.add((package, line.strip()))
    own = {pair for pair in doors() if pair[0] != "laconic"}
    assert listed == own | {("laconic", name) for name in ("look", "report", "scan", "watch")}


def test_the_first_door_is_narrow_and_leads_to_the_same_things():
    assert 25 <= len(laconic.__all__) <= 35
    homes = {name: package for package, name in doors() if package != "laconic"}
    for name in laconic.__all__:
        if name in homes:
            assert getattr(laconic, name) is getattr(import_module(homes[name]), name)


def test_doors_load_nothing_before_a_name_is_used():
    code = (
        "import sys, laconic, laconic.votes, laconic.displays, laconic.convex; "
        "print(sorted({'numba', 'numpy', 'sklearn', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        laconic.Nothing
