"""Copies are found among outputs of real n-gram models, and models that were trained apart are not."""

import json
import math
import random

import numpy as np
import pytest
from gazette import SOURCE
from rows import Rows

from geval_py import Challenge, predict, score_file
from geval_py.board.ranking import likeness
from geval_py.board.ranking.likeness import Likeness, likenesses
from geval_py.modelling.gap_models import NgramGapModel


class Gazette:
    """Outputs for gazette's test-A and their line losses, as PerplexityHashed has them."""

    def __init__(self, folder):
        challenge = Challenge.open(SOURCE)
        self.train, self.items = list(challenge["train"]), list(challenge["test-A"])
        self.folder, self.expected = folder, folder / "expected.tsv"
        self.expected.write_text("".join(f"{item.expected}\n" for item in self.items))

    def output(self, train, order, sides):
        lines = predict(NgramGapModel(300, sides=sides, order=order), self.items, train=train)
        return [[(word, float(p)) for word, _, p in (t.rpartition(":") for t in line.split(" "))] for line in lines]

    def losses(self, output):
        path = self.folder / "out.tsv"
        path.write_text("".join(" ".join(f"{word}:{p:.6g}" for word, p in line) + "\n" for line in output))
        (score,) = score_file(path, self.expected, metric="PerplexityHashed").scores
        return score.statistics.columns[0].tolist()


def scaled(line):
    total = math.fsum(p for _, p in line)
    return [(word, p / total) for word, p in line]


def noisy(share):
    return lambda line, chance, _: scaled([(word, p * math.exp(chance.gauss(0, share))) for word, p in line])


def changed(lines):
    return lambda line, _, number: [("the", 0.5), ("", 0.5)] if number in lines else line


def with_rest(share):
    return lambda line, *_: [(word, p * (1 - share) + (0 if word else share)) for word, p in line]


def smoothed(share):
    return lambda line, *_: [(word, p * (1 - share) + share / len(line)) for word, p in line]


COPIES = {
    "reordered": lambda line, chance, _: chance.sample(line, len(line)),
    "noise of 0.1 %": noisy(0.001), "noise of 5 %": noisy(0.05),
    "a line changed": changed({3}), "five lines changed": changed({3, 30, 60, 90, 120}),
    "5 % to the rest": with_rest(0.05), "20 % to the rest": with_rest(0.2), "2 % to all words": smoothed(0.02),
    "sharpened": lambda line, *_: scaled([(word, p**1.05) for word, p in line]),
}  # fmt: skip


@pytest.fixture(scope="module")
def systems(tmp_path_factory):
    """Line losses by name: of models that were trained apart or are of another kind, and of copies of one of them."""
    gazette = Gazette(tmp_path_factory.mktemp("gazette"))
    halves = gazette.train[: len(gazette.train) // 2], gazette.train[len(gazette.train) // 2 :]
    original = gazette.output(gazette.train, 4, 2)
    outputs = {
        "original": original, "four-grams of one half": gazette.output(halves[0], 4, 2),
        "four-grams of the other half": gazette.output(halves[1], 4, 2),
        "bigrams": gazette.output(gazette.train, 2, 2), "four-grams of the left": gazette.output(gazette.train, 4, 1),
    }  # fmt: skip
    chance = random.Random(8)
    for name, copied in COPIES.items():
        outputs[name] = [copied(line, chance, number) for number, line in enumerate(original)]
    return {name: gazette.losses(output) for name, output in outputs.items()}


def pairs_in(rows):
    with rows.board.reading() as connection:
        return list(likenesses(connection, rows.board.settings))


def alike(systems, folder):
    """The pairs of submitters that are listed, each of which submitted one system."""
    rows = Rows(folder)
    for name, losses in systems.items():
        rows.submit(name, losses)
    return {frozenset((pair.one_submitter, pair.other_submitter)) for pair in pairs_in(rows)}


def test_copies_are_found(systems, tmp_path):
    found = alike(systems, tmp_path)
    assert {name for name in COPIES if {"original", name} not in found} == set()


def test_independent_systems_are_not_accused(systems, tmp_path):
    """Their losses correlate by up to 0.99."""
    honest = {name: losses for name, losses in systems.items() if name not in COPIES}
    assert max(np.corrcoef(list(honest.values()))[np.triu_indices(len(honest), 1)]) > 0.95
    assert alike(honest, tmp_path) == set()


@pytest.mark.parametrize(("one", "other"), [
    ([0.1] * 120 + [3.0] * 3, [0.12] * 118 + [2.0] * 5), ([0.151] * 123, [0.094] * 123), ([0.1, 3.0], [1.0, 2.0]),
], ids=["a frequent word apart", "only the rest", "few lines"])  # fmt: skip
def test_outputs_that_say_little_are_not_copies(one, other, tmp_path):
    """Nearly all losses of each are the same, so they agree by chance."""
    assert alike({"one": one, "other": other}, tmp_path) == set()


def test_equal_outputs_are_alike_whatever_they_say(tmp_path):
    assert alike({"one": [6.9] * 123, "other": [6.9 + 1e-13] * 123}, tmp_path) == {frozenset(("one", "other"))}


def test_outputs_of_different_submitters_alone_are_compared_by_their_order_too(tmp_path):
    losses = [0.1 * line for line in range(40)]
    rows = Rows(tmp_path)
    for name, of in (("ann", losses), ("ann", losses), ("dan", losses[::-1]), ("eve", [loss + 1 for loss in losses])):
        rows.submit(name, of, at=rows.count)
    assert {(one.one_submitter, one.other_submitter, one.same) for one in pairs_in(rows)} == {("eve", "ann", 0)}


def test_right_answers_of_good_systems_are_not_copies(tmp_path):
    """Two classifiers that are right in 95 % of lines agree in 90 %."""
    chance, rows = random.Random(2), Rows(tmp_path, metric="Accuracy")
    for name in ("one", "other"):
        rows.submit(name, [float(chance.random() < 0.05) for _ in range(2000)])
    assert pairs_in(rows) == []


def test_the_same_infinite_losses_are_the_same(tmp_path):
    losses = [math.inf if n % 9 == 0 else 0.1 * n for n in range(120)]
    rows = Rows(tmp_path)
    rows.submit("one", losses)
    rows.submit("other", [*losses[:-1], math.inf], at=1)
    (pair,) = pairs_in(rows)
    assert (pair.one_submitter, pair.same, pair.lines) == ("other", 119, 120)


def test_of_many_lines_some_are_compared(monkeypatch, tmp_path):
    monkeypatch.setattr(likeness, "MAX_LINES", 50)
    chance = random.Random(4)
    losses = [chance.expovariate(0.3) for _ in range(180)]
    rows = Rows(tmp_path)
    rows.submit("one", losses)
    rows.submit("other", losses)
    assert [(pair.same, pair.lines) for pair in pairs_in(rows)] == [(45, 45)]


def test_the_most_alike_come_first(systems, tmp_path):
    rows = Rows(tmp_path)
    for name in ("original", "noise of 5 %", "20 % to the rest"):
        rows.submit(name, systems[name])
    found = pairs_in(rows)
    assert {found[0].one_submitter, found[0].other_submitter} == {"original", "noise of 5 %"}
    assert [pair.same for pair in found] == sorted((pair.same for pair in found), reverse=True)


def test_the_organiser_sees_them_on_the_terminal(tmp_path, geval):
    rows = Rows(tmp_path)
    rows.submit("ann", [0.1 * n for n in range(40)])
    rows.submit("bob", [9.0, *(0.1 * n for n in range(1, 40))], at=1)
    rows.write_settings()
    words = "board", "status", str(tmp_path), "--copies"
    head = "1 pair of very similar outputs of different submitters"
    row = "test-A\t000000000002\tbob\t000000000001\tann\t39 of 40 lines\t0.8536"
    assert geval(*words)[:2] == (0, f"{head}\n\n{row}\n")
    (pair,) = json.loads(geval(*words, "--format", "json")[1])["copies"]
    assert Likeness(**pair).same_lines == "39 of 40 lines"
