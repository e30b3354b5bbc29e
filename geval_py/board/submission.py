"""What a board makes of a submission: its state, its problems and its scores.

After the values, how they are written: line statistics as bytes, for the database, and all that a board and its child
processes tell each other as JSON.
"""

from __future__ import annotations

import json
import os
from array import array
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from geval_py.board.intake.sources import Parcel
from geval_py.errors import FailedError, RejectedError
from geval_py.reading.compression import zstd_module
from geval_py.text import words

if TYPE_CHECKING:
    from geval_py.explaining.documents import Documents
    from geval_py.scoring.metrics.base import LineStatistics, Metric

SCORED, REJECTED, FAILED = STATES = ("scored", RejectedError.state, FailedError.state)  # of a submission
INTERVAL_SAMPLES = 1000  # of the bootstrap of a score


def attributes(value: Any, names: str) -> dict[str, Any]:
    """Return attributes of a value by their names, which are separated by spaces."""
    return {name: getattr(value, name) for name in names.split()}


@dataclass(frozen=True, kw_only=True)
class Scored:
    """One output scored with one metric: ``file`` is its submitted name.

    ``losses`` and the numbers of their ``documents`` are packed by :func:`pack`, for the ranking metric only.
    """

    __pydantic_config__: ClassVar = {"val_json_bytes": "base64"}  # as write_document writes them

    test: str
    metric: str
    signature: str
    lines: int
    score: float | None
    file: str = ""
    low: float | None = None
    high: float | None = None
    losses: bytes | None = None
    documents: bytes | None = None


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a child process made of a submission: its state and, if it is rejected or failed, the reason.

    ``parcel`` is None if it could not be received. ``aside`` explains the reason to the organiser alone. ``problems``
    are as in the JSON of ``geval check``, under the names of the submitted files. ``scored`` has an entry for each
    wanted output and metric.
    """

    parcel: Parcel | None = None
    state: str = SCORED
    reason: str = ""
    aside: str = ""
    problems: tuple[Mapping[str, Any], ...] = ()
    scored: tuple[Scored, ...] = ()


# Line statistics in bytes: doubles, one column after the other, compressed by Zstandard.


def pack(columns: Iterable[array[float]]) -> bytes:
    """Compress columns of equal length."""
    return bytes(zstd_module().compress(array("d", chain.from_iterable(columns)).tobytes()))


def unpack(data: bytes, lines: int) -> tuple[array[float], ...]:
    """Read the columns, each of as many lines; raises ValueError for another number of values."""
    values = array("d", zstd_module().decompress(data))
    if not lines or not values or len(values) % lines:
        raise ValueError(f"{len(values)} values are no columns of {lines} lines")
    return tuple(values[start : start + lines] for start in range(0, len(values), lines))


def line_values(metric: Metric, statistics: LineStatistics, documents: Documents | None, seed: int) -> dict[str, Any]:
    """Return the ends of an evaluation's interval, and its packed losses and documents, if they are of lines."""
    from geval_py.explaining.statistics import intervals, sample_of

    of_line = documents and documents.of_line
    (interval,) = intervals(sample_of(metric, [statistics], of_line), samples=INTERVAL_SAMPLES, seed=seed)
    return {
        **dict(zip(("low", "high"), interval.ends, strict=True)),
        "losses": pack(statistics.columns) if metric.measure.corpus_score is None else None,
        "documents": None if of_line is None else pack([array("d", of_line)]),
    }


def unpack_documents(data: bytes | None, lines: int) -> Documents | None:
    """Read the documents of lines; None if each line is by itself."""
    from geval_py.explaining.documents import Documents

    return None if data is None else Documents.of("", unpack(data, lines)[0])


# JSON documents between a board and its child processes (intake.sandbox and intake.child).


JOB_FILE, PARCEL_FILE, ANSWER_FILE = words("job.json parcel.json answer.json")
PASSED_VARIABLES = words(
    "PATH SSL_CERT_FILE SSL_CERT_DIR http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY SSH_AUTH_SOCK "
    "SYSTEMROOT"
)
JsonDocument: TypeAlias = dict[str, Any]
Outputs: TypeAlias = "Sequence[tuple[str, str, Sequence[str]]]"  # their tests, names of files, and wanted metrics


def write_document(path: str, document: JsonDocument) -> None:
    """Write a document to a temporary file and rename that, so that no half of it is ever read."""
    with open(f"{path}.new", "w", encoding="ascii") as file:
        json.dump(document, file, default=lambda data: b64encode(data).decode("ascii"))
    os.replace(file.name, path)
