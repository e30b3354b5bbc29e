"""What tuning and mixing would bring, as text: a table, and below it what it says."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from geval_py.showing.numbers import fixed
from geval_py.showing.tables import Column, Table
from geval_py.text import visible

if TYPE_CHECKING:
    from geval_py.explaining.tuning.folds import Change
    from geval_py.explaining.tuning.mixing import Mixture
    from geval_py.explaining.tuning.tune import Tuning

VERDICTS = {True: "take it", False: "leave it"}


def tuning_text(tuning: Tuning, *, width: int | None = None, notes: bool = False) -> str:
    """Write an aligned table with a row a trial, and below it what was found; with ``notes``, these too.

    A table for a terminal, which has a ``width``, fits into it.
    """
    infinite = tuning.infinite > 0 or any(trial.infinite for trial in tuning.trials)
    rows: list[list[object]] = [["(as it is)", _score(tuning.score), tuning.infinite, "", "", ""]]
    rows += [
        [", ".join(trial.names), _score(trial.score), trial.infinite, *_change(trial.change), VERDICTS[trial.taken]]
        for trial in tuning.trials
    ]
    columns = [Column(name=name, alignment="right") for name in ("score", "infinite", "change (nats)")]
    table = [Column(name="tuned"), *columns, Column(name="95 %", alignment="centre"), Column(name="verdict")]
    below = [*_of_tuning(tuning), *(f"Note: {note}." for note in tuning.notes if notes)]
    return _laid_out(table, rows, below, infinite=infinite, width=width)


def mixture_text(mixture: Mixture, *, width: int | None = None, notes: bool = False) -> str:
    """Write an aligned table with a row an output, and below it what mixing them would bring; see tuning_text."""
    infinite = any(component.infinite for component in mixture.components)
    rows: list[list[object]] = [
        [component.name, _score(component.score), component.infinite, fixed(component.weight, 4)]
        for component in mixture.components
    ]
    columns = [Column(name=name, alignment="right") for name in ("score", "infinite", "weight")]
    below = [*_of_mixture(mixture), *(f"Note: {note}." for note in mixture.notes if notes)]
    return _laid_out([Column(name="output"), *columns], rows, below, infinite=infinite, width=width)


def _laid_out(
    columns: list[Column], rows: list[list[object]], below: list[str], *, infinite: bool, width: int | None
) -> str:
    """Lay out a table and what stands below it; the third column is left out where no loss is infinite."""
    if not infinite:
        columns, rows = [*columns[:2], *columns[3:]], [[*row[:2], *row[3:]] for row in rows]
    table = Table(columns, rows)
    lines = table.text() if width is None else table.terminal(width)
    return "".join([*lines, "\n", *(f"{line}\n" for line in below)])


def _of_tuning(tuning: Tuning) -> Iterator[str]:
    what = f"{tuning.metric} ({tuning.unit}, {tuning.direction} is better) of {tuning.output}"
    yield visible(f"{what} on {tuning.lines} lines of {tuning.test}; {_how(tuning)}.")
    if not tuning.taken:
        yield "Nothing is surely better: leave the output as it is."
        return
    values = (f"{name} {tuning.parameters.named[name]:.4g}" for name in tuning.taken)
    words = f", for the {tuning.words} commonest words of train" if "nu" in tuning.taken else ""
    yield f"Take {', '.join(values)}{words}: {_score(tuning.predicted)} on {visible(tuning.test)}."


def _of_mixture(mixture: Mixture) -> Iterator[str]:
    what = f"{mixture.metric} ({mixture.unit}, {mixture.direction} is better)"
    yield visible(f"{what} of {mixture.lines} lines of {mixture.test}; {_how(mixture)}.")
    change, ends = _change(mixture.change)
    yield (
        f"Mixed, {_score(mixture.held_out)}; against {visible(mixture.best)} alone, {_score(mixture.score)}, "
        f"a change of {change} nats {ends}: {VERDICTS[mixture.taken]}."
    )


def _how(found: Tuning | Mixture) -> str:
    kept = "lines" if found.documents is None else f"{found.documents} documents"
    return f"held out in {found.folds} folds of {kept}, seed {found.seed}"


def _score(value: float) -> str:
    """Write a score with two decimals or, if it is small, four digits.

    >>> _score(174.595), _score(5.1624), _score(0.0057275)
    ('174.60', '5.162', '0.005728')
    """
    small = math.isfinite(value) and 0 < abs(value) < 10
    return fixed(value, 3 - math.floor(math.log10(abs(value))) if small else 2)


def _change(change: Change) -> tuple[str, str]:
    low, mean, high = (fixed(value, 4) for value in (change.low, change.mean, change.high))
    return mean, f"[{low}, {high}]"
