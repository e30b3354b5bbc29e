"""Mixing one output or several: the weights, what is written, and what is refused."""

import itertools
import json
import lzma
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from profiles import examples
from raising import refused
from scipy import optimize, stats

from geval_py import MalformedLineError, check, evaluate, improve, score
from geval_py.errors import ExistingFileError, UnreadableFileError
from geval_py.explaining.derived import mixed_output
from geval_py.explaining.mixing import MIN_GAIN, Change, best_weights, change_of, fold_of_lines, frequent_words
from geval_py.reading.outputs import output_at
from geval_py.scoring.kernel.rewriting import Mixing

GAZETTE = Path(__file__).parents[2] / "challenges" / "gazette"
HALVES = Mixing(weights=((0.0, 0.5, 0.5, 0.0, 0.0, 0.0),))


@pytest.fixture(scope="module")
def gazette():
    return [evaluate(GAZETTE, "dev-0", output=name) for name in ("bigram", "unigram")]


def write(folder, outputs, expected, train=(), bits=10):
    """A challenge with outputs; gives their evaluations."""
    for name in ("dev-0", "train"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "config.txt").write_text(f"--metric PerplexityHashed{bits}\n")
    files = {"dev-0/expected.tsv": expected}
    if train:
        files["train/expected.tsv"] = train
    files |= {f"dev-0/out-{n}.tsv": lines for n, lines in enumerate(outputs)}
    for name, texts in files.items():
        (folder / name).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return [evaluate(folder, "dev-0", output=f"out-{n}.tsv") for n in range(len(outputs))]


@pytest.mark.parametrize("count", [3, 49, 98, 107])
def test_a_train_whose_words_are_all_listed_leaves_nothing(count, tmp_path):
    """The shares of 49 words, rounded, sum to a little less than 1."""
    train = [f"w{n}" for n in range(count)]
    outputs = [f"{word}:0.5 :0.5" for word in ["w0", "w1", "unseen"] * 40]
    (evaluation,) = write(tmp_path, [outputs], ["w0", "unseen", "unseen"] * 40, train, bits=20)
    *_, rest_to_train, of_train, _ = improve(evaluation, words=1000).components
    assert (rest_to_train.infinite, of_train.infinite) == (40, 80)


def test_gazette(gazette):
    """174.60 as it is, 158.87 by four weights that another implementation found in the same folds."""
    mixture = improve(gazette[0], words=1000, documents="FileId")
    assert [component.name for component in mixture.components] == [
        "out-model=bigram.tsv", "out-model=bigram.tsv, rest to train", "train", "uniform",
    ]  # fmt: skip
    assert (mixture.best, mixture.folds, mixture.documents, mixture.words) == ("out-model=bigram.tsv", 10, 36, 974)
    assert (mixture.score, mixture.held_out) == pytest.approx((174.60, 158.87), abs=0.01)
    assert (mixture.taken, mixture.bins) == (True, 1)
    assert sum(component.weight for component in mixture.components) == pytest.approx(1)
    both = improve(gazette, words=1000, documents="FileId")
    assert both.held_out == pytest.approx(158.87, abs=0.01)
    without_words = improve(gazette, words=0, documents="FileId")
    assert [component.name for component in without_words.components][2:] == ["uniform"]
    assert not without_words.taken


MASSES = st.lists(st.lists(st.floats(0, 30), min_size=3, max_size=3), min_size=1, max_size=30)


@settings(deadline=None, max_examples=examples(60, most=15))
@given(MASSES, st.sampled_from([0.0, 2.0]))
@example([[0.0, 30.0, 30.0]], 0.0)
@example([[0.0, 30.0, 30.0], [30.0, 30.0, 0.0]], 0.0)
def test_the_weights_are_those_that_another_search_finds(rows, lines):
    masses, prior = np.exp(-np.array(rows).T), lines * np.array([0.5, 0.3, 0.2])
    weights = best_weights(masses, prior)
    assert weights.sum() == pytest.approx(1)
    assert (weights >= 0).all()

    def loss(weights):
        of_prior = prior @ np.log(np.maximum(weights, 1e-300)) if lines else 0.0
        return -(np.log(weights @ masses).sum() + of_prior) / len(rows)

    def loss_of_logits(free):
        powers = np.exp(free - free.max())
        return loss(powers / powers.sum())

    theirs = min(optimize.minimize(loss_of_logits, start, method="Nelder-Mead").fun for start in np.eye(3) * 3)
    assert loss(weights) <= theirs + 1e-4
    assert best_weights(np.empty((4, 0))).tolist() == [0.25] * 4


def sure_and_unsure(rng, lines):
    """An output that is right where it is sure, and overrates its words where it is not; answers; train."""
    frequent = [f"f{n}" for n in range(40)]
    shares = 1 / np.arange(1, 41) / (1 / np.arange(1, 41)).sum()
    output, answers = [], []
    for n in range(lines):
        sure = n % 2
        words = [f"w{word}" for word in rng.choice(5000, 8, replace=False)]
        masses = rng.dirichlet(np.ones(8) * (0.2 if sure else 5)) * 0.9
        output.append(" ".join(f"{word}:{mass:.6f}" for word, mass in zip(words, masses, strict=True)) + " :0.1")
        lost = 0.02 if sure else 0.6
        answers.append(rng.choice(frequent, p=shares) if rng.random() < lost else rng.choice(words, p=masses / 0.9))
    return output, answers, rng.choice(frequent, 2000, p=shares).tolist()


@pytest.mark.filterwarnings("ignore:.*a little worse")
def test_weights_depend_on_how_sure_a_line_is_where_that_is_better(tmp_path, monkeypatch):
    output, answers, train = sure_and_unsure(np.random.default_rng(1), 600)
    (evaluation,) = write(tmp_path, [output], answers, train)
    mixture = improve(evaluation)
    assert mixture.bins > 1
    assert mixture.taken
    assert f"in {mixture.bins} bins" in str(mixture)
    rows = mixture.mixing.weights
    assert rows[-1][1] + rows[-1][2] > rows[0][1] + rows[0][2] + 0.2  # of the output, with either rest
    written = mixture.apply(tmp_path / "dev-0/out-0.tsv")
    assert evaluate(tmp_path, "dev-0", output=written).score == pytest.approx(mixture.predicted, rel=1e-5)
    monkeypatch.setattr("geval_py.explaining.mixing.BINS", ())
    assert improve(evaluation).held_out > 1.05 * mixture.held_out


@pytest.mark.long
def test_of_many_lines_some_are_enough(tmp_path, monkeypatch):
    output, answers, train = sure_and_unsure(np.random.default_rng(1), 4000)
    (evaluation,) = write(tmp_path, [output], answers, train)
    all_lines = improve(evaluation)
    monkeypatch.setattr("geval_py.explaining.mixing.MAX_FITTED_LINES", 1500)
    assert improve(evaluation).held_out == pytest.approx(all_lines.held_out, rel=0.01)


def test_the_output_to_compare_with_is_chosen_outside_each_fold(tmp_path):
    """Of two outputs that are good for one document each, the better one of a fold's other lines is the worse one."""
    answers = ["a"] * 100
    first = ["a:0.5 :0.5" if n % 2 else "a:0.1 :0.9" for n in range(100)]
    second = ["a:0.1 :0.9" if n % 2 else "a:0.5 :0.5" for n in range(100)]
    mixture = improve(write(tmp_path, [first, second], answers), documents=[n % 2 for n in range(100)], words=0)
    assert mixture.score == pytest.approx(1 / 0.1, rel=0.01)  # on all lines, both have 1 / sqrt(0.1 * 0.5)


ENTRIES = st.lists(
    st.tuples(st.sampled_from(["the", "of", "cat", "ka:lo", "ą", ""]), st.floats(0.0, 1.0)), min_size=1, max_size=5
).map(lambda entries: " ".join(f"{word}:{value:.6g}" for word, value in entries))
LOGARITHMS = st.lists(
    st.tuples(st.sampled_from(["the", "of", "cat", ""]), st.floats(-30.0, 1.0)), min_size=1, max_size=4
).map(lambda entries: " ".join(f"{word}:{value:.6g}" for word, value in entries))
# A few values, repeated: 1024 of their own take long to draw.
VECTORS = st.lists(st.floats(-9.0, 0.0), min_size=1, max_size=31).map(
    lambda values: " ".join(f"{value:.6g}" for value in itertools.islice(itertools.cycle(values), 1024))
)
LINES = st.one_of(ENTRIES, ENTRIES, LOGARITHMS)
ANSWERS = st.sampled_from(["the", "of", "cat", "dog", "ka:lo", "ą", "unlisted"])


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore:.*lines is infinite", "ignore:.*no guess at all would be better", "ignore:.*a little worse"
)
@settings(deadline=None, max_examples=examples(60, most=8), suppress_health_check=[*HealthCheck])
@given(st.integers(1, 3).flatmap(lambda count: st.lists(
    st.tuples(ANSWERS, *[LINES] * (count - 1), st.one_of(LINES, LINES, VECTORS)), min_size=2, max_size=20,
)), st.booleans())  # fmt: skip
@example([("cat", "the:1"), ("of", "of:1")], True)
@example([("of", "the:0"), ("the", "the:1 of:0.5")], False)
@example([("cat", "the:0.5 of:0.5")] * 30, False)
@example([("the", "the:2e-113"), ("of", "the:1 of:0.5"), *[("of", "the:0 of:-1")] * 2, ("the", "the:-1 of:0")], True)
def test_a_written_mixture_scores_what_was_predicted(tmp_path_factory, lines, words):
    """It is no worse than the best output on the same lines, and is well formed."""
    folder = tmp_path_factory.mktemp("challenge")
    expected, *outputs = zip(*lines, strict=True)
    evaluations = write(folder, outputs, expected, train=["the", "the", "of", "of", "cat", "a b", ""])
    mixture = improve(evaluations, words=2 if words else 0, force=True)
    assert mixture.predicted <= min(evaluation.score for evaluation in evaluations) * (1 + 1e-4)
    paths = [folder / f"dev-0/out-{n}.tsv" for n in range(len(outputs))]
    written = mixture.apply(paths)
    assert evaluate(folder, "dev-0", output=written).score == pytest.approx(mixture.predicted, rel=2e-5)
    before, after = ({one.rule.code for path in of for one in check(path).problems} for of in (paths, [written]))
    # Nearly all mass may be in the rest, which is a little worse than all of it (W214, W304).
    assert after <= before | {"W214", "W304"}


@pytest.mark.filterwarnings("ignore:.*lines is infinite", "ignore:.*a little worse")
def test_infinite_losses_are_counted_and_mended(tmp_path):
    (evaluation,) = write(tmp_path, [["cat:1", "dog:1", "the:0.5 :0.5"] * 50], ["cat", "unlisted", "the"] * 50)
    mixture = improve(evaluation)
    assert (mixture.components[0].infinite, mixture.score) == (50, math.inf)
    assert (mixture.taken, mixture.change.mean) == (True, -math.inf)
    written = mixture.apply(tmp_path / "dev-0/out-0.tsv")
    assert evaluate(tmp_path, "dev-0", output=written).score == pytest.approx(mixture.predicted, rel=1e-5)


@pytest.mark.filterwarnings("ignore:.*no guess at all would be better", "ignore:.*a little worse")
def test_no_other_line_gets_an_infinite_loss(tmp_path):
    """Even an output that needs no rest on the lines at hand."""
    mixture = improve(write(tmp_path, [["cat:1", "cat:0.5 dog:0.5"] * 60], ["cat", "dog"] * 60))
    (tmp_path / "dev-0/out-other.tsv").write_text("cat:1\n" * 120)
    (tmp_path / "dev-0/expected.tsv").write_text("unseen\n" * 120)
    written = mixture.apply(tmp_path / "dev-0/out-other.tsv")
    assert evaluate(tmp_path, "dev-0", output=written).score <= 1024 / 1e-6 * 1.01


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*a little worse")
def test_lines_of_many_words_are_written_as_vectors(tmp_path):
    """Lines of 1,500 long words take more room than the masses of 1,024 buckets."""
    rng = np.random.default_rng(2)
    output, answers, _ = sure_and_unsure(rng, 300)
    words = [f"rather-long-word-{n}" for n in range(1500)]
    answers = [rng.choice(words) if word[0] == "f" else word for word in answers]
    mixture = improve(write(tmp_path, [output], answers, words), words=1500)
    assert mixture.mixing.as_vectors
    written = mixture.apply(tmp_path / "dev-0/out-0.tsv")
    with open(written) as file:
        assert len(file.readline().split(" ")) == 1024
    assert evaluate(tmp_path, "dev-0", output=written).score == pytest.approx(mixture.predicted, rel=1e-6)


def test_what_is_written(tmp_path, gazette):
    mixture = improve(gazette, words=100)
    for folder in ("same", "other"):
        (tmp_path / folder).mkdir()
    paths = [tmp_path / "same/out-model=bigram.tsv.xz", gazette[1].output.path]
    with lzma.open(paths[0], "wb") as file:
        file.write(Path(gazette[0].output.path).read_bytes())
    written = mixture.apply(paths, folder=tmp_path / "other")
    assert written == str(tmp_path / "other/out-mix=bigram+unigram+train.tsv.xz")
    assert len(lzma.open(written).read().splitlines()) == mixture.lines
    kept = json.loads((tmp_path / "other/out-mix=bigram+unigram+train.mixing.json").read_text())
    assert kept["mixing"]["weights"] == [list(row) for row in mixture.mixing.weights]
    assert len(kept["mixing"]["frequent_words"]) == 100
    assert kept["test"] == "dev-0"
    with pytest.raises(ExistingFileError):
        mixture.apply(paths, folder=tmp_path / "other")
    assert mixture.apply(paths, folder=tmp_path / "other", force=True) == written
    with refused("the mixture is of 2 outputs, not of 1"):
        mixture.apply(paths[1], folder=tmp_path)


def test_blocks_that_end_at_different_lines_are_mixed_line_by_line(tmp_path, monkeypatch):
    sources = []
    for name, length in (("a", 3), ("b", 40)):
        sources.append(str(tmp_path / f"{name}.tsv"))
        lines = [f"{name * (length * line % 71)}{line}:0.5 :0.5\n" for line in range(200)]
        Path(sources[-1]).write_text("".join(lines), encoding="utf-8")
    written = []
    for size in (1 << 20, 100):
        monkeypatch.setattr("geval_py.reading.lines.BLOCK_BYTES", size)
        mixed_output(list(map(output_at, sources)), "train", str(tmp_path), None).write(HALVES, {})
        written.append((tmp_path / "out-mix=a+b+train.tsv").read_text(encoding="utf-8"))
    assert written[0] == written[1]
    assert written[0].count("\n") == 200


def test_a_source_that_lost_lines_meanwhile_is_named(tmp_path):
    for name, text in (("a", ":1\n:1\n"), ("b", ":1\n")):
        (tmp_path / f"{name}.tsv").write_text(text)
    sources = [output_at(str(tmp_path / f"{name}.tsv")) for name in "ab"]
    with refused(f"Cannot read `{tmp_path}/b.tsv`: it was changed while it was read", UnreadableFileError):
        mixed_output(sources, "train", str(tmp_path), None).write(HALVES, {})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tsv", "b.tsv"]


@pytest.mark.parametrize("at_fault", [0, 1])
def test_the_output_at_fault_is_named(at_fault, tmp_path):
    paths = [str(tmp_path / f"{name}.tsv") for name in "ab"]
    for number, path in enumerate(paths):
        Path(path).write_text("a:0.5 :0.5\n" + ("a:x\n" if number == at_fault else f"b:0.{number + 1} :0.5\n"))
    mixed = mixed_output(list(map(output_at, paths)), "train", str(tmp_path / "mixed"), None)
    (tmp_path / "mixed").mkdir()
    with pytest.raises(MalformedLineError) as caught:
        mixed.write(HALVES, {})
    assert (caught.value.path, caught.value.line) == (paths[at_fault], 2)
    assert list((tmp_path / "mixed").iterdir()) == []


FEW = "the result of mixing on 99 lines may be due to chance"
NO_TRAIN = "there is no train/expected.tsv, whose frequent words would be mixed in"


@pytest.mark.parametrize(("lines", "arguments", "message"), [
    (100, {"words": 5}, NO_TRAIN), (100, {"seed": -1}, "the seed is a whole number from 0 on"),
    (99, {}, f"{FEW}; take 100 lines or more, or give force=…"),
])  # fmt: skip
def test_refused(lines, arguments, message):
    with refused(message):
        improve(score(["a:0.5 :0.5"] * lines, ["a"] * lines, metric="PerplexityHashed"), **arguments)


def test_few_lines_and_no_train(tmp_path):
    (evaluation,) = write(tmp_path, [["a:0.5 :0.5"] * 99], ["a"] * 99)
    notes = improve(evaluation, force=True).notes
    assert (notes[0], notes[-1]) == (FEW, f"{NO_TRAIN}: they are left out")


def test_nothing_to_mix():
    with refused("a mixture takes one output or more; there is none"):
        improve([])


@pytest.mark.filterwarnings("ignore:.*not in the vocabulary", "ignore:.*lines is infinite")
@pytest.mark.parametrize("metric", ["Accuracy", "PerplexityHashed:l", "Perplexity", "LogLossHashed:f<exp:the>"])
def test_only_hashed_metrics(metric):
    evaluation = evaluate(GAZETTE, "dev-0", output="unigram", metric=metric)
    message = "mixing needs a hashed metric without flags that choose or change lines, such as PerplexityHashed, "
    with refused(message + f"not {metric}"):
        improve(evaluation)


def test_frequent_words():
    answers = ["b", "the", "a", "the", "x y", "", "a\t", "b", "a"]
    found = frequent_words(answers, 2)
    assert list(found.items()) == [("a", 2 / 9), ("b", 2 / 9)]
    assert list(frequent_words(answers, 9)) == ["a", "b", "the"]


ODD = ["no\u00a0break", "a\tb", "zero\u200bwidth", "a\ufeffmark", "x:0.1,y", "5;a:b", "\x07bell", "isolate\u2066"]


@pytest.mark.parametrize("odd", ODD, ids=ascii)
def test_words_that_a_rule_speaks_of_are_not_listed(odd, tmp_path):
    others = ["fine", "ka:lo", "soft\u00adhyphen"]
    assert list(frequent_words([odd, *others], 9)) == others
    (tmp_path / "out.tsv").write_text(f"{odd}:0.5 :0.5\n", encoding="utf-8")
    problems = check(tmp_path / "out.tsv").problems
    assert {problem.rule.code for problem in problems} & {"W208", "W209", "E113", "E114"}


def test_documents_are_held_out_together():
    groups = np.repeat(np.arange(25), 7)
    folds = fold_of_lines(groups, seed=3)
    assert set(folds) == set(range(10))
    assert all(len(set(folds[groups == group])) == 1 for group in range(25))
    assert set(fold_of_lines(np.array([0, 1, 1]), seed=3)) == {0, 1}


def test_the_interval_is_that_of_the_sums_of_documents():
    """Specification, section 1: v = G/(G-1) sum (sum of deviations)^2 / N^2, and Student's t."""
    rng = np.random.default_rng(5)
    base, losses, groups = rng.exponential(3, 90), rng.exponential(2, 90), np.arange(90) // 6
    change = change_of(losses, base, groups)
    mean = (losses - base).mean()
    sums = [((losses - base)[groups == g] - mean).sum() for g in range(15)]
    half = stats.t.ppf(0.975, 14) * math.sqrt(15 / 14 * np.square(sums).sum()) / 90
    assert (change.low, change.mean, change.high) == pytest.approx((mean - half, mean, mean + half))
    alone = change_of(losses, base, np.arange(90))
    theirs = stats.ttest_rel(losses, base).confidence_interval()
    assert (alone.low, alone.high) == pytest.approx(tuple(theirs), rel=1e-9)


INFINITE = {
    "fixed": ([1.0, 1.0], [math.inf, 1.0], -math.inf, True), "broken": ([math.inf, 1.0], [1.0, 2.0], math.inf, False),
    "both": ([math.inf, 1.0], [1.0, math.inf], math.inf, False),
    "the same": ([math.inf, 1.0], [math.inf, 1.0], 0.0, False),
}  # fmt: skip


@pytest.mark.parametrize(("losses", "base", "mean", "better"), INFINITE.values(), ids=INFINITE)
def test_changes_of_infinite_losses(losses, base, mean, better):
    change = change_of(np.array(losses), np.array(base), np.arange(2))
    assert (change.mean, change.is_better) == (mean, better)


def test_what_is_no_use_is_not_taken():
    tiny = np.full(100, 1.0)
    spread = np.linspace(-1e-6, 1e-6, 100)
    assert not change_of(tiny - MIN_GAIN / 2 + spread, tiny, np.arange(100)).is_better
    assert change_of(tiny - MIN_GAIN * 2 + spread, tiny, np.arange(100)).is_better
    alike = change_of(tiny - MIN_GAIN * 2, tiny, np.arange(100))  # only p can tell, and 0.98 does not
    assert (alike.is_better, alike.cells()) == (False, ("-0.0002", "", "0.9802"))


def test_p_is_a_bound_by_the_likelihood():
    losses, lines = np.zeros(400), np.arange(400)
    losses[:40] = -0.2  # 8 nats less in all
    assert change_of(losses, np.zeros(400), lines).p_value == pytest.approx(math.exp(-8))
    assert change_of(-losses, np.zeros(400), lines).p_value == 1.0
    by_document = change_of(losses, np.zeros(400), lines // 20)
    assert math.exp(-8) < by_document.p_value < 1
    assert by_document.is_better is (by_document.p_value <= 0.05)
    assert not change_of(np.zeros(400), np.zeros(400), lines).is_better


@pytest.mark.parametrize(
    ("high", "taken", "verdict"),
    [(-0.01, True, "take it"), (0.01, True, "probably better"), (np.nan, True, "probably better"), (0.01, False, "leave it")],
)  # fmt: skip
def test_verdicts(high, taken, verdict):
    assert Change(mean=-0.1, low=-0.2, high=high, p_value=0.001).verdict(taken=taken) == verdict
