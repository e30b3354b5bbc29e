"""The table of lines that a Python user gets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from geval_py.reading.features import Item
from geval_py.reading.items import unused_name


def item_table(
    items: Iterable[Item],
    *,
    lines: Sequence[int],
    losses: Sequence[float],
    scores: Sequence[float],
    header: Sequence[str],
    width: int,
    index: list[int],
) -> pd.DataFrame:
    """Make a table with a row an item, all sequences but the header aligned; ``width`` columns of the input."""
    inputs, expected, outputs = zip(*items, strict=True)
    columns: dict[str, Any] = {"line": lines}
    own = {"expected": expected, "output": outputs, "loss": losses, "score": scores}
    rows = [text.split("\t") for text in inputs] if width else []
    for column in range(width):
        name = unused_name(column, header, {*columns, *own})
        columns[name] = [row[column] if column < len(row) else None for row in rows]
    return pd.DataFrame(columns | own, index=index)
