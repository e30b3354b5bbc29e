"""The pages of a site, from what is shown: safe against what strangers wrote, small, linked, the same each time."""

import csv
import io
import json
import re
from dataclasses import replace
from posixpath import dirname, join, normpath
from xml.etree import ElementTree

import pytest
import site_views
from site_views import Reader, html_of, made

from geval_py.board.settings import Test
from geval_py.board.site import pages
from geval_py.board.site.pages import MAX_OUTPUTS
from geval_py.board.site.rendering import POLICY, link_of, markdown_html

MAX_BYTES = 500_000
ATOM = "{http://www.w3.org/2005/Atom}"


@pytest.fixture(scope="module")
def files():
    return made(site_views.view())


def test_each_page_has_the_policy_and_keeps_it(files):
    for path, text in html_of(files).items():
        page = Reader(text)
        metas = [meta for meta in page.all("meta") if meta.get("http-equiv") == "Content-Security-Policy"]
        assert [meta["content"] for meta in metas] == [POLICY], path
        assert page.all("style") == [], path
        assert all(script.get("src", "").endswith("static/board.js") for script in page.all("script")), path
        handlers = [name for _, attributes in page.tags for name in attributes if name == "style" or name[:2] == "on"]
        assert handlers == [], path
    assert POLICY.startswith("default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'")


def test_what_strangers_wrote_is_escaped(files):
    for path, text in files.items():
        if path.endswith((".html", ".xml")):
            assert "<img" not in text, path
            assert "javascript:" not in re.findall(r'(?:href|src)="([^"]*)', text), path
            assert not [c for c in text if not c.isprintable() and c != "\n"], path


def test_links_lead_to_pages_of_the_site_or_are_not_followed(files):
    for path, text in html_of(files).items():
        page = Reader(text)
        for tag, name in (("a", "href"), ("link", "href"), ("script", "src")):
            for attributes in page.all(tag):
                address, _, anchor = attributes[name].partition("#")
                if address.startswith(("http://", "https://")):
                    assert "nofollow" in attributes["rel"], (path, address)
                elif address:
                    assert normpath(join(dirname(path), address)) in files, (path, address)
                assert tag != "a" or address or anchor == "main"


@pytest.mark.parametrize(("url", "leads"), [
    ("https://example.org/a?b=c#d", True), ("http://example.org", True), ("HTTPS://EXAMPLE.ORG", True),
    ("javascript:alert(1)", False), (" javascript:alert(1)", False), ("java\nscript:alert(1)", False),
    ("data:text/html,x", False), ("file:///etc/passwd", False), ("//example.org", False), ("https://", False),
    ("https://[", False), ("https://example.org/a b", False), ("https://example.org/\u202egnp", False),
    ("https://example.org/" + "a" * 2000, False),
])  # fmt: skip
def test_only_web_pages_are_linked(url, leads):
    assert link_of(url) == (url if leads else None)


def test_the_link_of_a_stranger_is_marked(files):
    page = Reader(next(text for path, text in files.items() if path.startswith("submissions/") and "evil" in text))
    assert {"href": "https://example.org/x", "rel": "nofollow noopener"} in page.all("a")
    assert "javascript:alert(1)" in page.words  # said, not linked


@pytest.mark.parametrize("number", [56, pytest.param(560, marks=pytest.mark.long)])
def test_no_page_is_too_large_and_all_rows_are_there(number, monkeypatch):
    """Of a board on which each submission has an entry of its own, with the rows of pages as they are by --long."""
    monkeypatch.setattr(pages, "ROWS_OF_A_PAGE", rows_of_a_page := 200 * number // 560)
    monkeypatch.setattr(pages, "SUBMISSIONS_OF_A_PAGE", 250 * number // 560)
    many = made(site_views.view(site_views.submissions_of(number, number - 1)))
    assert max(len(text.encode()) for path, text in html_of(many).items()) < MAX_BYTES
    boards = [many["index.html"], *(many[f"board.test-A.{page}.html"] for page in (2, 3))]
    rows = [row for board in boards for row in re.findall(r'<tr role="row"[^>]*data-choices', board)]
    total = len(json.loads(many["data/leaderboard.test-A.json"])["entries"])
    assert len(rows) == total
    second = f"{rows_of_a_page + 1} to {2 * rows_of_a_page}"
    assert f"{total} entries; this page shows, sorts and filters rows {second}" in Reader(boards[1]).words
    listed = [text for path, text in many.items() if path.startswith("submissions") and "/" not in path]
    assert (len(listed), sum(text.count('<th scope="row"') for text in listed)) == (3, number)


@pytest.mark.slow
@pytest.mark.parametrize("submissions", [60, pytest.param(230, marks=pytest.mark.long)])
def test_long_texts_do_not_make_a_page_large(submissions):
    found = [
        replace(
            one, submitter=f"{'<' * 500}{number}", description='"' * 5000, remark="&" * 5000,
            tags=tuple(f"{'&' * 100}{tag}" for tag in range(50)),
            params={f"{'<' * 100}{name}": '"' * 100 for name in range(50)},
            outputs=tuple(replace(output, variant="<" * 200) for output in one.outputs),
        )
        for number, one in enumerate(site_views.submissions_of(submissions, submissions - 1))
    ]  # fmt: skip
    files = made(site_views.view(found))
    sizes = {path: len(text.encode()) for path, text in html_of(files).items()}
    assert {path: size for path, size in sizes.items() if size >= MAX_BYTES} == {}


def test_nothing_of_a_withdrawn_submission_is_shown_but_that(files):
    row = next(row for row in json.loads(files["data/submissions.json"])["rows"] if row["state"] == "withdrawn")
    page = Reader(files[f"submissions/{row['code']}.html"]).words.partition("Withdrawn on")
    assert (page[1], "PerplexityHashed" in page[2].partition("Last change")[0]) == ("Withdrawn on", False)
    assert row["code"] not in files["data/outputs.csv"] + files["feed.xml"] + files["index.html"]


@pytest.mark.parametrize(("state", "says"), [
    ("rejected", "Rejected, not ranked. test-A/out.tsv, line 7: the probabilities sum to 1.2"),
    ("rejected", "E101 test-A/out.tsv 7 the probabilities sum to 1.2"),
    ("failed", "Failed, not ranked. scoring took more than 600 seconds"),
])  # fmt: skip
def test_what_is_not_ranked_is_listed_with_its_reason(files, state, says):
    row = next(row for row in json.loads(files["data/submissions.json"])["rows"] if row["state"] == state)
    assert says in Reader(files[f"submissions/{row['code']}.html"]).words
    assert row["code"] in files["submissions.html"]
    assert row["code"] not in files["index.html"]


def hidden(one):
    return replace(one, outputs=tuple(replace(output, figures={}) for output in one.outputs))


def test_no_score_before_the_deadline_where_none_is_disclosed():
    found = tuple(hidden(one) for one in site_views.view().submissions)
    files = made(site_views.view(digits=0, changes={"phases": site_views.PHASES}, submissions=found))
    figures = re.compile(r"\b(1[0-9]{2}\.[0-9]|0\.[0-9]{4})\b")
    for path, text in files.items():
        if not path.startswith("static/"):
            assert figures.findall(Reader(text).words if path.endswith(".html") else text) == [], path
    for page in ("index.html", "progress.test-A.html"):
        assert "The scores of test-A are not shown before 31 Jan 2027, 23:00 UTC." in Reader(files[page]).words


def test_csv_and_json_say_the_same(files):
    keys = {"leaderboard.test-A": ("entries", "code"), "outputs": ("rows", "score"), "submissions": ("rows", "code")}
    for name, (rows, key) in keys.items():
        table = list(csv.DictReader(io.StringIO(files[f"data/{name}.csv"])))
        document = json.loads(files[f"data/{name}.json"])[rows]
        assert [row[key] for row in table] == [str(row[key]) for row in document] != []


def test_the_best_so_far_moves_only_to_better_scores(files):
    table = files["progress.test-A.html"].partition("Changes of the best score")[2]
    scores = [float(score) for score in re.findall(r'<td class="number">([\d.]+)</td>', table)]
    assert scores == sorted(set(scores))
    assert len(scores) > 1


def test_the_feed_is_atom_with_tag_ids(files):
    feed = ElementTree.fromstring(files["feed.xml"])
    assert feed.findtext(f"{ATOM}id") == "tag:boards.example.org,2026:board/gazette"
    entries = feed.findall(f"{ATOM}entry")
    ids = [entry.findtext(f"{ATOM}id") for entry in entries]
    assert len(set(ids)) == len(ids) > 20
    assert all(re.fullmatch(r"tag:boards\.example\.org,2026-10-\d\d:[0-9a-f]{12}", one) for one in ids)
    links = [entry.find(f"{ATOM}link").get("href") for entry in entries]
    assert all(link.startswith("https://boards.example.org/gazette/submissions/") for link in links)
    for entry in [feed, *entries]:
        assert all(entry.findtext(f"{ATOM}{name}") for name in ("id", "title", "updated")), "RFC 4287 wants these"
    updated = [one.findtext(f"{ATOM}updated") for one in (feed, *entries)]
    assert updated == sorted(updated, reverse=True)


def test_the_feed_of_a_board_without_an_address_and_without_submissions():
    feed = ElementTree.fromstring(made(site_views.view([], changes={"url": ""}))["feed.xml"])
    assert re.fullmatch(r"tag:geval\.invalid,2026:board/[0-9a-f]{16}", feed.findtext(f"{ATOM}id"))
    assert feed.find(f"{ATOM}link").get("href") == "feed.xml"
    assert feed.findall(f"{ATOM}entry") == []


def test_an_empty_board_has_all_pages():
    files = made(site_views.view([]))
    assert "There are no entries yet." in Reader(files["index.html"]).words
    assert "There is no score to draw yet." in Reader(files["progress.test-A.html"]).words
    assert "No parameter has two values yet." in Reader(files["parameters.test-A.html"]).words
    assert "It takes two scored submissions." in Reader(files["compare.test-A.html"]).words


def test_a_shared_place_has_a_sign_and_a_baseline_none(files):
    assert '<td role="cell" class="place">3=</td>' in files["index.html"]
    row = next(row for row in files["index.html"].split("<tr ") if 'class="baseline"' in row)
    assert (">–</td>" in row, ">baseline</span>" in row) == (True, True)


def test_phases_have_a_table_and_a_best_each():
    files = made(site_views.view(changes={"phases": site_views.PHASES}, phase="post-deadline"))
    late = Reader(files["board.test-A.post-deadline.html"]).words
    assert "This is the table of the phase “post-deadline”, which is open." in late
    assert "best after the deadline, " in late
    assert "best, " in Reader(files["index.html"]).words
    assert "data/leaderboard.test-A.main.csv" in files


def test_submissions_are_compared_with_those_of_their_phase():
    view = site_views.of_two_phases()
    rows = [row for row in Reader(made(view)["compare.test-A.html"]).all("tr") if "data-code" in row]
    for phase in ("main", "post-deadline"):
        of_phase = [row for row in rows if row["data-phase"] == phase]
        assert {row["data-code"] for row in of_phase} == {one.code for one in view.standings["test-A", phase].entries}
        assert any(row["data-groups"] != "[]" for row in of_phase)
    assert rows[0]["data-phase"] == "main"
    assert len({row["data-code"] for row in rows}) == len(rows)


LINE = {"line": 7, "score": 1024.0, "expected": "<b>fox</b>", "before": "the quick", "after": "jumps"}


def test_lines_are_escaped():
    changes = {"tests": (Test(name="test-A", visible=True),)}
    files = made(site_views.view(changes=changes, lines_of=lambda *_: [LINE]))
    assert any("fox" in text for text in files.values())
    assert not any("<b>" in text for text in html_of(files).values())


def test_of_very_many_outputs_some_are_left_to_the_data():
    one = site_views.submissions_of(2, 1)[1]
    output = one.outputs[0]
    outputs = tuple(replace(output, id=number, variant=f"k={number}") for number in range(MAX_OUTPUTS + 3))
    files = made(site_views.view([replace(one, outputs=outputs)]))
    assert "3 outputs more in CSV." in Reader(files[f"submissions/{one.code}.html"]).words


def test_advice_stands_on_the_page_of_an_entry(files):
    entry = json.loads(files["data/leaderboard.test-A.json"])["entries"][3]
    page = Reader(files[f"submissions/{entry['code']}.html"])
    advice = page.words.partition("What it would take to change places ")[2]
    assert "Place 1 needs a PerplexityHashed below " in advice


@pytest.mark.parametrize(("markdown", "html"), [
    ("<script>alert(1)</script>", "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>\n"),
    ("![alt](https://example.org/x.png)", "<p>alt</p>\n"),
    ("[a](https://example.org)", '<p><a href="https://example.org" rel="nofollow noopener">a</a></p>\n'),
    ("[a](train/)", "<p><a>a</a></p>\n"), ("[a](javascript:alert(1))", "<p>[a](javascript:alert(1))</p>\n"),
    ("    code <b>", '<pre tabindex="0"><code>code &lt;b&gt;\n</code></pre>\n'),
], ids=["html", "image", "link", "relative link", "script link", "code"])  # fmt: skip
def test_the_readme_is_tamed(markdown, html):
    assert str(markdown_html(markdown)) == html


def test_a_table_of_the_readme_scrolls_in_its_box():
    html = str(markdown_html("| a | b |\n|---|--:|\n| 1 | 2 |\n"))
    assert html.startswith('<div class="scroll" role="region" tabindex="0" aria-label="Table"><table>')
    assert (html.count('<th class="number" scope="col">b</th>'), "style" in html) == (1, False)


def test_infinite_scores_are_shown_and_not_drawn(files):
    assert "with an infinite score" in Reader(files["progress.test-A.html"]).words
    one = replace(site_views.submissions_of(41, 40)[11], submitter="lost")  # whose only score is infinite
    assert 'data-key="Infinity">∞</td>' in made(site_views.view([one]))["index.html"]


def test_how_to_submit_says_how_each_ranked_test_set_is_checked(files):
    text = Reader(files["submit.html"]).words
    check = "geval check . --challenge PATH-OF-THE-CHALLENGE"
    assert f"for each test set that has outputs: {check} -t test-A {check} -t dev-0" in " ".join(text.split())
