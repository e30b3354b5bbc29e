"""On a terminal, tables are aligned and wrapped to its width; a pipe gets plain TABs."""

import json
import re
import shutil

import pytest

from geval_py.text import display_width

WORDS = ["a", "b", "a"]


def write(folder, name, lines):
    (folder / name).write_text("".join(line + "\n" for line in lines))


@pytest.fixture
def challenge(tmp_path, monkeypatch):
    """A challenge of three items and three outputs."""
    (tmp_path / "config.txt").write_text("--metric Perplexity -p 2\n")
    for name in ("train", "test-A"):
        (tmp_path / name).mkdir()
    write(tmp_path / "train", "expected.tsv", ["a", "b", "c", "d"])
    write(tmp_path / "test-A", "in.tsv", [f"1901\tleft {'context ' * 9}\tright", "水" * 60, "short"])
    write(tmp_path / "test-A", "expected.tsv", WORDS)
    write(tmp_path / "test-A", "out-model=best.tsv", [f"{word}:1" for word in WORDS])
    write(tmp_path / "test-A", "out-model=long.tsv", [f"{word}:0.25 {'c:0.001 ' * 40}:0.71" for word in WORDS])
    write(tmp_path / "test-A", "out-model=poor.tsv", [f"{word}:0.001 c:0.999" for word in WORDS])
    monkeypatch.chdir(tmp_path)
    return tmp_path


MODES = {
    "lines": ["-o", "long", "-l"], "sorted lines": ["-o", "long", "-ls"],
    "differences": ["-o", "long", "-d", "out-model=poor.tsv"], "features": ["-o", "long", "-w"],
    "worsening features": ["-o", "long", "--most-worsening-features", "out-model=poor.tsv"],
    "scores": [], "scores of several metrics": ["-m", "Likelihood", "-m", "Accuracy"],
    "a cross table": ["-o", "long", "-a", "{LogLoss,Perplexity}Hashed{8,12}"],
}  # fmt: skip


@pytest.mark.parametrize("words", MODES.values(), ids=MODES)
def test_tables_fit_a_terminal_and_a_pipe_gets_tabs(words, challenge, geval):
    for columns in (60, 80, 120):
        status, out, _ = geval(*words, terminal=True, columns=columns)
        assert (status, "\t" in out) == (0, False)
        assert max(map(display_width, out.splitlines())) <= columns
    piped = geval(*words)
    assert ("\t" in piped[1], "…" in piped[1]) == (True, False)
    assert geval(*words, columns=20) == piped


PROSE = {
    "sample": ["sample", "new"],
    "calibration": ["calibration", "-o", "long", "-m", "PerplexityHashed"],
    "explain": ["check", "--explain", "E101"], "help": ["help", "submit"],
}  # fmt: skip


@pytest.mark.parametrize("words", PROSE.values(), ids=PROSE)
def test_sentences_break_between_words(words, challenge, geval):
    """They have the same words as in a pipe."""
    status, out, _ = geval(*words, terminal=True, columns=60)
    assert status == 0
    assert max(map(display_width, out.splitlines())) <= 60
    shutil.rmtree(challenge / "new", ignore_errors=True)
    piped = geval(*words, columns=60)[1]
    out, piped = (re.sub(r"\s*https://\S+(\s+\S+)?\s*\Z", "", text) for text in (out, piped))  # a long address
    assert piped.split() == out.split()


@pytest.mark.parametrize(("metric", "header", "context"), [
    ("Hit@3", "", "left ___ right"),
    ("ChoiceAccuracy", "LeftContext\tRightContext\tOptions\n", "left ___ right"),
    ("ChoiceAccuracy", "", "left<tab>right<tab>a b"),
])  # fmt: skip
def test_lines_of_other_scores_of_words(challenge, geval, metric, header, context):
    """The best guess, and the gap in its context, if its columns are known."""
    options = "\ta b" * (metric == "ChoiceAccuracy")
    (challenge / "test-A/in.tsv").write_text(f"left\tright{options}\n" * 3)
    (challenge / "in-header.tsv").write_text(header)
    names = ["--in-header", "in-header.tsv"] * bool(header)
    out = geval("-o", "long", "-l", "-a", metric, *names, terminal=True)[1].splitlines()
    assert out[0].split()[-3:] == ["context" if "___" in context else "input", "expected", "guess"]
    assert context in out[1]
    assert out[1].split()[-2:] == ["a", "a"]


@pytest.fixture
def three(challenge):
    """The outputs of a challenge: perplexities inf, 4 and 1000; by the item b alone, 1, 4 and 1000."""
    write(challenge / "test-A", "out-model=best.tsv", ["c:1", "b:1", "c:1"])
    return challenge


ORDERS = {
    "by name": ([], ["best", "long", "poor"]),
    "lower is better, infinite the worst": (["--by-score"], ["long", "poor", "best"]),
    "higher is better": (["--by-score", "-a", "Likelihood"], ["long", "poor", "best"]),
    "by the first metric": (["--by-score", "-aPerplexity:f<exp:b>", "-aPerplexity"], ["best", "long", "poor"]),
    "of those named": (["--by-score", "-o", "out-model=best.tsv", "-o", "out-model=poor.tsv"], ["poor", "best"]),
    "with intervals": (["--by-score", "--bootstrap", "10"], ["long", "poor", "best"]),
}  # fmt: skip


@pytest.mark.parametrize(("words", "models"), ORDERS.values(), ids=ORDERS)
def test_outputs_are_ordered_by_score(words, models, three, geval):
    assert [row.split("\t")[0] for row in geval(*words)[1].splitlines()[1:]] == models
    outputs = json.loads(geval(*words, "--format", "json")[1])["outputs"]
    assert [output["file"] for output in outputs] == [f"out-model={model}.tsv" for model in models]


def test_by_score_is_for_scores(challenge, geval):
    message = "geval: --by-score goes with scores; lines have --sort and --reverse-sort\n"
    assert geval("-o", "long", "-l", "--by-score") == (2, "", message)
