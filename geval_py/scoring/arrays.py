"""Distributions in arrays, as models compute them: a :class:`Vocabulary`, and :class:`Predictions` over its words.

A row of an array means what the same numbers mean in an output line: masses are divided by their total if it is above
1, or if it is below 1 and there is a rest; else what is missing to 1 is the rest, which all buckets share.
"""

from __future__ import annotations

import math
import operator
import warnings
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geval_py.errors import UsageError
from geval_py.reading.wordprobs import MIN_TOTAL
from geval_py.scoring.blocks import available_cores
from geval_py.scoring.encoding import encoded_texts, fault_of_word, join_words
from geval_py.scoring.kernel import backends
from geval_py.scoring.kernel.packed_words import Ids, Numbers, Unit, has_fault
from geval_py.scoring.metrics.base import LineStatistics
from geval_py.tables.numbers import counted
from geval_py.text import shown, some_of

if TYPE_CHECKING:
    import pandas as pd

    VocabularyLike: TypeAlias = Sequence[str] | Mapping[str, int] | NDArray[np.str_] | pd.Index[Any] | pd.Series[Any]
    Listed: TypeAlias = tuple[ArrayLike, ArrayLike]  # (ids, probabilities)
    Arrays: TypeAlias = ArrayLike | pd.DataFrame | Listed
    References: TypeAlias = Sequence[str] | Sequence[Sequence[str]] | ArrayLike

Losses: TypeAlias = NDArray[np.float64]
WORDS_AT_ONCE = 1 << 21  # about a millisecond of work for a thread
MAX_SUM = 1.01  # of a row of probabilities, which may have been rounded to half precision
NO_MASS = "every probability is 0: a distribution needs one above 0"
WANTED = {  # what a number is called, and what it has to be
    Unit.PROBABILITIES: ("probability", "between 0 and 1"),
    Unit.LOGARITHMS: ("number", "a logarithm of a probability"),
    Unit.LOGITS: ("number", "a logit"),
}
SUMMED_ROWS = 20  # to look for sums above 1, which mostly all rows have; all would take a quarter of the time
TOKEN_MARKS = ("Ġ", "▁", "##")  # of byte-level BPE, SentencePiece and WordPiece
MAX_MARKED = 0.05  # of a vocabulary's words: words of Maltese begin with Ġ, too
TOKENS_PAGE = "see docs/softmax.md, Special tokens"


class Vocabulary:
    """The words of the columns of arrays, in the order of their ids.

    ``words`` is a sequence of words, where the place of a word is its id, or a mapping from words to their ids,
    0, 1, 2 and so on, such as ``tokenizer.get_vocab()``. With ``duplicates="sum"``, a word that is there twice has
    the sum of both probabilities; otherwise this is an error.

    Raises UsageError for words that an output cannot hold, and for ids that leave one out. Warns (UserWarning) if the
    words look like the tokens of a language model.
    """

    def __init__(self, words: VocabularyLike, duplicates: Literal["error", "sum"] = "error") -> None:
        if isinstance(words, str | bytes | set | frozenset) or not isinstance(words, Iterable):
            accepted = "a list of words, in the order of columns, or a dict of words with their ids"
            raise UsageError(message=f"a vocabulary is {accepted}, not {shown(words)}")
        if isinstance(words, Mapping):
            by_id = {number: word for word, number in words.items()}
            for number in range(len(words)):
                if number not in by_id:
                    ids = f"the ids of {len(words)} words are 0 to {len(words) - 1}, each once"
                    raise UsageError(message=f"{ids}; {number} is missing")
            self.words = tuple(map(by_id.__getitem__, range(len(words))))
        else:
            self.words = tuple(words.tolist() if hasattr(words, "tolist") else words)
        try:
            self.text = join_words(self.words)
        except UsageError as error:
            ids = some_of(str(number) for number, word in enumerate(self.words) if fault_of_word(word))
            fault, *_ = str(error).splitlines()
            kept = "kept = [n for n, word in enumerate(words) if word.split() == [word]]"
            advice = f"leave the ids {ids} out: array[..., kept], vocabulary=[words[n] for n in kept], where {kept}"
            raise UsageError(message=f"{fault}\n  {advice}; {TOKENS_PAGE}") from error
        if duplicates != "sum" and len(set(self.words)) < len(self.words):
            word, count = Counter(self.words).most_common(1)[0]
            advice = 'duplicates="sum" adds up the probabilities of equal words'
            raise UsageError(message=f"the vocabulary has the word {word!r} {count} times\n  {advice}")
        for mark in TOKEN_MARKS:
            marked = self.text.count(b"\n" + mark.encode())
            if marked > MAX_MARKED * len(self.words):
                what = (
                    f"{counted(marked, 'word')} of the vocabulary begin with {mark!r}, as tokens of a language model"
                )
                warnings.warn(
                    f"{what}: such a word is never right, and its probability is lost; {TOKENS_PAGE}", stacklevel=3
                )

    def __len__(self) -> int:
        return len(self.words)

    def __reduce__(self) -> tuple[Any, ...]:
        return Vocabulary, (self.words, "sum")

    @cached_property
    def packed(self) -> Any:
        """The words, packed for the kernel."""
        return backends.pack_words(self.text)

    @cached_property
    def _lines(self) -> list[bytes]:
        return self.text.splitlines(keepends=True)

    def text_of(self, ids: Ids | None) -> bytes:
        """Return the words with some ids, or all words, as UTF-8 lines, each ended by LF."""
        return self.text if ids is None else b"".join(map(self._lines.__getitem__, ids.tolist()))

    @property
    def known_ids(self) -> str:
        """Which ids there are, for messages."""
        return f"the ids of {len(self.words)} words are 0 to {len(self.words) - 1}"

    def predictions(
        self, arrays: Arrays, *, log: bool = False, logits: bool = False, rest: ArrayLike | None = None
    ) -> Predictions:
        """Return arrays as predictions; see :meth:`geval_py.Metric.predictions`."""
        if log and logits:
            raise UsageError(message="numbers are log-probabilities or logits, not both: log=True or logits=True")
        unit = Unit.LOGITS if logits else Unit.LOGARITHMS if log else Unit.PROBABILITIES
        if isinstance(arrays, tuple) and len(arrays) != 2:
            raise UsageError(message=f"a pair of arrays is (ids, probabilities), not {len(arrays)} values")
        ids, numbers = cast("Any", arrays if isinstance(arrays, tuple) else (None, arrays))
        if hasattr(numbers, "columns"):
            numbers = self._in_order(numbers)
        values = numbers_of(numbers, "the predictions")
        shape, width = values.shape[:-1], values.shape[-1] if values.ndim in (1, 2, 3) else -1
        rows, words = math.prod(shape), len(self.words)
        if ids is not None:
            ids = _ids(ids, "ids")
            if ids.shape != values.shape or width < 0:
                both = f"{ids.shape} and {values.shape}"
                raise UsageError(message=f"ids and probabilities are two arrays of one shape, not of {both}")
            ids = ids.reshape(rows, width)
        elif width != words:
            advice = f"\n  for a model with more columns than its tokenizer has words, give array[..., :{words}]"
            raise UsageError(
                message=f"the predictions have a row for each line and a column for each of {words} words, and "
                f"not the shape {values.shape}{advice * (width > words)}"
            )
        values = values.reshape(rows, width)
        if width > 1 and values.strides[1] != values.itemsize:
            values = np.ascontiguousarray(values)
        rests: NDArray[np.float64] | None = None
        if rest is not None:
            own_rests = numbers_of(rest, "the rests")
            if own_rests.shape not in ((), (rows,), shape):
                what = f"rest is one number or one for each of {rows} rows"
                raise UsageError(message=f"{what}, not of the shape {own_rests.shape}")
            rests = np.ascontiguousarray(np.broadcast_to(own_rests.ravel(), rows), np.float64)
        return Predictions(self, values, ids, rests, unit, shape)

    def _in_order(self, frame: Any) -> Any:
        """Return a table with its columns in the order of the words; columns without names are in this order."""
        words, names = list(self.words), list(frame.columns)
        if names == list(range(len(words))):
            return frame
        others = (Counter(words) - Counter(names)) + (Counter(names) - Counter(words))
        if others:
            what = "the columns of a table are the words of the vocabulary, each once"
            raise UsageError(message=f"{what}; they differ in {some_of(map(repr, others.elements()))}")
        return frame[words]

    def words_of(self, references: Any, shape: tuple[int, ...]) -> Sequence[str]:
        """Return references, words or an array of ids for predictions of a shape, as words; raises UsageError."""
        if isinstance(references, str):
            raise UsageError(message=f"references are a list, not {references!r}: for one line write [word]")
        if isinstance(references, Iterator):
            references = list(references)
        if isinstance(references, list | tuple) and (not references or isinstance(references[0], str)):
            return references
        values = _array(references, "the references")
        if values.ndim > 1 and shape not in (values.shape, (values.size,)):
            what = f"references of the shape {values.shape} are not for predictions of the shape {shape}"
            raise UsageError(message=what)
        if values.dtype.kind in "OU":
            words: list[str] = values.ravel().tolist()
            return words
        for row, number in enumerate(numbers := _ids(values, "references").ravel().tolist()):
            if not 0 <= number < len(self.words):
                padding = "\n  leave out padding: array[kept] and references[kept], where kept = references >= 0"
                where = f"references[{_place(row, values.shape)}] is {number}"
                raise UsageError(message=f"{where}; {self.known_ids}{padding * (number < 0)}")
        return [self.words[number] for number in numbers]


@dataclass(eq=False)
class Predictions:
    """Distributions in arrays, a row for each line; made by :meth:`geval_py.Metric.predictions`.

    ``shape`` is that of the arrays without the dimension of words: (lines,) or (batch, sequence). Iterating yields
    each row as an output line of probabilities. ``metric`` is the name of the metric that made them.
    """

    vocabulary: Vocabulary
    _values: Numbers
    _ids: Ids | None
    _rests: NDArray[np.float64] | None
    _unit: Unit
    shape: tuple[int, ...]
    metric: str | None = None

    def __len__(self) -> int:
        return math.prod(self.shape)

    def __repr__(self) -> str:
        return f"<Predictions of {counted(len(self), 'line')} over {counted(len(self.vocabulary), 'word')}>"

    def __iter__(self) -> Iterator[str]:
        return self.lines()

    def lines(self, top: int | None = None, what: str = "predictions", first: int = 0) -> Iterator[str]:
        """Yield the output line of each row, as :meth:`line` does; errors name ``what[first + row]``."""
        for row in range(len(self)):
            try:
                line = self.line(row, top)
            except UsageError as error:
                raise UsageError(message=f"{what}[{first + row}]: {error}") from error
            yield line

    def statistics(self, references: Any, lines: Ids, bits: int, threads: int | None = None) -> LineStatistics:
        """Score the rows for a metric on hashed words; ``lines`` are their numbers.

        Warns (UserWarning) if one of the first rows sums to more than 1.
        """
        words = self.vocabulary.words_of(references, self.shape)
        rows, seeds = len(self), lines.astype(np.uint32)
        check_counts(rows, len(words))
        size = max(1, WORDS_AT_ONCE * rows // max(1, self._values.size))

        def score(first: int) -> LineStatistics:
            part = slice(first, first + size)
            values, ids, offsets = self._values[part], None, None
            if self._ids is not None:
                offsets = np.arange(len(values) + 1) * values.shape[1]
                ids, values = self._ids[part].ravel(), values.ravel()
            rests = None if self._rests is None else self._rests[part]
            text = encoded_texts("references", words[part], first)
            losses, bound, fault = backends.array_losses(
                self.vocabulary.packed, values, ids, offsets, rests, text, seeds[part], bits, self._unit
            )
            if fault >= 0:
                row = first + fault
                raise UsageError(message=f"predictions[{_place(row, self.shape)}]: {self._fault(row)}")
            return LineStatistics((losses,), bound=bound)

        scored = LineStatistics((array("d"),))
        is_native = backends.choose_backend() == "native"
        with ThreadPoolExecutor((threads or available_cores()) if is_native else 1) as pool:
            for part in pool.map(score, range(0, rows, size)):
                scored.extend(part)
        for row in range(min(rows, SUMMED_ROWS) if self._unit is Unit.PROBABILITIES else 0):
            _, numbers = self._row(row)
            if (sum_ := numbers.sum()) > MAX_SUM:
                what = f"predictions[{_place(row, self.shape)}] sum to {sum_:.4g}"
                warnings.warn(f"{what}: rows that sum to more than 1 are divided by their sum", stacklevel=4)
                break
        return scored

    def _row(self, row: int) -> tuple[Ids | None, Losses]:
        """Return the ids of a row, None for all words, and its numbers, the last of the rest if there is one."""
        rests = () if self._rests is None else self._rests[row : row + 1]
        numbers = np.concatenate([self._values[row], rests], dtype=np.float64)
        return None if self._ids is None else self._ids[row], numbers

    def line(self, row: int, top: int | None = None) -> str:
        """Write a row as probabilities: of all its words, or of the ``top`` most probable ones, best first."""
        if top is not None and top < 1:
            raise UsageError(message=f"top is how many words of a line are written, at least 1, not {top}")
        ids, numbers = self._row(row)
        has_rest = self._rests is not None
        if has_fault(len(self.vocabulary), ids, numbers, self._unit, has_rest=has_rest):
            raise UsageError(message=self._fault(row))
        if self._unit is not Unit.PROBABILITIES:
            numbers = np.exp(numbers - (numbers.max() if self._unit is Unit.LOGITS else 0.0))
        total = numbers.sum()
        if self._unit is Unit.LOGITS:
            numbers /= total
            total = 1.0
        masses = numbers[:-1] if has_rest else numbers
        rest = numbers[-1] if has_rest else None
        if top is not None and top < len(masses):
            best = np.sort(np.argpartition(masses, -top)[-top:])
            best = best[np.argsort(-masses[best], kind="stable")]
            ids, masses = best if ids is None else ids[best], masses[best] / (total if has_rest else max(total, 1.0))
            rest = max(0.0, 1.0 - masses.sum())
        elif not has_rest and total < MIN_TOTAL:
            rest = 1.0 - math.fsum(masses.tolist())
        return written_row(self.vocabulary.text_of(ids), masses, rest)

    def _fault(self, row: int) -> str:
        """Return what is wrong with a row at fault."""
        ids, numbers = self._row(row)
        words = self.vocabulary.words
        if ids is not None:
            for number in ids[(ids < 0) | (ids >= len(words))].tolist():
                return f"the id {number}; {self.vocabulary.known_ids}"
            words = tuple(map(words.__getitem__, ids))
        is_wrong, advice = np.isnan(numbers) | (numbers == math.inf), ""
        if self._unit is Unit.PROBABILITIES:
            is_wrong = ~((numbers >= 0.0) & (numbers <= 1.0))
            if (self._values < 0).any():
                advice = "\n  for logits give logits=True, for logarithms of probabilities log=True"
        for place in np.flatnonzero(is_wrong).tolist():
            owner = repr(words[place]) if place < len(words) else "the rest"
            noun, wanted = WANTED[self._unit]
            return f"the {noun} of {owner} is {numbers[place]}, which is not {wanted}{advice}"
        if self._unit is Unit.LOGARITHMS and numbers.max() > -math.inf:
            what = "the exponentials of its numbers total far more than 1"
            if self._rests is not None and self._rests[row] > 0.0:
                return f"{what}\n  rest is a logarithm, too: log(0.1)"
            return f"{what}\n  for logits give logits=True in place of log=True"
        return NO_MASS


def written_row(words: bytes, masses: Losses, rest: float | None) -> str:
    """Write an output line: words, each ended by LF, their probabilities in [0, 1], and the rest's unless it is None.

    Probabilities that total more than 1 are scaled down.
    """
    if rest is not None:
        words, masses = words + b"\n", np.append(masses, rest)
    total = math.fsum(masses.tolist())
    if not total:
        raise UsageError(message=NO_MASS)
    return backends.format_entries(words, masses / total if total > 1.0 else masses, 0.0, 1.0)


def check_counts(predictions: int, references: int) -> None:
    """Raise UsageError unless there are as many references as predictions."""
    if predictions != references:
        raise UsageError(message=f"{counted(predictions, 'prediction')}, but {counted(references, 'reference')}")


def numbers_of_lines(lines: Any, count: int) -> Ids:
    """Return the line numbers of ``count`` rows: from the first one on, or one for each; raises UsageError."""
    try:
        numbers = operator.index(lines) + np.arange(count)
    except TypeError:
        numbers = _ids(lines, "lines").ravel()
    if len(numbers) != count:
        raise UsageError(message=f"{counted(count, 'prediction')}, but {counted(len(numbers), 'line number')}")
    if count and numbers.min() < 1:
        raise UsageError(message=f"lines has the number {numbers.min()}; lines are counted from 1")
    return numbers


def numbers_of(values: Any, what: str) -> Numbers:
    """Return an array of float32 or float64, without a copy where that is possible; raises UsageError."""
    numbers = _array(values, what)
    kind = np.float32 if numbers.dtype.name in ("float32", "float16", "bfloat16") else np.float64
    if numbers.dtype.kind not in "USc":
        with suppress(TypeError, ValueError):
            return numbers.astype(kind, copy=False)
    raise UsageError(message=f"{what} are an array of {numbers.dtype}, not of float32 or float64")


def _array(values: Any, what: str) -> NDArray[Any]:
    try:
        if hasattr(values, "detach"):  # a tensor of PyTorch's, of whose kinds numpy has not all
            values = values.detach().cpu()
            values = values.float() if values.is_floating_point() and values.element_size() < 4 else values
        return np.asarray(values)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise UsageError(message=f"{what} cannot be read as an array: {error}") from error


def _ids(values: Any, what: str) -> Ids:
    ids = _array(values, what)
    if ids.dtype.kind not in "iu" and ids.size:
        raise UsageError(message=f"{what}: whole numbers are needed, not {ids.dtype}")
    return np.ascontiguousarray(ids, np.int64)


def _place(row: int, shape: tuple[int, ...]) -> str:
    """Return the indices of a row that is counted through all dimensions."""
    return ", ".join(map(str, np.unravel_index(row, shape or (1,))))
