"""The key ``server`` of board.yaml: how much may be uploaded.

server: {upload: 200_000_000, uploads_an_hour: 60}
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from geval_py.board import strict_yaml
from geval_py.board.strict_yaml import Document, Fields, read_mapping

if TYPE_CHECKING:
    import yaml


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """The settings of a server: the most bytes of an upload, and the most uploads of a team in an hour."""

    upload: int = 200_000_000
    uploads_an_hour: int = 60


DEFAULT = ServerSettings()


def read_server(node: yaml.Node, document: Document) -> ServerSettings:
    """Read the key ``server``; problems are added to the document."""
    return ServerSettings(**read_mapping(node, document, SERVER_FIELDS))


SERVER_FIELDS: Fields = dict.fromkeys(("upload", "uploads_an_hour"), partial(strict_yaml.number, least=1))
