"""The tokenizers: their tokens, that they take any line, and what is refused."""

import re
import sys
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
from sacrebleu.tokenizers.tokenizer_intl import TokenizerV14International

from geval_py.errors import UsageError
from geval_py.reading.preparation import _HIGHEST, TOKENIZERS, find_tokenizer
from geval_py.text import split_words, strip_spaces

PROPERTY = settings(deadline=None, derandomize=True)
GEVAL = r"(?a)[\w\d]+\S*[\w\d]+|[\w\d]|[^\w\s]+"  # GEval 1.42.2's regexp of minimalistic
LINE = st.text(
    st.one_of(st.sampled_from("ab_1é水ٱ,.!'-( \t\u00a0\u0085\u2028\x1c\0"), st.characters(exclude_characters="\n\r"))
)
each_tokenizer = pytest.mark.parametrize("name", TOKENIZERS)

TOKENS = {
    "words": ("minimalistic", "to be", ["to", "be"]),
    "nothing": ("minimalistic", "", []),
    "white space": ("minimalistic", " \t\u3000\u00a0 ", []),
    "punctuation around": ("minimalistic", '("Well!")', ['("', "Well", '!")']),
    "punctuation inside": ("minimalistic", "isn't well-known: 3.14 a.b.", ["isn't", "well-known", ":", "3.14", "a.b", "."]),
    "punctuation alone": ("minimalistic", "-- ?!", ["--", "?!"]),
    "one character": ("minimalistic", "a, b", ["a", ",", "b"]),
    "other scripts": ("minimalistic", "«Żółw», 水。 ñ|", ["«Żół", "w", "»,", "水。", "ñ|"]),
    "white space of other scripts": ("minimalistic", "a\u3000b|\u00a0| \u0085\u2028", ["a", "b", "|", "|", "\u0085\u2028"]),
    "an underscore is part of a word": ("minimalistic", "_a_ !_!", ["_a_", "!", "_", "!"]),
    "characters": ("character-by-character", "to: 水", ["t", "o", ":", "_", "水"]),
    "characters, other white space": ("character-by-character", " a\t\u00a0b\u3000\u2028", ["_", "a", "b", "\u2028"]),
    "13a": ("13a", "Well, 3.14% isn't &quot;1-2&quot;.", ["Well", ",", "3.14", "%", "isn't", '"', "1", "-", "2", '"', "."]),
    "v14": ("v14", "«Well», 3.14% isn't 1-2.", ["«", "Well", "»", ",", "3.14", "%", "isn", "'", "t", "1-2."]),
}  # fmt: skip


@pytest.mark.parametrize(("name", "text", "tokens"), TOKENS.values(), ids=TOKENS)
def test_tokens(name, text, tokens):
    assert find_tokenizer(name).tokens(text) == tokens


@PROPERTY
@given(LINE)
@example("a!!!b!!! c!! d")
@example("!a")
def test_a_minimalistic_line_is_what_the_regexps_of_geval_make(text):
    """GEval 1.42.2, tokenizeWithSpaces: spaces around tokens, one for several, none at the ends."""
    spaced = re.sub(GEVAL, lambda match: f" {match[0]} ", text)
    assert find_tokenizer("minimalistic").line(text) == strip_spaces(re.sub(r"(?a)\s{2,}", " ", spaced))


@each_tokenizer
@PROPERTY
@given(LINE)
def test_a_token_is_neither_empty_nor_split_further(name, text):
    tokens = find_tokenizer(name).tokens(text)
    assert all(split_words(token) == [token] for token in tokens)


@pytest.mark.parametrize("name", ["minimalistic", "character-by-character"])
@PROPERTY
@given(LINE)
def test_nothing_but_white_space_is_lost(name, text):
    kept = text.replace(" ", "_") if name == "character-by-character" else text
    assert "".join(find_tokenizer(name).tokens(text)) == "".join(split_words(kept))


@pytest.mark.parametrize(
    ("name", "line"),
    [("minimalistic", "a , b"), ("character-by-character", "\t a , _ \t b \t"), ("13a", "a , b"), ("v14", "a , b")],
)
def test_the_fields_of_a_line(name, line):
    """GEval 1.42.2, --just-tokenize: a TAB becomes a space, but where every character is a token."""
    assert find_tokenizer(name).line("\ta, \tb\t") == line
    assert find_tokenizer(name).line("") == ""


@each_tokenizer
@pytest.mark.parametrize("size", [10**4, pytest.param(10**5, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("start", "part", "end"), [("a", "!", ""), ("", "a!", ""), ("", "!", ""), ("", "a!!", " !"), ("", "1,!", "")]
)
def test_long_lines_take_no_more_than_linear_time(name, start, part, end, size):
    text = start + part * size + end
    tokens = find_tokenizer(name).tokens(text)
    spaces = 0 if name == "character-by-character" else text.count(" ")
    assert sum(map(len, tokens)) == len(text) - spaces


@pytest.mark.parametrize(("name", "theirs"), [("13a", Tokenizer13a()), ("v14", TokenizerV14International())])
@PROPERTY
@given(st.text(st.sampled_from("ab19水é«» .,;:'\"-+/|&<>()[]$€~…")))
def test_sacrebleus_are_the_same_on_most_lines(name, theirs, text):
    """They differ in white space and digits that are not ASCII."""
    assert find_tokenizer(name).line(text) == theirs(text)


# Derived from tokenizeWithSpaces in src/Text/Tokenizer.hs of GEval 1.42.2: \\d and \\s of PCRE know ASCII only, and
# what is no ASCII digit is parted from punctuation.
OTHERWISE = {
    "a fraction": ("v14", "½.", "½ .", "½."),
    "digits of another script": ("v14", "٣.", "٣ .", "٣."),
    "a line separator": ("13a", "a\u2028b", "a\u2028b", "a b"),
    "the next line": ("v14", "a\u0085 b", "a\u0085 b", "a b"),
}


@pytest.mark.parametrize(("name", "text", "ours", "theirs"), OTHERWISE.values(), ids=OTHERWISE)
def test_where_sacrebleus_are_others(name, text, ours, theirs):
    assert find_tokenizer(name).line(text) == ours
    assert {"13a": Tokenizer13a, "v14": TokenizerV14International}[name]()(text) == theirs


def test_all_punctuation_and_symbols_are_known():
    beyond = map(chr, range(_HIGHEST, sys.maxunicode + 1))
    assert [character for character in beyond if unicodedata.category(character)[0] in "PS"] == []


UNKNOWN = {
    "13b": "13b\n  did you mean 13a? there are",
    "Minimalistic": "Minimalistic\n  did you mean minimalistic? there are",
    "": "\n  there are",
    "\x1b[2J": "\\x1b[2J\n  there are",
}


@pytest.mark.parametrize(("name", "shown"), UNKNOWN.items(), ids=ascii)
def test_an_unknown_tokenizer(name, shown):
    with pytest.raises(UsageError) as caught:
        find_tokenizer(name)
    assert str(caught.value) == f"Unknown tokenizer: {shown} minimalistic, character-by-character, 13a, v14"
