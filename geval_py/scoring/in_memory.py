"""Scores without files: of lists of predictions, of distributions in arrays, and of batches as they come.

Lists and arrays take the place of files (:func:`geval_py.reading.sources.memory_file`), so whatever explains a score
can read them again.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

from geval_py.errors import UsageError
from geval_py.reading.config import Task, checked_schemes
from geval_py.reading.files import File
from geval_py.reading.lines import check_line_count, count_lines, first_name
from geval_py.reading.outputs import Output
from geval_py.reading.splits import Split
from geval_py.scoring import evaluate
from geval_py.scoring.metrics import column_of, find_metric
from geval_py.scoring.metrics.base import LineStatistics
from geval_py.scoring.metrics.hashed import encoded_text
from geval_py.scoring.notes import notes_of
from geval_py.scoring.scores import Evaluation
from geval_py.scoring.writing import encoded_lines
from geval_py.tables.numbers import counted
from geval_py.text import shown

if TYPE_CHECKING:
    import pandas as pd

    Inputs: TypeAlias = Iterable[str | Mapping[str, object]] | pd.DataFrame


def score_lists(
    task: Task, predictions: Any, references: Any, inputs: Inputs | None, vocabulary: frozenset[str], name: str
) -> Evaluation:
    """Score predictions against as many references; see :func:`geval_py.score`."""
    schemes = evaluate.select_schemes(task)
    split = split_from_lists(predictions, references, inputs, name, any(metric.is_of_words for _, metric in schemes))
    if is_of_arrays(predictions) and all(metric.bits and not scheme.flags for scheme, metric in schemes):
        evaluation = _score_arrays(split, predictions, references, schemes)
        evaluation.notes = notes_of(evaluation, task)
    else:
        (evaluation,) = evaluate.evaluate_split(task, split, schemes, keep=True, vocabulary=vocabulary)
    if split.input is not None and evaluation.has_scores:
        lines = count_lines(split.input, header=first_name(split.in_header))
        check_line_count("input", split.input.name, lines, split.expected.name, evaluation.file_lines)
    return evaluation


def _score_arrays(split: Split, predictions: Any, references: Any, schemes: Sequence[evaluate.Named]) -> Evaluation:
    """Score arrays by metrics on hashed words without flags; the rows need not be written as lines."""
    from geval_py.scoring.arrays import numbers_of_lines

    numbers, (output,) = numbers_of_lines(None, 1, len(predictions)), split.outputs
    tables = {
        bits: predictions.statistics(references, numbers, bits) for bits in {metric.bits for _, metric in schemes}
    }
    scores = [evaluate.score_of(plan, tables[plan.metric.bits], output) for plan in evaluate.plan_metrics(schemes)]
    return Evaluation(split, output, scores, len(predictions))


def default_metrics(predictions: Any) -> tuple[str, ...]:
    """Return the metric that made predictions of arrays; none for others."""
    return (predictions.scorer.metric.name,) if is_of_arrays(predictions) else ()


def is_of_arrays(predictions: object) -> bool:
    """Whether predictions are :class:`geval_py.scoring.arrays.Predictions`; importing these needs numpy."""
    return hasattr(predictions, "statistics")


def split_from_lists(predictions: Any, expected: Any, inputs: Inputs | None, name: str, of_words: bool) -> Split:
    """Return a split whose files are in memory; the output has the name."""
    if is_of_arrays(predictions):
        expected = predictions.words(expected)
        output = File(name, lambda _: prediction_lines(predictions))
    else:
        output = File(name, data=b"".join(prediction_lines(predictions)))
    header: tuple[str, ...] = ()
    rows: Iterator[bytes] | None = None
    if inputs is not None:
        items: list[Any] = inputs.to_dict("records") if hasattr(inputs, "to_dict") else list(inputs)
        names = dict.fromkeys(chain.from_iterable(item for item in items if isinstance(item, Mapping)))
        header = tuple(map(_cell, names))
        if names:
            cells = ("\t".join(_cell(item.get(name, "")) for name in names) for item in items)
            rows = (f"{row}\n".encode("utf-8", "replace") for row in chain(["\t".join(header)], cells))
        else:
            rows = (encoded_text("inputs", index, item) for index, item in enumerate(items))
    return Split(
        name="expected",
        expected=File("expected", data=b"".join(expected_lines(expected, of_words))),
        outputs=(Output(output, name, parameters={}),),
        input=None if rows is None else File("inputs", data=b"".join(rows)),
        in_header=header,
    )


def prediction_lines(predictions: Any) -> Iterator[bytes]:
    """Return predictions as lines, each ended by LF: distributions, lines, or for other metrics texts and numbers."""
    if is_of_arrays(predictions):
        return (f"{line}\n".encode() for line in predictions)
    if hasattr(predictions, "columns"):
        return encoded_lines(predictions, "predictions")
    if isinstance(predictions, str | bytes | Mapping):
        raise UsageError(message=f"predictions are a list with one for each line, not {shown(predictions)}")
    return encoded_lines((str(one) if isinstance(one, int | float) else one for one in predictions), "predictions")


def expected_lines(expected: Any, of_words: bool) -> Iterator[bytes]:
    """Yield expected words, or texts and numbers, as lines, each ended by LF."""
    if isinstance(expected, str | bytes):
        raise UsageError(message=f"expected words are several, not {shown(expected)}: for one line write [word]")
    return (
        encoded_text("expected", index, str(text) if isinstance(text, int | float) and not of_words else text)
        for index, text in enumerate(expected)
    )


def _cell(value: object) -> str:
    """Write a value as a cell: TABs and line ends become the characters that stand for them in a challenge."""
    return str(value).replace("\t", "\\t").replace("\r", "").replace("\n", "\\n")


# A metric that is fed piece by piece


def metric(name: str, *, vocabulary: Iterable[str] = (), tokenizer: str | None = None) -> Accumulator:
    """Return an accumulator of a metric: update it with predictions, then compute the score.

    ``name`` is a metric as in config.txt; ``vocabulary`` is for metrics on exact words. Raises UsageError for a
    metric that compares inputs or selects lines, and SchemeError.

    >>> perplexity = metric("PerplexityHashed")
    >>> perplexity.update([{"the": 0.5, "a": 0.5}], ["a"])
    >>> perplexity.compute()
    2.0
    """
    return Accumulator(name, vocabulary=vocabulary, tokenizer=tokenizer)


class Accumulator:
    """A metric and the statistics of all lines so far. Made by :func:`metric`.

    Sums are exact: the score has the same digits whatever the order of the lines, and from however many processes
    accumulators are added up. ``len`` is the number of lines. Pickled, it keeps the lines' statistics.
    """

    def __init__(self, name: str, *, vocabulary: Iterable[str] = (), tokenizer: str | None = None) -> None:
        schemes = checked_schemes([name])
        if len(schemes) != 1:
            raise UsageError(message=f"`{name}` names {len(schemes)} metrics: make one accumulator for each")
        scheme, self.metric = schemes[0], find_metric(schemes[0].metric)
        if self.metric.needs_input or scheme.selecting_flags:
            what = "selects lines" if scheme.selecting_flags else "compares lines of the input"
            raise UsageError(message=f"{name} {what}: score all lines at once, with evaluate(…, inputs=…)")
        self.name, self._tokenizer = name, tokenizer
        scheme = scheme._replace(tokenizer=tokenizer) if self.metric.is_tokenised else scheme
        self._vocabulary = frozenset(vocabulary)
        self._column = column_of(self.metric, self._vocabulary, evaluate.preparation_for(scheme))
        self.reset()

    def reset(self) -> None:
        """Forget all lines."""
        self._statistics, self._lines = LineStatistics(), array("q")

    def update(self, predictions: Any, expected: Any, lines: int | Iterable[int] | None = None) -> None:
        """Add lines: predictions and as many expected words or texts, as :func:`geval_py.evaluate` takes them.

        ``lines`` are the line numbers, which seed the hash: the number of the first line, or one for each. By default
        they go on after the greatest so far. If there is an error, nothing is added: UsageError, MalformedLineError
        with the line's number, and LineCountError.
        """
        if lines is None:
            lines = max(self._lines, default=0) + 1
        is_scored_as_arrays = is_of_arrays(predictions) and self.metric.bits is not None
        outputs = [] if is_scored_as_arrays else list(prediction_lines(predictions))
        count = len(predictions if is_scored_as_arrays else outputs)
        numbers = array("q", range(lines, lines + count) if isinstance(lines, int) else map(int, lines))
        if len(numbers) != count:
            raise UsageError(message=f"{count} predictions, but {len(numbers)} line numbers")
        if count and min(numbers) < 1:
            raise UsageError(message=f"lines has the number {min(numbers)}; lines are counted from 1")
        if is_scored_as_arrays:
            from geval_py.scoring.arrays import numbers_of_lines

            added = predictions.statistics(expected, numbers_of_lines(numbers, 1, count), self.metric.bits)
        else:
            words = predictions.words(expected) if is_of_arrays(predictions) else expected
            answers = list(expected_lines(words, self.metric.is_of_words))
            if len(answers) != count:
                raise UsageError(
                    message=f"{counted(count, 'prediction')}, but {counted(len(answers), 'expected word')}"
                )
            added = LineStatistics()
            first = 0
            for place in range(1, count + 1):  # of consecutive numbers together
                if place == count or numbers[place] != numbers[place - 1] + 1:
                    run = b"".join(outputs[first:place]), b"".join(answers[first:place])
                    added.extend(self._column.statistics(*run, numbers[first]))
                    first = place
        if numbers:
            self._statistics.extend(added)
            self._lines.extend(numbers)

    def compute(self) -> float:
        """Compute the score of all lines so far; raises UsageError if there is none."""
        if not self._lines:
            raise UsageError(message=f"{self.name} has no lines yet: update it with predictions")
        statistics = self._statistics
        if self.metric.measure.corpus_score is not None:  # a function of all lines at once may depend on their order
            statistics = statistics.only(sorted(range(len(self)), key=self._lines.__getitem__))
        return self.metric.value(statistics)

    def __len__(self) -> int:
        return len(self._lines)

    def __add__(self, other: Accumulator) -> Accumulator:
        """Return an accumulator with the lines of both; raises UsageError for another metric."""
        if not isinstance(other, Accumulator):
            return NotImplemented
        mine, theirs = ((one.name, one._vocabulary, one._tokenizer) for one in (self, other))
        if mine != theirs:
            raise UsageError(message=f"accumulators of two metrics cannot be added: {self.name} and {other.name}")
        both = Accumulator(self.name, vocabulary=self._vocabulary, tokenizer=self._tokenizer)
        for one in filter(len, (self, other)):
            both._statistics.extend(one._statistics)
            both._lines.extend(one._lines)
        return both

    def __repr__(self) -> str:
        return f"<Accumulator of {self.name}: {counted(len(self), 'line')}>"
