"""The notes on an evaluation: what a user should know of its scores, said once for the command, Python and pages."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import islice

from geval_py.errors import MalformedLineError
from geval_py.reading.config import CONFIG_FILE, Task
from geval_py.reading.files import File, absolute, name_of, twins_note
from geval_py.reading.lines import first_name, read_lines
from geval_py.reading.splits import answers_in
from geval_py.scoring.scores import Evaluation, Score
from geval_py.tables.numbers import counted
from geval_py.text import named, visible

SAMPLED_LINES = 100  # in which the first line far above one is looked for
KEPT_ENDING = ".tuning.json"  # of the parameters beside an output that geval tune or geval mix wrote


def notes_of(evaluation: Evaluation, task: Task) -> tuple[str, ...]:
    """Return the notes on an evaluation of a task: on its files, on how they were read, and on its scores."""
    scores = [score for score in evaluation.scores if score.error is None]
    if not scores:
        return ()
    return (
        *_notes_on_task(evaluation, task),
        *_notes_on_output(evaluation, scores),
        *_notes_on_scores(evaluation, scores),
    )


def _notes_on_task(evaluation: Evaluation, task: Task) -> Iterator[str]:
    split, scores = evaluation.split, evaluation.scores
    if task.ignored:
        path = os.path.join(task.directory, CONFIG_FILE)
        yield f"{named(path)}: {', '.join(task.ignored)} ignored; no score depends on it"
    others = [score.metric.name for score in scores if not score.metric.is_of_words and not score.metric.is_tokenised]
    if task.tokenizer is not None and others:
        yield f"--tokenizer {task.tokenizer} does not change {others[0]}, which is of the lines as they are"
    if task.input_file is not None and split.input is None:
        yield f"there is no file {named(task.input_file)}; the input is not needed here"
    compared = any(score.metric.name == "CharMatch" and not score.scheme.text_flags for score in scores)
    if split.input is not None and compared:
        with closing(read_lines(split.input, header=first_name(split.in_header))) as lines:
            columns = next(lines, "").count("\t") + 1
        if columns > 1:
            whole = f"CharMatch compares the whole line of {named(split.input.name)}, which has {columns} columns"
            yield f"{whole}; `CharMatch:s<.*\\t><>` compares the last one alone"
    yield from _notes_on_file(split.expected)


def _notes_on_file(file: File) -> Iterator[str]:
    if not file.is_utf8:
        yield f"{named(file.name)} has bytes that are not UTF-8, and are read as U+FFFD; write it as UTF-8"
    if (twins := twins_note(file.name)) is not None:
        yield twins
    yield from (f"{named(file.name)}: {note}" for note in file.notes)


def _notes_on_output(evaluation: Evaluation, scores: list[Score]) -> Iterator[str]:
    """Yield notes on the file of the output, and on where it lies."""
    split, output = evaluation.split, evaluation.output
    yield from _notes_on_file(output.file)
    yield from _notes_on_numbers(evaluation, scores)
    if not output.file.ends_in_newline:
        yield from _notes_on_last_line(evaluation)
    if output.file.is_in_no_folder:
        return
    folder = os.path.dirname(absolute(output.path))
    ours, theirs = os.path.realpath(os.path.dirname(split.expected)), os.path.realpath(folder)
    if ours != theirs and os.path.dirname(ours) == os.path.dirname(theirs) and answers_in(folder):
        answers = f"other answers than {named(split.expected.name)}, with which it was scored"
        yield f"{named(output.path)} lies beside {answers}; was -t {visible(os.path.basename(folder))} meant?"
    how = "tuned" if "tuned" in output.parameters else "mixed" if "mix" in output.parameters else ""
    if how and _set_derived_on(output.path) == split.name:
        yield f"{named(output.path)} was {how} on these lines: on others it would score a little worse"


def kept_path(path: str) -> str:
    """Return the path of the parameters by which an output was tuned or mixed."""
    return name_of(path).removesuffix(".tsv") + KEPT_ENDING


def _set_derived_on(path: str) -> object:
    """Return the test set on which the parameters of a tuned or mixed output were found; None if it is not known."""
    with suppress(OSError, ValueError, RecursionError), open(kept_path(path), encoding="utf-8") as file:
        kept = json.load(file)
        return kept.get("test") if isinstance(kept, dict) else None
    return None


def _notes_on_numbers(evaluation: Evaluation, scores: list[Score]) -> Iterator[str]:
    """Yield how many lines have numbers that are neither probabilities nor logarithms, and advice."""
    far, lines = max((score.statistics.far_above_one, score.statistics.lines) for score in scores)
    if not far:
        return
    from geval_py.reading.wordprobs import UNKNOWN_NUMBERS, far_above_one_note, number_advice, parse_line

    advice, output = UNKNOWN_NUMBERS, evaluation.output
    # A line that no flag selects may be malformed.
    header = first_name(evaluation.split.out_header)
    with suppress(MalformedLineError), closing(read_lines(output.file, header=header)) as texts:
        samples = (one for one in map(parse_line, islice(texts, SAMPLED_LINES)) if one.is_far_above_one)
        advice = next((number_advice(one.words, one.values) for one in samples), advice)
    yield f"{named(output.path)}: {far_above_one_note(far, lines)}; {advice}"


def _notes_on_last_line(evaluation: Evaluation) -> Iterator[str]:
    """Yield a note on a last line without a line end that has fewer entries than all others."""
    with closing(read_lines(evaluation.output.file, header=first_name(evaluation.split.out_header))) as lines:
        entries = [line.count(" ") for line in lines]
    if len(entries) > 1 and entries[-1] < min(entries[:-1]):
        few = f"its last line has no line end, and fewer entries ({entries[-1] + 1}) than all others"
        yield f"{named(evaluation.output.path)}: {few}: the file may be cut off"


def _notes_on_scores(evaluation: Evaluation, scores: list[Score]) -> Iterator[str]:
    path = named(evaluation.output.path)
    missing = max((score.statistics.out_of_vocabulary, score.statistics.lines) for score in scores)
    if missing[0]:
        count, lines = missing
        where = "the vocabulary" if count < lines else "a vocabulary (name one with --vocabulary FILE)"
        yield (
            f"{count} of {counted(lines, 'expected word')} {'is' if count == 1 else 'are'} not in {where}; "
            "if the output does not list such a word, its loss is infinite"
        )
    tables = [score.statistics for score in scores if score.statistics.infinite]
    for count, lines in dict.fromkeys((table.infinite, table.lines) for table in tables):
        yield f"{path}: the loss of {count} of {lines} lines is infinite"
    for score in scores:
        nothing = score.metric.uninformed_value
        if nothing is None or score.line_numbers is not None or score.statistics.infinite:
            continue
        is_worse = (score.value > nothing) == (score.direction == "lower")
        if is_worse and not math.isclose(score.value, nothing):
            figures = f"{score.name} is {score.value:.6g}, and {nothing:.6g} for `:1` on each line"
            note = f"{path}: {figures}: no guess at all would be better"
            advice = "\n  the lines may have another order than in.tsv, or words unlike the answers: see geval check"
            yield note if score.statistics.far_above_one else note + advice
            return
