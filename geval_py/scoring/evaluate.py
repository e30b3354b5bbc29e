"""Read an output and its expected file once, and score it with every metric.

    lines ──> columns of line statistics ──> scores

Metrics that need the same column share it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from geval_py.errors import DataError, UsageError
from geval_py.reading.challenge import Challenge
from geval_py.reading.inputs import InputReader, InputText
from geval_py.reading.lines import LineReader, decode_lines
from geval_py.reading.outputs import Output
from geval_py.reading.schemes import EvaluationScheme
from geval_py.reading.sources import can_be_reread
from geval_py.reading.splits import Split, locate, read_vocabulary
from geval_py.reading.task import Task
from geval_py.scoring.blocks import Block, BlockScorer
from geval_py.scoring.evaluation import Evaluation, Texts
from geval_py.scoring.failure import Failure, evaluations_of
from geval_py.scoring.metrics import Column, LineStatistics, Metric, column_of, find_metric
from geval_py.scoring.parallel import Progress
from geval_py.scoring.score import Score
from geval_py.text import visible

if TYPE_CHECKING:
    from geval_py.reading.preparation import Preparation
    from geval_py.scoring.selection import Selection
    from geval_py.scoring.signature import Signature


def evaluate(
    challenge: Challenge | str | os.PathLike[str],
    test: str = "test-A",
    *,
    out: str | os.PathLike[str] | None = None,
    metrics: str | Sequence[str] = (),
    keep_texts: bool = True,
) -> Evaluation:
    """Score one output of a challenge.

    ``challenge`` is a Challenge or its directory; ``test`` the name of the test set; ``out`` the output, looked
    for in the test set's directory and then as a path (by default the only one there is); ``metrics`` replace
    those of the challenge. ``keep_texts`` keeps the texts in memory, for :meth:`Evaluation.to_frame`.

    Raises GevalError: UsageError where a call is at fault, DataError where the data is.
    """
    task = _task(challenge, test, out, metrics)
    split = locate(task)
    if len(split.outputs) > 1:
        names = ", ".join(output.name for output in split.outputs)
        raise UsageError(message=f"there are several outputs ({names}): choose one with out=…")
    (evaluation,) = evaluations_of(evaluate_split(task, split, keep_texts=keep_texts, sign=True))
    return evaluation


def evaluate_all(
    challenge: Challenge | str | os.PathLike[str],
    test: str = "test-A",
    *,
    metrics: str | Sequence[str] = (),
    keep_texts: bool = True,
) -> list[Evaluation]:
    """Score all outputs of a test set, by their names; arguments and errors are those of :func:`evaluate`.

    An output that is at fault raises, at the first of them: to go on behind it, evaluate them one by one.
    """
    task = _task(challenge, test, None, metrics)
    return evaluations_of(evaluate_split(task, locate(task), keep_texts=keep_texts, sign=True))


def _task(
    challenge: Challenge | str | os.PathLike[str],
    test: str,
    out: str | os.PathLike[str] | None,
    metrics: str | Sequence[str],
) -> Task:
    challenge = challenge if isinstance(challenge, Challenge) else Challenge.open(challenge)
    texts = (metrics,) if isinstance(metrics, str) else tuple(metrics)
    return challenge.task.replace(
        test_name=test,
        out_files=challenge.task.out_files if out is None else (os.fspath(out),),
        alt_metrics=texts or challenge.task.alt_metrics,
    )


def evaluate_split(
    task: Task,
    split: Split,
    schemes: Sequence[Named] | None = None,
    *,
    keep_texts: bool = False,
    reread: bool = False,
    sign: bool = False,
    threads: int | None = None,
    watch: Watch | None = None,
) -> Iterator[Evaluation | Failure]:
    """Score the outputs of a split, each read once, with the metrics of a task, or with some of them.

    An output that is at fault is a Failure; what is wrong in another file is raised, since it is for all outputs.
    ``watch`` gives, for an output, what watches its progress; the other arguments are those of
    :func:`evaluate_output`, and so are the errors.
    """
    schemes = select_schemes(task) if schemes is None else schemes
    vocabulary = vocabulary_for(schemes, task)
    several_uses = keep_texts or len(split.outputs) > 1
    from_file = reread and split.input is not None and can_be_reread(split.input)
    input_text = InputText(split, keep=several_uses and not from_file, digest=sign)

    for output in split.outputs:
        with nullcontext() if watch is None else watch(output) as progress:
            try:
                result: Evaluation | Failure = evaluate_output(
                    split,
                    output,
                    schemes,
                    vocabulary,
                    keep_texts=keep_texts,
                    reread=reread,
                    input_text=input_text,
                    sign=sign,
                    threads=threads,
                    progress=progress,
                )
            except DataError as error:
                if error.path != output.path:
                    raise
                result = Failure(output=output, error=error)
        yield result


Named = tuple[EvaluationScheme, Metric]
Watch = Callable[[Output], AbstractContextManager[Progress]]


def select_schemes(task: Task) -> list[Named]:
    """Give the schemes to score with and their metrics; raises SchemeError, UsageError."""
    schemes = [(scheme, find_metric(scheme.metric)) for scheme in task.schemes()]
    if not schemes:
        raise UsageError(message="no metric given, use --metric option\n  for example -m PerplexityHashed")
    return [_named(name, schemes) for name in task.select_metrics] or schemes


def _named(name: str, schemes: Sequence[Named]) -> Named:
    """Give the first scheme whose score is shown under a name; raises UsageError."""
    for named in schemes:
        if shown_name(*named) == name:
            return named
    names = visible(", ".join(shown_name(*named) for named in schemes))
    raise UsageError(message=f"Cannot find metric named '{visible(name)}'\n  there are {names}")


def shown_name(scheme: EvaluationScheme, metric: Metric) -> str:
    """Give the name under which a scheme's score is shown."""
    if any(flag.letter == "N" for flag in scheme.flags):
        return scheme.name
    return f"{metric.name}:{scheme.flag_text}" if scheme.flags else metric.name


def vocabulary_for(schemes: Sequence[Named], task: Task) -> frozenset[str]:
    """Read the vocabulary if a metric needs it."""
    return read_vocabulary(task) if any(m.needs_vocabulary for _, m in schemes) else frozenset()


def evaluate_output(
    split: Split,
    output: Output,
    schemes: Sequence[Named],
    vocabulary: frozenset[str],
    *,
    keep_texts: bool = False,
    reread: bool = False,
    input_text: InputText | None = None,
    sign: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Score one output with all metrics, reading it once.

    ``keep_texts`` keeps the texts in memory or, with ``reread``, where they are in files, reads them again there.
    ``input_text`` is the split's input, where it is shared by several outputs and may be read only once;
    ``sign`` computes the signature; ``threads`` is the number of threads that score (by default, as many as there
    are cores) beside the one that reads; ``progress`` is called after each block. The scores are the same for any
    number of threads. Raises DataError, and SchemeError for a metric's filter that no line has.
    """
    keys = [(scheme.filters, column_of(metric, vocabulary, _preparation(scheme))) for scheme, metric in schemes]
    selections = _selections([scheme for scheme, _ in schemes if scheme.filters], split)
    needs_input = any(selection.filter.needs_input for selection in selections.values())
    input_text = input_text or InputText(split, keep=keep_texts, digest=sign)
    with (
        LineReader(output.path, header=split.output_header, digest=sign) as outputs,
        LineReader(split.expected, header=split.output_header, digest=sign) as expected,
    ):
        texts = Texts.of(input_text, outputs, expected, split, reread=reread) if keep_texts else None
        of_all_lines = tuple(dict.fromkeys(column for filters, column in keys if not filters))
        inputs = InputReader(input_text) if needs_input else None
        reading = _Reading(outputs, expected, inputs, of_all_lines, tuple(selections.values()))
        found = reading.score(texts, threads, progress)
    statistics: dict[_Key, LineStatistics] = {((), column): found[column] for column in found}
    for filters, column in dict.fromkeys(keys):
        if filters:
            statistics[filters, column] = selections[filters].statistics(column, output.path, split.expected)
    scores = tuple(_score(named, statistics[key]) for named, key in zip(schemes, keys, strict=True))
    first_filter = keys[0][0]
    digests = {"expected": expected.sha256, "output": outputs.sha256}
    if needs_input:
        digests["input"] = input_text.sha256
    header = split.in_header if needs_input else None
    return Evaluation(
        split=split,
        output=output,
        scores=scores,
        line_numbers=selections[first_filter].line_numbers if first_filter else None,
        signature=_signature(scores, digests, header, vocabulary) if sign else None,
        texts=texts,
    )


_Key = tuple[tuple[str, ...], Column]  # what a metric is made from: the filters, and the column


def _score(named: Named, statistics: LineStatistics) -> Score:
    scheme, metric = named
    value = metric.value(statistics)
    return Score(name=shown_name(scheme, metric), value=value, metric=metric, scheme=scheme, statistics=statistics)


@dataclass(frozen=True, slots=True)
class _Reading:
    """What is read side by side, and what is made of it: columns of all lines, and lines selected for later."""

    outputs: LineReader
    expected: LineReader
    inputs: InputReader | None
    columns: tuple[Column, ...]
    selections: tuple[Selection, ...]

    def score(
        self, texts: Texts | None, threads: int | None, progress: Progress | None
    ) -> dict[Column, LineStatistics]:
        """Read all, in blocks: score the columns, select lines, and keep the texts where that is asked for."""
        statistics = {column: LineStatistics() for column in self.columns}
        scoring = BlockScorer(self.outputs, self.expected, self.columns)
        for block, scored in scoring.scored(threads, progress):
            for of_lines, of_block in zip(statistics.values(), scored, strict=True):
                of_lines.extend(of_block)
            if self.selections:
                self._select(block)
            if texts is not None:
                texts.outputs.add(block.outputs, block.lines)
                texts.expected.add(block.expected, block.lines)
        if self.inputs is not None:
            self.inputs.check_end()
        return statistics

    def _select(self, block: Block) -> None:
        outputs, expected = decode_lines(block.outputs), decode_lines(block.expected)
        inputs = [""] * len(outputs) if self.inputs is None else self.inputs.take(len(outputs))
        items = list(zip(inputs, expected, outputs, strict=True))
        for selection in self.selections:
            selection.add(block.first_line, items)


def _selections(filtered: Sequence[EvaluationScheme], split: Split) -> dict[tuple[str, ...], Selection]:
    """Give the lines to select for schemes with filters; who has none does not wait for the import."""
    if not filtered:
        return {}
    from geval_py.scoring.selection import Selection

    return {scheme.filters: Selection(scheme, split.in_header) for scheme in filtered}


def _preparation(scheme: EvaluationScheme) -> Preparation | None:
    """Give what a scheme's text flags do to a line; who has none does not wait for the import."""
    if not scheme.text_flags:
        return None
    from geval_py.reading.preparation import preparation_of

    return preparation_of(scheme)


def _signature(
    scores: Sequence[Score],
    digests: Mapping[str, str | None],
    header: Sequence[str] | None,
    vocabulary: frozenset[str],
) -> Signature:
    from geval_py.scoring.signature import Signature

    return Signature.of(scores, **digests, header=header, vocabulary=vocabulary)
