"""The same bytes whoever does the passes: this process, files, one worker or several."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
import time
from concurrent.futures import CancelledError

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from laconic import (
    CqBoostClassifier,
    DecisionClassifier,
    GrayZoneLogisticRegression,
    LaconicClassifier,
    MinimaxClassifier,
    SparseAdditiveClassifier,
    WeightedNaiveBayes,
    scan,
)
from laconic.additive import tuning as additive_tuning
from laconic.bayes import SelectiveNaiveBayes
from laconic.data.scan.scan import Here
from laconic.data.tables.text import UnreadableFileError
from laconic.votes import MinCqClassifier
from scan_rows import COSTS, NUMBERS, in_files, payments

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

from laconic.data.scan.cluster import Cluster, ClusterLostError  # noqa: E402

pytestmark = [
    # dask's own, when processes are killed or slow to start
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning:distributed"),
]
BLOCK = 128
MIXED = ["amount", "noise", "kind", "gap"]
MODELS = {
    "naive Bayes": (lambda: WeightedNaiveBayes(), MIXED, "w"),
    "gray zone": (lambda: GrayZoneLogisticRegression(zone=(0.2, 0.6)), NUMBERS, "w"),
    "minimax": (lambda: MinimaxClassifier(n_bins=4), MIXED, "w"),
    "votes": (lambda: CqBoostClassifier(proba="calibrated"), MIXED, "w"),
    "additive": (lambda: SparseAdditiveClassifier(random_state=0), MIXED, "w"),
    "additive by sums": (
        lambda: SparseAdditiveClassifier(pairs=1, cv=2, random_state=0),
        MIXED,
        "w",
    ),
    "all voters": (lambda: MinCqClassifier(), MIXED, None),
    "decision": (
        lambda: DecisionClassifier(CqBoostClassifier(), costs=COSTS),
        MIXED,
        "w",
    ),
    "choice": (lambda: LaconicClassifier(costs=COSTS, random_state=0), MIXED, "w"),
    "selection": (lambda: SelectiveNaiveBayes(n_starts=1, random_state=0), NUMBERS, None),
}
ONCE = ("additive", "all voters", "decision", "choice", "selection")
"""Fits whose passes are those of others, or hundreds: one number of workers is enough."""


def fitted(name, source, cluster=None, on_run=None, n_jobs=None):
    make, features, weight = MODELS[name]
    given = {"features": features, "weight": weight, "block_rows": BLOCK}
    rows = scan(source, "label", **given, cluster=cluster, n_jobs=n_jobs)
    rows.on_run = on_run
    with pytest.MonkeyPatch.context() as patched:
        if name == "additive by sums":
            patched.setattr(additive_tuning, "SELECTION_ROWS", 600)
        return make().fit(rows)


def state(model):
    """Everything the fit left behind but the clocks: arrays as bytes, numbers in full."""
    return exact(model)


def exact(value):
    if isinstance(value, np.ndarray):
        held = value.tolist() if value.dtype == object else value.tobytes()
        return (str(value.dtype), value.shape, held)
    if isinstance(value, dict):
        return [(str(name), exact(part)) for name, part in value.items()]
    if isinstance(value, list | tuple):
        return [exact(part) for part in value]
    if type(value).__module__.startswith("laconic"):
        own = vars(value).items()
        clocks = ("_comparison", "path_")
        return [(name, exact(part)) for name, part in sorted(own) if name not in clocks]
    return repr(value)


@pytest.fixture(scope="module")
def frame():
    return payments(5_000)


@pytest.fixture(scope="module")
def folder(frame, tmp_path_factory):
    return in_files(frame, tmp_path_factory.mktemp("rows"), cuts=(1_000, 3_333))


@pytest.fixture(scope="module")
def expected(frame):
    return {name: state(fitted(name, frame)) for name in MODELS}


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        silence_logs=50,
    ) as made:
        yield made


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("threads", [1, 2])
def test_files_and_memory_agree_for_any_number_of_threads(name, threads, folder, expected):
    with threadpool_limits(threads):
        assert state(fitted(name, folder, n_jobs=threads)) == expected[name]


def test_the_comparison_sees_a_difference(frame, expected):
    other = frame.with_columns(amount=frame["amount"] * (1 + 1e-15))
    assert state(fitted("gray zone", other)) != expected["gray zone"]
    weights = frame.with_columns(w=frame["w"] * (1 + 1e-15))
    for name in ("naive Bayes", "minimax", "votes"):
        assert state(fitted(name, weights)) != expected[name], name


@pytest.mark.parametrize("n_workers", [1, 2, 4])
def test_any_number_of_workers_agrees(n_workers, cluster, folder, expected):
    cluster.scale(n_workers)
    with distributed.Client(cluster) as client:
        client.wait_for_workers(n_workers, timeout=120)
        for name in MODELS:
            if n_workers == 2 or name not in ONCE:
                assert state(fitted(name, folder, client)) == expected[name], name


def test_the_command_line_fits_on_a_cluster(cluster, folder, tmp_path, capsys):
    from laconic.cli import main
    from laconic.export.model_file import load

    cluster.scale(2)
    words = f"fit {folder}/*.parquet --target label --model bayes --model votes".split()
    models = []
    for name, more in (("here", []), ("there", ["--cluster", cluster.scheduler_address])):
        with pytest.raises(SystemExit) as stop:
            main([*words, "--out", str(tmp_path / name), *more])
        assert stop.value.code == 0, capsys.readouterr().err
        models.append(load(tmp_path / name / "model.json"))
    assert state(models[0].estimator_) == state(models[1].estimator_)


def test_predictions_on_workers(cluster, folder, frame):
    model = WeightedNaiveBayes().fit(frame.select(NUMBERS), frame["label"].to_numpy())
    with distributed.Client(cluster) as client:
        parts = list(model.predict_proba(scan(folder, cluster=client, block_rows=1_000)))
    np.testing.assert_array_equal(np.concatenate(parts), model.predict_proba(frame.select(NUMBERS)))


@pytest.mark.parametrize(
    ("name", "moment"),
    [
        ("naive Bayes", (1, 2)),
        ("naive Bayes", (6, 1)),
        ("gray zone", (5, 3)),
        ("additive by sums", (4, 3)),
        ("additive by sums", (7, 1)),
    ],
)
def test_a_killed_worker_changes_nothing(name, moment, cluster, folder, expected):
    cluster.scale(4)
    killed = []
    with distributed.Client(cluster) as client:
        client.wait_for_workers(2, timeout=120)

        def kill(number, done, _):
            if (number, done) == moment and not killed:
                killed.append(next(iter(client.run(os.getpid).values())))
                os.kill(killed[0], signal.SIGKILL)

        assert state(fitted(name, folder, client, kill)) == expected[name]
    assert killed


class _Future:
    """Done, or waiting for ever."""

    def __init__(self, result):
        self._result = result
        self.cancelled = False

    @property
    def status(self):
        return "pending" if self._result is None else "finished"

    def done(self):
        return self._result is not None

    def exception(self, timeout):
        if self._result is None:
            raise TimeoutError

    def result(self, timeout):
        return self._result

    def cancel(self):
        self.cancelled = True


class _Scheduler:
    """A client whose scheduler forgets the runs that were meant for a worker that is gone."""

    status = "running"

    def __init__(self, workers):
        self.workers = workers
        self.futures = []

    def nthreads(self):
        return dict.fromkeys(self.workers, 1)

    def wait_for_workers(self, n_workers, timeout):
        pass

    def submit(self, task, run, workers, **_):
        future = _Future(task(run) if workers[0] in self.workers else None)
        self.futures.append(future)
        return future


def test_runs_that_a_scheduler_forgets_are_sent_again(monkeypatch):
    monkeypatch.setattr("laconic.data.scan.cluster.PATIENCE", 0.01)
    client = _Scheduler(["a", "b"])
    engine = Cluster(client)
    found = []
    for result in engine.over(30, lambda run: run + 1):
        found.append(result)
        if len(found) == 5:
            client.workers = []  # whatever is sent from now on waits
        if len(found) == 12:
            assert any(not future.done() for future in client.futures)
            client.workers = ["c"]
    assert found == list(range(1, 31))
    assert {engine.owner[run] for run in range(20, 30)} == {"c"}
    assert sum(future.cancelled for future in client.futures) == len(client.futures) - 30


def test_runs_that_a_scheduler_cancels_are_sent_again():
    client = _Scheduler(["a", "b"])
    submit, told = client.submit, []

    def cancelling(task, run, **given):
        future = submit(task, run, **given)
        if run == 3 and len(told) < 2:
            told.append(run)
            future.result = lambda timeout: (_ for _ in ()).throw(CancelledError())
        return future

    client.submit = cancelling
    assert list(Cluster(client).over(10, lambda run: run + 1)) == list(range(1, 11))
    assert told == [3, 3]


def test_waits_that_are_given_up_leave_the_client_as_it_was(cluster, monkeypatch):
    # asked for its result with a short timeout, distributed's client stops bringing any
    monkeypatch.setattr("laconic.data.scan.cluster.PATIENCE", 0.002)

    def task(run):
        time.sleep(0.0005 * (run % 10))
        return run

    with distributed.Client(cluster) as client:
        assert list(Cluster(client).over(200, task)) == list(range(200))


def test_a_cluster_that_stays_without_workers_is_a_clear_error(monkeypatch):
    monkeypatch.setattr("laconic.data.scan.cluster.PATIENCE", 0.01)
    monkeypatch.setattr("laconic.data.scan.cluster.WORKERLESS", 0.05)
    client = _Scheduler(["a"])
    passes = Cluster(client).over(30, lambda run: run + 1)
    assert next(passes) == 1
    client.workers = []
    with pytest.raises(ClusterLostError, match=r"no worker for .* start some"):
        list(passes)


def test_an_error_on_a_worker_names_the_file(cluster, frame, tmp_path):
    in_files(frame, tmp_path)
    path = tmp_path / "part-1.parquet"
    broken = bytearray(path.read_bytes())
    broken[100:4_000] = bytes(3_900)
    path.write_bytes(bytes(broken))
    with (
        distributed.Client(cluster) as client,
        pytest.raises(UnreadableFileError, match=r"part-1\.parquet"),
    ):
        fitted("naive Bayes", tmp_path, client)


def test_a_dead_scheduler_is_a_clear_error(folder):
    with pytest.raises(ClusterLostError, match="No scheduler answers at tcp://127"):
        Cluster.of("tcp://127.0.0.1:9")
    code = (
        "from distributed import LocalCluster; import time\n"
        "if __name__ == '__main__':\n"
        "    made = LocalCluster(n_workers=1, threads_per_worker=1, processes=False,"
        " dashboard_address=None, protocol='tcp', host='127.0.0.1')\n"
        "    print(made.scheduler_address, flush=True)\n"
        "    time.sleep(600)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        address = process.stdout.readline().strip()
        start = time.monotonic()
        with dask.config.set({"distributed.comm.timeouts.connect": "5s"}):

            def kill(number, done, _):
                if (number, done) == (2, 1):
                    process.kill()

            with pytest.raises(ClusterLostError, match="no longer answers"):
                fitted("naive Bayes", folder, address, kill)
        assert time.monotonic() - start < 120
    finally:
        process.kill()
        process.stdout.close()
        process.wait()


def test_only_a_client_or_an_address_is_a_cluster():
    with pytest.raises(TypeError, match=r"dask\.distributed\.Client or the address"):
        Cluster.of(3)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a setting of glibc")
def test_workers_reuse_the_pages_of_arrays(cluster):
    import resource

    def faults(run):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(20):
            np.ones(500_000)
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    with distributed.Client(cluster) as client:
        found = list(Cluster(client).over(5, faults))
    assert found[-1] < 1_000  # 20,000 as the nanny of dask leaves it


def test_workers_forget_a_scan_that_is_closed(cluster, folder):
    from laconic.data.scan import block_cache

    cluster.scale(2)
    with distributed.Client(cluster) as client:
        client.wait_for_workers(2, timeout=120)
        rows = scan(folder, "label", features=NUMBERS, block_rows=BLOCK, cluster=client)
        GrayZoneLogisticRegression(zone=(0.2, 0.6)).fit(rows)
        token = rows._plan.token
        kept = client.run(lambda: token in block_cache._caches)
        assert any(kept.values())
        rows.close()
        kept = client.run(lambda: token in block_cache._caches)
        assert not any(kept.values())


def test_runs_side_by_side_come_in_order_and_stop_at_an_error():
    begun = []

    def task(run):
        begun.append(run)
        time.sleep(0.001 * (run % 3))
        if run == 5:
            raise ValueError("five")
        return run

    found = Here(3).over(40, task)
    assert [next(found) for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="five"):
        next(found)
    assert max(begun) < 12  # nothing is begun that nobody waits for
