"""Measure language models: whole commands, from start to exit, and the steps inside them.

Data: a text of made-up words with a fixed seed, drawn as in a text (the n-th most frequent word has a share of 1/n),
in which a word often follows as it did before, so that n-grams repeat; and a challenge of windows of it. lmplz is
measured too, on the same text, if LMPLZ_BINARY names it. Other work on the machine slows all down: the processor time
is shown beside the time that passed.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from benchmark_scoring import CACHE, GEVAL, SEED, best, make_lexicon, peak_memory, run_command

from geval_py.modelling.corpus import corpus_of
from geval_py.modelling.estimation import Estimation, estimate
from geval_py.modelling.gap_models import NgramGapModel
from geval_py.modelling.ngram_model import NgramModel
from geval_py.modelling.predicting import lines_of
from geval_py.modelling.texts import blocks_of_files
from geval_py.reading.challenge import Challenge

SENTENCE = 20  # words
WINDOW = 80
AGAIN = 0.6  # how often a word follows as it did before


def make_words(number: int) -> list[str]:
    """Make the words of a text."""
    chance = random.Random(SEED)
    words = make_lexicon(chance)
    shares = np.cumsum(1 / np.arange(1, len(words) + 1))
    drawn = np.searchsorted(shares, np.random.default_rng(SEED).random(number) * shares[-1]).tolist()
    behind: dict[int, int] = {}
    text = [drawn[0]]
    for word in drawn[1:]:
        follower = behind.setdefault(text[-1], word)
        text.append(follower if chance.random() < AGAIN else word)
    return [words[word] for word in text]


def make_data(tokens: int) -> Path:
    """Make a text and a challenge, or find them in the cache."""
    folder = CACHE / f"text-{tokens}-tokens"
    if (folder / "done").exists():
        return folder
    words = make_words(tokens)
    (folder / "train").mkdir(parents=True, exist_ok=True)
    (folder / "dev-0").mkdir(exist_ok=True)
    lines = (" ".join(words[start : start + SENTENCE]) for start in range(0, tokens, SENTENCE))
    (folder / "text.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    windows = [words[start : start + WINDOW] for start in range(0, min(tokens, 200_000) - WINDOW, WINDOW)]
    half = WINDOW // 2
    for place, name in enumerate(("train", "dev-0")):
        chosen = [window for n, window in enumerate(windows) if (n % 5 == 0) == bool(place)]
        rows = (
            f"{n}\t{' '.join(window[:half])}\t{' '.join(window[half + 1 :])}\n" for n, window in enumerate(chosen)
        )
        (folder / name / "in.tsv").write_text("".join(rows), encoding="utf-8")
        answers = "".join(f"{window[half]}\n" for window in chosen)
        (folder / name / "expected.tsv").write_text(answers, encoding="utf-8")
    (folder / "config.txt").write_text("--metric PerplexityHashed\n", encoding="utf-8")
    (folder / "done").touch()
    return folder


def step(what: str, work: Callable[[], object], items: int = 0, unit: str = "") -> None:
    """Measure a step inside of this process, in processor time, and print its figures."""
    start = time.process_time()
    work()
    seconds = time.process_time() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    speed = f"{items / seconds:12,.0f} {unit}/s" if items else ""
    print(f"{what:48} {seconds:8.2f} s {memory:8.0f} MB{speed}", flush=True)


def command(what: str, words: list[str], folder: Path, times: int) -> None:
    """Measure a whole command, and print its figures."""
    memory = peak_memory(words, folder)
    seconds = best(lambda: run_command(words, folder), times)
    print(f"{what:48} {seconds:8.2f} s {memory:8.0f} MB", flush=True)


def measure_steps(folder: Path, tokens: int) -> None:
    """Measure estimating in memory, scoring and the baseline, in processor time."""
    text = str(folder / "text.txt")
    step(
        "read and estimate, order 5, in memory",
        lambda: estimate(corpus_of(blocks_of_files([text])), Estimation()),
        tokens,
        "tokens",
    )
    if (folder / "text.arpa").exists():
        model = NgramModel.load(folder / "text.arpa")
        step("score the text", lambda: model.score_texts(text), tokens, "tokens")
    challenge = Challenge.open(folder)
    baseline = NgramGapModel(300, sides=2)
    step("train the baseline ngram-both", lambda: baseline.fit(challenge["train"]))
    items = list(challenge["dev-0"])
    step("its lines, 300 words each", lambda: list(lines_of(baseline, items)), len(items), "items")


def main() -> None:
    """Measure all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small text, once")
    quick = parser.parse_args().quick
    tokens, times = (80_000, 1) if quick else (800_000, 3)
    folder = make_data(tokens)
    print(f"a text of {tokens:,} tokens")
    train = [str(GEVAL), "lm", "train", "-o", "5", "text.txt", "--arpa", "text.arpa"]
    command("geval lm train -o 5, with the ARPA file", train, folder, times)
    if lmplz := os.environ.get("LMPLZ_BINARY"):
        words = [lmplz, "-o", "5", "-S", "1G", "--text", "text.txt", "--arpa", "lmplz.arpa"]
        command("lmplz -o 5 -S 1G, with the ARPA file", words, folder, times)
    command("geval lm perplexity", [str(GEVAL), "lm", "perplexity", "text.arpa", "text.txt"], folder, times)
    baseline = [str(GEVAL), "baseline", "-t", "dev-0", "--force"]
    command("geval baseline, training included", baseline, folder, times)
    measure_steps(folder, tokens)


if __name__ == "__main__":
    main()
