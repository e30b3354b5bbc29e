"""The commands around scoring: help, a sample to try things on, completions; and what misspelt words mean."""

import csv
import io
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from geval_py.checking.problem_formats import FORMATS as CHECK_FORMATS
from geval_py.checking.rules import RULES_BY_CODE
from geval_py.cli import sample
from geval_py.cli.commands import COMMANDS, parser_of, summaries
from geval_py.cli.suggestions import OTHER_COMMANDS, PLAIN, SYNONYMS
from geval_py.scoring.metrics.registry import METRICS
from geval_py.tables.formats import FORMATS

ROOT = Path(__file__).parents[2]


def test_a_file_may_be_named_as_help_is(geval):
    """Behind -- there are no options; in front of it help is shown, whatever else stands there."""
    assert geval("check", "--", "-h")[1].startswith("-h\n")
    assert geval("check", "--qwerty", "-h", "--") == geval("check", "-h")


@pytest.mark.parametrize(("topic", "names"), [
    ("formats", {*FORMATS, *CHECK_FORMATS}), ("metrics", METRICS), ("rules", RULES_BY_CODE),
    ("flags", ["l", "u", "c", "S", "m<REGEXP>", "s<REGEXP><REPLACEMENT>", "f<FEATURE>", "p<PERCENT>"]),
])  # fmt: skip
def test_help_lists_what_there_is(topic, names, geval):
    status, out, err = geval("help", topic)
    assert (status, err) == (0, "")
    *rows, _ = out.splitlines()
    assert set(names) <= {row.split()[0] for row in rows}


SAME_HELP = {
    "help": "--help", "-h": "--help", "help --help": "help help", "--help check": "check --help",
    "-h compare": "help compare", "help challenge make": "challenge make --help",
    **dict.fromkeys(["help E114", "help e114", "help not-a-number"], "check --explain E114"),
    "help E404": "challenge leaks --explain E404",
    **dict.fromkeys(["help evaluate", "help score", "help run", "help eval"], "help"),
}  # fmt: skip


@pytest.mark.parametrize(("words", "others"), SAME_HELP.items(), ids=SAME_HELP)
def test_other_words_show_the_same_help(words, others, geval):
    status, out, err = geval(*words.split())
    assert (status, out != "", err) == (0, True, "")
    assert geval(*others.split()) == (status, out, err)


def test_help_of_a_term(geval):
    """It is in the glossary; the page that says more is the first that the term links to."""
    status, out, err = geval("help", "Line", "loss")
    assert (status, err) == (0, "")
    assert out.startswith(
        "Minus the natural logarithm of the probability that the line gives to the answer, in nats."
    )
    assert out.endswith("\n\nDocumentation: https://github.com/geval-py/geval-py/blob/main/docs/glossary.md\n")
    assert geval("help", "leak")[1].endswith("/docs/authoring.md#find-leaks\n")


def test_help_names_a_page_that_is_there():
    pages = [parser_of(name).format_help().splitlines()[-1].rpartition("/docs/")[2] for name in COMMANDS]
    assert [page for page in pages if not (ROOT / "docs" / page).exists()] == []


def test_help_of_a_metric(geval):
    assert geval("help", "RMSE") == (0, "RMSE  answers' unit  lower is better  root of the mean squared error\n", "")
    assert geval("help", "LogLossHashed8")[1].split()[:2] == ["LogLossHashed8", "nats"]


FIRST_WORDS = """\
  geval sample gazette    make a small challenge, with two outputs, to try things on
  geval -t dev-0          in a challenge's folder: the scores of the outputs of dev-0
  geval check             find what is wrong in a submission, before it is sent
  geval compare -t dev-0  whether one output is better than another
  geval help              all options and commands
"""


def test_geval_alone_where_there_is_no_challenge(tmp_path, monkeypatch, geval):
    monkeypatch.chdir(tmp_path)
    missing = "geval: No test subdirectory with the expected results: `./test-A`\n"
    assert geval() == (1, "", f"{missing}This folder holds no challenge. To begin:\n{FIRST_WORDS}")
    for folder in ("dev", "test", "tests", "training"):  # as / has the first, and programs the others
        (tmp_path / folder).mkdir()
    (tmp_path / "dev-1").touch()
    (tmp_path / "tests" / "expected.tsv").touch()
    assert geval() == (1, "", f"{missing}This folder holds no challenge. To begin:\n{FIRST_WORDS}")


@pytest.fixture
def gazette(tmp_path, monkeypatch):
    shutil.copytree(ROOT / "challenges" / "gazette", tmp_path / "gazette")
    monkeypatch.chdir(tmp_path / "gazette")
    return tmp_path / "gazette"


def test_geval_alone_in_a_challenge_says_what_is_there(gazette, geval):
    """Scores of test-A come first, as in GEval: where there is an output of it, they are shown."""
    for folder in ("test", "tests"):  # no sets
        (gazette / folder).mkdir()
    status, out, err = geval()
    assert (status, out) == (1, "")
    assert err == (
        "geval: No file with the test results: `./test-A/out.tsv`\n  `./test-A` holds expected.tsv, in.tsv.xz\n"
        "This challenge has:\n"
        "  dev-0      2 outputs: geval -t dev-0 shows the scores\n"
        "  test-A     0 outputs\n"
        "  train      0 outputs\n"
    )
    (gazette / "test-A/expected.tsv").unlink()  # hidden answers
    assert "\n  test-A     0 outputs\n" in geval()[2]
    shutil.copy(gazette / "train/expected.tsv", gazette / "test-A/expected.tsv")
    shutil.copy(gazette / "dev-0/out-model=bigram.tsv", gazette / "test-A/out.tsv")
    assert "This challenge" not in geval()[2]


@pytest.mark.parametrize("folder", ["dev-0", "train"])
def test_geval_in_a_folder_of_a_challenge_says_where_it_is(folder, gazette, monkeypatch, geval):
    monkeypatch.chdir(gazette / folder)
    missing = "geval: No test subdirectory with the expected results: `./test-A`\n"
    above = "The challenge is one folder up: cd .. and then geval says what it has.\n"
    assert geval() == (1, "", missing + above)
    if folder == "dev-0":
        note = "geval: note: the challenge is one folder up: cd .. first\n"
        assert geval("-o", "out-model=bigram.tsv") == (1, "", missing + note)


IN_DEV = "geval: note: `{}` is in dev-0: choose the test set with -t dev-0"


@pytest.mark.parametrize(("words", "advice"), [
    (["-o", "dev-0/out-model=bigram.tsv"], IN_DEV.format("dev-0/out-model=bigram.tsv")),
    (["-o", "bigram"], IN_DEV.format("bigram")), (["-o", "bigram", "-o", "unigram", "-w"], IN_DEV.format("bigram")),
    *((command.split(), IN_DEV.format("bigram")) for command in (
        "tune -o bigram", "calibration -o bigram", "report -o bigram", "luck -o bigram", "mix bigram unigram",
        "compare bigram unigram",
    )),
    (["-m", "LogLossHashed"], "geval: note: there are outputs in dev-0: choose the test set with -t dev-0"),
    (["-o", "nothing"], "  `./test-A` holds expected.tsv, in.tsv.xz"),
    (["-t", "dev-1"], "  there are dev-0, test-A, train; choose one with -t"),
    (["-t", "dev-0", "-o", "x"],
        "  `./dev-0` holds expected.tsv, in.tsv.xz, out-model=bigram.tsv, out-model=unigram.tsv"),
])  # fmt: skip
def test_the_test_set_that_has_an_output_is_named(words, advice, gazette, geval):
    status, out, err = geval(*words)
    assert (status, out, err.splitlines()[-1]) == (1, "", advice)


@pytest.mark.parametrize(
    ("words", "output"), [("-o out.tsv", "out.tsv"), ("-t dev-0", "OUTPUT"), ("-m BLEU", "OUTPUT")]
)
def test_what_to_do_without_a_challenge(words, output, tmp_path, monkeypatch, geval):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out.tsv").write_text("a:1\n")
    status, out, err = geval(*words.split())
    assert (status, out) == (1, "")
    note = f"geval: note: this folder holds no challenge; geval -o {output} -e ANSWERS -m METRIC scores one file, "
    assert err.splitlines()[-1] == note + f"and geval check {output} finds what is wrong in it"


def test_a_baseline_joins_the_outputs_that_are_named(gazette, geval):
    words = ("compare", "-t", "dev-0", "bigram", "--baseline")
    named = geval("compare", "-t", "dev-0", "--baseline", "unigram", "unigram", "bigram")[1]
    assert geval(*words, "unigram")[1].splitlines()[-1] == named.splitlines()[-1]
    there = "`./dev-0` holds expected.tsv, in.tsv.xz, out-model=bigram.tsv, out-model=unigram.tsv"
    message = f"geval: No file with the test results: `./dev-0/nowhere`\n  {there}\n"
    assert geval(*words, "nowhere") == (1, "", message)


def test_a_metric_of_the_challenge_is_shown_once(gazette, geval):
    assert geval("-t", "dev-0", "-o", "bigram", "-m", "PerplexityHashed") == (0, "174.60\n", "")
    both = geval("-t", "dev-0", "-o", "bigram", "-m", "LikelihoodHashed", "-m", "LikelihoodHashed")[1]
    assert [row.split()[0] for row in both.splitlines()] == ["PerplexityHashed", "LikelihoodHashed"]


COMMANDS_ARE = f"the commands are {', '.join(summaries())}"
OF_HELP = f"{COMMANDS_ARE}; the lists are flags, formats, metrics, rules"
OF_CHALLENGE = "the commands are make, split, leaks"

REFUSED = {
    "help chekc": f"there is no command `chekc`\n  did you mean geval check? {OF_HELP}",
    "help lint": f"there is no command `lint`\n  did you mean geval check? {OF_HELP}",
    "help rulse": f"there is no command `rulse`\n  did you mean geval help rules? {OF_HELP}",
    "help \x1b": f"there is no command `\\x1b`\n  {OF_HELP}",
    "help check compare": f"there is no command `check compare`\n  did you mean geval compare? {OF_HELP}",
    "help challenge maek": f"there is no command `geval challenge maek`\n  did you mean make? {OF_CHALLENGE}",
    "challenge": f"a command of geval challenge is missing\n  {OF_CHALLENGE}",
    "challenge maek": f"there is no command `geval challenge maek`\n  did you mean make? {OF_CHALLENGE}",
    "lm perplexity": "the following arguments are required: MODEL\n  geval lm perplexity --help shows the options",
    "sample": "the following arguments are required: DIR\n  geval sample --help shows the options",
    "--challenge a --out-directory b": "--challenge says where all is: leave --out-directory out",
    "--challenge a -w": "--challenge goes with scores",
    "--compare": "Invalid option `--compare'\n  did you mean geval compare?",
    "--chekc": "Invalid option `--chekc'\n  did you mean geval check?",
    "--output-file=x": "Invalid option `--output-file=x'\n  did you mean --out-file?",
    "--json": "Invalid option `--json'\n  did you mean --format json?",
    "--jobs": "Invalid option `--jobs'\n  did you mean --threads?",
    "score": "Invalid argument `score'\n  did you mean geval, without a command?",
    "ppl": "Invalid argument `ppl'\n  did you mean geval lm perplexity?",
    "explain": "Invalid argument `explain'\n  did you mean geval help CODE?",
    "init": "Invalid argument `init'\n  did you mean geval board init or geval --init?",
    "bucket": "Invalid argument `bucket'\n  did you mean geval help bucket?",
    "check --chalenge x": "unrecognized arguments: --chalenge\n  did you mean --challenge?",
    "check --qwerty": "unrecognized arguments: --qwerty\n  geval check --help shows the options",
    "compare --bootstrap-samples 5": "unrecognized arguments: --bootstrap-samples\n  did you mean --samples?",
    "board show b --test dev-0": "unrecognized arguments: --test dev-0\n  did you mean --test-name?",
    "compare --latex": "unrecognized arguments: --latex\n  did you mean --format latex?",
    "compare --\x1bqwerty=2": "unrecognized arguments: --\\x1bqwerty=2\n  geval compare --help shows the options",
}


@pytest.mark.parametrize(("words", "message"), REFUSED.items(), ids=map(repr, REFUSED))
def test_says_what_was_meant(words, message, geval):
    assert geval(*words.split(" ")) == (2, "", f"geval: {message}\n")


def options_of_all():
    return set().union(*(parser_of(name)._option_string_actions for name in ("", *COMMANDS)))


def test_what_is_meant_is_there():
    """No synonym is an option or a command itself, and each leads to one."""
    for command in ("", *COMMANDS):
        names = {*parser_of(command)._option_string_actions}
        assert not {name for name, ours in SYNONYMS.items() if name in names and ours.partition(" ")[0] in names}
    assert {ours.partition(" ")[0] for ours in SYNONYMS.values()} <= options_of_all()
    assert not {*OTHER_COMMANDS} & {*COMMANDS}
    meant = {command for ours in OTHER_COMMANDS.values() for command in ours.split(" or ") if command != PLAIN}
    names = {*COMMANDS} | options_of_all()
    assert [command for command in meant if not {*command.split()[1:2], " ".join(command.split()[1:3])} & names] == []


def test_sample(tmp_path, monkeypatch, geval):
    monkeypatch.chdir(tmp_path)
    status, out, err = geval("sample", "folder/my gazette")
    assert (status, err) == (0, "")
    assert out.startswith("The sample challenge is in `folder/my gazette`, with two outputs for its test set dev-0.")
    assert "\n  cd 'folder/my gazette'\n  geval -t dev-0 " in out
    monkeypatch.chdir("folder/my gazette")
    assert not list(tmp_path.rglob("gazette.txt"))
    for line in out.splitlines()[3:]:  # what it says to type works
        command = line.partition("#")[0].partition("|")[0].split()
        assert command[0] == "geval"
        status, out, _ = geval(*command[1:])
        assert (status, bool(out)) == (0, True)


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_the_sample_replaces_nothing(kind, tmp_path, monkeypatch, geval):
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "g"
    if kind == "folder":
        place.mkdir()
        (place / "thesis.tex").touch()
    else:
        {"file": place.touch, "link": lambda: place.symlink_to("nowhere")}[kind]()
    before = sorted(tmp_path.rglob("*"))
    assert geval("sample", "g") == (1, "", "geval: File already there: `g`\n")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_sample_that_cannot_be_made_leaves_nothing(tmp_path, monkeypatch, geval):
    def fail(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copyfile", fail)
        assert geval("sample", "g") == (2, "", "geval: Cannot write `g`: No space left on device\n")
    monkeypatch.setattr(sample, "PACKAGE", tmp_path / "lib" / "geval_py")
    folder = tmp_path / "lib/geval_py/sample/gazette"
    assert geval("sample", "g") == (1, "", f"geval: Cannot read `{folder}`: it was not installed with geval-py\n")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    assert geval("sample", "file/g") == (2, "", "geval: Cannot write `file/g`: Not a directory\n")


COMPLETIONS = {
    "geval ": " ".join(summaries()),
    "geval challenge ": "make split leaks",
    "geval challenge make --con": "--context",
    "geval challenge leaks --format g": "github gitlab",
    "geval --by": "--by-score",
    "geval -m Perplexity": "PerplexityHashed Perplexity",
    "geval -T mini": "minimalistic",
    "geval --format ": "text json csv markdown latex html",
    "geval check --format g": "github gitlab",
    "geval completion ": "bash zsh fish",
    "geval help sam": "sample",
    "geval help f": "flags formats",
    "geval -t de": "dev-0/",
    "geval -t dev-0 -o dev-0/out-m": "dev-0/out-model=ola,v=2.tsv",
    "geval -t dev-0 -o ol": "ola,v=2",
    "geval compare ou": "out",
    "geval compare --baseline ol": "ola,v=2",
    "geval baseline -t dev-0 un": "uniform unigram",
    "geval sample de": "dev-0/",
    "geval -t dev-0 -o dev-0/out-model=ol": "ola,v=2.tsv",  # bash ends words at "=", too
    "geval -t dev-0 -o dev-0/out-model=ola,v=2.tsv -m Perplexity": "PerplexityHashed Perplexity",
    "geval -t dev-0 -o h": "",
}


@pytest.fixture
def outputs(tmp_path):
    (tmp_path / "dev-0").mkdir()
    for name in ("out.tsv", "out-model=ola,v=2.tsv", "out-$(touch x).tsv"):
        (tmp_path / "dev-0" / name).touch()
    return tmp_path


@pytest.mark.slow
def test_bash_completes(outputs, geval):
    """What bash offers for the last word of each line, in a folder with a test set of some outputs."""
    script = geval("completion", "bash")[1] + "COMP_WORDBREAKS=$' \\t\\n\"\\'><=;|&(:'\n"
    for line in COMPLETIONS:
        script += f"COMP_LINE={shlex.quote(line)} COMP_POINT={len(line)} COMPREPLY=()\n"
        script += '_python_argcomplete geval; echo "${COMPREPLY[*]}"\n'
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    run = subprocess.run(
        ["bash", "-c", script], cwd=outputs, env=os.environ | {"PATH": path}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert run.stderr == ""
    offered = dict(zip(COMPLETIONS, map(str.split, run.stdout.splitlines()), strict=True))
    wanted = {line: sorted(words.split()) for line, words in COMPLETIONS.items()}
    assert {line: sorted(words) for line, words in offered.items()} == wanted
    assert not (outputs / "x").exists()  # no name is a command


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_a_shell_takes_its_script(shell, tmp_path, geval):
    (tmp_path / "script").write_text(geval("completion", shell)[1])
    subprocess.run([shell, "-n", tmp_path / "script"], check=True)


def test_several_challenges_make_one_table(monkeypatch, geval):
    monkeypatch.chdir(ROOT / "challenges")
    both = ("--challenge", "digits", "--challenge", "colours/")
    rows = list(csv.DictReader(io.StringIO(geval(*both, "--format", "csv")[1])))
    assert [row["challenge"] for row in rows] == ["digits", "digits", "colours", "colours"]
    signatures = [line for line in geval(*both, "--format", "latex")[1].splitlines() if line.startswith("% ")]
    assert [line.split(": ")[:2] for line in signatures[1:3]] == [
        ["% digits", "out-model=trained.tsv"], ["% digits", "out-model=uniform.tsv"],
    ]  # fmt: skip
    document = json.loads(geval(*both, "--format", "json")[1])
    assert [of["challenge"] for of in document["challenges"]] == ["digits", "colours"]
    alone = json.loads(geval("--expected-directory", "digits", "--out-directory", "digits", "--format", "json")[1])
    assert document == {"version": alone.pop("version"), "challenges": document["challenges"]}
    assert document["challenges"][0] == alone


def test_a_name_is_of_the_challenges_that_have_the_output(monkeypatch, geval):
    monkeypatch.chdir(ROOT / "challenges")
    both = ("--challenge", "digits", "--challenge", "colours")
    _, out, err = geval(*both, "--name", "trained=Ours", "--name", "uniform=Chance")
    assert [line.split("\t")[1] for line in out.splitlines()[1:]] == ["Ours", "Chance", "skewed", "Chance"]
    assert err == ""
    assert geval(*both, "--name", "train=Ours") == (2, "", "geval: --name: no challenge has an output train\n")


def test_one_challenge_does_not_hide_another(monkeypatch, geval):
    monkeypatch.chdir(ROOT / "challenges")
    status, out, err = geval("--challenge", "nowhere", "--challenge", "digits", "-m", "LogLoss")
    assert (status, out.split()[:4]) == (1, ["challenge", "output", "Perplexity", "LogLoss"])
    missing = "geval: No directory with the expected results: `nowhere`\n"
    assert err == missing + "geval: the challenge `nowhere` is left out\n"


@pytest.mark.parametrize("words", [
    "compare -t dev-0", "calibration -t dev-0 -o bigram", "luck -t dev-0 -o bigram", "mix -t dev-0 bigram unigram",
])  # fmt: skip
def test_a_challenge_elsewhere(words, tmp_path, monkeypatch, geval):
    """--challenge is the folder of the answers and of the outputs, as for geval check."""
    monkeypatch.chdir(tmp_path)
    folder = str(ROOT / "challenges" / "gazette")
    both = geval(*words.split(), "--expected-directory", folder, "--out-directory", folder)
    assert geval(*words.split(), "--challenge", folder) == both
    assert both[0] == 0
