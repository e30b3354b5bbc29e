"""The names of a site's files: made from board.yaml and from codes, never from a stranger's text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from geval_py.board.settings import Settings


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where pages are, relative to the folder of the site. Parts of a name are split by dots, which no part has."""

    settings: Settings
    phase: str

    def board(self, test: str, phase: str, page: int = 1) -> str:
        """Give the page of a leaderboard; that of the first test in the phase of the front page is index.html."""
        if page == 1 and test == self.settings.tests[0].name and phase == self.phase:
            return "index.html"
        return self._named("board", test, phase, f".{page}.html" if page > 1 else ".html")

    def of_test(self, kind: str, test: str) -> str:
        """Give the page of a kind for a test: progress, parameters, compare."""
        return self._named(kind, test, None, ".html")

    def data(self, kind: str, test: str, phase: str | None, ending: str) -> str:
        """Give the file of a table's data, with its ending."""
        return "data/" + self._named(kind, test, phase, f".{ending}")

    @staticmethod
    def submissions(page: int = 1) -> str:
        """Give a page of the list of submissions."""
        return "submissions.html" if page == 1 else f"submissions.{page}.html"

    @staticmethod
    def submission(code: str) -> str:
        """Give the page of a submission."""
        return f"submissions/{code}.html"

    def _named(self, kind: str, test: str, phase: str | None, end: str) -> str:
        tests = [one.name for one in self.settings.tests]
        name = f"{kind}.{slugs(tests)[tests.index(test)]}"
        phases = self.settings.phase_names
        if phase is not None and len(phases) > 1:
            name += f".{slugs(phases)[phases.index(phase)]}"
        return name + end


def slugs(names: Sequence[str]) -> list[str]:
    """Make names of files that differ, also where case counts for nothing.

    >>> slugs(["test-A", "Test A", "../x"])
    ['test-A', 'Test-A-2', 'x']
    """
    found: list[str] = []
    for number, name in enumerate(names, start=1):
        slug = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:60] or str(number)
        taken = {other.lower() for other in found}
        found.append(slug if slug.lower() not in taken else f"{slug}-{number}")
    return found
