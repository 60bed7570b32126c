"""Runs of blocks on the workers of a dask cluster; their sums come back in order.

A run goes to the worker that had it in the pass before, which still holds its encoded blocks. A
worker that is lost takes nothing with it but time: its runs are read again by the others.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any
from uuid import uuid4

from laconic.data.scan.block_cache import forget

AHEAD = 4
"""Runs that may wait for each thread of the cluster."""
PATIENCE = 2.0
"""Seconds between two looks at whether the scheduler and the workers are still there."""
WORKERLESS = 60.0
"""Seconds that a fit waits for a worker when all of them are gone, or for the sums of a run."""
MOST_FORGOTTEN = 5
"""Times that a run is sent again after the scheduler forgot it."""


REUSED_BYTES = 2**25
"""Arrays up to this size keep their pages on a worker: the most that glibc grows to by itself."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


@cache
def reuse_pages() -> None:
    """Let the C library of a worker reuse the pages of arrays, as it does in other processes.

    The nanny of dask sets MALLOC_TRIM_THRESHOLD_, and with any such setting glibc no longer adapts
    the size from which on memory is asked of the system anew and zeroed, page by page: an additive
    fit of 1,000,000 rows took 12.9 CPU seconds instead of 7.9.
    """
    if sys.platform == "linux" and "MALLOC_TRIM_THRESHOLD_" in os.environ:
        with suppress(AttributeError, OSError):  # another C library than glibc
            library = ctypes.CDLL(None)
            library.mallopt(_M_MMAP_THRESHOLD, REUSED_BYTES)
            library.mallopt(_M_TRIM_THRESHOLD, 2 * REUSED_BYTES)


@dataclass(frozen=True)
class OnWorker:
    """The task of a pass as it travels: pickled once, not once a run, and read once a worker."""

    token: str
    pickled: bytes
    __name__ = "laconic_run"
    """dask writes the name of every task to its log, and prints what has none, arrays and all."""

    @staticmethod
    def of(task: Callable[[int], Any]) -> OnWorker:
        from distributed.protocol.pickle import dumps

        return OnWorker(uuid4().hex, dumps(task))  # type: ignore[no-untyped-call]

    def __call__(self, run: int) -> Any:
        reuse_pages()
        return _task_read(self)(run)

    def __hash__(self) -> int:
        return hash(self.token)


@lru_cache(maxsize=1)  # a task holds arrays: the one before is let go
def _task_read(travelled: OnWorker) -> Callable[[int], Any]:
    from distributed.protocol.pickle import loads

    task: Callable[[int], Any] = loads(travelled.pickled)  # type: ignore[no-untyped-call]
    return task


class ClusterLostError(ConnectionError):
    """The scheduler, or too many workers, went away in the middle of a pass."""


@dataclass
class _Sent:
    """A run on its way."""

    run: int
    future: Any


@dataclass
class Cluster:
    """The workers of a client. Holds the client, and is itself held by a scan alone."""

    client: Any
    opened_here: bool = False
    owner: dict[int, str] = field(default_factory=dict)

    @staticmethod
    def of(cluster: Any) -> Cluster:
        """From a ``dask.distributed.Client``, or the address of a scheduler."""
        try:
            from distributed import Client
        except ImportError as error:
            raise ImportError(
                "cluster= needs dask.distributed; install laconic[cluster]."
            ) from error
        if isinstance(cluster, str):
            try:
                return Cluster(Client(cluster, timeout=10), opened_here=True)  # type: ignore[no-untyped-call]
            except (OSError, ValueError) as error:
                raise ClusterLostError(f"No scheduler answers at {cluster}: {error}.") from error
        if isinstance(cluster, Client):
            return Cluster(cluster)
        raise TypeError(
            "cluster must be a dask.distributed.Client or the address of its scheduler, got "
            f"{type(cluster).__name__}."
        )

    def close(self, token: str) -> None:
        """Workers forget the blocks of a scan; a client that an address opened is given back."""
        if self.client.status == "running":
            # a worker that is gone has forgotten
            self.client.run(forget, token, on_error="ignore")
            if self.opened_here:
                self.client.close()

    def over(self, n_runs: int, task: Callable[[int], Any]) -> Iterator[Any]:
        waiting: deque[_Sent] = deque()
        travelling = OnWorker.of(task)
        try:
            workers = self._alive()
            ahead = AHEAD * max(1, sum(workers.values()))
            for run in range(n_runs):
                waiting.append(_Sent(run, self._submit(travelling, run, sorted(workers))))
                if len(waiting) >= ahead:
                    yield self._next(waiting, travelling)
            while waiting:
                yield self._next(waiting, travelling)
        finally:
            # an error, or a caller who stops half-way: nothing is left running
            for sent in waiting:
                if self.client.status == "running":
                    sent.future.cancel()

    def _alive(self) -> dict[str, int]:
        """Threads of each worker."""
        try:
            self.client.wait_for_workers(1, timeout=WORKERLESS)
            return dict(self.client.nthreads())
        except Exception as error:
            raise self._lost() from error

    def _submit(self, task: OnWorker, run: int, workers: list[str]) -> Any:
        if self.owner.get(run) not in workers:
            self.owner[run] = workers[run % len(workers)]
        try:
            return self.client.submit(
                task,
                run,
                key=f"laconic-run-{run}-{uuid4().hex}",
                workers=[self.owner[run]],
                allow_other_workers=True,
                pure=False,
            )
        except Exception as error:
            if self.client.status != "running":
                raise self._lost() from error
            raise

    def _next(self, waiting: deque[_Sent], task: OnWorker) -> Any:
        """The result of the run that is waited for first."""
        from distributed import KilledWorker

        alone, forgotten = 0.0, 0
        while True:
            sent = waiting[0]
            try:
                # nothing is fetched before the end is known: one fetch that is given up just as it
                # begins, and distributed attaches all later ones to it
                sent.future.exception(timeout=PATIENCE)
                result = sent.future.result(timeout=WORKERLESS)
                waiting.popleft()
                return result
            except TimeoutError as error:
                if sent.future.status == "error":  # raised by the task itself
                    raise
                alone = 0.0 if self._mend(waiting, task) else alone + PATIENCE
                if alone >= WORKERLESS:
                    raise ClusterLostError(
                        f"The cluster at {self._address()} has had no worker for "
                        f"{WORKERLESS:.0f} seconds; start some and fit again."
                    ) from error
            except CancelledError as error:
                # by the scheduler, when its only copy went with a worker
                forgotten += 1
                if self.client.status != "running" or forgotten > MOST_FORGOTTEN:
                    raise self._lost() from error
                sent.future = self._submit(task, sent.run, sorted(self._alive()))
            except KilledWorker as error:
                raise ClusterLostError(
                    f"The workers that read run {sent.run} of the rows died one after the other, "
                    "probably out of memory; give them more, or lower cache_bytes."
                ) from error

    def _mend(self, waiting: deque[_Sent], task: OnWorker) -> bool:
        """Send again the runs of workers that are gone; False when there is none to send to.

        The scheduler forgets a run that was meant for a lost worker if no other was there at that
        moment: it never offers it to those that come later.
        """
        workers = sorted(self._alive_now())
        for sent in waiting if workers else ():
            if self.owner[sent.run] not in workers and not sent.future.done():
                sent.future.cancel()
                sent.future = self._submit(task, sent.run, workers)
        return bool(workers)

    def _alive_now(self) -> dict[str, int]:
        """Threads of each worker; a clear error when the scheduler no longer answers."""
        if self.client.status != "running":
            raise self._lost()
        try:
            return dict(self.client.nthreads())
        except Exception as error:
            raise self._lost() from error

    def _lost(self) -> ClusterLostError:
        address = self._address()
        if self.opened_here:
            self.client.close(timeout=1)
        return ClusterLostError(
            f"The scheduler at {address} no longer answers; start the cluster again and fit again."
        )

    def _address(self) -> str:
        scheduler = getattr(self.client, "scheduler", None)
        return str(getattr(scheduler, "address", "its address"))
