"""Files in parts: out-00003-of-00064.tsv.zst and its like are one file."""

import gzip
import hashlib
import os

import pytest
from geval_py.reading.sources import find_file, is_part_of, name_of, part_of, parts_of
from hypothesis import given, settings
from hypothesis import strategies as st

from geval_py.errors import AmbiguousFileError, PartsError, UnreadableFileError
from geval_py.reading.lines import LineReader, read_lines
from geval_py.reading.outputs import find_outputs
from geval_py.reading.splits import outputs_named

NAMES = {
    "out-0-of-2.tsv": ("out.tsv", 0, 2),
    "out-00003-of-00064.tsv.zst": ("out.tsv", 3, 64),
    "out-lr=1-00003-of-00064.tsv.xz": ("out-lr=1.tsv", 3, 64),
    "out-lr=0.01,n=2-1-of-2.tsv": ("out-lr=0.01,n=2.tsv", 1, 2),
    "out-model=a.b-1-of-2.tsv": ("out-model=a.b.tsv", 1, 2),
    "expected-7-of-8": ("expected", 7, 8),
    "in-1-of-2-3-of-4.tsv": ("in-1-of-2.tsv", 3, 4),
    "out.tsv": None,
    "out-of-2.tsv": None,
    "out-a-of-2.tsv": None,
    "out-1-of-x.tsv": None,
    "out-1-of-2-b.tsv": None,
    "1-of-2.tsv": None,
}


@pytest.mark.parametrize(("name", "want"), NAMES.items(), ids=NAMES)
def test_names(name, want):
    part = part_of(name)
    assert (part and (part.whole, part.number, part.total)) == want


PARTS_OF = {
    "a part": ("a/out-0-of-2.tsv", "a/out-*-of-2.tsv", True),
    "the file in parts": ("a/out-*-of-2.tsv", "a/out-*-of-2.tsv", True),
    "a part of another": ("a/out-0-of-2.tsv", "a/on-*-of-2.tsv", False),
    "in another folder": ("b/out-0-of-2.tsv", "a/out-*-of-2.tsv", False),
    "of a part": ("a/out-0-of-2.tsv", "a/out-0-of-2.tsv", False),
    "no part": ("a/out.tsv", "a/out-*-of-2.tsv", False),
    "of a file that is not in parts": ("a/out-0-of-2.tsv", "a/out.tsv", False),
}


@pytest.mark.parametrize(("path", "whole", "is_one"), PARTS_OF.values(), ids=PARTS_OF)
def test_a_part_belongs_to_one_file(path, whole, is_one):
    assert is_part_of(path, whole) == is_one


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Write files into the current folder, each with a line of its name; gives its path."""
    monkeypatch.chdir(tmp_path)

    def write(*names):
        for name in names:
            (tmp_path / name).write_text(f"{name}\n")

    return write


WHOLES = {
    "numbers": (["out-0-of-2.tsv", "out-1-of-2.tsv"], "out-*-of-2.tsv"),
    "more than nine, without zeros": ([f"out-{n}-of-11.tsv" for n in range(11)], "out-*-of-11.tsv"),
    "another compression each": (["out-0-of-2.tsv.zst", "out-1-of-2.tsv"], "out-*-of-2.tsv.zst"),
    "zeros in the name of a later part": (["out-0-of-3.tsv", "out-1-of-3.tsv", "out-02-of-3.tsv"], "out-*-of-3.tsv"),
    "zeros in some": (["out-00-of-2.tsv", "out-1-of-02.tsv"], "out-*-of-2.tsv"),
    "one part": (["out-0-of-1.tsv"], "out-*-of-1.tsv"),
}


@pytest.mark.parametrize(("names", "path"), WHOLES.values(), ids=WHOLES)
def test_parts_are_found_under_the_name_without_numbers(names, path, folder):
    folder(*names, "other.tsv")
    assert find_file("out.tsv") == find_file(path) == path
    assert parts_of(path) == tuple(names)
    (output,) = find_outputs(".")
    assert (output.path, output.name) == (f"./{path}", "out.tsv")


def test_parameters_are_in_the_name_without_numbers(folder):
    folder(*(f"out-lr=0.1,n={n}-{part}-of-2.tsv" for n in (10, 9) for part in range(2)))
    found = {output.name: output.parameters for output in find_outputs(".")}
    assert list(found.items()) == [(f"out-lr=0.1,n={n}.tsv", {"lr": "0.1", "n": n}) for n in ("9", "10")]


@pytest.mark.parametrize("name", ["out-*.tsv", "out-n=1*", ".", "n=1", "out-n=1.tsv", "out-n=1-*-of-2.tsv"])
def test_parts_are_found_wherever_outputs_are(name, folder):
    folder("out-n=1-0-of-2.tsv", "out-n=1-1-of-2.tsv")
    (output,) = outputs_named(".", name)
    assert os.path.normpath(output.path) == "out-n=1-*-of-2.tsv"


def test_a_part_that_is_named_is_taken_alone(folder):
    folder("a-0-of-2.txt", "a-1-of-2.txt", "b.txt")
    assert [output.name for output in outputs_named("elsewhere", "*.txt")] == ["a.txt", "b.txt"]
    folder("out-0-of-2.tsv", "out-1-of-2.tsv")
    assert [output.path for output in outputs_named("elsewhere", "out-1-of-2.tsv")] == ["out-1-of-2.tsv"]
    assert name_of("out-1-of-2.tsv") == "out-1-of-2.tsv"


FAULTS = {
    "one missing": (["out-0-of-3.tsv", "out-2-of-3.tsv"], "part 1 of 3 is missing"),
    "the first missing": (["out-1-of-2.tsv"], "part 0 of 2 is missing"),
    "some missing": (["out-0-of-4.tsv", "out-2-of-4.tsv"], "parts 1, 3 of 4 are missing"),
    "as many missing as are named": (["out-0-of-6.tsv"], "parts 1, 2, 3, 4, 5 of 6 are missing"),
    "one more missing": (["out-0-of-7.tsv"], "parts 1, 2, 3, 4, 5 and 1 more of 7 are missing"),
    "many missing": (["out-1-of-64.tsv"], "parts 0, 2, 3, 4, 5 and 58 more of 64 are missing"),
    "most missing": (["out-1-of-999999999999.tsv"], "parts 0, 2, 3, 4, 5 and 999999999993 more of 999999999999 are missing"),
    "counted from 1": (["out-1-of-2.tsv", "out-2-of-2.tsv"], "there is a part 2 of 2, but parts are numbered from 0\n  `out-2-of-2.tsv`"),
    "no parts": (["out-0-of-0.tsv"], "there is a part 0 of 0, but parts are numbered from 0\n  `out-0-of-0.tsv`"),
    "there twice": (["out-0-of-1.tsv", "out-00-of-1.tsv"], "there is more than one part 0 of 1\n  `out-00-of-1.tsv`, `out-0-of-1.tsv`"),
    "compressed too": (["out-0-of-1.tsv", "out-0-of-1.tsv.gz"], "there is more than one part 0 of 1\n  `out-0-of-1.tsv`, `out-0-of-1.tsv.gz`"),
    "of two runs": (["out-0-of-1.tsv", "out-0-of-2.tsv", "out-1-of-2.tsv"], "some are numbered of 1, others of 2\n  `out-0-of-1.tsv`, `out-1-of-2.tsv`"),
}  # fmt: skip


@pytest.mark.parametrize(("names", "reason"), FAULTS.values(), ids=FAULTS)
def test_parts_that_are_incomplete_or_inconsistent(names, reason, folder):
    folder(*names)
    with pytest.raises(PartsError) as caught:
        find_file("out.tsv")
    (output,) = find_outputs(".")
    want, _, others = reason.partition("\n")
    state = "inconsistent" if others else "incomplete"
    assert str(output.fault) == f"The parts of `{output.path}` are {state}: {reason}"
    first, _, second = str(caught.value).partition("\n")
    assert first.endswith(f"are {state}: {want}")
    assert sorted(second.split()) == sorted(others.split())


def test_a_file_and_parts_of_the_same_name(folder):
    folder("out.tsv", "out-0-of-1.tsv")
    (output,) = find_outputs(".")
    assert str(output.fault) == (
        "More than one file could be `./out.tsv`: `./out.tsv` and `./out-*-of-1.tsv`\n  remove all but one"
    )
    os.rename("out.tsv", "out.tsv.gz")
    with pytest.raises(AmbiguousFileError):
        find_file("out.tsv")
    folder("out-*-of-1.tsv")  # a star in the name of a file
    assert list(read_lines("out-*-of-1.tsv")) == ["out-*-of-1.tsv"]


PARTS = st.lists(st.lists(st.sampled_from([b"a:1\n", b"b:0.5 :0.5\r\n", b"\n"]), max_size=5), min_size=1, max_size=4)


@settings(deadline=None, derandomize=True)
@given(parts=PARTS, mark=st.booleans(), header=st.booleans(), cut=st.booleans(), size=st.integers(1, 50))
def test_parts_are_read_as_one_file(parts, mark, header, cut, size, tmp_path_factory):
    """Each without its byte order mark and header line; the last line of each may lack its LF."""
    folder = tmp_path_factory.mktemp("parts")
    stored = [mark * b"\xef\xbb\xbf" + header * b"Word\n" + b"".join(lines) for lines in parts]
    stored = [data.removesuffix(b"\n") if cut and data.endswith(b"1\n") else data for data in stored]
    for number, data in enumerate(stored):
        path = folder / f"out-{number}-of-{len(parts)}.tsv"
        path.write_bytes(data) if number % 2 else path.with_suffix(".tsv.gz").write_bytes(gzip.compress(data))
    with LineReader(str(folder / f"out-*-of-{len(parts)}.tsv.gz"), header="Word", digest=True) as reader:
        assert b"".join(iter(lambda: reader.block(size), b"")) == b"".join(map(b"".join, parts))
        assert reader.sha256 == hashlib.sha256(b"".join(stored)).hexdigest()
        assert reader.position == reader.size == sum(path.stat().st_size for path in folder.iterdir())


def test_a_part_that_is_changed(folder):
    folder("out-0-of-2.tsv", "out-1-of-2.tsv")
    with LineReader("out-*-of-2.tsv") as reader:
        os.utime("out-1-of-2.tsv", (1, 1))
        with pytest.raises(UnreadableFileError) as caught:
            reader.check_unchanged()
    assert str(caught.value) == "Cannot read `out-*-of-2.tsv`: it was changed while it was read"
