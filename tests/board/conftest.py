"""What the tests of the board use: boards on SQLite and PostgreSQL, a challenge whose answers are hidden, submissions.

PostgreSQL is Debian's: a cluster of its own, on a socket in a folder, as a user of its own.
"""

import contextlib
import itertools
import os
import pwd
import shutil
import signal
import sqlite3
import subprocess
import tempfile
from pathlib import Path

import pytest
from fork_server import ForkedChild
from processes import is_alive
from rows import Rows
from samples import mount, submission_in, without_limits, write_challenge
from sqlalchemy import Engine, event, inspect
from story import Jobs, run_here

from geval_py.board.database import migrations, store
from geval_py.board.database.store import DATABASE_VARIABLE, Board, engine_at
from geval_py.board.intake import sandbox
from geval_py.board.operations import creation as creating
from geval_py.board.people.store import open_accounts

RUN = sandbox.run_in_sandbox


def programme(name):
    """Find a programme of PostgreSQL; a missing one is an error, not a skip."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = shutil.which(name, path=os.pathsep.join([*map(str, folders), os.environ["PATH"]]))
    assert found, f"{name} is missing (on Debian: apt-get install postgresql)"
    return found


class Cluster:
    """PostgreSQL on a socket in a folder, which knows no password; no commit waits for the disk."""

    def __init__(self):
        place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else "/tmp"  # in memory, to be made and deleted at once
        self.folder = tempfile.mkdtemp(prefix="geval-pg-", dir=place)  # short: a socket's path has 107 bytes at most
        self.user = None
        if os.getuid() == 0:
            self.user = "postgres" if "postgres" in {user.pw_name for user in pwd.getpwall()} else "nobody"
            shutil.chown(self.folder, self.user)
        self.numbers = itertools.count(1)
        self.run("initdb", "-D", f"{self.folder}/data", "-U", "geval", "--auth=trust", "--no-sync", "-E", "UTF8")
        self.start()

    def run(self, name, *words):
        user = {} if self.user is None else {"user": self.user, "group": pwd.getpwnam(self.user).pw_gid}
        user |= {"extra_groups": []} if user else {}
        more = {"cwd": self.folder, "stdout": subprocess.DEVNULL, **user}
        subprocess.run([programme(name), *words], check=True, **more)

    def start(self):
        options = f"-k {self.folder} -c listen_addresses= -c fsync=off -c max_connections=60"
        self.run("pg_ctl", "-D", f"{self.folder}/data", "-l", f"{self.folder}/log", "-o", options, "-w", "start")

    def crash(self):
        pid = int(Path(self.folder, "data/postmaster.pid").read_text().split()[0])
        os.kill(pid, signal.SIGSTOP)  # it makes no more
        all_of_it = [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]
        for one in all_of_it:
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
        assert not any(map(is_alive, all_of_it))
        for lock in ("data/postmaster.pid", ".s.PGSQL.5432.lock"):  # a container may keep its number, as a zombie's
            Path(self.folder, lock).unlink()

    def new_database(self):
        name = f"board{next(self.numbers)}"
        self.run("createdb", "-h", self.folder, "-U", "geval", name)
        return f"postgresql://geval@/{name}?host={self.folder}"

    def stop(self):
        self.run("pg_ctl", "-D", f"{self.folder}/data", "-m", "immediate", "stop")
        shutil.rmtree(self.folder)


@pytest.fixture(scope="session")
def postgresql():
    """A PostgreSQL of our own, for all tests of a session."""
    cluster = Cluster()
    yield cluster
    cluster.stop()


@pytest.fixture(scope="session", autouse=True)
def jobs_here():
    """Jobs of the sandbox are run in this process: that is quicker, and the same but for the limits."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sandbox, "run_in_sandbox", run_here)
        yield


@pytest.fixture(scope="module")
def children(fork_server):
    """In the modules that ask for it, jobs are run by children, as they are for users; these are the fork server's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sandbox, "run_in_sandbox", RUN)
        patch.setattr(sandbox, "start_child", lambda place: ForkedChild(fork_server.address, place))
        yield


@pytest.fixture
def sandbox_jobs(monkeypatch):
    """The jobs of the sandbox in this test, some of which may be let fail."""
    jobs = Jobs(sandbox.run_in_sandbox)
    monkeypatch.setattr(sandbox, "run_in_sandbox", jobs.run)
    return jobs


@pytest.fixture(scope="session", autouse=True)
def no_waiting_for_the_disk():
    """Commits to SQLite are there for all processes; after a power failure, no test would look for them."""

    def hurry(connection, _):
        if isinstance(connection, sqlite3.Connection):
            connection.execute("PRAGMA synchronous = OFF")

    event.listen(Engine, "connect", hurry)
    yield
    event.remove(Engine, "connect", hurry)


@pytest.fixture(scope="session", autouse=True)
def tables_made_once():
    """An empty database of SQLite gets the tables that the migrations made in another: the tests of these run them."""
    engine = engine_at("sqlite://")
    with engine.connect() as connection:
        migrations.upgrade(connection)
        made = list(connection.connection.driver_connection.iterdump())[1:-1]  # BEGIN and COMMIT are the caller's

    def upgrade(connection, really=migrations.upgrade):
        if connection.dialect.name == "sqlite" and not inspect(connection).get_table_names():
            for statement in made:
                connection.exec_driver_sql(statement)
            connection.exec_driver_sql("UPDATE board SET key = lower(hex(randomblob(8)))")
        else:
            really(connection)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migrations, "upgrade", upgrade)
        yield


@pytest.fixture(scope="session", autouse=True)
def statements_compiled_once(tables_made_once):
    """All databases of SQLite share a dialect and what it has compiled, else each would compile all statements anew."""
    first = engine_at("sqlite://")

    def create_engine(url, really=store.create_engine, **more):
        engine = really(url, **more)
        if engine.dialect.name == "sqlite":
            engine.dialect, engine._compiled_cache = first.dialect, first._compiled_cache
        return engine

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "create_engine", create_engine)
        yield


@pytest.fixture(autouse=True)
def no_database_of_the_users(monkeypatch):
    monkeypatch.delenv(DATABASE_VARIABLE, raising=False)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def database(request):
    """What board.yaml says of the database: a file, and with --long a URL; tests of both are marked ON_BOTH."""
    return "board.sqlite" if request.param == "sqlite" else request.getfixturevalue("postgresql").new_database()


@pytest.fixture
def challenge(tmp_path):
    """A challenge in the folder ``challenge``, with a public dev-0 and test-A, whose answers are in ``answers``."""
    return write_challenge(tmp_path)


@pytest.fixture(scope="session")
def new_board(tmp_path_factory, tables_made_once, no_waiting_for_the_disk):
    """A folder with a new board on SQLite and empty accounts, of which each test has a copy."""
    folder = tmp_path_factory.mktemp("new")
    creating.create(folder / "board", challenge=write_challenge(folder), answers=folder / "answers")
    without_limits(folder / "board")
    open_accounts(str(folder / "accounts.sqlite"))
    return folder


@pytest.fixture
def board(request, challenge, database, tmp_path):
    """A new board, on SQLite and with --long on PostgreSQL, in the folder ``board``."""
    if database == "board.sqlite":
        return request.getfixturevalue("sqlite_board")
    creating.create(tmp_path / "board", challenge=challenge, answers=tmp_path / "answers", database=database)
    return without_limits(tmp_path / "board")


@pytest.fixture
def sqlite_board(new_board, challenge, tmp_path):
    """A new board on SQLite only, in the folder ``board``."""
    shutil.copytree(new_board / "board", tmp_path / "board")
    return Board.open(tmp_path / "board")


@pytest.fixture
def submission(tmp_path):
    return submission_in(tmp_path)


@pytest.fixture
def rows(tmp_path, database):
    return Rows(tmp_path, database=database)


@pytest.fixture
def small_disk():
    """A file system of 16 megabytes, which PostgreSQL can reach too."""
    folder = Path(tempfile.mkdtemp(prefix="geval-disk-", dir="/tmp"))
    try:
        mount("-t", "tmpfs", "-o", "size=16m,mode=777", "tmpfs", str(folder))
        folder.chmod(0o777)
        yield folder
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
    finally:
        folder.rmdir()
