"""What lines guess, entry by entry, by both kernels and by the specification."""

import math
from array import array

import mmh3
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples

from geval_py.reading.wordprobs import parse_line
from geval_py.scoring.kernel import native, reference

PROBABILITY = st.one_of(st.sampled_from(["0", "1", "0.5", "1e-300"]), st.floats(0, 1).map(repr))
LOGARITHM = st.one_of(st.floats(-700, 2).map(repr), st.sampled_from(["-800", "800", "-0.5"]))
WORD = st.one_of(st.sampled_from(["", "", "the", "ka:lo", "ą", "longer-than-eight"]), st.text("abc", max_size=3))


def entries(number):
    return st.lists(st.tuples(WORD, number).map(":".join), min_size=1, max_size=6).map(" ".join)


VECTOR = st.lists(LOGARITHM, min_size=8, max_size=8).map(" ".join)
LINES = st.lists(
    st.tuples(st.one_of(entries(PROBABILITY), entries(LOGARITHM), VECTOR), st.text("abcą", max_size=3)),
    min_size=1,
    max_size=5,
)


def block(texts):
    return "".join(f"{text}\n" for text in texts).encode()


@settings(deadline=None, max_examples=examples(400))
@given(LINES, st.sampled_from([1, 2**32 - 1, 2**40]))
def test_both_backends_agree(lines, first_line):
    outputs, expected = block(text for text, _ in lines), block(word for _, word in lines)
    ours = native.read_guesses(outputs, expected, 3, first_line)
    true = reference.read_guesses(outputs, expected, 3, first_line)
    assert ours.counts == true.counts
    assert ours.hits == true.hits
    assert list(ours.masses) == pytest.approx(list(true.masses), rel=1e-12, abs=1e-300)
    assert list(ours.rests) == pytest.approx(list(true.rests), rel=1e-12, abs=1e-300)


@settings(deadline=None)
@given(LINES, st.integers(1, 1000))
def test_the_loss_is_that_of_the_hits_and_a_share_of_the_rest(lines, first_line):
    """-ln of the mass of the expected word's bucket (Specification, "From a line to a distribution")."""
    outputs, expected = block(text for text, _ in lines), block(word for _, word in lines)
    losses = reference.bounded_losses(outputs, expected, 3, first_line)[0]
    found = reference.read_guesses(outputs, expected, 3, first_line)
    end = 0
    for loss, count, rest in zip(losses, found.counts, found.rests, strict=True):
        begin, end = end, end + count
        pairs = zip(found.masses[begin:end], found.hits[begin:end], strict=True)
        mass = sum(mass for mass, hit in pairs if hit) + rest / 8
        assert math.exp(-loss) == pytest.approx(mass, rel=1e-9, abs=1e-300)
    assert end == len(found.masses) == len(found.hits)


def test_entries_are_those_of_the_line(kernel):
    text, word = "the:0.25 :0.25 of:0.25 the:0.5", "of"
    found = kernel.read_guesses(block([text, ":1"]), block([word, "x"]), 24, 1)
    assert (list(found.counts), list(found.masses), found.hits) == ([3, 0], [0.2, 0.2, 0.4], b"\0\1\0")
    assert list(found.rests) == [0.2, 1.0]
    assert sum(found.masses) + found.rests[0] == pytest.approx(1)
    assert parse_line(text).normalised().masses == pytest.approx({"the": 0.6, "of": 0.2})


@settings(deadline=None)
@given(
    st.lists(st.text("abcdeą", min_size=1, max_size=20), max_size=40, unique=True),
    st.lists(st.text("abcdeą", max_size=12), max_size=4),
    st.sampled_from([1, 3, 10]),
    st.sampled_from([1, 77, 2**32 - 1]),
)
def test_shares_in_the_bucket_of_the_expected_word(words, expected, bits, first_line):
    shares = array("d", [1 / (n + 2) for n in range(len(words))])

    def bucket(word, line):
        return mmh3.hash(word, line & 0xFFFFFFFF, signed=False) % 2**bits

    wanted = [
        sum(share for word, share in zip(words, shares, strict=True) if bucket(word, line) == bucket(answer, line))
        for line, answer in enumerate(expected, first_line)
    ]
    for kernel in (native, reference):
        found = kernel.bucket_shares(block(words), shares, block(expected), bits, first_line)
        assert list(found) == pytest.approx(wanted)


def test_as_many_shares_as_words(kernel):
    with pytest.raises(ValueError, match="words"):
        kernel.bucket_shares(b"a\nb\n", array("d", [0.5]), b"a\n", 10, 1)
