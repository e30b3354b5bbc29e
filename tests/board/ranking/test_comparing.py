"""p-values are stored when an entry is scored, and are those of geval compare's approximate randomisation."""

import math
import random
from array import array
from datetime import timedelta
from itertools import combinations

import numpy as np
import pytest
from rows import START, Rows

from geval_py import score_file
from geval_py.board.database.schema import comparisons, evaluations
from geval_py.board.ranking import leaderboard as standings
from geval_py.board.ranking import order
from geval_py.board.submission import pack
from geval_py.explaining.statistics import Estimator, pair_tests, sample_of
from geval_py.scoring.evaluate import find_metric
from geval_py.scoring.metrics.base import LineStatistics

METRIC = find_metric("PerplexityHashed")


def expected_p_values(systems, samples, seed, metric=METRIC):
    statistics = [of if isinstance(of, LineStatistics) else LineStatistics((array("d", of),)) for of in systems]
    pairs = combinations(range(len(systems)), 2)
    tests = pair_tests(Estimator(sample_of(metric, statistics), samples, seed), pairs)
    return {pair: test.p_value for pair, test in tests.items()}


def stored_p_values(rows):
    return {(row.one_id - 1, row.other_id - 1): row.p for row in rows.rows(comparisons)}


@pytest.mark.parametrize("metric", ["BLEU", "WER", "MAP"])
def test_another_metric_is_tested_on_itself(tmp_path, metric):
    """Its first statistic, such as the number of right words, is neither the score nor a loss."""
    lines = [f"the {n % 3} dog {n % 5} sleeps well" for n in range(40)]
    one, other = lines[:30] + ["the dog"] * 10, ["a dog sleeps well"] * 10 + lines[10:25] + ["a"] * 15
    for name, of in (("expected", lines), ("one", one), ("other", other)):
        (tmp_path / f"{name}.tsv").write_text("".join(f"{line}\n" for line in of))
    board_rows, statistics = Rows(tmp_path, metric=metric, samples="200"), []
    for number, name in enumerate(("one", "other"), 1):
        score = score_file(tmp_path / f"{name}.tsv", tmp_path / "expected.tsv", metric=metric).scores[0]
        statistics.append(score.statistics)
        board_rows.submit(name, score.value)
        stored = {"losses": pack(score.statistics.columns), "lines": 40}
        board_rows.run(evaluations.update().where(evaluations.c.id == number).values(**stored))
    board_rows.refresh()
    stored = stored_p_values(board_rows)
    assert stored == expected_p_values(statistics, 200, 12345, find_metric(metric))
    assert stored[0, 1] < 0.05


def some_losses(seed, lines=30):
    chance = random.Random(seed)
    return [chance.expovariate(0.3) + 0.2 * seed for _ in range(lines)]


def compared(rows):
    return {(row.one_id, row.other_id) for row in rows.rows(comparisons)}


def submit_some(rows, number):
    """Submit systems that differ; gives their losses."""
    systems = [some_losses(seed) for seed in range(number)]
    for position, losses in enumerate(systems):
        rows.submit(f"s{position}", losses)
    return systems


def test_all_pairs_that_are_ranked_are_compared_once(rows, monkeypatch):
    systems = [*submit_some(rows, 3), some_losses(3)]
    rows.refresh()
    before = rows.rows(comparisons)
    rows.submit("s3", systems[3])
    rows.refresh()
    after = rows.rows(comparisons)
    assert stored_p_values(rows) == expected_p_values(systems, 50, 12345)
    assert set(before) < set(after)
    monkeypatch.setattr("geval_py.board.ranking.place_ranges.compare_pairs", None)
    rows.refresh()


@pytest.mark.parametrize("changed", [{"samples": "60"}, {"seed": "1"}], ids=["samples", "seed"])
def test_other_samples_and_seeds_are_other_comparisons(rows, changed):
    systems = submit_some(rows, 3)
    rows.refresh()
    rows.edit(**changed)
    rows.refresh()
    samples, seed = rows.board.settings.samples, rows.board.settings.seed
    found = [row for row in rows.rows(comparisons) if (row.samples, row.seed) == (samples, seed)]
    p_values = {(row.one_id - 1, row.other_id - 1): row.p for row in found}
    assert p_values == expected_p_values(systems, samples, seed)


def test_only_what_is_ranked_is_compared(rows):
    rows.submit("one", some_losses(5))  # 1
    rows.submit("two", some_losses(1))  # 2
    rows.submit("base", some_losses(2), baseline=True)  # 3
    rows.submit("none", None)  # 4
    rows.refresh()
    assert compared(rows) == {(1, 2)}
    rows.submit("one", some_losses(0))  # 5, which replaces 1
    rows.refresh()
    assert compared(rows) == {(1, 2), (2, 5)}


def test_each_test_and_phase_has_comparisons_of_its_own(rows):
    until = (START + timedelta(hours=5)).isoformat()
    rows.edit(tests="{test-A: {}, dev-0: {}}", phases=f"[{{name: main, until: {until}}}]")
    for seed, more in ((1, {}), (3, {"at": 6}), (1, {"test": "dev-0"})):  # 1 and 2, 3 and 4, 5 and 6
        rows.submit("one", some_losses(seed), **more)
        rows.submit("two", some_losses(seed + 1), **more)
    rows.refresh()
    assert compared(rows) == {(1, 2), (3, 4), (5, 6)}


def test_what_shows_no_digit_is_not_compared_until_it_does(rows):
    until = (START + timedelta(hours=5)).isoformat()
    rows.edit(tests="{test-A: {disclosed: 0}}", phases=f"[{{name: main, until: {until}}}]")
    submit_some(rows, 3)
    rows.refresh(START)
    assert compared(rows) == set()
    standings.standings(rows.board, now=START + timedelta(hours=6))
    assert len(compared(rows)) == 3


def test_two_submitters_of_the_same_content_have_one_evaluation_and_cannot_be_told_apart(rows):
    rows.submit("one", some_losses(1))
    rows.submit("two", some_losses(1))
    rows.submit("infinite", [math.inf] * 30)
    for tests, of_infinite in (("{test-A: {}}", (3, None, None)), ("{test-A: {visible: true}}", (3, 3, 3))):
        rows.edit(tests=tests)
        ranges = [(entry.place, entry.first, entry.last) for entry in rows.standings().entries]
        assert ranges == [(1, 1, 2), (1, 1, 2), of_infinite]
    assert [row.p for row in rows.rows(comparisons)] == [pytest.approx(2**-28)]  # of 30 infinite lines against none


@pytest.mark.parametrize(("lines", "more"), [(30, {"reference": "new answers"}), (20, {})], ids=["answers", "lines"])
def test_what_was_scored_with_different_answers_cannot_be_told_apart(rows, lines, more):
    code = rows.submit("one", some_losses(0))
    rows.submit("two", some_losses(9))
    rows.score_again(code, some_losses(9, lines), **more)
    rows.refresh()
    assert [row.p for row in rows.rows(comparisons)] == [1.0]


def test_of_a_long_ranking_the_first_are_compared(rows, monkeypatch):
    monkeypatch.setattr(order, "MAX_COMPARED", 3)
    submit_some(rows, 5)
    shown = rows.standings()
    assert len(compared(rows)) == 3
    assert [entry.first is None for entry in shown.entries] == [False, False, False, True, True]
    assert {entry.last for entry in shown.entries[:3]} <= {3, 4, 5}
    assert shown.notes[0] == "only the first 3 of 5 entries are compared with each other"


def test_forty_teams_can_be_told_apart(tmp_path):
    """Of 780 pairs, a counted p-value passes Holm's correction with 14,820 samples at least.

    The mean losses are of perplexities 9.9 to 82.6, and each team fails on other lines than the others.
    """
    rows, rng = Rows(tmp_path, samples="10000"), np.random.default_rng(4)
    hard = rng.exponential(1, 123)
    for number, mean in enumerate(np.linspace(math.log(9.9), math.log(82.6), 40)):
        losses = hard + rng.exponential(1, 123)
        rows.submit(f"team {number:02}", (losses * (mean / losses.mean())).tolist())
    entries = rows.standings().entries
    assert [entries[0].score, entries[-1].score] == [9.9, 82.6]
    assert (entries[0].first, entries[-1].last) == (1, 40)
    assert entries[0].last < 20 < entries[-1].first
    assert all(entry.last - entry.first < 33 for entry in entries)
    assert rows.standings().notes == ()
