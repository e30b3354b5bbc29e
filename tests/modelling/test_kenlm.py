"""Models, and scores of texts, are those of KenLM at 4cb443e: lmplz -o …, query and query -n."""

import subprocess
import sys

import numpy as np
import pytest
from kenlm_golden import ERRORS, MODELS, TEXTS, estimation_of

from geval_py.errors import ModelError
from geval_py.modelling import corpus
from geval_py.modelling.arpa import write_arpa
from geval_py.modelling.corpus import lines_of, split_as_lmplz, with_marks
from geval_py.modelling.estimation import estimate
from geval_py.modelling.ngram_model import NgramModel

CLOSE = {"abs": 1e-6, "rel": 0}


def corpus_of(text):
    return corpus.corpus_of([("train.txt", 1, text["train"].encode())], skip_symbols=True)


MADE = {}


def estimated(text, run):
    if id(run) not in MADE:  # once for all tests: an error is not kept
        MADE[id(run)] = estimate(corpus_of(text), estimation_of(text, run))
    return MADE[id(run)]


def rows_of(model):
    rows = {}
    for order, level in enumerate(model.levels, 1):
        columns = [model.texts[column] for column in model.words_of(order, np.arange(len(level), dtype=np.int32))]
        ngrams = map(" ".join, zip(*columns, strict=True))
        values = zip(level.log_probabilities.tolist(), level.log_backoffs.tolist(), strict=True)
        rows.update(zip(ngrams, values, strict=True))
    return rows


@pytest.mark.parametrize(("text", "run"), MODELS)
def test_lmplz_counts_and_discounts(text, run):
    found = estimated(text, run)
    words = [word for line in lines_of(text["train"].encode()) for word in split_as_lmplz(line)]
    assert (len(words), found.counts[0]) == (run["tokens"], run["types"])
    assert list(found.counts) == run["ngrams"]
    assert [len(level) for level in found.model.levels] == run["ngrams_kept"]
    assert [order for order, of in enumerate(found.discounts, 1) if of.fell_back] == run["fallback_orders"]
    for of, wanted in zip(found.discounts, run["discounts"], strict=True):
        assert of.amounts == pytest.approx(wanted, rel=2e-5)  # lmplz shows six digits


@pytest.mark.parametrize(("text", "run"), MODELS)
def test_lmplz_probabilities_and_backoffs(text, run):
    rows = rows_of(estimated(text, run).model)
    wanted = run.get("arpa") or run["arpa_sample"]
    assert [rows[ngram][0] for ngram, _, _ in wanted] == pytest.approx([log for _, log, _ in wanted], **CLOSE)
    backoffs = {ngram: backoff for ngram, _, backoff in wanted if backoff is not None}
    assert [rows[ngram][1] for ngram in backoffs] == pytest.approx([*backoffs.values()], **CLOSE)


@pytest.mark.parametrize(("text", "run"), ERRORS)
def test_lmplz_refuses(text, run):
    with pytest.raises(ModelError) as caught:
        estimated(text, run)
    few, fault = "`s.n[j] == 0'" in run["error"][0], str(caught.value).split("\n")[0]
    start = "Kneser-Ney has no discounts for this text: "
    assert fault.startswith(start + ("no " if few else "the discount of "))


@pytest.mark.parametrize("marks", [True, False], ids=["query", "query -n"])
@pytest.mark.parametrize(("text", "run"), [param for param in MODELS if "query" in param.values[1]])
def test_query_of_a_text(text, run, marks):
    lines = text["test"].removesuffix("\n").split("\n")
    score = NgramModel(estimated(text, run).model).score_texts(lines, bos=marks, eos=marks)
    wanted = run["query" if marks else "query_no_sentence_marks"]
    assert (sum(score.oov), sum(score.tokens)) == (wanted["oov"], wanted["tokens"])
    found = [score.perplexity_including_oov, score.perplexity_excluding_oov]
    assert found == pytest.approx([wanted["perplexity_including_oov"], wanted["perplexity_excluding_oov"]], rel=2e-6)
    if marks:
        assert score.oov.tolist() == [oov for _, oov in run["sentences"]]
        assert score.logs.tolist() == pytest.approx([log for log, _ in run["sentences"]], abs=2e-4, rel=0)


@pytest.mark.parametrize(("text", "run"), [param for param in MODELS if "words" in param.values[1]])
def test_query_of_each_word(text, run):
    model = estimated(text, run).model
    sentences = [*map(bytes.split, lines_of(text["test"].encode()))]
    ids = np.array([model.ids.get(word, 0) for sentence in sentences for word in sentence], np.int32)
    lengths = np.array(list(map(len, sentences)))
    depths = np.concatenate([np.arange(length + 2) for length in lengths])
    logs, used = model.token_scores(with_marks(ids, lengths), depths)
    wanted = [word for sentence in run["words"] for word in sentence]
    assert used[depths > 0].tolist() == [length for length, _ in wanted]
    assert logs[depths > 0].tolist() == pytest.approx([log for _, log in wanted], **CLOSE)


def test_the_mistake_of_lmplz_changes_the_score():
    """Known as kpu/kenlm issues 405 and 427; perplexity 13.29 with it, 13.33 without."""
    text = TEXTS["last"]
    run = text["runs"]["o2"]
    how = estimation_of(text, run)
    lines = text["test"].removesuffix("\n").split("\n")
    scores = [
        NgramModel(estimate(corpus_of(text), kind).model).perplexity(lines)
        for kind in (how, type(how)(order=2, exact_discounts=True))
    ]
    assert scores == pytest.approx([13.29, 13.33], abs=0.005)


CODE = """
import sys, kenlm
model = kenlm.Model(sys.argv[1])
for line in sys.stdin.read().split("\\n")[:-1]:
    print(model.score(line))
"""


@pytest.mark.long
@pytest.mark.parametrize(("text", "run"), [param for param in MODELS if "query" in param.values[1]])
def test_kenlm_reads_what_is_written(text, run, tmp_path):
    """The package kenlm (pip install kenlm, built from source; scripts/test --long does) says the same."""
    path = tmp_path / "model.arpa"
    with path.open("wb") as file:
        write_arpa(estimated(text, run).model, file)
    test = text["test"].removesuffix("\n").replace("\0", "") + "\n"  # its words end at a NUL, unlike query's
    words = [sys.executable, "-I", "-c", CODE, str(path)]
    done = subprocess.run(words, input=test, capture_output=True, text=True, check=True)
    score = NgramModel.load(path).score_texts(test.removesuffix("\n").split("\n"))
    assert list(map(float, done.stdout.split())) == pytest.approx(score.logs.tolist(), abs=2e-4, rel=0)
