"""The challenge's files that scores depend on: where the answers are, and one digest of all (a reference)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, TypeAlias

from geval_py.errors import MissingFileError
from geval_py.reading import lines, sources, splits
from geval_py.reading.challenge import Challenge
from geval_py.scoring.metrics import find_metric

if TYPE_CHECKING:
    from geval_py.board.settings import Settings


def expected_of(challenge: str, answers: str, test: str) -> str:
    """Return the path of a test's answers, hidden or public; raises MissingFileError, and as find_file."""
    for folder in (answers, challenge):
        found = sources.find_file(os.path.join(folder, test, splits.EXPECTED_FILE))
        if found is not None:
            return found
    raise MissingFileError(
        what="No file with the expected results", path=os.path.join(answers, test, splits.EXPECTED_FILE)
    )


def input_of(challenge: str, test: str) -> str | None:
    """Return the path of a test's input, or None."""
    return sources.find_file(os.path.join(challenge, test, splits.INPUT_FILE))


def sets_to_come(settings: Settings) -> list[str]:
    """Return the names of the sets that board.yaml does not score yet: sets with an input, except for training.

    A missing challenge has none (scoring reports that it is missing). Raises OSError.
    """
    if not os.path.isdir(settings.challenge):
        return []
    names = Challenge.open(settings.challenge).split_names
    tests = {test.name for test in settings.tests}
    return [
        name
        for name in names
        if name not in tests
        and not name.startswith(splits.TRAINING_SET)
        and input_of(settings.challenge, name) is not None
    ]


References: TypeAlias = "Mapping[tuple[str, str], str]"  # digests by test and metric


def references_of(settings: Settings) -> References:
    """Digest, for each test and metric, all that its scores depend on but the output.

    That is the answers, headers, input and words, as far as the metric needs them, and for the ranking metric the
    seed of its interval. Raises the DataErrors of the challenge's files.
    """
    return {
        (test.name, metric): _digest(_parts(settings, test.name, metric))
        for test in settings.tests
        for metric in settings.metrics
    }


def _parts(settings: Settings, test: str, metric: str) -> Iterator[str]:
    task = Challenge.open(settings.challenge).task.replace(alt_metrics=(metric,), test_name=test)
    expected = expected_of(settings.challenge, settings.answers, test)
    header = splits.read_header(task.directory, task.out_header)
    yield f"expected:{_digest_of_lines(expected)}"
    yield f"out-header:{'|'.join(header[:1])}"
    metrics = [find_metric(scheme.metric) for scheme in task.schemes()]
    if task.needs_input or any(metric.needs_input for metric in metrics):
        split = splits.locate(task.replace(expected_file=expected, out_files=(expected,)))
        yield f"input:{_digest_of_lines(split.input) if split.input else ''}"
        yield f"in-header:{'|'.join(split.in_header)}"
    if any(metric.needs_vocabulary for metric in metrics):
        yield f"vocabulary:{_digest(sorted(splits.read_vocabulary(task)))}"
    if task.tokenizer is not None and any(metric.is_tokenised for metric in metrics):
        yield f"tokenizer:{task.tokenizer}"
    if metric == settings.metric:
        yield f"seed:{settings.seed}"


def _digest_of_lines(path: str) -> str:
    with lines.LineReader(path, digest=True) as reader:
        reader.count_rest()
    return reader.sha256 or ""


def _digest(parts: Iterator[str] | list[str]) -> str:
    return sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
