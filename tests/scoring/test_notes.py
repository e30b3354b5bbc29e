"""The notes on an evaluation: the same in Python, as warnings and on the command line."""

import lzma

import pytest

from geval_py import evaluate, evaluate_all

GOOD = b"a:0.5 :0.5\nb:0.5 :0.5\n"
NOT_UTF_8 = "has bytes that are not UTF-8, and are read as U+FFFD; write it as UTF-8"
ODD = {  # the files of a test set and of its challenge that are not as usual, and the notes
    "nothing odd": ({},),
    "Latin-1": ({"out.tsv": b"a:0.5 \xf3:0.5\nb:0.5 :0.5\n"}, f"`./dev-0/out.tsv` {NOT_UTF_8}"),
    "compressed Latin-1": ({"out.tsv": None, "out.tsv.xz": lzma.compress(b"a:0.5 \xf3:0.5\nb:0.5 :0.5\n")},
        f"`./dev-0/out.tsv.xz` {NOT_UTF_8}"),
    "answers in Latin-1": ({"expected.tsv": b"a\nb\xf3\n", "out.tsv": b"a:0.5 :0.5\n:1\n"},
        f"`./dev-0/expected.tsv` {NOT_UTF_8}"),
    "percentages": ({"out.tsv": b"a:50 :50\nb:50 :50\n"},
        "`./dev-0/out.tsv`: 2 of 2 lines have numbers that are neither probabilities nor their logarithms; "
        "they look like percentages: divide each by 100"),
    "an infinite loss": ({"out.tsv": b"a:1\nc:1\n"}, "`./dev-0/out.tsv`: the loss of 1 of 2 lines is infinite"),
    "worse than no guess": ({"out.tsv": b"b:0.999 :0.001\na:0.999 :0.001\n"},
        "`./dev-0/out.tsv`: LogLossHashed is 13.8392, and 6.93147 for `:1` on each line: no guess at all would be better\n"
        "  the lines may have another order than in.tsv, or words unlike the answers: see geval check"),
    "a twin": ({"out.tsv.xz": lzma.compress(GOOD)},
        "`./dev-0/out.tsv` is read, and not `out.tsv.xz` beside it; `out.tsv.xz` is newer"),
    "rows in another order": ({"out.tsv": None, "out.csv": b"id,label,p\n2,a,0.5\n2,,0.5\n1,b,0.5\n1,,0.5\n"},
        "`./dev-0/out.csv`: its ids do not ascend (`1` comes after `2`), and its rows are scored in the order of the file; "
        "sort them as the answers are, or give the answers ids (expected.jsonl)"),
    "mixed here": ({"out.tsv": None, "out-mix=1.tsv": GOOD, "out-mix=1.mixing.json": b'{"test": "dev-0"}'},
        "`./dev-0/out-mix=1.tsv` was mixed on these lines: on others it would score a little worse"),
    "no such input": ({"../config.txt": b"--metric LogLossHashed --input-file no.tsv\n"},
        "there is no file `no.tsv`; the input is not needed here"),
    "a tokenizer": ({"../config.txt": b"--metric Accuracy --tokenizer 13a\n"},
        "--tokenizer 13a does not change Accuracy, which is of the lines as they are"),
    "no vocabulary": ({"../config.txt": b"--metric LogLoss\n"},
        "2 of 2 expected words are not in a vocabulary (name one with --vocabulary FILE); "
        "if the output does not list such a word, its loss is infinite"),
    "several columns": ({"../config.txt": b"--metric CharMatch\n", "in.tsv": b"x\tab\n", "expected.tsv": b"ab\n",
        "out.tsv": b"ab\n"}, "CharMatch compares the whole line of `./dev-0/in.tsv`, which has 2 columns; "
        r"`CharMatch:s<.*\t><>` compares the last one alone"),
    "two of them": ({"out.tsv": b"a:0.5 \xf3:0.5\nc:1"},
        f"`./dev-0/out.tsv` {NOT_UTF_8}",
        "`./dev-0/out.tsv`: its last line has no line end, and fewer entries (1) than all others: the file may be cut off",
        "`./dev-0/out.tsv`: the loss of 1 of 2 lines is infinite"),
}  # fmt: skip


def write(folder, files):
    (folder / "dev-0").mkdir()
    usual = {"../config.txt": b"--metric LogLossHashed\n", "expected.tsv": b"a\nb\n", "out.tsv": GOOD}
    for name, content in (usual | files).items():
        if content is not None:
            (folder / "dev-0" / name).write_bytes(content)


def warned(caught):
    assert {one.filename for one in caught} <= {__file__}
    return [str(one.message) for one in caught]


def printed(notes):
    return "".join(f"geval: note: {note}\n" for note in notes)


@pytest.mark.filterwarnings("always")
@pytest.mark.parametrize(("files", "notes"), [(files, notes) for files, *notes in ODD.values()], ids=ODD)
def test_python_and_the_command_say_the_same(files, notes, tmp_path, geval, monkeypatch, recwarn):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, files)
    evaluation = evaluate(".", "dev-0")
    assert warned(recwarn) == [*evaluation.notes] == notes
    status, _, err = geval("-t", "dev-0")
    assert (status, err) == (0, printed(evaluation.notes))


@pytest.mark.filterwarnings("always")
def test_what_several_outputs_share_is_said_once(tmp_path, geval, monkeypatch, recwarn):
    monkeypatch.chdir(tmp_path)
    latin = b"a:0.5 \xf3:0.5\n:1\n"
    write(tmp_path, {"expected.tsv": b"a\nb\xf3\n", "out.tsv": None, "out-x=1.tsv": latin, "out-x=2.tsv": latin})
    evaluations = evaluate_all(".", "dev-0")
    notes = [f"`./dev-0/{name}.tsv` {NOT_UTF_8}" for name in ("expected", "out-x=1", "out-x=2")]
    assert [one.notes for one in evaluations] == [(notes[0], note) for note in notes[1:]]
    assert warned(recwarn) == notes
    assert geval("-t", "dev-0")[2] == printed(notes)
