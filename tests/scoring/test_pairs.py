"""Scoring one file against another, without a challenge."""

import json
from pathlib import Path

import pytest
from raising import refused

from geval_py import GevalError, score, score_file

OUTPUT, EXPECTED = "sub/mine.tsv", "sub/expected.tsv"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("sub", "test-A", "test-A/sub"):
        (tmp_path / name).mkdir()
    (tmp_path / "config.txt").write_text("--metric Accuracy --out-header header.tsv\n")
    (tmp_path / OUTPUT).write_text("a:0.5 :0.5\nb:0.25 :0.75\n")
    (tmp_path / EXPECTED).write_text("a\nb\n")
    (tmp_path / "sub/in.tsv").write_text("x\t1\ny\t2\n")
    for name in ("in.tsv", "test-A/in.tsv", "test-A/sub/mine.tsv", "test-A/sub/expected.tsv"):
        (tmp_path / name).write_text("nothing of this is read")
    return tmp_path


def leave_the_pair(folder):
    for path in (folder / "config.txt", *folder.glob("test-A/**/*.tsv")):
        path.unlink()


@pytest.mark.parametrize("metrics", [
    "PerplexityHashed", ["LogLossHashed8", "Accuracy"], "LogLossHashed:f<in<1>:y>", "LogLossHashed:l",
], ids=str)  # fmt: skip
@pytest.mark.parametrize("kind", [str, Path])
def test_a_pair_is_scored_as_on_the_command_line(kind, metrics, folder, geval):
    result = score_file(kind(OUTPUT), kind(EXPECTED), metric=metrics)
    leave_the_pair(folder)
    words = [f"-m{metric}" for metric in ([metrics] if isinstance(metrics, str) else metrics)]
    status, out, err = geval("-o", OUTPUT, "-e", EXPECTED, *words, "--format", "json")
    assert (status, err) == (0, "")
    (scored,) = json.loads(out)["outputs"]
    assert scored == result.to_dict()


def test_a_pair_has_the_input_beside_the_answers(folder):
    frame = score_file(OUTPUT, EXPECTED, metric="LogLossHashed").to_frame()
    assert [*frame["1"], *frame["2"]] == ["x", "y", "1", "2"]
    (folder / "sub/in.tsv").unlink()
    assert "1" not in score_file(OUTPUT, EXPECTED, metric="LogLossHashed").to_frame().columns


@pytest.mark.parametrize("kind", [str, Path])
def test_a_pair_may_have_its_input_elsewhere(kind, folder):
    (folder / "other.tsv").write_text("d\te\nf\tg\n")
    evaluation = score_file(OUTPUT, EXPECTED, metric="LogLossHashed", input=kind("other.tsv"))
    assert [*evaluation.to_frame()["1"]] == ["d", "f"]
    assert evaluation.notes == ()
    filtered = score_file(OUTPUT, EXPECTED, metric="LogLossHashed:f<in<2>:g>", input=kind("other.tsv"))
    assert [*filtered.line_numbers] == [2]


def test_a_pair_without_the_input_that_is_named(folder):
    note = "there is no file `no.tsv`; the input is not needed here"
    with pytest.warns(UserWarning, match=f"^{note}$"):
        evaluation = score_file(OUTPUT, EXPECTED, metric="LogLossHashed", input="no.tsv")
    assert evaluation.notes == (note,)
    with refused("No file with the input: `no.tsv`", GevalError):
        score_file(OUTPUT, EXPECTED, metric="LogLossHashed:f<in<1>:x>", input="no.tsv")


def test_a_pair_may_have_a_vocabulary(folder, geval):
    (folder / OUTPUT).write_text("b:0.5 :0.5\nb:0.25 :0.75\n")
    (folder / "words").write_text("a\nb\nc\n")
    leave_the_pair(folder)
    found = score_file(OUTPUT, EXPECTED, metric="Likelihood", vocabulary=["a", "b", "c"])
    assert found.score == 0.25  # of a, half of the rest
    words = ["-o", OUTPUT, "-e", EXPECTED, "-m", "Likelihood", "--vocabulary", "words", "--format", "json"]
    assert json.loads(geval(*words)[1])["outputs"] == [found.to_dict()]


VOCABULARIES = {
    "a text": ("words", "Perplexity", "a vocabulary is a list of words, not 'words'"),
    "no use": (["a"], "Accuracy", "vocabulary is for metrics on exact words, such as Perplexity, and has no effect on Accuracy"),
}  # fmt: skip


@pytest.mark.parametrize(("vocabulary", "metric", "message"), VOCABULARIES.values(), ids=VOCABULARIES)
def test_vocabularies_that_are_refused(vocabulary, metric, message, folder):
    with refused(message, GevalError):
        score_file(OUTPUT, EXPECTED, metric=metric, vocabulary=vocabulary)
    with refused(message, GevalError):
        score(["a:1"], ["a"], metric=metric, vocabulary=vocabulary)


REFUSED = {
    "no output": (("sub/min.tsv", EXPECTED), "Accuracy",
        "No file with the test results: `sub/min.tsv`\n  did you mean mine.tsv? `sub` holds expected.tsv, in.tsv, mine.tsv"),
    "no answers": ((OUTPUT, "no.tsv"), "Accuracy", "No file with the expected results: `no.tsv`"),
    "a folder": (("sub", EXPECTED), "Accuracy",
        "No file with the test results: `sub/out.tsv`\n  `sub` holds expected.tsv, in.tsv, mine.tsv"),
    "no input": ((OUTPUT, "test-A/sub/expected.tsv"), "Accuracy:f<in<1>:x>",
        "No file with the input: `test-A/sub/in.tsv`\n  `test-A/sub` holds expected.tsv, mine.tsv"),
}  # fmt: skip


@pytest.mark.parametrize(("pair", "metric", "message"), REFUSED.values(), ids=REFUSED)
def test_pairs_that_are_refused(pair, metric, message, folder):
    with refused(message, GevalError):
        score_file(*pair, metric=metric)
