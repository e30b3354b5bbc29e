"""Read an output and its expected file once, and score it with every metric.

    lines ──> columns of line statistics ──> scores

Metrics that need the same column share it.
"""

from __future__ import annotations

from contextlib import nullcontext

from geval_py.errors import DataError, SchemeError, UsageError
from geval_py.reading.items import InputReader, InputText, Texts
from geval_py.reading.lines import LineReader
from geval_py.reading.sources import can_be_reread, is_part_of
from geval_py.reading.splits import read_vocabulary
from geval_py.scoring.blocks import Threads
from geval_py.scoring.columns import key_of, read_statistics, results_of, select_schemes, selections_of
from geval_py.scoring.scores import Failure, ScoredOutput, Signature, evaluations_of, failure_of, scores_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from typing import Any, TypeAlias

    from geval_py.reading.outputs import Output
    from geval_py.reading.splits import Split, Task
    from geval_py.scoring.blocks import Workers
    from geval_py.scoring.columns import Found, Key, Named
    from geval_py.scoring.parallel import Progress
    from geval_py.scoring.scores import MetricScore
    from geval_py.scoring.selection import Selection

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
    with (
        LineReader(output.path, header=split.output_header, digest=sign and workers.are_here) as outputs,
        LineReader(split.expected, header=split.output_header, digest=sign) as expected,
    ):
        again = reread or not workers.are_here
        texts = Texts.of(outputs, expected, split.output_header, reread=again) if keep_texts else None
        inputs = _inputs(split, input_text, schemes, selections.values())
        columns = tuple(dict.fromkeys(column for choice, column in keys if choice is None))
        scorer = workers.scorer(outputs, expected, columns, digest=sign, selects=bool(selections))
        statistics, file_lines = read_statistics(scorer, columns, inputs, selections.values(), texts, progress)
    found: dict[Key, Found] = {**statistics}
    if selections:
        from geval_py.scoring.selection import statistics_of_selected

        found |= statistics_of_selected(selections, keys, split, output)
    results = results_of(schemes, keys, found, selections)
    scores = scores_of(results)
    signature = None
    if sign:
        of_input = (input_text.sha256, split.in_header) if inputs else (None, None)
        signature = _signature(scores, scorer.sha256, expected.sha256, of_input, vocabulary, raw_filters)
    evaluation = ScoredOutput(
        split=split,
        output=output,
        scores=scores,
        file_lines=file_lines,
        signature=signature,
        input=input_text,
        texts=texts,
    )
    return failure_of(evaluation, results) or evaluation


def _inputs(
    split: Split, text: InputText, schemes: Sequence[Named], selections: Iterable[Selection]
) -> InputReader | None:
    """Return a reader of the input, if a metric or a selection needs it; raises UsageError if there is no input."""
    needing = [metric.name for _, metric in schemes if metric.needs_input]
    if needing and split.input is None:
        raise UsageError(message=f"{needing[0]} looks at the input, and there is no input file")
    return InputReader(text) if needing or any(selection.filter.needs_input for selection in selections) else None


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
