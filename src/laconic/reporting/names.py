"""Models by names that a reader knows, not by classes of Python; remarks on candidates."""

from __future__ import annotations

import re
from typing import Any

from laconic.data.tables.spoken import column_name, level_name

_FAMILIES: dict[str, tuple[str, str]] = {
    "PlainLogisticRegression": ("logistic regression", "régression logistique"),
    "LogisticRegression": ("logistic regression", "régression logistique"),
    "LogisticRegressionCV": ("logistic regression", "régression logistique"),
    "GrayZoneLogisticRegression": (
        "logistic regression, most exact near the decision",
        "régression logistique, plus précise près de la décision",
    ),
    "GrayZoneLogisticRegressionCV": (
        "logistic regression, most exact near the decision",
        "régression logistique, plus précise près de la décision",
    ),
    "SparseAdditiveClassifier": ("sum of curves", "somme de courbes"),
    "BlendedClassifier": ("sum of curves and tables", "somme de courbes et de tableaux"),
    "WeightedNaiveBayes": ("sum of tables", "somme de tableaux"),
    "ScorecardClassifier": ("scorecard", "grille de points"),
    "OptimalScorecardClassifier": ("scorecard", "grille de points"),
    "SparseRulesClassifier": ("weighted rules", "règles pondérées"),
    "CqBoostClassifier": ("vote of simple rules", "vote de règles simples"),
    "MinCqClassifier": ("vote of simple rules", "vote de règles simples"),
    "MinimaxClassifier": ("decisions by profile", "décisions par profil"),
    "GrayZoneKernelClassifier": ("likeness to known cases", "ressemblance à des cas connus"),
    "RankKernelClassifier": ("likeness to known cases", "ressemblance à des cas connus"),
    "ConvexRiskClassifier": ("weighted sum", "somme pondérée"),
    "Committee": ("several models together", "plusieurs modèles ensemble"),
}

_NOTES: tuple[tuple[str, str, str], ...] = (
    (
        r"(\d+) folds",
        r"only \1 folds: not measured on the same rows",
        r"\1 plis seulement : pas mesuré sur les mêmes lignes",
    ),
    (
        "weighted mean",
        "weighted mean of the candidates",
        "moyenne pondérée des candidats",
    ),
    (
        "taught by the committee",
        "taught by the committee",
        "appris du comité",
    ),
    (r"time_budget.*", "no time left", "plus de temps"),
    (r"refused: (.*)", r"refused: \1", "refusé"),
)


_SHORT_NOTES = {
    r"(\d+) folds": r"\1 plis",
    "weighted mean": "moyenne pondérée",
}
"""What a screen of eighty columns has room for, in French."""


def family_name(kind: str, language: str) -> str:
    """A class of Python as a reader would call the model.

    >>> family_name("SparseAdditiveClassifier", "fr"), family_name("RandomForestClassifier", "en")
    ('somme de courbes', 'random forest')
    """
    if kind in _FAMILIES:
        return _FAMILIES[kind][language == "fr"]
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", re.sub("Classifier(CV)?$", "", kind))
    return " ".join(parts).lower() or kind


def short_note(note: str, language: str) -> str:
    """A remark of the comparison as a screen has room for it.

    >>> short_note("2 folds", "fr"), short_note("2 folds", "en"), short_note("time_budget", "fr")
    ('2 plis', '2 folds', 'plus de temps')
    """
    if language == "en":
        return note
    for pattern, french in _SHORT_NOTES.items():
        if re.fullmatch(pattern, note):
            return re.sub(pattern, french, note)
    return note_text(note, language)


def note_text(note: str, language: str) -> str:
    """A remark of the comparison, in the language of the page.

    >>> note_text("2 folds", "fr")
    '2 plis seulement : pas mesuré sur les mêmes lignes'
    """
    for pattern, english, french in _NOTES:
        if re.fullmatch(pattern, note):
            return re.sub(pattern, french if language == "fr" else english, note)
    return note


def in_language(summary: dict[str, Any], language: str) -> dict[str, Any]:
    """The summary with parts of dates called as a reader of the language calls them.

    Columns and weekdays are renamed in the model and on the map, wherever they stand, so that what
    the page computes from them is the same.
    """
    if language == "en":
        return summary
    return summary | {key: _named(summary[key], language) for key in ("model", "map")}


def _named(found: Any, language: str) -> Any:
    if isinstance(found, dict):
        own = {key: _named(value, language) for key, value in found.items()}
        columns = found.get("columns")
        if "axes" in found and isinstance(columns, list):  # a term
            own["axes"] = [
                _weekdays(axis, str(name), language)
                for axis, name in zip(found["axes"], columns, strict=True)
            ]
        elif "name" in found:  # a column of the form to fill in
            own |= _weekdays(
                {key: found.get(key) for key in ("texts", "start")}, found["name"], language
            )
            own = {key: own[key] for key in found}
        elif "part" in found and "column" in found:  # a line of a card
            own["part"] = level_name(found["part"], found["column"], language)
        return own
    if isinstance(found, list):
        return [_named(value, language) for value in found]
    return _column_text(found, language) if isinstance(found, str) else found


def _weekdays(found: Any, name: Any, language: str) -> Any:
    """Texts, however deep in lists, that are levels of the column."""
    if isinstance(found, dict):
        return {key: _weekdays(value, name, language) for key, value in found.items()}
    if isinstance(found, list):
        return [_weekdays(value, name, language) for value in found]
    return level_name(found, str(name), language) if isinstance(found, str) else found


def _column_text(text: str, language: str) -> str:
    """Columns that one part reads, or a column and one of its levels.

    >>> _column_text("born: month \u00d7 born: weekday", "fr")
    'born\\xa0: mois \u00d7 born\\xa0: jour de la semaine'
    >>> _column_text("born: weekday = Monday", "fr")
    'born\\xa0: jour de la semaine = lundi'
    """
    said = []
    for part in text.split(" \u00d7 "):
        name, equals, level = part.partition(" = ")
        said.append(column_name(name, language) + equals + level_name(level, name, language))
    return " \u00d7 ".join(said)
