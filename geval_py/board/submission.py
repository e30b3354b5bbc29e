"""What a board's functions hand to each other."""

from __future__ import annotations

import json
import os
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from typing import Any, TypeAlias

from geval_py.errors import DataError


class RejectedError(DataError):
    """A submission cannot be taken as it is; ``reason`` is one sentence for its submitter, and for everyone.

    ``aside`` is for the organiser alone.
    """

    reason: str
    aside: str = ""

    def __str__(self) -> str:
        return self.reason


class FailedError(DataError):
    """A submission could not be received or scored, which is not said to be its submitter's fault: time, memory.

    ``aside`` is for the organiser alone.
    """

    reason: str
    aside: str = ""

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedFile:
    """A file of a submission: ``name`` as it came, with / between folders; ``path`` of our copy, under our name.

    ``bytes`` and ``sha256`` are of the file as it came, packed if it was.
    """

    name: str
    path: str
    sha256: str
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedOutput:
    """An output: the test it is for, the name of its file, its variant ("" or "model=a"), its parameters."""

    test: str
    file: str
    variant: str
    params: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """What a submission says of itself: in gonito.yaml and, from git, in its last commit."""

    description: str = ""
    author: str = ""
    revision: str = ""
    tags: tuple[str, ...] = ()
    params: Mapping[str, str] = field(default_factory=dict)
    links: tuple[tuple[str, str], ...] = ()  # title, URL (http or https only)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """A submission that was received: copied, under limits, and not yet looked into.

    ``name`` is that of its folder, archive or branch, ``source`` where it came from; ``digest`` is over the names and
    digests of its files. ``notes`` are remarks for the submitter that keep nothing from being scored.
    """

    name: str
    source: str
    digest: str
    files: tuple[ReceivedFile, ...]
    outputs: tuple[ReceivedOutput, ...]
    details: Details
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """One output scored with one metric; ``losses`` only of the metric that ranks, as they are stored."""

    test: str
    output_sha256: str
    metric: str
    signature: str
    lines: int
    score: float | None
    low: float | None = None
    high: float | None = None
    losses: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A row of a leaderboard: nothing but what may be shown.

    ``place`` is None for a baseline, and while no score may be shown; ``shared`` tells that others have it too.
    ``first`` and ``last`` are the places that cannot be told apart from it, ``groups`` the numbers of its clusters
    (compact letters). ``score``, ``low`` and ``high`` are of the metric that ranks, ``others`` the scores of the
    metrics shown beside it; None where nothing may be shown, or where it is no number.
    """

    place: int | None
    shared: bool
    first: int | None
    last: int | None
    groups: tuple[int, ...]
    submitter: str
    code: str
    variant: str
    score: float | None
    low: float | None
    high: float | None
    others: Mapping[str, float | None]
    baseline: bool
    arrived: datetime
    description: str
    tags: tuple[str, ...]
    params: Mapping[str, str]
    remark: str
    output_id: int
    evaluation_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Standings:
    """The leaderboard of one test in one phase; ``digits`` are those that are shown, 0: neither score nor place.

    ``notes`` are sentences for people, without their full stops.
    """

    test: str
    phase: str
    metric: str
    others: tuple[str, ...]
    unit: str
    direction: str
    digits: int
    by: str
    entries: tuple[Entry, ...]
    notes: tuple[str, ...] = ()


# What goes between a board and the child processes that look into submissions: values as JSON documents.


Document: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What was found in a submission.

    ``problems`` are the checker's, as its JSON document shows them, each under the name that its file came with.
    ``reason`` says in one line why the submission is rejected, "" where it is not; then nothing is scored.
    ``digests`` are those of the unpacked outputs that were scored, by the names of their files; ``scored`` has an
    entry for each test, digest and metric that was wanted.
    """

    problems: tuple[Document, ...] = ()
    reason: str = ""
    digests: Mapping[str, str]
    scored: tuple[Scored, ...] = ()


def parcel_document(parcel: Parcel) -> Document:
    """Write a parcel."""
    return asdict(parcel)


def parcel_of(document: Document) -> Parcel:
    """Read a parcel."""
    details = dict(document["details"])
    details["tags"] = tuple(details["tags"])
    details["links"] = tuple((title, url) for title, url in details["links"])
    return Parcel(
        **{name: str(document[name]) for name in ("name", "source", "digest")},
        files=tuple(ReceivedFile(**file) for file in document["files"]),
        outputs=tuple(ReceivedOutput(**output) for output in document["outputs"]),
        details=Details(**details),
        notes=tuple(document["notes"]),
    )


def findings_document(findings: Findings) -> Document:
    """Write what was found; losses, which are bytes, in base 64."""
    scored = [
        {field.name: getattr(one, field.name) for field in fields(one)}
        | {"losses": None if one.losses is None else b64encode(one.losses).decode("ascii")}
        for one in findings.scored
    ]
    return {
        "problems": list(findings.problems),
        "reason": findings.reason,
        "digests": dict(findings.digests),
        "scored": scored,
    }


def findings_of(document: Document) -> Findings:
    """Read what was found."""
    return Findings(
        problems=tuple(document["problems"]),
        reason=str(document["reason"]),
        digests=dict(document["digests"]),
        scored=tuple(_scored_of(one) for one in document["scored"]),
    )


def _scored_of(document: Document) -> Scored:
    losses = document["losses"]
    return Scored(**document | {"losses": None if losses is None else b64decode(losses)})


def write_document(path: str, document: Document) -> None:
    """Write a document beside and rename it, so that it is there whole or not at all."""
    new = f"{path}.new"
    with open(new, "w", encoding="ascii") as file:
        json.dump(document, file)
    os.replace(new, path)


def read_document(path: str) -> Document:
    """Read a document; raises OSError, and ValueError for what is none."""
    with open(path, encoding="ascii") as file:
        document = json.load(file)
    if isinstance(document, dict):
        return document
    raise ValueError("it is no object")
