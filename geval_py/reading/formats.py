r"""Formats of outputs beside TSV: read as the lines of an output, and written from them (``FORMATS``).

    {"words": ["the", "a", ""], "probabilities": [0.5, 0.25, 0.25]}    JSON lines      the:0.5 a:0.25 :0.25
    {"probabilities": {"the": 0.5, "a": 0.25, "": 0.25}}               the same, as a map

:func:`as_lines` puts a :class:`geval_py.reading.sources.VirtualFile` in the place of the path of such a file, so that
whatever reads an output reads its lines.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from typing import Any, NamedTuple

from geval_py.errors import DataError, MissingFileError
from geval_py.reading import answers, parquet, rewriting, rows, tool_files
from geval_py.reading.lines import read_lines
from geval_py.reading.sources import (
    STANDARD_INPUT,
    VirtualFile,
    find_file,
    format_ending,
    is_address,
)
from geval_py.reading.wordprobs import WordProbs
from geval_py.text import named


class Format(NamedTuple):
    """A format of outputs: the functions that read and write the lines of its files.

    ``read(path, max_bytes=…)`` yields the lines of a file, in the grammar of an output, as texts or as bytes of many
    lines; it raises TooLargeError for a file that unpacks to more bytes. ``write`` writes rows (their lines, parsed)
    and returns their number; without it the format is only read.
    ``notes`` yields what a user should know of a file.
    """

    read: Callable[..., Iterable[str | bytes]]
    write: Callable[[Any, rewriting.Draft], int] | None = None
    notes: Callable[..., Iterable[str]] | None = None


_JSON_LINES = Format(tool_files.read_json_lines, rows.write_json_lines)
_PARQUET = Format(parquet.read_parquet)
FORMATS = {  # by the endings of files
    ".jsonl": _JSON_LINES,
    ".ndjson": _JSON_LINES,
    ".parquet": _PARQUET,
    ".pq": _PARQUET,
    ".json": Format(tool_files.read_json_lines, notes=tool_files.notes_on_json),
    ".csv": Format(rows.read_csv, rows.write_csv, notes=rows.notes_on_csv),
    ".words.nbest": Format(tool_files.read_nbest_words),
    ".nbest": Format(tool_files.read_best),
    ".predictions.json": Format(tool_files.read_predictions, notes=tool_files.notes_on_json),
}


def format_of(path: str) -> Format | None:
    """Return the format of the file at a path by its ending; None for TSV.

    >>> format_of("out-lr=0.1.jsonl.xz") == FORMATS[".jsonl"]
    True
    """
    return FORMATS.get(format_ending(path))


def as_lines(path: str) -> str:
    """Return the path of an output or, in the place of one in another format, its lines."""
    format = format_of(path)
    return path if format is None else VirtualFile(path, format.read)


def notes_on(path: str) -> list[str]:
    """Return what a user should know of an output that was read, as which parts of it are left out."""
    format = format_of(path)
    if format is None or not isinstance(path, VirtualFile):
        return []
    notes = format.notes if path.read is format.read else None
    if path.read is answers.read_by_ids:
        notes = answers.notes_on_ids
    with suppress(DataError):  # which those who read it have met before
        return [f"{named(path)}: {note}" for note in notes(str(path), *path.options)] if notes else []
    return []


ANSWERS_ALONE = "each row lists one candidate, the answer, with its log-likelihood"  # as the LAMBADA of harnesses


def lists_answers_alone(path: str) -> bool:
    """Whether an output is of harnesses' rows with one candidate, the answer: it has losses, but no ranks."""
    if isinstance(path, VirtualFile):
        with suppress(DataError):  # which those who read it meet again
            if path.read is tool_files.read_json_lines:
                return tool_files.logs_answers_alone(str(path))
            return path.read is parquet.read_parquet and parquet.logs_answers_alone(str(path))
    return False


def read_output(path: str | os.PathLike[str], *, header: str | None = None) -> Iterator[WordProbs]:
    """Read an output's lines one by one: from a file, compressed or not, standard input (``-``) or a URL.

    A file that ends in .jsonl, .json, .parquet or .csv is in that format. ``header`` is the first name of the header
    line to skip, if the file begins with it. The file is opened when the first line is read. Raises MissingFileError
    and other DataErrors for a file, and MalformedLineError with path and line for the first line that is not in the
    format.
    """
    name = find_output(os.fspath(path))
    with closing(read_lines(name, header=header)) as lines:
        for _, row in rows.rows_of_lines(name, lines):
            yield row


def find_output(name: str) -> str:
    """Complete an output's path; in the place of one in another format are its lines. Raises MissingFileError."""
    if name == STANDARD_INPUT or is_address(name):
        return name
    path = find_file(name)
    if path is None:
        raise MissingFileError(what="No file with the test results", path=name)
    return as_lines(path)
