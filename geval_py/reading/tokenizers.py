r"""Tokenizers: how text is split into words, for features and ``--just-tokenize``. Scores do not depend on them.

    minimalistic             punctuation is split off at the beginning and the end of a word, not inside it
    character-by-character   every character that is not white space is a token
    13a                      that of mteval-v13a.pl, as BLEU is computed with; from sacreBLEU
    v14                      that of mteval-v14.pl, for all scripts; from sacreBLEU

GEval's minimalistic tokens are the matches of ``[\w\d]+\S*[\w\d]+|[\w\d]|[^\w\s]+``. A token that begins with a word
character thus ends with the last one of its run of characters other than white space, which is how it is written
here: in linear time, whatever the line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from geval_py.errors import UsageError
from geval_py.text import nearest, visible

Split: TypeAlias = Callable[[str], list[str]]

_MINIMALISTIC = r"\w(?:\S*\w)?|[^\w\s]+"


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """A way to split text into tokens. Equal names do the same."""

    name: str
    split: Split = field(compare=False, repr=False)

    def tokens(self, text: str) -> list[str]:
        """Give the tokens of a text, in order."""
        return self.split(text)

    def line(self, text: str) -> str:
        """Give a line with one space between tokens; its fields, split by TAB, remain fields."""
        return "\t".join(" ".join(self.split(part)) for part in text.split("\t"))


def find_tokenizer(name: str) -> Tokenizer:
    """Make a tokenizer; raises UsageError for a name that is not known, or if sacreBLEU is needed and missing.

    >>> find_tokenizer("minimalistic").tokens("(Well-known, isn't it?)")
    ['(', 'Well-known', ',', "isn't", 'it', '?)']
    >>> find_tokenizer("character-by-character").line("a bc")
    'a b c'
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


def _minimalistic() -> Split:
    return re.compile(_MINIMALISTIC).findall


def _character_by_character() -> Split:
    return re.compile(r"\S").findall


def _thirteen_a() -> Split:
    try:
        from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
        from sacrebleu.tokenizers.tokenizer_re import TokenizerRegexp
    except ImportError as error:
        raise _missing("13a") from error
    return _without_memory(Tokenizer13a, TokenizerRegexp)


def _fourteen() -> Split:
    try:
        from sacrebleu.tokenizers.tokenizer_intl import TokenizerV14International
    except ImportError as error:
        raise _missing("v14") from error
    return _without_memory(TokenizerV14International)


def _missing(name: str) -> UsageError:
    message = f"the tokenizer {name} comes from sacreBLEU: pip install sacrebleu"
    return UsageError(message=message)


def _without_memory(*kinds: Any) -> Split:
    """Split by the first of sacreBLEU's classes, which would keep 65,536 lines each: half a gigabyte of long ones."""
    tokenize: Callable[[str], str] = kinds[0]()
    forget = [kind.__call__.cache_clear for kind in kinds]

    def split(text: str) -> list[str]:
        tokens = tokenize(text).split()
        for clear in forget:
            clear()
        return tokens

    return split


TOKENIZERS: dict[str, Callable[[], Split]] = {
    "minimalistic": _minimalistic,
    "character-by-character": _character_by_character,
    "13a": _thirteen_a,
    "v14": _fourteen,
}
