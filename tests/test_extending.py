"""A loss, a voter and an export of one's own, from outside: no file of the package is touched."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.special import expit, xlogy
from typer.testing import CliRunner

import laconic
from laconic.cli.export import export_app
from laconic.core.forms import SlotTerm
from laconic.core.losses import Kink, fenchel_young
from laconic.data.demo import make_payments
from laconic.data.tables.axes import CategoryAxis, IntervalAxis
from laconic.export.parts import parts_of
from laconic.votes.columns import DenseColumns
from laconic.votes.voters.base import PreparedVoters


def rows(n=200):
    draw = np.random.default_rng(0)
    X = draw.normal(size=(n, 3))
    return X, (X[:, 0] - X[:, 1] + draw.normal(size=n) > 0).astype(int)


# A loss: frozen, vectorised, with its conjugate; the solver and its certificate need no more.


@dataclass(frozen=True)
class CoolLogistic:
    """log(1 + exp(-T m)) / T of the margin m: the hinge of a logistic at temperature 1/T."""

    T: float = 3.0

    def value(self, z, y):
        return np.logaddexp(0.0, -self.T * y * z) / self.T

    def slope(self, z, y):
        return -y * expit(-self.T * y * z)

    def curvature(self, z, y):
        p = expit(self.T * y * z)
        return self.T * p * (1.0 - p)

    def conjugate(self, u, y):
        a = -u * y
        inside = np.clip(a, 0.0, 1.0)
        value = (xlogy(inside, inside) + xlogy(1.0 - inside, 1.0 - inside)) / self.T
        return np.where((a >= 0) & (a <= 1), value, np.inf)

    def kink(self, y):
        shape = np.shape(y)
        return Kink(np.full(shape, np.inf), np.zeros(shape), np.zeros(shape))


def test_a_loss_of_ones_own():
    loss = CoolLogistic()
    z, y = np.linspace(-3, 3, 50), np.ones(50)
    np.testing.assert_allclose(fenchel_young(loss, z, loss.slope(z, y), y), 0.0, atol=1e-12)
    X, labels = rows()
    model = laconic.ConvexRiskClassifier(loss, C=0.5).fit(X, labels)
    assert model.duality_gap_[0] <= 1e-6 * model.objective_[0]
    # T log(1 + e^{-m T}) / T on X is the logistic loss on T X, with another penalty
    peer = laconic.ConvexRiskClassifier("logistic", C=0.5 * 3.0).fit(X, labels)
    scaled = laconic.ConvexRiskClassifier(CoolLogistic(1.0), C=1.5).fit(X, labels)
    np.testing.assert_allclose(scaled.coef_, peer.coef_, atol=1e-5)
    side = np.where(labels == 1, 1.0, -1.0)
    score = X @ model.coef_[0] + model.intercept_[0]
    value = model.coef_[0] @ model.coef_[0] / 2 + 0.5 * loss.value(score, side).sum()
    assert model.objective_[0] == pytest.approx(value)


# A voter: a family that lays its voters out on the rows, and the voters that were picked.


@dataclass(frozen=True)
class PickedSigns:
    columns: tuple[str, ...]
    sides: tuple[float, ...]

    def votes(self, table, raw):
        found = [np.where(table.column(table.place(name)) > 0, 1.0, -1.0) for name in self.columns]
        return np.column_stack(found) * np.array(self.sides)

    def rules(self):
        signs = ["> 0" if side > 0 else "<= 0" for side in self.sides]
        return [f"{name} {sign}" for name, sign in zip(self.columns, signs, strict=True)]

    def __getitem__(self, k):
        return self.rules()[k]

    def __len__(self):
        return len(self.columns)


class PreparedSigns(PreparedVoters):
    assumption = "signs are fixed before the rows are seen"

    def __init__(self, table):
        self.table = table
        names = range(len(table.names))
        self.H = np.column_stack([np.where(table.column(j) > 0, 1.0, -1.0) for j in names])

    def columns(self, y, weight, k):
        return DenseColumns(self.H, y, weight)

    def split(self, y, weight, k, train, test):
        parts = (train, test)
        return tuple(DenseColumns(self.H[own], y[own], weight[own]) for own in parts)

    def pick(self, columns, signs, k):
        return PickedSigns(tuple(self.table.names[c] for c in columns), tuple(signs))


@dataclass(frozen=True)
class SignVoters:
    """One voter for each column: is it positive?"""

    def prepare_rows(self, rows, seed):
        return PreparedSigns(rows.table)


@pytest.mark.parametrize("make", [laconic.CqBoostClassifier, laconic.votes.MinCqClassifier])
def test_a_voter_of_ones_own(make):
    X, y = rows()
    model = make(SignVoters(), mu=0.9, mu_unit="share").fit(X, y)
    given = make("scores", mu=0.9, mu_unit="share").fit(np.sign(X), y)
    np.testing.assert_allclose(model.vote(X), given.vote(np.sign(X)), atol=1e-9)
    assert model.score(X, y) > 0.7
    assert any("> 0" in rule for _, rule in model.rules())


# An export: written for fitted forms, so that it serves every family; and a command for it.


def to_python(model) -> str:
    """A function of one row, as Python source that needs nothing but the standard library."""
    parts = parts_of(model)
    lines = ["from bisect import bisect_left", "", "def score(row):"]
    lines.append(f"    total = {parts.form.intercept[0]!r}".replace("np.float64", "float"))
    for term in parts.form.terms:
        assert isinstance(term, SlotTerm)
        (name,), (axis,) = term.columns, term.axes
        points = term.values[:, 0].tolist()
        if isinstance(axis, CategoryAxis):
            slots = {text: points[k] for text, k in axis.slot_of().items()}
            lines.append(f"    total += {slots!r}.get(row[{name!r}], {points[axis.other]!r})")
        else:
            assert isinstance(axis, IntervalAxis)
            bounds = axis.bounds.tolist()
            lines.append(f"    total += {points!r}[bisect_left({bounds!r}, row[{name!r}])]")
    return "\n".join([*lines, "    return total", ""])


def test_an_export_of_ones_own(tmp_path):
    table, label = make_payments(800)
    costs = {"fraud": {"genuine": 25}, "genuine": {"fraud": 1}}
    bayes = laconic.WeightedNaiveBayes(random_state=0)
    model = laconic.DecisionClassifier(bayes, costs).fit(table, label)
    laconic.save(model, tmp_path / "model.json")

    @export_app.command("python")
    def written(path: str) -> None:
        print(to_python(laconic.load(path)))

    try:
        done = CliRunner().invoke(export_app, ["python", str(tmp_path / "model.json")])
    finally:
        export_app.registered_commands.pop()
    assert done.exit_code == 0, done.output
    space: dict[str, object] = {}
    exec(done.output, space)
    expected = model.estimator_.decision_function(table)
    for i in range(0, 800, 40):
        row = {}
        for j, name in enumerate(table.names):
            value, texts = table.column(j)[i], table.categories[j]
            row[name] = value if texts is None else texts[value]
        assert space["score"](row) == pytest.approx(expected[i], abs=1e-12)
