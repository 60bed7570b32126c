"""Fits from Parquet files: time and memory by rows, against arrays, on one and two workers.

The table has 20 numeric columns (10 of them with as many values as rows) and 5 of text, and is
generated in a folder given by LACONIC_SCALE (default: a temporary one). Every measurement is a
process of its own: CPU and wall seconds of ``fit`` alone, and the largest memory of the process.

    python -m benchmarks scale            2,000,000 rows and a tenth of it
    python -m benchmarks.bench_scale 20000000
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

PIECE = 1_000_000
N_NUMERIC, N_TEXT = 20, 5
MODELS = ("WeightedNaiveBayes", "GrayZoneLogisticRegression")


def make_files(folder: Path, n_rows: int) -> None:
    """Parquet files of a million rows, about 110 bytes a row."""
    import polars as pl

    folder.mkdir(parents=True, exist_ok=True)
    slopes = np.random.default_rng(1).normal(size=N_NUMERIC) * (np.arange(N_NUMERIC) % 3 == 0)
    for piece in range(-(-n_rows // PIECE)):
        path = folder / f"rows-{piece:04d}.parquet"
        rows = min(PIECE, n_rows - piece * PIECE)
        if path.exists():
            continue
        draw = np.random.default_rng(100 + piece)
        X = draw.normal(size=(rows, N_NUMERIC))
        X[:, 10:] = np.round(X[:, 10:] * 20) / 20
        texts = {f"c{j}": draw.integers(0, 4 * 3**j, rows).astype(np.int32) for j in range(N_TEXT)}
        score = X @ slopes * 0.4 + 0.8 * (texts["c1"] % 3 == 0) - 0.6 * (texts["c3"] % 5 == 1) - 3.5
        label = draw.random(rows) < 1 / (1 + np.exp(-score))
        columns: dict[str, Any] = {f"x{j}": X[:, j] for j in range(N_NUMERIC)}
        for name, codes in texts.items():
            columns[name] = pl.Series(codes).cast(pl.String)
        columns["label"] = label.astype(np.int8)
        pl.DataFrame(columns).write_parquet(path, row_group_size=524_288)


def model_of(name: str) -> Any:
    import laconic

    if name == "GrayZoneLogisticRegression":
        return laconic.GrayZoneLogisticRegression(zone=(0.01, 0.2))
    return getattr(laconic, name)()


def measure(name: str, folder: str, n_rows: int, way: str) -> dict[str, Any]:
    """One fit in this process; ``way`` is files, arrays or the number of workers."""
    import polars as pl

    from laconic import scan

    paths = sorted(Path(folder).glob("rows-*.parquet"))[: -(-n_rows // PIECE)]
    columns = [f"x{j}" for j in range(N_NUMERIC)]
    if name == "WeightedNaiveBayes":
        columns += [f"c{j}" for j in range(N_TEXT)]
    model_of(name).fit(*_few(paths[0], columns))  # compiled, imported
    cluster = None
    if way.isdigit():
        from distributed import Client, LocalCluster

        cluster = LocalCluster(
            n_workers=int(way), threads_per_worker=1, dashboard_address=None, processes=True
        )
        client = Client(cluster)
        rows = scan(paths[:1], "label", features=columns, cluster=client)
        model_of(name).fit(rows)  # the workers import and compile
    model = model_of(name)
    if way == "arrays":
        frame = pl.concat([pl.read_parquet(path) for path in paths])
        given = (frame.select(columns), frame["label"].to_numpy())
    else:
        given = (scan(paths, "label", features=columns, cluster=client if cluster else None),)
    wall, cpu = time.perf_counter(), time.process_time()
    model.fit(*given)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    out = {
        "wall": wall,
        "cpu": cpu,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "passes": getattr(given[0], "n_passes", 0),
        "gap": float(model.duality_gap_),
    }
    if cluster is not None:
        client.close()
        cluster.close()
    return out


def _few(path: Path, columns: list[str]) -> tuple[Any, Any]:
    import polars as pl

    frame = pl.read_parquet(path, n_rows=20_000)
    return frame.select(columns), frame["label"].to_numpy()


def apart(name: str, folder: Path, n_rows: int, way: str) -> dict[str, Any]:
    """:func:`measure` in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.bench_scale", "--one", name, str(folder)]
    done = subprocess.run([*command, str(n_rows), way], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


def report(folder: Path, n_rows: int) -> None:
    make_files(folder, n_rows)
    print("| model | rows | read from | wall s | CPU s | us of CPU a row | peak MB | passes |")
    print("|---|---|---|---|---|---|---|---|")
    for name in MODELS:
        for rows in (n_rows // 10, n_rows):
            for way in ("arrays", "files", "1", "2"):
                if way == "arrays" and rows > 5_000_000:
                    continue  # what does not fit is the point
                if way.isdigit() and rows < n_rows:
                    continue
                found = apart(name, folder, rows, way)
                where = f"{way} worker(s)" if way.isdigit() else way
                print(
                    f"| {name} | {rows:,} | {where} | {found['wall']:.1f} | {found['cpu']:.1f} | "
                    f"{1e6 * found['cpu'] / rows:.2f} | {found['peak_mb']:.0f} | "
                    f"{found['passes']} |",
                    flush=True,
                )


def main(n_rows: int = 2_000_000) -> None:
    folder = os.environ.get("LACONIC_SCALE")
    if folder:
        report(Path(folder), n_rows)
        return
    with tempfile.TemporaryDirectory() as made:
        report(Path(made), n_rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        _, _, name, folder, n_rows, way = sys.argv
        print(json.dumps(measure(name, folder, int(n_rows), way)))
    else:
        main(*(int(text) for text in sys.argv[1:2]))
