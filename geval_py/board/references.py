"""What a score depends on beside the output: the answers, headers, input, words, in one digest.

Two evaluations with equal references, of the same output by the same geval-py, are the same.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, TypeAlias

from geval_py.errors import MissingFileError
from geval_py.reading.challenge import Challenge
from geval_py.reading.lines import LineReader
from geval_py.reading.sources import find_file
from geval_py.reading.splits import EXPECTED_FILE, INPUT_FILE, read_header, read_vocabulary
from geval_py.scoring.metrics import find_metric

if TYPE_CHECKING:
    from geval_py.board.settings import Settings
    from geval_py.board.store import Board
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


def expected_of(settings: Settings, test: str) -> str:
    """Find the answers of a test: in their own folder, else in the challenge; raises MissingFileError."""
    for folder in (settings.answers, settings.challenge):
        found = find_file(os.path.join(folder, test, EXPECTED_FILE))
        if found is not None:
            return found
    place = os.path.join(settings.answers, test, EXPECTED_FILE)
    raise MissingFileError(what="No file with the expected results", path=place, hint="board.yaml names the test")


def _parts(settings: Settings, test: str, metric: str) -> Iterator[str]:
    """Say in a text each on what the scores depend; the interval of the metric that ranks is made with a seed."""
    task = Challenge.open(settings.challenge).task.replace(alt_metrics=(metric,), test_name=test)
    header = read_header(task.directory, task.out_header)
    yield f"expected:{_digest_of_lines(expected_of(settings, test))}"
    yield f"out-header:{'|'.join(header[:1])}"
    if task.needs_input:
        yield from _input_parts(task)
    if any(find_metric(scheme.metric).needs_vocabulary for scheme in task.schemes()):
        yield f"vocabulary:{_digest(sorted(read_vocabulary(task)))}"
    if metric == settings.metric:
        yield f"seed:{settings.seed}"


def _input_parts(task: Task) -> Iterator[str]:
    path = find_file(os.path.join(task.directory, task.test_name, task.input_file or INPUT_FILE))
    yield f"input:{_digest_of_lines(path) if path else ''}"
    yield f"in-header:{'|'.join(read_header(task.directory, task.in_header))}"


def _digest_of_lines(path: str) -> str:
    with LineReader(path, digest=True) as reader:
        reader.count_rest()
    return reader.sha256 or ""


def _digest(parts: Iterator[str] | list[str]) -> str:
    return sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
