"""The sample challenge is what scripts/make_gazette makes of its text, and keeps what its README says."""

import lzma
import re
import runpy
import string
import subprocess
import sys
from decimal import Decimal
from itertools import product
from pathlib import Path

import pytest

from geval_py.reading.wordprobs import REST, parse_line

ROOT = Path(__file__).parent.parent
CHALLENGE = ROOT / "challenges" / "gazette"
SOURCES = {"README.md", "gazette.txt"}
SCRIPT = ROOT / "scripts" / "make_gazette"
MINIMUM_GAPS = {"train": 600, "dev-0": 120, "test-A": 60}
HIDDEN = ("dev-0", "test-A")
CONTEXT_WORDS = 8
MODELS = ("unigram", "bigram")


def content(path):
    """A file's bytes, decompressed."""
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data


def files(directory):
    """The contents of all files below a directory, by relative path."""
    paths = (path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): content(path) for path in paths}


def lines(name):
    """The lines of one file of the challenge, without their ends."""
    return content(CHALLENGE / name).decode().removesuffix("\n").split("\n")


def gaps(name):
    """The fields of each line of a set's input, and the expected word behind them."""
    inputs = [line.split("\t") for line in lines(f"{name}/in.tsv.xz")]
    return [(*fields, word) for fields, word in zip(inputs, lines(f"{name}/expected.tsv"), strict=True)]


def items():
    """The text of each item of gazette.txt, by its id and year."""
    blocks = (CHALLENGE / "gazette.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n\n")
    parts = [block.partition("\n") for block in blocks]
    return {tuple(heading.removeprefix("# ").split(" ")): text for heading, _, text in parts}


def put_back(left, word, right):
    r"""The text around a gap, with a space on each side of the word where there is no ``\n``."""
    before = "" if left.endswith(r"\n") else " "
    after = "" if right.startswith(r"\n") else " "
    return f"{left}{before}{word}{after}{right}".replace(r"\n", "\n")


def windows(name):
    """Where each window of a set stands: its item, its first character's place and the one behind its last."""
    texts = items()
    for file_id, year, left, right, word in gaps(name):
        window = put_back(left, word, right)
        assert texts[file_id, year].count(window) == 1
        start = texts[file_id, year].index(window)
        yield file_id, start, start + len(window)


def overlap(one, other):
    """Whether two windows share a character."""
    return one[0] == other[0] and one[1] < other[2] and other[1] < one[2]


def words_of(text):
    """The words of a text, without their capitals and their punctuation."""
    return [word.lower().strip(string.punctuation) for word in text.replace(r"\n", " ").split()]


def neighbours(left, right):
    """Three words on each side of a place."""
    return (*left[-3:], *right[:3])


def readable(runs):
    """The neighbours of each word that stands in one of the runs of words with three on each side."""
    return {neighbours(run[:n], run[n + 1 :]) for run in runs for n in range(3, len(run) - 3)}


def shown(name):
    """The runs of words that the inputs of a set show."""
    return [words_of(context) for _, _, left, right, _ in gaps(name) for context in (left, right)]


def answered(name):
    """The runs of words that the inputs of a set and their answers show."""
    return [words_of(f"{left} {word} {right}") for _, _, left, right, word in gaps(name)]


def read_elsewhere(name, runs):
    """The gaps of a set whose answers can be read in one of the runs, by three words on each side."""
    known = readable(runs)
    return [gap for gap in gaps(name) if neighbours(words_of(gap[2]), words_of(gap[3])) in known]


def test_the_committed_files_are_those_that_the_script_makes(tmp_path):
    subprocess.run([sys.executable, SCRIPT, "--out", tmp_path], check=True)
    committed = files(CHALLENGE)
    assert files(tmp_path) == {name: committed[name] for name in committed.keys() - SOURCES}


def test_a_text_that_grows_moves_no_gap(tmp_path):
    text = (CHALLENGE / "gazette.txt").read_text(encoding="utf-8")
    shorter = "\n\n".join(text.split("\n\n")[:100])
    runpy.run_path(str(SCRIPT))["make_challenge"](shorter, tmp_path)
    for name in MINIMUM_GAPS:
        inputs = content(tmp_path / name / "in.tsv.xz").decode().splitlines()
        assert inputs == lines(f"{name}/in.tsv.xz")[: len(inputs)]
        assert 0 < len(inputs) < len(gaps(name))


def test_every_file_has_line_feed_ends_and_a_final_one():
    wrong = [name for name, data in files(CHALLENGE).items() if b"\r" in data or not data.endswith(b"\n")]
    assert wrong == []


def test_the_text_has_enough_words_and_each_item_an_id_and_a_set_of_its_own():
    assert sum(len(text.split()) for text in items().values()) >= 6000
    headings = re.findall(r"^#.*", "\n".join(lines("gazette.txt")), re.MULTILINE)
    assert len({heading.split(" ")[1] for heading in headings}) == len(headings) == len(items())
    ids = [{file_id for file_id, *_ in gaps(name)} for name in MINIMUM_GAPS]
    assert sum(map(len, ids)) == len(set.union(*ids)) == len(items())


@pytest.mark.parametrize("name", HIDDEN)
def test_no_answer_of_a_hidden_set_can_be_read_in_an_input_or_in_the_training_text(name):
    others = [window for other in MINIMUM_GAPS for window in windows(other)]
    overlapping = [pair for pair in product(windows(name), others) if overlap(*pair)]
    assert overlapping == [(window, window) for window in windows(name)]
    assert read_elsewhere(name, [run for other in MINIMUM_GAPS for run in shown(other)]) == []
    assert read_elsewhere(name, answered("train")) == []


def test_answers_can_be_read_where_windows_overlap():
    assert len(read_elsewhere("train", shown("train"))) > 0.9 * len(gaps("train"))


def test_the_readme_gives_the_numbers_of_gaps_items_and_words():
    sets = [gaps(name) for name in MINIMUM_GAPS]
    train, dev, test = map(len, sets)
    sources = "{}, {} and {} items".format(*(len({gap[0] for gap in name}) for name in sets))
    readme = "\n".join(lines("README.md"))
    assert f"{train}, {dev} and {test} gaps, from {sources}" in readme
    words = round(sum(len(text.split()) for text in items().values()), -2)
    assert f"holds {len(items())} items, some {words:,} words" in readme


@pytest.mark.parametrize("name", MINIMUM_GAPS)
def test_the_gaps_of_a_set(name):
    """Enough lines with the header's columns, contexts of eight words, and a word, not half of one, that fits there."""
    columns, texts, rows = lines("in-header.tsv")[0].split("\t"), items(), gaps(name)
    assert len(rows) >= MINIMUM_GAPS[name]
    assert columns == ["FileId", "Year", "LeftContext", "RightContext"]
    assert {len(fields) - 1 for fields in rows} == {len(columns)}
    for file_id, year, left, right, word in rows:
        assert word.split() == [word]
        assert put_back(left, word, right) in texts[file_id, year]
        assert not left.endswith(r"-\n")
        assert not word.endswith("-")
        assert (len(words_of(left)), len(words_of(right))) == (CONTEXT_WORDS, CONTEXT_WORDS)


@pytest.mark.parametrize("model", MODELS)
def test_an_output_line_is_a_distribution_with_a_rest(model):
    output = lines(f"dev-0/out-model={model}.tsv")
    assert len(output) == len(gaps("dev-0"))
    for n, line in enumerate(output, start=1):
        parsed = parse_line(line, n)
        assert parsed.words[-1] == REST
        assert parsed.values[-1] > 0
        assert len(set(parsed.words)) == len(parsed.words)
        assert sum(Decimal(entry.rpartition(":")[2]) for entry in line.split(" ")) == 1
