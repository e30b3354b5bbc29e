"""What fills a gap: windows are laid together, and the fast way gives what the formula gives."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from profiles import examples

from geval_py.errors import ModelError
from geval_py.modelling.corpus import GapContext, gap_of, join_windows, texts_of
from geval_py.modelling.gap_models import GapModel, learn
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


@pytest.mark.parametrize(("windows", "wanted"), WINDOWS.values(), ids=WINDOWS)
def test_join_windows(windows, wanted):
    assert join_windows([window.split() for window in windows]) == [text.split() for text in wanted]


@settings(max_examples=examples(50), deadline=None)
@given(st.permutations([0, 4, 5, 11, 17, 20]))
def test_windows_of_one_text_give_the_text(starts):
    """Windows that overlap by five words or more are laid back together, in whatever order they come."""
    text = [f"w{number}" for number in range(32)]
    assert join_windows([text[start : start + 12] for start in starts]) == [text]


COLUMNS = {
    "by their names": ({"Id": "d", "RightContext": "c", "LeftContext": "a\\nb"}, GapContext([b"a", b"b"], [b"c"],
     "d")),
    "the last two": ({"1": "d", "2": "a", "3": "b"}, GapContext([b"a"], [b"b"], "d")),
    "two": ({"1": "a", "2": "b"}, GapContext([b"a"], [b"b"], "")),
    "one": ({"1": "a b\\n"}, GapContext([b"a", b"b"], [], "")),
    "left alone": ({"Id": "d", "left": "a"}, GapContext([b"a"], [], "d")),
    "none": ({}, GapContext([], [], "")),
}  # fmt: skip


@pytest.mark.parametrize(("columns", "wanted"), COLUMNS.values(), ids=COLUMNS)
def test_contexts(columns, wanted):
    assert gap_of(Item(1, columns, None)) == wanted


def test_only_windows_of_one_document_are_join_windows():
    items = [Item(n, {"id": doc, "left": "a b c", "right": "d e f"}, "x") for n, doc in enumerate("112")]
    assert texts_of(items) == [b"a b c x d e f".split()] * 2


def test_nothing_to_train_on():
    with pytest.raises(ModelError) as caught:
        texts_of([Item(1, {"1": "a"}, None)])
    assert str(caught.value) == "There is nothing to train on: train has no answers (expected.tsv)"
    with pytest.raises(ModelError) as caught:
        texts_of([])
    assert str(caught.value) == "There is nothing to train on: train has no items"


def conditionals(model, context):
    """Return P(w | context) of all words, without <s> in front of the context."""
    ids = [model.ids.get(word, 0) for word in context[-3:]]
    number = len(model.words)
    tokens = np.array([[*ids, word] for word in range(number)], np.int32)
    depths = np.tile(np.arange(len(ids) + 1, dtype=np.int32), number)
    return 10 ** model.token_scores(tokens.ravel(), depths)[0][depths == len(ids)]


def by_formula(learnt, gap):
    """P(w | left) P(w | right) / P(w) over the whole vocabulary, normalised."""
    scores = conditionals(learnt.sides[0], gap.left)
    if len(learnt.sides) > 1:
        shares = np.maximum(learnt.counts, 1.0)
        shares[0] = max(1, (learnt.counts == 1).sum())
        scores = scores * conditionals(learnt.sides[1], gap.right[::-1]) / (shares / learnt.counts.sum())
    scores[[1, 2]] = 0
    return scores / (scores.sum() or 1)  # where only the sentence's end can follow, nothing is left to share


WORDS = st.sampled_from([b"a", b"b", b"c", b"d", b"e"])
TEXTS = st.lists(st.lists(WORDS, min_size=1, max_size=9), min_size=1, max_size=6)
CONTEXT = st.lists(st.one_of(WORDS, st.just(b"unseen")), max_size=4)


@settings(max_examples=examples(150), deadline=None)
@given(TEXTS, CONTEXT, CONTEXT, st.sampled_from([1, 2]), st.sampled_from([0, 1, 2, 3, 300]))
@example([[b"a"], [b"a"], [b"a"], [b"b", b"b", b"c", b"a"]], [b"a"], [], 1, 0)
def test_answers_are_those_of_the_formula(texts, left, right, sides, top):
    """A word that no n-gram of the item names scores scale x base: nothing of the vocabulary need be touched."""
    learnt = learn(texts, sides)
    gap = GapContext(left, right, "")
    wanted = by_formula(learnt, gap)
    words, probabilities = GapModel(learnt, top).answer(gap)
    assert probabilities == pytest.approx(wanted[words], rel=1e-9)
    assert not {0, 1, 2} & set(words.tolist())
    best = np.sort(wanted[3:])[::-1][: top or None]
    assert probabilities == pytest.approx(best[best > 0], rel=1e-9)
    assert list(probabilities) == sorted(probabilities, reverse=True)


def test_equal_words_come_in_the_order_of_train():
    learnt = learn([[b"c"], [b"b"], [b"a"]], 2)
    words, _ = GapModel(learnt, 2).answer(GapContext([], [], ""))
    assert [learnt.sides[0].words[word] for word in words] == [b"c", b"b"]


def test_an_item_gets_the_same_answer_in_any_company():
    learnt = learn([b"a b c d a b d c".split(), b"c b a".split()], 2)
    gaps = [GapContext([b"a"], [b"c"], ""), GapContext([b"x"], [], ""), GapContext([b"b", b"c"], [b"a"], "")]
    model = GapModel(learnt, 0)
    together = [model.answer(gap) for gap in gaps]
    alone = [GapModel(learnt, 0).answer(gap) for gap in gaps]
    assert [words.tolist() for words, _ in together] == [words.tolist() for words, _ in alone]
    assert [shares.tolist() for _, shares in together] == [shares.tolist() for _, shares in alone]


def test_disjoint_windows_are_not_joined_by_chance():
    """Texts repeat phrases: of many disjoint windows, a few agree in five words at their ends."""
    words = iter(f"w{number}" for number in range(10_000))
    windows = [[next(words) for _ in range(11)] for _ in range(60)]
    windows[7][-5:] = windows[30][:5] = ["and", "it", "came", "to", "pass"]
    items = [
        Item(n, {"id": "d", "left": " ".join(w[:5]), "right": " ".join(w[6:])}, w[5]) for n, w in enumerate(windows)
    ]
    assert len(texts_of(items)) == 60
