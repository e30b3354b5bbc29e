"""What metrics are made from: columns of statistics, of all lines or of some, read in one pass over the files."""

from __future__ import annotations

from geval_py.errors import SchemeError
from geval_py.reading.inputs import InputReader
from geval_py.reading.lines import decode_lines
from geval_py.scoring.blocks import Block, BlockScorer
from geval_py.scoring.failure import NoScore
from geval_py.scoring.metrics import LineStatistics, Metric, column_of
from geval_py.scoring.score import Score
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TypeAlias

    from geval_py.reading.outputs import Output
    from geval_py.reading.preparation import Preparation
    from geval_py.reading.schemes import EvaluationScheme, Flag
    from geval_py.reading.splits import Split
    from geval_py.reading.texts import Texts
    from geval_py.scoring.cluster import ClusterScorer
    from geval_py.scoring.metrics.base import Column
    from geval_py.scoring.parallel import Progress
    from geval_py.scoring.selection import Selection

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
) -> list[Score | NoScore]:
    """Give each metric's score from its statistics; or the error that stands in their place."""
    return [_result(named, key, found[key], selections) for named, key in zip(schemes, keys, strict=True)]


def _result(named: Named, key: Key, found: Found, selections: Mapping[Choice, Selection]) -> Score | NoScore:
    scheme, metric = named
    choice, _ = key
    if isinstance(found, SchemeError):
        return NoScore(name=shown_name(scheme, metric), metric=metric, error=found)
    return Score(
        name=shown_name(scheme, metric),
        value=metric.value(found),
        metric=metric,
        scheme=scheme,
        statistics=found,
        line_numbers=None if choice is None else selections[choice].line_numbers,
    )


class Reading(Value):
    """What is read side by side, and what is made of it: columns of all lines, and lines selected for later."""

    scorer: BlockScorer | ClusterScorer
    inputs: InputReader | None
    columns: tuple[Column, ...]
    selections: tuple[Selection, ...]

    @classmethod
    def of(
        cls,
        scorer: BlockScorer | ClusterScorer,
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
    from geval_py.scoring.selection import Selection

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
