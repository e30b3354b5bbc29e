"""Rows of words and of their numbers in buffers, as Arrow lays them out, and the keys of rows in all formats."""

from __future__ import annotations

from geval_py.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from geval_py.reading.lines import Bytes

WORDS, PROBABILITIES, LOGARITHMS, BUCKETS = "words", "probabilities", "logprobs", "buckets"
UNITS = (PROBABILITIES, LOGARITHMS)


class ListedRows(NamedTuple):
    """Rows in buffers: row i has the entries from ``offsets[i]`` to before ``offsets[i + 1]``.

    The UTF-8 text of word j is ``text[starts[j] : starts[j + 1]]``. Entry k has the word ``codes[k]`` or, where
    ``codes`` is None, word k, and the number ``values[k]``. The numbers in ``offsets``, ``starts`` and ``codes`` are
    int32 or int64, those in ``values`` float32 or float64. ``probabilities`` is whether the numbers are
    probabilities, or logarithms.
    """

    offsets: memoryview[int]
    starts: memoryview[int]
    text: Bytes
    codes: memoryview[int] | None
    values: memoryview[float]
    probabilities: bool
