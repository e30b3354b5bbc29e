"""The challenge's files that scores depend on: where the answers are, and one digest of all (a reference)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from geval_py.errors import MissingFileError, UsageError
from geval_py.reading import config, files, lines, splits
from geval_py.reading.challenge import README_FILE, Challenge
from geval_py.reading.splits import find_answers
from geval_py.scoring.evaluate import find_metric
from geval_py.text import visible

if TYPE_CHECKING:
    from geval_py.board.settings import BoardSettings, Test

LOOKED_AT = 500  # lines, to find the columns that may name documents
MAX_DOWNLOAD = 50_000_000  # bytes of the challenge's public files


def expected_of(challenge: str, answers: str, test: str) -> str:
    """Return the path of a test's answers, hidden or public; raises MissingFileError, and as find_file."""
    for folder in (answers, challenge):
        path = find_answers(os.path.join(folder, test, splits.EXPECTED_FILE))
        if path is not None:
            return path
    raise MissingFileError(
        what="No file with the expected results", path=os.path.join(answers, test, splits.EXPECTED_FILE)
    )


def public_files(settings: BoardSettings) -> dict[str, str]:
    """Return the paths of the challenge's files that everybody may have, by their names in its folder.

    They have no answers of a test unless these are for everyone, and nothing that lies in the folder of the answers.
    There are none if they are too large for a download.
    """
    challenge, answers = (Path(folder).resolve() for folder in (settings.challenge, settings.answers))
    task = config.config_task(settings.challenge)
    names = filter(None, (README_FILE, config.CONFIG_FILE, task.in_header, task.out_header))
    paths: list[str | None] = [os.path.join(settings.challenge, name) for name in names]
    for name in (splits.TRAINING_SET, *(test.name for test in settings.tests)):
        folder, test = os.path.join(settings.challenge, name), settings.test(name)
        paths.append(files.find_file(os.path.join(folder, splits.INPUT_FILE)))
        if test is None or (test.visible and not test.ladder and not test.split):
            paths.append(find_answers(os.path.join(folder, splits.EXPECTED_FILE)))
    public: dict[str, str] = {}
    for path in paths:
        if path is not None and os.path.isfile(path):
            place = Path(path).resolve()
            is_hidden = place.is_relative_to(answers) and not challenge.is_relative_to(answers)
            if place.is_relative_to(challenge) and not is_hidden:
                public[os.path.relpath(path, settings.challenge).replace(os.sep, "/")] = path
    return public if sum(map(os.path.getsize, public.values())) <= MAX_DOWNLOAD else {}


def documents_column(settings: BoardSettings, test: Test) -> str:
    """Return the column that board.yaml names, or that the challenge declares; "" for none."""
    return test.documents or config.declared_documents(settings.challenge) or ""


def documents_of(settings: BoardSettings, test: Test) -> list[str] | None:
    """Return the document of each line of a test; None if each line is a document of its own.

    A document is a value of the column that the test names or the challenge declares or, without such, of that column
    of the input which has the most values, but at most half as many as lines. Raises MissingFileError without the
    challenge, UsageError for an unknown column and for a single document.
    """
    if not os.path.isdir(settings.challenge):
        raise MissingFileError(what="No challenge, so no documents of its lines,", path=settings.challenge)
    place = files.find_file(os.path.join(settings.challenge, test.name, splits.INPUT_FILE))
    rows = [] if place is None else [line.split("\t") for line in lines.read_lines(place)]

    def column(number: int) -> list[str]:
        return [row[number] if number < len(row) else "" for row in rows]

    named_so = documents_column(settings, test)
    if named_so and (test.documents or place is not None):
        from geval_py.explaining.documents import Documents, coarsest
        from geval_py.reading.features import Fields, columns_there_are

        task = Challenge.open(settings.challenge).task
        header, named_columns = splits.read_header(task.directory, task.in_header), dict[str, list[str]]()
        for name in named_so.split(","):
            try:
                number = Fields(header).find(name).column
            except KeyError:
                number = -1
            if not 0 <= number < max(map(len, rows), default=0):
                there = columns_there_are(name, header)
                message = f"the input of {visible(test.name)} has no column `{visible(name)}`\n  {there}"
                raise UsageError(message=message)
            named_columns[name] = column(number)
        documents = named_columns[coarsest([Documents.of(*column) for column in named_columns.items()]).column]
        if len(set(documents)) < 2:
            raise UsageError(message=f"all lines of {visible(test.name)} belong to one document")
        return documents
    first = zip_longest(*rows[:LOOKED_AT], fillvalue="")  # a column of texts, which take longest, repeats no value
    columns = [column(number) for number, values in enumerate(first) if len(set(values)) < len(values)]
    several = [values for values in columns if 2 <= len(set(values)) <= len(rows) / 2]
    return max(several, key=lambda values: len(set(values)), default=None)


References: TypeAlias = "Mapping[tuple[str, str], str]"  # digests by test and metric


def references_of(settings: BoardSettings) -> References:
    """Digest, for each test and metric, all that its scores depend on but the output.

    That is the answers, headers, input and words, as far as the metric needs them, the documents of a test, and for
    the ranking metric the seed of its interval. Raises the DataErrors of the challenge's files.
    """
    references = {}
    for test in settings.tests:
        has_documents = test.split or documents_column(settings, test)
        documents = [f"documents:{_digest(documents_of(settings, test) or [])}"] if has_documents else []
        for metric in settings.metrics:
            references[test.name, metric] = _digest([*_parts(settings, test.name, metric), *documents])
    return references


def _parts(settings: BoardSettings, test: str, metric: str) -> Iterator[str]:
    task = Challenge.open(settings.challenge).task.replace(alt_metrics=(metric,), test_name=test)
    if task.selector is not None:
        message = "config.txt has --selector: a board cannot score parts of JSON lines"
        raise UsageError(message=message)
    expected = expected_of(settings.challenge, settings.answers, test)
    header = splits.read_header(task.directory, task.out_header)
    yield f"expected:{lines.sha256_of(splits.answers_at(expected))}"
    yield f"out-header:{'|'.join(header[:1])}"
    metrics = [find_metric(scheme.metric) for scheme in task.schemes()]
    if task.needs_input or any(metric.needs_input for metric in metrics):
        split = splits.locate(task.replace(expected_file=expected, out_files=(expected,)))
        yield f"input:{lines.sha256_of(split.input) if split.input else ''}"
        yield f"in-header:{'|'.join(split.in_header)}"
    if any(metric.needs_vocabulary for metric in metrics):
        yield f"vocabulary:{_digest(sorted(splits.read_vocabulary(task)))}"
    if task.tokenizer is not None and any(metric.is_tokenised for metric in metrics):
        yield f"tokenizer:{task.tokenizer}"
    if metric == settings.metric:
        yield f"seed:{settings.seed}"


def _digest(parts: Iterator[str] | list[str]) -> str:
    return sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
