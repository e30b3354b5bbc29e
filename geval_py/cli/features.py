"""GEval's modes that show features: of the worst lines, and of lines that are worse than another output's."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

from geval_py.cli.score import evaluate_lines, show_of_task, workers_at
from geval_py.cli.terminal import ProgressBar, note
from geval_py.explaining.feature_ranking import Frequencies
from geval_py.explaining.worst_features import FeatureListing, WorstFeatures, rank_features
from geval_py.reading.features import FeatureKinds, tokens_of
from geval_py.tables.formats import FOR_PEOPLE

if TYPE_CHECKING:
    from geval_py.cli.options import Settings
    from geval_py.reading.splits import Task
    from geval_py.scoring.blocks import Workers
    from geval_py.scoring.scores import ScoredOutput


def show_worst(task: Task, settings: Settings) -> None:
    """Show the features that go with bad scores, by rising p."""
    with workers_at(settings.cluster, settings.threads) as workers:
        (evaluation,) = evaluate_lines(task, settings, workers=workers)
        infinite = sum(map(math.isinf, evaluation.each_line_score()))
        if infinite:
            of = f"{infinite} of {evaluation.line_count} lines"
            note(f"{of} have an infinite score: so has the mean of their features")
        features = rank(task, settings, evaluation, best=settings.reverse_sort, workers=workers)
        _show(task, settings, [evaluation], features, evaluation.line_count)


def show_worsening(task: Task, settings: Settings) -> None:
    """Show the features that go with being worse than another output, by rising p."""
    with workers_at(settings.cluster, settings.threads) as workers:
        evaluation, other = evaluate_lines(task, settings, [settings.most_worsening_features or ""], workers=workers)
        differences = evaluation.score_differences(other)
        undefined, infinite = sum(map(math.isnan, differences)), sum(map(math.isinf, differences))
        if undefined:
            note(f"{undefined} of {len(differences)} lines are infinite in both outputs and are left out")
        if infinite:
            note(f"{infinite} of {len(differences)} lines are infinite in one output: so are means, or not defined")
        features = rank(task, settings, evaluation, other, best=settings.reverse_sort, workers=workers)
        _show(task, settings, [evaluation, other], features, len(differences) - undefined)


def _show(
    task: Task, settings: Settings, evaluations: list[ScoredOutput], features: WorstFeatures, lines: int
) -> None:
    """Show features that were found on so many lines, or why there are none."""
    if settings.distinct and len(features):
        note(f"together, these explain {features.more['explained'][-1]:.1%} of how lines differ")
    elif settings.distinct:
        note("no feature is shown: none explains more of how lines differ than chance does")
    elif not len(features) and lines < 2:
        note(f"no feature is shown: there {'is 1 line' if lines else 'are 0 lines'} to rank, and it takes 2")
    elif not len(features) and settings.min_frequency > 1:
        least = f"at least {settings.min_frequency} of {lines} lines"
        note(f"no feature is shown: none is on {least}, and missing from as many (--min-frequency)")
    elif not len(features):
        note(f"no feature is shown: each is on all {lines} lines")
    for_terminal = settings.format != "text" or sys.stdout.isatty()
    listing = FeatureListing(evaluations=evaluations, features=features, for_terminal=for_terminal)
    show_of_task(task, listing, settings.format)


def rank(
    task: Task,
    settings: Settings,
    evaluation: ScoredOutput,
    other: ScoredOutput | None = None,
    *,
    best: bool = False,
    workers: Workers | None = None,
) -> WorstFeatures:
    """Rank the features of the lines as the options ask: what goes with bad scores, or with the best."""
    with ProgressBar("features", unit="items") as progress:
        return rank_features(
            evaluation,
            kinds_of(task, settings),
            other=other,
            best=best,
            frequencies=Frequencies(least=settings.min_frequency, least_cartesian=settings.min_cartesian_frequency),
            costs=settings.format not in FOR_PEOPLE,
            documents=settings.documents,
            distinct=settings.distinct,
            progress=progress,
            workers=workers,
        )


def kinds_of(task: Task, settings: Settings) -> FeatureKinds:
    """Return the kinds of features that the options ask for."""
    return FeatureKinds(
        bigrams=settings.bigrams,
        word_shapes=settings.word_shapes,
        numerical=settings.numerical_features,
        cartesian=settings.cartesian,
        tokens=tokens_of(task.tokenizer),
    )
