"""From evaluation schemes to columns of statistics, of all lines or of some, and from these to scores.

One pass over the files fills the columns. What only schemes that select or change lines need is imported for them.
"""

from __future__ import annotations

from geval_py.errors import SchemeError, UsageError
from geval_py.reading.lines import decode_lines
from geval_py.scoring.metrics import column_of, find_metric
from geval_py.scoring.scores import MetricScore, NoScore
from geval_py.text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import TypeAlias

    from geval_py.reading.items import InputReader, Texts
    from geval_py.reading.preparation import Preparation
    from geval_py.reading.schemes import EvaluationScheme, Flag
    from geval_py.reading.splits import Split, Task
    from geval_py.scoring.blocks import Block, Scorer
    from geval_py.scoring.metrics import LineStatistics, Metric
    from geval_py.scoring.metrics.base import Column
    from geval_py.scoring.parallel import Progress
    from geval_py.scoring.selection import Selection

Named: TypeAlias = "tuple[EvaluationScheme, Metric]"  # a scheme, and its metric

# Which lines are scored: the flags that select them, and the preparation of lines before these flags look at them.
Choice: TypeAlias = "tuple[tuple[Flag, ...], Preparation | None]"
Key: TypeAlias = "tuple[Choice | None, Column]"  # of a metric's statistics: the lines (None: all), and the column
Found: TypeAlias = "LineStatistics | SchemeError"  # the statistics, or why an output has none


def select_schemes(task: Task) -> list[Named]:
    """Return the schemes to score with and their metrics; raises SchemeError, UsageError.

    Schemes whose metric is tokenised get the task's tokenizer.
    """
    schemes: list[Named] = []
    for scheme in task.schemes():
        metric = find_metric(scheme.metric)
        schemes.append((scheme.replace(tokenizer=task.tokenizer) if metric.is_tokenised else scheme, metric))
    if not schemes:
        raise UsageError(message="no metric given, use", arguments=("metrics",))
    return [_named(name, schemes) for name in task.select_metrics] or schemes


def _named(name: str, schemes: Sequence[Named]) -> Named:
    """Return the first scheme whose score is shown under a name; raises UsageError."""
    for named in schemes:
        if shown_name(*named) == name:
            return named
    names = visible(", ".join(shown_name(*named) for named in schemes))
    raise UsageError(message=f"Cannot find metric named '{visible(name)}'\n  there are {names}")


def shown_name(scheme: EvaluationScheme, metric: Metric) -> str:
    """Return the name under which a scheme's score is shown."""
    if not scheme.flags:
        return metric.name
    if any(flag.letter == "N" for flag in scheme.flags):
        return scheme.name
    return f"{metric.name}:{scheme.flag_text}"


def preparation_for(scheme: EvaluationScheme) -> Preparation | None:
    """Return the change that a scheme's text flags and tokenizer make to a line; None for none."""
    if not scheme.changes_lines:
        return None
    from geval_py.reading.preparation import preparation_of

    return preparation_of(scheme)


def key_of(named: Named, vocabulary: frozenset[str], raw_filters: bool) -> Key:
    """Return the key of a metric's statistics; with ``raw_filters``, flags select lines by their unprepared text.

    A metric that needs the input is computed from collected lines, as if a flag had selected all of them.
    """
    scheme, metric = named
    preparation = preparation_for(scheme)
    collects = scheme.selecting_flags or metric.needs_input
    choice = (scheme.selecting_flags, None if raw_filters else preparation) if collects else None
    return choice, column_of(metric, vocabulary, preparation)


def selections_of(schemes: Sequence[Named], keys: Sequence[Key], split: Split) -> dict[Choice, Selection]:
    """Return an empty selection for each choice of lines."""
    if not any(choice for choice, _ in keys):
        return {}
    from geval_py.scoring.selection import Selection

    return {
        choice: Selection(scheme, split.in_header, choice[1])
        for (scheme, _), (choice, _) in zip(schemes, keys, strict=True)
        if choice is not None
    }


def read_statistics(
    scorer: Scorer,
    columns: Sequence[Column],
    inputs: InputReader | None,
    selections: Collection[Selection],
    texts: Texts | None,
    progress: Progress | None,
) -> tuple[dict[Key, LineStatistics], int]:
    """Read all files block by block: score the columns, fill the selections, and keep the texts if there are any.

    Returns the statistics of the columns, and the number of lines read.
    """
    statistics: dict[Column, LineStatistics] = {}
    lines = 0
    for block, scored in scorer.scored(progress):
        for column, of_block in zip(columns, scored, strict=True):
            if column in statistics:
                statistics[column].extend(of_block)
            else:
                statistics[column] = of_block
        lines += block.lines
        if selections:
            _select(block, inputs, selections)
        if texts is not None:
            texts.outputs.add(block.outputs)
            texts.expected.add(block.expected)
    if inputs is not None:
        inputs.check_end()
    for selection in selections:
        selection.finish()
    return {(None, column): of_lines for column, of_lines in statistics.items()}, lines


def _select(block: Block, inputs: InputReader | None, selections: Collection[Selection]) -> None:
    outputs, expected = decode_lines(block.outputs), decode_lines(block.expected)
    of_input = [""] * len(outputs) if inputs is None else inputs.take(len(outputs))
    items = list(zip(of_input, expected, outputs, strict=True))
    for selection in selections:
        selection.add(block.first_line, items)


def results_of(
    schemes: Sequence[Named], keys: Sequence[Key], found: Mapping[Key, Found], selections: Mapping[Choice, Selection]
) -> list[MetricScore | NoScore]:
    """Compute each metric's score from its statistics, or return the error in their place."""
    results: list[MetricScore | NoScore] = []
    for (scheme, metric), key in zip(schemes, keys, strict=True):
        statistics, choice = found[key], key[0]
        name = shown_name(scheme, metric)
        if isinstance(statistics, SchemeError):
            results.append(NoScore(name=name, metric=metric, error=statistics))
            continue
        numbers = None if choice is None else selections[choice].line_numbers
        value = metric.value(statistics)
        results.append(
            MetricScore(
                name=name, value=value, metric=metric, scheme=scheme, statistics=statistics, line_numbers=numbers
            )
        )
    return results
