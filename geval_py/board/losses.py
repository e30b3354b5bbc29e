"""Line losses as they are stored: little-endian doubles, packed by Zstandard."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    import numpy as np
    import numpy.typing as npt


def pack(losses: Iterable[float]) -> bytes:
    """Pack line losses, in line order."""
    from array import array

    values = array("d", losses)
    if sys.byteorder == "big":
        values.byteswap()
    packed: bytes = _zstd().compress(values.tobytes())
    return packed


def unpack(packed: bytes) -> npt.NDArray[np.float64]:
    """Unpack line losses."""
    import numpy as np

    return np.frombuffer(_zstd().decompress(packed), dtype="<f8").astype(np.float64)


def _zstd() -> ModuleType:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd
