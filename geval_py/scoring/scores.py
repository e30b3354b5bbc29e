"""The scores of one output: metric values, line statistics, the signature, and errors in the place of scores."""

from __future__ import annotations

import math
import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from itertools import compress, islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from geval_py.errors import DataError, MalformedLineError, MissingFileError, SchemeError, UsageError
from geval_py.reading.items import ScoredItem
from geval_py.reading.lines import Text, Texts, check_line_count, read_lines
from geval_py.reading.outputs import Output
from geval_py.reading.schemes import EvaluationScheme
from geval_py.reading.sources import VirtualFile, can_be_reread, state_at
from geval_py.reading.splits import Split
from geval_py.scoring.metrics.base import NOISE, LineStatistics, Metric
from geval_py.text import named, shown, visible
from geval_py.version import __version__

if TYPE_CHECKING:
    from geval_py.reading.features import ItemFilter


# Computes a score's interval, an :class:`geval_py.explaining.significance.Interval`.
IntervalOf: TypeAlias = "Callable[[MetricScore], Any]"


SAMPLED_LINES = 100  # in which the first line far above one is looked for


class MetricScore(NamedTuple):
    """One metric's value on one output.

    ``name`` is the name shown, from the scheme; ``statistics`` are the line statistics that it is made from.
    ``line_numbers`` are the numbers, from 1, of the lines that the scheme's flags select, in scoring order; None for
    all lines. If these select no line, the value is NaN, and there is an ``error``.
    """

    name: str
    value: float
    metric: Metric
    scheme: EvaluationScheme
    statistics: LineStatistics
    line_numbers: array[int] | None = None
    error: SchemeError | None = None

    @property
    def unit(self) -> str:
        """The unit of the value: nats, bits, words, probability or share."""
        return self.metric.measure.unit

    @property
    def direction(self) -> str:
        """Which values are better: "higher" or "lower"."""
        return self.metric.measure.direction

    @property
    def details(self) -> dict[str, Any]:
        """What else belongs to the score: of BLEU its precisions, its brevity penalty and both lengths."""
        return {} if self.error or self.metric.details is None else self.metric.details(self.statistics)

    def greatest_first(self, *, worst: bool) -> bool:
        """Whether the greatest values come first if the worst values, or the best ones, should."""
        return (self.direction == "lower") == worst

    def to_dict(self, interval: IntervalOf | None = None) -> dict[str, Any]:
        """Return what ``--format json`` shows of one metric: its value, or its error.

        It has ``lines`` only if flags select some, a signature only if a library signs the score, and its details.
        """
        document: dict[str, Any] = {"name": self.name, "value": None if self.error else self.value}
        document |= {"unit": self.unit, "direction": self.direction}
        if self.error is not None:
            return document | {"error": error_document(self.error)}
        document |= {"infinite_losses": self.statistics.infinite, **self.details}
        if self.metric.signature is not None:
            document["signature"] = self.metric.signature(self.statistics)
        if self.scheme.selecting_flags:
            document["lines"] = self.statistics.lines
        if interval is not None:
            document["interval"] = interval(self).to_dict()
        return document


class Signature(NamedTuple):
    """Everything that scores depend on: equal signatures mean equal scores. Printed, it is ``key:value|key:value…``.

    ``metrics`` are the evaluation schemes as they were written, ``bits`` their numbers of bits, None for metrics
    without; ``lines`` is the number of lines that the first metric scored. ``expected``, ``output``, ``input`` and
    ``vocabulary`` are SHA-256 digests, in hexadecimal, of the lines read and of the words, and ``header`` of the
    input's columns; None if no metric needs them. ``tokenizer`` is the name of the tokenizer, or None. ``filters`` is
    "raw" if flags selected lines by their unprepared text, and preparation would have changed it. ``library`` has the
    signatures of the libraries that compute scores, or is None. ``version`` is geval-py's.
    """

    metrics: tuple[str, ...]
    bits: tuple[int | None, ...]
    lines: int
    expected: str | None
    output: str | None
    input: str | None = None
    header: str | None = None
    version: str = __version__
    vocabulary: str | None = None
    tokenizer: str | None = None
    filters: str | None = None
    library: str | None = None

    def __str__(self) -> str:
        parts = {"metric": ",".join(self.metrics), "bits": ",".join(str(bits or "-") for bits in self.bits)}
        parts |= {name: getattr(self, name) for name in self._fields[2:]}
        return "|".join(f"{key}:{value}" for key, value in parts.items() if value is not None)


class ScoredOutput:
    """The scores of one output, in the order of the metrics, and its lines; or the error in their place.

    ``file_lines`` is the number of lines of the output, scored or not, and ``input`` the input beside it.
    ``signature`` is None unless it was asked for, since it costs time. ``error`` is that of an output at fault, which
    has no scores, or of the first metric whose filter selects no line; ``results`` are of these metrics too.

    Two are equal if their signatures are, whatever the names of their files; one without a signature equals only
    itself.
    """

    def __init__(
        self,
        *,
        split: Split,
        output: Output,
        input: Text,
        scores: tuple[MetricScore, ...] = (),
        file_lines: int = 0,
        signature: Signature | None = None,
        texts: Texts | None = None,
        results: tuple[MetricScore, ...] = (),
        error: DataError | SchemeError | None = None,
    ) -> None:
        self.split, self.output, self.input, self.file_lines, self.texts = split, output, input, file_lines, texts
        self.scores, self.results, self.signature, self.error = scores, results, signature, error

    @property
    def errors(self) -> list[DataError | SchemeError]:
        """All distinct errors."""
        errors = (self.error, *(result.error for result in self.results))
        return list({str(error): error for error in errors if error is not None}.values())

    @property
    def note_on_numbers(self) -> str | None:
        """How many lines have numbers that are neither probabilities nor logarithms, and advice; None for no line."""
        counts = [(score.statistics.far_above_one, score.statistics.lines) for score in self.scores]
        far, lines = max(counts, default=(0, 0))
        if not far:
            return None
        from geval_py.reading.wordprobs import UNKNOWN_NUMBERS, far_above_one_note, number_advice, parse_line

        path, advice = self.output.path, UNKNOWN_NUMBERS
        if can_be_reread(path):
            # A line that no flag selects may be malformed.
            with suppress(MalformedLineError), closing(read_lines(path, header=self.split.output_header)) as texts:
                heads = map(parse_line, islice(texts, SAMPLED_LINES))
                samples = (one for one in heads if one.is_far_above_one)
                advice = next((number_advice(one.words, one.values) for one in samples), advice)
        return f"{named(path)}: {far_above_one_note(far, lines)}; {advice}"

    @property
    def note_on_no_knowledge(self) -> str | None:
        """That a score of all lines is worse than that of an output that knows nothing; None if none is."""
        for score in self.scores:
            nothing = score.metric.uninformed_value
            if nothing is None or score.line_numbers is not None or score.statistics.infinite:
                continue
            is_worse = (score.value > nothing) == (score.direction == "lower")
            if is_worse and not math.isclose(score.value, nothing):
                figures = f"{score.name} is {score.value:.6g}, and {nothing:.6g} for `:1` on each line"
                note = f"{named(self.output.path)}: {figures}: no guess at all would be better"
                advice = (
                    "\n  the lines may have another order than in.tsv, or words unlike the answers: see geval check"
                )
                return note if score.statistics.far_above_one else note + advice
        return None

    def each_score(self, metrics: int) -> list[MetricScore | None]:
        """Return the score by each metric, None where there is none; ``metrics`` is their number."""
        scores = [None if score.error else score for score in self.results or self.scores]
        return scores or [None] * metrics

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ScoredOutput):
            return NotImplemented
        return self is other or (self.signature is not None and self.signature == other.signature)

    def __hash__(self) -> int:
        return object.__hash__(self) if self.signature is None else hash(self.signature)

    @property
    def line_losses(self) -> array[float]:
        """The losses that the first metric is made from, a value a line: nats (for Accuracy 0 and 1), possibly inf.

        Raises UsageError if it is made from other statistics.
        """
        first = self.scores[0]
        if not first.metric.measure.of_losses:
            names = ", ".join(first.metric.measure.columns)
            raise UsageError(message=f"{first.metric.name} is not made from losses, but from {names}")
        return first.statistics.columns[0]

    @property
    def line_numbers(self) -> array[int] | None:
        """The numbers of the lines that the first metric scored; see :class:`MetricScore`."""
        return self.scores[0].line_numbers

    @property
    def line_count(self) -> int:
        """The number of lines that the first metric scored."""
        return self.scores[0].statistics.lines

    @property
    def out_of_vocabulary(self) -> int:
        """The number of expected words that the vocabulary of a metric on exact words lacks."""
        return max(score.statistics.out_of_vocabulary for score in self.scores)

    @property
    def score(self) -> float:
        """The value of the first metric."""
        return self.scores[0].value

    def line_scores(self) -> list[float]:
        """Compute the first metric's value of each line alone."""
        return list(self.scores[0].metric.line_scores(self.scores[0].statistics))

    def read_items(self) -> Iterator[ScoredItem]:
        """Yield each scored line's input, expected word and output; the input is "" if there is no input file.

        Raises UsageError if the texts were not kept, and LineCountError if the input has another number of lines.
        """
        return map(ScoredItem, *self.scored_sides())

    def input_width(self) -> int:
        """Return the number of columns of the input's widest scored line; 0 if there is no input file."""
        if self.split.input is None:
            return 0
        return max((text.count("\t") + 1 for text, _, _ in self.read_items()), default=0)

    def kept_texts(self) -> Texts:
        if self.texts is None:
            raise UsageError(message="the texts were not kept: evaluate(…, keep_texts=True)")
        return self.texts

    def scored_sides(self, chosen: Sequence[int] | None = None) -> Iterator[Iterator[str]]:
        """Yield the scored lines of the input, the answers and the output, or some; raises as :meth:`read_items`.

        ``chosen`` are flags of the scored lines. An input that is not there has "" without end.
        """
        outputs, expected = self.kept_texts()
        self.input.check_lines(self.file_lines)
        return (self.scored_lines(text, chosen) for text in (self.input, expected, outputs))

    def scored_lines(self, text: Text, chosen: Sequence[int] | None = None) -> Iterator[str]:
        """Yield the scored lines of a text, or the chosen ones of these, in scoring order."""
        if self.line_numbers is None:
            return text.lines(chosen)
        numbers = self.line_numbers if chosen is None else list(compress(self.line_numbers, chosen))
        is_read = bytearray(self.file_lines)
        for number in numbers:
            is_read[number - 1] = True
        lines = text.lines(is_read)
        if self.scores[0].scheme.percentage is None:
            return lines
        return map(dict(zip(sorted(numbers), lines, strict=False)).__getitem__, numbers)

    def select(self, filter: ItemFilter) -> list[bool]:
        """Return for each scored line whether it has the features of a filter.

        Raises UsageError if none has, or if the filter needs an input that lines in memory lack; MissingFileError if
        the file is not there.
        """
        if filter.needs_input and self.split.input is None:
            what, place = "a feature of the input was asked for", self.split.input_place
            if place:
                raise MissingFileError(what="No file with the input", path=place, hint=what)
            raise UsageError(message=f"{what}, and there is no input: give inputs=…")
        selected = [filter.selects(item) for item in self.read_items()]
        if not any(selected):
            raise UsageError(message=filter.nothing_found(self.read_items()))
        return selected

    def score_differences(self, other: ScoredOutput) -> list[float]:
        """Return each line's score minus the other output's: 0 for rounding noise, NaN where both are infinite.

        Raises as :meth:`check_same_lines`, and UsageError if ``other`` is not an evaluation, but a path for example.
        """
        self.check_same_lines(checked_evaluation(other))
        return [
            0.0 if math.isfinite(one) and math.isclose(one, another, rel_tol=NOISE) else one - another
            for one, another in zip(self.line_scores(), other.line_scores(), strict=True)
        ]

    def check_same_lines(self, other: ScoredOutput) -> None:
        """Raise UsageError if a filter selects other lines of the other output, LineCountError for another number."""
        if other.line_numbers != self.line_numbers:
            both = f"{named(self.output.path)} and {named(other.output.path)}"
            raise UsageError(message=f"the metric's filter selects other lines of {both}: filter by input or answer")
        check_line_count("output", other.output.path, other.line_count, self.output.path, self.line_count)

    def to_dict(self, interval: IntervalOf | None = None) -> dict[str, Any]:
        """Return what ``--format json`` shows of one output, or of its error; values may be inf.

        ``interval`` is a function that computes the interval of a score.
        """
        document: dict[str, Any] = {"file": self.output.name, "parameters": self.output.parameters}
        if self.error is not None and not self.scores:
            return document | {"error": error_document(self.error)}
        return document | {
            "lines": self.line_count,
            "out_of_vocabulary": self.out_of_vocabulary,
            "signature": None if self.signature is None else str(self.signature),
            "metrics": [score.to_dict(interval) for score in self.results or self.scores],
        }


def checked_evaluation(value: object) -> ScoredOutput:
    """Return the evaluation; raises UsageError for another value, such as a path."""
    if not isinstance(value, ScoredOutput):
        raise UsageError(message=f"an evaluation is wanted, as evaluate(…) gives it, not {shown(value)}")
    return value


def checked_evaluations(arguments: Sequence[object], call: str) -> tuple[ScoredOutput, ...]:
    """Return the evaluations that are the arguments of a call, or in the list that is its only argument.

    Raises UsageError for a single evaluation and for other values, and shows the call.
    """
    values: object = arguments[0] if len(arguments) == 1 else arguments
    if isinstance(values, ScoredOutput) or not isinstance(values, Iterable):
        what = "one evaluation" if isinstance(values, ScoredOutput) else shown(values)
        raise UsageError(message=f"{call}(one, other) takes several evaluations or a list of them, not {what}")
    return tuple(map(checked_evaluation, values))


def check_comparable(evaluations: Sequence[ScoredOutput]) -> None:
    """Raise UsageError for evaluations (at least one) with different answers or metrics, LineCountError for lines."""
    first = evaluations[0]
    for other in evaluations[1:]:
        both = f"{named(first.output.path)} and {named(other.output.path)} were scored with different"
        paths = first.split.expected, other.split.expected
        in_memory = [isinstance(path, VirtualFile) for path in paths]
        answers = ""
        if not any(in_memory):
            if os.path.realpath(paths[0]) != os.path.realpath(paths[1]):
                answers = f"{named(paths[0])} and {named(paths[1])}"
        elif not all(in_memory) or state_at(paths[0]) != state_at(paths[1]):
            texts = (one.kept_texts().expected.lines() for one in (first, other))
            pairs = enumerate(zip(*texts, strict=False), 1)  # another number of lines is another error
            answers = next((f"{shown(a)} and {shown(b)} on line {n}" for n, (a, b) in pairs if a != b), "")
        if answers:
            raise UsageError(message=f"{both} answers: {answers}")
        one, another = ((score.metric.name, score.scheme) for score in (first.scores[0], other.scores[0]))
        ways = [
            (name, scheme.text_flags, scheme.tokenizer, scheme.selecting_flags) for name, scheme in (one, another)
        ]
        if ways[0] != ways[1]:
            metrics = f"{one[1].text} and {another[1].text}"
            raise UsageError(message=f"{both} metrics: {visible(metrics)}")
        first.check_same_lines(other)


def error_document(error: DataError | SchemeError) -> dict[str, Any]:
    """Return the error's message and its place; line and column are None if it has none."""
    return {"message": str(error)} | {name: getattr(error, name, None) for name in ("line", "column")}


def head_of(evaluation: ScoredOutput) -> dict[str, Any]:
    """Return what a result of one metric says first: the test set, the metric, its unit and its direction."""
    first = evaluation.scores[0]
    test = evaluation.split.name
    return {"test": test, "metric": first.name, "unit": first.unit, "direction": first.direction}


def signature_lines(signed: Iterable[tuple[str, Signature | str | None]]) -> Iterator[str]:
    """Yield a line with the name and the signature of each output that has one."""
    return (visible(f"{name}: {signature}") for name, signature in signed if signature is not None)


def evaluations_of(
    results: Iterable[ScoredOutput], on_fault: Callable[[DataError | SchemeError], object] | None = None
) -> list[ScoredOutput]:
    """Return the evaluations without those that have an error, with which ``on_fault`` is called.

    Without ``on_fault``, raises the first error, and computes no result after it.
    """
    evaluations = []
    for result in results:
        if result.error is None:
            evaluations.append(result)
        elif on_fault is None:
            raise result.error
        else:
            on_fault(result.error)
    return evaluations
