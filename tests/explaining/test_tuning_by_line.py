"""Tuning by line: lambda and nu that depend on a line's rest, greatest probability and number of words."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geval_py import evaluate
from geval_py.errors import UnreadableFileError
from geval_py.explaining import cross_validation
from geval_py.explaining.cross_validation import change_of, fit
from geval_py.explaining.derived import frequent_words, read_parameters
from geval_py.explaining.guesses import read_guesses
from geval_py.explaining.tuning import tune
from geval_py.scoring.recipes import ByLine, Parameters

LINES = 300
LISTED = 8


def write(folder, outputs, answers, train, bits=10):
    (folder / "dev-0").mkdir(exist_ok=True)
    (folder / "train").mkdir(exist_ok=True)
    (folder / "config.txt").write_text(f"--metric PerplexityHashed{bits}\n")
    (folder / "dev-0/out.tsv").write_text("".join(f"{line}\n" for line in outputs))
    (folder / "dev-0/expected.tsv").write_text("".join(f"{word}\n" for word in answers))
    (folder / "train/expected.tsv").write_text("".join(f"{word}\n" for word in train))
    return evaluate(folder, "dev-0")


def sure_and_unsure(rng, lines):
    """Outputs that are right where they are sure, and overrate their words where they are not; answers; train."""
    frequent = [f"f{n}" for n in range(40)]
    shares = 1 / np.arange(1, 41) / (1 / np.arange(1, 41)).sum()
    outputs, answers = [], []
    for n in range(lines):
        sure = n % 2
        words = [f"w{word}" for word in rng.choice(5000, LISTED, replace=False)]
        masses = rng.dirichlet(np.ones(LISTED) * (0.2 if sure else 5)) * 0.9
        outputs.append(" ".join(f"{word}:{mass:.6f}" for word, mass in zip(words, masses, strict=True)) + " :0.1")
        lost = 0.02 if sure else 0.6
        answers.append(rng.choice(frequent, p=shares) if rng.random() < lost else rng.choice(words, p=masses / 0.9))
    return outputs, answers, rng.choice(frequent, 2000, p=shares).tolist()


@pytest.fixture
def evaluation(tmp_path):
    return write(tmp_path, *sure_and_unsure(np.random.default_rng(1), 600))


@pytest.mark.filterwarnings("ignore:.*a little worse")
def test_by_line_is_better_where_lines_differ(evaluation, tmp_path):
    tuning = tune(evaluation)
    assert [trial.names for trial in tuning.trials] == [("lambda",), ("lambda", "nu"), ("by-line",)]
    assert tuning.taken == ("by-line",)
    assert tuning.trials[2].score < 0.95 * tuning.trials[1].score
    written = tuning.apply(tmp_path / "dev-0/out.tsv")
    assert written == str(tmp_path / "dev-0/out-tuned=by-line.tsv")
    assert evaluate(tmp_path, "dev-0", output=written).score == pytest.approx(tuning.predicted, rel=1e-5)
    parameters, _ = read_parameters(written.replace(".tsv", ".tuning.json"))
    assert parameters == tuning.parameters
    assert "Take lambda and nu by line, for the 40 commonest words of train" in str(tuning)


@pytest.mark.filterwarnings("ignore:.*a little worse")
def test_more_words_are_tried_after_the_commonest(tmp_path):
    """200 words of train, of which 100 are tried first; lines of all of them are longer than 1,024 buckets' masses."""
    rng = np.random.default_rng(2)
    outputs, answers, _ = sure_and_unsure(rng, 600)
    shares = 1 / np.arange(1, 1501) ** 0.6
    words = [f"rather-long-word-{n}" for n in range(1500)]
    answers = [rng.choice(words, p=shares / shares.sum()) if word[0] == "f" else word for word in answers]
    train = rng.choice(words, 40_000, p=shares / shares.sum()).tolist()
    tuning = tune(write(tmp_path, outputs, answers, train))
    assert [(trial.names, trial.words, trial.taken) for trial in tuning.trials[2:]] == [
        (("by-line",), 100, True),
        (("by-line",), 1500, True),
    ]
    assert tuning.parameters.as_vectors
    written = tuning.apply(tmp_path / "dev-0/out.tsv")
    with open(written) as file:
        assert len(file.readline().split(" ")) == 1024
    assert evaluate(tmp_path, "dev-0", output=written).score == pytest.approx(tuning.predicted, rel=1e-6)
    assert ", 1500 words" in str(tuning)
    few = tune(evaluate(tmp_path, "dev-0", output="out.tsv"), words=100)
    assert [trial.words for trial in few.trials] == [0, 100, 100]


def test_the_fit_is_a_minimum(evaluation):
    """No number that is changed a little makes the mean loss, with its ridge, smaller."""
    frequent = {"f0": 0.2, "f1": 0.1, "f2": 0.07}
    guesses = read_guesses(evaluation, frequent, keep_entries=False)
    fitted, *_ = fit(guesses, ("by-line",), Parameters(frequent=frequent), np.arange(guesses.lines) % 2)
    found = fitted.by_line

    def loss(by_line):
        numbers = np.array([*by_line.lambda_, *by_line.nu])
        at = Parameters(frequent=frequent, by_line=by_line)
        return guesses.losses(at).mean() + 1e-5 * float(numbers @ numbers)

    for name in ("lambda_", "nu"):
        for place in range(5):
            for step in (-0.05, 0.05):
                numbers = list(getattr(found, name))
                numbers[place] += step
                assert loss(found._replace(**{name: tuple(numbers)})) > loss(found) - 1e-7


@pytest.mark.parametrize(
    "names", [("lambda",), ("lambda", "nu"), ("by-line",), ("temperature",), ("temperature", "lambda", "nu")]
)
def test_a_search_that_begins_on_a_sample_ends_where_that_of_all_lines_does(names, tmp_path, monkeypatch):
    evaluation = write(tmp_path, *sure_and_unsure(np.random.default_rng(3), 4000))
    frequent = {"f0": 0.2, "f1": 0.1, "f2": 0.07}
    guesses = read_guesses(evaluation, frequent, keep_entries="temperature" in names)
    of_line = np.arange(4000) % 2
    full, *_ = fit(guesses, names, Parameters(frequent=frequent), of_line)
    monkeypatch.setattr(cross_validation, "SAMPLE", 1000)
    sampled, *_ = fit(guesses, names, Parameters(frequent=frequent), of_line)
    assert np.abs(guesses.losses(sampled) - guesses.losses(full)).max() < 2e-3
    assert guesses.losses(sampled).mean() == pytest.approx(guesses.losses(full).mean(), abs=1e-7)
    numbers = ((one.temperature, one.lambda_, one.nu) for one in (sampled, full))
    assert next(numbers) == pytest.approx(next(numbers), abs=1e-4)
    for one, other in zip(sampled.by_line or (), full.by_line or (), strict=True):
        assert one == pytest.approx(other, abs=1e-2)


@pytest.mark.parametrize("names", [("lambda",), ("lambda", "nu"), ("by-line",)])
def test_outside_a_fold_the_fit_is_that_of_the_other_lines(names, tmp_path, monkeypatch):
    outputs, answers, _ = sure_and_unsure(np.random.default_rng(3), 1000)
    frequent, of_line = {"f0": 0.2, "f1": 0.1, "f2": 0.07}, np.arange(1000) % 3
    guesses = read_guesses(write(tmp_path, outputs, answers, []), frequent, keep_entries=False)
    columns = ("hits", "rests", "greatest", "listed_entries", "shares")
    monkeypatch.setattr(cross_validation, "SAMPLE", 400)
    for fold, fitted in enumerate(fit(guesses, names, Parameters(frequent=frequent), of_line)[1:]):
        others = replace(guesses, **{name: getattr(guesses, name)[of_line != fold] for name in columns})
        best, *_ = fit(others, names, Parameters(frequent=frequent), np.arange(others.lines) % 2)
        losses, alone = (others.losses(one) for one in (fitted, best))
        assert np.abs(losses - alone).max() < 2e-3
        assert losses.mean() == pytest.approx(alone.mean(), abs=1e-6)


number = st.floats(-3, 3)
numbers = st.builds(
    ByLine,
    centres=st.tuples(*[number] * 4),
    scales=st.tuples(*[st.floats(0.5, 3)] * 4),
    lambda_=st.tuples(*[number] * 5),
    nu=st.tuples(*[number] * 5),
)
VECTOR = " ".join(str(-n / 3) for n in range(16))
TEXTS = [":1", "a:0.5 b:0.25 :0.25", "the:0.9", "a:-1 b:-2 :-3", "a:0.2 a:0.3 :0.5", "a:0.5 :0.5 b:0", VECTOR]


@pytest.mark.filterwarnings("ignore:.*no guess at all would be better", "ignore:.*a little worse")
@given(numbers, st.sampled_from([1.0, 2.0]), st.booleans())
def test_a_tuned_line_has_the_loss_that_was_computed(tmp_path_factory, by_line, temperature, many):
    words = [f"word{n}" for n in range(40)] if many else ["the", "of"]
    frequent = frequent_words(words * 3 + ["the"], 50)
    folder = tmp_path_factory.mktemp("lines")
    evaluation = write(folder, TEXTS, ["the", "b", "unlisted", "of", "a", "b", "the"], [], bits=4)
    guesses = read_guesses(evaluation, frequent, keep_entries=True)
    parameters = Parameters(temperature=temperature, frequent=frequent, bits=4, by_line=by_line)
    assert parameters.as_vectors == many
    tuned = (parameters.rewrite_line([text], number) for number, text in enumerate(TEXTS, 1))
    (folder / "dev-0/new.tsv").write_text("".join(f"{line}\n" for line in tuned))
    tuned = evaluate(folder, "dev-0", output="new.tsv")
    losses, some = guesses.losses(parameters), np.array([1, 4])
    assert tuned.line_losses == pytest.approx(losses.tolist(), abs=1e-4)
    assert guesses.losses(parameters, some) == pytest.approx(losses[some], rel=1e-12)


GOOD = {"centres": [0.0] * 4, "scales": [1.0] * 4, "lambda": [0.0] * 5, "nu": [0.0] * 5}


@pytest.mark.parametrize(
    "wrong",
    [
        {"nu": [0.0] * 4}, {"centres": []}, {"scales": [1, 1, 0, 1]}, {"scales": [1, 1, -1, 1]}, {"scales": [1e-320, 1, 1, 1]},
        {"lambda": [math.nan] * 5}, {"nu": ["x"] * 5},
    ],
    ids=str,
)  # fmt: skip
def test_numbers_that_cannot_be_used(wrong):
    assert ByLine.of_dict(GOOD).to_dict() == GOOD
    with pytest.raises((ValueError, TypeError)):
        ByLine.of_dict(GOOD | wrong)


@pytest.mark.filterwarnings("ignore:.*no guess at all would be better", "ignore:.*a little worse")
def test_a_line_unlike_all_others_keeps_a_rest(tmp_path):
    """All lines have the same rest; then comes one without a guess, whose word train does not have."""
    outputs, answers, train = sure_and_unsure(np.random.default_rng(5), 600)
    tuning = tune(write(tmp_path, outputs, answers, train))
    assert tuning.taken == ("by-line",)
    assert min(tuning.parameters.by_line.scales) >= 0.01
    (tmp_path / "dev-0/out-other.tsv").write_text(":1\n" * 600)
    written = tuning.apply(tmp_path / "dev-0/out-other.tsv")
    (tmp_path / "dev-0/expected.tsv").write_text("unseen\n" * 600)
    assert evaluate(tmp_path, "dev-0", output=written).score <= 1024 / 1e-6 * 1.01  # the least rest, of a bucket


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"parameters": {"temperature": 1%s}}' % ("0" * 400)], ids=["deep", "great"]
)
def test_damaged_files_of_parameters(tmp_path, text):
    (tmp_path / "a.tuning.json").write_text(text)
    with pytest.raises(UnreadableFileError, match="it holds no parameters"):
        read_parameters(str(tmp_path / "a.tuning.json"))


# The guard


def test_p_is_a_bound_by_the_likelihood():
    losses, lines = np.zeros(400), np.arange(400)
    losses[:40] = -0.2  # 8 nats less in all
    assert change_of(losses, np.zeros(400), lines).p_value == pytest.approx(math.exp(-8))
    assert change_of(-losses, np.zeros(400), lines).p_value == 1.0
    by_document = change_of(losses, np.zeros(400), lines // 20)
    assert math.exp(-8) < by_document.p_value < 1
    assert by_document.is_better is (by_document.p_value <= 0.05)
    assert not change_of(np.zeros(400), np.zeros(400), lines).is_better


def share_taken(evaluations):
    """The shares of tunings that take nu or more: with the guard, and by the interval alone."""
    guarded, by_interval = [], []
    for evaluation in evaluations:
        trials = tune(evaluation, documents=False).trials
        guarded.append(any(trial.taken and "lambda" not in trial.names[-1:] for trial in trials))
        by_interval.append(trials[1].change.high < 0 and trials[1].change.mean < 0)
    return np.mean(guarded), np.mean(by_interval)


@pytest.mark.parametrize("trials", [12, pytest.param(100, marks=pytest.mark.long)])
def test_a_small_gain_is_taken(trials, tmp_path):
    """Of 400 lines, one in twelve has a frequent word that the output does not list."""
    rng = np.random.default_rng(4)

    def evaluations():
        for _ in range(trials):
            outputs, answers, train = sure_and_unsure(rng, 800)
            lost = [f"w-{n}" if word[0] == "f" and rng.random() < 0.5 else word for n, word in enumerate(answers)]
            yield write(tmp_path, outputs[1::2], lost[1::2], train)

    guarded, by_interval = share_taken(evaluations())
    print(f"\n{guarded:.0%} taken, by the interval alone {by_interval:.0%}")
    assert guarded >= by_interval
