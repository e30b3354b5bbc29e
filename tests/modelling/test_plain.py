"""Models of plain counts say exactly what their formula says."""

import math
from collections import Counter

import pytest

from geval_py.modelling.arpa import read_arpa, write_arpa
from geval_py.modelling.corpus import corpus_of
from geval_py.modelling.estimation import ADD_ONE, KINDS, MAXIMUM_LIKELIHOOD, plain_model
from geval_py.modelling.ngram_model import NgramModel

TRAIN = ["a b a", "b a c", "", "a b b a", "c"]
TEST = ["a b c", "z a b", "c c", ""]


def formula(order, kind, sentence, marks):
    """Compute a sentence's log10 probability from the formula, with <s> and </s> or without."""
    grams, contexts = Counter(), Counter()
    start_mark, end_mark = (("<s>",), ("</s>",)) if marks else ((), ())
    texts = [(*start_mark, *line.split(), *end_mark) for line in TRAIN]
    for text in texts:
        for end in range(marks, len(text)):
            for start in range(max(0, end - order + 1), end + 1):
                grams[text[start : end + 1]] += 1
                contexts[text[start:end]] += 1
    size = len({word for text in texts for word in text} - {"<s>"}) + 1
    text, total = (*start_mark, *sentence.split(), *end_mark), 0.0
    for end in range(marks, len(text)):
        start = max(0, end - order + 1)
        if kind == MAXIMUM_LIKELIHOOD:  # what has no such context is left to a shorter one
            while start < end and not contexts[text[start:end]]:
                start += 1
        count, of = grams[text[start : end + 1]], contexts[text[start:end]]
        share = (count + 1) / (of + size) if kind == ADD_ONE else count / of
        if kind == ADD_ONE and not marks and end < order - 1:  # a context that is not whole
            share = 1 / size
        total += math.log10(share) if share else -math.inf
    return total


@pytest.mark.parametrize("written", [False, True], ids=["in memory", "from its ARPA file"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("marks", [True, False], ids=["with marks", "without marks"])
def test_a_model_says_what_the_formula_says(order, kind, marks, written, tmp_path):
    model = NgramModel.train(TRAIN, order, counts=kind, sentence_marks=marks).model
    if written:
        with (tmp_path / "m.arpa").open("wb") as file:
            write_arpa(model, file)
        model = read_arpa(str(tmp_path / "m.arpa"))
    lines = TRAIN + TEST
    score = NgramModel(model).score_texts(lines, marks, marks)
    assert score.logs.tolist() == pytest.approx([formula(order, kind, line, marks) for line in lines], abs=1e-6)


def test_perplexity_is_infinite_where_a_word_has_no_probability():
    model = plain_model(corpus_of([("", 1, b"a\n")]), 1, MAXIMUM_LIKELIHOOD)
    score = NgramModel(model).score_texts(["z", "a"])
    assert (score.perplexity_including_oov, score.perplexity_excluding_oov) == (math.inf, pytest.approx(2))
    including, excluding = score.intervals(100, 1)
    assert including.high == math.inf
    assert excluding.ends == (None, None)  # each of the known tokens costs the same
