r"""Outputs in other formats than TSV, read as the lines of an output and written from them: ``FORMATS_IN``.

    {"words": ["the", "a", ""], "probabilities": [0.5, 0.25, 0.25]}    JSON lines      the:0.5 a:0.25 :0.25
    {"probabilities": {"the": 0.5, "a": 0.25, "": 0.25}}               the same, as a map

:func:`geval_py.reading.outputs.output_at` puts a :class:`Converted` in the place of the path of such a file, so that
whatever reads an output reads its lines. To score Parquet, nothing of it is read here, so the modules that read the
formats are imported where they are used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import islice

from geval_py.errors import EmptyFileError, MissingFileError, UsageError
from geval_py.reading.compression import compression_by_ending
from geval_py.reading.file_lines import FileLines
from geval_py.reading.lines import read_lines
from geval_py.reading.sources import STANDARD_INPUT, find_file, is_address, name_of
from geval_py.text import named
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from geval_py.reading.rewriting import Writable
    from geval_py.reading.rows import Lines, Parsed
    from geval_py.reading.sources import ListedRows
    from geval_py.reading.wordprobs import WordProbs

LINES_AT_ONCE = 64
CHARACTERS_AT_ONCE = 1 << 21


class FormatIn(Value):
    """A format of outputs: the ending of its files, and the functions that read and write its lines.

    ``read`` yields the lines of a file, in the grammar of an output; it raises TooLargeError for a compressed file
    that unpacks to more bytes than its second argument, and for any file of a binary format. ``write`` writes rows
    (their lines, parsed). Without ``write`` the format is only read. ``read_rows`` yields rows in buffers, or lines
    where they are in another form, for a format that has them so. ``is_binary`` means that the format compresses
    by itself.
    """

    name: str
    ending: str
    read: Callable[[str, int | None], Lines]
    write: Callable[[Parsed, Writable], None] | None
    read_rows: Callable[[str], Iterator[ListedRows | bytes]] | None = None
    is_binary: bool = False


class Converted(FileLines):
    """The lines of an output in another format, in the place of its path."""

    def pieces(self, max_bytes: int | None) -> Iterator[bytes]:
        return encoded_lines(str(self), max_bytes)

    def rows(self) -> Iterator[ListedRows | bytes] | None:
        format = format_of(str(self))
        return format.read_rows(str(self)) if format is not None and format.read_rows is not None else None


def format_of(path: str) -> FormatIn | None:
    """Return the format of the file at a path by its ending; None for TSV.

    >>> format_of("out-lr=0.1.jsonl.xz").name
    'jsonl'
    """
    name = name_of(path)
    return next((known for known in FORMATS_IN if name.endswith(known.ending)), None)


def format_ending(name: str) -> str:
    """Return the ending of a file's format, other than TSV, without that of a compression; "" for any other file.

    >>> format_ending("out-lr=0.1.jsonl.xz"), format_ending("out.tsv")
    ('.jsonl', '')
    """
    return next((known.ending for known in FORMATS_IN if name_of(name).endswith(known.ending)), "")


def encoded_lines(path: str, max_bytes: int | None = None) -> Iterator[bytes]:
    """Yield the lines of a file in another format, encoded and ended by LF, several in a piece.

    Raises TooLargeError for a file that unpacks to more than ``max_bytes``.
    """
    (format,) = (known for known in FORMATS_IN if known is format_of(path))
    with closing(format.read(path, max_bytes)) as lines:
        while piece := list(_some_of(lines)):
            yield "".join([f"{line}\n" for line in piece]).encode()


def _some_of(lines: Iterator[str]) -> Iterator[str]:
    """Yield the next lines: no more than one, if it is long."""
    size = 0
    for line in islice(lines, LINES_AT_ONCE):
        yield line
        size += len(line)
        if size >= CHARACTERS_AT_ONCE:
            return


def read_output(path: str | os.PathLike[str], *, header: str | None = None) -> Iterator[WordProbs]:
    """Read an output's lines one by one: from a file, compressed or not, standard input (``-``) or an address.

    A file that ends in .jsonl, .parquet or .csv is in that format. ``header`` is the first name of the header line to
    skip, if the file begins with it. The file is opened when the first line is read. Raises MissingFileError and
    other DataErrors for a file, and MalformedLineError with path and line for the first line that is not in the
    format.
    """
    from geval_py.reading import rows

    name = _found(os.fspath(path))
    with closing(read_lines(name, header=header)) as lines:
        for _, row in rows.rows_of_lines(name, lines):
            yield row


def convert(source: str, target: str) -> int:
    """Write the output at a path into a file in the format of its ending; return the number of lines.

    The file is compressed by its ending. Raises EmptyFileError, MissingFileError and other DataErrors of the source,
    MalformedLineError, and UsageError for a file that cannot be written, or not in that format.
    """
    from geval_py.reading import rewriting, rows

    path, format, count = _found(source), format_of(target), 0

    def counted(lines: Iterable[str]) -> Lines:
        nonlocal count
        for line in lines:
            count += 1
            yield line

    compression = compression_by_ending(target)
    if compression is not None and format is not None and format.is_binary:
        raise UsageError(message=f"{format.name} compresses by itself: leave the ending of {compression} out")
    if target == STANDARD_INPUT:
        raise UsageError(message="name a file to write: its ending is the format")
    if format is None and not name_of(target).endswith(".tsv"):
        endings = ", ".join(known.ending for known in FORMATS_IN if known.write is not None)
        raise UsageError(message=f"{named(target)} has no ending of a format: .tsv, {endings}")
    if format is not None and format.write is None:
        raise UsageError(message=f"{format.ending} is only read: it cannot be written")
    with closing(read_lines(path)) as lines, rewriting.written_whole(target, compression=compression) as file:
        if format is not None and format.write is not None:
            format.write(rows.rows_of_lines(path, counted(lines)), file)
        else:
            for line in counted(lines):
                file.write(f"{line}\n".encode())
        if not count:
            raise EmptyFileError(what="output", path=path)
    return count


def _found(name: str) -> str:
    """Complete an output's path; in the place of one in another format are its lines. Raises MissingFileError."""
    if name == STANDARD_INPUT or is_address(name):
        return name
    found = find_file(name)
    if found is None:
        raise MissingFileError(what="No file with the test results", path=name)
    return found if format_of(found) is None else Converted(found)


def _read_parquet(path: str, max_bytes: int | None) -> Lines:
    from geval_py.reading.parquet import read_parquet

    return read_parquet(path, max_bytes)


def _read_parquet_rows(path: str) -> Iterator[ListedRows | bytes]:
    from geval_py.reading.parquet import read_parquet_rows

    return read_parquet_rows(path)


def _write_parquet(parsed: Parsed, file: Writable) -> None:
    from geval_py.reading.parquet import write_parquet

    write_parquet(parsed, file)


def _read_csv(path: str, max_bytes: int | None) -> Lines:
    from geval_py.reading.rows import read_csv

    return read_csv(path, max_bytes)


def _write_csv(parsed: Parsed, file: Writable) -> None:
    from geval_py.reading.rows import write_csv

    write_csv(parsed, file)


def _write_json_lines(parsed: Parsed, file: Writable) -> None:
    from geval_py.reading.rows import write_json_lines

    write_json_lines(parsed, file)


def _read_by(name: str) -> Callable[[str, int | None], Lines]:
    def read(path: str, max_bytes: int | None) -> Lines:
        from geval_py.reading import tool_files

        found: Lines = getattr(tool_files, name)(path, max_bytes)
        return found

    return read


FORMATS_IN = (
    FormatIn(name="jsonl", ending=".jsonl", read=_read_by("read_json_lines"), write=_write_json_lines),
    FormatIn(
        name="parquet",
        ending=".parquet",
        read=_read_parquet,
        write=_write_parquet,
        read_rows=_read_parquet_rows,
        is_binary=True,
    ),
    FormatIn(name="csv", ending=".csv", read=_read_csv, write=_write_csv),
    FormatIn(name="words of n-best lists", ending=".words.nbest", read=_read_by("read_nbest_words"), write=None),
    FormatIn(name="n-best lists", ending=".nbest", read=_read_by("read_best"), write=None),
    FormatIn(name="BabyLM", ending=".predictions.json", read=_read_by("read_predictions"), write=None),
)
