"""Features that go with bad lines: a ranking by the Mann-Whitney U test, and its table.

:mod:`geval_py.explaining.features` collects the features, :mod:`geval_py.explaining.feature_ranking` computes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from geval_py.explaining import feature_ranking
from geval_py.explaining.documents import DocumentsBy, choose_documents, notes_on_documents
from geval_py.explaining.features import ITEMS_AT_ONCE, MAX_LINES, SEEN_PER_LINE, Occurrences
from geval_py.explaining.line_by_line import EvaluationListing
from geval_py.explaining.significance import benjamini_hochberg, slices
from geval_py.reading.features import FeatureKinds, Fields, feature_words
from geval_py.scoring import blocks
from geval_py.scoring.metrics.base import Array, Integers
from geval_py.scoring.scores import Evaluation
from geval_py.tables import escapes, numbers
from geval_py.tables.numbers import percent
from geval_py.tables.table import Column, Table, plain_table
from geval_py.text import visible

if TYPE_CHECKING:
    import pandas as pd


FEATURES_AT_ONCE = 1 << 15  # whose figures are made Python's numbers at once
LEAST_OF_MANY = 5  # items of a feature, if there are more than MAX_LINES: rarer ones are hardly ever significant
HIDDEN = "ids of lines and documents, and numbers of the output, are left out; --all-features shows them"


@dataclass(frozen=True)
class WorstFeatures:
    """Features by their ``names``, and aligned ``columns`` of figures, as JSON, CSV and Python show them.

    ``count`` is the number of a feature's items, ``score`` their mean; ``q`` is ``p``, corrected for ties and, by
    Benjamini and Hochberg, for the number of features and pairs that were tested. Fewer pairs are shown. By
    documents, q comes from comparing lines with those of the same document, and is NaN for pairs, and for features
    that fewer than two documents tell of.

    Further columns are ``perplexity``, ``gain``, ``gain_low`` and ``gain_high`` for losses in nats
    (:mod:`geval_py.explaining.feature_ranking`), and ``documents`` if asked for. Unknown figures are NaN. Features
    are on at least ``least`` items.
    """

    names: Sequence[str]
    columns: dict[str, Array | Integers]
    notes: tuple[str, ...] = ()
    least: int = 1

    def __len__(self) -> int:
        return len(self.names)

    def to_frame(self) -> pd.DataFrame:
        """Return a table with a row per feature: ``feature``, ``count``, ``score`` (the mean), ``p``, ``q``, more."""
        import pandas as pd

        return pd.DataFrame({"feature": self.names} | self.columns).astype({"feature": object})

    def at(self, places: Sequence[int]) -> WorstFeatures:
        """Return the features at some places, in this order."""
        columns = {name: column[np.array(places, np.int64)] for name, column in self.columns.items()}
        return replace(self, names=[self.names[place] for place in places], columns=columns)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the ``feature`` and the figures of each feature; the figures are Python's numbers."""
        for part in slices(len(self), FEATURES_AT_ONCE):
            columns = (column[part].tolist() for column in self.columns.values())
            for row in zip(self.names[part], *columns, strict=True):
                yield dict(zip(("feature", *self.columns), row, strict=True))

    def readable(self, most: int | None = None) -> WorstFeatures:
        """Return the first features, ``most`` at most, without ids and the output's numbers."""
        readable = (place for place, name in enumerate(self.names) if not feature_ranking.is_hidden(name))
        places = list(islice(readable, most))
        hidden = () if places == list(range(min(len(self), most or len(self)))) else (HIDDEN,)
        return replace(self.at(places), notes=self.notes + hidden)


def rank_features(
    evaluation: Evaluation,
    kinds: FeatureKinds,
    *,
    other: Evaluation | None = None,
    best: bool = False,
    least: int | None = None,
    least_of_pair: int | None = None,
    costs: bool = False,
    documents: DocumentsBy = None,
    progress: blocks.Progress | None = None,
) -> WorstFeatures:
    """Rank the features of an evaluation's lines, as :meth:`Evaluation.worst_features` does, into aligned arrays.

    Features, also of pairs, are on ``least`` lines and not on as many, and single features of pairs on
    ``least_of_pair`` lines (as many by default). A feature of all lines, whose p is not defined, is left out.
    Features with equal p are sorted by field (expected, output, then the columns of the input), then by token,
    character by character. ``costs`` asks for the cost of each feature, and for q, which those by documents have in
    any case.

    Raises UsageError if all lines are one document.
    """
    score = evaluation.scores[0]
    line_scores = np.array(evaluation.line_scores() if other is None else evaluation.score_differences(other))
    if least is None:
        least = 1 if len(line_scores) <= MAX_LINES else LEAST_OF_MANY
    places = np.flatnonzero(~np.isnan(line_scores))
    scores = line_scores[places]
    of_file = choose_documents(evaluation, documents)
    grouped = of_file and of_file.of_score(score)
    several = grouped and grouped.several()
    of_lines = several and several.only(places)
    seen = bytearray(SEEN_PER_LINE * len(places) * (least > 1 and len(places) > MAX_LINES))
    for counted in (0, least) if seen else (0,):
        items = zip(*evaluation.sides(places.tolist()), strict=False)
        occurrences = Occurrences(kinds, Fields(evaluation.split.in_header), (seen, counted))
        while chunk := list(islice(items, ITEMS_AT_ONCE)):
            occurrences.add(chunk)
            if progress is not None:
                progress(occurrences.count, len(places))
    ranks = feature_ranking.rank_scores(scores, greatest_first=score.greatest_first(worst=not best))
    tested = feature_ranking.p_values_of_features(occurrences, ranks, least, least_of_pair)
    table, p_values = tested.table, tested.p_values
    compared = None if of_lines is None or of_lines.are_lines or of_lines.count == 1 else of_lines
    counts = table.counts()
    with np.errstate(invalid="ignore", divide="ignore"):  # opposite infinities, and no line at all
        # Scores are divided by their number, since a sum of scores may be too large for a double.
        means = table.sums(scores / len(scores)) / (counts / len(scores))
    columns: dict[str, Array | Integers] = {"count": counts, "score": means, "p": p_values}
    if compared is not None:
        columns["q"] = benjamini_hochberg(feature_ranking.p_values_by_document(tested, ranks, compared))
    elif costs or grouped is not None:
        columns["q"] = benjamini_hochberg(feature_ranking.tied_p_values(tested, ranks), tested.tests)
    if costs and other is None and score.metric.measure.in_nats:
        columns |= feature_ranking.gains(table, np.array(evaluation.line_losses)[places], compared)
    if of_lines is not None:
        on_documents = feature_ranking.OnDocuments.of(table, of_lines).features
        number = np.bincount(on_documents, minlength=len(table.names))
        columns["documents"] = np.where(tested.are_pairs | (number == 0), np.nan, number)
    order = np.argsort(p_values, kind="stable")[: np.count_nonzero(p_values >= 0)]
    notes = tuple(notes_on_documents(grouped))
    ranked = WorstFeatures(table.names, columns, notes, least).at(order.tolist())
    if of_lines is not None and not np.isnan(ranked.columns["documents"]).any():
        ranked.columns["documents"] = ranked.columns["documents"].astype(np.int64)
    return ranked


# The table


@dataclass(frozen=True, kw_only=True)
class FeatureListing(EvaluationListing):
    """Features of an evaluation, or of its difference from another, a row each: name, count, mean score, p.

    ``with_q`` adds q. For people, the gain comes first if there is one, and p and q have two digits.
    """

    list_name = "features"
    features: WorstFeatures
    with_q: bool = False

    def table(self) -> Table:
        def probability(value: float) -> str:
            return "" if math.isnan(value) else f"{value:.2g}"

        writers: dict[str, Callable[[Any], str]] = {"count": str, "score": numbers.significant, "p": probability}
        if "gain" in self.features.columns:
            writers = {"gain": percent} | writers
        if self.with_q:
            writers["q"] = probability
        columns = [Column(name, alignment="right", write=write) for name, write in writers.items()]
        rows = ([feature_words(row["feature"]), *map(row.get, writers)] for row in self.features.rows())
        return Table([Column("feature", write=visible if self.for_terminal else str), *columns], rows)

    def text(self, width: int | None = None) -> Iterator[str]:
        """As any listing; but what is not for a terminal, often a million rows, is in GEval's format."""
        return self._lines() if width is None and not self.for_terminal else super().text(width)

    def _lines(self) -> Iterator[str]:
        for row in self.features.rows():
            mean = f"{row['score']:.8f}" if math.isfinite(row["score"]) else numbers.exact(row["score"])
            cells = [escapes.tab_text(row["feature"]), str(row["count"]), mean, numbers.fixed(row["p"], 20)]
            if self.with_q:
                cells.append("" if math.isnan(row["q"]) else numbers.fixed(row["q"], 20))
            yield "\t".join(cells) + "\n"

    def records(self) -> Table:
        return plain_table(["feature", *self.features.columns], (list(row.values()) for row in self.to_dicts()))

    def to_dicts(self) -> Iterator[dict[str, Any]]:
        always = ("feature", "count", "score", "p")
        for row in self.features.rows():
            yield {name: value if name in always or not math.isnan(value) else None for name, value in row.items()}
