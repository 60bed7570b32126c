"""The faces of a summary: one HTML file, Markdown, and text for the terminal."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from textwrap import wrap
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from laconic import __version__
from laconic.reporting.decision_curves import section
from laconic.reporting.sentences import Sentences
from laconic.reporting.words import clipped

_SCRIPTS = (
    "arithmetic", "drawing", "sliders", "capacity", "evidence", "shapes", "whatif", "main",
)  # fmt: skip
_PERCENT = re.compile(r"(?<=\d) (?=%)")
_PAGE_KEYS = (
    "classes",
    "positive",
    "costs",
    "reject_cost",
    "sliders",
    "mix",
    "volume",
    "capacity",
    "cost_sliders",
    "reliability",
    "comparison",
    "map",
)


def to_html(summary: dict[str, Any], *, title: str, language: str = "en", digest: str = "") -> str:
    """One self-contained page: its policy lets nothing in or out, and names are only texts."""
    said = Sentences(summary, language)
    css, script = page_style(), _script()
    values = _context(said) | {
        "title": clipped(title, 300),
        "language": language,
        "digest": digest,
        "css": Markup(css),
        "curves": section(summary, language),
        "script": Markup(script),
        "policy": (
            f"default-src 'none'; style-src '{_hash(css)}'; script-src '{_hash(script)}'; "
            "base-uri 'none'; form-action 'none'"
        ),
        "data": Markup(
            embedded(
                {
                    "summary": _page_data(said.summary),
                    "words": said.words | {"plain": said.other_name()},
                }
            )
        ),
    }
    return _environment().get_template("report.html.j2").render(values)


def embedded(data: Any) -> str:
    """JSON that no HTML parser can take for anything else than text inside a script element.

    >>> embedded({"name": "</script>"})
    '{"name":"\\\\u003c/script\\\\u003e"}'
    """
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _page_data(summary: dict[str, Any]) -> dict[str, Any]:
    model = summary["model"]
    found = {key: summary[key] for key in _PAGE_KEYS}
    found["model"] = {key: model.get(key) for key in ("form", "columns", "order", "variables")}
    found["prior_factors"] = summary["prior_factors"]
    return found


def _context(said: Sentences) -> dict[str, Any]:
    summary, w = said.summary, said.words
    what_if = bool(summary["model"].get("what_if"))
    card = said.paper_card()
    sections = ["capacity", "play", "counts", "card", "model", "what_if", "specialists"]
    absent = {"what_if": not what_if, "card": card is None, "capacity": summary["capacity"] is None}
    drawn = "x" in summary["map"]
    return {
        "w": w,
        "colon": said.colon,
        "family": said.family(),
        "in_python": said.say("family_lead", family=clipped(summary["model"]["family"], 80)),
        "price": said.price(),
        "measures": said.measures(),
        "capacity_lead": said.say("capacity_lead", name=clipped(summary["positive"], 40)),
        "has_capacity": summary["capacity"] is not None,
        "verdict": said.verdict(),
        "measured": said.measured(),
        "at_prior": said.at_prior(),
        "cards": said.cards(),
        "sections": [
            (name.replace("_", "-"), w[f"h_{name}"]) for name in sections if not absent.get(name)
        ],
        "play_lead": _play_lead(said),
        "rules": [{"name": name, "text": said.cost(cost)} for name, cost in said.rules()],
        "trust_lead": _trust_lead(said),
        "model_lead": said.model_lead(),
        "listing": said.listing(),
        "card": card,
        "what_if": what_if,
        "what_if_lead": _what_if_lead(said),
        "proofs": said.proofs(),
        "candidates": said.candidates(),
        "scenarios": said.scenarios(),
        "map_drawn": drawn,
        "map_lead": _map_lead(said) if drawn else said.say("map_none", why=_why_not(said)),
        "counts": said.counts(),
        "made_with": said.say("made_with", version=__version__),
    }


def _play_lead(said: Sentences) -> str:
    sliders = said.summary["sliders"]
    if sliders is None:
        return said.words["mix_lead"]
    lead = said.words["play_lead"]
    if said.summary.get("costs_by_row"):
        lead += " " + said.say("play_mean", cost=said.cost(said.summary["expected_cost"]))
    return f"{lead} {said.words['play_abstains']}" if sliders["abstains"] else lead


def _what_if_lead(said: Sentences) -> str:
    means = f" {said.words['what_if_mean']}" if said.summary.get("costs_by_row") else ""
    return said.words["what_if_lead"] + means


def _trust_lead(said: Sentences) -> str:
    trust, number = said.summary["reliability"], said.numbers
    if not trust:
        return said.words["trust_none"]
    text = said.words["trust_lead"]
    if "zone" in trust[0]:
        low, high = trust[0]["zone"]
        text += " " + said.say(
            "trust_zone_one" if trust[0]["rows_in_zone"] == 1 else "trust_zone",
            rows=number.whole(trust[0]["rows_in_zone"]),
            low=number.percent(low),
            high=number.percent(high),
            cut=number.percent(trust[0]["threshold"]),
        )
    if said.summary["prior"] is not None:
        text += " " + said.words["trust_mix"]
    return text


def _why_not(said: Sentences) -> str:
    reason: str = said.summary["map"]["why_not"]
    return said.words.get(reason, reason)


def _map_lead(said: Sentences) -> str:
    found, number = said.summary["map"], said.numbers
    gray = "map_gray" if said.summary["sliders"] is not None else "map_gray_many"
    text = said.say(
        "map_lead_parts" if found["of"] == "parts" else "map_lead",
        rows=number.whole(found["n_rows"]),
        columns=number.whole(found["n_columns"]),
        variance=number.percent(sum(found["variance"])),
    )
    if found["n_places"] < 0.8 * found["n_rows"]:
        text += " " + said.words["map_discs"]
    return f"{text} {said.words[gray]}" if any(found["doubt"]) else text


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("laconic.reporting", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def page_style() -> str:
    return _text_of("report.css")


@cache
def _script() -> str:
    body = "\n".join(_text_of(f"{name}.js") for name in _SCRIPTS)
    return f'(() => {{\n"use strict";\n{body}\n}})();\n'


def _text_of(name: str) -> str:
    return (files("laconic.reporting") / "page" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def to_markdown(summary: dict[str, Any], *, title: str, language: str = "en") -> str:
    """The summary as the body of a model card."""
    said = Sentences(summary, language)
    w = said.words
    lines = [f"# {_inert(title)}", "", _inert(said.verdict()), "", said.measured()]
    prior = said.at_prior()
    lines += ["", _inert(prior)] if prior else []
    price = said.price()
    lines += ["", _inert(price)] if price else []
    rules = [[name, said.cost(cost)] for name, cost in said.rules()]
    lines += ["", f"## {w['h_play']}", "", *_markdown_table([w["t_rule"], w["t_cost"]], rules)]
    other = said.scenarios()
    if other is not None:
        lines += ["", f"## {w['h_scenarios']}", "", *_markdown_table(other["heads"], other["rows"])]
    cards = [[card["label"], card["text"]] for card in said.cards()[1:] + said.measures()]
    lines += ["", *_markdown_table(["", ""], cards)]
    lines += ["", f"## {w['h_model']}", "", _inert(said.model_lead())]
    listing = said.listing() or _importances(said)
    if listing is not None:
        lines += ["", *_markdown_table(listing["heads"], listing["rows"][:30])]
    lines += ["", f"## {w['h_proofs']}", ""]
    for proof in said.proofs():
        lines.append(
            f"* **{_inert(proof['title'])}.** {_inert(proof['says'])} "
            f"*{w['assumes']}{said.colon} {_inert(proof['assumes'])}*"
        )
    found = said.candidates()
    if found is not None:
        rows = [row["cells"] for row in found["rows"]]
        lines += ["", f"## {w['h_size']}", "", *_markdown_table(found["heads"], rows)]
    counts = said.counts()
    heads = [counts["first"], *counts["heads"], w["recall"]]
    rows = [[row["name"], *row["cells"], row["recall"]] for row in counts["rows"]]
    lines += ["", f"## {w['h_counts']}", "", *_markdown_table(heads, rows)]
    return "\n".join([*lines, "", said.say("made_with", version=__version__), ""])


def _importances(said: Sentences) -> dict[str, Any] | None:
    model = said.summary["model"]
    if model["kind"] != "additive":
        return None
    rows = [[name, said.numbers.short(size)] for name, size in model["importance"]]
    return {"heads": [said.words["t_part"], said.say("effect", value="").strip()], "rows": rows}


def _markdown_table(heads: list[str], rows: list[list[str]]) -> list[str]:
    lines = ["| " + " | ".join(_inert(head) for head in heads) + " |"]
    lines.append("|" + "|".join(["---"] + ["---:"] * (len(heads) - 1)) + "|")
    return lines + ["| " + " | ".join(_inert(cell) for cell in row) + " |" for row in rows]


_ENTITIES = {ord(letter): f"&#{ord(letter)};" for letter in "\\`*_[]<>|#!&"}


def _inert(text: str) -> str:
    """Names cannot open tags, links, cells or emphasis in Markdown."""
    return clipped(text, 600).translate(_ENTITIES)


@dataclass(frozen=True)
class Paragraph:
    """A text for the terminal, cut at blanks alone: no line ends inside a number or "87 %"."""

    text: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        whole = _PERCENT.sub("\u00a0%", self.text)
        for line in wrap(whole, options.max_width, break_long_words=False, break_on_hyphens=False):
            yield Text(line, no_wrap=True, overflow="ignore")


def to_terminal(summary: dict[str, Any], *, language: str = "en") -> RenderableType:
    """Tables for rich: the cost of the decisions beside that of simpler rules, and who is who."""
    said = Sentences(summary, language)
    w = said.words
    costs = RichTable()
    costs.add_column(w["t_rule"])
    costs.add_column(w["t_cost"], justify="right")
    for place, (name, cost) in enumerate(said.rules()):
        costs.add_row(Text(name), Text(said.cost(cost), style="" if place else "bold"))
    counts = said.counts()
    decided = RichTable()
    decided.add_column(counts["first"])
    for name in [*counts["heads"], w["recall"]]:
        decided.add_column(Text(name), justify="right")
    for row in counts["rows"]:
        decided.add_row(Text(row["name"]), *map(Text, [*row["cells"], row["recall"]]))
    lines: list[RenderableType] = [Paragraph(said.measured()), Paragraph(said.verdict()), costs]
    if summary["threshold"] is not None:
        label = said.say("card_threshold", name=clipped(summary["positive"], 40))
        lines.append(Paragraph(f"{label}{said.colon} {said.numbers.percent(summary['threshold'])}"))
    for card in said.cards():
        if card["key"] in ("money", "caught", "precision"):
            note = f", {card['note']}" if card["note"] else ""
            lines.append(Paragraph(f"{card['label']}{said.colon} {card['text']}{note}"))
    other = said.scenarios()
    if other is not None:
        table = RichTable(title=w["h_scenarios"])
        for place, head in enumerate(other["heads"]):
            table.add_column(Text(head), justify="right" if place else "left")
        for row in other["rows"]:
            table.add_row(*map(Text, row))
        lines.append(table)
    promises = [entry for entry in summary["certificates"] if entry["kind"] == "promise"]
    proofs = [said._proof(entry) for entry in promises]
    shown = [
        Paragraph(f"{one['says']} {w['assumes']}{said.colon} {one['assumes']}") for one in proofs
    ]
    return Group(*lines, decided, *shown)
