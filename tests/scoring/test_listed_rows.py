"""Rows of words and numbers in buffers have the losses of their lines, to the last digit, in both backends."""

import math
from array import array
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geval_py.reading.files import ListedRows
from geval_py.reading.wordprobs import are_probabilities
from geval_py.scoring.kernel import backends, listed_rows

WORD = st.one_of(
    st.text("abñ:\t", max_size=14),
    st.sampled_from(["", "the", "of", "four", "Zürich", "elevenbytes", "twelve bytes".replace(" ", "_")]),
)
NUMBER = st.one_of(st.floats(0, 1), st.sampled_from([0.0, -0.0, 1.0, 5e-324]), st.floats(-700, 0))
ROWS = st.lists(st.lists(st.tuples(WORD, NUMBER), min_size=1, max_size=80), min_size=1, max_size=6)


def listed(rows, *, wide=False, single=False, probabilities=True):
    """Lay rows out as Arrow does."""
    entries = [entry for row in rows for entry in row]
    data = [word.encode() if isinstance(word, str) else word for word, _ in entries]
    kind = "q" if wide else "i"
    return ListedRows(
        offsets=memoryview(array(kind, accumulate(map(len, rows), initial=0))),
        starts=memoryview(array(kind, accumulate(map(len, data), initial=0))),
        text=b"".join(data),
        values=memoryview(array("f" if single else "d", [value for _, value in entries])),
        probabilities=probabilities,
        lines=lambda _: b"",
    )


BACKENDS = [backends.row_losses, listed_rows.row_losses]


@pytest.mark.parametrize("row_losses", BACKENDS)
@settings(max_examples=30, deadline=None)
@given(rows=ROWS, wide=st.booleans(), single=st.booleans(), bits=st.sampled_from([1, 10]), answer=WORD)
def test_rows_have_the_digits_of_their_lines(row_losses, rows, wide, single, bits, answer):
    if single:
        rows = [[(word, array("f", [value])[0]) for word, value in row] for row in rows]
    unit = are_probabilities([value for _, value in rows[0]])
    rows = [row for row in rows if are_probabilities([value for _, value in row]) == unit]
    lines = "".join(" ".join(f"{word}:{value!r}" for word, value in row) + "\n" for row in rows).encode()
    expected = f"{answer}\n".encode() * len(rows)
    of_lines = backends.bounded_losses(lines, expected, bits, 7)
    found = row_losses(listed(rows, wide=wide, single=single, probabilities=unit), expected, bits, 7)
    assert found == (*of_lines, -1)


GOOD = [("a", 0.5), ("", 0.5)]
FAULTS = {
    "a space": [("a b", 1.0)], "a line end": [("a\n", 1.0)], "a carriage return": [("eightbytes\r", 1.0)],
    "not UTF-8": [(b"\xff", 1.0)], "a surrogate": [(b"abc\xed\xa0\x80", 1.0)], "NaN": [("a", math.nan), ("b", 1.0)],
    "infinite": [("a", math.inf)], "above one": [("a", 1.5)], "logarithms": [("a", -1.5)], "no mass": [("a", 0.0)],
    "empty": [],
}  # fmt: skip


@pytest.mark.parametrize("row_losses", BACKENDS)
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_the_first_row_that_is_no_line_is_found(row_losses, fault):
    rows = [[(w.encode() if isinstance(w, str) else w, p) for w, p in row] for row in (GOOD, GOOD, fault, GOOD)]
    assert row_losses(listed(rows), b"a\n" * 4, 4, 1)[3] == 2
    assert row_losses(listed(rows[:2]), b"a\n" * 2, 4, 1)[3] == -1


WRONG = {
    "offsets that fall": {"offsets": array("i", [0, 2, 1])},
    "an offset below 0": {"offsets": array("i", [0, 2, -1])},
    "an offset beyond the values": {"offsets": array("i", [0, 2, 1 << 30])},
    "fewer words": {"starts": array("i", [0, 1, 2, 3])},
    "fewer values": {"values": array("d", [0.5, 0.5, 1])},
    "a word beyond the text": {"starts": array("i", [0, 1, 2, 3, 9])},
    "a word that ends before it begins": {"starts": array("i", [0, 1, 2, 3, 2])},
}


@pytest.mark.parametrize("row_losses", BACKENDS)
@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_buffers_are_not_trusted(row_losses, wrong):
    rows = listed([[("a", 0.5), ("b", 0.5)]] * 2)
    rows = rows._replace(**{name: memoryview(values) for name, values in wrong.items()})
    assert row_losses(rows, b"a\nb\n", 4, 1)[3] == 1


@pytest.mark.parametrize("row_losses", BACKENDS)
def test_rows_and_answers_are_as_many(row_losses):
    with pytest.raises(ValueError, match=r"differ|shorter|longer"):
        row_losses(listed([GOOD]), b"a\nb\n", 4, 1)
