"""Models of plain counts say exactly what their formula says."""

import math
import re
import subprocess
from collections import Counter

import numpy as np
import pytest

from geval_py.modelling.arpa import read_arpa, write_arpa
from geval_py.modelling.corpus import Corpus
from geval_py.modelling.estimation import ADD_ONE, KINDS, MAXIMUM_LIKELIHOOD, RunningCounts, plain_model
from geval_py.modelling.ngram_model import NgramModel

TRAIN = ["a b a", "b a c", "", "a b b a", "c"]
TEST = ["a b c", "z a b", "c c", ""]


def formula(order, kind, sentence):
    """Compute a sentence's log10 probability from the formula, with <s> and </s>."""
    grams, contexts = Counter(), Counter()
    texts = [("<s>", *line.split(), "</s>") for line in TRAIN]
    for text in texts:
        for end in range(1, len(text)):
            for start in range(max(0, end - order + 1), end + 1):
                grams[text[start : end + 1]] += 1
                contexts[text[start:end]] += 1
    size = len({word for text in texts for word in text} - {"<s>"}) + 1
    text, total = ("<s>", *sentence.split(), "</s>"), 0.0
    for end in range(1, len(text)):
        start = max(0, end - order + 1)
        if kind == MAXIMUM_LIKELIHOOD:  # what has no such context is left to a shorter one
            while start < end and not contexts[text[start:end]]:
                start += 1
        count, of = grams[text[start : end + 1]], contexts[text[start:end]]
        share = (count + 1) / (of + size) if kind == ADD_ONE else count / of
        total += math.log10(share) if share else -math.inf
    return total


@pytest.mark.parametrize("written", [False, True], ids=["in memory", "from its ARPA file"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_a_model_says_what_the_formula_says(order, kind, written, tmp_path):
    model = plain_model(Corpus.of([line.encode().split() for line in TRAIN]), order, kind)
    if written:
        with (tmp_path / "m.arpa").open("wb") as file:
            write_arpa(model, file)
        model = read_arpa(str(tmp_path / "m.arpa"))
    lines = TRAIN + TEST
    score = NgramModel([model]).score_texts(lines)
    assert score.logs.tolist() == pytest.approx([formula(order, kind, line) for line in lines], abs=1e-6)


def test_perplexity_is_infinite_where_a_word_has_no_probability():
    model = plain_model(Corpus.of([[b"a"]]), 1, MAXIMUM_LIKELIHOOD)
    score = NgramModel([model]).score_texts(["z", "a"])
    assert (score.perplexity_including_oov, score.perplexity_excluding_oov) == (math.inf, pytest.approx(2))
    including, excluding = score.intervals(100, 1)
    assert including.high == math.inf
    assert excluding.ends == (None, None)  # each of the known tokens costs the same


def test_running_counts_as_a_lecture_defines_them():
    """log2 of the first token by its share, then count(a b) / count(a), pairs counted over the ends of sentences."""
    sentences = [["a", "b", "."], ["b", "a", "b", "."], ["a", "."]]
    tokens = [token for sentence in sentences for token in sentence]
    counts = RunningCounts.of(tokens)
    unigram = math.fsum(map(counts.unigram_log2, sentences))
    assert unigram == pytest.approx(9 * math.log2(1 / 3))
    assert counts.perplexity(unigram) == pytest.approx(3)
    assert counts.bigram_log2(sentences[1]) == pytest.approx(math.log2(1 / 3 * 1 / 3 * 2 / 3 * 2 / 3))
    assert counts.unigram_log2(["z"]) == counts.bigram_log2(["z"]) == -math.inf
    assert np.isinf(counts.perplexity(-math.inf))


def luke():
    """The Gospel of Luke in the King James Version, lower case: its tokens, and its sentences."""
    words = ["bible", "-f", "luke1:1-24:53"]  # Debian's package bible-kjv, which scripts/test --long installs
    verses = subprocess.run(words, capture_output=True, text=True, check=True).stdout.lower()
    tokens = re.findall(r"\w+|[^\w\s]", " ".join(verse.partition(" ")[2] for verse in verses.splitlines()))
    ends = [place + 1 for place, token in enumerate(tokens) if token in ".?!"]
    return tokens, [tokens[start:end] for start, end in zip([0, *ends], ends, strict=False)]


@pytest.mark.long
def test_the_figures_of_a_lectures_notebook():
    """On the text that it uses. Its own bigram figure walks the first words of the text for every sentence."""
    tokens, sentences = luke()
    counts = RunningCounts.of(tokens)
    assert (len(tokens), len(counts.unigrams), len(sentences)) == (30435, 2380, 1127)
    unigrams, bigrams = [*map(counts.unigram_log2, sentences)], [*map(counts.bigram_log2, sentences)]
    assert unigrams[:3] == pytest.approx([-816.3593095422569, -319.4211210439422, -167.48856879652755], rel=1e-12)
    assert bigrams[:3] == pytest.approx([-411.04485522246625, -188.84814755229235, -84.15329127046918], rel=1e-12)
    logs = [math.fsum(unigrams), math.fsum(bigrams)]
    assert logs == pytest.approx([-240438.88379243278, -133023.41002396704], rel=1e-11)
    logs.append(math.fsum(counts.bigram_log2(tokens[: len(sentence)]) for sentence in sentences))
    perplexities = [238.86941372427478, 20.688225018903097, 27.234688561518162]
    assert list(map(counts.perplexity, logs)) == pytest.approx(perplexities, rel=1e-11)
