"""Handing jobs to an executor: as many at a time as its workers need, and again what failed where that makes sense."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from zardine.errors import ArrayChangedError, JobsFailedError, ReadOnlyError
from zardine.jobs.telling import Channel, InProcess, OnCluster, Piped, begin_to_tell
from zardine.settings import config, thread_count

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future
    from multiprocessing.connection import Connection

_TRIES: Final = 3
"""How often a job is tried."""
_NAMED: Final = 5
"""Failed jobs that an error names."""
_LOOK: Final = 5.0
"""Seconds after which the workers of a cluster are counted anew."""
_HEAR: Final = 0.5
"""Seconds after which it is asked what jobs under way have done."""

Call = Callable[[int], Any]
"""Does the job of this number; pickles."""


class ClusterClient(Protocol):
    """A client of Dask (``distributed.Client``)."""

    def get_executor(self, **kwargs: Any) -> Executor:
        """Return an executor of :mod:`concurrent.futures` that runs calls on the cluster."""


ExecutorLike: TypeAlias = "Executor | ClusterClient"
"""Who runs jobs: an executor of :mod:`concurrent.futures`, or a client of Dask."""


class Runner(Protocol):
    """Where jobs run."""

    is_here: bool
    """Whether in the thread that submits them, one at a time."""

    def workers(self) -> int:
        """Return how many jobs can run at a time now."""

    def submit(self, call: Call, job: int) -> Future[Any]:
        """Start a job."""

    def renew(self) -> bool:
        """Begin again after workers were lost; whether that can be."""

    @property
    def channel(self) -> Channel | None:
        """How jobs tell what they have done; ``None`` where they cannot."""


class _Given:
    """An executor of the user."""

    is_here = False

    def __init__(self, executor: Any) -> None:
        from concurrent.futures import ThreadPoolExecutor

        self._client = None
        if hasattr(executor, "get_executor"):  # a client of Dask
            self._client, executor = executor, executor.get_executor(pure=False)
        elif type(executor).__module__.startswith("distributed."):
            self._client = executor._client
        if not callable(getattr(executor, "submit", None)):
            raise TypeError(
                "executor is one of concurrent.futures, or a client of Dask, or one that it gives (get_executor()), "
                f"not {executor!r}"
            )
        self._executor = executor
        self._channel: Channel | None = None
        if self._client is not None:
            self._channel = OnCluster(self._client)
        elif isinstance(executor, ThreadPoolExecutor):
            self._channel = InProcess()
        self._options: dict[str, Any] = {} if self._client is None else {"pure": False}
        self._count, self._counted = 0, -_LOOK

    def workers(self) -> int:
        if self._client is None:
            return int(getattr(self._executor, "_max_workers", 0) or 1)
        if time.monotonic() - self._counted >= _LOOK:
            self._count, self._counted = sum(self._client.nthreads().values()), time.monotonic()
        return max(1, self._count)

    def submit(self, call: Call, job: int) -> Future[Any]:
        future: Future[Any] = self._executor.submit(call, job, **self._options)
        return future

    def renew(self) -> bool:
        return self._client is not None

    @property
    def channel(self) -> Channel | None:
        return self._channel


class _Processes:
    """Processes of our own, begun with the first job, and anew where one of them is killed. They share the cores."""

    is_here = False

    def __init__(self, count: int, module: str) -> None:
        self._count, self._module = count, module
        self._pool: Executor | None = None
        self._channel = Piped()

    def _begin(self) -> Executor:
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor

        threads = max(1, thread_count() // self._count)
        spawn = multiprocessing.get_context("spawn")
        given = threads, self._module, self._channel.writing
        pool = ProcessPoolExecutor(self._count, spawn, initializer=_begin_worker, initargs=given)
        for _ in range(self._count):  # all of them start now, not when they are first needed: a stage may have one job
            pool.submit(_begun)
        return pool

    def workers(self) -> int:
        return self._count

    def submit(self, call: Call, job: int) -> Future[Any]:
        if self._pool is None:
            self._pool = self._begin()
        return self._pool.submit(call, job)

    def renew(self) -> bool:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        self._pool = None
        return True

    @property
    def channel(self) -> Channel:
        return self._channel

    def close(self) -> None:
        """End the processes."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)


def _begun() -> None:
    """Do nothing."""


def _begin_worker(threads: int, module: str, writing: Connection) -> None:
    """Use so many threads, and end with the process that hands out jobs, however that ends.

    The ``module`` of the work is imported before the first job comes.
    """
    import multiprocessing

    config.set({"threads": threads})
    begin_to_tell(writing)
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True, name="zardine-follow").start()
    import_module(module)


class _Here:
    """This thread: a job at a time, which uses threads itself."""

    is_here = True

    def __init__(self) -> None:
        self._channel = InProcess()

    def workers(self) -> int:
        return 1

    def submit(self, call: Call, job: int) -> Future[Any]:
        from concurrent.futures import Future

        future: Future[Any] = Future()
        try:
            future.set_result(call(job))
        except Exception as error:
            future.set_exception(error)
        return future

    def renew(self) -> bool:
        return False

    @property
    def channel(self) -> Channel:
        return self._channel


_MOST_WORKERS: Final = 1024
"""Processes of one machine; a mistake in typing shall not begin millions."""


@contextmanager
def runner_of(executor: Any, workers: int | None, module: str) -> Iterator[Runner]:
    """Give where jobs run: at an ``executor``, in so many processes, or without either in this thread.

    ``module`` is that of the work, which processes need.
    """
    if executor is not None and workers is not None:
        raise ValueError("give either an executor, or the number of workers, not both")
    if workers is not None and not 1 <= workers <= _MOST_WORKERS:
        raise ValueError(f"workers is a number of processes of this machine, from 1 to {_MOST_WORKERS}, not {workers}")
    runner: _Given | _Here | _Processes
    if executor is not None:
        runner = _Given(executor)
    elif workers is None or workers == 1:
        runner = _Here()
    else:
        runner = _Processes(workers, module)
    try:
        yield runner
    finally:
        if isinstance(runner, _Processes):
            runner.close()
        if runner.channel is not None:
            runner.channel.close()


def run_jobs(
    runner: Runner,
    call_of: Callable[[int], Call],
    jobs: Iterable[int],
    stage: str,
    on_done: Callable[[int, Any], object],
) -> None:
    """Run jobs of one stage: of each what ``call_of`` gives. ``on_done`` is told what each gave, in this thread.

    After a failure that lasts no new job is begun; those under way end first. Raises
    :class:`~zardine.errors.JobsFailedError`, from the first error.
    """
    from concurrent.futures import FIRST_COMPLETED, CancelledError, wait
    from concurrent.futures import BrokenExecutor as Broken

    waiting, again = iter(jobs), deque[int]()
    running: dict[Future[Any], int] = {}
    tries: Counter[int] = Counter()
    failed: dict[int, BaseException] = {}
    lost = 0
    """How often workers were lost since a job was done."""

    def fill() -> None:
        while not failed and len(running) < 2 * runner.workers():
            job = again.popleft() if again else next(waiting, None)
            if job is None:
                return
            try:
                running[runner.submit(call_of(job), job)] = job
            except Broken:
                again.appendleft(job)
                raise
            if runner.is_here:
                return

    try:
        while True:
            broken: BaseException | None = None
            try:
                fill()
            except Broken as cause:
                broken = cause
            if not running and broken is None:
                break
            ended = wait(running, timeout=_HEAR, return_when=FIRST_COMPLETED).done if running else ()
            if runner.channel is not None:
                runner.channel.look()
            for future in ended:
                job = running.pop(future)
                error = CancelledError() if future.cancelled() else future.exception()
                if error is None:
                    lost = 0
                    on_done(job, future.result())
                elif isinstance(error, Broken):
                    broken = error
                    again.append(job)
                elif not isinstance(error, Exception):
                    raise error
                else:
                    tries[job] += 1
                    if tries[job] < _TRIES and _may_pass(error):
                        again.append(job)
                    else:
                        failed[job] = error
            if broken is not None:
                again.extend(running.values())
                running.clear()
                lost += 1
                if lost > _TRIES or not runner.renew():
                    raise JobsFailedError(
                        f"workers of stage {stage!r} were lost ({broken}): begin them anew; what is done is kept, and "
                        'the same call goes on from there. A script that uses processes needs "if __name__ == '
                        "'__main__':\" around what it does, since each of them imports it"
                    ) from broken
    finally:
        for future in running:
            future.cancel()
    if failed:
        raise _failure(failed, stage)


def _may_pass(error: Exception) -> bool:
    """Whether trying again makes sense: after a failure of a store, of the network, or of a worker."""
    if isinstance(error, (ReadOnlyError, ArrayChangedError)):
        return False
    if type(error).__module__.startswith("distributed."):
        return True
    return isinstance(error, OSError) and not isinstance(error, ValueError)


def _failure(failed: dict[int, BaseException], stage: str) -> JobsFailedError:
    first = failed[min(failed)]
    named = "".join(f"\n  - job {job}: {_line(failed[job])}" for job in sorted(failed)[:_NAMED])
    more = "" if len(failed) <= _NAMED else f"\n  - and {len(failed) - _NAMED} more"
    text = f"{len(failed)} job{'s' if len(failed) > 1 else ''} of stage {stage!r} failed; what is done is kept, and "
    error = JobsFailedError(f"{text}the same call goes on from there:{named}{more}", sorted(failed))
    error.__cause__ = first
    return error


def _line(error: BaseException) -> str:
    text = str(error) or type(error).__name__
    return text if text.startswith(type(error).__name__) else f"{type(error).__name__}: {text}"


__all__ = ["ExecutorLike", "Runner", "run_jobs", "runner_of"]
