"""What a line's distribution says: both backends, and a slow computation from the distribution's public face."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from profiles import examples

from geval_py import MalformedLineError, parse_line
from geval_py.scoring.kernel import _native, profile, reference
from geval_py.scoring.kernel.profile import COLUMNS, COUNTS, EDGES, MASSES

PROFILERS = {"python": profile.line_profiles, "native": _native.line_profiles}
IN_BINS = {*MASSES, *COUNTS}
NUMBER = st.one_of(
    st.floats(0, 1).map(repr), st.floats(0, 0.2).map("{:.2f}".format), st.floats(-30, 3).map("{:.6f}".format),
    st.sampled_from(["0", "1", "0.5", "-0", "1e-300", "-800", "800", "1e-400", "-1e-9"]),
)  # fmt: skip
WORD = st.sampled_from(["", "a", "b", "ka:lo", "é", "水", "place,", "\x00", "longer than eight".replace(" ", "_")])
ENTRIES = st.lists(st.tuples(WORD, NUMBER).map(":".join), min_size=1, max_size=8).map(" ".join)
VECTOR = st.integers(1, 4).flatmap(lambda n: st.lists(NUMBER, min_size=1 << n, max_size=1 << n)).map(" ".join)
PROBABLE = st.lists(st.tuples(WORD, st.floats(0, 0.5)), min_size=1, max_size=8, unique_by=lambda pair: pair[0]).map(
    lambda pairs: " ".join(f"{word}:{value!r}" for word, value in pairs)
)


@pytest.fixture(params=PROFILERS, scope="session")
def profiles(request):
    return PROFILERS[request.param]


def block(lines):
    return "".join(f"{line}\n" for line in lines).encode()


def profile_one(profiles, output, word, bits=10, line=1):
    columns = profiles(block([output]), block([word]), bits, line)
    return dict(zip(COLUMNS, (column[0] for column in columns), strict=True))


def well_formed(output, bits):
    try:
        reference.line_loss(output, "", bits, 1)
    except MalformedLineError:
        return False
    return True


@settings(deadline=None, max_examples=examples(300))
@given(
    lines=st.lists(st.tuples(st.one_of(ENTRIES, PROBABLE), WORD), min_size=1, max_size=6),
    vectors=st.lists(VECTOR, max_size=2),
    bits=st.sampled_from([1, 2, 3, 4, 10, 17, 24]),
    first_line=st.sampled_from([1, 7, 2**32 - 1, 2**40]),
)
@example(lines=[("a:0.25 b:0.25 :0.5", "b"), (":1", "a"), ("a:1 b:0", "b")], vectors=[], bits=10, first_line=1)
def test_both_backends_agree(lines, vectors, bits, first_line):
    kept = [pair for pair in (*lines, *((vector, "a") for vector in vectors)) if well_formed(pair[0], bits)]
    outputs, expected = block(output for output, _ in kept), block(word for _, word in kept)
    native = _native.line_profiles(outputs, expected, bits, first_line)
    true = profile.line_profiles(outputs, expected, bits, first_line)
    assert list(native[0]) == list(_native.bounded_losses(outputs, expected, bits, first_line)[0])
    assert list(true[0]) == list(reference.bounded_losses(outputs, expected, bits, first_line)[0])
    for name, one, other in zip(COLUMNS, native, true, strict=True):
        if name not in IN_BINS:
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12, err_msg=name)
    for names in (MASSES, COUNTS):  # a mass near an edge may be above it in one of them, and below it in the other
        one, other = (np.sum([columns[COLUMNS.index(name)] for name in names], axis=0) for columns in (native, true))
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def slowly(output, word, bits, line):
    distribution = parse_line(output).normalised()
    masses, rest = distribution.masses, distribution.rest
    buckets = np.array(parse_line(output).buckets(bits, line))
    own = masses.get(word, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        losses = np.where(buckets > 0, -np.log(buckets), 0)
    entropy = np.sum(buckets * losses)
    variance = np.sum(buckets * (losses - entropy) ** 2)
    bins = np.digitize(list(masses.values()), EDGES)
    best = max(masses.values(), default=0.0)
    answer = max((other for other, mass in masses.items() if mass == best), default=None)
    return {
        "entropy": entropy, "variance": variance, "word_mass": own, "listed": float(word in masses), "rest": rest,
        "guess_mass": best, "guess_right": float(answer == word), "words": len(masses),
        **dict(zip(MASSES, np.bincount(bins, list(masses.values()), len(MASSES)), strict=True)),
        **dict(zip(COUNTS, np.bincount(bins, minlength=len(COUNTS)), strict=True)),
    }  # fmt: skip


@settings(deadline=None, max_examples=examples(150))
@given(PROBABLE | ENTRIES.filter(lambda line: well_formed(line, 4)), WORD, st.integers(1, 6), st.integers(1, 2**40))
@example("a:0.5 b:0.25 :0.25", "b", 3, 1)
@example("a:0.2 b:0.2 a:0.2", "a", 1, 5)
@example("a:0.4 b:0.4 :0.2", "b", 10, 1)
@example(":1", "a", 10, 1)
@example("a:0.5 :0.5", "", 10, 1)
def test_a_slow_computation_agrees(output, word, bits, line):
    for profiles in PROFILERS.values():
        found = profile_one(profiles, output, word, bits, line)
        for name, value in slowly(output, word, bits, line).items():
            assert found[name] == pytest.approx(value, rel=1e-9, abs=1e-9), name
