"""The documentation's site: all is listed, nothing is broken, and a browser can read and search it."""

import re
import subprocess
import sys
from codeop import compile_command
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from axe import axe_findings
from build_docs import CODE, DOCS, LINK, NAME, contents, pages, stage
from examples import ROOT

import geval_py

WIDE, NARROW = 1280, 390
SEARCHED = {  # what students, modellers, organisers and maintainers of CI jobs type
    "missing rest": "rules.html", "invalid utf-8": "rules.html", "malformed line": "check.html",
    "plot": "report.html", "command line options": "options.html", "out.tsv": "scoring.html",
    "perplexity": "glossary.html#perplexity", "rest mass": "glossary.html", "latex table": "compare.html",
    "confidence interval": "intervals.html", "calibration": "calibration.html", "ensemble": "improve.html",
    "pandas": "python.html", "evaluate": "api.html#geval_py.evaluate", "KenLM": "models.html",
    "cross-validation": "glossary.html#cross-validation", "BLEU": "texts.html", "benchmark": "speed.html",
    "leaderboard": "board.html", "hidden answers": "authoring.html", "login": "accounts.html",
    "exit status": "formats.html", "geval check": "check.html", "github actions": "check.html",
    "hand in": "first-submission.html", "too few lines": "refused.html",
    "what does :0.1 at the end mean": "scoring.html", "PerplexityHashed": "scoring.html",
    "is the difference significant": "compare.html", "run tests on windows": "install.html",
    "what does calibration xyzzy": "calibration.html",
    "twice on a line": "refused.html#a-word-stands-twice-on-a-line",
}  # fmt: skip


def read(path):
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def staged(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    stage(folder)
    return folder


def test_every_page_is_in_the_table_of_contents_once():
    listed = [(DOCS / link).resolve() for links in contents(read(DOCS / "index.md")).values() for _, link in links]
    assert sorted(listed) == sorted(pages().keys() - {DOCS / "index.md"})


def test_the_names_of_pages_differ():
    names = pages().values()
    assert len(set(names)) == len(names)


def test_the_gallery_comes_second_and_shows_all_pictures_with_their_text():
    assert next(iter(contents(read(DOCS / "index.md")).values())) == [("Gallery", "gallery.md")]
    shown = dict(re.findall(r"!\[(.*)\]\((.*)\)", read(DOCS / "gallery.md")))
    pictures = sorted((DOCS / "pictures").iterdir())
    assert sorted(shown.values()) == [path.relative_to(DOCS).as_posix() for path in pictures]
    assert min(map(len, shown)) > 50
    assert max(path.stat().st_size for path in pictures) <= 60_000


def test_links_lead_to_pages_and_files_of_the_site(staged):
    links = [(page.name, link) for page in staged.glob("*.md") for link, _ in LINK.findall(CODE.sub("", read(page)))]
    assert len(links) > 150
    assert [(name, link) for name, link in links if not is_there(staged, link)] == []
    assert "](schema:scores.json)" in read(staged / "formats.md")


def is_there(staged, link):
    """Whether a link leads to a page or a file, or to a schema, which the build copies."""
    schema = link.removeprefix("schema:")
    return (staged / link).is_file() or (schema != link and (DOCS / "schemas" / schema).is_file())


def test_code_is_left_as_it_is(staged):
    """To the letter, but for the empty lines of Python sessions."""

    def blocks(path):
        return re.findall(r"(?ms)^```(?:console|pycon)\n.*?^```$", re.sub(r"(?m)^\.\.\.\n", "", read(path)))

    for page, name in pages().items():
        assert blocks(staged / f"{name}.md") == blocks(page)


def test_the_api_lists_each_public_name_once():
    listed = NAME.findall(read(DOCS / "api.md"))
    assert len(set(listed)) == len(listed)
    assert {name for name in listed if "." not in name} == {*geval_py.__all__} - {"__version__"}


def test_the_glossary_is_in_order():
    words = re.findall("(?m)^## (.*)$", read(DOCS / "glossary.md"))
    assert len(words) > 30
    assert words == sorted(words, key=str.lower)


def run_build(folder, output):
    """Build staged pages in a process of their own, as Sphinx keeps much in its modules; return its status and its words."""
    code = "import sys; from build_docs import *; sys.exit(build(*map(Path, sys.argv[1:])))"
    words = [sys.executable, "-c", code, str(folder), str(output)]
    run = subprocess.run(words, cwd=ROOT / "scripts", capture_output=True, text=True, encoding="utf-8", check=False)
    return run.returncode, run.stderr


BROKEN = {
    "[there](other.md)": "'other.md'", "[there](index.md#nowhere)": "'nowhere'",
    "## Two\n\n#### Four": "Non-consecutive header level",
    "```{eval-rst}\n.. autofunction:: geval_py.evil\n```": "failed to import 'evil'",
    "```{eval-rst}\n:class:`geval_py.Evil`\n```": "geval_py.Evil",
    "```{eval-rst}\n:func:`evaluates`\n```": "evaluates",
}  # fmt: skip


@pytest.mark.long
def test_what_is_broken_fails_the_build(tmp_path):
    pages = "\n\n".join(["# Index", "```{toctree}\npage\nmissing\n```", *BROKEN])
    (tmp_path / "index.md").write_text(pages)
    (tmp_path / "page.md").write_text("# Page\n")
    (tmp_path / "stray.md").write_text("# Stray\n")
    status, said = run_build(tmp_path, tmp_path / "built")
    assert status == 1
    said_of_contents = ("nonexisting document 'missing'", "stray.md: WARNING: document isn't included in any toctree")
    assert [words for words in (*BROKEN.values(), *said_of_contents) if words not in said] == []


@pytest.fixture(scope="module")
def site(staged, tmp_path_factory):
    output = tmp_path_factory.mktemp("site")
    assert run_build(staged, output) == (0, "")
    return output


@pytest.fixture(scope="module")
def address(site):
    """The address of a server of the site: axe-core wants to read style sheets, which a browser refuses from a disk."""
    with served(site) as found:
        yield found


@contextmanager
def served(folder):
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.long
def test_the_site_describes_each_public_name(site):
    described = re.findall(r'id="geval_py\.(\w+)"', read(site / "api.html"))
    described += re.findall(r'id="module-geval_py\.(\w+)"', read(site / "api.html"))
    assert set(geval_py.__all__) - {"__version__"} <= set(described)


@pytest.mark.long
def test_the_schemas_are_published_under_their_names(site, open_address):
    page = open_address((site / "formats.html").as_uri())
    links = [link.get_attribute("href") for link in page.locator("a[href$='.json']").all()]
    assert sorted(links) == sorted(f"schemas/{path.name}" for path in (DOCS / "schemas").iterdir())
    assert all((site / link).is_file() for link in links)


@pytest.mark.long
@pytest.mark.parametrize(("width", "scheme"), [(WIDE, "light"), (WIDE, "dark"), (NARROW, "light"), (NARROW, "dark")])
def test_axe_finds_nothing(address, open_address, width, scheme):
    page = open_address(address, width=width, scheme=scheme)
    for name in ("index", "api", "options", "rules", "geval", "first-submission", "gallery", "genindex", "search"):
        page.goto(f"{address}/{name}.html")
        assert (name, axe_findings(page)) == (name, [])
    assert {asked.split("/")[2] for asked in page.asked} == {address.removeprefix("http://")}
    assert page.said == []


@pytest.mark.long
def test_no_page_scrolls_sideways_on_a_phone_or_asks_another_host(site, open_address):
    page = open_address(site.as_uri() + "/index.html", width=NARROW)
    for path in sorted(site.glob("*.html")):
        page.goto(path.as_uri())
        assert (path.name, page.evaluate("document.documentElement.scrollWidth")) == (path.name, NARROW)
    assert [asked for asked in page.asked if not asked.startswith(("file:", "data:"))] == []
    assert page.said == []


def unfinished(pasted):
    """Return the lines of no whole statement after code is pasted into an interpreter, and Enter pressed."""
    lines = []
    for line in [*pasted.splitlines(), ""]:
        lines.append(line)
        if compile_command("\n".join(lines)):
            lines = []
    return lines


@pytest.mark.long
def test_what_is_copied_of_a_session_can_be_pasted_into_python(site, open_address):
    page = open_address((site / "index.html").as_uri(), permissions=["clipboard-read"])
    sessions = 0
    for path in site.glob("*.html"):
        page.goto(path.as_uri())
        for block in page.locator(".highlight-pycon").all():
            block.hover()
            block.locator("button.copybtn").click()
            copied = page.evaluate("navigator.clipboard.readText()")
            assert (path.name, copied, unfinished(copied)) == (path.name, copied, [])
            sessions += 1
    assert sessions > 50


@pytest.mark.long
@pytest.mark.parametrize(("phrase", "found"), SEARCHED.items())
def test_the_search_finds(phrase, found, site, open_address):
    """From a disk, where no page may fetch another."""
    page = open_address((site / "scoring.html").as_uri())
    page.fill(".sidebar-search", phrase)
    page.press(".sidebar-search", "Enter")
    page.wait_for_selector("text=Search finished")
    links = page.locator("#search-results li a")
    shown = [links.nth(n).get_attribute("href") for n in range(min(3, links.count()))]
    assert found in [link.partition("?")[0] for link in shown]
    assert page.said == []
    links.nth(shown.index(found)).click()
    page.wait_for_url(f"**/{found.partition('#')[0]}*")
    assert page.locator("h1").count() == 1
