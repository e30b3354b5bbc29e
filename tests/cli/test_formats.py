"""Formats of results: a new entry of the registry is a format of every command; names and labels of tables."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from command_lines import BIGRAM, LINES_WITH_FORMATS, UNIGRAM, command_of, has_option

from geval_py.cli import commands, main
from geval_py.cli.commands import COMMANDS, parser_of, summaries
from geval_py.reading import config
from geval_py.tables import formats
from geval_py.tables.formats import FORMATS, Tabular

GAZETTE = Path(__file__).parents[2] / "challenges" / "gazette"


@pytest.fixture(scope="module")
def there(tmp_path_factory, forked_sandbox):
    """A copy of the sample, with a board, submissions for it, and a language model."""
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
        text = re.sub("ladder: true(?=[,}])", "ladder: true, split: 40 %", settings.read_text())
        settings.write_text(text.replace("seed: 12345", "seed: 54321").replace("finals: 0", "finals: 2"))
        assert main(["lm", "train", "-o", "2", "text.txt", "--arpa", "text.arpa", "--discount-fallback"]) == 0
    return folder


@pytest.fixture
def here(there, monkeypatch):
    monkeypatch.chdir(there)
    return there


def test_each_command_that_has_formats_is_tried():
    with_formats = {name for name in ("", *COMMANDS) if has_option(name, "--format")}
    assert {command_of(line) for line in LINES_WITH_FORMATS} == with_formats


@pytest.mark.parametrize("command", [name for name in COMMANDS if not summaries(name)])
def test_every_command_can_be_quiet_and_those_with_formats_write_files(command):
    options = parser_of(command)._option_string_actions
    assert "--quiet" in options
    assert "--format" not in options or options["--output"].dest == "output_file"


def words_of(line, geval):
    """Return the words of a line, in which CODE is the code of the first submission."""
    if "CODE" not in line:
        return line.split()
    code = json.loads(geval("board", "status", "board", "--format", "json")[1])["submissions"][0]["code"]
    return line.replace("CODE", code).split()


def json_lines(value, **_):
    records = value.records()
    names = [column.name for column in records.columns]
    return (json.dumps(dict(zip(names, map(str, row), strict=True))) + "\n" for row in records.rows)


@pytest.mark.slow  # most of all the leaks
@pytest.mark.parametrize("line", LINES_WITH_FORMATS)
def test_a_new_entry_of_the_registry_is_a_format_of_each_command(line, here, geval, monkeypatch):
    monkeypatch.setattr(Tabular, "jsonl", json_lines, raising=False)
    for module in (config, commands, formats):
        monkeypatch.setattr(module, "FORMATS", (*FORMATS, "jsonl"))
    words = words_of(line, geval)
    status, out, err = geval(*words, "--format", "jsonl")
    assert status in (0, 1), err  # 1 where there are problems
    rows = [json.loads(row) for row in out.splitlines()]
    assert rows or line.startswith(("board rescore", "check")), err
    assert len({tuple(row) for row in rows}) <= 1
    assert geval(*words, "--label", "x") == (2, "", "geval: --label goes with --format latex\n")


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
    shutil.copyfile(here / BIGRAM, here / "out-lr=0.1.tsv")
    assert "\nOurs\t" in geval("-t", "dev-0", "-o", "bigram", "-o", "out-lr=0.1.tsv", "--name", "lr=0.1=Ours")[1]
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
            ["-t", "dev-0", "-B", "20", "--name", f"bigram={hostile}"], [*comparison, "--name", f"bigram={hostile}"],
            ["board", "show", "board", "-t", "dev-0"], ["-t", "dev-0", "-o", "bigram", "-w", "--top", "20"],
            ["calibration", "-t", "dev-0", "-o", "bigram"], ["luck", "-t", "dev-0", "--seeds", "2"],
        ]  # fmt: skip
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
