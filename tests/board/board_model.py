"""A board as plain Python values: what must be on it after each step, by its documentation.

A method that changes the model is a generator: it yields wherever the board has finished a transaction, so that
whoever is killed leaves one of the states between. It raises RefusedError where the board must refuse.
"""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from geval_py.board.database.schema import Moment
from geval_py.board.ranking.parts import public_lines
from geval_py.text import natural_order

LEASE, PAUSE, MAX_PAUSE = (timedelta(seconds=seconds) for seconds in (30, 5, 80))
MAX_DEATHS, MAX_LEASES = 2, 6
PAUSES = [timedelta(minutes=minutes) for minutes in (1, 5, 15, 60, 180, 360, 720)]
HIDDEN, VISIBLE = "test-A", "dev-0"
SHARE, SEED, BUCKETS, DIGITS = 0.5, 40627719283, 1024, 15
SCORES = {
    "LogLossHashed": lambda loss: loss,
    "PerplexityHashed": math.exp,
    "LikelihoodHashed": lambda loss: math.exp(-loss),
}


class RefusedError(Exception):
    """The board must refuse this, and change nothing."""


@dataclass(frozen=True, eq=False)
class Content:
    """A submission's outputs, by test: each a list of lines (word, probability), or None if it is malformed.

    ``digests`` are that of the received files, and those of the unopened folder, archive and branch.
    """

    outputs: dict[str, list]
    digests: dict[str, str]
    number: int

    def __deepcopy__(self, _):
        return self

    def is_received(self, variants):
        return all(len(of) <= variants for of in self.outputs.values())

    def is_valid(self, answers):
        return all(
            out is not None and len(out) == len(answers[test]) for test, of in self.outputs.items() for out in of
        )

    def cost(self):
        return max(len(self.outputs.get(HIDDEN, ())), 1)


@dataclass
class Submission:
    """A submission; ``scores`` has what it was scored with, by test and metric; ``checked`` what it was checked with."""

    team: str
    digest: str
    content: Content
    arrived: datetime
    baseline: bool
    state: str
    cost: int = 0
    checked: tuple = ()
    scores: dict = field(default_factory=dict)
    has_files: bool = True
    had_outputs: bool = False
    withdrawn: bool = False
    final: datetime | None = None
    remark: str = ""
    code: tuple = ()  # of its first digest, and its arrival

    def marks(self):
        return self.baseline, self.withdrawn, stored(self.final), self.remark


@dataclass
class Upload:
    """An upload with its job."""

    team: str
    content: Content
    form: str
    arrived: datetime
    dry: bool
    due: datetime
    state: str = "waiting"
    job: str = "waiting"
    lease: int = 0
    deaths: int = 0
    until: datetime | None = None
    started: datetime | None = None
    submission: int | None = None


@dataclass(frozen=True)
class BoardSettings:
    metric: str = "PerplexityHashed"
    quota: int = 0
    phases: tuple = ()  # names and deadlines
    split: bool = False
    finals: int = 0
    digits: int = 4
    variants: int = 2
    zone: str = "Europe/Warsaw"

    def phase_of(self, moment):
        return next((name for name, until in self.phases if moment <= until), "post-deadline" if self.phases else "")

    def day_of(self, moment):
        zone = ZoneInfo(self.zone)
        first = moment.astimezone(zone).date()
        return [datetime.combine(day, time(), zone).astimezone(UTC) for day in (first, first + timedelta(1))]


@dataclass
class Model:
    """All that a board remembers, and what is beside it: ``answers`` by test, folders to scan, faults."""

    now: datetime
    answers: dict[str, tuple]
    settings: BoardSettings = BoardSettings()
    submissions: list[Submission] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)  # of the submitters, as first given
    uploads: list[Upload] = field(default_factory=list)
    notices: list[list] = field(default_factory=list)  # event, state, due, tries
    announced: list[str] = field(default_factory=list)
    folders: dict = field(default_factory=dict)  # to scan, by name: content, form, path, fingerprint
    scanned: dict = field(default_factory=dict)
    jam: str = ""  # "receive": no submission can be received; "score": no heavy one be scored; "away": no answers
    heavy: frozenset = frozenset()  # digests
    deaf: bool = False  # whoever is told does not answer
    was_received: bool = False  # the last submission that was stored

    # What things depend on

    @property
    def received_with(self):
        return len(self.settings.phases), self.settings.variants

    def reference(self, test):
        return self.answers[test], self.settings.split and test == HIDDEN

    @property
    def references(self):
        return self.settings.metric, *map(self.reference, self.answers)

    def scores_of(self, content):
        return {(test, self.settings.metric): self.reference(test) for test in content.outputs}

    @property
    def checked_with(self):
        return self.received_with, self.references

    # Submissions

    def used(self, team, moment, *, uploads=False):
        start, end = self.settings.day_of(moment)
        phase = self.settings.phase_of(moment)

        def counts(one):
            return one.team == team and start <= one.arrived < end and self.settings.phase_of(one.arrived) == phase

        waiting = [one for one in self.uploads if one.state == "waiting" and not one.dry and counts(one)]
        return sum(one.cost for one in self.submissions if counts(one)) + (len(waiting) if uploads else 0)

    def store(self, name, content, form, arrived, *, baseline=False, again=True):
        """Store a submission; return its place."""
        team, unopened = name.casefold(), content.digests[form]
        jammed = self.jam == "receive" or self._failed_before(team, unopened, form, again)
        received = self.was_received = not jammed and content.is_received(self.settings.variants)
        digest = content.digests["received"] if received else unopened
        own = [(place, one) for place, one in enumerate(self.submissions) if one.team == team]
        retried = ("failed", "rejected") if form == "archive" else ("failed",)
        same = [(place, one) for place, one in own if one.digest == digest]
        same += [(place, one) for place, one in own if one.state in retried and one.digest == unopened]
        if same and same[0][1].state != "failed" and same[0][1].digest == digest:
            if not received and not jammed:
                same[0][1].checked = self.received_with
            return same[0][0]
        for place, one in own:
            if not same and not received and one.code == (digest, arrived):
                return place
        cost = content.cost() if received else 1
        allowed = self.settings.quota
        if not same and not baseline and allowed and self.used(team, arrived) + cost > allowed:
            raise RefusedError
        slow = self.jam == "score" and digest in self.heavy
        if jammed or (received and (slow or self._failed_before(team, digest, "archive", again))):
            state, cost = "failed", 0
        elif received and content.is_valid(self.answers):
            state = "scored"
        else:
            state, cost = "rejected", int(received)
        self.names.setdefault(team, name)
        new = Submission(team, digest, content, arrived, baseline, state, 0 if baseline else cost, has_files=received)
        new.checked = self.checked_with if received or state == "failed" else self.received_with
        if state == "scored":
            new.scores = self.scores_of(content)
            new.had_outputs = True
        if not same:
            new.code = digest, arrived
            self.submissions.append(new)
            return len(self.submissions) - 1
        place, old = same[0]
        new.arrived, new.code = old.arrived, old.code
        new.withdrawn, new.final, new.remark = old.withdrawn, old.final, old.remark
        new.had_outputs |= old.had_outputs and old.digest == digest
        self.submissions[place] = new
        return place

    def _failed_before(self, team, digest, form, again):
        return not again and any(
            one.state == "failed" and one.digest == digest and one.checked == self.checked_with
            and (form == "archive" or one.team == team)
            for one in self.submissions
        )  # fmt: skip

    def add(self, *what, **how):
        self._check_answers()
        self.store(*what, **how)
        yield

    def scan(self, *, again, now):
        """Scan the folders: one of each submitter at a time, and those together in a transaction."""
        self._check_answers()
        settled = ["received", self.received_with, *([] if again else [self.checked_with])]
        waiting = [
            name
            for name, (*_, path, found) in sorted(self.folders.items(), key=lambda item: natural_order(item[0]))
            if self.scanned.get(path) not in [(found, how) for how in settled]
        ]
        while waiting:
            teams = {name.casefold(): name for name in reversed(waiting)}
            for name in [name for name in waiting if name in teams.values()]:
                content, form, path, found = self.folders[name]
                waiting.remove(name)
                if self.names.get(name.casefold(), name) != name:
                    continue
                try:
                    one = self.submissions[self.store(name, content, form, now, again=again)]
                except RefusedError:
                    continue
                how = "received" if self.was_received else self.received_with
                failed = one.state == "failed" and not one.withdrawn
                self.scanned[path] = found, self.checked_with if failed else how
            yield

    def _check_answers(self):
        if self.jam == "away":
            raise RefusedError

    def withdraw(self, place, *, by_team=False):
        one = self.submissions[place]
        is_open = self.settings.phase_of(one.arrived) == self.settings.phase_of(self.now)
        if one.withdrawn or (by_team and not is_open):
            raise RefusedError
        one.withdrawn = True
        self._tell("withdrawn", "withdrawn")
        yield

    def note(self, place, remark):
        self.submissions[place].remark = remark
        yield

    def name_final(self, places, *, undo):
        if not self.settings.finals:
            raise RefusedError
        marked = deepcopy(self.submissions)
        for place in places:
            one = marked[place]
            until = self._decides(one)
            if until and until != datetime.max and self.now > until:
                raise RefusedError
            if not undo and (one.baseline or one.state != "scored" or one.withdrawn or not until):
                raise RefusedError
            one.final = None if undo else one.final or self.now
        for team in {marked[place].team for place in places}:
            own = [one for one in marked if one.team == team and one.final and one.state == "scored"]
            if len([one for one in own if not one.withdrawn and self._decides(one)]) > self.settings.finals:
                raise RefusedError
        self.submissions = marked
        yield

    def _decides(self, one):
        """Return the deadline until which a submission can be named as final; None if it cannot."""
        if not self.settings.split or not one.had_outputs or HIDDEN not in one.content.outputs:
            return None
        if not self.settings.phases:
            return datetime.max
        name, until = self.settings.phases[-1]
        return until if self.settings.phase_of(one.arrived) == name else None

    def rescore(self, *, failed=(), again=False, dry=False):
        """Score again what is out of date; ``failed`` are the digests whose scoring failed."""
        self._check_answers()
        if dry:
            return
        for one in self.submissions:
            new = self.scores_of(one.content)
            if one.state == "scored":
                is_old = any(one.scores.get(key) != reference for key, reference in new.items())
            else:
                is_retried = again and one.state == "failed"
                is_old = one.has_files and (is_retried or one.checked != self.checked_with)
            if not is_old:
                continue
            was = one.state
            valid = one.content.is_valid(self.answers)
            valid = valid and (one.had_outputs or one.content.is_received(self.settings.variants))
            one.state = "failed" if one.digest in failed else "scored" if valid else "rejected"
            one.checked = self.checked_with
            one.scores = one.scores | new if one.state == "scored" else {}
            one.had_outputs |= one.state == "scored"
            if one.state != was:
                cost = {"scored": one.content.cost(), "rejected": 1, "failed": 0}[one.state]
                one.cost = 0 if one.baseline else cost
        yield

    # The server

    def upload(self, name, content, form, *, dry):
        """Accept an upload; return its place."""
        team = name.casefold()
        for place, one in enumerate(self.uploads):
            is_same = (one.team, one.content, one.form) == (team, content, form)
            if is_same and not dry and not one.dry and one.state in ("waiting", "done"):
                return place
        allowed = self.settings.quota
        if not dry and allowed and self.used(team, self.now, uploads=True) + 1 > allowed:
            raise RefusedError
        self.uploads.append(Upload(team, content, form, self.now, dry, self.now))
        return len(self.uploads) - 1

    def accept(self, *what, **how):
        self.upload(*what, **how)
        yield

    def next_job(self):
        """Return the next job: of the team that was served least recently, the oldest."""

        def is_free(one):
            if one.job == "leased":
                return one.until < self.now or one.until > self.now + 2 * LEASE
            return one.job == "waiting" and (one.due <= self.now or one.due > self.now + MAX_PAUSE)

        found = []
        for place, one in enumerate(self.uploads):
            others = [(n, other) for n, other in enumerate(self.uploads) if other.team == one.team and n != place]
            busy = any(other.job == "leased" or (other.job == "waiting" and n < place) for n, other in others)
            if is_free(one) and not busy:
                last = max((other.started for _, other in [*others, (place, one)] if other.started), default=None)
                found.append((last is not None, last or self.now, place))
        return min(found)[2] if found else None

    def work(self, *, during=None, end=True):
        """Do all jobs, and deliver all notices; ``during`` is done while the first submission is opened."""
        while (place := self.next_job()) is not None:
            one = self.uploads[place]
            one.deaths += one.job == "leased"
            one.job, one.lease, one.started, one.until = "leased", one.lease + 1, self.now, self.now + LEASE
            yield
            lease = one.lease
            if during is not None and one.deaths < MAX_DEATHS and (one.dry or self.jam != "away"):
                during, act = None, during
                act(self)
            if (one.job, one.lease) == ("leased", lease):
                self._settle(one)
            yield
        yield from self.deliver() if end else ()

    def _settle(self, one):
        one.until = None
        is_put_back = self.jam == "away" and not one.dry and one.deaths < MAX_DEATHS
        if is_put_back and one.lease < MAX_LEASES:
            one.job, one.due = "waiting", self.now + PAUSE * 2 ** (one.lease - 1)
            return
        if one.deaths >= MAX_DEATHS or is_put_back:
            one.state = "failed"
        elif one.dry:
            received = one.content.is_received(self.settings.variants)
            slow = self.jam == "score" and one.content.digests["received"] in self.heavy
            fine = received and one.content.is_valid(self.answers)
            away = self.jam == "away" and HIDDEN in one.content.outputs
            failed = self.jam == "receive" or (received and (slow or away))
            one.state = "failed" if failed else "done" if fine else "rejected"
        else:
            try:
                name = self.names[one.team]
                one.submission = self.store(name, one.content, one.form, one.arrived)
                state = self.submissions[one.submission].state
                one.state = "failed" if state == "failed" else "done"
            except RefusedError:
                one.state = "refused"
        one.job = "failed" if one.state == "failed" else "done"
        if not one.dry:
            own = None if one.submission is None else self.submissions[one.submission].state
            self._tell("settled", own or one.state)

    def deliver(self):
        while due := sorted((one[2], place) for place, one in enumerate(self.notices) if self._is_due(one)):
            one = self.notices[due[0][1]]
            tries = one[3]
            one[2:4] = self.now + PAUSES[min(tries, len(PAUSES) - 1)], tries + 1
            yield
            if not self.deaf or tries >= len(PAUSES):
                one[1] = "sent" if not self.deaf else "given up"
            yield

    def _is_due(self, one):
        return one[1] == "waiting" and one[2] <= self.now

    def _tell(self, event, state):
        self.notices.append([f"{event} {state}", "waiting", self.now, 0])

    def announce(self, text):
        self.announced.append(text)
        self._tell("announced", "")
        yield

    def take_back(self, place):
        del self.announced[place]
        yield

    # Leaderboards

    def value(self, lines, answers, part):
        """Compute the score of an output on a part of the lines."""
        public = public_lines([str(n) for n in range(len(lines))], SHARE, f"{SEED} {HIDDEN}")
        pairs = [
            pair
            for n, pair in enumerate(zip(lines, answers, strict=True))
            if not part or (n in public) == (part == "public")
        ]
        losses = [
            -math.log((share if word == answer else 0) + (1 - share) / BUCKETS) for (word, share), answer in pairs
        ]
        return SCORES[self.settings.metric](math.fsum(losses) / len(losses))

    def badness(self, value):
        return -value if self.settings.metric == "LikelihoodHashed" else value

    def standings(self, test, phase):
        """Return the entries of a leaderboard in order: team, digest, baseline, value, place."""
        last = self.settings.phases[-1] if self.settings.phases else None
        is_split, metric = self.settings.split and test == HIDDEN, self.settings.metric
        is_over = last is not None and self.now > last[1]
        part = "" if not is_split else "private" if is_over and phase in (last[0], "post-deadline") else "public"
        digits = (self.settings.digits or 4) if is_over else self.settings.digits
        found, public = [], {}
        for place, one in enumerate(self.submissions):
            own = one.scores.get((test, metric))
            is_here = self.settings.phase_of(one.arrived) == phase and not one.withdrawn and one.state == "scored"
            if own is None or not is_here:
                continue
            answers, _ = own
            values = [self.value(out, answers, part) for out in one.content.outputs[test]]
            best = min((rounded(value, digits or DIGITS) for value in values), key=self.badness)
            if is_split and self.settings.finals:
                of = [self.value(out, answers, "public") for out in one.content.outputs[test]]
                public[place] = min(self.badness(rounded(value, DIGITS)) for value in of)
            floor = SCORES[metric](math.log(BUCKETS))
            if test == HIDDEN and min(map(self.badness, values)) - self.badness(floor) > 1e-9 * floor:
                best = self.badness(math.inf)
            found.append((place, best if digits else None))
        if part == "private" and phase == last[0] and self.settings.finals:
            final = self._finals(public)
            found = [(place, value) for place, value in found if place in final]
        return self._ranked(found)

    def _finals(self, public):
        by_team = {}
        for place in sorted(public, key=lambda place: (self.submissions[place].arrived, place)):
            one = self.submissions[place]
            by_team.setdefault(place if one.baseline else one.team, []).append(place)
        final = set()
        for own in by_team.values():
            named = [place for place in own if self.submissions[place].final]
            named.sort(key=lambda place: (self.submissions[place].final, place))
            final.update((named or sorted(own, key=public.get))[: self.settings.finals])
        return final

    def _ranked(self, found):
        def quality(entry):
            place, value = entry
            moment = self.submissions[place].arrived, place
            return (value is None, value is not None and math.isinf(value), self.badness(value or 0), *moment)

        seen, rows = set(), []
        for place, value in sorted(found, key=quality):
            one = self.submissions[place]
            if one.baseline or one.team not in seen:
                seen |= set() if one.baseline else {one.team}
                rows.append((one, value))
        ranked = [value for one, value in rows if value is not None and not one.baseline]
        return [
            (one.team, one.digest, one.baseline, value, None if one.baseline or value is None else ranked.index(value) + 1)
            for one, value in rows
        ]  # fmt: skip

    # What can be seen of it

    def view(self):
        """Return all that is stored, to be compared with a board's tables."""
        own = list(enumerate(self.submissions))
        return {
            "submissions": [
                (one.team, one.digest, one.state, one.cost, stored(one.arrived), *one.marks()) for one in self.submissions
            ],
            "scores": {
                place: {(metric, test, of) for (test, metric), of in one.scores.items()}
                for place, one in own
                if one.had_outputs
            },
            "checked": [one.checked for one in self.submissions],
            "names": dict(self.names),
            "uploads": [(one.team, stored(one.arrived), one.dry, one.state, one.submission) for one in self.uploads],
            "jobs": [(one.job, one.lease, one.deaths, *map(stored, (one.until, one.started, one.due))) for one in self.uploads],
            "notices": [(one[0], one[1], stored(one[2]), one[3]) for one in self.notices],
            "announcements": list(self.announced),
            "scanned": dict(self.scanned),
        }  # fmt: skip


def stored(moment):
    return None if moment is None else Moment().process_bind_param(moment, None)


def rounded(value, digits):
    return value if not math.isfinite(value) else float(f"{value:.{digits - 1}e}")


def changed(settings, **keys):
    """Return settings with other values; final submissions need parts."""
    new = replace(settings, **keys)
    return new if new.split else replace(new, finals=0)
