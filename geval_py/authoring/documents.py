r"""The texts that a challenge is cut from.

    text     = a file whose content is one document, its name without endings the id
    JSON     = a line a document, an object: {"id": …, "text": …, "year": …}         (.jsonl, .ndjson, .json)
    TSV      = a line with the names of columns, then a line a document; ``\n`` in a text is a line end  (.tsv)

Each may be compressed. A folder stands for all files in it and below it, but hidden ones. Other columns than id and
text go with the document. Texts are UTF-8; carriage returns and a byte order mark are dropped.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from geval_py.errors import EmptyFileError, MissingFileError, UnreadableFileError, UsageError
from geval_py.reading.compression import COMPRESSED_ENDINGS
from geval_py.reading.lines import LineReader
from geval_py.text import named, natural_order, visible

JSON_ENDINGS = (".jsonl", ".ndjson", ".json")
ID, TEXT = "id", "text"
FILE_ID = "FileId"  # the column of the ids of plain files


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One text, and the columns that go with it, the id first; ``path`` is where it is from."""

    id: str
    text: str
    columns: Mapping[str, str] = field(default_factory=dict)
    path: str = ""


def read_documents(paths: Iterable[str], *, id: str = ID, text: str = TEXT) -> list[Document]:
    """Read documents from files and folders; ``id`` and ``text`` name the columns of JSON and TSV.

    All have the same columns, "" where one lacks one. Raises MissingFileError, UnreadableFileError (also for what is
    not UTF-8, with its line, and for a malformed line), EmptyFileError and UsageError (an id given twice).
    """
    documents = [document for path in paths for document in _read(path, id, text)]
    names = list(dict.fromkeys(name for document in documents for name in document.columns))
    seen: dict[str, str] = {}
    for document in documents:
        if document.id in seen:
            places = " and ".join(dict.fromkeys(map(named, (seen[document.id], document.path))))
            raise UsageError(message=f"two documents have the id {visible(document.id)}\n  in {places}")
        seen[document.id] = document.path
    return [
        Document(id=d.id, text=d.text, columns={name: d.columns.get(name, "") for name in names}, path=d.path)
        for d in documents
    ]


def _read(path: str, id: str, text: str) -> Iterator[Document]:
    if os.path.isdir(path):
        for file, name in _files_below(path):
            yield from _read_file(file, name, id, text)
    elif not os.path.exists(path):
        raise MissingFileError(what="No file with a text", path=path)
    else:
        yield from _read_file(path, os.path.basename(path), id, text)


def _files_below(folder: str) -> Iterator[tuple[str, str]]:
    """Give the files of a folder and of those below it, in natural order, each with its path from there."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted((name for name in folders if not name.startswith(".")), key=natural_order)
        for name in sorted(names, key=natural_order):
            if not name.startswith("."):
                path = os.path.join(place, name)
                yield path, os.path.relpath(path, folder).replace(os.sep, "/")


def _read_file(path: str, name: str, id: str, text: str) -> Iterator[Document]:
    plain = next((name.removesuffix(end) for end in COMPRESSED_ENDINGS if name.endswith(end)), name)
    if plain.endswith(JSON_ENDINGS):
        yield from _read_json(path, id, text)
    elif plain.endswith(".tsv"):
        yield from _read_tsv(path, id, text)
    else:
        stem = os.path.splitext(plain)[0]
        content = "\n".join(_lines(path))
        yield Document(id=stem, text=content, columns={FILE_ID: _cell(stem)}, path=path)


def _lines(path: str) -> Iterator[str]:
    """Give the lines of a file, which has to be UTF-8."""
    number = 0
    with LineReader(path) as reader:
        while block := reader.block():
            try:
                lines = block.decode().replace("\r", "").split("\n")[:-1]
            except UnicodeDecodeError as error:
                line = number + block.count(b"\n", 0, error.start) + 1
                raise _unreadable(path, line, f"it is not UTF-8 (byte 0x{block[error.start]:02X})") from error
            yield from lines
            number += len(lines)
    if not number:
        raise EmptyFileError(what="text", path=path)


def _unreadable(path: str, line: int, reason: str) -> UnreadableFileError:
    return UnreadableFileError(path=path, reason=f"{reason}, line {line}")


def _read_json(path: str, id: str, text: str) -> Iterator[Document]:
    import json

    for number, line in enumerate(_lines(path), 1):
        if not line.strip():
            continue
        try:
            values = json.loads(line)
        except ValueError as error:
            raise _unreadable(path, number, f"a line is no JSON ({error})") from error
        if not isinstance(values, dict):
            raise _unreadable(path, number, "a line is no object with a text")
        yield _document({str(name): _written(value) for name, value in values.items()}, id, text, path, number)


def _written(value: object) -> str:
    """Write a value of JSON as a cell: a string as it is, null as nothing."""
    import json

    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _read_tsv(path: str, id: str, text: str) -> Iterator[Document]:
    lines = _lines(path)
    names = next(lines).split("\t")
    for number, line in enumerate(lines, 2):
        cells = line.split("\t")
        if len(cells) != len(names):
            raise _unreadable(path, number, f"{len(cells)} columns, where the first line names {len(names)}")
        values = dict(zip(names, cells, strict=True))
        if text in values:
            values[text] = values[text].replace("\\n", "\n")
        yield _document(values, id, text, path, number)


def _document(values: Mapping[str, str], id: str, text: str, path: str, line: int) -> Document:
    missing = [name for name in (id, text) if not values.get(name)]
    if missing:
        there = visible(", ".join(values))
        raise _unreadable(
            path, line, f"there is no {visible(missing[0])} (there are {there}; --id and --text name them)"
        )
    others = {name: _cell(value) for name, value in values.items() if name not in (id, text)}
    return Document(id=values[id], text=values[text].replace("\r", ""), columns={id: values[id]} | others, path=path)


def _cell(text: str) -> str:
    """Write a text as a cell of a TSV: white space in it is a space each."""
    return "".join(" " if character in "\t\n\r" else character for character in text)


def column_names(documents: Sequence[Document]) -> tuple[str, ...]:
    """Give the names of the columns that go with some documents, which are those of each."""
    return tuple(documents[0].columns) if documents else ()
