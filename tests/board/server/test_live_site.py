"""The site of a server: which pages are served while another site is built, and when that is."""

import time

import pytest
from serving import ADDRESS, Browser, Clock, set_keys

from geval_py.board.database.store import Board
from geval_py.board.operations.notices import announce
from geval_py.board.server import live
from geval_py.board.server.app import application
from geval_py.board.server.context import ServerContext

BUILDER = """
import os, sys
os.mkdir(sys.argv[2])
open(os.path.join(sys.argv[2], "index.html"), "w").write(os.path.basename(sys.argv[2]))
"""


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def browser(sqlite_board, tmp_path, monkeypatch, clock):
    """A browser of a server whose first page names its site."""
    monkeypatch.setattr(live, "BUILDER", BUILDER)
    monkeypatch.setattr(live, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(live, "FAILED_SECONDS", 0.05)
    set_keys(sqlite_board, phases="[{name: main, until: 2027-01-10T13:00:00Z}]")
    server = ServerContext(sqlite_board.folder, str(tmp_path), url=ADDRESS, clock=clock)
    server.site.start()
    yield Browser(application(server))
    server.site.stop()


def test_no_page_of_an_earlier_phase_is_served_after_its_deadline(browser, clock, monkeypatch):
    assert browser.get("/").text == "site-1"
    monkeypatch.setattr(live, "BUILDER", "raise SystemExit('it fails')")
    monkeypatch.setattr(live, "BUILD_SECONDS", 1)
    clock.wait(days=1)
    answer = browser.get("/")
    assert (answer.status_code, "not ready yet" in answer.text, "site-1" in answer.text) == (503, True, False)
    assert browser.get("/healthz").json()["status"] == "an earlier site is shown"
    monkeypatch.setattr(live, "BUILDER", BUILDER)
    monkeypatch.setattr(live, "BUILD_SECONDS", 60)
    answer = browser.get("/")
    assert (answer.status_code, answer.text[:5], answer.text != "site-1") == (200, "site-", True)


def test_an_unchanged_page_is_not_sent_again(browser, clock):
    """Its ETag is that of its bytes, and a new site is never answered from memory of an earlier one."""
    tag = browser.get("/").headers["etag"]
    for tags in (tag, f'"other", W/{tag}'):
        answer = browser.get("/", headers={"If-None-Match": tags})
        assert (answer.status_code, answer.text, answer.headers["etag"]) == (304, "", tag)
        assert answer.headers["cache-control"] == "no-cache"
    clock.wait(days=1)
    answer = browser.get("/", headers={"If-None-Match": tag})
    assert (answer.status_code, answer.text, answer.headers["etag"] != tag) == (200, "site-2", True)
    assert browser.get("/missing.html", headers={"If-None-Match": "*"}).status_code == 404


def test_after_a_change_a_site_is_built_after_a_rest_and_after_a_deadline_at_once(
    sqlite_board, browser, clock, monkeypatch
):
    def changed(is_changed=True):
        announce(Board.open(sqlite_board.folder), "soon", clock())
        before, ends = browser.get("/").text, time.monotonic() + (20 if is_changed else 1)
        while (after := browser.get("/").text) == before and time.monotonic() < ends:
            time.sleep(0.02)
        assert (after != before) == is_changed
        return after

    monkeypatch.setattr(live, "REST", 100_000)
    changed()
    last = changed(is_changed=False)
    clock.wait(days=1)
    answer = browser.get("/")
    assert (answer.status_code, answer.text != last) == (200, True)
