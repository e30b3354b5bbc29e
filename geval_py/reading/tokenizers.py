r"""Tokenizers: how text is split into words, for features, scores of words such as BLEU, and ``--just-tokenize``.

    minimalistic             punctuation is split off at the beginning and the end of a word, not inside it
    character-by-character   every character is a token, a space as ``_``
    13a                      that of mteval-v13a.pl, as BLEU is computed with
    v14                      that of mteval-v14.pl, for all scripts

A tokenizer writes a line with spaces between its tokens; a feature is what stands between white space there.

All are GEval's (src/Text/Tokenizer.hs of 1.42.2), whose ``\d``, ``\w`` and ``\s`` know ASCII only. sacreBLEU has the
last two as well, but takes other characters for white space (U+0085, U+2028), and for v14 others for digits (``½``,
``²``, those of other scripts): its scores would not be GEval's.

GEval's minimalistic tokens are the matches of ``[\w\d]+\S*[\w\d]+|[\w\d]|[^\w\s]+``. A token that begins with a word
character thus ends with the last one of its run of characters other than white space, which is how it is written
here: in linear time, whatever the line.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TypeAlias

from geval_py.errors import UsageError
from geval_py.text import nearest, split_words, strip_spaces, visible

Spacing: TypeAlias = Callable[[str], str]
Rules: TypeAlias = "Sequence[tuple[str, str]]"  # regular expressions, and what is put in place of all that matches
_MINIMALISTIC = r"(?a)\w(?:\S*\w)?|[^\w\s]+"
_ENTITIES = (("<skipped>", ""), ("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))
_ONE_SPACE = (r"(?a)\s+", " ")
_THIRTEEN_A = (
    (r"([\{-\~\[-\` -\&\(-\+\:-\@\/])", r" \1 "),
    (r"([^0-9])([\.,])", r"\1 \2 "),
    (r"([\.,])([^0-9])", r" \1 \2"),
    (r"([0-9])(-)", r"\1 \2 "),
    _ONE_SPACE,
)
_HIGHEST = 0x20000  # beyond it there are ideographs, but no punctuation and no symbol


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """A way to split text into tokens. Equal names do the same. ``line`` gives a line with spaces between them."""

    name: str
    line: Spacing = field(compare=False, repr=False)

    def __reduce__(self) -> tuple[Callable[[str], Tokenizer], tuple[str]]:
        return find_tokenizer, (self.name,)

    def tokens(self, text: str) -> list[str]:
        """Give the tokens of a text, in order; none is white space, or has any."""
        return split_words(self.line(text))


@cache
def find_tokenizer(name: str) -> Tokenizer:
    """Make a tokenizer; raises UsageError for a name that is not known.

    >>> find_tokenizer("minimalistic").tokens("(Well-known, isn't it?)")
    ['(', 'Well-known', ',', "isn't", 'it', '?)']
    >>> find_tokenizer("character-by-character").line("a bc")
    'a _ b c'
    """
    return Tokenizer(name, TOKENIZERS[checked_name(name)]())


def checked_name(name: str) -> str:
    """Give the name back if there is such a tokenizer; raises UsageError."""
    if name in TOKENIZERS:
        return name
    close = nearest(name, TOKENIZERS)
    advice = f"did you mean {close}? " if close else ""
    message = f"Unknown tokenizer: {visible(name)}\n  {advice}there are {', '.join(TOKENIZERS)}"
    raise UsageError(message=message)


def _minimalistic() -> Spacing:
    find = re.compile(_MINIMALISTIC).findall
    return lambda text: strip_spaces(" ".join(find(text)))


def _character_by_character() -> Spacing:
    return lambda text: " ".join(text.replace(" ", "_"))


def _thirteen_a() -> Spacing:
    spaced = _by_rules(_THIRTEEN_A)

    def tokenize(text: str) -> str:
        for written, meant in _ENTITIES:
            text = text.replace(written, meant)
        return spaced(f" {text} ")

    return tokenize


def _fourteen() -> Spacing:
    punctuation, symbol = _of_category("P"), _of_category("S")
    return _by_rules(
        (
            (f"([^0-9])({punctuation})", r"\1 \2 "),
            (f"({punctuation})([^0-9])", r" \1 \2"),
            (f"({symbol})", r" \1 "),
            _ONE_SPACE,
        )
    )


def _by_rules(rules: Rules) -> Spacing:
    """Apply one rule after the other, and leave no white space at the ends."""
    substitutions = [(re.compile(pattern).sub, replacement) for pattern, replacement in rules]

    def spaced(text: str) -> str:
        for substitute, replacement in substitutions:
            text = substitute(replacement, text)
        return strip_spaces(text)

    return spaced


def _of_category(letter: str) -> str:
    r"""Give the regular expression of a character of a Unicode category, ``\p{P}`` or ``\p{S}`` elsewhere.

    It is written in ranges, since beyond U+FFFF :mod:`re` looks at each entry of a class in turn.
    """
    codes = [code for code in range(_HIGHEST) if unicodedata.category(chr(code))[0] == letter]
    starts = [code for code, before in zip(codes, [-2, *codes], strict=False) if code != before + 1]
    ends = [code for code, after in zip(codes, [*codes[1:], -2], strict=True) if code + 1 != after]
    ranges = (rf"\U{start:08x}-\U{end:08x}" for start, end in zip(starts, ends, strict=True))
    return f"[{''.join(ranges)}]"


TOKENIZERS: dict[str, Callable[[], Spacing]] = {
    "minimalistic": _minimalistic,
    "character-by-character": _character_by_character,
    "13a": _thirteen_a,
    "v14": _fourteen,
}
