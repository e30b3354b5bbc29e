"""No answer leaks: nothing that is written for others is made of hidden answers, but the disclosed scores."""

import io
import json
import re
import sqlite3
import tarfile
import zipfile
from contextlib import closing
from itertools import product

import pytest
from gazette import TEST, answers_of, hide_answers, letters, output, uploads, write
from samples import set_keys, without_limits
from story import Story

from geval_py.board.database.store import Board
from geval_py.board.references import references_of
from geval_py.reading.compression import zstd_module
from geval_py.reading.files import File
from geval_py.reading.lines import sha256_of
from geval_py.tables.numbers import interval

pytestmark = pytest.mark.no_cover  # what is run here is run in the tests of the commands and of the site
CANARIES = {7: "zqcanaryone", 8: "zqcanarytwo", 60: "zqcanarythree", 123: "zqcanaryfour"}  # by the line
WITHIN = {"phases": "[{name: main, until: 2999-01-31T23:59:00+01:00}]"}
MOMENT = re.compile(rb"\d\d:\d\d:\d\d(\.\d+)?")  # whose seconds may be the digits of a score by chance
SETTINGS = {"samples": 200, "transports": "[https, file]"}


def answer(answers, changed):
    words = answers_of(answers)
    for line, word in changed.items():
        words[line - 1] = word
    write(answers / TEST / "expected.tsv", "".join(f"{word}\n" for word in words))


def new_board(folder, changed, **settings):
    """A new board of gazette with other answers; gives its story, its folder and that of the answers."""
    challenge, answers = hide_answers(folder)
    answer(answers, changed)
    story = Story(folder)
    story.fine("init", folder / "board", "--challenge", challenge, "--answers", answers)
    without_limits(folder / "board")
    set_keys(folder / "board", **SETTINGS, **settings)
    return story, folder / "board", answers


def use_every_command(story, board, answers, *, disclosed):
    """Run each command, also where it fails; all that is written for others is then in the folder ``published``."""
    set_keys(board, tests=f"{{test-A: {disclosed}, dev-0: {{visible: true}}}}", **WITHIN)
    folder = story.folder
    story("scan", board, uploads(folder / "uploads"))
    several, *_, branch, baseline = letters(folder / "letters")
    for one in (several, branch, baseline):
        story("add", board, *one)
    short = write(folder / "short" / TEST / "out.tsv", "a:1 :0\n")
    write(folder / "twice" / TEST / "out.tsv", output(0.5) + ":1\n")
    for source in (short.parents[1], folder / "twice", folder / "nowhere", "git+file:///nowhere@main"):
        story("add", board, source, "--format", "json")
    codes = re.findall(r"(?m)^[0-9a-f]{12}(?=\t)", story("status", board)[1])
    story("withdraw", board, codes[3], "--reason", "asked for")
    story("note", board, codes[4], "late")
    answer(answers, {9: "zqcanaryfive"})
    story("rescore", board, "--dry-run", "--format", "json")
    story("rescore", board)
    _break_answers(story, board, answers)
    for form, by in product(("text", "json", "csv", "markdown", "latex"), ("submitter", "submission")):
        story("show", board, "--format", form, "--by", by)
    story("status", board)
    story("status", board, "--format", "json")
    story("show", board, "-t", "test-B")
    story.fine("site", board, "-o", folder / "published/site")
    story.fine("backup", board, folder / "whole.tar")


def _break_answers(story, board, answers):
    path = answers / TEST / "expected.tsv"
    content = path.read_bytes()
    for broken in (content[:100], content.replace(b"zqcanaryone", b"zqcanaryone\xff\tzqcanaryone")):
        path.write_bytes(broken)
        story("add", board, story.folder / "letters/hal", "--submitter", f"bad{len(broken)}")
        story("rescore", board, "--dry-run")
        story("status", board)
    path.write_bytes(content)


def unpacked(content):
    """Yield some bytes, and all that is packed in them: members of archives, columns of databases."""
    yield content
    if content.startswith(b"\x28\xb5\x2f\xfd"):
        yield from unpacked(zstd_module().decompress(content))
    elif content.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            yield from (part for name in archive.namelist() for part in (name.encode(), archive.read(name)))
    elif content[257:262] == b"ustar":
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            for member in archive:
                yield member.name.encode()
                yield from unpacked(archive.extractfile(member).read())
    elif content.startswith(b"SQLite format 3\x00"):
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.deserialize(content)
            tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            for table in tables:
                for row in connection.execute(f"SELECT * FROM {table}"):
                    yield from (part for value in row if isinstance(value, bytes) for part in unpacked(value))


def published(story):
    """All bytes that others may come to see, by where they are: files, and what commands printed."""
    yield from (("printed", text.encode()) for text in story.said)
    for path in sorted((story.folder / "published").rglob("*")):
        yield path.name, path.name.encode()
        if path.is_file():
            yield from ((path.name, part) for part in unpacked(path.read_bytes()))


def secrets_of(board, answers):
    """Canary words, and digests by which a guess at the answers could be proved right."""
    answers_digest = sha256_of(File(str(answers / TEST / "expected.tsv")))
    references = {digest for (test, _), digest in references_of(Board.open(board).settings).items() if test == TEST}
    return [b"zqcanary", answers_digest.encode(), *(reference.encode() for reference in references)]


NO_DIGITS = pytest.param("{disclosed: 0}", marks=pytest.mark.long)


@pytest.fixture(scope="module", params=[NO_DIGITS, "{disclosed: 2, ladder: true}"])
def told(request, tmp_path_factory):
    story, board, answers = new_board(tmp_path_factory.mktemp("leaks"), CANARIES)
    use_every_command(story, board, answers, disclosed=request.param)
    return story, board, answers, request.param


def test_no_byte_that_is_written_tells_an_answer(told):
    story, board, answers, _ = told
    secrets = secrets_of(board, answers)
    assert {where for where, content in published(story) if any(one in content.lower() for one in secrets)} == set()


def test_canaries_are_found_where_they_are(told):
    parts = unpacked((told[0].folder / "whole.tar").read_bytes())
    assert any(b"zqcanary" in part for part in parts)


def test_no_more_digits_are_shown_than_are_disclosed(told):
    """A score in four digits stands nowhere, be it that of the best entry or of one that was replaced."""
    story, board, _, _ = told
    with closing(sqlite3.connect(board / "board.sqlite")) as connection, connection:
        query = "SELECT DISTINCT score FROM evaluations WHERE test = 'test-A' AND score BETWEEN 2 AND 1000"
        written = {f"{score:.4g}".encode() for (score,) in connection.execute(query)}
    scores = {score for score in written if len(score) == len(b"2.718")}  # one that ends with 0 is written shorter
    assert len(scores) > 5
    parts = ((where, MOMENT.sub(b"", content)) for where, content in published(story))
    assert {where for where, rest in parts if any(score in rest for score in scores)} == set()


def site_of(folder, changed):
    """Build the site of a board that differs from another in its answers alone; gives its pages and its scores."""
    story, board, _ = new_board(folder, changed, **WITHIN)
    story.fine("scan", board, uploads(folder / "uploads"), "--at", "2025-01-10T12:00:00Z")
    story.fine("site", board, "-o", folder / "site")
    site = folder / "site"
    pages = {path.relative_to(site): path.read_text(errors="replace") for path in site.rglob("*.*")}
    with closing(sqlite3.connect(board / "board.sqlite")) as connection, connection:
        return pages, set(connection.execute("SELECT score FROM evaluations WHERE test = 'test-A'"))


FIGURE = re.compile(r"\d+(?:\.\d+)?")


@pytest.mark.slow
def test_an_answer_changes_disclosed_figures_alone(tmp_path):
    one, scores = site_of(tmp_path / "one", {})
    other, other_scores = site_of(tmp_path / "other", {40: "zqother"})
    assert scores != other_scores  # the answer does count
    assert one.keys() == other.keys()
    assert [path for path, text in one.items() if without_figures(text) != without_figures(other[path])] == []
    assert "index.html" in {str(path) for path, text in one.items() if other[path] != text}
    outputs = next(text for path, text in one.items() if path.name == "outputs.json")
    disclosed = figures_in(outputs) | set(rounded_ends(outputs))
    new = {figure for path, text in one.items() for figure in figures_in(text) - figures_in(other[path])}
    assert {figure for figure in new if float(figure) not in set(map(float, disclosed))} == set()


def rounded_ends(outputs):
    """The ends of disclosed intervals as pages round them: to two digits of the disclosed width."""
    for row in json.loads(outputs)["rows"]:
        if isinstance(row["low"], float) and isinstance(row["high"], float):
            yield from interval(row["low"], row["high"], 4)


def without_figures(text):
    return FIGURE.sub("#", without_drawings(text))


def figures_in(text):
    return set(FIGURE.findall(without_drawings(text)))


def without_drawings(text):
    return re.sub(r"(?s)<svg.*?</svg>", "", text)
