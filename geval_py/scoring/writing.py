"""Write outputs: a line from a distribution, a file from lines or from another file."""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, SupportsFloat, TypeAlias, Unpack, cast

from geval_py.errors import DataError, EmptyFileError, UsageError
from geval_py.reading import compression, rewriting
from geval_py.reading.files import format_ending, name_of
from geval_py.reading.lines import LineReader
from geval_py.reading.outputs import output_named
from geval_py.reading.splits import EXPECTED_FILE, answers_at, find_answers
from geval_py.scoring.encoding import SEPARATORS
from geval_py.scoring.kernel import backends
from geval_py.text import named, shown

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

    from geval_py.scoring.arrays import Listed, NumberOptions, Predictions, Vocabulary, VocabularyLike

    Pairs: TypeAlias = Iterable[tuple[Hashable, SupportsFloat]]  # of a word and its number
    Probabilities: TypeAlias = Mapping[Any, SupportsFloat] | pd.Series[Any] | Pairs

MAX_ENTRIES = 1000  # of a line that is written without a warning
_MADE_FROM = "a line is made from a mapping from words to probabilities, a pandas Series or pairs (word, probability)"


def format_line(
    probabilities: Probabilities | ArrayLike | Listed,
    rest: SupportsFloat | None = None,
    *,
    vocabulary: VocabularyLike | None = None,
    log: bool = False,
    logits: bool = False,
    top: int | None = None,
) -> str:
    """Write one well-formed output line from words and their probabilities, without its line end.

    ``probabilities`` is a mapping, a pandas Series or pairs (word, probability); the numbers may be Python's, numpy's
    or :mod:`decimal`'s. With a ``vocabulary``, as for :class:`geval_py.Metric`, it is an array with a number for each
    of its words, or a pair of arrays (ids, probabilities) of some of its words. The numbers are in [0, 1]; with
    ``log`` they are natural logarithms of probabilities, with ``logits`` any numbers to which softmax is applied.

    ``rest`` is the number of all other words, by default the probability missing to 1, if it is more than 1e-8. If
    the total is more than 1, all probabilities are scaled down. If ``rest`` is given and the total is less than 1,
    the reader divides by the total. With ``top``, only as many words are written, the most probable first, and the
    rest has the probability of the others, too. Numbers have the shortest digits that read back the same.

    Raises UsageError for anything else than words with numbers, for NaN and numbers out of range, for a word that is
    empty, contains a space or a line end or is no string, and if all probabilities are 0.

    >>> format_line({"the": 0.5, "a": 0.25})
    'the:0.5 a:0.25 :0.25'
    >>> format_line([("the", 0.9), ("a", 0.9)], rest=0.2)
    'the:0.45 a:0.45 :0.1'
    >>> format_line([0.5, 0.25, 0.125], vocabulary=["the", "a", "of"], top=1)
    'the:0.5 :0.5'
    """
    from geval_py.scoring.arrays import Vocabulary

    columns = None if vocabulary is None else Vocabulary.of_columns(vocabulary, "sum")
    rows = predictions_of(probabilities, columns, log=log, logits=logits, rest=cast("Any", rest))
    if rows.shape:
        raise UsageError(f"a line is made from one row of numbers, not from an array of {len(rows)} rows")
    return rows.line(0, top)


def predictions_of(value: Any, vocabulary: Vocabulary | None, **numbers: Unpack[NumberOptions]) -> Predictions:
    """Return arrays, or a line's words with numbers, as predictions; raises UsageError for anything else."""
    from geval_py.scoring.arrays import Vocabulary

    if is_predictions(value):
        refuse_unused("Predictions", vocabulary=vocabulary, **numbers)
        return cast("Predictions", value)
    if vocabulary is None and hasattr(value, "columns"):
        vocabulary = Vocabulary.of_columns(value.columns)
    elif vocabulary is None or not holds_numbers(value):
        refuse_unused("a distribution that has words", vocabulary=vocabulary)
        words, value = _words_and_numbers(value)
        vocabulary = Vocabulary(words)
    return vocabulary.predictions(value, **numbers)


def _words_and_numbers(probabilities: Any) -> tuple[list[Hashable], list[SupportsFloat]]:
    """Return the words and the numbers of a mapping or of pairs; raises UsageError for anything else."""
    pairs: object = probabilities.items() if hasattr(probabilities, "items") else probabilities
    if holds_numbers(pairs):
        takers = "write_output and Metric take a vocabulary=…, and score takes metric.predictions(numbers)"
        raise UsageError(f"numbers without words: {takers}")
    if isinstance(pairs, str | bytes) or not isinstance(pairs, Iterable):
        raise UsageError(f"{_MADE_FROM}, not from {shown(pairs)}")
    words, values = [], []
    for pair in pairs:
        try:
            word, value = pair
        except (TypeError, ValueError) as error:
            raise UsageError(f"{_MADE_FROM}, not from {shown(pair)}") from error
        words.append(word)
        values.append(value)
    return words, values


def write_output(
    path: str | os.PathLike[str],
    lines: Iterable[str | Probabilities | ArrayLike | pd.DataFrame | Listed] | pd.DataFrame | ArrayLike | Listed,
    *,
    vocabulary: VocabularyLike | None = None,
    top: int | None = None,
    **numbers: Unpack[NumberOptions],
) -> None:
    """Write an output file. An existing file is replaced only when all lines are written.

    ``lines`` are strings, or arguments for :func:`format_line`, or a DataFrame, whose columns are words, or what
    :meth:`geval_py.Metric.predictions` returns. With a ``vocabulary``, they are an array with a row for each line and
    a column for each word, or a pair of such arrays (ids, probabilities) of some words of each line. They may also be
    an iterator of such arrays, batch by batch: each is written before the next one is asked for. ``log``,
    ``logits``, ``top`` and ``rest`` are as for format_line; ``rest`` may also have a number for each row of every
    array. The file is compressed by the name's ending: .xz, .gz, .bz2 or .zst.

    Warns (UserWarning) of arrays and distributions that are written with more than 1,000 words a line. Raises
    UsageError if the file cannot be written, if there are no lines, for a string that contains a line end, for an
    argument without effect, and as format_line does, with the line's index.
    """
    if isinstance(lines, str | bytes | Mapping):
        raise UsageError(f"lines are several, not {shown(lines)}: for one line write [line]")
    name = os.fspath(path)
    if format_ending(name):
        raise UsageError(f"an output is written as TSV: name a file that ends in .tsv, not {named(name)}")
    encoded = encoded_lines(lines, "lines", vocabulary=vocabulary, top=top, max_entries=MAX_ENTRIES, **numbers)
    is_empty = True
    with rewriting.written_whole(name, compression=compression.compression_by_ending(name)) as file:
        for line in encoded:
            file.write(line)
            is_empty = False
        if is_empty:
            raise UsageError("there is no line to write; an iterator can be read only once")


def convert(source: str, target: str) -> tuple[int, list[str]]:
    """Write the output at a path, in any format, into a TSV file; return the number of lines, and notes.

    The file is compressed by its ending. Raises EmptyFileError, MissingFileError and other DataErrors of the source,
    and UsageError for a file that cannot be written, or does not end in .tsv.
    """
    file = output_named(source).file
    with suppress(DataError):  # of the answers beside it, whose ids order the rows
        answers = find_answers(os.path.join(os.path.dirname(source), EXPECTED_FILE))
        file.answers = None if answers is None else answers_at(answers)
    if not name_of(target).endswith(".tsv"):
        raise UsageError(f"an output is written as TSV: name a file that ends in .tsv, not {named(target)}")
    codec, count = compression.compression_by_ending(target), 0
    with LineReader(file) as reader, rewriting.written_whole(target, compression=codec) as draft:
        while block := reader.block():
            text = str(block, "utf-8", "replace").replace("\r", "").encode()
            draft.write(text)
            count += backends.count_lines(text)
        if not count:
            raise EmptyFileError(what="output", path=file.name)
    return count, file.notes


def encoded_lines(
    lines: Any,
    what: str,
    *,
    vocabulary: VocabularyLike | None = None,
    top: int | None = None,
    max_entries: float = math.inf,
    **numbers: Unpack[NumberOptions],
) -> Iterator[bytes]:
    """Yield the lines of :func:`write_output`, each ended by LF; errors begin with ``what`` and the line's index.

    Warns once of a line with more than ``max_entries``, unless it is a string.
    """
    from geval_py.scoring.arrays import Vocabulary

    columns = None if vocabulary is None else Vocabulary.of_columns(vocabulary, "sum")
    is_batch = is_predictions(lines) or (holds_numbers(lines) and not isinstance(lines, list))
    index = 0
    for item in [lines] if is_batch else lines:
        try:
            if isinstance(item, str):
                refuse_unused("a line of text", vocabulary=vocabulary, top=top, **numbers)
                if separator := re.search(r"[\n\r]", item):
                    raise UsageError(f"it contains {SEPARATORS[separator[0]]}; give one line an item")
                yield f"{item}\n".encode()
                index += 1
                continue
            rows = predictions_of(item, columns, **numbers)
            for row in range(len(rows)):
                text = rows.line(row, top)
                if top is None and text.count(" ") >= max_entries:
                    entries = f"{what}[{index}] has {text.count(' ') + 1:,} entries"
                    warnings.warn(f"{entries}: top=300 writes the most probable 300 of each line", stacklevel=3)
                    max_entries = math.inf
                yield f"{text}\n".encode()
                index += 1
        except (UsageError, UnicodeEncodeError) as error:
            raise UsageError(f"{what}[{index}]: {error}") from error


def prediction_lines(predictions: Any, **numbers: Unpack[NumberOptions]) -> Iterator[bytes]:
    """Yield predictions as lines, each ended by LF: distributions, lines, or for other metrics texts and numbers."""
    if isinstance(predictions, str | bytes | Mapping):
        raise UsageError(f"predictions are a list with one for each line, not {shown(predictions)}")
    if not is_predictions(predictions) and not hasattr(predictions, "columns"):
        predictions = (str(one) if isinstance(one, int | float) else one for one in predictions)
    return encoded_lines(predictions, "predictions", **numbers)


def refuse_unused(owner: str, **arguments: object) -> None:
    """Raise UsageError for arguments that are given, and that have no effect on the owner."""
    if names := tuple(name for name, value in arguments.items() if value is not None and value is not False):
        raise UsageError(f"{owner} has no use for", arguments=names)


def is_predictions(value: object) -> bool:
    """Whether a value is :class:`geval_py.scoring.arrays.Predictions`; importing these needs numpy."""
    return hasattr(value, "statistics")


def holds_numbers(value: Any) -> bool:
    """Whether a value is an array of numbers, a tensor, a table, a list of numbers or of such, or a pair."""
    if isinstance(value, list | tuple):
        return bool(value) and (isinstance(value[0], int | float) or holds_numbers(value[0]))
    if hasattr(value, "columns"):
        return True
    is_array = isinstance(value, memoryview) or hasattr(value, "__array__") or hasattr(value, "__dlpack__")
    is_text = getattr(getattr(value, "dtype", None), "kind", "f") in "OSU"
    return is_array and not is_text and not hasattr(value, "items")
