"""Lines that are not in their places: ``geval check`` and the notes on scores say the same."""

import random
from pathlib import Path

import pytest

from geval_py import evaluate
from geval_py.checking.check import check

ROOT = Path(__file__).parents[2]
LINES = 240
RANDOM = random.Random(0)
WORDS = [RANDOM.choice(["mule", "Ferry", "salt", "orchard", "copper", "lantern"]) + str(n % 40) for n in range(LINES)]
RIGHT = [f"{word if RANDOM.random() < 0.5 else RANDOM.choice(WORDS)}:0.5 :0.5" for word in WORDS]
SHIFTED = "the lines are shifted by {}: line {} fits the answer of line {}"
FAULTS = {
    "right": (RIGHT, ""), "one guess": (["the:0.1 :0.9"] * LINES, ""),
    "frequencies with noise": ([f"{WORDS[0]}:0.01 mule:0.0{n} :0.9" for n in range(1, 1 + LINES)], ""),
    "beyond the sample": ([*RIGHT[:200], *RIGHT[:199:-1]], ""),
    "the first line is missing": ([*RIGHT[1:], RIGHT[-1]], SHIFTED.format(1, 1, 2)),
    "three are missing": ([*RIGHT[3:], *RIGHT[:3]], SHIFTED.format(3, 1, 4)),
    "a line too early": ([":1", *RIGHT[:-1]], SHIFTED.format(1, 2, 1)),
    "two lines too early": ([":1", ":1", *RIGHT[:-2]], SHIFTED.format(2, 3, 1)),
    "a line is missing later": ([*RIGHT[:45], *RIGHT[46:150], RIGHT[0], *RIGHT[150:]], SHIFTED.format(1, 51, 52)),
    "reversed": (RIGHT[::-1], "the lines are in reverse order"),
    **{f"{n} workers": ([line for worker in range(n) for line in RIGHT[worker::n]],
        f"the lines of {n} workers follow one worker after the other, and belong in turns") for n in (2, 4, 8)},
    "a batch twice": ([*RIGHT[:32], *RIGHT[16:32], *RIGHT[48:]], "lines 33 to 48 repeat lines 17 to 32"),
    "half of the sample twice": ([*RIGHT[:100] * 2, *RIGHT[200:]], "lines 101 to 200 repeat lines 1 to 100"),
    "half of the output twice": (RIGHT[:120] * 2, "lines 121 to 240 repeat lines 1 to 120"),
    "a batch's rest, after the sample": ([*RIGHT[:220], *RIGHT[200:220]], "lines 221 to 240 repeat lines 201 to 220"),
    "halves exchanged": ([*RIGHT[120:], *RIGHT[:120]], "the two halves of the lines are exchanged"),
    "sorted": (sorted(RIGHT), "the lines are sorted"),
    "sorted by its language": (sorted(RIGHT, key=str.lower), "the lines are sorted"),
    "one guess for a batch": ([RIGHT[n - n % 12] for n in range(LINES)],
        "every 12 lines have the same guess, as if the first of a batch was written for all"),
    "the answers": ([f"{word}:1" for word in WORDS], "the first 200 lines are the answers themselves"),
    "the answers alone": (WORDS, "the first 200 lines are the answers themselves"),
}  # fmt: skip


def written(folder, lines, answers, metric="PerplexityHashed"):
    (folder / "dev-0").mkdir()
    (folder / "config.txt").write_text(f"--metric {metric}\n")
    for name, content in (("out", lines), ("expected", answers), ("in", ["x"] * len(answers))):
        (folder / f"dev-0/{name}.tsv").write_text("".join(f"{line}\n" for line in content))
    return folder


def misplaced(folder):
    """What the checker and the notes on the score say of the places of lines."""
    return [problem.summary for problem in check(folder).problems if problem.rule.code == "W305"]


def noted(folder):
    return [note.partition(": ")[2] for note in evaluate(folder, "dev-0").notes]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("lines", "sentence"), FAULTS.values(), ids=FAULTS)
def test_both_say_where_lines_belong(lines, sentence, tmp_path):
    folder = written(tmp_path, lines, WORDS)
    assert misplaced(folder) == [sentence] * bool(sentence)
    if lines is WORDS:  # which cannot be scored
        return
    notes = noted(folder)
    assert notes == [sentence] if sentence else not any("lines are" in note for note in notes)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("metric", ["Accuracy", "LogLoss", "MRR"])
def test_of_other_metrics(metric, tmp_path):
    labels = WORDS if metric == "Accuracy" else [f"{word}:0.9 :0.1" for word in WORDS]
    folder = written(tmp_path, [*labels[1:], labels[0]], WORDS, metric)
    sentence = "the lines are shifted by 1: line 1 fits the answer of line 2"
    assert misplaced(folder) == [sentence]
    assert sentence in noted(folder)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("lines", "cause"), [
    ([line.replace("0.5", "0.9999", 1).replace(":0.5", ":0.0001") for line in RIGHT], "{} of the first 100 guesses are right, but too sure: leave more for the rest"),
    ([f"no{word}:0.9 :0.1" for word in WORDS], "the lines may have another order than in.tsv, or words unlike the answers"),
])  # fmt: skip
def test_causes_of_a_score_worse_than_no_guess(lines, cause, tmp_path):
    folder = written(tmp_path, lines, WORDS)
    hits = sum(line.startswith(f"{word}:") for line, word in list(zip(lines, WORDS, strict=True))[:100])
    cause = cause.format(hits)
    (problem,) = check(folder).problems
    assert problem.summary == f"the score is worse than with `:1` (no guess) on each line; {cause}"
    assert noted(folder)[0].endswith(f": no guess at all would be better\n  {cause}: see geval check")


@pytest.mark.parametrize("output", sorted(ROOT.glob("challenges/*/*/out*.tsv")), ids=lambda path: path.name)
def test_the_samples_are_in_order(output):
    if (output.parent / "expected.tsv").exists():
        assert not any(problem.rule.code == "W305" for problem in check(output).problems)


def test_notes_of_several_kinds_are_not_taken_for_one(tmp_path, geval, monkeypatch):
    monkeypatch.chdir(written(tmp_path, RIGHT, WORDS))
    for name, lines in (("1", [*RIGHT[1:], ":1"]), ("2", RIGHT[::-1]), ("3", RIGHT[::-1]), ("4", RIGHT[::-1])):
        (tmp_path / f"dev-0/out-n={name}.tsv").write_text("".join(f"{line}\n" for line in lines))
    (tmp_path / "dev-0/out.tsv").unlink()
    assert geval("-t", "dev-0")[2] == (
        "geval: note: `./dev-0/out-n=1.tsv`: the lines are shifted by 1: line 1 fits the answer of line 2\n"
        "geval: note: `./dev-0/out-n=2.tsv`: the lines are in reverse order\n"
        "  likewise `./dev-0/out-n=3.tsv`, `./dev-0/out-n=4.tsv`\n"
    )
