"""Phases with their own tests, digits and ladders; where a ladder holds a score back; the best variant alone."""

import math
import re

import pytest
from raising import refused
from rows import START, Rows, others_of
from sqlalchemy import select
from test_ladder import losses, rounded

from geval_py.board import site
from geval_py.board.database.schema import disclosures, outputs, submissions
from geval_py.board.ranking import leaderboard
from geval_py.board.site import pages, view
from geval_py.board.site.rendering import what_it_takes
from geval_py.cli.board import boards as shown_by

TESTS = "{dev-0: {visible: true}, test-A: {disclosed: 3, ladder: true, step: 0}}"
DEV, FINAL = "2027-01-02T12:00:00Z", "2027-01-03T12:00:00Z"
OF_DEV = "tests: [dev-0], submissions_a_day: 20, variants: 20"
OF_FINAL = "tests: [test-A], submissions_a_day: 2"
PHASES = f"[{{name: dev, until: {DEV}, {OF_DEV}}}, {{name: final, until: {FINAL}, {OF_FINAL}}}]"
TWO = f"[{{name: dev, until: {DEV}, disclosed: 4, ladder: false}}, {{name: final, until: {FINAL}}}]"
OPEN = START.replace(day=3)  # in the phase final
HELD = "held back if the latest submission is not significantly better, so an earlier score is shown"


@pytest.fixture
def rows(tmp_path, database):
    return Rows(tmp_path, tests=TESTS, phases=TWO, database=database)


def test_a_phase_has_its_own_settings_and_the_boards_where_it_has_none(rows):
    rows.edit(phases=PHASES, submissions_a_day="1")
    dev, final, after = rows.board.settings.by_phase.values()
    names = [[test.name for test in of.tests] for of in (dev, final, after)]
    assert (names, final.tests[0].ladder) == ([["dev-0"], ["test-A"], ["dev-0", "test-A"]], True)
    assert [(of.submissions_a_day, of.variants) for of in (dev, final, after)] == [(20, 20), (2, 5), (1, 5)]
    rows.edit(phases=TWO)
    dev, final, after = (of.test("test-A") for of in rows.board.settings.by_phase.values())
    own = [(test.disclosed, test.final_digits, test.ladder) for test in (dev, final, after)]
    assert own == [(4, 4, False), (3, 3, True), (3, 3, True)]


def test_a_ladder_does_not_cross_phases(rows):
    """A final table showed the score of the phase before it, and the submitter lost a place."""
    rows.edit(phases=f"[{{name: dev, until: {DEV}}}, {{name: final, until: {FINAL}}}]")
    for name, mean, at in (("one", 2.0, 0), ("one", 2.5, 1), ("one", 3.0, 30), ("two", 2.9, 30)):
        rows.submit(name, losses(mean), at=at)
    assert rows.table("test-A", phase="dev", now=OPEN) == [(1, "one", 7.39)]
    assert rows.table("test-A", phase="final", now=OPEN) == [(1, "two", 18.2), (2, "one", 20.1)]


def test_each_phase_shows_its_digits_and_has_its_ladder(rows):
    for at in (0, 30):
        rows.submit("one", losses(3.0), at=at)
        rows.submit("one", losses(3.1), at=at + 1)
    for phase, scores in (("dev", [20.09, 22.2]), ("final", [20.1, 20.1])):
        assert [score for *_, score in rows.table("test-A", phase=phase, by="submission", now=OPEN)] == scores


def test_a_phase_without_a_test_has_no_table_and_no_figure_of_it(rows):
    rows.submit("one", losses(3.0), at=0)
    rows.edit(phases=PHASES)
    rows.refresh(OPEN)
    assert rows.rows(disclosures) == []
    with refused("the phase `dev` has no test `test-A`\n  it has dev-0"):
        rows.standings("test-A", phase="dev", now=OPEN)


def test_the_default_is_the_first_test_of_the_phase_and_the_last_phase_of_a_test(rows):
    rows.edit(phases=PHASES)
    rows.submit("one", losses(3.0), test="dev-0")
    rows.submit("one", losses(3.0), at=30)
    in_final = rows.standings(now=OPEN)
    assert (in_final.test, in_final.phase) == ("test-A", "final")
    of_dev = rows.standings("dev-0", now=OPEN)
    assert (of_dev.phase, [entry.submitter for entry in of_dev.entries]) == ("dev", ["one"])
    later = rows.standings()
    assert (later.test, later.phase) == ("test-A", "final")
    assert later.notes[0] == "this is the final table of final; later submissions are in post-deadline"


def test_a_table_says_where_a_ladder_holds_a_score_back(rows):
    for name, second in [("one", 2.999), ("two", 2.0)]:
        rows.submit(name, losses(3.0), at=30)
        rows.submit(name, losses(second), at=31)
    table = rows.standings("test-A", phase="final", now=OPEN)
    assert [(entry.submitter, entry.held) for entry in table.entries] == [("two", False), ("one", True)]
    (held,) = (column for column in leaderboard.columns_of(table) if column.name == "held")
    assert held.text(table.entries[1], table.shown_digits) == "held back"
    assert any(HELD in sentence for sentence in shown_by.legend(table))
    assert "ladder" in [column.style for column in leaderboard.shown_columns(table)]
    rows.submit("one", losses(1.9), at=32)
    table = rows.standings("test-A", phase="final", now=OPEN)
    assert [(entry.submitter, entry.held) for entry in table.entries] == [("one", False), ("two", False)]
    assert HELD not in " ".join(shown_by.legend(table))
    assert "ladder" not in [column.style for column in leaderboard.shown_columns(table)]


def shown_variants(rows):
    """The variants with a disclosed figure, in order of arrival, and the figures."""
    query = select(outputs.c.variant, disclosures.c.value).join_from(disclosures, outputs).join(submissions)
    return [tuple(row) for row in rows.run(query.order_by(submissions.c.arrived, outputs.c.id))]


@pytest.mark.parametrize(("test", "shown"), [
    ("{}", ["k=1"]), ("{show: all}", ["", "k=1", "k=2"]), ("{visible: true}", ["", "k=1", "k=2"]),
    ("{visible: true, show: best}", ["k=1"]), ("{disclosed: 0}", [""]),
])  # fmt: skip
def test_of_hidden_answers_only_the_best_variant_has_a_score(tmp_path, test, shown):
    rows = Rows(tmp_path, tests=f"{{test-A: {test}}}", also="[LogLossHashed]")
    rows.submit("one", *({"PerplexityHashed": of, "LogLossHashed": 1.0} for of in (30.0, 20.0, 25.0)))
    rows.refresh()
    variants = dict.fromkeys(variant for variant, _ in shown_variants(rows))
    assert list(variants) == shown
    with view.loaded(rows.board, now=START) as seen:
        (submission,) = seen.submissions
        assert [output.variant for output in submission.outputs if output.figures] == shown
        variants = [row[pages.OUTPUT_NAMES.index("variant")] for row in pages.output_rows(seen)]
    assert list(dict.fromkeys(variants)) == shown


def test_which_variant_is_the_best_is_not_told_where_its_score_is_not(tmp_path):
    rows = Rows(tmp_path, tests="{test-A: {ladder: true, step: 0}}")
    rows.submit("one", losses(7.5), losses(7.2), losses(7.4), at=0)  # worse than knowing nothing
    rows.submit("one", losses(3.1), losses(3.0), at=1)
    rows.submit("one", losses(3.5), losses(3.2), at=2)  # held back
    rows.refresh()
    assert shown_variants(rows) == [("", math.inf), ("k=1", 20.09), ("", 20.09)]


def test_a_score_worse_than_that_of_knowing_nothing_is_infinite_and_has_nothing_else(tmp_path):
    rows = Rows(tmp_path, also="[LogLossHashed]", samples="400")
    for name, mean in [("one", 3.0), ("two", 7.0), ("three", 7.5), ("knows nothing", 10 * math.log(2))]:
        rows.submit(name, {"PerplexityHashed": losses(mean), "LogLossHashed": mean})
    table = rows.standings()
    ranked = [("one", 1, 20.09), ("knows nothing", 2, 1024.0), ("two", 3, math.inf), ("three", 3, math.inf)]
    assert [(entry.submitter, entry.place, entry.score) for entry in table.entries] == ranked
    for entry in table.entries[2:]:
        assert (entry.output.shown.low, entry.first, entry.groups) == (None, None, ())
        assert others_of(entry, "LogLossHashed") == {"LogLossHashed": None}
    assert "a score worse than 1024, the PerplexityHashed without any knowledge, is shown as infinite" in table.notes
    advice = what_it_takes(table, table.entries[2])
    assert "The score is worse than 1024, the score of an output without any knowledge." in advice
    rows.edit(tests="{test-A: {visible: true}}")
    assert [entry.score for entry in rows.standings().entries] == [20.09, 1024.0, 1097.0, 1808.0]


def test_so_it_is_where_higher_is_better(tmp_path):
    rows = Rows(tmp_path, metric="LikelihoodHashed")
    for name, score in [("one", 0.1), ("knows nothing", 1 / 1024), ("two", 0.0009)]:
        rows.submit(name, score)
    assert rows.table() == [(1, "one", 0.1), (2, "knows nothing", 0.0009766), (3, "two", -math.inf)]


def test_it_is_no_rung_of_a_ladder(tmp_path):
    rows = Rows(tmp_path, tests="{test-A: {ladder: true, disclosed: 15, step: 0}}")
    for at, mean in enumerate([7.5, 7.2, 3.0, 7.3]):
        rows.submit("one", losses(mean), at=at)
    rows.refresh()
    assert [value for _, value in shown_variants(rows)] == [math.inf, math.inf, *[rounded(losses(3.0))] * 2]


def test_with_a_ladder_the_ends_of_an_interval_have_a_digit_less(tmp_path):
    rows = Rows(tmp_path, tests="{test-A: {ladder: true, disclosed: 2}}")
    rows.submit("one", losses(3.0))
    (entry,) = rows.standings().entries
    assert entry.output.shown == (20.0, 10.0, 30.0)


def test_pages_with_several_phases_write_each_score_with_the_digits_of_its_phase(rows, tmp_path):
    rows.submit("one", losses(2.5, 0.1), at=0)
    rows.submit("two", losses(2.0, 0.1), at=30)
    site.build(rows.board, str(tmp_path / "public"), now=OPEN)
    for page in ("compare", "progress"):
        text = (tmp_path / "public" / f"{page}.test-A.html").read_text(encoding="utf-8")
        found = re.findall(r'<td class="number">([0-9][^<]*)</td>', text)
        assert [one for one in found if "." in one] == ["7.39", "6.6–8.2", "12.18", "10.9–13.5"]


def test_a_phase_of_the_future_has_no_page(rows):
    rows.edit(phases=PHASES)
    rows.submit("one", losses(3.0), test="dev-0")
    rows.refresh(START)
    with view.loaded(rows.board, now=START) as seen:
        assert list(seen.standings) == [("dev-0", "dev")]
        assert [test.name for test in seen.tests] == ["dev-0"]
    with view.loaded(rows.board, now=OPEN) as seen:
        assert list(seen.standings) == [("dev-0", "dev"), ("test-A", "final")]
        assert (seen.front(), seen.front("dev-0"), seen.front("test-A")) == ("final", "dev", "final")
