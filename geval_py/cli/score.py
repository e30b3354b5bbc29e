"""GEval's plain command line: scores, or one of its modes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial

from geval_py.cli.arguments import make_parser
from geval_py.cli.evaluations import blaming_config, document_head, evaluate_outputs
from geval_py.cli.progress import ProgressBar
from geval_py.reading.options import SCORES, Options, parse_options
from geval_py.scoring.evaluation import Evaluation
from geval_py.scoring.kernel import choose_backend
from geval_py.scoring.score import Score
from geval_py.showing.json import json_text
from geval_py.showing.scores import scores_text
from geval_py.version import __version__


def run(words: Sequence[str]) -> int:
    """Run the plain command line; gives the exit status, raises GevalError."""
    options = parse_options(words)
    with blaming_config(options):
        _show(options)
    return 0


def _show(options: Options) -> None:
    if options.help:
        sys.stdout.write(make_parser().format_help())
    elif options.version:
        print(f"geval-py {__version__} ({choose_backend().name} backend)")
    elif options.list_metrics:
        _list_metrics()
    elif options.mode == SCORES:
        _show_scores(options)
    else:
        _show_mode(options)


def _list_metrics() -> None:
    from geval_py.showing.listings import metrics_table

    sys.stdout.writelines(metrics_table().text(header=False))
    print("A name in …Hashed may end in a number of bits, 1 to 24 (10 where none is given): LogLossHashed8.")


def _show_scores(options: Options) -> None:
    evaluations = evaluate_outputs(options)
    if options.format == "json":
        sys.stdout.write(json_text(_document(options, evaluations)))
        return
    with ProgressBar("samples", unit="items") as progress:
        interval = None
        if options.bootstrap is not None:
            interval = partial(Score.interval, samples=options.bootstrap, seed=options.seed, progress=progress)
        text = scores_text(evaluations, options.precision, percentage=options.percentage, interval=interval)
    sys.stdout.write(text)


def _document(options: Options, evaluations: Sequence[Evaluation]) -> dict[str, object]:
    outputs = [e.to_dict(samples=options.bootstrap, seed=options.seed) for e in evaluations]
    return document_head(options) | {"test": options.test_name, "outputs": outputs}


def _show_mode(options: Options) -> None:
    from geval_py.cli import features, lines, tokenize

    modes = {
        "line_by_line": lines.show_lines,
        "diff": lines.show_difference,
        "oracle_item_based": lines.show_best,
        "worst_features": features.show_worst,
        "most_worsening_features": features.show_worsening,
        "just_tokenize": tokenize.write_tokens,
    }
    modes[options.mode](options)
