"""Outputs in other formats: there and back, scored as the TSV, and refused with a place."""

import gzip
import json
import math
import pickle
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from random import Random

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from geval_py import evaluate, read_output
from geval_py.cli import main
from geval_py.errors import EmptyFileError, UnreadableFileError, UsageError
from geval_py.reading import sources
from geval_py.reading.formats import FORMATS
from geval_py.reading.lines import read_lines
from geval_py.reading.outputs import find_outputs, output_at, parse_parameters
from geval_py.reading.sources import FORMAT_ENDINGS
from geval_py.reading.wordprobs import are_probabilities, parse_line
from geval_py.scoring.writing import convert
from geval_py.text import visible

DATA = Path(__file__).parents[1] / "data"
ENDINGS = [ending for ending, known in FORMATS.items() if known.write is not None]
WORD = st.text(st.characters(exclude_characters=" \n\r", exclude_categories=["Cs"]), max_size=6)
NUMBERS = st.one_of(st.floats(0, 1), st.floats(-50, 0))
ENTRIES = st.lists(st.tuples(WORD, NUMBERS), min_size=1, max_size=5)
LINES = st.lists(ENTRIES, min_size=1, max_size=6)


def text_of(lines):
    return "".join(" ".join(f"{word}:{p!r}" for word, p in entries) + "\n" for entries in lines)


def lines_of(path):
    return list(read_lines(output_at(str(path)).path))


def reason_of(path):
    """Why an output cannot be read."""
    with pytest.raises(UnreadableFileError) as caught:
        lines_of(path)
    assert str(caught.value) == f"Cannot read `{path}`: {visible(caught.value.reason)}"
    return caught.value.reason


def converted(source, folder, ending):
    target = folder / f"new{ending}"
    target.unlink(missing_ok=True)
    convert(str(source), str(target))
    return target


@pytest.mark.parametrize("ending", ENDINGS)
@settings(max_examples=40, deadline=None)
@given(lines=LINES)
def test_there_and_back(lines, ending, tmp_path_factory):
    if ending == ".csv":  # which has one column for one unit
        first = are_probabilities([p for _, p in lines[0]])
        lines = [entries for entries in lines if are_probabilities([p for _, p in entries]) == first]
    folder = tmp_path_factory.getbasetemp()
    source = folder / "source.tsv"
    source.write_bytes(text_of(lines).encode())
    wanted = list(read_output(source))
    new = converted(source, folder, ending)
    assert list(read_output(new)) == wanted
    assert list(read_output(converted(new, folder, ".back.tsv"))) == wanted


def test_buckets_there_and_back(tmp_path):
    (tmp_path / "out.tsv").write_text("-1.5 -2 0.25\na:b:0.5 :0.5\n")
    new = converted(tmp_path / "out.tsv", tmp_path, ".jsonl")
    assert list(read_output(new)) == list(read_output(tmp_path / "out.tsv"))
    assert new.read_text().endswith('\n{"words": ["a:b", ""], "probabilities": [0.5, 0.5]}\n')


def challenge(folder):
    test = folder / "dev-0"
    test.mkdir()
    (folder / "config.txt").write_text("--metric PerplexityHashed --metric LikelihoodHashed8 --metric Accuracy")
    (test / "expected.tsv").write_text("the\na\nZürich\n")
    lines = "the:0.1 a:0.7 :0.2\n:1.0\na:0.3333333333333333 Zürich:0.1 a:1e-05\n"
    (test / "out-f=.tsv").write_text(lines)
    return test


@pytest.mark.parametrize("ending", [*ENDINGS, ".jsonl.xz", ".csv.gz"])
def test_scores_are_those_of_the_tsv(ending, tmp_path):
    test = challenge(tmp_path)
    convert(str(test / "out-f=.tsv"), str(test / f"out-f=x{ending}"))
    of_tsv, of_other = (evaluate(tmp_path, "dev-0", out=f"out-f={name}") for name in (".tsv", f"x{ending}"))
    assert of_tsv.scores == of_other.scores
    assert of_other.output.parameters == {"f": "x"}
    tables = [one.lines().assign(output=lambda table: table["output"].map(parse_line)) for one in (of_tsv, of_other)]
    assert tables[0].equals(tables[1])


BAD = [
    ("1", "row 1: a map of keys is wanted, not a number"),
    ("[]", "row 1: a list of maps with token_str and score is wanted, of a text with one mask"),
    ("", "row 1: the line is empty"),
    ('\x1b"', "row 1, column 1: it is not JSON: Expecting value"),
    ('{"words": ["a"], "prob\\u001b": [1], "logprobs": null}',
     "row 1: it has none of these keys: words and probabilities, or logprobs, or a map in the place of both; its "
     "keys are `words`, `prob\\x1b`"),
    ('{"the": "0.6", "a": 0.4}', "row 1, `the`: `0.6` is a text; write a number, without quotes"),
    ("{}", "row 1: it has none of these keys: words and probabilities, or logprobs, or a map in the place of both"),
    ('{"custom_id": "1", "response": {}}',
     "row 1, custom_id: the Batch API's output is not in the order of the requests: sort it, and keep the body of "
     "each response"),
    ('{"words": ["a"], "probabilities": [1], "logprobs": [0]}', "row 1: probabilities and logprobs: one is wanted"),
    ('{"words": "a", "probabilities": [1]}', "row 1, words: a list is wanted, not text"),
    ('{"words": ["a", "b"], "probabilities": [1]}', "row 1, probabilities: 1 number for 2 words"),
    ('{"words": ["a b"], "probabilities": [1]}',
     "row 1, words[0]: the word `a b` has a space in it, which would split the line"),
    ('{"words": ["a\\n"], "probabilities": [1]}',
     "row 1, words[0]: the word `a\\n` has a line end in it, which would split the line"),
    ('{"words": ["\\ud800"], "probabilities": [1]}',
     "row 1, words[0]: the word cannot be written as UTF-8: surrogates not allowed"),
    ('{"words": [1], "probabilities": [1]}', "row 1, words[0]: a word is a string, not a number"),
    ('{"words": ["a"], "probabilities": [NaN]}', "row 1, probabilities[0]: NaN is not a number"),
    ('{"words": ["a"], "probabilities": [Infinity]}',
     "row 1, probabilities[0]: the number is infinite, or too large"),
    ('{"words": ["a"], "probabilities": [1e999]}', "row 1, probabilities[0]: the number is infinite, or too large"),
    ('{"words": ["a"], "probabilities": [1' + "0" * 400 + "]}",
     "row 1, probabilities[0]: the number is infinite, or too large"),
    ('{"words": ["a"], "probabilities": [' + "1" * 5000 + "]}", "row 1: a number has too many digits"),
    ('{"words": ["a"], "probabilities": [true]}', "row 1, probabilities[0]: a number is wanted, not true or false"),
    ('{"words": ["a"], "probabilities": [-0.5]}', "row 1, probabilities[0]: -0.5 is not a probability, from 0 to 1"),
    ('{"words": ["a"], "probabilities": [0]}', "row 1, probabilities: every probability is 0"),
    ('{"words": ["a"], "logprobs": [0.5]}',
     "row 1, logprobs: the numbers are from 0 to 1, and would be read as probabilities"),
    ('{"words": [], "probabilities": []}', "row 1: no words; a row without a guess has the empty word alone"),
    ('{"words": {"0": ["a"]}, "probabilities": {"0": [1]}}',
     "row 1, words: it is a map, as where pandas writes a table by its columns; write rows: frame.to_json(path, "
     "orient='records', lines=True)"),
    ('{"probabilities": {"a": 1, "a": 0}}', "row 1: the key `a` occurs twice"),
    ('{"probabilities": {"a": 1, "b c": 0}}',
     "row 1, probabilities[`b c`]: the word `b c` has a space in it, which would split the line"),
    ('{"probabilities": ' + "[" * 100_000, "row 1: its lists and maps are nested too deeply"),
    ('{"buckets": []}', "row 1, buckets: a list of logarithms is wanted"),
]  # fmt: skip


BAD_CSV = [
    ("id,label,p\n1,a,x\n", "row 2, column `p`: `x` is not a number such as 0.5 or 1e-05"),
    ("id,label,p\n1,a,0_1\n", "row 2, column `p`: `0_1` is not a number such as 0.5 or 1e-05"),
    ("id,a,b\n1,０.5,0\n", "row 2, column `a`: `０.5` is not a number such as 0.5 or 1e-05"),
    ("id,a,b\n1,0.5,\u00a00.5\n", "row 2, column `b`: `\\xa00.5` is not a number such as 0.5 or 1e-05"),
    ("id,a,b\n1,0.5,.5\n", "row 2, column `b`: `.5` is not a number such as 0.5 or 1e-05"),
    ("id,a,b\n1,0.5,\n", "row 2, column `b`: `` is not a number such as 0.5 or 1e-05"),
    ("id,a,b\n1,0.5,+-1\n", "row 2, column `b`: `+-1` is not a number such as 0.5 or 1e-05"),
    ("id,a,b\n1,0.5,+-inf\n", "row 2, column `b`: `+-inf` is not a number such as 0.5 or 1e-05"),
    ("id,a,b\n1,0.5,-Infinity\n", "row 2, column `b`: it is -infinity; leave a word out whose probability is 0"),
    ("id,a,b,is_a\n1,1,0.01,0\n2,0.75,0.25,1\n",
     "row 3: the probabilities sum to 2; a column may be of no label: leave it out; or divide the row by its sum"),
    ("id,a,b,a\n1,1,0,0\n", "row 1: two columns are named `a`"),
    ("id;a;b\n1;0.5;0.5\n", "row 1: the columns are separated by `;`; commas are wanted"),
    ("id\ta\n1\t0.5\n", "row 1: the columns are separated by `\\t`; commas are wanted"),
    ("id,label,prob\n1,a,1\n", "row 1: the header is `id,label,prob`; `id,label,p` or `id,label,logprob` is wanted"),
    ("label,id,p\na,1,1\n", "row 1: the header is `label,id,p`; `id,label,p` or `id,label,logprob` is wanted"),
    ("ID,a,b\n2,1,0\n1,1,0\n2,1,0\n", "row 4, column `ID`: `2` is in row 2, too; an item has one row, with a column for each word"),
    ("id,label,p\n1,a,nan\n", "row 2, column `p`: NaN is not a number"),
    ("id,label,p\n1,a\n", "row 2: 2 columns, but the header has 3"),
    ("id,label,p\n1,a,1\n2,a,1\n1,b,1\n", "row 4, column id: the rows of `1` do not follow each other"),
    ("id,a,b\n1,0.5,2\n", "row 2, column `b`: 2.0 is not a probability, from 0 to 1"),
    ("id,a,b\n1,0.5\n", "row 2: 2 columns, but the header has 3"),
    ('id,a,b\n1,"0.5\n', "row 2: it is not CSV: unexpected end of data"),
    ("\n1,2\n", "row 1: the header is `id,label,p`, or names a column for each label"),
    ("id\n1\n", "row 1: the header is `id,label,p`, or names a column for each label"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text", "encoding", "row"),
    [
        ("out.csv", "id,\u0107ma,b\n1,0.5,0.5\n", "cp1250", 1),
        ("out.csv", "id,label,p\n1,\ufffd,0.5\n1,\u0107ma,0.5\n", "utf-8", 0),
        ("out.csv", "id,label,p\n1,a,0.5\n1,\u0107ma,0.5\n", "cp1250", 3),
        ("out.jsonl", '{"words": ["a", "\ufffd"], "probabilities": [1, 0]}\n', "utf-8", 0),
        ("out.jsonl", '{"words": ["a"], "probabilities": [1]}\n{"words": ["\u0107"]}\n', "cp1250", 2),
    ],
)
def test_other_encodings(name, text, encoding, row, tmp_path):
    """A row of 0 stands for none."""
    path = tmp_path / name
    path.write_text(text, encoding=encoding)
    if not row:
        assert "\ufffd" in next(read_output(path)).words
    else:
        assert reason_of(path) == f"row {row}: it is not in UTF-8"


def test_rounded_probabilities_of_csv_and_spaces_around_them(tmp_path):
    for text, values in (
        ("id,a,b,c\n1,0.4,0.4,0.3\n", (0.4, 0.4, 0.3)),
        ("id,label,p\n1,a, 0.5\n1,b,5e-1\t\n", (0.5, 0.5)),
    ):
        (tmp_path / "out.csv").write_text(text)
        assert [row.values for row in read_output(tmp_path / "out.csv")] == [values]


IDS = [  # the CSV, and the note on it
    ("id,a,b\n1,0.75,0.25\n2,0.5,0.5\n", ""),
    ("id,a,b\n9,0.75,0.25\n10,0.5,0.5\n", ""),
    ("id,a,b\nx2,0.75,0.25\nx1,0.5,0.5\n", ""),
    (",a,b\n0,0.75,0.25\n0,0.5,0.5\n", ""),
    ("a,b\n0.75,0.25\n0.5,0.5\n", ""),
    ("Id,a,b\n2,0.75,0.25\n1,0.5,0.5\n", "3 has 1 after 2), {}; frame.sort_values('Id', kind='stable') sorts them"),
    (",a,b\n1,0.75,0.25\n0,0.5,0.5\n", "3 has 0 after 1), {}; frame.sort_index() sorts them"),
    ("id,label,p\n2,a,0.75\n2,b,0.25\n1,a,0.5\n1,b,0.5\n",
     "4 has 1 after 2), {}; frame.sort_values('id', kind='stable') sorts them"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "note"), IDS, ids=range(len(IDS)))
def test_ids_of_csv(text, note, tmp_path, capsys, monkeypatch):
    """The answers have no ids, or those of the CSV in another order, or others."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.txt").write_text("--metric LogLossHashed")
    (tmp_path / "out.csv").write_text(text)
    (tmp_path / "expected.tsv").write_text("a\nb\n")

    def printed(expected):
        assert main(["-o", "out.csv", "-e", expected]) == 0
        return capsys.readouterr()

    order = "and its lines are scored in the order of the file"
    message = f"`out.csv`: its ids do not ascend (row {note.format(order)}" if note else ""
    warning = f"geval: note: {message}\n" if note else ""
    before = printed("expected.tsv")
    assert before.err == warning
    assert main(["check", "out.csv", "--challenge", ".", "--ignore", "W204"]) == 0
    assert warning in capsys.readouterr().err
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        evaluate(("out.csv", "expected.tsv"), metrics="LogLossHashed")
    assert [str(one.message) for one in caught] == [message][: bool(note)]
    first, last = text.splitlines()[1].split(",")[0], text.splitlines()[-1].split(",")[0]
    if text.lower().startswith("id"):
        answers = [{"id": last, "expected": "b"}, {"id": first, "expected": "a"}]
        (tmp_path / "ids.json").write_text(json.dumps(answers))
        evaluation = evaluate(("out.csv", "ids.json"), metrics="LogLoss", vocabulary=["a", "b"])
        assert [item.output.split()[0] for item in evaluation.read_items()] == ["a:0.5", "a:0.75"]
        assert printed("ids.json").err == ""
        (tmp_path / "ids.json").write_text(json.dumps([{"id": "0", "expected": "a"}, {"id": "1", "expected": "b"}]))
        others = printed("ids.json")
        assert others == (before.out, f"geval: note: `out.csv`: its ids are not those of `ids.json`, {order}\n")


def test_parquet_that_was_compressed(tmp_path):
    pq.write_table(pa.table({"words": [["a"]], "probabilities": [[1.0]]}), tmp_path / "out.parquet")
    path = tmp_path / "out.parquet.gz"
    path.write_bytes(gzip.compress((tmp_path / "out.parquet").read_bytes()))
    assert reason_of(path) == "Parquet is compressed inside: unpack it, and name it .parquet"


def test_formats_under_another_name(tmp_path, capsys, monkeypatch):
    """The message names the ending."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "expected.tsv").write_text("a\n")
    row, path = '{"words": ["a"], "probabilities": [1.0]}', tmp_path / "out.txt"
    pq.write_table(pa.table({"words": [["a"]], "probabilities": [[1.0]]}), "out.parquet")
    json_lines = (
        "JSON; name the file out-NAME.jsonl, or write geval_py.format_line(guess), or entries such as `the:0.5`"
    )
    for data, column, what in (
        (row.encode(), 10, json_lines),
        (json.dumps(fill_mask((" a", 1.0))).encode(), 11, "a JSON list; name the file out-NAME.json"),
        (json.dumps([fill_mask((" a", 1.0))]).encode(), 12, "a JSON list; name the file out-NAME.json"),
        (json.dumps([fill_mask((" a", 1.0))], indent=1).encode(), 1, "a JSON list; name the file out-NAME.json"),
        ((tmp_path / "out.parquet").read_bytes(), 1, "Parquet; name the file out-NAME.parquet"),
    ):
        path.write_bytes(data)
        assert main(["-o", "out.txt", "-e", "expected.tsv", "-m", "PerplexityHashed"]) == 1
        hint = f"the line looks like {what}"
        assert f"\n  `out.txt`, line 1, column {column}: {hint}\n" in capsys.readouterr().err


def test_a_check_of_another_format_needs_tsv_to_mend(tmp_path, capsys):
    (tmp_path / "out.jsonl").write_text('{"words": ["a", ""], "probabilities": [0.75, 0.5]}\n')
    assert main(["check", str(tmp_path / "out.jsonl")]) == 0
    fix = "To fix: Divide by the sum before writing. --fix does it. It needs TSV, which geval convert writes.\n"
    assert fix in capsys.readouterr().out
    (tmp_path / "out.jsonl").write_text("\n")
    assert main(["check", str(tmp_path / "out.jsonl")]) == 1
    fix = "To fix: Fix this first: an output that is not TSV is checked only if all its rows can be read.\n"
    assert fix in capsys.readouterr().out


def test_class_probabilities_of_scikit_learn(tmp_path):
    model = LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "perhaps"])
    found = model.predict_proba([[0.5], [2.5]])
    frame = pd.DataFrame(found, columns=model.classes_)
    wanted = [tuple(row) for row in found.tolist()]
    for index in (True, False):
        frame.to_csv(tmp_path / "out.csv", index=index)
        rows = list(read_output(tmp_path / "out.csv"))
        assert [row.words for row in rows] == [("no", "perhaps", "yes")] * 2
        assert [row.values for row in rows] == wanted
    long = frame.rename_axis("id").reset_index().melt("id", var_name="label", value_name="p")
    long.sort_values(["id", "label"]).to_csv(tmp_path / "out.csv", index=False)
    assert list(read_output(tmp_path / "out.csv")) == rows


BAD_PARQUET = [
    ({"words": [["a"]], "probabilities": [["x"]]},
     "column probabilities: a list or a map of numbers is wanted, not list<element: string>"),
    ({"words": ["a"], "probabilities": [[1.0]]}, "column words: a list of strings is wanted, not string"),
    ({"text": ["a"]}, "its columns are text; words and probabilities, or logprobs are wanted"),
    ({"words": [["a"]], "prob": [[1.0]]},
     "its columns are words, prob; words and probabilities, or logprobs are wanted"),
    ({"Words": [["a"]], "logprobs": [[0.0]]},
     "its columns are Words, logprobs; words and probabilities, or logprobs are wanted"),
]  # fmt: skip


NO_ENDING = "`new.tsv.zip` has no ending of a format: .tsv, .jsonl, .ndjson, .csv"
NOT_CONVERTED = [
    ("-1 -2\n", "new.csv", UsageError, "line 1 is a line of buckets, which CSV has no labels for"),
    ("a:1\nb:-1\n", "new.csv", UsageError, "line 2 has logprobs, those before it probabilities: CSV has one column for both"),
    ("", "new.jsonl", EmptyFileError, "The output file is empty: `out.tsv`"),
    ("a:1\n", "-", UsageError, "name a file to write: its ending is the format"),
    ("a:1\n", "new.tsv.zip", UsageError, NO_ENDING),
    ("a:1\n", "new.xlsx", UsageError, NO_ENDING.replace("new.tsv.zip", "new.xlsx")),
    ("a:1\n", "new", UsageError, NO_ENDING.replace("new.tsv.zip", "new")),
]  # fmt: skip


@pytest.mark.parametrize(("text", "name", "kind", "message"), NOT_CONVERTED, ids=range(len(NOT_CONVERTED)))
def test_what_is_not_converted(text, name, kind, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out.tsv").write_text(text)
    with pytest.raises(kind) as caught:
        convert("out.tsv", name)
    assert str(caught.value) == message
    assert not (tmp_path / name).exists()


def test_outputs_in_all_formats_are_found_and_checked(tmp_path, capsys, monkeypatch):
    assert all(parse_parameters(f"out-lr=0.1{ending}") == {"lr": "0.1"} for ending in FORMAT_ENDINGS)
    test, formats = challenge(tmp_path), sorted(ending[1:] for ending in ENDINGS)
    for name in formats:
        convert(str(test / "out-f=.tsv"), str(test / f"out-f={name}.{name}"))
    names = [output.name.removeprefix("out-f=") for output in find_outputs(str(test))]
    assert names == [".tsv", *(f"{name}.{name}" for name in formats)]
    monkeypatch.chdir(tmp_path)
    assert main(["-t", "dev-0", "-a", "LogLossHashed", "-p", "4"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert [row.split("\t") for row in rows[1:]] == [[f, "3.8431"] for f in ("", *formats)]
    assert main(["check", "-t", "dev-0"]) == 0
    assert f"in {len(formats) + 1} files" in capsys.readouterr().out
    for command in (["compare"], ["calibration", "-o", "jsonl"], ["report", "-o", "csv", "--html", "page.html"]):
        assert main([*command, "-t", "dev-0"]) == 0, capsys.readouterr().err
    assert main(["check", "--fix", "dev-0/out-f=csv.csv"]) == 1
    assert "Cannot fix `dev-0/out-f=csv.csv`: it is not TSV" in capsys.readouterr().err


def test_the_command(tmp_path, capsys):
    source, target = str(tmp_path / "out.tsv"), str(tmp_path / "out.csv")
    (tmp_path / "out.tsv").write_text("the:0.5 :0.5\n")
    assert main(["convert", source, target]) == 0
    assert capsys.readouterr().out == f"wrote `{target}`, 1 line\n"
    assert (tmp_path / "out.csv").read_text() == "id,label,p\n1,the,0.5\n1,,0.5\n"
    assert main(["convert", source, target]) == 2
    assert "is there already" in capsys.readouterr().err
    assert main(["convert", "--force", source, target]) == 0
    assert main(["convert", source, f"{tmp_path}/out.parquet"]) == 2
    assert capsys.readouterr().err == "geval: .parquet is only read: it cannot be written\n"


BAD_ROWS = [  # of lists, which pyarrow joins where it can
    (["a", "b c"], [0.5, 0.5], "words[1]: the word `b c` has a space in it, which would split the line"),
    (["a\n"], [1.0], "words[0]: the word `a\\n` has a line end in it, which would split the line"),
    (["eightbytes\r"], [1.0],
     "words[0]: the word `eightbytes\\r` has a carriage return in it, which would split the line"),
    (["a", "b"], [math.nan, 1.0], "probabilities[0]: NaN is not a number"),
    (["a"], [math.inf], "probabilities[0]: the number is infinite, or too large"),
    (["a"], [1.5], "probabilities[0]: 1.5 is not a probability, from 0 to 1"),
    (["a"], [-1.5], "probabilities[0]: -1.5 is not a probability, from 0 to 1"),
    (["a"], [0.0], "probabilities: every probability is 0"),
    ([], [], "no words; a row without a guess has the empty word alone"),
    (["a", None], [0.5, 0.5], "words[1]: a word is a string, not nothing"),
    (None, [1.0], "words: a list is wanted, not nothing"),
    (["a", "b"], [1.0], "probabilities: 1 number for 2 words"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "numbers", "reason"), BAD_ROWS, ids=range(len(BAD_ROWS)))
def test_a_bad_row_of_parquet(words, numbers, reason, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lead = 3000  # rows before, more than a batch
    columns = {"words": [["a"]] * lead + [words, ["a"]], "probabilities": [[1.0]] * lead + [numbers, [1.0]]}
    pq.write_table(pa.table(columns), "out.parquet")
    (tmp_path / "expected.tsv").write_text("a\n" * (lead + 2))
    assert main(["-o", "out.parquet", "-e", "expected.tsv", "-m", "PerplexityHashed"]) == 1
    place = f"row {lead + 1}" + (": " if reason.startswith("no words") else ", ")
    assert capsys.readouterr().err == f"geval: Cannot read `out.parquet`: {place}{reason}\n"


BAD_LOGARITHMS = [
    ([0.5, 0.0], ": the numbers are from 0 to 1, and would be read as probabilities"),
    ([-1.0, math.nan], "[1]: NaN is not a number"),
    ([-1.0, -math.inf], "[1]: it is -infinity; leave a word out whose probability is 0"),
]


@pytest.mark.parametrize(("numbers", "reason"), BAD_LOGARITHMS, ids=range(len(BAD_LOGARITHMS)))
def test_logarithms_of_parquet(numbers, reason, tmp_path):
    path = tmp_path / "out.parquet"
    for row in ([0.0, -1.0], numbers):
        pq.write_table(pa.table({"words": [["a"], ["a", "b"]], "logprobs": [[-1.0], row]}), path)
        if row is numbers:
            assert reason_of(path) == f"row 2, logprobs{reason}"
        else:
            assert [row.values for row in read_output(path)] == [(-1.0,), (0.0, -1.0)]


def test_a_byte_order_mark_in_the_first_word(tmp_path, capsys, monkeypatch):
    """It is dropped, as that of a TSV is."""
    monkeypatch.chdir(tmp_path)
    words, numbers = [["\ufeffthe", "\ufeffa"], ["\ufeffthe", "a"]], [[0.5, 0.25]] * 2
    pq.write_table(pa.table({"words": words, "probabilities": numbers}), "out.parquet")
    (tmp_path / "out.tsv").write_text(text_of(list(map(zip, words, numbers))))
    (tmp_path / "expected.tsv").write_text("the\n\ufeffthe\n")
    found = []
    for name in ("out.tsv", "out.parquet"):
        for mode in ([], ["-l"]):
            assert main(["-o", name, "-e", "expected.tsv", "-m", "LogLossHashed", *mode]) == 0
            found.append(capsys.readouterr().out)
    assert found[:2] == found[2:]


def test_json_lines_in_parts_and_changed_files(tmp_path):
    test = challenge(tmp_path)
    convert(str(test / "out-f=.tsv"), str(test / "whole.jsonl"))
    rows = (test / "whole.jsonl").read_text().splitlines(keepends=True)
    for number, row in enumerate(rows):
        (test / f"out-f=x-{number}-of-3.jsonl").write_text(row)
    of_tsv, of_parts = (evaluate(tmp_path, "dev-0", out=f"out-f={name}") for name in (".tsv", "x.jsonl"))
    assert of_tsv.scores == of_parts.scores
    assert of_tsv.lines().equals(of_parts.lines())
    path = output_at(str(test / "whole.jsonl")).path
    before = sources.state_at(path)
    assert pickle.loads(pickle.dumps(path)).state == before
    (test / "whole.jsonl").write_text(rows[0])
    assert sources.state_at(path) != before


def sample(number=0, choices=(" yes", " no"), logs=("-0.5", "-1.25"), **more):
    arguments = {f"gen_args_{n}": {"arg_0": "Is it?", "arg_1": choice} for n, choice in enumerate(choices)}
    return {"doc_id": number, "arguments": arguments, "filtered_resps": [[log, "False"] for log in logs]} | more


def chat(**numbers):
    tokens = [{"token": token, "logprob": p, "bytes": None} for token, p in numbers.items()]
    return {
        "choices": [{"index": 0, "logprobs": {"content": [{"token": "x", "logprob": -1, "top_logprobs": tokens}]}}]
    }


def fill_mask(*answers):
    """What ``pipeline("fill-mask")`` of transformers 5 returns for one gap."""
    return [{"score": p, "token": 5, "token_str": word, "sequence": f"Is{word}?"} for word, p in answers]


def completion(tokens):
    return {"choices": [{"text": "x", "logprobs": {"top_logprobs": [tokens]}}]}


MASK = "row 1: a list of maps with token_str and score is wanted, of a text with one mask"
LOGGED = [
    (fill_mask((" the", 0.5), ("a", 0.25), (" \n", 0.125)), "the:0.5 a:0.25"),
    (fill_mask((" the", 1.5)), "row 1, `the`: 1.5 is not a probability, from 0 to 1"),
    ([fill_mask((" the", 1))] * 2, MASK),
    ([{"token_str": "the"}], MASK),
    ({"the": 0.5, "choices": 0.25, "": 0}, "the:0.5 choices:0.25 :0.0"),
    ({"the": 12.5}, "row 1, probabilities[`the`]: 12.5 is not a probability, from 0 to 1"),
    (sample(), "yes:-0.5 no:-1.25"),
    (chat(the=-0.5, **{" the": -2.5, "\n": -3}), "the:-0.5 the:-2.5"),
    (completion({" the": -0.5, " a": -1.5}), "the:-0.5 a:-1.5"),
    (sample(1), "row 1, doc_id: 0 is wanted: a row for each document, in order, and one filter"),
    (sample(filtered_resps=["text"] * 2), "row 1, filtered_resps[0]: it is no log-probability of a choice: the task is no multiple choice"),
    (sample(arguments=[["Is it?", " yes"], ["Is it?", " no"]]), "yes:-0.5 no:-1.25"),
    (sample(arguments=[["Is it?"], ["Is it?"]]), "row 1, filtered_resps[0]: it is no log-probability of a choice: the task is no multiple choice"),
    (sample(logs=("-inf", "-1")), "row 1, filtered_resps[0]: it is -infinity; leave a word out whose probability is 0"),
    (sample(logs=("-１", "-1")), "row 1, filtered_resps[0]: `-１` is not a number such as 0.5 or 1e-05"),
    (sample(choices=(" New York", " no")), "row 1, arguments[0].arg_1: the word `New York` has a space in it, which would split the line"),
    (sample(choices=("", "")), "row 1, arguments: the choices are empty or alike: the contexts differ, and no words are compared"),
    (sample(arguments=[]), "row 1, arguments: an argument is wanted for each of the filtered_resps"),
    ({"choices": [{"logprobs": None}]}, "row 1, choices[0].logprobs.top_logprobs[0]: the alternatives of the first token are wanted: ask the server for top_logprobs"),
    (chat(), "row 1, choices[0].logprobs.content[0].top_logprobs: the alternatives of the first token are wanted: ask the server for top_logprobs"),
    ({"custom_id": "x", "words": ["a"], "probabilities": [1]}, "a:1.0"),
    (chat(the="-1"), "row 1, choices[0].logprobs.content[0].top_logprobs: `the`: a number is wanted, not text"),
]  # fmt: skip


@pytest.mark.parametrize(("logged", "found"), LOGGED, ids=range(len(LOGGED)))
def test_rows_that_other_tools_log(logged, found, tmp_path):
    """As JSON lines, and as a list."""
    for path, text in ((tmp_path / "out.jsonl", json.dumps(logged)), (tmp_path / "out.json", json.dumps([logged]))):
        path.write_text(text)
        if found.startswith("row"):
            assert reason_of(path) == found
        else:
            assert lines_of(path) == [found]


def test_a_file_that_ends_in_json(tmp_path):
    path = tmp_path / "out.json"
    one, another = fill_mask((" the", 0.5)), fill_mask(("a", 0.5))
    for text, lines in (
        (json.dumps([one, another], indent=2), ["the:0.5", "a:0.5"]),
        (json.dumps(one), ["the:0.5"]),
        (f"{json.dumps(one)}\n{json.dumps(another)}\n", ["the:0.5", "a:0.5"]),
        ('{"the": 0.5}', ["the:0.5"]),
        ("", []),
    ):
        path.write_text(text)
        assert lines_of(path) == lines
    for text, reason in (
        ('[\n{"a": 1},\n]', "row 3, column 1: it is not JSON: Expecting value"),
        ('{"a": 1}\n{"a": ', "row 2, column 7: it is not JSON: Expecting value"),
        ('[{"a": 1}, 2]', "row 2: a map of keys is wanted, not a number"),
    ):
        path.write_text(text)
        assert reason_of(path) == reason


def test_outputs_and_answers_with_less_usual_endings(tmp_path):
    test = challenge(tmp_path)
    of_tsv = evaluate(tmp_path, "dev-0").scores
    rows = [{"answer": word} for word in (test / "expected.tsv").read_text().split()]
    (test / "expected.tsv").unlink()
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    pq.write_table(pa.table({"answer": [row["answer"] for row in rows]}), tmp_path / "answers")
    for name, data in (
        ("expected.ndjson", lines.encode()),
        ("expected.json", json.dumps(rows).encode()),
        ("expected.pq", (tmp_path / "answers").read_bytes()),
    ):
        (test / name).write_bytes(data)
        assert evaluate(tmp_path, "dev-0").scores == of_tsv
        (test / name).unlink()
    (test / "expected.json").write_text(json.dumps(rows))
    convert(str(test / "out-f=.tsv"), str(test / "out-f=1.ndjson"))
    rows = [json.loads(line) for line in (test / "out-f=1.ndjson").read_text().splitlines()]
    pq.write_table(pa.Table.from_pylist(rows), test / "out-f=1.pq")
    (test / "out-f=1.json").write_text(json.dumps(rows))
    for beside in ("tuning", "model"):  # what geval tune and geval predict write
        (test / f"out-f=1.{beside}.json").write_text("{}")
    outputs = find_outputs(str(test))
    assert [one.name for one in outputs] == ["out-f=.tsv", "out-f=1.json", "out-f=1.ndjson", "out-f=1.pq"]
    for one in outputs[1:]:
        assert (one.parameters, evaluate(tmp_path, "dev-0", out=one.name).scores) == ({"f": "1"}, of_tsv)


def test_samples_of_lm_evaluation_harness(tmp_path):
    """lm-eval 0.4.13: lm_eval --model dummy --tasks colours --include_path . --log_samples --output_path out."""
    convert(str(DATA / "lm-eval" / "samples_colours.jsonl"), str(tmp_path / "out.tsv"))
    assert (tmp_path / "out.tsv").read_text() == (
        "blue:-0.2604923103919594 green:-0.8050278270130223 loud:-0.5486993038355893\n"
        "blue:-0.014041700164018955 green:-0.7197046864039541 loud:-0.39882354222426875\n"
    )


@pytest.mark.parametrize("name", ["out.jsonl", "out.parquet"])
def test_log_likelihoods_of_the_answers_alone(name, tmp_path, capsys, monkeypatch):
    """As lm-evaluation-harness and lighteval log LAMBADA: the answer would always come first."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "expected.tsv").write_text("door\nboat\n")
    if name == "out.jsonl":
        rows = [sample(n, (f" {word}",), ("-1.5",)) for n, word in enumerate(("door", "boat"))]
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        of_rows = [details([f" {word}"], [-1.5]) for word in ("door", "boat")]
        pq.write_table(pa.table({key: [*of_rows[0][key], *of_rows[1][key]] for key in of_rows[0]}), name)
    files = ["-o", name, "-e", "expected.tsv"]
    alone = "each row lists one candidate, the answer, with its log-likelihood"
    message = f"needs several candidates: {alone}; use LogLoss, Likelihood or Perplexity\n  in `{name}`\n"
    assert main([*files, "-m", "LogLossHashed", "-m", "MRR", "-m", "Hit@3"]) == 1
    printed = capsys.readouterr()
    assert printed.out.splitlines()[1:] == ["MRR\terror", "Hit@3\terror"]
    assert printed.err == f"geval: MRR {message}geval: Hit@3 {message}"
    assert main([*files, "-a", "Accuracy", "-l"]) == 1
    assert capsys.readouterr().err == f"geval: Accuracy {message}"
    assert main(["calibration", *files, "-m", "LogLossHashed"]) == 2
    assert capsys.readouterr().err == f"geval: `{name}` has no calibration: {alone}\n"
    assert main(["check", name, "-m", "LogLossHashed", "-m", "MRR"]) == 0
    assert f"note: `{name}`: MRR cannot be computed, since {alone}\n" in capsys.readouterr().err


@pytest.mark.parametrize("ending", ENDINGS)
def test_damaged_files_are_errors(ending, tmp_path):
    (tmp_path / "out.tsv").write_text("the:0.5 a:0.25 :0.25\n" * 30)
    whole, random = converted(tmp_path / "out.tsv", tmp_path, ending).read_bytes(), Random(5)
    path, errors = tmp_path / f"damaged{ending}", 0
    for _ in range(100):
        data = bytearray(whole)
        for _ in range(random.randint(1, 4)):
            data[random.randrange(len(data))] = random.randrange(256)
        path.write_bytes(data)
        try:
            list(read_output(path))
        except UnreadableFileError:
            errors += 1
    assert errors > 50


@pytest.mark.parametrize("more", ['"":1', '"z":0,"z":0'], ids=["whole numbers", "a key twice"])
def test_a_map_of_many_words_is_read_in_time_that_grows_with_it(more, tmp_path):
    """Ten thousand words, each of which was once compared with all others."""
    path = tmp_path / "out.jsonl"
    words = ",".join(f'"{n:x}":0' for n in range(10_000))
    path.write_text('{"probabilities": {' + words + "," + more + "}}\n")
    if "z" in more:
        assert reason_of(path) == "row 1: the key `z` occurs twice"
    else:
        (row,) = read_output(path)
        assert len(row.values) == 10_001


# Files that other tools write: details of lighteval, n-best lists, predictions of BabyLM's evaluation


@pytest.mark.long
def test_samples_that_lm_evaluation_harness_logs(tmp_path):
    """Made here by the tool, whose model "dummy" answers at random."""
    shutil.copytree(DATA / "lm-eval", tmp_path, dirs_exist_ok=True)
    command = "-m lm_eval --model dummy --tasks colours --include_path . --log_samples --output_path found"
    subprocess.run([sys.executable, *command.split()], cwd=tmp_path, check=True, capture_output=True)
    (samples,) = (tmp_path / "found").rglob("samples_colours_*.jsonl")
    logged = [json.loads(line) for line in samples.read_text().splitlines()]
    convert(str(samples), str(tmp_path / "out.tsv"))
    lines = (tmp_path / "out.tsv").read_text().splitlines()
    for sample, line in zip(logged, lines, strict=True):
        numbers = [answer[0] for answer in sample["filtered_resps"]]
        assert line == " ".join(map(":".join, zip(sample["doc"]["choices"], numbers, strict=True)))


def test_details_of_lighteval(tmp_path):
    """lighteval 0.13.0: its Doc and ModelResponse, saved as EvaluationTracker.save does, by datasets 5.2.0."""
    convert(str(DATA / "lighteval" / "details_colours.parquet"), str(tmp_path / "out.tsv"))
    assert (tmp_path / "out.tsv").read_text() == (
        "blue:-0.6394267984578837 green:-0.025010755222666936 loud:-0.27502931836911926\n"
        "blue:-0.22321073814882275 green:-0.7364712141640124 loud:-0.6766994874229113\n"
    )


ALIKE = "row 1, doc.choices: the choices are empty or alike: the contexts differ, and no words are compared"
BAD_DETAILS = [
    ([" a", "a"], [-0.5, -1.0], ALIKE),
    ([" a", " "], [-0.5, -1.0], ALIKE),
    ([" a", None], [-0.5, -1.0], "row 1, doc.choices[1]: a choice is a string, not nothing"),
    ([" a", " b"], [-0.5], "row 1, logprobs: 1 number for 2 words"),
    ([" a b"], [-0.5], "row 1, words[0]: the word `a b` has a space in it, which would split the line"),
    (None, [-0.5], "column doc.choices: lighteval's details of a multiple-choice task have a list there"),
    ([" a"], None, "column model_response.logprobs: lighteval's details of a multiple-choice task have a list there"),
]


# As Marian's --n-best prints it; Moses has more numbers, and alignments after the score.
MARIAN = """0 ||| das ist ein Test ||| F0= -2.5 ||| -0.5
0 ||| dies ist ein Test ||| F0= -2.0 ||| -0.4
1 ||| ja ||| F0= -0.75 ||| -0.375
1 |||  ||| F0= -1.5 ||| -0.75
"""
MOSES = "0 ||| the ||| d: 0 lm: -5 w: -1 ||| -1.5 ||| 0-0\n0 ||| a ||| d: 0 lm: -6 w: -1 ||| -2e0\n"


def test_the_best_of_n_best_lists(tmp_path, capsys, monkeypatch):
    path = tmp_path / "out-of=marian.nbest"
    path.write_text(MARIAN)
    assert lines_of(path) == ["dies ist ein Test", "ja"]
    (found,) = find_outputs(str(tmp_path))
    assert (found.name, found.parameters) == ("out-of=marian.nbest", {"of": "marian"})
    convert(str(path), str(tmp_path / "best.tsv"))
    assert (tmp_path / "best.tsv").read_text() == "dies ist ein Test\nja\n"
    (tmp_path / "expected.tsv").write_text("dies ist ein Test\nnein\n")
    monkeypatch.chdir(tmp_path)
    for name in ("out-of=marian.nbest", "best.tsv"):
        assert main(["-o", name, "-e", "expected.tsv", "-m", "Accuracy"]) == 0
        assert capsys.readouterr().out == "0.5\n"


def test_words_of_n_best_lists(tmp_path):
    path = tmp_path / "out-k=2.words.nbest"
    path.write_text(MOSES)
    assert lines_of(path) == ["the:-1.5 a:-2.0"]
    assert output_at(str(path)).parameters == {"k": "2"}
    with pytest.raises(UsageError, match=r"\.words\.nbest is only read: it cannot be written"):
        convert(str(path), str(tmp_path / "new.words.nbest"))


BAD_LISTS = [
    ("0 ||| a\n", "row 1: `number ||| text ||| features ||| score` is wanted"),
    ("1 ||| a ||| ||| -1\n", "row 1, number: 0 is wanted, not `1`: lists are numbered from 0"),
    ("0 ||| a ||| ||| -1\n2 ||| a ||| ||| -1\n", "row 2, number: 1 is wanted, not `2`: lists are numbered from 0"),
    ("0 ||| a ||| ||| x\n", "row 1, score: `x` is not a number such as 0.5 or 1e-05"),
    ("0 ||| a ||| ||| -1_0\n", "row 1, score: `-1_0` is not a number such as 0.5 or 1e-05"),
    ("0 ||| a ||| ||| -１.5\n", "row 1, score: `-１.5` is not a number such as 0.5 or 1e-05"),
    ("0 ||| a ||| ||| -inf\n", "row 1, score: it is -infinity; leave a word out whose probability is 0"),
    ("0 ||| a ||| ||| inf\n", "row 1, score: the number is infinite, or too large"),
    ("0 ||| a ||| ||| -1\n0 ||| a b ||| ||| -1\n",
     "row 2: the word `a b` has a space in it, which would split the line; "
     "a list of texts ends in .nbest, without .words"),
]  # fmt: skip


def predictions(*tasks):
    return {
        task: {"predictions": [{"id": f"{task}_{n}", "pred": one} for n, one in enumerate(of)]} for task, of in tasks
    }


def test_predictions_of_babylm(tmp_path):
    """The layout that the README of babylm/evaluation-pipeline-2025 shows: a file of a run, and a collated one."""
    path = tmp_path / "out-model=x.predictions.json"
    of_run = predictions(("boolq", [0, 1]), ("agreement", ["The\u00a0cats\u200c sleep.", " Cats sleep."]))
    for document in (of_run, {"glue": predictions(("boolq", [0, 1])), "blimp": dict([list(of_run.items())[1]])}):
        path.write_text(json.dumps(document))
        assert lines_of(path) == ["0", "1", "The\u00a0cats\u200c sleep.", "Cats sleep."]
    assert output_at(str(path)).parameters == {"model": "x"}


READING = {"reading": {"predictions": [{"id": 0, "pred": 1.25, "prev_pred": 0.5}]}}


def test_collated_predictions_of_babylm(tmp_path, capsys, monkeypatch):
    """As collate_preds.py of that pipeline writes them, with tasks that are not of words."""
    monkeypatch.chdir(tmp_path)
    of_run = predictions(("boolq", [0, 1]))
    document = of_run | {
        "blimp": predictions(("agreement", [" Cats sleep."])),
        "reading": READING,
        "aoa": {"results": [{"step": "chck_1M", "target_word": "cat", "surprisal": 3.2}]},
        "devbench": {"trog": {"predictions": [[0.5, 0.25]]}},
        "fast_eval_results": {"blimp": [{"agreement": 0.5}]},
    }
    left_out = "tasks without texts or classes are left out: `reading`, `aoa`, `devbench`, `fast_eval_results`"
    (tmp_path / "config.txt").write_text("--metric Accuracy")
    (tmp_path / "expected.tsv").write_text("0\n1\nCats sleep.\n")
    for name in ("out.json", "out.predictions.json"):
        (tmp_path / name).write_text(json.dumps(document))
        note = f"geval: note: `{name}`: {left_out}\n"
        for command, out in (
            (["-o", name, "-e", "expected.tsv", "-m", "Accuracy"], "1.0\n"),
            (["convert", "--force", name, "new.tsv"], "wrote `new.tsv`, 3 lines\n"),
            (["check", name, "--challenge", ".", "-m", "Accuracy"], "no problems in 1 file\n"),
        ):
            assert main(command) == 0
            printed = capsys.readouterr()
            assert (printed.out, note in printed.err) == (out, True)


BAD_PREDICTIONS = [
    ("[]", "a map of tasks is wanted, each with predictions"),
    ("{}", "a map of tasks is wanted, each with predictions"),
    ("{", "row 1, column 2: it is not JSON: Expecting property name enclosed in double quotes"),
    ("[" * 100_000, "row 1: its lists and maps are nested too deeply"),
    ('{"a": 1, "a": 2}', "row 1: the key `a` occurs twice"),
    (READING, "no task has texts or classes as predictions; it has `reading`"),
    (predictions(("a", [None])), "`a`, predictions[0].pred: a text or a whole number is wanted"),
    (predictions(("a", ["x\ny"])), "`a`, predictions[0].pred: `x\\ny` is not a line of text"),
    ({"a": {"predictions": [{"id": "a_1", "pred": 1}]}}, "`a`, predictions[0].id: an id that ends in _0 is wanted"),
    ({"a\x1b": {"predictions": [3]}}, "`a\\x1b`, predictions[0].id: an id that ends in _0 is wanted"),
]


def details(choices, logs):
    return {"doc": [{"query": "q", "choices": choices}], "model_response": [{"logprobs": logs, "text": "t"}]}


FAULTS = [
    *(("out.jsonl", text + "\n", reason) for text, reason in BAD),
    *(("out.csv", *row) for row in BAD_CSV),
    *(("out.parquet", *row) for row in BAD_PARQUET),
    *(("out.parquet", details(choices, logs), reason) for choices, logs, reason in BAD_DETAILS),
    *(("out.words.nbest", *row) for row in BAD_LISTS),
    *(("out.predictions.json", *row) for row in BAD_PREDICTIONS),
]


@pytest.mark.parametrize(("name", "content", "reason"), FAULTS, ids=range(len(FAULTS)))
def test_faults_have_a_place(name, content, reason, tmp_path):
    path = tmp_path / name
    if name.endswith(".parquet"):
        pq.write_table(pa.table(content), path)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    assert reason_of(path) == reason
