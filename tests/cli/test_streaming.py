"""Lines are shown as they are read again: memory does not grow with the files."""

import os
import subprocess
import sys
import threading

import pytest

from geval_py.explaining import line_by_line
from geval_py.reading import files

MAX_MEMORY = 100  # MB
RUN = (
    "import re, sys; from geval_py.cli import main; status = main(sys.argv[1:]); "
    "print(re.search(r'VmHWM:\\s+(\\d+) kB', open('/proc/self/status').read())[1], file=sys.stderr); sys.exit(status)"
)


def write(folder, lines, width):
    """Write a challenge's files with so many lines, its outputs and its input ``width`` characters wide."""
    (folder / "config.txt").write_text("--metric PerplexityHashed\n")
    (folder / "test-A").mkdir()
    words = " ".join(f"w{n}:0.001" for n in range(width // 10))
    for name, line in (
        ("in.tsv", "x" * width), ("expected.tsv", "a"), ("out.tsv", f"a:0.5 {words} :0.1"),
        ("out-other.tsv", f"a:0.25 {words} :0.1"),
    ):  # fmt: skip
        (folder / "test-A" / name).write_text(f"{line}\n" * lines)


def peak_memory(folder, *words):
    """Return the peak memory of the command, in MB."""
    command = [sys.executable, "-I", "-c", RUN, "-o", "out.tsv", *words]
    run = subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True)
    return int(run.stderr) / 1000


MODES = {
    "lines": ["-l"], "lines in JSON": ["-l", "--format", "json"], "lines in CSV": ["-l", "--format", "csv"],
    "sorted lines": ["-l", "-s"], "lines with a feature": ["-l", "--filter", "exp:a"],
    "differences": ["-d", "out-other.tsv"],
    "the best of two": ["--oracle-item-based", "--alt-out-file", "out-other.tsv"],
}  # fmt: skip


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """A challenge with 220 MB of texts, in three files of which one is nearly what memory may be taken."""
    folder = tmp_path_factory.mktemp("wide")
    write(folder, 30_000, 2500)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", [
    name if name in ("sorted lines", "differences") else pytest.param(name, marks=pytest.mark.long) for name in MODES
])  # fmt: skip
def test_texts_are_not_kept(name, wide):
    assert peak_memory(wide, *MODES[name]) < MAX_MEMORY


@pytest.fixture
def challenge(tmp_path, monkeypatch):
    write(tmp_path, 3, 10)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("kept", [0, files.MAX_KEPT_BYTES])
@pytest.mark.parametrize("name", ["expected.tsv", "out.tsv"])
def test_a_file_that_is_changed_meanwhile(name, kept, challenge, geval, monkeypatch):
    """What is shown beside a score is what was scored."""
    monkeypatch.setattr(files, "MAX_KEPT_BYTES", kept)
    path, read = challenge / "test-A" / name, line_by_line.read_lines
    want = geval("-o", "out.tsv", "-l")

    def change_first(*evaluations):
        path.write_text("a:1\n" * 4)
        return read(*evaluations)

    monkeypatch.setattr(line_by_line, "read_lines", change_first)
    changed = f"geval: Cannot read `./test-A/{name}`: it was changed while it was read\n"
    assert geval("-o", "out.tsv", "-l") == (want if kept else (1, "", changed))


@pytest.mark.parametrize("name", ["in.tsv", "expected.tsv", "out.tsv"])
def test_what_can_be_read_only_once_is_kept(name, challenge, geval):
    """A pipe: the same lines."""
    want = geval("-o", "out.tsv", "-l")
    path = challenge / "test-A" / name
    text = path.read_bytes()
    path.unlink()
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(text,))
    writer.start()
    assert geval("-o", "out.tsv", "-l") == want
    writer.join()
