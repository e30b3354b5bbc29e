"""Score from Python: a challenge's outputs, one file against another, or predictions in memory.

Each function returns an :class:`Evaluation`, or several in :class:`Evaluations`.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from geval_py.errors import DataError, SchemeError, UsageError
from geval_py.reading.challenge import Challenge
from geval_py.reading.config import Task
from geval_py.reading.outputs import only_output
from geval_py.reading.splits import Split, locate
from geval_py.scoring.evaluate import evaluate_split, select_schemes
from geval_py.scoring.scores import Evaluation as Evaluation
from geval_py.scoring.scores import Score as Score
from geval_py.scoring.scores import without_faults
from geval_py.text import named, shown

if TYPE_CHECKING:
    import distributed
    import pandas as pd

    from geval_py.scoring.in_memory import Inputs

FilePath: TypeAlias = "str | os.PathLike[str]"
Metrics: TypeAlias = "str | Sequence[str]"


def evaluate(
    challenge: Challenge | FilePath,
    test: FilePath = "test-A",
    *,
    output: FilePath | None = None,
    metric: Metrics = (),
    tokenizer: str | None = None,
    cluster: distributed.Client | None = None,
) -> Evaluation:
    """Score one output of a challenge.

    ``challenge`` is a Challenge or its folder, ``test`` the name of the test set. ``output`` is looked for in the
    test set's folder and then as a path; by default it is the only output. ``metric``, a name or several, replaces
    the challenge's, and the ``tokenizer``, for metrics of words such as BLEU, does too. The workers of a ``cluster``,
    the client of a Dask cluster, score with the same result to the last bit; they must have this version of geval-py
    and read the output under the same path.

    Warns (UserWarning) of the notes of the evaluation. Raises GevalError: UsageError if the call is at fault,
    DataError if the data are.
    """
    if output is not None and not isinstance(output, str | os.PathLike):
        raise UsageError(f"output is the name or path of one output, not {shown(output)}; see evaluate_all")
    task, split = _located(challenge, test, output, metric, tokenizer)
    only_output(split.outputs)
    return _one_of(evaluate_split(task, split, keep=True, cluster=cluster))


def score_file(
    output: FilePath,
    expected: FilePath,
    *,
    metric: Metrics,
    input: FilePath | None = None,
    tokenizer: str | None = None,
    vocabulary: Iterable[str] = (),
    cluster: distributed.Client | None = None,
) -> Evaluation:
    """Score the output at one path against the expected words at another, without a challenge.

    ``input`` is for features and documents, by default the in.tsv beside the expected words; ``vocabulary`` are the
    words for metrics on exact words. The other arguments, the warnings and the errors are those of :func:`evaluate`.
    """
    task = Task(
        out_directory="", test_name="", out_files=(os.fspath(output),), expected_file=os.fspath(expected),
        input_file=None if input is None else os.fspath(input),
    )  # fmt: skip
    task = _with_metrics(task, metric, tokenizer)
    words = _checked_vocabulary(vocabulary, task)
    return _one_of(evaluate_split(task, locate(task), keep=True, cluster=cluster, vocabulary=words))


def score(
    predictions: Any,
    references: Iterable[object],
    *,
    metric: Metrics = (),
    inputs: Inputs | None = None,
    tokenizer: str | None = None,
    vocabulary: Iterable[str] = (),
    name: str = "predictions",
) -> Evaluation:
    """Score predictions in memory against the references: the expected words, one for each prediction.

    The predictions are distributions as :func:`geval_py.format_line` takes them, lines of an output, for other
    metrics texts or numbers, or what :meth:`geval_py.Metric.predictions` makes of arrays, by default scored by the
    metric that made it. ``inputs`` are rows of text, or mappings from columns to texts, or a pandas table. Tables
    show the ``name``. The other arguments, the warnings and the errors are those of :func:`score_file`.
    """
    from geval_py.scoring.in_memory import score_lists

    task = _with_metrics(Task(), _names(metric) or _names(getattr(predictions, "metric", ())), tokenizer)
    words = _checked_vocabulary(vocabulary, task)
    return _one_of([score_lists(task, predictions, references, inputs, words, name)])


def evaluate_all(
    challenge: Challenge | FilePath,
    test: FilePath = "test-A",
    *,
    metric: Metrics = (),
    tokenizer: str | None = None,
    cluster: distributed.Client | None = None,
    on_fault: Callable[[DataError | SchemeError], object] | None = None,
) -> Evaluations:
    """Score all outputs of a test set, in the order of their names; see :func:`evaluate`.

    Raises the error of the first output that is at fault. With ``on_fault``, such as ``print``, calls that with each
    such error, and leaves the output out.
    """
    task, split = _located(challenge, test, None, metric, tokenizer)
    evaluations = Evaluations(without_faults(evaluate_split(task, split, keep=True, cluster=cluster), on_fault))
    _warn(evaluations, stacklevel=3)
    return evaluations


def _one_of(evaluations: Iterable[Evaluation]) -> Evaluation:
    (evaluation,) = without_faults(evaluations)
    _warn([evaluation], stacklevel=4)
    return evaluation


def _warn(evaluations: Sequence[Evaluation], stacklevel: int) -> None:
    for note in dict.fromkeys(note for evaluation in evaluations for note in evaluation.notes):
        warnings.warn(note, stacklevel=stacklevel)  # in the caller of a public function


def _located(
    challenge: Challenge | FilePath, test: FilePath, output: FilePath | None, metric: Metrics, tokenizer: str | None
) -> tuple[Task, Split]:
    """Return the task of a challenge and its files."""
    if not isinstance(challenge, Challenge | str | os.PathLike) or not isinstance(test, str | os.PathLike):
        others = (
            "score(predictions, references, metric=…) scores lists, and score_file(output, expected, metric=…) files"
        )
        value = test if isinstance(challenge, Challenge | str | os.PathLike) else challenge
        raise UsageError(f"evaluate takes a challenge and the name of a test set, not {shown(value)}\n  {others}")
    if not isinstance(challenge, Challenge) and os.path.isfile(challenge):
        advice = "score_file(output, expected, metric=…) scores one file against another"
        raise UsageError(f"{named(os.fspath(challenge))} is a file, and not a challenge's folder\n  {advice}")
    task = (challenge if isinstance(challenge, Challenge) else Challenge.open(challenge)).task
    task = task.replace(
        test_name=os.fspath(test), out_files=task.out_files if output is None else (os.fspath(output),)
    )
    task = _with_metrics(task, metric, tokenizer)
    return task, locate(task)


def _with_metrics(task: Task, metric: Metrics, tokenizer: str | None) -> Task:
    """Return a task with other metrics; raises UsageError for a tokenizer that no metric uses."""
    task = task.replace(alt_metrics=_names(metric) or task.alt_metrics)
    if tokenizer is None:
        return task
    from geval_py.reading.schemes import checked_tokenizer

    task = task.replace(tokenizer=checked_tokenizer(tokenizer))
    schemes = select_schemes(task)
    if not any(metric.is_tokenised for _, metric in schemes):
        names = ", ".join(metric.name for _, metric in schemes)
        raise UsageError(f"tokenizer is for metrics of words, such as BLEU, and has no effect on {names}")
    return task


def _names(metric: object) -> tuple[str, ...]:
    names = (metric,) if isinstance(metric, str) or not isinstance(metric, Iterable) else tuple(metric)
    if not all(isinstance(name, str) for name in names):
        raise UsageError(f"metric is a name, such as 'PerplexityHashed', or several, not {shown(metric)}")
    return names


def _checked_vocabulary(vocabulary: Iterable[str], task: Task) -> frozenset[str]:
    """Return the words of a vocabulary; raises UsageError for one that no metric uses."""
    if isinstance(vocabulary, str):
        raise UsageError(f"a vocabulary is a list of words, not {shown(vocabulary)}")
    words = frozenset(vocabulary)
    schemes = select_schemes(task)
    if words and not any(metric.needs_vocabulary for _, metric in schemes):
        names = ", ".join(metric.name for _, metric in schemes)
        what = "vocabulary is for metrics on exact words, such as Perplexity, and has no effect on"
        raise UsageError(f"{what} {names}")
    return words


class Evaluations(list[Evaluation]):
    """A list of the scores of several outputs. Printed as the table that ``geval -t`` shows of them."""

    def to_frame(self, *, intervals: bool = False) -> pd.DataFrame:
        """Return a table with a row an output, in the list's order.

        Columns: ``challenge``, its folder, if there are several; ``output``, the name without ``out-`` and ``.tsv``,
        each parameter in the names (numbers, if all its values are numbers; NaN where an output lacks it), and each
        metric. With ``intervals``, the ends of the 95 % intervals are more columns, named as in
        :meth:`Evaluation.scores_dict`. They are by documents if :func:`geval_py.compare` compares by documents.
        """
        from geval_py.scoring.score_tables import scores_frame

        return scores_frame(self, intervals=intervals)

    def to_markdown(self, *, precision: int | None = None, names: Mapping[str, str] | None = None) -> str:
        """Write a Markdown table: the table of ``geval -t`` with the same metrics; arguments as of to_latex."""
        from geval_py.scoring.score_tables import scores_table

        return "".join(scores_table(self, precision, names).markdown())

    def to_latex(
        self,
        caption: str | None = None,
        label: str | None = None,
        *,
        precision: int | None = None,
        names: Mapping[str, str] | None = None,
    ) -> str:
        """Write a LaTeX table, with the package booktabs: the table of ``geval -t`` with the same metrics.

        A ``caption``, which is escaped, or a ``label`` puts it into a table environment. Scores have ``precision``
        digits after the point, by default as config.txt says, and all if it does not. ``names`` are shown instead of
        the outputs' own, by which they are given, or by a shorter name, as a baseline; there are then no columns of
        parameters. Raises UsageError for an output that is not there, and for a label with other characters than
        letters, digits and ``:._/+-``.
        """
        from geval_py.explaining.comparison import checked_label
        from geval_py.scoring.score_tables import scores_table

        return "".join(scores_table(self, precision, names).latex(caption, checked_label(label)))

    def __repr__(self) -> str:
        from geval_py.scoring.score_tables import scores_table

        return "".join(scores_table(self).table().text()).removesuffix("\n") if self else "[]"

    def _repr_html_(self) -> str:
        from geval_py.scoring.score_tables import scores_table

        return "".join(scores_table(self).html()) if self else ""
