"""Line by line: the scored lines of an output, alone or beside another output's, and marks on their words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, repeat
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from geval_py.errors import UsageError
from geval_py.reading import features, items, wordprobs
from geval_py.reading.items import find_contexts
from geval_py.scoring.metrics.base import Integers
from geval_py.scoring.metrics.exact import best_guess
from geval_py.scoring.scores import Evaluation, head_of, score_difference, signature_lines
from geval_py.tables import escapes, formats, numbers
from geval_py.tables.layout import GAP_MARK
from geval_py.tables.table import Column, Table, plain_table
from geval_py.text import BOLD_RED, PLAIN, RED, YELLOW, fitted, visible

LINES_AT_ONCE = 4096  # whose figures are computed together
MAX_SHOWN = 1000  # characters of a text that a terminal's row may show
STYLES = ((0.001, "bold red", BOLD_RED), (0.01, "red", RED), (0.05, "yellow", YELLOW))  # of words with p below
# The columns of JSON and CSV before and behind those of the input, alone and beside another output.
ALONE = ("line", "score", "loss"), ("expected", "output")
BESIDE = (
    ("line", "difference", "score", "loss", "other_score", "other_loss"),
    ("expected", "output", "other_output"),
)


class ScoredLine(NamedTuple):
    """A scored line: its number in the file, from 1, the first metric's score and loss, its texts.

    The loss is None for a metric of other statistics. Beside another output, ``difference`` is the score minus the
    other's; NaN if both are infinite, or if a single line has no score.
    """

    line: int
    score: float
    loss: float | None
    input: str
    expected: str
    output: str
    difference: float = 0.0
    other_score: float = 0.0
    other_loss: float | None = None
    other_output: str = ""


def places_of_lines(
    evaluation: Evaluation,
    other: Evaluation | None = None,
    *,
    item_filter: features.ItemFilter | None = None,
    greatest_first: bool | None = None,
) -> Integers | None:
    """Return the places among the scored lines of those that a filter selects; None: all of them, as they are.

    With ``greatest_first`` they are sorted by the score, or the difference from another output's, either way; equals
    in order, and NaN last. Raises as :meth:`Evaluation.select` and :meth:`Evaluation.check_same_lines`.
    """
    if item_filter is None and greatest_first is None:
        return None
    places = np.arange(evaluation.line_count)
    if item_filter is not None:
        places = places[evaluation.select(item_filter)]
    if greatest_first is None:
        return places
    scores = np.array(evaluation.line_scores() if other is None else evaluation.score_differences(other))[places]
    return places[np.argsort(-scores if greatest_first else scores, kind="stable")]


def read_lines(
    evaluation: Evaluation, other: Evaluation | None = None, places: Integers | None = None
) -> Iterator[ScoredLine]:
    """Yield the scored lines, at all or some places; beside another output, those where texts and scores differ.

    Raises as :meth:`Evaluation.read_items` and :meth:`Evaluation.check_same_lines`.
    """
    texts = zip(*evaluation.sides(places), strict=False)
    lines = (
        ScoredLine(*figures, *sides) for figures, sides in zip(_figures(evaluation, places), texts, strict=False)
    )
    if other is None:
        return lines
    evaluation.check_same_lines(other)
    beside = zip(_figures(other, places), other.texts("output", places), strict=False)
    pairs = (
        line._replace(
            difference=score_difference(line.score, score), other_score=score, other_loss=loss, other_output=output
        )
        for line, ((_, score, loss), output) in zip(lines, beside, strict=True)
    )
    return (  # as in GEval, lines without a score differ in it
        line
        for line in pairs
        if line.output != line.other_output and line.score != line.other_score and line.difference != 0
    )


def _figures(evaluation: Evaluation, places: Integers | None = None) -> Iterator[tuple[int, float, float | None]]:
    """Yield the number, the score and the loss of lines; few at once, since a file may have millions."""
    first, numbers = evaluation.scores[0], evaluation.line_numbers or range(1, evaluation.line_count + 1)
    chosen = range(evaluation.line_count) if places is None else places
    for start in range(0, len(chosen), LINES_AT_ONCE):
        block = list(map(int, chosen[start : start + LINES_AT_ONCE]))
        table = first.statistics.only(block)
        losses = table.columns[0] if first.metric.measure.of_losses else repeat(None)
        yield from zip(map(numbers.__getitem__, block), first.metric.line_scores(table), losses, strict=False)


@dataclass(frozen=True, kw_only=True)
class EvaluationListing(formats.Tabular):
    """Lines or features of an evaluation, or of its difference from a second one; ``for_terminal`` escapes texts.

    ``below`` is a sentence below the table.
    """

    evaluations: Sequence[Evaluation]
    for_terminal: bool = False
    below: str = ""

    def legend(self) -> Iterator[str]:
        return iter([self.below] if self.below else [])

    def signatures(self) -> Iterator[str]:
        return signature_lines((one.output.name, one.signature) for one in self.evaluations)

    def to_dict(self) -> dict[str, Any]:
        outputs = [{"file": one.output.name, "signature": one.signature} for one in self.evaluations]
        return head_of(self.evaluations[0]) | {"outputs": outputs}


@dataclass(frozen=True, kw_only=True)
class LineListing(EvaluationListing):
    """Lines of an evaluation, a row each, in any order, alone or beside those of a second one.

    Alone: score, input, expected, output; else: difference, input, expected, other output, output. With a ``marker``,
    words are marked.
    """

    list_name = "lines"
    lines: Iterable[ScoredLine]
    marker: Marker | None = None

    def table(self) -> Table:
        write = escapes.terminal_text if self.for_terminal and self.marker is None else str
        fields = ["score", "input", "expected", "output"]
        if len(self.evaluations) > 1:
            fields = ["difference", "input", "expected", "other_output", "output"]
        columns = [Column("score", alignment="right", write=partial(numbers.exact, exponent=False))]
        columns += [Column(name.replace("_", " "), write=write) for name in fields[1:]]
        lines = self.lines if self.marker is None else map(self.marker.line, self.lines)
        return Table(columns, map(attrgetter(*fields), lines))

    def text(self, width: int | None = None) -> Iterator[str]:
        """As any listing; but for a terminal's ``width``, each line shows its number, and the gap in its context.

        A row there is the number, a short figure, the context, the answer, the guesses. Where lines are no
        distributions, whole texts stand in place of the context and the guesses.
        """
        if width is None:
            return self.table().tabs()
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

        def context(text: str) -> str:
            texts = [  # the part of a text that a row may show
                mark(fields.column(n), cell[-MAX_SHOWN:] if n == left else cell[:MAX_SHOWN])
                for n, cell in enumerate(text.split("\t"))
            ]
            if has_gap and len(texts) > max(left, right):
                return GAP_MARK.join(texts[n] if n >= 0 else "" for n in (left, right))
            return "<tab>".join(texts) + (GAP_MARK if has_gap else "")

        def guess(output: str) -> str:
            word = best_guess(output) if of_words else None
            return mark(features.OUTPUT, (word or output)[:MAX_SHOWN])

        figure, what = "difference" if has_other else "score", "guess" if of_words else "output"
        columns = [
            Column("line", alignment="right", write=str),
            Column(figure, alignment="right", write=numbers.significant),
            Column("context" if has_gap else "input", write=context),
            Column("expected", write=lambda text: mark(features.EXPECTED, text[:MAX_SHOWN])),
            Column(what, write=guess),
            Column(f"other {what}", write=guess),
        ]
        rows = map(attrgetter("line", figure, "input", "expected", "output", "other_output"), self.lines)
        table = Table(columns, rows).without(() if has_other else (f"other {what}",))
        return chain(table.terminal(width), fitted(["", self.below] if self.below else [], width))

    def records(self) -> Table:
        own = {*BESIDE[0], *BESIDE[1]}
        columns = items.column_names(self.evaluations[0].input_width(), self.evaluations[0].split.in_header, own)
        figures, texts = ALONE if len(self.evaluations) < 2 else BESIDE

        def rows() -> Iterator[Sequence[object]]:
            for line in self.lines:
                cells: list[str | None] = list(line.input.split("\t")) if columns else []
                cells += [None] * (len(columns) - len(cells))
                yield *attrgetter(*figures)(line), *cells, *attrgetter(*texts)(line)

        return plain_table([*figures, *columns, *texts], rows())

    def to_dicts(self) -> Iterator[dict[str, Any]]:
        fields = features.Fields(self.evaluations[0].split.in_header)
        figures, texts = ALONE if len(self.evaluations) < 2 else BESIDE
        for line in self.lines:
            cells = {fields.column(n).name: cell for n, cell in enumerate(line.input.split("\t"))}
            values = line._asdict() | {"input": cells}
            yield {name: values[name] for name in (*figures, "input", *texts)}


def marks_text() -> str:
    """Explain the marks.

    >>> marks_text()
    'bold red p < 0.001, red p < 0.01, yellow p < 0.05'
    """
    return ", ".join(f"{name} p < {below}" for below, name, _ in STYLES)


class Marker(NamedTuple):
    """Marks the words of an item whose features have a small p, for a terminal, and escapes all other text.

    Numbers in an output are not marked: they are its probabilities, not words.
    """

    p_values: Mapping[str, float]
    fields: features.Fields
    tokens: features.Tokens

    def line(self, line: ScoredLine) -> ScoredLine:
        """Return a line with its input, expected and output marked; a TAB as ``<tab>``."""
        item = items.ScoredItem(line.input, line.expected, line.output)
        expected, output, *columns = (self.marked(field, text) for field, text in self.fields.split(item))
        return line._replace(input="<tab>".join(columns), expected=expected, output=output)

    def marked(self, field: features.Field, text: str) -> str:
        """Return a field's text, marked."""
        shown = []
        name = str(field)
        end = 0
        for token in self.tokens(text):
            start = text.find(token, end)
            if start < 0 or (token == "_" and text[end:start].strip(" \t:")):
                continue  # a tokenizer may write a token otherwise than the text does, as a space for one
            is_word = field != features.OUTPUT or not wordprobs.NUMBER.fullmatch(token)
            p = self.p_values.get(f"{name}:{token}", 1.0) if is_word else 1.0
            style = next((style for below, _, style in STYLES if p < below), "")
            shown += [escapes.terminal_text(text[end:start]), style, visible(token), PLAIN if style else ""]
            end = start + len(token)
        return "".join([*shown, escapes.terminal_text(text[end:])])
