"""Answers in JSON lines, in Parquet and in the folders of Hugging Face's ``datasets``, read as lines.

The folders are read as Arrow's streams, without importing datasets.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from stat import S_ISREG
from typing import TYPE_CHECKING, Any

from geval_py.errors import UnreadableFileError
from geval_py.reading import rows
from geval_py.reading.parquet import (
    ROWS_OF_TEXT,
    check_column,
    import_pyarrow,
    lines_of_batches,
    opened_columns,
    pyarrow_errors,
)
from geval_py.reading.rows import KEYS, PROBABILITIES, WORDS
from geval_py.reading.sources import name_of, naming
from geval_py.text import some_of

if TYPE_CHECKING:
    from typing import TypeAlias, TypeVar

    Of = TypeVar("Of")
    Answer: TypeAlias = tuple[rows.Row, str, Any]  # a row, its column, and the value there

DEFAULT_COLUMNS = ("expected", "answer")
STATE_FILE, INFO_FILE, SPLITS_FILE = "state.json", "dataset_info.json", "dataset_dict.json"
DATA_FILES = "_data_files"  # of state.json
METADATA_KEY = b"huggingface"  # of a Parquet file: what INFO_FILE has, as datasets writes it
CHARACTERS_AT_ONCE = 1 << 16
MOST_INFO_BYTES = 1 << 24


def encoded_answers(path: str, column: str = "", *, max_bytes: int | None = None) -> Iterator[bytes]:
    """Yield the answers of a file or folder as lines, several in a piece.

    Raises UnreadableFileError, and TooLargeError for compressed JSON lines that unpack to more than ``max_bytes``.
    """
    lines: list[str] = []
    size = 0
    for row, name, value in _answers(path, column, max_bytes):
        line = f"{_line(row, name, value)}\n"
        if lines and size + len(line) > CHARACTERS_AT_ONCE:
            yield "".join(lines).encode()
            lines, size = [], 0
        lines.append(line)
        size += len(line)
    yield "".join(lines).encode()


def _answers(path: str, column: str, max_bytes: int | None) -> Iterator[Answer]:
    """Yield each row with its answer."""
    if os.path.isdir(path):
        yield from _of_dataset(path, column)
    elif name_of(path).endswith(".parquet"):
        yield from _of_parquet(path, column)
    else:
        name = None
        for row, values in rows.json_rows(path, max_bytes):
            if name is None:
                name = _column_or_rows(path, list(values), column)
            elif name and name not in values:
                raise row.error("", f"it has no {rows.quoted(name)}, the column of the answers in the first row")
            yield row, name, values[name] if name else rows.line_of(row, values)


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


def _column_or_rows(path: str, names: Sequence[str], column: str) -> str:
    """Choose the column with the answers, or "" if they are distributions, as an output has them."""
    are_rows = not column and {WORDS, PROBABILITIES} <= {*names} <= {*KEYS}
    return "" if are_rows else _column(path, names, column)


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
        for start in range(0, batch.num_rows, ROWS_OF_TEXT):
            with pyarrow_errors(path):
                values = batch.column(0).slice(start, ROWS_OF_TEXT).to_pylist()
            for value in values:
                number += 1
                row = rows.Row(path=path, number=number)
                if names and isinstance(value, int):
                    if not 0 <= value < len(names):
                        raise row.error(column, f"there is no class {value}; there are {len(names)}")
                    value = names[value]
                yield row, column, value


def _of_parquet(path: str, column: str) -> Iterator[Answer]:
    with opened_columns(path, lambda names: _column_or_rows(path, names, column)) as columns:
        name = columns.names[0]
        if name != WORDS or len(columns.names) == 1:
            yield from _numbered(path, name, columns.batches, _classes_in_metadata(path, columns.metadata, name))
            return
        for number, line in enumerate(lines_of_batches(path, columns.batches), 1):
            yield rows.Row(path=path, number=number), PROBABILITIES, line


def _classes_in_metadata(path: str, metadata: Mapping[bytes, bytes], column: str) -> list[str]:
    """Return the names of the classes if a column is a ClassLabel, as datasets notes it in a Parquet file."""
    try:
        info = json.loads(metadata.get(METADATA_KEY, b"{}"))
    except (ValueError, RecursionError):
        return []
    for key in ("info", "features", column):
        info = info.get(key) if isinstance(info, dict) else None
    return _classes(info, path, f"{METADATA_KEY.decode()}, features, {column}") if isinstance(info, dict) else []


# Folders that Dataset.save_to_disk wrote


def files_of_dataset(folder: str) -> tuple[str, ...]:
    """Return the paths of the files that a dataset consists of: state.json, dataset_info.json and Arrow's streams.

    Raises UnreadableFileError for a folder that is no dataset, and for files that are not regular or lie elsewhere.
    """
    return tuple(_file(folder, name) for name in (STATE_FILE, INFO_FILE, *_streams(folder)))


def _of_dataset(folder: str, column: str) -> Iterator[Answer]:
    """Read Arrow's streams in the order that state.json names them.

    The numbers of a ClassLabel become the names of the classes.
    """
    import_pyarrow()
    streams = _streams(folder)
    info = os.path.join(folder, INFO_FILE)
    features = _typed(_object(folder, INFO_FILE).get("features"), dict, info, "features")
    name = _column(folder, list(features), column)
    feature = _typed(features[name], dict, info, f"features, {name}")
    classes = _classes(feature, info, f"features, {name}")
    batches = (batch for stream in streams for batch in _batches(_file(folder, stream), name))
    yield from _numbered(folder, name, batches, classes)


def _classes(feature: Mapping[str, Any], path: str, place: str) -> list[str]:
    """Return the names of the classes of a ClassLabel; none for another feature. Raises UnreadableFileError."""
    if feature.get("_type") != "ClassLabel":
        return []
    place = f"{place}, names"
    return [_typed(one, str, path, place) for one in _typed(feature.get("names"), list, path, place)]


def _streams(folder: str) -> list[str]:
    """Return the names of a dataset's files with rows, in order; raises UnreadableFileError."""
    if not os.path.exists(os.path.join(folder, STATE_FILE)):
        place = os.path.join(folder, SPLITS_FILE)
        splits = _typed(_object(folder, SPLITS_FILE).get("splits"), list, place, "splits")
        found = some_of(map(rows.quoted, splits))
        reason = f"it is a dataset of several splits: {found}; name the folder of one of them"
        raise UnreadableFileError(path=folder, reason=reason)
    state, place = _object(folder, STATE_FILE), os.path.join(folder, STATE_FILE)
    files = _typed(state.get(DATA_FILES), list, place, DATA_FILES)
    names = [_typed(_typed(one, dict, place, DATA_FILES).get("filename"), str, place, "filename") for one in files]
    if not names or state.get("_indices_data_files") or any(os.path.basename(name) != name for name in names):
        raise UnreadableFileError(path=folder, reason=f"{STATE_FILE} names no files of this folder alone")
    return names


def _typed(value: Any, kind: type[Of], path: str, key: str) -> Of:
    """Return a value of JSON that is of a type; raises UnreadableFileError for another."""
    if not isinstance(value, kind):
        wanted = rows.kind_of(kind())
        raise UnreadableFileError(path=path, reason=f"{key}: {wanted} is wanted, not {rows.kind_of(value)}")
    return value


def _object(folder: str, name: str) -> dict[str, Any]:
    path = _file(folder, name)
    with naming(path), open(path, "rb") as file:
        data = file.read(MOST_INFO_BYTES + 1)
    try:
        found = json.loads(data) if len(data) <= MOST_INFO_BYTES else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise UnreadableFileError(path=path, reason="it is not JSON as datasets writes it")
    return found


def _file(folder: str, name: str) -> str:
    """Return the path of a file in a folder; raises UnreadableFileError unless it is a regular file there."""
    path = os.path.join(folder, name)
    with naming(path):
        is_regular = S_ISREG(os.stat(path).st_mode)
        real = os.path.realpath(path)
    if not is_regular:
        raise UnreadableFileError(path=path, reason="it is not a regular file")
    if os.path.dirname(real) != os.path.realpath(folder):
        raise UnreadableFileError(path=path, reason="it is a link to a file that is not in this folder")
    return path


def _batches(path: str, name: str) -> Iterator[Any]:
    """Yield the batches of a file with one of Arrow's streams, of one column alone."""
    with naming(path), open(path, "rb") as raw, pyarrow_errors(path, "no well-formed stream of Arrow"):
        stream = import_pyarrow().ipc.open_stream(raw)
        check_column(path, stream.schema, name)
        while True:
            try:
                batch = stream.read_next_batch()
            except StopIteration:
                break
            batch.validate(full=True)
            yield batch.select([name])
