"""Scores without files: the same as of the same lines in files, from lists, arrays and batches."""

import math
import pickle
import random
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import geval_py
from geval_py import Evaluation, MalformedLineError, UsageError, compare, evaluate, format_line, score
from geval_py.errors import EmptyFileError, GevalError, LineCountError
from geval_py.scoring.arrays import Scorer
from geval_py.scoring.in_memory import metric

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
    """The same lines in files."""
    (tmp_path / "dev-0").mkdir()
    for name, lines in {
        "config.txt": [f"--metric {HASHED} --in-header in-header.tsv"],
        "in-header.tsv": ["Doc\tLeft"],
        "dev-0/expected.tsv": EXPECTED,
        "dev-0/out.tsv": TEXTS,
        "dev-0/in.tsv": ["\t".join(row.values()) for row in INPUTS],
    }.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return tmp_path


PREDICTED = {
    "dictionaries": PREDICTIONS,
    "lines": TEXTS,
    "pairs": [list(prediction.items()) for prediction in PREDICTIONS],
    "Series": [pd.Series(prediction) for prediction in PREDICTIONS],
    "an iterator": None,
    "arrays": Scorer(WORDS).predictions(TABLE),
}


@pytest.mark.parametrize("kind", PREDICTED)
def test_lists_score_as_files(challenge, kind):
    found = score(iter(TEXTS) if kind == "an iterator" else PREDICTED[kind], EXPECTED, metric=HASHED, inputs=INPUTS)
    wanted = evaluate(challenge, "dev-0")
    assert isinstance(found, Evaluation)
    assert math.isclose(found.score, wanted.score, rel_tol=1e-12)
    assert found.interval().low == pytest.approx(wanted.interval().low, rel=1e-9)
    pd.testing.assert_frame_equal(
        found.lines()[["Doc", "Left", "expected"]], wanted.lines()[["Doc", "Left", "expected"]]
    )
    if kind != "arrays":
        assert found == wanted
        assert found.signature.output == wanted.signature.output
        pd.testing.assert_frame_equal(found.worst_features(min_frequency=3), wanted.worst_features(min_frequency=3))
    assert found.split.name == "expected"
    assert found.output.name == "predictions"


def test_what_explains_a_score_reads_lists_and_arrays_again(challenge):
    wanted = evaluate(challenge, "dev-0")
    of_lists = score(PREDICTIONS, EXPECTED, metric=HASHED, inputs=INPUTS, name="lists")
    of_arrays = score(PREDICTED["arrays"], EXPECTED, metric=HASHED, inputs=INPUTS, name="arrays")
    for found in (of_lists, of_arrays):
        assert geval_py.calibration(found).claim.perplexity == pytest.approx(
            geval_py.calibration(wanted).claim.perplexity
        )
        assert geval_py.luck(found, seeds=3).mean == pytest.approx(geval_py.luck(wanted, seeds=3).mean)
        assert [t.score for t in geval_py.tune(found, documents="Doc").trials] == pytest.approx(
            [t.score for t in geval_py.tune(wanted, documents="Doc").trials]
        )
    assert {system.name for system in compare([of_lists, of_arrays, wanted]).systems} == {
        "arrays",
        "lists",
        "out.tsv",
    }
    mixture = geval_py.mix([of_lists, of_arrays], documents="Doc")
    assert sum(component.weight for component in mixture.components) == pytest.approx(1.0)


def test_evaluations_with_other_answers_are_not_compared():
    both = [
        score(["a:1", "b:1"], answers, metric=HASHED, name=name)
        for name, answers in [("x", ["a", "b"]), ("y", ["a", "c"])]
    ]
    with pytest.raises(UsageError) as caught:
        compare(both)
    assert str(caught.value) == "`x` and `y` were scored with different answers: 'b' and 'c' on line 2"


def test_several_metrics_of_arrays():
    names = ["LikelihoodHashed8", HASHED, "LogLossHashed8"]
    predictions = PREDICTED["arrays"]
    found = evaluate(predictions, EXPECTED, metric=names)
    wanted = evaluate(list(predictions), EXPECTED, metric=names)
    assert [score.name for score in found.scores] == names
    for one, other in zip(found.scores, wanted.scores, strict=True):
        assert math.isclose(one.value, other.value, rel_tol=1e-12)
        assert math.isclose(one.statistics.bound, other.statistics.bound, rel_tol=1e-12)
    assert found.signature is None  # it would take longer than scoring
    assert found != wanted
    mixed = score(predictions, EXPECTED, metric=["Accuracy", "LogLoss"], vocabulary=WORDS)
    assert [score.value for score in mixed.scores] == [
        score.value
        for score in score(list(predictions), EXPECTED, metric=["Accuracy", "LogLoss"], vocabulary=WORDS).scores
    ]


def test_expected_ids_of_arrays():
    found = evaluate(PREDICTED["arrays"], np.array([WORDS.index(word) for word in EXPECTED]), metric=HASHED)
    assert found.score == evaluate(PREDICTED["arrays"], EXPECTED).score  # the metric is the scorer's
    assert found.lines()["expected"].tolist() == EXPECTED


@pytest.mark.parametrize(
    ("name", "predictions", "expected", "value"),
    [
        ("RMSE", [1.5, 2], [1, 2], math.sqrt(0.125)),
        ("Accuracy", ["a", "b"], ["a", "c"], 0.5),
        ("WER", ["a b c", "d e"], ["a b c", "d f"], 0.2),
        ("Pearson", np.array([1.0, 2.0, 4.0]), pd.Series([2.0, 4.0, 8.0]), 1.0),
    ],
)
def test_other_metrics(name, predictions, expected, value):
    assert evaluate(predictions, expected, metric=name).score == pytest.approx(value)


def test_inputs_of_all_kinds():
    rows = [{"Left": "a\tb\n", "Doc": 1}, {"Doc": "x"}]
    for inputs in (rows, pd.DataFrame(rows).fillna("")):
        frame = score(["a:1", "b:1"], ["a", "b"], metric=HASHED, inputs=inputs).lines()
        assert frame[["Left", "Doc"]].values.tolist() == [["a\\tb\\n", "1"], ["", "x"]]
    frame = score(["a:1", "b:1"], ["a", "b"], metric=HASHED, inputs=["l\tr", "m"]).lines()
    assert frame[["1", "2"]].fillna("").values.tolist() == [["l", "r"], ["m", ""]]


def test_a_row_like_the_header_is_a_row():
    frame = score(["a:1", "b:1"], ["a", "b"], metric=HASHED, inputs=[{"Left": "Left"}, {"Left": "x"}]).lines()
    assert frame["Left"].tolist() == ["Left", "x"]


def test_lists_are_not_files_of_the_current_folder(tmp_path, monkeypatch):
    """Neither `expected`, nor `predictions`, nor a training set in the folder above changes anything."""
    (tmp_path / "train").mkdir()
    (tmp_path / "train/expected.tsv").write_text("the\n" * 1000)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for name in ("expected", "predictions", "inputs"):
        (tmp_path / "here" / name).write_text("no line\n")
    found = score(PREDICTIONS, EXPECTED, metric=[HASHED, "LogLoss"], inputs=INPUTS)
    assert found.score == evaluate(TEXTS, EXPECTED, metric=HASHED).score
    assert not any("nu" in trial.names for trial in geval_py.tune(found).trials)


def test_a_text_may_look_like_a_compressed_file():
    assert score(["BZh91AY&SY:1", "\x1f\x8b:1"], ["a", "b"], metric=HASHED).file_lines == 2


def test_an_evaluation_of_lists_can_be_pickled():
    found = pickle.loads(pickle.dumps(score(TEXTS, EXPECTED, metric=HASHED, inputs=INPUTS)))
    assert found.lines()["output"].tolist() == TEXTS
    assert geval_py.luck(found, seeds=2).score == found.score


ERRORS = {
    "no metric": ((TEXTS, EXPECTED), {}, UsageError, "no metric given, use metrics=…"),
    "no expected words": ((TEXTS,), {"metrics": HASHED}, UsageError, "predictions are scored against expected words: evaluate(predictions, expected, …)"),
    "arrays without a vocabulary": ((TABLE, EXPECTED), {"metrics": HASHED}, UsageError, "predictions[0]: a line is made from a mapping from words to probabilities, a pandas Series or pairs (word, probability), not from a ndarray of "),
    "one prediction": (("a:1", ["a"]), {"metrics": HASHED}, UsageError, "predictions are a list with one for each line, not 'a:1'"),
    "one dictionary": (({"a": 1.0}, ["a"]), {"metrics": HASHED}, UsageError, "predictions are a list with one for each line, not {'a': 1.0}"),
    "a bad prediction": (([{"a": 2.0}], ["a"]), {"metrics": HASHED}, UsageError, "predictions[0]: the probability of 'a' is 2.0, which is not between 0 and 1"),
    "a bad line": ((["a:1", "b"], ["a", "b"]), {"metrics": HASHED}, MalformedLineError, "Line 2: Unexpected data [input does not start with a digit]\n  `predictions`, line 2, column 1: `b` is not an entry"),
    "a bad row": ((Scorer(["a"]).predictions([[2.0]]), ["a"]), {"metrics": HASHED}, UsageError, "probabilities[0]: the probability of 'a' is 2.0, which is not between 0 and 1"),
    "a word too few": ((["a:1", "b:1"], ["a"]), {"metrics": HASHED}, LineCountError, ""),
    "an expected word too few": ((Scorer(["a"]).predictions([[1.0], [1.0]]), ["a"]), {"metrics": HASHED}, UsageError, "2 rows, but 1 expected words"),
    "an expected word that is none": ((["a:1"], [None]), {"metrics": HASHED}, UsageError, "expected[0] is None, which is no text"),
    "an id": (([{"the": 0.9}], [0]), {"metrics": HASHED}, UsageError, "expected[0] is 0, which is no text"),
    "a flag": (([{"the": 0.9}] * 2, ["the", True]), {"metrics": ["RMSE", "LogLoss"]}, UsageError, "expected[1] is True, which is no text"),
    "nothing": (([], []), {"metrics": HASHED}, EmptyFileError, ""),
    "a cluster": ((["a:1"], ["a"]), {"metrics": HASHED, "cluster": object()}, UsageError, "a cluster scores files, and not lists"),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "how", "kind", "message"), ERRORS.values(), ids=ERRORS)
def test_errors(arguments, how, kind, message):
    with pytest.raises(kind) as caught:
        evaluate(*arguments, **how)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("numbers", [TABLE[:2], TABLE[:2].tolist(), TABLE[:2].astype("float32")])
def test_arrays_without_a_vocabulary_are_told_the_way(numbers):
    with pytest.raises(UsageError) as caught:
        evaluate(numbers, EXPECTED[:2], metric=HASHED)
    assert str(caught.value).splitlines()[1:] == [
        "  numbers without words, in the order of a vocabulary: Scorer(vocabulary).predictions(rows)"
    ]


def test_a_filter_by_the_input_without_inputs():
    with pytest.raises(UsageError) as caught:
        evaluate(TEXTS, EXPECTED, metric=f"{HASHED}:f<in<1>:x>")
    assert str(caught.value) == "a feature of the input was asked for, and there is no input: give inputs=…"


def test_a_flat_dictionary_of_scores():
    found = score(PREDICTIONS, EXPECTED, metric=[HASHED, "Accuracy"], inputs=INPUTS)
    scores = found.scores_dict(documents=False)
    assert [*scores] == [HASHED, "Accuracy", f"{HASHED}_low", f"{HASHED}_high", "Accuracy_low", "Accuracy_high"]
    interval = found.interval(documents=False)
    assert (scores[HASHED], scores[f"{HASHED}_low"], scores[f"{HASHED}_high"]) == (
        found.score,
        interval.low,
        interval.high,
    )
    assert [*found.scores_dict(intervals=False)] == [HASHED, "Accuracy"]
    assert all(type(value) is float for value in scores.values())


# Batches


@settings(deadline=None, derandomize=True)
@given(st.lists(st.integers(1, len(TEXTS) - 1), unique=True).map(sorted), st.booleans(), st.randoms())
def test_batches_give_the_digits_of_the_whole(cuts, arrays, draw):
    """In any order, from any number of accumulators, some of which have nothing."""
    wanted = evaluate(PREDICTED["arrays"] if arrays else TEXTS, EXPECTED, metric=HASHED).score
    parts = list(pairwise([0, *cuts, len(TEXTS)]))
    draw.shuffle(parts)
    several = [metric(HASHED) for _ in range(3)]
    for start, stop in parts:
        batch = Scorer(WORDS).predictions(TABLE[start:stop]) if arrays else TEXTS[start:stop]
        draw.choice(several).update(batch, EXPECTED[start:stop], lines=start + 1)
    merged = pickle.loads(pickle.dumps(several[0])) + several[1] + several[2]
    assert merged.compute() == wanted
    assert len(merged) == len(TEXTS)


@pytest.mark.parametrize(
    "name", [HASHED, "LogLossHashed8", "BLEU", "Pearson", "MacroAvg/Accuracy", "Accuracy", "LogLoss", "WER"]
)
def test_shuffled_lines_give_the_digits_of_the_whole(name):
    numbers = name == "Pearson"
    predictions = [float(n % 7) + n / 100 for n in range(40)] if numbers else TEXTS[:40]
    expected = [str(n % 5) for n in range(40)] if numbers else EXPECTED[:40]
    wanted = score(predictions, expected, metric=name, vocabulary=WORDS).score
    places = list(range(40))
    random.Random(4).shuffle(places)
    found = metric(name, vocabulary=WORDS)
    for first in range(0, 40, 7):
        batch = places[first : first + 7]
        found.update([predictions[n] for n in batch], [expected[n] for n in batch], lines=[n + 1 for n in batch])
    assert found.compute() == wanted


def test_lines_go_on_where_they_ended():
    found = metric(HASHED)
    found.update(TEXTS[:50], EXPECTED[:50])
    found.update(TEXTS[50:], EXPECTED[50:])
    assert found.compute() == evaluate(TEXTS, EXPECTED, metric=HASHED).score
    found.reset()
    assert len(found) == 0
    found.update(TEXTS, EXPECTED)
    assert found.compute() == evaluate(TEXTS, EXPECTED, metric=HASHED).score


def test_an_update_that_fails_adds_nothing():
    found = metric(HASHED)
    found.update(TEXTS[:2], EXPECTED[:2])
    with pytest.raises(MalformedLineError) as caught:
        found.update(["the:1", "the"], ["a", "b"], lines=7)
    assert caught.value.line == 8
    assert len(found) == 2
    found.update([], [])
    found.update(TEXTS[2:], EXPECTED[2:])
    assert found.compute() == evaluate(TEXTS, EXPECTED, metric=HASHED).score


def of(name, *update, **how):
    made = metric(name, **how)
    if update:
        made.update(*update)
    return made.compute()


BATCH_ERRORS = {
    "no lines": (lambda: of(HASHED), f"{HASHED} has no lines yet: update it with predictions"),
    "two metrics": (lambda: metric("{LogLoss,Likelihood}Hashed"), "`{LogLoss,Likelihood}Hashed` names 2 metrics: make one accumulator for each"),
    "a filter": (lambda: metric(f"{HASHED}:f<exp:the>"), f"{HASHED}:f<exp:the> selects lines: score all lines at once, with evaluate(…, inputs=…)"),
    "another number of words": (lambda: of(HASHED, ["a:1"], []), "1 prediction, but 0 expected words"),
    "an id": (lambda: of(HASHED, ["a:1"], [0]), "expected[0] is 0, which is no text"),
    "another number of lines": (lambda: of(HASHED, ["a:1"], ["a"], [1, 2]), "1 predictions, but 2 line numbers"),
    "line 0": (lambda: of(HASHED, ["a:1"], ["a"], 0), "lines has the number 0; lines are counted from 1"),
    "another metric": (lambda: metric(HASHED) + metric("LogLossHashed"), f"accumulators of two metrics cannot be added: {HASHED} and LogLossHashed"),
}  # fmt: skip


@pytest.mark.parametrize(("wrong", "message"), BATCH_ERRORS.values(), ids=BATCH_ERRORS)
def test_errors_of_batches(wrong, message):
    with pytest.raises(GevalError) as caught:
        wrong()
    assert str(caught.value) == message
