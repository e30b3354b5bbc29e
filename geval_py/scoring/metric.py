"""A metric that can be called, as scikit-learn's, and fed batch by batch, as torchmetrics': :class:`Metric`."""

from __future__ import annotations

from array import array
from copy import copy
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from geval_py.errors import UsageError
from geval_py.reading.config import checked_schemes
from geval_py.reading.schemes import checked_tokenizer
from geval_py.scoring.arrays import Losses, Predictions, Vocabulary, check_counts, numbers_of_lines
from geval_py.scoring.encoding import encoded_texts, reference_texts
from geval_py.scoring.evaluate import column_of, find_metric, preparation_for
from geval_py.scoring.metrics.base import LineStatistics
from geval_py.scoring.writing import holds_numbers, is_predictions, prediction_lines, predictions_of, refuse_unused
from geval_py.text import counted, shown

if TYPE_CHECKING:
    from geval_py.scoring.arrays import Arrays, NumberOptions, VocabularyLike
    from geval_py.scoring.kernel.packed_words import Ids


class Metric:
    """A metric, which scores predictions without files: all at once when called, or batch by batch.

    ``name`` is a metric as in config.txt. ``vocabulary`` has the words of the columns of arrays, and for metrics on
    exact words those that a model may know: a sequence of words, where the place of a word is its id, or a mapping
    from words to their ids, 0, 1, 2 and so on, such as ``tokenizer.get_vocab()``. With ``duplicates="sum"``, a word
    that is there twice has the sum of both probabilities; otherwise this is an error. ``threads`` score arrays at
    once, by default one a core. ``tokenizer`` is for metrics of texts, such as BLEU.

    *Predictions* are lines of an output, distributions as :func:`geval_py.format_line` takes them, arrays or what
    :meth:`predictions` returns, or for other metrics texts or numbers. *References* are as many words or texts or,
    with a vocabulary, an array of ids of words. ``log``, ``logits`` and ``rest`` are as for :meth:`predictions`.
    ``lines`` are the line numbers, which seed the hash: the number of the first line, or one for each.

    ``unit`` is the unit of the score, ``direction`` says which scores are better, "higher" or "lower", and
    ``summary`` what it measures. ``len`` is the number of lines that :meth:`update` has added. Their statistics are
    kept, also when a metric is pickled. Sums are exact: the score has the same digits whatever the order of the
    lines, and from however many processes metrics are added up by ``+``.

    Raises SchemeError for an unknown metric, and UsageError for a metric that compares inputs or selects lines, for
    an argument without effect, and for words that an output cannot hold.

    >>> perplexity = Metric("PerplexityHashed", vocabulary=["the", "a"])
    >>> round(perplexity([[0.5, 0.25]], ["the"]), 3)
    1.999
    >>> perplexity.update(["the:0.5 a:0.5"], ["a"])
    >>> perplexity.compute()
    2.0
    """

    def __init__(
        self,
        name: str,
        *,
        vocabulary: VocabularyLike | None = None,
        duplicates: Literal["error", "sum"] = "error",
        threads: int | None = None,
        tokenizer: str | None = None,
    ) -> None:
        if not isinstance(name, str):
            raise UsageError(f"a metric is a name, such as 'PerplexityHashed', not {shown(name)}")
        schemes = checked_schemes([name])
        if len(schemes) != 1:
            raise UsageError(f"`{name}` names {len(schemes)} metrics: make one Metric for each")
        scheme, self._metric = schemes[0], find_metric(schemes[0].metric)
        if self._metric.needs_input or scheme.selecting_flags:
            what = "selects lines" if scheme.selecting_flags else "compares lines of the input"
            raise UsageError(f"{name} {what}: score all lines at once, with score(…, inputs=…)")
        has_words = self._metric.is_of_words or self._metric.has_entries or self._metric.name == "Accuracy"
        refuse_unused(
            name,
            vocabulary=vocabulary is not None and not has_words,
            duplicates=vocabulary is None and duplicates != "error",
            threads=threads is not None and self._metric.bits is None,
            tokenizer=tokenizer is not None and not self._metric.is_tokenised,
        )
        if tokenizer is not None:
            scheme = scheme._replace(tokenizer=checked_tokenizer(tokenizer))
        self.name, self._threads, measure = name, threads, self._metric.measure
        self.unit, self.direction, self.summary = measure.unit, measure.direction, self._metric.summary
        self._vocabulary = None if vocabulary is None else Vocabulary.of_columns(vocabulary, duplicates)
        words = frozenset(() if self._vocabulary is None else self._vocabulary.words)
        self._column = column_of(self._metric, words, preparation_for(scheme))
        self._takes_arrays = self._metric.bits is not None and not scheme.changes_lines
        self.reset()

    def __repr__(self) -> str:
        return f"<Metric {self.name}: {self.unit}, {self.direction} is better; {counted(len(self), 'line')}>"

    def __call__(
        self,
        predictions: Any,
        references: Any,
        *,
        lines: ArrayLike = 1,
        **numbers: Unpack[NumberOptions],
    ) -> float:
        """Compute the score of predictions; :meth:`update` and :meth:`compute` know nothing of them.

        Raises UsageError, MalformedLineError with the line's number, and what :meth:`predictions` raises.
        """
        statistics, line_numbers, _ = self._statistics_of(predictions, references, lines, **numbers)
        if not len(line_numbers):
            raise UsageError("there is no line to score")
        return self._metric.value(statistics)

    def losses(
        self,
        predictions: Any,
        references: Any,
        *,
        lines: ArrayLike = 1,
        **numbers: Unpack[NumberOptions],
    ) -> Losses:
        """Compute the loss of each line, in [0, inf], in nats: -ln of the probability of the right word's bucket.

        They have the shape of arrays without its last dimension: (lines,) or (batch, sequence). Raises as a call
        does, and UsageError for a metric that is not made from losses.
        """
        statistics, _, shape = self._statistics_of(predictions, references, lines, **numbers)
        return np.array(self._metric.losses(statistics)).reshape(shape)

    def update(
        self,
        predictions: Any,
        references: Any,
        *,
        lines: ArrayLike | None = None,
        **numbers: Unpack[NumberOptions],
    ) -> None:
        """Add lines; by default their numbers go on after the greatest so far.

        If there is an error, nothing is added; raises as a call does.
        """
        first = max(self._lines, default=0) + 1 if lines is None else lines
        added, line_numbers, _ = self._statistics_of(predictions, references, first, **numbers)
        if len(line_numbers):
            self._statistics.extend(added)
            self._lines.frombytes(line_numbers.tobytes())

    def compute(self) -> float:
        """Compute the score of all lines that were added; raises UsageError if there is none."""
        if not self._lines:
            raise UsageError(f"{self.name} has no lines yet: update it with predictions")
        statistics = self._statistics
        if self._metric.measure.corpus_score is not None:  # a function of all lines may depend on their order
            statistics = statistics.only(sorted(range(len(self)), key=self._lines.__getitem__))
        return self._metric.value(statistics)

    def reset(self) -> None:
        """Forget all lines."""
        self._statistics, self._lines = LineStatistics(), array("q")

    def predictions(
        self, arrays: Arrays, *, log: bool = False, logits: bool = False, rest: ArrayLike | None = None
    ) -> Predictions:
        """Return arrays as predictions, which :func:`geval_py.score` and :func:`geval_py.write_output` take.

        ``arrays`` is one of: an array of the shape (lines, words) or (batch, sequence, words), with a column for each
        word of the vocabulary; a DataFrame, whose columns are found by their names, the words; a pair of arrays (ids,
        probabilities) of one shape, whose rows list some words. Arrays are numpy's or anything that numpy can read,
        and tensors of PyTorch on any device. They are float32 or float64, and not copied if each row is contiguous;
        bfloat16 and float16 become float32.

        The numbers are in [0, 1]; with ``log`` they are natural logarithms, possibly -inf; with ``logits``, any
        numbers to which softmax is applied. ``rest`` is the number of all other words, in the same unit: one for all
        rows, or an array with one for each. Without it, other words have what is missing to 1, and with logits
        nothing.

        Raises UsageError for a metric without a vocabulary, for arrays of another shape, and when a row is used that
        has NaN, a number out of range, an unknown id, or no mass.
        """
        made = predictions_of(arrays, self._vocabulary, log=log, logits=logits, rest=rest)
        made.metric = self.name
        return made

    def _statistics_of(
        self, predictions: Any, references: Any, lines: ArrayLike, **numbers: Any
    ) -> tuple[LineStatistics, Ids, tuple[int, ...]]:
        """Score predictions; return also the numbers and the shape of their lines."""
        if hasattr(predictions, "columns") or (self._vocabulary is not None and holds_numbers(predictions)):
            predictions, numbers = self.predictions(predictions, **numbers), {}
        are_arrays = is_predictions(predictions)
        by_kernel = are_arrays and self._takes_arrays
        if by_kernel:
            refuse_unused("Predictions", **numbers)
        outputs = predictions if by_kernel else list(prediction_lines(predictions, **numbers))
        line_numbers = numbers_of_lines(lines, len(outputs))
        shape = predictions.shape if are_arrays else line_numbers.shape
        vocabulary = predictions.vocabulary if are_arrays else self._vocabulary
        if vocabulary is not None:
            references = vocabulary.words_of(references, shape)
        answers = reference_texts(references, are_words=self._metric.is_of_words)
        check_counts(len(outputs), len(answers))
        if by_kernel:
            scored = predictions.statistics(answers, line_numbers, self._metric.bits, self._threads)
            return scored, line_numbers, shape
        scored = LineStatistics()
        runs = [0, *(np.flatnonzero(np.diff(line_numbers) != 1) + 1).tolist(), len(outputs)]  # of consecutive lines
        for first, end in pairwise(runs):
            first_line = int(line_numbers[first]) if end else 1
            run = b"".join(outputs[first:end]), encoded_texts("references", answers[first:end], first)
            scored.extend(self._column.statistics(*run, first_line))
        return scored, line_numbers, shape

    def __len__(self) -> int:
        return len(self._lines)

    def __add__(self, other: Metric) -> Metric:
        """Return a metric with the lines of both; raises UsageError for another metric."""
        if not isinstance(other, Metric):
            return NotImplemented
        if (self.name, self._column) != (other.name, other._column):
            both = f"{self.name} and {other.name}"
            raise UsageError(f"only metrics of one name, vocabulary and tokenizer are added, not {both}")
        summed = copy(self)
        summed.reset()
        for one in filter(len, (self, other)):
            summed._statistics.extend(one._statistics)
            summed._lines.extend(one._lines)
        return summed
