"""What commands show on a real terminal of 80 and 40 columns: the frozen outputs, which fit into it."""

import os
import pty
import re
import shutil
import subprocess
import sys
import termios

import pytest
from test_frozen_outputs import BAD, CHALLENGES, FROZEN, WITH_FORMATS, shortened

from geval_py.text import display_width

# On a busy machine the bar would be drawn.
WITHOUT_BAR = "from geval_py.cli import main, terminal; terminal.PATIENCE_SECONDS = 600; raise SystemExit(main())"
SHOWN = ("lines", "compare", "check-bad")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The challenges and the bad submission of the frozen outputs."""
    place = tmp_path_factory.mktemp("screens")
    shutil.copytree(CHALLENGES / "gazette", place / "gazette")
    lines = (place / "gazette/dev-0/expected.tsv").read_text().count("\n")
    (place / "bad/dev-0").mkdir(parents=True)
    (place / "bad/dev-0/out.tsv").write_text("".join(BAD[n % len(BAD)] for n in range(lines)))
    return place


def written(terminal):
    """Read until the terminal is closed, which Linux says by an error."""
    text = b""
    while True:
        try:
            text += os.read(terminal, 1 << 16)
        except OSError:
            os.close(terminal)
            return text.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("columns", [80, 40])
@pytest.mark.parametrize("name", SHOWN)
def test_screens(name, columns, folder):
    (out, theirs_out), (err, theirs_err) = pty.openpty(), pty.openpty()
    for terminal in (theirs_out, theirs_err):
        termios.tcsetwinsize(terminal, (24, columns))
    env = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "FORCE_COLOR", "NO_COLOR")}
    words = [sys.executable, "-c", WITHOUT_BAR, *WITH_FORMATS[name].split()]
    with subprocess.Popen(words, cwd=folder, env=env, stdout=theirs_out, stderr=theirs_err) as process:
        os.close(theirs_out)
        os.close(theirs_err)
        shown, notes = written(out), written(err)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", shown + notes).splitlines()
    assert max(map(display_width, lines)) <= columns
    text = f"status {process.returncode}\n--- standard output\n{shortened(shown)}--- standard error\n"
    frozen, end, frozen_notes = (FROZEN / f"{name}.{columns}.txt").read_text().partition("--- standard error\n")
    assert text == frozen + end
    assert notes.split() == frozen_notes.split()  # the notes of the frozen outputs are not wrapped
