"""Places of problems on a line, with their messages.

Each function takes the decoded line and its number, and perhaps what was found there. They are called only for the
few lines that are shown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from geval_py.reading import schemes, wordprobs
from geval_py.scoring.kernel import NOT_A_NUMBER
from geval_py.scoring.kernel.reference import error_kind, malformed_error
from geval_py.text import shorten, visible


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The place of a problem: line and column from 1 (the column in characters), the token there, the message.

    ``line`` 0 is the file as a whole. ``text`` is the whole line, to be shown with a caret; it may be "".
    """

    line: int
    column: int
    token: str
    message: str
    text: str = ""


MAX_LINE = 10_000_000  # characters that are parsed in Python for a place; a gigabyte would take minutes
ODD_CHARACTER = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\xa0\u2007\u200b-\u200f\u2028-\u202f\u2066-\u2069\ufeff\t]"
_ODD_BUT_TAB = ODD_CHARACTER.replace("\t", "")
NAMES = {
    "\t": "TAB",
    "\xa0": "no-break space",
    "\ufeff": "byte order mark",
    "\x00": "NUL",
    "\u200b": "zero-width space",
}


def stated(text: str, line: int, column: int, token: str, message: str) -> Place:
    """Return a place of which all is known."""
    return Place(line=line, column=column, token=token, message=message, text=text)


def malformed(text: str, line: int) -> Place:
    """Return the place of the first error of a malformed line."""
    error = malformed_error(text, schemes.DEFAULT_BITS, line)
    message = error.hint
    if error_kind(error) == NOT_A_NUMBER and error.token:
        kind, advice = wordprobs.number_mistake(error.token)
        message = f"`{visible(shorten(error.token))}` is not a number ({kind}); {advice}"
    return Place(line=line, column=error.column, token=error.token, message=message, text=error.text)


def _entries(text: str) -> list[tuple[int, str, str, float]]:
    """Return the column, token, word and value of each entry."""
    words, values = wordprobs.parse_entries(text, 0)
    entries, column = [], 1
    for token, word, value in zip(text.split(" "), words, values, strict=True):
        entries.append((column, token, word, value))
        column += len(token) + 1
    return entries


def read_as_logs(text: str, line: int) -> Place:
    """Point at the number that makes the line one of logarithms."""
    column, token, word, _ = next(entry for entry in _entries(text) if not 0 <= entry[3] <= 1)
    number = token[len(word) + 1 :]
    message = f"`{visible(shorten(number))}` is not in [0,1], so all values of the line are read as logarithms"
    return stated(text, line, column + len(word) + 1, token, message)


def wrong_sum(text: str, line: int, with_rest: str = "") -> Place:
    """Name the sum of the line."""
    total = wordprobs.sum_in_order([value for _, _, _, value in _entries(text)])
    return stated(text, line, 1, "", f"the probabilities sum to {total!r}{with_rest}; they are divided by it")


def no_rest_mass(text: str, line: int) -> Place:
    """Point at the rest entry of 0, or after the last entry."""
    rests = [entry for entry in _entries(text) if entry[2] == wordprobs.REST]
    if rests:
        return stated(text, line, rests[0][0], rests[0][1], "the rest has probability 0: a miss costs infinity")
    return stated(text, line, len(text) + 1, "", "no rest entry, and nothing left for one: a miss costs infinity")


def zero_read_as_certainty(text: str, line: int) -> Place:
    """Point at the first zero."""
    column, token, word, _ = _entries(text)[0]
    message = "all values are 0: they are read as logarithms, each of probability 1"
    return stated(text, line, column + len(word) + 1, token, message)


def repeated_word(text: str, line: int) -> Place:
    """Point at the second entry of a word."""
    seen: dict[str, int] = {}
    for column, token, word, _ in _entries(text):
        if word in seen:
            name = "the rest" if word == wordprobs.REST else f"`{visible(shorten(word))}`"
            message = f"{name} stands at column {seen[word]} already; its entries add up"
            return stated(text, line, column, token, message)
        seen[word] = column
    return stated(text, line, 1, "", "a word stands on the line more than once")


def zero_entry(text: str, line: int) -> Place:
    """Point at the first word of probability 0."""
    column, token, word, _ = next(entry for entry in _entries(text) if entry[2] != wordprobs.REST and entry[3] == 0)
    return stated(text, line, column, token, f"`{visible(shorten(word))}` has probability 0; leave it out")


def odd_character_in(text: str) -> re.Match[str] | None:
    """Find the first odd character; a TAB only if it does not look like a separator of entries."""
    looks_split = any(":" in token and re.search("[0-9]\t", token) for token in text.split(" "))
    return re.search(_ODD_BUT_TAB if looks_split else ODD_CHARACTER, text)


def odd_character(text: str, line: int) -> Place:
    """Point at the first odd character."""
    match = odd_character_in(text)
    if match is None:
        return stated(text, line, 1, "", "an odd character")
    character = match.group()
    name = NAMES.get(character, "control or invisible character")
    message = f"a {name} (U+{ord(character):04X}), which is a part of the word"
    return stated(text, line, match.start() + 1, character, message)


def wrong_separator(text: str, line: int) -> Place:
    """Point at the character that looks like a separator."""
    for column, _, word, _ in _entries(text):
        places = [match.end() for match in re.finditer(r"[0-9][,;\t]", word)] if ":" in word else []
        if places:
            place = next((place for place in places if ":" in word[:place]), places[0])
            separator = word[place - 1]
            name = NAMES.get(separator, f"`{separator}`")
            message = f"two entries look split by {name}; only a space separates entries"
            return stated(text, line, column + place - 1, separator, message)
    return stated(text, line, 1, "", "two entries look split by something else than a space")


def carriage_return(text: str, line: int) -> Place:
    """Point at the end of the line, where carriage returns mostly are."""
    return stated(text, line, len(text) + 1, "\r", "a carriage return, which is dropped")


def not_utf8(text: str, line: int) -> Place:
    """Point at the first replacement character."""
    column = text.find("\ufffd") + 1
    return stated(text, line, max(1, column), "\ufffd", "bytes that are not UTF-8, read as U+FFFD")


def no_guess(text: str, line: int) -> Place:
    """Point at the rest entry."""
    return stated(text, line, 1, text, "the rest alone: no word is more likely than another")


def impossible_word(text: str, line: int, expected: str) -> Place:
    """Name the expected word, which has no mass."""
    message = f"the expected word `{visible(shorten(expected))}` has no mass: the loss is infinite"
    return stated(text, line, 1, expected, message)


def empty_text(text: str, line: int) -> Place:
    """Point at an empty line."""
    return stated(text, line, 1, "", "the line is empty")


def unknown_class(text: str, line: int, name: str, close: str | None) -> Place:
    """Name the class that the training set does not have, and the one that may be meant."""
    advice = f"; did you mean `{visible(shorten(close))}`?" if close else ""
    return stated(text, line, 1, name, f"the training set has no class `{visible(shorten(name))}`{advice}")


def certainty(text: str, line: int, token: str) -> Place:
    """Point at a probability of 0 or 1."""
    message = f"`{visible(shorten(token))}` is a certainty; if it is wrong, the score of the whole file is the worst"
    return stated(text, line, max(0, text.find(token)) + 1, token, message)


def case_mismatch(text: str, line: int, expected: str) -> Place:
    """Point at the entry that differs only in case, or at the beginning of the line."""
    folded = expected.casefold()
    for column, token, word, _ in _entries(text):
        if word.casefold() == folded:
            message = f"`{visible(shorten(expected))}` is expected; this is another word"
            return stated(text, line, column, token, message)
    message = f"`{visible(shorten(expected))}` is expected; the output has no capital anywhere"
    return stated(text, line, 1, expected, message)
