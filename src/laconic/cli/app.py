"""The command line: look, fit, compare, predict, explain, report, export, demo, doctor, reproduce.

Nothing heavy is imported before a command needs it, so that ``--help`` answers at once; annotations
are evaluated here and not by typer, which would compile each of them twice.
"""

import sys
import warnings
from collections.abc import Callable
from typing import Annotated

import typer

from laconic.cli.export import export_app
from laconic.cli.fit import compare, demo, fit, look
from laconic.cli.predict import explain, predict, report
from laconic.cli.reproduce import reproduce
from laconic.cli.screen import complain, console, speak, spoken_language, warning_in_language
from laconic.cli.watch import adopt, watch
from laconic.core.progress import is_interrupt
from laconic.export.atomic import written

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

_COMMANDS: tuple[Callable[..., None], ...] = (
    demo, fit, look, compare, predict, explain, report, watch, adopt, reproduce,
)  # fmt: skip
for _command in _COMMANDS:
    app.command()(_command)
app.add_typer(export_app)


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of errors.")] = False,
) -> None:
    """Small, certified classifiers for rare classes, unequal costs and a moving class mix."""


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
    written.clear()
    # --debug is accepted anywhere on the line
    arguments = [word for word in arguments if word != "--debug"]
    speak(arguments)
    usual, warnings.formatwarning = warnings.formatwarning, _warning_line
    try:
        code = app(arguments, standalone_mode=False) or 0
        if code == _INTERRUPTED:  # newer typer catches Ctrl-C itself
            raise KeyboardInterrupt
        sys.exit(code)
    except typer.Exit as stop:
        sys.exit(stop.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        _complain_of_interrupt()
        sys.exit(_INTERRUPTED)
    except _ClickException as error:  # type: ignore[misc]
        complain(error.format_message())
        sys.exit(2)
    except MemoryError as error:
        if debug:
            raise
        own = str(error) if type(error) is MemoryError else ""  # numpy's names an array's shape
        complain(
            own
            or "the memory is not enough for this table; read it block by block with --scan, or "
            "leave columns out with --drop"
        )
        sys.exit(2)
    except (ValueError, OSError, ImportError) as error:
        if debug:
            raise
        complain(str(error) or type(error).__name__)
        sys.exit(2)
    except Exception as error:
        if is_interrupt(error):
            _complain_of_interrupt()
            sys.exit(_INTERRUPTED)
        if debug:
            raise
        complain(f"internal error, {type(error).__name__}: {error} (--debug shows where)")
        sys.exit(1)
    finally:
        warnings.formatwarning = usual


def _complain_of_interrupt() -> None:
    """What stands on the disk is told: an interruption may come between two files."""
    done = ", ".join(dict.fromkeys(written)) or "nothing"
    complain(f"interrupted; {done} {'were' if len({*written}) > 1 else 'was'} written")


def _warning_line(message: Warning | str, *place: object, **more: object) -> str:
    """A warning as one line, without the place in the code."""
    said = warning_in_language(" ".join(str(message).split()), spoken_language())
    return f"laconic: {said}\n"


if __name__ == "__main__":
    main()
