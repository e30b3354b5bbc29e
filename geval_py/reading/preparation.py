r"""How a line is changed before it is scored: by a tokenizer, and by the text flags of a metric.

First the tokenizers, which split text into words, also for features and ``--just-tokenize``:

    minimalistic             split off punctuation at the beginning and the end of a word, not inside it
    character-by-character   every character is a token, a space becomes ``_``
    13a                      the tokenizer of mteval-v13a.pl, usual for BLEU
    v14                      the tokenizer of mteval-v14.pl, for all scripts

A tokenizer puts spaces between the tokens of a line; features are the words of the result, split at white space.

All are GEval's (src/Text/Tokenizer.hs of 1.42.2), whose ``\d``, ``\w`` and ``\s`` match ASCII only. sacreBLEU's
versions of the last two give other scores: they have other white space (U+0085, U+2028) and, for v14, other digits
(``½``, ``²`` and those of other scripts).

GEval's minimalistic tokens are the matches of ``[\w\d]+\S*[\w\d]+|[\w\d]|[^\w\s]+``. A token that begins with a word
character therefore ends with the last word character before white space. The pattern here finds it in linear time.

Then a Preparation: the steps that the text flags of an evaluation scheme, and its tokenizer, apply to each line.

Regular expressions of flags match the bytes of UTF-8, as in GEval (src/GEval/EvaluationScheme.hs: PCRE without its
option for UTF-8). One that begins with ``(?u)``, which is an error in GEval, matches characters.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from typing import TypeAlias

from geval_py.reading.schemes import EvaluationScheme, Flag, broken_flags, checked_tokenizer
from geval_py.text import split_words, strip_spaces, visible

Step: TypeAlias = Callable[[str], str]
_MINIMALISTIC = r"(?a)\w(?:\S*\w)?|[^\w\s]+"
_ENTITIES = (("<skipped>", ""), ("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))
_ONE_SPACE = (r"(?a)\s+", " ")
_THIRTEEN_A: tuple[tuple[str, str], ...] = (  # regular expressions and replacements
    (r"([\{-\~\[-\` -\&\(-\+\:-\@\/])", r" \1 "),
    (r"([^0-9])([\.,])", r"\1 \2 "),
    (r"([\.,])([^0-9])", r" \1 \2"),
    (r"([0-9])(-)", r"\1 \2 "),
    _ONE_SPACE,
)
_HIGHEST = 0x20000  # from here on Unicode has no punctuation and no symbols


def tokenized(name: str, text: str) -> list[str]:
    """Return the tokens of a text in order, without white space, by the tokenizer with a name.

    >>> tokenized("minimalistic", "(Well-known, isn't it?)")
    ['(', 'Well-known', ',', "isn't", 'it', '?)']
    """
    return split_words(find_tokenizer(name)(text))


@cache
def find_tokenizer(name: str) -> Step:
    """Return a tokenizer, which puts spaces between the tokens of a line; raises UsageError for an unknown name.

    >>> find_tokenizer("character-by-character")("a bc")
    'a _ b c'
    """
    if checked_tokenizer(name) == "character-by-character":
        return lambda text: " ".join(text.replace(" ", "_"))
    if name == "minimalistic":
        find = re.compile(_MINIMALISTIC).findall
        return lambda text: strip_spaces(" ".join(find(text)))
    rules = _THIRTEEN_A
    if name == "v14":
        punctuation, symbol = _of_category("P"), _of_category("S")
        rules = (
            (f"([^0-9])({punctuation})", r"\1 \2 "),
            (f"({punctuation})([^0-9])", r" \1 \2"),
            (f"({symbol})", r" \1 "),
            _ONE_SPACE,
        )
    substitutions = [(re.compile(pattern).sub, replacement) for pattern, replacement in rules]

    def spaced(text: str) -> str:
        if name == "13a":
            for written, meant in _ENTITIES:
                text = text.replace(written, meant)
            text = f" {text} "
        for substitute, replacement in substitutions:
            text = substitute(replacement, text)
        return strip_spaces(text)

    return spaced


def _of_category(letter: str) -> str:
    r"""Return the regular expression of a Unicode category: ``\p{P}`` or ``\p{S}`` in other languages.

    It consists of ranges, since beyond U+FFFF :mod:`re` searches the entries of a class one by one.
    """
    groups = groupby(range(_HIGHEST), key=lambda code: unicodedata.category(chr(code))[0] == letter)
    runs = [list(codes) for is_of_category, codes in groups if is_of_category]
    ranges = (rf"\U{run[0]:08x}-\U{run[-1]:08x}" for run in runs)
    return f"[{''.join(ranges)}]"


# Preparations


@dataclass(frozen=True, slots=True)
class Preparation:
    """A function that prepares a line; equal flags with equal tokenizers make equal preparations.

    The result never contains a line end. ``str()`` returns the flags, and the option, as written.
    """

    flags: tuple[Flag, ...]
    tokenizer: str | None
    steps: tuple[Step, ...] = field(compare=False, repr=False)

    def __reduce__(self) -> tuple[object, ...]:
        return preparation_of, (EvaluationScheme("", "", self.flags, self.tokenizer),)

    def __call__(self, line: str) -> str:
        for step in self.steps:
            line = step(line)
        return line

    def __str__(self) -> str:
        option = "" if self.tokenizer is None else f"--tokenizer {self.tokenizer}"
        return f"{''.join(map(str, self.flags))} {option}".strip()

    def of_lines(self, text: str) -> str:
        """Prepare each line of a text; the number of lines stays the same."""
        if self.tokenizer is None and all(flag.letter in "luc" for flag in self.flags):
            return self(text)  # changing case never adds a line end, nor depends on the context
        lines = text.split("\n")
        last = lines.pop()
        return "".join(f"{self(line)}\n" for line in lines) + (self(last) if last else "")


def preparation_of(scheme: EvaluationScheme) -> Preparation | None:
    """Return the preparation of a scheme, None if it has neither text flags nor a tokenizer.

    Raises SchemeError for a malformed regular expression, an unknown group, and a line end in a flag.
    """
    if not scheme.changes_lines:
        return None
    steps = [_step(flag, scheme.text) for flag in scheme.text_flags]
    if scheme.tokenizer is not None:
        spaced = find_tokenizer(scheme.tokenizer)
        steps.append(lambda line: "\t".join(map(spaced, line.split("\t"))))
    return Preparation(scheme.text_flags, scheme.tokenizer, tuple(steps))


def lower_case(text: str) -> str:
    """Convert to lower case like Haskell's ``Data.Text.toLower``, which has no final sigma.

    >>> lower_case("ΣΑΣ")
    'σασ'
    """
    return text.replace("Σ", "σ").lower()


def lower_characters(text: str) -> str:
    """Convert each character to one in lower case, like Haskell's ``Data.Char.toLower``.

    >>> lower_characters("İÇ"), lower_case("İÇ") == "i\u0307ç"
    ('iç', True)
    """
    return lower_case(text.replace("İ", "i"))  # the only character whose lower case is two


def _step(flag: Flag, scheme: str) -> Step:
    """Return what a flag does to a line; raises SchemeError also where re warns that a meaning may change."""
    match flag.letter:
        case "l":
            return lower_case
        case "u":
            return str.upper
        case "c":
            return str.casefold
        case "S":
            return lambda text: " ".join(sorted(split_words(text)))

    written = str(flag)
    if any(end in argument for argument in flag.arguments for end in "\r\n"):
        raise broken_flags(scheme, written, f"there is a line end in {visible(written)}; lines have none")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)
            regexp = flag.arguments[0]
            pattern = re.compile(regexp) if regexp.startswith("(?u)") else re.compile(_bytes_of(regexp), re.ASCII)
    except (re.error, FutureWarning, OverflowError, RecursionError) as error:
        hint = f"in the regular expression of {visible(written)}: {visible(str(error))}"
        raise broken_flags(scheme, written, hint) from error
    read, written_as = (_bytes_of, _text_of) if pattern.flags & re.ASCII else (str, str)
    match flag.letter:
        case "m":
            return lambda text: "".join(written_as(match.group()) for match in pattern.finditer(read(text)))
        case "t":
            return lambda text: " ".join(word for word in split_words(text) if pattern.search(read(word)))
    # Texts and numbers of groups, of which nine digits exceed any.
    parts: list[str | int] = list(re.split(r"\\0*([0-9]{1,9})[0-9]*", read(flag.arguments[1])))
    parts[1::2] = map(int, parts[1::2])
    # As in GEval, a group that the expression lacks is empty: PolEval's challenges of punctuation have such a one.
    template = [part for part in parts if isinstance(part, str) or part <= pattern.groups]

    def expand(match: re.Match[str]) -> str:
        groups = (part if isinstance(part, str) else read(written_as(match[part] or "")) for part in template)
        return "".join(groups)

    return lambda text: written_as(pattern.sub(expand, read(text)))


def _bytes_of(text: str) -> str:
    """Return a character for each byte of a text in UTF-8, as GEval's regular expressions see it."""
    return text if text.isascii() else text.encode("utf-8", "surrogatepass").decode("latin-1")


def _text_of(characters: str) -> str:
    """Return the text of such bytes; parts of a character become U+FFFD.

    >>> _text_of(_bytes_of("żó")[:3])
    'ż\ufffd'
    """
    return characters if characters.isascii() else characters.encode("latin-1").decode("utf-8", "replace")
