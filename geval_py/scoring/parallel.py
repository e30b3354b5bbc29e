"""Threads that do the same to many items, with the results in order; and how long work reports its progress."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import chain, islice

from geval_py.errors import GevalError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor
    from typing import Protocol, TypeAlias, TypeVar

    Item = TypeVar("Item")
    Result = TypeVar("Result")
    Given = TypeVar("Given", covariant=True)

    class Awaited(Protocol[Given]):
        """A result that is under way."""

        def result(self) -> Given:
            """Wait for the result; raises what the work raised."""


Progress: TypeAlias = Callable[[int, int], None]  # how much of long work is done, and how much there is
ProgressOf: TypeAlias = Callable[[str], AbstractContextManager[Progress | None]]  # by the name of the work


def no_progress(_: str) -> AbstractContextManager[None]:
    """Report no progress."""
    return nullcontext()


def available_cores() -> int:
    """Count the processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class ThreadPool:
    """Threads that start when there is work for a second one; without threads (0) the caller does all the work.

    Several maps may share them, and one map may take what another yields: what is submitted first is done first.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> ThreadPool:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def map_in_order(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yield ``function(item)`` of each item, in order, computed in threads while the next item is made.

        At most one item more than there are threads is under way. An error is raised after the results of all items
        before it, whether the function or the making of an item raised it. The caller works on a single item itself.
        """
        if self.threads == 0:
            yield from map(function, items)
            return
        errors: list[GevalError] = []
        made = _made(items, errors)
        beginning = list(islice(made, 2))
        if len(beginning) == 2:
            yield from in_order(partial(self._submit, function), chain(beginning, made), ahead=self.threads)
        else:
            yield from map(function, beginning)
        if errors:
            raise errors[0]

    def _submit(self, function: Callable[[Item], Result], item: Item) -> Future[Result]:
        from concurrent.futures import ThreadPoolExecutor

        self._pool = self._pool or ThreadPoolExecutor(self.threads)
        return self._pool.submit(function, item)


def in_order(submit: Callable[[Item], Awaited[Result]], items: Iterable[Item], *, ahead: int) -> Iterator[Result]:
    """Submit items and yield their results in order, while as many as ``ahead`` more are under way.

    An error in the making of an item is raised after the results of all items before it.
    """
    errors: list[GevalError] = []
    under_way: deque[Awaited[Result]] = deque()
    for item in _made(items, errors):
        under_way.append(submit(item))
        if len(under_way) > ahead:
            yield under_way.popleft().result()
    while under_way:
        yield under_way.popleft().result()
    if errors:
        raise errors[0]


def _made(items: Iterable[Item], errors: list[GevalError]) -> Iterator[Item]:
    """Yield the items until one cannot be made; then keep the error."""
    try:
        yield from items
    except GevalError as error:
        errors.append(error)
