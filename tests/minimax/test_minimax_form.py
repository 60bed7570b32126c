"""The fitted form of a minimax rule: the same bits after a file, and no damaged file is read."""

import json
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from laconic import DecisionClassifier, LaconicClassifier, MinimaxClassifier, load, save
from laconic.data.tables.columns import Schema
from laconic.export.model_file import ModelFileError, _digest
from laconic.minimax.binning import Leaves, _distinct, _merged, _ranks, _tree_features, learn_leaves
from laconic.minimax.form import ProfileForm
from laconic.minimax.profiles import ProfileIndex

KINDS = {
    "bins": {},
    "bins of equal width": {"binning": "width", "smoothing": "nearest"},
    "exact k-means bins": {"binning": "kmeans", "n_bins": 5},
    "modl": {"binning": "modl", "tie": "deterministic"},
    "clusters": {"profiles": "kmeans", "n_profiles": 12},
    "leaves": {"profiles": "tree", "n_profiles": 15},
    "leaves, nearest": {"profiles": "tree", "smoothing": "nearest"},
    "costs": {"costs": {"yes": {"no": 5}, "no": {"yes": 1}}, "prior_bounds": {"yes": (0.1, 0.4)}},
}


def mixed(n=400, n_classes=2, seed=0):
    """Numbers with gaps, ties and a rare category; new rows have categories that were not seen."""
    draw = np.random.default_rng(seed)
    score = draw.normal(size=n)
    frame = pd.DataFrame(
        {
            "size": np.round(score + draw.normal(size=n), 2),
            "count": draw.integers(0, 5, n).astype(float),
            "place": np.where(score > 0.4, "Évry", draw.choice(["Arras", "Brest"], n)),
            "flag": score + draw.normal(size=n) > 0,
        }
    )
    frame.loc[draw.random(n) < 0.15, "size"] = np.nan
    frame.loc[draw.random(n) < 0.15, "place"] = None
    codes = np.digitize(score + 0.5 * draw.normal(size=n), [0.8, 1.2, 1.6][: n_classes - 1])
    return frame, np.array(["no", "yes", "perhaps", "late"])[codes]


def new_rows(seed=9):
    frame, _ = mixed(200, seed=seed)
    frame.loc[::9, "place"] = "Zagreb"
    frame.loc[::7, "count"] = 99.0
    frame.loc[::11, "size"] = -1e9
    return frame


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_file_keeps_every_decision(kind, n_classes, tmp_path):
    if kind == "costs" and n_classes == 4:
        pytest.skip("the costs name two classes")
    X, y = mixed(n_classes=n_classes)
    model = MinimaxClassifier(**KINDS[kind], cv=None, random_state=3).fit(X, y)
    save(model, tmp_path / "m.json")
    again = load(tmp_path / "m.json")
    for rows in (X, new_rows(), new_rows().iloc[:1]):
        assert again.predict_proba(rows).tobytes() == model.predict_proba(rows).tobytes()
        np.testing.assert_array_equal(again.predict(rows), model.predict(rows))
    assert again.cost_matrix_.tolist() == model.cost_matrix_.tolist()
    # draws, not the likeliest decision
    drawn, likeliest = again.predict(X), again.classes_[again.predict_proba(X).argmax(axis=1)]
    if model.tie == "randomized" and (again.predict_proba(X).max(axis=1) < 0.9).sum() > 20:
        assert (drawn != likeliest).any()


def test_a_rule_that_refuses_new_profiles_still_does(tmp_path):
    X, y = mixed()
    model = MinimaxClassifier(smoothing="error", cv=None).fit(X, y)
    save(model, tmp_path / "m.json")
    again = load(tmp_path / "m.json")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="no training row"):
        again.predict(new_rows())


def test_the_main_job_saves_the_rule_that_it_keeps(tmp_path):
    X, y = mixed(300)
    job = LaconicClassifier(candidates=["minimax"], random_state=0).fit(X, y)
    save(job, tmp_path / "m.json")
    again = load(tmp_path / "m.json")
    np.testing.assert_array_equal(again.predict(X), job.predict(X))
    assert json.loads((tmp_path / "m.json").read_text())["certificates"]["minimax_risk"] > 0


def test_the_decision_layer_leaves_a_rule_that_decides_alone():
    X, y = mixed()
    rule = MinimaxClassifier(cv=None).fit(X, y)
    layer = DecisionClassifier(rule, prefit=True).fit(None, None)
    np.testing.assert_array_equal(layer.predict(X), rule.predict(X))
    with pytest.raises(ValueError, match="decides itself"):
        layer.predict(X, prior=0.3)
    with pytest.raises(ValueError, match="decides itself"):
        DecisionClassifier(rule, reject_cost=0.1, prefit=True).fit(None, None)


def test_a_column_of_one_value_moves_no_leaf():
    """Of two equal splits the tree takes one by its seed, which drew from all columns."""
    draw = np.random.default_rng(0)
    for _ in range(20):
        x = draw.integers(0, 2, 40).astype(float)
        X, y = np.column_stack([x, x, draw.integers(0, 3, 40)]), draw.integers(0, 2, 40)
        rule = MinimaxClassifier(profiles="tree", n_profiles=3, tie="deterministic", cv=None)
        rule.fit(X, y)
        fresh = draw.normal(size=(50, 3))
        said = rule.predict_proba(fresh)
        rule.fit(np.column_stack([X, np.ones(40)]), y)
        np.testing.assert_array_equal(
            rule.predict_proba(np.column_stack([fresh, np.ones(50)])), said
        )


def test_leaves_in_values_are_the_leaves_of_the_tree_on_ranks():
    for seed in range(20):
        X, y = mixed(120, seed=seed)
        schema_and_table = Schema.learn(X)
        table = schema_and_table.table
        codes = np.unique(y, return_inverse=True)[1]
        steps = tuple(
            None if kind == "categorical" else _distinct(table.column(j))
            for j, kind in enumerate(table.kinds)
        )
        widths = tuple(-1 if texts is None else len(texts) for texts in table.categories)
        tree = DecisionTreeClassifier(max_leaf_nodes=20, random_state=1)
        ranks = _ranks(table, steps, widths)
        _, order = _tree_features(table, codes, widths, ranks)
        known, classes, balanced = _merged(ranks[:, order], codes, np.ones(len(y)))
        tree.fit(known, classes, sample_weight=balanced)
        found = learn_leaves(table, codes, np.ones(len(y)), 20, 1)
        fresh, _ = mixed(500, seed=100 + seed)
        fresh.loc[::13, "place"] = "Zagreb"
        fresh.loc[::17, "count"] = 2.5
        rows = schema_and_table.schema.apply(fresh)
        leaf = tree.apply(_ranks(rows, steps, widths)[:, order])
        own = found.codes(rows)[:, 0]
        pairs = set(zip(leaf.tolist(), own.tolist(), strict=True))
        assert len(pairs) == len(set(leaf)) == len(set(own))
        again = Leaves.from_dict(json.loads(json.dumps(found.to_dict())))
        np.testing.assert_array_equal(again.codes(rows)[:, 0], own)


def test_an_index_of_many_wide_columns_is_rebuilt_from_its_profiles():
    draw = np.random.default_rng(0)
    radices = (1000,) * 9 + (2, 7)  # more than one 64-bit key
    codes = np.unique(draw.integers(0, radices, (300, 11)), axis=0)
    index = ProfileIndex.of(codes, radices)
    assert len(index.groups) == 2
    np.testing.assert_array_equal(index.codes(), codes)
    np.testing.assert_array_equal(index.find(codes[::-1]), np.arange(len(codes))[::-1])
    with pytest.raises(ValueError, match="order"):
        ProfileIndex.of(codes[::-1], radices)
    with pytest.raises(ValueError, match="order"):
        ProfileIndex.of(codes[[0, 0]], radices)
    with pytest.raises(ValueError, match="code"):
        ProfileIndex.of(codes + 999, radices)


def damages():
    yield "kind of coder", lambda f: f["coder"].__setitem__("kind", "forest")
    yield "cuts", lambda f: f["coder"]["columns"].__setitem__(0, [1.0, 0.5])
    yield "fewer columns", lambda f: f["coder"]["columns"].pop()
    yield "more categories", lambda f: f["coder"]["columns"].__setitem__(2, 9)
    yield "profiles", lambda f: f["profiles"].reverse()
    yield "a profile twice", lambda f: f["profiles"].append(f["profiles"][-1])
    yield "a code", lambda f: f["profiles"][0].__setitem__(0, 77)
    yield "labels", lambda f: f["rule"]["labels"][0].__setitem__(0, 2)
    yield "fewer labels", lambda f: f["rule"]["labels"][0].pop()
    yield "weights", lambda f: f["rule"]["weights"].__setitem__(0, 2.0)
    yield "priors", lambda f: f["rule"]["priors"][0].pop()
    yield "costs", lambda f: f["costs"][0].__setitem__(1, -1.0)
    yield "policy", lambda f: f.__setitem__("unseen", "guess")
    yield "no shares", lambda f: f.__setitem__("backoff", None)
    yield "other shares", lambda f: f["backoff"]["log_share"].pop()
    yield "class weight", lambda f: f["backoff"]["class_weight"].__setitem__(0, -1.0)
    yield "alpha", lambda f: f["backoff"].__setitem__("alpha", 0.0)
    yield "seed", lambda f: f.__setitem__("seed", "1")
    yield "an entry", lambda f: f.__setitem__("more", 1)
    yield "missing", lambda f: f.pop("rule")


@pytest.mark.parametrize(("what", "damage"), [*damages()], ids=[what for what, _ in damages()])
def test_a_damaged_file_is_refused(what, damage, tmp_path):
    X, y = mixed()
    model = MinimaxClassifier(cv=None).fit(X, y)
    save(model, tmp_path / "m.json")
    content = json.loads((tmp_path / "m.json").read_text())
    damage(content["form"])
    content["digest"] = _digest(content)
    (tmp_path / "m.json").write_text(json.dumps(content))
    with pytest.raises(ModelFileError, match="form"):
        load(tmp_path / "m.json")


@pytest.mark.parametrize("profiles", ["kmeans", "tree"])
def test_damaged_clusters_and_leaves_are_refused(profiles):
    X, y = mixed()
    model = MinimaxClassifier(profiles=profiles, n_profiles=6, cv=None).fit(X, y)
    good = model.profile_form_.to_dict()
    ProfileForm.from_dict(good).check_columns(model.schema_)
    for name, value in good["coder"].items():
        if name == "kind":
            continue
        bad = deepcopy(good)
        bad["coder"][name] = value[:-1]
        with pytest.raises((ValueError, IndexError)):
            ProfileForm.from_dict(bad).check_columns(model.schema_)
    if profiles == "tree":
        bad = deepcopy(good)
        bad["coder"]["left"][0] = 0  # a node that is its own child
        with pytest.raises(ValueError, match="order"):
            ProfileForm.from_dict(bad)
