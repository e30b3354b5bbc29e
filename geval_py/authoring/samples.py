"""The data that a new challenge begins with: a few items, to be replaced by one's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from geval_py.authoring.folders import DEV_SET
from geval_py.reading.splits import EXPECTED_FILE, INPUT_FILE, TRAINING_SET


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What a kind of challenge begins with: its title and task, the columns, and items as (input, expected).

    ``hidden`` are those of dev-0 and of the hidden set. ``how`` says in README.md what stands in the files.
    """

    title: str
    task: str
    in_header: tuple[str, ...]
    out_header: str
    train: tuple[tuple[str, str], ...]
    hidden: tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]
    how: str = ""


WORD_GAPS = Sample(
    title="Guess the missing word",
    task="Give a probability distribution over the words that may stand in the gap of a text.",
    in_header=("LeftContext", "RightContext"),
    out_header="GuessedWord",
    train=(
        ("The ferry left the pier at\tand came back before dark.", "noon"),
        ("We had rain all night, and the\tin the valley rose by a foot.", "river"),
        ("She put the letter back into the\tand said nothing.", "drawer"),
        ("A lamp was burning in the\twindow of the school.", "upper"),
    ),
    hidden=(
        (
            ("The train from the coast was late, and it was\twhen we sat down.", "noon"),
            ("Two boys were seen on the ice of the\tbelow the mill.", "river"),
        ),
        (
            ("The key lay in a\tof the old desk.", "drawer"),
            ("He lives with his sister on the\tfloor.", "upper"),
        ),
    ),
)
CLASSES = Sample(
    title="Tell a question",
    task="Give the probability that a sentence, its punctuation taken away, was a question.",
    in_header=("Text",),
    out_header="Probability",
    how="A line of `in.tsv` is a sentence, and the line of `expected.tsv` beside it is 1 for a question and 0 for\n"
    "none. An output has a line for each, with one number: the probability of 1.",
    train=(
        ("where did you leave the boat", "1"),
        ("the boat lies behind the bridge", "0"),
        ("is there any bread left", "1"),
        ("there is some bread on the table", "0"),
    ),
    hidden=(
        (
            ("who has opened the window", "1"),
            ("the window was open all night", "0"),
            ("can you hear the rain", "1"),
        ),
        (
            ("the rain has stopped", "0"),
            ("when does the market begin", "1"),
            ("it begins before sunrise", "0"),
        ),
    ),
)


def data_files(sample: Sample, test_name: str, expected_file: str = EXPECTED_FILE) -> Mapping[str, str]:
    """Give the texts of in.tsv and of the expected file of each set, by their paths, train first."""
    sets = {TRAINING_SET: sample.train, DEV_SET: sample.hidden[0], test_name: sample.hidden[1]}
    files: dict[str, str] = {}
    for name, items in sets.items():
        files[f"{name}/{INPUT_FILE}"] = "".join(f"{text}\n" for text, _ in items)
        files[f"{name}/{expected_file}"] = "".join(f"{word}\n" for _, word in items)
    return files
