"""The two kernels give the same, whichever is asked and however the work is cut."""

import math
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from profiles import examples
from raising import refused

from geval_py import errors
from geval_py.scoring import kernel as flags
from geval_py.scoring.kernel import _native, reference
from geval_py.scoring.kernel import backends as kernel

NUMBER = st.one_of(
    st.floats(0, 1).map(repr), st.floats(-50, 5).map("{:.6f}".format),
    st.floats(allow_nan=False, allow_infinity=False).map(repr), st.integers(-3, 3).map(str),
    st.sampled_from(["+0.5", "-0", "1e-400", "-1e-9", "1E5", "0.1e+1", "00.50", "1e400", "800", "-800"]),
    st.decimals(0, 1, places=25).map("{:f}".format),
)  # fmt: skip
GOOD_WORD = st.text(st.characters(blacklist_characters=" \n\r", blacklist_categories=["Cs"]), max_size=12)
WORD = st.one_of(st.just(""), st.sampled_from(["the", "ka:lo", "place,", "ą", "x:0.1,y", "K"]), GOOD_WORD)
ENTRIES = st.lists(st.tuples(WORD, NUMBER).map(":".join), min_size=1, max_size=6).map(" ".join)
VECTOR = st.lists(NUMBER, min_size=1, max_size=8).map(" ".join)
NOISE = st.text(st.sampled_from(": .-+eE019ax,;\t\r\x00\x7f水"), max_size=20)
LINE = st.one_of(ENTRIES, VECTOR, NOISE, st.binary(max_size=20).map(lambda b: b.replace(b"\n", b"")))


def as_bytes(line):
    return line if isinstance(line, bytes) else line.encode()


def assert_the_same(*block):
    losses, marks = kernel.WRAPPED["score_lines"](*block)
    true_losses, true_marks = reference.score_lines(*block)
    assert list(marks) == list(true_marks), block
    assert list(losses) == pytest.approx(list(true_losses), rel=1e-12, abs=1e-12, nan_ok=True), block


@settings(deadline=None, max_examples=examples(400))
@given(
    lines=st.lists(st.tuples(LINE, GOOD_WORD), max_size=6), bits=st.sampled_from([1, 2, 3, 10, 24]),
    first_line=st.sampled_from([1, 7, 2**32 - 1, 2**40]), ended=st.booleans(),
)  # fmt: skip
@example(lines=[("a:1 b:1e-8", "a")], bits=10, first_line=1, ended=True)
@example(lines=[("a:0.99999999", "b"), ("a:0.99999998", "b")], bits=1, first_line=1, ended=False)
def test_both_backends_agree(lines, bits, first_line, ended):
    outputs = b"\n".join(as_bytes(line) for line, _ in lines)
    expected = "\n".join(word for _, word in lines).encode()
    if ended or (lines and not as_bytes(lines[-1][0])) or (lines and not lines[-1][1]):
        outputs, expected = outputs + b"\n" * bool(lines), expected + b"\n" * bool(lines)
    assert_the_same(outputs, expected, bits, first_line)


@settings(deadline=None, max_examples=examples(200))
@given(st.lists(st.one_of(ENTRIES, VECTOR), min_size=1, max_size=6), st.sampled_from([1, 2, 24]))
def test_both_backends_bound_losses_alike(lines, bits):
    """The bound is the loss of a word in a bucket that no word of the line is in, or of a vector's least bucket."""
    outputs, unlisted = "".join(f"{line}\n" for line in lines).encode(), b"unlisted\xf0\x9f\x9c\x82\n" * len(lines)
    try:
        losses, bound, far_above_one = reference.bounded_losses(outputs, unlisted, bits, 1)
    except errors.MalformedLineError:
        return
    _, native_bound, native_count = _native.bounded_losses(outputs, unlisted, bits, 1)
    assert native_count == far_above_one
    assert native_bound == pytest.approx(bound, rel=1e-12, abs=1e-12)
    assert bound >= max(losses) - 1e-12
    if bits == 24:
        assert bound == pytest.approx(max(losses), rel=1e-12, abs=1e-12)


POSITIVE = st.floats(0, allow_nan=False, allow_infinity=False)


@settings(deadline=None, max_examples=examples(2000))
@given(st.one_of(st.floats(0, 1), st.floats(0, 1e-30), POSITIVE), st.integers(1, 25))
@example(5e-324, 20)
@example(2.2250738585072011e-308, 25)
@example(0.5000000000000001, 17)
def test_numbers_are_read_to_the_last_bit(value, places):
    for text in (repr(value), f"{value:.{places}e}", f"{value:.{places}f}", f"-{value:.{places}f}", f"+{value!r}"):
        read = _native.read_number(text.encode())
        assert (read, math.copysign(1, read)) == (float(text), math.copysign(1, float(text))), text


@pytest.mark.parametrize("text", ["0" * 400 + "1e309", "0." + "0" * 400 + "1e800", "-0." + "0" * 30 + "1e400"])
def test_leading_zeros_do_not_hide_a_number_that_is_too_large(text):
    assert math.isinf(_native.read_number(text.encode()))


ABOVE_LOGARITHMS = flags.LOGARITHMS | flags.ABOVE_ONE | flags.FAR_ABOVE_ONE
FLAGGED = [
    ("the:0.5 :0.5", flags.HAS_REST), ("the:0.5 of:0.5", 0), (":1", flags.HAS_REST | flags.REST_ALONE),
    (":0", flags.HAS_REST | flags.REST_ALONE | flags.LOGARITHMS | flags.ALL_ZERO),
    ("a:0.5 :0", flags.HAS_REST | flags.ZERO_REST | flags.BELOW_ONE),
    ("a:0 b:0.5 :0.5", flags.HAS_REST | flags.ZERO_ENTRY),
    ("a:0 b:0", ABOVE_LOGARITHMS | flags.ZERO_ENTRY | flags.ALL_ZERO), ("a:0.5 b:0.25 a:0.25", flags.REPEATED),
    ("longer-than-eight:0.5 longer-than-eighty:0.5", 0),
    (":0.5 :0.5", flags.HAS_REST | flags.REST_ALONE | flags.REPEATED), ("a:0.9 b:0.3", flags.ABOVE_ONE),
    ("a:0.90000000 b:0.10000001", 0), ("a:0.90000000 b:0.10000002", flags.ABOVE_ONE | flags.ROUNDED),
    ("a:0.5", flags.BELOW_ONE),
    ("a:-1e-9 b:0.5", flags.LOGARITHMS | flags.ABOVE_ONE | flags.LOOKS_LIKE_PROBABILITIES),
    ("a:-1e-9 b:-0.5", ABOVE_LOGARITHMS), ("a:-1e-9 b:-0.7", flags.LOGARITHMS | flags.ABOVE_ONE),
    ("a:120 :60", flags.HAS_REST | ABOVE_LOGARITHMS),
    ("a:0.5 b:0.5 c:-0.5", ABOVE_LOGARITHMS | flags.LOOKS_LIKE_PROBABILITIES),
    ("0 -0.5", flags.VECTOR | ABOVE_LOGARITHMS),
    ("a:-1e-9 b:0.5 :0.5", flags.HAS_REST | flags.LOGARITHMS | flags.ABOVE_ONE | flags.LOOKS_LIKE_PROBABILITIES),
    ("a:-3", flags.LOGARITHMS | flags.BELOW_ONE), ("-1 -1", flags.VECTOR | flags.LOGARITHMS | flags.BELOW_ONE),
    ("A:1", flags.CAPITAL), ("a\r:1", flags.CARRIAGE_RETURN), ("a\t:1", flags.CONTROL), ("a\x7f:1", flags.CONTROL),
    ("ą:1", flags.NOT_ASCII), ("a:1e-281 :1", flags.HAS_REST | flags.TINY), ("place,:1", 0),
    ("a:0.5,b:1", flags.SEPARATOR), ("a:0.5;b:1", flags.SEPARATOR), ("a:0.5\tb:1", flags.SEPARATOR | flags.CONTROL),
    ("1870,b:1", 0), ("5:00,:1", 0), ("5:00;:1", 0), ("a", flags.MALFORMED | flags.NO_COLON),
    ("A:0,5\r", flags.MALFORMED | flags.NOT_A_NUMBER | flags.CAPITAL | flags.CARRIAGE_RETURN),
    ("", flags.MALFORMED | flags.EMPTY_LINE),
]  # fmt: skip


@pytest.mark.parametrize(("line", "want"), FLAGGED, ids=lambda v: repr(v) if isinstance(v, str) else "")
def test_flags(line, want, kernel):
    _, marks = kernel.score_lines(f"{line}\n".encode(), b"x\n", 1, 1)
    assert list(marks) == [want]


ERRORS = {
    "": flags.EMPTY_LINE, "\r": flags.EMPTY_LINE, " ": flags.STRAY_SPACE, "1 ": flags.STRAY_SPACE,
    " 1": flags.STRAY_SPACE, "1  x": flags.STRAY_SPACE, "a:1  b:x": flags.STRAY_SPACE, "a:1 ": flags.STRAY_SPACE,
    " a:x": flags.STRAY_SPACE, "word": flags.NO_COLON, "nan": flags.NO_COLON, "0,5 0,5": flags.NO_COLON,
    "a b:x": flags.NO_COLON, "a:1 b": flags.NO_COLON, "a:1e999 b": flags.NO_COLON, "1 x": flags.NO_COLON,
    "1 x nan": flags.NO_COLON, "1 2x": flags.NO_COLON, "a:": flags.NOT_A_NUMBER, ":": flags.NOT_A_NUMBER,
    "a:1: ": flags.NOT_A_NUMBER, "a:x  b:1": flags.NOT_A_NUMBER, "a:1e999 b:.5": flags.NOT_A_NUMBER,
    "1 nan": flags.NOT_A_NUMBER, "1 １": flags.NOT_A_NUMBER, "1 水": flags.NO_COLON, "1 \u0130nf": flags.NOT_A_NUMBER,
    "1 2 3": flags.WRONG_LENGTH, "1 1e999": flags.NUMBER_TOO_LARGE, "a:1e999": flags.NUMBER_TOO_LARGE,
    "b:c:-1e999 a:1": flags.NUMBER_TOO_LARGE,
}  # fmt: skip


@pytest.mark.parametrize(("line", "kind"), ERRORS.items(), ids=lambda v: repr(v) if isinstance(v, str) else "")
def test_the_kind_of_an_error(line, kind, kernel):
    """The first one counts, left to right; a number too large only if there is no other."""
    _, marks = kernel.score_lines(f"{line}\n:1\n{line}\n".encode(), b"x\n" * 3, 10, 1)
    assert [mark & flags.ERROR_KINDS for mark in marks] == [kind, 0, kind]


MISTAKE = st.text(st.sampled_from("+-.,%eExX0127nNaAiIfFtTyY_' \t\x1c\u0130１"), max_size=8)
MISTAKES = st.sampled_from([
    "0,5", "0,5e", "50%", "1.,5\t%", "5.,5", "-nan", "+NaN", "inf", "-Infinity", "infin", ".5", "+.5e-3", ".5e", "5.",
    "1e", "1.5E+", "1.e", "0x", "-0Xyz", "00x1", "1_000", "1'000'000.5", "1_", "1__0", "1_0.", "--", "+-1", "-", "_1",
])  # fmt: skip


@settings(deadline=None, max_examples=examples(1000))
@given(st.one_of(MISTAKE, MISTAKES), st.sampled_from(["1 ", "-2.5 1e5 ", ""]), st.sampled_from(["", " 3", " x"]))
@example("1'0%", "1 ", "")
def test_mistaken_numbers_are_told_apart_alike(mistake, before, after):
    """A vector with a mistaken number is E114, a line of plain words E113: the patterns are those of wordprobs."""
    line = f"{before}{mistake}{after}\n".encode()
    (want,) = reference.score_lines(line, b"x\n", 10, 1)[1]
    (got,) = kernel.WRAPPED["score_lines"](line, b"x\n", 10, 1)[1]
    assert got == want
    _, (raw,), undecided = _native.score_lines(line, b"x\n", 10, 1)
    assert undecided == (-1 if line.isascii() or not want & flags.MALFORMED else undecided)
    assert raw in {want, want & ~flags.ERROR_KINDS}


EXPLAINED = [  # a line whose sum is off, whether rounding explains it
    ("a:0.333333 b:0.333333 c:0.333333 :0.000002", True), ("a:0.333333 b:0.333333 c:0.333336 :0.000000", True),
    ("a:0.333333 b:0.333333 c:0.333337 :0.000000", False), ("a:0.5 b:0.4", True), ("a:0.5 b:0.39", False),
    ("a:0.5 b:0.6", True), ("a:0.5 b:0.61", False), ("a:1 b:1", False), ("a:1 b:1e-7", False),
    ("a:0.9999999 b:1.5e-7", True), ("a:1 b:2e-1", False), ("a:1 b:15E-2", False), ("a:1 b:1.5e-7", False),
    ("a:1 b:1.5e-8", False), ("a:1 b:0.1e-00000000000000000000000000000000008", False), ("a:0.9e+0 b:0.2e0", True),
    ("a:1 b:1.00e2", False), ("a:1 b:0.0000000200000000000000000000", False),
    ("a:1 b:1 c:0e-99999999999999999999", False), ("x:y:1.0 z:0.050", True), ("x:y:1.0 z:0.051", False),
]  # fmt: skip


@pytest.mark.parametrize(("line", "explained"), EXPLAINED, ids=lambda v: repr(v) if isinstance(v, str) else "")
def test_rounding_explains_half_a_unit_in_each_last_place(line, explained, kernel):
    (mark,) = kernel.score_lines(f"{line}\n".encode(), b"x\n", 10, 1)[1]
    assert bool(mark & flags.ROUNDED) == explained


@settings(deadline=None)
@given(st.lists(st.floats(0.001, 1), min_size=1, max_size=60), st.integers(1, 17), st.sampled_from("fe"))
def test_a_distribution_that_was_rounded_is_never_off_by_more_than_rounding(weights, places, kind):
    """Whatever the number of digits, written plainly or with an exponent."""
    total = math.fsum(weights)
    line = " ".join(f"w{i}:{weight / total:.{places}{kind}}" for i, weight in enumerate(weights)) + " :0\n"
    (mark,) = kernel.WRAPPED["score_lines"](line.encode(), b"x\n", 10, 1)[1]
    assert mark & flags.ROUNDED or not mark & (flags.ABOVE_ONE | flags.BELOW_ONE)


def choose(monkeypatch, value):
    kernel.choose_backend.cache_clear()
    if value is None:
        monkeypatch.delenv("GEVAL_PY_BACKEND", raising=False)
    else:
        monkeypatch.setenv("GEVAL_PY_BACKEND", value)
    try:
        return kernel.choose_backend()
    finally:
        kernel.choose_backend.cache_clear()


@pytest.mark.parametrize(("value", "name"), [(None, "native"), ("native", "native"), ("python", "python")])
def test_the_backend_is_chosen_by_the_environment(value, name, monkeypatch):
    assert choose(monkeypatch, value) == name


def test_an_unknown_backend_is_an_error(monkeypatch):
    with refused("GEVAL_PY_BACKEND is `fast\\x1b`; it may be native or python"):
        choose(monkeypatch, "fast\x1b")


def test_a_missing_native_backend(monkeypatch):
    monkeypatch.setitem(sys.modules, "geval_py.scoring.kernel._native", None)
    monkeypatch.delattr(flags, "_native", raising=False)
    assert choose(monkeypatch, None) == "python"
    with refused("GEVAL_PY_BACKEND is native, but the native kernel was not built with this package"):
        choose(monkeypatch, "native")


def install_without_kernel(folder):
    """Make the package as it is installed where no compiler is found."""
    package = Path(kernel.__file__).parent.parent.parent
    shutil.copytree(package, folder / "geval_py", ignore=shutil.ignore_patterns("_native*"))
    code = (  # a linked installation would find the kernel that it has built
        "import sys; sys.meta_path = [one for one in sys.meta_path if 'ScikitBuild' not in type(one).__name__]; "
        f"sys.path.insert(0, {str(folder)!r}); from geval_py.cli import main; sys.exit(main())"
    )
    return [sys.executable, "-I", "-c", code, "--version"]


def test_an_installation_without_a_compiler(tmp_path):
    command = install_without_kernel(tmp_path)
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout == "geval-py 0.1.0 (python backend)\n"


def test_a_native_kernel_that_cannot_be_loaded(tmp_path):
    command = install_without_kernel(tmp_path)
    (tmp_path / "geval_py/scoring/kernel/_native.abi3.so").write_bytes(b"broken")
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert run.stderr.startswith("geval: the native kernel cannot be loaded: ")
    assert run.stderr.endswith("\n  GEVAL_PY_BACKEND=python does without it\n")


ROOT = Path(__file__).parent.parent.parent
TARGETS = sorted(path.stem for path in (ROOT / "tests/fuzz").glob("*.cpp"))


def inputs(target):
    with zipfile.ZipFile(ROOT / f"tests/fuzz/corpora/{target}.zip") as archive:
        return [archive.read(name) for name in archive.namelist()]


def test_the_twin_agrees_on_the_fuzzers_lines():
    scored = 0
    for data in inputs("lines"):
        if b"\1" not in data[3:]:
            continue
        outputs, _, word = data[3:].rpartition(b"\1")
        lines = reference.count_lines(outputs)
        expected = (word.replace(b"\n", b"") + b"\n") * lines
        bits, first_line = 1 + data[0] % 24, int.from_bytes(data[1:3], "little")
        assert_the_same(outputs, expected, bits, first_line)
        scored += lines
    assert scored > 100


def test_each_target_has_a_corpus_and_is_run():
    script = (ROOT / "scripts/fuzz").read_text(encoding="utf-8")
    (native_targets,) = re.findall(r"^NATIVE=\((.*)\)$", script, re.MULTILINE)
    assert sorted(native_targets.split()) == TARGETS
    assert {path.stem for path in (ROOT / "tests/fuzz/corpora").glob("*.zip")} == set(TARGETS)
