"""A board's server in this process, and people who use it by HTTP."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import anyio
import httpx
import uvicorn
from samples import NOW, rows_of
from samples import set_keys as set_keys
from sqlalchemy import select

from geval_py.board.database import schema as board_schema
from geval_py.board.people import accounts, schema, sign_in
from geval_py.board.people.store import People, accounts_of, shared_accounts
from geval_py.board.server import live
from geval_py.board.server.app import application
from geval_py.board.server.context import ServerContext
from geval_py.board.server.worker import Worker

live.LOOK_SECONDS = live.RETRY_SECONDS = 0  # a test sees a change at once
ADDRESS = "http://board.test"
OWN = {"Sec-Fetch-Site": "same-origin"}


def run(function, *arguments):
    """Run an asynchronous function to its end, in a thread: a browser of Playwright may have this one's loop."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(anyio.run, function, *arguments).result()


class Clock:
    def __init__(self, now=NOW):
        self.now = now

    def __call__(self):
        return self.now

    def wait(self, **more):
        self.now += timedelta(**more)


class Served:
    def __init__(self, board, place, *, url=ADDRESS):
        self.board, self.clock = board, Clock()
        self.server = ServerContext(board.folder, str(place), url=url, clock=self.clock)
        self.app = application(self.server)

    def browser(self):
        return Browser(self.app)

    def invite(self, name, **more):
        """Return the link of an invitation, without the address."""
        with self.people() as people:
            return f"/invitation/{accounts.invite(people, name, now=self.clock(), **more).secret}"

    def people(self):
        return accounts_of(self.board).writing()

    def signed_in(self, name, **more):
        browser = self.browser()
        assert browser.post(self.invite(name, **more)).status_code == 303
        return browser

    def token(self, name, **more):
        """A program's client, with a token of an account that is made if it is not there."""
        with self.people() as people:
            if not accounts.all_accounts(people, accounts.A.name == name):
                sign_in.accept(people, accounts.invite(people, name, now=self.clock()).secret, self.clock())
            account = accounts.account_named(people, name)
            secret = sign_in.make_token(people, account, now=self.clock(), **more)
        return Browser(self.app, headers={"Authorization": f"Bearer {secret}"}, own=False)

    def send(self, name, text, path="/upload/out.tsv?test=test-A"):
        """Upload a file, do all that waits, and give the upload's state."""
        program = self.token(name)
        number = program.put(path, text).json()["number"]
        self.work()
        return program.get(f"/api/uploads/{number}").json()

    def rows(self, query):
        return rows_of(self.board, query)

    def move_answers(self):
        answers = Path(self.board.settings.answers, "test-A", "expected.tsv")
        words = answers.read_text(encoding="utf-8").splitlines(keepends=True)
        answers.write_text("".join([*words[1:], words[0]]), encoding="utf-8")

    def log(self):
        """The lines of both audit logs, those of accounts last: who, action, subject and detail."""
        logs = (board_schema.audit, schema.account_log)
        queries = [select(*one.c["who", "action", "subject", "detail"]).order_by(one.c.id) for one in logs]
        return [row for query in queries for row in self.rows(query)]

    def work(self):
        """Do all that waits; gives the number of jobs."""
        return Worker(self.board.folder, at_once=2, clock=self.clock).run(until_idle=True)


class Several:
    def __init__(self, folder, place, *, url=f"{ADDRESS}/course"):
        place.mkdir()
        self.folder, self.clock = str(folder), Clock()
        self.server = ServerContext(self.folder, str(place), url=url, clock=self.clock)
        self.app = application(self.server)

    def signed_in(self, name, **more):
        browser = Browser(self.app)
        assert browser.post(self.invite(name, **more)).headers["location"] == "/course/"
        return browser

    def invite(self, name, **more):
        with shared_accounts(self.folder).writing() as connection:
            here = [People(connection, one.accounts.board) for one in self.server.boards]
            members = [accounts.invite(one, name, now=self.clock(), **more).account for one in here]
            secret = accounts.link_for_boards(People(connection, ""), members, self.clock())
            return f"/course/invitation/{secret}"

    def work(self):
        return Worker(self.folder, at_once=2, clock=self.clock).run(until_idle=True)


@contextmanager
def listening(app, folder, clock, port, *, workers=1):
    """Serve an application in a thread during the block; a worker works beside it, if any."""
    server = uvicorn.Server(uvicorn.Config(app, port=port, http="h11", lifespan="off", log_level="critical"))
    worker = Worker(folder, at_once=1, clock=clock)
    threads = [threading.Thread(target=one, daemon=True) for one in (server.run, worker.run)[: 1 + workers]]
    for one in threads:
        one.start()
    while not server.started:
        threads[0].join(0.05)
    yield
    server.should_exit = True
    worker.stop()
    for one in threads:
        one.join(20)


class Browser:
    def __init__(self, app, *, headers=None, own=True):
        self._app, self.cookies = app, httpx.Cookies()
        self._headers = {**(OWN if own else {}), **(headers or {})}

    def request(self, method, path, *, headers=None, address="192.0.2.1", **more):
        async def ask():
            transport = httpx.ASGITransport(app=self._app, raise_app_exceptions=False, client=(address, 1234))
            async with httpx.AsyncClient(transport=transport, base_url=ADDRESS, cookies=self.cookies) as client:
                answer = await client.request(method, path, headers={**self._headers, **(headers or {})}, **more)
                self.cookies = client.cookies
                return answer

        return run(ask)

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def post(self, path, **more):
        return self.request("POST", path, **more)

    def put(self, path, content, **more):
        return self.request("PUT", path, content=content, **more)
