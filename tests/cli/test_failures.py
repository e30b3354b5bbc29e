"""One bad output does not hide the others. GEval 1.42.2 ends at the first, and shows no score."""

import csv
import io
import json
import os

import pytest

GOOD, BETTER, BAD = "a:0.5 :0.5\n" * 2, "a:1\n" * 2, "a:0.5 :0.5\na:0,5 :0.5\n"
MESSAGE = (
    "Line 2: Unexpected data [number text found after a number]\n"
    "  `./dev-0/out-n=2.tsv`, line 2, column 3: `0,5` is not a number; write a decimal point, not a comma\n"
    "    a:0,5 :0.5\n"
    "      ^"
)
SHORT = "Too few lines in the output file: `./dev-0/out-n=4.tsv` has 1, `./dev-0/expected.tsv` has 2"


@pytest.fixture
def challenge(tmp_path, monkeypatch):
    """A challenge of two items and four outputs, of which the second and the fourth are malformed."""
    (tmp_path / "config.txt").write_text("--metric PerplexityHashed --metric LikelihoodHashed --precision 2\n")
    (tmp_path / "dev-0").mkdir()
    (tmp_path / "dev-0/in.tsv").write_text("x\ny\n")
    (tmp_path / "dev-0/expected.tsv").write_text("a\na\n")
    for n, text in enumerate((GOOD, BAD, BETTER, "a:1\n"), 1):
        (tmp_path / f"dev-0/out-n={n}.tsv").write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_an_output_at_fault_has_its_message_in_json_and_csv(challenge, geval):
    status, out, err = geval("-t", "dev-0", "--format", "json")
    one, two, three, four = json.loads(out)["outputs"]
    assert (status, err) == (1, f"geval: {MESSAGE}\ngeval: {SHORT}\n")
    assert (one["metrics"][1]["name"], three["metrics"][0]["value"]) == ("LikelihoodHashed", 1.0)
    error = {"message": MESSAGE, "line": 2, "column": 3}
    assert two == {"file": "out-n=2.tsv", "parameters": {"n": "2"}, "error": error}
    assert four["error"] == {"message": SHORT, "line": None, "column": None}
    rows = list(csv.DictReader(io.StringIO(geval("-t", "dev-0", "--format", "csv")[1])))
    assert [row["PerplexityHashed"] for row in rows] == ["1.9980487804878049", "", "1.0", ""]
    assert [row["error"] for row in rows] == ["", " ".join(map(str.strip, MESSAGE.split("\n")[:2])), "", SHORT]


@pytest.mark.parametrize(("words", "printed"), [
    ("", "n\tPerplexityHashed\tLikelihoodHashed\n1\t2.00\t0.50\n2\terror\terror\n3\t1.00\t1.00\n4\terror\terror\n"),
    ("--by-score -a PerplexityHashed", "n\tPerplexityHashed\n3\t1.00\n1\t2.00\n2\terror\n4\terror\n"),
    ("--bootstrap 10 -a PerplexityHashed", "n\tPerplexityHashed\n1\t2.00\n2\terror\n3\t1.00\n4\terror\n"),
    ("-o out-n=2.tsv -o out-n=4.tsv", "n\tPerplexityHashed\tLikelihoodHashed\n2\terror\terror\n4\terror\terror\n"),
], ids=["a row", "last by score", "no interval", "all"])  # fmt: skip
def test_an_output_at_fault_has_a_row_without_a_score(words, printed, challenge, geval):
    status, out, err = geval("-t", "dev-0", *words.split())
    assert (status, out) == (1, printed)
    assert err.startswith(f"geval: {MESSAGE}\ngeval: {SHORT}\n")


@pytest.mark.parametrize(("metrics", "failed"), [
    (["MAE", "PerplexityHashed", "RMSE"], "MAE and RMSE"), (["LogLossHashed", "RMSE", "MSE"], "RMSE and MSE"),
    (["LogLossHashed", "RMSE:f<exp:a>N<errors>"], "errors"), (["RMSE", "MSE"], None), (["RMSE", "MAE"], None),
    (["RMSE"], None),
])  # fmt: skip
def test_the_metrics_that_failed_are_named(metrics, failed, challenge, geval):
    words = [word for metric in metrics for word in ("-a", metric)]
    place = "`./dev-0/expected.tsv`, line 1, column 1"
    names = "" if failed is None else f"  {failed} cannot read the line\n"
    assert geval("-t", "dev-0", "-o", "n=1", *words) == (
        1, "", "geval: Line 1: Unexpected data [input does not start with a digit]\n"
        f"  {place}: `a` is not a number; digits were expected, such as 0.25, -1.5 or 2.5e-3\n"
        f"    a\n    ^\n{names}",
    )  # fmt: skip


def test_the_only_output_and_modes_end_at_the_first(challenge, geval):
    for words in ("n=2", "n=2 --format json", "n=2 -l", "n=1 -d out-n=2.tsv", "n=1 -d n=2"):
        assert geval("-t", "dev-0", "-o", *words.split()) == (1, "", f"geval: {MESSAGE}\n")


@pytest.mark.parametrize("words", [[], ["-o", "out-*.tsv"], ["-o", "*"], ["-o", "n=1", "-o", "n=2", "-o", "n=3"]])
def test_an_output_that_cannot_be_opened(words, challenge, geval):
    """A link that leads nowhere, as git-annex leaves what was not fetched, and two packed files of one name."""
    for name in ("out-n=2.tsv", "out-n=4.tsv", "out-n=3.tsv"):
        (challenge / "dev-0" / name).unlink()
    (challenge / "dev-0/out-n=2.tsv").symlink_to("/nowhere")
    for ending in ("xz", "gz"):
        (challenge / f"dev-0/out-n=3.tsv.{ending}").write_bytes(b"")
    os.utime(challenge / "dev-0/out-n=3.tsv.gz", (1, 1))
    status, out, err = geval("-t", "dev-0", "-a", "LogLossHashed", *words)
    assert (status, out) == (1, "n\tLogLossHashed\n1\t0.69\n2\terror\n3\terror\n")
    dangling = "geval: Cannot read `./dev-0/out-n=2.tsv`: it is a link to `/nowhere`, which is not there\n"
    both = "`./dev-0/out-n=3.tsv.xz` and `./dev-0/out-n=3.tsv.gz`"
    ambiguous = f"geval: More than one file could be `./dev-0/out-n=3.tsv`: {both}\n  remove all but one"
    assert err == f"{dangling}{ambiguous}; `./dev-0/out-n=3.tsv.xz` is the newest\n"


OF_OUTPUTS = "LogLossHashed:f<out:b>"
NO_LINE = "No item has the feature `out:b'\n  in `./dev-0/out-n={}.tsv`"


@pytest.fixture
def two(challenge):
    """Two outputs that are well formed, the words of one metric and of two with a filter, which selects in one."""
    (challenge / "dev-0/out-n=2.tsv").write_text("a:0.5 b:0.5\na:1\n")
    for n in (3, 4):
        (challenge / f"dev-0/out-n={n}.tsv").unlink()
    words = ["-t", "dev-0"]
    for metric in (OF_OUTPUTS, "LogLossHashed", "LikelihoodHashed:f<out:b>"):
        words += ["-a", metric]
    return words


ONCE = f"geval: {NO_LINE.format(1)}\n"  # though two metrics say it


def test_a_filter_leaves_the_other_metrics_their_scores(two, geval):
    rows = "n\tLogLossHashed:f<out:b>\tLogLossHashed\tLikelihoodHashed:f<out:b>\n1\terror\t0.69\terror\n2\t0.69\t0.35\t0.50\n"
    assert geval(*two) == (1, rows, ONCE)
    assert geval(*two, "--by-score") == (1, "\n".join(rows.split("\n")[n] for n in (0, 2, 1)) + "\n", ONCE)


WITHOUT_INTERVAL = "geval: note: no interval can be computed where all 2 lines have the same loss\n"
WITHOUT_INTERVAL += "geval: note: no interval can be computed from 1 line\n"


def test_a_filter_that_selects_nothing_has_null_for_a_score_in_json(two, geval):
    status, out, err = geval(*two, "--format", "json", "--bootstrap", "10")
    one, other = json.loads(out)["outputs"]
    assert (status, err) == (1, ONCE + WITHOUT_INTERVAL)
    assert list(one) == list(other) == ["file", "parameters", "lines", "out_of_vocabulary", "signature", "metrics"]
    assert one["metrics"][0] == {
        "name": "LogLossHashed:f<out:b>", "value": None, "unit": "nats", "direction": "lower",
        "error": {"message": NO_LINE.format(1), "line": None, "column": None},
    }  # fmt: skip
    assert [metric["value"] for metric in one["metrics"]] == [None, pytest.approx(0.69, abs=0.01), None]
    assert ["interval" in metric for metric in one["metrics"]] == [False, True, False]
    assert ["error" in metric for metric in one["metrics"]] == [True, False, True]
    assert one["signature"].startswith("metric:LogLossHashed|bits:10|lines:2|")
    assert [metric["name"] for metric in one["metrics"]] == [metric["name"] for metric in other["metrics"]]
    assert not any("error" in metric for metric in other["metrics"])


def test_a_file_that_is_at_fault_has_no_score_by_any_metric(two, challenge, geval):
    (challenge / "dev-0/out-n=2.tsv").write_text(BAD)
    status, out, err = geval(*two)
    assert (status, out.splitlines()[1:]) == (1, ["1\terror\t0.69\terror", "2\terror\terror\terror"])
    assert err == f"{ONCE}geval: {MESSAGE}\n  LogLossHashed cannot read the line\n"


@pytest.mark.parametrize("metric", ["LogLossHashed:f<exp:b>", "LogLossHashed:f<in<Nix>:b>", "LogLossHashed:q"])
def test_what_is_wrong_in_a_metric_is_no_output_s_fault(metric, challenge, geval):
    status, out, err = geval("-t", "dev-0", "-a", metric)
    assert (status, out) == (2, "")
    assert "out-n=" not in err


LEFT_OUT = "left out, as it could not be scored: "


def test_compare_leaves_it_out(challenge, geval):
    status, out, err = geval("compare", "-t", "dev-0", "--samples", "100", "--format", "json")
    document = json.loads(out)
    note = f"{LEFT_OUT}`./dev-0/out-n=2.tsv`, `./dev-0/out-n=4.tsv`"
    assert (status, [system["name"] for system in document["systems"]]) == (1, ["out-n=3.tsv", "out-n=1.tsv"])
    assert document["notes"][0] == note
    assert err.startswith(f"geval: {MESSAGE}\ngeval: {SHORT}\ngeval: note: {note}\n")


def test_luck_shows_the_others(challenge, geval):
    status, out, err = geval("luck", "-t", "dev-0", "-m", "PerplexityHashed", "--seeds", "2")
    assert (status, [row.split()[0] for row in out.split("\n\n")[0].splitlines()[1:]]) == (1, ["n=1", "n=3"])
    assert err.startswith(f"geval: {MESSAGE}\ngeval: {SHORT}\n")
    for command in ("luck -t dev-0 --seeds 1001", "calibration -t dev-0 -o n=1 -a Accuracy"):
        assert geval(*command.split())[:2] == (2, "")


@pytest.mark.parametrize(("outputs", "number"), [(["1", "2"], "1 of 2"), (["2", "4"], "none of 2")])
def test_nothing_is_left_to_compare(outputs, number, challenge, geval):
    status, out, err = geval("compare", "-t", "dev-0", *(f"out-n={n}.tsv" for n in outputs))
    assert (status, out) == (1, "")
    assert err.endswith(f"\ngeval: {number} outputs could be scored: there is nothing to compare\n")
