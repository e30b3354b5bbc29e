"""Line by line: the scored lines of an output, alone or beside another output's, and marks on their words."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import repeat
from operator import attrgetter
from tempfile import TemporaryFile
from typing import Any, NamedTuple

from geval_py.errors import MalformedLineError, UsageError
from geval_py.reading import features, items, wordprobs
from geval_py.reading.gap_columns import find_contexts
from geval_py.scoring.scores import ScoredOutput, head_of, signature_lines
from geval_py.tables import escapes, formats, numbers
from geval_py.tables.layout import GAP_MARK
from geval_py.tables.table import Column, Table, plain_table
from geval_py.text import BOLD_RED, PLAIN, RED, YELLOW, visible

MAX_SHOWN = 1000  # characters of a text that a terminal's row may show
STYLES = ((0.001, "bold red", BOLD_RED), (0.01, "red", RED), (0.05, "yellow", YELLOW))  # of words with p below
# The columns of JSON and CSV, and where a line has them; then those beside another output.
FIGURES = {"line": "number", "score": "score", "loss": "loss"}
TEXTS = {"expected": "item.expected", "output": "item.output"}
OTHER_FIGURES = {
    "line": "number", "difference": "difference", "score": "score", "loss": "loss",
    "other_score": "other.score", "other_loss": "other.loss",
}  # fmt: skip
OTHER_TEXTS = TEXTS | {"other_output": "other.item.output"}


class ScoredLine(NamedTuple):
    """A scored line: its number in the file, from 1, the first metric's score and loss, its texts.

    The loss is None for a metric of other statistics. ``other`` is the line in another output, and ``difference`` the
    score minus its score; NaN if both are infinite, or if a single line has no score.
    """

    number: int
    score: float
    loss: float | None
    item: items.ScoredItem
    difference: float = 0.0
    other: ScoredLine | None = None

    @property
    def differs(self) -> bool:
        """Whether both the output and the score differ; as in GEval, lines without a score differ in it."""
        other = self.other or self
        scores_differ = self.difference != 0 and self.score != other.score
        return scores_differ and self.item.output != other.item.output


def read_lines(evaluation: ScoredOutput, other: ScoredOutput | None = None) -> Iterator[ScoredLine]:
    """Yield the scored lines in order, beside those of another output if one is given.

    Raises as :meth:`ScoredOutput.read_items` and :meth:`ScoredOutput.check_same_lines`.
    """
    lines = map(
        ScoredLine,
        evaluation.line_numbers or range(1, evaluation.line_count + 1),
        evaluation.line_scores(),
        evaluation.line_losses if evaluation.scores[0].metric.measure.of_losses else repeat(None),
        evaluation.read_items(),
    )
    if other is None:
        return lines
    differences, others = evaluation.score_differences(other), read_lines(other)
    return (
        line._replace(difference=difference, other=beside)
        for line, difference, beside in zip(lines, differences, others, strict=True)
    )


def sort_lines(lines: Iterable[ScoredLine], *, greatest_first: bool) -> Iterator[ScoredLine]:
    """Yield lines by their score or, beside another output, by the difference; equals in order, and NaN last.

    Meanwhile their texts are in a temporary file: a million lines would take a gigabyte of memory.
    """
    import numpy as np

    figures, starts = array("d"), array("q", [0])
    numbers, scores, losses = array("q"), array("d"), array("d")  # each beside the other output's
    with TemporaryFile() as file:
        for line in lines:
            other = line.other
            figures.append(line.score if other is None else line.difference)
            for number, score, loss, *_ in (line,) if other is None else (line, other):
                numbers.append(number)
                scores.append(score)
                losses.append(math.nan if loss is None else loss)
            text = "\n".join(line.item if other is None else (*line.item, *other.item))
            starts.append(starts[-1] + file.write(text.encode()))
        file.flush()

        def side(at: int, texts: Sequence[str]) -> ScoredLine:
            loss = None if math.isnan(losses[at]) else losses[at]
            return ScoredLine(numbers[at], scores[at], loss, items.ScoredItem(*texts))

        for place in np.argsort(np.negative(figures) if greatest_first else figures, kind="stable").tolist():
            file.raw.seek(starts[place])
            texts = file.raw.read(starts[place + 1] - starts[place]).decode().split("\n")
            if len(texts) == 3:
                yield side(place, texts)
            else:
                line, other = side(2 * place, texts[:3]), side(2 * place + 1, texts[3:])
                yield line._replace(difference=figures[place], other=other)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationListing(formats.Listing):
    """Lines or features of an evaluation, or of its difference from a second one; ``for_terminal`` escapes texts.

    ``below`` is a sentence below the table.
    """

    evaluations: Sequence[ScoredOutput]
    for_terminal: bool = False
    below: str = ""

    def legend(self) -> Iterator[str]:
        return iter([self.below] if self.below else [])

    def signatures(self) -> Iterator[str]:
        return signature_lines(self.evaluations)

    def to_dict(self) -> dict[str, Any]:
        outputs = [
            {"file": one.output.name, "signature": one.signature and str(one.signature)} for one in self.evaluations
        ]
        return head_of(self.evaluations[0]) | {"outputs": outputs}


@dataclass(frozen=True, slots=True, kw_only=True)
class LineListing(EvaluationListing):
    """Lines of an evaluation, a row each, in any order, alone or beside those of a second one.

    Alone: score, input, expected, output; else: difference, input, expected, other output, output. With a ``marker``,
    words are marked.
    """

    name = "lines"
    lines: Iterable[ScoredLine]
    marker: Marker | None = None

    def table(self) -> Table:
        write = escapes.terminal_text if self.for_terminal and self.marker is None else str
        names = ("input", "expected", *(["other output"] if len(self.evaluations) > 1 else []), "output")
        columns = [Column(name="score", alignment="right", write=numbers.plain)]
        columns += [Column(name=name, write=write) for name in names]

        def cells(line: ScoredLine) -> Sequence[object]:
            if line.other is None:
                return line.score, *(line.item if self.marker is None else self.marker.item(line.item))
            text, expected, output = line.item
            return line.difference, text, expected, line.other.item.output, output

        return Table(columns, map(cells, self.lines))

    def text(self, width: int | None = None) -> Iterator[str]:
        """As any listing; but for a terminal's ``width``, each line shows its number, and the gap in its context.

        A row there is the number, a short figure, the context, the answer, the guesses. Where lines are no
        distributions, whole texts stand in place of the context and the guesses.
        """
        if width is None:
            return formats.Listing.text(self)
        evaluation, has_other = self.evaluations[0], len(self.evaluations) > 1
        metric, header = evaluation.scores[0].metric, evaluation.split.in_header
        of_words, fields = metric.is_of_words or metric.has_entries, features.Fields(header)

        def mark(field: features.Field, text: str) -> str:
            return escapes.terminal_text(text) if self.marker is None else self.marker.marked(field, text)

        # Labels are of whole texts. Columns without names have the contexts last, unless the metric reads the last.
        left = right = -1
        if of_words and not metric.has_classes and (header or not metric.needs_input):
            inputs = [items.column_name(header, n) for n in range(evaluation.input_width())]
            with suppress(UsageError):
                left, right = (inputs.index(name) if name else -1 for name in find_contexts(inputs))
        has_gap = max(left, right) >= 0

        def cells(line: ScoredLine) -> Iterator[object]:
            yield line.number
            yield line.score if line.other is None else line.difference
            texts = [  # the part of a text that a row may show
                mark(fields.column(n), text[-MAX_SHOWN:] if n == left else text[:MAX_SHOWN])
                for n, text in enumerate(line.item.input.split("\t"))
            ]
            if has_gap and len(texts) > max(left, right):
                yield GAP_MARK.join(texts[n] if n >= 0 else "" for n in (left, right))
            else:
                yield "<tab>".join(texts) + (GAP_MARK if has_gap else "")
            yield mark(features.EXPECTED, line.item.expected[:MAX_SHOWN])
            for one in (line,) if line.other is None else (line, line.other):
                output = best_guess(one.item.output) if of_words else one.item.output
                yield mark(features.OUTPUT, output[:MAX_SHOWN])

        names = ["guess" if of_words else "output", "other guess" if of_words else "other output"]
        columns = [
            Column(name="line", alignment="right", write=str),
            Column(name="difference" if has_other else "score", alignment="right", write=numbers.short),
            Column(name="context" if has_gap else "input", write=str, cut="around" if has_gap else "end"),
            *(Column(name=name, write=str) for name in ("expected", *names[: 1 + has_other])),
        ]
        rows = (list(cells(line)) for line in self.lines)
        return Table(columns, rows, droppable=names if has_gap else ()).terminal(width, legend=list(self.legend()))

    def records(self) -> Table:
        own = {*FIGURES, *OTHER_FIGURES, *TEXTS, *OTHER_TEXTS}
        columns = items.column_names(self.evaluations[0].input_width(), self.evaluations[0].split.in_header, own)
        figures, texts = (FIGURES, TEXTS) if len(self.evaluations) < 2 else (OTHER_FIGURES, OTHER_TEXTS)

        def rows() -> Iterator[Sequence[object]]:
            for line in self.lines:
                cells: list[str | None] = list(line.item.input.split("\t")) if columns else []
                cells += [None] * (len(columns) - len(cells))
                yield *attrgetter(*figures.values())(line), *cells, *attrgetter(*texts.values())(line)

        return plain_table([*figures, *columns, *texts], rows())

    def documents(self) -> Iterator[dict[str, Any]]:
        fields = features.Fields(self.evaluations[0].split.in_header)
        figures, texts = (FIGURES, TEXTS) if len(self.evaluations) < 2 else (OTHER_FIGURES, OTHER_TEXTS)
        for line in self.lines:
            columns = enumerate(line.item.input.split("\t"))
            cells = {fields.column(n).name: cell for n, cell in columns}
            own = [dict(zip(names, attrgetter(*names.values())(line), strict=True)) for names in (figures, texts)]
            yield {**own[0], "input": cells, **own[1]}


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
