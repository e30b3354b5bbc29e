"""How places changed since the last published site: twice, elsewhere, before and after an export, on a private copy."""

import re

import pytest
from rows import NOW, Rows
from samples import NOW as SCORED_NOW
from site_views import Reader

from geval_py.board import site
from geval_py.board.exports import export, verify
from geval_py.board.operations import submissions


@pytest.fixture
def rows(tmp_path):
    """A board with ann before bob, whose site was published."""
    made = Rows(tmp_path)
    made.submit("ann", 150.0, at=1)
    made.submit("bob", 160.0, at=2)
    published(made, tmp_path / "first")
    return made


def published(rows, folder, **more):
    """Make a site; gives the places in its table with their changes, and the page's text."""
    rows.refresh()
    site.build(rows.board, str(folder), now=NOW, **more)
    text = (folder / "index.html").read_text(encoding="utf-8")
    cells = re.findall(r'<td role="cell" class="place">(.*?)</td>', text)
    names = re.findall(r'<th role="rowheader" scope="row" class="who" data-key="(.*?)"', text)
    return dict(zip(names, (Reader(cell).words for cell in cells), strict=True)), Reader(text).words


MOVED = {"eve": "1new", "bob": "2", "ann": "3▼down 2"}
NOTE = (
    "The marks ▲ and ▼ below a place show by how many places the entry moved since the last site, "
    "which had what arrived until 1 Jan 2027, 14:00 UTC."
)


def move(rows):
    """Eve comes first, bob passes ann."""
    rows.submit("eve", 120.0, at=3)
    rows.submit("bob", 140.0, at=4)


def test_the_first_site_has_no_changes(rows, tmp_path):
    places, text = published(rows, tmp_path / "again")
    assert places == {"ann": "1", "bob": "2"}
    assert "moved since" not in text


def test_changes_since_the_last_site_are_shown(rows, tmp_path):
    move(rows)
    places, text = published(rows, tmp_path / "first")
    assert places == MOVED
    assert NOTE in text


def test_one_that_moves_up(rows, tmp_path):
    rows.submit("bob", 140.0, at=4)
    assert published(rows, tmp_path / "first")[0] == {"bob": "1▲up 1", "ann": "2▼down 1"}


@pytest.mark.parametrize("folder", ["first", "elsewhere"])
def test_a_site_that_is_made_twice_or_elsewhere_shows_the_same(rows, tmp_path, folder):
    move(rows)
    first = published(rows, tmp_path / "first")
    assert published(rows, tmp_path / folder) == first
    rows.submit("dan", 999.0, state="rejected", at=5)  # which moves nobody
    assert published(rows, tmp_path / folder)[0] == MOVED


def test_the_organisers_copy_does_not_count_as_published(rows, tmp_path):
    move(rows)
    assert published(rows, tmp_path / "private", organiser=True)[0] == MOVED
    assert published(rows, tmp_path / "first")[0] == MOVED


def test_a_table_that_had_no_places_has_no_changes(rows, tmp_path):
    rows.edit(tests="{test-A: {}, test-B: {}}")
    rows.submit("ann", 120.0, at=6, test="test-B")
    published(rows, tmp_path / "first")
    text = (tmp_path / "first" / "board.test-B.html").read_text(encoding="utf-8")
    assert 'class="place">1</td>' in text


@pytest.mark.parametrize("exported", ["before", "after"])
def test_a_site_with_changes_can_be_verified(sqlite_board, submission, tmp_path, exported):
    submissions.add(sqlite_board, str(submission("ann", 0.3)), now=SCORED_NOW)
    site.build(sqlite_board, str(tmp_path / "public"), now=SCORED_NOW)
    submissions.add(sqlite_board, str(submission("bob", 0.5)), now=SCORED_NOW)
    archive = str(tmp_path / "board.tar")
    if exported == "before":
        export(sqlite_board, archive, now=SCORED_NOW)
    site.build(sqlite_board, str(tmp_path / "public"), now=SCORED_NOW)
    if exported == "after":
        export(sqlite_board, archive, now=SCORED_NOW)
    assert "down" in (tmp_path / "public" / "index.html").read_text(encoding="utf-8")
    assert verify(str(tmp_path / "public"), archive) == []
