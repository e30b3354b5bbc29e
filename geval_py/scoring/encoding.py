"""Words and texts as lines in UTF-8, each ended by LF."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from contextlib import suppress
from typing import Any, cast

from geval_py.errors import UsageError
from geval_py.text import shown

_TOKENS = "words are wanted, not the tokens of a language model: see geval predict, docs/predict.md"
SEPARATORS = {" ": "a space", "\n": "a line end", "\r": "a carriage return"}
_SEPARATOR = re.compile(r"[ \n\r]")
_WORDS = re.compile(r"(?:[^ \n\r]++\n)*+")


def join_words(words: Sequence[Hashable]) -> bytes:
    """Return words as UTF-8 lines, each ended by LF; raises UsageError for one that an output cannot hold."""
    with suppress(TypeError, UnicodeEncodeError):
        text = "".join([cast("str", word) + "\n" for word in words])
        if text.count("\n") == len(words) and _WORDS.fullmatch(text):
            return text.encode()
    fault = next(filter(None, map(fault_of_word, words)))
    are_tokens = any(isinstance(word, str) and word.startswith(" ") for word in words)
    raise UsageError(fault + f"\n  {_TOKENS}" * are_tokens)


def fault_of_word(word: Hashable) -> str | None:
    """Return why an output cannot hold a word; None if it can."""
    if not isinstance(word, str):
        return f"the word {word!r} is not a string"
    if not word:
        return "an empty word: give the probability of all other words as rest=…"
    if separator := _SEPARATOR.search(word):
        return f"the word {word!r} contains {SEPARATORS[separator[0]]}, which would split the line"
    try:
        word.encode()
    except UnicodeEncodeError as error:
        return f"the word {word!r} cannot be written as UTF-8: {error.reason}"
    return None


def reference_texts(references: Any, *, are_words: bool) -> list[str]:
    """Return references as texts: words or, for other metrics, texts and numbers."""
    if isinstance(references, str | bytes):
        raise UsageError(f"references are a list, not {shown(references)}: for one line write [word]")
    return [str(one) if isinstance(one, int | float) and not are_words else one for one in references]


def encoded_texts(what: str, texts: Sequence[str], first: int = 0) -> bytes:
    """Encode texts as lines, each ended by LF; an error names ``what[first + place]``.

    Lone surrogates become the bytes that they stand for, which are replaced when read, as in a file.
    """
    for index, text in enumerate(texts, first):
        if not isinstance(text, str):
            raise UsageError(f"{what}[{index}] is {shown(text)}, which is no text")
        if "\n" in text:
            raise UsageError(f"{what}[{index}] contains a line end; give one line an item")
    joined = "".join([text + "\n" for text in texts])
    try:
        return joined.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return joined.encode("utf-8", "surrogatepass")
