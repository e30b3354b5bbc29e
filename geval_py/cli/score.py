"""Scoring on the command line: the plain command's scores, and for all commands the outputs that are named, scored.

What is wrong with one output, and what a user should know of a score, is written to standard error.
"""

from __future__ import annotations

import math
import os
import sys
from contextlib import contextmanager, nullcontext
from dataclasses import replace

from geval_py.cli.commands import parser_of
from geval_py.cli.terminal import ProgressBar, complain, note, note_outputs, show, show_error
from geval_py.errors import ConfigError, GevalError, SchemeError, UsageError
from geval_py.reading import sources
from geval_py.reading.answers import answers_in
from geval_py.reading.config import CONFIG_FILE, Settings, Task, config_task
from geval_py.reading.outputs import Output, by_accepted_names, own_names, unique_names
from geval_py.reading.schemes import parse_schemes
from geval_py.reading.splits import Split, locate, locate_others
from geval_py.scoring.blocks import Threads
from geval_py.scoring.evaluate import Named, evaluate_split, select_schemes, shown_name
from geval_py.scoring.scores import (
    MetricScore,
    ScoredOutput,
    evaluations_of,
    signature_lines,
)
from geval_py.tables.formats import FOR_PEOPLE, UNSIGNED, Shown, Tabular
from geval_py.text import named, some_of, visible
from geval_py.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from typing import Any

    from geval_py.explaining.documents import Documents
    from geval_py.explaining.significance import Interval
    from geval_py.scoring.blocks import Workers
    from geval_py.tables.table import Table


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
        show(scores := _scores(task, settings, progress), settings)
    if settings.plot_graph is not None:
        from geval_py.reports.charts import write_graphs

        write_graphs(settings.plot_graph, [result for result in scores.results if result.scores])
    return scores.status


def _progress_of_samples(settings: Settings) -> AbstractContextManager[ProgressBar | None]:
    return nullcontext() if settings.bootstrap is None else ProgressBar("samples", unit="items")


def run_each(challenges: Iterable[tuple[Task, Settings]], settings: Settings) -> int:
    """Show the scores of several challenges in one table; return the exit status.

    The errors of a challenge are shown, and the others scored.
    """
    found: dict[str, Scores] = {}
    status, unknown = 0, dict(settings.names)
    with _progress_of_samples(settings) as progress:
        for task, own in challenges:
            try:
                with blaming_config(task):
                    outputs = locate(task).outputs
                    known = by_accepted_names(unique_names(outputs), outputs)
                    names = tuple((name, text) for name, text in own.names if name in known)
                    found[task.directory] = _scores(task, replace(own, names=names), progress)
                    unknown = {name: text for name, text in unknown.items() if name not in known}
            except GevalError as error:
                status = max(status, error.exit_status)
                show_error(error)
                complain(f"the challenge {named(task.directory)} is left out")
        if found and not unknown:
            show(ScoresOfChallenges(found), settings)
    if found and unknown:
        raise UsageError(message=f"--name: no challenge has an output {some_of(unknown)}")
    return max([status, *(scores.status for scores in found.values())])


def _scores(task: Task, settings: Settings, progress: ProgressBar | None) -> Scores:
    """Score the outputs of a task."""
    split, schemes = locate(task), select_schemes(task)
    others = [metric.name for _, metric in schemes if not metric.is_of_words and not metric.is_tokenised]
    if task.tokenizer is not None and others:
        note(f"--tokenizer {task.tokenizer} does not change {others[0]}, which is of the lines as they are")
    results = scored(task, split, schemes, settings, sign=settings.format not in UNSIGNED)
    _note_losses([result for result in results if result.scores], infinite=True)
    if settings.by_score:
        results.sort(key=_place_by_score)
    interval = _interval(results, settings, progress)
    return Scores(task, split.name, settings, results, [shown_name(*of) for of in schemes], interval)


def _interval(
    results: Sequence[ScoredOutput], settings: Settings, progress: ProgressBar | None
) -> Callable[[MetricScore], Interval] | None:
    """Return the function that computes a score's interval, if intervals are wanted; for people it is GEval's."""
    if settings.bootstrap is None:
        return None
    from functools import partial

    from geval_py.explaining.documents import score_interval

    evaluations = [result for result in results if result.scores]
    warn_unbounded_loss(evaluations)
    return partial(
        score_interval,
        samples=settings.bootstrap,
        seed=settings.seed,
        documents=_documents(evaluations, settings),
        as_geval=settings.format in FOR_PEOPLE,
        progress=progress,
    )


def _place_by_score(result: ScoredOutput) -> tuple[bool, float]:
    """Return a key that sorts by the first metric, the best first; outputs without a score come last."""
    first = result.each_score(1)[0]
    if first is None or math.isnan(first.value):
        return True, 0.0
    return False, -first.value if first.greatest_first(worst=False) else first.value


class Scores(Tabular):
    """The scores of outputs: as GEval shows them in text, elsewhere a row an output."""

    def __init__(
        self,
        task: Task,
        test: str,
        settings: Settings,
        results: Sequence[ScoredOutput],
        names: Sequence[str],
        interval: Callable[[MetricScore], Interval] | None,
    ) -> None:
        self._task, self._test, self._settings, self.results = task, test, settings, results
        self._names, self._interval = names, interval
        self._shown = shown_names(results, settings)

    @property
    def status(self) -> int:
        """The exit status: 1 if an output could not be scored."""
        return int(any(result.error is not None for result in self.results))

    def text(self, width: int | None = None) -> Iterator[str]:
        from geval_py.scoring.score_tables import scores_text

        yield scores_text(
            self.results,
            self._settings.precision,
            names=self._names,
            outputs=self._shown,
            percentage=self._settings.percentage,
            interval=self._interval,
            width=width,
        )

    def table(self) -> Table:
        from geval_py.scoring.score_tables import variant_labels
        from geval_py.tables.table import Column, Table

        keys, labels = variant_labels(self.results)
        if self._shown or len(keys) < 2 or len(labels) < 2:
            keys, labels = [], [[name] for name in self._shown or [of.output.name for of in self.results]]
        columns = [Column(name=name) for name in ["output", *keys][-len(labels[0]) :]]
        columns += [Column(name=name, alignment="right") for name in self._names]
        rows = zip(labels, self.results, strict=True)
        return Table(columns, [[*label, *map(self._cell, of.each_score(len(self._names)))] for label, of in rows])

    def signatures(self) -> Iterator[str]:
        return signature_lines(self.results)

    def _cell(self, score: MetricScore | None) -> str:
        from geval_py.scoring.score_tables import score_cell

        precision, percentage = self._settings.precision, self._settings.percentage
        return score_cell(score, self._interval, precision, percentage=percentage)

    def legend(self) -> Iterator[str]:
        settings = self._settings
        if self._interval is not None:
            how = f"from {settings.bootstrap} resamples of lines, seed {settings.seed}"
            if settings.documents is not None:
                how = f"by the documents of {visible(settings.documents)}"
            yield f"±: half of the 95 % interval, {how}."

    def records(self) -> Table:
        from geval_py.scoring.score_tables import scores_table

        return scores_table(self.results, self._names, self._interval)

    def to_dict(self) -> dict[str, Any]:
        outputs = [result.to_dict(self._interval) for result in self.results]
        return {"challenge": _challenge_name(self._task), "test": self._test, "outputs": outputs}


class ScoresOfChallenges(Tabular):
    """The scores of the outputs of several challenges, by the challenges' folders, in one table."""

    def __init__(self, scores: dict[str, Scores]) -> None:
        self._scores = scores

    def text(self, width: int | None = None) -> Iterator[str]:
        """Write as the scores of one challenge: columns on a terminal, elsewhere cells separated by TABs."""
        if width is not None:
            yield from Tabular.text(self, width)
            return
        table = self.table()
        yield "\t".join(column.heading for column in table.columns) + "\n"
        yield from table.tabs()

    def signatures(self) -> Iterator[str]:
        for folder, scores in self._scores.items():
            yield from (f"{os.path.normpath(folder)}: {line}" for line in scores.signatures())

    def table(self) -> Table:
        return self._joined({folder: scores.table() for folder, scores in self._scores.items()})

    def records(self) -> Table:
        return self._joined({folder: scores.records() for folder, scores in self._scores.items()})

    def legend(self) -> Iterator[str]:
        yield from dict.fromkeys(line for scores in self._scores.values() for line in scores.legend())

    def to_dict(self) -> dict[str, Any]:
        return {"challenges": [scores.to_dict() for scores in self._scores.values()]}

    def _joined(self, tables: dict[str, Table]) -> Table:
        """Put tables below each other, with the columns of all, and the challenge in front."""
        from geval_py.tables.table import Column, Table

        columns = {column.name: column for table in tables.values() for column in table.columns}
        rows = []
        for folder, table in tables.items():
            names = [column.name for column in table.columns]
            of_challenge = [dict(zip(names, row, strict=True)) for row in table.rows]
            rows += [[os.path.normpath(folder), *(row.get(name, "") for name in columns)] for row in of_challenge]
        return Table([Column(name="challenge", cut="middle"), *columns.values()], rows)


def shown_names(results: Sequence[ScoredOutput], settings: Settings) -> list[str]:
    """Return the outputs' names as a user wants them, an empty list if none is given; raises UsageError."""
    if not settings.names:
        return []
    outputs = [result.output for result in results]
    unique = unique_names(outputs)
    wanted = own_names(dict(settings.names), unique, outputs, "scored")
    return [wanted.get(name, name) for name in unique]


def _challenge_name(task: Task) -> str:
    return os.path.basename(os.path.abspath(task.directory))


def show_of_task(task: Task, value: Tabular, settings: Settings, **more: object) -> None:
    """Show a value; its JSON document names the challenge first, and ``more`` at the end."""
    show(Shown(value, to_dict=lambda: {"challenge": _challenge_name(task)} | value.to_dict() | more), settings)


@contextmanager
def blaming_config(task: Task) -> Iterator[None]:
    """Turn an error in a metric that config.txt asks for into an error of config.txt."""
    try:
        yield
    except SchemeError as error:
        config = config_task(task.directory)
        texts = config.alt_metrics if task.alt_metrics else config.metrics
        schemes = (scheme for text in texts for scheme in parse_schemes(text))
        if not any(error.scheme in (scheme.text, scheme.metric) for scheme in schemes):
            raise
        path = os.path.join(task.directory, CONFIG_FILE)
        raise ConfigError(path=path, message=error.message) from error


# Outputs, scored for a command.


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

    logging.disable()  # a user cannot mend what Dask logs of a worker that died; what matters is an error
    try:
        with opened_cluster(address, threads) as client:
            yield Cluster.of(client)
    finally:
        logging.disable(logging.NOTSET)


def scored(
    task: Task, split: Split, schemes: Sequence[Named], settings: Settings, *, sign: bool
) -> list[ScoredOutput]:
    """Score the outputs of a split, with a progress bar for each; ``sign`` computes the signatures.

    The errors of an output are shown, and the others scored; if the only output has no score at all, its error is
    raised.
    """
    with workers_at(settings.cluster, settings.threads) as workers:
        results = list(_evaluated(task, split, schemes, settings, sign=sign, workers=workers))
    evaluations = [result for result in results if result.scores]
    if len(results) == 1 and not evaluations:
        evaluations_of(results)
    for result in results:
        for error in result.errors:
            show_error(error)
    _note_places(task, split, settings, evaluations)
    return results


def evaluate_lines(
    task: Task, settings: Settings, others: Sequence[str] = (), *, workers: Workers | None = None
) -> list[ScoredOutput]:
    """Score one output, and the others named, with the first metric, and keep their texts.

    The metric's filters select lines as they are, as in GEval's modes.
    """
    split = locate(task)
    if len(split.outputs) > 1:
        raise UsageError(
            message="Multiple outputs are not possible in this mode, use -o option to select an output file"
            f"\n  there are {some_of(output.name for output in split.outputs)}"
        )
    split = locate_others(split, task, others)
    sign = settings.format not in UNSIGNED
    results = _evaluated(task, split, select_schemes(task)[:1], settings, sign=sign, of_lines=True, workers=workers)
    return _noted(evaluations_of(results), task, split, settings)


def evaluate_with_texts(task: Task, settings: Settings) -> list[ScoredOutput]:
    """Score each output with the first metric, and keep their texts; raises the error of the first at fault."""
    split = locate(task)
    results = _evaluated(task, split, select_schemes(task)[:1], settings, sign=True, keep_texts=True)
    return _noted(evaluations_of(results), task, split, settings)


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
) -> Iterator[ScoredOutput]:
    """Score as :func:`scored`; ``of_lines`` keeps the texts, and lets filters select lines as they are."""
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


# What a user should know of outputs and their scores.


def _noted(evaluations: list[ScoredOutput], task: Task, split: Split, settings: Settings) -> list[ScoredOutput]:
    _note_places(task, split, settings, evaluations)
    _note_losses(evaluations)
    return evaluations


def _note_places(task: Task, split: Split, settings: Settings, evaluations: Iterable[ScoredOutput]) -> None:
    if settings.ignored:
        path = os.path.join(task.directory, CONFIG_FILE)
        note(f"{named(path)}: {', '.join(settings.ignored)} ignored; no score depends on it")
    if task.input_file is not None and split.input is None:
        note(f"there is no file {named(task.input_file)}; the input is not needed here")
    note_outputs({of.output.path: list(_on_place(of)) for of in evaluations})


def _on_place(evaluation: ScoredOutput) -> Iterator[str]:
    """Yield what to say of an output that lies beside other answers, or was tuned on those that it is scored on."""
    test, output = _other_test_set(evaluation.split, evaluation.output), evaluation.output
    if test is not None:
        answers = f"other answers than {named(evaluation.split.expected)}, with which it was scored"
        yield f"{named(output.path)} lies beside {answers}; was -t {visible(test)} meant?"
    if {"tuned", "mix"} & output.parameters.keys():
        from geval_py.explaining.derived import set_tuned_on

        if set_tuned_on(output) == evaluation.split.name:
            how = "tuned" if "tuned" in output.parameters else "mixed"
            yield f"{named(output.path)} was {how} on these lines: on others it would score a little worse"


def _other_test_set(split: Split, output: Output) -> str | None:
    """Return the name of another test set, with answers, in whose folder an output is; None if there is none.

    The two are folders of one challenge.
    """
    folder = os.path.dirname(sources.absolute(output.path))
    ours, theirs = os.path.realpath(os.path.dirname(split.expected)), os.path.realpath(folder)
    if not sources.is_file(output.path) or ours == theirs or os.path.dirname(ours) != os.path.dirname(theirs):
        return None
    return os.path.basename(folder) if answers_in(folder) else None


def _note_losses(evaluations: Sequence[ScoredOutput], *, infinite: bool = False) -> None:
    """Write notes on words that are not in the vocabulary and, if they are wanted, on infinite losses."""
    unknown = (max((of.statistics for of in one.scores), key=lambda of: of.out_of_vocabulary) for one in evaluations)
    counts = dict.fromkeys((of.out_of_vocabulary, of.lines) for of in unknown if of.out_of_vocabulary)
    for count, lines in counts:
        known = "are not in the vocabulary" if count < lines else "are in no vocabulary (--vocabulary FILE names one)"
        note(
            f"{count} of {lines} expected words {known}; where the output does not list them, their loss is infinite"
        )
    if infinite:
        note_outputs({of.output.path: list(_on_infinite_losses(of)) for of in evaluations})


def _on_infinite_losses(evaluation: ScoredOutput) -> Iterator[str]:
    tables = [score.statistics for score in evaluation.scores if score.statistics.infinite]
    for infinite, lines in dict.fromkeys((table.infinite, table.lines) for table in tables):
        yield f"{named(evaluation.output.path)}: the loss of {infinite} of {lines} lines is infinite"


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
        shows = f"--documents {visible(dependence.column)} shows it"
        note(*dependence.notes(f"by document, an interval is {dependence.wider}\n  {shows}"))
        documents = None
    else:
        note(*dependence.notes(f"intervals are by document, {dependence.wider}"))
    note(*notes_on_intervals(documents, (of.scores[0] for of in evaluations)))
    return documents


def warn_unbounded_loss(evaluations: Sequence[ScoredOutput]) -> None:
    """Name the outputs of which one line could lose far more than any did, which no interval shows."""
    from geval_py.explaining.losses import unbounded_loss

    notes: dict[str, list[str]] = {}
    for evaluation in evaluations:
        bound, greatest = unbounded_loss(evaluation) or (0.0, 0.0)
        if bound:
            most = f"up to {bound:.0f} nats" if math.isfinite(bound) else "everything"
            notes[evaluation.output.path] = [
                f"a line of {named(evaluation.output.path)} could lose {most}, and none lost more than {greatest:.1f}"
                "\n  one such line would move the score far beyond its interval: leave more to the rest"
            ]
    note_outputs(notes)
