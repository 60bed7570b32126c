"""The process that compiles beside the first demo."""

from __future__ import annotations

import subprocess

import pytest

from laconic.cli import first_use


class Process:
    """What was started, and how it ended."""

    begun: list[list[str]] = []

    def __init__(self, command, **options):
        self.begun.append(command)
        self.ended = False

    def terminate(self):
        self.ended = True

    def wait(self):
        assert self.ended


@pytest.fixture
def begun(monkeypatch):
    monkeypatch.setattr(Process, "begun", [])
    monkeypatch.setattr(subprocess, "Popen", Process)
    monkeypatch.setattr(first_use.os, "cpu_count", lambda: 2)
    return Process.begun


@pytest.mark.parametrize("nothing_kept", [True, False])
def test_a_process_compiles_only_where_nothing_is_kept(monkeypatch, begun, nothing_kept):
    monkeypatch.setattr(first_use, "_nothing_kept", lambda: nothing_kept)
    with pytest.raises(ZeroDivisionError), first_use.compiled_meanwhile():
        raise ZeroDivisionError
    assert [command[1:] for command in begun] == nothing_kept * [["-m", "laconic.cli.first_use"]]


def test_one_processor_is_not_shared(monkeypatch, begun):
    monkeypatch.setattr(first_use.os, "cpu_count", lambda: 1)
    with first_use.compiled_meanwhile():
        assert not begun


def test_what_is_kept_is_seen(monkeypatch, tmp_path):
    from laconic.kernel import _numba

    class Stats:
        cache_path = str(tmp_path)

    class Function:
        stats = Stats()

    monkeypatch.setattr(_numba, "greedy_pivots", Function)
    assert first_use._nothing_kept()
    (tmp_path / "_numba.greedy_pivots-1.py311.nbi").touch()
    assert not first_use._nothing_kept()
    monkeypatch.setattr(Stats, "cache_path", None)  # numba has no folder to write to
    assert not first_use._nothing_kept()


def test_late_candidates_are_fitted(monkeypatch):
    monkeypatch.setattr(first_use, "ROWS", 200)
    first_use._compile()
