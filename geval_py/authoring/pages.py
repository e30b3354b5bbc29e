"""The README of a challenge that was cut, and of its hidden answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from geval_py.authoring.folders import HIDDEN_SET
from geval_py.reading.splits import TRAINING_SET

if TYPE_CHECKING:
    from geval_py.authoring.gaps import Cut

DEFAULT_TITLE = "Guess the missing word"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What the pages say of a challenge.

    ``columns`` are those of in.tsv; ``sizes`` has each part's name, gaps and groups; ``group`` the column that parts
    are made by, None where each document is a group.
    """

    title: str
    columns: tuple[str, ...]
    sizes: tuple[tuple[str, int, int], ...]
    group: str | None
    metrics: tuple[str, ...]


def challenge_page(origin: Origin, cut: Cut | None, *, words: int | None = None) -> str:
    """Write the public README; ``cut`` tells how the gaps were cut, if that is known, from how many words."""
    return "\n".join(
        [
            _heading(origin.title, "="),
            "Given a text with a gap, give a probability distribution over the words that may stand there.\n",
            _table(("part", "gaps", origin.group or "documents"), origin.sizes),
            _heading("The data", "-"),
            "A line of `in.tsv.xz` is a gap; its columns, split by TAB, are\n",
            *(f"* {_code(name)}" for name in origin.columns),
            "",
            "The missing words stand in `expected.tsv`, a line a gap. Those of `test-A` are hidden.\n",
            *_of_texts(origin, cut, words),
            _heading("Outputs", "-"),
            "An output has a line for each gap, as `river:0.5 road:0.2 :0.3`; the last entry is for all other words.",
            f"Scored by {', '.join(map(_code, origin.metrics))}: `geval -t dev-0`.\n",
        ]
    )


def _of_texts(origin: Origin, cut: Cut | None, words: int | None) -> Iterable[str]:
    if cut is not None:
        size = "" if words is None else f", cut from {words:,} words"
        yield f"A gap has {cut.context} words on each side{size}. A line end is written as the two characters `\\n`."
        yield "Words hyphenated at a line end are as they were in the texts; their halves are never gaps."
        yield f"The windows of gaps do not overlap, but perhaps in `{TRAINING_SET}`.\n"
    whole = "Documents are" if origin.group is None else f"What has one {_code(origin.group)} is"
    yield f"{whole} in one part only, by the hash of the name, so that more texts move none.\n"


def answers_page(origin: Origin) -> str:
    """Write the README of the folder with the hidden answers."""
    gaps = next(gaps for name, gaps, _ in origin.sizes if name == HIDDEN_SET)
    return "\n".join(
        [
            _heading(f"Hidden answers: {origin.title}", "="),
            f"The {gaps} answers of `{HIDDEN_SET}`. Keep this folder to yourself: it is no part of the public one.\n",
            "It is a challenge of its own, which scores and validates:\n",
            f"    geval -t {HIDDEN_SET} --expected-directory THIS --out-directory SUBMISSION",
            "    geval --validate --expected-directory THIS\n",
        ]
    )


def _heading(text: str, rule: str) -> str:
    return f"{text}\n{rule * len(text)}\n"


def _table(head: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(map(_cell, line))} |\n" for line in lines)


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|")


def _code(text: str) -> str:
    return f"`{text}`"
