"""A file is written whole or not at all, and nothing is left beside it."""

import errno
import os
import signal
import stat
import subprocess
import sys

import pytest
from raising import refused

from geval_py.errors import UsageError
from geval_py.reading.compression import COMPRESSIONS, compression_by_ending
from geval_py.reading.lines import LineReader, decode_lines
from geval_py.reading.rewriting import written_whole

NAMES = ["out.tsv", *(f"out.tsv{compression.ending}" for compression in COMPRESSIONS)]
each_name = pytest.mark.parametrize("name", NAMES)


class InterruptionError(Exception):
    pass


@pytest.fixture
def write(tmp_path):
    """Write lines to a file of that name; gives its path."""

    def run(name="out.tsv", lines=(b"the:1\n", b"\xe6\xb0\xb4:1\n")):
        path = tmp_path / name
        with written_whole(str(path), compression=compression_by_ending(name)) as file:
            for line in lines:
                file.write(line)
        return path

    return run


def names(folder):
    return sorted(os.listdir(folder))


@each_name
def test_a_new_file_is_compressed_by_its_ending(name, write, tmp_path, monkeypatch):
    """The same bytes give the same file."""
    path = write(name)
    with LineReader(str(path)) as reader:
        assert reader.compression == compression_by_ending(name)
        assert decode_lines(reader.block()) == ["the:1", "水:1"]
    assert names(tmp_path) == [name]
    first = path.read_bytes()
    monkeypatch.setattr("time.time", lambda: 0.0)
    assert write(name).read_bytes() == first


@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077])
def test_a_new_file_has_the_permissions_that_others_have(mask, write):
    before = os.umask(mask)
    try:
        assert stat.S_IMODE(write().stat().st_mode) == 0o666 & ~mask
    finally:
        assert os.umask(before) == mask


@pytest.mark.parametrize("mode", [0o600, 0o664])
def test_a_file_that_is_there_keeps_its_permissions(mode, write, tmp_path):
    (tmp_path / "out.tsv").write_text("old\n")
    (tmp_path / "out.tsv").chmod(mode)
    path = write()
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"the:1\n\xe6\xb0\xb4:1\n", mode)
    assert names(tmp_path) == ["out.tsv"]


@pytest.mark.parametrize("is_there", [True, False])
def test_a_link_stays(is_there, write, tmp_path):
    (tmp_path / "folder").mkdir()
    if is_there:
        (tmp_path / "folder/target.tsv").write_text("old\n")
    (tmp_path / "out.tsv").symlink_to("folder/target.tsv")
    write(lines=[b"new\n"])
    assert os.readlink(tmp_path / "out.tsv") == "folder/target.tsv"
    assert (tmp_path / "folder/target.tsv").read_bytes() == b"new\n"
    assert (names(tmp_path), names(tmp_path / "folder")) == (["folder", "out.tsv"], ["target.tsv"])


@each_name
@pytest.mark.parametrize("error", [InterruptionError(), OSError(errno.EIO, "not of this file"), KeyboardInterrupt()])
@pytest.mark.parametrize("is_there", [True, False])
def test_an_error_half_way_leaves_all_as_it_was(name, error, is_there, write, tmp_path):
    """The error comes through as it is: it may be of what is written."""
    if is_there:
        (tmp_path / name).write_bytes(b"old\n")

    def lines():
        yield b"the:1\n"
        assert len([name for name in names(tmp_path) if name.startswith(".geval-")]) == 1
        raise error

    with pytest.raises(type(error)) as caught:
        write(name, lines())
    assert caught.value is error
    assert names(tmp_path) == [name] * is_there
    assert not is_there or (tmp_path / name).read_bytes() == b"old\n"


KILLED = """\
import os, signal, sys
from geval_py.reading.rewriting import written_whole
with written_whole(sys.argv[1]) as file:
    file.write(b"the:1\\n" * 100_000)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_program_leaves_has_a_name_that_says_so(tmp_path):
    run = subprocess.run([sys.executable, "-c", KILLED, tmp_path / "out.tsv"], check=False)
    assert run.returncode == -signal.SIGKILL
    (left,) = names(tmp_path)
    assert left.startswith(".geval-unfinished-")


def failing(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


@each_name
@pytest.mark.parametrize("where", ["os.open", "os.chmod", "os.replace"])
def test_what_cannot_be_written(name, where, write, tmp_path, monkeypatch):
    monkeypatch.setattr(where, failing)
    with refused(f"Cannot write `{tmp_path}/{name}`: No space left on device"):
        write(name)
    assert names(tmp_path) == []


@each_name
def test_a_full_device(name, write, monkeypatch, tmp_path):
    fdopen = os.fdopen

    def full(descriptor, mode):
        os.close(descriptor)
        return fdopen(os.open("/dev/full", os.O_WRONLY), mode)

    monkeypatch.setattr(os, "fdopen", full)
    with refused(f"Cannot write `{tmp_path}/{name}`: No space left on device"):
        write(name, (os.urandom(1 << 16) for _ in range(64)))
    assert names(tmp_path) == []


def message_of(function, *values):
    with pytest.raises(ValueError, match="null") as caught:
        function(*values)
    return str(caught.value)


REFUSED = {
    "a folder": ("folder", "it is a folder, not a file"), "a pipe": ("pipe", "it is not a regular file"),
    "a link to itself": ("loop", "it is a symbolic link; name the file that it leads to"),
    "a NUL": ("a\0b", message_of(os.replace, "a", "a\0b")),
}  # fmt: skip


@pytest.mark.parametrize(("name", "reason"), REFUSED.values(), ids=REFUSED)
def test_refused(name, reason, write, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    before = names(tmp_path)
    with pytest.raises(UsageError) as caught:
        write(name)
    shown = name.replace("\0", "\\x00")
    assert str(caught.value) == f"Cannot write `{tmp_path}/{shown}`: {reason}"
    assert names(tmp_path) == before


@pytest.mark.parametrize(("path", "named"), [("-", "`-`"), ("https://example.org/o", "`https://example.org/o`")])
def test_only_files(path, named):
    with pytest.raises(UsageError) as caught, written_whole(path):
        pass
    assert str(caught.value) == f"Cannot write {named}: it is not a file"
