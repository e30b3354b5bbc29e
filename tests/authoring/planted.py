"""Challenges of made-up words, with leaks planted in them."""

import numpy as np

CONTEXT = 40
VOCABULARY = 30_000


class Maker:
    """Makes windows of words drawn as in a text: the n-th most frequent has a share of 1/n."""

    def __init__(self, seed=1, context=CONTEXT):
        self.chance = np.random.default_rng(seed)
        self.window = 2 * context + 1
        self.context = context
        shares = np.cumsum(1 / np.arange(1, VOCABULARY + 1))
        self._shares = shares / shares[-1]

    def windows(self, count):
        drawn = np.searchsorted(self._shares, self.chance.random((count, self.window)))
        return np.minimum(drawn, VOCABULARY - 1)

    def changed(self, windows, share):
        """The same windows, some of the words replaced by others."""
        others = self.windows(len(windows))
        return np.where(self.chance.random(windows.shape) < share, others, windows)

    def halves(self, windows):
        """The first half of each window, then other words."""
        mixed = self.windows(len(windows))
        mixed[:, : self.window // 2] = windows[:, : self.window // 2]
        return mixed


def word(number):
    """A made-up word, another for each number."""
    letters = "bcdfghklmnprstvz"
    text = ""
    for _ in range(4):
        text += letters[number % 16] + "aeiou"[number % 5]
        number //= 16
    return text


WORDS = np.array([f"{word(n)}{n}" for n in range(VOCABULARY)])


def write_part(folder, name, windows, *, documents=None, context=CONTEXT, answers=True):
    """Write a part: a document each ten items, unless documents are named."""
    part = folder / name
    part.mkdir(parents=True, exist_ok=True)
    rows = WORDS[windows]
    names = documents or [f"{name}-{n // 10}" for n in range(len(windows))]
    with (part / "in.tsv").open("w") as file:
        for document, row in zip(names, rows, strict=True):
            file.write(f"{document}\t{' '.join(row[:context])}\t{' '.join(row[context + 1 :])}\n")
    if answers:
        (part / "expected.tsv").write_text("".join(f"{row[context]}\n" for row in rows))


def write_head(folder):
    """Write what a challenge needs beside its parts."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.txt").write_text("--metric PerplexityHashed --in-header in-header.tsv\n")
    (folder / "in-header.tsv").write_text("FileId\tLeftContext\tRightContext\n")
