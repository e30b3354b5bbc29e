"""Writing: a line from a distribution, and a file from its lines, whole or not at all."""

import bz2
import gzip
import lzma
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from raising import refused

from geval_py.errors import UsageError
from geval_py.reading.compression import zstd_module
from geval_py.reading.outputs import read_output
from geval_py.reading.wordprobs import parse_line
from geval_py.scoring.writing import format_line, write_output

PROPERTY = settings(deadline=None, derandomize=True)
zstd = zstd_module()

WRITTEN = {
    "words and the rest": (({"the": 0.5, "a": 0.25},), "the:0.5 a:0.25 :0.25"),
    "pairs": (([("the", 0.5), ("a", 0.25)],), "the:0.5 a:0.25 :0.25"),
    "an iterator": ((iter([("the", 1.0)]),), "the:1"),
    "a word twice": (([("the", 0.5), ("the", 0.25)],), "the:0.5 the:0.25 :0.25"),
    "nothing is left": (({"the": 0.75, "a": 0.25},), "the:0.75 a:0.25"), "nothing at all": (({},), ":1"),
    "a rest": (({"the": 0.5}, 0.5), "the:0.5 :0.5"), "a rest of 0": (({"the": 1.0}, 0.0), "the:1 :0"),
    "the rest alone": (({}, 0.5), ":0.5"), "less than 1": (({"the": 0.25}, 0.25), "the:0.25 :0.25"),
    "more than 1": (({"the": 1.0, "a": 1.0},), "the:0.5 a:0.5"),
    "more than 1 with the rest": (({"the": 0.9, "a": 0.9}, 0.2), "the:0.45 a:0.45 :0.1"),
    "whole numbers": (({"the": 1, "a": 0},), "the:1 a:0"), "truth values": (({"the": True},), "the:1"),
    "no minus": (({"the": -0.0},), "the:0 :1"),
    "small numbers": (({"the": 1e-05, "a": 5e-324}, 0), "the:1e-05 a:5e-324 :0"),
    "colons": (({"zu:x": 0.5, ":": 0.5},), "zu:x:0.5 ::0.5"),
    "a Series": ((pd.Series({"the": 0.5, "a": 0.25}),), "the:0.5 a:0.25 :0.25"),
    "a Series of float32": ((pd.Series([0.5, 0.25], ["the", "a"], dtype="float32"),), "the:0.5 a:0.25 :0.25"),
    "numpy's numbers": (({"the": np.float64(0.1), "a": np.float16(0.5), "of": np.int64(0)}, np.float32(0.25)),
        "the:0.1 a:0.5 of:0 :0.25"),
    "numpy's strings": (([(np.str_("the"), 0.5)],), "the:0.5 :0.5"),
    "arrays": ((zip(np.array(["the", "a"]), np.array([0.5, 0.25]), strict=True),), "the:0.5 a:0.25 :0.25"),
    "rows of lists": (([["the", 0.5], ["a", 0.25]],), "the:0.5 a:0.25 :0.25"),
    "Decimal and Fraction": (({"the": Decimal("0.1"), "a": Fraction(1, 4)}, Decimal("0.2")), "the:0.1 a:0.25 :0.2"),
    "TAB and no-break space": (({"a\tb": 0.5, "a\u00a0b": 0.5},), "a\tb:0.5 a\u00a0b:0.5"),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "line"), WRITTEN.values(), ids=WRITTEN)
def test_format_line(arguments, line):
    assert format_line(*arguments) == line


WRITABLE = st.text(st.characters(exclude_characters=" \n\r", exclude_categories=["Cs"]), min_size=1)
PROBABILITY = st.floats(0, 1)
DISTRIBUTION = st.dictionaries(WRITABLE, PROBABILITY)
REST = st.none() | PROBABILITY


@PROPERTY
@given(DISTRIBUTION, REST)
def test_a_written_line_is_well_formed_and_gives_the_same_words(distribution, rest):
    assume(rest is None or rest > 0 or any(distribution.values()))
    parsed = parse_line(format_line(distribution, rest))
    words = parsed.words[:-1] if parsed.words[-1] == "" else parsed.words
    assert words == tuple(distribution)
    assert all(0 <= value <= 1 for value in parsed.values)
    assert any(parsed.values)
    assert math.fsum(parsed.values) <= 1 + 1e-9
    if rest is None:
        assert math.fsum(parsed.values) >= 1 - 1e-8


MADE_FROM = "a line is made from a mapping from words to probabilities, a pandas Series or pairs (word, probability), not from"
NUMBERS = (
    "numbers without words: write_output and Metric take a vocabulary=…, and score takes metric.predictions(numbers)"
)
NO_NUMBERS = "the predictions are an array of object, not of float32 or float64"
NOT_WRITTEN = {
    "NaN": (({"the": math.nan},), "the probability of 'the' is nan, which is not between 0 and 1"),
    "negative": (({"the": -0.5},), "the probability of 'the' is -0.5, which is not between 0 and 1\n  for logits give logits=True, for logarithms of probabilities log=True"),
    "too much": (({"the": 1.5},), "the probability of 'the' is 1.5, which is not between 0 and 1\n  a probability is at most 1: divide each by their sum"),
    "the rest is negative": (({"the": 1.0}, -1e-9),
        "the probability of the rest is -1e-09, which is not between 0 and 1\n  clip rounding errors to the range from 0 to 1"),
    "an empty word": (({"": 0.5},), "an empty word: give the probability of all other words as rest=…"),
    "a space": (({"New York": 0.5},), "the word 'New York' contains a space, which would split the line"),
    "a line end": (({"the\n": 0.5},), "the word 'the\\n' contains a line end, which would split the line"),
    "a carriage return": (({"the\r": 0.5},),
        "the word 'the\\r' contains a carriage return, which would split the line"),
    "a surrogate": (({"\udcff": 0.5},), "the word '\\udcff' cannot be written as UTF-8: surrogates not allowed"),
    "counts": (({"the": 12},), "the probability of 'the' is 12.0, which is not between 0 and 1\n  they look like counts: divide each by their sum; if they are ranks, write probabilities instead"),
    "too large for a double": (({"the": Fraction(10**400)},), NO_NUMBERS),
    "digits in a string": (({"the": "0.5"},), "the predictions are an array of <U3, not of float32 or float64"),
    "a missing number": (({"the": pd.NA},), NO_NUMBERS),
    "a list of numbers": (({"the": [0.5]},), "a line is made from one row of numbers, not from an array of 1 rows"),
    "a rest that is none": (({"the": 0.5}, "0.5"), "the rests are an array of <U3, not of float32 or float64"),
    "a table": ((pd.DataFrame({"the": [0.5, 0.5]}),),
        "a line is made from one row of numbers, not from an array of 2 rows"),
    "a word that is a number": (({7: 0.5},), "the word 7 is not a string"),
    "a word of bytes": (({b"the": 0.5},), "the word b'the' is not a string"),
    "a number": ((0.5,), f"{MADE_FROM} 0.5"), "an integer": ((1,), f"{MADE_FROM} 1"),
    "nothing given": ((None,), f"{MADE_FROM} None"), "a text": (("the:0.5",), f"{MADE_FROM} 'the:0.5'"),
    "words alone": ((["the", "of"],), f"{MADE_FROM} 'the'"), "numbers alone": (([0.5, 0.25],), NUMBERS),
    "triples": (([("the", 0.5, 1)],), f"{MADE_FROM} ('the', 0.5, 1)"),
    "no mass": (({"the": 0.0}, 0), "every probability is 0: a distribution needs one above 0"),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), NOT_WRITTEN.values(), ids=NOT_WRITTEN)
def test_format_line_refuses(arguments, message):
    with refused(message):
        format_line(*arguments)


def test_what_an_iterator_raises_is_its_own():
    def pairs():
        yield "the", 0.5
        raise ValueError("the model is at fault")

    with pytest.raises(ValueError, match=r"^the model is at fault$"):
        format_line(pairs())


LINES = ["the:0.5 :0.5", {"a": 0.25}, [("zażółć", 1.0)], pd.Series({"b": 0.5})]
TEXT = "the:0.5 :0.5\na:0.25 :0.75\nzażółć:1\nb:0.5 :0.5\n"
UNPACK = {
    "out.tsv": bytes, "out.txt": bytes, "out.tsv.xz": lzma.decompress, "out.tsv.gz": gzip.decompress,
    "out.tsv.bz2": bz2.decompress, "out.tsv.zst": zstd.decompress,
}  # fmt: skip


@pytest.mark.parametrize("name", UNPACK)
def test_write_output(tmp_path, name):
    write_output(tmp_path / name, iter(LINES))
    assert UNPACK[name]((tmp_path / name).read_bytes()) == TEXT.encode()
    assert [p.name for p in tmp_path.iterdir()] == [name]
    assert list(read_output(tmp_path / name)) == [parse_line(text) for text in TEXT.splitlines()]


def test_no_lines_are_an_error(tmp_path):
    lines = iter(LINES)
    write_output(tmp_path / "out.tsv", lines)
    with pytest.raises(UsageError, match=r"^there is no line to write; an iterator can be read only once$"):
        write_output(tmp_path / "out.tsv", lines)
    assert (tmp_path / "out.tsv").read_bytes() == TEXT.encode()


BAD_LINES = {
    "a line end": (["a:1", "b:1\n"], "lines[1]: it contains a line end; give one line an item"),
    "a carriage return": (["a:1\r"], "lines[0]: it contains a carriage return; give one line an item"),
    "a surrogate": (["a:1", "b:1", "\udcff:1"],
        "lines[2]: 'utf-8' codec can't encode character '\\udcff' in position 0: surrogates not allowed"),
    "a mapping that format_line refuses": (["a:1", {"b": 2}],
        "lines[1]: the probability of 'b' is 2.0, which is not between 0 and 1"
        "\n  they look like counts: divide each by their sum; if they are ranks, write probabilities instead"),
    "a number": ([0.5], f"lines[0]: {MADE_FROM} 0.5"), "bytes": ([b"a:1"], f"lines[0]: {MADE_FROM} b'a:1'"),
}  # fmt: skip


@pytest.mark.parametrize("name", ["out.tsv", "out.tsv.xz", "out.tsv.gz", "out.tsv.bz2", "out.tsv.zst"])
@pytest.mark.parametrize(("lines", "message"), BAD_LINES.values(), ids=BAD_LINES)
def test_a_bad_line_leaves_all_as_it_was(tmp_path, name, lines, message):
    (tmp_path / name).write_text("old")
    with refused(message):
        write_output(tmp_path / name, lines)
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [(name, "old")]


@pytest.mark.parametrize("lines", ["the:1", b"the:1", {"the": 1}], ids=["a string", "bytes", "one distribution"])
def test_one_line_is_not_taken_for_many(tmp_path, lines):
    with refused(f"lines are several, not {lines!r}: for one line write [line]"):
        write_output(tmp_path / "out.tsv", lines)
    assert not (tmp_path / "out.tsv").exists()
