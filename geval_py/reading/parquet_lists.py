"""Lists of words and of their numbers, from Parquet's pages of the usual form, by a decoder of the kernel.

pyarrow takes longer to be imported than many files to be scored, and longer to decode such pages than the kernel to
score them. It reads all else: words in other encodings than PLAIN and those of dictionaries, lists that are empty or
lack an entry, columns of which a part of the lists are missing, and whatever is damaged, for which it has the error.
"""

from __future__ import annotations

from functools import partial
from itertools import accumulate, chain

from geval_py.errors import UnreadableFileError
from geval_py.reading.lines import MOST_LINE_BYTES
from geval_py.reading.listed import PROBABILITIES, UNITS, ListedRows
from geval_py.reading.parquet_codecs import PackedError, codec_of, copy
from geval_py.reading.parquet_headers import (
    BYTES_AT_ONCE,
    ROWS_AT_ONCE,
    SHORT_WORD,
    ReadAhead,
    UnpackedGroups,
    bytes_at,
    is_coded,
    pages_of,
    read_at,
    size_of,
    size_of_objects,
)
from geval_py.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any, BinaryIO, Protocol

    from geval_py.reading.lines import Bytes
    from geval_py.reading.parquet_codecs import Codec
    from geval_py.reading.parquet_footer import Footer, Group
    from geval_py.reading.parquet_headers import Page, Pages, Unpacked
    from geval_py.reading.parquet_schema import Leaf
    from geval_py.reading.thrift import ReadStruct
    from geval_py.reading.unpacking import Threads

    class Decoder(Protocol):
        """Decodes a column of lists in some row groups.

        ``kind`` is words, codes (words that are all numbers of a dictionary), floats, doubles or nulls (lists that
        are all missing, of which nothing is taken); ``definition`` is the level of an entry that is there, from 1 on.
        """

        def __init__(self, kind: str, definition: int) -> None: ...

        def start_group(self) -> None:
            """Begin a row group: with a row, and without a dictionary."""

        def add_dictionary(self, values: Bytes, count: int) -> int:
            """Add the dictionary of a row group, before its pages, in PLAIN.

            Returns the size of the longest word, 0 for numbers, -1 for a damaged dictionary.
            """

        def dictionary(self) -> tuple[bytes, bytes]:
            """Return the words of all dictionaries, one after the other, to which the codes refer.

            The two are where each word begins in a text and the last one ends (int32), and that text.
            """

        def text_size(self, codes: bytes) -> int:
            """Count the bytes of the words of some codes, each as often as it is there."""

        def add_page(self, page: Bytes, count: int, coded: bool) -> int:
            """Add a page with so many values, unpacked; ``coded`` if they are numbers of the dictionary.

            Returns how many rows have begun that were not taken, -1 for a page that is not of the usual form.
            """

        def take(self, rows: int) -> tuple[bytes, bytes, bytes] | None:
            """Take the first rows; None if a page is damaged.

            Returns where each row begins and the last one ends (int32); its values: codes (int32), floats or doubles,
            or where words begin in a text and the last one ends (int32); and that text.
            """


UNPACKED_AT_ONCE = 1 << 20  # bytes that a thread unpacks
MOST_TOGETHER = 1 << 10  # row groups
LARGE_PAGE = 1 << 22  # of which no thread unpacks others ahead
MOST_BYTES, MOST_VALUES = 1 << 27, 1 << 24  # of the pages that are unpacked for a batch


class NotUsualError(Exception):
    """Pages are not of the usual form."""


class Decoding(NamedTuple):
    """What decodes lists of the usual form, what reads Thrift, and the threads for large row groups."""

    decoder: Callable[[str, int], Decoder]
    read_struct: ReadStruct
    threads: Threads


class Together(NamedTuple):
    """The rows of small row groups that were read together, and the bytes that they unpacked to."""

    rows: list[ListedRows]
    unpacked: int


class Planned(NamedTuple):
    """A row group that will be read: its number, its pages by the numbers of their columns, and their bytes.

    ``leaves`` are the columns of words and of their numbers; None where there are none, or several of numbers.
    ``coded`` is whether all words are numbers of a dictionary that is small enough to look at for each batch.
    """

    number: int
    group: Group
    leaves: tuple[Leaf, Leaf] | None
    ahead: ReadAhead
    pages: dict[int, Pages]
    coded: bool


class ListReader:
    """Reads the lists of a Parquet file that are of the usual form."""

    def __init__(self, path: str, file: BinaryIO, footer: Footer, leaves: Sequence[Leaf], decoding: Decoding) -> None:
        self._path, self._file, self._footer, self._leaves, self._decoding = path, file, footer, leaves, decoding

    def runs(self) -> Iterator[tuple[list[Planned], Together | None]]:
        """Yield the row groups in order: small neighbours with their rows, others alone and without.

        Where small ones could not be read together, their rows are missing, too.
        """
        groups = self._footer.groups
        # Python's lock lets one thread at a time look at headers; with small groups, others would wait for it.
        are_large = sum(group.rows for group in groups) >= ROWS_AT_ONCE * len(groups)
        mapped = self._decoding.threads.map_in_order if are_large else map
        return map(self._together, _runs(mapped(self._planned, enumerate(groups))))

    def _together(self, run: list[Planned]) -> tuple[list[Planned], Together | None]:
        if len(run) == 1:
            return run, None
        unpacked = self.limit_of(run, None)
        try:
            return run, Together(list(self.read(run, unpacked)), unpacked.size)
        except (NotUsualError, UnreadableFileError):  # read alone, each has its own error
            return run, None

    def limit_of(self, run: list[Planned], of_file: Unpacked | None) -> UnpackedGroups:
        """Return what counts the bytes that row groups unpack to."""
        stored = [sum(pages.stored for pages in planned.pages.values()) for planned in run]
        return UnpackedGroups(self._path, run[0].number, stored, of_file)

    def _planned(self, numbered: tuple[int, Group]) -> Planned:
        """Read the headers of a row group's pages; its bytes too if they are few, and next to each other."""
        number, group = numbered
        columns = [group.columns[leaf.number] for leaf in self._leaves]
        start, end = min(column.start for column in columns), max(column.start + column.size for column in columns)
        are_few = end - start <= min(UNPACKED_AT_ONCE, 2 * sum(column.size for column in columns))
        data = read_at(self._file, start, end - start) if are_few and end <= self._footer.size else b""
        ahead = ReadAhead(self._file, self._footer.size, start, memoryview(data))
        read = self._decoding.read_struct
        pages = {
            leaf.number: pages_of(self._path, ahead, column, read)
            for leaf, column in zip(self._leaves, columns, strict=True)
        }
        words, *others = self._leaves
        numbers = [leaf for leaf in others if len(others) == 1 or not self._is_null(leaf, group, ahead, pages)]
        is_usual = len(numbers) == 1 and numbers[0].name in UNITS
        return Planned(
            number=number,
            group=group,
            leaves=(words, numbers[0]) if is_usual else None,
            ahead=ahead,
            pages=pages,
            coded=is_coded(pages[words.number]),
        )

    def _is_null(self, leaf: Leaf, group: Group, ahead: ReadAhead, pages: Mapping[int, Pages]) -> bool:
        """Whether all lists of a column are missing, for sure."""
        column, found = group.columns[leaf.number], pages[leaf.number]
        codec = codec_of(column.codec)
        is_usual = found.usual is not None and found.values == group.rows and column.is_readable
        is_small = found.unpacked <= LARGE_PAGE and found.values <= MOST_VALUES
        if not leaf.is_nullable or not is_usual or codec is None or not is_small:
            return False
        try:
            contents = map(partial(_contents, ahead, codec), _in_pieces(found.usual or ()))
            decoder = self._decoding.decoder("nulls", leaf.definition)
            return all(
                page.is_dictionary or decoder.add_page(content, page.values, False) >= 0
                for page, content in chain.from_iterable(contents)
            )
        except NotUsualError:
            return False

    def read(self, run: list[Planned], unpacked: UnpackedGroups) -> Iterator[ListedRows]:
        """Yield the rows of row groups that are read together; raises NotUsualError, and as ``unpacked``."""
        unpacked.add(sum(size_of(planned.pages.values()) for planned in run))
        if run[0].leaves is None:
            raise NotUsualError
        words, numbers = (ListColumn(leaf, run, self._decoding, unpacked) for leaf in run[0].leaves)
        rows = sum(planned.group.rows for planned in run)
        at_once = unpacked.rows_at_once(rows)
        for start in range(0, rows, at_once):
            count = min(at_once, rows - start)
            offsets, (codes, starts, text) = words.take(count), words.words()
            if numbers.take(count) != offsets:
                raise NotUsualError
            values = numbers.numbers()
            size = words.text_size()
            if words.is_coded:
                unpacked.add_text(2 * len(values), size)
            if size_of_objects(2 * len(values), size) > MOST_LINE_BYTES:
                raise NotUsualError  # it may be one row, or in one
            probabilities = run[0].leaves[1].name == PROBABILITIES
            yield ListedRows(_cast("i", offsets), starts, text, codes, values, probabilities)
        words.check_end()
        numbers.check_end()


def _runs(groups: Iterable[Planned]) -> Iterator[list[Planned]]:
    """Yield row groups in lists of those that are read together: small ones that follow each other.

    An error in the making of a row group is raised after those before it.
    """
    run: list[Planned] = []
    rows = size = held = 0
    error = None
    try:
        for planned in groups:
            of_group, ahead = size_of(planned.pages.values()), len(planned.ahead.data)
            rows, size, held = rows + planned.group.rows, size + of_group, held + ahead
            is_large = rows > ROWS_AT_ONCE or max(size, held) > BYTES_AT_ONCE or len(run) == MOST_TOGETHER
            if run and (is_large or not _are_alike(run[0], planned)):
                yield run
                run, rows, size, held = [], planned.group.rows, of_group, ahead
            run.append(planned)
    except UnreadableFileError as found:
        error = found
    if run:
        yield run
    if error:
        raise error


def _are_alike(one: Planned, other: Planned) -> bool:
    """Whether two row groups have the same columns, and their words take no more memory than their pages."""
    if one.leaves is None or one.leaves != other.leaves:
        return False
    words = one.leaves[0].number
    dictionaries = one.pages[words].dictionary + other.pages[words].dictionary
    return one.coded == other.coded and (one.coded or not dictionaries)


def _pages(planned: Planned, leaf: Leaf, threads: Threads) -> Iterator[tuple[Page, Bytes]]:
    """Yield the pages of a column with their contents, unpacked by threads if it is large; raises NotUsualError."""
    pages, column = planned.pages[leaf.number], planned.group.columns[leaf.number]
    codec = codec_of(column.codec)
    if pages.usual is None or pages.values != column.values or codec is None or not column.is_readable:
        raise NotUsualError
    is_even = all(max(page.stored, page.unpacked) <= LARGE_PAGE for page in pages.usual)
    mapped = threads.map_in_order if is_even and pages.unpacked > 2 * UNPACKED_AT_ONCE else map
    yield from chain.from_iterable(mapped(partial(_contents, planned.ahead, codec), _in_pieces(pages.usual)))


class ListColumn:
    """A column of lists in some row groups, of which a part is taken at once. Raises NotUsualError, here or later.

    ``is_coded`` is whether they are words that are all numbers of dictionaries.
    """

    def __init__(self, leaf: Leaf, run: Sequence[Planned], decoding: Decoding, unpacked: UnpackedGroups) -> None:
        self.is_coded = leaf.kind == "words" and run[0].coded
        self._kind = "codes" if self.is_coded else leaf.kind
        self._decoder = decoding.decoder(self._kind, leaf.definition)
        self._unpacked = unpacked
        self._begun = self._taken = self._longest = 0
        self._dictionary: tuple[memoryview[int], bytes] | None = None
        self._pages = self._read(leaf, run, decoding.threads)
        self._add_next()

    def take(self, rows: int) -> bytes:
        """Take the next rows; returns where they begin, as :meth:`Decoder.take` does."""
        size = count = 0
        while self._begun <= rows and (page := self._add_next()) is not None:
            size, count = size + page.unpacked, count + page.values
            if size > MOST_BYTES or count > MOST_VALUES:  # all of them would be held
                raise NotUsualError
        taken = self._decoder.take(rows) if self._begun >= rows else None
        if taken is None:
            raise NotUsualError
        self._begun, self._taken = self._begun - rows, self._taken + rows
        offsets, self._values, self._text = taken
        return offsets

    def numbers(self) -> memoryview[float]:
        """Return the numbers that were taken."""
        return _cast("f" if self._kind == "floats" else "d", self._values)

    def words(self) -> tuple[memoryview[int] | None, memoryview[int], bytes]:
        """Return the words that were taken, as :class:`ListedRows` has them: codes, starts and text."""
        if not self.is_coded:
            return None, _cast("i", self._values), self._text
        if self._dictionary is None:
            starts, text = self._decoder.dictionary()
            self._dictionary = _cast("i", starts), text
        return _cast("i", self._values), *self._dictionary

    def text_size(self) -> int:
        """Count the bytes of the words that were taken; 0 for codes of short words, which would take longer."""
        if not self.is_coded:
            return len(self._text)
        return self._decoder.text_size(self._values) if self._longest > SHORT_WORD else 0

    def check_end(self) -> None:
        """Raise NotUsualError if there are more rows."""
        if self._begun or next(self._pages, None) is not None:
            raise NotUsualError

    def _read(self, leaf: Leaf, run: Sequence[Planned], threads: Threads) -> Iterator[tuple[Page, Bytes]]:
        """Yield the pages of row groups; raises NotUsualError for a group that has not as many rows as it should."""
        rows = 0
        for planned in run:
            self._decoder.start_group()
            for page, content in _pages(planned, leaf, threads):
                if page.is_dictionary:
                    self._add_dictionary(page, content, planned.pages[leaf.number].values)
                else:
                    yield page, content
            rows += planned.group.rows
            if self._taken + self._begun != rows:
                raise NotUsualError

    def _add_next(self) -> Page | None:
        """Add the next page, and a dictionary before it."""
        found = next(self._pages, None)
        if found is None:
            return None
        page, content = found
        self._begun = self._decoder.add_page(content, page.values, page.is_coded)
        if self._begun < 0:
            raise NotUsualError
        return page

    def _add_dictionary(self, page: Page, content: Bytes, values: int) -> None:
        longest = self._decoder.add_dictionary(content, page.values)
        if longest < 0:
            raise NotUsualError
        self._longest, self._dictionary = max(self._longest, longest), None
        if not self.is_coded:
            self._unpacked.add(values * longest)  # each is copied


def _in_pieces(pages: Iterable[Page]) -> Iterator[list[Page]]:
    """Yield a column's pages in pieces of at least UNPACKED_AT_ONCE bytes, but the last one: tasks for threads."""
    piece, size = [], 0
    for page in pages:
        piece.append(page)
        size += max(page.stored, page.unpacked)
        in_file = page.place + page.stored - piece[0].place  # with the headers, which may be long
        if max(size, in_file) >= UNPACKED_AT_ONCE:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece


def _contents(ahead: ReadAhead, codec: Codec, pages: Sequence[Page]) -> list[tuple[Page, Bytes]]:
    """Read neighbouring pages and unpack them; raises NotUsualError. A page of version 2 becomes one of version 1."""
    start, end = pages[0].place, pages[-1].place + pages[-1].stored
    data = memoryview(bytes_at(ahead, start, end - start))
    in_file = [data[page.place - start : page.place - start + page.stored] for page in pages]
    if any(len(content) != page.stored for page, content in zip(pages, in_file, strict=True)):
        raise NotUsualError
    try:
        return list(zip(pages, _unpacked(pages, in_file, codec), strict=True))
    except PackedError:
        raise NotUsualError from None


def _unpacked(pages: Sequence[Page], in_file: Sequence[memoryview], codec: Codec) -> Sequence[memoryview]:
    """Unpack pages; raises PackedError."""
    if codec.unpack is copy and all(page.levels is None and page.stored == page.unpacked for page in pages):
        return in_file
    sizes = [page.unpacked + 4 * len(page.levels or ()) for page in pages]
    ends = list(accumulate(sizes))
    room = memoryview(bytearray(ends[-1]))
    rooms = [room[end - size : end] for size, end in zip(sizes, ends, strict=True)]
    if _are_frames(pages, in_file, codec):
        codec.unpack(b"".join(in_file), room)  # at once: threads that ask for Python's lock for each page wait long
        return rooms
    for page, content, into in zip(pages, in_file, rooms, strict=True):
        for size in page.levels or ():
            into[:4] = size.to_bytes(4, "little")
            into[4 : 4 + size] = content[:size]
            into, content = into[4 + size :], content[size:]
        if content or into:  # not so where all lists are missing
            (codec.unpack if page.is_packed else copy)(content, into)
    return rooms


def _are_frames(pages: Sequence[Page], in_file: Sequence[memoryview], codec: Codec) -> bool:
    """Whether pages can be unpacked together, each to its size for sure."""
    size_of = codec.size_of
    return size_of is not None and all(
        page.levels is None and size_of(content) == page.unpacked
        for page, content in zip(pages, in_file, strict=True)
    )


def _cast(kind: Any, values: bytes) -> memoryview[Any]:
    return memoryview(values).cast(kind)
