"""Unpack a compressed file in threads: the frames of a .zst, or the blocks of an .xz, are independent.

When something is malformed, too large or damaged, it is left with everything after it to the single reader. So the
bytes are always the same as the single reader's, and only that raises errors.

The format of .xz: https://tukaani.org/xz/xz-file-format-1.2.1.txt. Python's ``lzma`` unpacks only whole streams, so
each block is presented as a stream of its own. A .gz or .bz2 file does not tell where its members and blocks start.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from itertools import chain, islice, pairwise

from geval_py.reading.compression import (
    MAGIC_BYTES,
    ZSTD_MAGIC,
    Compression,
    Decompressed,
    compression_of,
    size_of_frame,
    zstd_module,
)
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Protocol, TypeVar

    from geval_py.reading.compression import Stored

    Item = TypeVar("Item")
    Result = TypeVar("Result")

    class Threads(Protocol):
        """Worker threads that map a function over items in order, ahead of the results that are used."""

        threads: int

        def map_in_order(self, function: Callable[[Item], Result], items: Iterable[Item], /) -> Iterator[Result]: ...


MOST_BYTES = 1 << 26  # unpacked at once by each thread: the blocks of ``xz -7 -T0`` have 48 MiB
MOST_BYTES_IN_ALL = 1 << 30  # unpacked at once by all threads
MOST_FRAME_BYTES = 1 << 24  # of a .zst frame as stored: those of ``pzstd`` have up to 32 MiB, unpacked
FIRST_READ_BYTES = 1 << 18
MOST_BLOCKS = 1 << 17  # of an .xz file: more sizes of blocks could fill the memory
STREAM_BLOCKS = 8  # a stream of an .xz counts as so many blocks, since finding it costs more
MOST_KIND = 15  # of the checks of .xz blocks
MOST_FRAMES = 1 << 12  # unpacked at once by one thread
MOST_WINDOW = 17 << 3  # in the notation of a .zst frame: 128 MiB, the single reader's limit
MOST_INDEX_BYTES = 1 << 20
XZ_MAGIC, XZ_END = b"\xfd7zXZ\0", b"YZ"
XZ_HEADER_BYTES = XZ_FOOTER_BYTES = 12


class Packed(Value):
    """Consecutive members of a compressed file; None if the single reader should read the rest.

    ``start`` is the offset in the file from which a reader can reach them.
    """

    start: int
    members: Sequence[bytes | memoryview] | None


def unpack_in_threads(stream: Decompressed, file: Stored, threads: Threads) -> None:
    """Let threads unpack the rest of a file for a stream, if it has several parts that they can unpack.

    The bytes unpacked at once are bounded for each thread, for all threads, and by the stream's own limit.
    """
    place = file.tell()
    most = min(MOST_BYTES, MOST_BYTES_IN_ALL // (threads.threads + 1), stream.max_bytes or sys.maxsize)
    packed = _packed(file, stream.compression.name, most)
    beginning = list(islice(packed, 2))
    if beginning[-1].members is None:
        file.seek(place)
    else:
        unpacked = threads.map_in_order(partial(_unpack, stream.compression, most), chain(beginning, packed))
        stream.take(unpacked, file)


def _unpack(compression: Compression, most: int, packed: Packed) -> tuple[int, bytes | None]:
    """Return the offset and at most ``most`` bytes; None if the single reader should read them."""
    unpacked, left = [], most
    for member in packed.members or ():
        decompressor, error = compression.decompressor()
        try:
            data = decompressor.decompress(member, left + 1)
        except (error, MemoryError):
            return packed.start, None
        left -= len(data)
        is_whole = decompressor.eof and not decompressor.unused_data
        declared = size_of_frame(member) if compression.name == "zstd" else None
        if left < 0 or not is_whole or declared not in (None, len(data)):
            return packed.start, None
        unpacked.append(data)
    return packed.start, None if packed.members is None else b"".join(unpacked)


def _packed(file: Stored, compression: str, most: int) -> Iterator[Packed]:
    """Yield the parts that unpack alone, to at most ``most`` bytes; at last the offset for the single reader."""
    start = 0
    parts = _frames(file, most) if compression == "zstd" else _blocks(file, most) if compression == "xz" else ()
    try:
        for packed in parts:
            start = packed.start
            yield packed
    except OSError:  # the single reader will raise it
        pass
    yield Packed(start=start, members=None)


def _read_at(file: Stored, start: int, size: int) -> bytes:
    file.seek(start)
    return file.read(size) or b""


def _frames(file: Stored, most: int) -> Iterator[Packed]:
    """Yield the frames of a .zst, as many as are read at once."""
    start, wanted = 0, FIRST_READ_BYTES
    while True:
        stored = _read_at(file, start, wanted)
        ends = list(islice(_frame_ends(stored), MOST_FRAMES))
        if ends:
            view = memoryview(stored)
            yield Packed(start=start, members=[view[a:b] for a, b in pairwise((0, *ends))])
            start, wanted = start + ends[-1], FIRST_READ_BYTES
        elif len(stored) < wanted or wanted >= MOST_FRAME_BYTES or _is_large(stored, most):
            break
        else:
            wanted *= 2
    yield Packed(start=start, members=None)


def _frame_ends(stored: bytes) -> Iterator[int]:
    """Yield the ends of the whole frames at the beginning of some bytes."""
    zstd = zstd_module()
    end, view = 0, memoryview(stored)
    while (found := compression_of(stored[end : end + MAGIC_BYTES])) and found.name == "zstd":
        frame = view[end:]
        is_of_data, has_window = frame[:4] == ZSTD_MAGIC, len(frame) > 5 and not frame[4] & 0x20  # RFC 8878, 3.1.1.1
        if is_of_data and has_window and frame[5] > MOST_WINDOW:
            return  # the single reader refuses it; threads, which have the whole frame, would not
        try:
            end += zstd.get_frame_size(frame)
        except zstd.ZstdError:  # incomplete or damaged
            return
        yield end


def _is_large(stored: bytes, most: int) -> bool:
    """Whether the header of a frame declares more than ``most`` unpacked bytes."""
    return (size_of_frame(stored) or 0) > most


class _Stream(Value):
    """A stream of an .xz: its offset, the kind of its checks, and its index of blocks.

    The index has the bytes of each block without padding, and its unpacked bytes.
    """

    start: int
    kind: int
    blocks: Sequence[tuple[int, int]]


def _blocks(file: Stored, most: int) -> Iterator[Packed]:
    """Yield the blocks of an .xz, each as a stream; nothing if its streams are not found."""
    end = file.seek(0, os.SEEK_END)
    streams = _streams(file, end)
    if streams is None:
        return
    for stream in streams:
        if any(max(block) > most for block in stream.blocks):
            yield Packed(start=stream.start, members=None)
            return
        place = stream.start + XZ_HEADER_BYTES
        for block in stream.blocks:
            stored = _read_at(file, place, _padded(block[0]))
            place += len(stored)
            member = _header_of(stream.kind) + stored + _end_of(stream.kind, [block])
            yield Packed(start=stream.start, members=[member])
    yield Packed(start=end, members=None)


def _streams(file: Stored, end: int) -> list[_Stream] | None:
    """Find the streams of an .xz, from its end to its beginning; None if one is not found, or for too many."""
    found: list[_Stream] = []
    left = MOST_BLOCKS
    while end := _before_padding(file, end):
        stream = _stream_before(file, end)
        left -= STREAM_BLOCKS + len(stream.blocks) if stream is not None else 0
        if stream is None or left < 0:
            return None
        found.append(stream)
        end = stream.start
    return found[::-1]


def _before_padding(file: Stored, end: int) -> int:
    """Return the offset of the zeros before ``end``."""
    while end:
        start = max(end - FIRST_READ_BYTES, 0)
        if rest := _read_at(file, start, end - start).rstrip(b"\0"):
            return start + len(rest)
        end = start
    return 0


def _stream_before(file: Stored, end: int) -> _Stream | None:
    """Return the stream that ends at ``end``; None unless its header, index and footer are well formed."""
    footer = _read_at(file, max(end - XZ_FOOTER_BYTES, 0), XZ_FOOTER_BYTES)
    size = XZ_FOOTER_BYTES + 4 * (int.from_bytes(footer[4:8], "little") + 1)
    if len(footer) < XZ_FOOTER_BYTES or size > min(end, MOST_INDEX_BYTES):
        return None
    ending, kind = _read_at(file, end - size, size), footer[9]
    numbers = _numbers(ending[1:])
    blocks = list(islice(zip(numbers, numbers, strict=False), min(next(numbers, 0), size)))
    start = end - size - sum(_padded(block) for block, _ in blocks) - XZ_HEADER_BYTES
    if (
        kind > MOST_KIND
        or start < 0
        or ending != _end_of(kind, blocks)
        or _read_at(file, start, XZ_HEADER_BYTES) != _header_of(kind)
    ):
        return None
    return _Stream(start=start, kind=kind, blocks=blocks)


def _padded(size: int) -> int:
    return size + -size % 4


def _header_of(kind: int) -> bytes:
    """Build the header of a stream (section 2.1.1)."""
    flags = bytes((0, kind))
    return XZ_MAGIC + flags + _crc32(flags)


def _end_of(kind: int, blocks: Sequence[tuple[int, int]]) -> bytes:
    """Build the index and the footer of a stream (sections 4 and 2.1.2)."""
    index = b"\0" + b"".join(map(_number, (len(blocks), *chain.from_iterable(blocks))))
    index += bytes(-len(index) % 4)
    index += _crc32(index)
    footer = (len(index) // 4 - 1).to_bytes(4, "little") + bytes((0, kind))
    return index + _crc32(footer) + footer + XZ_END


def _crc32(data: bytes) -> bytes:
    from zlib import crc32

    return crc32(data).to_bytes(4, "little")


def _number(value: int) -> bytes:
    """Encode a number (section 1.2): seven bits per byte, the lowest first."""
    low, rest = value & 0x7F, value >> 7
    return bytes((low | 0x80,)) + _number(rest) if rest else bytes((low,))


def _numbers(data: bytes) -> Iterator[int]:
    """Decode numbers; stop at one with more bits than the format allows."""
    value = bits = 0
    for byte in data:
        value |= (byte & 0x7F) << bits
        bits += 7
        if byte < 0x80:
            yield value
            value = bits = 0
        elif bits >= 63:
            return
