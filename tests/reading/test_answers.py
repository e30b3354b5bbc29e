"""Expected answers in JSON lines, in Parquet and in the folders of Hugging Face's datasets."""

import gzip
import json
import os
import pickle
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from geval_py import Challenge, evaluate
from geval_py.cli import main
from geval_py.errors import TooLargeError, UnreadableFileError, UsageError
from geval_py.reading import parquet
from geval_py.reading.files import absolute, state_at
from geval_py.reading.lines import LineReader, read_lines
from geval_py.reading.splits import find_answers

DATASETS = Path(__file__).parents[1] / "data" / "datasets"
WORDS = ["blue", "green"]
OUT = "blue:0.5 :0.5\nblue:0.25 green:0.5 :0.25\n"


def lines_of(path):
    return list(read_lines(find_answers(str(path))))


def reason_of(path):
    with pytest.raises(UnreadableFileError) as caught:
        lines_of(path)
    return caught.value.reason


@pytest.fixture
def dataset(tmp_path):
    """A copy of a dataset, named expected."""
    return shutil.copytree(DATASETS / "single", tmp_path / "expected")


def as_json_lines(folder):
    (folder / "expected.jsonl").write_text(
        "".join(json.dumps({"id": n, "answer": w}) + "\n" for n, w in enumerate(WORDS))
    )


def as_parquet(folder):
    pq.write_table(
        pa.table({"text": ["x", "y"], "expected": WORDS, "answer": ["no", "no"]}), folder / "expected.parquet"
    )


def as_dataset(folder):
    shutil.copytree(DATASETS / "single", folder / "expected")


KINDS = [as_json_lines, as_parquet, as_dataset]


@pytest.mark.parametrize("write", KINDS)
def test_a_challenge_with_other_answers(write, tmp_path, monkeypatch, capsys):
    """They are found where there is no expected.tsv, and the score is the same to the last digit."""
    (tmp_path / "config.txt").write_text("--metric PerplexityHashed --metric Accuracy")
    for name in ("dev-0", "dev-1"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "in.tsv").write_text("The sky is\nGrass is\n")
        for out in ("out-a.tsv", "out-b.tsv"):
            (tmp_path / name / out).write_text(OUT)
    (tmp_path / "dev-0" / "expected.tsv").write_text("".join(f"{word}\n" for word in WORDS))
    write(tmp_path / "dev-1")
    of_tsv, of_other = (evaluate(tmp_path, name, output="out-a.tsv") for name in ("dev-0", "dev-1"))
    assert of_tsv.scores == of_other.scores
    assert of_tsv.lines().equals(of_other.lines())
    assert [item.expected for item in Challenge.open(tmp_path)["dev-1"]] == WORDS
    monkeypatch.chdir(tmp_path)
    shown = []
    for name in ("dev-0", "dev-1"):
        assert main(["-t", name]) == 0
        assert main(["check", "-t", name]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]


def test_a_column_is_named(tmp_path, monkeypatch, capsys):
    as_parquet(tmp_path)
    assert lines_of(tmp_path / "expected.parquet") == WORDS
    assert lines_of(tmp_path / "expected.parquet#text") == ["x", "y"]
    assert lines_of(DATASETS / "single#n") == ["1", "2"]
    assert lines_of(DATASETS / "split" / "test") == ["green"]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out.tsv").write_text("x:0.5 :0.5\ny:0.5 :0.5\n")
    assert main(["-o", "out.tsv", "-e", "expected.parquet#text", "-m", "Accuracy", "-p", "1"]) == 0
    assert capsys.readouterr().out == "1.0\n"
    (tmp_path / "words.tsv").write_text("x\n")
    with pytest.raises(UsageError) as caught:
        find_answers("words.tsv#text")
    assert str(caught.value) == "`words.tsv` has no columns: it is neither JSON lines nor Parquet"
    assert find_answers("nothing.jsonl#text") is None
    (tmp_path / "a#b.tsv").write_text("z\n")
    assert lines_of("a#b.tsv") == ["z"]


def test_the_classes_of_a_dataset_have_names(dataset):
    info = json.loads((dataset / "dataset_info.json").read_text())
    info["features"]["n"] = {"names": ["none", "one", "two"], "_type": "ClassLabel"}
    (dataset / "dataset_info.json").write_text(json.dumps(info))
    assert lines_of(f"{dataset}#n") == ["one", "two"]
    info["features"]["n"]["names"].pop()
    (dataset / "dataset_info.json").write_text(json.dumps(info))
    assert reason_of(f"{dataset}#n") == "row 2, n: there is no class 2; there are 2"


@pytest.mark.parametrize("store_schema", [True, False])
def test_answers_in_parquet_have_the_limits_of_outputs(store_schema, tmp_path, monkeypatch):
    """A few bytes are refused that stand for many long answers; repeated ones are one text in memory."""
    path = tmp_path / "expected.parquet"
    answers = ["long" * 1000, None, *["a"] * 4998]
    table = pa.table({"answer": pa.array(answers).dictionary_encode(), "n": list(range(5000))})
    pq.write_table(table, path, store_schema=store_schema)
    assert reason_of(path) == "row 2, answer: a text or a number is wanted, not nothing"
    assert lines_of(f"{path}#n") == [str(n) for n in range(5000)]
    pq.write_table(pa.table({"answer": ["long" * 1000] * 5000}), path)
    assert lines_of(path) == ["long" * 1000] * 5000
    monkeypatch.setattr(parquet, "MAX_GROUP_BYTES", 1 << 14)
    monkeypatch.setattr(parquet, "MAX_RATIO", 1)
    assert reason_of(path).startswith("row group 1 would unpack to ")


def test_the_column_is_chosen_once(tmp_path):
    path = tmp_path / "expected.jsonl"
    path.write_text('{"expected": "a", "answer": "b"}\n{"answer": "c"}\n')
    reason = "row 2: it has no `expected`, the column of the answers in the first row"
    assert reason_of(path) == reason_of(f"{path}#expected") == reason
    assert lines_of(f"{path}#answer") == ["b", "c"]
    path.write_text('{"answer": "a"}\n{"answer": "b", "expected": "c"}\n')
    assert lines_of(path) == ["a", "b"]


def test_the_classes_in_parquet_of_datasets_have_names(tmp_path):
    """The metadata is as to_parquet of datasets 5.2.0 writes it."""
    feature = {"names": ["en", "de"], "_type": "ClassLabel"}
    table = pa.table({"label": [0, 1, 0]})

    def written(metadata):
        pq.write_table(table.replace_schema_metadata({"huggingface": metadata}), tmp_path / "expected.parquet")
        return tmp_path / "expected.parquet"

    assert lines_of(written(json.dumps({"info": {"features": {"label": feature}}}))) == ["en", "de", "en"]
    for other in ("{", "[]", '{"info": 1}', '{"info": {"features": {"label": {"dtype": "int64"}}}}', "[" * 100_000):
        assert lines_of(written(other)) == ["0", "1", "0"]
    path = written(json.dumps({"info": {"features": {"label": feature | {"names": ["en"]}}}}))
    assert reason_of(path) == "row 2, label: there is no class 1; there are 1"
    path = written(json.dumps({"info": {"features": {"label": feature | {"names": "en"}}}}))
    assert reason_of(path) == "huggingface, features, label, names: a list is wanted, not text"


@pytest.mark.parametrize("ending", [".jsonl", ".parquet"])
def test_distributions_as_answers(ending, tmp_path):
    """Norms, as geval convert writes them."""
    lines = ["tea:0.6 coffee:0.4", "a:0.5 :0.5"]
    (tmp_path / "expected.tsv").write_text("".join(f"{line}\n" for line in lines))
    assert main(["convert", str(tmp_path / "expected.tsv"), str(tmp_path / f"norms{ending}")]) == 0
    assert lines_of(tmp_path / f"norms{ending}") == lines


def test_answers_in_csv(tmp_path, capsys, monkeypatch):
    """An output that ends so is CSV, so answers are not taken for lines."""
    monkeypatch.chdir(tmp_path)
    Path("answers.csv.gz").write_bytes(gzip.compress(b"id,label\n1,a\n"))
    Path("out.tsv").write_text("a\n" * 2)
    assert main(["-o", "out.tsv", "-e", "answers.csv.gz", "-m", "Accuracy"]) == 2
    reason = "answers are not read from CSV, but from lines, JSON lines or Parquet"
    assert capsys.readouterr().err == f"geval: `answers.csv.gz`: {reason}\n"
    assert main(["-o", "out.tsv", "-e", "missing.csv", "-m", "Accuracy"]) == 1
    assert capsys.readouterr().err.startswith("geval: No file with the expected results: `missing.csv`\n")


BAD = [
    ({"words": ["a"], "probabilities": [2]}, "row 1, probabilities[0]: 2.0 is not a probability, from 0 to 1"),
    ({"answer": float("nan")}, "row 1, answer: NaN is not a number"),
    ({"answer": float("inf")}, "row 1, answer: the number is infinite, or too large"),
    ({"a": "x", "b": "y"}, "which column has the answers? there are `a`, `b`; write expected.jsonl#COLUMN"),
    ({"answer": None}, "row 1, answer: a text or a number is wanted, not nothing"),
    ({"answer": True}, "row 1, answer: a text or a number is wanted, not true or false"),
    ({"answer": "x\ny"}, "row 1, answer: the answer `x\\ny` has a line end in it"),
    ({"answer": "\ud800"}, "row 1, answer: the answer cannot be written as UTF-8: surrogates not allowed"),
]


@pytest.mark.parametrize(("row", "reason"), BAD, ids=range(len(BAD)))
def test_bad_answers_have_a_place(row, reason, tmp_path):
    path = tmp_path / "expected.jsonl"
    path.write_text(json.dumps(row) + "\n")
    assert reason_of(path) == reason


def test_bad_folders(dataset):
    splits = "it is a dataset of several splits: `train`, `test`; name the folder of one of them"
    assert reason_of(DATASETS / "split") == splits
    assert pickle.loads(pickle.dumps(find_answers(str(dataset)))).state == state_at(find_answers(str(dataset)))
    (dataset / "state.json").write_text("[")
    assert reason_of(dataset) == "it is not JSON as datasets writes it"
    data = (dataset / DATA).read_bytes()
    (dataset / "state.json").write_text('{"_data_files": [{"filename": "x.arrow"}]}')
    for damaged in (b"", data[:200], data[:400] + b"\xff" * 100 + data[500:], b"none"):
        (dataset / "x.arrow").write_bytes(damaged)
        assert reason_of(dataset).startswith("it is no well-formed stream of Arrow: ")


DATA, STATE, INFO = "data-00000-of-00001.arrow", "state.json", "dataset_info.json"
NO_FILES = f"{STATE} names no files of this folder alone"
ODD = [
    (STATE, {"_data_files": 5}, STATE, "_data_files: a list is wanted, not a number"),
    (STATE, {}, STATE, "_data_files: a list is wanted, not nothing"),
    (STATE, {"_data_files": []}, "", NO_FILES),
    (STATE, {"_data_files": ["x.arrow"]}, STATE, "_data_files: a map is wanted, not text"),
    (STATE, {"_data_files": [{"filename": 1}]}, STATE, "filename: text is wanted, not a number"),
    (STATE, {"_data_files": [{"filename": "."}]}, ".", "it is not a regular file"),
    (STATE, {"_data_files": [{"filename": "../x.arrow"}]}, "", NO_FILES),
    (STATE, {"_data_files": [{"filename": "x.arrow"}]}, "x.arrow", "No such file or directory"),
    (STATE, {"_data_files": [{"filename": ""}]}, "", "it is not a regular file"),
    (STATE, {"_data_files": [{"filename": "a\0b"}]}, "a\0b", "embedded null byte"),
    (INFO, {"features": ["answer"]}, INFO, "features: a map is wanted, not a list"),
    (INFO, {"features": {"answer": "string"}}, INFO, "features, answer: a map is wanted, not text"),
    (INFO, {"features": {"answer": {"_type": "ClassLabel", "names": 3}}}, INFO,
     "features, answer, names: a list is wanted, not a number"),
    (INFO, {"features": {"answer": {"_type": "ClassLabel", "names": [1]}}}, INFO,
     "features, answer, names: text is wanted, not a number"),
    (INFO, {"features": {"answer": {"_type": "ClassLabel"}}}, INFO,
     "features, answer, names: a list is wanted, not nothing"),
    (INFO, {"features": {"a": {}}}, DATA, "column `a`: there is none"),
    ("dataset_dict.json", {"splits": 5}, "dataset_dict.json", "splits: a list is wanted, not a number"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "place", "reason"), ODD, ids=range(len(ODD)))
def test_odd_values_in_the_files_of_a_dataset(name, content, place, reason, dataset):
    if name == "dataset_dict.json":
        (dataset / STATE).unlink()
    (dataset / name).write_text(json.dumps(content))
    with pytest.raises(UnreadableFileError) as caught:
        lines_of(dataset)
    assert (os.path.normpath(caught.value.path), caught.value.reason) == (os.path.normpath(dataset / place), reason)


@pytest.mark.parametrize("name", [STATE, INFO, DATA])
def test_a_dataset_has_regular_files_of_its_folder_alone(name, dataset):
    place, hidden = dataset / name, dataset.parent / "hidden"
    place.rename(dataset / "own")
    place.symlink_to("own")
    assert lines_of(dataset) == WORDS
    place.unlink()
    (dataset / "own").rename(hidden)
    place.symlink_to(hidden)
    answers = find_answers(str(dataset))
    for read in (lambda: list(read_lines(answers)), lambda: answers.state):
        with pytest.raises(
            UnreadableFileError, match=r": it is a link to a file that is not in this folder$"
        ) as caught:
            read()
        assert caught.value.path == str(place)
    place.unlink()
    os.mkfifo(place)
    with pytest.raises(UnreadableFileError, match=r": it is not a regular file$") as caught:
        lines_of(dataset)
    assert caught.value.path == str(place)


def write_stream(dataset, table):
    with pa.OSFile(str(dataset / DATA), "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table)


def test_columns_have_texts_or_numbers(dataset, tmp_path):
    for columns, reason in (
        ([pa.array([["a"]])], "column `answer`: texts or numbers are wanted, not list<"),
        ([pa.array(["a"])] * 2, "column `answer`: there are two"),
    ):
        table = pa.Table.from_arrays(columns, names=["answer"] * len(columns))
        write_stream(dataset, table)
        pq.write_table(table, tmp_path / "expected.parquet")
        assert reason_of(dataset).startswith(reason)
        assert reason_of(tmp_path / "expected.parquet").startswith(reason)


def test_a_column_of_a_dataset_in_a_dictionary(dataset):
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 5000, pa.int32()), ["x" * 1000])
    write_stream(dataset, pa.table({"answer": column}))
    assert lines_of(dataset) == ["x" * 1000] * 5000


def test_answers_are_a_value(tmp_path):
    """Their state differs for another column, and they keep it when their path becomes absolute."""
    as_parquet(tmp_path)
    place = str(tmp_path / "expected.parquet")
    answers, texts = find_answers(place), find_answers(f"{place}#text")
    assert answers.state != texts.state
    for one in (pickle.loads(pickle.dumps(texts)), absolute(texts)):
        assert (one, one.options, one.state, list(one.pieces())) == (place, ("text",), texts.state, [b"x\ny\n"])


def test_compressed_answers_that_unpack_to_too_much(tmp_path):
    path = tmp_path / "expected.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"answer": 1}\n' * 10_000))
    with pytest.raises(TooLargeError), LineReader(find_answers(str(path)), max_bytes=50_000) as reader:
        reader.count_rest()


@pytest.mark.long
def test_what_datasets_writes(tmp_path):
    import datasets

    made = datasets.Dataset.from_dict({"answer": WORDS, "n": [0, 1]})
    made.save_to_disk(str(tmp_path / "one"), num_shards=2)
    datasets.DatasetDict({"train": made, "test": made.select([1])}).save_to_disk(str(tmp_path / "two"))
    assert lines_of(tmp_path / "one") == WORDS
    assert lines_of(tmp_path / "two" / "test") == WORDS[1:]
