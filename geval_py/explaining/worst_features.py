"""Few features that together explain the bad lines: a forward selection.

The list of features is redundant: words that stand on the same lines are bad together. Features are chosen one by
one, each time that which says most of what those before it left open: with the residual r of the losses after a
regression on these, and the part x' of the feature's 0s and 1s that they do not tell, the greatest

    z = x'.r / sqrt(s^2 |x'|^2),    s^2 = |r|^2 / (n - k - 1) after k features,

until Phi(-z) is not below 0.05 over the number of candidates (Bonferroni). The regression is by Gram and Schmidt
(Efroymson, "Multiple regression analysis", 1960; Hastie, Tibshirani and Friedman, "The Elements of Statistical
Learning", 2009, section 3.3.2).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from geval_py.errors import UsageError
from geval_py.explaining.documents import documents_of
from geval_py.explaining.feature_ranking import Frequencies, Occurrences, Ranked, Ranking
from geval_py.explaining.line_by_line import explained_head
from geval_py.explaining.rank_tests import Losses, rank_scores
from geval_py.explaining.significance import LEVEL, benjamini_hochberg, normal_cdf
from geval_py.explaining.tally import FieldTally, tally_features
from geval_py.reading.features import BETWEEN_TOKENS, FIELD_NUMBER, OUTPUT, SHAPE, FeatureKinds, Field, Fields
from geval_py.reading.items import ScoredItem
from geval_py.scoring.blocks import Progress
from geval_py.tables.formats import Listing
from geval_py.tables.numbers import p_value, special
from geval_py.tables.table import Column, Table, plain_table
from geval_py.text import visible

if TYPE_CHECKING:
    import pandas as pd

    from geval_py.explaining.documents import Documents
    from geval_py.explaining.losses import Floats
    from geval_py.scoring.blocks import Workers
    from geval_py.scoring.scores import ScoredOutput


LEAST_NEW = 1e-9  # the share of a feature's own variance below which the chosen ones tell it all
_NUMBER_SHAPE = re.compile(r"[9.]*9[9.]*(?:a\.?9+)?")  # of 0.5, -2.31 and 1e-05, for example


def select_distinct(badness: Floats, occurrences: Occurrences, features: int) -> tuple[list[int], list[float]]:
    """Choose features, the one that says most first; gives them, and the share of the variance explained so far.

    ``badness`` is a number an item, the greater the worse, all finite. Features that go with less of it are none.
    """
    items = len(badness)
    residual = badness - badness.mean()
    whole = float(residual @ residual)
    counts = np.bincount(occurrences.features, minlength=features)
    left = counts * (1 - counts / items)  # |x'|^2
    own = left.copy()
    usable = occurrences.sums(residual, features) > 0
    directions: list[Floats] = []
    chosen: list[int] = []
    explained: list[float] = []
    while len(chosen) < min(features, items - 2):
        products = occurrences.sums(residual, features)
        new = usable & (left > LEAST_NEW * own)
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(new, products / np.sqrt(residual @ residual / (items - len(chosen) - 1) * left), -np.inf)
        best = int(np.argmax(z))
        if not normal_cdf(-z[best]) < LEVEL / features:
            break
        direction = _new_direction(occurrences.vector(best, items), directions)
        directions.append(direction)
        residual = residual - (residual @ direction) * direction
        left = left - occurrences.sums(direction, features) ** 2
        chosen.append(best)
        usable[best] = False
        explained.append(1 - float(residual @ residual) / whole)
    return chosen, explained


def _new_direction(values: Floats, directions: list[Floats]) -> Floats:
    """Give the part of some values that neither their mean nor other directions tell, as a vector of length 1."""
    rest = values - values.mean()
    for _ in range(2):  # twice, since the first time leaves rounding noise
        for direction in directions:
            rest = rest - (rest @ direction) * direction
    unit: Floats = rest / np.sqrt(rest @ rest)
    return unit


def is_output_number(name: str) -> bool:
    """Tell whether a feature is a number of the output, which is its probabilities and no word, or has one.

    >>> [is_output_number(name) for name in ("out:0.5", "out:SHAPE:9.99", "out:the++0.5", "out:the", "exp:1901")]
    [True, True, True, False, False]
    """
    field, _, token = name.partition(":")
    if field != str(OUTPUT):
        return False
    shapes = token.startswith(SHAPE)
    parts = token.replace(SHAPE, "").split(BETWEEN_TOKENS)
    return any(_NUMBER_SHAPE.fullmatch(part) if shapes else FIELD_NUMBER.fullmatch(part) for part in parts)


# Features and their figures, a row a feature.


Integers = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstFeatures:
    """Features, each with the number of its items, their mean score, its p and q, and more columns; all aligned.

    ``q_values`` are p, corrected for ties and, by Benjamini and Hochberg, for the number of these features. Pairs of
    features, which are only here if their p is small, were more than are counted by it: their q is too small.

    ``more`` are further columns by their names: ``perplexity``, ``gain``, ``gain_low`` and ``gain_high`` where there
    are losses in nats (:mod:`geval_py.explaining.rank_tests`), ``documents`` where these were asked for, and
    ``explained`` of distinct features (:mod:`geval_py.explaining.worst_features`). What is not known is NaN.
    """

    names: list[str]
    counts: Integers
    means: Floats
    p_values: Floats
    q_values: Floats
    more: dict[str, Floats | Integers]

    def __len__(self) -> int:
        return len(self.names)

    @property
    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """The columns of figures by their names, as JSON, CSV and Python show them."""
        own = {"count": self.counts, "score": self.means, "p": self.p_values, "q": self.q_values}
        return own | self.more

    def to_frame(self) -> pd.DataFrame:
        """Make a table with a row a feature: ``feature``, ``count``, ``score`` (the mean), ``p``, ``q``, and more."""
        import pandas as pd

        return pd.DataFrame({"feature": pd.Series(self.names, dtype=object)} | self.columns)

    def only(self, wanted: Truths) -> WorstFeatures:
        """Give some of the features."""
        return self._taken(list(compress(self.names, wanted.tolist())), wanted)

    def reordered(self, order: Integers) -> WorstFeatures:
        """Give features in another order, by their places."""
        return self._taken([self.names[index] for index in order.tolist()], order)

    def with_column(self, name: str, values: Floats) -> WorstFeatures:
        """Add a column."""
        return WorstFeatures(
            names=self.names,
            counts=self.counts,
            means=self.means,
            p_values=self.p_values,
            q_values=self.q_values,
            more=self.more | {name: values},
        )

    def _taken(self, names: list[str], which: Truths | Integers) -> WorstFeatures:
        return WorstFeatures(
            names=names,
            counts=self.counts[which],
            means=self.means[which],
            p_values=self.p_values[which],
            q_values=self.q_values[which],
            more={name: column[which] for name, column in self.more.items()},
        )


_ROWS = 300  # written at once: few enough not to wake the garbage collector


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureListing(Listing):
    """Features of an evaluation, or of it beside another one, a row each: name, number of items, mean score, p."""

    name = "features"
    evaluations: Sequence[ScoredOutput]
    features: WorstFeatures
    for_terminal: bool = False

    def table(self) -> Table:
        """Return the table for people, as GEval shows features."""
        columns = [
            Column(name="feature", write=visible if self.for_terminal else str),
            Column(name="count", alignment="right", write=str),
            Column(name="score", alignment="right", write=_mean),
            Column(name="p", alignment="right", write=p_value),
        ]
        shown = self.features
        figures = (shown.counts.tolist(), shown.means.tolist(), shown.p_values.tolist())
        return Table(columns, zip(shown.names, *figures, strict=True), at_a_time=_ROWS)

    def records(self) -> Table:
        """Return the table for programs: all columns."""
        rows = (list(of.values()) for of in self.documents())
        return plain_table(["feature", *self.features.columns], rows)

    def to_dict(self) -> dict[str, Any]:
        """Return what is explained."""
        return explained_head(self.evaluations)

    def documents(self) -> Iterator[dict[str, Any]]:
        """Yield a document a feature, with the keys of :meth:`WorstFeatures.to_frame`; unknown figures are None."""
        columns, more = self.features.columns, self.features.more
        own = [columns[name].tolist() for name in columns if name not in more]
        others = ([None if math.isnan(value) else value for value in column.tolist()] for column in more.values())
        for name, *row in zip(self.features.names, *own, *others, strict=True):
            yield {"feature": name} | dict(zip(columns, row, strict=True))


def _mean(value: float) -> str:
    return f"{value:.8f}" if math.isfinite(value) else special(value)


# Which features go with bad scores: a ranking by the Mann-Whitney U test.


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
    evaluation: ScoredOutput,
    kinds: FeatureKinds,
    *,
    other: ScoredOutput | None = None,
    best: bool = False,
    frequencies: Frequencies | None = None,
    costs: bool = False,
    documents: str | int | None = None,
    distinct: bool = False,
    progress: Progress | None = None,
    workers: Workers | None = None,
) -> WorstFeatures:
    """Rank the features of an evaluation's lines as :meth:`ScoredOutput.worst_features` does, into aligned arrays.

    With ``costs`` it is told what they cost. ``workers`` elsewhere count the features there.
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
        elsewhere=None if workers is None or workers.are_here else _elsewhere(workers, evaluation, kinds, progress),
    )


def _elsewhere(
    workers: Workers, evaluation: ScoredOutput, kinds: FeatureKinds, progress: Progress | None
) -> Callable[[Truths, Floats, bool], dict[Field, FieldTally]]:
    from geval_py.explaining.tally import tally_on

    return lambda known, weights, keep: tally_on(
        workers, evaluation, known, weights, kinds, keep=keep, progress=progress
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


# What goes with bad lines: few features that together explain them, and what each costs.


MOST_CULPRITS = 10
LEAST_LINES = 10  # that have a feature, and that have it not


@dataclass(frozen=True, slots=True, kw_only=True)
class Culprit:
    """A feature that goes with bad lines: how many lines have it, their perplexity, its q.

    ``fall`` is the share by which the perplexity would fall if their mean loss were that of the others, from ``low``
    to ``high`` with 95 %; ``explained`` the share of the losses' variance that it and those before it explain.
    """

    feature: str
    lines: int
    perplexity: float
    fall: float
    low: float
    high: float
    q: float
    explained: float


def culprits_of(items: Iterable[ScoredItem], losses: Floats, header: tuple[str, ...]) -> list[Culprit]:
    """Give at most ten features, words and shapes of words, that together explain the bad lines, the best first.

    How they are chosen is said in :mod:`geval_py.explaining.worst_features`. Lines with an infinite loss are left
    out.
    """
    scores = np.where(np.isfinite(losses), losses, np.nan)
    found = worst_features(
        items,
        scores.tolist(),
        worst_is_greatest=True,
        header=header,
        kinds=FeatureKinds(word_shapes=True),
        frequencies=Frequencies(least=LEAST_LINES),
        wanted=Wanted(losses=scores.tolist(), distinct=True),
    )
    figures = (found.counts, *(found.more[name] for name in ("perplexity", "gain", "gain_low", "gain_high")))
    columns = (*figures, found.q_values, found.more["explained"])
    rows = zip(found.names, *(column.tolist() for column in columns), strict=True)
    return [
        Culprit(feature=name, lines=lines, perplexity=ppl, fall=fall, low=low, high=high, q=q, explained=explained)
        for name, lines, ppl, fall, low, high, q, explained in rows
    ][:MOST_CULPRITS]
