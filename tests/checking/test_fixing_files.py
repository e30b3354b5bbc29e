"""Fixing a file: no byte of it is lost, whatever goes wrong, and it is compressed as it was."""

import bz2
import errno
import gzip
import lzma
import os
import random
import signal
import stat
import subprocess
import sys
import time

import pytest
from raising import refused

from geval_py.checking import fixes as fixing
from geval_py.checking.fixes import fix_file, fix_line
from geval_py.errors import CorruptFileError, UnreadableFileError, UsageError
from geval_py.reading.lines import BLOCK_BYTES, LineReader, read_lines

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

BOM = "\ufeff".encode()

BEFORE = "the:1.0000001 :0\nthe:0.50 :0.5\r\nżółw:0.5  :0.5\n水:-1e-9 :1\n-1 -2\nthe 0.5\n\nthe:1\n".encode()
AFTER = "the:1 :0\nthe:0.50 :0.5\nżółw:0.5 :0.5\n水:0 :1\n-1 -2\nthe 0.5\n\nthe:1\n".encode()
CHANGES = {"E112": 1, "W201": 2, "W210": 1}
DIFF = [
    (1, "the:1.0000001 :0", "the:1 :0"), (2, "the:0.50 :0.5\r", "the:0.50 :0.5"),
    (3, "żółw:0.5  :0.5", "żółw:0.5 :0.5"), (4, "水:-1e-9 :1", "水:0 :1"),
]  # fmt: skip
COMPRESS = {None: bytes, "gzip": gzip.compress, "xz": lzma.compress, "bzip2": bz2.compress, "zstd": zstd.compress}
DECOMPRESS = {None: bytes, "gzip": gzip.decompress, "xz": lzma.decompress, "bzip2": bz2.decompress, "zstd": zstd.decompress}  # fmt: skip
each_compression = pytest.mark.parametrize("kind", COMPRESS)


@pytest.fixture
def output(tmp_path):
    """Store bytes as an output file; gives its path."""

    def store(data=BEFORE, name="out.tsv"):
        (tmp_path / name).write_bytes(data)
        return tmp_path / name

    return store


def names(path):
    return sorted(os.listdir(path.parent))


def test_file(output):
    path = output()
    fixed = fix_file(str(path))
    assert path.read_bytes() == AFTER
    backup = f"{path}.orig"
    assert (fixed.path, fixed.lines, fixed.changes, fixed.diff, fixed.backup_path) == (
        str(path), 8, CHANGES, DIFF, backup,
    )  # fmt: skip
    assert names(path) == ["out.tsv", "out.tsv.orig"]
    assert (path.parent / "out.tsv.orig").read_bytes() == BEFORE


TABS = b"the:0.5\tof:0.5\t:0.5\r\nNew\tYork:0.5\t:0.5\n:1\n"


def test_a_second_run_leaves_the_file_alone(output):
    path = output()
    fix_file(str(path), backup=False)
    os.utime(path, ns=(1, 1))
    fixed = fix_file(str(path))
    assert (fixed.changes, fixed.diff, fixed.backup_path, fixed.lines) == ({}, [], None, 8)
    assert path.stat().st_mtime_ns == 1
    assert names(path) == ["out.tsv"]


@each_compression
def test_compressed_as_before(output, kind):
    path = output(COMPRESS[kind](BEFORE), "out.tsv.any")
    fixed = fix_file(str(path))
    assert fixed.changes == CHANGES
    assert DECOMPRESS[kind](path.read_bytes()) == AFTER
    with LineReader(str(path)) as reader:
        assert reader.compression == kind
    assert DECOMPRESS[kind]((path.parent / "out.tsv.any.orig").read_bytes()) == BEFORE


@pytest.mark.parametrize(("times", "word"), [(600, 4000), pytest.param(32_000, 1, marks=pytest.mark.long)])
def test_more_than_a_block(output, times, word):
    well_formed = b"x" * word + b":0.5 :0.5\n"
    assert len((BEFORE + well_formed) * times) > BLOCK_BYTES
    path = output((BEFORE + well_formed) * times)
    fixed = fix_file(str(path))
    assert path.read_bytes() == (AFTER + well_formed) * times
    assert fixed.changes == {code: count * times for code, count in CHANGES.items()}
    assert fixed.lines == 9 * times
    assert len(fixed.diff) == fixing.DIFF_LINES
    assert fixed.diff[5] == (11, *DIFF[1][1:])


FILES = {  # before, after, changes
    "nothing": (b"", b"", {}),
    "TABs on all lines": (TABS, b"the:0.5 of:0.5 :0.5\nNew\tYork:0.5 :0.5\n:1\n", {"E118": 2, "W210": 1}),
    "TABs and a byte order mark": (BOM + b"a:0.5\t:0.5\t\n", b"a:0.5 :0.5\n", {"E112": 1, "E118": 1, "W211": 1}),
    "TABs, but not on all lines": (TABS + b"a:0.5 :0.5\n", TABS.replace(b"\r", b"") + b"a:0.5 :0.5\n", {"W210": 1}),
    "a TAB in a word": (b"a\tb:0.5\n", b"a\tb:0.5\n", {}),
    "no final line end": (b"the:1\nthe:1", b"the:1\nthe:1", {}),
    "no final line end, fixed": (b"the:1.0000001 :0\nthe:1", b"the:1 :0\nthe:1\n", {"W201": 1}),
    "blank lines at the end": (b"the:1.0000001 :0\n\n\n", b"the:1 :0\n\n\n", {"W201": 1}),
    "carriage returns": (b"the:1\r\n:1\r\nthe:0.5\r\n", b"the:1\n:1\nthe:0.5\n", {"W210": 3}),
    "carriage returns inside": (b"t\rhe:0.\r5 :0.5\r\r\n", b"t\rhe:0.\r5 :0.5\r\r\n", {}),
    "a carriage return alone on a line": (b"\r\nthe:1\n", b"\nthe:1\n", {"W210": 1}),
    "a carriage return at the very end": (b":1\nthe:1\r", b":1\nthe:1\n", {"W210": 1}),
    "a byte order mark": (BOM + b"the:1\n:1\n", b"the:1\n:1\n", {"W211": 1}),
    "a byte order mark and a space": (BOM + b" the:1\n", b"the:1\n", {"E112": 1, "W211": 1}),
    "two byte order marks": (BOM + BOM + b"the:1\n", b"the:1\n", {"W211": 1}),
    "a byte order mark elsewhere": (b":1\n" + BOM + b"the:1\n", b":1\n" + BOM + b"the:1\n", {}),
    "not UTF-8": (b"\xff\xfe:1  :1\r\n:1\nthe:1.0000001 :0\n", b"\xff\xfe:1 :1\n:1\nthe:1 :0\n", {"E112": 1, "W201": 1, "W210": 1}),
    "not UTF-8 after a byte order mark": (BOM + b"\xe9t\xe9:1 \n", b"\xe9t\xe9:1\n", {"E112": 1, "W211": 1}),
    "a NUL": (b"a\0:1  :1\r\n", b"a\0:1  :1\r\n", {}),
    "other line ends": ("a\u2028\x0b\x0c\x85b:1.0000001 :0\n".encode(), "a\u2028\x0b\x0c\x85b:1 :0\n".encode(), {"W201": 1}),
}  # fmt: skip


def test_crs_in_place_of_line_ends(output):
    path = output(b"the:1\r:1\rthe:0.5\r")
    assert fix_file(str(path)).changes == {"W210": 3}
    assert path.read_bytes() == b"the:1\n:1\nthe:0.5\n"
    assert fix_file(str(path)).changes == {}


@pytest.mark.parametrize(("before", "after", "changes"), FILES.values(), ids=FILES)
def test_bytes_of_a_file(output, before, after, changes):
    path = output(before)
    lines = list(read_lines(str(path)))
    fixed = fix_file(str(path))
    assert path.read_bytes() == after
    assert fixed.changes == changes
    assert fixed.lines == len(lines) == len(list(read_lines(str(path))))
    assert [number for number, _, _ in fixed.diff] == sorted({number for number, _, _ in fixed.diff})
    assert (fixed.backup_path is not None) == bool(changes)
    assert fix_file(str(path)).changes == {}


SELECTED = {  # rules, before, after, changes
    "no rule that fixes": ("E114", BEFORE, BEFORE, {}),
    "spaces alone": ("E112", b"a:0.5  :0.5\r\n b:1 :1\nc:1 :1\r\n", b"a:0.5 :0.5\nb:1 :1\nc:1 :1\r\n", {"E112": 2}),
    "all but spaces": ("W201 W210", b"a:1  :1\nb:1.0000001 :0\n", b"a:1  :1\nb:1 :0\n", {"W201": 1}),
    "carriage returns alone": ("W210", b"a:1 :1\r\n", b"a:1 :1\n", {"W210": 1}),
    "all but carriage returns": ("W201", b"a:1.0000001 :0\r\r\nb:1.0000001 :0\n", b"a:1 :0\nb:1 :0\n", {"W201": 2}),
    "a carriage return inside": ("W201", b"a:1.0000001 :0\r\nb\r:1.0000001\n", b"a:1 :0\nb\r:1.0000001\n", {"W201": 1}),
    "not UTF-8, and a carriage return": ("W201", b"\xff:1.0000001 :0\r\n", b"\xff:1 :0\n", {"W201": 1}),
    "a byte order mark alone": ("W211", BOM + b"a:1 :1\n", b"a:1 :1\n", {"W211": 1}),
    "all but a byte order mark": ("W201 E112", BOM + b"a:1.0000001  :0\n", BOM + b"a:1 :0\n", {"E112": 1, "W201": 1}),
}  # fmt: skip


@pytest.mark.parametrize(("rules", "before", "after", "changes"), SELECTED.values(), ids=SELECTED)
def test_the_rules_selected(output, rules, before, after, changes):
    path = output(before)
    assert fix_file(str(path), rules=rules.split()).changes == changes
    assert path.read_bytes() == after
    assert fix_file(str(path), rules=rules.split()).changes == {}


def test_without_writing(output):
    path = output()
    os.utime(path, ns=(1, 1))
    fixed = fix_file(str(path), write=False)
    assert (fixed.changes, fixed.diff, fixed.backup_path, fixed.lines) == (CHANGES, DIFF, None, 8)
    assert path.read_bytes() == BEFORE
    assert path.stat().st_mtime_ns == 1
    assert names(path) == ["out.tsv"]


def test_the_diff_shows_a_byte_order_mark_and_undecodable_bytes(output):
    path = output(BOM + b"\xffa:1\r\n")
    assert fix_file(str(path)).diff == [(1, "\ufeff\ufffda:1\r", "\ufffda:1")]


def test_a_backup_is_never_overwritten(output):
    first = output(b"my own\n", "out.tsv.orig")
    for ending in (".orig.1", ".orig.2"):
        path = output()
        assert fix_file(str(path)).backup_path == str(path) + ending
        assert (path.parent / f"out.tsv{ending}").read_bytes() == BEFORE
    assert first.read_bytes() == b"my own\n"
    assert names(path) == ["out.tsv", "out.tsv.orig", "out.tsv.orig.1", "out.tsv.orig.2"]


def test_a_dangling_link_is_not_overwritten_by_a_backup(output):
    path = output()
    os.symlink("nowhere", f"{path}.orig")
    assert fix_file(str(path)).backup_path == f"{path}.orig.1"
    assert os.readlink(f"{path}.orig") == "nowhere"


def test_a_file_system_without_links(output, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    output(b"my own\n", "out.tsv.orig")
    path = output()
    path.chmod(0o640)
    backup = fix_file(str(path)).backup_path
    assert backup == f"{path}.orig.1"
    assert (path.parent / "out.tsv.orig.1").read_bytes() == BEFORE
    assert stat.S_IMODE(os.stat(backup).st_mode) == 0o640
    assert path.read_bytes() == AFTER


def failing(error):
    def fail(*_, **__):
        raise error

    return fail


def test_a_backup_that_cannot_be_finished(output, monkeypatch):
    path = output()
    monkeypatch.setattr(os, "link", failing(OSError(errno.EPERM, "Operation not permitted")))
    monkeypatch.setattr("shutil.copystat", failing(OSError(errno.ENOSPC, "No space left on device")))
    with pytest.raises(UsageError, match="No space left on device"):
        fix_file(str(path))
    assert names(path) == ["out.tsv"]
    assert path.read_bytes() == BEFORE


def in_the_middle(path, act):
    """A fix_line that does something to the file when it comes to the line without a colon."""

    def fix(text, **options):
        if text == "水:-1e-9 :1":
            act(path)
        return fix_line(text, **options)

    return fix


def put_another_in_its_place(path):
    (path.parent / "new.tsv").write_bytes(BEFORE)
    os.utime(path.parent / "new.tsv", ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    os.replace(path.parent / "new.tsv", path)


def append(path):
    before = path.stat()
    with path.open("ab") as file:
        file.write(b"new\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def write_the_same_again(path):
    path.write_bytes(BEFORE)
    os.utime(path, ns=(1, 1))


@pytest.mark.parametrize("backup", [True, False], ids=["backup", "no backup"])
@pytest.mark.parametrize("change", [put_another_in_its_place, append, write_the_same_again])
def test_a_file_that_is_changed_meanwhile_is_not_overwritten(change, backup, output, monkeypatch):
    """Its inode, its size or its time tell."""
    path = output()
    monkeypatch.setattr(fixing, "fix_line", in_the_middle(path, change))
    with refused(f"Cannot fix `{path}`: it was changed meanwhile; run it again"):
        fix_file(str(path), backup=backup)
    assert path.read_bytes() == BEFORE + (b"new\n" if change is append else b"")
    assert names(path) == ["out.tsv"]


COMMAND = [sys.executable, "-I", "-c", "import sys; from geval_py.__main__ import main; sys.exit(main())"]


@pytest.mark.long
def test_a_signal_at_any_time_leaves_no_hidden_file(output):
    """The process is real, and the moments are random."""
    moments = random.Random(1)
    data = BEFORE * 10_000
    for _ in range(20):
        path = output(data)
        with subprocess.Popen(
            [*COMMAND, "check", "--fix", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as run:
            time.sleep(moments.uniform(0, 1.5))
            run.terminate()
            run.communicate()
            assert run.returncode in {-signal.SIGTERM, 1}
        assert path.read_bytes() in {data, AFTER * 10_000}
        assert set(names(path)) <= {"out.tsv", "out.tsv.orig"}
        if path.read_bytes() != data:
            assert (path.parent / "out.tsv.orig").read_bytes() == data
        (path.parent / "out.tsv.orig").unlink(missing_ok=True)


@pytest.mark.parametrize("write", [True, False], ids=["written", "shown"])
def test_a_truncated_file(output, write):
    data = gzip.compress(BEFORE * 1000)[:-9]
    path = output(data)
    with pytest.raises(CorruptFileError):
        fix_file(str(path), write=write)
    assert names(path) == ["out.tsv"]
    assert path.read_bytes() == data


@pytest.mark.parametrize("write", [True, False], ids=["written", "shown"])
def test_a_file_that_cannot_be_read(output, write, monkeypatch):
    path = output()
    monkeypatch.setattr("builtins.open", failing(PermissionError(errno.EACCES, "Permission denied")))
    with refused(f"Cannot read `{path}`: Permission denied", UnreadableFileError):
        fix_file(str(path), write=write)
    assert names(path) == ["out.tsv"]


@pytest.mark.parametrize(("path", "name"), [("-", "`-`"), ("https://example.org/o", "`https://example.org/o`")])
def test_only_files(path, name):
    with refused(f"Cannot fix {name}: it is not a file"):
        fix_file(path)
