"""Prepare jobs in threads, whose work is done by child processes, and store those that finish together.

``geval board scan``, ``geval board rescore`` and the server's worker run through this. A job that takes long makes
way for those that wait, and is prepared again, with all its time, when nothing else is left.
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
from tempfile import mkdtemp
from typing import Generic, TypeAlias, TypeVar

from geval_py.board.intake.sandbox import STOP_SECONDS, end_children
from geval_py.board.intake.workspace import workspace

GROUP = 16  # jobs that are stored in one transaction, at most
AHEAD = 4  # for each thread, so many jobs are prepared before they are stored
HASTE_SECONDS = 20  # after which a job makes way for those that wait
GATHER_SECONDS = 0.5  # for which a finished job waits for others, to be stored together
LOOK_SECONDS = 0.5  # between two looks for new jobs

Job = TypeVar("Job")
Progress: TypeAlias = "Callable[[int, int], None]"


@dataclass(eq=False)
class _Task(Generic[Job]):
    """A job that is being prepared in its place, or is not stored yet; ``ended`` is in monotonic seconds."""

    job: Job
    place: str
    is_hasty: bool
    ended: float = 0.0
    is_cut_short: bool = False


def run(
    take: Callable[[Sequence[Job]], Job | None],
    prepare: Callable[[Job, str, float | None], Job],
    store: Callable[[Sequence[Job], float | None], None],
    *,
    threads: int | None = None,
    ahead: int | None = None,
    patience: float = GATHER_SECONDS,
    in_haste: Callable[[Job], bool] = lambda _: False,
    slow_at_once: int | None = None,
    tick: Callable[[Sequence[Job]], None] = lambda _: None,
    stop: threading.Event | None = None,
    is_endless: bool = False,
) -> list[Job]:
    """Prepare jobs and store them until none is left, or until ``stop`` is set; return those that were left then.

    ``take`` returns the next job beside those that are at work, None if there is none now. ``prepare`` is called in a
    thread with a job, an empty folder and, if it is ``in_haste``, the seconds that it may take; it returns what to
    store. Jobs that took longer run when nothing else is left or, if given, ``slow_at_once`` beside the others.
    ``store`` is called with jobs that have finished together, in the order in which they began; they wait for one
    before them at most ``patience`` seconds. ``tick`` is called every now and then with all that are at work. After
    an interrupt all children are killed, and what was finished is stored, for which ``store`` may wait so many
    seconds.
    """
    threads = threads or os.cpu_count() or 1
    ahead = ahead or threads * AHEAD + GROUP
    running: dict[Future[Job], _Task[Job]] = {}
    slow: list[Job] = []

    def work(task: _Task[Job]) -> Job:
        began = time.monotonic()
        try:
            return prepare(task.job, task.place, HASTE_SECONDS if task.is_hasty else None)
        finally:
            task.ended = time.monotonic()
            task.is_cut_short = task.is_hasty and task.ended - began >= HASTE_SECONDS

    def settle(finished: Sequence[Future[Job]], seconds: float | None = None) -> None:
        ready = [one for one in finished if not running[one].is_cut_short]
        if ready:
            store([one.result() for one in ready], seconds)
        for one in finished:
            task = running.pop(one)
            shutil.rmtree(task.place, ignore_errors=True)
            if task.is_cut_short:
                slow.append(task.job)

    def at_work() -> list[Job]:
        return [*(task.job for task in running.values()), *slow]

    def start(job: Job, executor: ThreadPoolExecutor, *, is_hasty: bool) -> None:
        task = _Task(job, mkdtemp(dir=places), is_hasty)
        running[executor.submit(work, task)] = task

    executor, slow_executor = ThreadPoolExecutor(threads), ThreadPoolExecutor(slow_at_once or threads)
    with workspace() as places:
        try:
            while stop is None or not stop.is_set():
                tick(at_work())
                while len(running) < ahead:
                    hasty = sum(task.is_hasty for task in running.values())
                    if slow_at_once and slow and len(running) - hasty < slow_at_once:
                        start(slow.pop(0), slow_executor, is_hasty=False)
                    elif (job := take(at_work())) is not None:
                        start(job, executor, is_hasty=in_haste(job))
                    elif slow and not hasty and not slow_at_once:
                        start(slow.pop(0), slow_executor, is_hasty=False)
                    else:
                        break
                if running:
                    settle(_finished_together(running, patience))
                elif not is_endless:
                    break
                elif stop is not None:
                    stop.wait(LOOK_SECONDS)
            return at_work()
        except KeyboardInterrupt:
            finished = [one for one in running if one.done() and one.exception() is None]
            end_children(places, running)
            if finished:
                settle(finished, STOP_SECONDS)
            raise
        finally:
            for one in (executor, slow_executor):
                one.shutdown(wait=False, cancel_futures=True)
            end_children(places, running)


def _finished_together(running: dict[Future[Job], _Task[Job]], patience: float) -> list[Future[Job]]:
    """Wait for jobs that finish together, without a gap in their order; return none if there is none for a while."""
    wait(running, timeout=LOOK_SECONDS, return_when=FIRST_COMPLETED)
    since = min((task.ended for one, task in running.items() if one.done()), default=None)
    if since is None:
        return []
    wait(running, timeout=max(0.0, since + GATHER_SECONDS - time.monotonic()))
    in_order = list(takewhile(Future.done, running))
    left = since + patience - time.monotonic()
    if not in_order and left > 0:
        wait([next(iter(running))], timeout=min(left, LOOK_SECONDS))
        return list(takewhile(Future.done, running))[:GROUP]
    return (in_order or [one for one in running if one.done()])[:GROUP]
