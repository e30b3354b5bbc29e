"""A compressed file that several threads unpack has the bytes, and the errors, that one reader finds in it."""

import bz2
import gzip
import io
import lzma
import os
import random
import subprocess
import sys
import threading
import zlib
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples

from geval_py.errors import CorruptFileError, GevalError, TooLargeError
from geval_py.reading import unpacking
from geval_py.reading.compression import Decompressed, compression_of
from geval_py.reading.lines import LineReader
from geval_py.scoring.blocks import ThreadPool

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

CHANCE = random.Random(1913)
TEXT = b"".join(b"word%d:%r :0.5\n" % (n, CHANCE.random()) for n in range(20_000))
SKIPPABLE_FRAME = b"\x5a\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"notes"
CHECKS = (lzma.CHECK_CRC64, lzma.CHECK_CRC32, lzma.CHECK_SHA256, lzma.CHECK_NONE)


def number(value):
    """A number of an .xz (xz file format 1.2.1, section 1.2)."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def with_crc(data):
    return data + zlib.crc32(data).to_bytes(4, "little")


def xz(blocks, check=lzma.CHECK_CRC64):
    """A stream of an .xz with such blocks: each taken out of a stream of its own (sections 2 and 4)."""
    header, bodies, records = lzma.compress(b"", check=check)[:12], [], []
    for data in filter(None, blocks):
        stream = lzma.compress(data, check=check, preset=0)
        index_size = 4 * (int.from_bytes(stream[-8:-4], "little") + 1)
        index = stream[-12 - index_size : -12]
        padded = len(stream) - 12 - index_size - 12
        (unpadded,) = (size for size in range(padded - 3, padded + 1) if index[2:].startswith(number(size)))
        bodies.append(stream[12 : 12 + padded])
        records.append((unpadded, len(data)))
    index = b"\0" + number(len(records)) + b"".join(number(a) + number(b) for a, b in records)
    index = with_crc(index + bytes(-len(index) % 4))
    end = (len(index) // 4 - 1).to_bytes(4, "little") + header[6:8]
    made = header + b"".join(bodies) + index + zlib.crc32(end).to_bytes(4, "little") + end + b"YZ"
    assert lzma.decompress(made) == b"".join(blocks)
    return made


def zst(frames, *, sized=True, checksum=1):
    """Frames, which say what they unpack to, or do not; those of ``pzstd`` do not."""
    made = []
    for data in frames:
        compressor = zstd.ZstdCompressor(options={zstd.CompressionParameter.checksum_flag: checksum})
        if sized:
            compressor.set_pledged_input_size(len(data))
        made.append(compressor.compress(data, zstd.ZstdCompressor.FLUSH_FRAME))
    return b"".join(made)


def read(path, workers=None, size=1 << 21, **keywords):
    """The bytes of a file, or the sentence of its error."""
    found = []
    try:
        with LineReader(path, **keywords) as reader:
            if workers is not None:
                reader.unpack_by(workers)
            found.extend(iter(lambda: reader.block(size), b""))
            assert reader.position == reader.size
            reader.check_unchanged()
    except GevalError as error:
        return type(error), str(error)
    return b"".join(found)


texts = st.integers(0, 5000).flatmap(lambda size: st.integers(0, 100_000).map(lambda at: TEXT[at : at + size]))
parts = st.lists(texts, min_size=1, max_size=6)
streams = st.lists(
    st.tuples(st.builds(xz, parts, st.sampled_from(CHECKS)), st.sampled_from([b"", b"", bytes(4), bytes(300)])),
    min_size=1,
    max_size=3,
).map(lambda members: b"".join(member + padding for member, padding in members))
frames = st.lists(
    st.one_of(st.builds(zst, parts, sized=st.booleans(), checksum=st.sampled_from([0, 1])), st.just(SKIPPABLE_FRAME)),
    min_size=1,
    max_size=5,
).map(b"".join)
files = st.one_of(streams, frames)
bounds = st.fixed_dictionaries(
    {
        "MOST_BYTES": st.sampled_from([100, 3000, 10_000, 1 << 26, 1 << 26]),
        "MOST_FRAME_BYTES": st.sampled_from([100, 2000, 1 << 24]),
        "FIRST_READ_BYTES": st.sampled_from([1, 7, 500, 4000, 1 << 18]),
        "MOST_BLOCKS": st.sampled_from([1, 5, 1 << 17, 1 << 17]),
    }
)


def is_the_same(path, bounds, threads, **keywords):
    want = read(path, **keywords)
    with pytest.MonkeyPatch.context() as patch, ThreadPool(threads) as workers:
        for name, value in bounds.items():
            patch.setattr(unpacking, name, value)
        assert read(path, workers, **keywords) == want
    return want


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("unpacking") / "out.tsv"


PROPERTY = settings(deadline=None, derandomize=True, max_examples=examples(150))


@PROPERTY
@given(data=files, bounds=bounds, threads=st.integers(1, 4), size=st.integers(1, 9000), most=st.integers(0, 40_000))
def test_frames_and_blocks_are_read_as_by_one(data, bounds, threads, size, most, path):
    """The same bytes, or the same error of a file that unpacks to too much."""
    path.write_bytes(data)
    is_the_same(str(path), bounds, threads, size=size)
    is_the_same(str(path), bounds, threads, size=size, max_bytes=most)


def flipped(data, place, bits):
    place %= len(data)
    return data[:place] + bytes([data[place] ^ bits]) + data[place + 1 :]


damage = st.one_of(
    st.builds(lambda place, bits: lambda data: flipped(data, place, bits), st.integers(0), st.integers(1, 255)),
    st.builds(lambda place, bits: lambda data: flipped(data, -1 - place, bits), st.integers(0, 60), st.integers(1, 255)),
    st.integers(6).map(lambda length: lambda data: data[: max(length % len(data), 6)]),
    st.builds(
        lambda a, b: lambda data: data[: a % len(data)] + data[(a + b) % len(data) :], st.integers(10), st.integers(1, 90)
    ),
    st.sampled_from([b"x", bytes(5), b"the:0.5 :0.5\n" * 9, lzma.compress(TEXT)[:90], SKIPPABLE_FRAME[:-2], zst([TEXT])[:-1]]).map(
        lambda more: lambda data: data + more
    ),
)  # fmt: skip


@settings(PROPERTY, max_examples=examples(500))
@given(data=files, damage=damage, bounds=bounds, threads=st.integers(1, 4))
def test_damage_is_told_as_by_one(data, damage, bounds, threads, path):
    """A byte changed, a file cut, a piece left out, something after the end: the same error, or none."""
    path.write_bytes(damage(data))
    is_the_same(str(path), bounds, threads)


@pytest.mark.long
@settings(PROPERTY, max_examples=examples(5000))
@given(data=files, damage=damage, bounds=bounds, threads=st.integers(1, 4))
def test_much_damage_is_told_as_by_one(data, damage, bounds, threads, path):
    path.write_bytes(damage(data))
    is_the_same(str(path), bounds, threads)


CUT = [TEXT[at : at + 50_000] for at in range(0, len(TEXT), 50_000)]
INDEPENDENT = {
    "xz": xz(CUT),
    "two xz streams": xz(CUT[:5]) + bytes(8) + xz(CUT[5:], lzma.CHECK_SHA256),
    "zstd": zst(CUT),
    "zstd, unknown sizes": zst(CUT, sized=False),
    "zstd, skippable frames": b"".join(SKIPPABLE_FRAME + zst([data], sized=False) for data in CUT),
}
each_independent = pytest.mark.parametrize("data", INDEPENDENT.values(), ids=INDEPENDENT)


@pytest.fixture
def unpacked(monkeypatch):
    """What was unpacked: by which thread, and its bytes."""
    seen = []
    unpack = unpacking._unpack

    def noted(*given):
        start, data = unpack(*given)
        seen.append((threading.get_ident(), data))
        return start, data

    monkeypatch.setattr(unpacking, "_unpack", noted)
    monkeypatch.setattr(unpacking, "FIRST_READ_BYTES", 1 << 12)
    return seen


@each_independent
def test_threads_unpack_what_is_independent(data, path, unpacked):
    path.write_bytes(data)
    with ThreadPool(2) as workers:
        assert read(str(path), workers) == TEXT
    threads, parts = zip(*unpacked, strict=True)
    assert sum(len(part) for part in parts if part is not None) == len(TEXT)
    assert len(parts) > len(CUT) / 2
    assert threading.get_ident() not in threads


@each_independent
def test_a_file_may_be_read_for_a_while_before(data, path, unpacked):
    path.write_bytes(data)
    with LineReader(str(path)) as reader, ThreadPool(2) as workers:
        beginning = reader.block(120_000)
        reader.unpack_by(workers)
        assert beginning + b"".join(iter(reader.block, b"")) == TEXT
    assert len(unpacked) > len(CUT) / 2


ALONE = {
    "an xz block": xz([TEXT]),
    "an xz of nothing": xz([]),
    "a zstd frame": zst([TEXT]),
    "a zstd frame of unknown size": zst([TEXT], sized=False),
    "a gzip member": zlib.compress(TEXT, wbits=31),
}


@pytest.mark.parametrize("data", ALONE.values(), ids=ALONE)
def test_one_part_is_left_to_the_reader(data, path, unpacked):
    path.write_bytes(data)
    with ThreadPool(2) as workers:
        read(str(path), workers)
    assert unpacked == []


LARGE = {
    "the blocks of an xz": xz(CUT),
    "a block of the second xz stream": xz([data[:1000] for data in CUT[:3]]) + xz(CUT[3:]),
    "frames that say it": zst([*[data[:1000] for data in CUT[:3]], *CUT[3:]]),
    "frames that do not": zst([*[data[:1000] for data in CUT[:3]], *CUT[3:]], sized=False),
}


@pytest.mark.parametrize("data", LARGE.values(), ids=LARGE)
def test_what_unpacks_to_much_is_left_to_the_reader(data, path, unpacked, monkeypatch):
    """The memory holds no more than so much for each thread."""
    monkeypatch.setattr(unpacking, "MOST_BYTES", 30_000)
    path.write_bytes(data)
    with ThreadPool(2) as workers:
        found = read(str(path), workers)
    assert found == read(str(path))
    assert max((len(data or b"") for _, data in unpacked), default=0) <= 30_000


def test_an_index_that_lies_is_not_believed(path):
    """It says that a block has less; the reader says what is wrong."""
    data = xz([b"a:1\n" * 90, b"b:1\n" * 90])
    good = b"".join(map(number, (0, 2)))
    at = data.rindex(good)
    index = data[at:-12]
    lying = with_crc(index[:-4].replace(number(360), number(359), 1))
    path.write_bytes(data[:at] + lying + data[-12:])
    _, message = is_the_same(str(path), {}, 2)
    assert message.startswith(f"Corrupt xz file `{path}`: Corrupt input data\n")


ENDLESS = {
    "a number without end": b"\x80" * 800_000,
    "many blocks": b"\x80\x80\x80\x04" + b"\x01\x01" * 300_000,
    "more blocks than there are": b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
}


@pytest.mark.parametrize("index", ENDLESS.values(), ids=ENDLESS)
def test_an_index_made_to_take_long(index, path):
    index = b"\0" + index
    index = with_crc(index + bytes(-len(index) % 4))
    end = (len(index) // 4 - 1).to_bytes(4, "little") + b"\0\4"
    path.write_bytes(lzma.compress(b"") + index + zlib.crc32(end).to_bytes(4, "little") + end + b"YZ")
    _, message = is_the_same(str(path), {}, 2)
    assert message.startswith(f"Corrupt xz file `{path}`: something else follows its end mark\n")


class Failing(io.RawIOBase):
    """A file of which one byte cannot be read."""

    def __init__(self, data, place):
        self._data, self._place = io.BytesIO(data), place

    def readable(self):
        return True

    def seek(self, *place):
        return self._data.seek(*place)

    def tell(self):
        return self._data.tell()

    def readinto(self, buffer):
        if 0 <= self._place - self._data.tell() < len(buffer):
            raise OSError(5, "Input/output error")
        return self._data.readinto(buffer)


@pytest.mark.parametrize("share", [0.3, 0.7])
@each_independent
def test_a_read_that_fails_is_told_in_its_place(data, share, unpacked):
    """The bytes before it come first."""
    found, file = [], Failing(data, int(len(data) * share))
    stream = Decompressed(file, compression_of(data), "out.tsv", None)
    with ThreadPool(2) as workers:
        unpacking.unpack_in_threads(stream, file, workers)
        with pytest.raises(OSError, match="Input/output error"):
            found.extend(iter(partial(stream.read, 1000), b""))
    assert 0 < sum(map(len, found)) < len(TEXT)
    assert TEXT.startswith(b"".join(found))


@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize("pack", [zstd.compress, lzma.compress, gzip.compress, bz2.compress])
@pytest.mark.parametrize("threads", [0, 2])
def test_what_follows_an_end_mark_is_told_after_the_bytes_before_it(pack, members, threads):
    """Found by fuzzing: the single reader lost the last member, while threads gave it."""
    found, file = [], io.BytesIO(pack(b"ka:1\n") * members + b"something else")
    stream = Decompressed(file, compression_of(file.getvalue()), "out.tsv", None)
    with ThreadPool(2) as workers:
        if threads:
            unpacking.unpack_in_threads(stream, file, workers)
        with pytest.raises(CorruptFileError, match="something else follows its end mark"):
            found.extend(iter(partial(stream.read, 1000), b""))
    assert b"".join(found) == b"ka:1\n" * members


@pytest.mark.parametrize("threads", [0, 2])
def test_a_frame_that_is_not_as_long_as_it_says(threads, monkeypatch):
    """Found by fuzzing: whether libzstd looks at that depends on the bytes that are asked for, which differed."""
    monkeypatch.setattr(unpacking, "MOST_FRAMES", 2)  # in a part
    empty = bytes.fromhex("28b52ffd20a0010000")  # one that says it has 160 bytes (RFC 8878)
    found, file = [], io.BytesIO(zstd.compress(b"ka:1\n") + empty + zstd.compress(b"mo:1\n"))
    stream = Decompressed(file, compression_of(file.getvalue()), "out.tsv", 100)
    with ThreadPool(2) as workers:
        if threads:
            unpacking.unpack_in_threads(stream, file, workers)
        with pytest.raises(CorruptFileError, match="Data corruption detected"):
            found.extend(iter(partial(stream.read, 1000), b""))
    assert b"".join(found) == b"ka:1\n"


@pytest.mark.parametrize("options", [["-T2", "--block-size=40KiB"], ["-T1", "--block-list=9KiB,300KiB,1KiB"]])
def test_what_xz_writes(options, path, unpacked):
    """The command line tool; it writes one block unless there is more than a block."""
    packed = subprocess.run(["xz", "-0", *options], input=TEXT, capture_output=True, check=True).stdout
    path.write_bytes(packed)
    with ThreadPool(2) as workers:
        assert read(str(path), workers) == TEXT
    assert len(unpacked) > 3
    assert os.path.getsize(path) == len(packed)


@pytest.fixture
def workers():
    with ThreadPool(3) as three:
        yield three


def empty_xz(kind):
    """A stream without blocks, with checks of some kind (section 2 of the format)."""
    flags = bytes((0, kind))
    index = bytes(4)
    index += zlib.crc32(index).to_bytes(4, "little")
    header = b"\xfd7zXZ\0" + flags + zlib.crc32(flags).to_bytes(4, "little")
    footer = (len(index) // 4 - 1).to_bytes(4, "little") + flags
    return header + index + zlib.crc32(footer).to_bytes(4, "little") + footer + b"YZ"


@pytest.mark.parametrize("kind", [0, 15, 16, 127])
def test_a_kind_of_checks_that_there_is_not(kind, workers, tmp_path):
    (tmp_path / "out.tsv.xz").write_bytes(xz([TEXT[:1000]] * 2, 1) * 2 + empty_xz(kind))
    path = str(tmp_path / "out.tsv.xz")
    want = read(path)
    assert (want[0] is CorruptFileError) == (kind > 15)
    assert read(path, workers) == want


@pytest.mark.parametrize("window", [0x88, 0x89, 0xA0])
def test_a_window_that_needs_too_much_memory(window, workers, tmp_path):
    """Frames that are there whole are unpacked without a look at it (RFC 8878, 3.1.1.1): so they are left."""
    block = b"a\n" * 15_000
    size = (len(block) << 3 | 1).to_bytes(3, "little")
    frame = b"\x28\xb5\x2f\xfd" + bytes((0x80, window)) + len(block).to_bytes(4, "little") + size + block
    (tmp_path / "out.tsv.zst").write_bytes(frame * 40)
    path = str(tmp_path / "out.tsv.zst")
    want = read(path)
    assert (want[0] is CorruptFileError) == (window > 0x88)
    assert read(path, workers) == want


def test_threads_unpack_no_more_than_the_limit(workers, tmp_path, monkeypatch):
    """A file that unpacks to much is left to the single reader, which stops in time."""
    (tmp_path / "out.tsv.xz").write_bytes(xz([bytes(1_000_000)] * 8, 1))
    monkeypatch.setattr(unpacking, "_unpack", lambda *_: pytest.fail("a thread unpacked what is too much"))
    kind, message = read(str(tmp_path / "out.tsv.xz"), workers, max_bytes=100_000)
    assert (kind, message.partition("\n")[0]) == (
        TooLargeError,
        f"Too large: `{tmp_path}/out.tsv.xz` unpacks to more than 100000 bytes",
    )
