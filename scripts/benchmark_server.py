"""Measure a board's server under load: 200 signed-in readers, and 40 teams that upload 6 MB each at a deadline.

The server and its worker run as users start them, on SQLite, on this machine's cores, which the load uses too.
Readers are Debian's wrk: each reads a page of its own choice every 2 to 8 seconds for 40 seconds. For comparison, the
same outputs are scored by ``geval board scan`` with nothing beside it. It fails if an upload is lost, double, or
without its receipt.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import quantiles

TESTS = Path(__file__).parent.parent / "tests/board"
sys.path[:0] = [str(TESTS), str(TESTS / "server")]

from deployed import Process, check_invariants  # noqa: E402
from load import LARGE, SMALL, Outputs, Size, put_load  # noqa: E402
from samples import without_limits, write, write_challenge  # noqa: E402

from geval_py.board.database.store import Board  # noqa: E402
from geval_py.board.operations.creation import create  # noqa: E402


def measure(folder: Path, size: Size) -> None:
    """Put a load on a new board, and print what was found."""
    challenge = write_challenge(folder)
    outputs = Outputs(folder)
    contents = [outputs(number) for number in range(size.uploaders)]
    board = new_board(folder, "board", challenge)
    found = put_load(board, contents, size, folder)
    kept = check_invariants(board, found.receipts)
    if found.states != ["scored"] * size.uploaders or kept != {"done": size.uploaders}:
        raise SystemExit(f"uploads were lost: {found.states}, {kept}")
    print(f"{size.readers} readers, {size.uploaders} uploads of {len(contents[0]) / 1e6:.1f} MB")
    print(f"receipts            {len(found.receipts)} of {size.uploaders}, all valid, none lost or double")
    print(f"pages               {' '.join(f'{name} {value:g}' for name, value in found.pages.items())} (ms)")
    print(f"uploads' states     p95 {quantiles(found.looks, n=20)[-1] * 1000:.0f} ms")
    print(f"uploads             {found.sent[0]:.1f} to {found.sent[-1]:.1f} s until the receipt")
    print(f"all scored          {found.seconds:.1f} s after the deadline")
    print(f"memory in MB        {' '.join(f'{kind} {most}' for kind, most in found.memory.items())}")
    for number, content in enumerate(contents):
        write(folder / f"uploads/team-{number}/test-A/out.tsv", content)
    other = new_board(folder, "other", challenge)
    started = time.monotonic()
    run = Process("scan", other.folder, folder / "uploads")
    run.wait()
    print(f"geval board scan    {time.monotonic() - started:.1f} s")


def new_board(folder: Path, name: str, challenge: Path) -> Board:
    """Make a board without a quota."""
    create(folder / name, challenge=challenge, answers=folder / "answers")
    return without_limits(folder / name)


def main() -> None:
    """Parse the command line, and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only see that it works: 10 readers, 4 uploads")
    size = Size(SMALL.readers, SMALL.uploaders, is_large=True) if parser.parse_args().quick else LARGE
    if not shutil.which("wrk"):
        raise SystemExit("benchmark: wrk is missing (on Debian: apt-get install wrk)")
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), size)


if __name__ == "__main__":
    main()
