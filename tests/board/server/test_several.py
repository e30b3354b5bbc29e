"""Several boards on one server: one front page, one set of accounts, one worker."""

import os
import re
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from joserfc.errors import BadSignatureError
from raising import refused
from samples import GOOD, output, rows_of, verified, without_limits
from serving import OWN, Browser, Clock, Several, listening, set_keys
from sqlalchemy import select

from geval_py.board.database.schema import submissions
from geval_py.board.database.store import Board
from geval_py.board.operations import creation
from geval_py.board.people import accounts
from geval_py.board.people.store import accounts_of
from geval_py.board.server import live
from geval_py.board.server.context import ServerContext
from geval_py.board.server.worker import Worker

OUT = "upload/out.tsv?test=test-A"


@pytest.fixture
def folder(challenge, tmp_path):
    """A folder of two boards, ``gap`` with a deadline."""
    for name in ("gap", "bible"):
        creation.create(tmp_path / "boards" / name, challenge=challenge, answers=tmp_path / "answers")
        set_keys(without_limits(tmp_path / "boards" / name), title=name.upper())
    set_keys(Board.open(tmp_path / "boards" / "gap"), phases="[{name: main, until: 2027-01-31T22:59:00Z}]")
    return tmp_path / "boards"


@pytest.fixture
def several(folder, tmp_path, monkeypatch):
    made = Several(folder, tmp_path / "place")
    for module in ("boards", "server"):
        monkeypatch.setattr(f"geval_py.cli.board.{module}.now", made.clock)
    return made


def test_the_organiser_sees_an_error_in_board_yaml(several):
    olga = several.signed_in("olga", role="organiser")
    set_keys(f"{several.folder}/gap", colour="red")
    assert "The settings or the pages were not updated: " in olga.get("/course/gap/organiser").text
    assert "not updated" not in olga.get("/course/bible/organiser").text


def test_a_board_with_an_error_in_its_settings_stops_no_other(folder, tmp_path, caplog):
    path = folder / "gap" / "board.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text("title: [", encoding="utf-8")
    several = Several(folder, tmp_path / "place")
    browser, error = Browser(several.app), "The settings of the board have an error."
    for page in ("/course/gap/", "/course/gap/index.html"):
        answer = browser.get(page)
        assert (answer.status_code, answer.text) == (503, f"{error}\n")
    assert browser.get("/course/bible/").status_code == 200
    health = browser.get("/course/healthz")
    assert (health.status_code, health.json()) == (200, {"status": f"/course/gap: {error}", "waiting": 0})
    front = browser.get("/course/").text
    assert ("BIBLE" in front, f"gap: {error}" in front) == (True, True)
    assert [f"geval: {folder}/gap: line 1: " in message for message in caplog.messages] == [True]
    path.write_text(text, encoding="utf-8")
    time.sleep(live.RETRY_SECONDS)
    assert browser.get("/course/gap/").status_code == 200
    assert caplog.messages[-1] == f"geval: note: {folder}/gap: its settings can be used again"
    assert browser.get("/course/healthz").json()["status"] == "fine"


MOVED, DATABASE = "The board is not where it was.", "The database of the board cannot be used."
LOST = pytest.mark.parametrize(("lost", "sentence"), [
    ("gap", f"{MOVED} {DATABASE}"), ("gap/board.yaml", MOVED), ("gap/board.sqlite", DATABASE),
], ids=["folder", "settings", "database"])  # fmt: skip


@LOST
def test_a_board_that_is_lost_stops_no_other_and_comes_back(several, caplog, lost, sentence):
    browser, place = Browser(several.app), os.path.join(several.folder, lost)
    assert browser.get("/course/gap/").status_code == 200
    os.rename(place, f"{several.folder}.away")
    statuses = {browser.get("/course/gap/").status_code for _ in range(3)}
    assert statuses == ({200} if lost == "gap/board.yaml" else {503})  # its last settings are used
    assert browser.get("/course/bible/").status_code == 200
    assert browser.get("/course/healthz").json()["status"] == f"/course/gap: {sentence}"
    os.rename(f"{several.folder}.away", place)
    time.sleep(live.RETRY_SECONDS)
    assert browser.get("/course/gap/").status_code == 200
    assert browser.get("/course/healthz").json()["status"] == "fine"
    assert caplog.messages[-1].endswith("can be used again")


@LOST
def test_a_board_that_is_lost_before_the_first_visit_is_on_the_front_page(several, lost, sentence):
    several.server.boards[1].board()
    os.rename(f"{several.folder}/{lost}", f"{several.folder}.away")
    for _ in range(2):
        page = re.sub("<[^>]*>", "\n", Browser(several.app).get("/course/").text)
        assert (f"/course/gap: {sentence}\n" in page, "BIBLE" in page) == (True, True)


@pytest.mark.slow
def test_writers_on_a_locked_board_delay_no_other_board(several, unused_port):
    """All boards share the threads of the server, and a writer waits for another one for up to a minute."""
    host = f"http://127.0.0.1:{unused_port}"
    several.server.url = host
    cookies = [several.signed_in(f"team {number}").cookies for number in range(5)]

    def send(cookies, path):
        with httpx.Client(cookies=dict(cookies), headers=OWN, timeout=100) as client:
            if path == OUT:
                return client.put(f"{host}/course/gap/{path}", content=GOOD).status_code
            return client.post(f"{host}/course/gap/{path}", data={"code": "1"}).status_code

    with listening(several.app, several.folder, several.clock, unused_port), ThreadPoolExecutor(90) as threads:
        with several.server.boards[1].board().writing():
            pairs = [(one, path) for one in cookies for path in (OUT, "me/final")] * 9
            sent = [threads.submit(send, *pair) for pair in pairs]
            time.sleep(5)
            for path in ("bible/", "bible/sign-in", ""):  # in milliseconds, but not on a machine that is busy
                assert httpx.get(f"{host}/course/{path}", timeout=30).status_code == 200
            assert not any(one.done() for one in sent)
        assert Counter(one.result() for one in sent) == {201: 5, 200: 40, 422: 45}


@pytest.mark.slow
@pytest.mark.parametrize("broken", ["board.yaml", "board.sqlite"])
def test_a_board_that_cannot_be_used_does_not_stop_the_worker(several, broken):
    bob = several.signed_in("bob")
    answers = [bob.put(f"/course/{name}/{OUT}", GOOD, headers=OWN) for name in ("gap", "bible")]
    assert [answer.status_code for answer in answers] == [201, 201]
    with open(os.path.join(several.folder, "gap", broken), "w", encoding="utf-8") as file:
        file.write("title: [" * 100)
    worker = Worker(several.folder, at_once=1)
    thread = threading.Thread(target=worker.run)
    thread.start()
    while not bob.get(answers[1].json()["state"]).json()["settled"]:
        time.sleep(0.1)
    worker.stop()
    thread.join()


def test_the_front_page_lists_the_boards(several):
    page = Browser(several.app).get("/course/").text
    boards = re.findall(r'<h2><a href="([^"]*)">(\w+)</a></h2>', page)
    assert boards == [("/course/bible/", "BIBLE"), ("/course/gap/", "GAP")]
    assert ("No deadline" in page, "My page" in page) == (True, False)
    assert 'main until <time datetime="2027-01-31T22:59:00Z">' in page
    mine = several.signed_in("anna", team="Team 7").get("/course/").text
    assert '<a href="/course/gap/me">My page</a> as anna (Team 7)' in mine
    several.clock.wait(days=60)
    assert "The last deadline was <time" in Browser(several.app).get("/course/").text
    browser = Browser(several.app)
    assert '<a href="../">All challenges</a>' in browser.get("/course/gap/").text
    assert browser.get("/course/gap").headers["location"] == "/course/gap/"
    assert [browser.get(f"/course/{path}").status_code for path in ("nothing/", "static/board.css")] == [404, 200]
    assert browser.get("/course/healthz").json() == {"status": "fine", "waiting": 0}


def invited(several, board, name, **more):
    server = next(one for one in several.server.boards if one.name == board)
    with server.accounts.writing() as people:
        link = accounts.invite(people, name, now=several.clock(), **more).secret
    browser = Browser(several.app)
    assert browser.post(f"/course/{board}/invitation/{link}").headers["location"] == f"/course/{board}/me"
    return browser


def test_a_list_of_people_is_invited_to_all_boards(several, geval, tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("name,email,team\nAnna,anna@uni.example,Team 7\nBob,bob@uni.example,\n")
    status, out, _ = geval("board", "invite", several.folder, "--list", str(path), "--url", several.server.url)
    links = [row.rpartition(",")[2].removeprefix("http://board.test") for row in out.splitlines()[1:]]
    assert (status, len(links)) == (0, 2)
    for link in links:
        browser = Browser(several.app)
        assert browser.post(link).headers["location"] == "/course/"
        assert [browser.get(f"/course/{name}/me").status_code for name in ("gap", "bible")] == [200, 200]


def test_an_organiser_of_one_board_is_nobody_on_another(several):
    olga, ruth = invited(several, "gap", "olga", role="organiser"), several.signed_in("ruth", role="organiser")
    assert olga.get("/course/gap/organiser").status_code == 200
    for path in ("me", "organiser", "organiser/people"):
        assert olga.get(f"/course/bible/{path}").headers["location"] == "/course/bible/sign-in"
    assert ruth.get("/course/bible/organiser").status_code == 200
    thief, page = Browser(several.app), olga.post("/course/gap/organiser/invite", data={"again": "ruth"}).text
    thief.post(re.search(r"<code>http://board.test(/course/gap/invitation/[\w-]+)</code>", page)[1])
    assert thief.get("/course/gap/organiser").status_code == 200
    assert thief.get("/course/bible/organiser").headers["location"] == "/course/bible/sign-in"


@pytest.mark.parametrize("what", ["link", "account"])
def test_an_organiser_ends_sessions_and_links_of_their_board_alone(several, what):
    """One link and one session may be for all boards; a link for one of them ends them there, and so does closing."""
    olga, bob = invited(several, "gap", "olga", role="organiser"), several.signed_in("bob")
    link = several.invite("carol")
    for name in ("bob", "carol"):
        page, form = ("invite", {"again": name}) if what == "link" else ("close", {"name": name, "sure": "yes"})
        assert olga.post(f"/course/gap/organiser/{page}", data=form).status_code in (200, 303)
    assert bob.get("/course/gap/me").headers["location"] == "/course/gap/sign-in"
    assert bob.get("/course/bible/me").status_code == 200
    carol = Browser(several.app)
    assert carol.post(link.replace("/course", "/course/gap")).status_code == 403
    assert carol.post(link).headers["location"] == "/course/"
    assert carol.get("/course/gap/me").headers["location"] == "/course/gap/sign-in"
    assert carol.get("/course/bible/me").status_code == 200


def test_a_session_on_all_boards_is_ended_on_one_or_by_signing_out(several):
    thief, bob = several.signed_in("bob"), Browser(several.app)
    bob.cookies.update(thief.cookies)
    form = '/me/end"><input type="hidden" name="number" value="([0-9]+)"'
    bob.post("/course/gap/me/end", data={"number": re.search(form, bob.get("/course/gap/me").text)[1]})
    assert [thief.get(f"/course/{name}/me").status_code for name in ("gap", "bible")] == [303, 200]
    bob.post("/course/gap/sign-out")
    assert [thief.get(f"/course/{name}/me").status_code for name in ("gap", "bible")] == [303, 303]


def test_a_token_is_for_one_board_and_ends_with_the_account(several):
    browser = several.signed_in("anna")
    made = browser.post("/course/gap/me/tokens", data={"name": "laptop"}).text
    token = re.search(r"<code>([\w-]{43})</code>", made)[1]
    program = Browser(several.app, headers={"Authorization": f"Bearer {token}"}, own=False)
    assert [program.put(f"/course/{name}/{OUT}", GOOD).status_code for name in ("gap", "bible")] == [201, 401]
    addresses = "http://board.test/course/bible, http://board.test/course/gap"
    error = f"this server has several boards: use one of the addresses {addresses}"
    assert program.put(f"/course/{OUT}", GOOD).json() == {"error": error}
    organiser = several.signed_in("olga", role="organiser")
    assert "anna" in organiser.get("/course/gap/organiser/people").text
    organiser.post("/course/gap/organiser/close", data={"name": "anna", "sure": "yes"})
    assert program.put(f"/course/gap/{OUT}", GOOD).status_code == 401
    assert browser.get("/course/gap/me").headers["location"] == "/course/gap/sign-in"


@pytest.mark.slow
def test_nothing_of_a_board_is_valid_on_another(several):
    anna, bob = several.signed_in("anna"), several.signed_in("bob")
    boards = {"gap": anna, "bible": bob}
    sent = {name: one.put(f"/course/{name}/{OUT}", GOOD, headers=OWN).json() for name, one in boards.items()}
    several.work()
    keys = {name: anna.get(f"/course/{name}/receipt-key").text.strip() for name in sent}
    for name, other in (("gap", "bible"), ("bible", "gap")):
        number = sent[name]["number"]
        for path in ("me/uploads/{}", "me/uploads/{}/receipt", "api/uploads/{}"):
            for browser in (anna, bob):
                assert browser.get(f"/course/{other}/{path.format(number)}").status_code == 404
        assert verified(sent[name]["receipt"], keys[name])["number"] == number
        with pytest.raises(BadSignatureError):
            verified(sent[name]["receipt"], keys[other])
    (code,) = rows_of(several.server.boards[1].board(), select(submissions.c.code))
    reasons = {"gap": "this submission does not belong to your team", "bible": "No submission has the code"}
    for name, reason in reasons.items():
        assert reason in bob.post(f"/course/{name}/me/withdraw", data={"code": code}).text


def test_no_page_of_an_account_is_kept_or_shown_to_another(several):
    """Pages for everybody are the same for everybody, and others have no ETag; after a ban, nothing is left."""
    anna, bob, stranger = several.signed_in("anna"), several.signed_in("bob"), Browser(several.app)
    public, own = ("/course/gap/", "/course/gap/submit.html"), ("/course/", "/course/gap/me")
    for path in public:
        answers = [one.get(path) for one in (anna, bob, stranger)]
        assert len({(one.text, one.headers["etag"], one.headers["cache-control"]) for one in answers}) == 1
    for path in own:
        answer = anna.get(path, headers={"If-None-Match": "*"})
        assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
        assert "etag" not in answer.headers
        assert "anna" not in bob.get(path).text
    for one in several.server.boards:
        with one.accounts.writing() as people:
            accounts.close(people, accounts.account_named(people, "anna"), several.clock())
    assert "anna" not in anna.get("/course/").text
    assert anna.get("/course/gap/me", headers={"If-None-Match": "*"}).status_code == 303


@pytest.mark.slow
def test_the_worker_serves_the_boards_in_turn(several):
    anna, bob = several.signed_in("anna"), several.signed_in("bob")
    for number, browser in ((1, anna), (2, bob), (3, anna), (4, bob)):
        browser.put(f"/course/gap/{OUT}", output("test-A", 0.1 * number), headers=OWN)
    anna.put(f"/course/bible/{OUT}", GOOD, headers=OWN)
    ticks = iter(range(1000))

    def clock():
        several.clock.wait(seconds=next(ticks) and 0.001)
        return several.clock()

    assert Worker(several.folder, at_once=1, clock=clock).run(until_idle=True) == 5
    boards = [(one.path, one.board()) for one in several.server.boards]
    started = [(one, path) for path, board in boards for one in rows_of(board, select(submissions.c.started))]
    assert "/course/bible" in [path for _, path in sorted(started)[:2]]


def test_a_board_with_accounts_of_its_own(folder, tmp_path):
    with accounts_of(Board.open(folder / "gap")).writing() as people:
        secret = accounts.invite(people, "anna", now=Clock()()).secret
    (tmp_path / "one").mkdir()
    hint = f"to share them, move `{folder}/gap/accounts.sqlite` to `{folder}/accounts.sqlite`"
    with refused(f"`{folder}/gap` has accounts of its own\n  {hint}"):
        ServerContext(str(folder), str(tmp_path / "one"))
    (folder / "gap" / "accounts.sqlite").rename(folder / "accounts.sqlite")
    several = Several(folder, tmp_path / "place")
    browser = Browser(several.app)
    browser.post(f"/course/gap/invitation/{secret}")
    answers = [browser.put(f"/course/{name}/{OUT}", GOOD, headers=OWN).status_code for name in ("gap", "bible")]
    assert answers == [201, 401]


@pytest.mark.parametrize("name", ["sign-in", "a b", "static"])
def test_a_folder_whose_name_is_no_address(folder, tmp_path, name):
    (folder / "gap").rename(folder / name)
    with refused(f"the folder `{name}` cannot be the address of a board\n  rename it"):
        Several(folder, tmp_path / "place")
