"""What the tests of strangers' submissions share: receiving in this process, under a small budget."""

import time

import pytest

from geval_py.board.intake import sandbox
from geval_py.board.intake.receiving import receive
from geval_py.board.intake.sources import Budget
from geval_py.errors import RejectedError

RUN = sandbox.run_in_sandbox


@pytest.fixture(scope="module", autouse=True)
def real_children(jobs_here):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sandbox, "run_in_sandbox", RUN)
        yield


@pytest.fixture
def receiving(tmp_path):
    """Receive a source into an empty folder."""
    place = tmp_path / "place"
    place.mkdir()

    def run(source, *, tests=("test-A",), transports=("file",), seconds=60, **limits):
        budget = Budget(**{"bytes": 1_000_000, "files": 50} | limits, ends=time.monotonic() + seconds)
        return receive(str(source), str(place), budget, tests=tests, variants=5, transports=transports)

    return run


@pytest.fixture
def refusal(receiving):
    """Return the reason for which a source is rejected."""

    def run(source, **limits):
        with pytest.raises(RejectedError) as raised:
            receiving(source, **limits)
        return raised.value.reason

    return run


@pytest.fixture
def folder(tmp_path):
    def make(files, name="anna"):
        root = tmp_path / name
        root.mkdir(exist_ok=True)
        for path, content in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(content if isinstance(content, bytes) else content.encode())
        return root

    return make
