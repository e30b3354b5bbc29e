"""What a line could lose, beside what the lines lost."""

import math

import pytest

from geval_py import score
from geval_py.explaining.losses import unbounded_loss


def lines(rests):
    """An output in which every third guess is wrong, with what each line leaves to the rest; and the answers."""
    return [f"a:{1 - rest} :{rest!r}" for rest in rests], ["b" if n % 3 == 1 else "a" for n in range(len(rests))]


def bounds(rests):
    return unbounded_loss(score(*lines(rests), metric="PerplexityHashed"))


def test_a_line_that_leaves_nearly_nothing():
    bound, greatest = bounds([0.3, 0.2] * 30 + [1e-300])
    assert bound == pytest.approx(math.log(1e300) + math.log(1024))
    assert greatest == pytest.approx(-math.log(0.2 / 1024), abs=0.01)
    assert bounds([0.3, 0.2] * 30 + [0.0])[0] == math.inf
    assert bounds([0.0] + [0.3] * 19) is not None


@pytest.mark.filterwarnings("ignore:.*lines is infinite")
def test_where_no_line_is_said_to_be_unbounded():
    """A rest bounds the loss, lines are few, an infinite loss says it already, and other metrics have no bound."""
    assert [bounds(rests) for rests in ([0.1, 0.3, 0.2] * 20, [0.4, 0.3, 0.2] * 20, [0.0] + [0.3] * 18)] == [None] * 3
    assert unbounded_loss(score(["a:1"] * 20, ["a", "b"] * 10, metric="PerplexityHashed")) is None
    assert unbounded_loss(score(["a", "b"], ["a", "a"], metric="Accuracy")) is None


def test_it_is_said_beside_intervals(tmp_path, geval, monkeypatch):
    for name, texts in zip(("out", "expected"), lines([0.3, 0.2] * 30 + [1e-300]), strict=True):
        (tmp_path / f"{name}.tsv").write_text("".join(f"{text}\n" for text in texts))
    monkeypatch.chdir(tmp_path)
    status, _, said = geval("-o", "out.tsv", "-e", "expected.tsv", "-m", "PerplexityHashed", "--bootstrap", "50")
    assert (status, said) == (
        0,
        "geval: note: the loss of a line of `out.tsv` can be up to 698 nats; the greatest so far is 8.5 nats\n"
        "  one such line would move the score far beyond its interval: give more probability to the rest\n"
        "geval: note: there is no input `in.tsv`: each line counts as a document of its own\n",
    )
    (tmp_path / "other.tsv").write_text("a:0.6 b:0.4\n" * 61)
    _, _, said = geval("compare", "out.tsv", "other.tsv", "-e", "expected.tsv", "-m", "PerplexityHashed")
    assert "geval: note: the loss of a line of `other.tsv` can be infinite; the greatest so far is 0.9 nats\n" in said
