"""The pages of a server: made when they are asked for, and never those of an earlier phase."""

import threading
from datetime import timedelta

import anyio
import httpx
import pytest
from samples import change, output
from serving import ADDRESS, run, set_keys

from geval_py.board.operations.notices import announce
from geval_py.board.server import live

PHASES = "[{name: main, until: 2027-01-10T13:00:00Z}]"


def count_calls(monkeypatch, of, name):
    """Return a list that has an item more after each call of a function from then on."""
    calls, before = [], getattr(of, name)
    monkeypatch.setattr(of, name, lambda *arguments, **more: calls.append(1) or before(*arguments, **more))
    return calls


def tell(served, text):
    change(served.board, announce, served.board, text, served.clock(), moment=served.clock())


def test_pages_follow_what_changes(served, monkeypatch):
    browser, views = served.browser(), count_calls(monkeypatch, live, "view_on")
    assert "There are no entries yet." in browser.get("/").text
    browser.get("/submissions.html")
    assert len(views) == 1
    tell(served, "A new test set opens on Monday")
    assert "opens on Monday" in browser.get("/").text
    served.send("anna", output("test-A", 0.5))
    assert "anna" in browser.get("/").text
    before = len(views)
    assert "anna" in browser.get("/data/leaderboard.test-A.csv").text
    set_keys(served.board, title="Another title")
    assert "Another title" in browser.get("/").text
    assert len(views) == before + 1


def test_changes_are_looked_for_a_moment_later_but_the_phase_at_once(served, monkeypatch):
    set_keys(served.board, phases=PHASES)
    browser, looks = served.browser(), count_calls(monkeypatch, live.LiveBoard, "look")
    monkeypatch.setattr(live, "LOOK_SECONDS", 60)
    for path in ("/", "/", "/submissions.html", "/static/board.css"):
        assert browser.get(path).status_code == 200
    assert len(looks) == 1
    served.clock.wait(days=1)
    assert "which has ended" in browser.get("/").text
    assert len(looks) == 2


def test_no_page_of_an_earlier_phase_is_served_after_its_deadline(served, monkeypatch):
    set_keys(served.board, phases=PHASES)
    browser = served.browser()
    assert "This is the table of the phase “main”, which is open." in browser.get("/").text
    monkeypatch.setattr(live, "view_on", None)
    served.clock.wait(days=1)
    assert browser.get("/").status_code == 500
    monkeypatch.undo()
    assert "This is the table of the phase “main”, which has ended." in browser.get("/").text


def test_an_unchanged_page_is_not_sent_again(served):
    """Its ETag is that of its bytes, and a changed page is never answered from memory of an earlier one."""
    browser = served.browser()
    tag = browser.get("/").headers["etag"]
    for tags in (tag, f'"other", W/{tag}'):
        answer = browser.get("/", headers={"If-None-Match": tags})
        assert (answer.status_code, answer.text, answer.headers["etag"]) == (304, "", tag)
        assert answer.headers["cache-control"] == "no-cache"
    tell(served, "soon")
    answer = browser.get("/", headers={"If-None-Match": tag})
    assert (answer.status_code, "soon" in answer.text, answer.headers["etag"] != tag) == (200, True, True)
    assert browser.get("/missing.html", headers={"If-None-Match": "*"}).status_code == 404


@pytest.mark.slow
def test_one_reads_the_changes_and_the_others_see_the_pages_before(served, monkeypatch):
    """But after a deadline all wait."""
    set_keys(served.board, phases=PHASES)
    assert served.browser().get("/").status_code == 200
    before, reading, go_on = live.view_on, threading.Event(), threading.Event()

    def slow(*arguments, **more):
        reading.set()
        go_on.wait(30)
        return before(*arguments, **more)

    async def look():
        transport = httpx.ASGITransport(app=served.app, raise_app_exceptions=False)
        answers = []

        async def read(client):
            answers.append((await client.get("/")).text)

        async with httpx.AsyncClient(transport=transport, base_url=ADDRESS) as client:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(read, client)
                await anyio.to_thread.run_sync(reading.wait, 30)
                await read(client)
                assert ["soon" in text for text in answers] == [False]
                go_on.set()
            assert ["soon" in text for text in answers] == [False, True]
            answers.clear()
            reading.clear()
            go_on.clear()
            served.clock.now += timedelta(days=1)
            async with anyio.create_task_group() as tasks:
                for _ in range(100):
                    tasks.start_soon(read, client)
                await anyio.to_thread.run_sync(reading.wait, 30)
                assert (await client.get("/sign-in")).status_code == 200
                assert answers == []
                go_on.set()
            assert {"“main”, which has ended." in text for text in answers} == {True}
            assert len(answers) == 100

    monkeypatch.setattr(live, "view_on", slow)
    tell(served, "soon")
    run(look)
