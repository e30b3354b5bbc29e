"""Prepare jobs in threads, whose work is done by child processes, and store those that finish together.

``geval board scan``, ``geval board rescore`` and the server's worker run through this.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import takewhile
from tempfile import TemporaryDirectory, mkdtemp
from typing import Generic, TypeAlias, TypeVar

from geval_py.board.intake.sandbox import end_children

GROUP = 16  # jobs that are stored in one transaction, at most
AHEAD = 4  # for each thread, so many jobs are prepared before they are stored
GATHER_SECONDS = 0.5  # for which a finished job waits for others, to be stored together
LOOK_SECONDS = 0.5  # between two looks for new jobs

Job = TypeVar("Job")
Progress: TypeAlias = "Callable[[int, int], None]"


@dataclass(eq=False)
class _Task(Generic[Job]):
    """A job that is being prepared in its place, or is not stored yet; ``ended`` is in monotonic seconds."""

    job: Job
    place: str
    ended: float = 0.0


def run(
    take: Callable[[Sequence[Job]], Job | None],
    prepare: Callable[[Job, str], Job],
    store: Callable[[Sequence[Job]], None],
    *,
    threads: int | None = None,
    ahead: int | None = None,
    patience: float = GATHER_SECONDS,
    tick: Callable[[Sequence[Job]], None] = lambda _: None,
    stop: threading.Event | None = None,
    is_endless: bool = False,
) -> list[Job]:
    """Prepare jobs and store them until none is left, or until ``stop`` is set; return those that were left then.

    ``take`` returns the next job beside those that are at work, None if there is none now. ``prepare`` is called in a
    thread with a job and an empty folder; it returns what to store. ``store`` is called with jobs that have finished
    together, in the order in which they began; they wait for one before them at most ``patience`` seconds. ``tick``
    is called every now and then with all that are at work. After an interrupt all children are killed, and what was
    finished is stored.
    """
    threads = threads or os.cpu_count() or 1
    ahead = ahead or threads * AHEAD + GROUP
    running: dict[Future[Job], _Task[Job]] = {}

    def work(task: _Task[Job]) -> Job:
        try:
            return prepare(task.job, task.place)
        finally:
            task.ended = time.monotonic()

    def settle(finished: Sequence[Future[Job]]) -> None:
        if finished:
            store([future.result() for future in finished])
        for future in finished:
            shutil.rmtree(running.pop(future).place, ignore_errors=True)

    def at_work() -> list[Job]:
        return [task.job for task in running.values()]

    executor = ThreadPoolExecutor(threads)
    with TemporaryDirectory(prefix="geval-board-work-", ignore_cleanup_errors=True) as places:
        try:
            while stop is None or not stop.is_set():
                tick(at_work())
                while len(running) < ahead and (job := take(at_work())) is not None:
                    task = _Task(job, mkdtemp(dir=places))
                    running[executor.submit(work, task)] = task
                if running:
                    settle(_finished_together(running, patience))
                elif not is_endless:
                    break
                elif stop is not None:
                    stop.wait(LOOK_SECONDS)
            return at_work()
        except KeyboardInterrupt:
            finished = [future for future in running if future.done() and future.exception() is None]
            end_children(running)
            settle(finished)
            raise
        finally:
            executor.shutdown(wait=False, cancel_futures=True)
            end_children(running)


def _finished_together(running: dict[Future[Job], _Task[Job]], patience: float) -> list[Future[Job]]:
    """Wait for jobs that finish together, without a gap in their order; return none if there is none for a while."""
    wait(running, timeout=LOOK_SECONDS, return_when=FIRST_COMPLETED)
    since = min((task.ended for future, task in running.items() if future.done()), default=None)
    if since is None:
        return []
    wait(running, timeout=max(0.0, since + GATHER_SECONDS - time.monotonic()))
    in_order = list(takewhile(Future.done, running))
    left = since + patience - time.monotonic()
    if not in_order and left > 0:
        wait([next(iter(running))], timeout=min(left, LOOK_SECONDS))
        return list(takewhile(Future.done, running))[:GROUP]
    return (in_order or [future for future in running if future.done()])[:GROUP]
