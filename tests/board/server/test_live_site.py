"""The site of a server: which pages are served while another site is built."""

from serving import ADDRESS, Browser, Clock, set_keys

from geval_py.board.server import live
from geval_py.board.server.app import application
from geval_py.board.server.context import ServerContext

BUILDER = """
import os, sys
os.mkdir(sys.argv[2])
open(os.path.join(sys.argv[2], "index.html"), "w").write(os.path.basename(sys.argv[2]))
"""


def test_no_page_of_an_earlier_phase_is_served_after_its_deadline(sqlite_board, tmp_path, monkeypatch):
    monkeypatch.setattr(live, "BUILDER", BUILDER)
    monkeypatch.setattr(live, "FAILED_SECONDS", 0.05)
    set_keys(sqlite_board, phases="[{name: main, until: 2027-01-10T13:00:00Z}]")
    clock = Clock()
    server = ServerContext(sqlite_board.folder, str(tmp_path), url=ADDRESS, clock=clock)
    browser = Browser(application(server))
    server.site.start()
    try:
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
    finally:
        server.site.stop()
