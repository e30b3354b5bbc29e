"""Whether an output means what it says, for people: sentences with the figures, then tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from geval_py.showing.numbers import fixed
from geval_py.showing.tables import Column, Table
from geval_py.text import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from geval_py.explaining.calibration.calibration import Calibration, Claim
    from geval_py.explaining.calibration.forecasts import Points, Reliability


def calibration_text(calibration: Calibration) -> Iterator[str]:
    """Write sentences and, below them, the tables, line by line."""
    of = f"{calibration.lines} lines of {visible(calibration.test)}"
    yield f"{visible(calibration.file)}: {visible(calibration.metric)}, {of}\n\n"
    for sentence in _sentences(calibration):
        yield f"{sentence}\n"
    parts = {
        "all listed words": calibration.words,
        "the first guess": calibration.guess,
        "the rest": calibration.rest,
    }
    for name, part in parts.items():
        if part is not None:
            yield f"\n{name}\n"
            yield from _points_table(part.bins, "claimed", 4).text()
    if calibration.sets is not None:
        yield "\nthe smallest sets\n"
        yield from _points_table(calibration.sets, "level", 1).text()
    yield "\nhonest: what 95 % of outputs would show whose probabilities come true.\n"


def _points_table(points: Points, name: str, digits: int) -> Table:
    columns = [Column(name=of) for of in (name, "true", "honest", "n")]
    rows = [
        [fixed(row["x"], digits), fixed(row["y"], 4), f"[{fixed(row['low'], 4)}, {fixed(row['high'], 4)}]", row["n"]]
        for row in points.rows()
    ]
    return Table(columns, rows)


def _sentences(calibration: Calibration) -> Iterator[str]:
    yield _claim(calibration.claim)
    if calibration.claim.infinite:
        yield f"{_lines(calibration.claim.infinite)} with an infinite loss left out of that."
    if calibration.vectors:
        yield f"{_lines(calibration.vectors)} of buckets, which list no words; the rest is of the others."
    if calibration.words is not None:
        yield _found(f"{calibration.words.n} listed words", "should have been the word", "were", calibration.words)
    if calibration.guess is not None:
        yield _found(f"{calibration.guess.n} first guesses", "should have been right", "were", calibration.guess)
    yield from _errors(calibration)
    if calibration.rest is not None:
        what = f"{calibration.rest.n} lines with a guess"
        yield _found(what, "should not have listed the word", "did not", calibration.rest)
    if calibration.sets is not None:
        yield _sets(calibration.sets)


def _lines(number: int) -> str:
    return f"{number} {'line is' if number == 1 else 'lines are'}"


def _claim(claim: Claim) -> str:
    if not claim.lines:
        return "The loss of every line is infinite: there is nothing to hold its claim against."
    figures = f"It claims a perplexity of {_words(claim.claimed_perplexity)} and gets {_words(claim.perplexity)}"
    gap = f"{fixed(abs(claim.gap), 3)} ± {fixed((claim.high - claim.low) / 2, 3)} nats a word"
    if claim.z is None:
        return f"{figures}: that is {gap}, on each line the same."
    if not claim.is_significant:
        return f"{figures}: {gap}, which may be chance (z = {fixed(claim.z, 1)})."
    how = "surer than it should be" if claim.gap > 0 else "less sure than it could be"
    return f"{figures}: it is {how}, by {gap} (z = {fixed(claim.z, 1)})."


def _words(perplexity: float) -> str:
    return fixed(perplexity, 0 if perplexity >= 100 else 1)


def _found(things: str, should: str, did: str, part: Reliability) -> str:
    verdict = "as honest ones would" if part.is_honest else f"honest: {_percent(part.low)} to {_percent(part.high)}"
    return f"Of {things}, {_percent(part.claimed)} {should}, and {_percent(part.found)} {did} ({verdict})."


def _percent(share: float) -> str:
    return f"{fixed(100 * share, 1)} %"


def _errors(calibration: Calibration) -> Iterator[str]:
    error, corp = calibration.guess_error, calibration.corp
    if error is not None:
        yield (
            f"The first guess's calibration error is {fixed(error.ece, 3)}, where honest guesses show "
            f"{fixed(error.honest, 3)}; without what chance adds, {fixed(error.debiased, 3)} (root mean square)."
        )
    if corp is not None:
        yield (
            f"Its Brier score {fixed(corp.brier, 3)} is miscalibration {fixed(corp.miscalibration, 3)} (honest: "
            f"{fixed(corp.honest, 3)}) - discrimination {fixed(corp.discrimination, 3)} + uncertainty "
            f"{fixed(corp.uncertainty, 3)}."
        )


def _sets(sets: Points) -> str:
    levels, held = (_listed([fixed(100 * of, digits) for of in part]) for part, digits in ((sets.x, 0), (sets.y, 1)))
    return f"The smallest sets of {levels} % hold the word on {held} % of the lines."


def _listed(words: Sequence[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} and {last}"
