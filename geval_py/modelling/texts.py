"""Texts for language models, in blocks of whole lines: from files, or from sentences in memory."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeAlias

from geval_py.errors import EmptyFileError, UsageError
from geval_py.reading.lines import LineReader
from geval_py.reading.preparation import find_tokenizer
from geval_py.text import visible

TextBlock: TypeAlias = tuple[str, int, bytes]  # a path, the number of the first line, and lines
TextSource: TypeAlias = str | os.PathLike[str] | Iterable[str | Iterable[str]]

BLOCK_BYTES = 1 << 20
SENTENCES_AT_A_TIME = 10_000
_WHITE_SPACE = re.compile(rb"[\0\t-\r ]")  # of KenLM: lmplz and query differ in it


def blocks_of_files(paths: Sequence[str]) -> Iterator[TextBlock]:
    """Yield texts in blocks of whole lines, each with the path and the number of its first line.

    A byte order mark is dropped, and a missing last line end added. Raises EmptyFileError if there is no line, and
    otherwise as LineReader.
    """
    empty = True
    for path in paths:
        line = 1
        with LineReader(path) as reader:
            while block := reader.block(BLOCK_BYTES):
                yield path, line, block
                line += block.count(b"\n")
                empty = False
    if empty:
        raise EmptyFileError(what="text", path=paths[0])


def blocks_of(texts: TextSource) -> Iterator[TextBlock]:
    """Yield sentences, or the lines of the file at a path, in the same form as :func:`blocks_of_files`.

    Raises UsageError if there is no sentence, and as :func:`line_of`.
    """
    if isinstance(texts, (str, os.PathLike)):
        yield from blocks_of_files([os.fspath(texts)])
        return
    if not isinstance(texts, Iterable):
        raise UsageError(f"texts are sentences, or the path of a file, not {type(texts).__name__}")
    line, lines = 1, map(line_of, texts)
    while block := b"".join(islice(lines, SENTENCES_AT_A_TIME)):
        yield "", line, block
        line += SENTENCES_AT_A_TIME
    if line == 1:
        raise UsageError("there is no text: give its sentences, or the path of a file")


def prepared(blocks: Iterable[TextBlock], tokenizer: str | None) -> Iterator[TextBlock]:
    r"""Split lines into tokens with spaces between them, by the tokenizer of a name, if there is one.

    >>> list(prepared([("", 1, b'"Why?" I do.\n')], "13a"))
    [('', 1, b'" Why ? " I do .\n')]
    """
    if tokenizer is None:
        yield from blocks
        return
    spaced = find_tokenizer(tokenizer)
    for path, line, block in blocks:
        lines = block[:-1].decode(errors="surrogateescape").split("\n")
        yield path, line, b"".join(f"{spaced(text)}\n".encode(errors="surrogateescape") for text in lines)


def line_of(sentence: str | Iterable[str]) -> bytes:
    """Encode a sentence as a line: a string, in which line ends are white space, or words.

    Surrogates stand for bytes that are not UTF-8. Raises UsageError for a word that is empty, or has white space.
    """
    if isinstance(sentence, str):
        return _encoded(sentence).replace(b"\n", b" ") + b"\n"
    if not isinstance(sentence, Iterable):
        raise UsageError(f"a sentence is a string or a list of strings, not {type(sentence).__name__}")
    words = list(map(_encoded, sentence))
    if not all(words) or _WHITE_SPACE.search(b"".join(words)):
        wrong = next(word for word in words if not word or _WHITE_SPACE.search(word))
        raise UsageError(
            f"`{visible(wrong.decode(errors='replace'))}` is no word: it is empty or has white space in it"
        )
    return b" ".join(words) + b"\n"


def _encoded(text: str) -> bytes:
    if not isinstance(text, str):
        raise UsageError(f"a sentence is a string or a list of strings, and has no {type(text).__name__}")
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return text.encode(errors="surrogatepass")
