"""The same bytes whoever does the passes: this process, files, one worker or several."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from laconic import GrayZoneLogisticRegression, SelectiveNaiveBayes, WeightedNaiveBayes, scan
from laconic.data.files import UnreadableFileError
from scan_rows import NUMBERS, in_files, payments

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

from laconic.data.cluster import Cluster, ClusterLostError  # noqa: E402

pytestmark = [
    # dask's own, when processes are killed or slow to start
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning:distributed"),
]
BLOCK = 128
MODELS = {
    "naive Bayes": (lambda: WeightedNaiveBayes(), ["amount", "noise", "kind", "gap"], "w"),
    "gray zone": (lambda: GrayZoneLogisticRegression(zone=(0.2, 0.6)), NUMBERS, "w"),
    "selection": (lambda: SelectiveNaiveBayes(n_starts=1, random_state=0), NUMBERS, None),
}


def fitted(name, source, cluster=None, on_run=None):
    make, features, weight = MODELS[name]
    rows = scan(
        source, "label", features=features, weight=weight, block_rows=BLOCK, cluster=cluster
    )
    rows.on_run = on_run
    return make().fit(rows)


def state(model):
    """Everything the fit left behind but the clocks, as bytes."""
    kept = {
        name: value.tobytes() if isinstance(value, np.ndarray) and value.dtype != object else value
        for name, value in vars(model).items()
        if name.endswith("_") and name not in ("encoder_", "schema_", "score_", "path_")
    }
    if hasattr(model, "encoder_"):
        kept["partitions"] = [
            (name, p.class_weights.tobytes(), p.cost, tuple(p.labels))
            for name, p in model.encoder_.partitions_.items()
        ]
    return pickle.dumps(sorted((name, str(value)) for name, value in kept.items()))


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
        assert state(fitted(name, folder)) == expected[name]


def test_the_comparison_sees_a_difference(frame, expected):
    other = frame.with_columns(amount=frame["amount"] * (1 + 1e-15))
    assert state(fitted("gray zone", other)) != expected["gray zone"]


@pytest.mark.parametrize("n_workers", [1, 2, 4])
def test_any_number_of_workers_agrees(n_workers, cluster, folder, expected):
    cluster.scale(n_workers)
    with distributed.Client(cluster) as client:
        client.wait_for_workers(n_workers, timeout=120)
        # the selection makes hundreds of passes: once is enough
        for name in list(MODELS)[: 3 if n_workers == 2 else 2]:
            assert state(fitted(name, folder, client)) == expected[name]


def test_predictions_on_workers(cluster, folder, frame):
    model = WeightedNaiveBayes().fit(frame.select(NUMBERS), frame["label"].to_numpy())
    with distributed.Client(cluster) as client:
        parts = list(model.predict_proba(scan(folder, cluster=client, block_rows=1_000)))
    np.testing.assert_array_equal(np.concatenate(parts), model.predict_proba(frame.select(NUMBERS)))


@pytest.mark.parametrize(
    ("name", "moment"), [("naive Bayes", (1, 2)), ("naive Bayes", (6, 1)), ("gray zone", (5, 3))]
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
