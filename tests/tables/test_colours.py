"""Where colours are shown: one table for all commands."""

import io
import sys

import pytest

from geval_py.cli import terminal as progress
from geval_py.cli.terminal import shows_colours

# NO_COLOR, FORCE_COLOR, TERM, a terminal: colours
TABLE = {
    "a terminal": ({}, True, True), "a pipe": ({}, False, False), "a dumb terminal": ({"TERM": "dumb"}, True, False),
    "no TERM": ({"TERM": None}, True, True), "NO_COLOR": ({"NO_COLOR": "1"}, True, False),
    "NO_COLOR=0": ({"NO_COLOR": "0"}, True, False), "an empty NO_COLOR": ({"NO_COLOR": ""}, True, True),
    "FORCE_COLOR": ({"FORCE_COLOR": "1"}, False, True),
    "FORCE_COLOR, dumb": ({"FORCE_COLOR": "1", "TERM": "dumb"}, False, True),
    "FORCE_COLOR, a dumb terminal": ({"FORCE_COLOR": "3", "TERM": "dumb"}, True, True),
    "FORCE_COLOR=0 in a pipe": ({"FORCE_COLOR": "0"}, False, False),
    "FORCE_COLOR=0 on a terminal": ({"FORCE_COLOR": "0"}, True, True),
    "an empty FORCE_COLOR": ({"FORCE_COLOR": ""}, False, False),
    "NO_COLOR wins": ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False),
    "NO_COLOR wins in a pipe": ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False, False),
    "an empty NO_COLOR does not": ({"NO_COLOR": "", "FORCE_COLOR": "1"}, False, True),
}  # fmt: skip


@pytest.fixture
def environment(monkeypatch):
    """Set the variables that colours depend on, and unset those that are not given."""

    def change(variables):
        for name, value in ({"NO_COLOR": None, "FORCE_COLOR": None, "TERM": "xterm"} | variables).items():
            if value is None:
                monkeypatch.delenv(name, raising=False)
            else:
                monkeypatch.setenv(name, value)

    return change


def stream(terminal):
    text = io.StringIO()
    text.isatty = lambda: terminal
    return text


@pytest.mark.parametrize(("variables", "terminal", "coloured"), TABLE.values(), ids=TABLE)
def test_where_colours_are_shown(variables, terminal, coloured, environment, monkeypatch):
    """The progress bar is shown where a cursor can move, in colours or without."""
    environment(variables)
    assert shows_colours(stream(terminal)) is coloured
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", -1)
    shown = stream(terminal)
    monkeypatch.setattr(sys, "stderr", shown)
    with progress.ProgressBar("out.tsv") as bar:
        bar(1, 100)
        bar(50, 100)
    is_shown = terminal and variables.get("TERM") != "dumb"
    assert ("out.tsv" in shown.getvalue()) == is_shown
    assert ("\x1b[3" in shown.getvalue()) == (is_shown and coloured)


@pytest.fixture
def submission(tmp_path, monkeypatch):
    """Twenty items, of which the five whose expected word is b are the worst, and a line that check warns of."""
    (tmp_path / "dev-0").mkdir()
    files = {
        "in.tsv": ["x"] * 20, "expected.tsv": ["a"] * 15 + ["b"] * 5,
        "out.tsv": ["a:0.5 c:0.5"] * 15 + ["b:0.25 c:0.75"] * 5, "out-x.tsv": ["a:0.5 b:0.6"] * 20,
    }  # fmt: skip
    for name, lines in files.items():
        (tmp_path / "dev-0" / name).write_text("".join(f"{line}\n" for line in lines))
    (tmp_path / "config.txt").write_text("-m PerplexityHashed\n")
    monkeypatch.chdir(tmp_path)


COMMANDS = {
    "check": (["check"], True), "check --format github": (["check", "--format", "github"], False),
    "marks": (["-t", "dev-0", "-o", "out.tsv", "-l", "--mark-worst-features"], True),
    "marks in JSON": (["-t", "dev-0", "-o", "out.tsv", "-l", "--mark-worst-features", "--format", "json"], False),
    "lines": (["-t", "dev-0", "-o", "out.tsv", "-l"], False),
    "features": (["-t", "dev-0", "-o", "out.tsv", "-w"], False), "scores": (["-t", "dev-0"], False),
    "compare": (["compare", "-t", "dev-0", "--samples", "100"], False), "help": (["--help"], False),
}  # fmt: skip


@pytest.mark.parametrize(("words", "has_colours"), COMMANDS.values(), ids=COMMANDS)
def test_every_command_asks_the_same_table(words, has_colours, submission, environment, geval):
    for name in ("a terminal", "a pipe", "NO_COLOR", "FORCE_COLOR"):
        variables, terminal, coloured = TABLE[name]
        environment(variables)
        _, out, err = geval(*words, terminal=terminal)
        assert ("\x1b[" in out) == (coloured and has_colours)
        assert "\x1b" not in err
