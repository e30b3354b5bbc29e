"""Scoring on the command line: the plain command's scores, and for all commands the outputs that are named, scored.

What is wrong with one output, and what a user should know of a score, is written to standard error.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING

from geval_py.cli.commands import parser_of
from geval_py.cli.terminal import (
    ItemBar,
    ProgressBar,
    cluster_at,
    complain,
    note,
    note_outputs,
    show,
    show_error,
    show_notes,
)
from geval_py.errors import (
    ConfigError,
    DataError,
    GevalError,
    LineCountError,
    MissingFileError,
    SchemeError,
    UsageError,
)
from geval_py.reading.config import CONFIG_FILE, Settings, Task, config_task, word_of
from geval_py.reading.outputs import by_accepted_names, unique_names
from geval_py.reading.schemes import parse_schemes
from geval_py.reading.splits import Split, locate, locate_others
from geval_py.scoring.evaluate import Named, evaluate_split, select_schemes
from geval_py.scoring.score_tables import ChallengesTable, ScoreTable, shown_names
from geval_py.scoring.scores import Evaluation, without_faults
from geval_py.tables.formats import FOR_PEOPLE, UNSIGNED, Tabular
from geval_py.text import named, some_of, visible
from geval_py.version import __version__

if TYPE_CHECKING:
    from geval_py.explaining.documents import Documents


def run(task: Task, settings: Settings) -> int:
    """Show scores, or the help, the version or the metrics; returns 1 if an output could not be scored, else 0."""
    if settings.help:
        sys.stdout.write(parser_of().format_help())
        return 0
    if settings.version:
        from geval_py.scoring.kernel.backends import choose_backend

        print(f"geval-py {__version__} ({choose_backend()} backend)")
        return 0
    if settings.list_metrics:
        from geval_py.cli.help import list_metrics

        list_metrics()
        return 0
    if settings.plot_graph is not None and not any(metric.has_curve for _, metric in select_schemes(task)):
        message = "--plot-graph draws the curve of Probabilistic-MultiLabel-F1 and the like; no metric here has one"
        raise UsageError(f"{message}\n  geval report draws the calibration of distributions over words")
    with _progress_of_samples(settings) as progress:
        show(table := _score_table(task, settings, progress), settings)
    if settings.plot_graph is not None:
        from geval_py.reports.charts import calibration_graphs

        stem = settings.plot_graph.removesuffix(".svg")
        for number, graph in enumerate(calibration_graphs(table.results)):
            graph.save(f"{stem}-{number}.svg" if number else f"{stem}.svg")
    return _status_of(table)


def _progress_of_samples(settings: Settings) -> AbstractContextManager[ProgressBar | None]:
    return nullcontext() if settings.bootstrap is None else ItemBar("samples")


def _status_of(table: ScoreTable) -> int:
    """Return the exit status: 1 if an output could not be scored."""
    return int(any(result.errors for result in table.results))


def run_each(challenges: Iterable[tuple[Task, Settings]], settings: Settings) -> int:
    """Show the scores of several challenges in one table; return the exit status.

    The errors of a challenge are shown, and the others scored.
    """
    tables: dict[str, ScoreTable] = {}
    status, unknown, several = 0, dict(settings.names), list(challenges)
    with _progress_of_samples(settings) as progress:
        for task, own in several:
            try:
                with blaming_config(task):
                    outputs = locate(task).outputs
                    accepted = by_accepted_names(unique_names(outputs), outputs)
                    names = tuple((name, text) for name, text in own.names if name in accepted)
                    tables[task.directory] = _score_table(task, own.replace(names=names), progress)
                    for name in accepted:
                        unknown.pop(name, None)
            except GevalError as error:
                status = max(status, error.exit_status)
                show_error(error)
                if len(several) > 1:
                    complain(f"the challenge {named(task.directory)} is left out")
        if tables and not unknown:
            show(ChallengesTable(list(tables.items())), settings)
    if tables and unknown:
        raise UsageError(f"--name: no challenge has an output {some_of(unknown)}")
    return max([status, *map(_status_of, tables.values())])


def _score_table(task: Task, settings: Settings, progress: ProgressBar | None) -> ScoreTable:
    """Score the outputs of a task."""
    split, schemes = locate(task), select_schemes(task)
    results = scored(task, split, schemes, settings)
    if settings.by_score:  # by the first metric, the best first; outputs without a score come last

        def badness(result: Evaluation) -> tuple[bool, float]:
            first = result.scores[0]
            if math.isnan(first.value):
                return True, 0.0
            return False, -first.value if first.greatest_first(worst=False) else first.value

        results.sort(key=badness)
    interval, how = None, f"from {settings.bootstrap} resamples of lines, seed {settings.seed}"
    if settings.documents is not None:
        how = f"by the documents of {visible(settings.documents)}"
    if settings.bootstrap is not None:
        from geval_py.explaining.documents import score_interval

        evaluations = [result for result in results if result.has_scores]
        warn_unbounded_loss(evaluations)
        interval = partial(
            score_interval,
            samples=settings.bootstrap,
            seed=settings.seed,
            documents=_documents(evaluations, settings),
            as_geval=settings.format in FOR_PEOPLE,
            progress=progress,
        )
    return ScoreTable(
        results=results,
        shown=shown_names(results, dict(settings.names)),
        precision=settings.precision,
        percentage=settings.percentage,
        interval=interval,
        how=how,
    )


def show_of_task(task: Task, value: Tabular, settings: Settings, **more: object) -> None:
    """Show a value; its JSON document names the challenge first, and ``more`` at the end."""
    show(value, settings, {"challenge": os.path.basename(os.path.abspath(task.directory))}, more)


@contextmanager
def blaming_config(task: Task) -> Iterator[None]:
    """Turn an error in a metric that config.txt asks for into an error of config.txt.

    An error of missing files or lines gets a note on where there are outputs.
    """
    try:
        yield
    except SchemeError as error:
        config = config_task(task.directory)
        texts = config.alt_metrics if task.alt_metrics else config.metrics
        schemes = (scheme for text in texts for scheme in parse_schemes(text))
        if error.path or not any(error.scheme in (scheme.text, scheme.metric) for scheme in schemes):
            raise
        path = os.path.join(task.directory, CONFIG_FILE)
        raise ConfigError(path=path, message=error.message) from error
    except (LineCountError, MissingFileError) as error:
        from geval_py.cli.help import where_outputs_are

        with suppress(DataError):
            for hint in where_outputs_are(task):
                error.add_note(hint)
        raise


# Outputs, scored for a command.


def scored(
    task: Task,
    split: Split,
    schemes: Sequence[Named],
    settings: Settings,
    *,
    keep: bool = False,
    strict: bool = False,
    raw_filters: bool = False,
) -> list[Evaluation]:
    """Score the outputs of a split, with a progress bar for each, and show their notes.

    Outputs that are read again later are to be told to ``keep`` their texts. The errors of an output are shown, and
    the others scored. If the only output has no score at all, its error is raised or, if ``strict``, any first error.
    """
    with cluster_at(settings.cluster) if settings.cluster else nullcontext() as cluster:
        results = list(
            evaluate_split(
                task,
                split,
                schemes,
                keep=keep or settings.format not in UNSIGNED,
                threads=settings.threads,
                cluster=cluster,
                watch=ProgressBar,
                raw_filters=raw_filters,
            )
        )
    if strict or (len(results) == 1 and not results[0].has_scores):
        without_faults(results)
    for result in results:
        for error in result.errors:
            show_error(error)
    show_notes(results)
    return results


def evaluate_with_texts(task: Task, settings: Settings, others: Sequence[str] | None = None) -> list[Evaluation]:
    """Score each output with the first metric, and keep their texts; raises the error of the first at fault.

    With ``others``, as in GEval's modes: the task has one output, to which these are added, and the metric's filters
    select lines as they are.
    """
    split, for_mode = locate(task), others is not None
    if for_mode and len(split.outputs) > 1:
        raise UsageError(
            "Multiple outputs are not possible in this mode, use -o option to select an output file"
            f"\n  there are {some_of(output.name for output in split.outputs)}"
        )
    split = locate_others(split, task, others or ())
    schemes = select_schemes(task)[:1]
    return scored(task, split, schemes, settings, keep=True, strict=True, raw_filters=for_mode)


# What a user should know of outputs and their scores.


def _documents(evaluations: Sequence[Evaluation], settings: Settings) -> Documents | None:
    """Return the documents by which intervals are wanted; for people, only those that they name.

    People see GEval's interval, by lines; if none are named, they are told which would widen it.
    """
    from geval_py.explaining.documents import (
        choose_documents,
        first_score,
        notes_on_columns,
        notes_on_documents,
        notes_on_intervals,
    )

    if not evaluations:
        return None
    by = settings.documents_by
    documents = choose_documents(evaluations[0], by)
    columns = list(notes_on_columns(evaluations[0], documents, by))
    if documents is not None and by is None and settings.format in FOR_PEOPLE:
        note(f"use --documents {visible(word_of(documents.column))} for an interval by document: this one is by line")
        documents = None
    note(*notes_on_documents(documents), *columns)
    note(*notes_on_intervals(documents, map(first_score, evaluations)))
    return documents


def warn_unbounded_loss(evaluations: Sequence[Evaluation]) -> None:
    """Name the outputs of which one line could lose far more than any did, which no interval shows."""
    from geval_py.explaining.losses import unbounded_loss

    notes: dict[str, list[str]] = {}
    for evaluation in evaluations:
        bound, greatest = unbounded_loss(evaluation) or (0.0, 0.0)
        if bound:
            most = f"up to {bound:.0f} nats" if math.isfinite(bound) else "infinite"
            notes[evaluation.output.path] = [
                f"the loss of a line of {named(evaluation.output.path)} can be {most}; the greatest so far is "
                f"{greatest:.1f} nats\n  one such line would move the score far beyond its interval: give more "
                "probability to the rest"
            ]
    note_outputs(notes)
