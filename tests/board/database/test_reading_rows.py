"""What is read by texts of SQL: SQLite without SQLAlchemy gives the same as SQLAlchemy, which has the schema."""

import json
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from rows import NOW, START, Rows
from samples import ON_BOTH, without_limits

from geval_py.board.database.schema import Moment, board, outputs, submissions
from geval_py.board.database.store import (
    Board,
    StoreError,
    moment_stored_as,
    stored_moment,
)
from geval_py.board.operations import creation
from geval_py.board.ranking import leaderboard, order
from geval_py.board.submission import Entry

READERS = {sa.JSON: json.loads, sa.Boolean: bool, Moment: moment_stored_as}
ODD = {
    "arrived": START + timedelta(microseconds=1),
    "description": ":metric ? %s %% {}",
    "remark": "Zoë's “\\n”",
    "tags": ["ä", "it's", '"'],
    "params": {"k": "1", "deep": {"list": [1.5, None, True, "\U0001f600"]}},
    "links": [["title", "https://example.org/?a=1"]],
    "baseline": True,
}


def test_each_column_is_read_as_its_type_in_the_schema_says():
    of_submissions = {column.name: column for column in submissions.c}
    assert set(order.TOLD) == {one.name for one in fields(Entry)} & {*of_submissions} - {*order.KEYS}
    for name in {*order.TOLD, *order.KEYS} & {*of_submissions}:
        assert order.READ.get(name) == READERS.get(type(of_submissions[name].type))
    assert order.READ["variant_params"] == READERS[type(outputs.c.params.type)]


@ON_BOTH
def test_an_entry_has_what_sqlalchemy_reads(tmp_path, database):
    rows = Rows(tmp_path, database=database, also="[LogLossHashed]")
    rows.submit("odd", {"PerplexityHashed": 80.5, "LogLossHashed": 4.25}, **ODD)
    rows.submit("plain", 90.0, None)
    rows.refresh()
    with rows.board.reading() as connection:
        stored = {row["id"]: row for row in connection.execute(sa.select(submissions)).mappings()}
        params = {row.id: row.params for row in connection.execute(sa.select(outputs))}
    with rows.board.reading_rows() as connection:
        found = order.entries(connection, rows.board.settings, "test-A", "", order.SUBMISSION)
    assert [(entry["value"], entry["other0"], entry["place"], entry["shared"]) for entry in found] == [
        (80.5, 4.25, None, False),
        (90.0, None, 1, False),
    ]
    for entry in found:
        row = stored[entry["submission_id"]]
        for name in (*order.TOLD, "arrived", "baseline"):
            assert (entry[name], type(entry[name])) == (row[name], type(row[name]))
        assert entry["variant_params"] == params[entry["output_id"]]
    assert {name: found[0][name] for name in ODD} == ODD


@pytest.mark.parametrize("by", leaderboard.BY)
def test_a_leaderboard_is_the_same_on_a_connection_of_either_kind(by, tmp_path):
    rows = Rows(tmp_path, tests="{test-A: {ladder: true}}", also="[LogLossHashed]")
    for number in range(12):
        losses = [1.0 + number % 4 + line / 7 for line in range(20)]
        tags = [f"tag{tag}" for tag in range(number % 3)]
        rows.submit(f"s{number % 5}", losses, at=number, tags=tags, baseline=number == 7)
    rows.refresh()
    found = []
    for reading in (rows.board.reading_rows, rows.board.reading):
        with reading() as connection:
            found.append(leaderboard.standings_on(connection, rows.board.settings, by=by, now=NOW))
    assert found[0] == found[1]
    assert len(found[0].entries) > 5


@pytest.mark.parametrize("moment", [START, START.replace(microsecond=7), datetime.max.replace(tzinfo=UTC)])
def test_a_moment_comes_back(moment):
    assert moment_stored_as(stored_moment(moment)) == moment
    assert len(stored_moment(moment)) == Moment().impl.length


def test_a_moment_needs_a_zone():
    with pytest.raises(ValueError, match="has no zone"):
        stored_moment(datetime(2027, 1, 1))


def test_what_another_transaction_has_not_committed_is_not_shown(sqlite_board):
    before = leaderboard.standings(sqlite_board, now=NOW)
    with sqlite_board.writing() as connection:
        connection.execute(board.update().values(disclosed_with="other settings"))
        assert leaderboard.standings(sqlite_board, now=NOW) == before


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"no database at all " * 9, "file is not a database"), (b"", "it holds no board"), (None, "it holds no board")],
)
def test_a_file_that_is_no_board(content, reason, sqlite_board):
    path = Path(sqlite_board.folder) / "board.sqlite"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(StoreError) as caught:
        Board.open(sqlite_board.folder)
    assert str(caught.value) == f"Cannot use the board's database `{path}`: {reason}"


def test_a_table_that_is_missing(sqlite_board):
    with sqlite_board.writing() as connection:
        connection.execute(sa.text("DROP TABLE disclosures"))
    with pytest.raises(StoreError) as caught:
        leaderboard.standings(sqlite_board, now=NOW)
    assert str(caught.value).endswith("board.sqlite`: no such table: disclosures")


def test_a_folder_whose_name_looks_like_a_query(challenge, tmp_path):
    """SQLAlchemy's URL of a file would end at the question mark."""
    folder = tmp_path / "a?b=c%20d#e"
    creation.create(folder, challenge=challenge, answers=tmp_path / "answers")
    assert sorted(path.name for path in folder.iterdir()) == ["board.sqlite", "board.yaml"]
    assert leaderboard.standings(without_limits(folder), now=NOW).entries == ()
