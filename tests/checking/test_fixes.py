"""Fixing: what becomes of a line, and that it keeps its losses and its number."""

from collections import Counter
from types import SimpleNamespace

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from profiles import examples

from geval_py.checking.fixes import Fixes, fix_line
from geval_py.checking.rules import RULES_BY_CODE
from geval_py.reading.wordprobs import parse_line, sum_in_order
from geval_py.scoring.kernel import TINY
from geval_py.scoring.kernel import backends as kernel
from geval_py.scoring.kernel.reference import line_loss

PROPERTY = settings(deadline=None, derandomize=True)
UNCHANGED = frozenset()

# Rules applied, before, after.
LINES = {
    "leading space": ("E112", " the:0.50 :0.5", "the:0.50 :0.5"),
    "trailing space": ("E112", "the:0.5 :0.50 ", "the:0.5 :0.50"),
    "double space": ("E112", "the:0.5  :0.5", "the:0.5 :0.5"),
    "spaces around a vector": ("E112", " -1 -1  -2 ", "-1 -1 -2"),
    "spaces on a line of logarithms": ("E112", " the:-1  :-1 ", "the:-1 :-1"),
    "a space and a sum that GEval divides by": ("E112", " the:1  :1", "the:1 :1"),
    "a tiny bit above one": ("W201", "the:1.0000001", "the:1"),
    "as far above one as may be": ("W201", "the:1.000001 :0", "the:1 :0"),
    "a tiny bit below zero": ("W201", "the:1.0 :-1e-6", "the:1.0 :0"),
    "a word a tiny bit below zero": ("W201", "the:0.5 a:-1e-9 :0.5", "the:0.5 a:0 :0.5"),
    "more than half of small values are probabilities": ("W201", "a:0.25 b:0.125 c:-1e-9", "a:0.25 b:0.125 c:0"),
    "digits are kept": ("W201", "a:-1e-9 b:+2.50e-1 c:2500e-4 d:0.2500 :0.25000000000000000001", "a:0 b:+2.50e-1 c:2500e-4 d:0.2500 :0.25000000000000000001"),
    "a space and an overshoot": ("E112 W201", "the:1.0000001  :0", "the:1 :0"),
}  # fmt: skip

WITH_REST_MASS = {  # of 0.01
    "certainty": ("W204", "the:1", "the:0.99 :0.01"), "a rest of zero": ("W204", "the:1.0 :0", "the:0.99 :0.01"),
    "above one by rounding": ("W204", "the:0.50 a:0.51", "the:0.4900990099009901 a:0.4999009900990099 :0.01"),
    "a rest of zero in front": ("W204", ":0 the:1.0", "the:0.99 :0.01"),
    "two rests of zero": ("W204", ":0 the:1.0 :0.0", "the:0.99 :0.01"),
    "above one": ("W204", "the:1 a:1", "the:0.495 a:0.495 :0.01"),
    "a rest of zero, below one": ("W204", "the:0.5 :0", "the:0.99 :0.01"),
    "a zero": ("W204", "the:1 a:0", "the:0.99 a:0 :0.01"),
    "a repeated word": ("W204", "the:0.5 the:0.5", "the:0.495 the:0.495 :0.01"),
    "a tiny bit above one": ("W201 W204", "the:1.0000001", "the:0.99 :0.01"),
    "there is a rest": ("", "the:0.999999999 :1e-9", "the:0.999999999 :1e-9"),
    "there is room for one": ("", "the:0.99", "the:0.99"),
    "there is just room for one": ("", "the:0.99999998", "the:0.99999998"),
    "logarithms": ("", "the:0", "the:0"),
    "a mass too small to be divided": ("", "the:1 :0 a:2.23e-308", "the:1 :0 a:2.23e-308"),
}  # fmt: skip

LEFT_ALONE = {
    "two entries that a TAB separates": "a:0.5\tb:0.3 :0.4",
    "two entries that a comma separates": "a:0.5,b:0.3 c:0.5 c:0.5",
    "good": "the:0.50 :0.5", "above one by less than counts": "the:1 :0.000000001",
    "above one by rounding": "the:0.333334 a:0.333333 :0.333334",
    "below one by rounding": "the:0.333333 a:0.333333 :0.333333",
    "the rest is zero": "the:1 :0", "only spaces": "   ", "empty": "", "a stray space and no colon": " the:0.5  a",
    "a stray space and not a number": "the:.5  a:1 a:1", "a number too large": " the:1e999",
    "a no-break space": "\u00a0the:0.5 :0.5", "TABs": "\tthe:0.5 :0.5\t", "a vector": "0 0.7 0.7",
    "logarithms": "the:-0.5 a:-1 the:-1", "logarithms, a zero": "the:-0.5 a:0 a:-1",
    "half of small values are no probabilities": "the:0.25 a:-1e-9",
    "nothing but zeros": "the:0 a:0 a:0", "the rest alone, zero": ":0", "too far above one": "the:1.0000011 :0",
    "too far below zero": "the:0.5 :0.5 a:-1.1e-6", "sums that GEval divides by": "the:1 :1",
    "a repeated word": "the:0.25 a:0.50 the:0.25", "a word with nothing": "a:0.50 c:0.00 :0.50",
}  # fmt: skip


@pytest.mark.parametrize(("rules", "before", "after"), LINES.values(), ids=LINES)
def test_line(rules, before, after):
    assert fix_line(before) == (after, frozenset(rules.split()))
    assert fix_line(after) == (after, UNCHANGED)


@pytest.mark.parametrize(("rules", "before", "after"), WITH_REST_MASS.values(), ids=WITH_REST_MASS)
def test_line_with_a_rest_mass(rules, before, after):
    assert fix_line(before, rest_mass=0.01) == (after, frozenset(rules.split()))
    assert fix_line(after, rest_mass=0.01) == (after, UNCHANGED)


@pytest.mark.parametrize("line", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_left_alone(line):
    assert fix_line(line) == (line, UNCHANGED)


def test_the_rules_that_are_fixed_are_the_fixable_ones():
    tables = [*LINES.values(), *WITH_REST_MASS.values()]
    applied = {code for rules, _, _ in tables for code in rules.split()} | {"W210", "W211", "E118"}
    assert applied == {code for code, rule in RULES_BY_CODE.items() if rule.fixable}


# Few words, so that they repeat and collide; numbers as people write them.
words = st.sampled_from(["", "", "a", "b", "the", "żółw", "12:30", "a\tb", "水"])
probabilities = st.one_of(
    st.sampled_from(["0", "1", "0.5", "0.25", "0.1", "0.3", "1e-300", "5e-324", "0.000", "-0", "0.99999999", "1.0"]),
    st.floats(0, 1).map(repr),
    st.floats(0, 0.1).map("{:.6f}".format),
)
near_probabilities = st.one_of(probabilities, st.floats(-2e-6, 1e-6).map(repr), st.floats(1, 1 + 2e-6).map(repr))
logarithms = st.floats(-30, 5).map(repr)


def lines_of(numbers, size=12):
    entries = st.tuples(words, numbers).map(":".join)
    return st.lists(entries, min_size=1, max_size=size).map(" ".join)


def normalised(line):
    """A line of probabilities whose total is 1 up to rounding, or a little off it."""
    values = parse_line(line).values
    total = sum_in_order(values) or 1.0
    tokens = line.split(" ")
    return " ".join(f"{token.rpartition(':')[0]}:{v / total!r}" for token, v in zip(tokens, values, strict=True))


probability_lines = st.one_of(
    lines_of(probabilities), lines_of(probabilities).map(normalised), lines_of(probabilities, 200)
)
any_lines = st.one_of(
    probability_lines,
    lines_of(near_probabilities),
    lines_of(logarithms),
    st.text(alphabet="ab: 0.15e-", max_size=30),
    st.lists(logarithms, min_size=1, max_size=4).map(" ".join),
)  # fmt: skip
expected_words = st.sampled_from(["a", "b", "the", "żółw", "12:30", "a\tb", "水", "", "unlisted", "another", "x"])
rest_masses = st.one_of(st.none(), st.floats(0, 1, exclude_min=True, exclude_max=True))
stray = st.lists(st.integers(0, 3), min_size=1, max_size=5)


def with_stray_spaces(line, counts):
    tokens = line.split(" ")
    spaces = [" " * counts[i % len(counts)] for i in range(len(tokens) + 1)]
    return spaces[0] + " ".join(token + more for token, more in zip(tokens, spaces[1:], strict=True))


def same_loss(one, other):
    return one == other or abs(one - other) <= 1e-9 * max(1.0, abs(one))


@settings(PROPERTY, max_examples=examples(600))
@given(probability_lines, expected_words, st.sampled_from([1, 4, 10]), st.sampled_from([1, 2, 17, 2**32 + 5]), stray)
def test_every_loss_is_kept(line, word, bits, number, counts):
    """A fix that is meant to keep the distribution keeps every loss to 1e-9 (for E112: of the line without its spaces)."""
    loss = line_loss(line, word, bits, number)
    for before in (line, with_stray_spaces(line, counts)):
        after, rules = fix_line(before)
        assert rules <= {"E112"}
        assert same_loss(line_loss(after, word, bits, number), loss)


@settings(PROPERTY, max_examples=examples(600))
@given(any_lines, rest_masses)
def test_a_second_run_changes_nothing(line, rest_mass):
    once, rules = fix_line(line, rest_mass=rest_mass)
    assert (once == line) == (not rules)
    assert fix_line(once, rest_mass=rest_mass) == (once, UNCHANGED)


stored_lines = st.one_of(
    st.tuples(any_lines, stray).map(lambda drawn: with_stray_spaces(*drawn)).map(str.encode),
    any_lines.map(str.encode),
    any_lines.map(lambda line: f"{line}\r".encode()),
    st.binary(max_size=9).map(lambda line: line.replace(b"\n", b"")),
)


def alone(raw, rest_mass):
    """The fixed line, and the rules applied, if each line is parsed."""
    fixed, codes = fix_line(raw.decode(errors="surrogateescape"), rest_mass=rest_mass)
    return fixed.encode(errors="surrogateescape"), codes


@settings(PROPERTY, max_examples=examples(1000))
@given(st.lists(stored_lines, min_size=1, max_size=4), rest_masses)
@example([b"the:1", b"the:1 :0"], 0.1)
@example([b"a:1 b:1 c:3e-308"], 0.1)
@example([b"a:1 b:1 c:1e-290"], 1 - 2**-53)
@example([b"a:0.5  b:0.5 c:-1e-9\0"], None)
@example([b" 1 2 3\r", b"  \r", b" a:1e999"], None)
def test_what_flags_tell_is_what_fixing_does(lines, rest_mass):
    """A block, of which flags tell what is parsed, is fixed as each line by itself, which is always parsed."""
    told = Fixes("out.tsv", rest_mass)
    blocks = iter([b"a:0.5 :0.5\n", b"".join(line + b"\n" for line in lines), b""])
    reader = SimpleNamespace(block=lambda: next(blocks), has_byte_order_mark=False)
    block = [*told.fix_blocks(reader)][1].split(b"\n")[:-1]
    fixed = [alone(line, rest_mass) for line in lines]
    assert block == [line for line, _ in fixed]
    assert told.changes == Counter(sorted(code for _, codes in fixed for code in codes))
    assert [number for number, _, _ in told.diff] == [n for n, (_, codes) in enumerate(fixed, 2) if codes]


@settings(PROPERTY, max_examples=examples(600))
@given(probability_lines, rest_masses.filter(bool))
def test_a_rest_is_added_where_check_reports_it(line, rest_mass):
    """W204 where the flags say so, but for tiny masses, and nowhere afterwards."""
    (flags,) = kernel.score_lines(f"{line}\n".encode(), b"\n", 10, 1)[1]
    assume(not flags & TINY and rest_mass > 1e-9 and 1 - rest_mass > 1e-9)
    fixed, codes = fix_line(line, rest_mass=rest_mass)
    assert ("W204" in codes) == RULES_BY_CODE["W204"].is_broken(flags)
    (after,) = kernel.score_lines(f"{fixed}\n".encode(), b"\n", 10, 1)[1]
    assert not any(RULES_BY_CODE[code].is_broken(after) for code in ("E112", "W201", "W204", "W210"))
