"""Expected answers in other formats than TSV: JSON lines, Parquet, and the folders of Hugging Face's ``datasets``.

A row is a line, and one column has the answers: the only one, or ``expected`` or ``answer``. Another one is named
after the path: ``expected.parquet#word``. The folders are read as Arrow's streams, without importing datasets.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from stat import S_ISREG
from typing import Any, TypeAlias, TypeVar

from geval_py.errors import UnreadableFileError
from geval_py.reading import parquet, rows
from geval_py.reading.files import PARQUET_ENDINGS, name_of, naming, parts_of
from geval_py.reading.rows import ID, KEYS, PROBABILITIES, WORDS
from geval_py.text import named, some_of

Typed = TypeVar("Typed")
Answer: TypeAlias = tuple[rows.Row, str, Any]  # a row, its column, and the value there

DEFAULT_COLUMNS = ("expected", "answer")
STATE_FILE, INFO_FILE, SPLITS_FILE = "state.json", "dataset_info.json", "dataset_dict.json"
DATA_FILES = "_data_files"  # of state.json
METADATA_KEY = b"huggingface"  # of a Parquet file: what INFO_FILE has, as datasets writes it
MAX_INFO_BYTES = 1 << 24


def files_of(path: str) -> tuple[str, ...]:
    """Return the paths of the files that answers consist of.

    Those of a dataset are state.json, dataset_info.json and Arrow's streams. Raises UnreadableFileError for a folder
    that is no dataset, and for files that are not regular or lie elsewhere.
    """
    if not os.path.isdir(path):
        return parts_of(path)
    return tuple(_file_in(path, name) for name in (STATE_FILE, INFO_FILE, *_streams(path)))


# Reading answers


def read_answers(path: str, column: str = "", *, max_bytes: int | None = None) -> Iterator[str]:
    """Yield the answers of a file or folder as lines.

    Raises UnreadableFileError, and TooLargeError for a file that unpacks to more than ``max_bytes``.
    """
    for row, name, value in _answers(path, column, max_bytes):
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield str(rows.finite_number(value, row, name) if isinstance(value, float) else value)
            continue
        if not isinstance(value, str):
            raise row.error(f"a text or a number is wanted, not {rows.kind_of(value)}", name)
        if "\n" in value or "\r" in value:
            raise row.error(f"the answer {rows.quoted(value)} has a line end in it", name)
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise row.error(f"the answer cannot be written as UTF-8: {error.reason}", name) from None
        yield value


def _answers(path: str, column: str, max_bytes: int | None) -> Iterator[Answer]:
    """Yield each row with its answer, a text or a number; whole rows if they are distributions."""

    def choose(names: Sequence[str]) -> str:
        """Choose the column with the answers; "" if the columns are those of an output."""
        is_output = not column and {WORDS, PROBABILITIES} <= {*names} <= {*KEYS}
        return "" if is_output else _choose_column(path, names, column)

    if os.path.isdir(path):
        yield from _dataset_answers(path, column)
    elif name_of(path).endswith(PARQUET_ENDINGS):
        with parquet.opened_columns(path, choose, max_bytes) as (names, batches, metadata):
            if len(names) > 1:
                for number, line in enumerate(parquet.lines_of_batches(path, batches), 1):
                    yield rows.Row(path, number), PROBABILITIES, line
                return
            (name,) = names
            info: Any = _json_map(metadata.get(METADATA_KEY, b""))
            for key in ("info", "features", name):
                info = info.get(key) if isinstance(info, dict) else None
            place = f"{METADATA_KEY.decode()}, features, {name}"
            classes = _class_names(info, path, place) if isinstance(info, dict) else []
            yield from _column_values(path, name, batches, classes)
    else:
        chosen = None
        for row, values in rows.json_rows(path, max_bytes):
            if chosen is None:
                chosen = choose(list(values))
            elif chosen and chosen not in values:
                reason = f"it has no {rows.quoted(chosen)}, the column of the answers in the first row"
                raise row.error(reason)
            yield row, chosen, values[chosen] if chosen else rows.line_of(row, values)


def _choose_column(path: str, names: Sequence[str], column: str) -> str:
    """Return the column that is asked for, or the one with the answers; raises UnreadableFileError."""
    if column:
        if column in names:
            return column
        reason = f"it has no column {rows.quoted(column)}; there are {some_of(map(rows.quoted, names))}"
        raise UnreadableFileError(path=path, reason=reason)
    chosen = [name for name in DEFAULT_COLUMNS if name in names] or list(names)
    if len(chosen) == 1 or chosen[0] in DEFAULT_COLUMNS[:1]:
        return chosen[0]
    columns = some_of(map(rows.quoted, names)) or "none"
    reason = f"which column has the answers? there are {columns}; write {os.path.basename(path)}#COLUMN"
    raise UnreadableFileError(path=path, reason=reason)


def _column_values(path: str, column: str, batches: Iterable[Any], classes: Sequence[str]) -> Iterator[Answer]:
    """Yield the values of batches of one column; numbers stand for ``classes``, if there are any."""
    columns = (batch.column(0) for batch in batches)
    for number, value in enumerate(parquet.python_values(path, columns), 1):
        row = rows.Row(path, number)
        if classes and isinstance(value, int):
            if not 0 <= value < len(classes):
                raise row.error(f"there is no class {value}; there are {len(classes)}", column)
            value = classes[value]
        yield row, column, value


# Outputs whose lines have the ids of answers


def has_ids(path: str) -> bool:
    """Whether the rows of answers have a column with the name id."""
    try:
        return next(read_answers(path, ID), None) is not None
    except UnreadableFileError:
        return False


def read_by_ids(path: str, expected: str, *, max_bytes: int | None = None) -> rows.Lines:
    """Yield the lines of a CSV in the order of the answers' ids or, if it has other ids, in its own."""
    lines, ids = list(rows.csv_lines(path, max_bytes)), list(read_answers(expected, ID))
    by_id = dict(lines)
    is_ordered = len(by_id) == len(ids) and by_id.keys() == set(ids)
    yield from map(by_id.__getitem__, ids) if is_ordered else (line for _, line in lines)


def notes_on_ids(path: str, expected: str) -> Iterator[str]:
    """Yield what a user should know of a CSV for answers with ids: whether it has others."""
    ids = [identity for identity, _ in rows.csv_lines(path)]
    if any(ids) and sorted(ids) != sorted(read_answers(expected, ID)):
        yield f"its ids are not those of {named(expected)}, and its lines are scored in the order of the file"


# Folders that Dataset.save_to_disk wrote


def _dataset_answers(folder: str, column: str) -> Iterator[Answer]:
    """Read Arrow's streams in the order that state.json names them.

    The numbers of a ClassLabel become the names of the classes.
    """
    pa = parquet.import_pyarrow()
    streams = _streams(folder)
    info = os.path.join(folder, INFO_FILE)
    features = _typed(_json_file(folder, INFO_FILE).get("features"), dict, info, "features")
    name = _choose_column(folder, list(features), column)
    feature = _typed(features[name], dict, info, f"features, {name}")

    def batches() -> Iterator[Any]:
        for stream_name in streams:
            path = _file_in(folder, stream_name)
            with (
                naming(path),
                open(path, "rb") as raw,
                parquet.pyarrow_errors(path, "no well-formed stream of Arrow"),
            ):
                stream = pa.ipc.open_stream(raw)
                parquet.check_column(path, stream.schema, name)
                for batch in stream:
                    batch.validate(full=True)
                    yield batch.select([name])

    yield from _column_values(folder, name, batches(), _class_names(feature, info, f"features, {name}"))


def _class_names(feature: Mapping[str, Any], path: str, place: str) -> list[str]:
    """Return the names of the classes of a ClassLabel; none for another feature. Raises UnreadableFileError."""
    if feature.get("_type") != "ClassLabel":
        return []
    place = f"{place}, names"
    return [_typed(name, str, path, place) for name in _typed(feature.get("names"), list, path, place)]


def _streams(folder: str) -> list[str]:
    """Return the names of a dataset's files with rows, in order; raises UnreadableFileError."""
    place = os.path.join(folder, STATE_FILE)
    if not os.path.exists(place):
        place = os.path.join(folder, SPLITS_FILE)
        splits = _typed(_json_file(folder, SPLITS_FILE).get("splits"), list, place, "splits")
        quoted = some_of(map(rows.quoted, splits))
        reason = f"it is a dataset of several splits: {quoted}; name the folder of one of them"
        raise UnreadableFileError(path=folder, reason=reason)
    state = _json_file(folder, STATE_FILE)
    files = _typed(state.get(DATA_FILES), list, place, DATA_FILES)
    names = [_typed(_typed(one, dict, place, DATA_FILES).get("filename"), str, place, "filename") for one in files]
    if not names or state.get("_indices_data_files") or any(os.path.basename(name) != name for name in names):
        raise UnreadableFileError(path=folder, reason=f"{STATE_FILE} names no files of this folder alone")
    return names


def _typed(value: Any, kind: type[Typed], path: str, key: str) -> Typed:
    """Return a value of JSON that is of a type; raises UnreadableFileError for another."""
    if not isinstance(value, kind):
        expected = rows.kind_of(kind())
        raise UnreadableFileError(path=path, reason=f"{key}: {expected} is wanted, not {rows.kind_of(value)}")
    return value


def _json_file(folder: str, name: str) -> dict[str, Any]:
    path = _file_in(folder, name)
    with naming(path), open(path, "rb") as file:
        value = _json_map(file.read(MAX_INFO_BYTES + 1))
    if value is None:
        raise UnreadableFileError(path=path, reason="it is not JSON as datasets writes it")
    return value


def _json_map(data: bytes) -> dict[str, Any] | None:
    """Parse a map; None for anything else."""
    try:
        value = json.loads(data) if len(data) <= MAX_INFO_BYTES else None
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _file_in(folder: str, name: str) -> str:
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
