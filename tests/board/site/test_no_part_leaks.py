"""Nothing of the private part of a test is shown before the deadline, in no byte; and the scores of parts are right."""

import json
import random
from datetime import UTC, datetime
from functools import partial

import pytest
from samples import LINES, WORDS, files_in, output, set_keys, words_of, write, write_answers, write_challenge
from story import Story, set_clock

from geval_py.board.ranking.parts import public_lines

pytestmark = pytest.mark.no_cover
BEFORE, AFTER = datetime(2027, 1, 20, tzinfo=UTC), datetime(2027, 2, 2, tzinfo=UTC)
SEED, SHARE, DOCUMENT = 728190312, 0.3, 3
TEST = "test-A"
TESTS = "{test-A: {split: 30 %, documents: 1, disclosed: 6"
SETTINGS = {
    "phases": "[{name: dev, until: 2027-01-10T00:00:00Z}, {name: final, until: 2027-02-01T00:00:00Z}]",
    "submissions_a_day": 9, "finals": 2, "also": "[LikelihoodHashed]", "seed": SEED, "samples": 200,
}  # fmt: skip


@pytest.fixture
def at(monkeypatch):
    set_clock(monkeypatch, BEFORE)
    return partial(set_clock, monkeypatch)


def new_board(folder, answers=None, *, ladder="false"):
    """A board of a challenge of 60 lines in 20 documents; gives its story."""
    challenge, story = write_challenge(folder), Story(folder)
    lines = "".join(f"file {n // DOCUMENT}\tleft {n}\tright {n}\n" for n in range(LINES))
    write(challenge / TEST / "in.tsv", lines)
    correct(folder, answers or {})
    story.fine("init", folder / "board", "--challenge", challenge, "--answers", folder / "answers")
    set_keys(folder / "board", tests=f"{TESTS}, ladder: {ladder}}}, dev-0: {{visible: true}}}}", **SETTINGS)
    return story


def correct(folder, answers):
    write_answers(folder / "answers", [answers.get(place, word) for place, word in enumerate(words_of(TEST))])


def places_of_parts():
    documents = [str(line // DOCUMENT) for line in range(LINES)]
    public = public_lines(documents, SHARE, f"{SEED} {TEST}")
    return public, frozenset(range(LINES)) - public


def others(places, seed=0):
    chance, words = random.Random(seed), words_of(TEST)
    return {place: chance.choice([word for word in WORDS if word != words[place]]) for place in sorted(places)}


def use(story):
    """Send submissions in both phases: good, better, worse than nothing, malformed, with variants, a baseline."""
    folder = story.folder
    sent = [("ann", 8, 0.3), ("bob", 9, 0.4), ("ann", 12, 0.3), ("ann", 13, 0.5), ("ann", 14, 0.55), ("bob", 12, 0.4)]
    for seed, (name, day, skill) in enumerate([*sent, ("bob", 13, 0.2), ("eve", 12, 0.0), ("eve", 13, 0.6)]):
        own = write_output(folder / f"{name}{day}", output(TEST, skill, seed))
        story("add", folder / "board", own, "--submitter", name, "--at", f"2027-01-{day:02}T12:00:00Z")
    for number, variant in enumerate(("k=1", "k=2")):
        write(folder / f"two/{TEST}/out-{variant}.tsv", output(TEST, 0.4, 50 + number))
    story("add", folder / "board", folder / "two", "--at", "2027-01-19T12:00:00Z")
    bad = write_output(folder / "bad", output(TEST, 0.4, 60).replace(":0.", ":0,", 1))
    story("add", folder / "board", bad, "--at", "2027-01-19T13:00:00Z", "--format", "json")
    base = write_output(folder / "base", ":1\n" * LINES)
    story("add", folder / "board", base, "--at", "2027-01-19T14:00:00Z", "--baseline")
    status = json.loads(story("status", folder / "board", "--format", "json")[1])
    codes = [line["code"] for line in status["submissions"]]
    story("final", folder / "board", *codes[-6:-4])
    story("final", folder / "board", codes[0])
    story("withdraw", folder / "board", codes[3], "--reason", "asked for")
    story("note", folder / "board", codes[4], "late")


def write_output(folder, text):
    write(folder / TEST / "out.tsv", text)
    return folder


def published(story):
    """All that is shown: what the commands print, the bytes of the site."""
    board, found = story.folder / "board", {}
    for phase in ("dev", "final"):
        for form, by in (("csv", "submitter"), ("text", "submission"), ("json", "submission")):
            found[phase, form, by] = story("show", board, "--phase", phase, "--format", form, "--by", by)
    story.fine("site", board, "-o", story.folder / "site")
    return found | files_in(story.folder / "site")


def names_of_differences(one, other):
    return {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}


@pytest.mark.slow
@pytest.mark.parametrize("ladder", ["true", pytest.param("false", marks=pytest.mark.long)])
def test_no_byte_depends_on_a_private_answer_before_the_deadline(ladder, tmp_path, at):
    one = new_board(tmp_path / "one", ladder=ladder)
    _, private = places_of_parts()
    other = new_board(tmp_path / "other", others(private), ladder=ladder)
    for story in (one, other):
        use(story)
    said = [[text.replace(str(story.folder), "") for text in story.said] for story in (one, other)]
    assert said[0] == said[1]
    assert names_of_differences(published(one), published(other)) == set()
    at(AFTER)
    changed = names_of_differences(published(one), published(other))
    assert ("final", "csv", "submitter") in changed
    assert ("dev", "csv", "submitter") not in changed


@pytest.mark.slow
def test_a_corrected_private_answer_changes_no_byte_before_the_deadline(tmp_path, at):
    story = new_board(tmp_path)
    use(story)
    public, private = places_of_parts()
    before = published(story)
    correct(tmp_path, others(private))
    assert story.fine("rescore", tmp_path / "board", "--dry-run").splitlines()[-1] == "no place would change"
    assert story.fine("rescore", tmp_path / "board").splitlines()[-1] == "no place changed"
    assert names_of_differences(before, published(story)) == set()
    correct(tmp_path, others(private) | others(public))
    story.fine("rescore", tmp_path / "board")
    assert ("final", "csv", "submitter") in names_of_differences(before, published(story))
