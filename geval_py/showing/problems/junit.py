"""A report for test dashboards: JUnit XML as Jenkins and GitLab read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from geval_py.checking.rules import Problem, Report
from geval_py.showing.problems.github import inert
from geval_py.showing.problems.wording import extent, paths_of, position, what_to_do
from geval_py.text import visible

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

XML_SPELLINGS = ("&#58;:", "##&#91;")


def as_junit(report: Report) -> str:
    """Write JUnit XML: a suite a file, a case a problem, or a passing one; in ASCII.

    Errors are failures, and warnings only where they make the status 1.
    """
    from xml.etree.ElementTree import Element, indent, tostring

    root = Element("testsuites", name=report.command)
    root.extend(_suite(path, report) for path in paths_of(report))
    _add_counts(root)
    indent(root)
    document = tostring(root, encoding="us-ascii", xml_declaration=True).decode("ascii")
    return inert(document, XML_SPELLINGS) + "\n"


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

    summary = ": ".join(filter(None, (visible(problem.summary), extent(problem))))
    places = [f"{position(problem.path, place)}: {visible(place.message)}" for place in problem.places]
    if fails:
        outcome = SubElement(case, "failure", type=problem.rule.code, message=summary)
    else:
        outcome = SubElement(case, "system-out")
    outcome.text = "\n".join([summary, *places, what_to_do(problem.rule)])


def _add_counts(element: Element) -> None:
    element.set("tests", str(len(element.findall(".//testcase"))))
    element.set("failures", str(len(element.findall(".//failure"))))
    element.set("errors", "0")
