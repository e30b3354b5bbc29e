r"""What the text flags of an evaluation scheme, and a tokenizer, do to each line, before it is scored.

    l  u  c                     lower case, upper case, case folding
    m<regexp>                   all that matches, put together
    t<regexp>                   of the words, those in which the regexp is found, joined by a space
    s<regexp><replacement>      all that matches, replaced; ``\N`` there is group N, ``\0`` the whole match
    S                           the words in code point order, joined by a space

They go from left to right, over output and expected lines alike, and over the whole line: a regexp meets the
numbers of a distribution too. Words are split at white space as Haskell's ``Data.Text.words`` does. Last comes the
tokenizer, which leaves the TABs of a line, as between several references, where they are.

The regular expressions are those of :mod:`re`, in Unicode. GEval's are PCRE's, over the bytes of UTF-8: there ``.``
is one byte, and ``\w``, ``\d``, ``\s``, ``\b`` and ``(?i)`` know ASCII only (``(?a)`` in front makes all but ``.`` so
here). What PCRE has and re has not is refused: ``\p{L}``, ``\Q…\E``, ``\K``, ``\h``, recursion, ``[[:alpha:]]``.
Refused is a group in a replacement, too, that its regexp has not. But ``a{,3}`` is at most three here, and five
characters there.
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
    """What is done to a line, as a function from text to text. Equal flags with equal tokenizers do the same.

    A line never comes to hold a line end. ``str()`` gives the flags, and the option, as written.
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
        """Prepare each line of a text; as many come out as went in."""
        only_cases = self.tokenizer is None and all(flag.letter in _CASES for flag in self.flags)
        if only_cases:  # no case makes a line end, or depends on what is near
            return self(text)
        lines = text.split("\n")
        last = lines.pop()
        return "".join(f"{self(line)}\n" for line in lines) + (self(last) if last else "")


def preparation_of(scheme: EvaluationScheme) -> Preparation | None:
    """Give what a scheme's text flags and its tokenizer do, None if it has none.

    Raises SchemeError for a broken regular expression, for a group that it has not, and for a line end in a flag.
    """
    if not scheme.changes_lines:
        return None
    flags = scheme.text_flags
    steps = [_step(flag, scheme) for flag in flags]
    if scheme.tokenizer is not None:
        steps.append(_tokens_of(scheme.tokenizer))
    return Preparation(flags, scheme.tokenizer, tuple(steps))


def lower_case(text: str) -> str:
    """Put in lower case as Haskell's ``Data.Text.toLower``, which knows no final sigma.

    >>> lower_case("ΣΑΣ")
    'σασ'
    """
    return text.replace("Σ", "σ").lower()


def _sorted_words(text: str) -> str:
    return " ".join(sorted(split_words(text)))


def _matches(pattern: re.Pattern[str], text: str) -> str:
    return "".join(match.group() for match in pattern.finditer(text))


def _words_with(pattern: re.Pattern[str], text: str) -> str:
    return " ".join(word for word in split_words(text) if pattern.search(word))


def _replaced(pattern: re.Pattern[str], template: tuple[str | int, ...], text: str) -> str:
    def expand(match: re.Match[str]) -> str:
        return "".join(part if isinstance(part, str) else match[part] or "" for part in template)

    return pattern.sub(expand, text)


def _tokens_of(tokenizer: str) -> Step:
    """Split each field of a line into tokens, with spaces between them."""
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
    """Compile a flag's regexp; where re warns that it may come to read it in another way, it is refused too."""
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
    r"""Split a replacement into texts and numbers of groups.

    >>> _template(r"<\1-\02>")
    ('<', 1, '-', 2, '>')
    """
    parts: list[str | int] = list(re.split(r"\\([0-9]+)", replacement))
    for index, digits in enumerate(parts[1::2]):
        parts[2 * index + 1] = int(str(digits).lstrip("0")[:9] or "0")  # nine digits are far too many groups already
    return tuple(parts)
