"""What one team is allowed beyond the others: a later deadline, more submissions a day; and a deadline that moves."""

import pytest
from samples import ON_BOTH, output
from serving import set_keys

PHASES = "[{name: main, until: 2027-01-10T13:00:00Z}]"


@pytest.fixture
def geval_now(served, geval):
    return lambda *words: geval("board", words[0], served.board.folder, *words[1:])


@pytest.mark.slow
@ON_BOTH
def test_a_team_gets_more_submissions_a_day(served, geval_now):
    set_keys(served.board, submissions_a_day=1)
    assert served.send("anna", output("test-A", 0.5))["state"] == "scored"
    assert served.token("anna").put("/upload/out.tsv?test=test-A", "x").status_code == 429
    told = "anna: 1 more submission a day (a broken file)\n"
    assert geval_now("extend", "anna", "--more", "1", "--reason", "a broken file") == (0, told, "")
    sent = served.send("anna", output("test-A", 0.6))
    assert (sent["state"], sent["quota"]["used"], sent["quota"]["allowed"]) == ("scored", 2, 2)
    assert served.token("anna").put("/upload/out.tsv?test=test-A", "y").status_code == 429
    assert served.send("bob", output("test-A", 0.5))["state"] == "scored"
    assert served.token("bob").put("/upload/out.tsv?test=test-A", "x").status_code == 429
    assert "\nextended for anna: 1 more submission a day (a broken file)\n" in geval_now("status")[1]


@pytest.mark.slow
def test_a_team_gets_a_later_deadline(served, geval_now):
    set_keys(served.board, phases=PHASES)
    served.send("bob", output("test-A", 0.3))
    served.clock.wait(hours=24)
    code = served.send("anna", output("test-A", 0.5))["code"]

    def places(phase):
        table = geval_now("show", "--by", "submitter", "--phase", phase, "--format", "csv")[1]
        return [line.split(",")[:6] for line in table.splitlines()[1:]]

    assert [row[4] for row in places("main")] == ["bob"]
    words = "extend", "anna", "--reason", "ill", "--until"
    told = "anna in main: until 2027-01-12T13:00:00Z (ill)\n"
    assert geval_now(*words, "2027-01-12T13:00:00Z") == (0, told, "")
    page = served.signed_in("anna").get("/me").text
    assert ("main is open until" in page, "2027-01-12T13:00:00Z" in page) == (True, True)
    assert [row[4:6] for row in places("main")] == [["anna", code], ["bob", places("main")[1][5]]]
    assert places("post-deadline") == []
    grades = geval_now("show", "--by", "person", "--format", "csv")[1].splitlines()
    assert [line.split(",")[-1] for line in grades[1:]] == ["extended", ""]
    assert served.browser().get(f"/submissions/{code}.html").text.count("main") > 0
    assert geval_now("status", "--format", "json")[1].count('"phase": "main"') == 2
    assert served.send("anna", output("test-A", 0.55))["scores"][0]["score"] != "–"
    served.clock.wait(hours=48)
    late = served.send("anna", output("test-A", 0.7))["code"]
    assert [row[5] for row in places("post-deadline")] == [late]
    told = "anna in main: as the others (a mistake)\n"
    assert geval_now("extend", "anna", "--reason", "a mistake") == (0, told, "")
    assert [row[4] for row in places("main")] == ["bob"]


@pytest.mark.parametrize(("phases", "words", "message"), [
    ("[]", ["anna", "--until", "2027-01-12T13:00:00Z"], "the board has no deadline that could be later"),
    (PHASES, ["eve", "--more", "1"], "there is no team `eve`"),
    (PHASES, ["anna", "--phase", "dev", "--more", "1"], "the board has no phase `dev`\n  it has main"),
    (PHASES, ["anna", "--until", "2027-01-10T12:30:00Z"], "the deadline must be later than 2027-01-10T13:00:00Z"),
    (PHASES, ["anna", "--more", "-1"], "a team may have 0 to 1000 more submissions a day, not -1"),
    (PHASES, ["anna", "--more", "1", "--reason", " "],
     "an extension needs a reason, which `geval board status` shows"),
])  # fmt: skip
def test_what_is_no_extension(served, geval_now, phases, words, message):
    set_keys(served.board, phases=phases)
    served.signed_in("anna")
    assert geval_now("extend", "--reason", "ill", *words) == (2, "", f"geval: {message}\n")


def test_a_deadline_that_is_moved_after_private_scores_were_shown_has_a_warning(served, geval_now):
    set_keys(served.board, phases=PHASES, seed=728190312, tests="{test-A: {split: 50 %}}")
    served.send("anna", output("test-A", 0.5))
    words = "extend", "anna", "--reason", "ill", "--until", "2027-01-12T13:00:00Z"
    known = "geval: the private scores of test-A are shown from 2027-01-10T13:00:00Z on, so the team may use them"
    refused = (2, "", f"{known}\n  to extend its deadline anyway, confirm (--yes)\n")
    assert geval_now(*words) == refused
    served.clock.wait(hours=2)
    assert "the private part" in geval_now("show")[1]
    assert geval_now(*words) == refused
    assert geval_now(*words, "--yes")[0] == 0
    set_keys(served.board, phases=PHASES.replace("10T13", "20T14"))
    moved = "warning: the deadline of main was moved after the private scores were shown, at 2027-01-10T13:00:00Z"
    assert f"{moved}; submitters may use these\n" in geval_now("status")[1]
    assert "the public part" in geval_now("show")[1]
    assert served.server.board().settings.phases[0].until.day == 20
