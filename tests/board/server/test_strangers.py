"""Strangers at the server's door, on a real connection: requests that are not HTTP, or too much of it."""

import asyncio
import io
import itertools
import lzma
import re
import socket
import sqlite3
import tarfile
import time
from contextlib import ExitStack, closing

import pytest
from deployed import unused_port
from samples import GOOD, ON_BOTH, count
from serving import OWN, Served, listening, set_keys
from sqlalchemy import select
from starlette.routing import Route
from test_server import archive

from geval_py.board.database.schema import audit, submissions
from geval_py.board.intake import sources
from geval_py.board.people import secrets as people_secrets
from geval_py.board.people.schema import account_log, secrets
from geval_py.board.server import context, openid
from geval_py.board.server.app import ROUTES

SMUGGLED = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
PUT = b"PUT /upload/out.tsv?test=test-A HTTP/1.1\r\nHost: x\r\n"
WRONG = {"Authorization": "Bearer wrong"}
MAX_BYTES = 1 << 20  # of an answer


def connected(address, seconds=10):
    host, _, port = address.rpartition("/")[2].partition(":")
    return closing(socket.create_connection((host, int(port)), timeout=seconds))


def ask(address, request, *, seconds=1):
    """Send bytes, and give all that is answered until the server closes, or says nothing more."""
    with connected(address, seconds) as connection:
        answer = b""
        try:
            connection.sendall(request)
            while (part := connection.recv(65_536)) and len(answer) < MAX_BYTES:
                answer += part
        except (ConnectionError, TimeoutError):
            pass
        return answer


def statuses(answer):
    return [int(one) for one in re.findall(rb"^HTTP/1\.1 (\d{3})", answer, re.MULTILINE)]


@pytest.fixture(scope="module")
def door(shared):
    """The address of a server, at which nothing changes; no worker works beside it."""
    with listening(shared.app, shared.board.folder, shared.clock, port := unused_port(), workers=0):
        yield f"http://127.0.0.1:{port}"


def put_by(served):
    return PUT + b"Authorization: " + served.token("anna")._headers["Authorization"].encode() + b"\r\n"


@pytest.mark.parametrize("headers", [
    b"Content-Length: 3\r\nContent-Length: 38\r\n\r\nabc", b"Content-Length: 3, 38\r\n\r\nabc",
    b"Content-Length: -1\r\n\r\nabc", b"Content-Length: +3\r\n\r\nabc", b"Content-Length: 0x3\r\n\r\nabc",
    b"Content-Length: 99999999999999999999999\r\n\r\nabc",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n-3\r\nabc\r\n0\r\n\r\n", b"X: a\x00b\r\nContent-Length: 0\r\n\r\n",
    b"X : a\r\nContent-Length: 0\r\n\r\n", "Content-Length: ²\r\n\r\n".encode(), b"Content-Length: 1_000\r\n\r\nabc",
], ids=lambda headers: repr(headers)[2:42])  # fmt: skip
def test_a_request_that_can_be_read_in_two_ways_is_not_read(shared, door, headers):
    answer = ask(door, put_by(shared) + headers + SMUGGLED)
    assert [one for one in statuses(answer) if one < 400] == []
    assert b"waiting" not in answer
    assert count(shared.board, submissions) == 0


def test_a_body_with_a_length_and_chunks_ends_the_connection(shared, door):
    """RFC 9112, section 6.1: such a request may be an attempt to smuggle another one past a proxy."""
    both = b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    assert statuses(ask(door, put_by(shared) + both + SMUGGLED)) == [400]
    assert count(shared.board, submissions) == 0


@pytest.mark.parametrize("request_head", [
    b"/ HTTP/1.1\r\nHost: x\r\n" + b"".join(b"X-%d: y\r\n" % number for number in range(100_000)),
    b"/ HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 10_000_000 + b"\r\n",
    b"/ HTTP/1.1\r\nHost: x\r\nCookie: " + b"geval=x; " * 100_000 + b"\r\n",
    b"/" + b"a" * 1_000_000 + b" HTTP/1.1\r\nHost: x\r\n",
], ids=["many headers", "long header", "cookies", "address"])  # fmt: skip
def test_a_head_beyond_measure(door, request_head):
    assert [one for one in statuses(ask(door, b"GET " + request_head + b"\r\n")) if one < 400] == []
    assert statuses(ask(door, HEALTH)) == [200]


@pytest.mark.slow
def test_a_chunked_body_ends_at_the_limit(served, address):
    set_keys(served.board, server="{upload: 100_000}")
    chunk = b"4000\r\n" + b"x" * 0x4000 + b"\r\n"
    answer = ask(address, put_by(served) + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 30)
    assert statuses(answer)[:1] in ([413], [])  # [] if the connection was reset before the answer was read
    assert count(served.board, submissions) == 0


FORM = b"Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 100000\r\nConnection: close\r\n"
SAME_SITE = b"Host: x\r\nSec-Fetch-Site: same-origin\r\n"
FIELD = b'--x\r\nContent-Disposition: form-data; name="name"\r\n\r\nword:1'
UPLOAD = b"POST /me/upload HTTP/1.1\r\n" + SAME_SITE + FORM


def cookie(browser):
    return b"Cookie: geval=" + browser.cookies["geval"].encode() + b"\r\n"


def half_a_form(path, browser):
    head = f"POST {path} HTTP/1.1\r\n".encode() + SAME_SITE + FORM.replace(b"100000", b"50000")
    return head + cookie(browser) + b"\r\n" + FIELD


def test_a_form_is_refused_before_its_body_comes(served, address, monkeypatch):
    reader, anna, bob = served.signed_in("ron", role="reader"), served.signed_in("anna"), served.signed_in("bob")
    assert statuses(ask(address, UPLOAD + cookie(reader) + b"\r\n", seconds=20)) == [403]
    monkeypatch.setattr(served.server.receiving, "default_factory", lambda: asyncio.Semaphore(1))
    with connected(address) as held:
        held.sendall(UPLOAD + cookie(anna) + b"\r\n" + FIELD)
        while not any(slots.locked() for slots in served.server.receiving.values()):
            time.sleep(0.01)
        assert statuses(ask(address, UPLOAD + cookie(anna) + b"\r\n", seconds=20)) == [429]
    set_keys(served.board, server="{uploads_an_hour: 1}")
    assert bob.post("/me/upload", files={"file": ("out.tsv", GOOD)}, data={"test": "test-A"}).status_code == 303
    assert statuses(ask(address, UPLOAD + cookie(bob) + b"\r\n", seconds=20)) == [429]


def test_no_body_of_somebody_who_is_not_signed_in_is_read(door):
    for method, path in changes():
        head = f"{method} {path} HTTP/1.1\r\n".encode() + SAME_SITE + FORM
        if path != openid.NEXT:  # for somebody who signs in elsewhere, and has no account yet
            assert statuses(ask(door, head + b"\r\n", seconds=20)) in ([303], [401]), path


@pytest.mark.parametrize("path", ["/me/upload", "/me/tokens", openid.NEXT])
def test_a_form_that_stalls_is_given_up(served, address, tmp_path, monkeypatch, path):
    monkeypatch.setattr(context, "IDLE_SECONDS", 0.3)
    answer = ask(address, half_a_form(path, served.signed_in("anna")), seconds=20)
    assert (statuses(answer), b"No data arrived for 0.3 seconds." in answer) == ([408], True)
    assert all(slots._value == context.RECEIVED_AT_ONCE for slots in served.server.receiving.values())
    assert [one.name for one in (tmp_path / "place").iterdir()] == []


@pytest.mark.parametrize("path", ["/me/upload", "/me/tokens"])
def test_a_form_that_is_cut_off_is_no_error(served, address, caplog, path):
    with connected(address) as connection:
        connection.sendall(half_a_form(path, served.signed_in("anna")))
    assert statuses(ask(address, b"GET /me HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")) == [303]
    time.sleep(0.2)
    assert caplog.messages == []


def test_those_who_send_nothing_hold_up_nobody(door):
    with ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(connected(door)).sendall(b"GET / HTTP/1.1\r\nX")
        assert statuses(ask(door, HEALTH)) == [200]


@ON_BOTH
@pytest.mark.parametrize("digits", [25, 5000])
def test_no_address_has_a_number_beyond_the_database(served, caplog, digits):
    """Else each is an error that fills the log, also of somebody who is not signed in."""
    anna = served.signed_in("anna")
    for browser in (anna, served.browser()):
        assert browser.post("/me/end", data={"number": "9" * digits}).status_code == (422 if browser is anna else 303)
    olga = served.signed_in("olga", role="organiser")
    for values in ({"more": "9" * digits}, {"until": "9999-12-31T23:59:59-14:00"}):
        assert olga.post("/organiser/extend", data={"team": "anna", "reason": "ill", **values}).status_code == 422
    assert caplog.messages == []


@pytest.mark.parametrize("number", ["²", "-1", "1_000", "0x1", " ", "9" * 10])
def test_what_is_no_number_is_refused_by_one_rule(shared, number):
    olga = shared.signed_in("olga", role="organiser")
    answers = [
        olga.get("/organiser/people", params={"page": number}),
        olga.post("/organiser/extend", data={"team": "olga", "reason": "ill", "more": number}),
        olga.post("/organiser/take-back", data={"number": number}),
        olga.post("/me/end", data={"number": number}),
    ]
    told = [re.search(r'<p class="notice bad"[^>]*>(.*?)</p>', answer.text)[1] for answer in answers]
    assert [answer.status_code for answer in answers] == [422] * 4
    assert told == [f"`{number}` is not a whole number"] * 4
    assert olga.get("/organiser/people?page=").status_code == 200


def test_what_comes_from_one_network_has_one_count(served, monkeypatch):
    """A subscriber of IPv6 has as many addresses as the Internet has pairs of them."""
    monkeypatch.setattr(context, "FAILURES_AN_HOUR", 2)
    first = [served.browser().get("/api/me", address=f"2001:db8::{n}", headers=WRONG).status_code for n in range(4)]
    assert first == [401, 401, 429, 429]
    others = "2001:db8:0:1::1", "::ffff:192.0.2.7", "::ffff:192.0.2.8", "unknown"
    assert [served.browser().get("/api/me", address=one, headers=WRONG).status_code for one in others] == [401] * 4


@pytest.mark.parametrize("host", ["evil.test", "evil.test:80", "127.0.0.1@evil.test", ""])
def test_a_forged_host_is_in_no_link_and_opens_no_form(shared, host):
    """With a public address, nothing depends on the header Host."""
    anna = shared.signed_in("anna")
    page = anna.post("/me/invitations", data={"name": "bob"}, headers={"Host": host}).text
    assert ("http://board.test/invitation/" in page, "evil" in page) == (True, False)
    anna._headers = {}
    assert anna.post("/sign-out", headers={"Host": host, "Origin": f"http://{host}"}).status_code == 403


@pytest.mark.parametrize("name", ["a%0d%0aSet-Cookie:%20x=y.tsv", "out%00.tsv", "out%0a.tsv", "out%E2%80%AE.tsv"])
def test_a_name_makes_no_header(shared, name):
    answer = shared.token("anna").put(f"/upload/{name}?test=test-A%0d%0aX:%20y", GOOD)
    assert (answer.status_code in (403, 404), "set-cookie" in answer.headers) == (True, False)
    assert count(shared.board, submissions) == 0


@pytest.mark.parametrize(
    "url", ["//evil.test", "/%5cevil.test", "/\\evil.test", "/sign-in/..//evil.test", "/?next=//evil.test"]
)
def test_no_address_redirects_to_another_host(shared, url):
    location = shared.browser().get(f"http://board.test{url}").headers.get("location", "/")
    assert re.match(r"/(?![/\\])", location)


def test_a_token_that_was_ended_is_not_used_again(served):
    program, anna = served.token("anna"), served.signed_in("anna")
    assert program.get("/api/me").status_code == 200
    (number,) = served.rows(select(secrets.c.id).where(secrets.c.kind == people_secrets.TOKEN))
    assert served.signed_in("bob").post("/me/end", data={"number": number}).status_code == 303
    assert program.get("/api/me").status_code == 200, "another account's token is not bob's to end"
    assert anna.post("/me/end", data={"number": number}).status_code == 303
    assert program.get("/api/me").status_code == 401
    assert program.put("/upload/out.tsv?test=test-A", GOOD).status_code == 401


@pytest.mark.parametrize(("scope", "upload"), [("submit", 201), ("read", 401)])
def test_a_token_reaches_only_what_its_scope_is_for(served, scope, upload):
    """A token that was stolen makes no token, invitation or session, which would outlast it."""
    program = served.token("anna", scope=scope, days=1)
    before = served.rows(select(secrets.c.digest))
    changes_by_page = [(method, path) for method, path in changes() if method == "POST" and path != openid.NEXT]
    assert len(changes_by_page) > 7
    for method, path in [*changes_by_page, ("GET", "/me"), ("GET", "/me/uploads/1/receipt")]:
        answer = program.request(method, path, data={"name": "x", "scope": "submit"}, headers=OWN)
        assert (answer.status_code, "A token may not do this; sign in." in answer.text) == (403, True), path
    assert served.rows(select(secrets.c.digest)) == before
    assert program.put("/upload/out.tsv?test=test-A", GOOD).status_code == upload
    assert program.get("/api/me").status_code == 200


def changes():
    """The method and address of everything that changes something, of all routes there are."""
    for route in ROUTES:
        for method in sorted(route.methods - {"GET", "HEAD"}):
            if isinstance(route, Route) and route.path != "/invitation/{secret}":  # its secret is who signs in
                yield method, re.sub(r"\{[^}]*\}", "1", route.path)


def test_no_change_is_made_from_another_site_on_any_route(served):
    browser, found = served.signed_in("olga", role="organiser"), list(changes())
    assert len(found) > 9
    for site, (method, path) in itertools.product(("cross-site", "same-site", "none"), found):
        answer = browser.request(method, path, headers={"Sec-Fetch-Site": site}, data={"name": "x"})
        assert answer.status_code == 403, path
    assert served.rows(select(account_log.c.action)) == ["signed in"]
    assert served.rows(select(audit.c.action)) == []


@pytest.mark.parametrize("what", ["link", "token"])
def test_wrong_secrets_of_one_address_are_limited_by_the_hour(served, what, monkeypatch):
    """Others are not held up, nor is a right secret from that address."""
    monkeypatch.setattr(context, "FAILURES_AN_HOUR", 3)

    def wrong(**more):
        if what == "link":
            return served.browser().post("/invitation/wrong", **more).status_code
        return served.browser().get("/api/me", headers=WRONG, **more).status_code

    refused = 403 if what == "link" else 401
    assert [wrong() for _ in range(5)] == [refused] * 3 + [429] * 2
    assert served.browser().get("/", headers=WRONG).status_code == 200  # what everybody may see needs no token
    assert wrong(address="198.51.100.7") == refused
    assert served.browser().post(served.invite("anna")).status_code == 303
    assert served.token("anna").get("/api/me").status_code == 200
    served.clock.wait(hours=1)
    assert wrong() == refused


def test_beyond_the_limit_no_try_waits_for_a_writer(served, monkeypatch):
    """Else a stranger could hold up uploads, or wait in threads that pages need."""
    monkeypatch.setattr(context, "FAILURES_AN_HOUR", 1)
    assert served.browser().get("/api/me", headers=WRONG).status_code == 401
    with closing(sqlite3.connect(served.board.place, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        assert served.browser().get("/api/me", headers=WRONG).status_code == 429


def test_the_credentials_of_a_proxy_are_no_token(served, monkeypatch):
    """A browser sends them with each request, also with forms of other sites: they neither sign in nor count."""
    monkeypatch.setattr(context, "FAILURES_AN_HOUR", 1)
    anna, basic = served.signed_in("anna"), {"Authorization": "Basic YTpi"}
    assert {anna.get("/me", headers=basic).status_code for _ in range(5)} == {200}
    cross = {**basic, "Sec-Fetch-Site": "cross-site"}
    assert anna.post("/me/tokens", headers=cross, data={"name": "x"}).status_code == 403
    assert {served.browser().get("/me", headers=basic).headers["location"] for _ in range(5)} == {"/sign-in"}


@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_form_that_is_too_long_or_of_unknown_length_is_refused(served, is_chunked):
    browser = served.signed_in("anna")
    body, kind = b"name=" + b"x" * 100_000, {"Content-Type": "application/x-www-form-urlencoded"}

    async def chunks():
        yield body

    answer = browser.post("/me/tokens", content=chunks() if is_chunked else body, headers=kind)
    assert (answer.status_code, "The form is too long: it may have 65,536 bytes." in answer.text) == (413, True)
    assert served.rows(select(secrets.c.id).where(secrets.c.kind == people_secrets.TOKEN)) == []


@pytest.mark.slow
def test_behind_a_proxy_the_address_is_the_one_that_it_names(served, address):
    headers = b"Host: x\r\nAuthorization: Bearer wrong\r\nX-Forwarded-For: 203.0.113.9\r\n\r\n"
    assert statuses(ask(address, b"GET /api/me HTTP/1.1\r\n" + headers)) == [401]
    assert [*served.server.rates._tries] == ["failures from 203.0.113.9"]


def test_an_error_that_nobody_thought_of_says_nothing_of_the_server(served, monkeypatch):
    monkeypatch.setattr(people_secrets, "session_person", lambda *_, **__: 1 / 0)
    answer = served.browser().get("/me", headers={"Cookie": "geval=x"})
    assert (answer.status_code, "Traceback" in answer.text, "division" in answer.text) == (500, False, False)


@pytest.mark.parametrize(("content", "reason"), [
    (archive({"../test-A/out.tsv": "the"}), "`../test-A/out.tsv` leads out of its folder"),
    (b"PK\x03\x04", "is not a zip archive, or is damaged"),
], ids=["slip", "cut"])  # fmt: skip
def test_hostile_archives_are_refused_with_the_reason(served, content, reason):
    told = served.send("anna", content, "/upload/anna.zip")
    assert (told["state"], reason in told["reason"]) == ("rejected", True)
    assert served.work() == 0


@pytest.mark.long
def test_an_upload_beyond_what_the_test_set_needs_is_not_checked(served, monkeypatch):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz", preset=0) as file:
        member = tarfile.TarInfo("test-A/out.tsv")
        member.size = 100_000_001
        file.addfile(member, io.BytesIO(bytes(member.size)))
    told = served.send("anna", packed.getvalue(), "/upload/anna.tar.xz?dry=yes")
    assert (told["state"], told["reason"]) == ("rejected", "`test-A/out.tsv` is larger than 100000000 bytes")
    monkeypatch.setattr(sources, "FREE_BYTES", 1000)
    content = lzma.compress(b":1\n" * 1_000_000)
    told = served.send("bob", content, "/upload/out.tsv.xz?test=test-A&dry=yes")
    reason = f"the output cannot be read: it unpacks to more than {1000 + 1000 * len(content)} bytes [E105]"
    assert (told["state"], told["reason"]) == ("rejected", f"`test-A/out.tsv.xz`: {reason}")


def test_with_an_address_of_https_cookies_and_headers_insist_on_it(board, tmp_path):
    served = Served(board, tmp_path, url="https://board.test")
    answer = served.browser().post(served.invite("anna"))
    cookie = r"__Host-geval=[\w-]{43}; HttpOnly; Max-Age=2592000; Path=/; SameSite=lax; Secure"
    assert re.fullmatch(cookie, answer.headers["set-cookie"])
    assert answer.headers["strict-transport-security"] == "max-age=31536000"
