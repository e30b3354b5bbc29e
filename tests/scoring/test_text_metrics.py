"""The metrics of other tasks than word gaps: what GEval answers, what the libraries answer, and the edges."""

import math
import operator
import sys
from fractions import Fraction

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples
from raising import refused
from scorers import block, error, perfect_line, score, statistics_of

from geval_py.errors import SchemeError
from geval_py.reading.schemes import parse_scheme
from geval_py.scoring.evaluate import column_of, find_metric, preparation_for
from geval_py.scoring.metrics.classes import f_score, harmonic, is_wanted, ratio
from geval_py.scoring.metrics.columns import probable_labels
from geval_py.scoring.metrics.registry import MAX_PREFIXES, METRICS
from geval_py.scoring.metrics.translation import bleu, error_rate

PROPERTY = settings(deadline=None, derandomize=True, max_examples=examples(50, most=12))
OF_WORDS_AND_CLASSES = {"Accuracy", "MacroAvg/Likelihood"}  # test_metrics.py has these
TEXT_METRICS = {
    name: metric
    for name, metric in METRICS.items()
    if not (metric.is_of_words or metric.has_entries or name in OF_WORDS_AND_CLASSES)
}

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
    "Improvement@0.5": ("1.5", "1.5"), "CustomMetric1": ("a\tb", "\tb"),
}  # fmt: skip


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
    if metric.measure.corpus_score is None:  # of arrays, too
        totals = [np.array(column) for column in statistics.columns]
        assert metric.measure.formula(totals, np.ones(2)).tolist() == pytest.approx(alone)


@pytest.mark.parametrize("name", [
    *("F2", "F0", "F0.5", "Macro-F3", "MultiLabel-F2", "Mean/MultiLabel-F2", "NDCG@3", "Soft-F2", "Soft2D-F0.5"),
    *("FLC-F2", "Probabilistic-Soft-F2", "Probabilistic-Soft2D-F2", "Improvement@0", "Improvement@-1.5"),
    *("Hit@20", "KullbackLeiblerHashed8", "CrossEntropyToNormsHashed20"),
])  # fmt: skip
def test_a_number_may_end_a_name(name):
    metric = find_metric(name)
    assert metric.name == name
    assert metric == find_metric(name) != find_metric(name.rstrip("0123456789") + "7")
    assert column_of(metric, frozenset()) == column_of(find_metric(name), frozenset())


@pytest.mark.parametrize("name", [
    *("F", "F1.", "F1x", "F-1", "NDCG@2.5", "NDCG@0", "NDCG", "WER2", "F" + "1" * 10, "Soft-F", "Soft2D-F-1"),
    *("BIO-Weighted-F2", "ClippEU2", "Improvement@", "Improvement@--1", "Soft-F1\n", "Hit@", "Hit@0", "Hit@1.5"),
    *("Hit@-1", "Hit@" + "9" * 10, "Hit3", "MRR5", "KullbackLeiblerHashed0"),
    *("Lower", "Lower/", "/Accuracy", "lower/Accuracy", "Lower//Accuracy", "Lower/Accuracy/", "Lower/MultiLabel-F"),
    *("Lower/" * (MAX_PREFIXES + 1) + "Accuracy", "Lower/" * 9999 + "Accuracy", "MacroAvg/", "Mean/Lower/"),
    *("MacroAvg/F", "MacroAvg/F1x", "Fuzzy/MultiLabel-F-1", "Mean/Fuzzy/MultiLabel-F"),
    *("KullbackLeiblerHashed25", "RankCorrelationHashed8"),
])  # fmt: skip
def test_other_numbers_make_no_name(name):
    with pytest.raises(SchemeError, match=r"^Unknown or broken metric definition: "):
        find_metric(name)


@pytest.mark.parametrize("name", ["WER", "Fuzzy/Accuracy"])
def test_a_library_that_is_not_there(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "rapidfuzz.distance", None)
    column_of(find_metric("Lower/Accuracy"), frozenset())
    needed = "'rapidfuzz>=3.6' 'sacrebleu<3,>=2.4' 'scipy>=1.11'"
    with refused(f"this metric needs rapidfuzz.distance, of the extra text: pip install {needed}"):
        column_of(find_metric(name), frozenset())


WORD = st.sampled_from(["the", "cat", "sat", "on", "mat", "."])
SENTENCE = st.lists(WORD, min_size=4, max_size=12).map(" ".join)
PAIRS = st.lists(st.tuples(SENTENCE, SENTENCE), min_size=1, max_size=5)
NUMBERS = st.lists(st.tuples(*[st.integers(-5, 5)] * 2), min_size=3, max_size=9)

SACRE = {
    "SacreBLEU": lambda *of: sacrebleu.corpus_bleu(*of, force=True), "chrF": sacrebleu.corpus_chrf,
    "chrF++": lambda *of: sacrebleu.corpus_chrf(*of, word_order=2), "TER": sacrebleu.corpus_ter,
}  # fmt: skip


@pytest.mark.parametrize("name", SACRE)
@settings(PROPERTY, max_examples=examples(15, most=8))
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


def test_text_flags_change_the_input_too():
    metric, scheme = find_metric("CharMatch"), parse_scheme("CharMatch:l")
    column = column_of(metric, frozenset(), preparation_for(scheme))
    assert metric.value(column.statistics(block(["ABC"]), block(["abc"]), 1, ["ABX"])) == 1.0
    unlike = column.statistics(block(["ABd"]), block(["abc"]), 1, ["ABX"])
    assert unlike.columns == statistics_of("CharMatch", ["abd"], ["abc"], ["abx"]).columns


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


@pytest.mark.parametrize(("word", "label"), [
    ("a:0.0", ("a", 0.0)), ("a:1.0", ("a", 1.0)), ("a:0.25", ("a", 0.25)), ("a:b:0.5", ("a:b", 0.5)),
    ("a:+0.5", ("a", 0.5)),
    *((word, (word, 1.0)) for word in ("a:1.1", "a:-0.1", "a:.5", "a:5.", "a:0,5", "a:1.0e999", "a:5e-1", "a:1e-3",
        "a:0_0.5", "a:0", "a:1", ":0.5", "a", "0.5")),
])  # fmt: skip
def test_a_label_has_a_probability_with_a_point(word, label):
    assert probable_labels(word) == [label]


def test_sacrebleu_keeps_no_lines():
    """The caches of its tokenizers would keep half a gigabyte of long lines."""
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
    from sacrebleu.tokenizers.tokenizer_ter import TercomTokenizer

    for name in ("SacreBLEU", "TER"):
        column_of(find_metric(name), frozenset()).statistics(b"a b\n", b"a c\n", 1)
    assert [one.__call__.cache_info().currsize for one in (Tokenizer13a, TercomTokenizer)] == [0, 0]
