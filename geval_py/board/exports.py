"""``geval board export``, ``import`` and ``verify``: a board as one archive, and what can be rebuilt from it.

In this order: the export, with all files that a board needs elsewhere; the import, which makes a new board of it; and
the verification, which rebuilds a published site from an export and finds what differs.

An export for the public has the answers of visible tests alone, and of the database only what may be shown.
"""

from __future__ import annotations

import io
import os
import re
import tarfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from typing import IO, Any, cast

import yaml
from sqlalchemy import Connection, Engine, LargeBinary, String, Table, delete, insert, select, text, union, update

from geval_py.board.database import schema, store
from geval_py.board.intake.workspace import workspace
from geval_py.board.operations.creation import DATABASE_FILE, scalar
from geval_py.board.ranking.disclosure import ensure_disclosed
from geval_py.board.references import expected_of
from geval_py.board.settings import AFTER, Settings, read_settings, read_text
from geval_py.board.site import files, pages
from geval_py.board.site.view import loaded
from geval_py.board.tar_archives import read_tar, write_tar
from geval_py.errors import UnreadableFileError, UsageError
from geval_py.reading import challenge, compression, config, rewriting, sources, splits
from geval_py.reading.answers import find_answers
from geval_py.reading.file_lines import FileLines
from geval_py.scoring.metrics import find_metric
from geval_py.tables.escapes import json_text
from geval_py.text import named, visible

CHALLENGE, ANSWERS = "challenge", "answers"
PUBLIC_FILE = "board.json"
PLACES = {"challenge": CHALLENGE, "answers": ANSWERS, "database": DATABASE_FILE}  # in an export's board.yaml
MEMBER = re.compile(rf"{store.SETTINGS_FILE}|{DATABASE_FILE}|(?:{CHALLENGE}|{ANSWERS})(?:/[^/.\0][^/\0]*)+")
LEFT_OUT = (
    "blobs",
    "comparisons",
    "exchanges",
    "history",
    "board",
    "rungs",
    "scanned",
    *schema.SERVER_TABLES,
)  # tables that are not for the public
CHANGED, MISSING, EXTRA = "differs", "is missing", "is not of this board"  # the kinds of a difference


def export(board: store.Board, file: str, *, now: datetime, public: bool = False) -> None:
    """Write a board as one tar archive, compressed as its ending says (.zst, .xz, .gz); it appears when complete.

    Its last member has the digests of the others.

    For the ``public``, it has no hidden answers, no submitted files, nothing of withdrawn submissions, and no scores
    or comparisons beyond the disclosed digits. Raises StoreError, UsageError, DataError.
    """
    ensure_disclosed(board, now)
    members = files_of(board.settings, public=public)
    with workspace() as place:
        members[DATABASE_FILE] = _copy_database(board, place, public=public)
        if public:
            name, content = PUBLIC_FILE, json_text(public_document(board.settings))
        else:
            name, content = store.SETTINGS_FILE, with_values(read_text(store.settings_path(board.folder)), PLACES)
        members[name] = os.path.join(place, name)
        with open(members[name], "w", encoding="utf-8") as written:
            written.write(content)
        with rewriting.written_whole(file, compression=compression.compression_by_ending(file)) as packed:
            write_tar(cast(IO[bytes], packed), members)


def files_of(settings: Settings, *, public: bool) -> dict[str, str]:
    """Return the files that a board needs beside its database: names in the archive, in order, and paths.

    For the ``public``, the answers of visible tests alone, and nothing from the folder of the answers. Raises
    DataError.
    """
    found = dict(_challenge_files(settings))
    for test in settings.tests:
        for place, folder in ((CHALLENGE, settings.challenge), (ANSWERS, settings.answers)):
            path = sources.find_file(os.path.join(folder, test.name, splits.INPUT_FILE))
            same = os.path.realpath(folder) == os.path.realpath(settings.challenge)
            if path is not None and (place == CHALLENGE or not same):
                found |= _stored(f"{place}/{test.name}", path)
        if test.visible or not public:
            expected = os.path.join(settings.challenge, test.name, splits.EXPECTED_FILE)
            own = find_answers(expected) if public else None
            path = own or expected_of(settings.challenge, settings.answers, test.name)
            place = CHALLENGE if test.visible else ANSWERS
            found |= _stored(f"{place}/{test.name}", path)
    if public:
        found = {name: path for name, path in found.items() if not _is_hidden(settings, path)}
    return dict(sorted(found.items()))


def _challenge_files(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield the README, the configuration and, if a metric needs the vocabulary, the words of train."""
    task = config.config_task(settings.challenge)
    headers = [name for name in (task.in_header, task.out_header) if name]
    for name in (challenge.README_FILE, splits.CONFIG_FILE, *headers):
        path = os.path.join(settings.challenge, name)
        relative = os.path.relpath(path, settings.challenge)
        if os.path.isfile(path):
            if relative.startswith(os.pardir):
                reason = "it is not in the challenge's folder, and cannot be exported"
                raise UnreadableFileError(path=path, reason=reason)
            yield f"{CHALLENGE}/{relative.replace(os.sep, '/')}", path
    schemes = task.replace(alt_metrics=settings.metrics).schemes()
    if any(find_metric(scheme.metric).needs_vocabulary for scheme in schemes):
        words = find_answers(os.path.join(settings.challenge, splits.TRAINING_SET, splits.EXPECTED_FILE))
        if words:
            yield from _stored(f"{CHALLENGE}/{splits.TRAINING_SET}", words).items()


def _stored(place: str, path: str) -> dict[str, str]:
    """Return the files that a file in parts, or a folder with answers, consists of, by their names in the archive."""
    files = path.files if isinstance(path, FileLines) else sources.parts_of(path)
    folder = os.path.dirname(path)
    return {f"{place}/{os.path.relpath(file, folder).replace(os.sep, '/')}": file for file in files}


def _is_hidden(settings: Settings, path: str) -> bool:
    """Whether a file lies in the folder of the answers, but not in a challenge's folder inside of that."""
    holds_challenge = _is_below(settings.answers, settings.challenge)
    return _is_below(settings.answers, path) and not (holds_challenge and _is_below(settings.challenge, path))


def _is_below(folder: str, path: str) -> bool:
    folder, path = os.path.realpath(folder), os.path.realpath(path)
    return os.path.commonpath([folder, path]) == folder


def _copy_database(board: store.Board, place: str, *, public: bool) -> str:
    """Copy the database into a file of SQLite; return its path."""
    engine = store.engine_at(os.path.join(place, DATABASE_FILE))
    with board.reading() as source:
        _copy_rows(source, engine, without=LEFT_OUT if public else ())
    if public:
        with store.store_errors(engine), engine.begin() as connection:
            remove_private(connection)
    with store.store_errors(engine), engine.connect() as connection:
        connection.execute(text("COMMIT"))
        for statement in ("PRAGMA journal_mode = DELETE", "VACUUM"):  # so that nothing deleted is left in the file
            connection.execute(text(statement))
    return os.path.join(place, DATABASE_FILE)


ROWS, LARGE_ROWS = 500, 4  # held in memory by _copy_rows


def _copy_rows(source: Connection, target: Engine, *, without: Collection[str] = ()) -> None:
    """Copy all rows, but for some tables, into a new database of either kind; ids stay the same.

    Raises StoreError if the target holds submissions.
    """
    store.migrate(target)
    with store.store_errors(target), target.begin() as connection:
        connection.execute(delete(schema.board))  # the row that every new database has
        if connection.execute(select(schema.METADATA.tables["submissions"].c.id).limit(1)).first() is not None:
            raise store.StoreError(
                path=str(target.url.database), reason="it holds the submissions of a board already"
            )
        for table in schema.METADATA.sorted_tables:
            if table.name not in without:
                _copy_table(source, connection, table)


def _copy_table(source: Connection, target: Connection, table: Table) -> None:
    is_large = any(isinstance(column.type, LargeBinary) for column in table.c)
    query = select(table).order_by(*table.primary_key).execution_options(yield_per=LARGE_ROWS if is_large else ROWS)
    for rows in source.execute(query).mappings().partitions():
        target.execute(insert(table), [dict(row) for row in rows])
    if target.dialect.name == "postgresql" and "id" in table.c:  # the next row gets the next number
        following = f"SELECT setval(pg_get_serial_sequence('{table.name}', 'id'), max(id)) FROM {table.name}"
        target.execute(text(following))


def remove_private(connection: Connection) -> None:
    """Delete withdrawn submissions, undisclosed figures, digests of the answers, and the sources of submissions."""
    hidden = select(schema.submissions.c.id).where(schema.submissions.c.withdrawn.is_not(None))
    of_hidden = select(schema.outputs.c.id).where(schema.outputs.c.submission_id.in_(hidden))
    for table in (schema.disclosures, schema.scores):
        connection.execute(delete(table).where(table.c.output_id.in_(of_hidden)))
    for table in (schema.outputs, schema.files):
        connection.execute(delete(table).where(table.c.submission_id.in_(hidden)))
    connection.execute(delete(schema.submissions).where(schema.submissions.c.withdrawn.is_not(None)))
    connection.execute(
        delete(schema.submitters).where(schema.submitters.c.id.not_in(select(schema.submissions.c.submitter_id)))
    )
    private = {
        "source": "",
        "aside": "",
        "checked_with": "",
        "charge": "",
        "charged": False,
        "cost": 0,
        "final": None,
    }
    connection.execute(update(schema.submissions).values(private))
    used = union(select(schema.scores.c.evaluation_id), select(schema.disclosures.c.evaluation_id))
    connection.execute(delete(schema.evaluations).where(schema.evaluations.c.id.not_in(used)))
    blank = {"score": None, "low": None, "high": None, "losses": None, "signature": ""}
    connection.execute(update(schema.evaluations).values(blank | {"reference": schema.evaluations.c.id.cast(String)}))


def public_document(settings: Settings) -> dict[str, Any]:
    """Return the settings that anyone may know."""
    own = ("title", "metric", "also", "submissions_a_day", "variants", "finals", "entries")
    of_tests = ("visible", "disclosed", "disclosed_after", "ladder", "show", "split")
    of_phases = ("tests", "submissions_a_day", "disclosed", "ladder", "variants")
    return {name: getattr(settings, name) for name in own} | {
        "tests": {test.name: {name: getattr(test, name) for name in of_tests} for test in settings.tests},
        "phases": [
            {"name": phase.name, "until": phase.until.isoformat()}
            | {name: value for name in of_phases if (value := getattr(phase, name)) not in (None, ())}
            for phase in settings.phases
        ],
        "zone": str(settings.zone),
    }


def with_values(content: str, values: dict[str, str]) -> str:
    r"""Replace the values of some keys in a board.yaml; all else, even comments, stays.

    Missing keys are added before the first key.

    >>> with_values("a: 1 # one\nb: x", {"a": "two", "c": "three"})
    'c: three\na: two # one\nb: x'
    """
    root = yaml.compose(content, Loader=yaml.SafeLoader)
    if not isinstance(root, yaml.MappingNode):
        return content
    pairs = [(str(key.value), value) for key, value in root.value]
    for key, value in reversed(pairs):
        if key in values:
            start, end = value.start_mark.index, value.end_mark.index
            content = content[:start] + scalar(values[key]) + content[end:]
    between = ", " if root.flow_style else "\n" + " " * root.start_mark.column
    missing = values.keys() - dict(pairs).keys()
    new = "".join(f"{key}: {scalar(values[key])}{between}" for key in sorted(missing))
    first = root.start_mark.index + bool(root.flow_style)
    return content[:first] + new + content[first:]


def import_board(file: str, folder: str, *, database: str | None = None) -> store.Board:
    """Rebuild a board from an export in a new folder, which appears only when it is complete.

    The rows stay in the SQLite file of the export unless another ``database`` is given. Raises UsageError if the
    folder exists or the archive is for the public; UnreadableFileError and CorruptFileError if it is not an export;
    StoreError.
    """
    folder = os.path.abspath(folder)
    if os.path.lexists(folder):
        raise UsageError(message=f"{named(folder)} is there already, and is left as it is\n  name another")
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    with workspace(os.path.dirname(folder)) as place:
        new = os.path.join(place, "board")
        _read_tar(file, new)
        _use_own_places(new, file)
        _check_database(store.engine_at(os.path.join(new, DATABASE_FILE)), file)
        place_of_rows = os.environ.get(store.DATABASE_VARIABLE) or database
        if place_of_rows is not None:
            _move_database(new, place_of_rows, database)
        os.rename(new, folder)
    return store.Board.open(folder)


def _read_tar(file: str, folder: str) -> None:
    """Unpack an archive, whose members must be regular files with known names, into a new folder."""
    seen: set[str] = set()
    source = sources.Source(file, None)
    try:
        stream = io.BufferedReader(source.stream)
        read_tar(stream, file, folder, check=lambda member: _check_member(file, member, seen))
    finally:
        source.close()
    if not {store.SETTINGS_FILE, DATABASE_FILE} <= seen:
        raise UnreadableFileError(path=file, reason="it is not a whole export of a board")


def _check_member(file: str, member: tarfile.TarInfo, seen: set[str]) -> None:
    if member.name == PUBLIC_FILE:
        raise UsageError(
            message=f"{named(file)} is for the public: it has neither answers nor files to make a board of"
        )
    if not member.isreg() or member.name in seen or not MEMBER.fullmatch(member.name):
        reason = f"it holds `{visible(member.name)}`, which no export of a board holds"
        raise UnreadableFileError(path=file, reason=reason)
    seen.add(member.name)


def _use_own_places(folder: str, file: str) -> None:
    """Make the board.yaml from an archive refer only to folders and a database from the same archive."""
    path = os.path.join(folder, store.SETTINGS_FILE)
    read_settings(path)
    content = with_values(read_text(path), PLACES)
    with open(path, "w", encoding="utf-8") as written:
        written.write(content)
    settings = read_settings(path)
    found = [getattr(settings, key) for key in PLACES]
    if found != [os.path.join(folder, CHALLENGE), os.path.join(folder, ANSWERS), DATABASE_FILE]:
        raise UnreadableFileError(path=file, reason="its board.yaml names folders or a database that are not its own")


def _check_database(engine: Engine, file: str) -> None:
    with store.store_errors(engine), engine.connect() as connection:
        found = [row[0] for row in connection.execute(text("PRAGMA integrity_check"))]
        broken = connection.execute(text("PRAGMA foreign_key_check")).all()
    if found != ["ok"] or broken:
        raise store.StoreError(path=file, reason=f"its database is damaged: {found[0]}")


def _move_database(folder: str, place: str, written: str | None) -> None:
    """Copy the rows into another database; write its name into board.yaml if it was given as an argument."""
    own = os.path.join(folder, DATABASE_FILE)
    store.check_schema(own)
    here = store.engine_at(own)
    with store.store_errors(here), here.connect() as connection:
        _copy_rows(connection, store.engine_at(store.place_in(folder, place)))
    for ending in ("", "-wal", "-shm"):
        path = os.path.join(folder, DATABASE_FILE + ending)
        if os.path.exists(path) and place != DATABASE_FILE:
            os.unlink(path)
    if written is not None:
        path = os.path.join(folder, store.SETTINGS_FILE)
        content = with_values(read_text(path), {"database": written})
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A file that differs from the rebuilt one; ``line`` is the first line that differs, from 1."""

    path: str
    kind: str
    line: int = 0
    published: str = ""
    rebuilt: str = ""

    def __str__(self) -> str:
        where = f", from line {self.line} on" if self.line else ""
        return visible(f"{self.path} {self.kind}{where}")


def verify(site: str, file: str) -> list[Difference]:
    """Rebuild a published site from an export of its board, in a temporary folder, and return what differs.

    Raises UsageError for a folder that holds no site, or a site of a phase that the board does not have, and the
    errors of :func:`import_board`.
    """
    _mark_of(site)
    with workspace() as place, _no_other_database():
        return list(differences(import_board(file, os.path.join(place, "board")), site))


@contextmanager
def _no_other_database() -> Iterator[None]:
    """Hide the environment's database: it is the board's own, and must not be used for the copy."""
    named = os.environ.pop(store.DATABASE_VARIABLE, None)
    try:
        yield
    finally:
        if named is not None:
            os.environ[store.DATABASE_VARIABLE] = named


def differences(board: store.Board, site: str) -> Iterator[Difference]:
    """Compare a published site, file by file, with the site of its board in the same phase.

    Raises UsageError for a folder that holds no site, or a site of a phase that the board does not have; StoreError.
    """
    mark = _mark_of(site)
    now = moment_in(board.settings, str(mark.get("phase")))
    built: set[str] = set()
    with loaded(board, now=now, organiser=mark.get("organiser") is True) as view:
        for path, text in pages.pages(view):
            built.add(path)
            found = _difference(path, os.path.join(site, *path.split("/")), text)
            if found is not None:
                yield found
    yield from (Difference(path=path, kind=EXTRA) for path in sorted(_files(site) - built))


def _mark_of(site: str) -> dict[str, object]:
    mark = files.mark_of(site)
    if mark is None:
        raise UsageError(message=f"{named(site)} holds no site made by geval board")
    return mark


def moment_in(settings: Settings, phase: str) -> datetime:
    """Return a moment in a phase; raises UsageError for an unknown phase."""
    if phase not in settings.phase_names:
        message = f"the site shows the phase `{visible(phase)}`, which the board does not have"
        raise UsageError(message=message)
    if phase == AFTER and settings.phases:
        return settings.phases[-1].until + timedelta(seconds=1)
    return next((one.until for one in settings.phases if one.name == phase), datetime.now(UTC))


def _difference(path: str, place: str, text: str) -> Difference | None:
    try:
        with open(place, encoding="utf-8", errors="surrogateescape", newline="") as file:
            published = file.read()
    except OSError:
        return Difference(path=path, kind=MISSING)
    if published == text:
        return None
    pairs = enumerate(zip_longest(published.split("\n"), text.split("\n"), fillvalue=""), start=1)
    line, (one, other) = next((number, pair) for number, pair in pairs if pair[0] != pair[1])
    return Difference(path=path, kind=CHANGED, line=line, published=one, rebuilt=other)


def _files(site: str) -> set[str]:
    found = ((folder, name) for folder, _, names in os.walk(site) for name in names)
    return {os.path.relpath(os.path.join(*place), site).replace(os.sep, "/") for place in found}
