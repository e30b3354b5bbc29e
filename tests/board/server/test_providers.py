"""Signing in by other sites: a real provider of OpenID Connect (Authlib's own server), and one that speaks as GitHub."""

import json
import re
import threading
import time
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from axe import axe_findings
from playwright.sync_api import expect
from raising import refused
from samples import ON_BOTH
from serving import Browser, set_keys
from sqlalchemy import select, update
from test_several import folder, several

from geval_py.board.people import accounts
from geval_py.board.people.schema import identities
from geval_py.board.server.openid import check_secrets
from geval_py.board.settings import read_settings
from geval_py.errors import ConfigError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it uses a module of Authlib that will go
    from oidc_provider_mock import User, run_server_in_thread

USERS = {
    "1": {"email": "anna@uni.example", "email_verified": True, "preferred_username": "anna"},
    "2": {"email": "Eve@uni.example", "email_verified": False, "preferred_username": "eve"},
    "3": {"preferred_username": "nobody"},
    "4": {"email": "bob@other.example", "email_verified": True, "name": "Bob"},
    "5": {"email": "ann@uni.example", "email_verified": True, "preferred_username": "anna"},
    "6": {"email": "x\r\nBcc: y@uni.example", "email_verified": True, "preferred_username": "\0"},
}
assert folder, several  # fixtures
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def provider():
    users = [User(sub=subject, claims=claims) for subject, claims in USERS.items()]
    with run_server_in_thread(require_nonce=True, user_claims=users) as server:
        yield f"http://localhost:{server.server_port}"


def set_server(board, **values):
    set_keys(board, server=json.dumps(values))


@pytest.fixture(autouse=True)
def the_secret_of_the_school(monkeypatch):
    monkeypatch.setenv("SCHOOL", "a secret")


def school_at(issuer):
    return {"name": "School", "issuer": issuer, "client": "board", "secret": "SCHOOL"}


@pytest.fixture
def school(served, provider):
    """The server, whose people sign in by the provider; addresses of one domain may make accounts."""
    set_server(served.board, sign_in=[school_at(provider)], open=["uni.example"])
    return served


def go(browser, path="/sign-in/by/school"):
    """Begin to sign in; gives the address at the provider."""
    answer = browser.get(path)
    assert answer.status_code == 302, answer.text
    return answer.headers["location"]


def consent(address, subject):
    """Sign in at the provider; gives the path with which it sends the browser back."""
    answer = httpx.post(address, data={"sub": subject})
    assert answer.status_code == 302, answer.text
    parts = urlsplit(answer.headers["location"])
    return f"{parts.path}?{parts.query}"


def come(browser, subject):
    """Sign in by the provider as one of its users; gives the last answer."""
    return browser.get(consent(go(browser), subject))


def state_in(address):
    return parse_qs(urlsplit(address).query)["state"][0]


def reason_of(answer):
    return re.search(r'<p class="notice bad"[^>]*>(.*?)</p>', answer.text, re.DOTALL)[1].replace("&#39;", "'")


@ON_BOTH
def test_who_is_invited_by_an_address_signs_in(school):
    school.invite("Anna Kowalska", email="ANNA@uni.example", team="Team 7")
    assert "/sign-in/by/school" in school.browser().get("/sign-in").text
    for browser in (school.browser(), school.browser()):  # the second time, by what is remembered
        answer = come(browser, "1")
        assert (answer.status_code, answer.headers["location"]) == (303, "/me")
        assert "Anna Kowalska" in browser.get("/me").text
    assert [row.subject for row in school.rows(select(identities))] == ["1"]
    assert [action for _, action, *_ in school.log()] == ["signed in by School"] * 2


def test_an_account_with_the_address_is_asked_for_first(school):
    """Addresses are given to others, and another site may say who has one: that is no proof."""
    anna, answer = school.signed_in("anna", email="anna@uni.example"), come(school.browser(), "1")
    hint = "sign in to it with a link, and connect the other site on your page"
    assert answer.status_code == 403
    assert reason_of(answer) == f"anna@uni.example is the address of an account: {hint}"
    assert come(anna, "1").headers["location"] == "/sign-in/connect"
    assert "anna@uni.example" in anna.get("/sign-in/connect").text
    assert school.rows(select(identities)) == []
    assert anna.post("/sign-in/connect").headers["location"] == "/me"
    assert come(again := school.browser(), "1").headers["location"] == "/me"
    page = anna.get("/me").text
    assert page.count("Disconnect") == 1
    number = re.search('/me/disconnect"><input type="hidden" name="number" value="([0-9]+)"', page)[1]
    anna.post("/me/disconnect", data={"number": number})
    assert again.get("/me").status_code == 200
    assert come(school.browser(), "1").status_code == 403


def test_another_subject_with_an_address_that_is_used_is_refused(school):
    school.invite("ann", email="ann@uni.example")
    assert come(school.browser(), "5").headers["location"] == "/me"
    with school.people() as people:
        people.execute(update(identities).values(subject="another"))
    answer = come(school.browser(), "5")
    assert (answer.status_code, "is the address of an account" in reason_of(answer)) == (403, True)


def test_a_sign_in_to_one_board_opens_no_other(several, provider):
    """On one board everybody of a domain may make an account, on the other one nobody."""
    for server, domains in zip(several.server.boards, ([], ["other.example"]), strict=True):
        set_server(server.board(), sign_in=[school_at(provider)], open=domains)
    browser = Browser(several.app)
    answer = browser.get(consent(go(browser, "/course/gap/sign-in/by/school"), "4"))
    assert answer.headers["location"] == "/course/gap/sign-in/name"
    browser.cookies.set("geval-bible-sign-in", browser.cookies["geval-gap-sign-in"])
    for name, status in (("bible", 403), ("gap", 303)):
        assert browser.post(f"/course/{name}/sign-in/name", data={"name": "bob"}).status_code == status


def test_who_was_removed_makes_no_account_with_another_address(school):
    """An account of another site is known by its id, whatever address it has now."""
    anna = school.browser()
    come(anna, "1")
    anna.post("/sign-in/name", data={"name": "anna"})
    with school.people() as people:
        people.execute(update(identities).values(subject="5"))
        accounts.close(people, accounts.account_named(people, "anna"), school.clock())
    answer = come(browser := school.browser(), "5")
    assert (answer.status_code, reason_of(answer)) == (403, "this account was closed; ask the organiser")
    assert browser.post("/sign-in/name", data={"name": "anna two"}).status_code == 403
    with school.people() as people:
        accounts.reopen(people, accounts.account_named(people, "anna", closed=True), school.clock())
    assert school.rows(select(identities)) == []  # who signed in before must be invited again


def test_who_is_signed_in_adds_a_provider_and_makes_no_other_account_by_it(school):
    """Else a member could have as many teams, and quotas, as they have accounts of other sites."""
    browser = school.signed_in("carol")
    assert come(browser, "3").headers["location"] == "/sign-in/connect"
    answer = browser.post("/sign-in/name", data={"name": "carol 2"})
    assert (answer.status_code, "ask the organiser" in answer.text) == (422, True)
    assert school.rows(select(accounts.A.name)) == ["carol"]
    assert browser.post("/sign-in/connect").status_code == 303
    assert come(other := school.browser(), "3").status_code == 303
    assert "carol" in other.get("/me").text


def test_a_session_that_ended_meanwhile_adds_no_provider(school):
    """The wrong person, who was on the way when the organiser corrected the address, gets nothing of the account."""
    wrong = school.signed_in("carol", email="wrong@other.example")
    path = consent(go(wrong), "4")
    right = school.browser()
    with school.people() as people:
        accounts.close(people, accounts.account_named(people, "carol"), school.clock())
        carol = accounts.account_named(people, "carol", closed=True)
        accounts.reopen(people, carol, school.clock(), email="carol@other.example")
    right.post(school.invite("carol", email="carol@other.example"))
    assert wrong.get(path).status_code == 403
    assert wrong.get("/me").status_code == 303
    assert school.rows(select(identities)) == []


def test_a_token_adds_no_provider(school):
    """Else whoever has a token to read could sign in to the account by an account of their own elsewhere."""
    browser = school.browser()
    browser._headers = school.token("carol", scope="read")._headers
    assert come(browser, "3").status_code == 403
    assert browser.post("/sign-in/connect").status_code == 403
    assert school.rows(select(identities)) == []


def test_an_address_of_the_domain_makes_an_account(school):
    browser = school.browser()
    assert come(browser, "1").headers["location"] == "/sign-in/name"
    page = browser.get("/sign-in/name").text
    assert ('value="anna"' in page, "anna@uni.example" in page) == (True, True)
    assert browser.post("/sign-in/name", data={"name": "Team Anna"}).headers["location"] == "/me"
    assert "team Team Anna" in browser.get("/me").text
    assert come(school.browser(), "1").headers["location"] == "/me"


def test_a_name_that_is_taken_is_asked_for_again(school):
    school.signed_in("anna")
    browser = school.browser()
    come(browser, "5")
    answer = browser.post("/sign-in/name", data={"name": "ANNA"})
    assert (answer.status_code, reason_of(answer)) == (422, "there is a team `anna` already; choose another name")
    assert browser.post("/sign-in/name", data={"name": "a\x07"}).status_code == 422
    assert browser.post("/sign-in/name", data={"name": "anna two"}).headers["location"] == "/me"


# Without a verified address: nobody's account is taken over by an address that is only said.
@pytest.mark.parametrize(("subject", "who"), [
    *((subject, "School gave no verified address") for subject in "236"), ("4", "bob@other.example has no invitation"),
])  # fmt: skip
def test_others_are_refused(school, subject, who):
    school.invite("Eve", email="eve@uni.example")
    answer = come(school.browser(), subject)
    assert (answer.status_code, reason_of(answer)) == (403, f"{who}; ask the organiser")


def test_a_way_back_works_once_and_in_its_own_browser(school):
    school.invite("anna", email="anna@uni.example")
    browser, other = school.browser(), school.browser()
    path = consent(go(browser), "1")
    go(other)
    for somebody in (school.browser(), other):
        assert [somebody.get(one).status_code for one in (path, "/me")] == [403, 303]
    assert browser.get(path).headers["location"] == "/me"
    browser.post("/sign-out")
    assert reason_of(browser.get(path)) == "the sign-in took too long, or began in another browser; sign in again"


def test_a_state_or_code_of_somebody_else_is_refused(school):
    school.invite("anna", email="anna@uni.example")
    browser, other = school.browser(), school.browser()
    mine, theirs = consent(go(browser), "1"), consent(go(other), "2")
    answer = browser.get(theirs.replace(state_in(theirs), state_in(mine)))
    assert (answer.status_code, reason_of(answer)) == (403, "School did not sign you in; try again")


def test_who_is_away_for_too_long_begins_again(school, monkeypatch):
    school.invite("anna", email="anna@uni.example")
    browser = school.browser()
    path, later = consent(go(browser), "1"), int(time.time() + 15 * 60 + 1)
    monkeypatch.setattr("itsdangerous.TimestampSigner.get_timestamp", lambda _: later)
    assert browser.get(path).status_code == 403


def test_a_refusal_is_told_without_the_words_of_strangers(school):
    browser = school.browser()
    state = state_in(go(browser))
    answer = browser.get(f"/sign-in/by/school/back?error=access_denied&error_description=Pay+me&state={state}")
    assert reason_of(answer) == "School did not sign you in; try again"
    assert "Pay" not in answer.text


def test_only_the_own_site_begins_and_the_cookie_is_as_safe_as_the_session(school):
    answer = school.browser().get("/sign-in/by/school", headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.headers["location"] == "/sign-in"
    answer = school.browser().get("/sign-in/by/school")
    cookie = r"geval-sign-in=[\w.=-]+; path=/; Max-Age=900; httponly; samesite=lax"
    assert re.fullmatch(cookie, answer.headers["set-cookie"])
    query = parse_qs(urlsplit(answer.headers["location"]).query)
    assert query["code_challenge_method"] == ["S256"]
    assert query["redirect_uri"] == ["http://board.test/sign-in/by/school/back"]
    assert {"state", "nonce", "code_challenge"} <= query.keys()


def test_starts_are_counted(school, monkeypatch):
    monkeypatch.setattr("geval_py.board.server.openid.STARTS_AN_HOUR", 2)
    assert [school.browser().get("/sign-in/by/school").status_code for _ in range(3)] == [302, 302, 429]


def test_a_provider_that_is_away_or_says_nonsense(served, unused_port):
    set_server(served.board, sign_in=[school_at(f"http://127.0.0.1:{unused_port}")])
    answer = served.browser().get("/sign-in/by/school")
    assert (answer.status_code, reason_of(answer)) == (503, "School gave an invalid response; try again later.")
    assert served.browser().get("/sign-in/by/other").status_code == 404


GITHUB_ANSWERS = {  # as docs.github.com describes them
    "/login/oauth/access_token": {"access_token": "gho_1", "scope": "read:user,user:email", "token_type": "bearer"},
    "/api/v3/user": {"login": "octocat", "id": 583231, "name": "The Octocat", "email": None},
    "/api/v3/user/emails": [
        {"email": "old@uni.example", "verified": True, "primary": False, "visibility": None},
        {"email": "octocat@uni.example", "verified": True, "primary": True, "visibility": "private"},
    ],
}


@pytest.mark.slow
@pytest.mark.no_cover
def test_in_a_browser(school, address, open_address):
    def look():
        assert axe_findings(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 390

    page = open_address(f"{address}/sign-in", width=390, scheme="dark")
    look()
    page.get_by_role("link", name="Sign in by School").press("Enter")
    page.get_by_role("button", name="5").click()
    page.said.clear()  # of the provider's own page
    expect(page.get_by_role("heading", level=1)).to_have_text("Your name on this board")
    look()
    page.get_by_label("The name of your team").fill("Ann")
    page.get_by_role("button", name="Create an account").press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Ann")
    look()
    assert page.said == []


class GitHub(BaseHTTPRequestHandler):
    def do_GET(self):
        assert self.headers["Authorization"] == "Bearer gho_1"
        self.tell()

    def do_POST(self):
        query = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        assert {"code", "code_verifier", "redirect_uri"} <= query.keys()
        self.tell()

    def tell(self):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(GITHUB_ANSWERS[self.path]).encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def github():
    server = ThreadingHTTPServer(("127.0.0.1", 0), GitHub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_github(served, github, monkeypatch):
    monkeypatch.setenv("HUB", "a secret")
    one = {"name": "GitHub", "issuer": github, "client": "board", "secret": "HUB", "kind": "github"}
    set_server(served.board, sign_in=[one], open=["*"])
    browser = served.browser()
    back = f"/sign-in/by/github/back?code=x&state={state_in(go(browser, '/sign-in/by/github'))}"
    assert browser.get(back).headers["location"] == "/sign-in/name"
    assert "octocat@uni.example" in browser.get("/sign-in/name").text
    assert browser.post("/sign-in/name", data={"name": "octocat"}).headers["location"] == "/me"
    assert [(row.issuer, row.subject) for row in served.rows(select(identities))] == [(github, "583231")]


GOOD = {"name": "School", "issuer": "https://gitlab.com/", "client": "x", "secret": "Y"}


@pytest.mark.parametrize(("values", "message"), [
    ({"sign_in": [{"name": "School"}]}, "`client` is missing"),
    ({"sign_in": [{**GOOD, "issuer": "http://gitlab.com"}]},
     "`issuer` must be the address of a provider, such as https://gitlab.com"),
    ({"sign_in": [{**GOOD, "secret": "hunter2"}]},
     "`secret` must name an environment variable, such as GEVAL_GITLAB_SECRET"),
    ({"sign_in": [GOOD, {**GOOD, "name": "SCHOOL!"}]},
     "`sign_in` must give each provider a different name, with a letter or digit from a to z or 0 to 9"),
    ({"mail": {"host": "x", "sender": "a\nb@c"}}, "`sender` must be an e-mail address"),
    ({"mail": {"host": "x"}}, "`sender` is missing"),
    ({"open": ["uni"]}, "`open` must list domains of e-mail addresses, such as uni.example, or '*' for all"),
])  # fmt: skip
def test_wrong_settings_have_their_place(board, values, message):
    set_server(board, **values)
    with pytest.raises(ConfigError) as caught:
        read_settings(board.folder + "/board.yaml")
    assert message in str(caught.value)


def test_a_secret_that_is_missing_is_named_at_the_start(board, monkeypatch):
    set_server(board, sign_in=[GOOD])
    settings = read_settings(board.folder + "/board.yaml").server
    monkeypatch.delenv("Y", raising=False)
    with refused("the environment variable Y is empty: write the client secret of School into it"):
        check_secrets(settings)
    monkeypatch.setenv("Y", "z")
    check_secrets(settings)
