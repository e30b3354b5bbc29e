"""A board as plain Python values: what must be on it after each step, by its documentation.

A method that changes the model is a generator: it yields wherever the board has finished a transaction, so that
whoever is killed leaves one of the states between. It raises RefusedError where the board must refuse.
"""

from __future__ import annotations

import math
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from geval_py.board.database.schema import Moment
from geval_py.board.ranking.parts import public_lines
from geval_py.text import natural_order

LEASE, PAUSE, MAX_PAUSE = (timedelta(seconds=seconds) for seconds in (30, 5, 80))
MAX_TRIES = 6
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
    """A row, from the first byte to the score; ``scores`` has what it was scored with, by test and metric."""

    team: str
    content: Content
    form: str
    arrived: datetime
    baseline: bool = False
    digest: str = ""
    state: str = "waiting"
    cost: int = 0
    scores: dict = field(default_factory=dict)
    has_files: bool = False
    had_outputs: bool = False
    withdrawn: bool = False
    final: datetime | None = None
    remark: str = ""
    code: tuple = ()  # of its first digest, and its arrival
    marks: frozenset = frozenset()  # fingerprints of scanned paths
    trial: bool = False
    tries: int = 0
    due: datetime | None = None
    until: datetime | None = None
    started: datetime | None = None
    sent: tuple = ()  # the content and the form of an upload

    @property
    def is_unscored(self):
        return self.state in ("failed", "rejected")

    def view(self):
        return (
            *(self.team, self.digest, self.state, self.cost, stored(self.arrived), self.baseline, self.withdrawn),
            *(
                stored(self.final),
                self.remark,
                self.trial,
                self.tries,
                *map(stored, (self.due, self.until, self.started)),
            ),
            set(self.marks),
        )


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
    created: datetime
    answers: dict[str, tuple]
    settings: BoardSettings = BoardSettings()
    submissions: list[Submission] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)  # of the submitters, as first given
    announced: list[str] = field(default_factory=list)
    folders: dict = field(default_factory=dict)  # to scan, by name: content, form, fingerprint
    fault: str = ""  # "receive": no submission can be received; "score": no heavy one be scored; "away": no answers
    heavy: frozenset = frozenset()  # digests

    # What things depend on

    def scores_of(self, content):
        return {(test, self.settings.metric): self.answers[test] for test in content.outputs}

    # Submissions

    def used(self, team, moment, row, *, uploads=False):
        start, end = self.settings.day_of(moment)
        return sum(
            one.cost
            for one in self._of_phase(team, moment)
            if start <= one.arrived < end and (uploads or one.state != "waiting") and one is not row
        )

    def _of_phase(self, team, moment):
        phase = self.settings.phase_of(moment)
        return [one for one in self.submissions if one.team == team and self.settings.phase_of(one.arrived) == phase]

    def store(self, name, content, form, arrived, *, baseline=False, row=None, mark=None):
        """Store a submission, in its row if it has waited."""
        team, unopened = name.casefold(), content.digests[form]
        is_stored = row is not None and row.state == "waiting" and row.has_files
        received = content.is_received(self.settings.variants) if self.fault != "receive" or is_stored else False
        received |= is_stored and row.had_outputs
        digest = content.digests["received"] if received or is_stored else unopened
        marks = frozenset([mark] if mark else [])
        same = [
            one
            for one in self._of_phase(team, arrived)
            if (one.digest in (digest, unopened) or one.code == (digest, arrived))
            and not (one is row or one.trial or one.state == "refused")
        ]
        for one in same:
            if not one.is_unscored:
                if row is None:
                    one.marks |= marks
                else:
                    self._end(row, "refused")
                return
        if same and row is None:
            row, arrived = same[0], same[0].arrived
        cost = content.cost() if received else 1
        if self.settings.quota and not baseline and self.used(team, arrived, row) + cost > self.settings.quota:
            raise RefusedError
        slow = self.fault == "score" and digest in self.heavy
        valid = received and content.is_valid(self.answers)
        is_unread = self.fault == "receive" and not is_stored
        state = "failed" if is_unread or (received and slow) else "scored" if valid else "rejected"
        if row is None:
            row = Submission(team, content, form, arrived, code=(digest, arrived))
            self.submissions.append(row)
        self.names.setdefault(team, name)
        row.content, row.form, row.state, row.baseline = content, form, state, baseline
        row.cost = 0 if baseline else {"scored": cost, "rejected": int(received), "failed": 0}[state]
        row.scores = self.scores_of(content) if state == "scored" else {}
        row.until = None
        if received or is_stored:  # otherwise what was received before stays
            row.digest, row.has_files, row.had_outputs = digest, True, state == "scored"
        row.digest = row.digest or digest
        row.marks = marks or row.marks

    @staticmethod
    def _end(row, state):
        row.state, row.cost, row.until = state, 0, None

    def add(self, *what, **how):
        self._check_answers()
        self.store(*what, **how)
        yield

    def listed(self, *, again):
        """Return what a scan lists at its beginning, in its order: the names, each with its submission if it is there."""
        self._check_answers()
        known = {mark: one for one in self.submissions for mark in one.marks}
        return [
            (name, known.get(mark))
            for name, (*_, mark) in sorted(self.folders.items(), key=lambda item: natural_order(item[0]))
            if mark not in known or (again and known[mark].is_unscored)
        ]

    def scan(self, listed, now):
        """Scan what was listed, whatever was done since."""
        for name, row in listed:
            content, form, mark = self.folders[name]
            with suppress(RefusedError):
                if self.names.get(name.casefold(), name) != name:
                    raise RefusedError
                self.store(name, content, form, row.arrived if row else now, row=row, mark=mark)
            yield

    def _check_answers(self):
        if self.fault == "away":
            raise RefusedError

    def withdraw(self, place, *, by_team=False):
        one = self.submissions[place]
        is_open = self.settings.phase_of(one.arrived) == self.settings.phase_of(self.now)
        if one.withdrawn or (by_team and not is_open):
            raise RefusedError
        one.withdrawn = True
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

    def rescore(self, *, failed=(), dry=False):
        """Score again what is out of date; ``failed`` are the digests whose scoring failed."""
        self._check_answers()
        if dry:
            return
        for one in self.submissions:
            new = self.scores_of(one.content)
            is_old = any(one.scores.get(key) != reference for key, reference in new.items())
            if one.state == "scored" and is_old:
                valid = one.content.is_valid(self.answers)
                one.state = "failed" if one.digest in failed else "scored" if valid else "rejected"
                one.scores = one.scores | new if one.state == "scored" else {}
        yield

    def try_again(self):
        """Let what was rejected or failed wait again, if its files or its upload are stored."""
        for one in self.submissions:
            if one.is_unscored and not one.trial and (one.has_files or one in self._with_content(one.sent)):
                one.state, one.due, one.tries = "waiting", self.now, 0
        yield

    def _with_content(self, sent):
        """Return the uploads of a file, if one of them waits or has failed: its content is stored."""
        rows = [one for one in self.submissions if sent and one.sent == sent]
        is_kept = any(one.state == "waiting" or (one.state == "failed" and not one.trial) for one in rows)
        return rows if is_kept else []

    # The server

    def _check_quota(self, team, moment, row):
        """Refuse an upload that has no quota; each that waits counts."""
        if self.settings.quota and self.used(team, moment, row, uploads=True) + 1 > self.settings.quota:
            raise RefusedError

    def accept(self, name, content, form, *, dry):
        """Accept an upload."""
        team = name.casefold()
        arrived = max([self.created, self.now, *(one.arrived for one in self.submissions)])
        same = [
            one
            for one in (self._of_phase(team, arrived) if not dry else ())
            if not one.trial and one.state != "refused" and one.sent == (content, form)
        ]
        for one in sorted(same, key=lambda one: one.is_unscored)[:1]:
            if one.is_unscored:
                self._check_quota(team, one.arrived, one)
                one.state, one.due, one.tries = "waiting", self.now, 0
            yield
            return
        if not dry:
            self._check_quota(team, arrived, None)
        self.names.setdefault(team, name)
        new = Submission(
            team, content, form, arrived, cost=int(not dry), sent=(content, form), trial=dry, due=self.now
        )
        self.submissions.append(new)
        yield

    def next_upload(self):
        """Return the next upload: of the team that was served least recently, the oldest."""

        def is_free(one):
            if one.until is not None:
                return one.until < self.now or one.until > self.now + 2 * LEASE
            return one.due <= self.now or one.due > self.now + MAX_PAUSE

        found = []
        for place, one in enumerate(self.submissions):
            own = [(n, other) for n, other in enumerate(self.submissions) if other.team == one.team]
            busy = any(n != place and other.state == "waiting" and other.until for n, other in own)
            if one.state == "waiting" and is_free(one) and not busy:
                last = max((other.started for _, other in own if other.started), default=None)
                found.append((last is not None, last or self.now, place))
        return self.submissions[min(found)[2]] if found else None

    def work(self, *, during=None):
        """Do all that waits; ``during`` is done while the first submission is opened."""
        while (one := self.next_upload()) is not None:
            one.tries, one.started, one.until = one.tries + 1, self.now, self.now + LEASE
            yield
            tries = one.tries
            if during is not None and tries <= MAX_TRIES and (one.trial or self.fault != "away"):
                during, act = None, during
                act(self)
            if (one.until is not None, one.tries) == (True, tries):
                self._settle(one)
            yield

    def _settle(self, one):
        one.until = None
        is_error = self.fault == "away" and not one.trial and one.tries <= MAX_TRIES
        if is_error and one.tries < MAX_TRIES:
            one.due = self.now + PAUSE * 2 ** (one.tries - 1)
        elif is_error or one.tries > MAX_TRIES:
            self._end(one, "failed")
        elif one.trial:
            received = one.content.is_received(self.settings.variants)
            slow = self.fault == "score" and one.content.digests["received"] in self.heavy
            fine = received and one.content.is_valid(self.answers)
            away = self.fault == "away" and HIDDEN in one.content.outputs
            failed = self.fault == "receive" or (received and (slow or away))
            self._end(one, "failed" if failed else "done" if fine else "rejected")
        else:
            try:
                self.store(self.names[one.team], one.content, one.form, one.arrived, baseline=one.baseline, row=one)
            except RefusedError:
                self._end(one, "refused")

    def announce(self, text):
        self.announced.append(text)
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
            answers = one.scores.get((test, metric))
            is_here = self.settings.phase_of(one.arrived) == phase and not one.withdrawn and one.state == "scored"
            if answers is None or not is_here:
                continue
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
        return {
            "submissions": [one.view() for one in self.submissions],
            "scores": {
                place: {(metric, test, of) for (test, metric), of in one.scores.items()}
                for place, one in enumerate(self.submissions)
                if one.had_outputs
            },
            "names": dict(self.names),
            "announcements": list(self.announced),
        }


def stored(moment):
    return None if moment is None else Moment().process_bind_param(moment, None)


def rounded(value, digits):
    return value if not math.isfinite(value) else float(f"{value:.{digits - 1}e}")


def changed(settings, **keys):
    """Return settings with other values; final submissions need parts."""
    new = replace(settings, **keys)
    return new if new.split else replace(new, finals=0)
