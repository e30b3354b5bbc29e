"""Intervals and tests by document: against formulas written out, and what the command says."""

import gzip
import math
from array import array

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from raising import refused
from resampled import column, interval

from geval_py import compare, evaluate
from geval_py.explaining.calibration import calibration
from geval_py.explaining.documents import Documents
from geval_py.explaining.significance import beta_cdf, expanded_tail, t_quantile, t_tails
from geval_py.explaining.statistics import spread_of_mean
from geval_py.scoring.metrics.base import LineStatistics
from geval_py.scoring.metrics.registry import METRICS

PROPERTY = settings(deadline=None, derandomize=True)
LOG_LOSS, PERPLEXITY, ACCURACY = (METRICS[name] for name in ("LogLossHashed", "PerplexityHashed", "Accuracy"))


def documents(labels):
    return Documents.of("FileId", [str(label) for label in labels]).of_line


@st.composite
def grouped(draw):
    """Losses, and a document's label each; two documents at least."""
    losses = draw(st.lists(st.floats(0, 50), min_size=2, max_size=25))
    labels = draw(st.lists(st.integers(0, 5), min_size=len(losses) - 2, max_size=len(losses) - 2))
    return losses, [0, 1, *labels]


@PROPERTY
@given(st.floats(0.2, 1e5), st.floats(0.2, 1e5), st.floats(0, 1))
def test_the_beta_distribution(a, b, x):
    assert beta_cdf(x, a, b) == pytest.approx(scipy.stats.beta.cdf(x, a, b), rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("degrees", [*range(1, 40), 1.3, 2.5, 99, 1000, 10**6])
def test_students_t(degrees):
    assert t_quantile(degrees) == pytest.approx(scipy.stats.t.ppf(0.975, degrees), rel=1e-8)
    for t in (-40.0, -1.0, 0.0, 0.3, 2.0, 9.0):
        assert t_tails(t, degrees) == pytest.approx(2 * scipy.stats.t.sf(abs(t), degrees), rel=1e-7)
    assert t_tails(math.inf, degrees) == 0


@pytest.mark.parametrize("units", [2, 3, 5, 20, 300, 10**5])
def test_the_expanded_tail(units):
    t = scipy.stats.t.ppf(0.975, units - 1)
    tail = scipy.stats.norm.cdf(-math.sqrt(units / (units - 1)) * t)
    assert expanded_tail(units) == pytest.approx(tail, rel=1e-4, abs=1e-12)
    assert expanded_tail(1) == 0


def by_matrices(losses, labels):
    """The standard deviation and the degrees of CR2, from matrices: section 2 of Imbens and Kolesár, for a mean."""
    losses, labels = np.array(losses), np.array(labels)
    groups = sorted(set(labels.tolist()))
    n = np.array([np.sum(labels == one) for one in groups], float)
    lines, mean = len(losses), losses.mean()
    sums = np.array([np.sum(losses[labels == one] - mean) for one in groups])
    a = 1 / np.sqrt(1 - n / lines)
    deviation = math.sqrt(np.sum((a * sums) ** 2)) / lines
    rho = 0.0
    if len(groups) < lines:
        means = np.array([losses[labels == one].mean() for one in groups])
        between = np.sum(n * (means - mean) ** 2) / (len(groups) - 1)
        residuals = np.concatenate([losses[labels == one] - of for one, of in zip(groups, means, strict=True)])
        within = np.sum(residuals**2) / (lines - len(groups))
        shared = max(0.0, (between - within) / ((lines - np.sum(n**2) / lines) / (len(groups) - 1)))
        rho = shared / (shared + within) if shared + within > 0 else 0.0
    v = n * (1 - rho) + rho * n**2
    m = np.diag(a) @ (np.eye(len(n)) - np.outer(n / lines, np.ones(len(n)))) @ np.diag(np.sqrt(v))
    square = m @ m.T
    return deviation, max(1.0, np.trace(square) ** 2 / np.trace(square @ square))


@PROPERTY
@given(grouped())
def test_the_spread_of_a_mean(case):
    losses, labels = case
    found = spread_of_mean(np.array(losses), documents(labels))
    deviation, degrees = by_matrices(losses, labels)
    assert found.deviation == pytest.approx(deviation, rel=1e-9, abs=1e-12)
    if np.ptp(losses) > 1e-6:  # the correlation of lines that are equal but for rounding is noise
        assert found.degrees == pytest.approx(degrees, rel=1e-6)
    assert found.half_width == pytest.approx(scipy.stats.t.ppf(0.975, found.degrees) * deviation, rel=1e-7, abs=1e-12)


@PROPERTY
@given(grouped(), st.sampled_from([LOG_LOSS, PERPLEXITY]))
def test_the_interval_by_documents(case, metric):
    """The mean loss ± t sqrt(V); of a perplexity its exponential, at least 1."""
    losses, labels = case
    deviation, degrees = by_matrices(losses, labels)
    half = scipy.stats.t.ppf(0.975, degrees) * deviation if np.ptp(losses) > 1e-6 else 0.0
    mean = math.fsum(losses) / len(losses)
    ends = (max(0.0, mean - half), mean + half)
    low, high = ends if metric is LOG_LOSS else (math.exp(ends[0]), math.exp(min(ends[1], 700)))
    got = interval(metric, column(losses), documents=documents(labels))
    if np.ptp(losses) < 1e-300 or got.ends == (None, None):  # nothing shows how far the true mean is
        assert (got.ends, half) == ((None, None), pytest.approx(0, abs=1e-9))
        return
    assert got.low == pytest.approx(low, rel=1e-4, abs=1e-4)
    if ends[1] < 700:
        assert got.high == pytest.approx(high, rel=1e-2, abs=1e-4)
    assert (got.samples, got.seed, got.documents) == (None, None, len(set(labels)))


def test_a_metric_of_sums_by_documents():
    """Its lines' figures are the jackknife's: N times the score, minus N - 1 times the score without the line."""
    metric, rng = METRICS["F1"], np.random.default_rng(2)
    expected, given = rng.integers(0, 2, (2, 60))
    counts = LineStatistics(tuple(array("d", counts) for counts in (expected * given, expected, given)))
    labels = np.repeat(np.arange(12), 5).tolist()

    def score(lines):
        return metric.value(counts.only(lines))

    whole = score(range(60))
    figures = [60 * whole - 59 * score([n for n in range(60) if n != out]) for out in range(60)]
    deviation, degrees = by_matrices(figures, labels)
    half = scipy.stats.t.ppf(0.975, degrees) * deviation
    got = interval(metric, counts, documents=documents(labels))
    assert (got.low, got.high) == pytest.approx((whole - half, whole + half), rel=1e-6)


@pytest.fixture
def challenge(tmp_path, monkeypatch):
    rng = np.random.default_rng(5)
    (tmp_path / "config.txt").write_text("--metric PerplexityHashed --precision 2 --in-header in-header.tsv\n")
    (tmp_path / "in-header.tsv").write_text("FileId\tSame\tText\n")
    (tmp_path / "dev-0").mkdir()
    files = np.repeat(np.arange(12), 5)
    hard = rng.uniform(0.05, 0.9, 12)[files]
    (tmp_path / "dev-0/in.tsv").write_text("".join(f"f{one:02d}\tx\tt{n}\n" for n, one in enumerate(files)))
    (tmp_path / "dev-0/expected.tsv").write_text("a\n" * 60)
    for name, factor in (("one", 1.0), ("two", 0.9)):
        shares = hard * factor * rng.uniform(0.9, 1, 60)
        (tmp_path / f"dev-0/out-{name}.tsv").write_text("".join(f"a:{p:.4f} :{1 - p:.4f}\n" for p in shares))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(geval):
    return lambda *words: geval(*words, "-t", "dev-0")


def test_the_interval_of_an_evaluation(challenge):
    result = evaluate(challenge, "dev-0", output="one")
    labels = [line.split("\t")[0] for line in (challenge / "dev-0/in.tsv").read_text().splitlines()]
    want = interval(PERPLEXITY, result.scores[0].statistics, documents=documents(labels))
    assert result.interval(documents="FileId") == result.interval(documents=1) == want
    assert result.interval(documents="Text") == result.interval(documents=False)
    assert result.interval() == want  # it finds the column


def test_documents_and_none_of_them(challenge, run):
    message = "geval: --documents and --no-documents are opposites: take one\n"
    for words in (["-B", "9"], ["compare"], ["calibration", "-o", "out-one.tsv"]):
        assert run(*words, "--documents", "FileId", "--no-documents") == (2, "", message)
    assert run("-B", "9", "--no-documents")[2] == ""
    config = (challenge / "config.txt").read_text()
    (challenge / "config.txt").write_text(f"{config}--no-documents\n")
    assert run("compare", "--samples", "100")[2] == ""
    assert "by document: 12 documents" in run("compare", "--samples", "100", "--documents", "FileId")[1]
    (challenge / "config.txt").write_text(config)
    assert run("-l", "--no-documents")[0] == 2
    table = run("-B", "9", "--documents", "FileId", "--format", "markdown")[1]
    assert "\n±: half of the 95 % interval, by the documents of FileId.\n" in table


def test_the_documents_are_those_of_the_scored_lines(challenge):
    lines = (challenge / "dev-0/out-one.tsv").read_text().splitlines(keepends=True)
    (challenge / "dev-0/out-one.tsv").write_text("".join(["b:0.5 :0.5\n"] * 5 + lines[5:]))
    filtered = evaluate(challenge, "dev-0", output="one", metric="PerplexityHashed:f<out:a>")
    assert filtered.interval().documents == 11


@pytest.mark.filterwarnings("ignore:.*lines is infinite")
def test_a_claim_of_which_one_document_is_finite(challenge):
    lines = ["b:1\n"] * 55 + (challenge / "dev-0/out-one.tsv").read_text().splitlines(keepends=True)[55:]
    (challenge / "dev-0/out-one.tsv").write_text("".join(lines))
    result = evaluate(challenge, "dev-0", output="one")
    by_document, by_line = (calibration(result, documents=by).claim for by in ("FileId", False))
    assert (by_document.n, by_document.observed) == (by_line.n, by_line.observed) == (5, by_line.observed)
    assert by_document.is_calibrated
    assert by_document.low <= by_line.low < by_line.high <= by_document.high


def test_each_line_its_own_document(challenge, run):
    note = "each line has a different Text: the results are the same as without documents"
    assert run("-B", "100", "-o", "one", "--documents", "Text")[2] == f"geval: note: {note}\n"
    by_text, by_line = (
        run("-w", "-o", "one", "--format", "csv", *words) for words in (["--documents", "Text"], ["--no-documents"])
    )
    assert by_text == (0, by_line[1], f"{by_line[2]}geval: note: {note}\n")
    pair = [evaluate(challenge, "dev-0", output=name) for name in ("one", "two")]
    by_line, by_text = (compare(pair, samples=100, documents=column) for column in (False, "Text"))
    assert by_text.systems == by_line.systems
    assert (by_text.documents, by_text.notes) == (None, (note,))


def test_one_document(challenge, run):
    message = "all 60 lines are of one document, since the column Same is the same on all of them\n"
    message += "  an interval computed by document needs two or more"
    for words in (["-B", "100"], ["-w", "-o", "one"], ["compare"]):
        assert run(*words, "--documents", "Same") == (2, "", f"geval: {message}\n")
    with refused(message):
        evaluate(challenge, "dev-0", output="one").interval(documents="Same")


WRONG = {
    "--documents FileId": "--documents goes with --bootstrap, --worst-features or geval compare",
    "--no-documents": "--no-documents goes with --bootstrap, --worst-features or geval compare",
    "-l --documents FileId": "--documents goes with scores, --worst-features or --most-worsening-features",
    "-l --cluster tcp://host:8786": "--cluster goes with scores",
    "-w --cluster tcp://host:8786": "--cluster goes with scores",
}


@pytest.mark.parametrize(("words", "message"), WRONG.items(), ids=WRONG)
def test_a_wrong_command_line(words, message, challenge, run):
    assert run(*words.split()) == (2, "", f"geval: {message}\n")


def test_without_an_input(challenge, run):
    (challenge / "dev-0/in.tsv").unlink()
    missing = "geval: No file with the input: `./dev-0/in.tsv`\n"
    missing += "  documents are given by a column of the input: put the file there, or name no documents\n"
    note = "geval: note: there is no input `./dev-0/in.tsv`: each line counts as a document of its own\n"
    for words in (["-B", "9"], ["compare"], ["-o", "out-one.tsv", "-w"], ["calibration", "-o", "out-one.tsv"]):
        status, out, err = run(*words, "--documents", "FileId")
        assert (status, out, err.endswith(missing)) == (1, "", True)
    assert note not in run("calibration", "-o", "out-one.tsv")[2]
    for words in (["-B", "9"], ["compare"]):
        assert note in run(*words)[2]
        assert note not in run(*words, "--no-documents")[2]


@pytest.mark.parametrize("damage", ["short", "broken"])
def test_advice_is_never_an_error(damage, challenge, run):
    if damage == "short":
        (challenge / "dev-0/in.tsv").write_text("f1\tx\tt\n")
    else:
        whole = (challenge / "dev-0/in.tsv").read_bytes()
        (challenge / "dev-0/in.tsv").unlink()
        (challenge / "dev-0/in.tsv.gz").write_bytes(gzip.compress(whole)[:-9])
    status, _, err = run("-B", "100")
    assert (status, err) == (0, "")
