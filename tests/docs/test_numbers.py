"""Numbers of the guides are those of stored runs, and a slower benchmark is noticed."""

from __future__ import annotations

import pytest
from benchmarks import stored

PAGE = """# A guide of section 4.1

Speed on Python 3.11, with $C = 0.5$ and `tol=0.25`:

<!-- run: toy/1 -->
| data | peer / ours |
|---|---|
| small | 2.5 |

<!-- run: toy/said, python toy.py -->
So 2.5 times as fast, 1,000 rows.

<!-- no run: a parameter -->
The zone is 0.3.

<!-- run: toy/session, toy fit -->
```
$ toy fit

cost 0.25
```

```python
tol = 0.125
```

$$ x = 0.75 $$
"""


@pytest.fixture
def guide(tmp_path):
    path = tmp_path / "guide.md"
    path.write_text(PAGE)
    table = [["data", "peer / ours"], ["small", "2.5"]]
    store = {"toy/1": {"command": "python -m benchmarks toy", "table": table}}
    stored.renew(path, store)
    return path, store


def test_a_renewed_guide_is_what_the_store_holds(guide):
    path, store = guide
    assert stored.complaints(path, store) == []
    assert path.read_text() == PAGE
    assert store["toy/said"]["numbers"] == ["2.5", "1,000"]
    assert store["toy/said"]["command"] == "python toy.py"
    assert store["toy/session"]["numbers"] == ["0.25"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("| small | 2.5 |", "| small | 2.6 |", "differs from toy/1"),
        ("So 2.5 times", "So 2.6 times", "differs from toy/said"),
        ("1,000 rows", "2,000 rows", "differs from toy/said"),
        ("cost 0.25", "cost 0.24", "differs from toy/session"),
        ("python toy.py", "python other.py", "another command"),
        ("run: toy/said,", "run: toy/new,", "toy/new is not stored"),
        ("<!-- no run: a parameter -->\n", "", "says what printed 0.3"),
        ("# A guide", "Twice 0.7.\n\n# A guide", "says what printed 0.7"),
        ("# A guide", "```\ncost 0.7\n```\n\n# A guide", "says what printed 0.7"),
    ],
)
def test_what_differs_is_named(guide, old, new, said):
    path, store = guide
    assert old in PAGE
    path.write_text(PAGE.replace(old, new))
    assert said in " ".join(stored.complaints(path, store))


def test_numbers_keep_their_commit_until_they_change(guide):
    path, store = guide
    store["toy/said"]["commit"] = store["toy/session"]["commit"] = "of long ago"
    path.write_text(PAGE.replace("So 2.5 times", "So 2.6 times"))
    stored.renew(path, store)
    assert store["toy/session"]["commit"] == "of long ago"
    assert store["toy/said"]["commit"] not in ("of long ago", "")


def test_a_module_that_prints_tables_can_be_stored(tmp_path, monkeypatch, capsys):
    from benchmarks import __main__ as bench

    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "toy.py").write_text(
        "import sys\nprint('| a |\\n|---|\\n|', sys.argv[1], '|')"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(bench, "LAST", tmp_path / "last.json")
    monkeypatch.setattr(stored, "STORE", tmp_path / "results.json")
    monkeypatch.setattr(stored.read, "__defaults__", (tmp_path / "results.json",))
    monkeypatch.setattr(stored.write, "__defaults__", (tmp_path / "results.json",))
    bench.main(["other.toy:7", "--store"])
    own = stored.read()["other.toy:7/1"]
    assert own["table"] == [["a"], ["7"]]
    assert own["commit"]
    with pytest.raises(SystemExit, match="no benchmark 'nope'"):
        bench.main(["nope:1"])


def test_a_new_run_is_written_into_the_guide(guide):
    path, store = guide
    store["toy/1"]["table"] = [["data", "peer / ours"], ["small", "3.5"], ["large", "9"]]
    stored.renew(path, store)
    assert "| small | 3.5 |\n| large | 9 |\n\n<!-- run: toy/said" in path.read_text()
    assert stored.complaints(path, store) == []


def test_tables_are_read_from_what_is_printed_and_survive_the_file(tmp_path):
    (rows,) = stored.tables_printed('Data: x.\n\n| a | b |\n|---|---|\n| "q" | 1/3 |\n\nMemory.')
    assert rows == [["a", "b"], ['"q"', "1/3"]]
    store = {"x/1": {"command": "c", "table": rows}, "x/2": {"command": "c", "numbers": ["1", "2"]}}
    stored.write(store, tmp_path / "store.json")
    assert stored.read(tmp_path / "store.json") == store


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
def test_guides_show_stored_numbers(path):
    assert stored.complaints(path, stored.read()) == []


def test_every_stored_number_is_shown_or_printed_by_a_benchmark():
    shown = {
        block.mark["name"]
        for path in stored.guides()
        for block in stored.blocks(path.read_text(encoding="utf-8"))
        if block.mark
    }
    of_guides = {name for name, own in stored.read().items() if "guide" in own}
    assert of_guides <= shown
