"""GEval's plain command line: scores, or one of its modes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from geval_py.arguments import make_parser
from geval_py.cli.evaluations import evaluate_outputs
from geval_py.cli.progress import ProgressBar
from geval_py.errors import ConfigError, SchemeError
from geval_py.evaluation import Evaluation, Score
from geval_py.kernel import choose_backend
from geval_py.metrics import METRICS
from geval_py.options import CONFIG_FILE, SCORES, Options, config_options, parse_options
from geval_py.render.documents import json_text
from geval_py.render.scores import scores_text
from geval_py.schemes import parse_schemes
from geval_py.version import __version__


def run(words: Sequence[str]) -> int:
    """Run the plain command line; gives the exit status, raises GevalError."""
    options = parse_options(words)
    with blaming_config(options):
        _show(options)
    return 0


@contextmanager
def blaming_config(options: Options) -> Iterator[None]:
    """Turn an error in a metric that config.txt asks for into one of config.txt."""
    try:
        yield
    except SchemeError as error:
        if not _is_from_config(error.scheme, options):
            raise
        path = os.path.join(options.challenge_directory, CONFIG_FILE)
        raise ConfigError(path=path, message=error.message) from error


def _is_from_config(scheme: str, options: Options) -> bool:
    """Tell whether config.txt asks for a scheme or a metric, of those that are scored."""
    config = config_options(options.challenge_directory)
    texts = config.alt_metrics if options.alt_metrics else config.metrics
    return any(scheme in (found.text, found.metric) for text in texts for found in parse_schemes(text))


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
    for metric in METRICS.values():
        direction = f"{metric.measure.direction} is better"
        print(f"{metric.name:20} {metric.measure.unit:12} {direction:17} {metric.summary}")
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
    return {
        "version": __version__,
        "challenge": os.path.basename(os.path.abspath(options.challenge_directory)),
        "test": options.test_name,
        "outputs": [e.to_dict(samples=options.bootstrap, seed=options.seed) for e in evaluations],
    }


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
