"""``laconic predict``, ``explain`` and ``report``: a model file on new rows."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from laconic.cli.options import (
    AgainstOption,
    CasesOption,
    CurrencyOption,
    EncodingOption,
    FileOption,
    LanguageOption,
    ManyArgument,
    ModelArgument,
    ReasonLanguageOption,
    ScanOption,
    SeparatorOption,
    TargetOption,
)
from laconic.cli.screen import complain, console, read_language, read_reasons, title_of


def predict(
    model: ModelArgument,
    data: ManyArgument,
    out: FileOption = None,
    key: Annotated[
        list[str] | None, typer.Option(help="Column handed through, first. Repeat it.")
    ] = None,
    separator: SeparatorOption = None,
    encoding: EncodingOption = None,
    reasons: Annotated[int, typer.Option(help="Columns of reasons in words, strongest first.")] = 0,
    language: ReasonLanguageOption = "en",
    against: AgainstOption = None,
    scenario: Annotated[
        str | None, typer.Option(help="Decide under these costs of `fit --scenario`.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="JSON on stdout; the predictions go to --out.")
    ] = False,
) -> None:
    """One probability column per class and the decision, for every row of a table.

    Rows are read and written in chunks: the table may be larger than memory. Columns whose cells
    are unlike those of the fit are told in one line on stderr.
    """
    import json

    from laconic.cli.progress import progress
    from laconic.data.tables.text import TextFormat
    from laconic.export.model_file import load
    from laconic.job.scoring import write_predictions
    from laconic.job.unlike import sentence

    if as_json and out is None:
        raise ValueError("--json writes on stdout; name a file for the predictions with --out.")
    loaded = load(model)
    text = TextFormat(separator, encoding)
    words = read_reasons(model, loaded, reasons, language, against, text) if reasons else None
    with progress(out is None or as_json) as step:
        seen = write_predictions(loaded, data, out, text, tuple(key or ()), step, words, scenario)
    unlike = seen.unlike()
    if as_json:
        said = {"rows": seen.n_rows, "out": str(out), "unlike": [one.to_dict() for one in unlike]}
        sys.stdout.write(json.dumps(said) + "\n")
    elif unlike:
        complain(sentence(unlike))


def explain(
    model: ModelArgument,
    data: Annotated[
        str | None, typer.Argument(help="Rows to explain; without them, the model in words.")
    ] = None,
    out: FileOption = None,
    reasons: Annotated[int, typer.Option(help="Reasons for each row.")] = 3,
    key: Annotated[
        list[str] | None, typer.Option(help="Column handed through, first. Repeat it.")
    ] = None,
    separator: SeparatorOption = None,
    encoding: EncodingOption = None,
    words: Annotated[
        bool, typer.Option("--words", help="Reasons as sentences: x 3 raises the odds 2.1 times.")
    ] = False,
    language: ReasonLanguageOption = "en",
    against: AgainstOption = None,
    adverse: Annotated[
        bool,
        typer.Option(
            "--adverse",
            help="Only reasons that speak for the positive class, or for "
            "the decision of several classes.",
        ),
    ] = False,
) -> None:
    """Why each row is decided as it is: the variables that move its score most, exactly."""
    from laconic.data.tables.text import TextFormat
    from laconic.export.model_file import load, read_content
    from laconic.job.scoring import model_in_words, write_reasons

    loaded = load(model)
    positive = (read_content(model)["summary"] or {}).get("positive")
    if data is None:
        sys.stdout.write(model_in_words(loaded, positive))
        return
    text, in_words = TextFormat(separator, encoding), None
    if words or adverse or against is not None:
        in_words = read_reasons(model, loaded, reasons, language, against, text, adverse=adverse)
    write_reasons(loaded, data, out, text, tuple(key or ()), reasons, positive, in_words)


def report(
    model: ModelArgument,
    data: ManyArgument,
    target: TargetOption,
    out: Annotated[Path, typer.Option("--out", "-o", help="HTML, Markdown or JSON file.")],
    title: Annotated[str | None, typer.Option(help="Heading of the report.")] = None,
    language: LanguageOption = "en",
    separator: SeparatorOption = None,
    encoding: EncodingOption = None,
    cases: CasesOption = None,
    currency: CurrencyOption = None,
    scan: ScanOption = False,
    open_page: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
) -> None:
    """A report of a model on labelled rows that the fit has not seen.

    With a folder, a glob or --scan the rows are not read into memory: at most 250,000 of them,
    drawn by their number, are reported on.
    """
    import laconic
    from laconic.cli.progress import progress
    from laconic.data.scan.files import names_many
    from laconic.data.tables.text import TextFormat
    from laconic.export.model_file import load
    from laconic.job.rows import rows_for
    from laconic.job.scan import drawn_rows_for
    from laconic.job.table import named_classes

    loaded, text = load(model), TextFormat(separator, encoding)
    costs = None
    if not scan and not names_many(data):
        X, y, costs = rows_for(loaded, data, target, text)
    elif getattr(loaded, "row_costs_", None) is not None:
        raise ValueError("What errors cost stands in a column: give the report a single file.")
    else:
        with progress():
            X, y, n_rows = drawn_rows_for(loaded, data, target, text)
        if X.n_rows < n_rows:
            console().print(f"reporting on {X.n_rows:,} of {n_rows:,} rows", markup=False)
    made = laconic.report(
        loaded, X, y, language=read_language(language), cases=cases, currency=currency, costs=costs
    )
    shown = named_classes(made.summary, target)  # 1 of 0/1 by the name of its column
    named = title or title_of(target, data, language)
    replace(made, summary=shown, title=named).save(out)
    console().print(f"wrote {out}", markup=False)
    if open_page:
        typer.launch(str(out))
