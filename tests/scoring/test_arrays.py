"""Distributions in arrays against the same numbers written as text, on both backends."""

import math
import pickle
import re
import tracemalloc
from array import array

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raising import refused
from scorers import hashed_losses

from geval_py import Metric, UsageError, format_line, score, write_output
from geval_py.reading.wordprobs import parse_line
from geval_py.scoring import arrays
from geval_py.scoring.arrays import Vocabulary
from geval_py.scoring.kernel import backends
from geval_py.scoring.kernel.packed_words import Unit

HASHED = "PerplexityHashed"
WORDS = ("the", "a", "of", "żółć", "水", ":", "a:b", "unbelievable", "word", "words", "12345678", "\t")
MANY = tuple(f"{chr(97 + n % 26) * (n % 11 + 1)}{n}" for n in range(300))
ANSWERS = (*WORDS, *MANY[:20], "", "never listed", "a b")


@pytest.fixture(params=["native", "python"], autouse=True)
def backend(request, monkeypatch):
    monkeypatch.setenv(backends.VARIABLE, request.param)
    backends.choose_backend.cache_clear()
    yield request.param
    backends.choose_backend.cache_clear()


def text_losses(words, rows, expected, bits, lines):
    found = []
    for row, word, line in zip(rows, expected, lines, strict=True):
        pairs = row if row and isinstance(row[0], tuple) else zip(words, row, strict=True)
        text = " ".join(f"{w}:{value!r}" for w, value in pairs if value != -math.inf) or ":1"
        found.extend(hashed_losses([text], [word], bits, line))
    return found


def same(found, wanted):
    return found == wanted or math.isclose(found, wanted, rel_tol=1e-12, abs_tol=1e-12)


def assert_same(found, wanted):
    assert len(found) == len(wanted)
    for n, (one, other) in enumerate(zip(found.tolist(), wanted, strict=True)):
        assert same(one, other), (n, one, other)


LINES = st.lists(st.integers(1, 2**33), min_size=1, max_size=4)
PROPERTY = settings(deadline=None, derandomize=True)
LITTLE_MASS = pytest.mark.filterwarnings("ignore:.*have less than 1% of the probability:UserWarning")
DIVIDED = pytest.mark.filterwarnings("ignore:.*rows that sum to more than 1 are divided by their sum:UserWarning")


@st.composite
def rows_of(draw, numbers):
    """Words, rows of numbers for each, as many expected words and line numbers, bits, and the kind of float."""
    words = draw(st.sampled_from([WORDS, WORDS[:1], MANY]))
    lines = draw(LINES)
    expected = [draw(st.sampled_from(ANSWERS)) for _ in lines]
    kind = draw(st.sampled_from([np.float32, np.float64]))
    if words is MANY:
        seed = draw(st.integers(0, 2**32))
        rows = np.random.default_rng(seed).dirichlet(np.full(len(words), 0.1), len(lines))
        values = (rows * draw(st.sampled_from([0.5, 1, 2]))).clip(0, 1)
        values = values if numbers == "probabilities" else np.log(values.clip(1e-300))
    else:
        one = st.floats(0, 1) if numbers == "probabilities" else st.floats(-800, 0) | st.just(-math.inf)
        values = np.array([[draw(one) for _ in words] for _ in lines])
    bits = draw(st.sampled_from([1, 4, 10, 24]))
    return words, values.astype(kind), expected, lines, bits


def listed(values):
    return values.astype(np.float64).tolist()


@DIVIDED
@PROPERTY
@given(rows_of("probabilities"), st.booleans())
def test_probabilities_cost_what_their_text_costs(case, with_rest):
    words, values, expected, lines, bits = case
    metric = Metric(f"LogLossHashed{bits}", vocabulary=words)
    if not with_rest:
        rows = [row if any(row) else [("", 1)] for row in listed(values)]
        assert_same(metric.losses(values, expected, lines=lines), text_losses(words, rows, expected, bits, lines))
    rests = np.linspace(0.125, 1, len(lines)).tolist()
    rows = [[*zip(words, row, strict=True), ("", rest)] for row, rest in zip(listed(values), rests, strict=True)]
    found = metric.losses(values, expected, lines=lines, rest=rests)
    assert_same(found, text_losses(words, rows, expected, bits, lines))


@LITTLE_MASS
@PROPERTY
@given(rows_of("logarithms"))
def test_logarithms_cost_what_their_text_costs(case):
    """One word with the logarithm 0 or more is a probability to a reader: it is left out of the comparison."""
    words, values, expected, lines, bits = case
    totals = np.logaddexp.reduce(values, axis=1, keepdims=True)
    values = (values - np.maximum(0, totals - 0.2)).astype(values.dtype)
    metric = Metric(f"LogLossHashed{bits}", vocabulary=words)
    found = metric.losses(values, expected, lines=lines, log=True)
    assert_same(found, text_losses(words, listed(values), expected, bits, lines))
    rows = [[*zip(words, row, strict=True), ("", -1.5)] for row in listed(values)]
    found = metric.losses(values, expected, lines=lines, log=True, rest=-1.5)
    assert_same(found, text_losses(words, rows, expected, bits, lines))


@PROPERTY
@given(rows_of("logarithms"), st.floats(-1000, 1000))
def test_logits_cost_what_their_softmax_costs(case, shift):
    words, values, expected, lines, bits = case
    values = np.where(np.isneginf(values), -5, values).astype(np.float64)
    metric = Metric(f"LogLossHashed{bits}", vocabulary=words)
    logs = values - values.max(1, keepdims=True)
    logs -= np.log(np.exp(logs).sum(1, keepdims=True))
    found = metric.losses(values + shift, expected, lines=lines, logits=True)
    pairs = [[*zip(words, row, strict=True)] for row in listed(logs)]
    wanted = text_losses(words, pairs, expected, bits, lines)
    for one, other in zip(found.tolist(), wanted, strict=True):
        assert one == other or math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)  # shifted numbers are rounded


@DIVIDED
@PROPERTY
@given(st.data(), st.integers(0, 5))
def test_listed_words_cost_what_their_text_costs(data, width):
    """Rows with repeated and with no words; sums above 1."""
    lines = data.draw(LINES)
    expected = [data.draw(st.sampled_from(ANSWERS)) for _ in lines]
    entry = st.tuples(st.integers(0, len(WORDS) - 1), st.floats(0, 1))
    rows = [data.draw(st.lists(entry, min_size=width, max_size=width)) for _ in lines]
    ids, values = (np.array([[pair[n] for pair in row] for row in rows]).reshape(len(rows), width) for n in (0, 1))
    metric = Metric("LogLossHashed3", vocabulary=WORDS)
    found = metric.losses((ids.astype(int), values), expected, lines=lines)
    wanted = [[(WORDS[n], value) for n, value in row] if any(v for _, v in row) else [("", 1)] for row in rows]
    assert_same(found, text_losses(WORDS, wanted, expected, 3, lines))


class Tensor:
    """As PyTorch's, which numpy cannot read on another device, with a gradient, or of bfloat16 (here 2 bytes)."""

    def __init__(self, values, size=4, *faults):
        self.values, self.size, self.faults = np.asarray(values), size, faults

    def _without(self, fault, size=None):
        return Tensor(self.values, size or self.size, *(one for one in self.faults if one != fault))

    def detach(self):
        return self._without("gradient")

    def cpu(self):
        return self._without("device")

    def float(self):
        return self._without("bfloat16", 4)

    def is_floating_point(self):
        return self.values.dtype.kind == "f"

    def element_size(self):
        return self.size

    def __array__(self, *how, **named):
        if self.faults:
            raise TypeError(f"no {self.faults[0]}")
        return self.values


VALUES = [[0.5, 0.25], [0.125, 0.5]]
KINDS = {
    "lists": VALUES, "float64": np.array(VALUES), "float32": np.array(VALUES, np.float32),
    "float16": np.array(VALUES, np.float16), "big-endian": np.array(VALUES, ">f8"),
    "columns first": np.asfortranarray(VALUES), "every second row": np.repeat(np.array(VALUES), 2, axis=0)[::2],
    "backwards": np.array(VALUES[::-1])[::-1],
    "a part of each row": np.array([[*row, 7.0] for row in VALUES])[:, :2],
    "read-only": np.frombuffer(np.array(VALUES).tobytes()).reshape(2, 2), "a table": pd.DataFrame(VALUES),
    "a tensor": Tensor(VALUES),
    "a tensor with a gradient, on a device, of bfloat16": Tensor(VALUES, 2, "gradient", "device", "bfloat16"),
    "named columns": pd.DataFrame(VALUES, columns=["the", "a"]),
    "named columns in another order": pd.DataFrame(np.array(VALUES)[:, ::-1], columns=["a", "the"]),
    "nullable numbers": pd.DataFrame(VALUES, dtype="Float64"),
    "a buffer": memoryview(array("d", [0.5, 0.25, 0.125, 0.5])).cast("B").cast("d", (2, 2)),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_of_all_kinds(kind):
    found = Metric(HASHED, vocabulary=["the", "a"]).losses(KINDS[kind], ["the", "a"])
    assert_same(found, [-math.log(0.5 + 0.25 / 1024), -math.log(0.5 + 0.375 / 1024)])


@pytest.mark.parametrize("how", [{}, {"log": True}, {"logits": True}])
def test_a_word_that_is_there_twice_has_the_sum_of_both(how):
    twice, once = np.array([[0.25, 0.125, 0.25]]), np.array([[0.5, 0.125]])
    rows = (np.log(twice), np.log(once)) if how else (twice, once)
    metrics = (
        Metric(HASHED, vocabulary=["the", "a", "the"], duplicates="sum"), Metric(HASHED, vocabulary=["the", "a"]),
    )  # fmt: skip
    copied = pickle.loads(pickle.dumps(metrics[0]))
    assert copied.losses(rows[0], ["the"], **how) == metrics[0].losses(rows[0], ["the"], **how)
    for word in ("the", "a", "of"):
        found, wanted = (metric.losses(row, [word], **how)[0] for metric, row in zip(metrics, rows, strict=True))
        assert found == pytest.approx(wanted, rel=1e-12)
    found = [
        score(metric.predictions(row, **how), ["the"], metric="LogLoss", vocabulary=["the", "a"]).score
        for metric, row in zip(metrics, rows, strict=True)
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-12)


def test_a_vocabulary_may_be_that_of_a_tokenizer():
    """It maps words to ids, in any order."""
    vocabulary = {"of": 2, "[UNK]": 0, "the": 3, "a": 1}
    assert Vocabulary.of_columns(vocabulary).words == ("[UNK]", "a", "of", "the")
    row = np.eye(4)[vocabulary["of"]]
    assert Metric(HASHED, vocabulary=vocabulary).losses([row], ["of"]).tolist() == [0.0]
    assert format_line(row * 0.5, vocabulary=vocabulary).split()[vocabulary["of"]] == "of:0.5"


@DIVIDED
def test_rows_may_be_sequences():
    rows = np.random.default_rng(3).dirichlet(np.ones(3), (2, 4))
    metric, expected = (
        Metric(HASHED, vocabulary=["the", "a", "of"]), [["the", "a", "of", "x"], ["a", "a", "the", "of"]],
    )  # fmt: skip
    flat = metric.losses(rows.reshape(8, 3), [*expected[0], *expected[1]])
    found = metric.losses(rows, expected)
    assert found.tolist() == flat.reshape(2, 4).tolist()
    ids = np.broadcast_to(np.arange(3), rows.shape)
    assert_same(metric.losses((ids, rows), expected).ravel(), flat.tolist())
    rests = np.full((2, 4), 0.1)
    assert metric.losses(rows, expected, rest=rests).tolist() == metric.losses(rows, expected, rest=0.1).tolist()
    with pytest.warns(UserWarning, match=r"^`predictions`: the loss of 1 of 8 lines is infinite$"):
        assert metric(rows, expected) == score(metric.predictions(rows), expected, metric="PerplexityHashed").score
    assert metric(rows, expected) == math.exp(math.fsum(flat) / 8)
    with pytest.raises(UsageError, match=r"^there is no line to score$"):
        metric(rows[:0], [])
    assert metric(rows[0, 0], ["the"], lines=3) == math.exp(metric.losses(rows[0, 0], ["the"], lines=3))


def test_tables_are_predictions(tmp_path):
    table = pd.DataFrame(VALUES, columns=["the", "a"])
    write_output(tmp_path / "out.tsv", table)
    assert (tmp_path / "out.tsv").read_text() == "the:0.5 a:0.25 :0.25\nthe:0.125 a:0.5 :0.375\n"
    write_output(tmp_path / "out.tsv", table, vocabulary=["a", "the"])
    assert (tmp_path / "out.tsv").read_text() == "a:0.25 the:0.5 :0.25\na:0.5 the:0.125 :0.375\n"
    loss = Metric(HASHED, vocabulary=["the", "a"])(table, ["the", "a"])
    assert Metric(HASHED)(table, ["the", "a"]) == loss
    assert score(table, ["the", "a"], metric=HASHED).score == pytest.approx(loss)


@pytest.mark.long
def test_tensors_of_pytorch():
    import torch

    logits = torch.randn(2, 3, 2, requires_grad=True, dtype=torch.bfloat16)
    targets = torch.tensor([[0, 1, -100], [1, 0, -100]])
    kept, metric = targets >= 0, Metric(HASHED, vocabulary=["the", "a"])
    numbers = logits[kept].detach().float().numpy()
    assert metric(logits[kept], targets[kept], logits=True) == metric(numbers, targets[kept], logits=True)


def test_no_rows():
    assert Metric(HASHED, vocabulary=["the"]).losses(np.empty((0, 1)), []).tolist() == []
    assert Metric(HASHED, vocabulary=[]).losses(np.empty((1, 0)), ["the"]).tolist() == [math.log(1024)]


@LITTLE_MASS
def test_masked_words_and_rows_without_mass():
    metric = Metric(HASHED, vocabulary=["the", "a"])
    assert_same(metric.losses([[-math.inf, 0.0]], ["a"], logits=True), [0.0])
    assert_same(metric.losses([[-math.inf, -math.inf]], ["a"], log=True), [math.log(1024)])
    assert_same(metric.losses([[0.0, 0.0]], ["a"]), [math.log(1024)])


def test_the_digits_do_not_depend_on_threads_and_parts(monkeypatch):
    values = np.random.default_rng(2).dirichlet(np.full(40, 0.2), 60).astype(np.float32)
    words = [f"w{n}" for n in range(40)]
    expected = [words[n % 40] for n in range(60)]
    wanted = Metric(HASHED, vocabulary=words, threads=1).losses(values, expected).tolist()
    monkeypatch.setattr(arrays, "WORDS_AT_ONCE", 100)
    for threads in (1, 3):
        assert Metric(HASHED, vocabulary=words, threads=threads).losses(values, expected).tolist() == wanted
    ids = np.tile(np.arange(40), (60, 1))
    assert_same(Metric(HASHED, vocabulary=words, threads=3).losses((ids, values), expected), wanted)


NAN, INF = math.nan, math.inf
ROW = {"predictions": [[0.5, 0.5], [0.5, 0.5]]}
NEGATIVE = "\n  for logits give logits=True, for logarithms of probabilities log=True"
FAULTS = {
    "NaN": ({"predictions": [[0.5, 0.5], [0.5, NAN]]}, "predictions[1]: the probability of 'a' is nan, which is not between 0 and 1"),
    "negative": ({"predictions": [[0.5, 0.5], [-0.5, 1.0]]}, f"predictions[1]: the probability of 'the' is -0.5, which is not between 0 and 1{NEGATIVE}"),
    "logits": ({"predictions": [[2.5, 1.0], [0.5, -1.0]]}, f"predictions[0]: the probability of 'the' is 2.5, which is not between 0 and 1{NEGATIVE}"),
    "listed logarithms": ({"predictions": ([[1], [0]], [[-0.5], [-1.0]])}, f"predictions[0]: the probability of 'a' is -0.5, which is not between 0 and 1{NEGATIVE}"),
    "above 1": ({"predictions": [[0.0, 1.5], [0.5, 0.5]]}, "predictions[0]: the probability of 'a' is 1.5, which is not between 0 and 1\n  a probability is at most 1: divide each by their sum"),
    "the rest": (ROW | {"rest": [0.5, -1.0]}, "predictions[1]: the probability of the rest is -1.0, which is not between 0 and 1\n  a probability is not negative: replace negative numbers by 0, and divide each by their sum"),
    "no mass": ({"predictions": [[0.5, 0.5], [0.0, 0.0]], "rest": 0.0}, "predictions[1]: every probability is 0: a distribution needs one above 0"),
    "an infinite logit": ({"predictions": [[0.5, INF], [0.5, 0.5]], "logits": True}, "predictions[0]: the number of 'a' is inf, which is not a logit"),
    "logits as logarithms": ({"predictions": [[-0.5, -1], [5.3, -2]], "log": True}, "predictions[1]: the exponentials of its numbers total more than 1\n  for logits give logits=True in place of log=True"),
    "a NaN among logarithms": ({"predictions": [[-0.5, -1], [NAN, 0.5]], "log": True}, "predictions[1]: the number of 'the' is nan, which is not a logarithm of a probability"),
    "an unknown id": ({"predictions": ([[0], [2]], [[0.5], [0.5]])}, "predictions[1]: the id 2; the ids of 2 words are 0 to 1"),
    "another width": ({"predictions": [[0.5], [0.5]]}, "the predictions have a row for each line and a column for each of 2 words, and not the shape (2, 1)"),
    "one row": ({"predictions": [0.5, 0.5]}, "1 prediction, but 2 references"),
    "ids of another shape": ({"predictions": ([[0, 1]], [[0.5]])}, "ids and probabilities are two arrays of one shape, not of (1, 2) and (1, 1)"),
    "three arrays": ({"predictions": ([0], [0.5], [0, 1])}, "a pair of arrays is (ids, probabilities), not 3 values"),
    "ids that are no numbers": ({"predictions": (np.array([["the"]]), [[0.5]])}, "predictions[0]: a line is made from a mapping from words to probabilities, "),
    "a pair in another order": ({"predictions": ([[0.5]], [[0]])}, "ids: whole numbers are needed, not float64\n  a pair is (ids, numbers); torch.topk returns (values, indices)"),
    "line numbers that are none": (ROW | {"lines": [1.0, 2.0]}, "lines: whole numbers are needed, not float64"),
    "flags": (ROW | {"references": [True, False]}, "references: whole numbers are needed, not bool"),
    "rows of 0 and 1": (ROW | {"references": np.eye(2, dtype=int)}, "references of the shape (2, 2) are not for predictions of the shape (2,)"),
    "a rest that is no logarithm": ({"predictions": [[-1.0, -1.0]] * 2, "log": True, "rest": 0.1}, "predictions[0]: the exponentials of its numbers total more than 1\n  rest is a logarithm, too: log(0.1)"),
    "text": ({"predictions": pd.DataFrame([["x", "y"]])}, "the predictions are an array of object, not of float32 or float64"),
    "rows of two lengths": ({"predictions": [[0.5], [0.5, 0.5]]}, "the predictions cannot be read as an array: "),
    "a rest of another length": (ROW | {"rest": [0.5]}, "rest is one number or one for each of 2 rows, not of the shape (1,)"),
    "logits and logarithms": (ROW | {"log": True, "logits": True}, "numbers are log-probabilities or logits, not both: log=True or logits=True"),
    "a word too few": (ROW | {"references": ["the"]}, "2 predictions, but 1 reference"),
    "a word that is a line end": (ROW | {"references": ["the", "a\n"]}, "references[1] contains a line end; give one line an item"),
    "a word that is none": (ROW | {"references": ["the", None]}, "references[1] is None, which is no text"),
    "one word": (ROW | {"references": "ab"}, "references are a list, not 'ab': for one line write [word]"),
    "an expected id": (ROW | {"references": [0, 2]}, "references[1] is 2; the ids of 2 words are 0 to 1"),
    "a line number too few": (ROW | {"lines": [1]}, "2 predictions, but 1 line number"),
    "a line number of 0": (ROW | {"lines": [1, 0]}, "lines has the number 0; lines are counted from 1"),
    "a sparse tensor": ({"predictions": Tensor(VALUES, 4, "layout")}, "the predictions cannot be read as an array: no layout"),
    "columns of padding": ({"predictions": [[0.5, 0.5, 0.0]]}, "the predictions have a row for each line and a column for each of 2 words, and not the shape (1, 3)\n  for a model with more columns than its tokenizer has words, give array[..., :2]"),
    "an expected id of padding": (ROW | {"references": [0, -100]}, "references[1] is -100; the ids of 2 words are 0 to 1\n  leave out padding: array[kept] and references[kept], where kept = references >= 0"),
    "a row of a sequence": ({"predictions": [ROW["predictions"], [[0.5, 0.5], [0.5, NAN]]], "references": [[0, 1]] * 2}, "predictions[1, 1]: the probability of 'a' is nan, which is not between 0 and 1"),
    "sequences of another length": ({"predictions": [ROW["predictions"]] * 3, "references": [[0, 1, 1]] * 2}, "references of the shape (2, 3) are not for predictions of the shape (3, 2)"),
    "missing columns": ({"predictions": pd.DataFrame([[0.5]], columns=["the"])}, "the columns of a table are the words of the vocabulary, each once; they differ in 'a'"),
    "other columns": ({"predictions": pd.DataFrame([[0.5, 0.25, 7]], columns=["a", "the", "line"])}, "the columns of a table are the words of the vocabulary, each once; they differ in 'line'"),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), FAULTS.values(), ids=FAULTS)
def test_faults(arguments, message):
    with pytest.raises(UsageError) as caught:
        Metric(HASHED, vocabulary=["the", "a"]).losses(**{"references": ["the", "a"]} | arguments)
    assert str(caught.value).startswith(message) if message.endswith((": ", ", ")) else str(caught.value) == message


@pytest.mark.parametrize(("probabilities", "rest", "row", "total"), [
    ([[0.9, 0.1], [0.9, 0.9]], None, 1, 1.8), ([[0.5, 0.3]], 0.5, 0, 1.3), ([[[0.5, 0.5], [1, 1]]], None, "0, 1", 2),
    (([[0, 1], [0, 0]], [[0.5, 0.25], [0.75, 0.75]]), None, 1, 1.5),
    (([[0, 0], [0, 1]], [[0, 0.5], [0.75, 0.5]]), [0.5, 0.5], 1, 1.75),
])  # fmt: skip
def test_a_warning_of_rows_that_sum_to_more_than_1(probabilities, rest, row, total):
    metric, what = Metric(HASHED, vocabulary=["the", "a"]), f"predictions[{row}] sum to {total}"
    predictions = metric.predictions(probabilities, rest=rest)
    with pytest.warns(UserWarning, match=re.escape(what)) as caught:
        metric.losses(probabilities, ["the"] * len(predictions), rest=rest)
    assert [str(one.message) for one in caught] == [f"{what}: rows that sum to more than 1 are divided by their sum"]
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match=re.escape(what)):
        score(predictions, ["the"] * len(predictions))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_warning_of_softmax_twice(dtype, tmp_path):
    metric, words = Metric(HASHED, vocabulary=["the", "a"]), ["the", "a"]
    probabilities = np.array([[0.9, 0.1], [0.3334, 0.6667]], dtype)
    for call in (
        lambda: metric.losses(probabilities, words, logits=True),
        lambda: score(metric.predictions(probabilities, logits=True), words),
        lambda: write_output(tmp_path / "out.tsv", probabilities, vocabulary=words, logits=True),
    ):
        with pytest.warns(UserWarning, match="logits") as caught:
            call()
        what = "the logits are not negative and sum to 1, as probabilities do: after softmax, leave logits=True out"
        assert [str(one.message) for one in caught] == [what]
    for logits in ([[0.9, 0.1], [0.5, 0.6]], [[1.5, -0.5]], np.zeros((0, 2))):
        assert len(list(metric.predictions(logits, logits=True))) == len(logits)


TOP = (np.array([[0, 1], [2, 0]]), np.array([[3.0, 1.0], [2.0, 0.5]]))
DOUBTS = {
    "logits of the best words": (TOP, {"logits": True},
        "softmax of the logits of some words gives these all probability: choose words after softmax"),
    "logits for logarithms": (np.array([[-80.0, -75.0, -90.0], [-76.0, -75.0, -77.0]]), {"log": True},
        "all words of a row together have less than 1% of the probability; for logits give logits=True in place of "
        "log=True"),
}  # fmt: skip


@pytest.mark.parametrize("name", DOUBTS)
def test_a_warning_of_another_unit(name, tmp_path):
    arrays, unit, message = DOUBTS[name]
    words = ["the", "a", "of"]
    for call in (
        lambda: Metric(HASHED, vocabulary=words)(arrays, ["the", "of"], **unit),
        lambda: write_output(tmp_path / "out.tsv", arrays, vocabulary=words, **unit),
    ):
        with pytest.warns(UserWarning, match=re.escape(message)) as caught:
            call()
        assert len(caught) == 1


def test_numbers_that_need_no_warning():
    metric = Metric(HASHED, vocabulary=["the", "a", "of"])
    metric(TOP, ["the", "of"], logits=True, rest=1.0)
    metric([[-80.0, -75.0, -90.0], [-0.1, -5.0, -5.0]], ["the", "of"], log=True)
    assert format_line({"the": -80.0}, log=True).endswith("e-35 :1")
    Metric(HASHED, vocabulary=["the", "a"]).losses(np.array([[0.1, 0.9], [0.3334, 0.6667]], np.float16), ["a", "a"])


def left_out(ids):
    kept = "kept = [n for n, word in enumerate(words) if word.split() == [word]]"
    advice = f"leave the ids {ids} out: array[..., kept], vocabulary=[words[n] for n in kept], where {kept}"
    return f"\n  {advice}; see docs/softmax.md, Special tokens"


@pytest.mark.parametrize(("words", "message"), [
    (["New York"], "the word 'New York' contains a space, which would split the line" + left_out(0)),
    (np.array(["the", "a b"]), "the word 'a b' contains a space, which would split the line" + left_out(1)),
    (["\n", "the", " of"], "the word '\\n' contains a line end, which would split the line" + left_out("0, 2")),
    (["the", ""], "an empty word: give the probability of all other words as rest=…" + left_out(1)),
    (["the", 7], "the word 7 is not a string" + left_out(1)),
    (["the", "a", "the"],
        "the vocabulary has the word 'the' 2 times\n  duplicates=\"sum\" adds up the probabilities of equal words"),
    ({"the": 0, "a": 2}, "the ids of 2 words are 0 to 1, each once; 1 is missing"),
    ({"the": 0, "a": 0}, "the ids of 2 words are 0 to 1, each once; 1 is missing"),
])  # fmt: skip
def test_vocabularies_that_are_refused(words, message):
    with refused(message):
        Metric(HASHED, vocabulary=words)


@pytest.mark.parametrize("mark", ["Ġ", "▁", "##"])
def test_a_warning_of_tokens(mark):
    words = [*(f"w{n}" for n in range(19)), f"{mark}the"]
    Metric(HASHED, vocabulary=[*words, "a"])  # a language may have a few such words
    with pytest.warns(UserWarning, match=mark) as caught:
        Metric(HASHED, vocabulary=[*words[1:], f"{mark}of"])
    what = f"2 words of the vocabulary begin with {mark!r}, as tokens of a language model: such a word is never right"
    assert [str(one.message) for one in caught] == [
        f"{what}, and its probability is lost; see docs/softmax.md, Special tokens"
    ]
    assert caught[0].filename == __file__


@pytest.mark.parametrize("how", [
    {"values": np.zeros((1, 3))}, {"values": np.zeros((2, 2))}, {"values": np.zeros((1, 2), np.int64)},
    {"values": np.zeros((1, 3)), "ids": np.zeros((1, 2), np.int64)},
    {"values": np.zeros((1, 1)), "ids": np.zeros((1, 2), np.int64)},
    {"values": np.zeros((1, 4))[:, ::2], "ids": np.zeros((1, 2), np.int64)},
    {"values": np.zeros(2), "ids": np.zeros(2, np.int64)},
    {"values": np.zeros((1, 2)), "rests": np.zeros(2)}, {"values": np.zeros((1, 2)), "expected": b"a\nb\n"},
])  # fmt: skip
def test_the_native_kernel_trusts_no_array(how):
    from geval_py.scoring.kernel import _native

    arguments = {"ids": None, "rests": None, "expected": b"a\n"} | how
    with pytest.raises(ValueError, match=r"^the arrays do not fit together$"):
        _native.array_losses(
            _native.pack_words(b"a\nb\n"), arguments["values"], arguments["ids"], arguments["rests"], arguments["expected"],
            np.ones(1, np.uint32), 10, Unit.PROBABILITIES,
        )  # fmt: skip


@DIVIDED
@PROPERTY
@given(rows_of("probabilities"), st.booleans(), st.integers(1, 13))
def test_written_rows_cost_what_the_arrays_cost(case, with_rest, top):
    """Also as the best words of each row, whose other words belong to the rest."""
    words, values, expected, lines, bits = case
    metric, rest = Metric(f"LogLossHashed{bits}", vocabulary=words), 0.25 if with_rest else None
    predictions = metric.predictions(values, rest=rest)
    one_by_one = metric.losses(list(predictions), expected, lines=lines).tolist()
    assert_same(metric.losses(predictions, expected, lines=lines), one_by_one)
    for place, row in enumerate(listed(values)):
        parsed = parse_line(predictions.line(place, top))
        best = [word for word in parsed.words if word]
        assert len(best) == min(top, len(words))
        total = math.fsum([*row, rest or 0.0])
        total = max(total, 1.0) if rest is None else total
        kept = sorted(row, reverse=True)[: len(best)]
        if top < len(words):
            assert parsed.values[: len(best)] == pytest.approx([value / total for value in kept])
            assert parsed.words[-1] == ""
            assert math.fsum(parsed.values) == pytest.approx(1)


@pytest.mark.parametrize(
    "how", [{}, {"logits": True}, {"log": True}, {"top": 2}, {"logits": True, "top": 3, "rest": -1.0}, {"rest": 0.1}]
)
def test_batches_are_written_as_one_array(tmp_path, how):
    values = np.random.default_rng(5).dirichlet(np.full(len(WORDS), 0.2), 20)
    values = np.log(values) if "log" in how or "logits" in how else values * 0.9
    ids = np.argsort(values, axis=1)
    listed = np.take_along_axis(values, ids, axis=1)

    def written(lines):
        write_output(tmp_path / "out.tsv", lines, vocabulary=WORDS, **how)
        return (tmp_path / "out.tsv").read_text("utf-8")

    wanted = written(values)
    assert wanted.count("\n") == 20
    for lines in (
        (values[first : first + 3] for first in range(0, 20, 3)), [values[:1], values[1:]], list(values),
        values.reshape(4, 5, -1), [values.reshape(4, 5, -1)], values.tolist(), pd.DataFrame(values, columns=WORDS),
        (Tensor(values[first : first + 7], 4, "gradient") for first in range(0, 20, 7)),
        (pd.DataFrame(values[n : n + 5], columns=WORDS)[[*reversed(WORDS)]] for n in range(0, 20, 5)),
    ):  # fmt: skip
        assert written(lines) == wanted
    assert written((ids, listed)) == written((ids[n : n + 6], listed[n : n + 6]) for n in range(0, 20, 6))
    assert written((ids, listed)) == written(zip(ids, listed, strict=True))
    if "top" in how and "logits" not in how:  # a softmax in another order may have other last digits
        assert written((ids, listed)) == wanted
    numbers = {name: value for name, value in how.items() if name != "top"}
    predictions = Metric(HASHED, vocabulary=WORDS).predictions(values, **numbers)
    for lines in (predictions, [predictions]):
        write_output(tmp_path / "out.tsv", lines, top=how.get("top"))
        assert (tmp_path / "out.tsv").read_text("utf-8") == wanted
    assert [format_line(row, vocabulary=WORDS, **how) for row in values] == wanted.splitlines()
    dictionaries = [dict(zip(WORDS, row, strict=True)) for row in values.tolist()]
    write_output(tmp_path / "out.tsv", dictionaries, **how)
    assert (tmp_path / "out.tsv").read_text("utf-8") == wanted


@pytest.mark.parametrize("backend", ["native"], indirect=True)
def test_a_batch_is_written_before_the_next_is_made(tmp_path):
    values, words = np.full((50, 200), 1e-3), [f"w{n}" for n in range(200)]
    write_output(tmp_path / "out.tsv", values, vocabulary=words, top=180)  # what is imported here takes memory, too
    tracemalloc.start()
    try:
        write_output(tmp_path / "out.tsv", (values for _ in range(8)), vocabulary=words, top=180)
        assert tracemalloc.get_traced_memory()[1] < 2e5
    finally:
        tracemalloc.stop()
    assert (tmp_path / "out.tsv").stat().st_size > 7e5


def test_a_batch_at_fault_leaves_all_as_it_was(tmp_path):
    (tmp_path / "out.tsv").write_text("old")
    with refused("lines[3]: the probability of 'a' is nan, which is not between 0 and 1"):
        write_output(tmp_path / "out.tsv", iter([VALUES, [[0.5, 0.5], [0.5, NAN]]]), vocabulary=["the", "a"])
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("out.tsv", "old")]


@pytest.mark.parametrize("lines", [np.full((3, 1001), 1e-3), [dict.fromkeys(map(str, range(1001)), 1e-3)] * 3])
def test_a_warning_of_long_lines(tmp_path, lines):
    vocabulary = None if isinstance(lines, list) else [*map(str, range(1001))]
    with pytest.warns(UserWarning, match="entries") as caught:
        write_output(tmp_path / "out.tsv", lines, vocabulary=vocabulary)
    note = "lines[0] has 1,001 entries: top=300 writes the most probable 300 of each line"
    assert [str(one.message) for one in caught] == [note]
    assert caught[0].filename == __file__
    write_output(tmp_path / "out.tsv", lines, vocabulary=vocabulary, top=1001)
    write_output(tmp_path / "out.tsv", [" ".join(f"w{n}:0.1" for n in range(2000))])


ROWS = np.array(VALUES)
NO_EFFECT = {
    "a line of text has no use for vocabulary=… or top=…": (["a:1"], {"vocabulary": ["a"], "top": 3}),
    "a line of text has no use for log=… or logits=… or rest=…": (["a:1"], {"log": True, "logits": True, "rest": 0.0}),
    "a distribution that has words has no use for vocabulary=…": ([{"a": 1.0}], {"vocabulary": ["a"]}),
    "Predictions has no use for rest=…": (
        Metric(HASHED, vocabulary=["the", "a"]).predictions(VALUES), {"rest": [0.5, 0.5]}),
    "numbers without words: write_output and Metric take a vocabulary=…, and score takes metric.predictions(numbers)": (ROWS, {}),
    "every probability is 0: a distribution needs one above 0": (
        [[-800.0, -900.0]], {"vocabulary": ["the", "a"], "log": True, "rest": -1000.0}),
    "top is how many words of a line are written, an integer from 1 on, not 0": (ROWS, {"vocabulary": ["the", "a"], "top": 0}),
    "top is how many words of a line are written, an integer from 1 on, not 300.0": (ROWS, {"vocabulary": ["the", "a"], "top": 300.0}),
}  # fmt: skip


@pytest.mark.parametrize(("message", "lines", "how"), [(said, *case) for said, case in NO_EFFECT.items()])
def test_lines_and_arguments_that_are_refused(tmp_path, message, lines, how):
    with refused(f"lines[0]: {message}"):
        write_output(tmp_path / "out.tsv", lines, **how)


@PROPERTY
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_numbers_are_written_as_repr_writes_them(numbers):
    words = b"".join(b"w\n" for _ in numbers)
    line = backends.format_entries(words, array("d", numbers), -INF, INF)
    assert line == " ".join(f"w:{repr(number + 0.0).removesuffix('.0')}" for number in numbers)
    assert parse_line(line).values == tuple(numbers)
