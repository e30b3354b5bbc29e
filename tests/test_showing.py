"""Values show themselves: short at the prompt, as tables in notebooks, with strangers' text escaped."""

import html
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

import geval_py
from geval_py.scoring import score_tables
from geval_py.scoring.metrics.registry import METRICS

ROOT = Path(__file__).parents[1]
GAZETTE = ROOT / "challenges" / "gazette"
NOTEBOOK = ROOT / "docs" / "first-look.ipynb"
BAD = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def outputs():
    return geval_py.evaluate_all(GAZETTE, "dev-0")


def test_values_are_short_at_the_prompt(outputs, monkeypatch):
    monkeypatch.chdir(ROOT)
    challenge = geval_py.Challenge.open("challenges/gazette")
    metric = geval_py.Metric("PerplexityHashed", vocabulary=["a", "b", "c"])
    assert [repr(value) for value in (
        challenge, challenge["dev-0"], challenge["train"], outputs[0], outputs[0].scores[0], METRICS["BLEU"], metric,
        metric.predictions([[0.5, 0.25, 0.125]]), geval_py.check("challenges/gazette"),
    )] == [
        "<Challenge challenges/gazette: dev-0, test-A, train; PerplexityHashed>",
        "<DataSet challenges/gazette/dev-0: input, answers, out-model=bigram.tsv, out-model=unigram.tsv>",
        "<DataSet challenges/gazette/train: input, answers>",
        "<Evaluation of out-model=bigram.tsv: PerplexityHashed 174.595, 212 lines>",
        "<Score: PerplexityHashed 174.595 words, lower is better>",
        "<Metric BLEU: share, higher is better>",
        "<Metric PerplexityHashed: words, lower is better; 0 lines>",
        "<Predictions of 1 line over 3 words>",
        "<Report: 0 errors, 1 warning in 3 files\n"
        "  W107 set-without-output, challenges/gazette/test-A/out.tsv: there is no output for this test set>",
    ]  # fmt: skip


def test_tables_are_tables_at_the_prompt_and_in_notebooks(outputs):
    bigram = outputs[0]
    for value in (geval_py.compare(outputs, samples=100), bigram.luck(), geval_py.improve(bigram, words=0)):
        assert repr(value) == str(value)
        assert value._repr_html_().count("<table") == 1
    assert bigram.calibration()._repr_html_().count("<table") >= 1


@pytest.mark.parametrize(("values", "wanted"), [
    (["1", "10", None], [1, 10, None]), (["1e-3", ".5"], [0.001, 0.5]), (["1_000", "2"], ["1_000", "2"]),
    (["nan", "1"], ["nan", "1"]), (["1e999", "1"], ["1e999", "1"]), (["٣", "1"], ["٣", "1"]), ([""], [""]),
])  # fmt: skip
def test_what_is_a_number_in_a_name(values, wanted):
    split = SimpleNamespace(directory="challenge")
    outputs = [SimpleNamespace(name="out.tsv", parameters={} if value is None else {"k": value}) for value in values]
    evaluations = [SimpleNamespace(output=output, split=split, scores_dict=lambda **_: {}) for output in outputs]
    frame = score_tables.scores_frame(evaluations, intervals=False)
    assert frame["k"].dropna().tolist() == [value for value in wanted if value is not None]


def test_an_output_at_fault_does_not_hide_the_others(tmp_path):
    shutil.copytree(GAZETTE, tmp_path, dirs_exist_ok=True)
    (tmp_path / "dev-0/out-model=bad.tsv").write_text("the:0.5\n")
    with pytest.raises(geval_py.GevalError) as caught:
        geval_py.evaluate_all(tmp_path, "dev-0")
    faults = []
    scored = geval_py.evaluate_all(tmp_path, "dev-0", on_fault=faults.append)
    assert [one.output.name for one in scored] == ["out-model=bigram.tsv", "out-model=unigram.tsv"]
    assert [str(fault) for fault in faults] == [str(caught.value)]


def test_all_outputs_are_a_table_of_parameters_and_scores(tmp_path):
    """Of the command, and in a frame, where parameters are numbers if all of them are."""
    (tmp_path / "dev-0").mkdir()
    (tmp_path / "config.txt").write_text("--metric PerplexityHashed --metric LikelihoodHashed")
    (tmp_path / "dev-0/expected.tsv").write_text("a\nb\n")
    names = ("out.tsv", "out-k=10,lr=0.1,o=x.tsv", "out-k=2,lr=1e-3,o=3.tsv", "out-k=10,output=y.tsv")
    for name in names:
        (tmp_path / "dev-0" / name).write_text("a:0.5 b:0.25 :0.25\n" * 2)
    outputs = geval_py.evaluate_all(tmp_path, "dev-0")
    assert [type(outputs), isinstance(outputs, list), len(outputs)] == [geval_py.Evaluations, True, 4]
    frame = outputs.to_frame()
    assert list(frame) == [
        "output", "k", "lr", "o", "output (parameter)", "PerplexityHashed", "LikelihoodHashed"
    ]  # fmt: skip
    assert frame["output"].tolist() == ["k=2,lr=1e-3,o=3", "k=10,lr=0.1,o=x", "k=10,output=y", "out"]
    assert frame["k"].dropna().tolist() == [2, 10, 10]
    assert pd.api.types.is_numeric_dtype(frame["lr"])
    assert frame["o"].dropna().tolist() == ["3", "x"]
    assert list(outputs.to_frame(intervals=True))[-6:] == [
        "PerplexityHashed", "LikelihoodHashed", "PerplexityHashed_low", "PerplexityHashed_high",
        "LikelihoodHashed_low", "LikelihoodHashed_high",
    ]  # fmt: skip
    assert repr(outputs) == (
        "k    lr    o  output  PerplexityHashed    LikelihoodHashed\n"
        "2    1e-3  3          2.8263571231330045  0.3538123303015241\n"
        "10   0.1   x          2.8263571231330045  0.3538123303015241\n"
        "10            y       2.8263571231330045  0.3538123303015241\n"
        "out                   2.8263571231330045  0.3538123303015241"
    )
    assert repr(geval_py.Evaluations()) == "[]"
    latex = outputs.to_latex(label="tab:a", precision=1).splitlines()
    assert [line[: line.index(": ")] for line in latex[1:5]] == [f"% {one.output.name}" for one in outputs]
    assert latex[14] == r"2 & 1e-3 & 3 &  & 2.8 & 0.4 \\"
    named = outputs.to_latex(names={"k=2,lr=1e-3,o=3": "A_b", "out.tsv": "B"}).splitlines()
    assert named[-6] == r"A\_b & 2.8263571231330045 & 0.3538123303015241 \\"
    (tmp_path / "config.txt").write_text("--metric PerplexityHashed --metric LikelihoodHashed --precision 2 -%")
    assert r"out &  &  &  & 283 & 35 \\" in outputs.to_latex().splitlines()
    assert outputs.to_markdown(precision=1, names={"out.tsv": "B|C"}).splitlines()[-1] == r"| B\|C | 283 | 35 |"
    with pytest.raises(geval_py.UsageError, match=r"^`nothing` is none of the outputs scored\n"):
        outputs.to_latex(names={"nothing": "A"})
    with pytest.raises(geval_py.UsageError, match="a}b"):
        outputs.to_latex(label="a}b")


def test_outputs_of_several_challenges_are_one_table(monkeypatch):
    monkeypatch.chdir(ROOT / "challenges")
    of_digits, of_colours = (geval_py.evaluate_all(name) for name in ("digits", "colours"))
    found = geval_py.Evaluations([*of_digits, *of_colours])
    assert found.to_frame()[["challenge", "output"]].values.tolist() == [
        ["digits", "model=trained"], ["digits", "model=uniform"],
        ["colours", "model=skewed"], ["colours", "model=uniform"],
    ]  # fmt: skip
    found.sort(key=lambda one: one.score)  # which names of challenges go with
    assert found.to_frame()["challenge"].tolist() == ["digits", "colours", "colours", "digits"]
    assert "challenge" not in of_digits.to_frame()


def test_text_of_strangers_does_no_harm(tmp_path):
    (tmp_path / "dev-0").mkdir()
    (tmp_path / "config.txt").write_text("--metric PerplexityHashed")
    (tmp_path / "dev-0/expected.tsv").write_text("a\n" * 200)
    (tmp_path / "dev-0/in.tsv").write_text("a\n" * 200)
    for name in (f"out-m={BAD.replace('/', '')}.tsv", "out-m=\x1b[31mred.tsv"):
        (tmp_path / "dev-0" / name).write_text(f"a:0.5 {BAD}:0.25 :0.25\n" * 199 + f"{BAD}:2\n")
    with pytest.warns(UserWarning, match=r"^`[^\x1b]*\.tsv`: ") as warned:
        outputs = geval_py.evaluate_all(tmp_path, "dev-0")
    assert {one.filename for one in warned} == {__file__}
    assert [str(one.message).rpartition("`: ")[2] for one in warned][1::2] == [
        "the loss of 1 of 200 lines is infinite"
    ] * 2
    report = geval_py.check(tmp_path)
    shown = [outputs, outputs[0], geval_py.compare(outputs, samples=10), report, outputs[0].luck()]
    assert all("<script" not in value._repr_html_() for value in shown)
    assert html.escape("<script>") in outputs._repr_html_()
    assert all("\x1b" not in repr(value) for value in [*shown[1:], geval_py.Challenge.open(tmp_path)["dev-0"]])


@pytest.mark.long
def test_the_notebook_runs_in_jupyter_and_is_kept_without_outputs(tmp_path):
    source = NOTEBOOK.read_text(encoding="utf-8")
    assert source.count('"outputs": []') == source.count('"cell_type": "code"') > 0
    command = [sys.executable, "-m", "nbconvert", "--execute", "--to", "html", "--output-dir", tmp_path, NOTEBOOK]
    environment = os.environ | {"JUPYTER_PLATFORM_DIRS": "1", "HOME": str(tmp_path)}
    subprocess.run(command, check=True, capture_output=True, env=environment)
    page = (tmp_path / "first-look.html").read_text(encoding="utf-8")
    assert len(re.findall("<svg", page)) >= 2
    assert "174.6" in page
