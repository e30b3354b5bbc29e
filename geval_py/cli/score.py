"""GEval's plain command line: score outputs, or show them line by line."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from math import isinf
from operator import itemgetter

from geval_py.challenge import locate
from geval_py.cli.progress import ProgressBar
from geval_py.errors import ConfigError, SchemeError, UsageError, named
from geval_py.evaluate import Evaluation, Score, evaluate_output, select_schemes, vocabulary_for
from geval_py.kernel import choose_backend
from geval_py.metrics import METRICS
from geval_py.options import CONFIG_FILE, Options, make_parser, parse_options
from geval_py.render.documents import json_text
from geval_py.render.lines import line_rows
from geval_py.render.scores import scores_text
from geval_py.version import __version__


def run(words: Sequence[str]) -> int:
    """Run the plain command line; gives the exit status, raises GevalError."""
    options = parse_options(words)
    with blaming_config(options, words):
        _show(options)
    return 0


@contextmanager
def blaming_config(options: Options, words: Sequence[str]) -> Iterator[None]:
    """Turn an error in a metric that the command line's words do not name into one of config.txt."""
    try:
        yield
    except SchemeError as error:
        if any(error.scheme in word for word in words):
            raise
        path = os.path.join(options.challenge_directory, CONFIG_FILE)
        raise ConfigError(path=path, message=error.message) from error


def _show(options: Options) -> None:
    if options.help:
        sys.stdout.write(make_parser().format_help())
    elif options.version:
        print(f"geval-py {__version__} ({choose_backend().name} backend)")
    elif options.list_metrics:
        _list_metrics()
    elif options.line_by_line:
        _show_lines(options)
    else:
        _show_scores(options)


def _list_metrics() -> None:
    for metric in METRICS.values():
        direction = f"{metric.measure.direction} is better"
        print(f"{metric.name:20} {metric.measure.unit:12} {direction:17} {metric.summary}")
    print("A name in …Hashed may end in a number of bits, 1 to 24 (10 where none is given): LogLossHashed8.")


def _evaluate(options: Options, *, keep_texts: bool = False) -> list[Evaluation]:
    split = locate(options)
    schemes = select_schemes(options)
    if options.line_by_line:
        schemes = schemes[:1]
        if len(split.outputs) > 1:
            names = ", ".join(output.name for output in split.outputs)
            raise UsageError(
                message="Multiple outputs are not possible in this mode, use -o option to select an output file"
                f"\n  there are {names}"
            )
    vocabulary = vocabulary_for(schemes, options)
    sign = options.format == "json"
    evaluations = []
    for output in split.outputs:
        with ProgressBar(output.name) as progress:
            evaluations.append(
                evaluate_output(
                    split,
                    output,
                    schemes,
                    vocabulary,
                    keep_texts=keep_texts,
                    sign=sign,
                    threads=options.threads,
                    progress=progress,
                )
            )
    return evaluations


def _show_scores(options: Options) -> None:
    evaluations = _evaluate(options)
    _note_unknown_words(evaluations)
    if options.bootstrap is not None:
        _note_infinite_losses(evaluations)
    if options.format == "json":
        sys.stdout.write(json_text(_document(options, evaluations)))
        return
    interval = None
    if options.bootstrap is not None:
        interval = partial(Score.interval, samples=options.bootstrap, seed=options.seed)
    text = scores_text(evaluations, options.precision, percentage=options.percentage, interval=interval)
    sys.stdout.write(text)


def _note_unknown_words(evaluations: Sequence[Evaluation]) -> None:
    for evaluation in evaluations:
        unknown = evaluation.out_of_vocabulary
        if unknown:
            print(
                f"geval: note: {unknown} of {evaluation.lines} expected words are not in the vocabulary; "
                "where the output does not list them, their loss is infinite",
                file=sys.stderr,
            )


def _note_infinite_losses(evaluations: Sequence[Evaluation]) -> None:
    for evaluation in evaluations:
        counts = dict.fromkeys(sum(map(isinf, score.losses.values)) for score in evaluation.scores)
        for infinite in filter(None, counts):
            print(
                f"geval: note: {named(evaluation.output.path)}: the loss of {infinite} of {evaluation.lines} lines "
                "is infinite, and so is that of each resample that draws one of them",
                file=sys.stderr,
            )


def _document(options: Options, evaluations: Sequence[Evaluation]) -> dict[str, object]:
    return {
        "version": __version__,
        "challenge": os.path.basename(os.path.abspath(options.challenge_directory)),
        "test": options.test_name,
        "outputs": [e.to_dict(samples=options.bootstrap, seed=options.seed) for e in evaluations],
    }


def _show_lines(options: Options) -> None:
    (evaluation,) = _evaluate(options, keep_texts=True)
    _note_unknown_words([evaluation])
    rows = list(zip(evaluation.line_scores(), evaluation.read_items(), strict=True))
    if options.sort or options.reverse_sort:
        greatest_first = (evaluation.scores[0].direction == "lower") == options.sort
        rows.sort(key=itemgetter(0), reverse=greatest_first)
    scores, items = zip(*rows, strict=True)
    for row in line_rows(scores, items, for_terminal=sys.stdout.isatty()):
        sys.stdout.write(row + "\n")
