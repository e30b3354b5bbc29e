"""Hidden answers cannot be read from what a board shows: each attack succeeds without a defence, and fails by default.

``pytest -s`` prints the share of buckets that each attack learns.
"""

import attackers
import pytest
from attackers import Season
from samples import files_in

from geval_py.board import site
from geval_py.board.operations import creation

LINES, BUCKETS = 40, 64
MOST = 0.1  # of the buckets that an attacker may learn in a season of a board with the settings of ``board init``


def new_season(folder, *, days, answers=1):
    belief = attackers.beliefs(LINES, BUCKETS, 1)
    challenge = attackers.write_season(folder, belief, answers)
    board = creation.create(folder / "board", challenge=challenge, answers=folder / "answers")
    return Season(board, folder, belief, days=days)


QUICK = [
    (attackers.by_variants, {}, False, 20), (attackers.by_descent, {"steps": 6}, True, 2),
    (attackers.by_infinity, {"most": 1}, False, 1),
]  # fmt: skip
OTHERS = [
    (attackers.by_spaced_masses, {"most": 6}, False, 2), (attackers.beyond_the_clip, {"steps": 6}, True, 2),
    (attackers.by_places, {"most": 1}, False, 1), (attackers.by_ranges, {"most": 1}, False, 1),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("case", [*QUICK, *(pytest.param(row, marks=pytest.mark.long) for row in OTHERS)])
def test_an_attack_reads_answers_without_a_defence_and_none_by_default(case, tmp_path, monkeypatch, capsys):
    """``lines``: at least so many are learnt without a defence; others of those that were read were believed before."""
    attack, more, ladder, lines = case
    defended = new_season(tmp_path / "defended", days=3)
    learnt = defended.learnt(attack(defended, **more))
    with monkeypatch.context() as patch:
        opened = new_season(tmp_path / "open", days=3)
        opened.board = attackers.undefended(opened.board, patch, ladder=ladder)
        guesses = attack(opened, **more)
    name = f"{attack.__name__} {more}".replace("_", " ")
    with capsys.disabled():
        print(f"\n{name}: {opened.learnt(guesses):.1%} of buckets learnt without a defence, {learnt:.1%} by default")
    assert learnt <= MOST
    assert round(opened.learnt(guesses) * LINES) >= lines


def published(season, *logs):
    """All that is published when some outputs were sent: the receipts and the pages."""
    receipts = [season.send(one) for one in logs]
    site.build(season.board, str(season.folder / "public"), now=season.now)
    return [(one.code, one.state, one.reason) for one in receipts], files_in(season.folder / "public")


@pytest.mark.slow
def test_no_page_and_no_receipt_of_a_hidden_score_depends_on_the_answers(tmp_path, monkeypatch):
    """What is rejected is so for any answers; what is too bad to be shown looks the same for any, on every page."""

    def with_answers(number, name):
        season = new_season(tmp_path / f"{name}{number}", days=3, answers=number)
        return season, [attackers.wasteful(season, attackers.knows_nothing(season), waste) for waste in (1.0, 0.7)]

    one, other = (published(season, *logs) for season, logs in (with_answers(n, "shown") for n in (1, 2)))
    assert one == other
    spaced = []
    with monkeypatch.context() as patch:
        for number in (1, 2):
            season, _ = with_answers(number, "open")
            season.board = attackers.undefended(season.board, patch)
            spaced.append(published(season, attackers.spaced(season, [0, 1], 1e-3, 1.0)))
    assert spaced[0][0] == spaced[1][0]
    assert spaced[0][1] != spaced[1][1]


@pytest.mark.slow
def test_the_best_attack_known_learns_few_answers_in_a_season(tmp_path, capsys):
    """Its share of a season is as in 30 days with gazette's 123 lines: 10 outputs for 40 lines."""
    season = new_season(tmp_path, days=10)
    learnt = season.learnt(attackers.by_threats(season))
    with capsys.disabled():
        print(f"\nby threats: {learnt:.1%} of buckets learnt by default, from {season.sent} outputs")
    assert 1 < season.sent <= 10
    assert learnt <= MOST
