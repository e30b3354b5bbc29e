"""``geval board``: each command's words, output, and exit status."""

import csv
import json
import re

import pytest
from samples import set_keys, without_limits

from geval_py.cli.commands import COMMANDS, Command, summaries


@pytest.fixture
def there(geval, challenge, tmp_path, monkeypatch):
    """Make a board in the folder ``board`` by the command, and go to the folder above it."""
    monkeypatch.chdir(tmp_path)
    assert geval("board", "init", "board", "--challenge", "challenge", "--answers", "answers")[0] == 0
    without_limits(tmp_path / "board")
    return geval


def test_init(geval, challenge, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = "board", "init", "board", "--challenge", "challenge"
    assert geval(*words, "--answers", "answers", "--title", "T")[::2] == (0, "")
    assert "title: T\n" in (tmp_path / "board" / "board.yaml").read_text()
    refused = "geval: `board/board.yaml` is a board already\n  edit it, or name another folder\n"
    assert geval(*words) == (2, "", refused)
    (tmp_path / "board" / "board.yaml").unlink()
    (tmp_path / "answers" / "test-A" / "expected.tsv").rename(challenge / "test-A" / "expected.tsv")
    note = "the answers are in the challenge's folder: publish it without them, or name others with --answers"
    assert geval(*words)[::2] == (0, f"geval: note: {note}\n")


THERE = "the commands are " + ", ".join(summaries("board"))


HELP = "\n  geval board add --help shows the options"


@pytest.mark.parametrize(("words", "message"), [
    ((), f"a command of geval board is missing\n  {THERE}"),
    (("qqq",), f"there is no command `geval board qqq`\n  {THERE}"),
    (("shwo",), f"there is no command `geval board shwo`\n  did you mean show? {THERE}"),
    (("add", "board", "x", "--at", "2027-01-31 23:59"), "argument --at: `2027-01-31 23:59` is not a time with one time "
     f"zone; write it as 2027-01-31T23:59:00+01:00, 2027-01-31T22:59:00Z or 2027-01-31 23:59 Europe/Warsaw{HELP}"),
    (("add", "board"), f"the following arguments are required: SUBMISSION{HELP}"),
    (("withdraw", "board", "abcd"), "a withdrawal needs a reason, which `geval board status` shows"),
], ids=["none", "unknown", "misspelt", "a moment without a zone", "no submission", "no reason"])  # fmt: skip
def test_what_is_wrong_with_the_words(words, message, there):
    assert there("board", *words) == (2, "", f"geval: {message}\n")


def test_no_board(geval, tmp_path):
    message = f"geval: No board: `{tmp_path}/board.yaml`\n  create one with geval board init BOARD --challenge DIR\n"
    assert geval("board", "status", str(tmp_path)) == (1, "", message)


def test_an_extra_that_is_missing_is_named(geval, monkeypatch):
    monkeypatch.setitem(COMMANDS, "board show", Command("", "jinja2.missing"))
    packages = "'alembic>=1.13' 'markdown-it-py>=3' 'pydantic>=2.9' 'sqlalchemy>=2.0.30'"
    message = f"geval: geval board needs jinja2.missing, of the extra board: pip install {packages}\n"
    assert geval("board", "show") == (2, "", message)


def test_add_prints_receipts_and_goes_on_behind_what_is_not_there(there, submission):
    submission("ann")
    submission("mal", lines=3)
    words = "board", "add", "board"
    status, out, err = there(*words, "none", "uploads/ann", "uploads/mal", "--at", "2026-01-31 23:59 Europe/Warsaw")
    assert (status, err) == (1, "geval: No submission: `none`\n")
    first, second = out.split("\n\n")
    received = r"[0-9a-f]{12}  scored\n  submitter   ann\n  submission  ann\n  arrived     2026-01-31T22:59:00Z"
    assert re.match(received, first)
    assert re.match(r"[0-9a-f]{12}  rejected: `test-A/out.tsv`: the output has 3 lines", second)
    status, out, _ = there(*words, "uploads/ann", "--format", "json")
    (receipt,) = json.loads(out)["receipts"]
    assert (status, receipt["state"], receipt["arrived"]) == (0, "scored", "2026-01-31T22:59:00Z")
    assert list(receipt["files"]) == ["test-A/out.tsv"]
    out = there(*words, "uploads/ann", "--submitter", "Ann's", "--baseline")[1]
    assert "  submitter   Ann's\n" in out
    assert "  quota       does not count: a baseline of the organiser\n" in out


def test_scan_and_status(there, submission, tmp_path):
    set_keys(tmp_path / "board", submissions_a_day=1)
    submission("ann", 0.5)
    submission("Ann ", 0.4)
    submission("mal", lines=3)
    at = "2026-01-31 23:59 UTC"
    status, out, err = there("board", "scan", "board", "uploads", "--at", at)
    rows = [line.split("\t") for line in out.splitlines()]
    assert [row[1:3] for row in rows] == [["scored", "Ann "], ["refused", "ann"], ["rejected", "mal"]]
    assert (status, err) == (1, "geval: note: 1 scored, 1 refused, 1 rejected\n")
    assert there("board", "scan", "board", "uploads", "--at", at, "--format", "json")[0] == 1
    told, table = (there("board", "status", "board", "--format", name)[1] for name in ("json", "csv"))
    for lines in (json.loads(told)["submissions"], csv.DictReader(table.splitlines())):
        assert [line["state"] for line in lines] == ["scored", "rejected"]


def test_status_says_how_to_try_again_what_failed(there, submission, sandbox_jobs):
    submission("ann")
    submission("bob", seed=1)
    sandbox_jobs.unscored |= {"ann", "bob"}
    status, out, err = there("board", "scan", "board", "uploads")
    sandbox_jobs.unscored.clear()
    assert (status, err) == (1, "geval: note: 2 failed\n")
    codes = [line.partition("\t")[0] for line in out.splitlines()]
    advice = f"failed: {', '.join(codes)}; geval board scan --again or rescore --again tries them again\n"
    assert advice in there("board", "status", "board")[1]
    assert there("board", "scan", "board", "uploads")[2] == "geval: note: nothing is new\n"
    assert there("board", "rescore", "board")[1] == "nothing is out of date\n"
    status, out, _ = there("board", "rescore", "board", "--again")
    assert (status, out) == (0, "nothing is out of date\ntried again: 2 submissions\n")
    assert "failed: " not in there("board", "status", "board")[1]


def test_withdraw_and_note(there, submission):
    submission("ann")
    code = there("board", "add", "board", "uploads/ann")[1][:12]
    status, out, _ = there("board", "note", "board", code, "a \x1b remark")
    assert (status, out.splitlines()[-1]) == (0, "  note        remark: a \\x1b remark")
    status, out, _ = there("board", "withdraw", "board", code[:6], "--reason", "it cheats")
    assert (status, out.splitlines()[-1]) == (0, "  note        withdrawn: it cheats")
    assert "\twithdrawn\t" in there("board", "status", "board")[1]
    status, out, _ = there("board", "add", "board", "uploads/ann")
    assert (status, out.splitlines()[0]) == (1, f"{code}  withdrawn")
    assert there("board", "note", "board", "0000", "x")[0] == 1
