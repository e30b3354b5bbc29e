"""Outputs that differ only in a seed are training runs of one system: tests of two levels, and what they can detect."""

import json
import math
import re
from functools import partial

import numpy as np
import pytest
from raising import refused
from resampled import column, ranked
from scipy import stats

from geval_py import compare, evaluate, score
from geval_py.scoring.metrics.registry import METRICS

LOG_LOSS = METRICS["LogLossHashed"]


def draw(rng, runs, lines, seed_sd, difference=0.0):
    """Losses of two systems, systems x runs x lines: lines are hard for both, for one, or for one run of it."""
    losses = rng.gamma(4, 0.5, lines) + rng.normal(0, 0.25, (2, 1, lines)) + rng.normal(0, 0.2, (2, runs, lines))
    losses += rng.normal(0, seed_sd, (2, runs, 1))
    losses[1] += difference
    return losses + 2  # no loss is below 0


def compared_losses(losses, documents=None, **how):
    """The second system against the first, by runs and lines."""
    means, runs = map(column, losses.mean(axis=1)), [list(map(column, system)) for system in losses]
    systems, *_ = ranked(
        LOG_LOSS, ["a", "b"], list(means), baseline=0, samples=1, seed=1, documents=documents, runs=runs, **how
    )
    return next(system for system in systems if system.name == "b")


def share_rejected(trials, runs, lines, seed_sd, difference=0.0, documents=None):
    """How often a difference is significant, and how often its interval has the true one."""
    rng, significant, covered = np.random.default_rng(runs * lines), 0, 0
    for _ in range(trials):
        losses = draw(rng, runs, lines, seed_sd, difference)
        if documents is not None:
            losses += rng.normal(0, 0.2, (2, 1, documents.max() + 1))[..., documents]
        system = compared_losses(losses, documents)
        significant += system.p_value < 0.05
        covered += system.effect_interval.low <= difference <= system.effect_interval.high
    return significant / trials, covered / trials


def test_the_spread_is_the_analysis_of_variance():
    """All mean squares, of runs of two systems crossed with lines, computed from arrays."""
    losses = draw(np.random.default_rng(3), 4, 300, 0.05)
    between = losses.mean(axis=2).var(axis=1, ddof=1).sum() / 4
    residuals = losses - losses.mean(axis=1, keepdims=True) - losses.mean(axis=2, keepdims=True)
    residuals += losses.mean(axis=(1, 2), keepdims=True)
    by_line = (residuals**2).sum() / (3 * 299) / 300 / 4
    of_lines = (losses[0] - losses[1]).mean(axis=0).var(ddof=1) / 300
    variance = of_lines + between - by_line
    parts = losses.mean(axis=2).var(axis=1, ddof=1) / 4
    degrees = 3 * between**2 / (parts**2).sum()
    weighed = between * (1 + 2 / degrees) ** 2
    degrees = (weighed + of_lines) ** 2 / (weighed**2 / degrees + of_lines**2 / 299)
    system = compared_losses(losses)
    difference = losses[1].mean() - losses[0].mean()
    assert system.difference == pytest.approx(difference)
    assert system.p_value == pytest.approx(2 * stats.t.sf(abs(difference) / math.sqrt(variance), degrees))
    assert system.run_share == pytest.approx((between - by_line) / variance)
    half = stats.t.ppf(0.975, degrees) * math.sqrt(variance)
    assert system.effect_interval.half_width == pytest.approx(half)
    assert system.least_detectable == pytest.approx(half + stats.norm.ppf(0.8) * math.sqrt(variance))


@pytest.fixture
def challenge(tmp_path, monkeypatch):
    rng, folder = np.random.default_rng(5), tmp_path / "dev-0"
    folder.mkdir()
    (tmp_path / "config.txt").write_text("--metric PerplexityHashed\n")
    (folder / "expected.tsv").write_text("a\n" * 300)
    base = rng.normal(2, 0.4, 300)
    for model, shift, runs in (("a", 0.0, 3), ("b", -0.01, 4), ("c", -0.3, 2), ("unigram", 0.5, 0)):
        own = base + shift + rng.normal(0, 0.1, 300)
        for run in range(max(1, runs)):
            losses = own + rng.normal(0, 0.03) + rng.normal(0, 0.1, 300) if runs else own
            name = f"out-model={model},seed={run}.tsv" if runs else f"out-model={model}.tsv"
            (folder / name).write_text("".join(f"a:{p:.6f} :{1 - p:.6f}\n" for p in np.exp(-np.abs(losses))))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def evaluations(challenge, names):
    return [evaluate(challenge, "dev-0", output=f"out-model={name}.tsv") for name in names.split()]


ALL = "a,seed=0 a,seed=1 a,seed=2 b,seed=0 b,seed=1 b,seed=2 b,seed=3 c,seed=0 c,seed=1 unigram"


def test_outputs_that_differ_only_in_a_seed_are_one_system(challenge):
    result = compare(evaluations(challenge, ALL), runs="seed", no_worse_than=0.5, detect=0.2)
    assert (result.runs, result.baseline) == ("seed", "out-model=unigram.tsv")
    assert [(system.name, system.runs) for system in result.systems] == [
        ("out-model=c.tsv", 2), ("out-model=b.tsv", 4), ("out-model=a.tsv", 3), ("out-model=unigram.tsv", 1),
    ]  # fmt: skip
    c, b, a, unigram = result.systems
    means = [math.log(one.score) for one in evaluations(challenge, "a,seed=0 a,seed=1 a,seed=2")]
    assert a.score == pytest.approx(math.exp(np.mean(means)))  # of the mean loss over the runs
    assert (a.run_mean, a.run_deviation) == pytest.approx((np.mean(np.exp(means)), np.std(np.exp(means), ddof=1)))
    assert (unigram.run_mean, unigram.run_deviation) == (pytest.approx(unigram.score), None)
    assert unigram.score == evaluations(challenge, "unigram")[0].score
    assert all(0 < system.run_share < 1 for system in (a, b, c))
    assert unigram.run_share is None is unigram.least_detectable is unigram.p_no_worse
    assert a.signature is None is not unigram.signature
    assert ("out-model=a.tsv", "out-model=b.tsv") in map(tuple, map(sorted, result.groups))


TWO_RUNS = "a system takes two training runs or more, outputs whose names differ only in {}\n  there {}"


@pytest.mark.parametrize(("names", "options", "message"), [
    (ALL, {"runs": "sed"}, TWO_RUNS.format("sed", "are none")),
    ("a,seed=0 b,seed=1 b,seed=2", {"runs": "seed"}, TWO_RUNS.format("seed", "is a single one of out-model=a.tsv")),
    ("a,seed=0 a,seed=1 b,seed=1 b,seed=2", {"runs": "seed", "paired_runs": True},
     "paired runs are of the same seed in all systems\n  out-model=b.tsv has 1, 2, not 0, 1"),
    ("a,seed=0 b,seed=1", {"paired_runs": True},
     "paired runs need the parameter that tells them apart, such as seed: runs"),
    ("b,seed=0 b,seed=1 b,seed=2", {"runs": "seed"}, "a comparison takes two systems or more; there is 1"),
    ("a,seed=0 b,seed=1", {"detect": 0}, "a difference is a number above 0"),
    ("a,seed=0 b,seed=1", {"no_worse_than": math.nan}, "a difference is a number above 0"),
])  # fmt: skip
def test_what_cannot_be_compared(names, options, message, challenge):
    with refused(message):
        compare(evaluations(challenge, names), **options)


def test_a_corpus_has_no_runs(challenge):
    systems = [
        score(list(lines), ["1", "2", "3"], metric="Pearson", name=name)
        for name, lines in (("out-seed=1.tsv", "123"), ("out-seed=2.tsv", "132"), ("out-model=a.tsv", "321"))
    ]
    message = "training runs do not work with Pearson, which is not computed from contributions of single lines\n"
    with refused(message + "  use a mean loss, Accuracy, F1 or BLEU"):
        compare(systems, runs="seed")


def test_the_command(challenge, geval):
    run = partial(geval, "compare", "-t", "dev-0", "--samples", "100")
    status, out, err = run("--runs", "seed", "--no-worse-than", "0.5", "--detect", "0.1")
    head, *rows = out.splitlines()
    assert (status, head.split("  ")[0], "runs" in head, "not worse" in head) == (0, "system", True, True)
    assert "only differ" not in err
    assert re.match(r"c        2     +[0-9.]+ ± [0-9.]+  ", rows[0])
    assert "runs' mean ± sd: the mean of the runs' scores and their standard deviation.\n" in out
    crossed = "t test with crossed variances of training runs and lines (Obuchowski and Rockette), "
    for sentence in (
        f"p: of no difference from the baseline, two-sided; {crossed}",
        "Outputs that differ only in seed are training runs of one system. The statistics of each line, such as its "
        "loss, are averaged over the runs (the predictions are not). Intervals and tests generalise to new training "
        "runs and new lines.\n",
        " of the variance of the estimated difference is due to training runs; more lines do not reduce it.\n",
        "not worse: non-inferiority test with a margin of 0.5 % (one-sided p, 5 % level, not corrected for the number "
        "of systems).\n",
    ):
        assert sentence in out
    assert re.search(r"Minimum detectable difference: [\d.]+ % worse or [\d.]+ % better", out)
    assert "To detect a difference of 0.1 % in 80 % of cases takes about inf such lines (inf: only more" in out
    assert " yes (<0.0001) " in out
    systems = json.loads(run("--runs", "seed", "--format", "json")[1])["systems"]
    assert [system["runs"] for system in systems] == [2, 4, 3, 1]


def test_names_that_look_like_seeds_are_noted(challenge, geval):
    note = "geval: note: some outputs differ only in seed: if they are training runs of one system, use --runs seed\n"
    run = partial(geval, "compare", "-t", "dev-0", "--samples", "100", "out-model=a,seed=0.tsv")
    assert note in run("out-model=a,seed=1.tsv")[2]
    assert note not in run("out-model=b,seed=0.tsv")[2]


def test_an_output_without_a_seed_is_noted(challenge, geval):
    (challenge / "dev-0/out-model=fixed.tsv").write_text("a:0.2 :0.8\n" * 300)
    err = geval("compare", "-t", "dev-0", "--runs", "seed")[2]
    assert "geval: note: without seed in the name, and so not training runs: `out-model=fixed.tsv`\n" in err
    assert "unigram" not in err  # of geval baseline, whose training has no seed


@pytest.mark.parametrize(("words", "systems"), [
    ("a b", ["out-model=a.tsv", "out-model=b.tsv"]),
    ("a model=c --baseline unigram", ["out-model=a.tsv", "out-model=c.tsv", "out-model=unigram.tsv"]),
    ("out-model=a,seed=0.tsv out-model=a,seed=1.tsv unigram", ["out-model=a.tsv", "out-model=unigram.tsv"]),
])  # fmt: skip
def test_systems_are_named_as_a_baseline_is(words, systems, challenge, geval):
    status, out, err = geval("compare", "-t", "dev-0", *words.split(), "--runs", "seed", "--format", "json")
    assert status == 0, err
    assert (status, sorted(system["name"] for system in json.loads(out)["systems"])) == (0, systems)


def test_a_pattern_of_paths(challenge, geval):
    """What a researcher's own names mean."""
    for name in ALL.replace(" unigram", "").split():
        model, seed = name.split(",")
        folder = challenge / "runs" / model / seed
        folder.mkdir(parents=True)
        (challenge / f"dev-0/out-model={name}.tsv").rename(folder / "out.tsv")
    run = partial(geval, "compare", "-t", "dev-0", "--format", "json", "--runs", "runs/{model}/seed={seed}/out.tsv")
    status, out, _ = run()
    document = json.loads(out)
    assert (status, document["runs"]) == (0, "seed")
    runs = {system["name"]: system["runs"] for system in document["systems"]}
    assert runs == {"out-model=a.tsv": 3, "out-model=b.tsv": 4, "out-model=c.tsv": 2}
    names = [system["name"] for system in json.loads(run("c", "--baseline", "b")[1])["systems"]]
    assert names == ["out-model=c.tsv", "out-model=b.tsv"]
    assert geval("compare", "-t", "dev-0", "--runs", "no/{model}/{seed}.tsv") == (
        2, "", "geval: no file has a path of the pattern no/{model}/{seed}.tsv\n",
    )  # fmt: skip
    both = geval("compare", "-t", "dev-0", "-t", "dev-0", "--runs", "no/{model}/{seed}.tsv")
    assert both == (2, "", "geval: a pattern of --runs: only with a single test set\n")


def test_a_common_effect_of_the_seed_cancels(challenge, geval):
    rng = np.random.default_rng(3)
    losses = draw(rng, 3, 400, 0.0, difference=0.05) + rng.normal(0, 0.2, (3, 1))
    paired, apart = (compared_losses(losses, paired_runs=is_paired) for is_paired in (True, False))
    assert (paired.effect, paired.p_value < 0.05) == (apart.effect, True)
    assert apart.p_value > 0.5
    out = geval("compare", "-t", "dev-0", "a", "unigram", "--runs", "seed", "--paired-runs")
    assert out[0] == 2  # unigram has no runs
    out = geval(
        "compare", "-t", "dev-0", "out-model=a*", "out-model=b,seed=[012].tsv", "--runs", "seed", "--paired-runs"
    )
    assert "Runs are paired: equal seeds are compared, so what a seed does to all systems cancels.\n" in out[1]
    assert "; paired t test with crossed variances of training runs and lines (Obuchowski and Rockette), " in out[1]


def test_so_many_lines_detect_a_difference():
    """Of 2,000 sets of so many lines, the t test finds the difference in about 80 %."""
    rng = np.random.default_rng(2)
    statistics = list(map(column, rng.normal(9, 1, (2, 200))))
    compared = partial(ranked, LOG_LOSS, ["a", "b"], statistics, baseline=0, samples=1000, seed=1)
    (system,) = (one for one in compared(detect=0.3)[0] if one.name == "b")
    assert system.lines_needed == pytest.approx(200 * (system.least_detectable / 0.3) ** 2, rel=0.06)
    samples = rng.normal(0.3, math.sqrt(2), (2000, round(system.lines_needed)))
    assert (stats.ttest_1samp(samples, 0, axis=1).pvalue < 0.05).mean() == pytest.approx(0.8, abs=0.08)


def test_no_worse_is_half_of_an_equivalence_test():
    """The one-sided test at 5 % agrees with the 90 % interval by document, and with scipy's t test."""
    rng = np.random.default_rng(3)
    losses = rng.normal(9, 1, (2, 40)).repeat(2, axis=1)
    documents = np.arange(40).repeat(2)
    both = list(map(column, losses))
    compared = partial(ranked, LOG_LOSS, ["a", "b"], both, baseline=0, samples=9, seed=1, documents=documents)
    differences = losses[1, ::2] - losses[0, ::2]
    for margin in (0.1, 0.3, 1.0):
        (system,) = (one for one in compared(no_worse_than=margin)[0] if one.name == "b")
        expected = stats.ttest_1samp(differences, margin, alternative="less").pvalue
        assert system.p_no_worse == pytest.approx(expected)


@pytest.mark.long
@pytest.mark.parametrize("interaction", [0.0, 0.02])
@pytest.mark.parametrize("runs", [2, 3, 5])
def test_the_level_and_the_power_of_paired_runs(runs, interaction):
    """Where a seed has an effect on both systems, beside the test by line of one run each."""
    rng, found = np.random.default_rng(runs), np.zeros(3)
    difference = 2.5 * math.sqrt(0.2 / 200)
    for _ in range(2000):
        losses = draw(rng, runs, 200, interaction) + rng.normal(0, 0.1, (runs, 1))
        for n, shift in enumerate((0.0, difference)):
            losses[1] += shift
            found[n] += compared_losses(losses, paired_runs=True).p_value < 0.05
        found[2] += stats.ttest_rel(*losses[:, 0]).pvalue < 0.05
    level, power, by_line = found / 2000
    print(f"\n{runs} pairs, interaction {interaction}: level {level:.1%}, power {power:.1%}, by line {by_line:.1%}")
    assert level <= 0.065
    assert interaction or power >= by_line


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed_sd", [0.0, 0.02, 0.1])
@pytest.mark.parametrize("lines", [200, 2000, 10_000])
@pytest.mark.parametrize("runs", [2, 3, 5, 10])
def test_the_level_and_the_power(runs, lines, seed_sd):
    level, covered = share_rejected(1000, runs, lines, seed_sd)
    power, _ = share_rejected(200, runs, lines, seed_sd, difference=4 * (2 * seed_sd**2 / runs + 0.2 / lines) ** 0.5)
    print(f"\n{runs} runs, {lines} lines, sd {seed_sd}: level {level:.1%}, coverage {covered:.1%}, power {power:.0%}")
    assert level <= 0.065
    assert covered >= 0.935
    assert power >= (0.3 if runs == 2 else 0.6)


@pytest.mark.long
@pytest.mark.parametrize("runs", [2, 3, 5])
def test_the_level_by_document(runs):
    level, covered = share_rejected(1000, runs, 600, 0.05, documents=np.repeat(np.arange(20), 30))
    print(f"\n{runs} runs, 20 documents of 30 lines: level {level:.1%}, coverage {covered:.1%}")
    assert level <= 0.065
    assert covered >= 0.935
