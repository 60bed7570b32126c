"""What the command line reads and shows: option texts, notes and tables."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from laconic.data.reading.asked import Asked
    from laconic.data.tables.spoken import Numbers


def read_cost_words(words: list[str] | None, path: Path | None) -> dict[str, Any]:
    from laconic.job.table import read_costs

    if path is not None:
        if words:
            raise ValueError("Give --cost or --costs, not both.")
        return dict(read_costs(path))
    costs = {"fp": 1.0, "fn": 1.0}
    for word in words or []:
        name, _, amount = word.partition("=")
        value = _typed_number(amount)
        if name not in costs or not 0 <= value < float("inf"):
            raise ValueError(f"--cost {word}: write fp=NUMBER or fn=NUMBER, a number >= 0.")
        costs[name] = value
    if not any(costs.values()):
        raise ValueError("--cost: one of fp and fn must be above 0.")
    return costs


def read_asked(
    kinds: list[str] | None,
    drop: list[str] | None,
    keep: list[str] | None,
    missing: str | None,
) -> Asked:
    from laconic.data.reading.asked import Asked

    said: dict[str, str] = {}
    for word in kinds or []:
        name, equals, kind = word.rpartition("=")
        if not equals or not name:
            raise ValueError(f"--as {word}: write COLUMN=KIND.")
        said[name] = kind
    texts = [] if missing is None else [text.strip() for text in missing.split(",")]
    return Asked(said, tuple(drop or ()), tuple(keep or ()), tuple(text for text in texts if text))


def read_signs(words: list[str] | None) -> dict[str, int]:
    """--monotone income=-"""
    signs, found = {"+": 1, "-": -1}, {}
    for word in words or []:
        name, _, sign = word.rpartition("=")
        if sign not in signs or not name:
            raise ValueError(f"--monotone {word}: write COLUMN=+ or COLUMN=-.")
        found[name] = signs[sign]
    return found


def read_pairs(words: list[str] | None) -> tuple[tuple[str, str], ...]:
    """--forbid age:sex"""
    pairs = []
    for word in words or []:
        one, colon, other = word.partition(":")
        if not colon or not one or not other or ":" in other:
            raise ValueError(f"--forbid {word}: write two columns as COLUMN:COLUMN.")
        pairs.append((one, other))
    return tuple(pairs)


def read_cost_columns(words: list[str] | None) -> dict[str, str]:
    """--cost-column fn=amount"""
    found = {}
    for word in words or []:
        error, _, name = word.partition("=")
        if error not in ("fp", "fn") or not name:
            raise ValueError(f"--cost-column {word}: write fp=COLUMN or fn=COLUMN.")
        found[error] = name
    return found


def read_scenarios(words: list[str] | None) -> dict[str, dict[str, Any]]:
    """--scenario peak:fp=1,fn=20"""
    found = {}
    for word in words or []:
        name, colon, costs = word.partition(":")
        if not colon or not name:
            raise ValueError(f"--scenario {word}: write NAME:fp=NUMBER,fn=NUMBER.")
        found[name] = read_cost_words([part.strip() for part in costs.split(",")], None)
    return found


def refuse_for_scans(asked: dict[str, Any]) -> None:
    """Options that need all rows at once."""
    given = [name for name, value in asked.items() if value]
    if given:
        raise ValueError(f"{given[0]} is for a table that is read into memory.")


def read_priors(words: list[str] | None) -> dict[str, float]:
    found = {}
    for word in words or []:
        name, _, amount = word.rpartition("=")
        share = _typed_number(amount)
        if not 0 <= share <= 1:
            raise ValueError(f"--prior {word}: write a share between 0 and 1, or NAME=SHARE.")
        found[name] = share
    return found


def read_models(words: list[str] | None) -> Any:
    """Names of families, with commas or one by one; "auto" for all of them."""
    names = [name.strip() for word in words or [] for name in word.split(",")]
    return [name for name in names if name] or "auto"


def read_seconds(text: str | None) -> float | None:
    if text is None:
        return None
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    number, unit = (text[:-1], units[text[-1]]) if text[-1:] in units else (text, 1.0)
    seconds = _typed_number(number) * unit
    if not 0 < seconds < float("inf"):
        raise ValueError(f"--budget {text}: write a time such as 60s, 5m or 1h.")
    return seconds


def read_language(text: str) -> str:
    if text not in ("en", "fr"):
        raise ValueError(f"--language {text}: write en or fr.")
    return text


_LANGUAGE: ContextVar[str] = ContextVar("language", default="en")
"""The language of the lines on stderr, which no command hands on."""


def speak(arguments: list[str]) -> None:
    """Lines on stderr are in the language that a command line asks for.

    >>> speak(["fit", "--language", "fr"]); spoken_language(); speak(["look", "--language=en"])
    'fr'
    """
    asked = [
        own.removeprefix("--language=") if "=" in own else after
        for own, after in zip(arguments, [*arguments[1:], ""], strict=False)
        if own == "--language" or own.startswith("--language=")
    ]
    _LANGUAGE.set("fr" if asked[-1:] == ["fr"] else "en")


def spoken_language() -> str:
    return _LANGUAGE.get()


_WESTERN = re.compile(r"(.*) is not UTF-8; it is read as cp1252, as .*")


def warning_in_language(sentence: str, language: str) -> str:
    """A warning on a file as it is read; others stay as they are.

    >>> warning_in_language("x.csv is not UTF-8; it is read as cp1252, as Windows writes.", "fr")
    "x.csv n'est pas en UTF-8 ; il est lu en cp1252, l'encodage de Windows (--encoding le change)."
    """
    found = _WESTERN.fullmatch(sentence) if language == "fr" else None
    if found is None:
        return sentence
    return (
        f"{found[1]} n'est pas en UTF-8 ; il est lu en cp1252, l'encodage de Windows "
        "(--encoding le change)."
    )


def read_reasons(
    path: Path,
    model: Any,
    many: int,
    language: str,
    against: str | None,
    text: Any,
    *,
    adverse: bool = False,
) -> Any:
    """How reasons are to be told, with the names that the model file knows."""
    from laconic.export.model_file import read_content
    from laconic.job.scoring import Reasons, explained_file
    from laconic.job.table import class_name

    if many < 1:
        raise ValueError("--reasons must be at least 1.")
    known = read_content(path)["summary"] or {}
    labels = {str(label): label for label in model.classes_.tolist()}
    positive = labels.get(str(known.get("positive")), model.classes_.tolist()[-1])
    rows = None if against is None else explained_file(model, against, text)
    name = class_name(str(positive), str(known.get("target") or ""))
    language = read_language(language)
    return Reasons(many, language, rows, positive, name, "for" if adverse else "both")


def _typed_number(text: str) -> float:
    """NaN, which lies in no range, for what is not a number."""
    try:
        return float(text)
    except ValueError:
        return float("nan")


def console() -> Console:
    from rich.console import Console

    return Console(highlight=False)


def print_whole(screen: Console, shown: Any) -> None:
    """A table that is wider than the screen loses no letter."""
    screen.print(shown, crop=False)


def print_notes(screen: Console, notes: Iterable[str], language: str = "en") -> None:
    """One line for each thing to know about the table."""
    for note in notes:
        screen.print(f"- {in_language(note, language)}", markup=False, soft_wrap=True)


def print_line(screen: Console, line: str) -> None:
    """A statement: cut at blanks on a terminal, one line where a program reads it."""
    from laconic.reporting.render import Paragraph

    if screen.is_terminal:
        screen.print(Paragraph(line))
    else:
        screen.print(line, markup=False, soft_wrap=True)


def in_language(sentence: str, language: str) -> str:
    """A sentence on the table in the language of the screen."""
    from laconic.data.reading.french import in_french

    return in_french(sentence) if language == "fr" else sentence


def look_table(rows: Iterable[dict[str, Any]], language: str = "en") -> Any:
    """Every column, how many cells and values it has, and what it was read as."""
    from rich.table import Table as RichTable
    from rich.text import Text

    from laconic.data.tables.spoken import Numbers

    name, *counts, said = (screen_line(language, f"look_{key}") for key in _LOOK_HEADS)
    whole = Numbers(language).whole
    shown = RichTable(name, box=None, collapse_padding=True, pad_edge=False)
    for head in counts:
        shown.add_column(head, justify="right", no_wrap=True)
    shown.add_column(said, overflow="fold")
    for row in rows:
        missing = whole(row["missing"]) if row["missing"] else ""
        text = in_language(row["said"], language)
        shown.add_row(*map(Text, (row["name"], missing, whole(row["different"]), text)))
    return shown


_LOOK_HEADS = ("column", "missing", "different", "read_as")


def columns_of(comparison: Any) -> dict[str, list[Any]]:
    return {name: list(comparison[name]) for name in comparison}


_HEADS = {
    "en": ("", "candidate", "cost", "\u00b1", "log loss", "AUC", "size", "seconds", "note"),
    "fr": ("", "candidat", "co\u00fbt", "\u00b1", "perte log.", "AUC", "taille", "secondes",
           "remarque"),
}  # fmt: skip
_SAID = {
    "en": {
        "positive": "positive class: {name}",
        "changed": " (--positive changes it)",
        "wrote": "wrote {model} and {report}",
        "payments": "[bold]{rows} card payments[/bold], {share} of them fraud. A false alarm "
        "costs {fp:g}, a missed fraud {fn:g}.",
        "table": "the payments are in {path}",
        "title": "Card payments",
        "look_column": "column",
        "look_missing": "missing",
        "look_different": "different",
        "look_read_as": "read as",
    },
    "fr": {
        "positive": "classe positive : {name}",
        "changed": " (--positive la change)",
        "wrote": "\u00e9crits : {model} et {report}",
        "payments": "[bold]{rows} paiements par carte[/bold], dont {share} de fraudes. Une "
        "fausse alerte co\u00fbte {fp:g}, une fraude manqu\u00e9e {fn:g}.",
        "table": "les paiements sont dans {path}",
        "title": "Paiements par carte",
        "look_column": "colonne",
        "look_missing": "manquants",
        "look_different": "diff\u00e9rents",
        "look_read_as": "lue comme",
    },
}


def screen_line(language: str, key: str, **values: Any) -> str:
    """A line of the screen in the language of the report.

    >>> screen_line("fr", "wrote", model="model.json", report="report.html")
    '\u00e9crits : model.json et report.html'
    """
    return _SAID[language][key].format(**values)


def complain(message: str) -> None:
    """One line on stderr."""
    print("laconic: " + " ".join(message.split()), file=sys.stderr)


def title_of(target: str, data: str, language: str) -> str:
    """The heading of a report."""
    return f"{target} {'dans' if language == 'fr' else 'in'} {Path(data).name}"


_TITLES = {
    "en": "Held-out cost of every candidate, by cross-validation",
    "fr": "Co\u00fbt de chaque candidat, par validation crois\u00e9e",
}


def comparison_table(columns: dict[str, list[Any]], language: str = "en") -> Any:
    from rich.table import Table as RichTable
    from rich.text import Text

    from laconic.data.tables.spoken import Numbers
    from laconic.reporting.names import short_note

    shown = RichTable(title=_TITLES[language], box=None, padding=(0, 1, 0, 0))
    notes = [short_note(str(note), language) for note in columns["note"]]
    folding = {1: columns["candidate"], 8: notes}
    for place, head in enumerate(_HEADS[language]):
        left, folded = place in (0, 1, 8), place in (1, 8)
        justify: Any = "left" if left else "right"
        words = [word for text in folding.get(place, ()) for word in str(text).split()]
        widest = max(map(len, words), default=0) if words else None  # nothing is cut in a word
        shown.add_column(
            head, justify=justify, no_wrap=not folded, overflow="fold", min_width=widest
        )
    order = sorted(range(len(columns["cost"])), key=lambda i: _last_if_nan(columns["cost"][i]))
    numbers = Numbers(language)
    for i in order:
        cells = [
            "*" if columns["chosen"][i] else "",
            str(columns["candidate"][i]),
            *(_number(numbers, columns[name][i], digits) for name, digits in _SHOWN),
            notes[i],
        ]
        style = "bold" if columns["chosen"][i] else ""
        shown.add_row(*(Text(cell) for cell in cells), style=style)
    return shown


_SHOWN = (("cost", 4), ("cost_se", 4), ("log_loss", 4), ("auc", 3), ("size", 0), ("fit_seconds", 1))


def _last_if_nan(value: float) -> float:
    return float("inf") if value != value else float(value)


def _number(numbers: Numbers, value: float, digits: int) -> str:
    return "" if value != value else numbers.fixed(value, digits)


def without_nan(value: Any) -> Any:
    """JSON has no NaN: null instead; numpy scalars become plain."""
    if isinstance(value, dict):
        return {str(key): without_nan(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(part) for part in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not abs(value) < float("inf") else value
