"""Which features go with bad scores: against a naive ranking, scipy, and brute force."""

import math
from itertools import combinations, pairwise

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples
from resampled import worst_features

from geval_py import UsageError
from geval_py.explaining import feature_ranking, features
from geval_py.explaining import worst_features as worst_features_module
from geval_py.explaining.feature_ranking import rank_scores
from geval_py.explaining.significance import normal_cdf
from geval_py.reading.config import said_option
from geval_py.reading.features import FeatureKinds, split_tokens, word_shape

PROPERTY = settings(deadline=None, derandomize=True, max_examples=examples(100))


def rounded_scores(scores):
    return [0.0 if abs(score) < 1e-12 else float(f"{score:.11e}") for score in scores]


def naive_ranks(scores, greatest_first):
    """Rank items by score, the worst first (rank 1), ties share the mean rank: of 12 significant digits, or near 0."""
    rounded = rounded_scores(scores)
    return [
        sum(other > one if greatest_first else other < one for other in rounded) + (rounded.count(one) + 1) / 2
        for one in rounded
    ]


def naive_p(ranks, which):
    """U = R - n1(n1+1)/2, z = (U - n1 n2/2) / sqrt(n1 n2 (n+1)/12), p = Phi(z); None if all items have it."""
    n, n1 = len(ranks), len(which)
    n2 = n - n1
    if n2 == 0:
        return None
    u = sum(ranks[i] for i in which) - n1 * (n1 + 1) / 2
    return scipy.stats.norm.cdf((u - n1 * n2 / 2) / math.sqrt(n1 * n2 * (n + 1) / 12))


def naive_features(text, kinds):
    """Each distinct token, shape and bigram, as (kind, name)."""
    tokens = list(dict.fromkeys(text.replace(":", " ").split()))
    shapes = list(dict.fromkeys(map(word_shape, tokens))) if kinds.word_shapes else []
    found = {(0, token) for token in tokens} | {(1, shape) for shape in shapes}
    if kinds.bigrams:
        found |= {(2, "++".join(pair)) for pair in pairwise(tokens)}
        found |= {(3, "++".join(pair)) for pair in pairwise(shapes)}
    return found


def naive_fields(item, header):
    """Return an item's fields as (sort key, name, text): expected, output, then the columns by name, by number."""
    columns = item[0].split("\t")
    named = [((2, name), f"in<{name}>", text) for name, text in zip(header, columns, strict=False)]
    numbered = [((3, i + 1), f"in<{i + 1}>", columns[i]) for i in range(len(header), len(columns))]
    return [((0,), "exp", item[1]), ((1,), "out", item[2]), *named, *numbered]


def naive_row(name, which, ranks, scores):
    with np.errstate(invalid="ignore"):
        return name, len(which), np.mean([scores[i] for i in which]), naive_p(ranks, which)


def naive_worst(items, scores, greatest_first, header, kinds, least, least_cartesian):
    """Rank features as section 8 of the specification says, numbers aside: (name, count, mean, p)."""
    known = [i for i, score in enumerate(scores) if not math.isnan(score)]
    items, scores = [items[i] for i in known], [scores[i] for i in known]
    ranks = naive_ranks(scores, greatest_first)
    where = {}
    for i, item in enumerate(items):
        for key, field, text in naive_fields(item, header):
            for kind, token in naive_features(text, kinds):
                where.setdefault((key, kind, token, f"{field}:{token}"), []).append(i)
    ordered = sorted(where)
    rows = [naive_row(key[-1], where[key], ranks, scores) for key in ordered]
    printed = {row[0]: row for row in rows if least <= row[1] <= len(items) - least and row[3] is not None}
    pairs = []
    if kinds.cartesian:
        frequent = [key for key in ordered if len(where[key]) >= least_cartesian]
        for one, other in combinations(frequent, 2):
            both = sorted(set(where[one]) & set(where[other]))
            if both and least <= len(both) <= len(items) - least and len(both) < len(items):
                row = naive_row(f"{one[-1]}~~{other[-1]}", both, ranks, scores)
                pairs.append((row, {one[-1], other[-1]}))
    shown = []
    already = set()
    for row, halves in sorted([*((row, set()) for row in printed.values()), *pairs], key=lambda pair: pair[0][3]):
        if not halves & already:  # hidden once A or B alone was printed
            shown.append(row)
        already.add(row[0])
    return shown


WORDS = st.lists(st.sampled_from(["a", "b", "c", "A", "Ab", "12", ":", "ą"]), max_size=4).map(" ".join)
COLUMNS = st.lists(WORDS, min_size=1, max_size=3).map("\t".join)
SCORE = st.sampled_from([0.0, 1.0, 1 + 1e-15, 2.5, 2.5, math.nan, math.inf, -math.inf]) | st.floats(-1e6, 1e6)
SCORED = st.tuples(st.tuples(COLUMNS, WORDS, WORDS), SCORE)


@pytest.mark.slow
@settings(PROPERTY, max_examples=examples(150))
@given(
    scored=st.lists(SCORED, max_size=9), greatest_first=st.booleans(),
    header=st.sampled_from([(), ("b", "a"), ("z", "y", "x", "w")]), bigrams=st.booleans(), shapes=st.booleans(),
    pairs=st.booleans(), least=st.integers(0, 3), least_cartesian=st.sampled_from([None, 1, 2, 3]),
)  # fmt: skip
def test_features_are_ranked_as_the_specification_says(
    scored, greatest_first, header, bigrams, shapes, pairs, least, least_cartesian
):
    """Print by rising p: feature, n1, mean score, p. NaN p are left out. Ties in p: exp, out, then in by column
    (number; with a header, name); then by token. ``A~~B`` of two features that are both frequent enough, hidden once
    A or B alone was printed."""
    items, scores = [item for item, _ in scored], [score for _, score in scored]
    kinds = FeatureKinds(bigrams=bigrams, word_shapes=shapes, cartesian=pairs)
    how = {"header": header, "kinds": kinds, "least": least, "least_of_pair": least_cartesian}
    found = worst_features(iter(items), scores, worst_is_greatest=greatest_first, **how)
    least_of_pair = least if least_cartesian is None else least_cartesian
    want = naive_worst(items, scores, greatest_first, header, kinds, least, least_of_pair)
    assert found.names == [row[0] for row in want]
    assert found.columns["count"].tolist() == [row[1] for row in want]
    assert found.columns["score"].tolist() == pytest.approx([row[2] for row in want], rel=1e-9, abs=1e-9, nan_ok=True)
    assert found.columns["p"].tolist() == pytest.approx([row[3] for row in want], rel=1e-9)


@pytest.mark.slow
@PROPERTY
@given(scored=st.lists(SCORED, max_size=9), at_once=st.integers(1, 4), of_sums=st.integers(1, 5))
def test_parts_make_no_difference(scored, at_once, of_sums):
    items, scores = [item for item, _ in scored], [score for _, score in scored]
    kinds = FeatureKinds(bigrams=True, word_shapes=True, numerical=True, cartesian=True)
    whole = worst_features(items, scores, worst_is_greatest=True, kinds=kinds)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worst_features_module, "ITEMS_AT_ONCE", at_once)
        patch.setattr(features, "OCCURRENCES_AT_ONCE", of_sums)
        parts = worst_features(iter(items), scores, worst_is_greatest=True, kinds=kinds)
    assert parts.names == whole.names
    assert parts.columns["count"].tolist() == whole.columns["count"].tolist()
    assert parts.columns["p"].tolist() == whole.columns["p"].tolist()
    found, want = (of.columns["score"].tolist() for of in (parts, whole))
    assert found == pytest.approx(want, rel=1e-9, abs=1e-9, nan_ok=True)


@pytest.mark.slow
@PROPERTY
@given(st.lists(st.text().map(lambda s: s.replace("\n", "")) | st.text("aB9.(ą: \t\u00a0", max_size=9), max_size=5))
def test_shapes_of_lines_are_those_of_their_tokens(lines):
    want = ["\t".join(word_shape(token) for token in split_tokens(line)) for line in lines]
    shapes = features.text_shapes("".join(f"{line}\n" for line in lines)).decode().split("\n")[:-1]
    assert ["\t".join(f"SHAPE:{shape}" for shape in line.split("\t") if shape) for line in shapes] == want


def ranked(rows, *, scores=None, header=(), least=1, least_cartesian=None, **kinds):
    """Return the names of the features of (input, expected, output) rows, the worst first."""
    return worst_features(
        rows, range(len(rows)) if scores is None else scores, worst_is_greatest=True, header=header,
        kinds=FeatureKinds(**kinds), least=least, least_of_pair=least_cartesian,
    )  # fmt: skip


def test_the_columns_of_the_table():
    found = ranked([("", "a", "x"), ("", "b", "x"), ("", "b", "x")], scores=[1.0, 4.0, 5.0])
    frame = found.to_frame()
    assert list(frame.columns) == ["feature", "count", "score", "p", "q"]
    assert frame["feature"].tolist() == found.names == ["exp:b", "exp:a"]
    assert frame["count"].tolist() == [2, 1]
    assert frame["score"].tolist() == [4.5, 1.0]
    z = -1 / math.sqrt(2 * 1 * 4 / 12)  # U = 0 of 2
    assert frame["p"].tolist() == pytest.approx([normal_cdf(z), normal_cdf(-z)])
    assert frame["q"].tolist() == pytest.approx([2 * normal_cdf(z), normal_cdf(-z)])
    assert len(found) == 2


@pytest.mark.parametrize("least", [1, 2, 3])
def test_p_is_corrected_for_the_number_of_features_shown(least):
    """By Benjamini and Hochberg, after the filter by frequency, of the test with scipy's correction for ties."""
    items = [("x" * n, "a" if n % 3 else "b", f"c{n % 4}") for n in range(12)]
    scores = [n % 5 for n in range(12)]
    found = ranked(items, scores=scores, least=least)
    p_values = [tied_p(name, items, scores) for name in found.names]
    assert found.columns["q"] == pytest.approx(scipy.stats.false_discovery_control(p_values))
    assert found.columns["p"][0] > min(p_values)


@pytest.mark.long
def test_few_lists_with_pairs_have_a_false_find():
    """No word matters: at most 5 % of lists have a q below 0.05, though only pairs with a small p are shown."""
    rng, false = np.random.default_rng(1), 0
    shares = 1 / np.arange(1, 41)
    for _ in range(1000):
        texts = [" ".join(f"w{n}" for n in set(rng.choice(40, 6, p=shares / shares.sum()))) for _ in range(200)]
        items, losses = [("", text, "") for text in texts], rng.gamma(2, 0.85, 200)
        found = worst_features(items, losses, worst_is_greatest=True, kinds=FeatureKinds(cartesian=True), least=10)
        false += bool((found.columns["q"] < 0.05).any())
    print(f"\n{false / 1000:.1%} of lists have a false find")
    assert false <= 1000 * 0.05 + 3.1 * math.sqrt(1000 * 0.05 * 0.95)


def test_q_counts_the_pairs_that_are_not_shown():
    """They count as tests with a p of 1."""
    items = [("x" * n, "a b" if n % 3 else "b c", "d e") for n in range(12)]
    scores = [n * n % 11 for n in range(12)]
    found = ranked(items, scores=scores, cartesian=True)
    singles = ranked(items, scores=scores)
    both = combinations(singles.names, 2)
    on_both = [sum(has_feature(a, item) and has_feature(b, item) for item in items) for a, b in both]
    pairs = sum(0 < count < len(items) for count in on_both)
    assert len(found) < len(singles) + pairs
    p_values = [1.0] * (len(singles) + pairs - len(found))
    p_values += [tied_p(name, items, scores) for name in found.names]
    assert found.columns["q"] == pytest.approx(scipy.stats.false_discovery_control(p_values)[-len(found) :])


FIELDS = ["in<1>", "exp", "out"]


def has_feature(name, item):
    field, _, token = name.partition(":")
    return token in item[FIELDS.index(field)].split()


def tied_p(name, items, scores):
    """One-sided: the scores of the items with a feature, or with both of a pair, are the greater ones."""
    which = [all(has_feature(one, item) for one in name.split("~~")) for item in items]
    on, off = ([score for score, has in zip(scores, which, strict=True) if has is wanted] for wanted in (True, False))
    return scipy.stats.mannwhitneyu(on, off, alternative="greater", method="asymptotic", use_continuity=False).pvalue


@pytest.mark.long
def test_rare_tokens_of_very_many_lines_are_left_out(tmp_path, monkeypatch, geval):
    """Of 200,001 lines, a feature is on five; the rarest are counted before they are numbered."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dev-0").mkdir()
    numbers = range(200_001)
    files = {
        "in.tsv": (f"rare{n // 4} rare{n // 5}x {n % 100}" for n in numbers),
        "expected.tsv": map(str, numbers),
        "out.tsv": ("0" for _ in numbers),
    }
    for name, lines in files.items():
        (tmp_path / "dev-0" / name).write_text("".join(f"{line}\n" for line in lines))
    words = ["-t", "dev-0", "-m", "MSE", "-w"]
    status, out, err = geval(*words)
    note = "geval: note: features on fewer than 5 lines are left out (--min-frequency 1 shows them)\n"
    assert (status, err, out.count("\n")) == (0, note, 100 + 40_000)
    _, every, err = geval(*words, "--min-frequency", "1")
    rows = every.splitlines(keepends=True)
    assert (err, len(rows)) == ("", 100 + 200_001 + 40_001 + 50_001)
    assert out == "".join(row for row in rows if int(row.split("\t")[1]) >= 5)


def test_a_pair_of_what_is_too_rare_to_be_shown_alone():
    """Of two features that are both frequent enough: by --min-cartesian-frequency, here below --min-frequency."""
    rows = [("", "a", "b")] * 3 + [("", "c", "d")] * 4
    scores = [7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0]
    found = ranked(rows, scores=scores, least=3, least_cartesian=4, cartesian=True)
    assert found.names == ["exp:a", "out:b", "exp:c", "out:d"]
    rows = [("", text, "") for text in ("a b", "a b", "a", "b", "c")]
    for least, pairs in ((3, ["exp:a~~exp:b"]), (4, [])):
        found = ranked(rows, scores=[5.0, 4.0, 1.0, 2.0, 3.0], least_cartesian=least, cartesian=True)
        assert [name for name in found.names if "~~" in name] == pairs
    rows = [("", text, "") for text in ("a b", "a", "a", "c")]  # a is on too many of four lines
    assert "exp:a" not in ranked(rows, scores=[4.0, 3.0, 2.0, 1.0], least=2, cartesian=True).names


def numerical(texts, scores):
    """Return the numerical feature of expected lines with these texts, as (name, count, mean, p)."""
    items = [("", text, "") for text in texts]
    found = worst_features(items, scores, worst_is_greatest=True, kinds=FeatureKinds(numerical=True))
    rows = found.to_frame()[["feature", "count", "score", "p"]].itertuples(index=False, name=None)
    return [row for row in rows if row[0].startswith("exp:=")]


EIGHT = [8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0]
NUMERICAL = {
    "values, small ones are worse": (["1", "2", "3", "4", "5", "6", "7", "8"], EIGHT, ("exp:=-", 2, 7.5)),
    "values, great ones are worse": (["8", "7", "6", "5", "4", "3", "2", "1"], EIGHT, ("exp:=+", 2, 7.5)),
    "lengths, short ones are worse": (["a" * n for n in range(1, 9)], EIGHT, ("exp:=#-", 2, 7.5)),
    "lengths, long ones are worse": (["a" * n for n in range(9, 1, -1)], EIGHT, ("exp:=#+", 2, 7.5)),
    "a single text that is no number": (["10", "9", "8", "7", "6", "5", "4", "x"], EIGHT, ("exp:=#+", 2, 7.5)),
    "an empty text is no number": (["", "9", "80", "70", "60", "50", "40", "300"], EIGHT, ("exp:=#-", 2, 7.5)),
    "signs, points and exponents": (["-5", "-4.5", "0", "0.5", "1e0", "1E+1", " 20 ", "3e2"], EIGHT, ("exp:=-", 2, 7.5)),
    "a quarter, rounded down": (["1", "2", "3", "4", "5", "6", "7"], EIGHT[:7], ("exp:=-", 1, 8.0)),
    "less than four": (["1", "2", "3"], EIGHT[:3], ("exp:=-", 0, None)),
}  # fmt: skip


@pytest.mark.parametrize(("texts", "scores", "row"), NUMERICAL.values(), ids=NUMERICAL)
def test_numerical_features(texts, scores, row):
    """Each field's length (``=#+``, ``=#-``) or, if every item's field is a number, value (``=+``, ``=-``): the sign
    says which end scores worse; count floor(n/4), and the mean score of that extreme quarter."""
    ((name, count, mean, p),) = numerical(texts, scores)
    assert (name, count) == row[:2]
    assert mean == pytest.approx(math.nan if row[2] is None else row[2], nan_ok=True)
    assert 0 < p <= 1


@pytest.mark.parametrize("text", [".5", "5.", "+5", "0x1", "1e", "NaN", "inf", "1,5", "٣", "1_000", "- 5"], ids=repr)
def test_what_is_no_number(text):
    ((name, *_),) = numerical([text, "1", "1", "1", "10", "10", "10", "100"], EIGHT)
    assert name[:6] == "exp:=#"


def test_a_quarter_of_values_that_tie():
    """Where values tie, the better items are taken at the small end, the worse ones at the great end."""
    texts = ["1", "1", "1", "9", "9", "9", "9", "9"]
    assert numerical(texts, EIGHT)[0][:3] == ("exp:=-", 2, 6.5)
    assert numerical(texts[::-1], EIGHT)[0][:3] == ("exp:=+", 2, 7.5)


def test_a_column_that_some_lines_lack():
    """The quarter is that of the items that have the column, and so is the correlation."""
    rows = [(f"x\t{n}" if n < 5 else "x", "", "") for n in range(8)]
    found = ranked(rows, scores=EIGHT, header=("Text", "Year"), least=9, numerical=True)
    assert found.names == ["in<Year>:=-"]
    assert (found.columns["count"].tolist(), found.columns["score"].tolist()) == ([1], [8.0])
    want = scipy.stats.kendalltau([1, 2, 3, 4, 5], [0, 1, 2, 3, 4], method="asymptotic").pvalue
    assert found.columns["p"].tolist() == pytest.approx([want])


@PROPERTY
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=30))
def test_the_p_of_a_number_is_kendalls(rows):
    """Kendall's tau-b z with ties, two-sided p."""
    values, scores = zip(*rows, strict=True)
    want = scipy.stats.kendalltau(values, scores, method="asymptotic").pvalue
    found = numerical(list(map(str, values)), list(map(float, scores)))
    assert len(found) == (not math.isnan(want))
    if found:
        assert found[0][3] == pytest.approx(want, rel=1e-9)


@pytest.mark.parametrize(("scores", "ranks"), [
    ([], []), ([5.0], [1]), ([1.0, 3.0, 2.0], [3, 1, 2]), ([1.0, 1.0, 2.0], [2.5, 2.5, 1]), ([0.1 + 0.2, 0.3], [1.5, 1.5]),
    ([1.00000000000, 1.00000000001], [2, 1]), ([1.00000000000, 1.000000000001], [1.5, 1.5]),
    ([1e-11, 1e-11 * (1 + 1e-15), 0.0], [1.5, 1.5, 3]), ([5.7e-17, 0.0, -3e-13, 1e-12, 1e-11], [4, 4, 4, 2, 1]),
    ([math.inf, 1.0, math.inf, -math.inf], [1.5, 3, 1.5, 4]), ([-1.0, 0.0, -0.0], [3, 1.5, 1.5]), ([1e308, 1.7e308], [2, 1]),
], ids=str)  # fmt: skip
def test_ranks(scores, ranks):
    """The worst first (rank 1), ties share the mean rank: tied when equal to 12 significant digits, or below 1e-12,
    as a loss of 5.7e-17 and one of 0 (GEval 1.42.2 has 0 for both)."""
    values = np.array(scores, np.float64)
    assert rank_scores(values, greatest_first=True).tolist() == ranks
    assert rank_scores(-values, greatest_first=False).tolist() == ranks


@pytest.mark.parametrize(("module", "limit", "most", "what"), [
    (feature_ranking, "MAX_PAIRS", 10, "to show"), (features, "MAX_COUNTED", 5, "to count"),
])  # fmt: skip
def test_too_many_pairs_are_refused(module, limit, most, what, monkeypatch):
    """Of ten words, none makes more than nine pairs, which are counted one word at a time."""
    monkeypatch.setattr(module, limit, most)
    on_item = [{n for n in range(10) if item < 3 or n % 6 == item - 3} for item in range(9)]  # any two: on the first
    items = [("", " ".join(f"w{n}" for n in sorted(words)), "") for words in on_item]
    with pytest.raises(UsageError) as caught:
        worst_features(items, range(9), worst_is_greatest=False, kinds=FeatureKinds(cartesian=True))
    message = f"there are more than {most} pairs of features {what}\n  take fewer with "
    assert str(caught.value) == f"{message}min_cartesian_frequency=… or min_frequency=…"
    assert caught.value.sentence(said_option) == f"{message}--min-cartesian-frequency or --min-frequency"
