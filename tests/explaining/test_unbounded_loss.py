"""What a line could lose, beside what the lines lost."""

import math

import pytest

from geval_py import evaluate
from geval_py.explaining.losses import unbounded_loss


def evaluated(folder, rests):
    """Score an output in which every third guess is wrong, with what each line leaves to the rest."""
    (folder / "expected.tsv").write_text("".join("b\n" if n % 3 == 1 else "a\n" for n in range(len(rests))))
    (folder / "out.tsv").write_text("".join(f"a:{1 - rest} :{rest!r}\n" for rest in rests))
    return evaluate((folder / "out.tsv", folder / "expected.tsv"), metrics="PerplexityHashed")


@pytest.mark.parametrize("rest", [0.1, 0.4])
def test_a_rest_that_bounds_the_loss(rest, tmp_path):
    assert unbounded_loss(evaluated(tmp_path, [rest, 0.3, 0.2] * 20)) is None


def test_a_line_that_leaves_nearly_nothing(tmp_path):
    bound, greatest = unbounded_loss(evaluated(tmp_path, [0.3, 0.2] * 30 + [1e-300]))
    assert bound == pytest.approx(math.log(1e300) + math.log(1024))
    assert greatest == pytest.approx(-math.log(0.2 / 1024), abs=0.01)


def test_a_line_that_leaves_nothing(tmp_path):
    assert unbounded_loss(evaluated(tmp_path, [0.3, 0.2] * 30 + [0.0]))[0] == math.inf


def test_an_infinite_loss_says_it_already(tmp_path):
    (tmp_path / "expected.tsv").write_text("a\nb\n" * 10)
    (tmp_path / "out.tsv").write_text("a:1\na:1\n" * 10)
    assert (
        unbounded_loss(evaluate((tmp_path / "out.tsv", tmp_path / "expected.tsv"), metrics="PerplexityHashed"))
        is None
    )


def test_few_lines_and_other_metrics(tmp_path):
    assert unbounded_loss(evaluated(tmp_path, [0.0] + [0.3] * 18)) is None
    assert unbounded_loss(evaluated(tmp_path, [0.0] + [0.3] * 19)) is not None
    (tmp_path / "expected.tsv").write_text("a\na\n")
    (tmp_path / "out.tsv").write_text("a\nb\n")
    assert unbounded_loss(evaluate((tmp_path / "out.tsv", tmp_path / "expected.tsv"), metrics="Accuracy")) is None


def test_it_is_said_beside_intervals(tmp_path, geval, monkeypatch):
    evaluated(tmp_path, [0.3, 0.2] * 30 + [1e-300])
    monkeypatch.chdir(tmp_path)
    status, _, said = geval("-o", "out.tsv", "-e", "expected.tsv", "-m", "PerplexityHashed", "--bootstrap", "50")
    assert (status, said) == (
        0,
        "geval: note: a line of `out.tsv` could lose up to 698 nats, and none lost more than 8.5\n"
        "  one such line would move the score far beyond its interval: leave more to the rest\n"
        "geval: note: there is no input `in.tsv`: each line counts as a document of its own\n",
    )
    (tmp_path / "other.tsv").write_text("a:0.6 b:0.4\n" * 61)
    _, _, said = geval("compare", "out.tsv", "other.tsv", "-e", "expected.tsv", "-m", "PerplexityHashed")
    assert "geval: note: a line of `other.tsv` could lose everything, and none lost more than 0.9\n" in said
