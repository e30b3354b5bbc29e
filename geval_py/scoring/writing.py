"""Write outputs: a line from a distribution, a file from lines or from another file."""

from __future__ import annotations

import math
import os
import re
from array import array
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, SupportsFloat, TypeAlias, cast

from geval_py.errors import EmptyFileError, UsageError
from geval_py.reading import compression, formats, rewriting
from geval_py.reading.lines import LineReader, decode_lines
from geval_py.reading.rows import rows_of_lines
from geval_py.reading.sources import STANDARD_INPUT, format_ending, name_of
from geval_py.reading.wordprobs import number_advice
from geval_py.scoring.kernel import backends
from geval_py.tables.numbers import counted
from geval_py.text import named, shorten, shown, some_of

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    class HasItems(Protocol):
        """A mapping, a pandas Series, or anything else with pairs of a word and its number."""

        def items(self) -> Iterable[tuple[Hashable, SupportsFloat]]: ...

    Probabilities: TypeAlias = HasItems | Iterable[tuple[Hashable, SupportsFloat]]
    Vocabulary: TypeAlias = Sequence[str] | Mapping[str, int] | NDArray[np.str_] | pd.Index[Any] | pd.Series[Any]
    Listed: TypeAlias = tuple[ArrayLike, ArrayLike]  # (ids, probabilities)

_OTHER_NUMBERS = "for logits write Scorer(vocabulary).predictions(rows, logits=True), for logarithms log=True"
_WORDS_OF_NUMBERS = "numbers without words, in the order of a vocabulary: Scorer(vocabulary).predictions(rows)"
_TOKENS = "words are wanted, not the tokens of a language model: see geval predict, docs/predict.md"
_SEPARATORS = {" ": "a space", "\n": "a line end", "\r": "a carriage return"}
_SEPARATOR = re.compile(r"[ \n\r]")


def format_line(
    probabilities: Probabilities | ArrayLike | Listed,
    rest: SupportsFloat | None = None,
    *,
    vocabulary: Vocabulary | None = None,
) -> str:
    """Write one well-formed output line from words and their probabilities.

    ``probabilities``, a mapping, a pandas Series or pairs (word, probability), are in [0, 1]; the numbers may be
    Python's, numpy's or :mod:`decimal`'s. With a ``vocabulary``, they are an array with a number for each of its
    words, or a pair of arrays (ids, probabilities) of some of its words; :class:`geval_py.Scorer` says what a
    vocabulary is. ``rest`` is the mass of all other words, by
    default the mass missing to 1, if any. If the total is more than 1, all masses are scaled down. If ``rest`` is
    given and the total is less than 1, the reader divides by the total. Numbers have the shortest digits that read
    back the same; without line end.

    Raises UsageError for anything else than words with numbers, for NaN and numbers outside [0, 1], for a word that
    is empty, contains a space or a line end or is no string, and if all masses are 0.

    >>> format_line({"the": 0.5, "a": 0.25})
    'the:0.5 a:0.25 :0.25'
    >>> format_line([("the", 0.9), ("a", 0.9)], rest=0.2)
    'the:0.45 a:0.45 :0.1'
    >>> format_line([0.5, 0.25], vocabulary=["the", "a"])
    'the:0.5 a:0.25 :0.25'
    """
    if vocabulary is not None:
        return _line_of_array(b"", probabilities, words_of(vocabulary), rest)
    if isinstance(probabilities, Mapping):
        words, values = list(probabilities), list(probabilities.values())
        return _written(join_words(words), words, values, rest)
    words, values = [], []
    items = getattr(probabilities, "items", None)
    pairs: object = items() if callable(items) else probabilities
    accepted = "a mapping from words to probabilities, a pandas Series or pairs (word, probability)"
    if isinstance(pairs, str | bytes) or not isinstance(pairs, Iterable):
        raise UsageError(message=f"a line is made from {accepted}, not from {_kind(probabilities)}")
    for pair in pairs:
        try:
            word, value = pair
        except (TypeError, ValueError) as error:
            advice = f"\n  {_WORDS_OF_NUMBERS}" if hasattr(pair, "__float__") else ""
            what = f"{_kind(probabilities)} of {shorten(repr(pair))}{advice}"
            raise UsageError(message=f"a line is made from {accepted}, not from {what}") from error
        words.append(word)
        values.append(value)
    return _written(join_words(words), words, values, rest)


def write_output(
    path: str | os.PathLike[str],
    lines: Iterable[str | Probabilities] | pd.DataFrame | ArrayLike | Listed,
    *,
    vocabulary: Vocabulary | None = None,
) -> None:
    """Write an output file. An existing file is replaced only when all lines are written.

    ``lines`` are strings, or arguments for :func:`format_line`, or a DataFrame, whose columns are words. With a
    ``vocabulary``, they are an array with a row for each line and a column for each word, or a pair of such arrays
    (ids, probabilities) of some words of each line. The file is compressed by the name's ending: .xz, .gz, .bz2 or
    .zst.

    Raises UsageError if the file cannot be written, for a string that contains a line end, and as format_line does,
    with the line's index.
    """
    if isinstance(lines, str | bytes | Mapping):
        raise UsageError(message=f"lines are several, not {_kind(lines)}: for one line write [line]")
    name = os.fspath(path)
    with rewriting.written_whole(name, compression=compression.compression_by_ending(name)) as file:
        for line in encoded_lines(lines, "lines", vocabulary):
            file.write(line)


def convert(source: str, target: str) -> int:
    """Write the output at a path into a file in the format of its ending; return the number of lines.

    The file is compressed by its ending. Raises EmptyFileError, MissingFileError and other DataErrors of the source,
    MalformedLineError, and UsageError for a file that cannot be written, or not in that format.
    """
    path, format = formats.find_output(source), formats.format_of(target)
    codec = compression.compression_by_ending(target)
    if target == STANDARD_INPUT:
        raise UsageError(message="name a file to write: its ending is the format")
    if format is None and not name_of(target).endswith(".tsv"):
        endings = ", ".join(ending for ending, other in formats.FORMATS.items() if other.write is not None)
        raise UsageError(message=f"{named(target)} has no ending of a format: .tsv, {endings}")
    if format is not None and format.write is None:
        raise UsageError(message=f"{format_ending(target)} is only read: it cannot be written")
    with LineReader(path) as reader, rewriting.written_whole(target, compression=codec) as file:
        if format is None or format.write is None:
            count = 0
            for text in _texts(reader):
                file.write(text)
                count += backends.count_lines(text)
        else:
            lines = (line for text in _texts(reader) for line in decode_lines(text))
            count = format.write(rows_of_lines(path, lines), file)
        if not count:
            raise EmptyFileError(what="output", path=path)
    return count


def _texts(reader: LineReader) -> Iterator[bytes]:
    """Yield the lines of an output, decoded and encoded again, several in a text."""
    while text := reader.block():
        yield str(text, "utf-8", "replace").replace("\r", "").encode()


def encoded_lines(lines: Any, what: str, vocabulary: Vocabulary | None = None) -> Iterator[bytes]:
    """Yield the lines of :func:`write_output`, each ended by LF; errors begin with ``what`` and the line's index."""
    words = None if vocabulary is None else words_of(vocabulary)
    if hasattr(lines, "columns"):
        words = words_of(lines.columns) if words is None else words
        lines = in_order(lines, words).to_numpy()
    joined = b"" if words is None or isinstance(lines, tuple) else join_words(words)
    rows = zip(*lines, strict=True) if words is not None and isinstance(lines, tuple) else lines
    for index, line in enumerate(rows):
        if not isinstance(line, str):
            try:
                line = format_line(line) if words is None else _line_of_array(joined, line, words, None)
            except UsageError as error:
                raise UsageError(message=f"{what}[{index}]: {error}") from error
        elif separator := re.search(r"[\n\r]", line):
            raise UsageError(message=f"{what}[{index}] contains {_SEPARATORS[separator[0]]}; give one line an item")
        try:
            yield f"{line}\n".encode()
        except UnicodeEncodeError as error:
            raise UsageError(message=f"{what}[{index}] cannot be written as UTF-8: {error.reason}") from error


def _written(
    joined: bytes, words: Sequence[Hashable], values: Sequence[SupportsFloat], rest: SupportsFloat | None
) -> str:
    """Write a line from checked words, which are also ``joined``, and their probabilities."""
    try:
        numbers = array("d", cast("Sequence[float]", values))
        total = math.fsum(numbers)
    except (TypeError, ValueError, OverflowError):
        total = math.nan
    if not 0.0 <= total <= 1.0:
        numbers = _checked(values, words)
        total = math.fsum(numbers)
    rest_mass = max(0.0, 1.0 - total) if rest is None else checked_probability(rest, None)
    total += rest_mass
    if total == 0 and not any(numbers):
        raise UsageError(message="every probability is 0: a distribution needs one above 0")
    if rest_mass > 0 or rest is not None:
        joined += b"\n"
        numbers.append(rest_mass)
    if total > 1.0:
        numbers = array("d", [value / total for value in numbers])
    try:
        return backends.format_entries(joined, numbers, 0.0, 1.0)
    except ValueError:
        _checked(values, words)
        raise


def _line_of_array(joined: bytes, probabilities: Any, vocabulary: Sequence[str], rest: SupportsFloat | None) -> str:
    """Write a line from an array, whose words may be ``joined`` already, or from a pair (ids, probabilities)."""
    words = vocabulary
    if isinstance(probabilities, tuple):
        ids, probabilities = probabilities
        for number in ids:
            if not 0 <= number < len(vocabulary):
                raise UsageError(message=f"the ids are from 0 to {len(vocabulary) - 1}, not {number}")
        words = [vocabulary[number] for number in ids]
    values = probabilities.tolist() if hasattr(probabilities, "tolist") else list(probabilities)
    if len(values) != len(words):
        numbers = counted(len(values), "probability", "probabilities")
        raise UsageError(message=f"{numbers}, but {counted(len(words), 'word')}")
    try:
        return _written(joined or join_words(words), words, values, rest)
    except UsageError as error:
        with suppress(TypeError, ValueError):  # something is no number
            if min(map(float, values), default=0.0) < 0:
                first, _, _ = str(error).partition("\n")
                raise UsageError(message=f"{first}\n  {_OTHER_NUMBERS}") from error
        raise


def _kind(value: object) -> str:
    """Return the name of a value's type with an article.

    >>> _kind(1), _kind("1")
    ('an int', 'a str')
    """
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def words_of(vocabulary: Vocabulary) -> Sequence[str]:
    """Return the words of a vocabulary in the order of their ids; raises UsageError."""
    if isinstance(vocabulary, str | bytes | set | frozenset) or not isinstance(vocabulary, Iterable):
        accepted = "a list of words, in the order of columns, or a dict of words with their ids"
        raise UsageError(message=f"a vocabulary is {accepted}, not {shown(vocabulary)}")
    if not isinstance(vocabulary, Mapping):
        return list(getattr(vocabulary, "tolist", lambda: vocabulary)())
    words = sorted(vocabulary, key=vocabulary.__getitem__)
    for place, word in enumerate(words):
        if vocabulary[word] != place:
            ids = f"the ids of {len(words)} words are 0 to {len(words) - 1}, each once"
            raise UsageError(message=f"{ids}; {word!r} has {vocabulary[word]!r}, where {place} is missing")
    return words


def in_order(frame: Any, words: Sequence[str]) -> Any:
    """Return a DataFrame with its columns in the order of words; columns without names are in this order already.

    Raises UsageError if the columns are others than the words.
    """
    names = list(frame.columns)
    if names in (list(words), list(range(len(names)))):
        return frame
    for what, others in (
        ("the table lacks columns for words of the vocabulary", Counter(words) - Counter(names)),
        ("the table has columns that are no words of the vocabulary, or twice", Counter(names) - Counter(words)),
    ):
        if others:
            raise UsageError(message=f"{what}: {some_of(map(repr, others.elements()))}")
    return frame[list(words)]


def join_words(words: Sequence[Hashable]) -> bytes:
    """Return words as UTF-8 lines, each ended by LF; raises UsageError for one that an output cannot hold."""
    try:
        text = "\n".join(cast("Sequence[str]", words)) + "\n" * bool(words)
        joined = text.encode()
    except (TypeError, UnicodeEncodeError):
        joined, text = b"", "\n"
    if any(bad in text for bad in (" ", "\r", "\n\n")) or text.startswith("\n") or text.count("\n") != len(words):
        fault = next(filter(None, map(_fault_of_word, words)))
        are_tokens = any(isinstance(word, str) and word.startswith(" ") for word in words)
        raise UsageError(message=fault + f"\n  {_TOKENS}" * are_tokens)
    return joined


def _fault_of_word(word: Hashable) -> str | None:
    """Return why an output cannot hold a word; None if it can."""
    if not isinstance(word, str):
        return f"the word {word!r} is not a string"
    if not word:
        return "an empty word: give the probability of all other words as rest=…"
    if separator := _SEPARATOR.search(word):
        return f"the word {word!r} contains {_SEPARATORS[separator[0]]}, which would split the line"
    try:
        word.encode()
    except UnicodeEncodeError as error:
        return f"the word {word!r} cannot be written as UTF-8: {error.reason}"
    return None


def _checked(values: Sequence[SupportsFloat], words: Sequence[Hashable]) -> array[float]:
    """Return the probabilities of words as floats; raises UsageError for the first that is none."""
    try:
        return array("d", (checked_probability(value, word) for word, value in zip(words, values, strict=True)))
    except UsageError as error:
        with suppress(TypeError, ValueError, OverflowError):
            numbers = [float(value) for value in values if not isinstance(value, str | bytes)]
            if len(numbers) == len(words) and all(map(math.isfinite, numbers)):
                advice = number_advice([str(word) for word in words], numbers)
                raise UsageError(message=f"{error}\n  {advice}") from error
        raise


def checked_probability(value: SupportsFloat, word: Hashable | None) -> float:
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
