r"""Formats of outputs beside TSV: read as the lines of an output, and written from them (``FORMATS``).

    {"words": ["the", "a", ""], "probabilities": [0.5, 0.25, 0.25]}    JSON lines      the:0.5 a:0.25 :0.25
    {"probabilities": {"the": 0.5, "a": 0.25, "": 0.25}}               the same, as a map

:func:`as_lines` puts a :class:`geval_py.reading.sources.VirtualFile` in the place of the path of such a file, so that
whatever reads an output reads its lines.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import Any, NamedTuple

from geval_py.reading import answers, parquet, rewriting, rows, tool_files
from geval_py.reading.files import File, format_ending
from geval_py.reading.lines import read_lines
from geval_py.reading.outputs import output_named
from geval_py.reading.rows import Lines
from geval_py.reading.wordprobs import WordProbs


class Format(NamedTuple):
    """A format of outputs: the functions that read and write the lines of its files.

    ``read(path, max_bytes=…)`` yields the lines of a file, in the grammar of an output; it raises TooLargeError for a
    file that unpacks to more bytes. ``write`` writes rows (their lines, parsed; Parquet takes them by the batch) and
    returns their number; without it the format is only read.
    ``read_rows`` yields rows in buffers, or text where they are in another form, for a format that has them so.
    ``notes`` yields what a user should know of a file.
    """

    read: Callable[..., Lines]
    write: Callable[[Any, rewriting.Draft], int] | None = None
    read_rows: Any = None
    notes: Callable[..., Iterable[str]] | None = None


_JSON_LINES = Format(tool_files.read_json_lines, rows.write_json_lines)
_PARQUET = Format(parquet.read_parquet, parquet.write_parquet, parquet.read_parquet_rows)
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


def output_lines(file: File) -> Iterator[bytes]:
    format = format_of(file.name)
    return (f"{line}\n".encode() for line in format.read(file.name, max_bytes=file.max_bytes))


def answer_lines(file: File) -> Iterator[bytes]:
    return (f"{line}\n".encode() for line in answers.read_answers(file.name, max_bytes=file.max_bytes))


ANSWERS_ALONE = "each row lists one candidate, the answer, with its log-likelihood"  # as the LAMBADA of harnesses


def read_output(path: str | os.PathLike[str], *, header: str | None = None) -> Iterator[WordProbs]:
    """Read an output's lines one by one: from a file, compressed or not, standard input (``-``) or an address.

    A file that ends in .jsonl, .json, .parquet or .csv is in that format. ``header`` is the first name of the header
    line to skip, if the file begins with it. The file is opened when the first line is read. Raises MissingFileError
    and other DataErrors for a file, and MalformedLineError with path and line for the first line that is not in the
    format.
    """
    file = output_named(os.fspath(path)).file
    with closing(read_lines(file, header=header)) as lines:
        for _, row in rows.rows_of_lines(file.name, lines):
            yield row
