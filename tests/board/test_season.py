"""A season of twelve teams: two phases with their own settings, a private part that decides, final submissions.

All is done by the command line, on SQLite and with --long on PostgreSQL; what it must print is in expected/season-*.
"""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest
from samples import LINES, WORDS, frozen, output, words_of, write, write_challenge
from story import Story, set_clock

from geval_py.board.ranking.parts import public_lines

EXPECTED = Path(__file__).with_name("expected")
TEAMS = [f"team{number:02}" for number in range(1, 13)]
TEST, DOCUMENT, SEED = "test-A", 3, 40627719283
FIRST_DAY, SECOND_DAY = "2027-01-15T12:00:00Z", "2027-01-16T12:00:00Z"
OPEN, OVER = datetime(2027, 1, 20, tzinfo=UTC), datetime(2027, 2, 2, tzinfo=UTC)
SETTINGS = {
    "tests": "{dev-0: {visible: true}, test-A: {split: 40 %, documents: 1, disclosed: 3, ladder: true, step: 0.02}}",
    "phases": "[{name: dev, until: 2027-01-10T00:00:00Z, tests: [dev-0], submissions_a_day: 4, variants: 3, "
    "disclosed: 5}, {name: final, until: 2027-02-01T00:00:00Z, tests: [test-A], submissions_a_day: 1, variants: 1}]",
    "finals": 2,
    "also": "[]",
    "seed": SEED,
    "samples": 500,
}
STEPS = ("dev", "public", "refused", "final", "status", "private", "dry-run", "corrected")


class Told(NamedTuple):
    """A season that is over: its folder, and what each step printed."""

    folder: Path
    said: dict[str, str]


def set_settings(path):
    """Put the keys of the season into a new board.yaml; each of them is one line, but for the tests."""
    text = path.read_text(encoding="utf-8")
    head, _, rest = text.partition("\ntests:\n")
    lines = [*head.splitlines(), "tests:", *rest[rest.index("\n\n") :].splitlines()]
    for key, value in SETTINGS.items():
        lines = [f"{key}: {value}" if line.startswith(f"{key}:") else line for line in lines]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def upload(folder):
    """Three folders: of the phase of development, where one team has too many variants, and of two days of the last."""
    for number, team in enumerate(TEAMS):
        skill = 0.2 + 0.03 * number
        for variant in range(1 + number % 2 if number < len(TEAMS) - 1 else 4):
            text = output("dev-0", skill, 1000 * variant + number)
            write(folder / "dev" / team / f"dev-0/out-k={variant}.tsv", text)
        for day, gain in (("first", 0.0), ("second", 0.06 * (number % 4) - 0.03)):
            write(folder / day / team / TEST / "out.tsv", output(TEST, skill + gain, len(day) * 100 + number))
    return folder


def tell(folder, database, patch):
    """Run all commands of the season."""
    challenge, story, said = write_challenge(folder), Story(folder), {}
    lines = "".join(f"file {n // DOCUMENT}\tleft {n}\tright {n}\n" for n in range(LINES))
    write(challenge / TEST / "in.tsv", lines)
    board, uploads = folder / "board", upload(folder / "uploads")
    set_clock(patch, OPEN)
    story.fine("init", board, "--challenge", challenge, "--answers", folder / "answers", "--database", database)
    set_settings(board / "board.yaml")
    story.fine("scan", board, uploads / "dev", "--at", "2027-01-05T12:00:00Z")
    for day, at in (("first", FIRST_DAY), ("second", SECOND_DAY)):
        story.fine("scan", board, uploads / day, "--at", at)
    said["dev"] = story.fine("show", board, "--phase", "dev")
    said["public"] = story.fine("show", board)
    write(folder / "third" / TEST / "out.tsv", output(TEST, 0.9))
    said["refused"] = story("add", board, folder / "third", "--submitter", "team07", "--at", SECOND_DAY)[2]
    finals = _name_finals(story, board, said)
    set_clock(patch, OVER)
    said["refused"] += story("final", board, finals[TEAMS[-1]][0])[2]
    said["private"] = story.fine("show", board)
    _correct(story, board, said)
    return Told(folder, said)


def _codes(story, board):
    """The codes of the submissions to the last phase, by team, in order of arrival."""
    found = {}
    for line in json.loads(story.fine("status", board, "--format", "json"))["submissions"]:
        if line["phase"] == "final":
            found.setdefault(line["submitter"], []).append(line["code"])
    return found


def _name_finals(story, board, said):
    """A third of the teams name both, a third the first submission, and a third nothing: then both count."""
    codes = _codes(story, board)
    finals = {team: codes[team][: 1 + (number % 3 != 1)] for number, team in enumerate(TEAMS)}
    named = [code for number, team in enumerate(TEAMS) if number % 3 for code in finals[team]]
    said["final"] = story.fine("final", board, *named, "--format", "csv")
    story.fine("final", board, *codes["team02"], "--undo")
    story.fine("final", board, codes["team02"][0])
    said["status"] = story.fine("status", board)
    return finals


def _correct(story, board, said):
    """Correct two answers, one of each part."""
    public, private = places()
    words = words_of(TEST)
    for place in (min(public), min(private)):
        words[place] = next(word for word in WORDS if word != words[place])
    write(story.folder / "answers" / TEST / "expected.tsv", "".join(f"{word}\n" for word in words))
    said["dry-run"] = story.fine("rescore", board, "--dry-run")
    story.fine("rescore", board)
    said["corrected"] = story.fine("show", board)


def places():
    """The places of the public and of the private lines."""
    documents = [str(line // DOCUMENT) for line in range(LINES)]
    public = public_lines(documents, 0.4, f"{SEED} {TEST}")
    return public, frozenset(range(LINES)) - public


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def told(request, tmp_path_factory):
    place = "board.sqlite"
    if request.param == "postgresql":
        place = request.getfixturevalue("postgresql").new_database()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("GEVAL_BOARD_DATABASE", raising=False)
        yield tell(tmp_path_factory.mktemp("season"), place, patch)


@pytest.mark.parametrize("step", STEPS)
def test_the_board_says_what_is_expected(told, step):
    assert told.said[step] == frozen(EXPECTED / f"season-{step}.txt", told.said[step])
