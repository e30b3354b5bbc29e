"""Do the same to many items in a pool of threads, and give the results in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import chain, islice

from geval_py.errors import GevalError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias, TypeVar

    Item = TypeVar("Item")
    Result = TypeVar("Result")

Progress: TypeAlias = Callable[[int, int], None]  # what is done, and all there is, of long work
ProgressOf: TypeAlias = Callable[[str], AbstractContextManager[Progress | None]]  # by the name of the work


def no_progress(_: str) -> AbstractContextManager[None]:
    """Tell nobody how far a work is."""
    return nullcontext()


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
    errors: list[GevalError] = []
    made = _made(items, errors)
    beginning = list(islice(made, 2))
    if len(beginning) == 2:
        yield from _map_in_pool(function, chain(beginning, made), threads)
    else:
        yield from map(function, beginning)
    if errors:
        raise errors[0]


def _made(items: Iterable[Item], errors: list[GevalError]) -> Iterator[Item]:
    """Give the items that could be made, and note the error that ended them, if one did."""
    try:
        yield from items
    except GevalError as error:
        errors.append(error)


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
