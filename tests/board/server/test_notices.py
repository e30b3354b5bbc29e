"""What a board tells: webhooks and mail, with a real receiver of each; and the feed of a team."""

import json
import threading
import time
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from xml.etree import ElementTree

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.handlers import Message
from samples import ON_BOTH, output
from serving import set_keys
from sqlalchemy import select
from standardwebhooks import Webhook, WebhookVerificationError

from geval_py.board.database.schema import notices, secrets
from geval_py.board.database.store import Board
from geval_py.board.operations.notices import announce, tell
from geval_py.board.server import accounts
from geval_py.board.server.delivery import PAUSES, deliver_next, undelivered

NOTICES = select(notices).order_by(notices.c.id)
OUT = "/upload/out.tsv?test=test-A"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


class Receiver(ThreadingHTTPServer):
    """Takes webhooks, and answers with ``statuses`` in turn, the last one for ever."""

    def __init__(self, statuses=(204,)):
        super().__init__(("127.0.0.1", 0), Taking)
        self.statuses, self.taken = list(statuses), []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/hook"


class Taking(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.taken.append((dict(self.headers), body))
        statuses = self.server.statuses
        status = statuses.pop(0) if len(statuses) > 1 else statuses[0]
        self.send_response(status)
        if status == 302:
            self.send_header("Location", f"{self.server.url}/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def receiver(monkeypatch):
    server = Receiver()
    monkeypatch.setenv("HOOK", server.url)
    monkeypatch.setenv("SIGNING", SECRET)
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def hooked(served, receiver):
    """The server, with a webhook."""
    hook = {"name": "ours", "url": "HOOK", "secret": "SIGNING"}
    set_server(served, {"webhooks": [hook]}, url="https://board.example.org")
    return served


def set_server(served, values, **keys):
    set_keys(served.board, server=json.dumps(values), **keys)
    served.board = Board.open(served.board.folder)


def failures(served):
    with served.board.reading() as connection:
        return [(one.webhook, one.reason, one.count) for one in undelivered(connection)]


@ON_BOTH
def test_a_webhook_is_told_of_uploads_withdrawals_and_announcements(hooked, receiver):
    hooked.clock.now = datetime.now(UTC)  # which the signature is verified against
    program = hooked.token("anna")
    program.put(OUT, output("test-A", 0.5))
    program.put(f"{OUT}&dry=yes", output("test-A", 0.6))
    program.put(OUT, "no output\n")
    hooked.work()
    announce(hooked.board, "test-B opens", hooked.clock())
    with hooked.board.writing() as connection:
        event = {"event": "withdrawn", "submitter": "anna", "code": "0" * 12, "state": "withdrawn"}
        tell(connection, hooked.board.settings, event, hooked.clock())
    hooked.work()
    signed = Webhook(SECRET)
    told = [signed.verify(body, {name.lower(): value for name, value in headers.items()}) for headers, body in
            receiver.taken]  # fmt: skip
    assert [(one["event"], one.get("state")) for one in told] == [
        ("settled", "scored"), ("settled", "rejected"), ("announced", None), ("withdrawn", "withdrawn")]  # fmt: skip
    assert told[0]["url"] == f"https://board.example.org/submissions/{told[0]['code']}.html"
    assert told[0]["submitter"] == "anna"
    assert not {"score", "value", "reason"} & {key for one in told for key in one}
    assert len({headers["webhook-id"] for headers, _ in receiver.taken}) == 4
    assert {row.state for row in hooked.rows(NOTICES)} == {"sent"}
    headers, body = receiver.taken[0]
    with pytest.raises(WebhookVerificationError):
        signed.verify(body.replace(b"anna", b"eve"), {name.lower(): value for name, value in headers.items()})


@pytest.mark.parametrize(("kind", "field"), [("slack", "text"), ("discord", "content")])
def test_a_chat_gets_a_sentence_in_which_nobody_is_addressed(served, receiver, kind, field):
    set_server(served, {"webhooks": [{"name": "chat", "url": "HOOK", "kind": kind}]})
    announce(served.board, "<!channel> @everyone [free](http://evil.test)", served.clock())
    served.work()
    ((_, body),) = receiver.taken
    message = json.loads(body)
    assert message.keys() == {field}
    assert not set("<>@[]") & set(message[field])


@ON_BOTH
def test_a_receiver_that_fails_is_asked_again_later(hooked, receiver):
    receiver.statuses = [500, 302, 200]
    announce(hooked.board, "soon", hooked.clock())
    hooked.work()
    assert failures(hooked) == [("ours", "the answer has the status 500", 1)]
    page = hooked.signed_in("olga", role="organiser").get("/organiser").text
    assert "1 notice is undelivered to ours: the answer has the status 500" in page
    hooked.work()  # too early
    assert len(receiver.taken) == 1
    for minutes, count in ((1, 2), (5, 3)):
        hooked.clock.wait(minutes=minutes)
        hooked.work()
        assert len(receiver.taken) == count
    assert len({headers["webhook-id"] for headers, _ in receiver.taken}) == 1
    assert failures(hooked) == []


def test_a_receiver_that_is_away_is_given_up_at_last(hooked, monkeypatch, unused_port):
    monkeypatch.setenv("HOOK", f"http://127.0.0.1:{unused_port}")
    announce(hooked.board, "soon", hooked.clock())
    for pause in PAUSES:
        hooked.work()
        hooked.clock.wait(seconds=pause.total_seconds())
    assert hooked.rows(NOTICES)[0].state == "waiting"
    hooked.work()
    assert [(row.state, row.reason, row.tries) for row in hooked.rows(NOTICES)] == [
        ("given up", "no answer (ConnectError)", 8)
    ]


@pytest.mark.parametrize(("name", "value", "reason"), [
    ("HOOK", "", "the environment variable HOOK is empty"),
    ("HOOK", "nonsense", "no answer (UnsupportedProtocol)"),
    ("SIGNING", "ä", "the secret in SIGNING is not the secret of a webhook"),
])  # fmt: skip
def test_an_environment_that_is_wrong_is_told(hooked, monkeypatch, name, value, reason):
    monkeypatch.setenv(name, value)
    announce(hooked.board, "soon", hooked.clock())
    hooked.work()
    assert failures(hooked) == [("ours", reason, 1)]


def test_what_was_taken_by_a_worker_that_died_is_sent_by_another(hooked, receiver, monkeypatch):
    class Killed(BaseException):
        pass

    def die(*_):
        raise Killed

    announce(hooked.board, "soon", hooked.clock())
    with monkeypatch.context() as patch:
        patch.setattr("geval_py.board.server.delivery._call", die)
        with pytest.raises(Killed):
            deliver_next(hooked.board, hooked.clock())
    assert not deliver_next(hooked.board, hooked.clock())
    hooked.clock.wait(minutes=1)
    assert deliver_next(hooked.board, hooked.clock())
    assert len(receiver.taken) == 1


def test_a_slow_receiver_holds_up_no_upload(hooked, monkeypatch):
    slow = threading.Event()
    monkeypatch.setattr("geval_py.board.server.delivery._call", lambda *_: slow.wait(20))
    announce(hooked.board, "soon", hooked.clock())
    program = hooked.token("anna")
    number = program.put(OUT, output("test-A", 0.5)).json()["number"]
    thread = threading.Thread(target=hooked.work)
    thread.start()
    for _ in range(100):
        if program.get(f"/api/uploads/{number}").json()["state"] == "scored":
            break
        time.sleep(0.1)
    assert thread.is_alive()
    assert program.get(f"/api/uploads/{number}").json()["state"] == "scored"
    slow.set()
    thread.join()


class Mailbox(Message):
    """Keeps the letters that it gets."""

    def __init__(self):
        super().__init__()
        self.letters = []

    def handle_message(self, message):
        self.letters.append(message)


@pytest.fixture
def mailbox(unused_port):
    box = Mailbox()
    controller = Controller(box, hostname="127.0.0.1", port=unused_port)
    controller.start()
    box.port = unused_port
    yield box
    controller.stop()


def test_mail_tells_what_became_of_an_upload_until_it_is_turned_off(served, mailbox):
    mail = {"host": "127.0.0.1", "port": mailbox.port, "sender": "board@example.org", "tls": False}
    set_server(served, {"mail": mail}, url="http://board.test")
    browser = served.signed_in("anna", email="anna@uni.example")
    served.signed_in("bob").put(OUT, output("test-A", 0.4))  # has no address
    number = browser.put(OUT, output("test-A", 0.5)).json()["number"]
    served.work()
    assert failures(served) == []
    (letter,) = mailbox.letters
    assert (letter["X-MailFrom"], letter["X-RcptTo"]) == ("board@example.org", "anna@uni.example")
    assert letter["Subject"] == "Guess the word: out.tsv is scored"
    assert letter["List-Unsubscribe"] == "<http://board.test/me>"
    text = letter.get_payload()
    assert f"http://board.test/me/uploads/{number}" in text
    assert "PerplexityHashed" not in text
    assert browser.post("/me/mail").headers["location"] == "/me"
    assert "No mail is sent" in browser.get("/me").text
    browser.put(OUT, output("test-A", 0.6))
    served.work()
    assert len(mailbox.letters) == 1
    browser.post("/me/mail", data={"on": "yes"})
    browser.put(OUT, output("test-A", 0.7))
    served.work()
    assert len(mailbox.letters) == 2


def test_pending_invitations_are_mailed_again(served, mailbox):
    mail = {"host": "127.0.0.1", "port": mailbox.port, "sender": "board@example.org", "tls": False}
    set_server(served, {"mail": mail}, url="http://board.test")
    organiser = served.signed_in("olga", role="organiser", email="olga@uni.example")
    old = served.invite("anna", email="anna@uni.example")
    served.invite("bob")  # has no address
    served.clock.wait(days=3)
    page = organiser.get("/organiser/people").text
    assert (page.count("invited 3 days ago"), "2 people</a> never signed in" in page) == (2, True)
    assert organiser.post("/organiser/invite-again").headers["location"] == "/organiser/people"
    assert served.browser().get(old).status_code == 200
    assert "invitation/" not in repr(served.rows(select(notices.c.event)))
    served.work()
    (letter,) = mailbox.letters
    assert (letter["X-RcptTo"], letter["Subject"]) == ("anna@uni.example", "Guess the word: invitation")
    link = letter.get_payload().split("http://board.test")[1].strip()
    assert served.browser().get(old).status_code == 404
    browser = served.browser()
    assert browser.post(link).status_code == 303
    assert "invited 3 days ago" in organiser.get("/organiser/people?q=bob").text
    answer = organiser.post("/organiser/invite-again")
    assert (answer.status_code, "no pending invitation has an e-mail address" in answer.text) == (403, True)


def test_who_came_before_the_mail_stays_signed_in(served, mailbox):
    """A mail that waits for hours makes no new link for somebody who used the earlier one."""
    mail = {"host": "127.0.0.1", "port": mailbox.port, "sender": "board@example.org", "tls": False}
    set_server(served, {"mail": mail}, url="http://board.test")
    organiser = served.signed_in("olga", role="organiser")
    link = served.invite("anna", email="anna@uni.example")
    organiser.post("/organiser/invite-again")
    anna = served.browser()
    anna.post(link)
    served.work()
    assert mailbox.letters == []
    assert anna.get("/me").status_code == 200
    assert [row.state for row in served.rows(NOTICES)] == ["sent"]


def test_a_server_of_mail_that_is_away(served, unused_port):
    mail = {"host": "127.0.0.1", "port": unused_port, "sender": "board@example.org", "tls": False}
    set_server(served, {"mail": mail})
    served.signed_in("anna", email="anna@uni.example").put(OUT, output("test-A", 0.5))
    served.work()
    assert failures(served) == [("", "the mail was not accepted (ConnectionRefusedError)", 1)]


def test_a_team_has_a_feed_with_an_address_of_its_own(served):
    browser = served.signed_in("anna")
    browser.put(OUT, output("test-A", 0.5))
    page = browser.post("/me/tokens", data={"scope": "feed", "name": "feed"}).text
    path = page.partition("<code>http://board.test")[2].partition("</code>")[0]
    stranger = served.browser()
    answer = stranger.get(path)
    assert answer.headers["content-type"] == "application/atom+xml"
    atom = "{http://www.w3.org/2005/Atom}"
    (entry,) = ElementTree.fromstring(answer.text).findall(f"{atom}entry")
    assert entry.find(f"{atom}title").text == "out.tsv: waiting"
    served.work()
    assert "out.tsv: scored" in stranger.get(path).text
    secret = path.rpartition("/")[2]
    for address, status in (("/api/me", 401), ("/me", 403)):  # it opens nothing else
        assert stranger.get(address, headers={"Authorization": f"Bearer {secret}"}).status_code == status
    (number,) = served.rows(select(secrets.c.id).where(secrets.c.data["scope"].as_string() == accounts.FEED))
    browser.post(f"/me/tokens/{number}")
    assert stranger.get(path).status_code == 404
