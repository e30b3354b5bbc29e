"""A report for code scanning: SARIF 2.1.0, https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html."""

from __future__ import annotations

import os
from typing import Any

from geval_py.checking.rules import Place, Problem, Report, Rule
from geval_py.showing.json import json_text
from geval_py.showing.problems.wording import extent, path_from_root, places_of, what_to_do
from geval_py.text import visible

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def as_sarif(report: Report) -> str:
    """Write SARIF 2.1.0: a result a place, or one for the file where a problem has none."""
    driver = {"name": "geval-py", "version": report.version, "rules": [_rule(rule) for rule in report.rules]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [
            _result(problem, place, report.rules) for problem in report.problems for place in places_of(problem)
        ],
    }
    return json_text({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": _message(rule.summary),
        "fullDescription": _message(rule.why),
        "help": _message(what_to_do(rule)),
        "defaultConfiguration": {"level": rule.severity},
    }


def _result(problem: Problem, place: Place, rules: tuple[Rule, ...]) -> dict[str, Any]:
    lines = f" ({extent(problem)} in all)" if problem.count > 1 else ""
    location: dict[str, Any] = {"artifactLocation": {"uri": _uri(problem.path)}}
    if place.line:
        location["region"] = {"startLine": place.line, "startColumn": max(1, place.column)}
    return {
        "ruleId": problem.rule.code,
        "ruleIndex": rules.index(problem.rule),
        "level": problem.rule.severity,
        "message": _message(place.message + lines),
        "locations": [{"physicalLocation": location}],
    }


def _message(message: str) -> dict[str, str]:
    """Make a message: braces are doubled (3.11.5), and `[words](address)` is no link (3.11.6)."""
    return {"text": visible(message).replace("{", "{{").replace("}", "}}").replace("](", "\\](")}


def _uri(path: str) -> str:
    """Write a path as a URI: relative as the path is, its bytes percent-encoded."""
    from urllib.parse import quote

    try:
        quoted = quote(path_from_root(path), errors="surrogateescape")
    except UnicodeEncodeError:
        quoted = quote(path_from_root(path), errors="surrogatepass")
    return f"file:///{quoted.lstrip('/')}" if os.path.isabs(path) else quoted
