"""Write a new challenge with sample data, to be replaced by the organiser's own: GEval's ``--init``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from geval_py.errors import UsageError
from geval_py.reading import challenge, config, rewriting, splits
from geval_py.scoring import evaluate
from geval_py.text import visible


class Sample(NamedTuple):
    """The sample data for some metrics: title and task, columns, and the items of each set as pairs of lines."""

    title: str
    task: str
    in_header: Sequence[str]
    out_header: Sequence[str]
    train: Sequence[Sequence[str]]
    dev: Sequence[Sequence[str]]
    test: Sequence[Sequence[str]]
    how: str = ""

    @property
    def headers(self) -> dict[str, Sequence[str]]:
        """The columns of each file of headers."""
        every = {splits.IN_HEADER_FILE: self.in_header, splits.OUT_HEADER_FILE: self.out_header}
        return {name: columns for name, columns in every.items() if columns}


def samples() -> dict[str, Sample]:
    """Read the samples by the names of metrics, without prefixes and a number at the end; "" is for all others."""
    tables = tomllib.loads(Path(__file__).with_name("samples.toml").read_text(encoding="utf-8"))["samples"]
    return {name: Sample(**table) for table in tables for name in table.pop("metrics") or [""]}


def init_challenge(task: config.Task, *, precision: int | None = None, percentage: bool = False) -> None:
    """Write a new challenge with sample data into a task's directory.

    The task also has the metrics, the name of the hidden test set and the name of the answers' file. ``precision``
    and ``percentage`` are written into config.txt, for showing scores. Either all files are written or none. Raises
    UsageError (no metric, an impossible name), SchemeError, ExistingFileError and MissingFileError.
    """
    schemes = evaluate.select_schemes(task)
    name = task.test_name
    if name in (splits.DEV_SET, splits.TRAINING_SET):
        advice = "give the hidden test set another name, such as test-B"
        raise UsageError(f"a new challenge has its own {name}: {advice}")
    if not re.fullmatch(r"[^/\\]+", name) or name in (".", ".."):
        raise UsageError(f"a test set's name is a folder's: {visible(name)}")
    expected = task.expected_file or splits.EXPECTED_FILE
    if not re.fullmatch(r"[^/\\]+", expected):
        raise UsageError(f"the answers need a file's name, without a folder: {visible(expected)}")
    prefixes, _, metric = schemes[0][1].name.rpartition("/")
    if prefixes and metric == "Accuracy":
        metric = "Macro-F"
    sample = samples().get(metric) or samples().get(metric.rstrip("-0123456789."), samples()[""])
    head = {
        rewriting.GITIGNORE_FILE: rewriting.GITIGNORE,
        challenge.README_FILE: readme(sample, schemes[0], name, expected),
        config.CONFIG_FILE: config_text(
            schemes, name, precision=precision, percentage=percentage, headers=sample.headers
        ),
    }
    texts = head | {file: "\t".join(columns) + "\n" for file, columns in sample.headers.items()}
    for folder, items in ((splits.TRAINING_SET, sample.train), (splits.DEV_SET, sample.dev), (name, sample.test)):
        texts[f"{folder}/{splits.INPUT_FILE}"] = "".join(f"{text}\n" for text, _ in items)
        texts[f"{folder}/{expected}"] = "".join(f"{word}\n" for _, word in items)
    rewriting.write_files(task.directory, {path: text.encode() for path, text in texts.items()})


def config_text(
    schemes: Sequence[evaluate.Named],
    test_name: str = config.DEFAULT_TEST,
    *,
    precision: int | None = None,
    percentage: bool = False,
    headers: Collection[str] = (splits.IN_HEADER_FILE, splits.OUT_HEADER_FILE),
    documents: str | None = None,
) -> str:
    """Write a config.txt: the metrics and the options that are not defaults, on one line without a line end.

    ``headers`` are the files of headers that there are, ``documents`` is the column of the documents. White space
    inside a word is escaped. Raises UsageError for a backslash before white space, which config.txt cannot hold.
    """
    words: list[str] = []
    for scheme, metric in schemes:
        words += ["--metric", f"{metric.name}:{scheme.text.partition(':')[2]}" if scheme.flags else metric.name]
    words += [] if test_name == config.DEFAULT_TEST else ["--test-name", test_name]
    words += [] if precision is None else ["--precision", str(precision)]
    words += ["--show-as-percentage"] if percentage else []
    for name, option in ((splits.IN_HEADER_FILE, "--in-header"), (splits.OUT_HEADER_FILE, "--out-header")):
        words += [option, name] if name in headers else []
    words += [] if documents is None else ["--documents", documents]
    text = " ".join(map(config.word_of, words))
    for word, read in zip(words, config.words_of(text), strict=False):
        if word != read:
            raise UsageError(f"config.txt cannot hold a backslash before white space: {visible(word)}")
    return text


def readme(sample: Sample, scheme: evaluate.Named, test_name: str, expected: str = splits.EXPECTED_FILE) -> str:
    """Write README.md: the task, the files, the format of outputs, and the folders."""
    bits = scheme[1].bits
    of_words = "Words are compared as they are."
    if bits is not None:
        of_words = f"Words are hashed into {2**bits} buckets ({bits} bits)."
    of_word_gaps = f"""
The training data is plain text too: the text left of a gap, the text right of it, and the word itself.

A line of `in.tsv` has the text left of the gap, a TAB, and the text right of it; the line of `expected.tsv` beside it
is the missing word.

An output has a line for each gap, with words and the logarithms of their probabilities:

    river:-0.7 road:-1.6 sea:-2.3 :-2.3

or with the probabilities themselves:

    river:0.5 road:0.2 sea:0.1 :0.2

The last entry, without a word, is for all other words. {of_words}
"""
    bullets = [
        (challenge.README_FILE, "this page"),
        (config.CONFIG_FILE, "the options of scoring: the metrics, and how scores are shown"),
        *((name, f"the names of the {name.partition('-')[0]}put's columns") for name in sample.headers),
    ]
    for name, what in (
        (splits.TRAINING_SET, "training data"),
        (splits.DEV_SET, "development data"),
        (test_name, "the hidden test data"),
    ):
        bullets += [
            (f"{name}/", what),
            (f"{name}/in.tsv", "input"),
            (f"{name}/{expected}", "what is expected, a line for each line of the input"),
        ]
    title = "Directory structure"
    return "".join(
        [
            f"\n{sample.title}\n{'=' * len(sample.title)}\n\n{sample.task}\n",
            "\nThis is a sample: replace the data by your own, and then this page. "
            "`geval --validate` checks the files.\n",
            f"\n{sample.how}\n" if sample.how else of_word_gaps,
            f"\n{title}\n{'-' * len(title)}\n\n",
            *(f"* `{path}`: {what}\n" for path, what in bullets),
        ]
    )
