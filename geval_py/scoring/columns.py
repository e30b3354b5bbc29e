"""How confident an output line is of its guesses, by GEval's measure (its module Confidence)."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import replace
from math import prod

from geval_py.errors import MalformedLineError, SchemeError, UsageError
from geval_py.reading.features import Fields, ItemFilter, parse_filter
from geval_py.reading.items import InputReader, ScoredItem
from geval_py.reading.lines import decode_lines
from geval_py.reading.schemes import EvaluationScheme
from geval_py.reading.wordprobs import NUMBER
from geval_py.scoring.metrics import LineStatistics, Metric, column_of, find_metric
from geval_py.scoring.metrics.rows import InputColumn, PreparedColumn
from geval_py.scoring.scores import MetricScore, NoScore
from geval_py.text import split_words, visible
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TypeAlias

    from geval_py.reading.items import Texts
    from geval_py.reading.outputs import Output
    from geval_py.reading.preparation import Preparation
    from geval_py.reading.schemes import Flag
    from geval_py.reading.splits import Split, Task
    from geval_py.scoring.blocks import Block, Scorer
    from geval_py.scoring.metrics.base import Column
    from geval_py.scoring.parallel import Progress


def line_confidence(text: str) -> float:
    """Give the geometric mean of the probabilities in a line of ``label:p``, in [0, 1]; 1 of an empty line.

    A number counts if it has a point and is in [0, 1]; another word, and the rest, counts as 1. The numbers are taken
    as they are written, and multiplied from left to right: very many of them may come to 0.

    >>> line_confidence("a:0.5 b:0.125"), line_confidence("a:1 the:-0.5 :0.1")
    (0.25, 1.0)
    """
    words = split_words(text)
    return prod(map(_probability, words)) ** (1 / len(words)) if words else 1.0


def _probability(word: str) -> float:
    label, _, number = word.rpartition(":")
    if not label or "." not in number or not NUMBER.fullmatch(number):
        return 1.0
    value = float(number)
    return value if 0 <= value <= 1 else 1.0


# The lines that a metric's flags select, such as ``LogLossHashed:f<in[Year]:1901>`` and ``LogLossHashed:p<50>``.


MOST_REMEMBERED = 5_000  # items without the feature, to find out what was meant instead


class Selection:
    """The selected lines of an output and their expected words, and the lines' numbers in the file, from 1.

    A ``preparation`` is what is done to expected lines and outputs before they are looked at; what is scored, the
    metric's column prepares itself. With a percentage (the flag ``p``) only that part of the lines is kept, those
    with most confidence, in this order, and of equal ones the first; call :meth:`finish` once all are added.
    """

    def __init__(
        self, scheme: EvaluationScheme, header: tuple[str, ...], preparation: Preparation | None = None
    ) -> None:
        self._scheme = scheme
        self._preparation = preparation
        try:
            self.filter: ItemFilter = parse_filter(scheme.filters, Fields(header))
        except UsageError as error:
            raise SchemeError(scheme=scheme.text, message=error.message) from error
        self.line_numbers: array[int] = array("q")
        self._inputs: list[str] = []
        self._outputs: list[str] = []
        self._expected: list[str] = []
        self._confidences = array("d")
        self._others: list[ScoredItem] = []

    def add(self, first_line: int, texts: Sequence[tuple[str, str, str]]) -> None:
        """Take those of the items, which stand on the lines from ``first_line``, that have the features.

        ``texts`` are an item's input, expected line and output.
        """
        items = [self._prepared(item) for item in texts]
        for line, (item, (text, expected, output)) in enumerate(zip(items, texts, strict=True), first_line):
            if self.filter.selects(item):
                self.line_numbers.append(line)
                self._inputs.append(text)
                self._outputs.append(output)
                self._expected.append(expected)
                if self._scheme.percentage is not None:
                    self._confidences.append(line_confidence(item.output))
        if not self.line_numbers and len(self._others) < MOST_REMEMBERED:
            self._others.extend(items)

    def _prepared(self, texts: tuple[str, str, str]) -> ScoredItem:
        if self._preparation is None:
            return ScoredItem._make(texts)
        text, expected, output = texts
        return ScoredItem(text, self._preparation(expected), self._preparation(output))

    def finish(self) -> None:
        """Keep the lines with most confidence, and put them in order, where a percentage of them is asked for."""
        if self._scheme.percentage is None:
            return
        confidences = self._confidences
        kept = math.ceil(self._scheme.percentage * len(confidences) / 100)
        order = sorted(range(len(confidences)), key=lambda n: -confidences[n])[:kept]
        self.line_numbers = array("q", (self.line_numbers[n] for n in order))
        self._inputs = [self._inputs[n] for n in order]
        self._outputs = [self._outputs[n] for n in order]
        self._expected = [self._expected[n] for n in order]

    def statistics(self, column: Column, output_path: str, expected_path: str) -> LineStatistics:
        """Score the selected lines; raises SchemeError if there is none, and MalformedLineError."""
        if not self.line_numbers:
            raise self._nothing_found(output_path)
        try:
            return beside_input(column, self._inputs).statistics(_block(self._outputs), _block(self._expected), 1)
        except MalformedLineError as error:
            error.line = self.line_numbers[error.line - 1]
            error.path = output_path if error.role == "output" else expected_path
            raise

    def _nothing_found(self, output_path: str) -> SchemeError:
        path = output_path if self.filter.is_of_outputs else ""
        return SchemeError(scheme=self._scheme.text, message=self.filter.nothing_found(self._others), path=path)


def beside_input(column: Column, inputs: Sequence[str]) -> Column:
    """Give a column that needs the lines of the input these lines, prepared as the others are; others as they are."""
    if isinstance(column, PreparedColumn):
        return replace(column, column=beside_input(column.column, list(map(column.preparation, inputs))))
    return replace(column, inputs=tuple(inputs)) if isinstance(column, InputColumn) else column


def _block(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


# Which scores are wanted of a task: evaluation schemes, each with its metric.


def select_schemes(task: Task) -> list[Named]:
    """Give the schemes to score with and their metrics; raises SchemeError, UsageError.

    The task's tokenizer becomes that of the schemes whose metric is tokenised.
    """
    schemes = [_with_metric(scheme, task.tokenizer) for scheme in task.schemes()]
    if not schemes:
        raise UsageError(message="no metric given, use", arguments=("metrics",))
    return [_named(name, schemes) for name in task.select_metrics] or schemes


def _with_metric(scheme: EvaluationScheme, tokenizer: str | None) -> Named:
    metric = find_metric(scheme.metric)
    return (scheme.replace(tokenizer=tokenizer) if metric.is_tokenised else scheme), metric


def _named(name: str, schemes: Sequence[Named]) -> Named:
    """Give the first scheme whose score is shown under a name; raises UsageError."""
    for named in schemes:
        if shown_name(*named) == name:
            return named
    names = visible(", ".join(shown_name(*named) for named in schemes))
    raise UsageError(message=f"Cannot find metric named '{visible(name)}'\n  there are {names}")


# What metrics are made from: columns of statistics, of all lines or of some, read in one pass over the files.


Named: TypeAlias = "tuple[EvaluationScheme, Metric]"  # a scheme, and its metric

# Which lines are scored: the flags that select them, and what is done to lines before these flags look at them.
Choice: TypeAlias = "tuple[tuple[Flag, ...], Preparation | None]"
Key: TypeAlias = "tuple[Choice | None, Column]"  # what a metric is made from: the lines (None: all), and the column
Found: TypeAlias = "LineStatistics | SchemeError"  # the statistics, or why there are none of an output


def key_of(named: Named, vocabulary: frozenset[str], raw_filters: bool) -> Key:
    """Tell what a metric is made from; with ``raw_filters``, the flags that select look at lines as they are.

    A metric that needs the input is made from lines that are collected first, as those are that flags select.
    """
    scheme, metric = named
    preparation = preparation_for(scheme)
    collects = scheme.selecting_flags or metric.needs_input
    choice = (scheme.selecting_flags, None if raw_filters else preparation) if collects else None
    return choice, column_of(metric, vocabulary, preparation)


def shown_name(scheme: EvaluationScheme, metric: Metric) -> str:
    """Give the name under which a scheme's score is shown."""
    if any(flag.letter == "N" for flag in scheme.flags):
        return scheme.name
    return f"{metric.name}:{scheme.flag_text}" if scheme.flags else metric.name


def statistics_of_selected(
    selections: Mapping[Choice, Selection], keys: Sequence[Key], split: Split, output: Output
) -> dict[Key, Found]:
    """Score the lines that were selected; where there is none of this output, give the error that says so.

    Raises SchemeError where there can be none of any output, and MalformedLineError.
    """
    found: dict[Key, Found] = {}
    for choice, column in dict.fromkeys(keys):
        if choice is None:
            continue
        try:
            found[choice, column] = selections[choice].statistics(column, output.path, split.expected)
        except SchemeError as error:
            if error.path != output.path:
                raise
            found[choice, column] = error
    return found


def results_of(
    schemes: Sequence[Named], keys: Sequence[Key], found: Mapping[Key, Found], selections: Mapping[Choice, Selection]
) -> list[MetricScore | NoScore]:
    """Give each metric's score from its statistics; or the error that stands in their place."""
    return [_result(named, key, found[key], selections) for named, key in zip(schemes, keys, strict=True)]


def _result(named: Named, key: Key, found: Found, selections: Mapping[Choice, Selection]) -> MetricScore | NoScore:
    scheme, metric = named
    choice, _ = key
    if isinstance(found, SchemeError):
        return NoScore(name=shown_name(scheme, metric), metric=metric, error=found)
    return MetricScore(
        name=shown_name(scheme, metric),
        value=metric.value(found),
        metric=metric,
        scheme=scheme,
        statistics=found,
        line_numbers=None if choice is None else selections[choice].line_numbers,
    )


class Reading(Value):
    """What is read side by side, and what is made of it: columns of all lines, and lines selected for later."""

    scorer: Scorer
    inputs: InputReader | None
    columns: tuple[Column, ...]
    selections: tuple[Selection, ...]

    @classmethod
    def of(
        cls,
        scorer: Scorer,
        inputs: InputReader | None,
        columns: tuple[Column, ...],
        selections: Iterable[Selection],
    ) -> Reading:
        """Put together what is read and what is made of it."""
        return cls(scorer=scorer, inputs=inputs, columns=columns, selections=tuple(selections))

    def score(self, texts: Texts | None, progress: Progress | None) -> tuple[dict[Key, LineStatistics], int]:
        """Read all, in blocks: score the columns, select lines, and keep the texts where that is asked for.

        Gives the statistics of the columns, and the number of lines that were read.
        """
        statistics: dict[Column, LineStatistics] = {}
        lines = 0
        for block, scored in self.scorer.scored(progress):
            for column, of_block in zip(self.columns, scored, strict=True):
                if column in statistics:
                    statistics[column].extend(of_block)
                else:
                    statistics[column] = of_block
            lines += block.lines
            if self.selections:
                self._select(block)
            if texts is not None:
                texts.outputs.add(block.outputs)
                texts.expected.add(block.expected)
        if self.inputs is not None:
            self.inputs.check_end()
        for selection in self.selections:
            selection.finish()
        return {(None, column): of_lines for column, of_lines in statistics.items()}, lines

    def _select(self, block: Block) -> None:
        outputs, expected = decode_lines(block.outputs), decode_lines(block.expected)
        inputs = [""] * len(outputs) if self.inputs is None else self.inputs.take(len(outputs))
        items = list(zip(inputs, expected, outputs, strict=True))
        for selection in self.selections:
            selection.add(block.first_line, items)


def selections_of(schemes: Sequence[Named], keys: Sequence[Key], split: Split) -> dict[Choice, Selection]:
    """Give the lines to select for schemes that choose some; who has none does not wait for the import."""
    if not any(choice for choice, _ in keys):
        return {}
    return {
        choice: Selection(scheme, split.in_header, choice[1])
        for (scheme, _), (choice, _) in zip(schemes, keys, strict=True)
        if choice is not None
    }


def preparation_for(scheme: EvaluationScheme) -> Preparation | None:
    """Give what a scheme's text flags and tokenizer do to a line; who has none does not wait for the import."""
    if not scheme.changes_lines:
        return None
    from geval_py.reading.preparation import preparation_of

    return preparation_of(scheme)
