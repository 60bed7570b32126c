"""The command line: fit, compare, predict, explain, report, export, demo, doctor.

Nothing heavy is imported before a command needs it, so that ``--help`` answers at once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from laconic.cli_export import export_app

if TYPE_CHECKING:
    from rich.console import Console

    from laconic.data.columns import Table
    from laconic.job import JobResult, Wishes

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
    list[str] | None, typer.Option("--model", help="Compare this family only. Repeat it.")
]
PositiveOption = Annotated[
    str | None, typer.Option(help="The positive class (default: the rarer one).")
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
JsonOption = Annotated[bool, typer.Option("--json", help="JSON on stdout, messages on stderr.")]
LanguageOption = Annotated[str, typer.Option(help="Language of the report: en or fr.")]


app.add_typer(export_app)


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of errors.")] = False,
) -> None:
    """Small, certified classifiers for rare classes, unequal costs and a moving class mix."""


@app.command()
def demo(
    out: OutOption = Path("laconic-demo"), seed: SeedOption = 0, language: LanguageOption = "en"
) -> None:
    """Fit a model on generated card payments, few of them fraud, and write its report."""
    from laconic.data.demo import DEMO_COSTS, make_payments
    from laconic.job import Wishes

    payments, label = make_payments(random_state=seed)
    _console().print(
        f"[bold]{payments.n_rows:,} card payments[/bold], "
        f"{(label == 'fraud').mean():.1%} of them fraud. A false alarm costs "
        f"{DEMO_COSTS['fp']:g}, a missed fraud {DEMO_COSTS['fn']:g}."
    )
    wishes = Wishes(costs=dict(DEMO_COSTS), seed=seed, language=_language(language))
    _fit_and_write(payments, label, wishes, out, "Card payments", as_json=False)


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
    from laconic.data.scan_files import names_many
    from laconic.job import Wishes
    from laconic.scan_job import run_scan_job

    wishes = Wishes(
        _costs(cost, costs), positive, _priors(prior), reject_cost, model or "auto",
        _seconds(budget), seed, _language(language),
    )  # fmt: skip
    title = f"{target} in {Path(data).name}"
    if cluster is not None or scan or names_many(data):
        if separator is not None or encoding is not None:
            raise ValueError("--separator and --encoding are for one CSV file read into memory.")
        _tell_what_was_made(
            lambda: run_scan_job(data, target, wishes, cluster=cluster, out=out, title=title),
            wishes,
            as_json=as_json,
        )
        return
    X, label = _labelled(data, target, separator, encoding)
    _fit_and_write(X, label, wishes, out, title, as_json=as_json)


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
    as_json: JsonOption = False,
) -> None:
    """Compare the families by the cost of held-out decisions; nothing is written."""
    import json

    from laconic.job import Wishes, classifier_of, read_problem

    wishes = Wishes(
        _costs(cost, costs), positive, _priors(prior), None, model or "auto", _seconds(budget), seed
    )
    X, label = _labelled(data, target, separator, encoding)
    problem = read_problem(label, wishes)
    with _progress(as_json):
        fitted = classifier_of(problem, wishes).fit(X, label)
    columns = _columns(fitted.comparison_)
    if as_json:
        sys.stdout.write(json.dumps(_without_nan(columns)) + "\n")
        return
    _console().print(_comparison_table(columns))


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
) -> None:
    """One probability column per class and the decision, for every row of a table.

    Rows are read and written in chunks: the table may be larger than memory.
    """
    from laconic.data.text_files import TextFormat
    from laconic.export.model_file import load
    from laconic.scoring import write_predictions

    loaded = load(model)
    text = TextFormat(separator, encoding)
    with _progress(out is None) as step:
        write_predictions(loaded, data, out, text, tuple(key or ()), step)


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
) -> None:
    """Why each row is decided as it is: the terms that move its score most, exactly."""
    from laconic.data.text_files import TextFormat
    from laconic.export.model_file import load, read_content
    from laconic.scoring import model_in_words, write_reasons

    loaded = load(model)
    positive = (read_content(model)["summary"] or {}).get("positive")
    if data is None:
        sys.stdout.write(model_in_words(loaded, positive))
        return
    text = TextFormat(separator, encoding)
    write_reasons(loaded, data, out, text, tuple(key or ()), reasons, positive)


@app.command()
def report(
    model: ModelArgument,
    data: DataArgument,
    target: TargetOption,
    out: Annotated[Path, typer.Option("--out", "-o", help="HTML, Markdown or JSON file.")],
    title: Annotated[str, typer.Option(help="Heading of the report.")] = "Decision report",
    language: LanguageOption = "en",
    separator: SeparatorOption = None,
    encoding: EncodingOption = None,
    open_page: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
) -> None:
    """A report of a model on labelled rows that the fit has not seen."""
    import laconic
    from laconic.export.model_file import load

    loaded = load(model)
    X, label = _labelled(data, target, separator, encoding)
    y = label.astype(loaded.classes_.dtype)
    made = laconic.report(loaded, X, y, language=_language(language), title=title)
    made.save(out)
    _console().print(f"wrote {out}", markup=False)
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
        "cluster": ["dask", "distributed"],
        "plot": ["matplotlib"],
        "onnx": ["onnx", "onnxruntime", "skl2onnx"],
    }
    shown = RichTable("extra", "package", "version", title=f"Python {platform.python_version()}")
    for extra, packages in wanted.items():
        for package in packages:
            try:
                found = version(package)
            except PackageNotFoundError:
                found = f"[yellow]missing: pip install 'laconic\\[{extra}]'[/yellow]"
            shown.add_row(extra, package, found)
    _console().print(shown)


def main(arguments: list[str] | None = None) -> None:
    """Entry point: one line on stderr and exit code 2 for what the user can mend."""
    arguments = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in arguments
    # --debug is accepted anywhere on the line
    arguments = [word for word in arguments if word != "--debug"]
    try:
        sys.exit(app(arguments, standalone_mode=False) or 0)
    except typer.Exit as stop:
        sys.exit(stop.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        _complain("interrupted; nothing was written")
        sys.exit(130)
    except _ClickException as error:
        _complain(error.format_message())  # type: ignore[attr-defined]
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


def _complain(message: str) -> None:
    print("laconic: " + " ".join(message.split()), file=sys.stderr)


def _console() -> Console:
    from rich.console import Console

    return Console(highlight=False)


def _costs(words: list[str] | None, path: Path | None) -> dict[str, Any]:
    from laconic.job import read_costs

    if path is not None:
        if words:
            raise ValueError("Give --cost or --costs, not both.")
        return dict(read_costs(path))
    costs = {"fp": 1.0, "fn": 1.0}
    for word in words or []:
        name, _, amount = word.partition("=")
        try:
            value = float(amount)
        except ValueError:
            value = -1.0
        if name not in costs or not 0 <= value < float("inf"):
            raise ValueError(f"--cost {word}: write fp=NUMBER or fn=NUMBER, a number >= 0.")
        costs[name] = value
    if not any(costs.values()):
        raise ValueError("--cost: one of fp and fn must be above 0.")
    return costs


def _priors(words: list[str] | None) -> dict[str, float]:
    found = {}
    for word in words or []:
        name, _, amount = word.rpartition("=")
        try:
            share = float(amount)
        except ValueError:
            share = -1.0
        if not 0 <= share <= 1:
            raise ValueError(f"--prior {word}: write a share between 0 and 1, or NAME=SHARE.")
        found[name] = share
    return found


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    number, unit = (text[:-1], units[text[-1]]) if text[-1:] in units else (text, 1.0)
    try:
        seconds = float(number) * unit
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise ValueError(f"--budget {text}: write a time such as 60s, 5m or 1h.")
    return seconds


def _language(text: str) -> str:
    if text not in ("en", "fr"):
        raise ValueError(f"--language {text}: write en or fr.")
    return text


def _labelled(
    data: str, target: str, separator: str | None, encoding: str | None
) -> tuple[Table, Any]:
    from laconic.data.files import TextFormat, read_table
    from laconic.data.targets import split_target

    return split_target(read_table(data, TextFormat(separator, encoding)), target)


@contextmanager
def _progress(quiet: bool = False) -> Iterator[Callable[[Any], None]]:
    """A bar on stderr that follows the steps of the library; silent for machines and pipes."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from laconic.estimators.progress import Step, listening

    console = Console(stderr=True, highlight=False)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    shown = not quiet and console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=not shown) as bar:
        task = bar.add_task("reading", total=1.0)

        def follow(step: Step) -> None:
            bar.update(task, description=step.text, completed=step.done)

        with listening(follow):
            yield follow


def _fit_and_write(
    X: Table, label: Any, wishes: Wishes, out: Path, title: str, *, as_json: bool
) -> None:
    from laconic.job import run_job

    _tell_what_was_made(
        lambda: run_job(X, label, wishes, out=out, title=title), wishes, as_json=as_json
    )


def _tell_what_was_made(job: Callable[[], JobResult], wishes: Wishes, *, as_json: bool) -> None:
    import json

    from laconic.reporting.render import to_terminal
    from laconic.reporting.summary import compact

    with _progress(as_json):
        done = job()
    if as_json:
        said = {
            "model": str(done.model_path),
            "report": str(done.report_path),
            "candidate": done.model.candidate_,
            "positive": done.positive,
            **compact(done.summary),
        }
        sys.stdout.write(json.dumps(_without_nan(said)) + "\n")
        return
    console = _console()
    console.print(_comparison_table(_columns(done.model.comparison_)))
    console.print(to_terminal(done.summary, language=wishes.language))
    console.print(f"positive class: {done.positive} (--positive changes it)", markup=False)
    console.print(f"wrote {done.model_path} and {done.report_path}", markup=False)


def _columns(comparison: Any) -> dict[str, list[Any]]:
    return {name: list(comparison[name]) for name in comparison}


def _comparison_table(columns: dict[str, list[Any]]) -> Any:
    from rich.table import Table as RichTable
    from rich.text import Text

    shown = RichTable(title="Held-out cost of every candidate, by cross-validation", box=None)
    heads = ("", "candidate", "cost", "\u00b1", "log loss", "AUC", "size", "seconds", "note")
    for head in heads:
        left = head in ("", "candidate", "note")
        shown.add_column(
            head, justify="left" if left else "right", no_wrap=head != "note", overflow="fold"
        )
    order = sorted(range(len(columns["cost"])), key=lambda i: _last_if_nan(columns["cost"][i]))
    for i in order:
        cells = [
            "*" if columns["chosen"][i] else "",
            str(columns["candidate"][i]),
            *(_number(columns[name][i], digits) for name, digits in _SHOWN),
            str(columns["note"][i]),
        ]
        style = "bold" if columns["chosen"][i] else ""
        shown.add_row(*(Text(cell) for cell in cells), style=style)
    return shown


_SHOWN = (("cost", 4), ("cost_se", 4), ("log_loss", 4), ("auc", 3), ("size", 0), ("fit_seconds", 1))


def _last_if_nan(value: float) -> float:
    return float("inf") if value != value else float(value)


def _number(value: float, digits: int) -> str:
    return "" if value != value else f"{value:.{digits}f}"


def _without_nan(value: Any) -> Any:
    """JSON has no NaN: null instead; numpy scalars become plain."""
    if isinstance(value, dict):
        return {str(key): _without_nan(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(part) for part in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not abs(value) < float("inf") else value


if __name__ == "__main__":
    main()
