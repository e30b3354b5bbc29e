"""The formats of a report of problems, and their registry: for people, and for programs that show code's problems.

GitLab's format is described at https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

from geval_py.checking.rules import Problem, Report, Severity
from geval_py.reading.files import format_ending
from geval_py.tables.escapes import json_text
from geval_py.tables.numbers import percent
from geval_py.text import DIM, PLAIN, RED, YELLOW, counted, excerpt, fitted, picture, visible

COLOURS: dict[Severity, str] = {"error": RED, "warning": YELLOW}


def as_text(report: Report, *, colour: bool = False, width: int | None = None) -> str:
    """Write a report for people: by file, then by rule, with an excerpt of the first line; the last line sums up.

    On a terminal of a ``width``, excerpts and sentences fit into it.
    """
    lines: list[str] = []
    for path, problems in groupby(report.problems, key=lambda problem: problem.path):
        lines.append(visible(path))
        for problem in problems:
            lines += [*problem_lines(problem, colour=colour, width=width), ""]
    lines.append(report.summary)
    return escape_commands("".join(fitted(lines, width)))


def problem_lines(problem: Problem, *, colour: bool = False, width: int | None = None) -> Iterator[str]:
    """Yield the lines that tell people about a problem, without the file's name."""
    dim, plain = (DIM, PLAIN) if colour else ("", "")
    rule, extent = problem.rule, _extent(problem)
    head = f"  {COLOURS[rule.severity] if colour else ''}{rule.code} {rule.name} ({rule.severity}){plain}"
    yield f"{head}: {extent}" if extent else head
    yield f"    {visible(problem.summary)}"
    for place in problem.places[:1]:
        if place.line or place.message != problem.summary:
            column, text = max(1, place.column), place.text
            position = f":{place.line}:{column}" if place.line else ""
            yield f"    {visible(problem.path)}{position}: {visible(place.message)}"
            drawn = excerpt(text, column) if width is None else picture(text, column, width - 8)
            yield from (f"      {dim}| {line}{plain}" for line in drawn.split("\n") if text)
    others = [f"line {line}" for line in dict.fromkeys(place.line for place in problem.places)][1:]
    if extent and (more := problem.count - len(others) - 1):
        others.append(counted(more, "more line"))
    if others:
        yield f"    also on {', '.join(others)}"
    yield f"    To fix: {_what_to_do(problem)}"


def as_concise(report: Report) -> str:
    """Write a line for each place, as compilers do; line 1 is also a file as a whole. The last line sums up."""
    lines = []
    for problem in report.problems:
        for place in problem.places:
            where = f"{visible(problem.path)}:{max(1, place.line)}:{max(1, place.column)}"
            lines.append(f"{where}: {problem.rule.code} {visible(place.message)}")
        if problem.count > len(problem.places):
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
        rule, place = problem.rule, problem.places[0]
        file = escaped(visible(from_root(problem.path))).replace(":", "%3A").replace(",", "%2C")
        place_in_file = f"file={file},line={max(1, place.line)},col={max(1, place.column)}"
        message = "\n".join(filter(None, (visible(place.message), _extent(problem), _what_to_do(problem))))
        commands.append(f"::{rule.severity} {place_in_file},title={rule.code} {rule.name}::{escaped(message)}\n")
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
        code, path = problem.rule.code, visible(from_root(problem.path))
        for place in problem.places:
            text = f"{code} {visible(place.message)}"
            key = f"{path}\n{text}"
            same[key] += 1
            entries.append(
                {
                    "description": text,
                    "check_name": code,
                    "fingerprint": sha256(f"{key}\n{same[key]}".encode()).hexdigest(),
                    "severity": "major" if problem.is_error else "minor",
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


def from_root(path: str) -> str:
    """Return a path as GitHub and GitLab read it: with slashes, from the root of the repository.

    A path outside of it, and any path where no variable names the root, only loses a `./` in front.
    """
    root = os.environ.get("GITHUB_WORKSPACE") or os.environ.get("CI_PROJECT_DIR")
    absolute = os.path.abspath(path)
    if root and "://" not in path and absolute.startswith(start := os.path.join(os.path.realpath(root), "")):
        path = absolute.removeprefix(start)
    return path.replace(os.sep, "/").removeprefix("./")


def render(report: Report, name: str, *, colour: bool = False, width: int | None = None) -> str:
    """Write a report in a format, a key of FORMATS; only text has colours, and fits into a ``width``."""
    if name == "text":
        return as_text(report, colour=colour, width=width)
    return FORMATS[name](report)


def _extent(problem: Problem) -> str:
    """Write the number and the share of the lines with a problem; "" for a problem of the whole file."""
    share = 1.0 if problem.share == 1 else min(problem.share, 0.994)  # which is not rounded to 100 %
    is_of_lines = any(place.line for place in problem.places)
    return f"{counted(problem.count, 'line')}, {percent(share)}" if is_of_lines else ""


def _what_to_do(problem: Problem) -> str:
    rule = problem.rule
    fix = problem.fix or rule.fix
    if rule.fixable and "--fix" not in fix:
        fix += " --fix does it."
    if "--fix" in fix and format_ending(problem.path):
        fix += " It needs TSV, which geval convert writes."
    return fix
