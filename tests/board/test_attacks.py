"""Hidden answers cannot be read from what a board shows: each attack succeeds without a defence, and fails by default.

``pytest -s`` prints the share of buckets that each attack learns; ``--long`` plays a season of 30 days on gazette.
"""

import collections
import lzma
import math
import re

import attackers
import numpy as np
import pytest
from attackers import Season
from gazette import SOURCE, TEST, hide_answers

from geval_py.board import site
from geval_py.board.operations import creation

LINES, BUCKETS = 40, 64
MOST = 0.1  # of the buckets that an attacker may learn in a season of a board with the settings of ``board init``


def new_season(folder, *, days, answers=1):
    belief = attackers.beliefs(LINES, BUCKETS, 1)
    challenge = attackers.write_season(folder, belief, answers)
    board = creation.create(folder / "board", challenge=challenge, answers=folder / "answers")
    return Season(board, folder, belief, days=days)


@pytest.mark.parametrize(("attack", "more", "ladder", "lines"), [
    (attackers.by_variants, {}, False, 20), (attackers.by_variants, {"intervals": True}, False, 5),
    (attackers.by_spaced_masses, {"most": 6}, False, 2), (attackers.by_descent, {"steps": 6}, True, 2),
    (attackers.beyond_the_clip, {"steps": 6}, True, 2), (attackers.by_infinity, {"most": 1}, False, 1),
    (attackers.by_places, {"most": 1}, False, 1), (attackers.by_ranges, {"most": 1}, False, 1),
    (attackers.by_rejection, {"most": 1}, False, 1), (attackers.by_parameters, {}, False, 5),
])  # fmt: skip
def test_an_attack_reads_answers_without_a_defence_and_none_by_default(
    attack, more, ladder, lines, tmp_path, monkeypatch, capsys
):
    """``lines``: at least so many are learnt without a defence; others of those that were read were believed before."""
    defended = new_season(tmp_path / "defended", days=3)
    learnt = defended.learnt(attack(defended, **more))
    with monkeypatch.context() as patch:
        opened = new_season(tmp_path / "open", days=3)
        rejects = attack is attackers.by_rejection
        opened.board = attackers.undefended(opened.board, patch, ladder=ladder, rejects=rejects)
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
    files = sorted(path for path in (season.folder / "public").rglob("*") if path.is_file())
    pages = {str(path.relative_to(season.folder / "public")): path.read_bytes() for path in files}
    return [(one.code, one.state, one.reason) for one in receipts], pages


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


def test_the_best_attack_known_learns_few_answers_in_a_season(tmp_path, capsys):
    """Its share of a season is as in 30 days with gazette's 123 lines: 10 outputs for 40 lines."""
    season = new_season(tmp_path, days=10)
    learnt = season.learnt(attackers.by_threats(season))
    with capsys.disabled():
        print(f"\nby threats: {learnt:.1%} of buckets learnt by default, from {season.sent} outputs")
    assert 1 < season.sent <= 10
    assert learnt <= MOST


def rows_of(name):
    """The words of a set of gazette: those on the left, those on the right, the answer."""
    with lzma.open(SOURCE / name / "in.tsv.xz", "rt", encoding="utf-8", newline="\n") as file:
        columns = [line.rstrip("\n").split("\t")[-2:] for line in file]
    answers = (SOURCE / name / "expected.tsv").read_text(encoding="utf-8").splitlines()
    for (left, right), answer in zip(columns, answers, strict=True):
        yield *(re.findall(r"\S+", side.replace("\\n", " ")) for side in (left, right)), answer


def believed_of_gazette(buckets=1024):
    """A model of words between two words, from the training set; its perplexity on test-A is about 80."""
    counts = collections.defaultdict(collections.Counter)
    seen = set()
    for left, right, answer in rows_of("train"):
        words = [*left, answer, *right]
        for n in range(2, len(words) - 1):
            around = tuple(words[n - 2 : n + 2])
            if around not in seen:
                seen.add(around)
                for key in keys_of(*around[:2], words[n + 1]):
                    counts[key][words[n]] += 1
    beliefs = []
    for line, (left, right, _) in enumerate(rows_of(TEST)):
        belief = np.full(buckets, 1.0 / buckets)
        for key in keys_of(*["", "", *left][-2:], [*right, ""][0]):
            total = sum(counts[key].values())
            if total:
                found = np.zeros(buckets)
                for word, count in counts[key].items():
                    found[attackers.bucket(word, line, buckets)] += count / total
                share = total / (total + 3 * len(counts[key]))
                belief = (1 - share) * belief + share * found
        beliefs.append(belief)
    return np.array(beliefs)


def keys_of(before, left, right):
    """What a word stands beside, the least telling first."""
    return (), ("left", left), ("right", right), (before, left), ("between", left, right)


@pytest.mark.long
def test_a_season_of_30_days_with_the_answers_of_gazette(tmp_path, capsys):
    challenge, answers = hide_answers(tmp_path)
    board = creation.create(tmp_path / "board", challenge=challenge, answers=answers)
    belief = believed_of_gazette()
    for attack in (attackers.by_threats, attackers.by_spaced_masses, attackers.by_infinity, attackers.by_places):
        folder = tmp_path / attack.__name__
        folder.mkdir()
        (folder / "answers").symlink_to(answers)
        fresh = creation.create(folder / "board", challenge=challenge, answers=answers)
        season = Season(fresh, folder, belief, days=30)
        learnt = season.learnt(attack(season))
        with capsys.disabled():
            print(f"\n{attack.__name__}: {learnt:.1%} of 123 buckets learnt, from {season.sent} outputs")
        assert learnt <= MOST
    assert board.settings.submissions_a_day == 1
    assert math.isclose(board.settings.tests[0].step, 0.2)
