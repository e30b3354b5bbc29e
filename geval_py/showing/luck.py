"""What hashing gave scores, for people: a table, then a sentence an output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from geval_py.showing.numbers import fixed, shortest
from geval_py.showing.tables import Column, Table
from geval_py.text import visible

if TYPE_CHECKING:
    from geval_py.explaining.calibration.luck import Exact, Luck, Spread
    from geval_py.explaining.calibration.ties import NearTie

SIGNIFICANT_DIGITS = 5
NAMES = ("system", "score", "seeds", "sd", "z", "formula", "sd", "z")


def luck_text(lucks: Sequence[Luck]) -> Iterator[str]:
    """Write a table with a row an output and, below it, what it means, line by line."""
    rows = [[luck.file, score_text(luck.score), *_spread(luck.measured), *_spread(luck.formula)] for luck in lucks]
    yield from Table([Column(name=name) for name in NAMES], rows).text()
    first = lucks[0]
    measured = f"seeds: the mean of {first.seeds} other seeds; " if first.measured else ""
    yield (
        f"\n{visible(first.metric)} ({first.unit}, {first.direction} is better) of {visible(first.test)}; {measured}"
        "formula: computed, over all seeds.\n"
        "sd: of one score's loss, in nats a word; z: by how many of them the loss is above the mean.\n\n"
    )
    for luck in lucks:
        for sentence in _sentences(luck):
            yield f"{sentence}\n"


def score_text(score: float) -> str:
    """Write a score with as many digits as are worth showing.

    >>> score_text(549.93691), score_text(0.00182345678), score_text(9984123.4)
    ('549.94', '0.0018235', '9984100')
    """
    return f"{float(f'{score:.{SIGNIFICANT_DIGITS - 1}e}'):.15g}" if abs(score) < 1e15 else shortest(score)


def _spread(spread: Spread | None) -> list[str | None]:
    if spread is None:
        return [None, None, None]
    return [score_text(spread.score), fixed(spread.sd, 4), None if spread.z is None else fixed(spread.z, 1)]


def _sentences(luck: Luck) -> Iterator[str]:
    file = visible(luck.file)
    if not luck.lines:
        yield f"{file}: there is no line that is finite under all seeds."
        return
    if luck.left_out:
        which = "line is" if luck.left_out == 1 else "lines are"
        yield f"{file}: {luck.left_out} {which} left out, which some seeds make infinite."
    yield _verdict(luck, file)
    if luck.exact is not None:
        yield _exact(luck.exact, file, luck.lines + luck.left_out)


def _verdict(luck: Luck, file: str) -> str:
    usual = f"{file}: 95 % of seeds give {score_text(luck.low)} to {score_text(luck.high)}"
    if luck.z is None:
        return f"{file}: all seeds give the same score."
    if abs(luck.z) < 2:
        return f"{usual}, and this one is among them: hashing made no difference worth speaking of."
    kind = "lucky" if luck.z < 0 else "unlucky"
    return f"{usual}: it was {kind} with {score_text(luck.score)}."


def _exact(exact: Exact, file: str, lines: int) -> str:
    finite = lines - exact.infinite
    return (
        f"{file}: without hashing, the perplexity is {score_text(exact.listed)} (estimated from the hashed one: "
        f"{score_text(exact.from_hashed)}) on the {finite} lines whose word is listed or in the vocabulary of "
        f"{exact.vocabulary}; on the {exact.infinite} others it is infinite."
    )


def near_tie_text(tie: NearTie) -> str:
    """Say that hashing may have decided between two outputs."""
    return (
        f"{visible(tie.first)} and {visible(tie.second)} are nearer than hashing can tell: "
        f"{fixed(100 * tie.turned, 0)} % of seeds would put the second first"
    )
