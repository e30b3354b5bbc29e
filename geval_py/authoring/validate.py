"""Tell what is wrong with a challenge's folder: GEval's ``--validate``, but all at once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from geval_py.authoring.faults import Fault, Lines, fault_of, text_faults
from geval_py.authoring.folders import CONFIG_FILE, DEV_SET, GITIGNORE_FILE, HIDDEN_SET, README_FILE
from geval_py.authoring.perfection import score_faults
from geval_py.errors import DataError, UsageError
from geval_py.reading.compression import COMPRESSED_ENDINGS
from geval_py.reading.config import config_task
from geval_py.reading.splits import EXPECTED_FILE, INPUT_FILE, TRAINING_SET
from geval_py.reading.task import Task
from geval_py.scoring.columns import Named
from geval_py.scoring.wanted import select_schemes
from geval_py.text import named

OLD_TRAIN_FILE = "train.tsv"
OLD_TRAIN_WARNINGS = (  # GEval's words, but for a slip of the pen
    "WARNING: Found old-style train file `train.tsv`, whereas the same convention as in",
    "WARNING: test directories is preferred (`in.tsv` and `expected.tsv`).",
    "WARNING: (Though, there might still be some cases when `train.tsv` is needed, e.g. for training LMs.)",
)
_HIDDEN = "hidden answers that lie in a folder of their own are validated there"


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """What validating gave: the faults, in GEval's order, and lines that warn. Without faults all is well."""

    faults: tuple[Fault, ...]
    warnings: tuple[str, ...] = ()


def validate_challenge(directory: str, given: Task | None = None) -> Validation:
    """Find what is wrong with a challenge's folder.

    ``given`` holds what the command line adds to config.txt: metrics, other metrics instead of them, the answers'
    name and a vocabulary, for scoring alone. What cannot be read is a fault. Raises UsageError for a metric of the
    command line that there is not.
    """
    if not os.path.isdir(directory):
        return Validation(faults=(Fault.of_file("No challenge directory", directory),))
    faults = list(_missing(directory))
    task, schemes = _read_config(directory, given or Task(), faults)
    if not any(scheme.priority == 1 for scheme, _ in schemes):
        faults.append(Fault("No metric has priority 1"))
    for name in (CONFIG_FILE, GITIGNORE_FILE, README_FILE):
        path = os.path.join(directory, name)
        faults += text_faults(path)[0] if os.path.isfile(path) else ()
    names = _test_sets(directory)
    if not names:
        faults.append(
            Fault(f"No directories with test data, expected `{DEV_SET}` and/or `{HIDDEN_SET}` directory", directory)
        )
    for name in names:
        faults += _set_faults(directory, name, task, schemes)
    warnings, of_train = _look_at_train(directory, task, schemes)
    return Validation(faults=tuple(dict.fromkeys([*faults, *of_train])), warnings=warnings)


def _missing(directory: str) -> Iterator[Fault]:
    for name in (CONFIG_FILE, GITIGNORE_FILE, README_FILE):
        path = os.path.join(directory, name)
        if not os.path.isfile(path):
            yield Fault.of_file(f"No {name} file", path)


def _read_config(directory: str, given: Task, faults: list[Fault]) -> tuple[Task, list[Named]]:
    """Give what is scored, and the metrics; a config.txt that cannot be understood is a fault."""
    task = Task(out_directory=directory)
    try:
        task = config_task(directory)
    except DataError as error:
        faults.append(fault_of(error))
    task = task.replace(
        metrics=(*task.metrics, *given.metrics),
        alt_metrics=(*task.alt_metrics, *given.alt_metrics),
        select_metrics=(*task.select_metrics, *given.select_metrics),
        expected_file=given.expected_file or task.expected_file,
        vocabulary=given.vocabulary or task.vocabulary,
        input_file=None,
    )
    if not (task.metrics or task.alt_metrics):
        return task, []
    try:
        return task, select_schemes(task)
    except UsageError as error:
        if given.metrics or given.alt_metrics or given.select_metrics:
            raise
        faults.append(Fault(str(error), os.path.join(directory, CONFIG_FILE)))
        return task, []


def _test_sets(directory: str) -> list[str]:
    with os.scandir(directory) as entries:
        names = [e.name for e in entries if e.is_dir(follow_symlinks=False) and e.name.startswith(("dev-", "test-"))]
    return sorted(names)


def files_named(folder: str, pattern: str) -> list[str]:
    """Give the files of a folder, compressed or not, whose names match a pattern, in order."""
    with os.scandir(folder) as entries:
        names = [
            entry.name
            for entry in entries
            if entry.is_file() and any(fnmatchcase(entry.name, pattern + end) for end in ("", *COMPRESSED_ENDINGS))
        ]
    return [os.path.join(folder, name) for name in sorted(names)]


def _set_faults(directory: str, name: str, task: Task, schemes: Sequence[Named]) -> Iterator[Fault]:
    folder = os.path.join(directory, name)
    inputs, expected = files_named(folder, INPUT_FILE), files_named(folder, EXPECTED_FILE)
    lines: list[Lines] = []
    yield from _file_faults(inputs, folder, INPUT_FILE, "the input", "input", lines)
    one_answer = all(metric.answers == "one" for _, metric in schemes)
    yield from _file_faults(
        expected, folder, EXPECTED_FILE, "the expected results", "expected", lines, columns=one_answer
    )
    if len(lines) == 2 and lines[0].count != lines[1].count:
        yield Fault(
            "The number of lines in input and expected file is not the same",
            detail="; ".join(f"{named(file.path)} has {file.count}" for file in lines),
        )
    outputs = files_named(folder, "out*.tsv")
    if outputs:
        yield Fault.of_files("Output file/s detected", outputs)
    if len(expected) == 1:
        yield from score_faults(task, name, expected[0], schemes)


def _file_faults(
    paths: Sequence[str],
    folder: str,
    name: str,
    what: str,
    kind: str,
    lines: list[Lines],
    *,
    columns: bool = True,
) -> Iterator[Fault]:
    """Give the faults of one data file; adds what was counted in it to ``lines``.

    With ``columns``, all its lines must have as many.
    """
    if not paths:
        hint = _HIDDEN if name == EXPECTED_FILE and os.path.basename(folder).startswith("test-") else ""
        yield Fault.of_file(f"No file with {what}", os.path.join(folder, name), hint)
    elif len(paths) > 1:
        yield Fault.of_files(f"Too many {kind} files", paths)
    else:
        faults, counted = text_faults(paths[0], columns=columns)
        lines += [] if counted is None else [counted]
        yield from faults


def _look_at_train(directory: str, task: Task, schemes: Sequence[Named]) -> tuple[tuple[str, ...], Sequence[Fault]]:
    """Give the warnings and the faults of the training set, if there is one."""
    folder = os.path.join(directory, TRAINING_SET)
    if not os.path.isdir(folder):
        return (), ()
    if files_named(folder, OLD_TRAIN_FILE):
        return OLD_TRAIN_WARNINGS, ()
    expected = files_named(folder, EXPECTED_FILE)
    if len(expected) != 1:
        return (), list(_file_faults(expected, folder, EXPECTED_FILE, "the expected results", "expected", []))
    return (), list(score_faults(task, TRAINING_SET, expected[0], schemes))
