"""What several test files use: the kernels, each of which every kernel test runs on, the command, a browser, clusters."""

import functools
import gc
import os
import shutil
import ssl
import sys
from types import SimpleNamespace

import pytest
from fork_server import ForkedChild, ForkServer
from profiles import LONG, NORMAL, load_profile

from geval_py.board.intake import sandbox
from geval_py.cli import main
from geval_py.scoring.kernel import _native, backends, reference

load_profile(NORMAL)

# Threads of linear algebra would wait for each other, busily, while another worker tests: read when numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

pytest_plugins = ["processor_time"]
pytest.register_assert_rewrite("raising")  # so that a failure shows both messages
KERNELS = {"python": reference, "native": SimpleNamespace(**vars(_native) | backends.WRAPPED)}


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="run the tests that are marked long too, on all examples")


def pytest_configure(config):
    if config.getoption("--long"):
        load_profile(LONG)


def pytest_collection_modifyitems(config, items):
    """Leave out what is marked long, unless it is asked for."""
    if not config.getoption("--long"):
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("long")])
        items[:] = [item for item in items if not item.get_closest_marker("long")]


def pytest_collection_finish():
    """Leave the tests themselves and what they import out of later collections of garbage, and collect less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)  # a twentieth of the time


@pytest.fixture(params=KERNELS, scope="session")
def kernel(request):
    """A kernel backend; a missing native build is an error, not a skip."""
    return KERNELS[request.param]


@pytest.fixture(autouse=True)
def terminal_that_can_do_all(monkeypatch):
    """Whatever terminal the tests run on, the command sees the same."""
    monkeypatch.setenv("TERM", "xterm")
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session", autouse=True)
def certificates_read_once():
    """Each client of httpx would read all certificates anew, for 25 ms; no test needs them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", functools.cache(ssl.create_default_context))
        yield


@pytest.fixture
def geval(capsys, monkeypatch):
    """Run the command, on a terminal of some columns or in a pipe; gives status, standard output and standard error."""

    def run(*words, terminal=False, columns=80):
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
        status = main(list(words))
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


@pytest.fixture(scope="session")
def browser():
    """Debian's Chromium, at best without its windows: that takes half the time. A missing one is an error."""
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    assert path, "Chromium is missing (on Debian: apt-get install chromium-headless-shell)"
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=path, args=["--no-sandbox"] if os.getuid() == 0 else [])


@pytest.fixture
def open_address(browser):
    """Return a function that opens a page; the page holds what was ``said`` on its console and ``asked`` from hosts."""
    contexts = []

    def opened(address, *, width=1280, scheme="light", **more):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, **more)
        contexts.append(context)
        page = context.new_page()
        page.said, page.asked = [], []
        page.on("console", lambda message: page.said.append(message.text))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        page.on("request", lambda request: page.asked.append(request.url))
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def fork_server():
    server = ForkServer()
    yield server
    server.close()


@pytest.fixture(scope="module")
def forked_sandbox(fork_server):
    """In the modules that ask for it, children of the fork server read what a board is sent."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sandbox, "start_child", functools.partial(ForkedChild, fork_server.address))
        yield


@pytest.fixture(scope="module")
def without_last_words():
    """What Dask's own tasks raise when they are collected, with chains of causes too deep for pytest to show."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "unraisablehook", lambda _: None)
        yield
        gc.collect()  # else they are said in whatever test comes later
