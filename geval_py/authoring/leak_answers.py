"""Find a set's answers in a text, in any form, and in the columns and the order of the set's own items.

Three tests find answers in a sequence of words, whatever separates them:

- runs of consecutive answers stand in it, forwards or backwards, so long that chance gives none;
- it has the same words, each as often, in any order;
- it is as long, and its words are repeated at the same places: each answer was replaced by a code, such as a digest.

The sequences of a text are all its words, the first and the last word of each line, and each column of a table, of
lines of JSON, or of an output, whose likeliest words count.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from geval_py.authoring.leak_items import Block, Numbers, Vocabulary, folded
from geval_py.authoring.leak_search import Index, Runs

FOUND = 0.1  # of the runs of answers: above it, a text has them in order
SAME = 0.9  # of the words, above which two lists are the same; also of the places of repeated words
PERFECT = 0.98  # of the answers, above which an output is no model's
LEAST_WORDS = 20  # different answers: fewer are classes, which anything contains
CHANCE = 1e-6  # that a run of answers stands in a text by chance
LONGEST_RUN = 200  # answers; where more are needed, they are nearly all the same
MOST_COLUMNS = 60
PROBES = 30  # answers that are looked for first
SAMPLED_ITEMS = 20_000
MUCH_IN_COLUMN, SOME_IN_COLUMN = 0.1, 0.03  # of a set's items, more than by chance
LEAST_ITEMS = 20
SHUFFLES = 3
_WORDS = re.compile(r"[^\s\t,;|\"\[\]{}]+")
_DELIMITERS = "\t,;|"


class AnswerKey:
    """The answers of one set, to be found in texts."""

    def __init__(self, name: str, answers: Sequence[str], vocabulary: Vocabulary) -> None:
        self.name, self._vocabulary = name, vocabulary
        self.words = numbered(answers, vocabulary)
        _, counts = np.unique(self.words, return_counts=True)
        self.kinds = len(counts)
        agree = float(np.square(counts / max(1, len(self.words))).sum())
        bits = -math.log(agree) if 0 < agree < 1 else 0.0
        self.n = max(4, math.ceil(math.log(1e7 / CHANCE) / bits)) if bits else LONGEST_RUN + 1
        self._indices = []
        if self.n <= min(LONGEST_RUN, len(self.words)):
            self._indices = [Index(_runs(words).ngrams(self.n)[0]) for words in (self.words, self.words[::-1])]
        self._repeats = _distances(self.words)
        kinds = sorted(set(map(str.casefold, answers)), key=len)[-len(answers) // 2 :]
        self._probes = [(word, folded(word)) for word in kinds[:: max(1, len(kinds) // PROBES)]]

    def may_be_in(self, plain: str) -> bool:
        """Whether a text without capitals has half of the longer answers, as a copy has."""
        return sum(word in plain or other in plain for word, other in self._probes) > len(self._probes) / 2

    def found_among(self, words: Numbers, *, is_output: bool = False) -> str:
        """Return how the answers stand in a sequence of words; "" if they do not."""
        for start in (0, 1):
            shifted = words[start:]
            if len(shifted) == len(self.words) and self.kinds > 1:
                if float(np.mean(shifted == self.words)) > PERFECT and self.n <= len(words):
                    return f"it has the answers of {self.name}, line by line"
                if not is_output and self._has_codes(shifted):
                    return f"it has a code for each answer of {self.name}, line by line"
        if is_output:
            return ""
        for index, order in zip(self._indices, ("in order", "in reverse order"), strict=False):
            hashes, _ = _runs(words).ngrams(self.n)
            share = len(np.unique(index.find(hashes)[1])) / len(index.values)
            if share > FOUND:
                return f"it has {share:.0%} of the answers of {self.name}, {order}"
        if self._is_sorted_copy(words):
            return f"it has the words of the answers of {self.name}, in another order"
        return ""

    def _has_codes(self, words: Numbers) -> bool:
        """Whether words are repeated where answers are, but are others."""
        repeated = self._repeats > 0
        if int(repeated.sum()) < LEAST_WORDS or self.kinds < LEAST_WORDS:
            return False
        return float(np.mean(_distances(words) == self._repeats)) > SAME

    def _is_sorted_copy(self, words: Numbers) -> bool:
        if self.kinds < LEAST_WORDS or not SAME < len(words) / len(self.words) < 1 / SAME:
            return False
        own, counts = np.unique(self.words, return_counts=True)
        others, other_counts = np.unique(words, return_counts=True)
        common, here, there = np.intersect1d(own, others, assume_unique=True, return_indices=True)
        shared = int(np.minimum(counts[here], other_counts[there]).sum())
        return len(common) > SAME * max(len(own), len(others)) and shared > SAME * max(len(self.words), len(words))


def numbered(words: Sequence[str], vocabulary: Vocabulary) -> Numbers:
    """Return the numbers of words, or of whole cells; only the words count, not the ends of sentences."""
    return np.fromiter((vocabulary[word] >> 1 for word in words), np.int64, len(words))


def _runs(words: Numbers) -> Runs:
    return Runs(block_of(words))


def block_of(words: Numbers, first_line: int = 1) -> Block:
    """Make one item without a gap of numbered words."""
    return Block(
        words=words << 1,
        starts=np.array([0, len(words)]),
        gaps=np.array([-1]),
        groups=np.array([0]),
        lines=np.array([first_line]),
        known=True,
    )


def _distances(words: Numbers) -> Numbers:
    """Return, for each word, how far before it the same word stands; 0 if it is the first."""
    order = np.argsort(words, kind="stable")
    distances = np.zeros(len(words), np.int64)
    same = words[order[1:]] == words[order[:-1]]
    distances[order[1:][same]] = (order[1:] - order[:-1])[same]
    return distances


def words_of(text: str, vocabulary: Vocabulary) -> Numbers:
    """Return the numbers of all words of a text; the two characters of an escaped line end separate them."""
    return numbered(_WORDS.findall(text.replace("\\n", " ").replace("\\t", " ")), vocabulary)


def sequences(text: str, vocabulary: Vocabulary) -> Iterator[Numbers]:
    """Yield the sequences of words in a text that may be answers (see the module)."""
    yield words_of(text, vocabulary)
    lines = [line for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n") if line]
    if len(lines) < 2:
        return
    for choose in (_first, _last, _likeliest):
        if (words := _of_lines(lines, choose)) is not None:
            yield numbered(words, vocabulary)
    for column in _columns(lines):
        yield numbered(column, vocabulary)


def _of_lines(lines: Sequence[str], choose: Callable[[str], str]) -> list[str] | None:
    probe = lines[: 2 * LEAST_WORDS]
    if choose is _likeliest and sum(":" in line for line in probe) < len(probe) / 2:
        return None
    return [choose(line) for line in lines]


def _first(line: str) -> str:
    return line.split(None, 1)[0] if line.strip() else ""


def _last(line: str) -> str:
    return line.rsplit(None, 1)[-1] if line.strip() else ""


def _likeliest(line: str) -> str:
    """Return the word with the greatest number of an output's line, as of ``the:0.5 a:0.2 :0.3``."""
    best, most = "", -math.inf
    for entry in line.split()[:400]:
        word, _, number = entry.rpartition(":")
        try:
            value = float(number)
        except ValueError:
            continue
        if word and value > most:
            best, most = word, value
    return best


def _columns(lines: Sequence[str]) -> Iterator[list[str]]:
    """Yield the columns of a table, by the delimiter that most lines have equally often, or of lines of JSON."""
    if lines[0].lstrip().startswith("{"):
        yield from _json_columns(lines)
        return
    for delimiter in _DELIMITERS:
        widths = Counter(line.count(delimiter) for line in lines[:1000])
        width, count = widths.most_common(1)[0]
        if 0 < width < MOST_COLUMNS and count > len(lines[:1000]) / 2:
            cells = [line.split(delimiter) for line in lines]
            for column in range(width + 1):
                yield [row[column].strip() if column < len(row) else "" for row in cells]


def _json_columns(lines: Sequence[str]) -> Iterator[list[str]]:
    rows = []
    for line in lines:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        rows.append(row if isinstance(row, dict) else {})
    for name in list(rows[0] if rows else {})[:MOST_COLUMNS]:
        yield [str(row.get(name, "")) for row in rows]


# The columns and the order of a set's own items


def share_in_column(cells: Sequence[str], answers: Sequence[str]) -> float:
    """Return the share of items whose cell shows the answer, less the share that chance gives.

    A cell shows its answer if it contains it, forwards or backwards, or if items with the same cell have the same
    answer. Chance is what the cells of other items show.
    """
    texts = [folded(cell.replace("\\n", " ")) for cell in cells[:SAMPLED_ITEMS]]
    words = [folded(answer) for answer in answers[: len(texts)]]
    if len(texts) < LEAST_ITEMS:
        return 0.0
    return max(_contained(texts, words), _predicted(texts, words))


def _contained(texts: Sequence[str], words: Sequence[str]) -> float:
    def share(shift: int) -> float:
        pairs = zip(texts, (*words[shift:], *words[:shift]), strict=True)
        return sum(bool(word) and (word in text or word[::-1] in text) for text, word in pairs) / len(texts)

    others = [1 + n * len(texts) // (SHUFFLES + 1) + n for n in range(1, SHUFFLES + 1)]
    return share(0) - sum(share(shift % len(texts)) for shift in others) / SHUFFLES


def _predicted(texts: Sequence[str], words: Sequence[str]) -> float:
    """Return how many more answers the other items with the same cell predict than the most frequent answer does."""
    by_cell: dict[str, Counter[str]] = {}
    for text, word in zip(texts, words, strict=True):
        by_cell.setdefault(text, Counter())[word] += 1
    right = 0
    for counts in by_cell.values():
        # with one item left out, an answer is predicted if it is then still the most frequent, and not alone in it
        (_, most), *rest = counts.most_common(2)
        if most > 1 and (not rest or most - 1 > rest[0][1]):
            right += most
    return (right - Counter(words).most_common(1)[0][1]) / len(words)


def are_sorted(answers: Sequence[str]) -> bool:
    """Whether items stand in the order of their answers: the alphabet's or another, also within documents."""
    words = [folded(answer) for answer in answers]
    kinds = Counter(words)
    if len(words) < LEAST_ITEMS or len(kinds) < LEAST_WORDS:
        return False
    chance = sum((count / len(words)) ** 2 for count in kinds.values())
    equal = sum(one == other for one, other in pairwise(words)) / (len(words) - 1)
    unequal = [one < other for one, other in pairwise(words) if one != other]
    lengths = [len(one) < len(other) for one, other in pairwise(words) if len(one) != len(other)]
    return equal > chance + 0.2 or any(map(_one_sided, (unequal, lengths)))


def _one_sided(steps: Sequence[bool]) -> bool:
    """Whether steps go one way more often than those of a shuffled list ever do."""
    if len(steps) < 10:
        return False
    return abs(sum(steps) / len(steps) - 0.5) > max(0.25, 2.5 / math.sqrt(len(steps)))
