"""A file that is read in ranges, by several threads, scores as one that is read by one: or fails as it."""

import os
from itertools import pairwise

import pytest
from geval_py.reading.sources import find_file
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples
from random_outputs import WORDS, differences, files, good_lines, long_files, split_of, write, write_thousand_parts
from random_outputs import result as result_of

from geval_py.errors import MalformedLineError, UnreadableFileError
from geval_py.reading.config import Task
from geval_py.reading.outputs import output_at
from geval_py.scoring import blocks
from geval_py.scoring.blocks import Threads
from geval_py.scoring.evaluate import evaluate_output, select_schemes

METRICS = ("LogLossHashed8", "LikelihoodHashed:l", "LikelihoodHashed:f<exp:a>")  # of all lines, prepared, selected


def result(split, threads):
    return result_of(split, METRICS, workers=Threads(threads))


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
    "output": files,
    "difference": differences,
    "first": st.integers(1, 30),
    "size": st.one_of(st.integers(1, 12), st.integers(13, 400)),
    "threads": st.integers(2, 4),
}
longs = shorts | {
    "output": long_files,
    "first": st.one_of(st.integers(1, 30), st.integers(31, 9000)),
    "size": st.one_of(st.integers(100, 1000), st.integers(1001, 60_000)),  # a line has up to 20,000 bytes
}


@settings(PROPERTY, max_examples=examples(400))
@given(**shorts)
def test_ranges_score_as_the_single_reader(output, difference, first, size, threads, folder):
    """The same signature, losses and texts, to the last bit, or the same error: ranges of a byte to the whole file."""
    scores_as_the_single_reader(output, difference, first, size, threads, folder)


@settings(PROPERTY, max_examples=examples(60))
@given(**longs)
def test_ranges_inside_of_long_lines(output, difference, first, size, threads, folder):
    """Lines of hundreds of words, each in several ranges."""
    scores_as_the_single_reader(output, difference, first, size, threads, folder)


def parts_of(data, cuts):
    """Cut a text after some of its lines."""
    rows = data.splitlines(keepends=True)
    places = sorted({0, len(rows), *(cut % (len(rows) + 1) for cut in cuts)})
    return [b"".join(rows[a:b]) for a, b in pairwise(places)] or [b""]


@settings(deadline=None, derandomize=True, max_examples=examples(150))
@given(
    rows=st.lists(good_lines, max_size=20),
    difference=st.sampled_from([0, 0, 0, -1, 1]),
    cuts=st.lists(st.integers(0, 30), max_size=4),
    size=st.integers(1, 40),
    threads=st.integers(1, 3),
)
def test_parts_score_as_the_file(rows, difference, cuts, size, threads, tmp_path_factory):
    """The outputs, the answers, or both in parts: the same signature, losses and texts, or the same error."""
    folder = tmp_path_factory.mktemp("parts")
    output = b"".join(row + b"\n" for row in rows)
    expected = b"".join(WORDS[n % len(WORDS)] + b"\n" for n in range(max(len(rows) + difference, 0)))
    (folder / "out.tsv").write_bytes(output)
    (folder / "expected.tsv").write_bytes(expected)
    want = result(split_of(folder), threads=1)
    split = split_of(folder)
    paths = {"out.tsv": split.outputs[0].path, "expected.tsv": split.expected}
    for name, data in (("out.tsv", output), ("expected.tsv", expected)):
        parts = parts_of(data, cuts)
        stem = name.removesuffix(".tsv")
        for number, part in enumerate(parts):
            (folder / f"{stem}-{number:02}-of-{len(parts)}.tsv").write_bytes(part)
        (folder / name).unlink()
        paths[name] = find_file(str(folder / name))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "RANGE_BYTES", size)
        patch.setattr("geval_py.reading.lines.BLOCK_BYTES", 5)
        found = result(
            split._replace(expected=paths["expected.tsv"], outputs=(output_at(paths["out.tsv"]),)), threads
        )
    if isinstance(want[1], str):
        want = want[0], want[1].replace("out.tsv", os.path.basename(paths["out.tsv"])), want[2]
        want = want[0], want[1].replace("expected.tsv", os.path.basename(paths["expected.tsv"])), want[2]
    assert found == want


@pytest.mark.parametrize("threads", [1, 3])
def test_a_thousand_parts(threads, tmp_path):
    """Some compressed: the same digits as of the file."""
    assert result(write_thousand_parts(tmp_path), threads)[1:] == result(split_of(tmp_path), threads=1)[1:]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("size", [1, 9, 1000])
def test_a_malformed_line_is_named_in_its_part(size, threads, tmp_path, monkeypatch):
    """The file and the line that can be looked at there."""
    monkeypatch.setattr(blocks, "RANGE_BYTES", size)
    monkeypatch.setattr("geval_py.reading.lines.BLOCK_BYTES", 5)
    for part in range(4):
        lines = [b"a:1\n", b":1\n"] * 10
        if part == 2:
            lines[7] = b"broken\n"
        (tmp_path / f"out-{part}-of-4.tsv").write_bytes(b"".join(lines))
    (tmp_path / "expected.tsv").write_bytes(b"a\n" * 80)
    path = find_file(str(tmp_path / "out.tsv"))
    kind, message, line = result(split_of(tmp_path)._replace(outputs=(output_at(path),)), threads)
    assert message.splitlines()[:2] == [
        "Line 8: Unexpected data [input does not start with a digit]",
        f"  `{tmp_path / 'out-2-of-4.tsv'}`, line 8, column 1: `broken` is not an entry; an entry is `word:probability`, with a colon",
    ]
    assert (kind, line) == (MalformedLineError, 8)


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
    with pytest.raises(UnreadableFileError) as caught:
        evaluate_output(
            ranged,
            ranged.outputs[0],
            select_schemes(Task(metrics=("LogLossHashed",))),
            frozenset(),
            workers=Threads(threads),
            progress=change_once,
        )
    assert str(caught.value) == f"Cannot read `{tmp_path / name}`: it was changed while it was read"


def test_ranges_are_read_by_the_threads_that_work(ranged, monkeypatch):
    """Not by the one that numbers the blocks."""
    import threading

    readers = set()
    read = os.pread
    monkeypatch.setattr(os, "pread", lambda *given: readers.add(threading.get_ident()) or read(*given))
    assert result(ranged, threads=3)[0] is not None
    assert readers
    assert threading.get_ident() not in readers
