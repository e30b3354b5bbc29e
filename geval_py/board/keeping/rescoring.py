"""``geval board rescore``: what is out of date is scored again, and then, in one transaction, takes its place.

    out of date ──(children)──> evaluations, stored as they come ──(one transaction)──> scores, history, disclosures

No table is ever made of old and new scores. An evaluation that is stored is not made again: a run that is
interrupted goes on where it was, and one after a dry run has only to take its place.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, TypeAlias

from geval_py.board.intake.elsewhere import looking_on
from geval_py.board.keeping.outdating import Outdated, outdated
from geval_py.board.keeping.receipts import Receipt, receipt_of
from geval_py.board.keeping.switching import switch
from geval_py.board.keeping.working import Work, score_again
from geval_py.board.ranking.refreshing import refresh
from geval_py.board.ranking.standing import PlaceChange, changed_places, places
from geval_py.board.references import References, references_of
from geval_py.errors import ClusterError

if TYPE_CHECKING:
    from geval_py.board.storing.store import Board
    from geval_py.scoring.cluster import Cluster

MOST_AT_ONCE = 32  # of the submissions that lie unpacked, each with a connection to the database
Progress: TypeAlias = "Callable[[int, int], None]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescored:
    """What was out of date, whose place changed by it, and which submissions have another state now, or would."""

    outdated: tuple[Outdated, ...]
    changes: tuple[PlaceChange, ...]
    receipts: tuple[Receipt, ...]


def rescore(
    board: Board,
    *,
    now: datetime,
    dry_run: bool = False,
    progress: Progress | None = None,
    cluster: Cluster | None = None,
) -> Rescored:
    """Score again what is out of date, keep what was in the history with the reason, and rank anew.

    Submissions that failed are tried again, and those that were rejected are checked again if what they were checked
    with changed. With ``dry_run`` all stays as it is, but for evaluations that no one is shown. ``progress`` is
    called with how many submissions are done, and how many there are to do. With a ``cluster``, its workers look into
    the submissions. Raises StoreError, the DataErrors of the challenge, and ClusterError.
    """
    references = references_of(board.settings)
    with board.reading() as connection:
        found = outdated(connection, references)
    done = list(_done(board, found, references, now, progress, cluster))
    with board.writing() as connection:
        refresh(connection, board.settings, now)
        before = places(connection, board.settings, now)
        numbers = [number for work in done for number in switch(connection, work, references, now)]
        refresh(connection, board.settings, now)
        changes = changed_places(before, places(connection, board.settings, now))
        receipts = tuple(receipt_of(connection, number) for number in numbers)
        if dry_run:
            connection.rollback()
    return Rescored(outdated=tuple(found), changes=tuple(changes), receipts=receipts)


def _done(
    board: Board,
    found: Sequence[Outdated],
    references: References,
    now: datetime,
    progress: Progress | None,
    cluster: Cluster | None,
) -> Iterator[Work]:
    """Look into what is out of date, some submissions at once; gives them in the order of their arrival."""
    look = None if cluster is None else looking_on(cluster, references)
    groups = [tuple(group) for _, group in groupby(found, key=lambda one: one.submission_id)]
    threads = ThreadPoolExecutor((os.cpu_count() or 1) if cluster is None else min(cluster.ahead, MOST_AT_ONCE))
    try:
        futures = [threads.submit(score_again, board, group, references, now, look) for group in groups]
        for number, future in enumerate(as_completed(futures), 1):
            if isinstance(future.exception(), ClusterError):
                future.result()  # the others would fail as well
            if progress is not None:
                progress(number, len(groups))
        yield from (future.result() for future in futures)
    finally:
        threads.shutdown(cancel_futures=True)
