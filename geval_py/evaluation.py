"""The table of lines that a Python user gets."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from typing import Any

import pandas as pd

from geval_py.errors import LineCountError, UsageError
from geval_py.reading.items import InputText, ScoredItem, Texts, unused_name
from geval_py.reading.options import DEFAULT_SAMPLES, DEFAULT_SEED
from geval_py.reading.outputs import Output
from geval_py.reading.splits import Split
from geval_py.scoring.metrics import NOISE
from geval_py.scoring.scores import Score
from geval_py.text import named, shown
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import ClassVar, Literal, TypeVar

    import distributed

    from geval_py.explaining.documents import Documents
    from geval_py.explaining.significance import Interval
    from geval_py.reading.features import ItemFilter
    from geval_py.scoring.signature import Signature

    Line = TypeVar("Line")  # what belongs to a line: a text, or an item


def item_table(
    items: Iterable[ScoredItem],
    *,
    lines: Sequence[int],
    statistics: Mapping[str, Sequence[float]],
    scores: Sequence[float],
    header: Sequence[str],
    width: int,
    index: list[int],
) -> pd.DataFrame:
    """Make a table with a row an item, all sequences but the header aligned; ``width`` columns of the input.

    ``statistics`` are the lines' statistics, by their names.
    """
    inputs, expected, outputs = zip(*items, strict=True)
    columns: dict[str, Any] = {"line": lines}
    own = {"expected": expected, "output": outputs, **statistics, "score": scores}
    rows = [text.split("\t") for text in inputs] if width else []
    for column in range(width):
        name = unused_name(column, header, {*columns, *own})
        columns[name] = [row[column] if column < len(row) else None for row in rows]
    return pd.DataFrame(columns | own, index=index)


# One output, scored: its scores, its lines, and what explains them.


class Evaluation(Value):
    """One output, scored; printed, a line a score, or in Jupyter a table.

    ``scores`` are in the order of the metrics. ``file_lines`` is the number of lines of the output, scored or not,
    and ``input`` what goes with them. Two equal ``signature`` mean the same scores; it is None where it was not asked
    for, since it costs time.

    Evaluations are equal if their signatures are, whatever their files are called; one without a signature equals
    itself alone.
    """

    split: Split
    output: Output
    scores: tuple[Score, ...]
    file_lines: int
    signature: Signature | None
    input: InputText
    texts: Texts | None

    hidden: ClassVar[frozenset[str]] = frozenset({"input", "texts"})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Evaluation):
            return NotImplemented
        return self is other or (self.signature is not None and self.signature == other.signature)

    def __hash__(self) -> int:
        return object.__hash__(self) if self.signature is None else hash(self.signature)

    def __str__(self) -> str:
        from geval_py.scoring.scores import evaluation_text

        return evaluation_text(self)

    @property
    def line_losses(self) -> array[float]:
        """The losses that the first metric is made from: nats (for Accuracy 0 and 1), a value a line, possibly inf.

        Raises UsageError if it is made from other statistics.
        """
        first = self.scores[0]
        if not first.metric.measure.of_losses:
            names = ", ".join(first.metric.measure.columns)
            raise UsageError(message=f"{first.metric.name} is not made from losses, but from {names}")
        return first.statistics.columns[0]

    @property
    def line_numbers(self) -> array[int] | None:
        """The numbers of the lines that the first metric scored; see :class:`Score`."""
        return self.scores[0].line_numbers

    @property
    def line_count(self) -> int:
        """The number of lines that the first metric scored."""
        return self.scores[0].statistics.lines

    @property
    def out_of_vocabulary(self) -> int:
        """The number of expected words that the vocabulary of a metric on exact words does not have."""
        return max(score.statistics.out_of_vocabulary for score in self.scores)

    @property
    def score(self) -> float:
        """The value of the first metric."""
        return self.scores[0].value

    def interval(
        self, *, samples: int = DEFAULT_SAMPLES, seed: int = DEFAULT_SEED, documents: str | int | None = None
    ) -> Interval:
        """Give the 95 % interval of the first metric's value, from as many resamples of the lines as ``samples``.

        With ``documents``, a column of the input (its name or its number, from 1), lines on which it is the same
        belong together: the interval is by documents, since lines of one are alike.

        Raises UsageError for fewer than one sample, a seed below 0, what is no column and a single document.
        """
        return self.scores[0].interval(samples=samples, seed=seed, documents=self._documents(documents))

    def _documents(self, column: str | int | None) -> Documents | None:
        """Give the documents of all lines of the file."""
        from geval_py.explaining.documents import documents_in

        return None if column is None else documents_in(self, column)

    def line_scores(self) -> list[float]:
        """Give the first metric's value of each line alone."""
        return list(self.each_line_score())

    def each_line_score(self) -> Iterator[float]:
        """Give the same one by one."""
        return self.scores[0].metric.line_scores(self.scores[0].statistics)

    def read_items(self) -> Iterator[ScoredItem]:
        """Give each scored line's input, expected word and output; the input is "" if there is no input file.

        Raises UsageError if the texts were not kept, and LineCountError if the input has another number of lines.
        """
        from geval_py.reading.items import ScoredItem

        texts = self.kept_texts()
        self.input.check_lines(self.file_lines)
        return self._scored(map(ScoredItem, self.input.lines(), texts.expected.read(), texts.outputs.read()))

    def read_outputs(self) -> Iterator[str]:
        """Give each scored line of the output; raises UsageError if the texts were not kept."""
        return self._scored(self.kept_texts().outputs.read())

    def input_width(self) -> int:
        """Give the number of columns of the input, those of its widest scored line; 0 if there is no input file."""
        if self.split.input is None:
            return 0
        return max((item.input.count("\t") + 1 for item in self.read_items()), default=0)

    def kept_texts(self) -> Texts:
        """Give the texts; raises UsageError if they were not kept."""
        if self.texts is None:
            raise UsageError(message="the texts were not kept: evaluate(…, keep_texts=True)")
        return self.texts

    def _scored(self, items: Iterable[Line]) -> Iterator[Line]:
        """Give what belongs to the lines that were scored, in the order in which they were."""
        if self.line_numbers is None:
            return iter(items)
        wanted = frozenset(self.line_numbers)
        scored = ((number, item) for number, item in enumerate(items, 1) if number in wanted)
        if self.scores[0].scheme.percentage is None:
            return (item for _, item in scored)
        of_number = dict(scored)
        return map(of_number.__getitem__, self.line_numbers)

    def to_frame(self) -> pd.DataFrame:
        """Make a table with a row a line.

        Columns: ``line`` (from 1), those of the input by their header names (or numbers, from 1), ``expected``,
        ``output``, ``loss`` (or what else the first metric is made from) and ``score`` (of that metric). A column of
        the input whose name is taken is called ``in<name>``, or by its number. Raises as :meth:`read_items`.
        """
        return self._frame(None)

    def _frame(self, selected: Sequence[bool] | None) -> pd.DataFrame:
        """Make the table of all lines, or of those selected; the index tells a line's place among all."""
        keep = [True] * self.line_count if selected is None else selected
        first = self.scores[0]
        statistics = zip(first.metric.measure.columns, first.statistics.columns, strict=True)
        numbers = self.line_numbers or range(1, self.line_count + 1)
        return item_table(
            compress(self.read_items(), keep),
            lines=list(compress(numbers, keep)),
            statistics={name: list(compress(column, keep)) for name, column in statistics},
            scores=list(compress(self.line_scores(), keep)),
            header=self.split.in_header,
            width=self.input_width(),
            index=list(compress(range(self.line_count), keep)),
        )

    def lines(
        self,
        *,
        sort: Literal["worst", "best"] | None = None,
        filter: str | Sequence[str] = (),
        tokenizer: str | None = None,
        numerical_features: bool = False,
        cartesian: bool = False,
    ) -> pd.DataFrame:
        """Give the table of :meth:`to_frame`: the worst or the best lines first, or only those with some features.

        ``filter`` is a feature, such as ``"exp:the"`` or ``"in<Year>:1901"``, or several, which a line must all
        have; as :meth:`worst_features` gives them, with the same ``tokenizer`` and ``cartesian``. With
        ``numerical_features``, lengths and numbers are features too: ``"in<Text>:=#8"``, ``"in<Year>:=1901"``.

        Raises UsageError for a feature that cannot be read, or that no line has, and for another ``sort``.
        """
        from geval_py.reading.features import FeatureKinds, Fields, parse_filter, tokens_of

        if sort not in (None, "worst", "best"):
            raise UsageError(message=f"lines are sorted by the worst or the best first, not by {sort!r}")
        names = (filter,) if isinstance(filter, str) else tuple(filter)
        kinds = FeatureKinds(numerical=numerical_features, cartesian=cartesian, tokens=tokens_of(tokenizer))
        wanted = parse_filter(names, Fields(self.split.in_header), kinds) if names else None
        frame = self._frame(None if wanted is None else self.select(wanted))
        if sort is None:
            return frame
        greatest_first = self.scores[0].greatest_first(worst=sort == "worst")
        return frame.sort_values("score", ascending=not greatest_first, kind="stable")

    def select(self, filter: ItemFilter) -> list[bool]:
        """Tell of each scored line whether it has the features of a filter; raises UsageError if none has."""
        if filter.needs_input and self.split.input is None:
            raise UsageError(message="a feature of the input was asked for, and there is no input file")
        selected = [filter.selects(item) for item in self.read_items()]
        if not any(selected):
            raise UsageError(message=filter.nothing_found(self.read_items()))
        return selected

    def worst_features(
        self,
        *,
        other: Evaluation | None = None,
        best: bool = False,
        min_frequency: int = 1,
        bigrams: bool = False,
        word_shapes: bool = False,
        numerical_features: bool = False,
        cartesian: bool = False,
        min_cartesian_frequency: int | None = None,
        tokenizer: str | None = None,
        documents: str | int | None = None,
        distinct: bool = False,
        cluster: distributed.Client | None = None,
    ) -> pd.DataFrame:
        """Rank the features of the lines by how surely they go with bad scores, in a table by rising p.

        ``count`` lines have a ``feature``, ``score`` is their mean, ``p`` one-sided, of the Mann-Whitney U test, and
        ``q`` is p corrected for ties and, by Benjamini and Hochberg, for the number of features in the table. Where
        losses are in nats there are ``perplexity`` (exp of their mean) and, with a 95 % interval, ``gain``: by what
        share the perplexity of all lines would fall if these were no worse than the others. A numerical feature has
        the figures of the quarter at one end, and p of Kendall's rank correlation, two-sided.

        ``documents``, a column of the input (its name or number, from 1), asks for how many of these are concerned.
        With ``distinct`` there are only the few features that together explain the bad lines, the one that says most
        first, with the share of the losses' variance ``explained`` so far. With an ``other`` evaluation, differences
        to its scores are ranked. ``best`` ranks what goes with good scores. The workers of a ``cluster``, a Dask
        client, may count the features. The other arguments are those of the command line. Raises UsageError for what
        is no column, and for distinct features among pairs.
        """
        from geval_py.explaining.feature_ranking import Frequencies
        from geval_py.explaining.worst_features import rank_features
        from geval_py.reading.features import FeatureKinds, tokens_of
        from geval_py.scoring.cluster import cluster_of

        kinds = FeatureKinds(
            bigrams=bigrams, word_shapes=word_shapes, numerical=numerical_features, cartesian=cartesian,
            tokens=tokens_of(tokenizer),
        )  # fmt: skip
        least = Frequencies(least=min_frequency, least_cartesian=min_cartesian_frequency)
        return rank_features(
            self, kinds, other=other, best=best, frequencies=least, costs=True, documents=documents,
            distinct=distinct, cluster=cluster_of(cluster),
        ).to_frame()  # fmt: skip

    def score_differences(self, other: Evaluation) -> list[float]:
        """Give each line's score minus the other output's: 0 for rounding noise, NaN where both are infinite.

        Raises as :meth:`check_same_lines`, and UsageError for what is no evaluation, such as a path.
        """
        return list(self.each_score_difference(other))

    def each_score_difference(self, other: Evaluation) -> Iterator[float]:
        """Give the same one by one; raises at once."""
        self.check_same_lines(checked_evaluation(other))
        return map(_difference, self.each_line_score(), other.each_line_score())

    def check_same_lines(self, other: Evaluation) -> None:
        """Raise UsageError if a filter selects other lines of each output, LineCountError if they are not as many."""
        if other.line_numbers != self.line_numbers:
            both = f"{named(self.output.path)} and {named(other.output.path)}"
            raise UsageError(message=f"the metric's filter selects other lines of {both}: filter by input or answer")
        if other.line_count != self.line_count:
            raise LineCountError(
                what="output",
                path=other.output.path,
                lines=other.line_count,
                expected_path=self.output.path,
                expected_lines=self.line_count,
            )

    def to_dict(self, interval: Callable[[Score], Interval] | None = None) -> dict[str, Any]:
        """Give what ``--format json`` shows of one output; values may be inf.

        With ``interval``, which gives a score's, each metric has its own.
        """
        return {
            "file": self.output.name,
            "parameters": self.output.parameters,
            "lines": self.line_count,
            "out_of_vocabulary": self.out_of_vocabulary,
            "signature": None if self.signature is None else str(self.signature),
            "metrics": [score.to_dict(None if interval is None else interval(score)) for score in self.scores],
        }

    def _repr_html_(self) -> str:
        """Show the scores as a table in Jupyter."""
        from geval_py.scoring.scores import scores_html

        return scores_html(self)


def checked_evaluation(value: object) -> Evaluation:
    """Give an evaluation back; raises UsageError for what is none, such as a path."""
    if not isinstance(value, Evaluation):
        raise UsageError(message=f"an evaluation is compared, as evaluate(…) gives it, not {shown(value)}")
    return value


def _difference(score: float, other: float) -> float:
    """Subtract scores; those that differ by rounding, as those of a line with its words reordered, are equal."""
    return 0.0 if math.isfinite(score) and math.isclose(score, other, rel_tol=NOISE) else score - other
