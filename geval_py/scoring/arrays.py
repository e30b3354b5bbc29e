"""Distributions in arrays, as models compute them: a :class:`Vocabulary`, and :class:`Predictions` over its words.

A row of an array means what the same numbers mean in an output line: masses are divided by their total if it is above
1, or if it is below 1 and there is a rest; else what is missing to 1 is the rest, which all buckets share.
"""

from __future__ import annotations

import math
import warnings
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, TypeAlias, TypedDict, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geval_py.errors import UsageError
from geval_py.reading.wordprobs import MIN_TOTAL, number_advice
from geval_py.scoring.blocks import available_cores
from geval_py.scoring.encoding import encoded_texts, fault_of_word, join_words
from geval_py.scoring.kernel import backends
from geval_py.scoring.kernel.packed_words import Ids, Numbers, Unit, fault_place
from geval_py.scoring.metrics.base import LineStatistics
from geval_py.text import counted, shown, some_of

if TYPE_CHECKING:
    import pandas as pd

    VocabularyLike: TypeAlias = Sequence[str] | Mapping[str, int] | NDArray[np.str_] | pd.Index[Any] | pd.Series[Any]
    Listed: TypeAlias = tuple[ArrayLike, ArrayLike]  # (ids, probabilities)
    Arrays: TypeAlias = ArrayLike | pd.DataFrame | Listed

Losses: TypeAlias = NDArray[np.float64]
WORDS_AT_ONCE = 1 << 21  # about a millisecond of work for a thread
MAX_SUM = 1.01  # of a row of probabilities, which may have been rounded to half precision

NO_MASS = "every probability is 0: a distribution needs one above 0"
WANTED = {  # what a number is called, and what it has to be
    Unit.PROBABILITIES: ("probability", "between 0 and 1"),
    Unit.LOGARITHMS: ("number", "a logarithm of a probability"),
    Unit.LOGITS: ("number", "a logit"),
}
SUMMED_ROWS = 20  # to look for sums above 1, or of logits of 1, which mostly all rows have; all would take long
MIN_LISTED = 0.01  # of the probability, which a model gives to the words of its vocabulary
TOKEN_MARKS = ("Ġ", "▁", "##")  # of byte-level BPE, SentencePiece and WordPiece
MAX_MARKED = 0.05  # of a vocabulary's words: words of Maltese begin with Ġ, too
TOKENS_PAGE = "see docs/softmax.md, Special tokens"


class NumberOptions(TypedDict, total=False):
    """What numbers of words are; see :meth:`geval_py.Metric.predictions`."""

    log: bool
    logits: bool
    rest: ArrayLike | None


class Vocabulary:
    """Words, whose places are their ids; raises UsageError for words that an output cannot hold."""

    def __init__(self, words: Sequence[Any]) -> None:
        self.words, self.text = tuple(words), join_words(words)

    @classmethod
    def of_columns(cls, words: VocabularyLike, duplicates: Literal["error", "sum"] = "error") -> Vocabulary:
        """Return the words of the columns of arrays; see :class:`geval_py.Metric`.

        Raises UsageError for words that an output cannot hold, and for ids that leave one out. Warns (UserWarning) if
        the words look like the tokens of a language model.
        """
        if isinstance(words, str | bytes | set | frozenset) or not isinstance(words, Iterable):
            accepted = "a list of words, in the order of columns, or a dict of words with their ids"
            raise UsageError(f"a vocabulary is {accepted}, not {shown(words)}")
        if isinstance(words, Mapping):
            by_id = {number: word for word, number in words.items()}
            if missing := set(range(len(words))) - by_id.keys():
                raise UsageError(f"{ids_of(words)}, each once; {min(missing)} is missing")
            columns = list(map(by_id.__getitem__, range(len(words))))
        else:
            columns = list(words.tolist() if hasattr(words, "tolist") else words)
        try:
            vocabulary = cls(columns)
        except UsageError as error:
            ids = some_of(str(number) for number, word in enumerate(columns) if fault_of_word(word))
            fault, *_ = str(error).splitlines()
            kept = "kept = [n for n, word in enumerate(words) if word.split() == [word]]"
            advice = f"leave the ids {ids} out: array[..., kept], vocabulary=[words[n] for n in kept], where {kept}"
            raise UsageError(f"{fault}\n  {advice}; {TOKENS_PAGE}") from error
        if duplicates != "sum" and len(set(columns)) < len(columns):
            word, count = Counter(columns).most_common(1)[0]
            advice = 'duplicates="sum" adds up the probabilities of equal words'
            raise UsageError(f"the vocabulary has the word {word!r} {count} times\n  {advice}")
        for mark in TOKEN_MARKS:
            marked = vocabulary.text.count(b"\n" + mark.encode())
            if marked > MAX_MARKED * len(columns):
                what = (
                    f"{counted(marked, 'word')} of the vocabulary begin with {mark!r}, as tokens of a language model"
                )
                warnings.warn(
                    f"{what}: such a word is never right, and its probability is lost; {TOKENS_PAGE}", stacklevel=3
                )
        return vocabulary

    def __len__(self) -> int:
        return len(self.words)

    def __reduce__(self) -> tuple[Any, ...]:
        return Vocabulary, (self.words,)

    @cached_property
    def packed(self) -> Any:
        """The words, packed for the kernel."""
        return backends.pack_words(self.text)

    def text_of(self, ids: Ids | None) -> bytes:
        """Return the words with some ids, or all words, as UTF-8 lines, each ended by LF."""
        return self.text if ids is None else "".join(f"{self.words[number]}\n" for number in ids.tolist()).encode()

    def predictions(
        self, arrays: Arrays, *, log: bool = False, logits: bool = False, rest: ArrayLike | None = None
    ) -> Predictions:
        """Return arrays as predictions; see :meth:`geval_py.Metric.predictions`.

        Warns (UserWarning) of numbers that look like those of another unit.
        """
        if log and logits:
            raise UsageError("numbers are log-probabilities or logits, not both: log=True or logits=True")
        unit = Unit.LOGITS if logits else Unit.LOGARITHMS if log else Unit.PROBABILITIES
        if isinstance(arrays, tuple) and len(arrays) != 2:
            raise UsageError(f"a pair of arrays is (ids, probabilities), not {len(arrays)} values")
        ids, numbers = cast("Any", arrays if isinstance(arrays, tuple) else (None, arrays))
        if hasattr(numbers, "columns"):
            numbers = self._in_order(numbers)
        values = numbers_of(numbers, "the predictions")
        shape, width = values.shape[:-1], values.shape[-1] if values.ndim in (1, 2, 3) else -1
        rows, words = math.prod(shape), len(self.words)
        if ids is not None:
            ids = _ids(ids, "ids", "a pair is (ids, numbers); torch.topk returns (values, indices)")
            if ids.shape != values.shape or width < 0:
                both = f"{ids.shape} and {values.shape}"
                raise UsageError(f"ids and probabilities are two arrays of one shape, not of {both}")
            ids = ids.reshape(rows, width)
        elif width != words:
            advice = f"\n  for a model with more columns than its tokenizer has words, give array[..., :{words}]"
            raise UsageError(
                f"the predictions have a row for each line and a column for each of {words} words, and "
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
                raise UsageError(f"{what}, not of the shape {own_rests.shape}")
            rests = np.ascontiguousarray(np.broadcast_to(own_rests.ravel(), rows), np.float64)
        made = Predictions(self, values, ids, rests, unit, shape)
        if shape and (doubt := made.doubt()):
            warnings.warn(doubt, stacklevel=3)
        return made

    def _in_order(self, frame: Any) -> Any:
        """Return a table with its columns in the order of the words; columns without names are in this order."""
        words, names = list(self.words), list(frame.columns)
        if names == list(range(len(words))):
            return frame
        others = (Counter(words) - Counter(names)) + (Counter(names) - Counter(words))
        if others:
            what = "the columns of a table are the words of the vocabulary, each once"
            raise UsageError(f"{what}; they differ in {some_of(map(repr, others.elements()))}")
        return frame[words]

    def words_of(self, references: Any, shape: tuple[int, ...]) -> Sequence[str]:
        """Return references, words or an array of ids for predictions of a shape, as words; raises UsageError."""
        if isinstance(references, Iterator):
            references = list(references)
        if isinstance(references, str | list | tuple) and (not references or isinstance(references[0], str)):
            return references
        values = _array(references, "the references")
        if values.ndim > 1 and shape not in (values.shape, (values.size,)):
            what = f"references of the shape {values.shape} are not for predictions of the shape {shape}"
            raise UsageError(what)
        if values.dtype.kind in "OU":
            words: list[str] = values.ravel().tolist()
            return words
        for row, number in enumerate(numbers := _ids(values, "references").ravel().tolist()):
            if not 0 <= number < len(self.words):
                padding = "\n  leave out padding: array[kept] and references[kept], where kept = references >= 0"
                where = f"references[{_place(row, values.shape)}] is {number}"
                raise UsageError(f"{where}; {ids_of(self.words)}{padding * (number < 0)}")
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
        return map(self.line, range(len(self)))

    def statistics(self, words: Sequence[str], lines: Ids, bits: int, threads: int | None = None) -> LineStatistics:
        """Score the rows for a metric on hashed words against as many ``words``; ``lines`` are their numbers.

        Warns (UserWarning) if one of the first rows sums to more than 1.
        """
        rows, seeds = len(self), lines.astype(np.uint32)
        check_counts(rows, len(words))
        size = max(1, WORDS_AT_ONCE * rows // max(1, self._values.size))

        def score(first: int) -> LineStatistics:
            part = slice(first, first + size)
            ids = None if self._ids is None else self._ids[part]
            rests = None if self._rests is None else self._rests[part]
            text = encoded_texts("references", words[part], first)
            losses, bound, fault = backends.array_losses(
                self.vocabulary.packed, self._values[part], ids, rests, text, seeds[part], bits, self._unit
            )
            if fault >= 0:
                row = first + fault
                raise UsageError(f"predictions[{_place(row, self.shape)}]: {self._fault(row)}")
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

    def doubt(self) -> str | None:
        """Return why the first rows may be in another unit than they are said to be; None if they look right."""
        numbers = np.array([self._row(row)[1] for row in range(min(len(self), SUMMED_ROWS))])
        if self._rests is not None or self._values.shape[1] < 2 or not len(numbers):
            return None
        if self._unit is Unit.LOGITS:
            if (numbers >= 0).all() and (abs(numbers.sum(axis=1) - 1) < MAX_SUM - 1).all():
                what = "the logits are not negative and sum to 1, as probabilities do"
                return f"{what}: after softmax, leave logits=True out"
            if self._ids is not None and self._values.shape[1] < len(self.vocabulary):
                return "softmax of the logits of some words gives these all probability: choose words after softmax"
        if self._unit is Unit.LOGARITHMS and self._ids is None:
            with np.errstate(over="ignore"):
                has_mass = np.exp(numbers).sum(axis=1) >= MIN_LISTED
            if not has_mass.any():
                what = f"all words of a row together have less than {MIN_LISTED:.0%} of the probability"
                return f"{what}; for logits give logits=True in place of log=True"
        return None

    def _row(self, row: int) -> tuple[Ids | None, Losses]:
        """Return the ids of a row, None for all words, and its numbers, the last of the rest if there is one."""
        rests = () if self._rests is None else self._rests[row : row + 1]
        numbers = np.concatenate([self._values[row], rests], dtype=np.float64)
        return None if self._ids is None else self._ids[row], numbers

    def line(self, row: int, top: int | None = None) -> str:
        """Write a row as probabilities: of all its words, or of the ``top`` most probable ones, best first."""
        if top is not None and (not isinstance(top, SupportsIndex) or top < 1):
            raise UsageError(f"top is how many words of a line are written, an integer from 1 on, not {top}")
        if fault := self._fault(row):
            raise UsageError(fault)
        ids, numbers = self._row(row)
        width, has_rest = self._values.shape[1], self._rests is not None
        if self._unit is not Unit.PROBABILITIES:
            numbers = np.exp(numbers - (numbers.max() if self._unit is Unit.LOGITS else 0.0))
        total = math.fsum(numbers.tolist())
        if has_rest and not total:
            raise UsageError(NO_MASS)
        top = width if top is None else top
        if total > 1.0 or (top < width and has_rest):
            numbers, total = numbers / total, 1.0
        masses, rest = numbers[:width], numbers[width:]
        if top < width:
            best = np.sort(np.argpartition(masses, -top)[-top:])
            best = best[np.argsort(-masses[best], kind="stable")]
            ids, masses = best if ids is None else ids[best], masses[best]
            rest = np.maximum(0.0, [1.0 - masses.sum()])
        elif not has_rest and total < MIN_TOTAL:
            rest = np.array([1.0 - total])
        words = self.vocabulary.text_of(ids) + b"\n" * len(rest)
        return backends.format_entries(words, np.append(masses, rest), 0.0, 1.0)

    def _fault(self, row: int) -> str | None:
        """Return what is wrong with a row; None if nothing is."""
        ids, numbers = self._row(row)
        words = self.vocabulary.words
        place = fault_place(len(words), ids, numbers, self._unit, has_rest=self._rests is not None)
        if place is None:
            return None
        if place == len(numbers):
            if self._unit is not Unit.LOGARITHMS or numbers.max() == -math.inf:
                return NO_MASS
            what = "the exponentials of its numbers total more than 1"
            if self._rests is not None and self._rests[row] > 0.0:
                return f"{what}\n  rest is a logarithm, too: log(0.1)"
            return f"{what}\n  for logits give logits=True in place of log=True"
        owner = "the rest"
        if place < self._values.shape[1]:
            number = place if ids is None else ids[place]
            if not 0 <= number < len(words):
                return f"the id {number}; {ids_of(words)}"
            owner = repr(words[number])
        noun, wanted = WANTED[self._unit]
        fault = f"the {noun} of {owner} is {numbers[place]}, which is not {wanted}"
        if self._unit is Unit.PROBABILITIES and (self._values < 0).any():
            return f"{fault}\n  for logits give logits=True, for logarithms of probabilities log=True"
        if not np.isfinite(numbers).all():
            return fault
        return f"{fault}\n  {number_advice(['word'] * len(numbers), numbers.tolist())}"


def ids_of(words: Sized) -> str:
    """Return which ids some words have, for messages."""
    return f"the ids of {len(words)} words are 0 to {len(words) - 1}"


def check_counts(predictions: int, others: int, what: str = "reference") -> None:
    """Raise UsageError unless there are as many of the others as predictions."""
    if predictions != others:
        raise UsageError(f"{counted(predictions, 'prediction')}, but {counted(others, what)}")


def numbers_of_lines(lines: Any, count: int) -> Ids:
    """Return the line numbers of ``count`` rows: from the first one on, or one for each; raises UsageError."""
    numbers = _ids(lines, "lines")
    numbers = numbers.ravel() if numbers.ndim else numbers + np.arange(count)
    check_counts(count, len(numbers), "line number")
    if count and numbers.min() < 1:
        raise UsageError(f"lines has the number {numbers.min()}; lines are counted from 1")
    return numbers


def numbers_of(values: Any, what: str) -> Numbers:
    """Return an array of float32 or float64, without a copy where that is possible; raises UsageError."""
    numbers = _array(values, what)
    kind = np.float32 if numbers.dtype.name in ("float32", "float16", "bfloat16") else np.float64
    if numbers.dtype.kind not in "USc":
        with suppress(OverflowError, TypeError, ValueError):
            return numbers.astype(kind, copy=False)
    raise UsageError(f"{what} are an array of {numbers.dtype}, not of float32 or float64")


def _array(values: Any, what: str) -> NDArray[Any]:
    try:
        if hasattr(values, "detach"):  # a tensor of PyTorch's, of whose kinds numpy has not all
            values = values.detach().cpu()
            values = values.float() if values.is_floating_point() and values.element_size() < 4 else values
        return np.asarray(values)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise UsageError(f"{what} cannot be read as an array: {error}") from error


def _ids(values: Any, what: str, advice: str = "") -> Ids:
    ids = _array(values, what)
    if ids.dtype.kind not in "iu" and ids.size:
        raise UsageError(f"{what}: whole numbers are needed, not {ids.dtype}" + f"\n  {advice}" * bool(advice))
    return np.asarray(ids, np.int64, order="C")


def _place(row: int, shape: tuple[int, ...]) -> str:
    """Return the indices of a row that is counted through all dimensions."""
    return ", ".join(map(str, np.unravel_index(row, shape or (1,))))
