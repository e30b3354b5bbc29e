"""Byte ranges of a plain file: together they have its lines, however they are cut."""

import gzip
import os

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from profiles import examples

from geval_py.errors import TooLargeError, UnreadableFileError
from geval_py.reading import lines
from geval_py.reading.compression import compression_of
from geval_py.reading.lines import LineReader, end_of_lines, read_lines_between, whole_lines

PROPERTY = settings(deadline=None, derandomize=True, max_examples=examples(300))
DATA = st.lists(st.sampled_from([b"", b"\r", b"a", b"a:1", b"\xef\xbb\xbf", b"Word\tx", b"a" * 20]), max_size=12).map(
    b"\n".join
)


@pytest.fixture
def stored(tmp_path):
    """Store bytes in a file; gives its path."""

    def store(data):
        (tmp_path / "out.tsv").write_bytes(data)
        return str(tmp_path / "out.tsv")

    return store


def read_ranges(reader, size):
    """The lines that begin in each range of the rest of a file, and the bytes that are stored of them."""
    source, first = reader.source, reader.offset
    found = []
    for start in range(first, source.size, size):
        stop = min(start + size, source.size)
        stored = read_lines_between(source.path, source.read_at, start, stop, first=first, size=source.size)
        found.append((bytes(whole_lines(stored)), bytes(stored)))
    return found


@PROPERTY
@given(data=DATA, size=st.integers(1, 60), first=st.integers(0, 3))
@example(data=b"a\n" * 5, size=1, first=0)
@example(data=b"a" * 50, size=1, first=0)
@example(data=b"a\n\r\r", size=2, first=0)
def test_ranges_have_the_lines_that_are_left(data, size, first, tmp_path_factory):
    """The same lines as the reader's, in order, each in the range that it starts in; and all bytes that are stored."""
    if compression_of(data):
        return
    path = tmp_path_factory.getbasetemp() / "out.tsv"
    path.write_bytes(data)
    with LineReader(str(path), header="Word") as reader, LineReader(str(path), header="Word") as other:
        for _ in range(first):
            assert reader.block(1) == other.block(1)
        start = reader.offset
        found = read_ranges(reader, size)
        assert b"".join(lines for lines, _ in found) == b"".join(iter(other.block, b""))
        assert b"".join(stored for _, stored in found) == data[start:]
    for number, (_, stored) in enumerate(found):
        place = start + sum(len(before) for _, before in found[:number])
        assert not stored or start + number * size <= place < start + (number + 1) * size


@pytest.mark.parametrize("size", [1, 3, 100])
def test_a_system_that_reads_less_than_it_is_asked_for(size, stored, monkeypatch):
    whole = os.pread
    monkeypatch.setattr(os, "pread", lambda file, size, offset: whole(file, min(size, 2), offset))
    with LineReader(stored(b"a:1\nb:1\n" * 9)) as reader:
        assert b"".join(lines for lines, _ in read_ranges(reader, size)) == b"a:1\nb:1\n" * 9


def test_a_long_line_is_read_once(stored, monkeypatch):
    """By the range that it starts in; those inside of it have none."""
    path = stored(b"a\n" + b"b" * 400_000 + b"\nc\n")
    with LineReader(path) as reader:
        assert [len(lines) for lines, _ in read_ranges(reader, 100_000)] == [400_003, 0, 0, 0, 2]
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 100_000)
    with LineReader(path) as reader, pytest.raises(TooLargeError) as caught:
        read_ranges(reader, 2)
    assert str(caught.value) == f"Too large: `{path}` has a line of more than 100000 bytes"


def test_a_file_that_shrinks(stored):
    path = stored(b"a:1\n" * 9)
    with LineReader(path) as reader:
        os.truncate(path, 4)
        with pytest.raises(UnreadableFileError) as caught:
            read_ranges(reader, 20)
    assert str(caught.value) == f"Cannot read `{path}`: it was changed while it was read"


def test_what_cannot_be_read_from_anywhere(stored, monkeypatch):
    with LineReader(stored(gzip.compress(b"a:1\n"))) as reader:
        assert reader.source.read_at is None
    with LineReader(stored(b"a:1\n")) as reader:
        monkeypatch.delattr(os, "pread")
        assert reader.source.read_at is None


ALIKE = st.tuples(st.sampled_from([b"\n", b"a\n", b"ab cd\n", b"x" * 300 + b"\n"]), st.integers(1, 60))


@PROPERTY
@given(pieces=st.lists(ALIKE, max_size=6), skipped=st.integers(0, 400), lines=st.integers(1, 200))
def test_the_end_of_so_many_lines(pieces, skipped, lines):
    """Lines may be as long as each other, or not at all."""
    data = b"".join(piece * count for piece, count in pieces)
    start = min(skipped, len(data))
    rest = data[start:].splitlines(keepends=True)[:lines]
    assert end_of_lines(data, start, lines) == (start + sum(map(len, rest)), len(rest))
