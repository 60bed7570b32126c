"""``laconic.report``: a model and rows it has not seen, in; a page, a card or a dict, out."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from laconic.export.atomic import write_atomically
from laconic.reporting.render import to_html, to_markdown
from laconic.reporting.sentences import Sentences
from laconic.reporting.summary import summarise
from laconic.reporting.words import words


@dataclass(frozen=True)
class Report:
    """What a model does on rows that judge it, ready to be shown.

    Attributes
    ----------
    summary : dict
        Numbers, texts and lists only; the same for equal models and rows, so that it can be
        compared from one version of a model to the next.
    title : str
    language : {"en", "fr"}
    """

    summary: dict[str, Any] = field(repr=False)
    title: str
    language: str = "en"

    def to_html(self) -> str:
        """One self-contained page with sliders, drawings and a what-if form."""
        return to_html(self.summary, title=self.title, language=self.language)

    def to_markdown(self) -> str:
        """The body of a model card."""
        return to_markdown(self.summary, title=self.title, language=self.language)

    def to_json(self) -> str:
        """The summary, readable, keys in a fixed order."""
        return json.dumps(self.summary, indent=1, sort_keys=True, allow_nan=False)

    def save(self, path: str | Path) -> Path:
        """Write the face that the name asks for: ``.html``, ``.md`` or ``.json``."""
        path = Path(path)
        faces = {".html": self.to_html, ".md": self.to_markdown, ".json": self.to_json}
        if path.suffix not in faces:
            raise ValueError(f"path must end with one of {', '.join(faces)}, got {path.name!r}.")
        write_atomically(path, faces[path.suffix]())
        return path

    def _repr_html_(self) -> str:
        """The verdict and the first numbers, for notebooks."""
        said = Sentences(self.summary, self.language)
        cells = "".join(
            f"<tr><td>{escape(card['label'])}</td><td><b>{escape(card['text'])}</b></td></tr>"
            for card in said.cards()
        )
        return (
            f"<div><h4><bdi>{escape(self.title)}</bdi></h4><p>{escape(said.verdict())}</p>"
            f"<table>{cells}</table><p><small>{escape(said.measured())}</small></p></div>"
        )


def report(
    model: Any,
    X: Any,
    y: Any,
    *,
    path: str | Path | None = None,
    language: str = "en",
    comparison: Any = None,
    title: str | None = None,
    costs: Any = None,
    positive: Any = None,
    baseline: Any = None,
    cases: Any = None,
    currency: str | None = None,
    certificates: list[dict[str, Any]] | None = None,
    n_train: int | None = None,
    seed: int = 0,
) -> Report:
    """Measure a fitted model on labelled rows and report on it.

    Parameters
    ----------
    model : fitted classifier
        A :class:`~laconic.DecisionClassifier`, a model of this library, or any classifier of
        scikit-learn. One that only gives probabilities decides by least expected cost.
    X, y : rows and their classes
        They should be rows that the fit has not seen; the report says how many they are.
    path : str or Path, default=None
        Where to write the report too: ``.html``, ``.md`` or ``.json``.
    language : {"en", "fr"}, default="en"
    comparison : frame or mapping of columns, default=None
        Candidates with ``candidate``, ``cost`` and ``size``; see :func:`summarise`. None: the
        model's ``comparison_``, when it has one.
    title : str, default=None
    costs : as in DecisionClassifier, default=None
        None: the model's own, else one for every error. Costs of each row, such as
        ``{"fp": 5, "fn": amounts}``, decide and are added up row by row.
    positive : class, default=None
        The class that "fp", "fn" and the threshold are about; see :func:`summarise`.
    baseline : fitted classifier, default=None
        A plain model to compare with, for instance :class:`~laconic.PlainLogisticRegression`
        fitted on the same training rows.
    cases : str or float, default=None
        How many cases come, such as "5000/month": costs and counts are told for that time.
    currency : str, default=None
        The unit of the costs, such as "EUR".
    certificates : list of dict, default=None
        More certificates, with ``title``, ``says`` and ``assumes``.
    n_train : int, default=None
        Rows of the fit, for the sentence that says on what everything was measured.
    seed : int, default=0
        Of the rows drawn on the map.

    Returns
    -------
    Report

    Examples
    --------
    >>> from laconic import DecisionClassifier, PlainLogisticRegression, report
    >>> from laconic.data.demo import make_payments
    >>> payments, label = make_payments(3000)
    >>> model = DecisionClassifier(
    ...     PlainLogisticRegression(), costs={"fraud": {"genuine": 25}, "genuine": {"fraud": 1}}
    ... )
    >>> model = model.fit(payments[:2000], label[:2000])
    >>> found = report(model, payments[2000:], label[2000:], title="Card payments")
    >>> found.summary["positive"], round(found.summary["threshold"], 4)
    ('fraud', 0.0385)
    """
    found = Report(
        summarise(
            model,
            X,
            y,
            costs,
            positive=positive,
            n_train=n_train,
            comparison=comparison,
            certificates=certificates,
            baseline=baseline,
            cases=cases,
            currency=currency,
            seed=seed,
        ),
        words(language)["title"] if title is None else title,
        language,
    )
    if path is not None:
        found.save(path)
    return found
