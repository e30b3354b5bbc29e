"""Calls that a user would guess: the errors say what to write."""

from pathlib import Path

import pytest
from raising import refused

from geval_py import Challenge, Metric, compare, evaluate, improve, score, score_file
from geval_py.explaining.calibration import calibration

GAZETTE = Path(__file__).parents[1] / "challenges" / "gazette"
OUTPUT = GAZETTE / "dev-0" / "out-model=bigram.tsv"
PAIR = "\n  score_file(output, expected, metric=…) scores one file against another"
OTHERS = "\n  score(predictions, references, metric=…) scores lists, and score_file(output, expected, metric=…) files"


def scored():
    return evaluate(GAZETTE, "dev-0", output="bigram")


GUESSED = {  # what is said, and of which calls
    f"`{OUTPUT}` is a file, and not a challenge's folder{PAIR}": [
        lambda: evaluate(OUTPUT), lambda: evaluate(OUTPUT, str(GAZETTE / "dev-0/expected.tsv"), metric="LogLossHashed"),
    ],
    f"evaluate takes a challenge and the name of a test set, not [':1']{OTHERS}": [
        lambda: evaluate([":1"], ["a"], metric="LogLossHashed"), lambda: evaluate(GAZETTE, [":1"]),
    ],
    f"evaluate takes a challenge and the name of a test set, not ('out.tsv', 'expected.tsv'){OTHERS}": [
        lambda: evaluate(("out.tsv", "expected.tsv"), metric="LogLossHashed"),
    ],
    "metric is a name, such as 'PerplexityHashed', or several, not 5": [
        lambda: evaluate(GAZETTE, "dev-0", output="bigram", metric=5),
        lambda: score_file(OUTPUT, GAZETTE / "dev-0/expected.tsv", metric=5), lambda: score([":1"], ["a"], metric=5),
    ],
    "metric is a name, such as 'PerplexityHashed', or several, not [5]": [
        lambda: evaluate(GAZETTE, "dev-0", output="bigram", metric=[5]),
    ],
    "a metric is a name, such as 'PerplexityHashed', not ['PerplexityHashed']": [
        lambda: Metric(["PerplexityHashed"]),
    ],
    "no metric given, use metric=…": [lambda: score([":1"], ["a"])],
    "output is the name or path of one output, not ['bigram', 'unigram']; see evaluate_all": [
        lambda: evaluate(GAZETTE, "dev-0", output=["bigram", "unigram"]),
    ],
    "output is the name or path of one output, not 1; see evaluate_all": [
        lambda: evaluate(GAZETTE, "dev-0", output=1),
    ],
    "there are several outputs (out-model=bigram.tsv, out-model=unigram.tsv): choose one with output=…": [
        lambda: evaluate(GAZETTE, "dev-0"),
    ],
    "a vocabulary is a list of words, in the order of columns, or a dict of words with their ids, not 'PerplexityHashed'": [
        lambda: Metric("PerplexityHashed", vocabulary="PerplexityHashed"),
    ],
    "a vocabulary is a list of words, in the order of columns, or a dict of words with their ids, not 5": [
        lambda: Metric("PerplexityHashed", vocabulary=5),
    ],
    "a vocabulary is a list of words, in the order of columns, or a dict of words with their ids, not {'the'}": [
        lambda: Metric("PerplexityHashed", vocabulary={"the"}),
    ],
    "compare(one, other) takes several evaluations or a list of them, not <Evaluation of out-m…174.595, 212 lines>": [lambda: compare(scored())],
    "compare(one, other) takes several evaluations or a list of them, not 5": [lambda: compare(5)],
    "an evaluation is wanted, as evaluate(…) gives it, not 'out.tsv'": [
        lambda: improve("out.tsv"), lambda: calibration("out.tsv"),
        lambda: compare(scored(), "out.tsv"), lambda: compare(["out.tsv", scored()]),
    ],
    "a comparison takes two outputs or more; there is none": [lambda: compare([]), lambda: compare()],
    "an evaluation is wanted, as evaluate(…) gives it, not 5": [lambda: improve(5), lambda: improve([5])],
    "a mixture takes one output or more; there is none": [lambda: improve([]), lambda: improve()],
    "a challenge is opened by Challenge.open(path)": [lambda: Challenge(".")],
    "Unknown or broken metric definition: nope\n  geval --list-metrics shows those that are known": [
        lambda: Metric("nope"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("message", "call"), [(said, call) for said, calls in GUESSED.items() for call in calls])
def test_a_guessed_call(message, call):
    with refused(message):
        call()
