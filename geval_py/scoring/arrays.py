"""Distributions in arrays, as models compute them, and their losses: :class:`Scorer` and :class:`Predictions`.

A row of an array means what the same numbers mean in an output line, written in full: masses are divided by their
total if it is above 1, or if it is below 1 and there is a rest; else what is missing to 1 is the rest, which all
buckets share.
"""

from __future__ import annotations

import math
import warnings
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geval_py.errors import UsageError
from geval_py.reading.wordprobs import check_line_number, total_far_above_one
from geval_py.scoring.blocks import available_cores
from geval_py.scoring.kernel import backends
from geval_py.scoring.kernel.packed_words import Hashes, Ids, Numbers, Unit, has_fault
from geval_py.scoring.metrics import find_metric
from geval_py.scoring.metrics.base import PERPLEXITY, LineStatistics, total
from geval_py.scoring.metrics.hashed import encoded_text
from geval_py.scoring.writing import checked_probability, in_order, join_words, words_of
from geval_py.tables.numbers import counted

if TYPE_CHECKING:
    import pandas as pd

    from geval_py.scoring.writing import Listed, Vocabulary

    Arrays: TypeAlias = ArrayLike | pd.DataFrame | Listed | tuple[ArrayLike, ArrayLike, ArrayLike]
    Expected: TypeAlias = Sequence[str] | Sequence[Sequence[str]] | ArrayLike

Losses: TypeAlias = NDArray[np.float64]
WORDS_AT_ONCE = 1 << 21  # about a millisecond of work for a thread
MAX_SUM = 1.01  # of a row of probabilities, which may have been rounded to half precision
SUMMED_ROWS = 20  # to look for sums above 1, which mostly all rows have; all would take a quarter of the time


class Scorer:
    """Scores arrays of probabilities of a vocabulary's words, without writing them as text.

    ``vocabulary`` is a sequence of words, where the place of a word is its id, or a mapping from words to their ids,
    0, 1, 2 and so on, such as ``tokenizer.get_vocab()``. With ``duplicates="sum"``, a word that is there twice has
    the sum of both probabilities; otherwise this is an error. ``metric`` is a metric on hashed words. ``threads``
    score at once, by default one a core. A scorer may be pickled, and used by several threads.

    Raises UsageError for a word that an output cannot hold, for ids that leave one out, and for a metric that is not
    on hashed words.

    >>> scorer = Scorer(["the", "a"])
    >>> scorer.losses([[0.5, 0.25]], ["the"]).round(4)
    array([0.6927])
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        metric: str = "PerplexityHashed",
        *,
        duplicates: Literal["error", "sum"] = "error",
        threads: int | None = None,
    ) -> None:
        self.vocabulary = tuple(words_of(vocabulary))
        self.metric = find_metric(metric)
        bits = self.metric.bits
        if bits is None:
            what = f"by metrics on hashed words, such as PerplexityHashed, not by {self.metric.name}"
            raise UsageError(message=f"arrays are scored {what}")
        self.bits = bits
        self.threads = threads
        self.joined = join_words(self.vocabulary)
        if duplicates != "sum" and len(set(self.vocabulary)) < len(self.vocabulary):
            word, count = Counter(self.vocabulary).most_common(1)[0]
            advice = 'duplicates="sum" adds up the probabilities of equal words'
            raise UsageError(message=f"the vocabulary has the word {word!r} {count} times\n  {advice}")
        self.packed = backends.pack_words(self.joined)

    def __repr__(self) -> str:
        return f"<Scorer of {counted(len(self.vocabulary), 'word')} by {self.metric.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Scorer, threads=self.threads, duplicates="sum"), (self.vocabulary, self.metric.name)

    def score(
        self,
        probabilities: Arrays,
        expected: Expected,
        first_line: int = 1,
        *,
        lines: ArrayLike | None = None,
        log: bool = False,
        logits: bool = False,
        rest: ArrayLike | None = None,
    ) -> float:
        """Compute the score of all rows by the metric; the arguments and errors are those of :meth:`losses`.

        >>> round(Scorer(["the", "a"]).score([[0.5, 0.25]], ["the"]), 3)
        1.999
        """
        losses = self.losses(probabilities, expected, first_line, lines=lines, log=log, logits=logits, rest=rest)
        if not losses.size:
            raise UsageError(message="there is no row to score")
        return self.metric.value(LineStatistics((array("d", losses.tobytes()),)))

    def losses(
        self,
        probabilities: Arrays,
        expected: Expected,
        first_line: int = 1,
        *,
        lines: ArrayLike | None = None,
        log: bool = False,
        logits: bool = False,
        rest: ArrayLike | None = None,
    ) -> Losses:
        """Compute the loss of each row, in nats, in [0, inf]: -ln of the probability of the expected word's bucket.

        ``expected`` are words, or an array with the ids of words. Losses and expected words have the shape of
        ``probabilities`` without its last dimension, (lines,) or (batch, sequence). Line numbers seed the hash: the
        rows, one sequence after another, are lines from ``first_line`` on, or have the numbers ``lines``. The other
        arguments and the errors are those of :meth:`predictions`; UsageError also for another number of words or
        line numbers than rows.
        """
        predictions = self.predictions(probabilities, log=log, logits=logits, rest=rest)
        numbers = numbers_of_lines(lines, first_line, len(predictions))
        return predictions.losses(expected, numbers, self.bits)[0].reshape(predictions.shape)

    def predictions(
        self, probabilities: Arrays, *, log: bool = False, logits: bool = False, rest: ArrayLike | None = None
    ) -> Predictions:
        """Return arrays as predictions, which :func:`geval_py.evaluate` and :func:`geval_py.write_output` take.

        ``probabilities`` is one of: an array of the shape (lines, words) or (batch, sequence, words), with a column
        for each word of the vocabulary; a DataFrame, whose columns are found by their names, the words; a pair of
        arrays (ids, probabilities) of one shape, whose rows list some words; three arrays (ids, probabilities,
        offsets), where row i is ``ids[offsets[i]:offsets[i + 1]]``, as in a sparse matrix. Arrays are numpy's or
        anything with a buffer or ``__dlpack__``, such as tensors on any device. They are float32 or float64, and not
        copied if each row is contiguous; bfloat16 and float16 become float32.

        The numbers are in [0, 1]; with ``log`` they are natural logarithms, possibly -inf; with ``logits``, any
        numbers to which softmax is applied. ``rest`` is the number of all other words, in the same unit: one for all
        rows, or an array with one for each. Without it, other words have what is missing to 1, and with logits
        nothing.

        Raises UsageError for arrays of another shape, and when a row is used that has NaN, a number out of range, an
        unknown id, or no mass.
        """
        if log and logits:
            raise UsageError(message="numbers are log-probabilities or logits, not both: log=True or logits=True")
        unit = Unit.LOGITS if logits else Unit.LOGARITHMS if log else Unit.PROBABILITIES
        ids = offsets = None
        numbers: Any = probabilities
        if isinstance(numbers, tuple):
            if len(numbers) not in (2, 3):
                what = "a tuple is (ids, probabilities) or (ids, probabilities, offsets)"
                raise UsageError(message=f"{what}, and does not have {len(numbers)} values")
            ids, numbers, *others = numbers
            ids, offsets = _ids(ids, "ids"), _ids(others[0], "offsets") if others else None
        elif hasattr(numbers, "columns"):
            numbers = in_order(numbers, self.vocabulary)
        values = numbers_of(numbers, "the probabilities")
        shape = values.shape[:-1]
        if ids is None:
            words = len(self.vocabulary)
            if len(shape) not in (1, 2) or values.shape[-1] != words:
                is_padded = values.ndim > 1 and values.shape[-1] > words
                advice = f"\n  for a model with more columns than its tokenizer has words, give array[..., :{words}]"
                raise UsageError(
                    message=f"the probabilities have a row for each line and a column for each of {words} words, and "
                    f"not the shape {values.shape}{advice * is_padded}"
                )
            values = values.reshape(math.prod(shape), words)
            if words > 1 and values.strides[1] != values.itemsize:
                values = np.ascontiguousarray(values)
        elif offsets is None:
            if ids.ndim not in (2, 3) or ids.shape != values.shape:
                raise UsageError(
                    message=f"ids and probabilities are two arrays of two dimensions and one shape, not of "
                    f"{ids.shape} and {values.shape}"
                )
            offsets = np.arange(math.prod(shape) + 1, dtype=np.int64) * ids.shape[-1]
            ids, values = ids.ravel(), values.ravel()
        else:
            values = np.ascontiguousarray(values)
            if ids.ndim != 1 or ids.shape != values.shape or offsets.ndim != 1 or not len(offsets):
                raise UsageError(
                    message="ids, probabilities and offsets are arrays of one dimension, the first two of one "
                    f"length, not of the shapes {ids.shape}, {values.shape} and {offsets.shape}"
                )
            if offsets[0] < 0 or (np.diff(offsets) < 0).any() or offsets[-1] > len(ids):
                raise UsageError(message=f"offsets rise from 0 to at most {len(ids)}, the number of ids")
            shape = (len(offsets) - 1,)
        rows = math.prod(shape)
        rests: NDArray[np.float64] | None = None
        if rest is not None:
            own_rests = numbers_of(rest, "the rests")
            if own_rests.shape not in ((), (rows,), shape):
                what = f"rest is one number or one for each of {rows} rows"
                raise UsageError(message=f"{what}, not of the shape {own_rests.shape}")
            rests = np.ascontiguousarray(np.broadcast_to(own_rests.ravel(), rows), np.float64)
        return Predictions(self, values, ids, offsets, rests, unit, shape)


@dataclass(eq=False)
class Predictions:
    """Distributions in arrays, a row for each line; made by :meth:`Scorer.predictions`.

    ``scorer`` made them. ``shape`` is that of the arrays without the dimension of words: (lines,) or (batch,
    sequence). Iterating yields each row as an output line, which means the same: logarithms are written for logits.
    """

    scorer: Scorer
    _values: Numbers
    _ids: Ids | None
    _offsets: Ids | None
    _rests: NDArray[np.float64] | None
    _unit: Unit
    shape: tuple[int, ...]

    def __len__(self) -> int:
        return math.prod(self.shape)

    def __repr__(self) -> str:
        return f"<Predictions of {counted(len(self), 'line')} over {counted(len(self.scorer.vocabulary), 'word')}>"

    def __iter__(self) -> Iterator[str]:
        return map(self._line, range(len(self)))

    def statistics(self, expected: Any, lines: Hashes, bits: int) -> LineStatistics:
        """Score the rows for a metric on hashed words; see :meth:`Scorer.losses`."""
        losses, bound = self.losses(expected, lines, bits)
        return LineStatistics((array("d", losses.tobytes()),), bound=bound)

    def losses(self, expected: Any, lines: Hashes, bits: int) -> tuple[Losses, float]:
        """Compute the losses of the rows, and the greatest loss that any row could have had."""
        words = self.words(expected)
        rows = len(self)
        for count, what in ((len(words), "expected words"), (len(lines), "line numbers")):
            if count != rows:
                raise UsageError(message=f"{rows} rows, but {count} {what}")
        size = max(1, WORDS_AT_ONCE * rows // max(1, self._values.size))
        parts = [slice(first, min(first + size, rows)) for first in range(0, rows, size)]

        def score(part: slice) -> tuple[Losses, float]:
            losses, bound, fault = backends.array_losses(
                self.scorer.packed,
                self._values if self._offsets is not None else self._values[part],
                self._ids,
                None if self._offsets is None else self._offsets[part.start : part.stop + 1],
                None if self._rests is None else self._rests[part],
                _encoded_words(words[part], part.start),
                lines[part],
                bits,
                self._unit,
            )
            if fault >= 0:
                raise self._fault(part.start + fault)
            return np.frombuffer(losses), bound

        is_native = backends.choose_backend() == "native"
        threads = min(self.scorer.threads or available_cores(), len(parts)) if is_native else 1
        if threads > 1:
            with ThreadPoolExecutor(threads) as pool:
                scored = list(pool.map(score, parts))
        else:
            scored = list(map(score, parts))
        for row in range(min(rows, SUMMED_ROWS) if self._unit is Unit.PROBABILITIES else 0):
            _, values, rests = self._row(row)
            if (sum_ := values.sum() + sum(rests)) > MAX_SUM:
                what = f"probabilities[{_place(row, self.shape)}] sum to {sum_:.4g}"
                warnings.warn(f"{what}: rows that sum to more than 1 are divided by their sum", stacklevel=3)
                break
        bound = max((bound for _, bound in scored), default=0.0)
        return np.concatenate([np.empty(0), *(losses for losses, _ in scored)]), bound

    def words(self, expected: Any) -> Sequence[str]:
        """Return expected words, which may be given as ids, as a list; raises UsageError."""
        if isinstance(expected, str):
            raise UsageError(message=f"expected words are several, not {expected!r}: for one row write [word]")
        if isinstance(expected, list | tuple) and (not expected or isinstance(expected[0], str)):
            return expected
        values = _array(expected, "the expected words")
        if values.ndim > 1 and self.shape not in (values.shape, (values.size,)):
            what = f"expected words of the shape {values.shape} are not for predictions of the shape {self.shape}"
            raise UsageError(message=what)
        if values.dtype.kind in "OU":
            words: list[str] = values.ravel().tolist()
            return words
        vocabulary = self.scorer.vocabulary
        for row, number in enumerate(numbers := _ids(values, "expected").ravel().tolist()):
            if not 0 <= number < len(vocabulary):
                padding = (
                    "\n  to leave out padding, index the arrays before predictions(…): probabilities[kept] and "
                    "expected[kept], where kept = expected >= 0"
                )
                raise UsageError(
                    message=f"expected[{_place(row, values.shape)}] is {number}; {_known_ids(len(vocabulary))}"
                    f"{padding * (number < 0)}"
                )
        return [vocabulary[number] for number in numbers]

    def _row(self, row: int) -> tuple[Ids | None, Numbers, list[float]]:
        """Return the ids of a row, None for all words, its numbers, and its rest, if there is one."""
        rests = [] if self._rests is None else [float(self._rests[row])]
        if self._ids is None or self._offsets is None:
            return None, self._values[row], rests
        place = slice(*self._offsets[row : row + 2].tolist())
        return self._ids[place], self._values[place], rests

    def _line(self, row: int) -> str:
        """Write a row; the line means the same to a reader, who takes numbers in [0, 1] for probabilities."""
        ids, of_row, rests = self._row(row)
        values, vocabulary = of_row.tolist(), self.scorer.vocabulary
        if has_fault(len(vocabulary), ids, values, rests, self._unit):
            raise self._fault(row)
        numbers = np.array([*values, *rests])
        words = self.scorer.joined if ids is None else join_words([vocabulary[number] for number in ids])
        texts = words + b"\n" * len(rests)
        if self._unit is Unit.PROBABILITIES:
            return backends.format_entries(texts, numbers, 0.0, 1.0) if numbers.any() else ":1"
        greatest = numbers.max(initial=-math.inf)
        if greatest == -math.inf:
            return ":1"
        log_total = greatest + math.log(np.exp(numbers - greatest).sum())
        numbers -= log_total if self._unit is Unit.LOGITS or log_total > 0.0 else 0.0
        finite = np.isfinite(numbers)
        if not finite.all():
            texts, numbers = b"".join(compress(texts.splitlines(keepends=True), finite)), numbers[finite]
        return backends.format_entries(texts, numbers, -math.inf, math.inf)

    def _fault(self, row: int) -> UsageError:
        """Return the error for a row at fault."""
        ids, values, rests = self._row(row)
        vocabulary = self.scorer.vocabulary
        message = f"probabilities[{_place(row, self.shape)}]: "
        for number in [] if ids is None else ids.tolist():
            if not 0 <= number < len(vocabulary):
                return UsageError(message=f"{message}the id {number}; {_known_ids(len(vocabulary))}")
        words = vocabulary if ids is None else [vocabulary[number] for number in ids]
        numbers = [*values.tolist(), *rests]
        for word, value in zip([*words, None], numbers, strict=False):
            if self._unit is Unit.PROBABILITIES:
                try:
                    checked_probability(value, word)
                except UsageError as error:
                    others = "\n  for logits give logits=True, for logarithms of probabilities log=True"
                    return UsageError(message=f"{message}{error}{others if (self._values < 0).any() else ''}")
            elif math.isnan(value) or value == math.inf:
                owner = "the rest" if word is None else repr(word)
                wanted = "a logit" if self._unit is Unit.LOGITS else "a logarithm of a probability"
                return UsageError(message=f"{message}the number of {owner} is {value!r}, which is not {wanted}")
        if self._unit is Unit.LOGARITHMS and total_far_above_one(numbers):
            what = "the exponentials of its numbers total far more than 1"
            advice = "for logits give logits=True in place of log=True"
            if sum(rests) > 0.0:
                advice = "rest is a logarithm, too: log(0.1)"
            return UsageError(message=f"{message}{what}\n  {advice}")
        return UsageError(message=f"{message}every probability is 0: a distribution needs one above 0")


def perplexity(logits: ArrayLike, targets: ArrayLike, *, ignore_index: int = -100) -> float:
    """Compute the perplexity of classes or tokens: exp of the mean of -ln softmax(logits)[target]; in [1, inf].

    ``logits`` have the shape (…, classes), such as (batch, sequence, vocabulary), and may be log-probabilities;
    ``targets``, the ids of the right classes, have the same shape without the last dimension. Targets that are
    ``ignore_index`` do not count. This is exp of PyTorch's ``cross_entropy``; metrics on hashed words, by
    :class:`Scorer`, have other values.

    Raises UsageError for other shapes, an unknown id, logits that are NaN or inf, and if no target counts.

    >>> round(perplexity([[2.0, 0.0], [0.0, 0.0]], [0, 1]), 3)
    1.507
    """
    values, ids = numbers_of(logits, "the logits"), _ids(targets, "targets")
    if values.shape[:-1] != ids.shape:
        what = f"logits of the shape {values.shape} have targets of the shape {values.shape[:-1]}, not {ids.shape}"
        raise UsageError(message=what)
    shape, size = ids.shape, values.shape[-1]
    values, ids = values.reshape(ids.size, size), ids.ravel()
    rows = np.flatnonzero(ids != ignore_index)
    for row in rows[(ids[rows] < 0) | (ids[rows] >= size)].tolist():
        raise UsageError(message=f"targets[{_place(row, shape)}] is {ids[row]}; {_known_ids(size)}")
    if not len(rows):
        raise UsageError(message="there is no target to score")
    losses = array("d")
    for part in np.array_split(rows, 1 + rows.size * size // WORDS_AT_ONCE):
        with np.errstate(invalid="ignore"):  # NaN is refused below
            block = values[part].astype(np.float64)
            block -= block.max(axis=1, keepdims=True)
            losses.extend(np.log(np.exp(block).sum(axis=1)) - block[np.arange(len(part)), ids[part]])
    for row in rows[np.isnan(losses)].tolist():
        raise UsageError(message=f"logits[{_place(row, shape)}] has a NaN or an inf, or only -inf")
    return float(PERPLEXITY.formula((total(losses),), len(losses)))


def _encoded_words(words: Sequence[str], first_row: int) -> bytes:
    """Encode expected words as lines; raises UsageError for one that is no line, with its row."""
    with suppress(TypeError, UnicodeEncodeError):
        text = "\n".join(words) + "\n"
        if text.count("\n") == len(words):
            return text.encode()
    return b"".join(encoded_text("expected", row, word) for row, word in enumerate(words, first_row))


def numbers_of_lines(lines: Any, first_line: int, count: int) -> Hashes:
    """Return the line numbers of ``count`` rows, modulo 2^32, as they seed the hash; raises UsageError."""
    if lines is None:
        check_line_number(first_line, "first_line")
        return (np.arange(count, dtype=np.uint64) + np.uint64(first_line % (1 << 32))).astype(np.uint32)
    numbers = _ids(lines, "lines").ravel()
    if len(numbers) and numbers.min() < 1:
        raise UsageError(message=f"lines has the number {numbers.min()}; lines are counted from 1")
    return numbers.astype(np.uint32)


def numbers_of(values: Any, what: str) -> Numbers:
    """Return an array of float32 or float64, without a copy where that is possible; raises UsageError."""
    numbers = _array(values, what)
    if numbers.dtype.kind == "O":  # of a DataFrame of nullable numbers
        with suppress(TypeError, ValueError):
            numbers = numbers.astype(np.float64)
    if numbers.dtype.name == "bfloat16":  # of ml_dtypes
        numbers = numbers.astype(np.float32)
    if numbers.dtype.kind not in "fiub" or numbers.dtype.itemsize > 8:
        raise UsageError(message=f"{what} are an array of {numbers.dtype}, not of float32 or float64")
    kind = np.float32 if numbers.dtype.itemsize <= 4 and numbers.dtype.kind == "f" else np.float64
    return numbers.astype(kind, copy=False)


def _array(values: Any, what: str) -> NDArray[Any]:
    try:
        if hasattr(values, "detach"):  # a tensor of PyTorch's, of whose kinds numpy has not all
            values = values.detach().cpu()
            values = values.float() if values.is_floating_point() and values.element_size() < 4 else values
        if hasattr(values, "__dlpack__") and not isinstance(values, np.ndarray):
            with suppress(BufferError):  # bfloat16 of JAX
                return np.from_dlpack(values)
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
    return ", ".join(map(str, np.unravel_index(row, shape)))


def _known_ids(words: int) -> str:
    return f"the ids of {words} words are 0 to {words - 1}"
