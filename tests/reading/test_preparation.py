"""Text flags and tokenizers: what each does to a line, what is refused, and that no line is made or lost."""

import math
import pickle
import re
import sys
import unicodedata
from dataclasses import dataclass

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from raising import refused
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
from sacrebleu.tokenizers.tokenizer_intl import TokenizerV14International

from geval_py.errors import MalformedLineError, SchemeError
from geval_py.reading.preparation import _HIGHEST, find_tokenizer, lower_case, preparation_of, tokenized
from geval_py.reading.schemes import TOKENIZERS, parse_scheme
from geval_py.scoring.evaluate import column_of, find_metric
from geval_py.scoring.metrics.base import LineStatistics
from geval_py.scoring.metrics.columns import PreparedColumn
from geval_py.text import split_words, strip_spaces, visible

PROPERTY = settings(deadline=None, derandomize=True)
ALL_CHARACTERS = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
# The planes that have cases and spaces begin with these; of the others every 97th.
CHARACTERS = [*ALL_CHARACTERS[:0x3001], *ALL_CHARACTERS[0x3001::97]]
SOME_AND_ALL = pytest.mark.parametrize(
    "characters", [CHARACTERS, pytest.param(ALL_CHARACTERS, marks=pytest.mark.long)], ids=["some", "all"]
)


def preparation(flags):
    return preparation_of(parse_scheme(f"LogLossHashed:{flags}"))


PREPARED = {
    # specification, section 5
    "lower case": ("l", "ŻÓŁW The:0.5", "żółw the:0.5"),
    "lower case, full mapping": ("l", "İ", "i̇"),
    "lower case, no final sigma": ("l", "ὈΔΥΣΣΕΎΣ Σ", "ὀδυσσεύσ σ"),
    "lower case keeps a final sigma": ("l", "ς", "ς"),
    "upper case": ("u", "straße ŉ ς", "STRASSE ʼN Σ"),
    "case folding": ("c", "Straße ΣΑΣ ς", "strasse σασ σ"),
    "match": ("m<[a-z]+>", "ab1 cd,e", "abcde"),
    "match is whole, not a group": ("m<a(.)>", "ab ac", "abac"),
    "match of an empty place": ("m<x*>", "axxb", "xx"),
    "take": ("t<^a>", "ab  ba\tac", "ab ac"),
    "take where found anywhere": ("t<b>", "abc bcd cde", "abc bcd"),
    "take splits at a no-break space": ("t<.>", "a\u00a0b", "a b"),
    "take does not split at other separators": ("t<.>", "a\u0085b\u2028c\x1fd", "a\u0085b\u2028c\x1fd"),
    "substitute": ("s<,><>", "a, b, c", "a b c"),
    "substitute a group": (r"s<(\w+)@(\w+)><\2 at \1>", "me@home", "home at me"),
    "substitute the whole match": (r"s<[0-9]+><(\0)>", "a1b22", "a(1)b(22)"),
    "substitute, ten groups": (r"s<(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)><\10\1>", "abcdefghij", "ja"),
    "substitute, a group that took no part": (r"s<(a)|(b)><[\1\2]>", "ab", "[a][b]"),
    "substitute, nothing else is special": (r"s<a><\n&$1\g{0}\\>", "a", r"\n&$1\g{0}\\"),
    "substitute an end": ("s<$><!>", "ab", "ab!"),
    "sort": ("S", " the:1  a:2\tB:3 żo:4 zo:5", "B:3 a:2 the:1 zo:5 żo:4"),
    "from left to right": ("lm<[a-z]+>", "The END", "theend"),
    "all of them": (r"us<(.)E><e\1>t<e>Slc", "he the x", "teh eh"),
    "groups that are not there (GEval 1.42.2: handleRefs)": (r"s<(b)(c)><[\1\03\2\99999999999999999999]>", "bc",
     "[bc]"),
    "characters if asked": (r"m<(?u)\w>", "żó,ł!٣", "żół٣"),
    "a substitution of characters": (r"s<(?u)(\w)ż><\1–>", "żż", "ż–"),
    # By bytes, as in GEval: the same as of LC_ALL=C grep -aoP, which is PCRE's, each match decoded by itself
    "bytes of a class of letters": ("cm<[\\w\\sęóąśłżźćńĘÓĄŚŁŻŹĆŃ]+>", "Jest – naprawdę?", "jest \ufffd naprawdę"),
    "bytes, of which a match is one": ("m<.>", "ża", "\ufffd\ufffda"),
    "the last byte of a letter is optional": ("s<ż?a><->", "ża", "-"),
    "a range of bytes": ("m<[ą-ż]+>", "abżŻ", "żŻ"),
    "no case but in ASCII": ("s<(?i)aŻ><x>", "Aż AŻ", "Aż x"),
    "a group of a part of a letter": (r"s<(.)a><\1>", "ża", "\ufffd\ufffd"),
    "take a word of one byte": ("t<^.$>", "ż a", "a"),
}  # fmt: skip


@pytest.mark.parametrize(("flags", "text", "prepared"), PREPARED.values(), ids=PREPARED)
def test_prepared(flags, text, prepared):
    assert preparation(flags)(text) == prepared


def test_other_flags_are_left_out():
    assert preparation("N<a>P<2>f<exp:a>") is None
    assert preparation("N<L>lP<2>S") == preparation("lS")
    assert str(preparation("N<L>lP<2>s<a><b>S")) == "ls<a><b>S"


def test_preparations_are_values():
    assert hash(preparation("lm<a>")) == hash(preparation("lm<a>"))
    assert preparation("lm<a>") == preparation("lm<a>")
    assert len({preparation(flags) for flags in ("l", "u", "m<a>", "t<a>", "m<b>", "ul", "lu")}) == 7
    again = pickle.loads(pickle.dumps(preparation(r"luct<.>m<[^b]>s<(a)><\1\1>S")))
    assert again("cab") == preparation(r"luct<.>m<[^b]>s<(a)><\1\1>S")("cab")


BROKEN = {
    "m<[a>": "in the regular expression of m<[a>: unterminated character set at position 0",
    "lt<a(b>u": "in the regular expression of t<a(b>: missing ), unterminated subpattern at position 1",
    r"m<\p{L}>": r"in the regular expression of m<\p{L}>: bad escape \p at position 0",
    "m<[[:alpha:]]>": "in the regular expression of m<[[:alpha:]]>: Possible nested set at position 1",
    "m<a{99999999999}>": "in the regular expression of m<a{99999999999}>: the repetition number is too large",
    "m<\x1b[>": r"in the regular expression of m<\x1b[>: unterminated character set at position 1",
    "m<a\nb>": r"there is a line end in m<a\nb>; lines have none",
    "t<\r>": r"there is a line end in t<\r>; lines have none",
    "s<a><b\n>": r"there is a line end in s<a><b\n>; lines have none",
}


@pytest.mark.parametrize(("flags", "hint"), BROKEN.items(), ids=ascii)
def test_broken(flags, hint):
    with pytest.raises(SchemeError) as caught:
        preparation(flags)
    flag = re.search(r"\S<.*>", hint.split(":" if "in the" in hint[:6] else ";")[0])
    shown = flag.group() if flag else "m<[[:alpha:]]>"
    assert str(caught.value) == f"Unknown or broken metric flags: {shown}\n  {hint}"
    assert (caught.value.scheme, caught.value.exit_status) == (f"LogLossHashed:{flags}", 2)


def test_a_regular_expression_that_is_nested_too_deeply():
    with pytest.raises(SchemeError, match="recursion"):
        preparation("m<" + "(" * 20_000 + ")" * 20_000 + ">")


@PROPERTY
@given(st.text("abAB01{},()[]?*+|^$.:-=!#iLuxPs\\<\n "))
def test_a_regular_expression_is_compiled_or_refused(regexp):
    try:
        shown = preparation(f"m<{regexp}>")("ab AB 01")
    except SchemeError as error:
        shown = str(error).removeprefix(f"Unknown or broken metric flags: m<{visible(regexp)}>\n")
    assert "\n" not in shown


@SOME_AND_ALL
def test_words_split_where_haskell_splits(characters):
    """Data.Char.isSpace: space, TAB to CR, U+00A0, and the category Zs."""
    spaces = {c for c in characters if c in "\t\n\v\f\r\u00a0" or unicodedata.category(c) == "Zs"}
    assert {c for c in characters if split_words(f"a{c}b") == ["a", "b"]} == spaces
    assert split_words("".join(characters))


@SOME_AND_ALL
@pytest.mark.parametrize("flag", ["l", "u", "c"])
def test_no_case_makes_or_loses_a_line_end(flag, characters):
    prepare = preparation(flag)
    assert [c for c in characters if any(end in prepare(c) for end in "\r\n")] == ["\n", "\r"]
    assert (prepare("\n"), prepare("\r")) == ("\n", "\r")


@SOME_AND_ALL
@pytest.mark.parametrize("flag", ["l", "u", "c"])
def test_a_case_does_not_depend_on_any_neighbour(flag, characters):
    prepare = preparation(flag)
    alone = {c: prepare(c) for c in {*characters, "a", "Σ"}}
    for text in ("".join(characters), "".join(f"a{c}Σ{c}" for c in characters)):
        assert prepare(text) == "".join(alone[c] for c in text)


@SOME_AND_ALL
def test_lower_case_is_that_of_python_but_for_the_final_sigma(characters):
    assert all(lower_case(c) == c.lower() for c in characters)


FLAGS = st.lists(
    st.sampled_from(["l", "u", "c", "S", "m<[a-z:0-9. ]+>", "t<:>", "t<[^a]>", "s<[^a-z]><>", r"s<(.)(.)?><\2\1>", "s<^$><a>"]),
    min_size=1,
    max_size=4,
).map("".join)  # fmt: skip
LINE = st.text(st.one_of(st.sampled_from("aABΣ :01. \t\u00a0\u0085\u2028\x1c\v\0"), st.characters(exclude_categories=["Cs"], exclude_characters="\n\r")), max_size=15)  # fmt: skip


@PROPERTY
@given(FLAGS, st.lists(LINE, max_size=5))
def test_a_block_is_prepared_line_by_line(flags, lines):
    prepare = preparation(flags)
    text = prepare.of_lines("".join(f"{line}\n" for line in lines))
    assert text == "".join(prepare(line) + "\n" for line in lines)
    assert text.count("\n") == len(lines)


@pytest.mark.parametrize("flags", ["l", "ls<^$><x>"])
@pytest.mark.parametrize("text", ["", "A", "A\nB"])
def test_a_last_line_without_an_end_keeps_none(flags, text):
    assert preparation(flags).of_lines(text) == text.lower()


@dataclass(frozen=True)
class Hashed:
    """Losses of 2^bits buckets, by a given kernel."""

    kernel: object
    bits: int = 4

    def statistics(self, outputs, expected, first_line):
        return LineStatistics(columns=(self.kernel.bounded_losses(outputs, expected, self.bits, first_line)[0],))


def block(*lines):
    return b"".join(line.encode("utf-8", "surrogatepass") + b"\n" for line in lines)


WORDS = st.sampled_from(["The", "the", "THE,", "ΑΣ", "ας", "a"])
NUMBER = st.sampled_from(["0.5", "0.1", "1", "-2.5"])
OUTPUT = st.lists(st.tuples(WORDS, NUMBER).map(":".join), min_size=1).map(" ".join)


@PROPERTY
@given(st.sampled_from(["l", "u", "c", "S", "ls<,><>", r"s<(\w+):><\1x:>", "lS"]), st.lists(st.tuples(OUTPUT, WORDS), min_size=1, max_size=4), st.integers(1, 9))  # fmt: skip
def test_the_losses_are_those_of_the_prepared_lines(kernel, flags, lines, first_line):
    prepare = preparation(flags)
    outputs, expected = zip(*lines, strict=True)
    column = PreparedColumn(Hashed(kernel), prepare)
    got = column.statistics(memoryview(block(*outputs)), block(*expected), first_line)
    want = Hashed(kernel).statistics(block(*map(prepare, outputs)), block(*map(prepare, expected)), first_line)
    assert got == want


def test_a_malformed_line_is_shown_as_the_flags_left_it(kernel):
    column = PreparedColumn(Hashed(kernel), preparation("us<:><>"))
    with pytest.raises(MalformedLineError) as caught:
        column.statistics(b"a\r:1\n", b"a\n", 7)
    assert (caught.value.line, caught.value.text, caught.value.prepared_by) == (7, "A1", "us<:><>")


def test_undecodable_bytes_and_lone_surrogates(kernel):
    column = PreparedColumn(Hashed(kernel), preparation("s<b><\udcff>"))
    want = Hashed(kernel).statistics(block("\ufffda\ufffd\ufffd\ufffd:1"), block("a"), 1)
    assert column.statistics(b"\xffab:1\n", b"a\n", 1) == want


def test_the_vocabulary_is_prepared_as_the_lines_are():
    vocabulary = frozenset({"A", "a", "B", "c,", "D"})
    column = column_of(find_metric("LogLoss"), vocabulary, preparation("ls<,><>"))
    statistics = column.statistics(b"a:0.4 :0.6\nA:0.4 :0.6\na:1\n", b"C\nA\ne\n", 1)
    assert list(statistics.columns[0]) == pytest.approx([-math.log(0.6 / 3), -math.log(0.4), math.inf])
    assert statistics.out_of_vocabulary == 1


GEVAL = r"(?a)[\w\d]+\S*[\w\d]+|[\w\d]|[^\w\s]+"  # GEval 1.42.2's regexp of minimalistic
UNSPLIT = st.text(
    st.one_of(st.sampled_from("ab_1é水ٱ,.!'-( \t\u00a0\u0085\u2028\x1c\0"), st.characters(exclude_characters="\n\r"))
)
each_tokenizer = pytest.mark.parametrize("name", TOKENIZERS)

TOKENS = {
    "white space": ("minimalistic", " \t\u3000\u00a0 ", []),
    "punctuation around": ("minimalistic", '("Well!")', ['("', "Well", '!")']),
    "punctuation inside": ("minimalistic", "isn't well-known: 3.14 a.b.", ["isn't", "well-known", ":", "3.14", "a.b", "."]),
    "one character": ("minimalistic", "a, b", ["a", ",", "b"]),
    "other scripts": ("minimalistic", "«Żółw», 水。 ñ|", ["«Żół", "w", "»,", "水。", "ñ|"]),
    "an underscore is part of a word": ("minimalistic", "_a_ !_!", ["_a_", "!", "_", "!"]),
    "characters": ("character-by-character", "to: 水", ["t", "o", ":", "_", "水"]),
    "13a": ("13a", "Well, 3.14% isn't &quot;1-2&quot;.", ["Well", ",", "3.14", "%", "isn't", '"', "1", "-", "2", '"', "."]),
    "v14": ("v14", "«Well», 3.14% isn't 1-2.", ["«", "Well", "»", ",", "3.14", "%", "isn", "'", "t", "1-2."]),
}  # fmt: skip


@pytest.mark.parametrize(("name", "text", "tokens"), TOKENS.values(), ids=TOKENS)
def test_tokens(name, text, tokens):
    assert tokenized(name, text) == tokens


@PROPERTY
@given(UNSPLIT)
@example("a!!!b!!! c!! d")
@example("!a")
def test_a_minimalistic_line_is_what_the_regexps_of_geval_make(text):
    """GEval 1.42.2, tokenizeWithSpaces: spaces around tokens, one for several, none at the ends."""
    spaced = re.sub(GEVAL, lambda match: f" {match[0]} ", text)
    assert find_tokenizer("minimalistic")(text) == strip_spaces(re.sub(r"(?a)\s{2,}", " ", spaced))


@each_tokenizer
@PROPERTY
@given(UNSPLIT)
def test_a_token_is_neither_empty_nor_split_further(name, text):
    tokens = tokenized(name, text)
    assert all(split_words(token) == [token] for token in tokens)


@pytest.mark.parametrize(("name", "line"), [
    ("minimalistic", "a , b"), ("character-by-character", "\t a , _ \t b \t"), ("13a", "a , b"), ("v14", "a , b"),
])  # fmt: skip
def test_the_fields_of_a_line(name, line):
    """GEval 1.42.2, --just-tokenize: a TAB becomes a space, but where every character is a token."""
    assert find_tokenizer(name)("\ta, \tb\t") == line
    assert find_tokenizer(name)("") == ""


@each_tokenizer
@pytest.mark.parametrize("size", [10**4, pytest.param(10**5, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("start", "part", "end"), [("a", "!", ""), ("", "a!", ""), ("", "!", ""), ("", "a!!", " !"), ("", "1,!", "")]
)
def test_long_lines_take_no_more_than_linear_time(name, start, part, end, size):
    text = start + part * size + end
    tokens = tokenized(name, text)
    spaces = 0 if name == "character-by-character" else text.count(" ")
    assert sum(map(len, tokens)) == len(text) - spaces


@pytest.mark.parametrize(("name", "theirs"), [("13a", Tokenizer13a()), ("v14", TokenizerV14International())])
@PROPERTY
@given(st.text(st.sampled_from("ab19水é«» .,;:'\"-+/|&<>()[]$€~…")))
def test_sacrebleus_are_the_same_on_most_lines(name, theirs, text):
    """They differ in white space and digits that are not ASCII."""
    assert find_tokenizer(name)(text) == theirs(text)


# Derived from tokenizeWithSpaces in src/Text/Tokenizer.hs of GEval 1.42.2: \\d and \\s of PCRE know ASCII only, and
# what is no ASCII digit is parted from punctuation.
OTHERWISE = {
    "a fraction": ("v14", "½.", "½ .", "½."), "digits of another script": ("v14", "٣.", "٣ .", "٣."),
    "a line separator": ("13a", "a\u2028b", "a\u2028b", "a b"),
    "the next line": ("v14", "a\u0085 b", "a\u0085 b", "a b"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "text", "ours", "theirs"), OTHERWISE.values(), ids=OTHERWISE)
def test_where_sacrebleus_are_others(name, text, ours, theirs):
    assert find_tokenizer(name)(text) == ours
    assert {"13a": Tokenizer13a, "v14": TokenizerV14International}[name]()(text) == theirs


def test_all_punctuation_and_symbols_are_known():
    beyond = map(chr, range(_HIGHEST, sys.maxunicode + 1))
    assert [character for character in beyond if unicodedata.category(character)[0] in "PS"] == []


UNKNOWN = {
    "13b": "13b\n  did you mean 13a? there are",
    "Minimalistic": "Minimalistic\n  did you mean minimalistic? there are",
    "": "\n  there are", "\x1b[2J": "\\x1b[2J\n  there are",
}  # fmt: skip


@pytest.mark.parametrize(("name", "shown"), UNKNOWN.items(), ids=ascii)
def test_an_unknown_tokenizer(name, shown):
    with refused(f"Unknown tokenizer: {shown} minimalistic, character-by-character, 13a, v14"):
        find_tokenizer(name)
