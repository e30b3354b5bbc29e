"""Features that go with bad lines: a ranking by the Mann-Whitney U test, its table, and the few features in a report.

:mod:`geval_py.explaining.feature_ranking` computes p; :mod:`geval_py.explaining.distinct_features` chooses the few.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from operator import add
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from geval_py.errors import UsageError
from geval_py.explaining import feature_ranking, line_by_line, significance, tally
from geval_py.explaining.distinct_features import is_output_number, select_distinct
from geval_py.explaining.documents import Documents, DocumentsBy, choose_documents
from geval_py.explaining.occurrences import Crossed
from geval_py.explaining.significance import Array, Flags, Integers
from geval_py.reading.features import FeatureKinds, Field, Fields
from geval_py.reading.items import ItemColumns, ScoredItem
from geval_py.scoring import blocks
from geval_py.scoring.scores import ScoredOutput, signature_lines
from geval_py.tables import escapes, formats, numbers
from geval_py.tables.table import Column, Table, plain_table
from geval_py.text import visible

if TYPE_CHECKING:
    import pandas as pd

MOST_DISTINCT = 10  # features in a report


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstFeatures:
    """Features with the number of their items, their mean score, p and q, and more columns; all aligned.

    ``q_values`` are p, corrected for ties and, by Benjamini and Hochberg, for the number of these features. More
    pairs of features were tested than are shown, which are only the ones with a small p: their q is too small. By
    documents, q comes from comparing lines with those of the same document, and is NaN for pairs, and for features
    that fewer than two documents tell of.

    ``more`` are further columns by their names: ``perplexity``, ``gain``, ``gain_low`` and ``gain_high`` for losses
    in nats (:mod:`geval_py.explaining.feature_ranking`), ``documents`` if asked for, and ``explained`` of distinct
    features. Unknown figures are NaN.
    """

    named: feature_ranking.Names
    counts: Integers
    means: Array
    p_values: Array
    q_values: Array
    more: dict[str, Array | Integers]
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.named)

    @property
    def names(self) -> list[str]:
        """The features' names, which are made anew each time."""
        return self.named.texts()

    @property
    def columns(self) -> dict[str, Array | Integers]:
        """The columns of figures by their names, as JSON, CSV and Python show them."""
        own: dict[str, Array | Integers] = {
            "count": self.counts,
            "score": self.means,
            "p": self.p_values,
            "q": self.q_values,
        }
        return own | self.more

    def to_frame(self) -> pd.DataFrame:
        """Return a table with a row per feature: ``feature``, ``count``, ``score`` (the mean), ``p``, ``q``, more."""
        import pandas as pd

        return pd.DataFrame({"feature": self.names} | self.columns).astype({"feature": object})

    def at(self, places: Integers | slice) -> WorstFeatures:
        """Return the features at some places, in this order."""
        return WorstFeatures(
            named=self.named.at(places),
            counts=self.counts[places],
            means=self.means[places],
            p_values=self.p_values[places],
            q_values=self.q_values[places],
            more={name: column[places] for name, column in self.more.items()},
            notes=self.notes,
        )


WIDE = (72, 96)  # columns of a terminal on which figures have all their digits, without q and with it
_AT_ONCE = 8192  # features whose names and figures are made at once


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureListing(formats.Listing):
    """Features of an evaluation, or of its difference from another, a row each: name, count, mean score, p.

    ``with_q`` adds q; ``write`` rewrites figures for a narrow terminal; a last line says if ``in_all`` are more.
    """

    name = "features"
    evaluations: Sequence[ScoredOutput]
    features: WorstFeatures
    for_terminal: bool = False
    with_q: bool = False
    in_all: int = 0
    write: Callable[[str], str] = str

    def table(self) -> Table:
        feature = Column(name="feature", write=visible if self.for_terminal else str, cut="middle")
        names = ("count", "score", "p", "q")[: 3 + self.with_q]
        columns = [feature, *(Column(name=name, alignment="right", write=self.write) for name in names)]
        return Table(columns, self._rows(), droppable=["p", "q", "score", "count"])

    def legend(self) -> Iterator[str]:
        if self.in_all > len(self.features):
            yield f"The first {len(self.features)} of {self.in_all} features; for all, --top {self.in_all} or | less."

    def signatures(self) -> Iterator[str]:
        return signature_lines(self.evaluations)

    def text(self, width: int | None = None) -> Iterator[str]:
        """As any listing; but what is not for a terminal, often a million rows, is written without a table."""
        listing = replace(self, write=numbers.shorter) if width is not None and width < WIDE[self.with_q] else self
        return formats.Listing.text(listing, width) if width is not None or self.for_terminal else self._lines()

    def latex(self, caption: str | None = None, label: str | None = None) -> Iterator[str]:
        return formats.Listing.latex(replace(self, write=numbers.shorter), caption, label)

    def _lines(self) -> Iterator[str]:
        for part in self._parts():
            names, ends = part.names, _written(self._figures(part), "\t{}\n".format)
            if "\t" in "".join(names):
                names = list(map(escapes.tab_text, names))
            yield "".join(map(add, names, ends))

    def _rows(self) -> Iterator[tuple[str, ...]]:
        for part in self._parts():
            figures = (_written([figure]) for figure in self._figures(part))
            yield from zip(part.names, *figures, strict=True)

    def _figures(self, part: WorstFeatures) -> list[_Figure]:
        figures: list[_Figure] = [(part.counts, str), (part.means, _mean), (part.p_values, numbers.p_value)]
        return [*figures, (part.q_values, _q)] if self.with_q else figures

    def _parts(self) -> Iterator[WorstFeatures]:
        return (self.features.at(slice(n, n + _AT_ONCE)) for n in range(0, len(self.features), _AT_ONCE))

    def records(self) -> Table:
        return plain_table(["feature", *self.features.columns], (list(of.values()) for of in self.documents()))

    def to_dict(self) -> dict[str, Any]:
        return line_by_line.explained_head(self.evaluations)

    def documents(self) -> Iterator[dict[str, Any]]:
        for part in self._parts():
            columns = part.columns
            own = [columns[name].tolist() for name in ("count", "score", "p")]
            others = (columns[name].tolist() for name in list(columns)[len(own) :])
            known = ([None if math.isnan(value) else value for value in column] for column in others)
            for name, *row in zip(part.names, *own, *known, strict=True):
                yield {"feature": name} | dict(zip(columns, row, strict=True))


_Figure: TypeAlias = "tuple[Array | Integers, Callable[[Any], str]]"


def _written(figures: Sequence[_Figure], row: Callable[[str], str] = str) -> list[str]:
    """Write rows of figures; rows with the same bits behind each other once, since features of one line are alike."""
    changes = [np.diff(column.view(np.int64), prepend=~column[:1].view(np.int64)) for column, _ in figures]
    starts = np.flatnonzero(np.any(changes, axis=0))
    written = (map(write, column[starts].tolist()) for column, write in figures)
    rows = np.array([row("\t".join(cells)) for cells in zip(*written, strict=True)], object)
    texts: list[str] = np.repeat(rows, np.diff(starts, append=len(changes[0]))).tolist()
    return texts


def _q(value: float) -> str:
    return "" if math.isnan(value) else numbers.p_value(value)


def _mean(value: float) -> str:
    return f"{value:.8f}" if math.isfinite(value) else numbers.special(value)


# The ranking


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Figures of features that are wanted beside GEval's.

    ``losses``, in nats, one per item, ask for the cost of a feature; ``documents`` of the items, for the number of
    documents with it, and for q and intervals by documents; ``distinct``, for only the few features, at most ``most``
    of them, that explain the bad items together or, if the ``best`` scores are ranked as if they were bad, the good.
    """

    losses: Sequence[float] | None = None
    documents: Documents | None = None
    distinct: bool = False
    most: int | None = None
    best: bool = False

    def of_known(self, known: Flags) -> Wanted:
        """Keep some of the items."""
        places = np.flatnonzero(known)
        return replace(
            self,
            losses=None if self.losses is None else np.array(self.losses, np.float64)[known].tolist(),
            documents=None if self.documents is None else self.documents.only(places),
        )


def rank_features(
    evaluation: ScoredOutput,
    kinds: FeatureKinds,
    *,
    other: ScoredOutput | None = None,
    best: bool = False,
    frequencies: feature_ranking.Frequencies | None = None,
    costs: bool = False,
    documents: DocumentsBy = None,
    distinct: bool = False,
    progress: blocks.Progress | None = None,
    workers: blocks.Workers | None = None,
) -> WorstFeatures:
    """Rank the features of an evaluation's lines, as :meth:`Evaluation.worst_features` does, into aligned arrays.

    ``costs`` asks for the cost of each feature. ``workers`` elsewhere, if any, count the features there. The notes
    say which documents are found. Raises UsageError if all lines are one document.
    """
    score = evaluation.scores[0]
    in_nats = score.metric.measure.in_nats and other is None
    scores = evaluation.line_scores() if other is None else evaluation.score_differences(other)
    values = () if other is None else (np.array(scores, np.float64),)
    of_file, dependence = choose_documents([evaluation], documents, values=values)
    grouped = of_file and of_file.of_score(score)
    found = worst_features(
        evaluation.read_items(),
        scores,
        worst_is_greatest=score.greatest_first(worst=not best),
        header=evaluation.split.in_header,
        kinds=kinds,
        frequencies=frequencies,
        wanted=Wanted(
            losses=evaluation.line_losses if in_nats and (costs or distinct) else None,
            documents=grouped and grouped.several(),
            distinct=distinct,
            best=best,
        ),
        progress=progress,
        elsewhere=None if workers is None or workers.is_local else _elsewhere(workers, evaluation, kinds, progress),
    )
    if dependence is not None and dependence.documents is not None:
        return replace(found, notes=(next(dependence.notes("q is by document")),))
    return replace(found, notes=(grouped.nothing_gained,)) if grouped and grouped.are_lines else found


def _elsewhere(
    workers: blocks.Workers, evaluation: ScoredOutput, kinds: FeatureKinds, progress: blocks.Progress | None
) -> Callable[[Flags, Array, bool], dict[Field, tally.FieldTally]]:
    return lambda known, weights, keep: tally.tally_on(
        workers, evaluation, known, weights, kinds, keep=keep, progress=progress
    )


def worst_features(
    items: Iterable[ScoredItem],
    scores: Sequence[float],
    *,
    worst_is_greatest: bool,
    header: tuple[str, ...] = (),
    kinds: FeatureKinds | None = None,
    frequencies: feature_ranking.Frequencies | None = None,
    wanted: Wanted | None = None,
    progress: blocks.Progress | None = None,
    elsewhere: Callable[[Flags, Array, bool], dict[Field, tally.FieldTally]] | None = None,
) -> WorstFeatures:
    """Rank the features of items by how surely they go with bad scores, the smallest p first.

    ``items`` and ``scores`` are aligned; items with score NaN are left out. ``worst_is_greatest`` is whether great
    scores are bad. A feature of all items, whose p is not defined, is left out. Features with equal p are sorted by
    field (expected, output, then the columns of the input), then by token, character by character. Distinct features
    stay in the order in which they were chosen. ``progress`` is called every few thousand items. ``elsewhere``, if
    given, counts the features, from a flag for each known item, their weights, and whether to keep occurrences.

    Raises UsageError for distinct features and pairs of features at once.
    """
    kinds, wanted = kinds or FeatureKinds(), wanted or Wanted()
    frequencies = frequencies or feature_ranking.Frequencies()
    if wanted.distinct and kinds.cartesian:
        raise UsageError(message="distinct features are single ones, not pairs: leave out", arguments=("cartesian",))
    all_scores = np.array(scores, np.float64)
    known = ~np.isnan(all_scores)
    figures = all_scores[known]
    # Scores are divided by their number, since a sum of scores may be too large for a double.
    weights = np.array(
        [feature_ranking.rank_scores(figures.tolist(), greatest_first=worst_is_greatest), figures / len(figures)]
    )
    wanted = wanted if known.all() else wanted.of_known(known)
    costs = None if wanted.losses is None else feature_ranking.Losses(np.array(wanted.losses, np.float64))
    weights = weights if costs is None else np.concatenate([weights, costs.weights])
    keep = wanted.distinct or wanted.documents is not None
    parts = tally.Parts.split(weights)
    if elsewhere is not None:
        found = elsewhere(known, parts.rows, keep)
    else:
        wanted_items, least = known.tolist(), frequencies.least
        some = items.only(wanted_items) if isinstance(items, ItemColumns) else compress(items, wanted_items)
        fields = Fields(header)
        found = tally.tally_features(some, parts.rows, fields, kinds, keep=keep, least=least, progress=progress)
    ranked, occurrences = feature_ranking.Ranking(weights, parts, kinds, frequencies).of(found)
    return _figures(ranked, occurrences, weights, costs, wanted)


def _figures(
    ranked: feature_ranking.Ranked,
    occurrences: feature_ranking.RankedPlaces,
    weights: Array,
    costs: feature_ranking.Losses | None,
    wanted: Wanted,
) -> WorstFeatures:
    """Compute the wanted figures of ranked features, and choose the distinct ones."""
    items = len(weights[0])
    more: dict[str, Array | Integers] = {}
    documents = wanted.documents
    crossed = None if documents is None else Crossed.of(occurrences.all(), documents)
    several = None if documents is None or documents.are_lines or documents.count == 1 else crossed
    if costs is not None:
        more |= costs.columns(ranked.counts.astype(np.float64), ranked.sums[2:], several)
    if crossed is not None:
        more["documents"] = crossed.count(len(ranked.names))
    p_values = ranked.tied_p_values
    if several is not None:
        p_values = feature_ranking.p_of(several.rank_sum_z(weights[0], len(ranked.names)))
        p_values = np.where(ranked.are_numbers, np.minimum(2 * p_values, 1.0), p_values)
    features = WorstFeatures(
        named=ranked.names,
        counts=ranked.counts,
        means=ranked.means(items),
        p_values=ranked.p_values,
        q_values=significance.benjamini_hochberg(p_values),
        more=more,
    )
    if not wanted.distinct:
        return features
    candidates = np.flatnonzero(features.q_values < significance.LEVEL)
    is_number = [is_output_number(name) for name in features.named.at(candidates).texts()]
    candidates = candidates[~np.array(is_number, np.bool_)]
    # Distinct features explain the losses or, without finite losses, the ranks.
    if costs is None or not np.isfinite(costs.losses).all():
        badness = -weights[0]
    else:
        badness = -costs.losses if wanted.best else costs.losses
    chosen, explained = select_distinct(badness, occurrences.only(candidates), len(candidates), wanted.most)
    distinct = features.at(candidates[chosen])
    return replace(distinct, more=distinct.more | {"explained": np.array(explained)})


# The few features in a report


def few_distinct(
    items: Iterable[ScoredItem],
    scores: Array,
    *,
    worst_is_greatest: bool,
    header: tuple[str, ...],
    documents: Documents | None,
    are_losses: bool = False,
) -> WorstFeatures:
    """Choose at most ten distinct features, words and shapes of words, the one that explains most first.

    Lines without a finite score are left out. ``documents``, if any, are those of the lines. ``are_losses`` adds the
    cost of each feature.
    """
    known = np.where(np.isfinite(scores), scores, np.nan).tolist()
    return worst_features(
        items,
        known,
        worst_is_greatest=worst_is_greatest,
        header=header,
        kinds=FeatureKinds(word_shapes=True),
        frequencies=feature_ranking.Frequencies(least=significance.LEAST_LINES),
        wanted=Wanted(losses=known if are_losses else None, documents=documents, distinct=True, most=MOST_DISTINCT),
    )
