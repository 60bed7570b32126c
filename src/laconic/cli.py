"""The command line: ``laconic demo``, ``laconic fit``, ``laconic predict``, ``laconic doctor``.

Nothing heavy is imported before a command needs it, so that ``--help`` answers at once.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from laconic.data.columns import Table

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

CostOption = Annotated[
    list[str] | None,
    typer.Option("--cost", help="fp=1 and fn=10: what a false alarm and a miss cost. Repeat it."),
]
OutOption = Annotated[Path, typer.Option("--out", help="Folder for model.json and report.html.")]
SeedOption = Annotated[int, typer.Option(help="Seed of the split into training and test rows.")]


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of errors.")] = False,
) -> None:
    """Small, certified classifiers for rare classes, unequal costs and a moving class mix."""


@app.command()
def demo(out: OutOption = Path("laconic-demo"), seed: SeedOption = 0) -> None:
    """Fit a model on generated card payments, few of them fraud, and write its report."""
    from laconic.data.demo import DEMO_COSTS, make_payments

    payments, label = make_payments(random_state=seed)
    _console().print(
        f"[bold]{payments.n_rows:,} card payments[/bold], "
        f"{(label == 'fraud').mean():.1%} of them fraud. A false alarm costs "
        f"{DEMO_COSTS['fp']:g}, a missed fraud {DEMO_COSTS['fn']:g}."
    )
    _fit_and_write(payments, label, dict(DEMO_COSTS), None, out, seed, "Card payments")


@app.command()
def fit(
    data: Annotated[Path, typer.Argument(help="CSV (also .gz), Parquet or Arrow file.")],
    target: Annotated[str, typer.Option(help="Column to predict.")],
    out: OutOption,
    cost: CostOption = None,
    positive: Annotated[
        str | None, typer.Option(help="The positive class (default: the rarer one).")
    ] = None,
    seed: SeedOption = 0,
) -> None:
    """Fit a model to a table and costs; write DIR/model.json and DIR/report.html."""
    from laconic.data.files import read_table

    costs = _parse_costs(cost or [])
    table = read_table(data)
    X, label = _split_target(table, target)
    _fit_and_write(X, label, costs, positive, out, seed, f"{target} in {data.name}")


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="model.json written by `laconic fit`.")],
    data: Annotated[Path, typer.Argument(help="CSV (also .gz), Parquet or Arrow file.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="CSV file (default: stdout).")
    ] = None,
) -> None:
    """One probability column per class and the decision, for every row of a table."""
    import csv
    import io

    from laconic.data.files import read_table
    from laconic.export.model_file import load, write_atomically

    loaded = load(model)
    table = read_table(data)
    probabilities, decisions = loaded.predict_proba(table), loaded.predict(table)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*(f"probability of {name}" for name in loaded.classes_), "decision"])
    for row, decision in zip(probabilities.tolist(), decisions.tolist(), strict=True):
        writer.writerow([*map(repr, row), decision])
    if out is None:
        sys.stdout.write(text.getvalue())
    else:
        write_atomically(out, text.getvalue())


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
    except (ValueError, OSError) as error:
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


def _parse_costs(words: list[str]) -> dict[str, float]:
    costs = {"fp": 1.0, "fn": 1.0}
    for word in words:
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


def _split_target(table: Table, target: str) -> tuple[Table, Any]:
    import difflib

    import numpy as np

    if target not in table.names:
        near = difflib.get_close_matches(target, table.names, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(table.names[:8])}."
        raise ValueError(f"There is no column {target!r} in the table; {hint}")
    j = table.names.index(target)
    cells, texts = table.column(j), table.categories[j]
    if texts is not None:
        gone, label = cells < 0, np.array([*texts, ""])[cells]
    else:
        gone, label = np.isnan(cells), np.array([f"{cell:g}" for cell in cells])
    if gone.any():
        raise ValueError(
            f"Column {target!r} is missing in {int(gone.sum())} rows; drop them before the fit."
        )
    if len(np.unique(label)) > 100:
        raise ValueError(
            f"Column {target!r} has {len(np.unique(label)):,} different values: that is not a "
            "class; choose a column with at most 100."
        )
    others = [k for k in range(len(table.names)) if k != j]
    if not others:
        raise ValueError(f"The table has no column beside {target!r} to predict it from.")
    return table[:, others], label


def _fit_and_write(
    X: Table,
    label: Any,
    costs: dict[str, float],
    positive: str | None,
    out: Path,
    seed: int,
    title: str,
) -> None:
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from laconic.job import JOB_STEPS, run_job

    console = _console()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=len(JOB_STEPS))
        done = run_job(
            X,
            label,
            costs=costs,
            positive=positive,
            out=out,
            seed=seed,
            title=title,
            on_step=lambda step: progress.update(task, description=step, advance=1),
        )
    from laconic.report.render import to_terminal

    console.print(to_terminal(done.summary))
    console.print(f"positive class: {done.positive} (--positive changes it)", markup=False)
    console.print(f"wrote {done.model_path} and {done.report_path}", markup=False)


if __name__ == "__main__":
    main()
