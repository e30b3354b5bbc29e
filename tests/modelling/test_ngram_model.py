"""The public class: next words, surprisals, and models from texts and files."""

import gzip
import math
import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kenlm_golden import TEXTS
from profiles import examples
from raising import refused
from test_kenlm import estimated

from geval_py import parse_line, predict
from geval_py.errors import ModelError, UsageError
from geval_py.modelling.arpa import read_arpa, write_arpa
from geval_py.modelling.corpus import corpus_of
from geval_py.modelling.estimation import ADD_ONE, KINDS, MAXIMUM_LIKELIHOOD, plain_model
from geval_py.modelling.ngram_model import NgramModel
from geval_py.reading.items import Item

WORD = st.sampled_from("abcdefg")
SENTENCES = st.lists(st.lists(WORD, max_size=7), min_size=1, max_size=8)
CONTEXT = st.lists(WORD | st.just("unseen"), max_size=4)
OPTIONS = st.sampled_from(
    [{}, {"interpolate_unigrams": False}, {"prune": (0, 1)}, {"prune": (0, 0, 2)}, {"vocabulary": ["a", "b", "c"]}]
)


def trained(sentences, order, **how):
    how |= {"prune": how.get("prune", ())[:order]}
    return NgramModel.train(sentences, order, discount_fallback=True, **how)


def by_scores(model, context, bos=True):
    """Return the distribution of the next word, from the surprisal of each word behind the context."""
    bits = {word: model.surprisals([*context, word], bos)[-1] for word in model.vocabulary}
    bits["</s>"] = model.surprisals(context, bos, eos=True)[-1]
    return {word: 2**-surprisal for word, surprisal in bits.items()}


@settings(max_examples=examples(100), deadline=None)
@given(SENTENCES, CONTEXT, st.integers(1, 4), OPTIONS, st.booleans())
def test_next_words_are_what_scores_say(sentences, context, order, how, bos):
    model = trained(sentences, order, **how)
    found = model.next_words(context, None, bos)
    assert found == pytest.approx(by_scores(model, context, bos), rel=1e-9)
    assert sorted(found) == sorted(model.vocabulary)
    assert math.fsum(found.values()) == pytest.approx(1, abs=1e-12)
    assert list(found.values()) == sorted(found.values(), reverse=True)


@settings(max_examples=examples(100), deadline=None)
@given(SENTENCES, CONTEXT, st.integers(1, 4), OPTIONS, st.integers(0, 12))
def test_the_first_words_are_the_first_of_all(sentences, context, order, how, k):
    model = trained(sentences, order, **how)
    every = list(model.next_words(context, None).items())
    assert list(model.next_words(context, k).items()) == every[:k]


def test_an_ngram_without_the_shorter_ones_in_it(tmp_path):
    """As some tools prune: `b c` is not there, but `a b c` is."""
    (tmp_path / "m.arpa").write_text(
        "\\data\\\nngram 1=6\nngram 2=2\nngram 3=2\n\n\\1-grams:\n-1\t<unk>\n-99\t<s>\t-0.5\n-0.6\t</s>\n"
        "-0.6\ta\t-0.25\n-0.7\tb\t-0.125\n-0.8\tc\n\n\\2-grams:\n-0.2\ta b\t-0.1\n-0.9\tb a\t0\n\n"
        "\\3-grams:\n-0.3\ta b c\n-0.4\ta b a\n\n\\end\\\n"
    )
    model = NgramModel.load(tmp_path / "m.arpa")
    logs = {"c": -0.3, "a": -0.4, "</s>": -0.6 - 0.125 - 0.1, "b": -0.7 - 0.125 - 0.1, "<unk>": -1 - 0.125 - 0.1}
    found = model.next_words("a b", None, bos=False)
    assert found == pytest.approx({word: 10**log for word, log in logs.items()})
    assert model.next_words("a b", 2, bos=False) == pytest.approx({"c": 10**-0.3, "a": 10**-0.4})


def test_a_text_may_have_several_forms(tmp_path):
    lines = ["a b a", "", "b c", "a b"]
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in lines))
    models = [trained(texts, 3) for texts in (lines, iter(lines), map(str.split, lines), tmp_path / "text")]
    with open(tmp_path / "text") as file:
        models.append(trained(file, 3))
    models.append(trained(str(tmp_path / "text"), 3))
    answers = [(model.next_words("a", None), model.perplexity(lines)) for model in models]
    assert answers == [answers[0]] * 6
    model = models[0]
    assert model.perplexity(tmp_path / "text") == model.perplexity(map(str.split, lines)) == answers[0][1]
    assert model.score("a b") == model.score(["a", "b"]) == model.score("a\nb\n")
    assert model.score_texts(lines).logs.tolist() == pytest.approx(list(map(model.score, lines)), rel=1e-15)
    assert (model.order, model.vocabulary) == (3, ["<unk>", "</s>", "a", "b", "c"])


@given(SENTENCES, CONTEXT, st.integers(1, 4), OPTIONS)
def test_a_model_without_marks(sentences, context, order, how):
    """Probabilities sum to 1 without </s>, and no n-gram reaches beyond a line."""
    model = trained(sentences, order, sentence_marks=False, **how)
    shares = model.next_words(context, None)
    assert shares.pop("</s>") == 0
    assert shares == pytest.approx({word: 2 ** -model.surprisals([*context, word])[-1] for word in shares}, rel=1e-9)
    assert math.fsum(shares.values()) == pytest.approx(1)
    ngrams = set()
    for length, level in enumerate(model.model.levels[1:], 2):
        columns = model.model.words_of(length, np.arange(len(level), dtype=np.int32))
        ngrams.update(map(" ".join, zip(*(model.model.texts[column] for column in columns), strict=True)))
    lines = [f" {' '.join(words)} " for words in sentences]
    assert all(any(f" {ngram} " in line for line in lines) for ngram in ngrams)
    with pytest.raises(ModelError, match=r"^the model has no </s> and <s>\n"):
        model.score(context)


@settings(max_examples=examples(50), deadline=None)
@given(SENTENCES, SENTENCES, st.booleans(), st.booleans())
def test_surprisals_sum_to_the_score(sentences, texts, bos, eos):
    model = trained(sentences, 3)
    of_texts = list(model.text_surprisals(texts, bos, eos))
    assert of_texts == [model.surprisals(words, bos, eos) for words in texts]
    assert list(map(len, of_texts)) == [len(words) + eos for words in texts]
    for words, found in zip(texts, of_texts, strict=True):
        assert -math.fsum(found) * math.log10(2) == pytest.approx(model.score(words, bos, eos), rel=1e-12)
    assert [model.score(words, bos, eos) for words in texts] == model.score_texts(texts, bos, eos).logs.tolist()


def test_a_used_model_can_be_pickled():
    model = trained(["a b c", "a b"], 3)
    said = model.score("a b d e"), model.next_words("a"), model.vocabulary
    copy = pickle.loads(pickle.dumps(model))
    assert (copy.score("a b d e"), copy.next_words("a"), copy.vocabulary) == said


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_a_saved_model_is_the_same(tmp_path, ending):
    model = NgramModel(estimated(TEXTS["toy"], TEXTS["toy"]["runs"]["o2-fallback"]).model)
    path = tmp_path / f"m.arpa{ending}"
    model.save(path)
    data = path.read_bytes()
    assert (gzip.decompress(data) if ending else data).startswith(b"\\data\\\n")
    assert NgramModel.load(str(path)).next_words("", None) == pytest.approx(model.next_words("", None), rel=1e-6)
    NgramModel.load(path).save(tmp_path / "again.arpa")
    assert NgramModel.load(tmp_path / "again.arpa").perplexity(["a b"]) == NgramModel.load(path).perplexity(["a b"])
    with pytest.raises(UsageError):
        model.save(tmp_path / "nowhere" / "m.arpa")
    assert repr(NgramModel.load(path)) == f"<NgramModel of order 2 from {path}>"


@pytest.mark.parametrize(("call", "message"), [
    (lambda m: m.next_words("a", -1), "k is a number of words, or None for all, not -1"),
    (lambda m: m.score(["a b"]), "`a b` is no word: it is empty or has white space in it"),
    (lambda m: m.score(["a", ""]), "`` is no word: it is empty or has white space in it"),
    (lambda m: m.score(None), "a sentence is a string or a list of strings, not NoneType"),
    (lambda m: m.perplexity(5), "texts are sentences, or the path of a file, not int"),
    (lambda m: m.surprisals([1, 2]), "a sentence is a string or a list of strings, and has no int"),
    (lambda m: m.perplexity([]), "there is no text: give its sentences, or the path of a file"),
    (lambda m: NgramModel.train([], 2), "there is no text: give its sentences, or the path of a file"),
    (lambda m: NgramModel.train(["a"], counts="plus-one"), "counts are add-one or maximum-likelihood, not plus-one"),
    (lambda m: NgramModel.train(["a"], counts="add-one", prune=(0, 1)),
     "plain counts take no options of Kneser-Ney: leave out counts, or these"),
    (lambda m: NgramModel.train(["a"], 0), "the order is a whole number from 1 to 100, not 0"),
])  # fmt: skip
def test_a_call_is_wrong(call, message):
    with refused(message):
        call(trained(["a b"], 2))


def test_words_that_are_not_utf8(tmp_path):
    (tmp_path / "text").write_bytes(b"caf\xe9 a\n")
    model = trained(tmp_path / "text", 2)
    assert "caf\udce9" in model.next_words("", None)
    assert model.score("caf\udce9 a") > model.score("cafe a")
    assert model.score("\ud83d") == model.score("z")


def test_a_gap_by_its_left_context(tmp_path):
    """The text does not end where a word follows, and marks are no words."""
    model = trained([["a", "b"], ["a", "c"], ["a", "b"], ["b"]], 2)
    model.save(tmp_path / "m.arpa")
    (text,) = predict(f"arpa:{tmp_path / 'm.arpa'}", [Item(1, {"left": "a", "right": "c"}, None)], words=2)
    line, shares = parse_line(text), model.next_words(["a"])
    assert line.words == ("b", "c", "")
    assert line.values[:2] == pytest.approx([shares[word] / (1 - shares["</s>"]) for word in "bc"], rel=1e-5)


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
