"""The texts that a challenge is cut from: read as documents, assigned to parts, and cut into gaps.

A hash assigns documents to parts, so that no document moves to another part when a corpus grows.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from geval_py.errors import EmptyFileError, MissingFileError, UsageError
from geval_py.reading import splits
from geval_py.reading.files import JSON_ENDINGS, name_of, naming
from geval_py.reading.lines import LineReader
from geval_py.text import counted, named, natural_order, suggestion, visible

DEFAULT_SHARES = (80, 10, 10)
DEFAULT_SALT = "set"
ID, TEXT = "id", "text"
FILE_ID = "FileId"  # the column of the ids of plain files
DEFAULT_CONTEXT = 40  # words on each side
DEFAULT_SEED = "first gap"
DEFAULT_WORDS = r"\w"  # a word that may be a gap has a letter, a digit or an underscore
_LINE_ENDS = "\v\f\x1c\x1d\x1e\x85\u2028\u2029"  # of str.splitlines, beside LF and CR
_AS_LINE_FEED = str.maketrans(dict.fromkeys(_LINE_ENDS, "\n"))
_AS_SPACE = str.maketrans(dict.fromkeys(f"\t\n\r{_LINE_ENDS}", " "))
FEW_GROUPS = 10  # with fewer in a part, its score depends more on these documents than on the model


def draw(purpose: str, name: str, sides: int) -> int:
    """Draw a number below ``sides`` by the SHA-256 of a purpose and a name; always the same number.

    >>> draw("set", "gaz-001", 100)
    17
    """
    return int.from_bytes(sha256(f"{purpose} {name}".encode("utf-8", "surrogatepass")).digest()[:8]) % sides


class Parts(NamedTuple):
    """The parts of a challenge, train first and the hidden one last, their shares, and the salt of the hash."""

    shares: tuple[int, ...] = DEFAULT_SHARES
    salt: str = DEFAULT_SALT
    names: tuple[str, ...] = (splits.TRAINING_SET, splits.DEV_SET, splits.HIDDEN_SET)

    def part_of(self, group: str) -> str:
        """Return the part that a group belongs to, whatever other groups there are.

        >>> Parts().part_of("gaz-001"), Parts(salt="another").part_of("gaz-001")
        ('train', 'train')
        """
        drawn = draw(self.salt, group, sum(self.shares))
        bounds = zip(self.names, accumulate(self.shares), strict=True)
        return next(name for name, bound in bounds if drawn < bound)


def check_group(column: str, columns: Sequence[str]) -> None:
    """Raise UsageError if the column to group by does not exist."""
    if column not in columns:
        advice = suggestion(column, columns)
        there = visible(", ".join(columns))
        raise UsageError(f"no column {visible(column)} to group by\n  {advice}there are {there}")


class Document(NamedTuple):
    """One text, with its columns, the id first, and the path of its file."""

    id: str
    text: str
    columns: Mapping[str, str]
    path: str = ""


def read_documents(paths: Iterable[str], *, id: str = ID, text: str = TEXT) -> list[Document]:
    """Read documents from files and folders; ``id`` and ``text`` name the columns of JSON and TSV.

    All documents get the same columns; a missing one is "". Raises MissingFileError, UnreadableFileError (also, with
    the line, for bytes that are not UTF-8 and for a malformed line), EmptyFileError and UsageError (two documents
    with the same id).
    """
    documents: list[Document] = []
    for path in paths:
        if not os.path.exists(path):
            raise MissingFileError(what="No file with a text", path=path)
        if not os.path.isdir(path):
            documents += _read_file(path, os.path.basename(path), id, text)
        names = (file.relative_to(path).as_posix() for file in Path(path).rglob("*") if file.is_file())
        for name in sorted((name for name in names if not re.search(r"(^|/)\.", name)), key=natural_order):
            documents += _read_file(os.path.join(path, name), name, id, text)
    columns = dict.fromkeys(name for document in documents for name in document.columns)
    seen: dict[str, str] = {}
    for document in documents:
        if document.id in seen:
            places = " and ".join(dict.fromkeys(map(named, (seen[document.id], document.path))))
            raise UsageError(f"two documents have the id {visible(document.id)}\n  in {places}")
        seen[document.id] = document.path
    return [one._replace(columns={name: one.columns.get(name, "") for name in columns}) for one in documents]


def _read_file(path: str, name: str, id: str, text: str) -> Iterator[Document]:
    """Yield the documents of a file, whose name is the id of a plain text."""
    plain = name_of(name)
    with naming(path):
        if plain.endswith(JSON_ENDINGS):
            rows = _json_rows(path)
        elif plain.endswith(".tsv"):
            rows = _tsv_rows(path, text)
        else:
            stem = os.path.splitext(plain)[0]
            content = _text_of(path).translate(_AS_LINE_FEED)
            yield Document(stem, content, {FILE_ID: stem.translate(_AS_SPACE)}, path)
            return
        for line, values in rows:
            missing = [column for column in (id, text) if not values.get(column)]
            if missing:
                there = f"there are {visible(', '.join(values))}; --id and --text name them"
                raise ValueError(f"there is no {visible(missing[0])} ({there}), line {line}")
            content = values[text].replace("\r", "").translate(_AS_LINE_FEED)
            others = (column for column in values if column not in (id, text))
            columns = {name.translate(_AS_SPACE): values[name].translate(_AS_SPACE) for name in (id, *others)}
            yield Document(values[id], content, columns, path)


def _text_of(path: str) -> str:
    """Return a file's text; raises ValueError unless it is UTF-8."""
    with LineReader(path) as reader:
        data = b"".join(iter(reader.block, b""))
    if not data:
        raise EmptyFileError(what="text", path=path)
    try:
        return data.decode().replace("\r", "").removesuffix("\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(f"it is not UTF-8 (byte 0x{data[error.start]:02X}), line {line}") from error


def _json_rows(path: str) -> Iterator[tuple[int, dict[str, str]]]:
    for number, line in enumerate(_text_of(path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            values = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"a line is not JSON ({error}), line {number}") from error
        if not isinstance(values, dict):
            raise ValueError(f"a line is not an object with a text, line {number}")
        for name, value in values.items():
            if not isinstance(value, str):
                values[name] = "" if value is None else json.dumps(value, ensure_ascii=False)
        yield number, values


def _tsv_rows(path: str, text: str) -> Iterator[tuple[int, dict[str, str]]]:
    first, *lines = _text_of(path).split("\n")
    names = first.split("\t")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"two columns have the name {visible(twice)}, line 1")
    for number, line in enumerate(lines, 2):
        cells = line.split("\t")
        if len(cells) != len(names):
            width = counted(len(cells), "column")
            raise ValueError(f"{width}, where the first line names {len(names)}, line {number}")
        values = dict(zip(names, cells, strict=True))
        if text in values:
            values[text] = values[text].replace("\\n", "\n")
        yield number, values


class Cut(NamedTuple):
    """The options of cutting gaps.

    ``every`` is the least number of words from a gap to the next, None for the width of a window; with ``random``,
    each distance is drawn between that number and twice that. A word may be a gap if ``words`` is found in it and it
    is one of ``frequent``, if these are given.
    """

    context: int = DEFAULT_CONTEXT
    every: int | None = None
    random: bool = False
    words: re.Pattern[str] = re.compile(DEFAULT_WORDS)
    frequent: Container[str] | None = None
    seed: str = DEFAULT_SEED

    @property
    def window(self) -> int:
        """The number of words in a window."""
        return 2 * self.context + 1

    @property
    def step(self) -> int:
        """The least number of words from a gap to the next."""
        return self.window if self.every is None else self.every


class Gap(NamedTuple):
    """A word cut out of a document: its place in words, from 0, and the texts on both sides."""

    document: Document
    place: int
    left: str
    word: str
    right: str

    def input_line(self) -> str:
        """Return the line of in.tsv, without its end."""
        texts = (text.replace("\t", " ").replace("\n", "\\n") for text in (self.left, self.right))
        return "\t".join((*self.document.columns.values(), *texts))


def cut_gaps(document: Document, cut: Cut) -> Iterator[Gap]:
    """Cut the gaps of a document, in order; a document that is shorter than a window has none.

    The place of the first gap is drawn by the hash of the document's id, among the places that leave room for as many
    gaps as possible. A word that may not be a gap is skipped for the next one.
    """
    text, context = document.text, cut.context
    bounds = [match.span() for match in re.finditer(r"\S+", text)]
    spare = len(bounds) - cut.window
    if spare < 0:
        return
    place = context + draw(cut.seed, document.id, spare % cut.step + 1)
    while place + context < len(bounds):
        start, end = bounds[place]
        word = text[start:end]
        is_half = text.startswith("-\n", end - 1) or text.startswith("-\n", max(0, start - 2), start)
        if is_half or not cut.words.search(word) or (cut.frequent is not None and word not in cut.frequent):
            place += 1  # a half is one of a word that is hyphenated at a line end
            continue
        left, right = text[bounds[place - context][0] : start], text[end : bounds[place + context][1]]
        yield Gap(document, place, left.rstrip(" \t"), word, right.lstrip(" \t"))
        place += cut.step + (draw(f"{cut.seed} {place}", document.id, cut.step) if cut.random else 0)


def read_pattern(text: str) -> re.Pattern[str]:
    """Read a regular expression; raises UsageError."""
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageError(f"--words is not a regular expression: {visible(text)}\n  {error}") from error
