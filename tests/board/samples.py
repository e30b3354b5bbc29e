"""A small challenge and outputs for it, the same each time."""

import itertools
import random
from datetime import UTC, datetime

NOW = datetime(2027, 1, 10, 12, tzinfo=UTC)
LINES = 60
WORDS = tuple(f"word{number}" for number in range(30))


def words_of(test):
    """The hidden words of a test set, the same each time."""
    return random.Random(test).choices(WORDS, k=LINES)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def write_set(folder, test, *, answers):
    write(folder / test / "in.tsv", "".join(f"left {n}\tright {n}\n" for n in range(LINES)))
    write(answers / test / "expected.tsv", "".join(f"{word}\n" for word in words_of(test)))


def output(test, skill, seed=0, lines=LINES):
    """The text of an output: to the right word it gives ``skill``, more or less (0: nothing at all, so infinity)."""
    chance = random.Random(f"{test} {seed}")
    shares = [min(0.98, max(0.0, skill * chance.uniform(0.5, 1.5))) for _ in range(LINES)]
    pairs = itertools.islice(zip(words_of(test), shares, strict=True), lines)
    return "".join(f"{word}:{share:.4f} :{0 if skill == 0 else 1 - share:.4f}\n" for word, share in pairs)
