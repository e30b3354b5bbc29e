"""Read an output and its expected file once, and score it with every metric.

    schemes ──> columns of line statistics, of all lines or of some ──> scores

Metrics that need the same column share it. At the end are the notes on an evaluation: what a user should know of its
scores, said once for the command, Python and pages.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from importlib import import_module
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from geval_py.errors import (
    DataError,
    LineCountError,
    MalformedLineError,
    MissingPackageError,
    SchemeError,
    UsageError,
)
from geval_py.reading.config import CONFIG_FILE, Task
from geval_py.reading.files import ANSWERS_ALONE, File, absolute, name_of, twins_note
from geval_py.reading.lines import LineReader, decode_lines, first_name, read_lines
from geval_py.reading.outputs import MIXED, MIXING_ENDING, Output
from geval_py.reading.schemes import DEFAULT_BITS, MAX_BITS, MIN_BITS, EvaluationScheme
from geval_py.reading.splits import Split, answers_in, read_vocabulary
from geval_py.scoring.blocks import Block, Progress, ProgressOf, map_blocks, no_progress
from geval_py.scoring.metrics.base import (
    HASHED_FAMILIES,
    LineStatistics,
    Metric,
    StatisticsColumn,
    find_in_family,
)
from geval_py.scoring.scores import FEATURE_OF_INPUT, Evaluation, Score, check_input_length, without_faults
from geval_py.text import counted, named, nearest, visible
from geval_py.version import installs

if TYPE_CHECKING:
    from geval_py.reading.preparation import Preparation
    from geval_py.scoring.selection import SelectedLines

SAMPLED_BYTES = 1 << 18  # of an output, by which its lines are judged
SAMPLED_LINES = 100  # in which the first line far above one is looked for

Named: TypeAlias = tuple[EvaluationScheme, Metric]  # a scheme, and its metric


def evaluate_split(
    task: Task,
    split: Split,
    schemes: Sequence[Named] | None = None,
    *,
    keep: bool = False,
    vocabulary: frozenset[str] = frozenset(),
    watch: ProgressOf = no_progress,
    **how: Any,
) -> Iterator[Evaluation]:
    """Score the outputs of a split, each read once, with the metrics of a task, or with some of them.

    An output that is at fault, or of which a filter selects no line, has errors; other errors are raised. Outputs
    whose texts are needed later are to be told to ``keep`` them. The ``vocabulary`` is by default the task's.
    ``watch`` returns a progress callback for an output's name; for the other arguments and the errors see
    :func:`score_output`.
    """
    schemes = select_schemes(task) if schemes is None else schemes
    vocabulary = vocabulary or vocabulary_for(schemes, task)
    for output in split.outputs:
        output.file.keep = output.file.keep or keep
        with watch(output.name) as progress:
            try:
                evaluation = score_output(split, output, schemes, vocabulary, progress=progress, **how)
            except (DataError, SchemeError) as error:
                if error.path != output.path:
                    raise
                if isinstance(error, LineCountError) and error.what == "output" and task.directory:
                    from geval_py.reading.challenge import sets_of_length  # which few runs need

                    error.hint = sets_of_length(task.directory, error.lines, split.name)
                failed = [failed_score(*named, error) for named in schemes]
                evaluation = Evaluation(split, output, failed)
        evaluation.notes = notes_of(evaluation, task)
        yield evaluation
        if not output.file.keep:
            output.file.release()


def vocabulary_for(schemes: Sequence[Named], task: Task) -> frozenset[str]:
    """Read the vocabulary if a metric needs it."""
    return read_vocabulary(task) if any(m.needs_vocabulary for _, m in schemes) else frozenset()


def evaluate_output(
    split: Split, output: Output, schemes: Sequence[Named], vocabulary: frozenset[str], **how: Any
) -> Evaluation:
    """Score one output as :func:`score_output` does; raises SchemeError where some metric has no score."""
    (evaluation,) = without_faults([score_output(split, output, schemes, vocabulary, **how)])
    return evaluation


class MetricPlan(NamedTuple):
    """How a scheme's score is made: from the statistics of a column, of selected lines (None: of all lines)."""

    scheme: EvaluationScheme
    metric: Metric
    column: StatisticsColumn
    selection: SelectedLines | None

    @property
    def table(self) -> tuple[SelectedLines | None, StatisticsColumn]:
        """What tells the statistics from others."""
        return self.selection, self.column


def plan_metrics(
    schemes: Iterable[Named],
    vocabulary: frozenset[str] = frozenset(),
    header: tuple[str, ...] = (),
    *,
    raw_filters: bool = False,
) -> list[MetricPlan]:
    """Plan the score of each scheme; with ``raw_filters``, flags select lines by their unprepared text.

    A metric that needs the input is computed from collected lines, as if a flag had selected all of them. Only such a
    metric's text flags change the input; the tokenizer of any metric splits it for the flags that select lines.
    ``header`` has the columns of the input. Raises SchemeError, MissingPackageError.
    """
    plans = list[MetricPlan]()
    selections: dict[Any, SelectedLines] = {}
    for scheme, metric in schemes:
        preparation, selection = preparation_for(scheme), None
        if scheme.selecting_flags or metric.needs_input:
            from geval_py.scoring.selection import SelectedLines

            of_input = preparation if metric.needs_input else preparation_for(scheme._replace(flags=()))
            prepared = (None, None) if raw_filters else (preparation, of_input)
            selection = SelectedLines(scheme, header, *prepared)
            selection = selections.setdefault((scheme.selecting_flags, prepared), selection)
        plans.append(MetricPlan(scheme, metric, column_of(metric, vocabulary, preparation), selection))
    return plans


def score_output(
    split: Split,
    output: Output,
    schemes: Sequence[Named],
    vocabulary: frozenset[str],
    *,
    raw_filters: bool = False,
    **how: Any,
) -> Evaluation:
    """Score one output with all metrics, reading it once; a score has an error where no line has its features.

    With ``raw_filters``, flags that select lines look at them as they are, not as the text flags leave them. The
    other arguments are those of :func:`_read_tables`. Raises DataError, and SchemeError for a filter that no line of
    any output has, and if no metric has a score.
    """
    if output.fault is not None:
        raise output.fault
    plans = plan_metrics(schemes, vocabulary, split.in_header, raw_filters=raw_filters)
    tables, lines, first_block = _read_tables(split, output, plans, by_line=raw_filters, **how)
    scores = []
    for plan in plans:
        if plan.selection is not None and plan.table not in tables:
            tables[plan.table] = plan.selection.statistics(
                plan.metric, plan.column, split, output, _names(plans, plan)
            )
        scores.append(score_of(plan, tables[plan.table], output))
    evaluation = Evaluation(split, output, scores, lines)
    evaluation.vocabulary, evaluation.raw_filters = vocabulary, raw_filters
    if first_block is not None and how.get("cluster") is None:
        evaluation.sample = first_block._replace(outputs=bytes(first_block.outputs[:SAMPLED_BYTES]))
    if not evaluation.has_scores:
        raise evaluation.errors[0]
    return evaluation


def _read_tables(
    split: Split,
    output: Output,
    plans: Sequence[MetricPlan],
    *,
    by_line: bool,
    threads: int | None = None,
    cluster: Any = None,
    progress: Progress | None = None,
) -> tuple[dict[Any, LineStatistics | SchemeError], int, Block | None]:
    """Read the files once, and show each line to selections.

    Return the statistics of all lines, their number, and the first block.

    By default a thread a core scores, or the workers of a ``cluster``, a Dask client; ``progress`` is called after
    each block. Raises MissingFileError and UsageError where an input is needed that is not there.
    """
    selections = dict.fromkeys(plan.selection for plan in plans if plan.selection is not None)
    uses = [f"{plan.metric.name} compares its lines with the answers" for plan in plans if plan.metric.needs_input]
    uses += [FEATURE_OF_INPUT for selection in selections if selection.filter.needs_input]
    if uses and split.input is None:
        raise split.missing_input(uses[0])
    if selections and cluster is not None:
        what = "metrics whose flags (f, p) select some, or that look at the input (CharMatch)"
        raise UsageError(f"a cluster scores all lines, and sees no input: leave out {what}")
    columns = {plan.column: _names(plans, plan) for plan in plans if plan.selection is None}
    work = partial(score_block, columns, split.expected.name, output.file.name, by_line)
    header, tables, lines, first_block = split.output_header, list[LineStatistics](), 0, None
    inputs: Iterator[str] = repeat("")
    if uses and split.input is not None:  # where it is too short, there is an error in the end
        inputs = chain(read_lines(split.input, header=first_name(split.in_header)), inputs)
    with LineReader(output.file, header=header) as outputs, LineReader(split.expected, header=header) as expected:
        if cluster is None:
            blocks = map_blocks(outputs, expected, work, threads=threads, matched=True, progress=progress)
        else:
            from geval_py.scoring.cluster import map_on

            blocks = map_on(cluster, outputs, expected, work, progress)
        for block, scored in blocks:
            first_block = first_block or block
            for table, of_block in zip(tables, scored, strict=False):  # no table before the first block
                table.extend(of_block)
            tables = tables or scored
            lines += block.lines
            if selections:
                texts = list(islice(inputs, block.lines))
                for selection in selections:
                    selection.add(block.first_line, texts, decode_lines(block.expected), decode_lines(block.outputs))
    if uses:
        check_input_length(split, lines)
    for selection in selections:
        selection.finish()
    return {(None, column): table for column, table in zip(columns, tables, strict=True)}, lines, first_block


def score_of(plan: MetricPlan, table: LineStatistics | SchemeError, output: Output) -> Score:
    """Compute a metric's score from its statistics, or hold the error in their place."""
    if output.file.lists_answers_alone and plan.metric.needs_candidates:
        advice = f"{ANSWERS_ALONE}; use LogLoss, Likelihood or Perplexity"
        message = f"{plan.metric.name} needs several candidates: {advice}"
        table = SchemeError(message, scheme=plan.scheme.text, path=output.path)
    if isinstance(table, SchemeError):
        return failed_score(plan.scheme, plan.metric, table)
    name = shown_name(plan.scheme, plan.metric)
    score = Score(name, plan.metric.value(table), plan.metric, plan.scheme, table)
    if plan.selection is not None:
        score.line_numbers = plan.selection.line_numbers
        score.reads_input = plan.metric.needs_input or plan.selection.filter.needs_input
    return score


def failed_score(scheme: EvaluationScheme, metric: Metric, error: DataError | SchemeError) -> Score:
    """Return what stands in the place of a score."""
    return Score(shown_name(scheme, metric), math.nan, metric, scheme, LineStatistics(), error=error)


def _names(plans: Sequence[MetricPlan], one: MetricPlan) -> tuple[str, ...]:
    """Return the names of the metrics with the same statistics; no names if these are all metrics."""
    same = [shown_name(plan.scheme, plan.metric) for plan in plans if plan.table == one.table]
    return () if len(same) == len(plans) else tuple(same)


def score_block(
    columns: Mapping[StatisticsColumn, tuple[str, ...]],
    expected_path: str,
    output_path: str,
    by_line: bool,
    block: Block,
) -> list[LineStatistics]:
    """Score a block for each of some columns, with the names of the metrics that are made from it.

    Raises MalformedLineError, the first in the order of lines. The error names the metrics of the columns with the
    same error, unless these are all of several columns. If a line has no expected one, only what GEval reads before
    it counts the lines is an error: the output line, but not if it scores line by line.
    """
    scored: list[LineStatistics] = []
    errors: list[MalformedLineError] = []
    outputs = block.outputs
    for column, names in columns.items():
        try:
            scored.append(column.statistics(outputs, block.expected, block.first_line))
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
        first.path = output_path if first.role == "output" else expected_path
        raise first
    return scored


def find_metric(name: str) -> Metric:
    """Return the metric of a name, which may end in a number: of bits, the β of an F-score, … Raises SchemeError.

    >>> find_metric("LogLossHashed8").bits
    8
    """
    metric = find_in_family(name, HASHED_FAMILIES)
    if metric is not None:
        return metric
    from geval_py.scoring.metrics import registry

    try:
        metric = registry.find(name)
    except SchemeError as error:
        error.scheme = name  # not that of the metric behind a prefix
        raise
    if metric is not None:
        return metric
    stem = name.rstrip("0123456789")
    close = nearest(stem, registry.METRICS)
    if stem in HASHED_FAMILIES:
        advice = f"the number of bits is from {MIN_BITS} to {MAX_BITS}"
    else:
        advice = f"did you mean {close}?" if close else "geval --list-metrics shows those that are known"
    raise SchemeError(f"Unknown or broken metric definition: {visible(name)}\n  {advice}", scheme=name)


def column_of(metric: Metric, vocabulary: frozenset[str], preparation: Preparation | None = None) -> StatisticsColumn:
    """Return the column of statistics that a metric is made from, of prepared lines if there is a preparation.

    ``vocabulary`` is for the metrics that need one; it is prepared as the lines are. Raises MissingPackageError.
    """
    try:
        for package in metric.needs:
            import_module(package)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        message = f"this metric needs {missing}, of the extra text: {installs('text')}"
        raise MissingPackageError(message, package=missing) from error
    column = metric.column
    if preparation is None and not metric.needs_vocabulary:
        return column
    from geval_py.scoring.metrics.columns import PreparedColumn, RowColumn

    if metric.needs_vocabulary and isinstance(column, RowColumn):
        words = vocabulary if preparation is None else frozenset(map(preparation, vocabulary))
        column = column._replace(vocabulary=words)
    return column if preparation is None else PreparedColumn(column, preparation)


def select_schemes(task: Task) -> list[Named]:
    """Return the schemes to score with and their metrics; raises SchemeError, UsageError.

    Schemes whose metric is tokenised get the task's tokenizer.
    """
    schemes: list[Named] = []
    for scheme in task.schemes():
        metric = find_metric(scheme.metric)
        schemes.append((scheme._replace(tokenizer=task.tokenizer) if metric.is_tokenised else scheme, metric))
    if not schemes:
        raise UsageError("no metric given, use", arguments=("metric",))
    chosen = []
    for name in task.select_metrics:
        matching = [named for named in schemes if name in accepted_names(*named)]
        if not matching:
            names = visible(", ".join(shown_name(*named) for named in schemes))
            raise UsageError(f"Cannot find metric named '{visible(name)}'\n  there are {names}")
        chosen.append(matching[0])
    return chosen or schemes


def accepted_names(scheme: EvaluationScheme, metric: Metric) -> tuple[str, ...]:
    """Return the names that select a scheme: as it was written, as it is shown, and as GEval shows it."""
    from geval_py.scoring.metrics.registry import geval_name

    as_geval = metric._replace(name=geval_name(metric.name))
    return scheme.text, shown_name(scheme, metric), shown_name(scheme, as_geval)


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


# Notes


def notes_of(evaluation: Evaluation, task: Task) -> tuple[str, ...]:
    """Return the notes on an evaluation of a task: on its files, on how they were read, and on its scores."""
    scores = [score for score in evaluation.scores if score.error is None]
    if not scores:
        return ()
    fault, cause = _verdict(evaluation)
    return (
        *_notes_on_task(evaluation, task),
        *_notes_on_output(evaluation, scores, fault),
        *_notes_on_scores(evaluation, scores),
        *(() if fault else _notes_on_bad_scores(evaluation, scores, cause)),
    )


def _verdict(evaluation: Evaluation) -> tuple[str, str]:
    """Return what is wrong with the first lines of an output, and the likely cause of a bad score; "" for nothing."""
    if evaluation.sample is None:
        return "", ""
    of_words = [one for one in evaluation.scores if one.metric.is_of_words or one.metric.has_entries]
    main = (of_words or evaluation.scores)[0]
    other, bits = None if of_words else main.metric, main.metric.bits or DEFAULT_BITS
    are_plain = not main.scheme.text_flags
    from geval_py.checking.first_lines import faults_of_first_lines

    faults = faults_of_first_lines(evaluation.sample, evaluation.file_lines, other, bits, words_are_plain=are_plain)
    code, message, *_ = next(faults, ("", ""))
    return ("", message) if of_words and code == "W304" else (message, "")


def _notes_on_task(evaluation: Evaluation, task: Task) -> Iterator[str]:
    split, scores = evaluation.split, evaluation.scores
    if task.ignored:
        path = os.path.join(task.directory, CONFIG_FILE)
        yield f"{named(path)}: {', '.join(task.ignored)} ignored; no score depends on it"
    others = [score.metric.name for score in scores if not score.metric.is_of_words and not score.metric.is_tokenised]
    if task.tokenizer is not None and others:
        yield f"--tokenizer {task.tokenizer} does not change {others[0]}, which is of the lines as they are"
    if task.input_file is not None and split.input is None:
        yield f"there is no file {named(task.input_file)}; the input is not needed here"
    compared = any(score.metric.name == "CharMatch" and not score.scheme.text_flags for score in scores)
    if split.input is not None and compared:
        with closing(read_lines(split.input, header=first_name(split.in_header))) as lines:
            columns = next(lines, "").count("\t") + 1
        if columns > 1:
            whole = f"CharMatch compares the whole line of {named(split.input.name)}, which has {columns} columns"
            yield f"{whole}; `CharMatch:s<.*\\t><>` compares the last one alone"
    yield from _notes_on_file(split.expected)


def _notes_on_file(file: File) -> Iterator[str]:
    if not file.is_utf8:
        yield f"{named(file.name)} has bytes that are not UTF-8, and are read as U+FFFD; write it as UTF-8"
    yield from (f"{named(file.name)}: {note}" for note in file.notes)
    if (twins := twins_note(file.name)) is not None:
        yield twins


def _notes_on_output(evaluation: Evaluation, scores: list[Score], fault: str) -> Iterator[str]:
    """Yield notes on the file of the output, and on where it lies."""
    split, output = evaluation.split, evaluation.output
    table = max((score.statistics for score in scores), key=lambda table: table.far_above_one)
    yield from _notes_on_file(output.file)
    if fault:
        yield f"{named(output.path)}: {fault}"
    if table.far_above_one:
        from geval_py.reading.wordprobs import UNKNOWN_NUMBERS, far_above_one_note, number_advice, parse_line

        advice = UNKNOWN_NUMBERS
        # A line that no flag selects may be malformed.
        with suppress(MalformedLineError), closing(read_lines(output.file, header=split.output_header)) as texts:
            samples = (one for one in map(parse_line, islice(texts, SAMPLED_LINES)) if one.is_far_above_one)
            advice = next((number_advice(one.words, one.values) for one in samples), advice)
        yield f"{named(output.path)}: {far_above_one_note(table.far_above_one, table.lines, advice)}; {advice}"
    if not output.file.ends_in_newline and (few := cut_off_note(output.file, split.output_header)):
        yield f"{named(output.path)}: {few}"
    if output.file.is_in_no_folder:
        return
    folder = os.path.dirname(absolute(output.file.name))
    ours, theirs = os.path.realpath(os.path.dirname(split.expected)), os.path.realpath(folder)
    if ours != theirs and os.path.dirname(ours) == os.path.dirname(theirs) and answers_in(folder):
        answers = f"other answers than {named(split.expected.name)}, with which it was scored"
        yield f"{named(output.path)} lies beside {answers}; was -t {visible(os.path.basename(folder))} meant?"
    if MIXED in output.parameters:
        import json

        with suppress(OSError, ValueError, RecursionError), open(kept_path(output.path), encoding="utf-8") as kept:
            weights = json.load(kept)
            if isinstance(weights, dict) and weights.get("test") == split.name:
                yield f"{named(output.path)} was mixed on these lines: on others it would score a little worse"


def cut_off_note(file: File, header: str | None) -> str:
    """Return what to say of an output that may be cut off in its last line, which has no line end; "" for others."""
    entries = [line.rstrip(" ").count(" ") for line in read_lines(file, header=header)]
    if len(entries) < 2 or entries[-1] >= min(entries[:-1]):
        return ""
    few = f"its last line has no line end, and fewer entries ({entries[-1] + 1}) than all others"
    return f"{few}: the file may be cut off"


def kept_path(path: str) -> str:
    """Return the path of the weights by which an output was mixed."""
    return name_of(path).removesuffix(".tsv") + MIXING_ENDING


def _notes_on_scores(evaluation: Evaluation, scores: list[Score]) -> Iterator[str]:
    tables = [score.statistics for score in scores]
    if count := max(table.out_of_vocabulary for table in tables):
        lines = tables[0].lines
        where = "the vocabulary" if count < lines else "a vocabulary (name one with --vocabulary FILE)"
        yield (
            f"{count} of {counted(lines, 'expected word')} {'is' if count == 1 else 'are'} not in {where}; "
            "if the output does not list such a word, its loss is infinite"
        )
    for count, lines in {(table.infinite, table.lines): None for table in tables}:
        if count:
            yield f"{named(evaluation.output.path)}: the loss of {count} of {lines} lines is infinite"


def _notes_on_bad_scores(evaluation: Evaluation, scores: list[Score], cause: str) -> Iterator[str]:
    for score in scores:
        nothing = score.metric.uninformed_value
        if nothing is None or score.line_numbers is not None or score.statistics.infinite:
            continue
        is_worse = (score.value > nothing) == (score.metric.measure.direction == "lower")
        if is_worse and not math.isclose(score.value, nothing):
            figures = f"{score.name} is {score.value:.6g}, and {nothing:.6g} for `:1` on each line"
            note = f"{named(evaluation.output.path)}: {figures}: no guess at all would be better"
            is_explained = score.statistics.far_above_one or not cause
            yield note if is_explained else f"{note}\n  {cause}: see geval check"
            return
