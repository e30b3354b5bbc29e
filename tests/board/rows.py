"""Boards filled without scoring anything: rows straight into the tables."""

import contextlib
import hashlib
import math
from array import array
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import insert, select, update

from geval_py.board.database.schema import SCORED, evaluations, files, outputs, scores, submissions, submitters
from geval_py.board.database.store import Board, create_tables, place_of
from geval_py.board.ranking.disclosure import complete, disclose
from geval_py.board.ranking.leaderboard import standings
from geval_py.board.ranking.parts import public_lines
from geval_py.board.ranking.views import Figures
from geval_py.board.settings import settings_of
from geval_py.board.submission import pack

START = datetime(2027, 1, 1, 12, tzinfo=UTC)
NOW = START + timedelta(days=10)
KEYS = {"title": "Gazette", "challenge": "challenge", "answers": "answers", "metric": "PerplexityHashed"}
KEYS |= {"samples": "50", "tests": "{test-A: {}}"}


def settings(folder="/board", **keys):
    """What a board.yaml with these keys says, each in one line."""
    text = "".join(f"{key}: {value}\n" for key, value in (KEYS | keys).items())
    return settings_of(f"{folder}/board.yaml", text)


def perplexity(losses):
    return math.inf if math.inf in losses else math.exp(math.fsum(losses) / len(losses))


def others_of(entry, *metrics):
    """The shown scores of an entry by metrics that do not rank."""
    return {metric: entry.output.figures.get(metric, Figures()).value for metric in metrics}


class Rows:
    """A board whose rows are added one by one; it is disclosed and compared when its standings are asked for."""

    def __init__(self, folder, **keys):
        self.folder, self.keys, self.count = str(folder), keys, 0
        of = settings(self.folder, **keys)
        self.board = Board(self.folder, of, place_of(self.folder, of.database))
        self.connection = None
        create_tables(self.board.engine)

    def edit(self, **keys):
        self.keys |= keys
        self.board = Board(self.folder, settings(self.folder, **self.keys), self.board.place)

    def write_settings(self):
        text = "".join(f"{key}: {value}\n" for key, value in (KEYS | self.keys).items())
        Path(self.folder, "board.yaml").write_text(text, encoding="utf-8")

    @contextlib.contextmanager
    def together(self):
        """Run all statements in one transaction."""
        if self.connection is not None:
            yield
            return
        with self.board.writing() as self.connection:
            try:
                yield
            finally:
                self.connection = None

    def run(self, statement):
        with self.together():
            result = self.connection.execute(statement)
            if statement.is_insert:
                return result.inserted_primary_key[0]
            return result.all() if result.returns_rows else None

    def rows(self, table):
        return self.run(select(table).order_by(*table.primary_key))

    def submit(self, name, *variants, at=0, test="test-A", **more):
        """Add a submission, ``at`` hours from the start, of scores, line losses or dicts of them; gives its code."""
        self.count += 1
        code = f"{self.count:012x}"
        values = {
            "code": code, "name": name, "source": name, "digest": code, "arrived": START + timedelta(hours=at),
            "added": START, "state": SCORED, "charge": "", "tags": [], "params": {}, "links": [], "problems": [],
            "scorer": "", **more,
        }  # fmt: skip
        with self.together():
            values["submitter_id"] = self.submitter(name)
            submission = self.run(insert(submissions).values(values))
            for number, variant in enumerate(variants):
                self.output(submission, test, f"k={number}" if number else "", variant)
        return code

    def submitter(self, name):
        known = self.run(select(submitters.c.id).where(submitters.c.key == name))
        return known[0].id if known else self.run(insert(submitters).values(key=name, name=name))

    def output(self, submission, test, variant, scored):
        name = f"{test}/out-{variant}.tsv"
        file = self.run(insert(files).values(submission_id=submission, name=name, sha256="", bytes=1))
        row = {
            "submission_id": submission, "file_id": file, "test": test, "variant": variant,
            "params": dict([variant.split("=")]) if variant else {}, "output_sha256": "",
        }  # fmt: skip
        output = self.run(insert(outputs).values(row))
        by_metric = scored if isinstance(scored, dict) else {self.board.settings.metric: scored}
        for metric, of in by_metric.items():
            evaluation = self.evaluation(test, metric, of)
            self.run(insert(scores).values(output_id=output, metric=metric, evaluation_id=evaluation))

    def evaluation(self, test, metric, of, *, reference="answers", score=None):
        """Find or add an evaluation, of a score without losses or of line losses (with their perplexity)."""
        losses = of if isinstance(of, list) else []
        value = score if score is not None else perplexity(of) if losses else of
        digest = hashlib.sha256(repr((test, metric, of, reference, score)).encode()).hexdigest()
        known = self.run(select(evaluations.c.id).where(evaluations.c.output_sha256 == digest))
        row = {
            "test": test, "output_sha256": digest, "reference": reference, "metric": metric, "version": "1",
            "signature": "", "lines": len(losses), "score": value, "low": None if value is None else value * 0.9,
            "high": None if value is None else value * 1.1, "losses": pack([array("d", losses)]) if losses else None,
            "made": START,
        }  # fmt: skip
        return known[0].id if known else self.run(insert(evaluations).values(row))

    def score_again(self, code, of, **more):
        """Replace the evaluation of the first output of a submission."""
        (output,) = self.run(select(outputs).join(submissions).where(submissions.c.code == code))[:1]
        metric = self.board.settings.metric
        evaluation = self.evaluation(output.test, metric, of, **more)
        self.run(update(scores).where(scores.c.output_id == output.id).values(evaluation_id=evaluation))
        return evaluation

    def withdraw(self, code):
        changed = {"withdrawn": START, "withdrawal": "asked for"}
        self.run(update(submissions).where(submissions.c.code == code).values(changed))

    def refresh(self, now=NOW):
        with self.board.writing() as connection:
            disclose(connection, self.board.settings, now)
            complete(connection, self.board.settings, now)

    def standings(self, test=None, *, now=NOW, **more):
        self.refresh(now)
        return standings(self.board, test, now=now, **more)

    def table(self, test=None, **more):
        """The places, submitters and shown scores of a leaderboard."""
        return [(entry.place, entry.submitter, entry.score) for entry in self.standings(test, **more).entries]


LINES, SEED = 60, "728190312"
PUBLIC = public_lines([str(line) for line in range(LINES)], 0.5, f"{SEED} test-A")


def rows_in_parts(folder, **keys):
    """A board whose test has a public and a private part."""
    (folder / "challenge").mkdir()
    return Rows(folder, tests="{test-A: {split: 50 %, disclosed: 3}}", seed=SEED, **keys)


def losses_by_part(on_public, on_private):
    return [float(on_public if line in PUBLIC else on_private) for line in range(LINES)]
