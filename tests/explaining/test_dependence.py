"""Simulations of lines that are alike by document: few trials always, many with ``--long``."""

import math
import tracemalloc
from collections import Counter

import numpy as np
import pytest
import scipy.stats

import geval_py
from geval_py import compare, evaluate
from geval_py.explaining.documents import find_dependence
from geval_py.explaining.statistics import spread_of_mean

FEW, MANY = 40, 1000  # trials


@pytest.fixture(params=[FEW, pytest.param(MANY, marks=pytest.mark.long)])
def trials(request):
    return request.param


def at_most(share, trials):
    """A share that chance exceeds once in a thousand runs, if the true one is as given."""
    return share + 3.1 * math.sqrt(share * (1 - share) / trials)


@pytest.fixture
def challenge(tmp_path):
    (tmp_path / "config.txt").write_text("--metric LogLossHashed --in-header in-header.tsv\n")
    (tmp_path / "dev-0").mkdir()

    def write(columns, **losses):
        """Write the columns of the input and outputs with these losses, at least 0; return the evaluations."""
        (tmp_path / "in-header.tsv").write_text("\t".join(columns) + "\n")
        rows = zip(*columns.values(), strict=True)
        (tmp_path / "dev-0/in.tsv").write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))
        (tmp_path / "dev-0/expected.tsv").write_text("a\n" * len(next(iter(losses.values()))))
        for name, values in losses.items():
            shares = np.exp(-values).tolist()
            lines = (f"a:{share!r} b:{1 - share!r}\n" for share in shares)
            (tmp_path / f"dev-0/out-{name}.tsv").write_text("".join(lines))
        return [evaluate(tmp_path, "dev-0", output=f"out-{name}.tsv") for name in losses]

    return write


def skewed(rng, lines):
    """Losses of lines, in nats, with a standard deviation of about 1.2."""
    return rng.gamma(2, 0.85, lines) + 1


def inputs(rng, files, lines):
    """The columns of an input: a genre of two values, a chapter, three columns that do not matter, and texts."""
    of_line = np.repeat(np.arange(files), lines)
    useless = {f"Useless{n}": rng.integers(0, 2, len(of_line)) for n in range(3)}
    genre = rng.permutation(np.arange(files) % 2)[of_line]
    return {"Genre": genre, "Chapter": of_line, **useless, "Text": np.arange(len(of_line))}


def test_the_true_column_is_chosen(trials, challenge):
    """Of 40 files of 15 lines with an effect of 0.3 nats, and a genre with one of 0.5 nats, the file is chosen."""
    rng, chosen, named = np.random.default_rng(1), [], []
    for _ in range(trials):
        columns = inputs(rng, 40, 15)
        effect = rng.normal(0, 0.3, 40)[columns["Chapter"]] + 0.5 * columns["Genre"]
        losses = np.maximum(skewed(rng, 600) + effect, 0.01)
        found = find_dependence(challenge(columns, one=losses))
        chosen.append(found.column)
        named.append(bool(found.coarse))
    print(f"\nChapter chosen in {chosen.count('Chapter') / trials:.1%}, the genre named in {np.mean(named):.1%}")
    assert 1 - chosen.count("Chapter") / trials <= at_most(0.1, trials)
    assert {*chosen} <= {"Chapter", ""}


@pytest.mark.filterwarnings("ignore:.*no guess at all would be better")
def test_whole_documents_are_dealt_out_to_genres(challenge):
    """Of files with an effect of 2 nats, a genre by chance has lines that are alike, but files that are not."""
    rng, named = np.random.default_rng(6), 0
    for _ in range(10):
        columns = inputs(rng, 40, 15)
        effect = rng.normal(4, 2, 40)[columns["Chapter"]]
        found = find_dependence(challenge(columns, one=np.maximum(skewed(rng, 600) + effect, 0.01)))
        named += bool(found.coarse)
        assert found.column == "Chapter"
    assert named <= 2


def test_false_alarms_are_rare(trials, challenge):
    """Without an effect, a column is rarely said to matter; in 45 % of cases, one of these three is taken to be safe."""
    rng, found, safe = np.random.default_rng(2), [], 0
    for _ in range(trials):
        columns = inputs(rng, 40, 15) | {"Page": np.arange(600) // 4, "Year": rng.integers(0, 25, 600)}
        pair = [skewed(rng, 600) for _ in range(2)]
        result = find_dependence(challenge(columns, one=pair[0], two=pair[1]))
        found.append(result.column if result.surely else "")
        safe += result.column != found[-1]
    print(f"\n{1 - found.count('') / trials:.1%} false alarms; a column is taken to be safe in {safe / trials:.1%}")
    assert 1 - found.count("") / trials <= at_most(0.05, trials)


OUTPUTS = [2, 4, 10, pytest.param(42, marks=pytest.mark.long)]


def alike_outputs(rng, outputs, effect):
    """The losses of outputs that find the same lines hard, 40 files of 15 lines, with an effect of the file."""
    hard = skewed(rng, 600) + rng.normal(0, effect, 40)[np.arange(600) // 15]
    return {f"o{n}": np.maximum(hard + rng.normal(0, 0.4, 600), 0.01) for n in range(outputs)}


@pytest.mark.parametrize("outputs", OUTPUTS)
def test_the_decision_hardly_depends_on_the_number_of_outputs(outputs, trials, challenge):
    rng, found = np.random.default_rng(5), {0.0: [], 0.25: []}
    trials = max(5, 4 * trials // (outputs + 6))
    for effect, columns in found.items():
        for _ in range(trials):
            evaluations = challenge(inputs(rng, 40, 15), **alike_outputs(rng, outputs, effect))
            result = find_dependence(evaluations)
            columns.append(result.column if result.surely else "")
    alarms, power = (np.mean([column != "" for column in columns]) for columns in found.values())
    print(f"\n{outputs} outputs: {alarms:.1%} false alarms, the effect is found in {power:.1%}")
    assert alarms <= at_most(0.05, trials)
    assert 1 - power <= at_most(0.45, trials)


def test_pairs_are_looked_at_one_by_one(challenge):
    """The figures of all pairs of forty outputs of 300,000 lines take six gigabytes."""
    rng = np.random.default_rng(5)
    evaluations = challenge(inputs(rng, 100, 20), **{f"m{n}": skewed(rng, 2000) for n in range(16)})
    find_dependence(evaluations)
    tracemalloc.start()
    find_dependence(evaluations)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 120 * 2000 * 24 / 3  # a third of what the figures of 120 pairs take


SAFE = (
    "lines with the same {} may have similar losses: to be safe, intervals and tests are computed by document, and an "
    "interval is {} by line"
)
DECLARE = "; add --documents {0} to config.txt to declare it"


@pytest.mark.parametrize(("seed", "columns", "note"), [
    (7, ["Chapter"],
     "intervals and tests are computed by line: lines with the same Chapter do not have notably similar losses"),
    (0, ["Chapter", "Page"],
     "intervals and tests are computed by line: lines with the same value in one of the columns Chapter, Page do not "
     "have notably similar losses"),
    (3, ["Chapter"], SAFE.format("Chapter", "up to 1.1 times as wide as")),
    (11, ["FileId"], SAFE.format("FileId", "about as wide as") + DECLARE.format("FileId")),
    (3, ["Page", "doc_id", "URL"], SAFE.format("doc_id", "up to 1.1 times as wide as") + DECLARE.format("doc_id")),
    (7, ["Chapter", "file of"],
     "intervals and tests are computed by line: lines with the same value in one of the columns Chapter, file of do "
     "not have notably similar losses"),
])  # fmt: skip
def test_how_documents_are_chosen_is_noted(seed, columns, note, challenge):
    """Columns of 40 chapters of 15 lines, or pages of 4, without an effect."""
    size = dict.fromkeys(columns, 15) | {"Page": 4, "file of": 4}
    evaluations = challenge(
        {name: np.arange(600) // size[name] for name in columns}, **alike_outputs(np.random.default_rng(seed), 2, 0.0)
    )
    assert compare(evaluations).notes == (note,)
    assert compare(evaluations, documents=False).notes == ()


def test_a_column_of_few_documents_is_not_taken_by_its_name(challenge):
    rng = np.random.default_rng(7)
    evaluations = challenge({"FileId": np.arange(600) // 100}, **alike_outputs(rng, 2, 0.0))
    assert compare(evaluations).documents is None


@pytest.mark.parametrize(("declared", "column"), [
    ("", "FileId"), ("--documents Chapter", "Chapter"), ("--documents 2", "Chapter"), ("--no-documents", None),
])  # fmt: skip
def test_a_declared_column_goes_before_all_others(declared, column, challenge, tmp_path):
    rng = np.random.default_rng(7)
    columns = {"FileId": np.arange(600) // 15, "Chapter": np.arange(600) // 20}
    losses = alike_outputs(rng, 2, 0.0)
    challenge(columns, **losses)
    with (tmp_path / "config.txt").open("a") as file:
        file.write(f"{declared}\n")
    evaluations = challenge(columns, **losses)
    assert compare(evaluations).documents == column
    assert evaluations[0].interval().documents == {"FileId": 40, "Chapter": 30, None: None}[column]
    assert compare(evaluations, documents="FileId").documents == "FileId"
    assert compare(evaluations, documents=False).documents is None
    if column == "Chapter":
        assert compare(evaluations).notes == ()


# Documents, lines of each, design effect of the differences, columns that do not matter
CHOICES = [
    *((12, 50, effect, useless) for effect in (1.6, 2, 1) for useless in (0, 5, 20)),
    *((40, 15, 1.6, useless) for useless in (0, 5, 20)),
]


@pytest.mark.parametrize(("documents", "lines", "effect", "useless"), CHOICES)
def test_the_level_where_the_column_is_not_known(documents, lines, effect, useless, trials, challenge):
    """Two outputs without a difference, as good on all documents together, but not on each."""
    rng, rejected, chosen = np.random.default_rng(8), [], Counter()
    trials //= 1 if trials == MANY else 5
    of_line, shared = np.repeat(np.arange(documents), lines), (effect - 1) / (lines - 1)
    for _ in range(trials):
        columns = {"Chapter": of_line}
        for n in range(useless):
            columns[f"Useless{n}"] = rng.permutation(of_line.size) % rng.choice([12, 30, 100, 200])
        change = np.sqrt(shared) * rng.normal(size=documents)[of_line]
        change += np.sqrt(1 - shared) * rng.normal(size=of_line.size)
        one = skewed(rng, of_line.size) + 2
        pair = challenge(columns, one=one, two=np.maximum(one + 0.3 * change, 0.01))
        result = compare(pair, samples=20)
        p_values = {by: _p(compare(pair, samples=20, documents=by)) for by in (False, "Chapter")}
        is_similar = "may have similar" not in result.notes[0]
        rejected.append([*p_values.values(), _p(result) if is_similar else p_values[False], _p(result)])
        chosen[result.documents] += 1
    by_line, true, holm_only, own = (np.array(rejected) < 0.05).mean(axis=0)
    case = f"{documents} x {lines}, design effect {effect}, {useless} useless columns"
    print(f"\n{case}: by line {by_line:.1%}, true column {true:.1%}, Holm only {holm_only:.1%}, compare {own:.1%}")
    print(chosen.most_common(3))
    assert own <= at_most(0.065, trials)


def test_differences_that_depend_on_documents(trials, challenge):
    """A true null hypothesis is rejected as often as it should be, though nobody names the column."""
    rng, rejected, by_line = np.random.default_rng(3), [], []
    for _ in range(trials):
        columns = inputs(rng, 40, 15)
        one = skewed(rng, 600) + 1.5
        two = one + rng.normal(0, 0.35, 40)[columns["Chapter"]] + rng.normal(0, 0.25, 600)
        pair = challenge(columns, one=one, two=np.maximum(two, 0.01))
        rejected.append(_p(compare(pair, samples=400)) < 0.05)
        by_line.append(_p(compare(pair, samples=400, documents=False)) < 0.05)
    print(f"\nrejected in {np.mean(rejected):.1%}; by line, in {np.mean(by_line):.1%}")
    assert np.mean(rejected) <= at_most(0.065, trials)
    assert np.mean(by_line) > 0.3


def _p(comparison):
    return next(system.p_randomisation for system in comparison.systems if system.p_randomisation is not None)


SIZES = {
    "equal": lambda rng, documents: np.ones(documents),
    "lognormal": lambda rng, documents: rng.lognormal(0, 1.5, documents),
    "Zipf": lambda rng, documents: 1 / np.arange(1, documents + 1),
    "one has 60 %": lambda rng, documents: np.r_[1.5 * (documents - 1), np.ones(documents - 1)],
}
ROWS = [
    *((kind, 0.8, documents) for kind in ("equal", "lognormal", "Zipf") for documents in (5, 12, 40)),
    ("one has 60 %", 0.8, 12),
    *(("lognormal", 0.2, documents) for documents in (5, 12, 40)),
]


@pytest.mark.parametrize(("kind", "effect", "documents"), ROWS)
def test_the_coverage_of_intervals(kind, effect, documents, trials):
    """1,200 lines in documents: the interval holds the true mean in at least 93 % of trials."""
    rng = np.random.default_rng(documents)
    held, uncorrected = [], []
    for _ in range(trials):
        shares = SIZES[kind](rng, documents)
        of_line = np.repeat(np.arange(documents), np.maximum(1, np.round(1200 * shares / shares.sum())).astype(int))
        losses = rng.normal(0, effect, documents)[of_line] + skewed(rng, len(of_line)) - 2.7
        held.append(abs(losses.mean()) <= spread_of_mean(losses, of_line).half_width)
        sums = np.bincount(of_line, losses - losses.mean())
        deviation = math.sqrt(documents / (documents - 1) * np.sum(sums**2)) / len(losses)
        uncorrected.append(abs(losses.mean()) <= scipy.stats.t.ppf(0.975, documents - 1) * deviation)
    of = f"{kind}, {effect}, {documents} documents"
    print(f"\n{of}: {np.mean(held):.1%}; without the correction {np.mean(uncorrected):.1%}")
    assert 1 - np.mean(held) <= at_most(0.07, trials)


def test_a_frame_has_the_intervals_of_a_comparison(challenge, tmp_path):
    """Only the difference of both outputs depends on the chapter, so each alone would have an interval by line."""
    rng = np.random.default_rng(6)
    columns = inputs(rng, 40, 15)
    one, effect = skewed(rng, 600) + 2, np.repeat(rng.normal(0, 0.6, 40), 15)
    single = challenge(columns, one=one, two=one + effect)
    outputs = geval_py.evaluate_all(tmp_path, "dev-0")
    table, frame = compare(outputs, samples=20).to_frame(), outputs.to_frame(intervals=True)
    both = frame.merge(table, on="output")
    assert both["LogLossHashed_low"].tolist() == both["low"].tolist()
    assert both["LogLossHashed_high"].tolist() == both["high"].tolist()
    assert [single[0].interval().documents, compare(outputs, samples=20).documents] == [None, "Chapter"]
