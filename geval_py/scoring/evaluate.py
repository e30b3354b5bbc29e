"""Read an output and its expected file once, and score it with every metric.

    lines ──> columns of line losses ──> scores

Metrics that need the same column of losses share it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from geval_py.errors import UsageError
from geval_py.reading.challenge import Challenge, Split, locate, read_vocabulary
from geval_py.reading.inputs import InputReader, InputText
from geval_py.reading.lines import LineReader, decode_lines
from geval_py.reading.options import Options
from geval_py.reading.outputs import Output
from geval_py.reading.schemes import EvaluationScheme
from geval_py.scoring.blocks import Block, BlockScorer
from geval_py.scoring.evaluation import Evaluation, Texts
from geval_py.scoring.metrics import Column, LineLosses, Metric, column_of, find_metric
from geval_py.scoring.parallel import Progress
from geval_py.scoring.score import Score
from geval_py.text import visible
from geval_py.version import __version__

if TYPE_CHECKING:
    from geval_py.reading.preparation import Preparation
    from geval_py.scoring.selection import Selection


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
    challenge = challenge if isinstance(challenge, Challenge) else Challenge.open(challenge)
    texts = (metrics,) if isinstance(metrics, str) else tuple(metrics)
    out_file = None if out is None else os.fspath(out)
    options = replace(
        challenge.options,
        test_name=test,
        out_file=out_file or challenge.options.out_file,
        alt_metrics=texts or challenge.options.alt_metrics,
    )
    split = locate(options)
    schemes = select_schemes(options)
    if len(split.outputs) > 1:
        names = ", ".join(output.name for output in split.outputs)
        raise UsageError(message=f"there are several outputs ({names}): choose one with out=…")
    vocabulary = vocabulary_for(schemes, options)
    return evaluate_output(split, split.outputs[0], schemes, vocabulary, keep_texts=keep_texts, sign=True)


Named = tuple[EvaluationScheme, Metric]


def select_schemes(options: Options) -> list[Named]:
    """Give the schemes to score with and their metrics; raises SchemeError, UsageError."""
    schemes = [(scheme, find_metric(scheme.metric)) for scheme in options.schemes()]
    if not schemes:
        raise UsageError(message="no metric given, use --metric option\n  for example -m PerplexityHashed")
    if options.select_metric is None:
        return schemes
    selected = [named for named in schemes if shown_name(*named) == options.select_metric]
    if not selected:
        names = visible(", ".join(shown_name(*named) for named in schemes))
        raise UsageError(message=f"Cannot find metric named '{visible(options.select_metric)}'\n  there are {names}")
    return selected


def shown_name(scheme: EvaluationScheme, metric: Metric) -> str:
    """Give the name under which a scheme's score is shown."""
    if any(flag.letter == "N" for flag in scheme.flags):
        return scheme.name
    return f"{metric.name}:{scheme.flag_text}" if scheme.flags else metric.name


def vocabulary_for(schemes: Sequence[Named], options: Options) -> frozenset[str]:
    """Read the vocabulary if a metric needs it."""
    return read_vocabulary(options) if any(m.kind == "exact" for _, m in schemes) else frozenset()


def evaluate_output(
    split: Split,
    output: Output,
    schemes: Sequence[Named],
    vocabulary: frozenset[str],
    *,
    keep_texts: bool = False,
    input_text: InputText | None = None,
    sign: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Score one output with all metrics, reading it once.

    ``input_text`` is the split's input, where it is shared by several outputs and may be read only once;
    ``sign`` computes the signature; ``threads`` is the number of threads that score (by default, as many as there
    are cores) beside the one that reads; ``progress`` is called after each block. The scores are the same for any
    number of threads. Raises DataError, and SchemeError for a metric's filter that no line has.
    """
    keys = [(scheme.filters, column_of(metric, vocabulary, _preparation(scheme))) for scheme, metric in schemes]
    selections = _selections([scheme for scheme, _ in schemes if scheme.filters], split)
    needs_input = any(selection.filter.needs_input for selection in selections.values())
    input_text = input_text or InputText(split, keep=keep_texts, digest=sign)
    texts = Texts(input=input_text) if keep_texts else None
    with (
        LineReader(output.path, header=split.output_header, digest=sign) as outputs,
        LineReader(split.expected, header=split.output_header, digest=sign) as expected,
    ):
        of_all_lines = tuple(dict.fromkeys(column for filters, column in keys if not filters))
        inputs = InputReader(input_text) if needs_input else None
        reading = _Reading(outputs, expected, inputs, of_all_lines, tuple(selections.values()))
        found = reading.score(texts, threads, progress)
    losses: dict[_Key, LineLosses] = {((), column): found[column] for column in found}
    for filters, column in dict.fromkeys(keys):
        if filters:
            losses[filters, column] = selections[filters].losses(column, output.path, split.expected)
    scores = tuple(_score(named, losses[key]) for named, key in zip(schemes, keys, strict=True))
    first_filter = keys[0][0]
    digests = {"expected": expected.sha256, "output": outputs.sha256}
    if needs_input:
        digests |= {"input": input_text.sha256, "header": _digest("\t".join(split.in_header))}
    return Evaluation(
        split=split,
        output=output,
        scores=scores,
        line_numbers=selections[first_filter].line_numbers if first_filter else None,
        signature=_signature(scores, digests, vocabulary) if sign else None,
        texts=texts,
    )


_Key = tuple[tuple[str, ...], Column]  # what a metric is made from: the filters, and the column of losses


def _score(named: Named, losses: LineLosses) -> Score:
    scheme, metric = named
    value = metric.value(losses)
    return Score(name=shown_name(scheme, metric), value=value, metric=metric, scheme=scheme, losses=losses)


@dataclass(frozen=True, slots=True)
class _Reading:
    """What is read side by side, and what is made of it: columns of all lines, and lines selected for later."""

    outputs: LineReader
    expected: LineReader
    inputs: InputReader | None
    columns: tuple[Column, ...]
    selections: tuple[Selection, ...]

    def score(self, texts: Texts | None, threads: int | None, progress: Progress | None) -> dict[Column, LineLosses]:
        """Read all, in blocks: score the columns, select lines, and keep the texts where that is asked for."""
        losses = {column: LineLosses() for column in self.columns}
        scoring = BlockScorer(self.outputs, self.expected, self.columns)
        for block, scored in scoring.scored(threads, progress):
            for column_losses, block_losses in zip(losses.values(), scored, strict=True):
                column_losses.extend(block_losses)
            if self.selections:
                self._select(block)
            if texts is not None:
                texts.outputs.append(bytes(block.outputs))
                texts.expected.append(block.expected)
        if self.inputs is not None:
            self.inputs.check_end()
        return losses

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


def _signature(scores: Sequence[Score], digests: Mapping[str, str | None], vocabulary: frozenset[str]) -> str:
    parts = {
        "metric": ",".join(score.scheme.text for score in scores),
        "bits": ",".join(str(score.metric.bits or "-") for score in scores),
        "lines": str(len(scores[0].losses.values)),
        **digests,
        "version": __version__,
    }
    if vocabulary:
        parts["vocabulary"] = _digest("\n".join(sorted(vocabulary)))
    return "|".join(f"{key}:{value}" for key, value in parts.items())


def _digest(text: str) -> str:
    from hashlib import sha256

    return sha256(text.encode()).hexdigest()
