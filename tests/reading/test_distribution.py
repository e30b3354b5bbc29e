"""What a line means: its masses, and the buckets that are scored, against the kernel that scores them."""

import math
import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from geval_py.errors import MalformedLineError, UsageError
from geval_py.reading.wordprobs import Distribution, parse_line
from geval_py.scoring.kernel import reference

PROPERTY = settings(deadline=None, derandomize=True)

E = math.e
MEANT = {
    "probabilities": ("the:0.5 a:0.25 :0.25", {"the": 0.5, "a": 0.25}, 0.25),
    "in the line's order": (":0.25 b:0.25 a:0.5", {"b": 0.25, "a": 0.5}, 0.25),
    "a word twice": ("the:0.25 a:0.25 the:0.25 :0.25", {"the": 0.5, "a": 0.25}, 0.25),
    "the rest twice": (":0.25 the:0.5 :0.25", {"the": 0.5}, 0.5),
    "the rest alone": (":0.25", {}, 1.0),
    "too much": ("the:1 a:0.5 :0.5", {"the": 0.5, "a": 0.25}, 0.25),
    "too much, without a rest": ("the:1 a:1", {"the": 0.5, "a": 0.5}, 0.0),
    "too little": ("the:0.25 :0.25", {"the": 0.5}, 0.5),
    "too little, without a rest": ("the:0.25 a:0.25", {"the": 0.25, "a": 0.25}, 0.5),
    "little enough to be 1": ("the:0.999999995", {"the": 0.999999995}, 0.0),
    "zeros among probabilities": ("the:0 a:1", {"the": 0.0, "a": 1.0}, 0.0),
    "logarithms": ("the:-1 a:-1 :0", {"the": 1 / (2 + E), "a": 1 / (2 + E)}, E / (2 + E)),
    "logarithms, too much": ("the:2 a:1", {"the": E / (E + 1), "a": 1 / (E + 1)}, 0.0),
    "logarithms, too little": ("the:-1", {"the": 1 / E}, 1 - 1 / E),
    "logarithms, too little, with a rest": ("the:-2 :-1", {"the": 1 / (1 + E)}, E / (1 + E)),
    "logarithms, a word twice": ("the:-1 the:-1", {"the": 2 / E}, 1 - 2 / E),
    "zero alone is a logarithm": ("the:0", {"the": 1.0}, 0.0),
    "where exp overflows": ("the:800 a:800", {"the": 0.5, "a": 0.5}, 0.0),
    "where exp underflows": ("the:-800 :-800", {"the": 0.5}, 0.5),
}


@pytest.mark.parametrize(("line", "masses", "rest"), MEANT.values(), ids=MEANT)
def test_normalised(line, masses, rest):
    distribution = parse_line(line).normalised()
    assert list(distribution.masses) == list(masses)
    assert distribution == Distribution(masses=pytest.approx(masses, rel=1e-14), rest=pytest.approx(rest, abs=1e-14))


# Buckets: of four, that of `the` on line 1 is the second

BUCKETS = {
    "a word and the rest": ("the:0.5 :0.5", [0.125, 0.625, 0.125, 0.125]),
    "a vector": ("-1 -1 -1 -1", [0.25] * 4),
    "a vector as it is": (" ".join([repr(math.log(0.25))] * 4), [0.25] * 4),
    "a vector of one": ("0 -800 -800 -800", [1.0, 0.0, 0.0, 0.0]),
}


@pytest.mark.parametrize(("line", "masses"), BUCKETS.values(), ids=BUCKETS)
def test_buckets(line, masses):
    assert list(parse_line(line).buckets(2)) == pytest.approx(masses, rel=1e-14)


def test_the_line_number_seeds_the_hash():
    first, second = (parse_line("the:1").buckets(line=line) for line in (1, 2))
    assert len(first) == len(second) == 1024
    assert first.index(1.0) != second.index(1.0)


NO_WORDS = "the line is a vector, which has no words: its masses are buckets(bits)"
NO_HASH = "a word cannot be hashed, since UTF-8 cannot write it: surrogates not allowed"
REFUSED = {
    "no bits": (lambda: parse_line("the:1").buckets(bits=0), "bits is 0; it is from 1 to 24"),
    "too many bits": (lambda: parse_line("the:1").buckets(bits=25), "bits is 25; it is from 1 to 24"),
    "no line": (lambda: parse_line("the:1").buckets(line=0), "line is 0; lines are counted from 1"),
    "a word that is no Unicode": (lambda: parse_line("a:0.5 \udcff:0.5").buckets(), NO_HASH),
    "the words of a vector": (lambda: parse_line("-0.5 -1").normalised(), NO_WORDS),
}


@pytest.mark.parametrize(("call", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(call, message):
    with pytest.raises(UsageError) as caught:
        call()
    assert str(caught.value) == message


def test_a_vector_of_another_length():
    with pytest.raises(MalformedLineError) as caught:
        parse_line("-0.50 -1").buckets(line=7)
    assert str(caught.value) == (
        "Line 7: Unexpected data [unexpected number of log probs]\n"
        "  line 7, column 1: a line without a colon holds a log probability for each of 1024 buckets, this one holds 2; "
        "were `word:probability` entries meant?\n"
        "    -0.5 -1.0\n"
        "    ^"
    )


# Against the kernel

EXPECTED = st.sampled_from(["the", "of", "and", "żółw", "水", ":"])
WORD = EXPECTED | st.just("")
PROBABILITIES = st.lists(st.tuples(WORD, st.floats(0, 1)), min_size=1, max_size=8)
LOGARITHMS = st.lists(st.tuples(WORD, st.floats(-50, 50)), min_size=1, max_size=8)
ENTRIES = st.one_of(PROBABILITIES, LOGARITHMS).map(lambda pairs: " ".join(f"{w}:{v!r}" for w, v in pairs))
BITS = st.integers(1, 12)


def is_loss_of(mass, loss):
    """Whether -ln of a mass is the loss; of what is no normal double only a bound is known."""
    if mass < sys.float_info.min:
        return loss > -math.log(sys.float_info.min) - 1
    return math.isclose(-math.log(mass), loss, rel_tol=1e-12, abs_tol=1e-12)


@PROPERTY
@given(ENTRIES, EXPECTED, BITS, st.integers(1, 2**33))
@example("the:800 of:-800", "of", 3, 1)
@example("the:1e-300 of:1", "the", 10, 2**32)
@example("a:0.5 :0.49999999", "of", 10, 1)
def test_the_loss_is_that_of_the_expected_words_bucket(line, expected, bits, number):
    """The line's loss is -ln(mass of the expected word's bucket), in nats: +infinity when the mass is 0."""
    text, word = f"{line}\n".encode(), f"{expected}\n".encode()
    (loss,) = reference.bounded_losses(text, word, bits, number)[0]
    buckets = parse_line(line).buckets(bits, number)
    only_that_word = parse_line(f"{expected}:1").buckets(bits, number)
    assert is_loss_of(buckets[only_that_word.index(1.0)], loss)


@PROPERTY
@given(ENTRIES, BITS, st.integers(1, 2**33))
def test_the_buckets_are_1_together(line, bits, number):
    """If the buckets' sum is off, divide by it: it is off when it is > 1 or < 1 - 1e-8."""
    assert 1 - 1.1e-8 < math.fsum(parse_line(line).buckets(bits, number)) < 1 + 1e-12


@PROPERTY
@given(ENTRIES)
def test_the_words_and_the_rest_are_1_together(line):
    """Let total be their sum; it is off when total > 1 or total < 1 - 1e-8; off, it is divided or completed."""
    distribution = parse_line(line).normalised()
    assert 1 - 1.1e-8 < math.fsum([*distribution.masses.values(), distribution.rest]) < 1 + 1e-12


@PROPERTY
@given(st.integers(1, 6).flatmap(lambda bits: st.lists(st.floats(-50, 50), min_size=1 << bits, max_size=1 << bits)))
def test_a_vectors_loss_is_that_of_its_bucket(values):
    """A vector is the buckets, as logarithms."""
    bits = len(values).bit_length() - 1
    line = " ".join(map(repr, values))
    buckets = parse_line(line).buckets(bits)
    assert math.fsum(buckets) == pytest.approx(1, abs=1.1e-8)
    only = parse_line("the:1").buckets(bits).index(1.0)
    (loss,) = reference.bounded_losses(f"{line}\n".encode(), b"the\n", bits, 1)[0]
    assert is_loss_of(buckets[only], loss)
