"""JSON that strict parsers read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from geval_py.showing.numbers import special


def json_text(document: Mapping[str, Any]) -> str:
    """Write a JSON document that strict parsers read: Infinity and NaN become strings."""
    import json

    return json.dumps(_strict(document), ensure_ascii=True, indent=2, allow_nan=False) + "\n"


def _strict(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else special(value)
    if isinstance(value, Mapping):
        return {key: _strict(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_strict(item) for item in value]
    return value
