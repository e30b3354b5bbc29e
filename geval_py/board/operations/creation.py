"""``geval board init``: a new board, its board.yaml with a comment for every key, and its database."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING

import yaml
from sqlalchemy import inspect, text

from geval_py.board.database.store import SETTINGS_FILE, Board, StoreError, engine_of, migrate, said, shown
from geval_py.board.settings import Settings, settings_of
from geval_py.errors import ConfigError, MissingFileError, UnreadableFileError, UsageError
from geval_py.reading.challenge import Challenge
from geval_py.reading.options import DEFAULT_SAMPLES, DEFAULT_SEED
from geval_py.reading.rewriting import written_whole
from geval_py.reading.sources import find_file
from geval_py.reading.splits import EXPECTED_FILE, TRAINING_SET
from geval_py.text import named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Engine

    from geval_py.reading.schemes import EvaluationScheme


DATABASE_FILE = "board.sqlite"


def create(
    folder: str | os.PathLike[str],
    *,
    challenge: str | os.PathLike[str],
    answers: str | os.PathLike[str] | None = None,
    database: str | None = None,
    title: str | None = None,
) -> Board:
    """Make a board in a folder, which may be there already, for a challenge.

    ``answers`` is the folder with TEST/expected.tsv; by default the challenge itself, if it has the answers of a test
    set. ``database`` is a file beside board.yaml or a URL. ``title`` is by default the challenge's.

    Raises UsageError where there is a board already, in the folder or in the database; MissingFileError where the
    challenge or the answers are not there; ConfigError where the challenge names no metric; StoreError.
    """
    folder, place = os.fspath(folder), os.path.join(os.fspath(folder), SETTINGS_FILE)
    if os.path.lexists(place):
        raise UsageError(message=f"there is a board already: {named(place)}\n  edit it, or name another folder")
    opened = Challenge.open(challenge)
    answering = opened.path if answers is None else os.fspath(answers)
    content = _content(
        folder, opened, answering, DATABASE_FILE if database is None else database, title or opened.title
    )
    settings = settings_of(place, content)
    os.makedirs(folder, exist_ok=True)
    engine = _new_database(folder, settings)
    with written_whole(place) as file:
        file.write(content.encode())
    return Board(folder, settings, engine)


def _new_database(folder: str, settings: Settings) -> Engine:
    """Make the tables; those of a board that nothing was added to yet may be there already."""
    engine = engine_of(folder, settings)
    with said(engine), engine.connect() as connection:
        stored = "submissions" in inspect(connection).get_table_names()
        if stored and connection.execute(text("SELECT 1 FROM submissions LIMIT 1")).first():
            raise StoreError(path=shown(engine), reason="it holds the submissions of a board already")
    migrate(engine)
    return engine


def _content(folder: str, challenge: Challenge, answers: str, database: str, title: str) -> str:
    """Write a board.yaml: every key, in the order of the settings, below what it means."""
    schemes = _written_schemes(challenge)
    values = {
        "title": scalar(title),
        "challenge": scalar(_relative(challenge.path, folder)),
        "answers": scalar(_relative(answers, folder)),
        "database": scalar(database),
        "metric": scalar(schemes[0].text),
        "also": f"[{', '.join(scalar(scheme.text) for scheme in schemes[1:])}]",
        "tests": _tests(challenge, answers),
        "seed": DEFAULT_SEED,
        "samples": DEFAULT_SAMPLES,
    }
    return TEMPLATE.format(**values)


def _written_schemes(challenge: Challenge) -> Sequence[EvaluationScheme]:
    schemes = challenge.schemes()
    if not schemes:
        message = "the challenge names no metric, which a board needs: --metric PerplexityHashed"
        raise ConfigError(path=os.path.join(challenge.path, "config.txt"), message=message)
    return schemes


def _tests(challenge: Challenge, answers: str) -> str:
    """Write the test sets that have answers: the hidden ones first, then those whose answers are public."""
    sets = _sets(challenge.replace(path=answers))
    hidden = [name for name in sets if name.startswith("test") and _has_answers(answers, name)]
    if not hidden:
        raise MissingFileError(
            what="No answers of a test set",
            path=os.path.join(answers, "test-A", EXPECTED_FILE),
            hint="--answers DIR says in which folder test-A/expected.tsv is",
        )
    public = [name for name in challenge.split_names if name not in hidden and _has_answers(challenge.path, name)]
    public = [name for name in public if not name.startswith(TRAINING_SET)]
    lines = [f"  {scalar(name)}: {{disclosed: 4}}" for name in hidden]
    return "\n".join(lines + [f"  {scalar(name)}: {{visible: true, disclosed: 4}}" for name in public])


def _sets(folder: Challenge) -> Sequence[str]:
    if not os.path.isdir(folder.path):
        raise MissingFileError(what="No folder with the answers", path=folder.path)
    return folder.split_names


def _has_answers(folder: str, name: str) -> bool:
    return find_file(os.path.join(folder, name, EXPECTED_FILE)) is not None


def _relative(path: str, folder: str) -> str:
    """Give a path as board.yaml names it: relative to its folder."""
    return os.path.relpath(os.path.abspath(path), os.path.abspath(folder))


def scalar(value: str) -> str:
    """Write a value so that YAML reads it back; raises UnreadableFileError for one that is not UTF-8."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise UnreadableFileError(path=value, reason="board.yaml can name only what is UTF-8") from error
    dumped = yaml.safe_dump([value], allow_unicode=True, width=math.inf, default_flow_style=True)
    return str(dumped).strip()[1:-1]


TEMPLATE = """\
# A board of geval-py. Folders are relative to this file; `geval board status` reads it, and says what is wrong in it.

# What pages and tables are headed with.
title: {title}

# The folder of the challenge: README.md, config.txt, and a folder a test set.
challenge: {challenge}

# The folder of the hidden answers: test-A/expected.tsv and its like. Keep it out of everyone's sight.
answers: {answers}

# Where submissions are stored: a file beside this one, for SQLite, or postgresql://user@host/name. Better than a
# password written here is the variable GEVAL_BOARD_DATABASE, which goes before what stands here.
database: {database}

# The metric that ranks, as `geval -m` takes it; `geval --list-metrics` shows all.
metric: {metric}

# Metrics that are shown beside it.
also: {also}

# The test sets; the first is the one that ranks where none is asked for.
#   visible: true         its answers are public, and pages may show its lines
#   disclosed: 4          significant digits of a score that are shown until the last deadline; 0: no score, no place
#   disclosed_after: 4    the same from then on (as many as before, or 4)
#   ladder: true          a submitter's shown score moves only when it is surely better
#   clip: 20              with a ladder: the most that one line may lose, in nats
tests:
{tests}

# Deadlines, each with its zone. A phase's table is frozen when it ends; what comes after the last is ranked apart.
#   - {{name: main, until: 2027-01-31T23:59:00+01:00}}
#   - {{name: second, until: 2027-02-28 23:59 Europe/Warsaw}}
phases: []

# The zone in which a day of submissions_a_day begins: Europe/Warsaw, UTC.
zone: UTC

# How many submissions a submitter may send on one day; 0: any number.
submissions_a_day: 0

# Whether the table has a submitter's best entry, the best of each tag, or all: best, tag, all.
entries: best

# How places that are shared are shown: shared (1= and 1=) or plain (1 and 1).
ties: shared

# The seed of all random numbers, and how many permutations tell whether two entries differ.
seed: {seed}
samples: {samples}

# By what git may fetch submissions: https, ssh, git, http, file.
transports: [https]

# What one submission may take: bytes of all its files, unpacked; files of an archive; seconds; bytes of memory.
limits: {{bytes: 2_000_000_000, files: 200, seconds: 600, memory: 4_000_000_000}}

# The address under which the site is published, for its feed.
url: ""
"""
