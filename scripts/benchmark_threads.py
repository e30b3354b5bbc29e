"""Measure how much faster more threads are, and the workers of a cluster: ratios of times that were taken in turns.

Threads are measured by whole commands, from start to exit: 1, 2, 4, 8 and 16, as far as there are cores. Workers are
measured inside Python, on a cluster on this machine that has started, beside as many threads. Data: lines of 1,000
words, drawn as in a text, with numbers as Python's repr writes them; the file is in the page cache.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from benchmark import Data, command, make_data, options, run_command

from geval_py.reading.config import Task
from geval_py.reading.lines import LineReader
from geval_py.reading.outputs import output_at
from geval_py.reading.splits import Split
from geval_py.scoring import cluster as cluster_module
from geval_py.scoring.blocks import Block, Threads, available_cores
from geval_py.scoring.cluster import LOCAL, Cluster, Piece, count, opened_cluster, work_on
from geval_py.scoring.evaluate import ScoreWork, column_of, evaluate_output, find_metric, select_schemes

WORDS = 1000
THREADS = (1, 2, 4, 8, 16)
WORKERS = 2

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


def measure_cluster(data: Data, times: int) -> None:
    """Compare workers with as many threads, start-up aside."""
    output = output_at(str(data.output))
    split = Split(name="", expected=str(data.expected), outputs=(output,), input=None, in_header=(), out_header=())
    schemes = select_schemes(Task(metrics=("LogLossHashed",)))
    with opened_cluster(LOCAL, WORKERS) as client:
        cluster = Cluster.of(client)
        runs = [
            ("threads", lambda: evaluate_output(split, output, schemes, frozenset(), workers=Threads(WORKERS))),
            ("workers", lambda: evaluate_output(split, output, schemes, frozenset(), workers=cluster)),
        ]
        seconds = best_in_turns(runs, times)
    ratio = seconds["workers"] / seconds["threads"]
    print(
        f"--cluster local, start-up aside: {WORKERS} workers {seconds['workers']:.3f} s, "
        f"{WORKERS} threads {seconds['threads']:.3f} s, {ratio:.2f} x the time",
        flush=True,
    )


def measure_shares(data: Data, times: int) -> None:
    """Measure the terms of docs/cluster.md in processor time: a core's work on each byte, and a share's cost."""
    path = str(data.output)
    size = os.path.getsize(path)
    piece = Piece(path=path, name=path, start=0, stop=size, first=0, size=size, header=None, position=size)
    work = ScoreWork((column_of(find_metric("LogLossHashed"), frozenset()),), ((),), str(data.expected))
    with LineReader(str(data.expected)) as expected:
        words = expected.take(*count([piece]))
    lines = words.count(b"\n")
    block = Block(
        first_line=1, lines=lines, outputs=b"", expected=words, known=lines, part=path, lines_before=0, position=size
    )
    runs = [
        ("counting", lambda: count([piece])),
        ("scoring", lambda: work_on([piece], [block], work, None)),
    ]
    for name, seconds in best_in_turns(runs, times, time.process_time).items():
        print(f"{name}, one core: {size / 1e9 / seconds:.2f} GB/s", flush=True)


def measure_many_workers(times: int) -> None:
    """Measure what 1,000 workers cost the client and the scheduler: as many tiny shares, on two real workers."""
    with TemporaryDirectory() as folder:
        output, answers = Path(folder, "out.tsv"), Path(folder, "expected.tsv")
        output.write_text("".join(f"a:0.{n % 50 + 1} the:0.25 :0.25\n" for n in range(10_000)))
        answers.write_text("a\nthe\nx\nof\n" * 2500)
        one = output_at(str(output))
        split = Split(name="", expected=str(answers), outputs=(one,), input=None, in_header=(), out_header=())
        schemes = select_schemes(Task(metrics=("LogLossHashed",)))
        cluster_module.MIN_SHARE_BYTES = 1
        with opened_cluster(LOCAL, WORKERS) as client:
            many = replace(Cluster.of(client), threads=1000)
            runs = [("share", lambda: evaluate_output(split, one, schemes, frozenset(), workers=many))]
            seconds = best_in_turns(runs, times, time.process_time)["share"]
    print(f"1,000 workers: {seconds:.1f} s of the process that is client and scheduler")


def main() -> None:
    """Print the ratios."""
    asked = options(__doc__)
    times = 3 if asked.quick else 9
    data = make_data(WORDS, None, asked.megabytes or (100 if asked.quick else 1000), skewed=True)
    print(f"\nlines of {WORDS} words, numbers as repr writes them, {data.size / 1e6:.0f} MB, the best of {times}")
    measure_threads(data, times)
    measure_cluster(data, times)
    measure_shares(data, times)
    measure_many_workers(times)


if __name__ == "__main__":
    main()
