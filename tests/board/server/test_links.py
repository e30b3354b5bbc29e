"""Links and sign-in: what mail scanners do with links, when links end, and what a reader of a team may do."""

import re

import pytest
from samples import GOOD, ON_BOTH, OUT, files_in, write
from serving import ADDRESS, set_keys
from sqlalchemy import select
from test_accounts import invited, opened

from geval_py.board.operations.submissions import scan
from geval_py.board.people import accounts, secrets
from geval_py.board.people.schema import METADATA
from geval_py.board.people.schema import accounts as table
from geval_py.board.server.app import ROUTES

SURE = {"sure": "yes"}


def everything(served):
    return [served.rows(select(table)) for table in METADATA.tables.values()]


@pytest.mark.slow
@ON_BOTH
def test_head_changes_nothing_anywhere(served):
    """Mail scanners send HEAD to links, which used up a class's invitations."""
    link, anna = served.invite("bob"), served.signed_in("anna")
    served.clock.wait(days=1)
    before = everything(served)
    assert served.browser().request("HEAD", link).status_code == 404
    for route in ROUTES:
        path = re.sub(r"\{[^}]*\}", "1", route.path)
        assert anna.request("HEAD", path).status_code in (200, 404, 405), path
    assert everything(served) == before
    assert served.browser().post(link).headers["location"] == "/me"


@pytest.mark.parametrize("how", ["leave", "hand-over", "close", "move"])
def test_links_end_with_the_role_of_who_made_them(served, geval, how):
    anna = served.signed_in("anna", team="Team 7")
    opened(served, invited(anna, "bob"))
    link, folder = invited(anna, "cid"), served.board.folder
    if how == "close":
        assert geval("board", "close", folder, "anna")[0] == 0
    elif how == "move":
        assert geval("board", "team", folder, "Team 8", "--add", "anna")[0] == 0
    else:
        form = r'action="/me/([a-z-]+)"><input[^>]*name="member" value="([0-9a-f]+)"'
        members = dict(re.findall(form, anna.get("/me").text))
        change = {"leave": "remove"}.get(how, how)  # the last form to remove somebody is one's own
        assert anna.post(f"/me/{change}", data=SURE | {"member": members[change]}).headers["location"] == "/me"
    assert served.browser().post(link).status_code == 403


def test_a_reader_with_a_team_changes_nothing_of_it(served):
    anna, code = served.signed_in("anna", team="Team 7"), served.send("anna", GOOD)["code"]
    rita = served.signed_in("rita", role="reader", team="Team 7")
    assert rita.get("/me").status_code == 200
    member = served.rows(select(table.c.id).where(table.c.name == "rita"))[0]
    form = SURE | {"code": code, "name": "mallory", "member": member}
    for change in ("withdraw", "final", "invitations", "remove"):
        assert rita.post(f"/me/{change}", data=form).status_code == 403, change
    assert rita.put(OUT, GOOD).json() == {"error": "this account may not submit; ask the organiser"}
    assert "<h2>Submit</h2>" not in rita.get("/me").text
    assert anna.post("/me/withdraw", data={"code": code}).status_code == 303


def test_ones_sessions_are_listed_and_ended(served):
    anna, other = served.signed_in("anna"), served.browser()
    with served.people() as people:
        account = accounts.account_named(people, "anna")
        other.cookies.set("geval", secrets.issue(people, secrets.SESSION, account.person, served.clock()))
    page = anna.get("/me").text
    assert (page.count("This session, begun"), page.count("A session, begun")) == (1, 1)
    number = re.search(r'action="/me/end"><input type="hidden" name="number" value="([0-9]+)"><p>A session', page)[1]
    assert anna.post("/me/end", data={"number": number}).headers["location"] == "/me"
    assert other.get("/me").headers["location"] == "/sign-in"
    assert anna.get("/me").status_code == 200


CLASS = "\ufeffsep=;\r\nVorname;Nachname;E-Mail-Adresse;Matrikelnummer;Gruppe;Seminar\r\nZoë;Nowak;zoe@uni.example;17;A;x\r\n"


@pytest.mark.parametrize(("text", "row"), [
    (CLASS, "Zoë Nowak,zoe@uni.example,A,submitter,17,LINK,x"),
    ("name,Email address,ID number\nBob,bob@uni.example,18\n", "Bob,bob@uni.example,Bob,submitter,18,LINK"),
    ("Full name\temail\trole\nRita\tr@uni.example\treader\n", "Rita,r@uni.example,,reader,,LINK"),
])  # fmt: skip
def test_a_class_list_is_read_as_it_is_exported(served, geval, tmp_path, text, row):
    (tmp_path / "class.csv").write_text(text, encoding="utf-8", newline="")
    words = "--list", str(tmp_path / "class.csv"), "--url", ADDRESS
    status, out, _ = geval("board", "invite", served.board.folder, *words)
    assert (status, re.sub(r"http[^,\n]*", "LINK", out.splitlines()[1])) == (0, row)
    grades = geval("board", "show", served.board.folder, "--by", "person", "--format", "csv")[1]
    assert ("reader" in text) or (",17," in grades or ",18," in grades)


@pytest.mark.parametrize(("text", "status", "told"), [
    ("E-Mail;Seminar\na@x.org;1\n", 1,
     "it needs the column `name`, or `First name` and `Last name`; its first line has E-Mail, Seminar\n"),
    ("Name,Mail,Squad,Seat\nBob,bob@uni.example,A,1\n", 0, "that are only copied: Squad, Seat\n"),
], ids=["no names", "copied columns"])  # fmt: skip
def test_a_class_list_is_told_what_its_columns_are(served, geval, tmp_path, text, status, told):
    path = tmp_path / "class.csv"
    path.write_text(text)
    found = geval("board", "invite", served.board.folder, "--list", str(path), "--url", ADDRESS)
    assert (found[0], told in found[2]) == (status, True)


def test_several_teams_are_extended_at_once_or_none(served, geval):
    for name in ("anna", "bob"):
        served.invite(name)
    folder, reason = served.board.folder, ("--more", "2", "--reason", "the server was down")
    assert geval("board", "extend", folder, "anna", "nobody", *reason)[0] == 2
    assert geval("board", "status", folder)[1].count("the server was down") == 0
    status, out, _ = geval("board", "extend", folder, "anna", "bob", *reason)
    assert (status, out.count("2 more submissions a day (the server was down)")) == (0, 2)


def test_pages_of_a_board_for_members_are_for_them_alone(served):
    served.send("anna", GOOD)
    set_keys(served.board, access="members")
    anna, stranger = served.signed_in("anna"), served.browser()
    for path in ("/", "/index.html", "/submissions.html", "/data/submissions.csv", "/feed.xml"):
        assert stranger.get(path).headers["location"] == "/sign-in", path
        assert anna.get(path).status_code == 200, path
    assert [stranger.get(path).status_code for path in ("/sign-in", "/static/board.css", "/healthz")] == [200] * 3


@pytest.mark.slow
def test_others_see_a_team_by_its_pseudonym(served, tmp_path, geval):
    served.send("anna kowalska", GOOD)
    folder = tmp_path / "scanned"
    write(folder / "anna kowalska.tar", "no archive")
    write(folder / "jan kowalska/test-A/out.tsv", GOOD)
    write(folder / "jan kowalska/gonito.yaml", "links: no")
    scan(served.board, str(folder), now=served.clock())
    set_keys(served.board, names="pseudonyms", seed=7)
    anna, bob = served.signed_in("anna kowalska"), served.signed_in("bob")
    name = re.search(r"Others see your team as <strong>(Team [0-9a-f]{6})</strong>", anna.get("/me").text)[1]
    assert name not in bob.get("/me").text
    for path in ("/", "/submissions.html", "/data/submissions.csv", "/data/outputs.json", "/feed.xml"):
        page = bob.get(path).text
        assert (name in page, "kowalska" in page) == (True, False), path
    codes = re.findall(r'"submissions/([0-9a-f]{12})\.html', bob.get("/submissions.html").text)
    assert len(codes) == 3
    for code in codes:
        assert "kowalska" not in bob.get(f"/submissions/{code}.html").text
    olga = served.signed_in("olga", role="organiser")
    assert "anna kowalska" in olga.get("/organiser/submissions").text
    for words in (["show"], ["show", "--format", "json"], ["show", "--format", "csv"], ["status"]):
        out = geval("board", *words, served.board.folder)[1]
        assert ("anna kowalska" in out, name in out) == (True, False), words
    assert geval("board", "site", served.board.folder, "-o", str(tmp_path / "public"))[0] == 0
    site = b"".join(files_in(tmp_path / "public").values())
    assert (name.encode() in site, b"kowalska" in site) == (True, False)


@pytest.mark.slow
def test_several_teams_are_disqualified_at_once_or_none(served, geval):
    anna = served.signed_in("anna")
    for name in ("anna", "bob", "cid"):
        served.send(name, GOOD)
    folder, reason = served.board.folder, ("--reason", "copied")
    no = "geval: there is no team `nobody`\n"
    assert geval("board", "disqualify", folder, "anna", "nobody", *reason) == (1, "", no)
    assert anna.get("/me").status_code == 200
    out = "anna is disqualified\nbob is disqualified\n"
    assert geval("board", "disqualify", folder, "anna", "BOB", *reason) == (0, out, "")
    assert anna.get("/me").headers["location"] == "/sign-in"
    page = served.browser().get("/").text
    assert ("cid" in page, "anna" in page, "bob" in page) == (True, False, False)
    assert geval("board", "status", folder)[1].count("disqualified: copied") == 2
