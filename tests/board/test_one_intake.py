"""`geval check`, `geval submit` and a board take the same submissions, and refuse the others in the same words."""

import gzip
import random
import re
import tarfile
import zipfile

import pytest
from samples import write

from geval_py import check
from geval_py.board.intake import sandbox
from geval_py.board.operations import creation

LINES = {"test-A": 7, "dev-0": 5}
LFS = b"version https://git-lfs.github.com/spec/v1\n"
GOOD = "the:0.5 of:0.25 :0.25\n"
NAMES = (
    "out.tsv", "out-model=a,k=3.tsv", "out-b.tsv.gz", "out.jsonl", "out-c.csv", "output.tsv", "OUT.tsv", "out.txt",
    "predictions.tsv", "out-d.xml", "notes.txt",
)  # fmt: skip
PLACES = ("test-A/", "dev-0/", "", "Test-A/", "testA/", "test-B/", "train/", "results/", "test-A/more/")
LINES_THAT_ARE_WRONG = (
    "the:0,5 :0.5\n", "\n", "the 0.5\n", "the:0.5  :0.5\n", "the:120 of:60\n", "the:1e999 :1\n", "a b\n",
)  # fmt: skip
GONITO = (
    b"description: mine\n", b"tags: a, b\n", b"links:\n- repo: https://example.org\n", b"description: mod\xe8le\n", b"[1\n",
    b"params: {k: 3}\n",
)  # fmt: skip


def output(chance, name, test):
    """The bytes of an output of a name: of the right number of lines or not, and with malformed lines or not."""
    number = LINES.get(test, 7) + chance.choice((0, 0, 0, 0, 0, -1, 1, -4))
    lines = [GOOD] * number
    if chance.random() < 0.25 and lines:
        lines[chance.randrange(len(lines))] = chance.choice(LINES_THAT_ARE_WRONG)
    if name.endswith("jsonl"):
        lines = ['{"probabilities": {"the": 0.5, "": 0.5}}\n'] * number
    if name.endswith("csv"):
        lines = ["guess\n", *lines]
    data = "".join(lines).encode()
    if chance.random() < 0.05:
        data = chance.choice((b"", b"\x89PNG\r\n\x1a\n\0\0", LFS, data[:-1]))
    if name.endswith(".gz"):
        data = gzip.compress(data, mtime=0)[: -3 if chance.random() < 0.2 else None]
    return data


def submission(seed):
    chance, members = random.Random(seed), {}
    if chance.random() < 0.8:
        members["test-A/out.tsv"] = output(chance, "out.tsv", "test-A")
    for _ in range(chance.randrange(3)):
        place, name = chance.choice(PLACES), chance.choice(NAMES)
        members[place + name] = output(chance, name, place.rstrip("/"))
    if chance.random() < 0.3:
        members["gonito.yaml"] = chance.choice(GONITO)
    if chance.random() < 0.3:
        members["README.md"] = b"notes\n"
    return members


def packed(folder, members, around=""):
    """The folder, the zip and the tar of some members; the archives may have one more folder around all."""
    root = folder / "team"
    root.mkdir(parents=True)
    for name, data in members.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    with zipfile.ZipFile(folder / "team.zip", "w") as archive:
        for name, data in members.items():
            archive.writestr(around + name, data)
    with tarfile.open(folder / "team.tar.gz", "w:gz") as archive:
        for name in members:
            archive.add(root / name, around + name)
    return root, folder / "team.zip", folder / "team.tar.gz"


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    """A board whose hidden answers are those of test-A; those of dev-0 are public."""
    folder = tmp_path_factory.mktemp("agreement")
    challenge, answers = folder / "challenge", folder / "answers"
    for test, place in (("test-A", answers), ("dev-0", challenge)):
        write(challenge / test / "in.tsv", "a left\ta right\n" * LINES[test])
        write(place / test / "expected.tsv", "the\n" * LINES[test])
    write(challenge / "config.txt", "--metric PerplexityHashed\n")
    write(challenge / "README.md", "# A challenge\n")
    return creation.create(folder / "board", challenge=challenge, answers=answers)


def sentence(text):
    return re.sub(r"(the output has \d+ lines? for \d+ items?).*", r"\1", text)


@pytest.mark.slow
@pytest.mark.parametrize("start", [0, *(pytest.param(start, marks=pytest.mark.long) for start in range(20, 200, 20))])
def test_check_submit_and_the_board_agree(board, geval, tmp_path, start):
    settings, seen = board.settings, set()
    for seed in range(start, start + 20):
        forms = packed(tmp_path / str(seed), submission(seed), "" if seed % 2 else "team/")
        for source in forms:
            place = tmp_path / f"{seed}.{source.name}"
            place.mkdir()
            result = sandbox.process_source(str(source), str(place), settings, [settings.metric])
            wrong = [one for one in result.problems if one["severity"] == "error"]
            errors = [(one["rule"], one["path"], sentence(one["summary"])) for one in wrong]
            report = check(source, challenge=settings.challenge)
            wrong = [one for one in report.problems if one.rule.severity == "error"]
            checked = [(one.rule.code, one.path.removeprefix(f"{source}/"), sentence(one.summary)) for one in wrong]
            where = f"{seed} {source}"
            if result.state == "rejected" and not errors:
                assert [(code, text) for code, _, text in checked] == [("E101", result.reason)], where
            else:
                assert (checked, report.status) == (errors, int(result.state != "scored")), where
            if result.parcel is not None:
                notes = {problem["summary"] for problem in result.problems if problem["rule"] == "note"}
                assert notes == {note.partition(": ")[2] for note in report.notes if note.startswith(f"{source}: ")}
            archive = place / "sent.zip"
            status, _, err = geval("submit", str(source), "--challenge", settings.challenge, "--pack", str(archive))
            assert (status, archive.exists()) == (report.status, not report.status), where
            assert all(text.split("; ")[0] in err for _, _, text in checked), where
            if not status:
                again = tmp_path / f"{seed}.{source.name}.again"
                again.mkdir()
                result = sandbox.process_source(str(archive), str(again), settings, [settings.metric])
                assert result.state == "scored", where
            seen.add(result.state)
    assert seen == {"scored", "rejected"}
