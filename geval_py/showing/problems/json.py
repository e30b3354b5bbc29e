"""A report for programs: one JSON document."""

from __future__ import annotations

from typing import Any

from geval_py.checking.rules import Problem, Report
from geval_py.showing.json import json_text


def as_json(report: Report) -> str:
    """Write one JSON document that strict parsers read."""
    return json_text(
        {
            "version": report.version,
            "status": report.status,
            "files": report.files,
            "uncounted": [{"path": output.path, "reason": output.reason} for output in report.uncounted],
            "problems": [problem_document(problem) for problem in report.problems],
        }
    )


def problem_document(problem: Problem) -> dict[str, Any]:
    """Give what the document shows of one problem."""
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
