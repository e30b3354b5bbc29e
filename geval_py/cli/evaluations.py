"""What the commands that score have in common: the workers, the scores, and the notes about them."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from geval_py.cli.parsers import add_fields, add_metrics
from geval_py.cli.settings import Settings
from geval_py.cli.terminal import ProgressBar, note, show_error
from geval_py.errors import ConfigError, SchemeError, UsageError
from geval_py.explaining.documents import Documents, documents_in, find_dependence, find_ruin
from geval_py.explaining.reliability import hashed_scheme
from geval_py.reading.config import CONFIG_FILE, config_task
from geval_py.reading.schemes import parse_schemes
from geval_py.reading.splits import Split, Task, locate, locate_others, other_test_set
from geval_py.scoring.blocks import Threads
from geval_py.scoring.columns import Named, select_schemes
from geval_py.scoring.evaluate import evaluate_split
from geval_py.scoring.scores import Failure, ScoredOutput, evaluations_of, what_is_scored
from geval_py.text import named, visible
from geval_py.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from geval_py.cli.parsers import QuietParser
    from geval_py.scoring.blocks import Workers


@contextmanager
def workers_at(address: str | None, threads: int | None = None) -> Iterator[Workers]:
    """Connect to the cluster that ``--cluster`` names, or let so many threads of this process be the workers.

    With ``local``, a cluster of so many workers is started on this machine. Raises UsageError and ClusterError.
    """
    if address is None:
        yield Threads(threads)
        return
    import logging

    from geval_py.scoring.cluster import Cluster, opened_cluster

    logging.disable()  # what Dask logs of a worker that died, a user cannot mend; what matters is an error
    try:
        with opened_cluster(address, threads) as client:
            yield Cluster.of(client)
    finally:
        logging.disable(logging.NOTSET)


# Score what the command line names, with a progress bar.


def evaluate_outputs(task: Task, settings: Settings) -> list[ScoredOutput | Failure]:
    """Score each output with all metrics."""
    split, schemes = locate(task), select_schemes(task)
    _note_tokenizer(schemes, task)
    results = scored(task, split, schemes, settings, sign=settings.format != "text")
    for evaluation in what_is_scored(results):
        _note_unknown_words(evaluation)
        _note_infinite_losses(evaluation)
    return results


def _note_tokenizer(schemes: Sequence[Named], task: Task) -> None:
    """Say that a score is of the lines as they are, where GEval would have tokenised them first."""
    others = [metric.name for _, metric in schemes if not metric.is_of_words and not metric.is_tokenised]
    if task.tokenizer is not None and others:
        note(f"--tokenizer {task.tokenizer} does not change {others[0]}, which is of the lines as they are")


def evaluate_lines(
    task: Task, settings: Settings, others: Sequence[str] = (), *, workers: Workers | None = None
) -> list[ScoredOutput]:
    """Score one output, and the others named, with the first metric, and keep their texts.

    The metric's filters look at the lines as they are, as in GEval's modes.
    """
    split = locate(task)
    if len(split.outputs) > 1:
        names = visible(", ".join(output.name for output in split.outputs))
        raise UsageError(
            message="Multiple outputs are not possible in this mode, use -o option to select an output file"
            f"\n  there are {names}"
        )
    split = locate_others(split, task, others)
    sign = settings.format == "json"
    results = _evaluated(task, split, select_schemes(task)[:1], settings, sign=sign, of_lines=True, workers=workers)
    evaluations = evaluations_of(results)
    _note_places(task, split, settings, evaluations)
    for evaluation in evaluations:
        _note_unknown_words(evaluation)
    return evaluations


def evaluate_with_texts(task: Task, settings: Settings) -> list[ScoredOutput]:
    """Score each output with the first metric, and keep their texts; one that is at fault raises."""
    split = locate(task)
    results = _evaluated(task, split, select_schemes(task)[:1], settings, sign=True, keep_texts=True)
    evaluations = evaluations_of(results)
    _note_places(task, split, settings, evaluations)
    for evaluation in evaluations:
        _note_unknown_words(evaluation)
    return evaluations


def scored(
    task: Task, split: Split, schemes: Sequence[Named], settings: Settings, *, sign: bool
) -> list[ScoredOutput | Failure]:
    """Score the outputs of a split, with a progress bar for each; ``sign`` computes the signatures.

    What is wrong with one is said, and what can be scored is; where there is one that has no score at all, it raises.
    """
    with workers_at(settings.cluster, settings.threads) as workers:
        results = list(_evaluated(task, split, schemes, settings, sign=sign, workers=workers))
    evaluations = what_is_scored(results)
    if len(results) == 1 and not evaluations:
        evaluations_of(results)
    for result in results:
        for error in result.errors if isinstance(result, Failure) else ():
            show_error(error)
    _note_places(task, split, settings, evaluations)
    return results


def _evaluated(
    task: Task,
    split: Split,
    schemes: Sequence[Named],
    settings: Settings,
    *,
    sign: bool,
    of_lines: bool = False,
    keep_texts: bool = False,
    workers: Workers | None = None,
) -> Iterator[ScoredOutput | Failure]:
    """Score as :func:`scored`; those ``of_lines`` have their texts, and filters look at the lines as they are."""
    return evaluate_split(
        task,
        split,
        schemes,
        keep_texts=of_lines or keep_texts,
        reread=of_lines,
        raw_filters=of_lines,
        sign=sign,
        workers=workers or Threads(settings.threads),
        watch=lambda output: ProgressBar(output.name),
    )


def _note_places(task: Task, split: Split, settings: Settings, evaluations: Iterable[ScoredOutput]) -> None:
    if settings.ignored:
        path = os.path.join(task.directory, CONFIG_FILE)
        note(f"{named(path)}: {', '.join(settings.ignored)} ignored; no score depends on it")
    if task.input_file is not None and split.input is None:
        note(f"there is no file {named(task.input_file)}; the input is not needed here")
    for evaluation in evaluations:
        _note_other_answers(evaluation)


def _note_other_answers(evaluation: ScoredOutput) -> None:
    test = other_test_set(evaluation.split, evaluation.output)
    if test is not None:
        note(
            f"{named(evaluation.output.path)} lies beside other answers than {named(evaluation.split.expected)}, "
            f"with which it was scored; was -t {visible(test)} meant?"
        )


def _note_unknown_words(evaluation: ScoredOutput) -> None:
    counts = ((score.statistics.out_of_vocabulary, score.statistics.lines) for score in evaluation.scores)
    unknown, lines = max(counts)
    if unknown:
        note(
            f"{unknown} of {lines} expected words are not in the vocabulary; "
            "where the output does not list them, their loss is infinite"
        )


def _note_infinite_losses(evaluation: ScoredOutput) -> None:
    tables = [score.statistics for score in evaluation.scores]
    for infinite, lines in dict.fromkeys((table.infinite, table.lines) for table in tables):
        if infinite:
            note(f"{named(evaluation.output.path)}: the loss of {infinite} of {lines} lines is infinite")


def document_head(task: Task) -> dict[str, object]:
    """Give what every JSON document begins with."""
    challenge = os.path.basename(os.path.abspath(task.directory))
    return {"version": __version__, "challenge": challenge}


@contextmanager
def blaming_config(task: Task) -> Iterator[None]:
    """Turn an error in a metric that config.txt asks for into one of config.txt."""
    try:
        yield
    except SchemeError as error:
        if not _is_from_config(error.scheme, task):
            raise
        path = os.path.join(task.directory, CONFIG_FILE)
        raise ConfigError(path=path, message=error.message) from error


def _is_from_config(scheme: str, task: Task) -> bool:
    """Tell whether config.txt asks for a scheme or a metric, of those that are scored."""
    config = config_task(task.directory)
    texts = config.alt_metrics if task.alt_metrics else config.metrics
    return any(scheme in (found.text, found.metric) for text in texts for found in parse_schemes(text))


# What ``geval calibration`` and ``geval luck`` have in common: which outputs, and one hashed metric.


FORMATS = ("text", "json")
PLACES = (
    "test_name", "out_files", "out_directory", "expected_directory", "expected_file", "input_file", "in_header",
    "out_header",
)  # fmt: skip


def add_options(parser: QuietParser) -> None:
    """Add the options that both commands have."""
    add = parser.add_argument
    add_fields(parser, *PLACES)
    add_metrics(parser, "the metric on hashed words, with its bits and flags")
    add("--format", dest="form", choices=FORMATS, default="text", help="text (the default), or one JSON document")
    add_fields(parser, "threads")


def hashed_metric(task: Task) -> Named:
    """Give the first metric on hashed words; raises UsageError where there is none, and SchemeError."""
    return hashed_scheme(select_schemes(task))


# What an interval does not tell: that lines of a document are alike, and that a rare line could cost all.


def documents_asked_for(evaluations: Sequence[ScoredOutput], column: str | None, seed: int) -> Documents | None:
    """Give the documents of all lines of a file, None where none are asked for; then say where some should be."""
    if column is None:
        advise_documents(evaluations, seed)
        return None
    if not evaluations:
        return None
    documents = documents_in(evaluations[0], column)
    if documents.are_lines:
        note(documents.nothing_gained)
    return documents


def advise_documents(evaluations: Sequence[ScoredOutput], seed: int) -> None:
    """Say by which documents an interval would be wider, where some column of the input tells such."""
    found = find_dependence(evaluations, seed=seed)
    if found is not None:
        column = visible(found.column)
        note(
            f"lines with the same {column} are alike: by document, an interval is {found.widening:.1f} times as wide"
            f"\n  --documents {column} shows it"
        )


def warn_of_ruin(evaluations: Sequence[ScoredOutput]) -> None:
    """Say of which outputs a line could lose so much more than any did that an interval says nothing of it."""
    for evaluation in evaluations:
        ruin = find_ruin(evaluation)
        if ruin is not None:
            most = f"up to {ruin.bound:.0f} nats" if math.isfinite(ruin.bound) else "everything"
            path = named(evaluation.output.path)
            note(
                f"a line of {path} could lose {most}, and none lost more than {ruin.seen:.1f}"
                "\n  one such line would move the score far beyond its interval: leave more to the rest"
            )
