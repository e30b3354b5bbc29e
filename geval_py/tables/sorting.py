"""Sorting of more texts than should be in memory, and lists of items of a limited size."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BytesIO
from tempfile import TemporaryFile
from typing import Any, TypeVar

from geval_py.errors import GevalError

Item = TypeVar("Item")
RUN_BYTES = 1 << 21  # of lines that are sorted in memory at once
RUN_PARTS = 32  # that are read one after another
PAIR_BYTES = 160  # of a text's key and objects in memory


def sort_texts(keyed: Iterable[tuple[float, str]], *, greatest_first: bool) -> Iterator[str]:
    """Yield texts, each ended by LF, by their keys; equals in order, and NaN last.

    Meanwhile they are in a temporary file, since those of a million lines would take a gigabyte of memory: in sorted
    runs, of which a small part each is in memory when they are merged.
    """
    import numpy as np

    def order(keys: Sequence[float]) -> Any:
        return np.argsort(np.negative(keys) if greatest_first else np.asarray(keys), kind="stable")

    keys, numbers, runs = array("d"), array("q"), list[Iterator[str]]()
    with TemporaryFile() as file:

        def read(start: int, sizes: Sequence[int]) -> Iterator[str]:
            for size in sizes:
                file.seek(start)
                yield from map(bytes.decode, BytesIO(file.read(size)))
                start += size

        for block in grouped(keyed, lambda pair: len(pair[1]) + PAIR_BYTES, RUN_BYTES):
            own, texts = zip(*(block[place] for place in order([key for key, _ in block])), strict=True)
            keys.extend(own)
            numbers.extend([len(runs)] * len(own))
            start, step = file.tell(), len(own) // RUN_PARTS + 1
            parts = ("".join(texts[place : place + step]).encode() for place in range(0, len(own), step))
            runs.append(read(start, list(map(file.write, parts))))
        for number in np.asarray(numbers)[order(keys)].tolist():
            yield next(runs[number])


def grouped(items: Iterable[Item], size_of: Callable[[Item], float], most: float) -> Iterator[list[Item]]:
    """Yield items in lists whose sizes add up to ``most`` or that hold one item; an error after those before it."""
    group, size = list[Item](), 0.0
    try:
        for item in items:
            own = size_of(item)
            if group and size + own > most:
                yield group
                group, size = [], 0.0
            group.append(item)
            size += own
    except GevalError:
        if group:
            yield group
        raise
    if group:
        yield group
