"""What a board tells by mail, with a real receiver."""

import json
import threading
from contextlib import contextmanager

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.handlers import Message
from aiosmtpd.smtp import AuthResult
from samples import ON_BOTH, OUT, output
from serving import set_keys
from sqlalchemy import select

from geval_py.board.database.schema import notices, submissions
from geval_py.board.database.store import Board
from geval_py.board.operations.rescoring import rescore
from geval_py.board.server import delivery
from geval_py.board.server.delivery import MAX_TRIES, deliver_next
from geval_py.board.server.queue import queue_status

NOTICES = select(notices).order_by(notices.c.id)


def set_mail(served, port, **more):
    mail = {"host": "127.0.0.1", "port": port, "sender": "board@example.org", "tls": False, **more}
    set_keys(served.board, server=json.dumps({"mail": mail}), url="http://board.test")
    served.board = Board.open(served.board.folder)


def two_members(served, port):
    set_mail(served, port)
    for name in ("anna", "bob"):
        served.signed_in(name, email=f"{name}@uni.example")


def failures(served):
    with served.board.reading() as connection:
        return queue_status(connection, served.clock()).undelivered


class Mailbox(Message):
    def __init__(self):
        super().__init__()
        self.letters = []

    def handle_message(self, message):
        self.letters.append(message)


def text_of(letter):
    return "\n".join(letter.get_payload(decode=True).decode().splitlines())


@contextmanager
def receiving(port, **more):
    box = Mailbox()
    controller = Controller(box, hostname="127.0.0.1", port=port, **more)
    controller.start()
    box.port = port
    yield box
    controller.stop()


@pytest.fixture
def mailbox(unused_port):
    with receiving(unused_port) as box:
        yield box


@pytest.mark.slow
def test_mail_tells_what_became_of_an_upload_until_it_is_turned_off(served, mailbox):
    set_mail(served, mailbox.port)
    browser = served.signed_in("anna", email="anna@uni.example")
    served.signed_in("bob").put(OUT, output("test-A", 0.4))  # has no address
    number = browser.put(OUT, output("test-A", 0.5)).json()["number"]
    served.work()
    assert failures(served) == {}
    (letter,) = mailbox.letters
    assert (letter["X-MailFrom"], letter["X-RcptTo"]) == ("board@example.org", "anna@uni.example")
    assert letter["Subject"] == "Guess the word: out.tsv is scored"
    assert letter["List-Unsubscribe"] == "<http://board.test/me>"
    text = letter.get_payload()
    assert f"http://board.test/me/uploads/{number}" in text
    assert "PerplexityHashed" not in text
    assert browser.post("/me/mail").headers["location"] == "/me"
    assert "No mail is sent" in browser.get("/me").text
    for skill, letters in ((0.6, 1), (0.7, 2)):
        browser.put(OUT, output("test-A", skill))
        served.work()
        assert len(mailbox.letters) == letters
        browser.post("/me/mail", data={"on": "yes"})


def test_pending_invitations_are_mailed_again(served, mailbox):
    set_mail(served, mailbox.port)
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
    text, link = text_of(letter).split("http://board.test")
    assert text == "anna, you are invited to Guess the word.\nThis link signs you in once, until 2027-01-27:\n\n"
    assert served.browser().get(old).status_code == 404
    assert served.browser().post(link).status_code == 303
    assert "invited 3 days ago" in organiser.get("/organiser/people?q=bob").text
    answer = organiser.post("/organiser/invite-again")
    assert (answer.status_code, "no pending invitation has an e-mail address" in answer.text) == (403, True)


def test_who_came_before_the_mail_stays_signed_in(served, mailbox):
    """A mail that waits for hours makes no new link for somebody who used the earlier one."""
    set_mail(served, mailbox.port)
    organiser = served.signed_in("olga", role="organiser")
    link = served.invite("anna", email="anna@uni.example")
    organiser.post("/organiser/invite-again")
    anna = served.browser()
    anna.post(link)
    served.work()
    assert mailbox.letters == []
    assert anna.get("/me").status_code == 200
    assert [row.state for row in served.rows(NOTICES)] == ["sent"]


def uploaded(served, port, **more):
    """Let a submitter with an address upload something, and score it; a notice waits for the mail server."""
    set_mail(served, port, **more)
    served.signed_in("anna", email="anna@uni.example").put(OUT, output("test-A", 0.5))
    served.work()


@pytest.mark.slow
@ON_BOTH
def test_a_server_of_mail_that_is_away_is_asked_again_later(served, mailbox, unused_port):
    uploaded(served, unused_port + 1)
    page = served.signed_in("olga", role="organiser").get("/organiser").text
    assert "undelivered notices: 1, because the mail was not accepted (ConnectionRefusedError)" in page
    set_mail(served, mailbox.port)
    served.work()  # too early
    assert mailbox.letters == []
    served.clock.wait(minutes=1)
    served.work()
    assert len(mailbox.letters) == 1
    assert failures(served) == {}


def test_a_server_of_mail_that_stays_away_is_given_up_at_last(served, unused_port):
    uploaded(served, unused_port)
    for tries in range(MAX_TRIES - 1):
        served.clock.wait(minutes=4**tries)
        served.work()
    (row,) = served.rows(NOTICES)
    reason = "the mail was not accepted (ConnectionRefusedError)"
    assert (row.state, row.reason, row.tries) == ("given up", reason, MAX_TRIES)


def test_what_was_taken_by_a_worker_that_died_is_sent_by_another(served, mailbox, monkeypatch):
    def die(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(delivery, "_send", die)
        with pytest.raises(KeyboardInterrupt):
            uploaded(served, mailbox.port)
    assert not deliver_next(served.board, served.clock())
    served.clock.wait(minutes=1)
    assert deliver_next(served.board, served.clock())
    assert len(mailbox.letters) == 1


def test_a_mailbox_that_hangs_delays_only_its_own_mails(served, mailbox, monkeypatch):
    two_members(served, mailbox.port)
    olga, send = served.signed_in("olga", role="organiser"), delivery._send
    trying, go_on = threading.Event(), threading.Event()

    def hang(mail, message):
        if message["To"] == "anna@uni.example":
            trying.set()
            go_on.wait(20)
            raise TimeoutError
        send(mail, message)

    monkeypatch.setattr(delivery, "_send", hang)
    for text in ("one", "two"):
        olga.post("/organiser/announce", data={"text": text, "mail": "yes"})
    slow = threading.Thread(target=deliver_next, args=(served.board, served.clock()))
    slow.start()
    trying.wait(20)
    while deliver_next(served.board, served.clock()):
        pass
    assert [letter["X-RcptTo"] for letter in mailbox.letters] == ["bob@uni.example"] * 2
    go_on.set()
    slow.join()
    assert failures(served) == {"the mail was not accepted (TimeoutError)": 1}
    monkeypatch.setattr(delivery, "_send", send)
    served.clock.wait(minutes=1)
    served.work()
    told = [letter.get_payload().split()[0] for letter in mailbox.letters if letter["X-RcptTo"] == "anna@uni.example"]
    assert told == ["one", "two"]


def test_an_announcement_is_mailed_to_all_members(served, mailbox, geval):
    assert geval("board", "announce", served.board.folder, "Soon", "--mail")[0] == 2
    two_members(served, mailbox.port)
    served.signed_in("cid")  # has no address
    olga = served.signed_in("olga", role="organiser")
    olga.post("/organiser/announce", data={"text": "test-B opens", "mail": "yes"})
    assert geval("board", "announce", served.board.folder, "and closes", "--mail")[0] == 0
    olga.post("/organiser/announce", data={"text": "only on the page"})
    served.work()
    link, texts = "\n\nhttp://board.test/\n\n", ("and closes", "test-B opens")
    told = sorted((letter["X-RcptTo"], text_of(letter).partition(link)[0]) for letter in mailbox.letters)
    assert told == [(f"{name}@uni.example", text) for name in ("anna", "bob") for text in texts]


def test_a_password_that_is_not_ascii_is_told_and_stops_nothing(served, unused_port, monkeypatch):
    """smtplib cannot send it: the notices of a board waited for ever, without a reason."""
    more = {"authenticator": lambda *_: AuthResult(success=True), "auth_require_tls": False}
    with receiving(unused_port, **more) as box:
        monkeypatch.setenv("PASSWORD", "p\xe4sswort")
        uploaded(served, unused_port, user="board", password="PASSWORD")
        assert failures(served) == {"the environment variable PASSWORD is empty, or not ASCII": 1}
        monkeypatch.setenv("PASSWORD", "password")
        served.clock.wait(minutes=1)
        served.work()
    assert len(box.letters) == 1


@pytest.mark.slow
def test_after_a_rescoring_those_whose_score_changed_are_told(served, mailbox):
    for name, score in (("anna", 0.5), ("bob", 0.6)):
        served.signed_in(name, email=f"{name}@uni.example").put(OUT, output("test-A", score))
    served.work()
    set_mail(served, mailbox.port)
    served.move_answers()
    (first, _) = served.rows(select(submissions.c.code).order_by(submissions.c.id))
    rescore(served.board, now=served.clock(), dry_run=True)
    served.work()
    assert mailbox.letters == []
    assert "corrected on" not in served.browser().get(f"/submissions/{first}.html").text
    rescore(served.board, now=served.clock())
    assert "Its scores were corrected on" in served.browser().get(f"/submissions/{first}.html").text
    served.work()
    told = sorted((letter["X-RcptTo"], letter["Subject"]) for letter in mailbox.letters)
    subject = "Guess the word: scores were corrected"
    assert told == [("anna@uni.example", subject), ("bob@uni.example", subject)]
    assert min(map(text_of, mailbox.letters)) == (
        "The organiser scored again, because the challenge, its answers or the seed changed.\n"
        "The score or place of anna changed.\n\nhttp://board.test/me\n\n"
        "You can turn these messages off at http://board.test/me"
    )
    rescore(served.board, now=served.clock())
    served.work()
    assert len(mailbox.letters) == 2
