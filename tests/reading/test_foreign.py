"""Files of other kinds, known by their first bytes."""

import bz2
import gzip
import io
import lzma
import pickle
import sqlite3
import tarfile
import zipfile
from contextlib import closing

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from geval_py.reading.compression import foreign_content, zstd_module

zstd = zstd_module()
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n"
KEY = b"SHA256E-s12345--4d7a2146.tsv"
# The layout of the safetensors format: the length of the header in eight bytes, the header, the numbers.
SAFETENSORS = b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'


def tar_of(name="out.tsv", format=tarfile.GNU_FORMAT):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=format) as archive:
        archive.addfile(tarfile.TarInfo(name))
    return buffer.getvalue()


def zip_of(*names):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            archive.writestr(name, "the:0.5 :0.5\n")
    return buffer.getvalue()


def written(save, *values):
    buffer = io.BytesIO()
    save(buffer, *values)
    return buffer.getvalue()


def sqlite_of(folder):
    with closing(sqlite3.connect(folder / "db")) as database, database:
        database.execute("create table t (a)")
    return (folder / "db").read_bytes()


ARRAYS = "write its rows with geval_py.write_output('out.tsv', probabilities, vocabulary=words)"
FOREIGN = [
    (LFS, "a git-lfs pointer: run git lfs pull"),
    (b"/annex/objects/" + KEY + b"\n", "a git-annex pointer: run git annex get"),
    (b"../../.git/annex/objects/Xv/1q/" + KEY + b"/" + KEY, "a git-annex pointer: run git annex get"),
    (tar_of(), "a tar archive: unpack it with tar -xf"),
    (tar_of("é/out.tsv", tarfile.PAX_FORMAT), "a tar archive: unpack it with tar -xf"),
    (zip_of("out.tsv"), "a zip archive: unpack it"), (zip_of(), "a zip archive: unpack it"),
    (zip_of("[Content_Types].xml", "xl/workbook.xml"), "an Excel workbook: save it as text or CSV"),
    (zip_of("docProps/app.xml"), "an Excel workbook: save it as text or CSV"),
    (written(np.savez, np.ones(2)), f"a file of numpy arrays (.npz): {ARRAYS}"),
    (zip_of("archive/data.pkl"), f"a file of PyTorch: load it with torch.load, and {ARRAYS}"),
    (written(np.save, np.ones(2)), f"a numpy array (.npy): {ARRAYS}"),
    (len(SAFETENSORS).to_bytes(8, "little") + SAFETENSORS + bytes(8),
        f"a file of safetensors: it has numbers without words: {ARRAYS}"),
    *((pickle.dumps({"the": 0.5}, protocol), f"a pickle of Python or PyTorch: load it, and {ARRAYS}")
      for protocol in (2, 3, 4, 5)),
    (written(lambda file: pq.write_table(pa.table({"a": [1]}), file)), "Parquet: name it .parquet"),
    (b"%PDF-1.7\n", "a PDF document: export the text"),
    *((b"\n" * lines + b" <!DOCTYPE html><html>", "an HTML page: download the file itself, perhaps by its raw link")
      for lines in (1, 2000)),
]  # fmt: skip

PACK = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress, ".zst": zstd.compress}


@pytest.mark.parametrize("ending", PACK)
def test_an_output_that_is_something_else(ending, tmp_path, monkeypatch, geval):
    """It is named, also inside a compression, with what to do."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "expected.tsv").write_text("the\n")
    name = f"out.tsv{ending}"
    for data, what in FOREIGN:
        (tmp_path / name).write_bytes(PACK[ending](data))
        message = f"geval: Line 1: Unexpected data in `{name}`: it is {what}\n"
        assert geval("-o", name, "-e", "expected.tsv", "-m", "PerplexityHashed") == (1, "", message)


def test_a_database(tmp_path):
    assert foreign_content(sqlite_of(tmp_path)[:512]) == "an SQLite database: export the table as CSV"


@pytest.mark.parametrize("data", [
    b"", b"the:0.5 :0.5\n", "Zürich:1\n".encode("cp1250"), b"version:0.5 https://git-lfs:0.5\n", b"../out:1\n",
    b"PK:1\n", b"<html>:0.5 <b>:0.5\n", b'{"words": ["a"]}\n', b'12345678{"a": 1}\n', b"a" * 257 + b":1\n",
    b"\xef\xbb\xbfthe:1\n", b"-1.5 " * 200,
])  # fmt: skip
def test_lines_are_not_foreign(data):
    assert foreign_content(data) is None
