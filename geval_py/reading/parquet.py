"""Outputs in Parquet, a row a line: columns of lists, of words and of their numbers, or a column of maps.

The columns have the keys of JSON lines (:mod:`geval_py.reading.other_formats`); other columns are left out. pyarrow
reads and writes them, of the extra parquet. The details that lighteval logs (``details_TASK_DATE.parquet``) are read,
too: the choices of its ``doc``, with the logarithms of its ``model_response``.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import islice
from operator import sub
from typing import TYPE_CHECKING, Any, BinaryIO

from geval_py.errors import MissingPackageError, TooLargeError, UnreadableFileError
from geval_py.reading import rows
from geval_py.reading.lines import DEFAULT_MAX_BYTES, MOST_LINE_BYTES
from geval_py.reading.parquet_headers import (
    MOST_FOOTER_BYTES,
    Pages,
    damaged,
    pages_of,
    read_footer,
    without_types,
)
from geval_py.reading.sources import is_regular, is_remote, naming
from geval_py.version import installs

if TYPE_CHECKING:
    from geval_py.reading.rewriting import Writable

KEYS = (rows.WORDS, rows.PROBABILITIES, rows.LOGARITHMS, rows.BUCKETS)
DOC, CHOICES, RESPONSE = "doc", "choices", "model_response"  # columns of lighteval's details, and a field
ROWS_AT_ONCE, BYTES_AT_ONCE = 16384, 1 << 23
ROWS_OF_TEXT = 64
ROWS_OF_GROUP, BYTES_OF_GROUP = 1 << 20, 1 << 26  # that are written
MOST_IN_A_LIST = 1 << 17  # of the footer
BUFFER_BYTES = 1 << 18
BYTES_OF_OBJECT = 32  # of Python's, for an entry of a list
BYTES_OF_VALUE = 12  # that a value takes, beside its page: a number or code, and its place in lists
SHORT_WORD = 2 * BYTES_OF_VALUE  # bytes that a word and its number are counted for anyway
MOST_UNPACKED_BYTES, MOST_RATIO = 1 << 28, 256  # of a row group; a larger one may not be packed more tightly


def pyarrow() -> Any:
    """Import pyarrow; raises MissingPackageError with the command that installs it."""
    try:
        import pyarrow as pa
    except ImportError as error:
        message = f"Parquet is read by pyarrow, of the extra parquet: {installs('parquet')}"
        raise MissingPackageError(message=message, package="pyarrow") from error
    return pa


def import_pyarrow_alone(module: str = "pyarrow") -> None:
    """Import pyarrow, or a module of it, without what it imports if it can: numpy takes longer than the rest.

    pyarrow then has no numpy and no cloudpickle for as long as the process lives. So this is for the process of the
    command alone, where it only scores; anywhere else it does nothing.
    """
    command = getattr(sys.modules["__main__"], "__spec__", None)
    is_command = "geval_py.__main__" in sys.modules or (command is not None and command.name == "geval_py.__main__")
    if not is_command or module in sys.modules or "numpy" in sys.modules:
        return
    modules: Any = sys.modules
    hidden = [name for name in ("numpy", "cloudpickle") if name not in modules]
    modules.update(dict.fromkeys(hidden))  # an import of None fails
    try:
        pyarrow()
        import_module(module)
    finally:
        for name in hidden:
            modules.pop(name, None)  # another thread may have been here


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

    def batches(self) -> Iterator[Any]:
        """Yield record batches with the known columns."""
        for number, group in enumerate(self._groups):
            pages = {leaf: pages_of(self._path, self._file, group.columns[leaf]) for leaf in self._leaves}
            yield from self._of_group(number, pages, group.rows)

    def _of_group(self, number: int, pages: dict[int, Pages], count: int) -> Iterator[Any]:
        self._unpacked.start_group(number + 1, sum(of.stored for of in pages.values()))
        self._unpacked.add(sum(of.values * BYTES_OF_VALUE + of.unpacked for of in pages.values()))
        coded = self._words == self._strings and all(_is_coded(pages[leaf]) for leaf in self._words)
        for leaf in self._strings if not coded else ():
            if pages[leaf].dictionary:
                self._unpacked.add(pages[leaf].values * self._longest_word(number, leaf))
        at_once = max(1, min(ROWS_AT_ONCE, BYTES_AT_ONCE * count // max(1, self._unpacked.of_group)))
        reader = self._coded_reader() if coded else self._plain
        are_short: bool | None = None
        with reading(self._path):
            stream = reader.iter_batches(at_once, [number], self._leaves, use_threads=False)
        while True:
            with reading(self._path):
                batch = next(stream, None)
                if batch is None:
                    return
                batch.validate()
                if coded and are_short is None:
                    are_short = self._have_short_words(batch, sum(pages[leaf].entries for leaf in self._words))
                values, text = _count(batch, bool(are_short))
                if self._is_lighteval:
                    columns = [batch.column(DOC).field(0), batch.column(RESPONSE).field(0)]
                    batch = self._pa.RecordBatch.from_arrays(columns, [CHOICES, rows.LOGARITHMS])
            if coded:
                self._unpacked.add(max(0, text - values * BYTES_OF_VALUE))
            yield from self._pieces(batch, values * BYTES_OF_OBJECT + text)

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

    def _have_short_words(self, batch: Any, entries: int) -> bool | None:
        """Whether no word in the dictionary of a row group has more than SHORT_WORD bytes.

        None while there is no dictionary: pyarrow reads it with the first word. It leaves out a word that is there
        twice, so that the numbers of others are false; raises UnreadableFileError for that.
        """
        words = [leaf.dictionary for leaf in _leaves_in(batch) if hasattr(leaf, "dictionary")]
        found = sum(map(len, words))
        if entries and not found:
            return None
        if found != entries:
            raise damaged(self._path, "a word is twice in a dictionary")
        starts = map(starts_in, words)
        return all(max(map(sub, of[1:], of), default=0) <= SHORT_WORD for of in starts)

    def _longest_word(self, group: int, leaf: int) -> int:
        """Return the size of the longest word of a dictionary, of which a part of the words are numbers.

        pyarrow reads the dictionary with the first word that refers to it.
        """
        with reading(self._path):
            for batch in self._coded_reader().iter_batches(ROWS_AT_ONCE, [group], [leaf], use_threads=False):
                (words,) = _leaves_of(batch.column(0))
                if len(words.dictionary):
                    return int(_compute("max", _lengths(words.dictionary)).as_py() or 0)
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
    leaves = _leaves_in(batch)
    return sum(map(len, leaves)), sum(_text_size(leaf, are_short) for leaf in leaves)


def _text_size(values: Any, are_short: bool) -> int:
    if hasattr(values, "dictionary"):
        if are_short:
            return 0
        sizes = _compute("take", _lengths(values.dictionary), values.indices)
        return _compute("sum", sizes).as_py() or 0
    if "string" not in str(values.type):
        return 0
    starts = starts_in(values)
    return starts[-1] - starts[0]


def _lengths(words: Any) -> Any:
    return _compute("binary_length", words)


def _compute(function: str, *arrays: Any) -> Any:
    """Call one of Arrow's functions; the first call takes 0.02 s, and pyarrow.compute would take as long again."""
    import_pyarrow_alone("pyarrow._compute")
    from pyarrow._compute import call_function

    return call_function(function, list(arrays))


def _leaves_in(batch: Any) -> list[Any]:
    return [leaf for column in batch.columns for leaf in _leaves_of(column)]


def _leaves_of(array: Any) -> Iterator[Any]:
    """Yield the arrays of words and numbers in lists, structures and maps of them."""
    if hasattr(array, "field"):
        for number in range(array.type.num_fields):
            yield from _leaves_of(array.field(number))
    elif hasattr(array, "offsets"):
        yield from _leaves_of(entries_of(array))
    else:
        yield array


def entries_of(lists: Any) -> Any:
    """Return the entries of lists or maps as one array; ``flatten`` would import pyarrow.compute, which is slow."""
    offsets = numbers_in(lists.offsets)
    return lists.values.slice(offsets[0], offsets[-1] - offsets[0])


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


def batches(path: str, max_bytes: int | None = None) -> Iterator[Any]:
    """Yield record batches with the known columns; raises as :func:`opened`, and TooLargeError."""
    with opened(path, max_bytes=max_bytes) as file:
        yield from file.batches()


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


@contextmanager
def reading(path: str, fault: str = "not well-formed Parquet") -> Iterator[None]:
    """Turn pyarrow's errors into an UnreadableFileError."""
    pa = pyarrow()
    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).split("\n", 1)[0]
        raise UnreadableFileError(path=path, reason=f"it is {fault}: {reason}") from error


def read_parquet(path: str, max_bytes: int | None = None) -> Generator[str]:
    """Yield the lines of a Parquet file; raises UnreadableFileError, with row and column, and TooLargeError."""
    number = 1
    for batch in batches(path, max_bytes):
        yield from lines_of_batch(path, batch, number)
        number += batch.num_rows


def lines_of_batch(path: str, batch: Any, number: int) -> Iterator[str]:
    """Yield the lines of a batch, whose first row has a number; raises as :func:`read_parquet`."""
    with reading(path):
        coded = [leaf for leaf in _leaves_in(batch) if hasattr(leaf, "dictionary")]
        for leaf in coded:  # an error for a code without a word: asked for that word, pyarrow may end the process
            _text_size(leaf, are_short=False)
        longest = max((_compute("max", _lengths(leaf.dictionary)).as_py() or 0 for leaf in coded), default=0)
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


def numbers_in(numbers: Any) -> memoryview[Any]:
    """Return the buffer of an array of int32, int64, float or double; ``to_numpy`` would need numpy."""
    kind: Any = {"int32": "i", "int64": "q", "float": "f", "double": "d"}[str(numbers.type)]
    buffer: memoryview[Any] = memoryview(numbers.buffers()[1] or b"").cast("B").cast(kind)
    return buffer[numbers.offset : numbers.offset + len(numbers)]


def starts_in(words: Any) -> memoryview[int]:
    """Return where the words of an array begin in its buffer of text, and where the last one ends."""
    kind: Any = "q" if str(words.type).startswith("large") else "i"
    buffer: memoryview[int] = memoryview(words.buffers()[1] or bytes(8)).cast("B").cast(kind)
    return buffer[words.offset : words.offset + len(words) + 1]


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
