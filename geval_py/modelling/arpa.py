"""ARPA files, the text format of n-gram models; :func:`read_arpa` checks them strictly."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from dataclasses import replace
from io import BytesIO
from itertools import chain, islice
from typing import IO

import numpy as np

from geval_py.errors import MalformedLineError, ModelError
from geval_py.modelling.backoff import BackoffModel, Ngrams, key_of
from geval_py.modelling.corpus import (
    MARKS,
    START,
    UNKNOWN,
    Ids,
    NativeNumbering,
    NgramRows,
    Numbering,
    lines_of,
    new_numbering,
)
from geval_py.reading.lines import LineReader
from geval_py.reading.rewriting import Draft
from geval_py.scoring.kernel.backends import choose_backend
from geval_py.text import counted, visible

with suppress(ImportError):  # it was not built
    from geval_py.scoring.kernel._native import word_table, write_arpa_rows


UNKNOWN_IN_CAPITALS = b"<UNK>"  # as some models have it: KenLM's lm/vocab.cc takes it for <unk> too
BINARY_MAGIC = b"mmap lm http://kheafield.com/code"  # the first line of what KenLM's build_binary writes
LOG_ZERO = -99.0
MISSING_UNKNOWN = -100.0
MAX_SUM = 1.001  # of the probabilities behind a context; a file has few digits
ROWS = 1 << 14  # read and written at a time
_COUNT = re.compile(rb"ngram\s+([0-9]{1,3})\s*=\s*([0-9]{1,12})\s*")


def read_arpa(path: str) -> BackoffModel:
    """Read an ARPA file, which may be compressed.

    Raises MalformedLineError for a line that is malformed, or an n-gram that cannot be part of a model; ModelError if
    the file is no ARPA file; and as LineReader.
    """
    with LineReader(path) as reader:
        lines = _ArpaLines(reader)
        while (line := lines.next()) != b"\\data\\":
            if line is None:
                raise ModelError(path=path, message="This is no ARPA file: it has no line \\data\\")
            if line.startswith(BINARY_MAGIC):
                message = "This is a binary model of KenLM\n  take the ARPA file that it was made from"
                raise ModelError(path=path, message=message)
        counts: list[int] = []
        while (match := _COUNT.fullmatch(lines.next() or b"")) and int(match[1]) == len(counts) + 1:
            counts.append(int(match[2]))
        if lines.text != b"\\1-grams:" or not counts:
            raise lines.error(f"expected ngram {len(counts) + 1}=COUNT" + " or \\1-grams:" * bool(counts))
        model, numbering = BackoffModel(words=[], levels=(), name=path), new_numbering(alias=UNKNOWN_IN_CAPITALS)
        for order, count in enumerate(counts, 1):
            if order > 1 and lines.next() != b"\\%d-grams:" % order:
                raise lines.error(f"expected \\{order}-grams:")
            lines.section = f"\\{order}-grams:"
            model = _with_ngrams(model, lines, order, count, numbering)
        if lines.next() != b"\\end\\":
            raise lines.error("expected \\end\\")
    return model


class _ArpaLines:
    """The lines of an ARPA file, with their numbers and the section that they are in."""

    def __init__(self, reader: LineReader) -> None:
        self.path = reader.path
        self.rest = chain.from_iterable(map(BytesIO, iter(reader.block, b"")))
        self.number = 0
        self.text = b""
        self.section = "\\data\\"

    def next(self) -> bytes | None:
        """Return the next line that is not empty, without its end; None at the end of the file."""
        for line in self.rest:
            self.number += 1
            self.text = line.rstrip(b"\r\n")
            if self.text.strip():
                return self.text
        self.number += 1
        self.text = b""
        return None

    def error(self, cause: str) -> MalformedLineError:
        """Make an error at the current line."""
        text = self.text.decode(errors="replace")
        return MalformedLineError(
            path=self.path, line=self.number, column=1, reason=self.section, token=text, hint=cause, text=text
        )


def _with_ngrams(
    model: BackoffModel, lines: _ArpaLines, order: int, count: int, numbering: Numbering | NativeNumbering
) -> BackoffModel:
    """Read the n-grams of the next order, find their contexts, and sort them; 1-grams number the words."""
    first = lines.number + 1
    ids, logs, backoffs = _read_rows(lines, order, count, numbering)
    columns, is_first = ids.reshape(-1, order).T, order == 1

    def fault(row: int, cause: str) -> MalformedLineError:
        names = numbering.words
        lines.number, lines.text = first + row, b" ".join(names[number] for number in columns[:, row])
        return lines.error(cause)

    contexts: Ids = np.zeros(count, np.int32) if is_first else columns[0]
    for length in range(2, order):
        contexts = model.levels[length - 1].find(contexts, columns[length - 1])
    if (contexts < 0).any():
        raise fault(int(np.argmax(contexts < 0)), f"its first {order - 1} words are no {order - 1}-gram of the model")
    keys = key_of(contexts, columns[-1])
    by_key = np.argsort(keys, kind="stable")
    is_repeated = np.diff(keys[by_key]) == 0
    words = columns[-1][by_key]
    if is_first:  # of rows of <unk> and <UNK> the last one stands, as in KenLM's lm/read_arpa.hh
        is_repeated &= words[1:] != UNKNOWN
    if is_repeated.any():
        raise fault(int(by_key[1:][is_repeated][0]), "it occurs twice")
    level = Ngrams(contexts[by_key], words, logs[by_key], backoffs[by_key])
    if is_first:  # the rows of all words, of those that the file lacks too
        model = replace(
            model,
            words=numbering.words,
            missing=frozenset(mark for number, mark in enumerate(MARKS) if number not in ids),
        )
        places = np.arange(len(model.words), dtype=np.int32)
        level = Ngrams(0 * places, places, np.full(len(places), -np.inf), np.zeros(len(places)))
        level.log_probabilities[UNKNOWN] = MISSING_UNKNOWN
        level.log_probabilities[ids], level.log_backoffs[ids] = logs, backoffs
    weights = np.where(level.words != START, 10.0**level.log_probabilities, 0.0)
    sums = np.bincount(level.contexts, weights=weights)
    if len(sums) and sums.max() > MAX_SUM:
        row, behind = np.searchsorted(level.contexts, sums.argmax()), "" if is_first else " behind its context"
        raise fault(int(by_key[row]), f"the probabilities{behind} sum to {sums.max():.6g}, which is above 1")
    return replace(model, levels=(*model.levels, level))


def _read_rows(lines: _ArpaLines, order: int, count: int, numbering: Numbering | NativeNumbering) -> NgramRows:
    """Read the rows of an order; return the ids of their words, the log10 probabilities and back-offs."""
    parts = [(np.zeros(0, np.int32), np.zeros(0), np.zeros(0))]
    left = count
    while left > 0:
        block = b"".join(islice(lines.rest, min(left, ROWS))).replace(b"\r\n", b"\n")
        part = numbering.arpa_rows(block, order, grow=order == 1) if isinstance(numbering, NativeNumbering) else None
        if part is None or not block:
            part = _parsed(block, lines, order, left, numbering)
        else:
            lines.number += len(part[1])
        parts.append(part)
        left -= len(part[1])
    ids, *logs = map(np.concatenate, zip(*parts, strict=True))
    probabilities, backoffs = (np.where(log <= LOG_ZERO, -np.inf, log) for log in logs)
    return ids, probabilities, backoffs


def _parsed(
    block: bytes, lines: _ArpaLines, order: int, left: int, numbering: Numbering | NativeNumbering
) -> NgramRows:
    """Read rows, of which each may lack a back-off; raises MalformedLineError."""
    ids: list[Ids] = []
    logs: list[float] = []
    backoffs: list[float] = []
    for line in lines_of(block):
        lines.number += 1
        lines.text = line
        fields = line.split(b"\t")
        words = fields[1].split(b" ") if len(fields) in (2, 3) else []
        if len(words) != order or b"" in words:
            row = f"log10 probability TAB {counted(order, 'word')} with spaces between [TAB log10 back-off]"
            raise lines.error(f"expected {left - len(logs)} more of: {row}")
        log, backoff = _number(fields[0]), _number(fields[2]) if len(fields) > 2 else 0.0
        if not (log <= 0 and backoff < np.inf):
            raise lines.error("expected a log10 probability, which is 0 or less, and perhaps a log10 back-off")
        numbers = numbering.number(words, grow=order == 1)
        if (numbers < 0).any():
            raise lines.error(f"`{visible(words[int(np.argmin(numbers))].decode(errors='replace'))}` is no 1-gram")
        ids.append(numbers)
        logs.append(log)
        backoffs.append(backoff)
    return np.concatenate(ids), np.array(logs), np.array(backoffs)


def _number(text: bytes) -> float:
    """Read a number; NaN if it is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def write_arpa(model: BackoffModel, file: IO[bytes] | Draft) -> None:
    """Write a model in the ARPA format, with eight significant digits."""
    native = choose_backend() == "native"
    table = word_table(b"\n".join([*model.words, b""]), b"") if native else None
    counts = [model.kept[0] - len(model.missing), *model.kept[1:]]
    file.write(b"\\data\\\n" + b"".join(b"ngram %d=%d\n" % pair for pair in enumerate(counts, 1)))
    for order, level in enumerate(model.levels, 1):
        file.write(b"\n\\%d-grams:\n" % order)
        rows = np.arange(len(level), dtype=np.int32)
        if order == 1:
            rows = np.delete(rows, [number for number, mark in enumerate(MARKS) if mark in model.missing])
        for start in range(0, len(rows), ROWS):
            block = rows[start : start + ROWS]
            ids, logs = model.words_of(order, block), level.log_probabilities[block]
            backoffs = np.maximum(level.log_backoffs[block], LOG_ZERO)  # KenLM reads no back-off of -inf
            if native:
                written = backoffs if order < model.order else b""
                file.write(write_arpa_rows(table, np.concatenate(ids), logs, written))
                continue
            line = "%.8g\t" + " ".join(["%s"] * order) + "\t%.8g" * (order < model.order) + "\n"
            fields = [logs.tolist(), *(model.texts[column].tolist() for column in ids), backoffs.tolist()]
            values = tuple(chain.from_iterable(zip(*fields[: line.count("%")], strict=True)))
            file.write((line * len(block) % values).encode(errors="surrogateescape"))
    file.write(b"\n\\end\\\n")
