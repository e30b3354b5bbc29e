"""Compare geval-py with its peers from PyPI, both sides in one run, and write the table into docs/speed.md.

Each figure is processor seconds, the best of several runs that take turns, of one thread; where one side is a whole
command, so is the other. Peers do what users would write with them: some do less than geval-py, which the table says.
Data are made as for scripts/benchmark.py, with a fixed seed: numbers as repr writes them, skewed words.

A package that is not installed is left out, and named. KenLM's own programs are measured too if they are on the PATH.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import date
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import mmh3
import numpy as np
from benchmark import GEVAL, SEED, Data, make_data, make_lexicon
from benchmark_analysis import make_challenge
from benchmark_models import make_data as make_text

import geval_py
from geval_py.scoring.kernel import native

PAGE = Path(__file__).parent.parent / "docs" / "speed.md"
BLOCK = re.compile(r"(<!-- measured: peers -->\n).*?(<!-- end -->)", re.DOTALL)
Run = Callable[[], object]
SHORT = 0.2  # seconds


class Row(NamedTuple):
    """A work: its name, the unit and number of what it works on, and who does it; ours is the first."""

    work: str
    unit: str
    amount: float
    runs: dict[str, Run]


def processor_seconds() -> float:
    """Return the processor time of this process and of the commands that it ran."""
    return sum(
        use.ru_utime + use.ru_stime
        for use in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def measure(runs: dict[str, Run], times: int) -> dict[str, float]:
    """Return the least processor seconds of each run; they take turns, a short run several times in each."""
    least = dict.fromkeys(runs, float("inf"))
    for _ in range(times):
        for name, run in runs.items():
            left = SHORT
            while left > 0:
                start = processor_seconds()
                run()
                seconds = processor_seconds() - start
                least[name] = min(least[name], seconds)
                left -= max(seconds, SHORT / 100)
    return least


def command(*words: str, folder: Path | None = None) -> Run:
    """Return a run of a whole command."""
    return partial(
        subprocess.run, words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True
    )


# Rows of numbers


def numpy_murmurs(words: list[str]) -> Callable[[int], np.ndarray[Any, Any]]:
    """Return a function from a seed to the hashes of words: MurmurHash3 on arrays, a block of all words at once."""
    encoded = [word.encode() for word in words]
    lengths = np.array([len(text) for text in encoded], np.uint32)
    width = int(lengths.max()) // 4 + 1
    padded = b"".join(text.ljust(4 * width, b"\0") for text in encoded)
    blocks = np.frombuffer(padded, np.uint32).reshape(len(words), width)

    def rotate(x: np.ndarray[Any, Any], by: int) -> np.ndarray[Any, Any]:
        return (x << np.uint32(by)) | (x >> np.uint32(32 - by))

    def hashes(seed: int) -> np.ndarray[Any, Any]:
        h = np.full(len(words), seed, np.uint32)
        for place in range(width):
            mixed = h ^ rotate(blocks[:, place] * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
            whole = rotate(mixed, 13) * np.uint32(5) + np.uint32(0xE6546B64)
            h = np.where(place < lengths // 4, whole, np.where(place == lengths // 4, mixed, h))
        h ^= lengths
        h = (h ^ (h >> np.uint32(16))) * np.uint32(0x85EBCA6B)
        h = (h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35)
        return h ^ (h >> np.uint32(16))

    return hashes


def numpy_losses(hashes: Callable[[int], np.ndarray[Any, Any]], rows: Any, expected: list[str]) -> list[float]:
    """Score rows of probabilities with numpy."""
    losses = []
    for line, (row, word) in enumerate(zip(rows, expected, strict=True), 1):
        hits = row[(hashes(line) & np.uint32(1023)) == mmh3.hash(word, line, False) & 1023].sum()
        total = row.sum()
        mass = hits / total if total > 1 else hits + (1 - total) / 1024
        losses.append(-float(np.log(mass)))
    return losses


def of_arrays(words: int, rows: int) -> Iterator[Row]:
    """Score arrays and dictionaries, and write them."""
    generator = np.random.default_rng(SEED)
    vocabulary = make_lexicon(random.Random(SEED))[:words]
    values = generator.random((rows, words)) ** 3
    values /= values.sum(axis=1, keepdims=True) * 1.1
    expected = [vocabulary[n] for n in generator.integers(0, words, rows)]
    metric = geval_py.Metric("PerplexityHashed", vocabulary=vocabulary, threads=1)
    hashes = numpy_murmurs(vocabulary)
    assert np.allclose(metric.losses(values, expected), numpy_losses(hashes, values, expected), rtol=1e-12)
    kind = f"of {words:,} words"
    logits = np.log(values).astype(np.float32)
    yield Row(
        f"losses of rows {kind}", "rows", rows,
        {"Metric": lambda: metric.losses(values, expected), "numpy": lambda: numpy_losses(hashes, values, expected)},
    )  # fmt: skip
    yield Row(
        f"losses of rows of logits {kind}, float32", "rows", rows,
        {"Metric": lambda: metric.losses(logits, expected, logits=True),
         "numpy": lambda: numpy_losses(hashes, softmax(logits), expected)},
    )  # fmt: skip
    few = max(1, rows // 20)
    dictionaries = [dict(zip(vocabulary, row, strict=True)) for row in values[:few].tolist()]
    yield Row(
        f"lines written {kind}", "rows", few,
        {"format_line": lambda: [geval_py.format_line(one) for one in dictionaries],
         "Python, join and repr": lambda: [" ".join([f"{w}:{p!r}" for w, p in one.items()]) for one in dictionaries]},
    )  # fmt: skip
    lines = [geval_py.format_line(one) for one in dictionaries]
    yield Row(
        f"losses of dictionaries {kind}", "rows", few,
        {"Metric": lambda: metric.losses(dictionaries, expected[:few]),
         "Python, mmh3": lambda: [python_loss(one, word, n) for n, (one, word) in
                                  enumerate(zip(dictionaries, expected, strict=False), 1)]},
    )  # fmt: skip
    yield Row(
        f"losses of lines {kind}",
        "rows",
        few,
        {"Metric": lambda: metric.losses(lines, expected[:few])},
    )


def softmax(logits: Any) -> Any:
    """Apply softmax to rows."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True), dtype=np.float64)
    return powers / powers.sum(axis=1, keepdims=True)


def python_loss(probabilities: dict[str, float], word: str, line: int) -> float:
    """Score a dictionary with a plain loop."""
    bucket = mmh3.hash(word, line, False) & 1023
    hit = sum(value for one, value in probabilities.items() if mmh3.hash(one, line, False) & 1023 == bucket)
    return -float(np.log(hit + (1 - sum(probabilities.values())) / 1024))


# Files


def of_files(megabytes: int) -> Iterator[Row]:
    """Read and score a file; the peers only add up its numbers."""
    data = make_data(20, None, megabytes)
    text, expected = data.output.read_bytes(), data.expected.read_bytes()
    runs: dict[str, Run] = {"kernel, one thread": lambda: native.bounded_losses(text, expected, 10, 1)}
    with suppress(ImportError):
        polars = importlib.import_module("polars")
        runs["polars, sums alone"] = partial(polars_sums, polars, data)
    with suppress(ImportError):
        duckdb = importlib.import_module("duckdb")
        runs["duckdb, sums alone"] = partial(duckdb_sums, duckdb, data)
    yield Row("an output of lines of 20 words", "MB", data.size / 1e6, runs)


def polars_sums(polars: Any, data: Data) -> object:
    """Add up the numbers of each line with polars."""
    lines = polars.read_csv(data.output, separator="\n", has_header=False, quote_char=None, new_columns=["line"])
    number = polars.element().str.split(":").list.last().cast(polars.Float64)
    return lines.select(polars.col("line").str.split(" ").list.eval(number).list.sum()).sum()


def duckdb_sums(duckdb: Any, data: Data) -> object:
    """Add up the numbers of each line with DuckDB."""
    session = duckdb.connect()
    session.execute("set threads = 1")
    return session.execute(
        "select sum(list_sum(list_transform(string_split(line, ' '), "
        "lambda x: string_split(x, ':')[-1]::double))) from "
        f"read_csv('{data.output}', columns = {{'line': 'varchar'}}, header = false, delim = '\n', quote = '', "
        "max_line_size = 100000000)"
    ).fetchall()


# Other metrics


def of_texts(lines: int) -> Iterator[Row]:
    """Score texts and classes."""
    chance = random.Random(SEED)
    lexicon = make_lexicon(chance)[:5000]
    shares = list(accumulate(1 / n for n in range(1, 5001)))
    expected = [" ".join(chance.choices(lexicon, cum_weights=shares, k=20)) for _ in range(lines)]
    found = [" ".join(w if chance.random() < 0.8 else chance.choice(lexicon) for w in t.split()) for t in expected]
    classes, guesses = ([text.split()[place] for text in found] for place in (0, 1))
    for name, pair, peers in (
        ("WER", (found, expected), peer("jiwer", lambda it: it.wer(expected, found))),
        ("BLEU", (found, expected), peer("sacrebleu", lambda it: it.corpus_bleu(found, [expected]))),
        ("Accuracy", (guesses, classes), peer("sklearn.metrics", lambda it: it.accuracy_score(classes, guesses))),
    ):
        ours: dict[str, Run] = {"evaluate": partial(geval_py.evaluate, *pair, metrics=name)}
        yield Row(f"{name} of texts", "lines", lines, ours | peers)


def peer(module: str, run: Callable[[Any], object]) -> dict[str, Run]:
    """Return a run of a package, if it is installed."""
    try:
        return {module.partition(".")[0]: partial(run, importlib.import_module(module))}
    except ImportError:
        print(f"{module} is not installed, and is left out", file=sys.stderr)
        return {}


# Language models


_KENLM = "import kenlm, sys; m = kenlm.Model(sys.argv[1]); print(sum(m.score(line) for line in open(sys.argv[2])))"


def of_models(tokens: int, folder: Path) -> Iterator[Row]:
    """Train a model of order 5, and compute perplexities."""
    text = str(make_text(tokens) / "text.txt")
    arpa, small, bigram = (str(folder / name) for name in ("model.arpa", "small.txt", "bigram.arpa"))
    train = command(str(GEVAL), "lm", "train", text, "-o", "5", "--arpa", arpa)
    runs: dict[str, Run] = {"geval lm train": train}
    if lmplz := shutil.which("lmplz"):
        runs["lmplz"] = command(lmplz, "-o", "5", "--text", text, "--arpa", str(folder / "peer.arpa"))
    yield Row("training, order 5", "tokens", tokens, runs)
    train()
    runs = {"geval lm perplexity": command(str(GEVAL), "lm", "perplexity", arpa, text)}
    if importlib.util.find_spec("kenlm"):
        runs["kenlm"] = command(sys.executable, "-c", _KENLM, arpa, text)
    if query := shutil.which("query"):
        runs["query"] = command("bash", "-c", '"$0" -v summary "$1" < "$2"', query, arpa, text)
    yield Row("perplexity, order 5, with reading the ARPA file", "tokens", tokens, runs)
    sentences = [line.split() for line in Path(text).read_text(encoding="utf-8").splitlines()[: tokens // 2000]]
    Path(small).write_text("".join(f"{' '.join(sentence)}\n" for sentence in sentences), encoding="utf-8")
    command(str(GEVAL), "lm", "train", small, "-o", "2", "--arpa", bigram, "--discount-fallback")()
    runs = {"geval lm perplexity": command(str(GEVAL), "lm", "perplexity", bigram, small)}
    with suppress(ImportError):
        runs["nltk, Laplace's, in memory"] = nltk_perplexity(importlib.import_module("nltk.lm"), sentences)
    yield Row("perplexity, order 2, a small text", "tokens", sum(map(len, sentences)), runs)


def nltk_perplexity(nltk: Any, sentences: list[list[str]]) -> Run:
    """Return a run that computes the perplexity of sentences by a bigram model of themselves."""
    pipeline = importlib.import_module("nltk.lm.preprocessing").padded_everygram_pipeline
    model = nltk.Laplace(2)
    model.fit(*pipeline(2, sentences))
    return partial(model.perplexity, [pair for sentence in sentences for pair in pairwise(sentence)])


# Commands


def of_commands(items: int) -> Iterator[Row]:
    """Start up, and what stands around scoring, as multiples of plain scoring."""
    small = Path(__file__).parent.parent / "challenges" / "gazette"
    geval, bare = str(GEVAL), {"bare Python": command(sys.executable, "-c", "pass")}
    for words in (("-t", "dev-0", "-o", "out-model=bigram.tsv"), ("check", "dev-0/out-model=bigram.tsv")):
        name = f"geval {words[0]}"
        yield Row(f"start of {name}", "starts", 1, {name: command(geval, *words, folder=small)} | bare)
    folder = make_challenge(items, 8)
    score = ("-t", "dev-0", "-o", "out-model=a.tsv", "--threads", "1")
    plain = {"plain scoring": command(geval, *score, folder=folder)}
    for words in (
        (*score, "-w"),
        ("compare", "-t", "dev-0", "a", "b"),
        ("report", *score[:4], "--html", str(folder / "report.html")),
        *((name, *score[:4]) for name in ("calibration", "luck", "tune")),
    ):
        name = "geval -w" if words[0] == "-t" else f"geval {words[0]}"
        yield Row(
            f"{name}, {items:,} lines of 20", "lines", items, {name: command(geval, *words, folder=folder)} | plain
        )


def rows(quick: bool, folder: Path) -> Iterator[Row]:
    """Yield all works."""
    yield from of_arrays(1000, 400 if quick else 4000)
    yield from of_arrays(50_000, 40 if quick else 200)
    yield from of_files(16 if quick else 64)
    yield from of_texts(500 if quick else 5000)
    yield from of_models(100_000 if quick else 1_000_000, folder)
    yield from of_commands(10_000 if quick else 100_000)


def figure(number: float) -> str:
    """Write a number with three significant digits."""
    return f"{float(f'{number:.3g}'):,.0f}" if number >= 100 else f"{number:.3g}"


def table(found: Iterable[tuple[Row, dict[str, float]]]) -> Iterator[str]:
    """Yield the lines of the table; a ratio says how many times as fast as a peer ours is."""
    yield "| work | ours | a second | peer | a second | ratio |"
    yield "|---|---|---|---|---|---|"
    for row, seconds in found:
        (ours, least), *peers = seconds.items()
        speed = f"{figure(row.amount / least)} {row.unit}" if least > 1e-6 else ""
        if not peers:
            yield f"| {row.work} | {ours} | {speed} | | | |"
        for name, of_peer in peers:
            ratio = f"{of_peer / least:.3g}" if least > 1e-6 else ""
            yield f"| {row.work} | {ours} | {speed} | {name} | {figure(row.amount / of_peer)} | {ratio} |"


def main() -> None:
    """Measure, print the table, and write it into the page if that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller data and fewer runs")
    parser.add_argument("--write", action="store_true", help="write the table into docs/speed.md")
    parser.add_argument("--only", default="", metavar="TEXT", help="works whose name has this text")
    arguments = parser.parse_args()
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}
    times = 3 if arguments.quick else 5
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for row in rows(arguments.quick, Path(folder)):
            if arguments.only in row.work:
                found.append((row, measure(row.runs, times)))
                print("\n".join(list(table(found[-1:]))[2:]), flush=True)
    heading = (
        f"Processor seconds, the best of {times} runs that took turns, one thread; {date.today()}, "
        f"{platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}.\n\n"
    )
    if arguments.write:
        text = PAGE.read_text(encoding="utf-8")
        block = heading + "\n".join(table(found)) + "\n"
        PAGE.write_text(BLOCK.sub(lambda match: match[1] + block + match[2], text), encoding="utf-8")


if __name__ == "__main__":
    main()
