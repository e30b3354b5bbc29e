"""Tables of tokens, by both kernels."""

import pickle
from array import array

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples

from geval_py.explaining.tally import shape_classes
from geval_py.reading.features import SEPARATORS, SHAPE, split_tokens, word_shape
from geval_py.scoring.kernel import native
from geval_py.scoring.kernel import tokens as reference

LINE = (
    st.text("ab:\t ą", max_size=12)
    | st.text("ab", min_size=7, max_size=40)
    | st.text().map(lambda s: s.replace("\n", ""))
)
BLOCKS = st.lists(st.tuples(st.lists(LINE, max_size=5), st.sampled_from([SEPARATORS, "", "\t"])), max_size=5)


@settings(deadline=None, max_examples=examples(400))
@given(BLOCKS)
def test_both_backends_agree(blocks):
    ours, true = native.TokenTable(), reference.TokenTable()
    for lines, separators in blocks:
        text = "".join(f"{line}\n" for line in lines).encode()
        assert ours.number(text, separators.encode()) == true.number(text, separators.encode())
    numbers = array("q", reversed(range(len(true))))
    assert len(ours) == len(true)
    assert ours.names(numbers) == true.names(numbers)
    assert ours.sorted(numbers) == true.sorted(numbers)


@pytest.fixture(params=[native, reference])
def kernel(request):
    return request.param


@pytest.fixture
def table(kernel):
    return kernel.TokenTable()


@settings(deadline=None)
@given(st.lists(LINE, max_size=5))
def test_the_tokens_are_the_distinct_ones_of_each_line(lines):
    table = reference.TokenTable()
    counts, numbers = table.number("".join(f"{line}\n" for line in lines).encode(), SEPARATORS.encode())
    names = iter(table.names(numbers))
    assert [[next(names) for _ in range(count)] for count in counts] == [
        list(dict.fromkeys(split_tokens(line))) for line in lines
    ]


def test_many_tokens(table):
    tokens = [f"0.{n * n}" for n in range(3000)]
    _, numbers = table.number("".join(f"{token}\n" for token in tokens * 2).encode(), b"")
    assert numbers.tolist() == [*range(3000)] * 2
    assert table.names(table.sorted(numbers[:3000])) == sorted(tokens)


def test_numbers_of_another_size(table):
    table.number(b"a b\n", b" ")
    for method in (table.names, table.sorted):
        with pytest.raises(ValueError, match=r"^a number of a token has 8 bytes$"):
            method(array("i", [0, 1]))


@pytest.mark.parametrize("number", [-1, 2, 2**62])
def test_a_number_without_a_token(table, number):
    table.number(b"a b\n", b" ")
    for method in (table.names, table.sorted):
        with pytest.raises(IndexError, match=r"^no token has this number$"):
            method(array("q", [0, number]))


def test_a_table_can_be_sent(table):
    table.number("b ą b\n".encode(), b" ")
    copy = pickle.loads(pickle.dumps(table))
    assert copy.names(array("q", [0, 1])) == ["b", "ą"]
    assert copy.number(b"c\n", b"")[1].tolist() == [2]


# Frequent tokens, and sums by token


@settings(deadline=None, max_examples=examples(400))
@given(st.lists(LINE, max_size=8), st.sampled_from([SEPARATORS, "\t", ":a"]), st.integers(0, 3), st.booleans())
def test_frequent_tokens_of_both_backends(lines, separators, least, shapes):
    text = "".join(f"{line}\n" for line in lines).encode()
    classes = shape_classes(text)[: None if len(lines) % 2 else 100] if shapes else b""
    arguments = text, separators.encode(), classes, least
    assert native.frequent_tokens(*arguments) == reference.frequent_tokens(*arguments)


@settings(deadline=None)
@given(st.lists(LINE | st.text("aB9.(ą: \t\u00a0\U0001f600", max_size=9), max_size=8), st.integers(1, 3))
def test_frequent_tokens_and_shapes_are_those_of_the_lines(lines, least):
    text = "".join(f"{line}\n" for line in lines).encode()
    for classes, of_token in ((b"", str), (shape_classes(text), word_shape)):
        names, counts, places = reference.frequent_tokens(text, SEPARATORS.encode(), classes, least)
        found = iter(places)
        kept = [[(SHAPE if classes else "") + names[next(found)] for _ in range(count)] for count in counts]
        want = [list(dict.fromkeys(map(of_token, split_tokens(line)))) for line in lines]
        frequent = {token for of_line in want for token in of_line if sum(token in other for other in want) >= least}
        assert kept == [[token for token in of_line if token in frequent] for of_line in want]


@pytest.mark.parametrize("least", [200, 254, 255, 256, 300])
def test_tokens_on_more_lines_than_a_byte_can_count(kernel, least):
    text = b"often 0.1 often\n" * 300 + b"less\n" * 254
    assert kernel.frequent_tokens(text, b" ", b"", least)[0] == ["0.1", *["less"] * (least <= 254), "often"]


def test_many_rare_tokens(kernel):
    """More than there are places for their hashes: some rare ones are looked at twice, and left out all the same."""
    text = "".join(f"{n * n} {n * n + 1} {n % 2000} :\n" for n in range(10_000 if kernel is reference else 400_000))
    names, counts, places = kernel.frequent_tokens(text.encode(), SEPARATORS.encode(), b"", 5)
    assert names == sorted(names)
    assert set(map(str, range(2000))) <= set(names) <= set(map(str, range(2001)))
    assert max(counts) <= 3
    assert len(places) == sum(counts)


@pytest.mark.parametrize("columns", [0, 1, 4, 5, 6, 7, 8, 10, 11, 13])
def test_rows_added_up(kernel, columns):
    chance = np.random.default_rng(7)
    rows = chance.integers(-9, 9, (6, columns)).astype(float)
    places, numbers = chance.integers(0, 6, 50), chance.integers(0, 3, 50)
    sums = np.full((4, columns), 0.5)
    kernel.add_rows(sums, rows, places, numbers)
    want = np.array([0.5 + rows[places[numbers == number]].sum(axis=0) for number in range(4)])
    assert sums.tolist() == want.tolist()


def test_infinite_rows(kernel):
    sums, zero, both = np.zeros((1, 1)), np.zeros(2, np.int64), np.array([0, 1])
    kernel.add_rows(sums, np.array([[np.inf], [-np.inf]]), both, zero)
    assert np.isnan(sums).all()


@pytest.mark.parametrize(("place", "number"), [(-1, 0), (2, 0), (0, -1), (0, 3), (0, 2**62)])
def test_a_row_that_does_not_exist(kernel, place, number):
    sums = np.zeros((3, 1))
    with pytest.raises(IndexError, match=r"^no row has this number$"):
        kernel.add_rows(sums, np.ones((2, 1)), np.array([0, place]), np.array([0, number]))
    assert not sums.any()


@pytest.mark.parametrize(("columns", "numbers"), [(2, 1), (1, 2)])
def test_rows_that_do_not_fit(kernel, columns, numbers):
    with pytest.raises(ValueError, match=r"^the arrays do not fit together$"):
        kernel.add_rows(np.zeros((3, 1)), np.zeros((2, columns)), np.zeros(1, np.int64), np.zeros(numbers, np.int64))


@pytest.mark.parametrize(("wrong", "kind"), [(0, "f4"), (1, "f4"), (2, "i4"), (3, "i4")])
def test_rows_of_items_of_another_size(kernel, wrong, kind):
    arrays = [np.zeros((4, 2)), np.ones((2, 2)), np.zeros(2, np.int64), np.zeros(2, np.int64)]
    arrays[wrong] = arrays[wrong].astype(kind)
    with pytest.raises(ValueError, match=r"^the arrays do not fit together$"):
        kernel.add_rows(*arrays)
    assert not arrays[0].any()


@settings(deadline=None)
@given(st.text("ab\t\n\r", max_size=20).map(str.encode), st.integers(0, 4))
def test_a_column_of_lines(text, column):
    rows = [line.split(b"\t") for line in text.removesuffix(b"\n").split(b"\n")] if text else []
    want = b"".join((row[column] if column < len(row) else b"") + b"\n" for row in rows)
    assert native.take_column(text, column) == reference.take_column(text, column) == want
