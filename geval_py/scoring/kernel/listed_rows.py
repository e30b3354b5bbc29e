"""Rows of words and numbers in buffers, as Arrow lays them out, scored, written and read: the reference.

Its native twin is listed_rows.hpp. A row has the loss of the line that lists the same words and numbers, to the last
digit.
"""

from __future__ import annotations

from array import array
from math import isfinite

from geval_py.errors import MalformedLineError
from geval_py.reading.files import ListedRows
from geval_py.reading.lines import decode_lines, end_of_lines, is_utf8
from geval_py.reading.wordprobs import are_probabilities, parse_line
from geval_py.scoring.kernel.reference import bounded_losses


def row_losses(rows: ListedRows, expected: bytes, bits: int, first_line: int) -> tuple[array[float], float, int, int]:
    """Score rows against as many lines of expected words; ``bits`` and ``first_line`` are those of the lines.

    Returns the losses in nats, in [0, inf], their bound and the number of rows far above one, as
    :func:`reference.bounded_losses` does, and the index of the first row that is no line, whose loss and the
    following are not computed; -1 if there is none. A row is no line if it is empty, if its words or numbers are not
    in the buffers, if a word has a space or line end in it or is not UTF-8, or if its numbers are not finite, or
    would be read in the other unit.

    Raises ValueError for another number of expected words.
    """
    lines, fault = write_rows(rows)
    answers = expected if fault < 0 else expected[: end_of_lines(expected, 0, fault)[0]]
    losses, bound, far_above_one = bounded_losses(lines, answers, bits, first_line)
    losses.extend([0.0] * (len(rows.offsets) - 1 - len(losses)))
    return losses, bound, far_above_one, fault


def write_rows(rows: ListedRows) -> tuple[bytes, int]:
    """Write rows as lines, each ended by LF, up to the first one that is no line; return its index, too, or -1."""
    lines = b""
    for n in range(len(rows.offsets) - 1):
        line = _line(rows, n)
        if line is None:
            return lines, n
        lines += line + b"\n"
    return lines, -1


def read_rows(lines: bytes) -> ListedRows | None:
    """Read lines as rows; None unless all are well-formed, of words, and in one unit."""
    offsets, starts, text, values, units = array("I", [0]), array("I", [0]), b"", array("d"), set()
    try:
        for line in map(parse_line, decode_lines(lines)):
            units.add(line.words is not None and are_probabilities(line.values))
            for word in line.words or ():
                text += word.encode()
                starts.append(len(text))
            values.extend(line.values)
            offsets.append(len(values))
    except MalformedLineError:
        return None
    if len(starts) <= len(values) or len(units) != 1:
        return None
    return rows_of_arrays(lines, offsets, starts, text, values, units.pop())


def rows_of_arrays(
    lines: bytes, offsets: array[int], starts: array[int], text: bytes, values: array[float], probabilities: bool
) -> ListedRows:
    """Return the rows of lines, from arrays."""
    views = memoryview(offsets).cast("B").cast("i"), memoryview(starts).cast("B").cast("i")
    return ListedRows(
        *views, text, memoryview(values), probabilities, lambda n: lines[: end_of_lines(lines, 0, n)[0]]
    )


def _line(rows: ListedRows, n: int) -> bytes | None:
    """Write a row as a line; None if it is none."""
    start, stop = map(int, rows.offsets[n : n + 2])
    if not 0 <= start < stop <= min(len(rows.values), len(rows.starts) - 1):
        return None
    entries = []
    for place in range(start, stop):
        begin, end = map(int, rows.starts[place : place + 2])
        if not 0 <= begin <= end <= len(rows.text):
            return None
        word = bytes(rows.text[begin:end])
        if any(mark in word for mark in (b" ", b"\n", b"\r")) or not is_utf8(word):
            return None
        entries.append(word + b":%r" % float(rows.values[place]))
    values = rows.values[start:stop].tolist()
    if not all(map(isfinite, values)) or are_probabilities(values) != rows.probabilities:
        return None
    return b" ".join(entries)
