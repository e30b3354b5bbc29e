"""What hashing gave a score: other seeds, exact words, near ties."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scorers import hashed_losses

from geval_py import UsageError, compare, evaluate, score, score_file
from geval_py.explaining.luck import NearTie, luck, near_ties, notes_on_ties

GAZETTE = "challenges/gazette"


def evaluated(folder, outputs, expected, metrics="LogLossHashed", name="out.tsv"):
    for file, lines in ((name, outputs), ("expected.tsv", expected)):
        (folder / file).write_text("".join(f"{line}\n" for line in lines))
    return score_file(folder / name, folder / "expected.tsv", metric=metrics)


def test_other_seeds_are_line_numbers_further_down():
    outputs, expected = ["a:0.5 b:0.3 :0.2", "c:0.4 d:0.4 :0.2"], ["x", "c"]
    found = luck(score(outputs, expected, metric="LogLossHashed4"), seeds=30)
    wanted = [np.mean(hashed_losses(outputs, expected, 4, first_line=1 + k)) for k in range(1, 31)]
    assert found.scores == pytest.approx(wanted)
    assert (found.mean, found.sd) == pytest.approx((np.mean(wanted), np.std(wanted, ddof=1)))
    assert (found.low, found.high) == pytest.approx((found.mean - 1.96 * found.sd, found.mean + 1.96 * found.sd))
    assert found.score == pytest.approx(np.mean(hashed_losses(outputs, expected, 4)))
    assert found.z == pytest.approx((found.loss - np.mean(wanted)) / np.std(wanted, ddof=1))


def test_the_gazette():
    evaluation = evaluate(GAZETTE, "dev-0", output="out-model=bigram.tsv")
    found = luck(evaluation)
    assert found.score == pytest.approx(evaluation.score, rel=1e-12)
    assert (found.seeds, len(found.scores), found.left_out) == (25, 25, 0)
    assert found.low < found.mean < found.high
    assert found.signature == str(evaluation.signature)


@pytest.mark.parametrize(
    ("z", "sentence"),
    [
        (-3.0, "o: 95 % of seeds give 1.5000 to 2.5000: it was lucky with 2.0000."),
        (
            -1.9,
            "o: 95 % of seeds give 1.5000 to 2.5000, and this one is among them: the hash made no notable difference.",
        ),
        (
            0.0,
            "o: 95 % of seeds give 1.5000 to 2.5000, and this one is among them: the hash made no notable difference.",
        ),
        (3.0, "o: 95 % of seeds give 1.5000 to 2.5000: it was unlucky with 2.0000."),
        (None, "o: all seeds give the same score."),
    ],
)
def test_what_is_lucky(z, sentence):
    found = luck(evaluate(GAZETTE, "dev-0", output="out-model=bigram.tsv"), seeds=2)
    assert list(replace(found, z=z, low=1.5, high=2.5, score=2.0).sentences("o")) == [sentence]


@pytest.mark.filterwarnings("ignore:.*lines is infinite")
def test_lines_that_a_seed_makes_infinite_are_left_out():
    found = luck(score(["a:1", "a:0.5 :0.5"], ["b", "a"], metric="LogLossHashed"), seeds=3)
    assert (found.lines, found.left_out) == (1, 1)
    assert found.loss == pytest.approx(-math.log(0.5 + 0.5 / 1024))
    alone = luck(score(["a:1"], ["b"], metric="LogLossHashed"), seeds=2)
    assert alone.lines == 0
    assert str(alone).endswith("predictions: there is no line that is finite under all seeds.")


def test_a_line_that_only_seeds_not_tried_make_infinite_is_left_out():
    """Its word has no mass of its own: it shared a bucket with another under each seed that was tried."""
    seeds = range(1, 4)
    word = next(
        word for word in map(str, range(100)) if not any(hashed_losses(["a:1"], [word], 1, n)[0] for n in seeds)
    )
    found = luck(score(["a:1", "a:0.5 :0.5"], [word, "a"], metric="LogLossHashed1"), seeds=2)
    assert (found.lines, found.left_out) == (1, 1)


@pytest.mark.parametrize("bits", [4, 10, 12])
def test_exact_words(bits):
    """A listed word has its mass; another shares the rest with all that the line does not list."""
    outputs, expected = ["a:0.5 :0.5", "a:0.5 :0.5", "a:0.5 :0.5"], ["a", "b", "stranger"]
    words = frozenset("abcdef")
    found = luck(score(outputs, expected, metric=f"LogLossHashed{bits}"), seeds=2, vocabulary=words).exact
    assert (found.vocabulary, found.infinite) == (6, 1)
    assert found.listed == pytest.approx(math.exp(-(math.log(0.5) + math.log(0.5 / 5)) / 2))
    hashed = hashed_losses(outputs[:2], expected[:2], bits)
    assert found.from_hashed == pytest.approx(math.exp(np.mean(hashed) + 0.5 * math.log(6 / 2**bits)))


@pytest.mark.parametrize("seeds", [-1, 1, 1001])
def test_seeds_out_of_range(seeds):
    with pytest.raises(UsageError) as caught:
        luck(evaluate(GAZETTE, "dev-0", output="out-model=bigram.tsv"), seeds=seeds)
    assert str(caught.value) == f"the number of seeds is from 2 to 1000, not {seeds}"


def test_lines_of_buckets_are_refused(tmp_path):
    with pytest.raises(UsageError) as caught:
        luck(evaluated(tmp_path, ["0 0", "a:1"], ["a", "a"], "LogLossHashed1"))
    assert str(caught.value) == (
        f"`{tmp_path}/out.tsv` has 1 of 2 lines of buckets, which hold for one seed of the hash: "
        "the scores of other seeds cannot be computed"
    )


def near_outputs(folder):
    """Two outputs that differ in which other words they list, never the one that is expected."""
    rng = np.random.default_rng(4)
    names = ("one.tsv", "two.tsv")
    lines = [
        [" ".join(f"{start}{rng.integers(1000)}:0.04" for _ in range(15)) + " :0.4" for _ in range(150)]
        for start in "ab"
    ]
    expected = [f"x{n}" for n in range(150)]
    return [evaluated(folder, of, expected, name=name) for name, of in zip(names, lines, strict=True)]


@pytest.mark.filterwarnings("ignore:.*no guess at all would be better")
def test_near_ties_are_what_seeds_say(tmp_path):
    evaluations = near_outputs(tmp_path)
    losses = {of.output.name: luck(of, seeds=25).scores for of in evaluations}
    (tie,) = near_ties(evaluations, compare(evaluations, samples=100))
    assert {tie.first, tie.second} == {"one.tsv", "two.tsv"}
    assert tie.turned == np.mean(np.array(losses[tie.first]) > losses[tie.second])
    assert 0.1 < tie.turned < 0.9


def test_lines_of_buckets_have_no_near_ties(tmp_path):
    """They hold for one seed, so other seeds say nothing of them."""
    lines = [["0 0", "a:0.5 :0.5"], ["0 0", "a:0.49 :0.51"]]
    both = [evaluated(tmp_path, of, ["a", "b"], "LogLossHashed1", f"{n}.tsv") for n, of in enumerate(lines)]
    assert list(near_ties(both, compare(both, samples=100))) == []


@pytest.mark.filterwarnings("ignore:.*no guess at all would be better")
def test_near_ties_among_others(tmp_path):
    """One that is far better stands before them."""
    near = near_outputs(tmp_path)
    expected = [f"x{n}" for n in range(150)]
    evaluations = [*near, evaluated(tmp_path, [f"{word}:0.9 :0.1" for word in expected], expected, name="best.tsv")]
    comparison = compare(evaluations, samples=100)
    (tie,) = near_ties(evaluations, comparison)
    assert {tie.first, tie.second} == {"one.tsv", "two.tsv"}


def test_one_note_tells_of_all_near_ties():
    ties = [NearTie(first=f"out-{n}.tsv", second=f"out-{n + 1}\x1b.tsv", turned=0.1 * n) for n in range(1, 6)]
    assert list(notes_on_ties([])) == []
    assert list(notes_on_ties(ties[:1])) == [
        r"out-1.tsv and out-2\x1b.tsv are closer than the effect of hashing: 2 of 25 other seeds reverse their order"
    ]
    assert list(notes_on_ties(ties)) == [
        "5 pairs of neighbours are closer than the effect of hashing, each with the number of 25 other seeds that reverse it: "
        r"out-1.tsv and out-2\x1b.tsv (2), out-2.tsv and out-3\x1b.tsv (5), out-3.tsv and out-4\x1b.tsv (8) "
        "and 2 more"
    ]


def test_no_near_tie(tmp_path):
    names = ("out-model=bigram.tsv", "out-model=unigram.tsv")
    apart = [evaluate(GAZETTE, "dev-0", output=name) for name in names]
    assert list(near_ties(apart, compare(apart, samples=200))) == []
    same = [evaluated(tmp_path, ["a:0.5 b:0.1 :0.4"] * 9, ["a"] * 9, name=name) for name in ("one.tsv", "two.tsv")]
    assert list(near_ties(same, compare(same, samples=100))) == []
    exact = [
        evaluated(tmp_path, ["a:0.5 b:0.1 :0.4"], ["a"], "Accuracy", name=name) for name in ("one.tsv", "two.tsv")
    ]
    assert list(near_ties(exact, compare(exact, samples=100))) == []
