"""Do the same to many items in threads, and give the results in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice

from geval_py.errors import GevalError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor
    from typing import TypeAlias, TypeVar

    Item = TypeVar("Item")
    Result = TypeVar("Result")

Progress: TypeAlias = Callable[[int, int], None]  # what is done, and all there is, of long work


def available_cores() -> int:
    """Count the processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Workers:
    """Some threads, which start when there is work for a second one; without threads (0) the caller does all.

    Several maps may share them, and one may be made of what another gives: what is submitted first is done first.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def map_in_order(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Give ``function(item)`` of each item, in order, computed in threads while the next item is made.

        At most one item more than there are threads is under way. An error comes where it belongs: after the results
        of all items before it, whether a function raises it or the making of an item. A single item is worked on by
        the caller.
        """
        if self.threads == 0:
            yield from map(function, items)
            return
        errors: list[GevalError] = []
        made = _made(items, errors)
        beginning = list(islice(made, 2))
        if len(beginning) == 2:
            yield from self._map_in_pool(function, chain(beginning, made))
        else:
            yield from map(function, beginning)
        if errors:
            raise errors[0]

    def _map_in_pool(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        from concurrent.futures import ThreadPoolExecutor

        self._pool = self._pool or ThreadPoolExecutor(self.threads)
        under_way: deque[Future[Result]] = deque()
        for item in items:
            under_way.append(self._pool.submit(function, item))
            if len(under_way) > self.threads:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()


def _made(items: Iterable[Item], errors: list[GevalError]) -> Iterator[Item]:
    """Give the items that could be made, and note the error that ended them, if one did."""
    try:
        yield from items
    except GevalError as error:
        errors.append(error)
