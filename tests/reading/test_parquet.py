"""Parquet of any writer: it is read and scored as the TSV of its rows, and refused before it fills the memory."""

import random
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples

from geval_py import read_output
from geval_py.checking.check import check_output
from geval_py.checking.rules import UNREADABLE
from geval_py.checking.targets import Target
from geval_py.cli import main
from geval_py.errors import UnreadableFileError
from geval_py.reading import parquet
from geval_py.reading.files import File
from geval_py.reading.outputs import output_at
from geval_py.reading.wordprobs import parse_line

TOO_MUCH = r"row group 1 would unpack to more than \d+ bytes, from \d+; write smaller row groups, or TSV"
MAP = pa.map_(pa.string(), pa.float64())
ENTRY = pa.list_(pa.field("element", pa.string(), nullable=False))
WRITERS = {
    "plain": {"use_dictionary": False, "compression": "none", "version": "1.0"},
    "small pages": {"data_page_size": 500, "write_batch_size": 30, "dictionary_pagesize_limit": 500},
    "small groups": {"row_group_size": 11, "data_page_version": "2.0", "compression": "zstd"},
}  # fmt: skip


def reason_of(path):
    with pytest.raises(UnreadableFileError) as caught:
        list(read_output(path))
    return caught.value.reason


def unreadable_output(path, **limits):
    """The problem of an output that cannot be read; None if there is none."""
    return next(iter(check_output(Target(output_at(path).file), UNREADABLE, **limits)), None)


def score(*options):
    return main(["-o", "out.parquet", "-e", "expected.tsv", "-m", "PerplexityHashed", *options])


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "expected.tsv").write_text("a\n" * 2)
    return tmp_path


def write(words, probabilities, **options):
    pq.write_table(pa.table({"words": words, "probabilities": probabilities}), "out.parquet", **options)


def rows(seed, count=300):
    """Lists of words, some of them long or not ASCII, and of as many numbers."""
    draw = random.Random(seed)
    words = ["", "ą", "żółw", "a" * 40, *(f"w{n}" for n in range(300))]
    lists = [draw.choices(words, k=draw.choice((1, 1, 2, 7, 40))) for _ in range(count)]
    return lists, [[draw.random() for _ in row] for row in lists]


def write_tsv(lists, numbers):
    with open("out.tsv", "w", encoding="utf-8") as file:
        for words, values in zip(lists, numbers, strict=True):
            numbers_of_row = (repr(float(value)).removesuffix(".0") for value in values)
            print(" ".join(map(":".join, zip(words, numbers_of_row, strict=True))), file=file)


FORMS = {
    "floats": {"probabilities": pa.list_(pa.float32())},
    "large lists": {"words": pa.large_list(pa.large_string()), "probabilities": pa.large_list(pa.float64())},
    "lists that may not be missing": {"words": ENTRY}, "maps": {"probabilities": MAP},
    "categories": {"words": pa.list_(pa.dictionary(pa.int32(), pa.string()))},
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("options", WRITERS.values(), ids=WRITERS)
def test_parquet_is_read_and_scored_as_tsv(form, options, here, capsys):
    lists, numbers = rows(1)
    types = {"words": pa.list_(pa.string()), "probabilities": pa.list_(pa.float64())} | FORMS[form]
    if form == "floats":
        numbers = [[np.float32(value) for value in row] for row in numbers]
    if form == "categories":
        flat = pa.array([word for row in lists for word in row]).dictionary_encode()
        words = pa.ListArray.from_arrays(np.cumsum([0, *map(len, lists)]).astype(np.int32), flat)
    else:
        words = pa.array(lists, types["words"])
    if form == "maps":
        pairs = [dict(zip(row, values, strict=True)) for row, values in zip(lists, numbers, strict=True)]
        lists, numbers = [list(row) for row in pairs], [list(row.values()) for row in pairs]
    others = {"id": list(range(len(lists))), "more": [[["x"]]] * len(lists)}
    values = [list(row.items()) for row in pairs] if form == "maps" else numbers
    columns = {"probabilities": pa.array(values, types["probabilities"]), "words": words, **others}
    if form == "maps":
        del columns["words"]
    pq.write_table(pa.table(columns), "out.parquet", **options)
    write_tsv(lists, numbers)
    assert list(read_output("out.parquet")) == list(read_output("out.tsv"))
    (here / "expected.tsv").write_text("w7\nżółw\n" * 150)
    for more in ([], ["-l"], ["-m", "Accuracy"]):
        assert score(*more) == 0
        assert main(["-o", "out.tsv", "-e", "expected.tsv", "-m", "PerplexityHashed", *more]) == 0
        found = capsys.readouterr().out.splitlines()
        assert found[: len(found) // 2] == found[len(found) // 2 :]


def test_rows_of_all_forms_in_one_file(here, capsys):
    """Logarithms, buckets, and columns of which lists are missing: in one batch, and in batches of one form."""
    forms = [
        ("a:0.5 :0.5", {"words": ["a", ""], "probabilities": [0.5, 0.5]}),
        ("a:-1.5 b:-2.5", {"words": ["a", "b"], "logprobs": [-1.5, -2.5]}),
        ("-1.5 -2.5 -0.5 -7.5", {"buckets": [-1.5, -2.5, -0.5, -7.5]}),
    ]
    table = [*forms * 3000, *(form for form in forms for _ in range(3000))]
    lines, columns = zip(*table, strict=True)
    (here / "out.tsv").write_text("".join(f"{line}\n" for line in lines))
    names = ("words", "probabilities", "logprobs", "buckets")
    pq.write_table(pa.table({name: [row.get(name) for row in columns] for name in names}), "out.parquet")
    assert list(read_output("out.parquet")) == list(read_output("out.tsv"))
    (here / "expected.tsv").write_text("a\n" * len(lines))
    for name in ("out.parquet", "out.tsv"):
        assert main(["-o", name, "-e", "expected.tsv", "-m", "LogLossHashed2"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == second


UNIT = st.sampled_from(["probabilities", "logprobs", "buckets"])
NUMBER = st.floats(width=32) | st.floats() | st.sampled_from([0.0, -0.0, 5e-324, 1e-5, 1e16, 1.0])


@settings(deadline=None, max_examples=examples(200))
@given(UNIT, st.lists(st.lists(NUMBER, max_size=4), min_size=1, max_size=4), st.booleans(), st.booleans())
def test_rows_joined_by_arrow_are_those_written_one_by_one(tmp_path_factory, unit, numbers, is_single, is_map):
    """The numbers read back the same, and a row that is no line is refused with the same words."""
    words = [["a", "\ufeffą", "", "ka:lo"][: len(row)] for row in numbers]
    columns = {unit: pa.array(numbers, pa.list_(pa.float32() if is_single else pa.float64()))}
    if unit != "buckets" and is_map:
        pairs = [list(zip(*row, strict=True)) for row in zip(words, numbers, strict=True)]
        columns = {unit: pa.array(pairs, MAP)}
    elif unit != "buckets":
        columns["words"] = pa.array(words, pa.list_(pa.string()))
    table, path = pa.table(columns), str(tmp_path_factory.getbasetemp() / "out.parquet")
    pq.write_table(table, path)

    def outcome(rows):
        try:
            return list(rows)
        except UnreadableFileError as error:
            return error.reason

    one_by_one = map(parse_line, parquet.lines_of_batch(File(path), table.to_batches()[0], 1))
    assert outcome(read_output(path)) == outcome(one_by_one)


def test_an_error_in_a_row_comes_before_one_in_a_later_row_group(here, capsys, monkeypatch):
    (here / "expected.tsv").write_text("a\n" * 150)
    for fault in (None, "a b"):
        with pq.ParquetWriter("out.parquet", pa.table({"words": [["a"]], "probabilities": [[1.0]]}).schema) as writer:
            for word in "a", "b", "long" * 1000:
                words = [[word * (1 + n % 2)] for n in range(49)] + [[fault or word]]
                table = {"words": words, "probabilities": [[1.0]] * 50}
                writer.write_table(pa.table(table), row_group_size=50)
        monkeypatch.setattr(parquet, "MAX_GROUP_BYTES", 3000)
        monkeypatch.setattr(parquet, "MAX_RATIO", 1)
        assert score() == 1
        reason = "row 50, word 1: " if fault else "row group 3 would unpack to more than "
        assert capsys.readouterr().err.startswith(f"geval: Cannot read `out.parquet`: {reason}")


def test_a_word_that_is_twice_in_a_map(here):
    rows = pa.array([[("a", 0.5)], [("a", 0.25), ("a", 0.5)]], MAP)
    pq.write_table(pa.table({"probabilities": rows}), "out.parquet")
    assert reason_of("out.parquet") == "row 2: a word is twice in the map"


def test_details_of_lighteval_with_a_column_twice(here):
    once = pa.StructArray.from_arrays([pa.array([["a", "b"]])], names=["choices"])
    response = pa.StructArray.from_arrays([pa.array([[-1.0, -2.0]])], names=["logprobs"])
    pq.write_table(pa.Table.from_arrays([once, once, response], ["doc", "doc", "model_response"]), "out.parquet")
    assert reason_of("out.parquet") == "column doc: there are two"


def test_files_that_are_damaged(here):
    write([["a"]], [[1.0]])
    whole = (here / "out.parquet").read_bytes()
    for data in (whole[:-1], whole[-20:], whole[:-8] + (1 << 30).to_bytes(4, "little") + b"PAR1", b"PAR1" * 9):
        (here / "out.parquet").write_bytes(data)
        assert reason_of("out.parquet").startswith("it is not well-formed Parquet: ")
        assert unreadable_output("out.parquet").rule.code == "E108"


def write_row(path, entries, **options):
    offsets = pa.array([0, entries], pa.int32())
    words = pa.DictionaryArray.from_arrays(pa.array(np.zeros(entries, np.int32)), ["a"])
    columns = [pa.ListArray.from_arrays(offsets, column) for column in (words, pa.array(np.full(entries, 0.5)))]
    pq.write_table(pa.table(columns, names=["words", "probabilities"]), path, store_schema=False, **options)


@pytest.mark.slow
def test_many_entries_in_a_few_bytes(here):
    """The sizes in the footer are looked at before anything is unpacked."""
    write_row("out.parquet", 20_000_000)
    assert (here / "out.parquet").stat().st_size < 200_000
    assert re.fullmatch(TOO_MUCH, reason_of("out.parquet"))
    assert score() == 1


def test_many_row_groups_have_one_limit(here, capsys, monkeypatch):
    write([[f"w{n}"] for n in range(250)], [[0.5]] * 250, row_group_size=50)
    (here / "expected.tsv").write_text("a\n" * 250)
    assert score() == 0
    output = output_at("out.parquet").path
    problem = unreadable_output(output, max_bytes=6000)
    summary = "the output cannot be read: it unpacks to more than 6000 bytes"
    assert (problem.rule.code, problem.summary) == ("E105", summary)
    assert unreadable_output(output, max_bytes=20_000) is None
    capsys.readouterr()
    monkeypatch.setattr(parquet, "DEFAULT_MAX_BYTES", 6000)
    monkeypatch.setattr(parquet, "MAX_RATIO", 1)
    assert score() == 1
    assert capsys.readouterr().err == "geval: Too large: `out.parquet`: it unpacks to more than 6000 bytes\n"
    monkeypatch.setattr(parquet, "MAX_RATIO", 100)  # a large file may unpack to more
    assert score() == 0
