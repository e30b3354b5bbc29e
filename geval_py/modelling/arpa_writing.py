"""Write n-gram models as ARPA files (:mod:`geval_py.modelling.arpa`)."""

from __future__ import annotations

from itertools import chain

import numpy as np

from geval_py.modelling.arpa import LOG_ZERO
from geval_py.modelling.model import Doubles, NgramModel
from geval_py.modelling.texts import Ids
from geval_py.reading.rewriting import Writable

_ROWS = 1 << 14  # are written at a time


def write_arpa(model: NgramModel, file: Writable) -> None:
    """Write a model in the ARPA format, with eight significant digits."""
    counts = "".join(f"ngram {order}={len(level)}\n" for order, level in enumerate(model.levels, 1))
    file.write(f"\\data\\\n{counts}".encode())
    for order, level in enumerate(model.levels, 1):
        file.write(f"\n\\{order}-grams:\n".encode())
        for start in range(0, len(level), _ROWS):
            file.write(_rows_text(model, order, np.arange(start, min(start + _ROWS, len(level)), dtype=np.int32)))
    file.write(b"\n\\end\\\n")


def _rows_text(model: NgramModel, order: int, rows: Ids) -> bytes:
    """Write some n-grams of an order, a line each."""
    level = model.levels[order - 1]
    columns = [model.texts[column].tolist() for column in model.words_of(order, rows)]
    numbers = (level.log_probabilities[rows].tolist(), _backoffs(level.log_backoffs[rows]))
    if order == model.order:
        fields, line = (numbers[0], *columns), "%.8g\t" + " ".join(["%s"] * order) + "\n"
    else:
        fields, line = (numbers[0], *columns, numbers[1]), "%.8g\t" + " ".join(["%s"] * order) + "\t%.8g\n"
    return (line * len(rows) % tuple(chain.from_iterable(zip(*fields, strict=True)))).encode(errors="surrogateescape")


def _backoffs(logs: Doubles) -> list[float]:
    """Give back-offs as a file has them: KenLM reads a probability of -inf, and no such back-off."""
    values: list[float] = np.maximum(logs, LOG_ZERO).tolist()
    return values
