r"""Preparation: the text flags of an evaluation scheme, and a tokenizer, change each line before it is scored.

    l  u  c                     lower case, upper case, case folding
    m<regexp>                   keep only the matches, joined without spaces
    t<regexp>                   keep only the words in which the regexp is found, joined by spaces
    s<regexp><replacement>      replace the matches; ``\N`` in the replacement is group N, ``\0`` the whole match
    S                           sort the words by code points and join them by spaces

The flags are applied from left to right to output and expected lines alike, and to the whole line: a regexp also sees
the numbers of a distribution. Words are split at white space like Haskell's ``Data.Text.words``. The tokenizer comes
last and keeps the TABs of a line, which separate references.

The regular expressions are Python's :mod:`re`, in Unicode. GEval uses PCRE on the bytes of UTF-8: there ``.`` is one
byte, and ``\w``, ``\d``, ``\s``, ``\b`` and ``(?i)`` match ASCII only (a leading ``(?a)`` does the same here, except
for ``.``). PCRE's extensions are refused: ``\p{L}``, ``\Q…\E``, ``\K``, ``\h``, recursion, ``[[:alpha:]]``; so is an
unknown group in a replacement. Beware: ``a{,3}`` means at most three here, but the five characters in PCRE.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from geval_py.errors import SchemeError
from geval_py.reading.schemes import EvaluationScheme, Flag
from geval_py.text import split_words, visible

Step: TypeAlias = Callable[[str], str]
_CASES = frozenset("luc")


@dataclass(frozen=True, slots=True)
class Preparation:
    """A function that prepares a line; equal flags with equal tokenizers make equal preparations.

    The result never contains a line end. ``str()`` returns the flags, and the option, as written.
    """

    flags: tuple[Flag, ...]
    tokenizer: str | None
    steps: tuple[Step, ...] = field(compare=False, repr=False)

    def __call__(self, line: str) -> str:
        for step in self.steps:
            line = step(line)
        return line

    def __str__(self) -> str:
        option = "" if self.tokenizer is None else f"--tokenizer {self.tokenizer}"
        return f"{''.join(map(str, self.flags))} {option}".strip()

    def of_lines(self, text: str) -> str:
        """Prepare each line of a text; the number of lines stays the same."""
        only_cases = self.tokenizer is None and all(flag.letter in _CASES for flag in self.flags)
        if only_cases:  # changing case never adds a line end, nor depends on the context
            return self(text)
        lines = text.split("\n")
        last = lines.pop()
        return "".join(f"{self(line)}\n" for line in lines) + (self(last) if last else "")


def preparation_of(scheme: EvaluationScheme) -> Preparation | None:
    """Return the preparation of a scheme, None if it has neither text flags nor a tokenizer.

    Raises SchemeError for a malformed regular expression, an unknown group, and a line end in a flag.
    """
    if not scheme.changes_lines:
        return None
    flags = scheme.text_flags
    steps = [_step(flag, scheme) for flag in flags]
    if scheme.tokenizer is not None:
        steps.append(_tokenized(scheme.tokenizer))
    return Preparation(flags, scheme.tokenizer, tuple(steps))


def lower_case(text: str) -> str:
    """Convert to lower case like Haskell's ``Data.Text.toLower``, which has no final sigma.

    >>> lower_case("ΣΑΣ")
    'σασ'
    """
    return text.replace("Σ", "σ").lower()


# Steps are functions of the module, and not closures, so that a preparation can be pickled.


def _sorted_words(text: str) -> str:
    return " ".join(sorted(split_words(text)))


def _matches(pattern: re.Pattern[str], text: str) -> str:
    return "".join(match.group() for match in pattern.finditer(text))


def _words_with(pattern: re.Pattern[str], text: str) -> str:
    return " ".join(filter(pattern.search, split_words(text)))


def _replaced(pattern: re.Pattern[str], template: tuple[str | int, ...], text: str) -> str:
    def expand(match: re.Match[str]) -> str:
        return "".join(part if isinstance(part, str) else match[part] or "" for part in template)

    return pattern.sub(expand, text)


def _tokenized(tokenizer: str) -> Step:
    from geval_py.reading.tokenizers import find_tokenizer

    spaced = find_tokenizer(tokenizer).line
    return lambda line: "\t".join(map(spaced, line.split("\t")))


def _step(flag: Flag, scheme: EvaluationScheme) -> Step:
    match flag.letter:
        case "l":
            return lower_case
        case "u":
            return str.upper
        case "c":
            return str.casefold
        case "S":
            return _sorted_words
    pattern = _compiled(flag, scheme)
    match flag.letter:
        case "m":
            return partial(_matches, pattern)
        case "t":
            return partial(_words_with, pattern)
    template = _template(flag.arguments[1])
    if any(isinstance(part, int) and part > pattern.groups for part in template):
        hint = f"in the replacement of {visible(str(flag))}: its regular expression has {pattern.groups} groups"
        raise _broken(flag, scheme, hint)
    return partial(_replaced, pattern, template)


def _compiled(flag: Flag, scheme: EvaluationScheme) -> re.Pattern[str]:
    """Compile a flag's regexp; refuse also one about which re warns that its meaning may change."""
    if any(end in argument for argument in flag.arguments for end in "\r\n"):
        raise _broken(flag, scheme, f"there is a line end in {visible(str(flag))}; lines have none")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)
            return re.compile(flag.arguments[0])
    except (re.error, FutureWarning, OverflowError, RecursionError) as error:
        hint = f"in the regular expression of {visible(str(flag))}: {visible(str(error))}"
        raise _broken(flag, scheme, hint) from error


def _broken(flag: Flag, scheme: EvaluationScheme, hint: str) -> SchemeError:
    message = f"Unknown or broken metric flags: {visible(str(flag))}\n  {hint}"
    return SchemeError(scheme=scheme.text, message=message)


def _template(replacement: str) -> tuple[str | int, ...]:
    r"""Split a replacement into texts and group numbers.

    >>> _template(r"<\1-\02>")
    ('<', 1, '-', 2, '>')
    """
    parts: list[str | int] = list(re.split(r"\\([0-9]+)", replacement))
    for index, digits in enumerate(parts[1::2]):
        parts[2 * index + 1] = int(str(digits).lstrip("0")[:9] or "0")  # nine digits exceed any number of groups
    return tuple(parts)
