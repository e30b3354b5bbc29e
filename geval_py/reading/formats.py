r"""Formats of outputs beside TSV, read as the lines of an output (``FORMATS``).

    {"words": ["the", "a", ""], "probabilities": [0.5, 0.25, 0.25]}    JSON lines      the:0.5 a:0.25 :0.25
    {"probabilities": {"the": 0.5, "a": 0.25, "": 0.25}}               the same, as a map

The door (:mod:`geval_py.reading.files`) converts such a file by :func:`output_lines`, and answers by
:func:`answer_lines`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from geval_py.errors import UnreadableFileError
from geval_py.reading import answers, parquet, rows, tool_files
from geval_py.reading.files import PARQUET_ENDINGS, File, format_ending
from geval_py.reading.rows import Rows, quoted
from geval_py.tables.numbers import counted

ANSWERS_ALONE = tool_files.ANSWERS_ALONE

# Yields the ids and lines of the rows of a file; appends to ``notes`` what a user should know of it. Raises
# TooLargeError for a file that unpacks to more than ``max_bytes``.
Reader: TypeAlias = Callable[[str, list[str], int | None], Rows]


FORMATS: dict[str, Reader] = {  # by the endings of files
    **dict.fromkeys((".jsonl", ".ndjson", ".json", ".predictions.json"), tool_files.read_json),
    **dict.fromkeys(PARQUET_ENDINGS, parquet.read_parquet),
    ".csv": rows.read_csv,
}


def converted(path: str, answer_ids: Sequence[str], notes: list[str], max_bytes: int | None = None) -> Iterator[str]:
    """Yield the lines of a file in one of FORMATS, in the order of the ids of the answers if both have ids.

    Without ids of the answers, a note says whether those of the file do not ascend. Raises UnreadableFileError, also
    for a missing, an unknown and a repeated id.
    """
    read_rows = FORMATS[format_ending(path)](path, notes, max_bytes)
    if not any(answer_ids):
        return _in_order_of_file(read_rows, notes)
    items = list(read_rows)
    if not any(identity for identity, _ in items):
        notes.append("its rows have no id, unlike the answers: they are scored in the order of the file")
        return (line for _, line in items)
    return _in_order_of_answers(path, items, answer_ids)


def _in_order_of_answers(path: str, items: Sequence[tuple[str, str]], answer_ids: Sequence[str]) -> Iterator[str]:
    known, lines = set(answer_ids), dict[str, str]()
    if "" in known or len(known) < len(answer_ids):
        fault = "an answer has no id" if "" in known else "two answers have the same id"
        raise UnreadableFileError(path=path, reason=f"its rows cannot be matched: {fault}")
    faults: list[str] = []
    for place, (identity, line) in enumerate(items, 1):
        if not identity:
            faults.append(f"item {place} has no id, unlike others")
        elif identity in lines or identity not in known:
            fault = "a row before it has, too" if identity in lines else "no answer has"
            faults.append(f"item {place} has the id {quoted(identity)}, which {fault}")
        lines[identity] = line
    missing = ((place, identity) for place, identity in enumerate(answer_ids, 1) if identity not in lines)
    faults += [f"no row has the id {quoted(identity)}, of answer {place}" for place, identity in missing]
    if faults:
        more = f"; {counted(len(faults) - 1, 'more id')} at fault" if len(faults) > 1 else ""
        raise UnreadableFileError(path=path, reason=faults[0] + more)
    return map(lines.__getitem__, answer_ids)


def _in_order_of_file(items: Rows, notes: list[str]) -> Iterator[str]:
    """Yield the lines; append a note if the ids are numbers, perhaps after the same letters, that do not ascend."""
    before: tuple[str, str, int] | None = ("", "", -1)
    for identity, line in items:
        if before is not None:
            number = re.fullmatch(r"(\D*)([0-9]{1,18})", identity)
            after = (identity, number[1], int(number[2])) if number else None
            if after and after[1] == before[1] and after[2] < before[2]:
                order = f"its ids do not ascend ({quoted(identity)} comes after {quoted(before[0])})"
                notes.append(
                    f"{order}, and its rows are scored in the order of the file; "
                    "sort them as the answers are, or give the answers ids (expected.jsonl)"
                )
                after = None
            before = after
        yield line


def output_lines(file: File) -> Iterator[bytes]:
    """Yield the lines of an output in another format, in the order of the ids of its answers if both have ids."""
    answer_ids: list[str] = []
    if file.answers is not None and file.answers.convert is not None:
        file.answers.admitted()
        answer_ids = file.answers.ids
    for line in converted(file.name, answer_ids, file.notes, file.max_bytes):
        file.lists_answers_alone = file.lists_answers_alone or ANSWERS_ALONE in file.notes
        yield line.encode() + b"\n"
    if file.lists_answers_alone:
        file.notes.remove(ANSWERS_ALONE)


def answer_lines(file: File) -> Iterator[bytes]:
    """Yield the lines of answers in JSON lines, and keep their ids."""
    for identity, line in answers.read_answers(file.name, file.notes, file.max_bytes):
        file.ids.append(identity)
        yield line.encode() + b"\n"
