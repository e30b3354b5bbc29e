"""docs/asvs.md, the checklist of the server's security: its tests are there, and the static scan finds what it says."""

import json
import re
import subprocess
import sys
from collections import Counter

from examples import ROOT

PAGE = (ROOT / "docs/asvs.md").read_text(encoding="utf-8")


def test_each_test_of_the_checklist_is_there():
    there = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        there |= set(re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    assert len(named) > 60
    assert named - there == set()


def test_each_requirement_is_shown_or_read():
    lines = re.findall(r"^\| [\d.,– ]+ \|.*$", PAGE, re.MULTILINE)
    assert len(lines) > 60
    assert [line for line in lines if "`test_" not in line and "*read*" not in line] == []


def test_the_static_scan_finds_what_the_page_says():
    words = [sys.executable, "-m", "ruff", "check", "--select", "S", "--output-format", "json", "geval_py"]
    found = subprocess.run(words, cwd=ROOT, capture_output=True, text=True).stdout
    counts = Counter(one["code"] for one in json.loads(found))
    told = {rules: int(count) for rules, count in re.findall(r"^\| (S[\dS, ]+) \| (\d+) \|", PAGE, re.MULTILINE)}
    assert {rules: sum(counts.pop(rule, 0) for rule in rules.split(", ")) for rules in told} == told
    assert not counts
