"""Files elsewhere, by fsspec: in memory, and on an S3 server of this machine."""

import gzip
import sys
from pathlib import Path

import fsspec
import pytest
from raising import refused
from servers import s3_server

import geval_py
from geval_py.errors import UnreadableFileError
from geval_py.reading.files import File
from geval_py.reading.lines import LineReader, read_lines

GAZETTE = Path(__file__).parents[2] / "challenges" / "gazette"


@pytest.fixture
def memory():
    """An empty file system in memory; gives what writes a file there."""
    system = fsspec.filesystem("memory")
    system.store.clear()
    system.pseudo_dirs[:] = [""]
    yield system.pipe_file
    system.store.clear()
    system.pseudo_dirs[:] = [""]


def write_files(write, top):
    for name in ("in.tsv.xz", "expected.tsv", "out-model=unigram.tsv"):
        write(f"{top}/{name}", (GAZETTE / "dev-0" / name).read_bytes())
    write(f"{top}/out-model=bigram.tsv.gz", gzip.compress((GAZETTE / "dev-0/out-model=bigram.tsv").read_bytes()))


def check_files(top, geval, monkeypatch):
    """The same numbers, signature and lines as of the files on this machine."""
    here = geval_py.evaluate(GAZETTE, "dev-0", output="out-model=bigram.tsv")
    there = geval_py.evaluate(GAZETTE, "dev-0", output=f"{top}/out-model=bigram.tsv.gz")
    assert (str(here), here.signature) == (str(there), there.signature)
    assert list(here.read_items()) == list(there.read_items())
    assert there.output.name == "out-model=bigram.tsv"
    monkeypatch.chdir(GAZETTE)
    shown = [
        geval("-o", f"{folder}/out-model=unigram.tsv", "-e", f"{folder}/expected.tsv", "-i", f"{folder}/in.tsv.xz",
              "-m", "LogLossHashed", "-l")
        for folder in ("dev-0", top)
    ]  # fmt: skip
    assert shown[0][0] == 0
    assert shown[0] == shown[1]


def test_files_in_memory(memory, geval, monkeypatch):
    write_files(memory, "/runs")
    check_files("memory://runs", geval, monkeypatch)


@pytest.mark.slow
def test_files_on_an_s3_server(geval, monkeypatch, tmp_path):
    with s3_server(monkeypatch, tmp_path) as system:
        system.mkdir("runs")
        write_files(system.pipe_file, "runs/dev-0")
        check_files("s3://runs/dev-0", geval, monkeypatch)
        with refused("Cannot read `s3://runs/nothing.tsv`: No such file or directory", UnreadableFileError):
            geval_py.evaluate(GAZETTE, "dev-0", output="s3://runs/nothing.tsv")


@pytest.mark.long
def test_a_bucket_without_permission(geval, monkeypatch, tmp_path):
    with s3_server(monkeypatch, tmp_path, refuses=True):
        status, out, err = geval("-o", "s3://runs/out.tsv", "-e", "s3://runs/expected.tsv", "-m", "LogLossHashed")
    assert (status, out) == (1, "")
    assert err == "geval: Cannot read `s3://runs/out.tsv`: Forbidden\n"


def test_credentials_are_left_out_of_messages(geval):
    address = "sftp://me:secret@127.0.0.1:1/out.tsv"
    status, out, err = geval("-o", address, "-e", address, "-m", "LogLossHashed")
    assert (status, out) == (1, "")
    assert err.startswith("geval: Cannot read `sftp://127.0.0.1:1/out.tsv`: ")
    assert "secret" not in err
    assert "me:" not in err


def test_a_file_is_copied_once(memory):
    memory("/out.tsv", b"Word\na:1\n")
    file = File("memory://out.tsv")
    with LineReader(file, header="Word") as reader:
        assert (reader.offset, reader.rest(), reader.position, reader.size) == (5, b"a:1\n", 9, 9)
        memory("/out.tsv", b"a:1\n" * 2)
        reader.check_unchanged()
    assert list(read_lines(file)) == ["Word", "a:1"]


@pytest.mark.parametrize(("path", "missing", "message"), [
    ("s3://runs/out.tsv", "s3fs", "s3:// needs a driver: Install s3fs to access S3"),
    ("gs://runs/out.tsv", "gcsfs", "gs:// needs a driver: Please install gcsfs to access Google Storage"),
    ("sftp://host/out.tsv", "paramiko", 'sftp:// needs a driver: SFTPFileSystem requires "paramiko" to be installed'),
    ("s3://runs/out.tsv", "fsspec.core",
     "s3:// is read by fsspec, of the extra cluster: pip install 'dask[distributed]>=2024.8' 'fsspec>=2024.6'"),
])  # fmt: skip
def test_a_driver_that_is_missing(path, missing, message, monkeypatch):
    for name in [name for name in sys.modules if name.startswith(("s3fs", "fsspec.implementations.sftp"))]:
        monkeypatch.delitem(sys.modules, name)
    from fsspec.registry import _registry

    for scheme in ("s3", "sftp", "gs"):
        monkeypatch.delitem(_registry, scheme, raising=False)
    monkeypatch.setitem(sys.modules, missing, None)
    with refused(message):
        list(read_lines(path))


def test_a_file_elsewhere_is_checked_and_not_mended(memory, geval):
    memory("/out.tsv", b"a:0.5 :0.5\r\nb:0,5\n")
    status, out, _ = geval("check", "memory://out.tsv")
    assert (status, "E1" in out) == (1, True)
    status, out, err = geval("check", "--fix", "memory://out.tsv")
    assert (status, err.splitlines()[0]) == (1, "geval: Cannot fix `memory://out.tsv`: it is not a file")
