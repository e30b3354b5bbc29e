"""The score of an upload, as a program is told it: what the site shows to everybody, and no more."""

import re
from datetime import timedelta

import pytest
from samples import NOW, output
from serving import set_keys
from test_server import archive, state

WEAK, GOOD, BEST = (output("test-A", skill) for skill in (0.2, 0.5, 0.8))
DEV = output("dev-0", 0.5)
SOON, LATER = NOW + timedelta(hours=1), NOW + timedelta(hours=2)
PHASES = f"[{{name: dev, until: {SOON.isoformat()}, tests: [dev-0]}}, {{name: main, until: {LATER.isoformat()}}}]"
ONE_PHASE = f"[{{name: main, until: {SOON.isoformat()}}}]"


def send(served, *outputs, test="test-A", name="anna", **others):
    """Upload an archive with outputs for a test, and score it; gives the program and the upload's number."""
    program = served.token(name)
    files = {f"{test}/out-k={n}.tsv" if len(outputs) > 1 else f"{test}/out.tsv": of for n, of in enumerate(outputs)}
    number = program.put("/upload/team.zip", archive(files | others)).json()["number"]
    served.clock.wait(seconds=1)
    served.work()
    return program, number


def told(served, sent):
    """Return the scores of an upload by test, after a comparison with the lists of submissions of the site."""
    program, number = sent
    found = state(program, number)
    scores = {one["test"]: one["score"] for one in found["scores"]}
    page = served.signed_in("anna").get("/submissions.html").text
    tests = re.findall(r'<th scope="col" class="number">([^<]*)</th>', page)
    (row,) = (row for row in page.split("<tr>") if found["code"] in row)
    shown = zip(tests, re.findall(r'<td class="number">([^<]*)</td>', row), strict=True)
    assert {one for one in scores.items() if one[1] != "–"} == {one for one in shown if one[1] != "–"}
    return scores


AFTER = {"phases": ONE_PHASE, "tests": "{test-A: {disclosed: 0, disclosed_after: 3}}"}
SHOWN = {  # geval -m PerplexityHashed --precision 6: 2.037989
    "four digits": ({}, {"test-A": "2.038"}, {"test-A": "2.038"}),
    "two digits": ({"tests": "{test-A: {disclosed: 2}}"}, {"test-A": "2.0"}, {"test-A": "2.0"}),
    "none": ({"tests": "{test-A: {disclosed: 0}}"}, {"test-A": "–"}, {"test-A": "–"}),
    "a phase without the test": ({"phases": PHASES, "tests": "{test-A: {}, dev-0: {visible: true}}"}, {}, {}),
    "three after the deadline": (AFTER, {"test-A": "–"}, {"test-A": "2.04"}),
}


@pytest.mark.parametrize(("settings", "scores", "later"), SHOWN.values(), ids=SHOWN)
def test_a_score_has_the_digits_of_the_pages(served, settings, scores, later):
    set_keys(served.board, **settings)
    sent = send(served, GOOD)
    assert told(served, sent) == scores
    served.clock.now = LATER
    assert told(served, sent) == later


def test_of_several_outputs_only_the_best_has_a_score(served):
    assert told(served, send(served, WEAK, GOOD)) == told(served, send(served, GOOD, name="bob"))


def test_a_ladder_holds_a_worse_score_back(served):
    set_keys(served.board, tests="{test-A: {disclosed: 4, ladder: true}}")
    first = told(served, send(served, GOOD))
    sent = send(served, WEAK)
    assert told(served, sent) == first
    assert [one["ladder"] for one in state(*sent)["scores"]] == [True]
    assert told(served, send(served, BEST)) != first


def test_before_the_deadline_a_score_is_of_the_public_part(served):
    set_keys(served.board, seed=7, phases=ONE_PHASE, tests="{test-A: {disclosed: 4, split: 50 %}}")
    sent = send(served, GOOD)
    public = told(served, sent)
    served.clock.now = LATER
    private = told(served, sent)
    assert "–" not in {*public.values(), *private.values()}
    assert public != private


def test_a_late_submission_has_a_place_among_late_ones(served):
    set_keys(served.board, phases=ONE_PHASE)
    served.clock.now = LATER
    program, number = send(served, GOOD)
    (score,) = state(program, number)["scores"]
    assert (score["place"], score["mark"]) == ("1 of post-deadline", "late")
    anna, olga = served.signed_in("anna"), served.signed_in("olga", role="organiser")
    for browser, address in ((anna, "/me"), (anna, f"/me/uploads/{number}"), (olga, "/organiser/submissions")):
        assert "test-A: 2.038, place 1 of post-deadline (late)" in browser.get(address).text


def test_other_submissions_have_no_score(served):
    program, number = send(served, GOOD)
    code = state(program, number)["code"]
    served.signed_in("anna").post("/me/withdraw", data={"code": code})
    upload = state(program, number)
    assert [upload[name] for name in ("scores", "state", "reason", "settled")] == [[], "withdrawn", "", True]
    bad = send(served, GOOD.replace(" :", " ;", 1))
    assert (state(*bad)["state"], state(*bad)["scores"]) == ("rejected", [])
    waiting = program.put("/upload/out.tsv?test=test-A", BEST).json()["number"]
    assert state(program, waiting)["scores"] == []
