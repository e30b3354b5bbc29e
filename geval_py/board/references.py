"""What a score depends on beside the output: the answers, headers, input, words, in one digest.

Two evaluations with equal references, of the same output by the same geval-py, are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, TypeAlias

from geval_py.board.answers import expected_of
from geval_py.reading.challenge import Challenge
from geval_py.reading.lines import LineReader
from geval_py.reading.splits import locate, read_header, read_vocabulary
from geval_py.scoring.metrics import find_metric

if TYPE_CHECKING:
    from geval_py.board.settings import Settings
    from geval_py.board.storing.store import Board
    from geval_py.reading.task import Task

References: TypeAlias = "Mapping[tuple[str, str], str]"  # by test and metric


def reference_of(board: Board, test: str, metric: str | None = None) -> str:
    """Give the digest of what the scores of a test by a metric (by default the one that ranks) depend on.

    Raises the DataErrors of the challenge's files.
    """
    return _digest(_parts(board.settings, test, metric or board.settings.metric))


def references_of(settings: Settings) -> References:
    """Give the references of all tests and metrics; raises the DataErrors of the challenge's files."""
    return {
        (test.name, metric): _digest(_parts(settings, test.name, metric))
        for test in settings.tests
        for metric in settings.metrics
    }


def _parts(settings: Settings, test: str, metric: str) -> Iterator[str]:
    """Say in a text each on what the scores depend; the interval of the metric that ranks is made with a seed."""
    task = Challenge.open(settings.challenge).task.replace(alt_metrics=(metric,), test_name=test)
    expected = expected_of(settings.challenge, settings.answers, test)
    header = read_header(task.directory, task.out_header)
    yield f"expected:{_digest_of_lines(expected)}"
    yield f"out-header:{'|'.join(header[:1])}"
    metrics = [find_metric(scheme.metric) for scheme in task.schemes()]
    if task.needs_input or any(metric.needs_input for metric in metrics):
        yield from _input_parts(task, expected)
    if any(metric.needs_vocabulary for metric in metrics):
        yield f"vocabulary:{_digest(sorted(read_vocabulary(task)))}"
    if task.tokenizer is not None and any(metric.is_tokenised for metric in metrics):
        yield f"tokenizer:{task.tokenizer}"
    if metric == settings.metric:
        yield f"seed:{settings.seed}"


def _input_parts(task: Task, expected: str) -> Iterator[str]:
    split = locate(task.replace(expected_file=expected, out_files=(expected,)))
    yield f"input:{_digest_of_lines(split.input) if split.input else ''}"
    yield f"in-header:{'|'.join(split.in_header)}"


def _digest_of_lines(path: str) -> str:
    with LineReader(path, digest=True) as reader:
        reader.count_rest()
    return reader.sha256 or ""


def _digest(parts: Iterator[str] | list[str]) -> str:
    return sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
