"""What every format says of a problem: how far it goes, where it is, and what to do."""

from __future__ import annotations

import os

from geval_py.checking.rules import Place, Problem, Report, Rule
from geval_py.text import visible


def number(count: int, noun: str) -> str:
    """Count things: one line, two lines.

    >>> number(1, "line"), number(2, "line")
    ('1 line', '2 lines')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def share_in_percent(share: float) -> str:
    """Write a share in percent; only none is 0 %, and only all is 100 %."""
    if 0 < share < 0.001:
        return "less than 0.1 %"
    if 0.999 < share < 1:
        return "more than 99.9 %"
    return "100 %" if share == 1 else f"{100 * share:.1f} %"


def extent(problem: Problem) -> str:
    """Say on how many lines a problem is; "" where it is the file's as a whole."""
    if problem.places and not any(place.line for place in problem.places):
        return ""
    return f"{number(problem.count, 'line')}, {share_in_percent(problem.share)}"


def what_to_do(rule: Rule) -> str:
    """Say how to mend what breaks a rule."""
    return f"{rule.mend} --fix does it." if rule.fixable and "--fix" not in rule.mend else rule.mend


def places_of(problem: Problem) -> tuple[Place, ...]:
    """Give a problem's places, or the file as a whole where none was kept."""
    return problem.places or (Place(line=0, column=0, token="", message=problem.summary),)


def paths_of(report: Report) -> list[str]:
    """Give the files, and those that should have been there."""
    return list(dict.fromkeys([*report.files, *(problem.path for problem in report.problems)]))


def position(path: str, place: Place) -> str:
    """Write a place as compilers do: path, line and column."""
    return f"{visible(path)}:{place.line}:{max(1, place.column)}" if place.line else visible(path)


def path_from_root(path: str) -> str:
    """Write a path as platforms name a repository's files: with slashes, and no `./` before it."""
    return path.replace(os.sep, "/").removeprefix("./")
