"""What the time of an answer could tell: whether a secret was ever one, and whether a guess was right.

No test measures times, which differ from machine to machine: they compare the work that is done.
"""

import cProfile
import os
import re
from collections import Counter
from datetime import timedelta
from secrets import token_urlsafe

import pytest
from samples import GOOD, NOW, OUT, words_of, write
from sqlalchemy import Engine, event

from geval_py.board.intake import sandbox
from geval_py.board.people import accounts, secrets, sign_in


@pytest.fixture
def statements():
    """The statements that any database is given, in their order, each with its values."""
    told = []

    def note(_connection, _cursor, statement, values, *_):
        told.append((statement, values))

    event.listen(Engine, "before_cursor_execute", note)
    yield told
    event.remove(Engine, "before_cursor_execute", note)


@pytest.fixture
def work_of(served, statements):
    """A function that sends a request, and gives the statements of its answer, and the answer without its date."""

    def ask(method, path, **more):
        browser = served.browser()
        browser.cookies.update(more.pop("cookies", {}))
        del statements[:]
        answer = browser.request(method, path, **more)
        return [statement for statement, _ in statements], answer.status_code, answer.content

    return ask


def tokens_that_are_none(served):
    """Yield what may stand in the place of a token: one that is unknown, too old, ended, or of a closed account."""
    yield token_urlsafe(secrets.SECRET_BYTES)
    for name in ("old", "ended", "closed"):
        served.signed_in(name)
        with served.people() as people:
            account = accounts.account_named(people, name)
            made = NOW - timedelta(days=400) if name == "old" else NOW
            yield (token := sign_in.make_token(people, account, now=made))
            if name == "ended":
                secrets.end_secrets(people, secrets.S.digest == secrets.digest_of(token))
            elif name == "closed":
                accounts.close(people, account, NOW)


@pytest.mark.parametrize(("method", "path"), [("GET", "/api/me"), ("PUT", OUT)])
def test_no_token_that_was_one_takes_other_work_than_an_unknown_one(served, work_of, method, path):
    tokens = list(tokens_that_are_none(served))
    work_of(method, path, headers={"Authorization": "Bearer first"})  # which makes this hour's row of failures
    headers = [{"Authorization": f"Bearer {token}"} for token in tokens]
    first, *others = [work_of(method, path, headers=one) for one in headers]
    assert (bool(first[0]), first[1]) == (True, 401)
    assert others == [first] * 3


def test_no_link_that_was_one_takes_other_work_than_an_unknown_one(served, work_of):
    used = served.invite("used")
    served.clock.wait(days=-secrets.DAYS[secrets.INVITATION])
    old = served.invite("old")
    served.clock.wait(days=secrets.DAYS[secrets.INVITATION], seconds=1)
    assert served.browser().post(used).status_code == 303
    links = [f"/invitation/{token_urlsafe(secrets.SECRET_BYTES)}", used, old]
    for method in ("GET", "POST"):
        work_of(method, links[0])
        first, *others = [work_of(method, link) for link in links]
        assert (bool(first[0]), first[1]) == (True, 404 if method == "GET" else 403)
        assert others == [first] * 2


def test_no_session_that_was_one_takes_other_work_than_an_unknown_one(served, work_of):
    ended, closed = served.signed_in("ended"), served.signed_in("closed")
    cookies = [dict(one.cookies) for one in (ended, closed)]
    ended.post("/sign-out")
    with served.people() as people:
        accounts.close(people, accounts.account_named(people, "closed"), NOW)
    unknown = {served.server.cookie: token_urlsafe(secrets.SECRET_BYTES)}
    first, *others = [work_of("GET", "/me", cookies=one) for one in (unknown, *cookies)]
    assert (bool(first[0]), first[1]) == (True, 303)
    assert others == [first] * 2


def test_a_secret_is_looked_up_by_its_digest_alone(served, statements):
    """An index that is searched for the secret itself could tell, by its time, how many characters are right."""
    token = token_urlsafe(secrets.SECRET_BYTES)
    served.browser().get("/api/me", headers={"Authorization": f"Bearer {token}"})
    asked = repr(statements)
    assert (secrets.digest_of(token) in asked, token[:8] in asked) == (True, False)


def calls(function, *arguments):
    """Count the calls of each function while one runs."""
    profile = cProfile.Profile()
    profile.runcall(function, *arguments)
    return Counter({str(one.code): one.callcount for one in profile.getstats()})


def test_scoring_right_guesses_takes_the_same_steps_as_scoring_wrong_ones(sqlite_board, tmp_path):
    settings, work = sqlite_board.settings, []
    # The first one imports modules, and the second one fills the caches that these imports emptied.
    for name, step in (("first", 1), ("second", 1), ("right", 1), ("wrong", -1)):
        lines = "".join(f"{word[::step]}:0.9 :0.1\n" for word in words_of("test-A"))
        write(tmp_path / name / "test-A" / "out.tsv", lines)
        place = tmp_path / f"place of {name}"
        place.mkdir()
        work.append(calls(sandbox.process_source, str(tmp_path / name), str(place), settings, settings.metrics))
    assert sum(work[2].values()) > 1000
    assert work[2] == work[3]


def test_no_page_tells_when_scoring_ended_more_precisely_than_by_the_second(served):
    program, browser = served.token("anna"), served.signed_in("anna")
    served.clock.wait(microseconds=345678)
    number = program.put(OUT, GOOD).json()["number"]
    served.clock.wait(seconds=1, microseconds=123456)
    served.work()
    pages = ["/", "/me", f"/me/uploads/{number}", f"/api/uploads/{number}", "/feed.xml"]
    told = "".join(browser.get(page).text for page in pages)
    assert re.findall(r"\d\d:\d\d:\d\d\.\d+", told) == []
    assert os.listdir(served.server.place) in ([], ["site"])
