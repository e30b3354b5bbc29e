"""The kernels against GEval, against their docstring, and against a naive vector of buckets."""

import json
import lzma
import math
from array import array
from itertools import product
from pathlib import Path

import mmh3
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geval_py.errors import MalformedLineError
from geval_py.scoring.kernel import _native, profile, reference

DATA = Path(__file__).parent.parent / "data"
GOLDEN = [json.loads(line) for line in lzma.open(DATA / "golden-lines.jsonl.xz", "rt", encoding="utf-8")]


def loss(kernel, text, expected, bits=10, line=1):
    (value,) = kernel.bounded_losses(f"{text}\n".encode(), f"{expected}\n".encode(), bits, line)[0]
    return value


def test_golden_lines(kernel):
    """GEval 1.42.2, --line-by-line --metric LogLossHashed10 and LogLossHashed4."""
    for row in GOLDEN:
        got = loss(kernel, row["out"], row["expected"], row["bits"], row["line"])
        want = float(row["log_loss"])
        assert got == want or math.isclose(got, want, rel_tol=1e-9, abs_tol=1e-9), row


PROBABILITY = st.one_of(st.sampled_from([0.0, 1.0, 0.5, 0.25]), st.floats(0, 1))
WORD = st.sampled_from(["", "a", "b", "ka:lo", "é", "水"])


def buckets_of(entries, bits, line):
    """The distribution over buckets, straight from the specification (sections 3.1 to 3.5)."""
    values = [value for _, value in entries]
    total = sum_in_order(values)
    size = 1 << bits
    if total > 1 or (total < 1 - 1e-8 and any(word == "" for word, _ in entries)):
        entries = [(word, value / total) for word, value in entries]
    elif total < 1 - 1e-8:
        entries = [*entries, ("", 1 - total)]
    buckets = [0.0] * size
    for word, value in entries:
        for bucket in range(size) if word == "" else [mmh3.hash(word, line, signed=False) % size]:
            buckets[bucket] += value / size if word == "" else value
    return buckets


def sum_in_order(values):
    total = 0.0
    for value in values:
        total += value
    return total


@settings(deadline=None)
@given(
    entries=st.lists(st.tuples(WORD, PROBABILITY), min_size=1, max_size=8).filter(lambda of: any(p > 0 for _, p in of)),
    expected=WORD, bits=st.integers(1, 6), line=st.integers(1, 1 << 40),
)  # fmt: skip
def test_probabilities_against_a_vector_of_buckets(entries, expected, bits, line, kernel):
    text = " ".join(f"{word}:{value!r}" for word, value in entries)
    seed = line % (1 << 32)
    mass = buckets_of(entries, bits, seed)[mmh3.hash(expected, seed, signed=False) % (1 << bits)]
    got = loss(kernel, text, expected, bits, line)
    if mass < 1e-300:
        assert got > 600
    else:
        assert math.isclose(got, max(0.0, -math.log(mass)), rel_tol=1e-9, abs_tol=1e-12)


@pytest.mark.parametrize(("text", "expected", "want"), [
    (":1", "x", math.log(1024)), (":0", "x", math.log(1024)), ("x:1", "x", 0.0), ("x:0", "x", 0.0),
    ("x:1", "y", math.inf), ("x:0.25 y:0.25 x:0.5", "x", -math.log(0.75)), ("x:1 y:1", "y", math.log(2)),
    ("x:-1e-9 y:0.5", "x", math.log(math.exp(-1e-9) + math.exp(0.5)) + 1e-9),
    ("x:800", "x", 0.0), ("x:800 y:799", "y", 1 + math.log1p(math.exp(-1))), ("x:-800", "x", math.log(1024)),
    ("x:-800", "y", math.log(1024)), ("x:-800 :-900", "x", 0.0),
    ("x:-1e308 :-1e308", "y", math.log(1024) + math.log(2)), ("x:1e308 y:-1e308", "x", 0.0),
    ("x:1e-320 :1e-320", "x", math.log(2 / (1 + 1 / 1024))), ("x:1e-400", "x", 0.0),
])  # fmt: skip
def test_loss_of_a_line(text, expected, want, kernel):
    """Where GEval's plain exp overflows or underflows, the answer is the right one."""
    assert math.isclose(loss(kernel, text, expected), want, rel_tol=1e-9, abs_tol=1e-9)


@pytest.mark.parametrize(("outputs", "expected"), [
    (b"a:0.5\r :0.5\n", b"a\n"), (b"a:0.\r5 :0.5\n", b"a\n"), (b"a:0.5 :0.5", b"a"), (b"a:0.5 :0.5\r\n", b"\ra\r\n"),
], ids=["inside", "in a number", "no final line end", "in both"])  # fmt: skip
def test_carriage_returns_and_the_last_line_end_do_not_matter(outputs, expected, kernel):
    assert list(kernel.bounded_losses(outputs, expected, 10, 1)[0]) == [loss(kernel, "a:0.5 :0.5", "a")]


@pytest.mark.slow
@pytest.mark.parametrize("before", [0, 30], ids=["at the beginning", "across 32 bytes"])
def test_all_short_sequences_of_bytes_become_what_python_decodes(before):
    """All pairs of bytes, and all sequences of four that are the first or the last of the bytes with one meaning."""
    edges = bytes.fromhex("41 7f 80 8f 90 9f a0 bf c0 c1 c2 df e0 e1 ec ed ee ef f0 f1 f3 f4 f5 ff")
    words = [*product(set(range(256)) - {*b"\n "}, repeat=2), *product(edges, repeat=4)]
    raw = [b"x" * before + bytes(word) + b"y" for word in words]
    expected = "".join(word.decode("utf-8", "replace") + "\n" for word in raw).encode()
    losses = _native.bounded_losses(b"".join(word + b":1\n" for word in raw), expected, 24, 1)[0]
    assert len(losses) == len(words)
    assert set(losses) == {0.0}


@pytest.mark.parametrize("name", ["bounded_losses", "score_lines", "line_profiles"])
def test_blocks_at_fault(name, kernel):
    module = profile if name == "line_profiles" and kernel is reference else kernel
    call = getattr(module, name)
    for outputs, expected in ((b"a:1\n", b"a\nb\n"), (b"a:1\nb:1\n", b"a\n")):
        with pytest.raises(ValueError, match=r"argument|number of lines"):
            call(outputs, expected, 10, 1)
    if name != "score_lines":  # which flags it
        with pytest.raises(MalformedLineError) as caught:
            call(b"a:1\nb:x\n", b"a\nb\n", 10, 7)
        assert (caught.value.line, caught.value.column) == (8, 3)
    for bits in (0, 25, -1):
        with pytest.raises(ValueError, match=r"^bits is from 1 to 24$"):
            getattr(_native, name)(b"a:1\n", b"a\n", bits, 1)


@pytest.mark.parametrize("values", [[0.0, -0.5], [-0.5 * n for n in range(8)], [math.log(0.25), math.log(0.75)]])
def test_vector(values, kernel):
    """A line without a colon holds a natural-log probability for each bucket; the last one needs no softmax."""
    total = math.log(sum(map(math.exp, values)))
    value = values[mmh3.hash("a", 1, signed=False) % len(values)]
    found = loss(kernel, " ".join(map(repr, values)), "a", len(values).bit_length() - 1)
    assert math.isclose(found, total - value, rel_tol=1e-12)


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
    for kernel in (_native, reference):
        found = kernel.bucket_shares(block(words), shares, block(expected), bits, first_line)
        assert list(found) == pytest.approx(wanted)


def test_as_many_shares_as_words(kernel):
    with pytest.raises(ValueError, match="words"):
        kernel.bucket_shares(b"a\nb\n", array("d", [0.5]), b"a\n", 10, 1)
