"""The reports that a team gets of its own outputs, for test sets whose answers are public."""

import os
import re
from pathlib import Path

import pytest
from samples import ON_BOTH, output, words_of
from serving import set_keys
from test_server import archive

from geval_py.board.database.store import Board
from geval_py.board.server import team

BOTH = archive({"dev-0/out.tsv": output("dev-0", 0.4), "test-A/out.tsv": output("test-A", 0.5)})
TESTS = "{test-A: {disclosed: 4}, dev-0: {visible: true}}"


def score(served, tests=TESTS):
    set_keys(served.board, tests=tests)
    served.server.live._board = Board.open(served.board.folder)
    upload = served.send("anna", BOTH, "/upload/team.zip")
    return served.signed_in("anna"), f"/me/uploads/{upload['number']}"


@pytest.fixture
def scored(served):
    """A team whose upload was scored on a public and on a hidden test: its browser, and the upload's page."""
    return score(served)


def report_of(browser, page):
    """The address of the only report that a page leads to."""
    (address,) = re.findall(f'href="({page}/reports/[^"]*)"', browser.get(page).text)
    return address


@ON_BOTH
def test_a_team_gets_a_report_of_a_public_test_alone(served, scored):
    browser, page = scored
    answer = browser.get(report_of(browser, page))
    name = f"report-{page.rpartition('/')[2]}-dev-0.html"
    assert answer.headers["content-disposition"] == f'attachment; filename="{name}"'
    assert answer.text.startswith("<!doctype html>")
    assert "Guess the word" in answer.text
    assert words_of("dev-0")[0] in answer.text
    assert not [word for word in set(words_of("test-A")) - set(words_of("dev-0")) if f">{word}<" in answer.text]
    assert os.listdir(served.server.place) == ["site"]


def test_hidden_tests_other_teams_and_withdrawn_submissions_have_no_report(served, scored):
    browser, page = scored
    outputs = range(1, 4)
    assert [browser.get(f"{page}/reports/{one}").status_code for one in outputs].count(200) == 1
    assert served.browser().get(f"{page}/reports/1").status_code == 303
    assert {served.signed_in("ben").get(f"{page}/reports/{one}").status_code for one in outputs} == {404}
    code = served.token("anna").get(f"/api{page.removeprefix('/me')}").json()["code"]
    assert browser.post("/me/withdraw", data={"code": code}).status_code == 303
    assert {browser.get(f"{page}/reports/{one}").status_code for one in outputs} == {404}


@pytest.mark.parametrize("dev", ["{disclosed: 4}", "{visible: true, ladder: true, step: 0.1}"])
def test_answers_that_lie_in_the_challenge_but_are_not_for_everyone_are_not_explained(served, dev):
    browser, page = score(served, f"{{test-A: {{disclosed: 4}}, dev-0: {dev}}}")
    assert "<h2>Reports</h2>" not in browser.get(page).text
    answers = [browser.get(f"{page}/reports/{one}") for one in range(1, 4)]
    assert {answer.status_code for answer in answers} == {404}
    assert "There is no such output of a test whose answers are public." in answers[0].text


def test_reports_are_limited_by_the_hour(served, scored, monkeypatch):
    browser, page = scored
    monkeypatch.setattr(team, "REPORTS_AN_HOUR", 1)
    address = report_of(browser, page)
    assert [browser.get(address).status_code for _ in range(2)] == [200, 429]


def test_a_report_that_cannot_be_made_says_why_in_a_sentence(served, scored):
    browser, page = scored
    address = report_of(browser, page)
    expected = Path(served.board.settings.challenge, "dev-0", "expected.tsv")
    expected.write_text("too\nshort\n", encoding="utf-8")
    answer = browser.get(address)
    assert answer.status_code == 503
    assert "The board cannot do this now; try again later." in answer.text
    assert os.listdir(served.server.place) == ["site"]
