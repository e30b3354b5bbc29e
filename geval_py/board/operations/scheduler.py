"""Prepare jobs in threads, whose work is done by child processes, and store those that finish together.

``geval board scan``, ``geval board rescore`` and the server's worker run through this.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import takewhile
from tempfile import TemporaryDirectory, mkdtemp
from typing import TypeAlias, TypeVar

from geval_py.board.intake.sandbox import end_children

AHEAD = 4  # for each thread, so many jobs are prepared before they are stored
GATHER_SECONDS = 0.5  # for which a finished job waits for others, to be stored together
LOOK_SECONDS = 0.5  # between two looks for new jobs

Job = TypeVar("Job")
Done = TypeVar("Done")
Progress: TypeAlias = "Callable[[int, int], None]"


def run(
    take: Callable[[Sequence[Job]], Job | None],
    prepare: Callable[[Job, str], Done],
    store: Callable[[Sequence[Done]], None],
    *,
    threads: int | None = None,
    in_order: bool = False,
    tick: Callable[[Sequence[Job]], None] = lambda _: None,
    stop: threading.Event | None = None,
    is_endless: bool = False,
) -> list[Job]:
    """Prepare jobs and store them until none is left, or until ``stop`` is set; return those that were left then.

    ``take`` returns the next job beside those that are at work, None if there is none now. ``prepare`` is called in a
    thread with a job and an empty folder; it returns what to store. ``store`` is called with what finished together,
    in the order in which the jobs began; if all are to be stored ``in_order``, they wait for those before them.
    ``tick`` is called every now and then with all that are at work. After an interrupt all children are killed, and
    what was finished is stored.
    """
    threads = threads or os.cpu_count() or 1
    running: dict[Future[Done], tuple[Job, str]] = {}  # with the folder of each

    def settle(finished: Sequence[Future[Done]]) -> None:
        if finished:
            store([future.result() for future in finished])
        for future in finished:
            shutil.rmtree(running.pop(future)[1], ignore_errors=True)

    def at_work() -> list[Job]:
        return [job for job, _ in running.values()]

    executor = ThreadPoolExecutor(threads)
    with TemporaryDirectory(prefix="geval-board-work-", ignore_cleanup_errors=True) as places:
        try:
            while stop is None or not stop.is_set():
                tick(at_work())
                while len(running) < AHEAD * threads and (job := take(at_work())) is not None:
                    place = mkdtemp(dir=places)
                    running[executor.submit(prepare, job, place)] = job, place
                if running:
                    if wait(running, LOOK_SECONDS, FIRST_COMPLETED).done:
                        wait(running, GATHER_SECONDS)
                    settle(list((takewhile if in_order else filter)(Future.done, running)))
                elif not is_endless:
                    break
                elif stop:
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
