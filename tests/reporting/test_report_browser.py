"""The page in a real browser: what it computes is what Python computes, and nothing leaves it."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pytest

import export_cases
from laconic import (
    CqBoostClassifier,
    DecisionClassifier,
    LaconicClassifier,
    OptimalScorecardClassifier,
    PlainLogisticRegression,
    SparseAdditiveClassifier,
    WeightedNaiveBayes,
    __version__,
    report,
)
from laconic.core.forms import AdditiveScore, SlotTerm
from laconic.data.demo import make_payments
from laconic.data.tables.axes import IntervalAxis
from laconic.data.tables.columns import Schema
from laconic.reporting.curves import ceiling, mix, play
from laconic.reporting.report import Report
from laconic.reporting.summary import summarise
from laconic.reporting.words import words
from report_rows import hostile_model

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
COSTS = {"fraud": {"genuine": 25}, "genuine": {"fraud": 1}}
NEAR = 1e-9


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    with sync_api.sync_playwright() as engine:
        found = engine.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        yield found
        found.close()


class Opened:
    """A page opened from a file, with everything it complained of and asked for."""

    def __init__(self, browser, path, **options):
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-ready]", timeout=10_000)
        self.path = path

    def value(self, selector):
        return float(self.page.get_attribute(selector, "data-value"))

    def close(self):
        try:
            assert self.complaints == []
            assert self.requests == [self.path.as_uri()]
        finally:
            self.context.close()


@pytest.fixture
def open_page(browser, tmp_path):
    opened = []

    def go(found, **options):
        opened.append(Opened(browser, found.save(tmp_path / f"{len(opened)}.html"), **options))
        return opened[-1]

    yield go
    for one in opened:
        one.close()


@pytest.fixture(scope="module")
def payments():
    table, label = make_payments(4000)
    inner = SparseAdditiveClassifier(group_penalty=0.002, pairs=1)
    model = DecisionClassifier(inner, costs=COSTS).fit(table[:3000], label[:3000])
    plain = PlainLogisticRegression().fit(table[:3000], label[:3000])
    found = report(model, table[3000:], label[3000:], baseline=plain, title="Payments")
    return model, table[3000:], label[3000:], found


def press(opened, selector, key, times):
    opened.page.focus(selector)
    for _ in range(times):
        opened.page.keyboard.press(key)


def assert_shows(opened, table, j, i):
    now = play(table, j, i)
    for key in ("cost", "threshold", "decided", "hits", "false_alarms", "missed"):
        assert opened.value(f"#o-{key}") == pytest.approx(now[key], abs=NEAR), key
    assert opened.value("#ratio-value") == pytest.approx(now["ratio"], rel=NEAR)
    assert opened.value("#prior-value") == pytest.approx(now["share"], abs=NEAR)
    assert opened.value("#cost-negative") == pytest.approx(now["always_negative"], abs=NEAR)
    assert opened.value("#cost-positive") == pytest.approx(now["always_positive"], abs=NEAR)
    assert opened.value("#cost-ceiling") == pytest.approx(ceiling(table, j)["cost"], abs=NEAR)
    plain = play(table, j, i, rule=1)["cost"]
    assert opened.value("#cost-plain") == pytest.approx(plain, abs=NEAR)


def test_sliders_by_keyboard_and_mouse_show_the_numbers_of_python(payments, open_page):
    *_, found = payments
    table = found.summary["sliders"]
    opened = open_page(found)
    assert_shows(opened, table, 0, 0)
    press(opened, "#ratio", "ArrowRight", 7)
    assert_shows(opened, table, 7, 0)
    press(opened, "#prior", "ArrowLeft", 11)
    assert_shows(opened, table, 7, -11)
    press(opened, "#prior", "End", 1)
    assert_shows(opened, table, 7, 59)
    box = opened.page.locator("#ratio").bounding_box()
    opened.page.mouse.click(box["x"] + 0.25 * box["width"], box["y"] + box["height"] / 2)
    step = int(opened.page.input_value("#ratio"))
    assert -30 < step < -10
    assert_shows(opened, table, step, 59)
    box = opened.page.locator("#ratio").bounding_box()  # texts above may have taken another line
    opened.page.mouse.move(box["x"] + 0.25 * box["width"], box["y"] + box["height"] / 2)
    opened.page.mouse.down()
    opened.page.mouse.move(box["x"] + 0.9 * box["width"], box["y"] + box["height"] / 2, steps=5)
    opened.page.mouse.up()
    opened.page.wait_for_function("Number(document.querySelector('#ratio').value) > 20")
    step = int(opened.page.input_value("#ratio"))
    assert_shows(opened, table, step, 59)
    opened.page.click("#play button")
    assert_shows(opened, table, 0, 0)
    assert opened.value("#o-cost") == pytest.approx(found.summary["expected_cost"], abs=NEAR)
    # wait_for_function polls by eval, which the page's own security policy refuses
    from playwright.sync_api import expect

    expect(opened.page.locator("#live")).to_have_text(re.compile(".{11}"))


def fill_in(opened, model, cells):
    """Describe a case in the form, as a reader would: a choice or a number for each column."""
    for place, column in enumerate(model["columns"]):
        cell = cells[column["name"]]
        node = opened.page.locator(f"#cell-{place}")
        if column["kind"] == "categorical":
            texts = column["texts"]
            value = "" if cell is None else str(texts.index(cell)) if cell in texts else "other"
        elif cell is None:
            value = ""
        else:
            value = str(int(cell)) if column["kind"] == "boolean" else repr(float(cell))
        node.evaluate(
            "(node, value) => { node.value = value;"
            " node.dispatchEvent(new Event('input', { bubbles: true })); }",
            value,
        )


def cells_of(table, r):
    found = {}
    for j, name in enumerate(table.names):
        cell = table.column(j)[r]
        if table.kinds[j] == "categorical":
            found[name] = table.categories[j][cell] if cell >= 0 else None if cell == -1 else "new"
        else:
            found[name] = None if np.isnan(cell) else float(cell)
    return found


def case_rows(table, r, **changed):
    """One row as a frame of one row, with some cells changed; a missing text stays a text."""
    cells = cells_of(table, r) | changed
    rows = {}
    for j, name in enumerate(table.names):
        kind = object if table.kinds[j] == "categorical" else float
        rows[name] = np.array([cells[name]], dtype=kind)
    return cells, Schema.learn(rows).table


def assert_answers(opened, model, found, rows, **rule):
    proba = model.predict_proba(rows, prior=rule.get("prior"))[0]
    decided = model.predict(rows, **rule)[0]
    shown = found.summary["classes"]
    for k in range(len(shown)):
        if opened.page.locator(f"#w-probability-{k}").count():
            assert opened.value(f"#w-probability-{k}") == pytest.approx(proba[k], abs=NEAR)
    place = int(opened.value("#w-decision"))
    assert place == model.classes_.tolist().index(decided)
    form = model.estimator_.form_
    if form.n_scores == 1 and shown[0] == found.summary["positive"]:
        form = form.reversed()  # the page speaks of the score of the positive class
    table = model.estimator_._read_rows(rows)
    lead = 0 if form.n_scores == 1 else place
    assert opened.value("#w-score") == pytest.approx(form.score(table)[0, lead], abs=NEAR)
    parts = form.contributions(table)[0, :, lead]
    largest = sorted(np.abs(parts[parts != 0]), reverse=True)[:8]
    nodes = opened.page.locator("#w-reasons [data-value]").all()
    reasons = [float(node.get_attribute("data-value")) for node in nodes]
    assert np.abs(reasons) == pytest.approx(largest, abs=NEAR)
    assert all(np.abs(parts - reason).min() < NEAR for reason in reasons)


def test_a_case_is_scored_in_the_page_as_in_python(payments, open_page):
    model, X, _, found = payments
    opened = open_page(found)
    described = found.summary["model"]
    assert {term["kind"] for term in described["form"]["terms"]} >= {"piecewise", "table"}
    for r in range(12):
        cells, rows = case_rows(X, r)
        fill_in(opened, described, cells)
        assert_answers(opened, model, found, rows)
    odd = {"days since last payment": None, "amount": 1e7, "hour": -3.0, "merchant": "casino"}
    cells, rows = case_rows(X, 0, **odd)
    fill_in(opened, described, cells)
    assert_answers(opened, model, found, rows)
    press(opened, "#prior", "ArrowRight", 20)
    press(opened, "#ratio", "ArrowLeft", 20)
    share = model.train_prior_[0]
    odds = 10 * share / (1 - share)
    prior = [odds / (1 + odds), 1 / (1 + odds)]
    costs = np.array([[0.0, 2.5], [1.0, 0.0]])
    assert_answers(opened, model, found, rows, prior=prior, costs=costs)
    amount = [column["name"] for column in described["columns"]].index("amount")
    opened.page.fill(f"#cell-{amount}", "twelve")
    assert opened.page.get_attribute(f"#cell-{amount}", "aria-invalid") == "true"
    assert len(opened.page.inner_text("#w-wrong")) > 10


def seven_classes(n=900):
    draw = np.random.default_rng(0)
    y = draw.choice(7, n, p=[0.3, 0.3, 0.15, 0.1, 0.05, 0.05, 0.05])
    X = draw.normal(size=(n, 5)) + draw.normal(size=(7, 5))[y]
    X[draw.random(X.shape) < 0.03] = np.nan
    return X, np.array(list("abcdefg"))[y]


@pytest.mark.parametrize(
    "inner",
    [
        PlainLogisticRegression(),
        WeightedNaiveBayes(random_state=0),
        CqBoostClassifier(mu="least-squares", max_voters=4),
    ],
    ids=lambda inner: type(inner).__name__,
)
def test_several_classes(inner, open_page):
    X, y = seven_classes()
    if isinstance(inner, CqBoostClassifier):
        X = np.nan_to_num(X)
    model = DecisionClassifier(inner, prior="balanced").fit(X[:600], y[:600])
    found = report(model, X[600:], y[600:], language="fr")
    opened = open_page(found)
    steps = [0] * 7
    for k, key, times in ((2, "ArrowRight", 9), (0, "ArrowLeft", 4), (6, "End", 1)):
        press(opened, f"#share-{k}", key, times)
        steps[k] = int(opened.page.input_value(f"#share-{k}"))
    assert steps[2] == 9
    assert steps[6] == 40
    now = mix(found.summary["mix"], steps)
    assert opened.value("#o-cost") == pytest.approx(now["cost"], abs=NEAR)
    for k in range(7):
        assert opened.value(f"#share-{k}-value") == pytest.approx(now["shares"][k], abs=NEAR)
        assert opened.value(f"#risk-{k}") == pytest.approx(now["risks"][k], abs=NEAR)
        assert opened.value(f"#decided-{k}") == pytest.approx(now["decided"][k], abs=NEAR)
        assert opened.value(f"#cost-always-{k}") == pytest.approx(now["always"][k], abs=NEAR)
    assert found.summary["model"]["what_if"]
    names = [f"x{j}" for j in range(5)]
    for r in (600, 611, 640):
        row = X[r : r + 1]
        cells = {n: None if np.isnan(v) else v for n, v in zip(names, row[0], strict=True)}
        fill_in(opened, found.summary["model"], cells)
        assert_answers(opened, model, found, row)
    assert_errors_cost(opened, found, steps, k=3)
    opened.page.select_option("#model-class", "3")
    opened.page.click("#specialists > summary")
    opened.page.select_option("#trust-class", "4")


def test_dates_and_words_of_texts_are_dates_and_answers(open_page):
    draw = np.random.default_rng(0)
    n = 1200
    seen = np.datetime64("2021-03-01") + draw.integers(0, 1400, n)
    word = draw.choice(["late", "early", "lost"], n)
    note = [f"the parcel of client {k} came {own} today" for k, own in enumerate(word)]
    score = 3.0 * (word == "lost") + (seen - np.datetime64("2023-01-01")).astype(float) / 300
    y = np.where(draw.random(n) < 1 / (1 + np.exp(1.0 - score)), "bad", "fine")
    X = {"seen": seen.astype(str), "note": np.array(note)}
    costs = {"bad": {"fine": 2}, "fine": {"bad": 1}}
    model = LaconicClassifier(costs, candidates=["additive-single"])
    with pytest.warns(UserWarning, match="texts of about"):
        model.fit(X, y)
    found = report(model, X, y)
    k_positive = model.classes_.tolist().index(found.summary["positive"])
    opened = open_page(found)
    names = [column["name"] for column in found.summary["model"]["columns"]]
    days = names.index("seen: days since 2020-01-01")
    assert "note: lost" in names
    assert opened.page.locator(f"label[for=cell-{days}]").inner_text() == "seen"
    drawn = opened.page.locator("#model figure", has_text="seen").first.locator("svg text")
    assert {"2022", "2024"} <= {*drawn.all_text_contents()}
    for own, day in [("lost", "2023-11-05"), ("early", "2021-04-01"), ("lost", "")]:
        for k, name in enumerate(names):
            if name.startswith("note: "):
                yes = str(int(name in ("note: parcel", "note: client", f"note: {own}")))
                opened.page.locator(f"#cell-{k}").select_option(yes)
        opened.page.locator(f"#cell-{days}").fill(day)
        row = {"seen": [day or None], "note": [f"the parcel of client 7 came {own} today"]}
        expected = model.predict_proba(row)[0, k_positive]
        assert opened.value(f"#w-probability-{k_positive}") == pytest.approx(expected, abs=NEAR)
    parts = opened.page.locator("#model figure", has_text="note: lost").first
    assert {*parts.locator("svg text").all_text_contents()[::2]} == {"yes", "no"}


def assert_errors_cost(opened, found, steps, k):
    """Errors on one class made dearer: what the page shows is the rule run again."""
    opened.page.select_option("#errors-class", str(k))
    press(opened, "#errors", "ArrowRight", 6)
    table, shares = found.summary["cost_sliders"], found.summary["mix"]
    counts = np.array(table["counts"][k][table["steps"] + 6], dtype=float)
    costs = np.array(shares["costs"])
    costs[k] *= np.exp(6 * table["step"])
    rates = counts / np.maximum(np.array(shares["rows"])[:, None], 1)
    now = mix(shares | {"rates": rates.tolist(), "costs": costs.tolist()}, steps)
    assert opened.value("#o-cost") == pytest.approx(now["cost"], abs=NEAR)
    assert opened.value("#errors-value") == pytest.approx(np.exp(6 * table["step"]))
    for d in range(len(shares["shares"])):
        assert opened.value(f"#decided-{d}") == pytest.approx(now["decided"][d], abs=NEAR)
    press(opened, "#errors", "ArrowLeft", 6)


def test_the_capacity_slider_shows_the_numbers_of_python(payments, open_page):
    *_, found = payments
    table = found.summary["capacity"]
    opened = open_page(found)

    def assert_capacity(at):
        share, caught = table["shares"][at], table["caught"][at]
        assert opened.value("#capacity-step-value") == pytest.approx(share, abs=NEAR)
        assert opened.value("#o-caught") == pytest.approx(caught, abs=NEAR)
        assert opened.value("#o-right") == pytest.approx(caught * table["base"] / share, abs=NEAR)
        assert opened.value("#o-found") == pytest.approx(1000 * caught * table["base"], abs=1e-6)
        assert opened.value("#o-lift") == pytest.approx(caught / share, rel=NEAR)

    assert_capacity(table["start"])
    press(opened, "#capacity-step", "ArrowLeft", 9)
    assert_capacity(table["start"] - 9)
    press(opened, "#capacity-step", "Home", 1)
    assert_capacity(0)
    press(opened, "#capacity-step", "End", 1)
    assert_capacity(len(table["shares"]) - 1)


def test_cases_and_currency_scale_the_sliders(payments, open_page):
    model, X, y, _ = payments
    found = report(model, X, y, cases="5000/month", currency="EUR")
    opened = open_page(found, viewport={"width": 400, "height": 800})
    press(opened, "#ratio", "ArrowRight", 5)
    now = play(found.summary["sliders"], 5, 0)
    assert opened.value("#o-money") == pytest.approx(5000 * now["cost"], abs=1e-6)
    assert opened.value("#o-decided") == pytest.approx(5 * now["decided"], abs=1e-6)
    assert opened.page.inner_text("#o-money").endswith("EUR")
    assert "a month" in opened.page.inner_text("#play-panel")
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 400


TEXTS = """() => {
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
  while (walk.nextNode()) {
    const node = walk.currentNode;
    if (!['SCRIPT', 'STYLE'].includes(node.parentElement.tagName)) found.push(node.data);
  }
  for (const node of document.querySelectorAll('[aria-label]')) found.push(node.ariaLabel);
  return found;
}"""


def test_no_english_sentence_and_no_english_number_in_the_french_page(payments, open_page):
    """Every text of the opened page against the English half of the dictionary."""
    model, X, y, _ = payments
    comparison = {"candidate": ["a", "b"], "cost": [0.41, 0.4235], "size": [3.0, 43.5],
                  "chosen": [True, False], "note": ["", "2 folds"]}  # fmt: skip
    plain = PlainLogisticRegression().fit(X, y)
    shown = [
        report(model, X, y, language="fr", title="Cartes", cases="5000/month", currency="EUR",
               baseline=plain, comparison=comparison, n_train=3000),
        report(*three_classes_model(), language="fr", title="Urgences"),
    ]  # fmt: skip
    english, french = [], {" ".join(text.split()) for text in words("fr").values()}
    for text in {" ".join(text.split()) for text in words("en").values()} - french - {""}:
        literal = re.split(r"\{\w+\}", text)
        if max(map(len, literal)) >= 4:
            english.append(re.compile(".+".join(map(re.escape, literal))))
    assert len(english) > 150
    for found in shown:
        opened = open_page(found)
        opened.page.click("#specialists > summary")
        for summary in opened.page.locator("figure details summary").all()[:4]:
            summary.click()
        texts = [" ".join(t.split()) for t in opened.page.evaluate(TEXTS) if t.strip()]
        assert len(texts) > 100
        for text in texts:
            assert not [p.pattern for p in english if p.fullmatch(text)], text
            assert not re.search(r"(?<![\w.])\d+\.\d", text.replace(__version__, "")), text

    assert "3\u202f000 lignes" in shown[0].to_html()


def three_classes_model():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(300, 2))
    y = np.array(["un", "deux", "trois"])[np.digitize(X[:, 0] + draw.normal(size=300), [0, 1])]
    return DecisionClassifier(PlainLogisticRegression(), reject_cost=0.4).fit(X, y), X, y


def test_leaves_of_trees_have_labels_and_the_map_is_whole(open_page):
    draw = np.random.default_rng(3)
    X = draw.normal(size=(500, 3))
    X[0] = 40.0  # far outside of the map
    y = (X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * draw.normal(size=500) > 0).astype(int)
    model = DecisionClassifier(WeightedNaiveBayes(random_state=0, trees=2)).fit(X[:300], y[:300])
    found = report(model, X, y)
    terms = found.summary["model"]["form"]["terms"]
    trees = [term for term in terms if term["kind"] == "rules"]
    assert trees
    opened = open_page(found, viewport={"width": 1000, "height": 800})
    opened.page.click("#specialists > summary")
    drawn = opened.page.locator(f"figure svg[aria-label='{', '.join(trees[0]['columns'])}']").first
    leaves = sum(c < 0 for c in trees[0]["column"])
    assert drawn.locator("rect").count() == leaves
    labels = drawn.locator("text:not([text-anchor])").all_text_contents()
    assert len(labels) >= leaves
    assert all(any(name in text for name in trees[0]["columns"]) for text in labels)
    outside = opened.page.evaluate(
        """() => {
          const svg = document.querySelector('#map-panel svg'), box = svg.viewBox.baseVal;
          return [...svg.querySelectorAll('circle')].filter((c) => {
            const [x, y, r] = ['cx', 'cy', 'r'].map((n) => Number(c.getAttribute(n)));
            return x - r < 0 || x + r > box.width || y - r < 0 || y + r > box.height
              || c.closest('[clip-path]');
          }).length;
        }"""
    )
    assert outside == 0


def test_tables_curves_grids_and_trees_of_two_classes(open_page):
    draw = np.random.default_rng(3)
    X = draw.normal(size=(500, 3))
    y = (X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * draw.normal(size=500) > 0).astype(int)
    kinds = set()
    for inner in (
        CqBoostClassifier(mu="least-squares", max_voters=6, proba="calibrated"),
        WeightedNaiveBayes(random_state=0, pairs=1, trees=2),
        SparseAdditiveClassifier(group_penalty=0.001, pairs=2),
    ):
        model = DecisionClassifier(inner, costs={"fp": 1, "fn": 3}).fit(X[:300], y[:300])
        found = report(model, X[300:], y[300:])
        assert found.summary["model"]["what_if"]
        kinds |= {term["kind"] for term in found.summary["model"]["form"]["terms"]}
        opened = open_page(found)
        for r in (300, 333, 401):
            cells = {f"x{j}": float(X[r, j]) for j in range(3)}
            fill_in(opened, found.summary["model"], cells)
            assert_answers(opened, model, found, X[r : r + 1])
    assert kinds == {"table", "piecewise", "grid", "rules"}


def test_whole_points_with_a_table_of_log_odds(open_page):
    axis = IntervalAxis(np.array([-0.5, 0.8]))
    term = SlotTerm(("x",), (axis,), np.array([[-2.0], [1.0], [4.0], [0.0]]))
    table = tuple((float(t), 0.3 * t**3) for t in range(-2, 4))  # shorter than the totals
    form = AdditiveScore((0, 1), np.array([0.0]), (term,), "points", calibration=table)
    inner = export_cases.FormModel(Schema(("x",), ("numeric",), (None,), True), form)
    inner._read_rows = inner.schema_.apply
    X, y = {"x": np.linspace(-1, 2, 60)}, np.repeat([0, 1], 30)
    model = DecisionClassifier(inner, prefit=True).fit(None, None)
    found = report(model, X, y)
    assert found.summary["model"]["what_if"]
    opened = open_page(found)
    for value in (-1.0, 0.3, 2.0):
        fill_in(opened, found.summary["model"], {"x": value})
        assert_answers(opened, model, found, {"x": np.array([value])})


def test_hostile_names_are_inert(open_page):
    X, y = hostile_model()
    model = SparseAdditiveClassifier(group_penalty=0.001).fit(X, y)
    title = "<img src=x onerror=alert(1)>"
    opened = open_page(report(model, X, y, title=title), viewport={"width": 900, "height": 700})
    assert opened.page.inner_text("h1") == title
    assert opened.page.locator("script").count() == 2
    assert opened.page.locator("img, iframe, object, link").count() == 0
    assert opened.page.locator("label:has-text('<script>alert(1)')").count() >= 1
    overflow = opened.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert overflow <= 0
    for summary in opened.page.locator("details summary").all():
        summary.click()
    assert "__proto__" in model.feature_names_in_
    assert opened.page.evaluate("({}).polluted === undefined")


def test_the_policy_lets_nothing_in_or_out(payments, browser, tmp_path):
    """Even a script that found its way in could not call home."""
    found = payments[3]
    opened = Opened(browser, found.save(tmp_path / "closed.html"))
    blocked = opened.page.evaluate(
        "fetch('https://example.org/').then(() => 'sent', () => 'blocked')"
    )
    assert blocked == "blocked"
    assert "Content Security Policy" in opened.complaints[0]
    opened.page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'),"
        " { textContent: 'window.leaked = 1' }))"
    )
    assert opened.page.evaluate("window.leaked === undefined")
    opened.context.close()


def wide_model():
    draw = np.random.default_rng(1)
    X = draw.normal(size=(900, 200))
    y = (X @ draw.normal(size=200) > 8).astype(int)
    return DecisionClassifier(PlainLogisticRegression()).fit(X[:600], y[:600]), X[600:], y[600:]


def test_it_fits_narrow_screens_and_print_and_follows_dark(open_page, payments):
    found = report(*wide_model())
    for one in (found, payments[3]):
        narrow = open_page(one, viewport={"width": 400, "height": 800})
        assert narrow.page.evaluate("document.documentElement.scrollWidth") <= 400
    back = "getComputedStyle(document.body).backgroundColor"
    light = open_page(found, color_scheme="light").page
    dark = open_page(found, color_scheme="dark").page
    assert light.evaluate(back) != dark.evaluate(back)
    assert light.locator("#model-panel figure").count() == 12
    light.click("#more-terms")
    assert light.locator("#model-panel figure").count() == 200
    light.click("#more-fields")
    assert light.locator(".field:visible").count() == 200
    dark.emulate_media(media="print")
    assert dark.evaluate(back) == "rgb(255, 255, 255)"
    assert not dark.is_visible("nav")
    assert dark.pdf(format="A4").startswith(b"%PDF")


def test_everything_is_reached_with_the_keyboard(open_page, payments):
    opened = open_page(payments[3])
    controls = "input, select, button, summary, a"
    wanted = opened.page.locator(f":is({controls}):visible").count()
    reached = set()
    for _ in range(wanted + 5):
        opened.page.keyboard.press("Tab")
        reached.add(
            opened.page.evaluate(
                f"[...document.querySelectorAll('{controls}')].indexOf(document.activeElement)"
            )
        )
    assert len(reached - {-1}) >= wanted
    unnamed = opened.page.evaluate(
        "[...document.querySelectorAll('input, select')].filter((n) => !n.labels.length).length"
    )
    assert unnamed == 0
    drawn = opened.page.locator("svg[role=img]").all()
    assert drawn
    assert all(node.get_attribute("aria-label") for node in drawn)


def test_a_card_can_be_printed(open_page):
    table, label = make_payments(1500)
    card = OptimalScorecardClassifier(3, (-5, 5), max_cuts=3, gap=0.2)
    model = DecisionClassifier(card, costs=COSTS).fit(table[:1000], label[:1000])
    found = report(model, table[1000:], label[1000:])
    opened = open_page(found)
    page, told = opened.page, found.summary["model"]["card"]
    lines = page.locator("#card-lines tbody tr").all()
    assert len(lines) == len(told["lines"]) + 1  # and the total
    points = [line.locator("td").nth(1).inner_text() for line in lines[:-1]]
    assert [int(p.replace("\u2212", "-")) for p in points] == [
        own["points"] for own in told["lines"]
    ]
    totals = page.locator("#card-totals tbody tr").all()
    said = [int(t.locator("th").inner_text().replace("\u2212", "-")) for t in totals]
    assert said == [own["total"] for own in told["totals"]]
    assert sum(own["rows"] for own in told["totals"]) == 500
    # the points are those of the positive class, fraud, which is the first one
    form, rows = model.estimator_.form_, model.estimator_._read_rows(table[1000:])
    total = -(form.score(rows)[:, 0] - form.intercept[0])
    by_total = {own["total"]: own["risk"] for own in told["totals"]}
    risk = [by_total[round(t)] for t in total]
    np.testing.assert_allclose(risk, model.estimator_.predict_proba(table[1000:])[:, 0], atol=1e-12)
    # the decision by total, in words, is that of the model
    lead = page.locator("#card .lead").inner_text()
    first = int(re.search(r"total of (\S+) on", lead)[1].replace("\u2212", "-"))
    np.testing.assert_array_equal(total >= first - 0.5, model.predict(table[1000:]) == "fraud")
    assert "points double the odds of" in lead
    # on paper: nothing hidden, boxes to write in
    page.emulate_media(media="print")
    assert page.locator("#card .box").first.is_visible()
    assert all(line.is_visible() for line in lines)
    page.emulate_media(media="screen")
    for r in range(3):
        cells, rows = case_rows(table[1000:], r)
        fill_in(opened, found.summary["model"], cells)
        assert_answers(opened, model, found, rows)


def test_rows_that_go_together_widen_the_interval_of_the_sliders_too(open_page):
    """The first screen and the sliders at rest speak of the same cost."""
    draw = np.random.default_rng(4)
    person = np.repeat(np.arange(120), 5)
    X = draw.normal(size=(120, 2))[person] + 0.05 * draw.normal(size=(600, 2))
    y = np.where(X[:, 0] + draw.normal(size=120)[person] > 0.8, "bad", "good")
    costs = {"bad": {"good": 6}, "good": {"bad": 1}}
    model = DecisionClassifier(PlainLogisticRegression(), costs=costs).fit(X, y)
    summary = summarise(model, X, y, clusters=person)
    assert summary["sliders"]["repeats"] > 2.0
    shown = play(summary["sliders"])
    for end in ("low", "high"):
        assert shown[f"cost_{end}"] == pytest.approx(summary[f"expected_cost_{end}"])
    opened = open_page(Report(summary, "visits"))
    told = opened.page.inner_text("#o-cost + small")
    assert told == f"{shown['cost_low']:.2g} to {shown['cost_high']:.2g} (95\u00a0%)"


def test_names_beside_a_curve_and_amounts_with_their_unit_have_room(open_page):
    """ "= 0.5" and "missing" stood on one another, "0.4886 US" above "D"."""
    draw = np.random.default_rng(1)
    n = 1500
    x = np.where(draw.random(n) < 0.2, 0.5, np.exp(draw.normal(2, 1, n)))
    x[draw.random(n) < 0.1] = np.nan
    z = np.where(x == 0.5, 2.0, np.nan_to_num(np.log(x), nan=-1.0))
    y = np.where(draw.random(n) < 1 / (1 + np.exp(1.5 - z)), "bad", "good")
    model = DecisionClassifier(SparseAdditiveClassifier(group_penalty=0.001))
    model.fit({"crp": x}, y)
    found = report(model, {"crp": x}, y, currency="USD", cases="7000/month")
    opened = open_page(found, viewport={"width": 1200, "height": 900})
    boxes = opened.page.evaluate(
        "[...document.querySelectorAll('#model-panel svg text')].map((t) => {"
        "const b = t.getBoundingClientRect(), s = t.ownerSVGElement.getBoundingClientRect();"
        "return [t.textContent, b.left, b.right, b.top, b.bottom, s.right]; })"
    )
    assert {"= 0.5", "missing"} <= {box[0] for box in boxes}
    for k, (name, left, right, top, bottom, edge) in enumerate(boxes):
        assert right <= edge + 1, name
        for other, a, b, c, d, _ in boxes[k + 1 :]:
            beside = min(right, b) <= max(left, a) or min(bottom, d) <= max(top, c) + 3
            assert beside, (name, other)
    lines = opened.page.evaluate(
        "[...document.querySelectorAll('.figures output')].map((o) => "
        "[o.textContent, o.getBoundingClientRect().height])"
    )
    tall = max(height for _, height in lines)
    assert any("USD" in text for text, _ in lines)
    assert tall < 45, lines


def test_with_many_classes_one_share_at_a_time(open_page):
    draw = np.random.default_rng(0)
    y = draw.integers(0, 12, 1200)
    X = draw.normal(size=(1200, 4)) + draw.normal(size=(12, 4))[y]
    model = DecisionClassifier(PlainLogisticRegression()).fit(X[:800], y[:800])
    found = report(model, X[800:], y[800:])
    opened = open_page(found)
    assert opened.page.locator("#play-panel input[type=range]").count() == 2  # shares, errors
    steps = [0] * 12
    for k, times in ((3, 6), (9, 4)):
        opened.page.select_option("#share-class", str(k))
        press(opened, f"#share-{k}", "ArrowRight", times)
        steps[k] = times
    now = mix(found.summary["mix"], steps)
    assert opened.value("#o-cost") == pytest.approx(now["cost"], abs=NEAR)
    opened.page.select_option("#share-class", "3")
    assert opened.value("#share-3-value") == pytest.approx(now["shares"][3], abs=NEAR)
    assert opened.page.locator("#rules-table tbody tr").count() == 2


def test_what_scrolls_sideways_is_reached_with_the_keyboard(open_page, payments):
    *_, found = payments
    table = {"candidate": ["a" * 40], "cost": [0.1], "size": [3], "note": ["n" * 90]}
    opened = open_page(
        Report(found.summary | {"comparison": table}, "t"), viewport={"width": 390, "height": 800}
    )
    opened.page.click("#specialists > summary")
    opened.page.wait_for_selector("#size .scroll[tabindex='0']")


def test_the_printed_page_holds_the_map_and_the_remarks(open_page, payments):
    """The section for specialists is opened for the printer: what it draws must be there at once,
    and its table not end at the edge of the paper."""
    *_, found = payments
    table = {
        "candidate": ["additive", "scorecard-built"], "cost": [0.1, 0.2], "size": [3, 5],
        "worst_class_risk": [1.0, 2.0], "log_loss": [0.4, 0.5], "auc": [0.8, 0.7],
        "fit_seconds": [1.5, 2.5], "certificate": [1e-7, 1e-12], "note": ["2 folds"] * 2,
    }  # fmt: skip
    opened = open_page(
        Report(found.summary | {"comparison": table}, "t"), viewport={"width": 718, "height": 900}
    )
    drawn = opened.page.evaluate(
        "dispatchEvent(new Event('beforeprint')), "
        "document.querySelectorAll('#map-panel svg circle').length"
    )
    assert drawn > 100
    opened.page.emulate_media(media="print")
    edge = opened.page.evaluate(
        "document.querySelector('#size table').getBoundingClientRect().right"
    )
    assert edge <= 718
