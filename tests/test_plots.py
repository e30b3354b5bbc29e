"""The charts of notebooks: SVG in colours of their own, with what they show in words."""

from pathlib import Path

import pytest

from geval_py import UsageError, compare, evaluate, evaluate_all, plots

GAZETTE = Path(__file__).parent.parent / "challenges" / "gazette"
OF_AN_EVALUATION = "losses costs lengths frequencies calibration first_guess rest luck tuning"


@pytest.fixture(scope="module")
def bigram():
    return evaluate(GAZETTE, "dev-0", out="out-model=bigram.tsv")


def check(chart):
    assert "var(--" not in chart.svg
    assert "PerplexityHashed" not in chart.svg
    assert "</title>" in chart.svg


@pytest.mark.parametrize("name", OF_AN_EVALUATION.split())
def test_a_chart(bigram, name):
    check(getattr(plots, name)(bigram))


def test_a_chart_of_a_column(bigram):
    check(plots.column(bigram, "Year"))
    with pytest.raises(UsageError) as caught:
        plots.column(bigram, "FileId")
    assert str(caught.value) == (
        "the column 'FileId' does not divide the lines into parts\n  columns that divide them: Year, LeftContext, RightContext"
    )


def test_a_chart_of_a_comparison():
    evaluations = evaluate_all(GAZETTE, "dev-0")
    check(plots.comparison(evaluations))
    assert plots.comparison(compare(evaluations)).svg == plots.comparison(evaluations).svg


def test_what_cannot_be_drawn():
    rests = evaluate([":1"] * 10, ["a"] * 10, metrics="PerplexityHashed")
    for name in ("calibration", "first_guess", "rest"):
        with pytest.raises(UsageError) as caught:
            getattr(plots, name)(rests)
        assert str(caught.value) == "there is nothing to draw: no line lists a word"
    with pytest.raises(UsageError) as caught:
        plots.frequencies(rests)
    assert str(caught.value) == "there is no train/expected.tsv beside the test set, whose words would be counted"
