"""Rows of words and of their numbers in buffers, as Arrow lays them out, from and to Arrow's record batches."""

from __future__ import annotations

from geval_py.reading.arrow import numbers_in, pyarrow, starts_in
from geval_py.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from geval_py.reading.lines import Bytes

# The keys of a row, in all formats.
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


def listed_rows(batch: Any) -> ListedRows | None:
    """Return the rows of a batch in its buffers; None for another form than lists of words and of their numbers."""
    filled = [name for name in batch.schema.names if batch.column(name).null_count < batch.num_rows]
    units = [name for name in filled if name != WORDS]
    if WORDS not in filled or len(units) != 1 or units[0] not in UNITS:
        return None
    words, numbers = batch.column(WORDS), batch.column(units[0])
    if hasattr(numbers, "keys") or words.null_count or numbers.null_count:
        return None
    items, values = words.values, numbers.values
    if items.null_count or values.null_count or str(values.type) not in ("float", "double"):
        return None
    if not words.offsets.equals(numbers.offsets):
        return None
    codes = None
    if hasattr(items, "dictionary"):
        codes, items = items.indices, items.dictionary
        if items.null_count or str(codes.type) not in ("int32", "int64"):
            return None
    return ListedRows(
        offsets=numbers_in(words.offsets),
        starts=starts_in(items),
        text=memoryview(items.buffers()[2] or b""),
        codes=None if codes is None else numbers_in(codes),
        values=numbers_in(values),
        probabilities=units[0] == PROBABILITIES,
    )


def batch_of(listed: ListedRows) -> Any:
    """Return rows in buffers as a record batch; the numbers of both are int32 and float or double."""
    pa = pyarrow()
    count = len(listed.values)
    words = pa.StringArray.from_buffers(
        len(listed.starts) - 1, pa.py_buffer(listed.starts), pa.py_buffer(listed.text)
    )
    if listed.codes is not None:
        codes = pa.Array.from_buffers(pa.int32(), count, [None, pa.py_buffer(listed.codes)])
        words = pa.DictionaryArray.from_arrays(codes, words, safe=False)  # the decoder has looked
    kind = pa.float32() if listed.values.itemsize == 4 else pa.float64()
    numbers = pa.Array.from_buffers(kind, count, [None, pa.py_buffer(listed.values)])
    lists = [
        pa.Array.from_buffers(
            pa.list_(of.type), len(listed.offsets) - 1, [None, pa.py_buffer(listed.offsets)], children=[of]
        )
        for of in (words, numbers)
    ]
    return pa.RecordBatch.from_arrays(lists, [WORDS, PROBABILITIES if listed.probabilities else LOGARITHMS])
