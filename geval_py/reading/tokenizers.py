r"""Tokenizers: how text is split into words, for features and ``--just-tokenize``. Scores do not depend on them.

    minimalistic             punctuation is split off at the beginning and the end of a word, not inside it
    character-by-character   every character is a token, a space as ``_``
    13a                      that of mteval-v13a.pl, as BLEU is computed with; from sacreBLEU
    v14                      that of mteval-v14.pl, for all scripts; from sacreBLEU

A tokenizer writes a line with spaces between its tokens; a feature is what stands between white space there.

GEval's minimalistic tokens are the matches of ``[\w\d]+\S*[\w\d]+|[\w\d]|[^\w\s]+``, where ``\w`` and ``\s`` know
ASCII only. A token that begins with a word character thus ends with the last one of its run of characters other than
white space, which is how it is written here: in linear time, whatever the line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from geval_py.errors import UsageError
from geval_py.reading.preparation import split_words
from geval_py.text import nearest, strip_spaces, visible

Spacing: TypeAlias = Callable[[str], str]

_MINIMALISTIC = r"(?a)\w(?:\S*\w)?|[^\w\s]+"


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


def find_tokenizer(name: str) -> Tokenizer:
    """Make a tokenizer; raises UsageError for a name that is not known, or if sacreBLEU is needed and missing.

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
    try:
        from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
        from sacrebleu.tokenizers.tokenizer_re import TokenizerRegexp
    except ImportError as error:
        raise _missing("13a") from error
    return _without_memory(Tokenizer13a, TokenizerRegexp)


def _fourteen() -> Spacing:
    try:
        from sacrebleu.tokenizers.tokenizer_intl import TokenizerV14International
    except ImportError as error:
        raise _missing("v14") from error
    return _without_memory(TokenizerV14International)


def _missing(name: str) -> UsageError:
    message = f"the tokenizer {name} comes from sacreBLEU: pip install sacrebleu"
    return UsageError(message=message)


def _without_memory(*kinds: Any) -> Spacing:
    """Space by the first of sacreBLEU's classes, which would keep 65,536 lines each: half a gigabyte of long ones."""
    tokenize: Callable[[str], str] = kinds[0]()
    forget = [kind.__call__.cache_clear for kind in kinds]

    def spaced(text: str) -> str:
        line = tokenize(text)
        for clear in forget:
            clear()
        return line

    return spaced


TOKENIZERS: dict[str, Callable[[], Spacing]] = {
    "minimalistic": _minimalistic,
    "character-by-character": _character_by_character,
    "13a": _thirteen_a,
    "v14": _fourteen,
}
