"""geval tune and geval mix: what they print and write, and what they refuse."""

import gzip
import json
import lzma
import shutil
from pathlib import Path

import pytest
from answer_formats import WRITE, in_another_format

GAZETTE = Path(__file__).parents[2] / "challenges" / "gazette"


@pytest.fixture
def gazette(tmp_path, monkeypatch):
    """A copy of the sample, with an output for test-A too; the current folder."""
    folder = tmp_path / "gazette"
    shutil.copytree(GAZETTE, folder)
    shutil.copyfile(folder / "dev-0/out-model=unigram.tsv", folder / "unigram.tsv")
    lines = (folder / "unigram.tsv").read_text().splitlines(keepends=True)[:123]
    for name in ("unigram", "bigram"):
        (folder / f"test-A/out-model={name}.tsv").write_text("".join(lines))
    monkeypatch.chdir(folder)
    return folder


TUNED = "out-model=unigram,tuned=lambda-nu"
APPLY = "geval: note: add --apply NAME to write the tuned output for the test set NAME\n"
TABLE = """\
tuned       score   nats     95 %                p        verdict
(as it is)  327.53
lambda      327.53  0.0000   [0.0000, 0.0000]    1.0000   leave it
lambda, nu  288.07  -0.1284  [-0.2005, -0.0562]  <0.0001  take it
by-line     288.07  0.0000   [0.0000, 0.0000]    0.9976   leave it

PerplexityHashed (words, lower is better) of out-model=unigram.tsv on 212 lines of dev-0; held out in 10 folds of 36 documents, seed 12345.
Take lambda 0.4477, nu 0.6648, for the 974 commonest words of train: 285.13 on dev-0.
"""
WORDS = ["tune", "-t", "dev-0", "-o", "unigram", "--words", "1000", "--documents", "FileId"]


def on_these_lines(name, how):
    what = f"was {how} on these lines: on others it would score a little worse"
    return f"geval: note: `./dev-0/{name}.tsv` {what}\n"


@pytest.mark.parametrize("kept", ["{", "[]", '{"test": ["dev-0"]}', '{"test": "test-A"}', "\udcff", None])
def test_no_note_without_a_file_that_names_the_test_set(gazette, geval, kept):
    shutil.copy(gazette / "dev-0/out-model=bigram.tsv", gazette / "dev-0/out-model=bigram,tuned=nu.tsv")
    if kept is not None:
        file = gazette / "dev-0/out-model=bigram,tuned=nu.tuning.json"
        file.write_bytes(kept.encode("utf-8", "surrogateescape"))
    assert geval("-t", "dev-0", "-o", "bigram,nu") == (0, "174.60\n", "")


def test_tune(gazette, geval):
    before = sorted(gazette.rglob("*"))
    assert geval(*WORDS) == (0, TABLE, APPLY)
    assert sorted(gazette.rglob("*")) == before
    status, out, err = geval(*WORDS, "--apply", "dev-0", "--apply", "test-A")
    assert (status, err) == (0, "")
    assert out == TABLE + f"wrote `./dev-0/{TUNED}.tsv`\nwrote `./test-A/{TUNED}.tsv`\n"
    assert geval("-t", "dev-0", "-o", f"{TUNED}.tsv") == (0, "285.13\n", on_these_lines(TUNED, "tuned"))
    assert len((gazette / f"test-A/{TUNED}.tsv").read_text().splitlines()) == 123


@pytest.mark.parametrize("name", WRITE)
def test_answers_in_other_formats(name, gazette, geval):
    """The frequent words of train are found, also beside a set whose own answers are in another format."""
    mixture = geval(*MIX, "--words", "1000")
    for of in ("train", "dev-0"):
        in_another_format(gazette / of, name)
        for path in gazette.glob("dev-0/out-mix=*"):
            path.unlink()
        assert geval(*WORDS) == (0, TABLE, APPLY)
        assert geval(*MIX, "--words", "1000") == mixture


def test_config_txt_tells_the_documents_and_no_cluster(gazette, geval):
    """What the command has itself is heeded, and what it has not is left to the commands that have it."""
    with (gazette / "config.txt").open("a") as config:
        config.write("\n--documents FileId --cluster tcp://127.0.0.1:1\n")
    words = [word for word in WORDS if word not in ("--documents", "FileId")]
    assert geval(*words) == (0, TABLE, APPLY)


def test_tune_as_json(gazette, geval):
    status, out, _ = geval(*WORDS, "--apply", "dev-0", "--format", "json", "--temperature")
    document = json.loads(out)
    assert status == 0
    assert document["written"] == [f"./dev-0/{TUNED}.tsv"]
    trials = [(list(trial["parameters"]), trial["words"]) for trial in document["trials"]]
    assert trials == [(["temperature"], 0), (["lambda"], 0), (["lambda", "nu"], 974), ([], 974)]
    assert document["parameters"]["nu"] == document["trials"][2]["parameters"]["nu"]


def test_the_compression_is_kept(gazette, geval):
    path = gazette / "dev-0/out-model=unigram.tsv"
    with gzip.open(f"{path}.gz", "wb") as file:
        file.write(path.read_bytes())
    path.unlink()
    status, out, _ = geval(*WORDS, "--apply", "dev-0")
    assert (status, out.splitlines()[-1]) == (0, f"wrote `./dev-0/{TUNED}.tsv.gz`")
    assert len(gzip.open(f"dev-0/{TUNED}.tsv.gz").read().splitlines()) == 212


def test_what_was_found_is_applied_again(gazette, geval):
    geval(*WORDS, "--apply", "dev-0", "--apply", "test-A")
    first = (gazette / f"test-A/{TUNED}.tsv").read_bytes()
    (gazette / f"test-A/{TUNED}.tsv").unlink()
    kept = f"dev-0/{TUNED}.tuning.json"
    taken = (
        2,
        "",
        f"geval: `./test-A/{TUNED}.tuning.json` is there already, and is left as it is\n  --force writes over it\n",
    )
    assert geval("tune", "--parameters", kept, "--apply", "test-A") == taken
    again = geval("tune", "--parameters", kept, "--apply", "test-A", "--force")
    assert again == (0, f"wrote `./test-A/{TUNED}.tsv`\n", "")
    assert (gazette / f"test-A/{TUNED}.tsv").read_bytes() == first


def test_nothing_is_written_over(gazette, geval):
    geval(*WORDS, "--apply", "dev-0")
    path = gazette / f"dev-0/{TUNED}.tsv"
    path.write_text("mine\n")
    status, _, err = geval(*WORDS, "--apply", "test-A", "--apply", "dev-0")
    message = f"geval: `./dev-0/{TUNED}.tsv` is there already, and is left as it is\n  --force writes over it\n"
    assert (status, err) == (2, message)
    assert path.read_text() == "mine\n"
    assert not (gazette / f"test-A/{TUNED}.tsv").exists()
    assert geval(*WORDS, "--apply", "dev-0", "--force")[0] == 0
    assert geval("-t", "dev-0", "-o", f"{TUNED}.tsv") == (0, "285.13\n", on_these_lines(TUNED, "tuned"))


def test_where_nothing_helps_nothing_is_written(gazette, geval):
    status, out, err = geval("tune", "-t", "dev-0", "-o", "unigram", "--words", "0", "--apply", "dev-0")
    assert (status, err) == (
        0,
        "geval: note: nothing is written, since no parameter makes the output significantly better\n",
    )
    assert out.endswith("No change is significantly better: leave the output as it is.\n")


def alike(gazette):
    """Make an output of it that is good for the first half of the files, and bad for the others."""
    files = [line.split("\t")[0] for line in lzma.open(gazette / "dev-0/in.tsv.xz", "rt")]
    halves = sorted(set(files))[18]
    answers = (gazette / "dev-0/expected.tsv").read_text().splitlines()
    shares = (0.1 if file < halves else 0.001 for file in files)
    lines = (f"{answer}:{share} :{1 - share}\n" for answer, share in zip(answers, shares, strict=True))
    (gazette / "dev-0/out-model=unigram.tsv").write_text("".join(lines))


@pytest.mark.parametrize("command", ["tune -o unigram --words 0", "mix bigram unigram"])
def test_documents_are_held_out_together_unasked(gazette, geval, command):
    alike(gazette)
    words = [*command.split(), "-t", "dev-0", "--force"]
    status, out, err = geval(*words)
    assert status == 0
    assert "; held out in 10 folds of 36 documents, seed 12345.\n" in out
    assert geval(*words, "--documents", "FileId")[1:] == (out, err)
    shown = geval(*words, "--no-documents")
    assert "; held out in 10 folds of lines, seed 12345.\n" in shown[1]
    assert shown[2] == err
    document = json.loads(geval(*words, "--format", "json")[1])
    assert (document["documents"], document["notes"]) == (36, [])


def cut_input(gazette, lines):
    """Keep the last lines of the input."""
    with lzma.open(gazette / "dev-0/in.tsv.xz", "rt") as file:
        rows = file.readlines()[-lines:]
    with lzma.open(gazette / "dev-0/in.tsv.xz", "wt") as file:
        file.writelines(rows)


@pytest.mark.parametrize("command", ["tune -o unigram --words 0", "mix bigram unigram"])
def test_one_line_cannot_be_held_out(gazette, geval, command):
    for path in sorted((gazette / "dev-0").glob("*.tsv")):
        header = "FileId\tYear\tLeftContext\tRightContext\n" if path.name == "in.tsv" else ""
        path.write_text(header * path.read_text().startswith("FileId") + path.read_text().splitlines()[-1] + "\n")
    cut_input(gazette, 1)
    assert geval(*command.split(), "-t", "dev-0", "--force") == (
        2,
        "",
        "geval: there is one line, and it cannot be held out: take two lines or more\n",
    )


def test_infinite_losses_have_a_column(gazette, geval):
    lines = (gazette / "unigram.tsv").read_text().splitlines()
    lines[:3] = ["zzz:1"] * 3
    (gazette / "dev-0/out-model=unigram.tsv").write_text("".join(f"{line}\n" for line in lines))
    status, out, _ = geval(*WORDS)
    rows = [line.split() for line in out.splitlines()]
    assert status == 0
    assert rows[0][:3] == ["tuned", "score", "infinite"]
    assert rows[1] == ["(as", "it", "is)", "Infinity", "3"]
    assert rows[2][-6:] == ["-Infinity", "[-Infinity,", "-Infinity]", "<0.0001", "take", "it"]


MIXED = """\
output                 score   weight
out-model=bigram.tsv   174.60  0.6942
out-model=unigram.tsv  327.53  0.0000
train                  12157   0.3058

PerplexityHashed (words, lower is better) of 212 lines of dev-0; held out in 10 folds of 36 documents, seed 12345.
Mixed, 157.99; against out-model=bigram.tsv alone, 174.60, a change of -0.0999 nats [-0.1790, -0.0209], p <0.0001: take it.
"""
MIX = ["mix", "-t", "dev-0", "bigram", "unigram", "--documents", "FileId"]


def test_mix(gazette, geval):
    name = "out-mix=bigram+unigram+train.tsv"
    out = MIXED + f"wrote `./dev-0/{name}`\nwrote `./test-A/{name}`\n"
    assert geval(*MIX, "--words", "1000", "--apply", "test-A") == (0, out, "")
    assert geval("-t", "dev-0", "-o", name) == (0, "156.84\n", on_these_lines(name[:-4], "mixed"))
    status, _, err = geval("-t", "test-A", "-o", name)
    assert (status, err) == (0, "")  # other lines than it was mixed on


def test_what_is_not_surely_better_is_mixed_only_by_force(gazette, geval):
    name = "./dev-0/out-mix=bigram+unigram.tsv"
    status, out, err = geval(*MIX)
    note = "geval: note: nothing is written, since the mixture is not significantly better; --force writes it\n"
    assert (status, err) == (0, note)
    assert out.endswith(": leave it.\n")
    assert geval(*MIX, "--force")[1].endswith(f": leave it.\nwrote `{name}`\n")
    Path(name).unlink()
    assert json.loads(geval(*MIX, "--force", "--format", "json")[1])["written"] == [name]


def test_without_names_tuned_and_mixed_outputs_are_left_out(gazette, geval):
    assert geval(*MIX, "--force")[0] == 0
    assert geval(*WORDS, "--apply", "dev-0")[0] == 0
    words = ["mix", "-t", "dev-0", "--documents", "FileId"]
    status, out, err = geval(*words, "--force")
    note = f"tuned and mixed outputs are left out unless they are named: out-mix=bigram+unigram.tsv, {TUNED}.tsv"
    assert (status, err) == (0, f"geval: note: {note}\n")
    assert out == geval(*MIX, "--force")[1]
    status, out, _ = geval(*words, "bigram", f"{TUNED}.tsv")
    assert (status, TUNED in out) == (0, True)


@pytest.mark.parametrize("command", ["tune -o unigram --words 0", "mix bigram unigram"])
def test_targets_are_checked_before_the_search(gazette, geval, command):
    """An output with another number of lines, or none, stops all."""
    words = [*command.split(), "-t", "dev-0", "--apply", "dev-0", "--apply", "test-A"]
    output = gazette / "test-A/out-model=unigram.tsv"
    before = sorted(gazette.rglob("*"))
    for lines, few in ((1, "few"), (122, "few"), (124, "many")):
        output.write_text(":1\n" * lines)
        counts = f"`./test-A/out-model=unigram.tsv` has {lines}, `./test-A/in.tsv.xz` has 123"
        assert geval(*words) == (1, "", f"geval: Too {few} lines in the output file: {counts}\n")
    assert sorted(gazette.rglob("*")) == before
    output.unlink()
    message = "geval: No file with the test results: `./test-A/out-model=unigram.tsv`\n"
    message += "  the output for test-A must have the same name; `./test-A` holds out-model=bigram.tsv\n"
    assert geval(*words) == (1, "", message)


def test_a_mixture_that_is_there_already_is_found_before_the_search(gazette, geval):
    path = gazette / "dev-0/out-mix=bigram+unigram.tsv"
    path.write_text("mine\n")
    message = f"geval: `./dev-0/{path.name}` is there already, and is left as it is\n  --force writes over it\n"
    assert geval(*MIX) == (2, "", message)


@pytest.mark.parametrize(("lines", "few"), [(1, "1 line"), (99, "99 lines")])
@pytest.mark.parametrize("command", ["tune -o unigram --words 0", "mix bigram unigram"])
def test_few_lines(gazette, geval, command, lines, few):
    for path in (gazette / "dev-0").glob("*.tsv"):
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:lines]))
    cut_input(gazette, lines)
    message = f"geval: the result of tuning on {few} may be due to chance; take 100 lines or more, or give --force\n"
    worse = (
        "PerplexityHashed is {}, and 1024 for `:1` on each line: no guess at all would be better\n"
        "  the lines may have another order than in.tsv, or words unlike the answers: see geval check"
    )
    notes = "".join(
        f"geval: note: `./dev-0/out-model={name}.tsv`: {worse.format(value)}\n"
        for name, value in (("bigram", "3354.19"), ("unigram", "1677.18"))
        if lines == 1 and name in command
    )
    assert geval(*command.split(), "-t", "dev-0") == (2, "", notes + message)


REFUSED = {
    "tune -t dev-0": ("there are several outputs (out-model=bigram.tsv, out-model=unigram.tsv): choose one with -o"),
    "tune -t dev-0 -o unigram -m LogLossHashed -m LikelihoodHashed": "geval tune takes one metric; 2 were given",
    "tune -t dev-0 -o unigram -m Accuracy": (
        "tuning and mixing need a hashed metric without flags that choose or change lines, such as "
        "PerplexityHashed, not Accuracy"
    ),
    "tune --parameters x.json": "--parameters is for --apply NAME, with the test set to tune an output of",
    "tune -t dev-0 -o unigram --words x": (
        "argument --words: 'x' is not a whole number\n  geval tune --help shows the options"
    ),
    "mix -t dev-0 unigram": "geval mix takes two outputs or more; there is 1",
    "mix -t dev-0 bigram unigram --documents Yaer": (
        "Unknown column `Yaer'\n  did you mean Year? the columns are FileId, Year, LeftContext, RightContext"
    ),
}


@pytest.mark.parametrize(("words", "message"), REFUSED.items(), ids=REFUSED)
def test_refused(gazette, geval, words, message):
    (gazette / "x.json").write_text(json.dumps({"parameters": PARAMETERS | {"lambda": 0.5}}))
    assert geval(*words.split()) == (2, "", f"geval: {message}\n")


PARAMETERS = {"temperature": 1, "lambda": 0, "nu": 0, "bits": 10, "frequent_words": {}}
BROKEN = {
    "no JSON": "x",
    "a list": "[]",
    "no parameters": "{}",
    "a number out of range": {"lambda": 2},
    "no number": {"temperature": "x"},
    "NaN": {"temperature": float("nan")},
    "shares above 1": {"frequent_words": {"a": 0.7, "b": 0.7}},
    "a word that would split a line": {"nu": 0.1, "frequent_words": {"a b": 0.7}},
    "bits": {"bits": 99},
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_parameters_that_are_none(gazette, geval, content):
    text = content if isinstance(content, str) else json.dumps({"parameters": PARAMETERS | content})
    (gazette / "x.json").write_text(text)
    message = "geval: Cannot read `x.json`: it holds no parameters as geval tune writes them\n"
    assert geval("tune", "--parameters", "x.json", "--apply", "test-A") == (1, "", message)


def test_parameters_that_are_not_there(gazette, geval):
    message = "geval: Cannot read `y.json`: No such file or directory\n"
    assert geval("tune", "--parameters", "y.json", "--apply", "test-A") == (1, "", message)
