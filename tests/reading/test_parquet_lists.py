"""Lists in Parquet that the kernel decodes: what pyarrow reads from the same pages, whatever they are."""

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from geval_py.cli import main
from geval_py.errors import GevalError
from geval_py.reading import parquet, parquet_headers, parquet_lists
from geval_py.reading.parquet_lists import Decoding, NotUsualError
from geval_py.scoring.blocks import ThreadPool
from geval_py.scoring.kernel.native import ParquetLists

WORDS = pa.list_(pa.field("element", pa.string(), nullable=False))
STRICT = pa.schema([pa.field("words", WORDS, nullable=False), pa.field("probabilities", pa.list_(pa.float64()))])


@pytest.fixture
def batches(monkeypatch):
    """Return the batches of a file, and how many of them pyarrow read."""

    def read(path, threads=0):
        left = []
        by_pyarrow = parquet.ParquetFile._by_pyarrow

        def noticed(*arguments):
            for found in by_pyarrow(*arguments):
                left.append(found)
                yield found

        monkeypatch.setattr(parquet.ParquetFile, "_by_pyarrow", noticed)
        with ThreadPool(threads) as pool:
            found = list(parquet.batches(str(path), decoding=Decoding(ParquetLists, pool)))
        return [row for batch in found for row in batch.to_pylist()], len(left)

    return read


def table(seed, rows=3000, words=None, kind=None, names=("words", "probabilities")):
    """Lists of words, some of them long or not ASCII, and of as many numbers."""
    draw = random.Random(seed)
    known = words or ["", "ą", "żółw", "a" * 40, *(f"w{n}" for n in range(300))]
    lists = [draw.choices(known, k=draw.choice((1, 1, 2, 7, 40))) for _ in range(rows)]
    numbers = [[draw.random() for _ in of] for of in lists]
    return pa.table([pa.array(lists), pa.array(numbers, pa.list_(kind or pa.float64()))], names=[*names])


def rows_of(path):
    return pq.read_table(path, columns=["words", "probabilities"]).to_pylist()


USUAL = {
    "default": {},
    "zstd": {"compression": "zstd"},
    "none": {"compression": "none"},
    "plain": {"use_dictionary": False},
    "a dictionary of numbers alone": {"use_dictionary": ["probabilities"]},
    "words that a dictionary cannot hold": {"dictionary_pagesize_limit": 500},
    "small pages": {"data_page_size": 500, "write_batch_size": 30},
    "small plain pages": {"data_page_size": 500, "write_batch_size": 30, "use_dictionary": False},
    "small groups": {"row_group_size": 11},
    "checksums": {"write_page_checksum": True},
    "of version 1": {"version": "1.0"},
}
UNUSUAL = {
    "gzip": {"compression": "gzip"},
    "lz4": {"compression": "lz4"},
    "pages of version 2": {"data_page_version": "2.0"},
    "split floats": {
        "use_dictionary": ["words"],
        "column_encoding": {"probabilities.list.element": "BYTE_STREAM_SPLIT"},
    },
}


@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
@pytest.mark.parametrize("options", USUAL.values(), ids=USUAL)
def test_usual_pages_are_decoded(options, kind, threads, batches, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_lists, "BYTES_AT_ONCE", 1000)  # so that threads have work
    monkeypatch.setattr(parquet, "ROWS_AT_ONCE", 70)
    pq.write_table(table(1, kind=kind), tmp_path / "out.parquet", **options)
    assert batches(tmp_path / "out.parquet", threads) == (rows_of(tmp_path / "out.parquet"), 0)


@pytest.mark.parametrize("options", UNUSUAL.values(), ids=UNUSUAL)
def test_other_pages_are_read_by_pyarrow(options, batches, tmp_path):
    pq.write_table(table(2, 300), tmp_path / "out.parquet", **options)
    assert batches(tmp_path / "out.parquet") == (rows_of(tmp_path / "out.parquet"), 1)


def test_lists_that_may_not_be_missing(batches, tmp_path):
    pq.write_table(table(3).cast(STRICT), tmp_path / "out.parquet")
    assert batches(tmp_path / "out.parquet") == (rows_of(tmp_path / "out.parquet"), 0)


def test_other_columns_and_another_order(batches, tmp_path):
    others = table(4).append_column("id", [list(range(3000))]).append_column("more", [[["x"]] * 3000])
    pq.write_table(others.select(["more", "probabilities", "id", "words"]), tmp_path / "out.parquet")
    found, left = batches(tmp_path / "out.parquet")
    assert (found, left) == (rows_of(tmp_path / "out.parquet"), 0)


@pytest.mark.parametrize("row", [[], None, ["a", None]])
@pytest.mark.parametrize("place", [0, 1500, 2999])
def test_rows_of_another_form_are_read_by_pyarrow_from_there_on(row, place, batches, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "ROWS_AT_ONCE", 70)
    usual = table(5).to_pylist()
    usual[place] = {"words": row, "probabilities": row and [0.5] * len(row)}
    path = tmp_path / "out.parquet"
    small = {"data_page_size": 500, "write_batch_size": 30, "row_group_size": 1000, "use_dictionary": False}
    pq.write_table(pa.Table.from_pylist(usual), path, **small)
    found, left = batches(path)
    assert found == rows_of(path)
    assert 0 < left <= 15


LIMITS = [
    (parquet_lists, "MOST_BYTES"),
    (parquet_lists, "MOST_VALUES"),
    (parquet_headers, "MOST_USUAL_BYTES"),
    (parquet_headers, "MOST_USUAL_VALUES"),
    (parquet_headers, "MOST_PAGES"),
]


@pytest.mark.parametrize(("module", "limit"), LIMITS)
def test_pages_that_would_be_held_are_read_by_pyarrow(module, limit, batches, tmp_path, monkeypatch):
    """So that a file cannot fill the memory with pages that pyarrow reads one by one."""
    monkeypatch.setattr(module, limit, 3)
    pq.write_table(table(8), tmp_path / "out.parquet", data_page_size=500, write_batch_size=30, use_dictionary=False)
    assert batches(tmp_path / "out.parquet") == (rows_of(tmp_path / "out.parquet"), 1)


def test_text_that_is_taken_at_once_has_a_limit():
    """A few bytes may stand for a long word many times."""
    word = bytes(1 << 20)
    for rows, fits in ((127, True), (129, False)):
        decoder = ParquetLists("words", 3)
        assert decoder.add_dictionary(len(word).to_bytes(4, "little") + word, 1) == (
            bytes(5) + b"\0\x10\0",
            word,
            1 << 20,
        )
        run = bytes([2 * rows & 127 | 128, 2 * rows >> 7])
        levels = b"".join(b"\3\0\0\0" + run + bytes([level]) for level in (0, 3))
        assert decoder.add_page(levels + b"\0" + run, rows, True) == rows
        assert (decoder.take(rows) is not None) == fits


def test_lists_of_different_lengths(batches, tmp_path):
    """The places of the rows in both columns are told apart when they are scored."""
    path = tmp_path / "out.parquet"
    pq.write_table(pa.table({"words": [["a", "b"], ["c"]], "probabilities": [[0.5], [0.5, 0.5]]}), path)
    assert batches(path) == (rows_of(path), 0)
    Path(tmp_path / "expected.tsv").write_text("a\n" * 2)
    assert main(["-o", str(path), "-e", f"{tmp_path}/expected.tsv", "-m", "PerplexityHashed"]) == 1


def outcome(read):
    try:
        return [row for batch in read() for row in batch.to_pylist()]
    except (GevalError, UnicodeDecodeError) as error:
        return type(error)


@pytest.mark.parametrize(
    "options", [USUAL["none"], USUAL["plain"], USUAL["zstd"], {}], ids=["none", "plain", "zstd", ""]
)
def test_each_byte_changed(options, tmp_path, pytestconfig):
    """What is decoded here is what pyarrow reads, and what it refuses is refused."""
    path, damaged = tmp_path / "out.parquet", str(tmp_path / "damaged.parquet")
    pq.write_table(table(6, 5, ["a", "bc", "def", "ą"]), path, write_statistics=False, store_schema=False, **options)
    data = path.read_bytes()
    draw = random.Random(7)
    step = 1 if pytestconfig.getoption("--long") else 7
    decoded = 0
    with ThreadPool(0) as pool:
        for place in range(4, len(data), step):
            for change in (1, 0x80, draw.randrange(1, 256)):
                changed = bytearray(data)
                changed[place] ^= change
                Path(damaged).write_bytes(changed)
                found = outcome(lambda: parquet.batches(damaged, decoding=Decoding(ParquetLists, pool)))
                wanted = outcome(lambda: parquet.batches(damaged))
                assert str(found) == str(wanted), (place, change)  # NaN is NaN
                decoded += isinstance(found, list)
    assert decoded > 100 / step


@pytest.mark.parametrize(
    ("size", "data"), [(3, "03"), (300, "ac 02"), (2**32 - 1, "ff ff ff ff 0f"), (-1, "80"), (-1, "")]
)
def test_the_size_that_snappy_data_begin_with(size, data):
    assert parquet_lists.snappy_size(memoryview(bytes.fromhex(data))) == size


def test_data_that_unpack_to_less_than_the_header_says():
    """pyarrow would leave the rest as the memory was, with what another upload may have left there."""
    column = parquet_lists.ListColumn.__new__(parquet_lists.ListColumn)
    for name in ("snappy", "zstd"):
        column._codec = pa.Codec(name)
        packed = memoryview(column._codec.compress(b"abc" * 100, asbytes=True))
        assert bytes(column._unpacked(packed, 300)) == b"abc" * 100
        for size in (0, 299, 301, 1 << 20):
            with pytest.raises(NotUsualError):
                column._unpacked(packed, size)
