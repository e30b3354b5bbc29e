"""The documentation is run: each console block's commands print what the block says."""

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from geval_py.checking.rules import RULES

ROOT = Path(__file__).parent.parent
READMES = [ROOT / "README.md", *sorted((ROOT / "challenges").glob("*/README.md"))]
BIN = Path(sys.executable).parent


def examples():
    """Each command in a README's console blocks, with the folder to run it in and what it should print."""
    for readme in READMES:
        text = readme.read_text(encoding="utf-8")
        folder = readme.parent
        for block in re.findall(r"^```console\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
            for command, printed in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
                name = f"{readme.relative_to(ROOT).parent.name or 'README'}: {command}"
                if command.startswith("cd "):
                    folder = readme.parent / command.removeprefix("cd ")
                elif not command.startswith(("scripts/", "pip ")):
                    yield pytest.param(folder, command, printed, id=name)


@pytest.mark.parametrize(("folder", "command", "printed"), list(examples()))
def test_command_prints_what_the_readme_says(folder, command, printed):
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    run = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert run.stdout + run.stderr == printed


def test_python_examples_in_the_readme(monkeypatch):
    monkeypatch.chdir(ROOT)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    session = "\n".join(re.findall(r"^```pycon\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))
    test = doctest.DocTestParser().get_doctest(session, {}, "README.md", "README.md", 0)
    assert test.examples
    assert doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test).failed == 0


def test_the_table_of_rules_is_that_of_the_code():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = text.split("<!-- rules -->")[1].split("<!-- end of rules -->")[0]
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in table.strip().splitlines()[2:]]
    assert rows == [[r.code, r.name, "fixable" if r.fixable else "", r.summary] for r in RULES]
