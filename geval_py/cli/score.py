"""GEval's plain command line: scores, or one of its modes."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from geval_py.cli.evaluations import blaming_config, document_head, evaluate_outputs
from geval_py.cli.settings import Settings, parse
from geval_py.cli.terminal import ProgressBar
from geval_py.reading.options import AUTHORING, SCORES
from geval_py.reading.splits import Task
from geval_py.scoring.columns import select_schemes, shown_name
from geval_py.scoring.kernel.backends import choose_backend
from geval_py.scoring.score_tables import scores_text
from geval_py.scoring.scores import Failure, MetricScore, ScoredOutput, each_score, what_is_scored
from geval_py.tables.escapes import json_text
from geval_py.tables.terminals import width_of
from geval_py.version import __version__

if TYPE_CHECKING:
    from geval_py.explaining.significance import Interval


def run(words: Sequence[str]) -> int:
    """Run the plain command line; gives the exit status, raises GevalError."""
    task, settings = parse(words)
    with blaming_config(task):
        return _show(task, settings)


def _show(task: Task, settings: Settings) -> int:
    if settings.help:
        from geval_py.cli.parsers import make_parser

        sys.stdout.write(make_parser().format_help())
    elif settings.version:
        print(f"geval-py {__version__} ({choose_backend().name} backend)")
    elif settings.list_metrics:
        _list_metrics()
    elif settings.mode == SCORES:
        return _show_scores(task, settings)
    elif settings.mode in AUTHORING:
        return _author(task, settings)
    else:
        _show_mode(task, settings)
    return 0


def _list_metrics() -> None:
    from geval_py.cli.terminal import write_listing
    from geval_py.scoring.score_tables import metrics_table

    write_listing(metrics_table())
    print("A name in …Hashed may end in a number of bits, 1 to 24 (10 where none is given): LogLossHashed8.")
    print("An F-score's and NDCG's may be any: F2, Macro-F0.5, NDCG@3.")


def _show_scores(task: Task, settings: Settings) -> int:
    """Show the scores of each output; gives the exit status, which tells whether all could be scored."""
    results = evaluate_outputs(task, settings)
    if settings.by_score:
        results.sort(key=_place_by_score)
    with ProgressBar("samples", unit="items") as progress:
        interval = _interval(results, settings, progress)
        if settings.format == "json":
            text = json_text(_document(task, results, interval))
        else:
            text = _text(results, _names(task), settings, interval)
    sys.stdout.write(text)
    return 1 if any(isinstance(result, Failure) for result in results) else 0


def _names(task: Task) -> list[str]:
    return [shown_name(*named) for named in select_schemes(task)]


def _interval(
    results: Sequence[ScoredOutput | Failure], settings: Settings, progress: ProgressBar
) -> Callable[[MetricScore], Interval] | None:
    """Tell how a score's interval is made, where that is asked for: in text as GEval does."""
    if settings.bootstrap is None:
        return None
    from geval_py.cli.evaluations import documents_asked_for, warn_of_ruin
    from geval_py.explaining.bootstrap import score_interval

    evaluations = what_is_scored(results)
    warn_of_ruin(evaluations)
    return partial(
        score_interval,
        samples=settings.bootstrap,
        seed=settings.seed,
        documents=documents_asked_for(evaluations, settings.documents, settings.seed),
        as_geval=settings.format == "text",
        progress=progress,
    )


def _text(
    results: Sequence[ScoredOutput | Failure],
    names: Sequence[str],
    settings: Settings,
    interval: Callable[[MetricScore], Interval] | None,
) -> str:
    if settings.format == "csv":
        from geval_py.scoring.score_tables import scores_table

        return "".join(scores_table(results, names, interval).csv())
    return scores_text(
        results,
        settings.precision,
        names=names,
        percentage=settings.percentage,
        interval=interval,
        width=width_of(sys.stdout),
    )


def _place_by_score(result: ScoredOutput | Failure) -> tuple[bool, float]:
    """Give a key that sorts by the first metric, the best first, and puts behind what has no score."""
    first = each_score(result, 1)[0]
    if first is None or math.isnan(first.value):
        return True, 0.0
    return False, -first.value if first.greatest_first(worst=False) else first.value


def _document(
    task: Task, results: Sequence[ScoredOutput | Failure], interval: Callable[[MetricScore], Interval] | None
) -> dict[str, object]:
    outputs = [result.to_dict(interval) for result in results]
    return document_head(task) | {"test": task.test_name, "outputs": outputs}


def _author(task: Task, settings: Settings) -> int:
    from geval_py.cli.challenge import init, validate

    return init.run(task, settings) if settings.init else validate.run(task)


def _show_mode(task: Task, settings: Settings) -> None:
    from geval_py.cli import features, lines

    if settings.just_tokenize:
        lines.write_tokens(task.tokenizer)
        return
    modes = {
        "line_by_line": lines.show_lines,
        "diff": lines.show_difference,
        "oracle_item_based": lines.show_best,
        "worst_features": features.show_worst,
        "most_worsening_features": features.show_worsening,
    }
    modes[settings.mode](task, settings)
