"""Measure the whole command and the kernel alone, beside a plain Python loop, in one run.

Data: lines of words with random probabilities, made with a fixed seed; 8 MB of different lines, repeated to the size
that is measured (a line's number seeds its hash, so a repeated line is not the same work to the letter, but to the
amount). It is kept in GEVAL_BENCHMARK_CACHE, by default a folder in the system's temporary directory.

Numbers are written by Python's repr, as in most models' code: mostly 16 or 17 significant digits, small ones with an
exponent. Or they have a fixed number of digits after the point.

Each figure is the best of several runs. A whole command is a process from start to exit, its memory the peak that the
operating system reports for it. GEval is measured too if GEVAL_BINARY names it.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import lzma
import math
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import mmh3

from geval_py.scoring.kernel import _native, reference

CACHE = Path(os.environ.get("GEVAL_BENCHMARK_CACHE", Path(tempfile.gettempdir()) / "geval-py-benchmark"))
GEVAL = Path(sys.executable).with_name("geval")
SEED = 20261120
UNIT_BYTES = 8_000_000
PLAIN_LOOP = "plain Python loop"

Digits = int | None  # after the point; None: as repr writes a number
Kind = tuple[int, Digits]  # words a line, and how numbers are written


class Data(NamedTuple):
    """An output and its expected words on disk."""

    folder: Path
    output: Path
    size: int  # bytes of the unpacked output
    tokens: int

    @property
    def expected(self) -> Path:
        return self.folder / "expected.tsv"


LATIN = "etaoinshrdlucmfwyp"
# Words of two to eleven letters, in Chinese of two to four; every eighth Polish letter is not ASCII.
SCRIPTS = {
    "ASCII": LATIN,
    "Polish": "aieozwnrcsytkdpmljugbhaieozwnrcsytkdpmljugbh" + "łęąóżś",
    "Russian": "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъ",
    "Chinese": "".join(map(chr, range(0x4E00, 0x4E00 + 2500))),
}


def make_lexicon(chance: random.Random, letters: str = LATIN) -> list[str]:
    """Make 60,000 different words."""
    lexicon: dict[str, None] = {}
    while len(lexicon) < 60_000:
        lexicon["".join(chance.choices(letters, k=chance.randint(2, 4 if letters[0] == "一" else 11)))] = None
    return list(lexicon)


def digits_text(digits: Digits) -> str:
    """Name a way to write numbers."""
    return "repr" if digits is None else f"{digits} digits"


def written(value: float, digits: Digits) -> str:
    """Write a number."""
    return repr(value) if digits is None else f"{value:.{digits}f}"


def skewed_sample(chance: random.Random, shares: list[float], lexicon: list[str], words: int) -> list[str]:
    """Draw different words, the n-th with a share of 1/n: so lines have the frequent ones in common."""
    drawn: dict[str, None] = {}
    while len(drawn) < words:
        drawn |= dict.fromkeys(chance.choices(lexicon, cum_weights=shares, k=words))
    return list(drawn)[:words]


def make_unit(words: int, digits: Digits, *, skewed: bool = False, letters: str = LATIN) -> tuple[bytes, bytes, int]:
    """Make about 8 MB of different lines: outputs, expected words, number of lines."""
    chance = random.Random(f"{SEED} {words} {digits}")
    lexicon = make_lexicon(chance, letters)
    shares = list(accumulate(1 / n for n in range(1, len(lexicon) + 1)))
    sample = partial(skewed_sample, chance, shares) if skewed else chance.sample
    lines, expected, size = [], [], 0
    while size < UNIT_BYTES:
        weights = [chance.random() ** 3 for _ in range(words)]
        total = sum(weights) * 1.1
        listed = sample(lexicon, words)
        entries = [f"{word}:{written(w / total, digits)}" for word, w in zip(listed, weights, strict=True)]
        lines.append(f"{' '.join(entries)} :{written(1 - 1 / 1.1, digits)}\n")
        expected.append(chance.choice(lexicon) + "\n")
        size += len(lines[-1].encode())
    return "".join(lines).encode(), "".join(expected).encode(), len(lines)


def make_data(words: int, digits: Digits, megabytes: int, ending: str = "", *, skewed: bool = False) -> Data:
    """Make data of a size, or find it in the cache."""
    kind = "skewed" if skewed else "different"
    folder = CACHE / f"{words}-{kind}-words-{digits_text(digits).replace(' ', '-')}-{megabytes}-MB"
    plain = folder / "out.tsv"
    unit, expected, lines = make_unit(words, digits, skewed=skewed)
    repeats = max(1, round(megabytes * 1e6 / len(unit)))
    if not (folder / "done").exists():
        folder.mkdir(parents=True, exist_ok=True)
        with plain.open("wb") as out, (folder / "expected.tsv").open("wb") as answers:
            for _ in range(repeats):
                out.write(unit)
                answers.write(expected)
        (folder / "done").touch()
    output = plain.with_name(f"out.tsv{ending}")
    if not output.exists():
        compress(plain, output)
    return Data(folder, output, len(unit) * repeats, (words + 1) * lines * repeats)


def compress(plain: Path, output: Path) -> None:
    """Write a file compressed as its ending says."""
    data = plain.read_bytes()
    match output.suffix:
        case ".gz":
            packed = gzip.compress(data, 6)
        case ".xz":
            packed = lzma.compress(data, preset=1)
        case ".bz2":
            packed = bz2.compress(data)
        case _:
            packed = zstd_compress(data)
    output.write_bytes(packed)


def zstd_compress(data: bytes) -> bytes:
    """Compress with Zstandard."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd.compress(data)


def plain_loop(output: Path, expected: Path) -> float:
    """Score by the shortest loop that a participant would write: probabilities only, input trusted."""
    total, line = 0.0, 0
    with output.open(encoding="utf-8") as answers, expected.open(encoding="utf-8") as words:
        for text, word in zip(answers, words, strict=True):
            line += 1
            bucket = mmh3.hash(word.rstrip("\n"), line, False) & 1023
            mass = hit = rest = 0.0
            for entry in text.rstrip("\n").split(" "):
                name, _, number = entry.rpartition(":")
                value = float(number)
                mass += value
                if not name:
                    rest += value
                elif mmh3.hash(name, line, False) & 1023 == bucket:
                    hit += value
            total -= math.log((hit + rest / 1024) / mass)
    return total / line


def best(run: Callable[[], object], times: int) -> float:
    """Return the seconds of the fastest of several runs."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def run_command(words: list[str], folder: Path) -> None:
    """Run a whole command."""
    subprocess.run(words, cwd=folder, stdout=subprocess.DEVNULL, check=True)


# A process's peak counts what its parent held when it was started: so the parent is a small one.
_PEAK = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def peak_memory(words: list[str], folder: Path) -> float:
    """Run a whole command; return its peak memory in MB."""
    launcher = [sys.executable, "-I", "-S", "-c", _PEAK, *words]
    run = subprocess.run(launcher, cwd=folder, capture_output=True, text=True, check=True)
    return int(run.stdout) * (1e-6 if sys.platform == "darwin" else 1.024e-3)


def command(data: Data, *options: str) -> list[str]:
    """Return the command line that scores some data."""
    files = ["-o", data.output.name, "-e", "expected.tsv", "-m", "LogLossHashed"]
    return [str(GEVAL), *files, *options]


class Table:
    """Rows of figures, printed as they come; ratios are to the plain Python loop on the same kind of lines."""

    def __init__(self) -> None:
        self._loop: dict[Kind, float] = {}
        print(f"{'lines':18} {'what':36} {'MB/s':>8} {'ns/token':>9} {'x loop':>7} {'peak MB':>8}")

    def row(self, kind: Kind, what: str, data: Data, seconds: float, memory: float | None = None) -> float:
        speed = data.size / 1e6 / seconds
        if what == PLAIN_LOOP:
            self._loop[kind] = speed
        ratio = speed / self._loop[kind] if kind in self._loop else math.nan
        peak = "" if memory is None else f"{memory:.0f}"
        print(
            f"{kind[0]:6} w, {digits_text(kind[1]):9} {what:36} {speed:8.1f} {seconds / data.tokens * 1e9:9.1f} "
            f"{ratio:7.1f} {peak:>8}",
            flush=True,
        )
        return speed


def measure_kind(table: Table, words: int, digits: Digits, megabytes: int, times: int) -> None:
    """Measure one kind of lines: the loop, both kernels alone, and the whole command."""
    kind = (words, digits)
    small = make_data(words, digits, 16)
    large = make_data(words, digits, megabytes)
    table.row(kind, PLAIN_LOOP, small, best(lambda: plain_loop(small.output, small.expected), max(2, times // 3)))
    unit, expected, lines = make_unit(words, digits)
    block = Data(small.folder, small.output, len(unit), (words + 1) * lines)
    seconds = best(lambda: reference.bounded_losses(unit, expected, 10, 1), max(2, times // 3))
    table.row(kind, "reference kernel alone", block, seconds)
    seconds = best(lambda: _native.bounded_losses(unit, expected, 10, 1), 4 * times)
    table.row(kind, "native kernel alone, one core", block, seconds)
    for options in (["--threads", "1"], []):
        memory = peak_memory(command(large, *options), large.folder)
        seconds = best(lambda o=options: run_command(command(large, *o), large.folder), times)
        table.row(kind, f"geval {' '.join(options) or '(all cores)'}", large, seconds, memory)


def measure_compressed(table: Table, megabytes: int, times: int) -> None:
    """Measure the whole command on compressed outputs of 1,000 words and 17 digits."""
    for ending in (".gz", ".zst", ".xz"):
        data = make_data(1000, 17, megabytes, ending)
        memory = peak_memory(command(data), data.folder)
        seconds = best(lambda d=data: run_command(command(d), d.folder), times)
        table.row((1000, 17), f"geval (all cores), {ending}", data, seconds, memory)


def measure_check(megabytes: int, times: int) -> None:
    """Compare checking with scoring: a clean output, and one in which every line is bad."""
    data = make_data(1000, 17, megabytes)
    check = [str(GEVAL), "check", data.output.name, "--challenge", ".."]
    scoring = best(lambda: run_command(command(data), data.folder), times)
    checking = best(lambda: run_command(check, data.folder), times)
    size = f"{data.size / 1e6:.0f} MB"
    print(f"geval check, clean, {size}: {checking:.2f} s, {checking / scoring:.2f} x the time of scoring it")
    for words in (20, 1000):
        data = make_data(words, 17, megabytes)
        bad = data.folder / "bad.tsv"
        if not bad.exists():
            bad.write_bytes(data.output.read_bytes().replace(b" ", b" oops ", 1).replace(b"\n", b",5\n"))
        words_of_command = [str(GEVAL), "check", bad.name, "--challenge", ".."]
        start = time.perf_counter()
        subprocess.run(words_of_command, cwd=data.folder, stdout=subprocess.DEVNULL, check=False)
        seconds = time.perf_counter() - start
        print(f"geval check, every line of {words} words bad, {size}: {seconds:.1f} s", flush=True)


def measure_geval(table: Table, binary: str, megabytes: int) -> None:
    """Measure GEval itself, once."""
    data = make_data(1000, 17, megabytes)
    words = [binary, *command(data)[1:]]
    memory = peak_memory(words, data.folder)
    table.row((1000, 17), "GEval", data, best(lambda: run_command(words, data.folder), 1), memory)


def measure_scripts(times: int) -> None:
    """Compare the kernel alone on words in several scripts, in processor time, by turns."""
    units = {name: make_unit(20, None, skewed=True, letters=letters) for name, letters in SCRIPTS.items()}
    speeds = dict.fromkeys(units, 0.0)
    for _ in range(4 * times):
        for name, (unit, expected, _) in units.items():
            start = time.process_time()
            _native.bounded_losses(unit, expected, 10, 1)
            speeds[name] = max(speeds[name], len(unit) / 1e6 / (time.process_time() - start))
    for name, speed in speeds.items():
        high = sum(byte > 0x7F for byte in units[name][0]) / len(units[name][0])
        ratio = speeds["ASCII"] / speed
        print(f"native kernel alone, {name}, {high:.0%} not ASCII: {speed:.0f} MB/s, {ratio:.2f} x the time of ASCII")


def measure_growth(table: Table, sizes: list[int], times: int) -> None:
    """Show how the time of the whole command grows with the size, start-up aside."""
    empty = make_data(20, 6, 0)
    (empty.folder / "one.tsv").write_text(":1\n")
    (empty.folder / "expected.tsv").write_text("a\n")
    start_words = [str(GEVAL), "-o", "one.tsv", "-e", "expected.tsv", "-m", "LogLossHashed"]
    start = best(lambda: run_command(start_words, empty.folder), 6 * times)
    print(f"start-up (one line): {start * 1e3:.0f} ms")
    first: float | None = None
    for megabytes in sizes:
        data = make_data(1000, 17, megabytes)
        memory = peak_memory(command(data), data.folder)
        seconds = best(lambda d=data: run_command(command(d), d.folder), times if megabytes > 100 else 5 * times)
        first = first or seconds - start
        growth = f"{(seconds - start) / first:.1f} x the first's time, start-up aside"
        table.row((1000, 17), f"geval, {data.size / 1e6:.0f} MB, {seconds:.3f} s", data, seconds, memory)
        print(f"{'':18} ({growth})", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller data and fewer runs")
    quick = parser.parse_args().quick
    megabytes, times = (48, 3) if quick else (400, 9)
    print(f"{date.today()}, {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}\n")
    table = Table()
    for words in (20, 1000, 50_000):
        for digits in (None, 6, 17):
            measure_kind(table, words, digits, megabytes, times)
    measure_scripts(times)
    measure_compressed(table, megabytes, times)
    measure_check(48 if quick else 250, times)
    if binary := os.environ.get("GEVAL_BINARY"):
        measure_geval(table, binary, 48)
    measure_growth(table, [10, 100] if quick else [10, 100, 1000], times)


if __name__ == "__main__":
    main()
