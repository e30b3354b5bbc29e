"""A file that is read in ranges, by several threads, scores as one that is read by one: or fails as it."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples
from raising import refused
from random_outputs import differences, files, long_files, split_of, write
from random_outputs import result as result_of

from geval_py.errors import UnreadableFileError
from geval_py.reading.config import Task
from geval_py.scoring import blocks
from geval_py.scoring.evaluate import evaluate_output, select_schemes

METRICS = ("LogLossHashed8", "LikelihoodHashed:l", "LikelihoodHashed:f<exp:a>")  # of all lines, prepared, selected


def result(split, threads):
    return result_of(split, METRICS, threads=threads)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("ranges")


def scores_as_the_single_reader(output, difference, first, size, threads, folder):
    split = write(folder, output, difference)
    want = result(split, threads=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "RANGE_BYTES", size)
        patch.setattr("geval_py.reading.lines.BLOCK_BYTES", first)
        assert result(split, threads) == want


PROPERTY = settings(deadline=None, derandomize=True)
shorts = {
    "output": files, "difference": differences, "first": st.integers(1, 30),
    "size": st.one_of(st.integers(1, 12), st.integers(13, 400)), "threads": st.integers(2, 4),
}  # fmt: skip
longs = shorts | {
    "output": long_files, "first": st.one_of(st.integers(1, 30), st.integers(31, 9000)),
    "size": st.one_of(st.integers(100, 1000), st.integers(1001, 60_000)),  # a line has up to 20,000 bytes
}  # fmt: skip


@settings(PROPERTY, max_examples=examples(400))
@given(**shorts)
def test_ranges_score_as_the_single_reader(output, difference, first, size, threads, folder):
    """The same signature, losses and texts, to the last bit, or the same error: ranges of a byte to the whole file."""
    scores_as_the_single_reader(output, difference, first, size, threads, folder)


@settings(PROPERTY, max_examples=examples(60))
@given(**longs)
def test_ranges_inside_of_long_lines(output, difference, first, size, threads, folder):
    scores_as_the_single_reader(output, difference, first, size, threads, folder)


@pytest.fixture
def ranged(tmp_path, monkeypatch):
    """Write files of a thousand lines, which are read in ranges of a few; gives their split."""
    monkeypatch.setattr(blocks, "RANGE_BYTES", 40)
    monkeypatch.setattr("geval_py.reading.lines.BLOCK_BYTES", 10)
    (tmp_path / "out.tsv").write_bytes(b"a:0.5 :0.5\n" * 1000)
    (tmp_path / "expected.tsv").write_bytes(b"a\n" * 1000)
    return split_of(tmp_path)


CHANGES = {
    "shrinks": lambda path: os.truncate(path, 6000),
    "grows": lambda path: path.write_bytes(path.read_bytes() + b"a:1\n"),
    "is touched": lambda path: os.utime(path, (1, 1)),
    "is written again": lambda path: path.write_bytes(b"a:0.5 :0.5\n" * 1000),
}


@pytest.mark.parametrize("name", ["out.tsv", "expected.tsv"])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_a_file_that_changes_while_it_is_read(name, change, threads, ranged, tmp_path):
    changes = [lambda: change(tmp_path / name)]

    def change_once(*_):
        if changes:
            changes.pop()()

    for file in ("out.tsv", "expected.tsv"):
        os.utime(tmp_path / file, (0, 0))  # long ago
    with refused(f"Cannot read `{tmp_path / name}`: it was changed while it was read", UnreadableFileError):
        how = {"threads": threads, "progress": change_once}
        evaluate_output(ranged, ranged.outputs[0], select_schemes(Task(metrics=METRICS[:1])), frozenset(), **how)
