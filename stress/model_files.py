"""Model files with one to three parts changed and the digest made right again.

Every such file is refused with a :class:`~laconic.export.model_file.ModelFileError`, or it loads
and gives probabilities and decisions of its own classes for any rows.
"""

from __future__ import annotations

import atexit
import contextlib
import copy
import io
import json
import random
import shutil
import tempfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import laconic
from laconic.cli.app import main
from laconic.data.demo import make_payments
from laconic.data.reading.reading import UnreadableCellError
from laconic.export.model_file import ModelFileError, _digest, load
from stress.run import FAILED, Part

NASTY = [
    None, True, False, 0, 1, -1, 2, -0.5, 0.5, 1.5, 1e-320, 1e300, -1e308, 10**17, "", "x", "1.5",
    "missing", [], {}, [[]], [0.0], ["x"], {"x": 1},
]  # fmt: skip


def seeds() -> Iterator[dict[str, Any]]:
    """The contents of a few small models of different forms."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        for model in _models():
            laconic.save(model, path)
            yield json.loads(path.read_text())
        yield from _jobs(Path(folder))


def _models() -> Iterator[Any]:
    table, label = make_payments(120)
    numbers = np.random.default_rng(0).normal(size=(90, 3))
    three = np.array(["a", "b", "c"])[numbers.argmax(axis=1)]
    two = (numbers[:, 0] > 0.2).astype(int)
    costs = {"fraud": {"genuine": 25}, "genuine": {"fraud": 1}}
    decide, minimax = laconic.DecisionClassifier, laconic.MinimaxClassifier
    yield decide(laconic.WeightedNaiveBayes(random_state=0), costs).fit(*make_payments(400))
    card = laconic.ScorecardClassifier(trees=2, random_state=0)
    yield decide(card, costs, prior="balanced").fit(*make_payments(400))
    yield decide(laconic.GrayZoneLogisticRegression(), reject_cost=0.2).fit(numbers, three)
    yield laconic.GrayZoneLogisticRegression(zone=(0.2, 0.8), proba="clip").fit(numbers, two)
    yield laconic.kernel.RankKernelClassifier().fit(numbers[:12], two[:12])
    yield laconic.GrayZoneKernelClassifier("rbf").fit(numbers[:12], two[:12])
    yield laconic.CqBoostClassifier(random_state=0).fit(numbers[:50], three[:50])
    yield laconic.ConvexRiskClassifier("exponential").fit(numbers, two)
    additive = laconic.SparseAdditiveClassifier(group_penalty=0.02, pairs=1, max_knots=4)
    yield decide(additive, guarantee="recall>=0.5").fit(numbers, two)
    rules = laconic.SparseRulesClassifier(max_rules=6, cv=2, random_state=0)
    yield decide(rules, guarantee=["recall(a)>=0.1"], confidence=0.6).fit(numbers, three)
    yield minimax(cv=None, n_bins=2).fit(table, label)
    yield minimax(smoothing="nearest", n_bins=2, cv=None).fit(numbers, three)
    yield minimax(profiles="kmeans", n_profiles=3, cv=None).fit(table, label)
    yield minimax(profiles="tree", n_profiles=5, cv=None).fit(table, label)


def _jobs(folder: Path) -> Iterator[dict[str, Any]]:
    """Files of the command: a reading of dates and amounts, a reference, costs by row."""
    draw = np.random.default_rng(0)
    days = np.datetime64("2024-01-01") + draw.integers(0, 400, 160)
    amounts = [f"{amount:.2f}".replace(".", ",") for amount in draw.normal(50, 20, 160)]
    late = np.where(draw.random(160) < 0.3, "yes", "no")
    lines = map(";".join, zip(days.astype(str), amounts, late, strict=True))
    (folder / "rows.csv").write_text("\n".join(["day;amount;late", *lines]) + "\n")
    rows = str(folder / "rows.csv")
    words = ("fit", rows, "--target", "late", "--positive", "yes", "--model", "logistic", "--cost")
    for own in (("fn=5", "--scenario", "peak:fp=1,fn=9"), ("fp=1", "--cost-column", "fn=amount")):
        out = folder / own[0]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
            main([*words, *own, "--out", str(out)])
        content = json.loads((out / "model.json").read_text())
        content["summary"] = None  # nothing reads it but the report
        yield content


def place_in(content: dict[str, Any], draw: random.Random) -> tuple[Any, Any]:
    """(container, key) of some part: down from the top, so that long lists do not take all."""
    part: Any = content
    while True:
        key = draw.choice(list(part)) if isinstance(part, dict) else draw.randrange(len(part))
        below = part[key]
        if not below or not isinstance(below, dict | list) or draw.random() < 0.15:
            return part, key
        part = below


def near(value: float, draw: random.Random) -> float:
    """A number that stands where one may stand: of another sign, size, or a step away."""
    found = draw.choice((-value, value + 1, value - 1, value * 2, value * 1e6, value / 2))
    return max(min(found, 1e308), -1e308)


def mutated(text: str, draw: random.Random) -> dict[str, Any]:
    """The content with one to three parts replaced, removed, repeated or exchanged."""
    content: dict[str, Any] = json.loads(text)
    for _ in range(draw.randint(1, 3)):
        if not content:
            break
        container, key = place_in(content, draw)
        what = draw.random()
        if what < 0.2 and type(container[key]) in (int, float):
            container[key] = near(container[key], draw)
        elif what < 0.6:
            container[key] = copy.deepcopy(draw.choice(NASTY))
        elif what < 0.75:
            del container[key]
        elif what < 0.85 and isinstance(container, list):
            container.insert(key, copy.deepcopy(container[key]))
        else:
            other, place = place_in(content, draw)
            container[key] = copy.deepcopy(other[place])
    content["digest"] = _digest(content)
    return content


def came_of(content: dict[str, Any], path: Path) -> str:
    """What came of a file: "refused", "works", or the promise that it broke."""
    path.write_text(json.dumps(content))
    try:
        model = load(path)
    except ModelFileError as error:
        return "refused" if path.name in str(error) else f"no file name: {error}"
    except Exception as error:
        return f"load raised {type(error).__name__}: {error}"
    return _tried(model)


def _rows(schema: Any, empty: float) -> Any:
    """Three rows: of empty cells, of the first category, of a new one."""
    rows: dict[str, Any] = {}
    if schema.reading is not None:
        days = np.array([None, "2024-02-03", "2024-12-31"], dtype=object)
        return {name: days if name == "day" else [None, "1,50", "0"] for name in schema.inputs}
    for name, kind, texts in zip(schema.names, schema.kinds, schema.categories, strict=True):
        cells = [None, *(texts or ())[:1], "new", "new"][:3]
        rows[name] = cells if kind == "categorical" else [empty, 0.0, 1.0]
    frame = {name: np.array(cells, dtype=object) for name, cells in rows.items()}
    return frame if schema.named else np.column_stack(list(frame.values()))


def _tried(model: Any, empty: float = np.nan) -> str:
    frame = _rows(model.estimator_.schema_, empty)
    try:
        proba, said = model.predict_proba(frame), model.predict(frame)
    except ValueError as error:
        if "has missing values (NaN)" in str(error) and np.isnan(empty):
            return _tried(model, 0.5)
        refused = "too large" in str(error) or isinstance(error, UnreadableCellError)
        return "works" if refused else f"predict: {error}"
    except Exception as error:
        return f"predict raised {type(error).__name__}: {error}"
    if not (np.isfinite(proba).all() and proba.min() >= 0 and proba.max() <= 1):
        return "probabilities beyond [0, 1]"
    if np.abs(proba.sum(axis=1) - 1).max() > 1e-9:
        return "probabilities that do not sum to one"
    allowed = {*model.classes_.tolist(), getattr(model, "reject_label_", None)}
    return "works" if set(np.asarray(said).tolist()) <= allowed else "a decision that is no class"


@lru_cache(maxsize=1)
def _contents() -> list[str]:
    return [json.dumps(content) for content in seeds()]


@lru_cache(maxsize=1)
def _place() -> Path:
    memory = Path("/dev/shm")  # a file system on disk takes most of the time
    folder = tempfile.mkdtemp(prefix="laconic-", dir=memory if memory.is_dir() else None)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder) / "model.json"


def outcome(number: int) -> str:
    """What came of the file of one number."""
    draw = random.Random(number)
    what = came_of(mutated(draw.choice(_contents()), draw), _place())
    return what if what in ("refused", "works") else f"{FAILED}: {what}"[:160]


PART = Part(
    "model_files",
    "files",
    "refused with the place, or probabilities and decisions of its own classes",
    outcome,
    size=1_000_000,
    quick=1_000,
)
