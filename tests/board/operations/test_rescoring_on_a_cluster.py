"""``geval board rescore --cluster``: what one machine gives, or one error, after which the board is as it was."""

import json
import os
import shutil
import signal
from datetime import timedelta

import pytest
from dask_clusters import QUIET
from samples import NOW, WORDS, words_of, write
from sqlalchemy import select

from geval_py.board.database.schema import evaluations, history, scores, submissions
from geval_py.board.database.store import Board
from geval_py.board.intake import sandbox as elsewhere
from geval_py.board.operations import pipeline as working
from geval_py.board.operations.rescoring import rescore
from geval_py.board.operations.status import status_of
from geval_py.board.operations.submissions import add
from geval_py.errors import ClusterError
from geval_py.scoring.cluster import Cluster, opened_cluster

pytestmark = QUIET

LATER = NOW + timedelta(days=1)


@pytest.fixture
def outdated(sqlite_board, submission, tmp_path):
    """A board with some submissions, whose answers have changed since; gives its folder."""
    for name, skill in (("ann", 0.5), ("bob", 0.4), ("eve", 0.1)):
        add(sqlite_board, str(submission(name, skill, variants=("", "k=1"))), now=NOW)
    write(submission("bad") / "test-A" / "out.tsv", "no colon\n")
    add(sqlite_board, str(tmp_path / "uploads" / "bad"), now=NOW)
    words = (WORDS[(WORDS.index(word) + 1) % len(WORDS)] for word in words_of("test-A"))
    write(tmp_path / "answers" / "test-A" / "expected.tsv", "".join(f"{word}\n" for word in words))
    return tmp_path / "board"


def copied(folder, name):
    """Copy a board, beside it."""
    shutil.copytree(folder, folder.with_name(name))
    return Board.open(folder.with_name(name))


def rows(board):
    """All that rescoring writes; evaluations by their content, since they are stored as they come."""
    with board.reading() as connection:
        content = [column for column in evaluations.c if column.name != "id"]
        found = [tuple(row) for row in connection.execute(select(*content)).all()]
        joined = select(scores.c.output_id, evaluations.c.metric, evaluations.c.score).join(evaluations)
        current = [tuple(row) for row in connection.execute(joined).all()]
        states = [tuple(row) for row in connection.execute(select(submissions.c.name, submissions.c.state)).all()]
        reasons = [tuple(row) for row in connection.execute(select(history.c.reason, history.c.replaced)).all()]
    return [sorted(part, key=repr) for part in (found, current, states, reasons)]


def test_the_same_as_on_one_machine(outdated, here, monkeypatch):
    alone, together = copied(outdated, "alone"), copied(outdated, "together")
    done = []
    want = rescore(alone, now=LATER)
    monkeypatch.setattr(working, "score_in_sandbox", None)
    found = rescore(together, now=LATER, workers=here, progress=lambda *both: done.append(both))
    assert found == want
    assert (len(found.outdated), len(found.changes)) == (13, 2)
    assert rows(together) == rows(alone)
    assert done == [(number, 4) for number in range(1, 5)]


def test_the_command(outdated, here, geval):
    copied(outdated, "together")
    words = ["--dry-run", "--format", "json"]
    there = geval("board", "rescore", f"{outdated}/../together", *words, "--cluster", here.address)
    assert there == geval("board", "rescore", str(outdated), *words)
    assert len(json.loads(there[1])["changes"]) == 2


@pytest.mark.parametrize("lacks", ["a file", "the challenge", "the same challenge"])
def test_a_worker_that_has_other_files(lacks, outdated, here, monkeypatch, tmp_path):
    """The submissions are not said to be at fault."""
    board = Board.open(outdated)
    before = rows(board)
    if lacks == "a file":
        monkeypatch.setattr(elsewhere.os.path, "isfile", lambda path: False)
        reason = "TMPDIR has to be a folder that all share"
    elif lacks == "the challenge":
        references_of = elsewhere.references_of

        def without(settings):
            os.rename(tmp_path / "challenge" / "config.txt", tmp_path / "config.txt")
            os.mkdir(tmp_path / "challenge" / "config.txt")
            try:
                return references_of(settings)
            finally:
                os.rmdir(tmp_path / "challenge" / "config.txt")
                os.rename(tmp_path / "config.txt", tmp_path / "challenge" / "config.txt")

        monkeypatch.setattr(elsewhere, "references_of", without)
        reason = f"a worker has not all files of the challenge: Cannot read `{tmp_path}/challenge/config.txt`: "
    else:
        monkeypatch.setattr(elsewhere, "references_of", lambda settings: {})
        reason = f"a worker has another challenge in `{tmp_path}/challenge`, or other answers"
    with pytest.raises(ClusterError) as caught:
        rescore(board, now=LATER, workers=here)
    assert reason in str(caught.value)
    assert str(caught.value).startswith(f"The cluster at `{here.address}`: a worker has ")
    assert rows(board) == before
    assert sum(status_of(board, LATER).outdated.values()) == 13


@pytest.mark.long
def test_a_worker_is_killed_in_the_middle(outdated):
    alone, together = copied(outdated, "alone"), copied(outdated, "together")
    want = rescore(alone, now=LATER)
    with opened_cluster("local", 2) as client:
        victims = sorted(client.run(os.getpid).values())

        def kill(done, of):
            if victims and done == 1:
                os.kill(victims.pop(), signal.SIGKILL)
                victims.clear()

        assert rescore(together, now=LATER, workers=Cluster.of(client), progress=kill) == want
    assert not victims
    assert rows(together) == rows(alone)
