"""A course: forty people, two challenges, late work, corrected answers, grades.

The organiser and three students use a browser, the others send the same forms.
"""

import csv
import io
import re
import time
from pathlib import Path

import pytest
from axe import axe_findings
from deployed import waiting
from playwright.sync_api import expect
from samples import frozen, output, without_limits
from serving import Browser, Several, listening, set_keys

from geval_py.board.database.store import Board
from geval_py.cli.board import boards, server

pytestmark = pytest.mark.no_cover
EXPECTED = Path(__file__).parents[1] / "expected"
PEOPLE = """\
name,email,team
Adam Nowak,adam@uni.example,
Ewa Zielińska,ewa@uni.example,Night owls
Ola Wójcik,ola@uni.example,Night owls
Jan Kowalski,jan@uni.example,
Jan Kowalski (2),jan.k@uni.example,
Tom Baran,tom@uni.example,
T. Baran,torn@uni.example,
Mallory,mallory@uni.example,Team 4
Max,max@uni.example,Team 4
=2+5,formula@uni.example,
""" + "".join(f"Student {number},s{number}@uni.example,Pair {(number + 1) // 2}\n" for number in range(11, 41))
MAIN = "[{name: main, until: 2027-01-31T22:59:00Z}]"
WIDE, NARROW = {"width": 1280, "scheme": "light"}, {"width": 390, "scheme": "dark"}


class Course:
    """The folder ``boards`` with the boards ``gap``, which has a deadline and a private part, and ``bible``."""

    def __init__(self, place, challenge, geval, port):
        self.place, self.geval = place, geval
        for name in ("gap", "bible"):
            self.fine("init", place / "boards" / name, "--challenge", challenge, "--answers", place / "answers")
            set_keys(without_limits(place / "boards" / name), title=f"Guess the {name}", submissions_a_day=2)
        keys = {"phases": MAIN, "seed": 728190312, "finals": 1, "tests": "{test-A: {split: 50 %, disclosed: 3}}"}
        set_keys(Board.open(place / "boards" / "gap"), **keys)
        self.several = Several(place / "boards", place / "place", url=f"http://127.0.0.1:{port}")
        self.url = self.several.server.url

    def fine(self, command, *words):
        status, out, err = self.geval("board", command, *map(str, words))
        assert status == 0, err
        return out

    def joined(self, link):
        """A program in place of a browser, in which a link was opened."""
        browser = Browser(self.several.app)
        assert browser.post(link.removeprefix(self.url)).headers["location"] == "/"
        return browser

    def send(self, browser, board, text):
        """Send an output of test-A by the form; gives the status of the answer."""
        form = {"files": {"file": ("out.tsv", text)}, "data": {"test": "test-A"}}
        return browser.post(f"/{board}/me/upload", **form).status_code

    def settle(self):
        """Wait until all is scored."""
        for one in self.several.server.boards:
            while waiting(one.board()):
                time.sleep(0.1)


@pytest.fixture
def course(tmp_path, challenge, geval, unused_port, monkeypatch):
    made = Course(tmp_path, challenge, geval, unused_port)
    for module in (boards, server):
        monkeypatch.setattr(module, "now", made.several.clock)
    with listening(made.several.app, made.several.folder, made.several.clock, unused_port):
        yield made


class Person:
    """Somebody with a browser of their own, in which their link was opened."""

    def __init__(self, course, open_address, link, width=1280, **more):
        self.course, self.width = course, width
        self.page = open_address(link, width=width, **more)
        self.press("Sign in")
        expect(self.page.get_by_role("heading", level=1)).to_have_text("Challenges")

    def go(self, path):
        self.page.goto(f"{self.course.url}{path}")

    def press(self, name):
        self.page.get_by_role("button", name=name, exact=True).click()
        self.page.wait_for_load_state()

    def upload(self, board, text):
        """Send an output by one's own page, and see it scored; gives its code."""
        self.go(f"/{board}/me")
        file = {"name": "out.tsv", "mimeType": "text/plain", "buffer": text.encode()}
        self.page.get_by_label("An archive, or one output such as out.tsv").set_input_files(file)
        self.press("Send")
        expect(self.page).to_have_url(re.compile("/me/uploads/[0-9a-f]{12}$"))
        expect(self.page.get_by_role("status").locator(".state")).to_have_text("scored", timeout=30_000)
        return self.page.locator("a[href*='submissions/']").first.inner_text()

    def look(self):
        """See that a page keeps the rules of accessibility, fits its screen, and said and loaded nothing else."""
        assert axe_findings(self.page) == []
        assert self.page.evaluate("document.documentElement.scrollWidth") <= self.width
        assert self.page.said == []
        assert [url for url in self.page.asked if not url.startswith((self.course.url, "blob:"))] == []

    def download(self, name):
        with self.page.expect_download(timeout=10_000) as made:
            self.page.get_by_role("link", name=name).or_(self.page.get_by_role("button", name=name)).click()
        return Path(made.value.path()).read_text(encoding="utf-8-sig")


def skill(number):
    return 0.2 + 0.015 * number


@pytest.mark.slow
def test_an_organisers_course(course, open_address):
    place, clock = course.place, course.several.clock
    boards, gap, listed = place / "boards", place / "boards/gap", place / "people.csv"

    listed.write_text(PEOPLE, encoding="utf-8")
    rows = csv.DictReader(io.StringIO(course.fine("invite", boards, "--list", listed, "--url", course.url)))
    links = {row["email"].partition("@")[0]: row["link"] for row in rows}
    assert len(links) == 40
    link = course.fine("invite", boards, "Olga", "--role", "organiser", "--url", course.url).strip()
    olga = Person(course, open_address, link)

    # Everybody but two opens the link. Of a pair, one member sends; the other never opens a board.
    adam, ewa, jan = (
        Person(course, open_address, links.pop(name), **screen)
        for name, screen in (("adam", WIDE), ("ewa", WIDE), ("jan.k", NARROW))
    )
    adam.look()
    left = {name: links.pop(name) for name in ("s39", "s40")}
    people = {name: course.joined(link) for name, link in links.items()}
    for number in range(11, 38, 2):
        assert course.send(people[f"s{number}"], "gap", output("test-A", skill(number), number)) == 303
        assert course.send(people[f"s{number + 1}"], "bible", output("test-A", skill(number), number)) == 303
    for name, own in (("tom", 0.7), ("torn", 0.65), ("formula", 0.5), ("jan", 0.55), ("mallory", 0.9)):
        assert course.send(people[name], "gap", output("test-A", own)) == 303
    adam.upload("gap", output("test-A", 0.6))
    adam.upload("gap", output("test-A", 0.8))
    adam.go("/gap/me")
    expect(adam.page.get_by_role("main")).to_contain_text("2 of 2 submissions of 2027-01-10 (UTC) are used")
    row = adam.page.get_by_role("row", name=re.compile("test-A: 1")).last
    row.get_by_role("button", name="name as final").click()
    expect(adam.page.get_by_role("button", name="final: undo")).to_be_visible()
    adam.look()
    course.settle()

    # Who never came gets a new link; the old one, for both boards, opens the other board only.
    olga.go("/gap/organiser/people")
    expect(olga.page.get_by_role("main")).to_contain_text("2 people never signed in")
    again = {row["name"]: row["link"] for row in csv.DictReader(io.StringIO(olga.download("Download links.csv")))}
    assert sorted(again) == ["Student 39", "Student 40"]
    old = Browser(course.several.app)
    assert old.post(left["s39"].removeprefix(course.url)).status_code == 303
    assert (old.get("/gap/me").status_code, old.get("/bible/me").status_code) == (303, 200)
    one = Browser(course.several.app)
    assert one.post(again["Student 39"].removeprefix(course.url)).headers["location"] == "/gap/me"

    # A member of a team is banned on both boards.
    for board in ("gap", "bible"):
        assert course.fine("close", boards / board, "Mallory") == "Mallory (Team 4) is closed\n"
        assert people["mallory"].get(f"/{board}/me").headers["location"] == f"/{board}/sign-in"
    olga.go("/gap/organiser/people?q=team+4")
    expect(olga.page.get_by_role("row", name="Mallory")).to_contain_text("closed")
    olga.page.locator("summary[aria-label='Close the account Max (Team 4)']").click()
    question = re.compile("sessions, tokens, links by this account")
    expect(olga.page.get_by_role("checkbox", name=question)).to_be_visible()
    olga.look()

    # After the deadline: one team has an extension, another one has not.
    clock.wait(days=22)
    course.fine("extend", gap, "Night owls", "--until", "2027-02-03 23:59 Europe/Warsaw", "--reason", "ill", "--yes")
    course.settle()
    ewa.go("/gap/me")
    expect(ewa.page.get_by_role("main")).to_contain_text("main is open until 3 Feb 2027, 22:59")
    ewa.look()
    ewa.upload("gap", output("test-A", 0.75))
    jan.go("/gap/me")
    expect(jan.page.get_by_role("main")).to_contain_text("The last deadline was 31 Jan 2027")
    jan.upload("gap", output("test-A", 0.85))
    jan.go("/gap/me")
    jan.look()

    # Wrong answers are corrected, and all is scored again.
    expected = place / "answers/test-A/expected.tsv"
    answers = expected.read_text().split("\n")
    expected.write_text("\n".join([*(f"word{29 - number}" for number in range(5)), *answers[5:]]))
    for name in ("gap", "bible"):
        assert "its answers or the seed changed" in course.fine("rescore", boards / name, "--dry-run")
        course.fine("rescore", boards / name)
        assert "nothing is out of date" in course.fine("status", boards / name)
    course.settle()

    # Grades: the button and the command give the same.
    for name in ("gap", "bible"):
        olga.go(f"/{name}/organiser/people")
        grades = olga.download("Download grades")
        assert grades == course.fine("show", boards / name, "--by", "person", "--format", "csv")
        grades = re.sub(r",[0-9a-f]{12}\b", ",CODE", grades)  # an upload has a random one
        assert grades == frozen(EXPECTED / f"course-{name}.csv", grades)
    olga.look()
