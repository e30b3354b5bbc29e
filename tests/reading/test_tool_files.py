"""Files that other tools write: details of lighteval, n-best lists, predictions of BabyLM's evaluation."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from geval_py.cli import main
from geval_py.errors import UnreadableFileError, UsageError
from geval_py.reading.formats import convert
from geval_py.reading.lines import read_lines
from geval_py.reading.outputs import find_outputs, output_at

DATA = Path(__file__).parents[1] / "data"


def lines_of(path):
    return list(read_lines(output_at(str(path)).path))


@pytest.mark.long
def test_samples_that_lm_evaluation_harness_logs(tmp_path):
    """Made here by the tool, whose model "dummy" answers at random."""
    pytest.importorskip("lm_eval")
    shutil.copytree(DATA / "lm-eval", tmp_path, dirs_exist_ok=True)
    command = "-m lm_eval --model dummy --tasks colours --include_path . --log_samples --output_path found"
    subprocess.run([sys.executable, *command.split()], cwd=tmp_path, check=True, capture_output=True)
    (samples,) = (tmp_path / "found").rglob("samples_colours_*.jsonl")
    logged = [json.loads(line) for line in samples.read_text().splitlines()]
    convert(str(samples), str(tmp_path / "out.tsv"))
    lines = (tmp_path / "out.tsv").read_text().splitlines()
    for sample, line in zip(logged, lines, strict=True):
        numbers = [answer[0] for answer in sample["filtered_resps"]]
        assert line == " ".join(map(":".join, zip(sample["doc"]["choices"], numbers, strict=True)))


def test_details_of_lighteval(tmp_path):
    """lighteval 0.13.0: its Doc and ModelResponse, saved as EvaluationTracker.save does, by datasets 5.2.0."""
    convert(str(DATA / "lighteval" / "details_colours.parquet"), str(tmp_path / "out.tsv"))
    assert (tmp_path / "out.tsv").read_text() == (
        "blue:-0.6394267984578837 green:-0.025010755222666936 loud:-0.27502931836911926\n"
        "blue:-0.22321073814882275 green:-0.7364712141640124 loud:-0.6766994874229113\n"
    )


ALIKE = "row 1, doc.choices: the choices are empty or alike: the contexts differ, and no words are compared"
BAD_DETAILS = [
    ([" a", "a"], [-0.5, -1.0], ALIKE),
    ([" a", " "], [-0.5, -1.0], ALIKE),
    ([" a", None], [-0.5, -1.0], "row 1, doc.choices[1]: a choice is a string, not nothing"),
    ([" a", " b"], [-0.5], "row 1, logprobs: 1 numbers for 2 words"),
    ([" a b"], [-0.5], "row 1, words[0]: the word `a b` has a space in it, which would split the line"),
    (None, [-0.5], "column doc.choices: lighteval's details of a multiple-choice task have a list there"),
    ([" a"], None, "column model_response.logprobs: lighteval's details of a multiple-choice task have a list there"),
]


@pytest.mark.parametrize(("choices", "logs", "reason"), BAD_DETAILS, ids=range(len(BAD_DETAILS)))
def test_bad_details_have_a_place(choices, logs, reason, tmp_path):
    path = tmp_path / "out.parquet"
    rows = {"doc": [{"query": "q", "choices": choices}], "model_response": [{"logprobs": logs, "text": "t"}]}
    pq.write_table(pa.table(rows), path)
    with pytest.raises(UnreadableFileError) as caught:
        lines_of(path)
    assert caught.value.reason == reason


# As Marian's --n-best prints it; Moses has more numbers, and alignments after the score.
MARIAN = """0 ||| das ist ein Test ||| F0= -2.5 ||| -0.5
0 ||| dies ist ein Test ||| F0= -2.0 ||| -0.4
1 ||| ja ||| F0= -0.75 ||| -0.375
1 |||  ||| F0= -1.5 ||| -0.75
"""
MOSES = "0 ||| the ||| d: 0 lm: -5 w: -1 ||| -1.5 ||| 0-0\n0 ||| a ||| d: 0 lm: -6 w: -1 ||| -2e0\n"


def test_the_best_of_n_best_lists(tmp_path, capsys, monkeypatch):
    path = tmp_path / "out-of=marian.nbest"
    path.write_text(MARIAN)
    assert lines_of(path) == ["dies ist ein Test", "ja"]
    (found,) = find_outputs(str(tmp_path))
    assert (found.name, found.parameters) == ("out-of=marian.nbest", {"of": "marian"})
    convert(str(path), str(tmp_path / "best.tsv"))
    assert (tmp_path / "best.tsv").read_text() == "dies ist ein Test\nja\n"
    (tmp_path / "expected.tsv").write_text("dies ist ein Test\nnein\n")
    monkeypatch.chdir(tmp_path)
    for name in ("out-of=marian.nbest", "best.tsv"):
        assert main(["-o", name, "-e", "expected.tsv", "-m", "Accuracy"]) == 0
        assert capsys.readouterr().out == "0.5\n"


def test_words_of_n_best_lists(tmp_path):
    path = tmp_path / "out-k=2.words.nbest"
    path.write_text(MOSES)
    assert lines_of(path) == ["the:-1.5 a:-2.0"]
    assert output_at(str(path)).parameters == {"k": "2"}
    with pytest.raises(UsageError, match=r"\.words\.nbest is only read: it cannot be written"):
        convert(str(path), str(tmp_path / "new.words.nbest"))


BAD_LISTS = [
    ("0 ||| a\n", "row 1: `number ||| text ||| features ||| score` is wanted"),
    ("1 ||| a ||| ||| -1\n", "row 1, number: 0 is wanted, not `1`: lists are numbered from 0"),
    ("0 ||| a ||| ||| -1\n2 ||| a ||| ||| -1\n", "row 2, number: 1 is wanted, not `2`: lists are numbered from 0"),
    ("0 ||| a ||| ||| x\n", "row 1, score: `x` is not a number such as 0.5 or 1e-05"),
    ("0 ||| a ||| ||| -1_0\n", "row 1, score: `-1_0` is not a number such as 0.5 or 1e-05"),
    ("0 ||| a ||| ||| -１.5\n", "row 1, score: `-１.5` is not a number such as 0.5 or 1e-05"),
    ("0 ||| a ||| ||| -inf\n", "row 1, score: it is -infinity; leave a word out whose probability is 0"),
    ("0 ||| a ||| ||| inf\n", "row 1, score: the number is infinite, or too large"),
    ("0 ||| a ||| ||| -1\n0 ||| a b ||| ||| -1\n",
     "row 2: the word `a b` has a space in it, which would split the line; "
     "a list of texts ends in .nbest, without .words"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "reason"), BAD_LISTS, ids=range(len(BAD_LISTS)))
def test_bad_lists_have_a_place(text, reason, tmp_path):
    path = tmp_path / "out.words.nbest"
    path.write_text(text)
    with pytest.raises(UnreadableFileError) as caught:
        lines_of(path)
    assert caught.value.reason == reason


def predictions(*tasks):
    return {
        task: {"predictions": [{"id": f"{task}_{n}", "pred": one} for n, one in enumerate(of)]} for task, of in tasks
    }


def test_predictions_of_babylm(tmp_path):
    """The layout that the README of babylm/evaluation-pipeline-2025 shows: a file of a run, and a collated one."""
    path = tmp_path / "out-model=x.predictions.json"
    of_run = predictions(("boolq", [0, 1]), ("agreement", ["The\u00a0cats\u200c sleep.", " Cats sleep."]))
    for document in (of_run, {"glue": predictions(("boolq", [0, 1])), "blimp": dict([list(of_run.items())[1]])}):
        path.write_text(json.dumps(document))
        assert lines_of(path) == ["0", "1", "The\u00a0cats\u200c sleep.", "Cats sleep."]
    assert output_at(str(path)).parameters == {"model": "x"}


BAD_PREDICTIONS = [
    ("[]", "a map of tasks is wanted, each with predictions"),
    ("{}", "a map of tasks is wanted, each with predictions"),
    ("{", "it is not JSON: Expecting property name enclosed in double quotes: line 2 column 1 (char 2)"),
    ("[" * 100_000, "its maps are nested too deeply"),
    ('{"a": 1, "a": 2}', "it is not JSON: the key `a` is there twice"),
    (predictions(("a", [1])) | {"b": 1}, "`b`: a list of predictions is wanted"),
    (predictions(("a", [None])), "`a`, predictions[0].pred: a text or a whole number is wanted"),
    (predictions(("a", ["x\ny"])), "`a`, predictions[0].pred: `x\\ny` is not a line of text"),
    ({"a": {"predictions": [{"id": "a_1", "pred": 1}]}}, "`a`, predictions[0].id: an id that ends in _0 is wanted"),
    ({"a\x1b": {"predictions": [3]}}, "`a\\x1b`, predictions[0].id: an id that ends in _0 is wanted"),
]


@pytest.mark.parametrize(("document", "reason"), BAD_PREDICTIONS, ids=range(len(BAD_PREDICTIONS)))
def test_bad_predictions_have_a_place(document, reason, tmp_path):
    path = tmp_path / "out.predictions.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    with pytest.raises(UnreadableFileError) as caught:
        lines_of(path)
    assert caught.value.reason == reason
