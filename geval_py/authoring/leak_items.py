"""The rules about leaks, the places of a challenge's items, and the items as numbers.

Items are read block by block, with a number for each word.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, repeat
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from geval_py.authoring.corpora import check_group
from geval_py.checking.rules import Rule
from geval_py.errors import LineCountError, MissingFileError, UsageError
from geval_py.reading.answers import find_answers
from geval_py.reading.challenge import Challenge
from geval_py.reading.gap_columns import find_contexts
from geval_py.reading.lines import LineReader, decode_lines, read_lines
from geval_py.reading.sources import find_file
from geval_py.reading.splits import EXPECTED_FILE, INPUT_FILE, TRAINING_SET, read_header
from geval_py.scoring.blocks import Progress

Numbers: TypeAlias = "NDArray[np.int64]"
COMMAND = "geval challenge leaks"
HIDDEN_BEGINNING = "test"  # of the names of sets whose answers are hidden
NEIGHBOURS = 3  # words on each side of a gap, by which it is found elsewhere
AROUND = ((NEIGHBOURS, NEIGHBOURS),)  # the words on the left and on the right
AROUND_OR_BESIDE = (*AROUND, (8, 0), (0, 8))  # where windows of other gaps have the same gaps
SHINGLE = 4  # words; of these, 41 % remain where one word in five was replaced
LEAST_SHINGLES = 7  # shared by a copy: set phrases, as of market reports, share fewer
SHARED_SHINGLES = 0.12  # of an item's, that a copy has
MANY_IN_TEXTS = 0.2  # of a part's gaps, readable in train or in public files: texts repeat much less
FEW = 2  # gaps that any text may repeat: they are never many
MANY_READABLE, SOME_READABLE = 0.05, 0.01  # of a part's items, above which E404 and W404 speak
LEAST_NGRAM, MOST_NGRAM = 8, 13  # words; as for GPT-3 (Brown et al. 2020, appendix C)
LENGTH_PERCENTILE = 5  # of the items' lengths, which gives n within those bounds (the same)
MOST_DOCUMENTS = 10  # of the training set: an n-gram in more is a phrase (the same)
NEAR_DUPLICATE = 0.2  # of an item's n-grams of LEAST_NGRAM words
LEAST_SENTENCE = 8  # words; of 6 and 7, 4 of 3,329 stood in two chapters of seven novels, of 8 or more none
OVERLAPPING = 0.05  # of the training items
LEAK_RULES = (
    Rule(
        "E401", "answers-in-public", "hidden answers lie in the public folder, or in its git repository",
        "Everyone with the folder has the answers; every clone has all files that were ever committed.",
        "Move the answers to a folder of their own (geval challenge make does); start a new repository if they were "
        "committed.",
    ),
    Rule(
        "E402", "group-in-two-parts", "a document is in two parts",
        "A model that has seen one half of a document knows the names and the subject of the other half: scores are "
        "too good, and do not hold for new documents.",
        "Assign whole documents (or newspapers, or books: --group) to the parts: geval challenge split does.",
    ),
    Rule(
        "E403", "item-in-two-parts", "the same item is in two parts",
        "A model that memorises it in one part can answer it in the other.",
        "Remove the duplicates from the texts before they are cut.",
    ),
    Rule(
        "W403", "item-twice", "the same item is in a part more than once",
        "It counts twice, and if the answers differ, no guess is right for both.",
        "Remove the duplicates from the texts before they are cut.",
    ),
    Rule(
        "E404", "readable-in-inputs", "answers can be read in other inputs",
        f"The {NEIGHBOURS} words on each side of more than {MANY_READABLE:.0%} of the gaps, at least {FEW + 1}, "
        "stand in another input of this part, of dev or of test, with the answer between them, or 8 words on one "
        "side: no model is needed.",
        "Cut windows that do not overlap, with one gap each: geval challenge make does.",
    ),
    Rule(
        "W404", "some-readable-in-inputs", "some answers can be read in other inputs",
        f"The {NEIGHBOURS} words on each side of more than {SOME_READABLE:.0%} of the gaps stand in another input, "
        "with a word between them. A few such repetitions are normal in any text.",
        "See whether windows overlap, or texts are repeated.",
    ),
    Rule(
        "E405", "much-readable-in-train", "many answers can be read in the training set",
        f"The {NEIGHBOURS} words on each side of more than {MANY_IN_TEXTS:.0%} of the gaps, at least {FEW + 1}, "
        "stand there, with a word between them: the texts of the set are in train.",
        "Put texts that are the same in one part; look for documents with two names.",
    ),
    Rule(
        "W405", "readable-in-train", "gaps whose answer can be read in the training set",
        f"The {NEIGHBOURS} words on each side stand there, with a word between them. A few such repetitions are "
        "normal in any text.",
        "If there are many, look for a text that is in both, such as a reprint, a quotation or another edition.",
    ),
    Rule(
        "W406", "shared-ngram", "inputs that share a run of words with the training set",
        f"The run is as long as the {LENGTH_PERCENTILE}th percentile of the inputs, but of {LEAST_NGRAM} to "
        f"{MOST_NGRAM} words. A run in more than {MOST_DOCUMENTS} training documents is a phrase, and not "
        "counted.",
        "Look at these lines: reprints and quotations should be in one part; phrases do no harm.",
    ),
    Rule(
        "W407", "near-duplicate", "inputs that are almost in the training set",
        f"More than {NEAR_DUPLICATE:.0%} of their runs of {LEAST_NGRAM} words stand there, or one item there, or in "
        f"another set, has {SHARED_SHINGLES:.0%} of their runs of {SHINGLE} words, over half of their length.",
        "Keep a document and its copies in one part (--group), or leave all but one out.",
    ),
    Rule(
        "W408", "sentence-in-train", "a whole sentence of an input stands in the training set",
        f"Sentences of {LEAST_SENTENCE} words or more are compared, without their capitals and punctuation.",
        "Look at these lines: set phrases do no harm.",
    ),
    Rule(
        "W409", "few-groups", "a part has few documents",
        "Its score depends more on these documents than on the model, and intervals are too narrow.",
        "Give more documents, or smaller ones.",
    ),
    Rule(
        "W410", "train-overlaps", "windows of the training set overlap",
        "Its answers can be read in its other inputs, and models that count words count the same ones many times, "
        "which makes n-gram models worse.",
        "Cut windows that do not overlap, or say in the README that they do.",
    ),
    Rule(
        "E411", "answer-in-column", "a column of the input gives answers away",
        "A title, an id or another column contains the answer, forwards or backwards, or a code of it: the same cell "
        "stands for the same answer. In more than 10% of the items this cannot be chance.",
        "Leave the column out, or cut gaps that it does not answer.",
    ),
    Rule(
        "W411", "some-answers-in-column", "a column of the input contains some answers",
        "A title, an id or another column contains the answer of more than 3% of the items, beyond chance. A few are "
        "normal where titles repeat words of their text.",
        "Read the column; leave it out if it helps too much.",
    ),
    Rule(
        "E412", "sorted-by-answer", "items stand in the order of their answers",
        "The place of an item tells much about its answer: the alphabet's order, the order of lengths, or equal "
        "answers side by side.",
        "Shuffle the items: geval challenge make and split do.",
    ),
    Rule(
        "W412", "not-compared", "public files that were not compared with the answers",
        "They are too large, too many or damaged, or archives too deep in archives.",
        "Leave them out of the public folder, or unpack and read them yourself.",
    ),
)  # fmt: skip
BYTES_AT_ONCE = 8_000_000
UNKNOWN = 0  # the word of a gap whose answer is not known
_AROUND = re.compile(r"^[\W_]+|[\W_]+$")
_IGNORED = ("Mn", "Cf")  # marks that are put on letters, and invisible characters
_LETTERS = str.maketrans("łŁøØđĐıħŧ", "lLoOdDiht")  # letters with strokes, which have no decomposition
_SENTENCE_END = re.compile(r"[.!?][^\w\s]*$")


def folded(text: str) -> str:
    """Return a text without case, diacritics and invisible characters (soft hyphens too), in Unicode's form NFKC.

    >>> folded("Zo\u00adë") == folded("ZOE\u0308") == folded("ｚｏｅ")
    True
    """
    if not text.isascii():
        letters = unicodedata.normalize("NFKD", text).translate(_LETTERS)
        text = "".join(letter for letter in letters if unicodedata.category(letter) not in _IGNORED)
    return text.casefold()


class Vocabulary(dict[str, int]):
    """Numbers words: twice a number of the folded word without outer punctuation, plus 1 at the end of a sentence."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers: dict[str, int] = {}

    def __missing__(self, word: str) -> int:
        plain = _AROUND.sub("", folded(word)) or word
        number = self._numbers.setdefault(plain, len(self._numbers) + 1)  # 0 is UNKNOWN
        self[word] = 2 * number + bool(_SENTENCE_END.search(word))
        return self[word]


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The columns of an item's texts, left and right of the gap (the same if there is no gap), and of its group.

    With ``whole``, the text is the whole line.
    """

    left: int
    right: int
    group: int | None
    whole: bool = False

    @property
    def has_gap(self) -> bool:
        """Whether an item has a gap."""
        return self.left != self.right

    def cells(self, line: str) -> tuple[str, str, str]:
        """Return the texts left and right of the gap, and the group, of a line; "" for a missing cell."""
        if self.whole:
            return line, "", ""
        cells = line.split("\t")
        left, right, group = (
            cells[n] if n is not None and n < len(cells) else "" for n in (self.left, self.right, self.group)
        )
        return left, right if self.has_gap else "", group


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The files of one part, the first names of their header lines, and the columns."""

    part: str
    path: str
    expected: str | None
    header: str | None
    expected_header: str | None
    columns: Columns
    names: tuple[str, ...] = ()

    @property
    def is_hidden(self) -> bool:
        """Whether the set's answers are secret."""
        return self.part.startswith(HIDDEN_BEGINNING)

    def answers(self) -> list[str] | None:
        """Read the answers, if there are any; raises DataError."""
        return None if self.expected is None else list(_answers(self))


@dataclass(slots=True)
class Block:
    """Items: the words of all, one after another, and the start of each item (with the end of the last).

    ``gaps`` are the places of the gaps among the words, -1 for an item without one; ``groups`` number the documents;
    ``lines`` are the numbers of the items' lines in their file, from 1; ``known`` if there are answers; ``texts`` are
    the lines, if they are kept.
    """

    words: Numbers
    starts: Numbers
    gaps: Numbers
    groups: Numbers
    lines: Numbers
    known: bool
    texts: list[str] = field(default_factory=list)

    @property
    def items(self) -> int:
        """The number of items."""
        return len(self.starts) - 1

    @property
    def item_of(self) -> Numbers:
        """The item of each word."""
        return np.repeat(np.arange(self.items), np.diff(self.starts))


class Reader:
    """Reads the items of parts; all parts share the numbers of words and of groups."""

    def __init__(self) -> None:
        self.vocabulary = Vocabulary()
        self.groups: dict[str, int] = {}

    def blocks(self, source: Source, progress: Progress | None = None) -> Iterator[Block]:
        """Read a part, block by block; raises DataError, also if there are more or fewer answers than items.

        ``progress`` is called after each block with the number of bytes read and the file's size.
        """
        answers, first = _answers(source), 1
        with LineReader(source.path, header=source.header) as reader:
            while data := reader.block(BYTES_AT_ONCE):
                texts = decode_lines(data)
                words = list(islice(answers, len(texts)))
                if len(words) < len(texts):
                    raise _uneven(source, first + len(words) - 1)
                yield self._block(source, texts, words, first)
                first += len(texts)
                if progress is not None and reader.source.size:
                    progress(reader.source.position or 0, reader.source.size)
        if source.expected is not None and (more := sum(1 for _ in answers)):
            raise _uneven(source, first + more - 1)

    def whole(self, source: Source) -> Block:
        """Read a part as one block that keeps the lines; raises as :meth:`blocks`."""
        texts = list(read_lines(source.path, header=source.header))
        answers = list(islice(_answers(source), len(texts) + (source.expected is not None)))
        if len(answers) != len(texts):
            raise _uneven(source, sum(1 for _ in _answers(source)))
        block = self._block(source, texts, answers, 1)
        block.texts = texts
        return block

    def _block(self, source: Source, texts: list[str], answers: Sequence[str], first: int) -> Block:
        numbers: list[int] = []
        starts, gaps, groups = [0], [], []
        number_of = self.vocabulary.__getitem__
        known = source.expected is not None
        for text, answer in zip(texts, answers, strict=True):
            left, right, group = source.columns.cells(text.replace("\\n", " "))
            numbers.extend(map(number_of, left.split()))
            gaps.append(len(numbers) if source.columns.has_gap else -1)
            if source.columns.has_gap:
                numbers.append(number_of(answer) if known and answer else UNKNOWN)
            numbers.extend(map(number_of, right.split()))
            starts.append(len(numbers))
            groups.append(self.groups.setdefault(group, len(self.groups)))
        return Block(
            words=np.array(numbers, dtype=np.int64),
            starts=np.array(starts, dtype=np.int64),
            gaps=np.array(gaps, dtype=np.int64),
            groups=np.array(groups, dtype=np.int64),
            lines=np.arange(first, first + len(texts), dtype=np.int64),
            known=known,
        )


def _answers(source: Source) -> Iterator[str]:
    return repeat("") if source.expected is None else read_lines(source.expected, header=source.expected_header)


def _uneven(source: Source, answers: int) -> LineCountError:
    lines = sum(1 for _ in read_lines(source.path, header=source.header))
    return LineCountError(
        what="input",
        path=source.path,
        lines=lines,
        expected_path=source.expected or "",
        expected_lines=answers,
    )


def column_of(line: str, columns: Columns, word: int, *, gap: bool) -> int:
    r"""Return the column, from 1, at which a word of an item begins; ``word`` counts from 0 and includes the gap.

    With ``gap``, it is the column of the gap itself, where the right text begins.

    >>> column_of("x\tthe old\\nman\tthe sea", Columns(left=1, right=2, group=0), 2, gap=False)
    12
    """
    cells = line.split("\t")
    offsets = [sum(len(cell) + 1 for cell in cells[:n]) for n in range(len(cells))]
    if columns.right >= len(cells):
        return 1
    if gap:
        return offsets[columns.right] + 1
    places = _words_of(cells[columns.left], offsets[columns.left])
    if columns.has_gap:
        places += [offsets[columns.right], *_words_of(cells[columns.right], offsets[columns.right])]
    return places[word] + 1 if word < len(places) else 1


def _words_of(cell: str, offset: int) -> list[int]:
    matches = re.finditer(r"\\n|((?:(?!\\n)\S)+)", cell)
    return [offset + match.start() for match in matches if match[1]]


def find_sources(
    directory: str, answers: str | None, group: str | None, contexts: tuple[str, str] = ("", "")
) -> list[Source]:
    """Find the parts of a challenge that have an input: train first, then in natural order.

    Answers are taken from the folder ``answers`` first, if it is given. Raises MissingFileError if there is no part,
    another DataError for a file that cannot be read, and UsageError for a column that does not exist.
    """
    challenge = Challenge.open(directory)
    task = challenge.task
    header = read_header(directory, task.in_header)
    expected_header = read_header(directory, task.out_header)
    names = (name for name in challenge.split_names if name == TRAINING_SET or name.startswith(("dev", "test")))
    folders = (directory,) if answers is None else (answers, directory)
    file = task.expected_file or EXPECTED_FILE
    sources = []
    for name in sorted(names, key=lambda name: name != TRAINING_SET):
        path = find_file(os.path.join(directory, name, INPUT_FILE))
        if path is None:
            continue
        expected = (find_answers(os.path.join(place, name, file)) for place in folders)
        sources.append(
            Source(
                part=name,
                path=path,
                expected=next(filter(None, expected), None),
                header=header[0] if header else None,
                names=header or _numbered(path),
                expected_header=expected_header[0] if expected_header else None,
                columns=_columns_of(header or _numbered(path), group, contexts, challenge),
            )
        )
    if not sources:
        place = os.path.join(directory, TRAINING_SET, INPUT_FILE)
        raise MissingFileError(
            what="No file with the input", path=place, hint="train, dev-0 or test-A should have one"
        )
    return sources


def _columns_of(names: Sequence[str], group: str | None, contexts: tuple[str, str], challenge: Challenge) -> Columns:
    """Find the columns; without named contexts, the whole line is the text unless the metric is one of word gaps."""
    try:
        return columns_of(names, group, *contexts)
    except UsageError:
        if any(contexts) or group is not None or any("Hashed" in metric for metric in challenge.task.metrics):
            raise
        return Columns(left=0, right=0, group=None, whole=True)


def _numbered(path: str) -> tuple[str, ...]:
    first = next(read_lines(path), "")
    return tuple(str(number + 1) for number in range(first.count("\t") + 1))


def columns_of(names: Sequence[str], group: str | None, left_name: str = "", right_name: str = "") -> Columns:
    """Find the columns of the texts and of the group, which is the first column unless that is a context.

    Raises UsageError for a group that is no column, and as :func:`geval_py.reading.gap_columns.find_contexts`.

    >>> columns_of(["FileId", "Year", "LeftContext", "RightContext"], None)
    Columns(left=2, right=3, group=0, whole=False)
    """
    found = find_contexts(names, left_name, right_name)
    places = [names.index(name) for name in found if name]
    left, right = (places or [0])[0], (places or [0])[-1]
    if group is not None:
        check_group(group, names)
        return Columns(left=left, right=right, group=names.index(group))
    return Columns(left=left, right=right, group=0 if 0 not in (left, right) else None)
