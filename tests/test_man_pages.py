"""The manual pages: they have all that ``--help`` shows, in roff that groff understands."""

import re
import subprocess

import pytest
from man_pages import man_page, write_man_pages
from tables import PARSERS, options

REQUESTS = {".TH", ".SH", ".PP", ".TP", ".BR", ".br", ".nf", ".fi"}


@pytest.mark.parametrize("command", PARSERS)
def test_a_manual_page_has_all_options(command):
    page = man_page(command)
    plain = re.sub(r"\\f[BIR]|\\&", "", page).replace("\\-", "-").replace("\\e", "\\")
    shown = [option for option in options()[command] if not option.hidden]
    assert all(", ".join(option.names) in plain and " ".join(option.help.split()) in plain for option in shown)
    words = " ".join(plain.split())
    below = [line.removeprefix("Exit status: ") for line in (PARSERS[command]().epilog or "").splitlines()]
    assert [line for line in below if " ".join(line.split()) not in words and not line.endswith(":")] == []
    assert {line.split()[0] for line in page.splitlines() if line[:1] in {".", "'"}} <= REQUESTS


def test_a_page_for_each_command(tmp_path):
    names = {path.name for path in write_man_pages(tmp_path / "man1")}
    assert names == {path.name for path in (tmp_path / "man1").iterdir()}
    assert {"geval.1", "geval-check.1", "geval-board-scan.1"} <= names
    assert len(names) == len(PARSERS)


@pytest.mark.long
def test_groff_finds_no_fault_in_a_manual_page():
    for command in PARSERS:
        words = ["groff", "-man", "-ww", "-k", "-Tutf8"]
        run = subprocess.run(words, input=man_page(command), capture_output=True, text=True, check=True)
        assert run.stderr == ""
