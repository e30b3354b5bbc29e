"""``-w --cluster``: the same features and figures, to the last bit, as on one machine."""

import gzip
import math
import random
from pathlib import Path

import pytest
from dask_clusters import QUIET, cut

import geval_py
from geval_py.errors import UnreadableFileError, UsageError

pytestmark = QUIET

GAZETTE = Path(__file__).parents[2] / "challenges" / "gazette"
KINDS = [
    {}, {"bigrams": True, "word_shapes": True, "numerical_features": True},
    {"cartesian": True, "min_cartesian_frequency": 20}, {"documents": "1"}, {"distinct": True},
    {"best": True, "min_frequency": 3, "tokenizer": "minimalistic"}, {"tokenizer": "13a"},
]  # fmt: skip


def write_challenge(folder, lines=150, end=""):
    """Write outputs whose lines differ in size by many orders, of a challenge with an input of uneven lines."""
    chance = random.Random(7)
    words = ["a", "The", "żółw", "x-1", "of", "1950"]
    (folder / "t").mkdir()
    (folder / "config.txt").write_text("-m PerplexityHashed\n--in-header in-header.tsv\n")
    (folder / "in-header.tsv").write_text("File\tText\n")
    rows = {"in": [], "expected": [], "out-1": [], "out-2": []}
    for line in range(lines):
        text = " ".join(chance.choices(words, k=3))
        bad = line % 5 == 0
        rows["in"].append("9" if bad else f"{chance.randint(1, 8)}\t{text}\t{len(text)}")
        rows["expected"].append(chance.choice(words))
        for name in ("out-1", "out-2"):
            share = 10 ** -chance.choice([30, 200] if bad else [1, 2])
            rows[name].append(f"{chance.choice(words)}:{chance.random() / 2!r} {chance.choice('abc')}:0.1 :{share!r}")
    for name, of_name in rows.items():
        (folder / "t" / f"{name}.tsv").write_text("".join(f"{row}\n" for row in of_name) + end)
    return folder


@pytest.fixture(scope="module")
def evaluations(tmp_path_factory):
    return geval_py.evaluate_all(write_challenge(tmp_path_factory.mktemp("features")), "t")


def same(evaluation, cluster, other=None, **kinds):
    """Check that features are the same here and on a cluster, to the last bit; return their number."""
    there = evaluation.worst_features(other=other, cluster=cluster.client, **kinds)
    alone = evaluation.worst_features(other=other, **kinds)
    assert there.to_dict("list").keys() == alone.to_dict("list").keys()
    for name in alone:
        assert repr(there[name].tolist()) == repr(alone[name].tolist())
    return len(alone)


@pytest.mark.parametrize(
    "kinds",
    [*KINDS[:3], *(pytest.param(kinds, marks=pytest.mark.long) for kinds in KINDS[3:])],
    ids=lambda kinds: ",".join(kinds) or "tokens",
)
def test_the_same_features(kinds, evaluations, here, monkeypatch):
    cut(monkeypatch, 1000)
    assert same(evaluations[0], here, **kinds) > (0 if "distinct" in kinds else 5)


def test_features_of_differences(evaluations, here, monkeypatch):
    cut(monkeypatch, 1000)
    assert same(evaluations[0], here, other=evaluations[1]) > 5


def test_lines_without_a_score_are_left_out(here, tmp_path, monkeypatch):
    """Both outputs have an infinite loss on some lines, of which the difference is none."""
    cut(monkeypatch, 40)
    for name in ("1", "2"):
        (tmp_path / f"{name}.tsv").write_text("a:0.5 :0.5\nb:1\n" * 20 + f"x:0.{name} :0.1\n" * 5)
    (tmp_path / "e.tsv").write_text("a\nc\n" * 20 + "x\n" * 5)
    pair = [
        geval_py.score_file(tmp_path / f"{name}.tsv", tmp_path / "e.tsv", metric="LogLossHashed")
        for name in ("1", "2")
    ]
    assert math.isnan(pair[0].score_differences(pair[1])[1])
    assert same(pair[0], here, other=pair[1]) > 1


@pytest.mark.long
@pytest.mark.parametrize("size", [60, 100_000])
@pytest.mark.parametrize("kinds", KINDS, ids=lambda kinds: ",".join(kinds) or "tokens")
def test_the_same_features_by_processes(kinds, size, evaluations, processes, monkeypatch):
    cut(monkeypatch, size)
    same(evaluations[0], processes, **kinds)
    same(evaluations[0], processes, other=evaluations[1], **kinds)


@pytest.mark.parametrize("form", ["text", *(pytest.param(form, marks=pytest.mark.long) for form in ("json", "csv"))])
@pytest.mark.parametrize("mode", [["-w"], ["--most-worsening-features", "out-2.tsv"]])
def test_the_command(mode, form, here, geval, tmp_path):
    folder = write_challenge(tmp_path)
    compressed = folder / "t" / "out-1.tsv.gz"
    compressed.write_bytes(gzip.compress((folder / "t" / "out-1.tsv").read_bytes()))
    (folder / "t" / "out-1.tsv").unlink()
    words = ["--out-directory", str(folder), "-t", "t", "-o", "out-1.tsv.gz", *mode, "--format", form]
    there = geval(*words, "--cluster", here.address)
    assert there == geval(*words)
    assert (there[0], len(there[1]) > 500) == (0, True)


def test_an_output_that_was_changed(here, tmp_path):
    evaluation = geval_py.evaluate(write_challenge(tmp_path), "t", output="out-1.tsv")
    (tmp_path / "t" / "out-1.tsv").write_text(":1\n" * 150)
    with pytest.raises(UnreadableFileError) as caught:
        evaluation.worst_features(cluster=here.client)
    assert str(caught.value) == f"Cannot read `{tmp_path}/t/out-1.tsv`: it was changed while it was read"


def test_selected_lines_are_ranked_here(here):
    evaluation = geval_py.evaluate(GAZETTE, "dev-0", output="bigram", metric="LogLossHashed:f<exp:the>")
    with pytest.raises(UsageError) as caught:
        evaluation.worst_features(cluster=here.client)
    assert str(caught.value) == "a cluster looks at all lines: leave out metrics whose flags (f, p) select some"


def test_modes_that_show_lines(geval):
    message = (
        "geval: --cluster goes with scores, --worst-features or --most-worsening-features; lines are shown here\n"
    )
    words = ["-l", "--cluster", "local", "--out-directory", str(GAZETTE), "-t", "dev-0", "-o", "bigram"]
    assert geval(*words) == (2, "", message)
