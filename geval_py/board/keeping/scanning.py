"""``geval board scan``: each submission of a folder that is new is added, as many at once as there are cores.

They are looked into in child processes, and stored by one, in the order of their names, in groups: so that who comes
first does not depend on which child is done first.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from itertools import islice, takewhile
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeAlias

from geval_py.board.intake.doors import fingerprint, own_name, submissions_in
from geval_py.board.keeping.outdating import received_with
from geval_py.board.keeping.preparing import Prepared, prepare
from geval_py.board.keeping.quota import QuotaError
from geval_py.board.keeping.receipts import REFUSED, Receipt
from geval_py.board.keeping.submissions import PLACE_BEGINNING, arrival_of, store
from geval_py.board.ranking.refreshing import refresh
from geval_py.board.references import References, references_of
from geval_py.board.storing.facts import facts_about, remember
from geval_py.board.storing.schema import FAILED
from geval_py.errors import DataError, GevalError, UsageError
from geval_py.reading.sources import naming
from geval_py.text import visible

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from geval_py.board.storing.store import Board

Progress: TypeAlias = "Callable[[int, int], None]"

GROUP = 16  # submissions that are stored in one transaction
AHEAD = 4  # times as many as there are cores are looked into before they are stored
SCANNED = "scanned "  # what the names of facts begin with that tell what a path was like when it was stored


@dataclass(frozen=True, slots=True)
class _Ready:
    """A submission that was looked into, or why it is refused, and what its path was like before that."""

    source: str
    fingerprint: str
    prepared: Prepared | None
    refusal: GevalError | None = None


def scan(
    board: Board,
    folder: str,
    *,
    now: datetime,
    at: datetime | None = None,
    progress: Progress | None = None,
) -> list[Receipt]:
    """Add each sub-folder and archive of a folder that is new, or is not as it was; its name is its submitter's.

    ``at`` is when they arrived, by default now; ``progress`` is called with how many are done, and how many there are
    to do. What is rejected or failed is stored as such, and does not stop the others. What is refused, since a quota
    is used up, or it is neither a folder nor an archive that can be read, is not stored: its receipt has no code, and
    the next scan tries again.

    Raises UnreadableFileError, UsageError for a time to come, StoreError, and the DataErrors of the challenge.
    """
    arrival_of(folder, None, at, now)
    with naming(folder):
        sources = submissions_in(folder)
    new = list(_new(board, sources))
    references = references_of(board.settings)
    receipts: list[Receipt] = []
    for group in _groups(board, new, references, at, now):
        receipts += _store(board, group, at or now, now)
        if progress is not None:
            progress(len(receipts), len(new))
    return receipts


def _new(board: Board, sources: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Give the paths that are not as they were when they were stored, and what they are like.

    What could not be received is looked at again once board.yaml lets other things in.
    """
    of_now = received_with(board.settings)
    with board.reading() as connection:
        known = facts_about(connection, SCANNED)
    for source in sources:
        with naming(source):
            found = fingerprint(source)
        if known.get(_place(source)) not in (found, f"{found} {of_now}"):
            yield source, found


def _place(source: str) -> str:
    return visible(os.path.abspath(source))


@dataclass(slots=True)
class _Looking:
    """One submission that is looked into, and the place where its files stay until it is stored."""

    future: Future[_Ready]
    place: TemporaryDirectory[str]


def _groups(
    board: Board, new: Sequence[tuple[str, str]], references: References, at: datetime | None, now: datetime
) -> Iterator[list[_Ready]]:
    """Look into submissions, some at once; give those that are ready, in order. Their files stay until the next."""
    cores = os.cpu_count() or 1
    waiting, running = deque(new), deque[_Looking]()
    threads = ThreadPoolExecutor(cores)
    try:
        while waiting or running:
            while waiting and len(running) < cores * AHEAD + GROUP:
                place = TemporaryDirectory(prefix=PLACE_BEGINNING)
                source, found = waiting.popleft()
                future = threads.submit(_look, board, source, found, references, place.name, at, now)
                running.append(_Looking(future, place))
            running[0].future.result()
            ready = list(takewhile(lambda one: one.future.done(), islice(running, GROUP)))
            yield [one.future.result() for one in ready]
            for one in ready:
                running.popleft()
                one.place.cleanup()
    finally:
        threads.shutdown(cancel_futures=True)
        for one in running:
            one.place.cleanup()


def _look(
    board: Board, source: str, found: str, references: References, place: str, at: datetime | None, now: datetime
) -> _Ready:
    try:
        return _Ready(source, found, prepare(board, arrival_of(source, None, at, now), references, place))
    except (DataError, UsageError) as error:  # a pipe, or what cannot be read, does not stop the others
        return _Ready(source, found, None, error)


def _store(board: Board, group: Sequence[_Ready], arrived: datetime, now: datetime) -> list[Receipt]:
    """Store some submissions in one transaction."""
    with board.writing() as connection:
        receipts = [_store_one(connection, board, ready, arrived) for ready in group]
        refresh(connection, board.settings, now)
    return receipts


def _store_one(connection: Connection, board: Board, ready: _Ready, arrived: datetime) -> Receipt:
    if ready.prepared is None:
        return _refused(ready.source, ready.refusal, arrived)
    try:
        receipt = store(connection, board, ready.prepared)
    except QuotaError as error:  # one of the same submitter came before it in this scan
        return _refused(ready.source, error, arrived)
    if receipt.state != FAILED:
        of_now = "" if ready.prepared.parcel is not None else f" {received_with(board.settings)}"
        remember(connection, SCANNED + _place(ready.source), ready.fingerprint + of_now)
    return receipt


def _refused(source: str, error: GevalError | None, arrived: datetime) -> Receipt:
    name = own_name(source)
    reason = str(error).replace("\n ", ";")
    return Receipt(
        code="", submitter=name, name=name, source=source, digest="", arrived=arrived, state=REFUSED, reason=reason
    )
