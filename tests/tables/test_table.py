"""A table in every format, and JSON that strict parsers read."""

import csv
import io
import json
import math
import re
import xml.etree.ElementTree as ElementTree
from functools import partial

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from geval_py.tables import escapes
from geval_py.tables.escapes import json_list_text, json_text
from geval_py.tables.formats import Tabular
from geval_py.tables.numbers import exact
from geval_py.tables.table import Bold, Column, Table
from geval_py.text import visible

PROPERTY = settings(deadline=None, derandomize=True)

COLUMNS = [
    Column(name="system"), Column(name="score", unit="words", alignment="right", write=partial(exact, exponent=False)),
    Column(name="95 %", alignment="centre"), Column(name="note"),
]  # fmt: skip
ROWS = [("a|b_c", 2.5, "[-1, +Infinity]", "=x\t<i>"), ("[水]", math.inf, None, "\x1b&")]

FORMATS = {
    "tabs": "a|b_c\t2.5\t[-1, +Infinity]\t=x\\t<i>\n[水]\tInfinity\t\t\\x1b&\n",
    "text": ("system  score (words)  95 %             note\n" "a|b_c   2.5            [-1, +Infinity]  =x\\t<i>\n"
     "[水]    Infinity                        \\x1b&\n"),
    "markdown": ("| system | score (words) | 95 % | note |\n" "| --- | ---: | :---: | --- |\n"
     "| a\\|b\\_c | 2.5 | \\[-1, +Infinity\\] | =x\\\\t&lt;i&gt; |\n" "| \\[水\\] | Infinity |  | \\\\x1b&amp; |\n"),
    "latex": ("\\begin{tabular}{lrcl}\n\\toprule\n" "system & score (words) & 95 \\% & note \\\\\n\\midrule\n"
     "a\\textbar{}b\\_c & 2.5 & [$-$1, $+\\infty$] & =x\\textbackslash{}t\\textless{}i\\textgreater{} \\\\\n"
     "{}[水] & $\\infty$ &  & \\textbackslash{}x1b\\& \\\\\n" "\\bottomrule\n\\end{tabular}\n"),
    "csv": 'system,score,95 %,note\na|b_c,2.5,"[-1, +Infinity]",\'=x\\t<i>\n[水],Infinity,,\\x1b&\n',
    "html": ("<table>\n<thead>\n<tr><th>system</th><th>score (words)</th><th>95 %</th><th>note</th></tr>\n"
     "</thead>\n<tbody>\n" '<tr><td>a|b_c</td><td style="text-align: right">2.5</td>'
     '<td style="text-align: center">[-1, +Infinity]</td><td>=x\\t&lt;i&gt;</td></tr>\n'
     '<tr><td>[水]</td><td style="text-align: right">Infinity</td><td style="text-align: center"></td>'
     "<td>\\x1b&amp;</td></tr>\n" "</tbody>\n</table>\n"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "written"), FORMATS.items(), ids=FORMATS)
def test_formats(name, written):
    assert "".join(getattr(Table(COLUMNS, ROWS), name)()) == written


NEEDS = "% needs \\usepackage{booktabs}\n"


class Bare(Tabular):
    def table(self):
        return Table(COLUMNS[:1], [("a",)])


class WithLegend(Bare):
    notes = ("few lines",)

    def legend(self):
        return iter(["a|b", "<c>"])


BELOW = {
    "text": "\na|b\n<c>\n", "markdown": "\na\\|b\n&lt;c&gt;\nNote: few lines.\n",
    "latex": "% a|b\n% <c>\n% Note: few lines.\n", "html": "<p>a|b<br>&lt;c&gt;<br>Note: few lines.</p>\n",
}  # fmt: skip


@pytest.mark.parametrize("name", BELOW)
def test_the_legend_stands_below_the_table(name):
    value = WithLegend()
    above = NEEDS if name == "latex" else ""
    assert "".join(getattr(value, name)()) == above + "".join(getattr(value.table(), name)()) + BELOW[name]
    assert str(value) == "system\na\n\na|b\n<c>\nNote: few lines."


def test_text_without_a_header_and_tables_without_a_row():
    assert list(Table(COLUMNS[:2], [("水", 1.0), ("abc", 2.0)]).text(header=False)) == ["水   1.0\n", "abc  2.0\n"]
    assert list(Table(COLUMNS, []).text(header=False)) == []
    for name in FORMATS:
        assert ("system" in "".join(getattr(Table(COLUMNS, []), name)())) == (name != "tabs")


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "text"])
def test_rows_are_written_one_by_one(name):
    def rows():
        yield ROWS[0]
        pytest.fail("the second row was read before the first was written")

    written = getattr(Table(COLUMNS, rows()), name)()
    assert any("a|b" in piece or "a\\" in piece for piece in written)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("row", [ROWS[0][:3], (*ROWS[0], "x")], ids=["too short", "too long"])
def test_a_row_of_another_length(name, row):
    with pytest.raises(ValueError, match=r"zip\(\)"):
        list(getattr(Table(COLUMNS, [row]), name)())


FORMULAS = {
    "=1+1": "'=1+1", "-1": "'-1", "\tx": "'\tx", "\nx": "'\nx", " =1": " =1", "": "", 'a"b,c': 'a"b,c',
}  # fmt: skip


@pytest.mark.parametrize(("text", "cell"), FORMULAS.items(), ids=map(repr, FORMULAS))
def test_text_is_no_formula(text, cell):
    written = "".join(Table([Column(name="a", write=str)], [(text,), ("x",)]).csv())
    assert list(csv.reader(io.StringIO(written, newline=""))) == [["a"], [cell], ["x"]]
    assert list(Table([Column(name="=x"), Column(name="a\x1b")], []).csv()) == ["'=x,a\\x1b\n"]


@pytest.mark.parametrize(("value", "cell"), [
    (-0.5, "-0.5"), (-3, "-3"), (1e-300, "1e-300"), (1 / 3, "0.3333333333333333"), (-math.inf, "-Infinity"),
    (math.nan, "NaN"), (None, ""),
], ids=repr)  # fmt: skip
def test_numbers_have_all_digits_and_no_apostrophe(value, cell):
    written = "".join(Table([Column(name="a"), Column(name="b", write=lambda _: "rounded")], [("x", value)]).csv())
    assert written == f"a,b\nx,{cell}\n"


TEXT = st.text(st.characters(codec="utf-8"), max_size=8)


@pytest.mark.slow
@PROPERTY
@given(st.lists(st.tuples(TEXT, TEXT), max_size=3))
def test_no_text_leaves_its_cell(rows):
    table = Table([Column(name="a"), Column(name="b")], rows)
    shown = [tuple(map(visible, row)) for row in rows]
    assert [tuple(line.removesuffix("\n").split("\t")) for line in table.tabs()] == shown
    assert len("".join(table.text()).split("\n")) == len(rows) + 2
    _, *found = csv.reader(io.StringIO("".join(table.csv()), newline=""))
    assert [tuple(cell.removeprefix("'") for cell in row) for row in found] == [
        tuple(cell.removeprefix("'") for cell in row) for row in shown
    ]
    body = ElementTree.fromstring("".join(table.html())).find("tbody")
    assert [tuple(cell.text or "" for cell in row) for row in body] == shown
    assert all(len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) == 3 for line in table.markdown())
    assert all(len(re.findall(r"(?<!\\)&", line)) == 1 for line in list(table.latex())[2:-1] if "rule" not in line)


SIGNED = r"""% needs \usepackage{booktabs}
% out.tsv: metric:Accuracy
"""
TABULAR = r"""\begin{tabular}{l}
\toprule
system \\
\midrule
a \\
\bottomrule
\end{tabular}
"""
BELOW_IN_LATEX = r"""
\smallskip
\begin{minipage}{\linewidth}
\footnotesize
a\textbar{}b
\textless{}c\textgreater{}
\end{minipage}
"""


class Signed(WithLegend):
    def signatures(self):
        return iter(["out.tsv: metric:Accuracy"])


def test_a_bare_tabular_has_all_else_in_comments():
    assert "".join(Signed().latex()) == SIGNED + TABULAR + "% a|b\n% <c>\n% Note: few lines.\n"


@pytest.mark.parametrize(("caption", "label", "head"), [
    ("50 % of x_y\n", "tab:x_y", "\\caption{50 \\% of x\\_y\\textbackslash{}n}\n\\label{tab:x_y}\n"),
    ("All", None, "\\caption{All}\n"), (None, "all", "\\caption{}\n\\label{all}\n"), ("", None, "\\caption{}\n"),
])  # fmt: skip
def test_a_table_environment_has_its_caption_above_and_its_legend_below(caption, label, head):
    begin, end = "\\begin{table}\n\\centering\n", "\\end{table}\n% Note: few lines.\n"
    fitted = f"\\begin{{adjustbox}}{{max width=\\linewidth}}\n{TABULAR}\\end{{adjustbox}}\n"
    needs = NEEDS.replace("booktabs", "booktabs,adjustbox")
    signed = SIGNED.replace("booktabs", "booktabs,adjustbox")
    assert "".join(Signed().latex(caption, label)) == signed + begin + head + fitted + BELOW_IN_LATEX + end
    assert "".join(Bare().latex(caption, label)) == needs + begin + head + fitted + "\\end{table}\n"


def test_a_bold_cell():
    column = Column(name="a", alignment="right", write=lambda value: Bold(f"-{value}*"))
    written = {name: "".join(getattr(Table([column], [(1,)]), name)()).splitlines() for name in FORMATS}
    assert written["latex"][4] == r"\textbf{$-$1$^{*}$} \\"
    assert written["markdown"][2] == r"| **-1\*** |"
    assert written["text"][1] == "-1*"
    assert written["html"][5] == '<tr><td style="text-align: right">-1*</td></tr>'


LATEX_ESCAPES = {
    r"\textbackslash{}": "\\", r"\textasciitilde{}": "~", r"\textasciicircum{}": "^", r"\textless{}": "<",
    r"\textgreater{}": ">", r"\textbar{}": "|", r"\textasciigrave{}": "`", "-{}": "-",
    **{f"\\{special}": special for special in "{}$&#_%"},
}  # fmt: skip
MATHS = {"$\\pm$": "±", "$\\infty$": "Infinity", **{f"${sign}$": sign for sign in "-+<"}}
STRANGE = st.text(st.one_of(st.sampled_from("\\{}$&#_%~^<>|`-*+[]±"), st.characters(codec="utf-8")), max_size=12)


def read_back(text):
    """The text that LaTeX typesets; a special character that is not escaped fails."""
    known = "|".join(map(re.escape, (*LATEX_ESCAPES, *MATHS)))
    pieces = re.findall(rf"{known}|\$[-+<]\\infty\$|\$\^{{[*]+}}\$|[^\\{{}}$&#_%~^<>|`]|.", text, re.DOTALL)
    assert not {*pieces} & {*"\\{}$&#_%~^<>|`"}, text
    plain = (LATEX_ESCAPES.get(piece) or MATHS.get(piece) or piece.strip("$^{}") for piece in pieces)
    return "".join(plain).replace("\\infty", "Infinity")


NUMBERS = st.text(st.sampled_from("\\{}$&#_%~^<>|`-*+[]±Infity0 "), max_size=12)


@PROPERTY
@given(STRANGE, NUMBERS | st.sampled_from(["-Infinity", "<Infinity"]))
def test_latex_typesets_what_was_written(text, number):
    assert read_back(escapes.latex_text(text)) == text
    assert "--" not in escapes.latex_text(text)
    assert read_back(escapes.latex_number(number)) == number


def strictly(text):
    """Read JSON as a strict parser does: NaN and Infinity are not JSON."""
    return json.loads(text, parse_constant=lambda constant: pytest.fail(constant))


def test_json_text():
    document = {"z": 1, "a": [0.5, None, True, "żółw"], "nested": {"deeper": ({"x": -0.25},)}}
    text = json_text(document)
    assert strictly(text) == {"z": 1, "a": [0.5, None, True, "żółw"], "nested": {"deeper": [{"x": -0.25}]}}
    assert text.startswith('{\n  "z": 1,\n  "a": [\n    0.5,\n')
    assert text.endswith("}\n")
    assert text.isascii()


def test_what_strict_parsers_refuse_becomes_strings_and_escapes():
    r"""Infinity, NaN, and lone surrogates: Python would write ``"\udc80"``."""
    document = {"a": math.inf, "b": [-math.inf, (math.nan,)], "c": {"d": math.inf}}
    assert strictly(json_text(document)) == {"a": "Infinity", "b": ["-Infinity", ["NaN"]], "c": {"d": "Infinity"}}
    text = json_text({"a\udc80": ["b\udcff", {"c": "żółw 🐢"}]})
    assert strictly(text) == {"a\\udc80": ["b\\udcff", {"c": "żółw 🐢"}]}


ITEMS = st.lists(st.dictionaries(st.text(max_size=3), st.floats() | st.text() | st.lists(st.none())), max_size=4)


@PROPERTY
@given(st.dictionaries(st.text(max_size=3).filter(lambda name: name != "lines"), st.text()), ITEMS)
@example({}, [])
@example({"a": "[]\n}\n"}, [{}])
def test_a_long_list_is_written_one_by_one(head, items):
    pieces = list(json_list_text(head, "lines", iter(items)))
    whole = json_text(head | {"lines": items})
    assert strictly("".join(pieces)) == strictly(whole)
    assert "".join(pieces).startswith(whole.partition('"lines": [')[0])
    assert [piece.count("\n") for piece in pieces[1:-1]] == [1] * len(items)


def test_a_job_that_prints_a_document_takes_no_command():
    """GitHub's runner reads `##[name]` anywhere (ActionCommand.cs)."""
    document = {"##[a]": "##[error]x"}
    assert json_text(document) == '{\n  "##\\u005ba]": "##\\u005berror]x"\n}\n'
    assert strictly(json_text(document)) == document
    assert "##[" not in "".join(json_list_text({}, "lines", [document]))
