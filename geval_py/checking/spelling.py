"""Answers that an output lists only in another spelling: in lower case, escaped, in a wrong encoding.

A mistake in the spelling is of the whole output: hardly any answer that it changes is listed as it is.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from html.entities import codepoint2name
from typing import NamedTuple
from urllib.parse import quote

from geval_py.checking.rules import Place
from geval_py.text import shorten, visible

MIN_MISSPELT = 3  # lines that have the other spelling
MIN_SHARE = 0.05  # of the lines, for a spelling that is also a word: on fewer lines it happens to every model
MIN_RATIO = 4.0  # lines with the other spelling for one with the right one
# Cyrillic letters beside the Latin ones of Unicode's confusables.txt.
LATIN, LOOK_ALIKE = "ABCEHKMOPTXaceopxyijs", "АВСЕНКМОРТХасеорхуіјѕ"


class Folding(NamedTuple):
    """A way to misspell answers: what is said of it, the remedy, and functions that make the other spelling."""

    name: str
    fix: str
    spellings: tuple[Callable[[str], str], ...]
    is_word: bool = False  # the spelling is often a word of its own


def _without_accents(word: str) -> str:
    letters = unicodedata.normalize("NFD", word).translate(str.maketrans("łŁøØđĐ", "lLoOdD"))
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def _misread(encoding: str, word: str) -> str:
    return "".join(bytes([byte]).decode(encoding, "ignore") or chr(byte) for byte in word.encode())


def _translated(letters: str, others: str, word: str) -> str:
    return word.translate(str.maketrans(letters, others))


_UTF_8 = 'Read and write all files as UTF-8: open(path, encoding="utf-8") in Python.'
_ATTACHED = "{}. {}, {}; {}: {}! {}? \"{}\" '{}' ({})"
FOLDINGS = (
    Folding(
        "in another case",
        "Do not change the case of the training text, or list a word in each case.",
        (str.lower, str.upper, str.capitalize),
        is_word=True,
    ),
    Folding(
        "in another Unicode form",
        'Write words in the form of the answers: unicodedata.normalize("NFC", word), or "NFD", in Python.',
        (partial(unicodedata.normalize, "NFD"), partial(unicodedata.normalize, "NFC")),
    ),
    Folding(
        "as UTF-8 that was read as cp1252 or Latin-1",
        _UTF_8,
        (partial(_misread, "cp1252"), partial(_misread, "latin-1")),
    ),
    Folding(
        "with HTML entities",
        "Replace them: html.unescape(word) in Python.",
        (
            html.escape,
            lambda word: word.encode("ascii", "xmlcharrefreplace").decode(),
            lambda word: "".join(f"&{codepoint2name[ord(c)]};" if ord(c) in codepoint2name else c for c in word),
        ),
    ),
    Folding(
        "with escapes",
        "Write the characters themselves: json.dumps(…, ensure_ascii=False), or urllib.parse.unquote(word).",
        (lambda word: json.dumps(word)[1:-1], lambda word: word.encode("unicode_escape").decode(), quote),
    ),
    Folding("without accents", _UTF_8, (_without_accents,), is_word=True),
    Folding(
        "with `?` for other characters than ASCII",
        _UTF_8,
        (lambda word: word.encode("ascii", "replace").decode(), partial(re.sub, "[^\0-\x7f]", "\ufffd")),
    ),
    Folding(
        "with other quotes or apostrophes",
        "Write quotes as the answers do, straight or curly.",
        (partial(_translated, "‘’“”„", '\'\'"""'), partial(_translated, "'\"", "’”")),
    ),
    Folding(
        "with more or less punctuation or quotes",
        "Split punctuation from words as the answers do.",
        (partial(re.sub, r"^[^\w\s]+|[^\w\s]+$", ""), *(form.format for form in _ATTACHED.split())),
        is_word=True,
    ),
    Folding(
        "in letters of another script that look alike",
        "Write the letters of the language.",
        (partial(_translated, LATIN, LOOK_ALIKE), partial(_translated, LOOK_ALIKE, LATIN)),
    ),
    Folding(
        "without the spaces or the number around them, and so the answers are at fault",
        "Clean the answers, or ask who made the challenge.",
        (partial(re.sub, r"^\d+[\t,;]|^\s+|\s+$", ""),),
    ),
)
_VARIANTS = [(folding, spell) for folding in FOLDINGS for spell in folding.spellings]


@lru_cache(1000)
def _other_spellings(answer: str) -> tuple[tuple[int, str], ...]:
    """Return the spellings of an answer, with the numbers of their variants, that differ from it."""
    spellings = ((number, spell(answer)) for number, (_, spell) in enumerate(_VARIANTS))
    return tuple((number, spelling) for number, spelling in spellings if spelling not in (answer, ""))


def find_misspelling(sample: Iterable[tuple[bytes, bytes]]) -> tuple[str, str, list[Place]] | None:
    """Return what to say of the folding by which most answers of lines are listed, and hardly any as they are.

    The values are the message, the remedy and the places; None if there is no such folding.
    """
    rows = [[str(field, "utf-8", "replace") for field in row] for row in sample]
    places: list[list[Place]] = [[] for _ in _VARIANTS]
    listed = []
    for line, (text, answer) in enumerate(rows, 1):
        entries = f" {text}"
        if f" {answer}:" in entries:
            listed.append(answer)
            continue
        for variant, spelling in _other_spellings(answer):
            if (start := entries.find(f" {spelling}:")) >= 0:
                wanted = f"`{visible(shorten(answer))}` is expected; this is another word"
                places[variant].append(Place(line, start + 1, spelling, wanted, text))
    right = Counter(variant for answer in listed for variant, _ in _other_spellings(answer))  # though it is different
    variant = max(range(len(_VARIANTS)), key=lambda variant: len(places[variant]) - right[variant])
    (folding, _), misspelt = _VARIANTS[variant], places[variant]
    if len(misspelt) >= max(MIN_MISSPELT, MIN_SHARE * len(rows) * folding.is_word, MIN_RATIO * right[variant]):
        line, _, spelling, *_ = misspelt[0]
        pair = f"`{visible(shorten(spelling))}` for `{visible(shorten(rows[line - 1][1]))}`"
        of_all = f"{len(misspelt)} of the first {len(rows)} answers"
        return f"{of_all} are listed only {folding.name}, such as {pair}", folding.fix, misspelt
    return None
