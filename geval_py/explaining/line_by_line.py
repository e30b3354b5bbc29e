"""Line by line: the scored lines of an output, alone or beside another output's, and marks on their words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, ClassVar, NamedTuple

from geval_py.errors import MalformedLineError, UsageError
from geval_py.reading import features, items, wordprobs
from geval_py.reading.gap_columns import find_contexts
from geval_py.scoring.scores import ScoredOutput, signature_lines
from geval_py.tables import escapes, formats, numbers
from geval_py.tables.layout import GAP_MARK
from geval_py.tables.table import Column, Table, plain_table
from geval_py.text import BOLD_RED, PLAIN, RED, YELLOW, visible

MOST_SHOWN = 1000  # characters of a text that a terminal's row may show
STYLES = ((0.001, "bold red", BOLD_RED), (0.01, "red", RED), (0.05, "yellow", YELLOW))  # of words with p below
FIGURES = ("line", "difference", "score", "loss", "other_score", "other_loss")
TEXTS = ("expected", "output", "other_output")


class Line(NamedTuple):
    """A scored line: its number in the file, from 1, the first metric's score and loss, its texts.

    The loss is None for a metric of other statistics.
    """

    number: int
    score: float
    loss: float | None
    item: items.ScoredItem


class LineDifference(NamedTuple):
    """A line in two outputs, and its score in the first minus its score in the other.

    The difference is NaN if both are infinite, or if a single line has no score.
    """

    difference: float
    line: Line
    other: Line

    @property
    def differs(self) -> bool:
        """Whether both the output and the score differ; as in GEval, lines without a score differ in it."""
        scores_differ = self.difference != 0 and self.line.score != self.other.score
        return scores_differ and self.line.item.output != self.other.item.output


def read_lines(evaluation: ScoredOutput) -> Iterator[Line]:
    """Yield the scored lines in order; raises as :meth:`ScoredOutput.read_items`."""
    every_line = range(1, evaluation.line_count + 1)
    return map(
        Line,
        every_line if evaluation.line_numbers is None else evaluation.line_numbers,
        evaluation.each_line_score(),
        evaluation.line_losses if evaluation.scores[0].metric.measure.of_losses else repeat(None),
        evaluation.read_items(),
    )


def read_differences(evaluation: ScoredOutput, other: ScoredOutput) -> Iterator[LineDifference]:
    """Yield each line in both outputs; raises as :func:`read_lines` and :meth:`ScoredOutput.check_same_lines`."""
    differences = evaluation.each_score_difference(other)
    return map(LineDifference, differences, read_lines(evaluation), read_lines(other))


class _Rows(formats.Listing):
    """Lines, a row each: figures, the columns of the input, texts."""

    __slots__ = ()
    name = "lines"
    figures: ClassVar[tuple[str, ...]]
    texts: ClassVar[tuple[str, ...]]
    evaluation: ScoredOutput

    def rows(self) -> Iterator[tuple[Sequence[float | None], str, Sequence[str]]]:
        raise NotImplementedError

    def mark(self, field: features.Field, text: str) -> str:
        """Escape a text of a field for a terminal, and mark its words if that is wanted."""
        del field
        return escapes.terminal_text(text)

    def text(self, width: int | None = None) -> Iterator[str]:
        """As any listing; but for a terminal's ``width``, each line shows its number, and the gap in its context."""
        return formats.Listing.text(self) if width is None else self._screen().terminal(width)

    def _screen(self) -> Table:
        """Return the table for a terminal: the line's number, a short figure, the context, the answer, the guesses.

        Where lines are no distributions, whole texts stand in place of the context and the guesses.
        """
        metric, header = self.evaluation.scores[0].metric, self.evaluation.split.in_header
        of_words = metric.is_of_words or metric.has_entries
        mark, fields = self.mark, features.Fields(header)
        # Labels are of whole texts. Columns without names have the contexts last, unless the metric reads the last.
        has_contexts = of_words and not metric.has_classes and bool(header or not metric.needs_input)
        left, right = _gap_columns(self.evaluation) if has_contexts else (-1, -1)
        has_gap = max(left, right) >= 0
        names = ["guess" if of_words else "output", "other guess" if of_words else "other output"]

        def cells(text: str, expected: str, outputs: Sequence[str]) -> Iterator[str]:
            columns = [mark(fields.column(n), _near(column, n == left)) for n, column in enumerate(text.split("\t"))]
            if not has_gap:
                yield "<tab>".join(columns)
            elif len(columns) > max(left, right):
                yield GAP_MARK.join(columns[n] if n >= 0 else "" for n in (left, right))
            else:
                yield "<tab>".join(columns) + GAP_MARK
            yield mark(features.EXPECTED, expected[:MOST_SHOWN])
            for output in outputs:
                yield mark(features.OUTPUT, (best_guess(output) if of_words else output)[:MOST_SHOWN])

        columns = [
            Column(name="line", alignment="right", write=str),
            Column(name=self.figures[1], alignment="right", write=numbers.short),
            Column(name="context" if has_gap else "input", write=str, cut="around" if has_gap else "end"),
            *(Column(name=name, write=str) for name in ("expected", *names[: len(self.texts) - 1])),
        ]
        rows = ([*figures[:2], *cells(text, texts[0], texts[1:])] for figures, text, texts in self.rows())
        return Table(columns, rows, droppable=names if has_gap else ())

    def records(self) -> Table:
        own, evaluation = {*FIGURES, *TEXTS}, self.evaluation
        columns = items.column_names(evaluation.input_width(), evaluation.split.in_header, own)
        width = len(columns)

        def cells(text: str) -> list[str | None]:
            found: list[str | None] = list(text.split("\t")) if width else []
            return [*found, *[None] * (width - len(found))]

        rows = ([*figures, *cells(text), *texts] for figures, text, texts in self.rows())
        return plain_table([*self.figures, *columns, *self.texts], rows)

    def documents(self) -> Iterator[dict[str, Any]]:
        fields = features.Fields(self.evaluation.split.in_header)
        for figures, text, texts in self.rows():
            columns = fields.split(items.ScoredItem(text, "", ""))
            yield {
                **dict(zip(self.figures, figures, strict=True)),
                "input": {field.column_name: cell for field, cell in columns if field.is_column},
                **dict(zip(self.texts, texts, strict=True)),
            }


@dataclass(frozen=True, slots=True, kw_only=True)
class LineListing(_Rows):
    """Lines of an evaluation, a row each, in any order: score, input, expected, output.

    For a terminal, texts are escaped or, with a ``marker``, their words are marked.
    """

    figures = ("line", "score", "loss")
    texts = ("expected", "output")
    evaluation: ScoredOutput
    lines: Iterable[Line]
    for_terminal: bool = False
    marker: Marker | None = None

    def table(self) -> Table:
        marked: Callable[[items.ScoredItem], Sequence[str]] = tuple if self.marker is None else self.marker.item
        rows = ((score, *marked(item)) for _, score, _, item in self.lines)
        return _table(["input", "expected", "output"], rows, self.for_terminal and self.marker is None)

    def mark(self, field: features.Field, text: str) -> str:
        return escapes.terminal_text(text) if self.marker is None else self.marker.marked(field, text)

    def rows(self) -> Iterator[tuple[Sequence[float | None], str, Sequence[str]]]:
        for number, score, loss, item in self.lines:
            yield (number, score, loss), item.input, (item.expected, item.output)

    def signatures(self) -> Iterator[str]:
        return signature_lines([self.evaluation])

    def to_dict(self) -> dict[str, Any]:
        return explained_head([self.evaluation])


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceListing(_Rows):
    """Lines of an evaluation beside another, a row each: difference, input, expected, other output, output."""

    figures = FIGURES
    texts = TEXTS
    evaluation: ScoredOutput
    other: ScoredOutput
    differences: Iterable[LineDifference]
    for_terminal: bool = False

    def table(self) -> Table:
        rows = (
            (difference, line.item.input, line.item.expected, other.item.output, line.item.output)
            for difference, line, other in self.differences
        )
        return _table(["input", "expected", "other output", "output"], rows, self.for_terminal)

    def rows(self) -> Iterator[tuple[Sequence[float | None], str, Sequence[str]]]:
        for difference, line, other in self.differences:
            figures = (line.number, difference, line.score, line.loss, other.score, other.loss)
            yield figures, line.item.input, (line.item.expected, line.item.output, other.item.output)

    def signatures(self) -> Iterator[str]:
        return signature_lines([self.evaluation, self.other])

    def to_dict(self) -> dict[str, Any]:
        return explained_head([self.evaluation, self.other])


def _near(text: str, is_left: bool) -> str:
    """Return the part of a text that a terminal's row may show."""
    return text[-MOST_SHOWN:] if is_left else text[:MOST_SHOWN]


def _gap_columns(evaluation: ScoredOutput) -> tuple[int, int]:
    """Return the places of the input's columns with the left and the right context; -1 for one that is not known."""
    names = [items.column_name(evaluation.split.in_header, n) for n in range(evaluation.input_width())]
    try:
        left, right = find_contexts(names)
    except UsageError:
        return -1, -1
    return names.index(left) if left else -1, names.index(right) if right else -1


def best_guess(output: str) -> str:
    """Return the word with the greatest mass in an output line; the line itself if it has no words.

    >>> best_guess("cat:0.2 dog:0.3 :0.5")
    'dog'
    """
    try:
        parsed = wordprobs.parse_line(output)
    except MalformedLineError:  # a line that is well-formed only after a metric's flags
        return output
    masses = wordprobs.distribution_of(parsed.words or (), parsed.values).masses
    return max(masses, key=masses.__getitem__, default=output)


def explained_head(evaluations: Sequence[ScoredOutput]) -> dict[str, Any]:
    """Return the head of a JSON document of lines or features: the first metric, and the outputs."""
    first = evaluations[0]
    score = first.scores[0]
    return {
        "test": first.split.name,
        "metric": score.name,
        "unit": score.unit,
        "direction": score.direction,
        "outputs": [{"file": of.output.name, "signature": of.signature and str(of.signature)} for of in evaluations],
    }


def _table(texts: Sequence[str], rows: Iterable[Sequence[object]], for_terminal: bool) -> Table:
    write = escapes.terminal_text if for_terminal else str
    score = Column(name="score", alignment="right", write=numbers.plain)
    return Table([score, *(Column(name=name, write=write) for name in texts)], rows)


def marks_text() -> str:
    """Explain the marks.

    >>> marks_text()
    'bold red p < 0.001, red p < 0.01, yellow p < 0.05'
    """
    return ", ".join(f"{name} p < {below}" for below, name, _ in STYLES)


class Marker:
    """Marks the words of an item whose features have a small p, for a terminal, and escapes all other text.

    Numbers in an output are not marked: they are its probabilities, not words.
    """

    def __init__(self, p_values: Mapping[str, float], fields: features.Fields, tokens: features.Tokens) -> None:
        self._styles = {
            name: next((style for below, _, style in STYLES if p < below), "") for name, p in p_values.items()
        }
        self._fields, self._tokens = fields, tokens

    def item(self, item: items.ScoredItem) -> Sequence[str]:
        """Return an item's input, expected and output, marked; a TAB as ``<tab>``."""
        expected, output, *columns = (self.marked(field, text) for field, text in self._fields.split(item))
        return "<tab>".join(columns), expected, output

    def marked(self, field: features.Field, text: str) -> str:
        """Return a field's text, marked."""
        shown = []
        name = str(field)
        end = 0
        for token in self._tokens(text):
            start = text.find(token, end)
            if start < 0 or (token == "_" and text[end:start].strip(" \t:")):
                continue  # a tokenizer may write a token otherwise than the text does, as a space for one
            is_word = field != features.OUTPUT or not wordprobs.NUMBER.fullmatch(token)
            style = self._styles.get(f"{name}:{token}", "") if is_word else ""
            shown += [escapes.terminal_text(text[end:start]), style, visible(token), PLAIN if style else ""]
            end = start + len(token)
        return "".join([*shown, escapes.terminal_text(text[end:])])
