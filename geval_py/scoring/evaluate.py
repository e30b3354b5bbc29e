"""Read an output and its expected file once, and score it with every metric.

    schemes ──> columns of line statistics, of all lines or of some ──> scores

Metrics that need the same column share it.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from geval_py.errors import DataError, LineCountError, MalformedLineError, MissingFileError, SchemeError, UsageError
from geval_py.reading.config import Task
from geval_py.reading.lines import LineReader, Text, Texts, decode_lines
from geval_py.reading.outputs import Output
from geval_py.reading.schemes import EvaluationScheme
from geval_py.reading.sources import can_be_reread, format_ending, is_part_of
from geval_py.reading.splits import Split, read_vocabulary
from geval_py.scoring.blocks import Block, Progress, Threads, Workers, map_blocks
from geval_py.scoring.metrics import column_of, find_metric
from geval_py.scoring.metrics.base import LineStatistics, Metric, StatisticsColumn
from geval_py.scoring.scores import MetricScore, ScoredOutput, Signature, evaluations_of
from geval_py.text import visible

if TYPE_CHECKING:
    from geval_py.reading.preparation import Preparation
    from geval_py.scoring.selection import Choice, SelectedLines

Named: TypeAlias = tuple[EvaluationScheme, Metric]  # a scheme, and its metric
KeptTexts: TypeAlias = Literal["memory", "files"]  # where an evaluation's texts are read again
Watch: TypeAlias = Callable[[Output], AbstractContextManager[Progress]]  # shows the progress on an output


def evaluate_split(
    task: Task,
    split: Split,
    schemes: Sequence[Named] | None = None,
    *,
    texts: KeptTexts | None = None,
    sign: bool = False,
    watch: Watch | None = None,
    **how: Any,
) -> Iterator[ScoredOutput]:
    """Score the outputs of a split, each read once, with the metrics of a task, or with some of them.

    An output that is at fault, or of which a filter selects no line, has an error; other errors are raised. ``watch``
    returns a progress callback for an output; for the other arguments and the errors see :func:`score_output`.
    """
    schemes = select_schemes(task) if schemes is None else schemes
    vocabulary = vocabulary_for(schemes, task)
    is_reread = texts == "files" and split.input is not None and can_be_reread(split.input)
    is_kept = not is_reread and (texts is not None or len(split.outputs) > 1)
    inputs = split.input_text(keep=is_kept, digest=sign)
    how |= {"texts": texts, "sign": sign, "inputs": inputs}
    for output in split.outputs:
        with nullcontext() if watch is None else watch(output) as progress:
            try:
                result = score_output(split, output, schemes, vocabulary, progress=progress, **how)
            except (DataError, SchemeError) as error:
                if error.path != output.path and not is_part_of(error.path, output.path):
                    raise
                if isinstance(error, LineCountError) and error.what == "output" and task.directory:
                    from geval_py.reading.challenge import sets_of_length  # which few runs need

                    error.hint = sets_of_length(task.directory, error.lines, split.name)
                result = ScoredOutput(split=split, output=output, input=inputs, error=error)
        yield result


def vocabulary_for(schemes: Sequence[Named], task: Task) -> frozenset[str]:
    """Read the vocabulary if a metric needs it."""
    return read_vocabulary(task) if any(m.needs_vocabulary for _, m in schemes) else frozenset()


def evaluate_output(
    split: Split, output: Output, schemes: Sequence[Named], vocabulary: frozenset[str], **how: Any
) -> ScoredOutput:
    """Score one output as :func:`score_output` does; raises SchemeError where some metric has no score."""
    (evaluation,) = evaluations_of([score_output(split, output, schemes, vocabulary, **how)])
    return evaluation


class MetricPlan(NamedTuple):
    """How a scheme's score is made: from the statistics of a column, of chosen lines (None: of all lines)."""

    name: str
    scheme: EvaluationScheme
    metric: Metric
    column: StatisticsColumn
    choice: Choice | None


def plan_metrics(
    schemes: Iterable[Named], vocabulary: frozenset[str] = frozenset(), *, raw_filters: bool = False
) -> list[MetricPlan]:
    """Plan the score of each scheme; with ``raw_filters``, flags select lines by their unprepared text.

    A metric that needs the input is computed from collected lines, as if a flag had selected all of them. Only such a
    metric's text flags change the input; the tokenizer of any metric splits it for the flags that select lines.
    """
    plans = []
    for scheme, metric in schemes:
        preparation = preparation_for(scheme)
        choice: Choice | None = None
        if scheme.selecting_flags or metric.needs_input:
            from geval_py.scoring.selection import Choice

            of_input = preparation if metric.needs_input else preparation_for(scheme._replace(flags=()))
            prepared = (None, None) if raw_filters else (preparation, of_input)
            choice = Choice(scheme.selecting_flags, *prepared)
        column = column_of(metric, vocabulary, preparation)
        plans.append(MetricPlan(shown_name(scheme, metric), scheme, metric, column, choice))
    return plans


def score_output(
    split: Split,
    output: Output,
    schemes: Sequence[Named],
    vocabulary: frozenset[str],
    *,
    texts: KeptTexts | None = None,
    raw_filters: bool = False,
    inputs: Text | None = None,
    sign: bool = False,
    workers: Workers | None = None,
    progress: Progress | None = None,
) -> ScoredOutput:
    """Score one output with all metrics, reading it once; it has an error where some, but not all, have no line.

    ``texts`` keeps the texts in memory or, as ``"files"``, reads those in files again. With ``raw_filters``, flags
    that select lines look at them as they are, not as the text flags leave them. ``inputs`` is the split's
    input, shared by several outputs; ``sign`` computes the signature; ``workers`` (by default, a thread a core)
    score; ``progress`` is called after each block. Raises DataError, and SchemeError for a filter that no line has.
    """
    workers = workers or Threads()
    plans = plan_metrics(schemes, vocabulary, raw_filters=raw_filters)
    selections: dict[Choice | None, SelectedLines] = {}
    for plan in plans:
        if plan.choice is not None and plan.choice not in selections:
            from geval_py.scoring.selection import SelectedLines

            selections[plan.choice] = SelectedLines(plan.scheme, split.in_header, plan.choice)
    inputs = inputs or split.input_text(keep=texts is not None, digest=sign)
    if output.fault is not None:
        raise output.fault
    needing = next((plan.metric.name for plan in plans if plan.metric.needs_input), None)
    if needing and split.input is None:
        hint = f"{needing} compares its lines with the answers"
        raise MissingFileError(what="No file with the input", path=split.input_place, hint=hint)
    reads_input = needing is not None or any(selection.filter.needs_input for selection in selections.values())
    if reads_input and split.input is None:
        raise UsageError(message="a feature of the input was asked for, and there is no input: give inputs=…")
    is_local = workers.is_local
    if selections and not is_local:
        what = "metrics whose flags (f, p) select some, or that look at the input (CharMatch)"
        raise UsageError(message=f"a cluster scores all lines, and sees no input: leave out {what}")
    with (
        LineReader(output.path, header=split.output_header, digest=sign and is_local) as outputs,
        LineReader(split.expected, header=split.output_header, digest=sign) as expected,
    ):
        kept = None
        if texts is not None:
            again = texts == "files" or not is_local
            kept = Texts(Text.of(outputs, reread=again), Text.of(expected, reread=again))
        digest = workers.digest(outputs) if sign else None
        columns = {plan.column: _names(plans, plan) for plan in plans if plan.choice is None}
        work = partial(score_blocks, columns, split.expected, raw_filters)
        statistics: list[LineStatistics] = []
        lines = lines_read = 0
        input_lines = inputs.lines() if reads_input else repeat("")
        for block, scored in map_blocks(outputs, expected, work, workers, matched=True, progress=progress):
            statistics = extended(statistics, scored)
            lines += block.lines
            if selections:
                both = decode_lines(block.expected), decode_lines(block.outputs)
                texts_of_block = list(islice(input_lines, block.lines))
                lines_read += len(texts_of_block)
                texts_of_block += [""] * (block.lines - len(texts_of_block))  # too few: an error in the end
                for selection in selections.values():
                    selection.add(block.first_line, texts_of_block, *both)
            if kept is not None:
                kept.outputs.add(block.outputs)
                kept.expected.add(block.expected)
        if reads_input:
            inputs.check_lines(lines, lines_read + sum(1 for _ in input_lines))
        output_digest = digest() if digest is not None else None
    for selection in selections.values():
        selection.finish()
    tables: dict[Any, LineStatistics | SchemeError] = {
        (None, column): table for column, table in zip(columns, statistics, strict=True)
    }
    results = []
    for plan in plans:
        key, chosen = (plan.choice, plan.column), selections.get(plan.choice)
        if chosen is not None and key not in tables:
            try:
                tables[key] = chosen.statistics(plan.column, split, output, with_input=plan.metric.needs_input)
            except SchemeError as none_selected:
                if none_selected.path != output.path:  # no output could have such a line
                    raise
                tables[key] = none_selected
            except MalformedLineError as malformed:
                malformed.metrics = _names(plans, plan)
                raise
        table = tables[key]
        if plan.metric.needs_candidates and format_ending(output.path):
            from geval_py.reading.formats import ANSWERS_ALONE, lists_answers_alone

            if lists_answers_alone(output.path):
                what = f"{plan.metric.name} needs several candidates: {ANSWERS_ALONE}"
                message = f"{what}; use LogLoss, Likelihood or Perplexity"
                table = SchemeError(scheme=plan.scheme.text, path=output.path, message=message)
        results.append(score_of(plan, table, None if chosen is None else chosen.line_numbers))
    scores = tuple(result for result in results if result.error is None)
    error = next((result.error for result in results if result.error is not None), None)
    if error is not None and not scores:
        raise error
    signature = None
    if sign:
        own_input = inputs if reads_input else None
        signature = _signature(scores, output_digest, expected.sha256, own_input, split, vocabulary, raw_filters)
    return ScoredOutput(
        split=split, output=output, scores=scores, file_lines=lines, signature=signature, input=inputs,
        texts=kept, results=tuple(results), error=error,
    )  # fmt: skip


def score_of(
    plan: MetricPlan, table: LineStatistics | SchemeError, line_numbers: array[int] | None = None
) -> MetricScore:
    """Compute a metric's score from its statistics, or hold the error in their place."""
    if isinstance(table, SchemeError):
        return MetricScore(plan.name, math.nan, plan.metric, plan.scheme, LineStatistics(), line_numbers, table)
    return MetricScore(plan.name, plan.metric.value(table), plan.metric, plan.scheme, table, line_numbers)


def _names(plans: Sequence[MetricPlan], one: MetricPlan) -> tuple[str, ...]:
    """Return the names of the metrics with the same statistics; no names if these are all metrics."""
    same = [plan.name for plan in plans if (plan.choice, plan.column) == (one.choice, one.column)]
    return () if len(same) == len(plans) else tuple(same)


def score_blocks(
    columns: Mapping[StatisticsColumn, tuple[str, ...]], expected_path: str, by_line: bool, blocks: Iterable[Block]
) -> list[LineStatistics]:
    """Score blocks in order for each of some columns, with the names of the metrics that are made from it.

    Raises MalformedLineError, the first in the order of lines. The error names the metrics of the columns with the
    same error, unless these are all of several columns. For an output in parts, it names the part and the line's
    number in it. If a line has no expected one, only what GEval reads before it counts the lines is an error: the
    output line, but not if it scores line by line.
    """
    tables: list[LineStatistics] = []
    for block in blocks:
        scored: list[LineStatistics] = []
        errors: list[MalformedLineError] = []
        for column, names in columns.items():
            try:
                scored.append(column.statistics(block.outputs, block.expected, block.first_line))
            except MalformedLineError as error:
                is_read = error.role == "output" and error.is_numbered and not by_line
                if is_read or error.line < block.first_line + block.known:
                    error.metrics = names
                    errors.append(error)
                else:
                    scored.append(column.statistics(b"", b"", block.first_line))
        if errors:
            first = min(errors, key=lambda error: error.line)
            same = [error for error in errors if (error.line, error.hint) == (first.line, first.hint)]
            is_of_all = len(same) == len(columns) > 1
            first.metrics = () if is_of_all else tuple(name for error in same for name in error.metrics)
            if first.role == "output":
                first.path, first.line = block.part, first.line - block.lines_before
            else:
                first.path = expected_path
            raise first
        tables = extended(tables, scored)
    return tables


def extended(tables: list[LineStatistics], following: list[LineStatistics]) -> list[LineStatistics]:
    """Append the statistics of the lines that follow to those of each column."""
    for table, of_lines in zip(tables, following, strict=bool(tables)):
        table.extend(of_lines)
    return tables or following


def select_schemes(task: Task) -> list[Named]:
    """Return the schemes to score with and their metrics; raises SchemeError, UsageError.

    Schemes whose metric is tokenised get the task's tokenizer.
    """
    schemes: list[Named] = []
    for scheme in task.schemes():
        metric = find_metric(scheme.metric)
        schemes.append((scheme._replace(tokenizer=task.tokenizer) if metric.is_tokenised else scheme, metric))
    if not schemes:
        raise UsageError(message="no metric given, use", arguments=("metrics",))
    chosen = []
    for name in task.select_metrics:  # as we show it, as it was written or as GEval shows it
        matching = [named for named in schemes if name in (shown_name(*named), named[0].text)]
        if not matching:
            from geval_py.scoring.metrics.registry import geval_name

            for scheme, metric in schemes:
                stem, colon, flags = shown_name(scheme, metric).partition(":")
                if name == (geval_name(stem) if stem == metric.name else stem) + colon + flags:
                    matching.append((scheme, metric))
        if not matching:
            names = visible(", ".join(shown_name(*named) for named in schemes))
            raise UsageError(message=f"Cannot find metric named '{visible(name)}'\n  there are {names}")
        chosen.append(matching[0])
    return chosen or schemes


def shown_name(scheme: EvaluationScheme, metric: Metric) -> str:
    """Return the name under which a scheme's score is shown."""
    if not scheme.flags:
        return metric.name
    if any(flag.letter == "N" for flag in scheme.flags):
        return scheme.name
    return f"{metric.name}:{''.join(map(str, scheme.flags))}"


def preparation_for(scheme: EvaluationScheme) -> Preparation | None:
    """Return the change that a scheme's text flags and tokenizer make to a line; None for none."""
    if not scheme.changes_lines:
        return None
    from geval_py.reading.preparation import preparation_of

    return preparation_of(scheme)


def _signature(
    scores: Sequence[MetricScore],
    output: str | None,
    expected: str | None,
    inputs: Text | None,
    split: Split,
    vocabulary: frozenset[str],
    raw_filters: bool,
) -> Signature:
    """Sign scores (at least one) of files with these digests, of an input that was read, and of a vocabulary."""

    def digest(text: str) -> str:
        from hashlib import sha256  # OpenSSL's, which takes long to load; most runs sign nothing

        return sha256(text.encode()).hexdigest()

    differ = raw_filters and any(score.scheme.selecting_flags and score.scheme.changes_lines for score in scores)
    return Signature(
        metrics=tuple(score.scheme.text for score in scores),
        bits=tuple(score.metric.bits for score in scores),
        lines=scores[0].statistics.lines,
        expected=expected,
        output=output,
        input=None if inputs is None else inputs.sha256,
        header=None if inputs is None else digest("\t".join(split.in_header)),
        vocabulary=digest("\n".join(sorted(vocabulary))) if vocabulary else None,
        tokenizer=next((score.scheme.tokenizer for score in scores if score.scheme.tokenizer), None),
        filters="raw" if differ else None,
        library=library_signature(scores),
    )


def library_signature(scores: Sequence[MetricScore]) -> str | None:
    """Return the signatures of the libraries that compute some scores, with ``;`` for ``|``; None for no library."""
    signed = [score.metric.signature(score.statistics) for score in scores if score.metric.signature is not None]
    return ",".join(text.replace("|", ";") for text in signed) or None
