"""Calls that a user would guess: the errors say what to write."""

from pathlib import Path

import pytest

from geval_py import Challenge, Metric, UsageError, compare, evaluate, evaluate_all
from geval_py.explaining.calibration import calibration
from geval_py.explaining.mixing import mix
from geval_py.explaining.tuning import tune

GAZETTE = Path(__file__).parents[1] / "challenges" / "gazette"
OUTPUT = GAZETTE / "dev-0" / "out-model=bigram.tsv"
PAIR = "\n  evaluate((output, expected), metrics=…) scores one file against another"


def scored():
    return evaluate(GAZETTE, "dev-0", output="bigram")


GUESSED = {  # what is said, and of which calls
    f"`{OUTPUT}` is a file, and not a challenge's folder{PAIR}": [
        lambda: evaluate(OUTPUT), lambda: evaluate(OUTPUT, str(GAZETTE / "dev-0/expected.tsv"), metric="LogLossHashed"),
    ],
    "metrics are a name, as 'PerplexityHashed', or a list of names, not 5": [
        lambda: evaluate(GAZETTE, "dev-0", output="bigram", metric=5),
    ],
    "metrics are a name, as 'PerplexityHashed', or a list of names, not [5]": [
        lambda: evaluate(GAZETTE, "dev-0", output="bigram", metric=[5]),
    ],
    "out is the name or path of one output, not ['bigram', 'unigram']; evaluate_all scores all outputs": [
        lambda: evaluate(GAZETTE, "dev-0", output=["bigram", "unigram"]),
    ],
    "out is the name or path of one output, not 1": [lambda: evaluate(GAZETTE, "dev-0", output=1)],
    "a vocabulary is a list of words, in the order of columns, or a dict of words with their ids, not 'PerplexityHashed'": [
        lambda: Metric("PerplexityHashed", vocabulary="PerplexityHashed"),
    ],
    "a vocabulary is a list of words, in the order of columns, or a dict of words with their ids, not 5": [
        lambda: Metric("PerplexityHashed", vocabulary=5),
    ],
    "a vocabulary is a list of words, in the order of columns, or a dict of words with their ids, not {'the'}": [
        lambda: Metric("PerplexityHashed", vocabulary={"the"}),
    ],
    "compare(one, other) takes several evaluations or a list of them, not one evaluation": [lambda: compare(scored())],
    "mix(one, other) takes several evaluations or a list of them, not one evaluation": [lambda: mix(scored())],
    "compare(one, other) takes several evaluations or a list of them, not 5": [lambda: compare(5)],
    "an evaluation is wanted, as evaluate(…) gives it, not 'out.tsv'": [
        lambda: tune("out.tsv"), lambda: calibration("out.tsv"), lambda: compare(scored(), "out.tsv"),
        lambda: compare(["out.tsv", scored()]),
    ],
    "a comparison takes two outputs or more; there is none": [lambda: compare([]), lambda: compare()],
    "a mixture takes two outputs or more; there is 1": [lambda: mix([scored()])],
    "a challenge is opened by Challenge.open(path)": [lambda: Challenge(".")],
    "Unknown or broken metric definition: nope\n  geval --list-metrics shows those that are known": [
        lambda: Metric("nope"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("message", "call"), [(said, call) for said, calls in GUESSED.items() for call in calls])
def test_a_guessed_call(message, call):
    with pytest.raises(UsageError) as caught:
        call()
    assert str(caught.value) == message


TWO = "evaluate((output, expected), metrics=…) or evaluate(predictions, words, metrics=…)"


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("metric", ": did you mean metrics=…?"),
        ("output", ": did you mean out=…?"),
        ("split", ": did you mean test=…?"),
        ("test_name", ": did you mean test=…?"),
        ("input", ": did you mean inputs=…?"),
        ("tokeniser", ": did you mean tokenizer=…?"),
        ("expected", f": did you mean {TWO}?"),
        ("predictions", f": did you mean {TWO}?"),
        ("xyz", "; there are challenge, test, out, metrics, tokenizer, keep_texts, cluster, inputs, vocabulary"),
    ],
)
def test_a_guessed_name_of_an_argument(name, advice):
    with pytest.raises(TypeError) as caught:
        evaluate(GAZETTE, **{name: "x"})
    assert str(caught.value) == f"evaluate() got an unexpected keyword argument {name!r}{advice}"


def test_a_guessed_name_where_all_outputs_are_scored():
    with pytest.raises(TypeError) as caught:
        evaluate_all(GAZETTE, "dev-0", output="bigram")
    message = "evaluate_all() got an unexpected keyword argument 'out': did you mean evaluate(…, out=…)?"
    assert str(caught.value) == message
