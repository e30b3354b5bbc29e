r"""Formats of outputs beside TSV, read as the lines of an output (``FORMATS``).

    {"words": ["the", "a", ""], "probabilities": [0.5, 0.25, 0.25]}    JSON lines      the:0.5 a:0.25 :0.25
    {"probabilities": {"the": 0.5, "a": 0.25, "": 0.25}}               the same, as a map

The door (:mod:`geval_py.reading.files`) converts such a file by :func:`output_lines`, and answers by
:func:`answer_lines`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from geval_py.errors import UnreadableFileError
from geval_py.reading import parquet, tool_files
from geval_py.reading.files import PARQUET_ENDINGS, File, format_ending
from geval_py.reading.rows import (
    ID,
    KEYS,
    PROBABILITIES,
    WORDS,
    Row,
    Rows,
    finite_number,
    id_text,
    json_rows,
    kind_of,
    line_of,
    quoted,
    read_csv,
    text_fault,
)
from geval_py.text import counted, some_of

Reader: TypeAlias = Callable[[File], Rows]  # yields the ids and lines of the rows of a file, and fills its notes


DEFAULT_COLUMNS = ("expected", "answer")
FORMATS: dict[str, Reader] = {  # by the endings of files
    **dict.fromkeys((".jsonl", ".ndjson", ".json", ".predictions.json"), tool_files.read_json),
    **dict.fromkeys(PARQUET_ENDINGS, parquet.read_parquet),
    ".csv": read_csv,
}


def output_lines(file: File) -> Iterator[bytes]:
    """Yield the lines of an output in one of FORMATS, in the order of the ids of its answers if both have ids.

    Without ids of the answers, a note says whether those of the file do not ascend. Raises UnreadableFileError, also
    for a missing, an unknown and a repeated id.
    """
    rows = FORMATS[format_ending(file.name)](file)
    answer_ids: list[str] = []
    if file.answers is not None and file.answers.convert is not None:
        file.answers.admitted()
        answer_ids = file.answers.ids
    if any(answer_ids):
        items = list(rows)
        if any(identity for identity, _ in items):
            lines = _in_order_of_answers(file.name, items, answer_ids)
        else:
            file.notes.append("its rows have no id, unlike the answers: they are scored in the order of the file")
            lines = (line for _, line in items)
    else:
        lines = _in_order_of_file(rows, file.notes)
    for line in lines:
        yield line.encode() + b"\n"


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
    for place, identity in enumerate(answer_ids, 1):
        if identity not in lines:
            faults.append(f"no row has the id {quoted(identity)}, of answer {place}")
    if faults:
        more = f"; {counted(len(faults) - 1, 'more id')} at fault" if len(faults) > 1 else ""
        raise UnreadableFileError(path=path, reason=faults[0] + more)
    return map(lines.__getitem__, answer_ids)


def _in_order_of_file(items: Rows, notes: list[str]) -> Iterator[str]:
    """Yield the lines; append a note if the ids are numbers, perhaps after the same letters, that do not ascend."""
    before: re.Match[str] | None = None
    is_ordered = True
    for identity, line in items:
        number = re.fullmatch(r"(\D*)([0-9]{1,18})", identity)
        if is_ordered and number and before and number[1] == before[1] and int(number[2]) < int(before[2]):
            is_ordered = False
            order = f"its ids do not ascend ({quoted(identity)} comes after {quoted(before[0])})"
            advice = "sort them as the answers are, or give the answers ids (expected.jsonl)"
            notes.append(f"{order}, and its rows are scored in the order of the file; {advice}")
        before = number
        yield line


# Answers


def answer_lines(file: File) -> Iterator[bytes]:
    """Yield the answers of JSON lines as lines, and keep their ids; raises UnreadableFileError, and TooLargeError.

    A row is an answer, in the column ``expected``, ``answer``, or the only one, or a distribution. A column ``id``
    beside it has the ids by which rows of outputs are matched.
    """
    column = None
    for row, values in json_rows(file):
        if column is None:
            column = _answer_column(row, values)
        if column and column not in values:
            raise row.error(f"it has no {quoted(column)}, the column of the answers in the first row")
        file.ids.append(id_text(values.get(ID)))
        line = _answer(row, column, values[column]) if column else line_of(row, values)
        yield line.encode() + b"\n"


def _answer_column(row: Row, values: Mapping[str, Any]) -> str:
    """Return the column with the answers; "" if the rows are distributions. Raises UnreadableFileError."""
    names = [name for name in values if name != ID]
    if {WORDS, PROBABILITIES} <= {*names} <= {*KEYS}:
        return ""
    usual = [name for name in DEFAULT_COLUMNS if name in names] if len(names) != 1 else names
    if len(usual) == 1:
        return usual[0]
    columns = some_of(map(quoted, values)) or "none"
    advice = "keep one of expected and answer" if usual else "name it expected, or keep it alone"
    raise row.error(f"which column has the answers? there are {columns}; {advice}")


def _answer(row: Row, column: str, value: Any) -> str:
    if isinstance(value, float):
        return str(finite_number(value, row, column))
    if type(value) is int:
        return str(value)
    if not isinstance(value, str):
        raise row.error(f"a text or a number is wanted, not {kind_of(value)}", column)
    if fault := text_fault(value):
        raise row.error(fault, column)
    return value
