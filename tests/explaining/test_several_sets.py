"""Several test sets: each by itself, and all lines together as one sample."""

import json
import os

import numpy as np
import pytest
from raising import refused
from resampled import paired

from geval_py import compare, evaluate_all
from geval_py.explaining.comparison import compare_sets

pytestmark = pytest.mark.filterwarnings("ignore:.*not in a vocabulary")  # but each output lists all words
OUTPUTS = {"dev-0": 200, "dev-1": 100}


@pytest.fixture
def losses():
    """Losses of two outputs on two sets, of documents of ten lines."""
    rng, of_sets = np.random.default_rng(3), {}
    for name, lines in OUTPUTS.items():
        base = rng.exponential(2, lines) + 0.5
        of_sets[name] = {"same": base, "better": base - 0.3 + rng.normal(0, 0.3, lines)}
    return of_sets


@pytest.fixture
def challenge(tmp_path, losses):
    (tmp_path / "config.txt").write_text("--metric LogLoss --in-header in-header.tsv\n")
    (tmp_path / "in-header.tsv").write_text("FileId\n")
    for name, of_outputs in losses.items():
        write(tmp_path / name, of_outputs)
    return tmp_path


def write(folder, of_outputs):
    folder.mkdir(exist_ok=True)
    lines = len(next(iter(of_outputs.values())))
    (folder / "expected.tsv").write_text("a\n" * lines)
    (folder / "in.tsv").write_text("".join(f"{n // 10}\n" for n in range(lines)))
    for name, column in of_outputs.items():
        masses = np.exp(-np.abs(column)).tolist()
        (folder / f"out-{name}.tsv").write_text("".join(f"a:{p!r} b:{1 - p!r}\n" for p in masses))


def compared(challenge, **options):
    return compare_sets([evaluate_all(challenge, name) for name in OUTPUTS], baseline="same", **options)


def test_a_row_for_each_set_and_one_for_all_lines(challenge, losses):
    result = compared(challenge, documents=False)
    alone = [compare(evaluate_all(challenge, name), baseline="same", documents=False) for name in OUTPUTS]
    assert [one.systems for one in result.sets] == [one.systems for one in alone]
    whole = [np.abs(np.concatenate([of_set[name] for of_set in losses.values()])) for name in ("same", "better")]
    change = paired(*whole).change
    better = result.systems[0]
    assert (result.lines, result.test, better.name) == (300, "dev-0, dev-1", "out-better.tsv")
    assert better.p_value == pytest.approx(change.p_value)
    assert better.effect_interval.ends == pytest.approx(change.ends)
    assert better.signature is None
    frame = result.to_frame()
    assert list(frame["set"]) == ["dev-0", "dev-1", "all"] * 2
    assert list(frame["effect"])[2] == better.effect


def test_a_document_belongs_to_one_set(challenge, losses):
    """Both sets have documents 0 to 9, which are different ones."""
    result = compared(challenge, documents="FileId")
    assert [(one.documents, one.compared_documents) for one in (*result.sets, result)] == [
        ("FileId", 20), ("FileId", 10), ("FileId", 30),
    ]  # fmt: skip
    whole = [np.abs(np.concatenate([of_set[name] for of_set in losses.values()])) for name in ("same", "better")]
    assert result.systems[0].p_value == pytest.approx(paired(*whole, documents=np.arange(300) // 10).p_value)


def test_the_command(challenge, geval):
    words = ["--challenge", str(challenge), "-t", "dev-0", "-t", "dev-1", "--baseline", "same", "--no-documents"]
    status, out, _ = geval("compare", *words)
    head, *rows = out.split("\n\n")[0].splitlines()
    assert (status, head.split()[:3]) == (0, ["system", "set", "score"])
    assert [row.split()[:2] for row in rows] == [[o, s] for o in ("better", "same") for s in (*OUTPUTS, "all")]
    assert "\nLogLoss (nats, lower is better) of 300 lines of dev-0, dev-1; the baseline is same.\n" in out
    all_lines = (
        "all: the lines of all sets together; a set counts by its number of lines. What is said below of documents, "
        "degrees of freedom, the best of n and the minimum detectable difference is of these rows."
    )
    assert f"\n{all_lines}\n" in out
    out = geval("compare", *words, "--format", "json", "--no-worse-than", "0.1", "--name", "same=A")[1]
    document = json.loads(out)
    assert [one["test"] for one in document["sets"]] == ["dev-0", "dev-1"]
    assert document["systems"][0]["p_no_worse"] < 0.05
    assert len(geval("compare", *words, "--format", "csv")[1].splitlines()) == 7


def test_marks_and_names_are_those_of_all_rows(challenge):
    """Each set's best score is bold, and each significant difference has stars."""
    result = compared(challenge, documents=False).with_names({"better": "Ours"})
    rows = [row.split(" & ") for row in result.to_latex().splitlines() if " & " in row][1:]
    assert [tuple(row[:2]) for row in rows] == [(o, s) for o in ("Ours", "same") for s in (*OUTPUTS, "all")]
    assert [r"\textbf{" in score for _, _, score, *_ in rows] == [True] * 3 + [False] * 3
    assert ["$^{***}$" in row[3] for row in rows] == [True] * 3 + [False] * 3
    assert result.to_markdown().count("| **") == 3
    assert result.to_latex().count("% out-better.tsv of dev-1: metric:LogLoss|") == 1


def test_several_challenges(challenge, geval):
    (challenge / "other").mkdir()
    os.rename(challenge / "dev-1", challenge / "other/dev-0")
    (challenge / "other/config.txt").write_text("--metric LogLoss\n")
    places = ["--challenge", str(challenge), "--challenge", str(challenge / "other")]
    status, out, _ = geval("compare", *places, "-t", "dev-0", "--no-documents")
    assert (status, " of 300 lines of dev-0, dev-0; " in out) == (0, True)


def test_an_infinite_loss_is_no_gain_on_all_lines(challenge, losses):
    """A system that fails on a fifth of the lines of a set is not shown as better."""
    failing = {**losses["dev-1"], "better": np.where(np.arange(100) % 5, losses["dev-1"]["better"], np.inf)}
    write(challenge / "dev-1", failing)
    with pytest.warns(UserWarning, match="20 of 100 lines is infinite"):
        better = compared(challenge, documents=False).systems[-1]
    assert (better.name, better.effect, better.infinite) == ("out-better.tsv", None, 20)
    assert better.p_infinite < 0.001


def test_outputs_of_one_set_only(challenge, losses, geval):
    write(challenge / "dev-0", {"only-here": losses["dev-0"]["same"]})
    assert compared(challenge, documents=False).notes == ("not in all test sets, and left out: out-only-here.tsv",)
    for name in ("better", "same"):
        os.remove(challenge / f"dev-1/out-{name}.tsv")
    write(challenge / "dev-1", {"third": losses["dev-1"]["same"], "fourth": losses["dev-1"]["better"]})
    with refused("no output is in all test sets: give outputs the same names"):
        compared(challenge)


@pytest.mark.parametrize("pair", [["--challenge", "x", "--challenge", "y"], ["-t", "dev-0", "-t", "dev-1"]])
def test_what_several_test_sets_do_not_take(geval, pair):
    assert geval("compare", *pair, "-e", "x.tsv") == (2, "", "geval: -e: only with a single test set\n")
