"""``geval board init``: a new board, with a comment for every key of board.yaml, and its database."""

from __future__ import annotations

import math
import os
import re

import yaml

from geval_py.board.database.store import (
    DATABASE_VARIABLE,
    SETTINGS_FILE,
    Board,
    create_tables,
    place_of,
)
from geval_py.board.settings import settings_of
from geval_py.errors import ConfigError, MissingFileError, UnreadableFileError, UsageError
from geval_py.reading import config, rewriting, splits
from geval_py.reading.challenge import Challenge
from geval_py.reading.lines import count_lines
from geval_py.reading.splits import find_answers
from geval_py.text import named

DATABASE_FILE = "board.sqlite"
STEPS = ((200, 0.2), (1000, 0.1), (math.inf, 0.01))  # of the ladder, for a test set with fewer lines


def create(
    folder: str | os.PathLike[str],
    *,
    challenge: str | os.PathLike[str],
    answers: str | os.PathLike[str] | None = None,
    database: str | None = None,
    title: str | None = None,
) -> Board:
    """Make a board for a challenge, in a new folder or an existing one.

    ``answers`` is the folder with TEST/expected.tsv; by default the challenge itself, if it has the answers of a test
    set. ``database`` is a file beside board.yaml or a URL. ``title`` is by default the challenge's.

    Raises UsageError if the folder or the database holds a board already; MissingFileError for a missing challenge or
    answers; ConfigError for a challenge without a metric; StoreError.
    """
    folder, place = os.fspath(folder), os.path.join(os.fspath(folder), SETTINGS_FILE)
    if os.path.lexists(place):
        raise UsageError(f"{named(place)} is a board already\n  edit it, or name another folder")
    if re.match(r"[^/]*://([^/@]*:[^/@]*@|.*[?&]password=)", database or ""):
        raise UsageError(
            "the password of the database would stand in board.yaml"
            f"\n  set {DATABASE_VARIABLE} to this address, and leave out --database"
        )
    opened = Challenge.open(challenge)
    answering = opened.path if answers is None else os.fspath(answers)
    schemes = opened.schemes()
    if not schemes:
        message = "the challenge has no metric, which a board needs: add --metric PerplexityHashed to its config.txt"
        raise ConfigError(path=os.path.join(opened.path, "config.txt"), message=message)
    content = TEMPLATE.format(
        title=scalar(title or opened.title),
        challenge=scalar(os.path.relpath(opened.path, folder)),
        answers=scalar(os.path.relpath(answering, folder)),
        database=scalar(DATABASE_FILE if database is None else database),
        metric=scalar(schemes[0].text),
        also=f"[{', '.join(scalar(scheme.text) for scheme in schemes[1:])}]",
        tests=_tests(opened, answering),
        seed=config.DEFAULT_SEED,
        samples=config.DEFAULT_SAMPLES,
    )
    settings = settings_of(place, content)
    os.makedirs(folder, 0o700, exist_ok=True)
    board = Board(folder, settings, place_of(folder, settings.database))
    create_tables(board.engine)
    with rewriting.written_whole(place) as file:
        file.write(content.encode())
    return board


def _tests(challenge: Challenge, answers: str) -> str:
    """Return the lines of the test sets with answers: first the hidden ones, then those with public answers."""
    if not os.path.isdir(answers):
        raise MissingFileError(what="No folder with the answers", path=answers)

    def answers_in(place: str, test: str) -> str | None:
        return find_answers(os.path.join(place, test, splits.EXPECTED_FILE))

    hidden = [name for name in splits.sets_in(answers) if name.startswith("test") and answers_in(answers, name)]
    if not hidden:
        raise MissingFileError(
            what="No answers of a test set",
            path=os.path.join(answers, "test-A", splits.EXPECTED_FILE),
            hint="name the folder that has test-A/expected.tsv with --answers DIR",
        )
    lines = []
    for name in hidden:  # of a small test set, a score tells a larger share of the answers
        number = count_lines(splits.answers_at(answers_in(answers, name) or ""))
        step = next(step for limit, step in STEPS if number < limit)
        lines.append(f"  {scalar(name)}: {{disclosed: 2, ladder: true, step: {step}}}")
    public = [name for name in challenge if not name.startswith(splits.TRAINING_SET) and name not in hidden]
    public = [name for name in public if answers_in(challenge.path, name)]
    return "\n".join(lines + [f"  {scalar(name)}: {{visible: true, disclosed: 4}}" for name in public])


def scalar(value: str) -> str:
    """Quote a value for YAML; raises UnreadableFileError if it is not UTF-8."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise UnreadableFileError(path=value, reason="names in board.yaml must be UTF-8") from error
    dumped = yaml.safe_dump([value], allow_unicode=True, width=math.inf, default_flow_style=True)
    return str(dumped).strip()[1:-1]


TEMPLATE = """\
# A board of geval-py. Folders are relative to this file; `geval board status` reports its errors.

# The heading of pages and tables.
title: {title}

# The folder of the challenge: README.md, config.txt, and a folder a test set.
challenge: {challenge}

# The folder of the hidden answers: test-A/expected.tsv and so on. Keep it private.
answers: {answers}

# Where submissions are stored: a file beside this one, for SQLite, or postgresql://user@host/name. Write no password
# here: the variable GEVAL_BOARD_DATABASE may hold the whole URL, and overrides this one.
database: {database}

# Where the accounts of the server are stored, as `database`; "": beside the database or, of several boards, in their
# folder.
accounts: ""

# The metric that ranks, as `geval -m` takes it; `geval --list-metrics` shows all.
metric: {metric}

# Other metrics, shown beside it.
also: {also}

# The test sets; the first one is ranked by default.
#   visible: true         its answers are public, and pages may show its lines
#   disclosed: 2          significant digits of a score that are shown until the last deadline; 0: no score, no place
#   disclosed_after: 4    the same from then on (default: as disclosed; 4 if that is 0)
#   ladder: true          a shown score changes only when a new one is significantly better
#   step: 0.1             with a ladder: how much the mean loss must improve, in nats; 0.1 is 10 % of a perplexity
#   split: 30 %           scores are of 30 % of the lines until the deadline, then of the others; needs your own seed
#   documents: FileId     intervals and tests are by document: lines with the same value in this column of in.tsv
#   show: all             every variant of a submission has a score; best, as for hidden answers: only the best one
# Each shown score reveals something about the hidden answers, and many scores could reveal them all. So hidden test
# sets have few digits and a ladder here; see docs/leakage.md.
tests:
{tests}

# Deadlines, each with its zone. A phase's table is frozen when it ends; later submissions are ranked apart.
# A phase may have its own tests (the first one is shown by default), submissions_a_day, disclosed, ladder, variants.
#   - {{name: dev, until: 2027-01-31T23:59:00+01:00, tests: [dev-0], submissions_a_day: 20, variants: 20}}
#   - {{name: final, until: 2027-02-28 23:59 Europe/Warsaw, tests: [test-A]}}
phases: []

# The time zone of the days of submissions_a_day: Europe/Warsaw, UTC.
zone: UTC

# How many submissions a submitter may send on one day; 0: any number. One with several outputs for a hidden test set
# counts once for each of them. The more submissions, the more they reveal about the hidden answers.
submissions_a_day: 1

# How many outputs a submission may have for one test set; a submission with more is rejected.
variants: 5

# How many submissions of a submitter count after the deadline of a split test: those that `geval board final` names,
# or the best until then; 0: all.
finals: 0

# Whether the table has a submitter's best entry, or one for each submission: best, all.
entries: best

# The seed of all random numbers, and the number of permutations of a significance test.
seed: {seed}
samples: {samples}

# The transports by which git may fetch submissions: https, ssh, git, http, file.
transports: [https]

# The limits of one submission: bytes of all its files, unpacked; files that are taken, or in an archive; files that
# its folder or repository may have at all; seconds; bytes of memory.
limits: {{bytes: 2_000_000_000, files: 200, listed: 10_000, seconds: 60, memory: 4_000_000_000}}

# Who sees the pages of a server: all, or members, who are signed in.
access: all

# How pages name teams: real, or pseudonyms.
names: real

# The address under which the site is published, for its feed.
url: ""

# Where and how to send a submission, in Markdown, for the page "How to submit". Several lines begin with `submit: |`
# and are indented.
submit: ""

# How to cite the challenge, in Markdown, for its page.
cite: ""

# The server (geval board serve): the largest upload in bytes, and how many uploads a team may send in an hour.
server: {{upload: 200_000_000, uploads_an_hour: 60}}
"""
