"""The table of lines that a Python user gets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from geval_py.reading.inputs import column_names
from geval_py.reading.items import ScoredItem


def item_table(
    items: Iterable[ScoredItem],
    *,
    lines: Sequence[int],
    statistics: Mapping[str, Sequence[float]],
    scores: Sequence[float],
    header: Sequence[str],
    width: int,
    index: list[int],
) -> pd.DataFrame:
    """Make a table with a row an item, all sequences but the header aligned; ``width`` columns of the input.

    ``statistics`` are the lines' statistics, by their names.
    """
    inputs, expected, outputs = zip(*items, strict=True)
    columns: dict[str, Any] = {"line": lines}
    own = {"expected": expected, "output": outputs, **statistics, "score": scores}
    rows = [text.split("\t") for text in inputs] if width else []
    for column, name in enumerate(column_names(width, header, {*columns, *own})):
        columns[name] = [row[column] if column < len(row) else None for row in rows]
    return pd.DataFrame(columns | own, index=index)
