"""What commands print on the sample challenges, as text and JSON, and some in each format: a difference is seen, and then decided.

The outputs are in tests/frozen, a file a command. After an intended change, write them anew and read the difference:
GEVAL_PY_FREEZE=1 pytest tests/test_frozen_outputs.py; git diff tests/frozen
"""

import csv
import gzip
import hashlib
import io
import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from geval_py.version import __version__, build_version

FROZEN = Path(__file__).parent / "frozen"
CHALLENGES = Path(__file__).parent.parent / "challenges"
FORMATS = ("text", "json", "csv", "markdown", "latex", "html")
MAX_LINES, LINES_OF_LONGER = 90, 30
GAZETTE = "--expected-directory gazette --out-directory gazette -t dev-0"
MADE = GAZETTE.replace("gazette", "made")  # where outputs are written
BIGRAM, UNIGRAM = "out-model=bigram.tsv", "out-model=unigram.tsv"
CAPTION = "--format latex --caption 50%_of_{ --label tab:a_b"
IN_EACH_FORMAT = ("score", "compare", "board")  # tests/tables/test_table.py has what a format does with a table
WITH_FORMATS = {
    "score": GAZETTE, "score-intervals": f"{GAZETTE} -B 200", "lines": f"{GAZETTE} -o {BIGRAM} -l -s",
    "features": f"{GAZETTE} -o {BIGRAM} -w", "difference": f"{GAZETTE} -o {BIGRAM} -d {UNIGRAM} -s",
    "worsening": f"{GAZETTE} -o {BIGRAM} --most-worsening-features {UNIGRAM}",
    "compare": f"compare {GAZETTE} --samples 500",
    "compare-documents": f"compare {GAZETTE} --documents FileId --samples 500",
    "calibration": f"calibration {GAZETTE} -o {BIGRAM}", "luck": f"luck {GAZETTE}",
    "tune": f"tune {GAZETTE} -o {BIGRAM}", "mix": f"mix {GAZETTE}",
    "check": f"check gazette/dev-0/{BIGRAM} --challenge gazette -t dev-0",
    "check-bad": "check bad --challenge gazette", "rules": "check --rules", "digits": "--challenge digits",
    "colours": "--challenge colours", "digits-compare": "compare --challenge digits --samples 500",
    "leaks": "challenge leaks gazette", "board": "board show board", "board-status": "board status board",
    "board-rescore": "board rescore board --dry-run",
}  # fmt: skip
ONCE = {
    "help": "--help", "no-such-command": "no-such-command", "no-such-option": "--no-such-option",
    "list-metrics": "--list-metrics", "missing-output": f"{GAZETTE} -o out-missing.tsv",
    "missing-challenge": "--challenge nowhere", "reverse": f"{GAZETTE} -o {BIGRAM} -l -r",
    "filter": f"{GAZETTE} -o {BIGRAM} -l --filter exp:the",
    "oracle": f"{GAZETTE} -o {BIGRAM} --oracle-item-based --alt-out-file {UNIGRAM}",
    "by-score": f"{GAZETTE} --by-score",
    "precision": f"{GAZETTE} -p 6 -m LikelihoodHashed -m LogLossHashed8 -m PerplexityHashed",
    "several": "--challenge digits --challenge colours",
    "check-github": "check bad --challenge gazette --format github",
    "check-diff": "check bad/dev-0/out.tsv --challenge gazette -t dev-0 --diff --rest-mass 0.01",
    "explain": "check --explain E101", "validate-challenge": "--validate --expected-directory gazette",
    "report": f"report {GAZETTE} -o {BIGRAM} -o {UNIGRAM} --html report.html",
    "compare-caption": f"compare {GAZETTE} --samples 500 --baseline unigram --name bigram=Ours_2 {CAPTION}",
    "features-caption": f"{GAZETTE} -o {BIGRAM} -w --top 2 {CAPTION}",
    "lm-perplexity": "lm perplexity words.arpa text.txt", "baseline": f"baseline ngram-both {MADE}",
    "predict": f"predict --model arpa:words.arpa {MADE} -o out-predicted.tsv --limit 5",
    "convert": f"convert gazette/dev-0/{BIGRAM} copy.tsv",
    "bad-scored": "--challenge gazette -t dev-0 -o bad/dev-0/out.tsv",
    **{
        f"help-{words.replace(' ', '-')}": f"{words} --help"
        for words in (
            "compare", "report", "check", "tune", "mix", "predict", "luck", "calibration", "sample", "convert",
            "baseline", "lm", "lm train", "lm perplexity", "lm surprisal", "challenge",
            "challenge make", "challenge split", "challenge leaks", "board", "board init", "board add", "board scan",
            "board show", "board status", "board site", "board backup", "board rescore", "board serve", "submit",
        )
    },
}  # fmt: skip
NARROW = (
    "score", "lines", "features", "compare", "calibration", "luck", "tune", "mix", "check-bad", "digits", "board",
)  # fmt: skip
COMMANDS = (
    {
        f"{name}.{kind}": f"{words} --format {kind}"
        for name, words in WITH_FORMATS.items()
        for kind in (FORMATS if name in IN_EACH_FORMAT else ("text", "json"))
    }
    | ONCE
    | {f"{name}.{columns}": WITH_FORMATS[name] for name in NARROW for columns in (80, 40)}
)
TEXT = "the rain in the city and the rain on the plain\nthe city and the plain\nrain on the city\n"
MISTAKES = tomllib.loads(Path(__file__).with_name("data").joinpath("mistakes.toml").read_text(encoding="utf-8"))
CHALLENGE = MISTAKES.pop("challenge")
BAD = """\
the:0.5 of:0.6
the:x :0.1
no colon

a:0.1\tb :0.9
the:0.5 the:0.2 :0.3
of:0.9
:1
The:-0.5 :0.1 x
""".splitlines(keepends=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The sample challenges, a bad submission, a language model, a board with two submissions."""
    from geval_py.cli import main

    place = tmp_path_factory.mktemp("frozen")
    for name in ("gazette", "digits", "colours"):
        shutil.copytree(CHALLENGES / name, place / name)
    shutil.copytree(CHALLENGES / "gazette", place / "made")
    lines = (place / "gazette/dev-0/expected.tsv").read_text().count("\n")
    (place / "bad/dev-0").mkdir(parents=True)
    (place / "bad/dev-0/out.tsv").write_text("".join(BAD[n % len(BAD)] for n in range(lines)))
    (place / "text.txt").write_text(TEXT)
    for name, line in (("ann", "the:0.06 of:0.03 :0.91\n"), ("bob", ":1\n")):
        (place / "uploads" / name / "test-A").mkdir(parents=True)
        lines = (place / "gazette/test-A/expected.tsv").read_text().count("\n")
        (place / "uploads" / name / "test-A/out.tsv").write_text(line * lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        for words in (
            "lm train text.txt -o 2 --arpa words.arpa --discount-fallback",
            "board init board --challenge gazette --answers gazette",
            "board add board uploads/ann --at 2026-01-02T03:04:05Z",
            "board add board uploads/bob --at 2026-01-02T03:04:06Z",
        ):
            assert main(words.split()) == 0, words
    return place


@pytest.mark.parametrize("name", COMMANDS)
def test_frozen(name, folder, geval, monkeypatch):
    monkeypatch.chdir(folder)
    columns = name.rpartition(".")[2]
    shown = {"terminal": True, "columns": int(columns)} if columns.isdecimal() else {}
    status, out, err = geval(*COMMANDS[name].split(), **shown)
    compare(name, record(status, out, err).replace(str(folder), "FOLDER"))


@pytest.mark.slow
@pytest.mark.parametrize("name", [
    "compare",
    *(
        pytest.param(name, marks=pytest.mark.long)
        for name in ("compare-documents", "calibration", "features", "luck", "tune", "mix")
    ),
])  # fmt: skip
def test_another_processor_gives_the_same_digits(name, folder, monkeypatch):
    """The library of linear algebra adds in another order there."""
    monkeypatch.chdir(folder)
    command = [sys.executable, "-m", "geval_py", *COMMANDS[f"{name}.json"].split()]
    printed = [
        subprocess.run(command, env=os.environ | {"OPENBLAS_CORETYPE": core}, capture_output=True, check=True).stdout
        for core in ("Prescott", "Sandybridge")
    ]
    assert printed[0] == printed[1]


GUESSES = (
    {"the": 0.6, "a": 0.2, "": 0.2}, {"of": 0.7, "with": 0.1, "": 0.2}, {"and": 0.5, "he": 0.2, "": 0.3},
    {"a": 0.5, "the": 0.3, "": 0.2}, {"New": 0.4, "old": 0.2, "": 0.4}, {"the": 0.6, "his": 0.2, "": 0.2},
)  # fmt: skip
MODULES = (csv, gzip, json, math, os, zipfile)
SCORE, CHECK = "-t dev-0", "check . -t dev-0 --max-problems 1"


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(name, tmp_path, geval, monkeypatch):
    """A beginner's mistake is made, as its Python did; what is said of it leads to the mistake."""
    monkeypatch.chdir(tmp_path)
    mistake = MISTAKES[name]
    for path, text in (CHALLENGE | mistake.get("files", {})).items():
        if text:
            Path(path).parent.mkdir(exist_ok=True)
            Path(path).write_text(text, encoding="utf-8")
    out = io.StringIO(mistake.get("output", ""))
    if "output" not in mistake:
        lines = [" ".join(f"{word}:{p}" for word, p in guess.items()) for guess in GUESSES]
        names = {module.__name__: module for module in MODULES} | {"np": np, "pd": pd}
        exec(mistake["python"], names | {"guesses": [dict(guess) for guess in GUESSES], "lines": lines, "out": out})
    if out.getvalue():
        Path("dev-0/out.tsv").write_text(out.getvalue(), encoding="utf-8", newline="\n")
    commands = (mistake.get("score", SCORE), mistake.get("check", CHECK))
    text = "".join(f"$ geval {command}\n{record(*geval(*shlex.split(command)))}" for command in commands)
    assert "geval: " in text or "no problems" not in text, "nobody notices it"
    compare(f"mistakes/{name}", text)


def record(status, out, err):
    return f"status {status}\n--- standard output\n{shortened(out)}--- standard error\n{shortened(err)}"


def compare(name, text):
    """Compare with what is frozen, or freeze."""
    path = FROZEN / f"{name}.txt"
    if os.environ.get("GEVAL_PY_FREEZE"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def shortened(text):
    """The beginning of a long text, and its digest; times, figures of this run and the commit are left out."""
    text = text.replace(build_version(), __version__)
    text = re.sub(r"\b20\d\d-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?( UTC|Z)?", "TIME", text)
    text = re.sub(r"\b\d+(\.\d+)? (s|MB|kB)\b", "N \\2", text)
    lines = text.splitlines(keepends=True)
    if len(lines) <= MAX_LINES:
        return text if not text or text.endswith("\n") else f"{text}\n"
    digest = hashlib.sha256(text.encode()).hexdigest()
    return (
        "".join(f"{line[:150].rstrip()}\n" for line in lines[:LINES_OF_LONGER])
        + f"… {len(lines)} lines in all, SHA-256 {digest}\n"
    )
