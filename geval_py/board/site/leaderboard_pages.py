"""Leaderboards as pages show them: rows with their bars, cut into pages."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from markupsafe import escape

from geval_py.board.site.rendering import json_of
from geval_py.board.site.site_charts import Bar, Scale, Tick, bar_of, scale_of, tick_text
from geval_py.board.submission import Entry, Standings
from geval_py.tables.escapes import short

ROWS_OF_A_PAGE = 200
TEXT_OF_A_PAGE = 200_000  # bytes of what strangers wrote: so a page stays below 500 kB
MOST_CHOICES = 100  # tags and parameters to filter by
MOST_TAGS = 6  # that a row shows
BAR_WIDTH = 220
FENCE = 3.0  # times the range of the middle half


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """An entry, its interval bar, its texts as they are shown, and the tags and parameters that it is found by."""

    entry: Entry
    bar: Bar | None
    submitter: str
    variant: str
    told: str
    remark: str
    tags: tuple[str, ...]
    params: tuple[str, ...]

    @property
    def choices(self) -> list[str]:
        """The tags and parameters that it is found by."""
        return [f"tag:{tag}" for tag in self.tags] + [f"param:{param}" for param in self.params]

    @property
    def size(self) -> int:
        """The bytes of its texts in a page; those to choose from stand there once more."""
        words = (self.submitter, self.submitter, self.variant, self.told, self.remark, json_of(self.choices))
        return len(escape(" ".join([*words, *self.tags, *self.choices])).encode("utf-8", "backslashreplace"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some rows of a leaderboard: the ``number``-th of ``pages`` pages, rows from ``first`` of ``total``."""

    standings: Standings
    rows: tuple[Row, ...]
    number: int
    pages: int
    first: int
    total: int
    ticks: tuple[Tick, ...]
    tags: tuple[str, ...]
    params: tuple[str, ...]

    @property
    def last(self) -> int:
        """The number of its last row."""
        return self.first + len(self.rows) - 1


def cut(standings: Standings) -> Iterator[Page]:
    """Cut a leaderboard into pages, at least one; all of them have one scale."""
    entries = standings.entries
    scale = _scale(entries)
    ticks = tuple(Tick(at=scale.at(value), text=tick_text(value)) for value in scale.ticks(3)) if scale else ()
    parts = _parts([_row(entry, scale) for entry in entries])
    first = 1
    for number, rows in enumerate(parts, start=1):
        yield Page(
            standings=standings,
            rows=tuple(rows),
            number=number,
            pages=len(parts),
            first=first,
            total=len(entries),
            ticks=ticks,
            tags=_common(row.tags for row in rows),
            params=_common(row.params for row in rows),
        )
        first += len(rows)


def _parts(rows: Sequence[Row]) -> list[list[Row]]:
    """Cut rows where a page has enough of them, or of their texts."""
    parts: list[list[Row]] = [[]]
    size = 0
    for row in rows:
        if len(parts[-1]) == ROWS_OF_A_PAGE or (parts[-1] and size + row.size > TEXT_OF_A_PAGE):
            parts.append([])
            size = 0
        parts[-1].append(row)
        size += row.size
    return parts


def _scale(entries: Sequence[Entry]) -> Scale | None:
    """Make a scale for all but far outliers: what is beyond Tukey's outer fences only has an arrow."""
    scores = sorted(entry.score for entry in entries if entry.score is not None and math.isfinite(entry.score))
    if not scores:
        return None
    first, third = scores[len(scores) // 4], scores[len(scores) * 3 // 4]
    room = FENCE * (third - first)
    near = [entry for entry in entries if entry.score is not None and first - room <= entry.score <= third + room]
    ends = chain.from_iterable((entry.score, entry.low, entry.high) for entry in near)
    return scale_of([end for end in ends if end is not None], 6, BAR_WIDTH - 6, margin=0.02)


def _row(entry: Entry, scale: Scale | None) -> Row:
    return Row(
        entry=entry,
        bar=bar_of(scale, entry.score, entry.low, entry.high),
        submitter=short(entry.submitter, 60),
        variant=short(entry.variant, 60),
        told=short(entry.description, 140),
        remark=short(entry.remark, 140),
        tags=tuple(map(short, entry.tags[:MOST_TAGS])),
        params=tuple(short(f"{name}={value}") for name, value in list(entry.params.items())[:MOST_TAGS]),
    )


def _common(words: Iterator[Sequence[str]]) -> tuple[str, ...]:
    """Give the most common of words, in order of their letters."""
    counted = Counter(chain.from_iterable(words))
    common = sorted(counted, key=lambda word: (-counted[word], word))[:MOST_CHOICES]
    return tuple(sorted(common, key=lambda word: (word.casefold(), word)))
