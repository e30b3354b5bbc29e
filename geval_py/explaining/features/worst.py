"""Which features go with bad scores: a ranking by the Mann-Whitney U test.

The test is that of :mod:`geval_py.explaining.features.rank_sum`. Numbers, and lengths, are features by their rank
correlation with the items' ranks (:mod:`geval_py.explaining.features.kendall`), two-sided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from geval_py.errors import UsageError
from geval_py.explaining.documents import documents_of
from geval_py.explaining.features.distinct import is_output_number, select_distinct
from geval_py.explaining.features.gain import Losses
from geval_py.explaining.features.occurrences import Occurrences
from geval_py.explaining.features.rank_sum import rank_scores
from geval_py.explaining.features.ranking import Frequencies, Ranked, Ranking
from geval_py.explaining.features.table import WorstFeatures
from geval_py.explaining.features.tally import FieldTally, tally_features
from geval_py.explaining.statistics.corrections import benjamini_hochberg
from geval_py.explaining.statistics.groups import LEVEL
from geval_py.reading.features import FeatureKinds, Field, Fields
from geval_py.reading.items import ScoredItem
from geval_py.scoring.parallel import Progress

if TYPE_CHECKING:
    from geval_py.explaining.documents import Documents
    from geval_py.scoring.cluster import Cluster
    from geval_py.scoring.evaluation import Evaluation

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is told of features beside GEval's figures.

    ``losses``, in nats, an item each, ask for what a feature costs; ``documents``, an item's each, for the number of
    those that it is on; ``distinct`` for the few features only that together explain the bad items or, where the
    ``best`` scores are ranked as if they were bad, the good ones.
    """

    losses: Sequence[float] | None = None
    documents: Documents | None = None
    distinct: bool = False
    best: bool = False

    def of_known(self, known: Truths) -> Wanted:
        """Give the same of some items."""
        places = np.flatnonzero(known)
        return replace(
            self,
            losses=None if self.losses is None else np.array(self.losses, np.float64)[known].tolist(),
            documents=None if self.documents is None else self.documents.only(places),
        )


def rank_features(
    evaluation: Evaluation,
    kinds: FeatureKinds,
    *,
    other: Evaluation | None = None,
    best: bool = False,
    frequencies: Frequencies | None = None,
    costs: bool = False,
    documents: str | int | None = None,
    distinct: bool = False,
    progress: Progress | None = None,
    cluster: Cluster | None = None,
) -> WorstFeatures:
    """Rank the features of an evaluation's lines as :meth:`Evaluation.worst_features` does, into aligned arrays.

    With ``costs`` it is told what they cost. The workers of a ``cluster`` count the features.
    """
    score = evaluation.scores[0]
    in_nats = score.metric.measure.in_nats and other is None
    return worst_features(
        evaluation.read_items(),
        evaluation.line_scores() if other is None else evaluation.score_differences(other),
        worst_is_greatest=score.greatest_first(worst=not best),
        header=evaluation.split.in_header,
        kinds=kinds,
        frequencies=frequencies,
        wanted=Wanted(
            losses=evaluation.line_losses if in_nats and (costs or distinct) else None,
            documents=None if documents is None else documents_of(evaluation, documents),
            distinct=distinct,
            best=best,
        ),
        progress=progress,
        elsewhere=None if cluster is None else _elsewhere(cluster, evaluation, kinds, progress),
    )


def _elsewhere(
    cluster: Cluster, evaluation: Evaluation, kinds: FeatureKinds, progress: Progress | None
) -> Callable[[Truths, Floats, bool], dict[Field, FieldTally]]:
    from geval_py.explaining.features.elsewhere import tally_on

    return lambda known, weights, keep: tally_on(
        cluster, evaluation, known, weights, kinds, keep=keep, progress=progress
    )


def worst_features(
    items: Iterable[ScoredItem],
    scores: Sequence[float],
    *,
    worst_is_greatest: bool,
    header: tuple[str, ...] = (),
    kinds: FeatureKinds | None = None,
    frequencies: Frequencies | None = None,
    wanted: Wanted | None = None,
    progress: Progress | None = None,
    elsewhere: Callable[[Truths, Floats, bool], dict[Field, FieldTally]] | None = None,
) -> WorstFeatures:
    """Rank the features of items by how surely they go with bad scores, the smallest p first.

    ``items`` and ``scores`` are as many; an item whose score is NaN is left out. ``worst_is_greatest`` tells which
    scores are bad. A feature whose p is not defined, since all items have it, is left out. Those that tie in p come
    by field (expected, output, then the columns of the input), then by token in the order of its characters. Distinct
    features come in the order in which they were chosen. ``progress`` is called every few thousand items. The
    features may be counted ``elsewhere``, given which items are known, their weights, and whether places are kept.

    Raises UsageError for distinct features and pairs of features at once.
    """
    kinds, frequencies, wanted = kinds or FeatureKinds(), frequencies or Frequencies(), wanted or Wanted()
    if wanted.distinct and kinds.cartesian:
        raise UsageError(message="distinct features are single ones, not pairs: leave out", arguments=("cartesian",))
    all_scores = np.array(scores, np.float64)
    known = ~np.isnan(all_scores)
    figures = all_scores[known]
    # Each score is taken as its share of the mean, since a sum of scores may be too large for a double.
    weights = np.array([rank_scores(figures.tolist(), greatest_first=worst_is_greatest), figures / len(figures)])
    wanted = wanted if known.all() else wanted.of_known(known)
    costs = None if wanted.losses is None else Losses(np.array(wanted.losses, np.float64))
    weights = weights if costs is None else np.concatenate([weights, costs.weights])
    keep = wanted.distinct or wanted.documents is not None
    if elsewhere is not None:
        found = elsewhere(known, weights, keep)
    else:
        some = compress(items, known.tolist())
        found = tally_features(some, weights, Fields(header), kinds, keep=keep, progress=progress)
    ranked, occurrences = Ranking(weights, kinds, frequencies).of(found)
    return _told(ranked, occurrences, weights, costs, wanted)


def _told(
    ranked: Ranked, occurrences: Occurrences, weights: Floats, costs: Losses | None, wanted: Wanted
) -> WorstFeatures:
    """Give the features that are wanted with what is told of them."""
    items = len(weights[0])
    more: dict[str, Floats | Integers] = {}
    if costs is not None:
        more |= costs.columns(ranked.counts.astype(np.float64), ranked.sums[2:])
    if wanted.documents is not None:
        more["documents"] = occurrences.documents(wanted.documents, len(ranked.names))
    features = WorstFeatures(
        names=ranked.names,
        counts=ranked.counts,
        means=ranked.means(items),
        p_values=ranked.p_values,
        q_values=benjamini_hochberg(ranked.tied_p_values),
        more=more,
    )
    if not wanted.distinct:
        return features
    numbers = np.array([*map(is_output_number, features.names)], np.bool_)
    candidates = np.flatnonzero((features.q_values < LEVEL) & ~numbers)
    badness = _badness(weights[0], costs, best=wanted.best)
    chosen, explained = select_distinct(badness, occurrences.only(candidates, len(features)), len(candidates))
    return features.reordered(candidates[chosen]).with_column("explained", np.array(explained))


def _badness(ranks: Floats, costs: Losses | None, *, best: bool) -> Floats:
    """Give what distinct features are to explain: the losses or, where there are none or infinite ones, the ranks."""
    if costs is None or not np.isfinite(costs.losses).all():
        return -ranks
    return -costs.losses if best else costs.losses
