"""Grades: a row a person, with the scores of both parts, the place, and what is late and final."""

import math
from datetime import timedelta

import pytest
from rows import START, losses_by_part, rows_in_parts
from samples import change

from geval_py.board.operations.submissions import name_final
from geval_py.board.people import accounts, sign_in
from geval_py.board.people.store import accounts_of
from geval_py.board.people.teams import disqualify
from geval_py.board.ranking.grades import grades
from geval_py.cli.board import boards

PHASES = "[{name: main, until: 2027-01-03T12:00:00Z}]"
OPEN = START.replace(day=3)
OVER = OPEN + timedelta(hours=1)
PEOPLE = [("Ann", "ann@uni.example", "team 10"), ("Bob", "bob@uni.example", "team 10"), ("=Cy", "", "team 2")]


@pytest.fixture
def rows(tmp_path, database):
    made = rows_in_parts(tmp_path, phases=PHASES, finals="1", database=database)
    made.write_settings()
    with accounts_of(made.board).writing() as people:
        for name, email, team in PEOPLE:
            secret = accounts.invite(people, name, now=START, email=email, team=team).secret
            sign_in.accept(people, secret, START)
    return made


def test_grades_are_of_the_teams_at_the_deadline(rows):
    rows.submit("team 10", losses_by_part(3, 2), at=30)
    rows.submit("team 2", losses_by_part(2, 3), at=30)
    late = OPEN + timedelta(minutes=30)
    with accounts_of(rows.board).writing() as people:
        members = {one.name: one for one in accounts.all_accounts(people)}
        accounts.move(people, members["Ann"], "team 2", OPEN - timedelta(hours=1))
        accounts.close(people, members["Bob"], late)
        accounts.close(people, members["=Cy"], late)
        accounts.invite(people, "Dan", now=late, team="team 2")
        eve = accounts.invite(people, "Eve", now=START, team="team 2").account
        accounts.close(people, eve, OPEN - timedelta(hours=1))

    def teams(now):
        rows.refresh(now)
        return [(row[0], row[3], row[6]) for row in grades(rows.board, phase="main", now=now).rows]

    in_time = [("=Cy", "team 2", 2), ("Ann", "team 2", 2), ("Bob", "team 10", 1)]
    assert teams(OVER) == [("Eve", "", None), *in_time]
    earlier = [("=Cy", "team 2", 1), ("Eve", "team 2", 1), ("Ann", "team 10", 2), ("Bob", "team 10", 2)]
    assert teams(OPEN - timedelta(hours=2)) == earlier


def test_grades_have_a_row_for_each_person(rows, geval, monkeypatch):
    first = rows.submit("team 10", losses_by_part(3, 2), at=30)
    second = rows.submit("team 10", losses_by_part(2, 3), at=40)
    dan = rows.submit("dan", losses_by_part(4, 4), at=45)
    rows.submit("model", losses_by_part(1, 1), at=20, baseline=True)
    change(rows.board, name_final, rows.board.settings, first, OPEN, moment=OPEN)
    head = "name,email,student_id,team,public,private,place,submission,state\n"

    def show(now, *words):
        monkeypatch.setattr(boards, "now", lambda: now)
        return geval("board", "show", rows.board.folder, "--by", "person", "--format", "csv", *words)

    assert show(OPEN) == (0, head + (
        f"dan,,,dan,{math.exp(4)},,2,{dan},\n"
        "'=Cy,,,team 2,,,,,\n"
        f"Ann,ann@uni.example,,team 10,{math.exp(2)},,1,{second},\n"
        f"Bob,bob@uni.example,,team 10,{math.exp(2)},,1,{second},\n"
    ), "")  # fmt: skip
    late = rows.submit("team 2", losses_by_part(4, 1), at=49)
    with accounts_of(rows.board).writing() as people:
        accounts.close(people, accounts.account_named(people, "Bob"), OVER)
        accounts.invite(people, "Fay", now=OPEN, team="team 10")
    assert show(OVER) == (0, head + (
        f"dan,,,dan,{math.exp(4)},{math.exp(4)},2,{dan},\n"
        f"'=Cy,,,team 2,,{math.exp(1)},,{late},late\n"
        f"Ann,ann@uni.example,,team 10,{math.exp(3)},{math.exp(2)},1,{first},\n"
        f"Bob,bob@uni.example,,team 10,{math.exp(3)},{math.exp(2)},1,{first},closed\n"
        f"Fay,,,team 10,{math.exp(3)},{math.exp(2)},1,{first},invited\n"
    ), "")  # fmt: skip
    disqualify(rows.board, accounts_of(rows.board), ["team 10"], "copied", OVER)
    states = [line.split(",")[4:] for line in show(OVER)[1].splitlines()[3:]]
    assert states == [["", "", "", "", "closed disqualified"]] * 3
