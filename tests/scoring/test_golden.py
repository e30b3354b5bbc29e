"""What GEval 1.42.2 answers, --metric and the metric's name, on inputs that are made up (tests/data/README.md)."""

import json
import lzma
from pathlib import Path

import pytest
from scorers import close, error, score

DATA = Path(__file__).parent.parent / "data"
FILES = ("annotation-metrics", "text-metrics", "matched-metrics")
RECORDS = [json.loads(row) for name in FILES for row in lzma.open(DATA / f"{name}.jsonl.xz", "rt", encoding="utf-8")]
GOLDEN = [row for row in RECORDS if "value" in row]
REFUSED = [row for row in RECORDS if "status" in row]
SMALL = json.loads((DATA / "metrics.json").read_text(encoding="utf-8"))
OF_WORDS = [row for row in SMALL if row["stdout"]]
MALFORMED = [row for row in SMALL if row["stderr"]]


def test_there_are_many():
    assert (len(GOLDEN), len(REFUSED), len(OF_WORDS) + len(MALFORMED)) == (1880, 19, 24)


@pytest.mark.parametrize("name", dict.fromkeys(row["metric"] for row in GOLDEN))
def test_scores_of_other_tasks(name):
    rows = [row for row in GOLDEN if row["metric"] == name]
    scores = [score(name, row["output"], row["expected"], row.get("input", ())) for row in rows]
    assert scores == close([float(row["value"]) for row in rows])


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: f"{row['metric']} {row['stderr'][7:-1]}")
def test_errors_of_other_tasks(row):
    """The first line of its message, and a hint below."""
    caught = error(row["metric"], row["output"], row["expected"])
    first, where, *_ = str(caught).splitlines()
    assert f"geval: {first}\n" == row["stderr"]
    assert where.startswith(f"  line {caught.line}, column {caught.column}: ")
    assert caught.text == (row["output"] if caught.role == "output" else row["expected"])[caught.line - 1]


@pytest.mark.parametrize("row", OF_WORDS, ids=lambda row: f"{row['metric']}, {row['name']}")
def test_scores_of_words_and_classes(row):
    assert score(row["metric"], row["out"], row["expected"]) == pytest.approx(float(row["stdout"]), rel=1e-12)


@pytest.mark.parametrize("row", MALFORMED, ids=lambda row: f"{row['metric']}, {row['name']}")
def test_errors_of_words_and_classes(row):
    assert f"geval: {error(row['metric'], row['out'], row['expected'])}".startswith(row["stderr"].rstrip("\n"))
