"""Features that go with bad lines: a ranking by the Mann-Whitney U test, and its table.

:mod:`geval_py.explaining.features` collects the features, :mod:`geval_py.explaining.feature_ranking` computes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from geval_py.errors import UsageError
from geval_py.explaining import feature_ranking, significance
from geval_py.explaining.documents import Documents, DocumentsBy, choose_documents, notes_on_documents
from geval_py.explaining.features import MAX_LINES, SEEN_PER_LINE, Occurrences, collect
from geval_py.explaining.line_by_line import EvaluationListing
from geval_py.reading.features import FeatureKinds, Fields, feature_words
from geval_py.scoring import blocks
from geval_py.scoring.metrics.base import Array, Flags, Integers
from geval_py.scoring.scores import Evaluation
from geval_py.tables import escapes, numbers
from geval_py.tables.numbers import percent
from geval_py.tables.table import Column, Table, plain_table
from geval_py.text import visible

if TYPE_CHECKING:
    import pandas as pd


FEATURES_AT_ONCE = 1 << 15  # whose names and figures are made at once
COUNTED = 5  # items that significant features are on in nearly all data
HIDDEN = "ids of lines and documents, and numbers of the output, are left out; --all-features shows them"


@dataclass(frozen=True)
class WorstFeatures:
    """Features, and aligned ``columns`` of figures by their names, as JSON, CSV and Python show them.

    ``count`` is the number of a feature's items, ``score`` their mean; ``q`` is ``p``, corrected for ties and, by
    Benjamini and Hochberg, for the number of these features. More pairs of features were tested than are shown, which
    are only the ones with a small p: their q is too small. By documents, q comes from comparing lines with those of
    the same document, and is NaN for pairs, and for features that fewer than two documents tell of.

    Further columns are ``perplexity``, ``gain``, ``gain_low`` and ``gain_high`` for losses in nats
    (:mod:`geval_py.explaining.feature_ranking`), ``documents`` if asked for, and ``explained`` of distinct features.
    Unknown figures are NaN. Features are on at least ``least`` items.
    """

    named: feature_ranking.Names
    columns: dict[str, Array | Integers]
    notes: tuple[str, ...] = ()
    least: int = 1

    def __len__(self) -> int:
        return len(self.named)

    @property
    def names(self) -> list[str]:
        """The features' names, which are made anew each time."""
        return self.named.texts()

    def to_frame(self) -> pd.DataFrame:
        """Return a table with a row per feature: ``feature``, ``count``, ``score`` (the mean), ``p``, ``q``, more."""
        import pandas as pd

        return pd.DataFrame({"feature": self.names} | self.columns).astype({"feature": object})

    def at(self, places: Integers | slice) -> WorstFeatures:
        """Return the features at some places, in this order."""
        columns = {name: column[places] for name, column in self.columns.items()}
        return replace(self, named=self.named.at(places), columns=columns)

    def parts(self) -> Iterator[WorstFeatures]:
        """Yield the features, some thousands at once."""
        return map(self.at, significance.slices(len(self), FEATURES_AT_ONCE))

    def readable(self, most: int | None = None) -> WorstFeatures:
        """Return the first features, ``most`` at most, without ids and the output's numbers."""
        names = enumerate(chain.from_iterable(part.names for part in self.parts()))
        places = list(islice((place for place, name in names if not feature_ranking.is_hidden(name)), most))
        hidden = () if places == list(range(min(len(self), most or len(self)))) else (HIDDEN,)
        return replace(self.at(np.array(places, np.int64)), notes=self.notes + hidden)


def rank_features(
    evaluation: Evaluation,
    kinds: FeatureKinds,
    *,
    other: Evaluation | None = None,
    scores: Sequence[float] | None = None,
    best: bool = False,
    least: int | None = None,
    least_of_pair: int | None = None,
    costs: bool = False,
    documents: DocumentsBy = None,
    distinct: bool = False,
    progress: blocks.Progress | None = None,
) -> WorstFeatures:
    """Rank the features of an evaluation's lines, as :meth:`Evaluation.worst_features` does, into aligned arrays.

    ``scores`` are those of the lines, or their differences from ``other``, if there are any yet. ``costs`` asks for
    the cost of each feature, and for q, which distinct features and those by documents have in any case. The
    notes say which documents are found. Raises UsageError if all lines are one document.
    """
    score = evaluation.scores[0]
    in_nats = score.metric.measure.in_nats and other is None
    if scores is None:
        scores = evaluation.line_scores() if other is None else evaluation.score_differences(other)
    if least is None and len(scores) <= MAX_LINES:
        least = 1
    of_file = choose_documents(evaluation, documents)
    grouped = of_file and of_file.of_score(score)

    def collected(known: Flags, least: int) -> Occurrences:
        progress_of = None if progress is None else lambda done: progress(done, int(known.sum()))
        fields = Fields(evaluation.split.in_header)
        seen = bytearray(SEEN_PER_LINE * len(known) * (least > 1 and len(known) > MAX_LINES))
        for now_least in (0, least) if seen else (0,):
            items = zip(*evaluation.sides(np.flatnonzero(known).tolist()), strict=False)
            occurrences = collect(items, Occurrences(kinds, fields, (seen, now_least)), progress_of)
        return occurrences

    features = ranked_features(
        collected,
        scores,
        worst_is_greatest=score.greatest_first(worst=not best),
        least=least,
        least_of_pair=least_of_pair,
        losses=evaluation.line_losses if in_nats and (costs or distinct) else None,
        documents=grouped and grouped.several(),
        with_q=costs or grouped is not None,
        distinct=distinct,
        best=best,
    )
    return replace(features, notes=tuple(notes_on_documents(grouped)))


def ranked_features(
    collected: Callable[[Flags, int], Occurrences],
    scores: Sequence[float] | Array,
    *,
    worst_is_greatest: bool,
    least: int | None = 1,
    least_of_pair: int | None = None,
    losses: Sequence[float] | Array | None = None,
    documents: Documents | None = None,
    with_q: bool = True,
    distinct: bool = False,
    most: int | None = None,
    best: bool = False,
) -> WorstFeatures:
    """Rank the features of items by how surely they go with bad scores, the smallest p first.

    Items with score NaN are left out: ``collected`` returns the features of the others, from a flag for each item,
    and may leave out tokens on fewer items than a number. ``worst_is_greatest`` is whether great scores are bad.
    Features, also of pairs, are on ``least`` items and not on as many, and single features of pairs on
    ``least_of_pair`` items (as many by default). If ``least`` is None, it is the greatest that leaves out no token
    that can be significant (:func:`feature_ranking.least_significant`). A feature of all items, whose p is not
    defined, is left out. Features with equal p are sorted by field (expected, output, then the columns of the input),
    then by token, character by character.

    ``losses``, in nats, one per item, ask for the cost of a feature; ``documents`` of the items, for the number of
    documents with it, and for q and intervals by documents; ``distinct``, for only the few features, at most ``most``
    of them, that explain the bad items together or, if the ``best`` scores are ranked as if they were bad, the good,
    in the order in which they were chosen.

    Raises UsageError for distinct features and pairs of features at once.
    """
    all_scores = np.array(scores, np.float64)
    known = ~np.isnan(all_scores)
    figures = all_scores[known]
    loss_of_item = None if losses is None else np.array(losses, np.float64)[known]
    if documents is not None and not known.all():
        documents = documents.only(np.flatnonzero(known))
    ranks = feature_ranking.rank_scores(figures, greatest_first=worst_is_greatest)
    for counted in (COUNTED, 1) if least is None else (least,):
        occurrences = collected(known, counted)
        needed = feature_ranking.least_significant(occurrences, ranks) if least is None else least
        if needed > occurrences.seen[1]:  # else rarer features, of which some are left out, can be significant
            break
    if distinct and occurrences.kinds.cartesian:
        raise UsageError(message="distinct features are single ones, not pairs: leave out", arguments=("cartesian",))
    ranked = feature_ranking.rank(occurrences, ranks, needed, least_of_pair)
    several = None if documents is None or documents.are_lines or documents.count == 1 else documents
    with_q = with_q or distinct
    explained: list[float] = []
    if with_q:
        tied_p = (
            feature_ranking.tied_p_values(ranked, ranks)
            if several is None
            else feature_ranking.p_values_by_document(ranked, ranks, several)
        )
        q_values = significance.benjamini_hochberg(tied_p)
    if distinct:
        candidates = np.flatnonzero(q_values < significance.LEVEL)
        names = ranked.names.at(candidates).texts()
        candidates = candidates[[not feature_ranking.is_output_number(name) for name in names]]
        # Distinct features explain the losses or, without finite losses, the ranks.
        badness = -ranks
        if loss_of_item is not None and np.isfinite(loss_of_item).all():
            badness = -loss_of_item if best else loss_of_item
        chosen, explained = feature_ranking.select_distinct(badness, ranked, candidates, most)
        ranked, q_values = ranked.at(chosen), q_values[chosen]
    counts = ranked.counts()
    with np.errstate(invalid="ignore"):  # opposite infinities, and no item at all
        # Scores are divided by their number, since a sum of scores may be too large for a double.
        means = ranked.sums(figures / len(figures)) / (counts / len(figures))
    columns: dict[str, Array | Integers] = {"count": counts, "score": means, "p": ranked.p_values}
    if with_q:
        columns["q"] = q_values
    if loss_of_item is not None:
        columns |= feature_ranking.gains(ranked, loss_of_item, several)
    if documents is not None:
        pairs = feature_ranking.OnDocuments.of(ranked, documents).features
        on_documents = np.bincount(pairs, minlength=len(ranked.names))
        unknown = ranked.are_pairs | (on_documents == 0)
        columns["documents"] = np.where(unknown, np.nan, on_documents) if unknown.any() else on_documents
    named = ranked.names
    if distinct:  # few, so that their names take less memory than the tables with all
        columns["explained"] = np.array(explained)
        named = feature_ranking.Names((), named.texts(), np.arange(len(named)))
    return WorstFeatures(named, columns, least=needed)


# The table


WRITERS: dict[str, Callable[[str], str]] = {  # for people; for GEval's format, see FeatureListing.text
    "count": str, "score": lambda text: numbers.significant(float(text)),
    "p": lambda text: f"{float(text):.2g}" if text else "",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class FeatureListing(EvaluationListing):
    """Features of an evaluation, or of its difference from another, a row each: name, count, mean score, p.

    ``with_q`` adds q. For people, the gain comes first if there is one, and p and q have two digits.
    """

    list_name = "features"
    features: WorstFeatures
    with_q: bool = False

    def table(self) -> Table:
        feature = Column("feature", write=visible if self.for_terminal else str)
        gain = [Column("gain", alignment="right", write=percent)] if "gain" in self.features.columns else []
        writers = WRITERS | ({"q": WRITERS["p"]} if self.with_q else {})
        columns = [Column(name, alignment="right", write=write) for name, write in writers.items()]

        def rows() -> Iterator[list[str]]:
            for part in self.features.parts():
                gains = (part.columns[column.name].tolist() for column in gain)
                for name, row, *own in zip(part.names, self._figures(part), *gains, strict=True):
                    yield [feature_words(name), *own, *row.split("\t")]

        return Table([feature, *gain, *columns], rows())

    def text(self, width: int | None = None) -> Iterator[str]:
        """As any listing; but what is not for a terminal, often a million rows, is written without a table."""
        if width is None and not self.for_terminal:
            for part in self.features.parts():
                rows = zip(map(escapes.tab_text, part.names), self._figures(part), strict=True)
                yield "".join([f"{name}\t{figures}\n" for name, figures in rows])
            return
        yield from super().text(width)

    def _figures(self, part: WorstFeatures) -> list[str]:
        """Return a row of figures, separated by TABs, for each feature; those with the same bits are written once.

        Features of one line alone are alike in all figures.
        """

        def mean(value: float) -> str:
            return f"{value:.8f}" if math.isfinite(value) else numbers.exact(value)

        def q(value: float) -> str:
            return "" if math.isnan(value) else p_value(value)

        p_value = partial(numbers.fixed, decimals=20)
        columns = list(part.columns.values())[: 3 + self.with_q]
        changes = [np.diff(column.view(np.int64), prepend=~column[:1].view(np.int64)) for column in columns]
        starts = np.flatnonzero(np.any(changes, axis=0))
        writers: tuple[Callable[[Any], str], ...] = (str, mean, p_value, q)
        written = (map(write, column[starts].tolist()) for write, column in zip(writers, columns, strict=False))
        rows = np.array(["\t".join(cells) for cells in zip(*written, strict=True)], object)
        return rows.repeat(np.diff(starts, append=len(part))).tolist()

    def records(self) -> Table:
        return plain_table(["feature", *self.features.columns], (list(of.values()) for of in self.to_dicts()))

    def to_dicts(self) -> Iterator[dict[str, Any]]:
        for part in self.features.parts():
            columns = {name: column.tolist() for name, column in part.columns.items()}
            for name in list(columns)[3:]:  # behind count, score and p
                columns[name] = [None if math.isnan(value) else value for value in columns[name]]
            for name, *row in zip(part.names, *columns.values(), strict=True):
                yield {"feature": name} | dict(zip(columns, row, strict=True))
