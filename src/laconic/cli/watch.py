"""``laconic watch`` and ``laconic adopt``: a model in use."""

from pathlib import Path
from typing import Annotated, Any

import typer

from laconic.cli.options import EncodingOption, ModelArgument, SentencesOption, SeparatorOption
from laconic.cli.screen import console, print_line, read_language, read_priors

ALARM_EXIT = 3
"""Exit code of an alarm, for schedulers."""


def watch(
    model: ModelArgument,
    data: Annotated[str, typer.Argument(help="New rows: a file, a folder or a glob.")],
    labels: Annotated[
        str | None, typer.Option(help="Column of the classes, when they are known.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write a page (.html) or JSON (.json).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    separator: SeparatorOption = None,
    encoding: EncodingOption = None,
    language: SentencesOption = "en",
) -> None:
    """Has anything moved? Class mix, cost and columns of new rows; exit code 3 on an alarm."""
    import json

    from laconic.cli.progress import progress
    from laconic.data.tables.text import TextFormat
    from laconic.export.atomic import write_atomically
    from laconic.export.model_file import load
    from laconic.job.scoring import watch_file
    from laconic.watching.render import sentences, to_html
    from laconic.watching.words import AT_MEANS

    if out is not None and out.suffix not in (".html", ".json"):
        raise ValueError(f"--out {out.name}: the name must end with .html or .json.")
    language = read_language(language)
    loaded = load(model)
    with progress(as_json) as step:
        found = watch_file(loaded, data, TextFormat(separator, encoding), labels, step)
    content = json.dumps(found.to_dict(), indent=1)
    if out is not None:
        page = to_html(found, f"{Path(data).name}: {model.name}", language)
        write_atomically(out, page if out.suffix == ".html" else content + "\n")
    if as_json:
        typer.echo(content)
    else:
        for line in sentences(found, language):
            print_line(console(), line)
        if getattr(loaded, "row_costs_", None) is not None:
            print_line(console(), AT_MEANS[language])
    if found.alarm:
        raise typer.Exit(ALARM_EXIT)


def adopt(
    model: ModelArgument,
    prior: Annotated[
        list[str], typer.Option(help="Share of the positive class, or NAME=SHARE. Repeat it.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Model file to write.")],
) -> None:
    """The same model with decisions for another class mix; the old file's digest is kept."""
    from laconic.export.model_file import adopt as adopted
    from laconic.export.model_file import load, read_content

    shares = read_priors(prior)
    old = load(model)
    classes = old.classes_.tolist()
    positive = (read_content(model)["summary"] or {}).get("positive", classes[-1])
    named = {name or str(positive): share for name, share in shares.items()}
    odd = [name for name in named if name not in map(str, classes)]
    if odd:
        known = ", ".join(map(str, classes))
        raise ValueError(f"--prior: {odd[0]!r} is no class of the model; it has {known}.")
    rest = [name for name in classes if str(name) not in named]
    left = 1.0 - sum(named.values())
    if len(rest) == 1:
        named[str(rest[0])] = left
    adopted(model, out, prior={name: named.get(str(name), 0.0) for name in classes})
    for line in _after_adopting(old, load(out), out.name):
        print_line(console(), line)


def _after_adopting(old: Any, new: Any, name: str) -> list[str]:
    """What was written, which promises stay and which ended with the old mix."""
    before, now = (
        [] if one.guaranteed_ is None else [str(own.guarantee) for own in one.guaranteed_.promises]
        for one in (old, new)
    )
    ended = [one for one in before if one not in now]
    lines = [f"wrote {name}: the same model, with decisions for this class mix"]
    lines += [f"still promised: {', '.join(now)}"] if now else []
    return lines + ([f"promised for the old mix alone: {', '.join(ended)}"] if ended else [])
