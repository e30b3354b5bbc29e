"""A small challenge and outputs for it, the same each time."""

import itertools
import json
import os
import random
import re
import subprocess
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from joserfc import jws
from joserfc.jwk import OKPKey
from sqlalchemy import func, select

from geval_py.board.database.store import Board
from geval_py.board.people import schema as people_schema
from geval_py.board.people.store import accounts_of
from geval_py.board.ranking.disclosure import changing

# Where the two databases differ, in types, locks and errors, a test runs on both without --long too.
ON_BOTH = pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)


def on_both_with(name, values, quick):
    """Test each value on both databases; without --long only the ``quick`` pairs, for tests that take seconds."""
    pairs = [(database, value) for database in ("sqlite", "postgresql") for value in values]
    marked = [pytest.param(*pair, marks=() if pair in quick else pytest.mark.long) for pair in pairs]
    return pytest.mark.parametrize(("database", name), marked, indirect=["database"])


NOW = datetime(2027, 1, 10, 12, tzinfo=UTC)
LINES = 60
WORDS = tuple(f"word{number}" for number in range(30))


def frozen(path, text):
    """What is expected, in a file, of a text; with GEVAL_PY_FREEZE in the environment, the text is written there."""
    if os.environ.get("GEVAL_PY_FREEZE"):
        path.write_text(text, encoding="utf-8")
    return path.read_text(encoding="utf-8")


def files_in(folder):
    """The contents of all files in a folder, by their paths."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def mount(*words):
    """Mount a file system; the test is skipped where that cannot be done."""
    try:
        done = subprocess.run(["mount", *words], check=False, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("there is no mount: a full disk, or one that cannot be written, cannot be tried here")
    if done.returncode:
        pytest.skip(f"a file system cannot be mounted here: {done.stderr.strip()}")


def change(board, operation, *values, moment=NOW, **more):
    """Change a board by an operation, in a transaction."""
    with changing(board, moment) as connection:
        return operation(connection, *values, **more)


def verified(receipt, key):
    """Return what a receipt says; raises BadSignatureError if it was not signed with the public key."""
    return json.loads(jws.deserialize_compact(receipt, OKPKey.import_key(json.loads(key)), ["Ed25519"]).payload)


def rows_of(board, query):
    """The rows of a query to a board or its accounts; of one with a single column its values."""
    of_people = getattr(query.get_final_froms()[0], "metadata", None) is people_schema.METADATA
    store = accounts_of(board).database if of_people else board
    with store.reading() as connection:
        found = connection.execute(query).all()
    return [row[0] if len(row) == 1 else row for row in found]


def count(board, table):
    return rows_of(board, select(func.count()).select_from(table))[0]


def with_settings(board, **changes):
    return replace(board, settings=replace(board.settings, **changes))


def with_limits(board, **limits):
    return with_settings(board, limits=replace(board.settings.limits, **limits))


def states(receipts):
    return [(receipt.submitter, receipt.state) for receipt in receipts]


def set_keys(board, **keys):
    """Change keys of the board.yaml of a board or its folder, each of one line, or add them."""
    path = f"{getattr(board, 'folder', board)}/board.yaml"
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for key in keys:
        text = re.sub(rf"^{key}:.*\n(?: .*\n)*", "", text, flags=re.MULTILINE)
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        file.write(text + "\n" + "".join(f"{key}: {value}\n" for key, value in keys.items()))
    os.replace(f"{path}.new", path)  # at once, as a server may read it meanwhile


def words_of(test):
    """The hidden words of a test set, the same each time."""
    return random.Random(test).choices(WORDS, k=LINES)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def write_answers(folder, words, test="test-A"):
    write(folder / test / "expected.tsv", "".join(f"{word}\n" for word in words))


def write_set(folder, test, *, answers):
    write(folder / test / "in.tsv", "".join(f"left {n}\tright {n}\n" for n in range(LINES)))
    write_answers(answers, words_of(test), test)


def write_challenge(folder):
    """Write the folder ``challenge``, with a public dev-0 and test-A, whose answers are in ``answers``."""
    challenge, answers = folder / "challenge", folder / "answers"
    write(challenge / "README.md", "# Guess the word\n\nA word is missing.\n")
    write(challenge / "config.txt", "--metric PerplexityHashed --metric LikelihoodHashed\n")
    write_set(challenge, "dev-0", answers=challenge)
    write_set(challenge, "test-A", answers=answers)
    return challenge


def without_limits(folder):
    """Change a new board.yaml so that it shows four digits of every score, of any number of submissions a day."""
    path = folder / "board.yaml"
    text, found = re.subn(r"\{disclosed: 2, ladder: true.*\}", "{disclosed: 4}", path.read_text(encoding="utf-8"))
    assert found == 1
    path.write_text(text.replace("submissions_a_day: 1\n", "submissions_a_day: 0\n"), encoding="utf-8")
    return Board.open(folder)


def submission_in(place):
    """Return what makes submissions ``uploads/NAME``: an output a test and variant, and gonito.yaml if it is given."""

    def make(name, skill=0.5, *, seed=0, tests=("test-A",), variants=("",), gonito="", folder="uploads", lines=LINES):
        made = place / folder / name
        for test, (number, variant) in itertools.product(tests, enumerate(variants)):
            file = f"out-{variant}.tsv" if variant else "out.tsv"
            write(made / test / file, output(test, skill, seed + number, lines))
        if gonito:
            write(made / "gonito.yaml", gonito)
        return made

    return make


def output(test, skill, seed=0, lines=LINES):
    """The text of an output: to the right word it gives ``skill``, more or less (0: nothing at all, so infinity)."""
    chance = random.Random(f"{test} {seed}")
    shares = [min(0.98, max(0.0, skill * chance.uniform(0.5, 1.5))) for _ in range(LINES)]
    pairs = itertools.islice(zip(words_of(test), shares, strict=True), lines)
    return "".join(f"{word}:{share:.4f} :{0 if skill == 0 else 1 - share:.4f}\n" for word, share in pairs)


OUT, GOOD = "/upload/out.tsv?test=test-A", output("test-A", 0.5)  # what a server is sent
