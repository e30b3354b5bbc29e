"""Scoring on the command line: the plain command's scores, and for all commands the outputs that are named, scored.

What is wrong with one output, and what a user should know of a score, is written to standard error.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from geval_py.cli.commands import parser_of
from geval_py.cli.terminal import ProgressBar, complain, note, note_outputs, show, show_error, workers_at
from geval_py.errors import ConfigError, GevalError, LineCountError, MissingFileError, SchemeError, UsageError
from geval_py.reading import sources
from geval_py.reading.config import CONFIG_FILE, Settings, Task, config_task, word_of
from geval_py.reading.lines import READ_AHEAD_BYTES, LineReader, is_utf8
from geval_py.reading.outputs import by_accepted_names, own_names, unique_names
from geval_py.reading.schemes import parse_schemes
from geval_py.reading.splits import Split, answers_in, locate, locate_others
from geval_py.scoring.blocks import Threads, Workers
from geval_py.scoring.evaluate import Named, evaluate_split, select_schemes, shown_name
from geval_py.scoring.score_tables import ChallengesTable, ScoreTable
from geval_py.scoring.scores import ScoredOutput, evaluations_of
from geval_py.tables.formats import FOR_PEOPLE, UNSIGNED, Tabular
from geval_py.tables.numbers import counted
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
    if settings.plot_graph is not None:
        from geval_py.reports.charts import check_graphs

        check_graphs([metric for _, metric in select_schemes(task)])
    with _progress_of_samples(settings) as progress:
        show(table := _score_table(task, settings, progress), settings)
    if settings.plot_graph is not None:
        from geval_py.reports.charts import write_graphs

        write_graphs(settings.plot_graph, [result for result in table.results if result.scores])
    return _status_of(table)


def _progress_of_samples(settings: Settings) -> AbstractContextManager[ProgressBar | None]:
    return nullcontext() if settings.bootstrap is None else ProgressBar("samples", unit="items")


def _status_of(table: ScoreTable) -> int:
    """Return the exit status: 1 if an output could not be scored."""
    return int(any(result.error is not None for result in table.results))


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
                    unknown = {name: text for name, text in unknown.items() if name not in accepted}
            except GevalError as error:
                status = max(status, error.exit_status)
                show_error(error)
                if len(several) > 1:
                    complain(f"the challenge {named(task.directory)} is left out")
        if tables and not unknown:
            show(ChallengesTable(scores=tables), settings)
    if tables and unknown:
        raise UsageError(message=f"--name: no challenge has an output {some_of(unknown)}")
    return max([status, *map(_status_of, tables.values())])


def _score_table(task: Task, settings: Settings, progress: ProgressBar | None) -> ScoreTable:
    """Score the outputs of a task."""
    split, schemes = locate(task), select_schemes(task)
    others = [metric.name for _, metric in schemes if not metric.is_of_words and not metric.is_tokenised]
    if task.tokenizer is not None and others:
        note(f"--tokenizer {task.tokenizer} does not change {others[0]}, which is of the lines as they are")
    results = scored(task, split, schemes, settings)
    evaluations = [result for result in results if result.scores]
    _note_unknown_words(evaluations)
    of_outputs: dict[str, list[str]] = {}
    for one in evaluations:
        tables = [score.statistics for score in one.scores if score.statistics.infinite]
        counts = dict.fromkeys((table.infinite, table.lines) for table in tables)
        path = one.output.path
        of_outputs[path] = [
            f"{named(path)}: the loss of {count} of {lines} lines is infinite" for count, lines in counts
        ]
        if (uninformed := one.note_on_no_knowledge) is not None:
            of_outputs[path].append(uninformed)
    note_outputs(of_outputs)
    if settings.by_score:  # by the first metric, the best first; outputs without a score come last

        def badness(result: ScoredOutput) -> tuple[bool, float]:
            first = result.each_score(1)[0]
            if first is None or math.isnan(first.value):
                return True, 0.0
            return False, -first.value if first.greatest_first(worst=False) else first.value

        results.sort(key=badness)
    interval, how = None, f"from {settings.bootstrap} resamples of lines, seed {settings.seed}"
    if settings.documents is not None:
        how = f"by the documents of {visible(settings.documents)}"
    if settings.bootstrap is not None:
        from geval_py.explaining.documents import score_interval

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
        names=[shown_name(*scheme) for scheme in schemes],
        shown=shown_names(results, settings),
        precision=settings.precision,
        percentage=settings.percentage,
        interval=interval,
        how=how,
        challenge=os.path.basename(os.path.abspath(task.directory)),
        test=split.name,
    )


def shown_names(results: Sequence[ScoredOutput], settings: Settings) -> list[str]:
    """Return the outputs' names as a user wants them, an empty list if none is given; raises UsageError."""
    if not settings.names:
        return []
    outputs = [result.output for result in results]
    unique = unique_names(outputs)
    renamed = own_names(dict(settings.names), unique, outputs, "scored")
    return [renamed.get(name, name) for name in unique]


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

        for hint in where_outputs_are(task):
            error.add_note(hint)
        raise


# Outputs, scored for a command.


def scored(
    task: Task, split: Split, schemes: Sequence[Named], settings: Settings, *, sign: bool = False
) -> list[ScoredOutput]:
    """Score the outputs of a split, with a progress bar for each; ``sign`` computes signatures that no format needs.

    The errors of an output are shown, and the others scored; if the only output has no score at all, its error is
    raised.
    """
    with workers_at(settings.cluster, settings.threads) as workers:
        results = list(
            evaluate_split(
                task,
                split,
                schemes,
                sign=sign or settings.format not in UNSIGNED,
                workers=workers,
                watch=lambda output: ProgressBar(output.name),
            )
        )
    evaluations = [result for result in results if result.scores]
    if len(results) == 1 and not evaluations:
        evaluations_of(results)
    for result in results:
        for error in result.errors:
            show_error(error)
    _note_places(task, split, settings, evaluations)
    return results


def evaluate_with_texts(
    task: Task, settings: Settings, others: Sequence[str] | None = None, *, workers: Workers | None = None
) -> list[ScoredOutput]:
    """Score each output with the first metric, and keep their texts; raises the error of the first at fault.

    With ``others``, as in GEval's modes: the task has one output, to which these are added, and the metric's filters
    select lines as they are.
    """
    split, for_mode = locate(task), others is not None
    if for_mode and len(split.outputs) > 1:
        raise UsageError(
            message="Multiple outputs are not possible in this mode, use -o option to select an output file"
            f"\n  there are {some_of(output.name for output in split.outputs)}"
        )
    split = locate_others(split, task, others or ())
    results = evaluate_split(
        task,
        split,
        select_schemes(task)[:1],
        texts="files",
        raw_filters=for_mode,
        sign=not for_mode or settings.format not in UNSIGNED,
        workers=workers or Threads(settings.threads),
        watch=lambda output: ProgressBar(output.name),
    )
    evaluations = evaluations_of(results)
    _note_places(task, split, settings, evaluations)
    _note_unknown_words(evaluations)
    return evaluations


# What a user should know of outputs and their scores.


def _note_places(task: Task, split: Split, settings: Settings, evaluations: Sequence[ScoredOutput]) -> None:
    if settings.ignored:
        path = os.path.join(task.directory, CONFIG_FILE)
        note(f"{named(path)}: {', '.join(settings.ignored)} ignored; no score depends on it")
    if task.input_file is not None and split.input is None:
        note(f"there is no file {named(task.input_file)}; the input is not needed here")
    if split.input is not None and sources.can_be_reread(split.input):
        scores = (score for one in evaluations for score in one.scores)
        is_compared = any(score.metric.name == "CharMatch" and not score.scheme.text_flags for score in scores)
        columns = next(split.input_text(keep=False).lines(), "").count("\t") + 1 if is_compared else 1
        if columns > 1:
            whole = f"CharMatch compares the whole line of {named(split.input)}, which has {columns} columns"
            note(f"{whole}; `CharMatch:s<.*\\t><>` compares the last one alone")
    note(*_notes_on_encoding(split.expected))
    notes: dict[str, list[str]] = {}
    for one in evaluations:
        output, own = one.output, notes.setdefault(one.output.path, [])
        own += _notes_on_encoding(output.path)
        if (of_numbers := one.note_on_numbers) is not None:
            own.append(of_numbers)
        # An output beside other answers, in another folder of the challenge.
        folder = os.path.dirname(sources.absolute(output.path))
        ours, theirs = os.path.realpath(os.path.dirname(split.expected)), os.path.realpath(folder)
        is_elsewhere = ours != theirs and os.path.dirname(ours) == os.path.dirname(theirs)
        if sources.is_file(output.path) and is_elsewhere and answers_in(folder):
            answers = f"other answers than {named(split.expected)}, with which it was scored"
            test = visible(os.path.basename(folder))
            own.append(f"{named(output.path)} lies beside {answers}; was -t {test} meant?")
        if sources.format_ending(output.path):
            from geval_py.reading.formats import notes_on

            own.extend(notes_on(output.path))
        if {"tuned", "mix"} & output.parameters.keys():
            from geval_py.explaining.derived import set_tuned_on

            if set_tuned_on(output) == split.name:
                how = "tuned" if "tuned" in output.parameters else "mixed"
                own.append(f"{named(output.path)} was {how} on these lines: on others it would score a little worse")
    note_outputs(notes)


def _notes_on_encoding(path: str) -> Iterator[str]:
    """Yield a note if the beginning of a file is not UTF-8; other formats refuse such a file when they read it."""
    if sources.can_be_reread(path) and not isinstance(path, sources.VirtualFile):
        with LineReader(path) as reader:
            if not is_utf8(reader.block(READ_AHEAD_BYTES)):
                yield f"{named(path)} has bytes that are not UTF-8, and are read as U+FFFD; write it as UTF-8"


def _note_unknown_words(evaluations: Iterable[ScoredOutput]) -> None:
    """Write notes on expected words that are not in the vocabulary."""
    tables = (
        max((score.statistics for score in one.scores), key=attrgetter("out_of_vocabulary")) for one in evaluations
    )
    counts = dict.fromkeys((table.out_of_vocabulary, table.lines) for table in tables if table.out_of_vocabulary)
    for count, lines in counts:
        where = "the vocabulary" if count < lines else "a vocabulary (name one with --vocabulary FILE)"
        note(
            f"{count} of {counted(lines, 'expected word')} {'is' if count == 1 else 'are'} not in {where}; "
            "if the output does not list such a word, its loss is infinite"
        )


def _documents(evaluations: Sequence[ScoredOutput], settings: Settings) -> Documents | None:
    """Return the documents by which intervals are wanted; for people, only those that they name.

    People see GEval's interval, by lines; if none are named, they are told which would widen it.
    """
    from geval_py.explaining.documents import choose_documents, notes_on_intervals

    if not evaluations:
        return None
    documents, dependence = choose_documents(evaluations, settings.documents_by)
    if dependence is None:
        if documents is not None and documents.are_lines:
            note(documents.nothing_gained)
    elif settings.format in FOR_PEOPLE:
        shows = f"use --documents {visible(word_of(dependence.column))} for an interval by document"
        note(*dependence.notes(f"{shows}, which is {{}} this one, by line"))
        documents = None
    else:
        note(*dependence.notes("intervals are computed by document and are {} by line"))
    note(*notes_on_intervals(documents, (evaluation.scores[0] for evaluation in evaluations)))
    return documents


def warn_unbounded_loss(evaluations: Sequence[ScoredOutput]) -> None:
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
