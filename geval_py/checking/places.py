"""Places of problems on a line, with their messages; only the few lines that are shown are taken apart for them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from geval_py.checking.rules import RULES_BY_CODE, Place
from geval_py.scoring.kernel import ERROR_KINDS
from geval_py.text import shorten, visible

MAX_LINE = 10_000_000  # characters that are parsed in Python for a place; a gigabyte would take minutes
ODD_CHARACTER = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\xa0\u2007\u200b-\u200f\u2028-\u202f\u2066-\u2069\ufeff\t]"
NAMES = {
    "\t": "TAB",
    "\xa0": "no-break space",
    "\ufeff": "byte order mark",
    "\x00": "NUL",
    "\u200b": "zero-width space",
}
SEPARATOR = re.compile(r":[-+.0-9eE]*[0-9]( \|(?!:)|[\t,;|\xa0])")  # after an entry


def separations(texts: Sequence[str]) -> list[Place]:
    """Return the first place on each line where another character than a space ends an entry; [] if few have one."""
    places = [
        Place(line, *_split_by(match), text)
        for line, text in enumerate(texts, 1)
        if (match := SEPARATOR.search(text))
    ]
    return places if 2 * len(places) >= len(texts) else []


def _split_by(match: re.Match[str]) -> tuple[int, str, str]:
    """Return the column and the separator that ends a match, and the message."""
    separator = match[1].strip(" ")
    return match.end(), separator, f"two entries look split by {name_of(separator)}; only a space separates entries"


def name_of(character: str) -> str:
    """Return what messages call a character."""
    return NAMES.get(character, f"`{visible(character)}`")


def place_of(code: str, line: int, text: str, *details: Any, bits: int) -> Place:
    """Return the place of a rule's problem on a line; ``details`` are column, token and message, if they are known.

    On a very long line, it is the beginning. A malformed line is parsed whatever its length, because its error stops
    the scoring too, with the same place.
    """
    rule = RULES_BY_CODE[code]
    if rule.has & ERROR_KINDS:
        # Imported here: a well-formed file does not need the kernel's twin.
        from geval_py.scoring.kernel.reference import malformed_error

        error = malformed_error(text, bits, line)
        return Place(line, error.column, error.token, error.hint, error.text)
    if len(text) > MAX_LINE:
        return Place(line, 1, "", f"{rule.summary} (the line has {len(text)} characters, too many to say where)")
    if details:
        column, token, message = details
        return Place(line, column, token, message, text)
    if code != "E119":
        return Place(line, *_point(code, text), text)
    from geval_py.reading.wordprobs import number_advice, parse_line

    written = parse_line(text, line)
    column, token, message = 1, "", "the exponentials of these logarithms total more than 1"
    if max(written.values) > 0.0 and written.words is not None:
        column, token, message = _point_at_entry(code, text)
    advice = number_advice(written.words, written.values)
    return Place(line, column, token, f"{message}; {advice}", text)


def odd_character_in(text: str) -> re.Match[str] | None:
    """Find the first odd character; a TAB only if no entry stands before it, from which it seems to separate."""
    looks_split = re.search(r":[^ ]*[0-9]\t", text)
    return re.search(ODD_CHARACTER.replace("\t", "") if looks_split else ODD_CHARACTER, text)


def _point(code: str, text: str) -> tuple[int, str, str]:
    """Return the column and the token of a rule's problem, and the message."""
    match code:
        case "W208" if odd := odd_character_in(text):
            name = NAMES.get(odd[0], "control or invisible character")
            return odd.start() + 1, odd[0], f"a {name} (U+{ord(odd[0]):04X}), which is a part of the word"
        case "W209" if match := SEPARATOR.search(text) or re.search(r"[0-9]([,;\t])", text):
            if re.search(r"(^| ):[-+.0-9eE]*\t$", text[: match.end()]):
                return match.end(), "\t", "a TAB after the rest: write the guess of one gap on each line"
            return _split_by(match)
        case "W210":  # carriage returns mostly are at the end
            return len(text) + 1, "\r", "a carriage return, which is dropped"
        case "W212":
            return max(1, text.find("\ufffd") + 1), "\ufffd", "bytes that are not UTF-8, read as U+FFFD"
        case "W214":
            return 1, text, "only a rest: all words are equally likely"
        case "W217":
            return 1, "", "the line is empty"
    return _point_at_entry(code, text)


def _point_at_entry(code: str, text: str) -> tuple[int, str, str]:
    """Return as :func:`_point` the first entry with a problem, or what the line as a whole has."""
    from geval_py.reading import wordprobs

    words, values = wordprobs.parse_entries(text, 0)
    total, column = wordprobs.sum_in_order(values), 1
    columns: dict[str, int] = {}  # of the words before
    for token, word, value in zip(text.split(" "), words, values, strict=True):
        name, number = "the rest" if word == wordprobs.REST else f"`{visible(shorten(word))}`", column + len(word) + 1
        match code:
            case "E119" | "W201" if not 0 <= value <= 1:
                what = f"`{visible(shorten(token[len(word) + 1 :]))}` is not in [0,1]"
                numbers = "values" if code == "W201" else "numbers"
                return number, token, f"{what}, so all {numbers} of the line are read as logarithms"
            case "W204" if word == wordprobs.REST:
                return column, token, "the rest is 0: if the answer is not listed, the loss is infinite"
            case "W205":
                return number, token, "all values are 0: they are read as logarithms, each of probability 1"
            case "W206" if word in columns:
                return column, token, f"{name} stands at column {columns[word]} already; its entries add up"
            case "W207" if word != wordprobs.REST and value == 0:
                return column, token, f"{name} has probability 0; leave it out"
        columns[word] = column
        column += len(token) + 1
    match code:
        case "W202" | "W203":
            of_rest = " with the rest entry" if code == "W203" else ""
            return 1, "", f"the probabilities sum to {total:.9g}{of_rest}; geval divides them by this sum"
        case "W204":
            others = "words that are not listed"
            message = f"no probability is left for {others}: if the answer is one of them, the loss is infinite"
            if total < wordprobs.MIN_TOTAL:
                message = f"only {1.0 - total:.2g} is left for {others}, no more than rounding explains"
            return len(text) + 1, "", message
    return 1, "", RULES_BY_CODE[code].summary
