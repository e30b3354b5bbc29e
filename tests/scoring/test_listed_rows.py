"""Rows of words and numbers in buffers have the losses of their lines, to the last digit, in both backends."""

import math
from array import array
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geval_py.reading.listed import ListedRows
from geval_py.reading.wordprobs import are_probabilities
from geval_py.scoring.kernel import backends, listed_rows

WORD = st.one_of(
    st.text("abñ:\t", max_size=14),
    st.sampled_from(["", "the", "of", "four", "Zürich", "elevenbytes", "twelve bytes".replace(" ", "_")]),
)
NUMBER = st.one_of(st.floats(0, 1), st.sampled_from([0.0, -0.0, 1.0, 5e-324]), st.floats(-700, 0))
ROWS = st.lists(st.lists(st.tuples(WORD, NUMBER), min_size=1, max_size=80), min_size=1, max_size=6)


def listed(rows, *, coded, wide=False, single=False, probabilities=True):
    """Lay rows out as Arrow does."""
    entries = [entry for row in rows for entry in row]
    words = [word for word, _ in entries]
    texts = sorted(set(words)) if coded else words
    data = [word.encode() if isinstance(word, str) else word for word in texts]
    kind = "q" if wide else "i"
    offsets, starts = [0], [0]
    for row in rows:
        offsets.append(offsets[-1] + len(row))
    for text in data:
        starts.append(starts[-1] + len(text))
    return ListedRows(
        offsets=memoryview(array(kind, offsets)),
        starts=memoryview(array(kind, starts)),
        text=b"".join(data),
        codes=memoryview(array(kind, map(texts.index, words))) if coded else None,
        values=memoryview(array("f" if single else "d", [value for _, value in entries])),
        probabilities=probabilities,
    )


BACKENDS = [backends.row_losses, listed_rows.row_losses]


@pytest.mark.parametrize("row_losses", BACKENDS)
@pytest.mark.parametrize("coded", [True, False])
@settings(max_examples=30, deadline=None)
@given(rows=ROWS, wide=st.booleans(), single=st.booleans(), bits=st.sampled_from([1, 10]), answer=WORD)
def test_rows_have_the_digits_of_their_lines(row_losses, coded, rows, wide, single, bits, answer):
    if single:
        rows = [[(word, array("f", [value])[0]) for word, value in row] for row in rows]
    unit = are_probabilities([value for _, value in rows[0]])
    rows = [row for row in rows if are_probabilities([value for _, value in row]) == unit]
    lines = "".join(" ".join(f"{word}:{value!r}" for word, value in row) + "\n" for row in rows).encode()
    expected = f"{answer}\n".encode() * len(rows)
    wanted, bound = backends.bounded_losses(lines, expected, bits, 7)
    found = row_losses(listed(rows, coded=coded, wide=wide, single=single, probabilities=unit), expected, bits, 7)
    assert found == (wanted, bound, -1)


GOOD = [("a", 0.5), ("", 0.5)]
FAULTS = {
    "a space": [("a b", 1.0)],
    "a line end": [("a\n", 1.0)],
    "a carriage return": [("eightbytes\r", 1.0)],
    "not UTF-8": [(b"\xff", 1.0)],
    "a surrogate": [(b"abc\xed\xa0\x80", 1.0)],
    "NaN": [("a", math.nan), ("b", 1.0)],
    "infinite": [("a", math.inf)],
    "above one": [("a", 1.5)],
    "logarithms": [("a", -1.5)],
    "no mass": [("a", 0.0)],
    "empty": [],
}


@pytest.mark.parametrize("row_losses", BACKENDS)
@pytest.mark.parametrize("coded", [True, False])
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_the_first_row_that_is_no_line_is_found(row_losses, coded, fault):
    rows = [[(w.encode() if isinstance(w, str) else w, p) for w, p in row] for row in (GOOD, GOOD, fault, GOOD)]
    assert row_losses(listed(rows, coded=coded), b"a\n" * 4, 4, 1)[2] == 2
    assert row_losses(listed(rows[:2], coded=coded), b"a\n" * 2, 4, 1)[2] == -1


WRONG = {
    "offsets that fall": {"offsets": array("i", [0, 2, 1])},
    "an offset below 0": {"offsets": array("i", [0, 2, -1])},
    "an offset beyond the values": {"offsets": array("i", [0, 2, 1 << 30])},
    "a code beyond the words": {"codes": array("i", [0, 1, 0, 2])},
    "a code below 0": {"codes": array("i", [0, 1, 0, -1])},
    "fewer codes": {"codes": array("i", [0, 1, 0])},
    "fewer values": {"values": array("d", [0.5, 0.5, 1])},
    "a word beyond the text": {"starts": array("i", [0, 1, 9]), "codes": array("i", [0, 0, 0, 1])},
}


@pytest.mark.parametrize("row_losses", BACKENDS)
@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_buffers_are_not_trusted(row_losses, wrong):
    rows = listed([[("a", 0.5), ("b", 0.5)]] * 2, coded=True)
    rows = rows._replace(**{name: memoryview(values) for name, values in wrong.items()})
    assert row_losses(rows, b"a\nb\n", 4, 1)[2] == 1


@pytest.mark.parametrize("row_losses", BACKENDS)
@pytest.mark.parametrize("wrong", ["a b", b"\xff"])
def test_a_dictionary_with_more_words_than_entries(row_losses, wrong):
    """Such a one is not prepared; a word that no line can hold does harm only where it is referred to."""
    others = [(f"{'ä' * (n % 9)}{n}", 0.0) for n in range(500)]
    whole = listed(
        [[*((word.encode(), p) for word, p in others), (wrong.encode() if isinstance(wrong, str) else wrong, 0)]],
        coded=True,
    )
    place = {bytes(whole.text[a:b]): n for n, (a, b) in enumerate(pairwise(whole.starts))}
    codes = [
        place["ää2".encode()],
        place[b"0"],
        place["ää2".encode()],
        place[wrong.encode() if isinstance(wrong, str) else wrong],
    ]
    rows = whole._replace(
        offsets=memoryview(array("i", [0, 2, 4])),
        codes=memoryview(array("i", codes)),
        values=memoryview(array("d", [0.25, 0.75, 0.5, 0.5])),
    )
    losses, _, fault = row_losses(rows, "ää2\n0\n".encode(), 10, 1)
    wanted = backends.bounded_losses("ää2:0.25 0:0.75\n".encode(), "ää2\n".encode(), 10, 1)[0]
    assert (losses[0], fault) == (wanted[0], 1)


@pytest.mark.parametrize("row_losses", BACKENDS)
def test_rows_and_answers_are_as_many(row_losses):
    with pytest.raises(ValueError, match=r"differ|shorter|longer"):
        row_losses(listed([GOOD], coded=True), b"a\nb\n", 4, 1)
