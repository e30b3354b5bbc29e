"""Expected answers in JSON lines, and in what they are not read from."""

import gzip
import json

import pandas as pd
import pytest

from geval_py import Challenge, evaluate
from geval_py.cli import main
from geval_py.errors import UnreadableFileError
from geval_py.reading.lines import read_lines
from geval_py.reading.splits import answers_at, find_answers

WORDS = ["blue", "green"]
OUT = "blue:0.5 :0.5\nblue:0.25 green:0.5 :0.25\n"


def lines_of(path):
    return list(read_lines(answers_at(find_answers(str(path)))))


def values_of(evaluation):
    return [score.value for score in evaluation.scores]


def reason_of(path):
    with pytest.raises(UnreadableFileError) as caught:
        lines_of(path)
    return caught.value.reason


ROWS = [
    [{"answer": word} for word in WORDS], [{"id": n, "word": word} for n, word in enumerate(WORDS)],
    [{"text": "x", "left": "y", "expected": word} for word in WORDS],
]  # fmt: skip


@pytest.mark.parametrize(("name", "rows"), [
    ("expected.jsonl", ROWS[0]), ("expected.ndjson", ROWS[1]), ("expected.json", ROWS[2]),
    ("expected.jsonl.gz", ROWS[0]),
])  # fmt: skip
def test_a_challenge_with_answers_in_json(name, rows, tmp_path, monkeypatch, capsys):
    (tmp_path / "config.txt").write_text("--metric PerplexityHashed --metric Accuracy")
    for test in ("dev-0", "dev-1"):
        (tmp_path / test).mkdir()
        (tmp_path / test / "in.tsv").write_text("The sky is\nGrass is\n")
        for out in ("out-a.tsv", "out-b.tsv"):
            (tmp_path / test / out).write_text(OUT)
    (tmp_path / "dev-0" / "expected.tsv").write_text("".join(f"{word}\n" for word in WORDS))
    data = (json.dumps(rows) if name.endswith(".json") else "".join(f"{json.dumps(row)}\n" for row in rows)).encode()
    (tmp_path / "dev-1" / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    of_tsv, of_other = (evaluate(tmp_path, test, output="out-a.tsv") for test in ("dev-0", "dev-1"))
    assert values_of(of_tsv) == values_of(of_other)
    assert of_tsv.lines().equals(of_other.lines())
    assert [item.expected for item in Challenge.open(tmp_path)["dev-1"]] == WORDS
    monkeypatch.chdir(tmp_path)
    shown = []
    for test in ("dev-0", "dev-1"):
        assert main(["-t", test]) == 0
        assert main(["check", "-t", test]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]


def test_the_column_is_chosen_once(tmp_path):
    path = tmp_path / "expected.jsonl"
    path.write_text('{"expected": "a", "text": "b"}\n{"answer": "c"}\n')
    assert reason_of(path) == "row 2: it has no `expected`, the column of the answers in the first row"
    path.write_text('{"answer": "a"}\n{"answer": 2, "expected": "c"}\n{"answer": 0.5}\n')
    assert lines_of(path) == ["a", "2", "0.5"]
    path.write_text('{"answer": "a", "id": 1, "expected": "c"}\n')
    what = "which column has the answers? there are `answer`, `id`, `expected`; keep one of expected and answer"
    assert reason_of(path) == f"row 1: {what}"


def test_distributions_as_answers(tmp_path):
    """Norms."""
    path = tmp_path / "norms.jsonl"
    path.write_text(
        '{"words": ["tea", "coffee"], "probabilities": [0.6, 0.4]}\n'
        '{"id": 2, "words": ["a", ""], "probabilities": [0.5, 0.5]}\n'
    )
    assert lines_of(path) == ["tea:0.6 coffee:0.4", "a:0.5 :0.5"]


WRITE = ".to_json('expected.jsonl', orient='records', lines=True)"
UNSUPPORTED = [  # the answers that are named, and the Python that converts them
    ("answers.csv", f"pandas.read_csv('answers.csv', dtype=str, keep_default_na=False){WRITE}"),
    ("answers.parquet", f"pandas.read_parquet('answers.parquet'){WRITE}"),
    ("answers.pq", f"pandas.read_parquet('answers.pq'){WRITE}"),
]


@pytest.mark.parametrize(("name", "code"), UNSUPPORTED, ids=range(len(UNSUPPORTED)))
def test_answers_that_are_converted_first(name, code, tmp_path, capsys, monkeypatch):
    """The line of Python in the message is run, and what it writes is read."""
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"answer": WORDS, "word": WORDS[::-1]})
    frame.to_csv("answers.csv")
    for path in ("answers.parquet", "answers.pq"):
        frame.to_parquet(path)
    (tmp_path / "out.tsv").write_text(OUT)
    assert main(["-o", "out.tsv", "-e", name, "-m", "PerplexityHashed"]) == 1
    reason = f"answers are TSV, or JSON lines with a column expected or answer; {code} writes them"
    assert capsys.readouterr().err == f"geval: Cannot read `{name}`: {reason}\n"
    exec(code, {"pandas": pd})
    assert lines_of("expected.jsonl") == WORDS


BAD = [
    ({"words": ["a"], "probabilities": [2]}, "row 1, `a`: 2.0 is not a probability, from 0 to 1"),
    ({"answer": float("nan")}, "row 1, answer: NaN is not a number"),
    ({"answer": float("inf")}, "row 1, answer: the number is infinite, or too large"),
    ({"a": "x", "b": "y"},
     "row 1: which column has the answers? there are `a`, `b`; name it expected, or keep it alone"),
    ({"answer": True}, "row 1, answer: a text or a number is wanted, not true or false"),
    ({"answer": "x\ny"}, "row 1, answer: `x\\ny` has a line end in it, which would split the line"),
    ({"answer": "\ud800"}, "row 1, answer: it cannot be written as UTF-8: surrogates not allowed"),
    ({"answer": {"a": 1}}, "row 1, answer: a text or a number is wanted, not a map"),
]  # fmt: skip


@pytest.mark.parametrize(("row", "reason"), BAD, ids=range(len(BAD)))
def test_bad_answers_have_a_place(row, reason, tmp_path):
    path = tmp_path / "expected.jsonl"
    path.write_text(json.dumps(row) + "\n")
    assert reason_of(path) == reason
