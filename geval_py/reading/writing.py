"""Write outputs: a line from a distribution, a file from lines; :mod:`geval_py.reading.wordprobs` reads them."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, SupportsFloat, TypeAlias

from geval_py.errors import UsageError
from geval_py.reading import compression, rewriting, wordprobs
from geval_py.text import shorten

if TYPE_CHECKING:

    class HasItems(Protocol):
        """A mapping, a pandas Series, or anything else with pairs of a word and its number."""

        def items(self) -> Iterable[tuple[Hashable, SupportsFloat]]: ...

    Probabilities: TypeAlias = HasItems | Iterable[tuple[Hashable, SupportsFloat]]

LEAST_LOG = -745.0  # of a bucket without mass: the least whole logarithm whose exp is not 0
_SEPARATORS = {" ": "a space", "\n": "a line end", "\r": "a carriage return"}
_SEPARATOR, _LINE_END = re.compile(r"[ \n\r]"), re.compile(r"[\n\r]")


def format_line(probabilities: Probabilities, rest: SupportsFloat | None = None) -> str:
    """Write one well-formed output line from words and their probabilities.

    ``probabilities``, a mapping, a pandas Series or pairs (word, probability), are in [0, 1]; the numbers may be
    Python's, numpy's or :mod:`decimal`'s. ``rest`` is the mass of all other words, by default the mass missing to 1,
    if any. If the total is more than 1, all masses are scaled down. If ``rest`` is given and the total is less than
    1, the reader divides by the total. Numbers have the shortest digits that read back the same; without line end.

    Raises UsageError for anything else than words with numbers, for NaN and numbers outside [0, 1], for a word that
    is empty, contains a space or a line end or is no string, and if all masses are 0.

    >>> format_line({"the": 0.5, "a": 0.25})
    'the:0.5 a:0.25 :0.25'
    >>> format_line([("the", 0.9), ("a", 0.9)], rest=0.2)
    'the:0.45 a:0.45 :0.1'
    """
    pairs = [(_checked_word(word), _probability(value, word)) for word, value in _pairs(probabilities)]
    total = math.fsum(value for _, value in pairs)
    rest_mass = max(0.0, 1.0 - total) if rest is None else _probability(rest, None)
    total += rest_mass
    if total == 0:
        raise UsageError(message="a distribution needs some mass: every probability is 0")
    if rest_mass > 0 or rest is not None:
        pairs.append((wordprobs.REST, rest_mass))
    scale = max(1.0, total)
    scaled = ((word, repr(value / scale + 0.0).removesuffix(".0")) for word, value in pairs)  # + 0.0: no "-0"
    return " ".join(f"{word}:{digits}" for word, digits in scaled)


def write_output(path: str | os.PathLike[str], lines: Iterable[str | Probabilities]) -> None:
    """Write an output file, whole or not at all: an existing file is replaced when all lines are written.

    ``lines`` are strings, or arguments for :func:`format_line`. The file is compressed by the name's ending: .xz,
    .gz, .bz2 or .zst.

    Raises UsageError if the file cannot be written, for a string that contains a line end, and as format_line does,
    with the line's index.
    """
    if isinstance(lines, str | bytes):
        raise UsageError(message=f"lines are several, not {_kind(lines)}: for one line write [line]")
    name = os.fspath(path)
    with rewriting.written_whole(name, compression=compression.compression_by_ending(name)) as file:
        for index, line in enumerate(lines):
            file.write(_encoded(line, index))


def _encoded(line: str | Probabilities, index: int) -> bytes:
    try:
        text = line if isinstance(line, str) else format_line(line)
    except UsageError as error:
        raise UsageError(message=f"lines[{index}]: {error}") from error
    if found := _LINE_END.search(text):
        raise UsageError(message=f"lines[{index}] contains {_SEPARATORS[found[0]]}; give one line an item")
    try:
        return f"{text}\n".encode()
    except UnicodeEncodeError as error:
        raise UsageError(message=f"lines[{index}] cannot be written as UTF-8: {error.reason}") from error


def _pairs(probabilities: Probabilities) -> Iterator[tuple[Hashable, SupportsFloat]]:
    """Yield the words with their numbers; errors of a given iterator are passed on."""
    items = getattr(probabilities, "items", None)
    pairs: object = items() if callable(items) else probabilities
    if isinstance(pairs, str | bytes) or not isinstance(pairs, Iterable):
        raise _refusal(_kind(probabilities))
    for pair in pairs:
        try:
            word, value = pair
        except (TypeError, ValueError) as error:
            raise _refusal(f"{_kind(probabilities)} of {shorten(repr(pair))}") from error
        yield word, value


def _refusal(what: str) -> UsageError:
    wanted = "a mapping from words to probabilities, a pandas Series or pairs (word, probability)"
    return UsageError(message=f"a line is made from {wanted}, not from {what}")


def _kind(value: object) -> str:
    """Return the name of a value's type with an article.

    >>> _kind(1), _kind("1")
    ('an int', 'a str')
    """
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def _checked_word(word: Hashable) -> str:
    if not isinstance(word, str):
        raise UsageError(message=f"the word {word!r} is not a string")
    if not word:
        raise UsageError(message="an empty word: give the mass of all other words as rest=…")
    if found := _SEPARATOR.search(word):
        raise UsageError(message=f"the word {word!r} contains {_SEPARATORS[found[0]]}, which would split the line")
    try:
        word.encode()
    except UnicodeEncodeError as error:
        raise UsageError(message=f"the word {word!r} cannot be written as UTF-8: {error.reason}") from error
    return word


def _probability(value: SupportsFloat, word: Hashable | None) -> float:
    """Return the probability of a word, or of the rest (None), as a float."""
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    except (TypeError, ValueError):
        number = None
    owner = "the rest" if word is None else repr(word)
    if number is None or isinstance(value, str | bytes):
        raise UsageError(message=f"the probability of {owner} is {_kind(value)}, not a number")
    if not 0 <= number <= 1:  # this refuses NaN too
        raise UsageError(message=f"the probability of {owner} is {value!r}, which is not between 0 and 1")
    return number


def line_of_masses(masses: Mapping[str, float], rest: float) -> str:
    """Write words with masses that total 1 with the rest, with six significant digits; leave out masses of 0.

    >>> line_of_masses({"the": 0.5, "a": 0.0, "of": 1 / 3}, 1 / 6)
    'the:0.5 of:0.333333 :0.166667'
    >>> line_of_masses({"the": 1 / 3, "a": 1 / 3}, 1 / 3)
    'the:0.333334 a:0.333333 :0.333333'
    """
    words = [word for word, mass in masses.items() if mass > 0.0]
    values = [mass for mass in masses.values() if mass > 0.0]
    if rest > 0.0:
        words.append(wordprobs.REST)
        values.append(rest)
    numbers = [f"{value:.6g}" for value in values]
    largest = values.index(max(values))
    others = math.fsum(map(float, numbers)) - float(numbers[largest])
    numbers[largest] = f"{1.0 - others:.12g}"
    return " ".join([f"{word}:{number}" for word, number in zip(words, numbers, strict=True)])


def line_of_buckets(masses: Sequence[float]) -> str:
    """Write the masses of buckets, which total 1, as a vector of natural logarithms.

    >>> line_of_buckets([0.25, 0.75])
    '-1.386294361 -0.2876820725'
    """
    return " ".join([f"{math.log(mass) if mass > 0.0 else LEAST_LOG:.10g}" for mass in masses])
