"""Fits from Parquet files: time and memory by rows, against arrays, on one and two workers.

The table has 20 numeric columns (10 of them with as many values as rows) and 5 of text, and is
generated in a folder given by LACONIC_SCALE (default: a temporary one; 20 million rows take
2.2 GB). Every measurement is a process of its own: CPU and wall seconds of ``fit`` alone, and the
largest memory of a process. With workers, the CPU seconds are those of all processes.

    python -m benchmarks scale                          a tenth of 2,000,000 rows, then all
    python -m benchmarks.bench_scale 20000000           the same for 2 and 20 million
    python -m benchmarks.bench_scale growth 20000000    files only: CPU seconds a row, 1 : 10
    python -m benchmarks.bench_scale workers 20000000   one worker against two, nothing else
    python -m benchmarks.bench_scale block              passes of the additive model, one block
    python -m benchmarks.bench_scale classes 5000000    five classes, memory against a file
    python -m benchmarks.bench_scale bytes 1000000      memory, files and workers: the same bytes
    python -m benchmarks.bench_scale kills 2000000      a worker killed at ten moments
    python -m benchmarks.bench_scale job 20000000       the main job on a cluster, and Ctrl-C

"growth" and "workers" take names of models after the number of rows.

The mode "workers" needs two cores that nothing else uses; it takes about six minutes.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

PIECE = 1_000_000
N_NUMERIC, N_TEXT = 20, 5
MODELS = ("WeightedNaiveBayes", "GrayZoneLogisticRegression", "SparseAdditiveClassifier")
MORE_MODELS = ("MinimaxClassifier", "CqBoostClassifier", "MinCqClassifier")
"""Measured from files and arrays, on the smaller table."""


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
    if name == "MinimaxClassifier":  # 5 columns: 3 bins of 25 columns are a profile for each row
        return laconic.MinimaxClassifier(n_bins=6)
    if name == "SparseAdditiveClassifier":  # no folds: they take 50,000 rows at any size
        return laconic.SparseAdditiveClassifier(pairs=10, group_penalty=0.0, random_state=0)
    if name == "MinCqClassifier":
        return laconic.votes.MinCqClassifier()
    return getattr(laconic, name)()


def columns_of(name: str) -> list[str]:
    if name == "MinimaxClassifier":
        return ["x0", "x3", "x6", "c0", "c1"]
    columns = [f"x{j}" for j in range(N_NUMERIC)]
    if name != "GrayZoneLogisticRegression":
        columns += [f"c{j}" for j in range(N_TEXT)]
    return columns


def measure(name: str, folder: str, n_rows: int, way: str) -> dict[str, Any]:
    """One fit in this process; ``way`` is files, arrays or the number of workers."""
    import polars as pl

    from laconic import scan

    paths = sorted(Path(folder).glob("rows-*.parquet"))[: -(-n_rows // PIECE)]
    columns = columns_of(name)
    model_of(name).fit(*_few(paths[0], columns))  # compiled, imported
    if way.isdigit():
        return _on_workers(name, paths, columns, int(way))
    model = model_of(name)
    if way == "arrays":
        frame = pl.concat([pl.read_parquet(path) for path in paths])
        given: tuple[Any, ...] = (frame.select(columns), frame["label"].to_numpy())
    else:
        given = (scan(paths, "label", features=columns),)
    wall, cpu = time.perf_counter(), time.process_time()
    model.fit(*given)
    return {
        "wall": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
        "peak_mb": _peak_mb(),
        "passes": getattr(given[0], "n_passes", 0),
    }


def _on_workers(name: str, paths: list[Path], columns: list[str], count: int) -> dict[str, Any]:
    from distributed import Client, LocalCluster

    from laconic import scan

    with (
        LocalCluster(
            n_workers=count, threads_per_worker=1, dashboard_address=None, processes=True
        ) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(count)
        # the workers import and compile
        model_of(name).fit(scan(paths[:1], "label", features=columns, cluster=client))
        rows = scan(paths, "label", features=columns, cluster=client)
        before = time.process_time() + sum(client.run(time.process_time).values())
        wall = time.perf_counter()
        model_of(name).fit(rows)
        wall = time.perf_counter() - wall
        after = time.process_time() + sum(client.run(time.process_time).values())
        return {
            "wall": wall,
            "cpu": after - before,
            "peak_mb": _peak_mb(),
            "worker_mb": max(client.run(_peak_mb).values()),
            "passes": rows.n_passes,
        }


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


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


HEAD = (
    "| model | rows | read from | wall s | CPU s | us of CPU a row | peak MB | of a worker "
    "| passes |\n|---|---|---|---|---|---|---|---|---|"
)


def line(name: str, folder: Path, rows: int, way: str) -> dict[str, Any]:
    """Measure and print one line."""
    found = apart(name, folder, rows, way)
    where = f"{way} worker(s)" if way.isdigit() else way
    print(
        f"| {name} | {rows:,} | {where} | {found['wall']:.1f} | {found['cpu']:.1f} | "
        f"{1e6 * found['cpu'] / rows:.2f} | {found['peak_mb']:.0f} | "
        f"{found.get('worker_mb', 0.0):.0f} | {found['passes']} |",
        flush=True,
    )
    return found


def report(folder: Path, n_rows: int) -> None:
    print(HEAD)
    for name in MODELS:
        for rows in (n_rows // 10, n_rows):
            if rows <= 5_000_000:  # what does not fit is the point
                line(name, folder, rows, "arrays")
            line(name, folder, rows, "files")
        for way in ("1", "2"):
            line(name, folder, n_rows, way)
    for name in MORE_MODELS:
        for way in ("arrays", "files"):
            line(name, folder, min(n_rows, 2_000_000), way)


def growth(folder: Path, n_rows: int, models: Sequence[str] = MODELS) -> None:
    """CPU seconds a row for a tenth of the rows, three tenths and all."""
    print(HEAD)
    said = []
    for name in models:
        few, many = n_rows // 10, n_rows
        found = {
            rows: line(name, folder, rows, "files")["cpu"] / rows
            for rows in (few, 3 * n_rows // 10, many)
        }
        ratio = found[many] / found[few]
        hours = found[many] * 1e9 / 3600
        said.append(
            f"{name}: CPU a row at {many:,} rows is {ratio:.2f} of that at {few:,}; at that rate "
            f"{hours:.1f} CPU hours for a billion rows, {100 * hours:.0f} for a hundred billion."
        )
    print("\n" + "\n".join(said))


def job(folder: Path, n_rows: int, pauses: Sequence[str] = ("20", "60")) -> None:
    """The main job from the shell on two workers: stopped after some seconds, then whole."""
    from distributed import Client, LocalCluster

    out = folder / "job"
    n_rows = PIECE * len(list(folder.glob("rows-*.parquet")))  # all that lie there
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, processes=True
        ) as cluster,
        Client(cluster) as client,
    ):
        words = [sys.executable, "-m", "laconic", "fit", str(folder / "rows-*.parquet"), "--target"]
        words += ["label", "--cluster", cluster.scheduler_address, "--cost", "fn=10"]
        words += ["--out", str(out)]
        for pause in pauses:
            with subprocess.Popen(
                words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
            ) as fit:
                time.sleep(float(pause))
                start = time.perf_counter()
                os.killpg(fit.pid, signal.SIGINT)
                code = fit.wait()
            took = time.perf_counter() - start
            time.sleep(1.0)
            left = client.run_on_scheduler(_tasks_left)
            files = sorted(path.name for path in out.iterdir()) if out.exists() else []
            print(
                f"Ctrl-C after {pause} s: ended after {took:.1f} s with exit code {code}; {left} "
                f"tasks and {len(files)} files left.",
                flush=True,
            )
        start = time.perf_counter()
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wall = time.perf_counter() - start
        own = resource.getrusage(resource.RUSAGE_CHILDREN)
        worker_mb = max(client.run(_peak_mb).values())
    print(
        f"The main job of {n_rows:,} rows: {wall / 60:.1f} minutes on the clock; the process that "
        f"fits takes {own.ru_utime + own.ru_stime:.0f} CPU seconds and {own.ru_maxrss / 1024:.0f} "
        f"MB at most, a worker {worker_mb:.0f} MB."
    )


def _tasks_left(dask_scheduler: Any) -> int:
    return sum(len(worker.processing) for worker in dask_scheduler.workers.values())


def workers(folder: Path, n_rows: int, models: Sequence[str] = MODELS[::-1]) -> None:
    """One worker against two, on an otherwise idle machine."""
    print(f"load of the machine now: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    print(HEAD)
    said = []
    for name in models:
        one, two = (line(name, folder, n_rows, way)["wall"] for way in ("1", "2"))
        said.append(f"{name}: two workers are {one / two:.2f} times as fast as one.")
    print("\n" + "\n".join(said))


def block(folder: Path, n_rows: int) -> None:
    """CPU microseconds a row of the passes of the additive model over one block."""
    import polars as pl

    from laconic.additive.large.passes import Layout, PassPoint, RowGap, SlopeSums
    from laconic.additive.terms import pair_terms, single_terms
    from laconic.core.losses import TruncatedLogistic
    from laconic.data.row_keys import least_rows
    from laconic.data.source import BLOCK_ROWS, Block
    from laconic.data.tables.axes import KnotRule, encode, learn_axes
    from laconic.data.tables.columns import Schema
    from laconic.data.value_tables import block_tables

    frame = pl.read_parquet(folder / "rows-0000.parquet", n_rows=BLOCK_ROWS)
    table, y = Schema.learn(frame.drop("label")).table, frame["label"].to_numpy().astype(np.int64)
    weight = np.ones(len(y))
    axes = learn_axes(table, weight, KnotRule(32))
    rows = encode(table, axes)
    singles = single_terms(rows, weight)
    pairs = [(2 * k, 2 * k + 1) for k in range(10)]
    layout = Layout.of(singles.extended(pair_terms(singles, pairs, weight)))
    own = Block(0, 0, len(y), (rows.index, rows.fraction.ravel(), rows.fraction_row), y, weight)
    values = 0.1 * np.random.default_rng(0).normal(size=(1, int(layout.place[-1])))
    point = PassPoint(layout, values, np.zeros(1), TruncatedLogistic(), 2, 1.0, 0.0)
    sizes = [
        len(texts or ()) if kind == "categorical" else None
        for kind, texts in zip(table.kinds, table.categories, strict=True)
    ]
    passes = {
        "keys of columns": lambda: least_rows(table),
        "values by class": lambda: block_tables(table, y, weight, sizes, 2, 2**15),
        "encoding": lambda: encode(table, axes),
        "slopes": lambda: SlopeSums(point)(own),
        "slopes, classes and curvatures": lambda: SlopeSums(point, whole=True)(own),
        "gap of the rows": lambda: RowGap(point, 1e-3, np.array([0.5, 0.5]))(own),
    }
    print(f"{layout.place[-1]} slots, {rows.nbytes / len(y):.0f} bytes a row")
    print("| pass over one block | us of CPU a row |\n|---|---|")
    for name, run in passes.items():
        run()
        spent = []
        for _ in range(3):
            start = time.process_time()
            run()
            spent.append(time.process_time() - start)
        print(f"| {name} | {1e6 * min(spent) / len(y):.2f} |", flush=True)


def classes(folder: Path, n_rows: int) -> None:
    """Five classes fitted jointly, from memory and from a file: largest difference."""
    import polars as pl

    from laconic import GrayZoneLogisticRegression, SparseAdditiveClassifier, scan

    path = folder / f"classes-{n_rows}.parquet"
    draw = np.random.default_rng(5)
    X = draw.normal(size=(n_rows, 8))
    X[:, 4:] = np.round(X[:, 4:] * 10) / 10
    F = X @ draw.normal(size=(8, 5)) * 0.6 + np.sin(2 * X[:, :1]) * draw.normal(size=5)
    label = (F + draw.gumbel(size=F.shape)).argmax(axis=1)
    columns = {f"x{j}": X[:, j] for j in range(8)}
    pl.DataFrame(columns | {"label": label}).write_parquet(path, row_group_size=524_288)
    frame = pl.read_parquet(path)
    given = frame.drop("label"), frame["label"].to_numpy()
    for name, model in {
        "gray zone": GrayZoneLogisticRegression(multi_class="multinomial", tol=1e-10),
        "additive": SparseAdditiveClassifier(pairs=3, group_penalty=0.0, random_state=0),
    }.items():
        said, spent = [], []
        for rows in (given, (scan(path, "label"),)):
            start = time.process_time()
            said.append(model.fit(*rows).predict_proba(given[0][:200_000]))
            spent.append(time.process_time() - start)
        apart = np.abs(said[0] - said[1]).max()
        print(f"{name}: {apart:.1e} apart, {spent[0]:.1f} and {spent[1]:.1f} CPU s", flush=True)


class _KillAfter:
    """Called after every run of a scan; kills a process after one of them."""

    def __init__(self, moment: int, victim: int) -> None:
        self.moment, self.victim, self.seen = moment, victim, 0

    def __call__(self, *_: int) -> None:
        self.seen += 1
        if self.seen == self.moment:
            os.kill(self.victim, signal.SIGKILL)


def kills(folder: Path, n_rows: int) -> None:
    """One of two workers killed at ten moments of a fit: bytes of the additive model each time."""
    from distributed import Client, LocalCluster

    from laconic import scan

    name = "SparseAdditiveClassifier"
    paths = sorted(folder.glob("rows-*.parquet"))[: -(-n_rows // PIECE)]
    columns, same = columns_of(name), 0
    few = _few(paths[0], columns)[0]
    plain = scan(paths, "label", features=columns)
    wanted, total = _digest(model_of(name).fit(plain), few), plain.n_passes * plain._plan.n_runs
    print(f"{plain.n_passes} passes, {total} runs: {wanted}", flush=True)
    for turn in range(10):
        moment = 1 + turn * (total - 2) // 9
        with (
            LocalCluster(
                n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
            ) as cluster,
            Client(cluster) as client,
        ):
            client.wait_for_workers(2)
            rows = scan(paths, "label", features=columns, cluster=client)
            victim = list(client.run(os.getpid).values())[turn % 2]
            rows.on_run = _KillAfter(moment, victim)
            start = time.perf_counter()
            found = _digest(model_of(name).fit(rows), few)
        same += found == wanted
        said = "the same bytes" if found == wanted else f"other bytes: {found}"
        wall = time.perf_counter() - start
        print(f"killed after run {moment} of {total}: {said}, {wall:.0f} s", flush=True)
    print(f"{same} of 10 ended in the same bytes")


def same_bytes(folder: Path, n_rows: int) -> None:
    """The additive model from memory, files, and one, two and four workers: digests."""
    import polars as pl
    from distributed import Client, LocalCluster

    from laconic import scan

    name = "SparseAdditiveClassifier"
    paths = sorted(folder.glob("rows-*.parquet"))[: -(-n_rows // PIECE)]
    columns = columns_of(name)
    few = _few(paths[0], columns)[0]
    frame = pl.concat([pl.read_parquet(path) for path in paths])
    model = model_of(name).fit(frame.select(columns), frame["label"].to_numpy())
    print("memory", _digest(model, few), flush=True)
    del frame
    for n_jobs in (1, 2):
        rows = scan(paths, "label", features=columns, n_jobs=n_jobs)
        print(f"files, n_jobs={n_jobs}", _digest(model_of(name).fit(rows), few), flush=True)
    for count in (1, 2, 4):
        with (
            LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            client.wait_for_workers(count)
            rows = scan(paths, "label", features=columns, cluster=client)
            print(f"{count} worker(s)", _digest(model_of(name).fit(rows), few), flush=True)


def _digest(model: Any, few: Any) -> str:
    """Terms, intercept, certificate and probabilities of some rows."""
    found = hashlib.sha256(model.predict_proba(few).tobytes() + model.intercept_.tobytes())
    for term in model.form_.terms:
        found.update(np.ascontiguousarray(term.values).tobytes())
    found.update(repr((model.objective_, model.duality_gap_)).encode())
    return found.hexdigest()[:16]


def main(n_rows: int = 2_000_000, task: Any = report, *models: str) -> None:
    folder = os.environ.get("LACONIC_SCALE")
    with tempfile.TemporaryDirectory() as made:
        place = Path(folder or made)
        if task is not classes:
            make_files(place, n_rows)
        task(place, n_rows, *([models] if models else []))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        _, _, name, folder, n_rows, way = sys.argv
        print(json.dumps(measure(name, folder, int(n_rows), way)))
    else:
        words = sys.argv[1:]
        tasks = {"growth": growth, "workers": workers, "block": block, "classes": classes}
        tasks |= {"kills": kills, "bytes": same_bytes, "job": job}
        chosen = tasks[words.pop(0)] if words and words[0] in tasks else report
        main(int(words.pop(0)) if words else 2_000_000, chosen, *words)
