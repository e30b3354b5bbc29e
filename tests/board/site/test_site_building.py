"""A board's site: what is read from the database, what is never shown, and how it is written."""

import json
import math
import os
import re
import time
import zipfile
from datetime import timedelta

import numpy as np
import pytest
from raising import refused
from rows import NOW as ROWS_NOW
from rows import Rows
from samples import NOW, files_in, write

from geval_py.board import site
from geval_py.board.operations import submissions
from geval_py.board.site.files import write_site
from geval_py.board.site.view import loaded


@pytest.fixture
def rows(tmp_path):
    """A board with rows of its own: two submitters, a tie, one withdrawn, one infinite."""
    write(tmp_path / "challenge" / "README.md", "# Gazette\n\nGuess.\n")
    write(tmp_path / "challenge" / "dev-0" / "in.tsv", "1\tleft one\tright one\n2\tleft two\tright two\n")
    write(tmp_path / "challenge" / "dev-0" / "expected.tsv", "fox\ndog\n")
    made = Rows(tmp_path, tests="{test-A: {}, dev-0: {visible: true}}", also="[Accuracy]")
    made.submit("ann", 150.0, at=1, tags=["neural"], description="the first")
    made.submit("bob", 150.0, at=2)
    made.submit("eve", math.inf, at=3)
    made.withdrawn = made.submit("dan", 120.0, at=4, description="shy", affiliation="shy too", tags=["shyest"])
    made.withdraw(made.withdrawn)  # with the reason "asked for"
    made.public = made.submit("ann", [0.1, 3.0], test="dev-0", at=5)
    return made


def test_the_public_files_of_the_challenge_are_a_download(rows, tmp_path):
    """Neither hidden answers, wherever they lie, nor links to them."""
    write(tmp_path / "challenge" / "config.txt", "--metric PerplexityHashed\n")
    write(tmp_path / "challenge" / "test-A" / "in.tsv", "1\tleft\tright\n")
    write(tmp_path / "challenge" / "test-A" / "expected.tsv", "secret\n")
    write(tmp_path / "answers" / "test-A" / "expected.tsv", "secret\n")
    (tmp_path / "challenge" / "train").mkdir()
    (tmp_path / "challenge" / "train" / "expected.tsv").symlink_to(tmp_path / "answers" / "test-A" / "expected.tsv")
    site.build(rows.board, str(tmp_path / "public"), now=ROWS_NOW)
    with zipfile.ZipFile(tmp_path / "public" / "data" / "challenge.zip") as archive:
        public = ["README.md", "config.txt", "dev-0/expected.tsv", "dev-0/in.tsv", "test-A/in.tsv"]
        assert sorted(archive.namelist()) == public
    page = (tmp_path / "public" / "submit.html").read_text(encoding="utf-8")
    assert "pip install git+https://github.com/geval-py/geval-py\nunzip challenge.zip -d challenge\n" in page
    assert "geval check . --challenge ../challenge -t test-A\n" in page


def test_what_is_stored_is_shown_but_why_one_was_withdrawn(rows, tmp_path):
    site.build(rows.board, str(tmp_path / "public"), now=ROWS_NOW)
    entries = json.loads((tmp_path / "public/data/leaderboard.test-A.json").read_text())["entries"]
    shown = [(one["place"], one["submitter"], one["score"]) for one in entries]
    assert shown == [(1, "ann", 150.0), (1, "bob", 150.0), (3, "eve", "Infinity")]
    written = files_in(tmp_path / "public")
    assert [name for name, content in written.items() if b"shy" in content or b"asked for" in content] == []
    assert b"Withdrawn on" in written[f"submissions/{rows.withdrawn}.html"]
    rows_of_all = json.loads((tmp_path / "public/data/submissions.json").read_text())["rows"]
    (withdrawn,) = (row for row in rows_of_all if row["state"] == "withdrawn")
    empty = {"reason": "", "description": "", "author": "", "affiliation": "", "tags": [], "params": {}}
    assert {name: withdrawn[name] for name in empty} == empty


def test_the_worst_lines_of_a_public_set_are_shown_and_none_of_a_hidden_one(rows, tmp_path):
    write(tmp_path / "challenge" / "test-A" / "in.tsv", "1\tleft\tright\n2\tleft\tright\n")
    write(tmp_path / "answers" / "test-A" / "expected.tsv", "secret\nsecret\n")
    hidden = rows.submit("ann", [0.1, 3.0], at=6)
    site.build(rows.board, str(tmp_path / "public"), now=ROWS_NOW)
    page = (tmp_path / f"public/submissions/{hidden}.html").read_text()
    assert ('<td class="number">4.' in page, "<mark>" in page) == (True, False)
    page = (tmp_path / f"public/submissions/{rows.public}.html").read_text()
    shown = re.findall(r'<th scope="row" class="number">(\d+)</th><td class="number">([^<]*)</td>(.*?)</tr>', page)
    assert [(line, score) for line, score, _ in shown] == [("2", "20.09"), ("1", "1.105")]
    assert "left two <mark>dog</mark> right two" in shown[0][2]


def test_how_good_the_best_of_several_looks_by_chance(rows, tmp_path):
    """Only where answers are public. The distance of equal systems is drawn with numpy here."""
    losses = {"ann": [0.1, 3.0], "bob": [1.0, 2.0], "eve": [2.0, 1.5]}
    rows.submit("bob", losses["bob"], test="dev-0", at=6)
    rows.submit("eve", losses["eve"], test="dev-0", at=7)
    site.build(rows.board, str(tmp_path / "public"), now=ROWS_NOW)
    columns = np.array(list(losses.values()))
    own = columns - columns.mean(axis=0)
    covariance = np.cov(own) / columns.shape[1]
    means = np.random.default_rng(1).multivariate_normal(np.zeros(3), covariance, 200_000, method="eigh")
    mean = columns.mean()
    seeming = np.exp(mean) - np.exp(mean + means.min(axis=1).mean())
    note = "Note: of 3 equally good entries, the best would seem better than their mean by"
    assert f"{note} {seeming:.2g} words, by chance." in (tmp_path / "public/board.dev-0.html").read_text()
    assert "equally good" not in (tmp_path / "public/index.html").read_text()


def test_of_a_long_line_the_words_near_the_gap_are_shown(rows, tmp_path):
    items = [f"x\t{'f' * 60}{'n' * 60}\t{'n' * 60}{'f' * 60}", f"x\ty\t{'n' * 60}\t{'n' * 60}"]
    write(tmp_path / "challenge/dev-0/in.tsv", "".join(f"{item}\n" for item in items))
    site.build(rows.board, str(tmp_path / "public"), now=ROWS_NOW)
    page = (tmp_path / f"public/submissions/{rows.public}.html").read_text()
    near = "n" * 60
    contexts = re.findall(r'<td class="context">(.*?) <mark>.*?</mark> (.*?)</td>', page)
    assert contexts == [(near, near), (f"…{near}", f"{near}…")]


def test_the_same_bytes_when_built_twice_and_later(rows, tmp_path):
    site.build(rows.board, str(tmp_path / "one"), now=ROWS_NOW)
    site.build(rows.board, str(tmp_path / "other"), now=ROWS_NOW + timedelta(days=400))
    assert files_in(tmp_path / "one") == files_in(tmp_path / "other")


MARK = '{"generator": "geval-py"}'


def test_an_older_site_stands_until_the_new_one_is_whole(tmp_path):
    place = tmp_path / "public"
    write_site(str(place), [("site.json", MARK), ("index.html", "old")])

    def breaking():
        yield "site.json", MARK
        assert (place / "index.html").read_text() == "old"
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_site(str(place), breaking())
    assert (place / "index.html").read_text() == "old"
    assert os.listdir(tmp_path) == ["public"]
    write_site(str(place), [("site.json", MARK), ("index.html", "new")])
    assert files_in(tmp_path) == {"public/site.json": MARK.encode(), "public/index.html": b"new"}


def test_what_a_killed_run_left_is_removed_after_an_hour(tmp_path):
    for name, age in ((".geval-board-site-old", 3700), (".geval-board-site-new", 3500)):
        write(tmp_path / name / "new" / "first.html", "half")
        os.utime(tmp_path / name, (time.time() - age, time.time() - age))
    write_site(str(tmp_path / "public"), [("index.html", "whole")])
    assert sorted(os.listdir(tmp_path)) == [".geval-board-site-new", "public"]


def test_of_two_runs_the_site_of_the_later_end_stays(tmp_path):
    def beside_another():
        write_site(str(tmp_path / "public"), [("first.html", "whole")])
        yield "last.html", "whole"

    write_site(str(tmp_path / "public"), beside_another())
    assert files_in(tmp_path) == {"public/last.html": b"whole"}


@pytest.mark.parametrize("name", ["folder", "file", "link"])
def test_only_a_site_is_replaced(tmp_path, rows, name):
    reason = "Directory not empty" if name == "folder" else "Not a directory"
    write(tmp_path / "folder" / "thesis.tex", "years of work")
    write(tmp_path / "file", "text")
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    with refused(f"Cannot write `{tmp_path / name}`: {reason}"):
        site.build(rows.board, str(tmp_path / name), now=ROWS_NOW)
    assert (tmp_path / "folder" / "thesis.tex").read_text() == "years of work"


def test_a_site_on_each_database(board, submission, tmp_path):
    links = "links: [{title: it, url: https://example.org/it}]"
    told = f"description: good\ntags: [a, b]\naffiliation: Acme <b>\n{links}\n"
    place = submission("ann", 0.5, tests=("test-A", "dev-0"), gonito=told)
    receipt = submissions.add(board, str(place), now=NOW)
    site.build(board, str(tmp_path / "public"), now=NOW)
    page = (tmp_path / "public" / "submissions" / f"{receipt.code}.html").read_text()
    assert "<p>good</p>" in page
    index = (tmp_path / "public" / "index.html").read_text()
    assert receipt.code in index
    assert '<span class="affiliation">Acme &lt;b&gt;</span>' in index
    assert '<a href="https://example.org/it" rel="nofollow noopener">it</a>' in index
    assert "<dt>Affiliation</dt><dd>Acme &lt;b&gt;</dd>" in page
    with loaded(board, now=NOW) as view:
        assert [one.tags for one in view.submissions] == [["a", "b"]]
