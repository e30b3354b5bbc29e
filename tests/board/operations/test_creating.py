"""``geval board init``: what is written, and what is refused."""

import re
from dataclasses import fields

import pytest
from raising import refused
from samples import NOW, count

from geval_py.board.database.schema import submissions
from geval_py.board.database.store import DATABASE_VARIABLE, Board, StoreError
from geval_py.board.operations import creation as creating
from geval_py.board.operations.submissions import add
from geval_py.board.settings import BoardSettings, Test, settings_of
from geval_py.errors import ConfigError, MissingFileError, UsageError


def test_a_new_board_opens_with_few_digits_and_a_ladder_for_hidden_answers(challenge, database, tmp_path):
    creating.create(tmp_path / "board", challenge=challenge, answers=tmp_path / "answers", database=database)
    opened = Board.open(tmp_path / "board")
    assert opened.settings == BoardSettings(
        title="Guess the word", challenge=str(challenge), answers=str(tmp_path / "answers"), database=database,
        metric="PerplexityHashed", also=("LikelihoodHashed",), submissions_a_day=1, variants=5,
        tests=(Test(name="test-A", disclosed=2, ladder=True, step=0.2), Test(name="dev-0", visible=True)),
        zone=opened.settings.zone,
    )  # fmt: skip
    assert str(opened.settings.zone) == "UTC"
    assert count(opened, submissions) == 0


@pytest.mark.parametrize(("lines", "step"), [(199, 0.2), (200, 0.1), (999, 0.1), (1000, 0.01)])
def test_the_step_of_a_ladder_is_smaller_for_a_larger_test_set(lines, step, challenge, tmp_path):
    (tmp_path / "answers/test-A/expected.tsv").write_text("word\n" * lines)
    (challenge / "test-A/in.tsv").write_text("left\tright\n" * lines)
    created = creating.create(tmp_path / "board", challenge=challenge, answers=tmp_path / "answers")
    assert created.settings.tests[0].step == step


@pytest.mark.parametrize(("written", "after"), [("", 4), ("disclosed: 0", 4), ("disclosed: 3", 3)])
def test_the_digits_after_the_deadline_are_as_the_comment_says(sqlite_board, tmp_path, written, after):
    path = tmp_path / "board" / "board.yaml"
    content = path.read_text()
    assert "the same from then on (default: as disclosed; 4 if that is 0)\n" in content
    settings = settings_of(str(path), re.sub(r"(?m)^  test-A: .*$", f"  test-A: {{{written}}}", content))
    assert settings.tests[0].final_digits == after


def test_each_key_stands_below_a_comment_in_the_order_of_the_settings(sqlite_board, tmp_path):
    content = (tmp_path / "board" / "board.yaml").read_text()
    assert re.findall(r"^(\w+):", content, re.MULTILINE) == [one.name for one in fields(BoardSettings)]
    blocks = [block.splitlines() for block in content.split("\n\n")]
    assert [block for block in blocks if not block[0].startswith("# ")] == []


@pytest.mark.parametrize("title", ["a: b", "- x", "#1", "Żółw, [1]", "{x}", "'", "true", "x" * 300])
def test_any_title_reads_back(title, challenge, tmp_path):
    created = creating.create(tmp_path / "board", challenge=challenge, answers=tmp_path / "answers", title=title)
    assert Board.open(tmp_path / "board").settings.title == created.settings.title == title


def test_a_database_with_submissions_is_refused(board, challenge, submission, tmp_path):
    (tmp_path / "board" / "board.yaml").unlink()
    again = {"challenge": challenge, "answers": tmp_path / "answers", "database": board.settings.database}
    creating.create(tmp_path / "board", **again)  # an init that was interrupted
    (tmp_path / "board" / "board.yaml").unlink()
    add(board, str(submission("ann")), now=NOW)
    with pytest.raises(StoreError) as caught:
        creating.create(tmp_path / "board", **again)
    assert str(caught.value).endswith("it already contains the submissions of a board")


def test_without_answers_the_challenge_itself_must_have_them(challenge, tmp_path):
    missing = f"No answers of a test set: `{challenge / 'test-A' / 'expected.tsv'}`"
    hint = "name the folder that has test-A/expected.tsv with --answers DIR"
    with refused(f"{missing}\n  {hint}", MissingFileError):
        creating.create(tmp_path / "board", challenge=challenge)
    assert not (tmp_path / "board").exists()
    (tmp_path / "answers" / "test-A" / "expected.tsv").rename(challenge / "test-A" / "expected.tsv")
    assert creating.create(tmp_path / "board", challenge=challenge).settings.answers == str(challenge)


NO_URL = "the board's database is neither a file nor a URL such as postgresql://user@host/name"
PASSWORD = "the password of the database would stand in board.yaml\n  set GEVAL_BOARD_DATABASE to this address"
NO_DRIVER = "the board's database needs MySQLdb from the extra postgresql: pip install 'psycopg[binary]>=3.1'"


@pytest.mark.parametrize(("key", "value", "kind", "message"), [
    ("challenge", "none", MissingFileError, "No directory with the expected results"),
    ("answers", "none", MissingFileError, "No folder with the answers: `none`"),
    ("database", "mysql://x/y", UsageError, NO_DRIVER),
    ("database", "postgresql://ann@host:port/name", UsageError, NO_URL),
    ("database", "postgresql://ann:sec?ret@host:port/name", UsageError, PASSWORD),
    ("database", "postgresql://ann@host/name?x=y&password=sec@ret", UsageError, PASSWORD),
])  # fmt: skip
def test_what_cannot_be_made(key, value, kind, message, challenge, tmp_path):
    with pytest.raises(kind) as caught:
        creating.create(tmp_path / "board", **{"challenge": challenge, "answers": tmp_path / "answers", key: value})
    assert str(caught.value).startswith(message)
    assert "ret" not in str(caught.value)
    assert not (tmp_path / "board" / "board.yaml").exists()


def test_a_database_is_named_without_its_password(challenge, tmp_path, monkeypatch):
    monkeypatch.setenv(DATABASE_VARIABLE, "postgresql://ann:s3cret@127.0.0.1:9/name?password=s3cret&user=ann")
    with pytest.raises(StoreError) as caught:
        creating.create(tmp_path / "board", challenge=challenge, answers=tmp_path / "answers")
    assert caught.value.path == "postgresql+psycopg://ann:***@127.0.0.1:9/name"
    assert "s3cret" not in str(caught.value)


def test_a_challenge_without_a_metric(challenge, tmp_path):
    (challenge / "config.txt").write_text("--precision 4\n")
    missing = "the challenge has no metric, which a board needs: add --metric PerplexityHashed to its config.txt"
    with refused(f"{missing}\n  in `{challenge / 'config.txt'}`", ConfigError):
        creating.create(tmp_path / "board", challenge=challenge, answers=tmp_path / "answers")
