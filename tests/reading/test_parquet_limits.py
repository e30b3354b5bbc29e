"""Parquet from strangers is refused before it unpacks to more than memory holds."""

import re
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from profiles import examples

from geval_py import read_output
from geval_py.checking.check import unreadable_output
from geval_py.cli import main
from geval_py.errors import UnreadableFileError
from geval_py.reading import (
    other_formats,
    parquet,
    parquet_batches,
    parquet_footer,
    parquet_headers,
    parquet_lists,
)
from geval_py.reading.outputs import output_at
from geval_py.reading.thrift import read_struct

TOO_MUCH = r"row group 1 would unpack to more than \d+ bytes, from \d+; write smaller row groups, or TSV"


def reason_of(path):
    with pytest.raises(UnreadableFileError) as caught:
        list(read_output(path))
    return caught.value.reason


def write_row(path, entries, word="a", **options):
    """Write one row that has the same entry many times."""
    offsets = pa.array([0, entries], pa.int32())
    words = pa.DictionaryArray.from_arrays(pa.array(np.zeros(entries, np.int32)), [word])
    numbers = pa.array(np.full(entries, 0.5))
    columns = [pa.ListArray.from_arrays(offsets, words), pa.ListArray.from_arrays(offsets, numbers)]
    pq.write_table(pa.table(columns, names=["words", "probabilities"]), path, store_schema=False, **options)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_pages_are_read_from_their_headers(version, tmp_path):
    path = tmp_path / "out.parquet"
    words = [[f"w{n % 100}", ""] for n in range(3000)]
    table = pa.table({"words": words, "probabilities": [[0.25, 0.75]] * 3000})
    pq.write_table(table, path, data_page_size=1000, data_page_version=version, compression="zstd")
    metadata = pq.read_metadata(path).row_group(0)
    with path.open("rb") as file:
        _, _, (group,), size, _ = parquet_footer.read_footer(str(path), file)
        assert (group.rows, size) == (3000, path.stat().st_size)
        for number, chunk in enumerate(group.columns):
            column = metadata.column(number)
            pages = pages_of(path, chunk)
            assert pages.values == column.num_values == 6000
            assert pages.coded == {True}
            assert 0 < pages.dictionary < pages.unpacked <= column.total_uncompressed_size
            assert 0 < pages.stored <= column.total_compressed_size


def columns_of(path):
    """Return the columns of the first row group."""
    with path.open("rb") as file:
        return parquet_footer.read_footer(str(path), file).groups[0].columns


def pages_of(path, column):
    with path.open("rb") as file:
        stored = parquet_headers.ReadAhead(file, path.stat().st_size, 0, memoryview(b""))
        return parquet_headers.pages_of(str(path), stored, column)


def test_a_footer_that_lies(tmp_path):
    path = tmp_path / "out.parquet"
    write_row(path, 5000)
    column = columns_of(path)[0]
    assert pages_of(path, column._replace(values=1)) == pages_of(path, column)
    with pytest.raises(UnreadableFileError) as caught:
        pages_of(path, column._replace(values=5001))
    assert caught.value.reason == "it is not well-formed Parquet: a column has fewer values than the footer says"


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False, "data_page_version": "2.0"}], ids=["", "plain"])
def test_any_byte_may_be_wrong(options, tmp_path):
    """pyarrow ends the process for some sizes in the footer; names in it may be no UTF-8, and codes have no word."""
    path = tmp_path / "out.parquet"
    pq.write_table(
        pa.table({"words": [["a", ""], ["bb", "c"]], "probabilities": [[0.5, 0.5], [0.2, 0.8]]}), path, **options
    )
    whole, errors = path.read_bytes(), 0
    for place in range(len(whole)):
        for n in range(examples(8, 1)):
            changed = whole[place] ^ 1 << (place + n) % 8
            path.write_bytes(whole[:place] + bytes([changed]) + whole[place + 1 :])
            try:
                list(read_output(path))
            except UnreadableFileError:
                errors += 1
    assert errors > len(whole) / 4


WRONG_HEADERS = {
    "the size is a structure": "15 00 1c 00 15 00",
    "the size is true": "15 00 11 15 00",
    "the size is there twice": "15 00 15 80 80 80 80 0f 06 04 00 15 00",
    "the size has 33 bits": "15 00 15 80 80 80 80 10 15 00",
    "the stored size has 64 bits": "15 00 15 00 15 fe ff ff ff ff ff ff ff ff 01 2c 15 02 15 00 00 00",
    "the size is negative": "15 00 15 01 15 00",
    "the stored size is a text": "15 00 15 00 18 00",
    "the page is a number": "15 00 15 00 15 00 25 00",
    "the page is missing": "15 00 15 00 15 00 00",
    "the number of values is a structure": "15 00 15 00 15 00 2c 1c 00 00",
    "the number of values is negative": "15 00 15 00 15 00 2c 15 01 15 00 00 00",
    "the encoding is a structure": "15 00 15 00 15 00 2c 15 02 1c 00 00",
    "the second field has the number 65538": "15 00 05 84 80 08 00 15 00",
    "a map": "15 00 15 00 15 00 1b 00",
}


@pytest.mark.parametrize("header", WRONG_HEADERS.values(), ids=WRONG_HEADERS)
def test_a_header_that_readers_may_take_for_another(header, tmp_path):
    path = tmp_path / "out.parquet"
    write_row(path, 5000)
    start = columns_of(path)[0].start
    data = bytearray(path.read_bytes())
    wrong = bytes.fromhex(header) + bytes(4)
    data[start : start + len(wrong)] = wrong
    path.write_bytes(data)
    assert reason_of(path) == "it is not well-formed Parquet: the header of a page cannot be read"
    assert unreadable_output(output_at(str(path)).path).rule.code == "E101"


def with_footer(path, footer):
    footer = bytes.fromhex(footer)
    path.write_bytes(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    return path


WRONG_FOOTERS = {
    "nothing": "",
    "row groups twice": "49 0c 09 08 0c 00",
    "row groups of numbers": "49 05",
    "a row group without columns": "49 1c 36 00 00 00",
    "a column without a place": "49 1c 19 1c 3c 55 00 25 00 00 00 26 00 00 00",
    "a list of another kind in a column": "49 1c 19 1c 3c 29 18 00 35 00 25 00 25 00 00 00 26 00 00 00",
    "a structure in structures": "ac " * 40 + "00 " * 41,
}


@pytest.mark.parametrize("footer", WRONG_FOOTERS.values(), ids=WRONG_FOOTERS)
def test_a_footer_that_cannot_be_read(footer, tmp_path):
    path = with_footer(tmp_path / "out.parquet", footer)
    assert reason_of(path) == "it is not well-formed Parquet: its footer cannot be read"


def test_a_footer_with_too_many_entries(tmp_path, monkeypatch):
    path = with_footer(tmp_path / "out.parquet", "29 fc ff ff ff 07" + "00 " * 100)
    assert reason_of(path) == f"its footer has more than {1 << 21} entries; write larger row groups"
    write_row(path, 2)
    monkeypatch.setattr(parquet_footer, "MOST_COLUMNS", 1)
    assert reason_of(path) == "its row groups have more than 1 columns in all; write larger row groups"


def test_an_empty_list_of_no_kind():
    """fastparquet writes such lists."""
    assert read_struct(bytes.fromhex("19 00 00"), {1: [{}]}, 10) == ({1: []}, 3)


def test_a_file_that_is_cut(tmp_path):
    path = tmp_path / "out.parquet"
    write_row(path, 2)
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    assert reason_of(path) == "it is not well-formed Parquet: it does not end with PAR1"
    path.write_bytes(data[-20:])
    assert reason_of(path) == "it is not well-formed Parquet: its beginning is missing"


def test_a_page_that_ends_behind_its_column(tmp_path):
    path = tmp_path / "out.parquet"
    path.write_bytes(bytes.fromhex("15 00 15 00 15 a8 ff 3f 2c 15 02 15 00 00 00") + bytes(100))
    with pytest.raises(UnreadableFileError) as caught:
        pages_of(path, parquet_footer.Chunk(codec=0, values=1, start=0, size=110, is_readable=True))
    assert caught.value.reason == "it is not well-formed Parquet: a page ends behind its column"


def test_a_row_group_that_unpacks_to_too_much(tmp_path, monkeypatch):
    path = tmp_path / "out.parquet"
    write_row(path, 1_000_000)
    monkeypatch.setattr(parquet_headers, "MOST_UNPACKED_BYTES", 1 << 20)
    assert re.fullmatch(TOO_MUCH, reason_of(path))


def test_a_row_of_long_words(tmp_path, monkeypatch):
    path = tmp_path / "out.parquet"
    write_row(path, 1000, "long" * 1000)
    monkeypatch.setattr(parquet_batches, "MOST_LINE_BYTES", 4_000_000)
    for module in (parquet, parquet_headers):
        monkeypatch.setattr(module, "BYTES_AT_ONCE", 1 << 20)
    assert reason_of(path) == "row 1: it unpacks to 4064000 bytes, more than 4000000"


def test_a_word_that_is_repeated_beside_others(tmp_path, monkeypatch):
    """Where pages without a dictionary follow, pyarrow copies the words, so the longest one counts."""
    path = tmp_path / "out.parquet"
    words = [["long" * 1000] * 1000, [f"w{n}" for n in range(1000)]]
    table = pa.table({"words": words, "probabilities": [[0.5] * 1000] * 2})
    pq.write_table(table, path, dictionary_pagesize_limit=1000, data_page_size=100)
    assert len(list(read_output(path))) == 2
    monkeypatch.setattr(parquet_headers, "MOST_UNPACKED_BYTES", 1 << 20)
    assert re.fullmatch(TOO_MUCH, reason_of(path))


def test_the_types_that_arrow_notes_are_left_out(tmp_path):
    """With two dictionaries, the second one's words are plain: pyarrow would join both, and skip words that are twice."""
    path = tmp_path / "out.parquet"

    def columns(letter):
        words = pa.DictionaryArray.from_arrays(pa.array(np.arange(500) % 100), [f"{letter}{n}" for n in range(100)])
        lists = [pa.ListArray.from_arrays(np.arange(501), of) for of in (words, np.full(500, 0.5))]
        return pa.table(lists, names=["words", "probabilities"])

    pq.write_table(pa.concat_tables([columns("a"), columns("b")]), path)
    assert "dictionary" in str(pq.read_schema(path))
    assert pages_of(path, columns_of(path)[0]).coded == {True, False}
    assert list(parquet.read_parquet(str(path))) == [f"{letter}{n % 100}:0.5" for letter in "ab" for n in range(500)]


def test_words_that_share_their_beginnings(tmp_path):
    path = tmp_path / "out.parquet"
    table = pa.table({"words": [["abc", "abd"]], "probabilities": [[0.5, 0.5]]})
    encodings = {"words.list.element": "DELTA_BYTE_ARRAY"}
    pq.write_table(table, path, use_dictionary=False, column_encoding=encodings)
    assert reason_of(path) == "columns in the encoding DELTA_BYTE_ARRAY are not read; write them in PLAIN"


def test_a_footer_too_long(tmp_path, monkeypatch):
    path = tmp_path / "out.parquet"
    write_row(path, 2)
    data = path.read_bytes()
    path.write_bytes(data[:-8] + (1 << 30).to_bytes(4, "little") + b"PAR1")
    assert reason_of(path) == "it is not well-formed Parquet: its beginning is missing"
    path.write_bytes(data)
    size = int.from_bytes(data[-8:-4], "little")
    monkeypatch.setattr(parquet_footer, "MOST_FOOTER_BYTES", size - 1)
    assert reason_of(path) == f"its footer has {size} bytes, more than {size - 1}; write larger row groups"


@pytest.mark.parametrize("ending", [".parquet", ".jsonl.xz", ".csv.gz"])
def test_the_checker_has_a_limit_of_bytes(ending, tmp_path):
    (tmp_path / "out.tsv").write_text("the:0.5 :0.5\n" * 1000)
    path = str(tmp_path / f"new{ending}")
    other_formats.convert(str(tmp_path / "out.tsv"), path)
    output = output_at(path).path
    problem = unreadable_output(output, max_bytes=5000)
    assert (problem.rule.code, problem.summary) == ("E105", "it unpacks to more than 5000 bytes")
    assert unreadable_output(output) is None


def stored_in(path, group):
    """Count the bytes of the pages of a row group."""
    with path.open("rb") as file:
        columns = parquet_footer.read_footer(str(path), file).groups[group].columns
    return sum(pages_of(path, column).stored for column in columns)


def write_bomb(path, rows, size, groups=1):
    """Write rows that each have one long word of a dictionary."""
    schema = pa.schema([("words", pa.list_(pa.string())), ("probabilities", pa.list_(pa.float64()))])
    offsets = pa.array(np.arange(rows + 1, dtype=np.int32))
    words = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), ["x" * size])
    numbers = pa.ListArray.from_arrays(offsets, pa.array(np.full(rows, 0.5)))
    if groups > 1:
        words = words.dictionary_decode()
    table = pa.table([pa.ListArray.from_arrays(offsets, words), numbers], names=schema.names)
    with pq.ParquetWriter(path, table.schema, store_schema=False, compression="zstd") as writer:
        for _ in range(groups):
            writer.write_table(table)


@pytest.mark.parametrize("rows", [300, pytest.param(10_000_000, marks=pytest.mark.long)])
def test_a_long_word_that_many_rows_have(rows, tmp_path, capsys, monkeypatch):
    """Nothing of it is hashed: ten million rows would have ten terabytes of text."""
    write_bomb(tmp_path / "out.parquet", rows, 1_000_000)
    assert (tmp_path / "out.parquet").stat().st_size < 100_000
    (tmp_path / "expected.tsv").write_text("a\n" * rows)
    monkeypatch.setattr("geval_py.scoring.batches.row_losses", lambda *_: pytest.fail("hashed"))
    monkeypatch.chdir(tmp_path)
    stored = stored_in(tmp_path / "out.parquet", 0)
    reason = f"row group 1 would unpack to more than 268435456 bytes, from {stored}; write smaller row groups, or TSV"
    assert main(["-o", "out.parquet", "-e", "expected.tsv", "-m", "PerplexityHashed"]) == 1
    assert capsys.readouterr().err == f"geval: Cannot read `out.parquet`: {reason}\n"
    problem = unreadable_output(output_at(str(tmp_path / "out.parquet")).path)
    assert (problem.rule.code, problem.summary) == ("E101", f"the output cannot be read: {reason}")


def test_many_row_groups_have_one_limit(tmp_path, capsys, monkeypatch):
    write_bomb(tmp_path / "out.parquet", 50, 10_000, groups=5)
    (tmp_path / "expected.tsv").write_text("a\n" * 250)
    monkeypatch.chdir(tmp_path)
    score = ["-o", "out.parquet", "-e", "expected.tsv", "-m", "PerplexityHashed"]
    assert main(score) == 0
    capsys.readouterr()
    output = output_at("out.parquet").path
    problem = unreadable_output(output, max_bytes=2_000_000)
    assert (problem.rule.code, problem.summary) == ("E105", "it unpacks to more than 2000000 bytes")
    assert unreadable_output(output, max_bytes=3_000_000) is None
    monkeypatch.setattr(parquet_headers, "DEFAULT_MAX_BYTES", 2_000_000)
    assert main(score) == 1
    assert capsys.readouterr().err == "geval: Too large: `out.parquet` unpacks to more than 2000000 bytes\n"
    monkeypatch.setattr(parquet_headers, "MOST_RATIO", 10_000)  # a large file may unpack to more
    assert main(score) == 0


@pytest.mark.long
def test_the_score_of_much_text_can_be_interrupted(tmp_path):
    """Twenty gigabytes of text, hashed in ten seconds or so."""
    write_bomb(tmp_path / "out.parquet", 200, 1_000_000, groups=90)
    (tmp_path / "expected.tsv").write_text("a\n" * 18_000)
    command = [sys.executable, "-m", "geval_py", "-o", "out.parquet", "-e", "expected.tsv", "-m", "PerplexityHashed"]
    run = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    time.sleep(3)
    run.send_signal(signal.SIGINT)
    assert run.communicate(timeout=3)[1] == ""
    assert run.returncode == -signal.SIGINT


@pytest.mark.parametrize("column", ["a map", "lighteval's choices"])
def test_long_words_in_other_columns(column, tmp_path, monkeypatch):
    """pyarrow copies them for each entry."""
    path, words = tmp_path / "out.parquet", ["x" * 10_000, "y"]
    if column == "a map":
        kind = pa.map_(pa.string(), pa.float64())
        table = pa.table({"probabilities": pa.array([[(word, 0.5) for word in words]] * 100, kind)})
    else:
        table = pa.table({"doc": [{"choices": words}] * 100, "model_response": [{"logprobs": [-1.0, -2.0]}] * 100})
    pq.write_table(table, path)
    assert len(list(read_output(path))) == 100
    monkeypatch.setattr(parquet_headers, "MOST_UNPACKED_BYTES", 1 << 20)
    assert re.fullmatch(TOO_MUCH, reason_of(path))


def test_batches_of_long_words_are_split(tmp_path, monkeypatch):
    """So that the work can be interrupted between them, and none is more than a line may be."""
    path = tmp_path / "out.parquet"
    columns = [[[value] * (1 + n % 7) for n in range(100)] for value in ("long" * 1000, 0.5)]
    pq.write_table(pa.table(columns, names=["words", "probabilities"]), path)
    whole = list(read_output(path))
    monkeypatch.setattr(parquet_batches, "MOST_LINE_BYTES", 7 * 4064)
    found = list(parquet.batches(str(path)))
    assert list(read_output(path)) == whole
    assert sum(batch.num_rows for batch in found) == 100
    assert len(found) > 50
    assert [row for batch in found for row in batch.to_pylist()] == pq.read_table(path).to_pylist()


@pytest.mark.parametrize("long", [0, 3, 9])
@pytest.mark.parametrize("mode", [[], ["-l"]])
def test_a_row_that_is_too_long(mode, long, tmp_path, capsys, monkeypatch):
    """From the columns as from lines."""
    words = [["long" * 1000] * (10 if n == long else 9) for n in range(10)]
    table = pa.table({"words": words, "probabilities": [[0.5] * len(row) for row in words]})
    pq.write_table(table, tmp_path / "out.parquet")
    (tmp_path / "expected.tsv").write_text("a\n" * 10)
    monkeypatch.chdir(tmp_path)
    for module in (parquet_batches, parquet_lists):
        monkeypatch.setattr(module, "MOST_LINE_BYTES", 40000)
    assert main(["-o", "out.parquet", "-e", "expected.tsv", "-m", "PerplexityHashed", *mode]) == 1
    reason = f"row {long + 1}: it unpacks to 40640 bytes, more than 40000"
    assert capsys.readouterr().err == f"geval: Cannot read `out.parquet`: {reason}\n"


BOUNDED = """
import resource, sys
from geval_py.cli import main
resource.setrlimit(resource.RLIMIT_DATA, (1_500_000_000,) * 2)
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.long
@pytest.mark.parametrize("command", [["-e", "expected.tsv", "-m", "PerplexityHashed", "-o"], ["check"]])
def test_a_billion_entries_in_a_few_bytes(command, tmp_path):
    write_row(tmp_path / "out.parquet", 100_000_000)
    assert (tmp_path / "out.parquet").stat().st_size < 200_000
    (tmp_path / "expected.tsv").write_text("a\n")
    run = subprocess.run(
        [sys.executable, "-c", BOUNDED, *command, "out.parquet"], cwd=tmp_path, capture_output=True, text=True
    )
    assert run.returncode == 1
    assert "row group 1 would unpack to more than" in run.stdout + run.stderr
