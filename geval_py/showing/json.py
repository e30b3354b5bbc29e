"""JSON that strict parsers read, and in which GitHub's runner sees no command."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from geval_py.showing.numbers import special

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def json_text(document: Mapping[str, Any]) -> str:
    r"""Write a JSON document that strict parsers read, in ASCII.

    Infinity and NaN become strings. Lone surrogates, as in a path that is not UTF-8, are written as escapes, since
    strict parsers refuse ``"\udc80"``; ``##[``, which begins a command where a job of GitHub prints it, is written
    in another way that reads back the same.
    """
    return _written(document, indent=2) + "\n"


def json_list_text(head: Mapping[str, Any], name: str, items: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Write, piece by piece, a document that ends in a long list: as :func:`json_text`, but each item on a line."""
    yield json_text({**head, name: []}).removesuffix("]\n}\n")
    end = "]\n}\n"
    comma = ""
    for item in items:
        yield f"{comma}\n    {_written(item)}"
        comma, end = ",", "\n  ]\n}\n"
    yield end


def _written(document: Mapping[str, Any], indent: int | None = None) -> str:
    import json

    written = json.dumps(_strict(document), ensure_ascii=True, indent=indent, allow_nan=False)
    return written.replace("##[", "##\\u005b")


def _strict(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, float):
        return value if math.isfinite(value) else special(value)
    if isinstance(value, Mapping):
        return {_strict(key): _strict(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_strict(item) for item in value]
    return value
