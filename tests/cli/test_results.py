"""Where results go, and what else is shown: ``--output``, ``--quiet``, and the options of ``geval check`` on both."""

import shutil
from pathlib import Path

import pytest

GAZETTE = Path(__file__).parents[2] / "challenges" / "gazette"
BIGRAM = "dev-0/out-model=bigram.tsv"
GUESS = "the:0.5 of:0,25 :0.25\n:1\nthe:0.9 of:0.3\nthe:0.4 a:0,25 :0.2\n"


@pytest.fixture
def challenge(tmp_path, monkeypatch):
    shutil.copytree(GAZETTE, tmp_path / "gazette")
    monkeypatch.chdir(tmp_path / "gazette")
    Path("guess.tsv").write_text(GUESS)
    return tmp_path / "gazette"


@pytest.mark.parametrize(("words", "name", "format"), [
    *(("-t dev-0", name, format) for name, format in (
        ("s.csv", "csv"), ("s.md", "markdown"), ("s.tex", "latex"), ("s.HTML", "html"), ("s", "text"),
    )),
    ("compare -t dev-0 --samples 20", "s.json", "json"), ("check guess.tsv", "s.csv", "csv"),
])  # fmt: skip
def test_the_ending_of_the_file_names_the_format(words, name, format, challenge, geval):
    status, out, _ = geval(*words.split(), "--format", format)
    assert geval(*words.split(), "-q", "--output", name, terminal=True) == (status, "", "")
    assert Path(name).read_text() == out


def test_a_format_that_is_given_comes_before_the_ending(challenge, geval):
    geval("-t", "dev-0", "--format", "csv", "--output", "scores.json")
    assert Path("scores.json").read_text().startswith("file,model,")
    geval("--list-metrics", "--output", "metrics.txt")
    assert "PerplexityHashed" in Path("metrics.txt").read_text()


def test_the_file_is_left_as_it_was_if_nothing_is_shown(challenge, geval):
    Path("scores.txt").write_text("before\n")
    for words in (["-t", "test-A"], ["-t", "dev-0", "-m", "None"], ["compare", "guess.tsv", "none.tsv"]):
        assert geval(*words, "--output", "scores.txt")[0] > 0
        assert Path("scores.txt").read_text() == "before\n"
    names = [path.name for path in GAZETTE.iterdir()]
    assert sorted(path.name for path in challenge.iterdir()) == sorted([*names, "guess.tsv", "scores.txt"])


def test_an_output_of_a_model_is_not_written_over(challenge, geval):
    before = Path(BIGRAM).read_bytes()
    message = f"geval: Cannot write results to `{BIGRAM}`: it may hold the output of a model\n"
    message += f"  -o {BIGRAM} scores it; remove it first if you do not need it\n"
    assert geval("-t", "dev-0", "--output", BIGRAM) == (2, "", message)
    assert Path(BIGRAM).read_bytes() == before
    message = "geval: Cannot write `dev-0`: it is a folder, not a file\n"
    assert geval("-t", "dev-0", "--output", "dev-0") == (2, "", message)


@pytest.mark.parametrize("words", ["-t dev-0 -o bigram", "-t dev-0 -o bigram -ls"])
def test_results_of_geval_are_written_over(words, challenge, geval):
    status, out, _ = geval(*words.split(), "--output", "results.tsv")
    first = Path("results.tsv").read_text()
    assert (status in (0, 1), out) == (True, "")
    assert geval(*words.split(), "--output", "results.tsv")[:2] == (status, "")
    assert Path("results.tsv").read_text() == first


@pytest.mark.parametrize("text", ["the:0.5 :0.5\n", "the:0.5\tof:0.3\t:0.2\n", "1901\n1902\n", "a b\nc\n"])
def test_what_may_be_of_a_model_is_not_written_over(text, challenge, geval):
    Path("results.tsv").write_text(text)
    assert geval("-t", "dev-0", "--output", "results.tsv")[0] == 2
    Path("out-x.tsv").write_text("file\tscore\n")
    assert geval("-t", "dev-0", "--output", "out-x.tsv")[0] == 2
    assert Path("results.tsv").read_text() == text


def test_quiet_hides_notes_and_no_error(challenge, geval):
    words = ["-t", "dev-0", "-i", "none.tsv"]
    status, out, notes = geval(*words)
    assert notes.startswith("geval: note: ")
    assert geval(*words, "--quiet") == (status, out, "")
    error = "geval: No file with the test results: `./test-A/out.tsv`\n  `./test-A` holds expected.tsv, in.tsv.xz\n"
    assert geval("-t", "test-A", "-q") == (1, "", error)
    assert geval("--init", "--expected-directory", "new", "-m", "PerplexityHashed", "-q") == (0, "", "")
    assert geval("check", "guess.tsv", "--diff", "--rest-mass", "0.1", "-q")[2] == ""
    assert geval("check", "guess.tsv", "-q")[2] == ""


CONCISE = """\
guess.tsv:1:12: E114 `0,25` is not a number; write a decimal point, not a comma{}
guess.tsv:3:1: W202 the probabilities sum to 1.2; geval divides them by this sum
guess.tsv:3:15: W204 no probability is left for words that are not listed: if the answer is one of them, the loss is infinite
guess.tsv:2:1: W214 only a rest: all words are equally likely
1 error, 3 warnings in 1 file
"""


def test_check_concise(challenge, geval):
    words = ["check", "guess.tsv", "-q", "--format", "concise", "--lines", "4", "--max-problems", "1"]
    assert geval(*words) == (1, CONCISE.format(" (and 1 more line)"), "")
    lines = CONCISE.format("").splitlines(keepends=True)
    moved = lines[0].replace(":1:12:", ":4:11:")
    assert geval(*words, "--max-problems", "0") == (1, "".join([lines[0], moved, *lines[1:]]), "")


def test_exit_zero(challenge, geval):
    assert geval("check", "guess.tsv", "-q")[0] == 1
    assert geval("check", "guess.tsv", "-q", "--strict", "--exit-zero")[0] == 0
    assert geval("check", "guess.tsv", "-q", "--exit-zero", "--format", "json")[0] == 0
    assert geval("challenge", "leaks", ".", "--exit-zero")[0] == 0
    assert geval("check", "--exit-zero", "--select", "E9")[0] == 2
