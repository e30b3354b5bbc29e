"""What a site says of submitters over time: their pages, lists with scores, and charts of the best so far."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest
import site_views
from site_views import HOSTILE, START, Reader, made

from geval_py.board.ranking.views import Figures
from geval_py.board.site import files as writing
from geval_py.board.site.pages import MAX_LINKS
from geval_py.board.site.site_charts import progress_of

TEAM = "Team 003"


@pytest.fixture(scope="module")
def view():
    """A board on which each submission but the first has an affiliation and links."""
    links = ("paper", "https://example.org/paper"), ("x", "javascript:alert(1)")
    found = [
        replace(one, affiliation="ETH <b>Zürich</b>", links=one.links if one.submitter == HOSTILE else links)
        for one in site_views.submissions_of(40, 12)
    ]
    return site_views.view(found)


@pytest.fixture(scope="module")
def files(view):
    return made(view)


def page_of(files, name):
    return files[writing.Addresses.submitter(name)]


def test_each_submitter_has_a_page_with_all_submissions(view, files):
    for name in {one.submitter for one in view.submissions}:
        page = page_of(files, name)
        codes = re.findall(r'<th scope="row"><a class="code" href="\.\./submissions/(\w+)\.html"', page)
        assert codes == [one.code for one in view.submissions if one.submitter == name]
    pages = [path for path in files if path.startswith("submitters/")]
    assert len(pages) == len({one.submitter for one in view.submissions})
    assert all(re.fullmatch(r"submitters/[0-9a-f]{12}\.html", path) for path in pages)


def test_the_page_of_a_submitter_has_affiliation_links_places_and_a_chart(view, files):
    text = page_of(files, TEAM)
    words = Reader(text).words
    assert "ETH <b>Zürich</b>" in words
    assert {"href": "https://example.org/paper", "rel": "nofollow noopener"} in Reader(text).all("a")
    place = next(one.place for one in view.standings["test-A", ""].entries if one.submitter == TEAM)
    assert f"test-A {place} " in words
    assert text.count('<svg class="chart') == 4  # of two tests, wide and narrow


def test_pages_lead_to_the_page_of_a_submitter(view, files):
    address = writing.Addresses.submitter(TEAM)
    code = next(one.code for one in view.submissions if one.submitter == TEAM)
    assert f'href="{address}"' in files["submissions.html"]
    assert f'href="../{address}"' in files[f"submissions/{code}.html"]
    number = sum(one.submitter == TEAM for one in view.submissions)
    assert f'<a href="{address}">{number} submissions</a>' in files["index.html"]


def test_of_very_many_submissions_of_one_submitter_the_latest_are_listed():
    found = site_views.submissions_of(270, 1)
    words = Reader(page_of(made(site_views.view(found)), "Team 000")).words
    number = sum(one.submitter == "Team 000" for one in found)
    assert (number > 250, f"{number} submissions" in words) == (True, True)
    assert "These are the latest 250; CSV has all." in words


def test_affiliations_and_links_stand_in_the_table(files):
    row = next(row for row in files["index.html"].split("<tr ") if TEAM in row)
    assert '<span class="affiliation">ETH &lt;b&gt;Zürich&lt;/b&gt;</span>' in row
    assert '<a href="https://example.org/paper" rel="nofollow noopener">paper</a>' in row
    assert "javascript" not in row


def test_of_many_links_the_first_stand_in_the_table():
    links = tuple((f"link {number}", f"https://example.org/{number}") for number in range(MAX_LINKS + 1))
    found = [replace(one, links=links) for one in site_views.submissions_of(3, 2)]
    page = made(site_views.view(found))["index.html"]
    assert set(re.findall(r">(link \d)<", page)) == {f"link {number}" for number in range(MAX_LINKS)}


def with_scores(scores, hours):
    """Submissions with these scores, the latest first, of which each came some hours after the one before."""
    found, sent = site_views.submissions_of(len(scores), len(scores)), []
    for number, (one, score) in enumerate(zip(found, scores, strict=True)):
        outputs = [replace(output, figures={"PerplexityHashed": Figures(value=score)}) for output in one.outputs[:1]]
        moment = START + timedelta(hours=hours * number)
        sent[:0] = [replace(one, arrived=moment, baseline=False, outputs=tuple(outputs))] if outputs else []
    return tuple(sent), site_views.standings_of([], "test-A")


def test_entries_of_one_moment_are_one_record_without_a_chart():
    progress = progress_of(*with_scores([300.0, 200.0, 100.0, 150.0], hours=0))
    assert [one.score for one in progress.records] == [100.0]
    assert progress.charts == []


@pytest.mark.parametrize(("value", "is_drawn"), [(140.0, False), (150.0, True), (340.0, True), (360.0, False)])
def test_a_baseline_is_drawn_if_it_is_near(value, is_drawn):
    (*others, first), standings = with_scores([value, 200.0, 250.0], hours=1)
    baseline = replace(first, baseline=True)
    entry = site_views.entry_of(baseline, baseline.outputs[0], value, None)
    progress = progress_of([*others, baseline], replace(standings, entries=(entry,)))
    assert all(("stroke-dasharray" in chart.svg) == is_drawn for chart in progress.charts)
    assert [one.score for one in progress.baselines] == [value] * is_drawn
