"""Pages of Parquet unpacked by cramjam, of the extra parquet.

It takes 0.002 s to import, pyarrow 0.05 s, and threads may use it at once, unlike pyarrow's gzip. It refuses whatever
does not unpack to just the size in a page's header.
"""

from __future__ import annotations

from functools import cache

from geval_py.reading.compression import size_of_frame, zstd_module
from geval_py.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    from geval_py.reading.lines import Bytes

    Unpack: TypeAlias = Callable[[Bytes, memoryview], None]  # some bytes, into a buffer that they fill

# The functions of cramjam by the codec's number in the footer; 5 is an older LZ4, whose frames differ by writer.
FUNCTIONS = {
    1: ("snappy", "decompress_raw_into"),
    2: ("gzip", "decompress_into"),
    4: ("brotli", "decompress_into"),
    6: ("zstd", "decompress_into"),
    7: ("lz4", "decompress_block_into"),
}
NONE, ZSTD = 0, 6


class PackedError(Exception):
    """Bytes cannot be unpacked."""


class Codec(NamedTuple):
    """What unpacks a codec's bytes, and raises PackedError.

    With ``size_of``, the bytes of several pages, one after the other, unpack to all their contents. It returns the
    size that the bytes of a page say they unpack to, which is checked then; None if they do not say it.
    """

    unpack: Unpack
    size_of: Callable[[Bytes], int | None] | None


@cache
def codec_of(number: int) -> Codec | None:
    """Return the codec with a number; None for one that is not known, and for all but NONE without cramjam."""
    if number == NONE:
        return Codec(copy, None)
    try:
        import cramjam
    except ImportError:
        return None
    if number not in FUNCTIONS:
        return None
    module, name = FUNCTIONS[number]
    function: Any = getattr(getattr(cramjam, module), name)

    def unpack(data: Bytes, into: memoryview) -> None:
        try:
            size = function(data, into)
        except (cramjam.DecompressionError, ValueError, OverflowError) as error:
            raise PackedError from error
        if size != len(into):
            raise PackedError

    return Codec(unpack, _size_of_whole if number == ZSTD else None)


def copy(data: Bytes, into: memoryview) -> None:
    """Copy bytes that are not packed; raises PackedError if they are more or fewer."""
    if len(data) != len(into):
        raise PackedError
    into[:] = data


def _size_of_whole(frame: Bytes) -> int | None:
    """Return the size that a Zstandard frame declares; None if it does not, or these are not just one frame."""
    zstd = zstd_module()
    try:
        is_whole = zstd.get_frame_size(frame) == len(frame)
    except zstd.ZstdError:
        return None
    return size_of_frame(frame) if is_whole else None
