"""q of features, and the intervals of their gains, where lines are alike by document."""

import json
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from resampled import worst_features

from geval_py import score
from geval_py.cli import main
from geval_py.explaining.documents import Documents
from geval_py.explaining.significance import benjamini_hochberg
from geval_py.reading.features import FeatureKinds
from geval_py.reading.items import ScoredItem

TRIALS = 300


def texts_of(rng, of_line, words=150):
    """Texts of eight words a line, which documents have in shares of their own."""
    frequencies = 1 / np.arange(1, words + 1)
    shares = rng.dirichlet(0.3 * words * frequencies / frequencies.sum(), of_line.max() + 1)
    return [" ".join(f"w{n}" for n in rng.choice(words, 8, p=shares[document])) for document in of_line]


@pytest.mark.long
@pytest.mark.parametrize(("documents", "lines", "effect"), [(12, 50, 0.8), (40, 15, 0.8), (40, 15, 0.25)])
def test_the_share_of_lists_with_a_false_find(documents, lines, effect):
    """Documents are hard or easy, and no word matters: at most 10 % of lists have a q below 0.05."""
    rng = np.random.default_rng(documents)
    of_line = np.repeat(np.arange(documents), lines)
    false: dict[bool, list[bool]] = {True: [], False: []}
    for _ in range(TRIALS):
        inputs = [f"file{document}\t{text}" for document, text in zip(of_line, texts_of(rng, of_line), strict=True)]
        losses = np.maximum(0, rng.normal(0, effect, documents)[of_line] + rng.gamma(2, 0.85, len(of_line)) + 2)
        outputs = [f"a:{p!r} b:{1 - p!r}" for p in np.exp(-losses).tolist()]
        result = score(outputs, ["a"] * len(outputs), metric="LogLossHashed", inputs=inputs)
        for by_line, column in ((False, 1), (True, False)):
            found = result.worst_features(min_frequency=10, documents=column)
            words = found[found["feature"].str.contains("w")]
            false[by_line].append(bool((words["q"] < 0.05).any()))
    by_document, by_line = np.mean(false[False]), np.mean(false[True])
    print(f"\n{documents} documents of {lines}, {effect}: {by_document:.1%} of lists, by line {by_line:.1%}")
    assert by_document <= 0.1 + 3.1 * math.sqrt(0.09 / TRIALS)


def example(seed=1, documents=12, lines=20, effect=1.0):
    """Items with three words, losses, and documents; the word "bad" costs so much."""
    rng = np.random.default_rng(seed)
    of_line = np.repeat(np.arange(documents), lines)
    texts = [" ".join(np.array(["bad", "usual", "rare"])[rng.random(3) < (0.3, 0.8, 0.1)]) for _ in of_line]
    losses = rng.normal(0, 1, documents)[of_line] + rng.gamma(2, 0.85, len(of_line))
    losses += effect * np.array(["bad" in text for text in texts])
    return [ScoredItem(text, "a", "x:1") for text in texts], losses, Documents.of("1", of_line.tolist())


def ranked(items, losses, documents, **more):
    known, of_line = losses.tolist(), documents.of_line.tolist()
    found = worst_features(items, known, worst_is_greatest=True, least=10, losses=known, documents=of_line, **more)
    return {name: n for n, name in enumerate(found.names)}, found


def test_it_is_the_permutation_within_documents():
    """p of a feature, before the correction, is how often lines dealt out within documents have as bad ranks."""
    items, losses, documents = example(effect=0.2)
    places, found = ranked(items, losses, documents)
    p_values = unadjusted(found.columns["q"])
    rng = np.random.default_rng(1)
    ranks = scipy.stats.rankdata(losses.reshape(documents.count, -1), axis=1)
    for word in ("bad", "usual", "rare"):
        has = np.array([word in item.input.split() for item in items]).reshape(ranks.shape)
        dealt = [(rng.permuted(ranks, axis=1) * has).sum() for _ in range(4000)]
        exact = np.mean(np.array(dealt) >= (ranks * has).sum())
        assert p_values[places[f"in<1>:{word}"]] == pytest.approx(exact, abs=0.03)


def unadjusted(q_values):
    """Undo the correction where no q is that of a greater p."""
    places = np.argsort(q_values)
    return {place: q_values[place] * rank / len(places) for rank, place in enumerate(places.tolist(), 1)}


def test_the_interval_of_a_gain_is_by_document():
    """Each line adds what is left of it when the gain is taken; these are summed over documents."""
    items, losses, documents = example()
    places, found = ranked(items, losses, documents)
    for word in ("bad", "usual", "rare"):
        has = np.array([word in item.input.split() for item in items])
        of_others = losses[~has].mean()
        gain = losses.mean() - of_others
        share = has.mean()
        left = np.where(has, losses - of_others - gain, -share / (1 - share) * (losses - of_others) - gain)
        sums = np.bincount(documents.of_line, left)
        error = math.sqrt((sums**2).sum() * 12 / 11) / len(losses)
        half = scipy.stats.t.ppf(0.975, 11) * error
        shown = [found.columns[name][places[f"in<1>:{word}"]] for name in ("gain", "gain_low", "gain_high")]
        assert shown == pytest.approx([-math.expm1(-end) for end in (gain, gain - half, gain + half)])


def test_a_feature_of_one_document_has_no_q():
    items, losses, documents = example()
    items = [item._replace(input=f"{item.input} own") if n < 12 else item for n, item in enumerate(items)]
    places, found = ranked(items, losses, documents)
    own = places["in<1>:own"]
    assert (found.columns["count"][own], found.columns["documents"][own]) == (12, 1)
    assert math.isnan(found.columns["q"][own])
    assert not np.isnan(np.delete(found.columns["q"], own)).any()


def test_unknown_p_values_are_no_tests():
    q_values = benjamini_hochberg(np.array([0.01, math.nan, 0.04, 0.03]))
    assert q_values == pytest.approx([0.03, math.nan, 0.04, 0.04], nan_ok=True)
    assert np.isnan(benjamini_hochberg(np.array([math.nan]))).all()


@pytest.fixture
def challenge(tmp_path, monkeypatch):
    items, losses, documents = example(effect=2.0)
    (tmp_path / "dev-0").mkdir()
    (tmp_path / "config.txt").write_text("--metric LogLossHashed --in-header in-header.tsv\n")
    (tmp_path / "in-header.tsv").write_text("FileId\tText\n")
    rows = enumerate(zip(documents.of_line.tolist(), items, strict=True))
    texts = (f"{document}\t{item.input} u{n}\n" for n, (document, item) in rows)
    (tmp_path / "dev-0/in.tsv").write_text("".join(texts))
    (tmp_path / "dev-0/expected.tsv").write_text("a\n" * len(items))
    shares = np.exp(-losses - 2).tolist()
    (tmp_path / "dev-0/out.tsv").write_text("".join(f"a:{p!r} b:{1 - p!r}\n" for p in shares))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_on_the_command_line(challenge, capsys):
    words = ["-t", "dev-0", "-w", "--min-frequency", "10"]

    def shown(*more):
        assert main([*words, *more]) == 0
        return capsys.readouterr()

    by_line, err = shown()
    assert (by_line.split("\t")[0], err) == ("in<Text>:bad", "")
    assert shown("--no-documents")[0] == by_line
    out, err = shown("--format", "json")
    assert err == ""
    features = {one["feature"]: one for one in json.loads(out)["features"]}
    assert features["in<Text>:bad"]["documents"] == 12
    assert features["in<Text>:bad"]["q"] < 0.05 < features["in<Text>:usual"]["q"]
    assert features["in<FileId>:3"]["q"] is None
    out, err = shown("--format", "json", "--no-documents")
    assert err == ""
    assert json.loads(out)["features"][0].keys().isdisjoint({"documents"})
    rows = [line.split("\t") for line in shown("--documents", "FileId")[0].splitlines()]
    assert [row[:4] for row in rows] == [line.split("\t") for line in by_line.splitlines()]
    assert {row[0]: row[4] for row in rows}["in<FileId>:3"] == ""


def test_pairs_have_no_q_by_document():
    items, losses, documents = example(effect=0.0)
    both = np.array([{"bad", "usual"} <= set(item.input.split()) for item in items])
    places, found = ranked(items, losses + 5.0 * both, documents, kinds=FeatureKinds(cartesian=True))
    pair = places["in<1>:bad~~in<1>:usual"]
    assert pair < places["in<1>:bad"]
    assert np.isnan([found.columns["q"][pair], found.columns["documents"][pair]]).all()
    assert found.columns["gain_low"][pair] > 0
    assert not math.isnan(found.columns["q"][places["in<1>:bad"]])


PROPERTY = settings(deadline=None, derandomize=True)


def ranked_words(words, losses, *, kinds=None, least=1, **wanted):
    """Rank the words of expected lines by perplexities."""
    return worst_features(
        [("", line, "") for line in words], [math.exp(loss) for loss in losses], worst_is_greatest=True, kinds=kinds,
        least=least, losses=losses, **wanted,
    )  # fmt: skip


def table(found):
    rows = zip(*(column.tolist() for column in found.columns.values()), strict=True)
    return {name: dict(zip(found.columns, row, strict=True)) for name, row in zip(found.names, rows, strict=True)}


@PROPERTY
@given(st.lists(st.tuples(st.sampled_from(["a", "b", "a b"]), st.floats(0, 20)), min_size=2, max_size=30))
def test_perplexity_and_gain(lines):
    """exp of the mean loss; 1 - exp(-n_f/n (mean loss with - mean loss without))."""
    words, losses = zip(*lines, strict=True)
    for name, row in table(ranked_words(words, losses)).items():
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
    rows = table(ranked_words(["a", "b", "a", "b"], [math.inf, 1.0, 2.0, 3.0]))
    assert (rows["exp:a"]["perplexity"], rows["exp:b"]["perplexity"]) == (math.inf, pytest.approx(math.exp(2)))
    assert all(math.isnan(row["gain"]) for row in rows.values())
