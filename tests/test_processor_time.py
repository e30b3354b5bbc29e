"""The plugin that tells which tests must be marked slow."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import subprocess, sys, time, pytest
BURN = "import time; start = time.process_time()\\nwhile time.process_time() - start < 0.3: pass"
def test_unmarked():
    exec(BURN)
def test_of_a_child():
    subprocess.run([sys.executable, "-c", BURN])
@pytest.mark.slow
def test_marked():
    exec(BURN)
@pytest.fixture(scope="module")
def shared():
    exec(BURN)
def test_of_a_shared_fixture(shared):
    pass
def test_that_waits():
    time.sleep(0.3)
"""


@pytest.mark.slow
def test_a_test_that_takes_long_without_the_mark_fails(tmp_path):
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "conftest.py").write_text("import processor_time as p\np.SLOW, p.SURELY, p.QUIET_LOOP = 0.1, 2, 9")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = slow\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "processor_time", "-p", "no:cacheprovider", tmp_path]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    printed = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True).stdout
    assert "s of the processor: mark it slow, or make it quicker" in printed
    assert "2 failed, 3 passed" in printed
    assert "FAILED test_it.py::test_unmarked" in printed
    assert "FAILED test_it.py::test_of_a_child" in printed
