"""One registry of output formats: an entry more, and every command that has ``--format`` writes it."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from geval_py.cli import commands
from geval_py.cli.commands import COMMANDS, parser_of
from geval_py.reading import config
from geval_py.tables import formats
from geval_py.tables.formats import FORMATS, Tabular

GAZETTE = Path(__file__).parents[2] / "challenges" / "gazette"
BIGRAM, UNIGRAM = "dev-0/out-model=bigram.tsv", "dev-0/out-model=unigram.tsv"
LINES = {  # command lines by the command whose --format they use
    "": [
        ["-t", "dev-0"],
        ["-t", "dev-0", "-B", "20"],
        ["-t", "dev-0", "-o", "bigram", "-l"],
        ["-t", "dev-0", "-o", "bigram", "-d", UNIGRAM],
        ["-t", "dev-0", "-o", "bigram", "-w"],
        ["-t", "dev-0", "-o", "bigram", "--most-worsening-features", UNIGRAM],
    ],
    "board add": [["board", "add", "board", "team"]],
    "board scan": [["board", "scan", "board", "uploads"]],
    "board show": [["board", "show", "board", "-t", "dev-0"]],
    "board status": [["board", "status", "board"]],
    "board note": [["board", "note", "board", "CODE", "seen"]],
    "board final": [["board", "final", "board", "CODE", "--undo"]],
    "board rescore": [["board", "rescore", "board"]],
    "board withdraw": [["board", "withdraw", "board", "CODE", "--reason", "none"]],
    "calibration": [["calibration", "-t", "dev-0", "-o", "bigram"]],
    "challenge leaks": [["challenge", "leaks", "."]],
    "check": [["check", "text.txt", "-t", "dev-0"]],
    "compare": [["compare", "-t", "dev-0", "--samples", "20"]],
    "lm perplexity": [["lm", "perplexity", "text.arpa", "text.txt"]],
    "lm surprisal": [["lm", "surprisal", "text.arpa", "text.txt"]],
    "luck": [["luck", "-t", "dev-0", "--seeds", "2"]],
    "mix": [["mix", "-t", "dev-0"]],
    "tune": [["tune", "-t", "dev-0", "-o", "bigram"]],
}


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    """A copy of the sample, with a board, submissions for it, and a language model."""
    from geval_py.cli import main

    folder = tmp_path_factory.mktemp("formats") / "gazette"
    shutil.copytree(GAZETTE, folder)
    for team in ("team", "uploads/other"):
        (folder / team / "dev-0").mkdir(parents=True)
        shutil.copyfile(folder / UNIGRAM, folder / team / "dev-0/out.tsv")
    (folder / "text.txt").write_text("the cat sat\na dog sat\nthe dog and a cat\n" * 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["board", "init", "board", "--challenge", ".", "--answers", "."]) == 0
        settings = folder / "board" / "board.yaml"
        text, found = re.subn("ladder: true(?=[,}])", "ladder: true, split: 40 %", settings.read_text())
        assert found == 1
        settings.write_text(text.replace("seed: 12345", "seed: 54321").replace("finals: 0", "finals: 2"))
        for order, name in (("2", "text.arpa"), ("1", "other.arpa")):
            words = ["lm", "train", "-o", order, "text.txt", "--arpa", name, "--discount-fallback"]
            assert main(words) == 0
    return folder


@pytest.fixture
def here(there, monkeypatch):
    monkeypatch.chdir(there)
    return there


def with_format():
    """The commands that have ``--format``."""
    return {name for name in ("", *COMMANDS) if "--format" in parser_of(name)._option_string_actions}


def test_each_command_that_has_formats_is_tried():
    assert with_format() == {*LINES}


def words_of(line, geval):
    """A command line, in which CODE is the code of the first submission."""
    if "CODE" not in line:
        return line
    code = json.loads(geval("board", "status", "board", "--format", "json")[1])["submissions"][0]["code"]
    return [code if word == "CODE" else word for word in line]


def json_lines(value, **_):
    records = value.records()
    names = [column.name for column in records.columns]
    return (json.dumps(dict(zip(names, map(str, row), strict=True))) + "\n" for row in records.rows)


@pytest.mark.slow  # most of all the leaks
@pytest.mark.parametrize("line", [line for lines in LINES.values() for line in lines], ids=" ".join)
def test_a_format_more_takes_one_entry(line, here, geval, monkeypatch):
    monkeypatch.setattr(Tabular, "jsonl", json_lines, raising=False)
    for module in (config, commands, formats):
        monkeypatch.setattr(module, "FORMATS", (*FORMATS, "jsonl"))
    status, out, err = geval(*words_of(line, geval), "--format", "jsonl")
    assert status in (0, 1), err  # 1 where there are problems
    rows = [json.loads(row) for row in out.splitlines()]
    assert rows or line[:2] == ["board", "rescore"], err
    assert len({tuple(row) for row in rows}) <= 1
    if line[0] in COMMANDS:
        assert "jsonl" in geval(*line, "--help")[1]


SOME = ["", "board show", "board status", "check", "compare", *(name for name in LINES if name[:2] == "lm")]


@pytest.mark.parametrize("line", [line for name in SOME if name[:2] == "lm" for line in LINES[name]], ids=" ".join)
@pytest.mark.parametrize("form", FORMATS)
def test_a_command_writes_each_format(form, line, here, geval):
    """The frozen outputs are those of the other commands."""
    status, out, err = geval(*line, "--format", form)
    assert status in (0, 1), err
    shapes = {
        "json": r"\{\n.*\n\}\n",
        "csv": r"[\w .]+(,[^\n]*)?\n.*",
        "markdown": r"\| .* \|\n\| (:?---:?( \| )?)+ \|\n.*",
        "latex": r"% needs \\usepackage\{booktabs\}\n(% \S+: metric:\S+\n)*\\begin\{tabular\}.*\\end\{tabular\}\n(% [^\n]*\n)*",
        "html": r"<table>\n.*</table>\n(<p>.*</p>\n)?",
    }
    assert re.fullmatch(shapes.get(form, r".*\n"), out, re.DOTALL), out


SWEEP = {
    "markdown": "| epochs | lr | PerplexityHashed |\n| --- | --- | ---: |\n| 5 | 0.1 | 174.6 |\n| 5 | a\\_b | 327.5 |\n",
    "html": '<tr><td>5</td><td>0.1</td><td style="text-align: right">174.6</td></tr>\n',
    "latex": "epochs & lr & PerplexityHashed \\\\\n\\midrule\n5 & 0.1 & 174.6 \\\\\n5 & a\\_b & 327.5 \\\\\n",
}


def test_the_parameters_of_a_sweep_are_columns(tmp_path, geval, monkeypatch):
    monkeypatch.chdir(shutil.copytree(GAZETTE, tmp_path / "gazette"))
    here = Path.cwd()
    for old, new in (("bigram", "out-lr=0.1,epochs=5.tsv"), ("unigram", "out-lr=a_b,epochs=5.tsv")):
        (here / f"dev-0/out-model={old}.tsv").rename(here / "dev-0" / new)
    words = ["-t", "dev-0", "-p", "1", "--format"]
    for form, table in SWEEP.items():
        assert table in geval(*words, form)[1]
        assert "0.1 " not in geval(*words, form, "--name", "lr=0.1=Ours")[1]
    (here / "dev-0/out-broken.tsv").write_text("x\n")
    assert geval(*words, "markdown")[1].splitlines()[2:] == [
        "| broken |  | error |",
        "| 5 | 0.1 | 174.6 |",
        r"| 5 | a\_b | 327.5 |",
    ]


def test_an_output_that_cannot_be_scored_stands_in_the_table(here, geval):
    (here / "broken.tsv").write_text("x\n")
    status, out, err = geval("-t", "dev-0", "-o", "bigram", "-o", "broken.tsv", "--format", "markdown", "-p", "1")
    assert (status, err != "") == (1, True)
    assert out.endswith("| bigram | 174.6 |\n| broken | error |\n")


@pytest.mark.parametrize("line", [line for name in SOME for line in LINES[name]], ids=" ".join)
def test_a_command_takes_a_caption(line, here, geval):
    out = geval(*line, "--format", "latex", "--caption", "{")[1]
    assert re.search(
        r"\\begin{table}\n\\centering\n\\caption{\\{}\n\\begin{adjustbox}{max width=\\linewidth}\n\\begin{tabular}",
        out,
    )


@pytest.mark.parametrize("line", [line for lines in LINES.values() for line in lines], ids=" ".join)
def test_each_command_takes_a_label_for_latex_alone(line, here, geval):
    assert geval(*line, "--label", "x") == (2, "", "geval: --label goes with --format latex\n")


ERRORS = {
    "--format latex --label a}b": "argument --label: 'a}b' is not a label of letters, digits and :._/+-\n  geval --help shows the options",
    "--format csv --caption a": "--caption goes with --format latex",
    "--name a": "argument --name: 'a' is not OUT=NAME, as in out.tsv=Ours\n  geval --help shows the options",
    "--name a=": "argument --name: 'a=' is not OUT=NAME, as in out.tsv=Ours\n  geval --help shows the options",
    "--name bigrm=A": "`bigrm` is none of the outputs scored\n  did you mean bigram? there are out-model=bigram.tsv, out-model=unigram.tsv",
    "-o bigram -w --name bigram=A": "--name goes with scores",
}  # fmt: skip


@pytest.mark.parametrize("words", ERRORS)
def test_errors_of_what_a_paper_wants(words, here, geval):
    assert geval("-t", "dev-0", *words.split()) == (2, "", f"geval: {ERRORS[words]}\n")


def test_names_of_ones_own(here, geval):
    words = ["-t", "dev-0", "-p", "1", "--name", "bigram=Ours (v2)"]
    shown = {
        "text": "output\tPerplexityHashed\nOurs (v2)\t174.6\nunigram\t327.5\n",
        "markdown": "| output | PerplexityHashed |\n| --- | ---: |\n| Ours (v2) | 174.6 |\n| unigram | 327.5 |\n",
    }
    for form, written in shown.items():
        assert geval(*words, "--format", form) == (0, written, "")
    for form in ("csv", "json"):
        assert geval(*words, "--format", form) == geval(*words[:-2], "--format", form)
    one = ["-t", "dev-0", "-o", "bigram", "-p", "1", "--name", f"{BIGRAM}=x"]
    assert geval(*one) == (0, "174.6\n", "")
    both = ["-t", "dev-0", "-p", "1", "--by-score", "--name", "unigram=\x1b", "--name", "bigram=B"]
    assert geval(*both)[1] == "output\tPerplexityHashed\nB\t174.6\n\\x1b\t327.5\n"


def test_config_txt_names_no_table(there, tmp_path, geval):
    for words in ("--caption a", "--label a", "--name a=b", "--output a", "--quiet"):
        (tmp_path / "config.txt").write_text(f"-m PerplexityHashed --format latex {words}\n")
        option = words.split()[0]
        message = f"geval: {option} has no place in config.txt\n  in `{tmp_path}/config.txt`\n"
        assert geval("--expected-directory", str(tmp_path), "-t", "dev-0") == (1, "", message)


@pytest.mark.long
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="there is no pdflatex")
@pytest.mark.parametrize("kind", ["all", "compare"])
def test_latex_compiles(kind, here, geval, tmp_path):
    """All tables, with hostile texts; and a comparison that fits a page."""
    comparison = ["compare", "-t", "dev-0", "--samples", "20"]
    if kind == "all":
        hostile = "a_b#%&$~^\\{}--|<>`'\"[é]"
        lines = [
            ["-t", "dev-0", "-B", "20", "--name", f"bigram={hostile}"],
            [*comparison, "--name", f"bigram={hostile}"],
            ["board", "show", "board", "-t", "dev-0"],
            ["-t", "dev-0", "-o", "bigram", "-w", "--top", "20"],
            ["calibration", "-t", "dev-0", "-o", "bigram"],
            ["luck", "-t", "dev-0", "--seeds", "2"],
        ]
        lines += [[*line, "--caption", hostile] for line in lines]
    else:
        lines = [[*comparison, "--caption", "On dev-0"]]
        lines += [[*lines[0], "--name", "bigram=A larger model, bold"]]
    tables = "".join(f"{geval(*line, '--format', 'latex')[1]}\n\\clearpage\n" for line in lines)
    fonts = "\\usepackage[T1]{fontenc}\n\\usepackage[utf8]{inputenc}\n" if kind == "compare" else ""
    packages = fonts + "\\usepackage{booktabs,adjustbox}\n"
    page = f"\\documentclass{{article}}\n{packages}\\begin{{document}}\n{tables}\\end{{document}}\n"
    (tmp_path / "page.tex").write_text(page)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert run.returncode == 0, run.stdout[-2000:]
    assert kind == "all" or b"Overfull" not in run.stdout
    assert (tmp_path / "page.pdf").exists()


@pytest.mark.slow
def test_names_of_ones_own_in_other_commands(here, geval):
    """Here too they are for people alone; the mixture's sentences have them as well."""
    for words in (["luck", "-t", "dev-0", "--seeds", "2"], ["mix", "-t", "dev-0", "bigram", "unigram", "--force"]):
        named = [*words, "--name", "bigram=Ours_2", "--format"]
        bare = {form: geval(*words, "--format", form) for form in ("markdown", "csv", "json")}
        table = bare["markdown"][1].replace("bigram", "Ours\\_2")
        assert geval(*named, "markdown")[:2] == (0, table)
        assert table.count("Ours") == (1 if words[0] == "luck" else 3)
        for form in ("csv", "json"):
            assert geval(*named, form)[:2] == bare[form][:2]
        assert geval(*words, "--name", "x=y")[2].startswith("geval: `x` is none of the outputs ")
