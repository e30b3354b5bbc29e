"""Leaderboards as pages show them: rows with their bars, cut into pages; and the rows of the page that compares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from markupsafe import escape

from geval_py.board.ranking.leaderboard import EntryColumn, page_columns
from geval_py.board.site import rendering
from geval_py.board.site.site_charts import Bar, DisclosedOutput, Tick, bar_of, bar_scale, bar_ticks, is_better
from geval_py.board.submission import Entry, Standings
from geval_py.reports.scales import Scale
from geval_py.tables.escapes import short

ROWS_OF_A_PAGE = 200
TEXT_OF_A_PAGE = 200_000  # bytes of submitters' texts, so that a page stays below 500 kB
MOST_CHOICES = 100  # tags and parameters to filter by
MOST_TAGS = 6  # that a row shows


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """An entry, its interval bar, its shortened texts, and its tags and parameters to filter by."""

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
        """The tags and parameters to filter by, as a page's script compares them."""
        return [f"tag:{tag}" for tag in self.tags] + [f"param:{param}" for param in self.params]

    @property
    def size(self) -> int:
        """The bytes of its texts in a page, where the choices stand twice."""
        words = (self.submitter, self.submitter, self.variant, self.told, self.remark)
        texts = [*words, rendering.json_of(self.choices), *self.tags, *self.choices]
        return len(escape(" ".join(texts)).encode("utf-8", "backslashreplace"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some rows of a leaderboard: the ``number``-th of ``pages`` pages, rows from ``first`` of ``total``."""

    columns: Sequence[EntryColumn]
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
    """Cut a leaderboard into pages, at least one; all of them share one scale."""
    scale = bar_scale(standings)
    parts = _parts([_row(entry, scale) for entry in standings.entries])
    first = 1
    for number, rows in enumerate(parts, start=1):
        yield Page(
            columns=page_columns(standings),
            rows=tuple(rows),
            number=number,
            pages=len(parts),
            first=first,
            total=len(standings.entries),
            ticks=bar_ticks(scale),
            tags=_most_common(row.tags for row in rows),
            params=_most_common(row.params for row in rows),
        )
        first += len(rows)


def _parts(rows: Sequence[Row]) -> list[list[Row]]:
    """Split rows at the greatest number of rows, or of bytes, of a page."""
    parts: list[list[Row]] = [[]]
    size = 0
    for row in rows:
        if len(parts[-1]) == ROWS_OF_A_PAGE or (parts[-1] and size + row.size > TEXT_OF_A_PAGE):
            parts.append([])
            size = 0
        parts[-1].append(row)
        size += row.size
    return parts


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


def _most_common(words: Iterator[Sequence[str]]) -> tuple[str, ...]:
    """Return the most common words in alphabetical order."""
    counted = Counter(chain.from_iterable(words))
    common = sorted(counted, key=lambda word: (-counted[word], word))[:MOST_CHOICES]
    return tuple(sorted(common, key=lambda word: (word.casefold(), word)))


def compared_entries(outputs: Iterable[DisclosedOutput], tables: Sequence[Standings]) -> list[tuple[Entry, str]]:
    """Return the rows of the page that compares, each an entry and its phase.

    First the entries of the test's leaderboards, of which the front page's must be the first, then the best output
    of each other submission, the latest first, without a phase.
    """
    shown = {one.output.id: one for one in outputs}
    rows: dict[str, tuple[Entry, str]] = {}
    for table in tables:
        for entry in table.entries:
            if entry.output_id in shown:
                rows.setdefault(entry.code, (entry, table.phase))
    others: dict[str, DisclosedOutput] = {}
    for one in reversed(shown.values()):
        code = one.submission.code
        old = others.get(code)
        if code not in rows and (old is None or is_better(one.value, old.value, tables[0].direction)):
            others[code] = one
    return [*rows.values(), *((_without_place(one), "") for one in others.values())]


def _without_place(one: DisclosedOutput) -> Entry:
    submission, output = one.submission, one.output
    return Entry(
        place=None,
        shared=False,
        first=None,
        last=None,
        groups=(),
        submitter=submission.submitter,
        code=submission.code,
        variant=output.variant,
        score=one.value,
        low=one.low,
        high=one.high,
        others={metric: shown.value for metric, shown in output.figures.items()},
        baseline=submission.baseline,
        arrived=submission.arrived,
        description=submission.description,
        tags=submission.tags,
        params=one.params,
        remark=submission.remark,
        output_id=output.id,
        evaluation_id=output.evaluation_id or 0,
    )
