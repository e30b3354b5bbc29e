"""The metrics of other tasks than word gaps: what GEval answers, what the libraries answer, and the edges."""

import json
import lzma
import math
import operator
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples
from scipy.stats import pearsonr, spearmanr
from scorers import block, error, perfect_line, score, statistics_of
from sklearn.metrics import f1_score, normalized_mutual_info_score

from geval_py.errors import SchemeError, UsageError
from geval_py.reading.schemes import parse_scheme
from geval_py.scoring.evaluate import column_of, find_metric, preparation_for
from geval_py.scoring.metrics.classes import f_score, harmonic, is_wanted, ratio
from geval_py.scoring.metrics.columns import probable_labels
from geval_py.scoring.metrics.labels import calibration, fitted
from geval_py.scoring.metrics.registry import FAMILIES, METRICS
from geval_py.scoring.metrics.tags import Entity, entities_of
from geval_py.scoring.metrics.translation import bleu, bleu_row, error_rate

PROPERTY = settings(deadline=None, derandomize=True, max_examples=examples(50))
DATA = Path(__file__).parent.parent / "data/text-metrics.jsonl.xz"
OF_WORDS_AND_CLASSES = {"Accuracy", "MacroAvg/Likelihood"}  # test_metrics.py has these
TEXT_METRICS = {
    name: metric
    for name, metric in METRICS.items()
    if not (metric.is_of_words or metric.has_entries or name in OF_WORDS_AND_CLASSES)
}
GOLDEN = [json.loads(line) for line in lzma.decompress(DATA.read_bytes()).splitlines()]


# GEval's answers


@pytest.mark.parametrize("name", dict.fromkeys(row["metric"] for row in GOLDEN))
def test_golden_scores(name):
    """GEval 1.42.2, --metric and the metric's name; inputs made up."""
    rows = [row for row in GOLDEN if row["metric"] == name]
    found = [score(name, row["output"], row["expected"], row.get("input", ())) for row in rows]
    assert found == pytest.approx([float(row["value"]) for row in rows], rel=1e-9, abs=1e-9, nan_ok=True)


# The table


PERFECT = {  # lines that are all right
    **dict.fromkeys(["RMSE", "MSE", "MAE", "SMAPE", "Pearson", "Spearman"], ("1.5", "-2")),
    **{f"MacroAvg/{name}": ("1.5", "-2") for name in ("RMSE", "MSE", "MAE", "SMAPE")},
    **dict.fromkeys(["F1", "MacroAvg/F1"], ("1", "0")),
    **dict.fromkeys(["Haversine"], ("19.94\t50.06", "-0.12\t51.5")),
    **dict.fromkeys(["BIO-F1", "BIO-F1-Labels", "BIO-Weighted-F1"], ("O B-a/x I-a", "B-b")),
    **dict.fromkeys(["Soft-F1", "Probabilistic-Soft-F1", "FLC-F1", "SegmentAccuracy"], ("a:1-3 b:4", "a:2,5-7")),
    **dict.fromkeys(["Soft2D-F1", "Probabilistic-Soft2D-F1"], ("a:1/2,3,4,5 1,1,2,2", "b:7,7,7,9")),
    "ClippEU": ("1/2,3,4,5/1 1,1,2,2/0", "1,1,2,2/5"),
    **dict.fromkeys(["RMSE-Against-Interval", "MSE-Against-Interval", "MAE-Against-Interval"], ("1,2", "-1.5,0")),
    "Improvement@0.5": ("1.5", "1.5"),
    "CustomMetric1": ("a\tb", "\tb"),
}


@pytest.mark.parametrize("metric", TEXT_METRICS.values(), ids=TEXT_METRICS)
def test_what_is_right_has_the_best_score(metric):
    lines = PERFECT.get(metric.name, ("a b c d e", "f g h i"))
    inputs = ["x", "y"]
    statistics = statistics_of(metric.name, [perfect_line(line, metric) for line in lines], lines, inputs)
    best = 0.0 if math.isinf(metric.measure.best) else metric.measure.best
    assert len(statistics.columns) == len(metric.measure.columns)
    assert metric.value(statistics) == pytest.approx(best)
    alone = list(metric.line_scores(statistics))
    assert len(alone) == statistics.lines == 2
    assert all(of == pytest.approx(best) or math.isnan(of) for of in alone)


@pytest.mark.parametrize("metric", TEXT_METRICS.values(), ids=TEXT_METRICS)
def test_a_score_of_arrays_is_that_of_each(metric):
    lines = PERFECT.get(metric.name, ("a b c d e", "f g h i"))
    statistics = statistics_of(metric.name, [perfect_line(line, metric) for line in lines], lines, ["x", "y"])
    if metric.measure.corpus_score is None:
        totals = [np.array(column) for column in statistics.columns]
        found = metric.measure.formula(totals, np.ones(2))
        assert found.tolist() == pytest.approx(list(metric.line_scores(statistics)))


@pytest.mark.parametrize(
    "name",
    [
        *("F2", "F0", "F0.5", "Macro-F3", "MultiLabel-F2", "Mean/MultiLabel-F2", "NDCG@3", "Soft-F2", "Soft2D-F0.5"),
        *("FLC-F2", "Probabilistic-Soft-F2", "Probabilistic-Soft2D-F2", "Improvement@0", "Improvement@-1.5"),
        *("Hit@20", "KullbackLeiblerHashed8", "CrossEntropyToNormsHashed20"),
    ],
)
def test_a_number_may_end_a_name(name):
    metric = find_metric(name)
    assert metric.name == name
    assert metric == find_metric(name) != find_metric(name.rstrip("0123456789") + "7")
    assert column_of(metric, frozenset()) == column_of(find_metric(name), frozenset())


@pytest.mark.parametrize(
    "name",
    [
        *("F", "F1.", "F1x", "F-1", "NDCG@2.5", "NDCG@0", "NDCG", "WER2", "F" + "1" * 10, "Soft-F", "Soft2D-F-1"),
        *("BIO-Weighted-F2", "ClippEU2", "Improvement@", "Improvement@--1", "Soft-F1\n", "Hit@", "Hit@0", "Hit@1.5"),
        *("Hit@-1", "Hit@" + "9" * 10, "Hit3", "MRR5", "KullbackLeiblerHashed0"),
        *("KullbackLeiblerHashed25", "RankCorrelationHashed8"),
    ],
)
def test_other_numbers_make_no_name(name):
    with pytest.raises(SchemeError, match=r"^Unknown or broken metric definition: "):
        find_metric(name)


def test_each_family_has_a_metric_in_the_table():
    assert {name.rstrip("0123456789.") for name in METRICS} >= set(FAMILIES)


@pytest.mark.parametrize("name", ["WER", "Fuzzy/Accuracy"])
def test_a_library_that_is_not_there(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "rapidfuzz.distance", None)
    column_of(find_metric("Lower/Accuracy"), frozenset())
    with pytest.raises(UsageError) as caught:
        column_of(find_metric(name), frozenset())
    assert (
        str(caught.value)
        == "this metric needs rapidfuzz.distance, of the extra text: pip install 'rapidfuzz>=3.6' 'sacrebleu<3,>=2.4' "
        "'scipy>=1.11'"
    )


# What the libraries say


WORD = st.sampled_from(["the", "cat", "sat", "on", "mat", "."])
SENTENCE = st.lists(WORD, min_size=4, max_size=12).map(" ".join)
PAIRS = st.lists(st.tuples(SENTENCE, SENTENCE), min_size=1, max_size=5)
LABEL = st.sampled_from("abcd")
LABELS = st.lists(st.tuples(LABEL, LABEL), min_size=1, max_size=12)
NUMBERS = st.lists(st.tuples(*[st.integers(-5, 5)] * 2), min_size=3, max_size=9)


@PROPERTY
@given(PAIRS)
def test_bleu_is_that_of_sacrebleu_where_nothing_is_tokenised_or_smoothed(pairs):
    """With one reference of four words or more; GEval's is from 0 to 1."""
    outputs, answers = map(list, zip(*pairs, strict=True))
    theirs = sacrebleu.corpus_bleu(outputs, [answers], tokenize="none", smooth_method="none", force=True).score
    assert 100 * score("BLEU", outputs, answers) == pytest.approx(theirs, abs=1e-9)


SACRE = {
    "SacreBLEU": lambda *of: sacrebleu.corpus_bleu(*of, force=True),
    "chrF": sacrebleu.corpus_chrf,
    "chrF++": lambda *of: sacrebleu.corpus_chrf(*of, word_order=2),
    "TER": sacrebleu.corpus_ter,
}


@pytest.mark.parametrize("name", SACRE)
@settings(PROPERTY, max_examples=examples(15))
@given(pairs=PAIRS, others=st.lists(SENTENCE, min_size=5, max_size=5), space=st.sampled_from(" \r"))
def test_sacrebleus_scores_are_sacrebleus(name, pairs, others, space):
    """With two references a line; also of the files as sacreBLEU reads them, for which CR is white space."""
    outputs, answers = map(list, zip(*pairs, strict=True))
    outputs = [text.replace(" ", space) for text in outputs]
    others = others[: len(answers)]
    both = [f"{one}\t{other}" for one, other in zip(answers, others, strict=True)]
    theirs = SACRE[name](outputs, [answers, others])
    assert score(name, outputs, both) == pytest.approx(theirs.score, rel=1e-12, abs=1e-12)


@PROPERTY
@given(PAIRS)
def test_the_parts_of_bleu_are_those_of_sacrebleu(pairs):
    outputs, answers = map(list, zip(*pairs, strict=True))
    for name, unit, how in (("SacreBLEU", 1, {}), ("BLEU", 100, {"tokenize": "none", "smooth_method": "none"})):
        parts = find_metric(name).details(*map(sum, statistics_of(name, outputs, answers).columns))
        theirs = sacrebleu.corpus_bleu(outputs, [answers], force=True, **how)
        assert [unit * precision for precision in parts.pop("precisions")] == pytest.approx(theirs.precisions)
        assert list(parts.values()) == pytest.approx([theirs.bp, theirs.sys_len, theirs.ref_len])


def test_sacrebleus_signature():
    (version,) = {sacrebleu.__version__}
    one, both = (statistics_of("SacreBLEU", ["a b", "c"], lines) for lines in (["a b", "c"], ["a b\tb", "c"]))
    sign = find_metric("SacreBLEU").signature
    assert sign(one) == f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:{version}"
    assert sign(both) == f"nrefs:var|case:mixed|eff:no|tok:13a|smooth:exp|version:{version}"
    sign = find_metric("chrF++").signature
    assert sign(statistics_of("chrF++", ["a"], ["a\tb"])) == (
        f"nrefs:2|case:mixed|eff:yes|nc:6|nw:2|space:no|version:{version}"
    )


@PROPERTY
@given(LABELS)
def test_macro_f1_is_that_of_scikit_learn(pairs):
    expected, given_ = zip(*pairs, strict=True)
    theirs = f1_score(expected, given_, labels=sorted(set(expected)), average="macro", zero_division=0)
    assert score("Macro-F1", given_, expected) == pytest.approx(theirs)


@PROPERTY
@given(LABELS)
def test_mutual_information_is_that_of_scikit_learn(pairs):
    """But where all is one class on both sides: 1 there, and NaN here, as GEval has it."""
    expected, given_ = zip(*pairs, strict=True)
    theirs = normalized_mutual_info_score(expected, given_)
    ours = score("NMI", given_, expected)
    if len(set(expected)) == len(set(given_)) == 1:
        assert math.isnan(ours)
    else:
        assert ours == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize(("name", "theirs"), [("Pearson", pearsonr), ("Spearman", spearmanr)])
@PROPERTY
@given(pairs=NUMBERS)
def test_correlations_are_those_of_scipy(name, theirs, pairs):
    expected, given_ = zip(*pairs, strict=True)
    ours = score(name, list(map(str, given_)), list(map(str, expected)))
    if len(set(expected)) == 1 or len(set(given_)) == 1:
        assert math.isnan(ours)
    else:
        assert ours == pytest.approx(theirs(expected, given_).statistic, abs=1e-12)


def test_correlations_of_far_numbers_keep_their_digits():
    """Sums of squares would have lost them all."""
    numbers = [1e9 + n for n in range(5)]
    assert score("Pearson", [f"{n:.0f}" for n in numbers], ["0", "1", "2", "3", "4"]) == pytest.approx(1)


@PROPERTY
@given(NUMBERS, st.tuples(*[st.integers(-900, 900)] * 2))
def test_a_correlation_does_not_depend_on_the_scale(pairs, powers):
    """The squares of most such numbers are beyond the range of a double."""
    sides = [[math.ldexp(pair[side], powers[side]) for pair in pairs] for side in (0, 1)]
    exact = [[Fraction(number) - sum(map(Fraction, side)) / len(side) for number in side] for side in sides]
    squares = math.prod(sum(number * number for number in side) for side in exact)
    ours = score("Pearson", *[list(map(repr, side)) for side in sides])
    if not squares:
        assert math.isnan(ours)
    else:
        both = sum(map(operator.mul, *exact))
        assert ours == pytest.approx((-1) ** (both < 0) * math.sqrt(both * both / squares), abs=1e-12)


# By hand


def test_the_clipped_precision_of_papineni():
    """2/7 (Papineni and others 2002, section 2.1): seven times "the", two of them in the reference."""
    right, _, _, _, reference_words, words, *_ = bleu_row("the the the the the the the", "the cat is on the mat")
    assert (right, words, reference_words) == (2, 7, 6)


def test_bleu_clips_at_the_reference_that_has_an_n_gram_least_often():
    """GEval's own: Papineni's and sacreBLEU's maximum would be 2."""
    assert bleu_row("a a b", "a a c\ta d")[0] == 1
    assert bleu_row("a a b", "a a c\td d")[0] == 2


EDGES = [  # formulas where something is 0 or infinite
    *((bleu, (1, 1, 1, 1, r, c, 1, 1, 1), want * max(c, 1) ** -0.25)
      for c, r, want in ((3, 3, 1), (4, 3, 1), (0, 3, 0), (0, 0, 1), (2, 3, math.exp(-0.5)))),
    (error_rate, (0, 0), 0.0), (error_rate, (2, 0), 1.0), (error_rate, (3, 2), 1.5), (ratio, (0, 0), 1.0),
    (ratio, (1, 4), 0.25), (harmonic, (1, 0.0, 0.0), 0.0), (f_score, (1, 0, 0, 0), 1.0),
    *((is_wanted, (answer, 1), want) for answer, want in (
        ("0", False), ("01", True), ("0" * 5000 + "1\tx", True), ("00\t", False))),
]  # fmt: skip


@pytest.mark.parametrize(
    ("formula", "arguments", "want"), EDGES, ids=lambda value: getattr(value, "__name__", str(value)[:30])
)
def test_the_edges_of_formulas(formula, arguments, want):
    assert formula(*arguments) == want


@pytest.mark.parametrize("answer", ["", "\t1", "2", "10", "1.0", "-1", " 1", "1 "])
def test_neither_zero_nor_one(answer):
    assert error("F1", ["1"], [answer]).role == "expected"


@pytest.mark.parametrize(
    ("output", "expected", "probabilities"),
    [
        ("a:0.5", "a", [0.5]), ("a:0.5 a:0.25", "a", [0.5]), ("a:0.25 b:0.125 a:0.5", "a", [0.25, 0.875]),
        ("b:0.125 b:0.5", "", [0.875, 0.5]), ("a", "a a", [1.0]), ("b:0.5", "a", [0.0, 0.5]), ("b", "", [0.0]),
    ],
)  # fmt: skip
def test_the_first_probability_of_an_expected_label_counts(output, expected, probabilities):
    """A wrong label counts as often as it is listed."""
    want = math.inf if 0.0 in probabilities else -math.fsum(map(math.log, probabilities))
    assert score("MultiLabel-LogLoss", [output], [expected]) == pytest.approx(want)


def test_characters_count_at_the_ends_too():
    assert statistics_of("CER", [" ab"], ["ab "]).columns == statistics_of("CER", ["xab"], ["abx"]).columns


def test_text_flags_change_the_input_too():
    metric, scheme = find_metric("CharMatch"), parse_scheme("CharMatch:l")
    column = column_of(metric, frozenset(), preparation_for(scheme))
    assert metric.value(column.statistics(block(["ABC"]), block(["abc"]), 1, ["ABX"])) == 1.0
    unlike = column.statistics(block(["ABd"]), block(["abc"]), 1, ["ABX"])
    assert unlike.columns == statistics_of("CharMatch", ["abd"], ["abc"], ["abx"]).columns


@pytest.mark.parametrize(
    ("line", "want"),
    [
        ("", []),
        (" O\tO ", []),
        ("B-a I-a/x I_a/y B-a", [Entity(0, 2, "a", "x_y"), Entity(3, 3, "a", "")]),
        ("B-a/x/y O B_b", [Entity(0, 0, "a", "x/y"), Entity(2, 2, "b", "")]),
    ],
)
def test_entities(line, want):
    assert entities_of(line, 1) == want


FAULTS = {
    "no number": ("RMSE", "x", "1", 1, "input does not start with a digit", "output"),
    "no answer": ("RMSE", "1", "x", 1, "input does not start with a digit", "expected"),
    "no probability": ("F1", "1.5", "1", 1, "expected probability", "output"),
    "neither 0 nor 1": ("F1", "1", "2\tx", 1, "expected 0 or 1", "expected"),
    "a fraction": ("F1", "1", "0.5", 1, "number expected", "expected"),
    "a fraction of 0": ("F2", "1", "1.0", 1, "number expected", "expected"),
    "a remark": ("F1", "1", "1 yes", 1, "number expected", "expected"),
    "no digit": ("F1", "1", "-1", 1, "input does not start with a digit", "expected"),
    "nothing": ("F1", "1", "", 1, "input does not start with a digit", "expected"),
    "one coordinate": ("Haversine", "1", "1\t2", 1, "cannot parse line with longitude and latitude of sphere",
        "output"),
    "no latitude": ("Haversine", "1\tx", "1\t2", 3, "cannot parse line with latitude of sphere", "output"),
    "no longitude": ("Haversine", "1\t2", "x\t2", 1, "cannot parse line with longitude of sphere", "expected"),
    "nothing for a latitude": ("Haversine", "1\t", "1\t2", 3, "cannot parse line with latitude of sphere", "output"),
    "too few tags": ("TokenAccuracy", "A", "A B", 1, "wrong number of tokens", "output"),
    "no tag": ("BIO-F1", "O  X-a", "O", 4, "endOfInput", "output"),
    "no tag behind one that is out of place": ("BIO-F1", "I-a X-a", "O O", 5, "endOfInput", "output"),
    "no beginning": ("BIO-F1", "O I-a", "O O", 3, "inconsistent label sequence `I-a`", "output"),
    "another label": ("BIO-F1", "O O", "B-a I-b", 5, "inconsistent label sequence `B-a I-b`", "expected"),
    "the tags that belong together": ("BIO-F1", "B-x B_a/n\tI_a I-b I-a/m B-a I-a", "O", 15,
        "inconsistent label sequence `B-a/n I-a I-b I-a/m`", "output"),
    "tags behind one outside": ("BIO-F1", "B-a O I-a I-a O", "O", 7, "inconsistent label sequence `I-a I-a`",
        "output"),
    "nothing expected": ("MAP", "a", "", 1, "no item expected", "expected"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "output", "expected", "column", "reason", "role"), FAULTS.values(), ids=FAULTS)
def test_a_line_that_cannot_be_read(name, output, expected, column, reason, role):
    caught = error(name, [output], [expected])
    assert (caught.line, caught.column, caught.reason, caught.role) == (1, column, reason, role)
    assert caught.hint
    assert caught.text == (output if role == "output" else expected)


def test_calibration():
    """1 of nothing; of probabilities all alike, 1 minus how far they are off; never below 0."""
    assert calibration(np.zeros(0), np.zeros(0)) == 1
    assert calibration(np.array([1.0, 0.0]), np.array([0.75, 0.75])) == 0.75
    sure = np.linspace(0, 1, 21)
    assert calibration(sure, sure) == pytest.approx(1)
    assert calibration(1 - sure, sure) == pytest.approx(0)


@PROPERTY
@given(st.floats(-2, 2), st.floats(-2, 2), st.lists(st.floats(0, 1), min_size=9, max_size=9, unique=True))
def test_a_line_is_fitted_by_itself(slope, level, inputs):
    """Local fits of points on a line are that line."""
    inputs = np.array([0.0, 1.0, *inputs])
    points = np.linspace(0.1, 0.9, 5)
    assert fitted(inputs, slope * inputs + level, points) == pytest.approx(slope * points + level, abs=1e-3)


@pytest.mark.parametrize("right", ["Mean/WAR", "Mean/CAR", "WAR", "CAR"])
def test_what_is_right_is_the_rest_of_what_is_wrong(right):
    lines = ["a b", "a c d", "x y z a b"], ["a b", "a b", "x"]
    wrong = score(right.replace("AR", "ER"), *lines)
    assert wrong > 0
    assert score(right, *lines) == pytest.approx(1 - wrong)


@pytest.mark.parametrize(
    ("word", "label"),
    [
        ("a:0.0", ("a", 0.0)), ("a:1.0", ("a", 1.0)), ("a:0.25", ("a", 0.25)), ("a:b:0.5", ("a:b", 0.5)),
        ("a:+0.5", ("a", 0.5)),
        *((word, (word, 1.0)) for word in ("a:1.1", "a:-0.1", "a:.5", "a:5.", "a:0,5", "a:1.0e999", "a:5e-1", "a:1e-3",
            "a:0_0.5", "a:0", "a:1", ":0.5", "a", "0.5")),
    ],
)  # fmt: skip
def test_a_label_has_a_probability_with_a_point(word, label):
    assert probable_labels(word) == [label]


@pytest.mark.parametrize("expected", ["a b c d\ta b", "a b\ta b c d"])
def test_of_two_references_that_are_as_close_the_shorter_one_counts(expected):
    """As in GEval, whatever their order: the penalty for brevity is of two words, not of four."""
    assert bleu_row("a b c", expected)[4] == 2


def test_sacrebleu_keeps_no_lines():
    """The caches of its tokenizers would keep half a gigabyte of long lines."""
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
    from sacrebleu.tokenizers.tokenizer_ter import TercomTokenizer

    for name in ("SacreBLEU", "TER"):
        column_of(find_metric(name), frozenset()).statistics(b"a b\n", b"a c\n", 1)
    assert [one.__call__.cache_info().currsize for one in (Tokenizer13a, TercomTokenizer)] == [0, 0]
