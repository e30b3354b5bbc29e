"""Rows of outputs in other formats, as lines: what all formats share, JSON lines, and CSV.

A row is a line, and the empty word is the rest, as in a line. Rows come from strangers: one that is not in the format
raises UnreadableFileError with its number and the key or column.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, islice
from typing import Any, NamedTuple, TypeAlias

from geval_py.errors import MalformedLineError, UnreadableFileError, UsageError
from geval_py.reading.files import name_of
from geval_py.reading.lines import LineReader, decode_lines, is_utf8
from geval_py.reading.rewriting import Draft
from geval_py.reading.wordprobs import NUMBER, WordProbs, are_probabilities, parse_line
from geval_py.tables.numbers import counted
from geval_py.text import shorten, some_of, visible

Lines: TypeAlias = Generator[str]
Parsed: TypeAlias = Iterable[tuple["Row", WordProbs]]
CsvRow: TypeAlias = "tuple[Row, list[str]]"  # with its fields

# The keys of a row, in all formats.
WORDS, PROBABILITIES, LOGARITHMS, BUCKETS = "words", "probabilities", "logprobs", "buckets"
UNITS, KEYS = (PROBABILITIES, LOGARITHMS), (WORDS, PROBABILITIES, LOGARITHMS, BUCKETS)
TOKEN, SCORE = "token_str", "score"  # of an answer of transformers' pipeline "fill-mask"
ID, LABEL, P, LOG_P = "id", "label", "p", "logprob"  # the columns of CSV
_NOT_FINITE = {sign + name for sign in ("", "+", "-") for name in ("nan", "inf", "infinity")}
MAX_ROW_BYTES = 1 << 26  # of JSON: the values that it is parsed to take ten times as much memory
MAX_ENTRIES = 1 << 22  # rows of CSV that are one line
MAX_SUM = 1.1  # of a row's probabilities, which may be rounded


class Row(NamedTuple):
    """A row of a file, numbered from 1, for the errors in it."""

    path: str
    number: int

    def error(self, reason: str, key: str = "") -> UnreadableFileError:
        """Return the error for the row, or for a key of it."""
        place = f"row {self.number}, {key}" if key else f"row {self.number}"
        return UnreadableFileError(path=self.path, reason=f"{place}: {reason}")


def rows_of_lines(path: str, lines: Iterable[str], first: int = 1) -> Iterator[tuple[Row, WordProbs]]:
    """Parse the lines of an output from a number on; raises MalformedLineError."""
    for number, line in enumerate(lines, first):
        try:
            yield Row(path, number), parse_line(line, number)
        except MalformedLineError as error:
            error.path = path
            raise


# A row's values as a line


def line_of(row: Row, values: Mapping[str, Any]) -> str:
    """Write the values of a row as a line: words and their numbers, a map of them, or buckets."""
    if isinstance(values.get(WORDS), dict):
        advice = "write rows: frame.to_json(path, orient='records', lines=True)"
        raise row.error(f"it is a map, as where pandas writes a table by its columns; {advice}", WORDS)
    units = [unit for unit in (*UNITS, BUCKETS) if values.get(unit) is not None]
    if len(units) != 1:
        forms = f"{WORDS} and {PROBABILITIES}, or {LOGARITHMS}, or a map in the place of both"
        if units:
            raise row.error(f"{' and '.join(units)}: one is wanted")
        for key, value in values.items():
            if isinstance(value, str) and NUMBER.fullmatch(value):
                raise row.error(f"`{value}` is a text; write a number, without quotes", quoted(key))
        keys = some_of(quoted(key) for key, value in values.items() if value is not None)
        raise row.error(f"it has none of these keys: {forms}" + (f"; its keys are {keys}" if keys else ""))
    (unit,) = units
    numbers: Any = values[unit]
    words: Any = values.get(WORDS)
    if unit == BUCKETS:
        if not isinstance(numbers, list) or not numbers:
            raise row.error("a list of logarithms is wanted", unit)
        return " ".join([repr(finite_number(value, row, f"{unit}[{n}]")) for n, value in enumerate(numbers)])
    if isinstance(numbers, dict):
        if words is not None:
            raise row.error(f"{unit} is a map and has the words, so there are no {WORDS} beside it", WORDS)
        names = list(numbers)
        return line_of_entries(row, names, list(numbers.values()), unit, lambda n: f"{unit}[{quoted(names[n])}]")
    for key, value in ((WORDS, words), (unit, numbers)):
        if not isinstance(value, list):
            raise row.error(f"a list is wanted, not {kind_of(value)}", key)
    if len(words) != len(numbers):
        raise row.error(f"{counted(len(numbers), 'number')} for {counted(len(words), 'word')}", unit)
    return line_of_entries(row, words, numbers, unit, lambda n: f"{unit}[{n}]", lambda n: f"{WORDS}[{n}]")


def line_of_entries(
    row: Row,
    words: Sequence[Any],
    numbers: Sequence[Any],
    unit: str,
    key_of_number: Callable[[int], str],
    key_of_word: Callable[[int], str] | None = None,
) -> str:
    """Write words and their numbers as a line that is read in that unit; raises UnreadableFileError."""
    if not words:
        raise row.error("no words; a row without a guess has the empty word alone")
    for n, word in enumerate(words):
        if (reason := word_fault(word)) is not None:
            raise row.error(reason, (key_of_word or key_of_number)(n))
    values = [
        finite_number(value, row, key_of_number(n)) if type(value) is not float or not math.isfinite(value) else value
        for n, value in enumerate(numbers)
    ]
    if are_probabilities(values) != (unit == PROBABILITIES):
        wrong = next((n for n, value in enumerate(values) if not 0.0 <= value <= 1.0), None)
        if unit == LOGARITHMS:
            raise row.error("the numbers are from 0 to 1, and would be read as probabilities", unit)
        if wrong is None:
            raise row.error("every probability is 0", unit)
        raise row.error(f"{values[wrong]!r} is not a probability, from 0 to 1", key_of_number(wrong))
    return " ".join([f"{word}:{value!r}" for word, value in zip(words, values, strict=True)])


def word_fault(word: Any) -> str | None:
    """Return why a line cannot hold a word; None if it can."""
    if not isinstance(word, str):
        return f"a word is a string, not {kind_of(word)}"
    if " " in word or "\n" in word or "\r" in word:
        what = "a space" if " " in word else "a line end" if "\n" in word else "a carriage return"
        return f"the word {quoted(word)} has {what} in it, which would split the line"
    if not word.isascii():
        try:
            word.encode()
        except UnicodeEncodeError as error:
            return f"the word cannot be written as UTF-8: {error.reason}"
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


def kind_of(value: object) -> str:
    """Name the kind of a value of JSON, for errors."""
    kinds = {dict: "a map", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}
    return "nothing" if value is None else kinds.get(type(value), type(value).__name__)


def quoted(word: object) -> str:
    """Quote a stranger's word in an error, shortened."""
    return f"`{visible(shorten(str(word)))}`"


def values_of(row: WordProbs) -> dict[str, list[Any]]:
    """Return a line's values by their keys, as :func:`line_of` reads them."""
    numbers = list(row.values)
    if row.words is None:
        return {BUCKETS: numbers}
    return {WORDS: list(row.words), PROBABILITIES if are_probabilities(numbers) else LOGARITHMS: numbers}


# JSON lines


def json_rows(
    path: str,
    max_bytes: int | None = None,
    kinds: tuple[type, ...] = (dict,),
    **hooks: Any,
) -> Iterator[tuple[Row, Any]]:
    """Yield the objects of JSON lines or, of a file that ends in .json, those of a list, or the only one.

    Raises UnreadableFileError for anything else, also for equal keys of a map. ``hooks`` are arguments of
    json.JSONDecoder; the objects are of some ``kinds``.
    """
    decoder = json.JSONDecoder(object_pairs_hook=map_of, **hooks)
    for row, value in _json_values(path, max_bytes, decoder):
        if not isinstance(value, kinds):
            raise row.error(f"a map of keys is wanted, not {kind_of(value)}")
        yield row, value


def _json_values(path: str, max_bytes: int | None, decoder: json.JSONDecoder) -> Iterator[tuple[Row, Any]]:
    lines = _texts(path, max_bytes)
    if name_of(path).endswith(".json"):
        texts: list[tuple[Row, str]] = []
        size = 0
        while size <= MAX_ROW_BYTES and (line := next(lines, None)):
            texts.append(line)
            size += len(line[1])
        lines = chain(texts, lines)
        document = "\n".join([text for _, text in texts]).strip()
        if document and size <= MAX_ROW_BYTES:
            value, end = _decoded(Row(path, 1), document, decoder.raw_decode)
            if end == len(document):  # otherwise they are JSON lines
                values = value if isinstance(value, list) else [value]
                if any(isinstance(one, dict) and TOKEN in one for one in values):
                    values = [value]  # what transformers' pipeline "fill-mask" returns for one gap
                yield from ((Row(path, n), one) for n, one in enumerate(values, 1))
                return
    for row, text in lines:
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


def _texts(path: str, max_bytes: int | None) -> Iterator[tuple[Row, str]]:
    """Yield decoded lines; raises UnreadableFileError for one that is not in UTF-8."""
    number = 0
    with LineReader(path, max_bytes=max_bytes) as reader:
        while block := reader.block():
            stored: list[bytes] = []
            for place, text in enumerate(decode_lines(block)):
                number += 1
                row = Row(path, number)
                if "\ufffd" in text:  # it may stand for other bytes
                    stored = stored or block.split(b"\n")
                    if not is_utf8(stored[place]):
                        raise row.error("it is not in UTF-8")
                yield row, text


def map_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a map of JSON (an ``object_pairs_hook``); raises ValueError if two keys are equal."""
    values = dict(pairs)
    if len(values) < len(pairs):
        times = Counter(key for key, _ in pairs)
        raise ValueError(f"the key {quoted(next(key for key in times if times[key] > 1))} occurs twice")
    return values


def write_json_lines(rows: Parsed, file: Draft) -> int:
    """Write rows as JSON lines; return their number."""
    count = 0
    for _, row in rows:
        file.write((json.dumps(values_of(row), ensure_ascii=False) + "\n").encode())
        count += 1
    return count


# CSV of class probabilities


def read_csv(path: str, *, max_bytes: int | None = None) -> Lines:
    """Yield the lines of a CSV with a header: ``id,label,p``, or a column for each label.

    With ``id,label,p``, or ``id,label,logprob``, the rows of one id, which follow each other, are a line. With a
    column for each label, as pandas writes scikit-learn's ``predict_proba``, a row is a line; a first column with the
    name id, in capitals or not, or without a name, is left out. A row whose sum is above MAX_SUM is refused: it may
    have a column that is of no label. An id that is there twice is refused, too.
    """
    for _, line in csv_lines(path, max_bytes):
        yield line


def csv_lines(path: str, max_bytes: int | None = None) -> Iterator[tuple[str, str]]:
    """Yield the id and the line of each row of a CSV, or of each id; "" for a file without ids."""
    rows = _csv_rows(path, max_bytes)
    row, header = next(rows, (None, None))
    if row is None or header is None:
        return
    if header in ([ID, LABEL, P], [ID, LABEL, LOG_P]):
        yield from _lines_of_ids(rows, header[2])
        return
    first = int(not header or header[0].lower() in ("", ID))  # an empty line is a header without columns
    labels = header[first:]
    separator = next((one for one in ";\t" if one in header[0]), None) if len(header) == 1 else None
    twice = next((label for label, count in Counter(labels).items() if count > 1), None)
    if separator is not None:
        raise row.error(f"the columns are separated by {quoted(separator)}; commas are wanted")
    if {ID, LABEL} <= {*header}:
        advice = f"`{ID},{LABEL},{P}` or `{ID},{LABEL},{LOG_P}` is wanted"
        raise row.error(f"the header is {quoted(','.join(header))}; {advice}")
    if not labels or not all(map(str.strip, labels[1:])):
        raise row.error(f"the header is `{ID},{LABEL},{P}`, or names a column for each label")
    if twice is not None:
        raise row.error(f"two columns are named {quoted(twice)}")
    keys = [f"column {quoted(label)}" for label in labels]
    has_ids, seen = header[0].lower() == ID, dict[int, int]()
    for row, fields in rows:
        identity = fields[0] if has_ids and fields else ""
        if has_ids and (first_row := seen.setdefault(hash(identity), row.number)) != row.number:
            reason = (
                f"{quoted(identity)} is in row {first_row}, too; an item has one row, with a column for each word"
            )
            raise row.error(reason, f"column {quoted(header[0])}")
        if len(fields) != len(header):
            raise row.error(f"{counted(len(fields), 'column')}, but the header has {len(header)}")
        numbers = [parsed_number(field, row, key) for field, key in zip(fields[first:], keys, strict=True)]
        line = line_of_entries(row, labels, numbers, PROBABILITIES, keys.__getitem__)
        if (total := math.fsum(numbers)) > MAX_SUM:
            reason = "a column may be of no label: leave it out; or divide the row by its sum"
            raise row.error(f"the probabilities sum to {total:.4g}; {reason}")
        yield identity, line


def notes_on_csv(path: str) -> Iterator[str]:
    """Yield what a user should know of a CSV: whether its ids are numbers that do not ascend."""
    rows = _csv_rows(path, None)
    _, header = next(rows, (None, None))
    if not header or header[0].lower() not in ("", ID):
        return
    before = 0
    for row, fields in rows:
        if not fields or not re.fullmatch("[0-9]{1,18}", fields[0]):
            return
        number = int(fields[0])
        if number < before:
            sort = f"frame.sort_values({header[0]!r}, kind='stable')" if header[0] else "frame.sort_index()"
            what = f"its ids do not ascend (row {row.number} has {number} after {before})"
            yield f"{what}, and its lines are scored in the order of the file; {sort} sorts them"
            return
        before = number


def _lines_of_ids(rows: Iterator[CsvRow], number_column: str) -> Iterator[tuple[str, str]]:
    """Yield each id, and a line for its rows."""
    unit = PROBABILITIES if number_column == P else LOGARITHMS
    seen: set[int] = set()  # hashes, since strangers' ids may be long

    def identity(item: CsvRow) -> str:
        row, fields = item
        if len(fields) != 3:
            raise row.error(f"{counted(len(fields), 'column')}, but the header has 3")
        return fields[0]

    for name, group in groupby(rows, key=identity):
        entries = list(islice(group, MAX_ENTRIES + 1))
        row = entries[0][0]
        if hash(name) in seen:
            raise row.error(f"the rows of {quoted(name)} do not follow each other", f"column {ID}")
        if len(entries) > MAX_ENTRIES:
            raise row.error(f"more than {MAX_ENTRIES} rows are of {quoted(name)}", f"column {ID}")
        seen.add(hash(name))
        words = [fields[1] for _, fields in entries]
        numbers = [parsed_number(fields[2], entry, f"column `{number_column}`") for entry, fields in entries]
        yield name, line_of_entries(row, words, numbers, unit, lambda n: f"entry {n + 1}, column {number_column}")


def _csv_rows(path: str, max_bytes: int | None) -> Iterator[CsvRow]:
    """Yield the header and the rows of a CSV; raises UnreadableFileError."""
    rows, number = csv.reader((f"{text}\n" for _, text in _texts(path, max_bytes)), strict=True), 0
    try:
        for fields in rows:
            yield Row(path, number + 1), fields
            number = rows.line_num
    except csv.Error as error:
        raise Row(path, number + 1).error(f"it is not CSV: {error}") from None


def parsed_number(field: str, row: Row, key: str) -> float:
    """Parse a finite number as a line has it, perhaps among spaces; raises UnreadableFileError."""
    number = field.strip(" \t")
    if not NUMBER.fullmatch(number) and number.lower() not in _NOT_FINITE:
        advice = "; lines of word gaps are written to out.tsv, without ids" if ":" in field else ""
        raise row.error(f"{quoted(field)} is not a number such as 0.5 or 1e-05{advice}", key)
    return finite_number(float(number), row, key)


def write_csv(rows: Parsed, file: Draft) -> int:
    """Write rows as CSV, ``id,label,p``; return their number.

    Raises UsageError for buckets, and for both units in one file.
    """
    row, unit = Row("", 0), None
    for row, parsed in rows:
        values = values_of(parsed)
        if BUCKETS in values:
            raise UsageError(message=f"line {row.number} is a line of buckets, which CSV has no labels for")
        row_unit = next(iter(values.keys() - {WORDS}))
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if unit is None:
            unit = row_unit
            writer.writerow([ID, LABEL, P if unit == PROBABILITIES else LOG_P])
        elif row_unit != unit:
            message = f"line {row.number} has {row_unit}, those before it {unit}: CSV has one column for both"
            raise UsageError(message=message)
        writer.writerows([row.number, word, repr(n)] for word, n in zip(values[WORDS], values[unit], strict=True))
        file.write(text.getvalue().encode())
    return row.number
