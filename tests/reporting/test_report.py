"""The report: its numbers, its faces, and that every model has one."""

from __future__ import annotations

import base64
import doctest
import hashlib
import io
import json
import re
from copy import copy
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from sklearn.base import is_classifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import laconic
from estimator_cases import all_cases
from laconic import (
    DecisionClassifier,
    MinimaxClassifier,
    PlainLogisticRegression,
    SparseAdditiveClassifier,
    expected_cost,
    report,
)
from laconic.data.demo import make_payments
from laconic.decide import class_risks, risk_by_prior
from laconic.decide.intervals import mean_cost_interval
from laconic.displays import CandidatesDisplay
from laconic.reporting.curves import PRIOR_STEPS, RATIO_STEPS, STEP, ceiling, mix, play
from laconic.reporting.render import to_html, to_markdown, to_terminal
from laconic.reporting.sentences import Sentences
from laconic.reporting.summary import compact, summarise
from laconic.reporting.words import LANGUAGES, words
from report_rows import EVIL, hostile_model

COSTS = np.array([[0.0, 25.0], [1.0, 0.0]])  # fraud, genuine


@pytest.fixture(scope="module")
def payments():
    table, label = make_payments(3000)
    model = DecisionClassifier(PlainLogisticRegression(), costs=COSTS)
    model.fit(table[:2000], label[:2000])
    return model, table[2000:], label[2000:]


@pytest.fixture(scope="module")
def summary(payments):
    model, X, y = payments
    return summarise(model, X, y, COSTS, positive="fraud", n_train=2000)


def test_numbers_agree_with_a_count_by_hand(payments, summary):
    model, X, y = payments
    says = model.predict_proba(X)[:, 0] >= 1 / 26
    by_hand = 25 * np.sum(~says & (y == "fraud")) + np.sum(says & (y == "genuine"))
    assert summary["expected_cost"] == pytest.approx(by_hand / len(y))
    assert summary["confusion"][0][1] == np.sum(~says & (y == "fraud"))
    assert summary["baselines"]["always genuine"] == pytest.approx(25 * np.mean(y == "fraud"))
    assert sum(summary["decisions_per_1000"]) == pytest.approx(1000)
    assert summary["threshold"] == pytest.approx(1 / 26)
    assert summary["rows"] == {"train": 2000, "test": 1000}


@pytest.mark.parametrize("positive", ["fraud", "genuine"])
@pytest.mark.parametrize("prior", [None, {"fraud": 0.2, "genuine": 0.8}])
def test_sliders_are_the_rule_itself_at_other_costs_and_mixes(payments, positive, prior):
    fitted, X, y = payments
    model = DecisionClassifier(
        fitted.estimator_,
        costs=COSTS,
        prior=prior,
        train_prior=fitted.train_prior_,
        prefit=True,
    ).fit(None, None)
    table = summarise(model, X, y, positive=positive)["sliders"]
    k = model.classes_.tolist().index(positive)
    test_share = float(np.mean(y == positive)) if prior is None else prior[positive]
    rule_share = fitted.train_prior_[k] if prior is None else prior[positive]
    for j, i in [(0, 0), (5, 0), (0, -7), (-13, 21), (RATIO_STEPS, PRIOR_STEPS), (-40, -59)]:
        shown = play(table, j, i)
        costs = COSTS.copy()
        costs[k, 1 - k] *= np.exp(STEP * j)

        def moved(share, i=i):
            odds = share / (1 - share) * np.exp(STEP * i)
            return odds / (1 + odds)

        mixture = np.full(2, 1 - moved(rule_share))
        mixture[k] = moved(rule_share)
        decided = model.predict(X, costs=costs, prior=None if (i, prior) == (0, None) else mixture)
        risks = class_risks(y, decided, costs, labels=model.classes_)
        share = moved(test_share)
        assert shown["share"] == pytest.approx(share, rel=1e-12)
        cost = share * risks[k] + (1 - share) * risks[1 - k]
        assert shown["cost"] == pytest.approx(cost, abs=1e-9 * max(1.0, cost))
        flagged = [np.mean(decided[y == c] == positive) for c in (positive, model.classes_[1 - k])]
        per_1000 = 1000 * (share * flagged[0] + (1 - share) * flagged[1])
        assert shown["decided"] == pytest.approx(per_1000, abs=1e-9)
        assert shown["decided"] == pytest.approx(shown["hits"] + shown["false_alarms"])
        always = share * costs[k, 1 - k] + (1 - share) * costs[1 - k, 1 - k]
        assert shown["always_negative"] == pytest.approx(always)


def test_the_ceiling_is_the_least_worst_class_cost_of_any_cut(payments, summary):
    model, X, y = payments
    found = ceiling(summary["sliders"])
    q = model.estimator_.predict_proba(X)[:, 0]
    every_cut = [
        max(25 * np.mean(q[y == "fraud"] < cut), np.mean(q[y == "genuine"] >= cut))
        for cut in np.unique(q)
    ]
    # the page's cuts are 199 of them, twenty in each factor of ten of the odds
    assert min(every_cut) <= found["cost"] * (1 + 1e-12) <= 1.1 * min(every_cut)
    at = max(
        25 * np.mean(q[y == "fraud"] < found["cut"]), np.mean(q[y == "genuine"] >= found["cut"])
    )
    assert found["cost"] == pytest.approx(at)


def test_the_baseline_has_its_own_line(payments):
    model, X, y = payments
    plain = LogisticRegression().fit(np.asarray(X.column(0))[:, None], y)

    class Narrow:
        classes_ = plain.classes_

        def predict_proba(self, rows):
            return plain.predict_proba(np.asarray(rows.column(0))[:, None])

    found = summarise(model, X, y, baseline=Narrow())
    taken = np.where(Narrow().predict_proba(X)[:, 0] >= 1 / 26, "fraud", "genuine")
    by_hand = expected_cost(y, taken, COSTS, labels=model.classes_)
    assert found["baselines"]["plain model"] == pytest.approx(by_hand)
    assert play(found["sliders"], rule=1)["cost"] == pytest.approx(by_hand)


def three_classes(n=600):
    draw = np.random.default_rng(0)
    X = draw.normal(size=(n, 4))
    y = np.array(["a", "b", "c"])[(X[:, :3] + draw.gumbel(size=(n, 3))).argmax(axis=1)]
    return X, y


def test_the_class_mix_of_several_classes_is_linear():
    X, y = three_classes()
    costs = np.array([[0.0, 1.0, 2.0], [3.0, 0.0, 1.0], [5.0, 4.0, 0.0]])
    model = DecisionClassifier(PlainLogisticRegression(), costs=costs).fit(X[:300], y[:300])
    found = summarise(model, X[300:], y[300:])
    assert found["sliders"] is None
    assert found["threshold"] is None
    steps = [3, -20, 11]
    shown = mix(found["mix"], steps)
    weights = np.array(found["shares"]) * 10 ** (np.array(steps) / 20)
    decided = model.predict(X[300:])
    by_hand = risk_by_prior(y[300:], decided, costs, [weights / weights.sum()])
    assert shown["cost"] == pytest.approx(by_hand[0])
    assert shown["risks"] == pytest.approx(class_risks(y[300:], decided, costs).tolist())
    assert len(found["reliability"]) == 3
    assert 'data-card="threshold"' not in to_html(found, title="three")


def test_abstentions_cost_what_they_cost(payments):
    fitted, X, y = payments
    model = DecisionClassifier(fitted.estimator_, costs=COSTS, reject_cost=0.3, prefit=True)
    model.fit(None, None)
    found = summarise(model, X, y)
    decided = model.predict(X)
    cost = expected_cost(
        y, decided, COSTS, labels=model.classes_, reject_label="reject", reject_cost=0.3
    )
    assert found["expected_cost"] == pytest.approx(cost)
    assert found["abstentions_per_1000"] == pytest.approx(1000 * np.mean(decided == "reject"))
    forced = DecisionClassifier(fitted.estimator_, costs=COSTS, prefit=True).fit(None, None)
    plain = expected_cost(y, forced.predict(X), COSTS, labels=model.classes_)
    assert play(found["sliders"])["cost"] == pytest.approx(plain)
    assert words("en")["abstained"] in to_html(found, title="x")


def test_reliability_groups_hold_equal_expected_numbers(payments, summary):
    model, X, y = payments
    (panel,) = summary["reliability"]
    bins = {name: np.array(values) for name, values in panel["bins"].items()}
    q = model.estimator_.predict_proba(X)[:, 0]
    expected = bins["predicted"] * bins["rows"]
    assert expected.sum() == pytest.approx(q.sum())
    assert expected.max() < 1.3 * q.sum() / 10
    assert (bins["observed"] * bins["rows"]).sum() == pytest.approx(np.sum(y == "fraud"))
    assert (bins["lower"] <= bins["observed"]).all()
    low, high = panel["zone"]
    assert low < panel["threshold"] < high
    assert panel["rows_in_zone"] == np.sum((q >= low) & (q <= high))
    assert sum(panel["zone_bins"]["rows"]) == pytest.approx(panel["rows_in_zone"])


def test_the_parts_of_the_model_are_counted_on_the_rows(payments, summary):
    _, X, y = payments
    terms = {term["columns"][0]: term for term in summary["model"]["form"]["terms"]}
    merchant = terms["merchant"]
    j = X.names.index("merchant")
    for group, mass, rate in zip(
        merchant["axes"][0]["groups"], merchant["mass"], merchant["rate"], strict=False
    ):
        codes = [X.categories[j].index(text) for text in group]
        of_group = np.isin(X.column(j), codes)
        assert mass == pytest.approx(of_group.mean())
        assert rate == pytest.approx(np.mean(y[of_group] == "fraud"))
    assert summary["model"]["what_if"]
    order = summary["model"]["order"]
    sizes = [summary["model"]["form"]["terms"][t]["importance"] for t in order]
    assert sizes == sorted(sizes, reverse=True)


def test_a_form_that_is_not_the_model_is_not_computed_in_the_page(payments):
    model, X, y = payments
    form = model.estimator_.form_
    other = copy(model.estimator_)
    other.predict_proba = model.estimator_.predict_proba
    assert report(other, X, y).summary["model"]["what_if"]
    other.form_ = laconic.core.AdditiveScore(form.classes, form.intercept + 1e-6, form.terms)
    assert not report(other, X, y).summary["model"]["what_if"]


def test_a_model_too_large_for_a_page_is_listed(payments, monkeypatch):
    model, X, y = payments
    monkeypatch.setattr("laconic.reporting.shapes.LARGEST_FORM", 1000)
    found = report(model, X, y)
    assert found.summary["model"]["form"] is None
    page = found.to_html()
    assert words("en")["model_large"] in page
    assert 'id="what-if"' not in page
    assert "card age in days" in page


def test_the_summary_is_json_and_the_same_twice(payments, summary):
    model, X, y = payments
    again = summarise(model, X, y, COSTS, positive="fraud", n_train=2000)
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    assert again == summary
    small = compact(summary)
    assert "sliders" not in small
    assert small["expected_cost"] == summary["expected_cost"]
    timed = {"candidate": ["a"], "cost": [1.0], "size": [2], "fit_seconds": [0.1]}
    assert "fit_seconds" not in compact(summary | {"comparison": timed})["comparison"]


class Elements(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.texts: dict[str, list[str]] = {}

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.tags:
            self.texts.setdefault(self.tags[-1][0], []).append(data)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_stands_alone_and_names_are_inert(language):
    X, y = hostile_model()
    found = report(
        SparseAdditiveClassifier(group_penalty=0.001).fit(X, y),
        X,
        y,
        title=EVIL,
        language=language,
        comparison={"candidate": [EVIL], "cost": [1.0], "size": [3]},
    )
    page = found.to_html()
    seen = Elements()
    seen.feed(page)
    scripts = [attrs for tag, attrs in seen.tags if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "data"}, {}]
    for tag, attrs in seen.tags:
        assert not any(name.startswith("on") or name in ("src", "style") for name in attrs), tag
        assert attrs.get("href", "#").startswith("#")
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page)
    assert len(page) < 2_000_000
    policy = next(a["content"] for t, a in seen.tags if "http-equiv" in a)
    for tag in ("style", "script"):
        body = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.S)[-1]
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    for text in (found.to_markdown(), found._repr_html_()):
        assert "<script" not in text
    # every sentence was filled in
    assert not re.search(r"\{(\w+)\}", page.split('<script type="application/json"')[0])


def test_markdown_and_terminal_say_the_same_numbers(payments, summary, capsys):
    from rich.console import Console

    card = to_markdown(summary, title="Payments")
    Console(width=160).print(to_terminal(summary))
    shown = capsys.readouterr().out
    assert f"{summary['expected_cost']:.4f}" in shown
    assert f"{summary['expected_cost']:.4g}" in card
    assert card.startswith("# Payments\n")
    rows = [line for line in card.splitlines() if line.startswith("| fraud")]
    assert str(summary["confusion"][0][0]) in rows[-1]


def test_the_report_is_saved_by_the_name_of_the_file(payments, tmp_path):
    model, X, y = payments
    found = report(model, X, y, path=tmp_path / "r.html", language="fr", title="Paiements")
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == found.to_html()
    assert '<html lang="fr">' in found.to_html()
    assert json.loads(found.save(tmp_path / "r.json").read_text()) == found.summary
    assert found.save(tmp_path / "r.md").read_text(encoding="utf-8").startswith("# Paiements")
    with pytest.raises(ValueError, match=r"\.html, \.md, \.json"):
        found.save(tmp_path / "r.pdf")
    with pytest.raises(ValueError, match="language must be one of en, fr"):
        report(model, X, y, language="de")
    assert "<b>" in found._repr_html_()


def test_parts_of_dates_are_french_on_a_french_page_and_the_model_stays_the_same():
    draw = np.random.default_rng(0)
    day = np.datetime64("2023-01-02") + draw.integers(0, 700, 600)
    late = (day.astype(int) + 3) % 7 >= 5
    X = {"vu": day.astype(str), "size": draw.normal(size=600)}
    y = np.where(draw.random(600) < np.where(late, 0.8, 0.1) + 0.1 * (X["size"] > 0), "yes", "no")
    costs = {"fp": 1, "fn": 1}
    model = laconic.LaconicClassifier(costs, candidates=["additive-single"]).fit(X, y)
    found = report(model, X, y, language="fr")
    pages = found.to_html() + found.to_markdown()
    assert ": jour de la semaine" in pages
    assert "samedi" in pages
    assert not any(text in pages for text in ("vu: ", "Saturday", ": days since"))
    english, french = (Sentences(found.summary, own).summary["model"] for own in ("en", "fr"))
    days = (
        ["Monday", "Saturday", "vu: weekday"],
        ["lundi", "samedi", "vu\u00a0: jour de la semaine"],
    )
    for texts, model in zip(days, (english, french), strict=True):
        form = json.dumps(model["form"], ensure_ascii=False)
        starts = {column["name"]: column.get("texts") for column in model["columns"]}
        assert all(text in form for text in texts)
        assert set(texts[:2]) <= set(starts[texts[2]])
    assert [term.get("values") for term in english["form"]["terms"]] == [
        term.get("values") for term in french["form"]["terms"]
    ]


def test_the_map_names_a_variable_once_whatever_number_of_terms_reads_it():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(400, 3))
    y = (X @ [1.0, -1.0, 0.5] + draw.logistic(size=400) > 0).astype(int) + (X[:, 0] > 1)
    parts = [laconic.PlainLogisticRegression(), laconic.SparseAdditiveClassifier(pairs=0)]
    model = laconic.BlendedClassifier(parts, [0.5, 0.5]).fit(X, y)
    assert len(model.form_.terms) > 3  # lines and shapes of the same columns
    found = report(model, X, y).summary["map"]
    names = [arrow[0] for arrow in found["arrows"]]
    assert sorted(names) == sorted(set(names)) == ["x0", "x1", "x2"]
    assert found["n_columns"] == 9  # three variables, three scores


def test_laconic_report_stays_the_function():
    import importlib

    importlib.import_module("laconic.reporting.render")
    importlib.import_module("laconic.job.table")
    assert callable(laconic.report)
    assert laconic.report is report


def binary_rows():
    draw = np.random.default_rng(2)
    X = draw.normal(size=(240, 3))
    y = (X[:, 0] + 0.7 * draw.normal(size=240) > 0.6).astype(int)
    return X, y


FAMILIES = [
    pytest.param(case, id=f"{name}-{place}")
    for place, (name, case) in enumerate(all_cases())
    if is_classifier(case)
]


@pytest.mark.parametrize("case", FAMILIES)
def test_every_family_has_a_report(case):
    X, y = binary_rows()
    model = case.fit(X[:160], y[:160])
    found = report(model, X[160:], y[160:])
    decided = found.summary["confusion"]
    if isinstance(model, MinimaxClassifier):
        taken = model.predict(X[160:])
        assert found.summary["model"]["kind"] == "profiles"
        assert decided[1][1] == np.sum((taken == 1) & (y[160:] == 1))
    assert sum(map(sum, decided)) == 80
    page = found.to_html()
    assert len(page) < 2_000_000
    assert words("en")["h_proofs"] in page
    form = found.summary["model"].get("form")
    if form is not None and form["terms"] and form["link"] != "identity":
        assert found.summary["model"]["what_if"]
    json.loads(found.to_json())


@pytest.mark.parametrize(
    "make",
    [RandomForestClassifier, LinearSVC, lambda: SparseAdditiveClassifier(group_penalty=0.02)],
)
def test_any_classifier_of_three_classes_has_a_report(make):
    X, y = three_classes(300)
    model = make().fit(X[:200], y[:200])
    found = report(model, X[200:], y[200:])
    assert np.trace(np.array(found.summary["confusion"])) == np.sum(
        model.predict(X[200:]) == y[200:]
    )
    assert found.summary["map"]["n_rows"] == 100
    found.to_html()


def test_rows_of_one_class_only_have_a_report_without_sliders(payments):
    model, X, y = payments
    found = summarise(model, X[y == "fraud"], y[y == "fraud"], COSTS)
    assert found["sliders"] is None
    assert found["auc"] is None
    to_html(found, title="one class")


def test_a_rule_that_no_cost_can_move_has_a_report(payments):
    fitted, X, y = payments
    costs = np.array([[0.0, 1.0], [0.0, 1.0]])  # the first decision is free
    model = DecisionClassifier(fitted.estimator_, costs=costs, prefit=True).fit(None, None)
    found = summarise(model, X, y)
    assert found["sliders"] is None
    assert found["expected_cost"] == 0.0


def test_bad_input_is_named(payments):
    model, X, y = payments
    with pytest.raises(ValueError, match="positive='spam' is not a class"):
        report(model, X, y, positive="spam")
    with pytest.raises(ValueError, match="comparison lacks the column 'size'"):
        report(model, X, y, comparison={"candidate": ["a"], "cost": [1.0]})
    with pytest.raises(ValueError, match="not among the classes"):
        report(model, X, np.where(y == "fraud", "spam", y))
    with pytest.raises(ValueError, match="X has 1000 rows and y has 10"):
        report(model, X, y[:10])


def test_certificates_are_read_from_the_model():
    X, y = binary_rows()
    vote = report(laconic.CqBoostClassifier(mu="least-squares", max_voters=4).fit(X, y), X, y)
    kinds = {entry["kind"]: entry for entry in vote.summary["certificates"]}
    assert {"measured", "gap", "pac_bayes", "c_bound"} <= set(kinds)
    given = laconic.CqBoostClassifier(mu="least-squares", max_voters=4).fit(X, y)
    names = {bound.name for bound in given.pac_bayes_bounds()}
    # chosen among several, so each of them may fail with a share of the doubt only
    least = min(bound.value for bound in given.pac_bayes_bounds(0.05 / len(names)))
    assert kinds["pac_bayes"]["value"] == least
    rule = MinimaxClassifier().fit(X, y)
    kinds = {e["kind"]: e for e in report(rule, X, y).summary["certificates"]}
    assert kinds["minimax"]["value"] == rule.minimax_risk_
    assert kinds["held_out_risks"]["value"] == rule.class_risks_oof_.max()
    steps = laconic.boosted.BoostedStepsClassifier(bags=2, random_state=0).fit(X, y)
    found = report(steps, X, y)
    assert "steps" in {e["kind"] for e in found.summary["certificates"]}
    assert "No distance to the best is known" in found.to_html()
    page = laconic.BlendedClassifier([steps, laconic.PlainLogisticRegression()], max_size=6)
    found = report(page.fit(X, y), X, y)
    assert page.page_objective_ > 0.0
    kinds = {e["kind"]: e for e in found.summary["certificates"]}
    assert (kinds["page"]["value"], kinds["page"]["gap"]) == (page.page_objective_, page.page_gap_)
    assert "steps" in kinds
    assert "plus a small penalty on moving its numbers" in found.to_html()
    given = [{"title": "Audit", "says": "Checked.", "assumes": "care."}]
    page = report(rule, X, y, certificates=given, language="fr").to_html()
    assert "Audit" in page
    assert "Suppose" in page


def test_the_interval_of_the_cost_is_that_of_its_mean(payments, summary):
    model, X, y = payments
    cost = np.where(model.predict(X) == y, 0.0, np.where(y == "fraud", 25.0, 1.0))
    pooled = np.sqrt(sum(cost[y == c].var() * np.sum(y == c) for c in model.classes_)) / len(y)
    assert summary["expected_cost_se"] == pytest.approx(pooled)
    counts = [[np.sum((y == truth) & (model.predict(X) == said)) for said in model.classes_]
              for truth in model.classes_]  # fmt: skip
    ends = mean_cost_interval(counts, [[0.0, 25.0], [1.0, 0.0]])
    assert (summary["expected_cost_low"], summary["expected_cost_high"]) == pytest.approx(ends)
    shown = play(summary["sliders"])
    assert (shown["cost_low"], shown["cost_high"]) == pytest.approx(ends)
    moved = play(summary["sliders"], prior_step=1)
    assert moved["cost_low"] < moved["cost"] < moved["cost_high"]
    (measured,) = [c for c in summary["certificates"] if c["kind"] == "measured"]
    assert (measured["low"], measured["high"]) == pytest.approx(ends)


def test_no_error_is_not_between_zero_and_zero():
    X, y = np.arange(40.0)[:, None], (np.arange(40) >= 35).astype(int)
    model = DecisionClassifier(DecisionTreeClassifier(), costs={"fp": 1, "fn": 10}).fit(X, y)
    found = report(model, X, y)
    assert found.summary["expected_cost"] == 0.0
    assert found.summary["expected_cost_high"] > 0.5
    assert "between 0 and 0" not in found.to_markdown()


def test_the_map_shows_drawn_rows_on_the_components_of_the_parts(payments, summary):
    model, X, y = payments
    found = summary["map"]
    assert found["n_rows"] == 1000  # all of them: there are fewer than the map can hold
    parts = model.estimator_.form_.contributions(model.estimator_._read_rows(X))[:, :, 0]
    parts = (parts - parts.mean(axis=0)) / parts.std(axis=0)
    _, values, axes = np.linalg.svd(parts, full_matrices=False)
    np.testing.assert_allclose(np.abs(found["x"]), np.abs(parts @ axes[0]), atol=6e-4)
    np.testing.assert_allclose(np.abs(found["y"]), np.abs(parts @ axes[1]), atol=6e-4)
    np.testing.assert_allclose(found["variance"], (values**2 / np.sum(values**2))[:2])
    assert found["truth"] == np.where(y == "fraud", 0, 1).tolist()
    assert found["wrong"] == (model.predict(X) != y).astype(int).tolist()
    q = model.predict_proba(X)[:, 0]
    low, high = summary["reliability"][0]["zone"]
    assert found["doubt"] == ((q >= low) & (q <= high)).astype(int).tolist()


def test_a_rare_class_keeps_its_points_on_the_map():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(40_000, 2))
    y = (draw.random(40_000) < 0.005).astype(int)
    found = report(LogisticRegression().fit(X, y), X, y).summary["map"]
    assert sum(found["truth"]) >= 100
    assert found["of"] == "columns"
    assert found["n_rows"] < 1500
    assert found == report(LogisticRegression().fit(X, y), X, y).summary["map"]


def test_the_guide_runs():
    text = (Path(__file__).parents[2] / "docs" / "report.md").read_text(encoding="utf-8")
    test = doctest.DocTestParser().get_doctest(text.replace("```", ""), {}, "report.md", None, 0)
    found = doctest.DocTestRunner(verbose=False).run(test)
    assert found.attempted > 10
    assert found.failed == 0


def test_the_candidates_are_drawn_where_they_are():
    pytest.importorskip("matplotlib").use("Agg")
    shown = CandidatesDisplay.from_predictions(
        ["a", "b", "c"], size=[3, 30, np.nan], cost=[0.5, 0.4, 0.1], chosen=[False, True, False]
    ).plot()
    np.testing.assert_array_equal(shown.points_.get_xydata(), [[3, 0.5]])
    np.testing.assert_array_equal(shown.chosen_.get_xydata(), [[30, 0.4]])
    assert list(shown.frame()["candidate"]) == ["a", "b", "c"]

    class Compared:
        comparison_ = {"candidate": ["a"], "size": [2], "cost": [0.3], "chosen": [True]}

    assert CandidatesDisplay.from_estimator(Compared()).chosen.all()
    with pytest.raises(ValueError, match="has no comparison_"):
        CandidatesDisplay.from_estimator(object())


def test_a_baseline_is_called_by_its_name():
    from sklearn.dummy import DummyClassifier
    from sklearn.ensemble import RandomForestClassifier

    draw = np.random.default_rng(0)
    X = draw.normal(size=(300, 2))
    y = (X[:, 0] + draw.normal(size=300) > 0.5).astype(int)
    model = SparseAdditiveClassifier(group_penalty=0.01).fit(X, y)
    for baseline, name in [
        (DummyClassifier(strategy="prior"), "dummy"),
        (RandomForestClassifier(2, max_depth=1), "random forest"),
        (LogisticRegression(), "plain logistic regression"),
    ]:
        found = report(model, X, y, baseline=baseline.fit(X, y))
        assert name in dict(Sentences(found.summary).rules())
        assert name in found.to_html()


def test_the_page_and_the_card_speak_of_the_positive_class():

    draw = np.random.default_rng(0)
    X = {"x": draw.normal(size=400)}
    y = np.where(X["x"] + 0.3 * draw.normal(size=400) > 1, "bad", "ok")
    model = SparseAdditiveClassifier(group_penalty=0.01).fit(X, y)
    found = report(model, X, y)
    form = found.summary["model"]["form"]
    assert found.summary["positive"] == "bad"
    assert form["classes"] == ["ok", "bad"]
    assert form["intercept"] == (-model.form_.intercept).tolist()
    values = np.array(form["terms"][0]["values"])[:, 0]
    assert values[-2] > values[0]  # a large x speaks for "bad"
    assert "score is for “bad”" in found.to_html()
    assert all(one["says"] for one in compact(found.summary)["certificates"])


def test_noise_is_not_called_better():
    """Pure noise, reported 60 times: a "less than the best rule" verdict in at most 5 %."""
    better = 0
    for seed in range(60):
        draw = np.random.default_rng(seed)
        X, y = draw.normal(size=(240, 2)), (draw.random(240) < 0.3).astype(int)
        model = LogisticRegression().fit(X[:120], y[:120])
        found = report(model, X[120:], y[120:], costs={"fp": 1, "fn": 3})
        better += " less than the best rule" in Sentences(found.summary).verdict()
    assert better <= 3


def test_the_verdict_names_the_simple_alternative():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(2000, 2))
    y = (np.abs(X[:, 0]) + 0.3 * draw.normal(size=2000) > 1).astype(int)  # no line draws it
    model = SparseAdditiveClassifier().fit(X[:1000], y[:1000])
    plain = LogisticRegression().fit(X[:1000], y[:1000])
    said = Sentences(report(model, X[1000:], y[1000:], baseline=plain).summary).verdict()
    assert "plain logistic regression costs" in said
    assert "this model costs" in said
    same = Sentences(report(plain, X[1000:], y[1000:], baseline=plain).summary)
    assert same.summary["alternatives"]["plain model"][0] == 0
    assert "within chance" in same.verdict()


def test_many_classes_are_a_list_of_what_each_is_taken_for():
    """A table of thirty by thirty has no width on a screen."""
    draw = np.random.default_rng(0)
    place = np.repeat(np.arange(12), 25)
    X, y = {"x": place + 0.4 * draw.normal(size=300)}, np.array([f"kind {k:02d}" for k in place])
    model = PlainLogisticRegression().fit(X, y)
    found = report(model, X, y)
    screen = Console(width=80, record=True, file=io.StringIO())
    screen.print(to_terminal(found.summary))
    said = screen.export_text()
    decided = model.predict(X)
    assert (decided != y).any()
    assert all(f"{taken} (" in said for taken in decided[decided != y])
    assert said.count("always") == 2  # the best of them, in the verdict and in the table
    assert "most often taken for" in found.to_html()


def test_no_error_is_not_no_cost():
    """Nothing was paid on 60 rows: the page says how much that leaves open."""
    X = {"x": np.arange(60.0)}
    y = np.where(X["x"] < 30, "no", "yes")
    model = DecisionClassifier(PlainLogisticRegression()).fit(X, y)
    said = report(model, X, y).to_markdown()
    assert "cost nothing on these rows: at most 0.0" in said
    assert "100" not in said.split("without a model")[0]


@pytest.mark.parametrize(("language", "small"), [("en", "less than 1e-9"), ("fr", "moins de 1e-9")])
def test_certificates_are_told_in_digits_that_are_read(language, small):
    """4.8e-24 is right, and silly to read."""
    X, y = make_payments(800)
    model = DecisionClassifier(PlainLogisticRegression(), costs=COSTS).fit(X, y)
    summary = report(model, X, y).summary
    page = {"kind": "page", "value": 3e-12, "gap": 4.8e-24}
    gap = {"kind": "gap", "value": 4.8e-24, "objective": 812.0}
    compared = {"candidate": ["a"], "cost": [1.0], "size": [3], "certificate": [7.3e-21]}
    said = Sentences(summary | {"certificates": [page, gap], "comparison": compared}, language)
    first, second = (one["says"] for one in said.proofs())
    assert small in first
    assert first.endswith("1e-9.")
    assert "1e-9" in second
    assert said.candidates()["rows"][0]["cells"][-1] == "< 1e-9"
    for text in (first, second):
        assert not re.search(r"e-[0-9]{2}", text)
