"""Scores without files, and metrics that are fed by batches: the same as of the same lines in files."""

import math
import pickle
import random
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from output_formats import write_as
from raising import refused

import geval_py
from geval_py import MalformedLineError, Metric, UsageError, evaluate, format_line, improve, score, score_file
from geval_py.errors import EmptyFileError, GevalError, LineCountError
from geval_py.explaining.calibration import calibration
from geval_py.explaining.luck import luck

WORDS = ["the", "a", "of", "żółć", "cat", "dog"]
HASHED = "PerplexityHashed"


def example(lines=120, seed=1):
    draw = random.Random(seed)
    expected = [draw.choice(WORDS) for _ in range(lines)]
    predictions = [{word: draw.random() / 6 for word in draw.sample(WORDS, 4)} for _ in expected]
    inputs = [{"Doc": f"d{n // 10}", "Left": f"{draw.choice(WORDS)} {draw.choice(WORDS)}"} for n in range(lines)]
    return predictions, expected, inputs


PREDICTIONS, EXPECTED, INPUTS = example()
TEXTS = [format_line(prediction) for prediction in PREDICTIONS]
TABLE = np.array([[prediction.get(word, 0.0) for word in WORDS] for prediction in PREDICTIONS])


@pytest.fixture
def challenge(tmp_path):
    (tmp_path / "dev-0").mkdir()
    files = {
        "config.txt": [f"--metric {HASHED} --in-header in-header.tsv"], "in-header.tsv": ["Doc\tLeft"],
        "dev-0/expected.tsv": EXPECTED, "dev-0/out.tsv": TEXTS,
        "dev-0/in.tsv": ["\t".join(row.values()) for row in INPUTS],
    }  # fmt: skip
    for name, lines in files.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return tmp_path


PREDICTED = {
    "dictionaries": PREDICTIONS, "lines": TEXTS, "pairs": [list(prediction.items()) for prediction in PREDICTIONS],
    "Series": [pd.Series(prediction) for prediction in PREDICTIONS], "an iterator": None,
    "arrays": Metric(HASHED, vocabulary=WORDS).predictions(TABLE),
}  # fmt: skip


@pytest.mark.parametrize("kind", PREDICTED)
def test_lists_score_as_files(challenge, kind):
    found = score(iter(TEXTS) if kind == "an iterator" else PREDICTED[kind], EXPECTED, metric=HASHED, inputs=INPUTS)
    wanted = evaluate(challenge, "dev-0")
    assert isinstance(found, geval_py.Evaluation)
    assert math.isclose(found.score, wanted.score, rel_tol=1e-12)
    assert found.interval().low == pytest.approx(wanted.interval().low, rel=1e-9)
    shown = ["Doc", "Left", "expected"]
    pd.testing.assert_frame_equal(found.lines()[shown], wanted.lines()[shown])
    if kind != "arrays":
        assert found.signature == wanted.signature
        pd.testing.assert_frame_equal(found.worst_features(min_frequency=3), wanted.worst_features(min_frequency=3))
    if kind == "lines":
        assert pickle.loads(pickle.dumps(found)).lines()["output"].tolist() == TEXTS
    assert found.split.name == "expected"
    assert found.output.name == "predictions"


def test_what_explains_a_score_reads_lists_and_arrays_again(challenge):
    wanted = evaluate(challenge, "dev-0")
    of_lists = score(PREDICTIONS, EXPECTED, metric=HASHED, inputs=INPUTS, name="lists")
    of_arrays = score(PREDICTED["arrays"], EXPECTED, metric=HASHED, inputs=INPUTS, name="arrays")
    for found in (of_lists, of_arrays):
        assert calibration(found).claim.observed == pytest.approx(calibration(wanted).claim.observed)
        assert luck(found, seeds=3).mean == pytest.approx(luck(wanted, seeds=3).mean)
        assert improve(found, documents="Doc").held_out == pytest.approx(improve(wanted, documents="Doc").held_out)
    assert {system.name for system in geval_py.compare([of_lists, of_arrays, wanted]).systems} == {
        "arrays", "lists", "out.tsv",
    }  # fmt: skip
    mixture = improve([of_lists, of_arrays], documents="Doc")
    assert sum(component.weight for component in mixture.components) == pytest.approx(1.0)


@pytest.mark.filterwarnings("ignore:`predictions`. the loss of 36 of 120 lines is infinite")
def test_several_metrics_of_arrays():
    names = ["LikelihoodHashed8", HASHED, "LogLossHashed8"]
    predictions = PREDICTED["arrays"]
    found = score(predictions, EXPECTED, metric=names)
    wanted = score(list(predictions), EXPECTED, metric=names)
    assert [score.name for score in found.scores] == names
    for one, other in zip(found.scores, wanted.scores, strict=True):
        assert math.isclose(one.value, other.value, rel_tol=1e-12)
        assert math.isclose(one.statistics.bound, other.statistics.bound, rel_tol=1e-12)
    assert found.signature.parts["output"] == wanted.signature.parts["output"]


def test_inputs_of_all_kinds():
    rows = [{"Left": "a\tb\n", "Doc": 1}, {"Doc": "x"}]
    for inputs in (rows, pd.DataFrame(rows).fillna("")):
        frame = score(["a:1", "b:1"], ["a", "b"], metric=HASHED, inputs=inputs).lines()
        assert frame[["Left", "Doc"]].values.tolist() == [["a\\tb\\n", "1"], ["", "x"]]
    frame = score(["a:1", "b:1"], ["a", "b"], metric=HASHED, inputs=["l\tr", "m"]).lines()
    assert frame[["1", "2"]].fillna("").values.tolist() == [["l", "r"], ["m", ""]]


def test_lists_are_not_files_of_the_current_folder(tmp_path, monkeypatch):
    """Neither `expected`, nor `predictions`, nor a training set in the folder above changes anything."""
    (tmp_path / "train").mkdir()
    (tmp_path / "train/expected.tsv").write_text("the\n" * 1000)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for name in ("expected", "predictions", "inputs"):
        (tmp_path / "here" / name).write_text("no line\n")
    with pytest.warns(UserWarning, match="vocabulary|infinite") as caught:
        found = score(PREDICTIONS, EXPECTED, metric=[HASHED, "LogLoss"], inputs=INPUTS)
    assert str(caught[0].message).startswith("120 of 120 expected words are not in a vocabulary")
    assert found.score == score(TEXTS, EXPECTED, metric=HASHED).score
    assert [component.name for component in improve(found).components] == ["predictions", "uniform"]


@pytest.mark.parametrize("word", ["BZh91AY&SY", "%PDF-"])
def test_a_text_may_look_like_another_file(word, tmp_path):
    assert score([f"{word}:1"], ["a"], metric="Accuracy").file_lines == 1
    write_as(tmp_path / "out.jsonl", [f"{word}:0.5 :0.5"])
    (tmp_path / "expected.tsv").write_text(f"{word[1:]}\n")
    assert score_file(tmp_path / "out.jsonl", tmp_path / "expected.tsv", metric="Accuracy").file_lines == 1


ERRORS = {
    "no metric": ((TEXTS, EXPECTED), {}, UsageError, "no metric given, use metric=…"),
    "arrays without a vocabulary": ((TABLE, EXPECTED), {"metric": HASHED}, UsageError, "predictions[0]: numbers without words: write_output and Metric take a vocabulary=…, and score takes metric.predictions(numbers)"),
    "one prediction": (("a:1", ["a"]), {"metric": HASHED}, UsageError, "predictions are a list with one for each line, not 'a:1'"),
    "one dictionary": (({"a": 1.0}, ["a"]), {"metric": HASHED}, UsageError, "predictions are a list with one for each line, not {'a': 1.0}"),
    "a bad prediction": (([{"a": 2.0}], ["a"]), {"metric": HASHED}, UsageError, "predictions[0]: the probability of 'a' is 2.0, which is not between 0 and 1"),
    "a bad line": ((["a:1", "b"], ["a", "b"]), {"metric": HASHED}, MalformedLineError, "Line 2: Unexpected data [input does not start with a digit]\n  `predictions`, line 2, column 1: `b` is not an entry"),
    "a word too few": ((["a:1", "b:1"], ["a"]), {"metric": HASHED}, LineCountError, ""),
    "an expected word that is none": ((["a:1"], [None]), {"metric": HASHED}, UsageError, "references[0] is None, which is no text"),
    "references that are a text": ((["a:1", "b:1"], "ab"), {"metric": HASHED}, UsageError, "references are a list, not 'ab': for one line write [word]"),
    "a flag": (([{"the": 0.9}] * 2, ["the", True]), {"metric": ["RMSE", "LogLoss"]}, UsageError, "references[1] is True, which is no text"),
    "nothing": (([], []), {"metric": HASHED}, EmptyFileError, ""),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "how", "kind", "message"), ERRORS.values(), ids=ERRORS)
def test_errors(arguments, how, kind, message):
    with pytest.raises(kind) as caught:
        score(*arguments, **how)
    assert str(caught.value).startswith(message)


def test_a_filter_by_the_input_without_inputs():
    with refused("a feature of the input was asked for, and there is no input: give inputs=…"):
        score(TEXTS, EXPECTED, metric=f"{HASHED}:f<in<1>:x>")


def test_a_flat_dictionary_of_scores():
    found = score(PREDICTIONS, EXPECTED, metric=[HASHED, "Accuracy"], inputs=INPUTS)
    scores = found.scores_dict(documents=False)
    assert [*scores] == [HASHED, "Accuracy", f"{HASHED}_low", f"{HASHED}_high", "Accuracy_low", "Accuracy_high"]
    interval = found.interval(documents=False)
    assert (scores[HASHED], scores[f"{HASHED}_low"], scores[f"{HASHED}_high"]) == (
        found.score, interval.low, interval.high,
    )  # fmt: skip
    assert [*found.scores_dict(intervals=False)] == [HASHED, "Accuracy"]
    assert all(type(value) is float for value in scores.values())


def test_a_call_scores_as_files(challenge):
    wanted = evaluate(challenge, "dev-0")
    metric, numbers = Metric(HASHED, vocabulary=WORDS), [WORDS.index(word) for word in EXPECTED]
    for predictions in (*PREDICTED.values(), TABLE, TABLE.tolist(), pd.DataFrame(TABLE, columns=WORDS)):
        predictions = iter(TEXTS) if predictions is None else predictions
        assert metric(predictions, EXPECTED) == pytest.approx(wanted.score, rel=1e-12)
    for references in (np.array(numbers), numbers, tuple(EXPECTED), iter(EXPECTED), pd.Series(EXPECTED)):
        assert metric(TEXTS, references) == wanted.score
    assert metric.losses(TEXTS, EXPECTED).tolist() == list(wanted.line_losses)
    assert len(metric) == 0
    assert (metric.name, metric.unit, metric.direction) == (HASHED, "words", "lower")
    assert metric.summary == "inverse of the likelihood"


@pytest.mark.parametrize("name", ["LogLoss", "Accuracy", "BrierScore", "Hit@3", "MRR", "PerplexityHashed:u"])
def test_arrays_are_scored_by_metrics_of_words(name):
    table = TABLE + 0.01
    texts = [format_line(row, vocabulary=WORDS) for row in table]
    wanted = score(texts, EXPECTED, metric=name, vocabulary=WORDS if name == "LogLoss" else ()).score
    metric = Metric(name, vocabulary=WORDS)
    assert metric(table, EXPECTED) == pytest.approx(wanted)
    assert metric(np.log(table), EXPECTED, log=True) == pytest.approx(wanted)
    assert metric(table, [WORDS.index(word) for word in EXPECTED]) == pytest.approx(wanted)


@pytest.mark.parametrize(("name", "predictions", "references", "value"), [
    ("RMSE", [1.5, 2], [1, 2], math.sqrt(0.125)), ("Accuracy", ["a", "b"], ["a", "c"], 0.5),
    ("WER", ["a b c", "d e"], ["a b c", "d f"], 0.2),
    ("Pearson", np.array([1.0, 2.0, 4.0]), pd.Series([2.0, 4.0, 8.0]), 1.0),
])  # fmt: skip
def test_metrics_of_other_tasks_take_lists(name, predictions, references, value):
    assert score(predictions, references, metric=name).score == pytest.approx(value)
    assert Metric(name)(predictions, references) == pytest.approx(value)


@pytest.mark.parametrize(
    "lines", [7, np.int64(7), [7, 8, 9], np.array([7, 8, 9], np.uint8), range(7, 10), pd.Series([7, 8, 9])]
)
def test_line_numbers_of_all_kinds(lines):
    wanted = Metric(HASHED).losses([":1"] * 6 + TEXTS[:3], ["a"] * 6 + EXPECTED[:3]).tolist()[6:]
    metric = Metric("LogLossHashed")
    for predictions in (TEXTS[:3], Metric(HASHED, vocabulary=WORDS).predictions(TABLE[:3])):
        assert metric.losses(predictions, EXPECTED[:3], lines=lines).tolist() == pytest.approx(wanted)
        metric.reset()
        metric.update(predictions, EXPECTED[:3], lines=lines)
        assert metric.compute() == pytest.approx(sum(wanted) / 3)


@settings(deadline=None, derandomize=True)
@given(st.lists(st.integers(1, len(TEXTS) - 1), unique=True).map(sorted), st.booleans(), st.randoms())
def test_batches_give_the_digits_of_the_whole(cuts, arrays, draw):
    wanted = score(PREDICTED["arrays"] if arrays else TEXTS, EXPECTED, metric=HASHED).score
    parts = list(pairwise([0, *cuts, len(TEXTS)]))
    draw.shuffle(parts)
    several = [Metric(HASHED) for _ in range(3)]
    for start, stop in parts:
        batch = Metric(HASHED, vocabulary=WORDS).predictions(TABLE[start:stop]) if arrays else TEXTS[start:stop]
        draw.choice(several).update(batch, EXPECTED[start:stop], lines=start + 1)
    merged = pickle.loads(pickle.dumps(several[0])) + several[1] + several[2]
    assert merged.compute() == wanted
    assert len(merged) == len(TEXTS)


def test_shuffled_lines_give_the_digits_of_a_correlation():
    places = random.Random(4).sample(range(40), 40)
    predictions, expected = [n % 7 + n / 100 for n in range(40)], [str(n % 5) for n in range(40)]
    found = Metric("Pearson")
    found.update([predictions[n] for n in places], [expected[n] for n in places], lines=[n + 1 for n in places])
    assert found.compute() == score(predictions, expected, metric="Pearson").score


def test_lines_go_on_where_they_ended():
    found = Metric(HASHED)
    found.update(TEXTS[:50], EXPECTED[:50])
    found.update(TEXTS[50:], EXPECTED[50:])
    assert found.compute() == score(TEXTS, EXPECTED, metric=HASHED).score
    found.reset()
    assert len(found) == 0
    found.update(TEXTS, EXPECTED)
    assert found.compute() == score(TEXTS, EXPECTED, metric=HASHED).score


def test_an_update_that_fails_adds_nothing():
    found = Metric(HASHED)
    found.update(TEXTS[:2], EXPECTED[:2])
    with pytest.raises(MalformedLineError) as caught:
        found.update(["the:1", "the"], ["a", "b"], lines=7)
    assert caught.value.line == 8
    assert len(found) == 2
    found.update([], [])
    found.update(TEXTS[2:], EXPECTED[2:])
    assert found.compute() == score(TEXTS, EXPECTED, metric=HASHED).score


def update(*lists, **how):
    Metric(HASHED).update(*lists, **how)


ONE = ["a:1"], ["a"]
WRONG = {
    "no lines": (lambda: Metric(HASHED).compute(), f"{HASHED} has no lines yet: update it with predictions"),
    "a call without lines": (lambda: Metric(HASHED)([], []), "there is no line to score"),
    "no name": (lambda: Metric(WORDS), f"a metric is a name, such as 'PerplexityHashed', not {WORDS!r}"),
    "two metrics": (lambda: Metric("{LogLoss,Likelihood}Hashed"), "`{LogLoss,Likelihood}Hashed` names 2 metrics: make one Metric for each"),
    "a filter": (lambda: Metric(f"{HASHED}:f<exp:the>"), f"{HASHED}:f<exp:the> selects lines: score all lines at once, with score(…, inputs=…)"),
    "another number of words": (lambda: update(["a:1"], []), "1 prediction, but 0 references"),
    "another metric": (lambda: Metric(HASHED) + Metric("LogLossHashed"), f"only metrics of one name, vocabulary and tokenizer are added, not {HASHED} and LogLossHashed"),
    "another vocabulary": (lambda: Metric("LogLoss", vocabulary=["a"]) + Metric("LogLoss", vocabulary=["b"]), "only metrics of one name, vocabulary and tokenizer are added, not LogLoss and LogLoss"),
    "logits of text": (lambda: Metric(HASHED)(*ONE, logits=True), "predictions[0]: a line of text has no use for logits=…"),
    "logarithms of Predictions": (lambda: Metric(HASHED)(PREDICTED["arrays"], EXPECTED, log=True), "Predictions has no use for log=…"),
    "predictions without a vocabulary": (lambda: Metric(HASHED).predictions(TABLE), "numbers without words: write_output and Metric take a vocabulary=…, and score takes metric.predictions(numbers)"),
    "a vocabulary of texts": (lambda: Metric("BLEU", vocabulary=WORDS), "BLEU has no use for vocabulary=…"),
    "a tokenizer of words": (lambda: Metric(HASHED, tokenizer="13a"), f"{HASHED} has no use for tokenizer=…"),
    "threads and duplicates": (lambda: Metric("LogLoss", threads=2, duplicates="sum"), "LogLoss has no use for duplicates=… or threads=…"),
    "an unknown tokenizer": (lambda: Metric("BLEU", tokenizer="14a"), "Unknown tokenizer: 14a\n  did you mean v14? there are minimalistic, character-by-character, 13a, v14"),
    "losses of a correlation": (lambda: Metric("Pearson").losses([1.0], [2.0]), "Pearson is not made from losses, but from expected, output"),
    "a word that is a line end": (lambda: update(["a:1"], ["a\n"]), "references[0] contains a line end; give one line an item"),
    "bytes": (lambda: update([b"a:1"], ["a"]), "predictions[0]: a line is made from a mapping from words to probabilities, a pandas Series or pairs (word, probability), not from b'a:1'"),
}  # fmt: skip


@pytest.mark.parametrize(("wrong", "message"), WRONG.values(), ids=WRONG)
def test_errors_of_metrics(wrong, message):
    with refused(message, GevalError):
        wrong()
