"""Lines of the library broken one at a time, on a copy of the tree: a test must fail for each.

A mutant is a file, a text that stands once in it, what it is changed to, and the tests that see it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path

from stress.mendings import MENDINGS
from stress.run import FAILED, Part

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Mutant:
    file: str
    old: str
    new: str
    tests: str
    more: tuple[tuple[str, str], ...] = ()
    """Further changes of the same file, where one mending covers for another."""

    @property
    def changes(self) -> tuple[tuple[str, str], ...]:
        return ((self.old, self.new), *self.more)


def _of(file: str, tests: str, *changes: tuple[str, str]) -> list[Mutant]:
    return [Mutant(f"src/laconic/{file}.py", old, new, tests) for old, new in changes]


MUTANTS: tuple[Mutant, ...] = (
    *_of(
        "core/losses", "tests/core/test_losses.py src/laconic/core/losses.py",
        ("return np.asarray(np.logaddexp(0.0, -np.asarray(y) * z))",
         "return np.asarray(np.logaddexp(0.0, np.asarray(y) * z))"),
        ("return np.asarray(np.maximum(0.0, 1.0 - np.asarray(y) * z))",
         "return np.asarray(np.maximum(0.0, 2.0 - np.asarray(y) * z))"),
        ("return np.where(np.asarray(y) * z < 1.0, 2.0, 0.0)",
         "return np.where(np.asarray(y) * z < 1.0, 1.0, 0.0)"),
        ("return np.asarray(-np.asarray(y) * self.value(z, y))",
         "return np.asarray(np.asarray(y) * self.value(z, y))"),
        ("return np.asarray(inside * (size - inside / 2.0), dtype=np.float64)",
         "return np.asarray(inside * (size - inside / 3.0), dtype=np.float64)"),
        ("return _within(u, -1.0, 1.0, np.asarray(y) * u)",
         "return _within(u, -2.0, 2.0, np.asarray(y) * u)"),
        ("return _within(a, 0.0, 1.0, -a)", "return _within(a, 0.0, 1.0, a)"),
    ),
    *_of(
        "core/losses", "tests/core/test_losses.py tests/linear/test_kink_newton.py",
        ("return self.p_min, 1.0 - self.p_max", "return self.p_min, self.p_max"),
        ("return self.plain(F, y) - self.floors[y]", "return self.plain(F, y)"),
    ),
    *_of(
        "core/decisions", "tests/decide/test_costs.py tests/decide/test_decision.py",
        ("if false_positive < 0:", "if false_positive < 1:"),
        ("if not np.isfinite(matrix).all():", "if np.isnan(matrix).all():"),
        ("if matrix.ndim not in (2, 3) or matrix.shape[-2:] != square:",
         "if matrix.ndim not in (2, 3):"),
    ),
    *_of(
        "core/forms", "tests/core/test_forms.py tests/export/test_model_file.py",
        ("return np.asarray(softmax(log_expit(scores), axis=1))",
         "return np.asarray(softmax(scores, axis=1))"),
    ),
    *_of(
        "data/row_keys", "tests/data/test_row_keys.py",
        ("many = count[place] >= 2 * n_folds", "many = count[place] >= 0"),
    ),
    *_of(
        "export/atomic", "tests/export/test_atomic.py",
        ("        partial.unlink(missing_ok=True)\n        raise", "        raise"),
        ("return path.exists() and not path.is_file()", "return False"),
    ),
    *_of(
        "export/model_file", "tests/export/test_model_file.py",
        ('if content.get("digest") != _digest(content):', "if False:"),
        ("if not math.isfinite(value):", "if False:"),
    ),
    *_of(
        "linear/solvers/multinomial", "tests/linear",
        ("block[k, inner, k, inner] += 1.0", "block[k, inner, k, inner] += 2.0"),
        ("share = (height > 0).astype(np.float64)", "share = np.ones_like(height)"),
    ),
    *_of(
        "linear/fit", "tests/test_defects.py",
        ("point[..., -1] -= point[..., :-1] @ shift", "pass"),
    ),
    *_of(
        "export/sql_dialects", "tests/export/test_export_sql.py tests/export/test_sql_types.py",
        ("> Fraction(ulp(value)) * Fraction(45, 100):", "> 1:"),
    ),
    *_of(
        "data/tables/axes", "tests/data/test_knots.py tests/core/test_forms.py",
        ("or (values[1:] <= values[:-1]).any():", "or False:"),
    ),
    *_of(
        "decide/shift", "tests/decide/test_shift.py",
        ("if mixes.ndim != 2 or mixes.shape[1] != n_classes:", "if mixes.ndim != 2:"),
    ),
    *_of(
        "decide/sets", "tests/decide/test_sets.py",
        ("if not 0.0 < level < 1.0:", "if not 0.0 <= level <= 1.0:"),
        ("np.where(rows > 0, binom.cdf(wrong, rows, error), 1.0)",
         "np.where(rows > 0, binom.cdf(wrong - 1, rows, error), 1.0)"),
    ),
    *_of(
        "decide/intervals", "tests/decide/test_intervals.py",
        ("return mean * max(1.0 - spread / 9.0 - z * math.sqrt(spread) / 3.0, 0.0) ** 3",
         "return mean * max(1.0 - spread / 9.0, 0.0) ** 3"),
        ("return a - b - reach(a - a_low, b_high - b), a - b + reach(a_high - a, b - b_low)",
         "return a - b - reach(a - a_low, b_high - b), a - b"),
    ),
    *_of(
        "votes/criterion", "tests/votes/test_cbound.py tests/votes/test_pac_bayes.py",
        ("return 0.5 * (1.0 - self.first)", "return 0.5 * (1.0 + self.first)"),
        ("return 0.5 * (1.0 - self.second)", "return 0.5 * self.second"),
        ("return 0.25 * (1.0 - 2.0 * self.first + self.second)",
         "return 0.25 * (1.0 - self.first + self.second)"),
        ("return 1.0 - kl_upper(1.0 - q, budget)", "return 1.0 - kl_upper(q, budget)"),
    ),
    *_of(
        "bayes/criterion", "tests/bayes/test_weighted_bayes.py tests/bayes/test_descent.py",
        ("return loss + self.regulariser(w)", "return loss"),
        ("return loss_slope + self.price", "return loss_slope"),
    ),
    *_of(
        "modl/criterion", "tests/modl/test_modl.py tests/modl/test_partition_search.py",
        ("return self.construction + self.preparation + self.data",
         "return self.construction + self.data"),
    ),
    *_of(
        "minimax/criterion", "tests/minimax/test_minimax.py tests/minimax/test_prior_box.py",
        ("return 1.0 - np.eye(n_classes)", "return 2.0 - 2.0 * np.eye(n_classes)"),
    ),
    *_of(
        "data/reading/dates", "tests/data/test_reading_zoo.py",
        ("if not 1 <= hour <= 12:", "if not 0 <= hour <= 24:"),
    ),
    *_of(
        "data/tables/text", "tests/data/test_csv_dialects.py",
        ("if (regular, header.count(separator)) > most:",
         "if (regular, header.count(separator)) < most:"),
    ),
    *_of(
        "core/folds", "tests/core/test_folds.py",
        ("return train[train >= 0], test[test >= 0]", "return train, test[test >= 0]"),
    ),
    *_of(
        "core/calibration", "src/laconic/core/calibration.py tests/core/test_losses.py",
        ("if not slope < -1e-10:", "if False:"),
    ),
    *_of(
        "decide/costs", "tests/decide/test_costs.py",
        ("if not (weight >= 0).all() or not weight.any():", "if not weight.any():"),
    ),
    *_of(
        "rules/conditions", "tests/rules",
        ("if min(yes, 1.0 - yes) < LEAST_ROWS_SHARE or own.tobytes() in seen:",
         "if own.tobytes() in seen:"),
    ),
    *_of(
        "choose/comparison", "tests/choose/test_comparison.py",
        ("variance[k] = share @ (rows[own] - risk[k]) ** 2 / total",
         "variance[k] = share @ (rows[own] - risk[k]) ** 2"),
    ),
    *_of(
        "core/decisions", "tests/decide/test_costs.py tests/decide/test_decision.py",
        ("total += proba[:, k, None] * matrix[..., k, :]",
         "total += proba[:, k, None] * matrix[..., :, k]"),
    ),
    *_of(
        "core/losses", "tests/convex src/laconic/core/losses.py",
        ("return float(first / 2 + last / 2)", "return float(first)"),
    ),
    *_of(
        "choose/budget", "src/laconic/choose/budget.py tests/choose/test_budget.py",
        ("return float(self.seconds * (rows / self.rows) ** self.power)",
         "return float(self.seconds * (rows / self.rows))"),
    ),
    *_of(
        "decide/guarantee", "src/laconic/decide/guarantee.py",
        ("if binom.cdf(middle, n_rows, wrong) <= delta:",
         "if binom.cdf(middle - 1, n_rows, wrong) <= delta:"),
        ("carried = own if kept[i] else 0.0", "carried = own"),
    ),
    *_of(
        "choose/page/_numba", "tests/choose/test_elimination.py",
        ("free += 2.0 * c * by[b] * unit[at[b]] * inverse[row[i], row[at[b]]]",
         "free += c * by[b] * unit[at[b]] * inverse[row[i], row[at[b]]]"),
        ("cost += left * left / alone", "cost += 0.0"),
        ("by[1], by[2] = share - 1.0, -share", "by[1], by[2] = -share, share - 1.0"),
        ("(kind == SHAPE and n == 2 and beside >= 0 and parts[beside, COUNT] > 0)", "False"),
        ("value[e] -= unit[e] * column[i] * (off / free)", "value[e] -= column[i] * (off / free)"),
        ("inverse[i, j] -= share * column[j]", "inverse[i, j] -= 0.9 * share * column[j]"),
        ("joined[own[gone]] = own[gone - 1]", "joined[own[gone]] = own[0]"),
        ("if cost / spares < best:", "if cost < best:"),
    ),
    *_of(
        "choose/page/elimination", "tests/choose/test_elimination.py",
        ("now, after = after, joined[after]", "break"),
        ("self.row[self.name] = np.arange(len(self.name))",
         "self.row[self.name] = np.arange(len(self.name))[::-1]"),
    ),
    *_of(
        "choose/page/settling", "tests/choose/test_settling.py",
        ("less = -float(g @ away + 0.5 * self.ridge @ away**2)",
         "less = -float(g @ away + self.ridge @ away**2)"),
    ),
    *_of(
        "choose/page/shortening", "tests/choose/test_shortening.py",
        ("            if part.sign:\n                found.append",
         "            if False:\n                found.append"),
        ("            if part.sign:\n                cone =",
         "            if False:\n                cone ="),
    ),
    *_of(
        "data/row_keys", "src/laconic/data/row_keys.py tests/core/test_folds.py",
        ("[(np.flatnonzero(block < b),", "[(np.flatnonzero(block <= b),"),
        ("if n_groups < n_folds:", "if False:"),
    ),
    *_of(
        "data/reading/dates", "src/laconic/data/reading/dates.py",
        ('return frozenset([*parts, "ymd"] if', "return frozenset([*parts] if"),
    ),
    *_of(
        "kernel/kernels", "src/laconic/kernel/kernels.py",
        ("steps = np.minimum(np.diff(values), widest)", "steps = np.diff(values)"),
    ),
    *(
        Mutant(f"src/laconic/{file}.py", *change, test, tuple(more))
        for file, test, change, *more in MENDINGS
    ),
)  # fmt: skip


@lru_cache(maxsize=1)
def copy() -> Path:
    """A copy of the tree to break."""
    place = Path(tempfile.mkdtemp(prefix="laconic-mutants-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    for part in ("src", "tests", "stress", "docs"):
        shutil.copytree(ROOT / part, place / part, ignore=shutil.ignore_patterns("_build"))
    shutil.copy(ROOT / "pyproject.toml", place)
    return place


def exit_code(mutant: Mutant) -> int | None:
    """What pytest ends with on the broken copy: 0 all tests pass, 1 one of them fails."""
    path = copy() / mutant.file
    text = path.read_text(encoding="utf-8")
    broken = text
    for old, new in mutant.changes:
        if text.count(old) != 1:
            raise ValueError(f"{mutant.file} has {text.count(old)} times {old!r}")
        broken = broken.replace(old, new)
    path.write_text(broken, encoding="utf-8")
    try:
        tests = _CLEAN.Process(target=_tested, args=(copy(), mutant.tests.split()))
        tests.start()
        tests.join()
    finally:
        path.write_text(text, encoding="utf-8")
    return None if tests.exitcode is None else tests.exitcode - VERDICT


VERDICT = 10
"""Added to the code of pytest: a process that breaks down ends with 1, and that is no verdict."""
_CLEAN = get_context("forkserver")
_CLEAN.set_forkserver_preload(
    ["numba", "pandas", "pytest", "scipy.optimize", "scipy.sparse.linalg", "sklearn.ensemble"]
)
"""Processes that have loaded what every test needs, and nothing of ours."""


def _tested(root: Path, tests: list[str]) -> None:
    """In a process of its own: run tests on the copy and exit with pytest's code."""
    os.chdir(root)
    os.environ["PYTHONPATH"] = str(root / "src")
    sys.path[:0] = [str(root / "src"), str(root)]
    for name in [name for name in sys.modules if name.split(".")[0] in ("laconic", "stress")]:
        del sys.modules[name]
    import pytest

    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        code = pytest.main(["-qx", "-p", "no:cacheprovider", *tests])
    os._exit(VERDICT + int(code))


CONTROL = Mutant(
    "src/laconic/core/losses.py", "from __future__", "from __future__", "tests/core/test_losses.py"
)
"""Nothing is broken: a copy on which tests fail for another reason would kill every mutant."""


def outcome(number: int) -> str:
    """Killed or survived; the last case is the control."""
    mutant = [*MUTANTS, CONTROL][number]
    code = exit_code(mutant)
    if mutant is CONTROL:
        good = code == 0
        return "unbroken: tests pass" if good else f"{FAILED}: the unbroken copy ends with {code}"
    if code == 1:
        return "killed"
    end = "survived" if code == 0 else f"no verdict (code {code})"
    return f"{FAILED}: {end}: {mutant.file}: {mutant.new[:80]}"


PART = Part("mutants", "mutants", "a test fails for each", outcome, size=len(MUTANTS) + 1, quick=1)
