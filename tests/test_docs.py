"""What the documentation says runs: examples of every guide, the README's Python and its shell."""

import doctest
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

PROJECT = Path(__file__).parents[1]
ELSEWHERE = {
    "decisions.md",
    "guarantees.md",
    "integration.md",
    "report.md",
}  # by the tests of their packages
PAGES = [
    path
    for path in [*PROJECT.glob("README*.md"), *sorted((PROJECT / "docs").glob("*.md"))]
    if "```python" in path.read_text(encoding="utf-8") and path.name not in ELSEWHERE
]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def blocks(path, language="python"):
    """Code between fences of a language, in the order of the page."""
    text = path.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.S | re.M)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_the_examples_of_a_page_run(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for number, code in enumerate(blocks(path)):
        if ">>>" not in code:
            exec(compile(code, f"{path.name}, block {number}", "exec"), names)
            continue
        session = doctest.DocTestParser().get_doctest(code, names, path.name, str(path), 0)
        runner = doctest.DocTestRunner(optionflags=FLAGS)
        said = []
        runner.run(session, out=said.append, clear_globs=False)
        assert runner.failures == 0, "".join(said)
        names |= session.globs


def write_payments(folder):
    """The files that the README speaks of, with few rows."""
    from laconic.data.demo import make_payments

    table, label = make_payments(1500)
    frame = pd.DataFrame({name: readable(table, j) for j, name in enumerate(table.names)})
    frame.insert(0, "id", np.arange(len(frame)) + 1)
    frame.drop(columns="id").assign(label=label).to_csv(folder / "payments.csv", index=False)
    frame[:300].to_csv(folder / "new.csv", index=False)
    frame[300:900].to_csv(folder / "march.csv", index=False)


def readable(table, j):
    """A column as numbers or texts."""
    values = table.column(j)
    if table.categories[j] is None:
        return values
    texts = np.array([*table.categories[j], None], dtype=object)
    return texts[np.where(values < 0, len(texts) - 1, values)]


@pytest.mark.filterwarnings("ignore")  # few rows make fits stop early
@pytest.mark.parametrize("path", sorted(PROJECT.glob("README*.md")), ids=lambda path: path.name)
def test_the_commands_of_the_readme_run(path, tmp_path, monkeypatch, capsys):
    from laconic.cli import main

    write_payments(tmp_path)
    monkeypatch.chdir(tmp_path)
    lines = re.findall(r"^\$ laconic (.*?)(?:\s+# .*)?$", path.read_text(encoding="utf-8"), re.M)
    assert len(lines) >= 5
    for line in lines:
        with pytest.raises(SystemExit) as stop:
            main(shlex.split(line.partition(" | ")[0]))
        fine = {0, 3} if line.startswith("watch") else {0}
        assert stop.value.code in fine, (line, capsys.readouterr().err)


def shell_lines(path):
    """Lines of ``laconic`` between fences, continued lines joined."""
    every = re.findall(r"^```([^\n]*)\n(.*?)^```", path.read_text("utf-8"), re.S | re.M)
    fenced = "\n".join(code for language, code in every if language in ("", "text", "bash"))
    joined = re.sub(r"\\\n\s*", "", fenced)
    return re.findall(r"^(?:\$ )?laconic (.*?)(?:\s+# .*)?$", joined, re.M)


def test_the_commands_of_the_guides_are_known():
    """Every word of a line is a command, an option of it, or a value; nothing is run."""
    from typer.main import get_command

    from laconic.cli.app import app

    group = get_command(app)
    lines = [line for path in sorted((PROJECT / "docs").glob("*.md")) for line in shell_lines(path)]
    assert len(lines) >= 15
    for line in lines:
        command, words = group, shlex.split(line)
        while hasattr(command, "commands"):
            assert words[0] in command.commands, line
            command = command.commands[words.pop(0)]
        context = command.context_class(command, info_name=line)
        command.make_parser(context).parse_args(words)  # says which option is not known
