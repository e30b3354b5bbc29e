"""GEval's modes that show features: those of the worst lines, and those that go with being worse than another."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from geval_py.cli.evaluations import document_head, evaluate_lines, workers_at
from geval_py.cli.settings import Settings
from geval_py.cli.terminal import ProgressBar, note, write_table
from geval_py.explaining.worst_features import FeatureListing
from geval_py.reading.features import FeatureKinds, tokens_of
from geval_py.reading.splits import Task
from geval_py.scoring.scores import ScoredOutput
from geval_py.tables.escapes import json_list_text

if TYPE_CHECKING:
    from geval_py.explaining.worst_features import WorstFeatures
    from geval_py.scoring.blocks import Workers


def show_worst(task: Task, settings: Settings) -> None:
    """Show the features that go with bad scores, by rising p."""
    with workers_at(settings.cluster, settings.threads) as workers:
        _show_worst(task, settings, workers)


def _show_worst(task: Task, settings: Settings, workers: Workers) -> None:
    (evaluation,) = evaluate_lines(task, settings, workers=workers)
    infinite = sum(map(math.isinf, evaluation.each_line_score()))
    if infinite:
        note(f"{infinite} of {evaluation.line_count} lines have an infinite score: so has the mean of their features")
    features = rank(task, settings, evaluation, best=settings.reverse_sort, workers=workers)
    _note_of(features, evaluation.line_count, settings)
    _write(task, settings, [evaluation], features)


def show_worsening(task: Task, settings: Settings) -> None:
    """Show the features that go with being worse than another output, by rising p."""
    with workers_at(settings.cluster, settings.threads) as workers:
        _show_worsening(task, settings, workers)


def _show_worsening(task: Task, settings: Settings, workers: Workers) -> None:
    evaluation, other = evaluate_lines(task, settings, [settings.most_worsening_features or ""], workers=workers)
    differences = evaluation.score_differences(other)
    undefined, infinite = sum(map(math.isnan, differences)), sum(map(math.isinf, differences))
    if undefined:
        note(f"{undefined} of {len(differences)} lines are infinite in both outputs and are left out")
    if infinite:
        note(f"{infinite} of {len(differences)} lines are infinite in one output: so are means, or not defined")
    features = rank(task, settings, evaluation, other, best=settings.reverse_sort, workers=workers)
    _note_of(features, len(differences) - undefined, settings)
    _write(task, settings, [evaluation, other], features)


def _note_of(features: WorstFeatures, lines: int, settings: Settings) -> None:
    """Say why there is no feature, or what distinct ones explain."""
    if settings.distinct and len(features):
        note(f"together, these explain {features.more['explained'][-1]:.1%} of how lines differ")
    elif settings.distinct:
        note("no feature is shown: none explains more of how lines differ than chance does")
    elif not len(features):
        note(_why_nothing(lines, settings.min_frequency))


def _why_nothing(lines: int, least: int) -> str:
    """Say why there is no feature to show."""
    if lines < 2:
        reason = f"there {'is 1 line' if lines else 'are 0 lines'} to rank, and it takes 2"
    elif least > 1:
        reason = f"none is on at least {least} of {lines} lines, and missing from as many (--min-frequency)"
    else:
        reason = f"each is on all {lines} lines"
    return f"no feature is shown: {reason}"


def rank(
    task: Task,
    settings: Settings,
    evaluation: ScoredOutput,
    other: ScoredOutput | None = None,
    *,
    best: bool = False,
    workers: Workers | None = None,
) -> WorstFeatures:
    """Rank the features of the lines as the options say: what goes with bad scores, or with the best."""
    from geval_py.explaining.feature_ranking import Frequencies
    from geval_py.explaining.worst_features import rank_features

    with ProgressBar("features", unit="items") as progress:
        return rank_features(
            evaluation,
            kinds_of(task, settings),
            other=other,
            best=best,
            frequencies=Frequencies(least=settings.min_frequency, least_cartesian=settings.min_cartesian_frequency),
            costs=settings.format != "text",
            documents=settings.documents,
            distinct=settings.distinct,
            progress=progress,
            workers=workers,
        )


def kinds_of(task: Task, settings: Settings) -> FeatureKinds:
    """Give the kinds of features that the options ask for."""
    return FeatureKinds(
        bigrams=settings.bigrams,
        word_shapes=settings.word_shapes,
        numerical=settings.numerical_features,
        cartesian=settings.cartesian,
        tokens=tokens_of(task.tokenizer),
    )


def _write(task: Task, settings: Settings, evaluations: Sequence[ScoredOutput], features: WorstFeatures) -> None:
    listing = FeatureListing(evaluations=evaluations, features=features, for_terminal=sys.stdout.isatty())
    if settings.format == "json":
        head = document_head(task) | listing.to_dict()
        sys.stdout.writelines(json_list_text(head, listing.name, listing.documents()))
    elif settings.format == "csv":
        sys.stdout.writelines(listing.records().csv())
    else:
        write_table(listing.table())
