"""A board and its server against a model: random steps, any of which may be killed, on SQLite and PostgreSQL.

The model (board_model.py) says after each step what all tables must hold. A killed step must leave a state between
two of its transactions, with which everything goes on. While a submission is opened, another step may be made, as by
another process. At the end of each run of steps, what is left is worked off, the leaderboards are made anew, and an
export must give an equal board.
"""

import shutil
import time
from collections import Counter
from datetime import timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest
from board_machine import Action, Machine, after
from board_model import HIDDEN, SCORES, changed
from faulty_board import ANSWERS, FaultyBoard, dump
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule, run_state_machine_as_test
from profiles import LONG
from samples import change
from sqlalchemy import select

from geval_py.board.backups import back_up
from geval_py.board.database.schema import FAILED, REJECTED, Files, Submissions, announcements
from geval_py.board.operations import rescoring, submissions
from geval_py.board.operations.notices import announce, take_back
from geval_py.board.people import accounts
from geval_py.board.people.store import accounts_of
from geval_py.board.server import queue, uploads
from geval_py.board.server.worker import Worker

QUICK_STEPS, LONG_STEPS = 60, 100_000  # on each database
TEAMS = ("ann", "Ann", "bob", "eve")
CONTENTS, SOME, ANY = st.integers(0, 26), st.sampled_from(TEAMS), st.integers(0, 99)
FORMS = st.sampled_from(["folder"] * 5 + ["archive"] * 3)
QUOTAS = st.sampled_from([0, 0, 1, 2, 3])
HOURS = st.lists(st.integers(-30, 30), max_size=2, unique=True).map(sorted)  # from now to the deadlines of phases
AS_WHAT = st.sampled_from([{}] * 6 + [{"ago": 5}, {"ago": 90_000}, {"baseline": True}])
KILLS = st.sampled_from([None] * 225 + list(range(25)) * 2 + list(range(25, 100, 3)))  # most steps are short
INNER = st.one_of(
    *[st.none()] * 12,
    st.tuples(st.just("add"), SOME, CONTENTS),
    st.tuples(st.just("add"), st.none(), CONTENTS | st.none()),  # of the same submitter, perhaps the same
    st.tuples(st.just("withdraw"), ANY),
    st.tuples(st.just("rescore")),
    st.tuples(st.just("work"), st.sampled_from([1, 31])),
)


STEPS = {}


def step(*, possible=lambda _: True, **strategies):
    """Let a method be one of the steps, with values from strategies, where it is possible."""

    def register(method):
        STEPS[method.__name__] = possible, st.tuples(st.just(method.__name__), st.fixed_dictionaries(strategies))
        return method

    return register


class BoardMachine(Machine):
    """Whatever may be done to a board."""

    @initialize(quota=QUOTAS, split=st.booleans(), finals=st.integers(0, 2), hours=HOURS)
    def choose_rules(self, quota, split, finals, hours):
        """Begin with rules and phases, since few runs of steps make all of them."""
        self.model.settings = changed(self.model.settings, quota=quota, split=split, finals=finals)
        self.set_deadlines(hours)

    def inner(self, outer, spec):
        """Return the action that is to be done during another; None for nothing."""
        kind, *more = spec
        if kind == "add":
            name, content = more
            name = name or self.latest[0]
            content = self.latest[1] if content is None else self.faulty_board.contents[content]
            return self.adding(name, content, "folder")
        if kind == "withdraw":
            return self.withdrawing(more[0]) if self.model.submissions else None
        if kind == "rescore":
            return self.rescoring()
        return self.working(seconds=more[0]) if outer.kind in ("work", "add") else None

    # Submissions

    def adding(self, name, content, form, *, baseline=False, ago=0):
        now, at = self.now, self.now - timedelta(seconds=ago)
        self.latest = name, content
        source = self.faulty_board.source(content, form)

        def act():
            receipt = submissions.add(self.board, source, submitter=name, at=at, baseline=baseline, now=now)
            assert receipt.submitter.casefold() == name.casefold()

        return Action("add", act, after(lambda model: model.add(name, content, form, at, baseline=baseline)))

    @step(name=SOME, content=CONTENTS, form=FORMS, as_what=AS_WHAT, kill=KILLS, inner=INNER)
    def add(self, name, content, form, as_what, kill, inner):
        self.perform(self.adding(name, self.faulty_board.contents[content], form, **as_what), kill, inner)

    @step(name=SOME, content=CONTENTS, kill=KILLS)
    def add_again(self, name, content, kill):
        """Add what somebody has sent."""
        known = [one.content for one in self.model.submissions]
        content = known[content % len(known)] if known else self.faulty_board.contents[content]
        self.perform(self.adding(name, content, "folder"), kill)

    @step(possible=lambda self: self.step % 25 == 7, name=SOME, content=CONTENTS)
    def add_branch(self, name, content):
        self.perform(self.adding(name, self.faulty_board.contents[content], "git"))

    @step(sent=st.lists(st.tuples(SOME, CONTENTS, FORMS), max_size=3), again=st.booleans(), kill=KILLS, inner=INNER)
    def scan(self, sent, again, kill, inner):
        for name, number, form in sent:
            content = self.faulty_board.contents[number]
            self.model.folders[name] = content, form, self.faulty_board.send(name, content, form)
        now, folder = self.now, str(self.faulty_board.scanned)

        def predict(model, during):
            listed = model.listed(again=again)
            if during is not None:
                during(model)
            yield from model.scan(listed, now)

        action = Action("scan", lambda: submissions.scan(self.board, folder, now=now, again=again), predict)
        self.perform(action, kill, inner)

    def change(self, operation, *values, **more):
        return change(self.board, operation, *values, moment=self.now, **more)

    def withdrawing(self, place, *, by_team=False):
        place %= len(self.model.submissions)
        code, now = self.codes[place], self.now
        return Action(
            "withdraw",
            partial(
                self.change, submissions.withdraw, self.board.settings, code, "by its team", now, by_team=by_team
            ),
            after(lambda model: model.withdraw(place, by_team=by_team)),
        )

    @step(possible=lambda self: self.model.submissions, place=ANY, by_team=st.booleans(), kill=KILLS)
    def withdraw(self, place, by_team, kill):
        self.perform(self.withdrawing(place, by_team=by_team), kill)

    @step(
        possible=lambda self: self.model.submissions,
        place=ANY,
        remark=st.sampled_from(["", "fine", "<b>"]),
        kill=KILLS,
    )
    def note(self, place, remark, kill):
        place %= len(self.model.submissions)
        code = self.codes[place]
        act = partial(self.change, submissions.note, code, remark)
        self.perform(Action("note", act, after(lambda model: model.note(place, remark))), kill)

    @step(
        possible=lambda self: self.model.submissions and self.model.settings.finals,
        places=st.lists(ANY, min_size=1, max_size=2),
        undo=st.sampled_from([False, False, True]),
        kill=KILLS,
    )
    def final(self, places, undo, kill):
        own = [place for place, one in enumerate(self.model.submissions) if one.state == "scored" or undo]
        own = own or range(len(self.model.submissions))
        places = [own[place % len(own)] for place in places]
        codes, now = [self.codes[place] for place in places], self.now

        def named(connection, settings, codes, now, undo):
            for code in codes:
                submissions.name_final(connection, settings, code, now, undo=undo)

        action = Action(
            "final",
            lambda: self.change(named, self.board.settings, codes, now, undo=undo),
            after(lambda model: model.name_final(places, undo=undo)),
        )
        self.perform(action, kill)

    # Scores and settings

    def rescoring(self, *, dry=False):
        now, failed = self.now, set()

        def act():
            with self.faulty_board.noting(failed):
                self.rescored = rescoring.rescore(self.board, now=now, dry_run=dry)

        change = after(lambda model: model.rescore(failed=failed, dry=dry))
        return Action("dry run" if dry else "rescore", act, change)

    @step(kill=KILLS)
    def try_again(self, kill):
        """Let what was rejected or failed wait again."""

        def act():
            with self.board.writing() as connection:
                queue.try_again(connection, self.now, Submissions.state.in_((REJECTED, FAILED)))

        self.perform(Action("try again", act, after(lambda model: model.try_again())), kill)

    @step(dry=st.sampled_from(["no", "only", "before"]), kill=KILLS, inner=INNER)
    def rescore(self, dry, kill, inner):
        """Score again what is out of date; a dry run before it says the same."""
        if dry != "no":
            self.perform(self.rescoring(dry=True), None if dry == "before" else kill)
        said = self.rescored if dry == "before" else None
        if dry != "only":
            self.perform(self.rescoring(), None if said else kill, None if said else inner)
        if said is not None:
            assert said == self.rescored

    @step(
        possible=lambda self: self.model.fault != "away",
        metric=st.sampled_from(list(SCORES)),
        answers=st.sampled_from(ANSWERS),
    )
    def change_scores(self, metric, answers):
        """Change the metric or the hidden answers."""
        self.model.settings = changed(self.model.settings, metric=metric)
        self.model.answers = {**self.model.answers, HIDDEN: answers}
        self.faulty_board.write_answers(answers)
        self.edit()

    def edit(self):
        self.begin()
        self.faulty_board.open(self.model)
        self.check()

    @step(hours=HOURS)
    def set_phases(self, hours):
        """Open and close phases."""
        self.set_deadlines(hours)

    def set_deadlines(self, hours):
        moments = [self.now + timedelta(hours=hour) for hour in hours]
        self.model.settings = changed(self.model.settings, phases=tuple(zip(("one", "two"), moments, strict=False)))
        self.edit()

    @step(
        quota=QUOTAS,
        split=st.booleans(),
        finals=st.integers(0, 2),
        digits=st.sampled_from([0, 2, 4]),
        variants=st.sampled_from([2, 2, 5]),
        zone=st.sampled_from(["Europe/Warsaw", "Pacific/Apia", "UTC"]),
    )
    def set_rules(self, **keys):
        self.model.settings = changed(self.model.settings, **keys)
        self.edit()

    @step(seconds=st.sampled_from([1, 31, 420, 5 * 3600, 24 * 3600, -20, -3600]))
    def set_clock(self, seconds):
        self.begin()
        by = timedelta(seconds=seconds)
        self.now += by
        self.model.now += by
        self.check()

    @step(fault=st.sampled_from(["", "", "receive", "score", "away"]))
    def break_or_mend(self, fault):
        """Submissions cannot be received, some not be scored, the answers are away; or not."""
        self.begin()
        heavy = frozenset(one.digests["received"] for one in self.faulty_board.contents[::3])
        self.faulty_board.break_or_mend(self.model, fault=fault, heavy=heavy)
        self.is_fine = True

    # Announcements

    @step(text=st.sampled_from(["hello", "*news*"]), kill=KILLS)
    def announce(self, text, kill):
        act = partial(self.change, announce, self.board, text, self.now)
        self.perform(Action("announce", act, after(lambda model: model.announce(text))), kill)

    @step(possible=lambda self: self.model.announced, place=ANY, kill=KILLS)
    def take_back(self, place, kill):
        place %= len(self.model.announced)
        with self.board.reading() as connection:
            query = select(announcements.c.id).order_by(announcements.c.id).offset(place)
            number = connection.execute(query).scalar()
        act = partial(self.change, take_back, number)
        self.perform(Action("take back", act, after(lambda model: model.take_back(place))), kill)

    # The server

    def account(self, name):
        """Return the account of a team, which is made if it is not there."""
        team = name.casefold()
        if team not in self.accounts:
            with accounts_of(self.board).writing() as people:
                self.accounts[team] = accounts.invite(people, name, now=self.now).account
        return self.accounts[team]

    @step(name=SOME, content=CONTENTS, dry=st.integers(0, 4), single=st.booleans(), kill=KILLS)
    def upload(self, name, content, dry, single, kill):
        content, dry, now = self.faulty_board.contents[content], dry == 4, self.now
        account = self.account(name)
        is_single = single and list(content.outputs) == [HIDDEN] and len(content.outputs[HIDDEN]) == 1
        form = "folder" if is_single else "archive"
        sent = Path(self.faulty_board.source(content, form), *((HIDDEN, "out.tsv") if is_single else ()))

        def act():
            self.faulty_board.incoming.mkdir(exist_ok=True)
            path = shutil.copyfile(sent, self.faulty_board.incoming / "upload")
            data = path.read_bytes()
            values = {"sent_name": sent.name, "test": HIDDEN if is_single else "", "trial": dry}
            values |= {"sha256": sha256(data).hexdigest(), "bytes": len(data), "arrived": now}
            accepted = uploads.accept(self.board, account, str(path), self.key, **values)
            self.receipts += [accepted["receipt"]] if accepted["receipt"] else []

        self.perform(
            Action("upload", act, after(lambda model: model.accept(account.team, content, form, dry=dry))), kill
        )

    def working(self, seconds=0):
        def act():
            """A worker lives until it is killed; while it works, another one works."""
            self.now += timedelta(seconds=seconds)
            living, self.worker = self.worker, None
            living = living or Worker(self.board.folder, at_once=1, clock=lambda: self.now)
            living.run(until_idle=True)
            self.worker = living

        def predict(model, during):
            model.now += timedelta(seconds=seconds)
            yield from model.work(during=during)

        return Action("work", act, predict)

    @step(kill=KILLS, inner=INNER)
    def work(self, kill, inner):
        self.perform(self.working(), kill, inner)

    # Moving

    @step(possible=lambda self: self.step % 30 == 29 and self.model.fault != "away", kill=KILLS)
    def move(self, kill):
        """Export the board, import it into the other kind of database, and from there into a new one of its own."""
        self.begin()
        faulty_board, old = self.faulty_board, self.board
        if kill is not None:
            with faulty_board.crashes.killing(kill):
                back_up(self.board.folder, str(faulty_board.root / "one.tar"), now=self.now)
            self.was_killed = True
            (faulty_board.root / "one.tar").unlink(missing_ok=True)
        one = self.export("one.tar")
        away = faulty_board.imported(one, "away", faulty_board.other, kill)
        assert dump(away) == dump(old)
        faulty_board.board = away
        two = self.export("two.tar")
        assert one.read_bytes() == two.read_bytes()
        self.check()
        faulty_board.databases.reverse()
        place = "1" if old.folder.endswith("0") else "0"
        faulty_board.board = faulty_board.imported(two, place, faulty_board.databases[0], None)
        assert dump(faulty_board.board) == dump(old)
        self.worker = None
        for board in (old, away):
            faulty_board.dispose(board)
        shutil.rmtree(old.folder)
        shutil.rmtree(away.folder)
        self.check()

    @rule(one=st.one_of(*(strategy for _, strategy in STEPS.values())))
    def make(self, one):
        """Make a step: all are as probable, where Hypothesis would leave out most rules in many runs."""
        name, values = one
        possible, _ = STEPS[name]
        if possible(self):
            getattr(self, name)(**values)

    def export(self, name):
        path = self.faulty_board.root / name
        path.unlink(missing_ok=True)
        back_up(self.board.folder, str(path), now=self.now)
        return path


def run(faulty_board, steps, *, is_long):
    """Make so many steps at least: always the same ones, but for a long run."""
    at_once = 100 if is_long else 40  # steps on one board
    machine = type("OnThis", (BoardMachine,), {"faulty_board": faulty_board, "counts": Counter()})
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    began = time.monotonic()
    try:
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=-(-steps * 5 // (at_once * 4)),  # some steps are not possible
                stateful_step_count=at_once,
                derandomize=not is_long,
                deadline=None,
                database=None,
                phases=[Phase.generate],
                suppress_health_check=checks,
            ),
        )
    finally:
        seconds = time.monotonic() - began
        print(f"{machine.counts['steps']} steps in {seconds:.0f} s: {dict(sorted(machine.counts.items()))}")
    return machine.counts


@pytest.mark.slow
def test_a_submission_that_a_rescoring_fails_is_not_scored_by_a_scan_of_the_same(tmp_path):
    """The scan has found the same content scored, before the rescoring."""
    faulty_board = FaultyBoard(tmp_path, ["board.sqlite", "board.sqlite"], None)
    machine = type("OnThis", (BoardMachine,), {"faulty_board": faulty_board, "counts": Counter()})()
    try:
        machine.choose_rules(hours=[], quota=0, finals=0, split=True)
        machine.add(name="Ann", content=3, as_what={}, form="folder", kill=None, inner=None)
        machine.change_scores(answers=("ant", "bee", "cat", "ant"), metric="LogLossHashed")
        machine.break_or_mend(fault="score")
        machine.scan(sent=[("Ann", 3, "archive")], again=False, kill=None, inner=("rescore",))
        assert [row.state for row in machine.model.submissions] == ["failed"]
    finally:
        faulty_board.close()


@pytest.mark.slow
def test_the_files_of_a_failed_submission_stay_when_its_retry_cannot_be_received(tmp_path):
    faulty_board = FaultyBoard(tmp_path, ["board.sqlite", "board.sqlite"], None)
    machine = type("OnThis", (BoardMachine,), {"faulty_board": faulty_board, "counts": Counter()})()
    try:
        machine.choose_rules(hours=[], quota=0, finals=0, split=True)
        machine.change_scores(answers=("ant", "bee", "cat", "ant", "bee"), metric="LogLossHashed")
        machine.scan(sent=[("eve", 7, "folder")], again=True, kill=None, inner=None)
        machine.break_or_mend(fault="receive")
        machine.scan(sent=[("bob", 26, "folder")], again=True, kill=None, inner=None)
        assert [row.state for row in machine.model.submissions] == ["failed", "failed"]
        with machine.board.reading() as connection:
            assert connection.execute(select(Files.name)).scalars().all() == ["test-A/out.tsv"]
        machine.teardown()
    finally:
        faulty_board.close()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*ServerCursor:pytest.PytestUnraisableExceptionWarning")  # of killed steps
@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def test_a_board_does_what_the_model_says(kind, request, tmp_path):
    is_long = settings.get_current_profile_name() == LONG
    urls = [request.getfixturevalue("postgresql").new_database() for _ in range(2)] if is_long else []
    files = ["board.sqlite", "board.sqlite"]
    faulty_board = FaultyBoard(tmp_path, *((files, urls[0] if urls else None) if kind == "sqlite" else (urls, None)))
    try:
        wanted = LONG_STEPS if is_long else QUICK_STEPS
        assert run(faulty_board, wanted, is_long=is_long)["steps"] >= wanted
    finally:
        faulty_board.close()
