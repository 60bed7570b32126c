"""Markdown tables whose cells stay cells."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from laconic.data.tables.spoken import LEAST_SHOWN

_LONGEST = 200
_SENTENCE = 800


def inert(value: Any, most: int = _LONGEST) -> str:
    """A value as text that Markdown and HTML take literally, on one line and not endless."""
    if isinstance(value, float):
        return f"{value:.6g}"
    text = "".join(c if c.isprintable() else " " for c in str(value)).strip()
    if len(text) > most:
        text = text[: most - 1] + "…"
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|#~$!])", r"\\\1", text)


def table(heads: Sequence[Any], rows: Sequence[Sequence[Any]]) -> list[str]:
    """The lines of a table: numbers to the right, texts to the left.

    >>> table(["rule", "cost"], [["a|b", 0.25]])[-1]
    '| a\\\\|b | 0.25 |'
    """
    sides = [
        " ---: " if _are_numbers([row[c] for row in rows]) else " :--- " for c in range(len(heads))
    ]
    return [_row(heads), "|" + "|".join(sides) + "|", *(_row(row) for row in rows)]


def _are_numbers(cells: Sequence[Any]) -> bool:
    """Numbers, of which some may be absent."""
    return all(isinstance(c, int | float) or c == "" for c in cells) and set(cells) != {""}


def _row(cells: Sequence[Any]) -> str:
    return "".join(f"| {inert(cell)} " for cell in cells).replace("|  ", "| ") + "|"


# A model card in Markdown: what the model is for, what it does, what it reads, what is proven.


_NUMBERS = {
    "expected_cost": "Expected cost per case",
    "expected_cost_se": "Standard error of that cost",
    "threshold": "Decision threshold",
    "auc": "Area under the ROC curve",
    "log_loss": "Log loss",
    "reject_cost": "Cost of abstaining",
    "abstentions_per_1000": "Abstentions in 1,000 cases",
}


_COMPARED = {
    "candidate": "Candidate",
    "cost": "Cost",
    "cost_se": "Standard error",
    "log_loss": "Log loss",
    "auc": "AUC",
    "size": "Entries",
    "certificate": "Gap",
    "note": "Note",
}
"""Of a comparison, what a reader of the card asks for."""


def model_card(
    summary: Mapping[str, Any] | None,
    *,
    content: Mapping[str, Any] | None = None,
    title: str = "Model card",
) -> str:
    """Markdown from a report's summary and a model file's content; what is absent is left out.

    Parameters
    ----------
    summary : mapping or None
        The plain dict of a report: costs, rows, baselines, certificates, ...
    content : mapping, default=None
        What :func:`laconic.export.model_file.read_content` gives: columns, form, decision rule.
    title : str, default="Model card"

    Returns
    -------
    str

    Examples
    --------
    >>> print(model_card({"expected_cost": 0.25, "baselines": {"always no": 0.5}}))
    # Model card
    <BLANKLINE>
    ## What it does
    <BLANKLINE>
    | | |
    | :--- | ---: |
    | Expected cost per case | 0.25 |
    <BLANKLINE>
    | Rule | Expected cost |
    | :--- | ---: |
    | this model | 0.25 |
    | always no | 0.5 |
    <BLANKLINE>
    """
    summary, content = summary or {}, content or {}
    lines = [f"# {inert(title)}"]
    for heading, body in (
        ("Model", _model(summary, content)),
        ("Decisions and their costs", _costs(summary, content)),
        ("What it does", _results(summary)),
        ("What it reads", _columns(content)),
        ("Certificates", _certificates(summary, content)),
        ("Candidates compared", _comparison(summary)),
    ):
        if body:
            lines += ["", f"## {heading}", "", *body]
    return "\n".join(lines) + "\n"


def _model(summary: Mapping[str, Any], content: Mapping[str, Any]) -> list[str]:
    rows: list[list[Any]] = []
    if content.get("family"):
        rows.append(["Family", content["family"]])
    if content.get("library_version"):
        rows.append(["Fitted by", f"laconic {content['library_version']}"])
    form = content.get("form")
    if isinstance(form, Mapping) and isinstance(form.get("terms"), Sequence):
        rows.append(["Terms", len(form["terms"])])
    counts = summary.get("rows")
    if isinstance(counts, Mapping):
        said = {"train": "Rows of the fit", "test": "Rows it was measured on, not used for the fit"}
        rows += [[said.get(key, key), n] for key, n in counts.items() if n is not None]
    classes = summary.get("classes") or content.get("classes") or []
    shares = summary.get("shares") or [None] * len(classes)
    for name, share in zip(classes, shares, strict=False):
        rows.append([f"Class {name}", "" if share is None else f"{share:.2%} of the rows"])
    return table(["", ""], rows) if rows else []


def _costs(summary: Mapping[str, Any], content: Mapping[str, Any]) -> list[str]:
    rule = content.get("decision") or {}
    costs = summary.get("costs") or rule.get("costs")
    classes = summary.get("classes") or content.get("classes")
    if not costs or not classes:
        return []
    heads = ["truth, then decision", *classes]
    lines = table(
        heads, [[name, *map(float, row)] for name, row in zip(classes, costs, strict=False)]
    )
    prior = summary.get("prior") or rule.get("prior")
    if prior:
        mix = ", ".join(f"{inert(c)} {p:.4g}" for c, p in zip(classes, prior, strict=False))
        lines += ["", f"Class mix where it is used: {mix}."]
    reject = rule.get("reject_cost")
    if reject is not None:
        lines += ["", f"It abstains where every decision costs more than {reject:g} on average."]
    return lines


def _results(summary: Mapping[str, Any]) -> list[str]:
    rows = [
        [text, float(summary[key])]
        for key, text in _NUMBERS.items()
        if isinstance(summary.get(key), int | float)
    ]
    lines = table(["", ""], rows) if rows else []
    baselines = summary.get("baselines")
    if isinstance(baselines, Mapping) and baselines:
        other = summary.get("baseline_name") or "plain logistic regression"
        compared = [
            [other if name == "plain model" else name, cost] for name, cost in baselines.items()
        ]
        if isinstance(summary.get("expected_cost"), int | float):
            compared.insert(0, ["this model", float(summary["expected_cost"])])
        lines += ["", *table(["Rule", "Expected cost"], compared)]
    confusion, classes = summary.get("confusion"), summary.get("classes")
    if confusion and classes:
        counted = [[name, *row] for name, row in zip(classes, confusion, strict=False)]
        lines += ["", *table(["truth, then decision", *classes], counted)]
    return lines[1:] if lines and not lines[0] else lines


def _columns(content: Mapping[str, Any]) -> list[str]:
    columns = content.get("columns")
    if not columns:
        return []
    form = content.get("form") or {}
    used = {name for term in form.get("terms") or [] for name in term.get("columns") or []}
    rows = []
    for column in columns:
        name, texts = column.get("name"), column.get("categories")
        if used and name not in used:
            continue
        values = "" if texts is None else f"{len(texts)} categories"
        rows.append([name, column.get("kind", ""), values])
    return table(["Column", "Kind", "Values"], rows)


def _certificates(summary: Mapping[str, Any], content: Mapping[str, Any]) -> list[str]:
    lines = []
    for one in summary.get("certificates") or []:
        if isinstance(one, Mapping):
            said = inert(one["says"], _SENTENCE) if isinstance(one.get("says"), str) else ""
            if isinstance(one.get("assumes"), str):
                said += f" Assumes: {inert(one['assumes'], _SENTENCE)}"
            lines.append(f"- **{inert(one.get('title') or one.get('kind') or '')}**: {said}")
    plain = content.get("certificates")
    if not lines and isinstance(plain, Mapping):
        lines = [f"- {inert(name)}: {inert(value)}" for name, value in plain.items()]
    return lines


def _comparison(summary: Mapping[str, Any]) -> list[str]:
    comparison = summary.get("comparison")
    if not isinstance(comparison, Mapping) or not comparison:
        return []
    shown = {head: comparison[key] for key, head in _COMPARED.items() if key in comparison}
    if "chosen" in comparison and "candidate" in comparison:
        marks = zip(comparison["candidate"], comparison["chosen"], strict=False)
        shown["Candidate"] = [f"{name} (kept)" if kept else name for name, kept in marks]
    if "Gap" in shown:
        shown["Gap"] = [_gap(gap) for gap in shown["Gap"]]
    rows = zip(*shown.values(), strict=False)
    cells = [["" if cell is None else cell for cell in row] for row in rows]
    return table(list(shown), cells)


def _gap(gap: Any) -> Any:
    """Below a billionth all are alike to a reader."""
    small = isinstance(gap, float) and 0 < gap < LEAST_SHOWN
    return f"below {LEAST_SHOWN:.0e}".replace("e-0", "e-") if small else gap
