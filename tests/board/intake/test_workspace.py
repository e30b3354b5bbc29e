"""The temporary folder of a run: what killed runs left is removed, and what living ones use is not."""

import os
import signal
import subprocess
import sys
import tempfile
import time

import pytest

from geval_py.board.intake import workspace as workspaces
from geval_py.board.intake.workspace import ABANDONED_SECONDS, workspace

HOLDING = """
import sys, time
from geval_py.board.intake.workspace import workspace
with workspace() as places:
    open(places + "/file", "w").close()
    print(places, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def other_run(temporary):
    """Start a process that holds a workspace."""
    with subprocess.Popen(
        [sys.executable, "-I", "-c", HOLDING],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(temporary)},
    ) as process:
        places = process.stdout.readline().strip()
        assert os.path.exists(f"{places}/file")
        yield process, places
        process.kill()


def test_a_workspace_is_empty_and_removed(temporary):
    with workspace() as places:
        assert os.listdir(places) == []
        assert os.path.dirname(os.path.dirname(places)) == str(temporary)
        os.mkdir(f"{places}/one")
    assert os.listdir(temporary) == []
    with pytest.raises(KeyboardInterrupt), workspace():
        raise KeyboardInterrupt
    assert os.listdir(temporary) == []


def test_what_a_killed_run_left_is_removed_by_the_next_and_what_a_living_one_uses_is_not(temporary, other_run):
    """However old it is."""
    process, places = other_run
    folder = os.path.dirname(places)
    os.utime(folder, (1, 1))
    with workspace():
        assert os.path.exists(f"{places}/file")
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert os.path.exists(f"{places}/file")
    with workspace() as mine:
        assert os.listdir(temporary) == [os.path.basename(os.path.dirname(mine))]


def test_in_a_folder_of_the_users_it_is_hidden_and_what_was_left_is_removed(tmp_path):
    with workspace(str(tmp_path)) as places:
        left = tmp_path / ".geval-board-left"
        left.mkdir()
        (left / "lock").write_text("")
        assert os.path.basename(os.path.dirname(places)).startswith(".geval-board-")
        with workspace(str(tmp_path)):
            assert not left.exists()
        assert os.path.isdir(places)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(("name", "age", "kept"), [
    ("geval-board-abc", ABANDONED_SECONDS + 60, False), ("geval-board-abc", ABANDONED_SECONDS - 60, True),
    ("geval-abc", ABANDONED_SECONDS + 60, True),
], ids=["of an earlier version", "just begun", "of somebody else"])  # fmt: skip
def test_a_folder_without_a_lock(temporary, name, age, kept):
    (temporary / name).mkdir()
    (temporary / name / "000").write_text("x")
    moment = time.time() - age
    os.utime(temporary / name, (moment, moment))
    with workspace():
        pass
    assert (temporary / name).exists() is kept


def test_a_link_and_a_file_with_such_a_name_are_left(temporary, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "lock").write_text("")
    (temporary / "geval-board-link").symlink_to(tmp_path / "mine")
    (temporary / "geval-board-file").write_text("")
    with workspace():
        pass
    assert sorted(os.listdir(temporary)) == ["geval-board-file", "geval-board-link"]
    assert os.listdir(tmp_path / "mine") == ["lock"]


def test_where_files_cannot_be_locked(temporary, monkeypatch):
    monkeypatch.setattr(workspaces, "CAN_LOCK", False)
    with workspace() as places:
        assert os.listdir(places) == []
    assert os.listdir(temporary) == []
