"""Files through the command: what was not fetched, what lies beside or is cut off, and how often each is opened."""

import json
import lzma
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

GAZETTE = Path(__file__).parents[2] / "challenges" / "gazette"
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n"
OUT = "the:0.5 a:0.25 :0.25\na:0.5 the:0.25 :0.25\n"
SCORE = "1.9990239141044412\n"  # 1 / (0.5 + 0.25 / 1024)


@pytest.fixture
def challenge(tmp_path, monkeypatch):
    (tmp_path / "dev-0").mkdir()
    (tmp_path / "config.txt").write_text("--metric PerplexityHashed\n")
    for name, text in {"in": "the sky\na tree\n", "expected": "the\na\n", "out": OUT}.items():
        (tmp_path / f"dev-0/{name}.tsv").write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def by_lfs(path):
    path.write_bytes(LFS)
    return f"Line 1: Unexpected data in `./dev-0/{path.name}`: it is a git-lfs pointer: run git lfs pull"


def by_annex(path):
    path.unlink()
    path.symlink_to("../.git/annex/objects/Xv/1q/SHA256E-s12345--4d7a2146.tsv/SHA256E-s12345--4d7a2146.tsv")
    return f"Cannot read `./dev-0/{path.name}`: its content is not here: run git annex get {path.name}"


def by_unlocked_annex(path):
    path.write_bytes(b"/annex/objects/SHA256E-s12345--4d7a2146.tsv\n")
    return f"Line 1: Unexpected data in `./dev-0/{path.name}`: it is a git-annex pointer: run git annex get"


not_fetched = pytest.mark.parametrize("leave", [by_lfs, by_annex, by_unlocked_annex])


@not_fetched
def test_an_input_that_was_not_fetched(leave, challenge, geval):
    """Only what needs it misses it."""
    message = leave(challenge / "dev-0/in.tsv")
    assert geval("-t", "dev-0") == (0, SCORE, "")
    for words in (["-m", "CharMatch"], ["-a", "LogLossHashed:f<in[1]:sky>"], ["-l", "--filter", "in<1>:sky"]):
        status, out, err = geval("-t", "dev-0", *words)
        assert (status, out, err.splitlines()[-1]) == (1, "", f"geval: {message}")


@not_fetched
@pytest.mark.parametrize("name", ["expected", "out"])
@pytest.mark.parametrize("words", ["", "-l", "-w", "tune", "report"])
def test_answers_and_an_output_that_were_not_fetched(leave, name, words, challenge, geval):
    message = leave(challenge / f"dev-0/{name}.tsv")
    assert geval(*words.split(), "-t", "dev-0") == (1, "", f"geval: {message}\n")


@pytest.mark.parametrize(("age", "newer"), [(-9, ""), (9, "; `out.tsv.xz` is newer")])
@pytest.mark.parametrize("words", [(), ("-o", "out.tsv"), ("-o", "dev-0/out.tsv")])
def test_a_file_beside_its_compressed_twin(age, newer, words, challenge, geval):
    """As in GEval, the one without an ending is read."""
    twin = challenge / "dev-0/out.tsv.xz"
    twin.write_bytes(lzma.compress(b":1\n:1\n"))
    now = os.stat(challenge / "dev-0/out.tsv").st_mtime
    os.utime(twin, (now + age, now + age))
    status, out, err = geval("-t", "dev-0", *words)
    path = words[1] if words and "/" in words[1] else "./dev-0/out.tsv"
    assert (status, out) == (0, SCORE)
    assert err == f"geval: note: `{path}` is read, and not `out.tsv.xz` beside it{newer}\n"
    assert geval("-t", "dev-0", "-o", "out.tsv.xz")[:2] == (0, "1024.0\n")


CUT = [  # the output, and how many entries its last line has, if it may be cut off
    ("the:0.5 :0.5\na:0.5", 1), (OUT + "the:0.5 :0.5", 2), (OUT + "the:0.5 :0.5\n", None),
    (OUT + "the:0.5 a:0.25 :0.25", None), (OUT + ":1\nthe:0.5", None), ("the:0.5", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "entries"), CUT, ids=range(len(CUT)))
def test_a_last_line_that_may_be_cut_off(text, entries, challenge, geval):
    (challenge / "dev-0/out.tsv").write_text(text)
    lines = len(text.splitlines())
    (challenge / "dev-0/expected.tsv").write_text("".join(f"{word}\n" for word in ("the", "a", "the", "the")[:lines]))
    few = f"its last line has no line end, and fewer entries ({entries}) than all others: the file may be cut off"
    status, _, err = geval("-t", "dev-0", "-m", "LogLossHashed")
    assert (status, err) == (0, f"geval: note: `./dev-0/out.tsv`: {few}\n" if entries else "")


COUNT = """\
import json, os, sys
times = {}
def count(event, arguments):
    if event == "open" and isinstance(arguments[0], str) and os.path.basename(os.path.dirname(arguments[0])) == "dev-0":
        name = os.path.basename(arguments[0])
        times[name] = times.get(name, 0) + 1
sys.addaudithook(count)
from geval_py.cli import main
status = main(sys.argv[1:])
with open("times.json", "w") as file:
    json.dump(times, file)
sys.exit(status)
"""
BIGRAM, UNIGRAM = "out-model=bigram.tsv", "out-model=unigram.tsv"
OPENED = {  # command lines, and the files of the test set that they open
    "-t dev-0": {"expected.tsv", BIGRAM, UNIGRAM}, "-t dev-0 --format json": {"expected.tsv", BIGRAM, UNIGRAM},
    "-t dev-0 -o bigram -l -s": {"expected.tsv", "in.tsv.xz", BIGRAM},
    "compare -t dev-0 --samples 20": {"expected.tsv", "in.tsv.xz", BIGRAM, UNIGRAM},
    "tune -t dev-0 -o bigram": {"expected.tsv", "in.tsv.xz", BIGRAM},
    "report -t dev-0 -o bigram": {"expected.tsv", "in.tsv.xz", BIGRAM, UNIGRAM},
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("words", "names"), [
    pytest.param(*of, marks=pytest.mark.long if n % 3 else ()) for n, of in enumerate(OPENED.items())
], ids=OPENED)  # fmt: skip
def test_each_file_is_opened_once(words, names, tmp_path):
    folder = shutil.copytree(GAZETTE, tmp_path / "gazette")
    command = [sys.executable, "-I", "-c", COUNT, *words.split()]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    assert json.loads((folder / "times.json").read_text()) == dict.fromkeys(names, 1)
