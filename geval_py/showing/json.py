"""JSON that strict parsers read, and in which GitHub's runner sees no command."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from geval_py.showing.numbers import special


def json_text(document: Mapping[str, Any]) -> str:
    r"""Write a JSON document that strict parsers read, in ASCII.

    Infinity and NaN become strings. Lone surrogates, as in a path that is not UTF-8, are written as escapes, since
    strict parsers refuse ``"\udc80"``; ``##[``, which begins a command where a job of GitHub prints it, is written
    in another way that reads back the same.
    """
    import json

    written = json.dumps(_strict(document), ensure_ascii=True, indent=2, allow_nan=False)
    return written.replace("##[", "##\\u005b") + "\n"


def _strict(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, float):
        return value if math.isfinite(value) else special(value)
    if isinstance(value, Mapping):
        return {_strict(key): _strict(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_strict(item) for item in value]
    return value
