"""The page of a report: harmless, alone, the same when made again, whole without a script."""

import hashlib
import html
import random
import re
import shutil
from base64 import b64encode
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from geval_py import evaluate, evaluate_all, score
from geval_py.cli import main
from geval_py.reports import report as reports
from geval_py.reports.page import charts, page
from geval_py.reports.report import Report

ROOT = Path(__file__).parents[2]
GAZETTE = ROOT / "challenges" / "gazette"
HOSTILE = "</script><img/src=x/onerror=alert(1)>"
BIDI = "a\u202eb\u2066c"
LONG = "x" * 10_000


def write(folder, lines):
    """A challenge of strangers' words, in the input, the answers and the output."""
    (folder / "dev-0").mkdir(parents=True)
    (folder / "config.txt").write_text("--metric PerplexityHashed --in-header in-header.tsv\n")
    (folder / "README.md").write_text(f"# {HOSTILE}\n")
    (folder / "in-header.tsv").write_text(f"C{HOSTILE}\tLeft\tRight\n")
    words = [HOSTILE, BIDI, LONG, "plain"]
    rows = [(words[n % 4], words[n // 4 % 4]) for n in range(lines)]
    (folder / "dev-0" / "in.tsv").write_text("".join(f"{a}\t{a} {b}\tright {b}\n" for a, b in rows))
    (folder / "dev-0" / "expected.tsv").write_text("".join(f"{a}\n" for a, _ in rows))
    outputs = "".join(f"{b.replace(':', '')}:0.5 {a}:0.2 :0.3\n" for a, b in rows)
    (folder / "dev-0" / f"out-m={HOSTILE.replace('/', '')}.tsv").write_text(outputs)
    (folder / "dev-0" / "out-m=other.tsv").write_text(outputs.replace("0.5", "0.4"))
    return folder


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    folder = write(tmp_path_factory.mktemp("hostile"), 160)
    first, *others = evaluate_all(folder, "dev-0")
    return Report(first, others)


def test_strangers_words_are_harmless_and_short(hostile):
    text = page(hostile, HOSTILE)
    assert text.count("<script>") == text.count("</script>") == 1
    assert not any(harm in text for harm in ("<img", "\u202e", "\u2066", "x" * 200))
    assert html.escape(HOSTILE) in text
    assert "a\\u202eb\\u2066c" in text


def test_charts_of_strangers_words_are_harmless_xml_whose_marks_are_described(hostile):
    drawn = dict(charts(hostile))
    keys = "quality comparison spread costs length column-1 words help"
    assert set(keys.split()) <= drawn.keys()
    for name, svg in drawn.items():
        assert not any(harm in svg for harm in ("<img", "<script", "\u202e", "x" * 200)), name
        marks = [mark for mark in ElementTree.fromstring(svg).iter() if mark.get("role") == "graphics-symbol"]
        assert marks, name
        assert all(mark[0].tag.endswith("}title") and mark[0].text for mark in marks)


def test_nothing_is_loaded_and_nothing_is_styled_inline(gazette):
    assert re.findall(r'\s(?:style|on\w+)="', gazette) == []
    assert re.findall(r"(?:src|href)=\"([^\"]*)\"", gazette) == ["data:,", "#main"]
    assert re.findall(r"url\((?!#)", gazette) == []
    assert "@import" not in gazette
    ids = re.findall(r'\sid="([^"]*)"', gazette)
    assert len(ids) == len(set(ids))


def test_the_policy_allows_this_style_and_this_script_alone(gazette):
    (style,) = re.findall(r"<style>(.*?)</style>", gazette, re.DOTALL)
    (script,) = re.findall(r"<script>(.*?)</script>", gazette, re.DOTALL)
    hashes = [f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in (style, script)]
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', gazette)
    message = f"default-src 'none'; style-src {hashes[0]}; script-src {hashes[1]}; img-src data:; base-uri 'none'; "
    assert html.unescape(policy) == message + "form-action 'none'"


def test_each_panel_has_a_question_an_answer_and_its_numbers(gazette):
    panels = re.findall(r'<article class="card" id="([^"]+)".*?</article>', gazette, re.DOTALL)
    assert panels == [
        "quality", "comparison", "spread", "costs", "length", "frequency", "culprits", "column-1", "column-2",
        "column-3", "words", "guess", "rest", "help",
    ]  # fmt: skip
    for key in panels:
        (card,) = re.findall(rf'<article class="card" id="{key}".*?</article>', gazette, re.DOTALL)
        assert re.search(r"<h3[^>]*>[^<]+\?</h3>\n<p>[^<]+\.</p>", card), key
        assert "<summary>Numbers and method" in card, key


def test_the_worst_lines_come_first(gazette):
    rows = re.findall(
        r'<tr class="o\d"><th scope="row" class="n">(\d+)</th><td class="n" data-key="([^"]+)"', gazette
    )
    assert rows[0][0] == "88"  # as geval -l -s says
    keys = [float(key) for _, key in rows]
    assert keys == sorted(keys, reverse=True)
    assert len(rows) == 212


@pytest.mark.filterwarnings("ignore:.*lines is infinite")
def test_an_output_of_rests_alone_and_of_infinite_losses():
    for line in (":1", "x:1 :0"):
        text = page(Report(score([line] * 150, ["a", "b", "c"] * 50, metric="PerplexityHashed8")), "none")
        assert ">NaN" not in text
        assert ": NaN" not in text
        assert ("lines have an infinite loss" in text) == (line != ":1")


LONG_METRICS = [pytest.param(metric, marks=pytest.mark.long) for metric in ("CrossEntropyHashed", "LogLossHashed:l")]


@pytest.mark.filterwarnings("ignore:.*not in the vocabulary", "ignore:.*lines is infinite")
@pytest.mark.parametrize("metric", ["Perplexity", "LikelihoodHashed", *LONG_METRICS])
def test_other_metrics(metric):
    evaluation = evaluate(GAZETTE, "dev-0", output="out-model=bigram.tsv", metric=metric)
    text = page(Report(evaluation), "Gazette")
    assert ('id="words"' in text) == ("Hashed" in metric)
    assert ('id="help"' in text) == (metric in ("LikelihoodHashed", "CrossEntropyHashed"))


def test_the_interval_is_by_document_if_documents_are_named():
    """Twelve documents of 25 lines; in every other one the output knows half of the words."""
    rows = [(document, document % 2 and n % 2) for document in range(12) for n in range(25)]
    lines = [f"word{n}:0.9 :0.1" if known else "other:0.5 :0.5" for n, (_, known) in enumerate(rows)]
    inputs, words = [f"d{document}\tx\ty" for document, _ in rows], [f"word{n}" for n in range(300)]
    evaluation = score(lines, words, metric="PerplexityHashed", inputs=inputs)
    note = "if lines with the same value in column 1 depend on each other, use --documents 1"
    assert Report(evaluation).notes == (note,)
    found = Report(evaluation, documents=1)
    assert (found.notes, found.interval.documents) == ((), 12)
    assert "12 documents" in page(found, "Documents")
    assert "If lines with the same value in column 1 depend on each other" in page(Report(evaluation), "Documents")


@pytest.mark.parametrize("number", ["999999999999999999999999999999", "-1e300", "5000"])
def test_strangers_logarithms_may_be_of_any_size(number, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("in.tsv").write_text("x a\ty b\nfoo\tbar\nc\td\n")
    Path("expected.tsv").write_text("the\nof\na\n")
    Path("out.tsv").write_text(f"the:0.5 a:0.25 :0.25\nof:0.9 :0.1\nthe:{number} a:-1.5\n")
    files = ["-o", "out.tsv", "-e", "expected.tsv", "-i", "in.tsv", "-m", "PerplexityHashed"]
    assert main(["report", *files, "--html", "out.html"]) == 0
    text = Path("out.html").read_text(encoding="utf-8")
    shown = re.sub(r"<(script|style)\b.*?</\1>|<[^>]+>", " ", text, flags=re.DOTALL)
    assert re.findall(r"\b(?:inf|nan)\b", shown) == []
    assert main(["calibration", *files]) == 0


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory):
    """An output whose lines with "storm" are bad, and those with "wind" half as bad, in 200 documents of 20 lines."""
    folder, chance = tmp_path_factory.mktemp("weather"), random.Random(1)
    (folder / "dev-0").mkdir()
    (folder / "config.txt").write_text("--metric PerplexityHashed --in-header in-header.tsv\n")
    (folder / "in-header.tsv").write_text("FileId\tLeft\tRight\n")
    rows = []
    for line in range(4000):
        word = chance.choice(["storm", "wind", "rain", "snow", "sun"])
        mass = {"storm": 0.05, "wind": 0.2}.get(word, 0.4) + 0.1 * chance.random()
        rows.append((f"doc-{line // 20}\tthe {word}\tcame", "now", f"now:{mass:.4f} then:0.2 :0.1"))
    for name, column in zip(("in", "expected", "out"), zip(*rows, strict=True), strict=True):
        (folder / f"dev-0/{name}.tsv").write_text("".join(f"{text}\n" for text in column))
    return evaluate(folder, "dev-0")


@pytest.mark.slow
def test_a_sample_says_the_same(evaluation, monkeypatch):
    whole = Report(evaluation, documents="FileId")
    assert "sample" not in page(whole, "Weather")
    monkeypatch.setattr(reports, "MAX_LINES", 1000)
    sampled = Report(evaluation, documents="FileId")
    assert (whole.sample.line_count, sampled.sample.line_count) == (4000, 1000)
    assert sampled.features.names[0] == whole.features.names[0] == "in<Left>:storm"
    gains = [report.features.columns["gain"][0] for report in (whole, sampled)]
    assert gains[0] == pytest.approx(gains[1], abs=0.05)
    assert (sampled.score, sampled.interval) == (whole.score, whole.interval)
    assert sampled.calibration == whole.calibration
    numbers = np.array(sampled.sample.line_numbers)
    assert sampled.values.tolist() == whole.values[numbers - 1].tolist()
    assert sampled.outcomes.codes.tolist() == whole.outcomes.codes[numbers - 1].tolist()
    text = page(sampled, "Weather")
    for heading in ("Where the loss comes from", "Which lines are hard", "The lines"):
        assert f"{heading}, in a random sample of 1,000 lines</h2>" in text
    assert "The 300 worst and the 100 best of 1,000 lines" in text
    assert " lines of the sample with `storm` in Left were no worse" in text
    assert {number for number, *_ in sampled.examples()} <= set(numbers.tolist())


def test_the_unigram_is_scored_as_an_output_would_be():
    report = Report(evaluate(GAZETTE, "dev-0", output="unigram"))
    counts = report.words_of_train
    total, once = counts.total(), sum(1 for count in counts.values() if count == 1)
    line = " ".join(f"{word}:{count / total * (1 - once / total)!r}" for word, count in counts.items())
    answers = (GAZETTE / "dev-0/expected.tsv").read_text().splitlines()
    scored = score([f"{line} :{once / total!r}"] * len(answers), answers, metric="PerplexityHashed")
    assert report.unigram == pytest.approx(scored.score, rel=1e-9)


NOTHING, TRAIN = "an output that knows nothing", "the word frequencies of train"
AGAINST_REFERENCES = {  # output, metric: what its first sentence says
    "bigram PerplexityHashed":
        f"175: 5.9 times better than {NOTHING} (1,024) and 1.7 times better than {TRAIN} (298).",
    "unigram PerplexityHashed":
        f"328: 3.1 times better than {NOTHING} (1,024) and 1.1 times worse than {TRAIN} (298).",
    "bigram LogLossHashed":
        f"5.16: 1.77 nats better than {NOTHING} (6.93) and 0.535 nats better than {TRAIN} (5.70).",
    "bigram LikelihoodHashed":
        f"0.00573: 5.9 times better than {NOTHING} (0.000977) and 1.7 times better than {TRAIN} (0.00335).",
    "bigram Accuracy": "0.189: 0.0943 better than the commonest word of train, `the`, on each line (0.0943).",
    "bigram Perplexity": None,
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*not in the vocabulary", "ignore:.*lines is infinite")
@pytest.mark.parametrize("case", AGAINST_REFERENCES)
def test_the_first_sentence_compares_with_what_knows_little(case):
    out, metric = case.split()
    text = page(Report(evaluate(GAZETTE, "dev-0", output=out, metric=metric)), "Gazette")
    sentence = re.search(r"<li>(.*)</li>|</main>", text)[1]
    if AGAINST_REFERENCES[case] is None:
        assert not sentence.startswith(metric)
    else:
        assert sentence == f"{metric} {AGAINST_REFERENCES[case]}"


@pytest.mark.filterwarnings("ignore:.*lines is infinite", "ignore:.*no guess at all would be better")
@pytest.mark.parametrize(("line", "sentence"), [
    ("a:1 :0", "∞: worse than"), (":1", "1,024: about as good as"), ("a:0.9 :0.1", "10,240: 10.0 times worse than"),
])  # fmt: skip
def test_an_output_that_is_no_better_than_one_that_knows_nothing(line, sentence):
    text = page(Report(score([line] * 9, ["b"] * 9, metric="PerplexityHashed")), "none")
    assert f"<li>PerplexityHashed {sentence} {NOTHING} (1,024).</li>" in text


def test_the_best_baseline_beside_the_answers(tmp_path, geval):
    """Outputs named as ``geval baseline`` names them, but not the explained one, and no malformed one."""
    shutil.copytree(GAZETTE, tmp_path / "gazette", ignore=shutil.ignore_patterns("train"))
    dev = tmp_path / "gazette/dev-0"
    (dev / "out-model=bigram.tsv").rename(tmp_path / "out.tsv")
    (dev / "out-model=rest.tsv").write_text(":1\n" * 212)
    (dev / "out-model=ngram.tsv").write_text("malformed\n")
    places = ["--out-directory", str(tmp_path / "gazette"), "-t", "dev-0"]
    for out, value, better, baseline in (
        (str(tmp_path / "out.tsv"), "175", "5.9", "1.9 times better than the baseline unigram (328)."),
        ("unigram", "328", "3.1", "3.1 times better than the baseline rest (1,024)."),
    ):
        sentence = f"PerplexityHashed {value}: {better} times better than {NOTHING} (1,024) and {baseline}"
        assert geval("report", *places, "-o", out, "--html", str(tmp_path / "page.html"))[0] == 0
        assert sentence in (tmp_path / "page.html").read_text()
