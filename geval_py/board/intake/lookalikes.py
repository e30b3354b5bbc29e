"""Names of submitters: which look alike, by the skeletons of Unicode, and which are not allowed.

Unicode Technical Standard 39, https://www.unicode.org/reports/tr39/, section 4: two texts look alike if their
skeletons are equal. The table of characters is ``confusables.txt`` beside this file.
"""

from __future__ import annotations

import os
import re
import unicodedata
from functools import cache, lru_cache

from geval_py.board.intake.identity import folded, visible_part
from geval_py.board.submission import RejectedError
from geval_py.text import shorten, visible

TABLE = os.path.join(os.path.dirname(__file__), "confusables.txt")
MOST_MARKS = 2  # combining marks in a row
MOST_SHOWN = 60  # characters of a name in a message

_MARKS = ("Mn", "Me")
_LINE_ENDS = ("Cc", "Zl", "Zp")  # control characters, and what else begins a line
_DIRECTIONS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")  # Bidi_Control


def check_name(name: str) -> None:
    """Check a submitter's name; raises RejectedError for one that is not allowed.

    A name has a letter, digit or sign that can be seen, and at most 100 characters; no control characters, none that
    change the direction of text, and at most two combining marks in a row.
    """
    folded(name)
    shown = visible(shorten(name, MOST_SHOWN))
    control = next((one for one in name if unicodedata.category(one) in _LINE_ENDS), None)
    if control is not None:
        raise RejectedError(reason=f"the name `{shown}` has a control character, {_code(control)}")
    direction = _DIRECTIONS.search(name)
    if direction:
        raise RejectedError(
            reason=f"the name `{shown}` has a character that changes the direction of text, {_code(direction[0])}"
        )
    marks = 0
    for one in unicodedata.normalize("NFD", name):
        marks = marks + 1 if unicodedata.category(one) in _MARKS else 0
        if marks > MOST_MARKS:
            raise RejectedError(reason=f"the name `{shown}` has more than {MOST_MARKS} combining marks in a row")


def skeleton(text: str) -> str:
    """Return the skeleton of a text, without invisible characters, and with one space between words.

    >>> skeleton("\N{CYRILLIC SMALL LETTER A}nn"), skeleton("Tom I0")
    ('ann', 'Torn lO')
    """
    return _skeleton(text, keep_ascii=False)


def _skeleton(text: str, *, keep_ascii: bool) -> str:
    """Return the skeleton; if ``keep_ascii``, of all other characters alone, so that I and l stay different."""
    table = _table()
    parts = unicodedata.normalize("NFD", visible_part(text))
    parts = "".join(one if keep_ascii and one.isascii() else table.get(one, one) for one in parts)
    return re.sub(r"\s+", " ", unicodedata.normalize("NFD", parts)).strip()


@cache
def _table() -> dict[str, str]:
    found: dict[str, str] = {}
    with open(TABLE, encoding="ascii") as file:
        for line in file:
            prototype, semicolon, alike = line.partition(";")
            if semicolon and not line.startswith("#"):
                written = "".join(chr(int(code, 16)) for code in prototype.split())
                found.update((chr(int(code, 16)), written) for code in alike.split())
    return found


@lru_cache(maxsize=20_000)
def looks(name: str) -> frozenset[tuple[str, str]]:
    """Return the looks of a name: names look alike if they have one in common.

    They are the skeletons of the name in small letters and of the name as written; and, in small letters again, of
    the name with all but its ASCII characters replaced, so that a capital Greek Beta is a small b too. Each is
    compared with its own kind: `Ian` looks like `lan`, which is `Lan` in small letters, but not like `Lan`.

    >>> looks("Bob").isdisjoint(looks("\N{GREEK CAPITAL LETTER BETA}OB")), looks("Ian").isdisjoint(looks("Lan"))
    (False, True)
    """
    replaced = _skeleton(name, keep_ascii=True)
    small = skeleton(unicodedata.normalize("NFKC", replaced).casefold())
    return frozenset({("small", skeleton(folded(name))), ("written", skeleton(name)), ("replaced", small)})


def differing(one: str, other: str) -> str:
    """Name the first character of ``one`` that ``other`` has not, for two names that look alike; "" if there is none.

    >>> differing("\N{CYRILLIC SMALL LETTER A}nn", "ann")
    'U+0430 CYRILLIC SMALL LETTER A'
    """
    found = next((character for character in one if not character.isascii() and character not in other), None)
    return "" if found is None else _code(found)


def _code(character: str) -> str:
    return f"U+{ord(character):04X} {unicodedata.name(character, '')}".rstrip()
