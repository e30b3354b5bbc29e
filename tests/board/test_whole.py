"""From an empty folder to a published board, and back from its export: gazette, its answers kept apart, 14 submissions.

All is done by the command line, on PostgreSQL and with --long on SQLite too; what it must say stands in expected/.
"""

import csv
import io
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from gazette import SOURCE, TEST, answers_of, hide_answers, letters, uploads, write
from samples import files_in, frozen, set_keys, without_limits
from story import Story

from geval_py import evaluate

pytestmark = pytest.mark.usefixtures("children")

EXPECTED = Path(__file__).with_name("expected")
SETTINGS = {
    "phases": "[{name: main, until: 2025-01-31T23:59:00+01:00}]", "submissions_a_day": 3,
    "transports": "[https, file]", "samples": 2000,
}  # fmt: skip
CHANGED_LINE, CORRECTED = 3, "qxjr"  # an answer that was wrong; to that which is right, only kim gave anything


def tell(folder, database):
    """Use all commands; gives the folder, and what each step printed on standard output."""
    challenge, answers = hide_answers(folder)
    story, said = Story(folder), {}
    board = folder / "board"
    story.fine("init", board, "--challenge", challenge, "--answers", answers, "--database", database)
    without_limits(board)
    set_keys(board, **SETTINGS)
    said["scan"] = story.fine("scan", board, uploads(folder / "uploads"), "--at", "2025-01-10T12:00:00Z")
    receipts = [story("add", board, *words) for words in letters(folder / "letters")]
    said["add"] = "\n".join(f"{status} {(out or err).splitlines()[0]}" for status, out, err in receipts) + "\n"
    said["before"] = story.fine("show", board, "--phase", "main")
    rows = csv.DictReader(io.StringIO(story.fine("show", board, "--phase", "main", "--format", "csv")))
    code = next(row["code"] for row in rows if row["submitter"] == "ivy")
    story.fine("withdraw", board, code, "--reason", "trained on the test set")
    story.fine("note", board, said["scan"].split()[0], "first of all")
    for phase in ("main", "post-deadline"):
        said[phase] = story.fine("show", board, "--phase", phase)
    said["submission"] = story.fine("show", board, "--phase", "main", "--by", "submission")
    for form in ("csv", "json"):
        said[form] = story.fine("show", board, "--phase", "main", "--format", form)
    said["status"] = story.fine("status", board)
    _rescore(story, board, answers, said)
    story.fine("site", board, "-o", folder / "site")
    story.fine("backup", board, folder / "board.tar.zst")
    story.fine("restore", folder / "imported", folder / "board.tar.zst")
    said["imported"] = story.fine("show", folder / "imported", "--phase", "main")
    story.fine("site", folder / "imported", "-o", folder / "imported-site")
    return SimpleNamespace(folder=folder, said=said)


def _rescore(story, board, answers, said):
    """Put an answer right; what it changes is said before it is published."""
    words = answers_of(answers)
    words[CHANGED_LINE - 1] = CORRECTED
    write(answers / TEST / "expected.tsv", "".join(f"{word}\n" for word in words))
    said["outdated"] = story.fine("status", board).partition("\n\n")[0] + "\n"
    said["dry-run"] = story.fine("rescore", board, "--dry-run")
    said["after-dry-run"] = story.fine("show", board, "--phase", "main")
    said["rescore"] = story.fine("rescore", board)
    said["again"] = story.fine("rescore", board)
    said["rescored"] = story.fine("show", board, "--phase", "main")


@pytest.fixture(scope="module", params=[pytest.param("sqlite", marks=pytest.mark.long), "postgresql"])
def told(request, tmp_path_factory):
    is_file = request.param == "sqlite"
    place = "board.sqlite" if is_file else request.getfixturevalue("postgresql").new_database()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("GEVAL_BOARD_DATABASE", raising=False)
        yield tell(tmp_path_factory.mktemp("whole"), place)


STEPS = (
    "scan", "add", "before", "main", "post-deadline", "submission", "csv", "status",
    "outdated", "dry-run", "rescore", "again", "rescored",
)  # fmt: skip


@pytest.mark.parametrize("step", STEPS)
def test_the_board_says_what_is_expected(told, step):
    assert told.said[step] == frozen(EXPECTED / f"{step}.txt", told.said[step])


def entries(told):
    return {entry["submitter"]: entry for entry in json.loads(told.said["json"])["entries"]}


@pytest.mark.filterwarnings("ignore:.*lines is infinite")
@pytest.mark.parametrize(("name", "output"), [
    ("ann", "uploads/ann/test-A/out.tsv"), ("bea", "uploads/ann/test-A/out.tsv"),
    ("fay", "letters/fay/test-A/out-model=trigram,k=3.tsv"), ("lou", "letters/lou/test-A/out.tsv"),
    ("eve", "uploads/eve/test-A/out.tsv"),
])  # fmt: skip
def test_a_score_is_that_of_the_scorer(told, name, output):
    scored = evaluate(SOURCE, TEST, output=told.folder / output, metric="PerplexityHashed").score
    assert float(entries(told)[name]["score"]) == float(f"{scored:.4g}")  # of JSON, "Infinity" is a text


def test_a_dry_run_publishes_nothing(told):
    assert told.said["after-dry-run"] == told.said["main"]


def test_an_imported_board_says_the_same(told):
    assert told.said["imported"] == told.said["rescored"]
    assert files_in(told.folder / "imported-site") == files_in(told.folder / "site")


def test_an_archive_is_not_written_over(tmp_path, geval, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("board.tar").write_bytes(b"mine")
    refused = "geval: `board.tar` is there already, and is left as it is\n  --force writes over it\n"
    assert geval("board", "backup", "board", "board.tar") == (2, "", refused)
    assert Path("board.tar").read_bytes() == b"mine"
