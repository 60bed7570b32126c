# ruff: noqa: E501 (sentences are kept on one line, with the punctuation of their language)
"""What a look says of columns and rows, in French: phrase by phrase, from the English sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

# English: French; {n} is a number, {q} what stands in quotes, {w} any other words,
# {l} units with "and", {u} one unit
_PHRASES: tuple[tuple[str, str], ...] = (
    # numbers
    ("number, kept as asked", "nombre, gardé comme demandé"),
    ("number", "nombre"),
    (", CR positive and DR negative", ", CR positif et DR négatif"),
    (" in percent", " en pour cent"),
    (" with a decimal comma", " à virgule décimale"),
    (" as people write it", " écrit à la main"),
    ("; the bound {w} is read as the number", " ; la borne {w} se lit comme le nombre"),
    ("; {w} is read as {n}", " ; {w} se lit {n}"),
    (
        "; {n} bounds such as {w} are read as the number",
        " ; {n} bornes telles que {w} se lisent comme le nombre",
    ),
    (
        "; {n} of {n2} cells are numbers, {w} is taken for missing",
        " ; {n} cellules sur {n2} sont des nombres, {w} est tenu pour manquant",
    ),
    (
        "; {n} of {n2} cells are dates, {w} is taken for missing",
        " ; {n} cellules sur {n2} sont des dates, {w} est tenu pour manquant",
    ),
    (
        "; {n} of {n2} cells are times, {w} is taken for missing",
        " ; {n} cellules sur {n2} sont des heures, {w} est tenu pour manquant",
    ),
    (
        "; {n} of {n2} cells are durations, {w} is taken for missing",
        " ; {n} cellules sur {n2} sont des durées, {w} est tenu pour manquant",
    ),
    (
        "; {n} of {n2} cells are numbers, {w} are taken for missing",
        " ; {n} cellules sur {n2} sont des nombres, {w} sont tenus pour manquants",
    ),
    (
        "; {n} of {n2} cells are dates, {w} are taken for missing",
        " ; {n} cellules sur {n2} sont des dates, {w} sont tenus pour manquants",
    ),
    (
        "; {n} of {n2} cells are times, {w} are taken for missing",
        " ; {n} cellules sur {n2} sont des heures, {w} sont tenus pour manquants",
    ),
    (
        "; {n} of {n2} cells are durations, {w} are taken for missing",
        " ; {n} cellules sur {n2} sont des durées, {w} sont tenus pour manquants",
    ),
    # dates and times
    ("date-time", "date et heure"),
    (
        "; dates, and numbers such as {w} for dates: write all of them as dates",
        " ; dates, et nombres tels que {w} pour des dates : écrivez-les tous comme des dates",
    ),
    ("date", "date"),
    (", the day first", ", le jour d'abord"),
    (", the month first", ", le mois d'abord"),
    (", the year first, of two digits", ", l'année d'abord, à deux chiffres"),
    (", in part months by name", ", en partie avec le nom du mois"),
    (", in part the year first", ", en partie l'année d'abord"),
    (", in UTC", ", en UTC"),
    (
        ", from {w} to {w2} (--missing, if that stands for none)",
        ", du {w} au {w2} (--missing, si cela veut dire aucune)",
    ),
    (" (no cell tells; --as {q} changes it)", " (aucune cellule ne le dit ; --as {q} le change)"),
    ("duration, in hours", "durée, en heures"),
    ("time of day, in hours", "heure du jour, en heures"),
    # categories, texts, identifiers
    ("yes or no ({w})", "oui ou non ({w})"),
    ("yes or no", "oui ou non"),
    ("code with leading zeros ({n} different)", "code avec zéros en tête ({n} différents)"),
    ("category, kept as asked", "catégorie, gardée comme demandé"),
    ("category, as asked ({n} different)", "catégorie, comme demandé ({n} différentes)"),
    ("code, as asked ({n} different)", "code, comme demandé ({n} différents)"),
    ("category ({n} different)", "catégorie ({n} différentes)"),
    ("texts of about {n} words, {n2} different", "textes d'environ {n} mots, {n2} différents"),
    ("; its words {w} are read", " ; ses mots {w} sont lus"),
    ("{n} different texts in {n2} cells", "{n} textes différents dans {n2} cellules"),
    ("{n} different codes in {n2} cells", "{n} codes différents dans {n2} cellules"),
    (
        "{n} different whole numbers that run like row numbers in {n2} cells",
        "{n} nombres entiers différents, qui courent comme des numéros de ligne, dans {n2} cellules",
    ),
    (
        "{n} different whole numbers in {n2} cells",
        "{n} nombres entiers différents dans {n2} cellules",
    ),
    (
        "identifier, each of {n} values on {n2} rows",
        "identifiant, chacune des {n} valeurs sur {n2} lignes",
    ),
    ("identifier, as asked", "identifiant, comme demandé"),
    ("no cell has a value", "aucune cellule n'a de valeur"),
    ("all {n} cells are equal", "les {n} cellules sont égales"),
    ("dropped as asked", "écartée comme demandé"),
    (", as asked", ", comme demandé"),
    ("; left out", " ; laissée de côté"),
    # what a column nearly is
    (
        "; {n} of {n2} cells are numbers: --as {q} takes the others, such as {q2}, for missing",
        " ; {n} cellules sur {n2} sont des nombres : --as {q} tient les autres, comme {q2}, pour manquantes",
    ),
    (
        "; {n} of {n2} cells are dates: --as {q} takes the others, such as {q2}, for missing",
        " ; {n} cellules sur {n2} sont des dates : --as {q} tient les autres, comme {q2}, pour manquantes",
    ),
    (
        "; {n} of {n2} cells are times: --as {q} takes the others, such as {q2}, for missing",
        " ; {n} cellules sur {n2} sont des heures : --as {q} tient les autres, comme {q2}, pour manquantes",
    ),
    (
        "; numbers with and without % cannot be compared",
        " ; nombres avec et sans % : on ne peut les comparer",
    ),
    ("; amounts in {l} cannot be compared", " ; montants en {l} : on ne peut les comparer"),
    (
        "; numbers with either decimal sign: --as {q} reads one",
        " ; nombres à point et à virgule décimale : --as {q} lit les uns",
    ),
    (
        "; dates in several orders: --as {q} (date-mdy) reads one",
        " ; dates dans plusieurs ordres : --as {q} (date-mdy) en lit un",
    ),
    (
        "; two numbers in a cell ({w}): make two columns of them",
        " ; deux nombres dans une cellule ({w}) : faites-en deux colonnes",
    ),
    ("; {q} differ in capitals alone", " ; {q} ne diffèrent que par les majuscules"),
    # rows
    ("1 row without a class is left out", "1 ligne sans classe est laissée de côté"),
    ("{n} rows without a class are left out", "{n} lignes sans classe sont laissées de côté"),
    (
        "rows with the same {q} ({n} different) are held out together; --group or --no-group changes it",
        "les lignes de même {q} ({n} différents) sont mises de côté ensemble ; --group ou --no-group le change",
    ),
    (
        "rows with the same {q} are held out together; --no-group changes it",
        "les lignes de même {q} sont mises de côté ensemble ; --no-group le change",
    ),
    # suspicions
    (
        "Classes {q} differ in capitals alone: write them in one way.",
        "Les classes {q} ne diffèrent que par les majuscules : écrivez-les d'une seule façon.",
    ),
    (
        "The target has {n} different numbers, as an amount has: cut it into a few classes.",
        "La cible a {n} nombres différents, comme un montant : découpez-la en quelques classes.",
    ),
    (
        "Column {q} has {n} rows for each value: rows that belong together should be held out together.",
        "La colonne {q} a {n} lignes par valeur : les lignes qui vont ensemble doivent être mises de côté ensemble.",
    ),
    (
        "Column {q} has {n} rows for each value: if each is a person or a thing that comes again, say --group {q2}.",
        "La colonne {q} a {n} lignes par valeur : si chacune est une personne ou une chose qui revient, dites --group {q2}.",
    ),
    (
        "Column {q} is empty in {n} of the rows: if its cells were merged in a spreadsheet, fill them down.",
        "La colonne {q} est vide dans {n} des lignes : si ses cellules étaient fusionnées dans un tableur, recopiez-les vers le bas.",
    ),
    (
        "{n} of {n2} rows are copies of others: they must be held out together, as laconic fit does.",
        "{n} lignes sur {n2} sont des copies d'autres : elles doivent être mises de côté ensemble, comme le fait laconic fit.",
    ),
    (
        "Column {q} alone tells the target (AUC {n}): is it known before the decision? If not, --drop it.",
        "La colonne {q} dit à elle seule la cible (AUC {n}) : est-elle connue avant la décision ? Sinon, écartez-la avec --drop.",
    ),
    (
        "The share of {q} moves with {q2}, from {n} of the earliest quarter to {n2} of the latest: judge the model on later rows than those it learns from.",
        "La part de {q} change avec {q2}, de {n} dans le premier quart à {n2} dans le dernier : jugez le modèle sur des lignes plus récentes que celles dont il apprend.",
    ),
    # the title of a look
    ("{n} rows", "{n} lignes"),
    ("; {n} without a class", " ; {n} sans classe"),
    (": {q} {n}", " : {q} {n}"),
    (", {q} {n}", ", {q} {n}"),
    (", ...", ", ..."),
    # units come last: any word may follow
    (" in {u}", " en {u}"),
)

_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_HOLES = {
    "n": r"[0-9][0-9,]*(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?%?",
    "q": rf"(?:{_QUOTED})(?:, (?:{_QUOTED}))*",
    "w": r"(?:" + _QUOTED + r"|[^'\"]|['\"])+?",
    "l": r"[^;]+?",
    "u": r"[^ ;,]+",
}
_COLUMN = re.compile(rf"({_QUOTED}): ")


def in_french(sentence: str) -> str:
    """A note on a column, on rows or on a target; what is in quotes stays as it is.

    >>> in_french("'dû': number in € with a decimal comma; 39 of 40 cells are numbers, '?' is taken for missing")
    "'dû' : nombre en € à virgule décimale ; 39 cellules sur 40 sont des nombres, '?' est tenu pour manquant"
    """
    column = _COLUMN.match(sentence)
    said, place = (f"{column[1]} : ", column.end()) if column else ("", 0)
    while place < len(sentence):
        found = _longest(sentence, place)
        if found is None:  # a phrase without French stays English
            return said + sentence[place:]
        place, phrase = found
        said += phrase
    return said


def _longest(sentence: str, place: int) -> tuple[int, str] | None:
    """The phrase at a place that reads on furthest, and where it ends."""
    ends = [
        (match.end(), french.format_map({k: _local(k, v) for k, v in match.groupdict().items()}))
        for pattern, french in _patterns()
        if (match := pattern.match(sentence, place))
    ]
    return max(ends, key=lambda one: one[0], default=None)


@cache
def _patterns() -> list[tuple[re.Pattern[str], str]]:
    return [(re.compile("".join(_parts(english)), re.DOTALL), own) for english, own in _PHRASES]


def _parts(english: str) -> Iterable[str]:
    for part in re.split(r"(\{[a-z][0-9]?\})", english):
        if part.startswith("{"):
            yield f"(?P<{part[1:-1]}>{_HOLES[part[1]]})"
        else:
            yield re.escape(part)


def _local(hole: str, text: str) -> str:
    if hole[0] == "l":
        return text.replace(" and ", " et ")
    if hole[0] != "n":
        return text
    local = text.replace(",", "\u202f").replace(".", ",")
    return local.replace("%", "\u202f%")
