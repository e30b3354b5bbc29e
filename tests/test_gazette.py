"""The sample challenge is what scripts/make_gazette makes of its text, and keeps what its README says."""

import lzma
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CHALLENGE = ROOT / "challenges" / "gazette"
SOURCES = {"README.md", "gazette.txt"}
SCRIPT = ROOT / "scripts" / "make_gazette"
SETS = ("train", "dev-0", "test-A")


def content(path):
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data


def files(directory):
    paths = (path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): content(path) for path in paths}


def lines(name):
    return content(CHALLENGE / name).decode().removesuffix("\n").split("\n")


def gaps(name):
    """The fields of each line of a set's input, and the expected word behind them."""
    inputs = [line.split("\t") for line in lines(f"{name}/in.tsv.xz")]
    return [(*fields, word) for fields, word in zip(inputs, lines(f"{name}/expected.tsv"), strict=True)]


def items():
    blocks = (CHALLENGE / "gazette.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n\n")
    parts = [block.partition("\n") for block in blocks]
    return {tuple(heading.removeprefix("# ").split(" ")): text for heading, _, text in parts}


@pytest.mark.slow
def test_the_committed_files_are_those_that_the_script_makes(tmp_path):
    subprocess.run([sys.executable, SCRIPT, "--out", tmp_path], check=True)
    committed = files(CHALLENGE)
    assert files(tmp_path) == {name: committed[name] for name in committed.keys() - SOURCES}


def test_the_readme_gives_the_numbers_of_gaps_items_and_words():
    sets = [gaps(name) for name in SETS]
    train, dev, test = map(len, sets)
    sources = "{}, {} and {} items".format(*(len({gap[0] for gap in name}) for name in sets))
    readme = "\n".join(lines("README.md"))
    assert f"{train}, {dev} and {test} gaps, from {sources}" in readme
    words = round(sum(len(text.split()) for text in items().values()), -2)
    assert f"contains {len(items())} items with about {words:,} words" in readme
