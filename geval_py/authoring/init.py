"""Write a new challenge, with sample data: GEval's ``--init``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from geval_py.authoring.folders import (
    CONFIG_FILE,
    DEV_SET,
    GITIGNORE,
    GITIGNORE_FILE,
    IN_HEADER_FILE,
    OUT_HEADER_FILE,
    README_FILE,
    write_files,
)
from geval_py.authoring.samples import Sample, data_files
from geval_py.authoring.text_samples import sample_for
from geval_py.errors import UsageError
from geval_py.reading.config import words_of
from geval_py.reading.splits import EXPECTED_FILE, TRAINING_SET
from geval_py.reading.task import Task
from geval_py.scoring.columns import Named
from geval_py.scoring.wanted import select_schemes
from geval_py.text import SPACES, visible


def init_challenge(task: Task, *, precision: int | None = None, percentage: bool = False) -> None:
    """Write a new challenge with sample data into a task's directory, for its metrics, its test set and its answers.

    ``precision`` and ``percentage`` are how config.txt shows scores. Nothing is written unless all can be. Raises
    UsageError (no metric, a test set that cannot be one), SchemeError, ExistingFileError and MissingFileError.
    """
    schemes = select_schemes(task)
    _check_test_name(task.test_name)
    expected = task.expected_file or EXPECTED_FILE
    if not re.fullmatch(r"[^/\\]+", expected):
        raise UsageError(message=f"the answers need a file's name, without a folder: {visible(expected)}")
    sample = sample_for(schemes[0][1])
    data = data_files(sample, task.test_name, expected)
    head = {
        GITIGNORE_FILE: GITIGNORE,
        README_FILE: readme(sample, schemes[0], task.test_name, expected),
        CONFIG_FILE: config_text(schemes, task.test_name, precision=precision, percentage=percentage),
        IN_HEADER_FILE: "\t".join(sample.in_header) + "\n",
        OUT_HEADER_FILE: f"{sample.out_header}\n",
    }
    write_files(task.directory, {name: text.encode() for name, text in (head | dict(data)).items()})


def _check_test_name(name: str) -> None:
    if name in (DEV_SET, TRAINING_SET):
        raise UsageError(message=f"{name} is written as well: give the hidden test set another name, as test-B")
    if not re.fullmatch(r"[^/\\]+", name) or name in (".", ".."):
        raise UsageError(message=f"a test set's name is a folder's: {visible(name)}")


def config_text(
    schemes: Sequence[Named],
    test_name: str = Task.test_name,
    *,
    precision: int | None = None,
    percentage: bool = False,
) -> str:
    """Write a config.txt: the metrics, with what is not the default, on one line without an end.

    White space inside a metric is escaped. Raises UsageError for a backslash before white space, which no config.txt
    can hold.
    """
    words: list[str] = []
    for scheme, metric in schemes:
        words += ["--metric", f"{metric.name}:{scheme.text.partition(':')[2]}" if scheme.flags else metric.name]
    words += [] if test_name == Task.test_name else ["--test-name", test_name]
    words += [] if precision is None else ["--precision", str(precision)]
    words += ["--show-as-percentage"] if percentage else []
    words += ["--in-header", IN_HEADER_FILE, "--out-header", OUT_HEADER_FILE]
    text = " ".join(re.sub(f"[{SPACES}]", r"\\\g<0>", word) for word in words)
    for word, read in zip(words, words_of(text), strict=False):
        if word != read:
            raise UsageError(message=f"config.txt cannot hold a backslash before white space: {visible(word)}")
    return text


def readme(sample: Sample, scheme: Named, test_name: str, expected: str = EXPECTED_FILE) -> str:
    """Write README.md: the task, what the files hold, how outputs are written, and the folders."""
    parts = [f"\n{sample.title}\n{'=' * len(sample.title)}\n\n{sample.task}\n"]
    parts.append(
        "\nThis is a sample: replace the data by your own, and then this page. `geval --validate` tells whether all\n"
        "fits together.\n"
    )
    parts.append(f"\n{sample.how}\n" if sample.how else _word_gaps(scheme[1].bits))
    return "".join([*parts, _structure(test_name, expected)])


def _word_gaps(bits: int | None) -> str:
    if bits is None:
        of_words = "Words are compared as they are."
    else:
        of_words = f"Words are hashed into {2**bits} buckets ({bits} bits)."
    return f"""
The training data is plain text too: the text left of a gap, the text right of it, and the word itself.

A line of `in.tsv` has the text left of the gap, a TAB, and the text right of it; the line of `expected.tsv` beside it
is the missing word.

An output has a line for each gap, with words and the logarithms of their probabilities:

    river:-0.7 road:-1.6 sea:-2.3 :-2.3

or with the probabilities themselves:

    river:0.5 road:0.2 sea:0.1 :0.2

The last entry, without a word, is for all other words. {of_words}
"""


def _structure(test_name: str, expected: str) -> str:
    bullets = [
        (README_FILE, "this page"),
        (CONFIG_FILE, "the options of scoring: the metrics, and how scores are shown"),
        (IN_HEADER_FILE, "the names of the input's columns"),
        (OUT_HEADER_FILE, "the name of the output's column"),
    ]
    of_sets = ((TRAINING_SET, "training data"), (DEV_SET, "development data"), (test_name, "the hidden test data"))
    for name, what in of_sets:
        bullets += [
            (f"{name}/", what),
            (f"{name}/in.tsv", "input"),
            (f"{name}/{expected}", "what is expected, a line for each line of the input"),
        ]
    title = "Directory structure"
    return f"\n{title}\n{'-' * len(title)}\n\n" + "".join(f"* `{path}`: {what}\n" for path, what in bullets)
