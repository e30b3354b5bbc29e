"""Boards filled without scoring anything: rows straight into the tables."""

import hashlib
import math
from datetime import UTC, datetime, timedelta

from sqlalchemy import insert, select, update

from geval_py.board.comparing import complete
from geval_py.board.disclosing import disclose
from geval_py.board.losses import pack
from geval_py.board.ranking import standings
from geval_py.board.schema import (
    SCORED,
    evaluations,
    files,
    outputs,
    scores,
    submissions,
    submitters,
)
from geval_py.board.settings import settings_of
from geval_py.board.store import Board, engine_of, migrate

START = datetime(2027, 1, 1, 12, tzinfo=UTC)
NOW = START + timedelta(days=10)
SETTINGS = """\
title: Gazette
challenge: challenge
answers: answers
metric: PerplexityHashed
samples: 200
"""


def settings(more="tests: {test-A: {}}\n", folder="/board"):
    text = SETTINGS + more
    lines = {line.partition(":")[0]: line for line in text.splitlines() if line[:1] not in " -"}
    nested = [line for line in text.splitlines() if line[:1] in " -"]
    assert not nested, "write values on one line, so that a later one can replace an earlier"
    return settings_of(f"{folder}/board.yaml", "".join(f"{line}\n" for line in lines.values()))


def perplexity(losses):
    return math.inf if math.inf in losses else math.exp(math.fsum(losses) / len(losses))


class Rows:
    """A board and its rows: each call adds something, and disclosing and comparing is done when it is looked at."""

    def __init__(self, folder, more="tests: {test-A: {}}\n", url=None):
        of = settings(more, folder)
        engine = (
            engine_of(str(folder), of)
            if url is None
            else engine_of(str(folder), settings(more + f"database: {url}\n", folder))
        )
        migrate(engine)
        self.board = Board(str(folder), of, engine)

    def edit(self, more):
        """Go on with another board.yaml."""
        self.board = Board(self.board.folder, settings(more, self.board.folder), self.board.engine)

    def write(self, statement, rows=None):
        with self.board.writing() as connection:
            result = connection.execute(statement, rows) if rows else connection.execute(statement)
            return result.inserted_primary_key[0] if result.is_insert and not isinstance(rows, list) else None

    def submitter(self, name):
        with self.board.reading() as connection:
            known = connection.execute(select(submitters.c.id).where(submitters.c.key == name)).scalar()
        return known or self.write(insert(submitters).values(key=name, name=name))

    def submit(self, name, *variants, at=0, test="test-A", **more):
        """Add a submission; a variant is a score, line losses, or a dict of columns of its evaluation. Gives its code."""
        number = self.count = getattr(self, "count", 0) + 1
        code = f"{number:012x}"
        values = {
            "code": code, "submitter_id": self.submitter(name), "name": name, "source": name, "digest": code,
            "arrived": START + timedelta(hours=at), "added": START, "state": SCORED, "charged": True,
            "charge": "", "tags": [], "params": {}, "links": [], "problems": [], "scorer": "", **more,
        }  # fmt: skip
        submission = self.write(insert(submissions).values(values))
        for n, variant in enumerate(variants):
            self.output(submission, test, "" if n == 0 else f"k={n}", variant)
        return code

    def output(self, submission, test, variant, scored):
        name = f"{test}/out-{variant}.tsv"
        file = self.write(insert(files).values(submission_id=submission, name=name, sha256="", bytes=1))
        params = dict([variant.split("=")]) if variant else {}
        row = {"submission_id": submission, "file_id": file, "test": test, "variant": variant, "params": params}
        output = self.write(insert(outputs).values(row))
        by_metric = scored if isinstance(scored, dict) else {self.board.settings.metric: scored}
        for metric, of in by_metric.items():
            evaluation = self.evaluation(test, metric, of)
            self.write(insert(scores).values(output_id=output, metric=metric, evaluation_id=evaluation))
        return output

    def evaluation(self, test, metric, of, reference="answers"):
        """Find or add the evaluation of a score, or of line losses, whose perplexity is the score."""
        losses = of if isinstance(of, list) else [] if of is None else [math.log(of) if of > 0 else math.inf] * 4
        score = perplexity(of) if isinstance(of, list) else of
        digest = hashlib.sha256(repr((test, metric, of, reference)).encode()).hexdigest()
        finite = score is not None and math.isfinite(score)
        row = {
            "test": test, "output_sha256": digest, "reference": reference, "metric": metric, "version": "1",
            "signature": "", "lines": len(losses), "score": score, "low": score * 0.9 if finite else score,
            "high": score * 1.1 if finite else score, "losses": pack(losses) if losses else None, "made": START,
        }  # fmt: skip
        with self.board.reading() as connection:
            known = connection.execute(select(evaluations.c.id).where(evaluations.c.output_sha256 == digest)).scalar()
        return known or self.write(insert(evaluations).values(row))

    def withdraw(self, code):
        self.write(
            update(submissions).where(submissions.c.code == code).values(withdrawn=START, withdrawal="asked for")
        )

    def refresh(self, now=NOW):
        with self.board.writing() as connection:
            disclose(connection, self.board.settings, now)
            complete(connection, self.board.settings, now)

    def standings(self, *words, now=NOW, **more):
        self.refresh(now)
        return standings(self.board, *words, now=now, **more)
