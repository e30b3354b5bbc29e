"""What goes between a board and the child processes that look into submissions: values as JSON documents.

    {"job": "receive", "arguments": {…}, "limits": {…}}      to the child
    {"result": {…}}  {"rejected": "…"}  {"failed": "…"}      from it

It is read in the parent from a file that a child wrote, which had to do with strangers' files: what is not as it
should be raises KeyError, TypeError or ValueError, and nothing is evaluated.
"""

from __future__ import annotations

import json
import os
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, TypeAlias

from geval_py.board.values import Details, Parcel, ReceivedFile, ReceivedOutput, Scored

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
