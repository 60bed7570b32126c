"""Texts that are no numbers, dates or times: categories, sentences, identifiers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import chain

from laconic.data.reading.column import ColumnReading
from laconic.data.reading.evidence import Evidence, Sort
from laconic.data.reading.words import PERCENT, STOP_WORDS, words_of
from laconic.data.tables.columns import shown

LEAST_ROWS = 20
"""Rows below which no column is taken for an identifier, or one odd cell for missing."""
DISTINCT_SHARE = 0.9
"""Share of different values from which texts tell one row from another and nothing else."""
TEXT_WORDS = 3.0
"""Words in the mean cell from which different texts are sentences and no names."""
MOST_WORDS, WORD_SHARES = 20, (0.04, 0.6)
"""Words of a text that are read, and the shares of the texts that must have one. By convention: few
enough to look at, frequent enough to learn from."""
FEWEST_GROUPS = 50
"""Different values from which a column called an id is one though they repeat."""
MANY_LEVELS = 100
"""Levels of a category from which it is worth a word, if they are a tenth of the rows too."""

FEW_LEVELS = 20
"""Levels of a category up to which nobody expects amounts."""
MOSTLY = 0.8
"""Share of cells that are numbers, dates or times from which a column of texts is worth a word."""
SERIAL_DIGITS = 5
"""Digits of a day as spreadsheets number them: 45292 is the first of January 2024."""
_TWO = re.compile(r"\D{0,2}[0-9.,]+[^0-9.,]{1,3}[0-9.,]+\D{0,2}")

_WORDS = re.compile(
    r"[A-Z\u00c0-\u00de]+(?![a-z\u00df-\u00ff])|[A-Z\u00c0-\u00de]?[a-z\u00df-\u00ff]+|[0-9]+"
)
ID_WORDS = frozenset(["id", "ids", "uuid", "guid", "pk", "rowid", "rownames"])


def names(name: str, evidence: Evidence) -> ColumnReading:
    """Categories, sentences, or texts that tell rows apart."""
    distinct, filled = evidence.n_distinct, evidence.n_filled
    hint = "" if evidence.declared else _hint(name, evidence)
    if filled >= LEAST_ROWS:
        words = evidence.n_words / filled
        sentences = words >= TEXT_WORDS and not hint and _has_words(evidence)
        if sentences and distinct >= 0.5 * filled and not evidence.declared:
            kept = frequent_words(evidence)
            said = f"texts of about {words:.0f} words, {distinct:,} different; " + (
                f"its words {', '.join(kept[:3])}{', ...' if len(kept) > 3 else ''} are read"
                if kept
                else "left out"
            )
            return ColumnReading(name, "text", said, True, words=kept)
        if distinct >= DISTINCT_SHARE * filled:
            return left_out_id(name, evidence, "texts", hint)
        repeated = None if evidence.declared else repeated_id(name, evidence)
        if repeated is not None:
            return repeated
    many = distinct > 0.1 * filled and distinct > MANY_LEVELS
    said = f"category ({distinct:,} different){hint}"
    return ColumnReading(name, "category", said, many or bool(hint))


def _kept(evidence: Evidence) -> Iterator[str]:
    """The texts that the summary keeps: a sample that no order of the rows changes."""
    return chain.from_iterable(texts.kept for texts in evidence.sorts.values())


def _has_words(evidence: Evidence) -> bool:
    """Whether the texts have words: numbers of telephones and accounts have blanks alone."""
    counts = [len(words_of(text)) for text in _kept(evidence)]
    return sum(counts) >= len(counts)


def _hint(name: str, evidence: Evidence) -> str:
    """What texts nearly are, and what to do: no column should get lost without a word.

    >>> from laconic.data.reading.evidence import evidence_of
    >>> from laconic.data.reading.raw import raw_column
    >>> cells = [f"{k} {'kg' if k % 3 else 'g'}" for k in range(30)]
    >>> _hint("mass", evidence_of(raw_column(cells, "mass")))
    '; amounts in g and kg cannot be compared'
    """
    serials = _hint_of_serials(evidence)
    if serials:
        return serials
    for kind, fits in _FITS.items():
        odd = [own for sort, own in evidence.sorts.items() if not fits(sort)]
        n_odd = evidence.n_filled - sum(
            own.cells for sort, own in evidence.sorts.items() if fits(sort)
        )
        if n_odd > (1.0 - MOSTLY) * evidence.n_filled:
            continue
        mixed = _mixture(name, kind, evidence)
        if mixed:
            return mixed
        if n_odd and odd:
            what = "times" if kind == "duration" else f"{kind}s"
            return (
                f"; {evidence.n_filled - n_odd:,} of {evidence.n_filled:,} cells are {what}: "
                f"--as '{name}={kind}' takes the others, such as "
                f"{shown(min(min(own.kept) for own in odd))}, for missing"
            )
    return _hint_of_texts(evidence)


def _hint_of_serials(evidence: Evidence) -> str:
    """Dates of which a spreadsheet wrote some as the days since 1899-12-30."""
    serial = [own for sort, own in evidence.sorts.items() if sort.digits == SERIAL_DIGITS]
    dated = sum(own.cells for sort, own in evidence.sorts.items() if sort.orders)
    cells = sum(own.cells for own in serial)
    if not serial or not dated or cells + dated < MOSTLY * evidence.n_filled:
        return ""
    example = min(min(own.kept) for own in serial)
    return f"; dates, and numbers such as {example} for dates: write all of them as dates"


_FITS: dict[str, Callable[[Sort], bool]] = {
    "date": lambda sort: bool(sort.orders),
    "number": lambda sort: bool(sort.says),
    "duration": lambda sort: bool(sort.clock),
}


def _mixture(name: str, kind: str, evidence: Evidence) -> str:
    """Numbers of several units or decimal signs, dates of several orders."""
    if kind == "number":
        units = sorted({sort.unit for sort in evidence.sorts if sort.says})
        many = evidence.n_distinct > FEW_LEVELS  # 1st, 2nd, 3rd are levels
        if many and units == ["", PERCENT]:
            return "; numbers with and without % cannot be compared"
        if many and len(set(units) - {""}) > 1:
            return f"; amounts in {' and '.join(filter(None, units[:4]))} cannot be compared"
        if {".", ","} <= {sort.says for sort in evidence.sorts}:
            return f"; numbers with either decimal sign: --as '{name}=number-comma' reads one"
    orders = {order for sort in evidence.sorts for order in sort.orders}
    if kind == "date" and len(orders) > 1:
        return f"; dates in several orders: --as '{name}=date-dmy' (date-mdy) reads one"
    return ""


def _hint_of_texts(evidence: Evidence) -> str:
    """Two numbers in a cell; levels that are the same but for large and small letters."""
    texts = sorted(_kept(evidence))
    if len(texts) > 2 and all(_TWO.fullmatch(text) for text in texts):
        if evidence.n_distinct > max(0.1 * evidence.n_filled, FEW_LEVELS):
            return f"; two numbers in a cell ({texts[0]}): make two columns of them"
        return ""
    alike: dict[str, list[str]] = {}
    for text in texts:
        alike.setdefault(text.lower(), []).append(text)
    same = next((own for own in alike.values() if len(own) > 1), None)
    return f"; {', '.join(map(shown, same))} differ in capitals alone" if same else ""


def frequent_words(evidence: Evidence) -> tuple[str, ...]:
    """Words of a text that come in some cells and not in most, the most frequent ones.

    Counted on the texts that the summary keeps, a sample that no order of the rows changes.

    >>> from laconic.data.reading.evidence import evidence_of
    >>> from laconic.data.reading.raw import raw_column
    >>> cells = [f"the bill {'was late' if k % 4 else 'is fine'} no {k}" for k in range(40)]
    >>> frequent_words(evidence_of(raw_column(cells, "note")))
    ('fine',)
    """
    counts: dict[str, int] = {}
    n_texts = 0
    for texts in evidence.sorts.values():
        for text in texts.kept:
            n_texts += 1
            for word in words_of(text):
                counts[word] = counts.get(word, 0) + 1
    low, high = max(2.0, WORD_SHARES[0] * n_texts), WORD_SHARES[1] * n_texts
    inside = [w for w, n in counts.items() if low <= n <= high and w not in STOP_WORDS]
    return tuple(sorted(sorted(inside, key=lambda w: (-counts[w], w))[:MOST_WORDS]))


def repeated_id(name: str, evidence: Evidence) -> ColumnReading | None:
    """Texts or whole numbers called an id, each on a few rows: of a customer, a patient."""
    distinct, filled = evidence.n_distinct, evidence.n_filled
    if not called_id(name) or distinct < FEWEST_GROUPS or distinct < 0.02 * filled:
        return None
    said = f"identifier, each of {distinct:,} values on {filled / distinct:.1f} rows; left out"
    return ColumnReading(name, "id", said, True)


def left_out_id(name: str, evidence: Evidence, what: str, more: str = "") -> ColumnReading:
    said = (
        f"{evidence.n_distinct:,} different {what} in {evidence.n_filled:,} cells; left out{more}"
    )
    return ColumnReading(name, "id", said, True)


def called_id(name: str, words: frozenset[str] = ID_WORDS) -> bool:
    """Whether the last word of the name says "identifier".

    >>> called_id("customerID"), called_id("patient_id"), called_id("id of the plan")
    (True, True, False)
    """
    found = _WORDS.findall(name)
    return bool(found) and found[-1].lower() in words
