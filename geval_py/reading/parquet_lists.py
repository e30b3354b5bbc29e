"""Lists of words and of their numbers, from Parquet's pages of the usual form, by a decoder of the kernel.

pyarrow takes longer to decode such pages than the kernel to score them. It still reads all else: pages of version 2
and in other encodings than PLAIN and those of dictionaries, other codecs than Snappy and Zstandard, lists that are
empty, missing or lack an entry, and whatever is damaged, for which it has the error.
"""

from __future__ import annotations

from itertools import chain

from geval_py.reading.arrow import pyarrow
from geval_py.reading.parquet_headers import read_at
from geval_py.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, BinaryIO, Protocol

    from geval_py.reading.lines import Bytes
    from geval_py.reading.parquet_headers import Chunk, Page, Pages
    from geval_py.reading.unpacking import Threads

    class Decoder(Protocol):
        """Decodes a column of lists in a row group.

        ``kind`` is words, codes (words that are all numbers of a dictionary), floats or doubles; ``definition`` the
        level of an entry that is there, from 1 on.
        """

        def __init__(self, kind: str, definition: int) -> None: ...

        def add_dictionary(self, values: Bytes, count: int) -> tuple[bytes, bytes, int] | None:
            """Add the dictionary, before the pages, in PLAIN; None if it is damaged.

            Returns, of a column of words, where each begins in a text and the last one ends (int32), the text, and
            the size of the longest word.
            """

        def add_page(self, page: Bytes, count: int, coded: bool) -> int:
            """Add a page with so many values, unpacked; ``coded`` if they are numbers of the dictionary.

            Returns how many rows have begun that were not taken, -1 for a page that is not of the usual form.
            """

        def take(self, rows: int) -> tuple[bytes, bytes, bytes] | None:
            """Take the first rows; None if a page is damaged.

            Returns where each row begins and the last one ends (int32); its values: codes (int32), floats or doubles,
            or where words begin in a text and the last one ends (int32); and that text.
            """


BYTES_AT_ONCE = 1 << 20  # that a thread unpacks
LARGE_PAGE = 1 << 22  # of which no thread unpacks others ahead
MOST_BYTES, MOST_VALUES = 1 << 27, 1 << 24  # of the pages that are unpacked for a batch
SNAPPY = "snappy"
CODECS = {0: None, 1: SNAPPY, 6: "zstd"}
NUMBERS = {"FLOAT": "floats", "DOUBLE": "doubles"}
WORDS = "BYTE_ARRAY"


class NotUsualError(Exception):
    """Pages are not of the usual form."""


class Decoding(NamedTuple):
    """What decodes lists of the usual form, and the threads that unpack the pages of a large column."""

    decoder: Callable[[str, int], Decoder]
    threads: Threads


class Leaf(NamedTuple):
    """A column of lists: its name, its number, what is in it (words, floats or doubles), and the level of that."""

    name: str
    number: int
    kind: str
    definition: int


def usual_leaf(name: str, number: int, column: Any) -> Leaf | None:
    """Return a column, as pyarrow's schema describes it; None for another than lists of words, floats or doubles."""
    kind = "words" if column.physical_type == WORDS else NUMBERS.get(column.physical_type)
    if kind is None or column.max_repetition_level != 1:
        return None
    return Leaf(name=name, number=number, kind=kind, definition=column.max_definition_level)


class ListColumn:
    """A column of lists in a row group. Its words are ``coded`` if all are numbers of a dictionary.

    ``longest`` is the size of the longest word of the dictionary. Raises NotUsualError, here or later.
    """

    def __init__(
        self, file: BinaryIO, leaf: Leaf, chunk: Chunk, pages: Pages, coded: bool, decoding: Decoding
    ) -> None:
        if pages.usual is None or pages.values != chunk.values or chunk.codec not in CODECS:
            raise NotUsualError
        self.name, self.longest = leaf.name, 0
        name = CODECS[chunk.codec]
        self._file, self._codec = file, pyarrow().Codec(name) if name else None
        is_even = all(_size(page) <= LARGE_PAGE for page in pages.usual)
        mapped = decoding.threads.map_in_order if is_even and pages.unpacked > 2 * BYTES_AT_ONCE else map
        self._pages = chain.from_iterable(mapped(self._read, _in_pieces(pages.usual)))
        self._kind = "codes" if coded and leaf.kind == "words" else leaf.kind
        self._decoder = decoding.decoder(self._kind, leaf.definition)
        self._begun = 0

    def take(self, rows: int) -> Any:
        """Take the next rows as an array of lists."""
        size = count = 0
        while self._begun <= rows and (found := next(self._pages, None)) is not None:
            page, content = found
            size, count = size + page.unpacked, count + page.values
            if size > MOST_BYTES or count > MOST_VALUES:  # all of them would be held
                raise NotUsualError
            self._add(page, content)
        taken = self._decoder.take(rows) if self._begun >= rows else None
        if taken is None:
            raise NotUsualError
        self._begun -= rows
        offsets, values, text = taken
        pa = pyarrow()
        entries = self._entries(pa, values, text)
        buffers = [None, pa.py_buffer(offsets)]
        return pa.Array.from_buffers(pa.list_(entries.type), rows, buffers, children=[entries])

    def check_end(self) -> None:
        """Raise NotUsualError if there are more rows."""
        if self._begun or next(self._pages, None) is not None:
            raise NotUsualError

    def _read(self, pages: list[Page]) -> list[tuple[Page, Bytes]]:
        """Read neighbouring pages and unpack them."""
        start, end = pages[0].place, pages[-1].place + pages[-1].stored
        data = memoryview(read_at(self._file, start, end - start))
        stored = [data[page.place - start : page.place - start + page.stored] for page in pages]
        return [(page, self._unpacked(of, page.unpacked)) for page, of in zip(pages, stored, strict=True)]

    def _unpacked(self, data: memoryview, size: int) -> Bytes:
        """Unpack the content of a page to its size; raises NotUsualError if it has another one."""
        if self._codec is None:
            if len(data) != size:
                raise NotUsualError
            return data
        if self._codec.name == SNAPPY and snappy_size(data) != size:
            raise NotUsualError  # pyarrow would leave what is missing as the memory was
        pa = pyarrow()
        try:
            return memoryview(self._codec.decompress(data, decompressed_size=size))
        except (pa.ArrowException, OSError, ValueError):
            raise NotUsualError from None

    def _add(self, page: Page, content: Bytes) -> None:
        if not page.is_dictionary:
            self._begun = self._decoder.add_page(content, page.values, page.is_coded)
            if self._begun < 0:
                raise NotUsualError
            return
        words = self._decoder.add_dictionary(content, page.values)
        if words is None:
            raise NotUsualError
        starts, text, self.longest = words
        if self._kind == "codes":
            self._dictionary = _words(pyarrow(), starts, text)

    def _entries(self, pa: Any, values: bytes, text: bytes) -> Any:
        """Return the array of what the decoder took."""
        if self._kind == "words":
            return _words(pa, values, text)
        types = {"codes": pa.int32(), "floats": pa.float32(), "doubles": pa.float64()}
        numbers = _numbers(pa, types[self._kind], values)
        if self._kind != "codes":
            return numbers
        return pa.DictionaryArray.from_arrays(numbers, self._dictionary, safe=False)  # the decoder has looked


def _in_pieces(pages: Iterable[Page]) -> Iterator[list[Page]]:
    """Yield a column's pages in pieces of at least BYTES_AT_ONCE, but the last one: tasks for threads."""
    piece, size = [], 0
    for page in pages:
        piece.append(page)
        size += _size(page)
        if size >= BYTES_AT_ONCE:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece


def _size(page: Page) -> int:
    return max(page.stored, page.unpacked)


def read_lists(columns: Sequence[ListColumn], rows: int, at_once: int) -> Iterator[Any]:
    """Yield batches of so many rows at once from the columns of a row group; raises NotUsualError."""
    pa = pyarrow()
    names = [column.name for column in columns]
    for start in range(0, rows, at_once):
        arrays = [column.take(min(at_once, rows - start)) for column in columns]
        yield pa.RecordBatch.from_arrays(arrays, names)
    for column in columns:
        column.check_end()


def snappy_size(data: memoryview) -> int:
    """Return the size that Snappy's data unpack to, which stands at their beginning; -1 if it does not."""
    size = 0
    for place, byte in enumerate(data[:5]):
        size |= (byte & 127) << 7 * place
        if byte < 128:
            return size
    return -1


def _words(pa: Any, starts: bytes, text: bytes) -> Any:
    return pa.StringArray.from_buffers(len(starts) // 4 - 1, pa.py_buffer(starts), pa.py_buffer(text))


def _numbers(pa: Any, of: Any, values: bytes) -> Any:
    return pa.Array.from_buffers(of, len(values) // (of.bit_width // 8), [None, pa.py_buffer(values)])
