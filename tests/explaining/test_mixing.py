"""Mixing outputs: the weights, what is written, and what is refused."""

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from profiles import examples
from scipy import optimize

from geval_py import UsageError, check, evaluate
from geval_py.errors import LineCountError, MalformedLineError, UnreadableFileError
from geval_py.explaining.derived import mixed_output
from geval_py.explaining.mixing import best_weights, mix, mixed_losses, relative_masses
from geval_py.reading.outputs import output_at
from geval_py.scoring.metrics.base import NOISE
from geval_py.scoring.recipes import Mixing

GAZETTE = Path(__file__).parents[2] / "challenges" / "gazette"


@pytest.fixture(scope="module")
def gazette():
    return [evaluate(GAZETTE, "dev-0", output=name) for name in ("bigram", "unigram")]


def write(folder, outputs, expected, train=()):
    """A challenge with several outputs; gives their evaluations."""
    for name in ("dev-0", "train"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "config.txt").write_text("--metric PerplexityHashed\n")
    files = {"dev-0/expected.tsv": expected, "train/expected.tsv": train or ["x"]}
    files |= {f"dev-0/out-{n}.tsv": lines for n, lines in enumerate(outputs)}
    for name, texts in files.items():
        (folder / name).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return [evaluate(folder, "dev-0", output=f"out-{n}.tsv") for n in range(len(outputs))]


# What is found


def test_gazette(gazette):
    mixture = mix(gazette, documents="FileId")
    assert (mixture.best, mixture.folds, mixture.documents) == ("out-model=bigram.tsv", 10, 36)
    assert mixture.score == pytest.approx(174.60, abs=0.01)
    assert mixture.held_out == pytest.approx(173.6, abs=1)
    assert not mixture.taken
    with_words = mix(gazette, documents="FileId", words=1000)
    assert [component.name for component in with_words.components][2:] == ["train"]
    assert with_words.held_out == pytest.approx(158, abs=2)
    assert with_words.taken


LOSSES = st.lists(
    st.lists(st.one_of(st.floats(0, 30), st.just(math.inf)), min_size=3, max_size=3), min_size=1, max_size=30
)


@settings(deadline=None, max_examples=examples(60, most=15))
@given(LOSSES)
@example([[math.inf, math.inf, math.inf]])
@example([[0.0, 700.0, 900.0], [900.0, 700.0, 0.0]])
def test_the_weights_are_those_that_another_search_finds(rows):
    losses = np.array(rows).T
    weights = best_weights(relative_masses(losses)[1])
    assert weights.sum() == pytest.approx(1)
    assert (weights >= 0).all()
    kept = losses[:, np.isfinite(losses.min(axis=0))]
    if not kept.size:
        assert weights == pytest.approx(1 / 3, abs=1e-5)
        return

    def loss(free):
        powers = np.exp(free - free.max())
        return mixed_losses(*relative_masses(kept), powers / powers.sum()).mean()

    theirs = min(optimize.minimize(loss, start, method="Nelder-Mead").fun for start in np.eye(3) * 3)
    assert mixed_losses(*relative_masses(kept), weights).mean() <= theirs + 1e-4


def test_mixed_losses_are_those_of_the_masses():
    losses = np.array([[1.0, 800.0, math.inf, math.inf], [2.0, 801.0, 1.0, math.inf]])
    mixed = mixed_losses(*relative_masses(losses), np.array([0.25, 0.75]))
    assert mixed[0] == pytest.approx(-math.log(0.25 * math.exp(-1) + 0.75 * math.exp(-2)))
    assert mixed[1] == pytest.approx(800 - math.log(0.25 + 0.75 * math.exp(-1)))
    assert mixed[2] == pytest.approx(1 - math.log(0.75))
    assert mixed[3] == math.inf


# What is written

ENTRIES = st.lists(
    st.tuples(st.sampled_from(["the", "of", "cat", ""]), st.floats(0.01, 1.0)), min_size=1, max_size=4
).map(lambda entries: " ".join(f"{word}:{value:.6g}" for word, value in entries))
# A few values, repeated: 1024 of their own take long to draw.
VECTORS = st.lists(st.floats(-9.0, 0.0), min_size=1, max_size=31).map(
    lambda values: " ".join(f"{value:.6g}" for value in itertools.islice(itertools.cycle(values), 1024))
)


@pytest.mark.filterwarnings(
    "ignore:.*lines is infinite", "ignore:.*no guess at all would be better", "ignore:.*a little worse"
)
@settings(
    deadline=None, max_examples=examples(50), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(
    st.lists(
        st.tuples(ENTRIES, st.one_of(ENTRIES, ENTRIES, VECTORS), st.sampled_from(["the", "of", "cat", "dog"])),
        min_size=2,
        max_size=12,
    ),
    st.booleans(),
)
def test_mixing_never_makes_the_set_worse_than_the_best_alone(tmp_path_factory, lines, words):
    """What is written scores what was predicted, no worse than the best output, and is well formed."""
    folder = tmp_path_factory.mktemp("challenge")
    *outputs, expected = zip(*lines, strict=True)
    evaluations = write(folder, outputs, expected, train=["the", "the", "of", "of", "cat", "a b"])
    mixture = mix(evaluations, words=2 if words else 0, force=True)
    assert mixture.predicted <= mixture.score * (1 + NOISE)
    written = mixture.apply([folder / "dev-0/out-0.tsv", folder / "dev-0/out-1.tsv"])
    assert evaluate(folder, "dev-0", output=written).score == pytest.approx(mixture.predicted, rel=1e-5)
    before, after = (
        {problem.rule.code for path in paths for problem in check(path).problems}
        for paths in ([folder / "dev-0/out-0.tsv", folder / "dev-0/out-1.tsv"], [written])
    )
    assert after <= before | ({"W304"} if before else set())  # which only outputs without other problems have


def test_what_is_written(tmp_path, gazette):
    mixture = mix(gazette, words=100)
    paths = [evaluation.output.path for evaluation in gazette]
    written = mixture.apply(paths, folder=tmp_path)
    assert written == str(tmp_path / "out-mix=bigram+unigram+train.tsv")
    kept = json.loads((tmp_path / "out-mix=bigram+unigram+train.tuning.json").read_text())
    assert kept["mixture"]["weights"] == [component.weight for component in mixture.components]
    with pytest.raises(UsageError) as caught:
        mixture.apply(paths[:1], folder=tmp_path)
    assert str(caught.value) == "the mixture is of 2 outputs, not of 1"


def test_outputs_with_another_number_of_lines(tmp_path, gazette):
    short = tmp_path / "out-model=short.tsv"
    short.write_text(":1\n")
    mixture = mix(gazette)
    with pytest.raises(LineCountError) as caught:
        mixture.apply([gazette[0].output.path, short], folder=tmp_path)
    assert str(caught.value) == (
        f"Too few lines in the output file: `{short}` has 1, `{gazette[0].output.path}` has 212"
    )
    assert list(tmp_path.iterdir()) == [short]


def test_blocks_that_end_at_different_lines_are_mixed_line_by_line(tmp_path, monkeypatch):
    sources = []
    for name, length in (("a", 3), ("b", 40)):
        sources.append(str(tmp_path / f"{name}.tsv"))
        lines = [f"{name * (length * line % 71)}{line}:0.5 :0.5\n" for line in range(200)]
        Path(sources[-1]).write_text("".join(lines), encoding="utf-8")
    written = []
    for size in (1 << 20, 100):
        monkeypatch.setattr("geval_py.reading.lines.BLOCK_BYTES", size)
        mixed_output(list(map(output_at, sources)), str(tmp_path), None).write(Mixing(weights=(0.5, 0.5)), {})
        written.append((tmp_path / "out-mix=a+b.tsv").read_text(encoding="utf-8"))
    assert written[0] == written[1]
    assert written[0].count("\n") == 200


def test_a_source_that_lost_lines_meanwhile_is_named(tmp_path):
    long, short = tmp_path / "a.tsv", tmp_path / "b.tsv"
    long.write_text(":1\n:1\n")
    short.write_text(":1\n")
    with pytest.raises(UnreadableFileError) as caught:
        mixed_output([output_at(str(long)), output_at(str(short))], str(tmp_path), None).write(
            Mixing(weights=(0.5, 0.5)), {}
        )
    assert str(caught.value) == f"Cannot read `{short}`: it was changed while it was read"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tsv", "b.tsv"]


# What is refused


def test_other_metrics(gazette):
    other = evaluate(GAZETTE, "dev-0", output="unigram", metric="LogLossHashed8")
    with pytest.raises(UsageError, match="were scored with different metrics"):
        mix([gazette[0], other])


def test_no_train(tmp_path):
    evaluations = write(tmp_path, [["a:1"] * 100, [":1"] * 100], ["a"] * 100)
    (tmp_path / "train/expected.tsv").unlink()
    with pytest.raises(UsageError) as caught:
        mix(evaluations, words=10)
    assert str(caught.value) == ("there is no train/expected.tsv, whose commonest words would be one more output")


def test_words_mixed_with_a_vector_are_a_vector():
    """Whichever comes first."""
    mixing = Mixing(weights=(0.5, 0.5), bits=1)
    for texts in (["a:0.5 :0.5", "-1 -1"], ["-1 -1", "a:0.5 :0.5"], ["-1 -1", "-1 -1"]):
        assert len(mixing.rewrite_line(texts, 1).split(" ")) == 2
        assert ":" not in mixing.rewrite_line(texts, 1)


@pytest.mark.parametrize("at_fault", [0, 1, 2])
def test_the_output_at_fault_is_named(at_fault, tmp_path):
    paths = [str(tmp_path / f"{name}.tsv") for name in "abc"]
    for number, path in enumerate(paths):
        Path(path).write_text("a:0.5 :0.5\n" + ("a:x\n" if number == at_fault else f"b:0.{number + 1} :0.5\n"))
    mixture = mixed_output(list(map(output_at, paths)), str(tmp_path / "mixed"), None)
    (tmp_path / "mixed").mkdir()
    with pytest.raises(MalformedLineError) as caught:
        mixture.write(Mixing(weights=(0.5, 0.25, 0.25)), {})
    assert (caught.value.path, caught.value.line) == (paths[at_fault], 2)
    assert list((tmp_path / "mixed").iterdir()) == []
