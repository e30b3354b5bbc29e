"""One registry of output formats: an entry more, and every command that has ``--format`` writes it."""

import json
import re
import shutil
from pathlib import Path

import pytest

from geval_py.cli.options import COMMANDS
from geval_py.cli.parsers import group_of, parser_of
from geval_py.tables.formats import FORMATS

GAZETTE = Path(__file__).parents[2] / "challenges" / "gazette"
BIGRAM, UNIGRAM = "dev-0/out-model=bigram.tsv", "dev-0/out-model=unigram.tsv"
LINES = {  # command lines by the command whose --format they use
    "": [
        ["-t", "dev-0"],
        ["-t", "dev-0", "-B", "20"],
        ["-t", "dev-0", "-o", "bigram", "-l"],
        ["-t", "dev-0", "-o", "bigram", "-d", UNIGRAM],
        ["-t", "dev-0", "-o", "bigram", "-w"],
        ["-t", "dev-0", "-o", "bigram", "--most-worsening-features", UNIGRAM],
    ],
    "board add": [["board", "add", "board", "team"]],
    "board scan": [["board", "scan", "board", "uploads"]],
    "board show": [["board", "show", "board", "--test", "dev-0"]],
    "board status": [["board", "status", "board"]],
    "board note": [["board", "note", "board", "CODE", "seen"]],
    "board final": [["board", "final", "board", "CODE", "--undo"]],
    "board rescore": [["board", "rescore", "board"]],
    "board withdraw": [["board", "withdraw", "board", "CODE", "--reason", "none"]],
    "calibration": [["calibration", "-t", "dev-0", "-o", "bigram"]],
    "challenge leaks": [["challenge", "leaks", "."]],
    "check": [["check", "text.txt", "-t", "dev-0"]],
    "compare": [["compare", "-t", "dev-0", "--samples", "20"]],
    "lm info": [["lm", "info", "text.arpa"]],
    "lm perplexity": [["lm", "perplexity", "text.arpa", "text.txt"]],
    "luck": [["luck", "-t", "dev-0", "--seeds", "2"]],
    "mix": [["mix", "-t", "dev-0"]],
    "tune": [["tune", "-t", "dev-0", "-o", "bigram"]],
}


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    """A copy of the sample, with a board, submissions for it, and a language model."""
    from geval_py.cli import main

    folder = tmp_path_factory.mktemp("formats") / "gazette"
    shutil.copytree(GAZETTE, folder)
    for team in ("team", "uploads/other"):
        (folder / team / "dev-0").mkdir(parents=True)
        shutil.copyfile(folder / UNIGRAM, folder / team / "dev-0/out.tsv")
    (folder / "text.txt").write_text("the cat sat\na dog sat\nthe dog and a cat\n" * 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["board", "init", "board", "--challenge", ".", "--answers", "."]) == 0
        settings = folder / "board" / "board.yaml"
        text, found = re.subn("ladder: true(?=[,}])", "ladder: true, split: 40 %", settings.read_text())
        assert found == 1
        settings.write_text(text.replace("seed: 12345", "seed: 54321").replace("finals: 0", "finals: 2"))
        assert main(["lm", "train", "-o", "2", "text.txt", "--arpa", "text.arpa", "--discount-fallback"]) == 0
    return folder


@pytest.fixture
def here(there, monkeypatch):
    monkeypatch.chdir(there)
    return there


def with_format():
    """The commands that have ``--format``."""
    names = [(), *((name,) for name in COMMANDS)]
    groups = {name: group_of(name) for name in COMMANDS}
    names += [(name, sub) for name, group in groups.items() if group is not None for sub in group.subcommands]
    return {" ".join(name) for name in names if "--format" in parser_of(*name)._option_string_actions}


def test_each_command_that_has_formats_is_tried():
    assert with_format() == {*LINES}


def words_of(line, geval):
    """A command line, in which CODE is the code of the first submission."""
    if "CODE" not in line:
        return line
    code = json.loads(geval("board", "status", "board", "--format", "json")[1])["submissions"][0]["code"]
    return [code if word == "CODE" else word for word in line]


def json_lines(value, width):
    records = value.records()
    names = [column.name for column in records.columns]
    return (json.dumps(dict(zip(names, map(str, row), strict=True))) + "\n" for row in records.rows)


@pytest.mark.parametrize("line", [line for lines in LINES.values() for line in lines], ids=" ".join)
def test_a_format_more_takes_one_entry(line, here, geval, monkeypatch):
    monkeypatch.setitem(FORMATS, "jsonl", json_lines)
    status, out, err = geval(*words_of(line, geval), "--format", "jsonl")
    assert status in (0, 1), err  # 1 where there are problems
    rows = [json.loads(row) for row in out.splitlines()]
    assert rows or line[:2] == ["board", "rescore"], err
    assert len({tuple(row) for row in rows}) <= 1
    if line[0] in COMMANDS:
        assert "jsonl" in geval(*line, "--help")[1]


SOME = ["", "board show", "board status", "check", "compare", "lm info", "lm perplexity"]


@pytest.mark.parametrize("line", [line for name in SOME for line in LINES[name]], ids=" ".join)
@pytest.mark.parametrize("form", FORMATS)
def test_a_command_writes_each_format(form, line, here, geval):
    status, out, err = geval(*line, "--format", form)
    assert status in (0, 1), err
    shapes = {
        "json": r"\{\n.*\n\}\n",
        "csv": r"[\w .]+(,[^\n]*)?\n.*",
        "markdown": r"\| .* \|\n\| (:?---:?( \| )?)+ \|\n.*",
        "latex": r"\\begin\{tabular\}.*\\end\{tabular\}\n(% [^\n]*\n)*",
        "html": r"<table>\n.*</table>\n(<p>.*</p>\n)?",
    }
    assert re.fullmatch(shapes.get(form, r".*\n"), out, re.DOTALL), out


SCORES = {
    "markdown": """\
| output | PerplexityHashed | LogLossHashed |
| --- | ---: | ---: |
| out-model=bigram.tsv | 174.60 | 5.16 |
| out-model=unigram.tsv | 327.53 | 5.79 |
""",
    "latex": r"""\begin{tabular}{lrr}
\hline
output & PerplexityHashed & LogLossHashed \\
\hline
out-model=bigram.tsv & 174.60 & 5.16 \\
out-model=unigram.tsv & 327.53 & 5.79 \\
\hline
\end{tabular}
""",
}


@pytest.mark.parametrize("form", SCORES)
def test_scores_for_a_paper(form, geval, monkeypatch):
    monkeypatch.chdir(GAZETTE)
    words = ["-t", "dev-0", "-m", "LogLossHashed", "-p", "2", "--format", form]
    assert geval(*words) == (0, SCORES[form], "")


def test_scores_with_intervals_for_a_paper(geval, monkeypatch):
    monkeypatch.chdir(GAZETTE)
    out = geval("-t", "dev-0", "-o", "bigram", "-B", "50", "--format", "markdown")[1]
    assert re.search(r"^\| out-model=bigram.tsv \| \d+±\d+ \|$", out, re.MULTILINE)
    assert out.endswith("\n\n±: half of the 95 % interval, from 50 resamples of lines, seed 12345.\n")


def test_an_output_that_cannot_be_scored_stands_in_the_table(here, geval):
    (here / "broken.tsv").write_text("x\n")
    status, out, err = geval("-t", "dev-0", "-o", "bigram", "-o", "broken.tsv", "--format", "markdown", "-p", "1")
    assert (status, err != "") == (1, True)
    assert out.endswith("| out-model=bigram.tsv | 174.6 |\n| broken.tsv | error |\n")
