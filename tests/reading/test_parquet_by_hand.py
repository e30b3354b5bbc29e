"""Parquet that no writer writes: pyarrow would end the process, fill the memory, or read other words."""

import re
import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from geval_py import read_output
from geval_py.cli import main
from geval_py.errors import UnreadableFileError
from geval_py.reading import parquet_headers
from geval_py.reading.parquet_footer import read_footer
from geval_py.reading.parquet_headers import ReadAhead, pages_of

I32, I64, TEXT, LIST, STRUCT = 5, 6, 8, 9, 12  # kinds of Thrift's compact protocol
PLAIN, RLE, DELTA_LENGTH_BYTE_ARRAY, RLE_DICTIONARY = 0, 3, 6, 8
DOUBLE, BYTE_ARRAY = 5, 6
LEVELS = {"words": BYTE_ARRAY, "probabilities": DOUBLE, "buckets": DOUBLE}
MOST = parquet_headers.MOST_UNPACKED_BYTES
TOO_MUCH = rf"row group 1 would unpack to more than {MOST} bytes, from \d+; write smaller row groups, or TSV"


class Long(int):
    """An integer of 64 bits."""


def unsigned(value):
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def kind_of(value):
    kinds = {Long: I64, int: I32, bytes: TEXT, list: LIST, dict: STRUCT}
    return kinds[type(value)]


def thrift(value):
    """Encode a number, text, list or structure (fields by their numbers) in the compact protocol."""
    if isinstance(value, int):
        return unsigned(value << 1)
    if isinstance(value, bytes):
        return unsigned(len(value)) + value
    if isinstance(value, list):
        kind = kind_of(value[0]) if value else STRUCT
        return bytes([0xF0 | kind]) + unsigned(len(value)) + b"".join(map(thrift, value))
    found = b"".join(bytes([kind_of(of)]) + unsigned(number << 1) + thrift(of) for number, of in value.items())
    return found + b"\0"


def runs(*counts, width=1):
    """Encode pairs of a count and a value as RLE does."""
    return b"".join(unsigned(count << 1) + value.to_bytes(width, "little") for count, value in counts)


def levels(*counts):
    found = runs(*counts)
    return len(found).to_bytes(4, "little") + found


def page(count, content, encoding=PLAIN, defined=None):
    """A page of rows with a list of one entry each, or with the definition levels ``defined``."""
    body = levels((count, 0)) + (defined or levels((count, 3))) + content
    return thrift({1: 0, 2: len(body), 3: len(body), 5: {1: count, 2: encoding, 3: RLE, 4: RLE}}) + body


def coded(count, code=0, **options):
    """A page of words that are all the same one of a dictionary."""
    values = options.pop("values", count)
    return page(count, b"\x20" + runs((values, code), width=4), RLE_DICTIONARY, **options)


def text(*words):
    return b"".join(len(word).to_bytes(4, "little") + word for word in words)


def dictionary(*words):
    body = text(*words)
    return thrift({1: 2, 2: len(body), 3: len(body), 7: {1: len(words), 2: PLAIN}}) + body


def numbers(count, defined=None, values=None):
    content = struct.pack("<d", -0.5 if values else 0.5) * (count if values is None else values)
    return page(count, content, defined=defined)


def schema_of(names):
    found = [{4: b"schema", 5: len(names)}]
    for name in names:
        of_text = {6: 0, 10: {1: {}}} if LEVELS[name] == BYTE_ARRAY else {}
        leaf = {1: LEVELS[name], 3: 1, 4: b"element", **of_text}
        found += [{3: 1, 4: name.encode(), 5: 1, 6: 3, 10: {3: {}}}, {3: 2, 4: b"list", 5: 1}, leaf]
    return found


def write(path, rows, *, schema=None, groups=1, **columns):
    """Write columns of so many rows, each as its pages; the row group stands in the footer so often as ``groups``."""
    data, chunks = bytearray(b"PAR1"), []
    for name, pages in columns.items():
        body, start = b"".join(pages), len(data)
        of_column = {1: LEVELS[name], 2: [PLAIN], 3: [name.encode(), b"list", b"element"], 4: 0, 5: Long(rows)}
        of_column |= {6: Long(len(body)), 7: Long(len(body)), 9: Long(start)}
        chunks.append({2: Long(0), 3: of_column})
        data += body
    group = {1: chunks, 2: Long(len(data)), 3: Long(rows)}
    footer = thrift({1: 2, 2: schema or schema_of(columns), 3: Long(rows * groups), 4: [group] * groups})
    Path(path).write_bytes(data + footer + len(footer).to_bytes(4, "little") + b"PAR1")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("expected.tsv").write_text("a\n" * 3)


def reason():
    """Return why ``out.parquet`` is not read."""
    with pytest.raises(UnreadableFileError) as caught:
        list(read_output("out.parquet"))
    return caught.value.reason


def score():
    return main(["-o", "out.parquet", "-e", "expected.tsv", "-m", "PerplexityHashed"])


def test_files_by_hand_are_read():
    write("out.parquet", 3, words=[dictionary(b"a", b"b"), coded(3, 1)], probabilities=[numbers(3)])
    assert [row.words for row in read_output("out.parquet")] == [("b",)] * 3
    assert pq.read_table("out.parquet").column("words").to_pylist() == [["b"]] * 3
    assert score() == 0


@pytest.mark.parametrize("code", [1, 2**31 - 1, 2**31, 2**32 - 1])
def test_a_code_without_a_word(code, capsys):
    """pyarrow ends the process when it is asked for some of these words, and -1 was the last word of an answer."""
    write("out.parquet", 3, words=[dictionary(b"a"), coded(3, code)], probabilities=[numbers(3)])
    signed = code if code < 2**31 else code - 2**32
    wanted = f"it is not well-formed Parquet: Index {signed} out of bounds"
    assert reason() == wanted
    assert score() == 1
    assert capsys.readouterr().err == f"geval: Cannot read `out.parquet`: {wanted}\n"


@pytest.mark.parametrize("is_coded", [False, True])
def test_words_that_are_no_text(is_coded, capsys):
    words = [dictionary(b"\xff"), coded(3)] if is_coded else [page(3, text(b"\xff") * 3)]
    write("out.parquet", 3, words=words, probabilities=[numbers(3)])
    wanted = "it is not well-formed Parquet: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"
    assert reason() == wanted
    assert score() == 1
    assert capsys.readouterr().err == f"geval: Cannot read `out.parquet`: {wanted}\n"


@pytest.mark.parametrize("code", [3, 2**32 - 1])
def test_an_answer_without_a_word(code, capsys):
    body = dictionary(b"the", b"of", b"a")
    data = levels((3, 1)) + b"\x20" + runs((3, code), width=4)
    body += thrift({1: 0, 2: len(data), 3: len(data), 5: {1: 3, 2: RLE_DICTIONARY, 3: RLE, 4: RLE}}) + data
    column = {1: BYTE_ARRAY, 2: [PLAIN], 3: [b"expected"], 4: 0, 5: Long(3), 6: Long(len(body)), 7: Long(len(body))}
    schema = [{4: b"schema", 5: 1}, {1: BYTE_ARRAY, 3: 1, 4: b"expected", 6: 0, 10: {1: {}}}]
    group = {1: [{2: Long(0), 3: {**column, 9: Long(4)}}], 2: Long(len(body)), 3: Long(3)}
    footer = thrift({1: 2, 2: schema, 3: Long(3), 4: [group]})
    Path("expected.parquet").write_bytes(b"PAR1" + body + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    assert main(["-o", "expected.tsv", "-e", "expected.parquet", "-m", "Accuracy"]) == 1
    signed = code if code < 2**31 else code - 2**32
    wanted = f"it is not well-formed: a dictionary has no word {signed}"
    assert capsys.readouterr().err == f"geval: Cannot read `expected.parquet`: {wanted}\n"


@pytest.mark.parametrize(("count", "status"), [(2, 1), (3, 0), (4, 0)])
def test_pages_with_another_number_of_values_than_the_footer(count, status):
    """pyarrow reads them, and leaves out those that are too many."""
    write("out.parquet", 3, words=[page(count, text(*[b"a"] * count))], probabilities=[numbers(3)])
    assert score() == status


def test_an_empty_page():
    """pyarrow refuses some; so it reads all columns that have one."""
    words = [page(1, text(b"a")), page(0, b""), page(2, text(b"b", b"c"))]
    write("out.parquet", 3, words=words, probabilities=[numbers(3)])
    with open("out.parquet", "rb") as file:
        (group,) = read_footer("out.parquet", file).groups
        stored = ReadAhead(file, Path("out.parquet").stat().st_size, 0, memoryview(b""))
        assert [pages_of("out.parquet", stored, column).usual is None for column in group.columns] == [True, False]
    assert [row.words for row in read_output("out.parquet")] == [("a",), ("b",), ("c",)]
    assert score() == 0


ODD_RUNS = {
    "a head of 33 bits": "20 86 80 80 80 10 00000000",
    "more packed values than pyarrow counts": "00 ff ff ff ff 07",
    "a packed run beyond the page": "01 07 ff",
    "codes of 33 bits": "21 06 0000000000",
    "no codes": "",
}


@pytest.mark.parametrize("runs_of_codes", ODD_RUNS.values(), ids=ODD_RUNS)
def test_runs_that_pyarrow_refuses(runs_of_codes, capsys):
    content = bytes.fromhex(runs_of_codes)
    words = [dictionary(b"a"), page(3, content, RLE_DICTIONARY)]
    write("out.parquet", 3, words=words, probabilities=[numbers(3)])
    assert score() == 1
    assert capsys.readouterr().err == f"geval: Cannot read `out.parquet`: {reason()}\n"


def test_a_second_dictionary_after_an_empty_one(capsys):
    words = [dictionary(), dictionary(b"a"), coded(3)]
    write("out.parquet", 3, words=words, probabilities=[numbers(3)])
    assert score() == 1
    assert capsys.readouterr().err == f"geval: Cannot read `out.parquet`: {reason()}\n"


def test_a_word_that_is_twice_in_a_dictionary(capsys):
    """pyarrow leaves the second one out, and so would take "c" for "b"."""
    write("out.parquet", 3, words=[dictionary(b"a", b"a", b"b", b"c"), coded(3, 2)], probabilities=[numbers(3)])
    assert [row.words for row in read_output("out.parquet")] == [("b",)] * 3
    Path("expected.tsv").write_text("b\n" * 3)
    assert score() == 0
    assert float(capsys.readouterr().out) == pytest.approx(1 / (0.5 + 0.5 / 1024), rel=1e-12)
    long = [dictionary(b"a", b"a", b"x" * 100_000), coded(20_000)]
    write("out.parquet", 20_000, words=long, probabilities=[numbers(20_000)])
    assert re.fullmatch(TOO_MUCH, reason())


def test_any_number_of_lengths_in_a_few_bytes():
    delta = unsigned(1 << 31) + unsigned(1) + unsigned(1 << 28) + bytes(3)
    write("out.parquet", 1, words=[page(1, delta, DELTA_LENGTH_BYTE_ARRAY)], probabilities=[numbers(1)])
    assert reason() == "columns in the encoding DELTA_LENGTH_BYTE_ARRAY are not read; write them in PLAIN"


LONG = dictionary(b"x" * 100_000)
ORDERS = {
    "a dictionary is not the first page": [page(1, text(b"a")), LONG, coded(19_999)],
    "a page with a dictionary follows one without": [LONG, page(1, text(b"a")), coded(19_999)],
}


@pytest.mark.parametrize("wanted", ORDERS)
def test_a_dictionary_that_is_used_later(wanted):
    """Its longest word would not be known from the first row."""
    write("out.parquet", 20_000, words=ORDERS[wanted], probabilities=[numbers(20_000)])
    assert reason() == f"it is not well-formed Parquet: {wanted}"


@pytest.mark.parametrize("plain", [0, 1])
def test_a_dictionary_that_the_first_rows_do_not_use(plain):
    """Buckets stand in the place of the first words, so the first batch has no dictionary."""
    rows, buckets = 40_000, 20_000
    later = levels((buckets, 0), (rows - buckets, 3))
    words = [LONG, coded(rows - plain, defined=levels((buckets, 0), (rows - buckets - plain, 3)))]
    write(
        "out.parquet",
        rows,
        words=[*words, *[page(1, text(b"a"))] * plain],
        probabilities=[numbers(rows, later, rows - buckets)],
        buckets=[numbers(rows, levels((buckets, 3), (rows - buckets, 0)), buckets)],
    )
    assert re.fullmatch(TOO_MUCH, reason())


def test_row_groups_that_share_their_pages():
    """Each is read again: a few bytes take any time."""
    write("out.parquet", 3, words=[page(3, text(b"a") * 3)], probabilities=[numbers(3)], groups=2)
    assert reason() == "it is not well-formed Parquet: its columns overlap"


def test_a_page_of_too_many_bytes():
    whole = numbers(3)
    large = thrift({1: 1, 2: MOST + 1, 3: 0})
    write("out.parquet", 3, words=[large, page(3, text(b"a") * 3)], probabilities=[whole])
    assert reason() == f"a page unpacks to {MOST + 1} bytes, more than {MOST}; write smaller pages"


SCHEMAS = {
    "too deep": [{3: 0, 4: b"g", 5: 1}] * 70 + [{1: DOUBLE, 3: 0, 4: b"x"}],
    "a long name that many columns have": [{3: 0, 4: b"n" * 100_000, 5: 200}, *[{1: DOUBLE, 3: 0, 4: b"x"}] * 200],
}


@pytest.mark.parametrize("more", SCHEMAS.values(), ids=SCHEMAS)
def test_a_schema_that_takes_too_much_memory(more):
    """pyarrow ends the process where there is not enough."""
    schema = schema_of(["words", "probabilities"])
    schema[0][5] += 1
    pages = {"words": [page(3, text(b"a") * 3)], "probabilities": [numbers(3)]}
    write("out.parquet", 3, schema=schema + more, **pages)
    assert reason() == "it is not well-formed Parquet: its footer cannot be read"


def test_details_of_lighteval_with_a_name_twice():
    choices = pa.array([["a", "b"]])
    twice = pa.StructArray.from_arrays([choices, choices], names=["choices", "choices"])
    once = pa.StructArray.from_arrays([choices], names=["choices"])
    response = pa.StructArray.from_arrays([pa.array([[-1.0, -2.0]])], names=["logprobs"])
    wanted = "column doc.choices: lighteval's details of a multiple-choice task have a list there"
    for columns in ({"doc": twice}, {"doc": once, " doc": once}):
        names = [name.strip() for name in columns]
        table = pa.Table.from_arrays([*columns.values(), response], names=[*names, "model_response"])
        pq.write_table(table, "out.parquet")
        assert reason() == wanted
