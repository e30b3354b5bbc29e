"""Put together what a submission says of itself: in gonito.yaml, in files with parameters, in the last commit.

They mean what they mean to Gonito (its module Gonito.ExtractMetadata): a description in gonito.yaml goes before the
message's first line, tags of both add up; the parameters of ``param-files`` without the ``unwanted-params`` go before
``params``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from geval_py.board.intake.details import MOST_VALUE, Gonito, parse_message, storable
from geval_py.board.intake.members import Commit
from geval_py.board.values import Details, ReceivedFile


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
