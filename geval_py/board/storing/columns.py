"""The columns of line statistics as they are stored: little-endian doubles, one column after the other, packed."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable
from typing import Any


def pack(columns: Iterable[array[float]]) -> bytes:
    """Pack columns of one length by Zstandard."""
    return bytes(_zstd().compress(b"".join(_ordered(array("d", column)).tobytes() for column in columns)))


def unpack(data: bytes, lines: int) -> tuple[array[float], ...]:
    """Give back the columns, each of as many lines; raises ValueError for what is not packed so."""
    try:
        values = array("d", _zstd().decompress(data))
    except _zstd().ZstdError as error:
        raise ValueError(str(error)) from error
    if not lines or not values or len(values) % lines:
        raise ValueError(f"{len(values)} values are no columns of {lines} lines")
    values = _ordered(values)
    return tuple(values[start : start + lines] for start in range(0, len(values), lines))


def _ordered(values: array[float]) -> array[float]:
    if sys.byteorder == "big":
        values.byteswap()
    return values


def _zstd() -> Any:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd
