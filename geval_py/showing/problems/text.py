"""A report for people: by file, then by rule, with the lines cut around a caret."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from geval_py.checking.rules import Place, Problem, Report, Severity
from geval_py.showing.colours import DIM, PLAIN, RED, YELLOW
from geval_py.showing.problems.github import inert
from geval_py.showing.problems.wording import extent, number, paths_of, position, what_to_do
from geval_py.text import excerpt, visible

COLOURS: dict[Severity, str] = {"error": RED, "warning": YELLOW}


def as_text(report: Report, *, colour: bool = False) -> str:
    """Write a report for people: by file, then by rule, with the lines cut around a caret; a last line sums up."""
    lines: list[str] = []
    for path, problems in groupby(report.problems, key=lambda problem: problem.path):
        lines.append(visible(path))
        for problem in problems:
            lines += [*_problem_lines(problem, colour=colour), ""]
    return inert("".join(f"{line}\n" for line in [*lines, _conclusion(report)]))


def _problem_lines(problem: Problem, *, colour: bool) -> Iterator[str]:
    rule, lines = problem.rule, extent(problem)
    start, end = (COLOURS[rule.severity], PLAIN) if colour else ("", "")
    yield f"  {start}{rule.code} {rule.name} ({rule.severity}){end}" + (f": {lines}" if lines else "")
    yield f"    {visible(problem.summary)}"
    for place in problem.places:
        if place.line or place.message != problem.summary:
            yield f"    {position(problem.path, place)}: {visible(place.message)}"
            yield from _picture(place, colour=colour)
    if lines and problem.count > len(problem.places):
        yield f"    and {number(problem.count - len(problem.places), 'more line')}"
    yield f"    To mend: {what_to_do(rule)}"


def _picture(place: Place, *, colour: bool) -> Iterator[str]:
    start, end = (DIM, PLAIN) if colour else ("", "")
    if place.text:
        for line in excerpt(place.text, max(1, place.column)).split("\n"):
            yield f"      {start}| {line}{end}"


def _conclusion(report: Report) -> str:
    files = number(len(paths_of(report)), "file")
    if not report.problems:
        return f"no problems in {files}"
    errors = sum(problem.rule.severity == "error" for problem in report.problems)
    warnings = len(report.problems) - errors
    return f"{number(errors, 'error')}, {number(warnings, 'warning')} in {files}"
