"""Which outputs are checked, and against which test set: nothing that was meant is passed over in silence."""

import gzip
import io
import json
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from geval_py import check
from geval_py.checking.rules import Problem
from geval_py.checking.targets import find_targets
from geval_py.errors import UsageError
from geval_py.version import installs

GOOD = "the:0.5 of:0.25 :0.25\n"
NOBODY = 65534


def furnish(folder):
    """Make a challenge `real`, one of a single test set `single`, and what is none."""
    for challenge, tests in (("real", ["train", "dev-0", "test-A"]), ("single", ["train", "dev-0"])):
        for test in tests:
            (folder / challenge / test).mkdir(parents=True)
            (folder / challenge / test / "in.tsv").write_text("x\ny\n")
            (folder / challenge / test / "out-model=bigram.tsv").write_text(GOOD * 2)
    (folder / "real/dev-0/expected.tsv").write_text("the\nof\n")
    (folder / "real/test-A/in.tsv").write_text("x\ny\nz\n")
    (folder / "empty").mkdir()
    (folder / "pred.tsv").write_text(GOOD * 7)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    furnish(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def found(*words, **options):
    return [
        f"{target.path}: {target.summary}"
        if isinstance(target, Problem)
        else " ".join(file.name for file in (target.file, target.expected, target.input) if file)
        for target in find_targets(words, **options)
    ]


NO_FOLDER = "it cannot be read: No such file or directory"
NO_CHALLENGE = {
    "a typo": ("rael", f"{NO_FOLDER}\n  did you mean `real`?"),
    "a typo elsewhere": ("../{name}/rael/", NO_FOLDER + "\n  did you mean `../{name}/real`?"),
    "nothing like it": ("ZZZ", NO_FOLDER), "a file": ("pred.tsv", "it cannot be read: Not a directory"),
    "an empty folder": ("empty", "it has no config.txt, and no test set such as dev-0"),
    "a test set": ("real/dev-0", "it has no config.txt, and no test set such as dev-0\n  did you mean `real`?"),
    "a name that moves the cursor": ("\x1b[2J", NO_FOLDER), "a NUL": ("a\0b", "it cannot be read: the name has a NUL in it"),
}  # fmt: skip


@pytest.mark.parametrize(("path", "reason"), NO_CHALLENGE.values(), ids=NO_CHALLENGE)
def test_a_challenge_that_is_none(path, reason, folder, geval):
    path, reason = path.format(name=folder.name), reason.format(name=folder.name)
    shown = path.replace("\x1b", "\\x1b").replace("\0", "\\x00")
    assert geval("check", "pred.tsv", "--challenge", path) == (2, "", f"geval: `{shown}` is no challenge: {reason}\n")


@pytest.mark.parametrize("kept", ["config.txt", "train", "dev-0"])
def test_what_makes_a_challenge(kept, folder, geval):
    (folder / "empty" / "dev-0").mkdir()
    if kept == "config.txt":
        (folder / "empty" / kept).write_text("")
    else:
        (folder / "empty" / kept).mkdir(exist_ok=True)
        (folder / "empty" / kept / "in.tsv.xz").symlink_to("nowhere")
    assert geval("check", "pred.tsv", "--challenge", "empty")[0] == 0


def test_a_test_set_that_the_challenge_has_not(folder, geval):
    assert geval("check", "pred.tsv", "--challenge", "real", "-t", "dve-0") == (
        2, "", "geval: `real` has no test set `dve-0`\n  there are test-A, dev-0\n",
    )  # fmt: skip


COUNTED = {  # words, what is said of the number of lines
    "named": (["pred.tsv", "--challenge", "real", "-t", "test-A"], "the output has 7 lines for 3 items"),
    "another named": (["pred.tsv", "--challenge", "real", "-t", "dev-0"], "the output has 7 lines for 2 items"),
    "the only one": (["pred.tsv", "--challenge", "single"], "the output has 7 lines for 2 items"),
    "of its folder": (["real/test-A/guess.tsv"], "the output has 1 line for 3 items"),
    "of its folder's name": (["dev-0/guess.tsv", "--challenge", "real"], "the output has 1 line for 2 items"),
    "named, not of its folder": (["real/dev-0/guess.tsv", "-t", "test-A"], "the output has 1 line for 3 items"),
    "in a challenge's folder, named": (["real/guess.tsv", "-t", "test-A"], "the output has 1 line for 3 items"),
    "in a challenge's folder, the only one": (["single/guess.tsv"], "the output has 1 line for 2 items"),
    "a folder of outputs": (["outs", "--challenge", "real", "-t", "test-A"], "the output has 1 line for 3 items"),
    "a folder of outputs, the only one": (["outs", "--challenge", "single"], "the output has 1 line for 2 items"),
}  # fmt: skip


@pytest.mark.parametrize(("words", "summary"), COUNTED.values(), ids=COUNTED)
def test_lines_are_counted(words, summary, folder, geval):
    for place in ("real/test-A/guess.tsv", "real/dev-0/guess.tsv", "real/guess.tsv", "single/guess.tsv"):
        (folder / place).write_text(GOOD)
    for place in ("dev-0/guess.tsv", "outs/out.tsv"):
        (folder / place).parent.mkdir()
        (folder / place).write_text(GOOD)
    status, out, err = geval("check", *words, "--format", "json")
    document = json.loads(out)
    assert (status, err) == (1, "")
    assert [problem["summary"] for problem in document["problems"] if problem["rule"] in {"E103", "E104"}] == [
        summary
    ]


UNCOUNTED = {  # words, why
    "several test sets": (["pred.tsv", "--challenge", "real"], "it may belong to test-A or dev-0"),
    "in the challenge's folder": (["real/guess.tsv"], "it may belong to test-A or dev-0"),
    "no test set": (["pred.tsv", "--challenge", "bare"], "there is no in.tsv and no expected.tsv in `bare/dev-0`"),
    "no challenge": (["pred.tsv"], "there is no in.tsv and no expected.tsv in `{folder}`"),
    "no challenge, but a name": (["pred.tsv", "-t", "x"], "there is no in.tsv and no expected.tsv in `./x`"),
    "a test set without data": (["bare", "-t", "dev-0", "--challenge", "bare"],
     "there is no in.tsv and no expected.tsv in `bare/dev-0`"),
    "data that cannot be read": (["broken/dev-0"], "what there is of its test set cannot be read"),
    "data that is not there": (["dangling/dev-0"], "what there is of its test set cannot be read"),
}  # fmt: skip


@pytest.mark.parametrize(("words", "reason"), UNCOUNTED.values(), ids=UNCOUNTED)
def test_lines_that_are_not_counted(words, reason, folder, geval):
    """A warning; --strict fails, and --lines gives the number."""
    for name in ("bare", "broken", "dangling"):
        (folder / name / "dev-0").mkdir(parents=True)
        (folder / name / "dev-0/out.tsv").write_text(GOOD)
    (folder / "bare/config.txt").write_text("")
    (folder / "real/guess.tsv").write_text(GOOD)
    (folder / "broken/dev-0/expected.tsv.gz").write_bytes(gzip.compress(b"the\n")[:-3])
    (folder / "dangling/dev-0/in.tsv").symlink_to("annex")
    reason = "the number of lines is not checked: " + reason.format(folder=f"../{folder.name}")
    status, out, _ = geval("check", *words, "--format", "json")
    document = json.loads(out)
    (path,) = document["files"]
    assert (status, [(one["rule"], one["summary"]) for one in document["problems"]]) == (0, [("W108", reason)])
    assert reason in geval("check", *words)[1]
    assert geval("check", *words, "--strict")[0] == 1
    lines = GOOD.count("\n") * (7 if path == "pred.tsv" else 1)
    assert geval("check", *words, "--strict", "--lines", str(lines))[:2] == (0, "no problems in 1 file\n")
    status, out, _ = geval("check", *words, "--lines", "9", "--format", "concise")
    assert (status, f"E103 the output has {lines} line" in out) == (1, True)


def test_answers_that_were_not_fetched_are_said(folder, geval):
    """As by git-annex: a link that leads nowhere. The input is enough to count the lines."""
    (folder / "real/dev-0/expected.tsv").unlink()
    (folder / "real/dev-0/expected.tsv").symlink_to(".git/annex/objects/x")
    assert geval("check", "real/dev-0") == (
        0, "no problems in 1 file\n", "geval: note: checked without a file of the test set: Cannot read "
        "`real/dev-0/expected.tsv`: its content is not here: run git annex get expected.tsv\n"
        "geval: note: the rules of word gaps apply, since `real/config.txt` is not there; "
        "for another task, add --metric NAME or --challenge DIR\n",
    )  # fmt: skip


WANTED = "it has no output: {}, or variants such as out-NAME.tsv; "


@pytest.mark.parametrize("name", ["out.tsv", "out-model=x.tsv.gz"])
def test_an_output_beside_empty_test_sets(folder, geval, name):
    for challenge in ("real", "single"):
        (folder / challenge / name).write_bytes((gzip.compress if name.endswith("gz") else bytes)(GOOD.encode() * 2))
        for output in (folder / challenge).glob(f"[dt]e*/{BIGRAM}"):
            output.unlink()
    wanted = WANTED.format("test-A/out.tsv or dev-0/out.tsv")
    assert found("real") == [f"real: {wanted}`{name}` is not in its place; did you mean `test-A/{name}`?"]
    assert found("single") == [f"single/{name} single/dev-0/in.tsv"]
    assert geval("check", "single")[:2] == (0, "no problems in 1 file\n")


def test_a_test_set_without_an_output(folder, geval):
    (folder / "real/test-A" / BIGRAM).unlink()
    status, out, _ = geval("check", "real", "--format", "concise")
    assert (status, out) == (
        0,
        "real/test-A/out.tsv:1:1: W107 there is no output for this test set\n0 errors, 1 warning in 2 files\n",
    )
    assert geval("check", "real", "--strict")[0] == 1
    assert geval("check", "real", "--strict", "-t", "dev-0")[0] == 0
    assert "\n    No file with the test results: `real/nothing`" in geval("check", "real/nothing")[1]


BIGRAM = "out-model=bigram.tsv"
NO_FILE, HOLDS = "No file with the test results:", f"`dev-0` holds both.tsv, expected.tsv, in.tsv, {BIGRAM}"
NAMED = {  # paths, options, found
    "a short name": (["bigram"], {"tests": ["dev-0"]}, [f"./dev-0/{BIGRAM} ./dev-0/expected.tsv ./dev-0/in.tsv"]),
    "a file's name": ([BIGRAM], {"tests": ["test-A"]}, [f"./test-A/{BIGRAM} ./test-A/in.tsv"]),
    "a pattern": (["out-*.tsv"], {"tests": ["test-A"]}, [f"./test-A/{BIGRAM} ./test-A/in.tsv"]),
    "of several test sets": (["bigram"], {"tests": ["dev-0", "test-A"]},
        [f"./dev-0/{BIGRAM} ./dev-0/expected.tsv ./dev-0/in.tsv", f"./test-A/{BIGRAM} ./test-A/in.tsv"]),
    "the test set's file before one here": (["both.tsv"], {"tests": ["dev-0"]},
        ["./dev-0/both.tsv ./dev-0/expected.tsv ./dev-0/in.tsv"]),
    "a file here": (["guess.tsv"], {"tests": ["dev-0"]}, ["guess.tsv ./dev-0/expected.tsv ./dev-0/in.tsv"]),
    "no test set": (["bigram"], {}, ["bigram: No file with the test results: `bigram`"]),
    "no path": ([""], {}, [": No file with the test results: ``"]),
    "a path of nothing": (["dev-0/xyz"], {}, [f"dev-0/xyz: {NO_FILE} `dev-0/xyz`; {HOLDS}"]),
    "a folder of nothing": (["nothing/xyz"], {}, [f"nothing/xyz: {NO_FILE} `nothing/xyz`"]),
    "a misspelt path": (["dev-0/out-bigram.tsv"], {},
        [f"dev-0/out-bigram.tsv: {NO_FILE} `dev-0/out-bigram.tsv`; did you mean {BIGRAM}? {HOLDS}"]),
    "a pattern of paths": (["dev-0/out-mod*.tsv"], {}, [f"dev-0/{BIGRAM} ./dev-0/expected.tsv ./dev-0/in.tsv"]),
    "a pattern of nothing": (["dev-0/x*.tsv"], {},
        [f"dev-0/x*.tsv: {NO_FILE} `dev-0/x*.tsv`; did you mean in.tsv? {HOLDS}"]),
    "a pattern in a folder of nothing": (["nothing/*.tsv"], {}, [f"nothing/*.tsv: {NO_FILE} `nothing/*.tsv`"]),
    "a misspelt name": (["bigrma"], {"tests": ["dev-0"]},
        ["./dev-0/bigrma: No file with the test results: `./dev-0/bigrma`; did you mean bigram? "
        f"`./dev-0` holds both.tsv, expected.tsv, in.tsv, {BIGRAM}"]),
    "the test set's own folder": (["dev-0"], {"tests": ["dev-0"]},
        [f"dev-0/{BIGRAM} ./dev-0/expected.tsv ./dev-0/in.tsv"]),
}  # fmt: skip


@pytest.mark.parametrize(("paths", "options", "targets"), NAMED.values(), ids=NAMED)
def test_outputs_by_their_names(paths, options, targets, folder, monkeypatch):
    """As `geval -o NAME -t TEST` finds them."""
    for name in ("both.tsv", "guess.tsv", "dev-0/both.tsv"):
        (folder / "real" / name).write_text(GOOD)
    monkeypatch.chdir(folder / "real")
    assert found(*paths, **options) == targets


def test_one_output_of_several_test_sets(folder, geval):
    want = "geval: `pred.tsv` cannot be for 2 test sets (dev-0, test-A): choose one\n"
    assert geval("check", "pred.tsv", "--challenge", "real", "-t", "dev-0", "-t", "test-A") == (2, "", want)
    (folder / "outs").mkdir()
    (folder / "outs/out.tsv").write_text(GOOD)
    wanted = WANTED.format("dev-0/out.tsv or test-A/out.tsv")
    reason = f"{wanted}`out.tsv` is not in its place; did you mean `dev-0/out.tsv`?"
    assert found("outs", tests=["dev-0", "test-A"]) == [f"outs: {reason}"]
    with pytest.raises(UsageError, match=f"`real/dev-0/{BIGRAM}` cannot be for 2 test sets"):
        found("real/dev-0", tests=["dev-0", "test-A"])


MISNAMED = {
    "out.xml": "; out.xml is not scored; an output ends in .tsv, .jsonl, .json, .parquet or .csv",
    "output.tsv": "; output.tsv is not scored; rename it to out-NAME.tsv",
    "Predictions.jsonl.gz": "; Predictions.jsonl.gz is not scored; rename it to out-NAME.jsonl.gz",
    "out.txt": "; out.txt is not scored; rename it to out-NAME.tsv",
    "out": "; out is not scored; rename it to out-NAME.tsv", "results.png": "", "notes.txt": "",
}  # fmt: skip


@pytest.mark.parametrize("name", MISNAMED)
def test_other_names_are_no_outputs(name, folder, geval):
    (folder / "single/dev-0" / BIGRAM).rename(folder / "single/dev-0" / name)
    (folder / "single/dev-0/expected.tsv").write_text("the\n")
    (told,) = found("single/dev-0")
    assert told.startswith(f"single/dev-0/out.tsv: {NO_FILE} `single/dev-0/out.tsv`{MISNAMED[name]}; `single/dev-0`")
    advice = MISNAMED[name].replace("; ", "; dev-0/", 1)
    wanted = WANTED.format("dev-0/out.tsv")[:-2]
    assert found("single") == [f"single: {wanted}{advice}"]
    _, _, advice = geval("--challenge", "single", "-t", "dev-0")[2].partition("`single/dev-0/out.tsv`\n  ")
    assert advice.partition("`single/dev-0` holds ")[0] == MISNAMED[name][2:] + "\n  " * bool(MISNAMED[name])


def test_a_format_whose_package_is_missing(folder, geval, monkeypatch):
    """It does not hide what is found in the other outputs."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (folder / "real/dev-0/out-a.parquet").write_bytes(b"PAR1")
    (folder / "real/dev-0" / BIGRAM).write_text(GOOD)
    (folder / "real/config.txt").write_text("--metric LogLoss")
    missing = f"the output cannot be read: Parquet is read by pyarrow, of the extra parquet: {installs('parquet')}"
    assert geval("check", "real/dev-0", "--diff") == (
        1, "", f"geval: `real/dev-0/out-a.parquet`: {missing}\ngeval: `real/dev-0/{BIGRAM}`: nothing to fix\n",
    )  # fmt: skip
    problems = check("real/dev-0").problems
    assert [problem.rule.code for problem in problems] == ["E101", "E103"]
    assert [problem.summary for problem in problems] == [missing, "the output has 1 line for 2 items"]
    advice = problems[0].fix or problems[0].rule.fix
    assert advice == (
        "Fix the file, or write the output in another format. geval reads .tsv, .jsonl, .parquet and .csv, "
        "compressed or not, and geval convert writes TSV."
    )


def test_a_description_without_the_packages_of_a_board(folder, geval, monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    monkeypatch.delitem(sys.modules, "geval_py.board.intake.gonito", raising=False)
    (folder / "single/gonito.yaml").write_text("tags: best")
    status, out, err = geval("check", "single")
    assert (status, out) == (0, "no problems in 1 file\n")
    note = f"gonito.yaml is not checked: that needs the extra board: {installs('board')}"
    assert f"geval: note: single: {note}\n" in err


def test_the_metrics_of_the_command_line(folder, geval):
    (folder / "real/config.txt").write_text("--metric LogLossHashed")
    (folder / "real/dev-0" / BIGRAM).write_text("1.5\nthe\n")
    for words in (["-m", "RMSE"], ["--metric", "RMSE"], ["-a", "RMSE"]):
        status, out, _ = geval("check", "real/dev-0", *words, "--format", "json")
        problems = json.loads(out)["problems"]
        assert (status, [(problem["rule"], problem["count"]) for problem in problems]) == (1, [("E117", 1)])
    assert [p.rule.code for p in check("real/dev-0", metrics="RMSE").problems] == ["E117"]
    (folder / "real/config.txt").write_text("--nonsense")
    assert [p.rule.code for p in check("real/dev-0", metrics="RMSE").problems] == ["E117"]
    assert [p.rule.code for p in check("real/dev-0", metrics=["BLEU"]).problems] == []
    assert geval("check", "real", "-m", "LogLoss8") == (
        2, "", "geval: Unknown or broken metric definition: LogLoss8\n  did you mean LogLoss?\n",
    )  # fmt: skip


AS_OTHERS = "the number of lines is that of dev-0, train: is this its output?"


@pytest.mark.parametrize(("words", "status", "problems", "reason"), [
    (["-t", "test-A", "--challenge", "real"], 1, ["the output has 2 lines for 3 items; " + AS_OTHERS], None),
    (["-t", "dev-0", "--challenge", "real"], 0, [], None), (["--challenge", "single"], 0, [], None),
    (["--challenge", "real"], 0, [], "it may belong to test-A or dev-0"),
    ([], 0, [], "it may belong to real or single"),
], ids=["too few", "as many", "the only test set", "several", "no challenge"])  # fmt: skip
def test_standard_input(words, status, problems, reason, folder, geval, monkeypatch):
    if not words:
        reason = "there is no in.tsv and no expected.tsv in `.`"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(GOOD.encode() * 2)))
    got, out, _ = geval("check", "-", "--format", "json", *words)
    document = json.loads(out)
    problems = problems if reason is None else [f"the number of lines is not checked: {reason}"]
    assert (got, [problem["summary"] for problem in document["problems"]]) == (status, problems)


def test_standard_input_twice(folder, geval):
    want = "geval: standard input (-) can be read only once: give one output as -\n"
    assert geval("check", "-", "-") == (2, "", want)


CODE = f"""\
import contextlib, difflib, glob, io, json, os, sys
from geval_py.board.intake import receiving
from geval_py.cli import check, main, score
def run(folder, *words):
    os.chdir(folder)
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.redirect_stderr(said):
        return main(list(words)), said.getvalue()
run(os.sep, "check", os.devnull)  # so that all is imported, which nobody may not be allowed to
if os.geteuid() == 0:
    os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})
print(json.dumps([run(*words) for words in json.loads(sys.argv[1])]))
"""
DENIED = "Permission denied"
NO_CHALLENGE_READ = f"`real` is no challenge: it cannot be read: {DENIED}"


def missing(path):
    return f"{path}\n  E101 missing-output (error)\n    Cannot read `{path}`: {DENIED}"


def refused(path, name):
    return f"{path}\n  E101 missing-output (error)\n    `{name}` cannot be read: {DENIED}"


UNREADABLE = {  # closed folder, its mode, words, status, what is said
    "a submission": ("real", 0o000, "check real", 1, refused("real", "real")),
    "a submission's test set": ("real/dev-0", 0o000, "check real", 1, refused("real", "dev-0/")),
    "a test set": ("real/dev-0", 0o000, "check real/dev-0", 1, missing("real/dev-0")),
    "a submission that is not entered": ("real", 0o444, "check real", 1, refused("real", "dev-0/")),
    "a test set named": ("real", 0o000, "check real -t dev-0", 1, refused("real", "real")),
    "a challenge": ("real", 0o000, "check pred.tsv --challenge real", 2, NO_CHALLENGE_READ),
    "a challenge that is not entered": ("real", 0o444, "check pred.tsv --challenge real", 2,
        f"{NO_CHALLENGE_READ}\n"),
    "a challenge's test set": ("real/dev-0", 0o000, "check pred.tsv --challenge real", 0,
        "it may belong to test-A or dev-0"),
    "a challenge's test set, named": ("real/dev-0", 0o000, "check pred.tsv --challenge real -t dev-0", 0,
        f"note: checked without a file of the test set: Cannot read `real/dev-0/in.tsv`: {DENIED}"),
    "scoring": ("real/dev-0", 0o000, "--out-directory real -t dev-0", 1,
        f"Cannot read `real/dev-0/expected.tsv`: {DENIED}"),
    "scoring, a folder that cannot be listed": ("real/test-A", 0o111, "--out-directory real -t test-A -o pred.tsv", 1,
        f"geval: Cannot read `real/test-A`: {DENIED}"),
    "scoring, a challenge that cannot be listed": ("real", 0o111, "--out-directory real -t dve-0 -o pred.tsv", 1,
        f"geval: Cannot read `{{folder}}/real`: {DENIED}"),
}  # fmt: skip


@pytest.fixture(scope="module")
def denied():
    """The status and the output of each command, of a user who may not read, by one process, and its folder."""
    with ExitStack() as stack:
        folders = [
            Path(stack.enter_context(TemporaryDirectory())) for _ in UNREADABLE
        ]  # not pytest's, which are closed
        for folder, (closed, mode, *_) in zip(folders, UNREADABLE.values(), strict=True):
            furnish(folder)
            folder.chmod(0o755)
            (folder / closed).chmod(mode)
            stack.callback((folder / closed).chmod, 0o755)
        words = [[str(folder), *row[2].split()] for folder, row in zip(folders, UNREADABLE.values(), strict=True)]
        command = [sys.executable, "-I", "-c", CODE, json.dumps(words)]
        answers = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        yield {name: (folder, *answer) for name, folder, answer in zip(UNREADABLE, folders, answers, strict=True)}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_folder_that_may_not_be_read_is_not_empty(name, denied):
    *_, status, said = UNREADABLE[name]
    folder, answer, text = denied[name]
    assert said.format(folder=folder) in text
    assert answer == status


@pytest.mark.parametrize("name", ["team.zip", "team.tar.gz"])
def test_an_archive_that_is_cut_off(name, folder, geval):
    archive = shutil.make_archive(str(folder / "team"), "zip" if name.endswith("zip") else "gztar", folder / "real")
    Path(name).write_bytes(Path(archive).read_bytes()[:-40])
    status, out, _ = geval("check", name, "--format", "json")
    (problem,) = json.loads(out)["problems"]
    kind, reason = name[5:8], "File is not a zip file" if name.endswith("zip") else "it ends before its end mark"
    assert (status, problem["rule"]) == (1, "E105")
    assert problem["summary"] == f"it is not a {kind} archive, or is damaged: {reason}"
    assert "\n    To fix: Compress it again, or upload it again.\n" in geval("check", name)[1]
