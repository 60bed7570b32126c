"""Words that stand for something else: nothing known, yes and no, currencies, months; words."""

from __future__ import annotations

import re

NOTHING_KNOWN = frozenset(
    [
        "-", "--", "---", "\u2013", "\u2014", ".", "..", "...", "/", "*", "?", "??", "na", "n.a.",
        "n.a", "n/a", "nan", "none", "null", "nil", "nd", "n.d.", "nr", "n.r.", "nc", "n.c.", "unk",
        "unknown", "not known", "missing", "not available", "not applicable", "not reported",
        "not recorded", "not specified", "no data", "no value", "no answer", "undefined", "blank",
        "empty", "(blank)", "(empty)", "(none)", "(null)", "tbd", "inconnu", "inconnue",
        "non renseign\u00e9", "non renseigne", "non disponible", "sans objet", "unbekannt", "k.a.",
        "k. a.", "keine angabe", "fehlt", "desconocido", "sin dato", "s/d", "sconosciuto",
        "0000-00-00", "0000-00-00 00:00:00", "00/00/0000", "00.00.0000", "00-00-0000",
    ]
)  # fmt: skip
"""Missing where numbers, dates or durations stand; in a column of categories they are a level."""

YES_NO = (
    ("yes", "no"), ("y", "n"), ("true", "false"), ("t", "f"), ("oui", "non"), ("o", "n"),
    ("vrai", "faux"), ("v", "f"), ("ja", "nein"), ("j", "n"), ("wahr", "falsch"), ("si", "no"),
    ("s\u00ed", "no"), ("s", "n"), ("sim", "n\u00e3o"), ("sim", "nao"), ("ja", "nee"),
    ("tak", "nie"), ("on", "off"), ("checked", "unchecked"),
)  # fmt: skip
YES, NO = "yes", "no"

CURRENCIES = frozenset(
    [
        "$", "\u20ac", "\u00a3", "\u00a5", "\u20b9", "\u20bd", "\u20a9", "\u20ba", "z\u0142", "kr",
        "kr.", "Rs", "Rs.", "R$", "US$", "C$", "A$", "Fr.", "CHF", "USD", "EUR", "GBP", "JPY",
        "CAD", "AUD", "NZD", "SEK", "NOK", "DKK", "PLN", "CZK", "HUF", "INR", "CNY", "BRL", "MXN",
        "ZAR", "RUB", "TRY", "KRW", "SGD", "HKD", "ILS", "RON", "BGN", "THB",
    ]
)  # fmt: skip
SAME_CURRENCY = {
    "EUR": "\u20ac", "USD": "$", "US$": "$", "GBP": "\u00a3", "JPY": "\u00a5", "INR": "\u20b9",
    "Rs": "\u20b9", "Rs.": "\u20b9", "RUB": "\u20bd", "KRW": "\u20a9", "TRY": "\u20ba",
    "PLN": "z\u0142", "BRL": "R$", "CAD": "C$", "AUD": "A$", "CHF": "Fr.", "kr.": "kr",
    "eur": "\u20ac", "Eur": "\u20ac", "euro": "\u20ac", "Euro": "\u20ac", "euros": "\u20ac",
    "Euros": "\u20ac", "usd": "$", "dollars": "$", "gbp": "\u00a3", "chf": "Fr.",
}  # fmt: skip
PERCENT = "%"
TIMES = {"k": 1e3, "K": 1e3, "M": 1e6, "Mio": 1e6, "Mio.": 1e6, "bn": 1e9, "B": 1e9, "Mrd.": 1e9}
"""Letters after a number that multiply it."""

MONTHS = {
    name: 1 + k
    for k, names in enumerate(
        [
            "january jan janvier janv januar j\u00e4nner enero ene gennaio gen",
            "february feb f\u00e9vrier f\u00e9vr f\u00e9v fevrier fevr fev februar febrero",
            "march mar mars m\u00e4rz maerz m\u00e4r marzo mrz",
            "april apr avril avr abril abr aprile",
            "may mai mayo maggio mag",
            "june jun juin juni junio giugno giu",
            "july jul juillet juil juli julio luglio lug",
            "august aug ao\u00fbt aout agosto ago",
            "september sep sept septembre septiembre settembre set",
            "october oct octobre oktober okt octubre ottobre ott",
            "november nov novembre noviembre",
            "december dec d\u00e9cembre d\u00e9c decembre dezember dez diciembre dic dicembre",
        ]
    )
    for name in names.split()
}
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

_STOP = """
the and for was were are with that this from has have had but his her they you our your its
les des une est dans pour par sur avec qui que aux ses son sont ont elle nous vous cette
der die das und ist ein eine mit von auf den dem war nicht für auch sich los las una del con para
"""
STOP_WORDS = frozenset(_STOP.split())
"""Words of texts that say nothing by themselves."""
_WORD = re.compile(r"[^\W\d_]{3,}")


def words_of(text: str) -> set[str]:
    """Words of at least three letters, in small letters.

    >>> sorted(words_of("Paid late, PAID twice: 2 x"))
    ['late', 'paid', 'twice']
    """
    return set(_WORD.findall(text.lower()))
