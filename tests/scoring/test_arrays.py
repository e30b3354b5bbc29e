"""Distributions in arrays against the same numbers written as text, on both backends."""

import math
import pickle
import re
from array import array
from concurrent.futures import ThreadPoolExecutor

import mmh3
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geval_py import UsageError, evaluate, format_line, score, write_output
from geval_py.reading.wordprobs import parse_line
from geval_py.scoring import arrays
from geval_py.scoring.arrays import Scorer, perplexity
from geval_py.scoring.kernel import backends, packed_words
from geval_py.scoring.kernel.packed_words import Unit
from geval_py.scoring.metrics.hashed import hashed_log_losses

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
    """The losses of rows written with repr: lists of numbers, or of (word, number); "" is the rest."""
    found = []
    for row, word, line in zip(rows, expected, lines, strict=True):
        pairs = row if row and isinstance(row[0], tuple) else zip(words, row, strict=True)
        text = " ".join(f"{w}:{value!r}" for w, value in pairs if value != -math.inf) or ":1"
        found.extend(hashed_log_losses([text], [word], bits, line))
    return found


def same(found, wanted):
    return found == wanted or math.isclose(found, wanted, rel_tol=1e-12, abs_tol=1e-12)


def assert_same(found, wanted):
    assert len(found) == len(wanted)
    for n, (one, other) in enumerate(zip(found.tolist(), wanted, strict=True)):
        assert same(one, other), (n, one, other)


LINES = st.lists(st.integers(1, 2**33), min_size=1, max_size=4)
PROPERTY = settings(deadline=None, derandomize=True)
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
        values = np.random.default_rng(seed).dirichlet(np.full(len(words), 0.1), len(lines)) * draw(
            st.sampled_from([0.5, 1, 2])
        )
        values = values.clip(0, 1)
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
    scorer = Scorer(words, f"LogLossHashed{bits}")
    if not with_rest:
        rows = [row if any(row) else [("", 1)] for row in listed(values)]
        assert_same(scorer.losses(values, expected, lines=lines), text_losses(words, rows, expected, bits, lines))
    rests = np.linspace(0.125, 1, len(lines))
    rows = [
        [*zip(words, row, strict=True), ("", rest)] for row, rest in zip(listed(values), rests.tolist(), strict=True)
    ]
    found = scorer.losses(values, expected, lines=lines, rest=rests)
    assert_same(found, text_losses(words, rows, expected, bits, lines))


@PROPERTY
@given(rows_of("logarithms"))
def test_logarithms_cost_what_their_text_costs(case):
    """One word with the logarithm 0 or more is a probability to a reader: it is left out of the comparison."""
    words, values, expected, lines, bits = case
    totals = np.logaddexp.reduce(values, axis=1, keepdims=True)
    values = (values - np.maximum(0, totals - 0.2)).astype(values.dtype)
    scorer = Scorer(words, f"LogLossHashed{bits}")
    found = scorer.losses(values, expected, lines=lines, log=True)
    assert_same(found, text_losses(words, listed(values), expected, bits, lines))
    rows = [[*zip(words, row, strict=True), ("", -1.5)] for row in listed(values)]
    found = scorer.losses(values, expected, lines=lines, log=True, rest=-1.5)
    assert_same(found, text_losses(words, rows, expected, bits, lines))


@PROPERTY
@given(rows_of("logarithms"), st.floats(-1000, 1000))
def test_logits_cost_what_their_softmax_costs(case, shift):
    words, values, expected, lines, bits = case
    values = np.where(np.isneginf(values), -5, values).astype(np.float64)
    scorer = Scorer(words, f"LogLossHashed{bits}")
    logs = values - values.max(1, keepdims=True)
    logs -= np.log(np.exp(logs).sum(1, keepdims=True))
    found = scorer.losses(values + shift, expected, lines=lines, logits=True)
    wanted = text_losses(
        words, [[(w, v) for w, v in zip(words, row, strict=True)] for row in listed(logs)], expected, bits, lines
    )
    for one, other in zip(found.tolist(), wanted, strict=True):
        assert one == other or math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)  # shifted numbers are rounded


@DIVIDED
@PROPERTY
@given(st.data())
def test_listed_words_cost_what_their_text_costs(data):
    """Ragged rows and rows of one length, with repeated and with no words; sums above 1."""
    lines = data.draw(LINES)
    expected = [data.draw(st.sampled_from(ANSWERS)) for _ in lines]
    entry = st.tuples(st.integers(0, len(WORDS) - 1), st.floats(0, 1))
    rows = [data.draw(st.lists(entry, max_size=5)) for _ in lines]
    ids, values = (np.array([pair[place] for row in rows for pair in row]) for place in (0, 1))
    offsets = np.cumsum([0, *map(len, rows)])
    scorer = Scorer(WORDS, "LogLossHashed3")
    found = scorer.losses((ids, values, offsets), expected, lines=lines)
    wanted = [[(WORDS[n], value) for n, value in row] if any(v for _, v in row) else [("", 1)] for row in rows]
    assert_same(found, text_losses(WORDS, wanted, expected, 3, lines))
    shortest = min(map(len, rows))
    pair = [np.array([[pair[place] for pair in row[:shortest]] for row in rows]) for place in (0, 1)]
    assert_same(
        scorer.losses((pair[0], pair[1]), expected, lines=lines),
        text_losses(
            WORDS,
            [row[:shortest] if any(v for _, v in row[:shortest]) else [("", 1)] for row in wanted],
            expected, 3, lines,
        ),
    )  # fmt: skip


@pytest.mark.parametrize("unit", ["probabilities", "log", "logits"])
def test_lines_of_predictions_mean_the_same(unit):
    draws = np.random.default_rng(1).dirichlet(np.full(len(WORDS), 0.3), 50)
    values = {"probabilities": draws * 0.9, "log": np.log(draws * 0.9), "logits": np.log(draws) * 3 + 7}[unit]
    scorer = Scorer(WORDS, "LogLossHashed4")
    expected = [ANSWERS[n % len(ANSWERS)] for n in range(50)]
    how = {} if unit == "probabilities" else {unit: True}
    predictions = scorer.predictions(values, **how)
    assert_same(
        scorer.losses(values, expected, first_line=7, **how), list(hashed_log_losses(predictions, expected, 4, 7))
    )
    assert len(predictions) == 50


def test_hashes_of_packed_words_are_murmurs(backend):
    """Words of each length, against mmh3 by themselves: a bucket of 2^24 has, as a rule, one word."""
    words = [*("x" * n + "ź" * m for n in range(40) for m in (0, 1, 5) if n + m)]
    scorer = Scorer(words, "LogLossHashed24")
    values = np.eye(len(words))
    assert scorer.losses(values, words).tolist() == [0.0] * len(words)
    packed = packed_words.pack_words(scorer.joined)
    for seed in (0, 1, 2**32 - 1):
        assert packed.hashes(seed).tolist() == [mmh3.hash(word, seed, signed=False) for word in words]


# Arrays of all kinds


class Capsule:
    """What has no buffer, but __dlpack__."""

    def __init__(self, values):
        self.values = values

    def __dlpack__(self, **how):
        return self.values.__dlpack__(**how)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


class Tensor(Capsule):
    """As PyTorch's, which numpy cannot read on another device, with a gradient, or of bfloat16 (here 2 bytes)."""

    def __init__(self, values, size=4, *faults):
        super().__init__(np.asarray(values))
        self.size, self.faults = size, faults

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

    def __dlpack__(self, **how):
        if self.faults:
            raise RuntimeError(f"no {self.faults[0]}")
        return super().__dlpack__(**how)

    def __array__(self, *how, **named):
        raise TypeError("Got unsupported ScalarType BFloat16")


VALUES = [[0.5, 0.25], [0.125, 0.5]]
KINDS = {
    "lists": VALUES,
    "float64": np.array(VALUES),
    "float32": np.array(VALUES, np.float32),
    "float16": np.array(VALUES, np.float16),
    "big-endian": np.array(VALUES, ">f8"),
    "columns first": np.asfortranarray(VALUES),
    "every second row": np.repeat(np.array(VALUES), 2, axis=0)[::2],
    "backwards": np.array(VALUES[::-1])[::-1],
    "a part of each row": np.array([[*row, 7.0] for row in VALUES])[:, :2],
    "read-only": np.frombuffer(np.array(VALUES).tobytes()).reshape(2, 2),
    "a table": pd.DataFrame(VALUES),
    "DLPack": Capsule(np.array(VALUES)),
    "a tensor": Tensor(VALUES),
    "a tensor with a gradient, on a device, of bfloat16": Tensor(VALUES, 2, "gradient", "device", "bfloat16"),
    "named columns": pd.DataFrame(VALUES, columns=["the", "a"]),
    "named columns in another order": pd.DataFrame(np.array(VALUES)[:, ::-1], columns=["a", "the"]),
    "nullable numbers": pd.DataFrame(VALUES, dtype="Float64"),
    "a buffer": memoryview(array("d", [0.5, 0.25, 0.125, 0.5])).cast("B").cast("d", (2, 2)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_of_all_kinds(kind):
    found = Scorer(["the", "a"]).losses(KINDS[kind], ["the", "a"])
    assert_same(found, [-math.log(0.5 + 0.25 / 1024), -math.log(0.5 + 0.375 / 1024)])


@pytest.mark.parametrize(
    "expected",
    [
        ("the", "a"), np.array(["the", "a"]), pd.Series(["the", "a"]), [0, 1], np.array([0, 1], np.int32),
        Capsule(np.array([0, 1])), Tensor([0, 1], 8, "device"),
    ],
)  # fmt: skip
def test_expected_words_of_all_kinds(expected):
    assert_same(
        Scorer(["the", "a"]).losses(VALUES, expected),
        list(hashed_log_losses(["the:0.5 a:0.25", "the:0.125 a:0.5"], ["the", "a"])),
    )


def test_rows_are_not_copied(monkeypatch):
    """A part of rows with gaps between them goes to the kernel as it is."""
    seen = []
    wide = np.array([[0.5, 0.25, 9.0], [0.125, 0.5, 9.0]])
    no_losses = array("d", [0, 0]), 0.0, -1
    monkeypatch.setattr(
        backends, "array_losses", lambda words, values, *rest: seen.append(values) or no_losses, raising=False
    )
    Scorer(["the", "a"]).losses(wide[:, :2], ["the", "a"])
    assert np.shares_memory(seen[0], wide)


@pytest.mark.parametrize("how", [{}, {"log": True}, {"logits": True}])
def test_a_word_that_is_there_twice_has_the_sum_of_both(how):
    twice, once = np.array([[0.25, 0.125, 0.25]]), np.array([[0.5, 0.125]])
    rows = (np.log(twice), np.log(once)) if how else (twice, once)
    scorers = Scorer(["the", "a", "the"], duplicates="sum"), Scorer(["the", "a"])
    assert pickle.loads(pickle.dumps(scorers[0])).vocabulary == ("the", "a", "the")
    for word in ("the", "a", "of"):
        found, wanted = (scorer.losses(row, [word], **how)[0] for scorer, row in zip(scorers, rows, strict=True))
        assert found == pytest.approx(wanted, rel=1e-12)
    found = [
        score(scorer.predictions(row, **how), ["the"], metric="LogLoss", vocabulary=["the", "a"]).score
        for scorer, row in zip(scorers, rows, strict=True)
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-12)


def test_a_vocabulary_of_a_tokenizer():
    from tokenizers import Tokenizer, models, trainers

    words = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    words.train_from_iterator(["the", "a", "of"], trainers.WordLevelTrainer(special_tokens=["[UNK]"]))
    vocabulary = dict(reversed(words.get_vocab().items()))
    scorer = Scorer(vocabulary)
    assert scorer.vocabulary == tuple(map(words.id_to_token, range(4)))
    row = np.eye(4)[vocabulary["of"]]
    assert scorer.losses([row], ["of"]).tolist() == [0.0]
    assert format_line(row * 0.5, vocabulary=vocabulary).split()[vocabulary["of"]] == "of:0.5"


@DIVIDED
def test_rows_may_be_sequences():
    rows = np.random.default_rng(3).dirichlet(np.ones(3), (2, 4))
    scorer, expected = Scorer(["the", "a", "of"]), [["the", "a", "of", "x"], ["a", "a", "the", "of"]]
    flat = scorer.losses(rows.reshape(8, 3), [*expected[0], *expected[1]])
    found = scorer.losses(rows, expected)
    assert found.tolist() == flat.reshape(2, 4).tolist()
    ids = np.broadcast_to(np.arange(3), rows.shape)
    assert_same(scorer.losses((ids, rows), expected).ravel(), flat.tolist())
    rests = np.full((2, 4), 0.1)
    assert scorer.losses(rows, expected, rest=rests).tolist() == scorer.losses(rows, expected, rest=0.1).tolist()
    score = evaluate(scorer.predictions(rows), expected, metric="PerplexityHashed").score
    assert scorer.score(rows, expected) == score
    assert scorer.score(rows, expected) == math.exp(math.fsum(flat) / 8)
    with pytest.raises(UsageError, match=r"^there is no row to score$"):
        scorer.score(rows[:0], [])


def test_a_perplexity_of_tokens():
    logits = np.random.default_rng(3).normal(size=(2, 3, 5)).astype(np.float32)
    targets = np.array([[0, 4, -100], [2, -100, 1]])
    rows = logits.reshape(6, 5)[[0, 1, 3, 5]].astype(np.float64)
    shares = np.exp(rows) / np.exp(rows).sum(1, keepdims=True)
    wanted = math.exp(-np.log(shares[[0, 1, 2, 3], [0, 4, 2, 1]]).mean())
    assert perplexity(logits, targets) == pytest.approx(wanted)
    assert perplexity(Tensor(logits, 2, "gradient", "bfloat16"), Tensor(targets)) == pytest.approx(wanted)
    assert perplexity([[-math.inf, 0.0]], [0]) == math.inf
    assert perplexity([[0.0, 0.0], [0.0, 9.0]], [1, 0], ignore_index=0) == 2


@pytest.mark.parametrize(
    ("logits", "targets", "message"),
    [
        (np.zeros((2, 5, 3)), np.zeros((2, 3), int),
            "logits of the shape (2, 5, 3) have targets of the shape (2, 5), not (2, 3)"),
        (np.zeros((1, 2, 3)), [[0, 3]], "targets[0, 1] is 3; the ids of 3 words are 0 to 2"),
        (np.zeros((1, 2, 3)), [[0, -1]], "targets[0, 1] is -1; the ids of 3 words are 0 to 2"),
        ([[0.0, math.nan]], [0], "logits[0] has a NaN or an inf, or only -inf"),
        ([[0.0, math.inf]], [0], "logits[0] has a NaN or an inf, or only -inf"),
        ([[0.0, 0.0]], [-100], "there is no target to score"),
        ([[0.0, 0.0]], [0.5], "targets: whole numbers are needed, not float64"),
        ([[0.0, 0.0]], ["the"], "targets: whole numbers are needed, not <U3"),
    ],
)  # fmt: skip
def test_a_perplexity_of_other_arrays(logits, targets, message):
    with pytest.raises(UsageError) as caught:
        perplexity(logits, targets)
    assert str(caught.value) == message


def test_tables_are_predictions(tmp_path):
    """Their columns are words; before, they were taken for the lines."""
    table = pd.DataFrame(VALUES, columns=["the", "a"])
    write_output(tmp_path / "out.tsv", table)
    assert (tmp_path / "out.tsv").read_text() == "the:0.5 a:0.25 :0.25\nthe:0.125 a:0.5 :0.375\n"
    write_output(tmp_path / "out.tsv", table, vocabulary=["a", "the"])
    assert (tmp_path / "out.tsv").read_text() == "a:0.25 the:0.5 :0.25\na:0.5 the:0.125 :0.375\n"
    score = Scorer(["the", "a"]).score(table, ["the", "a"])
    assert score(table, ["the", "a"], metric="PerplexityHashed").score == pytest.approx(score)


def test_an_id_that_is_no_place_of_a_word():
    with pytest.raises(UsageError, match=r"^the ids are from 0 to 1, not -1$"):
        format_line(([-1], [0.5]), vocabulary=["the", "a"])


@pytest.mark.long
def test_tensors_of_pytorch():
    import torch

    logits = torch.randn(2, 3, 2, requires_grad=True, dtype=torch.bfloat16)
    targets = torch.tensor([[0, 1, -100], [1, 0, -100]])
    wanted = torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), targets.flatten()).exp().item()
    assert perplexity(logits, targets) == pytest.approx(wanted)
    kept, scorer = targets >= 0, Scorer(["the", "a"])
    numbers = logits[kept].detach().float().numpy()
    assert scorer.score(logits[kept], targets[kept], logits=True) == scorer.score(numbers, targets[kept], logits=True)


def test_no_rows():
    assert Scorer(["the"]).losses(np.empty((0, 1)), []).tolist() == []
    assert Scorer([]).losses(np.empty((1, 0)), ["the"]).tolist() == [math.log(1024)]


def test_masked_words_and_rows_without_mass():
    """-inf is no mass; without a rest, what is missing to 1 is everybody's."""
    scorer = Scorer(["the", "a"])
    assert_same(scorer.losses([[-math.inf, 0.0]], ["a"], logits=True), [0.0])
    assert_same(scorer.losses([[-math.inf, -math.inf]], ["a"], log=True), [math.log(1024)])
    assert_same(scorer.losses([[0.0, 0.0]], ["a"]), [math.log(1024)])


def test_the_digits_do_not_depend_on_threads_and_parts(monkeypatch):
    values = np.random.default_rng(2).dirichlet(np.full(40, 0.2), 60).astype(np.float32)
    words = [f"w{n}" for n in range(40)]
    expected = [words[n % 40] for n in range(60)]
    wanted = Scorer(words, threads=1).losses(values, expected).tolist()
    monkeypatch.setattr(arrays, "WORDS_AT_ONCE", 100)
    for threads in (1, 3):
        assert Scorer(words, threads=threads).losses(values, expected).tolist() == wanted
    ids = np.tile(np.arange(40), (60, 1))
    assert_same(Scorer(words, threads=3).losses((ids, values), expected), wanted)


def test_several_threads_may_use_a_scorer():
    scorer = Scorer(MANY)
    values = np.random.default_rng(2).dirichlet(np.full(len(MANY), 0.2), 20)
    wanted = scorer.losses(values, MANY[:20]).tolist()
    with ThreadPoolExecutor(4) as pool:
        assert all(
            found.tolist() == wanted for found in pool.map(lambda _: scorer.losses(values, MANY[:20]), range(8))
        )


def test_a_scorer_can_be_pickled():
    scorer = pickle.loads(pickle.dumps(Scorer(["the", "a"], "LogLossHashed4", threads=2)))
    assert (scorer.vocabulary, scorer.metric.name, scorer.threads) == (("the", "a"), "LogLossHashed4", 2)
    assert_same(
        scorer.losses(VALUES, ["the", "a"]),
        list(hashed_log_losses(["the:0.5 a:0.25", "the:0.125 a:0.5"], ["the", "a"], 4)),
    )


# Errors

NAN, INF = math.nan, math.inf
ROW = {"probabilities": [[0.5, 0.5], [0.5, 0.5]]}
NEGATIVE = "\n  for logits give logits=True, for logarithms of probabilities log=True"
FAULTS = {
    "NaN": ({"probabilities": [[0.5, 0.5], [0.5, NAN]]}, "probabilities[1]: the probability of 'a' is nan, which is not between 0 and 1"),
    "negative": ({"probabilities": [[0.5, 0.5], [-0.5, 1.0]]}, f"probabilities[1]: the probability of 'the' is -0.5, which is not between 0 and 1{NEGATIVE}"),
    "logits": ({"probabilities": [[2.5, 1.0], [0.5, -1.0]]}, f"probabilities[0]: the probability of 'the' is 2.5, which is not between 0 and 1{NEGATIVE}"),
    "listed logarithms": ({"probabilities": ([[1], [0]], [[-0.5], [-1.0]])}, f"probabilities[0]: the probability of 'a' is -0.5, which is not between 0 and 1{NEGATIVE}"),
    "above 1": ({"probabilities": [[0.0, 1.5], [0.5, 0.5]]}, "probabilities[0]: the probability of 'a' is 1.5, which is not between 0 and 1"),
    "the rest": (ROW | {"rest": [0.5, -1.0]}, "probabilities[1]: the probability of the rest is -1.0, which is not between 0 and 1"),
    "no mass": ({"probabilities": [[0.5, 0.5], [0.0, 0.0]], "rest": 0.0}, "probabilities[1]: every probability is 0: a distribution needs one above 0"),
    "no logits": ({"probabilities": [[0.5, 0.5], [-INF, -INF]], "logits": True}, "probabilities[1]: every probability is 0: a distribution needs one above 0"),
    "an infinite logit": ({"probabilities": [[0.5, INF], [0.5, 0.5]], "logits": True}, "probabilities[0]: the number of 'a' is inf, which is not a logit"),
    "logits as logarithms": ({"probabilities": [[-0.5, -1], [5.3, -2]], "log": True}, "probabilities[1]: the exponentials of its numbers total far more than 1\n  for logits give logits=True in place of log=True"),
    "a NaN among logarithms": ({"probabilities": [[-0.5, -1], [NAN, 0.5]], "log": True}, "probabilities[1]: the number of 'the' is nan, which is not a logarithm of a probability"),
    "an unknown id": ({"probabilities": ([[0], [2]], [[0.5], [0.5]])}, "probabilities[1]: the id 2; the ids of 2 words are 0 to 1"),
    "a negative id": ({"probabilities": ([[-1], [0]], [[0.5], [0.5]])}, "probabilities[0]: the id -1; the ids of 2 words are 0 to 1"),
    "another width": ({"probabilities": [[0.5], [0.5]]}, "the probabilities have a row for each line and a column for each of 2 words, and not the shape (2, 1)"),
    "one row": ({"probabilities": [0.5, 0.5]}, "the probabilities have a row for each line and a column for each of 2 words, and not the shape (2,)"),
    "ids of another shape": ({"probabilities": ([[0, 1]], [[0.5]])}, "ids and probabilities are two arrays of two dimensions and one shape, not of (1, 2) and (1, 1)"),
    "four arrays": ({"probabilities": ([0], [0], [0], [0])}, "a tuple is (ids, probabilities) or (ids, probabilities, offsets), and does not have 4 values"),
    "offsets that fall": ({"probabilities": ([0, 1], [0.5, 0.5], [0, 2, 1])}, "offsets rise from 0 to at most 2, the number of ids"),
    "offsets beyond the end": ({"probabilities": ([0, 1], [0.5, 0.5], [0, 1, 3])}, "offsets rise from 0 to at most 2, the number of ids"),
    "ids that are no numbers": ({"probabilities": ([["the"]], [[0.5]])}, "ids: whole numbers are needed, not <U3"),
    "a pair in another order": ({"probabilities": ([[0.5]], [[0]])}, "ids: whole numbers are needed, not float64"),
    "offsets that are no numbers": ({"probabilities": ([0], [0.5], [0.0, 1.0])}, "offsets: whole numbers are needed, not float64"),
    "line numbers that are none": (ROW | {"lines": [1.0, 2.0]}, "lines: whole numbers are needed, not float64"),
    "flags": (ROW | {"expected": [True, False]}, "expected: whole numbers are needed, not bool"),
    "rows of 0 and 1": (ROW | {"expected": np.eye(2, dtype=int)}, "expected words of the shape (2, 2) are not for predictions of the shape (2,)"),
    "a rest that is no logarithm": ({"probabilities": [[-1.0, -1.0]] * 2, "log": True, "rest": 0.1}, "probabilities[0]: the exponentials of its numbers total far more than 1\n  rest is a logarithm, too: log(0.1)"),
    "text": ({"probabilities": [["the", "a"]]}, "the probabilities are an array of <U3, not of float32 or float64"),
    "rows of two lengths": ({"probabilities": [[0.5], [0.5, 0.5]]}, "the probabilities cannot be read as an array: "),
    "a rest of another length": (ROW | {"rest": [0.5]}, "rest is one number or one for each of 2 rows, not of the shape (1,)"),
    "logits and logarithms": (ROW | {"log": True, "logits": True}, "numbers are log-probabilities or logits, not both: log=True or logits=True"),
    "a word too few": (ROW | {"expected": ["the"]}, "2 rows, but 1 expected words"),
    "a word that is a line end": (ROW | {"expected": ["the", "a\n"]}, "expected[1] contains a line end; give one line an item"),
    "a word that is none": (ROW | {"expected": ["the", None]}, "expected[1] is None, which is no text"),
    "one word": (ROW | {"expected": "ab"}, "expected words are several, not 'ab': for one row write [word]"),
    "an expected id": (ROW | {"expected": [0, 2]}, "expected[1] is 2; the ids of 2 words are 0 to 1"),
    "a line number too few": (ROW | {"lines": [1]}, "2 rows, but 1 line numbers"),
    "a line number of 0": (ROW | {"lines": [1, 0]}, "lines has the number 0; lines are counted from 1"),
    "a first line of 0": (ROW | {"first_line": 0}, "first_line is 0; lines are counted from 1"),
    "a sparse tensor": ({"probabilities": Tensor(VALUES, 4, "layout")}, "the probabilities cannot be read as an array: no layout"),
    "columns of padding": ({"probabilities": [[0.5, 0.5, 0.0]]}, "the probabilities have a row for each line and a column for each of 2 words, and not the shape (1, 3)\n  for a model with more columns than its tokenizer has words, give array[..., :2]"),
    "an expected id of padding": (ROW | {"expected": [0, -100]}, "expected[1] is -100; the ids of 2 words are 0 to 1\n  to leave out padding, index the arrays before predictions(…): probabilities[kept] and expected[kept], where kept = expected >= 0"),
    "a row of a sequence": ({"probabilities": [ROW["probabilities"], [[0.5, 0.5], [0.5, NAN]]], "expected": [[0, 1]] * 2}, "probabilities[1, 1]: the probability of 'a' is nan, which is not between 0 and 1"),
    "sequences of another length": ({"probabilities": [ROW["probabilities"]] * 3, "expected": [[0, 1, 1]] * 2}, "expected words of the shape (2, 3) are not for predictions of the shape (3, 2)"),
    "missing columns": ({"probabilities": pd.DataFrame([[0.5]], columns=["the"])}, "the table lacks columns for words of the vocabulary: 'a'"),
    "a column twice": ({"probabilities": pd.DataFrame([[0.5, 0.25, 0.25]], columns=["a", "the", "a"])}, "the table has columns that are no words of the vocabulary, or twice: 'a'"),
    "missing numbers": ({"probabilities": pd.DataFrame([[0.5, None]], columns=["a", "the"], dtype="Float64")}, "the probabilities are an array of object, not of float32 or float64"),
    "other columns": ({"probabilities": pd.DataFrame([[0.5, 0.25, 7]], columns=["a", "the", "line"])}, "the table has columns that are no words of the vocabulary, or twice: 'line'"),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), FAULTS.values(), ids=FAULTS)
def test_faults(arguments, message):
    with pytest.raises(UsageError) as caught:
        Scorer(["the", "a"]).losses(**{"expected": ["the", "a"]} | arguments)
    assert str(caught.value).startswith(message) if message.endswith(": ") else str(caught.value) == message


@pytest.mark.parametrize(
    ("probabilities", "rest", "row", "total"),
    [
        ([[0.9, 0.1], [0.9, 0.9]], None, 1, 1.8), ([[0.5, 0.3]], 0.5, 0, 1.3), ([[[0.5, 0.5], [1, 1]]], None, "0, 1", 2),
        (([[0, 1], [0, 0]], [[0.5, 0.25], [0.75, 0.75]]), None, 1, 1.5),
        (([0, 0, 1], [0.5, 0.75, 0.5], [0, 0, 1, 3, 3]), [0.5, 0.5, 0.5, 1], 2, 1.75),
    ],
)  # fmt: skip
def test_a_warning_of_rows_that_sum_to_more_than_1(probabilities, rest, row, total):
    scorer, what = Scorer(["the", "a"]), f"probabilities[{row}] sum to {total}"
    predictions = scorer.predictions(probabilities, rest=rest)
    with pytest.warns(UserWarning, match=re.escape(what)) as caught:
        scorer.losses(probabilities, ["the"] * len(predictions), rest=rest)
    assert [str(one.message) for one in caught] == [f"{what}: rows that sum to more than 1 are divided by their sum"]
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match=re.escape(what)):
        evaluate(predictions, ["the"] * len(predictions))


def test_rounded_rows_need_no_warning():
    Scorer(["the", "a"]).losses(np.array([[0.1, 0.9], [0.3334, 0.6667]], np.float16), ["a", "a"])


def test_a_line_of_a_row_at_fault_is_refused_as_its_loss():
    predictions = Scorer(["the", "a"]).predictions([[0.5, NAN]])
    with pytest.raises(
        UsageError, match=r"^probabilities\[0\]: the probability of 'a' is nan, which is not between 0 and 1$"
    ):
        list(predictions)


TOKENS = "\n  words are wanted, not the tokens of a language model: see geval predict, docs/predict.md"


@pytest.mark.parametrize(
    ("words", "metric", "message"),
    [
        (["New York"], "PerplexityHashed", "the word 'New York' contains a space, which would split the line"),
        (np.array(["the", "a b"]), "PerplexityHashed",
            "the word 'a b' contains a space, which would split the line"),
        (["the", " of"], "PerplexityHashed", f"the word ' of' contains a space, which would split the line{TOKENS}"),
        (["\n", " of"], "PerplexityHashed",
            f"the word '\\n' contains a line end, which would split the line{TOKENS}"),
        (["the", ""], "PerplexityHashed", "an empty word: give the probability of all other words as rest=…"),
        (["the", "a", "the"], "PerplexityHashed",
            "the vocabulary has the word 'the' 2 times\n  duplicates=\"sum\" adds up the probabilities of equal words"),
        ({"the": 0, "a": 2}, "PerplexityHashed",
            "the ids of 2 words are 0 to 1, each once; 'a' has 2, where 1 is missing"),
        ({"the": 0, "a": 0}, "PerplexityHashed",
            "the ids of 2 words are 0 to 1, each once; 'a' has 0, where 1 is missing"),
        (["the"], "Accuracy",
            "arrays are scored by metrics on hashed words, such as PerplexityHashed, not by Accuracy"),
    ],
)  # fmt: skip
def test_scorers_that_cannot_be_made(words, metric, message):
    with pytest.raises(UsageError) as caught:
        Scorer(words, metric)
    assert str(caught.value) == message


@pytest.mark.parametrize("rows", [np.array([[2.5, -0.5]], np.float32), ([[0, 1]], [[0.5, -0.5]]), [[0.5, -0.25]]])
def test_other_numbers_are_written_by_predictions(tmp_path, rows):
    with pytest.raises(UsageError) as caught:
        write_output(tmp_path / "out.tsv", rows, vocabulary=["the", "a"])
    advice = "for logits write Scorer(vocabulary).predictions(rows, logits=True), for logarithms log=True"
    first, second = str(caught.value).splitlines()
    assert (first[:29], second) == ("lines[0]: the probability of ", f"  {advice}")
    write_output(tmp_path / "out.tsv", Scorer(["the", "a"]).predictions(rows, logits=True))


@pytest.mark.parametrize(
    "how",
    [
        {"values": np.zeros((1, 3))}, {"values": np.zeros((2, 2))}, {"values": np.zeros((1, 2), np.int64)},
        {"values": np.zeros(2), "ids": np.zeros(2, np.int64), "offsets": np.array([0, 3])},
        {"values": np.zeros(2), "ids": np.zeros(2, np.int64), "offsets": np.array([-1, 2])},
        {"values": np.zeros(4)[::2], "ids": np.zeros(2, np.int64), "offsets": np.array([0, 2])},
        {"values": np.zeros(2), "ids": np.zeros(2, np.int64)},
        {"values": np.zeros((1, 2)), "rests": np.zeros(2)}, {"values": np.zeros((1, 2)), "expected": b"a\nb\n"},
    ],
)  # fmt: skip
def test_the_native_kernel_trusts_no_array(how):
    from geval_py.scoring.kernel import _native

    arguments = {"ids": None, "offsets": None, "rests": None, "expected": b"a\n"} | how
    with pytest.raises(ValueError, match=r"^the arrays do not fit together$"):
        _native.array_losses(
            _native.pack_words(b"a\nb\n"), arguments["values"], arguments["ids"], arguments["offsets"], arguments["rests"],
            arguments["expected"], np.ones(1, np.uint32), 10, Unit.PROBABILITIES,
        )  # fmt: skip


# Writing


def test_arrays_are_written_as_their_words_and_numbers(tmp_path):
    values = np.random.default_rng(4).dirichlet(np.full(len(WORDS), 0.2), 30) * np.linspace(0.5, 1.5, 30)[:, None]
    values = values.clip(0, 1)
    wanted = [format_line(dict(zip(WORDS, row, strict=True))) for row in values.tolist()]
    assert [format_line(row, vocabulary=WORDS) for row in values] == wanted
    write_output(tmp_path / "out.tsv", values, vocabulary=WORDS)
    assert (tmp_path / "out.tsv").read_text("utf-8").splitlines() == wanted
    ids = np.tile([3, 0, 3], (30, 1))
    write_output(tmp_path / "out.tsv", (ids, values[:, :3] / 3), vocabulary=WORDS)
    pairs = [list(zip(["żółć", "the", "żółć"], row, strict=True)) for row in (values[:, :3] / 3).tolist()]
    assert (tmp_path / "out.tsv").read_text("utf-8").splitlines() == [format_line(row) for row in pairs]


@PROPERTY
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_numbers_are_written_as_repr_writes_them(numbers):
    words = b"".join(b"w\n" for _ in numbers)
    line = backends.format_entries(words, array("d", numbers), -INF, INF)
    assert line == " ".join(f"w:{repr(number + 0.0).removesuffix('.0')}" for number in numbers)
    assert parse_line(line).values == tuple(numbers)


@pytest.mark.parametrize(
    ("words", "numbers"), [(b"a\n", [0.5, 0.5]), (b"a\nb\n", [0.5]), (b"a\n", [1.5]), (b"a\n", [NAN])]
)
def test_entries_that_are_not_written(words, numbers):
    with pytest.raises(ValueError, match=r"^words and numbers differ in number, or a number is out of range$"):
        backends.format_entries(words, array("d", numbers), 0.0, 1.0)
