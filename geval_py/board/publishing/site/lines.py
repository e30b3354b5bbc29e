"""The worst lines of an output, for test sets whose answers are public, and for no others."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from sqlalchemy import select

from geval_py.board.answers import expected_of, input_of
from geval_py.board.figures import significant
from geval_py.board.publishing.site.view import LineView
from geval_py.board.storing.columns import unpack
from geval_py.board.storing.schema import evaluations
from geval_py.board.units import measure_of
from geval_py.reading.lines import read_lines

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from geval_py.board.publishing.site.view import OutputView
    from geval_py.board.settings import Settings, Test

MOST_LINES = 20
MOST_OUTPUTS = 2000  # of which lines are shown, over the whole site
CONTEXT = 60  # characters on each side of a gap
DIGITS = 4


class LineTables:
    """Gives the worst lines of outputs; texts of a test set are read once."""

    def __init__(self, connection: Connection, settings: Settings) -> None:
        self._connection, self._settings = connection, settings
        self._texts: dict[str, list[tuple[str, str, str]]] = {}
        self._left = MOST_OUTPUTS

    @cached_property
    def _is_made_of_losses(self) -> bool:
        return measure_of(self._settings.metric).of_losses

    def __call__(self, test: Test, output: OutputView) -> Sequence[LineView]:
        """Give the lines with the greatest losses, the worst first.

        None for a set whose answers are hidden, or whose scores move by a ladder, and for a metric that is not made
        of losses.
        """
        if not test.visible or test.ladder or not self._is_made_of_losses or not self._left:
            return ()
        losses = self._losses(output)
        worst = heapq.nsmallest(MOST_LINES, range(len(losses)), key=lambda line: (-losses[line], line))
        if not worst:
            return ()
        self._left -= 1
        texts = self._texts_of(test.name)
        return [self._line(line, losses[line], texts[line]) for line in worst if line < len(texts)]

    def _line(self, line: int, loss: float, texts: tuple[str, str, str]) -> LineView:
        score = measure_of(self._settings.metric).formula((loss,), 1)
        before, expected, after = texts
        return LineView(
            line=line + 1, score=significant(score, DIGITS) or 0.0, expected=expected, before=before, after=after
        )

    def _losses(self, output: OutputView) -> list[float]:
        columns = select(evaluations.c.lines, evaluations.c.losses)
        of = self._connection.execute(columns.where(evaluations.c.id == output.evaluation_id)).first()
        return [] if of is None or of.losses is None else list(unpack(of.losses, of.lines)[0])

    def _texts_of(self, test: str) -> list[tuple[str, str, str]]:
        if test not in self._texts:
            settings = self._settings
            expected = list(read_lines(expected_of(settings.challenge, settings.answers, test)))
            place = input_of(settings.challenge, test)
            inputs = list(islice(read_lines(place), len(expected))) if place else []
            inputs += [""] * (len(expected) - len(inputs))
            self._texts[test] = [_in_context(*pair) for pair in zip(inputs, expected, strict=True)]
        return self._texts[test]


def _in_context(line: str, expected: str) -> tuple[str, str, str]:
    """Put a word between the ends of the last two columns of its input: what stands before the gap, and after."""
    _, before, after = ["", "", *line.split("\t")][-3:]
    head = before if len(before) <= CONTEXT else f"…{before[-CONTEXT:]}"
    tail = after if len(after) <= CONTEXT else f"{after[:CONTEXT]}…"
    return head, expected, tail
