"""The metrics of other tasks than word gaps: what GEval answers, the libraries' own answers, and the edges."""

import json
import lzma
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import f1_score, normalized_mutual_info_score

from geval_py.errors import MalformedLineError, SchemeError, UsageError
from geval_py.reading.schemes import parse_scheme
from geval_py.scoring.columns import preparation_for
from geval_py.scoring.metrics import METRICS, column_of, find_metric
from geval_py.scoring.metrics import texts as table
from geval_py.scoring.metrics.edits import corrections, error_rate
from geval_py.scoring.metrics.loess import calibration, fitted
from geval_py.scoring.metrics.ngrams import bleu, bleu_row, brevity_penalty, gleu_row
from geval_py.scoring.metrics.tags import Entity, entities_of
from geval_py.scoring.metrics.texts import TEXT_METRICS
from geval_py.scoring.selection import beside_input

PROPERTY = settings(deadline=None, derandomize=True, max_examples=50)
DATA = Path(__file__).parent.parent / "data/text-metrics.jsonl.xz"
GOLDEN = [json.loads(line) for line in lzma.decompress(DATA.read_bytes()).splitlines()]


def block(lines):
    return "".join(line + "\n" for line in lines).encode()


def statistics_of(name, outputs, expected, inputs=()):
    column = beside_input(column_of(find_metric(name), frozenset()), inputs)
    return column.statistics(block(outputs), block(expected), 1)


def score(name, outputs, expected, inputs=()):
    return find_metric(name).value(statistics_of(name, outputs, expected, inputs))


def error(name, output, expected):
    with pytest.raises(MalformedLineError) as caught:
        score(name, [output], [expected])
    return caught.value


# GEval's answers


def test_the_golden_cases_are_of_40_metrics():
    assert Counter(Counter(row["metric"] for row in GOLDEN).values()) == {20: 40}


@pytest.mark.parametrize("name", dict.fromkeys(row["metric"] for row in GOLDEN))
def test_golden_scores(name):
    """GEval 1.42.2, --metric and the metric's name; inputs made up."""
    rows = [row for row in GOLDEN if row["metric"] == name]
    found = [score(name, row["output"], row["expected"], row.get("input", ())) for row in rows]
    assert found == pytest.approx([float(row["value"]) for row in rows], rel=1e-9, abs=1e-9, nan_ok=True)
