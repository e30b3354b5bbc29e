"""Answers in JSON lines, in Parquet and in the folders of Hugging Face's ``datasets``, read as lines.

The folders are read as Arrow's streams, without importing datasets.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from geval_py.errors import UnreadableFileError
from geval_py.reading import rows
from geval_py.reading.sources import name_of, naming
from geval_py.text import some_of

if TYPE_CHECKING:
    from typing import TypeAlias

    Answer: TypeAlias = tuple[rows.Row, str, Any]  # a row, its column, and the value there

DEFAULT_COLUMNS = ("expected", "answer")
STATE_FILE, INFO_FILE, SPLITS_FILE = "state.json", "dataset_info.json", "dataset_dict.json"
ROWS_AT_ONCE, CHARACTERS_AT_ONCE = 4096, 1 << 16
MOST_INFO_BYTES = 1 << 24


def encoded_answers(path: str, column: str) -> Iterator[bytes]:
    """Yield the answers of a file or folder as lines, several in a piece; raises UnreadableFileError."""
    lines: list[str] = []
    size = 0
    for row, name, value in _answers(path, column):
        line = f"{_line(row, name, value)}\n"
        if lines and size + len(line) > CHARACTERS_AT_ONCE:
            yield "".join(lines).encode()
            lines, size = [], 0
        lines.append(line)
        size += len(line)
    yield "".join(lines).encode()


def _answers(path: str, column: str) -> Iterator[Answer]:
    """Yield each row with its answer."""
    if os.path.isdir(path):
        yield from _of_dataset(path, column)
    elif name_of(path).endswith(".parquet"):
        yield from _of_parquet(path, column)
    else:
        name = None
        for row, values in rows.json_rows(path):
            if name is None:
                name = _column(path, list(values), column)
            elif name not in values:
                raise row.error("", f"it has no {rows.quoted(name)}, the column of the answers in the first row")
            yield row, name, values[name]


def _line(row: rows.Row, column: str, value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(rows.finite_number(value, row, column) if isinstance(value, float) else value)
    if not isinstance(value, str):
        raise row.error(column, f"a text or a number is wanted, not {rows.kind_of(value)}")
    if "\n" in value or "\r" in value:
        raise row.error(column, f"the answer {rows.quoted(value)} has a line end in it")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise row.error(column, f"the answer cannot be written as UTF-8: {error.reason}") from None
    return value


def _column(path: str, names: Sequence[str], column: str) -> str:
    """Choose the column with the answers; raises UnreadableFileError."""
    if column:
        if column in names:
            return column
        reason = f"it has no column {rows.quoted(column)}; there are {some_of(map(rows.quoted, names))}"
        raise UnreadableFileError(path=path, reason=reason)
    chosen = [name for name in DEFAULT_COLUMNS if name in names] or list(names)
    if len(chosen) == 1 or chosen[0] in DEFAULT_COLUMNS[:1]:
        return chosen[0]
    there = some_of(map(rows.quoted, names)) or "none"
    reason = f"which column has the answers? there are {there}; write {os.path.basename(path)}#COLUMN"
    raise UnreadableFileError(path=path, reason=reason)


def _numbered(path: str, column: str, batches: Iterable[Any], names: Sequence[str] = ()) -> Iterator[Answer]:
    """Yield the rows of batches of one column; numbers stand for ``names``, if there are any."""
    number = 0
    for batch in batches:
        for start in range(0, batch.num_rows, ROWS_AT_ONCE):
            for value in batch.slice(start, ROWS_AT_ONCE).column(0).to_pylist():
                number += 1
                row = rows.Row(path=path, number=number)
                if names and isinstance(value, int):
                    if not 0 <= value < len(names):
                        raise row.error(column, f"there is no class {value}; there are {len(names)}")
                    value = names[value]
                yield row, column, value


def _of_parquet(path: str, column: str) -> Iterator[Answer]:
    from geval_py.reading.parquet import opened, reading

    name, number = "", 0

    def choose(names: list[str]) -> str:
        nonlocal name
        name = _column(path, names, column)
        return name

    with opened(path, choose) as file:
        for batch in file.batches():
            values = batch.column(0)
            with reading(path):  # a text that many rows have is one object for all of them
                texts = values.dictionary.to_pylist() if hasattr(values, "dictionary") else None
            for start in range(0, batch.num_rows, ROWS_AT_ONCE):
                with reading(path):
                    some = values.slice(start, ROWS_AT_ONCE)
                    found = (some if texts is None else some.indices).to_pylist()
                for value in found:
                    number += 1
                    yield rows.Row(path=path, number=number), name, _of_code(texts, value)


def _of_code(texts: Sequence[Any] | None, value: Any) -> Any:
    return value if texts is None or value is None else texts[value]


def _of_dataset(folder: str, column: str) -> Iterator[Answer]:
    """Read what ``Dataset.save_to_disk`` wrote: Arrow's streams, in the order that state.json names them.

    The numbers of a ClassLabel become the names of the classes.
    """
    from geval_py.reading.parquet import pyarrow, reading

    pa = pyarrow()
    if not os.path.exists(os.path.join(folder, STATE_FILE)):
        found = some_of(rows.quoted(name) for name in _object(folder, SPLITS_FILE).get("splits", ()))
        reason = f"it is a dataset of several splits: {found}; name the folder of one of them"
        raise UnreadableFileError(path=folder, reason=reason)
    state, info = _object(folder, STATE_FILE), _object(folder, INFO_FILE)
    files = [str(one.get("filename")) for one in state.get("_data_files") or () if isinstance(one, dict)]
    if state.get("_indices_data_files") or any(os.path.basename(file) != file for file in files):
        raise UnreadableFileError(path=folder, reason=f"{STATE_FILE} names no files of this folder alone")
    features = info.get("features")
    name = _column(folder, list(features) if isinstance(features, dict) else [], column)
    feature = features[name] if isinstance(features, dict) else {}
    is_class = isinstance(feature, dict) and feature.get("_type") == "ClassLabel"
    classes = list(map(str, feature.get("names") or ())) if is_class else []

    def batches() -> Iterator[Any]:
        for file in files:
            place = os.path.join(folder, file)
            with naming(place), open(place, "rb") as raw, reading(place):
                stream = pa.ipc.open_stream(raw)
                while True:
                    try:
                        batch = stream.read_next_batch()
                    except StopIteration:
                        break
                    batch.validate(full=True)
                    yield batch.select([name])

    yield from _numbered(folder, name, batches(), classes)


def _object(folder: str, name: str) -> dict[str, Any]:
    path = os.path.join(folder, name)
    with naming(path), open(path, "rb") as file:
        data = file.read(MOST_INFO_BYTES + 1)
    try:
        found = json.loads(data) if len(data) <= MOST_INFO_BYTES else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise UnreadableFileError(path=path, reason="it is not JSON as datasets writes it")
    return found
