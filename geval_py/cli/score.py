"""GEval's plain command line: scores, or one of its modes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial

from geval_py.cli.evaluations import blaming_config, document_head, evaluate_outputs
from geval_py.cli.progress import ProgressBar
from geval_py.cli.settings import Settings, parse
from geval_py.reading.options import SCORES
from geval_py.reading.task import Task
from geval_py.scoring.evaluation import Evaluation
from geval_py.scoring.kernel import choose_backend
from geval_py.scoring.score import Score
from geval_py.showing.json import json_text
from geval_py.showing.scores import scores_text
from geval_py.version import __version__


def run(words: Sequence[str]) -> int:
    """Run the plain command line; gives the exit status, raises GevalError."""
    task, settings = parse(words)
    with blaming_config(task):
        _show(task, settings)
    return 0


def _show(task: Task, settings: Settings) -> None:
    if settings.help:
        from geval_py.cli.parsers import make_parser

        sys.stdout.write(make_parser().format_help())
    elif settings.version:
        print(f"geval-py {__version__} ({choose_backend().name} backend)")
    elif settings.list_metrics:
        _list_metrics()
    elif settings.mode == SCORES:
        _show_scores(task, settings)
    else:
        _show_mode(task, settings)


def _list_metrics() -> None:
    from geval_py.showing.listings import metrics_table

    sys.stdout.writelines(metrics_table().text(header=False))
    print("A name in …Hashed may end in a number of bits, 1 to 24 (10 where none is given): LogLossHashed8.")


def _show_scores(task: Task, settings: Settings) -> None:
    evaluations = evaluate_outputs(task, settings)
    if settings.format == "json":
        sys.stdout.write(json_text(_document(task, settings, evaluations)))
        return
    with ProgressBar("samples", unit="items") as progress:
        interval = None
        if settings.bootstrap is not None:
            interval = partial(Score.interval, samples=settings.bootstrap, seed=settings.seed, progress=progress)
        text = scores_text(evaluations, settings.precision, percentage=settings.percentage, interval=interval)
    sys.stdout.write(text)


def _document(task: Task, settings: Settings, evaluations: Sequence[Evaluation]) -> dict[str, object]:
    outputs = [e.to_dict(samples=settings.bootstrap, seed=settings.seed) for e in evaluations]
    return document_head(task) | {"test": task.test_name, "outputs": outputs}


def _show_mode(task: Task, settings: Settings) -> None:
    from geval_py.cli import features, lines, tokenize

    if settings.just_tokenize:
        tokenize.write_tokens(settings.tokenizer)
        return
    modes = {
        "line_by_line": lines.show_lines,
        "diff": lines.show_difference,
        "oracle_item_based": lines.show_best,
        "worst_features": features.show_worst,
        "most_worsening_features": features.show_worsening,
    }
    modes[settings.mode](task, settings)
