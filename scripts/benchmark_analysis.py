"""Measure what explains a score: features, intervals, comparisons. Whole commands, from start to exit.

Data: challenges of made-up words, drawn as in a text (the n-th most frequent word has a share of 1/n), with a fixed
seed: file and year, a context of so many tokens, an expected word, an output of 20 words. GEval is measured too, on
the smallest, if GEVAL_BINARY names it.
"""

from __future__ import annotations

import argparse
import os
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from benchmark_scoring import CACHE, GEVAL, SEED, best, make_lexicon, peak_memory, run_command

ITEMS = 10_519  # as many as dev-0 of Challenging America has
GUESSES = 20


def make_challenge(items: int, tokens: int) -> Path:
    """Make a challenge with two outputs, or find it in the cache."""
    folder = CACHE / f"{items}-items-{tokens}-tokens-repr"
    if not (folder / "done").exists():
        split = folder / "dev-0"
        split.mkdir(parents=True, exist_ok=True)
        (folder / "config.txt").write_text("--metric PerplexityHashed --in-header in-header.tsv\n")
        (folder / "in-header.tsv").write_text("FileId\tYear\tLeftContext\tRightContext\n")
        names = ("in.tsv", "expected.tsv", "out-model=a.tsv", "out-model=b.tsv")
        files = [(split / name).open("w", encoding="utf-8") for name in names]
        for row in make_items(items, tokens):
            for file, text in zip(files, row, strict=True):
                file.write(text + "\n")
        for file in files:
            file.close()
        (folder / "done").touch()
    return folder


def make_items(items: int, tokens: int) -> Iterator[tuple[str, str, str, str]]:
    """Make items: input, expected word, two outputs."""
    chance = random.Random(f"{SEED} {items} {tokens}")
    words = make_lexicon(chance)
    shares = np.cumsum(1 / np.arange(1, len(words) + 1))
    generator = np.random.default_rng(SEED)
    for _ in range(items):
        drawn = np.searchsorted(shares, generator.random(tokens + 1 + 2 * GUESSES) * shares[-1])
        text = [words[index] for index in drawn.tolist()]
        context, expected, guesses = text[:tokens], text[tokens], text[tokens + 1 :]
        left, right = " ".join(context[: tokens // 2]), " ".join(context[tokens // 2 :])
        year = 1800 + chance.random() * 100
        outputs = (make_output(part, chance) for part in (guesses[:GUESSES], guesses[GUESSES:]))
        yield (f"file{chance.randint(1, 900)}\t{year:.3f}\t{left}\t{right}", expected, *outputs)


def make_output(words: list[str], chance: random.Random) -> str:
    """Make an output line, with numbers as ``repr`` writes them."""
    weights = [chance.random() for _ in words]
    total = sum(weights) * 1.2
    entries = (f"{word}:{weight / total!r}" for word, weight in zip(words, weights, strict=True))
    return f"{' '.join(entries)} :{1 - 1 / 1.2!r}"


def row(what: str, folder: Path, options: list[str], times: int, program: str = str(GEVAL)) -> float:
    """Measure one command and print its figures; return the seconds."""
    words = [program, *options]
    memory = peak_memory(words, folder)
    seconds = best(lambda: run_command(words, folder), times)
    print(f"{what:64} {seconds:8.2f} s {memory:8.0f} MB", flush=True)
    return seconds


ONE = ["-t", "dev-0", "-o", "out-model=a.tsv"]


def measure_features(times: int, *, quick: bool) -> None:
    """Measure the worst features."""
    for items, tokens in ((ITEMS, 80), (ITEMS, 300), *([] if quick else [(100_000, 300)])):
        folder = make_challenge(items, tokens)
        row(f"worst features, {items} items of {tokens} tokens", folder, [*ONE, "-w"], times if items == ITEMS else 1)
    folder = make_challenge(ITEMS, 80)
    kinds = ["--bigrams", "--word-shapes", "--numerical-features"]
    row(f"… {ITEMS} items of 80 tokens, {' '.join(kinds)}", folder, [*ONE, "-w", *kinds], 1)
    if binary := os.environ.get("GEVAL_BINARY"):
        row(f"… {ITEMS} items of 80 tokens, GEval", folder, [*ONE, "-w"], 1, binary)
    folder = make_challenge(1000, 80)
    for least in ("1", "5"):
        options = [*ONE, "-w", "--cartesian", "--min-frequency", least]
        row(f"worst features, 1000 items of 80 tokens, {' '.join(options[4:])}", folder, options, times)


def measure_statistics(times: int) -> None:
    """Measure intervals and comparisons, beside plain scoring."""
    folder = make_challenge(ITEMS, 80)
    scoring = row(f"scoring, {ITEMS} lines", folder, ONE, 4 * times)
    with_interval = row(f"… with --bootstrap 1000, {ITEMS} lines", folder, [*ONE, "--bootstrap", "1000"], 4 * times)
    print(f"{'… beyond the scoring':64} {with_interval - scoring:8.2f} s")
    row(f"geval compare, two outputs of {ITEMS} lines", folder, ["compare", "-t", "dev-0"], times)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller data and fewer runs")
    quick = parser.parse_args().quick
    times = 2 if quick else 5
    print(f"\n{'what':64} {'time':>10} {'peak':>11}")
    measure_features(times, quick=quick)
    measure_statistics(times)


if __name__ == "__main__":
    main()
