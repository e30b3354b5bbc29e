"""What a submission says of itself: in gonito.yaml, in files with parameters, in the last commit's message.

They mean what they mean to Gonito (its module Gonito.ExtractMetadata): a description in gonito.yaml goes before the
message's first line, tags of both add up; the parameters of ``param-files`` without the ``unwanted-params`` go before
``params``. The YAML is read in :mod:`geval_py.board.intake.gonito`, which most submissions do not need.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from geval_py.board.intake.members import Commit
from geval_py.board.values import Details, ReceivedFile

GONITO_FILE = "gonito.yaml"
MOST_BYTES = 1 << 16  # of gonito.yaml, and of a file with parameters
MOST_TEXT = 5000  # characters of a description
MOST_VALUE = 1000  # characters of a tag, a parameter, a link
_TAGS_LINE = re.compile(r"(?:tags|labels|Tags|Labels):[ \t]*(.*)")
_NOT_STORABLE = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gonito:
    """The content of a gonito.yaml; ``notes`` name the keys that mean nothing here."""

    description: str = ""
    tags: tuple[str, ...] = ()
    params: Mapping[str, str] = field(default_factory=dict)
    unwanted_params: tuple[str, ...] = ()
    param_files: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


EMPTY = Gonito()


def details_of(
    gonito: Gonito, param_files: Sequence[ReceivedFile], commit: Commit | None, read: Callable[[str], bytes]
) -> Details:
    """Put together what a submission says of itself; ``read`` gives the bytes at a path.

    Raises RejectedError for a file with parameters that is none.
    """
    params: dict[str, str] = {}
    for file in param_files:
        from geval_py.board.intake.gonito import params_in

        params = params_in(file.name, read(file.path)) | params
    for unwanted in gonito.unwanted_params:
        params.pop(unwanted, None)
    message = storable(commit.message) if commit else ""
    description, tags = parse_message(message)
    return Details(
        description=gonito.description or description,
        author=storable(commit.author)[:MOST_VALUE] if commit else "",
        revision=commit.revision if commit else "",
        tags=tuple(sorted({tag for tag in (*gonito.tags, *tags) if tag})),
        params=dict(gonito.params) | params,
        links=gonito.links,
    )


def storable(written: str) -> str:
    """Replace what a database cannot hold: NUL, and halves of characters."""
    return _NOT_STORABLE.sub("\ufffd", written)


def parse_message(message: str) -> tuple[str, tuple[str, ...]]:
    r"""Read a commit's message: its first line, and the tags of a line ``tags: one, another`` below it.

    >>> parse_message("A bigram model\n\ntags: n-gram, baseline\n")
    ('A bigram model', ('n-gram', 'baseline'))
    """
    lines = [line.strip("\r") for line in message.split("\n")]
    start = next((n for n, line in enumerate(lines) if line.strip()), len(lines))
    description = "".join(lines[start : start + 1]).strip()[:MOST_TEXT]
    found = next((match[1] for line in lines[start + 1 :] if (match := _TAGS_LINE.match(line))), "")
    return description, tuple(tag.strip()[:MOST_VALUE] for tag in found.split(",") if tag.strip())
