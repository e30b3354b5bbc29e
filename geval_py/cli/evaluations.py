"""Score what the command line names, with a progress bar."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import inf

from geval_py.cli.progress import ProgressBar
from geval_py.errors import ConfigError, SchemeError, UsageError
from geval_py.reading.challenge import Split, locate, locate_others, other_test_set
from geval_py.reading.inputs import InputText
from geval_py.reading.options import CONFIG_FILE, Options, config_options
from geval_py.reading.schemes import parse_schemes
from geval_py.scoring.evaluate import Named, evaluate_output, select_schemes, vocabulary_for
from geval_py.scoring.evaluation import Evaluation
from geval_py.text import named, visible
from geval_py.version import __version__


def evaluate_outputs(options: Options) -> list[Evaluation]:
    """Score each output with all metrics."""
    evaluations = evaluate_split(options, locate(options), select_schemes(options), sign=options.format == "json")
    for evaluation in evaluations:
        _note_unknown_words(evaluation)
        _note_infinite_losses(evaluation)
    return evaluations


def evaluate_lines(options: Options, others: Sequence[str] = ()) -> list[Evaluation]:
    """Score one output, and the others named, with the first metric, and keep their texts."""
    split = locate(options)
    if len(split.outputs) > 1:
        names = visible(", ".join(output.name for output in split.outputs))
        raise UsageError(
            message="Multiple outputs are not possible in this mode, use -o option to select an output file"
            f"\n  there are {names}"
        )
    split = locate_others(split, options, others)
    schemes = select_schemes(options)[:1]
    evaluations = evaluate_split(options, split, schemes, sign=options.format == "json", keep_texts=True)
    for evaluation in evaluations:
        _note_unknown_words(evaluation)
    return evaluations


def evaluate_split(
    options: Options, split: Split, schemes: Sequence[Named], *, sign: bool, keep_texts: bool = False
) -> list[Evaluation]:
    """Score each output of a split; ``sign`` computes the signatures."""
    vocabulary = vocabulary_for(schemes, options)
    input_text = InputText(split, keep=keep_texts or len(split.outputs) > 1, digest=sign)
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
                    input_text=input_text,
                    sign=sign,
                    threads=options.threads,
                    progress=progress,
                )
            )
    for evaluation in evaluations:
        _note_other_answers(evaluation)
    return evaluations


def _note_other_answers(evaluation: Evaluation) -> None:
    test = other_test_set(evaluation.split, evaluation.output)
    if test is not None:
        note(
            f"{named(evaluation.output.path)} lies beside other answers than {named(evaluation.split.expected)}, "
            f"with which it was scored; was -t {visible(test)} meant?"
        )


def _note_unknown_words(evaluation: Evaluation) -> None:
    counts = ((score.losses.out_of_vocabulary, len(score.losses.values)) for score in evaluation.scores)
    unknown, lines = max(counts)
    if unknown:
        note(
            f"{unknown} of {lines} expected words are not in the vocabulary; "
            "where the output does not list them, their loss is infinite"
        )


def _note_infinite_losses(evaluation: Evaluation) -> None:
    columns = [score.losses.values for score in evaluation.scores]
    for infinite, lines in dict.fromkeys((losses.count(inf), len(losses)) for losses in columns):
        if infinite:
            note(f"{named(evaluation.output.path)}: the loss of {infinite} of {lines} lines is infinite")


def document_head(options: Options) -> dict[str, object]:
    """Give what every JSON document begins with."""
    challenge = os.path.basename(os.path.abspath(options.challenge_directory))
    return {"version": __version__, "challenge": challenge}


@contextmanager
def blaming_config(options: Options) -> Iterator[None]:
    """Turn an error in a metric that config.txt asks for into one of config.txt."""
    try:
        yield
    except SchemeError as error:
        if not _is_from_config(error.scheme, options):
            raise
        path = os.path.join(options.challenge_directory, CONFIG_FILE)
        raise ConfigError(path=path, message=error.message) from error


def _is_from_config(scheme: str, options: Options) -> bool:
    """Tell whether config.txt asks for a scheme or a metric, of those that are scored."""
    config = config_options(options.challenge_directory)
    texts = config.alt_metrics if options.alt_metrics else config.metrics
    return any(scheme in (found.text, found.metric) for text in texts for found in parse_schemes(text))


def note(message: str) -> None:
    """Say on standard error what a user should know beside the result."""
    print(f"geval: note: {message}", file=sys.stderr)
