"""Places, groups and intervals by the documents that board.yaml names or the challenge declares."""

import json
from array import array
from itertools import combinations

import numpy as np
import pytest
from rows import Rows
from samples import set_keys, write
from story import Story

from geval_py import compare, evaluate
from geval_py.board.database.schema import evaluations
from geval_py.board.submission import pack

DOCUMENTS, LINES = 40, 15  # and lines of each


def systems(rng, count, gains=()):
    """Losses of systems on hard and easy documents, with a design effect of 2.2 in their differences, less ``gains``."""
    of_line, shared = np.repeat(np.arange(DOCUMENTS), LINES), 1.2 / (LINES - 1)
    hard = rng.gamma(2, 0.85, len(of_line)) + 3 + 0.5 * rng.normal(size=DOCUMENTS)[of_line]
    for n in range(count):
        own = np.sqrt(shared) * rng.normal(size=DOCUMENTS)[of_line] + np.sqrt(1 - shared) * rng.normal(size=len(hard))
        yield np.maximum(0.01, hard + 0.4 * own - (gains[n] if n < len(gains) else 0.0))


@pytest.mark.long
def test_equal_systems_rarely_have_a_range_of_their_own(tmp_path):
    """Ten systems; by line, some are told apart on about half of the boards."""
    rng, packed, told = np.random.default_rng(1), pack([array("d", np.repeat(np.arange(DOCUMENTS), LINES))]), [0, 0]
    boards = 200
    for board in range(boards):
        (tmp_path / str(board)).mkdir()
        rows = Rows(tmp_path / str(board), tests="{test-A: {disclosed: 6}}")
        for n, losses in enumerate(systems(rng, 10)):
            rows.submit(f"s{n}", losses.tolist())
        for kind, documents in enumerate((packed, None)):
            rows.run(evaluations.update().values(documents=documents))
            rows.edit(seed=str(board + kind * boards))  # which makes the comparisons anew
            told[kind] += any((entry.first, entry.last) != (1, 10) for entry in rows.standings().entries)
    print(f"\nfalse ranges on {told[0]} of {boards} boards, by line on {told[1]}")
    assert told[0] / boards <= 0.065 + 3.1 * (0.065 * 0.935 / boards) ** 0.5
    assert told[1] / boards >= 0.2


@pytest.fixture
def opened(tmp_path):
    def make(losses, config="", tests="", board="board"):
        folder = tmp_path / board
        for place in ("challenge", "answers"):
            write(folder / place / "config.txt", f"--metric PerplexityHashed --in-header in-header.tsv{config}\n")
            write(folder / place / "in-header.tsv", "Chapter\tText\n")
            lines = (f"c{n // LINES}\ttext {n}\n" for n in range(DOCUMENTS * LINES))
            write(folder / place / "test-A/in.tsv", "".join(lines))
        write(folder / "challenge/README.md", "Guess\n=====\n")
        write(folder / "answers/test-A/expected.tsv", "a\n" * DOCUMENTS * LINES)
        for n, values in enumerate(losses):
            lines = (f"a:{share!r} b:{1 - share!r}\n" for share in np.exp(-values).tolist())
            write(folder / f"uploads/s{n}/test-A/out.tsv", "".join(lines))
        story = Story(folder)
        story.fine("init", folder / "board", "--challenge", folder / "challenge", "--answers", folder / "answers")
        keys = {"tests": f"{{test-A: {{disclosed: 6{tests}}}}}", "seed": 40627719283, "submissions_a_day": 0}
        set_keys(folder / "board", **keys)
        return story

    return make


def entries(story):
    story.fine("add", story.folder / "board", *sorted((story.folder / "uploads").iterdir()))
    return json.loads(story.fine("show", story.folder / "board", "--format", "json"))["entries"]


def compared(story):
    paths = sorted((story.folder / "uploads").glob("*/test-A/out.tsv"))
    results = [evaluate(story.folder / "answers", "test-A", output=path) for path in paths]
    config = (story.folder / "answers/config.txt").read_text()
    return compare(results, documents=None if "--documents" in config else False)


@pytest.mark.slow
@pytest.mark.parametrize("config", ["", " --documents Chapter"], ids=["by line", "by document"])
@pytest.mark.parametrize("board", [*range(2), *(pytest.param(n, marks=pytest.mark.long) for n in range(2, 20))])
def test_the_board_and_compare_agree_on_every_pair(board, config, opened):
    rng = np.random.default_rng(board)
    story = opened(systems(rng, 6, rng.choice([0.0, 0.05, 0.1, 0.15], 6)), config)
    shown, comparison = entries(story), compared(story)
    assert comparison.documents == ("Chapter" if config else None)
    groups = [set(group) for group in comparison.groups]
    names = [system.name for system in comparison.systems]
    for a, b in combinations(range(6), 2):
        together = bool({*shown[a]["groups"]} & {*shown[b]["groups"]})
        assert together == any({names[a], names[b]} <= group for group in groups)
    for entry, system in zip(shown, comparison.systems, strict=True):
        assert entry["score"] == pytest.approx(system.score, rel=1e-5)
        assert entry["low"] == pytest.approx(system.interval.low, rel=1e-2)
        assert entry["high"] == pytest.approx(system.interval.high, rel=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize("split", ["", ", split: 40 %"], ids=["whole", "public part"])
def test_board_yaml_names_the_documents(split, opened):
    """As where the challenge declares them; the public part has fewer documents, and wider intervals."""
    losses = [*systems(np.random.default_rng(1), 3, [0.1])]
    declared = entries(opened(losses, " --documents Chapter", tests=split, board="declared"))
    named = entries(opened(losses, tests=f"{split}, documents: Chapter", board="named"))
    by_line = entries(opened(losses, tests=split, board="by-line"))

    def figures(shown):
        return [(entry["score"], entry["low"], entry["high"], entry["groups"]) for entry in shown]

    assert figures(declared) == figures(named)
    for one, other in zip(named, by_line, strict=True):
        assert split or one["score"] == other["score"]  # the public part has other lines
        assert one["high"] - one["low"] > 1.1 * (other["high"] - other["low"])


def test_a_board_without_an_input_is_by_line(opened):
    story = opened([*systems(np.random.default_rng(1), 2)], " --documents Chapter")
    for folder in ("challenge", "answers"):
        (story.folder / folder / "test-A/in.tsv").unlink()
    by_line = opened([*systems(np.random.default_rng(1), 2)], board="by-line")
    assert [entry["low"] for entry in entries(story)] == [entry["low"] for entry in entries(by_line)]


def test_a_column_that_is_declared_later_makes_scores_anew(opened):
    losses = [*systems(np.random.default_rng(1), 2)]
    story = opened(losses)
    before = entries(story)
    for folder in ("challenge", "answers"):
        with (story.folder / folder / "config.txt").open("a") as file:
            file.write("--documents Chapter\n")
    story.fine("rescore", story.folder / "board")
    after = json.loads(story.fine("show", story.folder / "board", "--format", "json"))["entries"]
    assert after[0]["high"] - after[0]["low"] > 1.1 * (before[0]["high"] - before[0]["low"])
