"""A report in the form that its reader takes: people, programs, GitHub, code scanning, test dashboards.

Paths, words and messages are from strangers. In every format they come out with what a terminal, an XML parser or
GitHub's runner would act on written as escapes.

- GitHub: https://docs.github.com/actions/reference/workflow-commands-for-github-actions; the escapes are those of
  actions/toolkit, packages/core/src/command.ts.
- SARIF 2.1.0: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html.
- JUnit XML: what Jenkins and GitLab read (testsuites, testsuite, testcase, failure, system-out).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any

from geval_py.checking.rules import RULES, Place, Problem, Report, Rule, Severity
from geval_py.showing.colours import DIM, PLAIN, RED, YELLOW
from geval_py.text import excerpt, visible

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

MOST_LINES_IN_ANNOTATION = 20
SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
COLOURS: dict[Severity, str] = {"error": RED, "warning": YELLOW}


def render(report: Report, name: str, *, colour: bool = False) -> str:
    """Write a report in the format of that name (a key of FORMATS); only text has colours."""
    return text(report, colour=colour) if name == "text" else FORMATS[name](report)


def text(report: Report, *, colour: bool = False) -> str:
    """Write a report for people: by file, then by rule, with the lines cut around a caret; a last line sums up."""
    lines: list[str] = []
    for path, problems in groupby(report.problems, key=lambda problem: problem.path):
        lines.append(visible(path))
        for problem in problems:
            lines += [*_problem_lines(problem, colour=colour), ""]
    return inert("".join(f"{line}\n" for line in [*lines, _conclusion(report)]))


def json_text(report: Report) -> str:
    """Write one JSON document that strict parsers read."""
    return _json(
        {
            "version": report.version,
            "status": report.status,
            "files": list(report.files),
            "problems": [_problem_document(problem) for problem in report.problems],
        }
    )


def github(report: Report) -> str:
    """Write a workflow command a problem, at its first place: GitHub shows ten of each kind a step."""
    return "".join(_workflow_command(problem) for problem in report.problems)


def sarif(report: Report) -> str:
    """Write SARIF 2.1.0: a result a place, or one for the file where a problem has none."""
    driver = {"name": "geval-py", "version": report.version, "rules": [_sarif_rule(rule) for rule in RULES]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_sarif_result(problem, place) for problem in report.problems for place in _places(problem)],
    }
    return _json({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]})


def junit(report: Report) -> str:
    """Write JUnit XML: a suite a file, a case a problem, or a passing one; in ASCII.

    Errors are failures, and warnings only where they make the status 1.
    """
    from xml.etree.ElementTree import Element, indent, tostring

    root = Element("testsuites", name="geval check")
    root.extend(_suite(path, report) for path in _paths(report))
    _add_counts(root)
    indent(root)
    document = tostring(root, encoding="us-ascii", xml_declaration=True).decode("ascii")
    return inert(document, ("&#58;:", "##&#91;")) + "\n"


FORMATS: dict[str, Callable[[Report], str]] = {
    "text": text,
    "json": json_text,
    "github": github,
    "sarif": sarif,
    "junit": junit,
}


# What all formats say


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _share(share: float) -> str:
    """Write a share in percent; only none is 0 %, and only all is 100 %."""
    if 0 < share < 0.001:
        return "less than 0.1 %"
    if 0.999 < share < 1:
        return "more than 99.9 %"
    return "100 %" if share == 1 else f"{100 * share:.1f} %"


def _extent(problem: Problem) -> str:
    """Say on how many lines a problem is; "" where it is the file's as a whole."""
    if problem.places and not any(place.line for place in problem.places):
        return ""
    return f"{_number(problem.count, 'line')}, {_share(problem.share)}"


def _mend(rule: Rule) -> str:
    return f"{rule.mend} --fix does it." if rule.fixable and "--fix" not in rule.mend else rule.mend


def _places(problem: Problem) -> tuple[Place, ...]:
    """Give a problem's places, or the file as a whole where none was kept."""
    return problem.places or (Place(line=0, column=0, token="", message=problem.summary),)


def _paths(report: Report) -> list[str]:
    """Give the files, and those that should have been there."""
    return list(dict.fromkeys([*report.files, *(problem.path for problem in report.problems)]))


def _position(path: str, place: Place) -> str:
    return f"{visible(path)}:{place.line}:{max(1, place.column)}" if place.line else visible(path)


def _from_root(path: str) -> str:
    """Write a path as platforms name a repository's files: with slashes, and no `./` before it."""
    import os

    return path.replace(os.sep, "/").removeprefix("./")


PLAIN_SPELLINGS = ("\\::", "##\\[")


def inert(document: str, spellings: tuple[str, str] = PLAIN_SPELLINGS) -> str:
    """Keep GitHub's runner, which reads all that a job prints, from seeing a command in a submission's words.

    It takes `::name::` at the beginning of a line, spaces aside, and `##[name]` anywhere; ``spellings`` are what to
    write for `::` and `##[`.
    """
    colons, brackets = spellings
    return re.sub(r"(?m)^(\s*)::", lambda match: match[1] + colons, document).replace("##[", brackets)


def _json(document: Mapping[str, Any]) -> str:
    import json

    written = json.dumps(_unicode(document), ensure_ascii=True, indent=2, allow_nan=False)
    return written.replace("##[", "##\\u005b") + "\n"


def _unicode(value: Any) -> Any:
    r"""Write lone surrogates, as in a path that is not UTF-8, as escapes: strict parsers refuse ``"\udc80"``."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, Mapping):
        return {key: _unicode(item) for key, item in value.items()}
    return [_unicode(item) for item in value] if isinstance(value, list) else value


# Text


def _problem_lines(problem: Problem, *, colour: bool) -> Iterator[str]:
    rule, extent = problem.rule, _extent(problem)
    start, end = (COLOURS[rule.severity], PLAIN) if colour else ("", "")
    yield f"  {start}{rule.code} {rule.name} ({rule.severity}){end}" + (f": {extent}" if extent else "")
    yield f"    {visible(problem.summary)}"
    for place in problem.places:
        if place.line or place.message != problem.summary:
            yield f"    {_position(problem.path, place)}: {visible(place.message)}"
            yield from _picture(place, colour=colour)
    if extent and problem.count > len(problem.places):
        yield f"    and {_number(problem.count - len(problem.places), 'more line')}"
    yield f"    To mend: {_mend(rule)}"


def _picture(place: Place, *, colour: bool) -> Iterator[str]:
    start, end = (DIM, PLAIN) if colour else ("", "")
    if place.text:
        for line in excerpt(place.text, max(1, place.column)).split("\n"):
            yield f"      {start}| {line}{end}"


def _conclusion(report: Report) -> str:
    files = _number(len(_paths(report)), "file")
    if not report.problems:
        return f"no problems in {files}"
    errors = sum(problem.rule.severity == "error" for problem in report.problems)
    warnings = len(report.problems) - errors
    return f"{_number(errors, 'error')}, {_number(warnings, 'warning')} in {files}"


# JSON


def _problem_document(problem: Problem) -> dict[str, Any]:
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


# GitHub


def _workflow_command(problem: Problem) -> str:
    rule, place = problem.rule, _places(problem)[0]
    properties = {"file": visible(_from_root(problem.path))}
    if place.line:
        properties |= {"line": str(place.line), "col": str(max(1, place.column))}
    properties["title"] = f"{rule.code} {rule.name}"
    written = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    message = "\n".join(filter(None, (visible(place.message), _extent_with_lines(problem), _mend(rule))))
    return f"::{rule.severity} {written}::{_data(message)}\n"


def _extent_with_lines(problem: Problem) -> str:
    """Say on how many lines a problem is, and on which first."""
    lines = [str(place.line) for place in problem.places if place.line][:MOST_LINES_IN_ANNOTATION]
    if len(lines) < 2:
        return _extent(problem)
    return f"{_extent(problem)}: {', '.join(lines)}{', …' if problem.count > len(lines) else ''}"


def _data(value: str) -> str:
    return value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    return _data(value).replace(":", "%3A").replace(",", "%2C")


# SARIF


def _sarif_rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": _sarif_text(rule.summary),
        "fullDescription": _sarif_text(rule.why),
        "help": _sarif_text(_mend(rule)),
        "defaultConfiguration": {"level": rule.severity},
    }


def _sarif_result(problem: Problem, place: Place) -> dict[str, Any]:
    extent = f" ({_extent(problem)} in all)" if problem.count > 1 else ""
    location: dict[str, Any] = {"artifactLocation": {"uri": _uri(problem.path)}}
    if place.line:
        location["region"] = {"startLine": place.line, "startColumn": max(1, place.column)}
    return {
        "ruleId": problem.rule.code,
        "ruleIndex": RULES.index(problem.rule),
        "level": problem.rule.severity,
        "message": _sarif_text(place.message + extent),
        "locations": [{"physicalLocation": location}],
    }


def _sarif_text(message: str) -> dict[str, str]:
    """Make a message: braces are doubled (3.11.5), and `[words](address)` is no link (3.11.6)."""
    return {"text": visible(message).replace("{", "{{").replace("}", "}}").replace("](", "\\](")}


def _uri(path: str) -> str:
    """Write a path as a URI: relative as the path is, its bytes percent-encoded."""
    import os
    from urllib.parse import quote

    try:
        quoted = quote(_from_root(path), errors="surrogateescape")
    except UnicodeEncodeError:
        quoted = quote(_from_root(path), errors="surrogatepass")
    return f"file:///{quoted.lstrip('/')}" if os.path.isabs(path) else quoted


# JUnit


def _suite(path: str, report: Report) -> Element:
    from xml.etree.ElementTree import Element, SubElement

    suite = Element("testsuite", name=visible(path))
    problems = [problem for problem in report.problems if problem.path == path]
    if not problems:
        SubElement(suite, "testcase", classname=visible(path), name="no problems", file=visible(path))
    for problem in problems:
        name = f"{problem.rule.code} {problem.rule.name}"
        case = SubElement(suite, "testcase", classname=visible(path), name=name, file=visible(path))
        _add_outcome(case, problem, fails=report.strict or problem.rule.severity == "error")
    _add_counts(suite)
    return suite


def _add_outcome(case: Element, problem: Problem, *, fails: bool) -> None:
    from xml.etree.ElementTree import SubElement

    summary = ": ".join(filter(None, (visible(problem.summary), _extent(problem))))
    places = [f"{_position(problem.path, place)}: {visible(place.message)}" for place in problem.places]
    if fails:
        outcome = SubElement(case, "failure", type=problem.rule.code, message=summary)
    else:
        outcome = SubElement(case, "system-out")
    outcome.text = "\n".join([summary, *places, _mend(problem.rule)])


def _add_counts(element: Element) -> None:
    element.set("tests", str(len(element.findall(".//testcase"))))
    element.set("failures", str(len(element.findall(".//failure"))))
    element.set("errors", "0")
