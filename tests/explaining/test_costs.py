"""What features cost, how many documents they are on, and which are distinct: against formulas written out."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from resampled import worst_features

from geval_py import UsageError, evaluate
from geval_py.explaining.documents import Documents
from geval_py.reading.features import FeatureKinds

PROPERTY = settings(deadline=None, derandomize=True)


def ranked(words, losses, *, kinds=None, least=1, best=False, **wanted):
    """Rank the words of expected lines by perplexities."""
    return worst_features(
        [("", line, "") for line in words],
        [math.exp(loss) for loss in losses],
        worst_is_greatest=not best,
        kinds=kinds,
        least=least,
        losses=losses,
        best=best,
        **wanted,
    )


def table(features):
    rows = zip(*(column.tolist() for column in features.columns.values()), strict=True)
    return {
        name: dict(zip(features.columns, row, strict=True)) for name, row in zip(features.names, rows, strict=True)
    }


@PROPERTY
@given(st.lists(st.tuples(st.sampled_from(["a", "b", "a b"]), st.floats(0, 20)), min_size=2, max_size=30))
def test_perplexity_and_gain(lines):
    """exp of the mean loss; 1 - exp(-n_f/n (mean loss with - mean loss without))."""
    words, losses = zip(*lines, strict=True)
    for name, row in table(ranked(words, losses)).items():
        on, off = (
            [loss for word, loss in lines if (name.removeprefix("exp:") in word.split()) is has]
            for has in (True, False)
        )
        gain = len(on) / len(lines) * (np.mean(on) - np.mean(off))
        assert row["perplexity"] == pytest.approx(math.exp(np.mean(on)))
        assert row["gain"] == pytest.approx(1 - math.exp(-gain), abs=1e-9)
        has = np.array([name.removeprefix("exp:") in word.split() for word in words])
        apart = np.array(losses) - np.mean(off)
        influences = np.where(has, apart, apart * -len(on) / len(off)) - gain  # of a line on the gain
        half = 1.959964 * math.sqrt(np.sum(influences**2) / (len(lines) - 1) / len(lines))
        assert row["gain_low"] == pytest.approx(1 - math.exp(half - gain), rel=1e-5, abs=1e-5)
        assert row["gain_high"] == pytest.approx(1 - math.exp(-half - gain), rel=1e-5, abs=1e-5)


def test_infinite_losses():
    rows = table(ranked(["a", "b", "a", "b"], [math.inf, 1.0, 2.0, 3.0]))
    assert (rows["exp:a"]["perplexity"], rows["exp:b"]["perplexity"]) == (math.inf, pytest.approx(math.exp(2)))
    assert all(math.isnan(row["gain"]) for row in rows.values())


def test_documents():
    """On how many documents a feature is: of a pair it is not known."""
    documents = Documents.of("FileId", ["x", "x", "y", "z", "z"])
    rows = table(
        ranked(
            ["a b", "a", "a b", "b", "c"], [5.0, 1, 6, 2, 3], documents=documents, kinds=FeatureKinds(cartesian=True)
        )
    )
    assert {name: row["documents"] for name, row in rows.items() if "~~" not in name} == {
        "exp:a": 2, "exp:b": 3, "exp:c": 1,
    }  # fmt: skip
    assert [math.isnan(row["documents"]) for name, row in rows.items() if "~~" in name] == [True]


# Distinct features


def naive_selection(losses, columns, candidates):
    """Forward selection by least squares: the greatest z of the part of a column that those chosen do not tell."""
    chosen, explained = [], []
    whole = ((losses - losses.mean()) ** 2).sum()
    while True:
        design = np.column_stack([np.ones(len(losses)), *(columns[name] for name in chosen)])
        residual = losses - design @ np.linalg.lstsq(design, losses)[0]
        if chosen:
            explained.append(1 - (residual**2).sum() / whole)
        z = {}
        for name in candidates:
            apart = columns[name] - design @ np.linalg.lstsq(design, columns[name])[0]
            if (apart**2).sum() > 1e-6 and columns[name] @ (losses - losses.mean()) > 0:
                variance = (residual**2).sum() / (len(losses) - len(chosen) - 1)
                z[name] = (apart @ residual) / math.sqrt(variance * (apart**2).sum())
        best = max(z, key=z.get, default=None)
        if best is None or math.erfc(z[best] / math.sqrt(2)) / 2 >= 0.05 / len(candidates):
            return chosen, explained
        chosen.append(best)


@pytest.mark.parametrize("seed", range(4))
def test_the_selection_is_that_of_least_squares(seed):
    rng = np.random.default_rng(seed)
    has = rng.random((600, 6)) < [0.3, 0.2, 0.1, 0.2, 0.05, 0.3]
    has[:, 1] |= has[:, 0]  # redundant with the first
    losses = rng.exponential(2, 600) + has @ [1.0, 0.3, 1.5, 0, 2.0, -1.0]
    words = [" ".join(f"w{n}" for n in np.flatnonzero(row)) for row in has]
    every = ranked(words, losses.tolist())
    candidates = [name for name, q in zip(every.names, every.columns["q"], strict=True) if q < 0.05]
    columns = {f"exp:w{n}": has[:, n].astype(float) for n in range(6)}
    chosen, explained = naive_selection(losses, columns, candidates)
    found = ranked(words, losses.tolist(), distinct=True)
    assert found.names == chosen
    assert found.columns["explained"].tolist() == pytest.approx(explained)
    assert 1 <= len(chosen) < len(candidates) + 1
    assert found.columns["gain"].tolist() == [table(every)[name]["gain"] for name in chosen]


def test_the_best_lines_have_distinct_features_too():
    rng = np.random.default_rng(2)
    has = rng.random(400) < 0.3
    losses = (rng.exponential(2, 400) + 2 - 2 * has).tolist()
    words = ["good" if one else "bad" for one in has]
    assert ranked(words, losses, distinct=True).names == ["exp:bad"]
    assert ranked(words, losses, distinct=True, best=True).names == ["exp:good"]


def test_the_numbers_of_the_output_are_left_out():
    losses = [float(n % 7 + 9 * (n % 2)) for n in range(200)]
    items, kinds = (
        [("", "", f"w{n % 2}:0.{n % 2}5 :0.1") for n in range(200)],
        FeatureKinds(word_shapes=True, bigrams=True),
    )
    found = worst_features(items, losses, worst_is_greatest=True, kinds=kinds, losses=losses, distinct=True)
    assert found.names == ["out:w1"]


def test_without_losses_ranks_are_explained():
    """As of the differences to another output; and where a loss is infinite."""
    words = ["a" if n % 3 else "b" for n in range(90)]
    scores = [math.inf if n == 1 else float(n % 3) for n in range(90)]
    items = [("", word, "") for word in words]
    for losses in (None, scores):
        found = worst_features(items, scores, worst_is_greatest=True, losses=losses, distinct=True)
        assert found.names == ["exp:a"]


def test_nothing_is_distinct_in_noise():
    rng = np.random.default_rng(3)
    found = ranked([f"w{n % 5}" for n in range(100)], rng.exponential(1, 100).tolist(), distinct=True)
    assert (found.names, found.columns["explained"].tolist()) == ([], [])


def test_pairs_are_refused():
    with pytest.raises(UsageError) as caught:
        ranked(["a", "b"], [1.0, 2.0], distinct=True, kinds=FeatureKinds(cartesian=True))
    assert str(caught.value) == "distinct features are single ones, not pairs: leave out cartesian=…"


# From outside


@pytest.fixture
def challenge(tmp_path, monkeypatch):
    (tmp_path / "config.txt").write_text("--metric PerplexityHashed --in-header in-header.tsv\n")
    (tmp_path / "in-header.tsv").write_text("FileId\tText\n")
    (tmp_path / "dev-0").mkdir()
    (tmp_path / "dev-0/in.tsv").write_text("".join(f"f{n // 10}\tt{n % 3}\n" for n in range(60)))
    (tmp_path / "dev-0/expected.tsv").write_text("".join(f"{'hard' if n % 4 == 0 else 'easy'}\n" for n in range(60)))
    (tmp_path / "dev-0/out.tsv").write_text("".join(f"easy:0.{5 + n % 3} :0.{5 - n % 3}\n" for n in range(60)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(geval):
    return partial(geval, "-t", "dev-0", "-w")


def test_distinct_on_the_command_line(challenge, run):
    status, out, err = run("--distinct")
    frame = evaluate(challenge, "dev-0").worst_features(distinct=True)
    assert (status, [line.split("\t")[0] for line in out.splitlines()]) == (0, frame["feature"].tolist())
    assert out.startswith("exp:hard\t15\t")
    assert (
        err
        == f"geval: note: together, these explain {frame['explained'].iloc[-1]:.1%} of the variance between lines\n"
    )
    (challenge / "dev-0/out.tsv").write_text(":1\n" * 60)
    nothing = "geval: note: no feature is shown: none explains a significant part of the variance between lines\n"
    assert run("--distinct") == (0, "", nothing)
    refused = "geval: distinct features are single ones, not pairs: leave out --cartesian\n"
    assert run("--distinct", "--cartesian") == (2, "", refused)


def test_documents_on_the_command_line(challenge, run):
    status, plain, err = run("--documents", "FileId")
    assert [row.rsplit("\t", 1)[0] for row in plain.splitlines()] == run()[1].splitlines()
    assert (status, err) == (0, "")
    _, out, _ = run("--documents", "FileId", "--format", "csv")
    head, first, *_ = out.splitlines()
    assert head.endswith(",gain,gain_low,gain_high,documents")
    assert first.startswith("exp:hard,15,")
    assert first.endswith(",6")
    frame = evaluate(challenge, "dev-0").worst_features(documents=1)
    assert frame.set_index("feature")["documents"]["in<FileId>:f3"] == 1


def test_accuracy_has_no_perplexity(challenge):
    frame = evaluate(challenge, "dev-0", metric="Accuracy").worst_features()
    assert list(frame.columns) == ["feature", "count", "score", "p", "q"]
