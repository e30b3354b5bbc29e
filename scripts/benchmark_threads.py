"""Measure how much faster more threads are: ratios of times that were taken in turns.

Threads are measured by whole commands, from start to exit: 1, 2, 4, 8 and 16, as far as there are cores. Data: lines
of 1,000 words, drawn as in a text, with numbers as Python's repr writes them; the file is in the page cache.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from benchmark import Data, command, make_data, options, run_command

from geval_py.scoring.blocks import available_cores

WORDS = 1000
THREADS = (1, 2, 4, 8, 16)

Name = TypeVar("Name")


def best_in_turns(
    runs: Sequence[tuple[Name, Callable[[], object]]], times: int, clock: Callable[[], float] = time.perf_counter
) -> dict[Name, float]:
    """Return the seconds of each run's fastest repetition; runs take turns, so all meet the same other work."""
    seconds: dict[Name, list[float]] = {name: [] for name, _ in runs}
    for _ in range(times):
        for name, run in runs:
            start = clock()
            run()
            seconds[name].append(clock() - start)
    return {name: min(found) for name, found in seconds.items()}


def measure_threads(data: Data, times: int) -> None:
    """Compare commands with more and more threads."""
    cores = available_cores()
    counts = [count for count in THREADS if count <= max(cores, 2)]
    runs = [(n, partial(run_command, command(data, "--threads", str(n)), data.folder)) for n in counts]
    seconds = best_in_turns(runs, times)
    print(f"{'threads':>7} {'s':>7} {'MB/s':>8} {'x one thread':>13}   (whole commands, {cores} cores)")
    for threads in counts:
        speed, ratio = data.size / 1e6 / seconds[threads], seconds[1] / seconds[threads]
        print(f"{threads:7} {seconds[threads]:7.3f} {speed:8.1f} {ratio:13.2f}", flush=True)


def main() -> None:
    """Print the ratios."""
    asked = options(__doc__)
    times = 3 if asked.quick else 9
    data = make_data(WORDS, None, asked.megabytes or (100 if asked.quick else 1000), skewed=True)
    print(f"\nlines of {WORDS} words, numbers as repr writes them, {data.size / 1e6:.0f} MB, the best of {times}")
    measure_threads(data, times)


if __name__ == "__main__":
    main()
