"""The page of a report on metrics of other tasks: no empty panel, and what is better is said to be."""

import math
import re
from types import SimpleNamespace

import pytest
from scorers import perfect_line
from translations import LINES

from geval_py import evaluate, score
from geval_py.explaining.significance import MIN_LINES
from geval_py.reports import panels
from geval_py.reports.charts import GOOD, SOFT, ChartRow
from geval_py.reports.page import page
from geval_py.reports.report import Report
from geval_py.scoring.metrics.registry import METRICS

RULED_WITHOUT_LINES = {"NMI", "Pearson", "Spearman"}
OF_EACH_KIND = {"Accuracy", "MultiLabel-F1", "Spearman", "RMSE", "WER", "MAP", "ChoiceLogLoss"}


def panels_of(text):
    return re.findall(r'<article class="card" id="([^"]+)".*?</article>', text, re.DOTALL)


def sentences(text, key):
    (card,) = re.findall(rf'<article class="card" id="{key}".*?</article>', text, re.DOTALL)
    return re.findall(r"<p>([^<]+)</p>", card)


@pytest.mark.parametrize(("metric", "direction"), [
    ("GLEU", "higher"), pytest.param("chrF", "higher", marks=pytest.mark.long),
    ("TER", "lower"), pytest.param("WER", "lower", marks=pytest.mark.long),
])  # fmt: skip
def test_better_is_better_in_either_direction(page_of, metric, direction):
    text = page_of(metric, "middling", "good", "bad")
    assert f"{metric}, {direction} is better" in text
    (verdict, *_) = sentences(text, "comparison")
    assert re.match(r"good is better by [0-9.]+", verdict)
    assert "bad is worse by" in verdict
    keys = [float(key) for key in re.findall(r'data-key="([^"]+)"', text)]
    assert len(keys) == LINES
    assert keys == sorted(keys, reverse=direction == "lower")
    order = "descending" if direction == "lower" else "ascending"
    assert re.findall(r'<th[^>]* aria-sort="(\w+)"', text) == [order]
    (culprit, *_) = sentences(page_of(metric, "bad"), "culprits")
    mean, every = map(float, re.search(r"mean score of ([\d.]+); that of all lines is ([\d.]+)\.", culprit).groups())
    assert (mean > every) == (direction == "lower")


def test_the_score_of_a_group_is_that_of_its_lines(sayings, made):
    report = made("BLEU", "middling")
    rows = report.rows(dict(report.columns())["Document"])
    assert [(row.label, row.lines) for row in rows] == [("d0", 20), ("d1", 20), ("d2", 20)]
    alone = evaluate(sayings, "dev-0", output="out-middling.tsv", metric="BLEU:f<in<Document>:d1>").score
    assert rows[1].value == alone
    assert rows[1].low <= alone <= rows[1].high


def test_what_is_best_and_worst_is_said(page_of):
    text = page_of("TER", "bad")
    assert sentences(text, "quality")[-1].endswith("Of TER, lower is better: the best is 0.")
    assert sentences(text, "column-1")[0] == "TER is 24.8 in each part."


OTHERS = [name for name, metric in METRICS.items() if not metric.is_of_words]
MARKS = {name: () if name in OF_EACH_KIND else pytest.mark.long for name in OTHERS}


@pytest.mark.slow
@pytest.mark.parametrize("metric", [pytest.param(name, marks=MARKS[name]) for name in OTHERS])
def test_every_metric_has_a_page_without_empty_panels(tmp_path, metric):
    """On the sample of a task, as geval --init writes it, and without an error on stderr or NaN on the page."""
    from geval_py.cli import main

    assert main(["--init", "--expected-directory", str(tmp_path / "new"), "--metric", metric]) == 0
    report = Report(evaluate(tmp_path / "new", "test-A", output=str(perfect(tmp_path / "new", METRICS[metric]))))
    text = page(report, metric)
    assert {"quality"} <= set(panels_of(text))
    assert ("spread" in panels_of(text)) == (len(report.finite) > 0) == ("culprits" in panels_of(text))
    assert ('id="lines"' in text) == any(report.examples())
    assert (metric in RULED_WITHOUT_LINES) <= (not any(report.examples()))
    assert ">NaN" not in text
    assert ">nan" not in text
    for card in re.findall(r'<article class="card".*?</article>', text, re.DOTALL):
        assert "<tbody>\n<tr>" in card or 'id="culprits"' in card


def perfect(folder, metric):
    lines = (folder / "test-A" / "expected.tsv").read_text(encoding="utf-8").splitlines()
    path = folder / "perfect.tsv"
    path.write_text("".join(f"{perfect_line(line, metric)}\n" for line in lines), encoding="utf-8")
    return path


def test_at_most_eight_columns_have_a_panel():
    rows = ["\t".join(["same", *(f"{'ab'[n // 30]}{column}" for column in range(9))]) for n in range(60)]
    for metric, line in (("Accuracy", "x"), ("LogLossHashed", "x:0.5 y:0.25 :0.25")):
        report = Report(score([line] * 60, ["x", "y"] * 30, metric=metric, inputs=rows))
        assert [name for name, _ in report.columns()] == [f"column {n}" for n in range(2, 10)]


@pytest.mark.parametrize(("metric", "lines", "can_be"), [
    ("LogLossHashed", 99, False), ("LogLossHashed", 100, True), ("LogLossHashed:l", 100, False),
    ("LogLossHashed:f<in<1>:a>", 200, False),
])  # fmt: skip
def test_what_can_be_tuned(metric, lines, can_be):
    evaluation = score(["x:0.5 :0.5"] * lines, ["x"] * lines, metric=metric, inputs=["a b"] * lines)
    assert Report(evaluation).can_be_tuned == can_be


FEW = MIN_LINES - 1
EXTREMES = {
    "higher is better": ("higher", ("is", ""),
        [("a", 20, 0.9, "q 0.0100"), ("b", 20, 0.5, "q 0.2000, may be chance")],
        "M is worst, 0.500, where C is b (q 0.2000, may be chance), and best, 0.900, where it is a (q 0.0100)."),
    "lower is better": ("lower", ("has", " words"), [("2", 20, 0.9, "q 0.0100"), ("1", MIN_LINES, 0.5, "")],
        "M is worst, 0.900, where C has 2 words (q 0.0100), and best, 0.500, where it has 1."),
    "of losses": (
        None, ("has", " letters"), [("a", 20, 7.39, "q 0.0100"), ("b", 20, 2.72, "q 0.0100"), ("c", FEW, 1.0, "")],
        "The perplexity is worst, 7.39, where C has a letters (q 0.0100), and best, 2.72, where it has b (q 0.0100).",
    ),
    "the same": ("higher", ("is", ""), [("a", 20, 0.5, ""), ("b", 20, 0.5, "")], "M is 0.500 in each part."),
    "few lines": ("higher", ("is", ""), [("a", 20, 0.9, ""), ("b", FEW, 0.5, "")],
        "There are too few lines of each kind to tell."),
    "no score": ("higher", ("is", ""), [("a", 20, 0.9, ""), ("b", 20, math.nan, "")],
        "There are too few lines of each kind to tell."),
}  # fmt: skip


@pytest.mark.parametrize(("direction", "words", "groups", "sentence"), EXTREMES.values(), ids=EXTREMES)
def test_the_worst_and_the_best_group(direction, words, groups, sentence):
    rows = [ChartRow(label=label, lines=lines, value=value, note=note) for label, lines, value, note in groups]
    score = SimpleNamespace(direction=direction or "higher")
    report = SimpleNamespace(of_losses=direction is None, value_name="M", score=score)
    assert panels.extremes(report, rows, "C", *words) == sentence


def next_step(text):
    return re.search(r'<p class="next"><strong>Next:</strong> (.*)</p>', text)[1]


@pytest.mark.filterwarnings("ignore:.*lines is infinite", "ignore:.*no guess at all would be better")
@pytest.mark.parametrize(("line", "answer", "step"), [
    ("x:1 :0", "y", "Give every line a rest (:prob), so that no word is impossible: an infinite loss decides the score."),
    ("x:0.4 :0.6", "y", "Words that are not listed make 100 % of the loss: list more words on each line."),
    ("x:0.6 y:0.3 :0.1", "y", "Words that are listed, but not first, make 100 % of the loss: rank the listed words better."),
    (":1", "y", "Lines without a guess make 100 % of the loss: list words on these lines."),
    ("y:0.4 :0.6", "y", "Read the worst lines at the end of this page: they show what the model lacks."),
])  # fmt: skip
def test_what_to_do_next(line, answer, step):
    text = page(Report(score([line] * 30, [answer] * 30, metric="LogLossHashed")), "x")
    assert next_step(text).startswith(step)


@pytest.mark.parametrize(("low", "high", "taken", "verdict"), [
    (-0.1, -0.01, True, "significantly better"), (-0.1, 0.0243, True, "probably better, p 0.0020"),
    (-math.inf, 0.05, True, "probably better, p 0.0020"), (0.0, math.inf, False, "not significantly better: leave it"),
    (0.0, math.nan, True, "probably better, p 0.0020"), (-0.1, 0.0243, False, "not significantly better: leave it"),
])  # fmt: skip
def test_the_interval_and_the_verdict_of_a_change(low, high, taken, verdict):
    """What is taken by p alone is not called significantly better beside an interval that holds 0."""
    row = panels.change_row("x", 90.0, 100.0, SimpleNamespace(low=low, high=high, p_value=0.002), taken)
    is_bounded = math.isfinite(low) and math.isfinite(high)
    ends = pytest.approx((100 * math.exp(low), 100 * math.exp(high))) if is_bounded else (None, None)
    assert ((row.low, row.high), row.note, row.colour) == (ends, verdict, GOOD if taken else SOFT)


@pytest.mark.filterwarnings("ignore:.*lines is infinite")
def test_infinite_losses_and_words_that_explain_nothing_are_said():
    report = Report(score(["x:0.5 :0.5"] * 28 + ["y:1"] * 2, ["x"] * 30, metric="LogLossHashed"))
    assert (report.comparison, panels.help_panel(report)) == (None, None)
    text = page(report, "x")
    assert sentences(text, "spread")[0].endswith(" The drawing leaves out 2 lines with an infinite loss.")
    text = page(Report(score(["x:0.5 :0.5"] * 30, ["x"] * 30, metric="LogLossHashed")), "x")
    assert "infinite" not in sentences(text, "spread")[0]
    assert sentences(text, "culprits")[0] == "No word or shape of a word is significantly more common in bad lines."


@pytest.mark.filterwarnings("ignore:.*lines is infinite")
def test_an_infinitely_bad_score_is_sorted_as_the_worst():
    """The page's script sorts by numbers, as JavaScript writes them."""
    text = page(Report(score(["a:0.0", "a:0.5", "b"], ["a"] * 3, metric="MultiLabel-LogLoss")), "x")
    assert re.findall(r'data-key="([^"]+)"', text) == ["Infinity", "Infinity", "0.6931471805599453"]
    assert ">∞<" in text
