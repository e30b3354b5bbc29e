"""The scores of one output, each a value or an error, with their line statistics, the signature and the notes."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import repeat
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from geval_py.errors import DataError, SchemeError, UsageError
from geval_py.reading.config import DEFAULT_SAMPLES, DEFAULT_SEED
from geval_py.reading.items import ScoredItem, input_columns
from geval_py.reading.lines import LinesByPlace, check_line_count, count_lines, first_name, read_lines, sha256_of
from geval_py.reading.outputs import Output
from geval_py.reading.schemes import EvaluationScheme
from geval_py.reading.splits import Split
from geval_py.scoring.metrics.base import NOISE, Integers, LineStatistics, Metric, total
from geval_py.tables.numbers import score_text
from geval_py.tables.table import Column, Table, named_columns
from geval_py.text import counted, named, shown, visible
from geval_py.version import build_version

if TYPE_CHECKING:
    import pandas as pd

    from geval_py.explaining.calibration import Calibration
    from geval_py.explaining.documents import DocumentsBy
    from geval_py.explaining.luck import Luck
    from geval_py.explaining.significance import Interval
    from geval_py.reading.features import ItemFilter
    from geval_py.reports.charts import Chart
    from geval_py.scoring.blocks import Block, Progress


# Computes a score's interval, an :class:`geval_py.explaining.significance.Interval`.
IntervalOf: TypeAlias = "Callable[[Score], Any]"
Side: TypeAlias = Literal["input", "expected", "output"]  # the files whose lines stand side by side
FEATURE_OF_INPUT = "a feature of the input was asked for"  # begins the error where there is none


class Score:
    """One metric's value on one output.

    ``name`` is the name shown, from the scheme; ``statistics`` are the line statistics that it is made from.
    ``line_numbers`` are the numbers, from 1, of the lines that the scheme's flags select, in scoring order; None for
    all lines. If the output could not be scored, or the flags select no line, the value is NaN, and ``error`` says
    why. ``reads_input`` is whether it depends on the input. It is no dataclass, since the module ``dataclasses``
    takes longer to import than Python to start.
    """

    def __init__(
        self,
        name: str,
        value: float,
        metric: Metric,
        scheme: EvaluationScheme,
        statistics: LineStatistics,
        line_numbers: array[int] | None = None,
        error: DataError | SchemeError | None = None,
    ) -> None:
        self.name, self.value, self.metric, self.scheme, self.statistics = name, value, metric, scheme, statistics
        self.line_numbers, self.error, self.reads_input = line_numbers, error, False
        self.evaluation: Evaluation | None = None

    def __repr__(self) -> str:
        return f"<Score: {visible(self.name)} {self.value:.6g} {self.unit}, {self.direction} is better>"

    @property
    def unit(self) -> str:
        """The unit of the value: nats, bits, words, probability or share."""
        return self.metric.measure.unit

    @property
    def direction(self) -> str:
        """Which values are better: "higher" or "lower"."""
        return self.metric.measure.direction

    @property
    def details(self) -> dict[str, Any]:
        """What else belongs to the score: of BLEU its precisions, its brevity penalty and both lengths."""
        make = self.metric.details
        return {} if self.error or make is None else make(*map(total, self.statistics.columns))

    def greatest_first(self, *, worst: bool) -> bool:
        """Whether the greatest values come first if the worst values, or the best ones, should."""
        return (self.direction == "lower") == worst

    def interval(
        self,
        *,
        samples: int = DEFAULT_SAMPLES,
        seed: int = DEFAULT_SEED,
        documents: DocumentsBy = None,
        as_geval: bool = False,
        progress: Progress | None = None,
    ) -> Interval:
        """Compute the 95 % interval.

        It is computed from the losses of lines or, for a metric that is not made from a mean loss, from ``samples``
        resamples. ``documents`` is as in :func:`geval_py.compare`: the interval is by documents, since lines of one
        document are alike. With ``as_geval`` the interval is GEval's, always from resamples, which is too narrow for
        few lines.

        Raises UsageError for fewer than one sample, a seed below 0, an unknown column and a single document.
        """
        from geval_py.explaining.documents import choose_documents, score_interval

        chosen = None if self.evaluation is None else choose_documents(self.evaluation, documents)
        return score_interval(
            self, samples=samples, seed=seed, documents=chosen, as_geval=as_geval, progress=progress
        )

    def to_dict(self, interval: IntervalOf | None = None) -> dict[str, Any]:
        """Return what ``--format json`` shows of one metric: its value, or its error.

        It has ``lines`` only if flags select some, a signature only if a library signs the score, and its details.
        """
        document: dict[str, Any] = {"name": self.name, "value": None if self.error else self.value}
        document |= {"unit": self.unit, "direction": self.direction}
        if self.error is not None:
            return document | {"error": error_document(self.error)}
        document |= {"infinite_losses": self.statistics.infinite, **self.details}
        if self.metric.signature is not None:
            document["signature"] = self.metric.signature(self.statistics)
        if self.scheme.selecting_flags:
            document["lines"] = self.statistics.lines
        if interval is not None:
            document["interval"] = interval(self).to_dict()
        return document


class Signature(str):
    """Everything that scores depend on, ``key:value|key:value…``: equal signatures mean equal scores.

    ``parts`` are the values by their keys, without those that the scores do not depend on. ``metric`` has the
    evaluation schemes as they were written, ``bits`` their numbers of bits, ``-`` for metrics without, and ``lines``
    is the number of lines that the first metric scored. ``expected``, ``output``, ``input`` and ``vocabulary`` are
    SHA-256 digests, in hexadecimal, of the lines read and of the words, and ``header`` of the input's columns.
    ``version`` is geval-py's, with the commit that it was built from, if that is known. ``filters`` is ``raw`` if
    flags selected lines by their unprepared text, and preparation would have changed it. ``library`` has the
    signatures of the libraries that compute scores, with ``;`` for ``|``.
    """

    parts: dict[str, str]

    @classmethod
    def of(cls, evaluation: Evaluation, scores: Sequence[Score]) -> Signature:
        """Sign some scores of an evaluation; each of its files is hashed once."""
        split, schemes = evaluation.split, [score.scheme for score in scores]
        own_input = split.input if any(score.reads_input for score in scores) else None
        words = evaluation.vocabulary if any(score.metric.needs_vocabulary for score in scores) else ()
        selected_raw = any(scheme.selecting_flags and scheme.changes_lines for scheme in schemes)
        signed = [score.metric.signature(score.statistics) for score in scores if score.metric.signature is not None]
        parts = {
            "metric": ",".join(scheme.text for scheme in schemes),
            "bits": ",".join(str(score.metric.bits or "-") for score in scores),
            "lines": str(scores[0].statistics.lines),
            "expected": sha256_of(split.expected),
            "output": sha256_of(evaluation.output.file),
            "input": None if own_input is None else sha256_of(own_input),
            "header": None if own_input is None else sha256_of("\t".join(split.in_header)),
            "version": build_version(),
            "vocabulary": sha256_of("\n".join(sorted(words))) if words else None,
            "tokenizer": next((scheme.tokenizer for scheme in schemes if scheme.tokenizer), None),
            "filters": "raw" if evaluation.raw_filters and selected_raw else None,
            "library": ",".join(text.replace("|", ";") for text in signed) or None,
        }
        present = {key: value for key, value in parts.items() if value is not None}
        signature = cls("|".join(f"{key}:{value}" for key, value in present.items()))
        signature.parts = present
        return signature


class Evaluation:
    """The scores of one output. Printed with one score per line, and in Jupyter as a table.

    ``scores`` are in the order of the metrics, each with a value or an error. ``file_lines`` is the number of lines
    of the output, scored or not. ``notes`` say what a user should know of the scores: the command prints these, and
    :func:`geval_py.evaluate` warns of these. ``sample`` has the first lines. Notes tell whether these have another
    order, and why a score is bad. A board does not ask: how long that takes depends on the answers.
    """

    def __init__(
        self,
        split: Split,
        output: Output,
        scores: Sequence[Score],
        file_lines: int = 0,
    ) -> None:
        self.split, self.output, self.file_lines = split, output, file_lines
        self.scores = tuple(scores)
        self.notes: tuple[str, ...] = ()
        self.sample: Block | None = None
        self.vocabulary, self.raw_filters = frozenset[str](), False
        for score in self.scores:
            score.evaluation = self

    def __str__(self) -> str:
        rows = [(score.name, score.value) for score in self.scores]
        table = Table([Column("metric"), Column("score", write=score_text)], rows)
        return "".join(table.text(header=False)).removesuffix("\n")

    def __repr__(self) -> str:
        scores = ", ".join(f"{visible(score.name)} {score.value:.6g}" for score in self.scores)
        return f"<Evaluation of {visible(self.output.name)}: {scores}, {counted(self.line_count, 'line')}>"

    def _repr_html_(self) -> str:
        """Show the scores as a table in Jupyter."""
        heads = named_columns(("output", "metric", "score", "unit", ""))
        heads[2] = Column("score", alignment="right", write=score_text)
        rows = [(self.output.name, s.name, s.value, s.unit, f"{s.direction} is better") for s in self.scores]
        return "".join(Table(heads, rows).html())

    def __getitem__(self, name: str) -> Score:
        """Return the score of a metric by its name; raises KeyError."""
        for score in self.scores:
            if name in (score.name, score.scheme.text):
                return score
        raise KeyError(f"{name!r}; there are {', '.join(score.name for score in self.scores)}")

    @property
    def errors(self) -> list[DataError | SchemeError]:
        """The distinct errors of the scores."""
        return list({str(score.error): score.error for score in self.scores if score.error is not None}.values())

    @property
    def has_scores(self) -> bool:
        """Whether the output has a score by at least one metric."""
        return any(score.error is None for score in self.scores)

    @cached_property
    def signature(self) -> Signature:
        """What the scores depend on; the files are hashed when it is first asked for."""
        return Signature.of(self, [score for score in self.scores if score.error is None])

    @property
    def line_losses(self) -> array[float]:
        """The losses that the first metric is made from, a value a line: nats (for Accuracy 0 and 1), possibly inf.

        Raises UsageError if it is made from other statistics.
        """
        first = self.scores[0]
        return first.metric.losses(first.statistics)

    @property
    def line_numbers(self) -> array[int] | None:
        """The numbers of the lines that the first metric scored; see :class:`Score`."""
        return self.scores[0].line_numbers

    @property
    def line_count(self) -> int:
        """The number of lines that the first metric with a score scored."""
        return next((score.statistics.lines for score in self.scores if score.error is None), 0)

    @property
    def out_of_vocabulary(self) -> int:
        """The number of expected words that the vocabulary of a metric on exact words lacks."""
        return max(score.statistics.out_of_vocabulary for score in self.scores)

    @property
    def score(self) -> float:
        """The value of the first metric."""
        return self.scores[0].value

    def line_scores(self) -> list[float]:
        """Compute the first metric's value of each line alone."""
        return list(self.scores[0].metric.line_scores(self.scores[0].statistics))

    def interval(
        self, *, samples: int = DEFAULT_SAMPLES, seed: int = DEFAULT_SEED, documents: DocumentsBy = None
    ) -> Interval:
        """Compute the 95 % interval of the first metric; see :meth:`geval_py.scoring.scores.Score.interval`."""
        return self.scores[0].interval(samples=samples, seed=seed, documents=documents)

    def scores_dict(self, *, intervals: bool = True, documents: DocumentsBy = None) -> dict[str, float]:
        """Return the scores in a flat dictionary, as loggers of experiments want them.

        Each score is under its name and, with ``intervals``, the ends of its 95 % interval are under the name with
        ``_low`` and ``_high``; ``documents`` are as for :meth:`geval_py.scoring.scores.Score.interval`.
        """
        values = {score.name: score.value for score in self.scores}
        for score in self.scores if intervals else ():
            interval = score.interval(documents=documents)
            values |= {f"{score.name}_low": interval.low, f"{score.name}_high": interval.high}
        return values

    # The texts of the scored lines

    def texts(self, side: Side, places: Sequence[int] | Integers | None = None) -> Iterator[str]:
        """Return the scored lines of a file in scoring order, or those at some places among them, in any order.

        An input that is not there has "" without end. Raises LineCountError if the input has another number of lines.
        """
        split = self.split
        file = {"input": split.input, "expected": split.expected, "output": self.output.file}[side]
        header = first_name(split.in_header) if side == "input" else split.output_header
        if file is None:
            return repeat("")
        if side == "input":
            check_input_length(split, self.file_lines)
        numbers = self.line_numbers
        if numbers is None and places is None:
            return read_lines(file, header=header)
        chosen: Iterable[int] = range(self.line_count) if places is None else places
        if numbers is not None:
            chosen = (numbers[place] - 1 for place in chosen)
        return map(LinesByPlace(file, header).line, chosen)

    def sides(self, places: Sequence[int] | Integers | None = None) -> tuple[Iterator[str], ...]:
        """Return the :meth:`texts` of the input, the answers and the output."""
        return self.texts("input", places), self.texts("expected", places), self.texts("output", places)

    def read_items(self) -> Iterator[ScoredItem]:
        """Yield each scored line's input, expected word and output; the input is "" if there is no input file.

        Raises LineCountError if the input has another number of lines.
        """
        return map(ScoredItem, *self.sides())

    def input_width(self) -> int:
        """Return the number of columns of the input's widest scored line; 0 if there is no input file."""
        if self.split.input is None:
            return 0
        return max((text.count("\t") + 1 for text in self.texts("input")), default=0)

    def select(self, filter: ItemFilter) -> list[bool]:
        """Return for each scored line whether it has the features of a filter.

        Raises UsageError if none has, or if the filter needs an input that lines in memory lack; MissingFileError if
        the file is not there.
        """
        if filter.needs_input and self.split.input is None:
            raise self.split.missing_input(FEATURE_OF_INPUT)
        selected = [filter.selects(item) for item in self.read_items()]
        if not any(selected):
            raise UsageError(filter.nothing_found(self.read_items()))
        return selected

    def to_frame(self) -> pd.DataFrame:
        """Make a table with a row a line.

        Columns: ``line`` (from 1), the columns of the input by their header names (or numbers, from 1), ``expected``,
        ``output``, ``loss`` (or the other statistics of the first metric) and ``score`` (of that metric). If the name
        of a column of the input is taken, it becomes ``in<name>``, or its number. Raises as :meth:`read_items`.
        """
        import pandas as pd

        first, header = self.scores[0], self.split.in_header
        names, statistics = first.metric.measure.columns, first.statistics.columns
        inputs, expected, outputs = zip(*self.read_items(), strict=True)
        columns: dict[str, Any] = {"line": self.line_numbers or range(1, self.line_count + 1)}
        own: dict[str, Sequence[Any]] = {"expected": expected, "output": outputs}
        own |= zip(names, statistics, strict=True)
        own["score"] = self.line_scores()
        width = self.input_width()
        rows = [text.split("\t") for text in inputs] if width else []
        columns |= input_columns(rows, width, header, {*columns, *own})
        return pd.DataFrame(columns | own)

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
            raise UsageError(f"lines are sorted by the worst or the best first, not by {sort!r}")
        names = (filter,) if isinstance(filter, str) else tuple(filter)
        kinds = FeatureKinds(numerical=numerical_features, cartesian=cartesian, tokens=tokens_of(tokenizer))
        frame = self.to_frame()
        if names:
            frame = frame[self.select(parse_filter(names, Fields(self.split.in_header), kinds))]
        if sort is None:
            return frame
        greatest_first = self.scores[0].greatest_first(worst=sort == "worst")
        return frame.sort_values("score", ascending=not greatest_first, kind="stable")

    # What explains the scores

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
    ) -> pd.DataFrame:
        """Rank the features of the lines by how surely they go with bad scores, in a table by rising p.

        ``count`` is the number of lines with a ``feature``, ``score`` their mean, ``p`` one-sided, of the
        Mann-Whitney U test, and ``q`` is p corrected for ties and, by Benjamini and Hochberg, for the number of
        features, and of all pairs with ``cartesian``. For losses in nats there are ``perplexity`` (exp of their
        mean) and, with a 95 % interval, ``gain``: the share by which the perplexity of all lines would fall if these
        lines were no worse than the others. A numerical feature has the figures of the quarter at one end, and p of
        Kendall's rank correlation, two-sided.

        ``documents`` is as in :func:`geval_py.compare`: q then comes from comparing lines with others of the same
        document, the interval of the gain is by documents, and there is the number of ``documents`` with a feature.
        With an ``other`` evaluation, differences to its scores are ranked. ``best`` ranks features that go with good
        scores. The other arguments are those of the command line; ``min_frequency`` is by default 1 or, of more than
        200,000 lines, 5. ``numerical_features`` need SciPy. Raises UsageError for an unknown column.
        """
        from geval_py.explaining.worst_features import rank_features
        from geval_py.reading.features import FeatureKinds, tokens_of

        kinds = FeatureKinds(
            bigrams=bigrams, word_shapes=word_shapes, numerical=numerical_features, cartesian=cartesian,
            tokens=tokens_of(tokenizer),
        )  # fmt: skip
        return rank_features(
            self, kinds, other=other, best=best, least=min_frequency, least_of_pair=min_cartesian_frequency,
            costs=True, documents=documents,
        ).to_frame()  # fmt: skip

    def calibration(self, *, documents: DocumentsBy = None) -> Calibration:
        """Whether the output is calibrated; see :func:`geval_py.explaining.calibration.calibration`."""
        from geval_py.explaining.calibration import calibration

        return calibration(self, documents=documents)

    def luck(self) -> Luck:
        """How much hash collisions changed the score; see :func:`geval_py.explaining.luck.luck`."""
        from geval_py.explaining.luck import luck

        return luck(self)

    def chart(self, name: str = "spread") -> Chart:
        """Draw a chart of the report, which Jupyter shows.

        It is the ``spread`` of the losses by outcome, what each outcome ``costs``, the perplexity by the ``length``
        of the expected word or its ``frequency`` in train, ``culprits`` (the worst features), or the perplexity by a
        column of the input. Raises UsageError for another name, and where there is nothing to draw.
        """
        from geval_py.reports.panels import chart_of

        return chart_of(self, name)

    # Beside other evaluations

    def score_differences(self, other: Evaluation) -> list[float]:
        """Return each line's score minus the other output's: 0 for rounding noise, NaN where both are infinite.

        Raises as :meth:`check_same_lines`, and UsageError if ``other`` is not an evaluation, but a path for example.
        """
        self.check_same_lines(checked_evaluation(other))
        return list(map(score_difference, self.line_scores(), other.line_scores()))

    def check_same_lines(self, other: Evaluation) -> None:
        """Raise UsageError if a filter selects other lines of the other output, LineCountError for another number."""
        if other.line_numbers != self.line_numbers:
            both = f"{named(self.output.path)} and {named(other.output.path)}"
            raise UsageError(f"the metric's filter selects other lines of {both}: filter by input or answer")
        check_line_count("output", other.output.path, other.line_count, self.output.path, self.line_count)

    def to_dict(self, interval: IntervalOf | None = None) -> dict[str, Any]:
        """Return what ``--format json`` shows of one output, or of its error; values may be inf.

        ``interval`` is a function that computes the interval of a score.
        """
        document: dict[str, Any] = {"file": self.output.name, "parameters": self.output.parameters}
        if not self.has_scores:
            return document | {"error": error_document(self.errors[0])}
        return document | {
            "lines": self.line_count,
            "out_of_vocabulary": self.out_of_vocabulary,
            "signature": self.signature,
            "metrics": [score.to_dict(interval) for score in self.scores],
        }


def check_input_length(split: Split, lines: int) -> None:
    """Raise LineCountError if the input, where there is one, has not as many lines as the answers."""
    if split.input is not None:
        input_lines = count_lines(split.input, header=first_name(split.in_header))
        check_line_count("input", split.input.name, input_lines, split.expected.name, lines)


def score_difference(score: float, other_score: float) -> float:
    """Return a line's score minus the other output's: 0 for rounding noise, NaN if both are infinite."""
    is_noise = math.isfinite(score) and math.isclose(score, other_score, rel_tol=NOISE)
    return 0.0 if is_noise else score - other_score


def checked_evaluation(value: object) -> Evaluation:
    """Return the evaluation; raises UsageError for another value, such as a path."""
    if not isinstance(value, Evaluation):
        raise UsageError(f"an evaluation is wanted, as evaluate(…) gives it, not {shown(value)}")
    return value


def checked_evaluations(arguments: Sequence[object], call: str) -> tuple[Evaluation, ...]:
    """Return the evaluations that are the arguments of a call, or in the list that is its only argument.

    Raises UsageError for a single evaluation and for other values, and shows the call.
    """
    values: object = arguments[0] if len(arguments) == 1 else arguments
    if not isinstance(values, Iterable):
        what = "takes several evaluations or a list of them"
        raise UsageError(f"{call}(one, other) {what}, not {shown(values)}")
    return tuple(map(checked_evaluation, values))


def check_comparable(evaluations: Sequence[Evaluation]) -> None:
    """Raise UsageError for evaluations (at least one) with different answers or metrics, LineCountError for lines."""
    first = evaluations[0]
    for other in evaluations[1:]:
        both = f"{named(first.output.path)} and {named(other.output.path)} were scored with different"
        files = first.split.expected, other.split.expected
        if files[0] is not files[1]:
            texts = (read_lines(file, header=first.split.output_header) for file in files)
            for line, pair in enumerate(zip(*texts, strict=False), 1):  # another number of lines is another error
                if pair[0] != pair[1]:
                    raise UsageError(f"{both} answers: {' and '.join(map(shown, pair))} on line {line}")
        scores = [(score.metric.name, score.scheme) for score in (first.scores[0], other.scores[0])]
        ways = {(name, scheme.text_flags, scheme.tokenizer, scheme.selecting_flags) for name, scheme in scores}
        if len(ways) > 1:
            metrics = " and ".join(scheme.text for _, scheme in scores)
            raise UsageError(f"{both} metrics: {visible(metrics)}")
        first.check_same_lines(other)


def error_document(error: DataError | SchemeError) -> dict[str, Any]:
    """Return the error's message and its place; line and column are None if it has none."""
    return {"message": str(error)} | {name: getattr(error, name, None) for name in ("line", "column")}


def head_of(evaluation: Evaluation) -> dict[str, Any]:
    """Return what a result of one metric says first: the test set, the metric, its unit and its direction."""
    first = evaluation.scores[0]
    test = evaluation.split.name
    return {"test": test, "metric": first.name, "unit": first.unit, "direction": first.direction}


def signature_lines(signed: Iterable[tuple[str, Signature | str | None]]) -> Iterator[str]:
    """Yield a line with the name and the signature of each output that has one."""
    return (visible(f"{name}: {signature}") for name, signature in signed if signature is not None)


def without_faults(
    evaluations: Iterable[Evaluation], on_fault: Callable[[DataError | SchemeError], object] | None = None
) -> list[Evaluation]:
    """Return the evaluations without those that have an error, with which ``on_fault`` is called.

    Without ``on_fault``, raises the first error, and computes no evaluation after it.
    """
    sound = []
    for evaluation in evaluations:
        if not evaluation.errors:
            sound.append(evaluation)
        elif on_fault is None:
            raise evaluation.errors[0]
        else:
            on_fault(evaluation.errors[0])
    return sound
