"""Do the same to many items in a pool of threads, and give the results in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import TypeVar

from geval_py.errors import GevalError

Item = TypeVar("Item")
Result = TypeVar("Result")
Progress = Callable[[int, int], None]  # what is done, and all there is, of long work


def available_cores() -> int:
    """Count the processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def map_in_order(function: Callable[[Item], Result], items: Iterable[Item], threads: int) -> Iterator[Result]:
    """Give ``function(item)`` of each item, in order, computed by so many threads while the next item is made.

    At most ``threads`` + 1 items are under way. An error comes where it belongs: after the results of all items
    before it, whether a function raises it or the making of an item. Without threads (0), or for a single item, all
    is done in the calling thread.
    """
    if threads == 0:
        yield from map(function, items)
        return
    made = _Made(items)
    beginning = list(islice(made, 2))
    if len(beginning) == 2:
        yield from _map_in_pool(function, chain(beginning, made), threads)
    else:
        yield from map(function, beginning)
    if made.error is not None:
        raise made.error


class _Made(Iterator[Item]):
    """The items that could be made, and the error that ended them, if one did."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._items = iter(items)
        self.error: GevalError | None = None

    def __next__(self) -> Item:
        try:
            return next(self._items)
        except GevalError as error:
            self.error = error
            raise StopIteration from error


def _map_in_pool(function: Callable[[Item], Result], items: Iterable[Item], threads: int) -> Iterator[Result]:
    from concurrent.futures import Future, ThreadPoolExecutor

    pool = ThreadPoolExecutor(threads)
    under_way: deque[Future[Result]] = deque()
    try:
        for item in items:
            under_way.append(pool.submit(function, item))
            if len(under_way) > threads:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
