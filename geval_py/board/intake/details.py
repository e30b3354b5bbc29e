"""What a gonito.yaml and a commit's message may say; the YAML is read in :mod:`geval_py.board.intake.gonito`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

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
