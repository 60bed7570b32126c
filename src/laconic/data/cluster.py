"""Runs of blocks on the workers of a dask cluster; their sums come back in order.

A run goes to the worker that had it in the pass before, which still holds its encoded blocks. A
worker that is lost takes nothing with it but time: its runs are read again by the others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from typing import Any

AHEAD = 4
"""Runs that may wait for each thread of the cluster."""
PATIENCE = 5.0
"""Seconds between two looks at whether the scheduler still answers."""


class ClusterLostError(RuntimeError):
    """The scheduler, or too many workers, went away in the middle of a pass."""


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

    def over(self, n_runs: int, task: Callable[[int], Any]) -> Iterator[Any]:
        waiting: deque[tuple[int, Any]] = deque()
        try:
            threads = self._alive()
            ahead = AHEAD * max(1, sum(threads.values()))
            for run in range(n_runs):
                waiting.append((run, self._submit(task, run, sorted(threads))))
                if len(waiting) >= ahead:
                    yield self._result(*waiting.popleft())
            while waiting:
                yield self._result(*waiting.popleft())
        finally:
            # an error, or a caller who stops half-way: nothing is left running
            for _, future in waiting:
                if self.client.status == "running":
                    future.cancel()

    def _alive(self) -> dict[str, int]:
        """Threads of each worker."""
        try:
            self.client.wait_for_workers(1, timeout=60)
            return dict(self.client.nthreads())
        except Exception as error:
            raise self._lost() from error

    def _submit(self, task: Callable[[int], Any], run: int, workers: list[str]) -> Any:
        if self.owner.get(run) not in workers:
            self.owner[run] = workers[run % len(workers)]
        try:
            return self.client.submit(
                task, run, workers=[self.owner[run]], allow_other_workers=True, pure=False
            )
        except Exception as error:
            if self.client.status != "running":
                raise self._lost() from error
            raise

    def _result(self, run: int, future: Any) -> Any:
        from distributed import KilledWorker

        while True:
            try:
                return future.result(timeout=PATIENCE)
            except TimeoutError as error:
                if not self._answers():
                    raise self._lost() from error
            except CancelledError as error:
                raise self._lost() from error
            except KilledWorker as error:
                raise ClusterLostError(
                    f"The workers that read run {run} of the rows died one after the other, "
                    "probably out of memory; give them more, or lower cache_bytes."
                ) from error

    def _answers(self) -> bool:
        if self.client.status != "running":
            return False
        try:
            self.client.nthreads()
        except Exception:
            return False
        return True

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
