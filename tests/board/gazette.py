"""The challenge gazette with its answers kept apart, and fourteen submissions to it, the same each time."""

import io
import os
import random
import shutil
import subprocess
import zipfile
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "challenges/gazette"
TEST = "test-A"
PAIRS = 5  # wrong words of a line
# Of no text, so that they stand in no answer; two of them make two words of the same length.
WRONG = tuple(f"qx{first}{second}" for first in "bcdfghjk" for second in "lmnprstv")


def answers_of(folder):
    return (folder / TEST / "expected.tsv").read_text(encoding="utf-8").splitlines()


def hide_answers(folder):
    """Copy gazette into ``challenge`` without the answers of test-A, which come into ``answers``."""
    challenge, answers = folder / "challenge", folder / "answers"
    shutil.copytree(SOURCE, challenge)
    (answers / TEST).mkdir(parents=True)
    shutil.move(challenge / TEST / "expected.tsv", answers / TEST / "expected.tsv")
    return challenge, answers


def output(skill, seed=0, turned=0, rest=0.1):
    """The text of an output of test-A that gives the right word ``skill``, more or less, and wrong ones the others.

    The answers are those of the challenge as it comes. ``turned`` lines have their words in another order, which
    changes no score beyond its last digits; ``rest`` is what words have that are not listed.
    """
    chance, lines = random.Random(f"gazette {seed}"), []
    for number, word in enumerate(answers_of(SOURCE)):
        share = skill * chance.uniform(0.4, 1.6)
        weights = [chance.random() for _ in range(PAIRS)]
        left = (1 - rest - share) / sum(weights)
        others = zip(chance.sample(WRONG, PAIRS), weights, strict=True)
        entries = [f"{word}:{share:.6f}", *(f"{other}:{weight * left:.6f}" for other, weight in others)]
        lines.append(" ".join(entries[::-1] if number < turned else entries) + f" :{rest}\n")
    return "".join(lines)


def without_answers(text):
    """Move the mass of the right words to a wrong one."""
    lines = (line.partition(" ") for line in text.splitlines(keepends=True))
    return "".join(f"qxzzz:{first.rpartition(':')[2]} {others}" for first, _, others in lines)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


HOSTILE = "=1+1 <script>alert(1)</script> \u2060\u200bKim"
GONITO = """\
description: Bigrams, "with" <b>smoothing</b>
tags: [neural, "=cmd"]
params: {layers: 3}
links:
  - {title: paper, url: https://example.org/paper}
"""


def uploads(folder):
    """Six submissions to scan: good, the same by another, tied, malformed, infinite, a hostile archive."""
    good = output(0.5)
    write(folder / "ann" / TEST / "out.tsv", good)
    write(folder / "ann/gonito.yaml", GONITO)
    write(folder / "bea" / TEST / "out.tsv", good)
    write(folder / "cyd" / TEST / "out.tsv", output(0.5, turned=60))
    write(folder / "dan" / TEST / "out.tsv", good.replace(":0.1\n", ":0,1\n", 1))
    write(folder / "eve" / TEST / "out.tsv", without_answers(output(0.6, seed=1, rest=0)))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in (f"{TEST}/out.tsv", "../../escaped.tsv"):
            archive.writestr(zipfile.ZipInfo(name), good)  # without a time of its own
    (folder / "mallory.zip").write_bytes(packed.getvalue())
    return folder


def letters(folder):
    """What ``geval board add`` gets: variants, late, another zone, withdrawn, over quota, hostile, git, baseline."""
    for number in (1, 2, 3):
        write(folder / f"fay/{TEST}/out-model=trigram,k={number}.tsv", output(0.2 + 0.1 * number, seed=number))
    for number, name in enumerate(("gus", "hal", "ivy", "jon", "jon-again", "kim"), 10):
        write(folder / name / TEST / "out.tsv", output(0.02 * number, seed=number))
    for variant in ("a", "b"):  # of the same day as one before, with the one above more than three
        write(folder / "jon-again" / TEST / f"out-{variant}.tsv", output(0.3, seed=ord(variant)))
    write(folder / "base" / TEST / "out.tsv", without_answers(output(0.5, seed=20)))
    branch = repository(folder / "lou", output(0.3, seed=30))
    return [
        (folder / "fay", "--at", "2025-01-20T12:00:00Z"),
        (folder / "gus", "--at", "2025-02-01T00:00:00+01:00"),  # a minute after the deadline
        (folder / "hal", "--at", "2025-02-01 07:58 Asia/Tokyo"),  # a minute before it
        (folder / "ivy", "--at", "2025-01-21T12:00:00Z"),
        (folder / "jon", "--at", "2025-01-22T12:00:00Z"),
        (folder / "jon-again", "--submitter", "JON", "--at", "2025-01-22T13:00:00Z"),
        (folder / "kim", "--submitter", HOSTILE, "--at", "2025-01-23T12:00:00Z"),
        (f"git+file://{branch}@main", "--submitter", "lou", "--at", "2025-01-24T12:00:00Z"),
        (folder / "base", "--baseline", "--at", "2025-01-02T12:00:00Z"),
    ]


LOU = {"NAME": "Lou", "EMAIL": "lou@example.org", "DATE": "2025-01-24T10:00:00Z"}
AUTHOR = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in LOU.items()}


def repository(folder, text):
    """A repository whose branch main has an output, with a commit that is the same each time."""
    write(folder / TEST / "out.tsv", text)
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"} | AUTHOR
    for words in (
        ["init", "--quiet", "--initial-branch=main"], ["add", TEST], ["config", "uploadpack.allowFilter", "true"],
        ["commit", "--quiet", "--message", "A recurrent model\n\ntags: neural, recurrent"],
    ):  # fmt: skip
        subprocess.run(["git", *words], cwd=folder, env=environment, check=True)
    return folder
