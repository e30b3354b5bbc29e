"""The formats of a report of problems, and their registry: for people, and for programs that show code's problems.

GitLab's format is described at https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import groupby
from typing import Any

from geval_py.checking.rules import Place, Problem, Report, Rule, Severity
from geval_py.reading.files import format_ending
from geval_py.tables.escapes import json_text
from geval_py.tables.layout import fitted, picture
from geval_py.tables.numbers import counted
from geval_py.text import DIM, PLAIN, RED, YELLOW, excerpt, link, visible

COLOURS: dict[Severity, str] = {"error": RED, "warning": YELLOW}
MAX_LINES_IN_ANNOTATION = 20


def as_text(report: Report, *, colour: bool = False, width: int | None = None, links: bool = False) -> str:
    """Write a report for people: by file, then by rule, with an excerpt of the first line; the last line sums up.

    On a terminal of a ``width``, excerpts and sentences fit into it. With ``links``, codes of rules are links.
    """
    lines: list[str] = []
    for path, problems in groupby(report.problems, key=lambda problem: problem.path):
        lines.append(visible(path))
        for problem in problems:
            lines += [*problem_lines(problem, colour=colour, width=width, links=links), ""]
    lines.append(report.summary)
    return escape_commands("".join(fitted(lines, width)))


def problem_lines(
    problem: Problem, *, colour: bool = False, width: int | None = None, links: bool = False
) -> Iterator[str]:
    """Yield the lines that tell people about a problem, without the file's name."""
    dim, plain = (DIM, PLAIN) if colour else ("", "")
    rule, extent = problem.rule, _extent(problem)
    code = link(rule.code, rule.address) if links else rule.code
    head = f"  {COLOURS[rule.severity] if colour else ''}{code} {rule.name} ({rule.severity}){plain}"
    yield f"{head}: {extent}" if extent else head
    yield f"    {visible(problem.summary)}"
    for place in problem.places[:1]:
        if place.line or place.message != problem.summary:
            yield f"    {_position(problem.path, place)}: {visible(place.message)}"
            column, text = max(1, place.column), place.text
            drawn = excerpt(text, column) if width is None else picture(text, column, width - 8)
            yield from (f"      {dim}| {line}{plain}" for line in drawn.split("\n") if text)
    numbers = list(dict.fromkeys(str(place.line) for place in problem.places))
    more = problem.count - len(numbers)
    if numbers[1:]:
        also = f"also on line{'s' if more or numbers[2:] else ''} {', '.join(numbers[1:])}"
        yield f"    {also} and {more:,} more" if more else f"    {also}"
    elif extent and more:
        yield f"    and {counted(more, 'more line')}"
    yield f"    To fix: {_what_to_do(rule, problem)}"


def as_concise(report: Report) -> str:
    """Write a line for each place, as compilers do; line 1 is also a file as a whole. The last line sums up."""
    lines = []
    for problem in report.problems:
        for place in places_of(problem):
            where = f"{visible(problem.path)}:{max(1, place.line)}:{max(1, place.column)}"
            lines.append(f"{where}: {problem.rule.code} {visible(place.message)}")
        if problem.places and problem.count > len(problem.places):
            lines[-1] += f" (and {counted(problem.count - len(problem.places), 'more line')})"
    return escape_commands("".join(f"{line}\n" for line in (*lines, report.summary)))


def as_json(report: Report) -> str:
    """Write one JSON document."""
    return json_text(
        {
            "version": report.version,
            "status": report.status,
            "files": report.files,
            "notes": report.notes,
            "problems": [problem_document(problem) for problem in report.problems],
        }
    )


def problem_document(problem: Problem) -> dict[str, Any]:
    """Return one problem as the JSON document shows it."""
    return {
        "rule": problem.rule.code,
        "name": problem.rule.name,
        "severity": problem.rule.severity,
        "path": problem.path,
        "count": problem.count,
        "share": problem.share,
        "summary": problem.summary,
        "places": [
            {"line": place.line, "column": place.column, "token": place.token, "message": place.message}
            for place in problem.places
        ],
    }


def as_github(report: Report) -> str:
    """Write a workflow command for each problem, at its first place; GitHub shows ten of each kind in a step."""

    def escaped(value: str) -> str:
        return value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")

    commands = []
    for problem in report.problems:
        rule, place, extent = problem.rule, places_of(problem)[0], _extent(problem)
        lines = [str(place.line) for place in problem.places if place.line][:MAX_LINES_IN_ANNOTATION]
        if len(lines) > 1:
            extent += f": {', '.join(lines)}{', …' if problem.count > len(lines) else ''}"
        properties = {"file": visible(problem.path)}
        if place.line:
            properties |= {"line": str(place.line), "col": str(max(1, place.column))}
        properties["title"] = f"{rule.code} {rule.name}"
        written = ",".join(
            f"{key}={escaped(value).replace(':', '%3A').replace(',', '%2C')}" for key, value in properties.items()
        )
        message = "\n".join(filter(None, (visible(place.message), extent, _what_to_do(rule, problem))))
        commands.append(f"::{rule.severity} {written}::{escaped(message)}\n")
    return "".join(commands)


def escape_commands(document: str) -> str:
    """Escape what GitHub's runner, which reads all that a job prints, would take for a command in a submission.

    A command is `::name::` at the beginning of a line (after spaces) or `##[name]` anywhere.
    """
    return re.sub(r"(?m)^(\s*)::", r"\1\\::", document).replace("##[", "##\\[")


def as_gitlab(report: Report) -> str:
    """Write JSON for GitLab's Code Quality: an object for each place.

    A fingerprint depends on the rule, the file and the message, not on the line: a problem that moves is not new.
    """
    from hashlib import sha256

    same: Counter[str] = Counter()
    entries = []
    for problem in report.problems:
        code, path = problem.rule.code, visible(problem.path)
        for place in places_of(problem):
            text = f"{code} {visible(place.message)}"
            key = f"{path}\n{text}"
            same[key] += 1
            entries.append(
                {
                    "description": text,
                    "check_name": code,
                    "fingerprint": sha256(f"{key}\n{same[key]}".encode()).hexdigest(),
                    "severity": "major" if problem.rule.severity == "error" else "minor",
                    "location": {"path": path, "lines": {"begin": max(1, place.line)}},
                }
            )
    return json_text(entries)


FORMATS: dict[str, Callable[[Report], str]] = {
    "text": as_text,
    "concise": as_concise,
    "json": as_json,
    "github": as_github,
    "gitlab": as_gitlab,
}


def from_root(report: Report) -> Report:
    """Return a report with paths as GitHub and GitLab read them: with slashes, and from the root of the repository.

    A path outside of it, and any path where no variable names the root, only loses a `./` in front.
    """
    root = os.environ.get("GITHUB_WORKSPACE") or os.environ.get("CI_PROJECT_DIR")

    def below(path: str) -> str:
        absolute = os.path.abspath(path)
        if root and "://" not in path and absolute.startswith(start := os.path.join(os.path.realpath(root), "")):
            path = absolute.removeprefix(start)
        return path.replace(os.sep, "/").removeprefix("./")

    problems = tuple(replace(problem, path=below(problem.path)) for problem in report.problems)
    return replace(report, files=tuple(map(below, report.files)), problems=problems)


def render(report: Report, name: str, *, colour: bool = False, width: int | None = None, links: bool = False) -> str:
    """Write a report in a format, a key of FORMATS; only text has colours and links, and fits into a ``width``."""
    if name == "text":
        return as_text(report, colour=colour, width=width, links=links)
    return FORMATS[name](from_root(report) if name in ("github", "gitlab") else report)


def _extent(problem: Problem) -> str:
    """Write the number and the share of the lines with a problem; "" for a problem of the whole file."""
    if problem.places and not any(place.line for place in problem.places):
        return ""
    share = "100 %" if problem.share == 1 else f"{100 * problem.share:.1f} %"
    if 0 < problem.share < 0.001:  # rounding makes neither 0 % nor 100 %
        share = "less than 0.1 %"
    elif 0.999 < problem.share < 1:
        share = "more than 99.9 %"
    return f"{counted(problem.count, 'line')}, {share}"


def _what_to_do(rule: Rule, problem: Problem | None = None) -> str:
    if problem is not None and problem.fix:
        return problem.fix
    fix = f"{rule.fix} --fix does it." if rule.fixable and "--fix" not in rule.fix else rule.fix
    is_other = problem is not None and "--fix" in fix and format_ending(problem.path)
    return f"{fix} It needs TSV, which geval convert writes." if is_other else fix


def places_of(problem: Problem) -> tuple[Place, ...]:
    """Return the places of a problem; one without places is of the file as a whole."""
    return problem.places or (Place(0, 0, "", problem.summary),)


def _position(path: str, place: Place) -> str:
    return f"{visible(path)}:{place.line}:{max(1, place.column)}" if place.line else visible(path)
