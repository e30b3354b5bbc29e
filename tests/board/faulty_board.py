"""What a model of a board is compared with: a board in a folder, submissions to send, faults, and all its tables.

Everything is done in this process and in one thread, so that the same steps always do the same.
"""

import os
import random
import shutil
import subprocess
import tempfile
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path
from unittest.mock import patch
from zipfile import ZipFile

from board_model import HIDDEN, SEED, VISIBLE, Content
from crashes import Crashes
from samples import NOW, write
from sqlalchemy import create_engine, delete, insert, pool, select, text, update
from story import TOO_LONG, run_here, will_be_scored

from geval_py.board.backups import restore
from geval_py.board.database import schema, store
from geval_py.board.database.schema import METADATA
from geval_py.board.database.store import Board, create_tables
from geval_py.board.intake import sandbox
from geval_py.board.intake.identity import fingerprint, unopened_digest
from geval_py.board.intake.sources import ReceivedFile, digest_of
from geval_py.board.operations import creation, scheduler
from geval_py.board.people import schema as people_schema
from geval_py.board.references import references_of
from geval_py.board.submission import FAILED, Result

WORDS = ("ant", "bee", "cat", "dog")
ANSWERS = (("ant", "bee", "cat", "ant"), ("ant", "dog", "cat", "bee"), ("ant", "bee", "cat", "ant", "bee"))
PUBLIC = ("bee", "ant", "dog")
FORMS = ("folder", "archive", "git")
KEYS = {
    "title": "Machine", "challenge": "challenge", "answers": "answers", "seed": SEED, "samples": 8,
    "transports": "[https, file]", "server": "{uploads_an_hour: 1_000_000}",
}  # fmt: skip


def lines_of(chance, number, skill):
    """Make lines of which so many are right, more or less."""
    words = (word if chance.random() < skill else chance.choice(WORDS) for word in ANSWERS[2][:number])
    return [(word, chance.choice((0.2, 0.5, 0.8))) for word in words]


def contents():
    """Make the outputs of all submissions: good and bad ones, some for another number of lines, some malformed."""
    chance = random.Random(1)
    hidden = [[lines_of(chance, 4, number / 10)] for number in range(11)]
    hidden += [[lines_of(chance, 5, number / 3)] for number in range(4)]
    hidden += [[lines_of(chance, 4, 0.5), lines_of(chance, 4, 0.7)] for _ in range(3)]
    hidden += [[lines_of(chance, 4, skill) for skill in (0.2, 0.4, 0.6)], [None], [lines_of(chance, 3, 0.5)]]
    hidden += [[[("ant", 0)] * 4]]
    found = [{HIDDEN: of} for of in hidden]
    found += [{HIDDEN: [lines_of(chance, 4, 0.6)], VISIBLE: [lines_of(chance, 3, skill)]} for skill in (0, 0.5, 1)]
    return [*found, {VISIBLE: [lines_of(chance, 3, 0.5)]}, {VISIBLE: [lines_of(chance, 2, 0.5)]}]


def text_of(lines):
    if lines is None:
        return "ant:x\n" * 4
    return "".join(f"{word}:{share} :{round(1 - share, 1)}\n" for word, share in lines)


def received_digest(files):
    digests = {name: sha256(content.encode()).hexdigest() for name, content in files.items()}
    files = [ReceivedFile(name=name, path="", sha256=digest, bytes=0) for name, digest in sorted(digests.items())]
    return digest_of(files)


class Inline:
    """An executor that does at once, in this thread, what it is given."""

    def __init__(self, *_):
        pass

    def submit(self, function, *arguments):
        future = Future()
        try:
            future.set_result(function(*arguments))
        except BaseException as error:  # as an executor does: the error is for who asks for the result
            future.set_exception(error)
        return future

    def shutdown(self, **_):
        pass


def pooled(url, **more):
    """Make an engine that keeps its connections to PostgreSQL, since connecting takes long."""
    return create_engine(url, **more | ({} if "creator" in more else {"poolclass": pool.QueuePool}))


class FaultyBoard:
    """A board, on one of two databases of a kind, and what is around it; ``others`` is for boards on the other kind."""

    def __init__(self, root, databases, other):
        self.root, self.databases, self.other = Path(root), databases, other
        self.scanned, self.temporary, self.incoming = (self.root / name for name in ("scanned", "tmp", "incoming"))
        self.board = None
        self.crashes = Crashes()
        self.crashes.folder = str(self.root)
        self.fault, self.heavy = "", frozenset()
        self.failed = set()
        self.meanwhile = None
        self.meanings = {}
        self.steps = 0
        for folder in (self.temporary, self.root / "boards", self.root / "pool"):
            folder.mkdir()
        self._patches = ExitStack()
        self._patches.enter_context(patch.object(store, "create_engine", pooled))
        store.engine_at.cache_clear()
        self._make_template()
        self._make_pool()
        for database in (*databases, other or ""):
            if "://" in database:
                create_tables(Board("", None, database).engine)
        self._patches.enter_context(patch.object(scheduler, "ThreadPoolExecutor", Inline))
        self._patches.enter_context(patch.object(scheduler, "AHEAD", 1))
        self._patches.enter_context(patch.object(sandbox, "run_in_sandbox", self._run))
        self._patches.enter_context(patch.object(tempfile, "tempdir", str(self.temporary)))
        self._patches.enter_context(patch.object(os, "cpu_count", lambda: 1))
        quiet = classmethod(lambda *_, **__: None)  # the folders of killed runs are left
        self._patches.enter_context(patch.object(tempfile.TemporaryDirectory, "_cleanup", quiet))

    def close(self):
        if self.board is not None:
            self.dispose(self.board)
        for database in (*self.databases, self.other or ""):
            if "://" in database:
                store.engine_at(database).dispose()
        self._patches.close()
        store.engine_at.cache_clear()
        self.crashes.close()

    def _make_template(self):
        folder = self.root / "template"
        write(folder / "challenge/README.md", "Guess\n")
        write(folder / "challenge/config.txt", "--metric PerplexityHashed\n")
        write(folder / "challenge" / VISIBLE / "in.tsv", "".join(f"left {n}\tright {n}\n" for n in range(3)))
        write(folder / "challenge" / VISIBLE / "expected.tsv", "".join(f"{word}\n" for word in PUBLIC))
        self._write_answers(folder, ANSWERS[0])
        board = creation.create(folder, challenge=folder / "challenge", answers=folder / "answers")
        with board.writing() as connection:
            connection.execute(update(schema.board).values(created=NOW))
        self.dispose(board)

    @staticmethod
    def _write_answers(folder, answers):
        gaps = "".join(f"left {n}\tright {n}\n" for n in range(len(answers)))
        write(folder / "challenge" / HIDDEN / "in.tsv", gaps)
        write(folder / "answers" / HIDDEN / "expected.tsv", "".join(f"{word}\n" for word in answers))

    def _make_pool(self):
        """Write all contents as folders, as archives and as branches of a repository."""
        there, self.contents, stream = self.root / "pool", [], b""
        for number, tests in enumerate(contents()):
            files = {}
            for test, of in tests.items():
                for variant, lines in enumerate(of):
                    name = "out.tsv" if len(of) == 1 else f"out-v={variant}.tsv"
                    files[f"{test}/{name}"] = text_of(lines)
            stream += f"commit refs/heads/c{number}\ncommitter x <x@y> 0 +0000\ndata 1\nx\n".encode()
            with ZipFile(there / f"c{number}.zip", "w") as archive:
                for name, content in files.items():
                    write(there / f"c{number}" / name, content)
                    archive.writestr(name, content)
                    stream += f"M 100644 inline {name}\ndata {len(content)}\n{content}\n".encode()
            self.contents.append(Content(tests, {"received": received_digest(files)}, number))
        git = ["git", "-C", str(there)]
        subprocess.run([*git, "init", "-q", "repository"], check=True)
        subprocess.run([*git, "-C", "repository", "fast-import", "--quiet"], check=True, input=stream)
        for one in self.contents:
            one.digests.update({form: unopened_digest(self.source(one, form)) for form in FORMS})
        assert len({one.digests["received"] for one in self.contents}) == len(self.contents)

    def source(self, content, form):
        """Return the path or address of a submission."""
        there, name = self.root / "pool", f"c{content.number}"
        git = f"git+file://{there}/repository@{name}"
        return {"folder": str(there / name), "archive": f"{there / name}.zip", "git": git}[form]

    # The board

    def begin(self):
        """Begin with an empty board."""
        self.fault, self.heavy = "", frozenset()
        self.meanwhile, self.meanings = None, {}
        if self.board is not None:
            self.dispose(self.board)
        for folder in (self.scanned, self.temporary, self.root / "boards"):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        folder = self.root / "boards" / "0"
        shutil.copytree(self.root / "template", folder)
        database = self.databases[0]
        if "://" in database:
            (folder / "board.sqlite").unlink()
            clean(database)
            with Board("", None, database).writing() as connection:
                connection.execute(insert(schema.board).values(id=1, created=NOW))
        self.board = Board(str(folder), None, database)

    @staticmethod
    def dispose(board):
        """Close the connections to a board's database, whose file is going to be removed."""
        board.engine.dispose()

    def open(self, model, folder=None):
        """Write the settings of a model into board.yaml, and open the board; remember what they are called there."""
        folder = Path(folder or self.board.folder)
        of, database = model.settings, self.board.place
        phases = ", ".join(f"{{name: {name}, until: {until.isoformat()}}}" for name, until in of.phases)
        split, shown = "split: 50 %, " if of.split else "", f"disclosed: {of.digits}"
        keys = KEYS | {
            "database": database if "://" in database else "board.sqlite",
            "metric": of.metric,
            "tests": f"{{{HIDDEN}: {{{split}{shown}}}, {VISIBLE}: {{visible: true, {shown}}}}}",
            "phases": f"[{phases}]",
            "zone": of.zone,
            "submissions_a_day": of.quota,
            "variants": of.variants,
            "finals": of.finals,
        }  # fmt: skip
        write(folder / "board.yaml", "".join(f"{key}: {value}\n" for key, value in keys.items()))
        self.board = Board.open(folder)
        if self.fault != "away":
            self._learn(model)

    def write_answers(self, answers):
        self._write_answers(Path(self.board.folder), answers)

    def break_or_mend(self, model, *, fault, heavy=frozenset()):
        """Break what the model says, and fix the rest."""
        answers, away = (Path(self.board.folder, name) for name in ("answers", "away"))
        if (fault == "away") != (self.fault == "away"):
            answers.rename(away) if fault == "away" else away.rename(answers)
        for one in (model, self):
            one.fault, one.heavy = fault, heavy
        if fault != "away":
            self._learn(model)

    def _learn(self, model):
        """Remember what the digests of now mean."""
        settings = self.board.settings
        references = references_of(settings)
        for (test, _), digest in references.items():
            self.meanings[digest] = (test, model.answers[test])

    def send(self, name, content, form):
        """Put a submission into the folder that is scanned; returns what tells that it has changed."""
        for path in (self.scanned / name, self.scanned / f"{name}.zip"):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        source, path = self.source(content, form), self.scanned / name
        if form == "archive":
            path = shutil.copyfile(source, self.scanned / f"{name}.zip")
        else:
            shutil.copytree(source, path)
        return fingerprint(str(path))

    def imported(self, file, name, database, kill):
        """Import an export into a new board, perhaps after an import that is killed."""
        folder = self.root / "boards" / name
        for steps in (kill, None):
            is_last = steps is None
            if folder.exists():
                break
            if database is not None and "://" in database:
                clean(database)
            where = None if database is None or "://" not in database else database
            if is_last:
                return restore(str(file), str(folder), database=where)[0]
            with self.crashes.killing(steps):
                restore(str(file), str(folder), database=where)
        return Board.open(folder)

    @contextmanager
    def noting(self, failed):
        """Note in a set the digests of the submissions whose scoring fails in the block."""
        before, self.failed = self.failed, failed
        try:
            yield
        finally:
            self.failed = before

    # The sandbox, and receivers of notices

    def _run(self, arguments, settings, place):
        if self.meanwhile is not None:
            act, self.meanwhile = self.meanwhile, None
            act()
        if self.fault == "receive" and "source" in arguments:
            return TOO_LONG
        if self.fault != "score":
            return run_here(arguments, settings, place)
        digest = will_be_scored(run_here, arguments, settings, place)
        if digest in self.heavy:
            self.failed.add(digest)
            return Result(state=FAILED, reason="it needs more than 4000000000 bytes of memory")
        for name in os.listdir(place) if "source" in arguments else ():  # what was received to find the digest
            path = os.path.join(place, name)
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
        return run_here(arguments, settings, place)

    # What can be seen

    def observe(self):
        """Return all that is stored, as Model.view does."""
        with self.board.reading() as connection:
            return Observed(connection, self.meanings).view()


COLUMNS = """
submitters.key, digest, state, cost, arrived, baseline, withdrawn, final, remark, trial, tries, due, leased_until,
started, fingerprint
"""


class Observed:
    """The tables of a board, read by one connection."""

    def __init__(self, connection, meanings):
        self._connection, self._meanings = connection, meanings
        found = self._rows(
            f"SELECT submissions.id, code, {COLUMNS} FROM submissions JOIN submitters ON submitters.id = submitter_id "
            "ORDER BY submissions.id"
        )
        self._place = {row[0]: place for place, row in enumerate(found)}
        self.codes = [row[1] for row in found]
        self._submissions = found

    def _rows(self, sql):
        return self._connection.execute(text(sql)).all()

    def view(self):
        return {
            "submissions": [
                (
                    *row[2:7],
                    bool(row[7]),
                    row[8] is not None,
                    *row[9:11],
                    bool(row[11]),
                    *row[12:16],
                    set(row[16].split()),
                )
                for row in self._submissions
            ],
            "scores": self._scores(),
            "names": dict(map(tuple, self._rows("SELECT key, name FROM submitters"))),
            "announcements": [row[0] for row in self._rows("SELECT text FROM announcements ORDER BY id")],
        }

    def _scores(self):
        """Return, for each submission with outputs, what each score was made with."""
        found = {}
        for row in self._rows(
            "SELECT submission_id, evaluations.reference, scores.metric FROM outputs LEFT JOIN scores ON scores.output_id = outputs.id "
            "LEFT JOIN evaluations ON evaluations.id = scores.evaluation_id"
        ):
            own = found.setdefault(self._place[row[0]], set())
            if row[1] is not None:
                own.add((row[2], *self._meanings[row[1]]))
        return found


def clean(database):
    """Empty a database of PostgreSQL."""
    with Board("", None, database).engine.begin() as connection:
        for table in reversed(METADATA.sorted_tables):
            connection.execute(delete(table))
        people_schema.METADATA.drop_all(connection)
        for table in METADATA.sorted_tables:
            if "id" in table.c and table.name != "board":
                connection.exec_driver_sql(f"SELECT setval(pg_get_serial_sequence('{table.name}', 'id'), 1, false)")


def dump(board):
    """Return all rows of all tables, but for what only one database needs."""
    with board.reading() as connection:
        return {
            table.name: [tuple(row) for row in connection.execute(select(table).order_by(*table.primary_key))]
            for table in METADATA.sorted_tables
        }
