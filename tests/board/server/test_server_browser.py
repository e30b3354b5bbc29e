"""The server in a browser: invited, signed in, a file dropped, rejected with its line, corrected, scored, placed, out."""

import re
import threading

import pytest
from axe import axe_findings
from playwright.sync_api import expect
from samples import GOOD
from serving import listening
from sqlalchemy import select
from test_several import folder, several

from geval_py.board.database.schema import submissions

assert folder, several  # fixtures
pytestmark = [pytest.mark.no_cover, pytest.mark.slow]
WIDE, NARROW = ("wide", 1280, "light"), ("narrow", 390, "dark")


def drop(page, text):
    expect(page).to_have_url(re.compile("/me$"))
    page.wait_for_load_state()
    script = "text => { const data = new DataTransfer(); data.items.add(new File([text], 'out.tsv')); return data; }"
    page.dispatch_event("[data-archives]", "drop", {"dataTransfer": page.evaluate_handle(script, text)})
    page.get_by_role("button", name="Send").click()
    expect(page).to_have_url(re.compile("/me/uploads/[0-9a-f]{12}$"))


@pytest.mark.parametrize(("screen", "width", "scheme"), [NARROW, pytest.param(*WIDE, marks=pytest.mark.long)])
def test_a_submitter_walks_through(served, address, open_address, screen, width, scheme):
    looked = []

    def look(page):
        assert axe_findings(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate("document.querySelector('header nav').offsetHeight") < 45  # pixels: one line
        looked.append(page.url)

    page = open_address(address + served.invite("anna"), width=width, scheme=scheme)
    look(page)
    page.get_by_role("button", name="Sign in").press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("anna")
    look(page)
    drop(page, GOOD.replace(":", ";", 1))
    expect(page.get_by_role("status").locator(".state")).to_have_text("rejected", timeout=20_000)
    row = page.get_by_role("region", name="Problems").locator("tbody tr").first
    expect(row.locator("td").nth(1)).to_have_text("1")
    look(page)
    page.get_by_role("link", name="My page").click()
    drop(page, GOOD)
    expect(page.get_by_role("status").locator(".state")).to_have_text("scored", timeout=20_000)
    page.goto(address)
    expect(page.get_by_role("main")).to_contain_text("anna")
    look(page)
    page.get_by_role("link", name="anna", exact=True).first.click()
    page.goto(f"{address}/me")
    uploads = page.get_by_role("region", name="Uploads").locator("tbody tr")
    expect(uploads.first.get_by_role("cell").nth(3)).to_have_text("test-A: 2.038, place 1")
    tops = [cell.bounding_box()["y"] for cell in uploads.first.get_by_role("cell").all()[:4]]
    assert (tops == sorted(set(tops))) == (screen == "narrow")  # a card has its cells one below another
    label = "getComputedStyle(document.querySelector('td[data-label=Score]'), '::before').content"
    assert page.evaluate(label) == ('"Score: "' if screen == "narrow" else "none")
    look(page)
    page.get_by_role("button", name="Make a token").click()
    expect(page.locator("pre code")).to_have_text(re.compile(r"^[\w-]{43}$"))
    look(page)
    page.get_by_role("link", name="Back to my page").click()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("link", name="My page").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    page.goto(f"{address}/me")
    expect(page).to_have_url(f"{address}/sign-in")
    look(page)
    assert len(looked) == 7
    assert page.said == []
    assert [url for url in page.asked if not url.startswith(address)] == []


def test_it_works_without_scripts(served, address, browser, tmp_path):
    (tmp_path / "out.tsv").write_text(GOOD)
    page = browser.new_page(java_script_enabled=False)
    page.goto(address + served.invite("bob"))
    page.get_by_role("button", name="Sign in").click()
    page.get_by_label("An archive, or one output such as out.tsv").set_input_files(tmp_path / "out.tsv")
    page.get_by_role("button", name="Send").click()
    page.wait_for_url("**/me/uploads/*")  # else the page is loaded again while the form is being sent
    reload_until(page, page.get_by_role("status"), "scored")
    page.close()


@pytest.mark.parametrize(("screen", "width", "scheme"), [WIDE, pytest.param(*NARROW, marks=pytest.mark.long)])
def test_an_organiser_walks_through_by_keyboard_alone(served, address, open_address, screen, width, scheme):
    served.token("anna").put("/upload/out.tsv?test=test-A", GOOD)
    while not (codes := served.rows(select(submissions.c.code))):
        threading.Event().wait(0.1)

    def fill(label, text):
        page.get_by_label(label).focus()
        page.keyboard.type(text)

    def press(name):
        page.get_by_role("button", name=name, exact=True).focus()
        page.keyboard.press("Enter")
        page.wait_for_load_state()

    def ask(name):
        question = page.locator("details", has=page.locator(f"summary[aria-label='{name}']"))
        question.locator("summary").press("Enter")
        expect(question).to_have_attribute("open", "")
        look()

    def tab(name):
        page.get_by_role("navigation", name="Organiser’s pages").get_by_role("link", name=name).press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("Organiser" if name == "Now" else name)

    def look():
        assert axe_findings(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width

    page = open_address(address + served.invite("olga", role="organiser"), width=width, scheme=scheme)
    press("Sign in")
    page.get_by_role("link", name="The organiser’s page").press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Organiser")
    look()
    fill("For everybody, in Markdown", "test-B opens on *Monday*")
    press("Announce")
    expect(page.get_by_role("button", name="Take back announcement 1")).to_be_visible()
    tab("Submissions")
    rows = page.get_by_role("region", name="Submissions")
    ask(f"Remark {codes[0]}")
    fill("The remark", "a bigram")
    press(f"Remark {codes[0]}")
    expect(rows).to_contain_text("a bigram")
    ask(f"Withdraw {codes[0]}")
    fill("The reason, for organisers", "a copy")
    page.get_by_label("its score disappears from the tables, and it is listed as withdrawn").press("Space")
    press(f"Withdraw {codes[0]}")
    expect(rows.locator(".state")).to_have_text("withdrawn")
    look()
    press(f"Undo withdrawal {codes[0]}")
    expect(rows.locator(".state")).to_have_text("scored")
    fill("Search", "nobody")
    press("Search")
    expect(page.get_by_role("status")).to_have_text("0 submissions with “nobody”")
    look()
    tab("Settings")
    fill("Team, as on the leaderboard", "anna")
    fill("More submissions a day", "2")
    fill("The reason, for organisers", "a broken file")
    press("Extend")
    expect(page.get_by_role("main")).to_contain_text("anna: 2 more submissions a day (a broken file)")
    look()
    tab("Now")
    for button, name in (("Dry run", "Dry run"), ("Score again", "Rescoring")):
        press(button)
        reload_until(page, page.locator(".notice", has_text=f"{name} asked for by olga"), "done")
    expect(page.get_by_text("nothing is out of date").first).to_be_visible()
    look()
    tab("People")
    look()
    fill("Name of the person to invite (an existing account gets a new link)", "bob")
    press("Make a link")
    expect(page.locator("pre code")).to_contain_text(f"{address}/invitation/")
    page.goto(f"{address}/organiser/log")
    expect(page.get_by_role("main").locator("tbody tr").first).to_contain_text("invited")
    look()
    page.goto(f"{address}/organiser/alike")
    look()
    page.goto(address)
    expect(page.get_by_role("main")).to_contain_text("test-B opens on Monday")
    look()
    assert page.said == []
    assert [url for url in page.asked if not url.startswith(address)] == []


def test_the_front_page_of_several_boards_fits_and_is_accessible(several, unused_port, open_address):
    several.server.url = f"http://127.0.0.1:{unused_port}/course"
    link = f"http://127.0.0.1:{unused_port}{several.invite('anna')}"
    with listening(several.app, several.folder, several.clock, unused_port, workers=0):
        page = open_address(link, width=390, scheme="dark")
        page.get_by_role("button", name="Sign in").press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("Challenges")
        assert axe_findings(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.said == []


def reload_until(page, notice, state):
    """Load the page again until a notice on it has a state."""
    expect(notice).to_be_visible()
    for _ in range(200):
        page.reload()
        if notice.locator(".state").inner_text() == state:
            break
        page.wait_for_timeout(100)
    expect(notice.locator(".state")).to_have_text(state)
