"""Calls that a user would guess: the errors say what to write."""

from pathlib import Path

import pytest

import geval_py
from geval_py import Challenge, Scorer, UsageError, compare, evaluate, evaluate_all, mix, tune

GAZETTE = Path(__file__).parents[1] / "challenges" / "gazette"
OUTPUT = GAZETTE / "dev-0" / "out-model=bigram.tsv"
PAIR = "\n  evaluate((output, expected), metrics=…) scores one file against another"


def scored():
    return evaluate(GAZETTE, "dev-0", out="bigram")


GUESSED = {
    "a file for a challenge": (lambda: evaluate(OUTPUT), f"`{OUTPUT}` is a file, and not a challenge's folder{PAIR}"),
    "two files": (
        lambda: evaluate(OUTPUT, str(GAZETTE / "dev-0" / "expected.tsv"), metrics="LogLossHashed"),
        f"`{OUTPUT}` is a file, and not a challenge's folder{PAIR}",
    ),
    "a number of metrics": (
        lambda: evaluate(GAZETTE, "dev-0", out="bigram", metrics=5),
        "metrics are a name, as 'PerplexityHashed', or a list of names, not 5",
    ),
    "metrics that are no texts": (
        lambda: evaluate(GAZETTE, "dev-0", out="bigram", metrics=[5]),
        "metrics are a name, as 'PerplexityHashed', or a list of names, not [5]",
    ),
    "several outputs": (
        lambda: evaluate(GAZETTE, "dev-0", out=["bigram", "unigram"]),
        "out is the name or path of one output, not ['bigram', 'unigram']; evaluate_all scores all outputs",
    ),
    "a number of an output": (
        lambda: evaluate(GAZETTE, "dev-0", out=1),
        "out is the name or path of one output, not 1",
    ),
    "a text as a vocabulary": (
        lambda: Scorer("PerplexityHashed"),
        "a vocabulary is a list of words, in the order of columns, not 'PerplexityHashed'",
    ),
    "a size of a vocabulary": (lambda: Scorer(5), "a vocabulary is a list of words, in the order of columns, not 5"),
    "compare with one": (
        lambda: compare(scored()),
        "several evaluations are wanted in a list, not one evaluation: compare([one, other])",
    ),
    "mix one": (
        lambda: mix(scored()),
        "several evaluations are wanted in a list, not one evaluation: mix([one, other])",
    ),
    "compare a number": (
        lambda: compare(5),
        "several evaluations are wanted in a list, not 5: compare([one, other])",
    ),
    "tune a path": (lambda: tune("out.tsv"), "an evaluation is wanted, as evaluate(…) gives it, not 'out.tsv'"),
    "a challenge by its folder": (lambda: Challenge("."), "a challenge is opened by Challenge.open(path)"),
    "an unknown metric": (
        lambda: geval_py.metric("nope"),
        "Unknown or broken metric definition: nope\n  geval --list-metrics shows those that are known",
    ),
}


@pytest.mark.parametrize(("call", "message"), GUESSED.values(), ids=GUESSED)
def test_a_guessed_call(call, message):
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
        evaluate_all(GAZETTE, "dev-0", out="bigram")
    message = "evaluate_all() got an unexpected keyword argument 'out': did you mean evaluate(…, out=…)?"
    assert str(caught.value) == message
