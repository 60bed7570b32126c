"""Numbers, cells and reasons in words, as a reader of a language expects them."""

from __future__ import annotations

import math
from collections.abc import Container
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np

from laconic.data.tables.columns import MISSING, Table

LANGUAGES = ("en", "fr")


def checked_language(language: str) -> str:
    if language not in LANGUAGES:
        raise ValueError(f"language must be one of {', '.join(LANGUAGES)}, got {language!r}.")
    return language


class Numbers:
    """Numbers as a reader of the language expects them.

    >>> Numbers("en").short(1234.5678), Numbers("fr").short(0.03846), Numbers("en").short(-0.0)
    ('1,235', '0,03846', '0')
    """

    def __init__(self, language: str) -> None:
        self.french = language == "fr"

    def _local(self, text: str) -> str:
        text = text.removeprefix("-") if not text.strip("-0.") else text  # zero has no sign
        if not self.french:
            return text
        return text.replace(",", "\u202f").replace(".", ",")

    def whole(self, value: float) -> str:
        return self.fixed(value, 0)

    def fixed(self, value: float, digits: int) -> str:
        return self._local(f"{_half_up(value, digits):,.{digits}f}")

    def short(self, value: float) -> str:
        """Four significant digits, no exponent while that can be read."""
        size = abs(value)
        if size >= 1000:
            return self.whole(value)
        if size and size < 1e-4:
            return self._local(f"{value:.1e}".replace("e-0", "e-"))
        return self._local(f"{value:.4g}")

    def cost(self, value: float) -> str:
        """Four significant digits, zeros kept, so that columns of costs line up."""
        if not 1e-4 <= abs(value) < 1000:
            return self.short(value)
        return self._local(f"{value:#.4g}".rstrip("."))

    def rough(self, value: float) -> str:
        """Two significant digits: enough for a margin of error.

        >>> Numbers("en").rough(0.04567), Numbers("en").rough(12345.0), Numbers("fr").rough(-1250.0)
        ('0.046', '12,000', '-1\u202f200')
        """
        if abs(value) < 100:
            return self._local(f"{value:.2g}")
        return self.whole(float(f"{value:.2g}"))

    def proven(self, value: float) -> str:
        """A bound, no smaller than it is: below a billionth all are alike to a reader.

        >>> Numbers("en").proven(4.8e-24), Numbers("en").proven(0.0), Numbers("fr").proven(2.5e-6)
        ('1e-9', '0', '2,5e-6')
        """
        return self._local("1e-9") if 0 < value < LEAST_SHOWN else self.short(value)

    def percent(self, value: float) -> str:
        size = abs(value)
        if 0 < size < 1e-6:
            return self._local(f"{100 * value:.1e}") + "\u202f%"
        digits = 0 if size >= 0.1 else 1 if size >= 0.01 else 2 if size >= 0.001 else 4
        text = f"{_half_up(100 * value, digits):.{digits}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
        return self._local(text) + "\u202f%"


def _half_up(value: float, digits: int) -> Decimal | float:
    """A number in the middle between two is the larger one, as the page's script rounds.

    >>> Numbers("en").percent(0.0625), Numbers("en").whole(0.5), Numbers("fr").fixed(-1.25, 1)
    ('6.3\u202f%', '1', '-1,3')
    """
    if not math.isfinite(value) or abs(value) > 1e15:
        return value
    return Decimal(float(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)


LEAST_SHOWN = 1e-9
"""Below it, a reader is told that a bound or a chance is below it."""


def chance(p_value: float) -> str:
    """A p-value as it is read.

    >>> chance(5e-25), chance(0.0123)
    ('p below 1e-9', 'p = 0.01')
    """
    if p_value < LEAST_SHOWN:
        return "p below 1e-9"
    return f"p = {p_value:.1g}".replace("e-0", "e-")


def share_text(share: float) -> str:
    """A share in percent, two digits of the rarer side: it reads 0 or 100 only where it is.

    >>> share_text(0.003653), share_text(0.2611), share_text(0.99958), share_text(1.0)
    ('0.37%', '26.1%', '99.958%', '100.0%')
    """
    rarer = 100.0 * min(share, 1.0 - share)
    digits = max(1, 1 + math.ceil(-math.log10(rarer))) if rarer > 1e-7 else 1
    text = f"{100.0 * share:.{digits}f}".rstrip("0")
    return f"{text}0%" if text.endswith(".") else f"{text}%"


# key: (English, French); braces are filled in when the sentence is used
_WORDS = {
    "raises": (
        "{what} raises the odds of {name} {times} times",
        "{what} multiplie la cote de {name} par {times}",
    ),
    "lowers": (
        "{what} divides the odds of {name} by {times}",
        "{what} divise la cote de {name} par {times}",
    ),
    "adds": (
        "{what} adds {times} to the score of {name}",
        "{what} ajoute {times} au score de {name}",
    ),
    "takes": (
        "{what} takes {times} off the score of {name}",
        "{what} retire {times} au score de {name}",
    ),
    "over": ("{name} over {other}", "{name} plutôt que {other}"),
    "holds": ("{column} {value}", "{column} {value}"),
    "gone": ("{column} missing", "{column} manquant"),
    "new": ("{column} never seen before", "{column} jamais vu"),
    "and": (" with ", " avec "),
    "yes": ("yes", "oui"),
    "no": ("no", "non"),
}

_DAYS = "days since 2020-01-01"
_PARTS = {
    _DAYS: "jours depuis le 2020-01-01",
    "weekday": "jour de la semaine",
    "month": "mois",
    "hour": "heure",
}
"""What columns made of dates are called, after the name of the column of dates."""
_WEEKDAYS = {
    "Monday": "lundi", "Tuesday": "mardi", "Wednesday": "mercredi", "Thursday": "jeudi",
    "Friday": "vendredi", "Saturday": "samedi", "Sunday": "dimanche",
}  # fmt: skip


def column_name(name: str, language: str) -> str:
    """A column as a reader knows it: a part of a date is called so in the reader's language.

    >>> column_name("signed up: weekday", "fr"), column_name("weekday", "fr")
    ('signed up\u00a0: jour de la semaine', 'weekday')
    """
    column, colon, part = name.rpartition(": ")
    if language != "fr" or not colon or part not in _PARTS:
        return name
    return f"{column}\u00a0: {_PARTS[part]}"


def level_name(text: str, name: str, language: str) -> str:
    """A text of a column: the weekday of a date in the reader's language."""
    made = language == "fr" and name.endswith(": weekday")
    return _WEEKDAYS.get(text, text) if made else text


def is_days(name: str) -> bool:
    """Whether a column was made of dates and holds days."""
    return name.endswith(f": {_DAYS}")


def moves_with_time(name: str) -> bool:
    """Whether a column was made of dates and holds their days or months: later rows have others.

    >>> moves_with_time("signed up: month"), moves_with_time("signed up: weekday")
    (True, False)
    """
    return is_days(name) or name.endswith(": month")


def short_name(name: str) -> str:
    """A column as the table calls it, where it holds the days of its dates.

    >>> short_name("signed up: days since 2020-01-01"), short_name("signed up: weekday")
    ('signed up', 'signed up: weekday')
    """
    return name.removesuffix(f": {_DAYS}")


def day_text(days: float) -> str:
    """The day so many days after 2020-01-01; nothing where a calendar has none.

    >>> day_text(1556.7), day_text(1e12)
    ('2024-04-05', '')
    """
    if abs(days) > _CALENDAR:
        return ""
    return str(np.datetime64("2020-01-01") + int(np.floor(days)))


_CALENDAR = 7e5
"""Days from 2020 to years of less than one digit, or of more than four."""
_LEAST_FACTOR = math.log(1.005)
"""A factor that is written 1.00 is no reason."""


class Spoken:
    """The words of one language; ``switches`` are columns of 1 and 0 that mean yes and no.

    >>> Spoken("en").reason("amount 1,250", "fraud", math.log(3.2))
    'amount 1,250 raises the odds of fraud 3.2 times'
    >>> Spoken("fr").reason("montant 1 250", "fraude", -math.log(2))
    'montant 1 250 divise la cote de fraude par 2'
    """

    def __init__(self, language: str = "en", switches: Container[str] = ()) -> None:
        self._place = LANGUAGES.index(checked_language(language))
        self.language = language
        self._switches = switches
        self.numbers = Numbers(language)

    def say(self, key: str, **values: Any) -> str:
        return _WORDS[key][self._place].format(**values)

    def reason(self, what: str, name: str, moved: float, *, odds: bool = True) -> str:
        """What a variable does to the odds (``moved`` is the log of a factor) or to a score."""
        keys = ("raises", "lowers") if odds else ("adds", "takes")
        size = self._factor(abs(moved)) if odds else self.numbers.short(abs(moved))
        return self.say(keys[moved < 0], what=what, name=name, times=size)

    def matters(self, moved: float, *, odds: bool = True) -> bool:
        """Whether a reason is one once its number is written."""
        return abs(moved) > (_LEAST_FACTOR if odds else 5e-5)

    def _factor(self, log_factor: float) -> str:
        if log_factor > 300.0:
            return self.numbers.short(math.exp(300.0))
        factor = math.exp(log_factor)
        digits = 2 if factor < 1.995 else 1 if factor < 99.95 else 0
        text = self.numbers.fixed(factor, digits)
        return text.rstrip("0").rstrip(".,") if digits else text

    def cell(self, table: Table, name: str, i: int) -> str:
        """A column and what it holds on a row."""
        j = table.place(name)
        value, column = table.column(j)[i], " ".join(name.split())
        days = is_days(column)
        column = short_name(column) if days else column_name(column, self.language)
        if table.kinds[j] == "categorical":
            if value == MISSING:
                return self.say("gone", column=column)
            texts = table.categories[j]
            if value < 0 or texts is None:
                return self.say("new", column=column)
            own = level_name(texts[value], name, self.language)
            return self.say("holds", column=column, value=" ".join(own.split()))
        if np.isnan(value):
            return self.say("gone", column=column)
        if table.kinds[j] == "boolean" or (name in self._switches and value in (0.0, 1.0)):
            return self.say("holds", column=column, value=self.say("yes" if value else "no"))
        text = self.numbers.short(float(value))
        return self.say(
            "holds", column=column, value=day_text(float(value)) or text if days else text
        )

    def cells(self, table: Table, names: tuple[str, ...], i: int) -> str:
        return self.say("and").join(self.cell(table, name, i) for name in names)
