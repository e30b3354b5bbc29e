"""Mending: what becomes of a line, that it keeps its losses, and that no byte of a file is lost."""

import bz2
import errno
import gzip
import lzma
import os
import stat
import sys

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from geval_py.checking import fixes
from geval_py.checking.fixes import fix_file, fix_line
from geval_py.checking.rules import RULES_BY_CODE
from geval_py.errors import CorruptFileError, MalformedLineError, UnreadableFileError, UsageError
from geval_py.reading.distribution import LEAST_TOTAL, TOLERANCE, are_probabilities, sum_in_order
from geval_py.reading.lines import read_lines
from geval_py.reading.sources import Source
from geval_py.reading.wordprobs import parse_line
from geval_py.scoring.kernel.reference import line_loss

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PROPERTY = settings(deadline=None, derandomize=True)
BOM = "\ufeff".encode()
UNCHANGED = frozenset()

# Rules applied, before, after.
LINES = {
    "leading space": ("E112", " the:0.50 :0.5", "the:0.50 :0.5"),
    "trailing space": ("E112", "the:0.5 :0.50 ", "the:0.5 :0.50"),
    "double space": ("E112", "the:0.5  :0.5", "the:0.5 :0.5"),
    "spaces everywhere": ("E112", "   the:0.5    :0.5  ", "the:0.5 :0.5"),
    "spaces around a vector": ("E112", " -1 -1  -2 ", "-1 -1 -2"),
    "spaces on a line of logarithms": ("E112", " the:-1  :-1 ", "the:-1 :-1"),
    "a space and something else": ("E112 W202", " the:1  :1", "the:0.5 :0.5"),
    "a tiny bit above one": ("W201", "the:1.0000001", "the:1"),
    "as far above one as may be": ("W201", "the:1.000001 :0", "the:1 :0"),
    "a tiny bit below zero": ("W201", "the:1.0 :-1e-6", "the:1.0 :0"),
    "a word a tiny bit below zero": ("W201 W207", "the:0.5 a:-1e-9 :0.5", "the:0.5 :0.5"),
    "clipped, then above one": ("W201 W202", "the:1.0000001 a:1.0", "the:0.5 a:0.5"),
    "above one": ("W202", "the:1 :1", "the:0.5 :0.5"),
    "above one without a rest": ("W202", "the:0.9 a:0.9", "the:0.5 a:0.5"),
    "above one, a tiny value": ("W202", "the:1 a:1 of:0.0000002", "the:0.49999995000000497 a:0.49999995000000497 of:9.999999000000099e-08"),
    "above one by a little more than counts": ("W202", "the:0.5 :0.50000002", "the:0.4999999900000003 :0.5000000099999998"),
    "below one": ("W203", "the:0.25 :0.25", "the:0.5 :0.5"),
    "the rest alone, below one": ("W203", ":0.25", ":1"),
    "below one, a rest of zero": ("W203", "the:0.5 :0", "the:1 :0"),
    "a zero keeps its digits": ("W203", "the:0.50 :-0.00", "the:1 :-0.00"),
    "a repeated word": ("W206", "the:0.25 a:0.50 the:0.25", "the:0.5 a:0.50"),
    "a repeated word, no rest, below one": ("W206", "the:0.25 a:0.20 the:0.25", "the:0.5 a:0.20"),
    "several rests": ("W206", ":0.25 a:0.50 :0.25", ":0.5 a:0.50"),
    "repeated and above one": ("W202 W206", "a:0.75 a:0.75", "a:1"),
    "repeated, above one by less than counts": ("W206", "a:0.5 a:0.500000001", "a:1"),
    "repeated and below one": ("W203 W206", "a:0.125 :0.25 a:0.125", "a:0.5 :0.5"),
    "repeated, once with zero": ("W206 W207", "a:0.50 a:0 :0.5", "a:0.50 :0.5"),
    "a zero": ("W207", "the:0.50 a:0 :0.5", "the:0.50 :0.5"),
    "zeros of all kinds": ("W207", "b:0.0 the:0.50 a:-0 c:0e5 d:1e-999 :0.5", "the:0.50 :0.5"),
    "a zero without a rest": ("W207", "the:1.0 a:0", "the:1.0"),
    "a zero without a rest, below one": ("W207", "the:0.5 a:0", "the:0.5"),
    "a zero beside the rest alone": ("W207", "the:0 :1", ":1"),
    "a colon in a word": ("W207", "12:30:0 ::1", "::1"),
    "digits are kept": ("W207", "a:0 b:+2.50e-1 c:2500e-4 d:0.2500 :0.25000000000000000001", "b:+2.50e-1 c:2500e-4 d:0.2500 :0.25000000000000000001"),
    "the order is kept": ("W202", "z:1 :1 a:1 m:1", "z:0.25 :0.25 a:0.25 m:0.25"),
}  # fmt: skip

WITH_REST_MASS = {  # of 0.01
    "certainty": ("W204", "the:1", "the:0.99 :0.01"),
    "two words": ("W204", "the:0.50 a:0.5", "the:0.495 a:0.495 :0.01"),
    "a rest of zero": ("W204", "the:1.0 :0", "the:0.99 :0.01"),
    "a rest of zero in front": ("W204", ":0 the:1.0", ":0.01 the:0.99"),
    "two rests of zero": ("W204 W206", ":0 the:1.0 :0", ":0.01 the:0.99"),
    "above one": ("W202 W204", "the:1 a:1", "the:0.495 a:0.495 :0.01"),
    "a rest of zero, below one": ("W203 W204", "the:0.5 :0", "the:0.99 :0.01"),
    "a zero": ("W204 W207", "the:1 a:0", "the:0.99 :0.01"),
    "a tiny bit above one": ("W201 W204", "the:1.0000001", "the:0.99 :0.01"),
    "there is a rest": ("", "the:0.999999999 :1e-9", "the:0.999999999 :1e-9"),
    "there is room for one": ("", "the:0.99", "the:0.99"),
    "there is just room for one": ("", "the:0.99999998", "the:0.99999998"),
    "logarithms": ("", "the:0", "the:0"),
}

LEFT_ALONE = {
    "good": "the:0.50 :0.5",
    "good without a rest": "the:0.5 a:0.20",
    "no mass left": "the:1",
    "above one by less than counts": "the:0.5 :0.500000001",
    "below one by less than counts": "the:0.5 :0.499999999",
    "the rest is zero": "the:1 :0",
    "only spaces": "   ",
    "empty": "",
    "a stray space and no colon": " the:0.5  a",
    "a stray space and not a number": "the:.5  a:1 a:1",
    "a number too large": " the:1e999",
    "a no-break space": "\u00a0the:0.5 :0.5",
    "TABs": "\tthe:0.5 :0.5\t",
    "a vector": "0 0.7 0.7",
    "logarithms": "the:-0.5 a:-1 the:-1",
    "logarithms, a zero": "the:-0.5 a:0 a:-1",
    "logarithms near zero": "the:-1e-7 :0",
    "nothing but zeros": "the:0 a:0 a:0",
    "the rest alone, zero": ":0",
    "too far above one": "the:1.0000011 :0",
    "too far below zero": "the:0.5 :0.5 a:-1.1e-6",
    "the masses are too small to be divided": "the:1 :1 a:3e-308",
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


def test_adding_up_must_not_make_a_total_good_by_rounding():
    """It would take the rest's mass away, and the loss of a miss would be infinite."""
    parts = [0.1, 0.2, 0.3]
    big = LEAST_TOTAL - 0.6
    words = [("a", parts[0]), ("b", big), ("a", parts[1]), ("a", parts[2])]
    found = 0
    for steps in range(-40, 41):
        words[1] = ("b", big + steps * 2**-54)
        line = " ".join(f"{word}:{value!r}" for word, value in words)
        mended, rules = fix_line(line)
        found += not rules
        assert line_loss(mended, "unlisted", 10, 1) == pytest.approx(line_loss(line, "unlisted", 10, 1), rel=1e-9)
    assert found


@pytest.mark.parametrize("rest_mass", [0, 1, -0.1, 1.5, float("nan")])
def test_rest_mass_outside_its_range(rest_mass, tmp_path):
    message = f"the rest mass is {rest_mass!r}, which is not between 0 and 1 (both excluded)"
    for call in (lambda: fix_line("the:1", rest_mass=rest_mass), lambda: fix_file("none", rest_mass=rest_mass)):
        with pytest.raises(UsageError) as caught:
            call()
        assert str(caught.value) == message


def test_the_rules_that_are_mended_are_the_fixable_ones():
    tables = [*LINES.values(), *WITH_REST_MASS.values()]
    applied = {code for rules, _, _ in tables for code in rules.split()} | {"W210", "W211"}
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


@settings(PROPERTY, max_examples=600)
@given(probability_lines, expected_words, st.sampled_from([1, 4, 10]), st.sampled_from([1, 2, 17, 2**32 + 5]), stray)
def test_every_loss_is_kept(line, word, bits, number, counts):
    """A fix that is meant to keep the distribution keeps every loss to 1e-9 (for E112: of the line without its spaces)."""
    loss = line_loss(line, word, bits, number)
    for before in (line, with_stray_spaces(line, counts)):
        after, rules = fix_line(before)
        assert rules <= {"E112", "W202", "W203", "W206", "W207"}
        assert same_loss(line_loss(after, word, bits, number), loss)


@settings(PROPERTY, max_examples=600)
@given(any_lines, rest_masses)
def test_a_second_run_changes_nothing(line, rest_mass):
    once, rules = fix_line(line, rest_mass=rest_mass)
    assert (once == line) == (not rules)
    assert fix_line(once, rest_mass=rest_mass) == (once, UNCHANGED)


@settings(PROPERTY, max_examples=600)
@given(st.one_of(probability_lines, lines_of(near_probabilities)), rest_masses)
def test_nothing_is_left_to_mend(line, rest_mass):
    """The mended line holds probabilities that sum to one, each word once, no zeros."""
    assume(not any(0 < abs(value) < 1e-290 for value in parse_line(line).values))
    mended, rules = fix_line(line, rest_mass=rest_mass)
    found = parse_line(mended)
    assume(rules or are_probabilities(list(found.values)))
    total = sum_in_order(found.values)
    assert are_probabilities(list(found.values))
    assert total <= 1 + TOLERANCE
    assert total >= LEAST_TOTAL or "" not in found.words
    assert len(set(found.words)) == len(found.words)
    assert all(value for word, value in zip(found.words, found.values, strict=True) if word)


@PROPERTY
@given(any_lines)
def test_a_line_that_cannot_be_read_is_left_alone(line):
    mended, _ = fix_line(line)
    try:
        parse_line(mended)
    except MalformedLineError:
        assert mended == line


@pytest.mark.parametrize("count", [3, 49, 1000, 100_000])
def test_rounding_in_a_long_line(count):
    line = " ".join(f"w{i}:0.7" for i in range(count))
    mended, rules = fix_line(line)
    assert rules == {"W202"}
    assert sum_in_order(parse_line(mended).values) == pytest.approx(1, abs=1e-10)
    assert fix_line(mended) == (mended, UNCHANGED)


# Files.

BEFORE = "the:1 :1\nthe:0.50 :0.5\r\nżółw:0.5  :0.5\n水:0 :1\n-1 -2\nthe 0.5\n\nthe:1\n".encode()
AFTER = "the:0.5 :0.5\nthe:0.50 :0.5\nżółw:0.5 :0.5\n:1\n-1 -2\nthe 0.5\n\nthe:1\n".encode()
CHANGES = {"E112": 1, "W202": 1, "W207": 1, "W210": 1}
DIFF = [
    (1, "the:1 :1", "the:0.5 :0.5"),
    (2, "the:0.50 :0.5\r", "the:0.50 :0.5"),
    (3, "żółw:0.5  :0.5", "żółw:0.5 :0.5"),
    (4, "水:0 :1", ":1"),
]
COMPRESS = {None: bytes, "gzip": gzip.compress, "xz": lzma.compress, "bzip2": bz2.compress, "zstd": zstd.compress}
DECOMPRESS = {
    None: bytes,
    "gzip": gzip.decompress,
    "xz": lzma.decompress,
    "bzip2": bz2.decompress,
    "zstd": zstd.decompress,
}
each_compression = pytest.mark.parametrize("kind", COMPRESS)


@pytest.fixture
def output(tmp_path):
    """Store bytes as an output file; gives its path."""

    def store(data=BEFORE, name="out.tsv"):
        (tmp_path / name).write_bytes(data)
        return tmp_path / name

    return store


def names(path):
    return sorted(os.listdir(path.parent))


def test_file(output):
    path = output()
    fixed = fix_file(str(path))
    assert path.read_bytes() == AFTER
    assert fixed.path == str(path)
    assert fixed.lines == 8
    assert fixed.changes == CHANGES
    assert fixed.diff == DIFF
    assert fixed.backup_path == f"{path}.orig"
    assert names(path) == ["out.tsv", "out.tsv.orig"]
    assert (path.parent / "out.tsv.orig").read_bytes() == BEFORE


def test_a_second_run_leaves_the_file_alone(output):
    path = output()
    fix_file(str(path), backup=False)
    os.utime(path, ns=(1, 1))
    fixed = fix_file(str(path))
    assert (fixed.changes, fixed.diff, fixed.backup_path, fixed.lines) == ({}, [], None, 8)
    assert path.stat().st_mtime_ns == 1
    assert names(path) == ["out.tsv"]


@each_compression
def test_compressed_as_before(output, kind):
    path = output(COMPRESS[kind](BEFORE), "out.tsv.any")
    fixed = fix_file(str(path))
    assert fixed.changes == CHANGES
    assert DECOMPRESS[kind](path.read_bytes()) == AFTER
    source = Source(str(path))
    source.close()
    assert source.compression == kind
    assert DECOMPRESS[kind]((path.parent / "out.tsv.any.orig").read_bytes()) == BEFORE


@each_compression
def test_all_members_are_read(output, kind):
    path = output(COMPRESS[kind](BEFORE) + COMPRESS[kind](BEFORE), "out.tsv.any")
    assert fix_file(str(path)).lines == 16
    assert DECOMPRESS[kind](path.read_bytes()) == AFTER * 2


def test_more_than_a_block(output):
    path = output(BEFORE * 60_000)
    fixed = fix_file(str(path))
    assert path.read_bytes() == AFTER * 60_000
    assert fixed.changes == {code: count * 60_000 for code, count in CHANGES.items()}
    assert fixed.lines == 480_000
    assert len(fixed.diff) == fixes.DIFF_LINES
    assert fixed.diff[5] == (10, *DIFF[1][1:])


def test_rest_mass_of_a_file(output):
    path = output(b"the:1\nthe:0.5 :0.5\nthe:1 :0\n")
    fixed = fix_file(str(path), rest_mass=0.01)
    assert path.read_bytes() == b"the:0.99 :0.01\nthe:0.5 :0.5\nthe:0.99 :0.01\n"
    assert fixed.changes == {"W204": 2}


FILES = {  # before, after, changes
    "nothing": (b"", b"", {}),
    "no final line end": (b"the:1\nthe:1", b"the:1\nthe:1", {}),
    "no final line end, mended": (b"the:1 :1\nthe:1", b"the:0.5 :0.5\nthe:1\n", {"W202": 1}),
    "blank lines at the end": (b"the:1 :1\n\n\n", b"the:0.5 :0.5\n\n\n", {"W202": 1}),
    "carriage returns": (b"the:1\r\n:1\r\nthe:0.5\r\n", b"the:1\n:1\nthe:0.5\n", {"W210": 3}),
    "carriage returns inside": (b"t\rhe:0.\r5 :0.5\r\r\n", b"the:0.5 :0.5\n", {"W210": 1}),
    "a carriage return alone on a line": (b"\r\nthe:1\n", b"\nthe:1\n", {"W210": 1}),
    "a carriage return at the very end": (b":1\nthe:1\r", b":1\nthe:1\n", {"W210": 1}),
    "a byte order mark": (BOM + b"the:1\n:1\n", b"the:1\n:1\n", {"W211": 1}),
    "a byte order mark and nothing": (BOM, b"", {"W211": 1}),
    "a byte order mark and a space": (BOM + b" the:1\n", b"the:1\n", {"E112": 1, "W211": 1}),
    "two byte order marks": (BOM + BOM + b"the:1\n", b"the:1\n", {"W211": 1}),
    "a byte order mark that comes to the front": (b"\r " + BOM + b"the:1\n", b"the:1\n", {"E112": 1, "W210": 1, "W211": 1}),
    "a byte order mark elsewhere": (b":1\n" + BOM + b"the:1\n", b":1\n" + BOM + b"the:1\n", {}),
    "not UTF-8": (b"\xff\xfe:1  :1\r\n:1\nthe:1 :1\n", b"\xff\xfe:1  :1\n:1\nthe:0.5 :0.5\n", {"W202": 1, "W210": 1}),
    "not UTF-8 after a byte order mark": (BOM + b"\xe9t\xe9:1 \n", b"\xe9t\xe9:1 \n", {"W211": 1}),
    "UTF-16": ("the:1 :1\r\n".encode("utf-16"), "the:1 :1\r\n".encode("utf-16"), {}),
    "a NUL": (b"a\0:1  :1\r\n", b"a\0:1  :1\r\n", {}),
    "other line ends": ("a\u2028\x0b\x0c\x85b:1 :1\n".encode(), "a\u2028\x0b\x0c\x85b:0.5 :0.5\n".encode(), {"W202": 1}),
}  # fmt: skip


@pytest.mark.parametrize(("before", "after", "changes"), FILES.values(), ids=FILES)
def test_bytes_of_a_file(output, before, after, changes):
    path = output(before)
    lines = list(read_lines(str(path)))
    fixed = fix_file(str(path))
    assert path.read_bytes() == after
    assert fixed.changes == changes
    assert fixed.lines == len(lines) == len(list(read_lines(str(path))))
    assert (fixed.backup_path is not None) == bool(changes)
    assert fix_file(str(path)).changes == {}


@PROPERTY
@given(
    st.lists(st.one_of(any_lines.map(str.encode), st.binary(max_size=9)), max_size=6),
    st.sampled_from([b"", BOM, b"\r"]),
)
def test_line_numbers_stay(tmp_path_factory, lines, start):
    """Line for line: as many lines as before, in a second run no change."""
    path = tmp_path_factory.mktemp("fix") / "out.tsv"
    path.write_bytes(start + b"\n".join(lines))
    before = len(list(read_lines(str(path))))
    assert fix_file(str(path), backup=False).lines == before
    assert len(list(read_lines(str(path)))) == before
    assert fix_file(str(path), backup=False).changes == {}


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CR LF"])
def test_a_file_keeps_its_losses(output, newline):
    """Dropping carriage returns and stray bytes of the format changes no loss."""
    lines = ["the:0.5 a:0.25 the:0.5 :0.25", "the:0.2 :0.2", "a:0 the:1", "the:0.5"]
    path = output("".join(line + newline for line in lines).encode())
    before = list(read_lines(str(path)))
    fix_file(str(path))
    pairs = enumerate(zip(before, read_lines(str(path)), strict=True), 1)
    for number, (one, other) in pairs:
        for word in ("the", "a", "unlisted"):
            assert same_loss(line_loss(other, word, 10, number), line_loss(one, word, 10, number))


def test_without_writing(output):
    path = output()
    os.utime(path, ns=(1, 1))
    fixed = fix_file(str(path), write=False)
    assert (fixed.changes, fixed.diff, fixed.backup_path, fixed.lines) == (CHANGES, DIFF, None, 8)
    assert path.read_bytes() == BEFORE
    assert path.stat().st_mtime_ns == 1
    assert names(path) == ["out.tsv"]


def test_the_diff_is_limited(output):
    assert fix_file(str(output()), diff_lines=2).diff == DIFF[:2]


def test_the_diff_shows_a_byte_order_mark_and_undecodable_bytes(output):
    path = output(BOM + b"\xffa:1\r\n")
    assert fix_file(str(path)).diff == [(1, "\ufeff\ufffda:1\r", "\ufffda:1")]


def test_no_backup(output):
    path = output()
    assert fix_file(str(path), backup=False).backup_path is None
    assert path.read_bytes() == AFTER
    assert names(path) == ["out.tsv"]


def test_a_backup_is_never_overwritten(output):
    first = output(b"my own\n", "out.tsv.orig")
    for ending in (".orig.1", ".orig.2"):
        path = output()
        assert fix_file(str(path)).backup_path == str(path) + ending
        assert (path.parent / f"out.tsv{ending}").read_bytes() == BEFORE
    assert first.read_bytes() == b"my own\n"
    assert names(path) == ["out.tsv", "out.tsv.orig", "out.tsv.orig.1", "out.tsv.orig.2"]


def test_a_dangling_link_is_not_overwritten_by_a_backup(output):
    path = output()
    os.symlink("nowhere", f"{path}.orig")
    assert fix_file(str(path)).backup_path == f"{path}.orig.1"
    assert os.readlink(f"{path}.orig") == "nowhere"


def test_a_file_system_without_links(output, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    output(b"my own\n", "out.tsv.orig")
    path = output()
    path.chmod(0o640)
    backup = fix_file(str(path)).backup_path
    assert backup == f"{path}.orig.1"
    assert (path.parent / "out.tsv.orig.1").read_bytes() == BEFORE
    assert stat.S_IMODE(os.stat(backup).st_mode) == 0o640
    assert path.read_bytes() == AFTER


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664, 0o755])
def test_permissions_are_kept(output, mode):
    path = output()
    path.chmod(mode)
    fixed = fix_file(str(path))
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert stat.S_IMODE(os.stat(fixed.backup_path).st_mode) == mode


def test_a_name_without_a_folder(output, monkeypatch):
    path = output()
    monkeypatch.chdir(path.parent)
    assert fix_file("out.tsv").backup_path == "out.tsv.orig"
    assert names(path) == ["out.tsv", "out.tsv.orig"]


class InterruptionError(Exception):
    pass


@each_compression
def test_an_error_half_way_leaves_all_as_it_was(output, kind, monkeypatch):
    """The temporary file is there, beside the output, while it is written; then it is gone."""
    data = COMPRESS[kind](BEFORE)
    path = output(data)
    seen = []

    def interrupt(text, *, rest_mass):
        if text == "the 0.5":
            seen.extend(names(path))
            raise InterruptionError
        return fix_line(text, rest_mass=rest_mass)

    monkeypatch.setattr(fixes, "fix_line", interrupt)
    with pytest.raises(InterruptionError):
        fix_file(str(path))
    assert len(seen) == 2
    assert seen[0].startswith(".geval-fix-")
    assert names(path) == ["out.tsv"]
    assert path.read_bytes() == data


def failing(error):
    def fail(*_, **__):
        raise error

    return fail


@pytest.mark.parametrize("where", ["os.replace", "os.chmod", "tempfile.mkstemp"])
def test_a_file_that_cannot_be_replaced(output, where, monkeypatch):
    path = output()
    monkeypatch.setattr(where, failing(OSError(errno.ENOSPC, "No space left on device")))
    with pytest.raises(UsageError) as caught:
        fix_file(str(path))
    assert str(caught.value) == f"Cannot mend `{path}`: No space left on device"
    assert names(path) == ["out.tsv"]
    assert path.read_bytes() == BEFORE


def test_a_backup_that_cannot_be_finished(output, monkeypatch):
    path = output()
    monkeypatch.setattr(os, "link", failing(OSError(errno.EPERM, "Operation not permitted")))
    monkeypatch.setattr("shutil.copyfileobj", failing(OSError(errno.ENOSPC, "No space left on device")))
    with pytest.raises(UsageError, match="No space left on device"):
        fix_file(str(path))
    assert names(path) == ["out.tsv"]
    assert path.read_bytes() == BEFORE


def test_the_output_is_never_missing(output, monkeypatch):
    """Before the last step both the output and its backup hold the original."""
    path = output()
    replace = os.replace

    def look(temporary, target):
        assert path.read_bytes() == (path.parent / "out.tsv.orig").read_bytes() == BEFORE
        replace(temporary, target)

    monkeypatch.setattr(os, "replace", look)
    fix_file(str(path))
    assert path.read_bytes() == AFTER


@pytest.mark.parametrize("write", [True, False], ids=["written", "shown"])
def test_a_truncated_file(output, write):
    data = gzip.compress(BEFORE * 1000)[:-9]
    path = output(data)
    with pytest.raises(CorruptFileError):
        fix_file(str(path), write=write)
    assert names(path) == ["out.tsv"]
    assert path.read_bytes() == data


@pytest.mark.parametrize("write", [True, False], ids=["written", "shown"])
def test_a_file_that_cannot_be_read(output, write, monkeypatch):
    path = output()
    monkeypatch.setattr("builtins.open", failing(PermissionError(errno.EACCES, "Permission denied")))
    with pytest.raises(UnreadableFileError) as caught:
        fix_file(str(path), write=write)
    assert str(caught.value) == f"Cannot read `{path}`: Permission denied"
    assert names(path) == ["out.tsv"]


@pytest.mark.parametrize("name", ["none.tsv", "none/out.tsv", "a\0b"])
def test_a_file_that_is_not_there(tmp_path, name):
    with pytest.raises(UnreadableFileError):
        fix_file(f"{tmp_path}/{name}")
    assert not os.listdir(tmp_path)


def make_pipe(path):
    os.mkfifo(path)


REFUSED = {
    "a link": (lambda path: os.symlink("target.tsv", path), "it is a symbolic link; name the file that it leads to"),
    "a link to itself": (
        lambda path: os.symlink(path, path),
        "it is a symbolic link; name the file that it leads to",
    ),
    "a folder": (os.mkdir, "it is a folder, not a file"),
    "a pipe": (make_pipe, "it is not a regular file"),
}


@pytest.mark.parametrize(("make", "reason"), REFUSED.values(), ids=REFUSED)
def test_refused(output, make, reason):
    target = output(name="target.tsv")
    path = target.parent / "out.tsv"
    make(path)
    with pytest.raises(UsageError) as caught:
        fix_file(str(path))
    assert str(caught.value) == f"Cannot mend `{path}`: {reason}"
    assert target.read_bytes() == BEFORE
    assert names(path) == ["out.tsv", "target.tsv"]


@pytest.mark.parametrize(
    ("path", "name"), [("-", "standard input"), ("https://example.org/o", "`https://example.org/o`")]
)
def test_only_files(path, name):
    with pytest.raises(UsageError) as caught:
        fix_file(path)
    assert str(caught.value) == f"Cannot mend {name}: it is not a file"
