"""geval mix and geval tune: what they print and write, and what they refuse."""

import json
import lzma
import shutil
from pathlib import Path

import pytest
from answer_formats import in_another_format

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


MIXED = "out-mix=unigram+train"
APPLY = "geval: note: add --apply NAME to write the mixture for the test set NAME\n"
TABLE = """\
component               score     infinite  weight
unigram                 327.53    0         0.2050
unigram, rest to train  Infinity  27        0.3473
train                   Infinity  27        0.3098
uniform                 1024.0    0         0.1379

PerplexityHashed (words, lower is better) of 212 lines of dev-0; held out in 10 folds of 36 documents, seed 12345.
Mixed, 288.07; unigram alone, 327.53: a change of -0.1284 nats [-0.2005, -0.0562], p <0.0001: take it.
"""
WORDS = ["tune", "-t", "dev-0", "-o", "unigram", "--words", "1000", "--documents", "FileId"]


def on_these_lines(name):
    what = "was mixed on these lines: on others it would score a little worse"
    return f"geval: note: `./dev-0/{name}.tsv` {what}\n"


@pytest.mark.parametrize("kept", ["{", "[]", '{"test": ["dev-0"]}', '{"test": "test-A"}', "\udcff", None])
def test_no_note_without_a_file_that_names_the_test_set(gazette, geval, kept):
    shutil.copy(gazette / "dev-0/out-model=bigram.tsv", gazette / "dev-0/out-mix=bigram.tsv")
    if kept is not None:
        file = gazette / "dev-0/out-mix=bigram.mixing.json"
        file.write_bytes(kept.encode("utf-8", "surrogateescape"))
    assert geval("-t", "dev-0", "-o", "out-mix=bigram.tsv") == (0, "174.60\n", "")


@pytest.mark.slow
def test_tune(gazette, geval):
    before = sorted(gazette.rglob("*"))
    assert geval(*WORDS) == (0, TABLE, APPLY)
    assert sorted(gazette.rglob("*")) == before
    status, out, err = geval(*WORDS, "--apply", "dev-0", "--apply", "test-A")
    assert (status, err) == (0, "")
    assert out == TABLE + f"wrote `./dev-0/{MIXED}.tsv`\nwrote `./test-A/{MIXED}.tsv`\n"
    assert geval("-t", "dev-0", "-o", f"{MIXED}.tsv") == (0, "285.13\n", on_these_lines(MIXED))
    assert len((gazette / f"test-A/{MIXED}.tsv").read_text().splitlines()) == 123


def test_tune_is_mix_with_one_output(gazette, geval):
    words = [word for word in WORDS[1:] if word not in ("-o", "unigram")]
    assert geval("mix", "unigram", *words) == (0, TABLE, APPLY)


def test_answers_in_another_format(gazette, geval):
    """The frequent words of train are found, also beside a set whose own answers are in another format."""
    mixture = geval(*MIX, "--words", "1000")
    for of in ("train", "dev-0"):
        in_another_format(gazette / of, "expected.jsonl")
        for path in gazette.glob("dev-0/out-mix=*"):
            path.unlink()
        assert geval(*WORDS) == (0, TABLE, APPLY)
        assert geval(*MIX, "--words", "1000") == mixture


def test_config_txt_tells_the_documents_and_no_cluster(gazette, geval):
    with (gazette / "config.txt").open("a") as config:
        config.write("\n--documents FileId --cluster tcp://127.0.0.1:1\n")
    words = [word for word in WORDS if word not in ("--documents", "FileId")]
    assert geval(*words) == (0, TABLE, APPLY)


@pytest.mark.slow
def test_nothing_is_written_over(gazette, geval):
    geval(*WORDS, "--apply", "dev-0")
    path = gazette / f"dev-0/{MIXED}.tsv"
    path.write_text("mine\n")
    status, _, err = geval(*WORDS, "--apply", "test-A", "--apply", "dev-0")
    message = f"geval: `./dev-0/{MIXED}.tsv` is there already, and is left as it is\n  --force writes over it\n"
    assert (status, err) == (2, message)
    assert path.read_text() == "mine\n"
    assert not (gazette / f"test-A/{MIXED}.tsv").exists()
    assert geval(*WORDS, "--apply", "dev-0", "--force")[0] == 0
    assert geval("-t", "dev-0", "-o", f"{MIXED}.tsv") == (0, "285.13\n", on_these_lines(MIXED))


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
        2, "", "geval: there is one line, and it cannot be held out: take two lines or more\n",
    )  # fmt: skip


def test_infinite_losses_have_a_column(gazette, geval):
    lines = (gazette / "unigram.tsv").read_text().splitlines()
    lines[:3] = ["zzz:1"] * 3
    (gazette / "dev-0/out-model=unigram.tsv").write_text("".join(f"{line}\n" for line in lines))
    status, out, _ = geval(*WORDS)
    rows = [line.split() for line in out.splitlines()]
    assert status == 0
    assert rows[0] == ["component", "score", "infinite", "weight"]
    assert rows[1][:3] == ["unigram", "Infinity", "3"]
    assert out.endswith(": a change of -Infinity nats [-Infinity, -Infinity], p <0.0001: take it.\n")


MIX = ["mix", "-t", "dev-0", "bigram", "unigram", "--documents", "FileId"]


def test_mix(gazette, geval):
    name = "out-mix=bigram+unigram+train.tsv"
    status, out, err = geval(*MIX, "--words", "1000", "--apply", "dev-0", "--apply", "test-A")
    assert (status, err) == (0, "")
    assert out.endswith(f": take it.\nwrote `./dev-0/{name}`\nwrote `./test-A/{name}`\n")
    assert geval("-t", "dev-0", "-o", name) == (0, "156.81\n", on_these_lines(name[:-4]))
    status, _, err = geval("-t", "test-A", "-o", name)
    assert (status, err) == (0, "")  # other lines than it was mixed on


def test_what_is_not_surely_better_is_mixed_only_by_force(gazette, geval):
    words, name = [*MIX, "--words", "0", "--apply", "dev-0"], "./dev-0/out-mix=bigram+unigram+uniform.tsv"
    status, out, err = geval(*words)
    note = "geval: note: nothing is written, since the mixture is not significantly better; --force writes it\n"
    assert (status, err) == (0, note)
    assert out.endswith(": leave it.\n")
    assert geval(*words, "--force")[1].endswith(f": leave it.\nwrote `{name}`\n")
    Path(name).unlink()
    assert json.loads(geval(*words, "--force", "--format", "json")[1])["written"] == [name]


@pytest.mark.slow
def test_without_names_mixed_outputs_are_left_out(gazette, geval):
    apply = ["--apply", "dev-0", "--force"]
    assert geval(*MIX, *apply)[0] == 0
    assert geval(*WORDS, *apply)[0] == 0
    words = ["mix", "-t", "dev-0", "--documents", "FileId"]
    status, out, err = geval(*words)
    note = f"mixed outputs are left out unless they are named: out-mix=bigram+unigram+train.tsv, {MIXED}.tsv"
    assert (status, err) == (0, f"geval: note: {note}\n{APPLY}")
    assert out == geval(*MIX)[1]
    status, out, _ = geval(*words, "bigram", f"{MIXED}.tsv")
    assert (status, "\nunigram+train " in out) == (0, True)
    for path in gazette.glob("dev-0/out-model=*"):
        path.unlink()
    assert geval(*words)[0::2] == (
        2, f"geval: note: {note}\ngeval: geval mix takes an output; there are only mixed ones\n",
    )  # fmt: skip


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


REFUSED = {
    "tune -t dev-0": "there are several outputs (out-model=bigram.tsv, out-model=unigram.tsv): choose one with -o",
    "tune -t dev-0 -o unigram -m LogLossHashed -m LikelihoodHashed": "geval tune takes one metric; 2 were given",
    "tune -t dev-0 -o unigram --words x": "argument --words: 'x' is not a whole number\n"
        "  geval tune --help shows the options",
    "mix -t dev-0 bigram unigram --documents Yaer": "Unknown column `Yaer'\n"
        "  did you mean Year? the columns are FileId, Year, LeftContext, RightContext",
}  # fmt: skip


@pytest.mark.parametrize(("words", "message"), REFUSED.items(), ids=REFUSED)
def test_refused(gazette, geval, words, message):
    assert geval(*words.split()) == (2, "", f"geval: {message}\n")
