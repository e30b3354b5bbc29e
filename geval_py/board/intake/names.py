"""Names of submitters: those that a reader cannot tell apart are one. No name ever becomes a path."""

from __future__ import annotations

import re
import unicodedata

from geval_py.board.values import RejectedError
from geval_py.text import shorten, visible

MOST_NAME = 100  # characters
_INVISIBLE = {"Cc", "Cf", "Cs"}  # control and format characters, and surrogates
# Of Unicode's Default_Ignorable_Code_Point, what is none of those; and the letters that are drawn as a blank.
_IGNORABLE = re.compile("[\u034f\u17b4\u17b5\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_BLANK = re.compile("[\t-\r\x85\u115f\u1160\u2800\u3164\uffa0]")


def folded(name: str) -> str:
    """Fold a name: names that differ only in case, Unicode form, spaces or invisible characters have one fold.

    Raises RejectedError for a name of which nothing is left, and for one of more than 100 characters.

    >>> folded("  Anna\u00a0Nowak "), folded("anna \u200bNOWAK")
    ('anna nowak', 'anna nowak')
    """
    if len(name) > MOST_NAME:
        shown = visible(shorten(name))
        raise RejectedError(reason=f"the name `{shown}` has more than {MOST_NAME} characters")
    key = name
    for _ in range(3):  # folding may compose what has a fold of its own; it comes to rest after two rounds
        key = unicodedata.normalize("NFKC", _seen(unicodedata.normalize("NFKC", key)).casefold())
    key = re.sub(r"\s+", " ", key).strip()
    if not any(unicodedata.category(character)[0] in "LNPS" for character in key):
        raise RejectedError(reason=f"the name `{visible(name)}` has no letter that can be seen")
    return key


def _seen(text: str) -> str:
    """Leave out what cannot be seen, and write every blank as a space."""
    text = _BLANK.sub(" ", _IGNORABLE.sub("", text))
    return "".join(
        " " if unicodedata.category(character)[0] == "Z" else character
        for character in text
        if unicodedata.category(character) not in _INVISIBLE
    )
