"""Lists in Parquet that the kernel decodes: what pyarrow reads from the same pages, whatever they are."""

import platform
import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from geval_py.cli import main
from geval_py.errors import GevalError, UnreadableFileError
from geval_py.reading import parquet, parquet_footer, parquet_headers, parquet_lists, parquet_schema
from geval_py.reading.listed import ListedRows, batch_of
from geval_py.reading.parquet_codecs import PackedError, codec_of
from geval_py.reading.parquet_lists import Decoding
from geval_py.reading.parquet_rows import read_rows
from geval_py.scoring import batches
from geval_py.scoring.blocks import ThreadPool
from geval_py.scoring.kernel import native
from geval_py.scoring.kernel.native import ParquetLists, read_struct

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

WORDS = pa.list_(pa.field("element", pa.string(), nullable=False))
STRICT = pa.schema([pa.field("words", WORDS, nullable=False), pa.field("probabilities", pa.list_(pa.float64()))])


def read(path, threads=0):
    """Return the rows of a file as they are read for a score, and in how many batches pyarrow read some of them."""
    with ThreadPool(threads) as pool:
        found = list(read_rows(str(path), Decoding(ParquetLists, read_struct, pool)))
    by_pyarrow = [batch for batch in found if not isinstance(batch, ListedRows)]
    batches = [batch_of(batch) if isinstance(batch, ListedRows) else batch for batch in found]
    rows = [row for batch in batches for row in batch.to_pylist()]
    return [{name: value for name, value in row.items() if value is not None} for row in rows], len(by_pyarrow)


def table(seed, rows=3000, words=None, kind=None, names=("words", "probabilities")):
    """Lists of words, some of them long or not ASCII, and of as many numbers."""
    draw = random.Random(seed)
    known = words or ["", "ą", "żółw", "a" * 40, *(f"w{n}" for n in range(300))]
    lists = [draw.choices(known, k=draw.choice((1, 1, 2, 7, 40))) for _ in range(rows)]
    numbers = [[draw.random() for _ in of] for of in lists]
    return pa.table([pa.array(lists), pa.array(numbers, pa.list_(kind or pa.float64()))], names=[*names])


def rows_of(path):
    rows = pq.read_table(path, columns=["words", "probabilities"]).to_pylist()
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


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
    "gzip": {"compression": "gzip"},
    "brotli": {"compression": "brotli"},
    "lz4": {"compression": "lz4"},
    **{
        f"pages of version 2, {name}": {"data_page_version": "2.0", **options}
        for name, options in {
            "default": {},
            "none": {"compression": "none"},
            "plain, zstd": {"compression": "zstd", "use_dictionary": False},
            "small pages": {"data_page_size": 500, "write_batch_size": 60},
            "small groups": {"row_group_size": 11},
        }.items()
    },
}
UNUSUAL = {
    "split floats": {
        "use_dictionary": ["words"],
        "column_encoding": {"probabilities.list.element": "BYTE_STREAM_SPLIT"},
    },
}


@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
@pytest.mark.parametrize("options", USUAL.values(), ids=USUAL)
def test_usual_pages_are_decoded(options, kind, threads, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_lists, "UNPACKED_AT_ONCE", 1000)  # so that threads have work
    for module in (parquet_headers, parquet_lists):
        monkeypatch.setattr(module, "ROWS_AT_ONCE", 70)
    pq.write_table(table(1, kind=kind), tmp_path / "out.parquet", **options)
    assert read(tmp_path / "out.parquet", threads) == (rows_of(tmp_path / "out.parquet"), 0)


@pytest.mark.parametrize("options", UNUSUAL.values(), ids=UNUSUAL)
def test_other_pages_are_read_by_pyarrow(options, tmp_path):
    pq.write_table(table(2, 300), tmp_path / "out.parquet", **options)
    assert read(tmp_path / "out.parquet") == (rows_of(tmp_path / "out.parquet"), 1)


def test_lists_that_may_not_be_missing(tmp_path):
    pq.write_table(table(3).cast(STRICT), tmp_path / "out.parquet")
    assert read(tmp_path / "out.parquet") == (rows_of(tmp_path / "out.parquet"), 0)


def test_other_columns_and_another_order(tmp_path):
    others = table(4).append_column("id", [list(range(3000))]).append_column("more", [[["x"]] * 3000])
    pq.write_table(others.select(["more", "probabilities", "id", "words"]), tmp_path / "out.parquet")
    found, left = read(tmp_path / "out.parquet")
    assert (found, left) == (rows_of(tmp_path / "out.parquet"), 0)


@pytest.mark.parametrize("row", [[], None, ["a", None]])
@pytest.mark.parametrize("place", [0, 1500, 2999])
def test_rows_of_another_form_are_read_by_pyarrow_from_there_on(row, place, tmp_path, monkeypatch):
    for module in (parquet_headers, parquet_lists):
        monkeypatch.setattr(module, "ROWS_AT_ONCE", 70)
    usual = table(5).to_pylist()
    usual[place] = {"words": row, "probabilities": row and [0.5] * len(row)}
    path = tmp_path / "out.parquet"
    small = {"data_page_size": 500, "write_batch_size": 30, "row_group_size": 1000, "use_dictionary": False}
    pq.write_table(pa.Table.from_pylist(usual), path, **small)
    found, left = read(path)
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
def test_pages_that_would_be_held_are_read_by_pyarrow(module, limit, tmp_path, monkeypatch):
    """So that a file cannot fill the memory with pages that pyarrow reads one by one."""
    monkeypatch.setattr(module, limit, 3)
    pq.write_table(table(8), tmp_path / "out.parquet", data_page_size=500, write_batch_size=30, use_dictionary=False)
    assert read(tmp_path / "out.parquet") == (rows_of(tmp_path / "out.parquet"), 1)


def test_text_that_is_taken_at_once_has_a_limit():
    """A few bytes may stand for a long word many times."""
    word = bytes(1 << 20)
    for rows, fits in ((127, True), (129, False)):
        decoder = ParquetLists("words", 3)
        assert decoder.add_dictionary(len(word).to_bytes(4, "little") + word, 1) == 1 << 20
        assert decoder.dictionary() == (bytes(6) + b"\x10\0", word)
        run = bytes([2 * rows & 127 | 128, 2 * rows >> 7])
        levels = b"".join(b"\3\0\0\0" + run + bytes([level]) for level in (0, 3))
        assert decoder.add_page(levels + b"\0" + run, rows, True) == rows
        assert (decoder.take(rows) is not None) == fits


def test_lists_of_different_lengths(tmp_path):
    path = tmp_path / "out.parquet"
    pq.write_table(pa.table({"words": [["a", "b"], ["c"]], "probabilities": [[0.5], [0.5, 0.5]]}), path)
    assert read(path) == (rows_of(path), 1)
    Path(tmp_path / "expected.tsv").write_text("a\n" * 2)
    assert main(["-o", str(path), "-e", f"{tmp_path}/expected.tsv", "-m", "PerplexityHashed"]) == 1


def outcome(batches):
    try:
        return [row for batch in batches() for row in batch.to_pylist()]
    except (GevalError, UnicodeDecodeError, pa.ArrowIndexError) as error:
        return type(error)


def outcome_for_a_score(path):
    try:
        return read(path)
    except (GevalError, UnicodeDecodeError, pa.ArrowIndexError) as error:
        return type(error), 0


@pytest.mark.parametrize(
    "options",
    [USUAL["none"], USUAL["plain"], USUAL["zstd"], {}, {"data_page_version": "2.0"}],
    ids=["none", "plain", "zstd", "", "v2"],
)
def test_each_byte_changed(options, tmp_path, pytestconfig):
    """What is decoded here is what pyarrow reads, and what it refuses is refused, unless only the damage is not read."""
    path, damaged = tmp_path / "out.parquet", str(tmp_path / "damaged.parquet")
    pq.write_table(table(6, 5, ["a", "bc", "def", "ą"]), path, write_statistics=False, store_schema=False, **options)
    data, whole = path.read_bytes(), rows_of(path)
    draw = random.Random(7)
    step = 1 if pytestconfig.getoption("--long") else 7
    decoded = 0
    for place in range(4, len(data), step):
        for change in (1, 0x80, draw.randrange(1, 256)):
            changed = bytearray(data)
            changed[place] ^= change
            Path(damaged).write_bytes(changed)
            found, by_pyarrow = outcome_for_a_score(damaged)
            wanted = outcome(lambda: parquet.batches(damaged))
            if found != whole or wanted is not UnreadableFileError:
                assert str(found) == str(wanted), (place, change)  # NaN is NaN
            decoded += isinstance(found, list) and not by_pyarrow
    assert decoded > 100 / step


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("unit", ["probabilities", "logprobs"])
def test_files_that_geval_convert_writes(unit, version, tmp_path, monkeypatch):
    """They have all columns, of which lists are missing."""
    sign = -1 if unit == "logprobs" else 1
    for module in (parquet_headers, parquet_lists):
        monkeypatch.setattr(module, "ROWS_AT_ONCE", 70)
    lists = table(9, 300).to_pydict()
    rows = [{"words": words, unit: [sign * p for p in of]} for words, of in zip(*lists.values(), strict=True)]
    types = {"words": WORDS, "probabilities": None, "logprobs": None, "buckets": None}
    schema = pa.schema([(name, kind or pa.list_(pa.float64())) for name, kind in types.items()])
    pq.write_table(
        pa.Table.from_pylist(rows, schema), tmp_path / "out.parquet", row_group_size=50, data_page_version=version
    )
    assert read(tmp_path / "out.parquet") == (rows, 0)
    rows[120][unit] = None
    rows[120]["buckets"] = [-1.0]
    pq.write_table(
        pa.Table.from_pylist(rows, schema), tmp_path / "out.parquet", row_group_size=50, data_page_version=version
    )
    found, by_pyarrow = read(tmp_path / "out.parquet")
    assert (found[:120], found[121:], by_pyarrow) == (rows[:120], rows[121:], 1)


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}], ids=["", "plain"])
def test_small_groups_are_read_together(options, tmp_path):
    """Each has a dictionary of its own, or none; one has another unit."""
    half = table(10, 150).select(["words"]).append_column("logprobs", table(10, 150).column("probabilities"))
    tables = [table(seed, 50 + seed) for seed in range(40)]
    for name, some in (("one.parquet", tables), ("two.parquet", [*tables, half, *tables])):
        schema = pa.unify_schemas([of.schema for of in some])
        with pq.ParquetWriter(tmp_path / name, schema, **options) as writer:
            for of in some:
                missing = [name for name in schema.names if name not in of.column_names]
                for column in missing:
                    of = of.append_column(column, pa.nulls(len(of), pa.list_(pa.float64())))
                writer.write_table(of.select(schema.names))
        with ThreadPool(2) as pool:
            batches = list(read_rows(str(tmp_path / name), Decoding(ParquetLists, read_struct, pool)))
        assert all(isinstance(batch, ListedRows) for batch in batches)
        assert len(batches) < len(some) / 3
        found, _ = read(tmp_path / name)
        wanted = pq.read_table(tmp_path / name).to_pylist()
        assert found == [{name: value for name, value in row.items() if value is not None} for row in wanted]


@pytest.mark.parametrize("codec", ["snappy", "gzip", "brotli", "zstd", "lz4_raw"])
def test_pages_that_unpack_to_another_size(codec):
    """pyarrow would leave what is missing as the memory was, with what another upload may have left there."""
    packed = pa.Codec(codec).compress(b"abc" * 100, asbytes=True)
    unpack = codec_of({"snappy": 1, "gzip": 2, "brotli": 4, "zstd": 6, "lz4_raw": 7}[codec]).unpack
    room = bytearray(300)
    unpack(packed, memoryview(room))
    assert room == b"abc" * 100
    for size in (0, 299, 301, 1 << 16):
        with pytest.raises(PackedError):
            unpack(packed, memoryview(bytearray(size)))
    for damaged in (b"", packed[:-1], b"\xff" + packed):
        with pytest.raises(PackedError):
            unpack(damaged, memoryview(room))


def test_bytes_that_are_not_packed():
    room = bytearray(3)
    copy = codec_of(0).unpack
    copy(b"abc", memoryview(room))
    assert room == b"abc"
    with pytest.raises(PackedError):
        copy(b"ab", memoryview(room))
    assert codec_of(5) is codec_of(99) is None


@pytest.mark.parametrize("size", [0, 300, 1 << 17])
def test_the_size_of_a_whole_frame(size):
    """Frames are unpacked together only if each is whole: the bytes of the next one are its own."""
    size_of = codec_of(6).size_of
    whole = pa.Codec("zstd").compress(random.Random(1).randbytes(size), asbytes=True)
    assert size_of(whole) == size_of(memoryview(whole)) == size
    for other in (whole[:-1], whole + b"x", whole + whole, whole[:5], b"", b"x" * 20):
        assert size_of(other) is None
    streamed = zstd.ZstdCompressor()
    assert size_of(streamed.compress(bytes(size)) + streamed.flush()) is None


def test_frames_that_unpack_to_another_size_than_they_say():
    """Pages are unpacked together, and none may have what belongs to the next one."""
    codec = codec_of(6)
    whole = pa.Codec("zstd").compress(b"abc" * 100, asbytes=True)
    frame = bytearray(whole)
    place = frame.index((300 - 256).to_bytes(2, "little"), 4)
    for wrong in (299, 301):
        frame[place : place + 2] = (wrong - 256).to_bytes(2, "little")
        assert codec.size_of(frame) == wrong
        with pytest.raises(PackedError):
            codec.unpack(bytes(frame) + whole, memoryview(bytearray(600)))


def test_groups_without_rows(tmp_path):
    lists, empty = table(11, 20), table(11, 20).slice(0, 0)
    for known in (lists.schema, lists.schema.append(pa.field("logprobs", pa.list_(pa.float64())))):
        with pq.ParquetWriter(tmp_path / "out.parquet", known) as writer:
            for of in (empty, lists, empty, empty, lists, empty):
                missing = [name for name in known.names if name not in of.column_names]
                for name in missing:
                    of = of.append_column(name, pa.nulls(len(of), known.field(name).type))
                writer.write_table(of)
        assert pq.read_metadata(tmp_path / "out.parquet").num_row_groups == 6
        assert read(tmp_path / "out.parquet") == (rows_of(tmp_path / "out.parquet"), 0)


def test_an_error_in_a_row_comes_before_one_in_a_later_row_group(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lists = pa.table({"words": [["a", "b c"], ["a"], ["a"]], "probabilities": [[0.5, 0.5], [1.0], [1.0]]})
    pq.write_table(lists, "out.parquet", row_group_size=1, write_statistics=False)
    data = bytearray(Path("out.parquet").read_bytes())
    start = pq.read_metadata("out.parquet").row_group(2).column(0).dictionary_page_offset
    data[start : start + 3] = b"\xff" * 3
    Path("out.parquet").write_bytes(data)
    Path("expected.tsv").write_text("a\n" * 3)
    assert main(["-o", "out.parquet", "-e", "expected.tsv", "-m", "PerplexityHashed"]) == 1
    assert "row 1, words[1]" in capsys.readouterr().err


def test_small_groups_of_long_words_are_read_alone(tmp_path):
    """Each is copied for each entry that has it, since other words are not in the dictionary."""
    lists = {"words": [["long" * 2500, "a", "b"]] * 50 + [["x"]], "probabilities": [[0.5, 0.3, 0.2]] * 50 + [[1.0]]}
    with pq.ParquetWriter(tmp_path / "out.parquet", pa.table(lists).schema, dictionary_pagesize_limit=1) as writer:
        for _ in range(20):
            writer.write_table(pa.table(lists))
    with ThreadPool(0) as pool:
        found = list(read_rows(str(tmp_path / "out.parquet"), Decoding(ParquetLists, read_struct, pool)))
    assert len(found) == 20
    assert read(tmp_path / "out.parquet") == (rows_of(tmp_path / "out.parquet"), 0)


def test_missing_lists_are_not_counted_for_long(tmp_path, monkeypatch):
    """A page of a few bytes may stand for millions of them."""
    types = {
        "words": pa.list_(pa.string()),
        "probabilities": pa.list_(pa.float64()),
        "logprobs": pa.list_(pa.float64()),
    }
    schema = pa.schema(list(types.items()))
    pq.write_table(
        pa.Table.from_pylist([{"words": ["a"], "probabilities": [1.0]}] * 50, schema), tmp_path / "out.parquet"
    )
    assert read(tmp_path / "out.parquet")[1] == 0
    monkeypatch.setattr(parquet_lists, "MOST_VALUES", 49)
    monkeypatch.setattr(ParquetLists, "add_page", lambda *_: pytest.fail("looked at"))
    assert read(tmp_path / "out.parquet")[1] == 1


def test_what_old_writers_write_is_read_by_pyarrow(tmp_path):
    """They say falsely that pages of version 2 are not compressed."""
    pq.write_table(table(12, 5), tmp_path / "out.parquet", store_schema=False)
    assert read(tmp_path / "out.parquet")[1] == 0
    data = (tmp_path / "out.parquet").read_bytes()
    name = b"parquet-cpp-arrow version"
    assert data.count(name) == 1
    (tmp_path / "out.parquet").write_bytes(data.replace(name, b"parquet-cpp version 1.5.1"))
    assert read(tmp_path / "out.parquet") == (rows_of(tmp_path / "out.parquet"), 1)


def test_a_column_behind_the_file(tmp_path):
    """Its place is in the footer, as a number of variable length."""
    path = tmp_path / "out.parquet"
    pq.write_table(table(13, 5), path, use_dictionary=False, store_schema=False, write_statistics=False)
    data = path.read_bytes()
    places = [pq.read_metadata(path).row_group(0).column(n).data_page_offset for n in (0, 1)]
    assert places[0] == 4
    length = int.from_bytes(data[-8:-4], "little")
    footer = data[-8 - length : -8].replace(b"\x26\x08", b"\x26" + b"\xfc" + b"\xff" * 8 + b"\x01")
    path.write_bytes(data[: -8 - length] + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(UnreadableFileError) as caught:
        read(path)
    assert caught.value.reason == "it is not well-formed Parquet: a column has fewer values than the footer says"


@pytest.mark.parametrize(("compression", "by_pyarrow"), [("none", 0), ("snappy", 1)])
def test_without_cramjam_pyarrow_unpacks(compression, by_pyarrow, tmp_path, monkeypatch):
    pq.write_table(table(14, 20), tmp_path / "out.parquet", compression=compression)
    codec_of.cache_clear()
    monkeypatch.setitem(sys.modules, "cramjam", None)
    try:
        assert read(tmp_path / "out.parquet") == (rows_of(tmp_path / "out.parquet"), by_pyarrow)
    finally:
        codec_of.cache_clear()


def test_the_limit_of_a_small_row_group(tmp_path, monkeypatch, capsys):
    """Its number is told, after the errors in rows before it."""
    monkeypatch.chdir(tmp_path)
    Path("expected.tsv").write_text("a\n" * 150)
    groups = [["a"]] * 50, [["b"]] * 50, [["long" * 1000]] * 50
    for fault in (None, "a b"):
        with pq.ParquetWriter("out.parquet", table(1).schema) as writer:
            for words in groups:
                rows = [*words[1:], [fault or words[0][0]]]
                writer.write_table(pa.table({"words": rows, "probabilities": [[1.0]] * 50}))
        monkeypatch.setattr(parquet_headers, "MOST_UNPACKED_BYTES", 1 << 16)
        with pytest.raises(UnreadableFileError) as caught:
            read("out.parquet")
        assert caught.value.reason.startswith("row group 3 would unpack to more than ")
        assert main(["-o", "out.parquet", "-e", "expected.tsv", "-m", "PerplexityHashed"]) == 1
        reason = "row 50, words[0]: " if fault else "row group 3 would unpack to more than "
        assert capsys.readouterr().err.startswith(f"geval: Cannot read `out.parquet`: {reason}")


def test_long_headers_are_not_read_with_the_pages():
    """A column could be read whole, for its headers, which are counted nowhere."""
    page = parquet_headers.Page(0, 20, 20, 1, False, False, None, True)
    far = [page._replace(place=place << 19) for place in range(9)]
    assert [len(piece) for piece in parquet_lists._in_pieces(far)] == [3, 3, 3]
    near = [page._replace(place=place << 6) for place in range(9)]
    assert [len(piece) for piece in parquet_lists._in_pieces(near)] == [9]


def test_only_the_command_keeps_freed_memory(tmp_path, monkeypatch):
    """A program that uses the package decides for itself."""
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"words": [["a"]], "probabilities": [[1.0]]}), "out.parquet")
    Path("expected.tsv").write_text("a\n")
    called = []
    monkeypatch.setattr(native, "keep_freed_memory", lambda: called.append(1))
    for is_command in (False, True):
        assert main(["-o", "out.parquet", "-e", "expected.tsv", "-m", "PerplexityHashed"]) == 0
        assert bool(called) == is_command
        monkeypatch.setattr(batches, "in_command", lambda: True)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc's arenas")
@pytest.mark.parametrize("keeps", [False, True])
def test_freed_memory_serves_all_threads(keeps, tmp_path):
    """Else each thread touches pages of its own."""
    program = f"""
import ctypes, threading
from geval_py.scoring.kernel import native
if {keeps}:
    native.keep_freed_memory()
at_once = threading.Barrier(4)
def take():
    taken = bytearray(100_000)
    at_once.wait()
threads = [threading.Thread(target=take) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
file = ctypes.c_void_p(libc.fopen(b"arenas.xml", b"w"))
libc.malloc_info(0, file)
libc.fclose(file)
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path)
    arenas = (tmp_path / "arenas.xml").read_text().count("<heap nr=")
    assert (arenas == 1) == keeps


def test_row_groups_that_are_read_together_have_limits():
    """Row groups without pages count for nothing but the bytes that were read ahead."""
    pages = parquet_headers.Pages(0, 0, 0, 0, 0, frozenset(), [])
    leaf = parquet_schema.Leaf("words", 0, "words", 3, True)

    def sizes(rows, stored, groups):
        ahead = parquet_headers.ReadAhead(None, 0, 0, memoryview(bytes(stored)))
        group = parquet_footer.Group(rows, ())
        planned = parquet_lists.Planned(0, group, (leaf, leaf), ahead, {0: pages}, True)
        return [len(run) for run in parquet_lists._runs([planned] * groups)]

    assert sizes(0, 0, 2500) == [1024, 1024, 452]
    assert sizes(0, 1 << 22, 5) == [2, 2, 1]
    assert sizes(4096, 0, 5) == [2, 2, 1]
