"""ARPA files, the text format of n-gram models; :func:`read_arpa` checks them strictly."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from dataclasses import replace
from io import BytesIO
from itertools import chain, islice

import numpy as np

from geval_py.errors import MalformedLineError, ModelError
from geval_py.modelling.backoff import BackoffModel, Ngrams, key_of, texts_of
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
    sorted_with_ranks,
)
from geval_py.reading.lines import LineReader
from geval_py.reading.rewriting import Writable
from geval_py.scoring.kernel.backends import choose_backend
from geval_py.text import visible

with suppress(ImportError):  # it was not built
    from geval_py.scoring.kernel._native import word_table, write_arpa_rows


UNKNOWN_IN_CAPITALS = b"<UNK>"  # as some models have it: KenLM's lm/vocab.cc takes it for <unk> too
BINARY_MAGIC = b"mmap lm http://kheafield.com/code"  # the first line of what KenLM's build_binary writes
LOG_ZERO = -99.0
MISSING_UNKNOWN = -100.0
MAX_SUM = 1.001  # of the probabilities behind a context; a file has few digits
_ROWS = 1 << 14  # read at a time
_COUNT = re.compile(rb"ngram\s+([0-9]{1,3})\s*=\s*([0-9]{1,12})\s*")


def read_arpa(path: str) -> BackoffModel:
    """Read an ARPA file, which may be compressed.

    Raises MalformedLineError for a malformed line; ModelError if the file is no ARPA file, an n-gram lacks its
    context, or probabilities sum to more than 1; and as LineReader.
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
        while (line := lines.next()) is not None and line.startswith(b"ngram"):
            match = _COUNT.fullmatch(line)
            if match is None or int(match[1]) != len(counts) + 1:
                raise lines.error("a count", f"expected ngram {len(counts) + 1}=COUNT")
            counts.append(int(match[2]))
        if not counts or line != b"\\1-grams:":
            raise lines.error("no section", "expected \\1-grams:" if counts else "expected ngram 1=COUNT")
        numbering = new_numbering(alias=UNKNOWN_IN_CAPITALS)
        model = _read_unigrams(lines, counts[0], numbering)
        _check(model)
        for order, count in enumerate(counts[1:], 2):
            model = _with_ngrams(model, lines, order, count, numbering)
            _check(model)
        if lines.next() != b"\\end\\":
            raise lines.error("not the end", "expected \\end\\")
    return model


class _ArpaLines:
    """The lines of an ARPA file, with their numbers."""

    def __init__(self, reader: LineReader) -> None:
        self.path = reader.path
        self.rest = chain.from_iterable(map(BytesIO, iter(reader.block, b"")))
        self.number = 0
        self.text = b""

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

    def error(self, reason: str, hint: str, *, column: int = 1) -> MalformedLineError:
        """Make an error at the current line."""
        shown = self.text.decode(errors="replace")
        return MalformedLineError(
            path=self.path, line=self.number, column=column, reason=reason, token=shown, hint=hint, text=shown
        )


def _read_unigrams(lines: _ArpaLines, count: int, numbering: Numbering | NativeNumbering) -> BackoffModel:
    """Read the 1-grams, which number the words."""
    ids, own_logs, own_backoffs = _read_section(lines, 1, count, numbering)
    words = numbering.words
    others = ids[ids != UNKNOWN]  # of rows of <unk> and <UNK> the last one stands, as in KenLM's lm/read_arpa.hh
    if len(np.unique(others)) < len(others):
        raise ModelError(path=lines.path, message="Not a model: a word occurs twice among the 1-grams")
    logs, backoffs = np.full(len(words), -np.inf), np.zeros(len(words))
    logs[UNKNOWN] = MISSING_UNKNOWN
    logs[ids], backoffs[ids] = own_logs, own_backoffs
    level = Ngrams(
        contexts=np.zeros(len(words), np.int32),
        words=np.arange(len(words), dtype=np.int32),
        log_probabilities=logs,
        log_backoffs=backoffs,
    )
    missing = frozenset(mark for number, mark in enumerate(MARKS) if number not in ids)
    return BackoffModel(words=words, levels=(level,), name=lines.path, missing=missing)


def _with_ngrams(
    model: BackoffModel, lines: _ArpaLines, order: int, count: int, numbering: Numbering | NativeNumbering
) -> BackoffModel:
    """Read the n-grams of the next order, find their contexts, and sort them."""
    if lines.next() != b"\\%d-grams:" % order:
        raise lines.error(f"not the {order}-grams", f"expected \\{order}-grams:")
    ids, logs, backoffs = _read_section(lines, order, count, numbering)
    columns = ids.reshape(-1, order).T
    contexts: Ids = columns[0]
    for length in range(2, order):
        contexts = model.levels[length - 1].find(contexts, columns[length - 1])
    if (contexts < 0).any():
        row = int(np.flatnonzero(contexts < 0)[0])
        names = [visible(model.words[number].decode(errors="replace")) for number in columns[:, row]]
        message = f"Not a model: `{' '.join(names)}` is there without its context, `{' '.join(names[:-1])}`"
        raise ModelError(path=model.name, message=message)
    by_key, sorted_contexts = sorted_with_ranks(contexts)
    words = columns[-1][by_key]
    if (np.diff(key_of(sorted_contexts, words)) < 0).any():  # in suffix order, as most files are, it is sorted now
        by_key = np.lexsort((columns[-1], contexts))
        words = columns[-1][by_key]
    level = Ngrams(
        contexts=sorted_contexts, words=words, log_probabilities=logs[by_key], log_backoffs=backoffs[by_key]
    )
    return replace(model, levels=(*model.levels, level))


def _read_section(lines: _ArpaLines, order: int, count: int, numbering: Numbering | NativeNumbering) -> NgramRows:
    """Read the rows of an order; return the ids of their words, the log10 probabilities and back-offs."""
    left = count
    parts = [(np.zeros(0, np.int32), np.zeros(0), np.zeros(0))]
    while left > 0:
        block = b"".join(islice(lines.rest, min(left, _ROWS))).replace(b"\r\n", b"\n")
        if not block:
            lines.text = b""
            raise lines.error("the end of the file", f"expected {left} more {order}-grams")
        part = numbering.arpa_rows(block, order, grow=order == 1) if isinstance(numbering, NativeNumbering) else None
        if part is None:
            part = _read_rows(block, lines, order, left, numbering)
        else:
            lines.number += len(part[1])
        parts.append(part)
        left -= len(part[1])
    ids, *logs = map(np.concatenate, zip(*parts, strict=True))
    probabilities, backoffs = (np.where(log <= LOG_ZERO, -np.inf, log) for log in logs)
    return ids, probabilities, backoffs


def _read_rows(
    block: bytes, lines: _ArpaLines, order: int, left: int, numbering: Numbering | NativeNumbering
) -> NgramRows:
    """Read rows, of which each may lack a back-off; raises MalformedLineError, and ModelError for an unknown word."""
    ngrams: list[bytes] = []
    logs: list[float] = []
    backoffs: list[float] = []
    for line in lines_of(block):
        lines.number += 1
        fields = line.split(b"\t")
        words = fields[1].split(b" ") if len(fields) > 1 else []
        log, backoff = _number(fields[0]), _number(fields[2]) if len(fields) > 2 else 0.0
        if len(fields) < 4 and len(words) == order and b"" not in words and log <= 0 and backoff < np.inf:
            ngrams += words
            logs.append(log)
            backoffs.append(backoff)
            continue
        lines.text, place = line, 0
        if not line.strip() or line.startswith(b"\\"):
            reason, hint = "too few rows", f"expected {left - len(logs)} more {order}-grams"
        elif len(fields) not in (2, 3):
            reason, hint = "fields", "expected log10 probability TAB words [TAB log10 back-off]"
        elif len(words) != order or b"" in words:
            place, reason = 1, "words"
            hint = f"expected {order} words with a space between two" if order > 1 else "expected one word"
        elif 0 < log < np.inf and backoff < np.inf:
            reason, hint = "a probability above 1", "expected a log10 probability, which is 0 or less"
        else:
            place, reason, hint = 2 if log < np.inf else 0, "not a number", "expected a log10"
        raise lines.error(reason, hint, column=1 + sum(len(f.decode(errors="replace")) + 1 for f in fields[:place]))
    ids = numbering.number(ngrams, grow=order == 1)
    if (ids < 0).any():
        word = visible(ngrams[int(np.argmax(ids < 0))].decode(errors="replace"))
        raise ModelError(path=lines.path, message=f"Not a model: `{word}` stands in a {order}-gram, and is no 1-gram")
    return ids, np.array(logs), np.array(backoffs)


def _number(text: bytes) -> float:
    """Read a number; NaN if it is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _check(model: BackoffModel) -> None:
    """Raise ModelError if an n-gram of the highest order is there twice, or probabilities sum to more than 1."""
    order, level = model.order, model.levels[-1]
    twice = np.flatnonzero((np.diff(level.contexts) == 0) & (np.diff(level.words) == 0))
    if len(twice):
        raise ModelError(
            path=model.name, message=f"Not a model: `{model.text_of(order, int(twice[0]))}` occurs twice"
        )
    predicted = level.words != START
    weights = np.where(predicted, 10.0**level.log_probabilities, 0.0)
    sums = np.bincount(level.contexts, weights=weights)
    if len(sums) and sums.max() > MAX_SUM:
        context = int(sums.argmax())
        behind = f" behind `{model.text_of(order - 1, context)}`" if order > 1 else " of the 1-grams"
        message = f"Not a model: the probabilities{behind} sum to {sums[context]:.6g}, which is above 1"
        raise ModelError(path=model.name, message=message)


def write_arpa(model: BackoffModel, file: Writable) -> None:
    """Write a model in the ARPA format, with eight significant digits."""
    native = choose_backend() == "native"
    table = word_table(b"\n".join([*model.words, b""]), b"") if native else None
    texts = np.empty(0, np.object_) if native else texts_of(model.words)
    counts = [model.kept[0] - len(model.missing), *model.kept[1:]]
    file.write(b"\\data\\\n" + b"".join(b"ngram %d=%d\n" % pair for pair in enumerate(counts, 1)))
    for order in range(1, len(model.levels) + 1):
        file.write(b"\n\\%d-grams:\n" % order)
        for ids, logs, backoffs in model.arpa_rows(order):
            if order == 1 and model.missing:
                there = ~np.isin(ids[0], [number for number, mark in enumerate(MARKS) if mark in model.missing])
                ids, logs = [ids[0][there]], logs[there]
                backoffs = None if backoffs is None else backoffs[there]
            if backoffs is not None:
                backoffs = np.maximum(backoffs, LOG_ZERO)  # KenLM reads no back-off of -inf
            if native:
                written = b"" if backoffs is None else backoffs
                file.write(write_arpa_rows(table, np.concatenate(ids), logs, written))
                continue
            fields = [logs.tolist(), *(texts[column].tolist() for column in ids)]
            line = "%.8g\t" + " ".join(["%s"] * order)
            if backoffs is not None:
                fields.append(backoffs.tolist())
                line += "\t%.8g"
            values = tuple(chain.from_iterable(zip(*fields, strict=True)))
            file.write((f"{line}\n" * len(logs) % values).encode(errors="surrogateescape"))
    file.write(b"\n\\end\\\n")
