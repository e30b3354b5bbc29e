"""Rows of outputs in other formats, as lines: what all formats share, decoding JSON, and CSV.

A row is a line, and the empty word is the rest, as in a line. Rows come from strangers: one that is not in the format
raises UnreadableFileError with its number and the key or column.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

from geval_py.errors import UnreadableFileError
from geval_py.reading.files import File, name_of
from geval_py.reading.lines import BLOCK_BYTES, LineReader, decode_lines
from geval_py.reading.wordprobs import NUMBER, are_probabilities
from geval_py.text import counted, shorten, some_of, visible

Rows: TypeAlias = Iterator[tuple[str, str]]  # each row's id and line; lines without an id, "", may be joined by LF
CsvRows: TypeAlias = "Iterator[tuple[Row, list[str]]]"  # with their fields

# The keys of a row, in all formats.
WORDS, PROBABILITIES, LOGARITHMS, BUCKETS = "words", "probabilities", "logprobs", "buckets"
UNITS, KEYS = (PROBABILITIES, LOGARITHMS), (WORDS, PROBABILITIES, LOGARITHMS, BUCKETS)
TOKEN = "token_str"  # of an answer of transformers' pipeline "fill-mask"
ID, LABEL, P, LOG_P = "id", "label", "p", "logprob"  # the columns of CSV
COLUMNS = {  # by their usual names, without case, spaces, "_" and "-"
    **dict.fromkeys((ID, "gapid", "lineid", "rowid"), ID),
    **dict.fromkeys((LABEL, "word", "token"), LABEL),
    **dict.fromkeys((P, "prob", "probability"), P),
    **dict.fromkeys((LOG_P, "logprobability"), LOG_P),
}
_NOT_FINITE = "(?i)[+-]?(nan|inf|infinity)"
MAX_ROW_BYTES = 1 << 26  # of JSON: the values that it is parsed to take ten times as much memory
MAX_SUM = 1.1  # of a row's probabilities, which may be rounded


class Row(NamedTuple):
    """A row of a file, numbered from 1, for the errors in it."""

    path: str
    number: int

    def error(self, reason: str, key: str = "") -> UnreadableFileError:
        """Return the error for the row, or for a key of it."""
        place = f"row {self.number}, {key}" if key else f"row {self.number}"
        return UnreadableFileError(path=self.path, reason=f"{place}: {reason}")


# A row's values as a line


def line_of(row: Row, values: Mapping[str, Any]) -> str:
    """Write the values of a row as a line: words and their numbers, a map of them, or buckets."""
    words = values.get(WORDS)
    units = [unit for unit in (*UNITS, BUCKETS) if values.get(unit) is not None]
    if isinstance(words, dict):
        advice = "write rows: frame.to_json(path, orient='records', lines=True)"
        raise row.error(f"it is a map, as where pandas writes a table by its columns; {advice}", WORDS)
    if len(units) > 1:
        raise row.error(f"{' and '.join(units)}: one is wanted")
    if not units:
        for key, value in values.items():
            if isinstance(value, str) and NUMBER.fullmatch(value):
                raise row.error(f"`{value}` is a text; write a number, without quotes", quoted(key))
        forms = f"{WORDS} and {PROBABILITIES}, or {LOGARITHMS}, or a map in the place of both"
        keys = some_of(quoted(key) for key, value in values.items() if value is not None)
        raise row.error(f"it has none of these keys: {forms}" + (f"; its keys are {keys}" if keys else ""))
    (unit,) = units
    numbers: Any = values[unit]
    if unit == BUCKETS:
        if not isinstance(numbers, list) or not numbers:
            raise row.error("a list of logarithms is wanted", unit)
        return " ".join([repr(finite_number(value, row, f"{unit}[{n}]")) for n, value in enumerate(numbers)])
    if isinstance(numbers, dict):
        if words is not None:
            raise row.error(f"{unit} is a map and has the words, so there are no {WORDS} beside it", WORDS)
        words, numbers = list(numbers), list(numbers.values())
    if words is None:
        raise row.error(f"it has {unit}, but no {WORDS}; write a list of both, or {unit} as a map with the words")
    for key, value in ((WORDS, words), (unit, numbers)):
        if not isinstance(value, list):
            raise row.error(f"a list is wanted, not {kind_of(value)}", key)
    if len(words) != len(numbers):
        raise row.error(f"{counted(len(numbers), 'number')} for {counted(len(words), 'word')}", unit)
    return line_of_entries(row, words, numbers, unit)


def line_of_entries(row: Row, words: Sequence[Any], numbers: Sequence[Any], unit: str) -> str:
    """Write words and their numbers as a line that is read in that unit; raises UnreadableFileError."""
    if not words:
        raise row.error("no words; a row without a guess has the empty word alone")
    for place, word in enumerate(words, 1):
        if not isinstance(word, str):
            raise row.error(f"a word is a string, not {kind_of(word)}", f"word {place}")
        space = f"{quoted(word)} has a space in it, which would split the line" if " " in word else None
        if fault := space or text_fault(word):
            raise row.error(fault, f"word {place}")
    values = [
        value if type(value) is float and math.isfinite(value) else finite_number(value, row, quoted(word))
        for word, value in zip(words, numbers, strict=True)
    ]
    if are_probabilities(values) != (unit == PROBABILITIES):
        if unit == LOGARITHMS:
            raise row.error("the numbers are from 0 to 1, and would be read as probabilities", unit)
        for word, value in zip(words, values, strict=True):
            if not 0.0 <= value <= 1.0:
                raise row.error(f"{value!r} is not a probability, from 0 to 1", quoted(word))
        raise row.error("every probability is 0", unit)
    return " ".join([f"{word}:{value!r}" for word, value in zip(words, values, strict=True)])


def text_fault(text: str) -> str | None:
    """Return why a text cannot be a line, or a part of one; None if it can."""
    if "\n" in text or "\r" in text:
        return f"{quoted(text)} has a line end in it, which would split the line"
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"it cannot be written as UTF-8: {error.reason}"
    return None


def words_of_choices(row: Row, key: str, choices: Sequence[Any]) -> list[str]:
    """Return the choices of a task without the spaces around them; raises UnreadableFileError.

    Choices that are equal then, or empty, would be one word, or the rest.
    """
    for n, choice in enumerate(choices):
        if not isinstance(choice, str):
            raise row.error(f"a choice is a string, not {kind_of(choice)}", f"{key}[{n}]")
    words = [choice.strip(" ") for choice in choices]
    if len(set(words)) < len(words) or "" in words:
        raise row.error("the choices are empty or alike: the contexts differ, and no words are compared", key)
    return words


def finite_number(value: Any, row: Row, key: str) -> float:
    """Return a value of a row as a number; raises UnreadableFileError for anything but a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise row.error(f"a number is wanted, not {kind_of(value)}", key)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if number == -math.inf:
        raise row.error("it is -infinity; leave a word out whose probability is 0", key)
    if not math.isfinite(number):
        raise row.error("NaN is not a number" if number != number else "the number is infinite, or too large", key)
    return number


def id_text(identity: object) -> str:
    """Return an id, a text or a whole number, as text; "" for anything else."""
    return str(identity) if type(identity) in (int, str) else ""


def kind_of(value: object) -> str:
    """Name the kind of a value of JSON, for errors."""
    kinds = {dict: "a map", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}
    return "nothing" if value is None else kinds.get(type(value), type(value).__name__)


def quoted(word: object) -> str:
    """Quote a stranger's word in an error, shortened."""
    return f"`{visible(shorten(str(word)))}`"


# JSON lines


def json_rows(file: File, kinds: tuple[type, ...] = (dict,), **hooks: Any) -> Iterator[tuple[Row, Any]]:
    """Yield the objects of JSON lines or, of a file that ends in .json, those of a list, or the only one.

    Raises UnreadableFileError for anything else, also for equal keys of a map. ``hooks`` are arguments of
    json.JSONDecoder; the objects are of some ``kinds``.
    """
    decoder = json.JSONDecoder(object_pairs_hook=map_of, **hooks)
    for row, value in _json_values(file, decoder):
        if not isinstance(value, kinds):
            raise row.error(f"a map of keys is wanted, not {kind_of(value)}")
        yield row, value


def _json_values(file: File, decoder: json.JSONDecoder) -> Iterator[tuple[Row, Any]]:
    is_json = name_of(file.name).endswith(".json")
    for first, lines in _blocks(file, MAX_ROW_BYTES if is_json else BLOCK_BYTES):
        document = "\n".join(lines).strip() if is_json and first == 1 else ""
        if document:
            value, end = _decoded(Row(file.name, 1), document, decoder.raw_decode)
            if end == len(document):  # otherwise they are JSON lines
                values = value if isinstance(value, list) else [value]
                if any(isinstance(one, dict) and TOKEN in one for one in values):
                    values = [value]  # what transformers' pipeline "fill-mask" returns for one gap
                yield from ((Row(file.name, n), one) for n, one in enumerate(values, 1))
                return
        for number, text in enumerate(lines, first):
            row = Row(file.name, number)
            if not text.strip():
                raise row.error("the line is empty")
            if len(text) > MAX_ROW_BYTES:
                raise row.error(f"it has more than {MAX_ROW_BYTES} characters")
            yield row, _decoded(row, text, decoder.decode)


def _decoded(row: Row, text: str, decode: Callable[[str], Any]) -> Any:
    """Decode a text that begins in a row."""
    try:
        return decode(text)
    except RecursionError:
        raise row.error("its lists and maps are nested too deeply") from None
    except json.JSONDecodeError as error:
        row = row._replace(number=row.number + error.lineno - 1)
        raise row.error(f"it is not JSON: {error.msg}", f"column {error.colno}") from None
    except ValueError as error:
        is_long = str(error).startswith("Exceeds the limit")
        raise row.error("a number has too many digits" if is_long else str(error)) from None


def _blocks(file: File, size: int) -> Iterator[tuple[int, list[str]]]:
    """Yield decoded lines in blocks, each with the number of the first; raises UnreadableFileError."""
    first = 1
    with LineReader(file.name, max_bytes=file.max_bytes) as reader:
        while block := reader.block(size):
            try:
                str(block, "utf-8")
            except UnicodeDecodeError as error:
                row = Row(file.name, first + block.count(b"\n", 0, error.start))
                raise row.error("it is not in UTF-8") from None
            lines = decode_lines(block)
            yield first, lines
            first += len(lines)


def map_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a map of JSON (an ``object_pairs_hook``); raises ValueError if two keys are equal."""
    values = dict(pairs)
    if len(values) < len(pairs):
        ((key, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"the key {quoted(key)} occurs twice")
    return values


# CSV of class probabilities


def read_csv(file: File) -> Rows:
    """Yield the ids and lines of a CSV with a header: ``id,label,p``, or a column for each label.

    With ``id,label,p``, or ``id,label,logprob``, or other usual names (COLUMNS), consecutive rows with the same id
    are a line. With a column for each label, as pandas writes scikit-learn's ``predict_proba``, a row is a line. A
    first column that is an id, or has no name, as pandas' index, has the ids. A row whose sum is above MAX_SUM is an
    error, since it may have a column that is no label, and so is an id that is there twice.
    """
    rows = _csv_rows(file)
    first, header = next(rows, (None, [""]))
    if first is None:
        return
    kinds = [COLUMNS.get(re.sub("[ _-]", "", name).lower(), name) for name in header]
    is_long = kinds in ([ID, LABEL, P], [ID, LABEL, LOG_P])
    seen: dict[str, int] = {}
    for row, identity, line in (
        _long_lines(rows, header, kinds) if is_long else _wide_lines(first, header, kinds, rows)
    ):
        if kinds[0] == ID and seen.setdefault(identity, row.number) != row.number:
            raise row.error(f"the id {quoted(identity)} is in row {seen[identity]}, too")
        yield identity, line


def _long_lines(rows: CsvRows, header: list[str], kinds: list[str]) -> Iterator[tuple[Row, str, str]]:
    """Yield the first row of each id, the id, and a line for its rows."""
    unit, key = PROBABILITIES if P in kinds else LOGARITHMS, f"column {quoted(header[2])}"
    for identity, group in groupby(rows, key=lambda item: item[1][0]):
        entries = list(group)
        numbers = [parsed_number(fields[2], row, key) for row, fields in entries]
        row, words = entries[0][0], [fields[1] for _, fields in entries]
        yield row, identity, line_of_entries(row, words, numbers, unit)


def _wide_lines(row: Row, header: list[str], kinds: list[str], rows: CsvRows) -> Iterator[tuple[Row, str, str]]:
    """Yield each row, its id, and its line; ``row`` is that of the header."""
    first = int(kinds[:1] in ([], [""], [ID]))  # an empty line is a header without columns
    labels = header[first:]
    if len(header) == 1 and (separator := re.search("[;\t]", header[0])):
        raise row.error(f"the columns are separated by {quoted(separator[0])}; commas are wanted")
    if {ID, LABEL} <= {*header} or not labels or not all(map(str.strip, labels[1:])):
        advice = f"`{ID},{LABEL},{P}` or `{ID},{LABEL},{LOG_P}` is wanted, or a column for each label"
        raise row.error(f"the header is {quoted(','.join(header))}; {advice}")
    if twice := [label for label, count in Counter(labels).items() if count > 1]:
        raise row.error(f"two columns are named {quoted(twice[0])}")
    keys = [f"column {quoted(label)}" for label in labels]
    for row, fields in rows:
        numbers = [parsed_number(field, row, key) for key, field in zip(keys, fields[first:], strict=True)]
        line = line_of_entries(row, labels, numbers, PROBABILITIES)
        if (total := math.fsum(numbers)) > MAX_SUM:
            reason = "a column may be of no label: leave it out; or divide the row by its sum"
            raise row.error(f"the probabilities sum to {total:.4g}; {reason}")
        yield row, fields[0] if first else "", line


def _csv_rows(file: File) -> CsvRows:
    """Yield the header and the rows of a CSV; raises UnreadableFileError."""
    texts = (f"{text}\n" for _, lines in _blocks(file, BLOCK_BYTES) for text in lines)
    rows, number, width = csv.reader(texts, strict=True), 0, None
    try:
        for fields in rows:
            row = Row(file.name, number + 1)
            if width is not None and len(fields) != width:
                raise row.error(f"{counted(len(fields), 'column')}, but the header has {width}")
            yield row, fields
            number, width = rows.line_num, width or len(fields)
    except csv.Error as error:
        raise Row(file.name, number + 1).error(f"it is not CSV: {error}") from None


def parsed_number(field: str, row: Row, key: str) -> float:
    """Parse a finite number as a line has it, perhaps among spaces; raises UnreadableFileError."""
    number = field.strip(" \t")
    if not NUMBER.fullmatch(number) and not re.fullmatch(_NOT_FINITE, number):
        advice = "; lines of word gaps are written to out.tsv, without ids" if ":" in field else ""
        raise row.error(f"{quoted(field)} is not a number such as 0.5 or 1e-05{advice}", key)
    return finite_number(float(number), row, key)
