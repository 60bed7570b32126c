# ruff: noqa: E501 (sentences are kept on one line, with the punctuation of their language)
"""Sentences on what was watched, in English and in French, with the numbers of the language."""

from __future__ import annotations

from typing import Any

from laconic.data.tables.spoken import (
    LANGUAGES,
    Numbers,
    chance,
    checked_language,
    column_name,
    level_name,
    share_text,
    short_name,
)
from laconic.watching.columns import MovedColumn

# key: (English, French); braces are filled in when the sentence is used
_WORDS: dict[str, tuple[str, str]] = {
    "these": ("these {rows} rows", "ces {rows} lignes"),
    "this": ("this one row", "cette seule ligne"),
    "alarm_cost": (
        "Alarm: the costs paid left their band after {at} of {rows} rows.",
        "Alerte : les coûts payés sont sortis de leur bande après {at} lignes sur {rows}.",
    ),
    "alarm_promise": (
        "Alarm: {promise} is broken since row {at} of {rows} rows.",
        "Alerte : la promesse {promise} est rompue depuis la ligne {at} sur {rows}.",
    ),
    "alarm_scores": (
        "Alarm: on {these} some class scores otherwise than it did; a new class mix alone does not explain it ({chance}).",
        "Alerte : sur {these}, une classe obtient d'autres scores qu'auparavant ; une nouvelle répartition des classes ne suffit pas à l'expliquer ({chance}).",
    ),
    "alarm_columns": (
        "Alarm: columns have moved on {these}.",
        "Alerte : des colonnes ont changé sur {these}.",
    ),
    "calm": (
        "No alarm: on {these} nothing but the class mix may have moved.",
        "Pas d'alerte : sur {these}, seule la répartition des classes a pu changer.",
    ),
    "calm_days": (
        "No alarm: on {these} nothing but the class mix may have moved, and the dates, as time passes.",
        "Pas d'alerte : sur {these}, seules ont pu changer la répartition des classes et, le temps passant, les dates.",
    ),
    "if_so": (
        ", had only the class mix moved",
        ", si seule la répartition des classes avait changé",
    ),
    "now": (" now", " à présent"),
    "share": (
        "Share of {name}{if_so}: {share}, between {low} and {high} at 95 % (it was {before}).",
        "Part de {name}{if_so} : {share}, entre {low} et {high} à 95 % (elle était de {before}).",
    ),
    "cost": (
        "Expected cost of a decision{when}: {cost}, between {low} and {high} at 95 % (it was {before}).",
        "Coût attendu d'une décision{when} : {cost}, entre {low} et {high} à 95 % (il était de {before}).",
    ),
    "adopt": (
        "Deciding for the new mix ({shares}) would save {saved} a case{threshold}: `laconic adopt`.",
        "Décider pour la nouvelle répartition ({shares}) économiserait {saved} par cas{threshold} : `laconic adopt`.",
    ),
    "cautious": (
        "If the mix may be anywhere in its interval, decide for {shares}{threshold}: its worst cost is least.",
        "Si la répartition peut être n'importe où dans son intervalle, décidez pour {shares}{threshold} : le pire coût y est le plus bas.",
    ),
    "threshold": (
        " (threshold {other} of what is {now} now)",
        " (seuil de {other} au lieu de {now})",
    ),
    "row": ("1 row", "1 ligne"),
    "rows": ("{count}{of_all} rows", "{count} lignes{of_all}"),
    "of_all": (" of {all}", " sur {all}"),
    "labels": (
        "Labels of {rows}: they cost {cost} a case; the band ends at {band}.",
        "Classes connues de {rows} : elles coûtent {cost} par cas ; la bande s'arrête à {band}.",
    ),
    "promised": (
        "Promised {promise}: the labels of {rows} rows show {measured}.",
        "Promesse {promise} : les classes connues de {rows} lignes montrent {measured}.",
    ),
    "moved": (
        "{name} has moved beyond what the class mix explains: {bin} was {before}, is {now} ({chance}, all columns looked at).",
        "{name} a changé plus que la répartition des classes ne l'explique : la part de {bin} était de {before}, elle est de {now} ({chance}, toutes les colonnes étant regardées).",
    ),
    "days": (
        "{name} holds other days than at the fit, as it does when time passes: {bin} was {before}, is {now} ({chance}). By itself this is no alarm; what the model says of days that it has not seen is extrapolation.",
        "{name} contient d'autres dates qu'à l'apprentissage, puisque le temps passe : la part de {bin} était de {before}, elle est de {now} ({chance}). À soi seul, ce n'est pas une alerte ; ce que le modèle dit de dates qu'il n'a pas vues est une extrapolation.",
    ),
    "days_in_alarm": (
        "{name} holds other days than at the fit, as it does when time passes: {bin} was {before}, is {now} ({chance}). What the model says of days that it has not seen is extrapolation, and the alarm may come from it.",
        "{name} contient d'autres dates qu'à l'apprentissage, puisque le temps passe : la part de {bin} était de {before}, elle est de {now} ({chance}). Ce que le modèle dit de dates qu'il n'a pas vues est une extrapolation, et l'alerte peut en venir.",
    ),
    "months": (
        "{name} holds other months than at the fit, as it does when time passes: {bin} was {before}, is {now} ({chance}). By itself this is no alarm.",
        "{name} contient d'autres mois qu'à l'apprentissage, puisque le temps passe : la part de {bin} était de {before}, elle est de {now} ({chance}). À soi seul, ce n'est pas une alerte.",
    ),
    "months_in_alarm": (
        "{name} holds other months than at the fit, as it does when time passes: {bin} was {before}, is {now} ({chance}). The model reads it, so that the alarm may come from it.",
        "{name} contient d'autres mois qu'à l'apprentissage, puisque le temps passe : la part de {bin} était de {before}, elle est de {now} ({chance}). L'alerte peut en venir, puisque le modèle lit cette colonne.",
    ),
    "unseen_cell": (
        "{name} has 1 cell ({share}) with a text never seen before.",
        "{name} a 1 cellule ({share}) dont le texte n'a jamais été vu.",
    ),
    "unseen": (
        "{name} has {count} cells ({share}) with texts never seen before.",
        "{name} a {count} cellules ({share}) dont le texte n'a jamais été vu.",
    ),
    "below": ("p below 1e-9", "p inférieur à 1e-9"),
}
AT_MEANS = {
    "en": "The model decides by what errors cost on each row; costs here are those of the mean amounts of its fit.",
    "fr": "Le modèle décide d'après ce que les erreurs coûtent sur chaque ligne ; les coûts sont ici ceux des montants moyens de son apprentissage.",
}
_BINS = {"any other": "toute autre valeur", "missing": "cellules vides", "any number": "nombres"}


class Said:
    """The words and numbers of one language.

    >>> Said("fr").share(0.003653), Said("en").number(0.34567, 4), Said("fr").number(0.34567, 4)
    ('0,37\\u202f%', '0.3457', '0,3457')
    """

    def __init__(self, language: str = "en") -> None:
        self.language = checked_language(language)
        self._place = LANGUAGES.index(language)
        self.whole = Numbers(language).whole

    def say(self, key: str, **values: Any) -> str:
        return _WORDS[key][self._place].format(**values)

    def number(self, value: float, digits: int) -> str:
        return self._local(f"{value:.{digits}g}")

    def share(self, value: float) -> str:
        text = share_text(value)
        return text if self.language == "en" else self._local(text[:-1]) + "\u202f%"

    def chance(self, p_value: float) -> str:
        text = chance(p_value)
        return self._local(text) if "=" in text else self.say("below")

    def name(self, text: Any) -> str:
        """A column or a class."""
        return repr(text) if self.language == "en" else f"« {text} »"

    def moved(self, key: str, one: MovedColumn) -> str:
        named = column_name(short_name(one.name), self.language)
        largest = level_name(one.largest, one.name, self.language)
        if one.named_by == "number":
            largest = self._local(largest)
        if self.language == "fr":
            largest = _BINS[largest] if one.named_by == "word" else f"« {largest} »"
        return self.say(
            key, name=self.name(named), bin=largest, before=self.share(one.before),
            now=self.share(one.now), chance=self.chance(one.p_value),
        )  # fmt: skip

    def _local(self, text: str) -> str:
        return text if self.language == "en" else text.replace(".", ",")
