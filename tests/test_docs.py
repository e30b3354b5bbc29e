"""The documentation cannot drift: its examples are run, its tables are those of the code, and nothing is left out."""

import contextlib
import dataclasses
import functools
import io
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys

import pytest
from examples import PAGES, ROOT, Session, examples_of, run_page
from tables import PARSERS, TABLES, built, fill, options, without_tables

import geval_py
from geval_py.board import settings
from geval_py.cli import main
from geval_py.cli.commands import COMMANDS
from geval_py.errors import GevalError
from geval_py.reading.outputs import BASELINES
from geval_py.scoring.metrics.registry import METRICS
from geval_py.version import REPOSITORY

README, *_ = PAGES
DOCS = [page for page in PAGES if page.parent == ROOT / "docs"]
MAX_README_LINES = 120
MAX_LINKS_BEFORE_AN_EXAMPLE = 8
WIDEST_CODE = 60  # characters, which a phone shows without scrolling sideways


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def read(page):
    return page.read_text(encoding="utf-8")


def without_blocks(text):
    return re.sub(r"(?ms)^```.*?^```$", "", text)


def without_code(text):
    return re.sub(r"`[^`\n]+`", "", without_blocks(text))


def headings(page):
    found = re.findall(r"^#+ (.*)$", without_blocks(read(page)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def code_in(text):
    blocks = re.findall(r"(?ms)^```\w*\n(.*?)^```$", text)
    return [*blocks, *re.findall(r"`([^`\n]+)`", without_blocks(text))]


TYPED = {"pycon": r"(?m)^(?:>>>|\.\.\.)(?: .*)?$", "console": r"(?m)^\$ (?:.*\\\n)*.*$"}


def lines_of_code(text):
    """The lines of code in a page's blocks: all but data, and of sessions what is typed, not what is printed."""
    lines = []
    for language, block in re.findall(r"(?ms)^```(?!json|text)(\w+)\n(.*?)^```$", text):
        kind = "console" if block.startswith("$ ") else language
        pieces = re.findall(TYPED[kind], block) if kind in TYPED else [block]
        lines += [line for piece in pieces for line in piece.splitlines()]
    return lines


WRITTEN_BY_HAND = [code for page in DOCS if page.name != "api.md" for code in code_in(without_tables(read(page)))]


class SessionInProcess(Session):
    """A session that runs a command in this process, unless it needs a shell."""

    def run_command(self, command):
        line = command.replace("\\\n", " ")
        words = list(shlex.shlex(line, posix=True, punctuation_chars=True))
        if words[0] != "geval" or re.search(r"[$`*?~]", line) or {*"".join(words)} & {*"();<>|&"}:
            return super().run_command(command)
        shown = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
        with (
            contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown), contextlib.chdir(self.folder),
            open(os.devnull) as nothing, pytest.MonkeyPatch.context() as patch,
        ):  # fmt: skip
            patch.setattr(sys, "stdin", nothing)
            main(shlex.split(line)[1:])
        return shown.buffer.getvalue().decode()


@pytest.fixture(scope="module")
def runs_of(tmp_path_factory, fork_server, forked_sandbox):
    """Return what a page's examples print; a page is run once, and no example imports what another has."""

    def start_session(folder):
        return SessionInProcess(folder, fork_server.bin)

    return functools.cache(lambda page: run_page(page, tmp_path_factory.mktemp("page"), start_session))


FULL_PRECISION = re.compile(r"\b\d+\.\d{9,}(?:e-\d+)?\b")

EXAMPLES = [
    pytest.param(page, index, id=f"{name_of(page)}: {example.code}")
    for page in PAGES
    for index, example in enumerate(examples_of(read(page)))
]


@pytest.mark.slow
@pytest.mark.parametrize(("page", "index"), EXAMPLES)
def test_an_example_prints_what_the_page_says(page, index, runs_of):
    """To the letter, but for the last digits of numbers in full precision, which numpy leaves to the processor."""
    example, printed = runs_of(page)[index]
    assert FULL_PRECISION.sub("…", printed) == FULL_PRECISION.sub("…", example.shown)
    shown_numbers = [float(number) for number in FULL_PRECISION.findall(example.shown)]
    assert [float(number) for number in FULL_PRECISION.findall(printed)] == pytest.approx(shown_numbers, rel=1e-12)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_code_fits_a_phone(page):
    assert [line for line in lines_of_code(read(page)) if len(line) > WIDEST_CODE] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_each_block_names_its_language(page):
    assert re.findall(r"(?m)^```.*$", read(page))[::2].count("```") == 0


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_tables_are_those_of_the_code(page):
    assert fill(read(page)) == read(page), "run scripts/write_examples"


@pytest.mark.parametrize("name", TABLES)
def test_each_table_stands_in_one_page(name):
    kept = sum(read(page).count(f"<!-- generated: {name} -->\n") for page in PAGES)
    assert kept + sum(read(page).count(f"<!-- built: {name} -->\n") for page in PAGES) == 1


@pytest.mark.slow
def test_the_site_has_the_tables_that_are_not_kept():
    page = built(read(ROOT / "docs/options.md"))
    assert "<!-- built" not in page
    shown = [option.name for option in options()["geval"] if not option.hidden]
    assert [name for name in shown if name not in page] == []


def test_the_options_of_each_command_are_there():
    assert list(PARSERS) == ["geval", *(f"geval {command}" for command in COMMANDS)]


NAMES = dict.fromkeys(
    [
        *PARSERS,
        *(option.name for of_command in options().values() for option in of_command if option.names),
        *METRICS,
        *BASELINES,
        *(name for name in geval_py.__all__ if not name.endswith("Error")),
    ]
)


@pytest.mark.parametrize("name", NAMES)
def test_is_spoken_of_in_docs(name):
    """A generated table is not enough: somebody wrote a sentence or an example with it."""
    pattern = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])")
    assert any(map(pattern.search, WRITTEN_BY_HAND))


KEYS = [
    field.name
    for kind in (settings.BoardSettings, settings.Test, settings.Phase, settings.Limits)
    for field in dataclasses.fields(kind)
]


@pytest.mark.parametrize("key", dict.fromkeys(KEYS))
def test_a_key_of_board_yaml_is_explained(key):
    (page,) = (page for page in DOCS if page.name == "board-keys.md")
    tables = re.findall(r"(?m)^\|.*\|$", read(page))
    assert any(f"`{key}`" in row for row in tables)


def keys_of(value):
    """All keys of a JSON document, but those that a user chose."""
    if isinstance(value, list):
        return {key for item in value for key in keys_of(item)}
    if not isinstance(value, dict):
        return set()
    return {*value, *(key for name, item in value.items() if name != "parameters" for key in keys_of(item))}


def test_each_key_of_a_json_document_is_described():
    page = next(page for page in DOCS if page.name == "formats.md")
    documents = [e.shown for e in examples_of(read(page)) if "--format json" in e.code]
    keys = {key for document in documents for key in keys_of(json.loads(document))}
    assert len(documents) == 6
    assert keys - set(re.findall(r"`([^`\n]+)`", without_blocks(read(page)))) == set()


def test_each_error_is_documented():
    errors = {name for name, value in vars(geval_py.errors).items() if isinstance(value, type)}
    errors = {name for name in errors if issubclass(getattr(geval_py.errors, name), GevalError)}
    errors -= {"ReasonError", "SubmissionError", "RejectedError", "FailedError"}  # a board's
    table, listed = TABLES["errors"](), read(ROOT / "docs" / "api.md")
    assert [name for name in sorted(errors) if f"`{name}`" not in table] == []
    assert [name for name in sorted(errors) if f"`{name}`" not in listed and f"`errors.{name}`" not in listed] == []


LINKS = [
    pytest.param(page, link, id=f"{name_of(page)}: {link}")
    for page in (*PAGES, ROOT / "CONTRIBUTING.md")
    for link in dict.fromkeys(re.findall(r"\]\(((?!https?:)[^)]+)\)", without_code(read(page))))
]


@pytest.mark.parametrize(("page", "link"), LINKS)
def test_links_lead_somewhere(page, link):
    path, _, anchor = link.partition("#")
    target = page.parent / path if path else page
    assert target.exists()
    assert not anchor or anchor in headings(target)


def test_what_the_recipes_name_is_there():
    """Paths of the project or of the package, files by their names alone, and names in the code."""
    recipes = without_blocks(read(ROOT / "CONTRIBUTING.md")).partition("## Recipes")[2].partition("\n## ")[0]
    kinds = ("*.py", "*.hpp", "*.cpp", "*.toml", "*.html")
    files = [path for folder in ("geval_py", "tests") for kind in kinds for path in (ROOT / folder).rglob(kind)]
    words = set(re.findall(r"\w+", " ".join(map(read, files)))) | set(METRICS)
    names = {path.name for path in files}

    def is_there(name):
        if "/" in name or "." in name:
            return name in names or (ROOT / name).exists() or (ROOT / "geval_py" / name).exists()
        return not name.isidentifier() or "NAME" in name or name in words

    named = re.findall(r"`([^`\s]+)`", recipes)
    assert len(named) > 100
    assert [name for name in named if not is_there(name)] == []


def test_the_script_of_the_tests_says_what_it_does_and_does_nothing():
    out = subprocess.run(["bash", ROOT / "scripts/test", "--help"], capture_output=True, text=True, check=True).stdout
    assert out.startswith("Everything that must hold before a change lands: lint, types, tests")
    assert "Usage: scripts/test [--long | --coverage] [pytest arguments]\n" in out
    assert "set -euo" not in out


@pytest.mark.slow
def test_the_demonstration_shows_that_it_works(capfd):
    """While it installs, which takes minutes on a busy machine."""
    demo = runpy.run_path(str(ROOT / "scripts/demo"))
    assert demo["run_with_dots"]([sys.executable, "-c", "import time; time.sleep(4); exit(3)"]) == 3
    assert re.fullmatch(r"\.+\n", capfd.readouterr().out)


def test_items_of_the_authoring_page_are_split_without_leaks(monkeypatch, tmp_path, geval):
    """The example on the page shows a challenge to publish."""
    page = read(ROOT / "docs/authoring.md")
    (command,) = re.findall(r"\$ geval (challenge split [^$]*?)\npart ", page)
    shutil.copytree(ROOT / "challenges/gazette", tmp_path / "gazette")
    monkeypatch.chdir(tmp_path / "gazette")
    assert geval(*shlex.split(command.replace("\\\n", " ")))[0] == 0
    status, out, _ = geval("challenge", "leaks", "again", "--answers", "again-answers")
    assert (status, "E40" in out) == (0, False)


def test_the_readme_is_short():
    assert len(read(README).splitlines()) <= MAX_README_LINES


def test_the_readme_installs_before_it_shows_a_command():
    before, _, _ = read(README).partition("```console")
    assert before.index("scripts/demo ") < before.index("scripts/test ") < before.index("pip install .\n")
    assert f"pip install git+{REPOSITORY}\n" in before
    assert len(re.findall(r"\]\(", re.sub(r"!\[[^]]*\]\([^)]*\)", "", before))) <= MAX_LINKS_BEFORE_AN_EXAMPLE
    assert f"git clone {REPOSITORY}`" in before
