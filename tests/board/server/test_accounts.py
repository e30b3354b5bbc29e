"""Attacks on accounts: names that are taken before their owners come, namesakes, bans, and too many invitations."""

import re

import pytest
from samples import GOOD, ON_BOTH, OUT
from serving import ADDRESS
from sqlalchemy import select

from geval_py.board.people.schema import account_log as audit
from geval_py.board.people.schema import accounts

DIFFERS = (
    "it differs from what you give: give another person another name; to move this one, use geval board team --add; "
    "to change the rest, geval board close and open"
)


@pytest.fixture
def command(served, geval):
    return lambda name, *words: geval("board", name, served.board.folder, *words)


@pytest.fixture
def invite(command):
    return lambda *words: command("invite", *words, "--url", ADDRESS)


def invited(owner, name):
    """Invite somebody on one's own page; gives the path of the link."""
    page = owner.post("/me/invitations", data={"name": name})
    assert page.status_code == 200, page.text
    return re.search(rf"<code>{ADDRESS}(/invitation/[\w-]+)</code>", page.text)[1]


def opened(served, link):
    browser = served.browser()
    assert browser.post(link.strip().removeprefix(ADDRESS)).headers.get("location") == "/me"
    return browser


def team(browser):
    """The team of who is signed in, "" if nobody is."""
    return browser.get("/api/me").json().get("team", "")


def test_a_name_that_a_team_took_first_is_free_for_the_organiser(served, command, invite):
    """The owner of a team opens an invitation in the name of a classmate, whom the organiser invites later."""
    mallory = served.signed_in("mallory", team="Team M")
    hijacked = opened(served, invited(mallory, "That Name"))
    status, link, told = invite("That Name", "--team", "Team 7", "--email", "that@uni.example")
    assert (status, told) == (0, "")
    real = opened(served, link)
    number = real.put(OUT, GOOD).json()["number"]
    assert [one.get(f"/api/uploads/{number}").status_code for one in (real, hijacked)] == [200, 404]
    names = served.rows(select(audit.c.who).where(audit.c.action == "signed in"))
    assert names == ["mallory (Team M)", "That Name (Team M)", "That Name (Team 7)"]
    assert command("close", "That Name (Team M)")[0] == 0
    assert [team(one) for one in (real, hijacked)] == ["Team 7", ""]
    invited(mallory, "nobody")
    assert command("token", "nobody") == (1, "", "geval: there is no account `nobody`, but `nobody (Team M)`\n")


def test_an_owner_learns_no_names_and_makes_no_link_for_others(served):
    """Names that exist and names that do not have the same answer, except in the own team."""
    served.signed_in("anna")
    mallory = served.signed_in("mallory", team="Team M")
    assert {mallory.post("/me/invitations", data={"name": name}).status_code for name in ("anna", "nobody")} == {200}
    served.invite("Bob", team="Team M")  # whom the organiser has invited into the team, and who has not come yet
    for name in ("bob", "mallory"):
        answer = mallory.post("/me/invitations", data={"name": name})
        reason = f"your team has a member `{name}` already; ask the organiser"
        assert (answer.status_code, reason in answer.text) == (403, True)
    older, link = invited(mallory, "cid"), invited(mallory, "cid")
    assert served.browser().post(older).status_code == 403
    assert "the team <strong>Team M</strong>" in served.browser().get(link).text
    assert team(opened(served, link)) == "Team M"


def test_the_organiser_is_told_of_an_account_and_changes_it_only_after_closing_it(served, invite, command):
    anna, thief = served.signed_in("anna"), served.browser()
    thief.cookies.update(anna.cookies)
    older = served.invite("anna")
    account = "`anna` has an account: submitter, team `anna`, made by an organiser on 2027-01-10"
    differing = ["--team", "Team 7", "--email", "anna@uni.example", "--role", "reader"]
    assert invite("Anna", *differing) == (1, "", f"geval: {account}\n  {DIFFERS}\n")
    assert served.browser().get(older).status_code == 200
    status, link, told = invite("anna")
    assert (status, told) == (0, f"geval: note: {account}\n  its sessions and earlier links have ended\n")
    assert served.browser().post(older).status_code == 403
    assert [team(one) for one in (anna, thief, opened(served, link))] == ["", "", "anna"]
    assert command("open", "anna") == (1, "", f"geval: {account}\n  to change it, close it first\n")
    assert command("close", "anna") == (0, "anna is closed\n", "")
    closed = f"geval: {account}, closed on 2027-01-10\n  open it again with geval board open\n"
    assert [invite("anna"), invite("anna", *differing)] == [(1, "", closed)] * 2
    changes = ["--email", "anna@uni.example", "--role", "reader", "--rename", "Anna Nowak"]
    changed = "`Anna Nowak` has an account: reader, team `anna`, anna@uni.example, made by an organiser on 2027-01-10"
    assert command("open", "anna", *changes)[:2] == (0, f"{changed}\n")
    assert invite("anna", "--email", "ANNA@uni.example")[2] == f"geval: {changed}\n  {DIFFERS}\n"
    status, link, told = invite("Anna Nowak", "--email", "ANNA@uni.example")
    assert (status, told) == (0, f"geval: note: {changed}\n  its sessions and earlier links have ended\n")
    assert opened(served, link).get("/api/me").json() == {"name": "Anna Nowak", "team": "anna", "role": "reader"}
    assert served.rows(select(accounts.c.name)) == ["Anna Nowak"]


@pytest.mark.parametrize(("changes", "reason"), [
    (["--email", "BOB@uni.example"], "BOB@uni.example is the address of `bob`"),
    (["--rename", "b\u043eb"], "the name `b\u043eb` mixes Cyrillic and Latin letters in one word"),
    (["--rename", "organiser"], "an account cannot have the name `organiser`: the audit log uses it"),
    (["--rename", "0rganiser"], "an account cannot have the name `0rganiser`: the audit log uses it"),
    (["--email", "eve@evil.example@uni.example"], "`eve@evil.example@uni.example` is not an e-mail address"),
    (["--email", "bob"], "`bob` is not an e-mail address"),
])  # fmt: skip
def test_an_account_that_is_opened_takes_nothing_of_others(served, command, changes, reason):
    served.invite("bob", email="bob@uni.example")
    served.invite("anna")
    assert command("close", "anna")[0] == 0
    assert command("open", "anna", *changes) == (2 if "e-mail" in reason else 1, "", f"geval: {reason}\n")


def test_who_has_the_account_of_another_address_keeps_nothing_of_it(served, invite, command):
    program = served.token("anna")
    assert command("close", "anna")[0] == 0
    assert command("open", "anna", "--email", "anna@uni.example")[0] == 0
    assert invite("anna", "--email", "anna@uni.example")[0] == 0
    assert program.get("/api/me").status_code == 401


@pytest.mark.parametrize(("words", "reason"), [
    (["Night owls"], "there is a team `Night owls` already; choose another name"),
    (["bob", "--team", "Tearn 7"], "there is a team `Team 7` already; choose another name"),
    (["That Narne", "--team", "Team 7"],
     "`That Narne (Team 7)` is or looks like the account `That Name (Team 7)`; give a name that differs more"),
    (["Organiser "], "an account cannot have the name `Organiser `: the audit log uses it"),
])  # fmt: skip
def test_nobody_joins_a_team_or_is_taken_for_another_by_the_name_alone(served, invite, words, reason):
    """Else whoever has taken the name of a team sees the uploads of the person with this name."""
    served.signed_in("mallory", team="Night owls")
    served.invite("That Name", team="Team 7")
    assert invite(*words) == (1, "", f"geval: {reason}\n")


def test_no_member_of_a_team_is_shown_by_the_name_of_somebody_else(served, command, invite):
    """Of `Jan (2)`, the second Jan, and `Jan` of the team `2`, none could be closed, and the log would mix them up."""
    jan = opened(served, invite("Jan (2)")[1])
    mallory = served.signed_in("mallory", team="2")
    answer = mallory.post("/me/invitations", data={"name": "Jan"})
    reason = "`Jan (2)` is or looks like the account `Jan (2)`; give a name that differs more"
    assert (answer.status_code, reason in answer.text) == (403, True)
    assert command("close", "Jan (2)") == (0, "Jan (2) is closed\n", "")
    assert team(jan) == ""
    invited(mallory, "Ola")
    status, _, told = invite("Ola (2)")
    assert (status, "`Ola` has an account: submitter, team `2`, made by a participant" in told) == (1, True)


@pytest.mark.parametrize("days", [-5, 0, 3651, 99999999])
def test_a_token_is_valid_for_some_days(served, command, days):
    served.signed_in("anna")
    told = f"geval: a token is valid for 1 to 3650 days, not {days}\n"
    assert command("token", "anna", "--days", str(days)) == (2, "", told)
    assert command("token", "anna", "--days", "3650")[0] == 0


@pytest.mark.parametrize(("header", "reason"), [
    ("name,Full name,email", "`name`: name, Full name"), ("Name,Mail,e-mail,team", "`email`: Mail, e-mail"),
    ("First name,Vorname,Last name", "`first`: First name, Vorname"),
])  # fmt: skip
def test_a_list_with_two_columns_for_one_value_is_refused(served, invite, tmp_path, header, reason):
    path = tmp_path / "class.csv"
    path.write_text(f"{header}\n{'x,' * header.count(',')}y\n")
    message = f"Cannot read `{path}`: it has several columns for {reason}"
    assert invite("--list", str(path)) == (1, "", f"geval: {message}\n")
    assert served.rows(select(accounts)) == []


PEOPLE = """\
name,email,team
Jan Kowalski,jan@uni.example,
Tom,tom@uni.example,
Ewa,ewa@uni.example,Team m
Jan Kowalski,jan.k@uni.example,
Torn,torn@uni.example,
Ola,EWA@uni.example,
Iza,iza@uni.example,Team rn
anna,anna@uni.example,
Max,,Team m
Max,,Team m
"""
MADE = f"made by an organiser on 2027-01-10, never used; {DIFFERS}"
CORRECTED = {
    "jan.k@uni.example,": "jan.k@uni.example,Jan K.", "Torn": "Torn B", "EWA": "ola", "rn\n": "m\n",
    "Max,,Team m\nMax,,Team m\n": "Max,,Team m\n", "anna,anna@uni.example": "anna,",
}  # fmt: skip


@ON_BOTH
def test_a_list_with_namesakes_changes_nothing_until_it_is_corrected(served, invite, tmp_path):
    served.signed_in("anna")
    path = tmp_path / "people.csv"
    path.write_text(PEOPLE)
    message = f"""\
geval: nobody in `{path}` was invited
  line 5: there is a team `Jan Kowalski` already; choose another name
  line 6: there is a team `Tom` already; choose another name
  line 7: `Ewa` has an account: submitter, team `Team m`, ewa@uni.example, {MADE}
  line 8: there is a team `Team m` already; choose another name
  line 9: `anna` has an account: submitter, team `anna`, {MADE.replace(", never used", "")}
  line 11: `Max (Team m)` is in an earlier line, too
"""
    before = served.rows(select(accounts))
    assert invite("--list", str(path)) == (1, "", message)
    assert served.rows(select(accounts)) == before
    text = PEOPLE
    for wrong, right in CORRECTED.items():
        text = text.replace(wrong, right)
    path.write_text(text)
    status, out, told = invite("--list", str(path))
    note = "geval: note: 1 person of the list had an account before, and got no new link\n"
    assert (status, len(out.splitlines()), told) == (0, 9, note)
    assert served.rows(select(accounts).where(accounts.c.name == "anna")) == before
    jan, other = (opened(served, line.rpartition(",")[2]) for line in out.splitlines() if line.startswith("Jan"))
    assert [team(one) for one in (jan, other)] == ["Jan Kowalski", "Jan K."]


@pytest.mark.slow
@pytest.mark.parametrize("what", ["invitations", "tokens"])
def test_an_account_makes_few_invitations_and_tokens_an_hour(served, what):
    anna = served.signed_in("anna")
    answers = [anna.post(f"/me/{what}", data={"name": f"friend {number}"}).status_code for number in range(22)]
    assert answers == [200] * 20 + [429] * 2
    served.clock.wait(hours=1)
    assert anna.post(f"/me/{what}", data={"name": "one more"}).status_code == 200


def test_a_ban_holds_and_is_undone(served, command, invite):
    mallory = served.signed_in("mallory", team="Team M")
    puppet, link = opened(served, invited(mallory, "puppet")), invited(mallory, "later")
    note = "geval: note: still open, but invited by them: `later (Team M)`, `puppet (Team M)`\n"
    assert command("close", "mallory") == (0, "mallory (Team M) is closed\n", note)
    assert served.browser().post(link).status_code == 403
    told = "later (Team M) is closed\npuppet (Team M) is closed\n"
    assert command("close", "later (team m)", "puppet (Team M)") == (0, told, "")
    assert [team(one) for one in (mallory, puppet)] == ["", ""]
    account = "`mallory` has an account: submitter, team `Team M`, made by an organiser on 2027-01-10"
    closed = f"geval: {account}, closed on 2027-01-10\n  open it again with geval board open\n"
    assert invite("mallory") == (1, "", closed)
    assert command("open", "mallory") == (0, f"{account}\n", "")
    again = opened(served, invite("mallory")[1])
    assert again.post("/me/invitations", data={"name": "later"}).status_code == 403
    assert team(opened(served, invited(again, "sooner"))) == "Team M"
    actions = served.rows(select(audit.c.action, audit.c.subject).where(audit.c.who == "organiser"))
    assert actions[:4] == [
        ("closed", "mallory (Team M)"), ("closed", "later (Team M)"), ("closed", "puppet (Team M)"),
        ("opened", "mallory (Team M)"),
    ]  # fmt: skip
