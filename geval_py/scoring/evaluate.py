"""Read an output and its expected file once, and score it with every metric.

    schemes ──> columns of line statistics, of all lines or of some ──> scores

Metrics that need the same column share it. What only schemes that select or change lines need is imported for them.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from geval_py.errors import DataError, MalformedLineError, MissingFileError, SchemeError, UsageError
from geval_py.reading.config import Task
from geval_py.reading.items import InputReader, InputText, Texts
from geval_py.reading.lines import LineReader, decode_lines
from geval_py.reading.sources import can_be_reread, is_part_of
from geval_py.reading.splits import Split, read_vocabulary
from geval_py.scoring.blocks import Block, Progress, Threads
from geval_py.scoring.metrics import column_of, find_metric
from geval_py.scoring.metrics.base import HashedColumn, LineStatistics, Metric
from geval_py.scoring.scores import (
    Failure,
    MetricScore,
    NoScore,
    ScoredOutput,
    Signature,
    evaluations_of,
    failure_of,
    scores_of,
)
from geval_py.text import visible
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any, TypeAlias

    from geval_py.reading.outputs import Output
    from geval_py.reading.preparation import Preparation
    from geval_py.reading.schemes import EvaluationScheme
    from geval_py.scoring.blocks import Scorer, Workers
    from geval_py.scoring.metrics.base import Column
    from geval_py.scoring.selection import Choice, Found, Key, Selection

Named: TypeAlias = "tuple[EvaluationScheme, Metric]"  # a scheme, and its metric
Watch: TypeAlias = "Callable[[Output], AbstractContextManager[Progress]]"  # shows the progress on an output


def evaluate_split(
    task: Task,
    split: Split,
    schemes: Sequence[Named] | None = None,
    *,
    keep_texts: bool = False,
    reread: bool = False,
    raw_filters: bool = False,
    sign: bool = False,
    workers: Workers | None = None,
    watch: Watch | None = None,
) -> Iterator[ScoredOutput | Failure]:
    """Score the outputs of a split, each read once, with the metrics of a task, or with some of them.

    Yields a Failure for an output that is at fault, or of which a filter selects no line; other errors are raised.
    ``watch`` makes what shows the progress on an output; for the other arguments and the errors see
    :func:`score_output`.
    """
    schemes = select_schemes(task) if schemes is None else schemes
    vocabulary = vocabulary_for(schemes, task)
    again = reread and split.input is not None and can_be_reread(split.input)
    input_text = InputText(split, keep=(keep_texts or len(split.outputs) > 1) and not again, digest=sign)
    for output in split.outputs:
        with nullcontext() if watch is None else watch(output) as progress:
            try:
                result = score_output(
                    split,
                    output,
                    schemes,
                    vocabulary,
                    keep_texts=keep_texts,
                    reread=reread,
                    raw_filters=raw_filters,
                    input_text=input_text,
                    sign=sign,
                    workers=workers,
                    progress=progress,
                )
            except (DataError, SchemeError) as error:
                if error.path != output.path and not is_part_of(error.path, output.path):
                    raise
                result = Failure(output=output, error=error)
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


def score_output(
    split: Split,
    output: Output,
    schemes: Sequence[Named],
    vocabulary: frozenset[str],
    *,
    keep_texts: bool = False,
    reread: bool = False,
    raw_filters: bool = False,
    input_text: InputText | None = None,
    sign: bool = False,
    workers: Workers | None = None,
    progress: Progress | None = None,
) -> ScoredOutput | Failure:
    """Score one output with all metrics, reading it once; a Failure where some, but not all, have no line of it.

    ``keep_texts`` keeps the texts in memory or, with ``reread``, reads those in files again. With ``raw_filters``,
    flags that select lines look at them as they are, not as the text flags leave them. ``input_text`` is the split's
    input, shared by several outputs; ``sign`` computes the signature; ``workers`` (by default, a thread a core)
    score; ``progress`` is called after each block. Raises DataError, and SchemeError for a filter that no line has.
    """
    workers = workers or Threads()
    keys = [key_of(named, vocabulary, raw_filters) for named in schemes]
    selections = selections_of(schemes, keys, split)
    input_text = input_text or InputText(split, keep=keep_texts, digest=sign)
    if output.fault is not None:
        raise output.fault
    columns = tuple(dict.fromkeys(column for choice, column in keys if choice is None))
    # Rows in buffers have no texts, and only metrics on hashed words take them.
    listed = not (sign or keep_texts or selections) and all(isinstance(column, HashedColumn) for column in columns)
    with (
        LineReader(output.path, header=split.output_header, digest=sign and workers.are_here) as outputs,
        LineReader(split.expected, header=split.output_header, digest=sign) as expected,
    ):
        again = reread or not workers.are_here
        texts = Texts.of(outputs, expected, split.output_header, reread=again) if keep_texts else None
        inputs = _inputs(split, input_text, schemes, selections.values())
        labelled = _labelled(columns, schemes, keys)
        scorer = workers.scorer(outputs, expected, labelled, digest=sign, selects=bool(selections), listed=listed)
        statistics, file_lines = read_statistics(scorer, columns, inputs, selections.values(), texts, progress)
    found: dict[Key, Found] = {**statistics}
    if selections:
        from geval_py.scoring.selection import statistics_of_selected

        found |= statistics_of_selected(selections, _names_of(schemes, keys), split, output)
    results = results_of(schemes, keys, found, selections)
    scores = scores_of(results)
    signature = None
    if sign:
        of_input = (input_text.sha256, split.in_header) if inputs else (None, None)
        signature = _signature(scores, scorer.sha256, expected.sha256, of_input, vocabulary, raw_filters)
    evaluation = ScoredOutput(
        split=split, output=output, scores=scores, file_lines=file_lines, signature=signature, input=input_text,
        texts=texts,
    )  # fmt: skip
    return failure_of(evaluation, results) or evaluation


class NamedColumn(Value):
    """Another column, whose errors name the metrics that are made from it; no name is none of several."""

    column: Column
    metrics: tuple[str, ...]

    def statistics(self, outputs: Any, expected: bytes, first_line: int) -> LineStatistics:
        try:
            return self.column.statistics(outputs, expected, first_line)
        except MalformedLineError as error:
            error.metrics = self.metrics
            raise


def _labelled(columns: Sequence[Column], schemes: Sequence[Named], keys: Sequence[Key]) -> list[NamedColumn]:
    names = _names_of(schemes, keys)
    return [NamedColumn(column=column, metrics=names[None, column]) for column in columns]


def _names_of(schemes: Sequence[Named], keys: Sequence[Key]) -> dict[Key, tuple[str, ...]]:
    """Return for each key the names of its metrics; no names if all metrics have the same key."""
    if len(set(keys)) == 1:
        return {keys[0]: ()}
    names: dict[Key, tuple[str, ...]] = {}
    for named, key in zip(schemes, keys, strict=True):
        names[key] = (*names.get(key, ()), shown_name(*named))
    return names


def _inputs(
    split: Split, text: InputText, schemes: Sequence[Named], selections: Iterable[Selection]
) -> InputReader | None:
    """Return a reader of the input, if a metric or a selection needs it; raises MissingFileError without an input."""
    needing = [metric.name for _, metric in schemes if metric.needs_input]
    if needing and split.input is None:
        what, hint = "No file with the input", f"{needing[0]} compares its lines with the answers"
        raise MissingFileError(what=what, path=split.input_place, hint=hint)
    return InputReader(text) if needing or any(selection.filter.needs_input for selection in selections) else None


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
    """Return the first scheme with a name, as we show it, as it was written or as GEval shows it.

    Raises UsageError.
    """
    for named in schemes:
        if name in (shown_name(*named), named[0].text):
            return named
    for named in schemes:
        if name == _geval_name(*named):
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


def _geval_name(scheme: EvaluationScheme, metric: Metric) -> str:
    from geval_py.scoring.metrics.registry import geval_name

    name, colon, flags = shown_name(scheme, metric).partition(":")
    return f"{geval_name(name)}{colon}{flags}" if name == metric.name else name + colon + flags


def preparation_for(scheme: EvaluationScheme) -> Preparation | None:
    """Return the change that a scheme's text flags and tokenizer make to a line; None for none."""
    if not scheme.changes_lines:
        return None
    from geval_py.reading.preparation import preparation_of

    return preparation_of(scheme)


def key_of(named: Named, vocabulary: frozenset[str], raw_filters: bool) -> Key:
    """Return the key of a metric's statistics; with ``raw_filters``, flags select lines by their unprepared text.

    A metric that needs the input is computed from collected lines, as if a flag had selected all of them. Only such a
    metric's text flags change the input; the tokenizer of any metric splits it for the flags that select lines.
    """
    scheme, metric = named
    preparation = preparation_for(scheme)
    collects = scheme.selecting_flags or metric.needs_input
    choice: Choice | None = None
    if collects and raw_filters:
        choice = scheme.selecting_flags, None, None
    elif collects:
        of_input = preparation if metric.needs_input else preparation_for(scheme.replace(flags=()))
        choice = scheme.selecting_flags, preparation, of_input
    return choice, column_of(metric, vocabulary, preparation)


def selections_of(schemes: Sequence[Named], keys: Sequence[Key], split: Split) -> dict[Choice, Selection]:
    """Return an empty selection for each choice of lines."""
    if not any(choice for choice, _ in keys):
        return {}
    from geval_py.scoring.selection import Selection

    return {
        choice: Selection(scheme, split.in_header, *choice[1:])
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
    statistics: list[LineStatistics] = []
    lines = 0
    for block, scored in scorer.scored(progress):
        if not statistics:
            statistics = list(scored)
        else:
            for so_far, of_block in zip(statistics, scored, strict=True):
                so_far.extend(of_block)
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
    return {(None, column): of_lines for column, of_lines in zip(columns, statistics, strict=True)}, lines


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


def _signature(
    scores: Sequence[MetricScore],
    output: str | None,
    expected: str | None,
    of_input: tuple[str | None, Sequence[str] | None],
    vocabulary: frozenset[str],
    raw_filters: bool,
) -> Signature:
    """Sign scores (at least one) of files with these digests, the input's columns, and a vocabulary."""
    from hashlib import sha256

    def digest(text: str) -> str:
        return sha256(text.encode()).hexdigest()

    differ = raw_filters and any(score.scheme.selecting_flags and score.scheme.changes_lines for score in scores)
    input_digest, header = of_input
    return Signature(
        metrics=tuple(score.scheme.text for score in scores),
        bits=tuple(score.metric.bits for score in scores),
        lines=scores[0].statistics.lines,
        expected=expected,
        output=output,
        input=input_digest,
        header=None if header is None else digest("\t".join(header)),
        vocabulary=digest("\n".join(sorted(vocabulary))) if vocabulary else None,
        tokenizer=next((score.scheme.tokenizer for score in scores if score.scheme.tokenizer), None),
        filters="raw" if differ else None,
        library=library_signature(scores),
    )


def library_signature(scores: Sequence[MetricScore]) -> str | None:
    """Return the signatures of the libraries that compute some scores, with ``;`` for ``|``; None for no library."""
    signed = [score.metric.signature(score.statistics) for score in scores if score.metric.signature is not None]
    return ",".join(text.replace("|", ";") for text in signed) or None
