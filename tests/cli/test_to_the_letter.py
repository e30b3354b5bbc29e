"""Command lines on which geval-py answered otherwise than GEval without saying so, and what is ours on purpose."""

import json
import lzma
import math
import re
from pathlib import Path

import pytest

import geval_py
from geval_py.errors import UsageError
from geval_py.scoring.evaluate import find_metric
from geval_py.scoring.metrics.classes import harmonic
from geval_py.scoring.metrics.registry import geval_name

DATA = Path(__file__).parent.parent / "data" / "undeclared.jsonl.xz"  # GEval 1.42.2: tests/data/README.md
RECORDS = [json.loads(line) for line in lzma.open(DATA, "rt", encoding="utf-8")]

# GEval scores no line, as each of these features is on no line; docs/geval.md says that this is an error.
OURS = {"BLEU:f<in[2]:,>", "BLEU:f<in[1]:(cold)>", "WER:f<in[1]:river>"}


@pytest.fixture
def geval(geval, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *words, **files: lay(tmp_path, files) or geval(*words)


def lay(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")


def first_line(err):
    return next((line for line in err.splitlines() if line.strip() and not line.startswith("geval: note")), "")


def is_same(text, other):
    """Whether texts are the same, but for the last digits of numbers."""
    words, others = (re.split(r"([ \t\n])", of) for of in (text, other))
    return len(words) == len(others) and all(map(is_same_word, words, others))


def is_same_word(word, other):
    try:
        return word == other or math.isclose(float(word), float(other), rel_tol=1e-9, abs_tol=1e-12)
    except ValueError:
        return False


@pytest.mark.parametrize("record", RECORDS, ids=[f"{n} {record['kind']}" for n, record in enumerate(RECORDS)])
def test_geval_answers_the_same(record, geval, tmp_path):
    lay(tmp_path, record["files"])
    status, out, err = geval(*record["args"])
    if set(record["args"]) & OURS:
        assert (record["status"], record["stdout"]) in {(0, "1.0\n"), (0, "0.0\n")}  # of no line
        assert (status, out) == (2, "")
        assert first_line(err).startswith("geval: No item has the feature `in[")
    elif record["status"]:
        assert status != 0
        assert first_line(err).startswith(first_line(record["stderr"]))
    elif "listing" in record:
        written = {path.relative_to(tmp_path).as_posix(): path for path in tmp_path.rglob("*") if path.is_file()}
        assert sorted(written) == record["listing"]
        for name, text in record["config"].items():
            assert written[name].read_text().split() == text.split()
    else:
        assert status == 0
        assert out == record["stdout"] if record.get("exact") else is_same(record["stdout"], out)


@pytest.mark.slow
def test_a_surplus_line_has_no_answer(geval):
    """GEval.Core.checkStep of GEval 1.42.2; for whole sets, a surplus line that is blank may be malformed there."""
    cases = {}
    for name in ("text", "annotation", "matched"):
        for line in lzma.open(DATA.with_name(f"{name}-metrics.jsonl.xz"), "rt", encoding="utf-8"):
            case = json.loads(line)
            if "value" in case:
                cases[case["metric"]] = case
    for metric in ("LogLossHashed", "CrossEntropyToNormsHashed", "RankCorrelation"):
        cases[metric] = {"expected": ["a:1"], "output": ["a:1"]}
    message = "Too many lines in the output file: `o.tsv` has {}, `e.tsv` has {}\n"
    for metric, case in cases.items():
        answers, outputs = case["expected"], case["output"]
        for surplus, *mode in ((outputs[-1],), (outputs[-1], "-l"), ("", "-l")):
            sides = {"e": answers, "o": [*outputs, surplus], "i": case.get("input") or answers}
            files = {f"{side}.tsv": "".join(f"{line}\n" for line in lines) for side, lines in sides.items()}
            run = geval("-o", "o.tsv", "-e", "e.tsv", "-i", "i.tsv", "--metric", metric, *mode, **files)
            assert run == (1, "", f"geval: {message.format(len(answers) + 1, len(answers))}"), metric


# F-scores: (1 + b²) · p · (r / (b²p + r)), GEval.PrecisionRecall.weightedHarmonicMean of GEval 1.42.2


def test_the_brackets_of_an_f_score_are_gevals(geval):
    """Of a precision of 3/5 and a recall of 1, other brackets make 0.7499999999999999, which is rounded to 0.7."""
    assert harmonic(1, 0.6, 1.0) == 0.75
    files = {"e.tsv": "1\n1\n1\n0\n0\n", "o.tsv": "1\n1\n1\n1\n1\n"}
    assert geval("-o", "o.tsv", "-e", "e.tsv", "--metric", "F1", "-p", "1", **files) == (0, "0.8\n", "")


# Names for --select-metric: evaluationSchemeName of GEval.EvaluationScheme shows β as a double

NAMES = {
    "F1": "F1.0", "F0.05": "F5.0e-2", "F0": "F0.0", "Macro-F2": "Macro-F2.0", "MultiLabel-F0.25": "MultiLabel-F0.25",
    "Mean/MultiLabel-F1": "Mean/MultiLabel-F1.0", "Probabilistic-MultiLabel-F1": "Probabilistic-MultiLabel-F1.0",
    "MultiLabel-LogLoss": "MultiLabel-Logloss", "NDCG@3": "NDCG@3", "BIO-F1": "BIO-F1",
    "BIO-Weighted-F1": "BIO-Weighted-F1", "Probabilistic-Soft2D-F1": "Probabilistic-Soft2D-F1.0",
    "Improvement@0": "Improvement@0.0", "LogLossHashed8": "LogLossHashed8", "Fuzzy/Lower/Accuracy": "Fuzzy/Accuracy",
    "MacroAvg/Lower/Fuzzy/Smart/Accuracy": "MacroAvg/Lower/Fuzzy/Accuracy", "MacroAvg/F2": "MacroAvg/F2.0",
    "Mean/Smart/MultiLabel-F0.5": "Mean/Smart/MultiLabel-F0.5",
    "CutLabel/CutLabel/MultiLabel-F2": "CutLabel/CutLabel/MultiLabel-F2.0", "MacroAvg/SMAPE": "MacroAvg/SMAPE",
}  # fmt: skip


@pytest.mark.parametrize(("name", "theirs"), NAMES.items())
def test_a_metric_is_selected_by_gevals_name_and_by_ours(name, theirs, tmp_path):
    assert geval_name(name) == theirs
    task = geval_py.reading.config.Task(metrics=("Accuracy", name, f"{name}:lP<02>"))
    for asked in (name, theirs, f"{name}:lP<2>", f"{theirs}:lP<2>"):
        selected = geval_py.scoring.evaluate.select_schemes(task.replace(select_metrics=(asked,)))
        assert [of.metric for of, _ in selected] == [name]
        assert [of.text for of, _ in selected] == [f"{name}:lP<02>" if ":" in asked else name]


# Prefixes: GEval.Metric and GEval.Core of GEval 1.42.2

MATCHING = "Matching specification cannot be applied to the {} metric"
MEAN = "Mean/ meta-metric defined only for MultiLabel-F1, WER, CER, WAR and CAR for the time being"
MACRO = "MacroAvg/ meta-metric defined only for Likelihood, Accuracy, FMeasure, RMSE, MSE, MAE, SMAPE"
UNKNOWN = "Unknown or broken metric definition: {}"
PREFIXES = {
    "Lower/F1": MATCHING.format("F1.0"), "Fuzzy/Lower/BLEU": MATCHING.format("BLEU"),
    "Mean/Smart/MultiLabel-LogLoss": MATCHING.format("MultiLabel-Logloss"),
    "Lower/LogLossHashed8": MATCHING.format("LogLossHashed8"),
    "Mean/LogLossHashed": MEAN, "Mean/F1": MEAN, "MacroAvg/MultiLabel-F1": MACRO, "MacroAvg/Mean/WER": MACRO,
    "Mean/Lower/Accuracy": MEAN, "Lower/Foo": UNKNOWN.format("Lower/Foo"), "Foo/WER": UNKNOWN.format("Foo/WER"),
    "NDCG@0": UNKNOWN.format("NDCG@0"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "sentence"), PREFIXES.items())
def test_a_prefix_that_is_not_for_a_metric(name, sentence):
    with pytest.raises(UsageError) as caught:
        find_metric(name)
    first, hint = str(caught.value).split("\n")
    assert first == sentence
    assert hint.startswith("  ")


def test_a_filter_looks_at_tokens_of_the_input(geval):
    files = {
        "dev-0/in.tsv": "(Cold)\tx\nhot\t(Cold)\n", "dev-0/expected.tsv": "a b\nc d\n", "dev-0/out.tsv": "a b\nc x\n",
    }  # fmt: skip
    words = ("-t", "dev-0", "-T", "13a", "--metric")
    assert geval(*words, "WER:f<in[1]:Cold>", **files) == (0, "0.0\n", "")
    assert geval(*words, "WER:f<in[2]:(>") == (0, "0.5\n", "")
    assert geval(*words, "WER:lf<in[1]:Cold>")[:2] == (0, "0.0\n")
    assert "No item has the feature" in geval(*words, "WER:lf<in[1]:cold>")[2]
    assert "No item has the feature" in geval(*words, "WER:f<in[1]:(Cold)>")[2]
    assert geval("-t", "dev-0", "--metric", "WER:f<in[1]:(Cold)>") == (0, "0.0\n", "")


def test_preprocessed_input_is_shown_as_tokens(geval):
    """LineByLine.gevalLineByLineSource of GEval 1.42.2; the other metric's lines are scored as they are."""
    files = {"dev-0/in.tsv": "A,\tb.\n", "dev-0/expected.tsv": "1.5\n", "dev-0/out.tsv": "2,\n"}
    words = ("-t", "dev-0", "-l", "--show-preprocessed")
    assert geval(*words, "-T", "13a", "--metric", "WER:l", **files)[1] == "2.0\tA ,<tab>b .\t1.5\t2 ,\n"
    assert geval(*words, "--metric", "WER:l")[1] == "1.0\tA,<tab>b.\t1.5\t2,\n"
    assert geval("-t", "dev-0", "-l", "-T", "13a", "--metric", "WER:l")[1] == "2.0\tA,<tab>b.\t1.5\t2,\n"
    (Path("dev-0") / "out.tsv").write_text("2.0\n")
    assert geval(*words, "-T", "13a", "--metric", "MSE")[1] == "0.25\tA ,<tab>b .\t1.5\t2.0\n"


NUMBERS = {
    "dev-0/in.tsv": "a\nb\nc\n", "dev-0/expected.tsv": "1\n2\n4\n", "dev-0/out-a.tsv": "1\n3\n5\n",
    "dev-0/out-b.tsv": "1\n2\n4\n",
}  # fmt: skip


@pytest.mark.parametrize("metric", ["Pearson", "Spearman", "NMI"])
def test_lines_without_a_score_differ(metric, geval):
    words = ("-t", "dev-0", "-o", "out-a.tsv", "--metric", metric)
    lines = "NaN\tb\t2\t2\t3\nNaN\tc\t4\t4\t5\n"
    for order in ((), ("-s",), ("-r",)):
        assert geval(*words, "--diff", "out-b.tsv", *order, **NUMBERS) == (0, lines, "")
    shown = json.loads(geval(*words, "--diff", "out-b.tsv", "--format", "json")[1])
    assert [line["difference"] for line in shown["lines"]] == ["NaN", "NaN"]
    oracle = geval(*words, "--oracle-item-based", "--alt-out-file", "out-b.tsv")
    assert oracle == (0, NUMBERS["dev-0/out-a.tsv"], "")


def test_lines_without_a_score_are_the_last(geval):
    files = {"dev-0/in.tsv": "x\ny\nz\n", "dev-0/expected.tsv": "a:1\n\nb:3\n", "dev-0/out.tsv": "a:1\n\nb:4\n"}
    words = ("-t", "dev-0", "--metric", "SegmentAccuracy", "-l")
    lines = ["1.0\tx\ta:1\ta:1\n", "0.0\tz\tb:3\tb:4\n", "NaN\ty\t\t\n"]
    assert geval(*words, "-r", **files) == (0, "".join(lines), "")
    assert geval(*words, "-s") == (0, "".join([lines[1], lines[0], lines[2]]), "")


def test_features_of_lines_without_a_score(geval):
    words = ("-t", "dev-0", "-o", "out-a.tsv", "--metric", "NMI")
    for mode in (("-w",), ("--most-worsening-features", "out-b.tsv")):
        status, out, err = geval(*words, *mode, **NUMBERS)
        assert (status, out) == (0, "")
        notes = "geval: note: NMI has no value for 3 of 3 lines alone: left out\ngeval: note: no feature is shown: "
        assert err == notes + "none is on at least 1 of 0 lines, and missing from as many\n"


# What is ours on purpose: docs/geval.md says so


def test_points_beyond_half_a_circumference(geval):
    """GEval 1.42.2: 2 · asin(√1.0625) is NaN."""
    files = {"dev-0/expected.tsv": "0\t0\n", "dev-0/out.tsv": "180\t60\n"}
    status, out, _ = geval("-t", "dev-0", "--metric", "Haversine", **files)
    assert (status, float(out)) == (0, pytest.approx(math.pi * 6371))


def test_an_f_score_of_zero_is_the_precision(geval):
    """As in GEval, whose formula has no recall then; a public challenge has such a metric (kleister-nda)."""
    files = {"e.tsv": "a b\n\nc\n", "o.tsv": "a c d\n\nc\n"}
    assert geval("-o", "o.tsv", "-e", "e.tsv", "--metric", "MultiLabel-F0", "-p", "4", **files) == (0, "0.5000\n", "")
    of_classes = {"e.tsv": "1\n1\n0\n", "o.tsv": "1\n0\n1\n"}
    assert geval("-o", "o.tsv", "-e", "e.tsv", "--metric", "F0", "-p", "4", **of_classes) == (0, "0.5000\n", "")
    nothing_right = {"e.tsv": "1\n0\n", "o.tsv": "0\n1\n"}
    assert geval("-o", "o.tsv", "-e", "e.tsv", "--metric", "F0", "-p", "4", **nothing_right) == (0, "0.0000\n", "")
