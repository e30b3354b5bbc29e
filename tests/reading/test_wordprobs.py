"""An output line: what is read, what is refused and with which words, and what the line means."""

import json
import math
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from raising import refused

from geval_py.errors import MalformedLineError
from geval_py.reading import wordprobs
from geval_py.reading.wordprobs import Distribution, WordProbs, number_mistake, parse_line, parse_number
from geval_py.scoring.kernel import reference

PROPERTY = settings(deadline=None, derandomize=True)

# GEval 1.42.2, --metric LogLossHashed; inputs made up
BAD = json.loads((Path(__file__).parent.parent / "data/bad-lines.json").read_text(encoding="utf-8"))


def outcome(text, line=7):
    try:
        return parse_line(text, line)
    except MalformedLineError as error:
        return error


def malformed(text, line=7):
    """The error of a line in an output for a metric of 1024 buckets."""
    found = outcome(text, line)
    if isinstance(found, WordProbs) and found.words is None:
        return wordprobs.wrong_vector_length(text, line, len(found.values), 10)
    assert isinstance(found, MalformedLineError)
    return found


READ = {
    "one word": ("the:1", ("the",), (1.0,)), "the rest alone": (":1", ("",), (1.0,)),
    "the rest anywhere": (":0.5 the:0.5", ("", "the"), (0.5, 0.5)),
    "logarithms": ("the:-1.5 :-0.25", ("the", ""), (-1.5, -0.25)),
    "a word twice": ("the:0.5 the:0.25", ("the", "the"), (0.5, 0.25)),
    "colons in a word": ("zu:x:0.5 ::0.25 a::b:0.25", ("zu:x", ":", "a::b"), (0.5, 0.25, 0.25)),
    "not a separator: comma": ("ka:0.5,lo:0.5", ("ka:0.5,lo",), (0.5,)),
    "not a separator: TAB": ("ka:0.5\t:0.5", ("ka:0.5\t",), (0.5,)),
    "not a separator: no-break space": ("ka:0.5\u00a0lo:0.5", ("ka:0.5\u00a0lo",), (0.5,)),
    "other white space in a word": ("a\u2028\x0b\x85:1", ("a\u2028\x0b\x85",), (1.0,)),
    "signs": ("a:+0.5 b:-0 c:+1e+2", ("a", "b", "c"), (0.5, -0.0, 100.0)),
    "exponents": ("a:1e-3 b:1.5E2 c:2e0", ("a", "b", "c"), (0.001, 150.0, 2.0)),
    "leading zeros": ("a:007.50 b:1e007", ("a", "b"), (7.5, 1e7)),
    "too small is 0": ("a:1e-400 b:-1e-400", ("a", "b"), (0.0, -0.0)),
    "the greatest": ("a:1.7976931348623157e308", ("a",), (1.7976931348623157e308,)),
    "many digits": ("a:0." + "3" * 5000, ("a",), (1 / 3,)), "a vector": ("-0.5 -1 2e-3", None, (-0.5, -1.0, 0.002)),
}  # fmt: skip


@pytest.mark.parametrize(("text", "words", "values"), READ.values(), ids=READ)
def test_lines_that_are_read(text, words, values):
    assert parse_line(text) == WordProbs(words=words, values=values)


WORDS = st.text(st.characters(exclude_characters=" \n", exclude_categories=["Cs"]))
DIGITS = st.text("0123456789", min_size=1, max_size=20)
SIGN = st.sampled_from(["", "+", "-"])
NUMBERS = st.builds(
    "{}{}{}{}".format, SIGN, DIGITS, DIGITS.map(".{}".format) | st.just(""),
    st.builds("{}{}{}".format, st.sampled_from("eE"), SIGN, st.integers(0, 200)) | st.just(""),
)  # fmt: skip


@PROPERTY
@given(st.lists(st.tuples(WORDS, NUMBERS), min_size=1))
def test_every_line_of_the_grammar_is_read(entries):
    parsed = parse_line(" ".join(f"{word}:{number}" for word, number in entries))
    assert parsed.words == tuple(word for word, _ in entries)
    assert parsed.values == tuple(float(number) for _, number in entries)


@PROPERTY
@given(st.lists(NUMBERS, min_size=1))
def test_every_vector_is_read(numbers):
    assert parse_line(" ".join(numbers)) == WordProbs(words=None, values=tuple(map(float, numbers)))


@PROPERTY
@given(st.text(st.sampled_from("ab:0159.+-eE ,\t")))
@example("a:0.5 b:5.")
def test_a_line_is_read_or_refused_at_its_column(text):
    found = outcome(text, 3)
    if isinstance(found, MalformedLineError):
        assert (found.line, found.text) == (3, text)
        assert 1 <= found.column <= len(text) + 1
        assert text[found.column - 1 :].startswith(found.token)
    else:
        tokens = text.split(" ")
        assert len(found.values) == len(tokens)
        assert found.words is None or found.words == tuple(t.rpartition(":")[0] for t in tokens)


HOSTILE = {
    "colons": ":" * 300_000, "a word and digits": "a:" + "1" * 300_000 + "x",
    "points": "a:" + "1." * 150_000, "separators": "a:" + "1_" * 150_000 + "x", "signs": "a:" + "+" * 300_000,
    "spaces": " " * 300_000, "white space": "a:1" + "\t" * 300_000,
}  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_lines_take_linear_time(text):
    assert len(str(malformed(text))) < 700


@pytest.mark.parametrize(
    "row", [row for row in BAD if row["stderr"].startswith("geval: Line ")], ids=lambda row: repr(row["name"])
)
def test_the_first_words_are_gevals(row):
    number = int(row["stderr"].split()[2].rstrip(":"))
    error = malformed(row["out"].split("\n")[number - 1].replace("\r", ""), number)
    assert f"geval: {error}".split("\n")[0] == row["stderr"].rstrip("\n")


SCORED = [row for row in BAD if row["status"] == 0 and row["name"] not in {"ka:1e400 :0.1", "truncated gzip"}]


@pytest.mark.parametrize("row", [r for r in SCORED if "\x1f" not in r["out"]], ids=lambda r: repr(r["name"]))
def test_what_geval_scores_is_read(row):
    for line in row["out"].replace("\r", "").rstrip("\n").split("\n"):
        assert parse_line(line).words is not None


NO_DIGIT = "input does not start with a digit"
AFTER = "number text found after a number"
COLON = "colon expected"
DIGITS_EXPECTED = "digits were expected, such as 0.25, -1.5 or 2.5e-3"
ENTRY = "is not an entry; an entry is `word:probability`, with a colon"
ONE_SPACE = "entries are separated by exactly one space"
BUCKETS = "a line without a colon holds a log probability for each of 1024 buckets, this one holds"

STRAY = "a stray space, and no colon; an entry is `word:probability`, one space between entries"

REFUSED = {
    # text: column, reason, hint
    "ka=0.5": (1, NO_DIGIT, f"`ka=0.5` {ENTRY}"),
    "0.5 ka": (5, NO_DIGIT, f"`ka` {ENTRY}"),
    "50%": (1, AFTER, "`50%` is not a number; write a fraction, not a percentage: 0.5, not 50%"),
    "ka:": (4, NO_DIGIT, "a number should follow the colon"),
    ":": (2, NO_DIGIT, "a number should follow the colon"),
    "ka: 0.5": (4, NO_DIGIT, "a number should follow the colon, without a space"),
    "ka:0.5f": (4, AFTER, f"`0.5f` is not a number; {DIGITS_EXPECTED}"),
    "ka:.5": (4, NO_DIGIT, "`.5` is not a number; write a digit before the point: 0.5, not .5"),
    "ka:5.": (4, AFTER, "`5.` is not a number; write a digit after the point: 5.0, not 5."),
    "ka:50%": (4, AFTER, "`50%` is not a number; write a fraction, not a percentage: 0.5, not 50%"),
    "ka:1e": (4, AFTER, "`1e` is not a number; write digits after the exponent's e, or no e"),
    "ka:0x1p3": (4, AFTER, "`0x1p3` is not a number; write a decimal number, not a hexadecimal one"),
    "ka:1_0": (4, AFTER, "`1_0` is not a number; write the digits without separators"),
    "ka:--1": (4, NO_DIGIT, "`--1` is not a number; write one sign at most"),
    "ka:٣": (4, NO_DIGIT, "`٣` is not a number; write the digits 0 to 9"),
    "ka:nan": (4, NO_DIGIT,
     "`nan` is not a number; your model produced NaN (not a number): look for 0/0 or log of a negative number"),
    "ka:-inf": (4, NO_DIGIT,
     "`-inf` is not a number; your model produced an infinity: leave the word out"),
    "ka:1e400 :0.1": (4, "number too large", "`1e400` is too large for a double (the largest is about 1.8e308)"),
    "ka:0.1 :-1e309": (9, "number too large", "`-1e309` is too large for a double (the largest is about 1.8e308)"),
    "0.5 1e400": (5, "number too large", "`1e400` is too large for a double (the largest is about 1.8e308)"),
    "New York:0.5 :0.5": (1, COLON, "`New` has no probability; an entry is `word:probability`, and a word cannot contain a space"),
    "-0.5": (1, "unexpected number of log probs", f"{BUCKETS} 1; were `word:probability` entries meant?"),
    " ": (1, NO_DIGIT, STRAY),
    "0.5 ": (5, NO_DIGIT, STRAY),
    "0.5  0.5": (5, NO_DIGIT, STRAY),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), REFUSED.items(), ids=map(repr, REFUSED))
def test_lines_that_are_refused(text, expected):
    column, reason, hint = expected
    error = malformed(text)
    error.path = "out.tsv"
    assert str(error) == (
        f"Line 7: Unexpected data [{reason}]\n"
        f"  `out.tsv`, line 7, column {column}: {hint}\n"
        f"    {text}\n"
        f"    {' ' * (column - 1)}^"
    )


def test_a_refused_line_is_safe_to_show_and_not_too_long():
    assert str(malformed("ka:0.5\t:0.5 lo\t")) == (
        "Line 7: Unexpected data [colon expected]\n"
        "  line 7, column 13: `lo\\t` has no probability; an entry is `word:probability`, and a word cannot contain a space\n"
        "    ka:0.5\\t:0.5 lo\\t\n"
        "                 ^"
    )
    error = malformed("ka:" + "x" * 100 + "\x1b")
    assert error.token == "x" * 100 + "\x1b"
    assert error.hint == f"`{'x' * 20}…{'x' * 18}\\x1b` is not a number; {DIGITS_EXPECTED}"


MISTAKES = {
    "decimal comma": ["0,5", "-0,25", "1,5e-3", "1,5E"], "percent": ["50%", "12.5%", "12,5 %", "+5\t%", ".5%"],
    "NaN": ["nan", "NaN", "-nan", "NAN"], "infinity": ["inf", "-inf", "+Infinity", "INF"],
    "missing leading digit": [".5", "-.5", "+.25e-3"], "missing digit after the point": ["5.", "-1."],
    "missing exponent": ["1e", "1.5E-", "-2e+"], "hexadecimal": ["0x1p3", "-0XFF", "0x"],
    "digit separator": ["1_000", "1'000", "1_0.5"], "several signs": ["--1", "+-1", "---"],
    "digits of another script": ["１", "٣", "-１.５", "０.５"],
    "text": ["", "x", "0.5f", "1.5.2", "-", "1.e5", "½", "0.5\t", "1,000.5", '"0.5"'],
}  # fmt: skip
ADVICE = {kind: advice for kind, _, advice in wordprobs.NUMBER_MISTAKES} | {"text": DIGITS_EXPECTED}


@pytest.mark.parametrize(("kind", "numbers"), MISTAKES.items(), ids=MISTAKES)
def test_what_stands_where_a_number_should(kind, numbers):
    assert set(map(number_mistake, numbers)) == {(kind, ADVICE[kind])}
    assert set(MISTAKES) == set(ADVICE)


@pytest.mark.parametrize(("text", "reason", "hint"), [
    ("", NO_DIGIT, "the line is empty; write `:1` where there is no guess"),
    ("yes", NO_DIGIT, f"`yes` is not a number; {DIGITS_EXPECTED}"),
    ("0,5", AFTER, "`0,5` is not a number; write a decimal point, not a comma"),
    ("0.5 0.5", AFTER, f"`0.5 0.5` is not a number; {DIGITS_EXPECTED}"),
    ("1e999", "number too large", "`1e999` is too large for a double (the largest is about 1.8e308)"),
])  # fmt: skip
def test_parse_number(text, reason, hint):
    numbers = ("0.5", "-1.5e-3", "+7", "1e-400", "00")
    assert [parse_number(number, 1) for number in numbers] == [0.5, -0.0015, 7.0, 0.0, 0.0]
    with pytest.raises(MalformedLineError) as caught:
        parse_number(text, 4)
    error = caught.value
    assert (error.line, error.column, error.reason, error.hint) == (4, 1, reason, hint)


E = math.e
MEANT = {
    "probabilities": ("the:0.5 a:0.25 :0.25", {"the": 0.5, "a": 0.25}, 0.25),
    "in the line's order": (":0.25 b:0.25 a:0.5", {"b": 0.25, "a": 0.5}, 0.25),
    "a word twice": ("the:0.25 a:0.25 the:0.25 :0.25", {"the": 0.5, "a": 0.25}, 0.25),
    "the rest alone": (":0.25", {}, 1.0),
    "too much, without a rest": ("the:1 a:1", {"the": 0.5, "a": 0.5}, 0.0),
    "too little": ("the:0.25 :0.25", {"the": 0.5}, 0.5),
    "too little, without a rest": ("the:0.25 a:0.25", {"the": 0.25, "a": 0.25}, 0.5),
    "zeros among probabilities": ("the:0 a:1", {"the": 0.0, "a": 1.0}, 0.0),
    "logarithms": ("the:-1 a:-1 :0", {"the": 1 / (2 + E), "a": 1 / (2 + E)}, E / (2 + E)),
    "logarithms, too much": ("the:2 a:1", {"the": E / (E + 1), "a": 1 / (E + 1)}, 0.0),
    "logarithms, too little, with a rest": ("the:-2 :-1", {"the": 1 / (1 + E)}, E / (1 + E)),
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

MASSES = {
    "a word and the rest": ("the:0.5 :0.5", [0.125, 0.625, 0.125, 0.125]), "a vector": ("-1 -1 -1 -1", [0.25] * 4),
    "a vector as it is": (" ".join([repr(math.log(0.25))] * 4), [0.25] * 4),
    "a vector of one": ("0 -800 -800 -800", [1.0, 0.0, 0.0, 0.0]),
}  # fmt: skip


@pytest.mark.parametrize(("line", "masses"), MASSES.values(), ids=MASSES)
def test_buckets(line, masses):
    assert list(parse_line(line).buckets(2)) == pytest.approx(masses, rel=1e-14)


NO_WORDS = "the line is a vector, which has no words: its masses are buckets(bits)"
NO_HASH = "a word cannot be hashed, since UTF-8 cannot write it: surrogates not allowed"
MEANINGLESS = {
    "no bits": (lambda: parse_line("the:1").buckets(bits=0), "bits is 0; it is from 1 to 24"),
    "too many bits": (lambda: parse_line("the:1").buckets(bits=25), "bits is 25; it is from 1 to 24"),
    "no line": (lambda: parse_line("the:1").buckets(line=0), "line is 0; lines are counted from 1"),
    "a word that is no Unicode": (lambda: parse_line("a:0.5 \udcff:0.5").buckets(), NO_HASH),
    "the words of a vector": (lambda: parse_line("-0.5 -1").normalised(), NO_WORDS),
}


@pytest.mark.parametrize(("call", "message"), MEANINGLESS.values(), ids=MEANINGLESS)
def test_what_means_nothing(call, message):
    with refused(message):
        call()


def test_a_vector_of_another_length():
    with refused(str(wordprobs.wrong_vector_length("-0.5 -1.0", 7, 2, 10)), MalformedLineError):
        parse_line("-0.50 -1").buckets(line=7)


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
    text, word = f"{line}\n".encode(), f"{expected}\n".encode()
    (loss,) = reference.bounded_losses(text, word, bits, number)[0]
    buckets = parse_line(line).buckets(bits, number)
    only_that_word = parse_line(f"{expected}:1").buckets(bits, number)
    assert is_loss_of(buckets[only_that_word.index(1.0)], loss)


@PROPERTY
@given(ENTRIES, BITS, st.integers(1, 2**33))
def test_buckets_and_words_with_the_rest_are_1_together(line, bits, number):
    parsed = parse_line(line)
    distribution = parsed.normalised()
    for masses in (parsed.buckets(bits, number), [*distribution.masses.values(), distribution.rest]):
        assert 1 - 1.1e-8 < math.fsum(masses) < 1 + 1e-12


@PROPERTY
@given(st.integers(1, 6).flatmap(lambda bits: st.lists(st.floats(-50, 50), min_size=1 << bits, max_size=1 << bits)))
def test_a_vectors_loss_is_that_of_its_bucket(values):
    bits = len(values).bit_length() - 1
    line = " ".join(map(repr, values))
    buckets = parse_line(line).buckets(bits)
    assert math.fsum(buckets) == pytest.approx(1, abs=1.1e-8)
    only = parse_line("the:1").buckets(bits).index(1.0)
    (loss,) = reference.bounded_losses(f"{line}\n".encode(), b"the\n", bits, 1)[0]
    assert is_loss_of(buckets[only], loss)
