"""The checker's report in every format, with whatever a submission may hold."""

import json
import re
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft4Validator

from geval_py.checking.problem_formats import render
from geval_py.checking.rules import RULES, RULES_BY_CODE, Place, Problem, Report
from geval_py.text import visible

PROPERTY = settings(deadline=None, derandomize=True)


def problem(code, *places, path="dev-0/out.tsv", count=None, share=1.0, summary=None):
    rule, count = RULES_BY_CODE[code], len(places) if count is None else count
    return Problem(rule=rule, path=path, count=count, share=share, summary=summary or rule.summary, places=places)


def place(line, column, message, token="", text=""):
    return Place(line, column, token, message, text)


def report(*problems, files=("dev-0/out.tsv",), strict=False):
    return Report(version="0.1.0", files=files, problems=problems, strict=strict)


@pytest.mark.parametrize(("files", "said"), [((), "0 files"), (("a",), "1 file"), (("a", "b"), "2 files")])
def test_text_without_a_problem(files, said):
    assert render(report(files=files), "text") == f"no problems in {said}\n"


def test_a_rule_that_names_fix_itself_is_left_as_it_is():
    assert render(report(problem("W204", count=1)), "text").count("--fix") == 1


def test_a_line_is_cut_around_the_caret():
    line = "a:0.1 " * 1000 + "b:x " + "c:0.1 " * 1000
    shown = render(report(problem("E114", place(1, 6003, "`x` is not a number", "x", line))), "text").split("\n")
    picture, caret = shown[4:6]
    assert len(picture) < 100
    assert picture.startswith("      | …")
    assert picture[caret.index("^")] == "x"


@pytest.mark.parametrize(("lines", "count", "said"), [
    ((9,), 1, None), ((9,), 2, "also on 1 more line"), ((9, 12), 2, "also on line 12"),
    ((9, 12), 3, "also on line 12, 1 more line"), ((9, 12, 2345), 3, "also on line 12, line 2345"),
    ((9, 12, 12, 2345), 1003, "also on line 12, line 2345, 1,000 more lines"),
])  # fmt: skip
def test_the_first_line_is_shown_and_then_numbers(lines, count, said):
    places = [place(line, 1, "m", text="a b") for line in lines]
    shown = render(report(problem("E113", *places, count=count)), "text").split("\n")
    assert shown[3:6] == ["    dev-0/out.tsv:9:1: m", "      | a b", "      | ^"]
    assert shown[6:-4] == ([f"    {said}"] if said else [])


@pytest.mark.parametrize(("share", "text"), [
    (0.0, "0 %"), (1e-9, "<0.1 %"), (0.0004, "<0.1 %"), (0.001, "0.1 %"), (0.5, "50 %"), (0.996, "99 %"),
    (0.99996, "99 %"), (1.0, "100 %"),
])  # fmt: skip
def test_a_share_is_rounded_neither_to_none_nor_to_all(share, text):
    found = problem("E114", place(1, 1, "m"), count=5, share=share)
    assert f"error): 5 lines, {text}\n" in render(report(found), "text")


# GitLab: the fields of https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format

TEXT = {"type": "string", "minLength": 1}
GITLAB = Draft4Validator({"type": "array", "items": {
    "required": ["description", "check_name", "fingerprint", "severity", "location"],
    "properties": {
        "description": TEXT, "check_name": TEXT, "fingerprint": TEXT,
        "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
        "location": {"required": ["path", "lines"], "properties": {
            "path": {"type": "string"},
            "lines": {"required": ["begin"], "properties": {"begin": {"type": "integer", "minimum": 1}}},
        }},
    },
}})  # fmt: skip


def gitlab(checked):
    entries = json.loads(render(checked, "gitlab"))
    GITLAB.validate(entries)
    return entries


def test_a_fingerprint_stays_if_a_line_moves():
    before = gitlab(report(problem("E114", place(1, 2, "m"), place(5, 2, "m"), path="./dev-0/out.tsv")))
    after = gitlab(report(problem("E114", place(2, 2, "m"), place(9, 7, "m"), place(9, 8, "n"))))
    prints = [entry["fingerprint"] for entry in before]
    assert prints == [entry["fingerprint"] for entry in after[:2]]
    assert len({entry["fingerprint"] for entry in after}) == 3
    assert [entry["location"] for entry in before] == [
        {"path": "dev-0/out.tsv", "lines": {"begin": line}} for line in (1, 5)
    ]


HOSTILE_PIECES = [
    "\x1b[31m", "\x1b]0;title\x07", "\n", "\r\n", "::error file=a::", "::add-mask::a", "##[group]", "#", "]]>", "<!--",
    "&amp;", "\ud800", "\udc80", "\ufffe", "\u202e", "\u2028", "\x85", "\x00", "%0A", "%", ",", ":", "\t", "\\", "{0}",
    " ", "/", "水", "e\u0301",
]  # fmt: skip
HOSTILE = st.one_of(
    st.text(st.characters()),  # lone surrogates and noncharacters too
    st.lists(st.sampled_from(HOSTILE_PIECES)).map("".join),
)
PLACES = st.builds(
    Place, line=st.integers(0, 99), column=st.integers(0, 99), token=HOSTILE, message=HOSTILE, text=HOSTILE
)
PROBLEMS = st.builds(
    Problem, rule=st.sampled_from(RULES), path=HOSTILE, count=st.integers(1, 10**9), share=st.floats(0, 1),
    summary=HOSTILE, places=st.lists(PLACES, min_size=1, max_size=3).map(tuple),
)  # fmt: skip
REPORTS = st.builds(
    Report, version=st.just("0.1.0"), files=st.lists(HOSTILE, max_size=2).map(tuple),
    problems=st.lists(PROBLEMS, max_size=3).map(tuple), strict=st.booleans(),
)  # fmt: skip
INJECTION = "\n::error::x ##[error]x\r::warning::y\x1b[2J\u202e\udc80]]>"
INJECTED = report(
    problem("E114", place(1, 1, INJECTION, INJECTION, INJECTION), path=INJECTION, summary=INJECTION),
    problem("E111", place(1, 1, "::error::x"), path="::error::x", summary="::error::x"),
    files=(INJECTION, "::error::x"),
)


def is_a_command(line):
    """As actions/runner reads a line (ActionCommand.cs): `::name` after white space, or `##[name` anywhere."""
    return line.strip().startswith("::") or "##[" in line


@PROPERTY
@given(REPORTS)
@example(INJECTED)
def test_text_has_no_control_character(checked):
    written = render(checked, "text")
    assert all(c == "\n" or unicodedata.category(c) not in {"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"} for c in written)
    assert not any(is_a_command(line) for line in written.split("\n"))


@PROPERTY
@given(REPORTS)
@example(INJECTED)
def test_github_has_one_command_a_problem(checked):
    """One line a problem, and the runner reads back which file, line and message it is about."""
    lines = render(checked, "github").splitlines()
    assert len(lines) == len(checked.problems)
    for line, found in zip(lines, checked.problems, strict=True):
        assert line.isprintable()
        command, properties, message = re.fullmatch(r"::(\w+) (.*?)::(.*)", line).groups()
        assert command == found.rule.severity
        read = dict(item.split("=", 1) for item in properties.split(","))
        assert unescaped(read["file"]) == visible(found.path.removeprefix("./"))
        first = found.places[0]
        assert read["line"] == str(max(1, first.line))
        assert unescaped(message).startswith(visible(first.message))


def unescaped(value):
    for escape, character in {"%3A": ":", "%2C": ",", "%0D": "\r", "%0A": "\n", "%25": "%"}.items():
        value = value.replace(escape, character)
    return value


@PROPERTY
@given(REPORTS)
@example(INJECTED)
def test_gitlab_and_concise_have_an_entry_a_place(checked):
    number = sum(len(found.places) for found in checked.problems)
    fingerprints = {entry["fingerprint"] for entry in gitlab(checked)}
    lines = render(checked, "concise").split("\n")
    assert (len(fingerprints), len(lines)) == (number, number + 2)
    assert all(line.isprintable() and not is_a_command(line) for line in lines)


@PROPERTY
@given(REPORTS)
@example(INJECTED)
def test_json_reads_back(checked):
    written = render(checked, "json")
    document = json.loads(written, parse_constant=pytest.fail)
    assert written.isascii()
    assert not any(is_a_command(line) for line in written.split("\n"))
    assert json.dumps(document, ensure_ascii=False).encode("utf-8")  # no lone surrogate
    assert document["files"] == [name.encode("utf-8", "backslashreplace").decode() for name in checked.files]
    assert [found["count"] for found in document["problems"]] == [found.count for found in checked.problems]


@pytest.mark.parametrize(("root", "path"), [
    ("GITHUB_WORKSPACE", "sub/dev-0/out.tsv"), ("CI_PROJECT_DIR", "sub/dev-0/out.tsv"), ("", "dev-0/out.tsv"),
])  # fmt: skip
def test_paths_begin_at_the_root_of_the_repository(root, path, tmp_path, monkeypatch):
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    for name in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    if root:
        monkeypatch.setenv(root, str(tmp_path))
    checked = report(problem("E102", place(0, 0, "empty"), path="./dev-0/out.tsv"), files=("./dev-0/out.tsv",))
    assert f"::error file={path},line=1," in render(checked, "github")
    assert [entry["location"]["path"] for entry in json.loads(render(checked, "gitlab"))] == [path]
    for elsewhere in ("/dev/null", "https://x.org/out.tsv"):
        other = report(problem("E102", place(0, 0, "empty"), path=elsewhere))
        assert json.loads(render(other, "gitlab"))[0]["location"]["path"] == elsewhere
