"""Texts to train models on: the texts of a word-gap challenge, and the corpora of n-gram models.

First a challenge's texts: the windows around its gaps. Windows of one document may repeat the same words, which would
be counted several times. Two windows are joined if they share five words in a row and agree in all of their overlap.

Then a Corpus: sentences as ids of words, from such texts or from files, which are read as KenLM's lmplz reads them.
Each line is a sentence, and white space separates words.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain, count, pairwise, repeat
from operator import eq
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from geval_py.errors import MalformedLineError, MissingFileError, ModelError
from geval_py.modelling.texts import TextBlock
from geval_py.reading.challenge import DataSet
from geval_py.reading.items import LEFT_NAMES, RIGHT_NAMES, Item, find_contexts
from geval_py.scoring.kernel.backends import choose_backend

with suppress(ImportError):  # it was not built
    from geval_py.scoring.kernel import _native


Ids = NDArray[np.int32]
Longs = NDArray[np.int64]
Doubles = NDArray[np.float64]
Flags = NDArray[np.bool_]
NgramRows = tuple[Ids, Doubles, Doubles]  # the ids of words, log10 probabilities, and back-offs
TokenScores = tuple[Doubles, Ids, Longs]  # log10 probabilities; lengths of n-grams, 0 if unknown; tokens by sentence
Sentence = list[bytes]
SHARED = 5  # words in a row
HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # of runs of words: an odd number without a pattern
OVERLAPPING = 0.05  # of all windows, above which windows are joined
USUAL_COLUMNS = ("1", LEFT_NAMES[0], RIGHT_NAMES[0])
_usual_contexts = lru_cache(find_contexts)  # of each item


def words_in(text: str) -> Sentence:
    r"""Split a column into words; the two characters ``\n`` are a line end.

    >>> words_in("a\\nb  c")
    [b'a', b'b', b'c']
    """
    return split_as_lmplz(text.replace("\\n", " ").replace("\n", " ").encode(errors="surrogatepass"))


def with_contexts(items: Iterable[Item], contexts: tuple[str, str]) -> Iterator[Item]:
    """Yield items whose contexts are in the columns of these names, under names that need no option.

    Of the other columns only the first remains, if it is the item's first. Without any name, items are as they are.
    Raises UsageError for a column that does not exist.
    """
    if not any(contexts):
        yield from items
        return
    columns: tuple[str, ...] = ()
    for item in items:
        columns = columns or find_contexts(list(item.columns), *contexts)
        first = next(iter(item.columns), "")
        names = ("" if first in columns else first, *columns)
        values = (item.columns.get(name, "") for name in names)
        yield Item(item.line, dict(zip(USUAL_COLUMNS, values, strict=True)), item.expected)


def item_blocks(data: DataSet, contexts: tuple[str, str]) -> Iterator[TextBlock]:
    """Yield the texts of a set, a line each: left context, answer, right context; overlapping windows are joined.

    Raises MissingFileError without the input or the answers, and otherwise as :func:`texts_of`.
    """
    if data.input is None or data.expected is None:
        raise MissingFileError(what="No texts without the input and the answers", path=data.directory)
    yield data.directory, 1, texts_of(with_contexts(data, contexts))


def gap_of(item: Item) -> tuple[str, str, str]:
    r"""Return the contexts of a gap, in which the two characters ``\n`` are a line end, and its document.

    The document is the first column, unless that is a context. Raises UsageError as
    :func:`geval_py.reading.items.find_contexts`.
    """
    names = list(item.columns)
    columns = _usual_contexts(tuple(names))
    left, right = (item.columns.get(name, "").replace("\\n", "\n") for name in columns)
    return left, right, item.columns[names[0]] if names and names[0] not in columns else ""


def texts_of(items: Iterable[Item]) -> bytes:
    """Return the texts of items with answers as lines: the windows of each document, joined where windows overlap.

    If hardly any window overlaps another, the windows are disjoint, and what they share is repetition in the text:
    none is joined. Raises ModelError for an item without an answer, and if there is no item; UsageError as
    :func:`gap_of`.
    """
    windows: defaultdict[str, list[str]] = defaultdict(list)
    for item in items:
        if item.expected is None:
            raise ModelError(message="There is nothing to train on: train has no answers (expected.tsv)")
        left, right, document = gap_of(item)
        windows[document].append(f"{left} {item.expected} {right}".replace("\n", " "))
    if not windows:
        raise ModelError(message="There is nothing to train on: train has no items")
    lines = "\n".join([*chain.from_iterable(windows.values()), ""]).encode(errors="surrogatepass")
    numbering = new_numbering()
    ids, lengths = numbering.number_lines(lines)
    documents = np.repeat(np.arange(len(windows)), [*map(len, windows.values())])
    texts = join_windows(ids, lengths, documents, numbering.words)
    if len(lengths) - len(texts) <= OVERLAPPING * len(lengths):
        return lines
    return b"".join(b" ".join(text) + b"\n" for text in texts)


def join_windows(ids: Ids, lengths: Longs, documents: Longs, words: Sequence[bytes]) -> list[Sentence]:
    """Join the windows of a document that overlap; return the texts.

    ``ids`` are the numbers of the ``words`` of all windows. Where a run of words occurs again, a window may overlap
    the one that has the run first. If they agree there, both get places in one text, which is made from its windows
    in the order of their places.
    """
    size, bounds = len(lengths), np.cumsum([0, *lengths])
    window = np.repeat(np.arange(size), lengths)
    inside = np.arange(len(ids)) - bounds[window]
    hashes = documents[window].astype(np.uint64)[SHARED - 1 :]
    for shift in range(SHARED):
        hashes = hashes * HASH_FACTOR + ids[shift : shift + len(hashes)].astype(np.uint64)
    runs = np.flatnonzero(window[SHARED - 1 :] == window[: len(hashes)])
    _, firsts, kinds = np.unique(hashes[runs], return_index=True, return_inverse=True)
    earlier = runs[firsts][kinds]
    columns = np.stack([inside[earlier] - inside[runs], window[earlier], window[runs]])
    columns = columns[:, window[earlier] < window[runs]]
    pairs = columns[:, np.lexsort([*columns, np.abs(columns[0])])].tolist()  # large overlaps first

    tokens = [*map(words.__getitem__, ids.tolist())]
    windows = [tokens[start:stop] for start, stop in pairwise(bounds.tolist())]
    parents, shifts = list(range(size)), [0] * size  # another window of the text, and how far each is behind that

    def place_of(number: int) -> tuple[int, int]:
        """Return the window that a text is known by, and how far another is behind that."""
        shift = 0
        while (parent := parents[number]) != number:
            shifts[number] += shifts[parent]
            parents[number] = parents[parent]
            shift, number = shift + shifts[number], parents[number]
        return number, shift

    for shift, other, number in zip(*pairs, strict=True):
        if parents[number] == parents[other]:
            continue
        (text, place), (other_text, other_place) = place_of(number), place_of(other)
        ours, theirs = windows[number][max(0, -shift) :], windows[other][max(0, shift) :]
        if text != other_text and all(map(eq, ours, theirs)):
            parents[text], shifts[text] = other_text, other_place + shift - place

    texts: list[Sentence] = [[]]
    last, start = -1, 0  # of the last text: its first window, and how far it begins behind that
    for first, place, number in sorted((*place_of(number), number) for number in range(size)):
        overlap = texts[-1][place - start :][: len(windows[number])]
        if first != last or len(overlap) < SHARED or overlap != windows[number][: len(overlap)]:
            last, start, overlap = first, place, []
            texts.append([])
        texts[-1] += windows[number][len(overlap) :]
    return texts[1:]


# Corpora of n-gram models


UNKNOWN, START, END = range(3)  # the ids of the words that every model has
MARKS = (b"<unk>", b"<s>", b"</s>")
UNSPACED = re.compile(  # letters of scripts that are written without spaces between words
    "[\u0e00-\u0eff\u0f00-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff]"
)
LOOKED_AT = 10_000  # tokens at the beginning of a text
LONG_WORD = 8  # letters; no text in one of these scripts has so long words on average
_WORD = re.compile(rb"[^\0\t\r ]+")
_NUL_AS_SPACE = bytes.maketrans(b"\0", b" ")


def split_as_lmplz(line: bytes) -> Sentence:
    r"""Split a line at NUL, TAB, CR and space.

    >>> split_as_lmplz(b" a\0b\vc\r")
    [b'a', b'b\x0bc']
    """
    if b"\v" in line or b"\f" in line:
        return _WORD.findall(line)
    return line.translate(_NUL_AS_SPACE).split()


class Corpus(NamedTuple):
    """The sentences of a text as ids of words.

    ``words`` are the words by id: first the :data:`MARKS`, then the words of the text in order of appearance.
    ``tokens`` are all sentences, each between <s> and </s>; without ``marks``, <s> only separates sentences, and </s>
    is left out. ``name`` is the first file's, for messages; ``not_utf8`` the file and the line of the first bytes
    that are not UTF-8.
    """

    words: list[bytes]
    tokens: Ids
    name: str = ""
    marks: bool = True
    not_utf8: tuple[str, int] | None = None

    @property
    def missing(self) -> frozenset[bytes]:
        """The marks that a model of the corpus lacks."""
        return frozenset(() if self.marks else MARKS[START:])

    def lacks_spaces(self) -> bool:
        """Return whether :func:`lacks_spaces` holds for the text's beginning."""
        beginning = self.tokens[:LOOKED_AT]
        ids = beginning[beginning >= len(MARKS)]
        return lacks_spaces(b" ".join(map(self.words.__getitem__, ids.tolist())).decode("utf-8", "replace"))


def lacks_spaces(text: str) -> bool:
    """Return whether a text seems to be one of Chinese, Japanese, Thai and the like that was not split into words.

    Words of these scripts have some two to five letters on average.
    """
    words = text.split()
    size = sum(map(len, words))
    return size > LONG_WORD * len(words) and 2 * len(UNSPACED.findall(text)) > size


def corpus_of(blocks: Iterable[TextBlock], *, skip_symbols: bool = False, marks: bool = True) -> Corpus:
    """Make a corpus of texts, as lmplz does.

    With ``skip_symbols`` marks in the text are white space; without it they raise MalformedLineError. Raises
    whatever the ``blocks`` of lines raise.
    """
    numbering, parts, name, not_utf8 = new_numbering(), [np.zeros(0, np.int32)], "", None
    for path, line, block in blocks:
        name = name or path
        if not_utf8 is None:
            try:
                block.decode()
            except UnicodeDecodeError as error:
                not_utf8 = path, line + block.count(b"\n", 0, error.start)
        ids, lengths = numbering.number_lines(block)
        is_mark = ids < len(MARKS)
        if is_mark.any():
            if not skip_symbols:
                numbered = enumerate(map(split_as_lmplz, lines_of(block)), line)
                place, words, mark = next((n, ws, one) for n, ws in numbered for one in MARKS if one in ws)
                text, name = b" ".join(words).decode(errors="replace"), mark.decode()
                hint = (
                    f"{name} is a mark that models add themselves; "
                    "take it out, or read it as white space (--skip-symbols)"
                )
                raise MalformedLineError(
                    path=path, line=place, column=f" {text} ".index(f" {name} ") + 1,
                    reason=f"{name} in the text", token=name, hint=hint, text=text,
                )  # fmt: skip
            of_line = np.repeat(np.arange(len(lengths)), lengths)
            lengths = lengths - np.bincount(of_line[is_mark], minlength=len(lengths))
            ids = ids[~is_mark]
        tokens = with_marks(ids, lengths)
        parts.append(tokens if marks else tokens[tokens != END])
    return Corpus(numbering.words, np.concatenate(parts), name, marks, not_utf8)


class Numbering:
    """Numbers words in order of appearance, after the marks; ``alias`` is another name of <unk>."""

    def __init__(self, alias: bytes = b"") -> None:
        self._numbers = defaultdict(count(len(MARKS)).__next__, {mark: n for n, mark in enumerate(MARKS)})
        self._alias = alias
        if alias:
            self._numbers[alias] = UNKNOWN

    @property
    def words(self) -> list[bytes]:
        """The words by number."""
        return [word for word in self._numbers if word != self._alias]

    def number(self, words: Sequence[bytes], *, grow: bool = True) -> Ids:
        """Return the numbers of words; new words get the next one if the numbering may grow, and else -1."""
        numbers = map(self._numbers.__getitem__, words) if grow else map(self._numbers.get, words, repeat(-1))
        return np.fromiter(numbers, np.int32, len(words))

    def number_lines(self, block: bytes) -> tuple[Ids, Longs]:
        """Return the numbers of all words in a block of lines, and how many each line has; split as lmplz does."""
        sentences = [*map(split_as_lmplz, lines_of(block))]
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
        return self.number([*chain.from_iterable(sentences)]), lengths


class NativeNumbering:
    """Numbers words in C++; see :class:`Numbering`."""

    def __init__(self, alias: bytes = b"") -> None:
        self._table = _native.word_table(b"".join(word + b"\n" for word in MARKS), alias)

    @property
    def words(self) -> list[bytes]:
        return _native.table_words(self._table).split(b"\n")[:-1]

    def number(self, words: Sequence[bytes], *, grow: bool = True) -> Ids:
        ids, _ = _native.number_words(self._table, b"\n".join(words), b"", grow)
        return np.frombuffer(ids, np.int32)

    def number_lines(self, block: bytes) -> tuple[Ids, Longs]:
        ids, lengths = _native.number_words(self._table, block, b"\0\t\r ", True)
        return np.frombuffer(ids, np.int32), np.frombuffer(lengths, np.int64)

    def arpa_rows(self, block: bytes, order: int, *, grow: bool) -> NgramRows | None:
        """Return the numbers of all words in rows of an ARPA file, log10s and back-offs; None for a malformed row."""
        rows = _native.read_arpa_rows(self._table, block, order, grow)
        if rows is None:
            return None
        ids, logs, backoffs = rows
        return np.frombuffer(ids, np.int32), np.frombuffer(logs), np.frombuffer(backoffs)


def new_numbering(alias: bytes = b"") -> Numbering | NativeNumbering:
    """Return a numbering of words that begins with the marks."""
    return (NativeNumbering if choose_backend() == "native" else Numbering)(alias)


def lines_of(block: bytes) -> list[bytes]:
    """Split a block of whole lines."""
    return block[:-1].split(b"\n")


def with_marks(ids: Ids, lengths: Longs) -> Ids:
    """Put <s> in front of each sentence and </s> behind it."""
    tokens = np.empty(len(ids) + 2 * len(lengths), np.int32)
    ends = np.cumsum(lengths + 2) - 1
    starts = ends - lengths - 1
    of_words = np.ones(len(tokens), np.bool_)
    of_words[starts] = of_words[ends] = False
    tokens[starts], tokens[ends], tokens[of_words] = START, END, ids
    return tokens
