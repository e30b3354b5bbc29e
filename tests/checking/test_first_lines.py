"""What the first lines show of the whole file: vectors in a wrong unit or of wrong seeds, tags cut off, columns, headers."""

from math import log

import mmh3
import pytest

from geval_py import check
from geval_py.cli import main

ANSWERS = ["the", "of", "and", "to", "in", "a", "is", "was"]
BITS, SHARE = 4, 0.5  # of the mass, for the bucket of the answer; the rest is even


@pytest.fixture
def submission(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dev-0").mkdir()

    def write(metric, output, answers=ANSWERS):
        (tmp_path / "config.txt").write_text(f"--metric {metric}\n")
        (tmp_path / "dev-0/in.tsv").write_text("left\tright\n" * len(answers))
        (tmp_path / "dev-0/expected.tsv").write_text("".join(f"{answer}\n" for answer in answers))
        (tmp_path / "dev-0/out.tsv").write_text("".join(f"{line}\n" for line in output))

    return write


def vectors(unit=lambda value: value, seed_of=lambda line: line):
    """Vectors with the most mass in the bucket of the answer, in a unit of logarithms, hashed by some seeds."""
    for line, answer in enumerate(ANSWERS, 1):
        bucket = mmh3.hash(answer, seed_of(line), signed=False) % (1 << BITS)
        masses = [(1 - SHARE) / (1 << BITS) + SHARE * (bucket == place) for place in range(1 << BITS)]
        yield " ".join(f"{unit(log(mass)):.6f}" for mass in masses)


def problems():
    return {problem.rule.code: problem for problem in check(".").problems}


def note(capsys):
    main(["-t", "dev-0"])
    return capsys.readouterr().err.removeprefix("geval: note: `./dev-0/out.tsv`: ").split("\n")[0]


def test_vectors_that_are_right(submission, capsys):
    submission("PerplexityHashed4", vectors())
    assert (problems(), note(capsys)) == ({}, "")


BASE_2 = "the numbers look like logarithms to base 2: multiply each by 0.693147 (ln 2)"
FAR = "8 of 8 lines have numbers that are neither probabilities nor their logarithms"
UNITS = {  # of the vector: the rule, its summary, its fix
    "base 2": (lambda value: value / log(2), "W223", BASE_2, "multiply each number by 0.693147 (ln 2)"),
    "base 10": (lambda value: value / log(10), "E119", FAR,
        "they look like logarithms to base 10: multiply each by 2.302585 (ln 10)"),
    "negated": (lambda value: -value, "E119", FAR, "they look like negative logarithms: write a minus before each"),
}  # fmt: skip


@pytest.mark.parametrize(("unit", "code", "summary", "fix"), UNITS.values(), ids=UNITS)
def test_the_unit_of_a_vector(unit, code, summary, fix, submission, capsys):
    submission("PerplexityHashed4", vectors(unit))
    assert set(problems()) == {code}
    problem = problems()[code]
    assert (problem.summary, (problem.fix or problem.rule.fix).lower()) == (summary, f"{fix}.".lower())
    assert note(capsys) == (summary if code == "W223" else f"{summary}; {fix}")


OF_THE_HASH = "the seed of the hash is the line's number, from 1 on"
SEEDS = {
    "lines from 0": (lambda line: line - 1, f"the vectors fit line numbers from 0 on: {OF_THE_HASH}"),
    "the same seed": (lambda _: 42, f"the vectors fit the seed 42 on all lines: {OF_THE_HASH}"),
}


@pytest.mark.parametrize(("seed_of", "message"), SEEDS.values(), ids=SEEDS)
def test_the_seed_of_a_vector(seed_of, message, submission, capsys):
    submission("PerplexityHashed4", vectors(seed_of=seed_of))
    assert problems()["W306"].summary == message
    assert note(capsys) == message


TAGS = "O B-PER I-PER O O"


@pytest.mark.parametrize(("metric", "code"), [
    ("BIO-F1", "W224"), ("BIO-F1-Labels", "W224"), ("BIO-Weighted-F1", "W224"), ("TokenAccuracy", "E117"),
])  # fmt: skip
@pytest.mark.parametrize("tags", ["O B-PER I-PER", f"{TAGS} O"], ids=["cut off", "one more"])
def test_the_number_of_tags(metric, code, tags, submission):
    submission(metric, [TAGS, tags], [TAGS, TAGS])
    (problem,) = problems().values()
    number = len(tags.split())
    assert problem.rule.code == code
    assert [(place.line, place.message) for place in problem.places] == [
        (2, f"5 tags are expected here, and there are {number}")
    ]
    assert "PerplexityHashed" not in problem.fix
    assert (main(["-t", "dev-0"]) == 0) == (code == "W224")


@pytest.mark.parametrize(("answer", "message"), [
    ("0.5\t0.1", "RMSE reads the first of 2 columns; the others are not compared"),
    ("0.0\t0.66\t0.0\t0.16", "RMSE reads the first of 4 columns; the others are not compared"),
    ("0.5", ""),
])  # fmt: skip
def test_columns_that_are_not_compared(answer, message, submission, capsys):
    submission("RMSE", ["0.5\t9"] * 2, [answer] * 2)
    assert [problem.summary for problem in problems().values()] == [message] * bool(message)
    assert note(capsys) == message


def test_an_answer_that_looks_like_a_header(submission):
    submission("Accuracy", ["S", "S"], ["label", "S", "P"])
    summary = problems()["E103"].summary
    assert summary == (
        "the output has 2 lines for 3 items; `label`, the first answer, looks like a header: move the headers to "
        "in-header.tsv and out-header.tsv"
    )
    submission("Accuracy", ["S", "S"], ["P", "S", "P"])
    assert problems()["E103"].summary == "the output has 2 lines for 3 items"
