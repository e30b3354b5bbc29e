"""Expected answers as JSON lines: a row is an answer, in the column ``expected``, ``answer``, or the only one.

A column ``id`` beside it has the ids by which rows of outputs are matched. A row may also be a distribution.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from geval_py.reading import rows
from geval_py.reading.files import File
from geval_py.reading.rows import ID, KEYS, PROBABILITIES, WORDS, Row, id_text, quoted
from geval_py.text import some_of

DEFAULT_COLUMNS = ("expected", "answer")


def read_answers(file: File) -> rows.Rows:
    """Yield the ids and answers of JSON lines.

    Raises UnreadableFileError, and TooLargeError.
    """
    column = None
    for row, values in rows.json_rows(file):
        if column is None:
            column = _column(row, values)
        if column and column not in values:
            raise row.error(f"it has no {quoted(column)}, the column of the answers in the first row")
        yield id_text(values.get(ID)), _answer(row, column, values[column]) if column else rows.line_of(row, values)


def _column(row: Row, values: Mapping[str, Any]) -> str:
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
        return str(rows.finite_number(value, row, column))
    if type(value) is int:
        return str(value)
    if not isinstance(value, str):
        raise row.error(f"a text or a number is wanted, not {rows.kind_of(value)}", column)
    if (fault := rows.text_fault(value)) is not None:
        raise row.error(fault, column)
    return value
