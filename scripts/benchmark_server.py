"""Measure a board's server under load: 200 signed-in readers, and 40 teams that upload 6 MB each at a deadline.

The server and its worker run as users start them, on this machine's cores, which the load uses too; on SQLite, and
then on PostgreSQL. Readers are Debian's wrk: each reads a page of its own choice every 2 to 8 seconds for 40 seconds.
Then the same is uploaded to a new board without readers. For comparison, with nothing beside them, ``geval board
work --once`` drains a queue of the same uploads, and ``geval board scan`` scores the same outputs. It fails if an
upload is lost, double, or without its receipt.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import quantiles

from conftest import Cluster
from deployed import Process, check_invariants, send, serving, tokens
from load import LARGE, SMALL, Found, Outputs, Size, put_load
from samples import without_limits, write, write_challenge
from sqlalchemy import func, select

from geval_py.board.database.schema import Submissions
from geval_py.board.database.store import Board
from geval_py.board.operations.creation import create


def measure(folder: Path, size: Size, cluster: Cluster | None) -> None:
    """Put a load on new boards, on PostgreSQL if there is a cluster, and print what was found."""
    challenge = write_challenge(folder)
    outputs = Outputs(folder)
    contents = [outputs(number) for number in range(size.uploaders)]
    read = _loaded(_new_board(folder, "board", challenge, cluster), contents, size, folder)
    quiet = _loaded(
        _new_board(folder, "quiet", challenge, cluster), contents, Size(0, size.uploaders, size.is_large), folder
    )
    full = _new_board(folder, "full", challenge, cluster)
    with serving(full, "--workers", "0") as (port, _):
        for token, content in zip(tokens(full, map(str, range(size.uploaders))), contents, strict=True):
            send(port, token, content)
    worked = _seconds("work", full.folder, "--once")
    for number, content in enumerate(contents):
        write(folder / f"uploads/team-{number}/test-A/out.tsv", content)
    scanned = _seconds("scan", _new_board(folder, "other", challenge, cluster).folder, folder / "uploads")
    database = "SQLite" if cluster is None else "PostgreSQL"
    print(f"{database}, {size.uploaders} uploads of {len(contents[0]) / 1e6:.1f} MB")
    print(f"receipts            {len(read.receipts)} of {size.uploaders}, all valid, none lost or double")
    print(f"pages               {' '.join(f'{name} {value:g}' for name, value in read.pages.items())} (ms)")
    print(f"uploads' states     p95 {quantiles(read.looks, n=20)[-1] * 1000:.0f} ms")
    for readers, found in ((size.readers, read), (0, quiet)):
        told = f"{found.sent[0]:.1f} to {found.sent[-1]:.1f} s until the receipt, all scored"
        print(f"with {readers:3} readers    {told} {found.seconds:.1f} s after the deadline")
    for readers, name in ((size.readers, "board"), (0, "quiet")):
        print(f"with {readers:3} readers    the queue was drained in {_drained(Board.open(folder / name)):.1f} s")
    print(f"geval board work    {worked:.1f} s; {_drained(full):.1f} s from the first job to the last")
    print(f"geval board scan    {scanned:.1f} s")
    print(f"memory in MB        {' '.join(f'{kind} {most}' for kind, most in read.memory.items())}")


def _seconds(*words: object) -> float:
    """Return how long a command of ``geval board`` takes."""
    started = time.monotonic()
    Process(*words).wait()
    return time.monotonic() - started


def _loaded(board: Board, contents: Sequence[str], size: Size, folder: Path) -> Found:
    """Put a load on a board; raises SystemExit if an upload is lost."""
    found = put_load(board, contents, size, folder)
    kept = check_invariants(board, found.receipts)
    if found.states != ["scored"] * size.uploaders or kept != {"scored": size.uploaders}:
        raise SystemExit(f"uploads were lost: {found.states}, {kept}")
    return found


def _drained(board: Board) -> float:
    """Return the seconds from the start of the first job to the end of the last."""
    with board.reading() as connection:
        started, ended = connection.execute(select(func.min(Submissions.started), func.max(Submissions.ended))).one()
    return float((ended - started).total_seconds())


def _new_board(folder: Path, name: str, challenge: Path, cluster: Cluster | None) -> Board:
    """Make a board without a quota."""
    database = None if cluster is None else cluster.new_database()
    create(folder / name, challenge=challenge, answers=folder / "answers", database=database)
    return without_limits(folder / name)


def main() -> None:
    """Parse the command line, and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only see that it works: 10 readers, 4 uploads")
    size = Size(SMALL.readers, SMALL.uploaders, is_large=True) if parser.parse_args().quick else LARGE
    if not shutil.which("wrk"):
        raise SystemExit("benchmark: wrk is missing (on Debian: apt-get install wrk)")
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), size, None)
    cluster = Cluster(is_durable=True)
    try:
        with tempfile.TemporaryDirectory() as folder:
            measure(Path(folder), size, cluster)
    finally:
        cluster.stop()


if __name__ == "__main__":
    main()
