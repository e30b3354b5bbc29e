"""Outputs in other formats: scored as the TSV, matched by ids, converted, and refused with a place."""

import gzip
import json
import math
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
from output_formats import write_as
from raising import refused

from geval_py import evaluate, read_output, score_file
from geval_py.cli import main
from geval_py.errors import EmptyFileError, UnreadableFileError, UsageError
from geval_py.reading.lines import read_lines
from geval_py.reading.outputs import output_at
from geval_py.reading.splits import answers_at
from geval_py.reading.wordprobs import are_probabilities, parse_line
from geval_py.scoring.writing import convert
from geval_py.text import visible

DATA = Path(__file__).parents[1] / "data"
ENDINGS = [".jsonl", ".ndjson", ".parquet", ".pq", ".csv"]
WORD = st.text(st.characters(exclude_characters=" \n\r", exclude_categories=["Cs"]), max_size=6)
NUMBERS = st.one_of(st.floats(0, 1), st.floats(-50, 0))
ENTRIES = st.lists(st.tuples(WORD, NUMBERS), min_size=1, max_size=5)
LINES = st.lists(ENTRIES, min_size=1, max_size=6)


def text_of(lines):
    return "".join(" ".join(f"{word}:{p!r}" for word, p in entries) + "\n" for entries in lines)


def lines_of(path):
    return list(read_lines(output_at(str(path)).file))


def values_of(evaluation):
    return [score.value for score in evaluation.scores]


def reason_of(path):
    with pytest.raises(UnreadableFileError) as caught:
        lines_of(path)
    assert str(caught.value) == f"Cannot read `{path}`: {visible(caught.value.reason)}"
    return caught.value.reason


@pytest.mark.slow
@pytest.mark.parametrize("ending", ENDINGS)
@settings(max_examples=40, deadline=None)
@given(lines=LINES)
def test_other_formats_are_read_and_converted(lines, ending, tmp_path_factory):
    if ending == ".csv":  # which has one column for one unit
        first = are_probabilities([p for _, p in lines[0]])
        lines = [entries for entries in lines if are_probabilities([p for _, p in entries]) == first]
    folder = tmp_path_factory.getbasetemp()
    (folder / "source.tsv").write_bytes(text_of(lines).encode())
    write_as(folder / f"new{ending}", text_of(lines).split("\n")[:-1])
    wanted = list(read_output(folder / "source.tsv"))
    assert list(read_output(folder / f"new{ending}")) == wanted
    convert(str(folder / f"new{ending}"), str(folder / "back.tsv"))
    assert list(read_output(folder / "back.tsv")) == wanted


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
    write_as(test / f"out-f=x{ending}", (test / "out-f=.tsv").read_text().splitlines())
    of_tsv, of_other = (evaluate(tmp_path, "dev-0", output=f"out-f={name}") for name in (".tsv", f"x{ending}"))
    assert values_of(of_tsv) == values_of(of_other)
    assert of_other.output.parameters == {"f": "x"}
    tables = [one.lines().assign(output=lambda table: table["output"].map(parse_line)) for one in (of_tsv, of_other)]
    assert tables[0].equals(tables[1])


BAD = [
    ("1", "row 1: a map of keys is wanted, not a number"),
    ("[]", "row 1: a list of maps with token_str and score is wanted, of a text with one mask"),
    ("", "row 1: the line is empty"), ('\x1b"', "row 1, column 1: it is not JSON: Expecting value"),
    ('{"words": ["a"], "prob\\u001b": [1], "logprobs": null}',
        "row 1: it has none of these keys: words and probabilities, or logprobs, or a map in the place of both; its "
        "keys are `words`, `prob\\x1b`"),
    ('{"the": "0.6", "a": 0.4}', "row 1, `the`: `0.6` is a text; write a number, without quotes"),
    ("{}", "row 1: it has none of these keys: words and probabilities, or logprobs, or a map in the place of both"),
    ('{"custom_id": "1", "response": {}}',
        "row 1: it looks like a row of OpenAI's Batch API, but choices is missing: sort by custom_id, and keep "
        "response.body"),
    ('{"words": ["a"], "probabilities": [1], "logprobs": [0]}', "row 1: probabilities and logprobs: one is wanted"),
    ('{"words": "a", "probabilities": [1]}', "row 1, words: a list is wanted, not text"),
    ('{"words": ["a"], "probabilities": [0.5, 0.5]}', "row 1, probabilities: 2 numbers for 1 word"),
    ('{"words": ["\\ud800"], "probabilities": [1]}',
        "row 1, word 1: it cannot be written as UTF-8: surrogates not allowed"),
    ('{"words": ["a", 1], "probabilities": [1, 0]}', "row 1, word 2: a word is a string, not a number"),
    ('{"probabilities": [1]}',
        "row 1: it has probabilities, but no words; write a list of both, or probabilities as a map with the words"),
    ('{"words": ["a"], "probabilities": [Infinity]}', "row 1, `a`: the number is infinite, or too large"),
    ('{"words": ["a"], "probabilities": [1' + "0" * 400 + "]}", "row 1, `a`: the number is infinite, or too large"),
    ('{"words": ["a"], "probabilities": [' + "1" * 5000 + "]}", "row 1: a number has too many digits"),
    ('{"words": ["a"], "probabilities": [true]}', "row 1, `a`: a number is wanted, not true or false"),
    ('{"words": ["a"], "logprobs": [0.5]}',
        "row 1, logprobs: the numbers are from 0 to 1, and would be read as probabilities"),
    ('{"words": {"0": ["a"]}, "probabilities": {"0": [1]}}',
        "row 1, words: it is a map, as where pandas writes a table by its columns; write rows: frame.to_json(path, "
        "orient='records', lines=True)"),
    ('{"probabilities": {"a": 1, "a": 0}}', "row 1: the key `a` occurs twice"),
    ('{"probabilities": {"a": 1, "b c": 0}}', "row 1, word 2: `b c` has a space in it, which would split the line"),
    ('{"probabilities": ' + "[" * 100_000, "row 1: its lists and maps are nested too deeply"),
    ('{"buckets": []}', "row 1, buckets: a list of logarithms is wanted"),
]  # fmt: skip

BAD_CSV = [
    ("id,label,p\n1,a,x\n", "row 2, column `p`: `x` is not a number such as 0.5 or 1e-05"),
    ("id,label,p\n1,a,0_1\n", "row 2, column `p`: `0_1` is not a number such as 0.5 or 1e-05"),
    ("id,a,b\n1,０.5,0\n", "row 2, column `a`: `０.5` is not a number such as 0.5 or 1e-05"),
    ("id,a,b\n1,0.5,\u00a00.5\n", "row 2, column `b`: `\\xa00.5` is not a number such as 0.5 or 1e-05"),
    ("id,a,b\n1,0.5,\n", "row 2, column `b`: `` is not a number such as 0.5 or 1e-05"),
    ("id,a,b\n1,0.5,+-inf\n", "row 2, column `b`: `+-inf` is not a number such as 0.5 or 1e-05"),
    ("id,a,b\n1,0.5,-Infinity\n", "row 2, column `b`: it is -infinity; leave a word out whose probability is 0"),
    ("id,a,b,is_a\n1,1,0.01,0\n2,0.75,0.25,1\n",
     "row 3: the probabilities sum to 2; a column may be of no label: leave it out; or divide the row by its sum"),
    ("id,a,b,a\n1,1,0,0\n", "row 1: two columns are named `a`"),
    ("id;a;b\n1;0.5;0.5\n", "row 1: the columns are separated by `;`; commas are wanted"),
    ("id,label,weight\n1,a,1\n", "row 1: the header is `id,label,weight`; `id,label,p` or `id,label,logprob` is wanted, or a column for each label"),
    ("gap_id,word,prob\n1,a,1\n2,a,1\n1,b,x\n", "row 4, column `prob`: `x` is not a number such as 0.5 or 1e-05"),
    ("ID,a,b\n2,1,0\n1,1,0\n2,1,0\n", "row 4: the id `2` is in row 2, too"),
    ("id,label,p\n1,a,nan\n", "row 2, column `p`: NaN is not a number"),
    ("id,label,p\n1,a,1\n2,a,1\n1,b,1\n", "row 4: the id `1` is in row 2, too"),
    ("id,a,b\n1,0.5\n", "row 2: 2 columns, but the header has 3"),
    ('id,a,b\n1,"0.5\n', "row 2: it is not CSV: unexpected end of data"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "encoding", "row"), [
    ("out.csv", "id,\u0107ma,b\n1,0.5,0.5\n", "cp1250", 1),
    ("out.csv", "id,label,p\n1,\ufffd,0.5\n1,\u0107ma,0.5\n", "utf-8", 0),
    ("out.csv", "id,label,p\n1,a,0.5\n1,\u0107ma,0.5\n", "cp1250", 3),
    ("out.jsonl", '{"words": ["a", "\ufffd"], "probabilities": [1, 0]}\n', "utf-8", 0),
    ("out.jsonl", '{"words": ["a"], "probabilities": [1]}\n{"words": ["\u0107"]}\n', "cp1250", 2),
])  # fmt: skip
def test_other_encodings(name, text, encoding, row, tmp_path):
    """A row of 0 stands for none."""
    path = tmp_path / name
    path.write_text(text, encoding=encoding)
    if not row:
        assert "\ufffd" in next(read_output(path)).words
    else:
        assert reason_of(path) == f"row {row}: it is not in UTF-8"


def test_columns_of_csv_and_spaces_around_numbers(tmp_path):
    for text, values in (
        ("id,a,b,c\n1,0.4,0.4,0.3\n", (0.4, 0.4, 0.3)), ("id,label,p\n1,a, 0.5\n1,b,5e-1\t\n", (0.5, 0.5)),
        ("Id,Label,P\n1,a,0.5\n1,b,0.5\n", (0.5, 0.5)), ("gap_id,word,Probability\n1,a,0.5\n1,b,0.5\n", (0.5, 0.5)),
        ("row id,token,log_prob\n1,a,-1.5\n1,b,-0.5\n", (-1.5, -0.5)), ("Gap ID,a,b\n1,0.25,0.75\n", (0.25, 0.75)),
    ):  # fmt: skip
        (tmp_path / "out.csv").write_text(text)
        assert [row.values for row in read_output(tmp_path / "out.csv")] == [values]


def converted_rows(path, answer_ids=()):
    """The lines and the notes of an output, for answers with these ids."""
    file = output_at(str(path)).file
    if answer_ids:
        answers = path.with_name("expected.jsonl")
        answers.write_text("".join(json.dumps({"id": identity, "answer": "a"}) + "\n" for identity in answer_ids))
        file.answers = answers_at(str(answers))
    return list(read_lines(file)), file.notes


WITHOUT_IDS = "its rows have no id, unlike the answers: they are scored in the order of the file"
IDS = [  # of the rows of an output, and which of them do not ascend
    (["1", "2"], ""), (["q9", "q10"], ""), (["b", "a"], ""), (["", ""], ""), (["2", "2"], ""),
    (["2", "1"], "`1` comes after `2`"), (["0", "3", "1", "0"], "`1` comes after `3`"),
    (["q3", "q1"], "`q1` comes after `q3`"),
]  # fmt: skip
IN_ORDER_OF_FILE = "and its rows are scored in the order of the file; sort them as the answers are, or give the answers ids (expected.jsonl)"


def write_with_ids(path, ids, words):
    """Write a row for each word, which is certain, with its id, if it has one."""
    if path.suffix == ".csv":
        rows = (f"{one},{word},1.0\n" for one, word in zip(ids, words, strict=True))
        path.write_text("id,label,p\n" + "".join(rows))
    elif path.suffix == ".parquet":
        table = {"words": [[word] for word in words], "probabilities": [[1.0] for _ in words]}
        pq.write_table(pa.table({"id": ids, **table} if any(ids) else table), path)
    else:
        rows = (
            {"id": one or None, "words": [word], "probabilities": [1]} for one, word in zip(ids, words, strict=True)
        )
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize(("ids", "order"), IDS, ids=range(len(IDS)))
def test_ids_of_an_output_alone(ids, order, ending, tmp_path, capsys, monkeypatch):
    if ending == "csv" and len(set(ids)) < len(ids):
        return  # an id twice is an error, or one row
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.txt").write_text("--metric LogLossHashed")
    words = [f"w{n}" for n in range(len(ids))]
    (tmp_path / "expected.tsv").write_text("".join(f"{word}\n" for word in words))
    name = f"out.{ending}"
    write_with_ids(tmp_path / name, ids, words)
    message = f"`{name}`: its ids do not ascend ({order}), {IN_ORDER_OF_FILE}" if order else ""
    warning = f"geval: note: {message}\n" if order else ""
    assert main(["-o", name, "-e", "expected.tsv"]) == 0
    assert capsys.readouterr() == ("0.0\n", warning)
    assert main(["check", name, "--challenge", ".", "--ignore", "W204", "--ignore", "W214"]) == 0
    assert warning in capsys.readouterr().err
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        score_file(name, "expected.tsv", metric="LogLossHashed")
    assert [str(one.message) for one in caught] == [message][: bool(order)]


@pytest.mark.parametrize("name", ["out.jsonl", "out.csv", "out.parquet"])
def test_rows_are_matched_by_ids(name, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words, guesses = {"q1": "the", "q2": "of", "3": "sat"}, {"q1": "the", "q2": "sat", "3": "sat"}
    answers = [{"id": int(one) if one.isdigit() else one, "answer": word} for one, word in words.items()]
    (tmp_path / "expected.jsonl").write_text("".join(json.dumps(row) + "\n" for row in answers))
    for ids in (["q1", "q2", "3"], ["3", "q1", "q2"], ["q2", "3", "q1"]):
        write_with_ids(tmp_path / name, ids, [guesses[one] for one in ids])
        assert main(["-o", name, "-e", "expected.jsonl", "-m", "Accuracy", "-m", "Hit@1"]) == 0
        assert capsys.readouterr() == ("Accuracy\t0.6666666666666666\nHit@1\t0.6666666666666666\n", "")
        evaluation = score_file(name, "expected.jsonl", metric="Accuracy")
        assert [item.output.split(":")[0] for item in evaluation.read_items()] == ["the", "sat", "sat"]


UNMATCHED = [
    (["q1", "q2", "q3", "q9"], "item 4 has the id `q9`, which no answer has"),
    (["q1", "q2"], "no row has the id `q3`, of answer 3"),
    (["q1", "q2", "q1"], "item 3 has the id `q1`, which a row before it has, too; 1 more id at fault"),
    (["q1", "", "q3"], "item 2 has no id, unlike others; 1 more id at fault"),
    (["q7", "q8", "q9"], "item 1 has the id `q7`, which no answer has; 5 more ids at fault"),
]


@pytest.mark.parametrize("name", ["out.jsonl", "out.csv", "out.parquet"])
@pytest.mark.parametrize(("ids", "reason"), UNMATCHED, ids=range(len(UNMATCHED)))
def test_ids_that_do_not_match(ids, reason, name, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answers = [{"id": f"q{n}", "answer": "a"} for n in (1, 2, 3)]
    (tmp_path / "expected.json").write_text(json.dumps(answers))
    write_with_ids(tmp_path / name, ids, ["a"] * len(ids))
    if name == "out.csv" and len({*ids}) < len(ids):
        reason = "row 4: the id `q1` is in row 2, too"
    assert main(["-o", name, "-e", "expected.json", "-m", "LogLossHashed"]) == 1
    assert capsys.readouterr().err == f"geval: Cannot read `{name}`: {reason}\n"


def test_answers_with_the_same_id_match_no_row(tmp_path):
    write_with_ids(tmp_path / "out.csv", ["q1", "q2"], ["a", "a"])
    with pytest.raises(UnreadableFileError, match=r"its rows cannot be matched: two answers have the same id$"):
        converted_rows(tmp_path / "out.csv", ["q1", "q1"])


def test_ids_of_answers_alone_and_of_a_map(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "expected.jsonl").write_text('{"id": "q1", "answer": "a"}\n{"id": "q2", "answer": "b"}\n')
    note = f"geval: note: `out.jsonl`: {WITHOUT_IDS}\n"
    for rows, noted in (('{"a": 1}\n{"b": 1}\n', note), ('{"id": "q2", "b": 1}\n{"id": "q1", "a": 1}\n', "")):
        (tmp_path / "out.jsonl").write_text(rows)
        assert main(["-o", "out.jsonl", "-e", "expected.jsonl", "-m", "LogLossHashed"]) == 0
        assert capsys.readouterr() == ("0.0\n", noted)


def test_an_index_without_a_name_has_ids(tmp_path):
    frame = pd.DataFrame({"a": [0.75, 0.5], "b": [0.25, 0.5]})
    for index, order in (([0, 1], ""), ([0, 0], ""), ([1, 0], "`0` comes after `1`")):
        frame.set_axis(index).to_csv(tmp_path / "out.csv")
        lines, notes = converted_rows(tmp_path / "out.csv")
        assert lines == ["a:0.75 b:0.25", "a:0.5 b:0.5"]
        assert notes == [f"its ids do not ascend ({order}), {IN_ORDER_OF_FILE}"][: bool(order)]
    assert converted_rows(tmp_path / "out.csv", ["0", "1"]) == (["a:0.5 b:0.5", "a:0.75 b:0.25"], [])


def test_parquet_that_was_compressed(tmp_path):
    pq.write_table(pa.table({"words": [["a"]], "probabilities": [[1.0]]}), tmp_path / "out.parquet")
    path = tmp_path / "out.parquet.gz"
    path.write_bytes(gzip.compress((tmp_path / "out.parquet").read_bytes()))
    assert reason_of(path) == "Parquet is compressed inside: unpack it, and name it .parquet"


def test_a_check_of_another_format_needs_tsv_to_mend(tmp_path, capsys):
    (tmp_path / "out.jsonl").write_text('{"words": ["a", ""], "probabilities": [1.0, 0.0]}\n')
    assert main(["check", str(tmp_path / "out.jsonl")]) == 0
    fix = "--fix --rest-mass 0.01 adds it. It needs TSV, which geval convert writes.\n"
    assert fix in capsys.readouterr().out
    assert main(["check", "--fix", str(tmp_path / "out.jsonl")]) == 1
    message = f"Cannot fix `{tmp_path}/out.jsonl`: it is not TSV; `geval convert` writes it as TSV\n"
    assert message in capsys.readouterr().err
    (tmp_path / "out.jsonl").write_text("\n")
    assert main(["check", str(tmp_path / "out.jsonl")]) == 1
    fix = "To fix: Fix this first: an output that is not TSV is checked only if all its rows can be read.\n"
    assert fix in capsys.readouterr().out


BAD_PARQUET = [
    ({"words": [["a"]], "probabilities": [["x"]]}, "row 1, `a`: a number is wanted, not text"),
    ({"words": ["a"], "probabilities": [[1.0]]}, "row 1, words: a list is wanted, not text"),
    ({"text": ["a"]}, "its columns are text; words and probabilities, or logprobs are wanted"),
    ({"words": [["a"]], "prob": [[1.0]]},
        "its columns are words, prob; words and probabilities, or logprobs are wanted"),
    ({"Words": [["a"]], "logprobs": [[0.0]]},
        "row 1: it has logprobs, but no words; write a list of both, or logprobs as a map with the words"),
]  # fmt: skip

NO_TSV = "an output is written as TSV: name a file that ends in .tsv, not {}"
NOT_CONVERTED = [
    ("", "new.tsv", EmptyFileError, "The output file is empty: `out.tsv`"),
    ("a:1\n", "-", UsageError, NO_TSV.format("standard input")),
    ("a:1\n", "new.tsv.zip", UsageError, NO_TSV.format("`new.tsv.zip`")),
    ("a:1\n", "new.jsonl", UsageError, NO_TSV.format("`new.jsonl`")),
    ("a:1\n", "new", UsageError, NO_TSV.format("`new`")),
]


@pytest.mark.parametrize(("text", "name", "kind", "message"), NOT_CONVERTED, ids=range(len(NOT_CONVERTED)))
def test_what_is_not_converted(text, name, kind, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out.tsv").write_text(text)
    with refused(message, kind):
        convert("out.tsv", name)
    assert not (tmp_path / name).exists()


def test_the_command(tmp_path, capsys):
    source, target = str(tmp_path / "out.csv"), str(tmp_path / "out.tsv")
    (tmp_path / "out.csv").write_text("id,label,p\n1,the,0.5\n1,,0.5\n")
    assert main(["convert", source, target]) == 0
    assert capsys.readouterr().out == f"wrote `{target}`, 1 line\n"
    assert (tmp_path / "out.tsv").read_text() == "the:0.5 :0.5\n"
    assert main(["convert", source, target]) == 2
    assert "is there already" in capsys.readouterr().err
    assert main(["convert", "--force", source, target]) == 0


BAD_ROWS = [  # of lists, which pyarrow joins where it can
    (["a", "b c"], [0.5, 0.5], "word 2: `b c` has a space in it, which would split the line"),
    (["a\n"], [1.0], "word 1: `a\\n` has a line end in it, which would split the line"),
    (["eightbytes\r"], [1.0],
     "word 1: `eightbytes\\r` has a line end in it, which would split the line"),
    (["a", "b"], [math.nan, 1.0], "`a`: NaN is not a number"),
    (["a"], [math.inf], "`a`: the number is infinite, or too large"),
    (["a"], [1.5], "`a`: 1.5 is not a probability, from 0 to 1"),
    (["a"], [-1.5], "`a`: -1.5 is not a probability, from 0 to 1"),
    (["a"], [0.0], "probabilities: every probability is 0"),
    ([], [], "no words; a row without a guess has the empty word alone"),
    (["a", None], [0.5, 0.5], "word 2: a word is a string, not nothing"),
    (None, [1.0], "it has probabilities, but no words; write a list of both, or probabilities as a map with the words"),
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
    place = f"row {lead + 1}" + (": " if reason.startswith(("no words", "it has")) else ", ")
    assert capsys.readouterr().err == f"geval: Cannot read `out.parquet`: {place}{reason}\n"


BAD_LOGARITHMS = [
    ([0.5, 0.0], "logprobs: the numbers are from 0 to 1, and would be read as probabilities"),
    ([-1.0, math.nan], "`b`: NaN is not a number"),
    ([-1.0, -math.inf], "`b`: it is -infinity; leave a word out whose probability is 0"),
]


@pytest.mark.parametrize(("numbers", "reason"), BAD_LOGARITHMS, ids=range(len(BAD_LOGARITHMS)))
def test_logarithms_of_parquet(numbers, reason, tmp_path):
    path = tmp_path / "out.parquet"
    for row in ([0.0, -1.0], numbers):
        pq.write_table(pa.table({"words": [["a"], ["a", "b"]], "logprobs": [[-1.0], row]}), path)
        if row is numbers:
            assert reason_of(path) == f"row 2, {reason}"
        else:
            assert [row.values for row in read_output(path)] == [(-1.0,), (0.0, -1.0)]


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
OPENAI, ASK = "row 1: it looks like a response of OpenAI, but ", "ask the server for top_logprobs"
LOGGED = [
    (fill_mask((" the", 0.5), ("a", 0.25), (" \n", 0.125)), "the:0.5 a:0.25"),
    (fill_mask((" the", 1.5)), "row 1, `the`: 1.5 is not a probability, from 0 to 1"),
    ([fill_mask((" the", 1))] * 2, MASK),
    ([{"token_str": "the"}], MASK),
    ({"the": 0.5, "choices": 0.25, "": 0}, "the:0.5 choices:0.25 :0.0"),
    ({"the": 12.5}, "row 1, `the`: 12.5 is not a probability, from 0 to 1"),
    (sample(), "yes:-0.5 no:-1.25"),
    (chat(the=-0.5, **{" the": -2.5, "\n": -3}), "the:-0.5 the:-2.5"),
    (completion({" the": -0.5, " a": -1.5}), "the:-0.5 a:-1.5"),
    (sample(1), "row 1, doc_id: 0 is wanted: a row for each document, in order, and one filter"),
    (sample(filtered_resps=["text"] * 2), "row 1, filtered_resps[0]: it is no log-probability of a choice: the task is no multiple choice"),
    (sample(arguments={"gen_args_0": {"arg_0": "Is it?", "arg_1": {"until": []}}}), "row 1, filtered_resps[0]: it is no log-probability of a choice: the task is no multiple choice"),
    (sample(logs=("-inf", "-1")), "row 1, filtered_resps[0]: it is -infinity; leave a word out whose probability is 0"),
    (sample(logs=("-１", "-1")), "row 1, filtered_resps[0]: `-１` is not a number such as 0.5 or 1e-05"),
    (sample(choices=(" New York", " no")), "row 1, word 1: `New York` has a space in it, which would split the line"),
    (sample(choices=("", "")), "row 1, arguments: the choices are empty or alike: the contexts differ, and no words are compared"),
    ({"choices": [{"logprobs": None}]}, f"{OPENAI}choices[0].logprobs is null: {ASK}"),
    ({"choices": []}, f"{OPENAI}choices[0] is missing: {ASK}"),
    ({"choices": 5, "id": "x", "object": None}, f"{OPENAI}choices[0] is missing: {ASK}"),
    ({"choices": [{"logprobs": {"tokens": [" the"], "top_logprobs": None}}]}, f"{OPENAI}choices[0].logprobs.top_logprobs is null: {ASK}"),
    (completion([1]), f"{OPENAI}choices[0].logprobs.top_logprobs[0] has no alternatives: {ASK}"),
    (chat(), f"{OPENAI}choices[0].logprobs.top_logprobs is missing: {ASK}"),
    ({"custom_id": "x", "words": ["a"], "probabilities": [1]}, "a:1.0"),
    (chat(the="-1"), "row 1, `the`: a number is wanted, not text"),
]  # fmt: skip

TOKENS = [(" the", -0.5), (" a", -2.0), ("\n", -3.0)]


def token(text="token", number="logprob", top="top_logprobs", tokens=TOKENS):
    alternatives = [{text: one, number: p} for one, p in tokens]
    return {**alternatives[0], top: alternatives}


def llama_cpp(first):
    return {"content": " the", "completion_probabilities": [first], "tokens_predicted": 1}


def responses(**text):
    message = {"type": "message", "content": [{"type": "output_text", "text": " the", **text}]}
    return {"id": "resp_1", "object": "response", "output": [{"type": "reasoning", "summary": []}, message]}


def gemini(**candidate):
    return {"candidates": [{"content": {"parts": [{"text": " the"}]}, **candidate}]}


def vllm(**completion):
    return {"request_id": "0", "prompt_logprobs": [None], "outputs": [{"index": 0, "text": " the", **completion}]}


PROBABILITIES = [(" the", 0.5), (" a", 0.25)]
OF_GEMINI = token("token", "logProbability", "candidates")
OF_SDK = token("token", "log_probability", "candidates")
BY_IDS = {str(n): {"logprob": p, "rank": n, "decoded_token": one} for n, (one, p) in enumerate(TOKENS, 1)}
LINE, OF_PROBABILITIES = "the:-0.5 a:-2.0", "the:0.5 a:0.25"
NO_PROBS = "row 1: it looks like a response of llama.cpp, but completion_probabilities is missing: ask the server for n_probs"
OLLAMA = "row 1: it looks like a response of Ollama, but "
SERVERS = [
    # llama.cpp: POST /completion, of today, with post_sampling_probs, and before December 2024
    (llama_cpp(token()), LINE),
    (llama_cpp(token(number="prob", top="top_probs", tokens=PROBABILITIES)), OF_PROBABILITIES),
    (llama_cpp({"content": " the", **token("tok_str", "prob", "probs", PROBABILITIES)}), OF_PROBABILITIES),
    (llama_cpp(token(tokens=[("\n", -0.1), (" ", -3.0)])), ":1"),
    ({"content": " the", "tokens_predicted": 1}, NO_PROBS),
    # Ollama: POST /api/generate and /api/chat
    ({"model": "m", "response": " the", "done": True, "eval_count": 1, "logprobs": [token()]}, LINE),
    ({"model": "m", "message": {"content": " the"}, "done": True, "logprobs": [token()]}, LINE),
    ({"logprobs": [{"token": " the", "logprob": -0.5}]}, f"{OLLAMA}logprobs[0] has no alternatives: {ASK}"),
    ({"model": "m", "response": " the", "eval_count": 1}, f"{OLLAMA}logprobs is missing: {ASK}"),
    ({"eval_count": 1, "logprobs": None}, f"{OLLAMA}logprobs is null: {ASK}"),
    # vLLM: RequestOutput, and its CompletionOutput alone
    (vllm(logprobs=[BY_IDS]), LINE),
    ({"text": " the", "logprobs": [BY_IDS]}, LINE),
    (vllm(logprobs=None),
     "row 1: it looks like an output of vLLM, but outputs[0].logprobs is null: ask for SamplingParams(logprobs=20)"),
    # OpenAI's Responses API
    (responses(logprobs=[token()]), LINE),
    (responses(logprobs=[]),
     "row 1: it looks like a response of OpenAI's Responses API, but output[-1].content[0].logprobs[0] is missing: "
     "ask for top_logprobs, and include message.output_text.logprobs"),
    # Gemini: generateContent, and what google-genai dumps
    (gemini(logprobsResult={"topCandidates": [OF_GEMINI], "chosenCandidates": []}), LINE),
    (gemini(logprobs_result={"top_candidates": [OF_SDK]}), LINE),
    (gemini(),
     "row 1: it looks like a response of Gemini, but candidates[0].logprobsResult is missing: ask for "
     "responseLogprobs, and for the number of alternatives as logprobs"),
    # a distribution of words that are keys of servers, or beside such keys
    ({"words": ["a"], "logprobs": [-1], "choices": ["a", "b"]}, "a:-1.0"),
    ({"probabilities": {"a": 1}, "output": "a"}, "a:1.0"),
    ({"logprobs": {"a": -1.5}}, "a:-1.5"),
]  # fmt: skip
LOGGED += SERVERS

NO_ANSWERS = {  # the first token of a response, and the note
    **dict.fromkeys(("<think>", "<|channel|>"),
        "the first token of a response begins the model's thinking, not the answer: turn its thinking off"),
    **dict.fromkeys(
        ('{"', "**", "```"),
        "the first token of a response begins markup or JSON, not the answer: ask for the word alone",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("first", "note"), NO_ANSWERS.items())
def test_the_first_token_of_a_response_may_be_no_answer(first, note, tmp_path):
    thinking = {"choices": [{"logprobs": {"content": [token(tokens=[(first, -0.001), ("The", -7.0)])]}}]}
    path = tmp_path / "out.jsonl"
    path.write_text(f"{json.dumps(thinking)}\n" * 2)
    assert converted_rows(path) == ([f"{first}:-0.001 The:-7.0"] * 2, [note])


def test_ids_of_responses_are_not_those_of_rows(tmp_path):
    """OpenAI's servers make them up."""
    path = tmp_path / "out.jsonl"
    rows = [
        completion({word: -0.5}) | {"id": f"cmpl-{9 - n}", "object": "text_completion"} for n, word in enumerate("ab")
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert converted_rows(path, ["q1", "q2"]) == (["a:-0.5", "b:-0.5"], [WITHOUT_IDS])
    assert converted_rows(path) == (["a:-0.5", "b:-0.5"], [])


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
        (json.dumps([one, another], indent=2), ["the:0.5", "a:0.5"]), (json.dumps(one), ["the:0.5"]),
        (f"{json.dumps(one)}\n{json.dumps(another)}\n", ["the:0.5", "a:0.5"]), ('{"the": 0.5}', ["the:0.5"]),
        ("", []),
    ):  # fmt: skip
        path.write_text(text)
        assert lines_of(path) == lines
    for text, reason in (
        ('[\n{"a": 1},,\n]', "row 2, column 10: it is not JSON: Expecting value"),
        ('{"a": 1}\n{"a": ', "row 2, column 7: it is not JSON: Expecting value"),
        ('[{"a": 1}, 2]', "row 2: a map of keys is wanted, not a number"),
    ):
        path.write_text(text)
        assert reason_of(path) == reason


LOGGED_FILES = {
    # lm-eval 0.4.13, as test_samples_that_lm_evaluation_harness_logs makes them
    "lm-eval/samples_colours.jsonl":
        "blue:-0.2604923103919594 green:-0.8050278270130223 loud:-0.5486993038355893\n"
        "blue:-0.014041700164018955 green:-0.7197046864039541 loud:-0.39882354222426875\n",
    # lighteval 0.13.0: its Doc and ModelResponse, saved as EvaluationTracker.save does, by datasets 5.2.0
    "lighteval/details_colours.parquet":
        "blue:-0.6394267984578837 green:-0.025010755222666936 loud:-0.27502931836911926\n"
        "blue:-0.22321073814882275 green:-0.7364712141640124 loud:-0.6766994874229113\n",
}  # fmt: skip


@pytest.mark.parametrize("name", LOGGED_FILES)
def test_files_that_other_tools_log(name, tmp_path):
    convert(str(DATA / name), str(tmp_path / "out.tsv"))
    assert (tmp_path / "out.tsv").read_text() == LOGGED_FILES[name]


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
    assert main(["calibration", *files, "-m", "LogLossHashed"]) == 2
    assert capsys.readouterr().err == f"geval: `{name}` has no calibration: {alone}\n"
    assert main(["check", name, "-m", "LogLossHashed", "-m", "MRR"]) == 0
    assert f"note: `{name}`: MRR cannot be computed, since {alone}\n" in capsys.readouterr().err


@pytest.mark.parametrize("ending", ENDINGS)
def test_damaged_files_are_errors(ending, tmp_path):
    write_as(tmp_path / f"new{ending}", ["the:0.5 a:0.25 :0.25"] * 30)
    whole, random = (tmp_path / f"new{ending}").read_bytes(), Random(5)
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
    path = tmp_path / "out.jsonl"
    words = ",".join(f'"{n:x}":0' for n in range(10_000))
    path.write_text('{"probabilities": {' + words + "," + more + "}}\n")
    if "z" in more:
        assert reason_of(path) == "row 1: the key `z` occurs twice"
    else:
        (row,) = read_output(path)
        assert len(row.values) == 10_001


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


ALIKE = "row 1, doc.choices: the choices are empty or alike: the contexts differ, and no words are compared"
BAD_DETAILS = [
    ([" a", "a"], [-0.5, -1.0], ALIKE), ([" a", " "], [-0.5, -1.0], ALIKE),
    ([" a", None], [-0.5, -1.0], "row 1, doc.choices[1]: a choice is a string, not nothing"),
    ([" a", " b"], [-0.5], "row 1, logprobs: 1 number for 2 words"),
    ([" a b"], [-0.5], "row 1, word 1: `a b` has a space in it, which would split the line"),
    (None, [-0.5], "row 1, doc.choices: lighteval's details of a multiple-choice task have a list there"),
    ([" a"], None, "row 1, model_response.logprobs: lighteval's details of a multiple-choice task have a list there"),
]  # fmt: skip


def predictions(*tasks):
    return {task: {"predictions": [{"id": f"{task}_{n}", "pred": p} for n, p in enumerate(of)]} for task, of in tasks}


READING = {"reading": {"predictions": [{"id": 0, "pred": 1.25, "prev_pred": 0.5}]}}


def test_collated_predictions_of_babylm(tmp_path, capsys, monkeypatch):
    """As collate_preds.py of that pipeline writes them, with tasks that are not of words."""
    monkeypatch.chdir(tmp_path)
    of_run = predictions(("boolq", [0, 1]))
    document = of_run | {
        "blimp": predictions(("agreement", [" Cats sleep."])), "reading": READING,
        "aoa": {"results": [{"step": "chck_1M", "target_word": "cat", "surprisal": 3.2}]},
        "devbench": {"trog": {"predictions": [[0.5, 0.25]]}}, "fast_eval_results": {"blimp": [{"agreement": 0.5}]},
    }  # fmt: skip
    left_out = "tasks without texts or classes are left out: `reading`, `aoa`, `trog`, `fast_eval_results`"
    (tmp_path / "config.txt").write_text("--metric Accuracy")
    (tmp_path / "expected.tsv").write_text("0\n1\nCats sleep.\n")
    for name in ("out.json", "out.predictions.json"):
        (tmp_path / name).write_text(json.dumps(document))
        note = f"geval: note: `{name}`: {left_out}\n"
        for command, out in (
            (["-o", name, "-e", "expected.tsv", "-m", "Accuracy"], "1.0\n"),
            (["convert", "--force", name, "new.tsv"], "wrote `new.tsv`, 3 lines\n"),
            (["check", name, "--challenge", ".", "-m", "Accuracy", "--lines", "3"], "no problems in 1 file\n"),
        ):
            assert main(command) == 0
            printed = capsys.readouterr()
            assert (printed.out, note in printed.err) == (out, True)


BAD_PREDICTIONS = [
    ("{", "row 1, column 2: it is not JSON: Expecting property name enclosed in double quotes"),
    ("[" * 100_000, "row 1: its lists and maps are nested too deeply"),
    ('{"a": 1, "a": 2}', "row 1: the key `a` occurs twice"),
    (READING, "row 1: no task has texts or classes as predictions; it has `reading`"),
    (predictions(("a", [None])), "row 1, `a`, predictions[0].pred: a text or a whole number is wanted"),
    (predictions(("a", ["x\ny"])),
     "row 1, `a`, predictions[0].pred: `x\\ny` has a line end in it, which would split the line"),
    (predictions(("a", ["\ud800"])),
     "row 1, `a`, predictions[0].pred: it cannot be written as UTF-8: surrogates not allowed"),
    ({"a": {"predictions": [{"id": "a_1", "pred": 1}]}},
     "row 1, `a`, predictions[0].id: an id that ends in _0 is wanted"),
    ({"a\x1b": {"predictions": [3]}}, "row 1, `a\\x1b`, predictions[0].id: an id that ends in _0 is wanted"),
]  # fmt: skip


def details(choices, logs):
    return {"doc": [{"query": "q", "choices": choices}], "model_response": [{"logprobs": logs, "text": "t"}]}


FAULTS = [
    *(("out.jsonl", text + "\n", reason) for text, reason in BAD),
    *(("out.csv", *row) for row in BAD_CSV), *(("out.parquet", *row) for row in BAD_PARQUET),
    *(("out.parquet", details(choices, logs), reason) for choices, logs, reason in BAD_DETAILS),
    *(("out.predictions.json", *row) for row in BAD_PREDICTIONS),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "reason"), FAULTS, ids=range(len(FAULTS)))
def test_faults_have_a_place(name, content, reason, tmp_path):
    path = tmp_path / name
    if name.endswith(".parquet"):
        pq.write_table(pa.table(content), path)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    assert reason_of(path) == reason
