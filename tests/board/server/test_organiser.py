"""The organiser's pages by HTTP; and what a team may do with its own submissions."""

import re
from pathlib import Path

import pytest
from samples import GOOD, NOW, ON_BOTH, output
from serving import ADDRESS, set_keys
from sqlalchemy import select
from test_links import SURE

from geval_py.board.database.schema import rescorings, submissions
from geval_py.board.operations import audit
from geval_py.board.people import accounts, sign_in
from geval_py.board.server import queue
from geval_py.board.server.organiser import HOME

OTHER = output("test-A", 0.6)
CHANGES = (
    "announce", "take-back", "withdraw", "restore", "note", "close", "open", "extend", "invite", "invite-again",
    "links.csv", "move", "rename", "rescore", "try-again",
)  # fmt: skip
PAGES = ("", "/submissions", "/people", "/settings", "/log", "/log.csv", "/grades.csv", "/alike")


@pytest.fixture
def organiser(served):
    return served.signed_in("olga", role="organiser")


@pytest.fixture(scope="module")
def anyone(shared):
    """The browsers of an organiser, a submitter, a reader and a stranger, on a board that no test changes."""
    roles = {"olga": "organiser", "anna": "submitter", "ruth": "reader"}
    return {name: shared.signed_in(name, role=role) for name, role in roles.items()} | {"": shared.browser()}


def log(served):
    return [line[:3] for line in served.log()]


def withdrawal(served, code):
    return served.rows(select(submissions.c.withdrawal).where(submissions.c.code == code))[0]


@pytest.mark.slow
def test_an_organiser_announces_withdraws_and_remarks(served, organiser):
    code = served.send("anna", GOOD)["code"]

    def change(name, page="", **form):
        answer = organiser.post(f"{HOME}/{name}", data=form)
        assert (answer.status_code, answer.headers["location"]) == (303, HOME + page)
        return served.browser().get("/").text

    change("announce", text="**Soon**: test-B <b>opens</b>")
    front = change("note", "/submissions", code=code, remark="a bigram", **SURE)
    assert "<strong>Soon</strong>: test-B &lt;b&gt;opens&lt;/b&gt;" in front
    assert "a bigram" in front
    assert "<title>**Soon**: test-B &lt;b&gt;opens&lt;/b&gt;</title>" in served.browser().get("/feed.xml").text
    assert organiser.post(f"{HOME}/withdraw", data={"code": code}).status_code == 422
    assert withdrawal(served, code) == ""
    assert f"submissions/{code}.html" not in change("withdraw", "/submissions", code=code, reason="a copy", **SURE)
    assert withdrawal(served, code) == "a copy"
    assert "Soon" not in change("take-back", number="1")
    assert "a copy" in organiser.get(f"{HOME}/submissions").text
    assert "queue: 0 waiting, 0 running" in organiser.get(HOME).text
    assert f"submissions/{code}.html" in change("restore", "/submissions", code=code)
    done = [("note", code), ("withdraw", code), ("take-back", "1"), ("restore", code)]
    announced = ("announce", "**Soon**: test-B <b>opens</b>")
    assert log(served)[:5] == [("olga", *one) for one in (announced, *done)]
    page = organiser.get(f"{HOME}/log").text
    assert page.index("restore") < page.index("take-back") < page.index("withdraw")


@pytest.mark.slow
@ON_BOTH
def test_what_cannot_be_logged_is_not_done(served, organiser, monkeypatch):
    """A server that is killed between a change and its line in the audit log has done neither."""
    code = served.send("anna", GOOD)["code"]

    def killed(*_, **__):
        raise OSError("killed")

    monkeypatch.setattr(audit, "log", killed)
    for name, form in (("withdraw", {"code": code, "reason": "a copy"} | SURE), ("announce", {"text": "Soon"})):
        assert organiser.post(f"{HOME}/{name}", data=form).status_code == 503
    assert withdrawal(served, code) in ("", None)
    assert "Soon" not in organiser.get(HOME).text


def test_an_organiser_invites_and_closes(served, organiser):
    form = {"name": "Bob", "team": "Team 7", "email": "bob@example.org", "role": "submitter"}

    def link(**more):
        page = organiser.post(f"{HOME}/invite", data=form | more).text
        return re.search(rf"<code>{ADDRESS}(/invitation/.*?)</code>", page)[1]

    bob = served.browser()
    assert bob.post(link()).status_code == 303
    assert "team Team 7" in bob.get("/me").text
    assert "bob@example.org" in organiser.get(f"{HOME}/people").text
    told = "made by an organiser on 2027-01-10; its sessions and earlier links have ended"
    assert told in organiser.post(f"{HOME}/invite", data=form).text
    refused = organiser.post(f"{HOME}/invite", data=form | {"team": "Team 8"})
    assert (refused.status_code, "it differs from what you give" in refused.text) == (403, True)
    organiser.post(f"{HOME}/close", data={"name": "bob@example.org"} | SURE)
    assert organiser.post(f"{HOME}/invite", data=form).status_code == 403
    organiser.post(f"{HOME}/open", data={"name": "Bob (Team 7)", "email": "b@example.org"})
    assert bob.post(link(email="b@example.org")).status_code == 303
    assert organiser.post(f"{HOME}/close", data={"name": "bob"}).status_code == 422
    assert bob.get("/me").status_code == 200
    assert organiser.post(f"{HOME}/close", data={"name": "Bob (Team 7)"} | SURE).status_code == 303
    assert bob.get("/me").status_code == 303
    assert "Open the account Bob (Team 7)" in organiser.get(f"{HOME}/people?q=closed").text
    assert organiser.post(f"{HOME}/open", data={"name": "Bob (Team 7)"}).status_code == 303
    assert "Open the account Bob (Team 7)" not in organiser.get(f"{HOME}/people").text
    assert log(served)[-2:] == [("olga", "close", "Bob (Team 7)"), ("olga", "open", "Bob (Team 7)")]


def test_without_mail_pending_invitations_are_a_file_of_new_links(served, organiser):
    old = served.invite("Bob Smith", email="bob@example.org", team="Team 7")
    answer = organiser.post(f"{HOME}/links.csv")
    assert answer.headers["content-disposition"] == 'attachment; filename="links.csv"'
    head, row = answer.text.splitlines()
    assert head == "\ufeffname,email,team,role,student_id,link"
    assert row.split(",")[:4] == ["Bob Smith", "bob@example.org", "Team 7", "submitter"]
    assert served.browser().post(old).status_code == 403
    assert served.browser().post(row.split(",")[5].removeprefix(ADDRESS)).status_code == 303
    assert f"{ADDRESS}/invitation/" in organiser.post(f"{HOME}/invite", data={"again": "Bob Smith"}).text
    assert log(served)[-1] == ("olga", "invited", "Bob Smith (Team 7)")


@pytest.mark.parametrize(("change", "form", "status", "says"), [
    *(("announce", {"text": text}, 422, "an announcement must have 1 to 2,000 characters")
      for text in ("  ", "x" * 2001)),
    ("take-back", {"number": "7"}, 422, "there is no announcement 7"),
    ("withdraw", {"code": "0" * 12, "reason": "x"} | SURE, 422, "No submission has the code"),
    ("restore", {"code": "0" * 12}, 422, "No submission has the code"),
    ("extend", {"team": "eve", "more": "1", "reason": "x"}, 422, "there is no team `eve`"),
    ("close", {"name": "nobody"} | SURE, 403, "there is no account `nobody`"),
    ("invite", {"name": "eve", "role": "king"}, 422, "there is no role `king`"), ("invite", {"name": ""}, 422, ""),
])  # fmt: skip
def test_what_an_organiser_gets_wrong_changes_nothing(shared, anyone, change, form, status, says):
    before, answer = log(shared), anyone["olga"].post(f"{HOME}/{change}", data=form)
    assert (answer.status_code, says in answer.text) == (status, True)
    assert log(shared) == before


def rows_of(page):
    return [re.sub("<.*?>", "", one) for one in re.findall("<th scope=.row..*?>(.*?)</th>", page.text)]


@pytest.mark.slow
def test_lists_are_searched_and_paged_people_in_natural_order(served, organiser):
    names = [f"team {number}" for number in range(1, 61)]
    with served.people() as people:
        for name in names:
            sign_in.accept(people, accounts.invite(people, name, now=NOW).secret, NOW)
            accounts.log(people, name, "did", f"=thing {name}", now=NOW)
    everybody = ["olga", *names]
    assert rows_of(organiser.get(f"{HOME}/people")) == everybody[:50]
    assert rows_of(organiser.get(f"{HOME}/people?page=2")) == everybody[50:]
    assert rows_of(organiser.get(f"{HOME}/people?page=99")) == everybody[50:]
    assert rows_of(organiser.get(f"{HOME}/people?q=TEAM+5")) == ["team 5", *names[49:59]]
    page = organiser.get(f"{HOME}/log?q=team+5")
    assert re.findall("=thing (team [0-9]+)", page.text) == [*names[49:59][::-1], "team 5"]
    assert "11 lines" in page.text
    answer = organiser.get(f"{HOME}/log.csv")
    assert answer.headers["content-disposition"] == 'attachment; filename="log.csv"'
    head, first, *others = answer.text.splitlines()
    assert (head, len(others)) == ("\ufeffmoment,who,action,subject,detail", 60)
    assert first == "2027-01-10T12:00:00Z,team 60,did,'=thing team 60,"


@pytest.mark.slow
def test_an_organiser_downloads_grades_and_extends_a_deadline(served, organiser, geval):
    set_keys(served.board, phases="[{name: main, until: 2027-01-10T13:00:00Z}]")
    served.send("anna", GOOD)
    served.clock.wait(hours=2)
    served.send("bob", OTHER)

    def grades():
        answer = organiser.get(f"{HOME}/grades.csv")
        assert answer.headers["content-type"] == "text/csv; charset=utf-8"
        shown = geval("board", "show", served.board.folder, "--by", "person", "--format", "csv")
        assert (0, answer.text.removeprefix("\ufeff"), "") == shown
        return sorted(line.split(",")[6::2] for line in answer.text.splitlines()[1:])

    assert grades() == [["", "late"], ["1", ""]]
    form = {"team": "bob", "phase": "main", "until": "2027-01-11T13:00:00Z", "more": "", "reason": "ill"}
    assert organiser.post(f"{HOME}/extend", data=form).headers["location"] == f"{HOME}/settings"
    assert "bob in main: until 2027-01-11T13:00:00Z (ill)" in organiser.get(f"{HOME}/settings").text
    assert grades() == [["1", "extended"], ["2", ""]]
    assert ", place 1 (extended)" in organiser.get(f"{HOME}/submissions?q=bob").text
    assert ("olga", "extend", "bob") in log(served)
    organiser.post(f"{HOME}/extend", data={"team": "bob", "phase": "main", "reason": "ended"})
    assert grades() == [["", "late"], ["1", ""]]


@pytest.mark.parametrize("page", PAGES)
def test_to_others_the_pages_do_not_exist(anyone, page):
    answers = [anyone[name].get(HOME + page) for name in ("olga", "anna", "ruth", "")]
    assert [answer.status_code for answer in answers] == [200, 404, 404, 303]
    assert answers[-1].headers["location"] == "/sign-in"


@pytest.mark.parametrize("change", CHANGES)
def test_others_change_nothing(shared, anyone, change):
    form = {"text": "x", "number": "1", "code": "0" * 12, "reason": "x", "name": "anna", "remark": "x"} | SURE
    assert anyone["anna"].post(f"{HOME}/{change}", data=form).status_code == 404
    assert anyone[""].post(f"{HOME}/{change}", data=form).headers["location"] == "/sign-in"
    assert anyone["olga"].get(f"{HOME}/{change}").status_code == 404
    assert {action for _, action, _ in log(shared)} == {"signed in"}


def test_no_token_opens_the_organisers_page(shared, anyone):
    with shared.people() as people:
        secret = sign_in.make_token(people, accounts.account_named(people, "olga"), now=NOW)
    token = {"Authorization": f"Bearer {secret}"}
    assert anyone["olga"].get(HOME, headers=token).status_code == 403
    assert anyone["olga"].post(f"{HOME}/announce", data={"text": "x"}, headers=token).status_code == 403


@pytest.mark.slow
def test_an_organiser_rescores(served, organiser, geval):
    served.send("anna", GOOD)
    served.move_answers()

    def rescored(**form):
        assert organiser.post(f"{HOME}/rescore", data=form).status_code == 303
        again = organiser.post(f"{HOME}/rescore", data=form)
        assert (again.status_code, "a rescoring is waiting or running already" in again.text) == (422, True)
        assert served.work() == 1
        return served.rows(select(*rescorings.c["dry", "state", "reason"]).order_by(rescorings.c.id.desc()))[0]

    changed = "again: 2, because the challenge, its answers or the seed changed\n1 score"
    told = f"to be scored {changed} would change, the most from 2.038 to Infinity\nno place would change\n"
    assert rescored(dry="yes") == (True, "done", told)
    told = f"scored {changed} changed, the most from 2.038 to Infinity\nno place changed\n"
    assert rescored() == (False, "done", told)
    assert rescored() == (False, "done", "nothing is out of date\n")
    assert "nothing is out of date" in organiser.get(HOME).text
    assert geval("board", "rescore", served.board.folder, "--dry-run") == (0, "nothing is out of date\n", "")
    assert "<strong>Dry run</strong> asked for by organiser" in organiser.get(HOME).text
    assert ("organiser", "rescored", "dry run") in log(served)
    assert geval("board", "announce", served.board.folder, "Soon") == (0, "1\n", "")
    assert ("organiser", "announced", "Soon") in log(served)


def test_a_rescoring_that_cannot_be_done_fails_with_its_reason(served, organiser):
    served.send("anna", GOOD)
    Path(served.board.settings.answers, "test-A", "expected.tsv").unlink()
    organiser.post(f"{HOME}/rescore")
    for _ in range(queue.MAX_TRIES):
        served.work()
        served.clock.wait(minutes=10)
    home = organiser.get(HOME).text
    assert '<span class="state failed">failed</span>' in home
    assert "expected.tsv" in home


def test_a_team_withdraws_its_own_submission_alone(served):
    code, anna = served.send("anna", GOOD)["code"], served.signed_in("anna")
    other = served.send("bob", OTHER)["code"]
    answer = anna.post("/me/withdraw", data={"code": other})
    assert (answer.status_code, withdrawal(served, other)) == (403, "")
    assert anna.post("/me/withdraw", data={"code": code}).headers["location"] == "/me"
    assert withdrawal(served, code) == "by its team"
    assert ("anna", "withdraw", code) in log(served)
    assert "anna" not in served.browser().get("/").text


@pytest.mark.parametrize(("keys", "reason"), [
    ({"tests": "{test-A: {disclosed: 4, ladder: true}}"}, "it may be a step of the ladder of test-A"),
    ({"phases": "[{name: main, until: 2027-01-10T13:00:00Z}]"}, "the deadline of main has passed"),
])  # fmt: skip
def test_a_team_withdraws_nothing_that_shows_or_decides_more(served, keys, reason):
    set_keys(served.board, **keys)
    code, anna = served.send("anna", GOOD)["code"], served.signed_in("anna")
    served.clock.wait(hours=2)
    answer = anna.post("/me/withdraw", data={"code": code})
    assert (answer.status_code, withdrawal(served, code)) == (422, "")
    assert f"{reason}; ask the organiser to withdraw {code}" in answer.text


def test_what_was_written_is_shown_again_after_an_error(served, organiser):
    answer = organiser.post(f"{HOME}/extend", data={"team": "<b>Team", "reason": "ill & away", "sure": "yes"})
    assert (answer.status_code, "there is no team" in answer.text) == (422, True)
    areas = re.findall(r'<label for="(\w+)">\1</label><br><textarea id="\1" [^>]*readonly>([^<]*)<', answer.text)
    assert areas == [("team", "&lt;b&gt;Team"), ("reason", "ill &amp; away")]
    assert answer.text.count("<textarea") == 2


def test_announcements_on_the_command_line(served, geval):
    folder = served.board.folder
    assert geval("board", "announce", folder, "test-B opens on Monday") == (0, "1\n", "")
    assert geval("board", "announce", folder, "See [the rules](https://example.org/rules).") == (0, "2\n", "")
    assert geval("board", "announce", folder, "--remove", "1") == (0, "", "")
    assert geval("board", "announce", folder, "--remove", "1") == (2, "", "geval: there is no announcement 1\n")
    neither = "geval: one of the arguments TEXT --remove is required\n"
    assert geval("board", "announce", folder) == (
        2,
        "",
        f"{neither}  geval board announce --help shows the options\n",
    )
    link = '<a href="https://example.org/rules" rel="nofollow noopener">the rules</a>'
    assert link in served.browser().get("/").text
