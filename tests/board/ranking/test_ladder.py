"""The ladder: a submitter's shown score moves only when it is surely better (Blum and Hardt, 2015)."""

import math

import numpy as np
import pytest
from rows import NOW, Rows, others_of, perplexity

from geval_py.board.database.schema import disclosures
from geval_py.board.ranking.disclosure import Ladder
from geval_py.board.site.rendering import what_it_takes

LADDER = "{test-A: {ladder: true, disclosed: 15, step: 0}}"
LINES = 100


def reader(column):
    return lambda: (np.array(column), None)


def losses(mean, spread=0.0):
    return [mean + (spread if line % 2 else -spread) for line in range(LINES)]


@pytest.fixture
def rows(tmp_path, database):
    return Rows(tmp_path, tests=LADDER, database=database)


def shown_scores(rows):
    rows.refresh()
    return [row.value for row in rows.rows(disclosures)]


def rounded(of):
    return float(f"{perplexity(of):.14e}")


@pytest.mark.parametrize(("first", "second", "moves"), [
    (losses(3.0), losses(2.9), True), (losses(3.0), losses(3.0), False), (losses(3.0), losses(3.1), False),
    (losses(3.0), losses(2.9, 0.49), True),  # by 0.1, more than 2 s / sqrt(n) = 0.098
    (losses(3.0), losses(2.9, 0.51), False),  # by 0.1, less than 0.102
    ([3.0] * 100, [0.0] + [3.0] * 99, False),  # a single line, however much better it is
    ([3.0] * 100, [0.0] * 4 + [3.0] * 96, True),  # it takes four
    ([30.0] * 50 + [3.0] * 50, [25.0] * 50 + [3.0] * 50, False),  # all above the bound
    ([30.0] * 50 + [3.0] * 50, [19.0] * 50 + [3.0] * 50, True),
    ([3.0] * 100, [1.0] * 99 + [math.inf], False),  # surely better up to the bound, and yet an infinite score
    ([math.inf] * 2 + [3.0] * 98, [2.0] * 100, True),
    ([math.inf] * 10 + [3.0] * 90, [math.inf] + [2.0] * 99, False),  # the figure would stay infinite
    ([19.0, 90.0] * 50, [19.0, 20.0] * 50, False),  # better by the losses as they are, not by the clipped ones
    ([20.0] * 100, [18.0] * 90 + [90.0] * 10, False),  # better by the clipped losses alone
])  # fmt: skip
def test_the_shown_score_moves_when_the_mean_loss_falls_by_more_than_two_standard_errors(first, second, moves):
    ladder = Ladder()
    steps = [ladder.climb(n, perplexity(of), reader(of)) for n, of in enumerate([first, second])]
    assert steps == [0, 1 if moves else 0]


SMALL_STEPS = [(3.0, 0.0), (2.98, 0.2), (2.97, -0.2), (2.95, 0.2), (2.9, -0.2), (2.86, -0.2)]


# With the same loss wasted on all lines any improvement is significant, and would tell a yes or no.
@pytest.mark.parametrize(("rules", "steps", "shown"), [
    ({"fall": 0.1}, [(3.0,), (2.89,)], [0, 1]), ({"fall": 0.1}, [(3.0,), (2.91,)], [0, 0]),
    ({"digits": 2}, [(4.0,), (3.999,), (3.9,)], [0, 0, 2]),  # 54.6, 54.54 and 49.4, shown as 55, 55 and 49
    ({}, SMALL_STEPS, [0, 0, 0, 3, 3, 5]),  # two standard errors: 0.04 to the first, 0.08 between 0.2 and -0.2
], ids=["a step", "less than a step", "the same figure", "many small steps that come to a sure one"])  # fmt: skip
def test_the_shown_score_moves_by_a_step_that_its_digits_show(rules, steps, shown):
    ladder = Ladder(**rules)
    assert [ladder.climb(n, perplexity(losses(*of)), reader(losses(*of))) for n, of in enumerate(steps)] == shown


def test_what_is_shown_of_a_submission_is_the_best_so_far(rows):
    steps = [losses(3.0), losses(2.99, 1.0), losses(3.5), losses(2.0), losses(2.1)]
    for at, of in enumerate(steps):
        rows.submit("one", of, at=at)
    best = [rounded(steps[0])] * 3 + [rounded(steps[3])] * 2
    assert shown_scores(rows) == best
    assert rows.table() == [(1, "one", best[3])]
    assert [score for *_, score in rows.table(by="submission")] == sorted(best)


def test_the_interval_and_the_other_metrics_are_of_the_same_submission(tmp_path, database):
    rows = Rows(tmp_path, tests="{test-A: {ladder: true}}", also="[LogLossHashed]", database=database)
    rows.submit("one", {"PerplexityHashed": losses(3.0), "LogLossHashed": 3.0}, at=0)
    rows.submit("one", {"PerplexityHashed": losses(2.99, 1.0), "LogLossHashed": 2.99}, at=1)
    entries = rows.standings(by="submission").entries
    assert len({(*e.output.shown, *others_of(e, "LogLossHashed").values()) for e in entries}) == 1
    assert len({e.output.evaluation_id for e in entries}) == 1


def test_each_submitter_and_baseline_has_a_ladder_of_its_own(rows):
    for name, more in [("one", {}), ("two", {}), ("two", {"baseline": True}), ("two", {"baseline": True})]:
        rows.submit(name, losses(3.0 if name == "one" else 2.99, 1.0 if name == "two" else 0.0), **more)
    assert shown_scores(rows) == [rounded(losses(3.0)), *[rounded(losses(2.99, 1.0))] * 3]


def test_an_earlier_arrival_that_is_added_later_changes_what_follows(rows):
    rows.submit("one", losses(2.99, 1.0), at=5)
    assert shown_scores(rows) == [rounded(losses(2.99, 1.0))]
    rows.submit("one", losses(3.0), at=1)
    assert shown_scores(rows) == [rounded(losses(3.0))] * 2


def test_so_does_one_that_is_withdrawn_and_one_that_is_scored_again(rows):
    first = rows.submit("one", losses(3.0), at=0)
    second = rows.submit("one", losses(2.99, 1.0), at=1)
    assert shown_scores(rows) == [rounded(losses(3.0))] * 2
    rows.score_again(second, losses(2.0))
    assert shown_scores(rows) == [rounded(losses(3.0)), rounded(losses(2.0))]
    rows.withdraw(first)
    assert shown_scores(rows) == [rounded(losses(2.0))]


def test_a_metric_where_higher_is_better_climbs_too(tmp_path):
    rows = Rows(tmp_path, tests=LADDER, metric="LikelihoodHashed")
    for at, mean in enumerate([3.0, 3.1, 2.0]):
        rows.score_again(rows.submit("one", 0.5, at=at), losses(mean), score=math.exp(-mean))
    assert shown_scores(rows) == [float(f"{math.exp(-mean):.14e}") for mean in (3.0, 3.0, 2.0)]


@pytest.mark.parametrize(("metric", "tests", "scores", "shown"), [
    ("BLEU", "{test-A: {ladder: true, disclosed: 3}}", [0.5, 0.54, 0.56, 0.55], [0.5, 0.5, 0.56, 0.56]),
    ("Improvement@0.5", LADDER, [-30.0, -40.0, 0.5, 0.4, 800.0], [-30.0, -30.0, 0.5, 0.5, 800.0]),
], ids=["by a tenth of the way to the best", "without a best score"])  # fmt: skip
def test_a_metric_that_is_not_made_of_losses_climbs_too(tmp_path, metric, tests, scores, shown):
    rows = Rows(tmp_path, tests=tests, metric=metric)
    for at, score in enumerate(scores):
        rows.submit("one", score, at=at)
    assert shown_scores(rows) == shown


def test_what_it_would_take_tells_of_the_shown_score_alone(rows):
    rows.submit("one", losses(3.0), at=0)
    rows.submit("one", losses(2.99, 1.0), at=1)
    rows.submit("two", losses(2.0), at=2)
    table = rows.standings(now=NOW)
    assert f"{perplexity(losses(2.99, 1.0)):.3f}" not in " ".join(what_it_takes(table, table.entries[1]))
