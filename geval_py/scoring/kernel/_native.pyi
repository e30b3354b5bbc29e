from array import array

import numpy as np
from numpy.typing import NDArray

from geval_py.reading.lines import Bytes
from geval_py.scoring.kernel.packed_words import Hashes, Ids, Numbers
from geval_py.scoring.kernel.reference import Doubles

def score_lines(
    outputs: Bytes, expected: bytes, bits: int, first_line: int, thorough: bool
) -> tuple[bytes, bytes, int, int, float]: ...
def line_profiles(
    outputs: Bytes, expected: bytes, bits: int, first_line: int, draws: int
) -> tuple[bytes, bytes, int]: ...
def read_guesses(
    outputs: Bytes, expected: bytes, bits: int, first_line: int
) -> tuple[bytes, bytes, bytes, bytes, int]: ...
def bucket_shares(words: bytes, shares: array[float], expected: bytes, bits: int, first_line: int) -> bytes: ...
def count_lines(text: Bytes) -> int: ...
def read_number(text: Bytes) -> float | None: ...
def format_entries(words: bytes, numbers: Doubles, least: float, most: float) -> str: ...
def pack_words(words: bytes) -> object: ...
def array_losses(
    words: object,
    values: Numbers,
    ids: Ids | None,
    offsets: Ids | None,
    rests: NDArray[np.float64] | None,
    expected: bytes,
    lines: Hashes,
    bits: int,
    unit: int,
) -> tuple[bytes, float, int]: ...
