"""The outputs of a test set: their names, which files are found, and the lines of one, read one by one."""

import gzip

import pytest
from raising import refused

from geval_py.errors import AmbiguousFileError, MalformedLineError, MissingFileError
from geval_py.reading.outputs import by_accepted_names, find_outputs, output_at, parse_parameters, read_output
from geval_py.reading.wordprobs import parse_line


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The current directory, with an output in dev-0."""
    (tmp_path / "dev-0").mkdir()
    write(tmp_path / "dev-0", "out.tsv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder, *names):
    for name in names:
        (folder / name).write_text(":1\n")


PARAMETERS = {
    "out.tsv": {}, "out-.tsv": {}, "out-a.tsv": {}, "out-epochs=10.tsv": {"epochs": "10"},
    "out-epochs=10,lr=0.01.tsv": {"epochs": "10", "lr": "0.01"},
    "out-epochs=10,lr=0.01.tsv.xz": {"epochs": "10", "lr": "0.01"}, "out-lr=0.01": {"lr": "0.01"},
    "out-lr=1e-3.tsv.gz": {"lr": "1e-3"}, "out-model=a-b.tsv": {"model": "a-b"}, "out-a=b=c.tsv": {"a": "b=c"},
    "out-a=.tsv": {"a": ""}, "out-a=,b=.tsv.bz2": {"a": "", "b": ""}, "out- a = 1 , b= 2 .tsv": {"a": "1", "b": "2"},
    "out-a=1,b.tsv": {}, "out-a=1,.tsv": {}, "out-=1.tsv": {}, "out- =1.tsv": {}, "out-żółw=水.tsv.zst": {"żółw": "水"},
    "answers-a=1.tsv": {"a": "1"}, "-a=1.tsv": {}, "-": {}, "": {},
}  # fmt: skip


@pytest.mark.parametrize(("name", "parameters"), PARAMETERS.items(), ids=PARAMETERS)
def test_parameters_in_a_name(name, parameters):
    assert parse_parameters(name) == parameters


def test_all_parameters_of_one_name_it_before_some_of_another_do():
    outputs = [output_at(f"out-{name}.tsv") for name in ("model=a", "model=a,tuned=nu", "model=b,tuned=nu")]
    called = by_accepted_names([output.name for output in outputs], outputs)
    assert called["a"] == called["model=a"] == [0]
    assert called["a,nu"] == called["a,tuned=nu"] == called["model=a,tuned=nu"] == [1]
    assert called["nu"] == called["tuned=nu"] == [1, 2]


def test_several_outputs_in_natural_order(here):
    assert [(of.path, *of[1:]) for of in find_outputs("dev-0")] == [("dev-0/out.tsv", "out.tsv", {}, None)]
    write(here / "dev-0", "out-a.mixing.json", "out-a.model.json")  # of geval mix and geval predict
    names = ["out-epochs=10,lr=0.1.tsv", "out-epochs=2,lr=0.1.tsv", "out-best.tsv", "out-.tsv", "out-a\nb.tsv"]
    write(here / "dev-0", *names, "output.tsv", "xout-1.tsv", "out-1.txt", "out-2.tsv.zip", "expected.out.tsv")
    assert [(output.name, output.parameters) for output in find_outputs("dev-0")] == [
        ("out-.tsv", {}), ("out-a\nb.tsv", {}), ("out-best.tsv", {}),
        ("out-epochs=2,lr=0.1.tsv", {"epochs": "2", "lr": "0.1"}),
        ("out-epochs=10,lr=0.1.tsv", {"epochs": "10", "lr": "0.1"}), ("out.tsv", {}),
    ]  # fmt: skip


def test_compressed_outputs_are_found_once(here):
    write(here / "dev-0", "out.tsv.xz", "out-a=1.tsv.gz", "out-a=2.tsv", "out-a=2.tsv.xz")
    assert [(output.path, output.name) for output in find_outputs("dev-0")] == [
        ("dev-0/out-a=1.tsv.gz", "out-a=1.tsv"), ("dev-0/out-a=2.tsv", "out-a=2.tsv"), ("dev-0/out.tsv", "out.tsv"),
    ]  # fmt: skip


TEXT = "the:0.5 :0.5\n-1 -2\r\n:1"
LINES = [parse_line("the:0.5 :0.5"), parse_line("-1 -2"), parse_line(":1")]


def test_a_compressed_output_is_found_by_its_plain_name(tmp_path):
    (tmp_path / "out.tsv.gz").write_bytes(gzip.compress(TEXT.encode()))
    assert list(read_output(str(tmp_path / "out.tsv"))) == LINES
    (tmp_path / "out.tsv.gz").write_bytes(gzip.compress(b""))
    assert list(read_output(tmp_path / "out.tsv")) == []
    (tmp_path / "out.tsv.xz").write_bytes(b"")
    with pytest.raises(AmbiguousFileError):
        next(read_output(tmp_path / "out.tsv"))


def test_a_header_is_skipped_where_it_is_named(tmp_path):
    (tmp_path / "out.tsv").write_text("Word\tmore\n:1\nWord:1\n")
    assert list(read_output(tmp_path / "out.tsv", header="Word")) == [parse_line(":1"), parse_line("Word:1")]


def test_an_output_that_is_not_there(tmp_path):
    lines = read_output(tmp_path / "out.tsv")  # nothing is opened yet
    with refused(f"No file with the test results: `{tmp_path}/out.tsv`", MissingFileError):
        next(lines)


def test_a_malformed_line_is_named_with_its_path(tmp_path):
    path = tmp_path / "out.tsv"
    path.write_text(":1\nthe:0,5 :0.5\n:1\n")
    lines = read_output(path)
    assert next(lines) == parse_line(":1")
    with pytest.raises(MalformedLineError, match=f"\n  `{path}`, line 2, column 5: "):
        next(lines)
