"""The metrics: their table, their arithmetic, and what GEval answers."""

import math
import pickle
from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raising import refused

from geval_py.errors import MalformedLineError, SchemeError
from geval_py.scoring.evaluate import column_of, find_metric
from geval_py.scoring.metrics.base import LineStatistics
from geval_py.scoring.metrics.registry import METRICS
from geval_py.text import visible

BINARY, MISSES = find_metric("MacroAvg/Likelihood").column, find_metric("Accuracy").column
PROPERTY = settings(deadline=None, derandomize=True)
LOSS = st.floats(0, 700)
VOCABULARY = frozenset("abcd")


def block(*lines):
    return "".join(line + "\n" for line in lines).encode()


def column(*losses):
    return LineStatistics(columns=(array("d", losses),))


def words_column(vocabulary):
    return column_of(find_metric("LogLoss"), vocabulary)


def losses_of(statistics):
    (losses,) = statistics.columns
    return list(losses)


RANGES = {  # best and worst: section 4 of the specification; frozen/list-metrics.txt has directions and units
    "LikelihoodHashed": (1.0, 0.0), "LogLossHashed": (0.0, math.inf), "PerplexityHashed": (1.0, math.inf),
    "CrossEntropyHashed": (0.0, math.inf), "Likelihood": (1.0, 0.0), "LogLoss": (0.0, math.inf),
    "Perplexity": (1.0, math.inf), "CrossEntropy": (0.0, math.inf), "MacroAvg/Likelihood": (1.0, 0.0),
    "Accuracy": (1.0, 0.0),
}  # fmt: skip


def test_the_best_and_the_worst_score():
    assert {name: (METRICS[name].measure.best, METRICS[name].measure.worst) for name in RANGES} == RANGES


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_each_metric_is_a_value_with_a_name(metric):
    assert find_metric(metric.name) == METRICS[metric.name] == pickle.loads(pickle.dumps(metric)) == metric
    assert metric.summary
    column = column_of(metric, VOCABULARY)
    assert pickle.loads(pickle.dumps(column)) == column == column_of(metric, VOCABULARY)


@PROPERTY
@given(st.lists(LOSS, min_size=1))
def test_the_hashed_metrics_are_arithmetic_on_the_mean_loss(losses):
    """With L = the mean of the line losses: L, exp(-L), exp(L), L / ln 2."""
    mean = math.fsum(losses) / len(losses)
    for suffix in ("Hashed", ""):
        value = {name: find_metric(name + suffix).value(column(*losses)) for name in ("LogLoss", "Likelihood")}
        value |= {n: find_metric(n + suffix).value(column(*losses)) for n in ("Perplexity", "CrossEntropy")}
        assert value == {
            "LogLoss": mean, "Likelihood": pytest.approx(math.exp(-mean), rel=1e-12),
            "Perplexity": pytest.approx(math.exp(mean), rel=1e-12),
            "CrossEntropy": pytest.approx(mean / math.log(2), rel=1e-12),
        }  # fmt: skip


ENDS = {
    "one line is certainly wrong": ([1.0, math.inf], math.inf, 0.0, math.inf),
    "all lines are certainly right": ([0.0, 0.0], 0.0, 1.0, 1.0), "beyond exp": ([800.0], 800.0, 0.0, math.inf),
    "a sum beyond the range of a double": ([1e308] * 20, math.inf, 0.0, math.inf),
}  # fmt: skip


@pytest.mark.parametrize(("losses", "log_loss", "likelihood", "perplexity"), ENDS.values(), ids=ENDS)
def test_the_ends_of_the_range(losses, log_loss, likelihood, perplexity):
    scores = [find_metric(f"{of}Hashed").value(column(*losses)) for of in ("LogLoss", "Likelihood", "Perplexity")]
    assert scores == [log_loss, pytest.approx(likelihood, abs=1e-300), perplexity]


@pytest.mark.parametrize("bits", [*range(1, 25), "08"])
@pytest.mark.parametrize("base", ["LikelihoodHashed", "LogLossHashed", "PerplexityHashed", "CrossEntropyHashed"])
def test_bits(base, bits):
    metric, bits = find_metric(f"{base}{bits}"), int(bits)
    assert metric.bits == bits
    assert metric.name == (base if bits == 10 else f"{base}{bits}")
    assert metric.measure == METRICS[base].measure


FROM_1_TO_24 = "the number of bits is from 1 to 24"
SEE_LIST = "geval --list-metrics shows those that are known"

UNKNOWN = {  # GEval 1.42.2: the first line
    "Perplexityy": "did you mean Perplexity?", "PerplexityHash": "did you mean PerplexityHashed?",
    "LoglossHashed": "did you mean LogLossHashed?", "LikelyhoodHashed8": "did you mean LikelihoodHashed?",
    "logloss": "did you mean LogLoss?", "Accuracy8": "did you mean Accuracy?",
    "LikelihoodHashed٨": "did you mean LikelihoodHashed?", "Hashed8": "did you mean LogLossHashed?",
    "Macro/Likelihood": "did you mean MacroAvg/Likelihood?", "LogLossHashed-1": "did you mean LogLossHashed?",
    **dict.fromkeys(("Foo", "", "\x1b[31m"), SEE_LIST),
    **dict.fromkeys(("LogLossHashed0", "LogLossHashed25"), FROM_1_TO_24),
    "LikelihoodHashed99999999999999999999": FROM_1_TO_24, "LikelihoodHashed" + "9" * 5000: FROM_1_TO_24,
}  # fmt: skip


@pytest.mark.parametrize(("name", "advice"), UNKNOWN.items(), ids=lambda text: text[:40])
def test_unknown_metrics(name, advice):
    with pytest.raises(SchemeError) as caught:
        find_metric(name)
    assert str(caught.value) == f"Unknown or broken metric definition: {visible(name)}\n  {advice}"
    assert (caught.value.scheme, caught.value.exit_status) == (name, 2)


LN2 = math.log(2)

WORD_LOSSES = {
    "listed": ("a:0.5 :0.5", "a", LN2), "listed, without a rest": ("a:0.5", "a", LN2),
    "listed twice": ("a:0.25 a:0.25 :0.5", "a", LN2), "listed with 0": ("a:0 b:1", "a", math.inf),
    "listed, of a total above 1": ("a:1 b:1", "a", LN2), "listed, not in the vocabulary": ("z:0.5 :0.5", "z", LN2),
    "unlisted: shares the rest with two others": ("a:0.25 :0.75", "b", math.log(4)),
    "unlisted: shares what is missing": ("a:0.25", "b", math.log(4)),
    "unlisted: listed words outside the vocabulary take no share": ("a:0.1 z:0.1 :0.8", "b", math.log(3.75)),
    "unlisted: the last one has the whole rest": ("a:0.25 b:0.125 c:0.125 :0.5", "d", LN2),
    "unlisted: two rests add up": (":0.25 a:0.5 :0.25", "b", math.log(6)),
    "unlisted: no rest is left": ("a:1", "b", math.inf), "the rest alone": (":1", "a", math.log(4)),
    "outside the vocabulary": ("a:0.5 :0.5", "z", math.inf), "logarithms": (f"a:{-LN2!r} :{-LN2!r}", "a", LN2),
    "logarithms: softmax": ("a:3 b:3", "a", LN2),
    "logarithms: the rest is what is missing": (f"a:{-LN2!r}", "b", math.log(6)),
    "a case apart": ("A:0.5 :0.5", "a", math.log(8)), "an empty word is none of the listed": (":1", "", math.inf),
}  # fmt: skip


@pytest.mark.parametrize(("text", "word", "loss"), WORD_LOSSES.values(), ids=WORD_LOSSES)
def test_losses_of_exact_words(text, word, loss):
    """The expected word's own mass. A word not listed shares the rest evenly with the other unlisted words of a
    vocabulary; a word outside the vocabulary has probability 0, and the loss is infinite."""
    statistics = words_column(VOCABULARY).statistics(block(text), block(word), 1)
    assert losses_of(statistics) == pytest.approx([loss], rel=1e-12)
    assert statistics.out_of_vocabulary == (word not in VOCABULARY)


@pytest.mark.parametrize(
    ("text", "word", "loss"), [(":1", "", LN2), (":1", "a", LN2), ("a:0 :1", "", 0.0), ("a:0.5", "", LN2)]
)
def test_an_empty_word_of_the_vocabulary_cannot_be_listed_and_shares_the_rest(text, word, loss):
    statistics = words_column(frozenset({"", "a"})).statistics(block(text), block(word), 1)
    assert losses_of(statistics) == pytest.approx([loss])


WORD = st.sampled_from("abcdefg")


@PROPERTY
@given(st.dictionaries(WORD | st.just(""), st.floats(0.01, 1), min_size=1), st.sets(WORD, min_size=1))
def test_the_masses_of_a_vocabulary_add_up(distribution, vocabulary):
    line = " ".join(f"{word}:{value!r}" for word, value in distribution.items())
    words = sorted(vocabulary | distribution.keys() - {""})
    statistics = words_column(frozenset(vocabulary)).statistics(block(*[line] * len(words)), block(*words), 1)
    mass = math.fsum(math.exp(-loss) for loss in losses_of(statistics))
    assert mass <= 1 + 1e-9
    if vocabulary - distribution.keys():
        assert mass == pytest.approx(1, abs=1e-7)


EXACT_ERRORS = {
    "a number for a word": ("0.5", "a", "Line 4: Unexpected data [input does not start with a digit]\n"
        "  line 4, column 1: the output's plain number answers only 0 or 1; for a word the output has "
        "`word:probability`\n    a\n    ^"),
    "a malformed entry": ("a:0,5", "a", "Line 4: Unexpected data [number text found after a number]\n"
        "  line 4, column 3: `0,5` is not a number; write a decimal point, not a comma\n    a:0,5\n      ^"),
    "an empty line": ("", "a", "Line 4: Unexpected data [input does not start with a digit]\n"
        "  line 4, column 1: the line is empty; write `:1` where there is no guess\n    \n    ^"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "word", "message"), EXACT_ERRORS.values(), ids=EXACT_ERRORS)
def test_malformed_lines_of_exact_words(text, word, message):
    with pytest.raises(MalformedLineError) as caught:
        words_column(VOCABULARY).statistics(block(":1", text), block("a", word), 3)
    assert str(caught.value) == message
    assert caught.value.role == ("expected" if text == "0.5" else "output")


@pytest.mark.parametrize(("text", "expected", "loss", "number"), [
    ("0.25", "1", math.log(4), 1), ("0.25", "0", -math.log(0.75), 0), ("1", "1", 0.0, 1), ("0", "0", 0.0, 0),
    ("0", "1", math.inf, 1), ("1", "0", math.inf, 0), ("1.7", "1", 0.0, 1), ("1.7", "0", math.inf, 0),
    ("-0.3", "0", 0.0, 0), ("-0.3", "1", math.inf, 1), ("0.25", "0.51", math.log(4), 0.51),
    ("0.25", "0.5", -math.log(0.75), 0.5), ("0.25", "7", math.log(4), 7), ("0.25", "-7", -math.log(0.75), -7),
    ("1e-20", "0", 1e-20, 0),
])  # fmt: skip
def test_binary_loss(text, expected, loss, number):
    """Clip both to [0,1], loss = -ln p where expected > 0.5, else -ln(1 - p)."""
    statistics = BINARY.statistics(block(text), block(expected), 1)
    assert (losses_of(statistics), statistics.details) == (pytest.approx([loss], rel=1e-12), [number])
    assert str(*losses_of(statistics)) != "-0.0"
    of_words = words_column(VOCABULARY).statistics(block(text), block(expected), 1)
    assert (losses_of(of_words), of_words.out_of_vocabulary) == (losses_of(statistics), 0)


@pytest.mark.parametrize(
    ("expected", "reason"), [*((text, "input does not start with a digit") for text in ("yes", "")), ("1,0", "number expected")]
)  # fmt: skip
def test_what_is_no_number_in_binary_classification(expected, reason):
    with pytest.raises(MalformedLineError) as caught:
        BINARY.statistics(block("0.5", "0.5"), block("1", expected), 1)
    assert (caught.value.line, caught.value.role, caught.value.reason) == (2, "expected", reason)


@pytest.mark.parametrize("column", [BINARY, words_column(frozenset({"a"}))], ids=["classes", "words"])
def test_classes_are_read_up_to_the_first_tab(column):
    """GEval 1.42.2, --metric LogLoss: what stands behind a TAB is not looked at, colons in it neither."""
    outputs = block("0.5\tsure", "0.25\tid:7", "0.5\t", "0.25\t:0.5\tx:1")
    losses = losses_of(column.statistics(outputs, block("1\tyes", "0\tx:1", "1", "1\t"), 1))
    assert losses == pytest.approx([math.log(2), -math.log(0.75), math.log(2), math.log(4)])


NO_CLASSES = {
    "text behind the number": ("0.5x", "number expected",
        "1: `0.5x` is not a number; digits were expected, such as 0.25, -1.5 or 2.5e-3\n    0.5x\n    ^"),
    "a second number": ("0.5 0.5\tx", "number expected",
        "1: `0.5 0.5` is not a number; digits were expected, such as 0.25, -1.5 or 2.5e-3\n    0.5 0.5\\tx\n    ^"),
    "no digit": ("yes", "input does not start with a digit",
        "1: `yes` is not a number; digits were expected, such as 0.25, -1.5 or 2.5e-3\n    yes\n    ^"),
    "nothing before a TAB": ("\t0.5", "input does not start with a digit",
        "1: there is nothing before the TAB; write a number, such as 0.25\n    \\t0.5\n    ^"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "reason", "rest"), NO_CLASSES.values(), ids=NO_CLASSES)
@pytest.mark.parametrize("column", [BINARY, words_column(frozenset({"a"}))], ids=["classes", "words"])
def test_what_is_no_number_of_a_class(column, text, reason, rest):
    """GEval 1.42.2, --metric LogLoss: Unexpected data [number expected]."""
    with refused(f"Line 1: Unexpected data [{reason}]\n  line 1, column {rest}", MalformedLineError):
        column.statistics(block(text), block("1"), 1)


@pytest.mark.parametrize(("expected", "likelihoods"), [
    (["0", "0.7", "1"], [0.8, 0.4, 0.5]), (["0", "0.0", "-0"], [(0.8 * 0.6 * 0.5) ** (1 / 3)]),
    (["1", "1.0", "1e0"], [(0.2 * 0.4 * 0.5) ** (1 / 3)]), (["0.2", "0.7", "0.2"], [(0.8 * 0.5) ** 0.5, 0.4]),
], ids=["three", "three ways to write 0", "three ways to write 1", "two"])  # fmt: skip
def test_each_distinct_expected_number_is_a_class_of_its_own(expected, likelihoods):
    """The specification, section 11, point 6, of GEval 1.42.2: 0, 0.7, 1 are three."""
    statistics = BINARY.statistics(block("0.2", "0.4", "0.5"), block(*expected), 1)
    want = sum(likelihoods) / len(likelihoods)
    assert find_metric("MacroAvg/Likelihood").value(statistics) == pytest.approx(want, rel=1e-12)


GUESSES = {
    "the greatest": ("a:0.5 b:0.25 :0.25", "a", True), "not the greatest": ("a:0.5 b:0.25 :0.25", "b", False),
    "repeats are not added: one": ("a:0.3 b:0.4 a:0.3", "b", True),
    "a tie: the greatest word": ("a:0.4 b:0.4", "b", True), "a tie in code point order": ("a:0.4 Z:0.4", "a", True),
    "a tie in code point order, not of UTF-16": ("\U0001f642:0.4 \uff5e:0.4", "\U0001f642", True),
    "the rest has more": ("a:0.1 :0.9", "a", True), "the rest alone": (":1", "a", False),
    "the rest alone, where nothing is expected": (":1", "", False), "logarithms": ("a:-3 b:-2", "b", True),
    "very small probabilities": ("a:-1e9 b:-2e9", "a", True), "colons in a word": ("zu:x:0.5", "zu:x", True),
    "case": ("The:1", "the", False), "a whole line": ("New York", "New York", True),
    "a whole line, stripped": (" New York\t", "New York ", True), "an empty line": ("", "", True),
    "a line that does not parse as entries": ("a:0.5 b:x", "a:0.5 b:x", True),
    "a line that does not parse has no guess": ("a:0.5 b:x", "a", False),
    "several numbers": ("0.5 0.5", "0.5 0.5", True), "a probability of 1": ("0.75", "1", True),
    "a half is 1": ("0.5", "1", True), "a half is not 0": ("0.5", "0", False),
    "less than a half is not 1": ("0.49", "1", False), "nearly a half": ("0.49999999", "1", False),
    "beyond 1": ("1.5", "1", False), "below 0": ("-2", "0", False), "minus zero": ("-0.0", "0", True),
    "a plus sign": ("+0.7", "1", False), "a space behind the entries": ("Paris:0.9 :0.1 ", "Paris", True),
    "a TAB behind the entries": ("Paris:0.9 :0.1\t", "Paris", True),
    "a no-break space before the entries": ("\u00a0Paris:0.9 :0.1", "Paris", True),
    "a unit separator is no white space": ("Paris\x1c", "Paris", False),
    "a line separator is no white space": ("Paris", "Paris\u2028", False),
    "a probability with spaces": (" 0.75 ", " 1", True),
    "a number where a number is expected": ("0.75", "0.75", True),
    "a number where another is expected": ("0.75", "2", False), "a word where 1 is expected": ("yes", "1", False),
    "a wrong number where 1 is expected": (".5", "1", False),
    "a number too large for a double": ("1e400", "1", False),
    "a number too large for a double, of a word": ("a:1e400 1:1", "1", False),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected", "hit"), GUESSES.values(), ids=GUESSES)
def test_accuracy_of_a_line(text, expected, hit):
    """A line that parses as entries answers the word of the entry with the greatest number (repeats not added;
    ties: the greatest word in code point order; the rest alone: a miss). Another line is compared whole; where 0 or
    1 is expected it may be a probability of 1 (0.5 and more: 1), within [0,1] and without a plus sign. Both are
    stripped as Haskell does, whatever kind of line it is. As GEval 1.42.2, but that it reads 0.49999999 in single
    precision, as a half."""
    assert losses_of(MISSES.statistics(block(text), block(expected), 1)) == [0.0 if hit else 1.0]
