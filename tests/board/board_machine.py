"""A machine that makes steps on a board, and compares it with its model after each; the steps are another's.

An :class:`Action` is done to the board and to the model. It may be killed while it works on the board, and another
one may be done while it opens a submission.
"""

import os
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from datetime import timedelta

from board_model import HIDDEN, VISIBLE, Model, RefusedError
from faulty_board import ANSWERS, PUBLIC, Observed
from hypothesis.stateful import RuleBasedStateMachine
from samples import NOW, verified
from sqlalchemy import delete, select, text, update

from geval_py.board.database import schema
from geval_py.board.database.schema import FAILED, blobs, comparisons, disclosures, files, submissions
from geval_py.board.ranking import disclosure
from geval_py.board.ranking.leaderboard import standings, standings_on
from geval_py.board.server import signed_receipts
from geval_py.board.site.view import loaded
from geval_py.errors import GevalError


@dataclass(frozen=True)
class Action:
    """What is done to a board and, by a generator, to its model, which is told what was done between.

    The generator yields after each transaction, and raises RefusedError if the board must refuse it.
    """

    kind: str
    act: Callable
    predict: Callable


class Machine(RuleBasedStateMachine):
    """Steps on the board of a ``faulty_board``, which are counted; subclasses have both."""

    faulty_board = None
    counts: Counter

    def __init__(self):
        super().__init__()
        self.faulty_board.begin()
        self.model = Model(now=NOW, created=NOW, answers={HIDDEN: ANSWERS[0], VISIBLE: PUBLIC})
        self.faulty_board.open(self.model)
        self.key = signed_receipts.signing_key(self.board.folder)
        self.now, self.step, self.was_killed = NOW, 0, False
        self.accounts, self.receipts, self.codes = {}, [], []
        self.rescored = self.worker = None
        self.latest = "bob", self.faulty_board.contents[0]  # who was the last to add, and what
        self.is_fine = True

    @property
    def board(self):
        return self.faulty_board.board

    # A step: what is done, and whether it is as predicted

    def perform(self, action, kill=None, inner=None):
        """Do a step, which may be killed; without that, another one may be done while it works."""
        self.begin()
        if kill is None:
            self._perform(action, inner)
        else:
            self._kill(action, kill)
        self.check()

    def begin(self):
        """Count a step; until it is found fine, nothing more is looked at."""
        self.is_fine = False
        self.step += 1
        self.counts["steps"] += 1
        if not self.counts["steps"] % 1000:
            print(f"{self.counts['steps']} steps", flush=True)

    def _perform(self, action, inner):
        nested = None if inner is None else self.inner(action, inner)
        done = []
        if nested is not None:
            self.faulty_board.meanwhile = lambda: done.append(self._refused(nested))
        was_refused = self._refused(action)
        self.faulty_board.meanwhile = None
        during = None
        if done:
            self.counts[f"{nested.kind} during {action.kind}"] += 1

            def during(model):
                assert is_refused(nested, model) == done[0]

        assert is_refused(action, self.model, during) == was_refused
        self.counts[f"{action.kind}{' refused' if was_refused else ''}"] += 1
        if not self.was_killed:
            assert os.listdir(self.faulty_board.temporary) == []

    def _refused(self, action):
        try:
            action.act()
        except GevalError as error:
            self.refusal = error
            return True
        return False

    def _kill(self, action, kill):
        with self.faulty_board.crashes.killing(kill) as life:
            self._refused(action)
        self.was_killed = True
        self.counts["killed" if life.was_killed else "killed after the end"] += 1
        after = deepcopy(self.model)
        possible = [self.model]
        with suppress(RefusedError):
            possible.extend(deepcopy(after) for _ in action.predict(after, None))
        possible.append(after)
        seen = self.faulty_board.observe()
        fitting = [model for model in possible if model.view() == seen]
        assert fitting, f"{action.kind}, killed after {kill} steps: {difference(possible, seen)}"
        self.model = fitting[-1]

    def check(self):
        """Compare all tables with the model, and a leaderboard."""
        with self.board.reading() as connection:
            observed = Observed(connection, self.faulty_board.meanings)
            view = observed.view()
        self.codes = observed.codes
        if view != self.model.view():
            raise AssertionError(difference([self.model], view))
        if self.step % 2:  # it takes as long as all the others
            tables = self.tables()
            self.check_standings(*tables[self.step // 2 % len(tables)])
        assert self.now == self.model.now
        self.is_fine = True

    def tables(self):
        names = [name for name, _ in self.model.settings.phases]
        return [
            (test, phase) for phase in ([*names, "post-deadline"] if names else [""]) for test in (HIDDEN, VISIBLE)
        ]

    def check_standings(self, test, phase):
        table = standings(self.board, test, phase=phase, now=self.now)
        digests = {code: one.digest for code, one in zip(self.codes, self.model.submissions, strict=True)}
        found = [
            (entry.submitter.casefold(), digests[entry.code], entry.submission.baseline, entry.score, entry.place)
            for entry in table.entries
        ]
        assert found == self.model.standings(test, phase)

    # What must hold at the end

    def teardown(self):
        if not self.is_fine:
            return
        self.faulty_board.break_or_mend(self.model, fault="")
        for _ in range(12):
            self.now += timedelta(hours=13)
            self.model.now = self.now
            self.perform(self.working())
            if not any(one.state == "waiting" for one in self.model.submissions):
                break
        assert not any(one.state == "waiting" for one in self.model.submissions)
        for table in self.tables():
            self.check_standings(*table)
        self._check_server()
        self._check_ranking()
        self._check_site()

    def _check_server(self):
        """Look whether each receipt has its upload, and each content is needed."""
        key = signed_receipts.public_text(self.key)
        with self.board.reading() as connection:
            stored = dict(connection.execute(select(submissions.c.code, submissions.c.receipt)).all())
            for receipt in self.receipts:
                assert stored[verified(receipt, key)["number"]] == receipt
            kept = set(connection.execute(select(blobs.c.sha256)).scalars())
            needed = set(connection.execute(select(files.c.sha256)).scalars())
            failed = set(
                connection.execute(select(submissions.c.sha256).where(submissions.c.state == FAILED)).scalars()
            )
            assert needed <= kept <= needed | failed
            if connection.dialect.name == "sqlite":
                assert connection.execute(text("PRAGMA integrity_check")).scalar() == "ok"
                assert connection.execute(text("PRAGMA foreign_key_check")).all() == []

    def _check_ranking(self):
        """Make all that is disclosed and compared anew: it must be the same."""
        of = self.board.settings
        with self.board.writing() as connection:
            disclosure.refresh(connection, of, self.now)
            before = [standings_on(connection, of, test, phase=phase, now=self.now) for test, phase in self.tables()]
            for table in (disclosures, comparisons):
                connection.execute(delete(table))
            connection.execute(update(schema.board).values(disclosed_with=""))
            disclosure.refresh(connection, of, self.now)
            again = [standings_on(connection, of, test, phase=phase, now=self.now) for test, phase in self.tables()]
            assert before == again
            connection.rollback()

    def _check_site(self):
        """Look whether the site has all submissions, and scores of those alone that are ranked."""
        with loaded(self.board, now=self.now) as view:
            found = {one.code: one for one in view.submissions}
            for code, one in zip(self.codes, self.model.submissions, strict=True):
                if one.trial or one.state == "refused":
                    continue
                shown = found.pop(code)
                assert shown.status == ("withdrawn" if one.withdrawn else one.state)
                assert shown.is_ranked or not any(output.figures for output in shown.outputs)
            assert found == {}
            assert [one.text for one in view.announcements] == self.model.announced[::-1]


def after(change):
    """Return what an action does to a model if all that is done meanwhile comes before it."""

    def predict(model, during):
        if during is not None:
            during(model)
        yield from change(model)

    return predict


def is_refused(action, model, during=None):
    """Do an action to a model; returns whether it is to be refused."""
    try:
        for _ in action.predict(model, during):
            pass
    except RefusedError:
        return True
    return False


def difference(models, seen):
    """Return what is seen and not in one of some models, and the other way round."""
    found = []
    for model in models:
        view = {name: parts(value) for name, value in model.view().items()}
        now = {name: parts(value) for name, value in seen.items()}
        found.append(
            {
                f"{name} {key}": f"seen {now[name].get(key)}, expected {view[name].get(key)}"
                for name in view
                for key in {**view[name], **now[name]}
                if now[name].get(key) != view[name].get(key)
            }
        )
    return found


def parts(value):
    return value if isinstance(value, dict) else dict(enumerate(value))
