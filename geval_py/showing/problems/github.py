"""Workflow commands, which GitHub shows as annotations; and how to keep its runner from seeing others.

https://docs.github.com/actions/reference/workflow-commands-for-github-actions; the escapes are those of
actions/toolkit, packages/core/src/command.ts.
"""

from __future__ import annotations

import re

from geval_py.checking.rules import Problem, Report
from geval_py.showing.problems.wording import extent, path_from_root, places_of, what_to_do
from geval_py.text import visible

MOST_LINES_IN_ANNOTATION = 20
PLAIN_SPELLINGS = ("\\::", "##\\[")


def as_github(report: Report) -> str:
    """Write a workflow command a problem, at its first place: GitHub shows ten of each kind a step."""
    return "".join(_workflow_command(problem) for problem in report.problems)


def inert(document: str, spellings: tuple[str, str] = PLAIN_SPELLINGS) -> str:
    """Keep GitHub's runner, which reads all that a job prints, from seeing a command in a submission's words.

    It takes `::name::` at the beginning of a line, spaces aside, and `##[name]` anywhere; ``spellings`` are what to
    write for `::` and `##[`.
    """
    colons, brackets = spellings
    return re.sub(r"(?m)^(\s*)::", lambda match: match[1] + colons, document).replace("##[", brackets)


def _workflow_command(problem: Problem) -> str:
    rule, place = problem.rule, places_of(problem)[0]
    properties = {"file": visible(path_from_root(problem.path))}
    if place.line:
        properties |= {"line": str(place.line), "col": str(max(1, place.column))}
    properties["title"] = f"{rule.code} {rule.name}"
    written = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    message = "\n".join(filter(None, (visible(place.message), _extent_with_lines(problem), what_to_do(rule))))
    return f"::{rule.severity} {written}::{_data(message)}\n"


def _extent_with_lines(problem: Problem) -> str:
    """Say on how many lines a problem is, and on which first."""
    lines = [str(place.line) for place in problem.places if place.line][:MOST_LINES_IN_ANNOTATION]
    if len(lines) < 2:
        return extent(problem)
    return f"{extent(problem)}: {', '.join(lines)}{', …' if problem.count > len(lines) else ''}"


def _data(value: str) -> str:
    return value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    return _data(value).replace(":", "%3A").replace(",", "%2C")
