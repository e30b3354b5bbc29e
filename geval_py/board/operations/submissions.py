"""``geval board add`` and ``scan``, which add submissions; ``withdraw``, ``note`` and ``final``, which mark them.

And ``announce``, which tells everybody something.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import takewhile
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlalchemy import Connection, Row, delete, insert, select, update

from geval_py.board.database.schema import FAILED, SCORED, outputs, scanned, submissions, submitters
from geval_py.board.database.store import Board, escape_unstorable, mark_changed
from geval_py.board.intake.identity import fingerprint, folded, own_name, submissions_in, submitter_of
from geval_py.board.intake.sandbox import STOP_SECONDS, end_children
from geval_py.board.intake.workspace import workspace
from geval_py.board.operations.notices import tell_of_withdrawal
from geval_py.board.operations.pipeline import Arrival, Prepared, prepare, settings_digest, tried_with
from geval_py.board.operations.receipts import AT, NOW, REFUSED, QuotaError, Receipt, id_of, receipt_of, written
from geval_py.board.operations.storing import store
from geval_py.board.ranking.disclosure import refresh
from geval_py.board.references import References, references_of
from geval_py.board.settings import Phase, Settings
from geval_py.board.submission import RejectedError
from geval_py.errors import DataError, GevalError, UsageError
from geval_py.reading.sources import naming
from geval_py.text import visible

if TYPE_CHECKING:
    from geval_py.board.operations.arrivals import Arrivals


Progress: TypeAlias = "Callable[[int, int], None]"
GROUP = 16  # submissions that are stored in one transaction
AHEAD = 4  # for each core, so many submissions are prepared before they are stored
HASTE_SECONDS = 20  # after which a submission makes way for those that wait; it is tried again after them
ORDER_SECONDS = 5  # that finished submissions wait for one before them, so that most are stored in their order
RECEIVED = "received"  # the outcome of a scanned path; a digest of what it depends on if it failed or was refused
NAMED, UNNAMED = "a final submission", "not a final submission"


def add(
    board: Board,
    source: str,
    *,
    submitter: str | None = None,
    at: datetime | None = None,
    baseline: bool = False,
    now: datetime,
) -> Receipt:
    """Receive, check, score and store a submission: a folder, an archive, or ``git+URL@BRANCH``.

    ``submitter`` is by default the submission's name, for a branch its whole repository; ``at`` is when it arrived,
    by default now. If the submitter sent the same content before, that submission's receipt is returned; if it failed
    then, it is replaced. Rejected and failed submissions are stored as such.

    Raises QuotaError before anything is scored; RejectedError for a name that no submitter may have; UsageError for a
    time in the future; MissingFileError for a missing source; StoreError.
    """
    arrival = _arrival(source, submitter, at, now, baseline=baseline)
    references = references_of(board.settings)
    with workspace() as place:
        prepared = prepare(board, arrival, references, place)
        with board.writing() as connection:
            receipt = store(connection, board, prepared)
            refresh(connection, board.settings, now)
    return receipt


def _arrival(
    source: str,
    submitter: str | None,
    at: datetime | None,
    now: datetime,
    *,
    baseline: bool = False,
) -> Arrival:
    if at is not None and at > now:
        raise UsageError(message=f"no submission can have arrived at {written(at)}: it is {written(now)}")
    by = NOW if at is None else AT
    return Arrival(source=source, submitter=submitter, arrived=at or now, added=now, baseline=baseline, arrived_by=by)


# Scanning: submissions are prepared in threads, as many at once as there are cores, and stored as they finish.


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scanned:
    """A path with its fingerprint ("" if it has none), its place, and how it is prepared: in haste, or with all time.

    ``number`` is its place in the order of arrival, ``key`` belongs to its submitter.
    """

    source: str
    fingerprint: str
    key: str
    arrival: Arrival
    number: int = 0
    is_hasty: bool = False
    place: str = ""
    prepared: Prepared | None = None
    refusal: GevalError | None = None
    seconds: float = 0.0

    @property
    def was_cut_short(self) -> bool:
        """Whether more time may change what came of it."""
        return self.is_hasty and self.seconds >= HASTE_SECONDS


def scan(
    board: Board,
    folder: str,
    *,
    now: datetime,
    at: datetime | None = None,
    arrived: str = NOW,
    again: bool = False,
    progress: Progress | None = None,
) -> list[Receipt]:
    """Add each sub-folder and archive of a folder that is new or has changed; its name is the submitter's.

    ``at`` is when all arrived; else ``arrivals.csv`` in the folder says when, and for submissions that are not in it
    ``arrived``, one of receipts.ARRIVED. The first to arrive is stored first. With ``again``, submissions that failed
    before are tried again. ``progress`` is called with the number of submissions done and the number of all. Rejected
    and failed ones are stored as such. A submission is refused if a quota is used up, if it cannot be read, if it is
    a link, or if it cannot have arrived when it is said to: it is not stored, its receipt has no code, and the next
    scan tries again. An interrupt kills all children; what was finished is stored.

    Raises UnreadableFileError, UsageError for a time in the future, StoreError, and the DataErrors of the challenge
    and of :func:`~geval_py.board.operations.arrivals.arrivals_in`.
    """
    from geval_py.board.operations.arrivals import arrivals_in

    with naming(folder):
        sources = submissions_in(folder)
    arrivals = arrivals_in(board, folder, way=arrived, at=at, now=now)
    references = references_of(board.settings)
    tried = tried_with(board.settings, references)
    known = _new_sources(board, sources, tried, again=again)
    unnumbered = [_scanned(arrivals, source, fingerprint, again=again) for source, fingerprint in known]
    in_order = sorted(unnumbered, key=lambda one: one.arrival.arrived)
    new = [replace(one, number=number) for number, one in enumerate(in_order)]
    found: list[tuple[int, Receipt]] = []

    def store_all(ready: Sequence[_Scanned], seconds: float | None = None) -> None:
        with board.writing(seconds) as connection:
            receipts = [(one.number, _store_scanned(connection, board, one, tried)) for one in ready]
            refresh(connection, board.settings, now)
        found.extend(receipts)
        if progress is not None:
            progress(len(found), len(new))

    with workspace() as places:
        preparation = _Preparation(partial(_prepare_scanned, board, references), new, places)
        try:
            while ready := preparation.ready():
                store_all(ready)
                preparation.remove(ready)
        except KeyboardInterrupt:
            if finished := preparation.stop():
                store_all(finished, STOP_SECONDS)
            raise
        finally:
            preparation.stop()
    return [receipt for _, receipt in sorted(found, key=lambda one: one[0])]


def _prepare_scanned(board: Board, references: References, one: _Scanned) -> _Scanned:
    if one.refusal is not None:
        return one
    began = time.monotonic()
    try:
        arrival = replace(one.arrival, seconds=HASTE_SECONDS if one.is_hasty else None)
        one = replace(one, prepared=prepare(board, arrival, references, one.place))
        _check_no_link(one.source)  # it may have become one since it was found
    except (DataError, UsageError) as error:  # one that cannot be read does not stop the others
        one = replace(one, prepared=None, refusal=error)
    return replace(one, seconds=time.monotonic() - began)


def _scanned(arrivals: Arrivals, source: str, fingerprint: str, *, again: bool) -> _Scanned:
    arrival = Arrival(source=source, submitter=None, arrived=arrivals.now, added=arrivals.now, again=again)
    one = _Scanned(source=source, fingerprint=fingerprint, key=_key(source), arrival=arrival)
    try:
        _check_no_link(source)
        moment, way = arrivals.of(source)
    except (DataError, UsageError) as error:
        return replace(one, refusal=error)
    return replace(one, arrival=replace(arrival, arrived=moment, arrived_by=way))


def _check_no_link(source: str) -> None:
    if os.path.islink(source):
        raise UsageError(message=f"`{visible(os.path.basename(source))}` is a link; links are not followed")


def _new_sources(board: Board, sources: Sequence[str], tried: str, *, again: bool) -> Iterator[tuple[str, str]]:
    """Yield the paths that are new or changed, with their fingerprints; always those of links.

    If a path could not be received, it counts as new once board.yaml has changed; if it failed, once that, the
    challenge or geval-py has changed, or if it is to be tried ``again``.
    """
    now, most = settings_digest(board.settings), board.settings.limits.listed
    with board.reading() as connection:
        known = {row.path: (row.fingerprint, row.outcome) for row in connection.execute(select(scanned))}
    for source in sources:
        if os.path.islink(source):
            yield source, ""
            continue
        try:
            found = fingerprint(source, most)
        except OSError:  # it is gone, say; the others go on
            found = ""
        before, outcome = known.get(visible(os.path.abspath(source)), ("", ""))
        settled = [RECEIVED, now, *([] if again else [f"{FAILED} {tried}"])]
        if not found or before != found or outcome not in settled:
            yield source, found


def _key(source: str) -> str:
    name = submitter_of(source)
    try:
        return folded(name)
    except RejectedError:
        return name


class _Preparation:
    """Submissions that are prepared in threads, and yielded as they finish.

    Each submitter has at most one at a time, so that quotas hold in the order of arrival. One that takes long makes
    way for the others, and is prepared again when nothing else is left.
    """

    def __init__(
        self, prepare_one: Callable[[_Scanned], _Scanned], submissions: Sequence[_Scanned], places: str
    ) -> None:
        cores = os.cpu_count() or 1
        self._prepare, self._places, self._most = prepare_one, places, cores * AHEAD + GROUP
        self._threads = ThreadPoolExecutor(cores)
        is_hasty = len(submissions) > cores  # otherwise none has to wait
        by_submitter: dict[str, deque[_Scanned]] = {}
        for one in submissions:
            by_submitter.setdefault(one.key, deque()).append(replace(one, is_hasty=is_hasty))
        self._waiting, self._slow = deque(by_submitter.values()), deque[deque[_Scanned]]()
        self._started: list[_Started] = []

    def ready(self) -> list[_Scanned]:
        """Wait until some are finished, and return these; an empty list when all are done."""
        while True:
            self._start()
            if not self._started:
                return []
            wait([one.future for one in self._started], return_when=FIRST_COMPLETED)
            first, *_ = self._started
            wait([first.future], timeout=ORDER_SECONDS)
            is_first_done = first.future.done()
            finished = list(takewhile(_Started.is_done, self._started)) if is_first_done else self._finished()
            for one in finished:
                if one.future.result().was_cut_short:
                    self._postpone(one)
            if ready := [one.future.result() for one in finished if one in self._started][:GROUP]:
                return ready

    def _start(self) -> None:
        while len(self._started) < self._most:
            if self._waiting:
                queue = self._waiting.popleft()
            elif self._slow and not any(one.is_hasty for one in self._started):
                queue = self._slow.popleft()
            else:
                return
            place = TemporaryDirectory(dir=self._places)
            one = replace(queue.popleft(), place=place.name)
            self._started.append(_Started(self._threads.submit(self._prepare, one), place, queue, one.is_hasty))

    def _finished(self) -> list[_Started]:
        return [one for one in self._started if one.is_done()]

    def _postpone(self, one: _Started) -> None:
        self._started.remove(one)
        one.place.cleanup()
        one.queue.appendleft(replace(one.future.result(), is_hasty=False, prepared=None, refusal=None))
        self._slow.append(one.queue)

    def remove(self, stored: Sequence[_Scanned]) -> None:
        """Remove submissions that are stored, with their files; the next ones of their submitters may start."""
        places = {one.place for one in stored}
        for one in [one for one in self._started if one.place.name in places]:
            self._started.remove(one)
            one.place.cleanup()
            if one.queue:
                self._waiting.append(one.queue)

    def stop(self) -> list[_Scanned]:
        """Kill all children; return the submissions that were finished before, and are not stored."""
        finished = [one.future.result() for one in self._finished() if one.future.exception() is None]
        self._threads.shutdown(wait=False, cancel_futures=True)
        end_children(self._places, (one.future for one in self._started))
        return [one for one in finished if not one.was_cut_short]


@dataclass(slots=True, eq=False)
class _Started:
    """A submission that is being prepared, or is not stored yet; ``queue`` has the next ones of its submitter."""

    future: Future[_Scanned]
    place: TemporaryDirectory[str]
    queue: deque[_Scanned]
    is_hasty: bool

    def is_done(self) -> bool:
        return self.future.done()


def _store_scanned(connection: Connection, board: Board, one: _Scanned, tried: str) -> Receipt:
    source, refusal = one.source, one.refusal
    if one.prepared is not None:
        try:
            receipt = store(connection, board, one.prepared)
        except QuotaError as error:  # another submission of this scan used up the quota
            refusal = error
        else:
            how = settings_digest(board.settings) if one.prepared.parcel is None else RECEIVED
            how = f"{FAILED} {tried}" if receipt.state == FAILED else how
            path = visible(os.path.abspath(source))
            connection.execute(delete(scanned).where(scanned.c.path == path))
            connection.execute(insert(scanned).values(path=path, fingerprint=one.fingerprint, outcome=how))
            return receipt
    name, reason = own_name(source), str(refusal).replace("\n ", ";")
    arrived, by = one.arrival.arrived, one.arrival.arrived_by
    return Receipt(
        code="",
        submitter=name,
        name=name,
        source=source,
        digest="",
        arrived=arrived,
        arrived_by=by,
        state=REFUSED,
        reason=reason,
    )


# Marks of the organiser on a submission, which stays stored.


def withdraw(board: Board, code: str, reason: str, now: datetime, *, by_team: bool = False) -> Receipt:
    """Hide a submission from all rankings and pages; it still counts for the quota.

    Raises UnknownCodeError, and UsageError without a reason, for a submission that is withdrawn already, and
    ``by_team`` if that would show or decide something: on a test with a ladder, or after the deadline.
    """
    if not reason.strip():
        raise UsageError(message="a submission is withdrawn with a reason, which `geval board status` shows")
    with board.writing() as connection:
        number = id_of(connection, code)
        moment = connection.execute(select(submissions.c.withdrawn).where(submissions.c.id == number)).scalar()
        if moment is not None:
            raise UsageError(message=f"`{visible(code)}` was withdrawn already, at {written(moment)}")
        if by_team:
            _check_team_may_withdraw(connection, board.settings, number, now)
        values = {"withdrawn": now.astimezone(UTC), "withdrawal": escape_unstorable(reason)}
        connection.execute(update(submissions).where(submissions.c.id == number).values(values))
        refresh(connection, board.settings, now)
        receipt = receipt_of(connection, number, f"withdrawn: {visible(reason)}")
        tell_of_withdrawal(connection, board.settings, receipt.code, receipt.submitter, now)
        return receipt


def _check_team_may_withdraw(connection: Connection, settings: Settings, number: int, now: datetime) -> None:
    """Raise UsageError where a withdrawal would help a team: a lost step of a ladder would show the next score."""
    row = connection.execute(select(submissions).where(submissions.c.id == number)).one()
    phase, ask = settings.phase_of(row.arrived), f"ask the organiser to withdraw {row.code}"
    if phase != settings.phase_of(now):
        raise UsageError(message=f"the deadline of {visible(phase)} has passed; {ask}")
    own = set(connection.execute(select(outputs.c.test).where(outputs.c.submission_id == number)).scalars())
    for test in settings.in_phase(phase).tests:
        if test.ladder and test.name in own:
            raise UsageError(message=f"it may be a step of the ladder of {visible(test.name)}; {ask}")


def note(board: Board, code: str, remark: str) -> Receipt:
    """Put a public remark on a submission, in place of an earlier one; "" removes it. Raises UnknownCodeError."""
    remark = remark.strip()
    with board.writing() as connection:
        number = id_of(connection, code)
        values = {"remark": escape_unstorable(remark)}
        connection.execute(update(submissions).where(submissions.c.id == number).values(values))
        mark_changed(connection)
        return receipt_of(connection, number, f"remark: {visible(remark)}" if remark else "without a remark")


# Final submissions


def name_final(board: Board, codes: Sequence[str], now: datetime, *, undo: bool = False) -> list[Receipt]:
    """Name submissions as those by which the private part of a test ranks their submitters; return their receipts.

    With ``undo`` they are that no longer. It is done for all or, after an error, for none.

    Raises UnknownCodeError, and UsageError if a submission cannot be final, if a submitter has named more than
    board.yaml allows, and after the deadline.
    """
    settings = board.settings
    if not settings.finals:
        raise UsageError(message="this board has no final submissions\n  `finals: 2` in board.yaml allows two")
    with board.writing() as connection:
        numbers = list(dict.fromkeys(id_of(connection, code) for code in codes))
        for number in numbers:
            row = connection.execute(select(submissions).where(submissions.c.id == number)).one()
            tests = _tests_of(connection, settings, row)
            _check_deadlines(tests, now)
            if not undo:
                _check_can_be_final(settings, row, tests)
            moment = None if undo else row.final or now.astimezone(UTC)
            connection.execute(update(submissions).where(submissions.c.id == number).values(final=moment))
        _check_numbers(connection, settings, numbers)
        mark_changed(connection)
        return [receipt_of(connection, number, UNNAMED if undo else NAMED) for number in numbers]


def _tests_of(connection: Connection, settings: Settings, row: Row[Any]) -> dict[str, Phase | None]:
    """Return the tests whose private part a submission may decide, each with the phase that has its deadline."""
    query = select(outputs.c.test).where(outputs.c.submission_id == row.id).distinct()
    own, phase = set(connection.execute(query).scalars()), settings.phase_of(row.arrived)
    split = (test.name for test in settings.tests if test.split and test.name in own)
    last = {test: settings.deciding_phase(test) for test in split}
    return {test: of for test, of in last.items() if of is None or of.name == phase}


def _check_can_be_final(settings: Settings, row: Row[Any], tests: Mapping[str, Phase | None]) -> None:
    if row.baseline:
        raise UsageError(message=f"{row.code} is a baseline, which has no place")
    if row.state != SCORED or row.withdrawn is not None:
        state = "withdrawn" if row.withdrawn is not None else row.state
        raise UsageError(message=f"{row.code} is {state}: only a scored submission can be final")
    if not tests:
        last = {test.name: settings.deciding_phase(test.name) for test in settings.tests if test.split}
        needed = [f"an output for {test}" + (f" in {phase.name}" if phase else "") for test, phase in last.items()]
        raise UsageError(message=visible(f"{row.code} cannot be final: it needs {' or '.join(needed)}"))


def _check_deadlines(tests: Mapping[str, Phase | None], now: datetime) -> None:
    for test, phase in tests.items():
        if phase is not None and now > phase.until:
            deadline = f"the deadline of {visible(test)} has passed, at {written(phase.until)}"
            raise UsageError(message=f"{deadline}: final submissions stay as they are")


def _check_numbers(connection: Connection, settings: Settings, numbers: Iterable[int]) -> None:
    """Raise UsageError if a submitter of these submissions has named too many for a test."""
    of_these = select(submissions.c.submitter_id).where(submissions.c.id.in_(list(numbers)))
    query = (
        select(submissions, submitters.c.name.label("submitter"))
        .join(submitters, submitters.c.id == submissions.c.submitter_id)
        .where(submissions.c.final.is_not(None), submissions.c.submitter_id.in_(of_these))
        .where(submissions.c.state == SCORED, submissions.c.withdrawn.is_(None))
        .order_by(submissions.c.final, submissions.c.id)
    )
    named: dict[tuple[str, str], list[str]] = {}
    for row in connection.execute(query).all():
        for test in _tests_of(connection, settings, row):
            named.setdefault((row.submitter, test), []).append(row.code)
    for (submitter, test), codes in named.items():
        if len(codes) > settings.finals:
            most = f"{visible(submitter)} may name {settings.finals} final submissions for {visible(test)}"
            more = f"{', '.join(codes)} are {len(codes)}\n  geval board final --undo takes one back"
            raise UsageError(message=f"{most}: {more}")
