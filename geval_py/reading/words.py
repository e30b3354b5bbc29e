"""From words, as a command line or a config.txt has them, to the values of options.

    word = "--" name | "--" name "=" value | "-" *switch | "-" *switch letter [ "=" ] [ value ] | value

A long name is written in full; a value may stand behind a name, or be the next word, unless that looks like an
option. The forms and the sentences are those of argparse, whose import and set-up would take longer than scoring.
"""

from __future__ import annotations

import re

from geval_py.errors import UsageError
from geval_py.text import visible
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


class Option(Value):
    """One option: its names, the field that its value goes to, and what a user should know.

    ``read`` makes the value of a word, or raises ValueError with a sentence about it; an option without it is a
    switch. A ``repeatable`` one collects its values; those of the command line come behind those of config.txt or, if
    it ``replaces``, in their place. One that may be given only ``once`` is no less in both. ``mode`` tells that it
    chooses what is shown; ``goes_with`` are the modes in which it means something (none named: in all), elsewhere it
    is refused, with ``otherwise`` behind, as it is in modes that it is ``useless_with``. One without ``help`` is
    known but not shown. ``argument`` is its name in Python, where that is not the field's; ``said`` how a sentence
    calls it, where that is not by its first name.
    """

    names: tuple[str, ...]
    field: str
    help: str = ""
    group: str = ""
    read: Callable[[str], object] | None = None
    metavar: str = ""
    repeatable: bool = False
    replaces: bool = False
    once: bool = False
    mode: bool = False
    goes_with: tuple[str, ...] = ()
    otherwise: str = ""
    useless_with: tuple[str, ...] = ()
    argument: str = ""
    said: str = ""

    @property
    def long_name(self) -> str:
        return self.names[-1]

    @property
    def title(self) -> str:
        """All its names, as in ``-t/--test-name``."""
        return "/".join(self.names)


def natural_number(text: str) -> int:
    """Read a whole number of up to 15 digits; raises ValueError."""
    if not re.fullmatch("[0-9]{1,15}", text):
        raise ValueError(f"{text!r} is not a whole number")
    return int(text)


def one_of(choices: tuple[str, ...]) -> Callable[[str], str]:
    """Read one of some words; raises ValueError."""

    def read(text: str) -> str:
        if text not in choices:
            raise ValueError(f"invalid choice: {text!r} (choose from {', '.join(map(repr, choices))})")
        return text

    return read


def read_words(words: Sequence[str], options: Sequence[Option]) -> tuple[dict[str, object], list[str]]:
    """Read words into the values of those options that they name, and the words that name none.

    Of an option named twice, the later value counts. Raises UsageError.
    """
    by_name = {name: option for option in options for name in option.names}
    values: dict[str, object] = {}
    strays: list[str] = []
    rest = iter(words)
    for word in rest:
        named = list(_named(word, by_name))
        strays += [] if named else [word]
        for option, value in named:
            _take(option, value, rest, values)
    return values, strays


def _named(word: str, by_name: dict[str, Option]) -> Iterator[tuple[Option, str | None]]:
    """Give the options that a word names, each with the value behind it, if there is one; none for another word."""
    name, equals, value = word.partition("=")
    if word in by_name:
        yield by_name[word], None
    elif name in by_name:
        yield by_name[name], value if equals else None
    elif word[:1] == "-" and word[1:2] != "-":
        yield from _letters(word, by_name)


def _letters(word: str, by_name: dict[str, Option]) -> Iterator[tuple[Option, str | None]]:
    """Give the options of a word such as ``-lsp2``: switches, and at most one with a value."""
    found: list[tuple[Option, str | None]] = []
    for place, letter in enumerate(word[1:], 2):
        option = by_name.get(f"-{letter}")
        if option is None:
            return
        if option.read is not None:
            found.append((option, word[place:].removeprefix("=") or None))
            break
        found.append((option, None))
    yield from found


def _take(option: Option, value: str | None, rest: Iterator[str], values: dict[str, object]) -> None:
    """Add an option's value, which may be the next of the rest of the words."""
    if option.read is None:
        if value is not None:
            raise _wrong(option, f"ignored explicit argument {value!r}")
        values[option.field] = True
        return
    if value is None:
        value = next(rest, None)
        if value is None or _looks_like_an_option(value):
            raise _wrong(option, "expected one argument")
    try:
        read = option.read(value)
    except ValueError as error:
        raise _wrong(option, str(error)) from error
    if option.once and option.field in values:
        raise _wrong(option, f"given twice: {values[option.field]} and {value}; give one")
    before = values.get(option.field, ())
    values[option.field] = (*before, read) if option.repeatable and isinstance(before, tuple) else read


def _looks_like_an_option(word: str) -> bool:
    return word.startswith("-") and word != "-" and " " not in word and not re.fullmatch(r"-[0-9]*\.?[0-9]+", word)


def _wrong(option: Option, message: str) -> UsageError:
    message = visible(f"argument {option.title}: {message}")
    return UsageError(message=f"{message}\n  geval --help shows the options")
