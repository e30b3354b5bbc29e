"""Archives: what is taken of them, and the hostile ones, each refused by the name of the member that is at fault."""

import stat
import struct
import subprocess
import tarfile
import tracemalloc
import zipfile

import pytest
from hostile import BLOCK, LINE, OUT, tar_info, tar_member, tar_of, zip_info, zip_of

from geval_py.errors import FailedError


@pytest.fixture
def archive(tmp_path):
    def make(content, name="anna.tar"):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return make


def packed(*members, ending):
    return zip_of(*members) if ending == "zip" else tar_of(*members, ending=ending)


@pytest.mark.parametrize("around", ["", "./", "anna/", "./anna/"], ids=["bare", "dot", "folder", "dot-folder"])
@pytest.mark.parametrize("ending", ["zip", "tar", "tar.gz", "tgz", "tar.xz", "tar.zst"])
def test_what_is_taken(receiving, archive, tmp_path, ending, around):
    """One leading folder is tolerated; other files are left where they are."""
    files = {OUT: LINE, "gonito.yaml": b"description: Mine\n", "code/x.py": b""}
    members = [(around + name, data) for name, data in files.items()]
    if ending == "tar.zst":
        plain = archive(tar_of(*members))
        subprocess.run(["zstd", "-q", plain, "-o", tmp_path / "anna.tar.zst"], check=True)
    else:
        archive(packed(*members, ending=ending), f"anna.{ending}")
    parcel = receiving(tmp_path / f"anna.{ending}")
    assert [file.name for file in parcel.files] == ["gonito.yaml", OUT]
    assert (parcel.name, parcel.details.description, parcel.outputs[0].variant) == ("anna", "Mine", "")
    assert parcel.files[1].bytes == len(LINE)


def test_what_a_mac_and_windows_add(receiving, archive):
    members = [("anna\\test-A\\out.tsv", LINE), ("__MACOSX/anna/test-A/._out.tsv", b"x"), (".DS_Store", b"x")]
    assert [file.name for file in receiving(archive(zip_of(*members), "a.zip")).files] == [OUT]


SPARSE = tar_info(OUT, 0, tarfile.GNUTYPE_SPARSE)
HUGE = tar_info("././@PaxHeader", 8 << 30, tarfile.XHDTYPE)
LONG = tar_info("././@LongLink", 8 << 30, tarfile.GNUTYPE_LONGNAME)
GLOBAL = tar_info("././@PaxHeader", 8 << 30, tarfile.XGLTYPE)
NEGATIVE = tar_info("README.md")
NEGATIVE.size = -(1 << 12)
PAX_SIZE = b"20 size=-1000000000\n"
BACKWARDS = tar_member(tar_info("pax", len(PAX_SIZE), tarfile.XHDTYPE)) + PAX_SIZE + bytes(BLOCK - len(PAX_SIZE))
SPARSE_PAX = b"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n"
NO_MAP = tar_member(tar_info("pax", len(SPARSE_PAX), tarfile.XHDTYPE)) + SPARSE_PAX.ljust(BLOCK, b"\0")
CHAIN = tar_member(tar_info("pax", 0, tarfile.XHDTYPE)) * 5000
DAMAGED = "it is not a tar archive, or is damaged: "
AGAIN = "; compress it again, or upload it again [E105]"


@pytest.mark.parametrize(("content", "reason"), [
    (tar_of(("../test-A/out.tsv", LINE)), "`../test-A/out.tsv` leads out of its folder"),
    (tar_of(("/test-A/out.tsv", LINE), end=False), "`/test-A/out.tsv` leads out of its folder"),
    (tar_of(("x/../../y", LINE), (OUT, LINE)), "`x/../../y` leads out of its folder"),
    (tar_of((OUT, LINE), (f"./{OUT}", LINE)), f"`{OUT}` is in the archive twice"),
    (tar_of((OUT, LINE), ("more.tar.gz", b"")), "`more.tar.gz` is an archive inside the archive; pack its files directly"),
    (tar_of(tar_info(OUT, 0, tarfile.SYMTYPE, "/etc/passwd")), f"`{OUT}` is a link; archives with links are not allowed"),
    (tar_of((OUT, LINE), tar_info("x", 0, tarfile.LNKTYPE, OUT)), "`x` is a link; archives with links are not allowed"),
    (tar_of(tar_info("test-A", 0, tarfile.SYMTYPE, "/"), (OUT, LINE)), "`test-A` is a link; archives with links are not allowed"),
    *((tar_of(tar_info("x", 0, kind)), "`x` is not a regular file but a device, a pipe or the like")
      for kind in (tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE)),
    (tar_of(SPARSE), f"`{OUT}` is a sparse file; pack it as an ordinary file"),
    (tar_of((f"{'x' * 501}/out.tsv", LINE)), f"`{'x' * 100}…{'x' * 91}/out.tsv` has a name of more than 500 characters"),
    (tar_of(NO_MAP, tar_info(OUT, BLOCK), b"1" * BLOCK), DAMAGED + "a header in it is malformed"),
    *((tar_of(header), DAMAGED + "empty header") for header in (HUGE, LONG, GLOBAL)),
    (tar_of((OUT, LINE), HUGE), DAMAGED + "it ends before its end mark"),
    (tar_of((OUT, LINE), CHAIN), "a header in the archive is too large"),
    (tar_of(BACKWARDS, (OUT, LINE), (OUT, LINE)), DAMAGED + "its headers point backwards"),
    (tar_of(NEGATIVE, (OUT, LINE)), DAMAGED + "its headers point backwards"),
    (tar_of((OUT, LINE), end=False), DAMAGED + "it ends before its end mark"),
    (tar_of((OUT, LINE), b"x" * BLOCK), DAMAGED + "it ends before its end mark"),
    (tar_of((OUT, LINE * 100))[:BLOCK * 2], DAMAGED + "unexpected end of data"),
    (b"", DAMAGED + "empty file"), (b"hello", DAMAGED + "truncated header"),
    (b"\x1f\x8b\x08\x00", DAMAGED + "it ends before its end mark"),
], ids=[
    "slip", "absolute", "slip-elsewhere", "twice", "nested", "link", "hard-link", "folder-link", "device", "block-device", "pipe",
    "sparse", "sparse-no-map", "long-name", "pax-8-GB", "long-name-8-GB", "global-8-GB", "pax-8-GB-second", "chain", "pax-size-back", "negative",
    "no-end", "damaged-header", "cut", "empty", "no-tar", "gzip-cut",
])  # fmt: skip
def test_hostile_tars(refusal, archive, content, reason):
    tracemalloc.start()
    try:
        assert refusal(archive(content)) == reason + AGAIN * reason.startswith(DAMAGED)
        assert tracemalloc.get_traced_memory()[1] < 30_000_000
    finally:
        tracemalloc.stop()


def test_zstandard_that_asks_for_a_window_of_two_gigabytes(refusal, archive):
    """RFC 8878, section 3.1.1.1.2: the window's size is the stranger's to choose."""
    frame = b"\x28\xb5\x2f\xfd" + bytes([0x00, (31 - 10) << 3]) + b"\x01\x00\x00"
    assert refusal(archive(frame, "a.tar.zst")).startswith(DAMAGED + "Unable to decompress Zstandard data")


def test_a_sparse_map_without_end(refusal, archive):
    """Each block of an old GNU sparse header says that another follows."""
    header = bytearray(SPARSE.tobuf(tarfile.GNU_FORMAT))
    header[482] = 1  # isextended
    header[148:156] = b"        "
    header[148:156] = b"%06o\0 " % sum(header)
    block = bytearray(BLOCK)
    block[504] = 1
    content = bytes(header + block * 1000) + bytes(2 * BLOCK)
    assert refusal(archive(content)) == f"`{OUT}` is a sparse file; pack it as an ordinary file"


def encrypted(flag):
    content = bytearray(zip_of((OUT, LINE)))
    for place in (6, content.index(b"PK\x01\x02") + 8):
        content[place : place + 2] = struct.pack("<H", flag)
    return bytes(content)


NAMES_DISAGREE = zip_of((OUT, LINE)).replace(OUT.encode(), b"test-A/OUT.tsv", 1)
WRONG_DATA = zip_of((OUT, LINE), method=zipfile.ZIP_STORED).replace(LINE, LINE[::-1], 1)
NO_ZIP = "it is not a zip archive, or is damaged: "


@pytest.mark.parametrize(("content", "reason"), [
    *((zip_of((name, b""), (OUT, LINE)), "`../x` leads out of its folder") for name in ("../x", "..\\x")),
    (zip_of(("C:\\test-A\\out.tsv", LINE)), "`C:/test-A/out.tsv` leads out of its folder"),
    (zip_of(("/etc/passwd", b"")), "`/etc/passwd` leads out of its folder"),
    (zip_of((OUT, LINE), ("inner.ZIP", b"")), "`inner.ZIP` is an archive inside the archive; pack its files directly"),
    (zip_of((zip_info(OUT, stat.S_IFLNK | 0o777), b"/etc/passwd")), f"`{OUT}` is a link; archives with links are not allowed"),
    (zip_of((zip_info("x", stat.S_IFCHR), b"")), "`x` is not a regular file but a device, a pipe or the like"),
    *((zip_of((OUT, LINE), method=method), f"`{OUT}` is compressed by another method than deflate")
      for method in (zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2)),
    (b"PK\x03\x04", f"{NO_ZIP}File is not a zip file{AGAIN}"), (b"", f"{NO_ZIP}File is not a zip file{AGAIN}"),
    *((encrypted(flag), f"`{OUT}` is encrypted") for flag in (0x1, 0x40, 0x2000)),
    (NAMES_DISAGREE, f"{NO_ZIP}File name in directory '{OUT}' and header b'test-A/OUT.tsv' differ.{AGAIN}"),
    (WRONG_DATA, f"{NO_ZIP}Bad CRC-32 for file '{OUT}'{AGAIN}"),
], ids=[
    "slip", "back-slash-slip", "drive", "absolute", "nested", "link", "device", "lzma", "bzip2", "cut", "empty",
    "encrypted", "strongly encrypted", "masked", "two names", "damaged data",
])  # fmt: skip
def test_hostile_zips(refusal, archive, content, reason):
    assert refusal(archive(content, "anna.zip")) == reason


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_zip_with_a_name_twice(refusal, archive):
    content = zip_of((OUT, LINE), (OUT, b"other"), ("x", b""))
    assert refusal(archive(content, "a.zip")) == f"`{OUT}` is in the archive twice"


def test_a_member_that_says_it_is_small(refusal, archive):
    """The sizes in a zip's headers are not believed: what comes is counted."""
    content = bytearray(zip_of((OUT, LINE * 10_000)))
    directory = content.index(b"PK\x01\x02")
    content[directory + 24 : directory + 28] = struct.pack("<I", 1 << 31)
    reason = f"its files have more than 50000 bytes, unpacked: `{OUT}`"
    assert refusal(archive(bytes(content), "a.zip"), bytes=50_000) == reason


@pytest.mark.parametrize("ending", ["zip", "tar.gz", "tar.xz"])
def test_bombs(refusal, archive, ending):
    content = packed((OUT, bytes(3_000_000)), ending=ending)
    assert len(content) < 10_000
    source = archive(content, f"a.{ending}")
    assert refusal(source, bytes=1_000_000) == f"its files have more than 1000000 bytes, unpacked: `{OUT}`"


@pytest.mark.parametrize("ending", ["zip", "tar.xz"])
def test_a_ratio_beyond_reason(refusal, archive, monkeypatch, ending):
    monkeypatch.setattr("geval_py.board.intake.sources.FREE_BYTES", 100_000)
    monkeypatch.setattr("geval_py.board.intake.sources.MAX_RATIO", 100)
    source = archive(packed((OUT, bytes(3_000_000)), ending=ending), f"a.{ending}")
    assert refusal(source, bytes=10**9) == f"`{OUT}` unpacks to more than 100 times its packed bytes"


@pytest.mark.parametrize("ending", ["tgz", "tar.xz"])
def test_bytes_that_are_skipped_count_too(refusal, archive, ending):
    source = archive(tar_of(("x", bytes(9_000_000)), (OUT, LINE), ending=ending), f"a.{ending}")
    most = 1000 + 51 * (BLOCK + (1 << 16))
    assert refusal(source, bytes=1000) == f"the archive unpacks to more than {most} bytes"


@pytest.mark.parametrize("ending", ["zip", "tar"])
def test_members_without_end(refusal, archive, ending):
    members = [(f"x{n}", b"") for n in range(60)]
    assert refusal(archive(packed(*members, ending=ending), f"a.{ending}")) == "the archive has more than 50 members"


@pytest.mark.parametrize("ending", ["zip", "tar"])
def test_as_many_members_as_are_allowed(receiving, refusal, archive, ending):
    source = archive(packed((OUT, LINE), ("x", b""), ("y", b""), ending=ending), f"a.{ending}")
    assert refusal(source, files=2) == "the archive has more than 2 members"
    assert [file.name for file in receiving(source, files=3).files] == [OUT]


def test_time(receiving, archive):
    with pytest.raises(FailedError) as raised:
        receiving(archive(tar_of((OUT, LINE))), seconds=-1)
    assert raised.value.reason == "it exceeded the time limit"


def test_the_name_of_a_member_is_made_visible(refusal, archive):
    content = tar_of(("\x1b[2J/../x", b""), (OUT, LINE))
    assert refusal(archive(content)) == "`\\x1b[2J/../x` leads out of its folder"
