"""Whether a perfect output gets the best score: if not, either the answers or the metric cannot be meant so."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterator, Sequence

from geval_py.authoring.faults import Fault, fault_of
from geval_py.errors import DataError, GevalError, MalformedLineError
from geval_py.reading.lines import read_lines
from geval_py.reading.outputs import OUTPUT_FILE
from geval_py.reading.splits import Split, locate
from geval_py.reading.task import Task
from geval_py.scoring.columns import Named
from geval_py.scoring.evaluate import evaluate_output, vocabulary_for
from geval_py.scoring.metrics import Metric
from geval_py.scoring.metrics.binary import is_class_line
from geval_py.showing.numbers import shortest

TOLERANCE = 1e-4


def score_faults(task: Task, test_name: str, expected: str, schemes: Sequence[Named]) -> Iterator[Fault]:
    """Score a perfect output of a set's answers with each metric; what is no perfect score is a fault."""
    with tempfile.TemporaryDirectory(prefix="geval-validation-") as folder:
        os.mkdir(os.path.join(folder, test_name))
        output = os.path.join(folder, test_name, OUTPUT_FILE)
        open(output, "x").close()  # it is looked for before it is written, for each metric anew
        task = task.replace(
            test_name=test_name, expected_directory=task.directory, out_directory=folder, out_files=(output,)
        )
        for scheme in schemes:
            try:
                split = locate(task)
                write_perfect(output, expected, split, scheme[1])
                yield from _imperfect(task, split, scheme)
            except GevalError as error:
                yield _fault_in(error, output, expected)


def write_perfect(path: str, expected: str, split: Split, metric: Metric) -> None:
    """Write the output that knows each answer for certain."""
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        words = read_lines(expected, header=split.output_header)
        file.writelines(f"{perfect_line(word, metric)}\n" for word in words)


def perfect_line(word: str, metric: Metric) -> str:
    """Give the line that is certain of an answer, in a metric's form: GEval's ``the:1.0``, or the answer itself."""
    if metric.answers == "any":
        return word.partition("\t")[0]
    plain = not metric.is_of_words or (metric.bits is None and is_class_line(word))
    return word if plain else f"{word}:1.0"


def _imperfect(task: Task, split: Split, scheme: Named) -> Iterator[Fault]:
    best = scheme[1].measure.best
    evaluation = evaluate_output(split, split.outputs[0], [scheme], vocabulary_for([scheme], task))
    value = evaluation.scores[0].value
    if not math.isclose(best, value, rel_tol=0, abs_tol=TOLERANCE):
        yield Fault(
            "The best possible value was not obtained with the expected data, "
            f"expected: {shortest(best)} , obtained: {shortest(value)}",
            split.expected,
            f"with {evaluation.scores[0].name}",
        )


def _fault_in(error: GevalError, output: str, expected: str) -> Fault:
    """Make a fault of what scoring said; a perfect output's lines are those of the answers."""
    if not isinstance(error, DataError):
        return Fault(str(error), expected)
    if isinstance(error, MalformedLineError) and error.path == output:
        error.path = expected
    return fault_of(error)
