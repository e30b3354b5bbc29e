"""A leaderboard as text, JSON, CSV, Markdown and LaTeX, by ``geval board show``."""

import math
import re

import pytest
from rows import Rows
from samples import set_keys

from geval_py.cli import commands
from geval_py.errors import UsageError
from geval_py.explaining.significance import group_letters


@pytest.fixture
def board(tmp_path):
    """The folder of a board with four entries and a baseline."""
    rows = Rows(tmp_path, also="[LogLossHashed]", samples="400", tests="{test-A: {visible: true}}")
    some = {"tags": ["neural", "big"], "description": "=1+1 | \x1b[31m", "params": {"epochs": "3"}}
    some["links"] = [["code", "https://example.org/code"]]
    rows.submit("one", {"PerplexityHashed": [3.0, 3.1] * 20, "LogLossHashed": 3.05}, **some)
    rows.submit("two", [3.1, 3.0] * 20, at=1)
    rows.submit("three", [5.0, 5.0] * 20, [4.0, 4.5] * 20, at=2)
    rows.submit("four", [math.inf] * 40, at=3, remark="see\nthere")
    rows.submit("-base", [4.0] * 40, baseline=True)
    rows.refresh()
    rows.write_settings()
    return str(tmp_path)


def shown(capsys, *words):
    assert commands.run(["board", "show", *words]) == 0
    return capsys.readouterr().out


def test_as_latex(board, capsys):
    text = shown(capsys, board, "--format", "latex")
    assert text.startswith("% needs \\usepackage{booktabs}\n\\begin{tabular}{rcllrcrll}\n\\toprule\nplace & ")
    assert "\n4 & 4 & four &  & $\\infty$ & [$\\infty$, $\\infty$] & " in text
    legend, left_out = text.splitlines()[-2:]
    assert legend.endswith("(paired tests of all pairs, Holm's correction, 5 %).")
    assert left_out == "% Left out, since a page is narrow: arrived, description, remark. CSV and JSON have them."
    caption = ["--caption", "50 %", "--label", "tab:board"]
    in_a_table = shown(capsys, board, "--format", "latex", *caption)
    _, tabular, comments = re.findall(r"(?:%.*\n)+|(?:[^%].*\n)+", text)
    typeset = comments.replace(f"{left_out}\n", "").replace("% ", "").replace("5 %", "5 \\%")
    assert in_a_table == (
        "% needs \\usepackage{booktabs,adjustbox}\n"
        f"\\begin{{table}}\n\\centering\n\\caption{{50 \\%}}\n\\label{{tab:board}}\n"
        f"\\begin{{adjustbox}}{{max width=\\linewidth}}\n{tabular}\\end{{adjustbox}}\n\n\\smallskip\n"
        f"\\begin{{minipage}}{{\\linewidth}}\n\\footnotesize\n{typeset}\\end{{minipage}}\n\\end{{table}}\n{left_out}\n"
    )


def test_no_figure_stands_where_none_is_disclosed(board, tmp_path, capsys):
    set_keys(tmp_path, tests="{test-A: {disclosed: 0}}")
    lines = shown(capsys, board).splitlines()
    assert lines[0].split() == ["place", "submitter", "arrived", "remark"]
    assert lines[-1] == "No score is shown before the last deadline."
    assert not any(figure in "\n".join(lines) for figure in ("21.", "23.2", "54.", "70.", "Infinity"))


def test_where_nothing_is_it_says_so(tmp_path, capsys):
    keys = {"phases": "[{name: main, until: 2000-01-01T00:00:00Z}, {name: last, until: 2001-01-01T00:00:00Z}]"}
    Rows(tmp_path, **keys).write_settings()
    assert commands.run(["board", "show", str(tmp_path)]) == 0
    assert capsys.readouterr().err == "geval: note: there is no entry for test-A\n"


@pytest.mark.parametrize(("words", "message"), [
    (["--by", "team"], "argument --by: invalid choice: 'team' (choose from 'submitter', 'submission', 'person')"),
    (["--test", "x"], "unrecognized arguments: --test x\n  did you mean --test-name?"),
], ids=["by", "option"])  # fmt: skip
def test_words_that_are_wrong(board, words, message):
    with pytest.raises(UsageError) as error:
        commands.run(["board", "show", board, *words])
    assert str(error.value).removesuffix("\n  geval board show --help shows the options") == message


@pytest.mark.parametrize(("groups", "text"), [
    ((0, 25, 26, 51, 52), "azAZ(53)"), (range(3), "abc"), (range(14), "a–n"), ((0, 1, 3, 4, 5, 6, 8), "abd–gi"),
    (range(23, 30), "xyzA–D"), (range(50, 58), "YZ(53)–(58)"),
])  # fmt: skip
def test_groups_have_letters_as_long_as_there_are_some(groups, text):
    assert group_letters(groups) == text
