"""What a site says in words: where to submit, how to cite, until when, groups, and intervals."""

from datetime import UTC, datetime

import pytest
import site_views
from rows import settings
from site_views import Reader, html_of, made

from geval_py.board.settings import Phase
from geval_py.board.site.rendering import span
from geval_py.errors import ConfigError

MARKDOWN = """\
Open a pull request in [gazette](https://example.org/gazette).

1. <script>alert(1)</script>
2. [no](javascript:alert(1))
"""


def test_how_to_submit_says_where_or_whom_to_ask():
    text = made(site_views.view(changes={"submit": MARKDOWN}))["submit.html"]
    page = Reader(text)
    assert "Where Open a pull request in gazette." in page.words
    assert {"href": "https://example.org/gazette", "rel": "nofollow noopener"} in page.all("a")
    assert "alert(1)</script>" in page.words
    assert len(page.all("script")) == 1  # our own
    assert "javascript:" not in "".join(link.get("href", "") for link in page.all("a"))
    page = Reader(made(site_views.view())["submit.html"])
    assert "Ask the organiser where to send it." in page.words


def test_how_to_cite_stands_with_the_challenge_and_every_page_leads_there():
    cite = "Cite the *overview*:\n\n```bibtex\n@inproceedings{a, title = {<b>}}\n```\n"
    files = made(site_views.view(changes={"cite": cite}))
    assert "How to cite Cite the overview:" in Reader(files["challenge.html"]).words
    assert "title = {&lt;b&gt;}" in files["challenge.html"]
    assert all("challenge.html#cite" in text for text in html_of(files).values())
    assert not any("How to cite" in text for text in made(site_views.view()).values())


def test_board_yaml_has_both_texts():
    of = settings(submit='"Write to *us*"', cite="|\n  two\n  lines")
    assert (of.submit, of.cite) == ("Write to *us*", "two\nlines")
    with pytest.raises(ConfigError, match="`submit` must be a single value"):
        settings(submit="[a]")


def test_a_deadline_stands_as_a_moment_and_the_time_left_is_for_a_script():
    phases = (Phase(name="dev", until=datetime(2026, 12, 31, 23, tzinfo=UTC)), *site_views.PHASES)
    files = made(site_views.view(changes={"phases": phases}))
    for path in ("index.html", "submit.html"):
        page = Reader(files[path])
        assert "until 31 Dec 2026, 23:00 UTC = 31 Dec, 11:00 AoE" in page.words
        moments = [one["data-until"] for one in page.all("span") if "data-until" in one]
        assert (moments[0], " left" in page.words) == ("2026-12-31T23:00:00Z", False)


@pytest.mark.parametrize(("low", "high", "digits", "text"), [
    (512.34, 598.12, 5, "512–599"), (512.3, 598.1, 4, "512–599"), (2.005, 2.302, 4, "2.00–2.31"),
    (99.12, 101.3, 4, "99.1–101.3"), (8123.0, 14540.0, 4, "8100–14600"), (400.0, 700.0, 1, "400–700"),
    (0.01234, 0.01239, 4, "0.01234–0.01239"),  # no digits are made up
    (1000.0, 1000.0, 1, "1000–1000"), (-3.256, 4.118, 4, "−3.3–4.2"), (0.0, 0.3333, 4, "0–0.34"),
    (130.2, float("inf"), 4, "130.2–∞"),
])  # fmt: skip
def test_an_interval_has_no_more_digits_than_its_width_needs(low, high, digits, text):
    assert span(low, high, digits) == text
