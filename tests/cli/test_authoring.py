"""``geval challenge``, ``--init`` and ``--validate`` on the command line: what is printed where, and the status."""

import json
import sys
from pathlib import Path

import pytest

from geval_py.authoring.validate import OLD_TRAIN_WARNINGS
from geval_py.cli import terminal as progress
from geval_py.cli.challenge import INIT_INSTRUCTIONS, VALIDATE_INSTRUCTIONS
from geval_py.reading.outputs import BASELINES

GAZETTE = Path(__file__).parents[2] / "challenges/gazette"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def texts(here, count=60, words=120):
    (here / "texts").mkdir()
    for n in range(count):
        (here / f"texts/{n}.txt").write_text(" ".join(f"w{n}x{k}" for k in range(words)))


# --init and --validate

NEXT = """\
geval: `C` holds a challenge with sample data. Replace the data and the README, and then
  geval --validate --expected-directory C  # tells whether all fits together
  geval challenge leaks C                  # and what it gives away
To cut a challenge from texts of your own there is geval challenge make.
"""
VALID = "geval: `C` is a valid challenge. Now try\n  geval challenge leaks C  # what it gives away\n"


def test_init_and_validate(geval):
    assert geval("--init", "--expected-directory", "C", "-m", "LogLossHashed", "-p", "2") == (0, "", NEXT)
    assert geval("--validate", "--expected-directory", "C") == (0, "", VALID)


@pytest.mark.parametrize(("option", "text"), [("--init", INIT_INSTRUCTIONS), ("--validate", VALIDATE_INSTRUCTIONS)])
def test_instructions(option, text, geval):
    """GEval 1.42.2: on standard output, where the directory is not named (its status is 1)."""
    assert geval(option) == (2, text, "")
    assert text.startswith(f"\nRun:\n    geval {option} --expected-directory CHALLENGE")


def test_faults_and_warnings_are_shown(here, geval):
    (here / "config.txt").write_text("--broken")  # that of the current folder is not read
    assert geval("--init", "--expected-directory", "C", "-m", "LogLossHashed")[0] == 0
    (here / "C/train/train.tsv").touch()
    warnings = "".join(f"{line}\n" for line in OLD_TRAIN_WARNINGS)
    assert geval("--validate", "--expected-directory", "C") == (0, warnings, VALID)
    (here / "C/train/train.tsv").unlink()
    (here / "C/README.md").write_text("")
    (here / "C/dev-0/out.tsv").touch()
    faults = "geval: Empty file: `C/README.md`\ngeval: Output file/s detected: `C/dev-0/out.tsv`\n"
    assert geval("--validate", "--expected-directory", "C") == (1, "", faults)
    assert geval("--validate", "--expected-directory", "\x1b") == (1, "", "geval: No challenge directory: `\\x1b`\n")


# make, split, leaks


@pytest.mark.long
def test_a_challenge_of_the_gazettes_text_and_its_baselines(here, geval):
    blocks = (GAZETTE / "gazette.txt").read_text(encoding="utf-8").strip("\n").split("\n\n")
    headed = [block.partition("\n") for block in blocks]
    rows = [{"id": heading.split()[1], "text": text, "year": heading.split()[2]} for heading, _, text in headed]
    (here / "news.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    make = "challenge make news.jsonl -o c/ --context 8 --split 60,25,15 --train-every 4"
    assert geval(*make.split())[0] == 0
    assert geval("--validate", "--expected-directory", "c-answers")[:2] == (0, "")
    status, out, _ = geval("challenge", "leaks", "c", "--answers", "c-answers", "--ignore", "W410")
    assert (status, out) == (0, "no problems in 3 files\n")
    places = ("--expected-directory", "c", "--out-directory", "outputs")
    for test in ("dev-0", "test-A"):
        for model in BASELINES:
            assert geval("baseline", model, "-t", test, *places)[0] == 0
        status, out, err = geval("check", "outputs", "--challenge", "c", "-t", test, "--format", "json")
        assert (status, err, len(json.loads(out)["files"])) == (0, "", len(BASELINES))
    status, out, _ = geval("-t", "test-A", "--expected-directory", "c-answers", *places[2:], "--by-score")
    assert status == 0
    ranked = [line.split("\t")[0] for line in out.splitlines()[1:]]
    of_words = [
        model for model in reversed(BASELINES) if model != "document"
    ]  # a short text repeats few of its words
    assert [model for model in ranked if model != "document"] == of_words
    assert ranked.index("document") < ranked.index("uniform")


@pytest.mark.parametrize("command", ["challenge make texts", "challenge split old --columns Doc,Text"])
def test_long_work_shows_a_bar_on_a_terminal(command, here, geval, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", -1)
    texts(here)
    (here / "old").mkdir()
    (here / "old/in.tsv").write_text("".join(f"d{n}\ta {n}\n" for n in range(200)))
    (here / "old/expected.tsv").write_text("w\n" * 200)
    assert "packing" not in geval(*command.split(), "-o", "quiet")[2]
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    shown = geval(*command.split(), "-o", "c")[2]
    assert "packing" in shown
    assert ("documents" in shown.partition("packing")[0]) == ("make" in command)


def test_make_says_which_texts_are_too_short(here, geval):
    texts(here)
    (here / "texts/short.txt").write_text("a few words")
    err = geval("challenge", "make", "texts", "-o", "c", "--context", "10")[2]
    short = "geval: note: 1 of 61 documents have no gap: no word that may be one, with 10 words on each side\n"
    assert err.startswith(short)


def test_every_option_of_make(here, geval):
    rows = [
        {"name": str(n), "body": " ".join(f"w{k} ." for k in range(n, n + 90)), "paper": f"p{n % 40}"}
        for n in range(120)
    ]
    (here / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = (
        "challenge make a.jsonl -o c --answers hidden --id name --text body --group paper --context 5 --every 12 "
        "--train-every 4 --random --seed s --words ^w --least-frequency 2 --split 50,25,25 --salt x "
        "-m LogLossHashed -m Accuracy --title Mine --keep-order"
    )
    status, out, _ = geval(*words.split())
    assert status == 0
    assert out.splitlines()[0].split() == ["part", "gaps", "paper"]
    assert (here / "c/config.txt").read_text().startswith("--metric LogLossHashed --metric Accuracy --precision 2 ")
    assert (here / "c/in-header.tsv").read_text() == "name\tpaper\tLeftContext\tRightContext\n"
    assert (here / "c/README.md").read_text().startswith("Mine\n====\n")
    assert (here / "hidden/test-A/expected.tsv").is_file()


WRONG = {
    "challenge make": "the following arguments are required: PATH, -o/--out\n  geval challenge make --help shows the options",
    "challenge make texts -o c --context 0": "--context is 1 or more",
    "challenge make texts -o c --train-every 0": "--train-every is 1 or more",
    "challenge make texts -o c --words (": "--words is not a regular expression: (\n  missing ), unterminated subpattern at position 0",
    "challenge make texts -o c --split 80,20": ("argument --split: '80,20' is not three whole numbers for train, dev-0 and test-A, as 80,10,10\n"
     "  geval challenge make --help shows the options"),
    "challenge make texts -o c --answers c/x": "the hidden answers would lie inside the public folder: `c/x` is in `c`\n  name another folder with --answers",
    "challenge leaks --select E9": "there is no rule `E9`\n  geval challenge leaks --rules lists them",
    "challenge leaks --explain W204": "there is no rule `W204`\n  geval challenge leaks --rules lists them",
}  # fmt: skip


@pytest.mark.parametrize(("words", "message"), WRONG.items(), ids=WRONG)
def test_wrong_words(words, message, geval):
    assert geval(*words.split()) == (2, "", f"geval: {message}\n")
