"""Two files side by side, in blocks: what a block holds, the order of errors, and the threads that work."""

import gzip
import os
import weakref
from functools import partial

import pytest

from geval_py.errors import CorruptFileError, GevalError, LineCountError, MalformedLineError
from geval_py.reading.lines import LineReader
from geval_py.scoring import blocks
from geval_py.scoring.blocks import map_blocks
from geval_py.scoring.evaluate import column_of, find_metric, score_block

HASHED = column_of(find_metric("LogLossHashed"), frozenset())
EACH_NUMBER_OF_THREADS = pytest.mark.parametrize("threads", [1, 2, 5])


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr("geval_py.reading.lines.BLOCK_BYTES", 6)
    monkeypatch.setattr("geval_py.reading.lines.READ_AHEAD_BYTES", 6)
    monkeypatch.setattr(blocks, "RANGE_BYTES", 6)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    opened = []

    def run(output, expected=None):
        for name, data in (("out.tsv", output), ("expected.tsv", expected)):
            if data is not None:
                (tmp_path / name).write_bytes(data)
                opened.append(LineReader(name))
        return opened

    yield run
    for reader in opened:
        reader.__exit__()


def mapped(readers, work, threads, **how):
    output, expected = (*readers, None)[:2]
    return map_blocks(output, expected, work, threads=threads, **how)


MATCHED = {
    "as many": (b":1\n:1\na:1\n", b"x\ny\nz\n", [(1, 2), (3, 1)], None),
    "one line too many": (b":1\n:1\na:1\n", b"x\ny\n", [(1, 2), (3, 1)], "Too many lines in the output file: `out.tsv` has 3, `expected.tsv` has 2"),
    "many lines too many": (b":1\n" * 9, b"x\n", [(1, 2)], "Too many lines in the output file: `out.tsv` has 9, `expected.tsv` has 1"),
    "no expected line": (b":1\n" * 9, b"", [(1, 1)], "Too many lines in the output file: `out.tsv` has 9, `expected.tsv` has 0"),
    "too few lines": (b":1\n:1\n", b"x\n" * 9, [(1, 2)], "Too few lines in the output file: `out.tsv` has 2, `expected.tsv` has 9"),
    "no line": (b"", b"x\n", [], "The output file is empty: `out.tsv`"),
}  # fmt: skip


def read_until_error(readers, threads, **how):
    found = []
    try:
        for block, _ in mapped(readers, bool, threads, **how):
            found.append((block.first_line, block.lines))
    except GevalError as error:
        return found, error
    return found, None


@EACH_NUMBER_OF_THREADS
@pytest.mark.parametrize(("output", "expected", "blocks", "message"), MATCHED.values(), ids=MATCHED)
def test_matched_blocks(output, expected, blocks, message, threads, files):
    """The line after the last one that has an expected word is looked at too: a malformed one says more."""
    found, error = read_until_error(files(output, expected), threads, matched=True)
    assert (found, error and str(error)) == (blocks, message)


ERRORS = {
    "a malformed line before a malformed one": (b":1\nx\n:1\ny\n", b"x\n" * 4, MalformedLineError, 2),
    "a malformed line before the number of lines": (b":1\nx\n:1\n:1\n:1\n", b"x\n" * 3, MalformedLineError, 2),
    "a malformed line that is one too many": (b":1\n:1\n\n", b"x\n" * 2, MalformedLineError, 3),
    "a malformed line that is two too many": (b":1\n:1\n:1\n\n", b"x\n" * 2, LineCountError, 4),
}


@EACH_NUMBER_OF_THREADS
@pytest.mark.parametrize(("output", "expected", "error", "line"), ERRORS.values(), ids=ERRORS)
def test_errors_come_in_the_order_of_lines(output, expected, error, line, threads, files):
    work = partial(score_block, {HASHED: ()}, "expected.tsv", "out.tsv", False)
    with pytest.raises(error) as caught:
        list(map_blocks(*files(output, expected), work, threads=threads, matched=True))
    found = caught.value.line if error is MalformedLineError else caught.value.lines
    assert found == line


@EACH_NUMBER_OF_THREADS
def test_an_error_of_reading_comes_after_the_blocks_before_it(threads, files):
    readers = files(gzip.compress(b":1\n" * 6)[:-8], b"x\n" * 6)
    found, error = read_until_error(readers, threads)
    assert (found, type(error)) == ([(1, 2), (3, 2), (5, 2)], CorruptFileError)


@EACH_NUMBER_OF_THREADS
def test_few_blocks_are_in_memory(threads, files):
    blocks = []
    for block, _ in mapped(files(b":1\n" * 500), bool, threads):
        blocks.append(weakref.ref(block.outputs))
        del block
        assert sum(one() is not None for one in blocks) <= 2 * (threads + 2)  # those that are read, and worked on


def test_available_cores(monkeypatch):
    assert blocks.available_cores() >= 1
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert blocks.available_cores() == os.cpu_count()
