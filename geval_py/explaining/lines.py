"""The lines to look at: the worst and the best, each with its gap in its context and what was guessed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, repeat
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from geval_py.explaining.outcomes import Codes, Floats, Outcome, Outcomes, distribution_at, guess_of, prepared_items
from geval_py.explaining.worst_features import STYLES, Document
from geval_py.reading.features import OUTPUT, Fields
from geval_py.reading.items import column_names
from geval_py.reading.wordprobs import NUMBER
from geval_py.tables.escapes import terminal_text
from geval_py.tables.numbers import plain
from geval_py.tables.table import Column, Table, plain_table
from geval_py.tables.terminals import PLAIN
from geval_py.text import visible

if TYPE_CHECKING:
    from geval_py.reading.features import Field, Tokens
    from geval_py.reading.items import ScoredItem
    from geval_py.scoring.scores import ScoredOutput


WORST, BEST = 300, 100
GUESSES = 5
CONTEXT = 72  # characters on each side of a gap


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A line: its number in the file, its loss in nats, the texts around its gap, the answer, what was guessed.

    ``about`` are the other columns of the input. ``listed`` is the mass of the expected word, None where it was not
    in the list; ``guesses`` are the words with the greatest masses, and these; ``rest`` is the mass of all others.
    """

    number: int
    loss: float
    about: tuple[str, ...]
    before: str
    expected: str
    after: str
    outcome: Outcome
    listed: float | None
    guesses: tuple[tuple[str, float], ...]
    rest: float


def worst_and_best(losses: Floats, confidences: Floats, worst: int = WORST, best: int = BEST) -> Codes:
    """Give the places of the lines to show, by falling loss; of equal ones the more confident guess is first.

    >>> worst_and_best(np.array([1.0, 2.0, 2.0, 3.0]), np.array([0.5, 0.1, 0.9, 0.5]), worst=2, best=1).tolist()
    [3, 2, 0]
    """
    order = np.lexsort((-confidences, -losses))
    return order if len(order) <= worst + best else np.concatenate([order[:worst], order[len(order) - best :]])


def examples_of(evaluation: ScoredOutput, losses: Floats, outcomes: Outcomes) -> list[Example]:
    """Give the 300 lines with the greatest losses and the 100 with the least, by falling loss."""
    chosen = worst_and_best(losses, outcomes.confidences)
    keep = np.zeros(len(losses), np.bool_)
    keep[chosen] = True
    items = dict(zip(np.flatnonzero(keep).tolist(), compress(prepared_items(evaluation), keep), strict=True))
    numbers = evaluation.line_numbers or range(1, len(losses) + 1)
    return [_example(numbers[place], float(losses[place]), items[place]) for place in chosen.tolist()]


def _example(number: int, loss: float, item: ScoredItem) -> Example:
    distribution = distribution_at(item.output)
    guess = guess_of(distribution, item.expected)
    about, before, after = in_context(item.input)
    masses = {} if distribution is None else distribution.masses
    guesses = sorted(masses.items(), key=lambda pair: (pair[1], pair[0]), reverse=True)[:GUESSES]
    return Example(
        number=number,
        loss=loss,
        about=about,
        before=before,
        expected=item.expected,
        after=after,
        outcome=guess.outcome(item.expected),
        listed=guess.listed,
        guesses=tuple(guesses),
        rest=guess.rest,
    )


def in_context(line: str) -> tuple[tuple[str, ...], str, str]:
    r"""Part an input line: the columns before the last two, the end of the last but one, the beginning of the last.

    A line of one column stands before the gap. The two characters ``\n``, which stand for a line end, become ⏎.

    >>> in_context("1901\tin\\nthe\tof may")
    (('1901',), 'in ⏎ the', 'of may')
    """
    *about, before, after = line.split("\t") if "\t" in line else (line, "")
    before, after = (text.replace("\\n", " ⏎ ") for text in (before, after))
    head = before if len(before) <= CONTEXT else f"…{before[-CONTEXT:]}"
    tail = after if len(after) <= CONTEXT else f"{after[:CONTEXT]}…"
    return tuple(about), head, tail


# The lines of an output, each with its score, and what another output made of them.


class Line(NamedTuple):
    """A scored line: its number in the file, from 1, the first metric's score and loss, its texts.

    The loss is None where the metric is made from other statistics.
    """

    number: int
    score: float
    loss: float | None
    item: ScoredItem


class LineDifference(NamedTuple):
    """A line in two outputs, and its score in the first minus that in the other; NaN where both are infinite."""

    difference: float
    line: Line
    other: Line

    @property
    def differs(self) -> bool:
        """Whether the line differs in both its output and its score."""
        is_number = self.difference == self.difference
        return self.difference != 0 and is_number and self.line.item.output != self.other.item.output


def read_lines(evaluation: ScoredOutput) -> Iterator[Line]:
    """Give the lines that were scored, in order; raises as :meth:`ScoredOutput.read_items`."""
    count, numbers = evaluation.line_count, evaluation.line_numbers
    return map(
        Line,
        range(1, count + 1) if numbers is None else numbers,
        evaluation.each_line_score(),
        evaluation.line_losses if evaluation.scores[0].metric.measure.of_losses else repeat(None),
        evaluation.read_items(),
    )


def read_differences(evaluation: ScoredOutput, other: ScoredOutput) -> Iterator[LineDifference]:
    """Give each line in both outputs; raises as :func:`read_lines` and :meth:`ScoredOutput.check_same_lines`."""
    differences = evaluation.each_score_difference(other)
    return map(LineDifference, differences, read_lines(evaluation), read_lines(other))


# Lines, a row each, as GEval shows them.


AT_A_TIME = 8  # rows that are written at once: few, since a line may have megabytes


def lines_table(lines: Iterable[Line], *, for_terminal: bool = False) -> Table:
    """Make a table with a row a line: score, input, expected, output."""
    rows = ((score, *item) for _, score, _, item in lines)
    return Table(_columns(["input", "expected", "output"], for_terminal), rows, at_a_time=AT_A_TIME)


def marked_table(lines: Iterable[Line], marker: Marker) -> Table:
    """Make the same table with marks on the words, for a terminal."""
    rows = ((score, *marker.item(item)) for _, score, _, item in lines)
    return Table(_columns(["input", "expected", "output"], for_terminal=False), rows, at_a_time=AT_A_TIME)


def differences_table(differences: Iterable[LineDifference], *, for_terminal: bool = False) -> Table:
    """Make a table with a row a line in two outputs: the difference, input, expected, the other's output, this."""
    rows = (
        (difference, line.item.input, line.item.expected, other.item.output, line.item.output)
        for difference, line, other in differences
    )
    return Table(_columns(["input", "expected", "other output", "output"], for_terminal), rows, at_a_time=AT_A_TIME)


def _columns(texts: Iterable[str], for_terminal: bool) -> list[Column]:
    """Give the column of scores, and those of texts: as they stand, or without what a terminal would act on."""
    write = terminal_text if for_terminal else str
    return [Column(name="score", alignment="right", write=plain), *(Column(name=name, write=write) for name in texts)]


# Features, a row each, and marks on the words of lines.


def marks_text() -> str:
    """Say what the marks mean.

    >>> marks_text()
    'bold red p < 0.001, red p < 0.01, yellow p < 0.05'
    """
    return ", ".join(f"{name} p < {below}" for below, name, _ in STYLES)


class Marker:
    """Marks the words of an item whose features have a small p, for a terminal; all else is escaped for it.

    Numbers in an output are not marked: they are its probabilities, not words.
    """

    def __init__(self, p_values: Mapping[str, float], fields: Fields, tokens: Tokens) -> None:
        self._styles = {name: _style(p) for name, p in p_values.items()}
        self._fields, self._tokens = fields, tokens

    def item(self, item: ScoredItem) -> Sequence[str]:
        """Give an item's input, expected and output, marked; a TAB as ``<tab>``."""
        expected, output, *columns = (self._marked(field, text) for field, text in self._fields.split(item))
        return "<tab>".join(columns), expected, output

    def _marked(self, field: Field, text: str) -> str:
        shown = []
        name = str(field)
        end = 0
        for token in self._tokens(text):
            start = text.find(token, end)
            if start < 0 or (token == "_" and text[end:start].strip(" \t:")):
                continue  # a tokenizer may write a token otherwise than the text does, as a space for one
            is_word = field != OUTPUT or not NUMBER.fullmatch(token)
            style = self._styles.get(f"{name}:{token}", "") if is_word else ""
            shown += [terminal_text(text[end:start]), style, visible(token), PLAIN if style else ""]
            end = start + len(token)
        return "".join([*shown, terminal_text(text[end:])])


def _style(p: float) -> str:
    return next((style for below, _, style in STYLES if p < below), "")


# What the JSON documents of lines and features hold.


def line_documents(lines: Iterable[Line], fields: Fields) -> Iterator[Document]:
    """Give a document a line: its number, score, loss and texts, those of the input by the columns' names."""
    for line in lines:
        yield {
            "line": line.number,
            "score": line.score,
            "loss": line.loss,
            "input": _input(line.item, fields),
            "expected": line.item.expected,
            "output": line.item.output,
        }


def difference_documents(differences: Iterable[LineDifference], fields: Fields) -> Iterator[Document]:
    """Give a document a line in two outputs, with the score, the loss and the output of both."""
    for difference, line, other in differences:
        yield {
            "line": line.number,
            "difference": difference,
            "score": line.score,
            "loss": line.loss,
            "other_score": other.score,
            "other_loss": other.loss,
            "input": _input(line.item, fields),
            "expected": line.item.expected,
            "output": line.item.output,
            "other_output": other.item.output,
        }


def _input(item: ScoredItem, fields: Fields) -> dict[str, str]:
    return {field.column_name: text for field, text in fields.split(item) if field.is_column}


# Tables for programs, as ``--format csv`` writes them: numbers with all their digits, the input's columns apart.


_FIGURES = ("line", "difference", "score", "loss", "other_score", "other_loss")
_TEXTS = ("expected", "output", "other_output")
OWN_COLUMNS = {*_FIGURES, *_TEXTS}  # what no column of the input is called


def _input_columns(evaluation: ScoredOutput) -> list[str]:
    return column_names(evaluation.input_width(), evaluation.split.in_header, OWN_COLUMNS)


def _figures(row: LineDifference) -> tuple[float | None, ...]:
    return row.difference, row.line.score, row.line.loss, row.other.score, row.other.loss


def _texts(line: Line, columns: Sequence[str]) -> list[str | None]:
    """Give the columns of a line's input, None for one that it has not, and the expected line."""
    found: list[str | None] = list(line.item.input.split("\t")) if columns else []
    return [*found, *[None] * (len(columns) - len(found)), line.item.expected]


def line_records(lines: Iterable[Line], evaluation: ScoredOutput) -> Table:
    """Make a table with a row a line of an evaluation."""
    columns = _input_columns(evaluation)
    rows = ([line.number, line.score, line.loss, *_texts(line, columns), line.item.output] for line in lines)
    return plain_table(["line", "score", "loss", *columns, "expected", "output"], rows)


def difference_records(differences: Iterable[LineDifference], evaluation: ScoredOutput) -> Table:
    """Make a table with a row a line of an evaluation, and of another output."""
    columns = _input_columns(evaluation)
    rows = (
        [row.line.number, *_figures(row), *_texts(row.line, columns), row.line.item.output, row.other.item.output]
        for row in differences
    )
    return plain_table([*_FIGURES, *columns, *_TEXTS], rows)
