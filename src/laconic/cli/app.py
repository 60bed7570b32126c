"""The command line: look, fit, compare, predict, explain, report, export, demo, doctor, reproduce.

Nothing heavy is imported before a command needs it, so that ``--help`` answers at once; annotations
are evaluated here and not by typer, which would compile each of them twice.
"""

import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from laconic.cli.export import export_app
from laconic.cli.reproduce import reproduce
from laconic.cli.screen import (
    columns_of,
    comparison_table,
    console,
    look_table,
    print_notes,
    read_asked,
    read_cost_columns,
    read_cost_words,
    read_language,
    read_models,
    read_pairs,
    read_priors,
    read_reasons,
    read_scenarios,
    read_seconds,
    read_signs,
    refuse_for_scans,
    screen_line,
    title_of,
    without_nan,
)
from laconic.cli.watch import adopt, watch

if TYPE_CHECKING:
    from laconic.data.reading.reading import Reading
    from laconic.job.rows import JobRows
    from laconic.job.table import JobOptions, JobResult

# UsageError and ClickException, by the only public name both old and new typer give them
_UsageError = typer.BadParameter.__bases__[0]
_ClickException = _UsageError.__bases__[0]

app = typer.Typer(
    name="laconic",
    help="Small, certified classifiers for rare classes, unequal costs and a moving class mix.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

DataArgument = Annotated[
    str, typer.Argument(help="CSV (also .gz, .zst), Parquet or Arrow file; - is CSV on stdin.")
]
ManyArgument = Annotated[
    str,
    typer.Argument(
        help="CSV (also .gz, .zst), Parquet or Arrow file; - is CSV on stdin. A folder or a "
        "quoted glob such as 'train/*.parquet' is read block by block."
    ),
]
ModelArgument = Annotated[Path, typer.Argument(help="model.json written by `laconic fit`.")]
TargetOption = Annotated[str, typer.Option(help="Column to predict.")]
CostOption = Annotated[
    list[str] | None,
    typer.Option("--cost", help="fp=1 and fn=10: what a false alarm and a miss cost. Repeat it."),
]
CostsOption = Annotated[
    Path | None,
    typer.Option("--costs", help="CSV matrix: a row for each true class, a column by decision."),
]
PriorOption = Annotated[
    list[str] | None,
    typer.Option("--prior", help="0.02: share of the positive class where the model is used; "
                 "NAME=0.2 for a class. Repeat it."),
]  # fmt: skip
BudgetOption = Annotated[
    str | None, typer.Option("--budget", help="Time for the comparison: 60s, 5m, 1h.")
]
ModelsOption = Annotated[
    list[str] | None,
    typer.Option("--only", "--model", help="Compare these families only: additive,rules."),
]
PositiveOption = Annotated[
    str | None, typer.Option(help="The class that fp, fn and one --prior are about (1 of 0/1).")
]
OutOption = Annotated[Path, typer.Option("--out", help="Folder for model.json and report.html.")]
FileOption = Annotated[Path | None, typer.Option("--out", "-o", help="File (default: stdout).")]
SeedOption = Annotated[int, typer.Option(help="Seed of the split into training and test rows.")]
SeparatorOption = Annotated[str | None, typer.Option(help="Separator of a CSV (default: found).")]
EncodingOption = Annotated[
    str | None, typer.Option(help="Encoding of a CSV (default: UTF-8, or UTF-16 by its mark).")
]
ClusterOption = Annotated[
    str | None, typer.Option("--cluster", help="Scheduler of a dask cluster: tcp://HOST:8786.")
]
ScanOption = Annotated[
    bool, typer.Option("--scan", help="Read one file block by block too, not into memory.")
]
KindsOption = Annotated[
    list[str] | None,
    typer.Option("--as", help="COLUMN=KIND: number, number-comma, date, date-dmy, date-mdy, time, "
                 "duration, yes/no, code, category or id. Repeat it."),
]  # fmt: skip
DropOption = Annotated[
    list[str] | None, typer.Option("--drop", help="Column to leave out. Repeat it.")
]
KeepOption = Annotated[
    list[str] | None,
    typer.Option("--keep", help="Column to keep though it looks like an identifier. Repeat it."),
]
MissingOption = Annotated[
    str | None, typer.Option("--missing", help="More texts that mean missing: '-,none given'.")
]
MonotoneOption = Annotated[
    list[str] | None,
    typer.Option("--monotone", help="income=-: the probability of the positive class only falls "
                 "with this number; + rises. Repeat it."),
]  # fmt: skip
ForbidOption = Annotated[
    list[str] | None,
    typer.Option("--forbid", help="age:sex: no term of these two columns together. Repeat it."),
]
GroupOption = Annotated[
    str | None,
    typer.Option("--group", help="Column whose rows belong together (a patient): they are held "
                 "out together. Default: a column called an id that repeats."),
]  # fmt: skip
TimeOption = Annotated[
    str | None,
    typer.Option("--time", help="Column of dates or numbers: the last rows are held out, and folds "
                 "judge what comes later."),
]  # fmt: skip
NoGroupOption = Annotated[
    bool, typer.Option("--no-group", help="Hold out rows one by one, whatever ids repeat.")
]
CostColumnOption = Annotated[
    list[str] | None,
    typer.Option("--cost-column", help="fn=amount: what a miss (fp: a false alarm) costs stands in "
                 "this column, row by row. Repeat it."),
]  # fmt: skip
ScenarioOption = Annotated[
    list[str] | None,
    typer.Option("--scenario", help="peak:fp=1,fn=20: other costs for the same model; see "
                 "predict --scenario. Repeat it."),
]  # fmt: skip
ChampionOption = Annotated[
    Path | None,
    typer.Option("--champion", help="model.json of the model in use: the report compares."),
]
ChampionColumnOption = Annotated[
    str | None,
    typer.Option("--champion-column", help="Column with the probability that the model in use "
                 "gives the positive class."),
]  # fmt: skip
JsonOption = Annotated[bool, typer.Option("--json", help="JSON on stdout, messages on stderr.")]
LanguageOption = Annotated[str, typer.Option(help="Language of the report: en or fr.")]
CasesOption = Annotated[
    str | None, typer.Option("--cases", help="How many cases come: 5000/month (day, week, year).")
]
CurrencyOption = Annotated[
    str | None, typer.Option("--currency", help="Unit of the costs, shown in the report: EUR.")
]
ReasonLanguageOption = Annotated[str, typer.Option(help="Language of reasons in words: en or fr.")]
AgainstOption = Annotated[
    str | None,
    typer.Option("--against", help="Rows to give reasons in words against: their mean row "
                 "(default: the mean row that the model was measured on)."),
]  # fmt: skip


app.add_typer(export_app)
app.command()(watch)
app.command()(adopt)
app.command()(reproduce)


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of errors.")] = False,
) -> None:
    """Small, certified classifiers for rare classes, unequal costs and a moving class mix."""


@app.command()
def demo(
    out: OutOption = Path("laconic-demo"), seed: SeedOption = 0, language: LanguageOption = "en"
) -> None:
    """Fit a model on generated card payments, few of them fraud, and write its report.

    The table is written too, as DIR/payments.csv, to try the other commands on.
    """
    from laconic.data.demo import DEMO_COSTS, make_payments, write_payments
    from laconic.data.tables.spoken import Numbers
    from laconic.job.rows import JobRows
    from laconic.job.table import JobOptions

    payments, label = make_payments(random_state=seed)
    numbers = Numbers(read_language(language))
    rows, share = numbers.whole(payments.n_rows), numbers.percent((label == "fraud").mean())
    said = screen_line(language, "payments", rows=rows, share=share, **DEMO_COSTS)
    console().print(said)
    options = JobOptions(
        costs=dict(DEMO_COSTS), positive="fraud", seed=seed, language=read_language(language)
    )
    title = screen_line(language, "title")
    _fit_and_write(JobRows(payments, label), options, out, title, as_json=False)
    write_payments(out / "payments.csv", payments, label)
    console().print(screen_line(language, "table", path=out / "payments.csv"), markup=False)


@app.command()
def fit(
    data: ManyArgument,
    target: TargetOption,
    out: OutOption,
    cost: CostOption = None,
    costs: CostsOption = None,
    positive: PositiveOption = None,
    prior: PriorOption = None,
    reject_cost: Annotated[float | None, typer.Option(help="Cost of abstaining.")] = None,
    model: ModelsOption = None,
    budget: BudgetOption = None,
    seed: SeedOption = 0,
    separator: SeparatorOption = None,
    encoding: EncodingOption = None,
    language: LanguageOption = "en",
    max_size: Annotated[
        float | None, typer.Option(help="Most entries of the model (default: a page of 300).")
    ] = None,
    kinds: KindsOption = None,
    drop: DropOption = None,
    keep: KeepOption = None,
    missing: MissingOption = None,
    weight: Annotated[str | None, typer.Option(help="Column of weights of the rows.")] = None,
    drop_missing_target: Annotated[
        bool, typer.Option("--drop-missing-target", help="Leave out rows without a class.")
    ] = False,
    guarantee: Annotated[
        list[str] | None,
        typer.Option(
            help="What decisions must keep: 'recall>=0.95', 'recall(NAME)>=0.9', "
            "'precision>=0.5', 'cost<=0.2', 'false_alarms<=0.01'. Repeat it."
        ),
    ] = None,
    capacity: Annotated[
        str | None, typer.Option(help="Cases that may be decided positive: 100/5000.")
    ] = None,
    confidence: Annotated[float, typer.Option(help="Of all guarantees together.")] = 0.95,
    cases: CasesOption = None,
    currency: CurrencyOption = None,
    monotone: MonotoneOption = None,
    forbid: ForbidOption = None,
    group: GroupOption = None,
    no_group: NoGroupOption = False,
    time: TimeOption = None,
    cost_column: CostColumnOption = None,
    scenario: ScenarioOption = None,
    champion: ChampionOption = None,
    champion_column: ChampionColumnOption = None,
    cluster: ClusterOption = None,
    scan: ScanOption = False,
    as_json: JsonOption = False,
) -> None:
    """From a table and costs to the smallest model that is good enough, and its report.

    Writes DIR/model.json and DIR/report.html. A quarter of the rows is held out for the report.

    With a folder, a glob, --scan or --cluster the rows are not read into memory: the families that
    fit so are compared on about 200,000 rows, the chosen one is fitted on all of them, and at most
    250,000 are held out.
    """
    from laconic.data.scan.files import names_many
    from laconic.data.tables.text import TextFormat
    from laconic.job.rows import Beside, read_rows
    from laconic.job.scan import run_scan_job
    from laconic.job.table import JobOptions

    text, asked = TextFormat(separator, encoding), read_asked(kinds, drop, keep, missing)
    options = JobOptions(
        read_cost_words(cost, costs), positive, read_priors(prior), reject_cost,
        read_models(model), read_seconds(budget), seed, read_language(language), max_size, target,
        tuple(guarantee or ()), capacity, confidence, cases, currency,
        monotone=read_signs(monotone), forbid=read_pairs(forbid),
        scenarios=read_scenarios(scenario),
    )  # fmt: skip
    columns = read_cost_columns(cost_column)
    beside = Beside(weight, "" if no_group else group, time, columns, champion, champion_column)
    title = title_of(target, data, language)
    if cluster is not None or scan or names_many(data):
        refuse_for_scans(
            {
                "--drop-missing-target": drop_missing_target,
                "--cost-column": columns,
                "--scenario": scenario,
                "--champion": champion,
                "--champion-column": champion_column,
            }
        )
        notes: list[str] = []

        def told(reading: "Reading") -> None:
            notes.extend(reading.notes())
            if not as_json:
                print_notes(console(), notes)

        def grouped(name: str) -> None:
            notes.append(
                f"rows with the same {name!r} are held out together; --no-group changes it"
            )
            if not as_json:
                print_notes(console(), notes[-1:])

        def job() -> "JobResult":
            return run_scan_job(
                data, target, options, text, asked, beside=beside, cluster=cluster, out=out,
                title=title, on_read=told, on_group=grouped,
            )  # fmt: skip

        _print_result(job, options, notes, as_json=as_json)
        return
    rows = read_rows(
        data, target, text, asked, beside=beside, positive=positive,
        drop_missing=drop_missing_target,
    )  # fmt: skip
    _fit_and_write(rows, options, out, title, as_json=as_json)


@app.command()
def look(
    data: ManyArgument,
    target: Annotated[
        str | None, typer.Option(help="Column to predict: columns that hold the answer are told.")
    ] = None,
    separator: SeparatorOption = None,
    encoding: EncodingOption = None,
    kinds: KindsOption = None,
    drop: DropOption = None,
    keep: KeepOption = None,
    missing: MissingOption = None,
    scan: ScanOption = False,
    as_json: JsonOption = False,
) -> None:
    """What each column was read as and why, and what is suspicious; nothing is fitted.

    The options are those of `laconic fit`, which reads the table in the same way.
    """
    import json

    from laconic.cli.progress import progress
    from laconic.data.scan.files import names_many
    from laconic.data.tables.text import TextFormat
    from laconic.job.rows import look_at_file
    from laconic.job.scan import look_at_scan

    text, asked = TextFormat(separator, encoding), read_asked(kinds, drop, keep, missing)
    with progress(as_json):
        many = scan or names_many(data)
        found = (look_at_scan if many else look_at_file)(data, target, text, asked)
    if as_json:
        sys.stdout.write(json.dumps(without_nan(found.to_dict())) + "\n")
        return
    screen = console()
    screen.print(found.title, markup=False, soft_wrap=True)
    screen.print(look_table(found.rows()))
    print_notes(screen, found.suspicions)


@app.command()
def compare(
    data: DataArgument,
    target: TargetOption,
    cost: CostOption = None,
    costs: CostsOption = None,
    positive: PositiveOption = None,
    prior: PriorOption = None,
    model: ModelsOption = None,
    budget: BudgetOption = None,
    seed: SeedOption = 0,
    separator: SeparatorOption = None,
    encoding: EncodingOption = None,
    kinds: KindsOption = None,
    drop: DropOption = None,
    keep: KeepOption = None,
    missing: MissingOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare the families by the cost of held-out decisions; nothing is written."""
    import json

    from laconic.cli.progress import progress
    from laconic.data.tables.text import TextFormat
    from laconic.job.rows import read_rows
    from laconic.job.table import JobOptions, classifier_of, read_problem

    options = JobOptions(
        read_cost_words(cost, costs),
        positive,
        read_priors(prior),
        None,
        read_models(model),
        read_seconds(budget),
        seed,
    )
    asked = read_asked(kinds, drop, keep, missing)
    rows = read_rows(data, target, TextFormat(separator, encoding), asked)
    if not as_json:
        print_notes(console(), rows.notes())
    problem = read_problem(rows.label, options)
    with progress(as_json):
        fitted = classifier_of(problem, options, rows.reading).fit(rows.table, rows.label)
    columns = columns_of(fitted.comparison_)
    if as_json:
        sys.stdout.write(json.dumps(without_nan(columns)) + "\n")
        return
    console().print(comparison_table(columns))


@app.command()
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
        _complain(sentence(unlike))


@app.command()
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
    text, told = TextFormat(separator, encoding), None
    if words or adverse or against is not None:
        told = read_reasons(model, loaded, reasons, language, against, text, adverse=adverse)
    write_reasons(loaded, data, out, text, tuple(key or ()), reasons, positive, told)


@app.command()
def report(
    model: ModelArgument,
    data: DataArgument,
    target: TargetOption,
    out: Annotated[Path, typer.Option("--out", "-o", help="HTML, Markdown or JSON file.")],
    title: Annotated[str | None, typer.Option(help="Heading of the report.")] = None,
    language: LanguageOption = "en",
    separator: SeparatorOption = None,
    encoding: EncodingOption = None,
    cases: CasesOption = None,
    currency: CurrencyOption = None,
    open_page: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
) -> None:
    """A report of a model on labelled rows that the fit has not seen."""
    import laconic
    from laconic.data.tables.text import TextFormat
    from laconic.export.model_file import load
    from laconic.job.rows import rows_for
    from laconic.job.table import named_classes

    loaded = load(model)
    X, y = rows_for(loaded, data, target, TextFormat(separator, encoding))
    made = laconic.report(
        loaded, X, y, language=read_language(language), cases=cases, currency=currency
    )
    shown = named_classes(made.summary, target)  # 1 of 0/1 by the name of its column
    named = title or title_of(target, data, language)
    replace(made, summary=shown, title=named).save(out)
    console().print(f"wrote {out}", markup=False)
    if open_page:
        typer.launch(str(out))


@app.command()
def doctor() -> None:
    """Versions of what is installed, and which extras are missing."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    from rich.table import Table as RichTable

    wanted = {
        "core": ["laconic", "numpy", "scipy", "scikit-learn", "narwhals", "numba"],
        "stream": ["polars"],
        "excel": ["fastexcel"],
        "cluster": ["dask", "distributed"],
        "plot": ["matplotlib"],
        "onnx": ["onnx", "onnxruntime", "skl2onnx"],
        "integration": ["skops", "shap", "mlflow-skinny", "fairlearn", "mapie", "skrub", "optuna"],
    }
    shown = RichTable("extra", "package", "version", title=f"Python {platform.python_version()}")
    for extra, packages in wanted.items():
        for package in packages:
            try:
                found = version(package)
            except PackageNotFoundError:
                found = f"[yellow]missing: pip install 'laconic\\[{extra}]'[/yellow]"
            shown.add_row(extra, package, found)
    console().print(shown)


_INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> None:
    """Entry point: one line on stderr and exit code 2 for what the user can mend."""
    arguments = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in arguments
    # --debug is accepted anywhere on the line
    arguments = [word for word in arguments if word != "--debug"]
    usual, warnings.formatwarning = warnings.formatwarning, _warning_line
    try:
        code = app(arguments, standalone_mode=False) or 0
        if code == _INTERRUPTED:  # newer typer catches Ctrl-C itself
            raise KeyboardInterrupt
        sys.exit(code)
    except typer.Exit as stop:
        sys.exit(stop.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        _complain("interrupted; nothing was written")
        sys.exit(_INTERRUPTED)
    except _ClickException as error:  # type: ignore[misc]
        _complain(error.format_message())
        sys.exit(2)
    except MemoryError:
        if debug:
            raise
        _complain(
            "the memory is not enough for this table; read it block by block with --scan, or leave "
            "columns out with --drop"
        )
        sys.exit(2)
    except (ValueError, OSError, ImportError) as error:
        if debug:
            raise
        _complain(str(error) or type(error).__name__)
        sys.exit(2)
    except Exception as error:
        if debug:
            raise
        _complain(f"internal error, {type(error).__name__}: {error} (--debug shows where)")
        sys.exit(1)
    finally:
        warnings.formatwarning = usual


def _warning_line(message: Warning | str, *place: object, **more: object) -> str:
    """A warning as one line, without the place in the code."""
    return f"laconic: {' '.join(str(message).split())}\n"


def _complain(message: str) -> None:
    print("laconic: " + " ".join(message.split()), file=sys.stderr)


def _fit_and_write(
    rows: "JobRows", options: "JobOptions", out: Path, title: str, *, as_json: bool
) -> None:
    from laconic.job.table import run_job

    if not as_json:
        print_notes(console(), rows.notes())
    _print_result(
        lambda: run_job(rows, options, out=out, title=title),
        options,
        rows.notes(),
        as_json=as_json,
    )


def _print_result(
    job: Callable[[], "JobResult"], options: "JobOptions", notes: list[str], *, as_json: bool
) -> None:
    import json

    from laconic.cli.progress import progress
    from laconic.reporting.render import to_terminal
    from laconic.reporting.summary import compact

    with progress(as_json):
        done = job()
    if as_json:
        said = {
            "model": str(done.model_path),
            "report": str(done.report_path),
            "candidate": done.model.candidate_,
            "positive": done.positive,
            "notes": notes,
            **compact(done.summary),
        }
        sys.stdout.write(json.dumps(without_nan(said)) + "\n")
        return
    screen = console()
    screen.print(comparison_table(columns_of(done.model.comparison_), options.language))
    screen.print(to_terminal(done.shown, language=options.language))
    language, name = options.language, done.shown["positive"]
    hint = screen_line(language, "changed") if options.positive is None else ""
    screen.print(screen_line(language, "positive", name=name) + hint, markup=False)
    written = screen_line(language, "wrote", model=done.model_path, report=done.report_path)
    screen.print(written, markup=False)


if __name__ == "__main__":
    main()
