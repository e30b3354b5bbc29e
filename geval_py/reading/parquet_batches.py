"""Record batches of a Parquet file, as pyarrow reads them: its known columns, or a chosen one.

The file's footer and the headers of its pages are looked at before (:mod:`geval_py.reading.parquet_headers`).
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from itertools import accumulate
from operator import sub

from geval_py.errors import UnreadableFileError
from geval_py.reading import rows
from geval_py.reading.arrow import compute, leaves_in, leaves_of, lengths, pyarrow, reading, starts_in, text_size
from geval_py.reading.lines import MOST_LINE_BYTES
from geval_py.reading.listed import BUCKETS, LOGARITHMS, PROBABILITIES, WORDS
from geval_py.reading.parquet_footer import MOST_FOOTER_BYTES, damaged, without_types
from geval_py.reading.parquet_headers import (
    ROWS_AT_ONCE,
    SHORT_WORD,
    ReadAhead,
    UnpackedGroups,
    is_coded,
    pages_of,
    size_of,
    size_of_objects,
)
from geval_py.reading.parquet_schema import KEYS
from geval_py.text import shorten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

    from geval_py.reading.parquet_footer import Footer
    from geval_py.reading.parquet_headers import Pages, Unpacked

DOC, CHOICES, RESPONSE = "doc", "choices", "model_response"  # columns of lighteval's details, and a field
MOST_IN_A_LIST = 1 << 17  # of the footer
BUFFER_BYTES = 1 << 18


class ParquetFile:
    """An opened Parquet file on this machine: its known columns, in batches of rows; raises UnreadableFileError.

    ``choose`` chooses one column of texts or numbers among the names, in place of the known ones, or "" for these.

    pyarrow's own class of this name is built upon the same reader, and takes a third longer to import.
    """

    def __init__(
        self,
        path: str,
        file: BinaryIO,
        footer: Footer,
        unpacked: Unpacked,
        choose: Callable[[list[str]], str] | None = None,
    ) -> None:
        self._path, self._file, self._pa = path, file, pyarrow()
        self._groups, self._unpacked = footer.groups, unpacked
        self._before = list(accumulate((group.rows for group in footer.groups), initial=0))  # rows before each group
        self._ahead = ReadAhead(file, footer.size, 0, memoryview(b""))
        with reading(path):
            self._metadata = self._opened(io.BytesIO(without_types(footer.data))).metadata
            self._plain = self._reader()
            schema = self._plain.schema_arrow
            self.names, paths = schema.names, self._plain.column_paths
            self.metadata: dict[bytes, bytes] = schema.metadata or {}
        chosen = choose(self.names) if choose else ""
        self._known = [chosen] if chosen else [name for name in KEYS if name in self.names]
        self._is_lighteval = not self._known and {DOC, RESPONSE} <= {*self.names}
        if chosen:
            self._texts = {chosen} if check_column(path, schema, chosen) else set()
        else:
            self._texts = {WORDS}
            _check_types(path, schema, self._pa.types)
        if self._is_lighteval:
            _check_lighteval(path, schema, self._pa.types)
        elif not chosen and not _are_rows(schema, self._known, self._pa.types):
            wanted = f"{WORDS} and {PROBABILITIES}, or {LOGARITHMS}"
            found = ", ".join(self.names[:8])
            raise UnreadableFileError(path=path, reason=f"its columns are {found}; {wanted} are wanted")
        if any(len(group.columns) != len(paths) for group in self._groups):
            raise damaged(path, "a row group has not all columns")
        inner = {(DOC, CHOICES), (RESPONSE, LOGARITHMS)} if self._is_lighteval else set()
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
        """Yield record batches with the known columns; raises TooLargeError, too."""
        for number in range(len(self._groups)):
            yield from self.of_group(number)

    def of_group(self, number: int, first: int = 0) -> Iterator[Any]:
        """Yield the record batches of a row group, from one of its rows on."""
        group = self._groups[number]
        self._rows = self._before[number] + first
        pages = {leaf: pages_of(self._path, self._ahead, group.columns[leaf]) for leaf in self._leaves}
        stored = sum(of.stored for of in pages.values())
        self._of_group = UnpackedGroups(self._path, number, [stored], self._unpacked)
        self._of_group.add(size_of(pages.values()))
        coded = self._words == self._strings and all(is_coded(pages[leaf]) for leaf in self._words)
        for leaf in self._strings if not coded else ():
            if pages[leaf].dictionary:
                self._of_group.add(pages[leaf].values * self._longest_word(number, leaf))
        stream = _after(first, self._of_pages(number, pages, coded, self._of_group.rows_at_once(group.rows)))
        while True:
            with reading(self._path):
                found = next(stream, None)
                if found is None:
                    return
                batch, are_short = found
                batch.validate()
                values, text = count_in(batch, are_short)
                if self._is_lighteval:
                    inner = [batch.column(DOC).field(0), batch.column(RESPONSE).field(0)]
                    batch = self._pa.RecordBatch.from_arrays(inner, [CHOICES, LOGARITHMS])
            if coded:
                self._of_group.add_text(values, text)
            yield from self._pieces(batch, size_of_objects(values, text))

    def _of_pages(
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
        self._of_group.add(sum(pages[leaf].values * self._longest_word(number, leaf) for leaf in self._words))
        yield from _after(done, plain)

    def _pieces(self, batch: Any, size: int) -> Iterator[Any]:
        """Split a batch that is too large for a line; raises UnreadableFileError for a row that is."""
        with reading(self._path):
            pieces = list(pieces_of(batch, size, MOST_LINE_BYTES))
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


def _after(rows: int, stream: Iterator[tuple[Any, bool]]) -> Iterator[tuple[Any, bool]]:
    """Leave out the first rows of batches."""
    for batch, are_short in stream:
        yield batch.slice(rows), are_short
        rows = max(0, rows - batch.num_rows)


def _are_short(words: Any) -> bool:
    """Whether no word has more than SHORT_WORD bytes."""
    starts = starts_in(words)
    return max(map(sub, starts[1:], starts), default=0) <= SHORT_WORD


def pieces_of(batch: Any, size: int, most: int) -> Iterator[tuple[Any, int]]:
    """Split a batch into pieces of at most so many bytes, or of one row, and yield them with their sizes."""
    if size <= most or batch.num_rows <= 1:
        yield batch, size
        return
    half = batch.num_rows // 2
    for piece in (batch.slice(0, half), batch.slice(half)):
        yield from pieces_of(piece, size_in(piece), most)


def size_in(batch: Any) -> int:
    """Compute how many bytes Python's objects for a batch take, at least, before they are made."""
    return size_of_objects(*count_in(batch))


def count_in(batch: Any, are_short: bool = False) -> tuple[int, int]:
    """Count the values in a batch, and the bytes of its words, each as often as it is there.

    If the words of dictionaries ``are_short``, their bytes are not counted, which would take longer.
    """
    leaves = leaves_in(batch)
    counted = [leaf for leaf in leaves if not (are_short and hasattr(leaf, "dictionary"))]
    return sum(map(len, leaves)), sum(map(text_size, counted))


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
        is_map = types.is_map(found) and name != WORDS
        is_list = types.is_list(found) or types.is_large_list(found)
        value = found.item_type if is_map else found.value_type if is_list else None
        value = value.value_type if value is not None and types.is_dictionary(value) else value
        if name == WORDS:
            fits = value is not None and (types.is_string(value) or types.is_large_string(value))
        else:
            fits = value is not None and (types.is_floating(value) or types.is_integer(value))
            fits = fits and (not is_map or types.is_string(found.key_type) or types.is_large_string(found.key_type))
        if not fits:
            wanted = "a list of strings" if name == WORDS else "a list or a map of numbers"
            raise UnreadableFileError(
                path=path, reason=f"column {name}: {wanted} is wanted, not {shorten(str(found))}"
            )


def _are_rows(schema: Any, known: list[str], types: Any) -> bool:
    """Whether the known columns can make a line: words and their numbers, a map of both, or buckets."""
    numbers = [name for name in known if name != WORDS]
    return bool(numbers) and (
        WORDS in known or BUCKETS in known or any(types.is_map(schema.field(name).type) for name in numbers)
    )


def _check_lighteval(path: str, schema: Any, types: Any) -> None:
    """Raise UnreadableFileError unless lighteval's details are of a multiple-choice task."""
    for of, key, kinds in ((DOC, CHOICES, ("string", "large_string")), (RESPONSE, LOGARITHMS, ("double",))):
        found = schema.field(of).type if schema.names.count(of) == 1 else pyarrow().null()
        names = [field.name for field in found] if types.is_struct(found) else []
        inner = found.field(key).type if names.count(key) == 1 else None
        is_list = inner is not None and (types.is_list(inner) or types.is_large_list(inner))
        if inner is None or not is_list or str(inner.value_type) not in kinds:
            reason = f"column {of}.{key}: lighteval's details of a multiple-choice task have a list there"
            raise UnreadableFileError(path=path, reason=reason)
