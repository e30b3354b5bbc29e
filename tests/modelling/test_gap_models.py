"""What fills a gap: windows are laid together, and the fast way gives what the formula gives."""

import time

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from profiles import examples
from raising import refused

from geval_py.errors import ModelError
from geval_py.modelling.corpus import gap_of, texts_of
from geval_py.modelling.gap_models import NgramGapModel
from geval_py.reading.items import Item

WINDOWS = {
    "an overlap of five words": (["a b c d e f", "b c d e f g"], ["a b c d e f g"]),
    "to the left": (["b c d e f g", "a b c d e f"], ["a b c d e f g"]),
    "inside": (["a b c d e f g", "b c d e f"], ["a b c d e f g"]),
    "the same": (["a b c d e", "a b c d e"], ["a b c d e"]),
    "four words are too few": (["a b c d e", "b c d e f"], ["a b c d e", "b c d e f"]),
    "an overlap that does not agree": (["x a b c d e f", "y a b c d e g"], ["x a b c d e f", "y a b c d e g"]),
    "one between two": (["a b c d e", "d e f g h", "a b c d e f g h"], ["a b c d e f g h"]),
    "short ones": (["a b", "a b"], ["a b", "a b"]),
}  # fmt: skip


def joined(windows, documents=None):
    items = []
    for number, window in enumerate(windows):
        answer, right = window[0], " ".join(window[1:])
        document = documents[number] if documents else "d"
        items.append(Item(number + 1, {"id": document, "left": "", "right": right}, answer))
    return [line.decode().split() for line in texts_of(items).splitlines()]


@pytest.mark.parametrize(("windows", "wanted"), WINDOWS.values(), ids=WINDOWS)
def test_windows_are_joined(windows, wanted):
    assert joined([window.split() for window in windows]) == [text.split() for text in wanted]


@settings(max_examples=examples(30), deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 3))
def test_windows_of_repetitive_documents_give_the_documents(random, documents):
    phrases = [["and", "it", "came", "to", "pass", "that"], ["thus", "saith", "the", "LORD", "of", "hosts"]]
    texts = []
    for document in range(documents):
        words = [f"{document}-{number}" for number in range(60)]
        for place in sorted(random.sample(range(0, 60, 12), 3), reverse=True):
            words[place:place] = random.choice(phrases)
        texts.append(words)
    windows = [(str(n), text[start : start + 24]) for n, text in enumerate(texts) for start in range(0, len(text), 8)]
    random.shuffle(windows)
    documents, windows = zip(*windows, strict=True)
    assert sorted(joined(windows, documents)) == sorted(texts)


@pytest.mark.long
def test_time_is_linear_in_the_windows():
    """Twice as many windows of one document take some twice the time, in the order of the text or in another."""

    def seconds(count, order):
        words = np.random.default_rng(5).zipf(1.3, 8 * count + 24).astype(str)
        windows = [words[8 * number : 8 * number + 24].tolist() for number in range(count)]
        windows = windows[::order]
        start = time.process_time()
        assert len(joined(windows)) < count / 100
        return time.process_time() - start

    for order in (1, -1):
        seconds(500, order)
        assert seconds(4000, order) < 4 * 2.5 * seconds(1000, order)


COLUMNS = {
    "by their names": ({"Id": "d", "RightContext": "c", "LeftContext": "a\\nb"}, ("a\nb", "c", "d")),
    "the last two": ({"1": "d", "2": "a", "3": "b"}, ("a", "b", "d")),
    "two": ({"1": "a", "2": "b"}, ("a", "b", "")), "one": ({"1": "a b\\n"}, ("a b\n", "", "")),
    "left alone": ({"Id": "d", "left": "a"}, ("a", "", "d")), "none": ({}, ("", "", "")),
}  # fmt: skip


@pytest.mark.parametrize(("columns", "wanted"), COLUMNS.values(), ids=COLUMNS)
def test_contexts(columns, wanted):
    assert gap_of(Item(1, columns, None)) == wanted


def test_nothing_to_train_on():
    with refused("There is nothing to train on: train has no answers (expected.tsv)", ModelError):
        texts_of([Item(1, {"1": "a"}, None)])
    with refused("There is nothing to train on: train has no items", ModelError):
        texts_of([])


def conditionals(model, context):
    """Return P(w | context) of all words, without <s> in front of the context."""
    ids = [model.ids.get(word, 0) for word in context[-3:]]
    number = len(model.words)
    tokens = np.array([[*ids, word] for word in range(number)], np.int32)
    depths = np.tile(np.arange(len(ids) + 1, dtype=np.int32), number)
    return 10 ** model.token_scores(tokens.ravel(), depths)[0][depths == len(ids)]


def by_formula(model, left, right):
    """P(w | left) P(w | right) / P(w) over the whole vocabulary, normalised."""
    scores = conditionals(model.sides[0], left)
    if len(model.sides) > 1:
        shares = np.maximum(model.counts, 1.0)
        shares[0] = max(1, (model.counts == 1).sum())
        scores = scores * conditionals(model.sides[1], right[::-1]) / (shares / model.counts.sum())
    scores[[1, 2]] = 0
    return scores / (scores.sum() or 1)  # where only the sentence's end can follow, nothing is left to share


def trained(texts, sides, top):
    model = NgramGapModel(top, sides=sides)
    model.fit(Item(n, {"left": b" ".join(text[1:]).decode()}, text[0].decode()) for n, text in enumerate(texts, 1))
    return model


def answer(model, left, right):
    return model.words(*(b" ".join(words).decode() for words in (left, right)))


WORDS = st.sampled_from([b"a", b"b", b"c", b"d", b"e"])
TEXTS = st.lists(st.lists(WORDS, min_size=1, max_size=9), min_size=1, max_size=6)
CONTEXT = st.lists(st.one_of(WORDS, st.just(b"unseen")), max_size=4)


@settings(max_examples=examples(150), deadline=None)
@given(TEXTS, CONTEXT, CONTEXT, st.sampled_from([1, 2]), st.sampled_from([0, 1, 2, 3, 300]))
@example([[b"a"], [b"a"], [b"a"], [b"b", b"b", b"c", b"a"]], [b"a"], [], 1, 0)
def test_answers_are_those_of_the_formula(texts, left, right, sides, top):
    """A word that no n-gram of the item names scores scale x base: nothing of the vocabulary need be touched."""
    model = trained(texts, sides, top)
    wanted = by_formula(model, left, right)
    shares = answer(model, left, right)
    probabilities = list(shares.values())
    assert probabilities == pytest.approx(wanted[[model.sides[0].ids[word.encode()] for word in shares]], rel=1e-9)
    assert not {"<unk>", "<s>", "</s>"} & set(shares)
    best = np.sort(wanted[3:])[::-1][: top or None]
    assert probabilities == pytest.approx(best[best > 0], rel=1e-9)
    assert probabilities == sorted(probabilities, reverse=True)


def test_equal_words_come_in_the_order_of_train():
    assert list(answer(trained([[b"c"], [b"b"], [b"a"]], 2, 2), [], [])) == ["c", "b"]
