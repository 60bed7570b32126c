"""``laconic export``: SQL, ONNX, a scorecard and a model card from a model file."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from laconic.cli.options import ModelArgument

export_app = typer.Typer(
    name="export",
    help="Write a model as SQL, as ONNX, as a scorecard of points or as a model card.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

OutOption = Annotated[
    Path | None, typer.Option("--out", "-o", help="File to write (default: stdout).")
]


@export_app.command()
def sql(
    model: ModelArgument,
    table: Annotated[str, typer.Option(help="Table of the rows; schema.table is possible.")],
    dialect: Annotated[
        str,
        typer.Option(help="ansi, postgres, sqlite, duckdb, bigquery, snowflake, tsql or spark."),
    ] = "ansi",
    key: Annotated[
        list[str] | None, typer.Option(help="Column handed through. Repeat it for more.")
    ] = None,
    reasons: Annotated[int, typer.Option(help="How many columns of reasons.")] = 0,
    check: Annotated[
        bool,
        typer.Option("--check", help="Write a SELECT that counts cells the model cannot read."),
    ] = False,
    out: OutOption = None,
) -> None:
    """One SELECT with the columns of `laconic predict`."""
    from laconic.export.model_file import load
    from laconic.export.sql import to_sql, to_sql_check

    loaded, path = load(model), table_path(table)
    if check:
        query = to_sql_check(loaded, path, dialect=dialect)
    else:
        query = to_sql(loaded, path, key=key or (), dialect=dialect, reasons=reasons)
    _write(query.rstrip("\n") + ";\n", out)


@export_app.command()
def onnx(
    model: ModelArgument,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write.")],
    missing_text: Annotated[
        str, typer.Option(help="Text that stands for a missing category.")
    ] = "",
) -> None:
    """An ONNX graph in 64-bit floats, with categories and missing values."""
    from laconic.export.atomic import write_atomically
    from laconic.export.model_file import load
    from laconic.export.onnx_graph import to_onnx

    write_atomically(out, to_onnx(load(model), missing_text=missing_text).SerializeToString())


@export_app.command()
def scorecard(
    model: ModelArgument,
    rows: Annotated[
        Path | None,
        typer.Option(help="Labelled table not used for the fit: counts, event rates, the loss."),
    ] = None,
    target: Annotated[str | None, typer.Option(help="Column of the classes in --rows.")] = None,
    points_to_double: Annotated[float, typer.Option(help="Points that double the odds.")] = 20.0,
    base_score: Annotated[
        float | None, typer.Option(help="Total that means --base-odds to 1, such as 600.")
    ] = None,
    base_odds: Annotated[float, typer.Option(help="Odds at the base score, such as 50.")] = 1.0,
    scored: Annotated[
        str | None,
        typer.Option(
            help="Class that more points speak for (with --base-score: the other than "
            "the positive one)."
        ),
    ] = None,
    exact: Annotated[
        int | None,
        typer.Option(help="Search the best card of so many conditions on --rows; no rounding."),
    ] = None,
    out: OutOption = None,
) -> None:
    """Whole points to add up: Markdown, or CSV or JSON by the name of the file."""
    import json

    from laconic.cli.progress import progress
    from laconic.data.tables.text import TextFormat
    from laconic.export.model_file import load
    from laconic.export.scorecard import to_scorecard
    from laconic.job.rows import rows_for

    loaded = load(model)
    X, y = (None, None) if rows is None else rows_for(loaded, rows, target, TextFormat())[:2]
    with progress(quiet=exact is None):
        card = to_scorecard(
            loaded, X, y, points_to_double=points_to_double, base_score=base_score,
            base_odds=base_odds, scored=scored, exact=exact,
        )  # fmt: skip
    suffix = "" if out is None else out.suffix.lower()
    if suffix == ".csv":
        text = card.to_csv()
    elif suffix == ".json":
        text = json.dumps(card.to_dict(), indent=1) + "\n"
    else:
        text = card.to_markdown()
    _write(text, out)


@export_app.command()
def card(
    model: ModelArgument,
    title: Annotated[str, typer.Option(help="Heading of the card.")] = "Model card",
    out: OutOption = None,
) -> None:
    """A model card in Markdown."""
    from laconic.export.card import model_card
    from laconic.export.model_file import load, read_content

    load(model)  # a damaged file is refused, not described
    content = read_content(model)
    _write(model_card(content.get("summary"), content=content, title=title), out)


def table_path(text: str) -> list[str]:
    """The parts of schema.table; double quotes keep a dot, and are doubled to be part of a name.

    >>> table_path('shop.payments'), table_path('"a.b".c')
    (['shop', 'payments'], ['a.b', 'c'])
    """
    parts, own, quoted, i = [], "", False, 0
    while i < len(text):
        character = text[i]
        if character == '"' and quoted and text[i + 1 : i + 2] == '"':
            own, i = own + '"', i + 1
        elif character == '"':
            quoted = not quoted
        elif character == "." and not quoted:
            parts.append(own)
            own = ""
        else:
            own += character
        i += 1
    if quoted or not all([*parts, own]):
        raise ValueError(f"--table {text}: write TABLE or SCHEMA.TABLE.")
    return [*parts, own]


def _write(text: str, out: Path | None) -> None:
    if out is None:
        sys.stdout.write(text)
        return
    from laconic.export.atomic import write_atomically

    write_atomically(out, text)
