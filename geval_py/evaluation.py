"""Score from Python: :func:`evaluate`, and the :class:`Evaluation` that it returns."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any

from geval_py.errors import UsageError
from geval_py.reading.challenge import Challenge
from geval_py.reading.config import DEFAULT_SAMPLES, DEFAULT_SEED, DEFAULT_TEST, Task
from geval_py.reading.items import input_columns
from geval_py.reading.outputs import only_output
from geval_py.reading.sources import format_ending
from geval_py.reading.splits import Split, locate
from geval_py.scoring.evaluate import evaluate_split
from geval_py.scoring.scores import MetricScore, ScoredOutput, evaluations_of
from geval_py.tables.numbers import counted
from geval_py.text import named, shown, suggesting, visible

if TYPE_CHECKING:
    from typing import Literal, TypeAlias

    import distributed
    import pandas as pd

    from geval_py.explaining.documents import Documents, DocumentsBy
    from geval_py.explaining.significance import Interval
    from geval_py.scoring.blocks import Progress
    from geval_py.scoring.in_memory import Inputs

    FilePath: TypeAlias = "str | os.PathLike[str]"
    Scored: TypeAlias = "Challenge | FilePath | tuple[FilePath, FilePath]"

GUESSES_OF_TEST = dict.fromkeys(("split", "test_name", "test_set", "tests", "dataset", "data"), "test=…")
_FILES = dict.fromkeys(
    ("expected", "expected_file", "answers", "gold", "reference", "references", "predictions"),
    "evaluate((output, expected), metrics=…) or evaluate(predictions, words, metrics=…)",
)
_OUTPUTS = dict.fromkeys(("output", "outputs", "out_file", "path", "name"), "out=…")


@suggesting(metric="metrics=…", input="inputs=…", vocab="vocabulary=…", **GUESSES_OF_TEST, **_FILES, **_OUTPUTS)
def evaluate(
    challenge: Scored | Any,
    test: str | Iterable[object] = "test-A",
    *,
    out: str | os.PathLike[str] | None = None,
    metrics: str | Sequence[str] = (),
    tokenizer: str | None = None,
    keep_texts: bool = True,
    cluster: distributed.Client | None = None,
    inputs: Inputs | None = None,
    vocabulary: Iterable[str] = (),
) -> Evaluation:
    """Score one output of a challenge, one file against another, or predictions without files.

    ``challenge`` is a Challenge or its directory; ``test`` the name of the test set; ``out`` the output, looked
    for in the test set's directory and then as a path (by default the only output); ``metrics`` replace
    the challenge's, and the ``tokenizer``, for metrics of words such as BLEU, does too. ``keep_texts`` keeps the
    texts in memory, for :meth:`Evaluation.to_frame`.

    Instead of a challenge, its ``test`` and ``out``, there may be a pair of paths: of the output and of the answers.
    An input beside the answers is read when it is needed; the metrics have to be given.

    Instead of files, there may be lists: predictions, and in the place of ``test`` as many expected words. The
    predictions are distributions as :func:`geval_py.format_line` takes them, lines of an output, for other metrics
    texts or numbers, or arrays (:meth:`geval_py.Metric.predictions`), by default scored by that metric.
    ``inputs`` are rows of text, or mappings from columns to texts, or a pandas table; ``vocabulary`` is for metrics
    on exact words, and ``out`` is the name that tables show.

    ``cluster`` is the client of a Dask cluster, whose workers score, with the same result to the last bit. They must
    have this version of geval-py, and read the output under the same path. The texts are not kept, but read again
    when they are needed.

    Warns (UserWarning) of lines whose numbers are neither probabilities nor their logarithms, of ids of a CSV that do
    not ascend, and of what a file has that is left out. Raises GevalError: UsageError if the call is at fault,
    DataError if the data are.
    """
    if not isinstance(test, str):
        if cluster is not None:
            raise UsageError(message="a cluster scores files, and not lists")
        from geval_py.scoring.in_memory import score_lists

        name = None if out is None else os.fspath(out)
        scored = score_lists(
            challenge, test, _texts(metrics), inputs=inputs, tokenizer=tokenizer, vocabulary=vocabulary, name=name
        )
        warn_of_notes(scored)
        return Evaluation.of(scored)
    pair = challenge if isinstance(challenge, list) and len(challenge) == 2 else [None]
    is_pair = all(isinstance(path, str | os.PathLike) for path in pair)
    if not is_pair and not isinstance(challenge, Challenge | str | os.PathLike | tuple):
        raise UsageError(message="predictions are scored against expected words: evaluate(predictions, expected, …)")
    task, split = locate_scored(challenge, test, out, metrics, tokenizer)
    only_output(split.outputs)
    from geval_py.scoring.cluster import workers_of

    workers = workers_of(cluster)
    (scored,) = evaluations_of(
        evaluate_split(task, split, texts="memory" if keep_texts else None, sign=True, workers=workers)
    )
    warn_of_notes(scored)
    return Evaluation.of(scored)


def warn_of_notes(scored: ScoredOutput) -> None:
    """Warn of lines whose numbers are no probabilities, and of how a file was read, as the command's notes do."""
    notes = [] if scored.note_on_numbers is None else [scored.note_on_numbers]
    if format_ending(scored.output.path):
        from geval_py.reading.formats import notes_on

        notes += notes_on(scored.output.path)
    for note in notes:
        warnings.warn(note, stacklevel=4)  # in the caller of evaluate, which text.suggesting wraps


def locate_scored(
    challenge: Scored, test: str, out: FilePath | None, metrics: str | Sequence[str], tokenizer: str | None
) -> tuple[Task, Split]:
    """Return the task and its files."""
    if isinstance(challenge, tuple | list):
        try:
            output, expected = [os.fspath(path) for path in challenge]
        except (TypeError, ValueError):
            raise UsageError(message=f"a pair of paths is (output, expected), not {shown(challenge)}") from None
        if out is not None or test != DEFAULT_TEST:
            raise UsageError(message="with a pair of paths there is no", arguments=("test", "out"))
        task = Task(out_directory="", test_name="", out_files=(output,), expected_file=expected)
    else:
        if out is not None and not isinstance(out, str | os.PathLike):
            several = "; evaluate_all scores all outputs" if isinstance(out, tuple | list) else ""
            raise UsageError(message=f"out is the name or path of one output, not {shown(out)}{several}")
        if not isinstance(challenge, Challenge) and os.path.isfile(challenge):
            pair = "evaluate((output, expected), metrics=…) scores one file against another"
            place = named(os.fspath(challenge))
            raise UsageError(message=f"{place} is a file, and not a challenge's folder\n  {pair}")
        task = (challenge if isinstance(challenge, Challenge) else Challenge.open(challenge)).task
        task = task.replace(test_name=test, out_files=task.out_files if out is None else (os.fspath(out),))
    task = task.replace(alt_metrics=_texts(metrics) or task.alt_metrics)
    if tokenizer is not None:
        from geval_py.reading.preparation import checked_name

        task = task.replace(tokenizer=checked_name(tokenizer))
    return task, locate(task)


def _texts(metrics: object) -> tuple[str, ...]:
    names = (metrics,) if isinstance(metrics, str) or not isinstance(metrics, Iterable) else tuple(metrics)
    if not all(isinstance(metric, str) for metric in names):
        raise UsageError(
            message=f"metrics are a name, as 'PerplexityHashed', or a list of names, not {shown(metrics)}"
        )
    return names


class Score(MetricScore):
    """One metric's value on one output, with its interval."""

    def __repr__(self) -> str:
        return f"<Score: {visible(self.name)} {self.value:.6g} {self.unit}, {self.direction} is better>"

    def interval(
        self,
        *,
        samples: int = DEFAULT_SAMPLES,
        seed: int = DEFAULT_SEED,
        documents: Documents | None = None,
        as_geval: bool = False,
        progress: Progress | None = None,
    ) -> Interval:
        """Compute the 95 % interval.

        It is computed from the losses of lines or, for a metric that is not made from a mean loss, from ``samples``
        resamples; with ``documents``, of all lines of the file, by documents. With ``as_geval`` it is GEval's, always
        from resamples, which is too narrow for few lines.

        Raises UsageError for fewer than one sample, a seed below 0, and a single document.
        """
        from geval_py.explaining.documents import score_interval

        return score_interval(
            self,
            samples=samples,
            seed=seed,
            documents=documents,
            as_geval=as_geval,
            progress=progress,
        )


class Evaluation(ScoredOutput):
    """The scores of one output. Printed with one score per line, and in Jupyter as a table.

    ``scores`` are in the order of the metrics. ``file_lines`` is the number of lines of the output, scored or not,
    and ``input`` the input beside it. Equal ``signature`` mean equal scores; it is None unless it was asked for,
    since it costs time.

    Evaluations are equal if their signatures are, whatever the names of their files; an evaluation without a
    signature equals only itself.
    """

    scores: tuple[Score, ...]

    @classmethod
    def of(cls, scored: ScoredOutput) -> Evaluation:
        """Return an output's scores as a user holds them."""
        return cls(**(vars(scored) | {"scores": tuple(Score._make(score) for score in scored.scores)}))

    def __str__(self) -> str:
        from geval_py.scoring.score_tables import evaluation_text

        return evaluation_text(self)

    def __repr__(self) -> str:
        scores = ", ".join(f"{visible(score.name)} {score.value:.6g}" for score in self.scores)
        return f"<Evaluation of {visible(self.output.name)}: {scores}, {counted(self.line_count, 'line')}>"

    def interval(
        self, *, samples: int = DEFAULT_SAMPLES, seed: int = DEFAULT_SEED, documents: DocumentsBy = None
    ) -> Interval:
        """Compute the 95 % interval of the first metric's value.

        It is computed from the losses of lines or, for a metric that is not made from a mean loss, from ``samples``
        resamples. ``documents`` is a column of the input (its name or its number, from 1) or one value per line:
        lines with the same value are one document. The interval is then by documents, since lines of one document are
        alike. By default the column is declared in config.txt or found, if there is one, as in
        :func:`geval_py.compare`; False takes each line by itself.

        Raises UsageError for fewer than one sample, a seed below 0, an unknown column and a single document.
        """
        return self.scores[0].interval(samples=samples, seed=seed, documents=self._documents(documents))

    def scores_dict(self, *, intervals: bool = True, documents: DocumentsBy = None) -> dict[str, float]:
        """Return the scores in a flat dictionary, as loggers of experiments want them.

        Each score is under its name and, with ``intervals``, the ends of its 95 % interval are under the name with
        ``_low`` and ``_high``; ``documents`` are as for :meth:`interval`.
        """
        values = {score.name: score.value for score in self.scores}
        return values | interval_ends(self.scores, self._documents(documents)) if intervals else values

    def _documents(self, by: DocumentsBy) -> Documents | None:
        """Return the documents of all lines of the file."""
        from geval_py.explaining.documents import choose_documents

        return choose_documents([self], by)[0]

    def to_frame(self) -> pd.DataFrame:
        """Make a table with a row a line.

        Columns: ``line`` (from 1), the columns of the input by their header names (or numbers, from 1), ``expected``,
        ``output``, ``loss`` (or the other statistics of the first metric) and ``score`` (of that metric). If the name
        of a column of the input is taken, it becomes ``in<name>``, or its number. Raises as :meth:`read_items`.
        """
        return self._frame(None)

    def _frame(self, selected: Sequence[bool] | None) -> pd.DataFrame:
        """Make the table of all or of selected lines; the index is a line's place among all."""
        import pandas as pd

        keep = [True] * self.line_count if selected is None else selected
        first, header = self.scores[0], self.split.in_header
        names, statistics = first.metric.measure.columns, first.statistics.columns
        inputs, expected, outputs = zip(*compress(self.read_items(), keep), strict=True)
        columns: dict[str, Any] = {"line": list(compress(self.line_numbers or range(1, self.line_count + 1), keep))}
        own: dict[str, Sequence[Any]] = {"expected": expected, "output": outputs}
        own |= {name: list(compress(column, keep)) for name, column in zip(names, statistics, strict=True)}
        own["score"] = list(compress(self.line_scores(), keep))
        width = self.input_width()
        rows = [text.split("\t") for text in inputs] if width else []
        columns |= input_columns(rows, width, header, {*columns, *own})
        return pd.DataFrame(columns | own, index=list(compress(range(self.line_count), keep)))

    def lines(
        self,
        *,
        sort: Literal["worst", "best"] | None = None,
        filter: str | Sequence[str] = (),
        tokenizer: str | None = None,
        numerical_features: bool = False,
        cartesian: bool = False,
    ) -> pd.DataFrame:
        """Make the table of :meth:`to_frame`, the worst or the best lines first, or only of lines with some features.

        ``filter`` is a feature, such as ``"exp:the"`` or ``"in<Year>:1901"``, or several, all of which a line must
        have; they are written as in :meth:`worst_features`, with the same ``tokenizer`` and ``cartesian``. With
        ``numerical_features``, lengths and numbers are features too: ``"in<Text>:=#8"``, ``"in<Year>:=1901"``.

        Raises UsageError for a feature that cannot be read, or that no line has, and for another ``sort``.
        """
        from geval_py.reading.features import FeatureKinds, Fields, parse_filter, tokens_of

        if sort not in (None, "worst", "best"):
            raise UsageError(message=f"lines are sorted by the worst or the best first, not by {sort!r}")
        names = (filter,) if isinstance(filter, str) else tuple(filter)
        kinds = FeatureKinds(numerical=numerical_features, cartesian=cartesian, tokens=tokens_of(tokenizer))
        item_filter = parse_filter(names, Fields(self.split.in_header), kinds) if names else None
        frame = self._frame(None if item_filter is None else self.select(item_filter))
        if sort is None:
            return frame
        greatest_first = self.scores[0].greatest_first(worst=sort == "worst")
        return frame.sort_values("score", ascending=not greatest_first, kind="stable")

    def worst_features(
        self,
        *,
        other: Evaluation | None = None,
        best: bool = False,
        min_frequency: int | None = None,
        bigrams: bool = False,
        word_shapes: bool = False,
        numerical_features: bool = False,
        cartesian: bool = False,
        min_cartesian_frequency: int | None = None,
        tokenizer: str | None = None,
        documents: DocumentsBy = None,
        distinct: bool = False,
        cluster: distributed.Client | None = None,
    ) -> pd.DataFrame:
        """Rank the features of the lines by how surely they go with bad scores, in a table by rising p.

        ``count`` is the number of lines with a ``feature``, ``score`` their mean, ``p`` one-sided, of the
        Mann-Whitney U test, and ``q`` is p corrected for ties and, by Benjamini and Hochberg, for the number of
        features in the table. For losses in nats there are ``perplexity`` (exp of their mean) and, with a 95 %
        interval, ``gain``: the share by which the perplexity of all lines would fall if these lines were no worse
        than the others. A numerical feature has the figures of the quarter at one end, and p of Kendall's rank
        correlation, two-sided.

        ``documents`` is a column of the input (its name or number, from 1) or one value per line: lines on which it
        is the same are alike. q then comes from comparing lines with others of the same document, the interval of the
        gain is by documents, and there is the number of ``documents`` with a feature. By default the column
        is chosen as in :func:`geval_py.compare`; False takes each line by itself. ``distinct`` chooses the
        few features that together explain the bad lines, the most telling first, with the share of the losses'
        variance ``explained`` so far. With an ``other`` evaluation, differences to its scores are ranked. ``best``
        ranks features that go with good scores. The workers of a ``cluster``, a Dask client, count the features. The
        other arguments are those of the command line: of more than 200,000 lines, ``min_frequency`` is by default as
        great as it can be without leaving out a feature that can be significant. Raises UsageError for an unknown
        column, and for distinct pairs of features.
        """
        from geval_py.explaining.worst_features import rank_features
        from geval_py.reading.features import FeatureKinds, tokens_of
        from geval_py.scoring.cluster import workers_of

        kinds = FeatureKinds(
            bigrams=bigrams, word_shapes=word_shapes, numerical=numerical_features, cartesian=cartesian,
            tokens=tokens_of(tokenizer),
        )  # fmt: skip
        return rank_features(
            self, kinds, other=other, best=best, least=min_frequency, least_of_pair=min_cartesian_frequency,
            costs=True, documents=documents, distinct=distinct, workers=workers_of(cluster),
        ).to_frame()  # fmt: skip

    def _repr_html_(self) -> str:
        """Show the scores as a table in Jupyter."""
        from geval_py.scoring.score_tables import scores_html

        return scores_html(self)


def interval_ends(scores: Iterable[Score], documents: Documents | None) -> dict[str, float]:
    """Return the ends of each score's interval, under its name with ``_low`` and ``_high``."""
    ends: dict[str, float] = {}
    for score in scores:
        interval = score.interval(documents=documents)
        ends |= {f"{score.name}_low": interval.low, f"{score.name}_high": interval.high}
    return ends
