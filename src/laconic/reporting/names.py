"""Models by names that a reader knows, not by classes of Python; remarks on candidates."""

from __future__ import annotations

import re

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


def family_name(kind: str, language: str) -> str:
    """A class of Python as a reader would call the model.

    >>> family_name("SparseAdditiveClassifier", "fr"), family_name("RandomForestClassifier", "en")
    ('somme de courbes', 'random forest')
    """
    if kind in _FAMILIES:
        return _FAMILIES[kind][language == "fr"]
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", re.sub("Classifier(CV)?$", "", kind))
    return " ".join(parts).lower() or kind


def note_text(note: str, language: str) -> str:
    """A remark of the comparison, in the language of the page.

    >>> note_text("2 folds", "fr")
    '2 plis seulement : pas mesuré sur les mêmes lignes'
    """
    for pattern, english, french in _NOTES:
        if re.fullmatch(pattern, note):
            return re.sub(pattern, french if language == "fr" else english, note)
    return note
