"""The challenge's files that scores depend on: where the answers are, and one digest of all (a reference)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from geval_py.errors import MissingFileError, UsageError
from geval_py.reading import config, files, lines, splits
from geval_py.reading.challenge import README_FILE, Challenge
from geval_py.reading.features import DOCUMENT_NAMES, columns_named
from geval_py.reading.splits import find_answers
from geval_py.scoring.evaluate import find_metric

if TYPE_CHECKING:
    from geval_py.board.settings import BoardSettings, Test

MAX_DOWNLOAD = 50_000_000  # bytes of the challenge's public files


def expected_of(challenge: str, answers: str, test: str) -> str:
    """Return the path of a test's answers, hidden or public; raises MissingFileError, and as find_file."""
    for folder in (answers, challenge):
        path = find_answers(os.path.join(folder, test, splits.EXPECTED_FILE))
        if path:
            return path
    raise MissingFileError(
        what="No file with the expected results", path=os.path.join(answers, test, splits.EXPECTED_FILE)
    )


def challenge_files(settings: BoardSettings, folder: str) -> Iterator[str]:
    """Yield the paths of a board's files in a folder of its challenge or answers: README, inputs and so on."""
    task = config.config_task(settings.challenge)
    for name in filter(None, (README_FILE, config.CONFIG_FILE, task.in_header, task.out_header)):
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            yield path
    for name in (splits.TRAINING_SET, *(test.name for test in settings.tests)):
        inputs = files.find_file(os.path.join(folder, name, splits.INPUT_FILE))
        answers = find_answers(os.path.join(folder, name, splits.EXPECTED_FILE))
        yield from filter(None, (inputs, answers))


def public_files(settings: BoardSettings) -> dict[str, str]:
    """Return the paths of the challenge's files that everybody may have, by their names in its folder.

    They have no answers of a test unless these are for everyone, and nothing that lies in the folder of the answers.
    There are none if they are too large for a download.
    """
    challenge, answers = (Path(folder).resolve() for folder in (settings.challenge, settings.answers))
    hidden = {
        find_answers(os.path.join(settings.challenge, test.name, splits.EXPECTED_FILE))
        for test in settings.tests
        if not test.visible or test.ladder or test.split
    }
    public: dict[str, str] = {}
    for path in challenge_files(settings, settings.challenge):
        place = Path(path).resolve()
        is_hidden = place.is_relative_to(answers) and not challenge.is_relative_to(answers)
        if path not in hidden and place.is_relative_to(challenge) and not is_hidden:
            public[os.path.relpath(path, settings.challenge).replace(os.sep, "/")] = path
    return public if sum(map(os.path.getsize, public.values())) <= MAX_DOWNLOAD else {}


References: TypeAlias = "Mapping[tuple[str, str], str]"  # digests by test and metric


def references_of(settings: BoardSettings) -> References:
    """Digest, for each test and metric, all that its scores depend on but the output.

    That is the answers, headers, input and words, as far as the metric needs them, and for the ranking metric the
    seed of its interval and its documents. Raises the DataErrors of the challenge's files.
    """
    return {
        (test.name, metric): _digest(_parts(settings, test, metric))
        for test in settings.tests
        for metric in settings.metrics
    }


def _parts(settings: BoardSettings, test: Test, metric: str) -> Iterator[str]:
    task = Challenge.open(settings.challenge).task.replace(alt_metrics=(metric,), test_name=test.name)
    if task.selector is not None:
        raise UsageError("config.txt has --selector: a board cannot score parts of JSON lines")
    expected = expected_of(settings.challenge, settings.answers, test.name)
    split = splits.locate(task.replace(expected_file=expected, out_files=(expected,)))
    yield f"expected:{lines.sha256_of(split.expected)}"
    yield f"out-header:{'|'.join(split.out_header[:1])}"
    metrics = [find_metric(scheme.metric) for scheme in task.schemes()]
    documents = test.documents or split.documents
    if documents is None:
        documents = ",".join(columns_named(DOCUMENT_NAMES, split.in_header))
    if task.needs_input or documents or any(metric.needs_input for metric in metrics):
        yield f"input:{lines.sha256_of(split.input) if split.input else ''}"
        yield f"in-header:{'|'.join(split.in_header)}"
    if any(metric.needs_vocabulary for metric in metrics):
        yield f"vocabulary:{_digest(sorted(splits.read_vocabulary(task)))}"
    if task.tokenizer and any(metric.is_tokenised for metric in metrics):
        yield f"tokenizer:{task.tokenizer}"
    if metric == settings.metric:
        yield f"seed:{settings.seed}"
        yield f"documents:{documents}"


def _digest(parts: Iterator[str] | list[str]) -> str:
    return sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
