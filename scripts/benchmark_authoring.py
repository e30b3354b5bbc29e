"""Measure what an organiser does: cutting a challenge from texts, and finding what it gives away.

Data: made-up words, drawn as in a text (the n-th most frequent word has a share of 1/n), with a fixed seed: documents
of a thousand words with the line ends of a narrow column; items of 40 words on each side of a gap. Seconds are the
clock's; those of the processor stand behind, since other programs may run on the machine.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from benchmark import CACHE, GEVAL, SEED, make_lexicon, peak_memory, run_command

DOCUMENT_WORDS, LINE_WORDS, CONTEXT = 1000, 8, 40
WORDS, QUICK_WORDS = 10_000_000, 1_000_000
TEST_ITEMS, TRAIN_ITEMS = 10_000, 100_000


def drawn_words(name: str) -> Callable[[int], list[str]]:
    """Return a function that draws a number of words."""
    words = np.array(make_lexicon(random.Random(f"{SEED} {name}")), dtype=object)
    shares = np.cumsum(1 / np.arange(1, len(words) + 1))
    generator = np.random.default_rng(SEED)

    def draw(count: int) -> list[str]:
        places = np.searchsorted(shares, generator.random(count) * shares[-1])
        return list(words[np.minimum(places, len(words) - 1)])

    return draw


def make_texts(words: int) -> Path:
    """Make documents, a line of JSON each, or find them in the cache."""
    path = CACHE / f"{words}-words.jsonl"
    if not path.exists():
        draw = drawn_words("texts")
        CACHE.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".new")
        with unfinished.open("w", encoding="utf-8") as file:
            for number in range(words // DOCUMENT_WORDS):
                text = draw(DOCUMENT_WORDS)
                lines = (" ".join(text[n : n + LINE_WORDS]) for n in range(0, len(text), LINE_WORDS))
                file.write(json.dumps({"id": f"doc-{number}", "text": "\n".join(lines)}) + "\n")
        unfinished.rename(path)
    return path


def make_items(test_items: int, train_items: int) -> Path:
    """Make a challenge whose items are drawn, or find it in the cache."""
    folder = CACHE / f"{train_items}-and-{test_items}-items"
    if not (folder / "done").exists():
        draw = drawn_words("items")
        for part, count in (("train", train_items), ("test-A", test_items)):
            (folder / part).mkdir(parents=True, exist_ok=True)
            (folder / part / "in.tsv").write_text("".join(_items(part, count, draw)), encoding="utf-8")
        (folder / "config.txt").write_text("--metric PerplexityHashed --in-header in-header.tsv\n")
        (folder / "in-header.tsv").write_text("FileId\tLeftContext\tRightContext\n")
        (folder / "done").touch()
    return folder


def _items(part: str, count: int, draw: Callable[[int], list[str]]) -> Iterator[str]:
    for number in range(count):
        words = draw(2 * CONTEXT)
        yield f"{part}-{number // 10}\t{' '.join(words[:CONTEXT])}\t{' '.join(words[CONTEXT:])}\n"


def row(what: str, words: list[str], folder: Path, clean: Callable[[], None] = lambda: None) -> None:
    """Measure one command and print its figures."""
    clean()
    memory = peak_memory(words, folder)
    clean()
    before, start = _processor_seconds(), time.perf_counter()
    run_command(words, folder)
    seconds, processor = time.perf_counter() - start, _processor_seconds() - before
    print(f"{what:56} {seconds:8.1f} s ({processor:.1f} s) {memory:8.0f} MB", flush=True)


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller data")
    quick = parser.parse_args().quick
    words = QUICK_WORDS if quick else WORDS
    texts = make_texts(words)

    def remove_challenge() -> None:
        for name in ("made", "made-answers"):
            shutil.rmtree(CACHE / name, ignore_errors=True)

    print(f"\n{'what':56} {'time':>10} (processor) {'peak':>8}")
    make = [str(GEVAL), "challenge", "make", texts.name, "-o", "made"]
    row(f"challenge make, {words:,} words", make, CACHE, remove_challenge)
    row(f"… --least-frequency 5, {words:,} words", [*make, "--least-frequency", "5"], CACHE, remove_challenge)
    remove_challenge()
    scale = 10 if quick else 1
    folder = make_items(TEST_ITEMS // scale, TRAIN_ITEMS // scale)
    what = f"challenge leaks, {TEST_ITEMS // scale:,} items against {TRAIN_ITEMS // scale:,}"
    row(what, [str(GEVAL), "challenge", "leaks", str(folder)], CACHE)


if __name__ == "__main__":
    main()
