"""A report in the form that its reader takes: people, programs, GitHub, code scanning, test dashboards.

Paths, words and messages are from strangers. In every format they come out with what a terminal, an XML parser or
GitHub's runner would act on written as escapes.
"""

from __future__ import annotations

from collections.abc import Callable

from geval_py.checking.rules import Report
from geval_py.showing.problems.github import as_github
from geval_py.showing.problems.json import as_json
from geval_py.showing.problems.junit import as_junit
from geval_py.showing.problems.sarif import as_sarif
from geval_py.showing.problems.text import as_text

FORMATS: dict[str, Callable[[Report], str]] = {
    "text": as_text,
    "json": as_json,
    "github": as_github,
    "sarif": as_sarif,
    "junit": as_junit,
}


def render(report: Report, name: str, *, colour: bool = False) -> str:
    """Write a report in the format of that name (a key of FORMATS); only text has colours."""
    return as_text(report, colour=colour) if name == "text" else FORMATS[name](report)
