"""Files: what a name opens, how it is decompressed, and the lines that come out."""

import bz2
import errno
import gzip
import hashlib
import io
import lzma
import os
import random
import socketserver
import sys
import threading
import zlib
from types import SimpleNamespace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from profiles import examples

from geval_py.errors import CorruptFileError, TooLargeError, UnreadableFileError
from geval_py.reading import files
from geval_py.reading import lines as line_reading
from geval_py.reading.compression import compression_of, foreign_content, zstd_module
from geval_py.reading.files import File, absolute, is_address, join
from geval_py.reading.lines import LineReader, decode_lines, read_lines, sha256_of
from geval_py.text import visible

PROPERTY = settings(deadline=None, derandomize=True)

zstd = zstd_module()
BOM = "\ufeff".encode()
DIGITS = random.Random(1611)
LINES = [f"żółw{n}:{DIGITS.random()} 水:{DIGITS.random()} :0.5" for n in range(300)]
TEXT = "".join(line + "\n" for line in LINES).encode()
OTHER_TEXT = b"the:0.5 :0.5\n" * 20
WRITE_IT_AGAIN = "\n  write it again, or upload it again: a part of it may be missing"


def zstd_with_checksum(data):
    return zstd.compress(data, options={zstd.CompressionParameter.checksum_flag: 1})


COMPRESS = {"gzip": gzip.compress, "xz": lzma.compress, "bzip2": bz2.compress, "zstd": zstd_with_checksum}
MAGIC_LENGTH = {"gzip": 3, "xz": 6, "bzip2": 10, "zstd": 4}
SKIPPABLE_FRAME = b"\x5a\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"notes"
each_compression = pytest.mark.parametrize("kind", COMPRESS)


@pytest.fixture
def stored(tmp_path):
    """Store bytes in a file whose name says nothing about them; gives its path."""

    def store(data, name="out.tsv"):
        (tmp_path / name).write_bytes(data)
        return str(tmp_path / name)

    return store


@pytest.fixture
def standard_input(monkeypatch):
    def set_it(data):
        stream = io.BytesIO(data) if isinstance(data, bytes) else data
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stream))
        return stream

    return set_it


class Trickle(io.RawIOBase):
    """A stream that gives one byte at a time and, if there is an error, raises it at the end."""

    def __init__(self, data, error=None):
        self.data, self.error = io.BytesIO(data), error

    def readable(self):
        return True

    def readinto(self, buffer):
        byte = self.data.read(1)
        if not byte and self.error:
            raise self.error
        buffer[: len(byte)] = byte
        return len(byte)


def read_all(path, **keywords):
    with LineReader(path, **keywords) as reader:
        return b"".join(iter(reader.block, b""))


def refused(path):
    with pytest.raises((CorruptFileError, TooLargeError, UnreadableFileError)) as caught:
        read_all(path)
    assert caught.value.path == path
    return caught.value


@pytest.mark.parametrize("kind", [None, *COMPRESS])
@pytest.mark.parametrize("name", ["out.tsv", "out.tsv.gz", "out.tsv.xz", "out.tsv.bz2", "out.tsv.zst"])
def test_what_a_file_is_is_decided_by_its_first_bytes_not_by_its_name(kind, name, stored):
    path = stored(COMPRESS[kind](TEXT) if kind else TEXT, name)
    assert list(read_lines(path)) == LINES
    with LineReader(path) as reader:
        assert reader.compression == kind


HEADS = {
    "nothing": (b"", None), "text": (b"the:0.5 :0.5\n", None), "BZ as a word": (b"BZ:0.5 :0.5\n", None),
    "BZh and a level": (b"BZh9:0.5 :0.5\n", None), "BZh and nearly pi": (b"BZh91AY&SX\n", None),
    "bzip2": (b"BZh91AY&SY...", "bzip2"), "bzip2 of nothing": (b"BZh9\x17rE8P\x90...", "bzip2"),
    "gzip": (b"\x1f\x8b\x08...", "gzip"), "xz": (b"\xfd7zXZ\0...", "xz"), "xz cut": (b"\xfd7zXZ", None),
    "zstd": (b"\x28\xb5\x2f\xfd...", "zstd"), "zstd, first skippable": (b"\x50\x2a\x4d\x18...", "zstd"),
    "zstd, last skippable": (b"\x5f\x2a\x4d\x18...", "zstd"),
    "zstd, after the last skippable": (b"\x60\x2a\x4d\x18...", None),
}  # fmt: skip


@pytest.mark.parametrize(("head", "name"), HEADS.values(), ids=HEADS)
def test_magic_numbers(head, name):
    found = compression_of(head)
    assert (found and found.name) == name


MEMBERS = {
    "two gzip members": (lambda a, b: gzip.compress(a) + gzip.compress(b)),
    "gzip, an empty member between": (lambda a, b: gzip.compress(a) + gzip.compress(b"") + gzip.compress(b)),
    "gzip, zeros between": (lambda a, b: gzip.compress(a) + bytes(7) + gzip.compress(b)),
    "gzip, zeros after": (lambda a, b: gzip.compress(a + b) + bytes(512)),
    "xz, padding between": (lambda a, b: lzma.compress(a) + bytes(8) + lzma.compress(b)),
    "xz, padding after": (lambda a, b: lzma.compress(a) + lzma.compress(b) + bytes(4)),
    "two bzip2 streams": (lambda a, b: bz2.compress(a) + bz2.compress(b, 1)),
    "bzip2, an empty stream first": (lambda a, b: bz2.compress(b"") + bz2.compress(a + b)),
    "two zstd frames": (lambda a, b: zstd.compress(a) + zstd.compress(b)),
    "zstd, a skippable frame first": (lambda a, b: SKIPPABLE_FRAME + zstd.compress(a + b)),
    "zstd, a skippable frame between": (lambda a, b: zstd.compress(a) + SKIPPABLE_FRAME + zstd.compress(b)),
    "a line in two members": (lambda a, b: gzip.compress(a + b[:5]) + gzip.compress(b[5:])),
}


@pytest.mark.parametrize("compose", MEMBERS.values(), ids=MEMBERS)
def test_compressed_files_of_several_members_or_frames_are_read_whole(compose, stored, standard_input):
    """Also byte by byte; GEval 1.42.2 reads the first member of a .gz."""
    whole = compose(TEXT, OTHER_TEXT)
    standard_input(Trickle(whole) if len(compose(b"", b"")) < 10_000 else whole)
    assert read_all(stored(whole)) == read_all("-") == TEXT + OTHER_TEXT


@pytest.mark.parametrize("data", [
    b"", BOM, SKIPPABLE_FRAME, *(compress(b"") for compress in COMPRESS.values()),
], ids=["empty file", "byte order mark", "skippable frame", *COMPRESS])  # fmt: skip
def test_a_file_without_a_line(data, stored):
    path = stored(data)
    assert list(read_lines(path)) == []
    with LineReader(path, header="Word") as reader:
        assert (reader.block(), reader.rest()) == (b"", b"")


@each_compression
def test_a_file_cut_anywhere_is_corrupt(kind, stored):
    """GEval 1.42.2 scores a truncated .gz in silence."""
    whole = COMPRESS[kind](OTHER_TEXT)
    for length in range(MAGIC_LENGTH[kind], len(whole)):
        path = stored(whole[:length])
        assert str(refused(path)) == (f"Corrupt {kind} file `{path}`: it ends before its end mark{WRITE_IT_AGAIN}")


DAMAGE = {  # where a byte is changed: from the end
    "gzip checksum": ("gzip", -8, "Error -3 while decompressing data: incorrect data check"),
    "gzip length": ("gzip", -1, "Error -3 while decompressing data: incorrect length check"),
    "xz data": ("xz", -3000, "Corrupt input data"), "xz end mark": ("xz", -1, "Corrupt input data"),
    "bzip2 checksum": ("bzip2", -2, "Invalid data stream"),
    "zstd data": ("zstd", -3000, "Unable to decompress Zstandard data: "),
    "zstd checksum": ("zstd", -1, "Unable to decompress Zstandard data: Restored data doesn't match checksum"),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "place", "reason"), DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_file_is_corrupt(kind, place, reason, stored):
    data = bytearray(COMPRESS[kind](TEXT))
    data[place] ^= 0xFF
    path = stored(bytes(data))
    error = refused(path)
    assert error.reason.startswith(reason)
    assert str(error) == f"Corrupt {kind} file `{path}`: {error.reason}{WRITE_IT_AGAIN}"


FOLLOWING = {
    "text": (tuple(COMPRESS), b"the:0.5 :0.5\n"), "zeros": (("bzip2", "zstd"), bytes(8)),
    "zeros, then text": (("gzip", "xz"), bytes(8) + b"x"),
    "another compression": (("gzip", "xz", "bzip2"), zstd.compress(TEXT)),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "following"), [
    pytest.param(kind, following, id=f"{kind}, {name}")
    for name, (kinds, following) in FOLLOWING.items() for kind in kinds
])  # fmt: skip
def test_a_file_with_something_after_its_end_mark_is_corrupt(kind, following, stored):
    path = stored(COMPRESS[kind](TEXT) + following)
    assert str(refused(path)) == f"Corrupt {kind} file `{path}`: something else follows its end mark{WRITE_IT_AGAIN}"


@each_compression
@pytest.mark.parametrize("members", [1, 2])
def test_what_follows_an_end_mark_is_told_after_the_bytes_before_it(kind, members, stored):
    """Found by fuzzing: the last member was lost."""
    opened = File(stored(COMPRESS[kind](b"ka:1\n") * members + b"something else")).open()
    found = []
    with pytest.raises(CorruptFileError, match="something else follows its end mark"):
        found.extend(iter(lambda: opened.stream.read1(1000), b""))
    opened.stored.close()
    assert b"".join(found) == b"ka:1\n" * members


def test_a_frame_that_is_not_as_long_as_it_says(stored):
    empty = bytes.fromhex("28b52ffd20a0010000")  # one that says it has 160 bytes (RFC 8878)
    assert "Data corruption detected" in refused(stored(zstd.compress(TEXT) + empty)).reason


@pytest.mark.parametrize(("window", "is_refused"), [(0x88, False), (0x89, True), (0xA0, True)])
def test_a_window_that_needs_too_much_memory(window, is_refused, stored):
    block = b"a\n" * 15_000
    size = (len(block) << 3 | 1).to_bytes(3, "little")
    frame = b"\x28\xb5\x2f\xfd" + bytes((0x80, window)) + len(block).to_bytes(4, "little") + size + block
    path = stored(frame * 40)
    if is_refused:
        assert refused(path).compression == "zstd"
    else:
        assert read_all(path) == block * 40


def xz_with_dictionary(size_code):
    """An .xz that asks for a dictionary of another size (xz file format 1.2.1, sections 3.1 and 5.3.1)."""
    data = bytearray(lzma.compress(OTHER_TEXT))
    header_end = 12 + 4 * data[12] + 4
    assert data[14:16] == b"\x21\x01"
    data[16] = size_code
    data[header_end - 4 : header_end] = zlib.crc32(data[12 : header_end - 4]).to_bytes(4, "little")
    return bytes(data)


def test_a_dictionary_of_64_mebibytes_as_of_xz_9_is_fine_and_one_of_4_gibibytes_is_not(stored):
    assert read_all(stored(xz_with_dictionary(28))) == OTHER_TEXT
    assert refused(stored(xz_with_dictionary(40))).reason == "Memory usage limit exceeded"


@pytest.mark.parametrize("data", [TEXT, gzip.compress(TEXT), BOM + TEXT], ids=["text", "gzip", "BOM"])
def test_standard_input(data, standard_input):
    stream = standard_input(data)
    with LineReader("-") as reader:
        assert reader.block() == TEXT
        assert reader.size == len(data)
    assert not stream.closed


@pytest.mark.parametrize("data", [b"", b"a:1\n", TEXT, bz2.compress(TEXT)], ids=["at once", "soon", "later", "bzip2"])
@pytest.mark.parametrize(("error", "reason"), [
    (OSError(errno.EIO, "Input/output error"), "Input/output error"), (TimeoutError("timed out"), "timed out"),
], ids=["with a number", "without"])  # fmt: skip
def test_a_read_that_fails_names_the_source(data, error, reason, standard_input):
    standard_input(Trickle(data, error))
    assert str(refused("-")) == f"Cannot read standard input: {reason}"


UNREADABLE = {
    "missing": ("nowhere.tsv", "No such file or directory"), "a folder": ("", "it is a folder, not a file"),
    "below a file": ("file/out.tsv", "Not a directory"), "a name too long": ("x" * 300, "File name too long"),
    "a zero byte": ("out\0.tsv", "the name has a NUL in it"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "reason"), UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_opened(name, reason, tmp_path):
    (tmp_path / "file").write_bytes(TEXT)
    path = os.path.join(tmp_path, name)
    assert str(refused(path)) == f"Cannot read `{visible(path)}`: {reason}"


def test_is_address():
    assert all(map(is_address, ("http://example.org/out.tsv", "HTTPS://example.org/out.tsv", "s3://bucket/out.tsv")))
    others = ("http:/out.tsv", "./http://out.tsv", "a:b://c", "://", "-", "out.tsv", "")
    assert not any(map(is_address, others))


WAIT = None  # in an answer: until the test is over


def answer(body, *headers, status="200 OK"):
    return "\r\n".join([f"HTTP/1.1 {status}", *headers, "", ""]).encode() + body


ANSWERS = {
    "/fine": [answer(OTHER_TEXT, f"Content-Length: {len(OTHER_TEXT)}")], "/no-length": [answer(OTHER_TEXT)],
    "/gzip": [answer(gzip.compress(OTHER_TEXT))], "/byte-order-mark": [answer(BOM + OTHER_TEXT)],
    "/chunks": [answer(b"%x\r\n" % len(OTHER_TEXT), "Transfer-Encoding: chunked"), OTHER_TEXT, b"\r\n0\r\n\r\n"],
    "/redirected": [answer(b"", "Location: /fine", "Content-Length: 0", status="302 Found")],
    "/empty": [answer(b"", "Content-Length: 0")],
    "/missing": [answer(b"gone", "Content-Length: 4", status="404 Not Found")],
    "/short": [answer(OTHER_TEXT, f"Content-Length: {len(OTHER_TEXT) + 1}")],
    "/short-gzip": [answer(gzip.compress(TEXT)[:-1])],
    "/chunk-cut": [answer(b"ff\r\nthe:0.5", "Transfer-Encoding: chunked")],
    "/chunks-without-end": [answer(b"6\r\nthe:1\n\r\n", "Transfer-Encoding: chunked")],
    "/no-http": [b"220 ready\r\n\r\n"], "/nothing": [], "/late": [WAIT], "/late-body": [answer(b""), WAIT],
    "/to-a-file": [answer(b"", "Location: file:///etc/passwd", "Content-Length: 0", status="302 Found")],
}  # fmt: skip


@pytest.fixture(scope="module")
def server():
    """A web server on loopback that gives the ANSWERS; the value is its address."""
    over = threading.Event()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            path = self.rfile.readline().split()[1].decode()
            while self.rfile.readline().strip():
                pass
            for part in ANSWERS[path]:
                if part is WAIT:
                    over.wait()
                else:
                    self.wfile.write(part)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        over.set()
        running.shutdown()
        thread.join()


@pytest.fixture
def web(server, monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(files, "HTTP_TIMEOUT_SECONDS", 0.15)
    return server


@pytest.mark.parametrize("name", ["/fine", "/no-length", "/gzip", "/byte-order-mark", "/chunks", "/redirected"])
def test_an_address_is_fetched(name, web):
    with LineReader(web + name) as reader:
        assert reader.block() == OTHER_TEXT
        assert reader.block() == b""


REFUSED = {
    "/missing": "the server answered 404 Not Found",
    "/short": f"the answer ended after {len(OTHER_TEXT)} of {len(OTHER_TEXT) + 1} bytes",
    "/nothing": "Remote end closed connection without response", "/late": "timed out", "/late-body": "timed out",
    "/to-a-file": "the server answered 302 Found - Redirection to url 'file:///etc/passwd' is not allowed",
}  # fmt: skip


@pytest.mark.parametrize(("name", "reason"), REFUSED.items(), ids=REFUSED)
def test_an_address_that_cannot_be_read(name, reason, web):
    error = refused(web + name)
    assert str(error) == f"Cannot read `{web}{name}`: {reason}"


WRONG = ["http://", "http://127.0.0.1:port/out.tsv", "http://127.0.0.1:1/out 1.tsv", "http://[::1/out.tsv"]


@pytest.mark.parametrize("name", ["/chunk-cut", "/chunks-without-end", "/no-http", *WRONG])
def test_addresses_and_answers_that_are_not_http_as_it_should_be(name, web):
    address = web + name if name.startswith("/") else name
    assert str(refused(address)).startswith(f"Cannot read `{address}`: ")


def test_a_compressed_answer_that_is_cut_and_an_address_where_nobody_listens(web):
    cut = f"Corrupt gzip file `{web}/short-gzip`: it ends before its end mark{WRITE_IT_AGAIN}"
    assert str(refused(web + "/short-gzip")) == cut
    with socketserver.TCPServer(("127.0.0.1", 0), None) as unused:
        address = f"http://127.0.0.1:{unused.server_address[1]}/out.tsv"
    refusal = f"[Errno {errno.ECONNREFUSED}] {os.strerror(errno.ECONNREFUSED)}"
    assert str(refused(address)) == f"Cannot read `{address}`: {refusal}"


@pytest.mark.parametrize("name", ["/fine", "/no-length", "/chunks"])
def test_an_answer_that_is_too_large(name, web, monkeypatch):
    monkeypatch.setattr(files, "MAX_COPIED_BYTES", len(OTHER_TEXT))
    assert read_all(web + name) == OTHER_TEXT
    limit = len(OTHER_TEXT) - 1
    monkeypatch.setattr(files, "MAX_COPIED_BYTES", limit)
    assert str(refused(web + name)) == f"Too large: `{web}{name}`: it unpacks to more than {limit} bytes"


DECODED = {
    "nothing": (b"", []), "a line": (b"the:1\n", ["the:1"]), "no final line end": (b"a\nb", ["a", "b"]),
    "blank lines": (b"\n\na\n\n", ["", "", "a", ""]), "carriage returns": (b"a\r\n\rb\r\r\nc\rd\n", ["a", "b", "cd"]),
    "other line ends": ("a\u2028b\x0bc\x85d\x0ce\n".encode(), ["a\u2028b\x0bc\x85d\x0ce"]),
    "a zero byte": (b"a\0b\n", ["a\0b"]), "undecodable": (b"k\xff\xfea\n\x80\n", ["k\ufffd\ufffda", "\ufffd"]),
    "a cut character at a line end": (b"\xe2\x82\nx\n", ["\ufffd", "x"]),
    "a surrogate": (b"\xed\xa0\x80\n", ["\ufffd\ufffd\ufffd"]),
    "a byte order mark inside": (b"a\n" + BOM + b"b\n", ["a", "\ufeffb"]),
}  # fmt: skip


@pytest.mark.parametrize(("block", "lines"), DECODED.values(), ids=DECODED)
def test_decode_lines(block, lines, stored):
    assert decode_lines(block) == list(read_lines(stored(block))) == lines


HEADERS = {
    "skipped": (b"Word\nthe\n", "Word", ["the"]), "not asked for": (b"Word\nthe\n", None, ["Word", "the"]),
    "not there": (b"the\nof\n", "Word", ["the", "of"]), "only a part": (b"Words\n", "Word", ["Words"]),
    "once": (b"Word\nWord\n", "Word", ["Word"]), "in the second line": (b"the\nWord\n", "Word", ["the", "Word"]),
    "with a carriage return": (b"Word\r\nthe\r\n", "Word", ["the"]),
    "with a byte order mark": (BOM + b"Word\nthe\n", "Word", ["the"]),
    "with both": (BOM + b"FileId\tYear\r\nPsa-5\t1605\r\n", "FileId", ["Psa-5\t1605"]),
    "alone": (b"Word\n", "Word", []), "without a name": (b"\tYear\n\t1605\n", "", ["\t1605"]),
}  # fmt: skip


@pytest.mark.parametrize(("data", "header", "lines"), HEADERS.values(), ids=HEADERS)
@pytest.mark.parametrize("kind", [None, "gzip"])
def test_a_data_file_whose_first_field_equals_the_headers_first_name(kind, data, header, lines, stored):
    path = stored(COMPRESS[kind](data) if kind else data)
    assert list(read_lines(path, header=header)) == lines
    with LineReader(path, header=header) as reader:
        assert decode_lines(reader.rest()) == lines


MARKS = {
    "none": (b"a:1\n", False, b"a:1\n"), "one": (BOM + b"a:1\n", True, b"a:1\n"),
    "two": (BOM + BOM + b"a:1\n", True, BOM + b"a:1\n"),
    "in the second line": (b"a:1\n" + BOM + b"b:1\n", False, b"a:1\n" + BOM + b"b:1\n"),
}  # fmt: skip


@pytest.mark.parametrize(("data", "has_mark", "text"), MARKS.values(), ids=MARKS)
def test_a_byte_order_mark_is_dropped_at_the_start_of_a_file(data, has_mark, text, stored):
    with LineReader(stored(data)) as reader:
        assert reader.block() == text
        assert reader.has_byte_order_mark == has_mark


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("blocks")


DATA = (
    st.lists(st.binary(max_size=12), max_size=40)
    .map(b"\n".join)
    .filter(lambda d: not compression_of(d) and not foreign_content(d))
)
COMPRESSED = st.sampled_from([None, *COMPRESS])


def with_line_ends(data):
    """The text of a file: without a byte order mark, every line ended."""
    text = data.removeprefix(BOM)
    return text + b"\n" if text and not text.endswith(b"\n") else text


@PROPERTY
@given(data=DATA, sizes=st.lists(st.integers(1, 60), max_size=30), kind=COMPRESSED)
def test_blocks_are_whole_lines_and_together_the_text(data, sizes, kind, folder):
    path = folder / "out.tsv"
    path.write_bytes(COMPRESS[kind](data) if kind else data)
    text = with_line_ends(data)
    longest = max(map(len, data.split(b"\n"))) + 1
    so_far = b""
    with LineReader(str(path)) as reader:
        for size in sizes:
            block = reader.block(size)
            assert bool(block) == (so_far != text)
            assert block.endswith(b"\n") == bool(block)
            assert len(block) <= size + 2 * longest
            so_far += block
        assert text.startswith(so_far)
        assert reader.rest() == text.removeprefix(so_far)
        assert reader.block() == b""
    assert sha256_of(File(str(path))) == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("kind", [None, *COMPRESS])
def test_size_and_position_are_of_the_stored_bytes(kind, stored):
    path = stored(COMPRESS[kind](TEXT) if kind else TEXT)
    with LineReader(path) as reader:
        assert reader.size == os.path.getsize(path)
        assert 0 <= reader.position <= reader.size
        reader.rest()
        assert reader.position == reader.size
    with pytest.raises(ValueError, match="closed file"):
        _ = reader.position


@pytest.mark.parametrize("address", ["HTTPS://example.org//runs/../expected.jsonl?key=1", "s3://runs/expected.jsonl"])
def test_an_address_is_absolute(address, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert absolute(address) == join("dev-0", address) == address
    for path in ("runs/out.jsonl", "http:runs/out.jsonl"):
        assert absolute(path) == str(tmp_path / path)
        assert join("dev-0", path) == f"dev-0/{path}"


# Byte ranges of a plain file: together they have its lines, however they are cut

OFTEN = settings(PROPERTY, max_examples=examples(300))
PIECES = st.sampled_from([b"", b"\r", b"a", b"a:1", b"\xef\xbb\xbf", b"Word\tx", b"a" * 20])
RANGED = st.lists(PIECES, max_size=12).map(b"\n".join)


def read_ranges(reader, size):
    """The lines that begin in each range of the rest of a file, and the bytes that are stored of them."""
    first, end = reader.offset, reader.size
    found = []
    for start in range(first, end, size):
        stop = min(start + size, end)
        stored = line_reading.read_lines_between(reader.path, reader.read_at, start, stop, first=first, size=end)
        found.append((bytes(line_reading.whole_lines(stored)), bytes(stored)))
    return found


@OFTEN
@given(data=RANGED, size=st.integers(1, 60), first=st.integers(0, 3))
@example(data=b"a\n" * 5, size=1, first=0)
@example(data=b"a" * 50, size=1, first=0)
@example(data=b"a\n\r\r", size=2, first=0)
def test_ranges_have_the_lines_that_are_left(data, size, first, tmp_path_factory):
    if compression_of(data):
        return
    path = tmp_path_factory.getbasetemp() / "out.tsv"
    path.write_bytes(data)
    with LineReader(str(path), header="Word") as reader, LineReader(str(path), header="Word") as other:
        for _ in range(first):
            assert reader.block(1) == other.block(1)
        start = reader.offset
        found = read_ranges(reader, size)
        assert b"".join(lines for lines, _ in found) == b"".join(iter(other.block, b""))
        assert b"".join(stored for _, stored in found) == data[start:]
    for number, (_, stored) in enumerate(found):
        place = start + sum(len(before) for _, before in found[:number])
        assert not stored or start + number * size <= place < start + (number + 1) * size


@pytest.mark.parametrize("size", [1, 3, 100])
def test_a_system_that_reads_less_than_it_is_asked_for(size, stored, monkeypatch):
    whole = os.pread
    monkeypatch.setattr(os, "pread", lambda file, size, offset: whole(file, min(size, 2), offset))
    with LineReader(stored(b"a:1\nb:1\n" * 9)) as reader:
        assert b"".join(lines for lines, _ in read_ranges(reader, size)) == b"a:1\nb:1\n" * 9


def test_a_long_line_is_read_once(stored, monkeypatch):
    """By the range that it starts in; those inside of it have none."""
    path = stored(b"a\n" + b"b" * 400_000 + b"\nc\n")
    with LineReader(path) as reader:
        assert [len(lines) for lines, _ in read_ranges(reader, 100_000)] == [400_003, 0, 0, 0, 2]
    monkeypatch.setattr(line_reading, "MAX_LINE_BYTES", 100_000)
    with LineReader(path) as reader, pytest.raises(TooLargeError) as caught:
        read_ranges(reader, 2)
    assert str(caught.value) == f"Too large: `{path}`: it has a line of more than 100000 bytes"
    with LineReader(path) as reader, pytest.raises(TooLargeError, match="has a line of more than 100000 bytes"):
        b"".join(iter(lambda: reader.block(1), b""))


def test_a_file_that_shrinks(stored):
    path = stored(b"a:1\n" * 9)
    with LineReader(path) as reader:
        os.truncate(path, 4)
        with pytest.raises(UnreadableFileError) as caught:
            read_ranges(reader, 20)
    assert str(caught.value) == f"Cannot read `{path}`: it was changed while it was read"


def test_what_cannot_be_read_from_anywhere(stored, monkeypatch):
    with LineReader(stored(gzip.compress(b"a:1\n"))) as reader:
        assert reader.read_at is None
    with LineReader(stored(b"a:1\n")) as reader:
        monkeypatch.delattr(os, "pread")
        assert reader.read_at is None


ALIKE = st.tuples(st.sampled_from([b"\n", b"a\n", b"ab cd\n", b"x" * 300 + b"\n"]), st.integers(1, 60))


@OFTEN
@given(pieces=st.lists(ALIKE, max_size=6), skipped=st.integers(0, 400), lines=st.integers(1, 200))
def test_the_end_of_so_many_lines(pieces, skipped, lines):
    data = b"".join(piece * count for piece, count in pieces)
    start = min(skipped, len(data))
    rest = data[start:].splitlines(keepends=True)[:lines]
    assert line_reading.end_of_lines(data, start, lines) == (start + sum(map(len, rest)), len(rest))
