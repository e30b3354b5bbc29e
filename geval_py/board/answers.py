"""Where a test's answers are: in the folder of hidden ones or, for a public set, in the challenge."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, TypeAlias

from geval_py.errors import MissingFileError
from geval_py.reading.challenge import Challenge
from geval_py.reading.lines import LineReader
from geval_py.reading.sources import find_file
from geval_py.reading.splits import EXPECTED_FILE, INPUT_FILE, TRAINING_SET, locate, read_header, read_vocabulary
from geval_py.scoring.metrics import find_metric

if TYPE_CHECKING:
    from geval_py.board.database.store import Board
    from geval_py.board.settings import Settings
    from geval_py.reading.splits import Task


def expected_of(challenge: str, answers: str, test: str) -> str:
    """Give the path of a test's answers; raises MissingFileError, and what find_file raises."""
    for folder in (answers, challenge):
        found = find_file(os.path.join(folder, test, EXPECTED_FILE))
        if found is not None:
            return found
    raise MissingFileError(what="No file with the expected results", path=os.path.join(answers, test, EXPECTED_FILE))


def input_of(challenge: str, test: str) -> str | None:
    """Give the path of a test's input; None where there is none."""
    return find_file(os.path.join(challenge, test, INPUT_FILE))


def sets_to_come(settings: Settings) -> list[str]:
    """Name the sets of the challenge that are not scored, and may be one day: those with an input, but for training.

    There is none in a challenge that is not there, which is said once something is scored. Raises OSError.
    """
    if not os.path.isdir(settings.challenge):
        return []
    names = Challenge.open(settings.challenge).split_names
    tests = {test.name for test in settings.tests}
    return [
        name
        for name in names
        if name not in tests and not name.startswith(TRAINING_SET) and input_of(settings.challenge, name) is not None
    ]


# What a score depends on beside the output: the answers, headers, input, words, in one digest.


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
