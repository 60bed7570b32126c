"""What ``explain`` returns in every family: what each variable adds to the score of each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats
from laconic.core import drawing as theme
from laconic.core.forms import AdditiveScore
from laconic.data.tables.columns import MISSING, Schema, Table
from laconic.data.tables.spoken import Spoken

__all__ = [
    "Cells",
    "ContributionDisplay",
    "Explanation",
    "adds_up",
    "cell_text",
    "explain_form",
    "sum_of_terms",
    "switches_of",
]

_SHOWN_TEXT = 46


class Cells(Protocol):
    """What the variables hold on a row, as text."""

    def row(self, i: int) -> list[str]: ...

    def spoken(self, i: int, words: Spoken) -> list[str]:
        """Each variable by its columns and their values, for a sentence."""
        ...


@dataclass(frozen=True)
class TableCells:
    """Values of the columns that each variable reads; texts are made when a row is asked for."""

    table: Table
    columns: tuple[tuple[str, ...], ...]

    def row(self, i: int) -> list[str]:
        return [", ".join(cell_text(self.table, name, i) for name in own) for own in self.columns]

    def spoken(self, i: int, words: Spoken) -> list[str]:
        return [words.cells(self.table, own, i) for own in self.columns]


@dataclass(frozen=True)
class SomeCells:
    """The cells of some rows."""

    all: Cells
    places: NDArray[np.int64]

    def row(self, i: int) -> list[str]:
        return self.all.row(int(self.places[i]))

    def spoken(self, i: int, words: Spoken) -> list[str]:
        return self.all.spoken(int(self.places[i]), words)


def cell_text(table: Table, name: str, i: int) -> str:
    """One cell as a reader knows it.

    >>> table = Table(("x",), ("numeric",), (None,), matrix=np.array([[0.5], [np.nan]]))
    >>> cell_text(table, "x", 0), cell_text(table, "x", 1)
    ('0.5', 'missing')
    """
    j = table.place(name)
    value, texts = table.column(j)[i], table.categories[j]
    if table.kinds[j] == "categorical":
        if value == MISSING:
            return "missing"
        return "unknown" if value < 0 or texts is None else texts[value]
    return "missing" if np.isnan(value) else f"{value:.12g}"


@dataclass(frozen=True, repr=False)
class Explanation:
    r"""Exact contributions of the variables to the scores of some rows.

    .. math:: s_k(x_i) = b_k + \sum_v c_{ivk}

    A variable is a column, or the columns that one part of the model reads together ("age x
    income"); it has one entry, even where several terms of the model read it. With two classes
    there is one score, that of ``classes[1]``; with K > 2 classes there are K.

    Attributes
    ----------
    names : tuple of str
        The variables that the model reads, V of them.
    classes : ndarray of shape (K,)
    baseline : ndarray of shape (S,)
        The score before any variable is looked at; S is 1 for two classes, else K.
    contributions : ndarray of shape (n, V, S)
    score : ndarray of shape (n,) or (n, K)
    odds : bool
        Whether scores are log-odds (two classes) or differ by them (more), so that contributions
        are logarithms of factors of the odds.
    average : ndarray of shape (V, S) or None
        Mean contributions on the rows that a model file was measured on.

    Examples
    --------
    >>> from laconic import PlainLogisticRegression
    >>> model = PlainLogisticRegression().fit({"age": [20, 30, 40, 50]}, [0, 1, 0, 1])
    >>> why = model.explain({"age": [25, 60]})
    >>> why.names, np.asarray(why).shape
    (('age',), (2, 1))
    >>> bool(np.allclose(why.score, model.decision_function({"age": [25, 60]})))
    True
    >>> model.explain({"age": [60]}).sentences(against=model.explain({"age": [30]}))
    [['age 60 raises the odds of 1 3.4 times']]
    """

    names: tuple[str, ...]
    classes: NDArray[Any]
    baseline: Floats
    contributions: Floats
    cells: Cells
    odds: bool = False
    average: Floats | None = None
    based: bool = False
    """Whether the contributions are already told against a reference."""
    switches: frozenset[str] = frozenset()
    """Columns that say with 1 or 0 whether a text has a word."""

    @property
    def n_rows(self) -> int:
        return len(self.contributions)

    @property
    def outputs(self) -> NDArray[Any]:
        """The class of each score."""
        return self.classes[1:] if len(self.baseline) == 1 else self.classes

    @cached_property
    def score(self) -> Floats:
        """Baseline plus contributions, added up in the order of the variables."""
        total = np.repeat(self.baseline[None, :], self.n_rows, axis=0)
        for v in range(len(self.names)):
            total += self.contributions[:, v]
        return total[:, 0] if total.shape[1] == 1 else total

    def __repr__(self) -> str:
        """What it is about, and the methods that tell it; the numbers fill pages."""
        what = self.classes[-1] if len(self.baseline) == 1 else "each class"
        rows = "1 row" if self.n_rows == 1 else f"{self.n_rows:,} rows"
        return (
            f"<Explanation of {rows}: score of {what} from {len(self.names)} variables; "
            "sentences(), top(), frame(), to_shap()>"
        )

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, rows: Any) -> Explanation:
        """Some rows, by places, a slice or a mask; the average stays that of all."""
        places = np.atleast_1d(np.arange(self.n_rows)[rows])
        cells = SomeCells(self.cells, places)
        return replace(self, contributions=self.contributions[places], cells=cells)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """(n, V) for two classes, else (n, V, K)."""
        one = self.contributions.shape[2] == 1
        values = self.contributions[:, :, 0] if one else self.contributions
        return np.array(values, dtype=dtype, copy=copy)

    def parts(self, row: int) -> list[str]:
        """What each variable holds on a row: its value, or the part that the value falls in."""
        if not -self.n_rows <= row < self.n_rows:
            raise ValueError(f"row must be below {self.n_rows}, the number of rows; got {row}.")
        return self.cells.row(row % self.n_rows)

    def frame(self) -> Any:
        """Named columns: row, class, baseline, one for each variable, score.

        One line for each row and score; a pandas frame, or a dict of columns without pandas. A
        column that would hide a variable of the same name has an underscore appended.
        """
        n, _, n_scores = self.contributions.shape
        spread = self.contributions.transpose(0, 2, 1).reshape(n * n_scores, -1)
        before = {
            "row": np.repeat(np.arange(n), n_scores),
            "class": np.tile(self.outputs, n),
            "baseline": np.tile(self.baseline, n),
        }
        columns = {self._free(name): values for name, values in before.items()}
        columns |= {name: spread[:, v] for v, name in enumerate(self.names)}
        columns[self._free("score")] = self.score.ravel()
        return theme.frame_of(columns)

    def to_shap(self, data: Any = None) -> Any:
        """The same numbers as a ``shap.Explanation``, for the plots of shap.

        Sums of terms have exact Shapley values in closed form, so no explainer samples anything:
        contributions against the mean of background rows (:meth:`against`) are those of shap's
        interventional explainers. A variable that reads several columns is one feature.

        Parameters
        ----------
        data : array of shape (n, V), default=None
            What the plots write beside the names. None: the cells, as texts.

        Returns
        -------
        shap.Explanation
            Values (n, V) for two classes, (n, V, K) for more. Needs the package shap.
        """
        from shap import Explanation as ShapExplanation

        values = np.asarray(self)
        if data is None:
            data = np.array([self.parts(i) for i in range(self.n_rows)], dtype=object)
        base = self.baseline[0] if len(self.baseline) == 1 else self.baseline
        return ShapExplanation(
            values,
            base_values=np.repeat(np.asarray(base)[None], self.n_rows, axis=0),
            data=np.asarray(data).reshape(self.n_rows, len(self.names)),
            feature_names=list(self.names),
            output_names=None if values.ndim == 2 else [str(label) for label in self.classes],
        )

    def _free(self, name: str) -> str:
        while name in self.names:
            name += "_"
        return name

    def top(self, k: int = 3, *, output: Any = None) -> Any:
        """The k variables that move each row most, largest first: its reasons.

        Parameters
        ----------
        k : int, default=3
        output : object, default=None
            The class whose score is looked at. None: the second of two classes, else the class of
            the row's highest score.

        Returns
        -------
        frame, as :meth:`frame`
            Columns row, class, variable, part, contribution; k lines for each row.
        """
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k!r}.")
        moved, shown = self.towards(output)
        order = np.argsort(-np.abs(moved), axis=1, kind="stable")[:, :k]
        rows = np.repeat(np.arange(self.n_rows), order.shape[1])
        texts = [self.cells.row(i) for i in range(self.n_rows)]
        columns = {
            "row": rows,
            "class": np.repeat(shown, order.shape[1]),
            "variable": [self.names[v] for v in order.ravel()],
            "part": [texts[i][v] for i, v in zip(rows, order.ravel(), strict=True)],
            "contribution": np.take_along_axis(moved, order, axis=1).ravel(),
        }
        return theme.frame_of(columns)

    def towards(self, output: Any = None) -> tuple[Floats, NDArray[Any]]:
        """Contributions (n, V) to the score of one class for each row, and that class.

        ``output`` is a class; None means the second of two, else that of the row's highest score.
        """
        place = None if output is None else self.place_of(output)
        if len(self.baseline) == 1:
            # of two classes, the first one's score is minus that of the second
            sign = -1.0 if place == 0 else 1.0
            shown = self.classes[1 if place is None else place]
            return sign * self.contributions[:, :, 0], np.full(self.n_rows, shown)
        best = self.score.argmax(axis=1) if place is None else np.full(self.n_rows, place)
        return self.contributions[np.arange(self.n_rows), :, best], self.classes[best]

    def against(self, reference: Explanation | None = None) -> Explanation:
        r"""The same scores told from another row: :math:`c_{ivk} - \bar c_{vk}`, on a new baseline.

        Parameters
        ----------
        reference : Explanation, default=None
            Of the rows to compare with, by the same model; of several, their mean. None: the mean
            of the rows that the model file was measured on, where it has one, else of these rows.

        Returns
        -------
        Explanation
        """
        if reference is not None:
            if reference.names != self.names:
                raise ValueError("reference must be an explanation by the same model.")
            mean = reference.contributions.mean(axis=0)
        elif self.average is not None:
            mean = self.average
        elif self.n_rows > 1:
            mean = self.contributions.mean(axis=0)
        else:
            raise ValueError(
                "One row has no average to be compared with; give the rows of the fit: "
                "against(model.explain(rows)), or sentences(against=model.explain(rows))."
            )
        # what every row holds anyway goes to the baseline, so that the scores stay
        moved = self.contributions - mean
        return replace(
            self,
            baseline=self.baseline + mean.sum(axis=0),
            contributions=moved,
            average=None,
            based=True,
        )

    def sentences(
        self,
        k: int = 3,
        *,
        language: str = "en",
        output: Any = None,
        against: Explanation | None = None,
        which: Literal["both", "for"] = "both",
        name: str | None = None,
    ) -> list[list[str]]:
        """The k strongest reasons of each row in words, one for a variable, strongest first.

        The factors of all the variables multiply to the odds of the row over those of the
        reference. With more than two classes the odds are those of ``output`` over the class that
        comes closest to it on the row; a score that is no log-odds (a vote) is told as a score.

        Parameters
        ----------
        k : int, default=3
        language : {"en", "fr"}, default="en"
        output : class, default=None
            As in :meth:`top`.
        against : Explanation, default=None
            As in :meth:`against`.
        which : {"both", "for"}, default="both"
            "for": only what speaks for ``output`` more than on the reference, as a letter on an
            adverse decision must say.
        name : str, default=None
            How ``output`` is called, when the label alone says little.

        Returns
        -------
        list of lists of str
        """
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k!r}.")
        if which not in ("both", "for"):
            raise ValueError(f"which must be 'both' or 'for', got {which!r}.")
        relative = self if self.based and against is None else self.against(against)
        moved, shown, rivals = relative._over_rivals(output)
        words, found = Spoken(language, self.switches), []
        order = np.argsort(-(np.abs(moved) if which == "both" else moved), axis=1, kind="stable")
        for i, places in enumerate(order):
            about = str(shown[i]) if name is None else name
            if rivals is not None:
                about = words.say("over", name=about, other=rivals[i])
            cells = self.cells.spoken(i, words)
            kept = [
                v
                for v in places[:k]
                if words.matters(moved[i, v], odds=self.odds)
                and (which == "both" or moved[i, v] > 0)
            ]
            found.append(
                [words.reason(cells[v], about, float(moved[i, v]), odds=self.odds) for v in kept]
            )
        return found

    def _over_rivals(self, output: Any) -> tuple[Floats, NDArray[Any], NDArray[Any] | None]:
        """Contributions to the log-odds of each row's class over its closest rival, where there
        are several."""
        moved, shown = self.towards(output)
        if len(self.baseline) == 1 or not self.odds:
            return moved, shown, None
        rows = np.arange(self.n_rows)
        own = np.array([self.place_of(label) for label in shown.tolist()], dtype=np.int64)
        others = self.score.copy()
        others[rows, own] = -np.inf
        rival = others.argmax(axis=1)
        return moved - self.contributions[rows, :, rival], shown, self.classes[rival]

    def baseline_of(self, output: Any) -> float:
        """The baseline of the score of one class."""
        place = self.place_of(output)
        if len(self.baseline) == 1:
            return float(self.baseline[0]) if place else -float(self.baseline[0])
        return float(self.baseline[place])

    def place_of(self, output: Any) -> int:
        """Where a class stands among the classes; one that is not there is an error."""
        known: list[Any] = self.classes.tolist()
        if output not in known:
            raise ValueError(f"output must be one of the classes {known}, got {output!r}.")
        return known.index(output)


def explain_form(
    form: AdditiveScore,
    classes: NDArray[Any],
    table: Table,
    *,
    names: Sequence[str] | None = None,
    cells: Cells | None = None,
) -> Explanation:
    """The contributions of a sum of terms; terms that read the same columns are one variable.

    ``names`` names the terms one by one, which then stay apart.
    """
    given, odds = form.contributions(table), form.link in ("logit", "softmax")
    if names is not None:
        columns = tuple(term.columns for term in form.terms)
        cells = TableCells(table, columns) if cells is None else cells
        return Explanation(tuple(names), classes, form.intercept, given, cells, odds)
    # a mean of two models may hold two terms of one column: they are told as one
    places: dict[frozenset[str], int] = {}
    variables = [places.setdefault(frozenset(term.columns), len(places)) for term in form.terms]
    together = np.zeros((table.n_rows, len(places), form.n_scores))
    own: dict[int, tuple[str, ...]] = {}
    for t, v in enumerate(variables):
        together[:, v] += given[:, t]
        own.setdefault(v, form.terms[t].columns)
    read = tuple(own.values())
    shown = tuple(" x ".join(columns) for columns in read)
    return Explanation(shown, classes, form.intercept, together, TableCells(table, read), odds)


def switches_of(schema: Schema) -> frozenset[str]:
    """Columns of a table as it is read that say with 1 or 0 whether a text has a word."""
    return frozenset() if schema.reading is None else schema.reading.switches


def sum_of_terms(model: Any) -> AdditiveScore | None:
    """The fitted sum of terms of a model; None where its score is no such sum."""
    try:
        form = getattr(model, "linear_form_", None) or getattr(model, "form_", None)
    except ValueError:  # a form that these parameters do not have, such as a vote of forests
        return None
    if form is not None and hasattr(form, "additive"):
        form = form.additive(model.schema_.names)
    return form if isinstance(form, AdditiveScore) else None


class Explains(Protocol):
    """A fitted form that is no sum of terms and takes its scores apart in a way of its own."""

    @property
    def explains(self) -> bool: ...

    def explain(self, classes: NDArray[Any], table: Table) -> Explanation: ...


def own_way(model: Any) -> Explains | None:
    """The fitted form of a model that explains itself, such as one of gaussian kernels."""
    for name in ("form_", "ranked_form_", "kernel_form_"):
        try:
            form = getattr(model, name, None)
        except ValueError:  # as in sum_of_terms
            continue
        if getattr(form, "explains", False):
            return cast("Explains", form)
    return None


def adds_up(model: Any) -> bool:
    """Whether a model can be explained; not known, and so not denied, before ``fit``."""
    if not hasattr(model, "classes_"):
        return True
    return sum_of_terms(model) is not None or own_way(model) is not None


@dataclass
class ContributionDisplay(theme.Display):
    """What each variable adds to the score of one row, largest first.

    Attributes
    ----------
    labels : list of str
        Variable and the part that the row falls in.
    contributions : ndarray of shape (n_variables,)
    baseline, score : float
        The score is the baseline plus the sum of the contributions.
    output : str
        The class whose log-odds (two classes) or centred score is shown.
    bars_ : matplotlib objects, after ``plot``

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from laconic import WeightedNaiveBayes
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = WeightedNaiveBayes().fit(X, y)
    >>> display = ContributionDisplay.from_estimator(model, X, row=0, output=0)
    >>> bool(abs(display.baseline + display.contributions.sum() - display.score) < 1e-9)
    True
    """

    labels: list[str]
    contributions: Floats
    baseline: float
    score: float
    output: str

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, row: int = 0, output: Any = None
    ) -> ContributionDisplay:
        """One row of X; ``output`` is a class, by default the one predicted (the second of two)."""
        return cls.from_explanation(estimator.explain(X), row=row, output=output)

    @classmethod
    def from_explanation(
        cls, explanation: Explanation, *, row: int = 0, output: Any = None
    ) -> ContributionDisplay:
        """One row of an :class:`Explanation`."""
        parts = explanation.parts(row)
        moved, shown = explanation.towards(output)
        order = np.argsort(-np.abs(moved[row]), kind="stable")
        labels = [f"{explanation.names[k]}: {parts[k]}" for k in order]
        baseline = float(explanation.baseline_of(shown[row]))
        score = baseline + float(moved[row].sum())
        return cls(labels, moved[row, order], baseline, score, str(shown[row]))

    def _columns(self) -> dict[str, Any]:
        return {"label": self.labels, "contribution": self.contributions}

    def _draw(self, ax: Any) -> tuple[str, str]:
        place = np.arange(len(self.labels))[::-1]
        colours = [theme.LINES[1] if c < 0 else theme.LINES[0] for c in self.contributions]
        self.bars_ = ax.barh(place, self.contributions, color=colours, height=0.7)
        ax.set_yticks(place, [theme.short(text, _SHOWN_TEXT) for text in self.labels])
        ax.axvline(0.0, color=theme.INK, lw=0.8)
        ax.grid(False, axis="y")
        said = f"baseline {self.baseline:+.2f}, this row {self.score:+.2f}"
        ax.set_title(said, loc="left", fontsize=9, color=theme.INK)
        return f"contribution to the score of {theme.short(self.output, _SHOWN_TEXT)}", ""
