"""Numbers of the guides are those that stored runs printed, and a slower benchmark is noticed."""

from __future__ import annotations

import re
import sys

import pytest
from benchmarks import stored

PAGE = """# A guide of section 4.1

Speed on Python 3.11, with $C = 0.5$ and `tol=0.25`:

<!-- run: toy/speed, table 1 -->
| data | peer / ours |
|---|---|
| small | 2.5 |
| large | 11.26 |

<!-- run: toy/speed -->
So 2.5 times as fast on 1,000 rows and 11.3 times as fast on more.

<!-- run: toy/speed -->
| data | how many times |
|---|---|
| large | 11.3 |

<!-- no run: a parameter -->
The zone is 0.3.

<!-- run: toy/session; toy/speed -->
```
$ toy fit --out \\
     here                # a comment
cost  0.25
...
$ python toy.py
```

```python
tol = 0.125
```

$$ x = 0.75 $$
"""

TABLE = ["| data | peer / ours |", "|---|---|", "| small | 2.5 |", "| large | 11.26 |"]


def run(command: str, printed: list[str]) -> stored.Run:
    return stored.Run(command, "abc", "2026-01-31", {"python": "3"}, printed)


@pytest.fixture
def runs() -> stored.Runs:
    return {
        "toy/speed": run("python toy.py", ["Times, 1,000 rows and more.", "", *TABLE]),
        "toy/session": run("toy fit --out here", ["a line", "cost 0.25"]),
    }


def test_what_runs_printed_may_be_shown(runs):
    assert stored.complaints(PAGE, "guide.md", runs) == []
    assert stored.renew(PAGE, runs) == PAGE


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("| small | 2.5 |", "| small | 2.6 |", "line 6: toy/speed is not table 1"),
        ("speed, table 1", "speed, table 2", "toy/speed is not table 2"),
        ("speed, table 1", "speed, python toy.py", "stands 'table K' or nothing"),
        ("So 2.5 times", "So 2.6 times", "line 12: toy/speed has no 2.6"),
        ("So 2.5 times", "So 2.50 times", "toy/speed has no 2.50"),
        ("11.3 times", "11.2 times", "toy/speed has no 11.2"),
        ("1,000 rows", "2,000 rows", "toy/speed has no 2,000"),
        ("| large | 11.3 |", "| large | 11.4 |", "has no line with 11.4 of the row large"),
        ("| large | 11.3 |", "| both | 2.5, 11.3 |", "has no line with these numbers"),
        ("cost  0.25", "cost  0.24", "did not print 'cost 0.24'"),
        ("$ python toy.py", "$ python other.py", "is of another command, python toy.py"),
        ("run: toy/speed -->", "run: toy/new -->", "no run toy/new is stored"),
        ("<!-- no run: a parameter -->\n", "", "says what printed 0.3"),
        ("# A guide", "Twice 0.7.\n\n# A guide", "says what printed 0.7"),
        ("# A guide", "It takes 7 s and 30 MB.\n\n# A guide", "says what printed 7 s, 30 MB"),
        ("# A guide", "```\ncost 0.7\n```\n\n# A guide", "says what printed 0.7"),
    ],
)
def test_what_no_run_printed_is_named(runs, old, new, said):
    assert old in PAGE
    assert said in " ".join(stored.complaints(PAGE.replace(old, new), "guide.md", runs))


def test_a_new_run_is_written_into_the_guide(runs):
    runs["toy/speed"] = run("python toy.py", ["| data | ratio |", "|---|---|", "| small | 3.5 |"])
    page = stored.renew(PAGE, runs)
    assert "| small | 3.5 |\n\n<!-- run: toy/speed -->\nSo 2.5" in page
    assert "toy/speed has no 2.5" in " ".join(stored.complaints(page, "guide.md", runs))
    with pytest.raises(SystemExit, match="no stored run printed toy/none, table 1"):
        stored.renew("<!-- run: toy/none, table 1 -->\n| a |\n|---|\n| 1 |", runs)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(stored, "PRINTED", tmp_path / "printed")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_any_command_is_run_and_its_whole_text_stored(folder, capfd):
    words = "import os; print('10 %\\r20 %'); print(os.getcwd() + '/x.csv: 0.5\\n')"
    stored.main(["run", "toy/own", "--", sys.executable, "-c", words])
    own = stored.read()["toy/own"]
    assert own.printed == ["20 %", "x.csv: 0.5"]
    assert own.command.startswith(sys.executable)
    assert own.versions["numpy"]
    assert re.fullmatch(r"[0-9a-f]{12}(-dirty)?", own.commit)
    with pytest.raises(SystemExit, match="ended with 3; nothing is stored"):
        stored.main(["run", "toy/failed", "--", sys.executable, "-c", "raise SystemExit(3)"])
    stored.main(["run", "toy/piped", "--", "printf 'a\\nb' | head -1"])
    assert stored.read()["toy/piped"].printed == ["a"]
    (folder / "log").write_text("cost 0.25\n")
    stored.main(["keep", "toy/log", "log", "abc", "--", "toy", "fit"])
    assert list(stored.read()) == ["toy/log", "toy/own", "toy/piped"]
    assert stored.read()["toy/log"].printed == ["cost 0.25"]


def test_a_module_that_prints_tables_is_stored_and_compared(folder, monkeypatch, capsys):
    from benchmarks import __main__ as bench

    (folder / "other").mkdir()
    (folder / "other" / "toy.py").write_text(
        "import sys\nprint('| a | ratio |\\n|---|---|\\n| x |', sys.argv[1], '|')"
    )
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(bench, "LAST", folder / "last")
    bench.main(["other.toy:7", "--store"])
    own = stored.read()["other.toy/7"]
    assert own.tables == [[["a", "ratio"], ["x", "7"]]]
    assert stored.read(folder / "last") == {"other.toy/7": own}
    stored.write("other.toy/6", run("c", ["| a | ratio |", "|---|---|", "| x | 9 |"]))
    with pytest.raises(SystemExit, match=r"other\.toy/6: x, ratio: 6 times, stored 9"):
        bench.main(["other.toy:6"])
    with pytest.raises(SystemExit, match="no benchmark 'nope'"):
        bench.main(["nope:1"])


def test_ratios_that_fall_by_more_than_a_third_are_named():
    old = [
        ["data", "peer / ours", "ours / theirs"],
        ["small", "3.0", "1/4"],
        ["large", "x2", "0.5"],
    ]
    same = [old[0], ["small", "2.2", "1/3"], ["large", "x2", "0.6"]]
    slower = [old[0], ["small", "2.0", "1/4"], ["large", "x2", "1.0"]]
    assert stored.regressions(old, same) == []
    assert stored.regressions(old, slower) == [
        "small, peer / ours: 2 times, stored 3",
        "large, ours / theirs: 1 times, stored 2",
    ]


@pytest.mark.parametrize("path", stored.guides(), ids=lambda path: path.name)
def test_guides_show_printed_numbers_and_one_that_is_broken_is_named(path):
    page, runs = path.read_text(encoding="utf-8"), stored.read()
    assert stored.complaints(page, path.name, runs) == []
    for block in stored.blocks(page):
        if block.mark is None or set(block.names) & set(stored.PENDING):
            continue
        shown = stored.NOT_MEASURED.sub("", re.sub(r"^\$ .*", "", block.text, flags=re.M))
        *_, last = stored.NUMBER.findall(shown)
        broken = block.text.replace(last, "98765.4321")
        said = stored.complaints(page.replace(block.text, broken), path.name, runs)
        assert any(f"line {block.line + 1}:" in sentence for sentence in said), block.text


def test_what_is_pending_is_shown_and_has_no_run():
    pending, runs = set(stored.PENDING), set(stored.read())
    assert pending <= stored.shown()
    assert not pending & runs


def test_stored_texts_name_no_place_of_a_machine():
    for name, own in stored.read().items():
        text = "\n".join([own.command, *own.printed])
        assert not re.search(r"(?<![\w.])/(?:tmp|work|home|root|Users)/", text), name
        assert not own.commit.endswith("-dirty"), name
