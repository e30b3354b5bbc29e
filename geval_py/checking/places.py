"""Places of problems on a line, with their messages: one function for each rule, and one for all malformed lines.

Each takes the decoded line and its number. They are called only for the few lines that are shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from geval_py.checking.rules import RULES_BY_CODE, Place
from geval_py.reading import schemes, wordprobs
from geval_py.scoring.kernel import NOT_A_NUMBER
from geval_py.scoring.kernel.reference import error_kind, malformed_error
from geval_py.text import shorten, visible

LONGEST_LINE = 10_000_000  # characters that are parsed in Python for a place; a gigabyte would take minutes
ODD_CHARACTER = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\xa0\u2007\u200b-\u200f\u2028-\u202f\u2066-\u2069\ufeff\t]"
_ODD_BUT_TAB = ODD_CHARACTER.replace("\t", "")
NAMES = {
    "\t": "TAB",
    "\xa0": "no-break space",
    "\ufeff": "byte order mark",
    "\x00": "NUL",
    "\u200b": "zero-width space",
}


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
    found, column = [], 1
    for token, word, value in zip(text.split(" "), words, values, strict=True):
        found.append((column, token, word, value))
        column += len(token) + 1
    return found


def _place(text: str, line: int, column: int, token: str, message: str) -> Place:
    return Place(line=line, column=column, token=token, message=message, text=text)


def read_as_logs(text: str, line: int) -> Place:
    """Point at the number that makes the line one of logarithms."""
    column, token, word, _ = next(entry for entry in _entries(text) if not 0 <= entry[3] <= 1)
    number = token[len(word) + 1 :]
    message = f"`{visible(shorten(number))}` is not in [0,1], so all values of the line are read as logarithms"
    return _place(text, line, column + len(word) + 1, token, message)


def wrong_sum(text: str, line: int, with_rest: str = "") -> Place:
    """Name the sum of the line."""
    total = wordprobs.sum_in_order([value for _, _, _, value in _entries(text)])
    return _place(text, line, 1, "", f"the probabilities sum to {total!r}{with_rest}; they are divided by it")


def no_rest_mass(text: str, line: int) -> Place:
    """Point at the rest entry of 0, or after the last entry."""
    rests = [entry for entry in _entries(text) if entry[2] == wordprobs.REST]
    if rests:
        return _place(text, line, rests[0][0], rests[0][1], "the rest has probability 0: a miss costs infinity")
    return _place(text, line, len(text) + 1, "", "no rest entry, and nothing left for one: a miss costs infinity")


def zero_read_as_certainty(text: str, line: int) -> Place:
    """Point at the first zero."""
    column, token, word, _ = _entries(text)[0]
    message = "all values are 0: they are read as logarithms, each of probability 1"
    return _place(text, line, column + len(word) + 1, token, message)


def repeated_word(text: str, line: int) -> Place:
    """Point at the second entry of a word."""
    seen: dict[str, int] = {}
    for column, token, word, _ in _entries(text):
        if word in seen:
            name = "the rest" if word == wordprobs.REST else f"`{visible(shorten(word))}`"
            message = f"{name} stands at column {seen[word]} already; its entries add up"
            return _place(text, line, column, token, message)
        seen[word] = column
    return _place(text, line, 1, "", "a word stands on the line more than once")


def zero_entry(text: str, line: int) -> Place:
    """Point at the first word of probability 0."""
    column, token, word, _ = next(entry for entry in _entries(text) if entry[2] != wordprobs.REST and entry[3] == 0)
    return _place(text, line, column, token, f"`{visible(shorten(word))}` has probability 0; leave it out")


def odd_character_in(text: str) -> re.Match[str] | None:
    """Find the first odd character; a TAB only if it does not look like a separator of entries."""
    looks_split = any(":" in token and re.search("[0-9]\t", token) for token in text.split(" "))
    return re.search(_ODD_BUT_TAB if looks_split else ODD_CHARACTER, text)


def odd_character(text: str, line: int) -> Place:
    """Point at the first odd character."""
    match = odd_character_in(text)
    if match is None:
        return _place(text, line, 1, "", "an odd character")
    character = match.group()
    name = NAMES.get(character, "control or invisible character")
    message = f"a {name} (U+{ord(character):04X}), which is a part of the word"
    return _place(text, line, match.start() + 1, character, message)


def wrong_separator(text: str, line: int) -> Place:
    """Point at the character that looks like a separator."""
    for column, _, word, _ in _entries(text):
        places = [match.end() for match in re.finditer(r"[0-9][,;\t]", word)] if ":" in word else []
        if places:
            place = next((place for place in places if ":" in word[:place]), places[0])
            separator = word[place - 1]
            name = NAMES.get(separator, f"`{separator}`")
            message = f"two entries look split by {name}; only a space separates entries"
            return _place(text, line, column + place - 1, separator, message)
    return _place(text, line, 1, "", "two entries look split by something else than a space")


def carriage_return(text: str, line: int) -> Place:
    """Point at the end of the line, where carriage returns mostly are."""
    return _place(text, line, len(text) + 1, "\r", "a carriage return, which is dropped")


def not_utf8(text: str, line: int) -> Place:
    """Point at the first replacement character."""
    column = text.find("\ufffd") + 1
    return _place(text, line, max(1, column), "\ufffd", "bytes that are not UTF-8, read as U+FFFD")


def no_guess(text: str, line: int) -> Place:
    """Point at the rest entry."""
    return _place(text, line, 1, text, "the rest alone: no word is more likely than another")


def vector(text: str, line: int, metric: str) -> Place:
    """Name the metric that cannot read a vector of buckets."""
    token = text.partition(" ")[0]
    message = f"{metric} compares words, which a vector of buckets does not have; write `word:probability` entries"
    return _place(text, line, 1, token, message)


def impossible_word(text: str, line: int, expected: str) -> Place:
    """Name the expected word, which has no mass."""
    message = f"the expected word `{visible(shorten(expected))}` has no mass: the loss is infinite"
    return _place(text, line, 1, expected, message)


PLACERS: dict[str, Callable[[str, int], Place]] = {
    **dict.fromkeys(("E111", "E112", "E113", "E114", "E115", "E116"), malformed),
    "E118": wrong_separator,
    "W201": read_as_logs,
    "W202": wrong_sum,
    "W203": partial(wrong_sum, with_rest=" with the rest entry"),
    "W204": no_rest_mass,
    "W205": zero_read_as_certainty,
    "W206": repeated_word,
    "W207": zero_entry,
    "W208": odd_character,
    "W209": wrong_separator,
    "W210": carriage_return,
    "W212": not_utf8,
    "W214": no_guess,
}


def case_mismatch(text: str, line: int, expected: str) -> Place:
    """Point at the entry that differs only in case, or at the beginning of the line."""
    folded = expected.casefold()
    for column, token, word, _ in _entries(text):
        if word.casefold() == folded:
            message = f"`{visible(shorten(expected))}` is expected; this is another word"
            return _place(text, line, column, token, message)
    message = f"`{visible(shorten(expected))}` is expected; the output has no capital anywhere"
    return _place(text, line, 1, expected, message)


def lists_in_other_case_only(text: str, expected: str) -> bool:
    """Whether a line lists a word only in another case."""
    folded = expected.casefold()
    if f" {folded}:" not in f" {text.casefold()}":
        return False
    words = [token.rpartition(":")[0] for token in text.split(" ")]
    return expected not in words and any(word.casefold() == folded for word in words)


def place_of(code: str, text: str, line: int) -> Place:
    """Return the place of a rule's problem on a line; on a very long line, its beginning.

    A malformed line is parsed whatever its length, because its error stops the scoring too, with the same place.
    """
    if len(text) > LONGEST_LINE and PLACERS[code] is not malformed:
        message = f"{RULES_BY_CODE[code].summary} (the line has {len(text)} characters, too many to say where)"
        return Place(line=line, column=1, token="", message=message)
    return PLACERS[code](text, line)


def has_word(text: str) -> bool:
    """Whether a line has an entry of a word, and not of the rest alone."""
    return any(not token.startswith(":") for token in text.split(" ") if token)


def has_capital_word(text: str) -> bool:
    """Whether a word on the line has a capital letter (the E of an exponent does not count)."""
    words = (match.group().rpartition(":")[0] for match in re.finditer("[^ ]+", text))
    return any(word != word.lower() for word in words)


def lists_word(text: str, word: str) -> bool:
    """Whether a line has an entry for a word."""
    return any(
        token.rpartition(":")[0] == word and wordprobs.NUMBER.fullmatch(token.rpartition(":")[2])
        for token in text.split(" ")
    )
