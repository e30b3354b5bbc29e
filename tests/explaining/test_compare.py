"""Comparing outputs: what is computed, what is said, and what is refused."""

import gzip
import io
import math
import re
import sys
from array import array
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from raising import refused
from resampled import column, ranked

from geval_py import UsageError, compare, evaluate, score
from geval_py.explaining.statistics import optimism, sample_of
from geval_py.scoring.metrics.base import LineStatistics
from geval_py.scoring.metrics.registry import METRICS

INFINITE = pytest.mark.filterwarnings("ignore:.*lines is infinite")
WORDS = "abcdefghij"
LINES = 40


def guess(share):
    """Lines that give the expected word this share, and the others the rest."""
    return [f"{WORDS[n % 10]}:{share(n):.4f} :{1 - share(n):.4f}" for n in range(LINES)]


@pytest.fixture
def challenge(tmp_path, monkeypatch):
    (tmp_path / "config.txt").write_text("--metric PerplexityHashed --precision 2\n")
    (tmp_path / "dev-0").mkdir()
    (tmp_path / "dev-0/in.tsv").write_text("".join(f"{n}\n" for n in range(LINES)))
    (tmp_path / "dev-0/expected.tsv").write_text("".join(f"{WORDS[n % 10]}\n" for n in range(LINES)))
    write(tmp_path, "out-model=good.tsv", guess(lambda n: 0.8 + 0.1 * math.sin(n)))
    write(tmp_path, "out-model=one.tsv", guess(lambda n: 0.3 + 0.2 * math.sin(n)))
    write(tmp_path, "out-model=two.tsv", guess(lambda n: 0.3 + 0.2 * math.cos(3 * n)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder, name, lines):
    (folder / "dev-0" / name).write_text("".join(f"{line}\n" for line in lines))


def evaluations(challenge, *names, **options):
    return [evaluate(challenge, "dev-0", output=f"out-model={name}.tsv", **options) for name in names]


@pytest.fixture
def compared(geval):
    return partial(geval, "compare")


def test_a_comparison(challenge):
    one, two, good = evaluations(challenge, "one", "two", "good")
    result = compare([one, two, good], samples=2000, seed=3)
    assert (result.test, result.metric, result.unit, result.direction) == (
        "dev-0", "PerplexityHashed", "words", "lower",
    )  # fmt: skip
    assert (result.lines, result.compared, result.samples, result.seed) == (LINES, LINES, 2000, 3)
    assert result.baseline == "out-model=one.tsv"
    assert [system.score for system in result.systems] == sorted(e.score for e in (one, two, good))
    assert result.systems[0].name == "out-model=good.tsv"
    assert result.groups[0] == ("out-model=good.tsv",)
    assert set(result.groups[1]) == {"out-model=one.tsv", "out-model=two.tsv"}
    assert result.notes == ()


def test_a_system_against_the_baseline(challenge):
    one, good = evaluations(challenge, "one", "good")
    result = compare([one, good], samples=2000, seed=3)
    better, baseline = result.systems
    assert better.finite_score == better.score == good.score
    assert better.difference == good.score - one.score
    assert better.effect == pytest.approx(100 * (good.score / one.score - 1))
    assert better.effect_interval.low < better.effect < better.effect_interval.high < 0
    assert (result.method, result.effect_unit) == ("paired t test by line, corrected for skewness (Hall)", "%")
    assert 0 < better.p_value < 1e-8
    change = np.subtract(good.line_losses, one.line_losses)
    assert better.standard_error == pytest.approx(change.std(ddof=1) / math.sqrt(LINES))
    assert 10 < better.degrees_of_freedom <= LINES - 1
    assert better.least_detectable == pytest.approx(100 * math.expm1(2.9 * better.standard_error), rel=0.05)
    assert (better.won, better.lost, better.tied) == (1, 0, 0)
    assert baseline.finite_score == baseline.score == one.score
    assert [getattr(baseline, name) for name in ("difference", "effect", "p_value", "won")] == [None] * 4
    for system, evaluation in ((better, good), (baseline, one)):
        alone = evaluation.interval(samples=2000, seed=3)
        assert (system.interval.low, system.interval.high) == pytest.approx((alone.low, alone.high))


@pytest.mark.parametrize(("baseline", "name"), [
    *((baseline, "out-model=one.tsv") for baseline in (None, 0)),
    *((baseline, "out-model=good.tsv") for baseline in (
        1, "out-model=good.tsv", "{challenge}/dev-0/out-model=good.tsv", "{challenge}/./dev-0//out-model=good.tsv",
        "out-model=good", "model=good", "good", Path("out-model=good.tsv"), np.int64(1), np.array(1),
    )),
], ids=repr)  # fmt: skip
def test_the_baseline(baseline, name, challenge):
    baseline = baseline.format(challenge=challenge) if isinstance(baseline, str) else baseline
    result = compare(evaluations(challenge, "one", "good"), baseline=baseline, samples=10)
    assert result.baseline == name
    assert [system.name for system in result.systems if system.difference is None] == [name]


@pytest.mark.parametrize(("baseline", "name"), [
    ("lr=0.1,epochs=5", "out-lr=0.1,epochs=5.tsv"), ("0.1,5", "out-lr=0.1,epochs=5.tsv"),
    ("epochs=20", "out-lr=0.1,epochs=20.tsv"), ("20", "out-lr=0.1,epochs=20.tsv"),
    ("lr=0.2", "out-lr=0.2,epochs=5.tsv"), ("5", "out-5.tsv"),  # a file's name before a parameter
    ("out-5.tsv.gz", "out-5.tsv"), ("dev-0/out-5.tsv.gz", "out-5.tsv"),
])  # fmt: skip
def test_what_the_baseline_may_be_called(baseline, name, challenge):
    evaluations = several(challenge)
    assert compare(evaluations, baseline=baseline, samples=10).baseline == name
    with refused(f"`lr=0.1` names 2 of the outputs compared\n  {', '.join(SEVERAL[:2])}"):
        compare(evaluations, baseline="lr=0.1")
    with refused(  # only what names one output is advised: not epochs=5
        f"`epochs=50` is none of the outputs compared\n  did you mean epochs=20? there are {', '.join(SEVERAL)}, out-5.tsv"
    ):
        compare(evaluations, baseline="epochs=50")


@pytest.mark.parametrize(("names", "baseline"), [
    (["mix=a+b", "model=one", "model=two"], "out-model=one.tsv"),
    (["model=good,tuned=x", "mix=a"], "out-model=good,tuned=x.tsv"),  # none is left
    (["model=good", "model=rest", "model=unigram"], "out-model=unigram.tsv"),
    (["model=unigram,k=3", "model=good"], "out-model=unigram,k=3.tsv"),  # not a name of geval baseline
])  # fmt: skip
def test_the_default_is_the_best_baseline_or_the_first_of_its_own(names, baseline, challenge):
    for n, name in enumerate(names):
        write(challenge, f"out-{name}.tsv", guess(lambda line, n=n: 0.1 + 0.2 * n))
    outputs = [evaluate(challenge, "dev-0", output=f"out-{name}.tsv") for name in names]
    assert compare(outputs, samples=10).baseline == baseline


PSEUDO_VALUES = "of the lines' jackknife pseudo-values"


@pytest.mark.parametrize(("lines", "documents", "method"), [
    (LINES, None, f"paired t test {PSEUDO_VALUES}, corrected for skewness (Hall)"),
    (12, None, f"paired t test {PSEUDO_VALUES}, corrected for skewness (Hall)"),  # and no sign-flip test
    (LINES, [n // 4 for n in range(LINES)], f"cluster-robust paired t test (CR2) {PSEUDO_VALUES}"),
])  # fmt: skip
def test_the_method_of_a_metric_of_sums(tmp_path, lines, documents, method):
    (tmp_path / "dev-0").mkdir()
    write(tmp_path, "expected.tsv", ["a b c d e f"] * lines)
    for name, period in (("one", 2), ("two", 3)):
        sentences = ["a b c d e x" if n % period else "a b c d e f" for n in range(lines)]
        write(tmp_path, f"out-model={name}.tsv", sentences)
    outputs = evaluations(tmp_path, "one", "two", metric="BLEU")
    assert compare(outputs, documents=documents).method == method


SEVERAL = ["out-lr=0.1,epochs=5.tsv", "out-lr=0.1,epochs=20.tsv", "out-lr=0.2,epochs=5.tsv"]


def several(challenge):
    for name in SEVERAL:
        write(challenge, name, guess(lambda n: 0.5))
    text = (challenge / "dev-0" / SEVERAL[0]).read_bytes()
    (challenge / "dev-0/out-5.tsv.gz").write_bytes(gzip.compress(text))
    return [evaluate(".", "dev-0", output=name) for name in (*SEVERAL, "out-5.tsv")]


@INFINITE
def test_infinite_losses_are_counted_and_set_aside(challenge):
    lines = guess(lambda n: 0.3)
    lines[3] = lines[7] = "zebra:1"
    write(challenge, "out-model=two.tsv", lines)
    one, two, good = evaluations(challenge, "one", "two", "good")
    result = compare([one, two, good], samples=1000)
    assert (result.lines, result.compared) == (LINES, LINES - 2)
    assert [(system.name, system.infinite) for system in result.systems] == [
        ("out-model=good.tsv", 0), ("out-model=one.tsv", 0), ("out-model=two.tsv", 2),
    ]  # fmt: skip
    last = result.systems[-1]
    assert (last.score, last.interval.high) == (math.inf, math.inf)
    kept = [loss for n, loss in enumerate(two.line_losses) if n not in (3, 7)]
    assert last.finite_score == pytest.approx(math.exp(np.mean(kept)))
    base = [loss for n, loss in enumerate(one.line_losses) if n not in (3, 7)]
    assert np.mean(kept) < np.mean(base)
    gained = (last.difference, last.effect, last.effect_interval, last.p_value)
    assert gained == (None, None, None, None)  # it would gain by the lines on which it fails
    worse = compare([two, one, good], samples=1000).systems[1]
    assert (worse.name, worse.compared, worse.difference) == ("out-model=one.tsv", LINES - 2, None)
    pairs = list(zip(two.line_losses, one.line_losses, strict=True))
    won, lost = sum(loss < base for loss, base in pairs), sum(loss > base for loss, base in pairs)
    assert (last.won, last.lost, last.tied) == (won / LINES, lost / LINES, 1 / LINES)
    assert lost > 2
    assert last.p_infinite == pytest.approx(0.5)
    assert result.notes == ()


@INFINITE
def test_another_system_changes_nothing(challenge):
    """Two systems are compared on the lines that are finite in both, whatever a third one does."""
    lines = ["zebra:1" if n % 3 else line for n, line in enumerate(guess(lambda n: 0.3))]
    write(challenge, "out-model=two.tsv", lines)
    one, two, good = evaluations(challenge, "one", "two", "good")
    alone, beside = (compare(systems, samples=1000) for systems in ([one, good], [one, two, good]))
    assert [system for system in beside.systems if system.infinite == 0] == list(alone.systems)
    assert set(beside.groups) == {*alone.groups, ("out-model=two.tsv",)}
    assert beside.systems[-1].p_infinite < 1e-6


@INFINITE
def test_a_rare_infinite_loss_is_no_proof(challenge):
    write(challenge, "out-model=two.tsv", ["zebra:1", *guess(lambda n: 0.3 + 0.2 * math.sin(n))[1:]])
    result = compare(evaluations(challenge, "one", "two"))
    assert (result.systems[1].p_infinite, len(result.groups)) == (1, 1)


@INFINITE
def test_a_finite_loss_beats_an_infinite_one(challenge):
    write(challenge, "out-model=one.tsv", ["zebra:1"] * 30 + guess(lambda n: 0.2)[30:])
    write(challenge, "out-model=two.tsv", ["zebra:1"] * 10 + guess(lambda n: 0.1)[10:])
    result = compare(evaluations(challenge, "one", "two"), samples=100)
    one, two = sorted(result.systems, key=lambda system: system.name)
    assert (two.won, two.lost, two.tied) == (20 / 40, 10 / 40, 10 / 40)
    assert (one.infinite, two.infinite, two.compared, two.difference) == (30, 10, 10, None)
    assert (result.compared, one.won, one.compared, one.finite_score < two.finite_score) == (10, None, 10, True)
    assert result.groups == (("out-model=two.tsv",), ("out-model=one.tsv",))  # by the exact test of 20 lines to none


@INFINITE
def test_no_line_is_left(challenge):
    write(challenge, "out-model=two.tsv", ["zebra:1"] * LINES)
    result = compare(evaluations(challenge, "one", "two"), samples=10)
    assert (result.compared, result.groups) == (0, (("out-model=one.tsv",), ("out-model=two.tsv",)))
    assert result.notes == ("no line has a finite loss in two systems: there is no difference to test",)
    assert result.systems[0].finite_score == result.systems[0].score
    assert (result.systems[1].compared, result.systems[1].finite_score) == (0, None)
    for system in result.systems:
        assert system.difference is None
        assert system.p_value is None
    assert (result.systems[1].won, result.systems[1].lost, result.systems[1].tied) == (0, 1, 0)
    assert result.to_frame()["difference"].isna().all()
    table, legend = str(result).split("\n\n")
    head = "system score [95 %] infinite p infinite won lost tied"
    assert table.splitlines()[0].split() == head.split()
    assert [line.partition(" ")[0] for line in legend.splitlines()] == ["PerplexityHashed", "p", "won:", "Note:"]


@INFINITE
def test_outputs_that_are_the_same(challenge):
    one = evaluate(challenge, "dev-0", output="out-model=one.tsv", metric="WER")
    notes = compare([one, one], samples=10).notes
    assert f"{one.output.path} and {one.output.path} (2) have the same score on every line" in notes
    lines = ["zebra:1", *guess(lambda n: 0.3)[1:]]
    for name in ("out-a.tsv", "out-b\x1b.tsv", "out-c.tsv"):
        write(challenge, name, lines)
    outs = ["out-model=one.tsv", "out-a.tsv", "out-b\x1b.tsv", "out-c.tsv"]
    result = compare([evaluate(challenge, "dev-0", output=out) for out in outs], samples=1000)
    assert result.notes == (r"out-a.tsv, out-b\x1b.tsv and out-c.tsv have the same loss on every line",)


FEW = "{} lines are few: if rare lines have far greater losses, an interval contains the true score "
FEW += "in about 90 % of cases, not 95 %"
MEANS_LITTLE = "a test on {} is not reliable"


@pytest.mark.parametrize(("lines", "notes"), [
    (1, ("no interval can be computed from 1 line", MEANS_LITTLE.format("1 line"))),
    (19, (FEW.format(19), MEANS_LITTLE.format("19 lines"))), (20, (FEW.format(20),)), (39, (FEW.format(39),)), (40, ()),
])  # fmt: skip
def test_few_lines(lines, notes, challenge):
    for path in (challenge / "dev-0").iterdir():
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:lines]))
    result = compare(evaluations(challenge, "one", "two"), samples=100)
    assert result.notes == notes
    assert f" of {lines} line{'s' * (lines > 1)} of dev-0; the baseline is " in str(result)


def test_scores_beyond_the_range_have_no_difference():
    tables = [LineStatistics(columns=(array("d", [loss] * 20),)) for loss in (800.0, 900.0, 1.0)]
    systems, *_ = ranked(METRICS["PerplexityHashed"], "abc", tables, baseline=0, samples=99, seed=0)
    assert [system.name for system in systems] == ["c", "a", "b"]
    finite, _, infinite = systems
    assert (infinite.difference, infinite.effect > 1e40, infinite.p_value < 1e-6) == (None, True, True)
    assert (finite.difference, finite.effect) == (-math.inf, -100)


def test_to_frame(challenge):
    result = compare(evaluations(challenge, "one", "two", "good"), samples=1000)
    frame = result.to_frame()
    assert list(frame.columns) == [
        "system", "score", "low", "high", "infinite", "runs", "run_mean", "run_deviation", "compared", "finite_score",
        "difference", "effect", "effect_low", "effect_high", "p_value", "p_infinite", "standard_error",
        "degrees_of_freedom", "skewness", "won", "lost", "tied", "run_share", "least_detectable", "lines_needed",
        "p_no_worse", "groups", "output",
    ]  # fmt: skip
    assert list(frame["system"]) == [system.name for system in result.systems]
    assert list(frame["groups"]) == [(0,), (1,), (1,)]
    assert frame["difference"].isna().sum() == 1
    assert (frame["low"] < frame["score"]).all()


def test_a_comparison_is_printed_as_its_table(challenge, compared):
    result = compare(evaluations(challenge, "one", "good"), samples=10)
    _, out, err = compared("-t", "dev-0", "out-model=one.tsv", "out-model=good.tsv", "--samples", "10")
    assert f"{result}\n" == out + err.replace("geval: note:", "Note:").replace("\n", ".\n")
    assert repr(result) == str(result)


@pytest.mark.parametrize(("baseline", "message"), [
    ("out-model=on.tsv", "`out-model=on.tsv` is none of the outputs compared\n  did you mean out-model=one.tsv? there are out-model=one.tsv, out-model=good.tsv"),
    ("\x1b", "`\\x1b` is none of the outputs compared\n  there are out-model=one.tsv, out-model=good.tsv"),
    (2, "there is no output 2: they are numbered from 0 to 1"),
    (-1, "there is no output -1: they are numbered from 0 to 1"),
    (np.int64(2), "there is no output 2: they are numbered from 0 to 1"),
    (True, "the baseline is an output's name or its index, not True"),
    (1.0, "the baseline is an output's name or its index, not 1.0"),
    (np.array([0, 1]), "the baseline is an output's name or its index, not array([0, 1])"),
    (b"out.tsv", "the baseline is an output's name or its index, not b'out.tsv'"),
], ids=repr)  # fmt: skip
def test_an_unknown_baseline(baseline, message, challenge):
    with refused(message):
        compare(evaluations(challenge, "one", "good"), baseline=baseline)


def test_different_metrics_or_answers_are_not_compared(challenge):
    pair = evaluations(challenge, "one") + evaluations(challenge, "good", metric="LogLossHashed")
    folder = challenge / "dev-0"
    message = f"`{folder}/out-model=one.tsv` and `{folder}/out-model=good.tsv` were scored with different metrics: "
    with refused(message + "PerplexityHashed and LogLossHashed"):
        compare(pair)
    pair = [
        score([":1"] * 2, [*answers], metric="LogLossHashed", name=name)
        for name, answers in (("x", "aa"), ("y", "ac"))
    ]
    with refused("`x` and `y` were scored with different answers: 'a' and 'c' on line 2"):
        compare(pair)


def systems_in(text):
    return [line.split()[0] for line in text.split("\n\n")[0].splitlines()[1:]]


@pytest.mark.parametrize(("words", "systems"), [
    ("", ["good", "one", "two"]), ("out-model=one.tsv dev-0/out-model=good.tsv", ["good", "one"]),
    ("other/out.tsv out-model=one.tsv", ["out", "one"]), ("other out-model=one.tsv", ["out", "x", "one"]),
    ("other other/out.tsv", ["out", "x"]),
])  # fmt: skip
def test_outputs(words, systems, challenge, compared):
    (challenge / "other").mkdir()
    text = (challenge / "dev-0/out-model=good.tsv").read_text()
    (challenge / "other/out.tsv").write_text(text)
    (challenge / "other/out-x.tsv").write_text(text.replace(":0.8", ":0.7"))
    status, out, err = compared(*words.split(), "-t", "dev-0", "--samples", "100")
    assert (status, systems_in(out), err) == (0, systems, "")


def test_config_txt_is_honoured(challenge, compared):
    (challenge / "config.txt").write_text("--metric LogLossHashed8 -m Accuracy -t dev-0 --seed 7 -o x.tsv")
    _, out, _ = compared("--samples", "100")
    assert "\nLogLossHashed8 (nats, lower is better) of 40 lines of dev-0; " in out
    _, out, _ = compared("--samples", "100", "--seed", "0", "-m", "BLEU")
    assert "\nBLEU (share, higher is better) of 40 lines of dev-0; " in out
    spearman = compared("--samples", "100", "-m", "NMI")[1]
    test = "paired t test with a bootstrap standard error (100 resamples of the lines, seed 7)"
    assert f"\np: of no difference from the baseline, two-sided; {test}.\n" in spearman
    assert "won" not in spearman  # since no line has an NMI


def test_infinite_losses_in_the_table(challenge, compared):
    lines = guess(lambda n: 0.3)
    lines[3] = "zebra:1"
    write(challenge, "out-model=two.tsv", lines)
    _, out, err = compared("-t", "dev-0", "--samples", "100")
    assert out.splitlines()[0].split("  ")[:1] == ["system"]
    columns = ["  infinite", "p infinite", "compared", "score there"]
    assert re.findall("|".join(columns), out.splitlines()[0]) == columns
    assert re.split(r"  +", out.splitlines()[3])[:6] == [
        "two", "Infinity [3.326, Infinity]", "1", "1.0000", "39", "3.326",
    ]  # fmt: skip
    legend = (
        "Differences, their tests and score there are of the lines compared, which are finite in both outputs; none is "
        "shown if it favours the output with more infinite losses or scores. All other columns are of all 40 lines."
    )
    sign_test = "p infinite: exact sign test of the numbers of infinite losses or scores. Groups allow for it, too."
    assert f"\n{sign_test}\n{legend}\n" in out
    assert f"\n{legend}\n" in compared("-t", "dev-0", "--samples", "100", "--format", "markdown")[1]
    latex = compared("-t", "dev-0", "--samples", "100", "--format", "latex")[1]
    assert f"\n% {legend}\n" in latex
    assert "\n% p infinite" not in latex
    assert r"two & $\infty$ [3.326, $\infty$] & 1 & $" in latex
    left_out = "p infinite, compared, score there, won, lost, tied"
    assert f"\n% Left out, since a page is narrow: {left_out}. CSV and JSON have them.\n" in latex
    assert err == ("geval: note: `./dev-0/out-model=two.tsv`: the loss of 1 of 40 lines is infinite\n")


@INFINITE
@pytest.mark.filterwarnings("ignore:.*not in a vocabulary", "ignore:.*the lines are shifted by 1")
@pytest.mark.parametrize("metric", ["LogLoss", "PerplexityHashed", "BLEU", "NMI"])
def test_figures_are_python_numbers(metric, challenge):
    write(challenge, "out-model=two.tsv", [*guess(lambda n: 0.3)[1:], "zebra:1"])
    comparison = compare(evaluations(challenge, "good", "two", metric=metric), samples=100, no_worse_than=5, detect=5)
    figures = [value for system in comparison.systems for value in vars(system).values()]
    assert not [value for value in figures if isinstance(value, np.generic)]


@pytest.mark.parametrize(("metric", "documents", "test"), [
    ("PerplexityHashed", None, "paired t test by line, corrected for skewness (Hall), 39 degrees of freedom"),
    ("PerplexityHashed", "1", "cluster-robust paired t test (CR2), 9.0 degrees of freedom"),
    ("Accuracy", None, "exact McNemar test (binomial test of the lines that only one of the two gets right)"),
])  # fmt: skip
def test_the_test_that_the_legend_names(metric, documents, test, challenge, compared):
    (challenge / "dev-0/in.tsv").write_text("".join(f"{n // 4}\n" for n in range(LINES)))
    words = ["--no-documents"] if documents is None else ["--documents", documents]
    out = compared("-t", "dev-0", "-m", metric, *words, "good", "one")[1]
    assert f"\np: of no difference from the baseline, two-sided; {test}.\n" in out


@INFINITE
def test_which_scores_are_the_best(challenge):
    """Each of equal ones, and no infinite one."""
    outs = ["out-model=good.tsv", "out-model=good.tsv", "out-model=one.tsv"]
    comparison = compare([evaluate(challenge, "dev-0", output=out) for out in outs], samples=100)
    assert comparison.to_latex().count(r"\textbf") == 2
    for name in ("one", "two"):
        write(challenge, f"out-model={name}.tsv", ["zebra:1"] * LINES)
    assert r"\textbf" not in compare(evaluations(challenge, "one", "two"), samples=100).to_latex()


@pytest.mark.parametrize(("p", "stars"), [
    (0.05, ""), (0.0499, "*"), (0.01, "*"), (0.0099, "**"), (0.001, "**"), (0.0009, "***"), (None, ""),
])  # fmt: skip
def test_stars_and_the_best_score(p, stars, challenge):
    comparison = compare(evaluations(challenge, "one", "two", "good"), baseline="one", samples=100)
    comparison = replace(comparison, systems=tuple(replace(of, p_value=p) for of in comparison.systems))
    for text in (comparison.to_markdown(), comparison.to_latex()):
        rows = [row for row in text.splitlines() if "1.250" in row or "3.75" in row]
        assert [r"\textbf{1.250" in row or "| **1.250" in row for row in rows] == [True, False]
        assert ["".join(re.findall(r"\\[*]|[*](?=[*]*}\$)", row)).replace("\\", "") for row in rows] == [stars] * 2
    plain = [str(comparison), "".join(comparison.html())]
    assert not any("*" in text or "bold" in text for text in plain)


def test_names_of_ones_own(challenge, compared):
    words = ["-t", "dev-0", "--samples", "100", "--baseline", "one", "--name", "one=Base_line", "--name"]
    words += ["out-model=good.tsv=Ours (v2)"]
    text, markdown, tex, page = (compared(*words, "--format", of)[1] for of in ("text", "markdown", "latex", "html"))
    rows = [line.split("  ")[0] for line in text.splitlines()[1:4]]
    assert (rows[0], sorted(rows[1:])) == ("Ours (v2)", ["Base_line", "two"])
    assert "; the baseline is Base_line.\n" in text
    assert "| Ours (v2) |" in markdown
    assert "| Base\\_line |" in markdown
    assert "\nBase\\_line & " in tex
    assert "% out-model=good.tsv: metric:" in tex
    assert "<td>Ours (v2)</td>" in page
    for form in ("csv", "json"):
        assert compared(*words, "--format", form) == compared(*words[:-4], "--format", form)


def test_latex_in_python(challenge):
    comparison = compare(evaluations(challenge, "one", "two", "good"), samples=100)
    assert comparison.to_latex() == "".join(comparison.latex())
    written = comparison.to_latex(caption="50 %", label="tab:a", names={"good": "Ours", "out-model=one.tsv": "{"})
    assert "\\caption{50 \\%}\n\\label{tab:a}\n" in written
    assert "\nOurs & " in written
    assert "\n\\{ & " in written
    assert "\n\\begin{minipage}{\\linewidth}\n\\footnotesize\nPerplexityHashed (words, lower is better)" in written
    with pytest.raises(UsageError, match=r"^`best` is none of the outputs compared\n"):
        comparison.to_latex(names={"best": "A"})
    with pytest.raises(UsageError, match=r"^'a}b' is not a label of letters, digits and "):
        comparison.to_latex(label="a}b")


ERRORS = [
    (["out-model=one.tsv"], 2, "a comparison takes two outputs or more; there is 1"),
    (["empty", "out-model=one.tsv"], 1, "No file with the test results: `empty/out.tsv`\n  `empty` holds no file"),
    (["-m", "{LogLoss,Perplexity}Hashed"], 2, "geval compare takes one metric; 2 were given"),
    (["-m", "{LogLoss,Perplexity}Hashed", "-m", "Accuracy"], 2, "geval compare takes one metric; 3 were given"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "status", "message"), ERRORS, ids=[" ".join(words) for words, *_ in ERRORS])
def test_errors(words, status, message, challenge, compared):
    (challenge / "empty").mkdir()
    assert compared("-t", "dev-0", *words) == (status, "", f"geval: {message}\n")


def test_digits_are_for_people_and_those_of_config_txt_for_scores(challenge, compared):
    words = ("-t", "dev-0", "--samples", "100")
    for form in ("json", "csv"):
        assert compared(*words, "--format", form, "-p", "3") == compared(*words, "--format", form)
    plain, config = compared(*words), challenge / "config.txt"
    config.write_text(f"{config.read_text().strip()} --precision 7\n")
    assert compared(*words) == plain


def test_answers_on_standard_input_are_of_several_outputs(challenge, compared, monkeypatch):
    answers = (challenge / "dev-0/expected.tsv").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(answers)))
    words = ("-t", "dev-0", "--samples", "50")
    _, out, err = compared(*words, "-e", "-")
    assert (out.replace("lines of -;", "lines of dev-0;"), err) == compared(*words)[1:]


def test_few_lines_that_differ_are_noted(challenge):
    write(challenge, "out-model=near.tsv", guess(lambda n: 0.3 + 0.2 * math.sin(n) + 0.1 * (n < 3)))
    assert compare(evaluations(challenge, "one", "near"), samples=10).notes == (
        "out-model=near.tsv and the baseline differ on 3 lines: the interval of the difference may be too narrow",
    )


@pytest.mark.parametrize(("lines", "great", "is_noted"), [(300, 300.0, True), (300, 2.0, False), (600, 300.0, False)])
def test_a_hundredth_of_the_lines_with_most_of_the_loss_is_noted(lines, great, is_noted, tmp_path):
    losses = [0.5] * (lines - 3) + [great] * 3
    outputs = [[{"the": math.exp(-loss), "a": 1 - math.exp(-loss)} for loss in own] for own in (losses, losses[::-1])]
    one, two = (score(output, ["the"] * lines, metric="LogLoss", vocabulary=["the"]) for output in outputs)
    noted = any(f"{lines} lines are few" in note for note in compare(one, two, samples=10).notes)
    assert noted == is_noted


LOG_LOSS = METRICS["LogLossHashed"]
TRIALS = 2000


@pytest.mark.long
@pytest.mark.parametrize(("systems", "families"), [(3, None), (20, None), (20, 2)])
def test_the_best_of_equal_systems(systems, families):
    """On 300 lines of sd 0.5, beside what they have in common; two families of near copies are hardly two tries."""
    rng = np.random.default_rng(systems)
    estimates, gains = [], []
    for _ in range(TRIALS):
        own = rng.normal(0, 0.1 if families else 0.5, (300, systems))
        if families:
            own += rng.normal(0, 0.5, (300, families)).repeat(systems // families, axis=1)
        losses = rng.exponential(2, (300, 1)) + 5 + own
        estimates.append(optimism(sample_of(LOG_LOSS, list(map(column, losses.T)))))
        gains.append(losses.mean() - losses.mean(axis=0).min())
    print(f"\n{systems}, {families}: best {np.mean(gains):.4f} better, expected {np.mean(estimates):.4f} of {TRIALS}")
    assert np.mean(estimates) == pytest.approx(np.mean(gains), rel=4 * np.std(gains) / np.mean(gains) / TRIALS**0.5)


def test_the_best_of_systems_that_share_documents():
    losses = np.random.default_rng(2).normal(5, 0.5, (60, 4))
    single = optimism(sample_of(LOG_LOSS, list(map(column, losses.T))))
    documents = np.repeat(np.arange(60), 10)
    repeated = sample_of(LOG_LOSS, list(map(column, losses.repeat(10, axis=0).T)), documents)
    assert optimism(repeated) == pytest.approx(single)


def test_tries_that_are_not_here():
    rng = np.random.default_rng(9)
    losses = 5 + rng.exponential(2, (300, 1)) + rng.normal(0, 0.5, (300, 20))
    sample = sample_of(LOG_LOSS, list(map(column, losses.T)))
    best = [-rng.normal(0, 1, (4000, tries)).min(axis=1).mean() for tries in (20, 60)]
    assert optimism(sample, 60) / optimism(sample) == pytest.approx(best[1] / best[0], rel=0.03)


def test_what_has_no_best_of_many():
    two = [column([1.0, 2.0]), column([2.0, 1.0])]
    assert optimism(sample_of(LOG_LOSS, two)) is None
    assert optimism(sample_of(LOG_LOSS, [column([1.0, math.inf]), column([math.inf, 1.0]), column([1, 1])])) is None
    assert optimism(sample_of(METRICS["MacroAvg/Likelihood"], [column([1.0, 2.0], ["a", "b"])] * 3)) is None


@pytest.mark.filterwarnings("ignore:.*not in a vocabulary")
def test_the_table_says_how_much_of_it_is_chance():
    rng = np.random.default_rng(5)
    outputs = [
        score([{"the": p} for p in rng.uniform(0.3, 0.5, 100)], ["the"] * 100, metric="LogLoss") for _ in range(5)
    ]
    compared = compare(outputs, tries=60)
    assert (compared.tries, compared.optimism > compare(outputs).optimism) == (60, True)
    best = "best of 60: if all 60 were equally good and as correlated as these, the best would on average score "
    assert re.search(best + r"0\.\d+ nats better than their mean \(selection by chance\)", str(compared))
    with refused("4 tries are fewer than the 5 systems that are compared"):
        compare(outputs, tries=4)
    with refused("the best of many tries is estimated only for a mean loss, without training runs"):
        compare([score(["the"] * 5, ["the"] * 5, metric="BLEU")] * 3, tries=60)
