"""The shares of frequent words in the buckets of expected words, by both kernels."""

from array import array

import mmh3
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geval_py.scoring.kernel import native, reference


def block(texts):
    return "".join(f"{text}\n" for text in texts).encode()


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
