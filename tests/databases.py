"""Tables that databases read from a CSV by themselves, for the tests of SQL."""

from __future__ import annotations

import csv
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest


def quoted(name: str) -> str:
    """A name as the standard quotes it, written here without the library that is tested."""
    return '"' + name.replace('"', '""') + '"'


def in_duckdb(path: Path, query: str, options: str = "") -> list[tuple[Any, ...]]:
    """``options`` of its reader, for cells at which it does not find the quotes by itself."""
    import duckdb

    with duckdb.connect() as base:
        base.execute(f"CREATE TABLE rows AS SELECT * FROM read_csv('{path}'{options})")
        return base.execute(query).fetchall()


def in_sqlite(path: Path, query: str) -> list[tuple[Any, ...]]:
    """As its shell's .import does: every cell a text, gaps empty texts."""
    with path.open(newline="") as file:
        head, *rows = csv.reader(file)
    base = sqlite3.connect(":memory:")
    declared = ", ".join(f"{quoted(name)} TEXT" for name in head)
    base.execute(f"CREATE TABLE rows ({declared})")
    base.executemany(f"INSERT INTO rows VALUES ({', '.join('?' for _ in head)})", rows)
    found = base.execute(query).fetchall()
    base.close()
    return found


def in_postgres(path: Path, query: str, types: dict[str, str]) -> list[tuple[Any, ...]]:
    import psycopg

    address = os.environ.get("LACONIC_POSTGRES")
    if not address:
        pytest.skip("no PostgreSQL server: LACONIC_POSTGRES is not set (.ci/postgres start)")
    with path.open(newline="", encoding="utf-8") as file, psycopg.connect(address) as base:
        head = next(csv.reader(file))
        declared = ", ".join(f"{quoted(name)} {types.get(name, 'TEXT')}" for name in head)
        base.execute(f"SET datestyle TO 'ISO, DMY'; CREATE TEMPORARY TABLE rows ({declared})")
        with base.cursor().copy("COPY rows FROM STDIN WITH (FORMAT csv)") as copy:
            copy.write(file.read())
        found = base.execute(query).fetchall()
        base.rollback()
    return found
