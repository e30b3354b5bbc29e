"""Tables of tokens, by both kernels."""

from array import array
from collections import Counter
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples

from geval_py.reading.features import SEPARATORS
from geval_py.scoring.kernel import _native
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
    ours, true = _native.TokenTable(), reference.TokenTable()
    for lines, separators in blocks:
        text = "".join(f"{line}\n" for line in lines).encode()
        assert ours.number(text, separators.encode()) == true.number(text, separators.encode())
    numbers = array("q", reversed(range(len(true))))
    assert len(ours) == len(true)
    assert ours.names(numbers) == true.names(numbers)
    assert ours.sorted(numbers) == true.sorted(numbers)


@pytest.fixture(params=[_native, reference])
def kernel(request):
    return request.param


@pytest.fixture
def table(kernel):
    return kernel.TokenTable()


@settings(deadline=None, max_examples=examples(200))
@given(st.sampled_from([_native, reference]), BLOCKS, st.integers(1, 3), st.sampled_from([1, 3, 1 << 16]))
def test_tokens_that_were_seen_often_enough_are_numbered(kernel, blocks, least, places):
    """All of them; the native table numbers rarer ones only if they share a byte with others, the reference all."""
    seen, tables = bytearray(places), [kernel.TokenTable() for _ in range(3)]
    blocks = [("".join(f"{line}\n" for line in lines).encode(), separators.encode()) for lines, separators in blocks]
    lines_with = Counter()
    for block in blocks:
        counted = tables[0].number(*block, seen, 0)
        counts, numbers = tables[1].number(*block)
        assert kernel is reference or counted == (array("q", [0] * len(counts)), array("q"))
        lines_with.update(tables[1].names(numbers))
    for block in blocks:
        (counts, numbers), (kept_counts, kept) = tables[1].number(*block), tables[2].number(*block, seen, least)
        names, kept_names = iter(tables[1].names(numbers)), iter(tables[2].names(kept))
        for count, kept_count in zip(counts, kept_counts, strict=True):
            of_line = list(islice(names, count))
            kept_of_line = set(islice(kept_names, kept_count))
            assert {name for name in of_line if lines_with[name] >= least} <= kept_of_line <= set(of_line)


@pytest.mark.parametrize("number", [-1, 2, 2**62])
def test_a_number_without_a_token(table, number):
    table.number(b"a b\n", b" ")
    for method in (table.names, table.sorted):
        with pytest.raises(IndexError, match=r"^no token has this number$"):
            method(array("q", [0, number]))


@settings(deadline=None)
@given(st.text("ab\t\n\r", max_size=20).map(str.encode), st.integers(0, 4))
def test_a_column_of_lines(text, column):
    rows = [line.split(b"\t") for line in text.removesuffix(b"\n").split(b"\n")] if text else []
    want = b"".join((row[column] if column < len(row) else b"") + b"\n" for row in rows)
    assert _native.take_column(text, column) == reference.take_column(text, column) == want
