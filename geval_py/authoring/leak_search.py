"""Items as numbered words, and the search for the items, documents and runs of words that parts share, by hashes.

The hash of words w0 … wm is the sum of code(wi) B^i modulo 2^64, where code is random and B odd, so that it is the
difference of two running sums, times an inverse: a run of any length costs the same (Karp and Rabin, "Efficient
randomized pattern-matching algorithms", 1987). Two different runs have the same hash with a chance of about 2^-60.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geval_py.reading.files import File
from geval_py.reading.lines import LineReader, check_line_count, decode_lines, read_lines
from geval_py.scoring.blocks import Progress

Numbers: TypeAlias = NDArray[np.int64]
Places: TypeAlias = NDArray[np.int32]
Hashes: TypeAlias = NDArray[np.uint64]
Runs: TypeAlias = tuple[Hashes, Numbers]  # hashes of runs, and where these begin among the words

HIDDEN_BEGINNING = "test"  # of the names of sets whose answers are hidden
NEIGHBOURS = 3  # words on each side of a gap, by which it is found elsewhere
AROUND = ((NEIGHBOURS, NEIGHBOURS),)  # the words on the left and on the right
AROUND_OR_BESIDE = (*AROUND, (8, 0), (0, 8))  # where windows of other gaps have the same gaps
MIN_NGRAM, MAX_NGRAM = 8, 13  # words; as for GPT-3 (Brown et al. 2020, appendix C)
LENGTH_PERCENTILE = 5  # of the items' lengths, which gives n within those bounds (the same)
MAX_DOCUMENTS = 10  # of the training set: an n-gram in more is a phrase (the same)
NEAR_DUPLICATE = 0.2  # of an item's n-grams of MIN_NGRAM words
MIN_SENTENCE = 8  # words; of 6 and 7, 4 of 3,329 stood in two chapters of seven novels, of 8 or more none
SAMPLED = 4  # one n-gram of MIN_NGRAM words in so many shows whether windows overlap
BLOCK_BYTES = 8_000_000
MAX_KEPT_WORDS = 1 << 18
UNKNOWN = 0  # the word of a gap whose answer is not known
MAX_BITMAP_BITS = 24
_BASE = 0x9E3779B97F4A7C15 | 3
_INVERSE = pow(_BASE, -1, 1 << 64)
_GAP = np.uint64(0xD1B54A32D192ED03)  # the code of a gap, whatever its answer
_OUTER_PUNCTUATION = re.compile(r"^[\W_]+|[\W_]+$")
_SENTENCE_END = re.compile(r"[.!?][^\w\s]*$")
_LETTERS = str.maketrans("łŁøØđĐıħŧ", "lLoOdDiht")  # letters with strokes, which have no decomposition


def skeleton(text: str) -> str:
    """Return a text without case, diacritics and invisible characters (soft hyphens too), in Unicode's form NFKC.

    >>> skeleton("Zo\u00adë") == skeleton("ZOE\u0308") == skeleton("ｚｏｅ")
    True
    """
    if not text.isascii():
        letters = unicodedata.normalize("NFKD", text).translate(_LETTERS)
        text = "".join(letter for letter in letters if unicodedata.category(letter) not in ("Mn", "Cf"))
    return text.casefold()


class Vocabulary(dict[str, int]):
    """Numbers words: twice a number of the skeleton without outer punctuation, plus 1 at the end of a sentence.

    It keeps some words, and all skeletons.
    """

    def __init__(self) -> None:
        super().__init__()
        self._numbers: dict[str, int] = {}

    def __missing__(self, word: str) -> int:
        if len(self) >= MAX_KEPT_WORDS:
            self.clear()
        plain = _OUTER_PUNCTUATION.sub("", skeleton(word)) or word
        number = self._numbers.setdefault(plain, len(self._numbers) + 1)  # 0 is UNKNOWN
        self[word] = 2 * number + bool(_SENTENCE_END.search(word))
        return self[word]

    def numbers(self, words: Sequence[str]) -> Numbers:
        """Return the numbers of words, or of whole cells, with no sentence ends."""
        return np.fromiter((self[word] >> 1 << 1 for word in words), np.int64, len(words))


class PartFiles(NamedTuple):
    """The files of one part, the first names of their header lines, and the columns.

    ``left`` and ``right`` are the columns of the texts beside the gap, the same if there is no gap; ``group`` is that
    of the document. With ``is_text``, a whole line is one text. ``names`` are those of all columns.
    """

    part: str
    file: File
    expected: File | None = None
    header: str | None = None
    expected_header: str | None = None
    left: int = 0
    right: int = 0
    group: int | None = None
    is_text: bool = False
    names: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The file as it was named."""
        return self.file.name

    @property
    def has_gap(self) -> bool:
        """Whether an item has a gap."""
        return self.left != self.right

    @property
    def is_hidden(self) -> bool:
        """Whether the set's answers are secret."""
        return self.part.startswith(HIDDEN_BEGINNING)

    def answers(self) -> list[str] | None:
        """Read the answers, if there are any; raises DataError."""
        return None if self.expected is None else list(read_lines(self.expected, header=self.expected_header))


def read_items(files: PartFiles, vocabulary: Vocabulary, progress: Progress | None = None) -> Iterator[Items]:
    """Read the items of a part, block by block; an empty part has an empty block.

    ``progress`` is called after each block with the number of bytes read and the file's size. Raises DataError, also
    if there are more or fewer answers than items.
    """
    answers = files.answers()
    lines = 0
    with LineReader(files.file, header=files.header) as reader:
        while True:
            data = reader.block(BLOCK_BYTES)
            if not data and lines:
                break
            texts = decode_lines(data)
            words = [""] * len(texts) if answers is None else answers[lines : lines + len(texts)]
            if len(words) == len(texts):
                yield number_items(texts, words, files, vocabulary, lines + 1)
            lines += len(texts)
            if progress is not None:
                progress(reader.position, reader.size)
            if not data:
                break
    if answers is not None:
        check_line_count("input", files.path, lines, files.expected.name if files.expected else "", len(answers))


def number_items(
    texts: Sequence[str], answers: Sequence[str], files: PartFiles, vocabulary: Vocabulary, first_line: int
) -> Items:
    """Return items as numbers: the words left of the gap, the answer ("" if it is not known), the words right."""
    numbers: list[int] = []
    starts, gaps, groups = [0], [], []
    number_of = vocabulary.__getitem__
    for text, answer in zip(texts, answers, strict=True):
        words = text.replace("\\n", " ")
        cells = [words] if files.is_text else words.split("\t")
        places = (files.left, files.right, files.group)
        left, right, group = (cells[n] if n is not None and n < len(cells) else "" for n in places)
        numbers.extend(map(number_of, left.split()))
        gaps.append(len(numbers) if files.has_gap else -1)
        if files.has_gap:
            numbers.append(number_of(answer) if answer else UNKNOWN)
            numbers.extend(map(number_of, right.split()))
        starts.append(len(numbers))
        groups.append(hash(group))
    arrays = (np.array(values, dtype=np.int64) for values in (numbers, starts, gaps, groups))
    return Items(*arrays, first_line=first_line)


def one_item(words: Numbers) -> Items:
    """Make one item without a gap of numbered words."""
    return Items(words, np.array([0, len(words)]), np.array([-1]), np.array([0]))


def mixed(values: Hashes) -> Hashes:
    """Mix the bits of numbers, one to one: Vigna's splitmix64, https://prng.di.unimi.it/splitmix64.c."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _codes(words: Numbers) -> Hashes:
    return mixed(((words >> 1).astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15))


class Items:
    """Items as numbered words, one item after another, and the hashes of their runs of words.

    Item n has the words from ``starts[n]`` to ``starts[n + 1]``, and a gap at ``gaps[n]``, -1 for none; ``groups``
    has a hash of its document. ``first_line`` is the number of the first item's line.
    """

    def __init__(
        self, words: Numbers, starts: Numbers, gaps: Numbers, groups: Numbers, *, first_line: int = 1
    ) -> None:
        self.words, self.starts, self.gaps, self.groups, self.first_line = words, starts, gaps, groups, first_line
        lengths = np.diff(starts)
        self.item_of = np.repeat(np.arange(len(self), dtype=np.int32), lengths)
        longest = int(lengths.max(initial=0))
        self._powers, self._inverses = (
            np.multiply.accumulate(np.array([1, *[base] * longest], dtype=np.uint64)) for base in (_BASE, _INVERSE)
        )
        self._sums = np.zeros(len(words) + 1, dtype=np.uint64)  # the exponents count from the item's start
        np.cumsum(_codes(words) * self._powers[self._place_in_item(np.arange(len(words)))], out=self._sums[1:])
        self._unknown = np.zeros(len(words) + 1, dtype=np.int32)
        np.cumsum(words >> 1 == UNKNOWN, out=self._unknown[1:])

    def _place_in_item(self, places: Numbers) -> Numbers:
        """Return the places of words in their items; one behind the last word counts as its item's."""
        return places - self.starts[self.item_of[np.minimum(places, len(self.words) - 1)]]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def runs(self, starts: Numbers, ends: Numbers) -> Hashes:
        """Return the hashes of the runs from ``starts`` to ``ends``, the ends not included."""
        return mixed((self._sums[ends] - self._sums[starts]) * self._inverses[self._place_in_item(starts)])

    def whole(self) -> Hashes:
        """Return the hash of each item, whatever its answer."""
        sums = np.diff(self._sums[self.starts])
        with_gap = self.gaps >= 0
        gaps = self.gaps[with_gap]
        sums[with_gap] += (_GAP - _codes(self.words[gaps])) * self._powers[self._place_in_item(gaps)]
        return mixed(sums)

    def ngrams(self, n: int) -> Runs:
        """Return the runs of n known words inside an item."""
        starts = np.arange(max(0, len(self.words) - n + 1))
        inside = self.item_of[starts] == self.item_of[starts + n - 1]
        starts = starts[inside & (self._unknown[starts] == self._unknown[starts + n])]
        return self.runs(starts, starts + n), starts

    def sentences(self) -> Runs:
        """Return the whole sentences of at least MIN_SENTENCE words.

        The words before the first sentence end of an item, and after the last, may be cut and are left out.
        """
        ends = np.flatnonzero(self.words & 1) + 1
        starts, ends = ends[:-1], ends[1:]
        inside = self.item_of[starts - 1] == self.item_of[ends - 1]
        kept = inside & (ends - starts >= MIN_SENTENCE) & (self._unknown[starts] == self._unknown[ends])
        return self.runs(starts[kept], ends[kept]), starts[kept]

    def around(self, places: Numbers | None = None, shapes: Sequence[tuple[int, int]] = AROUND) -> Runs:
        """Return the words around places: so many on the left and on the right, for each of the shapes.

        By default the places are those of all known words. Places with fewer words in their item are left out.
        """
        places = np.flatnonzero(self.words >> 1 != UNKNOWN) if places is None else places
        hashes, kept = [], []
        for before, behind in shapes:
            inner = places[(places >= before) & (places + behind < len(self.words))]
            left, right = inner - before, inner + behind
            inside = self.item_of[left] == self.item_of[right]
            inside &= self._unknown[left] == self._unknown[inner]
            inside &= self._unknown[inner + 1] == self._unknown[right + 1]
            inner, left, right = inner[inside], left[inside], right[inside]
            hashes.append(mixed(self.runs(left, inner) * np.uint64(_BASE) + self.runs(inner + 1, right + 1)))
            kept.append(inner)
        return np.concatenate(hashes), np.concatenate(kept)

    def sample(self) -> tuple[Hashes, Numbers]:
        """Return some n-grams, each as a hash that differs between documents, and their items."""
        hashes, starts = self.ngrams(MIN_NGRAM)
        sampled = hashes % np.uint64(SAMPLED) == 0
        items = self.item_of[starts[sampled]]
        documents = self.groups[items].astype(np.uint64)
        return mixed(hashes[sampled] + documents * np.uint64(_BASE)), items

    def without_answers(self) -> Items:
        """Return the same items with gaps that are not known."""
        words = self.words.copy()
        words[self.gaps[self.gaps >= 0]] = UNKNOWN
        return Items(words, self.starts, self.gaps, self.groups, first_line=self.first_line)

    def around_gaps(self, shapes: Sequence[tuple[int, int]] = AROUND) -> Runs:
        """Return the words around the gaps."""
        return self.around(self.gaps[self.gaps >= 0], shapes)


class Sought:
    """Runs of words of some items, which are searched for in other texts.

    ``values`` are their hashes in order, with a bitmap that spares most searches for absent ones. With
    ``by_document``, runs in more than MAX_DOCUMENTS documents are phrases, and count as not found.
    """

    def __init__(
        self, blocks: Sequence[Items], runs_of: Callable[[Items], Runs], *, by_document: bool = False
    ) -> None:
        self._by_document, self._size = by_document, sum(map(len, blocks))
        runs = []  # their hashes, items, and places among the words of these
        for items in blocks:
            hashes, places = runs_of(items)
            here = items.item_of[places]
            words = (places - items.starts[here]).astype(np.int32)
            runs.append((hashes, here + np.int32(items.first_line - 1), words))
        hashes, self._items, self._words = map(np.concatenate, zip(*runs, strict=True))
        self.values, first, inverse, counts = np.unique(
            hashes, return_index=True, return_inverse=True, return_counts=True
        )
        self.inverse = inverse.astype(np.int32)
        self._owner = np.where(counts == 1, self._items[first], -1)  # the item, if only one has the run
        bits = min(len(self.values).bit_length() + 4, MAX_BITMAP_BITS)  # at most one in sixteen is set
        self._shift = np.uint64(64 - bits)
        self._bitmap = np.zeros(1 << bits, dtype=bool)
        self._bitmap[self.values >> self._shift] = True
        self._lines, self._sources = np.zeros((2, len(self.values)), dtype=np.int32)
        self._documents: list[Numbers] = []  # pairs of a run and a document

    def find(self, hashes: Hashes) -> tuple[Numbers, Numbers]:
        """Return the places in ``hashes`` of those that are sought, and their places in ``values``."""
        maybe = np.flatnonzero(self._bitmap[hashes >> self._shift])
        places = np.minimum(np.searchsorted(self.values, hashes[maybe]), len(self.values) - 1)
        same = self.values[places] == hashes[maybe]
        return maybe[same], places[same]

    def search(self, items: Items, runs: Runs, source: int = 0, *, in_same: bool = False) -> None:
        """Search among runs of other items, or ``in_same``; ``source`` is the number of their text."""
        places, here = self.find(runs[0])
        others = items.item_of[runs[1][places]]
        if in_same:
            differ = self._owner[here] != others + items.first_line - 1
            here, others = here[differ], others[differ]
        new = self._lines[here] == 0
        self._lines[here[new][::-1]] = items.first_line + others[new][::-1]  # the first of the items wins
        self._sources[here[new]] = source
        if self._by_document and len(here):
            self._documents.append(np.unique(np.stack((here, items.groups[others])), axis=1))

    def lines(self) -> Places:
        """Return, for each run, the first line that has it; 0 if none has."""
        lines = self._lines.copy()
        if self._documents:
            pairs = np.unique(np.concatenate(self._documents, axis=1), axis=1)
            lines[np.bincount(pairs[0], minlength=len(lines)) > MAX_DOCUMENTS] = 0
        return lines[self.inverse]

    def by_item(self) -> dict[int, tuple[int, int, int]]:
        """Return, by item, the place in words of the first run that was found, its line and its source."""
        lines, sources = self.lines(), self._sources[self.inverse]
        runs = np.flatnonzero(lines)
        items, first = np.unique(self._items[runs], return_index=True)
        return {
            item: (int(self._words[run]), int(lines[run]), int(sources[run]))
            for item, run in zip(items.tolist(), runs[first].tolist(), strict=True)
        }

    def near_duplicates(self) -> Numbers:
        """Return the items with more than NEAR_DUPLICATE of their runs found."""
        counts = np.bincount(self._items, minlength=self._size)
        hits = np.bincount(self._items[self.lines() > 0], minlength=self._size)
        return np.flatnonzero(hits > NEAR_DUPLICATE * counts)


class EvaluatedPart:
    """A part other than train: its items in blocks, and their runs of words that are searched for elsewhere."""

    def __init__(self, files: PartFiles, blocks: Sequence[Items]) -> None:
        self.files, self.blocks, self.size = files, blocks, sum(map(len, blocks))
        lengths = np.concatenate([np.diff(items.starts) for items in blocks])
        low = np.percentile(lengths, LENGTH_PERCENTILE) if len(lengths) else 0
        self.n = int(np.clip(low, MIN_NGRAM, MAX_NGRAM))  # shorter runs are phrases
        self.gaps = Sought(blocks, Items.around_gaps)
        self.gaps_in_sets = Sought(blocks, lambda items: items.around_gaps(AROUND_OR_BESIDE))
        self.ngrams = Sought(blocks, lambda items: items.ngrams(self.n), by_document=True)
        self.short_ngrams = Sought(blocks, lambda items: items.ngrams(MIN_NGRAM))
        self.sentences = Sought(blocks, Items.sentences)


def search_train(parts: Sequence[EvaluatedPart], train: Items) -> None:
    """Search training items for the runs of all evaluated parts."""
    ngrams = {n: train.ngrams(n) for n in {part.n for part in parts} | {MIN_NGRAM}}
    around, sentences = train.around(), train.sentences()
    for part in parts:
        part.gaps.search(train, around)
        part.ngrams.search(train, ngrams[part.n])
        part.short_ngrams.search(train, ngrams[MIN_NGRAM])
        part.sentences.search(train, sentences)
