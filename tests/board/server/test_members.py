"""Teams that change: members leave, owners remove them and hand over, the organiser renames and moves."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from samples import GOOD, ON_BOTH, OUT, output
from serving import Browser
from sqlalchemy import select, update
from test_accounts import invited, opened, team
from test_links import SURE
from test_several import folder, several

from geval_py.board.database.schema import submissions
from geval_py.board.database.store import Board
from geval_py.board.operations.teams import submitter_id
from geval_py.board.people import accounts as people
from geval_py.board.people.schema import accounts
from geval_py.board.ranking.leaderboard import standings

assert folder, several  # fixtures
BETTER = output("test-A", 0.8)
ASKED = "only the owner of a team can do this, to a member who neither owns it nor is an organiser"


@pytest.fixture
def change(served, geval):
    return lambda *words: geval("board", "team", served.board.folder, *words)


def member(served, name):
    return {"member": str(served.rows(select(accounts.c.id).where(accounts.c.name == name))[0])}


def a_team(served):
    """Sign in an owner, and a member whom she has invited."""
    anna = served.signed_in("anna", team="Team 7")
    return anna, opened(served, invited(anna, "bob"))


def program_of(served, browser):
    """A program with a token that somebody makes on their page."""
    secret = re.search(r"<code>([\w-]{40,})</code>", browser.post("/me/tokens", data={"name": "x"}).text)[1]
    return Browser(served.app, headers={"Authorization": f"Bearer {secret}"}, own=False)


def owners(served):
    is_member = accounts.c.team != "", accounts.c.closed.is_(None)
    members = served.rows(select(accounts.c.name, accounts.c.owner).where(*is_member))
    return {name for name, owner in members if owner}, {name for name, _ in members}


def places(served):
    shown = standings(Board.open(served.board.folder), now=served.clock())
    return [(one.place, one.submitter) for one in shown.entries]


def test_a_removed_member_loses_access_at_once(served, geval):
    anna, bob = a_team(served)
    program, form = program_of(served, bob), member(served, "bob")
    upload = program.put(OUT, GOOD).json()["number"]
    served.work()
    assert anna.post("/me/remove", data=form).status_code == 422
    assert program.get("/api/me").status_code == 200
    assert anna.post("/me/remove", data=form | SURE).headers["location"] == "/me"
    assert bob.get("/me").headers["location"] == "/sign-in"
    assert [program.get("/api/me").status_code, program.put(OUT, BETTER).status_code] == [401, 401]
    assert anna.get(f"/api/uploads/{upload}").json()["state"] == "scored"
    assert places(served) == [(1, "Team 7")]
    assert "bob" not in anna.get("/me").text
    assert geval("board", "open", served.board.folder, "bob (Team 7)")[0] == 0
    with served.people() as here:
        link = people.new_link(here, served.clock(), people.account_named(here, "bob (Team 7)"))
    assert team(opened(served, f"/invitation/{link}")) == "Team 7"
    assert ("anna (Team 7)", "remove", "bob (Team 7)", "Team 7") in served.log()


def test_nobody_but_an_owner_changes_the_members(served, change):
    anna, bob = a_team(served)
    eve = served.signed_in("eve", team="Team 8")
    carl = served.signed_in("carl", team="Team 7")  # an owner too, by the organiser
    rita = served.signed_in("rita", role="reader")
    served.signed_in("olga", role="organiser")
    assert change("Team 7", "--add", "olga")[0] == 0
    for browser, name in ((bob, "anna"), (eve, "bob"), (anna, "carl"), (rita, "rita"), (anna, "olga")):
        answer = browser.post("/me/remove", data=member(served, name) | SURE)
        assert (answer.status_code, ASKED in answer.text) == (403, True)
    for browser, name in ((bob, "anna"), (eve, "bob"), (rita, "rita"), (bob, "bob"), (anna, "anna")):
        assert browser.post("/me/hand-over", data=member(served, name) | SURE).status_code == 403
    form = member(served, "bob") | SURE
    for page in ("/me/remove", "/me/hand-over"):
        assert anna.post(page, data=form, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
        assert anna.get(page).status_code == 404
        assert served.token("anna").post(page, data=form).status_code == 403
    assert owners(served) == ({"anna", "carl", "eve"}, {"anna", "bob", "carl", "eve", "olga"})
    assert team(carl) == "Team 7"


def test_a_member_leaves_and_somebody_owns_the_team_still(served, geval):
    anna, bob = a_team(served)
    served.signed_in("rita", role="reader", team="Team 7")  # who owns nothing
    form = member(served, "anna")
    assert anna.post("/me/remove", data=form).status_code == 422
    assert anna.post("/me/remove", data=form | SURE).headers["location"] == "/me"
    assert anna.get("/me").headers["location"] == "/sign-in"
    assert bob.post("/me/invitations", data={"name": "cid"}).status_code == 200
    assert geval("board", "close", served.board.folder, "rita", "cid (Team 7)")[0] == 0
    assert bob.post("/me/remove", data=member(served, "bob") | SURE).status_code == 303
    assert owners(served) == (set(), set())
    with pytest.raises(people.RefusedError, match="open it again with geval board open"):
        served.invite("anna", team="Team 7")
    assert geval("board", "open", served.board.folder, "anna (Team 7)")[0] == 0
    assert team(opened(served, served.invite("anna", team="Team 7"))) == "Team 7"
    assert owners(served) == ({"anna"}, {"anna"})


def test_a_team_is_handed_over(served):
    anna, bob = a_team(served)
    form = member(served, "bob")
    assert anna.post("/me/hand-over", data=form).status_code == 422
    anna.post("/me/hand-over", data=form | SURE)
    assert owners(served) == ({"bob"}, {"anna", "bob"})
    refused = anna.post("/me/invitations", data={"name": "carl"})
    assert (refused.status_code, "only the owner of a team can invite people into it" in refused.text) == (403, True)
    assert bob.post("/me/invitations", data={"name": "carl"}).status_code == 200
    assert ("anna (Team 7)", "hand-over", "bob (Team 7)", "Team 7") in served.log()


@ON_BOTH
def test_two_owners_at_the_same_time_leave_no_contradiction(served):
    anna, _ = a_team(served)
    carl, form = served.signed_in("carl", team="Team 7"), member(served, "bob") | SURE
    for _ in range(3):
        changes = (anna, "hand-over"), (carl, "remove")
        with ThreadPoolExecutor(2) as threads:
            tasks = [threads.submit(browser.post, f"/me/{name}", data=form) for browser, name in changes]
        assert sorted(task.result().status_code for task in tasks) == [303, 403]
        own, members = owners(served)
        assert ("bob" in own) == ("bob" in members)
        assert own
        with served.people() as here:  # as before
            if "bob" not in members:
                people.reopen(here, people.account_named(here, "bob (Team 7)", closed=True), served.clock())
            here.execute(update(accounts).values(owner=accounts.c.name != "bob"))


@pytest.mark.slow
def test_a_renamed_team_keeps_all_it_has(served, change):
    program = served.token("anna")
    served.send("anna", GOOD)
    served.signed_in("eve", team="Team 8")
    with served.board.writing() as connection:
        submitter_id(connection, "Tearn 9")  # as from a scan
    assert change("anna", "--rename", "The Annas") == (0, "anna is now The Annas\n", "")
    assert program.get("/api/me").json()["team"] == "The Annas"
    assert places(served) == [(1, "The Annas")]
    assert change("The Annas", "--rename", "THE ANNAS") == (0, "The Annas is now THE ANNAS\n", "")
    assert served.log()[-1] == ("organiser", "renamed", "The Annas", "THE ANNAS")
    for name, reason in (
        *((name, "there is a team `Team 8` already; choose another name") for name in ("team 8", "Tearn 8")),
        ("Team 9", "there is a team `Tearn 9` already; choose another name"),
        ("\N{CYRILLIC SMALL LETTER ES} \u202e", "RIGHT-TO-LEFT OVERRIDE, which no name may have"),
        (" ", "has no visible letter"),
    ):
        status, out, err = change("the annas", "--rename", name)
        assert (status, out, reason in err) == (1, "", True)
    assert change("Team 9", "--rename", "Team 10")[2] == "geval: there is no team `Team 9`\n"
    assert change("Team 9")[0] == 2
    assert owners(served)[0] == {"anna", "eve"}


@pytest.mark.parametrize("step", ["accounts.rename_team", "teams.changing"])
def test_a_renaming_that_is_killed_is_finished_by_repeating_it(served, change, monkeypatch, step):
    """Each store is changed in a transaction of its own, the accounts first."""
    program, number = served.token("anna"), served.send("anna", GOOD)["number"]

    def killed(*_, **__):
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(f"geval_py.board.people.{step}", killed)
        with pytest.raises(RuntimeError):
            change("anna", "--rename", "The Annas")
    assert change("anna", "--rename", "The Annas") == (0, "anna is now The Annas\n", "")
    assert change("anna", "--rename", "The Annas")[2] == "geval: there is no team `anna`\n"
    assert program.get("/api/me").json()["team"] == "The Annas"
    assert places(served) == [(1, "The Annas")]
    assert program.get(f"/api/uploads/{number}").json()["state"] == "scored"


def test_a_team_of_which_a_worker_has_an_upload_is_not_renamed(served, change):
    served.token("anna").put(OUT, GOOD)
    with served.board.writing() as connection:
        connection.execute(update(submissions).values(leased_until=served.clock()))
    reason = "an upload of the team is being checked; try again in a minute"
    assert change("anna", "--rename", "The Annas") == (1, "", f"geval: {reason}\n")
    assert owners(served) == ({"anna"}, {"anna"})


def test_a_person_is_moved_with_their_tokens_and_without_the_submissions(served, change):
    anna, bob = a_team(served)
    program = program_of(served, bob)
    upload = program.put(OUT, GOOD).json()["number"]
    served.work()
    assert change("Team 8", "--add", "bob (Team 7)") == (0, "bob (Team 7) is now in Team 8\n", "")
    assert program.get("/api/me").json()["team"] == "Team 8"
    assert [one.get(f"/api/uploads/{upload}").status_code for one in (program, anna)] == [404, 200]
    assert owners(served)[0] == {"anna", "bob"}
    assert places(served) == [(1, "Team 7")]
    assert [line[1:] for line in served.log() if line[1] == "moved"] == [("moved", "bob (Team 7)", "Team 8")]


def test_the_organiser_moves_people_and_renames_teams_on_the_page(served):
    anna, bob = a_team(served)
    served.signed_in("eve", team="Team 8")
    olga = served.signed_in("olga", role="organiser")
    page = olga.get("/organiser/people").text
    assert ('aria-label="Move bob (Team 7) to another team"' in page, "Rename a team" in page) == (True, True)
    form = {"name": "bob (Team 7)", "team": "Team 8"}
    assert olga.post("/organiser/move", data=form).status_code == 422
    assert anna.post("/organiser/move", data=form | SURE).status_code == 404
    olga.post("/organiser/move", data=form | SURE)
    assert olga.post("/organiser/rename", data={"team": "Team 7", "into": "team 8"}).status_code == 403
    olga.post("/organiser/rename", data={"team": "Team 7", "into": "Seven"})
    assert [team(one) for one in (anna, bob)] == ["Seven", "Team 8"]
    told = [line[1:] for line in served.log() if line[0] == "olga"][1:]
    assert told == [("move", "bob (Team 7)", "Team 8"), ("renamed", "Team 7", "Seven")]


def test_a_team_is_renamed_on_one_board_alone(several, geval):
    anna = several.signed_in("anna", team="Team 7")
    words = f"{several.folder}/gap", "Team 7", "--rename", "Seven"
    assert geval("board", "team", *words) == (0, "Team 7 is now Seven\n", "")
    assert [anna.get(f"/course/{board}/api/me").json()["team"] for board in ("gap", "bible")] == ["Seven", "Team 7"]


def test_no_transaction_holds_the_locks_of_two_stores_while_it_waits(served):
    """A page that changes an account needs no lock of the board, and a page that changes the board none of accounts."""
    anna = served.signed_in("anna", team="Team 7")
    served.send("anna", GOOD)
    for store, page in ((served.board, "mail"), (served.server.accounts.database, "final")):
        with store.writing():
            assert anna.post(f"/me/{page}", data={"on": "yes", "code": "0"}).status_code in (303, 422)
