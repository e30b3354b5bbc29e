"""Measure a board: scanning, adding, showing, building the site. Whole commands, from start to exit.

Data: 200 submissions of 10,519 lines with 20 words a line, made with a fixed seed; each gives the right word a share
of its own. Then, by copying rows, a board of 10,000 submissions of the same 200 submitters, 50 of each, whose scores
differ from line to line of the table. Memory is the peak of the largest process; the processor time shows what
a command costs on a machine that has other work to do.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from array import array
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from benchmark_scoring import CACHE, GEVAL, SEED, make_lexicon, run_command

from geval_py.board.submission import pack, unpack

LINES = 10_519  # as many as dev-0 of Challenging America has
WORDS = 20
SUBMITTERS = 200
STORED = 10_000
MORE = 3  # submissions that are added one by one
START = datetime(2025, 11, 1, 12, tzinfo=UTC)
Row = dict[str, Any]
CONFIG = "--metric PerplexityHashed --metric LikelihoodHashed\n"


def make_submissions(submitters: int) -> Path:
    """Make a challenge, its answers, and submissions to scan and to add, or find them in the cache."""
    folder = CACHE / f"board-{submitters}-of-{LINES}-lines"
    if not (folder / "done").exists():
        shutil.rmtree(folder, ignore_errors=True)
        chance = random.Random(f"{SEED} board {submitters}")
        words = make_lexicon(chance)
        expected = [chance.choice(words[:20_000]) for _ in range(LINES)]
        rests = list(islice(other_words(words[20_000:], chance), 4 * LINES))
        write_challenge(folder, expected)
        for number in range(submitters + MORE):
            place = folder / ("uploads" if number < submitters else "more") / f"team-{number:03}" / "test-A"
            write_output(place, expected, rests, random.Random(f"{SEED} output {number}"))
        (folder / "done").touch()
    return folder


def other_words(words: list[str], chance: random.Random) -> Iterator[str]:
    """Yield a line's entries for wrong words, whose probabilities sum to 0.5."""
    while True:
        weights = [chance.random() for _ in range(WORDS - 1)]
        total = 2 * sum(weights)
        entries = zip(chance.sample(words, WORDS - 1), weights, strict=True)
        yield " ".join(f"{word}:{weight / total:.6f}" for word, weight in entries)


def write_challenge(folder: Path, expected: Sequence[str]) -> None:
    """Write a challenge with a test set whose answers are in a folder of their own."""
    for name in ("challenge", "answers"):
        (folder / name / "test-A").mkdir(parents=True)
    (folder / "challenge/README.md").write_text("# Words of a gap\n\nA word is missing.\n")
    (folder / "challenge/config.txt").write_text(CONFIG)
    (folder / "challenge/test-A/in.tsv").write_text("".join(f"left {n}\tright {n}\n" for n in range(LINES)))
    (folder / "answers/test-A/expected.tsv").write_text("".join(f"{word}\n" for word in expected))


def write_output(place: Path, expected: Sequence[str], rests: Sequence[str], chance: random.Random) -> None:
    """Write the output of a submission, of random quality."""
    place.mkdir(parents=True)
    skill = chance.uniform(0.05, 0.45)
    with (place / "out.tsv").open("w", encoding="utf-8") as file:
        for word in expected:
            share = skill * chance.random()
            file.write(f"{word}:{share:.6f} {chance.choice(rests)} :{0.5 - share:.6f}\n")


# A process's peak counts what its parent held when it was started: so the parent is a small one.
_MEASURE = """
import resource, subprocess, sys, time
started = time.perf_counter()
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
seconds, used = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
print(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss)
"""


class Measured(NamedTuple):
    """Seconds from start to exit, processor seconds, and the peak memory in MB."""

    seconds: float
    processors: float
    memory: float


def measured(words: Sequence[str], folder: Path) -> Measured:
    """Run a whole command of a board."""
    launcher = [sys.executable, "-I", "-S", "-c", _MEASURE, str(GEVAL), "board", *words]
    run = subprocess.run(launcher, cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
    seconds, processors, peak = map(float, run.stdout.split())
    return Measured(seconds, processors, peak * (1e-6 if sys.platform == "darwin" else 1.024e-3))


class Figures:
    """Rows of figures, printed as they come, each with its limit; counts the figures above their limits."""

    def __init__(self, *, bound: bool) -> None:
        self._bound, self.above = bound, 0
        print(f"\n{'what':58} {'figure':>10} {'at most':>10} {'processors':>11} {'peak':>10}")

    def row(self, what: str, figure: float, most: float, unit: str, more: str = "") -> None:
        """Print a figure."""
        is_above = self._bound and figure > most
        self.above += is_above
        print(f"{what:58} {figure:7.2f} {unit:2} {most:7.1f} {unit:2} {more}{'  ABOVE' * is_above}", flush=True)

    def command(self, what: str, words: Sequence[str], folder: Path, most: float, times: int = 1) -> None:
        """Measure a command: the fastest of several runs."""
        one = min(measured(words, folder) for _ in range(times))
        self.row(what, one.seconds, most, "s", f"{one.processors:9.2f} s {one.memory:7.0f} MB")


def measure_stored(figures: Figures, folder: Path, submitters: int) -> Path:
    """Measure a board that is filled submission by submission; return its folder."""
    board = folder / "board"
    shutil.rmtree(board, ignore_errors=True)
    shutil.rmtree(folder / "site", ignore_errors=True)
    make = ["board", "init", str(board), "--challenge", "challenge", "--answers", "answers"]
    run_command([str(GEVAL), *make], folder)
    of = f"{submitters} submissions of {LINES} lines"
    figures.command(f"scan, {of}", ["scan", "board", "uploads"], folder, 90 * submitters / SUBMITTERS)
    for place in sorted((folder / "more").iterdir()):
        figures.command("… one more by add", ["add", "board", f"more/{place.name}"], folder, 2)
    figures.command("show", ["show", "board"], folder, 0.8, times=7)
    figures.command("site", ["site", "board", "-o", "site"], folder, 60)
    largest(figures, folder / "site")
    return board


def largest(figures: Figures, site: Path) -> None:
    """Show how large the largest page is."""
    page = max(site.rglob("*.html"), key=lambda path: path.stat().st_size)
    name = page.relative_to(site).as_posix()
    figures.row(f"… its largest page, {name}", page.stat().st_size / 1000, 500, "kB")


def measure_many(figures: Figures, folder: Path, board: Path, stored: int) -> None:
    """Measure a board of many submissions."""
    many = folder / "many"
    shutil.rmtree(many, ignore_errors=True)
    shutil.rmtree(folder / "many-site", ignore_errors=True)
    shutil.copytree(board, many)
    copy_rows(many / "board.sqlite", stored)
    figures.command(f"show, {stored} submissions", ["show", "many"], folder, 1.5, times=5)
    figures.command(f"show --by submission, {stored} submissions", ["show", "many", "--by", "submission"], folder, 9)
    figures.command(f"site, {stored} submissions", ["site", "many", "-o", "many-site"], folder, 300)
    largest(figures, folder / "many-site")


def copy_rows(database: Path, stored: int) -> None:
    """Copy the submissions of a board, with all that belongs to them, until there are so many.

    A copy arrived an hour later, is of another content, and a little worse than what it is a copy of.
    """
    with sqlite3.connect(database) as connection:
        columns = {table: names_of(connection, table) for table in ("submissions", "files", "outputs", "evaluations")}
        originals = rows_of(connection, "submissions", columns["submissions"])
        for number in range(stored - len(originals)):
            original = originals[number % len(originals)]
            copy_submission(connection, columns, original, 1 + number // len(originals))
    os.sync()


def names_of(connection: sqlite3.Connection, table: str) -> list[str]:
    """Return the names of a table's columns."""
    return [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]


def rows_of(
    connection: sqlite3.Connection, table: str, names: list[str], where: str = "1"
) -> list[dict[str, object]]:
    """Return rows of a table as dictionaries by column."""
    rows = connection.execute(f"SELECT {', '.join(names)} FROM {table} WHERE {where} ORDER BY id")
    return [dict(zip(names, row, strict=True)) for row in rows]


def insert(connection: sqlite3.Connection, table: str, row: Row) -> int:
    """Insert a row with a new id; return the id."""
    kept = {name: value for name, value in row.items() if name != "id"}
    marks = ", ".join("?" * len(kept))
    statement = f"INSERT INTO {table} ({', '.join(kept)}) VALUES ({marks})"
    return connection.execute(statement, list(kept.values())).lastrowid or 0


def copy_submission(connection: sqlite3.Connection, columns: dict[str, list[str]], original: Row, nth: int) -> None:
    """Copy a submission, its file, its output and its evaluations."""
    digest = sha256(f"{original['code']} {nth}".encode()).hexdigest()
    arrived = (START + timedelta(hours=nth)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    new = original | {"code": digest[:12], "digest": digest, "arrived": arrived}
    submission = insert(connection, "submissions", new)
    for file in rows_of(connection, "files", columns["files"], f"submission_id = {original['id']}"):
        new_file = insert(connection, "files", file | {"submission_id": submission, "sha256": digest})
        for output in rows_of(connection, "outputs", columns["outputs"], f"file_id = {file['id']}"):
            own = output | {"submission_id": submission, "file_id": new_file}
            copy_scores(connection, columns, int(str(output["id"])), insert(connection, "outputs", own), digest, nth)


def copy_scores(
    connection: sqlite3.Connection, columns: dict[str, list[str]], old: int, new: int, digest: str, nth: int
) -> None:
    """Copy the evaluations of an output, each copy with slightly worse scores."""
    scored = connection.execute("SELECT metric, evaluation_id FROM scores WHERE output_id = ?", [old]).fetchall()
    for metric, evaluation in scored:
        (row,) = rows_of(connection, "evaluations", columns["evaluations"], f"id = {evaluation}")
        copied = insert(connection, "evaluations", worse(row, nth) | {"output_sha256": digest})
        connection.execute("INSERT INTO scores VALUES (?, ?, ?)", [new, metric, copied])


def worse(row: Row, nth: int) -> Row:
    """Make an evaluation a little worse: a perplexity higher, a likelihood lower, and the losses with it."""
    factor = 1 + 0.001 * nth
    factor = factor if row["metric"] == "PerplexityHashed" else 1 / factor
    figures = {name: row[name] * factor for name in ("score", "low", "high") if isinstance(row[name], float)}
    losses = row["losses"]
    return (
        row
        | figures
        | ({"losses": moved(losses, row["lines"], math.log(factor))} if isinstance(losses, bytes) else {})
    )


def moved(losses: bytes, lines: int, by: float) -> bytes:
    """Add so many nats to each loss."""
    return pack([array("d", (loss + by for loss in column)) for column in unpack(losses, lines)])


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer submissions")
    quick = parser.parse_args().quick
    submitters, stored = (20, 1000) if quick else (SUBMITTERS, STORED)
    folder = make_submissions(submitters)
    figures = Figures(bound=not quick)
    board = measure_stored(figures, folder, submitters)
    measure_many(figures, folder, board, stored)
    if figures.above:
        raise SystemExit(f"benchmark: {figures.above} figures are above what they may be")


if __name__ == "__main__":
    main()
