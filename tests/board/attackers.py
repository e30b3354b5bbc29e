"""A season on a real board, and attackers who read hidden answers from all that it shows.

An attacker knows the code, has a belief about each line's word (a share for each bucket), and writes outputs as
logarithms of the buckets. What it learns is its share of right guesses at the end, less that of its first guesses.
"""

import math
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import mmh3
import numpy as np
from samples import write
from sqlalchemy import func, select

from geval_py.board.database.schema import disclosures, outputs, submissions, submitters
from geval_py.board.operations.receipts import QuotaError
from geval_py.board.operations.submissions import add
from geval_py.board.ranking import disclosure, leaderboard
from geval_py.board.ranking.leaderboard import standings
from geval_py.board.settings import ALL

TEST, ME, FRIEND = "test-A", "mallory", "friend"
START = datetime(2027, 3, 1, 12, tzinfo=UTC)
NEVER = 1e6  # nats: so improbable that the score is infinite
DISASTER = 30.0  # nats that no other line can make up for


def bucket(word, line, buckets):
    """The bucket of a word on a line, counted from 0."""
    return mmh3.hash(word, line + 1, signed=False) % buckets


def beliefs(lines, buckets, seed):
    """What a model of the text believes: on some lines it is nearly sure, on most it is not."""
    chance = np.random.default_rng(seed)
    ranks = np.arange(1, buckets + 1)
    rows = [chance.permutation(ranks ** -chance.uniform(0.7, 2.2)) for _ in range(lines)]
    return np.array([row / row.sum() for row in rows])


def word_table(line, buckets):
    """A word for each bucket of a line: anyone can find them."""
    found = {}
    number = 0
    while len(found) < buckets:
        found.setdefault(bucket(f"w{number}", line, buckets), f"w{number}")
        number += 1
    return [found[one] for one in range(buckets)]


def words_for(belief, seed):
    """Words that are drawn by what is believed."""
    chance = np.random.default_rng(seed)
    buckets = belief.shape[1]
    for line, row in enumerate(belief):
        yield word_table(line, buckets)[chance.choice(buckets, p=row)]


def write_season(folder, belief, seed):
    """Write a challenge whose hidden words are as likely as is believed."""
    lines, buckets = belief.shape
    challenge = folder / "challenge"
    write(challenge / "README.md", "# Guess the word\n\nA word is missing.\n")
    write(challenge / "config.txt", f"--metric PerplexityHashed{buckets.bit_length() - 1}\n")
    write(challenge / TEST / "in.tsv", "".join(f"left {n}\tright {n}\n" for n in range(lines)))
    write(folder / "answers" / TEST / "expected.tsv", "".join(f"{word}\n" for word in words_for(belief, seed)))
    return challenge


def undefended(board, patch, *, ladder=False):
    """The board as it was, and worse: each score has four digits, also absurd ones, and anything may be sent."""
    patch.setattr(disclosure, "uninformed_score", lambda metric: None)
    patch.setattr(leaderboard, "uninformed_score", lambda metric: None)
    test = replace(board.settings.tests[0], disclosed=4, ladder=ladder, show=ALL, step=0.0)
    settings = replace(board.settings, tests=(test,), submissions_a_day=0, variants=1000)
    return replace(board, settings=settings)


class SeasonOverError(Exception):
    """The season is over."""


class Season:
    """Days on which outputs are sent to a board, each answered by the attacker's row of the leaderboard."""

    def __init__(self, board, folder, belief, *, days):
        self.board, self.folder, self.belief, self.days = board, folder, belief, days
        self.lines, self.buckets = belief.shape
        answers = (folder / "answers" / TEST / "expected.tsv").read_text(encoding="utf-8").splitlines()
        self.truth = np.array([bucket(word, line, self.buckets) for line, word in enumerate(answers)])
        self.words = [word_table(line, self.buckets) for line in range(self.lines)]
        self.day = self.sent = self.count = 0
        self.states = []

    @property
    def now(self):
        return START + timedelta(days=self.day)

    def send(self, *outputs, name=ME):
        """Send a submission of some variants, on the first day that has room for it."""
        self.count += 1
        source = self.folder / "sent" / f"{name}-{self.count}"
        for number, logs in enumerate(outputs):
            variant = f"out-n={number}.tsv" if len(outputs) > 1 else "out.tsv"
            rows = zip(self.words, normalised(logs).tolist(), strict=True)
            text = "".join(
                " ".join(f"{word}:{value!r}" for word, value in zip(*row, strict=True) if value > -math.inf) + "\n"
                for row in rows
            )
            write(source / TEST / variant, text)
        while self.day < self.days:
            try:
                receipt = add(self.board, str(source), submitter=name, at=self.now, now=self.now)
            except QuotaError:
                self.day += 1
            else:
                self.sent += 1
                self.states.append(receipt.state)
                return receipt
        raise SeasonOverError

    def figures(self):
        """The figures that are shown of the last submission's variants, by variant: the score, the interval's ends."""
        columns = (outputs.c.variant, disclosures.c.value, disclosures.c.low, disclosures.c.high)
        last = select(func.max(submissions.c.id)).join(submitters).where(submitters.c.name == ME).scalar_subquery()
        query = select(*columns).join(outputs, outputs.c.id == disclosures.c.output_id)
        with self.board.reading() as connection:
            rows = connection.execute(query.where(outputs.c.submission_id == last)).all()
        return {variant: figures for variant, *figures in rows}

    def score(self):
        """The score that is shown of the last submission, None for one that is not."""
        shown = self.figures().get("", (None,))[0]
        return shown if shown is not None and math.isfinite(shown) else None

    def row(self):
        entries = standings(self.board, now=self.now).entries
        return next(entry for entry in entries if entry.submitter == ME)

    def learnt(self, guesses):
        """The share of lines that are guessed right, less that of what was believed at first."""
        right = (guesses == self.truth).mean() - (self.belief.argmax(axis=1) == self.truth).mean()
        return float(right)


def normalised(logs):
    """Logarithms whose exponentials add up to 1 on each line."""
    top = logs.max(axis=1, keepdims=True)
    return logs - top - np.log(np.exp(logs - top).sum(axis=1, keepdims=True))


def knows_nothing(season):
    return np.full((season.lines, season.buckets), -math.log(season.buckets))


# Scores as numbers: the masses of a line's buckets are spaced, so that the score says which bucket it is.


def spaced(season, lines, resolution, waste=0.0):
    """An output that is uniform but on some lines: there the loss grows from bucket to bucket by a spacing.

    The spacing of each line is as large as all that the lines before it can make up. ``waste`` is what all lines lose
    on a bucket that hardly is the right one.
    """
    logs = knows_nothing(season)
    step = 2.0 * season.lines * resolution
    for line in lines:
        logs[line] = -step * np.arange(season.buckets)
        step *= season.buckets
    return wasteful(season, logs, waste) if waste else normalised(logs)


def wasteful(season, logs, waste):
    """Lower the masses of all buckets, on all lines or each line by its own waste, for the least believed one."""
    masses = np.exp(normalised(logs) - np.reshape(waste, (-1, 1)))
    least = season.belief.argmin(axis=1)[:, np.newaxis]
    np.put_along_axis(masses, least, 0.0, axis=1)
    np.put_along_axis(masses, least, np.maximum(1.0 - masses.sum(axis=1, keepdims=True), math.exp(-NEVER)), axis=1)
    return np.log(np.maximum(masses, math.exp(-700.0)))


def read_spaced(logs, lines, score, guesses):
    """Find the buckets of some lines, the most spaced last, whose losses a score tells."""
    if score is None or not math.isfinite(score):
        return
    others = np.delete(logs, lines, axis=0)
    left = math.log(score) * len(logs) + np.median(others, axis=1).sum()
    for line in reversed(lines):
        rest = [other for other in lines if other < line]
        low = sum(-logs[other].max() for other in rest)
        known = (
            np.abs(-logs[line] + low - left)
            if not rest
            else np.where(-logs[line] + low <= left + 1e-9, left + logs[line], math.inf)
        )
        guesses[line] = int(known.argmin())
        left += logs[line, guesses[line]]


def by_variants(season):
    """All variants in one submission, each of which reads one line from the score."""
    guesses = season.belief.argmax(axis=1)
    sent = [spaced(season, [line], 1e-3) for line in range(season.lines)]
    with suppress(SeasonOverError):
        season.send(*sent)
        for variant, (score, *_) in season.figures().items():
            line = int(variant.removeprefix("n=") or 0)
            read_spaced(sent[line], [line], score, guesses)
    return guesses


def by_spaced_masses(season, at_once=3, most=None):
    """Each output reads some lines at once, whose spacings differ by the number of buckets."""
    guesses = season.belief.argmax(axis=1)
    with suppress(SeasonOverError):
        for first in range(0, most or season.lines, at_once):
            lines = list(range(first, min(first + at_once, season.lines)))
            logs = spaced(season, lines, 1e-3)
            season.send(logs)
            read_spaced(logs, lines, season.score(), guesses)
    return guesses


def by_descent(season, bottom=0.0, steps=30):
    """Each output is better than the one before, so that a ladder moves, and reads one line above the bottom."""
    guesses = season.belief.argmax(axis=1)
    shown = None
    with suppress(SeasonOverError):
        for step in range(min(steps, season.lines)):
            waste = np.full(season.lines, 14.0 * (1 - step / steps))
            waste[step] = max(bottom, 0.1)
            logs = wasteful(season, spaced(season, [step], 1e-3), waste)
            season.send(logs)
            before, shown = shown, season.score()
            if shown != before:
                read_spaced(logs, [step], shown, guesses)
    return guesses


def beyond_the_clip(season, steps=30):
    """As by descent; each line that is read loses so much that its losses are all clipped."""
    return by_descent(season, 25.0, steps)


# Scores as answers: yes or no. A line's candidates are halved by each.


def bisected(season, ask, most=3):
    """Find the buckets of the least sure lines by questions: is the right bucket one of these?"""
    guesses = season.belief.argmax(axis=1)
    with suppress(SeasonOverError):
        for line in np.argsort(season.belief.max(axis=1))[:most]:
            candidates = np.arange(season.buckets)
            while len(candidates) > 1:
                half = candidates[::2]
                candidates = half if ask(line, half) else candidates[1::2]
            guesses[line] = candidates[0]
    return guesses


def by_infinity(season, most=3):
    """The score is infinite if the right bucket has no probability."""

    def ask(line, half):
        logs = knows_nothing(season)
        logs[line] = -NEVER
        logs[line, half] = 0.0
        season.send(logs)
        (figures,) = season.figures().values()
        return figures[0] is not None and math.isfinite(figures[0])

    return bisected(season, ask, most)


def by_places(season, most=3):
    """A friend knows nothing; who is ahead?"""
    season.send(knows_nothing(season), name=FRIEND)

    def ask(line, half):
        logs = knows_nothing(season)
        logs[line] = -DISASTER
        logs[line, half] = 0.0
        receipt = season.send(logs)
        entries = standings(season.board, now=season.now, by="submission").entries
        ahead = next(entry for entry in entries if entry.code == receipt.code or entry.submitter == FRIEND)
        return ahead.submitter == ME and ahead.place != next(e for e in entries if e.submitter == FRIEND).place

    return bisected(season, ask, most)


def by_ranges(season, most=3):
    """A friend is as bad as the attacker on all lines but seven; are the two told apart?"""
    base = 10.0

    def ask(line, half):
        nonlocal base
        base *= 0.9
        waste = np.full(season.lines, base)
        season.send(wasteful(season, knows_nothing(season), waste), name=FRIEND)
        waste[(line + np.arange(7)) % season.lines] += 0.05
        logs = knows_nothing(season)
        logs[line, half] += 0.3
        logs[line] -= normalised(logs)[line].min() - logs[line].min()
        season.send(wasteful(season, logs, waste))
        groups = [set(entry.groups) for entry in standings(season.board, now=season.now).entries]
        return len(groups) < 2 or bool(groups[0] & groups[1])

    return bisected(season, ask, most)


def by_threats(season):
    """The best attack known. A waste on all lines makes any score; less of it surely moves a ladder.

    Each output wastes less by a step, and is a disaster on one line unless its bucket is one of some: the score moves
    if it is. The cheapest questions are the likely ones that are seldom answered by yes, since each yes costs a step.
    """
    belief = season.belief.copy()
    step = max(season.board.settings.tests[0].step, 0.01) * 1.02
    losses = -np.log(season.belief)
    expected = (season.belief * losses).sum(axis=1)
    spread = math.sqrt(((season.belief * losses**2).sum(axis=1) - expected**2).sum()) / season.lines
    floor = float(expected.mean())
    waste = math.log(season.buckets) - floor - 2 * spread
    with suppress(SeasonOverError):
        shown = None
        while shown is None and waste > 0:
            season.send(wasteful(season, np.log(season.belief), waste))
            shown = season.score()
            waste -= step if shown is None else 0.0
        while waste > step:
            left = season.days - season.day
            line, asked = question(belief, yes=waste / step / max(left, 1))
            logs = np.log(season.belief)
            others = np.setdiff1d(np.arange(season.buckets), asked)
            masses = np.exp(wasteful(season, logs, waste - step))
            least = season.belief[line].argmin()
            masses[line, others] *= math.exp(-DISASTER)
            masses[line, least] = 1.0 - np.delete(masses[line], least).sum()
            season.send(np.log(masses))
            moved = season.score() < shown
            belief[line, others if moved else asked] = 0.0
            belief[line] /= belief[line].sum()
            if moved:
                shown, waste = season.score(), waste - step
    return belief.argmax(axis=1)


def question(belief, *, yes):
    """The line and the buckets that are asked for: the second candidate, and others up to some share.

    ``yes`` is how many answers may be yes, of all.
    """
    order = np.argsort(-belief, axis=1)
    ranked = np.take_along_axis(belief, order, axis=1)
    best = (0.0, 0, order[0, 1:2])
    for share in (0.0, 0.1, 0.2, 0.3, 0.4, 0.5):
        chance = np.maximum(ranked[:, 1], share)
        entropy = -(chance * np.log2(chance + 1e-9) + (1 - chance) * np.log2(1 - chance + 1e-9))
        value = (ranked[:, 1] + 0.05 * entropy * (ranked[:, 0] < 0.9)) / np.maximum(1.0, chance / yes)
        line = int(value.argmax())
        if value[line] > best[0]:
            asked, total = [order[line, 1]], ranked[line, 1]
            for other in range(2, len(order[line])):
                if total + ranked[line, other] <= share:
                    asked.append(order[line, other])
                    total += ranked[line, other]
            best = (float(value[line]), line, np.array(asked))
    return best[1], best[2]
