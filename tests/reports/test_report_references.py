"""What a report compares with: outputs that know little."""

import re
import shutil
from pathlib import Path

import pytest

from geval_py import evaluate, score
from geval_py.reports.page import page
from geval_py.reports.report import Report

GAZETTE = Path(__file__).parents[2] / "challenges" / "gazette"


def test_the_unigram_is_scored_as_an_output_would_be():
    report = Report(evaluate(GAZETTE, "dev-0", output="unigram"))
    counts = report.words_of_train
    total, once = counts.total(), sum(1 for count in counts.values() if count == 1)
    line = " ".join(f"{word}:{count / total * (1 - once / total)!r}" for word, count in counts.items())
    answers = (GAZETTE / "dev-0/expected.tsv").read_text().splitlines()
    scored = score([f"{line} :{once / total!r}"] * len(answers), answers, metric="PerplexityHashed")
    assert report.unigram == pytest.approx(scored.score, rel=1e-9)


NOTHING, TRAIN = "an output that knows nothing", "the word frequencies of train"
AGAINST_REFERENCES = {  # output and metric: what its first sentence says behind the metric's name
    "bigram PerplexityHashed": f"175: 5.9 times better than {NOTHING} (1,024) and 1.7 times better than {TRAIN} (298).",
    "unigram PerplexityHashed": f"328: 3.1 times better than {NOTHING} (1,024) and 1.1 times worse than {TRAIN} (298).",
    "bigram LogLossHashed": f"5.16: 1.77 nats better than {NOTHING} (6.93) and 0.535 nats better than {TRAIN} (5.70).",
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
@pytest.mark.parametrize(
    ("line", "sentence"),
    [("a:1 :0", "∞: worse than"), (":1", "1,024: about as good as"), ("a:0.9 :0.1", "10,240: 10.0 times worse than")],
)
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
    for out, sentence in (
        (
            str(tmp_path / "out.tsv"),
            f"PerplexityHashed 175: 5.9 times better than {NOTHING} (1,024) and "
            "1.9 times better than the baseline unigram (328).",
        ),
        (
            "unigram",
            f"PerplexityHashed 328: 3.1 times better than {NOTHING} (1,024) and "
            "3.1 times better than the baseline rest (1,024).",
        ),
    ):
        assert geval("report", *places, "-o", out, "--html", str(tmp_path / "page.html"))[0] == 0
        assert sentence in (tmp_path / "page.html").read_text()
