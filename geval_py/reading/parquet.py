"""Outputs in Parquet, a row a line: columns of lists, of words and of their numbers, or a column of maps.

The columns have the keys of JSON lines (:mod:`geval_py.reading.other_formats`); other columns are left out. pyarrow
reads and writes them, of the extra parquet. The details that lighteval logs (``details_TASK_DATE.parquet``) are read,
too: the choices of its ``doc``, with the logarithms of its ``model_response``.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from itertools import islice
from operator import sub

from geval_py.errors import TooLargeError, UnreadableFileError
from geval_py.reading import rows
from geval_py.reading.arrow import compute, leaves_in, leaves_of, lengths, pyarrow, reading, starts_in, text_size
from geval_py.reading.lines import DEFAULT_MAX_BYTES, MOST_LINE_BYTES
from geval_py.reading.parquet_headers import (
    MOST_FOOTER_BYTES,
    Group,
    Pages,
    damaged,
    pages_of,
    read_footer,
    without_types,
)
from geval_py.reading.parquet_lists import Decoding, ListColumn, NotUsualError, read_lists, usual_leaf
from geval_py.reading.sources import is_regular, is_remote, naming

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

    from geval_py.reading.rewriting import Writable

KEYS = (rows.WORDS, rows.PROBABILITIES, rows.LOGARITHMS, rows.BUCKETS)
PAIRS = ([rows.WORDS, rows.PROBABILITIES], [rows.WORDS, rows.LOGARITHMS])
DOC, CHOICES, RESPONSE = "doc", "choices", "model_response"  # columns of lighteval's details, and a field
ROWS_AT_ONCE, BYTES_AT_ONCE = 8192, 1 << 23
ROWS_OF_TEXT = 64
ROWS_OF_GROUP, BYTES_OF_GROUP = 1 << 20, 1 << 26  # that are written
MOST_IN_A_LIST = 1 << 17  # of the footer
BUFFER_BYTES = 1 << 18
BYTES_OF_OBJECT = 32  # of Python's, for an entry of a list
BYTES_OF_VALUE = 12  # that a value takes, beside its page: a number or code, and its place in lists
SHORT_WORD = 2 * BYTES_OF_VALUE  # bytes that a word and its number are counted for anyway
MOST_UNPACKED_BYTES, MOST_RATIO = 1 << 28, 256  # of a row group; a larger one may not be packed more tightly


class ParquetFile:
    """An opened Parquet file on this machine: its known columns, in batches of rows; raises UnreadableFileError.

    ``choose`` chooses one column of texts or numbers among the names, in place of the known ones. Raises
    TooLargeError for a file that unpacks to more than ``max_bytes``; by default, to more than DEFAULT_MAX_BYTES and
    to more than MOST_RATIO times its size.

    pyarrow's own class of this name is built upon the same reader, and takes a third longer to import.
    """

    def __init__(
        self,
        path: str,
        file: BinaryIO,
        choose: Callable[[list[str]], str] | None = None,
        max_bytes: int | None = None,
    ) -> None:
        self._path, self._file, self._pa = path, file, pyarrow()
        self._groups, size, footer = read_footer(path, file)
        self._unpacked = _Unpacked(
            path, max(DEFAULT_MAX_BYTES, MOST_RATIO * size) if max_bytes is None else max_bytes
        )
        with reading(path):
            self._metadata = self._opened(io.BytesIO(without_types(footer))).metadata
            self._plain = self._reader()
            schema = self._plain.schema_arrow
            self.names, paths = schema.names, self._plain.column_paths
        self._known = [choose(self.names)] if choose else [name for name in KEYS if name in self.names]
        self._is_lighteval = not self._known and {DOC, RESPONSE} <= {*self.names}
        if choose:
            self._texts = {*self._known} if check_column(path, schema, self._known[0]) else set()
        else:
            self._texts = {rows.WORDS}
            _check_types(path, schema, self._pa.types)
        if self._is_lighteval:
            _check_lighteval(path, schema, self._pa.types)
        elif not self._known:
            wanted = f"{rows.WORDS} and {rows.PROBABILITIES}, or {rows.LOGARITHMS}"
            found = ", ".join(self.names[:8])
            raise UnreadableFileError(path=path, reason=f"its columns are {found}; {wanted} are wanted")
        if any(len(group.columns) != len(paths) for group in self._groups):
            raise damaged(path, "a row group has not all columns")
        inner = {(DOC, CHOICES), (RESPONSE, rows.LOGARITHMS)} if self._is_lighteval else set()
        self._leaves = [n for n, leaf in enumerate(paths) if leaf[0] in self._known or tuple(leaf[:2]) in inner]
        self._words = [number for number in self._leaves if paths[number][0] in self._texts]
        columns = self._metadata.schema
        self._strings = [leaf for leaf in self._leaves if columns.column(leaf).physical_type == "BYTE_ARRAY"]
        leaves = [usual_leaf(paths[leaf][0], leaf, columns.column(leaf)) for leaf in self._leaves]
        usual = [leaf for name in KEYS for leaf in leaves if leaf is not None and leaf.name == name]
        self._usual = usual if len(leaves) == 2 and [leaf.name for leaf in usual] in PAIRS else []
        self._coded, self._rows = None, 0

    def _reader(self, **options: Any) -> Any:
        return self._opened(self._file, metadata=self._metadata, **options)

    def _opened(self, file: BinaryIO, **options: Any) -> Any:
        from pyarrow._parquet import ParquetReader

        reader = ParquetReader()
        reader.open(
            file,
            buffer_size=BUFFER_BYTES,
            pre_buffer=False,
            thrift_string_size_limit=MOST_FOOTER_BYTES,
            thrift_container_size_limit=MOST_IN_A_LIST,
            **options,
        )
        return reader

    def batches(self, decoding: Decoding | None = None) -> Iterator[Any]:
        """Yield record batches with the known columns; ``decoding`` decodes lists of the usual form."""

        def headers(group: Group) -> dict[int, Pages]:
            return {leaf: pages_of(self._path, self._file, group.columns[leaf]) for leaf in self._leaves}

        are_large = sum(group.rows for group in self._groups) >= ROWS_AT_ONCE * len(self._groups)
        mapped = decoding.threads.map_in_order if decoding and are_large else map
        for number, (group, pages) in enumerate(zip(self._groups, mapped(headers, self._groups), strict=True)):
            yield from self._of_group(number, group, pages, decoding)

    def _of_group(
        self, number: int, group: Group, pages: dict[int, Pages], decoding: Decoding | None
    ) -> Iterator[Any]:
        self._unpacked.start_group(number + 1, sum(of.stored for of in pages.values()))
        self._unpacked.add(sum(of.values * BYTES_OF_VALUE + of.unpacked for of in pages.values()))
        coded = self._words == self._strings and all(_is_coded(pages[leaf]) for leaf in self._words)
        for leaf in self._strings if not coded else ():
            if pages[leaf].dictionary:
                self._unpacked.add(pages[leaf].values * self._longest_word(number, leaf))
        at_once = max(1, min(ROWS_AT_ONCE, BYTES_AT_ONCE * group.rows // max(1, self._unpacked.of_group)))
        of_pyarrow = self._by_pyarrow(number, pages, coded, at_once)
        columns = self._columns(group, pages, coded, decoding) if decoding and self._usual else None
        stream = of_pyarrow if columns is None else self._by_decoder(columns, group.rows, at_once, of_pyarrow)
        while True:
            with reading(self._path):
                found = next(stream, None)
                if found is None:
                    return
                batch, are_short = found
                batch.validate()
                values, text = _count(batch, are_short)
                if self._is_lighteval:
                    inner = [batch.column(DOC).field(0), batch.column(RESPONSE).field(0)]
                    batch = self._pa.RecordBatch.from_arrays(inner, [CHOICES, rows.LOGARITHMS])
            if coded:
                self._unpacked.add(max(0, text - values * BYTES_OF_VALUE))
            yield from self._pieces(batch, values * BYTES_OF_OBJECT + text)

    def _columns(
        self, group: Group, pages: dict[int, Pages], coded: bool, decoding: Decoding
    ) -> list[ListColumn] | None:
        """Return the columns of a row group for a decoder; None if one is not of the usual form."""
        try:
            return [
                ListColumn(self._file, leaf, group.columns[leaf.number], pages[leaf.number], coded, decoding)
                for leaf in self._usual
            ]
        except NotUsualError:
            return None

    def _by_decoder(
        self, columns: list[ListColumn], count: int, at_once: int, of_pyarrow: Iterator[tuple[Any, bool]]
    ) -> Iterator[tuple[Any, bool]]:
        """Yield what :meth:`_by_pyarrow` yields, by a decoder, up to rows that are not of the usual form."""
        done = 0
        try:
            for batch in read_lists(columns, count, at_once):
                done += batch.num_rows
                yield batch, max(column.longest for column in columns) <= SHORT_WORD
        except NotUsualError:
            yield from _after(done, of_pyarrow)

    def _by_pyarrow(
        self, number: int, pages: dict[int, Pages], coded: bool, at_once: int
    ) -> Iterator[tuple[Any, bool]]:
        """Yield batches of rows, with whether the words in their dictionaries are known to be short."""
        options = {"row_groups": [number], "column_indices": self._leaves, "use_threads": False}
        plain = ((batch, False) for batch in self._plain.iter_batches(at_once, **options))
        if not coded:
            yield from plain
            return
        entries, done = sum(pages[leaf].entries for leaf in self._words), 0
        are_short: bool | None = None
        for batch in self._coded_reader().iter_batches(at_once, **options):
            words = [leaf.dictionary for leaf in leaves_in(batch) if hasattr(leaf, "dictionary")]
            found = sum(map(len, words))
            if are_short is None and found:  # pyarrow reads the dictionary with the first word
                if found != entries:  # it leaves out a word that is there twice, and the numbers of others are false
                    break
                are_short = all(map(_are_short, words))
            done += batch.num_rows
            yield batch, bool(are_short)
        else:
            return
        self._unpacked.add(sum(pages[leaf].values * self._longest_word(number, leaf) for leaf in self._words))
        yield from _after(done, plain)

    def _pieces(self, batch: Any, size: int) -> Iterator[Any]:
        """Split a batch that is too large for a line; raises UnreadableFileError for a row that is."""
        with reading(self._path):
            pieces = list(_pieces(batch, size, MOST_LINE_BYTES))
        for piece, of_piece in pieces:
            self._rows += piece.num_rows
            if of_piece > MOST_LINE_BYTES:
                row = rows.Row(path=self._path, number=self._rows)
                raise row.error("", f"it unpacks to {of_piece} bytes, more than {MOST_LINE_BYTES}")
            yield piece

    def _coded_reader(self) -> Any:
        """Return a reader that keeps words as numbers of a dictionary."""
        if self._coded is None:
            with reading(self._path):
                self._coded = self._reader(read_dictionary=self._strings)
        return self._coded

    def _longest_word(self, group: int, leaf: int) -> int:
        """Return the size of the longest word of a dictionary, of which a part of the words are numbers.

        pyarrow reads the dictionary with the first word that refers to it.
        """
        with reading(self._path):
            for batch in self._coded_reader().iter_batches(ROWS_AT_ONCE, [group], [leaf], use_threads=False):
                (words,) = leaves_of(batch.column(0))
                if len(words.dictionary):
                    return int(compute("max", lengths(words.dictionary)).as_py() or 0)
        return 0


class _Unpacked:
    """Counts the bytes that a file unpacks to, against the limits of a row group and of the file."""

    def __init__(self, path: str, most: int) -> None:
        self._path, self._most, self._of_file = path, most, 0

    def start_group(self, number: int, stored: int) -> None:
        self._number, self._stored, self.of_group = number, stored, 0

    def add(self, size: int) -> None:
        """Count more bytes; raises UnreadableFileError for too many in the row group, TooLargeError in the file."""
        self.of_group += size
        self._of_file += size
        most = max(MOST_UNPACKED_BYTES, MOST_RATIO * self._stored)
        if self.of_group > most:
            reason = f"row group {self._number} would unpack to more than {most} bytes, from {self._stored}"
            raise UnreadableFileError(path=self._path, reason=f"{reason}; write smaller row groups, or TSV")
        if self._of_file > self._most:
            raise TooLargeError(path=self._path, max_bytes=self._most)


def _is_coded(pages: Pages) -> bool:
    """Whether all words are numbers of a dictionary, one that is small enough to look at for each batch."""
    return pages.coded == {True} and pages.dictionary <= BYTES_AT_ONCE


def _after(rows: int, stream: Iterator[tuple[Any, bool]]) -> Iterator[tuple[Any, bool]]:
    """Leave out the first rows of batches."""
    for batch, are_short in stream:
        yield batch.slice(rows), are_short
        rows = max(0, rows - batch.num_rows)


def _are_short(words: Any) -> bool:
    """Whether no word has more than SHORT_WORD bytes."""
    starts = starts_in(words)
    return max(map(sub, starts[1:], starts), default=0) <= SHORT_WORD


def _pieces(batch: Any, size: int, most: int) -> Iterator[tuple[Any, int]]:
    """Split a batch into pieces of at most so many bytes, or of one row, and yield them with their sizes."""
    if size <= most or batch.num_rows <= 1:
        yield batch, size
        return
    half = batch.num_rows // 2
    for piece in (batch.slice(0, half), batch.slice(half)):
        yield from _pieces(piece, _size(piece), most)


def _size(batch: Any) -> int:
    """Compute how many bytes Python's objects for a batch take, at least, before they are made."""
    values, text = _count(batch)
    return values * BYTES_OF_OBJECT + text


def _count(batch: Any, are_short: bool = False) -> tuple[int, int]:
    """Count the values in a batch, and the bytes of its words, each as often as it is there.

    If the words of dictionaries ``are_short``, their bytes are not counted, which would take longer.
    """
    leaves = leaves_in(batch)
    counted = [leaf for leaf in leaves if not (are_short and hasattr(leaf, "dictionary"))]
    return sum(map(len, leaves)), sum(map(text_size, counted))


@contextmanager
def opened(
    path: str, choose: Callable[[list[str]], str] | None = None, max_bytes: int | None = None
) -> Iterator[ParquetFile]:
    """Open a Parquet file, for its known columns or a chosen one.

    Raises UnreadableFileError, and UsageError without pyarrow; for ``max_bytes`` see :class:`ParquetFile`.
    """
    pyarrow()
    if not is_regular(path) or is_remote(path):
        raise UnreadableFileError(path=path, reason="Parquet is read from one file on this machine")
    with naming(path):
        raw = open(path, "rb")
    with raw:
        yield ParquetFile(path, raw, choose, max_bytes)


def batches(path: str, max_bytes: int | None = None, decoding: Decoding | None = None) -> Iterator[Any]:
    """Yield record batches with the known columns; raises as :func:`opened`, and TooLargeError.

    ``decoding`` decodes lists of the usual form (:mod:`geval_py.reading.parquet_lists`), several times as fast.
    """
    with opened(path, max_bytes=max_bytes) as file:
        yield from file.batches(decoding)


def check_column(path: str, schema: Any, name: str) -> bool:
    """Whether a column has texts, not numbers; raises UnreadableFileError for anything else."""
    types, count = pyarrow().types, schema.names.count(name)
    if count != 1:
        reason = f"column {rows.quoted(name)}: there {'are two' if count else 'is none'}"
        raise UnreadableFileError(path=path, reason=reason)
    found = schema.field(name).type
    value = found.value_type if types.is_dictionary(found) else found
    is_text: bool = types.is_string(value) or types.is_large_string(value)
    if not is_text and not types.is_floating(value) and not types.is_integer(value):
        raise UnreadableFileError(
            path=path, reason=f"column {rows.quoted(name)}: texts or numbers are wanted, not {found}"
        )
    return is_text


def _check_types(path: str, schema: Any, types: Any) -> None:
    """Raise UnreadableFileError unless the known columns are lists of words, and lists or maps of numbers."""
    for name in KEYS:
        if name not in schema.names:
            continue
        if schema.names.count(name) > 1:
            raise UnreadableFileError(path=path, reason=f"column {name}: there are two")
        found = schema.field(name).type
        is_map = types.is_map(found) and name != rows.WORDS
        is_list = types.is_list(found) or types.is_large_list(found)
        value = found.item_type if is_map else found.value_type if is_list else None
        value = value.value_type if value is not None and types.is_dictionary(value) else value
        if name == rows.WORDS:
            fits = value is not None and (types.is_string(value) or types.is_large_string(value))
        else:
            fits = value is not None and (types.is_floating(value) or types.is_integer(value))
            fits = fits and (not is_map or types.is_string(found.key_type) or types.is_large_string(found.key_type))
        if not fits:
            wanted = "a list of strings" if name == rows.WORDS else "a list or a map of numbers"
            raise UnreadableFileError(path=path, reason=f"column {name}: {wanted} is wanted, not {found}")


def _check_lighteval(path: str, schema: Any, types: Any) -> None:
    """Raise UnreadableFileError unless lighteval's details are of a multiple-choice task."""
    for of, key, kinds in ((DOC, CHOICES, ("string", "large_string")), (RESPONSE, rows.LOGARITHMS, ("double",))):
        found = schema.field(of).type if schema.names.count(of) == 1 else pyarrow().null()
        names = [field.name for field in found] if types.is_struct(found) else []
        inner = found.field(key).type if names.count(key) == 1 else None
        is_list = inner is not None and (types.is_list(inner) or types.is_large_list(inner))
        if inner is None or not is_list or str(inner.value_type) not in kinds:
            reason = f"column {of}.{key}: lighteval's details of a multiple-choice task have a list there"
            raise UnreadableFileError(path=path, reason=reason)


def read_parquet(path: str, max_bytes: int | None = None) -> Generator[str]:
    """Yield the lines of a Parquet file; raises UnreadableFileError, with row and column, and TooLargeError."""
    number = 1
    for batch in batches(path, max_bytes):
        yield from lines_of_batch(path, batch, number)
        number += batch.num_rows


def lines_of_batch(path: str, batch: Any, number: int) -> Iterator[str]:
    """Yield the lines of a batch, whose first row has a number; raises as :func:`read_parquet`."""
    with reading(path):
        coded = [leaf for leaf in leaves_in(batch) if hasattr(leaf, "dictionary")]
        for leaf in coded:  # an error for a code without a word: asked for that word, pyarrow may end the process
            text_size(leaf)
        longest = max((compute("max", lengths(leaf.dictionary)).as_py() or 0 for leaf in coded), default=0)
    for start in range(0, batch.num_rows, ROWS_OF_TEXT):
        with reading(path):
            some = batch.slice(start, ROWS_OF_TEXT)
            entries, text = _count(some, are_short=True)
            are_few = entries * (BYTES_OF_OBJECT + longest) + text <= BYTES_AT_ONCE
            pieces = [(some, 0)] if are_few else list(_pieces(some, _size(some), BYTES_AT_ONCE))
        for piece, _ in pieces:
            with reading(path):
                found = piece.to_pylist()
            for values in found:
                row = rows.Row(path=path, number=number)
                if CHOICES in values:
                    words = rows.words_of_choices(row, f"{DOC}.{CHOICES}", values.pop(CHOICES) or ())
                    values = {rows.WORDS: words, **values}
                yield rows.line_of(row, {name: _as_map(value, row) for name, value in values.items()})
                number += 1


def _as_map(value: Any, row: rows.Row) -> Any:
    """Turn the pairs of a map into one; raises UnreadableFileError for a word that is there twice."""
    if not (isinstance(value, list) and value and isinstance(value[0], tuple)):
        return value
    found: dict[Any, Any] = dict(value)
    if len(found) < len(value):
        raise row.error("", "a word is twice in the map")
    return found


def write_parquet(parsed: rows.Parsed, file: Writable) -> None:
    """Write rows, with a column for each key."""
    pa = pyarrow()
    numbers = pa.list_(pa.float64())
    types = {name: pa.list_(pa.string()) if name == rows.WORDS else numbers for name in KEYS}
    schema = pa.schema(list(types.items()))
    taking = iter(parsed)
    from pyarrow.parquet import ParquetWriter

    with ParquetWriter(_Sink(file), schema) as writer:
        group, size = [], 0
        while some := list(islice(taking, ROWS_AT_ONCE)):
            values = [rows.values_of(one) for _, one in some]
            arrays = [pa.array([of.get(name) for of in values], types[name]) for name in types]
            group.append(pa.record_batch(arrays, schema=schema))
            size += group[-1].nbytes
            if size >= BYTES_OF_GROUP or len(group) * ROWS_AT_ONCE >= ROWS_OF_GROUP:
                writer.write_table(pa.Table.from_batches(group), ROWS_OF_GROUP)
                group, size = [], 0
        if group:
            writer.write_table(pa.Table.from_batches(group), ROWS_OF_GROUP)


class _Sink(io.RawIOBase):
    """A stream that pyarrow can write to."""

    def __init__(self, file: Writable) -> None:
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._file.write(bytes(data))
        return len(data)
