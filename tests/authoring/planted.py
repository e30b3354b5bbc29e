"""Challenges of made-up words, with leaks planted in them."""

import numpy as np

from geval_py.authoring.leaks import find_leaks

CONTEXT, SMALL = 40, 20
ITEMS = {"train": 300, "dev-0": 120, "test-A": 150}  # of small windows; a document each ten
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
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.txt").write_text("--metric PerplexityHashed --in-header in-header.tsv\n")
    (folder / "in-header.tsv").write_text("FileId\tLeftContext\tRightContext\n")


def found(folder, **settings):
    report = find_leaks(folder, **settings)
    return {(p.path.removeprefix(f"{folder}/"), p.rule.code): p.count for p in report.problems}


class Planted:
    """A challenge whose hidden answers are in a folder of their own, and the windows that it is made of.

    Half of the answers are frequent words, as in a text; neighbours are drawn evenly, so that none is a phrase.
    """

    def __init__(self, path, seed):
        maker, chance = Maker(seed, SMALL), np.random.default_rng(seed)
        self.public, self.private = path / "c", path / "answers"
        self.windows = {n: chance.integers(0, VOCABULARY, (count, 2 * SMALL + 1)) for n, count in ITEMS.items()}
        for rows in self.windows.values():
            rows[:, SMALL] = maker.windows(len(rows))[:, SMALL]
        write_head(self.public)
        self.write()

    def write(self, *names, **settings):
        for name in names or ITEMS:
            rows = self.windows[name]
            write_part(self.public, name, rows, context=SMALL, answers=name != "test-A", **settings)
        write_part(self.private, "test-A", self.windows["test-A"], context=SMALL)

    @property
    def answers(self):
        return [str(WORDS[n]) for n in self.windows["test-A"][:, SMALL]]

    @property
    def texts(self):
        return [" ".join(WORDS[row]) for row in self.windows["test-A"]]

    def add_column(self, cells, name="Title", part="test-A"):
        """Put a column in front of the contexts of all parts; ``cells`` are those of one part."""
        (self.public / "in-header.tsv").write_text(f"FileId\t{name}\tLeftContext\tRightContext\n")
        for other in ITEMS:
            path = self.public / other / "in.tsv"
            rows = [line.split("\t") for line in path.read_text().splitlines()]
            added = cells if other == part else ["plain"] * len(rows)
            path.write_text("".join("\t".join((r[0], c, *r[1:])) + "\n" for r, c in zip(rows, added, strict=True)))

    def found(self, **settings):
        return {*found(self.public, answers=self.private, **settings)}

    def codes(self):
        return {code for _, code in self.found()}
